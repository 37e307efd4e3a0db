// What folds, each beside what must not: no bit of a result may change.
// RUN: wengert-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func @neutral_operands
//  CHECK-SAME:   (%[[X:.*]]: tensor<4xf32>)
func.func @neutral_operands(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]]
  %one = wg.constant dense<1.0> : tensor<4xf32>
  %zero = wg.constant dense<0.0> : tensor<4xf32>
  %minus_zero = wg.constant dense<-0.0> : tensor<4xf32>
  %0 = wg.mul %one, %x : tensor<4xf32>
  %1 = wg.sub %x, %zero : tensor<4xf32>
  %2 = wg.div %x, %one : tensor<4xf32>
  %3 = wg.add %x, %minus_zero : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -0 + 0 is 0, NaN * 0 is NaN, x - -0 is 0 for x = -0.
// CHECK-LABEL: func @zeros_of_floats_stay
func.func @zeros_of_floats_stay(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-1: wg.add
  // CHECK-COUNT-1: wg.mul
  // CHECK-COUNT-1: wg.sub
  %zero = wg.constant dense<0.0> : tensor<4xf32>
  %minus_zero = wg.constant dense<-0.0> : tensor<4xf32>
  %0 = wg.add %x, %zero : tensor<4xf32>
  %1 = wg.mul %x, %zero : tensor<4xf32>
  %2 = wg.sub %x, %minus_zero : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @zeros_of_integers_fold
//  CHECK-SAME:   (%[[X:.*]]: tensor<4xi32>)
func.func @zeros_of_integers_fold(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  // CHECK-NEXT: %[[ZERO:.*]] = wg.constant dense<0> : tensor<4xi32>
  // CHECK-NEXT: return %[[X]], %[[ZERO]]
  %zero = wg.constant dense<0> : tensor<4xi32>
  %0 = wg.add %x, %zero : tensor<4xi32>
  %1 = wg.mul %x, %zero : tensor<4xi32>
  return %0, %1 : tensor<4xi32>, tensor<4xi32>
}

// CHECK-LABEL: func @pairs_cancel
//  CHECK-SAME:   (%[[X:.*]]: tensor<2x3xf32>, %[[P:.*]]: tensor<2x3xi1>)
func.func @pairs_cancel(%x: tensor<2x3xf32>, %p: tensor<2x3xi1>) -> (tensor<2x3xf32>, tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) {
  // CHECK-NEXT: return %[[X]], %[[P]], %[[X]], %[[X]]
  %0 = wg.neg %x : tensor<2x3xf32>
  %1 = wg.neg %0 : tensor<2x3xf32>
  %2 = wg.logical_not %p : tensor<2x3xi1>
  %3 = wg.logical_not %2 : tensor<2x3xi1>
  %4 = wg.transpose %x by [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %5 = wg.transpose %4 by [1, 0] : tensor<3x2xf32> -> tensor<2x3xf32>
  %6 = wg.reshape %x to [6] : tensor<2x3xf32> -> tensor<6xf32>
  %7 = wg.reshape %6 to [2, 3] : tensor<6xf32> -> tensor<2x3xf32>
  return %1, %3, %5, %7 : tensor<2x3xf32>, tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: func @chains_join
//  CHECK-SAME:   (%[[X:.*]]: tensor<3xf32>, %[[Y:.*]]: tensor<2x3x4xf32>)
func.func @chains_join(%x: tensor<3xf32>, %y: tensor<2x3x4xf32>) -> (tensor<5x4x3xf32>, tensor<4x2x3xf32>, tensor<24xf32>) {
  // CHECK-DAG: wg.broadcast %[[X]] to [5, 4, 3] dims [2] : tensor<3xf32> -> tensor<5x4x3xf32>
  // CHECK-DAG: wg.transpose %[[Y]] by [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  // CHECK-DAG: wg.reshape %[[Y]] to [24] : tensor<2x3x4xf32> -> tensor<24xf32>
  %0 = wg.broadcast %x to [1, 3] dims [1] : tensor<3xf32> -> tensor<1x3xf32>
  %1 = wg.broadcast %0 to [5, 4, 3] dims [1, 2] : tensor<1x3xf32> -> tensor<5x4x3xf32>
  %2 = wg.transpose %y by [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %3 = wg.transpose %2 by [1, 2, 0] : tensor<3x4x2xf32> -> tensor<4x2x3xf32>
  %4 = wg.reshape %y to [6, 4] : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %5 = wg.reshape %4 to [24] : tensor<6x4xf32> -> tensor<24xf32>
  return %1, %3, %5 : tensor<5x4x3xf32>, tensor<4x2x3xf32>, tensor<24xf32>
}

// A splat is the same splat in any shape.
// CHECK-LABEL: func @splats_move
func.func @splats_move(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<6xf32>, tensor<2x3xf32>) {
  // CHECK-DAG: %[[TWO:.*]] = wg.constant dense<2.000000e+00> : tensor<2x3xf32>
  // CHECK-DAG: %[[FLAT:.*]] = wg.constant dense<2.000000e+00> : tensor<6xf32>
  // CHECK-DAG: %[[ONE:.*]] = wg.constant dense<1.000000e+00> : tensor<2x3xf32>
  // CHECK: return %[[TWO]], %[[FLAT]], %[[ONE]]
  %two = wg.constant dense<2.0> : tensor<f32>
  %0 = wg.broadcast %two to [2, 3] dims [] : tensor<f32> -> tensor<2x3xf32>
  %1 = wg.reshape %0 to [6] : tensor<2x3xf32> -> tensor<6xf32>
  %2 = wg.ones_like %x : tensor<2x3xf32>
  return %0, %1, %2 : tensor<2x3xf32>, tensor<6xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: func @nothing_to_do
//  CHECK-SAME:   (%[[X:.*]]: tensor<2x3xf32>, %[[P:.*]]: tensor<2x3xi1>, %[[D:.*]]: tensor<?xf32>)
func.func @nothing_to_do(%x: tensor<2x3xf32>, %p: tensor<2x3xi1>, %d: tensor<?xf32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<?xf32>) {
  // CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[D]]
  %0 = wg.reduce_max %x axes [] : tensor<2x3xf32> -> tensor<2x3xf32>
  %1 = wg.cast %x {dtype = f32} : tensor<2x3xf32> -> tensor<2x3xf32>
  %2 = wg.select %p, %x, %x : tensor<2x3xi1>, tensor<2x3xf32>
  %3 = wg.broadcast %x to [2, 3] dims [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %4 = wg.slice %x from [0, 0] to [2, 3] by [1, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %n = wg.dim %d axis 0 : tensor<?xf32>
  %5 = wg.broadcast %d to [?] dims [0] sizes %n : tensor<?xf32> -> tensor<?xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<?xf32>
}

// Another size: the broadcast checks at run time that both are one.
// CHECK-LABEL: func @unequal_size_stays
func.func @unequal_size_stays(%d: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // CHECK: wg.broadcast
  %0 = wg.broadcast %d to [?] dims [0] sizes %n : tensor<?xf32> -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// A size is asked of the value that it came from, so nothing is kept for its size alone.
// CHECK-LABEL: func @sizes_come_from_arguments
//  CHECK-SAME:   (%[[X:.*]]: tensor<?x3x?xf32>, %[[V:.*]]: tensor<3xf32>)
func.func @sizes_come_from_arguments(%x: tensor<?x3x?xf32>, %v: tensor<3xf32>) -> (index, index, index) {
  // CHECK-DAG: %[[N:.*]] = wg.dim %[[X]] axis 2 : tensor<?x3x?xf32>
  // CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : index
  // CHECK: return %[[N]], %[[THREE]], %[[N]]
  %0 = wg.exp %x : tensor<?x3x?xf32>
  %1 = wg.reduce_sum %0 axes [0] : tensor<?x3x?xf32> -> tensor<3x?xf32>
  %2 = wg.transpose %1 by [1, 0] : tensor<3x?xf32> -> tensor<?x3xf32>
  %n = wg.dim %2 axis 0 : tensor<?x3xf32>
  %three = wg.dim %2 axis 1 : tensor<?x3xf32>
  %3 = wg.broadcast %v to [?, 3] dims [1] sizes %n : tensor<3xf32> -> tensor<?x3xf32>
  %p = wg.contract "mk,nk->mn" %2, %3 : tensor<?x3xf32>, tensor<?x3xf32> -> tensor<?x?xf32>
  %m = wg.dim %p axis 1 : tensor<?x?xf32>
  return %n, %three, %m : index, index, index
}

// CHECK-LABEL: func @contract_absorbs_transposes
//  CHECK-SAME:   (%[[A:.*]]: tensor<3x2xf32>, %[[B:.*]]: tensor<4x3xf32>)
func.func @contract_absorbs_transposes(%a: tensor<3x2xf32>, %b: tensor<4x3xf32>) -> tensor<4x2xf32> {
  // CHECK-NEXT: %[[C:.*]] = wg.contract "km,nk->nm" %[[A]], %[[B]] : tensor<3x2xf32>, tensor<4x3xf32> -> tensor<4x2xf32>
  // CHECK-NEXT: return %[[C]]
  %at = wg.transpose %a by [1, 0] : tensor<3x2xf32> -> tensor<2x3xf32>
  %bt = wg.transpose %b by [1, 0] : tensor<4x3xf32> -> tensor<3x4xf32>
  %c = wg.contract "mk,kn->mn" %at, %bt : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  %ct = wg.transpose %c by [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  return %ct : tensor<4x2xf32>
}

// Relations are of letters, not of axes: they stay.
// CHECK-LABEL: func @related_letters_absorb_transposes
//  CHECK-SAME:   (%[[A:.*]]: tensor<3x9xf32>, %[[B:.*]]: tensor<2x3x4xf32>, %[[N:.*]]: index)
func.func @related_letters_absorb_transposes(%a: tensor<3x9xf32>, %b: tensor<2x3x4xf32>, %n: index) -> (tensor<4x?xf32>, index) {
  // CHECK-NEXT: %[[C:.*]] = wg.contract "ch,rco->op; h=2p+r" %[[A]], %[[B]] to [?] sizes %[[N]] : tensor<3x9xf32>, tensor<2x3x4xf32> -> tensor<4x?xf32>
  // CHECK-NEXT: return %[[C]], %[[N]]
  %at = wg.transpose %a by [1, 0] : tensor<3x9xf32> -> tensor<9x3xf32>
  %c = wg.contract "hc,rco->po; h=2p+r" %at, %b to [?] sizes %n : tensor<9x3xf32>, tensor<2x3x4xf32> -> tensor<?x4xf32>
  %ct = wg.transpose %c by [1, 0] : tensor<?x4xf32> -> tensor<4x?xf32>
  %m = wg.dim %ct axis 1 : tensor<4x?xf32>
  return %ct, %m : tensor<4x?xf32>, index
}

// A product that is read as it is as well is not computed twice.
// CHECK-LABEL: func @shared_product_stays
func.func @shared_product_stays(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<4x2xf32>) {
  // CHECK: %[[C:.*]] = wg.contract "mk,kn->mn"
  // CHECK-NEXT: %[[T:.*]] = wg.transpose %[[C]]
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  %ct = wg.transpose %c by [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  return %c, %ct : tensor<2x4xf32>, tensor<4x2xf32>
}
