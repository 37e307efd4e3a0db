// inputs in [-1, 1]
// Products in every order of their result's letters: vectors along a batch, with and without columns; sizes 1 and 0;
// tails; letters that merge; copies of operands.
func.func @batch_kij(%a: tensor<9x7x5xf32>, %b: tensor<9x7x18xf32>) -> tensor<7x5x18xf32> {
  %p = wg.contract "nki,nkj->kij" %a, %b : tensor<9x7x5xf32>, tensor<9x7x18xf32> -> tensor<7x5x18xf32>
  return %p : tensor<7x5x18xf32>
}
func.func @batch_kji(%a: tensor<9x7x5xf32>, %b: tensor<9x7x18xf32>) -> tensor<7x18x5xf32> {
  %p = wg.contract "nki,nkj->kji" %a, %b : tensor<9x7x5xf32>, tensor<9x7x18xf32> -> tensor<7x18x5xf32>
  return %p : tensor<7x18x5xf32>
}
func.func @batch_ikj(%a: tensor<9x7x5xf32>, %b: tensor<9x7x18xf32>) -> tensor<5x7x18xf32> {
  %p = wg.contract "nki,nkj->ikj" %a, %b : tensor<9x7x5xf32>, tensor<9x7x18xf32> -> tensor<5x7x18xf32>
  return %p : tensor<5x7x18xf32>
}
func.func @batch_ijk(%a: tensor<9x7x5xf32>, %b: tensor<9x7x18xf32>) -> tensor<5x18x7xf32> {
  %p = wg.contract "nki,nkj->ijk" %a, %b : tensor<9x7x5xf32>, tensor<9x7x18xf32> -> tensor<5x18x7xf32>
  return %p : tensor<5x18x7xf32>
}
func.func @batch_jki(%a: tensor<9x7x5xf32>, %b: tensor<9x7x18xf32>) -> tensor<18x7x5xf32> {
  %p = wg.contract "nki,nkj->jki" %a, %b : tensor<9x7x5xf32>, tensor<9x7x18xf32> -> tensor<18x7x5xf32>
  return %p : tensor<18x7x5xf32>
}
func.func @batch_jik(%a: tensor<9x7x5xf32>, %b: tensor<9x7x18xf32>) -> tensor<18x5x7xf32> {
  %p = wg.contract "nki,nkj->jik" %a, %b : tensor<9x7x5xf32>, tensor<9x7x18xf32> -> tensor<18x5x7xf32>
  return %p : tensor<18x5x7xf32>
}
func.func @batch_added_kij(%a: tensor<9x7x5xf64>, %b: tensor<9x7x18xf64>, %c: tensor<7x5x18xf64>) -> tensor<7x5x18xf64> {
  %p = wg.contract "nki,nkj->kij" %a, %b : tensor<9x7x5xf64>, tensor<9x7x18xf64> -> tensor<7x5x18xf64>
  %s = wg.add %p, %c : tensor<7x5x18xf64>
  return %s : tensor<7x5x18xf64>
}
func.func @batch_added_kji(%a: tensor<9x7x5xf64>, %b: tensor<9x7x18xf64>, %c: tensor<7x18x5xf64>) -> tensor<7x18x5xf64> {
  %p = wg.contract "nki,nkj->kji" %a, %b : tensor<9x7x5xf64>, tensor<9x7x18xf64> -> tensor<7x18x5xf64>
  %s = wg.add %p, %c : tensor<7x18x5xf64>
  return %s : tensor<7x18x5xf64>
}
func.func @batch_added_ikj(%a: tensor<9x7x5xf64>, %b: tensor<9x7x18xf64>, %c: tensor<5x7x18xf64>) -> tensor<5x7x18xf64> {
  %p = wg.contract "nki,nkj->ikj" %a, %b : tensor<9x7x5xf64>, tensor<9x7x18xf64> -> tensor<5x7x18xf64>
  %s = wg.add %p, %c : tensor<5x7x18xf64>
  return %s : tensor<5x7x18xf64>
}
func.func @batch_added_ijk(%a: tensor<9x7x5xf64>, %b: tensor<9x7x18xf64>, %c: tensor<5x18x7xf64>) -> tensor<5x18x7xf64> {
  %p = wg.contract "nki,nkj->ijk" %a, %b : tensor<9x7x5xf64>, tensor<9x7x18xf64> -> tensor<5x18x7xf64>
  %s = wg.add %p, %c : tensor<5x18x7xf64>
  return %s : tensor<5x18x7xf64>
}
func.func @batch_added_jki(%a: tensor<9x7x5xf64>, %b: tensor<9x7x18xf64>, %c: tensor<18x7x5xf64>) -> tensor<18x7x5xf64> {
  %p = wg.contract "nki,nkj->jki" %a, %b : tensor<9x7x5xf64>, tensor<9x7x18xf64> -> tensor<18x7x5xf64>
  %s = wg.add %p, %c : tensor<18x7x5xf64>
  return %s : tensor<18x7x5xf64>
}
func.func @batch_added_jik(%a: tensor<9x7x5xf64>, %b: tensor<9x7x18xf64>, %c: tensor<18x5x7xf64>) -> tensor<18x5x7xf64> {
  %p = wg.contract "nki,nkj->jik" %a, %b : tensor<9x7x5xf64>, tensor<9x7x18xf64> -> tensor<18x5x7xf64>
  %s = wg.add %p, %c : tensor<18x5x7xf64>
  return %s : tensor<18x5x7xf64>
}
func.func @along_ijk(%a: tensor<4x7x19xf32>, %b: tensor<4x6x19xf32>) -> tensor<7x6x19xf32> {
  %p = wg.contract "nik,njk->ijk" %a, %b : tensor<4x7x19xf32>, tensor<4x6x19xf32> -> tensor<7x6x19xf32>
  return %p : tensor<7x6x19xf32>
}
func.func @along_ikj(%a: tensor<4x7x19xf32>, %b: tensor<4x6x19xf32>) -> tensor<7x19x6xf32> {
  %p = wg.contract "nik,njk->ikj" %a, %b : tensor<4x7x19xf32>, tensor<4x6x19xf32> -> tensor<7x19x6xf32>
  return %p : tensor<7x19x6xf32>
}
func.func @along_jik(%a: tensor<4x7x19xf32>, %b: tensor<4x6x19xf32>) -> tensor<6x7x19xf32> {
  %p = wg.contract "nik,njk->jik" %a, %b : tensor<4x7x19xf32>, tensor<4x6x19xf32> -> tensor<6x7x19xf32>
  return %p : tensor<6x7x19xf32>
}
func.func @along_jki(%a: tensor<4x7x19xf32>, %b: tensor<4x6x19xf32>) -> tensor<6x19x7xf32> {
  %p = wg.contract "nik,njk->jki" %a, %b : tensor<4x7x19xf32>, tensor<4x6x19xf32> -> tensor<6x19x7xf32>
  return %p : tensor<6x19x7xf32>
}
func.func @along_kij(%a: tensor<4x7x19xf32>, %b: tensor<4x6x19xf32>) -> tensor<19x7x6xf32> {
  %p = wg.contract "nik,njk->kij" %a, %b : tensor<4x7x19xf32>, tensor<4x6x19xf32> -> tensor<19x7x6xf32>
  return %p : tensor<19x7x6xf32>
}
func.func @along_kji(%a: tensor<4x7x19xf32>, %b: tensor<4x6x19xf32>) -> tensor<19x6x7xf32> {
  %p = wg.contract "nik,njk->kji" %a, %b : tensor<4x7x19xf32>, tensor<4x6x19xf32> -> tensor<19x6x7xf32>
  return %p : tensor<19x6x7xf32>
}
func.func @along_added_ijk(%a: tensor<4x3x37xf64>, %b: tensor<4x2x37xf64>, %c: tensor<3x2x37xf64>) -> tensor<3x2x37xf64> {
  %p = wg.contract "nik,njk->ijk" %a, %b : tensor<4x3x37xf64>, tensor<4x2x37xf64> -> tensor<3x2x37xf64>
  %s = wg.add %p, %c : tensor<3x2x37xf64>
  return %s : tensor<3x2x37xf64>
}
func.func @along_added_ikj(%a: tensor<4x3x37xf64>, %b: tensor<4x2x37xf64>, %c: tensor<3x37x2xf64>) -> tensor<3x37x2xf64> {
  %p = wg.contract "nik,njk->ikj" %a, %b : tensor<4x3x37xf64>, tensor<4x2x37xf64> -> tensor<3x37x2xf64>
  %s = wg.add %p, %c : tensor<3x37x2xf64>
  return %s : tensor<3x37x2xf64>
}
func.func @along_added_jik(%a: tensor<4x3x37xf64>, %b: tensor<4x2x37xf64>, %c: tensor<2x3x37xf64>) -> tensor<2x3x37xf64> {
  %p = wg.contract "nik,njk->jik" %a, %b : tensor<4x3x37xf64>, tensor<4x2x37xf64> -> tensor<2x3x37xf64>
  %s = wg.add %p, %c : tensor<2x3x37xf64>
  return %s : tensor<2x3x37xf64>
}
func.func @along_added_jki(%a: tensor<4x3x37xf64>, %b: tensor<4x2x37xf64>, %c: tensor<2x37x3xf64>) -> tensor<2x37x3xf64> {
  %p = wg.contract "nik,njk->jki" %a, %b : tensor<4x3x37xf64>, tensor<4x2x37xf64> -> tensor<2x37x3xf64>
  %s = wg.add %p, %c : tensor<2x37x3xf64>
  return %s : tensor<2x37x3xf64>
}
func.func @along_added_kij(%a: tensor<4x3x37xf64>, %b: tensor<4x2x37xf64>, %c: tensor<37x3x2xf64>) -> tensor<37x3x2xf64> {
  %p = wg.contract "nik,njk->kij" %a, %b : tensor<4x3x37xf64>, tensor<4x2x37xf64> -> tensor<37x3x2xf64>
  %s = wg.add %p, %c : tensor<37x3x2xf64>
  return %s : tensor<37x3x2xf64>
}
func.func @along_added_kji(%a: tensor<4x3x37xf64>, %b: tensor<4x2x37xf64>, %c: tensor<37x2x3xf64>) -> tensor<37x2x3xf64> {
  %p = wg.contract "nik,njk->kji" %a, %b : tensor<4x3x37xf64>, tensor<4x2x37xf64> -> tensor<37x2x3xf64>
  %s = wg.add %p, %c : tensor<37x2x3xf64>
  return %s : tensor<37x2x3xf64>
}
func.func @outer_ijk(%a: tensor<7x18xf32>, %b: tensor<5x18xf32>) -> tensor<7x5x18xf32> {
  %p = wg.contract "ik,jk->ijk" %a, %b : tensor<7x18xf32>, tensor<5x18xf32> -> tensor<7x5x18xf32>
  return %p : tensor<7x5x18xf32>
}
func.func @outer_ikj(%a: tensor<7x18xf32>, %b: tensor<5x18xf32>) -> tensor<7x18x5xf32> {
  %p = wg.contract "ik,jk->ikj" %a, %b : tensor<7x18xf32>, tensor<5x18xf32> -> tensor<7x18x5xf32>
  return %p : tensor<7x18x5xf32>
}
func.func @outer_jik(%a: tensor<7x18xf32>, %b: tensor<5x18xf32>) -> tensor<5x7x18xf32> {
  %p = wg.contract "ik,jk->jik" %a, %b : tensor<7x18xf32>, tensor<5x18xf32> -> tensor<5x7x18xf32>
  return %p : tensor<5x7x18xf32>
}
func.func @outer_jki(%a: tensor<7x18xf32>, %b: tensor<5x18xf32>) -> tensor<5x18x7xf32> {
  %p = wg.contract "ik,jk->jki" %a, %b : tensor<7x18xf32>, tensor<5x18xf32> -> tensor<5x18x7xf32>
  return %p : tensor<5x18x7xf32>
}
func.func @outer_kij(%a: tensor<7x18xf32>, %b: tensor<5x18xf32>) -> tensor<18x7x5xf32> {
  %p = wg.contract "ik,jk->kij" %a, %b : tensor<7x18xf32>, tensor<5x18xf32> -> tensor<18x7x5xf32>
  return %p : tensor<18x7x5xf32>
}
func.func @outer_kji(%a: tensor<7x18xf32>, %b: tensor<5x18xf32>) -> tensor<18x5x7xf32> {
  %p = wg.contract "ik,jk->kji" %a, %b : tensor<7x18xf32>, tensor<5x18xf32> -> tensor<18x5x7xf32>
  return %p : tensor<18x5x7xf32>
}
func.func @two_batches_aijg(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<3x4x17x2xf32> {
  %p = wg.contract "agik,gkja->aijg" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<3x4x17x2xf32>
  return %p : tensor<3x4x17x2xf32>
}
func.func @two_batches_aigj(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<3x4x2x17xf32> {
  %p = wg.contract "agik,gkja->aigj" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<3x4x2x17xf32>
  return %p : tensor<3x4x2x17xf32>
}
func.func @two_batches_ajig(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<3x17x4x2xf32> {
  %p = wg.contract "agik,gkja->ajig" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<3x17x4x2xf32>
  return %p : tensor<3x17x4x2xf32>
}
func.func @two_batches_ajgi(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<3x17x2x4xf32> {
  %p = wg.contract "agik,gkja->ajgi" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<3x17x2x4xf32>
  return %p : tensor<3x17x2x4xf32>
}
func.func @two_batches_agij(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<3x2x4x17xf32> {
  %p = wg.contract "agik,gkja->agij" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<3x2x4x17xf32>
  return %p : tensor<3x2x4x17xf32>
}
func.func @two_batches_agji(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<3x2x17x4xf32> {
  %p = wg.contract "agik,gkja->agji" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<3x2x17x4xf32>
  return %p : tensor<3x2x17x4xf32>
}
func.func @two_batches_iajg(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<4x3x17x2xf32> {
  %p = wg.contract "agik,gkja->iajg" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<4x3x17x2xf32>
  return %p : tensor<4x3x17x2xf32>
}
func.func @two_batches_iagj(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<4x3x2x17xf32> {
  %p = wg.contract "agik,gkja->iagj" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<4x3x2x17xf32>
  return %p : tensor<4x3x2x17xf32>
}
func.func @two_batches_ijag(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<4x17x3x2xf32> {
  %p = wg.contract "agik,gkja->ijag" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<4x17x3x2xf32>
  return %p : tensor<4x17x3x2xf32>
}
func.func @two_batches_ijga(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<4x17x2x3xf32> {
  %p = wg.contract "agik,gkja->ijga" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<4x17x2x3xf32>
  return %p : tensor<4x17x2x3xf32>
}
func.func @two_batches_igaj(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<4x2x3x17xf32> {
  %p = wg.contract "agik,gkja->igaj" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<4x2x3x17xf32>
  return %p : tensor<4x2x3x17xf32>
}
func.func @two_batches_igja(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<4x2x17x3xf32> {
  %p = wg.contract "agik,gkja->igja" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<4x2x17x3xf32>
  return %p : tensor<4x2x17x3xf32>
}
func.func @two_batches_jaig(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<17x3x4x2xf32> {
  %p = wg.contract "agik,gkja->jaig" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<17x3x4x2xf32>
  return %p : tensor<17x3x4x2xf32>
}
func.func @two_batches_jagi(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<17x3x2x4xf32> {
  %p = wg.contract "agik,gkja->jagi" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<17x3x2x4xf32>
  return %p : tensor<17x3x2x4xf32>
}
func.func @two_batches_jiag(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<17x4x3x2xf32> {
  %p = wg.contract "agik,gkja->jiag" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<17x4x3x2xf32>
  return %p : tensor<17x4x3x2xf32>
}
func.func @two_batches_jiga(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<17x4x2x3xf32> {
  %p = wg.contract "agik,gkja->jiga" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<17x4x2x3xf32>
  return %p : tensor<17x4x2x3xf32>
}
func.func @two_batches_jgai(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<17x2x3x4xf32> {
  %p = wg.contract "agik,gkja->jgai" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<17x2x3x4xf32>
  return %p : tensor<17x2x3x4xf32>
}
func.func @two_batches_jgia(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<17x2x4x3xf32> {
  %p = wg.contract "agik,gkja->jgia" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<17x2x4x3xf32>
  return %p : tensor<17x2x4x3xf32>
}
func.func @two_batches_gaij(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<2x3x4x17xf32> {
  %p = wg.contract "agik,gkja->gaij" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<2x3x4x17xf32>
  return %p : tensor<2x3x4x17xf32>
}
func.func @two_batches_gaji(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<2x3x17x4xf32> {
  %p = wg.contract "agik,gkja->gaji" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<2x3x17x4xf32>
  return %p : tensor<2x3x17x4xf32>
}
func.func @two_batches_giaj(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<2x4x3x17xf32> {
  %p = wg.contract "agik,gkja->giaj" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<2x4x3x17xf32>
  return %p : tensor<2x4x3x17xf32>
}
func.func @two_batches_gija(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<2x4x17x3xf32> {
  %p = wg.contract "agik,gkja->gija" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<2x4x17x3xf32>
  return %p : tensor<2x4x17x3xf32>
}
func.func @two_batches_gjai(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<2x17x3x4xf32> {
  %p = wg.contract "agik,gkja->gjai" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<2x17x3x4xf32>
  return %p : tensor<2x17x3x4xf32>
}
func.func @two_batches_gjia(%a: tensor<3x2x4x5xf32>, %b: tensor<2x5x17x3xf32>) -> tensor<2x17x4x3xf32> {
  %p = wg.contract "agik,gkja->gjia" %a, %b : tensor<3x2x4x5xf32>, tensor<2x5x17x3xf32> -> tensor<2x17x4x3xf32>
  return %p : tensor<2x17x4x3xf32>
}
func.func @summed_batch_xy(%a: tensor<20x5x18xf32>, %b: tensor<18x5x20xf32>) -> tensor<20x18xf32> {
  %p = wg.contract "xky,ykx->xy" %a, %b : tensor<20x5x18xf32>, tensor<18x5x20xf32> -> tensor<20x18xf32>
  return %p : tensor<20x18xf32>
}
func.func @summed_batch_yx(%a: tensor<20x5x18xf32>, %b: tensor<18x5x20xf32>) -> tensor<18x20xf32> {
  %p = wg.contract "xky,ykx->yx" %a, %b : tensor<20x5x18xf32>, tensor<18x5x20xf32> -> tensor<18x20xf32>
  return %p : tensor<18x20xf32>
}
func.func @unit_lane_ij(%a: tensor<9x19xf32>, %b: tensor<9x1xf32>) -> tensor<19x1xf32> {
  %p = wg.contract "ki,kj->ij" %a, %b : tensor<9x19xf32>, tensor<9x1xf32> -> tensor<19x1xf32>
  return %p : tensor<19x1xf32>
}
func.func @unit_lane_ji(%a: tensor<9x19xf32>, %b: tensor<9x1xf32>) -> tensor<1x19xf32> {
  %p = wg.contract "ki,kj->ji" %a, %b : tensor<9x19xf32>, tensor<9x1xf32> -> tensor<1x19xf32>
  return %p : tensor<1x19xf32>
}
func.func @units_ukij(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<1x3x5x18xf64> {
  %p = wg.contract "nuki,nkju->ukij" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<1x3x5x18xf64>
  return %p : tensor<1x3x5x18xf64>
}
func.func @units_ukji(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<1x3x18x5xf64> {
  %p = wg.contract "nuki,nkju->ukji" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<1x3x18x5xf64>
  return %p : tensor<1x3x18x5xf64>
}
func.func @units_uikj(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<1x5x3x18xf64> {
  %p = wg.contract "nuki,nkju->uikj" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<1x5x3x18xf64>
  return %p : tensor<1x5x3x18xf64>
}
func.func @units_uijk(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<1x5x18x3xf64> {
  %p = wg.contract "nuki,nkju->uijk" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<1x5x18x3xf64>
  return %p : tensor<1x5x18x3xf64>
}
func.func @units_ujki(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<1x18x3x5xf64> {
  %p = wg.contract "nuki,nkju->ujki" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<1x18x3x5xf64>
  return %p : tensor<1x18x3x5xf64>
}
func.func @units_ujik(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<1x18x5x3xf64> {
  %p = wg.contract "nuki,nkju->ujik" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<1x18x5x3xf64>
  return %p : tensor<1x18x5x3xf64>
}
func.func @units_kuij(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<3x1x5x18xf64> {
  %p = wg.contract "nuki,nkju->kuij" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<3x1x5x18xf64>
  return %p : tensor<3x1x5x18xf64>
}
func.func @units_kuji(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<3x1x18x5xf64> {
  %p = wg.contract "nuki,nkju->kuji" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<3x1x18x5xf64>
  return %p : tensor<3x1x18x5xf64>
}
func.func @units_kiuj(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<3x5x1x18xf64> {
  %p = wg.contract "nuki,nkju->kiuj" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<3x5x1x18xf64>
  return %p : tensor<3x5x1x18xf64>
}
func.func @units_kiju(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<3x5x18x1xf64> {
  %p = wg.contract "nuki,nkju->kiju" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<3x5x18x1xf64>
  return %p : tensor<3x5x18x1xf64>
}
func.func @units_kjui(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<3x18x1x5xf64> {
  %p = wg.contract "nuki,nkju->kjui" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<3x18x1x5xf64>
  return %p : tensor<3x18x1x5xf64>
}
func.func @units_kjiu(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<3x18x5x1xf64> {
  %p = wg.contract "nuki,nkju->kjiu" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<3x18x5x1xf64>
  return %p : tensor<3x18x5x1xf64>
}
func.func @units_iukj(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<5x1x3x18xf64> {
  %p = wg.contract "nuki,nkju->iukj" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<5x1x3x18xf64>
  return %p : tensor<5x1x3x18xf64>
}
func.func @units_iujk(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<5x1x18x3xf64> {
  %p = wg.contract "nuki,nkju->iujk" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<5x1x18x3xf64>
  return %p : tensor<5x1x18x3xf64>
}
func.func @units_ikuj(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<5x3x1x18xf64> {
  %p = wg.contract "nuki,nkju->ikuj" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<5x3x1x18xf64>
  return %p : tensor<5x3x1x18xf64>
}
func.func @units_ikju(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<5x3x18x1xf64> {
  %p = wg.contract "nuki,nkju->ikju" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<5x3x18x1xf64>
  return %p : tensor<5x3x18x1xf64>
}
func.func @units_ijuk(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<5x18x1x3xf64> {
  %p = wg.contract "nuki,nkju->ijuk" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<5x18x1x3xf64>
  return %p : tensor<5x18x1x3xf64>
}
func.func @units_ijku(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<5x18x3x1xf64> {
  %p = wg.contract "nuki,nkju->ijku" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<5x18x3x1xf64>
  return %p : tensor<5x18x3x1xf64>
}
func.func @units_juki(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<18x1x3x5xf64> {
  %p = wg.contract "nuki,nkju->juki" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<18x1x3x5xf64>
  return %p : tensor<18x1x3x5xf64>
}
func.func @units_juik(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<18x1x5x3xf64> {
  %p = wg.contract "nuki,nkju->juik" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<18x1x5x3xf64>
  return %p : tensor<18x1x5x3xf64>
}
func.func @units_jkui(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<18x3x1x5xf64> {
  %p = wg.contract "nuki,nkju->jkui" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<18x3x1x5xf64>
  return %p : tensor<18x3x1x5xf64>
}
func.func @units_jkiu(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<18x3x5x1xf64> {
  %p = wg.contract "nuki,nkju->jkiu" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<18x3x5x1xf64>
  return %p : tensor<18x3x5x1xf64>
}
func.func @units_jiuk(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<18x5x1x3xf64> {
  %p = wg.contract "nuki,nkju->jiuk" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<18x5x1x3xf64>
  return %p : tensor<18x5x1x3xf64>
}
func.func @units_jiku(%a: tensor<9x1x3x5xf64>, %b: tensor<9x3x18x1xf64>) -> tensor<18x5x3x1xf64> {
  %p = wg.contract "nuki,nkju->jiku" %a, %b : tensor<9x1x3x5xf64>, tensor<9x3x18x1xf64> -> tensor<18x5x3x1xf64>
  return %p : tensor<18x5x3x1xf64>
}
func.func @one_k_kij(%a: tensor<1x6x5xf32>, %b: tensor<1x6x18xf32>) -> tensor<6x5x18xf32> {
  %p = wg.contract "nki,nkj->kij" %a, %b : tensor<1x6x5xf32>, tensor<1x6x18xf32> -> tensor<6x5x18xf32>
  return %p : tensor<6x5x18xf32>
}
func.func @one_k_kji(%a: tensor<1x6x5xf32>, %b: tensor<1x6x18xf32>) -> tensor<6x18x5xf32> {
  %p = wg.contract "nki,nkj->kji" %a, %b : tensor<1x6x5xf32>, tensor<1x6x18xf32> -> tensor<6x18x5xf32>
  return %p : tensor<6x18x5xf32>
}
func.func @one_k_ikj(%a: tensor<1x6x5xf32>, %b: tensor<1x6x18xf32>) -> tensor<5x6x18xf32> {
  %p = wg.contract "nki,nkj->ikj" %a, %b : tensor<1x6x5xf32>, tensor<1x6x18xf32> -> tensor<5x6x18xf32>
  return %p : tensor<5x6x18xf32>
}
func.func @one_k_ijk(%a: tensor<1x6x5xf32>, %b: tensor<1x6x18xf32>) -> tensor<5x18x6xf32> {
  %p = wg.contract "nki,nkj->ijk" %a, %b : tensor<1x6x5xf32>, tensor<1x6x18xf32> -> tensor<5x18x6xf32>
  return %p : tensor<5x18x6xf32>
}
func.func @one_k_jki(%a: tensor<1x6x5xf32>, %b: tensor<1x6x18xf32>) -> tensor<18x6x5xf32> {
  %p = wg.contract "nki,nkj->jki" %a, %b : tensor<1x6x5xf32>, tensor<1x6x18xf32> -> tensor<18x6x5xf32>
  return %p : tensor<18x6x5xf32>
}
func.func @one_k_jik(%a: tensor<1x6x5xf32>, %b: tensor<1x6x18xf32>) -> tensor<18x5x6xf32> {
  %p = wg.contract "nki,nkj->jik" %a, %b : tensor<1x6x5xf32>, tensor<1x6x18xf32> -> tensor<18x5x6xf32>
  return %p : tensor<18x5x6xf32>
}
func.func @none_kij(%a: tensor<0x3x5xf32>, %b: tensor<0x3x18xf32>) -> tensor<3x5x18xf32> {
  %p = wg.contract "nki,nkj->kij" %a, %b : tensor<0x3x5xf32>, tensor<0x3x18xf32> -> tensor<3x5x18xf32>
  return %p : tensor<3x5x18xf32>
}
func.func @none_kji(%a: tensor<0x3x5xf32>, %b: tensor<0x3x18xf32>) -> tensor<3x18x5xf32> {
  %p = wg.contract "nki,nkj->kji" %a, %b : tensor<0x3x5xf32>, tensor<0x3x18xf32> -> tensor<3x18x5xf32>
  return %p : tensor<3x18x5xf32>
}
func.func @none_ikj(%a: tensor<0x3x5xf32>, %b: tensor<0x3x18xf32>) -> tensor<5x3x18xf32> {
  %p = wg.contract "nki,nkj->ikj" %a, %b : tensor<0x3x5xf32>, tensor<0x3x18xf32> -> tensor<5x3x18xf32>
  return %p : tensor<5x3x18xf32>
}
func.func @none_ijk(%a: tensor<0x3x5xf32>, %b: tensor<0x3x18xf32>) -> tensor<5x18x3xf32> {
  %p = wg.contract "nki,nkj->ijk" %a, %b : tensor<0x3x5xf32>, tensor<0x3x18xf32> -> tensor<5x18x3xf32>
  return %p : tensor<5x18x3xf32>
}
func.func @none_jki(%a: tensor<0x3x5xf32>, %b: tensor<0x3x18xf32>) -> tensor<18x3x5xf32> {
  %p = wg.contract "nki,nkj->jki" %a, %b : tensor<0x3x5xf32>, tensor<0x3x18xf32> -> tensor<18x3x5xf32>
  return %p : tensor<18x3x5xf32>
}
func.func @none_jik(%a: tensor<0x3x5xf32>, %b: tensor<0x3x18xf32>) -> tensor<18x5x3xf32> {
  %p = wg.contract "nki,nkj->jik" %a, %b : tensor<0x3x5xf32>, tensor<0x3x18xf32> -> tensor<18x5x3xf32>
  return %p : tensor<18x5x3xf32>
}
func.func @empty_batch_kij(%a: tensor<3x0x5xf32>, %b: tensor<3x0x18xf32>) -> tensor<0x5x18xf32> {
  %p = wg.contract "nki,nkj->kij" %a, %b : tensor<3x0x5xf32>, tensor<3x0x18xf32> -> tensor<0x5x18xf32>
  return %p : tensor<0x5x18xf32>
}
func.func @empty_batch_kji(%a: tensor<3x0x5xf32>, %b: tensor<3x0x18xf32>) -> tensor<0x18x5xf32> {
  %p = wg.contract "nki,nkj->kji" %a, %b : tensor<3x0x5xf32>, tensor<3x0x18xf32> -> tensor<0x18x5xf32>
  return %p : tensor<0x18x5xf32>
}
func.func @empty_batch_ikj(%a: tensor<3x0x5xf32>, %b: tensor<3x0x18xf32>) -> tensor<5x0x18xf32> {
  %p = wg.contract "nki,nkj->ikj" %a, %b : tensor<3x0x5xf32>, tensor<3x0x18xf32> -> tensor<5x0x18xf32>
  return %p : tensor<5x0x18xf32>
}
func.func @empty_batch_ijk(%a: tensor<3x0x5xf32>, %b: tensor<3x0x18xf32>) -> tensor<5x18x0xf32> {
  %p = wg.contract "nki,nkj->ijk" %a, %b : tensor<3x0x5xf32>, tensor<3x0x18xf32> -> tensor<5x18x0xf32>
  return %p : tensor<5x18x0xf32>
}
func.func @empty_batch_jki(%a: tensor<3x0x5xf32>, %b: tensor<3x0x18xf32>) -> tensor<18x0x5xf32> {
  %p = wg.contract "nki,nkj->jki" %a, %b : tensor<3x0x5xf32>, tensor<3x0x18xf32> -> tensor<18x0x5xf32>
  return %p : tensor<18x0x5xf32>
}
func.func @empty_batch_jik(%a: tensor<3x0x5xf32>, %b: tensor<3x0x18xf32>) -> tensor<18x5x0xf32> {
  %p = wg.contract "nki,nkj->jik" %a, %b : tensor<3x0x5xf32>, tensor<3x0x18xf32> -> tensor<18x5x0xf32>
  return %p : tensor<18x5x0xf32>
}
func.func @copied_kij(%a: tensor<40x33x12xf32>, %b: tensor<40x33x15xf32>) -> tensor<33x12x15xf32> {
  %p = wg.contract "nki,nkj->kij" %a, %b : tensor<40x33x12xf32>, tensor<40x33x15xf32> -> tensor<33x12x15xf32>
  return %p : tensor<33x12x15xf32>
}
func.func @copied_kji(%a: tensor<40x33x12xf32>, %b: tensor<40x33x15xf32>) -> tensor<33x15x12xf32> {
  %p = wg.contract "nki,nkj->kji" %a, %b : tensor<40x33x12xf32>, tensor<40x33x15xf32> -> tensor<33x15x12xf32>
  return %p : tensor<33x15x12xf32>
}
func.func @copied_ikj(%a: tensor<40x33x12xf32>, %b: tensor<40x33x15xf32>) -> tensor<12x33x15xf32> {
  %p = wg.contract "nki,nkj->ikj" %a, %b : tensor<40x33x12xf32>, tensor<40x33x15xf32> -> tensor<12x33x15xf32>
  return %p : tensor<12x33x15xf32>
}
func.func @copied_ijk(%a: tensor<40x33x12xf32>, %b: tensor<40x33x15xf32>) -> tensor<12x15x33xf32> {
  %p = wg.contract "nki,nkj->ijk" %a, %b : tensor<40x33x12xf32>, tensor<40x33x15xf32> -> tensor<12x15x33xf32>
  return %p : tensor<12x15x33xf32>
}
func.func @copied_jki(%a: tensor<40x33x12xf32>, %b: tensor<40x33x15xf32>) -> tensor<15x33x12xf32> {
  %p = wg.contract "nki,nkj->jki" %a, %b : tensor<40x33x12xf32>, tensor<40x33x15xf32> -> tensor<15x33x12xf32>
  return %p : tensor<15x33x12xf32>
}
func.func @copied_jik(%a: tensor<40x33x12xf32>, %b: tensor<40x33x15xf32>) -> tensor<15x12x33xf32> {
  %p = wg.contract "nki,nkj->jik" %a, %b : tensor<40x33x12xf32>, tensor<40x33x15xf32> -> tensor<15x12x33xf32>
  return %p : tensor<15x12x33xf32>
}
func.func @long_sum_ijk(%a: tensor<3x4x2500xf32>, %b: tensor<5x4x2500xf32>) -> tensor<3x5x4xf32> {
  %p = wg.contract "ikn,jkn->ijk" %a, %b : tensor<3x4x2500xf32>, tensor<5x4x2500xf32> -> tensor<3x5x4xf32>
  return %p : tensor<3x5x4xf32>
}
func.func @long_sum_ikj(%a: tensor<3x4x2500xf32>, %b: tensor<5x4x2500xf32>) -> tensor<3x4x5xf32> {
  %p = wg.contract "ikn,jkn->ikj" %a, %b : tensor<3x4x2500xf32>, tensor<5x4x2500xf32> -> tensor<3x4x5xf32>
  return %p : tensor<3x4x5xf32>
}
func.func @long_sum_jik(%a: tensor<3x4x2500xf32>, %b: tensor<5x4x2500xf32>) -> tensor<5x3x4xf32> {
  %p = wg.contract "ikn,jkn->jik" %a, %b : tensor<3x4x2500xf32>, tensor<5x4x2500xf32> -> tensor<5x3x4xf32>
  return %p : tensor<5x3x4xf32>
}
func.func @long_sum_jki(%a: tensor<3x4x2500xf32>, %b: tensor<5x4x2500xf32>) -> tensor<5x4x3xf32> {
  %p = wg.contract "ikn,jkn->jki" %a, %b : tensor<3x4x2500xf32>, tensor<5x4x2500xf32> -> tensor<5x4x3xf32>
  return %p : tensor<5x4x3xf32>
}
func.func @long_sum_kij(%a: tensor<3x4x2500xf32>, %b: tensor<5x4x2500xf32>) -> tensor<4x3x5xf32> {
  %p = wg.contract "ikn,jkn->kij" %a, %b : tensor<3x4x2500xf32>, tensor<5x4x2500xf32> -> tensor<4x3x5xf32>
  return %p : tensor<4x3x5xf32>
}
func.func @long_sum_kji(%a: tensor<3x4x2500xf32>, %b: tensor<5x4x2500xf32>) -> tensor<4x5x3xf32> {
  %p = wg.contract "ikn,jkn->kji" %a, %b : tensor<3x4x2500xf32>, tensor<5x4x2500xf32> -> tensor<4x5x3xf32>
  return %p : tensor<4x5x3xf32>
}
func.func @sum_of_product(%q: tensor<5x18x7xf32>, %y: tensor<40x5x18xf32>, %z: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %p = wg.contract "kij,nki->nkj" %q, %y : tensor<5x18x7xf32>, tensor<40x5x18xf32> -> tensor<40x5x7xf32>
  %m = wg.neg %p : tensor<40x5x7xf32>
  %s = wg.reduce_sum %m axes [0] : tensor<40x5x7xf32> -> tensor<5x7xf32>
  %r = wg.add %s, %z : tensor<5x7xf32>
  return %r : tensor<5x7xf32>
}
func.func @sum_of_batch_and_rows(%a: tensor<6x30x20xf64>, %b: tensor<6x20x19xf64>) -> tensor<19xf64> {
  %p = wg.contract "bmk,bkn->bmn" %a, %b : tensor<6x30x20xf64>, tensor<6x20x19xf64> -> tensor<6x30x19xf64>
  %s = wg.reduce_sum %p axes [0, 1] : tensor<6x30x19xf64> -> tensor<19xf64>
  return %s : tensor<19xf64>
}
func.func @sum_of_all(%a: tensor<30x20xf64>, %b: tensor<20x19xf64>) -> tensor<f64> {
  %p = wg.contract "mk,kn->mn" %a, %b : tensor<30x20xf64>, tensor<20x19xf64> -> tensor<30x19xf64>
  %s = wg.reduce_sum %p axes [0, 1] : tensor<30x19xf64> -> tensor<f64>
  return %s : tensor<f64>
}
func.func @along_no_columns_ijk(%a: tensor<4x7x19xf32>, %b: tensor<4x0x19xf32>) -> tensor<7x0x19xf32> {
  %p = wg.contract "nik,njk->ijk" %a, %b : tensor<4x7x19xf32>, tensor<4x0x19xf32> -> tensor<7x0x19xf32>
  return %p : tensor<7x0x19xf32>
}
func.func @along_no_columns_jik(%a: tensor<4x7x19xf32>, %b: tensor<4x0x19xf32>) -> tensor<0x7x19xf32> {
  %p = wg.contract "nik,njk->jik" %a, %b : tensor<4x7x19xf32>, tensor<4x0x19xf32> -> tensor<0x7x19xf32>
  return %p : tensor<0x7x19xf32>
}
func.func @along_no_columns_kij(%a: tensor<4x7x19xf32>, %b: tensor<4x0x19xf32>) -> tensor<19x7x0xf32> {
  %p = wg.contract "nik,njk->kij" %a, %b : tensor<4x7x19xf32>, tensor<4x0x19xf32> -> tensor<19x7x0xf32>
  return %p : tensor<19x7x0xf32>
}
// Panels of an operand that lies along k, of fewer places than a vector has lanes or of some more: blocks as high as the
// next power of two.
func.func @short_k_2(%a: tensor<50x2xf32>, %b: tensor<37x2xf32>) -> tensor<50x37xf32> {
  %p = wg.contract "mk,nk->mn" %a, %b : tensor<50x2xf32>, tensor<37x2xf32> -> tensor<50x37xf32>
  return %p : tensor<50x37xf32>
}
func.func @short_k_3(%a: tensor<50x3xf32>, %b: tensor<70x3xf32>) -> tensor<50x70xf32> {
  %p = wg.contract "mk,nk->mn" %a, %b : tensor<50x3xf32>, tensor<70x3xf32> -> tensor<50x70xf32>
  return %p : tensor<50x70xf32>
}
func.func @short_k_7(%a: tensor<50x7xf32>, %b: tensor<45x7xf32>) -> tensor<50x45xf32> {
  %p = wg.contract "mk,nk->mn" %a, %b : tensor<50x7xf32>, tensor<45x7xf32> -> tensor<50x45xf32>
  return %p : tensor<50x45xf32>
}
func.func @short_k_20(%a: tensor<50x20xf32>, %b: tensor<41x20xf32>) -> tensor<50x41xf32> {
  %p = wg.contract "mk,nk->mn" %a, %b : tensor<50x20xf32>, tensor<41x20xf32> -> tensor<50x41xf32>
  return %p : tensor<50x41xf32>
}
func.func @short_k_31(%a: tensor<50x31xf32>, %b: tensor<9x31xf32>) -> tensor<50x9xf32> {
  %p = wg.contract "mk,nk->mn" %a, %b : tensor<50x31xf32>, tensor<9x31xf32> -> tensor<50x9xf32>
  return %p : tensor<50x9xf32>
}
func.func @short_k_two_letters(%a: tensor<50x4x5xf32>, %b: tensor<37x4x5xf32>) -> tensor<50x37xf32> {
  %p = wg.contract "mkl,nkl->mn" %a, %b : tensor<50x4x5xf32>, tensor<37x4x5xf32> -> tensor<50x37xf32>
  return %p : tensor<50x37xf32>
}
func.func @short_k_f64(%a: tensor<50x5xf64>, %b: tensor<23x5xf64>) -> tensor<50x23xf64> {
  %p = wg.contract "mk,nk->mn" %a, %b : tensor<50x5xf64>, tensor<23x5xf64> -> tensor<50x23xf64>
  return %p : tensor<50x23xf64>
}
func.func @short_k_of_two(%a: tensor<6x7x3xf32>, %b: tensor<3x2x19xf32>) -> tensor<6x7x2x19xf32> {
  %p = wg.contract "lkm,mij->lkij" %a, %b : tensor<6x7x3xf32>, tensor<3x2x19xf32> -> tensor<6x7x2x19xf32>
  return %p : tensor<6x7x2x19xf32>
}
func.func @short_k_few_lanes(%a: tensor<50x6xf32>, %b: tensor<3x6xf32>) -> tensor<50x3xf32> {
  %p = wg.contract "mk,nk->mn" %a, %b : tensor<50x6xf32>, tensor<3x6xf32> -> tensor<50x3xf32>
  return %p : tensor<50x3xf32>
}
// Panels in the order in which b lies, which is most of what is read: with one row, and with a small a of several.
func.func @panels_as_b_lies(%a: tensor<5x40xf32>, %b: tensor<5x3x4x40x33xf32>) -> tensor<4x5x3x33xf32> {
  %p = wg.contract "ij,imljk->limk" %a, %b : tensor<5x40xf32>, tensor<5x3x4x40x33xf32> -> tensor<4x5x3x33xf32>
  return %p : tensor<4x5x3x33xf32>
}
func.func @panels_as_b_lies_in_rows(%a: tensor<6x7x40xf64>, %b: tensor<4x3x40x6x19xf64>) -> tensor<6x3x4x7x19xf64> {
  %p = wg.contract "bqj,nljbk->blnqk" %a, %b : tensor<6x7x40xf64>, tensor<4x3x40x6x19xf64> -> tensor<6x3x4x7x19xf64>
  return %p : tensor<6x3x4x7x19xf64>
}
