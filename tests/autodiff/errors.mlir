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

// -----

module {
  // expected-error @+1 {{has as wg.vjp 3 : i64, which names no function}}
  func.func private @named(tensor<f32>) -> tensor<f32> attributes {wg.vjp = 3}
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %y = wg.call @named(%x) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  func.func private @named(tensor<f32>) -> tensor<f32> attributes {wg.vjp = @missing}
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    // expected-error @+1 {{names @missing as derivative, which is not a function of this module}}
    %y = wg.call @named(%x) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  // expected-error @+1 {{is the derivative of @named, and takes its operands, its results and their cotangents}}
  func.func private @other(tensor<f32>) -> tensor<f32> attributes {wg.arguments = array<i64: 0>}
  func.func private @named(tensor<f32>) -> tensor<f32> attributes {wg.vjp = @other}
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %y = wg.call @named(%x) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  // expected-error @+1 {{as the cotangent of operand -1 of @named, which has none of that type}}
  func.func private @other(tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32> attributes {wg.arguments = array<i64: -1>}
  func.func private @named(tensor<f32>) -> tensor<f32> attributes {wg.vjp = @other}
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %y = wg.call @named(%x) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  func.func private @other(tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32> attributes {wg.arguments = array<i64: 0>}
  // expected-error @+1 {{has 1 results, but wg.results is 2}}
  func.func private @named(tensor<f32>) -> tensor<f32> attributes {wg.vjp = @other, wg.results = 2}
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %y = wg.call @named(%x) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  func.func private @several(%x: tensor<f32>) -> tensor<f32> {
    cf.br ^next
  ^next:
    return %x : tensor<f32>
  }
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    // expected-error @+1 {{calls @several, which has several blocks; a program is one block of wg ops}}
    %y = wg.call @several(%x) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

// Types that no op reads are looked at too.
module {
  // expected-error @+1 {{argument 1 of @main is 'tensor<4611686018427387905x4xf32>': f32[4611686018427387905,4] has more than 2^56 bytes}}
  func.func @main(%x: tensor<f32>, %y: tensor<4611686018427387905x4xf32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}

// -----

// The name is taken, wherever the function of that name is.
module {
  // expected-error @+1 {{there is a function @main_grad already}}
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
  func.func @main_grad(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}

// -----

// A gradient keeps what a turn multiplies, for each turn: more bytes than a tensor can have.
func.func private @turn(%h: tensor<4294967295x70xf32>, %w: tensor<70xf32>) -> tensor<4294967295x70xf32> {
  %0 = wg.broadcast %w to [4294967295, 70] dims [1] : tensor<70xf32> -> tensor<4294967295x70xf32>
  %1 = wg.mul %h, %0 : tensor<4294967295x70xf32>
  return %1 : tensor<4294967295x70xf32>
}
func.func @main(%h: tensor<4294967295x70xf32>, %w: tensor<70xf32>) -> tensor<f32> {
  // expected-error@+1 {{keeps a tensor of each turn, and stacked f32[4294967295,4294967295,70] has more than 2^56 bytes}}
  %0 = wg.loop [@turn](%h, %w) {carried = 1 : i64, length = 4294967295 : i64} : (tensor<4294967295x70xf32>, tensor<70xf32>) -> tensor<4294967295x70xf32>
  %1 = wg.reduce_sum %0 axes [0, 1] : tensor<4294967295x70xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// A gradient keeps what a turn multiplies, for each turn: one axis more.
func.func private @turn(%h: tensor<1x1x1x1x1x1x1x8xf64>, %x: tensor<1x1x1x1x1x1x1x8xf64>) -> tensor<1x1x1x1x1x1x1x8xf64> {
  %0 = wg.mul %h, %x : tensor<1x1x1x1x1x1x1x8xf64>
  %1 = wg.mul %0, %h : tensor<1x1x1x1x1x1x1x8xf64>
  return %1 : tensor<1x1x1x1x1x1x1x8xf64>
}
func.func @main(%h: tensor<1x1x1x1x1x1x1x8xf64>, %x: tensor<1x1x1x1x1x1x1x8xf64>) -> tensor<f64> {
  // expected-error@+1 {{keeps a tensor of 8 axes of each turn: stacked, it would have one more than tensors can have}}
  %0 = wg.loop [@turn](%h, %x) {carried = 1 : i64, length = 3 : i64} : (tensor<1x1x1x1x1x1x1x8xf64>, tensor<1x1x1x1x1x1x1x8xf64>) -> tensor<1x1x1x1x1x1x1x8xf64>
  %1 = wg.reduce_sum %0 axes [0, 1, 2, 3, 4, 5, 6, 7] : tensor<1x1x1x1x1x1x1x8xf64> -> tensor<f64>
  return %1 : tensor<f64>
}
