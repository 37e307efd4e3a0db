// What a trace for one shard knows of the others.
#pragma once

#include "frontend/staging/Shards.h"
#include "frontend/staging/Trace.h"

#include <wengert/DataParallel.h>

namespace wg::detail {

struct ShardScope {
  Trace *trace;
  Tensor index, share; ///< share f64[]: of the rows of all shards those of this one
  bool weighs;         ///< the loss is a mean
  bool syncBatchNorm;
  ShardScope *before;
  llvm::DenseSet<mlir::Value> cut{}; ///< arguments that each shard has its own rows of

  /// Whether a value of the trace differs from shard to shard.
  bool differs(mlir::Value value) const;
  /// Whether it follows from what does, if only by sums.
  bool isOfShards(mlir::Value value) const;
  /// The share in x's dtype.
  Tensor shareAs(const Tensor &x, const Where &where) const;
};
/// Of the trace that runs, or of one around it; null outside.
ShardScope *shardScope();

/// An op over shards.
bool isOverShards(mlir::Operation *op);
/// The operands that a value follows from: of a variable's version what was assigned, not what was there before.
mlir::OperandRange sourcesOf(mlir::Operation *op);

/// A trace for one shard as programs: each computes what the ranks then sum, or what is left.
struct ShardPrograms {
  struct Kept {
    uint32_t slot, result;
  };
  struct Stage {
    int level = 0;   ///< how many sums what it computes follows from at most
    int bucket = -1; ///< counts those that hand something to be summed
    std::shared_ptr<ConcreteState> program;
    std::vector<uint32_t> sums, largest; ///< slots of what the ranks make of its first results: sums, then maxima
    std::vector<Kept> kept;              ///< what later stages read
    std::vector<Kept> outputs;           ///< of the step, by their number: they differ by shard
    std::string what;                    ///< the ops that it hands over
  };
  uint32_t leaves = 0;        ///< of the step: what comes after them are slots
  uint32_t slots = 0;         ///< of them the first are what the ranks sum
  std::vector<int> lastLevel; ///< by slot: of the stages that read it
  std::vector<Stage> stages;
  std::shared_ptr<ConcreteState> last; ///< what is the same for all shards: variables, then outputs
  std::vector<Kept> outputs;           ///< of those, by their number
  std::vector<Variable> variables;     ///< all that it reads or assigns
  std::string digest;                  ///< of the trace and of the arrays that it captured
  std::string lastDigest;              ///< of the text of `last`

  /// Whether the ranks sum the same in both.
  bool sumsAs(const ShardPrograms &other) const;
};

/// `isCut`: by leaf. Errors: a variable is assigned what differs by shard; a sum over shards in a body.
std::shared_ptr<const ShardPrograms> shardPrograms(const ConcreteState &step, const std::vector<bool> &isCut,
                                                   int64_t bucketBytes, bool interpret, const Where &where);

} // namespace wg::detail
