#include "frontend/staging/CompileHint.h"

#include "runtime/ThreadPool.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace wg::detail {

/// What LLVM takes for an operation of its dialect, measured on one processor of 2024.
static constexpr double kSecondsOfOp = 20e-6;

static double hintSeconds() {
  static const double seconds = [] {
    const char *text = std::getenv("WENGERT_HINT_SECONDS");
    char *end = nullptr;
    double given = text ? std::strtod(text, &end) : 0;
    return text && end != text && *end == '\0' ? given : 2.0;
  }();
  return seconds;
}

CompileHint::CompileHint(const std::string &function, const runtime::Where &where)
    : function_(function), where_(where), seconds_(hintSeconds()) {}

void CompileHint::reached(codegen::Stage stage, int64_t ops) {
  if (seconds_ < 0)
    return;
  double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  double ahead = stage == codegen::Stage::llvm ? static_cast<double>(ops) * kSecondsOfOp : 0;
  if (passed + ahead >= seconds_ && ahead > 0) // else nobody is asked how many threads there are, and none starts
    ahead /= runtime::numThreads();
  if (!(passed + ahead >= seconds_))
    return;
  seconds_ = std::max(2.0, 2 * (passed + ahead));
  std::string place = toString(where_);
  std::string text = fmt::format(
      "wengert: compiling '{}'{} has taken {:.1f} s; it is at stage {}, with {} ops{}. (The environment's "
      "WENGERT_HINT_SECONDS=-1 turns this off.)\n",
      function_, place.empty() ? "" : " (" + place + ")", passed, codegen::nameOf(stage).str(), ops,
      stage == codegen::Stage::llvm ? fmt::format("; their machine code takes about {:.0f} s more", ahead) : "");
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

} // namespace wg::detail
