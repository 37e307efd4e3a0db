// How long does each kernel of a program take?
#include "codegen/Compile.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace wg::codegen {

using runtime::Array;

namespace {

uint64_t ticks() { return __builtin_ia32_rdtsc(); }
double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The mean of the middle half: what disturbs single calls is left out, and the steps of a coarse clock even out.
double middle(std::vector<double> &values) {
  size_t quarter = values.size() / 4;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (size_t i = quarter; i < values.size() - quarter; ++i)
    sum += values[i];
  return values.empty() ? 0 : sum / static_cast<double>(values.size() - 2 * quarter);
}

/// Seconds of a tick, by the two clocks over some milliseconds.
double secondsOfTick() {
  double start = seconds(), end = start;
  uint64_t first = ticks(), last = first;
  while (end < start + 5e-3)
    end = seconds(), last = ticks();
  return (end - start) / static_cast<double>(last - first);
}

/// Ticks from one mark to the next with nothing in between.
double ticksOfMark() {
  std::vector<double> gaps;
  volatile uint64_t last = ticks(), sum = 0, count = 0;
  for (int i = 0; i < 1001; ++i) {
    uint64_t now = ticks(), gap = now - last;
    sum = sum + gap;
    count = count + 1;
    last = now;
    gaps.push_back(static_cast<double>(gap));
  }
  return middle(gaps);
}

/// Seconds from one reading of the clock to the next with nothing in between.
double secondsOfReading() {
  std::vector<double> gaps;
  for (int i = 0; i < 1001; ++i) {
    double before = seconds();
    gaps.push_back(seconds() - before);
  }
  return middle(gaps);
}

/// The memory of calls of one executable: copies of the inputs that it updates, its results, its workspace.
class Run {
public:
  Run(const Executable &executable, llvm::ArrayRef<Array> inputs) : executable(executable), arrays(inputs) {
    const EntryInfo &info = executable.info;
    for (int64_t donor : info.donated)
      if (donor >= 0) {
        Array copy = Array::empty(arrays[donor].dtype(), arrays[donor].shape());
        if (copy.numBytes() > 0)
          std::memcpy(copy.buffer.data(), arrays[donor].buffer.data(), static_cast<size_t>(copy.numBytes()));
        arrays[donor] = std::move(copy);
      }
    for (auto [r, type] : llvm::enumerate(info.results))
      if (info.donated[r] < 0)
        arrays.push_back(Array::empty(type.dtype, type.shape));
    for (Array &array : arrays)
      pointers.push_back(array.buffer.data());
    workspace = Array::empty(runtime::DType::u8, runtime::Shape{info.workspaceBytes});
  }
  /// \returns the seconds that it took; the error's number in `code`.
  double call(int32_t &code) {
    double start = seconds();
    code = executable.entry(pointers.data(), nullptr, workspace.buffer.data());
    return seconds() - start;
  }
  AtFault atFault() const {
    AtFault values;
    std::memcpy(values.values.data(), workspace.buffer.data(), sizeof values.values);
    return values;
  }

private:
  const Executable &executable;
  std::vector<Array> arrays;
  std::vector<void *> pointers;
  Array workspace;
};

} // namespace

runtime::Result<Measured> measure(const Executable &plain, const Executable &marked, Marks &marks,
                                  llvm::ArrayRef<Array> inputs, double budget) {
  constexpr int64_t kLeastCalls = 5, kMostCalls = 10'000, kMostTimes = int64_t(1) << 22;
  int64_t kernels = static_cast<int64_t>(marked.kernels.size());
  double tick = secondsOfTick(), empty = ticksOfMark(), reading = secondsOfReading();
  Run plainRun(plain, inputs), markedRun(marked, inputs);
  int32_t code = 0;
  for (int warm = 0; warm < 2; ++warm) {
    plainRun.call(code);
    if (code != 0)
      return plain.failure(code, plainRun.atFault());
    markedRun.call(code);
  }
  int64_t most = std::clamp(kMostTimes / (kernels + 1), kLeastCalls, kMostCalls);
  std::vector<double> calls;
  std::vector<std::vector<double>> times(static_cast<size_t>(kernels) + 1);
  std::vector<double> launches(times.size());
  int64_t count = 0;
  for (double start = seconds(); count < most && (count < kLeastCalls || seconds() < start + budget); ++count) {
    calls.push_back(plainRun.call(code));
    std::fill(marks.launches.begin(), marks.launches.end(), Marks::Launches());
    if (code == 0)
      markedRun.call(code);
    if (code != 0) // what it updates has led it there
      break;
    for (size_t i = 0; i < times.size(); ++i) {
      auto number = static_cast<double>(marks.launches[i].count);
      times[i].push_back(static_cast<double>(static_cast<int64_t>(marks.launches[i].ticks)) - empty * number);
      launches[i] += number;
    }
  }
  if (count == 0)
    return plain.failure(code, plainRun.atFault());
  Measured measured;
  for (std::vector<double> &each : times)
    measured.seconds.push_back(std::max(0.0, middle(each) * tick));
  measured.copies = measured.seconds.back();
  measured.seconds.pop_back();
  launches.pop_back();
  for (double each : launches)
    measured.launches.push_back(each / static_cast<double>(count));
  measured.call = std::max(0.0, middle(calls) - reading);
  measured.calls = count;
  return measured;
}

} // namespace wg::codegen
