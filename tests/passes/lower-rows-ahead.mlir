// Short rows of a large tensor ask for later ones, 64 further on: no processor follows masked loads.
// RUN: wengert-opt %s --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s

// CHECK: llvm.getelementptr %{{.*}}[640]
// CHECK: llvm.intr.prefetch
// CHECK: masked.load
func.func @rows(%x: tensor<100000x10xf32>, %v: tensor<10xf32>) -> tensor<100000x10xf32> {
  %b = wg.broadcast %v to [100000, 10] dims [1] : tensor<10xf32> -> tensor<100000x10xf32>
  %y = wg.mul %x, %b : tensor<100000x10xf32>
  return %y : tensor<100000x10xf32>
}
