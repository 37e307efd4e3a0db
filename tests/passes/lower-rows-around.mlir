// A product of few terms whose result has a batch's letter, or columns, within each row, and is more than caches close
// by hold: the loop over tiles of rows is around that over the batch, so that the result is written in long runs, and
// threads share the rows.
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=haswell --wg-lower=cpu=haswell | FileCheck %s
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s --check-prefix=MANY

// CHECK-LABEL: func.func private @batch_k0_contract(
// CHECK: scf.for %[[TILE:.*]] = %arg4 to {{.*}} step %c1
// CHECK: arith.muli %[[TILE]], %c6
// CHECK: scf.for {{.*}} = %c0 to %c8 step %c1
// CHECK: scf.for {{.*}} = %c0 to %c64 step %c16
// CHECK: scf.for {{.*}} = %c0 to %c16 step %c1 iter_args
func.func @batch(%a: tensor<20000x8x16xf32>, %b: tensor<8x16x64xf32>) -> tensor<20000x8x64xf32> {
  %p = wg.contract "nhk,hkj->nhj" %a, %b : tensor<20000x8x16xf32>, tensor<8x16x64xf32> -> tensor<20000x8x64xf32>
  return %p : tensor<20000x8x64xf32>
}

// -----

// The result has rows within the batch.
// CHECK-LABEL: func.func private @outside_k0_contract(
// CHECK: scf.for {{.*}} = %c0 to %c8 step %c1
// CHECK: scf.for {{.*}} = %c0 to %c20000 step %c1
// CHECK: scf.for {{.*}} = %c0 to %c64 step %c16
func.func @outside(%a: tensor<20000x8x4xf32>, %b: tensor<8x4x64xf32>) -> tensor<8x20000x64xf32> {
  %p = wg.contract "nhk,hkj->hnj" %a, %b : tensor<20000x8x4xf32>, tensor<8x4x64xf32> -> tensor<8x20000x64xf32>
  return %p : tensor<8x20000x64xf32>
}

// -----

// Of many terms each panel is read often.
// CHECK-LABEL: func.func private @terms_k1_contract(
// CHECK: scf.for {{.*}} = %c0 to %c8 step %c1
// CHECK: scf.for {{.*}} = %c0 to %c64 step %c16
// CHECK: scf.for {{.*}} = %c0 to %c4000 step %c5
func.func @terms(%a: tensor<4000x8x100xf32>, %b: tensor<8x100x64xf32>) -> tensor<4000x8x64xf32> {
  %p = wg.contract "nhk,hkj->nhj" %a, %b : tensor<4000x8x100xf32>, tensor<8x100x64xf32> -> tensor<4000x8x64xf32>
  return %p : tensor<4000x8x64xf32>
}

// -----

// Of a row that is narrower than a panel tiles are higher: as many are shared as are written.
// CHECK-LABEL: func.func private @narrow_k0_contract(
// CHECK: scf.for %[[TILE:.*]] = %arg4 to {{.*}} step %c1
// CHECK: arith.muli %[[TILE]], %c12
// CHECK: @narrow_k0_contract_piece
// CHECK: arith.minsi {{.*}}, %c3335
// MANY-LABEL: func.func private @narrow_k0_contract(
// MANY: scf.for %[[TILE:.*]] = %arg4 to {{.*}} step %c1
// MANY: arith.muli %[[TILE]], %c24
// MANY: @narrow_k0_contract_piece
// MANY: arith.minsi {{.*}}, %c1668
func.func @narrow(%a: tensor<40013x8x8xf32>, %b: tensor<8x8x7xf32>) -> tensor<40013x8x7xf32> {
  %p = wg.contract "nhk,hkj->nhj" %a, %b : tensor<40013x8x8xf32>, tensor<8x8x7xf32> -> tensor<40013x8x7xf32>
  return %p : tensor<40013x8x7xf32>
}
