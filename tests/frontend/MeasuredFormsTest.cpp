// Forms of a large product are measured when a function is compiled: the report says so, its text is of the program
// that runs, and the environment turns it off.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cstdlib>

using namespace wg;
using wg::tests::says;

namespace {

constexpr uint32_t kLine = __LINE__ + 4; // of einsum

/// Results in this order are not the fastest to write, and several orders and a transpose are close.
auto product(FunctionOptions options = {}) {
  return wg::function("product", [](const Tensor &a, const Tensor &b) { return einsum("lj,kil->jik", a, b); }, options);
}

Tensor a() { return sin(reshape(arange(0, 22 * 7, 1, f32), {22, 7})); }
Tensor b() { return cos(reshape(arange(0, 497 * 874 * 22, 1, f32), {497, 874, 22})); }

int64_t countOf(const std::string &text, const std::string &part) {
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

} // namespace

TEST(MeasuredFormsTest, TheReportSaysWhatWasMeasuredAndTheTextIsOfWhatRuns) {
  auto f = product();
  Tensor c = f(a(), b());
  std::string report = f.report();
  EXPECT_TRUE(says(report, "  product lj,kil->jik l=22 j=7 k=497 i=874, f32, at MeasuredFormsTest.cpp:" +
                               std::to_string(kLine)))
      << report;
  EXPECT_TRUE(says(report, " measured; the one that is used ")) << report;
  ConcreteFunction concrete = f.trace(a(), b());
  EXPECT_EQ(countOf(concrete.text(Stage::fused), "wg.kernel "), static_cast<int64_t>(concrete.kernels().size()))
      << concrete.text(Stage::fused);
  Tensor expected = product({.interpret = true})(a(), b());
  EXPECT_LE(reduce_max(abs(c - expected)).item<float>(), 1e-5f);
}

TEST(MeasuredFormsTest, TheEnvironmentTurnsItOff) {
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // a process of its own, as it is read once
  auto run = [] {
    setenv("WENGERT_MEASURE", "0", 1);
    auto f = product();
    f(a(), b());
    std::exit(says(f.report(), "measured; ") ? 1 : 0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}
