// inputs in [-2, 2]
func.func @t_f64_37_53(%x: tensor<37x53xf64>) -> tensor<53x37xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<37x53xf64> -> tensor<53x37xf64>
  return %y : tensor<53x37xf64>
}
func.func @t_f64_16_16(%x: tensor<16x16xf64>) -> tensor<16x16xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<16x16xf64> -> tensor<16x16xf64>
  return %y : tensor<16x16xf64>
}
func.func @t_f64_5_300(%x: tensor<5x300xf64>) -> tensor<300x5xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<5x300xf64> -> tensor<300x5xf64>
  return %y : tensor<300x5xf64>
}
func.func @t_f64_2_33(%x: tensor<2x33xf64>) -> tensor<33x2xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<2x33xf64> -> tensor<33x2xf64>
  return %y : tensor<33x2xf64>
}
func.func @t_f64_33_3(%x: tensor<33x3xf64>) -> tensor<3x33xf64> {
  %y = wg.transpose %x by [1, 0] : tensor<33x3xf64> -> tensor<3x33xf64>
  return %y : tensor<3x33xf64>
}
func.func @t_f32_37_53(%x: tensor<37x53xf32>) -> tensor<53x37xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<37x53xf32> -> tensor<53x37xf32>
  return %y : tensor<53x37xf32>
}
func.func @t_f32_16_16(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}
func.func @t_f32_5_300(%x: tensor<5x300xf32>) -> tensor<300x5xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<5x300xf32> -> tensor<300x5xf32>
  return %y : tensor<300x5xf32>
}
func.func @t_f32_2_33(%x: tensor<2x33xf32>) -> tensor<33x2xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<2x33xf32> -> tensor<33x2xf32>
  return %y : tensor<33x2xf32>
}
func.func @t_f32_33_3(%x: tensor<33x3xf32>) -> tensor<3x33xf32> {
  %y = wg.transpose %x by [1, 0] : tensor<33x3xf32> -> tensor<3x33xf32>
  return %y : tensor<3x33xf32>
}
func.func @t_i64_37_53(%x: tensor<37x53xi64>) -> tensor<53x37xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<37x53xi64> -> tensor<53x37xi64>
  return %y : tensor<53x37xi64>
}
func.func @t_i64_16_16(%x: tensor<16x16xi64>) -> tensor<16x16xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<16x16xi64> -> tensor<16x16xi64>
  return %y : tensor<16x16xi64>
}
func.func @t_i64_5_300(%x: tensor<5x300xi64>) -> tensor<300x5xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<5x300xi64> -> tensor<300x5xi64>
  return %y : tensor<300x5xi64>
}
func.func @t_i64_2_33(%x: tensor<2x33xi64>) -> tensor<33x2xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<2x33xi64> -> tensor<33x2xi64>
  return %y : tensor<33x2xi64>
}
func.func @t_i64_33_3(%x: tensor<33x3xi64>) -> tensor<3x33xi64> {
  %y = wg.transpose %x by [1, 0] : tensor<33x3xi64> -> tensor<3x33xi64>
  return %y : tensor<3x33xi64>
}
func.func @t_i32_37_53(%x: tensor<37x53xi32>) -> tensor<53x37xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<37x53xi32> -> tensor<53x37xi32>
  return %y : tensor<53x37xi32>
}
func.func @t_i32_16_16(%x: tensor<16x16xi32>) -> tensor<16x16xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<16x16xi32> -> tensor<16x16xi32>
  return %y : tensor<16x16xi32>
}
func.func @t_i32_5_300(%x: tensor<5x300xi32>) -> tensor<300x5xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<5x300xi32> -> tensor<300x5xi32>
  return %y : tensor<300x5xi32>
}
func.func @t_i32_2_33(%x: tensor<2x33xi32>) -> tensor<33x2xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<2x33xi32> -> tensor<33x2xi32>
  return %y : tensor<33x2xi32>
}
func.func @t_i32_33_3(%x: tensor<33x3xi32>) -> tensor<3x33xi32> {
  %y = wg.transpose %x by [1, 0] : tensor<33x3xi32> -> tensor<3x33xi32>
  return %y : tensor<3x33xi32>
}
func.func @t_ui8_37_53(%x: tensor<37x53xui8>) -> tensor<53x37xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<37x53xui8> -> tensor<53x37xui8>
  return %y : tensor<53x37xui8>
}
func.func @t_ui8_16_16(%x: tensor<16x16xui8>) -> tensor<16x16xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<16x16xui8> -> tensor<16x16xui8>
  return %y : tensor<16x16xui8>
}
func.func @t_ui8_5_300(%x: tensor<5x300xui8>) -> tensor<300x5xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<5x300xui8> -> tensor<300x5xui8>
  return %y : tensor<300x5xui8>
}
func.func @t_ui8_2_33(%x: tensor<2x33xui8>) -> tensor<33x2xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<2x33xui8> -> tensor<33x2xui8>
  return %y : tensor<33x2xui8>
}
func.func @t_ui8_33_3(%x: tensor<33x3xui8>) -> tensor<3x33xui8> {
  %y = wg.transpose %x by [1, 0] : tensor<33x3xui8> -> tensor<3x33xui8>
  return %y : tensor<3x33xui8>
}
func.func @t_i1_37_53(%x: tensor<37x53xi1>) -> tensor<53x37xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<37x53xi1> -> tensor<53x37xi1>
  return %y : tensor<53x37xi1>
}
func.func @t_i1_16_16(%x: tensor<16x16xi1>) -> tensor<16x16xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<16x16xi1> -> tensor<16x16xi1>
  return %y : tensor<16x16xi1>
}
func.func @t_i1_5_300(%x: tensor<5x300xi1>) -> tensor<300x5xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<5x300xi1> -> tensor<300x5xi1>
  return %y : tensor<300x5xi1>
}
func.func @t_i1_2_33(%x: tensor<2x33xi1>) -> tensor<33x2xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<2x33xi1> -> tensor<33x2xi1>
  return %y : tensor<33x2xi1>
}
func.func @t_i1_33_3(%x: tensor<33x3xi1>) -> tensor<3x33xi1> {
  %y = wg.transpose %x by [1, 0] : tensor<33x3xi1> -> tensor<3x33xi1>
  return %y : tensor<3x33xi1>
}
func.func @p_021(%x: tensor<5x19x35xf32>, %z: tensor<5x35x19xf32>) -> tensor<5x35x19xf32> {
  %y = wg.transpose %x by [0, 2, 1] : tensor<5x19x35xf32> -> tensor<5x35x19xf32>
  %e = wg.exp %y : tensor<5x35x19xf32>
  %w = wg.mul %e, %z : tensor<5x35x19xf32>
  return %w : tensor<5x35x19xf32>
}
func.func @p_210(%x: tensor<5x19x35xf32>, %z: tensor<35x19x5xf32>) -> tensor<35x19x5xf32> {
  %y = wg.transpose %x by [2, 1, 0] : tensor<5x19x35xf32> -> tensor<35x19x5xf32>
  %e = wg.exp %y : tensor<35x19x5xf32>
  %w = wg.mul %e, %z : tensor<35x19x5xf32>
  return %w : tensor<35x19x5xf32>
}
func.func @p_120(%x: tensor<5x19x35xf32>, %z: tensor<19x35x5xf32>) -> tensor<19x35x5xf32> {
  %y = wg.transpose %x by [1, 2, 0] : tensor<5x19x35xf32> -> tensor<19x35x5xf32>
  %e = wg.exp %y : tensor<19x35x5xf32>
  %w = wg.mul %e, %z : tensor<19x35x5xf32>
  return %w : tensor<19x35x5xf32>
}
func.func @p_201(%x: tensor<5x19x35xf32>, %z: tensor<35x5x19xf32>) -> tensor<35x5x19xf32> {
  %y = wg.transpose %x by [2, 0, 1] : tensor<5x19x35xf32> -> tensor<35x5x19xf32>
  %e = wg.exp %y : tensor<35x5x19xf32>
  %w = wg.mul %e, %z : tensor<35x5x19xf32>
  return %w : tensor<35x5x19xf32>
}
func.func @p_102(%x: tensor<5x19x35xf32>, %z: tensor<19x5x35xf32>) -> tensor<19x5x35xf32> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<5x19x35xf32> -> tensor<19x5x35xf32>
  %e = wg.exp %y : tensor<19x5x35xf32>
  %w = wg.mul %e, %z : tensor<19x5x35xf32>
  return %w : tensor<19x5x35xf32>
}
func.func @two_axes_across(%x: tensor<21x18x11xf64>, %y: tensor<11x21x18xf64>) -> tensor<18x11x21xf64> {
  %a = wg.transpose %x by [1, 2, 0] : tensor<21x18x11xf64> -> tensor<18x11x21xf64>
  %b = wg.transpose %y by [2, 0, 1] : tensor<11x21x18xf64> -> tensor<18x11x21xf64>
  %c = wg.mul %a, %b : tensor<18x11x21xf64>
  return %c : tensor<18x11x21xf64>
}
func.func @with_itself(%x: tensor<45x45xf32>) -> tensor<45x45xf32> {
  %a = wg.transpose %x by [1, 0] : tensor<45x45xf32> -> tensor<45x45xf32>
  %b = wg.add %a, %x : tensor<45x45xf32>
  %c = wg.less %a, %x : tensor<45x45xf32>
  %d = wg.select %c, %b, %x : tensor<45x45xi1>, tensor<45x45xf32>
  return %d : tensor<45x45xf32>
}
func.func @two_results(%x: tensor<70x35xf32>, %v: tensor<70xf32>) -> (tensor<35x70xf32>, tensor<35x70xf64>) {
  %a = wg.transpose %x by [1, 0] : tensor<70x35xf32> -> tensor<35x70xf32>
  %b = wg.broadcast %v to [35, 70] dims [1] : tensor<70xf32> -> tensor<35x70xf32>
  %c = wg.add %a, %b : tensor<35x70xf32>
  %d = wg.cast %c {dtype = f64} : tensor<35x70xf32> -> tensor<35x70xf64>
  return %c, %d : tensor<35x70xf32>, tensor<35x70xf64>
}
func.func @part(%x: tensor<40x41xf64>) -> tensor<20x13xf64> {
  %a = wg.transpose %x by [1, 0] : tensor<40x41xf64> -> tensor<41x40xf64>
  %s = wg.slice %a from [1, 3] to [21, 29] by [1, 2] : tensor<41x40xf64> -> tensor<20x13xf64>
  return %s : tensor<20x13xf64>
}
func.func @a_step_on_both(%x: tensor<40x41xf64>) -> tensor<10x13xf64> {
  %a = wg.transpose %x by [1, 0] : tensor<40x41xf64> -> tensor<41x40xf64>
  %s = wg.slice %a from [1, 3] to [21, 29] by [2, 2] : tensor<41x40xf64> -> tensor<10x13xf64>
  return %s : tensor<10x13xf64>
}
func.func @every_second_row(%x: tensor<60x37xf32>) -> tensor<37x30xf32> {
  %s = wg.slice %x from [0, 0] to [60, 37] by [2, 1] : tensor<60x37xf32> -> tensor<30x37xf32>
  %a = wg.transpose %s by [1, 0] : tensor<30x37xf32> -> tensor<37x30xf32>
  return %a : tensor<37x30xf32>
}
func.func @many_ops(%x: tensor<37x21xf32>) -> tensor<21x37xf32> {
  %a0 = wg.transpose %x by [1, 0] : tensor<37x21xf32> -> tensor<21x37xf32>
  %a1 = wg.mul %a0, %a0 : tensor<21x37xf32>
  %a2 = wg.sin %a1 : tensor<21x37xf32>
  %a3 = wg.mul %a2, %a0 : tensor<21x37xf32>
  %a4 = wg.sin %a3 : tensor<21x37xf32>
  %a5 = wg.mul %a4, %a0 : tensor<21x37xf32>
  %a6 = wg.sin %a5 : tensor<21x37xf32>
  %a7 = wg.mul %a6, %a0 : tensor<21x37xf32>
  %a8 = wg.sin %a7 : tensor<21x37xf32>
  %a9 = wg.mul %a8, %a0 : tensor<21x37xf32>
  %a10 = wg.sin %a9 : tensor<21x37xf32>
  %a11 = wg.mul %a10, %a0 : tensor<21x37xf32>
  %a12 = wg.sin %a11 : tensor<21x37xf32>
  %a13 = wg.mul %a12, %a0 : tensor<21x37xf32>
  %a14 = wg.sin %a13 : tensor<21x37xf32>
  %a15 = wg.mul %a14, %a0 : tensor<21x37xf32>
  %a16 = wg.sin %a15 : tensor<21x37xf32>
  %a17 = wg.mul %a16, %a0 : tensor<21x37xf32>
  %a18 = wg.sin %a17 : tensor<21x37xf32>
  %a19 = wg.mul %a18, %a0 : tensor<21x37xf32>
  %a20 = wg.sin %a19 : tensor<21x37xf32>
  %a21 = wg.mul %a20, %a0 : tensor<21x37xf32>
  %a22 = wg.sin %a21 : tensor<21x37xf32>
  %a23 = wg.mul %a22, %a0 : tensor<21x37xf32>
  %a24 = wg.sin %a23 : tensor<21x37xf32>
  %a25 = wg.mul %a24, %a0 : tensor<21x37xf32>
  %a26 = wg.sin %a25 : tensor<21x37xf32>
  %a27 = wg.mul %a26, %a0 : tensor<21x37xf32>
  %a28 = wg.sin %a27 : tensor<21x37xf32>
  %a29 = wg.mul %a28, %a0 : tensor<21x37xf32>
  %a30 = wg.sin %a29 : tensor<21x37xf32>
  %a31 = wg.mul %a30, %a0 : tensor<21x37xf32>
  %a32 = wg.sin %a31 : tensor<21x37xf32>
  %a33 = wg.mul %a32, %a0 : tensor<21x37xf32>
  %a34 = wg.sin %a33 : tensor<21x37xf32>
  %a35 = wg.mul %a34, %a0 : tensor<21x37xf32>
  %a36 = wg.sin %a35 : tensor<21x37xf32>
  %a37 = wg.mul %a36, %a0 : tensor<21x37xf32>
  %a38 = wg.sin %a37 : tensor<21x37xf32>
  %a39 = wg.mul %a38, %a0 : tensor<21x37xf32>
  %a40 = wg.sin %a39 : tensor<21x37xf32>
  %a41 = wg.mul %a40, %a0 : tensor<21x37xf32>
  %a42 = wg.sin %a41 : tensor<21x37xf32>
  %a43 = wg.mul %a42, %a0 : tensor<21x37xf32>
  %a44 = wg.sin %a43 : tensor<21x37xf32>
  %a45 = wg.mul %a44, %a0 : tensor<21x37xf32>
  %a46 = wg.sin %a45 : tensor<21x37xf32>
  %a47 = wg.mul %a46, %a0 : tensor<21x37xf32>
  %a48 = wg.sin %a47 : tensor<21x37xf32>
  %a49 = wg.mul %a48, %a0 : tensor<21x37xf32>
  %a50 = wg.sin %a49 : tensor<21x37xf32>
  %a51 = wg.mul %a50, %a0 : tensor<21x37xf32>
  %a52 = wg.sin %a51 : tensor<21x37xf32>
  %a53 = wg.mul %a52, %a0 : tensor<21x37xf32>
  %a54 = wg.sin %a53 : tensor<21x37xf32>
  %a55 = wg.mul %a54, %a0 : tensor<21x37xf32>
  %a56 = wg.sin %a55 : tensor<21x37xf32>
  %a57 = wg.mul %a56, %a0 : tensor<21x37xf32>
  %a58 = wg.sin %a57 : tensor<21x37xf32>
  %a59 = wg.mul %a58, %a0 : tensor<21x37xf32>
  %a60 = wg.sin %a59 : tensor<21x37xf32>
  %a61 = wg.mul %a60, %a0 : tensor<21x37xf32>
  %a62 = wg.sin %a61 : tensor<21x37xf32>
  %a63 = wg.mul %a62, %a0 : tensor<21x37xf32>
  %a64 = wg.sin %a63 : tensor<21x37xf32>
  %a65 = wg.mul %a64, %a0 : tensor<21x37xf32>
  %a66 = wg.sin %a65 : tensor<21x37xf32>
  %a67 = wg.mul %a66, %a0 : tensor<21x37xf32>
  %a68 = wg.sin %a67 : tensor<21x37xf32>
  %a69 = wg.mul %a68, %a0 : tensor<21x37xf32>
  %a70 = wg.sin %a69 : tensor<21x37xf32>
  return %a70 : tensor<21x37xf32>
}

// What is read across is a part of a line, and the loops outside go on along it: points are cut outside of these.
func.func @parts_of_lines(%x: tensor<700x90x5x3xf32>, %w: tensor<90xf32>) -> tensor<3x5x90x700xf32> {
  %t = wg.transpose %x by [3, 2, 1, 0] : tensor<700x90x5x3xf32> -> tensor<3x5x90x700xf32>
  %v = wg.broadcast %w to [3, 5, 90, 700] dims [2] : tensor<90xf32> -> tensor<3x5x90x700xf32>
  %y = wg.mul %t, %v : tensor<3x5x90x700xf32>
  return %y : tensor<3x5x90x700xf32>
}
func.func @parts_of_lines_within_others(%x: tensor<2x19x530x4x6xf64>) -> tensor<6x4x2x19x530xf64> {
  %t = wg.transpose %x by [4, 3, 0, 1, 2] : tensor<2x19x530x4x6xf64> -> tensor<6x4x2x19x530xf64>
  %y = wg.sin %t : tensor<6x4x2x19x530xf64>
  return %y : tensor<6x4x2x19x530xf64>
}
func.func @parts_of_lines_of_flags(%x: tensor<1100x130x3x4xi1>, %z: tensor<4x130x3x1100xi1>) -> tensor<4x130x3x1100xi1> {
  %t = wg.transpose %x by [3, 1, 2, 0] : tensor<1100x130x3x4xi1> -> tensor<4x130x3x1100xi1>
  %y = wg.logical_and %t, %z : tensor<4x130x3x1100xi1>
  return %y : tensor<4x130x3x1100xi1>
}
func.func @parts_of_lines_two_ways(%x: tensor<640x60x7x2xf32>, %y: tensor<60x640x7x2xf32>) -> tensor<2x7x60x640xf32> {
  %t = wg.transpose %x by [3, 2, 1, 0] : tensor<640x60x7x2xf32> -> tensor<2x7x60x640xf32>
  %u = wg.transpose %y by [3, 2, 0, 1] : tensor<60x640x7x2xf32> -> tensor<2x7x60x640xf32>
  %z = wg.mul %t, %u : tensor<2x7x60x640xf32>
  return %z : tensor<2x7x60x640xf32>
}
// Loops of kernels are in the order that costs the memory least: not as the result lies, nor as what is read.
func.func @loops_in_another_order(%x: tensor<51x30x3x91x12xf32>, %w: tensor<91xf32>) -> tensor<91x12x3x30x51xf32> {
  %t = wg.transpose %x by [3, 4, 2, 1, 0] : tensor<51x30x3x91x12xf32> -> tensor<91x12x3x30x51xf32>
  %v = wg.broadcast %w to [91, 12, 3, 30, 51] dims [0] : tensor<91xf32> -> tensor<91x12x3x30x51xf32>
  %y = wg.mul %t, %v : tensor<91x12x3x30x51xf32>
  return %y : tensor<91x12x3x30x51xf32>
}
// Short rows that are read as they lie, of more than caches hold.
func.func @short_rows_in_another_order(%x: tensor<2x60x110x36x9xf32>, %w: tensor<60x9xf32>) -> tensor<36x60x110x2x9xf32> {
  %t = wg.transpose %x by [3, 1, 2, 0, 4] : tensor<2x60x110x36x9xf32> -> tensor<36x60x110x2x9xf32>
  %v = wg.broadcast %w to [36, 60, 110, 2, 9] dims [1, 4] : tensor<60x9xf32> -> tensor<36x60x110x2x9xf32>
  %y = wg.mul %t, %v : tensor<36x60x110x2x9xf32>
  return %y : tensor<36x60x110x2x9xf32>
}
