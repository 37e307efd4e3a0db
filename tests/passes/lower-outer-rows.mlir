// Where nothing is summed rows are written as they lie: the seven of j, 39 elements each, and not those of i, which is
// longer, 4,095 elements apart.
// RUN: wengert-opt %s --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s

// CHECK-LABEL: func.func private @outer_k0_contract
// CHECK-NOT: llvm.getelementptr %{{.*}}[4095]
// CHECK: llvm.getelementptr %{{.*}}[39]
// CHECK: llvm.getelementptr %{{.*}}[234]
// CHECK-NOT: llvm.getelementptr %{{.*}}[4095]
// CHECK: func.func @outer
func.func @outer(%a: tensor<15x39xf32>, %b: tensor<38x15x7xf32>) -> tensor<38x15x7x39xf32> {
  %c = wg.contract "kl,ikj->ikjl" %a, %b : tensor<15x39xf32>, tensor<38x15x7xf32> -> tensor<38x15x7x39xf32>
  return %c : tensor<38x15x7x39xf32>
}
