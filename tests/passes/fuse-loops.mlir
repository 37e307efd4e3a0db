// RUN: wengert-opt %s --wg-fuse --mlir-print-local-scope | FileCheck %s
// RUN: wengert-opt %s --wg-fuse | wengert-opt | wengert-opt --mlir-print-local-scope | FileCheck %s

// What fusion decides is written on each kernel.

// An element of x is read where it is written, so the result may lie over x; a row of b is read by many.
// CHECK-LABEL: func.func @rows
func.func @rows(%x: tensor<8x5xf32>, %b: tensor<5xf32>) -> tensor<8x5xf32> {
  // CHECK: wg.kernel map
  // CHECK-SAME: loops<[8, 5] reads {{\[\[}}affine_map<(d0, d1) -> (d0, d1)>], [affine_map<(d0, d1) -> (d1)>]] writes [affine_map<(d0, d1) -> (d0, d1)>] computes f32 overwrites [0, 0]>
  %0 = wg.broadcast %b to [8, 5] dims [1] : tensor<5xf32> -> tensor<8x5xf32>
  %1 = wg.add %x, %0 : tensor<8x5xf32>
  return %1 : tensor<8x5xf32>
}

// CHECK-LABEL: func.func @sums
func.func @sums(%x: tensor<8x5xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  // The rows may lie over y.
  // CHECK: wg.kernel reduce
  // CHECK-SAME: loops<[8, 5] over [1] reads {{\[\[}}affine_map<(d0, d1) -> (d0, d1)>], [affine_map<(d0, d1) -> (d0)>]] writes [affine_map<(d0, d1) -> (d0)>] computes f32 sums [f32] overwrites [0, 1]>
  %0 = wg.reduce_sum %x axes [1] : tensor<8x5xf32> -> tensor<8xf32>
  %1 = wg.mul %0, %y : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// The space of a product is its result's, and its summed letters; b is read across.
// CHECK-LABEL: func.func @product
func.func @product(%a: tensor<3x4xf64>, %b: tensor<5x4xf64>) -> tensor<3x5xf64> {
  // CHECK: wg.kernel contract
  // CHECK-SAME: loops<[3, 5, 4] over [2] reads {{\[\[}}affine_map<(d0, d1, d2) -> (d0, d2)>], [affine_map<(d0, d1, d2) -> (d1, d2)>]] writes [affine_map<(d0, d1, d2) -> (d0, d1)>] computes f64 sums [f64]>
  %0 = wg.contract "mk,nk->mn" %a, %b : tensor<3x4xf64>, tensor<5x4xf64> -> tensor<3x5xf64>
  return %0 : tensor<3x5xf64>
}

// The first to read indices checks them, unless the one before it has checked less.
// CHECK-LABEL: func.func @checks
func.func @checks(%t: tensor<6x2xf32>, %u: tensor<6x2xf32>, %s: tensor<4x2xf32>, %i: tensor<3xi64>)
    -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) {
  // CHECK: wg.kernel single
  // CHECK-SAME: loops<[] reads {{\[\[}}], []] writes [] computes f32 may_fail>
  %0 = wg.gather %t, %i : tensor<6x2xf32>, tensor<3xi64> -> tensor<3x2xf32>
  // CHECK: wg.kernel single
  // CHECK-NOT: may_fail
  %1 = wg.gather %u, %i : tensor<6x2xf32>, tensor<3xi64> -> tensor<3x2xf32>
  // CHECK: wg.kernel single
  // CHECK-SAME: may_fail>
  %2 = wg.gather %s, %i : tensor<4x2xf32>, tensor<3xi64> -> tensor<3x2xf32>
  return %0, %1, %2 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
}

// Related letters: x is read where h = 2p + 3r - 1, and the gradient's p follows from h and r.
// CHECK-LABEL: func.func @convolution
func.func @convolution(%x: tensor<9x2xf32>, %ct: tensor<5x4xf32>, %w: tensor<3x2x4xf32>) -> (tensor<5x4xf32>, tensor<9x2xf32>) {
  // CHECK: loops<[5, 4, 2, 3] over [2, 3] reads {{\[\[}}affine_map<(d0, d1, d2, d3) -> (d0 * 2 + d3 * 3 - 1, d2)>], [affine_map<(d0, d1, d2, d3) -> (d3, d2, d1)>]]
  %0 = wg.contract "hc,rco->po; h=2p+3r-1" %x, %w to [5] : tensor<9x2xf32>, tensor<3x2x4xf32> -> tensor<5x4xf32>
  // CHECK: loops<[9, 2, 4, 3] over [2, 3] reads {{\[\[}}affine_map<(d0, d1, d2, d3) -> ((d0 - d3 * 3 + 1) floordiv 2, d2)>], [affine_map<(d0, d1, d2, d3) -> (d3, d1, d2)>]]
  %1 = wg.contract "po,rco->hc; h=2p+3r-1" %ct, %w to [9] : tensor<5x4xf32>, tensor<3x2x4xf32> -> tensor<9x2xf32>
  return %0, %1 : tensor<5x4xf32>, tensor<9x2xf32>
}

// A softmax may lie over what it is of: its quotients are written in the last loop that reads. The first of two such
// results is written while the other is still to be read from the memory below it.
// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<8x500xf32>) -> (tensor<8x500xf32>, tensor<8x500xf32>) {
  // CHECK: wg.kernel reduce
  // CHECK-SAME: over [1]
  // CHECK-SAME: sums [f32, f32] overwrites [1, 0]>
  %0 = wg.reduce_max %x axes [1] : tensor<8x500xf32> -> tensor<8xf32>
  %1 = wg.broadcast %0 to [8, 500] dims [0] : tensor<8xf32> -> tensor<8x500xf32>
  %2 = wg.sub %x, %1 : tensor<8x500xf32>
  %3 = wg.exp %2 : tensor<8x500xf32>
  %4 = wg.reduce_sum %3 axes [1] : tensor<8x500xf32> -> tensor<8xf32>
  %5 = wg.broadcast %4 to [8, 500] dims [0] : tensor<8xf32> -> tensor<8x500xf32>
  %6 = wg.div %3, %5 : tensor<8x500xf32>
  return %3, %6 : tensor<8x500xf32>, tensor<8x500xf32>
}
