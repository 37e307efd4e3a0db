// Ranks as threads of one process: for tests, and for machines where one process is enough.
#pragma once

#include "runtime/comm/comm.h"

#include <memory>
#include <string>
#include <vector>

namespace wg::runtime {

/// The groups of `size` ranks that meet in memory, one for each rank, all of one world. They are released by who made
/// them, when no rank uses them any more.
class ThreadWorld {
public:
  explicit ThreadWorld(int size);
  ~ThreadWorld();
  wg_comm *rank(int rank);
  /// What ended it: the first text that a rank failed with; empty if none did.
  std::string failure() const;

  struct State;

private:
  std::shared_ptr<State> state_;
  std::vector<wg_comm *> ranks_;
};

} // namespace wg::runtime
