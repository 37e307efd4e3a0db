// inputs in [-1, 1]
func.func @nt_f32_5_33_70(%a: tensor<5x70xf32>, %b: tensor<33x70xf32>) -> tensor<5x33xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<5x70xf32>, tensor<33x70xf32> -> tensor<5x33xf32>
  return %c : tensor<5x33xf32>
}
func.func @nn_f32_5_33_70(%a: tensor<5x70xf32>, %b: tensor<70x33xf32>, %v: tensor<33xf32>) -> tensor<5x33xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<5x70xf32>, tensor<70x33xf32> -> tensor<5x33xf32>
  %w = wg.broadcast %v to [5, 33] dims [1] : tensor<33xf32> -> tensor<5x33xf32>
  %s = wg.add %c, %w : tensor<5x33xf32>
  return %s : tensor<5x33xf32>
}
func.func @nt_f32_24_47_3(%a: tensor<24x3xf32>, %b: tensor<47x3xf32>) -> tensor<24x47xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<24x3xf32>, tensor<47x3xf32> -> tensor<24x47xf32>
  return %c : tensor<24x47xf32>
}
func.func @nn_f32_24_47_3(%a: tensor<24x3xf32>, %b: tensor<3x47xf32>, %v: tensor<47xf32>) -> tensor<24x47xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<24x3xf32>, tensor<3x47xf32> -> tensor<24x47xf32>
  %w = wg.broadcast %v to [24, 47] dims [1] : tensor<47xf32> -> tensor<24x47xf32>
  %s = wg.add %c, %w : tensor<24x47xf32>
  return %s : tensor<24x47xf32>
}
func.func @nt_f32_25_48_17(%a: tensor<25x17xf32>, %b: tensor<48x17xf32>) -> tensor<25x48xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<25x17xf32>, tensor<48x17xf32> -> tensor<25x48xf32>
  return %c : tensor<25x48xf32>
}
func.func @nn_f32_25_48_17(%a: tensor<25x17xf32>, %b: tensor<17x48xf32>, %v: tensor<48xf32>) -> tensor<25x48xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<25x17xf32>, tensor<17x48xf32> -> tensor<25x48xf32>
  %w = wg.broadcast %v to [25, 48] dims [1] : tensor<48xf32> -> tensor<25x48xf32>
  %s = wg.add %c, %w : tensor<25x48xf32>
  return %s : tensor<25x48xf32>
}
func.func @nt_f32_50_49_65(%a: tensor<50x65xf32>, %b: tensor<49x65xf32>) -> tensor<50x49xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<50x65xf32>, tensor<49x65xf32> -> tensor<50x49xf32>
  return %c : tensor<50x49xf32>
}
func.func @nn_f32_50_49_65(%a: tensor<50x65xf32>, %b: tensor<65x49xf32>, %v: tensor<49xf32>) -> tensor<50x49xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<50x65xf32>, tensor<65x49xf32> -> tensor<50x49xf32>
  %w = wg.broadcast %v to [50, 49] dims [1] : tensor<49xf32> -> tensor<50x49xf32>
  %s = wg.add %c, %w : tensor<50x49xf32>
  return %s : tensor<50x49xf32>
}
func.func @nt_f32_32_64_1(%a: tensor<32x1xf32>, %b: tensor<64x1xf32>) -> tensor<32x64xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<32x1xf32>, tensor<64x1xf32> -> tensor<32x64xf32>
  return %c : tensor<32x64xf32>
}
func.func @nn_f32_32_64_1(%a: tensor<32x1xf32>, %b: tensor<1x64xf32>, %v: tensor<64xf32>) -> tensor<32x64xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<32x1xf32>, tensor<1x64xf32> -> tensor<32x64xf32>
  %w = wg.broadcast %v to [32, 64] dims [1] : tensor<64xf32> -> tensor<32x64xf32>
  %s = wg.add %c, %w : tensor<32x64xf32>
  return %s : tensor<32x64xf32>
}
func.func @nt_f32_7_65_66(%a: tensor<7x66xf32>, %b: tensor<65x66xf32>) -> tensor<7x65xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<7x66xf32>, tensor<65x66xf32> -> tensor<7x65xf32>
  return %c : tensor<7x65xf32>
}
func.func @nn_f32_7_65_66(%a: tensor<7x66xf32>, %b: tensor<66x65xf32>, %v: tensor<65xf32>) -> tensor<7x65xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<7x66xf32>, tensor<66x65xf32> -> tensor<7x65xf32>
  %w = wg.broadcast %v to [7, 65] dims [1] : tensor<65xf32> -> tensor<7x65xf32>
  %s = wg.add %c, %w : tensor<7x65xf32>
  return %s : tensor<7x65xf32>
}
func.func @nt_f32_64_80_129(%a: tensor<64x129xf32>, %b: tensor<80x129xf32>) -> tensor<64x80xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<64x129xf32>, tensor<80x129xf32> -> tensor<64x80xf32>
  return %c : tensor<64x80xf32>
}
func.func @nn_f32_64_80_129(%a: tensor<64x129xf32>, %b: tensor<129x80xf32>, %v: tensor<80xf32>) -> tensor<64x80xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<64x129xf32>, tensor<129x80xf32> -> tensor<64x80xf32>
  %w = wg.broadcast %v to [64, 80] dims [1] : tensor<80xf32> -> tensor<64x80xf32>
  %s = wg.add %c, %w : tensor<64x80xf32>
  return %s : tensor<64x80xf32>
}
func.func @nt_f32_30_81_6(%a: tensor<30x6xf32>, %b: tensor<81x6xf32>) -> tensor<30x81xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<30x6xf32>, tensor<81x6xf32> -> tensor<30x81xf32>
  return %c : tensor<30x81xf32>
}
func.func @nn_f32_30_81_6(%a: tensor<30x6xf32>, %b: tensor<6x81xf32>, %v: tensor<81xf32>) -> tensor<30x81xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<30x6xf32>, tensor<6x81xf32> -> tensor<30x81xf32>
  %w = wg.broadcast %v to [30, 81] dims [1] : tensor<81xf32> -> tensor<30x81xf32>
  %s = wg.add %c, %w : tensor<30x81xf32>
  return %s : tensor<30x81xf32>
}
func.func @nt_f32_5_96_70(%a: tensor<5x70xf32>, %b: tensor<96x70xf32>) -> tensor<5x96xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<5x70xf32>, tensor<96x70xf32> -> tensor<5x96xf32>
  return %c : tensor<5x96xf32>
}
func.func @nn_f32_5_96_70(%a: tensor<5x70xf32>, %b: tensor<70x96xf32>, %v: tensor<96xf32>) -> tensor<5x96xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<5x70xf32>, tensor<70x96xf32> -> tensor<5x96xf32>
  %w = wg.broadcast %v to [5, 96] dims [1] : tensor<96xf32> -> tensor<5x96xf32>
  %s = wg.add %c, %w : tensor<5x96xf32>
  return %s : tensor<5x96xf32>
}
func.func @nt_f32_24_97_3(%a: tensor<24x3xf32>, %b: tensor<97x3xf32>) -> tensor<24x97xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<24x3xf32>, tensor<97x3xf32> -> tensor<24x97xf32>
  return %c : tensor<24x97xf32>
}
func.func @nn_f32_24_97_3(%a: tensor<24x3xf32>, %b: tensor<3x97xf32>, %v: tensor<97xf32>) -> tensor<24x97xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<24x3xf32>, tensor<3x97xf32> -> tensor<24x97xf32>
  %w = wg.broadcast %v to [24, 97] dims [1] : tensor<97xf32> -> tensor<24x97xf32>
  %s = wg.add %c, %w : tensor<24x97xf32>
  return %s : tensor<24x97xf32>
}
func.func @nt_f64_25_17_17(%a: tensor<25x17xf64>, %b: tensor<17x17xf64>) -> tensor<25x17xf64> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<25x17xf64>, tensor<17x17xf64> -> tensor<25x17xf64>
  return %c : tensor<25x17xf64>
}
func.func @nn_f64_25_17_17(%a: tensor<25x17xf64>, %b: tensor<17x17xf64>, %v: tensor<17xf64>) -> tensor<25x17xf64> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<25x17xf64>, tensor<17x17xf64> -> tensor<25x17xf64>
  %w = wg.broadcast %v to [25, 17] dims [1] : tensor<17xf64> -> tensor<25x17xf64>
  %s = wg.add %c, %w : tensor<25x17xf64>
  return %s : tensor<25x17xf64>
}
func.func @nt_f64_50_23_65(%a: tensor<50x65xf64>, %b: tensor<23x65xf64>) -> tensor<50x23xf64> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<50x65xf64>, tensor<23x65xf64> -> tensor<50x23xf64>
  return %c : tensor<50x23xf64>
}
func.func @nn_f64_50_23_65(%a: tensor<50x65xf64>, %b: tensor<65x23xf64>, %v: tensor<23xf64>) -> tensor<50x23xf64> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<50x65xf64>, tensor<65x23xf64> -> tensor<50x23xf64>
  %w = wg.broadcast %v to [50, 23] dims [1] : tensor<23xf64> -> tensor<50x23xf64>
  %s = wg.add %c, %w : tensor<50x23xf64>
  return %s : tensor<50x23xf64>
}
func.func @nt_f64_32_24_1(%a: tensor<32x1xf64>, %b: tensor<24x1xf64>) -> tensor<32x24xf64> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<32x1xf64>, tensor<24x1xf64> -> tensor<32x24xf64>
  return %c : tensor<32x24xf64>
}
func.func @nn_f64_32_24_1(%a: tensor<32x1xf64>, %b: tensor<1x24xf64>, %v: tensor<24xf64>) -> tensor<32x24xf64> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<32x1xf64>, tensor<1x24xf64> -> tensor<32x24xf64>
  %w = wg.broadcast %v to [32, 24] dims [1] : tensor<24xf64> -> tensor<32x24xf64>
  %s = wg.add %c, %w : tensor<32x24xf64>
  return %s : tensor<32x24xf64>
}
func.func @nt_f64_7_25_66(%a: tensor<7x66xf64>, %b: tensor<25x66xf64>) -> tensor<7x25xf64> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<7x66xf64>, tensor<25x66xf64> -> tensor<7x25xf64>
  return %c : tensor<7x25xf64>
}
func.func @nn_f64_7_25_66(%a: tensor<7x66xf64>, %b: tensor<66x25xf64>, %v: tensor<25xf64>) -> tensor<7x25xf64> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<7x66xf64>, tensor<66x25xf64> -> tensor<7x25xf64>
  %w = wg.broadcast %v to [7, 25] dims [1] : tensor<25xf64> -> tensor<7x25xf64>
  %s = wg.add %c, %w : tensor<7x25xf64>
  return %s : tensor<7x25xf64>
}
func.func @nt_f64_64_33_129(%a: tensor<64x129xf64>, %b: tensor<33x129xf64>) -> tensor<64x33xf64> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<64x129xf64>, tensor<33x129xf64> -> tensor<64x33xf64>
  return %c : tensor<64x33xf64>
}
func.func @nn_f64_64_33_129(%a: tensor<64x129xf64>, %b: tensor<129x33xf64>, %v: tensor<33xf64>) -> tensor<64x33xf64> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<64x129xf64>, tensor<129x33xf64> -> tensor<64x33xf64>
  %w = wg.broadcast %v to [64, 33] dims [1] : tensor<33xf64> -> tensor<64x33xf64>
  %s = wg.add %c, %w : tensor<64x33xf64>
  return %s : tensor<64x33xf64>
}
func.func @nt_f64_30_40_6(%a: tensor<30x6xf64>, %b: tensor<40x6xf64>) -> tensor<30x40xf64> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<30x6xf64>, tensor<40x6xf64> -> tensor<30x40xf64>
  return %c : tensor<30x40xf64>
}
func.func @nn_f64_30_40_6(%a: tensor<30x6xf64>, %b: tensor<6x40xf64>, %v: tensor<40xf64>) -> tensor<30x40xf64> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<30x6xf64>, tensor<6x40xf64> -> tensor<30x40xf64>
  %w = wg.broadcast %v to [30, 40] dims [1] : tensor<40xf64> -> tensor<30x40xf64>
  %s = wg.add %c, %w : tensor<30x40xf64>
  return %s : tensor<30x40xf64>
}
func.func @nt_f64_5_41_70(%a: tensor<5x70xf64>, %b: tensor<41x70xf64>) -> tensor<5x41xf64> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<5x70xf64>, tensor<41x70xf64> -> tensor<5x41xf64>
  return %c : tensor<5x41xf64>
}
func.func @nn_f64_5_41_70(%a: tensor<5x70xf64>, %b: tensor<70x41xf64>, %v: tensor<41xf64>) -> tensor<5x41xf64> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<5x70xf64>, tensor<70x41xf64> -> tensor<5x41xf64>
  %w = wg.broadcast %v to [5, 41] dims [1] : tensor<41xf64> -> tensor<5x41xf64>
  %s = wg.add %c, %w : tensor<5x41xf64>
  return %s : tensor<5x41xf64>
}
func.func @nt_f64_24_48_3(%a: tensor<24x3xf64>, %b: tensor<48x3xf64>) -> tensor<24x48xf64> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<24x3xf64>, tensor<48x3xf64> -> tensor<24x48xf64>
  return %c : tensor<24x48xf64>
}
func.func @nn_f64_24_48_3(%a: tensor<24x3xf64>, %b: tensor<3x48xf64>, %v: tensor<48xf64>) -> tensor<24x48xf64> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<24x3xf64>, tensor<3x48xf64> -> tensor<24x48xf64>
  %w = wg.broadcast %v to [24, 48] dims [1] : tensor<48xf64> -> tensor<24x48xf64>
  %s = wg.add %c, %w : tensor<24x48xf64>
  return %s : tensor<24x48xf64>
}
func.func @far_f32_1024(%a: tensor<6x1024xf32>, %b: tensor<37x1024xf32>) -> tensor<6x37xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<6x1024xf32>, tensor<37x1024xf32> -> tensor<6x37xf32>
  return %c : tensor<6x37xf32>
}
func.func @far_f64_1024(%a: tensor<6x1024xf64>, %b: tensor<37x1024xf64>) -> tensor<6x37xf64> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<6x1024xf64>, tensor<37x1024xf64> -> tensor<6x37xf64>
  return %c : tensor<6x37xf64>
}
func.func @far_f32_1027(%a: tensor<6x1027xf32>, %b: tensor<37x1027xf32>) -> tensor<6x37xf32> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<6x1027xf32>, tensor<37x1027xf32> -> tensor<6x37xf32>
  return %c : tensor<6x37xf32>
}
func.func @far_f64_1027(%a: tensor<6x1027xf64>, %b: tensor<37x1027xf64>) -> tensor<6x37xf64> {
  %c = wg.contract "mk,nk->mn" %a, %b : tensor<6x1027xf64>, tensor<37x1027xf64> -> tensor<6x37xf64>
  return %c : tensor<6x37xf64>
}

// Rows on pages of their own, whose vectors cross lines: panels are copied for a few tiles of rows.
func.func @rows_across_lines(%a: tensor<30x300xf32>, %b: tensor<300x8x141xf32>) -> tensor<8x30x141xf32> {
  %c = wg.contract "jk,klm->ljm" %a, %b : tensor<30x300xf32>, tensor<300x8x141xf32> -> tensor<8x30x141xf32>
  return %c : tensor<8x30x141xf32>
}
func.func @rows_across_lines_batched(%a: tensor<29x2x260xf64>, %b: tensor<260x2x5x53xf64>) -> tensor<2x5x29x53xf64> {
  %c = wg.contract "jik,kilm->iljm" %a, %b : tensor<29x2x260xf64>, tensor<260x2x5x53xf64> -> tensor<2x5x29x53xf64>
  return %c : tensor<2x5x29x53xf64>
}

// Operands beyond the nearest caches whose terms lie far from each other: those of later rounds are asked for, behind
// the last term those of the next panel or tile.
func.func @terms_ahead(%a: tensor<20x30x501xf32>, %b: tensor<11x30xf32>) -> tensor<20x11x501xf32> {
  %c = wg.contract "lim,ji->ljm" %a, %b : tensor<20x30x501xf32>, tensor<11x30xf32> -> tensor<20x11x501xf32>
  return %c : tensor<20x11x501xf32>
}
func.func @terms_ahead_between(%a: tensor<3x41x7x203xf64>, %b: tensor<5x41xf64>) -> tensor<3x5x7x203xf64> {
  %c = wg.contract "likm,ji->ljkm" %a, %b : tensor<3x41x7x203xf64>, tensor<5x41xf64> -> tensor<3x5x7x203xf64>
  return %c : tensor<3x5x7x203xf64>
}
func.func @short_terms_ahead(%a: tensor<60x3x1600xf32>, %b: tensor<13x3x60xf32>) -> tensor<13x1600xf32> {
  %c = wg.contract "ipm,jpi->jm" %a, %b : tensor<60x3x1600xf32>, tensor<13x3x60xf32> -> tensor<13x1600xf32>
  return %c : tensor<13x1600xf32>
}
func.func @terms_ahead_of_rows(%a: tensor<601x503xf32>, %b: tensor<601x13xf32>) -> tensor<503x13xf32> {
  %c = wg.contract "ki,kj->ij" %a, %b : tensor<601x503xf32>, tensor<601x13xf32> -> tensor<503x13xf32>
  return %c : tensor<503x13xf32>
}
func.func @short_terms_ahead_of_rows(%a: tensor<9x70x301xf64>, %b: tensor<70x9x6xf64>) -> tensor<301x6xf64> {
  %c = wg.contract "pki,kpj->ij" %a, %b : tensor<9x70x301xf64>, tensor<70x9x6xf64> -> tensor<301x6xf64>
  return %c : tensor<301x6xf64>
}
func.func @short_terms_ahead_of_columns(%a: tensor<20x60x3x101xf32>, %b: tensor<13x3x60xf32>) -> tensor<20x13x101xf32> {
  %c = wg.contract "bipm,jpi->bjm" %a, %b : tensor<20x60x3x101xf32>, tensor<13x3x60xf32> -> tensor<20x13x101xf32>
  return %c : tensor<20x13x101xf32>
}
func.func @terms_ahead_in_two_levels(%a: tensor<12x20x16xf32>, %b: tensor<16x20x1003xf32>) -> tensor<12x1003xf32> {
  %c = wg.contract "mip,pin->mn" %a, %b : tensor<12x20x16xf32>, tensor<16x20x1003xf32> -> tensor<12x1003xf32>
  return %c : tensor<12x1003xf32>
}
