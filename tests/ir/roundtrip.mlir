// Every op prints what it parsed from.
// RUN: wengert-opt %s > %t.1
// RUN: wengert-opt %t.1 > %t.2
// RUN: cmp %t.1 %t.2
// RUN: wengert-opt %s --mlir-print-op-generic | wengert-opt > %t.3
// RUN: cmp %t.1 %t.3
// RUN: FileCheck %s < %t.1

// CHECK-LABEL: func @unary
func.func @unary(%x: tensor<2x?xf32>, %i: tensor<3xui8>, %p: tensor<2xi1>) {
  // CHECK: wg.neg %{{.*}} : tensor<2x?xf32>
  %0 = wg.neg %x : tensor<2x?xf32>
  // CHECK: wg.neg %{{.*}} : tensor<3xui8>
  %1 = wg.neg %i : tensor<3xui8>
  %2 = wg.abs %x : tensor<2x?xf32>
  %3 = wg.sign %x : tensor<2x?xf32>
  %4 = wg.exp %x : tensor<2x?xf32>
  %5 = wg.expm1 %x : tensor<2x?xf32>
  %6 = wg.log %x : tensor<2x?xf32>
  %7 = wg.log1p %x : tensor<2x?xf32>
  %8 = wg.sqrt %x : tensor<2x?xf32>
  %9 = wg.rsqrt %x : tensor<2x?xf32>
  // CHECK: wg.tanh %{{.*}} : tensor<2x?xf32>
  %10 = wg.tanh %x : tensor<2x?xf32>
  %11 = wg.sigmoid %x : tensor<2x?xf32>
  %12 = wg.relu %x : tensor<2x?xf32>
  %13 = wg.sin %x : tensor<2x?xf32>
  %14 = wg.cos %x : tensor<2x?xf32>
  %15 = wg.erf %x : tensor<2x?xf32>
  %16 = wg.floor %x : tensor<2x?xf32>
  %17 = wg.ceil %x : tensor<2x?xf32>
  %18 = wg.round %x : tensor<2x?xf32>
  // CHECK: wg.is_nan %{{.*}} : tensor<2x?xf32>
  %19 = wg.is_nan %x : tensor<2x?xf32>
  %20 = wg.logical_not %19 : tensor<2x?xi1>
  %21 = wg.stop_gradient %x : tensor<2x?xf32>
  // CHECK: wg.cast %{{.*}} : tensor<2x?xf32> -> tensor<2x?xi64>
  %22 = wg.cast %x {dtype = i64} : tensor<2x?xf32> -> tensor<2x?xi64>
  %23 = wg.ones_like %x : tensor<2x?xf32>
  %24 = wg.zeros_like %p : tensor<2xi1>
  return
}

// CHECK-LABEL: func @binary
func.func @binary(%a: tensor<4xf64>, %b: tensor<4xf64>, %p: tensor<4xi1>) {
  // CHECK: wg.add %{{.*}}, %{{.*}} : tensor<4xf64>
  %0 = wg.add %a, %b : tensor<4xf64>
  %1 = wg.sub %a, %b : tensor<4xf64>
  %2 = wg.mul %a, %b : tensor<4xf64>
  %3 = wg.div %a, %b : tensor<4xf64>
  %4 = wg.floor_div %a, %b : tensor<4xf64>
  %5 = wg.remainder %a, %b : tensor<4xf64>
  %6 = wg.pow %a, %b : tensor<4xf64>
  %7 = wg.maximum %a, %b : tensor<4xf64>
  %8 = wg.minimum %a, %b : tensor<4xf64>
  %9 = wg.logical_and %p, %p : tensor<4xi1>
  %10 = wg.logical_or %p, %p : tensor<4xi1>
  // CHECK: wg.equal %{{.*}}, %{{.*}} : tensor<4xf64>
  %11 = wg.equal %a, %b : tensor<4xf64>
  %12 = wg.not_equal %a, %b : tensor<4xf64>
  %13 = wg.less %a, %b : tensor<4xf64>
  %14 = wg.less_equal %a, %b : tensor<4xf64>
  %15 = wg.greater %a, %b : tensor<4xf64>
  %16 = wg.greater_equal %p, %p : tensor<4xi1>
  // CHECK: wg.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xi1>, tensor<4xf64>
  %17 = wg.select %11, %a, %b : tensor<4xi1>, tensor<4xf64>
  return
}

// CHECK-LABEL: func @reductions
func.func @reductions(%x: tensor<2x?x4xf32>, %p: tensor<2x3xi1>) {
  // CHECK: wg.reduce_sum %{{.*}} axes [0, 2] : tensor<2x?x4xf32> -> tensor<?xf32>
  %0 = wg.reduce_sum %x axes [0, 2] : tensor<2x?x4xf32> -> tensor<?xf32>
  %1 = wg.reduce_max %x axes [1] : tensor<2x?x4xf32> -> tensor<2x4xf32>
  %2 = wg.reduce_min %x axes [1] : tensor<2x?x4xf32> -> tensor<2x4xf32>
  // CHECK: wg.reduce_prod %{{.*}} axes [] : tensor<2x?x4xf32> -> tensor<2x?x4xf32>
  %3 = wg.reduce_prod %x axes [] : tensor<2x?x4xf32> -> tensor<2x?x4xf32>
  %4 = wg.reduce_any %p axes [1] : tensor<2x3xi1> -> tensor<2xi1>
  %5 = wg.reduce_all %p axes [1] : tensor<2x3xi1> -> tensor<2xi1>
  // CHECK: wg.argmax %{{.*}} axis 2 : tensor<2x?x4xf32> -> tensor<2x?xi64>
  %6 = wg.argmax %x axis 2 : tensor<2x?x4xf32> -> tensor<2x?xi64>
  return
}

// CHECK-LABEL: func @shapes
func.func @shapes(%x: tensor<?x3xf32>, %y: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // CHECK: %[[N:.*]] = wg.dim %{{.*}} axis 0 : tensor<?x3xf32>
  %n = wg.dim %x axis 0 : tensor<?x3xf32>
  // CHECK: wg.constant dense<1.000000e+00> : tensor<2x3xf32>
  %0 = wg.constant dense<1.0> : tensor<2x3xf32>
  %1 = wg.constant dense<[true, false]> : tensor<2xi1>
  // CHECK: wg.broadcast %{{.*}} to [?, 3] dims [1] sizes %[[N]] : tensor<3xf32> -> tensor<?x3xf32>
  %2 = wg.broadcast %v to [?, 3] dims [1] sizes %n : tensor<3xf32> -> tensor<?x3xf32>
  // CHECK: wg.broadcast %{{.*}} to [5, 3] dims [1] : tensor<3xf32> -> tensor<5x3xf32>
  %3 = wg.broadcast %v to [5, 3] dims [1] : tensor<3xf32> -> tensor<5x3xf32>
  // CHECK: wg.reshape %{{.*}} to [3, 2] : tensor<2x3xf32> -> tensor<3x2xf32>
  %4 = wg.reshape %y to [3, 2] : tensor<2x3xf32> -> tensor<3x2xf32>
  // CHECK: wg.transpose %{{.*}} by [1, 0] : tensor<?x3xf32> -> tensor<3x?xf32>
  %5 = wg.transpose %x by [1, 0] : tensor<?x3xf32> -> tensor<3x?xf32>
  // CHECK: %[[LAST:.*]] = wg.size "max(a - 2, 0) * 10 / 5" of %[[N]]
  %last = wg.size "max(a - 2, 0) * 10 / 5" of %n
  // CHECK: wg.size "7"
  %seven = wg.size "7"
  // CHECK: wg.slice %{{.*}} from [?, 1] to [?, 3] by [1, 1] sizes %[[LAST]], %[[N]] : tensor<?x3xf32> -> tensor<?x2xf32>
  %whole = wg.slice %x from [?, 1] to [?, 3] by [1, 1] sizes %last, %n : tensor<?x3xf32> -> tensor<?x2xf32>
  // CHECK: wg.slice %{{.*}} from [1, 1] to [2, 3] by [1, 1] : tensor<?x3xf32> -> tensor<1x2xf32>
  %row = wg.slice %x from [1, 1] to [2, 3] by [1, 1] : tensor<?x3xf32> -> tensor<1x2xf32>
  // CHECK: wg.pad %{{.*}} low [?, 0] high [0, ?] interior [1, 0] sizes %[[LAST]], %[[N]] : tensor<2x3xf32> -> tensor<?x?xf32>
  %padded = wg.pad %y low [?, 0] high [0, ?] interior [1, 0] sizes %last, %n : tensor<2x3xf32> -> tensor<?x?xf32>
  // CHECK: wg.slice %{{.*}} from [0, 1] to [2, 3] by [1, 2] : tensor<2x3xf32> -> tensor<2x1xf32>
  %6 = wg.slice %y from [0, 1] to [2, 3] by [1, 2] : tensor<2x3xf32> -> tensor<2x1xf32>
  // CHECK: wg.pad %{{.*}} low [0, 1] high [0, 1] interior [1, 0] : tensor<2x3xf32> -> tensor<3x5xf32>
  %7 = wg.pad %y low [0, 1] high [0, 1] interior [1, 0] : tensor<2x3xf32> -> tensor<3x5xf32>
  // CHECK: wg.concat %{{.*}}, %{{.*}} axis 0 : tensor<2x3xf32>, tensor<5x3xf32> -> tensor<7x3xf32>
  %8 = wg.concat %y, %3 axis 0 : tensor<2x3xf32>, tensor<5x3xf32> -> tensor<7x3xf32>
  // CHECK: wg.iota to [2, 3] axis 1 {dtype = f32} : tensor<2x3xf32>
  %9 = wg.iota to [2, 3] axis 1 {dtype = f32} : tensor<2x3xf32>
  return
}

// CHECK-LABEL: func @related_letters
func.func @related_letters(%a: tensor<?x9x3xf32>, %b: tensor<2x2x3x4xf32>, %n: index) {
  // CHECK: wg.contract "hwc,rsco->pqo; h=2p+3r-1; w=q+s" %{{.*}}, %{{.*}} to [?, 8] sizes %{{.*}} : tensor<?x9x3xf32>, tensor<2x2x3x4xf32> -> tensor<?x8x4xf32>
  %0 = wg.contract "hwc,rsco->pqo; h=2p+3r-1; w=q+s" %a, %b to [?, 8] sizes %n : tensor<?x9x3xf32>, tensor<2x2x3x4xf32> -> tensor<?x8x4xf32>
  return
}

// CHECK-LABEL: func @products_and_places
func.func @products_and_places(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %i: tensor<5xi64>, %u: tensor<5x3xf32>, %key: tensor<2xi64>) {
  // CHECK: wg.contract "mk,kn->mn" %{{.*}}, %{{.*}} : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  %0 = wg.contract "mk,kn->mn" %a, %b : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  // CHECK: wg.one_hot %{{.*}} depth 3 {dtype = f32} : tensor<5xi64> -> tensor<5x3xf32>
  %1 = wg.one_hot %i depth 3 {dtype = f32} : tensor<5xi64> -> tensor<5x3xf32>
  // CHECK: wg.gather %{{.*}}, %{{.*}} : tensor<2x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  %2 = wg.gather %a, %i : tensor<2x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  // CHECK: wg.scatter_add %{{.*}}, %{{.*}} to [2, 3] : tensor<5x3xf32>, tensor<5xi64> -> tensor<2x3xf32>
  %3 = wg.scatter_add %u, %i to [2, 3] : tensor<5x3xf32>, tensor<5xi64> -> tensor<2x3xf32>
  // CHECK: wg.random_uniform %{{.*}} to [3, 5] {dtype = f32} : tensor<2xi64> -> tensor<3x5xf32>
  %4 = wg.random_uniform %key to [3, 5] {dtype = f32} : tensor<2xi64> -> tensor<3x5xf32>
  // CHECK: wg.random_bits %{{.*}} to [9] {dtype = i64} : tensor<2xi64> -> tensor<9xi64>
  %5 = wg.random_bits %key to [9] {dtype = i64} : tensor<2xi64> -> tensor<9xi64>
  return
}

// CHECK-LABEL: func @programs_in_programs
func.func @programs_in_programs(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: wg.call @callee(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = wg.call @callee(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %{{.*}}:2 = wg.kernel map (%[[A:.*]] = %{{.*}} : tensor<4xf32>, %[[B:.*]] = %{{.*}} : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[S:.*]] = wg.add %[[A]], %[[B]] : tensor<4xf32>
  // CHECK-NEXT: wg.yield %[[S]], %[[A]] : tensor<4xf32>, tensor<4xf32>
  %1:2 = wg.kernel map (%a = %0 : tensor<4xf32>, %b = %y : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %s = wg.add %a, %b : tensor<4xf32>
    wg.yield %s, %a : tensor<4xf32>, tensor<4xf32>
  }
  // CHECK: wg.kernel single (%{{.*}} = %{{.*}} : tensor<4xf32>) -> tensor<i64> attributes {note = "one op"} {
  %2 = wg.kernel single (%a = %x : tensor<4xf32>) -> tensor<i64> attributes {note = "one op"} {
    %place = wg.argmax %a axis 0 : tensor<4xf32> -> tensor<i64>
    wg.yield %place : tensor<i64>
  }
  // CHECK: %[[M:.*]] = wg.reshape
  %m = wg.reshape %x to [2, 2] : tensor<4xf32> -> tensor<2x2xf32>
  // CHECK: wg.triangular_solve %[[M]], %[[M]] : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %3 = wg.triangular_solve %m, %m {lower = true, transpose = false} : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  // CHECK: wg.kernel external (%[[B:.*]] = %[[M]] : tensor<2x2xf32>) -> tensor<2x2xf32> {
  // CHECK-NEXT: wg.triangular_solve %[[B]], %[[B]] {lower = false, transpose = true, unit_diagonal = true} : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %4 = wg.kernel external (%b = %m : tensor<2x2xf32>) -> tensor<2x2xf32> {
    %s = wg.triangular_solve %b, %b {lower = false, transpose = true, unit_diagonal = true} : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
    wg.yield %s : tensor<2x2xf32>
  }
  return %1#0 : tensor<4xf32>
}

func.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
