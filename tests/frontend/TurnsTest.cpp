// Loops of small turns, whose state compiled code keeps in registers: the values of the interpreter, for states of
// every dtype and size, of several kinds at once, read in other places, handed on as they are, and for any number of
// turns.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::gradientsOf;
using wg::tests::matrix;
using wg::tests::Tensors;

using Program = std::function<Tensors(const Tensors &)>;

/// How many functions that run turns in registers the compiled program has.
static int64_t turnsIn(const std::string &lowered) {
  int64_t count = 0;
  for (size_t at = lowered.find("func.func private @program_turns"); at != std::string::npos;
       at = lowered.find("func.func private @program_turns", at + 1))
    ++count;
  return count;
}

/// Compiled and interpreted, f has the same values; `turns` of its loops run in registers, where that is known.
static void expectSame(const Program &f, const Tensors &x, std::optional<int64_t> turns) {
  auto interpreted = wg::function("program", f, {.interpret = true});
  auto compiled = wg::function("program", f);
  Tensors wanted = interpreted(x), found = compiled(x);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].dtype(), wanted[i].dtype());
    expectNear(cast(found[i], f64), cast(wanted[i], f64), found[i].dtype() == f32 ? 1e-5 : 1e-13);
  }
  if (turns)
    EXPECT_EQ(turnsIn(compiled.trace(x).text(Stage::lowered)), *turns);
}

TEST(TurnsTest, StatesOfEveryDtypeAndSize) {
  for (DType dtype : {f64, f32, i64, i32, u8})
    for (int64_t size : {1, 2, 3, 8, 9, 14, 17, 33, 65}) {
      SCOPED_TRACE(size);
      for (int64_t rows : {0, 1, 5}) {
        Tensor xs = rows ? cast(matrix(rows, size) * 8.0, dtype) : zeros({0, size}, dtype);
        auto f = [](const Tensors &x) {
          auto [last, ys] = scan(
              [&](const Tensor &c, const Tensor &row) {
                Tensor next = c * x[2] + row;
                return std::pair(next, next - c);
              },
              x[0], x[1]);
          return Tensors{last, ys};
        };
        Tensors x{cast(matrix(1, size, 1)[0] * 5.0, dtype), xs, cast(matrix(1, size, 2)[0] * 3.0, dtype)};
        auto interpreted = wg::function("program", f, {.interpret = true});
        auto compiled = wg::function("program", f);
        Tensors wanted = interpreted(x), found = compiled(x);
        for (size_t i = 0; i < found.size(); ++i)
          expectNear(cast(found[i], f64), cast(wanted[i], f64), dtype == f32 ? 1e-5 : 1e-13);
        if (rows == 5 && (size <= 8 || size > 64)) // four vectors of this machine's are between
          EXPECT_EQ(turnsIn(compiled.trace(x).text(Stage::lowered)), size <= 8);
      }
    }
}

// A flag, a counter, a number that vectors read, and vectors of two shapes; what is handed on as it came, from the
// state, from a row and from outside.
TEST(TurnsTest, StatesOfSeveralKinds) {
  auto f = [](const Tensors &x) {
    using State = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;
    auto step = [&](const State &state, const Tensor &row) {
      auto [flag, count, scale, v, m] = state;
      Tensor next = where(flag, v * scale + row, v - row);
      Tensor sheet = m * 0.5 + reshape(next, {2, 7});
      State after(!flag, count + 1, scale * 1.01 + cast(count, f64) * 0.001, next, sheet);
      return std::pair(after, std::tuple(flag, count, row, x[2], v, next, next));
    };
    auto [last, ys] =
        scan(step, State(Tensor(true), Tensor(int64_t(3)), Tensor(0.9), x[0], reshape(x[0], {2, 7})), x[1]);
    auto [flag, count, scale, v, m] = last;
    auto [flags, counts, rows, outside, before, after, again] = ys;
    return Tensors{cast(flag, i64), count, scale, v, m, cast(flags, i64), counts, rows, outside, before, after, again};
  };
  for (int64_t rows : {1, 2, 9})
    expectSame(f, {matrix(1, 14)[0], matrix(rows, 14, 1), matrix(1, 3, 2)[0]}, 1);
}

TEST(TurnsTest, ConditionsAndLimits) {
  for (double stop : {0.0, 30.0, 1e9})
    for (int64_t most : {-1, 0, 7}) {
      SCOPED_TRACE(most);
      using State = std::tuple<Tensor, Tensor, Tensor>;
      expectSame(
          [&](const Tensors &x) {
            auto [s, v, n] = while_loop([&](const State &s) { return std::get<0>(s) < stop; },
                                        [&](const State &s) {
                                          auto [a, v, n] = s;
                                          return State(a * 1.5 + 1.0, v * x[1] + a, n + 1);
                                        },
                                        State(x[0], x[1], Tensor(int64_t(0))), {.max_steps = most});
            return Tensors{s, v, n};
          },
          {Tensor(1.0), matrix(1, 5)[0]}, 1);
    }
  for (int64_t turns : {-2, 0, 1, 6})
    expectSame(
        [](const Tensors &x) {
          return Tensors{for_range(
              0, x[1], [&](const Tensor &i, const Tensor &s) { return s * 0.5 + cast(i, f64) * x[0]; }, x[0])};
        },
        {matrix(1, 11)[0], Tensor(turns)}, 1);
}

// The derivative is a loop of the same kind, from the last row back, and so is that of a loop with a condition.
TEST(TurnsTest, Derivatives) {
  auto recurrence = [](const Tensors &x) {
    return Tensors{scan(
                       [&](const Tensor &h, const Tensor &row) {
                         Tensor next = tanh(h * x[2] + row) * sigmoid(h);
                         return std::pair(next, next * row);
                       },
                       x[0], x[1])
                       .second};
  };
  for (int64_t size : {1, 3, 14, 21}) // of 21 numbers four vectors hold all on some machines
    expectSame([&](const Tensors &x) { return gradientsOf(recurrence, x); },
               {matrix(1, size)[0], matrix(6, size, 1), matrix(1, size, 2)[0]},
               size > 16 ? std::nullopt : std::optional<int64_t>(2));
  auto untilLarge = [](const Tensors &x) {
    return Tensors{while_loop([](const Tensor &s) { return s < 40.0; },
                              [&](const Tensor &s) { return s * x[1] + sin(s); }, x[0], {.max_steps = 30})};
  };
  expectSame([&](const Tensors &x) { return gradientsOf(untilLarge, x); }, {Tensor(1.2), Tensor(1.3)}, 2);
}

// What is read in other places than its own lies in memory: such loops run their bodies as functions.
TEST(TurnsTest, OtherLoopsCallTheirBodies) {
  auto shifted = [](const Tensors &x) {
    return Tensors{fold([](const Tensor &s, const Tensor &row) { return concat({slice(s, {1}, {6}), row}, 0); }, x[0],
                        reshape(x[1], {4, 1}))};
  };
  expectSame(shifted, {matrix(1, 6)[0], matrix(1, 4, 1)[0]}, 0);
  auto across = [](const Tensors &x) {
    return Tensors{fold([](const Tensor &s, const Tensor &row) { return transpose(s) * row; }, x[0], x[1])};
  };
  expectSame(across, {matrix(3, 3), reshape(matrix(4, 9, 1), {4, 3, 3})}, 0);
  auto product = [](const Tensors &x) {
    return Tensors{fold([&](const Tensor &s, const Tensor &row) { return matmul(x[2], s) + row; }, x[0], x[1])};
  };
  expectSame(product, {matrix(1, 6)[0], matrix(4, 6, 1), matrix(6, 6, 2)}, 0);
}

// Layers, each of which reads what the one before it gives in the same turn: the later ones run a turn behind. For any
// number of turns, with all that a turn sees kept, and in what the gradient keeps.
TEST(TurnsTest, LayersRunATurnBehind) {
  for (int64_t size : {1, 3, 14})
    for (int64_t rows : {0, 1, 2, 7}) {
      SCOPED_TRACE(testing::Message() << size << " letters, " << rows << " rows");
      auto layers = [](const Tensors &x) {
        using State = std::tuple<Tensor, Tensor, Tensor, Tensor>;
        auto step = [&](const State &state, const Tensor &row) {
          auto [h, g, k, count] = state;
          Tensor first = tanh(h * x[2] + row), second = sigmoid(g * first + x[2]),
                 third = tanh(k * second + h) + first * 0.25;
          State after(first, second, third, count + 1);
          return std::pair(after, std::tuple(h, g, k, first * third, row, second, count));
        };
        auto [last, ys] = scan(step, State(x[0], x[0] * 0.5, x[0] * 0.25, Tensor(int64_t(3))), x[1]);
        auto [h, g, k, count] = last;
        auto [a, b, c, d, e, s, n] = ys;
        return Tensors{h, g, k, count, a, b, c, d, e, s, n};
      };
      Tensors x{matrix(1, size, 1)[0], rows ? matrix(rows, size) : zeros({0, size}, f64), matrix(1, size, 2)[0]};
      expectSame(layers, x, 1);
      std::string lowered = wg::function("program", layers).trace(x).text(Stage::lowered);
      EXPECT_NE(lowered.find("scf.if"), std::string::npos); // for no turn at all, nothing runs ahead
      auto gradients = [&](const Tensors &x) { return gradientsOf(layers, x); };
      auto interpreted = wg::function("program", gradients, {.interpret = true});
      auto compiled = wg::function("program", gradients);
      Tensors wanted = interpreted(x), found = compiled(x);
      for (size_t i = 0; i < found.size(); ++i)
        expectNear(found[i], wanted[i], 1e-12);
    }
}

// An adjoint of layers carries more than registers hold, with the sums of their parameters' gradients: it is a loop for
// each layer. With two layers the second derivative is right too.
TEST(TurnsTest, AdjointsOfLayersHaveLoopsOfTheirOwn) {
  constexpr int64_t kWidth = 14, kRows = 6;
  for (DType dtype : {f64, f32})
    for (int64_t layers : {2, 3, 4}) {
      SCOPED_TRACE(testing::Message() << layers << " layers, " << dtype);
      int64_t width = dtype == f64 ? kWidth : 2 * kWidth;
      auto lstm = [&](const Tensors &x) {
        using State = std::vector<std::pair<Tensor, Tensor>>;
        auto step = [&](const State &state, Tensor z) {
          State next;
          for (int64_t l = 0; l < layers; ++l) {
            auto w = [&](int64_t i) { return x[0][l][i]; };
            auto &[h, before] = state[size_t(l)];
            Tensor after = before * sigmoid(z * w(0) + w(4)) + sigmoid(h * w(1) + w(5)) * tanh(h * w(3) + w(7));
            z = sigmoid(z * w(2) + w(6)) * tanh(after);
            next.emplace_back(z, after);
          }
          return std::pair(next, z);
        };
        State state;
        for (int64_t l = 0; l < layers; ++l)
          state.emplace_back(x[2][l][0], x[2][l][1]);
        return Tensors{scan(step, state, x[1]).second};
      };
      Tensors x{reshape(matrix(layers * 8, width), {layers, 8, width}), matrix(kRows, width, 1),
                reshape(matrix(layers * 2, width, 2), {layers, 2, width})};
      for (Tensor &each : x)
        each = cast(each, dtype);
      auto gradients = [&](const Tensors &x) {
        Tensors all = gradientsOf(lstm, x);
        return Tensors(all.begin() + 1, all.end()); // the loss is f64, of values of either dtype
      };
      expectSame(gradients, x, 1 + layers);
      if (layers > 2)
        continue;
      auto twice = [&](const Tensors &x) { return gradientsOf(gradients, x); };
      Tensors wanted = wg::function("program", twice, {.interpret = true})(x),
              found = wg::function("program", twice)(x);
      for (size_t i = 0; i < found.size(); ++i)
        expectNear(cast(found[i], f64), cast(wanted[i], f64), dtype == f32 ? 1e-4 : 1e-11);
    }
}

// What is stacked before and after each turn are the same rows, a turn apart: they lie in the same memory, which no
// kernel overwrites that is the last to read one of the two. In registers, and by functions (of matmul).
TEST(TurnsTest, StacksOfTheSameValuesShareTheirMemory) {
  constexpr int64_t kRows = 100, kSize = 8;
  Tensors x{matrix(1, kSize, 1)[0], matrix(kRows, kSize), matrix(1, kSize, 2)[0] * 0.5, matrix(kSize, kSize)};
  for (auto [inRegisters, early] : {std::pair(true, true), {true, false}, {false, true}, {false, false}}) {
    auto f = [&](const Tensors &x) {
      auto [last, ys] = scan(
          [&](const Tensor &c, const Tensor &row) {
            Tensor next = inRegisters ? c * x[2] + row : tanh(matmul(x[3], c * x[2] + row));
            return std::pair(next, std::pair(c, next));
          },
          x[0], x[1]);
      auto [before, after] = ys;
      Tensor first = cumsum(exp(early ? before : after), 0); // the last to read one, which it could overwrite
      return Tensors{last, reduce_sum(first * (early ? after : before))};
    };
    expectSame(f, x, inRegisters);
  }
  auto bytesOf = [&](double apart) { // of the workspace, where other values are stacked and where it is these
    auto f = [&](const Tensors &x) {
      auto [last, ys] = scan(
          [&](const Tensor &c, const Tensor &row) {
            Tensor next = c * x[2] + row;
            return std::pair(next, std::pair(apart != 0 ? c + apart : c, next));
          },
          x[0], x[1]);
      return Tensors{last, reduce_sum(ys.first * ys.second)};
    };
    return wg::function("program", f).trace(x).workspace_bytes();
  };
  EXPECT_GT(bytesOf(1) - bytesOf(0), (kRows - 2) * kSize * 8);
}
