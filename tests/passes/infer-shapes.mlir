// RUN: wengert-opt %s --wg-infer-shapes="function=step types=f32[8,3];f32[3]" | FileCheck %s
// RUN: not wengert-opt %s --wg-infer-shapes="function=step types=f32[8,4];f32[3]" 2>&1 | FileCheck %s --check-prefix=STATIC
// RUN: not wengert-opt %s --wg-infer-shapes="function=product types=f32[2,3];f32[4,5]" 2>&1 | FileCheck %s --check-prefix=INNER
// RUN: not wengert-opt %s --wg-infer-shapes="function=scaled types=f32[2,3];f32[1]" 2>&1 | FileCheck %s --check-prefix=REPEATS
// RUN: not wengert-opt %s --wg-infer-shapes="function=scaled types=f32[?,?];f32[1]" 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: wengert-opt %s --wg-infer-shapes="function=scaled types=f32[2,1];f32[1]" | FileCheck %s --check-prefix=ONE
// RUN: wengert-opt %s --wg-infer-shapes="function=partly types=f32[2,3];f32[2,?]" | FileCheck %s --check-prefix=PARTLY
// RUN: not wengert-opt %s --wg-infer-shapes="function=halves types=f32[5]" 2>&1 | FileCheck %s --check-prefix=HALVES
// RUN: not wengert-opt %s --wg-infer-shapes="function=nobody" 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not wengert-opt %s --wg-infer-shapes="function=step types=f33[8]" 2>&1 | FileCheck %s --check-prefix=TYPES
// RUN: wengert-opt %s --wg-infer-shapes="function=twice types=f32[4,3]" | FileCheck %s --check-prefix=CALLED
// RUN: wengert-opt %s --wg-infer-shapes="function=related types=f32[9,3];f32[3,3,4]" | FileCheck %s --check-prefix=RELATED
// RUN: not wengert-opt %s --wg-infer-shapes="function=unfit types=f32[2]" 2>&1 | FileCheck %s --check-prefix=UNFIT
// RUN: not wengert-opt %s --wg-infer-shapes="function=exchange types=f32[3];f32[4]" 2>&1 | FileCheck %s --check-prefix=REPLACED

// Sizes fold into shapes, types follow, the callee too.
// CHECK-LABEL: func.func @step
//  CHECK-SAME:   (%[[X:.*]]: tensor<8x3xf32>, %[[B:.*]]: tensor<3xf32>) -> tensor<3xf32>
func.func @step(%x: tensor<?x3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %n = wg.dim %x axis 0 : tensor<?x3xf32>
  // CHECK: wg.broadcast %[[B]] to [8, 3] dims [1] : tensor<3xf32> -> tensor<8x3xf32>
  %y = wg.broadcast %b to [?, 3] dims [1] sizes %n : tensor<3xf32> -> tensor<?x3xf32>
  // CHECK: wg.add {{.*}} : tensor<8x3xf32>
  %z = wg.add %x, %y : tensor<?x3xf32>
  // CHECK: wg.call @total({{.*}}) : (tensor<8x3xf32>) -> tensor<3xf32>
  %s = wg.call @total(%z) : (tensor<?x3xf32>) -> tensor<3xf32>
  // CHECK: wg.slice {{.*}} from [6, 0] to [8, 3] by [1, 1] : tensor<8x3xf32> -> tensor<2x3xf32>
  %first = wg.size "max(a - 2, 0)" of %n
  %v = wg.slice %z from [?, 0] to [?, 3] by [1, 1] sizes %first, %n : tensor<?x3xf32> -> tensor<?x3xf32>
  // CHECK: wg.pad {{.*}} low [6, 0] high [0, 0] interior [0, 0] : tensor<2x3xf32> -> tensor<8x3xf32>
  %w = wg.pad %v low [?, 0] high [0, 0] interior [0, 0] sizes %first : tensor<?x3xf32> -> tensor<?x3xf32>
  // CHECK: wg.call @[[TWICE:twice_[0-9]+]]({{.*}}) : (tensor<8x3xf32>) -> tensor<8x3xf32>
  // CHECK: wg.call @[[TWICE]]({{.*}}) : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %t = wg.call @twice(%z) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %u = wg.call @twice(%w) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %s : tensor<3xf32>
}

// One private caller: specialised in place.
// CHECK-LABEL: func.func private @total
//  CHECK-SAME:   (%{{.*}}: tensor<8x3xf32>) -> tensor<3xf32>
func.func private @total(%x: tensor<?x3xf32>) -> tensor<3xf32> {
  %s = wg.reduce_sum %x axes [0] : tensor<?x3xf32> -> tensor<3xf32>
  return %s : tensor<3xf32>
}

// Two callers: a copy, shared by those of equal types; the original stays.
// CHECK-LABEL: func.func private @twice(
//  CHECK-SAME:   %{{.*}}: tensor<?x3xf32>) -> tensor<?x3xf32>
func.func private @twice(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %y = wg.add %x, %x : tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}

// A `?` is not repeated, where it becomes 1; not even beside a size that is still open.
func.func @scaled(%x: tensor<?x?xf32>, %b: tensor<?xf32>) -> tensor<?x?xf32> {
  %m = wg.dim %x axis 0 : tensor<?x?xf32>
  %n = wg.dim %x axis 1 : tensor<?x?xf32>
  // REPEATS: error: argument 1 has size 1 on axis 0, and 3 is needed at infer-shapes.mlir:[[@LINE+4]]: a size that the program leaves open is not repeated
  // REPEATS: note: try: pass the full size
  // OPEN: error: argument 1 has size 1 on axis 0, and a size that need not be 1 is needed at infer-shapes.mlir:[[@LINE+2]]
  // ONE: wg.broadcast %{{.*}} to [2, 1] dims [1] : tensor<1xf32> -> tensor<2x1xf32>
  %y = wg.broadcast %b to [?, ?] dims [1] sizes %m, %n : tensor<?xf32> -> tensor<?x?xf32>
  %z = wg.mul %x, %y : tensor<?x?xf32>
  return %z : tensor<?x?xf32>
}

// What one operand of an elementwise op comes to know holds for the other.
// PARTLY-LABEL: func.func @partly
func.func @partly(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // PARTLY: %[[B:.*]] = wg.broadcast %{{.*}} to [2, 3] dims [0, 1] : tensor<2x?xf32> -> tensor<2x3xf32>
  // PARTLY: wg.sub %{{.*}}, %[[B]] : tensor<2x3xf32>
  %c = wg.sub %a, %b : tensor<?x?xf32>
  return %c : tensor<?x?xf32>
}

func.func @halves(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = wg.dim %x axis 0 : tensor<?xf32>
  // HALVES: infer-shapes.mlir:[[@LINE+1]]:11: error: 'wg.size' op the formula "a / 2" with a = 5: 5 is not a multiple of 2
  %half = wg.size "a / 2" of %n
  %y = wg.slice %x from [0] to [?] by [1] sizes %half : tensor<?xf32> -> tensor<?xf32>
  return %y : tensor<?xf32>
}

func.func @product(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // INNER: infer-shapes.mlir:[[@LINE+1]]:8: error: 'wg.contract' op sizes of letter k differ: a is f32[2,3], b is f32[4,5] (3 != 4)
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  return %c : tensor<?x?xf32>
}

// The size of a related letter is an operand until it is known.
// RELATED-LABEL: func.func @related
func.func @related(%x: tensor<?x3xf32>, %w: tensor<3x3x4xf32>) -> tensor<?x4xf32> {
  %n = wg.dim %x axis 0 : tensor<?x3xf32>
  // RELATED: wg.contract "hc,rco->po; h=2p+r" %{{.*}}, %{{.*}} to [4] : tensor<9x3xf32>, tensor<3x3x4xf32> -> tensor<4x4xf32>
  %m = wg.size "(a - 3) // 2 + 1" of %n
  %c = wg.contract "hc,rco->po; h=2p+r" %x, %w to [?] sizes %m : tensor<?x3xf32>, tensor<3x3x4xf32> -> tensor<?x4xf32>
  return %c : tensor<?x4xf32>
}

// STATIC: 'func.func' op argument 0 is 'tensor<?x3xf32>' and cannot become 'tensor<8x4xf32>'
// NOBODY: wg-infer-shapes: no function @nobody in this module
// TYPES: wg-infer-shapes: cannot read types `f33[8]`

// Who calls the specialised function from elsewhere calls it as it was.
// CALLED-LABEL: func.func @step
//       CALLED:   wg.call @[[COPY:twice_[0-9]+]]({{.*}}) : (tensor<?x3xf32>) -> tensor<?x3xf32>
//       CALLED:   wg.call @[[COPY]]({{.*}}) : (tensor<?x3xf32>) -> tensor<?x3xf32>
//       CALLED: func.func private @twice(%{{.*}}: tensor<4x3xf32>) -> tensor<4x3xf32>
//       CALLED: func.func private @[[COPY]](%{{.*}}: tensor<?x3xf32>) -> tensor<?x3xf32>

// What was no kernel all the time, but could not be told so.
// UNFIT: 'wg.reduce_sum' op is in a kernel of kind map, which reduces nothing
func.func @unfit(%x: tensor<?xf32>) -> tensor<f32> {
  %y = wg.kernel map (%a = %x : tensor<?xf32>) -> tensor<f32> {
    %s = wg.reduce_sum %a axes [0] : tensor<?xf32> -> tensor<f32>
    wg.yield %s : tensor<f32>
  }
  return %y : tensor<f32>
}

// An argument and what replaces it are of one size.
// REPLACED: error: 'func.func' op argument 0 is 'tensor<3xf32>' and result 1, which replaces it, 'tensor<4xf32>'
func.func @exchange(%x: tensor<?xf32> {wg.result = 1 : i64}, %y: tensor<?xf32> {wg.result = 0 : i64}) -> (tensor<?xf32>, tensor<?xf32>) {
  return %x, %y : tensor<?xf32>, tensor<?xf32>
}
