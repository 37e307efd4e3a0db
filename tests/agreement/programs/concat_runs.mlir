// inputs in [-1, 1]
// Pieces that lie in order are copied in runs from their axis on; others row by row.
func.func @rows(%a: tensor<3x5xf32>, %b: tensor<17x5xf32>, %c: tensor<1x5xf32>) -> tensor<21x5xf32> {
  %y = wg.concat %a, %b, %c axis 0 : tensor<3x5xf32>, tensor<17x5xf32>, tensor<1x5xf32> -> tensor<21x5xf32>
  return %y : tensor<21x5xf32>
}
func.func @middle(%a: tensor<7x3x2x2xf64>, %b: tensor<7x9x2x2xf64>) -> tensor<7x12x2x2xf64> {
  %y = wg.concat %a, %b axis 1 : tensor<7x3x2x2xf64>, tensor<7x9x2x2xf64> -> tensor<7x12x2x2xf64>
  return %y : tensor<7x12x2x2xf64>
}
func.func @short(%a: tensor<40x1xf32>, %b: tensor<40x2xf32>) -> tensor<40x3xf32> {
  %y = wg.concat %a, %b axis 1 : tensor<40x1xf32>, tensor<40x2xf32> -> tensor<40x3xf32>
  return %y : tensor<40x3xf32>
}
func.func @many(%a: tensor<2x3xf32>, %b: tensor<300x3xf32>, %c: tensor<411x3xf32>) -> tensor<1433x3xf32> {
  %y = wg.concat %a, %b, %c, %a, %b, %c, %a, %a, %a, %a, %a axis 0 : tensor<2x3xf32>, tensor<300x3xf32>, tensor<411x3xf32>, tensor<2x3xf32>, tensor<300x3xf32>, tensor<411x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<1436x3xf32>
  %z = wg.slice %y from [0, 0] to [1433, 3] by [1, 1] : tensor<1436x3xf32> -> tensor<1433x3xf32>
  return %z : tensor<1433x3xf32>
}
func.func @seen_otherwise(%a: tensor<5x300xf32>, %b: tensor<300x5xf32>) -> tensor<600x5xf32> {
  %t = wg.transpose %a by [1, 0] : tensor<5x300xf32> -> tensor<300x5xf32>
  %y = wg.concat %t, %b axis 0 : tensor<300x5xf32>, tensor<300x5xf32> -> tensor<600x5xf32>
  return %y : tensor<600x5xf32>
}
func.func @repeated(%a: tensor<5xf32>, %b: tensor<300x5xf32>) -> tensor<600x5xf32> {
  %t = wg.broadcast %a to [300, 5] dims [1] : tensor<5xf32> -> tensor<300x5xf32>
  %y = wg.concat %b, %t axis 0 : tensor<300x5xf32>, tensor<300x5xf32> -> tensor<600x5xf32>
  return %y : tensor<600x5xf32>
}
func.func @a_part(%a: tensor<64x9xf32>, %b: tensor<32x9xf32>) -> tensor<52x9xf32> {
  %s = wg.slice %a from [11, 0] to [31, 9] by [1, 1] : tensor<64x9xf32> -> tensor<20x9xf32>
  %y = wg.concat %s, %b axis 0 : tensor<20x9xf32>, tensor<32x9xf32> -> tensor<52x9xf32>
  return %y : tensor<52x9xf32>
}
