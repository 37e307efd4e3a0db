// Operators, tensors made of numbers, and how many threads compute.
#include "frontend/ops/Operands.h"

#include "runtime/ThreadPool.h"

#include <algorithm>
#include <limits>

namespace wg {

using detail::checkSizes;
using detail::filledWith;
using detail::iota;
using detail::raiseOp;
using detail::tensorOf;
using detail::text;
using runtime::OpId;

Tensor operator+(const Located &a, const Located &b) { return add(a, b); }
Tensor operator-(const Located &a, const Located &b) { return sub(a, b); }
Tensor operator*(const Located &a, const Located &b) { return mul(a, b); }
Tensor operator/(const Located &a, const Located &b) { return div(a, b); }
Tensor operator%(const Located &a, const Located &b) { return remainder(a, b); }
Tensor operator-(const Located &x) { return neg(x); }
Tensor operator+(const Located &x) { return identity(x); }
Tensor operator==(const Located &a, const Located &b) { return equal(a, b); }
Tensor operator!=(const Located &a, const Located &b) { return not_equal(a, b); }
Tensor operator<(const Located &a, const Located &b) { return less(a, b); }
Tensor operator<=(const Located &a, const Located &b) { return less_equal(a, b); }
Tensor operator>(const Located &a, const Located &b) { return greater(a, b); }
Tensor operator>=(const Located &a, const Located &b) { return greater_equal(a, b); }
Tensor operator&&(const Located &a, const Located &b) { return logical_and(a, b); }
Tensor operator||(const Located &a, const Located &b) { return logical_or(a, b); }
Tensor operator!(const Located &x) { return logical_not(x); }
Tensor &operator+=(Tensor &a, const Located &b) { return a = add(Located(a, b.where()), b); }
Tensor &operator-=(Tensor &a, const Located &b) { return a = sub(Located(a, b.where()), b); }
Tensor &operator*=(Tensor &a, const Located &b) { return a = mul(Located(a, b.where()), b); }
Tensor &operator/=(Tensor &a, const Located &b) { return a = div(Located(a, b.where()), b); }

const Variable &operator+=(const Variable &a, const Located &b) {
  a.assign_add(b);
  return a;
}
const Variable &operator-=(const Variable &a, const Located &b) {
  a.assign_sub(b);
  return a;
}
const Variable &operator*=(const Variable &a, const Located &b) {
  a.assign(Located(mul(Located(a, b.where()), b), b.where()));
  return a;
}
const Variable &operator/=(const Variable &a, const Located &b) {
  a.assign(Located(div(Located(a, b.where()), b), b.where()));
  return a;
}

Tensor zeros(const Shape &shape, DType dtype, Where where) {
  checkSizes("zeros", shape, where, dtype, true);
  return filledWith(Located(0, where), dtype, shape, where, "zeros");
}
Tensor ones(const Shape &shape, DType dtype, Where where) {
  checkSizes("ones", shape, where, dtype, true);
  return filledWith(Located(1, where), dtype, shape, where, "ones");
}
Tensor full(const Shape &shape, const Located &value, std::optional<DType> dtype) {
  if (value.isLiteral()) {
    DType as = dtype.value_or(value.literalType());
    checkSizes("full", shape, value.where(), as, true);
    return filledWith(value, as, shape, value.where());
  }
  Tensor x = dtype ? cast(value, *dtype) : value.tensor();
  return broadcast_to(Located(x, value.where()), shape);
}

Tensor arange(int64_t stop, DType dtype, Where where) { return arange(0, stop, 1, dtype, where); }
Tensor arange(int64_t start, int64_t stop, int64_t step, DType dtype, Where where) {
  if (step == 0)
    raiseOp("arange", "the step is 0", "give a step that leads from start to stop", {}, where);
  // In 128 bits: stop - start may be beyond 64.
  using Wide = __int128;
  Wide wide = std::max<Wide>(0, (Wide(stop) - start + step - (step > 0 ? 1 : -1)) / step);
  if (wide > runtime::kMaxBytes / 8) // of i64, in which integers are counted
    raiseOp("arange",
            "the result from " + std::to_string(start) + " to " + std::to_string(stop) + " by " + std::to_string(step) +
                " has more than 2^56 bytes, the most that a tensor may have",
            "give a larger step", {}, where);
  auto count = static_cast<int64_t>(wide);
  bool integer = runtime::isInteger(dtype);
  for (Wide end : {Wide(start), start + (wide - 1) * step})
    if (integer && count != 0)
      detail::checkHolds(Located(static_cast<int64_t>(end), where), dtype);
  if (step == 1 && start == 0)
    return iota({count}, 0, dtype, where);
  // Integers in i64: a narrower dtype may hold the elements and not the step.
  Tensor x = iota({count}, 0, integer ? i64 : dtype, where);
  if (step != 1)
    x = mul(Located(x, where), Located(step, where));
  if (start != 0)
    x = add(Located(x, where), Located(start, where));
  return x.dtype() == dtype ? x : cast(Located(x, where), dtype);
}
Tensor linspace(double start, double stop, int64_t count, DType dtype, Where where) {
  if (count < 0)
    raiseOp("linspace", "the count " + std::to_string(count) + " is negative", "give 0 or more", {}, where);
  if (!runtime::isFloat(dtype))
    raiseOp("linspace", "the dtype is " + std::string(nameOf(dtype)), "use a float dtype, or arange", {}, where,
            ErrorKind::type);
  checkSizes("linspace", {count}, where, dtype);
  Tensor x = iota({count}, 0, dtype, where);
  double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  return add(mul(Located(x, where), Located(step, where)), Located(start, where));
}
Tensor eye(int64_t rows, std::optional<int64_t> columns, DType dtype, Where where) {
  Shape shape{rows, columns.value_or(rows)};
  checkSizes("eye", shape, where);
  return cast(
      Located(equal(Located(iota(shape, 0, i64, where), where), Located(iota(shape, 1, i64, where), where)), where),
      dtype);
}

void set_num_threads(int count, Where where) {
  if (count < 1 || count > runtime::kMaxThreads)
    raiseOp("set_num_threads",
            std::to_string(count) + " threads; a count lies in [1, " + std::to_string(runtime::kMaxThreads) + "]",
            "give the number of cores to use, or 1 for none beside the caller", {}, where);
  runtime::setNumThreads(count);
}

} // namespace wg
