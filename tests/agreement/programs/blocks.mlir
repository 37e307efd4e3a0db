// inputs in [-2, 2]
func.func @t_f64_61_53(%x: tensor<61x53xf64>) -> tensor<53x61xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<61x53xf64> -> tensor<53x61xf64>
  return %y : tensor<53x61xf64>
}
func.func @t_f64_64_64(%x: tensor<64x64xf64>) -> tensor<64x64xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<64x64xf64> -> tensor<64x64xf64>
  return %y : tensor<64x64xf64>
}
func.func @t_f64_130_19(%x: tensor<130x19xf64>) -> tensor<19x130xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<130x19xf64> -> tensor<19x130xf64>
  return %y : tensor<19x130xf64>
}
func.func @t_f64_18_300(%x: tensor<18x300xf64>) -> tensor<300x18xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<18x300xf64> -> tensor<300x18xf64>
  return %y : tensor<300x18xf64>
}
func.func @t_f64_5_600(%x: tensor<5x600xf64>) -> tensor<600x5xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<5x600xf64> -> tensor<600x5xf64>
  return %y : tensor<600x5xf64>
}
func.func @t_f64_600_5(%x: tensor<600x5xf64>) -> tensor<5x600xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<600x5xf64> -> tensor<5x600xf64>
  return %y : tensor<5x600xf64>
}
func.func @t_f64_20_1024(%x: tensor<20x1024xf64>) -> tensor<1024x20xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<20x1024xf64> -> tensor<1024x20xf64>
  return %y : tensor<1024x20xf64>
}
func.func @t_f64_3_1024(%x: tensor<3x1024xf64>) -> tensor<1024x3xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<3x1024xf64> -> tensor<1024x3xf64>
  return %y : tensor<1024x3xf64>
}
func.func @t_f64_49_65(%x: tensor<49x65xf64>) -> tensor<65x49xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<49x65xf64> -> tensor<65x49xf64>
  return %y : tensor<65x49xf64>
}
func.func @t_f32_61_53(%x: tensor<61x53xf32>) -> tensor<53x61xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<61x53xf32> -> tensor<53x61xf32>
  return %y : tensor<53x61xf32>
}
func.func @t_f32_64_64(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
func.func @t_f32_130_19(%x: tensor<130x19xf32>) -> tensor<19x130xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<130x19xf32> -> tensor<19x130xf32>
  return %y : tensor<19x130xf32>
}
func.func @t_f32_18_300(%x: tensor<18x300xf32>) -> tensor<300x18xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<18x300xf32> -> tensor<300x18xf32>
  return %y : tensor<300x18xf32>
}
func.func @t_f32_5_600(%x: tensor<5x600xf32>) -> tensor<600x5xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<5x600xf32> -> tensor<600x5xf32>
  return %y : tensor<600x5xf32>
}
func.func @t_f32_600_5(%x: tensor<600x5xf32>) -> tensor<5x600xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<600x5xf32> -> tensor<5x600xf32>
  return %y : tensor<5x600xf32>
}
func.func @t_f32_20_1024(%x: tensor<20x1024xf32>) -> tensor<1024x20xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<20x1024xf32> -> tensor<1024x20xf32>
  return %y : tensor<1024x20xf32>
}
func.func @t_f32_3_1024(%x: tensor<3x1024xf32>) -> tensor<1024x3xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<3x1024xf32> -> tensor<1024x3xf32>
  return %y : tensor<1024x3xf32>
}
func.func @t_f32_49_65(%x: tensor<49x65xf32>) -> tensor<65x49xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<49x65xf32> -> tensor<65x49xf32>
  return %y : tensor<65x49xf32>
}
func.func @t_i64_61_53(%x: tensor<61x53xi64>) -> tensor<53x61xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<61x53xi64> -> tensor<53x61xi64>
  return %y : tensor<53x61xi64>
}
func.func @t_i64_64_64(%x: tensor<64x64xi64>) -> tensor<64x64xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<64x64xi64> -> tensor<64x64xi64>
  return %y : tensor<64x64xi64>
}
func.func @t_i64_130_19(%x: tensor<130x19xi64>) -> tensor<19x130xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<130x19xi64> -> tensor<19x130xi64>
  return %y : tensor<19x130xi64>
}
func.func @t_i64_18_300(%x: tensor<18x300xi64>) -> tensor<300x18xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<18x300xi64> -> tensor<300x18xi64>
  return %y : tensor<300x18xi64>
}
func.func @t_i64_5_600(%x: tensor<5x600xi64>) -> tensor<600x5xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<5x600xi64> -> tensor<600x5xi64>
  return %y : tensor<600x5xi64>
}
func.func @t_i64_600_5(%x: tensor<600x5xi64>) -> tensor<5x600xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<600x5xi64> -> tensor<5x600xi64>
  return %y : tensor<5x600xi64>
}
func.func @t_i64_20_1024(%x: tensor<20x1024xi64>) -> tensor<1024x20xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<20x1024xi64> -> tensor<1024x20xi64>
  return %y : tensor<1024x20xi64>
}
func.func @t_i64_3_1024(%x: tensor<3x1024xi64>) -> tensor<1024x3xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<3x1024xi64> -> tensor<1024x3xi64>
  return %y : tensor<1024x3xi64>
}
func.func @t_i64_49_65(%x: tensor<49x65xi64>) -> tensor<65x49xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<49x65xi64> -> tensor<65x49xi64>
  return %y : tensor<65x49xi64>
}
func.func @t_i32_61_53(%x: tensor<61x53xi32>) -> tensor<53x61xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<61x53xi32> -> tensor<53x61xi32>
  return %y : tensor<53x61xi32>
}
func.func @t_i32_64_64(%x: tensor<64x64xi32>) -> tensor<64x64xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<64x64xi32> -> tensor<64x64xi32>
  return %y : tensor<64x64xi32>
}
func.func @t_i32_130_19(%x: tensor<130x19xi32>) -> tensor<19x130xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<130x19xi32> -> tensor<19x130xi32>
  return %y : tensor<19x130xi32>
}
func.func @t_i32_18_300(%x: tensor<18x300xi32>) -> tensor<300x18xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<18x300xi32> -> tensor<300x18xi32>
  return %y : tensor<300x18xi32>
}
func.func @t_i32_5_600(%x: tensor<5x600xi32>) -> tensor<600x5xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<5x600xi32> -> tensor<600x5xi32>
  return %y : tensor<600x5xi32>
}
func.func @t_i32_600_5(%x: tensor<600x5xi32>) -> tensor<5x600xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<600x5xi32> -> tensor<5x600xi32>
  return %y : tensor<5x600xi32>
}
func.func @t_i32_20_1024(%x: tensor<20x1024xi32>) -> tensor<1024x20xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<20x1024xi32> -> tensor<1024x20xi32>
  return %y : tensor<1024x20xi32>
}
func.func @t_i32_3_1024(%x: tensor<3x1024xi32>) -> tensor<1024x3xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<3x1024xi32> -> tensor<1024x3xi32>
  return %y : tensor<1024x3xi32>
}
func.func @t_i32_49_65(%x: tensor<49x65xi32>) -> tensor<65x49xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<49x65xi32> -> tensor<65x49xi32>
  return %y : tensor<65x49xi32>
}
func.func @t_ui8_61_53(%x: tensor<61x53xui8>) -> tensor<53x61xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<61x53xui8> -> tensor<53x61xui8>
  return %y : tensor<53x61xui8>
}
func.func @t_ui8_64_64(%x: tensor<64x64xui8>) -> tensor<64x64xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<64x64xui8> -> tensor<64x64xui8>
  return %y : tensor<64x64xui8>
}
func.func @t_ui8_130_19(%x: tensor<130x19xui8>) -> tensor<19x130xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<130x19xui8> -> tensor<19x130xui8>
  return %y : tensor<19x130xui8>
}
func.func @t_ui8_18_300(%x: tensor<18x300xui8>) -> tensor<300x18xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<18x300xui8> -> tensor<300x18xui8>
  return %y : tensor<300x18xui8>
}
func.func @t_ui8_5_600(%x: tensor<5x600xui8>) -> tensor<600x5xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<5x600xui8> -> tensor<600x5xui8>
  return %y : tensor<600x5xui8>
}
func.func @t_ui8_600_5(%x: tensor<600x5xui8>) -> tensor<5x600xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<600x5xui8> -> tensor<5x600xui8>
  return %y : tensor<5x600xui8>
}
func.func @t_ui8_20_1024(%x: tensor<20x1024xui8>) -> tensor<1024x20xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<20x1024xui8> -> tensor<1024x20xui8>
  return %y : tensor<1024x20xui8>
}
func.func @t_ui8_3_1024(%x: tensor<3x1024xui8>) -> tensor<1024x3xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<3x1024xui8> -> tensor<1024x3xui8>
  return %y : tensor<1024x3xui8>
}
func.func @t_ui8_49_65(%x: tensor<49x65xui8>) -> tensor<65x49xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<49x65xui8> -> tensor<65x49xui8>
  return %y : tensor<65x49xui8>
}
func.func @t_i1_61_53(%x: tensor<61x53xi1>) -> tensor<53x61xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<61x53xi1> -> tensor<53x61xi1>
  return %y : tensor<53x61xi1>
}
func.func @t_i1_64_64(%x: tensor<64x64xi1>) -> tensor<64x64xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<64x64xi1> -> tensor<64x64xi1>
  return %y : tensor<64x64xi1>
}
func.func @t_i1_130_19(%x: tensor<130x19xi1>) -> tensor<19x130xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<130x19xi1> -> tensor<19x130xi1>
  return %y : tensor<19x130xi1>
}
func.func @t_i1_18_300(%x: tensor<18x300xi1>) -> tensor<300x18xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<18x300xi1> -> tensor<300x18xi1>
  return %y : tensor<300x18xi1>
}
func.func @t_i1_5_600(%x: tensor<5x600xi1>) -> tensor<600x5xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<5x600xi1> -> tensor<600x5xi1>
  return %y : tensor<600x5xi1>
}
func.func @t_i1_600_5(%x: tensor<600x5xi1>) -> tensor<5x600xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<600x5xi1> -> tensor<5x600xi1>
  return %y : tensor<5x600xi1>
}
func.func @t_i1_20_1024(%x: tensor<20x1024xi1>) -> tensor<1024x20xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<20x1024xi1> -> tensor<1024x20xi1>
  return %y : tensor<1024x20xi1>
}
func.func @t_i1_3_1024(%x: tensor<3x1024xi1>) -> tensor<1024x3xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<3x1024xi1> -> tensor<1024x3xi1>
  return %y : tensor<1024x3xi1>
}
func.func @t_i1_49_65(%x: tensor<49x65xi1>) -> tensor<65x49xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<49x65xi1> -> tensor<65x49xi1>
  return %y : tensor<65x49xi1>
}
func.func @many_f64_61_53(%x: tensor<61x53xf64>, %z: tensor<53x61xf64>) -> (tensor<53x61xf64>, tensor<53x61xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<61x53xf64> -> tensor<53x61xf64>
  %e = wg.exp %y : tensor<53x61xf64>
  %s = wg.mul %e, %z : tensor<53x61xf64>
  %t = wg.tanh %s : tensor<53x61xf64>
  %u = wg.add %t, %y : tensor<53x61xf64>
  return %s, %u : tensor<53x61xf64>, tensor<53x61xf64>
}
func.func @few_f64_61_53(%x: tensor<61x53xf64>, %z: tensor<53x61xf64>) -> tensor<53x61xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<61x53xf64> -> tensor<53x61xf64>
  %s = wg.mul %y, %z : tensor<53x61xf64>
  return %s : tensor<53x61xf64>
}
func.func @many_f64_64_64(%x: tensor<64x64xf64>, %z: tensor<64x64xf64>) -> (tensor<64x64xf64>, tensor<64x64xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<64x64xf64> -> tensor<64x64xf64>
  %e = wg.exp %y : tensor<64x64xf64>
  %s = wg.mul %e, %z : tensor<64x64xf64>
  %t = wg.tanh %s : tensor<64x64xf64>
  %u = wg.add %t, %y : tensor<64x64xf64>
  return %s, %u : tensor<64x64xf64>, tensor<64x64xf64>
}
func.func @few_f64_64_64(%x: tensor<64x64xf64>, %z: tensor<64x64xf64>) -> tensor<64x64xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<64x64xf64> -> tensor<64x64xf64>
  %s = wg.mul %y, %z : tensor<64x64xf64>
  return %s : tensor<64x64xf64>
}
func.func @many_f64_130_19(%x: tensor<130x19xf64>, %z: tensor<19x130xf64>) -> (tensor<19x130xf64>, tensor<19x130xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<130x19xf64> -> tensor<19x130xf64>
  %e = wg.exp %y : tensor<19x130xf64>
  %s = wg.mul %e, %z : tensor<19x130xf64>
  %t = wg.tanh %s : tensor<19x130xf64>
  %u = wg.add %t, %y : tensor<19x130xf64>
  return %s, %u : tensor<19x130xf64>, tensor<19x130xf64>
}
func.func @few_f64_130_19(%x: tensor<130x19xf64>, %z: tensor<19x130xf64>) -> tensor<19x130xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<130x19xf64> -> tensor<19x130xf64>
  %s = wg.mul %y, %z : tensor<19x130xf64>
  return %s : tensor<19x130xf64>
}
func.func @many_f64_18_300(%x: tensor<18x300xf64>, %z: tensor<300x18xf64>) -> (tensor<300x18xf64>, tensor<300x18xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<18x300xf64> -> tensor<300x18xf64>
  %e = wg.exp %y : tensor<300x18xf64>
  %s = wg.mul %e, %z : tensor<300x18xf64>
  %t = wg.tanh %s : tensor<300x18xf64>
  %u = wg.add %t, %y : tensor<300x18xf64>
  return %s, %u : tensor<300x18xf64>, tensor<300x18xf64>
}
func.func @few_f64_18_300(%x: tensor<18x300xf64>, %z: tensor<300x18xf64>) -> tensor<300x18xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<18x300xf64> -> tensor<300x18xf64>
  %s = wg.mul %y, %z : tensor<300x18xf64>
  return %s : tensor<300x18xf64>
}
func.func @many_f64_5_600(%x: tensor<5x600xf64>, %z: tensor<600x5xf64>) -> (tensor<600x5xf64>, tensor<600x5xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<5x600xf64> -> tensor<600x5xf64>
  %e = wg.exp %y : tensor<600x5xf64>
  %s = wg.mul %e, %z : tensor<600x5xf64>
  %t = wg.tanh %s : tensor<600x5xf64>
  %u = wg.add %t, %y : tensor<600x5xf64>
  return %s, %u : tensor<600x5xf64>, tensor<600x5xf64>
}
func.func @few_f64_5_600(%x: tensor<5x600xf64>, %z: tensor<600x5xf64>) -> tensor<600x5xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<5x600xf64> -> tensor<600x5xf64>
  %s = wg.mul %y, %z : tensor<600x5xf64>
  return %s : tensor<600x5xf64>
}
func.func @many_f64_600_5(%x: tensor<600x5xf64>, %z: tensor<5x600xf64>) -> (tensor<5x600xf64>, tensor<5x600xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<600x5xf64> -> tensor<5x600xf64>
  %e = wg.exp %y : tensor<5x600xf64>
  %s = wg.mul %e, %z : tensor<5x600xf64>
  %t = wg.tanh %s : tensor<5x600xf64>
  %u = wg.add %t, %y : tensor<5x600xf64>
  return %s, %u : tensor<5x600xf64>, tensor<5x600xf64>
}
func.func @few_f64_600_5(%x: tensor<600x5xf64>, %z: tensor<5x600xf64>) -> tensor<5x600xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<600x5xf64> -> tensor<5x600xf64>
  %s = wg.mul %y, %z : tensor<5x600xf64>
  return %s : tensor<5x600xf64>
}
func.func @many_f64_20_1024(%x: tensor<20x1024xf64>, %z: tensor<1024x20xf64>) -> (tensor<1024x20xf64>, tensor<1024x20xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<20x1024xf64> -> tensor<1024x20xf64>
  %e = wg.exp %y : tensor<1024x20xf64>
  %s = wg.mul %e, %z : tensor<1024x20xf64>
  %t = wg.tanh %s : tensor<1024x20xf64>
  %u = wg.add %t, %y : tensor<1024x20xf64>
  return %s, %u : tensor<1024x20xf64>, tensor<1024x20xf64>
}
func.func @few_f64_20_1024(%x: tensor<20x1024xf64>, %z: tensor<1024x20xf64>) -> tensor<1024x20xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<20x1024xf64> -> tensor<1024x20xf64>
  %s = wg.mul %y, %z : tensor<1024x20xf64>
  return %s : tensor<1024x20xf64>
}
func.func @many_f64_3_1024(%x: tensor<3x1024xf64>, %z: tensor<1024x3xf64>) -> (tensor<1024x3xf64>, tensor<1024x3xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<3x1024xf64> -> tensor<1024x3xf64>
  %e = wg.exp %y : tensor<1024x3xf64>
  %s = wg.mul %e, %z : tensor<1024x3xf64>
  %t = wg.tanh %s : tensor<1024x3xf64>
  %u = wg.add %t, %y : tensor<1024x3xf64>
  return %s, %u : tensor<1024x3xf64>, tensor<1024x3xf64>
}
func.func @few_f64_3_1024(%x: tensor<3x1024xf64>, %z: tensor<1024x3xf64>) -> tensor<1024x3xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<3x1024xf64> -> tensor<1024x3xf64>
  %s = wg.mul %y, %z : tensor<1024x3xf64>
  return %s : tensor<1024x3xf64>
}
func.func @many_f64_49_65(%x: tensor<49x65xf64>, %z: tensor<65x49xf64>) -> (tensor<65x49xf64>, tensor<65x49xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<49x65xf64> -> tensor<65x49xf64>
  %e = wg.exp %y : tensor<65x49xf64>
  %s = wg.mul %e, %z : tensor<65x49xf64>
  %t = wg.tanh %s : tensor<65x49xf64>
  %u = wg.add %t, %y : tensor<65x49xf64>
  return %s, %u : tensor<65x49xf64>, tensor<65x49xf64>
}
func.func @few_f64_49_65(%x: tensor<49x65xf64>, %z: tensor<65x49xf64>) -> tensor<65x49xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<49x65xf64> -> tensor<65x49xf64>
  %s = wg.mul %y, %z : tensor<65x49xf64>
  return %s : tensor<65x49xf64>
}
func.func @many_f64_512_9(%x: tensor<512x9xf64>, %z: tensor<9x512xf64>) -> (tensor<9x512xf64>, tensor<9x512xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<512x9xf64> -> tensor<9x512xf64>
  %e = wg.exp %y : tensor<9x512xf64>
  %s = wg.mul %e, %z : tensor<9x512xf64>
  %t = wg.tanh %s : tensor<9x512xf64>
  %u = wg.add %t, %y : tensor<9x512xf64>
  return %s, %u : tensor<9x512xf64>, tensor<9x512xf64>
}
func.func @few_f64_512_9(%x: tensor<512x9xf64>, %z: tensor<9x512xf64>) -> tensor<9x512xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<512x9xf64> -> tensor<9x512xf64>
  %s = wg.mul %y, %z : tensor<9x512xf64>
  return %s : tensor<9x512xf64>
}
func.func @many_f64_9_512(%x: tensor<9x512xf64>, %z: tensor<512x9xf64>) -> (tensor<512x9xf64>, tensor<512x9xf64>) {
  %y = wg.transpose %x by [1, 0] : tensor<9x512xf64> -> tensor<512x9xf64>
  %e = wg.exp %y : tensor<512x9xf64>
  %s = wg.mul %e, %z : tensor<512x9xf64>
  %t = wg.tanh %s : tensor<512x9xf64>
  %u = wg.add %t, %y : tensor<512x9xf64>
  return %s, %u : tensor<512x9xf64>, tensor<512x9xf64>
}
func.func @few_f64_9_512(%x: tensor<9x512xf64>, %z: tensor<512x9xf64>) -> tensor<512x9xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<9x512xf64> -> tensor<512x9xf64>
  %s = wg.mul %y, %z : tensor<512x9xf64>
  return %s : tensor<512x9xf64>
}
func.func @many_f32_61_53(%x: tensor<61x53xf32>, %z: tensor<53x61xf32>) -> (tensor<53x61xf32>, tensor<53x61xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<61x53xf32> -> tensor<53x61xf32>
  %e = wg.exp %y : tensor<53x61xf32>
  %s = wg.mul %e, %z : tensor<53x61xf32>
  %t = wg.tanh %s : tensor<53x61xf32>
  %u = wg.add %t, %y : tensor<53x61xf32>
  return %s, %u : tensor<53x61xf32>, tensor<53x61xf32>
}
func.func @few_f32_61_53(%x: tensor<61x53xf32>, %z: tensor<53x61xf32>) -> tensor<53x61xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<61x53xf32> -> tensor<53x61xf32>
  %s = wg.mul %y, %z : tensor<53x61xf32>
  return %s : tensor<53x61xf32>
}
func.func @many_f32_64_64(%x: tensor<64x64xf32>, %z: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %e = wg.exp %y : tensor<64x64xf32>
  %s = wg.mul %e, %z : tensor<64x64xf32>
  %t = wg.tanh %s : tensor<64x64xf32>
  %u = wg.add %t, %y : tensor<64x64xf32>
  return %s, %u : tensor<64x64xf32>, tensor<64x64xf32>
}
func.func @few_f32_64_64(%x: tensor<64x64xf32>, %z: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %s = wg.mul %y, %z : tensor<64x64xf32>
  return %s : tensor<64x64xf32>
}
func.func @many_f32_130_19(%x: tensor<130x19xf32>, %z: tensor<19x130xf32>) -> (tensor<19x130xf32>, tensor<19x130xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<130x19xf32> -> tensor<19x130xf32>
  %e = wg.exp %y : tensor<19x130xf32>
  %s = wg.mul %e, %z : tensor<19x130xf32>
  %t = wg.tanh %s : tensor<19x130xf32>
  %u = wg.add %t, %y : tensor<19x130xf32>
  return %s, %u : tensor<19x130xf32>, tensor<19x130xf32>
}
func.func @few_f32_130_19(%x: tensor<130x19xf32>, %z: tensor<19x130xf32>) -> tensor<19x130xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<130x19xf32> -> tensor<19x130xf32>
  %s = wg.mul %y, %z : tensor<19x130xf32>
  return %s : tensor<19x130xf32>
}
func.func @many_f32_18_300(%x: tensor<18x300xf32>, %z: tensor<300x18xf32>) -> (tensor<300x18xf32>, tensor<300x18xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<18x300xf32> -> tensor<300x18xf32>
  %e = wg.exp %y : tensor<300x18xf32>
  %s = wg.mul %e, %z : tensor<300x18xf32>
  %t = wg.tanh %s : tensor<300x18xf32>
  %u = wg.add %t, %y : tensor<300x18xf32>
  return %s, %u : tensor<300x18xf32>, tensor<300x18xf32>
}
func.func @few_f32_18_300(%x: tensor<18x300xf32>, %z: tensor<300x18xf32>) -> tensor<300x18xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<18x300xf32> -> tensor<300x18xf32>
  %s = wg.mul %y, %z : tensor<300x18xf32>
  return %s : tensor<300x18xf32>
}
func.func @many_f32_5_600(%x: tensor<5x600xf32>, %z: tensor<600x5xf32>) -> (tensor<600x5xf32>, tensor<600x5xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<5x600xf32> -> tensor<600x5xf32>
  %e = wg.exp %y : tensor<600x5xf32>
  %s = wg.mul %e, %z : tensor<600x5xf32>
  %t = wg.tanh %s : tensor<600x5xf32>
  %u = wg.add %t, %y : tensor<600x5xf32>
  return %s, %u : tensor<600x5xf32>, tensor<600x5xf32>
}
func.func @few_f32_5_600(%x: tensor<5x600xf32>, %z: tensor<600x5xf32>) -> tensor<600x5xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<5x600xf32> -> tensor<600x5xf32>
  %s = wg.mul %y, %z : tensor<600x5xf32>
  return %s : tensor<600x5xf32>
}
func.func @many_f32_600_5(%x: tensor<600x5xf32>, %z: tensor<5x600xf32>) -> (tensor<5x600xf32>, tensor<5x600xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<600x5xf32> -> tensor<5x600xf32>
  %e = wg.exp %y : tensor<5x600xf32>
  %s = wg.mul %e, %z : tensor<5x600xf32>
  %t = wg.tanh %s : tensor<5x600xf32>
  %u = wg.add %t, %y : tensor<5x600xf32>
  return %s, %u : tensor<5x600xf32>, tensor<5x600xf32>
}
func.func @few_f32_600_5(%x: tensor<600x5xf32>, %z: tensor<5x600xf32>) -> tensor<5x600xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<600x5xf32> -> tensor<5x600xf32>
  %s = wg.mul %y, %z : tensor<5x600xf32>
  return %s : tensor<5x600xf32>
}
func.func @many_f32_20_1024(%x: tensor<20x1024xf32>, %z: tensor<1024x20xf32>) -> (tensor<1024x20xf32>, tensor<1024x20xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<20x1024xf32> -> tensor<1024x20xf32>
  %e = wg.exp %y : tensor<1024x20xf32>
  %s = wg.mul %e, %z : tensor<1024x20xf32>
  %t = wg.tanh %s : tensor<1024x20xf32>
  %u = wg.add %t, %y : tensor<1024x20xf32>
  return %s, %u : tensor<1024x20xf32>, tensor<1024x20xf32>
}
func.func @few_f32_20_1024(%x: tensor<20x1024xf32>, %z: tensor<1024x20xf32>) -> tensor<1024x20xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<20x1024xf32> -> tensor<1024x20xf32>
  %s = wg.mul %y, %z : tensor<1024x20xf32>
  return %s : tensor<1024x20xf32>
}
func.func @many_f32_3_1024(%x: tensor<3x1024xf32>, %z: tensor<1024x3xf32>) -> (tensor<1024x3xf32>, tensor<1024x3xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<3x1024xf32> -> tensor<1024x3xf32>
  %e = wg.exp %y : tensor<1024x3xf32>
  %s = wg.mul %e, %z : tensor<1024x3xf32>
  %t = wg.tanh %s : tensor<1024x3xf32>
  %u = wg.add %t, %y : tensor<1024x3xf32>
  return %s, %u : tensor<1024x3xf32>, tensor<1024x3xf32>
}
func.func @few_f32_3_1024(%x: tensor<3x1024xf32>, %z: tensor<1024x3xf32>) -> tensor<1024x3xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<3x1024xf32> -> tensor<1024x3xf32>
  %s = wg.mul %y, %z : tensor<1024x3xf32>
  return %s : tensor<1024x3xf32>
}
func.func @many_f32_49_65(%x: tensor<49x65xf32>, %z: tensor<65x49xf32>) -> (tensor<65x49xf32>, tensor<65x49xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<49x65xf32> -> tensor<65x49xf32>
  %e = wg.exp %y : tensor<65x49xf32>
  %s = wg.mul %e, %z : tensor<65x49xf32>
  %t = wg.tanh %s : tensor<65x49xf32>
  %u = wg.add %t, %y : tensor<65x49xf32>
  return %s, %u : tensor<65x49xf32>, tensor<65x49xf32>
}
func.func @few_f32_49_65(%x: tensor<49x65xf32>, %z: tensor<65x49xf32>) -> tensor<65x49xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<49x65xf32> -> tensor<65x49xf32>
  %s = wg.mul %y, %z : tensor<65x49xf32>
  return %s : tensor<65x49xf32>
}
func.func @many_f32_512_9(%x: tensor<512x9xf32>, %z: tensor<9x512xf32>) -> (tensor<9x512xf32>, tensor<9x512xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<512x9xf32> -> tensor<9x512xf32>
  %e = wg.exp %y : tensor<9x512xf32>
  %s = wg.mul %e, %z : tensor<9x512xf32>
  %t = wg.tanh %s : tensor<9x512xf32>
  %u = wg.add %t, %y : tensor<9x512xf32>
  return %s, %u : tensor<9x512xf32>, tensor<9x512xf32>
}
func.func @few_f32_512_9(%x: tensor<512x9xf32>, %z: tensor<9x512xf32>) -> tensor<9x512xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<512x9xf32> -> tensor<9x512xf32>
  %s = wg.mul %y, %z : tensor<9x512xf32>
  return %s : tensor<9x512xf32>
}
func.func @many_f32_9_512(%x: tensor<9x512xf32>, %z: tensor<512x9xf32>) -> (tensor<512x9xf32>, tensor<512x9xf32>) {
  %y = wg.transpose %x by [1, 0] : tensor<9x512xf32> -> tensor<512x9xf32>
  %e = wg.exp %y : tensor<512x9xf32>
  %s = wg.mul %e, %z : tensor<512x9xf32>
  %t = wg.tanh %s : tensor<512x9xf32>
  %u = wg.add %t, %y : tensor<512x9xf32>
  return %s, %u : tensor<512x9xf32>, tensor<512x9xf32>
}
func.func @few_f32_9_512(%x: tensor<9x512xf32>, %z: tensor<512x9xf32>) -> tensor<512x9xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<9x512xf32> -> tensor<512x9xf32>
  %s = wg.mul %y, %z : tensor<512x9xf32>
  return %s : tensor<512x9xf32>
}
