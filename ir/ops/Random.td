//===- Random.td - numbers from a key and a counter ---------------------------------------------------===//
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): element i of a result is a function of the key and of i alone.
//
#ifndef WG_OPS_RANDOM_TD
#define WG_OPS_RANDOM_TD

include "ir/Dialect.td"

def WG_RandomUniformOp : WG_InferredOp<"random_uniform", "y = uniform in [0, 1)", [WG_NotDifferentiable<"has integer operands only">, DeclareOpInterfaceMethods<WG_Indexed>, WG_Batches]> {
  let description = [{
    Element i (row-major) is a function of key and i alone: f32 takes 24 bits, f64 53. Equal in every engine.
    Several keys give what each gives alone. Shapes: key i64[..., 2] -> y dtype[..., shape].
  }];
  let arguments = (ins WG_IndexTensor:$key, WG_Sizes:$shape, TypeAttr:$dtype, Variadic<Index>:$sizes);
  let results = (outs WG_FloatTensor:$y);
  let assemblyFormat = "$key `to` custom<Sizes>($shape) (`sizes` $sizes^)? attr-dict `:` type($key) `->` type($y)";
  let dtypes = "integers";
  let publicFunction = 0;
  let samples = ["i64[2] = [42, 7] | shape = [3, 5]; dtype = f32", "i64[2] = [42, 7] | shape = [9]; dtype = f64",
                 "i64[3,2] = [42, 7, 1, 2, 42, 8] | shape = [5]; dtype = f64",
    "i64[2] = [42, 7] | shape = []; dtype = f64", "i64[2] = [42, 7] | shape = [0, 3]; dtype = f64",
    "i64[2] = [42, 7] | shape = [1, 2, 1, 1, 3, 1, 1, 1]; dtype = f64"];
}

def WG_RandomBitsOp : WG_InferredOp<"random_bits", "y = uniform bits", [WG_NotDifferentiable<"has integer operands only">, DeclareOpInterfaceMethods<WG_Indexed>, WG_Batches]> {
  let description = [{Element i (row-major) is a function of key and i alone; all bits of i32 or i64 are used. Several keys give what each gives alone.
    Shapes: key i64[..., 2] -> y dtype[..., shape].}];
  let arguments = (ins WG_IndexTensor:$key, WG_Sizes:$shape, TypeAttr:$dtype, Variadic<Index>:$sizes);
  let results = (outs WG_IndexTensor:$y);
  let assemblyFormat = "$key `to` custom<Sizes>($shape) (`sizes` $sizes^)? attr-dict `:` type($key) `->` type($y)";
  let dtypes = "integers";
  let publicFunction = 0;
  let samples = ["i64[2] = [42, 7] | shape = [3, 5]; dtype = i32", "i64[2] = [42, 7] | shape = [9]; dtype = i64",
                 "i64[2,1,2] = [42, 7, 1, 2] | shape = [3]; dtype = i32",
    "i64[2] = [42, 7] | shape = []; dtype = i64", "i64[2] = [42, 7] | shape = [0, 3]; dtype = i32",
    "i64[2] = [42, 7] | shape = [1, 2, 1, 1, 3, 1, 1, 1]; dtype = i32"];
}

#endif // WG_OPS_RANDOM_TD
