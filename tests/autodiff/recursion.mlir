// RUN: wengert-opt %s --split-input-file --verify-diagnostics --wg-grad="function=main"
// RUN: wengert-opt %s --split-input-file --verify-diagnostics --wg-infer-shapes="function=main"

// A function that calls itself, with sizes that grow.
module {
  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    %d = wg.concat %x, %x axis 0 : tensor<?xf32>, tensor<?xf32> -> tensor<?xf32>
    // expected-error @+2 {{calls @main, which calls it: a function cannot call itself}}
    // expected-note @+1 {{try: write the recursion out, one function for each depth}}
    %y = wg.call @main(%d) : (tensor<?xf32>) -> tensor<?xf32>
    return %y : tensor<?xf32>
  }
}

// -----

// Functions that call each other, below the one that is asked for.
module {
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %y = wg.call @one(%x) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
  func.func @one(%x: tensor<f32>) -> tensor<f32> {
    %t = wg.tanh %x : tensor<f32>
    %y = wg.call @other(%t) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
  func.func @other(%x: tensor<f32>) -> tensor<f32> {
    // expected-error @+2 {{calls @one, which calls it: a function cannot call itself}}
    // expected-note @+1 {{try: write the recursion out}}
    %y = wg.call @one(%x) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

// Beside the path of the gradient too: such a program cannot be run.
module {
  func.func @main(%x: tensor<f32>, %n: tensor<i64>) -> (tensor<f32>, tensor<i64>) {
    %y, %m = wg.call @both(%x, %n) : (tensor<f32>, tensor<i64>) -> (tensor<f32>, tensor<i64>)
    return %y, %m : tensor<f32>, tensor<i64>
  }
  func.func @both(%x: tensor<f32>, %n: tensor<i64>) -> (tensor<f32>, tensor<i64>) {
    %y = wg.tanh %x : tensor<f32>
    %m = wg.call @count(%n) : (tensor<i64>) -> tensor<i64>
    return %y, %m : tensor<f32>, tensor<i64>
  }
  func.func @count(%n: tensor<i64>) -> tensor<i64> {
    // expected-error @+2 {{calls @count, which calls it: a function cannot call itself}}
    // expected-note @+1 {{try: write the recursion out}}
    %m = wg.call @count(%n) : (tensor<i64>) -> tensor<i64>
    return %m : tensor<i64>
  }
}
