// Rows of a few elements that are read in one order and written in another, more than caches close by hold: where the
// next loop reads more runs of them than processors follow, each row asks for what follows it. Of many runs the axis
// goes in strips where that is measured to pay (without AVX-512).
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=haswell --wg-lower=cpu=haswell | FileCheck %s --check-prefixes=CHECK,STRIPS
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s --check-prefixes=CHECK,WHOLE

// CHECK-LABEL: func.func private @rows
// STRIPS: scf.for %[[FIRST:.*]] = %c0 to %c4092 step %c64
// STRIPS: %[[END:.*]] = arith.minsi
// STRIPS: scf.for {{.*}} = %arg3 to %arg4 step %c1
// STRIPS: scf.for {{.*}} = %[[FIRST]] to %[[END]] step %c1
// STRIPS: llvm.intr.prefetch
// WHOLE-NOT: step %c64
// WHOLE: return
func.func @rows(%x: tensor<4092x1131x4xf32>) -> tensor<1131x4092x4xf32> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<4092x1131x4xf32> -> tensor<1131x4092x4xf32>
  return %y : tensor<1131x4092x4xf32>
}

// -----

// One prefetch a row, and none for the scale, which is small.
// CHECK-LABEL: func.func private @scaled
// CHECK: scf.for {{.*}} step %c1
// CHECK: scf.for {{.*}} step %c1
// CHECK-NOT: scf.for
// CHECK-COUNT-1: llvm.intr.prefetch
// CHECK-NOT: llvm.intr.prefetch
// CHECK: return
func.func @scaled(%x: tensor<225x8671x5xf32>, %s: tensor<5xf32>) -> tensor<8671x225x5xf32> {
  %t = wg.transpose %x by [1, 0, 2] : tensor<225x8671x5xf32> -> tensor<8671x225x5xf32>
  %b = wg.broadcast %s to [8671, 225, 5] dims [2] : tensor<5xf32> -> tensor<8671x225x5xf32>
  %y = wg.mul %t, %b : tensor<8671x225x5xf32>
  return %y : tensor<8671x225x5xf32>
}

// -----

// Columns of a block that follow each other: of the 27 numbers of a row 24 and 3 are two blocks.
// CHECK-LABEL: func.func private @blocks
// CHECK: llvm.intr.prefetch
// CHECK: return
func.func @blocks(%x: tensor<162x10x110x9x3xf32>) -> tensor<110x10x3x162x9xf32> {
  %y = wg.transpose %x by [2, 1, 4, 0, 3] : tensor<162x10x110x9x3xf32> -> tensor<110x10x3x162x9xf32>
  return %y : tensor<110x10x3x162x9xf32>
}

// -----

// CHECK-LABEL: func.func private @small
// CHECK-NOT: llvm.intr.prefetch
// CHECK-NOT: step %c64
// CHECK: return
func.func @small(%x: tensor<225x91x5xf32>) -> tensor<91x225x5xf32> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<225x91x5xf32> -> tensor<91x225x5xf32>
  return %y : tensor<91x225x5xf32>
}
