// A compile that takes long says so, on standard error alone.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

using namespace wg;
using wg::tests::matrix;
using wg::tests::says;

// Read once, at the first compile: every one takes longer than no time.
static const int kSet = setenv("WENGERT_HINT_SECONDS", "0", 1);

TEST(CompileHintTest, SaysWhatIsCompiledForWhichCallAndWhereItIs) {
  ASSERT_EQ(kSet, 0);
  auto f = wg::function("layers", [](const Tensor &x, const Tensor &w) {
    Tensor h = x;
    for (int i = 1; i < 40; ++i)
      h = sin(matmul(h, w) * double(i)); // each a kernel of its own
    return h;
  });
  Tensor x = matrix(5, 7), w = matrix(7, 7);
  testing::internal::CaptureStderr();
  uint32_t line = __LINE__ + 1;
  f(x, w);
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(says(text, "wengert: compiling 'layers' (")) << text;
  EXPECT_TRUE(says(text, "CompileHintTest.cpp:" + std::to_string(line))) << text;
  EXPECT_TRUE(says(text, " has taken 0.0 s; it is at stage ")) << text;
  testing::internal::CaptureStderr();
  f(x, w);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

/// In a process of its own: a small program is compiled and run by the thread that calls it.
TEST(CompileHintTest, SmallProgramsStartNoThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("WENGERT_NUM_THREADS", "8", 1); // what set_num_threads sets, it starts
        wg::function("f", [](const Tensor &x) { return reduce_sum(exp(x), 0) + matmul(x, x); })(matrix(7, 7));
        auto threads = std::filesystem::directory_iterator("/proc/self/task");
        std::exit(std::distance(begin(threads), end(threads)) == 1 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}
