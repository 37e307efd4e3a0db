// RUN: wengert-opt %s --wg-grad="function=layer wrt=1" | FileCheck %s --check-prefix=LAYER
// RUN: wengert-opt %s --wg-grad="function=beside" | FileCheck %s --check-prefix=BESIDE
// RUN: wengert-opt %s --wg-grad="function=stopped" 2>&1 | FileCheck %s --check-prefix=STOPPED

// The gradient of a first layer's input is not requested.
// LAYER-LABEL: func.func @layer_grad
//  LAYER-SAME: wg.certificate = ["contract operand 0 {{.*}}: not requested"]
func.func @layer(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %y = wg.contract "mk,kn->mn" %x, %w : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// What is computed beside the loss has no path to it. The second result is no float, so it is no target.
// BESIDE-LABEL: func.func @beside_grad
//  BESIDE-SAME: wg.certificate = ["sin operand 0 {{.*}}: no path to the loss"]
func.func @beside(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<i64>) {
  %y = wg.exp %x : tensor<2xf32>
  %s = wg.sin %x : tensor<2xf32>
  %p = wg.argmax %s axis 0 : tensor<2xf32> -> tensor<i64>
  return %y, %p : tensor<2xf32>, tensor<i64>
}

// STOPPED: remark: the gradient by argument 1 is zeros: blocked: 'stop_gradient' (certificate.mlir:{{[0-9]+}}) stops the gradient
// STOPPED-LABEL: func.func @stopped_grad
//  STOPPED-SAME: "sin operand 0 {{.*}}: behind stop_gradient"
func.func @stopped(%x: tensor<2xf32>, %z: tensor<2xf32>) -> tensor<2xf32> {
  %a = wg.sin %z : tensor<2xf32>
  %s = wg.stop_gradient %a : tensor<2xf32>
  %y = wg.mul %x, %s : tensor<2xf32>
  return %y : tensor<2xf32>
}
