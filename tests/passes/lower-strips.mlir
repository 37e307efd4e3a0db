// Rows of a few elements that are read in one order and written in another, more than caches close by hold: the axis
// that steps furthest in what is read goes in strips of as many places as processors follow runs. Where it is not
// measured that this pays (AVX-512), and of less, loops are whole.
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=haswell --wg-lower=cpu=haswell | FileCheck %s --check-prefixes=CHECK,STRIPS
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s --check-prefixes=CHECK,WHOLE

// CHECK-LABEL: func.func private @rows
// STRIPS: scf.for %[[FIRST:.*]] = %c0 to %c351 step %c16
// STRIPS: %[[END:.*]] = arith.minsi
// STRIPS: scf.for {{.*}} = %arg3 to %arg4 step %c1
// STRIPS: scf.for {{.*}} = %[[FIRST]] to %[[END]] step %c1
// WHOLE-NOT: step %c16
// WHOLE: return
func.func @rows(%x: tensor<160x351x4xf32>) -> tensor<351x160x4xf32> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<160x351x4xf32> -> tensor<351x160x4xf32>
  return %y : tensor<351x160x4xf32>
}

// -----

// Blocks that are read across: strips of eight of them, as each has two rows.
// CHECK-LABEL: func.func private @blocks
// STRIPS: scf.for %[[FIRST:.*]] = %c0 to %c455 step %c8
// STRIPS: %[[END:.*]] = arith.minsi
// STRIPS: scf.for {{.*}} = %[[FIRST]] to %[[END]] step %c1
// WHOLE: return
func.func @blocks(%x: tensor<2x98x130x7xf32>) -> tensor<130x7x98x2xf32> {
  %y = wg.transpose %x by [2, 3, 1, 0] : tensor<2x98x130x7xf32> -> tensor<130x7x98x2xf32>
  return %y : tensor<130x7x98x2xf32>
}

// -----

// CHECK-LABEL: func.func private @small
// CHECK-NOT: step %c16
// CHECK: return
func.func @small(%x: tensor<40x91x4xf32>) -> tensor<91x40x4xf32> {
  %y = wg.transpose %x by [1, 0, 2] : tensor<40x91x4xf32> -> tensor<91x40x4xf32>
  return %y : tensor<91x40x4xf32>
}
