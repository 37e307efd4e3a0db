// inputs in [-1, 1]
// Sums of two to four products, which may be written term by term: orders of the result, f64, letters of size 1, two
// summed letters, batches, a vector, what comes before and after, and the same operand twice.
func.func @orders(%a: tensor<2x19x70x23xf32>, %b: tensor<2x23x70xf32>) -> (tensor<19x70x23xf32>, tensor<70x23x19xf32>, tensor<23x19x70xf32>) {
  %p = wg.contract "jkil,jli->kil" %a, %b : tensor<2x19x70x23xf32>, tensor<2x23x70xf32> -> tensor<19x70x23xf32>
  %q = wg.contract "jkil,jli->ilk" %a, %b : tensor<2x19x70x23xf32>, tensor<2x23x70xf32> -> tensor<70x23x19xf32>
  %r = wg.contract "jkil,jli->lki" %a, %b : tensor<2x19x70x23xf32>, tensor<2x23x70xf32> -> tensor<23x19x70xf32>
  return %p, %q, %r : tensor<19x70x23xf32>, tensor<70x23x19xf32>, tensor<23x19x70xf32>
}
func.func @last(%a: tensor<203x56x4xf32>, %b: tensor<4x68x203xf32>) -> tensor<56x68x203xf32> {
  %p = wg.contract "ikl,lji->kji" %a, %b : tensor<203x56x4xf32>, tensor<4x68x203xf32> -> tensor<56x68x203xf32>
  return %p : tensor<56x68x203xf32>
}
func.func @two_letters(%a: tensor<2x40x1x2x33xf64>, %b: tensor<33x2x17x2xf64>) -> tensor<17x40x1x33xf64> {
  %p = wg.contract "iaxjb,bjci->caxb" %a, %b : tensor<2x40x1x2x33xf64>, tensor<33x2x17x2xf64> -> tensor<17x40x1x33xf64>
  return %p : tensor<17x40x1x33xf64>
}
func.func @vector(%a: tensor<12x19x5x2x17xf32>, %b: tensor<2xf32>) -> tensor<17x19x12x5xf32> {
  %p = wg.contract "jlkim,i->mljk" %a, %b : tensor<12x19x5x2x17xf32>, tensor<2xf32> -> tensor<17x19x12x5xf32>
  return %p : tensor<17x19x12x5xf32>
}
func.func @around(%x: tensor<301x3xf32>, %w: tensor<3x64xf32>, %c: tensor<64xf32>) -> tensor<301x64xf32> {
  %t = wg.tanh %x : tensor<301x3xf32>
  %p = wg.contract "mk,kn->mn" %t, %w : tensor<301x3xf32>, tensor<3x64xf32> -> tensor<301x64xf32>
  %cc = wg.broadcast %c to [301, 64] dims [1] : tensor<64xf32> -> tensor<301x64xf32>
  %s = wg.add %p, %cc : tensor<301x64xf32>
  %y = wg.tanh %s : tensor<301x64xf32>
  return %y : tensor<301x64xf32>
}
func.func @row(%a: tensor<3x700xf32>, %b: tensor<700x3x41xf32>) -> tensor<41x700xf32> {
  %p = wg.contract "ki,ikj->ji" %a, %b : tensor<3x700xf32>, tensor<700x3x41xf32> -> tensor<41x700xf32>
  return %p : tensor<41x700xf32>
}
func.func @same(%a: tensor<70x2x33xf32>) -> tensor<33x33x70xf32> {
  %p = wg.contract "bki,bkj->jib" %a, %a : tensor<70x2x33xf32>, tensor<70x2x33xf32> -> tensor<33x33x70xf32>
  return %p : tensor<33x33x70xf32>
}
