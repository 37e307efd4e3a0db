// RUN: wengert-opt %s --wg-fuse --wg-lower --split-input-file | FileCheck %s

// A loop of small turns is one function, whose state is in registers; rows are read and written where they lie.
// CHECK-LABEL: func.func private @recurrence_turns0
// CHECK: scf.for {{.*}} iter_args
// CHECK-NOT: call @
// CHECK: math.tanh
// CHECK: scf.yield
// CHECK-LABEL: func.func @recurrence(
// CHECK: call @recurrence_turns0
func.func @recurrence(%h: tensor<3xf32>, %x: tensor<9x3xf32>) -> (tensor<3xf32>, tensor<9x3xf32>) {
  %0:2 = wg.loop [@cell](%h, %x) {carried = 1 : i64, scanned = 1 : i64, length = 9 : i64} : (tensor<3xf32>, tensor<9x3xf32>) -> (tensor<3xf32>, tensor<9x3xf32>)
  return %0#0, %0#1 : tensor<3xf32>, tensor<9x3xf32>
}
func.func private @cell(%h: tensor<3xf32>, %x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = wg.add %h, %x : tensor<3xf32>
  %1 = wg.tanh %0 : tensor<3xf32>
  return %1, %1 : tensor<3xf32>, tensor<3xf32>
}

// -----

// A state that is read in other places than its own lies in memory: the body is a function.
// CHECK-LABEL: func.func @across(
// CHECK: call @across_b0_entry
func.func @across(%h: tensor<3x3xf32>, %x: tensor<9x3x3xf32>) -> tensor<3x3xf32> {
  %0 = wg.loop [@cell](%h, %x) {carried = 1 : i64, scanned = 1 : i64, length = 9 : i64} : (tensor<3x3xf32>, tensor<9x3x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}
func.func private @cell(%h: tensor<3x3xf32>, %x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = wg.transpose %h by [1, 0] : tensor<3x3xf32> -> tensor<3x3xf32>
  %1 = wg.add %0, %x : tensor<3x3xf32>
  return %1 : tensor<3x3xf32>
}
