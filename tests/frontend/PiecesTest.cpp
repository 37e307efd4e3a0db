// Gradients of what is taken apart: parts side by side become one tensor, whatever else is read beside them.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::matrix;

static int64_t countOf(const std::string &text, const std::string &part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

/// The gradient of f by x, eager, traced and compiled; checked against differences. Returns the simplified program.
static std::string checked(Tensor (*f)(const Tensor &), const Tensor &x) {
  GradientCheck check = check_gradients(f, x);
  EXPECT_TRUE(check) << check.report;
  auto gradient = [f](const Tensor &x) { return grad(f)(x).value(); };
  auto compiled = wg::function("gradient", gradient);
  expectNear(compiled(x), gradient(x));
  return compiled.trace(x).text(Stage::simplified);
}
static Tensor weighed(const Tensor &x, double by) { return reduce_sum(sin(x * by)); }

TEST(PiecesTest, AllPartsOfASplitAreOneConcat) {
  auto f = [](const Tensor &x) {
    Tensor sum(0.0);
    double by = 1;
    for (const Tensor &part : split(x, 4, 1))
      sum = sum + weighed(part, by++);
    return sum;
  };
  std::string text = checked(f, matrix(3, 8));
  EXPECT_EQ(countOf(text, "wg.concat"), 1) << text;
  EXPECT_EQ(countOf(text, "wg.pad"), 0) << text;
}

TEST(PiecesTest, PartsOfAGridAreJoinedAlongBothAxes) {
  auto f = [](const Tensor &x) {
    Tensor sum(0.0);
    for (int64_t i = 2; i >= 0; --i)
      for (int64_t j = 0; j < 4; ++j)
        sum = sum + sin(x[i][j] * double(1 + i + 3 * j));
    return sum;
  };
  checked(f, matrix(3, 4));
  auto g = [](const Tensor &x) {
    Tensor sum(0.0);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 4; ++j)
        sum = sum + weighed(x[{Slice(2 * i, 2 * i + 2), Slice(j, j + 1)}], double(1 + i + 3 * j));
    return sum;
  };
  std::string text = checked(g, matrix(6, 4));
  EXPECT_EQ(countOf(text, "wg.pad"), 0) << text;
}

TEST(PiecesTest, WhatIsMissingStaysZero) {
  auto f = [](const Tensor &x) {
    return weighed(x[{Slice(1, 3)}], 1) + weighed(x[{Slice(3, 4)}], 2) + weighed(x[{Slice(6, 7)}], 3);
  };
  std::string text = checked(f, matrix(8, 3));
  EXPECT_EQ(countOf(text, "wg.concat"), 1) << text;
  EXPECT_EQ(countOf(text, "wg.pad"), 2) << text;
  std::vector<double> g = grad(+f)(matrix(8, 3)).value().to_vector<double>();
  for (int64_t row : {0, 4, 5, 7})
    for (int64_t column = 0; column < 3; ++column)
      EXPECT_EQ(g[static_cast<size_t>(row * 3 + column)], 0);
}

TEST(PiecesTest, PartsMayOverlapAndRepeat) {
  auto f = [](const Tensor &x) {
    return weighed(x[{Slice(0, 4)}], 1) + weighed(x[{Slice(0, 4)}], 2) + weighed(x[{Slice(2, 6)}], 3) +
           weighed(x[{Slice(4, 8)}], 4) + weighed(x[{Slice(4, 8)}], 5) + weighed(x[{Slice(3, 3)}], 6);
  };
  checked(f, matrix(8, 3));
}

TEST(PiecesTest, TheWholeAndStepsAreReadBesideThem) {
  auto f = [](const Tensor &x) {
    return weighed(x, 0.5) + weighed(x[{Slice(0, 5)}], 1) + weighed(x[{Slice(0, 8, 2)}], 2) +
           weighed(x[{Slice(5, 8)}], 3) + weighed(x[{Slice(), Slice(1, 2)}], 4) + weighed(x[{Slice(), Slice(0, 1)}], 5);
  };
  checked(f, matrix(8, 3));
}

TEST(PiecesTest, PartsOfCalledFunctionsAndSecondOrder) {
  auto f = [](const Tensor &x) {
    static auto inner = wg::function("inner", [](const Tensor &x) {
      auto parts = split(x, 2, 0);
      return sin(parts[0]) * parts[1];
    });
    return reduce_sum(inner(x) * inner(x * 2.0));
  };
  checked(f, matrix(4, 3));
  Tensor x = matrix(4, 3);
  auto g = [](const Tensor &x) {
    auto parts = split(x, 2, 0);
    return reduce_sum(sin(parts[0]) * parts[1] * parts[1]);
  };
  auto compiled = wg::function("h", hessian(g));
  expectNear(compiled(x), hessian(g)(x));
}

TEST(PiecesTest, OpenSizesAreSummedAsBefore) {
  auto f = [](const Tensor &x) { return weighed(x[{Slice(0, 2)}], 1) + weighed(x[{Slice(2, 6)}], 2); };
  auto gradient = wg::function("gradient", [&](const Tensor &x) { return grad(+f)(x).value(); });
  gradient.trace(Tensor(TensorSpec{f64, {dynamic, 3}}));
  expectNear(gradient(matrix(8, 3)), grad(+f)(matrix(8, 3)).value());
  EXPECT_EQ(gradient.trace_count(), 1);
}
