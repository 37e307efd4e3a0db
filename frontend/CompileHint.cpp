#include "frontend/CompileHint.h"

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace wg::detail {

static double hintSeconds() {
  static const double seconds = [] {
    const char *text = std::getenv("WENGERT_HINT_SECONDS");
    char *end = nullptr;
    double given = text ? std::strtod(text, &end) : 0;
    return text && end != text && *end == '\0' ? given : 2.0;
  }();
  return seconds;
}

CompileHint::CompileHint(std::string function, const runtime::Where &where)
    : function_(std::move(function)), where_(toString(where)) {
  if (double seconds = hintSeconds(); seconds >= 0) {
    try {
      thread_ = std::thread([this, seconds] { watch(seconds); });
    } catch (const std::system_error &) {
      // no thread, no hint
    }
  }
}

CompileHint::~CompileHint() {
  {
    std::lock_guard lock(mutex_);
    isDone_ = true;
  }
  done_.notify_one();
  if (thread_.joinable())
    thread_.join();
}

void CompileHint::reached(codegen::Stage stage, int64_t ops) {
  std::lock_guard lock(mutex_);
  stage_ = stage;
  ops_ = ops;
}

void CompileHint::watch(double seconds) {
  std::unique_lock lock(mutex_);
  for (;; seconds = seconds > 0 ? 2 * seconds : 2) {
    auto until = begin_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                              std::chrono::duration<double>(seconds));
    if (done_.wait_until(lock, until, [this] { return isDone_; }))
      return;
    double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    int next = static_cast<int>(stage_) + 1;
    std::string at = next < codegen::kNumStages ? codegen::nameOf(static_cast<codegen::Stage>(next)).str() : "linked";
    std::fprintf(stderr,
                 "wengert: '%s'%s%s%s has been compiled for %.1f s; it goes from %s, of %lld ops, to %s "
                 "(WENGERT_HINT_SECONDS=-1: no such hints)\n",
                 function_.c_str(), where_.empty() ? "" : " (", where_.c_str(), where_.empty() ? "" : ")", passed,
                 codegen::nameOf(stage_).data(), static_cast<long long>(ops_), at.c_str());
    std::fflush(stderr);
  }
}

} // namespace wg::detail
