// inputs in [-1, 1]
func.func @squeezed_and_multiplied(%x: tensor<5x1x7xf32>, %w: tensor<7x7xf32>) -> tensor<5x7xf32> {
  %h = wg.reshape %x to [5, 7] : tensor<5x1x7xf32> -> tensor<5x7xf32>
  %p = wg.contract "mk,kn->mn" %h, %w : tensor<5x7xf32>, tensor<7x7xf32> -> tensor<5x7xf32>
  %y = wg.add %h, %p : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}
func.func @expanded_and_multiplied(%x: tensor<5xf32>, %w: tensor<1x7xf32>) -> tensor<5x7xf32> {
  %c = wg.reshape %x to [5, 1] : tensor<5xf32> -> tensor<5x1xf32>
  %p = wg.contract "mk,kn->mn" %c, %w : tensor<5x1xf32>, tensor<1x7xf32> -> tensor<5x7xf32>
  %cc = wg.broadcast %c to [5, 7] dims [0, 1] : tensor<5x1xf32> -> tensor<5x7xf32>
  %y = wg.mul %p, %cc : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}
func.func @computed_and_squeezed(%x: tensor<5x1x7xf32>, %w: tensor<7x7xf32>) -> tensor<5x7xf32> {
  %t = wg.tanh %x : tensor<5x1x7xf32>
  %h = wg.reshape %t to [5, 7] : tensor<5x1x7xf32> -> tensor<5x7xf32>
  %p = wg.contract "mk,kn->mn" %h, %w : tensor<5x7xf32>, tensor<7x7xf32> -> tensor<5x7xf32>
  %y = wg.add %h, %p : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}
func.func @padded_and_shown(%x: tensor<6xf64>) -> tensor<4x6xf64> {
  %h = wg.reshape %x to [1, 6] : tensor<6xf64> -> tensor<1x6xf64>
  %p = wg.pad %h low [2, 0] high [1, 0] interior [0, 0] : tensor<1x6xf64> -> tensor<4x6xf64>
  %b = wg.broadcast %h to [4, 6] dims [0, 1] : tensor<1x6xf64> -> tensor<4x6xf64>
  %y = wg.add %p, %b : tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @transposed_padded_and_shown(%x: tensor<6x4xf64>) -> tensor<4x6xf64> {
  %h = wg.transpose %x by [1, 0] : tensor<6x4xf64> -> tensor<4x6xf64>
  %s = wg.slice %h from [0, 1] to [4, 6] by [1, 1] : tensor<4x6xf64> -> tensor<4x5xf64>
  %p = wg.pad %s low [0, 1] high [0, 0] interior [0, 0] : tensor<4x5xf64> -> tensor<4x6xf64>
  %y = wg.add %p, %h : tensor<4x6xf64>
  %z = wg.concat %s, %p axis 1 : tensor<4x5xf64>, tensor<4x6xf64> -> tensor<4x11xf64>
  %m = wg.slice %z from [0, 5] to [4, 11] by [1, 1] : tensor<4x11xf64> -> tensor<4x6xf64>
  %q = wg.sub %y, %m : tensor<4x6xf64>
  return %q : tensor<4x6xf64>
}
func.func @concatenated_and_shown(%x: tensor<3x1x4xf64>) -> tensor<6x4xf64> {
  %h = wg.reshape %x to [3, 4] : tensor<3x1x4xf64> -> tensor<3x4xf64>
  %c = wg.concat %h, %h axis 0 : tensor<3x4xf64>, tensor<3x4xf64> -> tensor<6x4xf64>
  %r = wg.slice %h from [1, 0] to [2, 4] by [1, 1] : tensor<3x4xf64> -> tensor<1x4xf64>
  %b = wg.broadcast %r to [6, 4] dims [0, 1] : tensor<1x4xf64> -> tensor<6x4xf64>
  %y = wg.mul %c, %b : tensor<6x4xf64>
  return %y : tensor<6x4xf64>
}
func.func @places_read_twice(%i: tensor<1x4xi64>) -> tensor<4x5xf64> {
  %j = wg.reshape %i to [4] : tensor<1x4xi64> -> tensor<4xi64>
  %o = wg.one_hot %j depth 5 {dtype = f64} : tensor<4xi64> -> tensor<4x5xf64>
  %f = wg.cast %j {dtype = f64} : tensor<4xi64> -> tensor<4xf64>
  %b = wg.broadcast %f to [4, 5] dims [0] : tensor<4xf64> -> tensor<4x5xf64>
  %y = wg.add %o, %b : tensor<4x5xf64>
  return %y : tensor<4x5xf64>
}
func.func @one_hot_multiplied_and_shown(%i: tensor<4xi64>, %w: tensor<5x5xf64>) -> (tensor<4x5xf64>, tensor<4x5xf64>) {
  %o = wg.one_hot %i depth 5 {dtype = f64} : tensor<4xi64> -> tensor<4x5xf64>
  %p = wg.contract "mk,kn->mn" %o, %w : tensor<4x5xf64>, tensor<5x5xf64> -> tensor<4x5xf64>
  %y = wg.add %o, %p : tensor<4x5xf64>
  return %y, %o : tensor<4x5xf64>, tensor<4x5xf64>
}
func.func @iota_multiplied_and_shown(%w: tensor<5x5xf32>) -> tensor<4x5xf32> {
  %o = wg.iota to [4, 5] axis 1 {dtype = f32} : tensor<4x5xf32>
  %p = wg.contract "mk,kn->mn" %o, %w : tensor<4x5xf32>, tensor<5x5xf32> -> tensor<4x5xf32>
  %y = wg.add %o, %p : tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}
func.func @splat_multiplied_and_shown(%w: tensor<5x5xf32>) -> tensor<4x5xf32> {
  %o = wg.constant dense<1.5> : tensor<4x5xf32>
  %p = wg.contract "mk,kn->mn" %o, %w : tensor<4x5xf32>, tensor<5x5xf32> -> tensor<4x5xf32>
  %y = wg.add %o, %p : tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}
func.func @literal_multiplied_and_shown(%w: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %o = wg.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %p = wg.contract "mk,kn->mn" %o, %w : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %y = wg.add %o, %p : tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}
func.func @gathered_and_shown(%x: tensor<3x1x4xf64>, %i: tensor<2xi64>) -> (tensor<2x4xf64>, tensor<3x4xf64>) {
  %h = wg.reshape %x to [3, 4] : tensor<3x1x4xf64> -> tensor<3x4xf64>
  %z = wg.zeros_like %i : tensor<2xi64>
  %g = wg.gather %h, %z : tensor<3x4xf64>, tensor<2xi64> -> tensor<2x4xf64>
  %s = wg.slice %h from [0, 0] to [2, 4] by [1, 1] : tensor<3x4xf64> -> tensor<2x4xf64>
  %y = wg.add %g, %s : tensor<2x4xf64>
  return %y, %h : tensor<2x4xf64>, tensor<3x4xf64>
}
