// RUN: wengert-opt %s --wg-hoist-invariants --split-input-file | FileCheck %s

// What a turn computes of an invariant is computed before the loop; an invariant that nobody reads any more is none.
// CHECK-LABEL: func.func @weights
// CHECK-SAME: (%[[H:.*]]: tensor<8x8xf32>, %[[W:.*]]: tensor<8x8xf32>)
// CHECK-NEXT: %[[E:.*]] = wg.exp %[[W]]
// CHECK-NEXT: wg.loop [@turn](%[[H]], %[[E]]) {
func.func @weights(%h: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = wg.loop [@turn](%h, %w) {carried = 1 : i64, length = 9 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func private @turn
// CHECK-SAME: (%[[C:.*]]: tensor<8x8xf32>, %[[HELD:.*]]: tensor<8x8xf32>)
// CHECK-NEXT: wg.mul %[[C]], %[[HELD]]
// CHECK-NEXT: return
func.func private @turn(%h: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = wg.exp %w : tensor<8x8xf32>
  %y = wg.mul %h, %e : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// A transpose that a product reads in memory moves; a sum of a few operations, a splat and a view stay with their
// readers.
// CHECK-LABEL: func.func @products
// CHECK-SAME: (%[[H:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[T:.*]] = wg.transpose %[[W]]
// CHECK-NEXT: wg.loop [@turn](%[[H]], %[[B]], %[[T]]) {
func.func @products(%h: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = wg.loop [@turn](%h, %w, %b) {carried = 1 : i64, length = 9 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
// CHECK-LABEL: func.func private @turn
// CHECK-NEXT: wg.constant
// CHECK-NEXT: wg.add
// CHECK-NEXT: wg.broadcast
// CHECK-NEXT: wg.contract
// CHECK-NEXT: wg.add
// CHECK-NEXT: return
func.func private @turn(%h: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %one = wg.constant dense<1.0> : tensor<8xf32>
  %c = wg.add %b, %one : tensor<8xf32>
  %r = wg.broadcast %c to [4, 8] dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %t = wg.transpose %w by [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
  %p = wg.contract "mk,kn->mn" %h, %t : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %y = wg.add %p, %r : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// From the inner loop to the outer one, and from there to the function.
// CHECK-LABEL: func.func @nested
// CHECK: wg.tanh
// CHECK: wg.loop [@outer]
func.func @nested(%h: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  %0 = wg.loop [@outer](%h, %w) {carried = 1 : i64, length = 5 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @outer
// CHECK-NEXT: wg.loop [@inner]
func.func private @outer(%h: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  %0 = wg.loop [@inner](%h, %w) {carried = 1 : i64, length = 9 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @inner
// CHECK-NEXT: wg.mul
func.func private @inner(%h: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  %t = wg.tanh %w : tensor<8xf32>
  %y = wg.mul %h, %t : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A condition sees the same invariants. What another loop runs too is copied for this one, and where there is one turn,
// or an op may fail, everything stays.
// CHECK-LABEL: func.func @shared
// CHECK: %[[E:.*]] = wg.exp
// CHECK: wg.loop [@turn_0, @more](%{{.*}}, %[[E]])
// CHECK: wg.loop [@turn](
// CHECK: wg.loop [@gathers](
func.func @shared(%h: tensor<8xf32>, %w: tensor<8xf32>, %i: tensor<8xi64>) -> (tensor<8xf32>, tensor<i64>, tensor<8xf32>, tensor<8xf32>) {
  %0:2 = wg.loop [@turn, @more](%h, %w) {carried = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<i64>)
  %1 = wg.loop [@turn](%h, %w) {carried = 1 : i64, length = 1 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = wg.loop [@gathers](%h, %w, %i) {carried = 1 : i64, length = 9 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xi64>) -> tensor<8xf32>
  return %0#0, %0#1, %1, %2 : tensor<8xf32>, tensor<i64>, tensor<8xf32>, tensor<8xf32>
}
// CHECK: func.func private @turn(
// CHECK-NEXT: wg.exp
func.func private @turn(%h: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  %e = wg.exp %w : tensor<8xf32>
  %y = wg.mul %h, %e : tensor<8xf32>
  return %y : tensor<8xf32>
}
// CHECK: func.func private @more(%{{.*}}: tensor<8xf32>, %{{.*}}: tensor<8xf32>)
func.func private @more(%h: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<i1> {
  %s = wg.reduce_sum %h axes [0] : tensor<8xf32> -> tensor<f32>
  %one = wg.constant dense<1.0> : tensor<f32>
  %p = wg.less %one, %s : tensor<f32>
  return %p : tensor<i1>
}
// CHECK: func.func private @gathers
// CHECK-NEXT: wg.gather
func.func private @gathers(%h: tensor<8xf32>, %w: tensor<8xf32>, %i: tensor<8xi64>) -> tensor<8xf32> {
  %g = wg.gather %w, %i : tensor<8xf32>, tensor<8xi64> -> tensor<8xf32>
  %y = wg.mul %h, %g : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A transpose that many rows of a turn read across is a copy (Cheap.h): one for all turns.
// CHECK-LABEL: func.func private @rows
// CHECK-SAME: tensor<70x600xf32>
// CHECK-NOT: wg.transpose
// CHECK: return
// CHECK-LABEL: func.func @copied
// CHECK: wg.transpose
// CHECK: wg.loop
func.func private @rows(%h: tensor<50x70x600xf32>, %w: tensor<600x70xf32>) -> tensor<50x70x600xf32> {
  %t = wg.transpose %w by [1, 0] : tensor<600x70xf32> -> tensor<70x600xf32>
  %b = wg.broadcast %t to [50, 70, 600] dims [1, 2] : tensor<70x600xf32> -> tensor<50x70x600xf32>
  %y = wg.mul %b, %h : tensor<50x70x600xf32>
  return %y : tensor<50x70x600xf32>
}
func.func @copied(%h: tensor<50x70x600xf32>, %w: tensor<600x70xf32>) -> tensor<50x70x600xf32> {
  %0 = wg.loop [@rows](%h, %w) {carried = 1 : i64, length = 50 : i64} : (tensor<50x70x600xf32>, tensor<600x70xf32>) -> tensor<50x70x600xf32>
  return %0 : tensor<50x70x600xf32>
}
