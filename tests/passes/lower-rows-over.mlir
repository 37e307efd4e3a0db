// Rows shorter than a vector that may lie over what they are made of are stored in pieces with AVX-512 too: the next
// row's load would wait for a masked store. Those of a small tensor are not asked for ahead.
// RUN: wengert-opt %s --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s

// CHECK-NOT: masked.store
// CHECK-NOT: prefetch
// CHECK: llvm.store {{.*}} : vector<8xf32>
// CHECK: llvm.store {{.*}} : vector<2xf32>
// CHECK-NOT: masked.store
func.func @rows(%x: tensor<21x10xf32>, %v: tensor<10xf32>) -> tensor<21x10xf32> {
  %b = wg.broadcast %v to [21, 10] dims [1] : tensor<10xf32> -> tensor<21x10xf32>
  %y = wg.mul %x, %b : tensor<21x10xf32>
  return %y : tensor<21x10xf32>
}
