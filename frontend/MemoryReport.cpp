// What a tape keeps, and which derivatives read it.
#include "frontend/Function.h"
#include "frontend/GradientProgram.h"

#include "mlir/IR/IRMapping.h"

#include <ostream>
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

/// Of an eager tape: every value that it holds, and who reads it in the gradient of all that it leads to.
static MemoryReport reportOf(const Tape &tape, const Where &where) {
  const EagerTape &eager = tape.eager;
  size_t count = eager.values.size();
  auto isFloat = [&](size_t slot) { return runtime::isFloat(eager.values[slot].body()->type.dtype); };
  // What each slot is, and what no op reads.
  std::vector<std::string> what(count);
  std::vector<bool> isMade(count, false), isRead(count, false);
  std::unordered_map<std::string, std::string> opAt; // by place
  for (const Tape::WatchedVariable &entry : tape.variables)
    for (const Tensor &read : entry.reads)
      what[static_cast<size_t>(eager.slotOf.find(stateOf(read)->id))] = describe(*entry.variable);
  for (const Tape::WatchedTensor &watched : tape.watchedTensors)
    what[static_cast<size_t>(watched.slot)] = "a watched tensor";
  for (const Record &record : eager.records) {
    const RecordedCall *call = record.call >= 0 ? &eager.calls[static_cast<size_t>(record.call)] : nullptr;
    std::string name = !call        ? runtime::recordOf(record.op).name
                       : call->hook ? "with_gradient_hook"
                                    : call->callee->name;
    std::string maker = placed(name, toString(record.where));
    std::string &known = opAt[toString(record.where)];
    if (known.find("'" + name + "'") == std::string::npos)
      known += (known.empty() ? "'" : ", '") + name + "'";
    for (uint32_t i = 0; i < record.numOperands; ++i)
      isRead[static_cast<size_t>(eager.slots[record.first + i])] = true;
    for (uint32_t i = 0; i < record.numResults; ++i) {
      auto slot = static_cast<size_t>(eager.slots[record.first + record.numOperands + i]);
      isMade[slot] = true;
      what[slot] = maker + (call && i >= call->numResults ? ", kept for its derivative" : "");
    }
  }
  std::vector<int32_t> targets;
  std::vector<std::vector<int32_t>> sources;
  StructureHash key = eager.hash;
  key.mix(0x40);
  for (size_t slot = 0; slot < count; ++slot) {
    if (!eager.tracked[slot] || !isFloat(slot))
      continue;
    if (isMade[slot] && !isRead[slot])
      targets.push_back(static_cast<int32_t>(slot));
    if (!isMade[slot])
      sources.push_back({static_cast<int32_t>(slot)});
  }
  std::vector<std::vector<std::string>> readers(count);
  if (!targets.empty() && !sources.empty()) {
    std::vector<uint8_t> seeded(targets.size(), 1);
    std::shared_ptr<const GradientProgram> program =
        gradientProgram(eager, key, targets, seeded, sources, false, std::nullopt, where);
    for (const codegen::Row &row : program->program.rows)
      for (uint32_t i = 0; i < row.numOperands; ++i) {
        uint32_t place = program->program.slots[row.first + i];
        int32_t slot = place < program->inputs.size() ? program->inputs[place] : -1;
        if (slot < 0)
          continue;
        if (row.op == runtime::OpId::call) {
          // Of what a call takes, its derivative reads some.
          const CallDerivative &called = program->calls.find(row.attrs.string(0))->second;
          const RecordedCall &call = eager.calls[called.call];
          if (call.hook)
            continue;
          auto inputs = static_cast<int64_t>(call.callee->inputs.size());
          int64_t residual = static_cast<int64_t>(i) - inputs - call.numResults;
          int64_t asked = static_cast<int64_t>(i) < inputs ? static_cast<int64_t>(i) : -1 - residual;
          bool isResult = static_cast<int64_t>(i) >= inputs && residual < 0;
          const std::vector<int64_t> &reads = call.derivative->residuals;
          if (isResult || std::find(reads.begin(), reads.end(), asked) == reads.end())
            continue;
        }
        std::string place_ = toString(row.where), name = opAt[place_];
        std::string reader = (name.empty() ? "an op" : name) + (place_.empty() ? place_ : " (" + place_ + ")");
        std::vector<std::string> &list = readers[static_cast<size_t>(slot)];
        if (std::find(list.begin(), list.end(), reader) == list.end())
          list.push_back(reader);
      }
  }
  MemoryReport report;
  std::unordered_map<const void *, size_t> byBuffer;
  for (size_t slot = 0; slot < count; ++slot) {
    const Tensor &tensor = eager.values[slot];
    const void *data = stateOf(tensor)->buffer.data();
    auto [at, isNew] = byBuffer.try_emplace(data, report.values.size());
    if (isNew) {
      int64_t bytes = static_cast<int64_t>(arrayOf(tensor).numBytes());
      std::string name = what[slot].empty() ? "a constant" : what[slot];
      report.values.push_back({name + ": " + toString(tensor.body()->type), bytes, {}});
    }
    for (const std::string &reader : readers[slot])
      addReader(report.values[at->second], reader);
  }
  return report;
}

/// Of a tape in a trace: the values that the gradient of all that it leads to reads, found on a copy.
static MemoryReport reportOfTrace(Tape &tape, Trace &trace, const Where &where) {
  ir::Working working;
  Diagnostics diagnostics;
  IRMapping map;
  OwningOpRef<ModuleOp> module = cast<ModuleOp>(trace.function()->getParentOfType<ModuleOp>()->clone(map));
  llvm::DenseSet<Operation *> recorded;
  for (Operation *op : tape.traced->ops)
    recorded.insert(map.lookup(op));
  auto isRecorded = [&](Operation *op) { return recorded.contains(op); };
  SmallVector<mlir::Value> targets, sources;
  Block &body = cast<func::FuncOp>(map.lookup(trace.function().getOperation())).getBody().front();
  auto sort = [&](mlir::Value original) {
    if (!tape.traced->values.contains(original) || !autodiff::isDifferentiableType(original.getType()))
      return;
    Operation *maker = original.getDefiningOp();
    if (!maker || !tape.traced->ops.contains(maker))
      sources.push_back(map.lookup(original));
    else if (llvm::none_of(original.getUsers(), [&](Operation *user) { return tape.traced->ops.contains(user); }))
      targets.push_back(map.lookup(original));
  };
  Block &traced = trace.function().getBody().front();
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
  auto nameOf = [](Operation *op) {
    auto call = dyn_cast<ir::CallOp>(op);
    return placed((call ? call.getCallee() : op->getName().stripDialect()).str(), ir::whereOf(op->getLoc()));
  };
  DenseMap<mlir::Value, size_t> placeOf;
  for (Operation *op = marker->getNextNode(); op && !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode())
    for (mlir::Value operand : op->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      if (!isa<RankedTensorType>(operand.getType()) || (maker && marker->isBeforeInBlock(maker)))
        continue;
      auto [at, isNew] = placeOf.try_emplace(operand, report.values.size());
      if (isNew) {
        TensorType type = ir::runtimeTypeOf(operand.getType());
        int64_t bytes = runtime::sizeOf(type.dtype);
        for (int64_t size : type.shape)
          bytes *= size == dynamic ? 1 : size;
        report.values.push_back({(maker ? nameOf(maker) : "an input") + ": " + toString(type), bytes, {}});
      }
      std::string place = ir::whereOf(op->getLoc());
      addReader(report.values[at->second], place.empty() ? "an op" : "the op at " + place);
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
