// Every product, by an equation over letters.
#include "ir/Build.h"

using namespace mlir;

namespace wg::ir {

StringRef ContractOp::lettersOfA() { return runtime::partsOf(getEquation()).a; }
StringRef ContractOp::lettersOfB() { return runtime::partsOf(getEquation()).b; }
StringRef ContractOp::lettersOfC() { return runtime::partsOf(getEquation()).c; }

runtime::Letters ContractOp::letters() {
  return {runtime::partsOf(getEquation()), getA().getType().getShape(), getB().getType().getShape()};
}

/// `ab,bc->ac` of its three parts.
static std::string equationOf(StringRef a, StringRef b, StringRef c) { return runtime::Equation{a, b, c}.text(); }

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// c = sum over k of a[i, k] b[k, j], so da = contract(ct, b) over j and db = contract(a, ct) over i:
/// each operand's cotangent contracts the other two, with the index letters exchanged (Giles 2008).
Terms ContractOp::transpose(Expr ct) {
  return {ct.make<ContractOp>(ct, getB(), equationOf(lettersOfC(), lettersOfB(), lettersOfA())),
          ct.make<ContractOp>(getA(), ct, equationOf(lettersOfA(), lettersOfC(), lettersOfB()))};
}

//===- Batches ----------------------------------------------------------------------------------------------===//

/// One more letter, of those operands that have the axis, and of c.
FailureOr<Expr> ContractOp::batch(const Lanes &x) {
  StringRef all = "abcdefghijklmnopqrstuvwxyz";
  std::string lane(1, all[all.find_first_not_of(getEquation())]);
  auto letters = [&](size_t i, StringRef own) { return x.isBatched(i) ? lane + own.str() : own.str(); };
  return x[0].make<ContractOp>(
      x[0], x[1], equationOf(letters(0, lettersOfA()), letters(1, lettersOfB()), lane + lettersOfC().str()));
}

//===- Canonicalisation -------------------------------------------------------------------------------------===//

/// contract of transposed operands = contract of the operands, the letters permuted. The order in which a program was
/// written is lost: the order that is best for its kernel is chosen from all, by wg-arrange-products.
static LogicalResult absorbTransposes(ContractOp op, PatternRewriter &rewriter) {
  auto absorb = [](Value &x, std::string &letters) {
    auto transposed = x.getDefiningOp<TransposeOp>();
    if (!transposed)
      return false;
    // Axis i of the transposed value is axis permutation[i] of its operand.
    std::string permuted = letters;
    for (auto [i, axis] : llvm::enumerate(transposed.getPermutation()))
      permuted[axis] = letters[i];
    x = transposed.getX();
    letters = permuted;
    return true;
  };
  Value a = op.getA(), b = op.getB();
  std::string lettersA = op.lettersOfA().str(), lettersB = op.lettersOfB().str();
  bool absorbedA = absorb(a, lettersA), absorbedB = absorb(b, lettersB);
  if (!absorbedA && !absorbedB)
    return failure();
  rewriter.replaceOpWithNewOp<ContractOp>(op, op.getType(), a, b, equationOf(lettersA, lettersB, op.lettersOfC()));
  return success();
}

void ContractOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(absorbTransposes);
}

} // namespace wg::ir
