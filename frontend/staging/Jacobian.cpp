// Jacobians of a tape: its derivatives by a basis of cotangents or tangents, many at once, eagerly and in a trace.
#include "frontend/ops/Operands.h"
#include "frontend/staging/Function.h"
#include "frontend/staging/GradientProgram.h"

#include <wengert/Jacobian.h>

#include "ir/Lifetime.h"

#include <numeric>

namespace wg {
namespace detail {

using runtime::OpId;

namespace {

/// Tensors, at least by their shapes, whose elements are columns or rows.
struct Elements {
  explicit Elements(const Tensor &x, int first, const Where &where) {
    for (int axis = first; axis < x.rank(); ++axis)
      sizes.push_back(sizeOf(x, axis, where));
    std::string formula = "1";
    for (size_t i = 0; i < sizes.size(); ++i)
      formula += " * " + std::string(1, static_cast<char>('a' + i));
    count = sizes.empty() ? Size{1, {}} : computeSize("jacobian", formula, sizes, where);
  }
  std::vector<Size> sizes;
  Size count;
};

} // namespace

/// All these sizes as one shape, and the values of those that are `?`.
static std::pair<Shape, std::vector<Tensor>> joined(const std::vector<std::vector<Size>> &lists, const Where &where) {
  std::pair<Shape, std::vector<Tensor>> all;
  for (const std::vector<Size> &list : lists)
    for (const Size &size : list) {
      all.first.push_back(size.known);
      if (size.known == dynamic)
        all.second.push_back(size.value);
    }
  checkRank("jacobian", all.first, where);
  return all;
}

static Tensor inSizes(const Tensor &x, const std::vector<std::vector<Size>> &lists, const Where &where) {
  auto [shape, open] = joined(lists, where);
  return open.empty() && x.shape() == shape ? x : reshapeTo(x, shape, open, where);
}

static Tensor zerosOf(DType dtype, const std::vector<std::vector<Size>> &lists, const Where &where) {
  auto [shape, open] = joined(lists, where);
  return applySized(OpId::broadcast, runtime::BroadcastAttrs::make(shape, {}), literal(0, 0, dtype, {}, where), open,
                    where);
}

/// 1 at one element in each row: [n, elements...].
static Tensor basisOf(const Elements &elements, DType dtype, const std::vector<Size> &between, const Where &where) {
  if (elements.count.known != dynamic) {
    Tensor places;
    applyOp(OpId::iota, runtime::IotaAttrs::make(Shape{elements.count.known}, 0, i64), {}, std::span(&places, 1),
            where);
    return inSizes(one_hot(Located(places, where), elements.count.known, dtype),
                   {{elements.count}, between, elements.sizes}, where);
  }
  auto [square, open] = joined({{elements.count, elements.count}}, where);
  auto coordinates = [&, &square = square, &open = open](int64_t axis) {
    std::vector<const Tensor *> sizes;
    for (const Tensor &size : open)
      sizes.push_back(&size);
    Tensor x;
    applyOp(OpId::iota, runtime::IotaAttrs::make(square, axis, i64), sizes, std::span(&x, 1), where);
    return x;
  };
  Tensor ones = cast(Located(equal(Located(coordinates(0), where), Located(coordinates(1), where)), where), dtype);
  return inSizes(ones, {{elements.count}, between, elements.sizes}, where);
}

/// A derivative has the dtype of its source: in forward mode it comes in that of the target.
static Tensor asDtype(const Tensor &x, DType dtype, const Where &where) {
  return x.body()->type.dtype == dtype ? x : cast(Located(x, where), dtype);
}

/// The axis of the lanes, the first, behind all others but the first `before` of them.
static Tensor lanesAfter(const Tensor &x, int before, int rank, const Where &where) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + 1, order.begin() + 1 + before);
  return before == 0 ? x : transpose(Located(x, where), order);
}

/// What each source is, where only its type and shape count.
static std::vector<Tensor> shapesOf(const std::vector<Source> &sources, const Where &where) {
  std::vector<Tensor> tensors;
  for (const Source &source : sources)
    tensors.push_back(source.variable.defined() ? currentValue(source.variable.state(), where) : source.tensor);
  return tensors;
}

static void checkOptions(const char *what, const JacobianOptions &options, const Where &where) {
  if (options.chunk_size < 0 || options.memory_limit < 0)
    raiseOp(what,
            options.chunk_size < 0 ? "chunk_size is " + std::to_string(options.chunk_size)
                                   : "memory_limit is " + std::to_string(options.memory_limit),
            "0 means all at once, or no limit", {}, where);
}

/// The mode, with its reason, for this many elements of sources and of targets.
static std::pair<bool, std::string> choose(DerivativeMode mode, int64_t sources, int64_t targets) {
  auto text = [](int64_t size) { return size == dynamic ? std::string("?") : std::to_string(size); };
  std::string sizes = text(sources) + (sources == 1 ? " element" : " elements") + " of the sources, " + text(targets) +
                      " of the targets";
  if (mode != DerivativeMode::automatic)
    return {mode == DerivativeMode::forward, "as asked for: " + sizes};
  // What is `?` is more than what is known.
  bool forward = sources != dynamic && (targets == dynamic || sources <= targets);
  return {forward, (forward ? "no more columns than rows: " : "fewer rows than columns: ") + sizes};
}

static std::string noteOf(bool forward, const std::string &reason, const Lanes &lanes) {
  return std::string(forward ? "forward mode, " : "reverse mode, ") + reason +
         (lanes.how.empty() ? "" : (forward ? "; columns " : "; rows ") + lanes.how);
}

std::vector<std::vector<Grad>> Tape::jacobians(const Targets &targets, const std::vector<Source> &sources,
                                               const JacobianOptions &options) {
  const Where &where = targets.where;
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive("jacobian", where, [&] { return jacobians(targets, sources, options); });
  checkLevel("jacobian", where);
  checkOptions("jacobian", options, where);
  checkUnused(where);
  // A target that is an empty gradient has no derivative, for its own reason.
  Targets present = targets;
  std::erase_if(present.list, [](const Source &target) {
    return !target.variable.defined() && !target.tensor.defined() && !target.reason.empty();
  });
  checkAsked("jacobian", present, sources, /*read=*/false);
  std::vector<Tensor> tensors = checkAsked("jacobian", present, sources, recording);
  std::vector<Tensor> shapes = shapesOf(sources, where);
  auto isActive = [](const Tensor &x) { return x.defined() && runtime::isFloat(x.body()->type.dtype); };
  std::vector<std::vector<Grad>> found(tensors.size(), std::vector<Grad>(sources.size()));
  useUp([&] {
    std::vector<std::optional<Elements>> columns, rows;
    // How many elements the list has; `?` if that of one of them is not known.
    auto measure = [&](const std::vector<Tensor> &list, auto &elements) {
      int64_t sum = 0;
      for (const Tensor &x : list) {
        elements.emplace_back();
        if (!isActive(x))
          continue;
        int64_t count = elements.back().emplace(x, 0, where).count.known;
        sum = count == dynamic || sum == dynamic ? dynamic : sum + count;
      }
      return sum;
    };
    int64_t inputs = measure(shapes, columns), outputs = measure(tensors, rows);
    auto [forward, reason] = choose(options.mode, inputs, outputs);
    Lanes lanes{options.chunk_size, options.memory_limit, ""};
    if (forward) {
      for (size_t i = 0; i < sources.size(); ++i) {
        Tensor basis = columns[i] ? basisOf(*columns[i], shapes[i].body()->type.dtype, {}, where) : Tensor();
        std::vector<Grad> tangents = traced ? tangentsTraced(tensors, {sources[i]}, {basis}, &lanes, where)
                                            : tangentsEager(tensors, {sources[i]}, {basis}, &lanes, where);
        std::string unwatched;
        readsOf(sources[i], unwatched);
        for (size_t k = 0; k < tensors.size(); ++k)
          found[k][i] = !tangents[k].has_value()
                            ? (unwatched.empty() ? std::move(tangents[k]) : Grad::none(unwatched))
                            : Grad(inSizes(asDtype(lanesAfter(tangents[k].value(), tensors[k].rank(),
                                                              tensors[k].rank() + 1, where),
                                                   shapes[i].body()->type.dtype, where),
                                           {rows[k]->sizes, columns[i]->sizes}, where));
      }
    } else {
      for (size_t k = 0; k < tensors.size(); ++k) {
        GradientOptions one;
        bool isOne = !rows[k] || rows[k]->count.known == 1; // an ordinary gradient
        if (!isOne)
          one.output_gradients = Seeds(basisOf(*rows[k], tensors[k].body()->type.dtype, {}, where));
        Lanes *many = isOne ? nullptr : &lanes;
        std::vector<Grad> gradients = traced ? gradientTraced({tensors[k]}, sources, one, many, where)
                                             : gradientEager({tensors[k]}, sources, one, many, where);
        for (size_t i = 0; i < sources.size(); ++i)
          found[k][i] = gradients[i].has_value()
                            ? Grad(inSizes(gradients[i].value(), {rows[k]->sizes, columns[i]->sizes}, where))
                            : std::move(gradients[i]);
      }
    }
    jacobianNote = noteOf(forward, reason, lanes);
    if (options.unconnected == Unconnected::zero)
      for (size_t k = 0; k < tensors.size(); ++k)
        for (size_t i = 0; i < sources.size(); ++i)
          if (!found[k][i].has_value() && rows[k] && columns[i])
            found[k][i] = Grad(zerosOf(shapes[i].body()->type.dtype, {rows[k]->sizes, columns[i]->sizes}, where));
    return true;
  });
  std::vector<std::vector<Grad>> all;
  size_t next = 0;
  for (const Source &target : targets.list)
    if (target.variable.defined() || target.tensor.defined() || target.reason.empty())
      all.push_back(std::move(found[next++]));
    else
      all.emplace_back(sources.size(), Grad::none("the target is an empty gradient: " + target.reason));
  return all;
}

Grad Tape::batchJacobian(const Targets &target, const std::vector<Source> &sources, const JacobianOptions &options) {
  constexpr const char *kName = "batch_jacobian";
  const Where &where = target.where;
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive(kName, where, [&] { return batchJacobian(target, sources, options); });
  checkLevel(kName, where);
  checkOptions(kName, options, where);
  checkUnused(where);
  if (target.list.size() != 1)
    raiseOp(kName, std::to_string(target.list.size()) + " targets", "give one tensor", {}, where);
  checkAsked(kName, target, sources, /*read=*/false);
  Tensor y = checkAsked(kName, target, sources, recording).front(), x = shapesOf(sources, where).front();
  const TensorType yType = y.body(where)->type, xType = x.body(where)->type;
  for (const auto &[what, type] : {std::pair("target", yType), std::pair("source", xType)})
    if (type.shape.rank() < 2)
      raiseOp(kName, std::string("the ") + what + " is " + toString(type) + ", and must have rank at least 2",
              "give it an axis of examples and one more; of one value an example: expand_dims(x, 1)", {yType, xType},
              where);
  if (!sameSizes({yType.shape.dim(0)}, {xType.shape.dim(0)}))
    raiseOp(kName,
            "Need first dimension of target shape " + text(yType.shape) + " and source shape " + text(xType.shape) +
                " to match.",
            "the first axis counts examples, which are the same in both", {yType, xType}, where);
  Grad found;
  useUp([&] {
    Elements rows(y, 1, where), columns(x, 1, where);
    auto [forward, reason] = choose(options.mode, columns.count.known, rows.count.known);
    Lanes lanes{options.chunk_size, options.memory_limit, ""};
    // The same element of all examples at once.
    const Tensor &along = forward ? x : y;
    Tensor basis = basisOf(forward ? columns : rows, along.body()->type.dtype, {Size{1, {}}}, where);
    basis = Located(basis, where) + Located(expand_dims(zeros_like(Located(along, where)), 0), where);
    Size examples = sizeOf(y, 0, where);
    if (forward) {
      found = (traced ? tangentsTraced({y}, sources, {basis}, &lanes, where)
                      : tangentsEager({y}, sources, {basis}, &lanes, where))
                  .front();
    } else {
      GradientOptions one;
      one.output_gradients = Seeds(basis);
      found =
          (traced ? gradientTraced({y}, sources, one, &lanes, where) : gradientEager({y}, sources, one, &lanes, where))
              .front();
    }
    // Forward: [x, b, y...], reverse: [y, b, x...].
    if (found.has_value())
      found =
          Grad(inSizes(asDtype(lanesAfter(found.value(), forward ? y.rank() : 1, (forward ? y : x).rank() + 1, where),
                               xType.dtype, where),
                       {{examples}, rows.sizes, columns.sizes}, where));
    else if (options.unconnected == Unconnected::zero)
      found = Grad(zerosOf(xType.dtype, {{examples}, rows.sizes, columns.sizes}, where));
    else if (std::string reason; readsOf(sources.front(), reason).empty())
      found = Grad::none(reason);
    jacobianNote = noteOf(forward, "of an example, " + reason, lanes);
    return true;
  });
  return found;
}

std::vector<std::vector<Grad>> jacobiansOf(GradientTape &tape, const Targets &targets,
                                           const std::vector<Source> &sources, const JacobianOptions &options) {
  return tape.tape(targets.where).jacobians(targets, sources, options);
}

void JacobianNote::set(std::string text) {
  std::lock_guard lock(mutex_);
  text_ = std::move(text);
}
std::string JacobianNote::get() const {
  std::lock_guard lock(mutex_);
  return text_.empty() ? "no Jacobian was computed" : text_;
}

} // namespace detail

std::vector<Grad> GradientTape::jacobianAll(const Targets &target, const std::vector<detail::Source> &sources,
                                            const JacobianOptions &options) {
  std::shared_ptr<detail::Tape> alive = tape_; // a gradient hook may end this tape
  if (target.list.size() != 1)
    detail::raiseOp("jacobian", std::to_string(target.list.size()) + " targets",
                    "give one tensor; of several, ask a persistent tape for each", {}, target.where);
  return tape(target.where).jacobians(target, sources, options).front();
}

Grad GradientTape::batch_jacobian(const Targets &target, const detail::Source &source, const JacobianOptions &options) {
  std::shared_ptr<detail::Tape> alive = tape_;
  return tape(target.where).batchJacobian(target, {source}, options);
}

std::string GradientTape::explain_jacobian(Where where) const {
  const std::string &note = tape(where).jacobianNote;
  return note.empty() ? "the tape was not asked for a Jacobian" : note;
}

} // namespace wg
