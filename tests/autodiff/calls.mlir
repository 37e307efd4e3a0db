// RUN: wengert-opt %s --wg-grad="function=main values=true" | FileCheck %s
// RUN: wengert-opt %s --wg-grad="function=main" --wg-grad="function=main_grad" | FileCheck %s --check-prefix=TWICE

// A call becomes a forward function that also returns what the backward function reads; both calls share one pair.
// CHECK-LABEL: func.func private @layer_by_0_1_of_0_forward
//  CHECK-SAME: (%[[X:.*]]: tensor<2xf64>, %[[W:.*]]: tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>)
//       CHECK: %[[P:.*]] = wg.mul %[[X]], %[[W]]
//       CHECK: %[[Y:.*]] = wg.tanh %[[P]]
//       CHECK: return %[[Y]], %[[Y]]
// CHECK-LABEL: func.func private @layer_by_0_1_of_0_backward
//   CHECK-NOT: wg.tanh
//       CHECK: return %{{.*}}, %{{.*}} : tensor<2xf64>, tensor<2xf64>
//   CHECK-NOT: func.func private @layer_by
func.func @layer(%x: tensor<2xf64>, %w: tensor<2xf64>) -> tensor<2xf64> {
  %p = wg.mul %x, %w : tensor<2xf64>
  %y = wg.tanh %p : tensor<2xf64>
  return %y : tensor<2xf64>
}

// CHECK-LABEL: func.func @main_grad
//       CHECK: %[[H:.*]]:2 = wg.call @layer_by_0_1_of_0_forward
//       CHECK: %[[Z:.*]]:2 = wg.call @layer_by_0_1_of_0_forward(%[[H]]#0
//       CHECK: wg.call @layer_by_0_1_of_0_backward
//       CHECK: wg.call @layer_by_0_1_of_0_backward
//       CHECK: return %[[Z]]#0
// TWICE: func.func @main_grad_grad
func.func @main(%x: tensor<2xf64>, %w: tensor<2xf64>) -> tensor<2xf64> {
  %h = wg.call @layer(%x, %w) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  %y = wg.call @layer(%h, %w) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  return %y : tensor<2xf64>
}
