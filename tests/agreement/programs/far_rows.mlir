// inputs in [-1, 1]
func.func @sum_f32_530_520(%x: tensor<530x520xf32>) -> (tensor<520xf32>, tensor<520xf32>) {
  %s = wg.reduce_sum %x axes [0] : tensor<530x520xf32> -> tensor<520xf32>
  %m = wg.reduce_max %x axes [0] : tensor<530x520xf32> -> tensor<520xf32>
  return %s, %m : tensor<520xf32>, tensor<520xf32>
}
func.func @terms_f32_530_520(%x: tensor<530x520xf32>, %y: tensor<530x520xf32>, %b: tensor<520xf32>) -> (tensor<520xf32>, tensor<530x520xf32>) {
  %p = wg.mul %x, %y : tensor<530x520xf32>
  %t = wg.abs %p : tensor<530x520xf32>
  %s = wg.reduce_sum %t axes [0] : tensor<530x520xf32> -> tensor<520xf32>
  %q = wg.sqrt %s : tensor<520xf32>
  %u = wg.mul %q, %b : tensor<520xf32>
  return %u, %p : tensor<520xf32>, tensor<530x520xf32>
}
func.func @sum_f32_33_16421(%x: tensor<33x16421xf32>) -> (tensor<16421xf32>, tensor<16421xf32>) {
  %s = wg.reduce_sum %x axes [0] : tensor<33x16421xf32> -> tensor<16421xf32>
  %m = wg.reduce_max %x axes [0] : tensor<33x16421xf32> -> tensor<16421xf32>
  return %s, %m : tensor<16421xf32>, tensor<16421xf32>
}
func.func @terms_f32_33_16421(%x: tensor<33x16421xf32>, %y: tensor<33x16421xf32>, %b: tensor<16421xf32>) -> (tensor<16421xf32>, tensor<33x16421xf32>) {
  %p = wg.mul %x, %y : tensor<33x16421xf32>
  %t = wg.abs %p : tensor<33x16421xf32>
  %s = wg.reduce_sum %t axes [0] : tensor<33x16421xf32> -> tensor<16421xf32>
  %q = wg.sqrt %s : tensor<16421xf32>
  %u = wg.mul %q, %b : tensor<16421xf32>
  return %u, %p : tensor<16421xf32>, tensor<33x16421xf32>
}
func.func @sum_f64_530_260(%x: tensor<530x260xf64>) -> (tensor<260xf64>, tensor<260xf64>) {
  %s = wg.reduce_sum %x axes [0] : tensor<530x260xf64> -> tensor<260xf64>
  %m = wg.reduce_max %x axes [0] : tensor<530x260xf64> -> tensor<260xf64>
  return %s, %m : tensor<260xf64>, tensor<260xf64>
}
func.func @terms_f64_530_260(%x: tensor<530x260xf64>, %y: tensor<530x260xf64>, %b: tensor<260xf64>) -> (tensor<260xf64>, tensor<530x260xf64>) {
  %p = wg.mul %x, %y : tensor<530x260xf64>
  %t = wg.abs %p : tensor<530x260xf64>
  %s = wg.reduce_sum %t axes [0] : tensor<530x260xf64> -> tensor<260xf64>
  %q = wg.sqrt %s : tensor<260xf64>
  %u = wg.mul %q, %b : tensor<260xf64>
  return %u, %p : tensor<260xf64>, tensor<530x260xf64>
}
func.func @terms_f32_3_180_513(%x: tensor<3x180x513xf32>, %y: tensor<3x180x513xf32>, %b: tensor<513xf32>) -> (tensor<513xf32>, tensor<3x180x513xf32>) {
  %p = wg.mul %x, %y : tensor<3x180x513xf32>
  %t = wg.abs %p : tensor<3x180x513xf32>
  %s = wg.reduce_sum %t axes [0, 1] : tensor<3x180x513xf32> -> tensor<513xf32>
  %q = wg.sqrt %s : tensor<513xf32>
  %u = wg.mul %q, %b : tensor<513xf32>
  return %u, %p : tensor<513xf32>, tensor<3x180x513xf32>
}
func.func @terms_f32_5_340_790(%x: tensor<5x340x790xf32>, %y: tensor<5x340x790xf32>, %b: tensor<5x790xf32>) -> (tensor<5x790xf32>, tensor<5x340x790xf32>) {
  %p = wg.mul %x, %y : tensor<5x340x790xf32>
  %t = wg.abs %p : tensor<5x340x790xf32>
  %s = wg.reduce_sum %t axes [1] : tensor<5x340x790xf32> -> tensor<5x790xf32>
  %q = wg.sqrt %s : tensor<5x790xf32>
  %u = wg.mul %q, %b : tensor<5x790xf32>
  return %u, %p : tensor<5x790xf32>, tensor<5x340x790xf32>
}
func.func @sum_i32_210_1300(%x: tensor<210x1300xi32>) -> (tensor<1300xi32>, tensor<1300xi32>) {
  %s = wg.reduce_sum %x axes [0] : tensor<210x1300xi32> -> tensor<1300xi32>
  %m = wg.reduce_max %x axes [0] : tensor<210x1300xi32> -> tensor<1300xi32>
  return %s, %m : tensor<1300xi32>, tensor<1300xi32>
}
func.func @terms_f64_2_20_8201(%x: tensor<2x20x8201xf64>, %y: tensor<2x20x8201xf64>, %b: tensor<8201xf64>) -> (tensor<8201xf64>, tensor<2x20x8201xf64>) {
  %p = wg.mul %x, %y : tensor<2x20x8201xf64>
  %t = wg.abs %p : tensor<2x20x8201xf64>
  %s = wg.reduce_sum %t axes [0, 1] : tensor<2x20x8201xf64> -> tensor<8201xf64>
  %q = wg.sqrt %s : tensor<8201xf64>
  %u = wg.mul %q, %b : tensor<8201xf64>
  return %u, %p : tensor<8201xf64>, tensor<2x20x8201xf64>
}
func.func @sum_ui8_300_3603(%x: tensor<300x3603xui8>) -> (tensor<3603xui8>, tensor<3603xui8>) {
  %s = wg.reduce_sum %x axes [0] : tensor<300x3603xui8> -> tensor<3603xui8>
  %m = wg.reduce_max %x axes [0] : tensor<300x3603xui8> -> tensor<3603xui8>
  return %s, %m : tensor<3603xui8>, tensor<3603xui8>
}
// Threads share the outermost axis, and each has accumulators of its own.
func.func @sum_f32_3_40_9000(%x: tensor<3x40x9000xf32>) -> (tensor<3x9000xf32>, tensor<3x9000xf32>) {
  %s = wg.reduce_sum %x axes [1] : tensor<3x40x9000xf32> -> tensor<3x9000xf32>
  %m = wg.reduce_max %x axes [1] : tensor<3x40x9000xf32> -> tensor<3x9000xf32>
  return %s, %m : tensor<3x9000xf32>, tensor<3x9000xf32>
}
func.func @sum_f32_40_3_9000(%x: tensor<40x3x9000xf32>, %y: tensor<40x3x9000xf32>) -> tensor<3x9000xf32> {
  %t = wg.transpose %y by [0, 1, 2] : tensor<40x3x9000xf32> -> tensor<40x3x9000xf32>
  %b = wg.slice %x from [0, 1, 0] to [40, 2, 9000] by [1, 1, 1] : tensor<40x3x9000xf32> -> tensor<40x1x9000xf32>
  %r = wg.reshape %b to [40, 9000] : tensor<40x1x9000xf32> -> tensor<40x9000xf32>
  %w = wg.broadcast %r to [40, 3, 9000] dims [0, 2] : tensor<40x9000xf32> -> tensor<40x3x9000xf32>
  %p = wg.mul %t, %w : tensor<40x3x9000xf32>
  %s = wg.reduce_sum %p axes [0] : tensor<40x3x9000xf32> -> tensor<3x9000xf32>
  return %s : tensor<3x9000xf32>
}
func.func @slice_f32_40_16421(%x: tensor<41x16421xf32>) -> tensor<16421xf32> {
  %v = wg.slice %x from [1, 0] to [41, 16421] by [1, 1] : tensor<41x16421xf32> -> tensor<40x16421xf32>
  %s = wg.reduce_sum %v axes [0] : tensor<40x16421xf32> -> tensor<16421xf32>
  return %s : tensor<16421xf32>
}
func.func @reversed_f64_40_8201(%x: tensor<40x8201xf64>) -> tensor<8201xf64> {
  %v = wg.reverse %x axes [0] : tensor<40x8201xf64> -> tensor<40x8201xf64>
  %s = wg.reduce_sum %v axes [0] : tensor<40x8201xf64> -> tensor<8201xf64>
  return %s : tensor<8201xf64>
}
// Kept beneath what is summed, and summed beneath what is kept.
func.func @between_f32_30_40_50(%x: tensor<30x40x50xf32>) -> (tensor<40xf32>, tensor<30x50xf32>) {
  %s = wg.reduce_sum %x axes [0, 2] : tensor<30x40x50xf32> -> tensor<40xf32>
  %m = wg.reduce_max %x axes [1] : tensor<30x40x50xf32> -> tensor<30x50xf32>
  return %s, %m : tensor<40xf32>, tensor<30x50xf32>
}
