// A product whose lanes are a part of a vector asks ahead for the masked loads of its long sum; one of short rows asks
// for those of the next tile: 24 rows of 24 further on.
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s

// CHECK-LABEL: func.func private @sums
// CHECK: llvm.intr.prefetch
// CHECK: masked.load
func.func @sums(%x: tensor<100000x10xf32>, %y: tensor<100000x10xf32>) -> tensor<10x10xf32> {
  %c = wg.contract "mk,mn->kn" %x, %y : tensor<100000x10xf32>, tensor<100000x10xf32> -> tensor<10x10xf32>
  return %c : tensor<10x10xf32>
}

// -----

// CHECK-LABEL: func.func private @rows
// CHECK: scf.for
// CHECK: scf.for
// CHECK: llvm.intr.prefetch
func.func @rows(%x: tensor<100000x24xf32>, %w: tensor<24x24xf32>) -> tensor<100000x24xf32> {
  %c = wg.contract "mk,kn->mn" %x, %w : tensor<100000x24xf32>, tensor<24x24xf32> -> tensor<100000x24xf32>
  return %c : tensor<100000x24xf32>
}

// -----

// CHECK-LABEL: func.func private @followed
// CHECK-NOT: llvm.intr.prefetch
// CHECK: return
func.func @followed(%x: tensor<100000x8xf32>, %w: tensor<8x24xf32>) -> tensor<100000x24xf32> {
  %c = wg.contract "mk,kn->mn" %x, %w : tensor<100000x8xf32>, tensor<8x24xf32> -> tensor<100000x24xf32>
  return %c : tensor<100000x24xf32>
}
