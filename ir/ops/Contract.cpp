// Every product, by an equation over letters.
#include "ir/Build.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace wg::ir {

StringRef ContractOp::lettersOfA() { return runtime::partsOf(getEquation()).a; }
StringRef ContractOp::lettersOfB() { return runtime::partsOf(getEquation()).b; }
StringRef ContractOp::lettersOfC() { return runtime::partsOf(getEquation()).c; }

StringRef ContractOp::relations() { return runtime::partsOf(getEquation()).relations; }

runtime::Letters ContractOp::letters() {
  return {runtime::partsOf(getEquation()), getA().getType().getShape(), getB().getType().getShape(), getRelated()};
}

int64_t ContractOp::relationOf(int64_t axis) {
  runtime::Equation equation = runtime::partsOf(getEquation());
  for (auto [i, relation] : llvm::enumerate(runtime::relationsOf(equation)))
    if (relation.c == equation.c[axis])
      return i;
  return -1;
}

/// `ab,bc->ac` of its three parts, and the relations.
static std::string equationOf(StringRef a, StringRef b, StringRef c, StringRef relations = {}) {
  return runtime::Equation{a, b, c, relations}.text();
}

//===- Building and text ------------------------------------------------------------------------------------===//

void ContractOp::build(OpBuilder &b, OperationState &state, Value a, Value c, StringRef equation) {
  build(b, state, a, c, equation, ArrayRef<int64_t>(), ValueRange());
}

void ContractOp::build(OpBuilder &b, OperationState &state, Value a, Value c, StringRef equation,
                       ArrayRef<OpFoldResult> related) {
  SmallVector<int64_t> known;
  SmallVector<Value> sizes;
  dispatchIndexOpFoldResults(related, sizes, known);
  build(b, state, a, c, equation, known, sizes);
}

void ContractOp::build(OpBuilder &b, OperationState &state, Type type, Value a, Value c, StringRef equation) {
  build(b, state, type, a, c, equation, ArrayRef<int64_t>(), ValueRange());
}

//===- Derivatives ------------------------------------------------------------------------------------------===//

/// The sizes that the related letters have in `x`, which becomes the result.
static SmallVector<OpFoldResult> relatedIn(Expr ct, Value x, StringRef letters, const runtime::Equation &equation) {
  SmallVector<OpFoldResult> sizes;
  for (const runtime::Relation &relation : runtime::relationsOf(equation))
    for (char letter : {relation.a, relation.b, relation.c})
      if (size_t axis = letters.find(letter); axis != StringRef::npos)
        sizes.push_back(ct.sizeOf(x, static_cast<int64_t>(axis)));
  return sizes;
}

/// c = sum over k of a[i, k] b[k, j], so da = contract(ct, b) over j and db = contract(a, ct) over i:
/// each operand's cotangent contracts the other two, with the index letters exchanged (Giles 2008). Relations are of
/// one letter of each tensor, whichever is the result.
Terms ContractOp::transpose(Expr ct) {
  runtime::Equation all = runtime::partsOf(getEquation());
  return {ct.make<ContractOp>(ct, getB(), equationOf(all.c, all.b, all.a, all.relations),
                              relatedIn(ct, getA(), all.a, all)),
          ct.make<ContractOp>(getA(), ct, equationOf(all.a, all.c, all.b, all.relations),
                              relatedIn(ct, getB(), all.b, all))};
}

//===- Batches ----------------------------------------------------------------------------------------------===//

/// One more letter, of those operands that have the axis, and of c.
FailureOr<Expr> ContractOp::batch(const Lanes &x) {
  StringRef all = "abcdefghijklmnopqrstuvwxyz";
  std::string lane(1, all[all.find_first_not_of(getEquation())]);
  auto letters = [&](size_t i, StringRef own) { return x.isBatched(i) ? lane + own.str() : own.str(); };
  return x[0].make<ContractOp>(
      x[0], x[1],
      equationOf(letters(0, lettersOfA()), letters(1, lettersOfB()), lane + lettersOfC().str(), relations()),
      x[0].mixed(getRelated(), x.at(getSizes())));
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
  rewriter.replaceOpWithNewOp<ContractOp>(op, op.getType(), a, b,
                                          equationOf(lettersA, lettersB, op.lettersOfC(), op.relations()),
                                          op.getRelated(), op.getSizes());
  return success();
}

void ContractOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(absorbTransposes);
}

} // namespace wg::ir
