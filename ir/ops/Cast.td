//===- Cast.td - from one dtype to another ---------------------------------------------------------===//
#ifndef WG_OPS_CAST_TD
#define WG_OPS_CAST_TD

include "ir/Dialect.td"

def WG_CastOp : WG_ElementwiseOp<"cast", "y = x in another dtype", [WG_IsLinear]> {
  let description = [{
    Float to integer: toward zero, saturating, NaN -> 0. Integer to narrower: modulo 2^n. To bool: x != 0. f64 -> f32: nearest
    even. The gradient passes between floats only; a cast from or to an integer has none. Shapes: x any[...] -> y dtype[...].
  }];
  let arguments = (ins WG_Tensor:$x, TypeAttr:$dtype);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let dtypes = "any";
  let hasFolder = 1;
  let samples = ["f64[2,3] in [-3, 3] | dtype = f32", "f32[2,3] in [-3, 3] | dtype = f64", "f64[4] = [-1e20, nan, 2.7, -2.7] | dtype = i32",
                 "i64[3] = [300, -1, 7] | dtype = u8", "f32[3] = [0, nan, 2] | dtype = bool", "bool[2] = [0, 1] | dtype = f32"];
}

#endif // WG_OPS_CAST_TD
