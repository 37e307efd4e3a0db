//===- Compare.td - numbers in, bool out -----------------------------------------------------------===//
#ifndef WG_OPS_COMPARE_TD
#define WG_OPS_COMPARE_TD

include "ir/Dialect.td"

def WG_EqualOp : WG_CompareOp<"equal", "c = a == b"> {
  let description = [{IEEE equality: NaN is unequal to all, -0 equals 0. Shapes: a, b any[...] -> c bool[...].}];
  let samples = ["f64[4] = [1, 2, nan, 0]; f64[4] = [1, 3, nan, -0.0]"];
}
def WG_NotEqualOp : WG_CompareOp<"not_equal", "c = a != b"> {
  let description = [{Negation of equal. Shapes: a, b any[...] -> c bool[...].}];
  let samples = ["f64[4] = [1, 2, nan, 0]; f64[4] = [1, 3, nan, -0.0]"];
}
def WG_LessOp : WG_CompareOp<"less", "c = a < b"> {
  let description = [{IEEE order: false if either is NaN. Shapes: a, b any[...] -> c bool[...].}];
  let samples = ["f64[4] = [1, 2, nan, 3]; f64[4] = [1, 3, 0, 1]"];
}
def WG_LessEqualOp : WG_CompareOp<"less_equal", "c = a <= b"> {
  let description = [{IEEE order: false if either is NaN. Shapes: a, b any[...] -> c bool[...].}];
  let samples = ["f64[4] = [1, 2, nan, 3]; f64[4] = [1, 3, 0, 1]"];
}
def WG_GreaterOp : WG_CompareOp<"greater", "c = a > b"> {
  let description = [{IEEE order: false if either is NaN. Shapes: a, b any[...] -> c bool[...].}];
  let samples = ["f64[4] = [1, 2, nan, 3]; f64[4] = [1, 3, 0, 1]"];
}
def WG_GreaterEqualOp : WG_CompareOp<"greater_equal", "c = a >= b"> {
  let description = [{IEEE order: false if either is NaN. Shapes: a, b any[...] -> c bool[...].}];
  let samples = ["f64[4] = [1, 2, nan, 3]; f64[4] = [1, 3, 0, 1]"];
}

#endif // WG_OPS_COMPARE_TD
