// The end of a row that is no whole vector: one store with a mask with AVX-512; else two pieces, which may overlap, as a
// Zen 3 takes 12 cycles for a masked store.
// RUN: wengert-opt %s --wg-fuse=cpu=haswell --wg-lower=cpu=haswell | FileCheck %s --check-prefix=PIECES
// RUN: wengert-opt %s --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s --check-prefix=MASK

// PIECES-NOT: masked.store
// PIECES: llvm.store {{.*}} : vector<8xf32>
// PIECES: llvm.store {{.*}} : vector<4xf32>
// PIECES: vector.shuffle {{.*}} [3, 4, 5, 6]
// PIECES: llvm.store {{.*}} : vector<4xf32>
// PIECES-NOT: masked.store
// MASK: masked.store
func.func @f(%x: tensor<31xf32>) -> tensor<31xf32> {
  %y = wg.mul %x, %x : tensor<31xf32>
  return %y : tensor<31xf32>
}
