// RUN: not wengert-opt %s --wg-fuse --wg-lower 2>&1 | FileCheck %s

// CHECK: 'wg.triangular_solve' op calls the routine 'wg_triangular_solve_f32', and the program has another function of its name
func.func @wg_triangular_solve_f32(%a: tensor<2x2xf32>, %b: tensor<2x1xf32>) -> tensor<2x1xf32> {
  %x = wg.triangular_solve %a, %b : tensor<2x2xf32>, tensor<2x1xf32> -> tensor<2x1xf32>
  return %x : tensor<2x1xf32>
}
