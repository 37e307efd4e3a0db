// Inside of a data parallel step: what is traced is one shard's part. Knows no MLIR.
#pragma once

#include <wengert/Dist.h>

namespace wg::detail {

/// Whether a step is being traced for a shard.
bool inShard();
/// The number of the shard, i64[].
Tensor shardIndex(const Where &where);
/// x of all shards together, over their fixed tree; its mean is by their rows. Derivative: of the sum over shards.
Tensor overShards(const Tensor &x, dist::Reduction reduction, const Where &where);
/// Whether batch normalization asks for the statistics of all shards.
bool normalizesOverShards();

} // namespace wg::detail
