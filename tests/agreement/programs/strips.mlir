// inputs in [-1, 1]
// Moves of more than a MB in which an axis is in strips without AVX-512: of plain loops, of that of blocks which are
// read across, with and without a rest, around loops of each depth.
func.func @whole_outermost(%x: tensor<4x113x160x5xf32>) -> tensor<160x4x113x5xf32> {
  %y = wg.transpose %x by [2, 0, 1, 3] : tensor<4x113x160x5xf32> -> tensor<160x4x113x5xf32>
  return %y : tensor<160x4x113x5xf32>
}
func.func @rest_outermost(%x: tensor<40x4x351x4xf32>) -> tensor<351x40x4x4xf32> {
  %y = wg.transpose %x by [2, 0, 1, 3] : tensor<40x4x351x4xf32> -> tensor<351x40x4x4xf32>
  return %y : tensor<351x40x4x4xf32>
}
func.func @second_loop(%x: tensor<7x38x560x3xf32>) -> tensor<3x560x38x7xf32> {
  %y = wg.transpose %x by [3, 2, 1, 0] : tensor<7x38x560x3xf32> -> tensor<3x560x38x7xf32>
  return %y : tensor<3x560x38x7xf32>
}
func.func @third_loop(%x: tensor<4x59x11x47x3xf32>) -> tensor<11x3x47x59x4xf32> {
  %y = wg.transpose %x by [2, 4, 3, 1, 0] : tensor<4x59x11x47x3xf32> -> tensor<11x3x47x59x4xf32>
  return %y : tensor<11x3x47x59x4xf32>
}
func.func @across(%x: tensor<2x98x130x7xf32>) -> tensor<130x7x98x2xf32> {
  %y = wg.transpose %x by [2, 3, 1, 0] : tensor<2x98x130x7xf32> -> tensor<130x7x98x2xf32>
  return %y : tensor<130x7x98x2xf32>
}
func.func @across_rest(%x: tensor<2x3x125x2x647xf32>) -> tensor<2x647x125x3x2xf32> {
  %y = wg.transpose %x by [3, 4, 2, 1, 0] : tensor<2x3x125x2x647xf32> -> tensor<2x647x125x3x2xf32>
  return %y : tensor<2x647x125x3x2xf32>
}
func.func @across_second(%x: tensor<2x2x465x761xf32>) -> tensor<2x761x465x2xf32> {
  %y = wg.transpose %x by [1, 3, 2, 0] : tensor<2x2x465x761xf32> -> tensor<2x761x465x2xf32>
  return %y : tensor<2x761x465x2xf32>
}
func.func @rows_f64(%x: tensor<40x4x351x4xf64>) -> tensor<351x40x4x4xf64> {
  %y = wg.transpose %x by [2, 0, 1, 3] : tensor<40x4x351x4xf64> -> tensor<351x40x4x4xf64>
  return %y : tensor<351x40x4x4xf64>
}
func.func @times(%x: tensor<4x113x160x5xf32>, %v: tensor<5xf32>) -> tensor<160x4x113x5xf32> {
  %t = wg.transpose %x by [2, 0, 1, 3] : tensor<4x113x160x5xf32> -> tensor<160x4x113x5xf32>
  %b = wg.broadcast %v to [160, 4, 113, 5] dims [3] : tensor<5xf32> -> tensor<160x4x113x5xf32>
  %y = wg.mul %t, %b : tensor<160x4x113x5xf32>
  return %y : tensor<160x4x113x5xf32>
}
func.func @times_across(%x: tensor<2x98x130x7xf32>, %v: tensor<98xf32>) -> tensor<130x7x98x2xf32> {
  %t = wg.transpose %x by [2, 3, 1, 0] : tensor<2x98x130x7xf32> -> tensor<130x7x98x2xf32>
  %b = wg.broadcast %v to [130, 7, 98, 2] dims [2] : tensor<98xf32> -> tensor<130x7x98x2xf32>
  %y = wg.mul %t, %b : tensor<130x7x98x2xf32>
  return %y : tensor<130x7x98x2xf32>
}
func.func @times_second_loop(%x: tensor<7x38x560x3xf32>, %v: tensor<560xf32>) -> tensor<3x560x38x7xf32> {
  %t = wg.transpose %x by [3, 2, 1, 0] : tensor<7x38x560x3xf32> -> tensor<3x560x38x7xf32>
  %b = wg.broadcast %v to [3, 560, 38, 7] dims [1] : tensor<560xf32> -> tensor<3x560x38x7xf32>
  %y = wg.mul %t, %b : tensor<3x560x38x7xf32>
  return %y : tensor<3x560x38x7xf32>
}
