// RUN: wengert-opt %s --wg-fuse --canonicalize --wg-lower | FileCheck %s

// Of two readers of one list of indices the first checks them. Where that one goes before loops are written, the other does.
// CHECK: func.func private @f_k0_single({{.*}}) -> i32
// CHECK: wg.errors = ["gather: index {} at position {} is out of range for an axis of size 6"]
func.func @f(%t: tensor<6x2xf32>, %u: tensor<6x2xf32>, %i: tensor<3xi64>) -> tensor<3x2xf32> {
  %0 = wg.kernel single (%a = %t : tensor<6x2xf32>, %b = %i : tensor<3xi64>) -> tensor<3x2xf32> {
    %g = wg.gather %a, %b : tensor<6x2xf32>, tensor<3xi64> -> tensor<3x2xf32>
    wg.yield %g : tensor<3x2xf32>
  }
  %1 = wg.kernel single (%a = %u : tensor<6x2xf32>, %b = %i : tensor<3xi64>) -> tensor<3x2xf32> {
    %g = wg.gather %a, %b : tensor<6x2xf32>, tensor<3xi64> -> tensor<3x2xf32>
    wg.yield %g : tensor<3x2xf32>
  }
  return %1 : tensor<3x2xf32>
}
