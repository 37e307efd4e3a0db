// RUN: wengert-opt %s --wg-products-of-tables --split-input-file | FileCheck %s

// Rows that are looked up and multiplied: the table is, whichever operand they are, in whatever shape of the places.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[E:.*]]: tensor<10x64xf32>, %[[I:.*]]: tensor<9x8xi64>, %[[W:.*]]: tensor<64x4x6xf32>)
// CHECK-NEXT: %[[T:.*]] = wg.contract "ak,kij->aij" %[[E]], %[[W]]
// CHECK-NEXT: %[[Y:.*]] = wg.gather %[[T]], %[[I]]
// CHECK-NEXT: %[[R:.*]] = wg.reshape %[[Y]] to [72, 4, 6]
// CHECK-NEXT: %[[U:.*]] = wg.contract "kij,ak->aij" %[[W]], %[[E]]
// CHECK-NEXT: %[[Z:.*]] = wg.gather %[[U]], %[[I]]
// CHECK-NEXT: %[[P:.*]] = wg.transpose %[[Z]] by [2, 0, 1, 3]
// CHECK-NEXT: return %[[R]], %[[P]]
func.func @rows(%e: tensor<10x64xf32>, %i: tensor<9x8xi64>, %w: tensor<64x4x6xf32>) -> (tensor<72x4x6xf32>, tensor<4x9x8x6xf32>) {
  %x = wg.gather %e, %i : tensor<10x64xf32>, tensor<9x8xi64> -> tensor<9x8x64xf32>
  %r = wg.reshape %x to [72, 64] : tensor<9x8x64xf32> -> tensor<72x64xf32>
  %y = wg.contract "mk,kij->mij" %r, %w : tensor<72x64xf32>, tensor<64x4x6xf32> -> tensor<72x4x6xf32>
  %z = wg.contract "kij,stk->istj" %w, %x : tensor<64x4x6xf32>, tensor<9x8x64xf32> -> tensor<4x9x8x6xf32>
  return %y, %z : tensor<72x4x6xf32>, tensor<4x9x8x6xf32>
}

// -----

// The gradients of both: rows are added up before they are multiplied, once for both. Rows of the table that no place
// names count as zeros, and have gradients of zero.
// CHECK-LABEL: func.func @gradients
// CHECK-SAME: (%[[E:.*]]: tensor<10x64xf64>, %[[I:.*]]: tensor<9x8xi32>, %[[W:.*]]: tensor<64x48xf64>, %[[DY:.*]]: tensor<9x8x48xf64>)
// CHECK-NEXT: %[[T:.*]] = wg.contract "ck,kn->cn" %[[E]], %[[W]]
// CHECK-NEXT: %[[Y:.*]] = wg.gather %[[T]], %[[I]]
// CHECK-DAG: %[[D:.*]] = wg.reshape %[[DY]] to [72, 48]
// CHECK-DAG: %[[J:.*]] = wg.reshape %[[I]] to [72]
// CHECK: %[[S:.*]] = wg.scatter_add %[[D]], %[[J]] to [10, 48]
// CHECK: %[[USES:.*]] = wg.scatter_add %{{.*}}, %{{.*}} to [10] : tensor<72xf32>
// CHECK: %[[IS:.*]] = wg.greater %[[USES]]
// CHECK-NEXT: %[[ROWS:.*]] = wg.broadcast %[[IS]] to [10, 64] dims [0]
// CHECK: %[[USED:.*]] = wg.select %[[ROWS]], %[[E]], %{{.*}} : tensor<10x64xi1>
// CHECK-NEXT: %[[DW:.*]] = wg.contract "ck,cn->kn" %[[USED]], %[[S]]
// CHECK-NEXT: %[[DX:.*]] = wg.contract "cn,kn->ck" %[[S]], %[[W]]
// CHECK: %[[DE:.*]] = wg.select %{{.*}}, %[[DX]], %{{.*}} : tensor<10x64xi1>
// CHECK-NEXT: return %[[Y]], %[[DW]], %[[DE]]
func.func @gradients(%e: tensor<10x64xf64>, %i: tensor<9x8xi32>, %w: tensor<64x48xf64>, %dy: tensor<9x8x48xf64>) -> (tensor<9x8x48xf64>, tensor<64x48xf64>, tensor<10x64xf64>) {
  %x = wg.gather %e, %i : tensor<10x64xf64>, tensor<9x8xi32> -> tensor<9x8x64xf64>
  %y = wg.contract "abk,kn->abn" %x, %w : tensor<9x8x64xf64>, tensor<64x48xf64> -> tensor<9x8x48xf64>
  %dw = wg.contract "abk,abn->kn" %x, %dy : tensor<9x8x64xf64>, tensor<9x8x48xf64> -> tensor<64x48xf64>
  %dx = wg.contract "abn,kn->abk" %dy, %w : tensor<9x8x48xf64>, tensor<64x48xf64> -> tensor<9x8x64xf64>
  %r = wg.reshape %dx to [72, 64] : tensor<9x8x64xf64> -> tensor<72x64xf64>
  %j = wg.reshape %i to [72] : tensor<9x8xi32> -> tensor<72xi32>
  %de = wg.scatter_add %r, %j to [10, 64] : tensor<72x64xf64>, tensor<72xi32> -> tensor<10x64xf64>
  return %y, %dw, %de : tensor<9x8x48xf64>, tensor<64x48xf64>, tensor<10x64xf64>
}

// -----

// It stays where the table has not clearly fewer rows, where a row's product is little work, where places are letters of
// the other operand too, where each batch has its own table, and where nothing else would find an index out of range.
// CHECK-LABEL: func.func @stays
// CHECK-NEXT: wg.gather
// CHECK-NEXT: wg.contract "mk,kn->mn"
// CHECK-NEXT: return
func.func @stays(%e: tensor<40x64xf32>, %i: tensor<72xi32>, %w: tensor<64x48xf32>) -> tensor<72x48xf32> {
  %x = wg.gather %e, %i : tensor<40x64xf32>, tensor<72xi32> -> tensor<72x64xf32>
  %y = wg.contract "mk,kn->mn" %x, %w : tensor<72x64xf32>, tensor<64x48xf32> -> tensor<72x48xf32>
  return %y : tensor<72x48xf32>
}
// CHECK-LABEL: func.func @little
// CHECK-NEXT: wg.gather
// CHECK-NEXT: wg.contract "mk,kn->mn"
// CHECK-NEXT: return
func.func @little(%e: tensor<10x8xf32>, %i: tensor<72xi32>, %w: tensor<8x48xf32>) -> tensor<72x48xf32> {
  %x = wg.gather %e, %i : tensor<10x8xf32>, tensor<72xi32> -> tensor<72x8xf32>
  %y = wg.contract "mk,kn->mn" %x, %w : tensor<72x8xf32>, tensor<8x48xf32> -> tensor<72x48xf32>
  return %y : tensor<72x48xf32>
}
// CHECK-LABEL: func.func @batches
// CHECK-NEXT: wg.gather
// CHECK-NEXT: wg.contract "mk,mkn->mn"
// CHECK-NEXT: return
func.func @batches(%e: tensor<10x64xf32>, %i: tensor<72xi32>, %w: tensor<72x64x48xf32>) -> tensor<72x48xf32> {
  %x = wg.gather %e, %i : tensor<10x64xf32>, tensor<72xi32> -> tensor<72x64xf32>
  %y = wg.contract "mk,mkn->mn" %x, %w : tensor<72x64xf32>, tensor<72x64x48xf32> -> tensor<72x48xf32>
  return %y : tensor<72x48xf32>
}
// CHECK-LABEL: func.func @tables
// CHECK-NEXT: wg.gather
// CHECK-NEXT: wg.contract "bmk,kn->bmn"
// CHECK-NEXT: return
func.func @tables(%e: tensor<2x10x64xf32>, %i: tensor<2x72xi32>, %w: tensor<64x48xf32>) -> tensor<2x72x48xf32> {
  %x = wg.gather %e, %i {batch_dims = 1 : i64} : tensor<2x10x64xf32>, tensor<2x72xi32> -> tensor<2x72x64xf32>
  %y = wg.contract "bmk,kn->bmn" %x, %w : tensor<2x72x64xf32>, tensor<64x48xf32> -> tensor<2x72x48xf32>
  return %y : tensor<2x72x48xf32>
}
// CHECK-LABEL: func.func @found
// CHECK-NEXT: wg.gather
// CHECK-NEXT: wg.contract "mk,mn->kn"
// CHECK-NEXT: return
func.func @found(%e: tensor<10x64xf32>, %i: tensor<72xi32>, %d: tensor<72x48xf32>) -> tensor<64x48xf32> {
  %x = wg.gather %e, %i : tensor<10x64xf32>, tensor<72xi32> -> tensor<72x64xf32>
  %y = wg.contract "mk,mn->kn" %x, %d : tensor<72x64xf32>, tensor<72x48xf32> -> tensor<64x48xf32>
  return %y : tensor<64x48xf32>
}

// -----

// Nor where what is looked up would have too many axes, and of no table without rows.
// CHECK-LABEL: func.func @axes
// CHECK-NEXT: wg.gather
// CHECK-NEXT: wg.reshape
// CHECK-NEXT: wg.contract "mk,kij->mij"
// CHECK-NEXT: return
func.func @axes(%e: tensor<10x64xf64>, %i: tensor<1x1x1x1x1x1x72xi32>, %w: tensor<64x4x6xf64>) -> tensor<72x4x6xf64> {
  %x = wg.gather %e, %i : tensor<10x64xf64>, tensor<1x1x1x1x1x1x72xi32> -> tensor<1x1x1x1x1x1x72x64xf64>
  %r = wg.reshape %x to [72, 64] : tensor<1x1x1x1x1x1x72x64xf64> -> tensor<72x64xf64>
  %y = wg.contract "mk,kij->mij" %r, %w : tensor<72x64xf64>, tensor<64x4x6xf64> -> tensor<72x4x6xf64>
  return %y : tensor<72x4x6xf64>
}
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: wg.gather
// CHECK-NEXT: wg.contract "kb,kacdefgh->bacdefgh"
// CHECK-NEXT: return
func.func @nothing(%e: tensor<0x64x2xf64>, %i: tensor<i32>, %w: tensor<64x1x1x1x1x1x1x2xf64>) -> tensor<2x1x1x1x1x1x1x2xf64> {
  %x = wg.gather %e, %i : tensor<0x64x2xf64>, tensor<i32> -> tensor<64x2xf64>
  %y = wg.contract "kb,kacdefgh->bacdefgh" %x, %w : tensor<64x2xf64>, tensor<64x1x1x1x1x1x1x2xf64> -> tensor<2x1x1x1x1x1x1x2xf64>
  return %y : tensor<2x1x1x1x1x1x1x2xf64>
}
