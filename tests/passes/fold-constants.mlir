// RUN: wengert-opt %s --wg-fold-constants --wg-drop-dead-gradients | FileCheck %s

// CHECK-LABEL: func @small_constants_are_evaluated
func.func @small_constants_are_evaluated() -> tensor<2xf32> {
  // CHECK-NEXT: %[[Y:.*]] = wg.constant dense<[3.000000e+00, 6.000000e+00]> : tensor<2xf32>
  // CHECK-NEXT: return %[[Y]]
  %a = wg.constant dense<[1.0, 4.0]> : tensor<2xf32>
  %b = wg.sqrt %a : tensor<2xf32>
  %three = wg.constant dense<3.0> : tensor<2xf32>
  %y = wg.mul %b, %three : tensor<2xf32>
  return %y : tensor<2xf32>
}

// CHECK-LABEL: func @splat_stays_splat
func.func @splat_stays_splat() -> tensor<1000x1000xi1> {
  // CHECK-NEXT: wg.constant dense<true> : tensor<1000x1000xi1>
  %a = wg.constant dense<4.0> : tensor<1000x1000xf32>
  %b = wg.constant dense<5.0> : tensor<1000x1000xf32>
  %y = wg.less %a, %b : tensor<1000x1000xf32>
  return %y : tensor<1000x1000xi1>
}

// Not elementwise, and large: left alone.
// CHECK-LABEL: func @large_reduction_stays
func.func @large_reduction_stays() -> tensor<f32> {
  %a = wg.constant dense<4.0> : tensor<1000xf32>
  // CHECK: wg.reduce_sum
  %y = wg.reduce_sum %a axes [0] : tensor<1000xf32> -> tensor<f32>
  return %y : tensor<f32>
}

// CHECK-LABEL: func @reductions_and_products_of_small_constants
func.func @reductions_and_products_of_small_constants() -> (tensor<f64>, tensor<2x2xf64>) {
  // CHECK-DAG: wg.constant dense<1.000000e+01> : tensor<f64>
  // CHECK-DAG{LITERAL}: wg.constant dense<[[7.000000e+00, 1.000000e+01], [1.500000e+01, 2.200000e+01]]> : tensor<2x2xf64>
  %a = wg.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64>
  %s = wg.reduce_sum %a axes [0, 1] : tensor<2x2xf64> -> tensor<f64>
  %p = wg.contract "mk,kn->mn" %a, %a : tensor<2x2xf64>, tensor<2x2xf64> -> tensor<2x2xf64>
  return %s, %p : tensor<f64>, tensor<2x2xf64>
}

// An index out of range fails when the program runs, at its place.
// CHECK-LABEL: func @failing_op_stays
func.func @failing_op_stays() -> tensor<1xf32> {
  %x = wg.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %i = wg.constant dense<5> : tensor<1xi64>
  // CHECK: wg.gather
  %y = wg.gather %x, %i : tensor<2xf32>, tensor<1xi64> -> tensor<1xf32>
  return %y : tensor<1xf32>
}

// What a kernel's kind says stays in it.
// CHECK-LABEL: func @kernels_stay
func.func @kernels_stay() -> tensor<f32> {
  // CHECK: wg.reduce_sum
  %0 = wg.kernel reduce () -> tensor<f32> {
    %1 = wg.constant dense<4.0> : tensor<2xf32>
    %2 = wg.reduce_sum %1 axes [0] : tensor<2xf32> -> tensor<f32>
    wg.yield %2 : tensor<f32>
  }
  return %0 : tensor<f32>
}
