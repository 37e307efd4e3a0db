// inputs in [-0.2, 0.2]
// A routine between kernels, in place of what it alone reads, and a matrix that is a view.
func.func @between(%a: tensor<9x9xf64>, %b: tensor<9x5xf64>, %c: tensor<5xf64>) -> tensor<9x5xf64> {
  %t = wg.tanh %b : tensor<9x5xf64>
  %at = wg.transpose %a by [1, 0] : tensor<9x9xf64> -> tensor<9x9xf64>
  %x = wg.triangular_solve %at, %t {unit_diagonal = true} : tensor<9x9xf64>, tensor<9x5xf64> -> tensor<9x5xf64>
  %cc = wg.broadcast %c to [9, 5] dims [1] : tensor<5xf64> -> tensor<9x5xf64>
  %y = wg.mul %x, %cc : tensor<9x5xf64>
  return %y : tensor<9x5xf64>
}
// The right side is an argument that the result takes the place of.
func.func @donated(%a: tensor<3x7x7xf32>, %b: tensor<3x7x33xf32> {wg.result = 0 : i64}) -> tensor<3x7x33xf32> {
  %x = wg.triangular_solve %a, %b {lower = false, unit_diagonal = true} : tensor<3x7x7xf32>, tensor<3x7x33xf32> -> tensor<3x7x33xf32>
  return %x : tensor<3x7x33xf32>
}
// The same, but the old value is a result as well; and the matrix is its own right side.
func.func @kept(%a: tensor<6x6xf32>, %b: tensor<6x6xf32> {wg.result = 0 : i64}) -> (tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>) {
  %x = wg.triangular_solve %a, %b {unit_diagonal = true} : tensor<6x6xf32>, tensor<6x6xf32> -> tensor<6x6xf32>
  %y = wg.triangular_solve %a, %a {transpose = true, unit_diagonal = true} : tensor<6x6xf32>, tensor<6x6xf32> -> tensor<6x6xf32>
  return %x, %b, %y : tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>
}
// Solves after one another, each in the memory of the one before; equal ones are one function.
func.func @chain(%a: tensor<8x8xf64>, %b: tensor<8x3xf64>) -> tensor<8x3xf64> {
  %n = wg.neg %b : tensor<8x3xf64>
  %x = wg.triangular_solve %a, %n {unit_diagonal = true} : tensor<8x8xf64>, tensor<8x3xf64> -> tensor<8x3xf64>
  %y = wg.triangular_solve %a, %x {transpose = true, unit_diagonal = true} : tensor<8x8xf64>, tensor<8x3xf64> -> tensor<8x3xf64>
  %z = wg.triangular_solve %a, %y {unit_diagonal = true} : tensor<8x8xf64>, tensor<8x3xf64> -> tensor<8x3xf64>
  return %z : tensor<8x3xf64>
}
