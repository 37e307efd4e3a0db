// inputs in [-1, 1]
// Transposes that are kernels of their own because many rows read them across (passes/Fuse.cpp): of an argument, of what
// is computed, of a square whose own kernel has the shape of its readers, and beside readers that are none.
func.func @argument(%a: tensor<130x70xf32>, %b: tensor<5x70x130xf32>) -> tensor<5x70x130xf32> {
  %t = wg.transpose %a by [1, 0] : tensor<130x70xf32> -> tensor<70x130xf32>
  %w = wg.broadcast %t to [5, 70, 130] dims [1, 2] : tensor<70x130xf32> -> tensor<5x70x130xf32>
  %p = wg.mul %w, %b : tensor<5x70x130xf32>
  return %p : tensor<5x70x130xf32>
}
func.func @computed(%a: tensor<130x70xf32>, %b: tensor<5x70x130xf32>) -> (tensor<130x70xf32>, tensor<5x70xf32>) {
  %e = wg.tanh %a : tensor<130x70xf32>
  %t = wg.transpose %e by [1, 0] : tensor<130x70xf32> -> tensor<70x130xf32>
  %w = wg.broadcast %t to [5, 70, 130] dims [1, 2] : tensor<70x130xf32> -> tensor<5x70x130xf32>
  %p = wg.mul %w, %b : tensor<5x70x130xf32>
  %s = wg.reduce_sum %p axes [2] : tensor<5x70x130xf32> -> tensor<5x70xf32>
  %f = wg.mul %e, %a : tensor<130x70xf32>
  return %f, %s : tensor<130x70xf32>, tensor<5x70xf32>
}
func.func @square(%a: tensor<90x90xf32>, %b: tensor<6x90x90xf32>) -> (tensor<90x90xf32>, tensor<6x90x90xf32>) {
  %e = wg.tanh %a : tensor<90x90xf32>
  %t = wg.transpose %e by [1, 0] : tensor<90x90xf32> -> tensor<90x90xf32>
  %f = wg.add %e, %t : tensor<90x90xf32>
  %w = wg.broadcast %t to [6, 90, 90] dims [1, 2] : tensor<90x90xf32> -> tensor<6x90x90xf32>
  %p = wg.mul %w, %b : tensor<6x90x90xf32>
  return %f, %p : tensor<90x90xf32>, tensor<6x90x90xf32>
}
func.func @after_rows(%x: tensor<8x60x50xf32>, %b: tensor<8x50x60xf32>) -> (tensor<8x50x60xf32>, tensor<60x50xf32>) {
  %m = wg.reduce_max %x axes [0] : tensor<8x60x50xf32> -> tensor<60x50xf32>
  %t = wg.transpose %m by [1, 0] : tensor<60x50xf32> -> tensor<50x60xf32>
  %w = wg.broadcast %t to [8, 50, 60] dims [1, 2] : tensor<50x60xf32> -> tensor<8x50x60xf32>
  %d = wg.sub %b, %w : tensor<8x50x60xf32>
  return %d, %m : tensor<8x50x60xf32>, tensor<60x50xf32>
}
func.func @softmax_like(%x: tensor<50x50xf32>, %b: tensor<8x50x50xf32>) -> (tensor<8x50x50xf32>, tensor<8x50xf32>) {
  %m = wg.reduce_max %b axes [2] : tensor<8x50x50xf32> -> tensor<8x50xf32>
  %t = wg.transpose %x by [1, 0] : tensor<50x50xf32> -> tensor<50x50xf32>
  %w = wg.broadcast %t to [8, 50, 50] dims [1, 2] : tensor<50x50xf32> -> tensor<8x50x50xf32>
  %k = wg.broadcast %m to [8, 50, 50] dims [0, 1] : tensor<8x50xf32> -> tensor<8x50x50xf32>
  %d = wg.sub %w, %k : tensor<8x50x50xf32>
  %s = wg.reduce_sum %d axes [2] : tensor<8x50x50xf32> -> tensor<8x50xf32>
  return %d, %s : tensor<8x50x50xf32>, tensor<8x50xf32>
}
