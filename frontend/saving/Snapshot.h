// The state of what is saved, at one moment: a manifest without its files, the values of variables, captured tensors,
// functions, and what tapes hold.
#pragma once

#include "frontend/saving/Manifest.h"
#include "frontend/staging/Function.h"
#include "runtime/comm/Together.h"

#include <wengert/Save.h>

namespace wg::detail {

class Snapshot {
public:
  Manifest manifest; ///< names of files are missing
  std::vector<std::shared_ptr<ConcreteState>> functions;
  std::vector<Tensor> variables, constants;
  std::string tapes; ///< the program of the tapes
  uint64_t maxShardBytes = 0;
  runtime::Together together; ///< who writes it
};

/// What several tapes hold, as one: each op once.
struct TapeUnion {
  EagerTape tape;
  std::vector<std::vector<uint32_t>> members; ///< by record: the tapes that have it
};
TapeUnion unionOf(std::span<const std::shared_ptr<Tape>> tapes);

} // namespace wg::detail
