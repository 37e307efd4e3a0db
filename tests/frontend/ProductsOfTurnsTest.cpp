// Products that leave loops, and products of the rows of a table: the values and the gradients of the interpreter,
// which computes turn by turn and row by row, for cells of several kinds, few rows and many; and the awkward places.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <limits>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::gradientsOf;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;
using wg::tests::Tensors;

using Program = std::function<Tensors(const Tensors &)>;

/// The functions that a program's loops run.
static std::string bodiesOf(const std::string &text) {
  size_t at = text.find("func.func private");
  return at == std::string::npos ? "" : text.substr(at);
}

static int64_t countIn(const std::string &text, const std::string &part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

/// The text of the fused program of f, whose values compiled are those of the interpreter.
static std::string expectSame(const Program &f, const Tensors &x, double tolerance = 1e-12) {
  auto interpreted = wg::function("program", f, {.interpret = true});
  auto compiled = wg::function("program", f);
  Tensors wanted = interpreted(x), found = compiled(x);
  EXPECT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    expectNear(found[i], wanted[i], tolerance);
  }
  return compiled.trace(x).text(Stage::fused);
}

static Program gradientOf(const Program &f) {
  return [f](const Tensors &x) { return gradientsOf(f, x); };
}

static Tensor sheets(int64_t count, int64_t rows, int64_t columns, double phase) {
  return reshape(matrix(count * rows, columns, phase), {count, rows, columns});
}

/// x: rows of every turn, weights of a row, weights of the state, a bias. `gates`: 1, or 4 as of an LSTM.
static Program cells(int gates, bool isConcat, bool reversed = false) {
  return [=](const Tensors &x) {
    int64_t batch = x[0].shape()[1], hidden = x[2].shape()[0];
    using State = std::pair<Tensor, Tensor>;
    Tensor weights = concat({x[1], x[2]}, 0);
    auto cell = [&](const State &state, const Tensor &row) {
      Tensor z = isConcat ? matmul(concat({row, state.first}, 1), weights) + x[3]
                          : matmul(row, x[1]) + matmul(state.first, x[2]) + x[3];
      if (gates == 1) {
        Tensor h = tanh(z);
        return std::pair(State(h, state.second), h);
      }
      std::vector<Tensor> gate = split(z, 4, 1);
      Tensor c = sigmoid(gate[1]) * state.second + sigmoid(gate[0]) * tanh(gate[2]);
      Tensor h = sigmoid(gate[3]) * tanh(c);
      return std::pair(State(h, c), h);
    };
    Tensor zero = zeros({batch, hidden}, f64);
    auto [last, hs] = scan(cell, State(zero, zero), x[0], {.reverse = reversed});
    return Tensors{last.first, last.second, hs};
  };
}

static Tensors weightsOf(int gates, int64_t width, int64_t hidden) {
  return {matrix(width, gates * hidden, 1) * 0.1, matrix(hidden, gates * hidden, 2) * 0.1,
          matrix(1, gates * hidden, 3)[0]};
}

TEST(ProductsOfTurnsTest, CellsOfEveryKind) {
  for (int gates : {1, 4})
    for (bool isConcat : {false, true})
      for (int64_t batch : {1, 3, 20})
        for (bool reversed : {false, true}) {
          SCOPED_TRACE(testing::Message() << gates << " gates, " << batch << " rows, " << (isConcat ? "concat" : "sum")
                                          << (reversed ? ", reversed" : ""));
          Program f = cells(gates, isConcat, reversed);
          Tensors x{sheets(6, batch, 72, 0)};
          for (const Tensor &weights : weightsOf(gates, 72, 66))
            x.push_back(weights);
          expectSame(f, x);
          std::string text = expectSame(gradientOf(f), x, 1e-11);
          // Forwards and backwards a turn multiplies the state by its weights. Of twenty rows it multiplies all.
          int64_t products = countIn(bodiesOf(text), "wg.contract");
          if (batch == 3)
            EXPECT_EQ(products, 2);
          if (batch == 20)
            EXPECT_GT(products, 2);
        }
}

TEST(ProductsOfTurnsTest, GradientsAreThoseOfDifferences) {
  Program f = cells(4, true);
  Tensors x{sheets(5, 1, 40, 0)};
  for (const Tensor &weights : weightsOf(4, 40, 33))
    x.push_back(weights);
  auto loss = wg::function("loss", [&](const Tensors &x) { return wg::tests::lossOf(f(x)); });
  auto gradient = wg::function("gradient", gradientOf(f));
  Tensors found = gradient(x);
  for (size_t i = 0; i < x.size(); ++i) {
    SCOPED_TRACE(i);
    Tensor direction = reshape(cos(linspace(0, 9, x[i].size(), f64)), x[i].shape());
    auto at = [&](double step) {
      Tensors moved = x;
      moved[i] = x[i] + step * direction;
      return loss(moved).item<double>();
    };
    double h = 1e-3, slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    EXPECT_NEAR(reduce_sum(found[i + 1] * direction).item<double>(), slope, 2e-9 * std::max(1.0, std::abs(slope)));
  }
}

/// A table, weights of a row and of the state, a bias; looked up at `indices`.
static Program embedded(const Tensor &indices, bool isConcat) {
  return [=](const Tensors &x) { return cells(1, isConcat)({gather(x[0], indices), x[1], x[2], x[3]}); };
}

TEST(ProductsOfTurnsTest, RowsOfATable) {
  Tensor indices = Tensor::from(std::vector<int32_t>{0, 3, 3, 1, 4, 0, 0, 0, 1, 3, 4, 3, 1, 1, 0, 4, 3, 3}, {6, 3});
  for (bool isConcat : {false, true}) {
    Program f = embedded(indices, isConcat);
    Tensors x{matrix(5, 72)};
    for (const Tensor &weights : weightsOf(1, 72, 64))
      x.push_back(weights);
    EXPECT_EQ(countIn(expectSame(f, x), "tensor<6x3x72xf64>"), 0) << "rows are looked up before they are multiplied";
    EXPECT_EQ(countIn(expectSame(gradientOf(f), x, 1e-11), "tensor<6x3x72xf64>"), 0);
  }
}

// Row 2 is named by no index: whatever it holds reaches no value and no gradient, and its own is zero.
TEST(ProductsOfTurnsTest, RowsThatNoIndexNames) {
  Tensor indices = Tensor::from(std::vector<int32_t>{0, 3, 3, 1, 4, 0, 0, 0, 1, 3, 4, 3}, {4, 3});
  for (double strange : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Tensor table = where(reshape(linspace(0, 4, 5, f64), {5, 1}) == 2.0, Tensor(strange), matrix(5, 72));
    Tensors x{table};
    for (const Tensor &weights : weightsOf(1, 72, 64))
      x.push_back(weights);
    Tensors gradients = wg::function("gradient", gradientOf(embedded(indices, true)))(x);
    for (const Tensor &gradient : gradients)
      for (double value : gradient.to_vector<double>())
        ASSERT_TRUE(std::isfinite(value));
    for (double value : gradients[1][2].to_vector<double>())
      EXPECT_EQ(value, 0);
    expectSame(gradientOf(embedded(indices, true)), {matrix(5, 72), x[1], x[2], x[3]}, 1e-11);
  }
}

TEST(ProductsOfTurnsTest, AnIndexOutOfRangeIsFoundByWhatLooksUp) {
  auto f = [](const Tensor &table, const Tensor &indices, const Tensor &w) {
    GradientTape tape;
    tape.watch(w);
    Tensor loss = reduce_sum(tanh(matmul(gather(table, indices), w)));
    return tape.gradient(loss, w).value();
  };
  Tensor table = matrix(5, 72), w = matrix(72, 32, 1);
  std::vector<int64_t> places(20, 3);
  places[7] = 5;
  std::string eager, compiled;
  auto step = wg::function("step", f);
  eager = messageOf([&] { f(table, Tensor::from(places, {20}), w); });
  compiled = messageOf([&] { step(table, Tensor::from(places, {20}), w); });
  for (const std::string &message : {eager, compiled}) {
    EXPECT_TRUE(says(message, "gather")) << message;
    EXPECT_FALSE(says(message, "scatter_add")) << message;
    EXPECT_TRUE(says(message, "5")) << message;
  }
}

// A table that is looked up and, transposed, scores the words; two layers, of which the second reads the first; a loop
// in a loop; what forward mode and a second derivative make of all that.
TEST(ProductsOfTurnsTest, LanguageModels) {
  Tensor indices = Tensor::from(std::vector<int32_t>{0, 3, 3, 1, 4, 0, 0, 0, 1, 3, 4, 3, 1, 1, 0, 4}, {8, 2});
  Program f = [=](const Tensors &x) {
    Tensor hs = cells(1, true)({gather(x[0], indices), x[1], x[2], x[3]})[2];
    Tensor above = cells(1, true)({hs, x[4], x[5], x[3]})[2];
    return Tensors{matmul(reshape(above, {16, 64}), transpose(x[0])), hs};
  };
  Tensors x{matrix(5, 64)};
  for (const Tensor &weights : weightsOf(1, 64, 64))
    x.push_back(weights);
  x.push_back(matrix(64, 64, 4) * 0.1);
  x.push_back(matrix(64, 64, 5) * 0.1);
  expectSame(f, x);
  expectSame(gradientOf(f), x, 1e-11);
  Program twice = [&](const Tensors &x) {
    GradientTape tape;
    tape.watch(x);
    Tensors gradients = gradientsOf(f, x);
    Tensor norm(0.0);
    for (const Tensor &gradient : gradients)
      norm = norm + reduce_sum(square(gradient)) * 1e-4;
    Tensors second;
    for (const Grad &gradient : tape.gradient(norm, x))
      second.push_back(gradient.value());
    return second;
  };
  expectSame(twice, x, 1e-9);
  Program forward = [&](const Tensors &x) {
    Tensors tangents;
    for (const Tensor &each : x)
      tangents.push_back(cos(each));
    auto [values, slopes] = jvp([&](const Tensors &x) { return f(x); }, std::tuple(x), std::tuple(tangents));
    Tensors all;
    for (const Grad &slope : slopes)
      all.push_back(slope.value());
    return all;
  };
  expectSame(forward, x, 1e-11);
}

TEST(ProductsOfTurnsTest, LoopsInLoops) {
  Program f = [](const Tensors &x) {
    auto outer = [&](const Tensor &h, const Tensor &rows) {
      auto inner = [&](const Tensor &h, const Tensor &row) {
        Tensor next = tanh(matmul(row, x[2]) + matmul(h, x[3]));
        return std::pair(next, next);
      };
      auto [last, hs] = scan(inner, h, rows);
      Tensor next = last + matmul(rows[0], x[2]);
      return std::pair(next, hs);
    };
    auto [last, hs] = scan(outer, x[0], x[1]);
    return Tensors{last, hs};
  };
  Tensors x{matrix(2, 70), reshape(matrix(24, 70, 1), {3, 4, 2, 70}), matrix(70, 70, 2) * 0.1, matrix(70, 70, 3) * 0.1};
  expectSame(f, x);
  expectSame(gradientOf(f), x, 1e-11);
}

// Two calls run the same loop, and that a loop: what one of them becomes the other does not run.
TEST(ProductsOfTurnsTest, LoopsInLoopsOfTwoCalls) {
  auto layer = wg::function("layer", [](const Tensor &h, const Tensor &rows, const Tensor &u, const Tensor &w) {
    auto outer = [&](const Tensor &h, const std::pair<Tensor, Tensor> &x) {
      auto inner = [&](const Tensor &h, const Tensor &row) {
        Tensor next = tanh(matmul(row, u) + matmul(h, w));
        return std::pair(next, next);
      };
      Tensor next = scan(inner, h, x.first).first + matmul(x.second, u);
      return std::pair(next, next);
    };
    return scan(outer, h, std::pair(rows, rows[0])).first;
  });
  Program f = [&](const Tensors &x) {
    Tensor first = layer(x[0], x[1], x[2], x[3]), second = layer(first, x[1] * 0.5, x[2], x[3]);
    return Tensors{first, second};
  };
  Tensors x{matrix(2, 64), reshape(matrix(18, 64, 1), {3, 3, 2, 64}), matrix(64, 64, 2) * 0.1, matrix(64, 64, 3) * 0.1};
  expectSame(f, x);
  expectSame(gradientOf(f), x, 1e-11);
}

// Of two stacks of rows of a table beside others, one is a part of the other.
TEST(ProductsOfTurnsTest, PartsOfParts) {
  Tensor indices = Tensor::from(std::vector<int32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 1, 1, 0}, {9, 2});
  for (bool isInnerFirst : {false, true}) {
    Program f = [=](const Tensors &x) {
      auto cell = [&](const Tensor &h, const Tensor &row) {
        Tensor inner = concat({row, h}, 1), outer = concat({row, inner}, 1);
        return std::pair(tanh(h + row), isInnerFirst ? Tensors{inner, outer} : Tensors{outer, inner});
      };
      auto [last, stacks] = scan(cell, x[1], gather(x[0], indices));
      return Tensors{last, einsum("tmk,tmn->kn", {stacks[0], x[2]}), einsum("tmk,tmn->kn", {stacks[1], x[2]})};
    };
    Tensors x{matrix(3, 72), matrix(2, 72, 1), reshape(matrix(18, 16, 2), {9, 2, 16})};
    expectSame(f, x);
    expectSame(gradientOf(f), x, 1e-11);
  }
}

// A covariance, which goes on from what it was.
TEST(ProductsOfTurnsTest, SumsGoOn) {
  Program f = [](const Tensors &x) {
    auto turn = [&](const std::pair<Tensor, Tensor> &state, const Tensor &row) {
      Tensor mean = state.second + 0.1 * row;
      return std::pair(std::pair(state.first + einsum("i,j->ij", {row, row}) + einsum("i,j->ij", {mean, row}), mean),
                       reduce_sum(row));
    };
    auto [last, sums] = scan(turn, std::pair(x[0], x[1]), x[2]);
    return Tensors{last.first, last.second, sums};
  };
  Tensors x{matrix(70, 70), matrix(1, 70, 1)[0], matrix(9, 70, 2)};
  EXPECT_EQ(countIn(bodiesOf(expectSame(f, x)), "tensor<70x70xf64>"), 0) << "a sum is none of a turn";
  expectSame(gradientOf(f), x, 1e-11);
}
