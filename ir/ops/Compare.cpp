// Comparisons: IEEE order of floats, NaN unequal to all; integers signed but for u8 and bool.
#include "ir/Dialect.h"
#include "ir/ops/Scalar.h"

using namespace mlir;

namespace wg::ir {

Value compare(OpBuilder &b, Location loc, Order order, Value x, Value y) {
  using enum arith::CmpFPredicate;
  using enum arith::CmpIPredicate;
  static constexpr arith::CmpFPredicate floats[] = {OEQ, UNE, OLT, OLE, OGT, OGE};
  static constexpr arith::CmpIPredicate signeds[] = {eq, ne, slt, sle, sgt, sge},
                                        unsigneds[] = {eq, ne, ult, ule, ugt, uge};
  auto i = static_cast<size_t>(order);
  if (isFloat(x))
    return arith::CmpFOp::create(b, loc, floats[i], x, y);
  return arith::CmpIOp::create(b, loc, isUnsigned(x) ? unsigneds[i] : signeds[i], x, y);
}

Value EqualOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return compare(b, loc, Order::equal, x[0], x[1]); }
Value NotEqualOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return compare(b, loc, Order::notEqual, x[0], x[1]);
}
Value LessOp::scalar(OpBuilder &b, Location loc, ValueRange x) { return compare(b, loc, Order::less, x[0], x[1]); }
Value LessEqualOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return compare(b, loc, Order::lessEqual, x[0], x[1]);
}
Value GreaterOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return compare(b, loc, Order::greater, x[0], x[1]);
}
Value GreaterEqualOp::scalar(OpBuilder &b, Location loc, ValueRange x) {
  return compare(b, loc, Order::greaterEqual, x[0], x[1]);
}

} // namespace wg::ir
