// Public operations: operands made equal in shape and dtype, axes counted from the end, and what is composed of other
// ops. The functions that need nothing of this are written from the records (frontend/Ops.inc).
#include "frontend/Apply.h"

#include "runtime/ThreadPool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace wg {

using detail::applyOne;
using detail::literal;
using detail::raiseOp;
using runtime::OpId;

static const TensorType &typeOf(const Tensor &x, const Where &where) { return x.body(where)->type; }
static std::string text(const Shape &shape) { return toString(shape); }

/// An operand as a tensor; a literal alone has the dtype of its C++ type.
static Tensor tensorOf(const Located &x) {
  Tensor tensor = detail::operandOf(x, x.literalType());
  tensor.body(x.where());
  return tensor;
}

/// An axis as 0 <= axis < rank.
static int64_t placeOf(const char *op, int64_t axis, int rank, const Where &where) {
  if (axis < -rank || axis >= rank)
    raiseOp(op, "axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank),
            rank ? "an axis lies in [-" + std::to_string(rank) + ", " + std::to_string(rank - 1) + "]"
                 : "a scalar has no axes",
            {}, where);
  return axis < 0 ? axis + rank : axis;
}

/// Sorted, distinct, not negative.
static Ints placesOf(const char *op, const Axes &axes, int rank, const Where &where) {
  Ints places;
  if (!axes.list) {
    for (int axis = 0; axis < rank; ++axis)
      places.push_back(axis);
    return places;
  }
  for (int64_t axis : *axes.list) {
    int64_t place = placeOf(op, axis, rank, where);
    if (places.contains(place))
      raiseOp(op, "axis " + std::to_string(axis) + " is named twice", "name each axis once", {}, where);
    places.push_back(place);
  }
  std::sort(places.begin(), places.end());
  return places;
}

//===- Shapes
//------------------------------------------------------------------------------------------------------===//

/// The size of an axis of a symbolic tensor, as an index operand.
static Tensor dim(const Tensor &x, int64_t axis, const Where &where) {
  return applyOne(OpId::dim, runtime::DimAttrs::make(axis), {&x}, where);
}

/// An op with one data operand, and an index operand for each `?`.
static Tensor applySized(OpId op, const runtime::Attrs &attrs, const Tensor &x, const std::vector<Tensor> &sizes,
                         const Where &where) {
  std::vector<const Tensor *> operands{&x};
  for (const Tensor &size : sizes)
    operands.push_back(&size);
  Tensor result;
  detail::applyOp(op, attrs, operands, std::span(&result, 1), where);
  return result;
}

/// x in another shape; the `?` of the new shape are `sizes`.
static Tensor reshapeTo(const Tensor &x, const Shape &shape, const std::vector<Tensor> &sizes, const Where &where) {
  return applySized(OpId::reshape, runtime::ReshapeAttrs::make(shape), x, sizes, where);
}

/// One operand of a broadcast: the axes of the result that its own axes are aligned with end before the last.
struct Aligned {
  const Tensor *x;
  int64_t axisFor(int outAxis, int outRank) const { return outAxis - (outRank - x->body()->type.shape.rank()); }
  int64_t sizeFor(int outAxis, int outRank) const {
    int64_t axis = axisFor(outAxis, outRank);
    return axis < 0 ? 1 : x->body()->type.shape.dim(static_cast<int>(axis));
  }
};

/// NumPy's rule. A `?` beside a static size other than 1 is taken to be equal to it, and checked when the function
/// runs.
static Shape broadcastShape(const char *op, std::span<const Aligned> operands, const Where &where) {
  int rank = 0;
  for (const Aligned &operand : operands)
    rank = std::max(rank, operand.x->body()->type.shape.rank());
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) {
    int64_t size = 1;
    for (const Aligned &operand : operands) {
      int64_t other = operand.sizeFor(axis, rank);
      if (other == 1)
        continue;
      if (size != 1 && size != other && size != dynamic && other != dynamic) {
        std::string shapes;
        std::vector<TensorType> types;
        for (const Aligned &each : operands) {
          shapes += (shapes.empty() ? "" : ", ") + toString(each.x->body()->type);
          types.push_back(each.x->body()->type);
        }
        raiseOp(
            op,
            "shapes do not broadcast: " + shapes + " (" + std::to_string(size) + " != " + std::to_string(other) + ")",
            "sizes are aligned at the end; equal ones and 1 fit: use reshape or expand_dims", std::move(types), where);
      }
      if (size == 1 || size == dynamic)
        size = other;
    }
    shape.push_back(size);
  }
  return shape;
}

/// x in the broadcast shape; a `?` is the size of the operand that has it.
static Tensor broadcastTo(const Tensor &x, const Shape &shape, std::span<const Aligned> operands, const Where &where) {
  if (typeOf(x, where).shape == shape)
    return x;
  Ints dims;
  for (int axis = shape.rank() - typeOf(x, where).shape.rank(); axis < shape.rank(); ++axis)
    dims.push_back(axis);
  std::vector<Tensor> sizes;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape.dim(axis) == dynamic)
      for (const Aligned &operand : operands)
        if (operand.sizeFor(axis, shape.rank()) == dynamic) {
          sizes.push_back(dim(*operand.x, operand.axisFor(axis, shape.rank()), where));
          break;
        }
  return applySized(OpId::broadcast, runtime::BroadcastAttrs::make(shape, dims), x, sizes, where);
}

static void checkDTypes(const char *op, const Tensor &a, const Tensor &b, const Where &where) {
  const TensorType &x = typeOf(a, where), &y = typeOf(b, where);
  if (x.dtype != y.dtype) [[unlikely]]
    raiseOp(op, "dtypes differ: a is " + toString(x) + ", b is " + toString(y),
            "cast one: cast(b, " + std::string(nameOf(x.dtype)) + ")", {x, y}, where, ErrorKind::type);
}

//===- The words of the generated functions
//------------------------------------------------------------------------===//

namespace detail {

Tensor apply(OpId op, const Attrs &attrs, std::initializer_list<const Located *> operands) {
  DType dtype = (*operands.begin())->literalType();
  for (const Located *operand : operands)
    if (!operand->isLiteral()) {
      dtype = typeOf(operand->tensor(), operand->where()).dtype;
      break;
    }
  Tensor made[4];
  const Tensor *list[4];
  size_t count = 0;
  for (const Located *operand : operands) {
    if (operand->isLiteral())
      made[count] = operandOf(*operand, dtype);
    list[count] = operand->isLiteral() ? &made[count] : &operand->tensor();
    ++count;
  }
  Tensor result;
  applyOp(op, attrs, std::span(list, count), std::span(&result, 1), (*operands.begin())->where());
  return result;
}

/// A literal beside a tensor: filled to its shape where that is static.
static Tensor beside(const Located &number, const Tensor &other, const Where &where) {
  const TensorType &type = typeOf(other, where);
  Tensor scalar;
  bool plain = runtime::isFloat(type.dtype) || !runtime::isFloat(number.literalType());
  if (plain && type.dtype != DType::boolean && type.shape.isStatic())
    return literal(number.real(), number.integer(), type.dtype, type.shape, where);
  return operandOf(number, type.dtype);
}

Tensor binary(OpId op, const Located &a, const Located &b) {
  const Where &where = a.where() ? a.where() : b.where();
  Tensor madeA, madeB;
  const Tensor *x = nullptr, *y = nullptr;
  if (!a.isLiteral())
    x = &a.tensor();
  if (!b.isLiteral())
    y = &b.tensor();
  if (!x)
    x = &(madeA = y ? beside(a, *y, where) : operandOf(a, std::min(a.literalType(), b.literalType())));
  if (!y)
    y = &(madeB = beside(b, *x, where));
  const char *name = runtime::recordOf(op).name;
  checkDTypes(name, *x, *y, where);
  if (typeOf(*x, where).shape == typeOf(*y, where).shape) [[likely]]
    return applyOne(op, {}, {x, y}, where);
  Aligned operands[] = {{x}, {y}};
  Shape shape = broadcastShape(name, operands, where);
  Tensor wideX = broadcastTo(*x, shape, operands, where), wideY = broadcastTo(*y, shape, operands, where);
  return applyOne(op, {}, {&wideX, &wideY}, where);
}

/// y with size 1 in place of the axes that a reduction of x dropped.
static Tensor keepDims(const Tensor &y, const Shape &before, const Ints &axes, const Where &where) {
  Shape shape;
  std::vector<Tensor> sizes;
  int64_t next = 0;
  for (int axis = 0; axis < before.rank(); ++axis) {
    bool dropped = axes.contains(axis);
    shape.push_back(dropped ? 1 : before.dim(axis));
    if (!dropped && before.dim(axis) == dynamic)
      sizes.push_back(dim(y, next, where));
    next += !dropped;
  }
  return reshapeTo(y, shape, sizes, where);
}

Tensor reduce(OpId op, const Located &x, const Axes &axes, bool keepdims) {
  const Where &where = x.where();
  Tensor operand = tensorOf(x);
  Shape before = typeOf(operand, where).shape;
  Ints places = placesOf(runtime::recordOf(op).name, axes, before.rank(), where);
  Tensor y = applyOne(op, runtime::ReduceSumAttrs::make(places), {&operand},
                      where); // every reduction's one attribute is `axes`
  return keepdims && !places.empty() ? keepDims(y, before, places, where) : y;
}

Tensor argmax(const Located &x, int64_t axis) {
  Tensor operand = tensorOf(x);
  int64_t place = placeOf("argmax", axis, operand.rank(), x.where());
  return applyOne(OpId::argmax, runtime::ArgmaxAttrs::make(place), {&operand}, x.where());
}

} // namespace detail

#include "frontend/Ops.inc"

//===- Operators
//---------------------------------------------------------------------------------------------------===//

Tensor operator+(const Located &a, const Located &b) { return add(a, b); }
Tensor operator-(const Located &a, const Located &b) { return sub(a, b); }
Tensor operator*(const Located &a, const Located &b) { return mul(a, b); }
Tensor operator/(const Located &a, const Located &b) { return div(a, b); }
Tensor operator%(const Located &a, const Located &b) { return remainder(a, b); }
Tensor operator-(const Located &x) { return neg(x); }
Tensor operator+(const Located &x) { return tensorOf(x); }
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

//===- Creation
//----------------------------------------------------------------------------------------------------===//

static void checkSizes(const char *op, const Shape &shape, const Where &where) {
  for (int64_t size : shape)
    if (size < 0)
      raiseOp(op, "sizes are not negative: " + text(shape), "give every size", {}, where);
}

Tensor zeros(const Shape &shape, DType dtype, Where where) {
  checkSizes("zeros", shape, where);
  return literal(0, 0, dtype, shape, where);
}
Tensor ones(const Shape &shape, DType dtype, Where where) {
  checkSizes("ones", shape, where);
  return literal(1, 1, dtype, shape, where);
}
Tensor full(const Shape &shape, const Located &value, std::optional<DType> dtype) {
  checkSizes("full", shape, value.where());
  if (value.isLiteral())
    return literal(value.real(), value.integer(), dtype.value_or(value.literalType()), shape, value.where());
  Tensor x = dtype ? cast(value, *dtype) : value.tensor();
  return broadcast_to(Located(x, value.where()), shape);
}

/// 0, 1, 2, ... along one axis.
static Tensor iota(const Shape &shape, int64_t axis, DType dtype, const Where &where) {
  return applyOne(OpId::iota, runtime::IotaAttrs::make(shape, axis, dtype), {}, where);
}

Tensor arange(int64_t stop, DType dtype, Where where) { return arange(0, stop, 1, dtype, where); }
Tensor arange(int64_t start, int64_t stop, int64_t step, DType dtype, Where where) {
  if (step == 0)
    raiseOp("arange", "the step is 0", "give a step that leads from start to stop", {}, where);
  int64_t count = std::max<int64_t>(0, (stop - start + step - (step > 0 ? 1 : -1)) / step);
  Tensor x = iota({count}, 0, dtype, where);
  if (step != 1)
    x = mul(Located(x, where), Located(step, where));
  return start != 0 ? add(Located(x, where), Located(start, where)) : x;
}
Tensor linspace(double start, double stop, int64_t count, DType dtype, Where where) {
  if (count < 0)
    raiseOp("linspace", "the count " + std::to_string(count) + " is negative", "give 0 or more", {}, where);
  if (!runtime::isFloat(dtype))
    raiseOp("linspace", "the dtype is " + std::string(nameOf(dtype)), "use a float dtype, or arange", {}, where,
            ErrorKind::type);
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

//===- Selection and products
//--------------------------------------------------------------------------------------===//

Tensor where(const Located &condition, const Located &a, const Located &b) {
  const Where &at = condition.where();
  Tensor c = tensorOf(condition);
  if (c.dtype() != boolean)
    raiseOp("where", "the condition is " + toString(typeOf(c, at)), "compare first: where(x != 0, a, b)",
            {typeOf(c, at)}, at, ErrorKind::type);
  DType dtype = !a.isLiteral()   ? typeOf(a.tensor(), at).dtype
                : !b.isLiteral() ? typeOf(b.tensor(), at).dtype
                                 : std::min(a.literalType(), b.literalType());
  Tensor x = detail::operandOf(a, dtype), y = detail::operandOf(b, dtype);
  checkDTypes("where", x, y, at);
  Aligned operands[] = {{&c}, {&x}, {&y}};
  Shape shape = broadcastShape("where", operands, at);
  Tensor wideC = broadcastTo(c, shape, operands, at), wideX = broadcastTo(x, shape, operands, at),
         wideY = broadcastTo(y, shape, operands, at);
  return applyOne(OpId::select, {}, {&wideC, &wideX, &wideY}, at);
}

static Tensor contract(const std::string &equation, const Tensor &a, const Tensor &b, const Where &where) {
  checkDTypes("einsum", a, b, where);
  return applyOne(OpId::contract, runtime::ContractAttrs::make(equation), {&a, &b}, where);
}

/// Without the leading axes of static size 1 that the other operand's batch repeats; `letters` loses theirs.
static Tensor dropUnitBatch(const Tensor &x, std::string &letters, const Tensor &other, int batch, int otherBatch,
                            const Where &where) {
  Shape shape, before = typeOf(x, where).shape;
  std::string kept;
  std::vector<Tensor> sizes;
  for (int axis = 0; axis < before.rank(); ++axis) {
    int otherAxis = axis - batch + otherBatch;
    bool repeats =
        axis < batch && before.dim(axis) == 1 && otherAxis >= 0 && typeOf(other, where).shape.dim(otherAxis) != 1;
    if (repeats)
      continue;
    kept += letters[static_cast<size_t>(axis)];
    shape.push_back(before.dim(axis));
    if (before.dim(axis) == dynamic)
      sizes.push_back(dim(x, axis, where));
  }
  letters = kept;
  return shape == before ? x : reshapeTo(x, shape, sizes, where);
}

Tensor matmul(const Located &a, const Located &b, MatmulOptions options) {
  const Where &where = a.where();
  Tensor x = tensorOf(a), y = tensorOf(b);
  checkDTypes("matmul", x, y, where);
  const TensorType &xType = typeOf(x, where), &yType = typeOf(y, where);
  int rankX = x.rank(), rankY = y.rank();
  if (rankX == 0 || rankY == 0)
    raiseOp("matmul", "an operand is a scalar: a is " + toString(xType) + ", b is " + toString(yType), "use a * b",
            {xType, yType}, where);
  bool tx = options.transpose_a && rankX > 1, ty = options.transpose_b && rankY > 1;
  int64_t inner = xType.shape.dim(tx ? rankX - 2 : rankX - 1),
          otherInner = yType.shape.dim(rankY == 1 || ty ? rankY - 1 : rankY - 2);
  if (inner != otherInner && inner != dynamic && otherInner != dynamic)
    raiseOp("matmul",
            "inner sizes differ: a is " + toString(xType) + ", b is " + toString(yType) + " (" + std::to_string(inner) +
                " != " + std::to_string(otherInner) + ")",
            "transpose b, or give the layer before it " + std::to_string(otherInner) + " outputs", {xType, yType},
            where);
  int batchX = std::max(0, rankX - 2), batchY = std::max(0, rankY - 2), batch = std::max(batchX, batchY);
  std::string letters;
  for (int i = 0; i < batch; ++i)
    letters += static_cast<char>('a' + i);
  std::string lettersX = letters.substr(static_cast<size_t>(batch - batchX)),
              lettersY = letters.substr(static_cast<size_t>(batch - batchY));
  lettersX += rankX == 1 ? "k" : tx ? "km" : "mk";
  lettersY += rankY == 1 ? "k" : ty ? "nk" : "kn";
  std::string out = letters + (rankX == 1 ? "" : "m") + (rankY == 1 ? "" : "n");
  Tensor left = dropUnitBatch(x, lettersX, y, batchX, batchY, where),
         right = dropUnitBatch(y, lettersY, x, batchY, batchX, where);
  return contract(lettersX + "," + lettersY + "->" + out, left, right, where);
}

Tensor einsum(const std::string &equation, const Located &a, const Located &b) {
  const Where &where = a.where();
  std::string compact;
  for (char c : equation)
    if (c != ' ')
      compact += c;
  size_t comma = compact.find(','), arrow = compact.find("->");
  auto refuse = [&](const std::string &why) {
    raiseOp("einsum", why + ": \"" + equation + "\"", "write it as \"mk,kn->mn\": one letter an axis, two operands", {},
            where);
  };
  if (comma == std::string::npos || (arrow != std::string::npos && arrow < comma))
    refuse("the equation has no two operands");
  std::string left = compact.substr(0, comma),
              right = compact.substr(comma + 1, arrow == std::string::npos ? arrow : arrow - comma - 1), out;
  for (const std::string &side : {left, right})
    for (size_t i = 0; i < side.size(); ++i)
      if (!std::isalpha(static_cast<unsigned char>(side[i])))
        refuse(std::string("'") + side[i] + "' is no letter");
      else if (side.find(side[i], i + 1) != std::string::npos)
        refuse(std::string("the letter '") + side[i] + "' stands twice in one operand");
  if (arrow != std::string::npos) {
    out = compact.substr(arrow + 2);
  } else {
    for (char c : left + right)
      if ((left.find(c) == std::string::npos) != (right.find(c) == std::string::npos))
        out += c;
    std::sort(out.begin(), out.end());
  }
  for (size_t i = 0; i < out.size(); ++i)
    if ((left + right).find(out[i]) == std::string::npos)
      refuse(std::string("the result's letter '") + out[i] + "' is in no operand");
    else if (out.find(out[i], i + 1) != std::string::npos)
      refuse(std::string("the letter '") + out[i] + "' stands twice in the result");
  // A letter that only one operand has is summed before the product.
  auto sumOwn = [&](const Located &x, std::string &letters, const std::string &other) {
    Tensor tensor = tensorOf(x);
    if (tensor.rank() != static_cast<int>(letters.size()))
      raiseOp("einsum",
              "\"" + letters + "\" names " + std::to_string(letters.size()) + " axes of " +
                  toString(typeOf(tensor, where)),
              "give one letter for each axis", {typeOf(tensor, where)}, where);
    std::vector<int64_t> axes;
    std::string kept;
    for (size_t i = 0; i < letters.size(); ++i)
      if (other.find(letters[i]) == std::string::npos && out.find(letters[i]) == std::string::npos)
        axes.push_back(static_cast<int64_t>(i));
      else
        kept += letters[i];
    letters = kept;
    return axes.empty() ? tensor : reduce_sum(Located(tensor, where), axes);
  };
  Tensor x = sumOwn(a, left, right), y = sumOwn(b, right, left);
  return contract(left + "," + right + "->" + out, x, y, where);
}

Tensor tensordot(const Located &a, const Located &b, int64_t axes) {
  Tensor x = tensorOf(a), y = tensorOf(b);
  if (axes < 0 || axes > x.rank() || axes > y.rank())
    raiseOp("tensordot",
            std::to_string(axes) + " axes of " + toString(typeOf(x, a.where())) + " and " +
                toString(typeOf(y, a.where())),
            "give a count of axes that both have", {}, a.where());
  std::string left, right, out;
  size_t inner = static_cast<size_t>(axes);
  for (int i = 0; i < x.rank(); ++i)
    left += static_cast<char>('a' + i);
  right = left.substr(left.size() - inner);
  out = left.substr(0, left.size() - inner);
  for (int i = static_cast<int>(axes); i < y.rank(); ++i) {
    right += static_cast<char>('A' + i);
    out += static_cast<char>('A' + i);
  }
  return contract(left + "," + right + "->" + out, x, y, a.where());
}

Tensor outer(const Located &a, const Located &b) { return einsum("m,n->mn", a, b); }
Tensor dot(const Located &a, const Located &b) { return einsum("k,k->", a, b); }

//===- Shapes
//------------------------------------------------------------------------------------------------------===//

Tensor transpose(const Located &x, const std::vector<int64_t> &permutation) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int rank = tensor.rank();
  Ints places;
  if (permutation.empty())
    for (int axis = rank; axis-- > 0;)
      places.push_back(axis);
  else if (static_cast<int>(permutation.size()) != rank)
    raiseOp("transpose",
            "a permutation of " + std::to_string(permutation.size()) + " axes for a tensor of rank " +
                std::to_string(rank),
            "name each axis once", {typeOf(tensor, where)}, where);
  for (int64_t axis : permutation)
    places.push_back(placeOf("transpose", axis, rank, where));
  return applyOne(OpId::transpose, runtime::TransposeAttrs::make(places), {&tensor}, where);
}

/// A `?` of the new shape is the `?` of the old one for which the sizes before and after it are the same products.
Tensor reshape(const Located &x, const Shape &shape) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  Shape to = shape;
  const Shape &from = typeOf(tensor, where).shape;
  int open = -1;
  int64_t known = 1;
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (to.dim(axis) >= 0) {
      known *= to.dim(axis);
      continue;
    }
    if (open >= 0)
      raiseOp("reshape", "two sizes of " + text(to) + " are open", "give all sizes but one", {typeOf(tensor, where)},
              where);
    open = axis;
  }
  if (from.isStatic()) {
    if (open >= 0) {
      if (known == 0 || from.numElements() % known != 0)
        raiseOp("reshape",
                toString(typeOf(tensor, where)) + " has " + std::to_string(from.numElements()) +
                    " elements, no multiple of " + std::to_string(known),
                "give sizes whose product is the number of elements", {typeOf(tensor, where)}, where);
      to[static_cast<size_t>(open)] = from.numElements() / known;
    }
    return reshapeTo(tensor, to, {}, where);
  }
  int64_t rest = 1;
  int dynamicAxis = -1, count = 0;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from.dim(axis) == dynamic)
      dynamicAxis = axis, ++count;
    else
      rest *= from.dim(axis);
  if (count != 1 || open < 0 || rest != known)
    raiseOp("reshape",
            toString(typeOf(tensor, where)) + " to " + text(shape) + ": the open size is not the dynamic one",
            "keep the dynamic size as one axis, written -1", {typeOf(tensor, where)}, where, ErrorKind::unimplemented);
  to[static_cast<size_t>(open)] = dynamic;
  return reshapeTo(tensor, to, {dim(tensor, dynamicAxis, where)}, where);
}

Tensor broadcast_to(const Located &x, const Shape &shape) {
  Tensor tensor = tensorOf(x);
  checkSizes("broadcast_to", shape, x.where());
  const Shape &from = typeOf(tensor, x.where()).shape;
  bool fits = from.rank() <= shape.rank();
  for (int axis = 0; fits && axis < from.rank(); ++axis) {
    int64_t size = from.dim(axis), to = shape.dim(shape.rank() - from.rank() + axis);
    fits = size == 1 || size == to || size == dynamic;
  }
  if (!fits)
    raiseOp("broadcast_to", toString(typeOf(tensor, x.where())) + " does not broadcast to " + text(shape),
            "sizes are aligned at the end; equal ones and 1 fit", {typeOf(tensor, x.where())}, x.where());
  return broadcastTo(tensor, shape, {}, x.where());
}

/// The same elements with axes of size 1 put in or taken out: `shape` differs from x's in these only.
static Tensor reshapeUnits(const Tensor &x, const Shape &shape, const Where &where) {
  std::vector<Tensor> sizes;
  const Shape &from = typeOf(x, where).shape;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from.dim(axis) == dynamic)
      sizes.push_back(dim(x, axis, where));
  return reshapeTo(x, shape, sizes, where);
}

Tensor expand_dims(const Located &x, int64_t axis) {
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("expand_dims", axis, tensor.rank() + 1, x.where());
  Shape shape;
  for (int i = 0; i <= tensor.rank(); ++i) {
    if (i == place)
      shape.push_back(1);
    if (i < tensor.rank())
      shape.push_back(tensor.shape().dim(i));
  }
  return reshapeUnits(tensor, shape, x.where());
}

Tensor squeeze(const Located &x, const Axes &axes) {
  Tensor tensor = tensorOf(x);
  const Shape &from = tensor.shape();
  Ints places = placesOf("squeeze", axes, from.rank(), x.where());
  Shape shape;
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (axes.list && places.contains(axis) && from.dim(axis) != 1)
      raiseOp("squeeze",
              "axis " + std::to_string(axis) + " of " + toString(typeOf(tensor, x.where())) + " has not the size 1",
              "name axes of size 1", {typeOf(tensor, x.where())}, x.where());
    if (!places.contains(axis) || from.dim(axis) != 1)
      shape.push_back(from.dim(axis));
  }
  return reshapeUnits(tensor, shape, x.where());
}

Tensor slice(const Located &x, const std::vector<int64_t> &starts, const std::vector<int64_t> &limits,
             const std::vector<int64_t> &strides) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  const Shape &shape = tensor.shape();
  size_t rank = static_cast<size_t>(shape.rank());
  if (starts.size() > rank || limits.size() != starts.size() || (!strides.empty() && strides.size() != starts.size()))
    raiseOp("slice",
            std::to_string(starts.size()) + " starts, " + std::to_string(limits.size()) + " limits and " +
                std::to_string(strides.size()) + " strides for rank " + std::to_string(rank),
            "give as many of each, one for each leading axis", {typeOf(tensor, where)}, where);
  Ints from, to, by;
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t size = shape[axis], stride = axis < strides.size() ? strides[axis] : 1;
    if (stride <= 0)
      raiseOp("slice", "stride " + std::to_string(stride) + " of axis " + std::to_string(axis) + " is not positive",
              "give 1 or more", {}, where);
    by.push_back(stride);
    if (size == dynamic) {
      if (axis < starts.size() &&
          (starts[axis] != 0 || limits[axis] != std::numeric_limits<int64_t>::max() || stride != 1))
        raiseOp("slice",
                "axis " + std::to_string(axis) + " of " + toString(typeOf(tensor, where)) +
                    " has a dynamic size and is taken whole",
                "give start 0 and the largest limit", {typeOf(tensor, where)}, where, ErrorKind::unimplemented);
      from.push_back(0);
      to.push_back(dynamic);
      continue;
    }
    auto clamp = [&](int64_t place) { return std::clamp<int64_t>(place < 0 ? place + size : place, 0, size); };
    from.push_back(axis < starts.size() ? clamp(starts[axis]) : 0);
    to.push_back(std::max(from[axis], axis < limits.size() ? clamp(limits[axis]) : size));
  }
  return applyOne(OpId::slice, runtime::SliceAttrs::make(from, to, by), {&tensor}, where);
}

Tensor index(const Located &x, int64_t i, int64_t axis) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("index", axis, tensor.rank(), where), size = tensor.shape().dim(static_cast<int>(place));
  if (size == dynamic)
    raiseOp("index", "the axis has a dynamic size", "use gather", {typeOf(tensor, where)}, where,
            ErrorKind::unimplemented);
  if (i < -size || i >= size)
    raiseOp("index",
            "place " + std::to_string(i) + " of axis " + std::to_string(place) + ", whose size is " +
                std::to_string(size),
            "a place lies in [-size, size)", {typeOf(tensor, where)}, where);
  i = i < 0 ? i + size : i;
  Ints from, to, by;
  for (int a = 0; a < tensor.rank(); ++a) {
    from.push_back(a == place ? i : 0);
    to.push_back(a == place ? i + 1 : tensor.shape().dim(a));
    by.push_back(1);
  }
  Tensor row = applyOne(OpId::slice, runtime::SliceAttrs::make(from, to, by), {&tensor}, where);
  return squeeze(Located(row, where), place);
}

Tensor concat(const std::vector<Tensor> &xs, int64_t axis, Where where) {
  if (xs.empty())
    raiseOp("concat", "there is nothing to join", "give one tensor at least", {}, where);
  int64_t place = placeOf("concat", axis, xs[0].rank(where), where);
  std::vector<const Tensor *> operands;
  for (const Tensor &x : xs) {
    checkDTypes("concat", xs[0], x, where);
    operands.push_back(&x);
  }
  Tensor result;
  detail::applyOp(OpId::concat, runtime::ConcatAttrs::make(place), operands, std::span(&result, 1), where);
  return result;
}

Tensor stack(const std::vector<Tensor> &xs, int64_t axis, Where where) {
  if (xs.empty())
    raiseOp("stack", "there is nothing to join", "give one tensor at least", {}, where);
  int64_t place = placeOf("stack", axis, xs[0].rank(where) + 1, where);
  std::vector<Tensor> wide;
  for (const Tensor &x : xs)
    wide.push_back(expand_dims(Located(x, where), place));
  return concat(wide, place, where);
}

std::vector<Tensor> split(const Located &x, int64_t parts, int64_t axis) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  int64_t place = placeOf("split", axis, tensor.rank(), where), size = tensor.shape().dim(static_cast<int>(place));
  if (parts < 1 || size == dynamic || size % parts != 0)
    raiseOp("split",
            "axis " + std::to_string(place) + " of " + toString(typeOf(tensor, where)) + " does not split into " +
                std::to_string(parts) + " equal parts",
            "give a divisor of its size", {typeOf(tensor, where)}, where);
  std::vector<Tensor> pieces;
  for (int64_t part = 0; part < parts; ++part) {
    Ints from, to, by;
    for (int a = 0; a < tensor.rank(); ++a) {
      from.push_back(a == place ? part * (size / parts) : 0);
      to.push_back(a == place ? (part + 1) * (size / parts) : tensor.shape().dim(a));
      by.push_back(1);
    }
    pieces.push_back(applyOne(OpId::slice, runtime::SliceAttrs::make(from, to, by), {&tensor}, where));
  }
  return pieces;
}

Tensor pad(const Located &x, const std::vector<std::pair<int64_t, int64_t>> &widths, double value) {
  const Where &where = x.where();
  Tensor tensor = tensorOf(x);
  if (static_cast<int>(widths.size()) != tensor.rank())
    raiseOp("pad", std::to_string(widths.size()) + " pairs of widths for rank " + std::to_string(tensor.rank()),
            "give one pair for each axis", {typeOf(tensor, where)}, where);
  Ints low, high, interior;
  for (auto [before, after] : widths) {
    if (before < 0 || after < 0)
      raiseOp("pad", "widths are not negative: " + std::to_string(before) + ", " + std::to_string(after),
              "use slice to take away", {}, where);
    low.push_back(before);
    high.push_back(after);
    interior.push_back(0);
  }
  auto padded = [&](const Tensor &y) {
    return applyOne(OpId::pad, runtime::PadAttrs::make(low, high, interior), {&y}, where);
  };
  Tensor y = padded(tensor);
  if (value == 0)
    return y;
  Tensor inside = padded(ones_like(Located(tensor, where)));
  return wg::where(Located(equal(Located(inside, where), Located(0, where)), where), Located(value, where),
                   Located(y, where));
}

Tensor one_hot(const Located &x, int64_t depth, DType dtype) {
  Tensor tensor = tensorOf(x);
  if (depth < 0)
    raiseOp("one_hot", "the depth " + std::to_string(depth) + " is negative", "give the number of classes",
            {typeOf(tensor, x.where())}, x.where());
  return applyOne(OpId::one_hot, runtime::OneHotAttrs::make(depth, dtype), {&tensor}, x.where());
}

//===- Composites
//--------------------------------------------------------------------------------------------------===//

static Tensor floatOf(const char *op, const Located &x) {
  Tensor tensor = tensorOf(x);
  if (!runtime::isFloat(tensor.dtype()))
    raiseOp(op, "takes a float, got " + toString(typeOf(tensor, x.where())), "cast it: cast(x, f32)",
            {typeOf(tensor, x.where())}, x.where(), ErrorKind::type);
  return tensor;
}

Tensor square(const Located &x) {
  Tensor tensor = tensorOf(x);
  return applyOne(OpId::mul, {}, {&tensor, &tensor}, x.where());
}

Tensor reciprocal(const Located &x) { return div(Located(1, x.where()), x); }

Tensor mean(const Located &x, const Axes &axes, bool keepdims) {
  Where at = x.where();
  Tensor tensor = floatOf("mean", x);
  int64_t count = 1;
  for (int64_t axis : placesOf("mean", axes, tensor.rank(), at)) {
    int64_t size = tensor.shape().dim(static_cast<int>(axis));
    count = size == dynamic || count == dynamic ? dynamic : count * size;
  }
  Tensor sum = reduce_sum(Located(tensor, at), axes, keepdims);
  if (count != dynamic)
    return div(Located(sum, at), Located(count, at));
  return div(Located(sum, at), Located(reduce_sum(Located(ones_like(Located(tensor, at)), at), axes, keepdims), at));
}

Tensor variance(const Located &x, const Axes &axes, bool keepdims) {
  Where at = x.where();
  Tensor tensor = floatOf("variance", x);
  Tensor distance = sub(Located(tensor, at), Located(mean(Located(tensor, at), axes, true), at));
  return mean(Located(square(Located(distance, at)), at), axes, keepdims);
}

/// The largest of x over axes, as a constant.
static Tensor shiftOf(const Tensor &x, const Axes &axes, const Where &at) {
  return stop_gradient(Located(reduce_max(Located(x, at), axes, true), at));
}

/// log sum exp(x - m) + m with m the maximum, or 0 where that is infinite; the logarithm of an empty sum is guarded, so
/// that a row of -inf has value -inf and gradient 0.
Tensor logsumexp(const Located &x, const Axes &axes, bool keepdims) {
  Where at = x.where();
  Tensor tensor = floatOf("logsumexp", x);
  Tensor largest = shiftOf(tensor, axes, at);
  Tensor finite = equal(Located(sub(Located(largest, at), Located(largest, at)), at), Located(0, at));
  Tensor m = wg::where(Located(finite, at), Located(largest, at), Located(0, at));
  Tensor sum = reduce_sum(Located(exp(Located(sub(Located(tensor, at), Located(m, at)), at)), at), axes, true);
  Tensor empty = equal(Located(sum, at), Located(0, at));
  Tensor logs = log(Located(wg::where(Located(empty, at), Located(1, at), Located(sum, at)), at));
  Tensor y = wg::where(Located(empty, at), Located(-std::numeric_limits<double>::infinity(), at),
                       Located(add(Located(logs, at), Located(m, at)), at));
  return keepdims ? y : squeeze(Located(y, at), Axes(std::vector<int64_t>([&] {
                                  Ints places = placesOf("logsumexp", axes, tensor.rank(), at);
                                  return std::vector<int64_t>(places.begin(), places.end());
                                }())));
}

Tensor softmax(const Located &x, int64_t axis) {
  Where at = x.where();
  Tensor tensor = floatOf("softmax", x);
  Tensor e = exp(Located(sub(Located(tensor, at), Located(shiftOf(tensor, axis, at), at)), at));
  return div(Located(e, at), Located(reduce_sum(Located(e, at), axis, true), at));
}

Tensor log_softmax(const Located &x, int64_t axis) {
  Where at = x.where();
  Tensor tensor = floatOf("log_softmax", x);
  Tensor z = sub(Located(tensor, at), Located(shiftOf(tensor, axis, at), at));
  Tensor sum = reduce_sum(Located(exp(Located(z, at)), at), axis, true);
  return sub(Located(z, at), Located(log(Located(sum, at)), at));
}

/// max(x, 0) + log1p(exp(-|x|)): neither side overflows, and at 0 the halves of both slopes add up to 1/2.
Tensor softplus(const Located &x) {
  Where at = x.where();
  Tensor tensor = floatOf("softplus", x);
  Tensor tail = log1p(Located(exp(Located(neg(Located(abs(Located(tensor, at)), at)), at)), at));
  return add(Located(maximum(Located(tensor, at), Located(0, at)), at), Located(tail, at));
}

Tensor gelu(const Located &x) {
  Where at = x.where();
  Tensor tensor = floatOf("gelu", x);
  Tensor phi =
      mul(Located(0.5, at),
          Located(add(Located(1, at),
                      Located(erf(Located(mul(Located(tensor, at), Located(std::numbers::sqrt2 / 2, at)), at)), at)),
                  at));
  return mul(Located(tensor, at), Located(phi, at));
}

Tensor silu(const Located &x) {
  Where at = x.where();
  Tensor tensor = floatOf("silu", x);
  return mul(Located(tensor, at), Located(sigmoid(Located(tensor, at)), at));
}

Tensor clip(const Located &x, const Located &low, const Located &high) {
  Where at = x.where();
  Tensor tensor = tensorOf(x);
  Tensor below = less(Located(tensor, at), low), above = greater(Located(tensor, at), high);
  return wg::where(Located(below, at), low, Located(wg::where(Located(above, at), high, Located(tensor, at)), at));
}

Tensor norm(const Located &x, const Axes &axes, bool keepdims) {
  Where at = x.where();
  Tensor tensor = floatOf("norm", x);
  Tensor sum = reduce_sum(Located(square(Located(tensor, at)), at), axes, keepdims);
  Tensor zero = equal(Located(sum, at), Located(0, at));
  Tensor root = sqrt(Located(wg::where(Located(zero, at), Located(1, at), Located(sum, at)), at));
  return wg::where(Located(zero, at), Located(0, at), Located(root, at));
}

//===- Losses
//------------------------------------------------------------------------------------------------------===//

Tensor mean_squared_error(const Located &prediction, const Located &target) {
  Where at = prediction.where();
  return mean(Located(square(Located(sub(prediction, target), at)), at));
}

/// With z = logits - max: log(sum exp z) - z[label]; for a distribution p: sum(p) log(sum exp z) - sum(p z).
Tensor softmax_cross_entropy(const Located &logits, const Located &labels) {
  Where at = logits.where();
  Tensor x = floatOf("softmax_cross_entropy", logits), y = tensorOf(labels);
  const TensorType &xType = typeOf(x, at), &yType = typeOf(y, at);
  if (x.rank() == 0 || xType.shape.dim(x.rank() - 1) == dynamic)
    raiseOp("softmax_cross_entropy", "the logits " + toString(xType) + " have no last axis of static size",
            "give logits[..., classes]", {xType}, at);
  bool sparse = runtime::isInteger(yType.dtype);
  int rank = sparse ? x.rank() - 1 : x.rank();
  bool fits = y.rank() == rank && (sparse || yType.dtype == xType.dtype);
  for (int axis = 0; fits && axis < rank; ++axis) {
    int64_t a = xType.shape.dim(axis), b = yType.shape.dim(axis);
    fits = a == b || a == dynamic || b == dynamic;
  }
  if (!fits)
    raiseOp(
        "softmax_cross_entropy", "logits are " + toString(xType) + ", labels " + toString(yType),
        "give integer labels of the logits' shape without its last axis, or a distribution of the same shape and dtype",
        {xType, yType}, at);
  Tensor z = sub(Located(x, at), Located(shiftOf(x, -1, at), at));
  Tensor logSum = log(Located(reduce_sum(Located(exp(Located(z, at)), at), -1), at));
  Tensor p = sparse ? one_hot(Located(y, at), xType.shape.dim(x.rank() - 1), xType.dtype) : y;
  Tensor at_label = reduce_sum(Located(mul(Located(p, at), Located(z, at)), at), -1);
  if (!sparse)
    logSum = mul(Located(reduce_sum(Located(p, at), -1), at), Located(logSum, at));
  return sub(Located(logSum, at), Located(at_label, at));
}

//===- Random numbers
//----------------------------------------------------------------------------------------------===//

Tensor random::key(int64_t seed) { return Tensor{seed, int64_t(0)}; }

/// key + (0, offset): another stream.
static Tensor stream(const Tensor &key, int64_t offset, const Where &at) {
  Tensor step = Tensor{int64_t(0), offset};
  return add(Located(key, at), Located(step, at));
}

std::vector<Tensor> random::split(const Located &key, int64_t count) {
  Where at = key.where();
  Tensor from = stream(tensorOf(key), int64_t(0x6a09e667) << 32, at);
  Tensor bits = applyOne(OpId::random_bits, runtime::RandomBitsAttrs::make(Ints{std::max<int64_t>(count, 0), 2}, i64),
                         {&from}, at);
  std::vector<Tensor> keys;
  for (int64_t i = 0; i < count; ++i)
    keys.push_back(index(Located(bits, at), i));
  return keys;
}

Tensor random_uniform(const Located &key, const Shape &shape, double low, double high, DType dtype) {
  Where at = key.where();
  checkSizes("random_uniform", shape, at);
  Tensor k = tensorOf(key);
  Tensor u = applyOne(OpId::random_uniform, runtime::RandomUniformAttrs::make(shape, dtype), {&k}, at);
  if (low == 0 && high == 1)
    return u;
  return add(Located(mul(Located(u, at), Located(high - low, at)), at), Located(low, at));
}

/// sqrt(-2 log u) cos(2 pi v) with u in (0, 1] and v in [0, 1).
Tensor random_normal(const Located &key, const Shape &shape, double mean, double stddev, DType dtype) {
  Where at = key.where();
  Tensor k = tensorOf(key), other = stream(k, int64_t(0x3c6ef372) << 32, at);
  Tensor u = sub(Located(1, at), Located(random_uniform(Located(k, at), shape, 0, 1, dtype), at));
  Tensor v = random_uniform(Located(other, at), shape, 0, 1, dtype);
  Tensor radius = sqrt(Located(mul(Located(-2, at), Located(log(Located(u, at)), at)), at));
  Tensor x =
      mul(Located(radius, at), Located(cos(Located(mul(Located(2 * std::numbers::pi, at), Located(v, at)), at)), at));
  if (stddev != 1)
    x = mul(Located(x, at), Located(stddev, at));
  return mean != 0 ? add(Located(x, at), Located(mean, at)) : x;
}

Generator::Generator(int64_t seed, Where where)
    : state_(random::key(seed), {.name = "generator", .trainable = false}, where) {}

Tensor Generator::next(Where where) const {
  Tensor key = state_.value(where);
  state_.assign(Located(stream(key, 1, where), where));
  return key;
}
Tensor Generator::uniform(const Shape &shape, double low, double high, DType dtype, Where where) const {
  return random_uniform(Located(next(where), where), shape, low, high, dtype);
}
Tensor Generator::normal(const Shape &shape, double mean, double stddev, DType dtype, Where where) const {
  return random_normal(Located(next(where), where), shape, mean, stddev, dtype);
}

void set_num_threads(int count) { runtime::setNumThreads(count); }

} // namespace wg
