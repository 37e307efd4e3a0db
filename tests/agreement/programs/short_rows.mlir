// inputs in [-1, 1]
// Moves of more than a MB in short rows: axes in strips of 64 places without AVX-512, with and without a rest, around
// loops of each depth; rows, and blocks of whole rows, that ask ahead.
func.func @whole_strips(%x: tensor<7x2624x4x4xf32>) -> tensor<7x4x2624x4xf32> {
  %y = wg.transpose %x by [0, 2, 1, 3] : tensor<7x2624x4x4xf32> -> tensor<7x4x2624x4xf32>
  return %y : tensor<7x4x2624x4xf32>
}
func.func @outermost(%x: tensor<235x1254x2xf32>) -> tensor<1254x235x2xf32> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<235x1254x2xf32> -> tensor<1254x235x2xf32>
  return %y : tensor<1254x235x2xf32>
}
func.func @second_loop(%x: tensor<2x221x1080x2xf32>) -> tensor<2x1080x221x2xf32> {
  %y = wg.transpose %x by [0, 2, 1, 3] : tensor<2x221x1080x2xf32> -> tensor<2x1080x221x2xf32>
  return %y : tensor<2x1080x221x2xf32>
}
func.func @third_loop(%x: tensor<27x2x2x306x4xf32>) -> tensor<2x27x306x2x4xf32> {
  %y = wg.transpose %x by [1, 0, 3, 2, 4] : tensor<27x2x2x306x4xf32> -> tensor<2x27x306x2x4xf32>
  return %y : tensor<2x27x306x2x4xf32>
}
func.func @f64(%x: tensor<235x1254x2xf64>) -> tensor<1254x235x2xf64> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<235x1254x2xf64> -> tensor<1254x235x2xf64>
  return %y : tensor<1254x235x2xf64>
}
func.func @times(%x: tensor<235x1254x2xf32>, %v: tensor<2xf32>) -> tensor<1254x235x2xf32> {
  %t = wg.transpose %x by [1, 0, 2] : tensor<235x1254x2xf32> -> tensor<1254x235x2xf32>
  %b = wg.broadcast %v to [1254, 235, 2] dims [2] : tensor<2xf32> -> tensor<1254x235x2xf32>
  %y = wg.mul %t, %b : tensor<1254x235x2xf32>
  return %y : tensor<1254x235x2xf32>
}
func.func @times_second_loop(%x: tensor<2x221x1080x2xf32>, %v: tensor<2xf32>) -> tensor<2x1080x221x2xf32> {
  %t = wg.transpose %x by [0, 2, 1, 3] : tensor<2x221x1080x2xf32> -> tensor<2x1080x221x2xf32>
  %b = wg.broadcast %v to [2, 1080, 221, 2] dims [3] : tensor<2xf32> -> tensor<2x1080x221x2xf32>
  %y = wg.mul %t, %b : tensor<2x1080x221x2xf32>
  return %y : tensor<2x1080x221x2xf32>
}
func.func @runs(%x: tensor<22x6670x5xf32>) -> tensor<6670x22x5xf32> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<22x6670x5xf32> -> tensor<6670x22x5xf32>
  return %y : tensor<6670x22x5xf32>
}
func.func @runs_later(%x: tensor<6670x22x5xf32>) -> tensor<22x6670x5xf32> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<6670x22x5xf32> -> tensor<22x6670x5xf32>
  return %y : tensor<22x6670x5xf32>
}
func.func @blocks(%x: tensor<62x5x41x9x3xf32>) -> tensor<41x5x3x62x9xf32> {
  %y = wg.transpose %x by [2, 1, 4, 0, 3] : tensor<62x5x41x9x3xf32> -> tensor<41x5x3x62x9xf32>
  return %y : tensor<41x5x3x62x9xf32>
}
func.func @blocks_times(%x: tensor<62x5x41x9x3xf32>, %v: tensor<62xf32>) -> tensor<41x5x3x62x9xf32> {
  %t = wg.transpose %x by [2, 1, 4, 0, 3] : tensor<62x5x41x9x3xf32> -> tensor<41x5x3x62x9xf32>
  %b = wg.broadcast %v to [41, 5, 3, 62, 9] dims [3] : tensor<62xf32> -> tensor<41x5x3x62x9xf32>
  %y = wg.mul %t, %b : tensor<41x5x3x62x9xf32>
  return %y : tensor<41x5x3x62x9xf32>
}
func.func @blocks_of_parts(%x: tensor<62x3x41x11x7xf32>) -> tensor<41x3x7x62x11xf32> {
  %y = wg.transpose %x by [2, 1, 4, 0, 3] : tensor<62x3x41x11x7xf32> -> tensor<41x3x7x62x11xf32>
  return %y : tensor<41x3x7x62x11xf32>
}
func.func @bytes(%x: tensor<22x22670x5xui8>) -> tensor<22670x22x5xui8> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<22x22670x5xui8> -> tensor<22670x22x5xui8>
  return %y : tensor<22670x22x5xui8>
}
func.func @bools(%x: tensor<22x22670x5xi1>) -> tensor<22670x22x5xi1> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<22x22670x5xi1> -> tensor<22670x22x5xi1>
  return %y : tensor<22670x22x5xi1>
}
func.func @reversed(%x: tensor<22x6670x5xf32>) -> tensor<6670x22x5xf32> {
  %r = wg.reverse %x axes [1] : tensor<22x6670x5xf32> -> tensor<22x6670x5xf32>
  %y = wg.transpose %r by [1, 0, 2] : tensor<22x6670x5xf32> -> tensor<6670x22x5xf32>
  return %y : tensor<6670x22x5xf32>
}
func.func @neighbours(%x: tensor<22x6670x5xf32>) -> tensor<6670x22x4xf32> {
  %a = wg.slice %x from [0, 0, 0] to [22, 6670, 4] by [1, 1, 1] : tensor<22x6670x5xf32> -> tensor<22x6670x4xf32>
  %b = wg.slice %x from [0, 0, 1] to [22, 6670, 5] by [1, 1, 1] : tensor<22x6670x5xf32> -> tensor<22x6670x4xf32>
  %d = wg.sub %b, %a : tensor<22x6670x4xf32>
  %y = wg.transpose %d by [1, 0, 2] : tensor<22x6670x4xf32> -> tensor<6670x22x4xf32>
  return %y : tensor<6670x22x4xf32>
}
