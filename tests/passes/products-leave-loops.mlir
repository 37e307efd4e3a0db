// RUN: wengert-opt %s --wg-products-leave-loops --split-input-file | FileCheck %s

// A row times an invariant is known before the loop, where there are few rows a turn.
// CHECK-LABEL: func.func @before
// CHECK-SAME: (%[[H:.*]]: tensor<2x64xf32>, %[[XS:.*]]: tensor<9x2x64xf32>, %[[U:.*]]: tensor<64x64xf32>)
// CHECK-NEXT: %[[ZS:.*]] = wg.contract "amk,kn->amn" %[[XS]], %[[U]]
// CHECK-NEXT: wg.loop [@turn](%[[H]], %[[ZS]]) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64}
func.func @before(%h: tensor<2x64xf32>, %xs: tensor<9x2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %0 = wg.loop [@turn](%h, %xs, %u) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<2x64xf32>, tensor<9x2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}
// CHECK-LABEL: func.func private @turn
// CHECK-SAME: (%[[C:.*]]: tensor<2x64xf32>, %[[Z:.*]]: tensor<2x64xf32>)
// CHECK-NEXT: %[[N:.*]] = wg.sub %[[C]], %[[Z]]
// CHECK-NEXT: return %[[N]]
func.func private @turn(%h: tensor<2x64xf32>, %x: tensor<2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %z = wg.contract "mk,kn->mn" %x, %u : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  %n = wg.sub %h, %z : tensor<2x64xf32>
  return %n : tensor<2x64xf32>
}

// -----

// Of many rows a turn it stays; so does one of what a turn computes, one whose loop may end early, and one of rows that
// no tensor has.
// CHECK-LABEL: func.func @many
// CHECK-NOT: wg.contract
// CHECK: wg.loop [@turn](%{{.*}}, %{{.*}}, %{{.*}})
// CHECK-LABEL: func.func private @turn
// CHECK: wg.contract
func.func @many(%h: tensor<8x64xf32>, %xs: tensor<9x8x64xf32>, %u: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %0 = wg.loop [@turn](%h, %xs, %u) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<8x64xf32>, tensor<9x8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
func.func private @turn(%h: tensor<8x64xf32>, %x: tensor<8x64xf32>, %u: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %z = wg.contract "mk,kn->mn" %x, %u : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
  %n = wg.sub %h, %z : tensor<8x64xf32>
  return %n : tensor<8x64xf32>
}
// CHECK-LABEL: func.func @computed
// CHECK-NOT: wg.contract
// CHECK: wg.loop [@computed_turn]
func.func @computed(%h: tensor<2x64xf32>, %xs: tensor<9x2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %0 = wg.loop [@computed_turn](%h, %xs, %u) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<2x64xf32>, tensor<9x2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}
func.func private @computed_turn(%h: tensor<2x64xf32>, %x: tensor<2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %y = wg.mul %h, %x : tensor<2x64xf32>
  %z = wg.contract "mk,kn->mn" %y, %u : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  return %z : tensor<2x64xf32>
}
// CHECK-LABEL: func.func @limited
// CHECK-NOT: wg.contract
// CHECK: wg.loop [@limited_turn]
func.func @limited(%n: tensor<i64>, %h: tensor<2x64xf32>, %xs: tensor<9x2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %0 = wg.loop [@limited_turn](%n, %h, %xs, %u) {carried = 1 : i64, length = 9 : i64, limited = true, scanned = 1 : i64} : (tensor<i64>, tensor<2x64xf32>, tensor<9x2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}
func.func private @limited_turn(%h: tensor<2x64xf32>, %x: tensor<2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %z = wg.contract "mk,kn->mn" %x, %u : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  return %z : tensor<2x64xf32>
}

// -----

// A row among other values: its part of the product. What others run stays as it is.
// CHECK-LABEL: func.func @parts
// CHECK-SAME: (%[[H:.*]]: tensor<1x32xf32>, %[[XS:.*]]: tensor<9x1x64xf32>, %[[W:.*]]: tensor<128x64xf32>)
// CHECK-DAG: %[[FIRST:.*]] = wg.slice %[[W]] from [0, 0] to [32, 64]
// CHECK-DAG: %[[ROWS:.*]] = wg.slice %[[W]] from [32, 0] to [96, 64]
// CHECK-DAG: %[[LAST:.*]] = wg.slice %[[W]] from [96, 0] to [128, 64]
// CHECK: %[[ZS:.*]] = wg.contract "amk,kn->amn" %[[XS]], %[[ROWS]]
// CHECK-NEXT: wg.loop [@turn_0](%[[H]], %[[ZS]], %[[FIRST]], %[[LAST]]) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64}
// CHECK-LABEL: func.func @turn(
// CHECK-NEXT: wg.concat
// CHECK-LABEL: func.func private @turn_0
// CHECK-SAME: (%[[C:.*]]: tensor<1x32xf32>, %[[Z:.*]]: tensor<1x64xf32>, %[[U:.*]]: tensor<32x64xf32>, %[[V:.*]]: tensor<32x64xf32>)
// CHECK-NEXT: %[[A:.*]] = wg.contract "mk,kn->mn" %[[C]], %[[U]]
// CHECK-NEXT: %[[B:.*]] = wg.contract "mk,kn->mn" %[[C]], %[[V]]
// CHECK-NEXT: %[[AB:.*]] = wg.add %[[A]], %[[B]]
// CHECK-NEXT: %[[S:.*]] = wg.add %[[AB]], %[[Z]]
// CHECK-NEXT: wg.slice %[[S]]
func.func @parts(%h: tensor<1x32xf32>, %xs: tensor<9x1x64xf32>, %w: tensor<128x64xf32>) -> tensor<1x32xf32> {
  %0 = wg.loop [@turn](%h, %xs, %w) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<1x32xf32>, tensor<9x1x64xf32>, tensor<128x64xf32>) -> tensor<1x32xf32>
  return %0 : tensor<1x32xf32>
}
func.func @turn(%h: tensor<1x32xf32>, %x: tensor<1x64xf32>, %w: tensor<128x64xf32>) -> tensor<1x32xf32> {
  %hxh = wg.concat %h, %x, %h axis 1 : tensor<1x32xf32>, tensor<1x64xf32>, tensor<1x32xf32> -> tensor<1x128xf32>
  %z = wg.contract "mk,kn->mn" %hxh, %w : tensor<1x128xf32>, tensor<128x64xf32> -> tensor<1x64xf32>
  %n = wg.slice %z from [0, 32] to [1, 64] by [1, 1] : tensor<1x64xf32> -> tensor<1x32xf32>
  return %n : tensor<1x32xf32>
}

// -----

// The gradients of a weight, and of what is scanned: a sum of products over the turns, and a product that is only
// stacked, of a factor that is stacked instead. The sum goes on from where it began.
// CHECK-LABEL: func.func @sums
// CHECK-SAME: (%[[G:.*]]: tensor<1x128xf32>, %[[D:.*]]: tensor<128x128xf32>, %[[HS:.*]]: tensor<9x1x128xf32>, %[[U:.*]]: tensor<128x128xf32>)
// CHECK-NEXT: %[[R:.*]]:2 = wg.loop [@turn](%[[G]], %[[HS]]) {carried = 1 : i64, length = 9 : i64, reversed = true, scanned = 1 : i64}
// CHECK-NEXT: %[[P:.*]] = wg.contract "amk,amn->kn" %[[HS]], %[[R]]#1
// CHECK-NEXT: %[[SUM:.*]] = wg.add %[[D]], %[[P]]
// CHECK-NEXT: %[[DXS:.*]] = wg.contract "amn,kn->amk" %[[R]]#1, %[[U]]
// CHECK-NEXT: return %[[R]]#0, %[[SUM]], %[[DXS]]
func.func @sums(%g: tensor<1x128xf32>, %d: tensor<128x128xf32>, %hs: tensor<9x1x128xf32>, %u: tensor<128x128xf32>) -> (tensor<1x128xf32>, tensor<128x128xf32>, tensor<9x1x128xf32>) {
  %0:3 = wg.loop [@turn](%g, %d, %hs, %u) {carried = 2 : i64, length = 9 : i64, reversed = true, scanned = 1 : i64} : (tensor<1x128xf32>, tensor<128x128xf32>, tensor<9x1x128xf32>, tensor<128x128xf32>) -> (tensor<1x128xf32>, tensor<128x128xf32>, tensor<9x1x128xf32>)
  return %0#0, %0#1, %0#2 : tensor<1x128xf32>, tensor<128x128xf32>, tensor<9x1x128xf32>
}
// CHECK-LABEL: func.func private @turn
// CHECK-SAME: (%[[C:.*]]: tensor<1x128xf32>, %[[H:.*]]: tensor<1x128xf32>)
// CHECK-NEXT: %[[Z:.*]] = wg.mul %[[C]], %[[H]]
// CHECK-NEXT: return %[[Z]], %[[Z]]
func.func private @turn(%g: tensor<1x128xf32>, %d: tensor<128x128xf32>, %h: tensor<1x128xf32>, %u: tensor<128x128xf32>) -> (tensor<1x128xf32>, tensor<128x128xf32>, tensor<1x128xf32>) {
  %z = wg.mul %g, %h : tensor<1x128xf32>
  %p = wg.contract "mk,mn->kn" %h, %z : tensor<1x128xf32>, tensor<1x128xf32> -> tensor<128x128xf32>
  %s = wg.add %d, %p : tensor<128x128xf32>
  %x = wg.contract "mn,kn->mk" %z, %u : tensor<1x128xf32>, tensor<128x128xf32> -> tensor<1x128xf32>
  return %z, %s, %x : tensor<1x128xf32>, tensor<128x128xf32>, tensor<1x128xf32>
}

// -----

// A sum that is read in its turns, a small one, and one of factors much larger than what the loop moves anyhow, stay.
// CHECK-LABEL: func.func @read
// CHECK-NOT: wg.contract
// CHECK: return
func.func @read(%d: tensor<128x128xf32>, %hs: tensor<9x128xf32>) -> tensor<128x128xf32> {
  %0 = wg.loop [@read_turn](%d, %hs) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<128x128xf32>, tensor<9x128xf32>) -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}
func.func private @read_turn(%d: tensor<128x128xf32>, %h: tensor<128xf32>) -> tensor<128x128xf32> {
  %v = wg.contract "k,kn->n" %h, %d : tensor<128xf32>, tensor<128x128xf32> -> tensor<128xf32>
  %p = wg.contract "k,n->kn" %h, %v : tensor<128xf32>, tensor<128xf32> -> tensor<128x128xf32>
  %s = wg.add %d, %p : tensor<128x128xf32>
  return %s : tensor<128x128xf32>
}
// CHECK-LABEL: func.func @small
// CHECK-NOT: wg.contract
// CHECK: return
func.func @small(%d: tensor<32x32xf32>, %hs: tensor<9x32xf32>) -> tensor<32x32xf32> {
  %0 = wg.loop [@small_turn](%d, %hs) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<32x32xf32>, tensor<9x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
func.func private @small_turn(%d: tensor<32x32xf32>, %h: tensor<32xf32>) -> tensor<32x32xf32> {
  %p = wg.contract "k,n->kn" %h, %h : tensor<32xf32>, tensor<32xf32> -> tensor<32x32xf32>
  %s = wg.add %d, %p : tensor<32x32xf32>
  return %s : tensor<32x32xf32>
}
// CHECK-LABEL: func.func @large
// CHECK-NOT: wg.contract
// CHECK: return
func.func @large(%d: tensor<128x128xf32>, %ts: tensor<9x4xf32>) -> tensor<128x128xf32> {
  %0 = wg.loop [@large_turn](%d, %ts) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<128x128xf32>, tensor<9x4xf32>) -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}
func.func private @large_turn(%d: tensor<128x128xf32>, %t: tensor<4xf32>) -> tensor<128x128xf32> {
  %e = wg.exp %t : tensor<4xf32>
  %b = wg.broadcast %e to [4, 128] dims [0] : tensor<4xf32> -> tensor<4x128xf32>
  %p = wg.contract "mk,mn->kn" %b, %b : tensor<4x128xf32>, tensor<4x128xf32> -> tensor<128x128xf32>
  %s = wg.add %d, %p : tensor<128x128xf32>
  return %s : tensor<128x128xf32>
}

// -----

// Rows of a table leave whatever their number: forwards out of a concat, backwards a slice of a product. What is stacked
// of both and multiplied after the loop is two stacks and two products.
// CHECK-LABEL: func.func @embedding
// CHECK-SAME: (%[[E:.*]]: tensor<10x32xf32>, %[[I:.*]]: tensor<9x8xi32>, %[[H:.*]]: tensor<8x32xf32>, %[[W:.*]]: tensor<64x96xf32>, %[[D:.*]]: tensor<64x96xf32>, %[[ZERO:.*]]: tensor<8x32xf32>)
// CHECK-DAG: %[[WX:.*]] = wg.slice %[[W]] from [0, 0] to [32, 96]
// CHECK-DAG: %[[WH:.*]] = wg.slice %[[W]] from [32, 0] to [64, 96]
// CHECK: %[[XS:.*]] = wg.gather %[[E]], %[[I]]
// CHECK-NEXT: %[[ZS:.*]] = wg.contract "amk,kn->amn" %[[XS]], %[[WX]]
// CHECK-NEXT: %[[F:.*]]:3 = wg.loop [@turn](%[[H]], %[[ZS]], %[[WH]])
// CHECK-NEXT: %[[B:.*]]:2 = wg.loop [@back](%[[ZERO]], %[[F]]#1, %[[WH]])
// CHECK-DAG: %[[DWX:.*]] = wg.contract "amk,amn->kn" %[[XS]], %[[B]]#1
// CHECK-DAG: %[[DWH:.*]] = wg.contract "amk,amn->kn" %[[F]]#2, %[[B]]#1
// CHECK-DAG: %[[P:.*]] = wg.concat %[[DWX]], %[[DWH]] axis 0
// CHECK-DAG: %[[DW:.*]] = wg.add %[[D]], %[[P]]
// CHECK-DAG: %[[DXS:.*]] = wg.contract "amn,kn->amk" %[[B]]#1, %[[WX]]
// CHECK: wg.scatter_add %[[DXS]], %[[I]]
func.func @embedding(%e: tensor<10x32xf32>, %i: tensor<9x8xi32>, %h: tensor<8x32xf32>, %w: tensor<64x96xf32>, %d: tensor<64x96xf32>, %zero: tensor<8x32xf32>) -> (tensor<8x32xf32>, tensor<64x96xf32>, tensor<10x32xf32>) {
  %xs = wg.gather %e, %i : tensor<10x32xf32>, tensor<9x8xi32> -> tensor<9x8x32xf32>
  %0:3 = wg.loop [@turn](%h, %xs, %w) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<8x32xf32>, tensor<9x8x32xf32>, tensor<64x96xf32>) -> (tensor<8x32xf32>, tensor<9x8x96xf32>, tensor<9x8x64xf32>)
  %1:3 = wg.loop [@back](%zero, %d, %0#1, %0#2, %w) {carried = 2 : i64, length = 9 : i64, reversed = true, scanned = 2 : i64} : (tensor<8x32xf32>, tensor<64x96xf32>, tensor<9x8x96xf32>, tensor<9x8x64xf32>, tensor<64x96xf32>) -> (tensor<8x32xf32>, tensor<64x96xf32>, tensor<9x8x32xf32>)
  %2 = wg.scatter_add %1#2, %i to [10, 32] : tensor<9x8x32xf32>, tensor<9x8xi32> -> tensor<10x32xf32>
  return %1#0, %1#1, %2 : tensor<8x32xf32>, tensor<64x96xf32>, tensor<10x32xf32>
}
// CHECK-LABEL: func.func private @turn
// CHECK-SAME: (%[[H:.*]]: tensor<8x32xf32>, %[[Z:.*]]: tensor<8x96xf32>, %[[W:.*]]: tensor<32x96xf32>)
// CHECK-NEXT: %[[P:.*]] = wg.contract "mk,kn->mn" %[[H]], %[[W]]
// CHECK-NEXT: %[[S:.*]] = wg.add %[[P]], %[[Z]]
// CHECK: return %{{.*}}, %{{.*}}, %[[H]]
func.func private @turn(%h: tensor<8x32xf32>, %x: tensor<8x32xf32>, %w: tensor<64x96xf32>) -> (tensor<8x32xf32>, tensor<8x96xf32>, tensor<8x64xf32>) {
  %xh = wg.concat %x, %h axis 1 : tensor<8x32xf32>, tensor<8x32xf32> -> tensor<8x64xf32>
  %z = wg.contract "mk,kn->mn" %xh, %w : tensor<8x64xf32>, tensor<64x96xf32> -> tensor<8x96xf32>
  %y = wg.tanh %z : tensor<8x96xf32>
  %n = wg.slice %y from [0, 0] to [8, 32] by [1, 1] : tensor<8x96xf32> -> tensor<8x32xf32>
  return %n, %y, %xh : tensor<8x32xf32>, tensor<8x96xf32>, tensor<8x64xf32>
}
// CHECK-LABEL: func.func private @back
// CHECK-SAME: (%[[G:.*]]: tensor<8x32xf32>, %[[Y:.*]]: tensor<8x96xf32>, %[[W:.*]]: tensor<32x96xf32>)
// CHECK: %[[Z:.*]] = wg.mul
// CHECK-NEXT: %[[P:.*]] = wg.contract "mn,kn->mk" %[[Z]], %[[W]]
// CHECK-NEXT: return %[[P]], %[[Z]]
func.func private @back(%g: tensor<8x32xf32>, %d: tensor<64x96xf32>, %y: tensor<8x96xf32>, %xh: tensor<8x64xf32>, %w: tensor<64x96xf32>) -> (tensor<8x32xf32>, tensor<64x96xf32>, tensor<8x32xf32>) {
  %g3 = wg.concat %g, %g, %g axis 1 : tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32> -> tensor<8x96xf32>
  %z = wg.mul %g3, %y : tensor<8x96xf32>
  %q = wg.contract "mk,mn->kn" %xh, %z : tensor<8x64xf32>, tensor<8x96xf32> -> tensor<64x96xf32>
  %s = wg.add %d, %q : tensor<64x96xf32>
  %p = wg.contract "mn,kn->mk" %z, %w : tensor<8x96xf32>, tensor<64x96xf32> -> tensor<8x64xf32>
  %x = wg.slice %p from [0, 0] to [8, 32] by [1, 1] : tensor<8x64xf32> -> tensor<8x32xf32>
  %n = wg.slice %p from [0, 32] to [8, 64] by [1, 1] : tensor<8x64xf32> -> tensor<8x32xf32>
  return %n, %s, %x : tensor<8x32xf32>, tensor<64x96xf32>, tensor<8x32xf32>
}

// -----

// A body that several loops run is copied for each, and then what it runs is not of one alone.
// CHECK-LABEL: func.func private @inner
// CHECK-SAME: (%{{.*}}: tensor<2x64xf32>, %{{.*}}: tensor<2x64xf32>)
// CHECK-LABEL: func.func private @outer(
// CHECK: %[[Z:.*]] = wg.contract "amk,kn->amn"
// CHECK-NEXT: wg.loop [@inner_1](%{{.*}}, %[[Z]])
// CHECK-LABEL: func.func @twice
// CHECK: wg.loop [@outer](
// CHECK: wg.loop [@outer_0](
// CHECK-LABEL: func.func private @outer_0(
// CHECK: %[[Z:.*]] = wg.contract "amk,kn->amn"
// CHECK-NEXT: wg.loop [@inner](%{{.*}}, %[[Z]])
// CHECK-LABEL: func.func private @inner_1
// CHECK-SAME: (%{{.*}}: tensor<2x64xf32>, %{{.*}}: tensor<2x64xf32>)
func.func private @inner(%h: tensor<2x64xf32>, %x: tensor<2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %z = wg.contract "mk,kn->mn" %x, %u : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  %n = wg.sub %h, %z : tensor<2x64xf32>
  return %n : tensor<2x64xf32>
}
func.func private @outer(%h: tensor<2x64xf32>, %x: tensor<2x64xf32>, %rows: tensor<9x2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %z = wg.contract "mk,kn->mn" %x, %u : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  %0 = wg.loop [@inner](%z, %rows, %u) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<2x64xf32>, tensor<9x2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  %n = wg.sub %h, %0 : tensor<2x64xf32>
  return %n : tensor<2x64xf32>
}
func.func @twice(%h: tensor<2x64xf32>, %xs: tensor<3x2x64xf32>, %rows: tensor<9x2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %0 = wg.loop [@outer](%h, %xs, %rows, %u) {carried = 1 : i64, length = 3 : i64, scanned = 1 : i64} : (tensor<2x64xf32>, tensor<3x2x64xf32>, tensor<9x2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  %1 = wg.loop [@outer](%0, %xs, %rows, %u) {carried = 1 : i64, length = 3 : i64, scanned = 1 : i64} : (tensor<2x64xf32>, tensor<3x2x64xf32>, tensor<9x2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %1 : tensor<2x64xf32>
}
