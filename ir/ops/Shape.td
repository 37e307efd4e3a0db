//===- Shape.td - constants, and the same elements in another place ----------------------------------===//
//
// Attributes of type WG_Sizes may hold `?`: each is a trailing operand of type index, in order. wg.size computes such operands.
//
#ifndef WG_OPS_SHAPE_TD
#define WG_OPS_SHAPE_TD

include "ir/Dialect.td"

def WG_ConstantOp : WG_Op<"constant", "y = a literal", [Pure, ConstantLike, WG_NotDifferentiable<"is a constant">, AllTypesMatch<["value", "y"]>]> {
  let description = [{
    A literal: a splat of any size, or at most 16 elements; larger constants are arguments.
    Example: `%one = wg.constant dense<1.0> : tensor<2x3xf32>`
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "attr-dict $value";
  let publicFunction = 0;
  let hasFolder = 1;
  let hasVerifier = 1;
}

def WG_OnesLikeOp : WG_ElementwiseOp<"ones_like", "y = 1 everywhere, shaped as x", [WG_NotDifferentiable<"is a constant">]> {
  let description = [{Ones with x's type. Shapes: x any[...] -> y any[...].}];
  let arguments = (ins WG_Tensor:$x);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasFolder = 1;
  let samples = ["f64[2,3] in [-3, 3]"];
}
def WG_ZerosLikeOp : WG_ElementwiseOp<"zeros_like", "y = 0 everywhere, shaped as x", [WG_NotDifferentiable<"is a constant">]> {
  let description = [{Zeros with x's type. Shapes: x any[...] -> y any[...].}];
  let arguments = (ins WG_Tensor:$x);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasFolder = 1;
  let samples = ["f64[2,3] in [-3, 3]"];
}

def WG_DimOp : WG_Op<"dim", "n = size of x along axis", [Pure, WG_NotDifferentiable<"has an integer result">, WG_Batches]> {
  let description = [{The size of one axis, for a trailing index operand. Example: `%n = wg.dim %x axis 0 : tensor<?x3xf32>`}];
  let arguments = (ins WG_Tensor:$x, I64Attr:$axis);
  let results = (outs Index:$size);
  let assemblyFormat = "$x `axis` $axis attr-dict `:` type($x)";
  let publicFunction = 0;
  let hasFolder = 1;
  let hasVerifier = 1;
  let samples = ["f64[2,3] in [-3, 3] | axis = 1",
    "f64[1,2,1,1,3,1,1,1] in [-3, 3] | axis = 4", "f64[2,0] in [-3, 3] | axis = 1"];
  let without = ["rank 0: it goes along an axis"];
}

def WG_SizeOp : WG_Op<"size", "n = a formula over sizes", [Pure, WG_NotDifferentiable<"has an integer result">]> {
  let description = [{
    Arithmetic on sizes; in the formula the operands are a, b, c ... It has `+ - *`, `//` (rounded down), `/` (which must leave no rest), `%`,
    `min(...)`, `max(...)`, numbers and parentheses. A step beyond 64 bits, a division by zero and a negative result are errors.
    Example: `%rows = wg.size "a * 10 / 3" of %n`
  }];
  let arguments = (ins Variadic<Index>:$values, StrAttr:$formula);
  let results = (outs Index:$size);
  let assemblyFormat = "$formula (`of` $values^)? attr-dict";
  let publicFunction = 0;
  let hasFolder = 1;
  let hasVerifier = 1;
  let samples = ["i64[] = [7]; i64[] = [2] | formula = max(a - b * 3, 0) + a // b", "i64[] = [12] | formula = a * 10 / 3 % 7", "| formula = 4"];
  let without = ["rank 8: it takes sizes alone", "a size of 1: it takes sizes alone", "no elements: it takes sizes alone"];
}

def WG_BroadcastOp : WG_InferredOp<"broadcast", "y = x repeated to a shape", [WG_IsLinear, DeclareOpInterfaceMethods<WG_View>, WG_Batches]> {
  let description = [{
    Axis i of x becomes axis dims[i] of y (dims ascend); it has y's size or the static size 1. Axes of y that dims lacks repeat x.
    Example: `%y = wg.broadcast %x to [64, 10] dims [1] : tensor<10xf32> -> tensor<64x10xf32>`
  }];
  let arguments = (ins WG_Tensor:$x, WG_Sizes:$shape, DenseI64ArrayAttr:$dims, Variadic<Index>:$sizes);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x `to` custom<Sizes>($shape) `dims` $dims (`sizes` $sizes^)? attr-dict `:` type($x) `->` type($y)";
  let publicFunction = 0;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let samples = ["f64[3] in [-2, 2] | shape = [2, 3]; dims = [1] # open: is not repeated", "f64[2] in [-2, 2] | shape = [2, 3]; dims = [0] # open: is not repeated", "f64[] in [-2, 2] | shape = [2, 3]; dims = []",
                 "f64[2,1] in [-2, 2] | shape = [2, 3]; dims = [0, 1] # open: is not repeated", "f64[1,3] in [-2, 2] | shape = [4, 2, 3]; dims = [1, 2] # open: is not repeated",
    "f64[1,3,1,1,1,2,1,1] in [-2, 2] | shape = [2, 3, 1, 1, 2, 2, 1, 1]; dims = [0, 1, 2, 3, 4, 5, 6, 7] # open: is not repeated",
    "f64[3] in [-2, 2] | shape = [0, 3]; dims = [1] # open: is not repeated", "f64[0,1] in [-2, 2] | shape = [0, 2]; dims = [0, 1] # open: is not repeated"];
}

def WG_ReshapeOp : WG_InferredOp<"reshape", "y = x in another shape", [WG_IsLinear, WG_Batches]> {
  let description = [{The same elements in row-major order. Example: `%y = wg.reshape %x to [6] : tensor<2x3xf32> -> tensor<6xf32>`}];
  let arguments = (ins WG_Tensor:$x, WG_Sizes:$shape, Variadic<Index>:$sizes);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x `to` custom<Sizes>($shape) (`sizes` $sizes^)? attr-dict `:` type($x) `->` type($y)";
  let publicFunction = 0;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let samples = ["f64[2,3] in [-2, 2] | shape = [3, 2]", "f64[2,3] in [-2, 2] | shape = [6]", "f64[1] in [-2, 2] | shape = []",
    "f64[] in [-2, 2] | shape = [1, 1]", "f64[1,2,1,1,3,1,1,1] in [-2, 2] | shape = [3, 2]", "f64[2,3] in [-2, 2] | shape = [1, 3, 1, 1, 2, 1, 1, 1]",
    "f64[2,0] in [-2, 2] | shape = [0, 5]"];
}

def WG_TransposeOp : WG_InferredOp<"transpose", "y = x with its axes in another order", [WG_IsLinear, DeclareOpInterfaceMethods<WG_View>, WG_Batches]> {
  let description = [{Axis i of y is axis permutation[i] of x. Example: `%y = wg.transpose %x by [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>`}];
  let arguments = (ins WG_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x `by` $permutation attr-dict `:` type($x) `->` type($y)";
  let publicFunction = 0;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let samples = ["f64[2,3] in [-2, 2] | permutation = [1, 0]", "f64[2,3,4] in [-2, 2] | permutation = [2, 0, 1]",
    "f64[] in [-2, 2] | permutation = []", "f64[1,2,1,1,3,1,1,1] in [-2, 2] | permutation = [7, 4, 2, 0, 1, 3, 5, 6]",
    "f64[0,3] in [-2, 2] | permutation = [1, 0]"];
}

def WG_ReverseOp : WG_InferredOp<"reverse", "y = x, backwards along axes", [WG_IsLinear, DeclareOpInterfaceMethods<WG_View>, WG_Batches]> {
  let description = [{
    Element i of an axis of y is element size - 1 - i of x; axes are sorted and distinct.
    Example: `%y = wg.reverse %x axes [1] : tensor<2x3xf32> -> tensor<2x3xf32>`
  }];
  let arguments = (ins WG_Tensor:$x, DenseI64ArrayAttr:$axes);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x `axes` $axes attr-dict `:` type($x) `->` type($y)";
  let publicFunction = 0;
  let hasFolder = 1;
  let samples = ["f64[2,3] in [-2, 2] | axes = [1]", "f64[2,3,2] in [-2, 2] | axes = [0, 2]", "f64[17] in [-2, 2] | axes = [0]", "f64[3,0] in [-2, 2] | axes = [0, 1]",
    "f64[] in [-2, 2] | axes = []", "f64[1,2,1,1,3,1,1,1] in [-2, 2] | axes = [1, 3, 4]"];
}

def WG_SliceOp : WG_InferredOp<"slice", "y = x[starts : limits : strides]", [WG_IsLinear, DeclareOpInterfaceMethods<WG_View>, WG_Batches]> {
  let description = [{
    Elements starts[i], starts[i] + strides[i], ... below limits[i] of axis i; strides are positive, 0 <= start <= limit <= size.
    Shapes: x any[...] -> y any[...]. Example: `%y = wg.slice %x from [1, 0] to [?, 3] by [1, 1] sizes %n : tensor<?x3xf32> -> tensor<?x3xf32>`
  }];
  let arguments = (ins WG_Tensor:$x, WG_Sizes:$starts, WG_Sizes:$limits, DenseI64ArrayAttr:$strides, Variadic<Index>:$sizes);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x `from` custom<Sizes>($starts) `to` custom<Sizes>($limits) `by` $strides (`sizes` $sizes^)? attr-dict `:` type($x) `->` type($y)";
  let publicFunction = 0;
  let hasFolder = 1;
  let samples = ["f64[4,5] in [-2, 2] | starts = [1, 0]; limits = [4, 5]; strides = [1, 2]", "f64[6] in [-2, 2] | starts = [2]; limits = [3]; strides = [1]",
    "f64[] in [-2, 2] | starts = []; limits = []; strides = []",
    "f64[1,4,1,1,3,1,1,1] in [-2, 2] | starts = [0, 1, 0, 0, 0, 0, 0, 0]; limits = [1, 4, 1, 1, 3, 1, 1, 1]; strides = [1, 2, 1, 1, 2, 1, 1, 1]",
    "f64[4,3] in [-2, 2] | starts = [2, 0]; limits = [2, 3]; strides = [1, 1]", "f64[0,3] in [-2, 2] | starts = [0, 1]; limits = [0, 3]; strides = [1, 1]"];
}

def WG_PadOp : WG_InferredOp<"pad", "y = x with zeros around and between", [WG_IsLinear, DeclareOpInterfaceMethods<WG_Indexed>, WG_Batches]> {
  let description = [{
    low[i] zeros before, high[i] after and interior[i] between the elements of axis i; none is negative.
    Shapes: x any[...] -> y any[...].
  }];
  let arguments = (ins WG_Tensor:$x, WG_Sizes:$low, WG_Sizes:$high, DenseI64ArrayAttr:$interior, Variadic<Index>:$sizes);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x `low` custom<Sizes>($low) `high` custom<Sizes>($high) `interior` $interior (`sizes` $sizes^)? attr-dict `:` type($x) `->` type($y)";
  let publicFunction = 0;
  let samples = ["f64[2,3] in [-2, 2] | low = [1, 0]; high = [0, 2]; interior = [0, 1]", "f64[3] in [-2, 2] | low = [2]; high = [1]; interior = [0]",
    "f64[] in [-2, 2] | low = []; high = []; interior = []",
    "f64[1,2,1,1,3,1,1,1] in [-2, 2] | low = [1, 0, 0, 0, 2, 0, 0, 0]; high = [0, 1, 0, 0, 0, 0, 0, 1]; interior = [0, 1, 0, 0, 0, 0, 0, 0]",
    "f64[0,2] in [-2, 2] | low = [2, 0]; high = [1, 1]; interior = [0, 0]"];
}

def WG_ConcatOp : WG_InferredOp<"concat", "y = the operands one after the other along axis", [WG_IsLinear, DeclareOpInterfaceMethods<WG_Structured>, WG_Batches]> {
  let description = [{Operands of one dtype and equal other axes. Shapes: xs any[...] -> y any[...].}];
  let arguments = (ins Variadic<WG_Tensor>:$xs, I64Attr:$axis);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$xs `axis` $axis attr-dict `:` type($xs) `->` type($y)";
  let hasCanonicalizer = 1;
  let publicFunction = 0;
  let samples = ["f64[2,3] in [-2, 2]; f64[1,3] in [-2, 2] | axis = 0", "f64[2,1] in [-2, 2]; f64[2,2] in [-2, 2]; f64[2,1] in [-2, 2] | axis = 1",
    "f64[1,2,1,1,3,1,1,1] in [-2, 2]; f64[1,2,1,1,2,1,1,1] in [-2, 2] | axis = 4", "f64[0,3] in [-2, 2]; f64[2,3] in [-2, 2] | axis = 0",
    "f64[2,0] in [-2, 2]; f64[1,0] in [-2, 2] | axis = 0"];
  let without = ["rank 0: it goes along an axis"];
}

def WG_IotaOp : WG_InferredOp<"iota", "y = the coordinate along axis", [WG_NotDifferentiable<"is a constant">, DeclareOpInterfaceMethods<WG_Indexed>, WG_Cheap]> {
  let description = [{0, 1, 2, ... along axis, in dtype, the same along the others. Shapes: -> y dtype[shape].}];
  let arguments = (ins WG_Sizes:$shape, I64Attr:$axis, TypeAttr:$dtype, Variadic<Index>:$sizes);
  let results = (outs WG_NumberTensor:$y);
  let assemblyFormat = "`to` custom<Sizes>($shape) `axis` $axis (`sizes` $sizes^)? attr-dict `:` type($y)";
  let publicFunction = 0;
  let samples = ["| shape = [2, 3]; axis = 1; dtype = f32", "| shape = [4]; axis = 0; dtype = i64",
    "| shape = [1]; axis = 0; dtype = f64", "| shape = [2, 0]; axis = 0; dtype = f64", "| shape = [1, 2, 1, 1, 3, 1, 1, 1]; axis = 4; dtype = i32"];
  let without = ["rank 0: it goes along an axis"];
}

def WG_BarrierOp : WG_InferredOp<"barrier", "y = x, once the others are there", [WG_IsLinear, WG_OwnLanes]> {
  let description = [{
    What is computed from y is computed after `others`, and is never taken for what is computed from x: what is done again for want of memory is done late.
    Nothing is copied. Shapes: x any[...], others any[...] -> y any[...].
  }];
  let arguments = (ins WG_Tensor:$x, Variadic<WG_Tensor>:$others);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x (`after` $others^)? attr-dict `:` functional-type(operands, results)";
  let publicFunction = 0;
  let samples = ["f64[2,3] in [-2, 2]; i64[2] in [-1, 1]",
    "f64[] in [-2, 2]; i64[0] in [-1, 1]", "f64[1,2,1,1,3,1,1,1] in [-2, 2]; i64[2] in [-1, 1]"];
}

#endif // WG_OPS_SHAPE_TD
