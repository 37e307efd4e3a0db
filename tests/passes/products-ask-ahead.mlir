// RUN: wengert-opt %s --wg-fuse --wg-lower --split-input-file | FileCheck %s

// Rows of an operand beyond the nearest caches, of which a panel reads a part: those of eight terms on are asked for,
// and behind the last term those of the next panel, which lie 30 rows before and some columns on.
// CHECK-LABEL: func.func private @far_
// CHECK-DAG: %[[AHEAD:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[TERMS:.*]] = arith.constant 30 : index
// CHECK: %[[P:.*]] = arith.addi %{{.*}}, %[[AHEAD]]
// CHECK: arith.cmpi uge, %[[P]], %[[TERMS]]
// CHECK: arith.select
// CHECK-COUNT-2: llvm.intr.prefetch
func.func @far(%a: tensor<20x30x501xf32>, %b: tensor<11x30xf32>) -> tensor<20x11x501xf32> {
  %c = wg.contract "lim,ji->ljm" %a, %b : tensor<20x30x501xf32>, tensor<11x30xf32> -> tensor<20x11x501xf32>
  return %c : tensor<20x11x501xf32>
}

// -----

// Rows that are side by side for a tile, of a long sum.
// CHECK-LABEL: func.func private @rows_
// CHECK-COUNT-2: llvm.intr.prefetch
func.func @rows(%a: tensor<601x503xf32>, %b: tensor<601x13xf32>) -> tensor<503x13xf32> {
  %c = wg.contract "ki,kj->ij" %a, %b : tensor<601x503xf32>, tensor<601x13xf32> -> tensor<503x13xf32>
  return %c : tensor<503x13xf32>
}

// -----

// What the nearest caches hold is not.
// CHECK-LABEL: func.func private @close_
// CHECK-NOT: llvm.intr.prefetch
func.func @close(%a: tensor<2x30x501xf32>, %b: tensor<11x30xf32>) -> tensor<2x11x501xf32> {
  %c = wg.contract "lim,ji->ljm" %a, %b : tensor<2x30x501xf32>, tensor<11x30xf32> -> tensor<2x11x501xf32>
  return %c : tensor<2x11x501xf32>
}

// -----

// Nor are operands of sums of fewer terms than that: what is eight terms on lies elsewhere.
// CHECK-LABEL: func.func private @few_
// CHECK-NOT: llvm.intr.prefetch
func.func @few(%a: tensor<100x7x501xf32>, %b: tensor<11x7xf32>) -> tensor<100x11x501xf32> {
  %c = wg.contract "lim,ji->ljm" %a, %b : tensor<100x7x501xf32>, tensor<11x7xf32> -> tensor<100x11x501xf32>
  return %c : tensor<100x11x501xf32>
}
