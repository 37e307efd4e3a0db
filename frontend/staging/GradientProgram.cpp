// The list of a tape is written as IR, differentiated by the one transform, and the adjoint is kept as flat
// rows under the structure's hash.
#include "frontend/staging/GradientProgram.h"

#include "frontend/staging/Function.h"
#include "frontend/staging/TapeProgram.h"

#include "autodiff/Batch.h"
#include "autodiff/Forward.h"
#include "autodiff/Outline.h"
#include "codegen/Pipeline.h"
#include "ir/Build.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"

#include <list>
#include <unordered_map>

using namespace mlir;

namespace wg::detail {

using codegen::Row;
using runtime::Array;
using runtime::OpId;

//===- Programs, kept -------------------------------------------------------------------------------------------===//

namespace {

/// The least recently used programs are forgotten, by number and by size.
class ProgramCache {
public:
  std::shared_ptr<const GradientProgram> find(const StructureHash &key) {
    std::lock_guard lock(mutex_);
    auto at = byKey_.find(key.a);
    if (at == byKey_.end() || !(at->second->first == key))
      return nullptr;
    recent_.splice(recent_.begin(), recent_, at->second);
    return at->second->second;
  }
  void insert(const StructureHash &key, std::shared_ptr<const GradientProgram> program) {
    std::lock_guard lock(mutex_);
    if (byKey_.contains(key.a))
      return;
    List added; // nothing changes until both nodes are made
    size_t bytes = program->bytes;
    added.emplace_front(key, std::move(program));
    byKey_.emplace(key.a, added.begin());
    recent_.splice(recent_.begin(), added);
    bytes_ += bytes;
    while (recent_.size() > 1 && (recent_.size() > kPrograms || bytes_ > kBytes)) {
      bytes_ -= recent_.back().second->bytes;
      byKey_.erase(recent_.back().first.a);
      recent_.pop_back();
    }
  }

private:
  static constexpr size_t kPrograms = 512, kBytes = size_t(256) << 20;
  using List = std::list<std::pair<StructureHash, std::shared_ptr<const GradientProgram>>>;
  std::mutex mutex_;
  List recent_;
  std::unordered_map<uint64_t, List::iterator> byKey_;
  size_t bytes_ = 0;
};

ProgramCache &programs() {
  static ProgramCache &cache = *new ProgramCache;
  return cache;
}

//===- From a tape to a program -----------------------------------------------------------------------------------===//

/// Writes the part of a tape that its targets depend on as a function, and differentiates it.
class TapeToProgram {
public:
  TapeToProgram(const EagerTape &tape, LaneCount lanes, const Where &where)
      : tape_(tape), where_(where), builder_(ir::context()), loc_(ir::locationOf(ir::context(), where)) {
    // A rule of C++ takes one cotangent.
    laneByLane_ = lanes && llvm::any_of(tape.calls, [](const RecordedCall &call) { return call.rule != nullptr; });
    if (!laneByLane_)
      lanes_ = lanes;
  }

  GradientProgram adjoint(std::span<const int32_t> targets, std::span<const uint8_t> seeded,
                          std::span<const std::vector<int32_t>> sources, bool rows);
  GradientProgram tangent(std::span<const int32_t> targets, std::span<const std::vector<int32_t>> sources);
  WrittenTape write();

private:
  std::pair<SmallVector<Type>, SmallVector<Type>> typesOf(const Record &record) const;
  void widen(MutableArrayRef<Value> operands, Location loc);
  void declareCall(const Record &record, const std::string &name);
  func::FuncOp declare(const std::string &name, TypeRange inputs, TypeRange results);
  void defineDerivative(func::FuncOp vjp, const Record &record, const Derivative &part);
  void defineTangent(func::FuncOp jvp, const Record &record, const ConcreteState &tangent);
  func::FuncOp inLanes(func::FuncOp function, GradientProgram &program);
  func::FuncOp declareDerivative(ir::CallOp op, ArrayRef<unsigned> results);
  FailureOr<autodiff::DeclaredTangent> declareTangent(ir::CallOp op, ArrayRef<unsigned> arguments,
                                                      ArrayRef<unsigned> results);
  void writeAll(std::span<const int32_t> targets);
  GradientProgram finish(Operation *marker, ArrayRef<Value> outputs, ArrayRef<Value> given, GradientProgram made,
                         ir::Diagnostics &diagnostics);
  void write(const Record &record);
  Value valueOf(int32_t slot);
  func::FuncOp extractAdjoint(Operation *marker, ArrayRef<Value> gradients, ArrayRef<Value> seeds,
                              std::vector<int32_t> &inputs);
  [[noreturn]] void fail(ir::Diagnostics &diagnostics) {
    raise(diagnostics.take("the gradient could not be built"), where_);
  }

  const EagerTape &tape_;
  LaneCount lanes_;
  bool laneByLane_;
  Where where_;
  OpBuilder builder_;
  Location loc_;
  OwningOpRef<ModuleOp> module_;
  std::optional<SymbolTable> symbols_; ///< once what is differentiated is written
  std::optional<Imports> imports_;
  func::FuncOp function_;
  Block *body_ = nullptr;
  DenseMap<int32_t, Value> values_;
  DenseMap<Value, int32_t> slotOf_;
  llvm::StringMap<CallDerivative> calls_;
  DenseMap<Operation *, const Record *> recordOf_; ///< of calls
  DenseSet<Operation *> widened_;                  ///< broadcasts of what the kernels took as scalars
};

} // namespace

/// The value of a slot; one that no written record makes is an argument.
Value TapeToProgram::valueOf(int32_t slot) {
  auto [at, fresh] = values_.try_emplace(slot);
  if (fresh) {
    Type type = ir::tensorTypeOf(ir::context(), tape_.values[static_cast<size_t>(slot)].body()->type);
    at->second = body_->addArgument(type, loc_);
    slotOf_[at->second] = slot;
  }
  return at->second;
}

/// The types of a record's operands and of its results.
std::pair<SmallVector<Type>, SmallVector<Type>> TapeToProgram::typesOf(const Record &record) const {
  std::pair<SmallVector<Type>, SmallVector<Type>> types;
  for (uint32_t i = 0; i < record.numOperands + record.numResults; ++i)
    (i < record.numOperands ? types.first : types.second)
        .push_back(ir::tensorTypeOf(ir::context(),
                                    tape_.values[static_cast<size_t>(tape_.slots[record.first + i])].body()->type));
  return types;
}

/// Declares the called function. Which of its results have a cotangent, and so its derivative, is known when the
/// calls after it were differentiated.
void TapeToProgram::declareCall(const Record &record, const std::string &name) {
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPointToStart(module_->getBody());
  auto [inputs, results] = typesOf(record);
  auto callee = func::FuncOp::create(builder_, loc_, name, builder_.getFunctionType(inputs, results));
  callee.setPrivate();
  callee->setAttr(autodiff::kVjpAttr, FlatSymbolRefAttr::get(ir::context(), name + "_vjp"));
  callee->setAttr(autodiff::kNumResultsAttr,
                  builder_.getI64IntegerAttr(tape_.calls[static_cast<size_t>(record.call)].numResults));
}

/// A declaration in front of the others.
func::FuncOp TapeToProgram::declare(const std::string &name, TypeRange inputs, TypeRange results) {
  auto function = func::FuncOp::create(loc_, name, builder_.getFunctionType(inputs, results));
  function.setPrivate();
  symbols_->insert(function, module_->getBody()->begin());
  return function;
}

/// In lanes there are rows only, no compiled functions: the derivative of a call has a body, which calls copies of
/// backward and, if something that it reads was not kept, of forward.
void TapeToProgram::defineDerivative(func::FuncOp vjp, const Record &record, const Derivative &part) {
  const RecordedCall &call = tape_.calls[static_cast<size_t>(record.call)];
  OpBuilder b = OpBuilder::atBlockBegin(vjp.addEntryBlock());
  auto callCopy = [&](const Code &code, ArrayRef<Value> operands) {
    func::FuncOp copy = imports_->copyOf(code.function(), code.identities());
    return ir::CallOp::create(b, loc_, copy.getResultTypes(), FlatSymbolRefAttr::get(copy.getSymNameAttr()), operands);
  };
  SmallVector<Value> given(vjp.getArguments());
  ArrayRef<Value> operands = ArrayRef(given).take_front(record.numOperands);
  SmallVector<Value> kept(
      ArrayRef(given).slice(record.numOperands + call.numResults, record.numResults - call.numResults));
  bool isWhole = &part == call.derivative.get();
  if (!isWhole && !part.kept)
    kept = SmallVector<Value>(callCopy(*part.forward, operands).getResults().drop_front(part.numResults));
  SmallVector<Value> inputs;
  for (int64_t place : !isWhole && part.kept ? *part.kept : part.residuals)
    inputs.push_back(place >= 0 ? operands[static_cast<size_t>(place)] : kept[static_cast<size_t>(-1 - place)]);
  inputs.append(given.end() - static_cast<std::ptrdiff_t>(part.results.size()), given.end());
  func::ReturnOp::create(b, loc_, callCopy(*part.backward, inputs).getResults());
}

/// The same of a tangent.
void TapeToProgram::defineTangent(func::FuncOp jvp, const Record &record, const ConcreteState &tangent) {
  OpBuilder b = OpBuilder::atBlockBegin(jvp.addEntryBlock());
  SmallVector<Value> inputs(jvp.getArguments().take_front(record.numOperands));
  llvm::append_range(inputs, jvp.getArguments().drop_front(record.numOperands + record.numResults));
  func::FuncOp copy = imports_->copyOf(tangent.code->function(), tangent.code->identities());
  auto called =
      ir::CallOp::create(b, loc_, copy.getResultTypes(), FlatSymbolRefAttr::get(copy.getSymNameAttr()), inputs);
  func::ReturnOp::create(b, loc_, called.getResults());
}

/// `(operands, results, cotangents of those results) -> gradients`.
func::FuncOp TapeToProgram::declareDerivative(ir::CallOp op, ArrayRef<unsigned> places) {
  const Record &record = *recordOf_.lookup(op);
  const RecordedCall &call = tape_.calls[static_cast<size_t>(record.call)];
  std::vector<uint32_t> ofResults(places.begin(), places.end());
  std::shared_ptr<Derivative> derivative =
      call.rule ? nullptr : call.callee->part(call.derivative, ofResults, record.where);
  auto [inputs, results] = typesOf(record);
  SmallVector<Type> all = inputs, gradients;
  all.append(results);
  for (unsigned result : places)
    all.push_back(results[result]);
  SmallVector<int64_t> arguments;
  std::vector<uint32_t> floats; // of the operands
  for (auto [i, input] : llvm::enumerate(inputs))
    if (autodiff::isDifferentiableType(input))
      floats.push_back(static_cast<uint32_t>(i));
  for (uint32_t argument : derivative ? derivative->arguments : floats) {
    gradients.push_back(inputs[argument]);
    arguments.push_back(argument);
  }
  SmallVector<Attribute> reasons;
  for (const std::string &reason : derivative ? derivative->reasons : std::vector<std::string>())
    reasons.push_back(builder_.getStringAttr(reason.starts_with("no path")
                                                 ? "no path: '" + call.callee->name + "' (" + toString(record.where) +
                                                       ") computes nothing from it that the target depends on"
                                                 : reason));
  func::FuncOp vjp = declare(op.getCallee().str() + "_vjp", all, gradients);
  vjp->setAttr(autodiff::kArgumentsAttr, builder_.getDenseI64ArrayAttr(arguments));
  vjp->setAttr(autodiff::kReasonsAttr, builder_.getArrayAttr(reasons));
  if (lanes_)
    defineDerivative(vjp, record, *derivative);
  else
    calls_[vjp.getSymName()] = {static_cast<uint32_t>(record.call), std::move(ofResults)};
  return vjp;
}

/// `(operands, results, tangents of some operands) -> tangents of some results`.
FailureOr<autodiff::DeclaredTangent> TapeToProgram::declareTangent(ir::CallOp op, ArrayRef<unsigned> arguments,
                                                                   ArrayRef<unsigned> asked) {
  const Record &record = *recordOf_.lookup(op);
  const RecordedCall &call = tape_.calls[static_cast<size_t>(record.call)];
  if (call.rule && !call.rule->jvp && !call.rule->transposes) {
    InFlightDiagnostic diagnostic = emitError(ir::locationOf(ir::context(), record.where))
                                    << call.rule->name << " has a rule for cotangents and none for tangents";
    diagnostic.attachNote() << "try: reverse mode";
    return diagnostic;
  }
  CallDerivative derivative{static_cast<uint32_t>(record.call), {}, {}, /*isForward=*/true};
  derivative.arguments.assign(arguments.begin(), arguments.end());
  for (unsigned result : asked)
    if (result < call.numResults)
      derivative.results.push_back(result);
  auto [inputs, results] = typesOf(record);
  std::shared_ptr<const TangentFunction> tangent;
  if (call.rule) { // of all float results
    derivative.results.clear();
    for (auto [i, result] : llvm::enumerate(results))
      if (autodiff::isDifferentiableType(result))
        derivative.results.push_back(static_cast<uint32_t>(i));
  } else {
    tangent = call.callee->tangent(derivative.arguments, derivative.results, record.where);
  }
  SmallVector<Type> all = inputs, tangents;
  all.append(results);
  for (unsigned argument : arguments)
    all.push_back(inputs[argument]);
  autodiff::DeclaredTangent declared;
  for (uint32_t result : tangent ? tangent->results : derivative.results) {
    tangents.push_back(results[result]);
    declared.results.push_back(result);
  }
  declared.function = declare(op.getCallee().str() + "_jvp", all, tangents);
  if (lanes_)
    defineTangent(declared.function, record, *tangent->concrete);
  else
    calls_[declared.function.getSymName()] = std::move(derivative);
  return declared;
}

/// Operands of rank 0 beside others, which the kernels of elementwise ops take: broadcast, as a program must say.
void TapeToProgram::widen(MutableArrayRef<Value> operands, Location loc) {
  auto rankOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank(); };
  auto wide = llvm::find_if(operands, [&](Value value) { return rankOf(value) != 0; });
  if (wide == operands.end())
    return;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(wide->getType()).getShape();
  for (Value &operand : operands)
    if (rankOf(operand) == 0) {
      operand = ir::BroadcastOp::create(builder_, loc, operand, shape, ArrayRef<int64_t>(), ValueRange());
      widened_.insert(operand.getDefiningOp());
    }
}

void TapeToProgram::write(const Record &record) {
  SmallVector<Value> operands;
  for (uint32_t i = 0; i < record.numOperands; ++i)
    operands.push_back(valueOf(tape_.slots[record.first + i]));
  Location loc = ir::locationOf(ir::context(), record.where);
  Operation *op;
  if (record.call >= 0) {
    std::string name = "call" + std::to_string(record.call);
    declareCall(record, name);
    op = ir::CallOp::create(builder_, loc, typesOf(record).second, FlatSymbolRefAttr::get(ir::context(), name),
                            operands);
    recordOf_[op] = &record;
  } else {
    if (runtime::recordOf(record.op).elementwise)
      widen(operands, loc);
    FailureOr<Operation *> built = ir::buildOp(builder_, loc, record.op, operands, record.attrs);
    if (failed(built))
      raiseOp(runtime::recordOf(record.op).name, "a recorded op cannot be written as IR", "", {}, record.where,
              ErrorKind::internal);
    op = *built;
  }
  for (uint32_t i = 0; i < record.numResults; ++i) {
    int32_t slot = tape_.slots[record.first + record.numOperands + i];
    values_[slot] = op->getResult(i);
    slotOf_[op->getResult(i)] = slot;
  }
}

/// Moves the adjoint into a function of its own, whose arguments are the forward values that it reads.
func::FuncOp TapeToProgram::extractAdjoint(Operation *marker, ArrayRef<Value> gradients, ArrayRef<Value> seeds,
                                           std::vector<int32_t> &inputs) {
  SmallVector<Type> resultTypes(ValueRange(gradients).getTypes());
  auto adjoint = func::FuncOp::create(loc_, "adjoint", builder_.getFunctionType({}, resultTypes));
  symbols_->insert(adjoint);
  Block *block = adjoint.addEntryBlock();
  builder_.setInsertionPointToStart(block);
  IRMapping map;
  auto place = [&](Value value) {
    if (map.contains(value))
      return;
    map.map(value, block->addArgument(value.getType(), loc_));
    auto seed = llvm::find(seeds, value);
    inputs.push_back(seed != seeds.end() ? -1 - static_cast<int32_t>(seed - seeds.begin()) : slotOf_.lookup(value));
  };
  auto need = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && widened_.contains(op) && !map.contains(value)) {
      place(op->getOperand(0));
      builder_.clone(*op, map);
    } else if (!op || op->getBlock() != marker->getBlock() || op->isBeforeInBlock(marker))
      place(value);
  };
  for (Operation *op = marker->getNextNode(); op; op = op->getNextNode()) {
    for (Value operand : op->getOperands())
      need(operand);
    builder_.clone(*op, map);
  }
  SmallVector<Value> returned;
  for (Value gradient : gradients) {
    need(gradient);
    returned.push_back(map.lookup(gradient));
  }
  func::ReturnOp::create(builder_, loc_, returned);
  adjoint.setFunctionType(builder_.getFunctionType(block->getArgumentTypes(), resultTypes));
  return adjoint;
}

/// Writes what the targets depend on.
void TapeToProgram::writeAll(std::span<const int32_t> targets) {
  module_ = ModuleOp::create(loc_);
  builder_.setInsertionPointToStart(module_->getBody());
  function_ = func::FuncOp::create(builder_, loc_, "tape", builder_.getFunctionType({}, {}));
  body_ = function_.addEntryBlock();
  builder_.setInsertionPointToStart(body_);

  // Backwards from the targets: the records that they depend on.
  std::vector<bool> needed(tape_.values.size(), false);
  for (int32_t target : targets)
    needed[static_cast<size_t>(target)] = true;
  std::vector<bool> written(tape_.records.size(), false);
  for (size_t i = tape_.records.size(); i-- > 0;) {
    const Record &record = tape_.records[i];
    for (uint32_t k = 0; k < record.numResults; ++k)
      written[i] = written[i] || needed[static_cast<size_t>(tape_.slots[record.first + record.numOperands + k])];
    for (uint32_t k = 0; written[i] && k < record.numOperands; ++k)
      needed[static_cast<size_t>(tape_.slots[record.first + k])] = true;
  }
  for (size_t i = 0; i < tape_.records.size(); ++i)
    if (written[i])
      write(tape_.records[i]);
  symbols_.emplace(*module_);
  imports_.emplace(*symbols_);
}

llvm::SmallVector<ir::ScatterAddOp> scattersOf(Value gradient) {
  constexpr size_t kMost = 64; // of more a tensor is the shorter way, as it is where one part counts several times
  SmallVector<ir::ScatterAddOp> parts;
  DenseSet<Value> seen;
  SmallVector<Value> work{gradient};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second || parts.size() == kMost)
      return {};
    if (auto sum = value.getDefiningOp<ir::AddOp>()) {
      llvm::append_range(work, llvm::reverse(sum->getOperands()));
      continue;
    }
    auto rows = value.getDefiningOp<ir::ScatterAddOp>();
    // Only the number of indices may be open.
    if (!rows || rows.getBatchDims() != 0 || !rows.getType().hasStaticShape())
      return {};
    parts.push_back(rows);
  }
  return parts;
}

GradientProgram TapeToProgram::adjoint(std::span<const int32_t> targets, std::span<const uint8_t> seeded,
                                       std::span<const std::vector<int32_t>> sources, bool rows) {
  ir::Working working;
  ir::Diagnostics diagnostics(ir::context());
  writeAll(targets);
  SmallVector<Value> targetValues, seedValues, givenSeeds, sourceValues;
  for (auto [target, given] : llvm::zip_equal(targets, seeded)) {
    targetValues.push_back(valueOf(target));
    seedValues.push_back(given ? body_->addArgument(targetValues.back().getType(), loc_) : Value());
    if (given)
      givenSeeds.push_back(seedValues.back());
  }
  for (const auto &slots : sources)
    for (int32_t slot : slots)
      sourceValues.push_back(valueOf(slot));
  Operation *marker = arith::ConstantIndexOp::create(builder_, loc_, 0);
  auto derivativeOf = [&](ir::CallOp op, ArrayRef<unsigned> results) -> FailureOr<func::FuncOp> {
    return declareDerivative(op, results);
  };
  autodiff::ReverseOptions options;
  options.derivativeOf = derivativeOf;
  FailureOr<autodiff::Gradients> gradients =
      autodiff::reverse(builder_, loc_, targetValues, seedValues, sourceValues, options);
  if (failed(gradients))
    fail(diagnostics);

  // A variable that was read several times under the tape has several places; its gradient is their sum.
  GradientProgram result;
  SmallVector<Value> sums;
  size_t next = 0;
  for (const auto &slots : sources) {
    Value sum;
    std::string reason;
    for (size_t k = 0; k < slots.size(); ++k, ++next) {
      Value part = gradients->values[next];
      if (part)
        sum = sum ? ir::AddOp::create(builder_, loc_, sum, part).getResult() : part;
      else if (reason.empty() || reason.starts_with("no path"))
        reason = gradients->reasons[next];
    }
    result.outputs.push_back(sum ? static_cast<int32_t>(sums.size()) : -1);
    result.reasons.push_back(sum ? "" : reason);
    SmallVector<ir::ScatterAddOp> parts;
    if (sum && rows)
      parts = scattersOf(sum);
    for (ir::ScatterAddOp part : parts)
      sums.append({part.getIndices(), part.getUpdates()});
    if (sum && parts.empty())
      sums.push_back(sum);
    result.parts.push_back(static_cast<int32_t>(parts.size()));
  }
  return finish(marker, sums, givenSeeds, std::move(result), diagnostics);
}

GradientProgram TapeToProgram::tangent(std::span<const int32_t> targets,
                                       std::span<const std::vector<int32_t>> sources) {
  ir::Working working;
  ir::Diagnostics diagnostics(ir::context());
  writeAll(targets);
  SmallVector<Value> targetValues, sourceValues, moves, given;
  for (int32_t target : targets)
    targetValues.push_back(valueOf(target));
  // A variable that was read several times has several places, which all move.
  for (const auto &slots : sources) {
    Value move;
    for (int32_t slot : slots) {
      sourceValues.push_back(valueOf(slot));
      if (!move)
        given.push_back(move = body_->addArgument(sourceValues.back().getType(), loc_));
      moves.push_back(move);
    }
  }
  Operation *marker = arith::ConstantIndexOp::create(builder_, loc_, 0);
  auto tangentOf = [&](ir::CallOp op, ArrayRef<unsigned> arguments, ArrayRef<unsigned> results) {
    return declareTangent(op, arguments, results);
  };
  autodiff::ForwardOptions options;
  options.tangentOf = tangentOf;
  FailureOr<autodiff::Tangents> tangents =
      autodiff::forward(builder_, loc_, targetValues, sourceValues, moves, options);
  if (failed(tangents))
    fail(diagnostics);
  GradientProgram result;
  SmallVector<Value> values;
  for (Value value : tangents->values) {
    result.outputs.push_back(value ? static_cast<int32_t>(values.size()) : -1);
    if (value)
      values.push_back(value);
  }
  result.reasons = std::move(tangents->reasons);
  return finish(marker, values, given, std::move(result), diagnostics);
}

/// The rows that compute `outputs` from what the tape holds and from `given`.
GradientProgram TapeToProgram::finish(Operation *marker, ArrayRef<Value> outputs, ArrayRef<Value> given,
                                      GradientProgram result, ir::Diagnostics &diagnostics) {
  // Keep the outputs alive while what no one reads is erased.
  OperationState keep(loc_, func::ReturnOp::getOperationName());
  keep.addOperands(outputs);
  Operation *last = builder_.create(keep);
  autodiff::eraseDead(*body_, marker);
  last->erase();
  func::FuncOp function = extractAdjoint(marker, outputs, given, result.inputs);
  result.laneByLane = laneByLane_;
  if (lanes_)
    function = inLanes(function, result);
  if (!function)
    fail(diagnostics);
  FailureOr<codegen::Program> program = codegen::flatten(function);
  if (failed(program))
    fail(diagnostics);
  result.program = std::move(*program);
  result.calls = std::move(calls_);
  result.bytes = result.program.rows.size() * (sizeof(Row) + 32);
  for (const Array &constant : result.program.constants)
    result.bytes += constant.numBytes();
  return result;
}

/// The function for many cotangents or tangents at once; null after an error.
func::FuncOp TapeToProgram::inLanes(func::FuncOp function, GradientProgram &program) {
  if (failed(passes::inlineCalls(function)))
    return {};
  SmallVector<unsigned> places;
  for (auto [i, input] : llvm::enumerate(program.inputs))
    if (input < 0)
      places.push_back(i);
  program.laneBytes = autodiff::laneBytes(function, places);
  program.batched.assign(function.getNumResults(), false);
  if (places.empty())
    return function;
  FailureOr<autodiff::BatchedFunction> batched =
      autodiff::batchedFunction(function, places, *lanes_, {.symbols = &*symbols_});
  if (failed(batched))
    return {};
  program.batched.assign(batched->results.begin(), batched->results.end());
  return batched->function;
}

WrittenTape TapeToProgram::write() {
  ir::Working working;
  ir::Diagnostics diagnostics(ir::context());
  std::vector<int32_t> made;
  for (const Record &record : tape_.records)
    for (uint32_t k = 0; k < record.numResults; ++k)
      made.push_back(tape_.slots[record.first + record.numOperands + k]);
  writeAll(made);
  SmallVector<Value> returned;
  for (int32_t slot : made)
    returned.push_back(valueOf(slot));
  func::ReturnOp::create(builder_, loc_, returned);
  function_.setFunctionType(builder_.getFunctionType(body_->getArgumentTypes(), ValueRange(returned).getTypes()));
  // What was called is only declared: its derivatives are made anew.
  for (auto function : module_->getOps<func::FuncOp>())
    if (function != function_) {
      function->removeAttr(autodiff::kVjpAttr);
      function->removeAttr(autodiff::kNumResultsAttr);
    }
  if (failed(verify(*module_)))
    fail(diagnostics);
  WrittenTape written{.module = {}, .entry = function_.getSymName().str(), .leaves = {}};
  for (Value argument : body_->getArguments())
    written.leaves.push_back(slotOf_.lookup(argument));
  written.module = std::move(module_);
  return written;
}

WrittenTape writeTape(const EagerTape &tape, const Where &where) { return TapeToProgram(tape, {}, where).write(); }

template <class Make> static std::shared_ptr<const GradientProgram> kept(const StructureHash &key, Make make) {
  if (auto known = programs().find(key))
    return known;
  ir::Working working; // until what is written on the way is erased
  auto program = std::make_shared<GradientProgram>(make());
  programs().insert(key, program);
  return program;
}

std::shared_ptr<const GradientProgram> gradientProgram(const EagerTape &tape, const StructureHash &key,
                                                       std::span<const int32_t> targets,
                                                       std::span<const uint8_t> seeded,
                                                       std::span<const std::vector<int32_t>> sources, bool rows,
                                                       LaneCount lanes, const Where &where) {
  return kept(key, [&] { return TapeToProgram(tape, lanes, where).adjoint(targets, seeded, sources, rows); });
}

std::shared_ptr<const GradientProgram> tangentProgram(const EagerTape &tape, const StructureHash &key,
                                                      std::span<const int32_t> targets,
                                                      std::span<const std::vector<int32_t>> sources, LaneCount lanes,
                                                      const Where &where) {
  return kept(key, [&] { return TapeToProgram(tape, lanes, where).tangent(targets, sources); });
}

} // namespace wg::detail
