// inputs in [-1, 1]
func.func @nn(%a: tensor<37x53xf32>, %b: tensor<53x71xf32>, %c: tensor<71xf32>) -> tensor<37x71xf32> {
  %p = wg.contract "mk,kn->mn" %a, %b : tensor<37x53xf32>, tensor<53x71xf32> -> tensor<37x71xf32>
  %cc = wg.broadcast %c to [37, 71] dims [1] : tensor<71xf32> -> tensor<37x71xf32>
  %s = wg.add %p, %cc : tensor<37x71xf32>
  %r = wg.relu %s : tensor<37x71xf32>
  return %r : tensor<37x71xf32>
}
func.func @tn(%a: tensor<64x49xf32>, %b: tensor<64x10xf32>) -> tensor<49x10xf32> {
  %p = wg.contract "km,kn->mn" %a, %b : tensor<64x49xf32>, tensor<64x10xf32> -> tensor<49x10xf32>
  return %p : tensor<49x10xf32>
}
func.func @nt(%a: tensor<33x40xf32>, %b: tensor<51x40xf32>, %h: tensor<33x51xf32>) -> tensor<33x51xf32> {
  %p = wg.contract "mk,nk->mn" %a, %b : tensor<33x40xf32>, tensor<51x40xf32> -> tensor<33x51xf32>
  %z = wg.zeros_like %h : tensor<33x51xf32>
  %c = wg.greater %h, %z : tensor<33x51xf32>
  %s = wg.select %c, %p, %z : tensor<33x51xi1>, tensor<33x51xf32>
  return %s : tensor<33x51xf32>
}
func.func @tt(%a: tensor<40x33xf64>, %b: tensor<51x40xf64>) -> tensor<33x51xf64> {
  %p = wg.contract "km,nk->mn" %a, %b : tensor<40x33xf64>, tensor<51x40xf64> -> tensor<33x51xf64>
  return %p : tensor<33x51xf64>
}
func.func @batched(%a: tensor<3x5x7xf32>, %b: tensor<3x7x19xf32>) -> tensor<3x5x19xf32> {
  %p = wg.contract "bmk,bkn->bmn" %a, %b : tensor<3x5x7xf32>, tensor<3x7x19xf32> -> tensor<3x5x19xf32>
  return %p : tensor<3x5x19xf32>
}
func.func @rows_of_two_axes(%a: tensor<3x5x7xf32>, %b: tensor<7x19xf32>, %c: tensor<3x19xf32>) -> tensor<3x5x19xf32> {
  %p = wg.contract "abk,kn->abn" %a, %b : tensor<3x5x7xf32>, tensor<7x19xf32> -> tensor<3x5x19xf32>
  %cc = wg.broadcast %c to [3, 5, 19] dims [0, 2] : tensor<3x19xf32> -> tensor<3x5x19xf32>
  %s = wg.add %p, %cc : tensor<3x5x19xf32>
  return %s : tensor<3x5x19xf32>
}
func.func @exchanged(%a: tensor<7x19xf32>, %b: tensor<5x7xf32>) -> tensor<5x19xf32> {
  %p = wg.contract "kn,mk->mn" %a, %b : tensor<7x19xf32>, tensor<5x7xf32> -> tensor<5x19xf32>
  return %p : tensor<5x19xf32>
}
func.func @transposed_result(%a: tensor<7x19xf32>, %b: tensor<19x5xf32>) -> tensor<5x7xf32> {
  %p = wg.contract "mk,kn->nm" %a, %b : tensor<7x19xf32>, tensor<19x5xf32> -> tensor<5x7xf32>
  return %p : tensor<5x7xf32>
}
func.func @thin(%a: tensor<33x40xf32>, %x: tensor<40xf32>, %y: tensor<33xf32>) -> (tensor<33xf32>, tensor<40xf32>, tensor<33x40xf32>, tensor<f32>) {
  %p = wg.contract "mk,k->m" %a, %x : tensor<33x40xf32>, tensor<40xf32> -> tensor<33xf32>
  %q = wg.contract "mk,m->k" %a, %y : tensor<33x40xf32>, tensor<33xf32> -> tensor<40xf32>
  %o = wg.contract "m,k->mk" %y, %x : tensor<33xf32>, tensor<40xf32> -> tensor<33x40xf32>
  %d = wg.contract "k,k->" %x, %x : tensor<40xf32>, tensor<40xf32> -> tensor<f32>
  return %p, %q, %o, %d : tensor<33xf32>, tensor<40xf32>, tensor<33x40xf32>, tensor<f32>
}
func.func @batch_innermost(%a: tensor<4x6xf32>, %b: tensor<5x6xf32>) -> tensor<4x5x6xf32> {
  %p = wg.contract "mb,nb->mnb" %a, %b : tensor<4x6xf32>, tensor<5x6xf32> -> tensor<4x5x6xf32>
  return %p : tensor<4x5x6xf32>
}
func.func @update(%x: tensor<64x48xf32>, %d: tensor<64x32xf32>, %w: tensor<48x32xf32> {wg.result = 0 : i64}) -> (tensor<48x32xf32>, tensor<64x48xf32>) {
  %lr = wg.constant dense<0.1> : tensor<48x32xf32>
  %g = wg.contract "km,kn->mn" %x, %d : tensor<64x48xf32>, tensor<64x32xf32> -> tensor<48x32xf32>
  %u = wg.mul %lr, %g : tensor<48x32xf32>
  %n = wg.sub %w, %u : tensor<48x32xf32>
  %dx = wg.contract "mk,nk->mn" %d, %w : tensor<64x32xf32>, tensor<48x32xf32> -> tensor<64x48xf32>
  return %n, %dx : tensor<48x32xf32>, tensor<64x48xf32>
}
func.func @exchange(%a: tensor<8xf32> {wg.result = 1 : i64}, %b: tensor<8xf32> {wg.result = 0 : i64}) -> (tensor<8xf32>, tensor<8xf32>) {
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}
func.func @packed(%a: tensor<64x512xf32>, %b: tensor<64x512xf32>, %c: tensor<130x512xf32>) -> (tensor<512x512xf32>, tensor<130x64xf32>) {
  %p = wg.contract "km,kn->mn" %a, %b : tensor<64x512xf32>, tensor<64x512xf32> -> tensor<512x512xf32>
  %q = wg.contract "mk,nk->mn" %c, %a : tensor<130x512xf32>, tensor<64x512xf32> -> tensor<130x64xf32>
  return %p, %q : tensor<512x512xf32>, tensor<130x64xf32>
}
func.func @columns_of_two_axes(%a: tensor<5x7xf32>, %b: tensor<7x3x19xf32>, %c: tensor<19xf32>, %d: tensor<3xf32>) -> tensor<5x3x19xf32> {
  %p = wg.contract "mk,kno->mno" %a, %b : tensor<5x7xf32>, tensor<7x3x19xf32> -> tensor<5x3x19xf32>
  %cc = wg.broadcast %c to [5, 3, 19] dims [2] : tensor<19xf32> -> tensor<5x3x19xf32>
  %dd = wg.broadcast %d to [5, 3, 19] dims [1] : tensor<3xf32> -> tensor<5x3x19xf32>
  %s = wg.add %p, %cc : tensor<5x3x19xf32>
  %t = wg.mul %s, %dd : tensor<5x3x19xf32>
  return %t : tensor<5x3x19xf32>
}
func.func @long_epilogue_m37_n53(%a: tensor<37x9xf32>, %b: tensor<9x53xf32>, %z: tensor<37x53xf32>) -> (tensor<37x53xf32>, tensor<37x53xf32>) {
  %p = wg.contract "mk,kn->mn" %a, %b : tensor<37x9xf32>, tensor<9x53xf32> -> tensor<37x53xf32>
  %s = wg.sin %p : tensor<37x53xf32>
  %q = wg.mul %s, %z : tensor<37x53xf32>
  %t = wg.tanh %q : tensor<37x53xf32>
  %u = wg.exp %t : tensor<37x53xf32>
  %v = wg.add %u, %p : tensor<37x53xf32>
  return %v, %t : tensor<37x53xf32>, tensor<37x53xf32>
}
func.func @long_epilogue_m5_n20(%a: tensor<5x4xf64>, %b: tensor<4x20xf64>, %z: tensor<5x20xf64>) -> (tensor<5x20xf64>, tensor<5x20xf64>) {
  %p = wg.contract "mk,kn->mn" %a, %b : tensor<5x4xf64>, tensor<4x20xf64> -> tensor<5x20xf64>
  %s = wg.sin %p : tensor<5x20xf64>
  %q = wg.mul %s, %z : tensor<5x20xf64>
  %t = wg.tanh %q : tensor<5x20xf64>
  %u = wg.exp %t : tensor<5x20xf64>
  %v = wg.add %u, %p : tensor<5x20xf64>
  return %v, %t : tensor<5x20xf64>, tensor<5x20xf64>
}
func.func @long_epilogue_batched(%a: tensor<3x26x5xf32>, %b: tensor<3x5x70xf32>, %z: tensor<3x26x70xf32>) -> (tensor<3x26x70xf32>, tensor<3x26x70xf32>) {
  %p = wg.contract "bmk,bkn->bmn" %a, %b : tensor<3x26x5xf32>, tensor<3x5x70xf32> -> tensor<3x26x70xf32>
  %s = wg.sin %p : tensor<3x26x70xf32>
  %q = wg.mul %s, %z : tensor<3x26x70xf32>
  %t = wg.tanh %q : tensor<3x26x70xf32>
  %u = wg.exp %t : tensor<3x26x70xf32>
  %v = wg.add %u, %p : tensor<3x26x70xf32>
  return %v, %t : tensor<3x26x70xf32>, tensor<3x26x70xf32>
}
func.func @long_epilogue_two_rows(%a: tensor<3x7x4xf64>, %b: tensor<4x11xf64>, %z: tensor<3x7x11xf64>) -> (tensor<3x7x11xf64>, tensor<3x7x11xf64>) {
  %p = wg.contract "abk,kn->abn" %a, %b : tensor<3x7x4xf64>, tensor<4x11xf64> -> tensor<3x7x11xf64>
  %s = wg.sin %p : tensor<3x7x11xf64>
  %q = wg.mul %s, %z : tensor<3x7x11xf64>
  %t = wg.tanh %q : tensor<3x7x11xf64>
  %u = wg.exp %t : tensor<3x7x11xf64>
  %v = wg.add %u, %p : tensor<3x7x11xf64>
  return %v, %t : tensor<3x7x11xf64>, tensor<3x7x11xf64>
}
func.func @long_epilogue_long_sum(%a: tensor<26x200xf32>, %b: tensor<200x40xf32>, %z: tensor<26x40xf32>) -> (tensor<26x40xf32>, tensor<26x40xf32>) {
  %p = wg.contract "mk,kn->mn" %a, %b : tensor<26x200xf32>, tensor<200x40xf32> -> tensor<26x40xf32>
  %s = wg.sin %p : tensor<26x40xf32>
  %q = wg.mul %s, %z : tensor<26x40xf32>
  %t = wg.tanh %q : tensor<26x40xf32>
  %u = wg.exp %t : tensor<26x40xf32>
  %v = wg.add %u, %p : tensor<26x40xf32>
  return %v, %t : tensor<26x40xf32>, tensor<26x40xf32>
}
