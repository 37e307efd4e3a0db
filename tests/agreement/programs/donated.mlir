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
// Short rows over themselves are stored in pieces, of which two may overlap: of each length, and alone and beside others.
func.func @rows_of_3(%x: tensor<33x3xf32> {wg.result = 0 : i64}) -> tensor<33x3xf32> {
  %m = wg.reduce_max %x axes [1] : tensor<33x3xf32> -> tensor<33xf32>
  %b = wg.broadcast %m to [33, 3] dims [0] : tensor<33xf32> -> tensor<33x3xf32>
  %y = wg.sub %x, %b : tensor<33x3xf32>
  return %y : tensor<33x3xf32>
}
func.func @rows_of_6(%x: tensor<33x6xf32> {wg.result = 0 : i64}) -> tensor<33x6xf32> {
  %m = wg.reduce_max %x axes [1] : tensor<33x6xf32> -> tensor<33xf32>
  %b = wg.broadcast %m to [33, 6] dims [0] : tensor<33xf32> -> tensor<33x6xf32>
  %y = wg.sub %x, %b : tensor<33x6xf32>
  return %y : tensor<33x6xf32>
}
func.func @rows_of_7(%x: tensor<33x7xf32> {wg.result = 0 : i64}) -> tensor<33x7xf32> {
  %m = wg.reduce_max %x axes [1] : tensor<33x7xf32> -> tensor<33xf32>
  %b = wg.broadcast %m to [33, 7] dims [0] : tensor<33xf32> -> tensor<33x7xf32>
  %y = wg.sub %x, %b : tensor<33x7xf32>
  return %y : tensor<33x7xf32>
}
func.func @rows_of_10(%x: tensor<33x10xf32> {wg.result = 0 : i64}) -> tensor<33x10xf32> {
  %m = wg.reduce_max %x axes [1] : tensor<33x10xf32> -> tensor<33xf32>
  %b = wg.broadcast %m to [33, 10] dims [0] : tensor<33xf32> -> tensor<33x10xf32>
  %y = wg.sub %x, %b : tensor<33x10xf32>
  return %y : tensor<33x10xf32>
}
func.func @rows_of_11(%x: tensor<33x11xf32> {wg.result = 0 : i64}) -> tensor<33x11xf32> {
  %m = wg.reduce_max %x axes [1] : tensor<33x11xf32> -> tensor<33xf32>
  %b = wg.broadcast %m to [33, 11] dims [0] : tensor<33xf32> -> tensor<33x11xf32>
  %y = wg.sub %x, %b : tensor<33x11xf32>
  return %y : tensor<33x11xf32>
}
func.func @rows_of_13(%x: tensor<33x13xf32> {wg.result = 0 : i64}) -> tensor<33x13xf32> {
  %m = wg.reduce_max %x axes [1] : tensor<33x13xf32> -> tensor<33xf32>
  %b = wg.broadcast %m to [33, 13] dims [0] : tensor<33xf32> -> tensor<33x13xf32>
  %y = wg.sub %x, %b : tensor<33x13xf32>
  return %y : tensor<33x13xf32>
}
func.func @rows_of_14(%x: tensor<33x14xf32> {wg.result = 0 : i64}) -> tensor<33x14xf32> {
  %m = wg.reduce_max %x axes [1] : tensor<33x14xf32> -> tensor<33xf32>
  %b = wg.broadcast %m to [33, 14] dims [0] : tensor<33xf32> -> tensor<33x14xf32>
  %y = wg.sub %x, %b : tensor<33x14xf32>
  return %y : tensor<33x14xf32>
}
func.func @rows_of_15(%x: tensor<33x15xf32> {wg.result = 0 : i64}) -> tensor<33x15xf32> {
  %m = wg.reduce_max %x axes [1] : tensor<33x15xf32> -> tensor<33xf32>
  %b = wg.broadcast %m to [33, 15] dims [0] : tensor<33xf32> -> tensor<33x15xf32>
  %y = wg.sub %x, %b : tensor<33x15xf32>
  return %y : tensor<33x15xf32>
}
func.func @rows_of_3_f64(%x: tensor<19x3xf64> {wg.result = 0 : i64}) -> tensor<19x3xf64> {
  %m = wg.reduce_max %x axes [1] : tensor<19x3xf64> -> tensor<19xf64>
  %b = wg.broadcast %m to [19, 3] dims [0] : tensor<19xf64> -> tensor<19x3xf64>
  %y = wg.sub %x, %b : tensor<19x3xf64>
  return %y : tensor<19x3xf64>
}
func.func @rows_of_5_f64(%x: tensor<19x5xf64> {wg.result = 0 : i64}) -> tensor<19x5xf64> {
  %m = wg.reduce_max %x axes [1] : tensor<19x5xf64> -> tensor<19xf64>
  %b = wg.broadcast %m to [19, 5] dims [0] : tensor<19xf64> -> tensor<19x5xf64>
  %y = wg.sub %x, %b : tensor<19x5xf64>
  return %y : tensor<19x5xf64>
}
func.func @rows_of_6_f64(%x: tensor<19x6xf64> {wg.result = 0 : i64}) -> tensor<19x6xf64> {
  %m = wg.reduce_max %x axes [1] : tensor<19x6xf64> -> tensor<19xf64>
  %b = wg.broadcast %m to [19, 6] dims [0] : tensor<19xf64> -> tensor<19x6xf64>
  %y = wg.sub %x, %b : tensor<19x6xf64>
  return %y : tensor<19x6xf64>
}
func.func @rows_of_7_f64(%x: tensor<19x7xf64> {wg.result = 0 : i64}) -> tensor<19x7xf64> {
  %m = wg.reduce_max %x axes [1] : tensor<19x7xf64> -> tensor<19xf64>
  %b = wg.broadcast %m to [19, 7] dims [0] : tensor<19xf64> -> tensor<19x7xf64>
  %y = wg.sub %x, %b : tensor<19x7xf64>
  return %y : tensor<19x7xf64>
}
func.func @rows_of_5_i32(%x: tensor<19x5xi32> {wg.result = 0 : i64}) -> tensor<19x5xi32> {
  %m = wg.reduce_max %x axes [1] : tensor<19x5xi32> -> tensor<19xi32>
  %b = wg.broadcast %m to [19, 5] dims [0] : tensor<19xi32> -> tensor<19x5xi32>
  %y = wg.sub %x, %b : tensor<19x5xi32>
  return %y : tensor<19x5xi32>
}
func.func @rows_of_7_i32(%x: tensor<19x7xi32> {wg.result = 0 : i64}) -> tensor<19x7xi32> {
  %m = wg.reduce_max %x axes [1] : tensor<19x7xi32> -> tensor<19xi32>
  %b = wg.broadcast %m to [19, 7] dims [0] : tensor<19xi32> -> tensor<19x7xi32>
  %y = wg.sub %x, %b : tensor<19x7xi32>
  return %y : tensor<19x7xi32>
}
func.func @rows_of_13_i32(%x: tensor<19x13xi32> {wg.result = 0 : i64}) -> tensor<19x13xi32> {
  %m = wg.reduce_max %x axes [1] : tensor<19x13xi32> -> tensor<19xi32>
  %b = wg.broadcast %m to [19, 13] dims [0] : tensor<19xi32> -> tensor<19x13xi32>
  %y = wg.sub %x, %b : tensor<19x13xi32>
  return %y : tensor<19x13xi32>
}
func.func @across_7_f32(%x: tensor<7x21xf32>, %v: tensor<21x7xf32> {wg.result = 0 : i64}, %w: tensor<21x7xf32> {wg.result = 1 : i64}) -> (tensor<21x7xf32>, tensor<21x7xf32>) {
  %g = wg.transpose %x by [1, 0] : tensor<7x21xf32> -> tensor<21x7xf32>
  %s = wg.add %v, %g : tensor<21x7xf32>
  %p = wg.mul %s, %g : tensor<21x7xf32>
  %y = wg.sub %w, %p : tensor<21x7xf32>
  return %s, %y : tensor<21x7xf32>, tensor<21x7xf32>
}
func.func @across_11_f32(%x: tensor<11x21xf32>, %v: tensor<21x11xf32> {wg.result = 0 : i64}, %w: tensor<21x11xf32> {wg.result = 1 : i64}) -> (tensor<21x11xf32>, tensor<21x11xf32>) {
  %g = wg.transpose %x by [1, 0] : tensor<11x21xf32> -> tensor<21x11xf32>
  %s = wg.add %v, %g : tensor<21x11xf32>
  %p = wg.mul %s, %g : tensor<21x11xf32>
  %y = wg.sub %w, %p : tensor<21x11xf32>
  return %s, %y : tensor<21x11xf32>, tensor<21x11xf32>
}
func.func @across_5_f64(%x: tensor<5x21xf64>, %v: tensor<21x5xf64> {wg.result = 0 : i64}, %w: tensor<21x5xf64> {wg.result = 1 : i64}) -> (tensor<21x5xf64>, tensor<21x5xf64>) {
  %g = wg.transpose %x by [1, 0] : tensor<5x21xf64> -> tensor<21x5xf64>
  %s = wg.add %v, %g : tensor<21x5xf64>
  %p = wg.mul %s, %g : tensor<21x5xf64>
  %y = wg.sub %w, %p : tensor<21x5xf64>
  return %s, %y : tensor<21x5xf64>, tensor<21x5xf64>
}
func.func @rows_of_bool(%x: tensor<21x11xi1> {wg.result = 0 : i64}) -> tensor<21x11xi1> {
  %m = wg.reduce_any %x axes [1] : tensor<21x11xi1> -> tensor<21xi1>
  %b = wg.broadcast %m to [21, 11] dims [0] : tensor<21xi1> -> tensor<21x11xi1>
  %y = wg.not_equal %x, %b : tensor<21x11xi1>
  return %y : tensor<21x11xi1>
}
