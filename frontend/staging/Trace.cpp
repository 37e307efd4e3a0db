// Tracing: each op of the gate becomes one op of the function. Nothing is folded: a later gradient may ask for it.
#include "frontend/staging/Trace.h"

#include "autodiff/Batch.h"
#include "autodiff/Forward.h"
#include "autodiff/Outline.h"
#include "autodiff/Writer.h"
#include "codegen/interpret/Interpret.h"
#include "frontend/staging/Function.h"
#include "ir/Build.h"
#include "ir/Lifetime.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace wg::detail {

using runtime::Array;
using runtime::Attrs;
using runtime::Failure;
using runtime::OpId;

//===- Life -------------------------------------------------------------------------------------------------------===//

Trace::Trace(const std::string &name, Trace *outer, const Where &where)
    : id_(nextSerial()), name_(name), outer_(outer), module_(ModuleOp::create(ir::locationOf(ir::context(), where))),
      symbols_(*module_), imports_(symbols_), builder_(ir::context()) {
  Location loc = module_->getLoc();
  builder_.setInsertionPointToStart(module_->getBody());
  function_ = func::FuncOp::create(builder_, loc, name, builder_.getFunctionType({}, {}));
  symbols_.insert(function_);
  body_ = function_.addEntryBlock();
  builder_.setInsertionPointToStart(body_);
  level_.trace = this;
}

Trace::~Trace() {
  ir::Working working;
  level_.end();
}

void Trace::finish(const std::vector<Tensor> &results, const Where &where) {
  ir::Working working;
  ir::Diagnostics diagnostics(ir::context());
  SmallVector<Value> values;
  for (const Tensor &result : results)
    values.push_back(valueOf(result, "return", where));
  std::vector<Attribute> resultOf(inputs_.size());
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].kind != TraceInput::variable)
      continue;
    const Held &held = held_.find(inputs_[i].state.get())->second;
    if (!held.assigned)
      continue;
    assigned_.push_back(i);
    resultOf[i] = builder_.getI64IntegerAttr(static_cast<int64_t>(values.size()));
    values.push_back(valueOf(held.value, "assign", where));
  }
  builder_.setInsertionPointToEnd(body_);
  func::ReturnOp::create(builder_, locationOf(where), values);
  function_.setFunctionType(builder_.getFunctionType(body_->getArgumentTypes(), ValueRange(values).getTypes()));
  for (uint32_t i = 0; i < resultOf.size(); ++i)
    if (resultOf[i])
      function_.setArgAttr(i, "wg.result", resultOf[i]);
  numOps = static_cast<int64_t>(std::distance(body_->begin(), body_->end())) - 1;
  if (failed(verify(*module_)))
    raise(diagnostics.take("the traced function does not verify"), where);
}

//===- Values and tensors -----------------------------------------------------------------------------------------===//

Tensor Trace::tensorOf(Value value, const Where &where) {
  uint32_t index = static_cast<uint32_t>(values_.size());
  values_.push_back(value);
  TensorType type = ir::runtimeTypeOf(value.getType());
  if (!type.shape.isStatic()) {
    static constinit std::atomic<uint64_t> numbers = 0; // never 2^48 of them
    type.shape.setOwner(++numbers);
    owners_[type.shape.owner()] = index;
  }
  return makeSymbolic(type, id_, index, where);
}

Tensor Trace::ownerOf(const Shape &shape, const Where &where) {
  for (Trace *trace = shape.owner() ? this : nullptr; trace; trace = trace->outer_)
    if (auto at = trace->owners_.find(shape.owner()); at != trace->owners_.end())
      return makeSymbolic(ir::runtimeTypeOf(trace->values_[at->second].getType()), trace->id_, at->second, where);
  return {};
}

Value Trace::addInput(TraceInput input, Type type, const Where &where) {
  inputs_.push_back(std::move(input));
  return body_->addArgument(type, locationOf(where));
}

/// Whether `outer` encloses `trace`, by its number.
static Trace *enclosing(Trace *trace, uint64_t id) {
  for (; trace; trace = trace->outer())
    if (trace->id() == id)
      return trace;
  return nullptr;
}

Level *levelOf(const Tensor &tensor) {
  const TensorState *state = stateOf(tensor);
  Trace *trace = state->symbol ? enclosing(detail::level().trace, state->birth) : nullptr;
  return trace ? &trace->level() : nullptr;
}

Value Trace::valueOf(const Tensor &tensor, const char *op, const Where &where) {
  ir::Working working;
  const TensorState *state = stateOf(tensor);
  if (!state)
    raiseOp(op, "an operand is undefined: a default-constructed tensor has no value", "give it a value: Tensor x(0.0f)",
            {}, where);
  if (state->spec)
    raiseOp(op, "an operand is a specification, which has a dtype and a shape but no value",
            "pass it to Function::trace only", {}, where);
  if (state->symbol && state->birth == id_)
    return values_[state->symbol->value];
  if (auto known = captured_.find(state->id); known != captured_.end())
    return known->second;
  if (state->symbol && !enclosing(outer_, state->birth))
    raiseOutOfScope(op, tensor, where);
  bound |= state->symbol != nullptr;
  Type type = ir::tensorTypeOf(ir::context(), state->type);
  Value value;
  // A small tensor that the traced code itself made is a literal; whatever comes from outside may be a source there.
  if (!state->symbol && state->birth == id_ && state->type.shape.numElements() <= 16)
    value = ir::ConstantOp::create(builder_, locationOf(where), ir::elementsOf(ir::context(), arrayOf(tensor)));
  else
    value = addInput({.kind = TraceInput::capture, .captured = tensor, .state = nullptr}, type, where);
  captured_[state->id] = value;
  if (!value.getDefiningOp())
    return value;
  // The tensor may die and its number never returns, so the entry does no harm.
  return value;
}

Tensor Trace::placeholder(const TensorType &type, uint32_t leaf, const Where &where) {
  ir::Working working;
  return tensorOf(addInput({.kind = TraceInput::argument, .captured = {}, .state = nullptr, .leaf = leaf},
                           ir::tensorTypeOf(ir::context(), type), where),
                  where);
}

Tensor Trace::constant(const Array &scalar, const Shape &shape, const Where &where) {
  ir::Working working;
  Array one = scalar;
  RankedTensorType type = ir::tensorTypeOf(ir::context(), {scalar.dtype(), shape});
  auto elements = cast<DenseElementsAttr>(ir::elementsOf(ir::context(), one));
  if (shape.rank() != 0) {
    Attribute element = *elements.value_begin<Attribute>();
    elements = DenseElementsAttr::get(type, element);
  }
  return tensorOf(ir::ConstantOp::create(builder_, locationOf(where), elements), where);
}

//===- Ops --------------------------------------------------------------------------------------------------------===//

/// An op is on a tape if one of its operands is.
void Trace::record(Operation *op) {
  for (Tape *tape : level_.tapes)
    if (tape->recording &&
        llvm::any_of(op->getOperands(), [&](Value operand) { return tape->traced->values.contains(operand); })) {
      tape->traced->ops.insert(op);
      tape->traced->values.insert(op->result_begin(), op->result_end());
    }
}

std::vector<Tensor> Trace::recorded(Operation *op, const Where &where) {
  record(op);
  std::vector<Tensor> results;
  for (Value result : op->getResults())
    results.push_back(tensorOf(result, where));
  return results;
}

void Trace::apply(OpId id, const Attrs &attrs, std::span<const Tensor *const> operands, std::span<Tensor> results,
                  const Where &where) {
  ir::Working working;
  const char *name = runtime::recordOf(id).name;
  SmallVector<Value, 4> values;
  SmallVector<TensorType, 4> types;
  for (const Tensor *operand : operands) {
    values.push_back(valueOf(*operand, name, where));
    types.push_back(operand->body()->type);
  }
  // The rule is asked first for its failure, which has more to say than a diagnostic.
  runtime::TypeList inferred;
  runtime::Status status = runtime::inferTypes(id, types, attrs, inferred);
  if (!status.ok())
    raise(status.take(), where);
  for (int i = 0; i < inferred.count; ++i)
    if (DType dtype = inferred[static_cast<size_t>(i)].dtype; dtype == DType::f16 || dtype == DType::bf16)
      raiseOp(name, "there are no kernels for " + std::string(nameOf(dtype)), "use f32", {types.begin(), types.end()},
              where, ErrorKind::unimplemented);
  FailureOr<Operation *> op = ir::buildOp(builder_, locationOf(where), id, values, attrs);
  if (failed(op))
    raiseOp(name, "the op cannot be written as IR", "", {types.begin(), types.end()}, where, ErrorKind::internal);
  record(*op);
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = tensorOf((*op)->getResult(i), where);
}

//===- Variables --------------------------------------------------------------------------------------------------===//

Variable Trace::formal(const Variable &actual, const TensorType &type, uint32_t leaf, const Where &where) {
  auto state = std::make_shared<VariableState>();
  state->type = type;
  state->name = actual.state()->name;
  state->trainable = actual.state()->trainable;
  state->isGenerator = actual.state()->isGenerator;
  state->id = actual.state()->id;
  state->birth = id_;
  state->made = where;
  // What a place of a derivative stands for is one value, and counts apart from the variable's other places.
  state->separate = countsAlone(*actual.state());
  if (state->separate)
    separate_.push_back(state->id);
  else
    formals_[actual.id()] = state;
  hold(state, where);
  inputs_.back().leaf = leaf;
  inputs_.back().formal = true;
  return Variable(state);
}

void Trace::noteCaptured(int64_t variable) {
  if ((formals_.contains(variable) || llvm::is_contained(separate_, variable)) &&
      !llvm::is_contained(capturedArguments, variable))
    capturedArguments.push_back(variable);
}

/// The entry of a variable; on first sight it becomes an input.
Trace::Held &Trace::hold(const std::shared_ptr<VariableState> &variable, const Where &where) {
  ir::Working working;
  if (variable->birth && variable->birth != id_ && !enclosing(outer_, variable->birth))
    raiseOutOfScope(*variable, where);
  bool own = variable->birth == id_;
  if (auto formal = formals_.find(variable->id); !own && formal != formals_.end()) {
    noteCaptured(variable->id);
    return hold(formal->second, where);
  }
  auto [at, fresh] = held_.try_emplace(variable.get());
  if (fresh) {
    if (!own)
      noteCaptured(variable->id);
    bound |= variable->birth && !own;
    uint32_t input = static_cast<uint32_t>(inputs_.size());
    Value value = addInput({.kind = TraceInput::variable, .captured = {}, .state = variable},
                           ir::tensorTypeOf(ir::context(), variable->type), where);
    at->second = {input, tensorOf(value, where), false};
    places_[variable->id].push_back(variable.get());
    // One that was assigned at another of its places already.
    for (Held *other : placesOf(variable->id))
      if (other->assigned && other->input != input)
        at->second.value = versionOf(other->value, at->second.value, where);
  }
  return at->second;
}

/// What a trace holds of a variable: one entry, or one for each of its places if these count on their own.
SmallVector<Trace::Held *, 1> Trace::placesOf(int64_t id) {
  SmallVector<Held *, 1> places;
  for (VariableState *state : places_[id])
    places.push_back(&held_.find(state)->second);
  return places;
}

/// `next` in the place of the value `before`: a leaf here, and a read of the variable to a tape outside.
Tensor Trace::versionOf(const Tensor &next, const Tensor &before, const Where &where) {
  Location loc = locationOf(where);
  Value stopped = ir::StopGradientOp::create(builder_, loc, valueOf(next, "assign", where));
  return tensorOf(ir::VersionOp::create(builder_, loc, stopped, valueOf(before, "assign", where)), where);
}

Tensor readIn(Trace &trace, const std::shared_ptr<VariableState> &variable, const Where &where) {
  return trace.read(variable, where);
}
void assignIn(Trace &trace, const std::shared_ptr<VariableState> &variable, const Tensor &value, const Where &where) {
  trace.assign(variable, value, where);
}

Tensor Trace::read(const std::shared_ptr<VariableState> &variable, const Where &where) {
  return hold(variable, where).value;
}

bool Trace::assigns(const VariableState &variable) const {
  auto held = held_.find(const_cast<VariableState *>(&variable));
  return held != held_.end() && held->second.assigned;
}

/// A state change stops gradients: later reads are leaves here, and to a tape outside of the function
/// they are reads of the variable.
void Trace::assign(const std::shared_ptr<VariableState> &variable, const Tensor &value, const Where &where) {
  ir::Working working;
  valueOf(value, "assign", where);
  Held &held = hold(variable, where);
  // All places of the variable have the new value from here on; one of them returns it.
  SmallVector<Held *, 1> places = placesOf(variable->id);
  held.assigned |= llvm::none_of(places, [](Held *place) { return place->assigned; });
  for (Held *place : places)
    place->value = versionOf(value, place->value, where);
}

//===- Calls and gradients ----------------------------------------------------------------------------------------===//

std::vector<Tensor> Trace::call(const Code &code, ArrayRef<Value> operands, const Where &where) {
  ir::Working working;
  // Known sizes where the callee has open ones: a copy of it for these, so that the results' sizes are known as well.
  ir::Diagnostics diagnostics(ir::context());
  FailureOr<func::FuncOp> callee =
      imports_.copyOf(code.function(), code.identities(), ValueRange(operands).getTypes(), code.names());
  if (failed(callee))
    raise(diagnostics.take("the shapes of this call do not fit the function"), where);
  auto op = ir::CallOp::create(builder_, locationOf(where), callee->getResultTypes(),
                               FlatSymbolRefAttr::get(callee->getSymNameAttr()), operands);
  return recorded(op, where);
}

std::vector<Tensor> Trace::add(llvm::function_ref<Operation *(OpBuilder &, Location, SymbolTable &, Imports &)> build,
                               const Where &where) {
  ir::Working working;
  return recorded(build(builder_, locationOf(where), symbols_, imports_), where);
}

/// func @rule(results..., operands..., captured...) { return results }, whose derivative is func @rule_vjp(all of
/// these, results..., cotangents...) { return call @vjp(cotangents, captured...) }, and with a jvp func @rule_jvp(all
/// of these, results..., tangents...) { return call @jvp(tangents, captured...) }. What the rules read comes in where
/// they are written, as a gradient may be taken in another function.
std::vector<Tensor> Trace::withRule(const TracedRule &rule, const Where &where) {
  ir::Working working;
  ir::Diagnostics diagnostics(ir::context());
  Location loc = locationOf(where);
  SmallVector<Value> all(rule.results);
  llvm::append_range(all, rule.operands);
  /// What a rule reads from outside, behind the others: where it begins.
  auto capture = [&](const ConcreteState &traced) {
    size_t first = all.size();
    for (const TraceInput &input : traced.inputs)
      if (input.kind != TraceInput::argument)
        all.push_back(valueOf(input.kind == TraceInput::variable ? readVariable(input.state, where) : input.captured,
                              rule.name, where));
    return first;
  };
  size_t ofVjp = capture(*rule.vjp), ofJvp = rule.jvp ? capture(*rule.jvp) : 0, numResults = rule.results.size();
  SmallVector<unsigned> results, operands; // the floats among them, by their places
  for (unsigned i = 0; i < numResults + rule.operands.size(); ++i)
    if (autodiff::isDifferentiableType(all[i].getType()))
      (i < numResults ? results : operands).push_back(i);
  /// The function for one mode: of what is given for `from`, it returns what the traced function makes for `to`.
  auto write = [&](const ConcreteState &traced, size_t captured, const char *suffix, ArrayRef<unsigned> from,
                   ArrayRef<unsigned> to) {
    func::FuncOp called = imports_.copyOf(traced.code->function(), traced.code->identities());
    autodiff::Writer writer(symbols_, loc, Twine(rule.name) + suffix);
    SmallVector<Value> arguments = writer.arguments(ValueRange(all).getTypes()), given, inputs, returned;
    writer.arguments(ValueRange(rule.results).getTypes());
    for (unsigned place : from)
      given.push_back(writer.argument(all[place].getType()));
    for (const TraceInput &input : traced.inputs)
      inputs.push_back(input.kind == TraceInput::argument ? given[input.leaf] : arguments[captured++]);
    for (auto [place, made] : llvm::zip(to, writer.call(called, inputs))) {
      FailureOr<Value> conformed = ir::conform(writer.b, loc, made, arguments[place]);
      if (failed(conformed))
        raise(diagnostics.take("what a rule returns has another type than what it is of"), where);
      returned.push_back(*conformed);
    }
    func::FuncOp function = writer.finish(returned);
    function->setAttr(autodiff::kArgumentsAttr,
                      builder_.getDenseI64ArrayAttr(SmallVector<int64_t>(operands.begin(), operands.end())));
    return function;
  };
  func::FuncOp vjp = write(*rule.vjp, ofVjp, "_vjp", results, operands);
  std::vector<std::string> reasons(all.size());
  for (size_t i = numResults + rule.operands.size(); i < all.size(); ++i)
    reasons[i] = "no path: the " + std::string(rule.what) + " (" + toString(where) +
                 ") reads it, and only cotangents go through it";
  vjp->setAttr(autodiff::kReasonsAttr,
               builder_.getStrArrayAttr(SmallVector<StringRef>(reasons.begin(), reasons.end())));
  autodiff::Writer writer(symbols_, loc, rule.name);
  SmallVector<Value> arguments = writer.arguments(ValueRange(all).getTypes());
  func::FuncOp identity = writer.finish(ArrayRef(arguments).take_front(numResults));
  identity->setAttr(autodiff::kVjpAttr, autodiff::nameOf(vjp));
  if (rule.jvp)
    identity->setAttr(ir::kJvpAttr, autodiff::nameOf(write(*rule.jvp, ofJvp, "_jvp", operands, results)));
  else if (rule.transposes)
    identity->setAttr(ir::kJvpAttr, builder_.getUnitAttr());
  return recorded(ir::CallOp::create(builder_, loc, identity.getResultTypes(), autodiff::nameOf(identity), all), where);
}

Tensor Trace::prevented(Value x, const std::string &message, const Where &where) {
  ir::Working working;
  Location loc = locationOf(where);
  autodiff::Writer writer(symbols_, loc, "prevent_gradient");
  func::FuncOp identity = writer.finish(writer.argument(x.getType()));
  identity->setAttr(ir::kPreventAttr, builder_.getStringAttr(message));
  return recorded(ir::CallOp::create(builder_, loc, x.getType(), autodiff::nameOf(identity), x), where)[0];
}

namespace {
/// The ops that a builder inserts, in order.
struct Inserted : OpBuilder::Listener {
  SmallVector<Operation *> ops;
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override { ops.push_back(op); }
};
} // namespace

/// A transform at the end of what is traced, which may put a call in the place of another.
template <class Transform>
autodiff::Derivatives Trace::transformed(Tape &tape, bool recordIt, const char *failed, const Where &where,
                                         Transform transform) {
  ir::Working working;
  ir::Diagnostics diagnostics(ir::context());
  auto isRecorded = [&](Operation *op) { return tape.traced->ops.contains(op); };
  auto replaced = [&](Operation *before, Operation *after) {
    for (auto [old, value] : llvm::zip(before->getResults(), after->getResults()))
      for (Value &held : values_)
        if (held == old)
          held = value;
    for (Tape *other : level_.tapes) {
      if (other->traced->ops.erase(before)) {
        other->traced->ops.insert(after);
        // The residuals behind the results, too: the adjoint that reads them is to be recorded.
        other->traced->values.insert(after->result_begin(), after->result_end());
      }
      for (auto [old, value] : llvm::zip(before->getResults(), after->getResults()))
        if (other->traced->values.erase(old))
          other->traced->values.insert(value);
    }
  };
  Inserted inserted;
  OpBuilder b(ir::context(), &inserted);
  b.setInsertionPointToEnd(body_);
  FailureOr<autodiff::Derivatives> derivatives = transform(b, locationOf(where), isRecorded, replaced);
  if (mlir::failed(derivatives))
    raise(diagnostics.take(failed), where);
  if (recordIt)
    for (Operation *op : inserted.ops)
      record(op);
  for (const autodiff::DroppedAdjoint &dropped : derivatives->certificate)
    certificate.push_back({dropped.op, static_cast<int>(dropped.operand), ir::whereOf(dropped.loc), dropped.reason});
  return std::move(*derivatives);
}

autodiff::Gradients Trace::reverse(Tape &tape, ArrayRef<Value> targets, ArrayRef<Value> seeds, ArrayRef<Value> sources,
                                   bool recordIt, const Where &where) {
  return transformed(tape, recordIt, "the gradient could not be built", where,
                     [&](OpBuilder &b, Location loc, auto isRecorded, auto replaced) {
                       return autodiff::reverse(b, loc, targets, seeds, sources,
                                                {.isRecorded = isRecorded, .replaced = replaced, .symbols = &symbols_});
                     });
}

autodiff::Tangents Trace::forward(Tape &tape, ArrayRef<Value> targets, ArrayRef<Value> sources,
                                  ArrayRef<Value> tangents, const Where &where) {
  return transformed(tape, /*recordIt=*/true, "the tangent could not be built", where,
                     [&](OpBuilder &b, Location loc, auto isRecorded, auto replaced) {
                       return autodiff::forward(b, loc, targets, sources, tangents,
                                                {.isRecorded = isRecorded, .replaced = replaced, .symbols = &symbols_});
                     });
}

autodiff::Derivatives Trace::inLanes(Tape &tape, autodiff::Mode mode, ArrayRef<Value> targets, ArrayRef<Value> sources,
                                     Value lanes, Lanes &limits, const Where &where) {
  ir::Working working;
  ir::Diagnostics diagnostics(ir::context());
  bool isForward = mode == autodiff::Mode::forward;
  // One lane, by a value that stands in for its cotangent or tangent.
  Value standIn = ir::zerosLike(builder_, locationOf(where), isForward ? sources.front() : targets.front());
  SmallVector<Value> given(isForward ? sources.size() : 1, standIn);
  autodiff::Derivatives derivatives =
      transformed(tape, /*recordIt=*/false, "the derivative could not be built", where,
                  [&](OpBuilder &b, Location loc, auto isRecorded, auto replaced) -> FailureOr<autodiff::Derivatives> {
                    if (isForward)
                      return autodiff::forward(b, loc, targets, sources, given,
                                               {.isRecorded = isRecorded, .replaced = replaced, .symbols = &symbols_});
                    return autodiff::reverse(b, loc, targets, given, sources,
                                             {.isRecorded = isRecorded, .replaced = replaced, .symbols = &symbols_});
                  });
  SmallVector<Value> outputs;
  for (Value value : derivatives.values)
    if (value)
      outputs.push_back(value);
  if (outputs.empty())
    return derivatives;
  // What depends on the lanes is cut out; the rest stays, is the same in all of them, and is recorded with the calls.
  autodiff::Outlined single =
      autodiff::outline(locationOf(where), isForward ? "tangents" : "cotangents", outputs, standIn, symbols_);
  unsigned place = single.captured.size();
  OpBuilder b = OpBuilder::atBlockEnd(body_);
  Location loc = locationOf(where);
  int64_t count = cast<RankedTensorType>(lanes.getType()).getDimSize(0), chunk = count;
  if (ShapedType::isDynamic(count) && limits.chunk > 0)
    raiseOp("jacobian",
            std::string("chunks need a known number of ") + (isForward ? "columns" : "rows") + ", and it is `?` here",
            "trace with the number, or without chunk_size", {}, where);
  if (!ShapedType::isDynamic(count))
    chunk = limits.chunkOf(count, autodiff::laneBytes(single.function, place));
  limits.how = ShapedType::isDynamic(count) ? "in one batched program, as their number is `?`"
               : chunk == count             ? "in one batched program"
                                            : std::to_string(chunk) + " at a time, by one function";
  SmallVector<Value> operands = single.captured;
  operands.push_back(lanes);
  FailureOr<autodiff::Batched> all =
      autodiff::callInLanes(b, loc, single.function, operands, place, count, chunk, {.symbols = &symbols_});
  if (failed(all))
    raise(diagnostics.take("the derivative could not be batched"), where);
  size_t next = 0;
  for (Value &value : derivatives.values)
    if (value) {
      value =
          all->batched[next] ? all->values[next] : ir::spread(b, loc, all->values[next], ir::sizeOf(b, loc, lanes, 0));
      ++next;
    }
  for (Operation *op = standIn.getDefiningOp(); op; op = op->getNextNode())
    record(op);
  return derivatives;
}

} // namespace wg::detail
