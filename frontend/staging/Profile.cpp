// What a profile says: measured times beside the counts of the kernels and the limits of the machine.
#include "codegen/Compile.h"
#include "frontend/staging/Function.h"
#include "runtime/Limits.h"
#include "runtime/ThreadPool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

namespace wg {

namespace {

/// A transcendental function costs about as many fused multiply-adds.
constexpr double kFmasOfTranscendental = 20;
/// What a kernel does of a limit that cannot be one.
constexpr double kBeyond = 1.1;
/// The least part of a kernel's time, at the machine's limits, that is said to bind it.
constexpr double kBinds = 0.3;

/// Byte/s of so much read and written: what is both copied, the rest read or written alone.
double bytesPerSecond(const runtime::Bandwidth &most, double read, double written) {
  double copied = 2 * std::min(read, written), rest = read + written - copied;
  double alone = read > written ? most.read : most.write;
  if (most.copy <= 0 || alone <= 0)
    return 0;
  return 1e9 * (read + written) / std::max(copied / most.copy + rest / alone, 1e-300);
}

void addLimits(KernelProfile &kernel, const std::string &dtype, const runtime::Limits &limits) {
  bool all = kernel.is_shared && limits.threads > 1;
  // Fewer threads than the machine has do no more than so many times what one does.
  double threads = runtime::numThreads();
  auto least = [&](double one, double together) { return std::min(together, threads * one); };
  kernel.peak_flops = 1e9 * (all ? least(limits.best(dtype), limits.best(dtype, true)) : limits.best(dtype));
  double bytes = kernel.bytes_read + kernel.bytes_written;
  for (const runtime::Level &level : limits.levels) {
    if (level.bytes > 0 && bytes > kernel.launches * static_cast<double>(level.bytes))
      continue;
    runtime::Bandwidth most = level.one;
    if (all && level.all.copy > 0)
      most = {least(most.read, level.all.read), least(most.write, level.all.write), least(most.copy, level.all.copy)};
    kernel.level = level.name;
    kernel.peak_bytes = bytesPerSecond(most, kernel.bytes_read, kernel.bytes_written);
    break;
  }
  auto part = [&](double work, double most) {
    return most > 0 && work > 0 && kernel.seconds > 0 ? work / most / kernel.seconds : 0;
  };
  double arithmetic = part(kernel.flops, kernel.peak_flops), memory = part(bytes, kernel.peak_bytes),
         transcendentals = part(2 * kFmasOfTranscendental * kernel.transcendentals, kernel.peak_flops);
  double most = std::max({arithmetic, memory, transcendentals});
  kernel.bound = kernel.launches == 0 ? ""
                 : most < kBinds      ? "latency"
                 : most == memory     ? kernel.level
                 : most == arithmetic ? "arithmetic"
                                      : "transcendentals";
}

/// `12.3 us`
std::string time(double seconds) {
  for (auto [unit, name] : {std::pair(1.0, "s"), {1e-3, "ms"}, {1e-6, "us"}})
    if (seconds >= unit)
      return fmt::format("{:.3g} {}", seconds / unit, name);
  return fmt::format("{:.0f} ns", seconds * 1e9);
}
/// `1.23 M`
std::string amount(double number) {
  for (auto [unit, name] : {std::pair(1e9, " G"), {1e6, " M"}, {1e3, " k"}})
    if (number >= unit)
      return fmt::format("{:.3g}{}", number / unit, name);
  return fmt::format("{:.0f}", number);
}
/// A figure, or nothing if there is none.
std::string figure(double number) { return std::isfinite(number) && number > 0 ? fmt::format("{:.3g}", number) : ""; }
std::string percent(double part) { return std::isfinite(part) && part > 0 ? fmt::format("{:.0f} %", 100 * part) : ""; }
std::string shortened(const std::string &text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 4) + " ...";
}

} // namespace

double Profile::kernel_seconds() const {
  return std::accumulate(kernels.begin(), kernels.end(), 0.0,
                         [](double sum, const KernelProfile &kernel) { return sum + kernel.seconds; });
}

std::string Profile::to_string(int64_t rows) const {
  constexpr size_t kKernelColumn = 11;
  std::vector<std::vector<std::string>> table{{"time", "share", "runs", "FLOPs", "transc.", "GFLOP/s", "of peak",
                                               "bytes", "GB/s", "of limit", "bound by", "kernel", "ops", "lines"}};
  std::vector<const KernelProfile *> order;
  for (const KernelProfile &kernel : kernels)
    order.push_back(&kernel);
  std::sort(order.begin(), order.end(),
            [](auto *a, auto *b) { return a->seconds != b->seconds ? a->seconds > b->seconds : a < b; });
  double all = kernel_seconds() + copies;
  auto row = [&](const std::string &what, double seconds) {
    table.push_back({time(seconds), percent(seconds / all)});
    table.back().resize(table[0].size());
    table.back()[kKernelColumn] = what;
  };
  double rest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const KernelProfile &kernel = *order[i];
    if (static_cast<int64_t>(i) >= rows) {
      rest += kernel.seconds;
      continue;
    }
    table.push_back({time(kernel.seconds), percent(kernel.seconds / all), amount(kernel.launches),
                     std::isnan(kernel.flops) ? "?" : amount(kernel.flops),
                     kernel.transcendentals > 0 ? amount(kernel.transcendentals) : "",
                     figure(kernel.flops_per_second() * 1e-9), percent(kernel.flops_per_second() / kernel.peak_flops),
                     amount(kernel.bytes_read + kernel.bytes_written), figure(kernel.bytes_per_second() * 1e-9),
                     percent(kernel.bytes_per_second() / kernel.peak_bytes),
                     kernel.bound + (kernel.is_shared ? ", threads" : ""), kernel.name, shortened(kernel.summary, 40),
                     kernel.lines});
  }
  if (static_cast<int64_t>(order.size()) > rows)
    row(fmt::format("{} more", static_cast<int64_t>(order.size()) - rows), rest);
  if (copies > 0)
    row("copies of results", copies);
  row("all kernels", all);
  std::vector<size_t> widths(table[0].size(), 0);
  for (const auto &cells : table)
    for (size_t c = 0; c < cells.size(); ++c)
      widths[c] = std::max(widths[c], cells[c].size());
  constexpr size_t kFirstText = kKernelColumn - 1; // numbers stand right, text left
  std::string text = fmt::format("{}\n{} a call, of {} calls; {} kernels, {} distinct, {} bytes of code; {}\n",
                                 function, time(seconds), calls, kernels.size(), distinct_kernels, code_bytes, machine);
  for (const auto &cells : table) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c)
      line += (c ? "  " : "") + (c < kFirstText ? fmt::format("{:>{}}", cells[c], widths[c])
                                                : fmt::format("{:<{}}", cells[c], widths[c]));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

Profile detail::profile(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves, const Where &where) {
  const char *name = concrete.name.c_str();
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive(name, where, [&] { return profile(concrete, leaves, where); });
  if (level().trace)
    raiseOp(name, "a profile runs machine code, and a function is being traced", "take it outside of the trace", {},
            where, ErrorKind::runtime);
  std::vector<runtime::Array> inputs = argumentsOf(concrete, leaves, where);
  auto [executable, measured] = concrete.code->measured(inputs, where);
  runtime::Limits limits = runtime::limits(/*quick=*/true);
  Profile profile;
  profile.function = concrete.signature;
  profile.seconds = measured.call, profile.copies = measured.copies, profile.calls = measured.calls;
  profile.code_bytes = static_cast<int64_t>(executable->codeBytes);
  profile.machine = fmt::format("{}, {} thread{}", limits.cpu, limits.threads, limits.threads == 1 ? "" : "s");
  std::set<std::string> distinct;
  std::vector<std::string> computes;
  bool threads = runtime::numThreads() > 1;
  for (size_t i = 0; i < measured.seconds.size(); ++i) {
    const codegen::KernelReport &report = executable->kernels[i];
    if (report.inBody && report.inRegisters)
      continue; // part of its loop's function
    distinct.insert(report.name);
    KernelProfile kernel;
    kernel.name = report.name, kernel.kind = report.kind, kernel.summary = report.ops, kernel.lines = report.lines;
    kernel.seconds = measured.seconds[i], kernel.launches = measured.launches[i];
    double flops = report.counts.flops ? static_cast<double>(*report.counts.flops) : std::nan("");
    if (report.isControl && !report.inRegisters)
      flops = 0; // what runs in it has rows of its own
    kernel.flops = flops * kernel.launches;
    kernel.transcendentals = static_cast<double>(report.counts.transcendentals) * kernel.launches;
    kernel.bytes_read = static_cast<double>(report.counts.bytesRead) * kernel.launches;
    kernel.bytes_written = static_cast<double>(report.counts.bytesWritten) * kernel.launches;
    kernel.is_shared = report.isShared && threads;
    addLimits(kernel, report.compute, limits);
    profile.kernels.push_back(std::move(kernel));
    computes.push_back(report.compute);
  }
  // More than the machine can do: then the machine was not idle when its limits were measured. A second
  // each, so three times a process and file of limits.
  static std::mutex counting;
  static std::map<std::string, int> raises;
  auto mayRaise = [&] {
    std::lock_guard lock(counting);
    return ++raises[runtime::limitsFile()] <= 3;
  };
  auto isBeyond = [](const KernelProfile &kernel) {
    auto exceeds = [&](double rate, double most) { return kernel.seconds > 1e-6 && most > 0 && rate > kBeyond * most; };
    return exceeds(kernel.flops_per_second(), kernel.peak_flops) ||
           exceeds(kernel.bytes_per_second(), kernel.peak_bytes);
  };
  if (std::any_of(profile.kernels.begin(), profile.kernels.end(), isBeyond) && mayRaise()) {
    limits = runtime::raiseLimits();
    for (size_t i = 0; i < profile.kernels.size(); ++i)
      addLimits(profile.kernels[i], computes[i], limits);
  }
  profile.distinct_kernels = static_cast<int64_t>(distinct.size());
  return profile;
}

} // namespace wg
