// What a function says of itself: why it was traced, what it compiled to and what that cost.
#include "frontend/staging/Function.h"

#include "codegen/Compile.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace wg {

namespace detail {

std::string counted(int64_t count, const char *what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  return text;
}

static std::string reportOf(const codegen::KernelReport &kernel) {
  const ir::Counts &counts = kernel.counts;
  return "  kernel " + kernel.name + " (" + kernel.kind + "): " + kernel.ops +
         (kernel.where.empty() ? "" : ", at " + kernel.where) + "\n    " +
         (counts.flops ? counted(*counts.flops, "flop") : std::string("flops unknown")) + ", " +
         (counts.transcendentals ? std::to_string(counts.transcendentals) + " transcendental, " : "") +
         counted(counts.bytes(), "byte") + (kernel.lines.empty() ? "" : "; lines " + kernel.lines) + "\n";
}

/// Nothing if none was measured, as where there is no memory for it.
static std::string reportOf(const codegen::FormReport &forms) {
  if (forms.seconds.empty() || forms.seconds[0] == 0)
    return {};
  int64_t measured = std::count_if(forms.seconds.begin(), forms.seconds.end(), [](double t) { return t > 0; });
  return "  product " + forms.product + (forms.where.empty() ? "" : ", at " + forms.where) + "\n    " +
         counted(measured, "form") + " measured; the one that is used " + milliseconds(forms.seconds[forms.chosen]) +
         ", the one estimated to be fastest " + milliseconds(forms.seconds[0]) + "\n";
}

static std::string reportOf(const codegen::Executable &executable) {
  std::string text;
  std::set<std::string> distinct; // equal kernels share a function
  for (const codegen::KernelReport &kernel : executable.kernels) {
    distinct.insert(kernel.name);
    text += reportOf(kernel);
  }
  for (const codegen::FormReport &forms : executable.forms)
    text += reportOf(forms);
  return text + "  " + counted(static_cast<int64_t>(executable.kernels.size()), "kernel") + ", " +
         std::to_string(distinct.size()) + " distinct, in " +
         counted(static_cast<int64_t>(executable.codeBytes), "byte") + " of code\n";
}

/// Of one concrete function; `timings`: what its stages took.
static std::string reportOf(ConcreteState &concrete, const std::vector<StageTime> &timings) {
  std::string at = toString(concrete.calledAt);
  std::string text = "\n" + concrete.signature + "\n  traced" + (at.empty() ? "" : " for the call at " + at) + ": " +
                     concrete.reason + "\n  " + counted(concrete.calls.load(), "call") + ", " +
                     counted(concrete.numOps, "op") + " traced in " + milliseconds(concrete.traceSeconds);
  if (concrete.code->interpreted())
    text += ", interpreted";
  else if (double seconds = concrete.code->compileSeconds())
    text += ", compiled in " + milliseconds(seconds);
  text += "\n";
  for (const StageTime &stage : timings)
    if (stage.stage != "trace")
      text += "  " + stage.stage + ": " + counted(stage.ops, stage.stage == "assembly" ? "byte" : "op") + ", " +
              milliseconds(stage.seconds) + "\n";
  for (const auto &executable : concrete.code->executables())
    text += reportOf(*executable);
  if (size_t dropped = concrete.certificate().size())
    text += "  " + counted(static_cast<int64_t>(dropped), "gradient") + " not computed\n";
  return text;
}

} // namespace detail

std::string FunctionBase::explain_last_trace() const {
  std::lock_guard lock(self().mutex);
  if (self().lastTrace.empty())
    return self().name + " has not been traced";
  double seconds = self().lastConcrete->code->compileSeconds();
  return self().lastTrace + (seconds > 0 ? ", compiled in " + detail::milliseconds(seconds) : "");
}

std::string FunctionBase::report() const {
  std::vector<std::pair<uint64_t, std::shared_ptr<detail::ConcreteState>>>
      entries; // with their last use, which calls change
  std::string text;
  {
    std::lock_guard lock(self().mutex);
    for (const auto &[hash, entry] : self().entries)
      if (entry->concrete && !entry->alias)
        entries.emplace_back(entry->lastUse, entry->concrete);
    text = self().name + ": " + detail::counted(self().traceCount, "trace") + ", " +
           detail::counted(static_cast<int64_t>(entries.size()), "concrete function") + "\n";
  }
  std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[lastUse, state] : entries)
    text += detail::reportOf(*state, ConcreteFunction(state).timings());
  return text;
}

} // namespace wg
