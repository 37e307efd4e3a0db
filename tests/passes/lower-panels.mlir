// Panels are as wide as the accumulators, a row of b and a broadcast fit the registers: of 32 four vectors where a short
// sum writes much, of 16 two. Columns of a sum that registers hold are walked once, all of them side by side, and of
// three vectors two rows at a time, so that no addition waits.
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=haswell --wg-lower=cpu=haswell | FileCheck %s --check-prefix=FEW
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s --check-prefix=MANY

// FEW-LABEL: func.func private @product
// FEW: scf.for {{.*}} to %c20 step
// FEW-COUNT-2: llvm.load {{.*}} -> vector<8xf32>
// FEW-NOT: llvm.load {{.*}} -> vector<8xf32>
// FEW: math.fma
// MANY-LABEL: func.func private @product
// MANY: scf.for {{.*}} to %c20 step
// MANY-COUNT-4: llvm.load {{.*}} -> vector<16xf32>
// MANY-NOT: llvm.load {{.*}} -> vector<16xf32>
// MANY: math.fma
func.func @product(%x: tensor<2000x20xf32>, %w: tensor<20x300xf32>) -> tensor<2000x300xf32> {
  %y = wg.contract "mk,kn->mn" %x, %w : tensor<2000x20xf32>, tensor<20x300xf32> -> tensor<2000x300xf32>
  return %y : tensor<2000x300xf32>
}

// -----

// FEW-LABEL: func.func private @sum
// FEW: scf.for {{.*}} to %c200 step %{{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// FEW: masked
// FEW-NOT: scf.for
// FEW: func.func
// MANY-LABEL: func.func private @sum
// MANY: scf.for {{.*}} to %c200 step %{{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
func.func @sum(%x: tensor<200x17xf32>, %z: tensor<200x33xf32>) -> (tensor<17xf32>, tensor<33xf32>) {
  %y = wg.reduce_sum %x axes [0] : tensor<200x17xf32> -> tensor<17xf32>
  %s = wg.reduce_sum %z axes [0] : tensor<200x33xf32> -> tensor<33xf32>
  return %y, %s : tensor<17xf32>, tensor<33xf32>
}

// -----

// Rows are long where the epilogue reads another tensor: of 16 registers three vectors, and so four rows.
// FEW-LABEL: func.func private @streamed
// FEW: scf.for {{.*}} to %c600 step %c4 {
// MANY-LABEL: func.func private @streamed
// MANY: scf.for {{.*}} to %c600 step %c6 {
func.func @streamed(%x: tensor<600x300xf32>, %w: tensor<300x9600xf32>, %y: tensor<600x9600xf32>) -> tensor<600x9600xf32> {
  %p = wg.contract "mk,kn->mn" %x, %w : tensor<600x300xf32>, tensor<300x9600xf32> -> tensor<600x9600xf32>
  %z = wg.mul %p, %y : tensor<600x9600xf32>
  return %z : tensor<600x9600xf32>
}

// -----

// Along a batch columns lie side by side where sums are long, one by one where they are short.
// FEW-LABEL: func.func private @short
// FEW: scf.for {{.*}} to %c60 step %c12 {
// MANY-LABEL: func.func private @short
// MANY: scf.for {{.*}} to %c60 step %c6 {
func.func @short(%x: tensor<60x6x8xf32>, %w: tensor<50x6x8xf32>) -> tensor<50x60x8xf32> {
  %p = wg.contract "kli,mli->mki" %x, %w : tensor<60x6x8xf32>, tensor<50x6x8xf32> -> tensor<50x60x8xf32>
  return %p : tensor<50x60x8xf32>
}

// -----

// FEW-LABEL: func.func private @long
// FEW: scf.for {{.*}} to %c60 step %c4 {
// MANY-LABEL: func.func private @long
// MANY: scf.for {{.*}} to %c60 step %c6 {
func.func @long(%x: tensor<60x20x8xf32>, %w: tensor<50x20x8xf32>) -> tensor<50x60x8xf32> {
  %p = wg.contract "kli,mli->mki" %x, %w : tensor<60x20x8xf32>, tensor<50x20x8xf32> -> tensor<50x60x8xf32>
  return %p : tensor<50x60x8xf32>
}
