// inputs in [-1, 1]
// Results and operands of more than 8 MiB: products of few terms by rows, some at a time or, of more than 32 MiB, one;
// sums over short rows one after another.
func.func @some_rows_f32_7001_301_3(%a: tensor<7001x3xf32>, %b: tensor<3x301xf32>, %v: tensor<301xf32>) -> tensor<7001x301xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<7001x3xf32>, tensor<3x301xf32> -> tensor<7001x301xf32>
  %w = wg.broadcast %v to [7001, 301] dims [1] : tensor<301xf32> -> tensor<7001x301xf32>
  %s = wg.add %c, %w : tensor<7001x301xf32>
  return %s : tensor<7001x301xf32>
}
func.func @some_rows_streamed_f32_1500_1500_5(%a: tensor<5x1500xf32>, %b: tensor<5x1500xf32>, %w: tensor<1500x1500xf32>) -> tensor<1500x1500xf32> {
  %c = wg.contract "km,kn->mn" %a, %b : tensor<5x1500xf32>, tensor<5x1500xf32> -> tensor<1500x1500xf32>
  %s = wg.sub %w, %c : tensor<1500x1500xf32>
  return %s : tensor<1500x1500xf32>
}
func.func @some_rows_of_batches_f64_5_1201_203_7(%a: tensor<5x1201x7xf64>, %b: tensor<5x7x203xf64>) -> tensor<5x1201x203xf64> {
  %c = wg.contract "imk,ikn->imn" %a, %b : tensor<5x1201x7xf64>, tensor<5x7x203xf64> -> tensor<5x1201x203xf64>
  return %c : tensor<5x1201x203xf64>
}
func.func @some_rows_of_two_letters_f32(%a: tensor<61x4x130xf32>, %b: tensor<4x307xf32>) -> tensor<130x61x307xf32> {
  %c = wg.contract "jkm,kn->mjn" %a, %b : tensor<61x4x130xf32>, tensor<4x307xf32> -> tensor<130x61x307xf32>
  return %c : tensor<130x61x307xf32>
}
func.func @one_row_of_batches_f32_40_703_301_4(%a: tensor<4x40x301xf32>, %b: tensor<40x703x4xf32>) -> tensor<40x703x301xf32> {
  %c = wg.contract "jkl,kij->kil" %a, %b : tensor<4x40x301xf32>, tensor<40x703x4xf32> -> tensor<40x703x301xf32>
  return %c : tensor<40x703x301xf32>
}
func.func @some_rows_of_four_letters_f32(%a: tensor<5x3x6x6x6xf32>, %b: tensor<3x2503xf32>) -> tensor<6x6x5x6x2503xf32> {
  %c = wg.contract "iklmj,kn->jlimn" %a, %b : tensor<5x3x6x6x6xf32>, tensor<3x2503xf32> -> tensor<6x6x5x6x2503xf32>
  return %c : tensor<6x6x5x6x2503xf32>
}
func.func @some_rows_streamed_f32_11003_203_40(%a: tensor<40x11003xf32>, %b: tensor<40x203xf32>, %w: tensor<11003x203xf32>) -> tensor<11003x203xf32> {
  %c = wg.contract "km,kn->mn" %a, %b : tensor<40x11003xf32>, tensor<40x203xf32> -> tensor<11003x203xf32>
  %s = wg.sub %w, %c : tensor<11003x203xf32>
  return %s : tensor<11003x203xf32>
}
func.func @some_rows_f32_17003_127_64(%a: tensor<17003x64xf32>, %b: tensor<64x127xf32>) -> tensor<17003x127xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<17003x64xf32>, tensor<64x127xf32> -> tensor<17003x127xf32>
  return %c : tensor<17003x127xf32>
}
func.func @some_rows_of_batches_f32_40_111_501_16(%a: tensor<40x16x111xf32>, %b: tensor<40x16x501xf32>) -> tensor<40x111x501xf32> {
  %c = wg.contract "ikm,ikn->imn" %a, %b : tensor<40x16x111xf32>, tensor<40x16x501xf32> -> tensor<40x111x501xf32>
  return %c : tensor<40x111x501xf32>
}
func.func @sums_of_short_rows_f32_45_61_803(%x: tensor<45x61x803xf32>) -> tensor<45x803xf32> {
  %s = wg.reduce_sum %x axes [1] : tensor<45x61x803xf32> -> tensor<45x803xf32>
  return %s : tensor<45x803xf32>
}
func.func @sums_of_short_rows_in_blocks_f64_3_1025_357(%x: tensor<3x1025x357xf64>, %w: tensor<3x1025xf64>) -> tensor<3x357xf64> {
  %v = wg.broadcast %w to [3, 1025, 357] dims [0, 1] : tensor<3x1025xf64> -> tensor<3x1025x357xf64>
  %p = wg.mul %x, %v : tensor<3x1025x357xf64>
  %s = wg.reduce_sum %p axes [1] : tensor<3x1025x357xf64> -> tensor<3x357xf64>
  %e = wg.exp %s : tensor<3x357xf64>
  return %e : tensor<3x357xf64>
}
func.func @two_of_short_rows_f32_11_400_501(%x: tensor<11x400x501xf32>) -> (tensor<11x501xf32>, tensor<11x501xf32>) {
  %s = wg.reduce_sum %x axes [1] : tensor<11x400x501xf32> -> tensor<11x501xf32>
  %q = wg.mul %x, %x : tensor<11x400x501xf32>
  %t = wg.reduce_max %q axes [1] : tensor<11x400x501xf32> -> tensor<11x501xf32>
  return %s, %t : tensor<11x501xf32>, tensor<11x501xf32>
}
