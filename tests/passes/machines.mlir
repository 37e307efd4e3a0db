// Products take the form that is cheapest on the machine that is compiled for, where it is known.
// RUN: wengert-opt %s --wg-arrange-products=machine=fast-memory | FileCheck %s --check-prefix=FAST
// RUN: wengert-opt %s --wg-arrange-products=machine=slow-memory | FileCheck %s --check-prefix=SLOW
// RUN: wengert-opt %s --wg-arrange-products=machine=fast | FileCheck %s --check-prefix=SLOW
// RUN: wengert-opt %s --wg-arrange-products=machine=narrow-vectors | FileCheck %s --check-prefix=NARROW
// RUN: wengert-opt %s --wg-fuse=cpu=znver4 | FileCheck %s --check-prefix=FAST
// RUN: wengert-opt %s --wg-fuse=cpu=znver5 | FileCheck %s --check-prefix=SLOW
// RUN: wengert-opt %s --wg-fuse=cpu=haswell | FileCheck %s --check-prefix=NARROW
// RUN: not wengert-opt %s --wg-fuse=cpu=none-such 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: LLVM knows no x86-64 processor `none-such`

// One multiply-add of 512 bits a cycle: full vectors along 22 numbers lose less than tiles of 8. Where there are two, more.
// FAST: wg.contract "jil,ijk->{{kjl|jkl}}"
// SLOW: wg.contract "jil,ijk->{{jlk|ljk}}"
// Vectors of eight numbers are as long as rows of 8.
// NARROW: wg.contract "jil,ijk->{{kjl|jkl}}"
func.func @product(%a: tensor<86x39x8xf32>, %b: tensor<39x86x22xf32>) -> tensor<8x22x86xf32> {
  %c = wg.contract "jil,ijk->lkj" %a, %b : tensor<86x39x8xf32>, tensor<39x86x22xf32> -> tensor<8x22x86xf32>
  return %c : tensor<8x22x86xf32>
}
