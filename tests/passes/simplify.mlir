// RUN: wengert-opt %s --wg-simplify | FileCheck %s

// d mean(x * w) / dw as the rules write it: the seed, its division and its sizes are gone, equal products are one.
// CHECK-LABEL: func @gradient_of_a_mean
//  CHECK-SAME:   (%[[X:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4xf32>)
func.func @gradient_of_a_mean(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[QUARTER:.*]] = wg.constant dense<2.500000e-01> : tensor<4xf32>
  // CHECK-NEXT: %[[DW:.*]] = wg.mul %[[QUARTER]], %[[X]] : tensor<4xf32>
  // CHECK-NEXT: return %[[DW]], %[[DW]]
  %seed = wg.constant dense<1.0> : tensor<f32>
  %count = wg.constant dense<4.0> : tensor<f32>
  %ct = wg.div %seed, %count : tensor<f32>
  %repeated = wg.broadcast %ct to [4] dims [] : tensor<f32> -> tensor<4xf32>
  %dw = wg.mul %repeated, %x : tensor<4xf32>
  %dx = wg.mul %repeated, %w : tensor<4xf32>
  %again = wg.broadcast %ct to [4] dims [] : tensor<f32> -> tensor<4xf32>
  %same = wg.mul %again, %x : tensor<4xf32>
  return %dw, %same : tensor<4xf32>, tensor<4xf32>
}

// A kernel of text is opened, and its reduction folds.
// CHECK-LABEL: func @kernel_of_constants
func.func @kernel_of_constants(%x: tensor<f32>) -> tensor<f32> {
  // CHECK-NEXT: %[[SUM:.*]] = wg.constant dense<8.000000e+00> : tensor<f32>
  // CHECK-NEXT: %[[Y:.*]] = wg.add %arg0, %[[SUM]]
  // CHECK-NEXT: return %[[Y]]
  %0 = wg.kernel reduce () -> tensor<f32> {
    %1 = wg.constant dense<4.0> : tensor<2xf32>
    %2 = wg.reduce_sum %1 axes [0] : tensor<2xf32> -> tensor<f32>
    wg.yield %2 : tensor<f32>
  }
  %1 = wg.kernel map (%a = %x : tensor<f32>, %b = %0 : tensor<f32>) -> tensor<f32> {
    %2 = wg.add %a, %b : tensor<f32>
    wg.yield %2 : tensor<f32>
  }
  return %1 : tensor<f32>
}

// What stopped a gradient, or led it to a variable, is the value itself.
// CHECK-LABEL: func @assigned
//  CHECK-SAME:   (%[[V:.*]]: tensor<2xf32>, %[[X:.*]]: tensor<2xf32>)
func.func @assigned(%v: tensor<2xf32>, %x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: %[[Y:.*]] = wg.tanh %[[X]]
  // CHECK-NEXT: return %[[Y]]
  %0 = wg.stop_gradient %x : tensor<2xf32>
  %1 = wg.version %0, %v : tensor<2xf32>
  %2 = wg.tanh %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
