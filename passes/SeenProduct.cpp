#include "passes/SeenProduct.h"

using namespace mlir;

namespace wg::passes {

SeenProduct::SeenProduct(ir::ContractOp op, bool isA)
    : x(isA ? op.getA() : op.getB()), other(isA ? op.getB() : op.getA()),
      letters(isA ? op.lettersOfA() : op.lettersOfB()), ofOther(isA ? op.lettersOfB() : op.lettersOfA()),
      ofC(op.lettersOfC()), isA(isA) {}

int64_t SeenProduct::places(llvm::function_ref<bool(char)> chosen) const {
  int64_t places = 1;
  for (auto [letter, size] : llvm::zip_equal(letters, cast<RankedTensorType>(x.getType()).getShape()))
    places *= chosen(letter) ? size : 1;
  return places;
}

int64_t SeenProduct::rows() const {
  return places([&](char letter) { return has(ofC, letter) && !has(ofOther, letter); });
}

int64_t SeenProduct::terms() const {
  return places([&](char letter) { return !has(ofC, letter); });
}

std::string SeenProduct::freeLetter() const {
  char letter = 'a';
  while (has(letters, letter) || has(ofOther, letter) || has(ofC, letter))
    ++letter;
  return std::string(1, letter);
}

Value SeenProduct::with(OpBuilder &b, Location loc, Value x, const std::string &letters, Value other,
                        const std::string &ofOther, const std::string &ofC) const {
  if (isA)
    return ir::ContractOp::create(b, loc, x, other, runtime::Equation{letters, ofOther, ofC}.text());
  return ir::ContractOp::create(b, loc, other, x, runtime::Equation{ofOther, letters, ofC}.text());
}

Value inOrder(OpBuilder &b, Location loc, Value x, StringRef from, StringRef to) {
  if (from == to)
    return x;
  SmallVector<int64_t> permutation;
  for (char letter : to)
    permutation.push_back(static_cast<int64_t>(from.find(letter)));
  return ir::TransposeOp::create(b, loc, x, permutation);
}

bool isPlainProduct(ir::ContractOp op) {
  return op && !op.isRelated() && op.getA().getType().hasStaticShape() && op.getB().getType().hasStaticShape();
}

} // namespace wg::passes
