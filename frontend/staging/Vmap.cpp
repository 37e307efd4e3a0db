// vmap: one lane is traced, batched as IR, and called as a function of all lanes.
#include "frontend/ops/Operands.h"
#include "frontend/staging/Function.h"

#include <wengert/Vmap.h>

#include "autodiff/Batch.h"
#include "autodiff/Outline.h"
#include "codegen/Pipeline.h"
#include "ir/Build.h"
#include "ir/Rules.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"

#include <numeric>

using namespace mlir;

namespace wg {

LaneAxes::LaneAxes(int axis) : list{axis}, isOne(true) {}
LaneAxes::LaneAxes(Unmapped) : list{unmapped}, isOne(true) {}
LaneAxes::LaneAxes(std::initializer_list<LaneAxis> axes) : list(axes), isOne(false) {}
ArgumentAxes::ArgumentAxes(int axis) : list{axis}, isOne(true) {}
ArgumentAxes::ArgumentAxes(Unmapped) : list{unmapped}, isOne(true) {}
ArgumentAxes::ArgumentAxes(std::initializer_list<LaneAxes> axes) : list(axes), isOne(false) {}

namespace detail {

static constexpr char kName[] = "vmap";
using AxisOf = std::optional<int>;

static const TensorType &typeOf(const Arguments::Leaf &leaf) {
  return leaf.variable ? leaf.variable->state()->type : leaf.tensor->body()->type;
}

/// The axis for a tensor of this rank, or an error.
static int normal(int axis, int rank, const std::string &what, const TensorType &type, const Where &where) {
  int place = axis < 0 ? axis + rank : axis;
  if (place < 0 || place >= rank)
    raiseOp(kName, what + " is " + toString(type) + ", which has no axis " + std::to_string(axis) + " for its lanes",
            "name an axis that it has, or wg::unmapped for what all lanes share", {type}, where);
  return place;
}

/// `argument 1` or, of several tensors, `argument 1 (its tensor 0)`.
static std::string nameOf(size_t leaf, const std::vector<size_t> &ends) {
  size_t argument = 0, begin = 0;
  while (leaf >= ends[argument])
    begin = ends[argument++];
  return "argument " + std::to_string(argument) +
         (ends[argument] - begin > 1 ? " (its tensor " + std::to_string(leaf - begin) + ")" : "");
}

/// The axis of each leaf.
static std::vector<AxisOf> axesOf(const Arguments &arguments, const std::vector<size_t> &ends,
                                  const ArgumentAxes &given) {
  const Where &where = arguments.where;
  if (!given.isOne && given.list.size() != ends.size())
    raiseOp(kName,
            "in_axes has " + std::to_string(given.list.size()) + (given.list.size() == 1 ? " entry" : " entries") +
                " for " + std::to_string(ends.size()) + (ends.size() == 1 ? " argument" : " arguments"),
            "give one axis for all, or one for each argument: {0, wg::unmapped}", {}, where);
  std::vector<AxisOf> axes;
  size_t begin = 0;
  for (size_t argument = 0; argument < ends.size(); ++argument) {
    const LaneAxes &each = given.list[given.isOne ? 0 : argument];
    size_t count = ends[argument] - begin;
    if (!each.isOne && each.list.size() != count)
      raiseOp(kName,
              "in_axes has a list of " + std::to_string(each.list.size()) + " for argument " +
                  std::to_string(argument) + ", which holds " + std::to_string(count) +
                  (count == 1 ? " tensor" : " tensors"),
              "give one axis for all of them, or one for each in order", {}, where);
    for (size_t i = 0; i < count; ++i) {
      AxisOf axis = each.list[each.isOne ? 0 : i].axis;
      size_t leaf = begin + i;
      const TensorType &type = typeOf(arguments.leaves[leaf]);
      if (axis)
        axis = normal(*axis, type.shape.rank(), nameOf(leaf, ends), type, where);
      axes.push_back(axis);
    }
    begin = ends[argument];
  }
  return axes;
}

/// How many lanes there are; all arguments agree, where it is known.
static int64_t countLanes(const Arguments &arguments, const std::vector<size_t> &ends,
                          const std::vector<AxisOf> &axes) {
  int64_t count = dynamic;
  size_t first = axes.size();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i])
      continue;
    int64_t size = typeOf(arguments.leaves[i]).shape.dim(*axes[i]);
    if (count != dynamic && size != dynamic && size != count)
      raiseOp(kName,
              nameOf(first, ends) + " has " + std::to_string(count) + " lanes and " + nameOf(i, ends) + " has " +
                  std::to_string(size) + " (axis " + std::to_string(*axes[i]) + " of " +
                  toString(typeOf(arguments.leaves[i])) + ")",
              "give all the same number, or in_axes = unmapped for what all lanes share",
              {typeOf(arguments.leaves[first]), typeOf(arguments.leaves[i])}, arguments.where);
    if (first == axes.size() || (count == dynamic && size != dynamic))
      first = i;
    count = size == dynamic ? count : size;
  }
  if (first == axes.size())
    raiseOp(kName, "no argument has lanes", "pass a tensor with an axis of lanes, and name it in in_axes", {},
            arguments.where);
  return count;
}

static TensorType laneOf(const TensorType &type, AxisOf axis) {
  if (!axis)
    return type;
  TensorType lane{type.dtype, {}};
  for (int i = 0; i < type.shape.rank(); ++i)
    if (i != *axis)
      lane.shape.push_back(type.shape.dim(i));
  return lane;
}

namespace {

/// Hands one lane of each leaf to the body of a trace.
class LaneFrame final : public TraceFrame {
public:
  LaneFrame(Trace &trace, const Arguments &arguments, const std::vector<AxisOf> &axes)
      : trace_(trace), arguments_(arguments), axes_(axes) {}

  void place(Tensor &leaf) override {
    size_t i = next_++;
    leaf = trace_.placeholder(laneOf(leaf.body()->type, axes_[i]), static_cast<uint32_t>(i), arguments_.where);
  }
  void place(Variable &leaf) override {
    size_t i = next_++;
    for (auto &[before, formal] : formals_)
      if (const Variable &actual = *arguments_.leaves[before].variable; isSameArgument(actual, leaf)) {
        if (axes_[before] != axes_[i])
          raiseOp(kName, describe(*leaf.state()) + " is there twice, with its lanes on different axes",
                  "give it once, or on the same axis", {}, arguments_.where);
        leaf = formal;
        return;
      }
    leaf = trace_.formal(leaf, laneOf(leaf.state()->type, axes_[i]), static_cast<uint32_t>(i), arguments_.where);
    formals_.emplace_back(i, leaf);
  }
  void result(const Tensor &tensor) override { results.push_back(tensor); }
  bool keepsRows() const override { return false; } // each lane has its own

  std::vector<Tensor> results;

private:
  Trace &trace_;
  const Arguments &arguments_;
  const std::vector<AxisOf> &axes_;
  size_t next_ = 0;
  std::vector<std::pair<size_t, Variable>> formals_;
};

/// Writes the function of all lanes around that of one, in its module.
class AllLanes {
public:
  AllLanes(const ConcreteState &concrete, func::FuncOp lane, const Arguments &arguments,
           const std::vector<AxisOf> &axes, int64_t count, const VmapOptions &options)
      : concrete_(concrete), lane_(lane), arguments_(arguments), axes_(axes), count_(count), options_(options),
        loc_(lane.getLoc()), b_(lane), symbols_(lane->getParentOfType<ModuleOp>()) {}

  /// A failure after an error that a diagnostic tells; other errors are thrown.
  FailureOr<func::FuncOp> write();

private:
  AxisOf axisOf(size_t input) const {
    const TraceInput &of = concrete_.inputs[input];
    return of.kind == TraceInput::argument || of.formal ? axes_[of.leaf] : std::nullopt;
  }
  bool isGenerator(size_t input) const {
    const TraceInput &of = concrete_.inputs[input];
    return options_.randomness == Randomness::different && of.kind == TraceInput::variable && !axisOf(input) &&
           variableBehind(of.state)->isGenerator && llvm::is_contained(concrete_.assigned, input);
  }
  Value moved(Value x, int64_t from, int64_t to);
  Value advance(size_t input, Value key);
  Value keysOf(Value key, Value advance);
  OpFoldResult countIn(Value x) { return ir::sizeOf(b_, loc_, x, 0); }
  LogicalResult call(ArrayRef<Value> inputs, ArrayRef<unsigned> places, SmallVector<Value> &values,
                     SmallVector<bool> &batched);

  const ConcreteState &concrete_;
  func::FuncOp lane_;
  const Arguments &arguments_;
  const std::vector<AxisOf> &axes_;
  int64_t count_;
  const VmapOptions &options_;
  Location loc_;
  OpBuilder b_;
  SymbolTable symbols_;
  OpFoldResult lanes_; ///< how many, where it is computed
};

} // namespace

/// x with axis `from` in the place `to`.
Value AllLanes::moved(Value x, int64_t from, int64_t to) {
  if (from == to)
    return x;
  SmallVector<int64_t> order(cast<RankedTensorType>(x.getType()).getRank());
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return ir::transpose(b_, loc_, x, order);
}

/// What a lane's draws add to the key of a generator: the ops of one lane that make its next key, and no others.
Value AllLanes::advance(size_t input, Value key) {
  // Through calls that are kept as such (checkpoints): in a copy without any.
  auto whole = cast<func::FuncOp>(lane_->clone());
  symbols_.insert(whole);
  if (failed(passes::inlineCalls(whole)))
    raiseOp(kName, "the calls of a function that draws cannot be inlined", "", {}, arguments_.where,
            ErrorKind::internal);
  Block &body = whole.getBody().front();
  size_t place = static_cast<size_t>(llvm::find(concrete_.assigned, input) - concrete_.assigned.begin());
  Value next = body.getTerminator()->getOperand(concrete_.numResults + static_cast<unsigned>(place));
  DenseSet<Operation *> needed;
  SmallVector<Value> work{next};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getArgNumber() != input)
        raiseOp(kName,
                "a generator's next key depends on more than its key, or is made in a loop or a condition, so lanes "
                "cannot draw as a loop does",
                "draw from keys instead: random::split gives each lane its own", {}, arguments_.where);
    } else if (needed.insert(value.getDefiningOp()).second) {
      llvm::append_range(work, value.getDefiningOp()->getOperands());
    }
  }
  IRMapping map;
  map.map(body.getArgument(static_cast<unsigned>(input)), key);
  for (Operation &op : body)
    if (needed.contains(&op))
      b_.clone(op, map);
  Value difference = ir::SubOp::create(b_, loc_, map.lookup(next), key);
  symbols_.erase(whole);
  return difference;
}

/// The key of each lane: key + i advance.
Value AllLanes::keysOf(Value key, Value advance) {
  Value all = ir::spread(b_, loc_, advance, lanes_);
  auto type = cast<RankedTensorType>(all.getType());
  SmallVector<Value> sizes = ir::dynamicSizes(b_, loc_, all);
  Value number = ir::IotaOp::create(b_, loc_, type.getShape(), 0, type.getElementType(), sizes);
  return ir::AddOp::create(b_, loc_, ir::spread(b_, loc_, key, lanes_), ir::MulOp::create(b_, loc_, number, all));
}

/// The results of one lane for all of them, at once or by chunks.
LogicalResult AllLanes::call(ArrayRef<Value> inputs, ArrayRef<unsigned> places, SmallVector<Value> &values,
                             SmallVector<bool> &batched) {
  int64_t chunk = count_;
  if (count_ != dynamic) {
    int64_t laneBytes = 0;
    if (options_.chunk_size == 0 && options_.memory_limit > 0) {
      if (failed(passes::inlineCalls(lane_, /*keepDerivatives=*/true)))
        return failure();
      laneBytes = autodiff::laneBytes(lane_, places);
    }
    chunk = Lanes{options_.chunk_size, options_.memory_limit, ""}.chunkOf(count_, laneBytes);
  } else if (options_.chunk_size != 0 || options_.memory_limit != 0) {
    raiseOp(kName, "chunks need a known number of lanes, and it is `?` here",
            "trace with the number, or without chunk_size and memory_limit", {}, arguments_.where);
  }
  FailureOr<autodiff::Batched> all =
      autodiff::callInLanes(b_, loc_, lane_, inputs, places, count_ == dynamic ? ShapedType::kDynamic : count_,
                            count_ == dynamic ? ShapedType::kDynamic : chunk, {.symbols = &symbols_});
  if (failed(all))
    return failure();
  values = std::move(all->values);
  batched = std::move(all->batched);
  return success();
}

FailureOr<func::FuncOp> AllLanes::write() {
  // A called function may draw: the ops that make the next key are to be seen here.
  if (llvm::any_of(concrete_.assigned, [&](size_t input) { return isGenerator(input); }) &&
      failed(passes::inlineCalls(lane_, /*keepDerivatives=*/true)))
    return failure();
  std::string name = lane_.getSymName().str();
  (void)symbols_.rename(lane_, "lane"); // or it keeps its name, and the other gets a new one
  lane_.setPrivate();
  auto whole = func::FuncOp::create(loc_, name, b_.getFunctionType({}, {}));
  symbols_.insert(whole);
  Block *body = whole.addEntryBlock();
  b_.setInsertionPointToStart(body);
  // Sizes first: an argument's lanes, and with them the keys.
  SmallVector<Value> inputs;
  SmallVector<unsigned> places;
  for (auto [i, of] : llvm::enumerate(concrete_.inputs)) {
    Type type = lane_.getArgumentTypes()[i];
    if (axisOf(i))
      type = ir::tensorTypeOf(b_.getContext(), typeOf(arguments_.leaves[of.leaf]));
    inputs.push_back(body->addArgument(type, loc_));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (AxisOf axis = axisOf(i)) {
      inputs[i] = moved(inputs[i], *axis, 0);
      // Its lanes may be `?` where those of another are known.
      Type wanted = ir::batchedType(cast<RankedTensorType>(lane_.getArgumentTypes()[i]),
                                    count_ == dynamic ? ShapedType::kDynamic : count_);
      if (inputs[i].getType() != wanted) {
        SmallVector<OpFoldResult> sizes{b_.getIndexAttr(count_)};
        for (int64_t k = 1; k < cast<RankedTensorType>(wanted).getRank(); ++k)
          sizes.push_back(ir::sizeOf(b_, loc_, inputs[i], k));
        inputs[i] = ir::reshape(b_, loc_, inputs[i], sizes);
      }
      if (!lanes_)
        lanes_ = countIn(inputs[i]);
      places.push_back(static_cast<unsigned>(i));
    }
  SmallVector<Value> nextKeys(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (isGenerator(i)) {
      Value key = inputs[i], step = advance(i, key);
      inputs[i] = keysOf(key, step);
      Value all = ir::ReduceSumOp::create(b_, loc_, ir::spread(b_, loc_, step, lanes_), ArrayRef<int64_t>{0});
      nextKeys[i] = ir::AddOp::create(b_, loc_, key, all);
      places.push_back(static_cast<unsigned>(i));
    }
  llvm::sort(places);
  SmallVector<Value> values;
  SmallVector<bool> batched;
  if (failed(call(inputs, places, values, batched)))
    return failure();

  const LaneAxes &out = options_.out_axes;
  if (!out.isOne && out.list.size() != concrete_.numResults)
    raiseOp(kName,
            "out_axes has " + std::to_string(out.list.size()) + " entries for " + std::to_string(concrete_.numResults) +
                (concrete_.numResults == 1 ? " tensor" : " tensors") + " of the result",
            "give one axis for all of them, or one for each in order", {}, arguments_.where);
  auto typeText = [](Value x) { return toString(ir::runtimeTypeOf(x.getType())); };
  for (uint32_t i = 0; i < concrete_.numResults; ++i) {
    AxisOf axis = out.list[out.isOne ? 0 : i].axis;
    std::string what = "result " + std::to_string(i);
    if (!axis && batched[i])
      raiseOp(kName, what + " is another in each lane (" + typeText(values[i]) + "), and out_axes has unmapped for it",
              "name the axis for its lanes", {}, arguments_.where);
    if (!axis)
      continue;
    if (!batched[i])
      values[i] = ir::spread(b_, loc_, values[i], lanes_);
    auto type = ir::runtimeTypeOf(values[i].getType());
    values[i] = moved(values[i], 0, normal(*axis, type.shape.rank(), what, type, arguments_.where));
  }
  for (auto [k, input] : llvm::enumerate(concrete_.assigned)) {
    size_t i = concrete_.numResults + k;
    if (nextKeys[input]) {
      values[i] = nextKeys[input];
    } else if (AxisOf axis = axisOf(input)) {
      values[i] = moved(batched[i] ? values[i] : ir::spread(b_, loc_, values[i], lanes_), 0, *axis);
      FailureOr<Value> conformed = ir::conform(b_, loc_, values[i], body->getArgument(input));
      if (failed(conformed))
        raiseOp(kName, "a variable is assigned another shape", "", {}, arguments_.where, ErrorKind::internal);
      values[i] = *conformed;
    } else if (batched[i]) {
      raiseOp(kName,
              describe(*variableBehind(concrete_.inputs[input].state)) + " is assigned another value in each lane",
              "return the value instead, or pass a variable that has lanes as an argument", {}, arguments_.where);
    }
  }
  func::ReturnOp::create(b_, loc_, values);
  whole.setFunctionType(b_.getFunctionType(body->getArgumentTypes(), ValueRange(values).getTypes()));
  for (auto [k, input] : llvm::enumerate(concrete_.assigned))
    whole.setArgAttr(input, "wg.result", b_.getI64IntegerAttr(static_cast<int64_t>(concrete_.numResults + k)));
  return whole;
}

void callInLanes(Arguments &arguments, const std::vector<size_t> &ends, Body body, Results &results,
                 const VmapOptions &options) {
  const Where &where = arguments.where;
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive(kName, where, [&] { callInLanes(arguments, ends, body, results, options); });
  if (arguments.symbolic)
    checkInScope(kName, arguments, /*specs=*/false);
  if (options.chunk_size < 0 || options.memory_limit < 0)
    raiseOp(kName,
            options.chunk_size < 0 ? "chunk_size is " + std::to_string(options.chunk_size)
                                   : "memory_limit is " + std::to_string(options.memory_limit),
            "0 means all at once, or no limit", {}, where);
  std::vector<AxisOf> axes = axesOf(arguments, ends, options.in_axes);
  int64_t count = countLanes(arguments, ends, axes);
  std::optional<Trace> made;
  {
    ir::Working working;
    made.emplace(kName, level().trace, where);
  }
  Trace &trace = *made;
  LaneFrame frame(trace, arguments, axes);
  {
    EnterLevel scope(trace.level());
    body.run(body.context, frame);
    trace.finish(frame.results, where);
  }
  std::shared_ptr<ConcreteState> concrete = describeTrace(trace, frame, kName, frame.results.size(), arguments);
  concrete->reason = "every call of a vmap is traced";
  {
    ir::Working working;
    ir::Diagnostics diagnostics(ir::context());
    FailureOr<func::FuncOp> whole = AllLanes(*concrete, trace.function(), arguments, axes, count, options).write();
    if (failed(whole))
      raise(diagnostics.take("the function cannot be batched"), where);
    std::string entry = whole->getSymName().str();
    OwningOpRef<ModuleOp> module = trace.takeModule();
    makeEntry(*module, entry);
    if (failed(verify(*module)))
      raise(diagnostics.take("the batched function does not verify"), where);
    concrete->code = std::make_unique<Code>(std::move(module), entry, /*interpret=*/true, Identities());
  }
  handOver(*concrete, results);
  callConcrete(*concrete, {arguments.leaves.begin(), arguments.leaves.size()}, results.tensors, where);
}

} // namespace detail
} // namespace wg
