// inputs in [-1, 1]
// Elements that lie close are read with what is between them, up to the last one and no further: at every distance, from the
// first element or a later one, backwards, in each type.
func.func @by_2(%x: tensor<127xf32>) -> tensor<64xf32> {
  %s = wg.slice %x from [0] to [127] by [2] : tensor<127xf32> -> tensor<64xf32>
  %y = wg.add %s, %s : tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @by_3(%x: tensor<190xf32>) -> tensor<64xf32> {
  %s = wg.slice %x from [0] to [190] by [3] : tensor<190xf32> -> tensor<64xf32>
  %y = wg.add %s, %s : tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @by_4(%x: tensor<253xf32>) -> tensor<64xf32> {
  %s = wg.slice %x from [0] to [253] by [4] : tensor<253xf32> -> tensor<64xf32>
  %y = wg.add %s, %s : tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @by_5(%x: tensor<316xf32>) -> tensor<64xf32> {
  %s = wg.slice %x from [0] to [316] by [5] : tensor<316xf32> -> tensor<64xf32>
  %y = wg.add %s, %s : tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @by_7(%x: tensor<442xf32>) -> tensor<64xf32> {
  %s = wg.slice %x from [0] to [442] by [7] : tensor<442xf32> -> tensor<64xf32>
  %y = wg.add %s, %s : tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @by_8(%x: tensor<505xf32>) -> tensor<64xf32> {
  %s = wg.slice %x from [0] to [505] by [8] : tensor<505xf32> -> tensor<64xf32>
  %y = wg.add %s, %s : tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @by_9(%x: tensor<568xf32>) -> tensor<64xf32> {
  %s = wg.slice %x from [0] to [568] by [9] : tensor<568xf32> -> tensor<64xf32>
  %y = wg.add %s, %s : tensor<64xf32>
  return %y : tensor<64xf32>
}
func.func @by_3_later(%x: tensor<101xf32>) -> tensor<33xf32> {
  %s = wg.slice %x from [2] to [101] by [3] : tensor<101xf32> -> tensor<33xf32>
  %y = wg.add %s, %s : tensor<33xf32>
  return %y : tensor<33xf32>
}
func.func @by_2_rest(%x: tensor<73xf32>) -> tensor<37xf32> {
  %s = wg.slice %x from [0] to [73] by [2] : tensor<73xf32> -> tensor<37xf32>
  %y = wg.add %s, %s : tensor<37xf32>
  return %y : tensor<37xf32>
}
func.func @by_2_f64(%x: tensor<79xf64>) -> tensor<40xf64> {
  %s = wg.slice %x from [0] to [79] by [2] : tensor<79xf64> -> tensor<40xf64>
  %y = wg.add %s, %s : tensor<40xf64>
  return %y : tensor<40xf64>
}
func.func @by_3_f64(%x: tensor<118xf64>) -> tensor<40xf64> {
  %s = wg.slice %x from [0] to [118] by [3] : tensor<118xf64> -> tensor<40xf64>
  %y = wg.add %s, %s : tensor<40xf64>
  return %y : tensor<40xf64>
}
func.func @by_4_f64(%x: tensor<157xf64>) -> tensor<40xf64> {
  %s = wg.slice %x from [0] to [157] by [4] : tensor<157xf64> -> tensor<40xf64>
  %y = wg.add %s, %s : tensor<40xf64>
  return %y : tensor<40xf64>
}
func.func @by_5_f64(%x: tensor<196xf64>) -> tensor<40xf64> {
  %s = wg.slice %x from [0] to [196] by [5] : tensor<196xf64> -> tensor<40xf64>
  %y = wg.add %s, %s : tensor<40xf64>
  return %y : tensor<40xf64>
}
func.func @by_2_i32(%x: tensor<63xi32>) -> tensor<32xi32> {
  %s = wg.slice %x from [0] to [63] by [2] : tensor<63xi32> -> tensor<32xi32>
  %y = wg.add %s, %s : tensor<32xi32>
  return %y : tensor<32xi32>
}
func.func @by_5_i32(%x: tensor<156xi32>) -> tensor<32xi32> {
  %s = wg.slice %x from [0] to [156] by [5] : tensor<156xi32> -> tensor<32xi32>
  %y = wg.add %s, %s : tensor<32xi32>
  return %y : tensor<32xi32>
}
func.func @by_3_i64(%x: tensor<70xi64>) -> tensor<24xi64> {
  %s = wg.slice %x from [0] to [70] by [3] : tensor<70xi64> -> tensor<24xi64>
  %y = wg.add %s, %s : tensor<24xi64>
  return %y : tensor<24xi64>
}
func.func @by_3_bytes(%x: tensor<96xui8>) -> tensor<32xui8> {
  %s = wg.slice %x from [1] to [96] by [3] : tensor<96xui8> -> tensor<32xui8>
  %y = wg.add %s, %s : tensor<32xui8>
  return %y : tensor<32xui8>
}
func.func @backwards_f32(%x: tensor<5x83xf32>) -> tensor<5x83xf32> {
  %r = wg.reverse %x axes [1] : tensor<5x83xf32> -> tensor<5x83xf32>
  %y = wg.maximum %r, %x : tensor<5x83xf32>
  return %y : tensor<5x83xf32>
}
func.func @backwards_f64(%x: tensor<5x83xf64>) -> tensor<5x83xf64> {
  %r = wg.reverse %x axes [1] : tensor<5x83xf64> -> tensor<5x83xf64>
  %y = wg.maximum %r, %x : tensor<5x83xf64>
  return %y : tensor<5x83xf64>
}
func.func @backwards_i32(%x: tensor<5x83xi32>) -> tensor<5x83xi32> {
  %r = wg.reverse %x axes [1] : tensor<5x83xi32> -> tensor<5x83xi32>
  %y = wg.maximum %r, %x : tensor<5x83xi32>
  return %y : tensor<5x83xi32>
}
func.func @backwards_i1(%x: tensor<5x83xi1>) -> tensor<5x83xi1> {
  %r = wg.reverse %x axes [1] : tensor<5x83xi1> -> tensor<5x83xi1>
  %y = wg.logical_or %r, %x : tensor<5x83xi1>
  return %y : tensor<5x83xi1>
}
func.func @components(%x: tensor<1037x3xf32>) -> tensor<1037xf32> {
  %a = wg.slice %x from [0, 0] to [1037, 1] by [1, 1] : tensor<1037x3xf32> -> tensor<1037x1xf32>
  %b = wg.slice %x from [0, 2] to [1037, 3] by [1, 1] : tensor<1037x3xf32> -> tensor<1037x1xf32>
  %p = wg.mul %a, %b : tensor<1037x1xf32>
  %y = wg.reshape %p to [1037] : tensor<1037x1xf32> -> tensor<1037xf32>
  return %y : tensor<1037xf32>
}
// Rows so short that lanes are rows.
func.func @dot_2(%x: tensor<293x2xf32>, %y: tensor<293x2xf32>) -> tensor<293xf32> {
  %p = wg.mul %x, %y : tensor<293x2xf32>
  %s = wg.reduce_sum %p axes [1] : tensor<293x2xf32> -> tensor<293xf32>
  return %s : tensor<293xf32>
}
func.func @dot_3(%x: tensor<293x3xf32>, %y: tensor<293x3xf32>) -> tensor<293xf32> {
  %p = wg.mul %x, %y : tensor<293x3xf32>
  %s = wg.reduce_sum %p axes [1] : tensor<293x3xf32> -> tensor<293xf32>
  return %s : tensor<293xf32>
}
func.func @dot_4(%x: tensor<293x4xf32>, %y: tensor<293x4xf32>) -> tensor<293xf32> {
  %p = wg.mul %x, %y : tensor<293x4xf32>
  %s = wg.reduce_sum %p axes [1] : tensor<293x4xf32> -> tensor<293xf32>
  return %s : tensor<293xf32>
}
func.func @dot_5(%x: tensor<293x5xf32>, %y: tensor<293x5xf32>) -> tensor<293xf32> {
  %p = wg.mul %x, %y : tensor<293x5xf32>
  %s = wg.reduce_sum %p axes [1] : tensor<293x5xf32> -> tensor<293xf32>
  return %s : tensor<293xf32>
}
func.func @dot_6(%x: tensor<293x6xf32>, %y: tensor<293x6xf32>) -> tensor<293xf32> {
  %p = wg.mul %x, %y : tensor<293x6xf32>
  %s = wg.reduce_sum %p axes [1] : tensor<293x6xf32> -> tensor<293xf32>
  return %s : tensor<293xf32>
}
func.func @dot_7(%x: tensor<293x7xf32>, %y: tensor<293x7xf32>) -> tensor<293xf32> {
  %p = wg.mul %x, %y : tensor<293x7xf32>
  %s = wg.reduce_sum %p axes [1] : tensor<293x7xf32> -> tensor<293xf32>
  return %s : tensor<293xf32>
}
func.func @dot_8(%x: tensor<293x8xf32>, %y: tensor<293x8xf32>) -> tensor<293xf32> {
  %p = wg.mul %x, %y : tensor<293x8xf32>
  %s = wg.reduce_sum %p axes [1] : tensor<293x8xf32> -> tensor<293xf32>
  return %s : tensor<293xf32>
}
func.func @max_2(%x: tensor<147x2xf32>) -> tensor<147xf32> {
  %s = wg.reduce_max %x axes [1] : tensor<147x2xf32> -> tensor<147xf32>
  return %s : tensor<147xf32>
}
func.func @max_3(%x: tensor<147x3xf32>) -> tensor<147xf32> {
  %s = wg.reduce_max %x axes [1] : tensor<147x3xf32> -> tensor<147xf32>
  return %s : tensor<147xf32>
}
func.func @max_4(%x: tensor<147x4xf32>) -> tensor<147xf32> {
  %s = wg.reduce_max %x axes [1] : tensor<147x4xf32> -> tensor<147xf32>
  return %s : tensor<147xf32>
}
func.func @max_5(%x: tensor<147x5xf32>) -> tensor<147xf32> {
  %s = wg.reduce_max %x axes [1] : tensor<147x5xf32> -> tensor<147xf32>
  return %s : tensor<147xf32>
}
func.func @max_6(%x: tensor<147x6xf32>) -> tensor<147xf32> {
  %s = wg.reduce_max %x axes [1] : tensor<147x6xf32> -> tensor<147xf32>
  return %s : tensor<147xf32>
}
func.func @max_7(%x: tensor<147x7xf32>) -> tensor<147xf32> {
  %s = wg.reduce_max %x axes [1] : tensor<147x7xf32> -> tensor<147xf32>
  return %s : tensor<147xf32>
}
func.func @max_8(%x: tensor<147x8xf32>) -> tensor<147xf32> {
  %s = wg.reduce_max %x axes [1] : tensor<147x8xf32> -> tensor<147xf32>
  return %s : tensor<147xf32>
}
func.func @dot_2_f64(%x: tensor<147x2xf64>, %y: tensor<147x2xf64>) -> tensor<147xf64> {
  %p = wg.mul %x, %y : tensor<147x2xf64>
  %s = wg.reduce_sum %p axes [1] : tensor<147x2xf64> -> tensor<147xf64>
  return %s : tensor<147xf64>
}
func.func @dot_3_f64(%x: tensor<147x3xf64>, %y: tensor<147x3xf64>) -> tensor<147xf64> {
  %p = wg.mul %x, %y : tensor<147x3xf64>
  %s = wg.reduce_sum %p axes [1] : tensor<147x3xf64> -> tensor<147xf64>
  return %s : tensor<147xf64>
}
func.func @dot_4_f64(%x: tensor<147x4xf64>, %y: tensor<147x4xf64>) -> tensor<147xf64> {
  %p = wg.mul %x, %y : tensor<147x4xf64>
  %s = wg.reduce_sum %p axes [1] : tensor<147x4xf64> -> tensor<147xf64>
  return %s : tensor<147xf64>
}
func.func @max_3_i32(%x: tensor<147x3xi32>) -> tensor<147xi32> {
  %s = wg.reduce_max %x axes [1] : tensor<147x3xi32> -> tensor<147xi32>
  return %s : tensor<147xi32>
}
func.func @dot_batch(%x: tensor<5x21x3xf32>, %y: tensor<5x21x3xf32>) -> tensor<5x21xf32> {
  %p = wg.mul %x, %y : tensor<5x21x3xf32>
  %s = wg.reduce_sum %p axes [2] : tensor<5x21x3xf32> -> tensor<5x21xf32>
  return %s : tensor<5x21xf32>
}
func.func @dot_few(%x: tensor<9x3xf32>, %y: tensor<9x3xf32>) -> tensor<9xf32> {
  %p = wg.mul %x, %y : tensor<9x3xf32>
  %s = wg.reduce_sum %p axes [1] : tensor<9x3xf32> -> tensor<9xf32>
  return %s : tensor<9xf32>
}
func.func @logsumexp_3(%x: tensor<147x3xf32>, %w: tensor<147xf32> {wg.result = 0 : i64}) -> tensor<147xf32> {
  %m = wg.reduce_max %x axes [1] : tensor<147x3xf32> -> tensor<147xf32>
  %b = wg.broadcast %m to [147, 3] dims [0] : tensor<147xf32> -> tensor<147x3xf32>
  %d = wg.sub %x, %b : tensor<147x3xf32>
  %e = wg.exp %d : tensor<147x3xf32>
  %s = wg.reduce_sum %e axes [1] : tensor<147x3xf32> -> tensor<147xf32>
  %l = wg.log %s : tensor<147xf32>
  %t = wg.add %l, %m : tensor<147xf32>
  %y = wg.mul %t, %w : tensor<147xf32>
  return %y : tensor<147xf32>
}
func.func @logsumexp_3_batch(%x: tensor<4x37x3xf64>, %w: tensor<4x37xf64> {wg.result = 0 : i64}) -> tensor<4x37xf64> {
  %m = wg.reduce_max %x axes [2] : tensor<4x37x3xf64> -> tensor<4x37xf64>
  %b = wg.broadcast %m to [4, 37, 3] dims [0, 1] : tensor<4x37xf64> -> tensor<4x37x3xf64>
  %d = wg.sub %x, %b : tensor<4x37x3xf64>
  %e = wg.exp %d : tensor<4x37x3xf64>
  %s = wg.reduce_sum %e axes [2] : tensor<4x37x3xf64> -> tensor<4x37xf64>
  %l = wg.log %s : tensor<4x37xf64>
  %t = wg.add %l, %m : tensor<4x37xf64>
  %y = wg.mul %t, %w : tensor<4x37xf64>
  return %y : tensor<4x37xf64>
}
func.func @vector_4(%x: tensor<147x4xf32>, %v: tensor<4xf32>) -> tensor<147xf32> {
  %b = wg.broadcast %v to [147, 4] dims [1] : tensor<4xf32> -> tensor<147x4xf32>
  %p = wg.mul %x, %b : tensor<147x4xf32>
  %s = wg.reduce_sum %p axes [1] : tensor<147x4xf32> -> tensor<147xf32>
  return %s : tensor<147xf32>
}
