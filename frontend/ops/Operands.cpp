#include "frontend/ops/Operands.h"

#include "runtime/SizeFormula.h"

#include <algorithm>

namespace wg {

using runtime::OpId;

Axes::Axes() = default;
Axes::Axes(std::initializer_list<detail::Number> axes) : list(std::in_place) {
  for (detail::Number axis : axes)
    list->push_back(axis.at);
}
Axes::Axes(std::vector<int64_t> axes) : list(std::move(axes)) {}
Axes::Axes(const Axes &) = default;
Axes::Axes(Axes &&) noexcept = default;
Axes &Axes::operator=(const Axes &) = default;
Axes &Axes::operator=(Axes &&) noexcept = default;
Axes::~Axes() = default;
Axes Axes::all() { return Axes(); }

namespace detail {

Tensor tensorOf(const Located &x) {
  Tensor tensor = detail::operandOf(x, x.literalType());
  tensor.body(x.where());
  return tensor;
}

Tensor tensorOf(const Located &x, DType dtype) {
  checkHolds(x, dtype);
  return operandOf(x, dtype);
}

void checkHolds(const Located &x, DType dtype) {
  if (!x.isLiteral() || !runtime::isInteger(x.literalType()) || (dtype != DType::i32 && dtype != DType::u8))
    return;
  int64_t low = dtype == DType::u8 ? 0 : INT32_MIN, high = dtype == DType::u8 ? UINT8_MAX : INT32_MAX;
  if (x.integer() < low || x.integer() > high)
    raiseOp("literal",
            std::to_string(x.integer()) + " does not fit " + std::string(nameOf(dtype)) + ", which holds " +
                std::to_string(low) + " to " + std::to_string(high),
            "cast the tensor to a wider dtype: cast(x, i64)", {}, x.where());
}

/// A float for an integer dtype is cast.
Tensor filledWith(const Located &x, DType dtype, const Shape &shape, const Where &where, const char *op) {
  checkHolds(x, dtype);
  double real = x.real();
  int64_t integer = x.integer();
  if (runtime::isFloat(x.literalType()))
    integer = dtype == DType::i64   ? saturated<int64_t>(real)
              : dtype == DType::i32 ? saturated<int32_t>(real)
              : dtype == DType::u8  ? saturated<uint8_t>(real)
                                    : real != 0;
  if (!shape.isStatic())
    return applySized(OpId::broadcast, runtime::BroadcastAttrs::make(shape, Ints()),
                      literal(real, integer, dtype, Shape(), where), openSizes(op, shape, where), where);
  return orOutOfMemory("literal", TensorType{dtype, shape}, where,
                       [&] { return literal(real, integer, dtype, shape, where); });
}

int64_t placeOf(const char *op, int64_t axis, int rank, const Where &where) {
  if (axis < -rank || axis >= rank)
    raiseOp(op, "axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank),
            rank ? "an axis lies in [-" + std::to_string(rank) + ", " + std::to_string(rank - 1) + "]"
                 : "a scalar has no axes",
            {}, where);
  return axis < 0 ? axis + rank : axis;
}

Ints placesOf(const char *op, const Axes &axes, int rank, const Where &where) {
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

void checkSizes(const char *op, const Shape &shape, const Where &where, DType dtype, bool open) {
  checkRank(op, shape, where);
  for (int64_t size : shape) {
    if (size == dynamic && open)
      continue;
    if (size == dynamic)
      raiseOp(op, "every size must be known here: " + text(shape), "give a number for each `?`", {}, where);
    if (size < 0)
      raiseOp(op, "sizes are not negative: " + text(shape),
              size == -1 ? "give a size of 0 or more; -1 stands for a size in reshape and in specifications only"
                         : "give sizes of 0 or more",
              {}, where);
  }
  if (runtime::Result<runtime::Extent> extent = runtime::extentOf(dtype, shape); !extent.ok())
    raiseOp(op, extent.failure().message, extent.failure().remedy, {}, where);
}

Tensor classNumbers(const char *op, const char *what, const Tensor &x, int64_t classes, const Where &where) {
  Tensor numbers = x.dtype(where) == u8 ? cast(Located(x, where), i32) : x;
  if (numbers.symbolic())
    return gather(Located(iota({classes}, 0, numbers.dtype(), where), where), Located(numbers, where));
  for (int64_t number : numbers.to_vector<int64_t>(where))
    if (number < 0 || number >= classes)
      raiseOp(op,
              std::string(what) + " is " + std::to_string(number) + ", and there are " + std::to_string(classes) +
                  (classes == 1 ? " class" : " classes") + ", which count from 0",
              number == classes ? "count from 0: subtract 1, or give the logits one class more"
                                : "look at the data: each number lies in [0, " + std::to_string(classes) + ")",
              {x.body()->type}, where, ErrorKind::lookup);
  return numbers;
}

std::vector<Tensor> openSizes(const char *op, const Shape &shape, const Where &where) {
  std::vector<Tensor> sizes;
  if (shape.isStatic())
    return sizes;
  Tensor owner = ownerOf(shape, where);
  if (!owner.defined())
    raiseOp(op,
            "the shape " + text(shape) +
                " has an open size, and it is not known whose: it was made or changed entry by entry, or belongs to "
                "another function",
            "pass x.shape() as it is, or make the tensor from another: ones_like(x), zeros_like(x), broadcasting", {},
            where);
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape.dim(axis) == dynamic)
      sizes.push_back(dim(owner, axis, where));
  return sizes;
}

Size sizeOf(const Tensor &x, int64_t axis, const Where &where) {
  int64_t known = typeOf(x, where).shape.dim(static_cast<int>(axis));
  return {known, known == dynamic ? dim(x, axis, where) : Tensor()};
}

Size computeSize(const char *op, const std::string &formula, const std::vector<Size> &sizes, const Where &where) {
  std::vector<int64_t> known;
  std::vector<const Tensor *> open;
  for (const Size &size : sizes) {
    known.push_back(size.known);
    if (size.known == dynamic)
      open.push_back(&size.value);
  }
  std::string bound = runtime::withKnown(formula, known);
  if (open.empty()) {
    runtime::Result<int64_t> value = runtime::evaluateSize(bound, {});
    if (!value.ok())
      raiseOp(op, value.failure().message, "", {}, where);
    return {*value, {}};
  }
  Size size;
  applyOp(OpId::size, runtime::SizeAttrs::make(bound), open, std::span(&size.value, 1), where);
  return size;
}

void raiseOutOfMemory(const char *op, const std::string &what, const Where &where) {
  raiseOp(op, "out of memory for " + what, "make it smaller, or free other tensors first", {}, where,
          ErrorKind::runtime);
}

bool sameSizes(const Shape &a, const Shape &b) {
  bool same = a.rank() == b.rank();
  for (int axis = 0; same && axis < a.rank(); ++axis)
    same = a.dim(axis) == b.dim(axis) || a.dim(axis) == dynamic || b.dim(axis) == dynamic;
  return same;
}

void checkPairs(const char *op, const Located &prediction, const Located &target) {
  if (prediction.isLiteral() || target.isLiteral())
    return;
  const TensorType &a = typeOf(prediction.tensor(), prediction.where()), &b = typeOf(target.tensor(), target.where());
  if (a.shape.rank() != 0 && b.shape.rank() != 0 && !sameSizes(a.shape, b.shape))
    raiseOp(op, "the prediction is " + toString(a) + ", the target " + toString(b) + ": each element needs its own",
            "give both the same shape: reshape, squeeze or broadcast_to one of them", {a, b}, prediction.where());
}

Tensor dim(const Tensor &x, int64_t axis, const Where &where) {
  return applyOne(OpId::dim, runtime::DimAttrs::make(axis), {&x}, where);
}

Tensor applySized(OpId op, const runtime::Attrs &attrs, const Tensor &x, const std::vector<Tensor> &sizes,
                  const Where &where) {
  std::vector<const Tensor *> operands{&x};
  for (const Tensor &size : sizes)
    operands.push_back(&size);
  Tensor result;
  detail::applyOp(op, attrs, operands, std::span(&result, 1), where);
  return result;
}

Tensor reshapeTo(const Tensor &x, const Shape &shape, const std::vector<Tensor> &sizes, const Where &where) {
  return applySized(OpId::reshape, runtime::ReshapeAttrs::make(shape), x, sizes, where);
}

Shape broadcastShape(const char *op, std::span<const Aligned> operands, const Where &where, int own) {
  int rank = 0;
  for (const Aligned &operand : operands)
    rank = std::max(rank, operand.x->body()->type.shape.rank());
  Shape shape;
  for (int axis = 0; axis < rank - own; ++axis) {
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

Tensor broadcastTo(const Tensor &x, const Shape &shape, std::span<const Aligned> operands, const Where &where) {
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

void broadcastInFront(const char *op, Tensor &x, Tensor &y, const Where &where) {
  if (std::min(x.rank(), y.rank()) < 2)
    return;
  Tensor ownX = x, ownY = y;
  auto broadcast = [&](Tensor &tensor, const Tensor &own, const Tensor &other) {
    Aligned operands[] = {{&own}, {&other}};
    Shape shape = broadcastShape(op, operands, where, /*own=*/2);
    for (int axis = own.rank() - 2; axis < own.rank(); ++axis)
      shape.push_back(typeOf(own, where).shape.dim(axis));
    tensor = broadcastTo(own, shape, operands, where);
  };
  broadcast(x, ownX, ownY);
  broadcast(y, ownY, ownX);
}

Tensor inShape(const Tensor &x, const Shape &shape, std::span<const Aligned> operands, const Where &where) {
  return !level().trace && typeOf(x, where).shape.rank() == 0 ? x : broadcastTo(x, shape, operands, where);
}

/// What loses nothing that it need not: bools become integers, and integers floats; a
/// narrow integer becomes a wide one.
static std::string castRemedy(DType a, DType b) {
  auto rank = [](DType dtype) {
    return runtime::isFloat(dtype) ? 4 : dtype == DType::i64 ? 3 : dtype == DType::i32 ? 2 : dtype == DType::u8 ? 1 : 0;
  };
  return rank(a) < rank(b) ? "cast one: cast(a, " + std::string(nameOf(b)) + ")"
                           : "cast one: cast(b, " + std::string(nameOf(a)) + ")";
}

void checkDTypes(const char *op, const Tensor &a, const Tensor &b, const Where &where) {
  const TensorType &x = typeOf(a, where), &y = typeOf(b, where);
  if (x.dtype != y.dtype) [[unlikely]]
    raiseOp(op, "dtypes differ: a is " + toString(x) + ", b is " + toString(y), castRemedy(x.dtype, y.dtype), {x, y},
            where, ErrorKind::type);
}

Tensor floatOf(const char *op, const Located &x) {
  Tensor tensor = tensorOf(x);
  if (!runtime::isFloat(tensor.dtype()))
    raiseOp(op, "takes a float, got " + toString(typeOf(tensor, x.where())), "cast it: cast(x, f32)",
            {typeOf(tensor, x.where())}, x.where(), ErrorKind::type);
  return tensor;
}

Tensor indicesOf(const char *op, const char *what, const Located &x) {
  Tensor tensor = tensorOf(x);
  const TensorType &type = typeOf(tensor, x.where());
  if (!runtime::isInteger(type.dtype))
    raiseOp(op, std::string(what) + " are integers, got " + toString(type), "cast them: cast(indices, i64)", {type},
            x.where(), ErrorKind::type);
  return type.dtype == u8 ? cast(Located(tensor, x.where()), i32) : tensor;
}

Tensor iota(const Shape &shape, int64_t axis, DType dtype, const Where &where) {
  return applyOne(OpId::iota, runtime::IotaAttrs::make(shape, axis, dtype), {}, where);
}

// ---- The words of the generated functions
// ------------------------------------------------------------------------------

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
      made[count] = tensorOf(*operand, dtype);
    list[count] = operand->isLiteral() ? &made[count] : &operand->tensor();
    ++count;
  }
  Tensor result;
  applyOp(op, attrs, std::span(list, count), std::span(&result, 1), (*operands.begin())->where());
  return result;
}

/// Whether the number is one of the dtype, as it is or widened.
static bool isPlain(const Located &number, DType dtype) {
  return dtype != DType::boolean && dtype != DType::bf16 && dtype != DType::f16 &&
         (runtime::isFloat(dtype) || !runtime::isFloat(number.literalType()));
}

/// A literal beside a tensor. In a trace it is filled to the tensor's shape where that is static;
/// eager kernels take it as a scalar.
static Tensor beside(const Located &number, const Tensor &other, const Where &where) {
  const TensorType &type = typeOf(other, where);
  if (level().trace && isPlain(number, type.dtype) && type.shape.isStatic())
    return filledWith(number, type.dtype, type.shape, where);
  return tensorOf(number, type.dtype);
}

/// The result where no tensor is needed for the number; else undefined.
static Tensor besideNumber(OpId op, const Tensor &x, const Located &number, bool first, const Where &where) {
  if (!x.defined() || !isPlain(number, x.body()->type.dtype))
    return {};
  checkHolds(number, x.body()->type.dtype);
  return applyBeside(op, x, number.real(), number.integer(), first, where);
}

/// Whether one of them counts at every place of the other, as eager kernels take it.
static bool isScalarBeside(const Tensor &x, const Tensor &y) {
  return !level().trace && (x.body()->type.shape.rank() == 0 || y.body()->type.shape.rank() == 0);
}

Tensor binary(OpId op, const Located &a, const Located &b) {
  const Where &where = a.where() ? a.where() : b.where();
  if (a.isLiteral() != b.isLiteral()) {
    Tensor result =
        a.isLiteral() ? besideNumber(op, b.tensor(), a, true, where) : besideNumber(op, a.tensor(), b, false, where);
    if (result.defined()) [[likely]]
      return result;
  }
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
  if (typeOf(*x, where).shape == typeOf(*y, where).shape || isScalarBeside(*x, *y)) [[likely]]
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

} // namespace wg
