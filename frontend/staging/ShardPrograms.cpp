// A step that was traced for one shard, cut where the shards are summed. Each part is a program of its own, so what it
// computes, to the last bit, does not depend on how many shards a rank has.
#include "frontend/staging/ShardScope.h"

#include "frontend/staging/Function.h"
#include "runtime/comm/Collectives.h"
#include "runtime/io/Digest.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace wg::detail {

namespace {

class Cutter {
public:
  Cutter(const ConcreteState &step, const std::vector<bool> &isCut, const Where &where)
      : step_(step), where_(where), function_(step.code->function()), made_(std::make_shared<ShardPrograms>()) {
    for (Operation &op : function_.getBody().front()) {
      index_[&op] = ops_.size();
      ops_.push_back(&op);
    }
    made_->leaves = static_cast<uint32_t>(isCut.size());
    for (size_t i = 0; i < step.inputs.size(); ++i)
      if (const TraceInput &input = step.inputs[i]; input.kind == TraceInput::argument && isCut[input.leaf])
        differ_.insert(function_.getArgument(static_cast<unsigned>(i)));
  }

  std::shared_ptr<const ShardPrograms> cut(int64_t bucketBytes, bool interpret) {
    refuseBodies();
    analyze();
    Operation *end = ops_.back();
    size_t numResults = step_.numResults;
    for (size_t i = 0; i < step_.assigned.size(); ++i)
      refuseAssigned(step_.inputs[step_.assigned[i]], end->getOperand(static_cast<unsigned>(numResults + i)));
    makeStages(bucketBytes);
    for (size_t i = 0; i < parts_.size(); ++i)
      slice(parts_[i], static_cast<int>(i));
    // What differs by shard and nothing sums: where it is computed, or at the end.
    Part rest{.level = parts_.empty() ? 0 : parts_.back().level};
    for (size_t i = 0; i < end->getNumOperands(); ++i) {
      Value value = end->getOperand(static_cast<unsigned>(i));
      if (!differ_.contains(value))
        continue;
      Output output{value, i < numResults ? static_cast<int64_t>(i) : -1};
      if (auto maker = maker_.find(value); maker != maker_.end()) {
        parts_[static_cast<size_t>(maker->second)].outputs.push_back(output);
        continue;
      }
      rest.roots.push_back(value);
      rest.level = std::max(rest.level, level_.lookup(value));
      rest.outputs.push_back(output);
    }
    if (!rest.roots.empty()) {
      parts_.push_back(std::move(rest));
      slice(parts_.back(), static_cast<int>(parts_.size()) - 1);
    }
    // What all shards have in common.
    Part common{.level = INT_MAX};
    std::vector<uint32_t> assigned;
    for (size_t i = 0; i < numResults; ++i)
      if (Value value = end->getOperand(static_cast<unsigned>(i)); !differ_.contains(value)) {
        made_->outputs.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(common.roots.size())});
        common.roots.push_back(value);
      }
    size_t numOutputs = common.roots.size();
    for (size_t i = 0; i < step_.assigned.size(); ++i)
      if (Value value = end->getOperand(static_cast<unsigned>(numResults + i)); !differ_.contains(value)) {
        assigned.push_back(step_.assigned[i]);
        common.roots.push_back(value);
        common.arguments.insert(step_.assigned[i]);
      }
    slice(common, INT_MAX);
    for (size_t i = 0; i < parts_.size(); ++i)
      finish(parts_[i], i, interpret);
    made_->last = program(common, common.roots, numOutputs, assigned, step_.name + "_last", interpret);
    made_->slots = static_cast<uint32_t>(slotOf_.size());
    made_->lastLevel = std::move(lastLevel_);
    for (const TraceInput &input : step_.inputs)
      if (input.kind == TraceInput::variable && !input.formal && !input.state->isOrder)
        made_->variables.emplace_back(input.state);
    auto textOf = [](const Code &code) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      code.module()->print(stream);
      return text;
    };
    runtime::Digest digest;
    digest.add(textOf(*step_.code));
    for (const TraceInput &input : step_.inputs)
      if (input.kind == TraceInput::capture) {
        runtime::Array array = arrayOf(input.captured);
        digest.add(std::span(static_cast<const std::byte *>(array.buffer.data()), array.numBytes()));
      }
    made_->digest = digest.hex();
    made_->lastDigest = runtime::digestOf(textOf(*made_->last->code));
    return made_;
  }

private:
  struct Output {
    Value value;
    int64_t number; ///< -1: it is only to be computed, for what it does
  };
  struct Part {
    int level = 0;
    SmallVector<Value> roots = {};
    std::vector<Operation *> sums = {}, largest = {};
    llvm::DenseSet<size_t> ops = {};
    llvm::DenseSet<unsigned> arguments = {};
    llvm::SetVector<Value> slots = {}, kept = {};
    std::vector<Output> outputs = {};
    int64_t bytes = 0;
  };

  void refuseBodies() {
    for (auto function : step_.code->module().getOps<func::FuncOp>())
      if (function != function_)
        function.walk([&](Operation *op) {
          if (isOverShards(op))
            raiseOp(step_.name.c_str(),
                    "a sum over shards stands in the body of another op, at " + ir::whereOf(op->getLoc()),
                    "take it out of loops, conditions, checkpoints and custom gradients; for second derivatives use "
                    "hvp, or a tape inside of a tape",
                    {}, where_, ErrorKind::unimplemented);
        });
  }

  void analyze() {
    for (Operation *op : ops_) {
      int level = 0;
      bool differs = false;
      for (Value operand : sourcesOf(op)) {
        level = std::max(level, level_.lookup(operand));
        differs |= differ_.contains(operand);
      }
      for (Value result : op->getResults()) {
        level_[result] = level + (isOverShards(op) ? 1 : 0);
        if (differs && !isOverShards(op))
          differ_.insert(result);
      }
    }
  }

  void refuseAssigned(const TraceInput &input, Value value) const {
    if (!differ_.contains(value) || input.state->isOrder)
      return;
    while (isa_and_present<ir::VersionOp, ir::StopGradientOp>(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    Operation *op = value.getDefiningOp();
    bool isFloat = runtime::isFloat(input.state->type.dtype);
    raiseOp(step_.name.c_str(),
            describe(*input.state) + " is assigned what differs from shard to shard" +
                (op ? ", the result of '" + op->getName().stripDialect().str() + "' at " + ir::whereOf(op->getLoc())
                    : std::string(", an argument")),
            isFloat ? "assign what all shards have in common: dist::all_reduce(x, dist::Reduction::mean)"
                    : "assign what all shards have in common: dist::all_reduce(x)",
            {}, where_);
  }

  /// The place of what a sum takes in the program.
  size_t placeOf(Operation *sum) const {
    Operation *maker = sum->getOperand(0).getDefiningOp();
    return maker ? index_.lookup(maker) + 1 : 0;
  }

  /// The sums that are needed, in buckets: by level, in the order in which the program has what they take.
  void makeStages(int64_t bucketBytes) {
    llvm::DenseSet<Operation *> needed;
    SmallVector<Operation *> path{ops_.back()};
    std::vector<Operation *> sums;
    while (!path.empty()) {
      Operation *op = path.pop_back_val();
      if (isOverShards(op))
        sums.push_back(op);
      for (Value operand : sourcesOf(op))
        if (Operation *maker = operand.getDefiningOp(); maker && needed.insert(maker).second)
          path.push_back(maker);
    }
    auto key = [&](Operation *op) {
      return std::tuple(level_.lookup(op->getResult(0)), placeOf(op), index_.lookup(op));
    };
    std::sort(sums.begin(), sums.end(), [&](Operation *a, Operation *b) { return key(a) < key(b); });
    Part part;
    auto close = [&] {
      if (part.sums.empty() && part.largest.empty())
        return;
      for (std::vector<Operation *> *list : {&part.sums, &part.largest})
        for (Operation *op : *list)
          part.roots.push_back(op->getOperand(0));
      parts_.push_back(std::exchange(part, Part()));
    };
    for (Operation *op : sums) {
      int level = level_.lookup(op->getResult(0)) - 1;
      if (level != part.level || part.bytes >= bucketBytes)
        close();
      part.level = level;
      TensorType type = ir::runtimeTypeOf(op->getResult(0).getType());
      part.bytes += type.shape.numElements() * static_cast<int64_t>(runtime::sizeOf(type.dtype));
      StringRef kind = cast<ir::CollectiveOp>(op).getKind();
      if (kind != "all_reduce_sum" && kind != "all_reduce_max")
        raiseOp(step_.name.c_str(), kind.str() + " over shards, at " + ir::whereOf(op->getLoc()),
                "shards are summed only: all_reduce", {}, where_, ErrorKind::unimplemented);
      (kind == "all_reduce_sum" ? part.sums : part.largest).push_back(op);
      slot(op->getResult(0));
    }
    close();
  }

  uint32_t slot(Value value) {
    auto [at, fresh] = slotOf_.try_emplace(value, static_cast<uint32_t>(slotOf_.size()));
    if (fresh)
      lastLevel_.push_back(-1);
    return at->second;
  }

  /// The ops that compute the roots, from arguments, sums, and what earlier parts have of what differs.
  void slice(Part &part, int number) {
    SmallVector<Value> path(part.roots);
    llvm::DenseSet<Value> seen;
    while (!path.empty()) {
      Value value = path.pop_back_val();
      if (!seen.insert(value).second)
        continue;
      Operation *op = value.getDefiningOp();
      if (!op) {
        part.arguments.insert(cast<BlockArgument>(value).getArgNumber());
        continue;
      }
      auto maker = maker_.find(value);
      if (isOverShards(op) || (maker != maker_.end() && maker->second != number)) {
        part.slots.insert(value);
        uint32_t at = slot(value);
        lastLevel_[at] = std::max(lastLevel_[at], part.level);
        if (!isOverShards(op))
          parts_[static_cast<size_t>(maker->second)].kept.insert(value);
        continue;
      }
      if (part.ops.insert(index_.lookup(op)).second)
        llvm::append_range(path, sourcesOf(op));
    }
    for (size_t at : part.ops)
      for (Value result : ops_[at]->getResults())
        if (differ_.contains(result))
          maker_[result] = number;
  }

  void finish(Part &part, size_t number, bool interpret) {
    ShardPrograms::Stage &stage = made_->stages.emplace_back();
    stage.level = part.level;
    if (!part.sums.empty() || !part.largest.empty())
      stage.bucket = buckets_++;
    SmallVector<Value> results;
    auto give = [&](Value value) {
      results.push_back(value);
      return static_cast<uint32_t>(results.size() - 1);
    };
    for (bool largest : {false, true})
      for (Operation *op : largest ? part.largest : part.sums) {
        give(op->getOperand(0));
        (largest ? stage.largest : stage.sums).push_back(slotOf_.lookup(op->getResult(0)));
      }
    for (Value value : part.kept)
      stage.kept.push_back({slotOf_.lookup(value), give(value)});
    for (const Output &output : part.outputs) {
      uint32_t result = give(output.value);
      if (output.number >= 0)
        stage.outputs.push_back({static_cast<uint32_t>(output.number), result});
    }
    size_t count = part.sums.size() + part.largest.size();
    stage.what = std::to_string(count) + (count == 1 ? " tensor" : " tensors");
    if (count) {
      auto at = [&](Value value) {
        Operation *op = value.getDefiningOp();
        return op ? ir::whereOf(op->getLoc()) : std::string("an argument");
      };
      std::string first = at(results[0]), last = at(results[count - 1]);
      stage.what += ", from " + first + (last == first ? "" : " to " + last);
    }
    stage.program = program(part, results, results.size(), {}, step_.name + "_" + std::to_string(number), interpret);
  }

  std::shared_ptr<ConcreteState> program(const Part &part, ArrayRef<Value> results, size_t numResults,
                                         const std::vector<uint32_t> &assigned, const std::string &name,
                                         bool interpret) {
    Location loc = function_.getLoc();
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    OpBuilder b(ir::context());
    b.setInsertionPointToEnd(module->getBody());
    for (auto other : step_.code->module().getOps<func::FuncOp>()) // bodies of ops, which ops name
      if (other != function_)
        b.clone(*other);
    auto concrete = std::make_shared<ConcreteState>();
    std::string entry = symbolOf(name);
    while (module->lookupSymbol(entry))
      entry += "_";
    auto function = func::FuncOp::create(b, loc, entry, b.getFunctionType({}, {}));
    Block *body = function.addEntryBlock();
    IRMapping map;
    std::vector<unsigned> arguments(part.arguments.begin(), part.arguments.end());
    std::sort(arguments.begin(), arguments.end());
    std::vector<std::string> names;
    for (unsigned i : arguments) {
      map.map(function_.getArgument(i), body->addArgument(function_.getArgument(i).getType(), loc));
      concrete->inputs.push_back(step_.inputs[i]);
      names.push_back(step_.code->names()[i]);
    }
    for (Value value : part.slots) {
      map.map(value, body->addArgument(value.getType(), loc));
      concrete->inputs.push_back({.kind = TraceInput::argument,
                                  .captured = {},
                                  .state = nullptr,
                                  .leaf = made_->leaves + slotOf_.lookup(value)});
      names.push_back("a value between the parts of " + step_.name);
    }
    b.setInsertionPointToStart(body);
    for (size_t i = 0; i < ops_.size(); ++i)
      if (part.ops.contains(i)) {
        if (isa<ir::VersionOp>(ops_[i])) // the derivatives have been taken
          map.map(ops_[i]->getResult(0), map.lookup(ops_[i]->getOperand(0)));
        else
          b.clone(*ops_[i], map);
      }
    SmallVector<Value> values;
    for (Value value : results)
      values.push_back(map.lookup(value));
    func::ReturnOp::create(b, loc, values);
    function.setFunctionType(b.getFunctionType(body->getArgumentTypes(), ValueRange(values).getTypes()));
    for (size_t i = 0; i < assigned.size(); ++i) {
      auto at = static_cast<unsigned>(std::find(arguments.begin(), arguments.end(), assigned[i]) - arguments.begin());
      concrete->assigned.push_back(at);
      function.setArgAttr(at, "wg.result", b.getI64IntegerAttr(static_cast<int64_t>(numResults + i)));
    }
    makeEntry(*module, entry);
    ir::Diagnostics diagnostics(ir::context());
    if (failed(verify(*module)))
      raise(diagnostics.take("a part of the step does not verify"), where_);
    concrete->name = step_.name;
    concrete->calledAt = step_.calledAt;
    concrete->reason = "a part of " + step_.name;
    concrete->numResults = static_cast<uint32_t>(numResults);
    concrete->numOps = static_cast<int64_t>(part.ops.size());
    concrete->code = std::make_shared<Code>(std::move(module), entry, interpret, Identities());
    concrete->code->setNames(std::move(names));
    concrete->signature = entry;
    return concrete;
  }

  const ConcreteState &step_;
  const Where &where_;
  func::FuncOp function_;
  std::shared_ptr<ShardPrograms> made_;
  std::vector<Operation *> ops_;
  llvm::DenseMap<Operation *, size_t> index_;
  llvm::DenseSet<Value> differ_;
  llvm::DenseMap<Value, int> level_, maker_;
  llvm::DenseMap<Value, uint32_t> slotOf_;
  std::vector<int> lastLevel_;
  std::vector<Part> parts_;
  int buckets_ = 0;
};

} // namespace

bool ShardPrograms::sumsAs(const ShardPrograms &other) const {
  auto buckets = [](const ShardPrograms &of) {
    std::vector<const Stage *> list;
    for (const Stage &stage : of.stages)
      if (stage.bucket >= 0)
        list.push_back(&stage);
    return list;
  };
  auto same = [](const Stage *a, const Stage *b) {
    if (a->level != b->level || a->sums != b->sums || a->largest != b->largest)
      return false;
    for (size_t i = 0; i < a->sums.size() + a->largest.size(); ++i)
      if (!(a->program->code->results()[i] == b->program->code->results()[i]))
        return false;
    return true;
  };
  std::vector<const Stage *> own = buckets(*this), others = buckets(other);
  return std::equal(own.begin(), own.end(), others.begin(), others.end(), same);
}

std::shared_ptr<const ShardPrograms> shardPrograms(const ConcreteState &step, const std::vector<bool> &isCut,
                                                   int64_t bucketBytes, bool interpret, const Where &where) {
  ir::Working working;
  return Cutter(step, isCut, where).cut(bucketBytes, interpret);
}

} // namespace wg::detail
