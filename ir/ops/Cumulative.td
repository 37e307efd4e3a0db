//===- Cumulative.td - what has come so far along an axis ------------------------------------------------===//
#ifndef WG_OPS_CUMULATIVE_TD
#define WG_OPS_CUMULATIVE_TD

include "ir/Dialect.td"

/// y has x's shape; along `axis` each element is made of the one before it, from the start or, with `reverse`, from the end.
class WG_CumulativeOp<string mnemonic, string formula, list<Trait> traits>
    : WG_InferredOp<mnemonic, formula, !listconcat([DeclareOpInterfaceMethods<WG_Structured>, WG_Batches], traits)> {
  let assemblyFormat = "$x `axis` $axis attr-dict `:` type($x) `->` type($y)";
  let publicFunction = 0;
  let samples = ["f64[2,3,2] in [-2, 2] | axis = 1; reverse = false", "f64[3,5] in [-2, 2] | axis = 1; reverse = true", "f64[4] in [-2, 2] | axis = 0; reverse = false",
                 "f64[2,0] in [-2, 2] | axis = 1; reverse = false", "f64[1,3] in [-2, 2] | axis = 0; reverse = true",
                 "f64[1,2,1,1,3,1,1,1] in [-2, 2] | axis = 4; reverse = false", "f64[0,3] in [-2, 2] | axis = 1; reverse = false"];
  let without = ["rank 0: it goes along an axis"];
}

def WG_CumsumOp : WG_CumulativeOp<"cumsum", "y[i] = x[0] + ... + x[i] along axis", [WG_IsLinear]> {
  let description = [{Added up one after the other. Shapes: x number[...] -> y number[...].}];
  let arguments = (ins WG_NumberTensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs WG_NumberTensor:$y);
  let dtypes = "numbers";
}

def WG_CumprodOp : WG_CumulativeOp<"cumprod", "y[i] = x[0] * ... * x[i] along axis", [WG_Differentiates]> {
  let description = [{Multiplied one after the other; the derivative is exact where factors are 0. Shapes: x number[...] -> y number[...].}];
  let arguments = (ins WG_NumberTensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs WG_NumberTensor:$y);
  let dtypes = "numbers";
}

def WG_LogcumsumexpOp : WG_CumulativeOp<"logcumsumexp", "y[i] = log(exp(x[0]) + ... + exp(x[i])) along axis", [WG_Differentiates]> {
  let description = [{By y[i] = max + log1p(exp(-|y[i-1] - x[i]|)): nothing overflows; -inf of -inf only. Shapes: x float[...] -> y float[...].}];
  let arguments = (ins WG_FloatTensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs WG_FloatTensor:$y);
  let dtypes = "floats";
  let agreement = "4, 2 ulp of the absolute terms";
}

def WG_CumargmaxOp : WG_CumulativeOp<"cumargmax", "y[i] = place of the largest of x[0], ..., x[i] along axis", [WG_NotDifferentiable<"has an integer result">]> {
  let description = [{
    The first of equals that is met; a NaN wins, the first one. With `smallest`, the place of the smallest.
    Shapes: x number[...] -> y i64[...].
  }];
  let arguments = (ins WG_NumberTensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$reverse, DefaultValuedAttr<BoolAttr, "false">:$smallest);
  let results = (outs WG_IndexTensor:$y);
  let dtypes = "numbers";
  let samples = ["f64[2,3,2] in [-2, 2] | axis = 1; reverse = false; smallest = false", "f64[3,5] in [-2, 2] | axis = 1; reverse = true; smallest = true",
                 "f64[7] = [1, nan, 3, nan, 3, -inf, inf] | axis = 0; reverse = false; smallest = false", "f64[6] = [2, 1, 1, nan, -0.0, 0] | axis = 0; reverse = false; smallest = true",
    "f64[1,2,1,1,3,1,1,1] in [-2, 2] | axis = 4; reverse = false; smallest = false", "f64[2,0] in [-2, 2] | axis = 1; reverse = false; smallest = false"];
  let without = ["rank 0: it goes along an axis"];
}

def WG_LinearRecurrenceOp : WG_InferredOp<"linear_recurrence", "y[i] = a[i] * y[i-1] + x[i] along axis", [WG_Differentiates, DeclareOpInterfaceMethods<WG_Structured>, WG_Batches]> {
  let description = [{
    y[0] = x[0]: the first of a is not read. With `reverse`, from the end of the axis. Product and sum are rounded once, together.
    Shapes: a, x float[...] of one shape -> y float[...].
  }];
  let arguments = (ins WG_FloatTensor:$a, WG_FloatTensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs WG_FloatTensor:$y);
  let assemblyFormat = "$a `,` $x `axis` $axis attr-dict `:` type($a) `,` type($x) `->` type($y)";
  let dtypes = "floats";
  let publicFunction = 0;
  let samples = ["f64[2,3,2] in [-2, 2]; f64[2,3,2] in [-2, 2] | axis = 1; reverse = false", "f64[3,5] in [-2, 2]; f64[3,5] in [-2, 2] | axis = 1; reverse = true",
                 "f64[4] = [inf, 0, 2, -1]; f64[4] in [-2, 2] | axis = 0; reverse = false # differences: the first of a is infinite, and is not read", "f64[2,0] in [-2, 2]; f64[2,0] in [-2, 2] | axis = 1; reverse = false",
                 "f64[1,3] in [-2, 2]; f64[1,3] in [-2, 2] | axis = 0; reverse = true",
    "f64[1,2,1,1,3,1,1,1] in [-2, 2]; f64[1,2,1,1,3,1,1,1] in [-2, 2] | axis = 4; reverse = false"];
  let without = ["rank 0: it goes along an axis"];
}

#endif // WG_OPS_CUMULATIVE_TD
