// A word on standard error while a compile takes long.
#pragma once

#include "codegen/Pipeline.h"
#include "runtime/Status.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace wg::detail {

/// Says on standard error what is being compiled, for which call, and how far it is, once that has taken two seconds,
/// and again whenever it has taken twice as long. The environment's WENGERT_HINT_SECONDS changes the two; below 0
/// nothing is said.
class CompileHint {
public:
  CompileHint(std::string function, const runtime::Where &where);
  ~CompileHint();
  CompileHint(const CompileHint &) = delete;
  CompileHint &operator=(const CompileHint &) = delete;

  /// The program is at this stage now.
  void reached(codegen::Stage stage, int64_t ops);

private:
  void watch(double seconds);
  std::string function_, where_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable done_;
  bool isDone_ = false;
  codegen::Stage stage_ = codegen::Stage::traced;
  int64_t ops_ = 0;
  std::thread thread_;
};

} // namespace wg::detail
