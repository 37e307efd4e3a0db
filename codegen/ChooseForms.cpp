#include "codegen/ChooseForms.h"

#include "codegen/Compile.h"
#include "ir/Diagnostics.h"
#include "runtime/ThreadPool.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/xxhash.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace wg::codegen {

using runtime::Array;
using runtime::DType;

namespace {

/// What was found, of the last so many products.
class Known {
public:
  /// Never destroyed: static objects may compile while they are. A process that is forked while another thread measures
  /// has nobody who does.
  static Known &process() {
    static Known &known = *new Known();
    [[maybe_unused]] static const int once = ::pthread_atfork(nullptr, nullptr, [] {
      new (&known.measuring) std::timed_mutex();
      new (&known.lock) std::mutex();
    });
    return known;
  }
  std::optional<FormReport> find(const std::string &key) {
    std::lock_guard guard(lock);
    auto at = reports.find(key);
    return at == reports.end() ? std::nullopt : std::optional(at->second);
  }
  void add(const std::string &key, const FormReport &report) {
    constexpr unsigned kMost = 4096;
    std::lock_guard guard(lock);
    if (reports.size() >= kMost)
      reports.clear();
    reports[key] = report;
  }
  std::timed_mutex measuring; ///< one product at a time: others would disturb it

private:
  std::mutex lock;
  llvm::StringMap<FormReport> reports;
};

/// Numbers between -1 and 1, zeros of either sign among them. One run of them, again and again.
template <class T> void fill(Array &array) {
  constexpr size_t kRun = 65521; // a prime: rows do not begin alike
  size_t all = static_cast<size_t>(array.numElements()), count = std::min(kRun, all);
  T *to = static_cast<T *>(array.buffer.data());
  uint64_t state = 0x9e3779b97f4a7c15 + all;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407; // Knuth, MMIX
    uint64_t bits = state >> 11;
    T value = (bits >> 1 & 15) == 0 ? T(0) : static_cast<T>(static_cast<double>(bits) * 0x1p-53);
    to[i] = bits & 1 ? -value : value;
  }
  for (size_t done = count; done < all; done += count)
    std::copy_n(to, std::min(count, all - done), to + done);
}

/// Of this machine, or of the container that the process is in; what cannot be read is no limit.
int64_t availableBytes() {
  int64_t available = int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::ifstream info("/proc/meminfo");
  for (std::string name, line; info >> name && std::getline(info, line);)
    if (name == "MemAvailable:")
      available = std::min<int64_t>(available, std::atoll(line.c_str()) * 1024);
  int64_t most = 0, used = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> most && std::ifstream("/sys/fs/cgroup/memory.current") >> used)
    available = std::min(available, most - used);
  return available;
}

/// Bytes that tensors, and a form's workspace, may have: a part of the memory, as ranks of a machine all measure.
int64_t mostBytes() { return std::min(int64_t(1) << 30, availableBytes() / 8); }

/// Forms of a product against each other.
class Race {
public:
  Race(const passes::Forms &forms, const Target &target, KernelCache *cache)
      : forms(forms), target(target), cache(cache), mostBytes(codegen::mostBytes()) {
    report.seconds.resize(forms.count());
  }

  /// The first form of each group against each other, then the winner, the others of its group, and some of those whose
  /// first is not far behind.
  FormReport run() {
    constexpr double kAlike = 1.15; // times
    constexpr double kLong = 1e-3;  // seconds
    constexpr size_t kOfOthers = 4; // where it takes less, of which the first is one
    llvm::ArrayRef<size_t> groups = forms.groups;
    std::vector<size_t> entering;
    if (forms.bytes > mostBytes)
      return report;
    for (size_t form = 0; form < groups.size(); ++form)
      if (form == 0 || groups[form] != groups[form - 1])
        entering.push_back(form);
    if (!enter(entering) || candidates.empty())
      return report;
    size_t fastest = winnerOfSameBits();
    double fewest = report.seconds[fastest];
    entering.clear();
    for (size_t form = 0, first = 0; form < groups.size(); ++form)
      if (groups[form] != groups[first])
        first = form;
      else if (double seconds = report.seconds[first]; form != first && seconds != 0 && seconds <= fewest * kAlike)
        if (groups[first] == groups[fastest] || fewest > kLong || form - first < kOfOthers)
          entering.push_back(form);
    if (!enter(entering))
      return report;
    report.chosen = winnerOfSameBits();
    return report;
  }

private:
  struct Candidate {
    std::shared_ptr<const Executable> executable;
    size_t form;
  };

  /// More take part: those whose results are those of the first form. \returns whether they run.
  bool enter(llvm::ArrayRef<size_t> entering) {
    constexpr double kShort = 1e-3; // seconds
    bool isFirst = candidates.empty();
    int64_t wanted = 0;
    for (size_t form : entering) {
      auto executable = compile(forms.program(form).release(), "product",
                                {.target = target, .cache = cache, .arranged = true}, Stage::simplified);
      if (!executable.ok())
        return false;
      if (int64_t bytes = (*executable)->info.workspaceBytes; bytes <= mostBytes) {
        wanted = std::max(wanted, bytes);
        candidates.push_back({*executable, form});
      }
    }
    if (isFirst &&
        (candidates.empty() || candidates.front().form != 0 || !prepare(candidates.front().executable->info)))
      return false;
    sortCandidates();
    if (!workspace.buffer || wanted >= static_cast<int64_t>(workspace.numBytes()))
      workspace = touched(Array::empty(DType::u8, runtime::Shape{wanted + 1}));
    if (isFirst) { // whatever is new to it was in this call
      if (!call(candidates.front()))
        return false;
      expected = hashOf(kAll);
      expectedOfSome = hashOf(kSome);
      report.seconds[0] = 0;
    }
    for (size_t form : entering) {
      auto at =
          std::find_if(candidates.begin(), candidates.end(), [&](const Candidate &each) { return each.form == form; });
      if (at == candidates.end())
        continue;
      if (!call(*at))
        return false;
      if (hashOf(kSome) != expectedOfSome) {
        leaves(form);
      } else if (report.seconds[form] < kShort) { // most of that was code and memory that are new to it
        report.seconds[form] = 0;
        if (!call(*at))
          return false;
      }
    }
    return true;
  }

  /// The operands and the result. \returns whether there are numbers of their dtype.
  bool prepare(const EntryInfo &info) {
    auto arrayOf = [](const runtime::TensorType &type) { return Array::empty(type.dtype, type.shape); };
    a = arrayOf(info.inputs[0]);
    b = arrayOf(info.inputs[1]);
    c = touched(arrayOf(info.results[0]));
    for (Array *operand : {&a, &b})
      if (operand->dtype() == DType::f32)
        fill<float>(*operand);
      else if (operand->dtype() == DType::f64)
        fill<double>(*operand);
      else
        return false;
    return true;
  }

  /// Of memory that is new the first use takes longer than most products.
  static Array touched(Array array) {
    std::memset(array.buffer.data(), 0, static_cast<size_t>(array.numBytes()));
    return array;
  }

  /// Of all bytes of the result, or of 64 KiB in 4 MiB: almost all results that differ do so everywhere.
  static constexpr size_t kAll = 1, kSome = 64;
  uint64_t hashOf(size_t part) const {
    constexpr size_t kPiece = 4 << 20;
    size_t bytes = static_cast<size_t>(c.numBytes());
    uint64_t hash = 0;
    for (size_t at = 0; at < bytes; at += kPiece) {
      const auto *piece = static_cast<const uint8_t *>(c.buffer.data()) + at;
      hash = llvm::hash_combine(hash, llvm::xxh3_64bits(llvm::ArrayRef(piece, std::min(kPiece / part, bytes - at))));
    }
    return hash;
  }

  /// The winner of those that have all of the first form's results, which are compared once.
  size_t winnerOfSameBits() {
    for (;;) {
      size_t best = winner();
      if (best == 0 || (call(candidates.front()) && hashOf(kAll) == expected))
        return best;
      leaves(best);
      llvm::append_range(candidates, std::exchange(behind, {})); // what was slower than it
      sortCandidates();
    }
  }

  void sortCandidates() {
    llvm::sort(candidates, [](const Candidate &x, const Candidate &y) { return x.form < y.form; });
  }

  void leaves(size_t form) {
    report.seconds[form] = 0;
    std::erase_if(candidates, [&](const Candidate &candidate) { return candidate.form == form; });
  }

  /// \returns whether it ran; its time in the report.
  bool call(const Candidate &candidate) {
    void *pointers[3] = {a.buffer.data(), b.buffer.data(), c.buffer.data()};
    auto start = std::chrono::steady_clock::now();
    bool ran = candidate.executable->entry(pointers, nullptr, workspace.buffer.data()) == 0;
    double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double &seconds = report.seconds[candidate.form];
    seconds = seconds == 0 ? taken : std::min(seconds, taken);
    return ran;
  }

  /// Runs all that are not far behind, by turns: short runs again and again, so that what else the machine does in some
  /// milliseconds disturbs each of them once, long ones but once more.
  size_t winner() {
    struct Round {
      double most, longest; ///< times as long as the fastest; seconds that it takes
      int calls;            ///< in a row: a program finds in the caches what its own last calls left there
    };
    constexpr double kNever = std::numeric_limits<double>::infinity();
    constexpr Round kRounds[] = {{2.5, 1e-3, 4}, {1.5, 2e-2, 2}, {1.5, 5e-3, 4}, {1.15, kNever, 1}, {1.15, 5e-3, 4}};
    constexpr double kEnough = 5e-4; // seconds
    constexpr double kAsGood = 1.03; // what is estimated to be faster is
    for (const auto &[most, longest, calls] : kRounds) {
      if (candidates.size() == 1)
        break;
      if (least() > longest)
        continue;
      keep(most);
      for (const Candidate &candidate : candidates) {
        double spent = 0;
        for (int i = 0; i < calls || spent < kEnough; ++i) {
          call(candidate);
          spent += report.seconds[candidate.form];
        }
      }
    }
    keep(kAsGood);
    return candidates.front().form;
  }

  /// The seconds of the fastest.
  double least() const {
    double seconds = std::numeric_limits<double>::infinity();
    for (const Candidate &candidate : candidates)
      seconds = std::min(seconds, report.seconds[candidate.form]);
    return seconds;
  }

  void keep(double most) {
    double seconds = most * least();
    std::erase_if(candidates, [&](const Candidate &candidate) {
      bool isBehind = report.seconds[candidate.form] > seconds;
      if (isBehind)
        behind.push_back(candidate);
      return isBehind;
    });
  }

  const passes::Forms &forms;
  const Target &target;
  KernelCache *cache;
  int64_t mostBytes;
  FormReport report; ///< with the times so far
  Array a, b, c, workspace;
  uint64_t expected = 0, expectedOfSome = 0; ///< hashes of the first form's result
  std::vector<Candidate> candidates;         ///< in the order of the forms
  std::vector<Candidate> behind;             ///< that were slower than one of these
};

} // namespace

FormReport fastestForm(const passes::Forms &forms, const Target &target, KernelCache *cache) {
  Known &known = Known::process();
  std::string key = forms.all + ", " + std::to_string(runtime::numThreads()) + " threads, " + target.key();
  FormReport report;
  if (std::optional<FormReport> found = known.find(key)) {
    report = std::move(*found);
  } else if (std::unique_lock measuring(known.measuring, std::chrono::seconds(30)); measuring) {
    if (std::optional<FormReport> meanwhile = known.find(key)) {
      report = std::move(*meanwhile);
    } else {
      try {
        report = Race(forms, target, cache).run();
        known.add(key, report);
      } catch (const std::bad_alloc &) { // next time there may be memory
      }
    }
  }
  report.product = forms.product;
  report.forms = forms.all;
  report.where = ir::whereOf(forms.where);
  return report;
}

size_t chosenBefore(const std::vector<FormReport> &reports, const passes::Forms &forms) {
  auto at =
      std::find_if(reports.begin(), reports.end(), [&](const FormReport &report) { return report.forms == forms.all; });
  return at == reports.end() ? 0 : at->chosen;
}

} // namespace wg::codegen
