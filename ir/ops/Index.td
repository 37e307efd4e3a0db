//===- Index.td - places as data ---------------------------------------------------------------------===//
#ifndef WG_OPS_INDEX_TD
#define WG_OPS_INDEX_TD

include "ir/Dialect.td"

def WG_OneHotOp : WG_InferredOp<"one_hot", "y[..., j] = 1 where j = x[...], else 0", [WG_NotDifferentiable<"has integer operands only">, DeclareOpInterfaceMethods<WG_Indexed>, WG_Cheap, WG_Batches]> {
  let description = [{An index outside [0, depth) gives a row of zeros. Shapes: x integer[...] -> y dtype[..., depth].}];
  let arguments = (ins WG_IndexTensor:$x, I64Attr:$depth, TypeAttr:$dtype);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x `depth` $depth attr-dict `:` type($x) `->` type($y)";
  let dtypes = "integers";
  let publicFunction = 0;
  let samples = ["i64[4] = [0, 2, 5, -1] | depth = 3; dtype = f64", "i32[2,2] = [0, 2, 1, 1] | depth = 3; dtype = f32"];
}

def WG_GatherOp : WG_InferredOp<"gather", "y = rows of x at indices", [WG_IsLinear, DeclareOpInterfaceMethods<WG_Structured, ["indexBound"]>, WG_Batches]> {
  let description = [{
    y[i..., j...] = x[indices[i...], j...]. An index out of range is an error that names it, and nothing is written.
    The derivative adds the contributions of equal indices in their order. With batch_dims, as many axes in front are the same in x, indices
    and y: each of their places gathers its own rows.
    Shapes: x any[batch..., n, ...], indices integer[batch..., ...] -> y any[indices..., ...].
  }];
  let arguments = (ins WG_Tensor:$x, WG_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x `,` $indices attr-dict `:` type($x) `,` type($indices) `->` type($y)";
  let dtypes = "any";
  let samples = ["f64[4,3] in [-2, 2]; i64[5] = [0, 3, 3, 1, 0] | batch_dims = 0", "f64[4] in [-2, 2]; i32[2,2] = [0, 3, 3, 1] | batch_dims = 0",
                 "f64[2,4,3] in [-2, 2]; i64[2,3] = [0, 3, 3, 1, 0, 1] | batch_dims = 1", "f64[2,1,3] in [-2, 2]; i32[2,1] = [2, 0] | batch_dims = 2"];
}

def WG_ScatterAddOp : WG_InferredOp<"scatter_add", "y = zeros, with updates added to rows at indices", [WG_IsLinear, DeclareOpInterfaceMethods<WG_Structured, ["indexBound"]>, WG_Batches]> {
  let description = [{
    y[indices[i...], j...] += updates[i..., j...], in the order of the indices, y of `shape`. An index out of range is an error.
    With batch_dims, as many axes in front are the same in updates, indices and y: each of their places adds to its own rows.
    Shapes: updates number[indices..., ...], indices integer[batch..., ...] -> y number[shape], shape = [batch..., n, ...].
  }];
  let arguments = (ins WG_NumberTensor:$updates, WG_IndexTensor:$indices, WG_Sizes:$shape, DefaultValuedAttr<I64Attr, "0">:$batch_dims, Variadic<Index>:$sizes);
  let results = (outs WG_NumberTensor:$y);
  let assemblyFormat = "$updates `,` $indices `to` custom<Sizes>($shape) (`sizes` $sizes^)? attr-dict `:` type($updates) `,` type($indices) `->` type($y)";
  let dtypes = "numbers";
  let publicFunction = 0;
  let samples = ["f64[5,3] in [-2, 2]; i64[5] = [0, 3, 3, 1, 0] | shape = [4, 3]; batch_dims = 0", "f64[2,2] in [-2, 2]; i32[2,2] = [0, 3, 3, 1] | shape = [4]; batch_dims = 0",
                 "f64[2,3,2] in [-2, 2]; i64[2,3] = [0, 3, 3, 1, 0, 1] | shape = [2, 4, 2]; batch_dims = 1"];
}

def WG_IndexAddOp : WG_InferredOp<"index_add", "y = x, with updates added to rows at indices", [WG_IsLinear, DeclareOpInterfaceMethods<WG_Structured, ["indexBound", "overwritten"]>, WG_Batches]> {
  let description = [{
    y = x, and y[indices[i...], j...] += updates[i..., j...], in the order of the indices. An index out of range is an error, and nothing is
    written. Where x is not read again, only the rows at the indices are touched. batch_dims as of scatter_add.
    Shapes: x number[batch..., n, ...], updates number[indices..., ...], indices integer[batch..., ...] -> y as x.
  }];
  let arguments = (ins WG_NumberTensor:$x, WG_NumberTensor:$updates, WG_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs WG_NumberTensor:$y);
  let assemblyFormat = "$x `,` $updates `,` $indices attr-dict `:` type($x) `,` type($updates) `,` type($indices) `->` type($y)";
  let dtypes = "numbers";
  let publicFunction = 0;
  let samples = ["f64[4,3] in [-2, 2]; f64[5,3] in [-2, 2]; i64[5] = [0, 3, 3, 1, 0] | batch_dims = 0", "f64[4] in [-2, 2]; f64[2,2] in [-2, 2]; i32[2,2] = [0, 3, 3, 1] | batch_dims = 0",
                 "f64[2,4,2] in [-2, 2]; f64[2,3,2] in [-2, 2]; i64[2,3] = [0, 3, 3, 1, 0, 1] | batch_dims = 1"];
}

def WG_FirstOccurrenceOp : WG_InferredOp<"first_occurrence", "y[..., i] = the smallest j with x[..., j] = x[..., i]", [WG_NotDifferentiable<"has an integer result">, DeclareOpInterfaceMethods<WG_Structured, ["scratchElements"]>, WG_Batches]> {
  let description = [{In expected linear time, by hashing. Shapes: x integer[..., n] -> y i64[..., n].}];
  let arguments = (ins WG_IndexTensor:$x);
  let results = (outs WG_IndexTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let dtypes = "integers";
  let publicFunction = 0;
  let samples = ["i64[7] = [5, -1, 5, 3, -1, 5, 0]", "i32[2,4] = [1, 1, 0, 1, 7, 2, 2, 7]", "i64[1] = [9]"];
}

#endif // WG_OPS_INDEX_TD
