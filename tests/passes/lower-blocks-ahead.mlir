// A sum asks ahead for what it reads far apart, a short run at each step: four steps of 33 * 77 elements. What follows
// on it does not ask for.
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s

// CHECK-LABEL: func.func private @far
// CHECK: llvm.getelementptr %{{.*}}[10164]
// CHECK: llvm.intr.prefetch
func.func @far(%x: tensor<3x290x33x11x7xf32>) -> tensor<3x33x7xf32> {
  %y = wg.reduce_sum %x axes [1, 3] : tensor<3x290x33x11x7xf32> -> tensor<3x33x7xf32>
  return %y : tensor<3x33x7xf32>
}

// -----

// CHECK-LABEL: func.func private @follows
// CHECK-NOT: llvm.getelementptr %{{.*}}[308]
// CHECK: return
func.func @follows(%x: tensor<3x9570x11x7xf32>) -> tensor<3x7xf32> {
  %y = wg.reduce_sum %x axes [1, 2] : tensor<3x9570x11x7xf32> -> tensor<3x7xf32>
  return %y : tensor<3x7xf32>
}

// -----

// Places that lie far from each other ask each for its own: three lines of each row of 20 elements, which may begin
// anywhere.
// CHECK-LABEL: func.func private @apart
// CHECK-COUNT-15: llvm.intr.prefetch
// CHECK: return
func.func @apart(%x: tensor<7x400x20x5xf32>, %y: tensor<5x400x7x20xf32>) -> tensor<7x5xf32> {
  %t = wg.transpose %y by [2, 1, 3, 0] : tensor<5x400x7x20xf32> -> tensor<7x400x20x5xf32>
  %p = wg.mul %x, %t : tensor<7x400x20x5xf32>
  %s = wg.reduce_sum %p axes [1, 2] : tensor<7x400x20x5xf32> -> tensor<7x5xf32>
  return %s : tensor<7x5xf32>
}
