// What a tape keeps, and which derivatives read it.
#include "frontend/staging/Function.h"
#include "frontend/staging/GradientProgram.h"

#include "mlir/IR/IRMapping.h"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <unordered_map>

using namespace mlir;

namespace wg {
namespace detail {

static std::string placed(const std::string &name, const std::string &place) {
  return "'" + name + "'" + (place.empty() ? place : " (" + place + ")");
}

static void addReader(MemoryReport::Value &value, const std::string &reader) {
  if (std::find(value.readers.begin(), value.readers.end(), reader) == value.readers.end())
    value.readers.push_back(reader);
}

/// While a report is made, what is recorded has its number for its place in the source, and so has what a derivative
/// computes for it: ops of one line are told apart.
static constexpr const char *kNumbered = "recorded";
static Where numberedPlace(size_t number) { return {kNumbered, nullptr, static_cast<uint32_t>(number + 1), 0}; }

static std::string nameOf(Operation *op) {
  auto call = dyn_cast<ir::CallOp>(op);
  auto callee = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr()) : func::FuncOp();
  StringRef name = callee && callee->hasAttr(ir::kVjpAttr) ? "with_gradient_hook"
                   : call                                  ? call.getCallee()
                                                           : op->getName().stripDialect();
  return placed(name.str(), ir::whereOf(op->getLoc()));
}

namespace {

/// The bodies of conditions and loops, and the functions that derivatives made: where what they hand on comes from, and
/// goes to.
class Bodies {
public:
  /// `originals`: the ops of the program by number, for those that are numbered; else each op speaks for itself.
  Bodies(ModuleOp module, ArrayRef<Operation *> originals) : symbols_(module), originals_(originals) {}

  /// What the user wrote for it; null if that is unknown.
  Operation *originalOf(Operation *op) const {
    if (originals_.empty())
      return op;
    auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
    return place && place.getFilename() == kNumbered ? originals_[place.getLine() - 1] : nullptr;
  }
  /// Each op whose derivative reads `use`; in a body the ops that read it there.
  void findReaders(OpOperand &use, llvm::SetVector<Operation *> &readers);
  /// `'tanh' (net.cpp:12)`: what made `value`; of what a loop stacks, or a branch hands on, what made it there.
  std::string makerOf(mlir::Value value);

private:
  /// Whether the op stands for its bodies: no call that the user wrote.
  bool isEntered(Operation *op) const {
    return ir::isControl(op) ||
           (isa<ir::CallOp>(op) && (originals_.empty() || !isa_and_nonnull<ir::CallOp>(originalOf(op))));
  }
  SmallVector<func::FuncOp> bodiesOf(Operation *op) {
    SmallVector<func::FuncOp> bodies;
    for (FlatSymbolRefAttr name : cast<ir::WithBodies>(op).bodyNames())
      if (auto body = symbols_.lookup<func::FuncOp>(name.getAttr()); body && !body.isDeclaration())
        bodies.push_back(body);
    return bodies;
  }

  SymbolTable symbols_;
  ArrayRef<Operation *> originals_;
};

} // namespace

/// The argument of body number `body` that operand `i` of an op with bodies is; none if that decides what runs.
static std::optional<unsigned> argumentOf(Operation *op, unsigned body, unsigned i) {
  if (isa<ir::CallOp>(op))
    return i;
  auto loop = dyn_cast<ir::LoopOp>(op);
  unsigned first = loop ? loop.getLimited() : 1;
  if (i < first)
    return std::nullopt;
  i -= first;
  if (!loop || body == 0 || i < loop.getCarried())
    return i;
  return i < loop.getCarried() + loop.getScanned() ? std::nullopt : std::optional<unsigned>(i - loop.getScanned());
}

void Bodies::findReaders(OpOperand &use, llvm::SetVector<Operation *> &readers) {
  Operation *op = use.getOwner();
  if (op->hasTrait<OpTrait::IsTerminator>())
    return;
  if (!isEntered(op)) {
    // What a called derivative is given and does not read is not kept for it.
    if (isa<ir::CallOp>(op))
      for (func::FuncOp callee : bodiesOf(op))
        if (callee.getArgument(use.getOperandNumber()).use_empty())
          return;
    readers.insert(op);
    return;
  }
  for (auto [k, body] : llvm::enumerate(bodiesOf(op)))
    if (std::optional<unsigned> argument = argumentOf(op, static_cast<unsigned>(k), use.getOperandNumber())) {
      for (OpOperand &inside : body.getArgument(*argument).getUses())
        findReaders(inside, readers);
    } else {
      readers.insert(op);
    }
}

std::string Bodies::makerOf(mlir::Value value) {
  Operation *maker = value.getDefiningOp();
  Operation *original = maker ? originalOf(maker) : nullptr;
  if (!maker || (!original && !isEntered(maker)))
    return {};
  auto result = cast<OpResult>(value).getResultNumber();
  bool isKept = !originals_.empty() && original && result >= original->getNumResults();
  if (isEntered(maker) ? !originals_.empty() && original && !isKept : !isKept)
    return nameOf(original);
  std::string inside;
  auto loop = dyn_cast<ir::LoopOp>(maker);
  unsigned returned = loop && result >= loop.getCarried() ? result - loop.hasCondition() : result;
  for (func::FuncOp body : loop ? SmallVector{bodiesOf(maker).front()} : bodiesOf(maker)) {
    mlir::Value made = body.getBody().front().getTerminator()->getOperand(returned);
    std::string name = loop && isa<BlockArgument>(made) ? "what it carries" : makerOf(made);
    inside += (inside.empty() || name.empty() ? "" : " or ") + name;
  }
  if (!isEntered(maker))
    return nameOf(original) + (inside.empty() ? "" : ": " + inside) + ", kept for its derivative";
  if (isa<ir::CallOp>(maker) || inside.empty())
    return inside;
  return nameOf(original ? original : maker) + (loop ? ", of each turn " : ", of a branch ") + inside;
}

/// What each slot is, as its buffer's owner is named.
static std::vector<std::string> namesOf(const Tape &tape) {
  ir::Working working;
  const EagerTape &eager = tape.eager;
  std::vector<std::string> names(eager.values.size(), "a constant");
  auto name = [&](int32_t slot, const std::string &what) {
    if (slot >= 0)
      names[static_cast<size_t>(slot)] = what;
  };
  for (const Tape::WatchedTensor &watched : tape.watchedTensors)
    name(watched.slot, "a watched tensor");
  for (const Tape::WatchedVariable &entry : tape.variables)
    for (const Tensor &read : entry.reads)
      name(eager.slotOf.find(stateOf(read)->id), describe(*entry.variable));
  for (const Record &record : eager.records) {
    const RecordedCall *call = record.call >= 0 ? &eager.calls[static_cast<size_t>(record.call)] : nullptr;
    std::optional<Bodies> bodies;
    for (uint32_t i = 0; i < record.numResults; ++i) {
      std::string text = nameOf(eager, record);
      if (call && i >= call->numResults) {
        func::FuncOp forward = call->derivative->forward->function();
        if (!bodies)
          bodies.emplace(call->derivative->forward->module(), ArrayRef<Operation *>());
        std::string inside = bodies->makerOf(forward.getBody().front().getTerminator()->getOperand(i));
        text += (inside.empty() ? "" : ": " + inside) + ", kept for its derivative";
      }
      name(eager.slots[record.first + record.numOperands + i], text);
    }
  }
  return names;
}

/// For each slot the records whose derivatives read it, in the gradient of all that the tape leads to.
static std::vector<std::vector<size_t>> readersOf(const EagerTape &eager, const Where &where) {
  size_t count = eager.values.size();
  std::vector<bool> isMade(count, false), isRead(count, false);
  EagerTape numbered = eager;
  for (size_t k = 0; k < eager.records.size(); ++k) {
    const Record &record = eager.records[k];
    numbered.records[k].where = numberedPlace(k);
    for (uint32_t i = 0; i < record.numOperands + record.numResults; ++i)
      (i < record.numOperands ? isRead : isMade)[static_cast<size_t>(eager.slots[record.first + i])] = true;
  }
  std::vector<int32_t> targets;
  std::vector<std::vector<int32_t>> sources;
  for (size_t slot = 0; slot < count; ++slot) {
    if (!eager.tracked[slot] || !runtime::isFloat(eager.values[slot].body()->type.dtype))
      continue;
    if (isMade[slot] && !isRead[slot])
      targets.push_back(static_cast<int32_t>(slot));
    if (!isMade[slot])
      sources.push_back({static_cast<int32_t>(slot)});
  }
  std::vector<std::vector<size_t>> readers(count);
  if (targets.empty() || sources.empty())
    return readers;
  StructureHash key = eager.hash;
  key.mix(0x40);
  std::vector<uint8_t> seeded(targets.size(), 1);
  std::shared_ptr<const GradientProgram> program =
      gradientProgram(numbered, key, targets, seeded, sources, false, std::nullopt, where);
  for (const codegen::Row &row : program->program.rows)
    for (uint32_t i = 0; i < row.numOperands; ++i) {
      uint32_t place = program->program.slots[row.first + i];
      int32_t slot = place < program->inputs.size() ? program->inputs[place] : -1;
      if (slot < 0 || !row.where || std::string_view(row.where.file) != kNumbered)
        continue;
      if (row.op == runtime::OpId::call) {
        // Of what a call takes, its derivative reads some.
        const RecordedCall &call = eager.calls[program->calls.find(row.attrs.string(0))->second.call];
        if (call.rule)
          continue;
        auto inputs = static_cast<int64_t>(call.callee->inputs.size());
        int64_t residual = static_cast<int64_t>(i) - inputs - call.numResults;
        int64_t asked = static_cast<int64_t>(i) < inputs ? static_cast<int64_t>(i) : -1 - residual;
        bool isResult = static_cast<int64_t>(i) >= inputs && residual < 0;
        const std::vector<int64_t> &reads = call.derivative->residuals;
        if (isResult || std::find(reads.begin(), reads.end(), asked) == reads.end())
          continue;
      }
      readers[static_cast<size_t>(slot)].push_back(row.where.line - 1);
    }
  return readers;
}

/// Of an eager tape: every value that it holds, and who reads it.
static MemoryReport reportOf(const Tape &tape, const Where &where) {
  const EagerTape &eager = tape.eager;
  std::vector<std::string> names = namesOf(tape);
  std::vector<std::vector<size_t>> readers = readersOf(eager, where);
  MemoryReport report;
  std::unordered_map<const void *, size_t> byBuffer;
  for (size_t slot = 0; slot < eager.values.size(); ++slot) {
    const Tensor &tensor = eager.values[slot];
    auto bytes = static_cast<int64_t>(arrayOf(tensor).numBytes());
    size_t at = report.values.size();
    if (bytes > 0)
      at = byBuffer.try_emplace(stateOf(tensor)->buffer.data(), at).first->second;
    if (at == report.values.size())
      report.values.push_back({names[slot] + ": " + toString(tensor.body()->type), bytes, {}});
    else if (names[slot].starts_with("variable ") && report.values[at].what.find(names[slot]) == std::string::npos)
      report.values[at].what = names[slot] + ", assigned " + report.values[at].what;
    for (size_t reader : readers[slot])
      addReader(report.values[at], nameOf(eager, eager.records[reader]));
  }
  return report;
}

static std::string nameOf(const TraceInput &input) {
  return input.kind == TraceInput::variable   ? describe(*variableBehind(input.state))
         : input.kind == TraceInput::argument ? "argument " + std::to_string(input.leaf)
                                              : "a captured tensor";
}

/// What a variable was assigned, `version(stop_gradient(value), before)`, is known by the variable.
static std::string nameOf(ir::VersionOp op, const Trace &trace) {
  mlir::Value value = op->getOperand(0), before = op->getOperand(1);
  if (auto stop = value.getDefiningOp<ir::StopGradientOp>())
    value = stop->getOperand(0);
  while (auto earlier = before.getDefiningOp<ir::VersionOp>())
    before = earlier->getOperand(1);
  auto input = dyn_cast<BlockArgument>(before), assigned = dyn_cast<BlockArgument>(value);
  return (input ? nameOf(trace.inputs()[input.getArgNumber()]) : "a variable") + ", assigned " +
         (assigned ? nameOf(trace.inputs()[assigned.getArgNumber()]) : nameOf(value.getDefiningOp()));
}

/// Of a tape in a trace: the values that the gradient of all that it leads to reads, found on a copy.
static MemoryReport reportOfTrace(Tape &tape, Trace &trace, const Where &where) {
  ir::Working working;
  ir::Diagnostics diagnostics(ir::context());
  IRMapping map;
  auto program = trace.function()->getParentOfType<ModuleOp>();
  OwningOpRef<ModuleOp> module = cast<ModuleOp>(program->clone(map));
  Block &traced = trace.function().getBody().front();
  Block &body = cast<func::FuncOp>(map.lookup(trace.function().getOperation())).getBody().front();
  std::vector<Operation *> originals; // as they were traced, by number
  llvm::DenseSet<Operation *> recorded;
  for (auto function : program.getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      Operation *copy = map.lookup(op);
      if (op != function)
        copy->setLoc(ir::locationOf(copy->getContext(), numberedPlace(originals.size())));
      originals.push_back(op);
      if (tape.traced->ops.contains(op))
        recorded.insert(copy);
    });
  SmallVector<mlir::Value> targets, sources;
  auto sort = [&](mlir::Value original) {
    if (!tape.traced->values.contains(original) || !autodiff::isDifferentiableType(original.getType()))
      return;
    Operation *maker = original.getDefiningOp();
    if (!maker || !tape.traced->ops.contains(maker))
      sources.push_back(map.lookup(original));
    else if (llvm::none_of(original.getUsers(), [&](Operation *user) { return tape.traced->ops.contains(user); }))
      targets.push_back(map.lookup(original));
  };
  for (mlir::Value argument : traced.getArguments())
    sort(argument);
  for (Operation &op : traced)
    for (mlir::Value result : op.getResults())
      sort(result);
  MemoryReport report;
  if (targets.empty() || sources.empty())
    return report;
  OpBuilder b = OpBuilder::atBlockEnd(&body);
  Operation *marker = arith::ConstantIndexOp::create(b, trace.function().getLoc(), 0);
  auto isRecorded = [&](Operation *op) { return recorded.contains(op); };
  FailureOr<autodiff::Gradients> gradients =
      autodiff::reverse(b, trace.function().getLoc(), targets, {}, sources, {.isRecorded = isRecorded});
  if (failed(gradients))
    raise(diagnostics.take("the gradient could not be built"), where);
  OperationState keep(trace.function().getLoc(), func::ReturnOp::getOperationName());
  for (mlir::Value value : gradients->values)
    if (value)
      keep.addOperands(value);
  b.create(keep);
  autodiff::eraseDead(body, marker);

  Bodies bodies(*module, originals);
  llvm::MapVector<mlir::Value, llvm::SetVector<Operation *>> readers;
  for (Operation *op = marker->getNextNode(); op && !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode())
    for (OpOperand &use : op->getOpOperands()) {
      Operation *maker = use.get().getDefiningOp();
      if (!isa<RankedTensorType>(use.get().getType()) || (maker && !maker->isBeforeInBlock(marker)))
        continue;
      llvm::SetVector<Operation *> found;
      bodies.findReaders(use, found);
      if (!found.empty())
        readers[use.get()].insert(found.begin(), found.end());
    }
  auto entries = readers.takeVector();
  llvm::sort(entries, [](const auto &a, const auto &b) {
    Operation *left = a.first.getDefiningOp(), *right = b.first.getDefiningOp();
    if (left && right)
      return left == right ? cast<OpResult>(a.first).getResultNumber() < cast<OpResult>(b.first).getResultNumber()
                           : left->isBeforeInBlock(right);
    return !left &&
           (right || cast<BlockArgument>(a.first).getArgNumber() < cast<BlockArgument>(b.first).getArgNumber());
  });
  for (const auto &[value, ops] : entries) {
    std::string name;
    if (Operation *maker = value.getDefiningOp()) {
      Operation *original = bodies.originalOf(maker);
      auto version = dyn_cast_or_null<ir::VersionOp>(original);
      name = version ? nameOf(version, trace) : bodies.makerOf(value);
      if (name.empty())
        name = nameOf(original ? original : maker);
    } else {
      name = nameOf(trace.inputs()[cast<BlockArgument>(value).getArgNumber()]);
    }
    TensorType type = ir::runtimeTypeOf(value.getType());
    int64_t bytes = runtime::sizeOf(type.dtype);
    for (int64_t size : type.shape)
      bytes *= size == dynamic ? 1 : size;
    report.values.push_back({name + ": " + toString(type), bytes, {}});
    for (Operation *reader : ops)
      if (Operation *original = bodies.originalOf(reader))
        addReader(report.values.back(), nameOf(original));
  }
  return report;
}

MemoryReport Tape::memoryReport(const Where &where) {
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive("memory_report", where, [&] { return memoryReport(where); });
  checkLevel("memory_report", where);
  MemoryReport report = traced ? reportOfTrace(*this, *home()->trace, where) : reportOf(*this, where);
  for (const MemoryReport::Value &value : report.values) {
    report.bytes += value.bytes;
    report.bytes_read += value.readers.empty() ? 0 : value.bytes;
  }
  return report;
}

} // namespace detail

MemoryReport GradientTape::memory_report(Where where) const { return tape(where).memoryReport(where); }

std::string to_string(const MemoryReport &report) {
  std::string text = std::to_string(report.bytes) + " bytes in " + std::to_string(report.values.size()) +
                     (report.values.size() == 1 ? " value, " : " values, ") + std::to_string(report.bytes_read) +
                     " of them read by derivatives";
  for (const MemoryReport::Value &value : report.values) {
    text += "\n  " + value.what + ", " + std::to_string(value.bytes) + " bytes: ";
    for (size_t i = 0; i < value.readers.size(); ++i)
      text += (i ? ", " : "read by the derivative of ") + value.readers[i];
    text += value.readers.empty() ? "no derivative reads it" : "";
  }
  return text;
}

std::ostream &operator<<(std::ostream &out, const MemoryReport &report) { return out << to_string(report); }

} // namespace wg
