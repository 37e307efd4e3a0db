// RUN: wengert-opt %s --wg-distribute-loops=registers=768 --split-input-file | FileCheck %s
// RUN: wengert-opt %s --wg-distribute-loops=registers=1536 --split-input-file | FileCheck %s --check-prefix=LARGE

// Two recurrences of which one reads the other, each with a sum over the turns, or two, and one of no state: two loops,
// and the second scans what the first was before each turn. The results keep their places. Where registers hold it all
// it stays one loop.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: (%[[A:.*]]: tensor<32xf64>, %[[B:.*]]: tensor<32xf64>, %[[C:.*]]: tensor<32xf64>, %[[X:.*]]: tensor<9x32xf64>, %[[Y:.*]]: tensor<9x32xf64>, %[[Z:.*]]: tensor<9x32xf64>, %[[U:.*]]: tensor<9x32xf64>, %[[W:.*]]: tensor<32xf64>)
// CHECK-NEXT: %[[FIRST:.*]]:4 = wg.loop [@turn_part0](%[[A]], %[[C]], %[[C]], %[[X]], %[[W]]) {carried = 3 : i64, length = 9 : i64, reversed = true, scanned = 1 : i64}
// CHECK-NEXT: %[[SECOND:.*]]:4 = wg.loop [@turn_part1](%[[B]], %[[C]], %[[C]], %[[Y]], %[[Z]], %[[U]], %[[FIRST]]#3) {carried = 3 : i64, length = 9 : i64, reversed = true, scanned = 4 : i64}
// CHECK-NEXT: return %[[FIRST]]#0, %[[SECOND]]#0, %[[FIRST]]#1, %[[SECOND]]#1, %[[FIRST]]#2, %[[SECOND]]#2, %[[SECOND]]#3
// LARGE-LABEL: func.func @layers
// LARGE: wg.loop [@turn]
// LARGE-NOT: _part
func.func @layers(%a: tensor<32xf64>, %b: tensor<32xf64>, %c: tensor<32xf64>, %x: tensor<9x32xf64>, %y: tensor<9x32xf64>, %z: tensor<9x32xf64>, %u: tensor<9x32xf64>, %w: tensor<32xf64>) -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>) {
  %r:7 = wg.loop [@turn](%a, %b, %c, %c, %c, %c, %x, %y, %z, %u, %w) {carried = 6 : i64, length = 9 : i64, reversed = true, scanned = 4 : i64}
      : (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<32xf64>) -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6 : tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>
}
// CHECK-NOT: func.func private @turn(
// CHECK-LABEL: func.func private @turn_part0
// CHECK-SAME: (%[[A:.*]]: tensor<32xf64>, %[[C:.*]]: tensor<32xf64>, %[[E:.*]]: tensor<32xf64>, %[[X:.*]]: tensor<32xf64>, %[[W:.*]]: tensor<32xf64>)
// CHECK-NEXT: %[[XX:.*]] = wg.mul %[[X]], %[[X]]
// CHECK-NEXT: %[[A1:.*]] = wg.mul %[[A]], %[[XX]]
// CHECK-NEXT: %[[A2:.*]] = wg.mul %[[A1]], %[[W]]
// CHECK-NEXT: %[[C1:.*]] = wg.add %[[C]], %[[A1]]
// CHECK-NEXT: %[[E1:.*]] = wg.add %[[E]], %[[A2]]
// CHECK-NEXT: return %[[A1]], %[[C1]], %[[E1]], %[[A]]
// CHECK-LABEL: func.func private @turn_part1
// CHECK-SAME: (%[[B:.*]]: tensor<32xf64>, %[[D:.*]]: tensor<32xf64>, %[[F:.*]]: tensor<32xf64>, %[[Y:.*]]: tensor<32xf64>, %[[Z:.*]]: tensor<32xf64>, %[[U:.*]]: tensor<32xf64>, %[[A:.*]]: tensor<32xf64>)
// CHECK-NEXT: %[[B1:.*]] = wg.sub %[[Y]], %[[B]]
// CHECK-NEXT: %[[B2:.*]] = wg.mul %[[B1]], %[[A]]
// CHECK-NEXT: %[[B3:.*]] = wg.add %[[Z]], %[[U]]
// CHECK-NEXT: %[[D1:.*]] = wg.add %[[D]], %[[B2]]
// CHECK-NEXT: %[[F1:.*]] = wg.add %[[F]], %[[B3]]
// CHECK-NEXT: return %[[B2]], %[[D1]], %[[F1]], %[[B3]]
func.func private @turn(%a: tensor<32xf64>, %b: tensor<32xf64>, %c: tensor<32xf64>, %d: tensor<32xf64>, %e: tensor<32xf64>, %f: tensor<32xf64>, %x: tensor<32xf64>, %y: tensor<32xf64>, %z: tensor<32xf64>, %u: tensor<32xf64>, %w: tensor<32xf64>)
    -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>) {
  %xx = wg.mul %x, %x : tensor<32xf64>
  %a1 = wg.mul %a, %xx : tensor<32xf64>
  %a2 = wg.mul %a1, %w : tensor<32xf64>
  %b1 = wg.sub %y, %b : tensor<32xf64>
  %b2 = wg.mul %b1, %a : tensor<32xf64>
  %b3 = wg.add %z, %u : tensor<32xf64>
  %c1 = wg.add %c, %a1 : tensor<32xf64>
  %d1 = wg.add %d, %b2 : tensor<32xf64>
  %e1 = wg.add %e, %a2 : tensor<32xf64>
  %f1 = wg.add %f, %b3 : tensor<32xf64>
  return %a1, %b2, %c1, %d1, %e1, %f1, %b3 : tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>
}

// -----

// One that waits for its own chain stays beside the other, which fills the time.
// CHECK-LABEL: func.func @chain
// CHECK: wg.loop [@turn]
// CHECK-NOT: _part
func.func @chain(%a: tensor<20xf64>, %b: tensor<20xf64>, %c: tensor<20xf64>, %x: tensor<9x20xf64>, %y: tensor<9x20xf64>, %z: tensor<9x20xf64>, %u: tensor<9x20xf64>, %w: tensor<20xf64>) -> (tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<9x20xf64>) {
  %r:7 = wg.loop [@turn](%a, %b, %c, %c, %c, %c, %x, %y, %z, %u, %w) {carried = 6 : i64, length = 9 : i64, reversed = true, scanned = 4 : i64}
      : (tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<9x20xf64>, tensor<9x20xf64>, tensor<9x20xf64>, tensor<9x20xf64>, tensor<20xf64>) -> (tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<9x20xf64>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6 : tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<9x20xf64>
}
func.func private @turn(%a: tensor<20xf64>, %b: tensor<20xf64>, %c: tensor<20xf64>, %d: tensor<20xf64>, %e: tensor<20xf64>, %f: tensor<20xf64>, %x: tensor<20xf64>, %y: tensor<20xf64>, %z: tensor<20xf64>, %u: tensor<20xf64>, %w: tensor<20xf64>)
    -> (tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>) {
  %xx = wg.mul %x, %x : tensor<20xf64>
  %a1 = wg.mul %a, %xx : tensor<20xf64>
  %a2 = wg.mul %a1, %w : tensor<20xf64>
  %b0 = wg.sub %y, %b : tensor<20xf64>
  %b0_0 = wg.mul %b0, %w : tensor<20xf64>
  %b0_1 = wg.mul %b0_0, %w : tensor<20xf64>
  %b0_2 = wg.mul %b0_1, %w : tensor<20xf64>
  %b0_3 = wg.mul %b0_2, %w : tensor<20xf64>
  %b0_4 = wg.mul %b0_3, %w : tensor<20xf64>
  %b0_5 = wg.mul %b0_4, %w : tensor<20xf64>
  %b0_6 = wg.mul %b0_5, %w : tensor<20xf64>
  %b1 = wg.mul %b0_6, %w : tensor<20xf64>
  %b2 = wg.mul %b1, %a : tensor<20xf64>
  %b3 = wg.add %z, %u : tensor<20xf64>
  %c1 = wg.add %c, %a1 : tensor<20xf64>
  %d1 = wg.add %d, %b2 : tensor<20xf64>
  %e1 = wg.add %e, %a2 : tensor<20xf64>
  %f1 = wg.add %f, %b3 : tensor<20xf64>
  return %a1, %b2, %c1, %d1, %e1, %f1, %b3 : tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>, tensor<20xf64>
}

// -----

// Nor where the rows that are handed on are much beside what the loop reads and gives.
// CHECK-LABEL: func.func @rows
// CHECK: wg.loop [@turn]
// CHECK-NOT: _part
func.func @rows(%a: tensor<32xf64>, %b: tensor<32xf64>, %c: tensor<32xf64>, %x: tensor<9x32xf64>, %y: tensor<32xf64>, %z: tensor<32xf64>, %u: tensor<32xf64>, %w: tensor<32xf64>) -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>) {
  %r:7 = wg.loop [@turn](%a, %b, %c, %c, %c, %c, %x, %y, %z, %u, %w) {carried = 6 : i64, length = 9 : i64, reversed = true, scanned = 1 : i64}
      : (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>) -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6 : tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>
}
func.func private @turn(%a: tensor<32xf64>, %b: tensor<32xf64>, %c: tensor<32xf64>, %d: tensor<32xf64>, %e: tensor<32xf64>, %f: tensor<32xf64>, %x: tensor<32xf64>, %y: tensor<32xf64>, %z: tensor<32xf64>, %u: tensor<32xf64>, %w: tensor<32xf64>)
    -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>) {
  %xx = wg.mul %x, %x : tensor<32xf64>
  %a1 = wg.mul %a, %xx : tensor<32xf64>
  %a2 = wg.mul %a1, %w : tensor<32xf64>
  %b1 = wg.sub %y, %b : tensor<32xf64>
  %b2 = wg.mul %b1, %a : tensor<32xf64>
  %b3 = wg.add %z, %u : tensor<32xf64>
  %c1 = wg.add %c, %a1 : tensor<32xf64>
  %d1 = wg.add %d, %b2 : tensor<32xf64>
  %e1 = wg.add %e, %a2 : tensor<32xf64>
  %f1 = wg.add %f, %b3 : tensor<32xf64>
  return %a1, %b2, %c1, %d1, %e1, %f1, %b3 : tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>
}

// -----

// A function that another loop runs stays, and that loop too where it has as many turns as are not known.
// CHECK-LABEL: func.func @shared
// CHECK: wg.loop [@turn_part0]
// CHECK: wg.loop [@turn_part1]
// CHECK-LABEL: func.func @limited
// CHECK: wg.loop [@turn](
// CHECK: func.func private @turn(
func.func @shared(%a: tensor<32xf64>, %b: tensor<32xf64>, %c: tensor<32xf64>, %x: tensor<9x32xf64>, %y: tensor<9x32xf64>, %z: tensor<9x32xf64>, %u: tensor<9x32xf64>, %w: tensor<32xf64>) -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>) {
  %r:7 = wg.loop [@turn](%a, %b, %c, %c, %c, %c, %x, %y, %z, %u, %w) {carried = 6 : i64, length = 9 : i64, reversed = true, scanned = 4 : i64}
      : (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<32xf64>) -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6 : tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>
}
func.func @limited(%n: tensor<i64>, %a: tensor<32xf64>, %b: tensor<32xf64>, %c: tensor<32xf64>, %x: tensor<9x32xf64>, %y: tensor<9x32xf64>, %z: tensor<9x32xf64>, %u: tensor<9x32xf64>, %w: tensor<32xf64>) -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>) {
  %r:7 = wg.loop [@turn](%n, %a, %b, %c, %c, %c, %c, %x, %y, %z, %u, %w) {carried = 6 : i64, length = 9 : i64, limited = true, reversed = true, scanned = 4 : i64}
      : (tensor<i64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<32xf64>) -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6 : tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<9x32xf64>
}
func.func private @turn(%a: tensor<32xf64>, %b: tensor<32xf64>, %c: tensor<32xf64>, %d: tensor<32xf64>, %e: tensor<32xf64>, %f: tensor<32xf64>, %x: tensor<32xf64>, %y: tensor<32xf64>, %z: tensor<32xf64>, %u: tensor<32xf64>, %w: tensor<32xf64>)
    -> (tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>) {
  %xx = wg.mul %x, %x : tensor<32xf64>
  %a1 = wg.mul %a, %xx : tensor<32xf64>
  %a2 = wg.mul %a1, %w : tensor<32xf64>
  %b1 = wg.sub %y, %b : tensor<32xf64>
  %b2 = wg.mul %b1, %a : tensor<32xf64>
  %b3 = wg.add %z, %u : tensor<32xf64>
  %c1 = wg.add %c, %a1 : tensor<32xf64>
  %d1 = wg.add %d, %b2 : tensor<32xf64>
  %e1 = wg.add %e, %a2 : tensor<32xf64>
  %f1 = wg.add %f, %b3 : tensor<32xf64>
  return %a1, %b2, %c1, %d1, %e1, %f1, %b3 : tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>, tensor<32xf64>
}

// -----

// Nor where a stack would have more axes than a value may.
// CHECK-LABEL: func.func @axes
// CHECK: wg.loop [@turn]
// CHECK-NOT: _part
func.func @axes(%a: tensor<1x1x1x1x1x1x4x8xf64>, %x: tensor<9x32xf64>, %y: tensor<9x32xf64>, %z: tensor<9x32xf64>, %u: tensor<9x32xf64>) -> (tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>) {
  %r:6 = wg.loop [@turn](%a, %a, %a, %a, %a, %a, %x, %y, %z, %u) {carried = 6 : i64, length = 9 : i64, scanned = 4 : i64} : (tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<9x32xf64>, tensor<9x32xf64>) -> (tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>
}
func.func private @turn(%a: tensor<1x1x1x1x1x1x4x8xf64>, %b: tensor<1x1x1x1x1x1x4x8xf64>, %c: tensor<1x1x1x1x1x1x4x8xf64>, %d: tensor<1x1x1x1x1x1x4x8xf64>, %e: tensor<1x1x1x1x1x1x4x8xf64>, %f: tensor<1x1x1x1x1x1x4x8xf64>, %xx: tensor<32xf64>, %yy: tensor<32xf64>, %zz: tensor<32xf64>, %uu: tensor<32xf64>) -> (tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>) {
  %x = wg.reshape %xx to [1, 1, 1, 1, 1, 1, 4, 8] : tensor<32xf64> -> tensor<1x1x1x1x1x1x4x8xf64>
  %y = wg.reshape %yy to [1, 1, 1, 1, 1, 1, 4, 8] : tensor<32xf64> -> tensor<1x1x1x1x1x1x4x8xf64>
  %z = wg.reshape %zz to [1, 1, 1, 1, 1, 1, 4, 8] : tensor<32xf64> -> tensor<1x1x1x1x1x1x4x8xf64>
  %u = wg.reshape %uu to [1, 1, 1, 1, 1, 1, 4, 8] : tensor<32xf64> -> tensor<1x1x1x1x1x1x4x8xf64>
  %a1 = wg.mul %a, %x : tensor<1x1x1x1x1x1x4x8xf64>
  %b1 = wg.sub %y, %b : tensor<1x1x1x1x1x1x4x8xf64>
  %b2 = wg.mul %b1, %a : tensor<1x1x1x1x1x1x4x8xf64>
  %b3 = wg.add %z, %u : tensor<1x1x1x1x1x1x4x8xf64>
  %c1 = wg.add %c, %a1 : tensor<1x1x1x1x1x1x4x8xf64>
  %d1 = wg.add %d, %b2 : tensor<1x1x1x1x1x1x4x8xf64>
  %e1 = wg.add %e, %a1 : tensor<1x1x1x1x1x1x4x8xf64>
  %f1 = wg.add %f, %b3 : tensor<1x1x1x1x1x1x4x8xf64>
  return %a1, %b2, %c1, %d1, %e1, %f1 : tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>, tensor<1x1x1x1x1x1x4x8xf64>
}
