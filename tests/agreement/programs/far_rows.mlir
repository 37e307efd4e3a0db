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
func.func @sum_f32_9_30011(%x: tensor<9x30011xf32>) -> (tensor<30011xf32>, tensor<30011xf32>) {
  %s = wg.reduce_sum %x axes [0] : tensor<9x30011xf32> -> tensor<30011xf32>
  %m = wg.reduce_max %x axes [0] : tensor<9x30011xf32> -> tensor<30011xf32>
  return %s, %m : tensor<30011xf32>, tensor<30011xf32>
}
func.func @terms_f32_9_30011(%x: tensor<9x30011xf32>, %y: tensor<9x30011xf32>, %b: tensor<30011xf32>) -> (tensor<30011xf32>, tensor<9x30011xf32>) {
  %p = wg.mul %x, %y : tensor<9x30011xf32>
  %t = wg.abs %p : tensor<9x30011xf32>
  %s = wg.reduce_sum %t axes [0] : tensor<9x30011xf32> -> tensor<30011xf32>
  %q = wg.sqrt %s : tensor<30011xf32>
  %u = wg.mul %q, %b : tensor<30011xf32>
  return %u, %p : tensor<30011xf32>, tensor<9x30011xf32>
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
func.func @terms_f32_5_150_390(%x: tensor<5x150x390xf32>, %y: tensor<5x150x390xf32>, %b: tensor<5x390xf32>) -> (tensor<5x390xf32>, tensor<5x150x390xf32>) {
  %p = wg.mul %x, %y : tensor<5x150x390xf32>
  %t = wg.abs %p : tensor<5x150x390xf32>
  %s = wg.reduce_sum %t axes [1] : tensor<5x150x390xf32> -> tensor<5x390xf32>
  %q = wg.sqrt %s : tensor<5x390xf32>
  %u = wg.mul %q, %b : tensor<5x390xf32>
  return %u, %p : tensor<5x390xf32>, tensor<5x150x390xf32>
}
func.func @sum_i32_210_1300(%x: tensor<210x1300xi32>) -> (tensor<1300xi32>, tensor<1300xi32>) {
  %s = wg.reduce_sum %x axes [0] : tensor<210x1300xi32> -> tensor<1300xi32>
  %m = wg.reduce_max %x axes [0] : tensor<210x1300xi32> -> tensor<1300xi32>
  return %s, %m : tensor<1300xi32>, tensor<1300xi32>
}
func.func @terms_f64_2_2_35001(%x: tensor<2x2x35001xf64>, %y: tensor<2x2x35001xf64>, %b: tensor<35001xf64>) -> (tensor<35001xf64>, tensor<2x2x35001xf64>) {
  %p = wg.mul %x, %y : tensor<2x2x35001xf64>
  %t = wg.abs %p : tensor<2x2x35001xf64>
  %s = wg.reduce_sum %t axes [0, 1] : tensor<2x2x35001xf64> -> tensor<35001xf64>
  %q = wg.sqrt %s : tensor<35001xf64>
  %u = wg.mul %q, %b : tensor<35001xf64>
  return %u, %p : tensor<35001xf64>, tensor<2x2x35001xf64>
}
func.func @sum_ui8_300_3603(%x: tensor<300x3603xui8>) -> (tensor<3603xui8>, tensor<3603xui8>) {
  %s = wg.reduce_sum %x axes [0] : tensor<300x3603xui8> -> tensor<3603xui8>
  %m = wg.reduce_max %x axes [0] : tensor<300x3603xui8> -> tensor<3603xui8>
  return %s, %m : tensor<3603xui8>, tensor<3603xui8>
}
