#include "ir/Expr.h"

#include "ir/Build.h"
#include "ir/Dialect.h"
#include "ir/Rules.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace wg::ir {

Expr Expr::filled(double number) const {
  if (number == 1)
    return at(onesLike(*builder_, *loc_, value_));
  if (number == 0 && !std::signbit(number))
    return at(zerosLike(*builder_, *loc_, value_));
  return at(fullLike(*builder_, *loc_, value_, number));
}

Expr Expr::transposed(ArrayRef<int64_t> permutation) const {
  return at(ir::transpose(*builder_, *loc_, value_, permutation));
}
Expr Expr::reshaped(ArrayRef<OpFoldResult> shape) const { return at(ir::reshape(*builder_, *loc_, value_, shape)); }
Expr Expr::reshapedLike(Value like) const { return at(ir::reshapeLike(*builder_, *loc_, value_, like)); }
Expr Expr::sliced(ArrayRef<OpFoldResult> starts, ArrayRef<OpFoldResult> limits, ArrayRef<int64_t> strides) const {
  return at(ir::slice(*builder_, *loc_, value_, starts, limits, strides));
}
Expr Expr::padded(ArrayRef<OpFoldResult> low, ArrayRef<OpFoldResult> high, ArrayRef<int64_t> interior) const {
  return at(ir::pad(*builder_, *loc_, value_, low, high, interior));
}
Expr Expr::broadcast(ArrayRef<OpFoldResult> shape, ArrayRef<int64_t> dims) const {
  return at(ir::broadcast(*builder_, *loc_, value_, shape, dims));
}
Expr Expr::scattered(Value indices, ArrayRef<OpFoldResult> shape, int64_t batchDims) const {
  SmallVector<int64_t> known;
  SmallVector<Value> sizes;
  dispatchIndexOpFoldResults(shape, sizes, known);
  return make<ScatterAddOp>(value_, indices, known, batchDims, sizes);
}
Expr Expr::summedTo(ArrayRef<int64_t> dims, Value x) const { return at(ir::sumTo(*builder_, *loc_, value_, dims, x)); }
Expr Expr::unreduced(ArrayRef<int64_t> axes, Value x) const {
  return at(ir::unreduce(*builder_, *loc_, value_, axes, x));
}

OpFoldResult Expr::sizeOf(Value x, int64_t axis) const { return ir::sizeOf(*builder_, *loc_, x, axis); }
SmallVector<Value> Expr::dynamicSizes(Value x) const { return ir::dynamicSizes(*builder_, *loc_, x); }
OpFoldResult Expr::size(StringRef formula, ArrayRef<OpFoldResult> sizes) const {
  return ir::computeSize(*builder_, *loc_, formula, sizes);
}
SmallVector<OpFoldResult> Expr::mixed(ArrayRef<int64_t> known, ValueRange operands) const {
  return getMixedValues(known, operands, *builder_);
}

Expr operator+(const Expr &a, const Expr &b) { return a.make<AddOp>(a, b); }
Expr operator-(const Expr &a, const Expr &b) { return a.make<SubOp>(a, b); }
Expr operator*(const Expr &a, const Expr &b) { return a.make<MulOp>(a, b); }
Expr operator/(const Expr &a, const Expr &b) { return a.make<DivOp>(a, b); }
Expr operator-(const Expr &x) { return x.make<NegOp>(x); }
Expr operator>(const Expr &a, const Expr &b) { return a.make<GreaterOp>(a, b); }
Expr operator>=(const Expr &a, const Expr &b) { return a.make<GreaterEqualOp>(a, b); }
Expr operator<(const Expr &a, const Expr &b) { return a.make<LessOp>(a, b); }
Expr equal(const Expr &a, const Expr &b) { return a.make<EqualOp>(a, b); }
Expr operator&&(const Expr &a, const Expr &b) { return a.make<LogicalAndOp>(a, b); }
Expr notOf(const Expr &x) { return x.make<LogicalNotOp>(x); }
Expr where(const Expr &condition, const Expr &a, const Expr &b) { return a.make<SelectOp>(condition, a, b); }

Expr exp(const Expr &x) { return x.make<ExpOp>(x); }
Expr log(const Expr &x) { return x.make<LogOp>(x); }
Expr sin(const Expr &x) { return x.make<SinOp>(x); }
Expr cos(const Expr &x) { return x.make<CosOp>(x); }
Expr abs(const Expr &x) { return x.make<AbsOp>(x); }
Expr sign(const Expr &x) { return x.make<SignOp>(x); }
Expr sigmoid(const Expr &x) { return x.make<SigmoidOp>(x); }
Expr pow(const Expr &a, const Expr &b) { return a.make<PowOp>(a, b); }
Expr floorDiv(const Expr &a, const Expr &b) { return a.make<FloorDivOp>(a, b); }
Expr sum(const Expr &x, ArrayRef<int64_t> axes) { return x.make<ReduceSumOp>(x, axes); }
Expr product(const Expr &x, ArrayRef<int64_t> axes) { return x.make<ReduceProdOp>(x, axes); }

Slope::Slope(const Expr &slope) : apply_([slope](const Expr &ct) { return ct * slope; }) {}
Slope::Slope(double slope)
    : apply_([slope](const Expr &ct) { return slope == 1    ? ct
                                              : slope == -1 ? -ct
                                                            : ct * slope; }) {}

Slope mask(const Expr &condition) {
  return Slope([condition](const Expr &ct) { return where(condition, ct, ct.zeros()); });
}
Slope unless(const Expr &condition) {
  return Slope([condition](const Expr &ct) { return where(condition, ct.zeros(), ct); });
}
Slope over(const Expr &divisor, double numerator) {
  return Slope([divisor, numerator](const Expr &ct) { return (numerator == 1 ? ct : ct * numerator) / divisor; });
}
Slope operator*(const Slope &slope, const Expr &x) {
  return Slope([slope, x](const Expr &ct) { return slope(ct) * x; });
}
Slope where(const Expr &condition, const Slope &a, const Slope &b) {
  return Slope([condition, a, b](const Expr &ct) { return where(condition, a(ct), b(ct)); });
}

OpFoldResult Lanes::count() const {
  size_t first = llvm::find(batched_, true) - batched_.begin();
  return sizeOf(builder_, loc_, values_[first], 0);
}

FailureOr<Expr> Lanes::spread(size_t i) const {
  if (batched_[i])
    return (*this)[i];
  size_t first = llvm::find(batched_, true) - batched_.begin();
  int64_t count = cast<RankedTensorType>(values_[first].getType()).getDimSize(0);
  if (failed(checkLanes(loc_, values_[i].getType(), count)))
    return failure();
  return (*this)[i].at(ir::spread(builder_, loc_, values_[i], this->count()));
}

SmallVector<OpFoldResult> Lanes::before(OpFoldResult first, ArrayRef<int64_t> known, OperandRange operands) const {
  SmallVector<OpFoldResult> sizes{first};
  llvm::append_range(sizes, getMixedValues(known, at(operands), builder_));
  return sizes;
}

SmallVector<Value> Lanes::at(OperandRange operands) const {
  if (operands.empty()) // which has no place
    return {};
  return SmallVector<Value>(values_.slice(operands.getBeginOperandIndex(), operands.size()));
}

SmallVector<int64_t> shifted(std::initializer_list<int64_t> first, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> all(first);
  for (int64_t axis : axes)
    all.push_back(axis + 1);
  return all;
}

} // namespace wg::ir
