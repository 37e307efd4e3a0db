// What the public operations have in common: operands made tensors, axes counted from the end, shapes made equal.
#pragma once

#include "frontend/staging/Apply.h"

#include <limits>
#include <new>
#include <string>

namespace wg::detail {

inline const TensorType &typeOf(const Tensor &x, const Where &where) { return x.body(where)->type; }
inline std::string text(const Shape &shape) { return toString(shape); }

/// A float as an integer: toward zero, saturating, NaN to 0.
template <class To> To saturated(double x) {
  using Limits = std::numeric_limits<To>;
  // The highest i64 is no double, but the number after it is.
  constexpr double low = static_cast<double>(Limits::min()), end = (static_cast<double>(Limits::max() / 2) + 1) * 2;
  return x >= end ? Limits::max() : x > low ? static_cast<To>(x) : x == x ? Limits::min() : To(0);
}

/// An operand as a tensor; a literal alone has the dtype of its C++ type.
Tensor tensorOf(const Located &x);
/// An operand beside one of `dtype`, which a literal takes: an error if it is an integer that the dtype does not hold.
Tensor tensorOf(const Located &x, DType dtype);
/// The same error for an integer literal that is made a tensor elsewhere.
void checkHolds(const Located &x, DType dtype);
/// Indices as the ops take them, i64 or i32; `what` they are.
Tensor indicesOf(const char *op, const char *what, const Located &x);
/// A literal everywhere in a shape.
Tensor filledWith(const Located &x, DType dtype, const Shape &shape, const Where &where, const char *op = "full");
/// The same, of a float; `op` is who asks.
Tensor floatOf(const char *op, const Located &x);

/// An axis as 0 <= axis < rank.
int64_t placeOf(const char *op, int64_t axis, int rank, const Where &where);
/// Sorted, distinct, not negative.
Ints placesOf(const char *op, const Axes &axes, int rank, const Where &where);

/// Sizes are not negative, and the bytes of all elements can be counted. A `?` is an error unless `open`,
/// where openSizes has the last word.
void checkSizes(const char *op, const Shape &shape, const Where &where, DType dtype = DType::f64, bool open = false);
/// The `?` of a shape as index operands, in order: the sizes of the tensor whose shape it is. An error
/// if it is no longer known whose.
std::vector<Tensor> openSizes(const char *op, const Shape &shape, const Where &where);

/// The result of `make()`; a lack of memory becomes an error that names `what`, a type or a string.
[[noreturn]] void raiseOutOfMemory(const char *op, const std::string &what, const Where &where);
template <class What, class F> auto orOutOfMemory(const char *op, const What &what, const Where &where, F make) {
  try {
    return make();
  } catch (const std::bad_alloc &) {
    if constexpr (std::same_as<What, TensorType>)
      raiseOutOfMemory(op, toString(what), where);
    else
      raiseOutOfMemory(op, what, where);
  }
}

/// A trace has no elements yet, and would read or write a file once, when it is made: an error.
void refuseTraces(const char *op, const Where &where);

/// The size of an axis of a symbolic tensor, as an index operand.
Tensor dim(const Tensor &x, int64_t axis, const Where &where);
/// A size that may be open: then it is known when the function runs, and `value` holds it.
struct Size {
  int64_t known = dynamic;
  Tensor value;
};
Size sizeOf(const Tensor &x, int64_t axis, const Where &where);
/// A formula over sizes, of which the first is `a` (runtime/SizeFormula.h); an error of `op` if all
/// are known and it has no value.
Size computeSize(const char *op, const std::string &formula, const std::vector<Size> &sizes, const Where &where);
/// A list of sizes as an attribute in which what is open is `?`, and the index operands for these.
struct Sizes {
  Ints list;
  std::vector<Tensor> values;
  void push_back(const Size &size) {
    list.push_back(size.known);
    if (size.known == dynamic)
      values.push_back(size.value);
  }
};
/// An op with one data operand, and an index operand for each `?`.
Tensor applySized(runtime::OpId op, const runtime::Attrs &attrs, const Tensor &x, const std::vector<Tensor> &sizes,
                  const Where &where);
/// x in another shape; the `?` of the new shape are `sizes`.
Tensor reshapeTo(const Tensor &x, const Shape &shape, const std::vector<Tensor> &sizes, const Where &where);
Tensor iota(const Shape &shape, int64_t axis, DType dtype, const Where &where);

/// The sizes are equal where both are static.
bool sameSizes(const Shape &a, const Shape &b);
/// x, integers of any shape, each the number of one of `classes` classes; one that is not is an error of `op` where it
/// is known, and when the function runs otherwise. `what` it is: `a label`.
Tensor classNumbers(const char *op, const char *what, const Tensor &x, int64_t classes, const Where &where);
/// -log softmax(logits)[label] of each example; `op` is who asks.
Tensor crossEntropies(const char *op, const Located &logits, const Located &labels);

/// What a loss compares element by element has the same shape, unless one is a scalar.
void checkPairs(const char *op, const Located &prediction, const Located &target);

/// One operand of a broadcast: the axes of the result that its own axes are aligned with end before the last.
struct Aligned {
  const Tensor *x;
  int64_t axisFor(int outAxis, int outRank) const { return outAxis - (outRank - x->body()->type.shape.rank()); }
  int64_t sizeFor(int outAxis, int outRank) const {
    int64_t axis = axisFor(outAxis, outRank);
    return axis < 0 ? 1 : x->body()->type.shape.dim(static_cast<int>(axis));
  }
};

/// NumPy's rule. A `?` beside a static size other than 1 is taken to be equal to it, and
/// checked when the function runs. The last `own` axes are each operand's own, and no part of the result.
Shape broadcastShape(const char *op, std::span<const Aligned> operands, const Where &where, int own = 0);
/// x in the broadcast shape; a `?` is the size of the operand that has it.
Tensor broadcastTo(const Tensor &x, const Shape &shape, std::span<const Aligned> operands, const Where &where);
/// The same, but for a scalar in eager code, which elementwise kernels take as it is.
Tensor inShape(const Tensor &x, const Shape &shape, std::span<const Aligned> operands, const Where &where);
/// Makes the axes of two tensors of matrices equal that are in front of the last two.
void broadcastInFront(const char *op, Tensor &x, Tensor &y, const Where &where);
void checkDTypes(const char *op, const Tensor &a, const Tensor &b, const Where &where);

} // namespace wg::detail
