// RUN: wengert-opt %s --wg-infer-shapes="function=step types=f32[8,3];f32[3]" | FileCheck %s
// RUN: not wengert-opt %s --wg-infer-shapes="function=step types=f32[8,4];f32[3]" 2>&1 | FileCheck %s --check-prefix=STATIC
// RUN: not wengert-opt %s --wg-infer-shapes="function=product types=f32[2,3];f32[4,5]" 2>&1 | FileCheck %s --check-prefix=INNER
// RUN: not wengert-opt %s --wg-infer-shapes="function=nobody" 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not wengert-opt %s --wg-infer-shapes="function=step types=f33[8]" 2>&1 | FileCheck %s --check-prefix=TYPES

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
  // CHECK: wg.slice {{.*}} from [0, 0] to [?, 3] by [1, 1] : tensor<8x3xf32> -> tensor<8x3xf32>
  %w = wg.slice %z from [0, 0] to [?, 3] by [1, 1] : tensor<?x3xf32> -> tensor<?x3xf32>
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

func.func @product(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // INNER: infer-shapes.mlir:[[@LINE+1]]:8: error: 'wg.contract' op sizes of letter k differ: a is f32[2,3], b is f32[4,5] (3 != 4)
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  return %c : tensor<?x?xf32>
}

// STATIC: 'func.func' op argument 0 is 'tensor<?x3xf32>' and cannot become 'tensor<8x4xf32>'
// NOBODY: wg-infer-shapes: no function @nobody in this module
// TYPES: wg-infer-shapes: cannot read types 'f33[8]'; write them as f32[2,3];i64[4]
