// inputs in [-1, 1]
// The first result takes its argument's place, which the second still reads.
func.func @overwritten_row(%x: tensor<4x1xf64>, %w: tensor<4xf64> {wg.result = 0 : i64}) -> (tensor<4xf64>, tensor<4xf64>) {
  %s = wg.reduce_sum %x axes [1] : tensor<4x1xf64> -> tensor<4xf64>
  %t = wg.tanh %s : tensor<4xf64>
  %y = wg.add %w, %t : tensor<4xf64>
  return %t, %y : tensor<4xf64>, tensor<4xf64>
}
// The first result is ready before the second, which reads the whole row of the argument once more; the reduction is of another dtype.
func.func @overwritten_elements(%w: tensor<4x100xf32> {wg.result = 0 : i64}) -> (tensor<4x100xf32>, tensor<4x100xf32>) {
  %h = wg.constant dense<0.9> : tensor<4x100xf32>
  %n = wg.neg %w : tensor<4x100xf32>
  %c = wg.greater %n, %h : tensor<4x100xf32>
  %a = wg.reduce_any %c axes [1] : tensor<4x100xi1> -> tensor<4xi1>
  %aa = wg.broadcast %a to [4, 100] dims [0] : tensor<4xi1> -> tensor<4x100xi1>
  %t = wg.tanh %n : tensor<4x100xf32>
  %s = wg.select %aa, %w, %h : tensor<4x100xi1>, tensor<4x100xf32>
  return %t, %s : tensor<4x100xf32>, tensor<4x100xf32>
}
