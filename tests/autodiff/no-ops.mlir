// RUN: wengert-opt %s --wg-grad | FileCheck %s
// The gradient's ops are of dialects that the text does not mention.

// CHECK-LABEL: func.func @main_grad
//       CHECK: wg.constant dense<1.000000e+00> : tensor<3xf32>
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}
