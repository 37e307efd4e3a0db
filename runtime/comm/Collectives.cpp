#include "runtime/comm/Collectives.h"

#include "runtime/Array.h"
#include "runtime/External.h"
#include "runtime/Host.h"
#include "runtime/comm/Threads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

namespace wg::runtime {

//===- Sums -------------------------------------------------------------------------------------------------------===//

template <class T> static void combine(bool max, T *a, const T *b, int64_t count) {
  if (max) {
    for (int64_t i = 0; i < count; ++i)
      a[i] = a[i] >= b[i] || a[i] != a[i] ? a[i] : b[i];
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    if constexpr (std::is_integral_v<T>) // wraps around
      a[i] = static_cast<T>(static_cast<std::make_unsigned_t<T>>(a[i]) + static_cast<std::make_unsigned_t<T>>(b[i]));
    else
      a[i] += b[i];
}

/// Integers are rounded towards 0.
template <class T> static void divide(T *x, int64_t count, int64_t by) {
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  for (int64_t i = 0; i < count; ++i)
    x[i] = static_cast<T>(static_cast<Wide>(x[i]) / static_cast<Wide>(by));
}

/// rows[0] becomes the sum of `size` rows of `count` elements, which lie `stride` elements apart, over the tree.
template <class T> static void sumRows(Collective kind, T *rows, int64_t size, int64_t stride, int64_t count) {
  constexpr int64_t kBlock = 4096; // stays in the cache for all levels of the tree
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    int64_t block = std::min(kBlock, count - begin);
    for (int64_t step = 1; step < size; step *= 2)
      for (int64_t i = 0; i + step < size; i += 2 * step)
        combine(kind == Collective::max, rows + i * stride + begin, rows + (i + step) * stride + begin, block);
    if (kind == Collective::mean)
      divide(rows + begin, block, size);
  }
}

/// f(elements) of the call's dtype.
template <class F> static Status onElements(const CollectiveCall &call, void *x, F f) {
  switch (call.dtype) {
  case DType::f32: return f(static_cast<float *>(x)), Status();
  case DType::f64: return f(static_cast<double *>(x)), Status();
  case DType::i64: return f(static_cast<int64_t *>(x)), Status();
  case DType::i32: return f(static_cast<int32_t *>(x)), Status();
  case DType::u8: return f(static_cast<uint8_t *>(x)), Status();
  default:
    return typeError("ranks sum f32, f64, i64, i32 and u8, not " + std::string(nameOf(call.dtype)), "cast it first");
  }
}
static Status sumRows(const CollectiveCall &call, void *rows, int64_t size, int64_t stride, int64_t count) {
  return onElements(call, rows, [&](auto *x) { sumRows(call.kind, x, size, stride, count); });
}
Status combine(const CollectiveCall &call, void *a, const void *b, int64_t count) {
  return onElements(call, a,
                    [&]<class T>(T *x) { combine(call.kind == Collective::max, x, static_cast<const T *>(b), count); });
}
static Status divide(const CollectiveCall &call, void *x, int64_t by) {
  return onElements(call, x, [&](auto *each) { divide(each, call.count, by); });
}

//===- Groups -----------------------------------------------------------------------------------------------------===//

Status CommGroup::failure() const {
  return Failure{.kind = ErrorKind::runtime, .op = "dist", .message = comm_->text(comm_)};
}

/// `rank 2`, `ranks 2 and 5`.
static std::string list(const std::vector<int32_t> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

Status CommGroup::wait(void *request, const CommOptions &options) {
  int32_t done = 0;
  if (comm_->finish(comm_, request, options.timeout, &done))
    return failure();
  if (done)
    return {};
  std::vector<int32_t> late(static_cast<size_t>(size()));
  late.resize(static_cast<size_t>(comm_->pending(comm_, request, late.data(), size())));
  if (late.empty()) { // it has come in this moment
    if (comm_->finish(comm_, request, options.timeout, &done))
      return failure();
    if (done)
      return {};
  }
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", options.timeout);
  std::string text = list(late) + (late.size() == 1 ? " has" : " have") + " not come to what rank " +
                     std::to_string(rank()) + " is at within " + seconds + " s";
  comm_->fail(comm_, text.c_str());
  (void)comm_->finish(comm_, request, 0, &done);
  return Failure{.kind = ErrorKind::runtime,
                 .op = "dist",
                 .message = text,
                 .remedy = "see why it is late, or wait longer: dist::init({.timeout = seconds})"};
}

Status CommGroup::exchange(const wg_comm_part *parts, const CommOptions &options) {
  void *request = nullptr;
  if (comm_->start(comm_, parts, &request))
    return failure();
  return wait(request, options);
}

/// Few ranks each send to all others, so who waits knows whom for. Many do it in log2(size) rounds: in round k each
/// rank hands on the 2^k blocks that it has (Bruck et al. 1997).
Status CommGroup::gather(const void *mine, void *all, int64_t bytes, const CommOptions &options) {
  auto *blocks = static_cast<char *>(all);
  constexpr int kFewRanks = 64;
  if (size() <= kFewRanks) {
    std::vector<wg_comm_part> parts;
    for (int i = 0; i < size(); ++i)
      parts.push_back({mine, bytes, blocks + i * bytes, bytes});
    return exchange(parts.data(), options);
  }
  std::memcpy(blocks, mine, static_cast<size_t>(bytes));
  for (int have = 1; have < size();) {
    int more = std::min(have, size() - have);
    int to = (rank() - have + size()) % size(), from = (rank() + have) % size();
    std::vector<wg_comm_part> parts(static_cast<size_t>(size()));
    parts[static_cast<size_t>(to)].send = blocks;
    parts[static_cast<size_t>(to)].send_bytes = more * bytes;
    parts[static_cast<size_t>(from)].receive = blocks + have * bytes;
    parts[static_cast<size_t>(from)].receive_bytes = more * bytes;
    if (Status status = exchange(parts.data(), options); !status.ok())
      return status;
    have += more;
  }
  std::rotate(blocks, blocks + (size() - rank()) % size() * bytes, blocks + size() * bytes); // block i is rank i's
  return {};
}

/// What a rank is at.
struct CommGroup::Place {
  uint64_t calls;
  int64_t kind, dtype, count, root, times = 0; ///< `times`: of a step
  friend auto operator<=>(const Place &, const Place &) = default;
};

template <class Place> static std::string describe(const Place &place) {
  if (place.kind < 0 || place.kind >= std::ssize(kCollectives) || place.dtype < 0 || place.dtype >= kNumDTypes)
    return "something else"; // one that does not tell what it is at
  if (place.kind == int64_t(Collective::step))
    return "a data parallel step whose name hashes to " + std::to_string(static_cast<uint64_t>(place.root) % 10000) +
           " (call " + std::to_string(place.times) + " of that step), its call " + std::to_string(place.calls);
  if (place.kind == int64_t(Collective::together))
    return std::string(kCollectives[static_cast<size_t>(place.kind)]) + ", its call " + std::to_string(place.calls);
  return std::string(kCollectives[static_cast<size_t>(place.kind)]) + " of " + std::to_string(place.count) + " " +
         std::string(nameOf(static_cast<DType>(place.dtype))) +
         (place.kind == int64_t(Collective::broadcast) || place.kind == int64_t(Collective::reduce)
              ? " (root " + std::to_string(place.root) + ")"
              : "") +
         ", its call " + std::to_string(place.calls);
}

Status CommGroup::agree(const CollectiveCall &call, const CommOptions &options) {
  ++calls_;
  if (!options.check || size() == 1)
    return {};
  Place mine{calls_, int64_t(call.kind), int64_t(call.dtype), call.count, call.root};
  std::vector<Place> all(static_cast<size_t>(size()));
  if (Status status = gather(&mine, all.data(), sizeof mine, options); !status.ok())
    return status;
  return refuse(all);
}

Status CommGroup::begin(const CommOptions &options) {
  CollectiveCall call{.kind = Collective::together};
  CommOptions checked = options;
  checked.check = true; // once for much
  return agree(call, checked);
}

/// An error unless all are at one place.
Status CommGroup::refuse(const std::vector<Place> &all) {
  std::map<Place, std::vector<int32_t>> at;
  for (int i = 0; i < size(); ++i)
    at[all[static_cast<size_t>(i)]].push_back(i);
  if (at.size() == 1)
    return {};
  // Where most are is right; of equally many, where the first rank is.
  auto most = std::max_element(at.begin(), at.end(), [](const auto &a, const auto &b) {
    return std::tuple(a.second.size(), -a.second[0]) < std::tuple(b.second.size(), -b.second[0]);
  });
  std::string text;
  for (const auto &[place, who] : at)
    if (&place != &most->first)
      text += (text.empty() ? "" : "; ") + list(who) + (who.size() == 1 ? " is at " : " are at ") + describe(place);
  text += ", and " + list(most->second) + (most->second.size() == 1 ? " is at " : " are at ") + describe(most->first);
  comm_->fail(comm_, text.c_str());
  return Failure{.kind = ErrorKind::value,
                 .op = "dist",
                 .message = text,
                 .remedy = "run the same program with the same shapes on all ranks"};
}

Status CommGroup::meet(std::string_view step, int64_t times, bool asked, int64_t rows, std::vector<int64_t> &all,
                       bool &anyAsked, const CommOptions &options) {
  ++calls_;
  uint64_t name = 0xcbf29ce484222325u; // FNV-1a
  for (char letter : step)
    name = (name ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  Place mine{calls_, int64_t(Collective::step), asked, rows, static_cast<int64_t>(name), times};
  std::vector<Place> places(static_cast<size_t>(size()), mine);
  if (size() > 1)
    if (Status status = gather(&mine, places.data(), sizeof mine, options); !status.ok())
      return status;
  all.clear();
  for (Place &place : places) {
    all.push_back(place.count);
    if (place.kind == mine.kind) {
      anyAsked |= place.dtype != 0;
      place.dtype = 0, place.count = 0; // these may differ
    }
  }
  return refuse(places);
}

/// Each rank sums its piece of the elements, and all gather the pieces; few elements are summed by all.
Status CommGroup::sum(const CollectiveCall &call, const void *x, void *y, const CommOptions &options) {
  auto bytesOf = [&](int64_t count) { return count * static_cast<int64_t>(sizeOf(call.dtype)); };
  int64_t n = size(), piece = (call.count + n - 1) / n;
  auto from = static_cast<const char *>(x);
  auto to = static_cast<char *>(y);
  if (n == 1) {
    std::memcpy(y, x, static_cast<size_t>(bytesOf(call.count)));
    return {};
  }
  if (options.any_order && comm_->sum && call.kind != Collective::max) {
    if (comm_->sum(comm_, x, y, call.count, static_cast<int32_t>(call.dtype)))
      return failure();
    return call.kind == Collective::sum ? Status() : divide(call, y, n);
  }
  constexpr int64_t kFew = 8192; // bytes: one exchange, not two
  bool few = bytesOf(call.count) <= kFew;
  int64_t stride = few ? call.count : piece;
  Array rows = Array::empty(DType::u8, {n * bytesOf(stride)});
  char *scratch = static_cast<char *>(rows.buffer.data());
  if (few) {
    if (Status status = gather(x, scratch, bytesOf(call.count), options); !status.ok())
      return status;
    if (Status status = sumRows(call, scratch, n, stride, call.count); !status.ok())
      return status;
    std::memcpy(y, scratch, static_cast<size_t>(bytesOf(call.count)));
    return {};
  }
  auto begin = [&](int64_t i) { return std::min(call.count, i * piece); };
  auto length = [&](int64_t i) { return begin(i + 1) - begin(i); };
  std::vector<wg_comm_part> parts(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    parts[static_cast<size_t>(i)] = {from + bytesOf(begin(i)), bytesOf(length(i)), scratch + i * bytesOf(stride),
                                     bytesOf(length(rank()))};
  if (Status status = exchange(parts.data(), options); !status.ok())
    return status;
  if (Status status = sumRows(call, scratch, n, stride, length(rank())); !status.ok())
    return status;
  for (int64_t i = 0; i < n; ++i)
    parts[static_cast<size_t>(i)] = {scratch, bytesOf(length(rank())), to + bytesOf(begin(i)), bytesOf(length(i))};
  return exchange(parts.data(), options);
}

Status CommGroup::run(const CollectiveCall &call, const void *x, void *y, const CommOptions &options) {
  if (call.root < 0 || call.root >= size())
    return valueError("there is no rank " + std::to_string(call.root) + "; there are " + std::to_string(size()));
  if (Status status = agree(call, options); !status.ok())
    return status;
  int64_t bytes = call.count * static_cast<int64_t>(sizeOf(call.dtype)), n = size();
  std::vector<wg_comm_part> parts(static_cast<size_t>(n));
  switch (call.kind) {
  case Collective::sum:
  case Collective::mean:
  case Collective::max: return sum(call, x, y, options);
  case Collective::all_gather:
    for (int64_t i = 0; i < n; ++i)
      parts[static_cast<size_t>(i)] = {x, bytes, static_cast<char *>(y) + i * bytes, bytes};
    return exchange(parts.data(), options);
  case Collective::reduce_scatter: {
    Array rows = Array::empty(DType::u8, {n * bytes});
    char *scratch = static_cast<char *>(rows.buffer.data());
    for (int64_t i = 0; i < n; ++i)
      parts[static_cast<size_t>(i)] = {static_cast<const char *>(x) + i * bytes, bytes, scratch + i * bytes, bytes};
    if (Status status = exchange(parts.data(), options); !status.ok())
      return status;
    CollectiveCall sum = call;
    sum.kind = Collective::sum;
    if (Status status = sumRows(sum, scratch, n, call.count, call.count); !status.ok())
      return status;
    std::memcpy(y, scratch, static_cast<size_t>(bytes));
    return {};
  }
  case Collective::broadcast: {
    // Over a tree: who has it sends it to the rank that is twice as far from the root.
    int64_t place = (rank() - call.root + n) % n;
    if (place == 0)
      std::memcpy(y, x, static_cast<size_t>(bytes));
    int64_t step = 1;
    while (step < n)
      step *= 2;
    for (bool has = place == 0; step > 0; step /= 2) {
      std::fill(parts.begin(), parts.end(), wg_comm_part{});
      if (has && place + step < n && place % (2 * step) == 0)
        parts[static_cast<size_t>((place + step + call.root) % n)] = {y, bytes, nullptr, 0};
      if (!has && place % (2 * step) == step) {
        parts[static_cast<size_t>((place - step + call.root) % n)] = {nullptr, 0, y, bytes};
        has = true;
      }
      if (Status status = exchange(parts.data(), options); !status.ok())
        return status;
    }
    return {};
  }
  case Collective::reduce: {
    CollectiveCall all = call;
    all.kind = Collective::sum;
    if (Status status = sum(all, x, y, options); !status.ok())
      return status;
    if (rank() != call.root)
      std::memset(y, 0, static_cast<size_t>(bytes));
    return {};
  }
  case Collective::barrier: {
    std::vector<char> all(static_cast<size_t>(n));
    char mine = 0;
    return gather(&mine, all.data(), 1, options);
  }
  case Collective::step:
  case Collective::together: break; // are met by meet() and begin()
  }
  return {};
}

//===- Ranks ------------------------------------------------------------------------------------------------------===//

volatile std::sig_atomic_t terminationAsked = 0;
static thread_local Ranks *ownRanks = nullptr;
static std::atomic<Ranks *> processRanks = nullptr;

static Ranks &alone() {
  static Ranks &ranks = *[] { // never destroyed
    static ThreadWorld &world = *new ThreadWorld(1);
    auto made = new Ranks;
    made->groups.emplace_back(world.rank(0));
    return made;
  }();
  return ranks;
}

Ranks &ranks() {
  if (ownRanks)
    return *ownRanks;
  Ranks *process = processRanks.load(std::memory_order_acquire);
  return process ? *process : alone();
}

bool isAlone() { return !ownRanks && !processRanks.load(std::memory_order_acquire); }

RankScope::RankScope(Ranks &ranks) : before_(std::exchange(ownRanks, &ranks)) {}
RankScope::~RankScope() { ownRanks = before_; }

void setProcessRanks(std::unique_ptr<Ranks> ranks) { processRanks.store(ranks.release(), std::memory_order_release); }

int32_t runCollective(void *const *pointers, const int64_t *numbers, void *) {
  Status status;
  try {
    Ranks &own = ranks();
    CollectiveCall call{static_cast<Collective>(numbers[0]), static_cast<DType>(numbers[1]), numbers[2],
                        static_cast<int32_t>(numbers[3])};
    int64_t group = numbers[4], tracedFor = numbers[5];
    if (group == kShardGroup) {
      status = valueError("shards are summed by a data parallel step only", "call the step itself");
    } else if (group < 0 || group >= std::ssize(own.groups)) {
      status = valueError("this rank has no group " + std::to_string(group));
    } else {
      CommGroup &here = own.groups[static_cast<size_t>(group)];
      if (tracedFor && tracedFor != here.size())
        status = valueError("it was traced for " + std::to_string(tracedFor) + " ranks, and there are " +
                                std::to_string(here.size()),
                            "trace it again, or start as many");
      else
        status = here.run(call, pointers[0], pointers[1], own.options);
      if (!status.ok())
        status.failure().op = kCollectives[static_cast<size_t>(numbers[0])];
    }
  } catch (const std::exception &exception) {
    status = valueError(exception.what());
  }
  if (status.ok())
    return 0;
  setHostFailure(status.take());
  return 1;
}

[[maybe_unused]] static const bool added = (addRoutine({kCollectiveCall, runCollective}), true);

} // namespace wg::runtime
