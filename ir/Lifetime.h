// When may MLIR and LLVM be used? They keep caches in thread_local objects, which a thread that ends destroys,
// and tables in static objects, which exit() destroys while threads may still run and destructors of other
// static objects may still compute.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

namespace wg::ir {

/// MLIR is at work on this thread while it lives; no code of the user's runs within. Nests. Near the end of exit(),
/// after the program's own static objects are destroyed, work of other threads is waited for, and what would begin
/// later on one never does: it sleeps until the process is gone.
class Working {
public:
  Working() noexcept;
  Working(const Working &) = delete;
  ~Working();
};

/// LLVM's code generator is at work on this thread while it lives, if `allowed()`. It is not once exit()
/// has begun, nor on a spare thread.
class Generating {
public:
  Generating() noexcept;
  Generating(const Generating &) = delete;
  ~Generating();
  bool allowed() const { return allowed_; }

private:
  bool allowed_;
};

/// Whether this thread's thread_local objects, and MLIR's caches among them, may be destroyed already. On the thread
/// that calls exit() this holds in the destructors of static objects.
bool threadEnds() noexcept;
/// Whether exit() has gone as far as the libraries' own static objects: MLIR cannot be used any more.
bool processEnds() noexcept;

/// Runs `f` on a spare thread, where MLIR can be used, and waits for it. What it throws is thrown here.
void onSpareThread(llvm::function_ref<void()> f);

} // namespace wg::ir
