// A word on standard error where a compile takes long.
#pragma once

#include "codegen/Pipeline.h"
#include "runtime/Status.h"

#include <chrono>
#include <string>

namespace wg::detail {

/// Says on standard error what is being compiled, for which call, and how far it is, at the stage from which on that
/// takes more than two seconds, and again where it takes twice as long. Machine code, the longest stage, is counted by
/// the ops that it is made of before it begins. The environment's WENGERT_HINT_SECONDS changes the two; below 0 nothing
/// is said. No thread watches: in a program that never had two, counting references costs half as much.
class CompileHint {
public:
  CompileHint(const std::string &function, const runtime::Where &where);
  /// The program has come to this stage, where it has so many ops.
  void reached(codegen::Stage stage, int64_t ops);

private:
  const std::string &function_;
  const runtime::Where &where_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double seconds_;
};

} // namespace wg::detail
