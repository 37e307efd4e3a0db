// inputs in [-1, 1]
// Products with related letters beside what follows them in their kernel: layouts, tails, edges, copies of panels.
func.func @layer(%x: tensor<2x13x17x5xf32>, %w: tensor<3x3x5x37xf32>, %b: tensor<37xf32>) -> tensor<2x13x17x37xf32> {
  %p = wg.contract "nhwc,rsco->npqo; h=p+r-1; w=q+s-1" %x, %w to [13, 17] : tensor<2x13x17x5xf32>, tensor<3x3x5x37xf32> -> tensor<2x13x17x37xf32>
  %c = wg.broadcast %b to [2, 13, 17, 37] dims [3] : tensor<37xf32> -> tensor<2x13x17x37xf32>
  %s = wg.add %p, %c : tensor<2x13x17x37xf32>
  %y = wg.relu %s : tensor<2x13x17x37xf32>
  return %y : tensor<2x13x17x37xf32>
}
// Both gradients of a layer by strides, the second with an update of the weights.
func.func @image(%g: tensor<2x9x11x40xf64>, %w: tensor<3x4x7x40xf64>) -> tensor<2x18x33x7xf64> {
  %p = wg.contract "npqo,rsco->nhwc; h=2p+r-1; w=3q+2s-2" %g, %w to [18, 33] : tensor<2x9x11x40xf64>, tensor<3x4x7x40xf64> -> tensor<2x18x33x7xf64>
  return %p : tensor<2x18x33x7xf64>
}
func.func @weights(%x: tensor<2x18x33x7xf32>, %g: tensor<2x9x11x40xf32>, %w: tensor<3x4x7x40xf32>) -> tensor<3x4x7x40xf32> {
  %p = wg.contract "nhwc,npqo->rsco; h=2p+r-1; w=3q+2s-2" %x, %g to [3, 4] : tensor<2x18x33x7xf32>, tensor<2x9x11x40xf32> -> tensor<3x4x7x40xf32>
  %t = wg.constant dense<0.125> : tensor<3x4x7x40xf32>
  %d = wg.mul %p, %t : tensor<3x4x7x40xf32>
  %n = wg.sub %w, %d : tensor<3x4x7x40xf32>
  return %n : tensor<3x4x7x40xf32>
}
// A related letter ends the result.
func.func @channels_first(%x: tensor<2x5x13x30xf32>, %w: tensor<21x5x3x3xf32>, %d: tensor<2x21x13x30xf32>) -> tensor<2x21x13x30xf32> {
  %p = wg.contract "nchw,ocrs->nopq; h=p+r-1; w=q+s-1" %x, %w to [13, 30] : tensor<2x5x13x30xf32>, tensor<21x5x3x3xf32> -> tensor<2x21x13x30xf32>
  %y = wg.add %p, %d : tensor<2x21x13x30xf32>
  return %y : tensor<2x21x13x30xf32>
}
func.func @one_channel(%x: tensor<3x20x31xf32>, %w: tensor<4x5xf32>, %d: tensor<3x17x27xf32>) -> tensor<3x17x27xf32> {
  %p = wg.contract "nhw,rs->npq; h=p+r; w=q+s" %x, %w to [17, 27] : tensor<3x20x31xf32>, tensor<4x5xf32> -> tensor<3x17x27xf32>
  %y = wg.mul %p, %d : tensor<3x17x27xf32>
  return %y : tensor<3x17x27xf32>
}
// Vectors along a batch; a product for each channel, and several.
func.func @depthwise(%x: tensor<2x15x15x19xf32>, %w: tensor<5x5x19xf32>, %d: tensor<2x8x15x19xf32>) -> tensor<2x8x15x19xf32> {
  %p = wg.contract "nhwg,rsg->npqg; h=2p+r-2; w=q+s-2" %x, %w to [8, 15] : tensor<2x15x15x19xf32>, tensor<5x5x19xf32> -> tensor<2x8x15x19xf32>
  %y = wg.sub %p, %d : tensor<2x8x15x19xf32>
  return %y : tensor<2x8x15x19xf32>
}
func.func @depthwise_columns(%x: tensor<2x15x19xf32>, %w: tensor<5x3x19xf32>) -> tensor<2x15x3x19xf32> {
  %p = wg.contract "nhg,rog->npog; h=p+r-2" %x, %w to [15] : tensor<2x15x19xf32>, tensor<5x3x19xf32> -> tensor<2x15x3x19xf32>
  return %p : tensor<2x15x3x19xf32>
}
// An epilogue that is a loop.
func.func @long(%x: tensor<1x29x6xf32>, %w: tensor<3x6x33xf32>) -> tensor<1x29x33xf32> {
  %p = wg.contract "nhc,rco->npo; h=p+r-1" %x, %w to [29] : tensor<1x29x6xf32>, tensor<3x6x33xf32> -> tensor<1x29x33xf32>
  %0 = wg.tanh %p : tensor<1x29x33xf32>
  %1 = wg.sin %0 : tensor<1x29x33xf32>
  %2 = wg.exp %1 : tensor<1x29x33xf32>
  %3 = wg.mul %2, %p : tensor<1x29x33xf32>
  %4 = wg.sigmoid %3 : tensor<1x29x33xf32>
  return %4 : tensor<1x29x33xf32>
}
// A panel that is copied: its weights are larger than the caches close by.
func.func @wide(%x: tensor<1x10x11x160xf32>, %w: tensor<3x3x160x200xf32>) -> tensor<1x10x11x200xf32> {
  %p = wg.contract "nhwc,rsco->npqo; h=p+r-1; w=q+s-1" %x, %w to [10, 11] : tensor<1x10x11x160xf32>, tensor<3x3x160x200xf32> -> tensor<1x10x11x200xf32>
  return %p : tensor<1x10x11x200xf32>
}
// No term at all.
func.func @outside(%x: tensor<4x3xf32>, %w: tensor<2x3x18xf32>, %d: tensor<7x18xf32>) -> tensor<7x18xf32> {
  %p = wg.contract "hc,rco->po; h=p+r+20" %x, %w to [7] : tensor<4x3xf32>, tensor<2x3x18xf32> -> tensor<7x18xf32>
  %y = wg.add %p, %d : tensor<7x18xf32>
  return %y : tensor<7x18xf32>
}
func.func @empty(%x: tensor<0x3xf32>, %w: tensor<2x3x18xf32>, %d: tensor<7x18xf32>) -> tensor<7x18xf32> {
  %p = wg.contract "hc,rco->po; h=p+r-3" %x, %w to [7] : tensor<0x3xf32>, tensor<2x3x18xf32> -> tensor<7x18xf32>
  %y = wg.add %p, %d : tensor<7x18xf32>
  return %y : tensor<7x18xf32>
}
