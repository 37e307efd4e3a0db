// inputs in [-1, 1]
// Sums long enough to go in parts, with rows of a along the terms or across them, tiles and vectors that are not full,
// f64, what follows, and a single panel.
func.func @across(%a: tensor<9001x40xf32>, %b: tensor<9001x37xf32>) -> tensor<40x37xf32> {
  %p = wg.contract "km,kn->mn" %a, %b : tensor<9001x40xf32>, tensor<9001x37xf32> -> tensor<40x37xf32>
  return %p : tensor<40x37xf32>
}
func.func @along(%a: tensor<43x9000xf32>, %b: tensor<9000x67xf32>, %c: tensor<67xf32>) -> (tensor<43x67xf32>, tensor<43x67xf32>) {
  %p = wg.contract "mk,kn->mn" %a, %b : tensor<43x9000xf32>, tensor<9000x67xf32> -> tensor<43x67xf32>
  %cc = wg.broadcast %c to [43, 67] dims [1] : tensor<67xf32> -> tensor<43x67xf32>
  %s = wg.mul %p, %cc : tensor<43x67xf32>
  return %p, %s : tensor<43x67xf32>, tensor<43x67xf32>
}
func.func @exchanged(%a: tensor<8200x34xf64>, %b: tensor<8200x15xf64>) -> tensor<15x34xf64> {
  %p = wg.contract "km,kn->nm" %a, %b : tensor<8200x34xf64>, tensor<8200x15xf64> -> tensor<15x34xf64>
  return %p : tensor<15x34xf64>
}
func.func @few_columns(%a: tensor<5000x300xf32>, %b: tensor<5000x23xf32>) -> tensor<300x23xf32> {
  %p = wg.contract "km,kn->mn" %a, %b : tensor<5000x300xf32>, tensor<5000x23xf32> -> tensor<300x23xf32>
  return %p : tensor<300x23xf32>
}
