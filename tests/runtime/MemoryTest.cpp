// Buffers, workspaces, threads, printing, messages.
#include "runtime/Arena.h"
#include "runtime/ThreadPool.h"
#include "tests/runtime/Run.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

namespace wg::runtime {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WG_EXACT_BLOCKS 1
#endif
#endif

TEST(BufferTest, AlignedSharedCounted) {
  size_t before = Buffer::liveBytes();
  {
    for (size_t bytes : {size_t(0), size_t(1), size_t(64), size_t(65), size_t(4096), size_t(4097), size_t(65536),
                         size_t(65537), size_t(5) << 20}) {
      Buffer a = Buffer::allocate(bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u) << bytes;
      EXPECT_EQ(a.size(), bytes);
      EXPECT_EQ(Buffer::liveBytes(), before + bytes);
      std::memset(a.data(), 1, bytes);
      EXPECT_TRUE(a.unique());
      Buffer b = a;
      EXPECT_FALSE(a.unique());
      EXPECT_EQ(a, b);
      a = Buffer();
      EXPECT_TRUE(b.unique());
    }
  }
  EXPECT_EQ(Buffer::liveBytes(), before);
  EXPECT_FALSE(Buffer());
  EXPECT_EQ(Buffer().data(), nullptr);
}

TEST(BufferTest, MemoryOfOthersIsNeverUniqueAndIsReleasedOnce) {
  size_t before = Buffer::liveBytes();
  int released = 0;
  const float values[3] = {1, 2, 3};
  Buffer a =
      Buffer::refer(values, sizeof values, [](void *owner) noexcept { ++*static_cast<int *>(owner); }, &released);
  EXPECT_EQ(a.data(), values);
  EXPECT_EQ(a.size(), sizeof values);
  EXPECT_FALSE(a.unique());
  EXPECT_EQ(Buffer::liveBytes(), before) << "others count their own";
  Buffer b = a;
  a = Buffer();
  EXPECT_FALSE(b.unique());
  EXPECT_EQ(released, 0);
  b = Buffer();
  EXPECT_EQ(released, 1);
  EXPECT_EQ(Buffer::liveBytes(), before);
  EXPECT_TRUE(Buffer::refer(nullptr, 0, [](void *) noexcept {}, nullptr)) << "a block, if one without bytes";
}

TEST(BufferTest, FreedBlocksComeBack) {
#ifdef WG_EXACT_BLOCKS
  GTEST_SKIP() << "skipped: under AddressSanitizer every block is fresh";
#endif
  for (size_t bytes : {size_t(0), size_t(4), size_t(64), size_t(1000), size_t(4096), size_t(4097), size_t(8192),
                       size_t(8193), size_t(50'000), size_t(64) << 10, size_t(100) << 10, size_t(16) << 20}) {
    void *first = Buffer::allocate(bytes).data();
    EXPECT_EQ(Buffer::allocate(bytes).data(), first) << bytes;
  }
  Buffer::trim();
}

TEST(BufferTest, SmallBlocksHoldWhatIsAskedFor) {
  // Two sizes of one class share blocks; sizes on either side of a class's end must not.
  for (size_t bytes = 1; bytes <= size_t(70) << 10; bytes += bytes < 6000 ? 1 : 509) {
    {
      Buffer block = Buffer::allocate(bytes);
      std::memset(block.data(), 1, bytes);
    }
    Buffer larger = Buffer::allocate(bytes + 1);
    std::memset(larger.data(), 2, bytes + 1);
    Buffer other = Buffer::allocate(bytes);
    std::memset(other.data(), 3, bytes);
    const auto *data = static_cast<const unsigned char *>(larger.data());
    ASSERT_TRUE(std::all_of(data, data + bytes + 1, [](unsigned char byte) { return byte == 2; })) << bytes;
  }
  Buffer::trim();
}

TEST(BufferTest, AThreadKeepsABoundedAmount) {
#ifdef WG_EXACT_BLOCKS
  GTEST_SKIP() << "skipped: under AddressSanitizer every block is fresh";
#endif
  Buffer::trim();
  size_t before = mallinfo2().uordblks;
  for (size_t bytes : {size_t(100), size_t(8) << 10, size_t(60) << 10}) {
    std::vector<Buffer> buffers((size_t(64) << 20) / bytes);
    for (Buffer &buffer : buffers)
      buffer = Buffer::allocate(bytes);
    buffers.clear();
    buffers.shrink_to_fit();
    EXPECT_LE(mallinfo2().uordblks, before + (size_t(9) << 20)) << bytes;
  }
  Buffer::trim();
  EXPECT_LE(mallinfo2().uordblks, before + (size_t(1) << 16));
}

TEST(BufferTest, HugePagesFromFourMegabytes) {
#ifdef WG_EXACT_BLOCKS
  GTEST_SKIP() << "skipped: under AddressSanitizer blocks come from malloc";
#endif
  EXPECT_EQ(reinterpret_cast<uintptr_t>(Buffer::allocate(size_t(4) << 20).data()) % (size_t(2) << 20), 0u);
}

TEST(BufferTest, TooMuchThrows) {
  EXPECT_THROW(Buffer::allocate(~size_t(0)), std::bad_alloc);
  EXPECT_THROW(Buffer::allocate(size_t(1) << 50), std::bad_alloc);
}

TEST(BufferTest, BlocksTravelBetweenThreads) {
  size_t before = Buffer::liveBytes();
  std::vector<Buffer> buffers(1000);
  std::thread([&] {
    for (Buffer &buffer : buffers)
      buffer = Buffer::allocate(100);
  }).join();
  EXPECT_EQ(Buffer::liveBytes(), before + 100'000);
  std::thread([&] {
    buffers.resize(500);
    EXPECT_EQ(Buffer::liveBytes(), before + 50'000) << "what this thread freed was made by another";
    buffers.clear();
  }).join();
  EXPECT_EQ(Buffer::liveBytes(), before);
}

/// The child has none of the parent's threads, whose memory its own get.
TEST(BufferTest, AForkedProcessCountsAndFrees) {
  size_t before = Buffer::liveBytes();
  std::vector<Buffer> made(8);
  std::vector<std::thread> others;
  std::mutex mutex;
  std::unique_lock untilEnd(mutex);
  std::atomic<int> ready = 0;
  for (Buffer &buffer : made)
    others.emplace_back([&] {
      buffer = Buffer::allocate(1000);
      ++ready;
      std::lock_guard wait(mutex);
    });
  while (ready < 8)
    std::this_thread::yield();
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20); // a list that goes round would never end
    auto check = [&](size_t expected) {
      if (Buffer::liveBytes() != expected)
        ::_exit(1);
    };
    check(before + 8000);
    for (int round = 0; round < 3; ++round) {
      std::vector<std::thread> own;
      for (int i = 0; i < 12; ++i)
        own.emplace_back([i] {
          if (i % 2)
            Buffer::allocate(100);
        });
      Buffer::liveBytes(); // while they come and go
      for (std::thread &thread : own)
        thread.join();
      check(before + 8000);
    }
    made.clear();
    check(before);
    std::thread([&] { made.push_back(Buffer::allocate(10)); }).join();
    check(before + 10);
    made.clear();
#ifdef WG_EXACT_BLOCKS
    ::_exit(0); // to a leak checker, what threads had that are gone is lost
#else
    std::exit(0);
#endif
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  untilEnd.unlock();
  for (std::thread &other : others)
    other.join();
  made.clear();
  EXPECT_EQ(Buffer::liveBytes(), before);
}

TEST(WorkspaceTest, ComesFromTheFreeList) {
  void *first;
  {
    Workspace workspace = acquireWorkspace(100000);
    first = workspace.data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    EXPECT_NE(acquireWorkspace(100000).data(), first) << "one call at a time";
  }
  bool again = false;
  std::vector<Workspace> held;
  for (int i = 0; i < 2; ++i) {
    held.push_back(acquireWorkspace(90000));
    again |= held.back().data() == first;
  }
  EXPECT_TRUE(again);
  held.clear();
  trimWorkspaces();
}

TEST(ThreadPoolTest, EveryIndexOnce) {
  int before = numThreads();
  for (int threads : {1, 2, 4}) {
    setNumThreads(threads);
    EXPECT_EQ(numThreads(), threads);
    for (int64_t count : {0, 1, 2, 3, 100, 10000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      parallelFor(count, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
      for (const std::atomic<int> &times : seen)
        EXPECT_EQ(times, 1);
    }
  }
  setNumThreads(before);
}

TEST(ThreadPoolTest, LoopsInLoopsAndFromManyThreads) {
  int before = numThreads();
  setNumThreads(3);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        parallelFor(10, [&](int64_t) { parallelFor(10, [&](int64_t j) { sum += j; }); });
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(sum, 4 * 50 * 10 * 45);
  setNumThreads(before);
}

TEST(ThreadPoolTest, UsesSeveralThreads) {
  int before = numThreads();
  setNumThreads(2);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  for (int round = 0; round < 200 && ids.size() < 2; ++round)
    parallelFor(2, [&](int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
  EXPECT_EQ(ids.size(), 2u);
  setNumThreads(before);
}

TEST(ArrayTest, PrintsNested) {
  EXPECT_EQ(toString(arr<int64_t>({1, 2, 3, 4}, {2, 2})), "[[1, 2], [3, 4]]");
  EXPECT_EQ(toString(vec<float>({1, 0.1f, -0.0f, 1e20f, NAN, -INFINITY})), "[1.0, 0.1, -0.0, 1e+20, nan, -inf]");
  EXPECT_EQ(toString(Array::scalar(true)), "true");
  EXPECT_EQ(toString(Array::zeros(DType::f32, {0})), "[]");
  EXPECT_EQ(toString(Array::zeros(DType::u8, {1001})), "[0, 0, 0, ..., 0, 0, 0]");
  Array half = Array::zeros(DType::f16, {3});
  half.data<uint16_t>()[0] = 0x3c00;
  half.data<uint16_t>()[1] = 0xc100;
  half.data<uint16_t>()[2] = 1;
  EXPECT_EQ(toString(half), "[1.0, -2.5, 5.9604645e-08]");
}

TEST(ArrayTest, TypesPrint) {
  EXPECT_EQ(toString(TensorType{DType::f32, {2, kDynamic}}), "f32[2,?]");
  EXPECT_EQ(toString(Shape{5}), "(5,)");
  EXPECT_EQ(toString(Shape{}), "()");
  EXPECT_EQ(parseDType("float32"), DType::f32);
  EXPECT_EQ(parseDType("bool"), DType::boolean);
  EXPECT_EQ(parseDType("f8"), std::nullopt);
}

TEST(StatusTest, WhereIsFileLineAndBareName) {
  auto where = [](const char *function) { return toString(Where{"/home/user/src/train.cpp", function, 41, 1}); };
  EXPECT_EQ(where("void train()"), "train.cpp:41 in train");
  EXPECT_EQ(where("wg::Tensor app::Model<float>::step(const Tensor &, int)"), "train.cpp:41 in step");
  EXPECT_EQ(where("auto app::run(int)::(anonymous class)::operator()(const Tensor &) const"), "train.cpp:41 in run");
  EXPECT_EQ(where("int main()::<lambda(const Tensor&)>"), "train.cpp:41 in main");
  EXPECT_EQ(where("void (anonymous namespace)::helper(std::function<void (int)>)"), "train.cpp:41 in helper");
  EXPECT_EQ(where("T f<int>(T) [T = int]"), "train.cpp:41 in f");
  EXPECT_EQ(where("Tensor app::Model::operator()(const Tensor &) const"), "train.cpp:41 in Model");
  EXPECT_EQ(where("Tensor app::Model<int>::operator()(const Tensor &) const [T = int]"), "train.cpp:41 in Model");
  EXPECT_EQ(where("Tensor (anonymous namespace)::Step::operator()(const Tensor &)"), "train.cpp:41 in Step");
  EXPECT_EQ(where("Tensor app::run(int)::Step::operator()(const Tensor &) const"), "train.cpp:41 in Step");
  EXPECT_EQ(where("auto Model::operator()(const Tensor &)::(lambda)::operator()(int) const"), "train.cpp:41 in Model");
  EXPECT_EQ(where("auto (anonymous class)::operator()(const Tensor &) const"), "train.cpp:41 in a lambda");
  EXPECT_EQ(where("app::<lambda(const Tensor&)>"), "train.cpp:41 in a lambda");
  EXPECT_EQ(where("auto app::Model::fit()::(lambda)::operator()(int) const"), "train.cpp:41 in fit");
  EXPECT_EQ(where("Tensor app::operator+(const Tensor &, const Tensor &)"), "train.cpp:41 in operator+");
  EXPECT_EQ(toString(Where{}), "");
  EXPECT_EQ(toString(Failure{.kind = ErrorKind::internal, .op = "mul", .message = "no kernel"}),
            "internal error in wengert (please report): mul: no kernel");
}

} // namespace
} // namespace wg::runtime
