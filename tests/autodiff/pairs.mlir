// RUN: wengert-opt %s --split-input-file --wg-grad="function=main values=true" | FileCheck %s

// The derivative of a function hangs on it. What else is called by its names is something else.
// CHECK-LABEL: func.func @layer(
//  CHECK-SAME: wg.pairs = [{arguments = array<i64: 0>, backward = @[[B:layer_by_0_of_0_backward_[0-9]+]], forward = @[[F:layer_by_0_of_0_forward_[0-9]+]], reasons = [""], residuals = array<i64: -1>, results = array<i64: 0>, returned = array<i1: true>}]
//       CHECK: func.func private @[[F]]
//       CHECK: func.func private @[[B]]
// CHECK-LABEL: func.func @main_grad(
//       CHECK: %[[Y:.*]]:2 = wg.call @[[F]](%arg0)
//       CHECK: wg.call @layer_by_0_of_0_forward_by_0_of_0_forward(%[[Y]]#0)
//       CHECK: wg.call @[[B]](%[[Y]]#1
module {
  func.func @layer(%x: tensor<2xf64>) -> tensor<2xf64> {
    %y = wg.tanh %x : tensor<2xf64>
    return %y : tensor<2xf64>
  }
  func.func private @layer_by_0_of_0_forward(%x: tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>) {
    %y = wg.stop_gradient %x : tensor<2xf64>
    return %y, %y : tensor<2xf64>, tensor<2xf64>
  }
  func.func private @layer_by_0_of_0_backward(%y: tensor<2xf64>, %ct: tensor<2xf64>) -> tensor<2xf64> {
    return %ct : tensor<2xf64>
  }
  func.func @main(%x: tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>) {
    %y = wg.call @layer(%x) : (tensor<2xf64>) -> tensor<2xf64>
    %z:2 = wg.call @layer_by_0_of_0_forward(%y) : (tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>)
    return %y, %z#0 : tensor<2xf64>, tensor<2xf64>
  }
}

// -----

// A pair that fits is taken.
// CHECK-LABEL: func.func @twice(
// CHECK-LABEL: func.func @main_grad(
//       CHECK: wg.call @ahead(
//       CHECK: wg.call @back(
module {
  func.func @twice(%x: tensor<2xf64>) -> tensor<2xf64> attributes {wg.pairs = [
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @ahead, backward = @back, residuals = array<i64>, returned = array<i1: true>, reasons = [""]}]} {
    %y = wg.add %x, %x : tensor<2xf64>
    return %y : tensor<2xf64>
  }
  func.func private @ahead(%x: tensor<2xf64>) -> tensor<2xf64> {
    %y = wg.add %x, %x : tensor<2xf64>
    return %y : tensor<2xf64>
  }
  func.func private @back(%ct: tensor<2xf64>) -> tensor<2xf64> {
    %y = wg.add %ct, %ct : tensor<2xf64>
    return %y : tensor<2xf64>
  }
  func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
    %y = wg.call @twice(%x) : (tensor<2xf64>) -> tensor<2xf64>
    return %y : tensor<2xf64>
  }
}

// -----

// One that does not fit is made anew: other types, symbols that are missing or no functions, places that are not there, attributes of other
// kinds.
// CHECK-LABEL: func.func @twice(
//  CHECK-SAME: wg.pairs = [{arguments = 7 : i64}, {arguments = array<i64: 0>, backward = @twice_by_0_of_0_backward, forward = @twice_by_0_of_0_forward, reasons = [""], residuals = array<i64>, results = array<i64: 0>, returned = array<i1: true>}]
// CHECK-LABEL: func.func @main_grad(
//       CHECK: wg.call @twice_by_0_of_0_forward(
//       CHECK: wg.call @twice_by_0_of_0_backward(
module {
  func.func @twice(%x: tensor<2xf64>) -> tensor<2xf64> attributes {wg.pairs = [
    1, {arguments = 7},
    {arguments = array<i64: 0>, results = array<i64: 0>},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = "ahead", backward = @back, residuals = array<i64>, returned = array<i1: true>, reasons = [""]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @missing, backward = @back, residuals = array<i64>, returned = array<i1: true>, reasons = [""]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @declared, backward = @back, residuals = array<i64>, returned = array<i1: true>, reasons = [""]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @narrow, backward = @back, residuals = array<i64>, returned = array<i1: true>, reasons = [""]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @ahead, backward = @narrow, residuals = array<i64>, returned = array<i1: true>, reasons = [""]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @ahead, backward = @back, residuals = array<i64: 1>, returned = array<i1: true>, reasons = [""]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @ahead, backward = @back, residuals = array<i64: -1>, returned = array<i1: true>, reasons = [""]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @ahead, backward = @back, residuals = array<i64: -9223372036854775808>, returned = array<i1: true>, reasons = [""]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @ahead, backward = @back, residuals = array<i64: 9223372036854775807>, returned = array<i1: true>, reasons = [""]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @ahead, backward = @back, residuals = array<i64>, returned = array<i1: false>, reasons = [""]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @ahead, backward = @back, residuals = array<i64>, returned = array<i1>, reasons = []},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @ahead, backward = @back, residuals = array<i64>, returned = array<i1: true>, reasons = [1]},
    {arguments = array<i64: 0>, results = array<i64: 0>, forward = @ahead, backward = @back, residuals = array<i64>, returned = array<i1: true>, reasons = []}]} {
    %y = wg.add %x, %x : tensor<2xf64>
    return %y : tensor<2xf64>
  }
  func.func private @declared(tensor<2xf64>) -> tensor<2xf64>
  func.func private @narrow(%x: tensor<1xf64>) -> tensor<1xf64> {
    return %x : tensor<1xf64>
  }
  func.func private @ahead(%x: tensor<2xf64>) -> tensor<2xf64> {
    return %x : tensor<2xf64>
  }
  func.func private @back(%ct: tensor<2xf64>) -> tensor<2xf64> {
    return %ct : tensor<2xf64>
  }
  func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
    %y = wg.call @twice(%x) : (tensor<2xf64>) -> tensor<2xf64>
    return %y : tensor<2xf64>
  }
}

// -----

// No list at all.
// CHECK-LABEL: func.func @twice(
//  CHECK-SAME: wg.pairs = [{arguments
module {
  func.func @twice(%x: tensor<2xf64>) -> tensor<2xf64> attributes {wg.pairs = @twice} {
    %y = wg.add %x, %x : tensor<2xf64>
    return %y : tensor<2xf64>
  }
  func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
    %y = wg.call @twice(%x) : (tensor<2xf64>) -> tensor<2xf64>
    return %y : tensor<2xf64>
  }
}
