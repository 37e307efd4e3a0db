// RUN: wengert-opt %s --split-input-file --verify-diagnostics --wg-grad="function=main"

// expected-error @+1 {{there is no function @main to differentiate}}
module {
  func.func @other(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}

// -----

module {
  func.func private @outside(tensor<f32>) -> tensor<f32>
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    // expected-error @+1 {{calls @outside, which has no body and so no derivative}}
    %y = wg.call @outside(%x) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    // expected-error @+1 {{is on the path from a source to the target and has no derivative rule}}
    %y = wg.kernel map (%a = %x : tensor<f32>) -> tensor<f32> {
      %t = wg.tanh %a : tensor<f32>
      wg.yield %t : tensor<f32>
    }
    return %y : tensor<f32>
  }
}

// -----

module {
  // expected-remark @+1 {{the gradient by argument 0 is zeros: no path: the target does not depend on the source}}
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %y = wg.constant dense<1.0> : tensor<f32>
    return %y : tensor<f32>
  }
}
