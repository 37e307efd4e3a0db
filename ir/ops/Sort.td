//===- Sort.td - order ------------------------------------------------------------------------------------===//
#ifndef WG_OPS_SORT_TD
#define WG_OPS_SORT_TD

include "ir/Dialect.td"

def WG_ArgsortOp : WG_InferredOp<"argsort", "y[..., i] = place of the element of x[..., :] that comes i-th in order", [WG_NotDifferentiable<"has an integer result">, WG_External, WG_Batches]> {
  let description = [{
    Along the last axis; equal elements stay in their order, also where it descends. A NaN counts as the largest. With `count` 0 or more, the
    first `count` places only. Shapes: x any[..., n] -> y i64[..., n], or i64[..., count].
  }];
  let arguments = (ins WG_Tensor:$x, DefaultValuedAttr<BoolAttr, "false">:$descending, DefaultValuedAttr<I64Attr, "-1">:$count);
  let results = (outs WG_IndexTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let dtypes = "any";
  let publicFunction = 0;
  let samples = ["f64[3,5] in [-2, 2] | descending = false; count = -1", "f64[9] = [3, nan, -0.0, 0, -inf, 3, inf, nan, -5] | descending = true; count = -1",
                 "f64[9] = [3, nan, -0.0, 0, -inf, 3, inf, nan, -5] | descending = false; count = 4", "i64[5] = [3, -9223372036854775808, 9223372036854775807, 0, 3] | descending = false; count = -1",
                 "u8[6] = [3, 255, 0, 128, 3, 127] | descending = true; count = 2", "bool[4] = [1, 0, 1, 0] | descending = false; count = -1", "f64[2,0] = [] | descending = false; count = -1", "f64[2,1] in [-2, 2] | descending = true; count = 0",
    "f64[1,2,1,1,1,1,1,3] in [-2, 2] | descending = false; count = -1", "f64[1] in [-2, 2] | descending = true; count = -1"];
  let without = ["rank 0: it goes along an axis"];
}

def WG_SearchsortedOp : WG_InferredOp<"searchsorted", "y[..., i] = where values[..., i] belongs in the ascending sorted[..., :]", [WG_NotDifferentiable<"has an integer result">, WG_External, WG_Batches]> {
  let description = [{
    The number of elements that are smaller, or with `right`, not larger. A NaN counts as the largest. `sorted` is not checked.
    Shapes: sorted number[batch..., n], values number[batch..., m] -> y i64[batch..., m].
  }];
  let arguments = (ins WG_NumberTensor:$sorted, WG_NumberTensor:$values, DefaultValuedAttr<BoolAttr, "false">:$right);
  let results = (outs WG_IndexTensor:$y);
  let assemblyFormat = "$sorted `,` $values attr-dict `:` type($sorted) `,` type($values) `->` type($y)";
  let dtypes = "numbers";
  let publicFunction = 0;
  let samples = ["f64[5] = [-2, -1, 0, 0, 3]; f64[6] = [-3, -1, 0, 1, nan, inf] | right = false", "f64[2,3] = [-2, 0, 1, 4, 4, 4]; f64[2,2] = [0, 7, 4, 3] | right = true",
                 "i32[3] = [1, 2, 3]; i32[2] = [0, 2] | right = false", "f64[0] = []; f64[2] = [1, 2] | right = false", "u8[3] = [1, 200, 255]; u8[2] = [199, 255] | right = true",
    "f64[1,2,1,1,1,1,1,3] = [-2, 0, 1, 4, 4, 4]; f64[1,2,1,1,1,1,1,2] = [0, 7, 4, 3] | right = true", "f64[1] = [1]; f64[1] = [1] | right = false"];
  let without = ["rank 0: it goes along an axis"];
}

#endif // WG_OPS_SORT_TD
