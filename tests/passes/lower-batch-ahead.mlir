// Products whose vectors lie along a batch of fewer elements than these have ask ahead for the large operand, as no
// processor follows masked loads: for a later term of long sums, else for the same one of columns, or rows, to come.
// RUN: wengert-opt %s --split-input-file --wg-fuse=cpu=x86-64-v4 --wg-lower=cpu=x86-64-v4 | FileCheck %s

// Columns of 95 elements; four at a time, three times four ahead.
// CHECK-LABEL: func.func private @columns
// CHECK: llvm.getelementptr %{{.*}}[1140]
// CHECK-NEXT: llvm.intr.prefetch
// CHECK: llvm.getelementptr %{{.*}}[1235]
// CHECK-NEXT: llvm.intr.prefetch
func.func @columns(%a: tensor<19x5xf32>, %b: tensor<336x220x19x5xf32>) -> tensor<336x220x5xf32> {
  %c = wg.contract "ki,jlki->jli" %a, %b : tensor<19x5xf32>, tensor<336x220x19x5xf32> -> tensor<336x220x5xf32>
  return %c : tensor<336x220x5xf32>
}

// -----

// Nine terms ahead: of 24 rows of 20 bytes each.
// CHECK-LABEL: func.func private @terms
// CHECK: llvm.getelementptr %{{.*}}[45]
// CHECK-NEXT: llvm.intr.prefetch
// CHECK: llvm.getelementptr %{{.*}}[9545]
// CHECK-NEXT: llvm.intr.prefetch
func.func @terms(%a: tensor<50x33x1900x5xf32>, %b: tensor<1900x5xf32>) -> tensor<50x33x5xf32> {
  %c = wg.contract "jlki,ki->jli" %a, %b : tensor<50x33x1900x5xf32>, tensor<1900x5xf32> -> tensor<50x33x5xf32>
  return %c : tensor<50x33x5xf32>
}

// -----

// Rows of 35 elements, 24 at a time, two times 24 ahead.
// CHECK-LABEL: func.func private @rows
// CHECK: llvm.getelementptr %{{.*}}[1680]
// CHECK-NEXT: llvm.intr.prefetch
func.func @rows(%a: tensor<20400x7x5xf32>, %b: tensor<7x5xf32>) -> tensor<20400x5xf32> {
  %c = wg.contract "jki,ki->ji" %a, %b : tensor<20400x7x5xf32>, tensor<7x5xf32> -> tensor<20400x5xf32>
  return %c : tensor<20400x5xf32>
}

// -----

// CHECK-LABEL: func.func private @whole
// CHECK-NOT: llvm.intr.prefetch
// CHECK: return
func.func @whole(%a: tensor<19x8xf32>, %b: tensor<336x220x19x8xf32>) -> tensor<336x220x8xf32> {
  %c = wg.contract "ki,jlki->jli" %a, %b : tensor<19x8xf32>, tensor<336x220x19x8xf32> -> tensor<336x220x8xf32>
  return %c : tensor<336x220x8xf32>
}

// -----

// And none for what is close by.
// CHECK-LABEL: func.func private @small
// CHECK-NOT: llvm.intr.prefetch
// CHECK: return
func.func @small(%a: tensor<19x5xf32>, %b: tensor<33x22x19x5xf32>) -> tensor<33x22x5xf32> {
  %c = wg.contract "ki,jlki->jli" %a, %b : tensor<19x5xf32>, tensor<33x22x19x5xf32> -> tensor<33x22x5xf32>
  return %c : tensor<33x22x5xf32>
}
