// RUN: wengert-opt %s --split-input-file --verify-diagnostics --wg-jvp="wrt=0 values=true" | FileCheck %s

// Forward mode through a call: the callee split into a forward function with residuals and a linear one. A linear op moves as
// its operands do, with zeros for those that stay.
// CHECK-LABEL: func.func @layer(
//  CHECK-SAME: residuals = array<i64: 1, -1>, results = array<i64: 0, 1>, returned = array<i1: true, false>, tangent = @layer_by_0_of_0_1_tangent}]
// CHECK-LABEL: func.func private @layer_by_0_of_0_1_linearized(
//       CHECK: return %1, %2, %1
// CHECK-LABEL: func.func private @layer_by_0_of_0_1_tangent(%arg0: tensor<2xf64>, %arg1: tensor<2xf64>, %arg2: tensor<2xf64>) -> tensor<2xf64>
//       CHECK: %[[P:.*]] = wg.mul %arg2, %arg0
//       CHECK: %[[S:.*]] = wg.sub
//       CHECK: wg.mul %[[P]], %[[S]]
// CHECK-LABEL: func.func @main_jvp(
//  CHECK-SAME: %[[X:.*]]: tensor<2xf64>, %[[W:.*]]: tensor<2xf64>, %{{.*}}: tensor<2xi64>, %[[DX:.*]]: tensor<2xf64>)
//       CHECK: %[[Y:.*]]:3 = wg.call @layer_by_0_of_0_1_linearized(%[[X]], %[[W]])
//       CHECK: %[[DY:.*]] = wg.call @layer_by_0_of_0_1_tangent(%[[W]], %[[Y]]#2, %[[DX]])
//       CHECK: %[[ZERO:.*]] = wg.constant dense<0.000000e+00> : tensor<2xf64>
//       CHECK: %[[DC:.*]] = wg.concat %[[DY]], %[[ZERO]]
//       CHECK: return %{{.*}}, %[[Y]]#1, %{{.*}}, %[[DC]], %{{.*}}
module {
  func.func @layer(%x: tensor<2xf64>, %w: tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>) {
    %p = wg.mul %x, %w : tensor<2xf64>
    %y = wg.tanh %p : tensor<2xf64>
    %s = wg.stop_gradient %y : tensor<2xf64>
    return %y, %s : tensor<2xf64>, tensor<2xf64>
  }
  // expected-remark @+1 {{the tangent of result 1 is zeros: blocked: 'stop_gradient' (}}
  func.func @main(%x: tensor<2xf64>, %w: tensor<2xf64>, %n: tensor<2xi64>) -> (tensor<4xf64>, tensor<2xf64>, tensor<2xi64>) {
    %y:2 = wg.call @layer(%x, %w) : (tensor<2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>)
    %c = wg.concat %y#0, %w axis 0 : tensor<2xf64>, tensor<2xf64> -> tensor<4xf64>
    return %c, %y#1, %n : tensor<4xf64>, tensor<2xf64>, tensor<2xi64>
  }
}

// -----

// A bilinear op moves by each operand; any other by the transpose of its vjp: nothing is left of the cotangent that stood in.
// CHECK-LABEL: func.func @main_jvp(
//  CHECK-SAME: %[[X:.*]]: tensor<3x3xf64>, %[[DX:.*]]: tensor<3x3xf64>)
//       CHECK: %[[M:.*]] = wg.reduce_max %[[C:.*]] axes [1]
//       CHECK: %[[A:.*]] = wg.contract "ab,bc->ac" %[[DX]], %[[X]]
//       CHECK: %[[B:.*]] = wg.contract "ab,bc->ac" %[[X]], %[[DX]]
//       CHECK: %[[DC:.*]] = wg.add %[[A]], %[[B]]
//       CHECK: %[[TIED:.*]] = wg.equal %[[C]],
//       CHECK: %[[N:.*]] = wg.reduce_sum
//       CHECK: %[[TAKEN:.*]] = wg.select %[[TIED]], %[[DC]],
//       CHECK: %[[SUM:.*]] = wg.reduce_sum %[[TAKEN]] axes [1]
//       CHECK: %[[DM:.*]] = wg.div %[[SUM]], %[[N]]
//  CHECK-NEXT: return %[[M]], %[[DM]]
module {
  func.func @main(%x: tensor<3x3xf64>) -> tensor<3xf64> {
    %c = wg.contract "ab,bc->ac" %x, %x : tensor<3x3xf64>, tensor<3x3xf64> -> tensor<3x3xf64>
    %m = wg.reduce_max %c axes [1] : tensor<3x3xf64> -> tensor<3xf64>
    return %m : tensor<3xf64>
  }
}

// -----

// Sizes `?`: a tangent has the type of its value.
// CHECK-LABEL: func.func @main_jvp(
//  CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[DX:.*]]: tensor<?xf32>) -> (tensor<f32>, tensor<f32>)
//       CHECK: wg.slice %[[DX]]
module {
  func.func @main(%x: tensor<?xf32>) -> tensor<f32> {
    %n = wg.dim %x axis 0 : tensor<?xf32>
    %s = wg.slice %x from [1] to [?] by [2] sizes %n : tensor<?xf32> -> tensor<?xf32>
    %y = wg.reduce_sum %s axes [0] : tensor<?xf32> -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  // expected-error @+1 {{wrt names argument 0, which is 'tensor<2xi64>'; only floats have tangents}}
  func.func @main(%n: tensor<2xi64>) -> tensor<2xi64> {
    return %n : tensor<2xi64>
  }
}

// -----

module {
  func.func private @hooked(%x: tensor<2xf64>) -> tensor<2xf64> attributes {wg.vjp = @hook} {
    return %x : tensor<2xf64>
  }
  func.func private @hook(%x: tensor<2xf64>, %y: tensor<2xf64>, %ct: tensor<2xf64>) -> tensor<2xf64> attributes {wg.arguments = array<i64: 0>} {
    return %ct : tensor<2xf64>
  }
  func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
    // expected-error @+2 {{calls @hooked, which names its derivative for reverse mode and none for forward mode}}
    // expected-note @+1 {{try: reverse mode (vjp, gradient)}}
    %y = wg.call @hooked(%x) : (tensor<2xf64>) -> tensor<2xf64>
    return %y : tensor<2xf64>
  }
}
