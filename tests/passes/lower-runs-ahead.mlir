// Rows of more than caches hold that are summed into accumulators in memory ask for the one that is 8 KiB on, if they
// are walked one by one; longer ones are walked by eights.
// RUN: wengert-opt %s --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 --split-input-file | FileCheck %s

// CHECK-LABEL: @one_by_one
// CHECK: llvm.getelementptr %{{.*}}[3000]
// CHECK: llvm.intr.prefetch
func.func @one_by_one(%x: tensor<2000x3000xf32>) -> tensor<3000xf32> {
  %y = wg.reduce_sum %x axes [0] : tensor<2000x3000xf32> -> tensor<3000xf32>
  return %y : tensor<3000xf32>
}

// -----

// CHECK-LABEL: @by_eights
// CHECK-NOT: llvm.intr.prefetch
func.func @by_eights(%x: tensor<2000x6000xf32>) -> tensor<6000xf32> {
  %y = wg.reduce_sum %x axes [0] : tensor<2000x6000xf32> -> tensor<6000xf32>
  return %y : tensor<6000xf32>
}

// -----

// CHECK-LABEL: @close_by
// CHECK-NOT: llvm.intr.prefetch
func.func @close_by(%x: tensor<200x3000xf32>) -> tensor<3000xf32> {
  %y = wg.reduce_sum %x axes [0] : tensor<200x3000xf32> -> tensor<3000xf32>
  return %y : tensor<3000xf32>
}
