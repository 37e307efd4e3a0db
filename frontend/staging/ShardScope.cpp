// What a step is told while it is traced for one of its shards: which values differ from shard to shard, and what those
// are that all shards make together.
#include "frontend/staging/ShardScope.h"

#include "ir/Lifetime.h"
#include "runtime/comm/Collectives.h"

#include <wengert/Ops.h>

using namespace mlir;

namespace wg::detail {

static constinit thread_local ShardScope *current = nullptr;

ShardScope *shardScope() {
  if (!current)
    return nullptr;
  for (Trace *trace = level().trace; trace; trace = trace->outer())
    if (trace == current->trace)
      return current;
  return nullptr;
}

bool inShard() { return shardScope() != nullptr; }
bool normalizesOverShards() {
  ShardScope *scope = shardScope();
  return scope && scope->syncBatchNorm;
}
Tensor shardIndex(const Where &where) {
  ShardScope *scope = shardScope();
  return scope ? scope->index : Tensor(int64_t(0), where);
}

Tensor ShardScope::shareAs(const Tensor &x, const Where &where) const {
  return x.dtype() == f64 ? share : cast(Located(share, where), x.dtype());
}

Tensor overShards(const Tensor &x, dist::Reduction reduction, const Where &where) {
  ShardScope *scope = shardScope();
  if (!scope)
    return x;
  Tensor own =
      reduction == dist::Reduction::mean ? mul(Located(x, where), Located(scope->shareAs(x, where), where)) : x;
  return applyOne(
      runtime::OpId::collective,
      runtime::CollectiveAttrs::make(reduction == dist::Reduction::max ? "all_reduce_max" : "all_reduce_sum",
                                     runtime::kShardGroup, 0, 0),
      {&own}, where);
}

//===- What differs -----------------------------------------------------------------------------------------------===//

bool isOverShards(Operation *op) {
  auto collective = dyn_cast_if_present<ir::CollectiveOp>(op);
  return collective && static_cast<int64_t>(collective.getGroup()) == runtime::kShardGroup;
}

OperandRange sourcesOf(Operation *op) {
  OperandRange operands = op->getOperands();
  return isa<ir::VersionOp>(op) ? operands.take_front(1) : operands;
}

/// Whether `value` follows from one of `roots`, by no op that `ends` the path. Nothing is remembered for the next
/// question: gradients erase ops of the trace, and other values come in their place.
static bool followsFrom(Value value, const llvm::DenseSet<Value> &roots, function_ref<bool(Operation *)> ends) {
  SmallVector<Value> path{value};
  llvm::DenseSet<Value> seen;
  while (!path.empty()) {
    Value at = path.pop_back_val();
    if (roots.contains(at))
      return true;
    if (Operation *op = at.getDefiningOp(); op && seen.insert(at).second && !ends(op))
      llvm::append_range(path, sourcesOf(op));
  }
  return false;
}

bool ShardScope::differs(Value value) const { return followsFrom(value, cut, isOverShards); }
bool ShardScope::isOfShards(Value value) const {
  return followsFrom(value, cut, [](Operation *) { return false; });
}

//===- The step ---------------------------------------------------------------------------------------------------===//

InShard::InShard(const dist::DataParallelOptions &options, Tensor index, Tensor share)
    : scope_(new ShardScope{.trace = level().trace,
                            .index = std::move(index),
                            .share = std::move(share),
                            .weighs = options.loss == dist::Reduction::mean,
                            .syncBatchNorm = options.sync_batch_norm,
                            .before = current}) {
  for (const Tensor &own : {scope_->index, scope_->share})
    cut(own);
  current = scope_.get();
}
InShard::~InShard() { current = scope_->before; }

void InShard::cut(const Tensor &tensor) {
  ir::Working working;
  scope_->cut.insert(scope_->trace->valueOf(tensor, "data_parallel", {}));
}

Tensor InShard::returned(const Tensor &tensor, const Where &where) const {
  const TensorType &type = tensor.body(where)->type;
  ir::Working working;
  if (type.shape.rank() != 0 || !scope_->differs(scope_->trace->valueOf(tensor, "return", where)))
    return tensor;
  if (type.dtype == boolean)
    raiseOp("return", "a boolean without axes differs from shard to shard", "return a number, or give it an axis",
            {type}, where, ErrorKind::type);
  bool mean = scope_->weighs && runtime::isFloat(type.dtype);
  return overShards(tensor, mean ? dist::Reduction::mean : dist::Reduction::sum, where);
}

} // namespace wg::detail
