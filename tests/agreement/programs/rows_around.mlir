// inputs in [-1, 1]
// Products of few terms whose result has letters of a batch, or columns, within each row, and is more than caches close
// by hold: the loop over rows is around them.
func.func @batch(%a: tensor<3101x7x11xf32>, %b: tensor<7x11x101xf32>) -> tensor<3101x7x101xf32> {
  %p = wg.contract "nhk,hkj->nhj" %a, %b : tensor<3101x7x11xf32>, tensor<7x11x101xf32> -> tensor<3101x7x101xf32>
  return %p : tensor<3101x7x101xf32>
}
func.func @columns(%a: tensor<3101x5xf32>, %b: tensor<7x5x101xf32>) -> tensor<3101x7x101xf32> {
  %p = wg.contract "nk,hkj->nhj" %a, %b : tensor<3101x5xf32>, tensor<7x5x101xf32> -> tensor<3101x7x101xf32>
  return %p : tensor<3101x7x101xf32>
}
func.func @one_row_at_a_time(%a: tensor<30011x3x4xf32>, %b: tensor<3x4x99xf32>) -> tensor<30011x3x99xf32> {
  %p = wg.contract "nhk,hkj->nhj" %a, %b : tensor<30011x3x4xf32>, tensor<3x4x99xf32> -> tensor<30011x3x99xf32>
  return %p : tensor<30011x3x99xf32>
}
func.func @further_rows(%a: tensor<61x5x23x7xf64>, %b: tensor<5x7x153xf64>) -> tensor<23x61x5x153xf64> {
  %p = wg.contract "nhik,hkj->inhj" %a, %b : tensor<61x5x23x7xf64>, tensor<5x7x153xf64> -> tensor<23x61x5x153xf64>
  return %p : tensor<23x61x5x153xf64>
}
func.func @added(%a: tensor<3101x7x11xf32>, %b: tensor<7x11x101xf32>, %s: tensor<7x101xf32>) -> tensor<3101x7x101xf32> {
  %p = wg.contract "nhk,hkj->nhj" %a, %b : tensor<3101x7x11xf32>, tensor<7x11x101xf32> -> tensor<3101x7x101xf32>
  %t = wg.broadcast %s to [3101, 7, 101] dims [1, 2] : tensor<7x101xf32> -> tensor<3101x7x101xf32>
  %r = wg.add %p, %t : tensor<3101x7x101xf32>
  return %r : tensor<3101x7x101xf32>
}
func.func @narrow(%a: tensor<40013x8x8xf32>, %b: tensor<8x8x7xf32>) -> tensor<40013x8x7xf32> {
  %p = wg.contract "nhk,hkj->nhj" %a, %b : tensor<40013x8x8xf32>, tensor<8x8x7xf32> -> tensor<40013x8x7xf32>
  return %p : tensor<40013x8x7xf32>
}
func.func @residual(%a: tensor<16411x8x16xf32>, %b: tensor<8x16x16xf32>, %d: tensor<16411x8x16xf32>) -> tensor<16411x8x16xf32> {
  %p = wg.contract "nhk,hkj->nhj" %a, %b : tensor<16411x8x16xf32>, tensor<8x16x16xf32> -> tensor<16411x8x16xf32>
  %r = wg.add %p, %d : tensor<16411x8x16xf32>
  return %r : tensor<16411x8x16xf32>
}
func.func @letters_of_rows(%a: tensor<4001x6x9x5xf32>, %b: tensor<6x9x17xf32>) -> tensor<4001x5x6x17xf32> {
  %p = wg.contract "nhki,hkj->nihj" %a, %b : tensor<4001x6x9x5xf32>, tensor<6x9x17xf32> -> tensor<4001x5x6x17xf32>
  return %p : tensor<4001x5x6x17xf32>
}
func.func @outside_and_within(%a: tensor<3x1411x5x9xf32>, %b: tensor<3x5x9x103xf32>) -> tensor<3x1411x5x103xf32> {
  %p = wg.contract "gnhk,ghkj->gnhj" %a, %b : tensor<3x1411x5x9xf32>, tensor<3x5x9x103xf32> -> tensor<3x1411x5x103xf32>
  return %p : tensor<3x1411x5x103xf32>
}
func.func @columns_outside(%a: tensor<1411x5x9xf32>, %b: tensor<3x5x9x103xf32>) -> tensor<3x1411x5x103xf32> {
  %p = wg.contract "nhk,ghkj->gnhj" %a, %b : tensor<1411x5x9xf32>, tensor<3x5x9x103xf32> -> tensor<3x1411x5x103xf32>
  return %p : tensor<3x1411x5x103xf32>
}
