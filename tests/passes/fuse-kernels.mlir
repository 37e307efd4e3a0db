// RUN: wengert-opt %s --wg-fuse-kernels | FileCheck %s

// A product with a vector is fused as a sum of products. A kernel that fusion would make stays as it is written, and
// gets what is decided about it.
// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<8x5xf32>, %w: tensor<5xf32>) -> (tensor<8xf32>, tensor<8x5xf32>) {
  // CHECK: wg.kernel reduce
  // CHECK-SAME: loops<[8, 5] over [1]
  // CHECK-NOT: wg.contract
  %0 = wg.kernel contract (%a = %x : tensor<8x5xf32>, %b = %w : tensor<5xf32>) -> tensor<8xf32> {
    %c = wg.contract "mk,k->m" %a, %b : tensor<8x5xf32>, tensor<5xf32> -> tensor<8xf32>
    wg.yield %c : tensor<8xf32>
  }
  // CHECK: wg.kernel map (%{{.*}} = %{{.*}} : tensor<8x5xf32>) -> tensor<8x5xf32> loops<[8, 5] {{.*}}> attributes {note = "mine"}
  %1 = wg.kernel map (%a = %x : tensor<8x5xf32>) -> tensor<8x5xf32> attributes {note = "mine"} {
    %t = wg.tanh %a : tensor<8x5xf32>
    wg.yield %t : tensor<8x5xf32>
  }
  return %0, %1 : tensor<8xf32>, tensor<8x5xf32>
}
