// triangular_solve: against substitution, what it does not read, broadcasting, open sizes, lanes, bits, and C programs.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <unistd.h>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

using Options = TriangularSolveOptions;

std::vector<Options> allOptions() {
  std::vector<Options> all;
  for (int i = 0; i < 8; ++i)
    all.push_back({.lower = (i & 1) != 0, .transpose = (i & 2) != 0, .unit_diagonal = (i & 4) != 0});
  return all;
}
std::string nameOf(const Options &o) {
  return std::string(o.lower ? "lower" : "upper") + (o.transpose ? ", transposed" : "") +
         (o.unit_diagonal ? ", unit diagonal" : "");
}

/// [batch, n, n]: small numbers in the triangle, 1 to 2 on the diagonal, and `other` wherever it is not read.
Tensor triangle(int64_t batch, int64_t n, const Options &o, DType dtype, double other) {
  std::vector<double> values;
  for (int64_t i = 0; i < batch * n * n; ++i) {
    int64_t row = i / n % n, column = i % n;
    double noise = std::sin(static_cast<double>(i * i % 1009));
    bool read = row == column ? !o.unit_diagonal : (row > column) == o.lower;
    values.push_back(!read ? other : row == column ? 1.5 + noise / 2 : noise / static_cast<double>(n));
  }
  return cast(Tensor::from(values, {batch, n, n}), dtype);
}
Tensor rightSide(int64_t batch, int64_t n, int64_t k, DType dtype) {
  return cast(reshape(sin(cast(arange(batch * n * k), f64) * 1.7), {batch, n, k}), dtype);
}

/// op(a) x = b by the definition, in long double.
std::vector<double> substituted(const Tensor &a, const Tensor &b, const Options &o) {
  int64_t batch = b.dim(0), n = b.dim(1), k = b.dim(2);
  std::vector<double> as = cast(a, f64).to_vector<double>(), bs = cast(b, f64).to_vector<double>();
  std::vector<double> result(bs.size());
  bool down = o.lower != o.transpose;
  for (int64_t z = 0; z < batch; ++z)
    for (int64_t c = 0; c < k; ++c) {
      std::vector<long double> x(static_cast<size_t>(n));
      for (int64_t p = 0; p < n; ++p) {
        int64_t i = down ? p : n - 1 - p;
        auto at = [&](int64_t row, int64_t column) {
          return static_cast<long double>(
              as[static_cast<size_t>(z * n * n + (o.transpose ? column * n + row : row * n + column))]);
        };
        long double sum = bs[static_cast<size_t>((z * n + i) * k + c)];
        for (int64_t q = 0; q < p; ++q) {
          int64_t j = down ? q : n - 1 - q;
          sum -= at(i, j) * x[static_cast<size_t>(j)];
        }
        x[static_cast<size_t>(i)] = o.unit_diagonal ? sum : sum / at(i, i);
        result[static_cast<size_t>((z * n + i) * k + c)] = static_cast<double>(x[static_cast<size_t>(i)]);
      }
    }
  return result;
}

bool sameBits(const Tensor &a, const Tensor &b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype())
    return false;
  auto bytesOf = [](const Tensor &x) {
    return x.dtype() == f64 ? std::as_bytes(x.data<double>()) : std::as_bytes(x.data<float>());
  };
  auto x = bytesOf(a), y = bytesOf(b);
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0);
}

const double kNan = std::numeric_limits<double>::quiet_NaN();

} // namespace

TEST(TriangularSolveTest, IsSubstitutionAndReadsNothingElse) {
  for (DType dtype : {f64, f32})
    for (const Options &o : allOptions())
      for (int64_t n : {1, 2, 5, 9, 200})
        for (int64_t k : {1, 3, 4, 17, 40}) {
          Tensor a = triangle(2, n, o, dtype, kNan), b = rightSide(2, n, k, dtype);
          std::vector<double> found = cast(triangular_solve(a, b, o), f64).to_vector<double>();
          std::vector<double> wanted = substituted(a, b, o);
          double tolerance = (dtype == f64 ? 1e-15 : 1e-6) * static_cast<double>(4 + n);
          for (size_t i = 0; i < wanted.size(); ++i)
            ASSERT_NEAR(found[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i])))
                << nameOf(o) << ", n " << n << ", k " << k << ", element " << i;
        }
}

TEST(TriangularSolveTest, TheProductIsTheRightSide) {
  for (const Options &o : allOptions()) {
    Tensor a = triangle(3, 50, o, f64, 0), b = rightSide(3, 50, 7, f64);
    if (o.unit_diagonal)
      a = a + eye(50, {}, f64);
    expectNear(matmul(a, triangular_solve(a, b, o), {.transpose_a = o.transpose}), b);
  }
}

TEST(TriangularSolveTest, AColumnHasTheSameBitsAloneTransposedAndCompiled) {
  for (DType dtype : {f64, f32})
    for (const Options &o : allOptions()) {
      Tensor a = triangle(2, 37, o, dtype, kNan), b = rightSide(2, 37, 45, dtype), x = triangular_solve(a, b, o);
      Options flipped{.lower = !o.lower, .transpose = !o.transpose, .unit_diagonal = o.unit_diagonal};
      EXPECT_TRUE(sameBits(triangular_solve(transpose(a, {0, 2, 1}), b, flipped), x)) << nameOf(o);
      for (int64_t column : {0, 20, 44})
        EXPECT_TRUE(sameBits(triangular_solve(slice(a, {1}, {2}), slice(b, {1, 0, column}, {2, 37, column + 1}), o),
                             slice(x, {1, 0, column}, {2, 37, column + 1})))
            << nameOf(o) << ", column " << column;
      auto traced = wg::function("solve", [&](const Tensor &a, const Tensor &b) { return triangular_solve(a, b, o); });
      EXPECT_TRUE(sameBits(traced(a, b), x)) << nameOf(o);
      EXPECT_TRUE(says(traced.report(), "(external): triangular_solve")) << traced.report();
    }
}

TEST(TriangularSolveTest, EmptyOnesAreEmpty) {
  EXPECT_EQ(triangular_solve(zeros({0, 0}), zeros({0, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(triangular_solve(zeros({3, 3}), zeros({3, 0})).shape(), (Shape{3, 0}));
  EXPECT_EQ(triangular_solve(zeros({0, 3, 3}), zeros({0, 3, 2})).shape(), (Shape{0, 3, 2}));
  auto traced = wg::function("solve", [](const Tensor &a, const Tensor &b) { return triangular_solve(a, b); });
  EXPECT_EQ(traced(zeros({0, 0}), zeros({0, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(traced(zeros({0, 3, 3}), zeros({0, 3, 2})).shape(), (Shape{0, 3, 2}));
}

TEST(TriangularSolveTest, AZeroOnTheDiagonalDivides) {
  Tensor x = triangular_solve(Tensor({{0.0, 7.0}, {1.0, 1.0}}), Tensor({{1.0}, {1.0}}));
  EXPECT_EQ(x.to_vector<double>()[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(x.to_vector<double>()[1], -std::numeric_limits<double>::infinity());
}

TEST(TriangularSolveTest, AxesInFrontBroadcast) {
  Options o{.lower = false};
  Tensor a = triangle(6, 4, o, f64, kNan), b = rightSide(6, 4, 3, f64);
  Tensor wide = triangular_solve(reshape(a, {2, 3, 4, 4}), reshape(b, {2, 3, 4, 3}), o);
  EXPECT_TRUE(sameBits(reshape(wide, {6, 4, 3}), triangular_solve(a, b, o)));
  Tensor one = reshape(slice(a, {4}, {5}), {4, 4}), single = reshape(slice(b, {2}, {3}), {4, 3});
  EXPECT_TRUE(sameBits(triangular_solve(one, b, o), triangular_solve(broadcast_to(one, {6, 4, 4}), b, o)));
  EXPECT_TRUE(sameBits(triangular_solve(a, single, o), triangular_solve(a, broadcast_to(single, {6, 4, 3}), o)));
  Tensor both = triangular_solve(reshape(slice(a, {0}, {2}), {2, 1, 4, 4}), slice(b, {0}, {3}), o);
  EXPECT_EQ(both.shape(), (Shape{2, 3, 4, 3}));
  EXPECT_TRUE(sameBits(both[1][2], triangular_solve(a[1], b[2], o)));
}

TEST(TriangularSolveTest, ErrorsNameTheShapesAndTheLine) {
  std::string text = messageOf([] { triangular_solve(zeros({3, 4}), zeros({3, 1})); });
  EXPECT_TRUE(says(text, "triangular_solve: a is not square: f32[3,4] (3 != 4)")) << text;
  EXPECT_TRUE(says(text, "TriangularSolveTest.cpp:")) << text;
  text = messageOf([] { triangular_solve(zeros({3, 3}), zeros({4, 1})); });
  EXPECT_TRUE(says(text, "sizes differ: a is f32[3,3], b is f32[4,1] (3 != 4)")) << text;
  text = messageOf([] { triangular_solve(zeros({2, 3, 3}), zeros({5, 3, 1})); });
  EXPECT_TRUE(says(text, "shapes do not broadcast: f32[2,3,3], f32[5,3,1] (2 != 5)")) << text;
  text = messageOf([] { triangular_solve(zeros({3, 3}), zeros({3})); });
  EXPECT_TRUE(says(text, "expand_dims(b, -1)")) << text;
  text = messageOf([] { triangular_solve(zeros({3, 3}), zeros({3, 1}, f64)); });
  EXPECT_TRUE(says(text, "dtypes differ")) << text;
  text = messageOf([] { triangular_solve(zeros({3, 3}, i32), zeros({3, 1}, i32)); });
  EXPECT_TRUE(says(text, "takes a float")) << text;
}

TEST(TriangularSolveTest, WhatIsNotReadHasTheGradientZero) {
  for (const Options &o : allOptions()) {
    Tensor a = triangle(2, 5, o, f64, kNan), clean = triangle(2, 5, o, f64, 0), b = rightSide(2, 5, 3, f64);
    auto gradient = [&](const Tensor &a) {
      GradientTape tape;
      tape.watch(a);
      return tape.gradient(reduce_sum(square(triangular_solve(a, b, o))), a).value();
    };
    Tensor found = gradient(a);
    EXPECT_TRUE(sameBits(found, gradient(clean))) << nameOf(o);
    std::vector<double> values = found.to_vector<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      size_t row = i / 5 % 5, column = i % 5;
      bool read = row == column ? !o.unit_diagonal : (row > column) == o.lower;
      EXPECT_EQ(read, values[i] != 0) << nameOf(o) << ", element " << i << ": " << values[i];
      EXPECT_FALSE(!read && std::signbit(values[i]));
    }
  }
}

TEST(TriangularSolveTest, LanesAreALoop) {
  Options o{.lower = true, .transpose = true};
  Tensor as = triangle(4, 6, o, f64, kNan), bs = rightSide(4, 6, 3, f64);
  auto solve = [&](const Tensor &a, const Tensor &b) { return triangular_solve(a, b, o); };
  for (bool traced : {false, true}) {
    auto run = [&](auto f, const auto &...x) { return traced ? wg::function("lanes", f)(x...) : f(x...); };
    Tensor both = run(vmap(solve), as, bs), matrices = run(vmap(solve, {.in_axes = {0, unmapped}}), as, bs[1]),
           columns = run(vmap(solve, {.in_axes = {unmapped, 0}}), as[1], bs);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(sameBits(both[i], solve(as[i], bs[i])));
      EXPECT_TRUE(sameBits(matrices[i], solve(as[i], bs[1])));
      EXPECT_TRUE(sameBits(columns[i], solve(as[1], bs[i])));
    }
  }
}

TEST(TriangularSolveTest, OpenSizesAreKnownWhenItRuns) {
  auto f = [](const Tensor &a, const Tensor &b) {
    GradientTape tape;
    tape.watch(a);
    tape.watch(b);
    Tensor x = triangular_solve(a, b);
    auto [da, db] = tape.gradient(reduce_sum(square(x)), a, b);
    return std::vector<Tensor>{x, da.value(), db.value()};
  };
  for (bool interpret : {true, false}) {
    ConcreteFunction open =
        wg::function("open", f, {.interpret = interpret})
            .trace(TensorSpec{f64, {dynamic, dynamic}}, TensorSpec{f64, {dynamic, dynamic, dynamic}});
    for (int64_t n : {1, 4, 7}) {
      Tensor a = triangle(1, n, {}, f64, kNan)[0], b = rightSide(3, n, 2, f64);
      std::vector<Tensor> found = open(a, b), wanted = f(a, b);
      for (size_t i = 0; i < 3; ++i)
        expectNear(found[i], wanted[i]);
    }
    std::string text = messageOf([&] { open(zeros({3, 4}, f64), zeros({2, 3, 1}, f64)); });
    EXPECT_TRUE(says(text, "not square") || says(text, "3 != 4") || says(text, "has size")) << text;
  }
}

/// b is not read again: x is computed in its memory. With results of both, it is not.
TEST(TriangularSolveTest, TheRightSideIsOverwrittenOnlyWhereNobodyReadsIt) {
  Tensor a = triangle(1, 20, {}, f32, kNan)[0], b = rightSide(1, 20, 9, f32)[0];
  auto alone = wg::function("alone", [](const Tensor &a, const Tensor &b) { return exp(triangular_solve(a, b * 2)); });
  auto kept = wg::function("kept", [](const Tensor &a, const Tensor &b) {
    Tensor twice = b * 2;
    return std::pair(exp(triangular_solve(a, twice)), matmul(a * 0 + 1, twice));
  });
  Tensor x = exp(triangular_solve(a, b * 2));
  expectNear(cast(alone(a, b), f64), cast(x, f64), 1e-6);
  expectNear(cast(kept(a, b).first, f64), cast(x, f64), 1e-6);
  Variable v(b);
  auto update = wg::function("update", [&](const Tensor &a) { v.assign(triangular_solve(a, v)); });
  update(a);
  EXPECT_TRUE(sameBits(v.value(), triangular_solve(a, b)));
}

namespace {
const char kProgram[] = R"(
#include "solve.h"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  FILE *file = fopen(argv[1], "rb");
  void *args[SOLVE_NUM_ARGS];
  void *workspace = aligned_alloc(64, (SOLVE_WORKSPACE_BYTES + 63) / 64 * 64);
  size_t sizes[] = {SOLVE_ARG0_ELEMENTS, SOLVE_ARG1_ELEMENTS, SOLVE_ARG2_ELEMENTS, SOLVE_ARG3_ELEMENTS};
  for (int i = 0; i < SOLVE_NUM_ARGS; ++i) {
    args[i] = malloc(sizes[i] * sizeof(double));
    if (i < 2 && fread(args[i], sizeof(double), sizes[i], file) != sizes[i])
      return 2;
  }
  if (solve(args, 0, workspace))
    return 3;
  for (int i = 2; i < SOLVE_NUM_ARGS; ++i)
    fwrite(args[i], sizeof(double), sizes[i], stdout);
  return 0;
}
)";
} // namespace

TEST(TriangularSolveTest, ACProgramHasTheSameBits) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / ("wengert_solve_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  // The solve, and a gradient: two routines, in one object.
  auto f = wg::function("solve", [](const Tensor &a, const Tensor &b) {
    GradientTape tape;
    tape.watch(b);
    Tensor x = triangular_solve(a, b, {.lower = false});
    return std::pair(x, tape.gradient(x, b).value());
  });
  Tensor a = triangle(2, 23, {.lower = false}, f64, kNan), b = rightSide(2, 23, 19, f64);
  auto [x, db] = f(a, b);
  f.trace(a, b).write_object(folder.string(), {.name = "solve", .cpu = "native"});
  std::ofstream(folder / "main.c") << kProgram;
  std::ofstream in(folder / "in", std::ios::binary);
  for (const Tensor &each : {a, b})
    in.write(reinterpret_cast<const char *>(each.data<double>().data()),
             static_cast<std::streamsize>(each.data<double>().size_bytes()));
  in.close();
  std::ifstream header(folder / "solve.h");
  std::string text((std::istreambuf_iterator<char>(header)), {});
  EXPECT_TRUE(says(text, "Link with libwengert_rt.a")) << text;
  std::string at = folder.string(), link = "cc -O1 -Wall -Werror -I" + at + " " + at + "/main.c " + at + "/solve.o ";
  EXPECT_NE(std::system((link + "-lm -o " + at + "/main 2> " + at + "/errors").c_str()), 0) << "it needs the library";
  ASSERT_EQ(std::system((link + WENGERT_BINARY_DIR "/lib/libwengert_rt.a -lm -o " + at + "/main").c_str()), 0);
  ASSERT_EQ(std::system((at + "/main " + at + "/in > " + at + "/out").c_str()), 0);
  std::ifstream out(folder / "out", std::ios::binary);
  for (const Tensor &each : {x, db}) {
    std::vector<double> found(each.data<double>().size());
    out.read(reinterpret_cast<char *>(found.data()), static_cast<std::streamsize>(found.size() * sizeof(double)));
    EXPECT_EQ(std::memcmp(found.data(), each.data<double>().data(), found.size() * sizeof(double)), 0);
  }
  fs::remove_all(folder);
}
