// RUN: wengert-opt %s --split-input-file --verify-diagnostics --wg-vmap="wrt=0 size=3" | FileCheck %s
// RUN: wengert-opt %s --split-input-file --verify-diagnostics --wg-vmap="wrt=0 size=3" --wg-grad="function=main_vmap name=lanes_grad" | FileCheck %s --check-prefix=GRAD

// A function that names its derivative is batched together with it. The operand that is the same in all lanes gets the sum of
// what they give; the derivative may call the function itself.
// CHECK-LABEL: func.func private @scaled(
//  CHECK-SAME: wg.batches = [{arguments = array<i64: 0>, count = 3 : i64, function = @scaled_lanes_0, results = array<i1: true>}], wg.vjp = @rule
// CHECK-LABEL: func.func private @scaled_lanes_0(%arg0: tensor<3x2xf64>, %arg1: tensor<2xf64>) -> tensor<3x2xf64> attributes {wg.vjp = @scaled_lanes_0_vjp}
// CHECK-LABEL: func.func private @scaled_lanes_0_vjp(
//  CHECK-SAME: %{{.*}}: tensor<3x2xf64>, %{{.*}}: tensor<2xf64>, %{{.*}}: tensor<3x2xf64>, %{{.*}}: tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2xf64>)
//  CHECK-SAME: wg.arguments = array<i64: 0, 1>
//       CHECK: %[[C:.*]]:2 = wg.call @rule_lanes_0_2_3(
//       CHECK: %[[S:.*]] = wg.reduce_sum %[[C]]#1 axes [0]
//       CHECK: return %[[C]]#0, %[[S]]
// CHECK-LABEL: func.func private @rule_lanes_0_2_3(
//       CHECK: wg.call @scaled_lanes_0(
// CHECK-LABEL: func.func @main_vmap(
//       CHECK: wg.call @scaled_lanes_0(
// GRAD-LABEL: func.func @lanes_grad(
//       GRAD: wg.call @scaled_lanes_0(
//       GRAD: %[[D:.*]]:2 = wg.call @scaled_lanes_0_vjp(
//       GRAD: return %[[D]]#0, %[[D]]#1
module {
  func.func private @scaled(%x: tensor<2xf64>, %w: tensor<2xf64>) -> tensor<2xf64> attributes {wg.vjp = @rule} {
    %y = wg.mul %x, %w : tensor<2xf64>
    return %y : tensor<2xf64>
  }
  func.func private @rule(%x: tensor<2xf64>, %w: tensor<2xf64>, %y: tensor<2xf64>, %ct: tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>) attributes {wg.arguments = array<i64: 0, 1>} {
    %dx = wg.mul %ct, %w : tensor<2xf64>
    %again = wg.call @scaled(%x, %w) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
    %dw = wg.mul %ct, %again : tensor<2xf64>
    return %dx, %dw : tensor<2xf64>, tensor<2xf64>
  }
  func.func @main(%x: tensor<2xf64>, %w: tensor<2xf64>) -> tensor<2xf64> {
    %y = wg.call @scaled(%x, %w) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
    return %y : tensor<2xf64>
  }
}

// -----

module {
  // expected-error @+2 {{names @rule as its derivative, which has no body here and so cannot be batched}}
  // expected-note @+1 {{try: call it outside of the batch}}
  func.func private @hooked(%x: tensor<2xf64>) -> tensor<2xf64> attributes {wg.vjp = @rule} {
    return %x : tensor<2xf64>
  }
  func.func private @rule(tensor<2xf64>, tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
    %y = wg.call @hooked(%x) : (tensor<2xf64>) -> tensor<2xf64>
    return %y : tensor<2xf64>
  }
}

// -----

module {
  func.func private @hooked(%x: tensor<2xf64>) -> tensor<2xf64> attributes {wg.vjp = @rule} {
    return %x : tensor<2xf64>
  }
  // expected-error @+1 {{is the derivative of @hooked, and takes its operands, its results and their cotangents}}
  func.func private @rule(%x: tensor<2xf64>, %ct: tensor<2xf64>) -> tensor<2xf64> attributes {wg.arguments = array<i64: 0>} {
    return %ct : tensor<2xf64>
  }
  func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
    %y = wg.call @hooked(%x) : (tensor<2xf64>) -> tensor<2xf64>
    return %y : tensor<2xf64>
  }
}
