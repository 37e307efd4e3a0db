// A long sum of several tiles goes in parts, which ask for what the next one reads, and add to totals where a block of
// terms ends. A sum of one tile takes all of its terms at once.
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s

// CHECK-LABEL: func.func private @parts
// CHECK: scf.for %[[FROM:.*]] = %c0{{.*}} to %c9001{{.*}} step %c1024
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %[[FROM]] to %{{.*}} step %c1{{.*}} iter_args
// CHECK: llvm.intr.prefetch
// CHECK: llvm.intr.prefetch
// CHECK: math.fma
// CHECK: scf.if
// CHECK: arith.addf
func.func @parts(%a: tensor<9001x40xf32>, %b: tensor<9001x37xf32>) -> tensor<40x37xf32> {
  %p = wg.contract "km,kn->mn" %a, %b : tensor<9001x40xf32>, tensor<9001x37xf32> -> tensor<40x37xf32>
  return %p : tensor<40x37xf32>
}

// -----

// CHECK-LABEL: func.func private @one_tile
// CHECK-NOT: %c90001{{.*}} step %c1024
// CHECK: return
func.func @one_tile(%a: tensor<90001x8xf32>, %b: tensor<90001x16xf32>) -> tensor<8x16xf32> {
  %p = wg.contract "km,kn->mn" %a, %b : tensor<90001x8xf32>, tensor<90001x16xf32> -> tensor<8x16xf32>
  return %p : tensor<8x16xf32>
}
