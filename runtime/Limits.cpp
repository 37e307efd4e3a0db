// Measures the limits. All kernels are assembly, chosen by what the CPU says that it can do, so one build measures
// any x86-64 machine: 12 independent chains of FMAs; four loads or stores of the widest vectors a turn.
#include "runtime/Limits.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace wg::runtime {
namespace {

// ---- The machine ----------------------------------------------------------------------------------------------------

struct Cpuid {
  unsigned a = 0, b = 0, c = 0, d = 0;
  Cpuid(unsigned leaf, unsigned part) { __get_cpuid_count(leaf, part, &a, &b, &c, &d); }
};

std::string cpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

/// Family, model and stepping, as cpuid packs them.
std::string cpuSignature() {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", Cpuid(1, 0).a);
  return text;
}

std::vector<int> processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed))
      list.push_back(cpu);
  if (list.empty()) // the system does not tell
    list.push_back(std::max(0, sched_getcpu()));
  return list;
}

void runOn(const std::vector<int> &cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus)
    CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

struct Cache {
  int level = 0;
  int64_t bytes = 0;
  int sharers = 1; ///< of the processors in use
};

std::string firstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// `0-3,8`
bool contains(const std::string &list, int cpu) {
  for (size_t at = 0; at < list.size();) {
    size_t end = std::min(list.find(',', at), list.size());
    int low = 0, high = 0;
    int found = std::sscanf(list.c_str() + at, "%d-%d", &low, &high);
    if (found >= 1 && cpu >= low && cpu <= (found == 2 ? high : low))
      return true;
    at = end + 1;
  }
  return false;
}

/// The data caches of a processor, by sysfs, or else as the C library reads cpuid.
std::vector<Cache> caches(const std::vector<int> &cpus) {
  std::vector<Cache> list;
  for (int index = 0; index < 8; ++index) {
    std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpus.back()) + "/cache/index" +
                         std::to_string(index) + "/",
                size = firstLine(folder + "size"), shared = firstLine(folder + "shared_cpu_list");
    if (size.empty() || firstLine(folder + "type") == "Instruction")
      continue;
    int64_t unit = size.back() == 'K' ? 1024 : size.back() == 'M' ? 1048576 : 1;
    auto sharers = std::count_if(cpus.begin(), cpus.end(), [&](int cpu) { return contains(shared, cpu); });
    list.push_back({std::atoi(firstLine(folder + "level").c_str()), std::atoll(size.c_str()) * unit,
                    std::max(1, static_cast<int>(sharers))});
  }
  if (list.empty())
    for (auto [level, name] :
         {std::pair{1, _SC_LEVEL1_DCACHE_SIZE}, {2, _SC_LEVEL2_CACHE_SIZE}, {3, _SC_LEVEL3_CACHE_SIZE}})
      if (int64_t bytes = sysconf(name); bytes > 0)
        list.push_back({level, bytes, level == 3 ? static_cast<int>(cpus.size()) : 1});
  std::sort(list.begin(), list.end(), [](const Cache &a, const Cache &b) { return a.level < b.level; });
  return list;
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

using Work = std::function<void(int64_t turns)>;

// Twelve chains: four cycles of latency, two units, and some to spare.
#define TWELVE(INSTRUCTION, R, A, B)                                                                                   \
  INSTRUCTION " %%" R A ",%%" R B ",%%" R "0\n" INSTRUCTION " %%" R A ",%%" R B ",%%" R "1\n" INSTRUCTION " %%" R A    \
              ",%%" R B ",%%" R "2\n" INSTRUCTION " %%" R A ",%%" R B ",%%" R "3\n" INSTRUCTION " %%" R A ",%%" R B    \
              ",%%" R "4\n" INSTRUCTION " %%" R A ",%%" R B ",%%" R "5\n" INSTRUCTION " %%" R A ",%%" R B ",%%" R      \
              "6\n" INSTRUCTION " %%" R A ",%%" R B ",%%" R "7\n" INSTRUCTION " %%" R A ",%%" R B ",%%" R              \
              "8\n" INSTRUCTION " %%" R A ",%%" R B ",%%" R "9\n" INSTRUCTION " %%" R A ",%%" R B ",%%" R              \
              "10\n" INSTRUCTION " %%" R A ",%%" R B ",%%" R "11\n"
#define TWELVE_CHAINS(NAME, INSTRUCTION, R)                                                                            \
  void NAME(int64_t turns) {                                                                                           \
    asm volatile("vzeroall\n"                                                                                          \
                 "1:\n" TWELVE(INSTRUCTION, R, "14", "15") "dec %0\n"                                                  \
                                                           "jnz 1b\n"                                                  \
                                                           "vzeroupper\n"                                              \
                 : "+r"(turns)                                                                                         \
                 :                                                                                                     \
                 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",      \
                   "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");                                                       \
  }
TWELVE_CHAINS(f32At512, "vfmadd231ps", "zmm")
TWELVE_CHAINS(f64At512, "vfmadd231pd", "zmm")
TWELVE_CHAINS(f32At256, "vfmadd231ps", "ymm")
TWELVE_CHAINS(f64At256, "vfmadd231pd", "ymm")
TWELVE_CHAINS(bf16At512, "vdpbf16ps", "zmm")
TWELVE_CHAINS(int8At512, "vpdpbusd", "zmm")

/// Four sums of 16 x 16 from two tiles of A and two of B, as a product's inner loop has them; no loads.
#define TILES(NAME, INSTRUCTION)                                                                                       \
  void NAME(int64_t turns) {                                                                                           \
    struct alignas(64) {                                                                                               \
      uint8_t palette = 1, start = 0, reserved[14] = {};                                                               \
      uint16_t columns[16] = {64, 64, 64, 64, 64, 64, 64, 64};                                                         \
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};                                                             \
    } shapes;                                                                                                          \
    asm volatile("ldtilecfg %1\n"                                                                                      \
                 "tilezero %%tmm0\ntilezero %%tmm1\ntilezero %%tmm2\ntilezero %%tmm3\n"                                \
                 "tilezero %%tmm4\ntilezero %%tmm5\ntilezero %%tmm6\ntilezero %%tmm7\n"                                \
                 "1:\n" INSTRUCTION " %%tmm6,%%tmm4,%%tmm0\n" INSTRUCTION " %%tmm7,%%tmm4,%%tmm1\n" INSTRUCTION        \
                 " %%tmm6,%%tmm5,%%tmm2\n" INSTRUCTION " %%tmm7,%%tmm5,%%tmm3\n"                                       \
                 "dec %0\n"                                                                                            \
                 "jnz 1b\n"                                                                                            \
                 "tilerelease\n"                                                                                       \
                 : "+r"(turns)                                                                                         \
                 : "m"(shapes)                                                                                         \
                 : "cc", "memory");                                                                                    \
  }
TILES(bf16Tiles, "tdpbf16ps")
TILES(int8Tiles, "tdpbssd")

/// Reads, writes or copies `bytes`, a multiple of 256. What is written is the first bytes of `from`.
using Sweep = void (*)(char *to, const char *from, int64_t bytes);

// Offsets from the end, which count up to 0.
#define SWEEP(NAME, BEFORE, BODY)                                                                                      \
  void NAME(char *to, const char *from, int64_t bytes) {                                                               \
    int64_t at = -bytes;                                                                                               \
    asm volatile(BEFORE "1:\n" BODY "jnz 1b\n"                                                                         \
                        "sfence\n"                                                                                     \
                 : "+r"(at)                                                                                            \
                 : "r"(to + bytes), "r"(from + bytes)                                                                  \
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3");                                                    \
  }
#define LOADS4(MOVE, R, W, O)                                                                                          \
  MOVE " " O "+0*" W "(%2,%0),%%" R "0\n" MOVE " " O "+1*" W "(%2,%0),%%" R "1\n" MOVE " " O "+2*" W "(%2,%0),%%" R    \
       "2\n" MOVE " " O "+3*" W "(%2,%0),%%" R "3\n"
#define STORES4(MOVE, R, W, O)                                                                                         \
  MOVE " %%" R "0," O "+0*" W "(%1,%0)\n" MOVE " %%" R "1," O "+1*" W "(%1,%0)\n" MOVE " %%" R "2," O "+2*" W          \
       "(%1,%0)\n" MOVE " %%" R "3," O "+3*" W "(%1,%0)\n"
#define SWEEPS(SUFFIX, MOVE, PAST, R, W)                                                                               \
  SWEEP(read##SUFFIX, "", LOADS4(MOVE, R, W, "0") "add $4*" W ",%0\n")                                                 \
  SWEEP(write##SUFFIX, LOADS4(MOVE, R, W, "0"), STORES4(MOVE, R, W, "0") "add $4*" W ",%0\n")                          \
  SWEEP(copy##SUFFIX, "", LOADS4(MOVE, R, W, "0") STORES4(MOVE, R, W, "0") "add $4*" W ",%0\n")                        \
  SWEEP(writePast##SUFFIX, LOADS4(MOVE, R, W, "0"), STORES4(PAST, R, W, "0") "add $4*" W ",%0\n")                      \
  SWEEP(copyPast##SUFFIX, "", LOADS4(MOVE, R, W, "0") STORES4(PAST, R, W, "0") "add $4*" W ",%0\n")
SWEEPS(512, "vmovaps", "vmovntps", "zmm", "64")
SWEEPS(256, "vmovaps", "vmovntps", "ymm", "32")
SWEEPS(128, "movaps", "movntps", "xmm", "16")

// ---- Measuring ------------------------------------------------------------------------------------------------------

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// How long a measurement may take.
struct Effort {
  double scale; ///< of the seconds of samples of one thread
  int rounds;   ///< of all threads
};

/// Seconds of the fastest call of `f`, in batches of at least 2 ms for `budget` seconds, after warming up.
template <class F> double fastest(F &&f, double budget) {
  f();
  int64_t batch = 1;
  for (double t = 0; t < 2e-3;) {
    double start = seconds();
    for (int64_t i = 0; i < batch; ++i)
      f();
    t = seconds() - start;
    if (t < 2e-3)
      batch = std::max(batch + 1, static_cast<int64_t>(static_cast<double>(batch) * std::min(10.0, 3e-3 / t)));
  }
  for (double start = seconds(); seconds() - start < 0.2 * budget;)
    f();
  double best = INFINITY;
  int samples = 0;
  for (double start = seconds(); samples < 3 || seconds() - start < budget; ++samples) {
    double t = seconds();
    for (int64_t i = 0; i < batch; ++i)
      f();
    best = std::min(best, (seconds() - t) / static_cast<double>(batch));
  }
  return best;
}

/// Seconds of the fastest of `rounds`, in which every thread runs `work(thread)` at once: from the first start to the
/// last end; infinity where there are no more threads to be had.
template <class F> double together(const std::vector<int> &cpus, int rounds, F &&work) {
  auto count = static_cast<std::ptrdiff_t>(cpus.size());
  std::barrier gate(count);
  std::vector<std::vector<std::pair<double, double>>> spans(cpus.size());
  std::vector<std::thread> threads;
  threads.reserve(cpus.size());
  enum Start { wait, go, leave };
  std::atomic<Start> start = wait;
  auto run = [&](size_t i) {
    start.wait(wait);
    if (start == leave)
      return;
    runOn({cpus[i]});
    work(i); // warm
    for (int round = 0; round < rounds; ++round) {
      gate.arrive_and_wait();
      double begin = seconds();
      work(i);
      spans[i].emplace_back(begin, seconds());
    }
  };
  try {
    for (size_t i = 0; i < cpus.size(); ++i)
      threads.emplace_back(run, i);
    start = go;
  } catch (const std::system_error &) {
    start = leave;
  }
  start.notify_all();
  for (std::thread &thread : threads)
    thread.join();
  if (start == leave)
    return INFINITY;
  double best = INFINITY;
  for (size_t round = 0; round < static_cast<size_t>(rounds); ++round) {
    double first = INFINITY, last = 0;
    for (const auto &span : spans)
      first = std::min(first, span[round].first), last = std::max(last, span[round].second);
    best = std::min(best, last - first);
  }
  return best;
}

Peak peakOf(const std::string &name, const std::string &unit, double each, void (*work)(int64_t),
            const std::vector<int> &cpus, Effort effort) {
  Peak peak{name, unit};
  constexpr int64_t kTurns = 100000;
  double one = fastest([&] { work(kTurns); }, 0.3 * effort.scale);
  auto turns = static_cast<int64_t>(kTurns * std::max(1.0, 6e-3 / one));
  peak.one = each * kTurns / one * 1e-9;
  peak.all = each * static_cast<double>(turns) * static_cast<double>(cpus.size()) /
             together(cpus, effort.rounds, [&](size_t) { work(turns); }) * 1e-9;
  return peak;
}

/// Bytes on huge pages, written by the thread that makes them.
class Pages {
public:
  explicit Pages(int64_t bytes) : bytes_(static_cast<size_t>(bytes) + (size_t(4) << 20)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED)
      return;
    madvise(memory_, bytes_, MADV_HUGEPAGE);
    auto at = reinterpret_cast<uintptr_t>(memory_);
    data_ = reinterpret_cast<char *>((at + (2 << 20) - 1) >> 21 << 21);
    for (int64_t i = 0; i < bytes; ++i) // no zeros, which some machines move for less
      data_[i] = static_cast<char>(i * 167 + 13);
  }
  Pages(const Pages &) = delete;
  ~Pages() {
    if (data_)
      munmap(memory_, bytes_);
  }
  /// Null where there is no memory.
  char *data() const { return data_; }

private:
  void *memory_;
  size_t bytes_;
  char *data_ = nullptr;
};

struct Sweeps {
  Sweep read, write, copy;
};

/// One sweep over `touched` bytes a thread; a copy reads one half and writes the other.
double gigabytes(Sweep sweep, bool halves, int64_t touched, const std::vector<int> &cpus, Effort effort) {
  int64_t each = (halves ? touched / 2 : touched) / 256 * 256;
  double bytes = static_cast<double>(halves ? 2 * each : each) * static_cast<double>(cpus.size());
  bool small = touched < (int64_t(64) << 20);
  auto pair = [&](const Pages &pages) { return std::pair{pages.data() + (halves ? each : 0), pages.data()}; };
  if (cpus.size() == 1) {
    Pages pages(touched);
    if (!pages.data())
      return 0;
    auto [to, from] = pair(pages);
    return bytes / fastest([&, to = to, from = from] { sweep(to, from, each); }, (small ? 0.2 : 0.6) * effort.scale) *
           1e-9;
  }
  std::vector<std::unique_ptr<Pages>> pages(cpus.size());
  int64_t turns = std::max<int64_t>(1, (int64_t(256) << 20) / touched); // some milliseconds
  std::atomic<bool> noMemory = false;
  double time = together(cpus, small ? effort.rounds : (effort.rounds * 3 + 4) / 5, [&](size_t i) {
    if (!pages[i])
      pages[i] = std::make_unique<Pages>(touched);
    if (!pages[i]->data()) {
      noMemory = true;
      return;
    }
    auto [to, from] = pair(*pages[i]);
    for (int64_t turn = 0; turn < turns; ++turn)
      sweep(to, from, each);
  });
  return noMemory ? 0 : bytes * static_cast<double>(turns) / time * 1e-9;
}

Bandwidth bandwidth(const Sweeps &sweeps, int64_t touched, const std::vector<int> &cpus, Effort effort) {
  return {sweeps.read ? gigabytes(sweeps.read, false, touched, cpus, effort) : 0,
          gigabytes(sweeps.write, false, touched, cpus, effort), gigabytes(sweeps.copy, true, touched, cpus, effort)};
}

void raise(double &figure, double other) { figure = std::max(figure, other); }
void raise(Bandwidth &mine, const Bandwidth &other) {
  raise(mine.read, other.read), raise(mine.write, other.write), raise(mine.copy, other.copy);
}

/// Whether this process may use tiles; else why not.
std::string whyNoTiles(const Cpuid &seven) {
  if (!(seven.d >> 24 & 1))
    return "the CPU has no tiles";
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0)
    return "the kernel gives no permission";
  return "";
}

} // namespace

Limits measureLimits(bool quick) {
  Limits limits;
  limits.quick = quick;
  Effort effort = quick ? Effort{0.04, 4} : Effort{1, 25};
  std::vector<int> cpus = processors(), one = {cpus.back()};
  limits.cpu = cpuName(), limits.signature = cpuSignature(), limits.threads = static_cast<int>(cpus.size());
  char date[32];
  std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%FT%TZ", std::gmtime(&now));
  limits.measured = date;
  struct Pinned { // to one of them while this measures, whatever ends that
    explicit Pinned(const std::vector<int> &cpus, const std::vector<int> &one) : cpus(cpus) { runOn(one); }
    ~Pinned() { runOn(cpus); }
    const std::vector<int> &cpus;
  } pinned(cpus, one);

  bool avx512 = __builtin_cpu_supports("avx512f"), avx = __builtin_cpu_supports("avx"),
       fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  Cpuid seven(7, 0), sevenOne(7, 1);
  auto add = [&](const char *name, const char *unit, double each, void (*work)(int64_t)) {
    limits.peaks.push_back(peakOf(name, unit, each, work, cpus, effort));
  };
  if (avx512) {
    add("f32 512 bit", "GFLOP/s", 12 * 32, f32At512);
    add("f64 512 bit", "GFLOP/s", 12 * 16, f64At512);
  } else {
    limits.skipped.push_back("512 bit: the CPU has no AVX-512");
  }
  if (fma && !(quick && avx512)) {
    add("f32 256 bit", "GFLOP/s", 12 * 16, f32At256);
    add("f64 256 bit", "GFLOP/s", 12 * 8, f64At256);
  } else if (!fma) {
    limits.skipped.push_back("256 bit: the CPU has no AVX2 with FMA");
  }
  if (avx512 && (sevenOne.a >> 5 & 1))
    add("bf16 dot 512 bit", "GFLOP/s", 12 * 64, bf16At512);
  if (avx512 && (seven.c >> 11 & 1))
    add("int8 dot 512 bit", "GOP/s", 12 * 128, int8At512);
  if (std::string why = whyNoTiles(seven); !why.empty()) {
    limits.skipped.push_back("amx: " + why);
  } else {
    if (seven.d >> 22 & 1)
      add("bf16 tiles", "GFLOP/s", 4 * 2 * 16 * 16 * 32, bf16Tiles);
    if (seven.d >> 25 & 1)
      add("int8 tiles", "GOP/s", 4 * 2 * 16 * 16 * 64, int8Tiles);
  }

  Sweeps through = avx512 ? Sweeps{read512, write512, copy512}
                   : avx  ? Sweeps{read256, write256, copy256}
                          : Sweeps{read128, write128, copy128},
         past = avx512 ? Sweeps{nullptr, writePast512, copyPast512}
                : avx  ? Sweeps{nullptr, writePast256, copyPast256}
                       : Sweeps{nullptr, writePast128, copyPast128};
  int64_t largest = 0;
  for (const Cache &cache : caches(cpus)) {
    // Of L1 two thirds, of the others half and a quarter: what others leave, and no conflicts.
    int64_t touched = (cache.level == 1   ? cache.bytes * 2 / 3
                       : cache.level == 2 ? cache.bytes / 2
                                          : cache.bytes / 4) /
                      4096 * 4096,
            share = touched / cache.sharers / 512 * 512;
    Level level{"L" + std::to_string(cache.level), cache.bytes, touched, {}, {}};
    level.one = bandwidth(through, touched, one, effort);
    if (share > largest || cache.level == 1)
      level.all = bandwidth(through, share, cpus, effort);
    else
      limits.skipped.push_back(level.name + ", all threads: a thread's share of it is smaller than the level before");
    limits.levels.push_back(level);
    largest = cache.bytes;
  }
  // So much that caches do not matter, and no more than an eighth of the machine's memory.
  int64_t memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
          touched = std::min(
              quick ? std::max(int64_t(128) << 20, 2 * largest) : std::max(int64_t(1) << 30, 8 * largest), memory / 8),
          share = touched / limits.threads / 512 * 512;
  limits.levels.push_back(
      {"memory", 0, touched, bandwidth(through, touched, one, effort), bandwidth(through, share, cpus, effort)});
  if (!quick)
    limits.levels.push_back({"memory, stores past the caches", 0, touched, bandwidth(past, touched, one, effort),
                             bandwidth(past, share, cpus, effort)});
  // A cache that cores share has a clock of its own, which may rise only when it has been in use for seconds.
  for (Level &level : limits.levels)
    if (level.name == "L3" && !quick)
      raise(level.one, bandwidth(through, level.touched, one, effort));
  return limits;
}

// ---- The file -------------------------------------------------------------------------------------------------------

double Limits::peak(const std::string &name, bool all) const {
  for (const Peak &each : peaks)
    if (each.name == name)
      return all ? each.all : each.one;
  return 0;
}

double Limits::best(const std::string &dtype, bool all) const {
  double most = 0;
  for (const Peak &each : peaks)
    if (each.name.starts_with(dtype + " "))
      most = std::max(most, all ? each.all : each.one);
  return most;
}

static constexpr int kVersion = 1;

nlohmann::json toJson(const Limits &limits) {
  auto bandwidth = [](const Bandwidth &b) {
    return nlohmann::json{{"read", b.read}, {"write", b.write}, {"copy", b.copy}};
  };
  nlohmann::json json = {{"version", kVersion},
                         {"cpu", limits.cpu},
                         {"signature", limits.signature},
                         {"threads", limits.threads},
                         {"measured", limits.measured},
                         {"peaks", nlohmann::json::array()},
                         {"levels", nlohmann::json::array()},
                         {"skipped", limits.skipped},
                         {"quick", limits.quick}};
  for (const Peak &peak : limits.peaks)
    json["peaks"].push_back({{"name", peak.name}, {"unit", peak.unit}, {"one", peak.one}, {"all", peak.all}});
  for (const Level &level : limits.levels)
    json["levels"].push_back({{"name", level.name},
                              {"bytes", level.bytes},
                              {"touched", level.touched},
                              {"one", bandwidth(level.one)},
                              {"all", bandwidth(level.all)}});
  return json;
}

std::optional<Limits> limitsFrom(const nlohmann::json &json) {
  try {
    if (json.at("version") != kVersion)
      return {};
    auto bandwidth = [](const nlohmann::json &b) -> Bandwidth { return {b.at("read"), b.at("write"), b.at("copy")}; };
    Limits limits;
    limits.cpu = json.at("cpu"), limits.signature = json.at("signature"), limits.measured = json.at("measured");
    limits.threads = json.at("threads"), limits.skipped = json.at("skipped").get<std::vector<std::string>>();
    limits.quick = json.value("quick", false);
    for (const nlohmann::json &peak : json.at("peaks"))
      limits.peaks.push_back({peak.at("name"), peak.at("unit"), peak.at("one"), peak.at("all")});
    for (const nlohmann::json &level : json.at("levels"))
      limits.levels.push_back({level.at("name"), level.at("bytes"), level.at("touched"), bandwidth(level.at("one")),
                               bandwidth(level.at("all"))});
    return limits;
  } catch (const nlohmann::json::exception &) {
    return {};
  }
}

std::string limitsFile() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  // A relative path is to be ignored, says the XDG base directory specification.
  std::string folder = cache && *cache == '/' ? cache : std::string(home ? home : "/tmp") + "/.cache";
  std::string key = cpuName() + "-" + cpuSignature() + "-" + std::to_string(processors().size());
  std::replace_if(key.begin(), key.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
  return folder + "/wengert/limits-" + key + ".json";
}

std::optional<Limits> knownLimits() {
  std::ifstream file(limitsFile());
  return limitsFrom(nlohmann::json::parse(file, nullptr, false));
}

/// False if they cannot be kept.
static bool write(const Limits &limits) {
  // Under another name first: who reads meanwhile sees the old file or the new one.
  std::filesystem::path path = limitsFile(), partial = path.string() + "." + std::to_string(getpid());
  std::error_code failure;
  std::filesystem::create_directories(path.parent_path(), failure);
  bool wrote = static_cast<bool>(std::ofstream(partial) << toJson(limits).dump(1) << "\n");
  if (wrote)
    std::filesystem::rename(partial, path, failure);
  return wrote && !failure;
}

/// One thread measures at a time, and finds then what the one before it wrote.
static std::mutex measuring;

Limits limits(bool quick, bool again, bool *written) {
  std::lock_guard lock(measuring);
  if (written)
    *written = true;
  if (!again)
    if (std::optional<Limits> known = knownLimits(); known && (quick || !known->quick))
      return *known;
  Limits measured = measureLimits(quick);
  bool wrote = write(measured);
  if (written)
    *written = wrote;
  return measured;
}

Limits raiseLimits() {
  std::lock_guard lock(measuring);
  Limits best = measureLimits(/*quick=*/true);
  if (std::optional<Limits> known = knownLimits()) {
    for (Peak &peak : known->peaks)
      raise(peak.one, best.peak(peak.name)), raise(peak.all, best.peak(peak.name, true));
    for (Level &level : known->levels)
      for (const Level &other : best.levels)
        if (other.name == level.name)
          raise(level.one, other.one), raise(level.all, other.all);
    best = *known;
  }
  write(best);
  return best;
}

} // namespace wg::runtime
