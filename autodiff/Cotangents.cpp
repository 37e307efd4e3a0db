#include "autodiff/Cotangents.h"

#include "ir/Build.h"

using namespace mlir;

namespace wg::autodiff {

void Cotangents::add(Value primal, Value contribution, Location loc) {
  Value &sum = sums_[primal];
  sum = sum ? ir::AddOp::create(b_, loc, sum, contribution).getResult() : contribution;
}

Value Cotangents::orZeros(Value primal) {
  Value sum = sums_.lookup(primal);
  return sum ? sum : ir::zerosLike(b_, loc_, primal);
}

} // namespace wg::autodiff
