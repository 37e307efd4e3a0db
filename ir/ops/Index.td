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
  let samples = ["i64[4] = [0, 2, 5, -1] | depth = 3; dtype = f64", "i32[2,2] = [0, 2, 1, 1] | depth = 3; dtype = f32",
    "i64[] = [1] | depth = 3; dtype = f64", "i64[0] = [] | depth = 3; dtype = f64", "i64[1,2,1,1,1,2,1] = [0, 2, 1, 3] | depth = 1; dtype = f64"];
  let without = ["rank 8: its result has one more"];
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
                 "f64[2,4,3] in [-2, 2]; i64[2,3] = [0, 3, 3, 1, 0, 1] | batch_dims = 1", "f64[2,1,3] in [-2, 2]; i32[2,1] = [2, 0] | batch_dims = 2",
    "f64[4] in [-2, 2]; i64[] = [2] | batch_dims = 0", "f64[4,0] in [-2, 2]; i64[2] = [3, 1] | batch_dims = 0",
    "f64[4,3] in [-2, 2]; i64[0] = [] | batch_dims = 0", "f64[1,2,4,1,1,2,1,1] in [-2, 2]; i64[1,2,3] = [0, 3, 3, 1, 0, 1] | batch_dims = 2",
    "f64[4] in [-2, 2]; i64[1,2,1,1,2,1,1,1] = [0, 3, 3, 1] | batch_dims = 0"];
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
                 "f64[2,3,2] in [-2, 2]; i64[2,3] = [0, 3, 3, 1, 0, 1] | shape = [2, 4, 2]; batch_dims = 1",
    "f64[] in [-2, 2]; i64[] = [2] | shape = [4]; batch_dims = 0", "f64[2,0] in [-2, 2]; i64[2] = [3, 1] | shape = [4, 0]; batch_dims = 0",
    "f64[0,3] in [-2, 2]; i64[0] = [] | shape = [4, 3]; batch_dims = 0",
    "f64[1,2,3,1,1,2,1,1] in [-2, 2]; i64[1,2,3] = [0, 3, 3, 1, 0, 1] | shape = [1, 2, 4, 1, 1, 2, 1, 1]; batch_dims = 2"];
}

def WG_IndexAddOp : WG_InferredOp<"index_add", "y = x, with updates added to rows at indices", [WG_IsLinear, DeclareOpInterfaceMethods<WG_Structured, ["indexBound", "overwritten"]>, WG_Batches]> {
  let description = [{
    y = x, and y[indices[i...], j...] += updates[i..., j...], in the order of the indices. An index out of range is an error, and nothing is
    written. Where x is not read again, only the rows at the indices are touched. batch_dims as of gather.
    Shapes: x number[batch..., n, ...], updates number[indices..., ...], indices integer[batch..., ...] -> y as x.
  }];
  let arguments = (ins WG_NumberTensor:$x, WG_NumberTensor:$updates, WG_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs WG_NumberTensor:$y);
  let assemblyFormat = "$x `,` $updates `,` $indices attr-dict `:` type($x) `,` type($updates) `,` type($indices) `->` type($y)";
  let dtypes = "numbers";
  let samples = ["f64[4,3] in [-2, 2]; f64[5,3] in [-2, 2]; i64[5] = [0, 3, 3, 1, 0] | batch_dims = 0", "f64[4] in [-2, 2]; f64[2,2] in [-2, 2]; i32[2,2] = [0, 3, 3, 1] | batch_dims = 0",
                 "f64[2,4,2] in [-2, 2]; f64[2,3,2] in [-2, 2]; i64[2,3] = [0, 3, 3, 1, 0, 1] | batch_dims = 1",
    "f64[4] in [-2, 2]; f64[] in [-2, 2]; i64[] = [2] | batch_dims = 0", "f64[4,0] in [-2, 2]; f64[2,0] in [-2, 2]; i64[2] = [3, 1] | batch_dims = 0",
    "f64[4,3] in [-2, 2]; f64[0,3] in [-2, 2]; i64[0] = [] | batch_dims = 0",
    "f64[1,2,4,1,1,2,1,1] in [-2, 2]; f64[1,2,3,1,1,2,1,1] in [-2, 2]; i64[1,2,3] = [0, 3, 3, 1, 0, 1] | batch_dims = 2"];
}

def WG_FirstOccurrenceOp : WG_InferredOp<"first_occurrence", "y[..., i] = the smallest j with x[..., j] = x[..., i]", [WG_NotDifferentiable<"has an integer result">, DeclareOpInterfaceMethods<WG_Structured, ["scratchElements"]>, WG_Batches]> {
  let description = [{In expected linear time, by hashing. Shapes: x integer[..., n] -> y i64[..., n].}];
  let arguments = (ins WG_IndexTensor:$x);
  let results = (outs WG_IndexTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let dtypes = "integers";
  let publicFunction = 0;
  let samples = ["i64[7] = [5, -1, 5, 3, -1, 5, 0]", "i32[2,4] = [1, 1, 0, 1, 7, 2, 2, 7]", "i64[1] = [9]",
    "i64[0] = []", "i64[1,2,1,1,1,1,1,3] = [4, 4, 0, 1, 2, 1]"];
  let without = ["rank 0: it goes along an axis"];
}

class WG_IndexUpdateOp<string mnemonic, string formula, list<Trait> traits>
    : WG_InferredOp<mnemonic, formula, !listconcat([DeclareOpInterfaceMethods<WG_Structured, ["indexBound", "overwritten"]>, WG_Batches], traits)> {
  let assemblyFormat = "$x `,` $updates `,` $indices attr-dict `:` type($x) `,` type($updates) `,` type($indices) `->` type($y)";
  let samples = ["f64[4,3] in [-2, 2]; f64[5,3] in [-2, 2]; i64[5] = [0, 3, 3, 1, 0] | batch_dims = 0", "f64[4] in [-2, 2]; f64[2,2] in [-2, 2]; i32[2,2] = [0, 3, 3, 1] | batch_dims = 0",
                 "f64[2,4,2] in [-2, 2]; f64[2,3,2] in [-2, 2]; i64[2,3] = [0, 3, 3, 1, 0, 1] | batch_dims = 1",
    "f64[4] in [-2, 2]; f64[] in [-2, 2]; i64[] = [2] | batch_dims = 0", "f64[4,0] in [-2, 2]; f64[2,0] in [-2, 2]; i64[2] = [3, 1] | batch_dims = 0",
    "f64[4,3] in [-2, 2]; f64[0,3] in [-2, 2]; i64[0] = [] | batch_dims = 0",
    "f64[1,2,4,1,1,2,1,1] in [-2, 2]; f64[1,2,3,1,1,2,1,1] in [-2, 2]; i64[1,2,3] = [0, 3, 3, 1, 0, 1] | batch_dims = 2"];
}

def WG_IndexSetOp : WG_IndexUpdateOp<"index_set", "y = x, with rows at indices replaced by updates", [WG_IsLinear]> {
  let description = [{
    y = x, and y[indices[i...], j...] = updates[i..., j...], in the order of the indices: of equal ones the last counts, and it alone has a
    gradient. An index out of range is an error, and nothing is written. Where x is not read again, only the rows at the indices are touched.
    batch_dims as of gather.
    Shapes: x any[batch..., n, ...], updates any[indices..., ...], indices integer[batch..., ...] -> y as x.
  }];
  let arguments = (ins WG_Tensor:$x, WG_Tensor:$updates, WG_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs WG_Tensor:$y);
}

def WG_IndexMaxOp : WG_IndexUpdateOp<"index_max", "y = the larger of x and of updates to rows at indices", [WG_Differentiates]> {
  let description = [{
    y = x, and y[indices[i...], j...] = max(y[indices[i...], j...], updates[i..., j...]), NaN if one is. An index out of range is an error. What ties
    shares the gradient equally. batch_dims as of gather.
    Shapes: x number[batch..., n, ...], updates number[indices..., ...], indices integer[batch..., ...] -> y as x.
  }];
  let arguments = (ins WG_NumberTensor:$x, WG_NumberTensor:$updates, WG_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs WG_NumberTensor:$y);
  let dtypes = "numbers";
}

def WG_IndexMinOp : WG_IndexUpdateOp<"index_min", "y = the smaller of x and of updates to rows at indices", [WG_Differentiates]> {
  let description = [{
    y = x, and y[indices[i...], j...] = min(y[indices[i...], j...], updates[i..., j...]), as index_max.
    Shapes: x number[batch..., n, ...], updates number[indices..., ...], indices integer[batch..., ...] -> y as x.
  }];
  let arguments = (ins WG_NumberTensor:$x, WG_NumberTensor:$updates, WG_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs WG_NumberTensor:$y);
  let dtypes = "numbers";
}

def WG_DynamicSliceOp : WG_InferredOp<"dynamic_slice", "y = x[starts : starts + shape]", [WG_IsLinear, DeclareOpInterfaceMethods<WG_Structured>, WG_Batches]> {
  let description = [{
    A part of x of a given shape, whose first place is data. A start is moved into [0, size - shape], so the part always lies in x. With
    batch_dims, as many axes in front are the same in x, starts and y: each of their places has its own start.
    Shapes: x any[batch..., ...], starts integer[batch..., number of the other axes] -> y any[shape].
    Example: `%y = wg.dynamic_slice %x, %at to [2, 3] : tensor<4x3xf32>, tensor<2xi64> -> tensor<2x3xf32>`
  }];
  let arguments = (ins WG_Tensor:$x, WG_IndexTensor:$starts, WG_Sizes:$shape, DefaultValuedAttr<I64Attr, "0">:$batch_dims, Variadic<Index>:$sizes);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x `,` $starts `to` custom<Sizes>($shape) (`sizes` $sizes^)? attr-dict `:` type($x) `,` type($starts) `->` type($y)";
  let publicFunction = 0;
  let samples = ["f64[4,5] in [-2, 2]; i64[2] = [1, 2] | shape = [2, 3]; batch_dims = 0", "f64[6] in [-2, 2]; i32[1] = [9] | shape = [2]; batch_dims = 0",
                 "f64[2,4,3] in [-2, 2]; i64[2,2] = [0, 1, -3, 0] | shape = [2, 2, 2]; batch_dims = 1", "f64[] in [-2, 2]; i64[0] = [] | shape = []; batch_dims = 0",
    "f64[1,4,1,1,3,1,1,1] in [-2, 2]; i64[8] = [0, 1, 0, 0, 2, 0, 0, 0] | shape = [1, 2, 1, 1, 2, 1, 1, 1]; batch_dims = 0",
    "f64[4,3] in [-2, 2]; i64[2] = [5, 1] | shape = [0, 2]; batch_dims = 0"];
}

def WG_DynamicUpdateSliceOp : WG_InferredOp<"dynamic_update_slice", "y = x, with x[starts : starts + shape of update] replaced by update", [WG_IsLinear, DeclareOpInterfaceMethods<WG_Structured, ["overwritten"]>, WG_Batches]> {
  let description = [{
    Starts are moved as those of dynamic_slice. Where x is not read again, only the replaced part is touched. batch_dims as of dynamic_slice.
    Shapes: x any[batch..., ...], update any[batch..., ...] of x's rank, starts integer[batch..., number of the other axes] -> y as x.
  }];
  let arguments = (ins WG_Tensor:$x, WG_Tensor:$update, WG_IndexTensor:$starts, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x `,` $update `,` $starts attr-dict `:` type($x) `,` type($update) `,` type($starts) `->` type($y)";
  let publicFunction = 0;
  let samples = ["f64[4,5] in [-2, 2]; f64[2,3] in [-2, 2]; i64[2] = [1, 2] | batch_dims = 0", "f64[6] in [-2, 2]; f64[2] in [-2, 2]; i32[1] = [9] | batch_dims = 0",
                 "f64[2,4,3] in [-2, 2]; f64[2,2,2] in [-2, 2]; i64[2,2] = [0, 1, -3, 0] | batch_dims = 1", "f64[] in [-2, 2]; f64[] in [-2, 2]; i64[0] = [] | batch_dims = 0",
    "f64[1,4,1,1,3,1,1,1] in [-2, 2]; f64[1,2,1,1,2,1,1,1] in [-2, 2]; i64[8] = [0, 1, 0, 0, 2, 0, 0, 0] | batch_dims = 0",
    "f64[4,3] in [-2, 2]; f64[0,2] in [-2, 2]; i64[2] = [5, 1] | batch_dims = 0"];
}

#endif // WG_OPS_INDEX_TD
