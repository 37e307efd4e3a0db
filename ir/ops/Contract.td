//===- Contract.td - every product ------------------------------------------------------------------===//
#ifndef WG_OPS_CONTRACT_TD
#define WG_OPS_CONTRACT_TD

include "ir/Dialect.td"

def WG_ContractOp : WG_InferredOp<"contract", "c = sum of a * b over the letters that c lacks", [WG_IsBilinear, WG_Batches]> {
  let description = [{
    A product of two tensors as an einsum: `"mk,kn->mn"`. A letter names an axis; within one tensor letters differ, and each letter
    appears in at least two of the three, so that both derivatives are contractions too. f16 and bf16 accumulate in f32.
    Matrix product, batched, transposed and outer product are all this op.
    Example: `%c = wg.contract "mk,kn->mn" %a, %b : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>`
  }];
  let arguments = (ins WG_FloatTensor:$a, WG_FloatTensor:$b, StrAttr:$equation);
  let results = (outs WG_FloatTensor:$c);
  let assemblyFormat = "$equation $a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($c)";
  let dtypes = "floats";
  let publicFunction = 0;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    /// The letters of the three tensors: `mk`, `kn`, `mn`.
    ::llvm::StringRef lettersOfA();
    ::llvm::StringRef lettersOfB();
    ::llvm::StringRef lettersOfC();
    /// The letters by groups, with sizes and steps; a and b are of static shape.
    ::wg::runtime::Letters letters();
  }];
  let agreement = "4, 4 ulp of the absolute terms";
  let samples = ["f64[3,4] in [-1, 1]; f64[4,5] in [-1, 1] | equation = mk,kn->mn", "f64[4,3] in [-1, 1]; f64[4,5] in [-1, 1] | equation = km,kn->mn",
                 "f64[3,4] in [-1, 1]; f64[5,4] in [-1, 1] | equation = mk,nk->mn", "f64[2,3,4] in [-1, 1]; f64[2,4,5] in [-1, 1] | equation = bmk,bkn->bmn",
                 "f64[3] in [-1, 1]; f64[4] in [-1, 1] | equation = m,n->mn", "f64[6] in [-1, 1]; f64[6] in [-1, 1] | equation = k,k->",
                 "f64[3,4] in [-1, 1]; f64[4] in [-1, 1] | equation = mk,k->m", "f64[2,3,4] in [-1, 1]; f64[4,5] in [-1, 1] | equation = abk,kn->abn"];
}

#endif // WG_OPS_CONTRACT_TD
