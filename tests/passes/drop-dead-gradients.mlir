// RUN: wengert-opt %s --wg-drop-dead-gradients | FileCheck %s

// f = a * b, asked for df/da only: the cotangent of b is erased.
// CHECK-LABEL: func @unread_cotangent_falls
//  CHECK-SAME:   (%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>, %[[CT:.*]]: tensor<4xf32>)
func.func @unread_cotangent_falls(%a: tensor<4xf32>, %b: tensor<4xf32>, %ct: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[DA:.*]] = wg.mul %[[CT]], %[[B]]
  %da = wg.mul %ct, %b : tensor<4xf32>
  %db = wg.mul %ct, %a : tensor<4xf32>
  // CHECK-NEXT: return %[[DA]]
  return %da : tensor<4xf32>
}

// What only a dead op reads is dead as well, in the same sweep.
// CHECK-LABEL: func @chain_falls
//  CHECK-NEXT:   return
func.func @chain_falls(%x: tensor<?xf32>) {
  %n = wg.dim %x axis 0 : tensor<?xf32>
  %one = wg.constant dense<1.0> : tensor<f32>
  %ones = wg.broadcast %one to [?] dims [] sizes %n : tensor<f32> -> tensor<?xf32>
  %y = wg.mul %x, %ones : tensor<?xf32>
  return
}

// CHECK-LABEL: func @unread_call_falls_and_read_kernel_stays
func.func @unread_call_falls_and_read_kernel_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NOT: wg.call
  %0 = wg.call @callee(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: wg.kernel map
  %1 = wg.kernel map (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %t = wg.tanh %a : tensor<4xf32>
    wg.yield %t : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

func.func private @callee(tensor<4xf32>) -> tensor<4xf32>
