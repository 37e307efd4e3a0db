// inputs in [-1, 1]
func.func @softmax(%x: tensor<9x10xf32>) -> tensor<9x10xf32> {
  %m = wg.reduce_max %x axes [1] : tensor<9x10xf32> -> tensor<9xf32>
  %mm = wg.broadcast %m to [9, 10] dims [0] : tensor<9xf32> -> tensor<9x10xf32>
  %d = wg.sub %x, %mm : tensor<9x10xf32>
  %e = wg.exp %d : tensor<9x10xf32>
  %s = wg.reduce_sum %e axes [1] : tensor<9x10xf32> -> tensor<9xf32>
  %ss = wg.broadcast %s to [9, 10] dims [0] : tensor<9xf32> -> tensor<9x10xf32>
  %y = wg.div %e, %ss : tensor<9x10xf32>
  return %y : tensor<9x10xf32>
}
func.func @softmax_wide(%x: tensor<3x1037xf32>) -> (tensor<3x1037xf32>, tensor<3xf32>) {
  %m = wg.reduce_max %x axes [1] : tensor<3x1037xf32> -> tensor<3xf32>
  %mm = wg.broadcast %m to [3, 1037] dims [0] : tensor<3xf32> -> tensor<3x1037xf32>
  %d = wg.sub %x, %mm : tensor<3x1037xf32>
  %e = wg.exp %d : tensor<3x1037xf32>
  %s = wg.reduce_sum %e axes [1] : tensor<3x1037xf32> -> tensor<3xf32>
  %l = wg.log %s : tensor<3xf32>
  %t = wg.add %l, %m : tensor<3xf32>
  %ss = wg.broadcast %s to [3, 1037] dims [0] : tensor<3xf32> -> tensor<3x1037xf32>
  %y = wg.div %e, %ss : tensor<3x1037xf32>
  return %y, %t : tensor<3x1037xf32>, tensor<3xf32>
}
func.func @columns(%x: tensor<65x43xf32>, %w: tensor<43xf32>) -> (tensor<43xf32>, tensor<f32>) {
  %s = wg.reduce_sum %x axes [0] : tensor<65x43xf32> -> tensor<43xf32>
  %u = wg.sub %w, %s : tensor<43xf32>
  %q = wg.mul %x, %x : tensor<65x43xf32>
  %t = wg.reduce_sum %q axes [0, 1] : tensor<65x43xf32> -> tensor<f32>
  return %u, %t : tensor<43xf32>, tensor<f32>
}
func.func @middle(%x: tensor<4x5x6xf64>) -> (tensor<4x6xf64>, tensor<5xf64>, tensor<4x5x6xf64>) {
  %s = wg.reduce_sum %x axes [1] : tensor<4x5x6xf64> -> tensor<4x6xf64>
  %m = wg.reduce_max %x axes [0, 2] : tensor<4x5x6xf64> -> tensor<5xf64>
  %b = wg.broadcast %m to [4, 5, 6] dims [1] : tensor<5xf64> -> tensor<4x5x6xf64>
  %d = wg.sub %x, %b : tensor<4x5x6xf64>
  return %s, %m, %d : tensor<4x6xf64>, tensor<5xf64>, tensor<4x5x6xf64>
}
func.func @long(%x: tensor<100003xf32>) -> tensor<f32> {
  %q = wg.mul %x, %x : tensor<100003xf32>
  %t = wg.reduce_sum %q axes [0] : tensor<100003xf32> -> tensor<f32>
  return %t : tensor<f32>
}
func.func @counts(%i: tensor<50xi32>, %j: tensor<50xi32>) -> (tensor<i32>, tensor<i1>, tensor<f32>) {
  %e = wg.equal %i, %j : tensor<50xi32>
  %n = wg.cast %e {dtype = i32} : tensor<50xi1> -> tensor<50xi32>
  %s = wg.reduce_sum %n axes [0] : tensor<50xi32> -> tensor<i32>
  %a = wg.reduce_all %e axes [0] : tensor<50xi1> -> tensor<i1>
  %f = wg.cast %s {dtype = f32} : tensor<i32> -> tensor<f32>
  return %s, %a, %f : tensor<i32>, tensor<i1>, tensor<f32>
}
func.func @kept_axis(%x: tensor<6x10xf32>, %r: tensor<6x2x5xf32>) -> (tensor<6x10xf32>, tensor<6x1xf32>, tensor<6x10xf32>) {
  %m = wg.reduce_max %x axes [1] : tensor<6x10xf32> -> tensor<6xf32>
  %k = wg.reshape %m to [6, 1] : tensor<6xf32> -> tensor<6x1xf32>
  %b = wg.broadcast %k to [6, 10] dims [0, 1] : tensor<6x1xf32> -> tensor<6x10xf32>
  %d = wg.sub %x, %b : tensor<6x10xf32>
  %e = wg.exp %d : tensor<6x10xf32>
  %f = wg.reshape %r to [6, 10] : tensor<6x2x5xf32> -> tensor<6x10xf32>
  %g = wg.add %e, %f : tensor<6x10xf32>
  return %e, %k, %g : tensor<6x10xf32>, tensor<6x1xf32>, tensor<6x10xf32>
}
// One element more than whole vectors: the lanes beside it are 0 / 0 in no sum.
func.func @quotients(%x: tensor<33xf64>, %y: tensor<33xf64>, %v: tensor<33xf32>, %w: tensor<33xf32>) -> (tensor<f64>, tensor<f32>) {
  %q = wg.div %x, %y : tensor<33xf64>
  %s = wg.reduce_sum %q axes [0] : tensor<33xf64> -> tensor<f64>
  %r = wg.div %v, %w : tensor<33xf32>
  %t = wg.reduce_sum %r axes [0] : tensor<33xf32> -> tensor<f32>
  return %s, %t : tensor<f64>, tensor<f32>
}
// Rows side by side: an axis that is reduced lies around them. Groups with and without a rest, threads share groups,
// rows of a part of a vector, of one, of several; several phases; results over their arguments.
func.func @beside_rest(%x: tensor<5x11x19x13xf32>) -> tensor<5x19xf32> {
  %y = wg.reduce_sum %x axes [1, 3] : tensor<5x11x19x13xf32> -> tensor<5x19xf32>
  return %y : tensor<5x19xf32>
}
func.func @beside_one_axis(%x: tensor<9x205x13xf32>) -> tensor<205xf32> {
  %y = wg.reduce_sum %x axes [0, 2] : tensor<9x205x13xf32> -> tensor<205xf32>
  return %y : tensor<205xf32>
}
func.func @beside_far(%x: tensor<300x205x7xf32>) -> tensor<205xf32> {
  %y = wg.reduce_sum %x axes [0, 2] : tensor<300x205x7xf32> -> tensor<205xf32>
  return %y : tensor<205xf32>
}
func.func @beside_f64(%x: tensor<3x4x21x11xf64>) -> tensor<3x21xf64> {
  %y = wg.reduce_sum %x axes [1, 3] : tensor<3x4x21x11xf64> -> tensor<3x21xf64>
  return %y : tensor<3x21xf64>
}
func.func @beside_vectors(%x: tensor<3x4x10x45xf32>) -> tensor<3x10xf32> {
  %y = wg.reduce_sum %x axes [1, 3] : tensor<3x4x10x45xf32> -> tensor<3x10xf32>
  return %y : tensor<3x10xf32>
}
func.func @beside_many_vectors(%x: tensor<3x4x5x300xf32>) -> tensor<3x5xf32> {
  %y = wg.reduce_sum %x axes [1, 3] : tensor<3x4x5x300xf32> -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
func.func @beside_few(%x: tensor<7x3x5xf32>) -> tensor<3xf32> {
  %y = wg.reduce_sum %x axes [0, 2] : tensor<7x3x5xf32> -> tensor<3xf32>
  return %y : tensor<3xf32>
}
func.func @beside_around_two(%x: tensor<3x5x4x17x6xf32>) -> tensor<5x17xf32> {
  %y = wg.reduce_sum %x axes [0, 2, 4] : tensor<3x5x4x17x6xf32> -> tensor<5x17xf32>
  return %y : tensor<5x17xf32>
}
func.func @beside_phases(%x: tensor<4x9x18x10xf32>) -> tensor<4x9x18x10xf32> {
  %m = wg.reduce_max %x axes [1, 3] : tensor<4x9x18x10xf32> -> tensor<4x18xf32>
  %b = wg.broadcast %m to [4, 9, 18, 10] dims [0, 2] : tensor<4x18xf32> -> tensor<4x9x18x10xf32>
  %s = wg.sub %x, %b : tensor<4x9x18x10xf32>
  %e = wg.exp %s : tensor<4x9x18x10xf32>
  %t = wg.reduce_sum %e axes [1, 3] : tensor<4x9x18x10xf32> -> tensor<4x18xf32>
  %d = wg.broadcast %t to [4, 9, 18, 10] dims [0, 2] : tensor<4x18xf32> -> tensor<4x9x18x10xf32>
  %y = wg.div %e, %d : tensor<4x9x18x10xf32>
  return %y : tensor<4x9x18x10xf32>
}
func.func @beside_donated(%x: tensor<4x9x18x10xf32> {wg.result = 0 : i64}) -> tensor<4x9x18x10xf32> {
  %m = wg.reduce_max %x axes [1, 3] : tensor<4x9x18x10xf32> -> tensor<4x18xf32>
  %b = wg.broadcast %m to [4, 9, 18, 10] dims [0, 2] : tensor<4x18xf32> -> tensor<4x9x18x10xf32>
  %s = wg.sub %x, %b : tensor<4x9x18x10xf32>
  %e = wg.exp %s : tensor<4x9x18x10xf32>
  %t = wg.reduce_sum %e axes [1, 3] : tensor<4x9x18x10xf32> -> tensor<4x18xf32>
  %d = wg.broadcast %t to [4, 9, 18, 10] dims [0, 2] : tensor<4x18xf32> -> tensor<4x9x18x10xf32>
  %y = wg.div %e, %d : tensor<4x9x18x10xf32>
  return %y : tensor<4x9x18x10xf32>
}
func.func @beside_scaled(%x: tensor<4x9x18x10xf32>, %w: tensor<4x18xf32> {wg.result = 0 : i64}) -> (tensor<4x18xf32>, tensor<4x9x18x10xf32>) {
  %q = wg.tanh %w : tensor<4x18xf32>
  %b = wg.broadcast %q to [4, 9, 18, 10] dims [0, 2] : tensor<4x18xf32> -> tensor<4x9x18x10xf32>
  %p = wg.mul %x, %b : tensor<4x9x18x10xf32>
  %t = wg.reduce_sum %p axes [1, 3] : tensor<4x9x18x10xf32> -> tensor<4x18xf32>
  %n = wg.add %w, %t : tensor<4x18xf32>
  %d = wg.broadcast %n to [4, 9, 18, 10] dims [0, 2] : tensor<4x18xf32> -> tensor<4x9x18x10xf32>
  %y = wg.sub %x, %d : tensor<4x9x18x10xf32>
  return %n, %y : tensor<4x18xf32>, tensor<4x9x18x10xf32>
}
func.func @beside_scaled_one_axis(%x: tensor<9x37x10xf64>, %w: tensor<37xf64> {wg.result = 0 : i64}) -> (tensor<37xf64>, tensor<9x37x10xf64>) {
  %q = wg.tanh %w : tensor<37xf64>
  %b = wg.broadcast %q to [9, 37, 10] dims [1] : tensor<37xf64> -> tensor<9x37x10xf64>
  %p = wg.mul %x, %b : tensor<9x37x10xf64>
  %t = wg.reduce_sum %p axes [0, 2] : tensor<9x37x10xf64> -> tensor<37xf64>
  %n = wg.add %w, %t : tensor<37xf64>
  %d = wg.broadcast %n to [9, 37, 10] dims [1] : tensor<37xf64> -> tensor<9x37x10xf64>
  %y = wg.sub %x, %d : tensor<9x37x10xf64>
  return %n, %y : tensor<37xf64>, tensor<9x37x10xf64>
}
