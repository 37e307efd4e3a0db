//===- Contract.td - every product ------------------------------------------------------------------===//
#ifndef WG_OPS_CONTRACT_TD
#define WG_OPS_CONTRACT_TD

include "ir/Dialect.td"

def WG_ContractOp : WG_InferredOp<"contract", "c = sum of a * b over the letters that c lacks", [WG_IsBilinear, WG_Batches]> {
  let description = [{
    A product of two tensors as an einsum: `"mk,kn->mn"`. A letter names an axis; within one tensor letters differ, and each letter
    appears in at least two of the three, so that both derivatives are contractions too. f16 and bf16 accumulate in f32.
    Matrix product, batched, transposed and outer product are all this op.
    A convolution is one whose equation has relations as well: in `"hc,rco->po; h=2p+3r-1"` the letters h, p and r are an axis of one tensor each,
    one of each tensor, and a term exists for those of their places that fulfil the relation (stride 2, dilation 3, one place of padding before).
    Nothing is added for places outside: padding is not multiplied, so an infinite weight beside it makes no NaN. The general form is
    `B h = S p + D r + C` of integers below 2^31, B and S >= 1, D not 0; h, p and r may be of any of the tensors, and derivatives keep the relation. The sizes
    of c's related letters follow `to`, in the order of the relations; any sizes are accepted.
    Example: `%c = wg.contract "mk,kn->mn" %a, %b : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>`,
    `%c = wg.contract "hc,rco->po; h=p+r" %a, %b to [?] sizes %n : tensor<?x3xf32>, tensor<2x3x4xf32> -> tensor<?x4xf32>`
  }];
  let arguments = (ins WG_FloatTensor:$a, WG_FloatTensor:$b, StrAttr:$equation, DefaultValuedAttr<WG_Sizes, "{}">:$related,
                       Variadic<Index>:$sizes);
  let results = (outs WG_FloatTensor:$c);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::llvm::StringRef":$equation)>,
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b, "::llvm::StringRef":$equation, "::llvm::ArrayRef<::mlir::OpFoldResult>":$related)>,
    OpBuilder<(ins "::mlir::Type":$c, "::mlir::Value":$a, "::mlir::Value":$b, "::llvm::StringRef":$equation)>,
  ];
  let assemblyFormat = "$equation $a `,` $b (`to` custom<Sizes>($related)^)? (`sizes` $sizes^)? attr-dict `:` type($a) `,` type($b) `->` type($c)";
  let dtypes = "floats";
  let publicFunction = 0;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    /// The letters of the three tensors: `mk`, `kn`, `mn`.
    ::llvm::StringRef lettersOfA();
    ::llvm::StringRef lettersOfB();
    ::llvm::StringRef lettersOfC();
    /// `h=2p+3r-1; w=2q+3s-1`; empty for most.
    ::llvm::StringRef relations();
    bool isRelated() { return !relations().empty(); }
    /// The number of the relation whose letter is axis `axis` of c, or -1.
    int64_t relationOf(int64_t axis);
    /// The letters by groups, with sizes and steps; a, b and c are of static shape.
    ::wg::runtime::Letters letters();
  }];
  let agreement = "4, 4 ulp of the absolute terms";
  let samples = ["f64[3,4] in [-1, 1]; f64[4,5] in [-1, 1] | equation = mk,kn->mn", "f64[4,3] in [-1, 1]; f64[4,5] in [-1, 1] | equation = km,kn->mn",
                 "f64[3,4] in [-1, 1]; f64[5,4] in [-1, 1] | equation = mk,nk->mn", "f64[2,3,4] in [-1, 1]; f64[2,4,5] in [-1, 1] | equation = bmk,bkn->bmn",
                 "f64[3] in [-1, 1]; f64[4] in [-1, 1] | equation = m,n->mn", "f64[6] in [-1, 1]; f64[6] in [-1, 1] | equation = k,k->",
                 "f64[3,4] in [-1, 1]; f64[4] in [-1, 1] | equation = mk,k->m", "f64[2,3,4] in [-1, 1]; f64[4,5] in [-1, 1] | equation = abk,kn->abn",
                 "f64[2,9,7,2,3] in [-1, 1]; f64[3,2,2,3,2] in [-1, 1] | equation = nhwgc,rsgco->npqgo; h=2p+2r-1; w=2q+2s-1; related = [5, 4]",
                 "f64[2,5,4,2,2] in [-1, 1]; f64[3,2,2,3,2] in [-1, 1] | equation = npqgo,rsgco->nhwgc; h=2p+2r-1; w=2q+2s-1; related = [9, 7]",
                 "f64[2,9,7,2,3] in [-1, 1]; f64[2,5,4,2,2] in [-1, 1] | equation = nhwgc,npqgo->rsgco; h=2p+2r-1; w=2q+2s-1; related = [3, 2]",
                 "f64[2,6,7,3] in [-1, 1]; f64[3,2,3] in [-1, 1] | equation = nhwg,rsg->npqg; h=p+r-1; w=q+s; related = [6, 6]",
                 "f64[5,2] in [-1, 1]; f64[3,2,4] in [-1, 1] | equation = pc,rco->ho; 2h=3p+r-2; related = [8]",
                 "f64[2,11] in [-1, 1]; f64[4] in [-1, 1] | equation = nh,r->np; h=3p-2r+4; related = [5]",
                 "f64[2,3,6] in [-1, 1]; f64[4,3,3] in [-1, 1] | equation = nch,ocr->nop; h=p+r-1; related = [6]",
                 "f64[3,2] in [-1, 1]; f64[7,2,3] in [-1, 1] | equation = hc,rco->po; h=p+r-2; related = [4]",
                 "f64[3,2] in [-1, 1]; f64[2,2,3] in [-1, 1] | equation = hc,rco->po; h=p+r+9; related = [4]",
                 "f64[0,2] in [-1, 1]; f64[2,2,3] in [-1, 1] | equation = hc,rco->po; h=p+r-1; related = [2]",
    "f64[] in [-1, 1]; f64[] in [-1, 1] | equation = ,->", "f64[0,4] in [-1, 1]; f64[4,5] in [-1, 1] | equation = mk,kn->mn",
    "f64[2,0] in [-1, 1]; f64[0,3] in [-1, 1] | equation = mk,kn->mn", "f64[1,4] in [-1, 1]; f64[4,1] in [-1, 1] | equation = mk,kn->mn",
    "f64[1,2,1,1,2,1,1,3] in [-1, 1]; f64[1,2,1,1,2,1,3,1] in [-1, 1] | equation = abcdefmk,abcdefkn->abcdefmn"];
}

#endif // WG_OPS_CONTRACT_TD
