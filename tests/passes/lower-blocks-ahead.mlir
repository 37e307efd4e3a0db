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
