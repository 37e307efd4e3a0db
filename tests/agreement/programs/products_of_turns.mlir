// inputs in [-1, 1]
// Products that leave loops (passes/ProductsLeaveLoops.cpp), and those of rows of a table (passes/ProductsOfTables.cpp).
func.func @before(%h: tensor<2x64xf32>, %xs: tensor<9x2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %0 = wg.loop [@turn_before](%h, %xs, %u) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<2x64xf32>, tensor<9x2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}
func.func private @turn_before(%h: tensor<2x64xf32>, %x: tensor<2x64xf32>, %u: tensor<64x64xf32>) -> tensor<2x64xf32> {
  %z = wg.contract "mk,kn->mn" %x, %u : tensor<2x64xf32>, tensor<64x64xf32> -> tensor<2x64xf32>
  %n = wg.sub %h, %z : tensor<2x64xf32>
  return %n : tensor<2x64xf32>
}
func.func @parts(%h: tensor<1x32xf32>, %xs: tensor<9x1x64xf32>, %w: tensor<128x64xf32>) -> tensor<1x32xf32> {
  %0 = wg.loop [@turn_parts](%h, %xs, %w) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<1x32xf32>, tensor<9x1x64xf32>, tensor<128x64xf32>) -> tensor<1x32xf32>
  return %0 : tensor<1x32xf32>
}
func.func private @turn_parts(%h: tensor<1x32xf32>, %x: tensor<1x64xf32>, %w: tensor<128x64xf32>) -> tensor<1x32xf32> {
  %hxh = wg.concat %h, %x, %h axis 1 : tensor<1x32xf32>, tensor<1x64xf32>, tensor<1x32xf32> -> tensor<1x128xf32>
  %z = wg.contract "mk,kn->mn" %hxh, %w : tensor<1x128xf32>, tensor<128x64xf32> -> tensor<1x64xf32>
  %n = wg.slice %z from [0, 32] to [1, 64] by [1, 1] : tensor<1x64xf32> -> tensor<1x32xf32>
  return %n : tensor<1x32xf32>
}
func.func @sums(%g: tensor<1x128xf32>, %d: tensor<128x128xf32>, %hs: tensor<9x1x128xf32>, %u: tensor<128x128xf32>) -> (tensor<1x128xf32>, tensor<128x128xf32>, tensor<9x1x128xf32>) {
  %0:3 = wg.loop [@turn_sums](%g, %d, %hs, %u) {carried = 2 : i64, length = 9 : i64, reversed = true, scanned = 1 : i64} : (tensor<1x128xf32>, tensor<128x128xf32>, tensor<9x1x128xf32>, tensor<128x128xf32>) -> (tensor<1x128xf32>, tensor<128x128xf32>, tensor<9x1x128xf32>)
  return %0#0, %0#1, %0#2 : tensor<1x128xf32>, tensor<128x128xf32>, tensor<9x1x128xf32>
}
func.func private @turn_sums(%g: tensor<1x128xf32>, %d: tensor<128x128xf32>, %h: tensor<1x128xf32>, %u: tensor<128x128xf32>) -> (tensor<1x128xf32>, tensor<128x128xf32>, tensor<1x128xf32>) {
  %z = wg.mul %g, %h : tensor<1x128xf32>
  %p = wg.contract "mk,mn->kn" %h, %z : tensor<1x128xf32>, tensor<1x128xf32> -> tensor<128x128xf32>
  %s = wg.add %d, %p : tensor<128x128xf32>
  %x = wg.contract "mn,kn->mk" %z, %u : tensor<1x128xf32>, tensor<128x128xf32> -> tensor<1x128xf32>
  return %z, %s, %x : tensor<1x128xf32>, tensor<128x128xf32>, tensor<1x128xf32>
}
func.func @embedding(%e: tensor<10x64xf32>, %h: tensor<8x64xf32>, %v: tensor<128x192xf32>, %d: tensor<128x192xf32>, %zero: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<128x192xf32>, tensor<10x64xf32>) {
  %small = wg.constant dense<0.05> : tensor<128x192xf32>
  %w = wg.mul %v, %small : tensor<128x192xf32>
  %n = wg.iota to [72] axis 0 {dtype = i32} : tensor<72xi32>
  %seven = wg.constant dense<7> : tensor<72xi32>
  %r = wg.remainder %n, %seven : tensor<72xi32>
  %i = wg.reshape %r to [9, 8] : tensor<72xi32> -> tensor<9x8xi32>
  %xs = wg.gather %e, %i : tensor<10x64xf32>, tensor<9x8xi32> -> tensor<9x8x64xf32>
  %0:3 = wg.loop [@turn_embedding](%h, %xs, %w) {carried = 1 : i64, length = 9 : i64, scanned = 1 : i64} : (tensor<8x64xf32>, tensor<9x8x64xf32>, tensor<128x192xf32>) -> (tensor<8x64xf32>, tensor<9x8x192xf32>, tensor<9x8x128xf32>)
  %1:3 = wg.loop [@back_embedding](%zero, %d, %0#1, %0#2, %w) {carried = 2 : i64, length = 9 : i64, reversed = true, scanned = 2 : i64} : (tensor<8x64xf32>, tensor<128x192xf32>, tensor<9x8x192xf32>, tensor<9x8x128xf32>, tensor<128x192xf32>) -> (tensor<8x64xf32>, tensor<128x192xf32>, tensor<9x8x64xf32>)
  %2 = wg.scatter_add %1#2, %i to [10, 64] : tensor<9x8x64xf32>, tensor<9x8xi32> -> tensor<10x64xf32>
  return %1#0, %1#1, %2 : tensor<8x64xf32>, tensor<128x192xf32>, tensor<10x64xf32>
}
func.func private @turn_embedding(%h: tensor<8x64xf32>, %x: tensor<8x64xf32>, %w: tensor<128x192xf32>) -> (tensor<8x64xf32>, tensor<8x192xf32>, tensor<8x128xf32>) {
  %xh = wg.concat %x, %h axis 1 : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x128xf32>
  %z = wg.contract "mk,kn->mn" %xh, %w : tensor<8x128xf32>, tensor<128x192xf32> -> tensor<8x192xf32>
  %y = wg.tanh %z : tensor<8x192xf32>
  %n = wg.slice %y from [0, 0] to [8, 64] by [1, 1] : tensor<8x192xf32> -> tensor<8x64xf32>
  return %n, %y, %xh : tensor<8x64xf32>, tensor<8x192xf32>, tensor<8x128xf32>
}
func.func private @back_embedding(%g: tensor<8x64xf32>, %d: tensor<128x192xf32>, %y: tensor<8x192xf32>, %xh: tensor<8x128xf32>, %w: tensor<128x192xf32>) -> (tensor<8x64xf32>, tensor<128x192xf32>, tensor<8x64xf32>) {
  %g3 = wg.concat %g, %g, %g axis 1 : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x192xf32>
  %gy = wg.mul %g3, %y : tensor<8x192xf32>
  %z = wg.tanh %gy : tensor<8x192xf32>
  %q = wg.contract "mk,mn->kn" %xh, %z : tensor<8x128xf32>, tensor<8x192xf32> -> tensor<128x192xf32>
  %s = wg.add %d, %q : tensor<128x192xf32>
  %p = wg.contract "mn,kn->mk" %z, %w : tensor<8x192xf32>, tensor<128x192xf32> -> tensor<8x128xf32>
  %x = wg.slice %p from [0, 0] to [8, 64] by [1, 1] : tensor<8x128xf32> -> tensor<8x64xf32>
  %n = wg.slice %p from [0, 64] to [8, 128] by [1, 1] : tensor<8x128xf32> -> tensor<8x64xf32>
  return %n, %s, %x : tensor<8x64xf32>, tensor<128x192xf32>, tensor<8x64xf32>
}
