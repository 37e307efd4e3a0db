// RUN: wengert-opt %s --wg-fuse | FileCheck %s

// A chain is one loop; the splat is copied into it.
// CHECK-LABEL: func.func @chain
//  CHECK-SAME:   (%[[X:.*]]: tensor<8xf32>)
func.func @chain(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[Y:.*]] = wg.kernel map (%{{.*}} = %[[X]] : tensor<8xf32>)
  // CHECK:        wg.constant
  // CHECK:        wg.mul
  // CHECK:        wg.tanh
  // CHECK:        wg.yield
  // CHECK:      return %[[Y]]
  %h = wg.constant dense<0.5> : tensor<8xf32>
  %a = wg.mul %x, %h : tensor<8xf32>
  %b = wg.tanh %a : tensor<8xf32>
  return %b : tensor<8xf32>
}

// Softmax: two reductions over one axis and what lies between and after them are one kernel.
// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<4x10xf32>) -> tensor<4x10xf32> {
  // CHECK-COUNT-1: wg.kernel reduce
  // CHECK:           wg.reduce_max
  // CHECK:           wg.exp
  // CHECK:           wg.reduce_sum
  // CHECK:           wg.div
  // CHECK-NOT:     wg.kernel
  %m = wg.reduce_max %x axes [1] : tensor<4x10xf32> -> tensor<4xf32>
  %mm = wg.broadcast %m to [4, 10] dims [0] : tensor<4xf32> -> tensor<4x10xf32>
  %d = wg.sub %x, %mm : tensor<4x10xf32>
  %e = wg.exp %d : tensor<4x10xf32>
  %s = wg.reduce_sum %e axes [1] : tensor<4x10xf32> -> tensor<4xf32>
  %ss = wg.broadcast %s to [4, 10] dims [0] : tensor<4xf32> -> tensor<4x10xf32>
  %y = wg.div %e, %ss : tensor<4x10xf32>
  return %y : tensor<4x10xf32>
}

// Sums over different axes of one value are two kernels.
// CHECK-LABEL: func.func @two_axes
func.func @two_axes(%x: tensor<4x10xf32>) -> (tensor<4xf32>, tensor<10xf32>) {
  // CHECK-COUNT-2: wg.kernel reduce
  %m = wg.reduce_sum %x axes [1] : tensor<4x10xf32> -> tensor<4xf32>
  %n = wg.reduce_sum %x axes [0] : tensor<4x10xf32> -> tensor<10xf32>
  return %m, %n : tensor<4xf32>, tensor<10xf32>
}

// A product takes its bias and activation along, from before and after it.
// CHECK-LABEL: func.func @dense
func.func @dense(%x: tensor<4x6xf32>, %w: tensor<6x5xf32>, %b: tensor<5xf32>) -> tensor<4x5xf32> {
  // CHECK:     wg.kernel contract
  // CHECK:       wg.contract
  // CHECK:       wg.add
  // CHECK:       wg.relu
  // CHECK-NOT: wg.kernel
  %p = wg.contract "mk,kn->mn" %x, %w : tensor<4x6xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
  %bb = wg.broadcast %b to [4, 5] dims [1] : tensor<5xf32> -> tensor<4x5xf32>
  %s = wg.add %p, %bb : tensor<4x5xf32>
  %r = wg.relu %s : tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// Two updates that meet in a third are one loop with three results.
// CHECK-LABEL: func.func @three_results
func.func @three_results(%p: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %g: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK:     wg.kernel map {{.*}} -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK-NOT: wg.kernel
  %m2 = wg.add %m, %g : tensor<8xf32>
  %gg = wg.mul %g, %g : tensor<8xf32>
  %v2 = wg.add %v, %gg : tensor<8xf32>
  %q = wg.div %m2, %v2 : tensor<8xf32>
  %p2 = wg.sub %p, %q : tensor<8xf32>
  return %p2, %m2, %v2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// No merge that would make a cycle: the transpose of %a is read in other places, so %c waits for all of %a.
// CHECK-LABEL: func.func @no_cycle
func.func @no_cycle(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-COUNT-2: wg.kernel map
  %a = wg.exp %x : tensor<4x4xf32>
  %t = wg.transpose %a by [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %c = wg.add %a, %t : tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}

// A value that one op reads element by element and another from memory is both: %h is copied for the addition and an input of the product.
// CHECK-LABEL: func.func @read_both_ways
//  CHECK-SAME:   (%[[X:.*]]: tensor<5x1x7xf32>, %[[W:.*]]: tensor<7x7xf32>)
func.func @read_both_ways(%x: tensor<5x1x7xf32>, %w: tensor<7x7xf32>) -> tensor<5x7xf32> {
  // CHECK-NEXT: %[[H:.*]] = wg.reshape %[[X]]
  // CHECK-NEXT: wg.kernel contract (%[[HM:.*]] = %[[H]] : tensor<5x7xf32>, %[[WM:.*]] = %[[W]] : tensor<7x7xf32>, %[[XM:.*]] = %[[X]] : tensor<5x1x7xf32>)
  // CHECK-NEXT:   %[[HE:.*]] = wg.reshape %[[XM]]
  // CHECK-NEXT:   %[[P:.*]] = wg.contract "mk,kn->mn" %[[HM]], %[[WM]]
  // CHECK-NEXT:   wg.add %[[HE]], %[[P]]
  %h = wg.reshape %x to [5, 7] : tensor<5x1x7xf32> -> tensor<5x7xf32>
  %p = wg.contract "mk,kn->mn" %h, %w : tensor<5x7xf32>, tensor<7x7xf32> -> tensor<5x7xf32>
  %y = wg.add %h, %p : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

// What nobody reads becomes no kernel.
// CHECK-LABEL: func.func @unread
func.func @unread(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: return
  %y = wg.tanh %x : tensor<4xf32>
  %z = wg.add %y, %x : tensor<4xf32>
  return %x : tensor<4xf32>
}

// A routine is a kernel alone, which reads its operands from memory: what it reads and what reads it are other kernels.
// CHECK-LABEL: func.func @routine
//  CHECK-SAME:   (%[[A:.*]]: tensor<4x4xf32>, %[[B:.*]]: tensor<4x2xf32>)
func.func @routine(%a: tensor<4x4xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // CHECK: %[[T:.*]] = wg.kernel map (%{{.*}} = %[[B]] : tensor<4x2xf32>)
  // CHECK: %[[X:.*]] = wg.kernel external (%[[I:.*]] = %[[A]] : tensor<4x4xf32>, %[[J:.*]] = %[[T]] : tensor<4x2xf32>) -> tensor<4x2xf32>
  // CHECK-NEXT: %[[S:.*]] = wg.triangular_solve %[[I]], %[[J]]
  // CHECK-NEXT: wg.yield %[[S]]
  // CHECK: %[[Y:.*]] = wg.kernel map (%{{.*}} = %[[X]] : tensor<4x2xf32>)
  // CHECK: return %[[Y]]
  %t = wg.tanh %b : tensor<4x2xf32>
  %x = wg.triangular_solve %a, %t : tensor<4x4xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  %y = wg.exp %x : tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// y lies in memory, for it is returned: its half square is made where it is summed, and lies nowhere.
// CHECK-LABEL: func.func @quick_ops_at_their_reader
func.func @quick_ops_at_their_reader(%a: tensor<64x8xf32>, %b: tensor<8x32xf32>) -> (tensor<64x32xf32>, tensor<64xf32>) {
  // CHECK: %[[Y:.*]] = wg.kernel contract
  // CHECK-NEXT: wg.contract
  // CHECK-NEXT: wg.yield
  // CHECK: wg.kernel reduce (%[[P:.*]] = %[[Y]] : tensor<64x32xf32>)
  // CHECK: %[[Q:.*]] = wg.mul %[[P]], %[[P]]
  // CHECK: %[[H:.*]] = wg.mul %[[Q]]
  // CHECK: wg.reduce_sum %[[H]] axes [1]
  %half = wg.constant dense<0.5> : tensor<64x32xf32>
  %0 = wg.contract "mk,kn->mn" %a, %b : tensor<64x8xf32>, tensor<8x32xf32> -> tensor<64x32xf32>
  %1 = wg.mul %0, %0 : tensor<64x32xf32>
  %2 = wg.mul %1, %half : tensor<64x32xf32>
  %3 = wg.reduce_sum %2 axes [1] : tensor<64x32xf32> -> tensor<64xf32>
  return %0, %3 : tensor<64x32xf32>, tensor<64xf32>
}

// Nobody else reads y: it stays in the product's kernel, and so does what is not quick, or has two readers.
// CHECK-LABEL: func.func @others_stay
func.func @others_stay(%a: tensor<64x8xf32>, %b: tensor<8x32xf32>)
    -> (tensor<64xf32>, tensor<64x32xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<64xf32>, tensor<32xf32>) {
  // CHECK: wg.kernel contract
  // CHECK-NEXT: wg.contract
  // CHECK-NEXT: wg.mul
  // CHECK-NEXT: wg.yield
  %0 = wg.contract "mk,kn->mn" %a, %b : tensor<64x8xf32>, tensor<8x32xf32> -> tensor<64x32xf32>
  %1 = wg.mul %0, %0 : tensor<64x32xf32>
  %2 = wg.reduce_sum %1 axes [1] : tensor<64x32xf32> -> tensor<64xf32>
  // CHECK: wg.kernel contract
  // CHECK-NEXT: wg.contract
  // CHECK-NEXT: wg.tanh
  // CHECK-NEXT: wg.yield
  %3 = wg.contract "mk,kn->mn" %a, %b : tensor<64x8xf32>, tensor<8x32xf32> -> tensor<64x32xf32>
  %4 = wg.tanh %3 : tensor<64x32xf32>
  %5 = wg.reduce_sum %4 axes [1] : tensor<64x32xf32> -> tensor<64xf32>
  // CHECK: wg.kernel contract
  // CHECK-NEXT: wg.contract
  // CHECK-NEXT: wg.mul
  // CHECK-NEXT: wg.yield
  %6 = wg.contract "mk,kn->mn" %a, %b : tensor<64x8xf32>, tensor<8x32xf32> -> tensor<64x32xf32>
  %7 = wg.mul %6, %6 : tensor<64x32xf32>
  %8 = wg.reduce_sum %7 axes [1] : tensor<64x32xf32> -> tensor<64xf32>
  %9 = wg.reduce_sum %7 axes [0] : tensor<64x32xf32> -> tensor<32xf32>
  return %2, %3, %5, %6, %8, %9 : tensor<64xf32>, tensor<64x32xf32>, tensor<64xf32>, tensor<64x32xf32>, tensor<64xf32>, tensor<32xf32>
}

// A transpose that is spread over many rows, and read across in each, is copied once; one that is read once is a view.
// CHECK-LABEL: func.func @copied_transpose
func.func @copied_transpose(%a: tensor<600x70xf32>, %b: tensor<50x70x600xf32>) -> tensor<50x70x600xf32> {
  // CHECK:      %[[T:.*]] = wg.kernel map
  // CHECK-NEXT:   wg.transpose
  // CHECK:      wg.kernel map (%[[X:.*]] = %[[T]] : tensor<70x600xf32>
  // CHECK-NEXT:   wg.broadcast %[[X]]
  // CHECK-NEXT:   wg.mul
  %t = wg.transpose %a by [1, 0] : tensor<600x70xf32> -> tensor<70x600xf32>
  %w = wg.broadcast %t to [50, 70, 600] dims [1, 2] : tensor<70x600xf32> -> tensor<50x70x600xf32>
  %p = wg.mul %w, %b : tensor<50x70x600xf32>
  return %p : tensor<50x70x600xf32>
}
// Runs of two neighbours are short; a copy makes them runs of 52.
// CHECK-LABEL: func.func @copied_short_runs
func.func @copied_short_runs(%a: tensor<26x34x2xf32>, %b: tensor<19x34x26x2xf32>) -> tensor<19x34x26x2xf32> {
  // CHECK:      %[[T:.*]] = wg.kernel map
  // CHECK-NEXT:   wg.transpose
  // CHECK:      wg.kernel map (%[[X:.*]] = %[[T]] : tensor<34x26x2xf32>
  // CHECK-NEXT:   wg.broadcast %[[X]]
  // CHECK-NEXT:   wg.mul
  %t = wg.transpose %a by [1, 0, 2] : tensor<26x34x2xf32> -> tensor<34x26x2xf32>
  %w = wg.broadcast %t to [19, 34, 26, 2] dims [1, 2, 3] : tensor<34x26x2xf32> -> tensor<19x34x26x2xf32>
  %p = wg.mul %w, %b : tensor<19x34x26x2xf32>
  return %p : tensor<19x34x26x2xf32>
}
// Runs of 16 are vectors, and where the spread goes on along another axis a copy would make none longer.
// CHECK-LABEL: func.func @shown_runs
func.func @shown_runs(%a: tensor<26x34x16xf32>, %b: tensor<19x34x26x16xf32>, %c: tensor<26x34x2xf32>, %d: tensor<34x26x19x2xf32>) -> (tensor<19x34x26x16xf32>, tensor<34x26x19x2xf32>) {
  // CHECK:      wg.kernel map
  // CHECK-NEXT:   wg.transpose
  // CHECK-NEXT:   wg.broadcast
  // CHECK-NEXT:   wg.mul
  // CHECK:      wg.kernel map
  // CHECK-NEXT:   wg.transpose
  // CHECK-NEXT:   wg.broadcast
  // CHECK-NEXT:   wg.mul
  %t = wg.transpose %a by [1, 0, 2] : tensor<26x34x16xf32> -> tensor<34x26x16xf32>
  %w = wg.broadcast %t to [19, 34, 26, 16] dims [1, 2, 3] : tensor<34x26x16xf32> -> tensor<19x34x26x16xf32>
  %p = wg.mul %w, %b : tensor<19x34x26x16xf32>
  %u = wg.transpose %c by [1, 0, 2] : tensor<26x34x2xf32> -> tensor<34x26x2xf32>
  %v = wg.broadcast %u to [34, 26, 19, 2] dims [0, 1, 3] : tensor<34x26x2xf32> -> tensor<34x26x19x2xf32>
  %q = wg.mul %v, %d : tensor<34x26x19x2xf32>
  return %p, %q : tensor<19x34x26x16xf32>, tensor<34x26x19x2xf32>
}
// CHECK-LABEL: func.func @shown_transpose
func.func @shown_transpose(%a: tensor<600x70xf32>, %b: tensor<70x600xf32>, %c: tensor<2x70x600xf32>) -> (tensor<70x600xf32>, tensor<2x70x600xf32>) {
  // CHECK:      wg.kernel map
  // CHECK-NEXT:   wg.transpose
  // CHECK-NEXT:   wg.mul
  // CHECK:      wg.kernel map
  // CHECK-NEXT:   wg.transpose
  // CHECK-NEXT:   wg.broadcast
  // CHECK-NEXT:   wg.mul
  %t = wg.transpose %a by [1, 0] : tensor<600x70xf32> -> tensor<70x600xf32>
  %p = wg.mul %t, %b : tensor<70x600xf32>
  %w = wg.broadcast %t to [2, 70, 600] dims [1, 2] : tensor<70x600xf32> -> tensor<2x70x600xf32>
  %q = wg.mul %w, %c : tensor<2x70x600xf32>
  return %p, %q : tensor<70x600xf32>, tensor<2x70x600xf32>
}
