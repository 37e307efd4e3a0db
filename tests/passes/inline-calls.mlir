// RUN: wengert-opt %s --wg-inline-calls | FileCheck %s
// RUN: wengert-opt %s --wg-inline-calls=function=other | FileCheck %s --check-prefix=OTHER
// RUN: not wengert-opt %s --wg-lower=function=nobody 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not wengert-opt %s --wg-lower=function=other 2>&1 | FileCheck %s --check-prefix=EARLY

// NOBODY: wg-lower: no function @nobody in the module
// EARLY: 'wg.call' op is outside of a kernel: run wg-fuse first

func.func private @square(%a: tensor<3xf64>) -> tensor<3xf64> {
  %s = wg.mul %a, %a : tensor<3xf64>
  return %s : tensor<3xf64>
}

// The calls of a body are inlined too.
func.func private @fourth(%a: tensor<3xf64>) -> tensor<3xf64> {
  %s = wg.call @square(%a) : (tensor<3xf64>) -> tensor<3xf64>
  %t = wg.call @square(%s) : (tensor<3xf64>) -> tensor<3xf64>
  return %t : tensor<3xf64>
}

// CHECK-LABEL: func.func @f
// CHECK-NEXT: %[[S:.*]] = wg.mul %[[X:.*]], %[[X]]
// CHECK-NEXT: %[[T:.*]] = wg.mul %[[S]], %[[S]]
// CHECK-NEXT: return %[[T]]
// OTHER-LABEL: func.func @f
// OTHER: wg.call @fourth
func.func @f(%x: tensor<3xf64>) -> tensor<3xf64> {
  %y = wg.call @fourth(%x) : (tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

// OTHER-LABEL: func.func @other
// OTHER-NEXT: wg.mul
// OTHER-NEXT: return
func.func @other(%x: tensor<3xf64>) -> tensor<3xf64> {
  %y = wg.call @square(%x) : (tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}
