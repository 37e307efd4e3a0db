// Every message of the verifiers and of the shape rules, at its op, with the numbers in it.
// RUN: wengert-opt %s --split-input-file --verify-diagnostics

func.func @rank_nine(%x: tensor<1x1x1x1x1x1x1x1x1xf32>) {
  // expected-error @+1 {{'wg.exp' op operand 0 is 'tensor<1x1x1x1x1x1x1x1x1xf32>', no tensor of rank 8 at most of f64, f32, bf16, f16, i64, i32, ui8 or i1}}
  %0 = wg.exp %x : tensor<1x1x1x1x1x1x1x1x1xf32>
  return
}

// -----

func.func @no_dtype(%x: tensor<2xi16>) {
  // expected-error @+1 {{'wg.neg' op operand 0 is 'tensor<2xi16>', no tensor of rank 8 at most of f64, f32, bf16, f16, i64, i32, ui8 or i1}}
  %0 = wg.neg %x : tensor<2xi16>
  return
}

// -----

func.func @float_wanted(%x: tensor<2xi32>) {
  // expected-error @+2 {{'wg.exp' op takes a float, got i32[2]}}
  // expected-note @+1 {{try: cast it: cast(x, f32)}}
  %0 = wg.exp %x : tensor<2xi32>
  return
}

// -----

func.func @shapes_differ(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error @+1 {{'wg.add' op requires all operands to have the same type}}
  %0 = "wg.add"(%a, %b) : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @wrong_result(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{'wg.exp' op inferred type(s) 'tensor<2x3xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{'wg.exp' op failed to infer returned types}}
  %0 = "wg.exp"(%a) : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @axis_beyond(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{'wg.reduce_sum' op axis 2 is not an axis of f32[2,3], which has rank 2}}
  // expected-error @+1 {{'wg.reduce_sum' op failed to infer returned types}}
  %0 = wg.reduce_sum %x axes [2] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @axes_unsorted(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{'wg.reduce_sum' op axes are sorted and distinct, got [1, 0]}}
  // expected-error @+1 {{'wg.reduce_sum' op failed to infer returned types}}
  %0 = wg.reduce_sum %x axes [1, 0] : tensor<2x3xf32> -> tensor<f32>
  return
}

// -----

func.func @argmax_of_nothing(%x: tensor<2x0xf32>) {
  // expected-error @+2 {{'wg.argmax' op axis 1 of f32[2,0] is empty: there is no largest element}}
  // expected-error @+1 {{'wg.argmax' op failed to infer returned types}}
  %0 = wg.argmax %x axis 1 : tensor<2x0xf32> -> tensor<2xi64>
  return
}

// -----

func.func @broadcast_of_three(%x: tensor<3xf32>) {
  // expected-error @+3 {{'wg.broadcast' op axis 0 of f32[3] has size 3 and cannot become axis 1 of f32[2,4] (3 != 4)}}
  // expected-note @+2 {{try: only a size of 1 is repeated}}
  // expected-error @+1 {{'wg.broadcast' op failed to infer returned types}}
  %0 = wg.broadcast %x to [2, 4] dims [1] : tensor<3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @size_missing(%x: tensor<3xf32>) {
  // expected-error @+2 {{'wg.broadcast' op shape [?, 3] takes an index operand for each ?, got 0}}
  // expected-error @+1 {{'wg.broadcast' op failed to infer returned types}}
  %0 = wg.broadcast %x to [?, 3] dims [1] : tensor<3xf32> -> tensor<?x3xf32>
  return
}

// -----

func.func @reshape_count(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{'wg.reshape' op f32[2,3] has 6 elements and f32[4] has 4}}
  // expected-error @+1 {{'wg.reshape' op failed to infer returned types}}
  %0 = wg.reshape %x to [4] : tensor<2x3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @permutation_twice(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{'wg.transpose' op permutation [0, 0] does not name each axis of f32[2,3] once}}
  // expected-error @+1 {{'wg.transpose' op failed to infer returned types}}
  %0 = wg.transpose %x by [0, 0] : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @slice_beyond(%x: tensor<4xf32>) {
  // expected-error @+2 {{'wg.slice' op axis 0 of f32[4]: 0 <= start <= limit <= 4 does not hold for start 1 and limit 5}}
  // expected-error @+1 {{'wg.slice' op failed to infer returned types}}
  %0 = wg.slice %x from [1] to [5] by [1] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @slice_without_its_sizes(%x: tensor<?xf32>) {
  // expected-error @+2 {{'wg.slice' op starts [0] and limits [?] take an index operand for each ?, got 0}}
  // expected-error @+1 {{'wg.slice' op failed to infer returned types}}
  %0 = wg.slice %x from [0] to [?] by [1] : tensor<?xf32> -> tensor<?xf32>
  return
}

// -----

func.func @formula_of_too_few(%n: index) {
  // expected-error @+1 {{'wg.size' op the formula "a * b": 'b', and there are 1 operands}}
  %0 = wg.size "a * b" of %n
  return
}

// -----

func.func @formula_unread(%n: index) {
  // expected-error @+1 {{'wg.size' op the formula "(a + 1": no ')'}}
  %0 = wg.size "(a + 1" of %n
  return
}

// -----

func.func @pad_negative(%x: tensor<4xf32>) {
  // expected-error @+3 {{'wg.pad' op paddings are not negative, got low [-1], high [0], interior [0]}}
  // expected-note @+2 {{try: use slice to cut}}
  // expected-error @+1 {{'wg.pad' op failed to infer returned types}}
  %0 = wg.pad %x low [-1] high [0] interior [0] : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @concat_differs(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) {
  // expected-error @+2 {{'wg.concat' op f32[4,2] and f32[4,3] differ on an axis other than 0}}
  // expected-error @+1 {{'wg.concat' op failed to infer returned types}}
  %0 = wg.concat %x, %y axis 0 : tensor<4x2xf32>, tensor<4x3xf32> -> tensor<8x2xf32>
  return
}

// -----

func.func @inner_sizes(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+3 {{'wg.contract' op sizes of letter k differ: a is f32[2,3], b is f32[4,5] (3 != 4)}}
  // expected-note @+2 {{try: transpose an operand, or change one of the sizes}}
  // expected-error @+1 {{'wg.contract' op failed to infer returned types}}
  %0 = wg.contract "mk,kn->mn" %a, %b : tensor<2x3xf32>, tensor<4x5xf32> -> tensor<2x5xf32>
  return
}

// -----

func.func @letter_alone(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>) {
  // expected-error @+3 {{'wg.contract' op equation "mk,kn->n": letter m appears in one tensor only}}
  // expected-note @+2 {{try: sum over it first: reduce_sum(x, axes)}}
  // expected-error @+1 {{'wg.contract' op failed to infer returned types}}
  %0 = wg.contract "mk,kn->n" %a, %b : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<5xf32>
  return
}

// -----

func.func @no_equation(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>) {
  // expected-error @+2 {{'wg.contract' op equation "mk" is not of the form "mk,kn->mn"}}
  // expected-error @+1 {{'wg.contract' op failed to infer returned types}}
  %0 = wg.contract "mk" %a, %b : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<5xf32>
  return
}

// -----

func.func @a_relation_without_letter_of_b(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>) {
  // expected-error @+3 {{'wg.contract' op equation "hw,ko->pko; h=p+w": relation "h=p+w" has no letter of b}}
  // expected-note @+2 {{try: one letter of a relation is of a, one of b and one of c}}
  // expected-error @+1 {{'wg.contract' op failed to infer returned types}}
  %0 = wg.contract "hw,ko->pko; h=p+w" %a, %b to [4] : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<4x3x5xf32>
  return
}

// -----

func.func @a_relation_without_size(%a: tensor<7x3xf32>, %b: tensor<2x3x5xf32>) {
  // expected-error @+3 {{'wg.contract' op equation "hc,rco->po; h=p+r" has 1 relation, and the sizes given are []}}
  // expected-note @+2 {{try: give the size of each related letter of the result, in the order of the relations}}
  // expected-error @+1 {{'wg.contract' op failed to infer returned types}}
  %0 = wg.contract "hc,rco->po; h=p+r" %a, %b : tensor<7x3xf32>, tensor<2x3x5xf32> -> tensor<6x5xf32>
  return
}

// -----

func.func @a_size_without_relation(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>) {
  // expected-error @+3 {{'wg.contract' op equation "mk,kn->mn" has 0 relations, and the sizes given are [5]}}
  // expected-note @+2 {{try: give the size of each related letter of the result, in the order of the relations}}
  // expected-error @+1 {{'wg.contract' op failed to infer returned types}}
  %0 = wg.contract "mk,kn->mn" %a, %b to [5] : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  return
}

// -----

func.func @a_related_size_without_operand(%a: tensor<?x3xf32>, %b: tensor<2x3x5xf32>) {
  // expected-error @+2 {{'wg.contract' op related [?] takes an index operand for each ?, got 0}}
  // expected-error @+1 {{'wg.contract' op failed to infer returned types}}
  %0 = wg.contract "hc,rco->po; h=p+r" %a, %b to [?] : tensor<?x3xf32>, tensor<2x3x5xf32> -> tensor<?x5xf32>
  return
}

// -----

func.func @a_related_size_that_is_negative(%a: tensor<7x3xf32>, %b: tensor<2x3x5xf32>) {
  // expected-error @+3 {{'wg.contract' op letter p has the size -4}}
  // expected-note @+2 {{try: sizes are not negative}}
  // expected-error @+1 {{'wg.contract' op failed to infer returned types}}
  %0 = wg.contract "hc,rco->po; h=p+r" %a, %b to [-4] : tensor<7x3xf32>, tensor<2x3x5xf32> -> tensor<6x5xf32>
  return
}

// -----

func.func @a_related_size_beyond_64_bits(%a: tensor<7x0xf32>, %b: tensor<2x0x5xf32>) {
  // expected-error @+3 {{'wg.contract' op size 4611686018427387904 times 2147483647 in the relations of equation "hc,rco->po; h=2147483647p+r" is too large}}
  // expected-note @+2 {{try: it is 1152921504606846976 at most}}
  // expected-error @+1 {{'wg.contract' op failed to infer returned types}}
  %0 = wg.contract "hc,rco->po; h=2147483647p+r" %a, %b to [4611686018427387904] : tensor<7x0xf32>, tensor<2x0x5xf32> -> tensor<6x5xf32>
  return
}

// -----

func.func @gather_from_scalar(%x: tensor<f32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{'wg.gather' op takes rows of x, which has none: f32[]}}
  // expected-error @+1 {{'wg.gather' op failed to infer returned types}}
  %0 = wg.gather %x, %i : tensor<f32>, tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

func.func @key_of_three(%key: tensor<3xi64>) {
  // expected-error @+2 {{'wg.random_uniform' op the key is i64[2], or several as i64[..., 2], got i64[3]}}
  // expected-error @+1 {{'wg.random_uniform' op failed to infer returned types}}
  %0 = wg.random_uniform %key to [3] {dtype = f32} : tensor<3xi64> -> tensor<3xf32>
  return
}

// -----

func.func @unknown_dtype(%x: tensor<2xf32>) {
  // expected-error @+1 {{'wg.cast' op result #0 must be tensor of rank 8 and 2^56 bytes at most of 64-bit float}}
  %0 = "wg.cast"(%x) {dtype = i16} : (tensor<2xf32>) -> tensor<2xi16>
  return
}

// -----

func.func @attribute_missing(%x: tensor<2xf32>) {
  // expected-error @+1 {{'wg.reduce_sum' op requires attribute 'axes'}}
  %0 = "wg.reduce_sum"(%x) : (tensor<2xf32>) -> tensor<f32>
  return
}

// -----

func.func @nine_axes(%x: tensor<2xf32>) {
  // expected-error @+2 {{'wg.reduce_sum' op attribute axes must be a list of 8 integers at most}}
  // expected-error @+1 {{'wg.reduce_sum' op failed to infer returned types}}
  %0 = wg.reduce_sum %x axes [0, 1, 2, 3, 4, 5, 6, 7, 8] : tensor<2xf32> -> tensor<f32>
  return
}

// -----

func.func @constant_of_many() {
  // expected-error @+2 {{'wg.constant' op holds 17 elements; a constant is a splat or holds at most 16}}
  // expected-note @+1 {{try: make it an argument of the function}}
  %0 = wg.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]> : tensor<17xi32>
  return
}

// -----

func.func @dim_beyond(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'wg.dim' op axis 2 is outside the 2 axes of 'tensor<2x3xf32>'}}
  %0 = wg.dim %x axis 2 : tensor<2x3xf32>
  return
}

// -----

func.func @call_of_nobody(%x: tensor<2xf32>) {
  // expected-error @+1 {{'wg.call' op calls @nobody, which is not a function of this module}}
  %0 = wg.call @nobody(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// expected-note @+1 {{declared here}}
func.func private @callee(tensor<3xf32>) -> tensor<3xf32>
func.func @call_of_another_type(%x: tensor<2xf32>) {
  // expected-error @+1 {{'wg.call' op is of type '(tensor<2xf32>) -> tensor<2xf32>', but @callee is of type '(tensor<3xf32>) -> tensor<3xf32>'}}
  %0 = wg.call @callee(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @kernel_kind(%x: tensor<2xf32>) {
  // expected-error @+1 {{custom op 'wg.kernel' is of kind 'scan'; the kinds are map, reduce, contract, single and external}}
  %0 = wg.kernel scan (%a = %x : tensor<2xf32>) -> tensor<2xf32> {
    wg.yield %a : tensor<2xf32>
  }
  return
}

// -----

func.func @kernel_yields_another_type(%x: tensor<2xf32>) {
  // expected-error @+1 {{'wg.kernel' op yields 'tensor<2xf32>' but has results 'tensor<3xf32>'}}
  %0 = wg.kernel map (%a = %x : tensor<2xf32>) -> tensor<3xf32> {
    wg.yield %a : tensor<2xf32>
  }
  return
}

// -----

func.func @kernel_of_foreign_ops(%x: tensor<2xf32>) {
  %0 = wg.kernel map (%a = %x : tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @+1 {{'arith.constant' op is in a kernel, which holds only wg ops without regions, and no calls}}
    %c = arith.constant 1 : index
    wg.yield %a : tensor<2xf32>
  }
  return
}

// -----

func.func @kernel_inputs(%x: tensor<2xf32>) {
  // expected-error @+1 {{'wg.kernel' op has 1 inputs and 0 block arguments, which must agree in number and type}}
  %0 = "wg.kernel"(%x) <{kind = #wg.kind<map>}> ({
    %c = wg.constant dense<0.0> : tensor<2xf32>
    wg.yield %c : tensor<2xf32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @kernel_reads_no_input(%x: tensor<5x1x7xf32>, %w: tensor<7x7xf32>) {
  %0 = wg.kernel contract (%a = %x : tensor<5x1x7xf32>, %b = %w : tensor<7x7xf32>) -> tensor<5x7xf32> {
    %h = wg.reshape %a to [5, 7] : tensor<5x1x7xf32> -> tensor<5x7xf32>
    // expected-error @+1 {{'wg.contract' op is in a kernel of kind contract, and reads the result of wg.reshape from memory, where only inputs of the kernel lie}}
    %p = wg.contract "mk,kn->mn" %h, %b : tensor<5x7xf32>, tensor<7x7xf32> -> tensor<5x7xf32>
    wg.yield %p : tensor<5x7xf32>
  }
  return
}

// -----

func.func @kernel_of_two_reductions(%x: tensor<4x6xf32>) {
  %0:2 = wg.kernel reduce (%a = %x : tensor<4x6xf32>) -> (tensor<4xf32>, tensor<6xf32>) {
    %m = wg.reduce_sum %a axes [1] : tensor<4x6xf32> -> tensor<4xf32>
    // expected-error @+1 {{'wg.reduce_sum' op is in a kernel of kind reduce, whose reductions are of one shape over one set of axes}}
    %n = wg.reduce_sum %a axes [0] : tensor<4x6xf32> -> tensor<6xf32>
    wg.yield %m, %n : tensor<4xf32>, tensor<6xf32>
  }
  return
}

// -----

func.func @kernel_without_its_op(%x: tensor<4xf32>) {
  // expected-error @+1 {{'wg.kernel' op is of kind contract and holds no contraction}}
  %0 = wg.kernel contract (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %t = wg.tanh %a : tensor<4xf32>
    wg.yield %t : tensor<4xf32>
  }
  return
}

// -----

func.func @kernel_of_two_products(%x: tensor<4x4xf32>) {
  %0:2 = wg.kernel contract (%a = %x : tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %p = wg.contract "mk,kn->mn" %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    // expected-error @+1 {{'wg.contract' op is in a kernel of kind contract, which holds one contraction}}
    %q = wg.contract "km,kn->mn" %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    wg.yield %p, %q : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return
}

// -----

func.func @kernel_reads_another_place(%x: tensor<4x4xf32>) {
  %0 = wg.kernel map (%a = %x : tensor<4x4xf32>) -> tensor<4x4xf32> {
    %t = wg.tanh %a : tensor<4x4xf32>
    %s = wg.transpose %t by [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
    // expected-error @+1 {{'wg.add' op is in a kernel of kind map, and reads wg.tanh in another place than its own}}
    %y = wg.add %t, %s : tensor<4x4xf32>
    wg.yield %y : tensor<4x4xf32>
  }
  return
}

// -----

func.func @kernel_of_two_spaces(%x: tensor<4xf32>, %y: tensor<2x3xf32>) {
  %0:2 = wg.kernel map (%a = %x : tensor<4xf32>, %b = %y : tensor<2x3xf32>) -> (tensor<4xf32>, tensor<2x3xf32>) {
    // expected-error @+1 {{'wg.tanh' op is in a kernel of kind map, and reads 'tensor<4xf32>', which is the shape of neither its iteration space nor its rows}}
    %t = wg.tanh %a : tensor<4xf32>
    %u = wg.tanh %b : tensor<2x3xf32>
    wg.yield %t, %u : tensor<4xf32>, tensor<2x3xf32>
  }
  return
}

// -----

func.func @kernel_of_a_literal(%x: tensor<2xf32>) {
  %0 = wg.kernel map (%a = %x : tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @+1 {{'wg.constant' op is in a kernel of kind map, whose constants are splats; a larger one is an input}}
    %c = wg.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %y = wg.add %a, %c : tensor<2xf32>
    wg.yield %y : tensor<2xf32>
  }
  return
}

// -----

func.func @kernel_of_a_general_reshape(%x: tensor<2x3xf32>) {
  %0 = wg.kernel map (%a = %x : tensor<2x3xf32>) -> tensor<6xf32> {
    // expected-error @+1 {{'wg.reshape' op is in a kernel of kind map, which holds elementwise ops, views and ops whose element follows from its place}}
    %y = wg.reshape %a to [6] : tensor<2x3xf32> -> tensor<6xf32>
    wg.yield %y : tensor<6xf32>
  }
  return
}

// -----

func.func @single_kernel_of_two_ops(%x: tensor<3xf32>, %i: tensor<2xi64>) {
  %0 = wg.kernel single (%a = %x : tensor<3xf32>, %j = %i : tensor<2xi64>) -> tensor<2xf32> {
    %g = wg.gather %a, %j : tensor<3xf32>, tensor<2xi64> -> tensor<2xf32>
    // expected-error @+1 {{'wg.tanh' op is in a kernel of kind single, which holds one op}}
    %t = wg.tanh %g : tensor<2xf32>
    wg.yield %t : tensor<2xf32>
  }
  return
}

// -----

func.func @external_kernel_of_loops(%x: tensor<3xf32>, %i: tensor<2xi64>) {
  %0 = wg.kernel external (%a = %x : tensor<3xf32>, %j = %i : tensor<2xi64>) -> tensor<2xf32> {
    // expected-error @+1 {{'wg.gather' op is in a kernel of kind external, which holds one op that is a call of a routine}}
    %g = wg.gather %a, %j : tensor<3xf32>, tensor<2xi64> -> tensor<2xf32>
    wg.yield %g : tensor<2xf32>
  }
  return
}

// -----

func.func @single_kernel_of_a_routine(%x: tensor<3x3xf32>, %y: tensor<3x2xf32>) {
  %0 = wg.kernel single (%a = %x : tensor<3x3xf32>, %b = %y : tensor<3x2xf32>) -> tensor<3x2xf32> {
    // expected-error @+1 {{'wg.triangular_solve' op is in a kernel of kind single, which holds one op that builds its own loops}}
    %s = wg.triangular_solve %a, %b : tensor<3x3xf32>, tensor<3x2xf32> -> tensor<3x2xf32>
    wg.yield %s : tensor<3x2xf32>
  }
  return
}

// -----

func.func @external_kernel_of_what_is_computed(%x: tensor<3x3xf32>, %y: tensor<3x2xf32>) {
  %0 = wg.kernel external (%a = %x : tensor<3x3xf32>, %b = %y : tensor<3x2xf32>) -> tensor<3x2xf32> {
    %t = wg.tanh %a : tensor<3x3xf32>
    // expected-error @+1 {{'wg.triangular_solve' op is in a kernel of kind external, and reads the result of wg.tanh from memory, where only inputs of the kernel lie}}
    %s = wg.triangular_solve %t, %b : tensor<3x3xf32>, tensor<3x2xf32> -> tensor<3x2xf32>
    wg.yield %s : tensor<3x2xf32>
  }
  return
}

// -----

func.func @solve_of_no_square(%a: tensor<3x?xf32>, %b: tensor<4x2xf32>) {
  // expected-note @+3 {{try: b has a row for each row of a: transpose b, or change one of the sizes}}
  // expected-error @+2 {{'wg.triangular_solve' op sizes differ: a is f32[3,?], b is f32[4,2] (3 != 4)}}
  // expected-error @+1 {{'wg.triangular_solve' op failed to infer returned types}}
  %0 = wg.triangular_solve %a, %b : tensor<3x?xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @solve_of_other_batches(%a: tensor<2x3x3xf32>, %b: tensor<4x3x1xf32>) {
  // expected-note @+3 {{try: repeat one of them: broadcast_to}}
  // expected-error @+2 {{'wg.triangular_solve' op the axes in front differ: a is f32[2,3,3], b is f32[4,3,1] (2 != 4)}}
  // expected-error @+1 {{'wg.triangular_solve' op failed to infer returned types}}
  %0 = wg.triangular_solve %a, %b : tensor<2x3x3xf32>, tensor<4x3x1xf32> -> tensor<4x3x1xf32>
  return
}

// -----

func.func @solve_lower_of_a_number(%a: tensor<3x3xf32>, %b: tensor<3x1xf32>) {
  // expected-error @+1 {{'wg.triangular_solve' op attribute 'lower' failed to satisfy constraint: bool attribute}}
  %0 = "wg.triangular_solve"(%a, %b) {lower = 1 : i64, transpose = false, unit_diagonal = false} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  return
}

// -----

func.func @bytes_beyond_the_bound() {
  // expected-error @+1 {{'wg.constant' op result #0 must be tensor of rank 8 and 2^56 bytes at most}}
  %0 = wg.constant dense<1.0> : tensor<4611686018427387905x4xf32>
  return
}

// -----

func.func @operand_beyond_the_bound(%x: tensor<4611686018427387905x4xf32>) {
  // expected-error @+1 {{'wg.exp' op operand 0 is 'tensor<4611686018427387905x4xf32>', f32[4611686018427387905,4] has more than 2^56 bytes, the most that a tensor may have}}
  %0 = wg.exp %x : tensor<4611686018427387905x4xf32>
  return
}

// -----

// Strides count all sizes, so they are bounded in an empty tensor too.
func.func @empty_and_beyond_the_bound(%x: tensor<f32>) {
  // expected-error @+1 {{'wg.broadcast' op result #0 must be tensor of rank 8 and 2^56 bytes at most}}
  %0 = wg.broadcast %x to [0, 4611686018427387904, 8] dims [] : tensor<f32> -> tensor<0x4611686018427387904x8xf32>
  return
}

// -----

func.func @depth_beyond_the_bound(%x: tensor<3xi64>) {
  // expected-error @+1 {{'wg.one_hot' op result #0 must be tensor of rank 8 and 2^56 bytes at most}}
  %0 = "wg.one_hot"(%x) {depth = 9223372036854775807 : i64, dtype = f32} : (tensor<3xi64>) -> tensor<3x9223372036854775807xf32>
  return
}

// -----

// A stride of 2^63 - 1 takes the first element alone.
func.func @a_long_stride(%x: tensor<5xf32>) -> tensor<1xf32> {
  %0 = "wg.slice"(%x) {starts = array<i64: 1>, limits = array<i64: 5>, strides = array<i64: 9223372036854775807>} : (tensor<5xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----

func.func @an_encoding_is_none_of_ours(%x: tensor<2xf32, "dense">) {
  // expected-error @+1 {{'wg.exp' op operand 0 is 'tensor<2xf32, "dense">', no tensor of rank 8 at most of f64, f32, bf16, f16, i64, i32, ui8 or i1}}
  %0 = wg.exp %x : tensor<2xf32, "dense">
  return
}

// -----

func.func private @callee(%x: tensor<2xi16>)
func.func @calls_pass_values(%x: tensor<2xi16>) {
  // expected-error @+1 {{'wg.call' op operand #0 must be variadic of tensor of rank 8 and 2^56 bytes at most}}
  wg.call @callee(%x) : (tensor<2xi16>) -> ()
  return
}

// -----

// expected-error @+1 {{argument 0: wg.result is the number of a result of the function, got 1 : i64}}
func.func @replaces_no_result(%x: tensor<2xf32> {wg.result = 1 : i64}) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// expected-error @+1 {{argument 0: wg.result is the number of a result of the function, got "0"}}
func.func @replaces_a_name(%x: tensor<2xf32> {wg.result = "0"}) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// expected-error @+1 {{argument 0 is 'tensor<2xf32>' and result 0, which replaces it, 'tensor<3xf32>'}}
func.func @replaces_another_type(%x: tensor<2xf32> {wg.result = 0 : i64}, %y: tensor<3xf32>) -> tensor<3xf32> {
  return %y : tensor<3xf32>
}

// -----

// expected-error @+1 {{result 0 replaces arguments 0 and 1; it replaces one at most}}
func.func @replaces_two(%x: tensor<2xf32> {wg.result = 0 : i64}, %y: tensor<2xf32> {wg.result = 0 : i64}) -> tensor<2xf32> {
  return %y : tensor<2xf32>
}

// -----

module {
  func.func @f(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
  func.func @g(%x: tensor<f32>) -> tensor<f32> {
    %y = wg.kernel map (%a = %x : tensor<f32>) -> tensor<f32> {
      // expected-error @+1 {{is in a kernel, which holds only wg ops without regions, and no calls}}
      %t = wg.call @f(%a) : (tensor<f32>) -> tensor<f32>
      wg.yield %t : tensor<f32>
    }
    return %y : tensor<f32>
  }
}

// -----

// The ops of a kernel are verified before the kernel asks them for their maps.
func.func @kernel_of_a_broken_view(%x: tensor<4x4xf32>) {
  %0 = wg.kernel map (%a = %x : tensor<4x4xf32>) -> tensor<4x4xf32> {
    // expected-error @+2 {{permutation [1, 7] does not name each axis of f32[4,4] once}}
    // expected-error @+1 {{'wg.transpose' op failed to infer returned types}}
    %s = wg.transpose %a by [1, 7] : tensor<4x4xf32> -> tensor<4x4xf32>
    %t = wg.tanh %s : tensor<4x4xf32>
    wg.yield %t : tensor<4x4xf32>
  }
  return
}

// -----

func.func @kernel_of_other_loops(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'wg.kernel' op has #wg.loops<[4] reads [[affine_map<(d0) -> (d0)>]] writes [affine_map<(d0) -> (d0)>] computes f32>, but its body is #wg.loops<[4] reads [[affine_map<(d0) -> (d0)>]] writes [affine_map<(d0) -> (d0)>] computes f32 overwrites [0, 0]>}}
  %0 = wg.kernel map (%a = %x : tensor<4xf32>) -> tensor<4xf32> loops<[4] reads [[affine_map<(d0) -> (d0)>]] writes [affine_map<(d0) -> (d0)>] computes f32> {
    %t = wg.tanh %a : tensor<4xf32>
    wg.yield %t : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @kernel_of_loops_without_sizes(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'wg.kernel' op has loops, which are decided when all sizes are known}}
  %0 = wg.kernel map (%a = %x : tensor<?xf32>) -> tensor<?xf32> loops<[4] reads [[]] writes [] computes f32> {
    %t = wg.tanh %a : tensor<?xf32>
    wg.yield %t : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}

// -----

func.func @loops_of_other_dimensions(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{loops hold lists of affine maps of 1 dimensions, and pairs of a result and an input}}
  %0 = wg.kernel map (%a = %x : tensor<4xf32>) -> tensor<4xf32> loops<[4] reads [[affine_map<(d0, d1) -> (d0)>]] writes [] computes f32> {
    %t = wg.tanh %a : tensor<4xf32>
    wg.yield %t : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @kernel_that_cannot_fail(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{but its body is #wg.loops<[4] reads [[affine_map<(d0) -> (d0)>]] writes [affine_map<(d0) -> (d0)>] computes f32 overwrites [0, 0]>}}
  %0 = wg.kernel map (%a = %x : tensor<4xf32>) -> tensor<4xf32> loops<[4] reads [[affine_map<(d0) -> (d0)>]] writes [affine_map<(d0) -> (d0)>] computes f32 overwrites [0, 0] may_fail> {
    %t = wg.tanh %a : tensor<4xf32>
    wg.yield %t : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @kernel_with_loops_among_its_attributes(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{custom op 'wg.kernel' has its loops in front of its attributes, not among them}}
  %0 = wg.kernel map (%a = %x : tensor<4xf32>) -> tensor<4xf32> attributes {loops = 4 : i32} {
    wg.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
