//===- Reduce.td - many elements to one --------------------------------------------------------------===//
#ifndef WG_OPS_REDUCE_TD
#define WG_OPS_REDUCE_TD

include "ir/Dialect.td"

def WG_ReduceSumOp : WG_ReduceOp<"reduce_sum", "y = sum of x over axes", [WG_IsLinear]> {
  let description = [{Sum; 0 of nothing. The order is fixed by the shape. Shapes: x number[...] -> y number[... without axes].}];
  let agreement = "1, 1 ulp of the absolute terms";
  let samples = ["f64[2,3,4] in [-2, 2] | axes = [0, 2]", "f64[3,5] in [-2, 2] | axes = [1]", "f64[3,5] in [-2, 2] | axes = [0]", "f64[7] in [-2, 2] | axes = [0]",
    "f64[] in [-2, 2] | axes = []", "f64[1,2,1,1,3,1,1,1] in [-2, 2] | axes = [1, 2, 7]", "f64[2,0,1] in [-2, 2] | axes = [1]",
    "f64[0,3] in [-2, 2] | axes = [1]"];
}
def WG_ReduceMaxOp : WG_ReduceOp<"reduce_max", "y = largest of x over axes"> {
  let description = [{Maximum; NaN if one is NaN, -inf or the lowest integer of nothing. Ties share the gradient equally. Shapes: x number[...] -> y number[... without axes].}];
  let samples = ["f64[2,3,4] in [-2, 2] | axes = [0, 2]", "f64[3,5] in [-2, 2] | axes = [1]", "f64[4] = [1, 3, 3, 2] | axes = [0] # differences: a tie",
    "f64[] in [-2, 2] | axes = []", "f64[1,2,1,1,3,1,1,1] in [-2, 2] | axes = [1, 2, 7]", "f64[2,0,1] in [-2, 2] | axes = [1] # differences: infinity",
    "f64[0,3] in [-2, 2] | axes = [1]"];
}
def WG_ReduceMinOp : WG_ReduceOp<"reduce_min", "y = smallest of x over axes"> {
  let description = [{Minimum; NaN if one is NaN, inf or the highest integer of nothing. Ties share the gradient equally. Shapes: x number[...] -> y number[... without axes].}];
  let samples = ["f64[2,3,4] in [-2, 2] | axes = [0, 2]", "f64[3,5] in [-2, 2] | axes = [1]", "f64[4] = [1, 0, 0, 2] | axes = [0] # differences: a tie",
    "f64[] in [-2, 2] | axes = []", "f64[1,2,1,1,3,1,1,1] in [-2, 2] | axes = [1, 2, 7]", "f64[2,0,1] in [-2, 2] | axes = [1] # differences: infinity",
    "f64[0,3] in [-2, 2] | axes = [1]"];
}
def WG_ReduceProdOp : WG_ReduceOp<"reduce_prod", "y = product of x over axes"> {
  let description = [{Product; 1 of nothing. The derivative is exact where factors are 0. Shapes: x number[...] -> y number[... without axes].}];
  let agreement = "40, 64 ulp of the element";
  let samples = ["f64[2,3,2] in [0.5, 2] | axes = [0, 2]", "f64[4] = [2, 0, 3, 0.5] | axes = [0]",
    "f64[] in [0.5, 2] | axes = []", "f64[1,2,1,1,3,1,1,1] in [0.5, 2] | axes = [1, 2, 7]", "f64[2,0,1] in [0.5, 2] | axes = [1]",
    "f64[0,3] in [0.5, 2] | axes = [1]"];
}
def WG_ReduceAnyOp : WG_ReduceOp<"reduce_any", "y = whether one of x holds over axes", [WG_NotDifferentiable<"has a bool result">]> {
  let description = [{Disjunction; false of nothing. Shapes: x bool[...] -> y bool[... without axes].}];
  let arguments = (ins WG_BoolTensor:$x, DenseI64ArrayAttr:$axes);
  let results = (outs WG_BoolTensor:$y);
  let dtypes = "booleans";
  let samples = ["bool[2,3] = [0, 1, 0, 0, 0, 0] | axes = [1]",
    "bool[] = [1] | axes = []", "bool[1,2,1,1,3,1,1,1] = [0, 1, 0, 1, 1, 1] | axes = [1, 2, 7]", "bool[2,0,1] = [] | axes = [1]",
    "bool[0,3] = [] | axes = [1]"];
}
def WG_ReduceAllOp : WG_ReduceOp<"reduce_all", "y = whether all of x hold over axes", [WG_NotDifferentiable<"has a bool result">]> {
  let description = [{Conjunction; true of nothing. Shapes: x bool[...] -> y bool[... without axes].}];
  let arguments = (ins WG_BoolTensor:$x, DenseI64ArrayAttr:$axes);
  let results = (outs WG_BoolTensor:$y);
  let dtypes = "booleans";
  let samples = ["bool[2,3] = [0, 1, 0, 1, 1, 1] | axes = [1]",
    "bool[] = [1] | axes = []", "bool[1,2,1,1,3,1,1,1] = [0, 1, 0, 1, 1, 1] | axes = [1, 2, 7]", "bool[2,0,1] = [] | axes = [1]",
    "bool[0,3] = [] | axes = [1]"];
}

def WG_ArgmaxOp : WG_InferredOp<"argmax", "y = place of the largest of x along axis", [WG_NotDifferentiable<"has an integer result">, DeclareOpInterfaceMethods<WG_Structured>, WG_Batches]> {
  let description = [{First of equals; a NaN wins, the first one. An axis of size 0 is an error. Shapes: x number[...] -> y i64[... without axis].}];
  let arguments = (ins WG_NumberTensor:$x, I64Attr:$axis);
  let results = (outs WG_IndexTensor:$y);
  let assemblyFormat = "$x `axis` $axis attr-dict `:` type($x) `->` type($y)";
  let dtypes = "numbers";
  let samples = ["f64[3,4] in [-2, 2] | axis = 1", "f64[5] = [1, 3, 3, nan, nan] | axis = 0", "f64[3,4] in [-2, 2] | axis = 0",
    "f64[1,2,1,1,3,1,1,1] in [-2, 2] | axis = 4", "f64[0,3] in [-2, 2] | axis = 1", "f64[3,1] in [-2, 2] | axis = 1"];
  let without = ["rank 0: it goes along an axis"];
}

#endif // WG_OPS_REDUCE_TD
