// RUN: wengert-opt %s --split-input-file --verify-diagnostics --wg-vmap="wrt=0 size=3" | FileCheck %s
// RUN: wengert-opt %s --split-input-file --verify-diagnostics --wg-vmap="wrt=0" | FileCheck %s --check-prefix=OPEN

// An elementwise op is the same op with one more axis; an operand that is the same in all lanes is repeated, and what
// depends on no lane stays as it is. A reduction's axes are one higher, a contraction has one more letter.
// CHECK-LABEL: func.func @main_vmap(
//  CHECK-SAME: %[[X:.*]]: tensor<3x2x4xf64>, %[[W:.*]]: tensor<4x5xf64>, %[[B:.*]]: tensor<5xf64>) -> (tensor<3x2xf64>, tensor<3x5xf64>)
//       CHECK: %[[T:.*]] = wg.tanh %[[B]] : tensor<5xf64>
//       CHECK: %[[R:.*]] = wg.broadcast %[[T]] to [2, 5] dims [1]
//       CHECK: %[[C:.*]] = wg.contract "dab,bc->dac" %[[X]], %[[W]]
//       CHECK: %[[RS:.*]] = wg.broadcast %[[R]] to [3, 2, 5] dims [1, 2]
//       CHECK: %[[S:.*]] = wg.add %[[C]], %[[RS]] : tensor<3x2x5xf64>
//       CHECK: %[[Y:.*]] = wg.reduce_sum %[[S]] axes [2]
//       CHECK: %[[TS:.*]] = wg.broadcast %[[T]] to [3, 5] dims [1]
//       CHECK: return %[[Y]], %[[TS]]
// OPEN-LABEL: func.func @main_vmap(
//  OPEN-SAME: %[[X:.*]]: tensor<?x2x4xf64>, %{{.*}}: tensor<4x5xf64>, %{{.*}}: tensor<5xf64>) -> (tensor<?x2xf64>, tensor<?x5xf64>)
//       OPEN: %[[N:.*]] = wg.dim %[[X]] axis 0
//       OPEN: wg.broadcast %{{.*}} to [?, 2, 5] dims [1, 2] sizes %[[N]]
module {
  func.func @main(%x: tensor<2x4xf64>, %w: tensor<4x5xf64>, %b: tensor<5xf64>) -> (tensor<2xf64>, tensor<5xf64>) {
    %t = wg.tanh %b : tensor<5xf64>
    %c = wg.contract "ab,bc->ac" %x, %w : tensor<2x4xf64>, tensor<4x5xf64> -> tensor<2x5xf64>
    %r = wg.broadcast %t to [2, 5] dims [1] : tensor<5xf64> -> tensor<2x5xf64>
    %s = wg.add %c, %r : tensor<2x5xf64>
    %y = wg.reduce_sum %s axes [1] : tensor<2x5xf64> -> tensor<2xf64>
    return %y, %t : tensor<2xf64>, tensor<5xf64>
  }
}

// -----

// A size of what has lanes is that of the axis behind; it is the same in all lanes. Rows are taken of each lane's own.
// CHECK-LABEL: func.func @main_vmap(
//  CHECK-SAME: %[[X:.*]]: tensor<3x?x2xf64>, %[[I:.*]]: tensor<4xi64>)
//       CHECK: %[[N:.*]] = wg.dim %[[X]] axis 1
//       CHECK: %[[M:.*]] = wg.size "a - 1" of %[[N]]
//       CHECK: %[[S:.*]] = wg.slice %[[X]] from [0, 1, 0] to [3, ?, 2] by [1, 1, 1] sizes %[[N]]
//       CHECK: %[[R:.*]] = wg.reshape %[[S]] to [3, ?, 2] sizes %[[M]]
//       CHECK: %[[IS:.*]] = wg.broadcast %[[I]] to [3, 4] dims [1]
//       CHECK: wg.gather %[[R]], %[[IS]] {batch_dims = 1 : i64} : tensor<3x?x2xf64>, tensor<3x4xi64> -> tensor<3x4x2xf64>
module {
  func.func @main(%x: tensor<?x2xf64>, %i: tensor<4xi64>) -> tensor<4x2xf64> {
    %n = wg.dim %x axis 0 : tensor<?x2xf64>
    %m = wg.size "a - 1" of %n
    %s = wg.slice %x from [1, 0] to [?, 2] by [1, 1] sizes %n : tensor<?x2xf64> -> tensor<?x2xf64>
    %r = wg.reshape %s to [?, 2] sizes %m : tensor<?x2xf64> -> tensor<?x2xf64>
    %y = wg.gather %r, %i : tensor<?x2xf64>, tensor<4xi64> -> tensor<4x2xf64>
    return %y : tensor<4x2xf64>
  }
}

// -----

// Where only the indices differ, all lanes take rows of the same.
// CHECK-LABEL: func.func @main_vmap(
//       CHECK: wg.gather %{{.*}}, %{{.*}} : tensor<5x2xf64>, tensor<3x4xi64> -> tensor<3x4x2xf64>
module {
  func.func @main(%i: tensor<4xi64>, %x: tensor<5x2xf64>) -> tensor<4x2xf64> {
    %y = wg.gather %x, %i : tensor<5x2xf64>, tensor<4xi64> -> tensor<4x2xf64>
    return %y : tensor<4x2xf64>
  }
}

// -----

// A call is one of the batched function, made once for each set of arguments with lanes; what it does not depend on
// keeps its type. One that text brings along is taken if it fits.
// CHECK-LABEL: func.func @inner(
//  CHECK-SAME: wg.batches = [{arguments = array<i64: 0>, count = 3 : i64, function = @inner_lanes_0, results = array<i1: true, false>}]
// CHECK-LABEL: func.func private @inner_lanes_0(%arg0: tensor<3x2xf64>, %arg1: tensor<2xf64>) -> (tensor<3x2xf64>, tensor<2xf64>)
//       CHECK: %[[E:.*]] = wg.exp %arg1 : tensor<2xf64>
//       CHECK: wg.mul
//       CHECK: return %{{.*}}, %[[E]]
// CHECK-LABEL: func.func @known(
//  CHECK-SAME: function = @known_three
// CHECK-NOT: @known_lanes
// CHECK-LABEL: func.func @stale(
//  CHECK-SAME: function = @stale_lanes_0
// CHECK-LABEL: func.func private @outer_lanes_0(
//       CHECK: wg.call @inner_lanes_0
// CHECK-LABEL: func.func @main_vmap(
//       CHECK: %[[Y:.*]]:2 = wg.call @outer_lanes_0(
//       CHECK: %[[Z:.*]]:2 = wg.call @inner_lanes_0(%[[Y]]#0, %[[Y]]#1)
//       CHECK: %[[K:.*]] = wg.call @known_three(%[[Z]]#0)
//       CHECK: %[[L:.*]] = wg.call @stale_lanes_0(%[[K]])
//       CHECK: %[[F:.*]] = wg.call @known(%[[Z]]#1)
//       CHECK: %[[FS:.*]] = wg.broadcast %[[F]] to [3, 2] dims [1]
//       CHECK: return %[[L]], %[[FS]]
module {
  func.func @inner(%x: tensor<2xf64>, %w: tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>) {
    %y = wg.mul %x, %w : tensor<2xf64>
    %e = wg.exp %w : tensor<2xf64>
    return %y, %e : tensor<2xf64>, tensor<2xf64>
  }
  func.func @known(%x: tensor<2xf64>) -> tensor<2xf64> attributes {wg.batches = [{arguments = array<i64: 0>, count = 3 : i64, function = @known_three, results = array<i1: true>}]} {
    return %x : tensor<2xf64>
  }
  func.func private @known_three(%x: tensor<3x2xf64>) -> tensor<3x2xf64> {
    return %x : tensor<3x2xf64>
  }
  func.func @stale(%x: tensor<2xf64>) -> tensor<2xf64> attributes {wg.batches = [{arguments = array<i64: 0>, count = 3 : i64, function = @known, results = array<i1: true>}]} {
    return %x : tensor<2xf64>
  }
  func.func @outer(%x: tensor<2xf64>, %w: tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>) {
    %y:2 = wg.call @inner(%x, %w) : (tensor<2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>)
    return %y#0, %y#1 : tensor<2xf64>, tensor<2xf64>
  }
  func.func @main(%x: tensor<2xf64>, %w: tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>) {
    %y:2 = wg.call @outer(%x, %w) : (tensor<2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>)
    %z:2 = wg.call @inner(%y#0, %y#1) : (tensor<2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>)
    %k = wg.call @known(%z#0) : (tensor<2xf64>) -> tensor<2xf64>
    %l = wg.call @stale(%k) : (tensor<2xf64>) -> tensor<2xf64>
    %f = wg.call @known(%z#1) : (tensor<2xf64>) -> tensor<2xf64>
    return %l, %f : tensor<2xf64>, tensor<2xf64>
  }
}

// -----

// A key for each lane gives each its own numbers.
// CHECK-LABEL: func.func @main_vmap(
//       CHECK: wg.random_uniform %{{.*}} to [4] {dtype = f32} : tensor<3x2xi64> -> tensor<3x4xf32>
module {
  func.func @main(%key: tensor<2xi64>) -> tensor<4xf32> {
    %y = wg.random_uniform %key to [4] {dtype = f32} : tensor<2xi64> -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module {
  func.func @main(%x: tensor<1x1x1x1x1x1x2xf64>) -> tensor<1x1x1x1x1x1x2x1xf64> {
    // expected-error @+2 {{a value of type 'tensor<1x1x1x1x1x1x2x1xf64>' would get rank 9 with one more axis in front; the highest is 8}}
    // expected-note @+1 {{try: reshape two of its axes to one before the batch}}
    %y = wg.reshape %x to [1, 1, 1, 1, 1, 1, 2, 1] : tensor<1x1x1x1x1x1x2xf64> -> tensor<1x1x1x1x1x1x2x1xf64>
    return %y : tensor<1x1x1x1x1x1x2x1xf64>
  }
}

// -----

module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+2 {{depends on what is batched and has no rule for one more axis}}
    // expected-note @+1 {{try: batch the program before its ops are fused or lowered}}
    %y = wg.kernel map (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
      %t = wg.tanh %a : tensor<4xf32>
      wg.yield %t : tensor<4xf32>
    }
    return %y : tensor<4xf32>
  }
}

// -----

module {
  // expected-error @+1 {{wrt names argument 0, which is a size; only tensors have lanes}}
  func.func @main(%n: index) -> index {
    return %n : index
  }
}

// -----

module {
  func.func private @outside(tensor<2xf64>) -> tensor<2xf64>
  func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
    // expected-error @+2 {{calls @outside, which has no body and so cannot be batched}}
    // expected-note @+1 {{try: call it outside of the batch}}
    %y = wg.call @outside(%x) : (tensor<2xf64>) -> tensor<2xf64>
    return %y : tensor<2xf64>
  }
}

// -----

module {
  func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
    %y = wg.call @again(%x) : (tensor<2xf64>) -> tensor<2xf64>
    return %y : tensor<2xf64>
  }
  func.func @again(%x: tensor<2xf64>) -> tensor<2xf64> {
    // expected-error @+2 {{calls @again, which calls it: a function cannot call itself}}
    // expected-note @+1 {{try: write the recursion out, one function for each depth}}
    %y = wg.call @again(%x) : (tensor<2xf64>) -> tensor<2xf64>
    return %y : tensor<2xf64>
  }
}
