// Optimisers beside their published updates in plain C++: on a quadratic and on a small network, 20 steps, eagerly and
// compiled, in f32 and f64.
#include "tests/frontend/Support.h"

#include <cmath>
#include <filesystem>
#include <memory>
#include <unistd.h>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

/// One step of one number: p and its slots, by the gradient g, in step t = 1, 2, ...
using Formula = std::function<void(double &p, std::vector<double> &slots, double g, double t)>;
using Make = std::function<std::unique_ptr<optim::Optimizer>()>;

/// The gradient of sum of c p^2 / 2 + 3 p with another c for each element.
const std::vector<double> kStart{1.5, -2, 0.25, 4}, kCurvatures{1, 0.1, 3, 0.5};

void checkFormula(const Make &make, const Formula &formula) {
  for (DType dtype : {f32, f64})
    for (bool compiled : {false, true}) {
      SCOPED_TRACE(std::string(dtype == f32 ? "f32" : "f64") + (compiled ? " compiled" : " eager"));
      Variable p(cast(Tensor::from(kStart), dtype));
      Tensor c = cast(Tensor::from(kCurvatures), dtype);
      std::unique_ptr<optim::Optimizer> optimizer = make();
      auto body = [&] {
        GradientTape tape;
        Tensor loss = reduce_sum(c * square(p) / 2 + 3 * p);
        optimizer->apply(tape.gradient(loss, p), p);
      };
      auto step = function("step", body);
      std::vector<double> expected = kStart;
      std::vector<std::vector<double>> slots(expected.size(), std::vector<double>(4, 0));
      for (int t = 1; t <= 20; ++t) {
        for (size_t i = 0; i < expected.size(); ++i)
          formula(expected[i], slots[i], kCurvatures[i] * expected[i] + 3, t);
        compiled ? step() : body();
        expectNear(cast(p.value(), f64), Tensor::from(expected), dtype == f64 ? 1e-12 : 2e-5);
      }
      if (compiled)
        EXPECT_EQ(step.trace_count(), 1);
    }
}

/// A network of two layers steps in the same way eagerly and compiled, and lowers its loss.
void checkNetwork(const Make &make) {
  std::vector<std::vector<double>> ends;
  for (bool compiled : {false, true}) {
    nn::Sequential model(nn::Dense(3, 5, wg::tanh, {.dtype = f64, .weight = nn::glorot_uniform(1)}),
                         nn::Dense(5, 1, {}, {.dtype = f64, .weight = nn::glorot_uniform(2)}));
    Tensor x = tests::matrix(8, 3), y = tests::matrix(8, 1, 1);
    std::unique_ptr<optim::Optimizer> optimizer = make();
    auto body = [&] {
      GradientTape tape;
      Tensor loss = mean_squared_error(model(x), y);
      optimizer->apply(tape.gradient(loss, model), model);
      return loss;
    };
    auto step = function("step", body);
    double first = 0, last = 0;
    for (int t = 0; t < 20; ++t) {
      last = (compiled ? step() : body()).item<double>();
      first = t == 0 ? last : first;
    }
    EXPECT_LT(last, first);
    ends.emplace_back();
    for (const Variable &each : model.variables())
      for (double number : each.value().to_vector<double>())
        ends.back().push_back(number);
  }
  expectNear(Tensor::from(ends[1]), Tensor::from(ends[0]), 1e-10);
}

void check(const Make &make, const Formula &formula) {
  checkFormula(make, formula);
  checkNetwork(make);
}

template <class T, class Options> Make making(double rate, Options options) {
  return [=] { return std::make_unique<T>(rate, options); };
}

} // namespace

TEST(AdaptiveTest, AdamW) {
  check(making<optim::AdamW>(0.1, optim::AdamWOptions{.weight_decay = 0.2}),
        [](double &p, std::vector<double> &s, double g, double t) {
          s[0] = 0.9 * s[0] + 0.1 * g, s[1] = 0.999 * s[1] + 0.001 * g * g;
          p -= 0.1 * 0.2 * p;
          p -= 0.1 * s[0] / (1 - std::pow(0.9, t)) / (std::sqrt(s[1] / (1 - std::pow(0.999, t))) + 1e-8);
        });
  Variable p(1.0), q(1.0);
  optim::AdamW().apply(Grad(Tensor(2.0)), p);
  optim::Adam(0.001, {.weight_decay = 0.01}).apply(Grad(Tensor(2.0)), q);
  EXPECT_EQ(p.item<double>(), q.item<double>()) << "the decay by default";
}

TEST(AdaptiveTest, Amsgrad) {
  check(making<optim::Adam>(0.1, optim::AdamOptions{.beta_1 = 0.5, .beta_2 = 0.6, .amsgrad = true}),
        [](double &p, std::vector<double> &s, double g, double t) {
          s[0] = 0.5 * s[0] + 0.5 * g, s[1] = 0.6 * s[1] + 0.4 * g * g, s[2] = std::max(s[2], s[1]);
          p -= 0.1 * s[0] / (1 - std::pow(0.5, t)) / (std::sqrt(s[2] / (1 - std::pow(0.6, t))) + 1e-8);
        });
}

/// torch.optim's weight decay.
TEST(AdaptiveTest, AnL2PenaltyIsPartOfTheGradient) {
  check(making<optim::Adam>(0.1, optim::AdamOptions{.l2 = 0.3}),
        [](double &p, std::vector<double> &s, double g, double t) {
          g += 0.3 * p;
          s[0] = 0.9 * s[0] + 0.1 * g, s[1] = 0.999 * s[1] + 0.001 * g * g;
          p -= 0.1 * s[0] / (1 - std::pow(0.9, t)) / (std::sqrt(s[1] / (1 - std::pow(0.999, t))) + 1e-8);
        });
  check(making<optim::Momentum>(0.05, optim::MomentumOptions{.momentum = 0.8, .weight_decay = 0.1, .l2 = 0.3}),
        [](double &p, std::vector<double> &s, double g, double) {
          s[0] = 0.8 * s[0] + g + 0.3 * p;
          p -= 0.05 * 0.1 * p;
          p -= 0.05 * s[0];
        });
  check(making<optim::Adagrad>(0.1, optim::AdagradOptions{.l2 = 0.3}),
        [](double &p, std::vector<double> &s, double g, double) {
          g += 0.3 * p;
          s[0] += g * g;
          p -= 0.1 * g / std::sqrt(s[0] + 0.1 + 1e-7);
        });
}

TEST(AdaptiveTest, RMSprop) {
  for (bool centered : {false, true})
    for (double momentum : {0.0, 0.7})
      check(making<optim::RMSprop>(0.01, optim::RMSpropOptions{.momentum = momentum, .centered = centered}),
            [=](double &p, std::vector<double> &s, double g, double) {
              s[0] = 0.9 * s[0] + 0.1 * g * g, s[1] = 0.9 * s[1] + 0.1 * g;
              double d = g / (std::sqrt(s[0] - (centered ? s[1] * s[1] : 0)) + 1e-7);
              s[2] = momentum * s[2] + d;
              p -= 0.01 * s[2];
            });
}

TEST(AdaptiveTest, Adadelta) {
  check(making<optim::Adadelta>(1.0, optim::AdadeltaOptions{}),
        [](double &p, std::vector<double> &s, double g, double) {
          s[0] = 0.95 * s[0] + 0.05 * g * g;
          double d = std::sqrt(s[1] + 1e-6) / std::sqrt(s[0] + 1e-6) * g;
          s[1] = 0.95 * s[1] + 0.05 * d * d;
          p -= d;
        });
}

TEST(AdaptiveTest, Adamax) {
  check(making<optim::Adamax>(0.05, optim::AdamaxOptions{.beta_2 = 0.9}),
        [](double &p, std::vector<double> &s, double g, double t) {
          s[0] = 0.9 * s[0] + 0.1 * g, s[1] = std::max(0.9 * s[1], std::abs(g));
          p -= 0.05 / (1 - std::pow(0.9, t)) * s[0] / (s[1] + 1e-8);
        });
}

TEST(AdaptiveTest, NAdam) {
  check(making<optim::NAdam>(0.05, optim::NAdamOptions{}), [](double &p, std::vector<double> &s, double g, double t) {
    auto mu = [](double t) { return 0.9 * (1 - 0.5 * std::pow(0.96, t * 0.004)); };
    double product = (t == 1 ? 1 : s[2]) * mu(t);
    s[0] = 0.9 * s[0] + 0.1 * g, s[1] = 0.999 * s[1] + 0.001 * g * g, s[2] = product;
    double root = std::sqrt(s[1] / (1 - std::pow(0.999, t))) + 1e-8;
    p -= 0.05 * (1 - mu(t)) / (1 - product) * g / root;
    p -= 0.05 * mu(t + 1) / (1 - product * mu(t + 1)) * s[0] / root;
  });
}

TEST(AdaptiveTest, Lion) {
  check(making<optim::Lion>(0.01, optim::LionOptions{.weight_decay = 0.1}),
        [](double &p, std::vector<double> &s, double g, double) {
          double c = 0.9 * s[0] + 0.1 * g;
          p -= 0.01 * 0.1 * p;
          p -= 0.01 * ((c > 0) - (c < 0));
          s[0] = 0.99 * s[0] + 0.01 * g;
        });
}

/// The norms are those of a whole variable.
TEST(AdaptiveTest, Lamb) {
  for (bool compiled : {false, true}) {
    Variable p(Tensor::from(kStart)), zero(Tensor{0.0, 0.0});
    optim::Lamb lamb(0.05, {.scaled_weight_decay = 0.1});
    auto body = [&] { lamb.apply(std::vector{Grad(p.value() + 3), Grad(Tensor{1.0, -1.0})}, std::vector{p, zero}); };
    auto step = function("step", body);
    std::vector<double> expected = kStart, m(4, 0), v(4, 0);
    for (int t = 1; t <= 20; ++t) {
      compiled ? step() : body();
      std::vector<double> r(4);
      double weight = 0, length = 0;
      for (size_t i = 0; i < 4; ++i) {
        double g = expected[i] + 3;
        m[i] = 0.9 * m[i] + 0.1 * g, v[i] = 0.999 * v[i] + 0.001 * g * g;
        r[i] = m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-6) + 0.1 * expected[i];
        weight += expected[i] * expected[i], length += r[i] * r[i];
      }
      for (size_t i = 0; i < 4; ++i)
        expected[i] -= 0.05 * std::sqrt(weight / length) * r[i];
      expectNear(p.value(), Tensor::from(expected), 1e-12);
      if (t == 1)
        expectNear(zero.value(), Tensor{-0.05, 0.05}, 1e-6);
    }
  }
  checkNetwork(making<optim::Lamb>(0.01, optim::LambOptions{}));
}

TEST(AdaptiveTest, ASparseGradientIsTakenAsTheTensorItIs) {
  auto steps = [](auto &optimizer, bool sparse) {
    Variable table(tests::matrix(5, 2));
    for (int i = 0; i < 3; ++i) {
      GradientTape tape;
      Tensor loss = reduce_sum(square(gather(table, Tensor{1, 3, 1})));
      Grad g = tape.gradient(loss, table);
      EXPECT_TRUE(g.is_sparse());
      optimizer.apply(sparse ? g : Grad(g.value()), table);
    }
    return table.value();
  };
  auto compare = [&](auto a, auto b) { expectNear(steps(*a, true), steps(*b, false), 1e-15); };
  compare(std::make_unique<optim::RMSprop>(0.1), std::make_unique<optim::RMSprop>(0.1));
  compare(std::make_unique<optim::NAdam>(0.1), std::make_unique<optim::NAdam>(0.1));
  compare(std::make_unique<optim::Lion>(0.1), std::make_unique<optim::Lion>(0.1));
  compare(std::make_unique<optim::AdamW>(0.1), std::make_unique<optim::AdamW>(0.1));
  optim::AdagradOptions l2{.l2 = 0.1};
  compare(std::make_unique<optim::Adagrad>(0.1, l2), std::make_unique<optim::Adagrad>(0.1, l2));
  // Rows alone, of which each has its own largest v; here all are touched in each step.
  optim::AdamOptions lazy{.lazy = true, .amsgrad = true}, whole{.amsgrad = true};
  optim::Adam a(0.1, lazy), b(0.1, whole);
  Variable p(tests::matrix(2, 2)), q(tests::matrix(2, 2));
  for (int i = 0; i < 4; ++i) {
    GradientTape tape;
    Tensor loss = reduce_sum(square(gather(p, Tensor{1, 0}))) + reduce_sum(square(gather(q, Tensor{1, 0})));
    auto [dp, dq] = tape.gradient(loss, p, q);
    a.apply(dp, p);
    b.apply(Grad(dq.value()), q);
  }
  expectNear(p.value(), q.value(), 1e-14);
}

TEST(AdaptiveTest, SlotsAreSavedUnderTheirNames) {
  std::string path =
      (std::filesystem::temp_directory_path() / ("wengert_adaptive_" + std::to_string(::getpid()) + ".safetensors"))
          .string();
  Variable whole(1.0, {.name = "p"}), first(1.0, {.name = "p"}), second(0.0, {.name = "p"});
  optim::NAdam a(0.1), b(0.1), c(0.1);
  for (int i = 0; i < 5; ++i)
    a.apply(Grad(Tensor(1.0 + i)), whole);
  for (int i = 0; i < 3; ++i)
    b.apply(Grad(Tensor(1.0 + i)), first);
  std::vector<std::string> names;
  for (const auto &[name, slot] : b.named_slots())
    names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"step", "p.m", "p.v", "p.log_momentum"}));
  save_weights(path, b.named_slots());
  second.assign(first);
  c.build(second);
  load_weights(path, c.named_slots());
  std::filesystem::remove(path);
  for (int i = 3; i < 5; ++i)
    c.apply(Grad(Tensor(1.0 + i)), second);
  EXPECT_EQ(second.item<double>(), whole.item<double>());
  optim::RMSprop all(0.1, {.momentum = 0.5, .centered = true});
  all.build(whole);
  EXPECT_EQ(all.named_slots().back().first, "p.velocity");
}

TEST(AdaptiveTest, HyperparametersLieInTheirRanges) {
  EXPECT_TRUE(says(messageOf([] { optim::RMSprop(0.1, {.rho = 1}); }), "rho is 1, but must be in [0, 1)"));
  EXPECT_TRUE(says(messageOf([] { optim::RMSprop(0.1, {.momentum = -1}); }), "momentum is -1"));
  EXPECT_TRUE(says(messageOf([] { optim::Adadelta(0.1, {.epsilon = -1}); }), "epsilon is -1"));
  EXPECT_TRUE(says(messageOf([] { optim::Adamax(0.1, {.beta_2 = 1}); }), "beta_2 is 1"));
  EXPECT_TRUE(says(messageOf([] { optim::NAdam(0.1, {.momentum_decay = -1}); }), "momentum_decay is -1"));
  EXPECT_TRUE(says(messageOf([] { optim::Lion(-1); }), "learning_rate is -1"));
  EXPECT_TRUE(says(messageOf([] { optim::Lamb(0.1, {.scaled_weight_decay = -1}); }), "scaled_weight_decay is -1"));
  EXPECT_TRUE(says(messageOf([] { optim::Adam(0.1, {.l2 = -1}); }), "l2 is -1"));
  EXPECT_TRUE(says(messageOf([] { optim::Momentum(0.1, {.momentum = 2}); }), "momentum is 2"));
}

// ---- L-BFGS

static Tensor rosenbrock(const Tensor &x) {
  Tensor a = x[{wg::slice({}, -1)}], b = x[{wg::slice(1, {})}];
  return reduce_sum(100 * square(b - a * a) + square(1 - a));
}

TEST(LbfgsTest, RosenbrocksValleyEndsAtOnes) {
  auto compiled = function("rosenbrock", rosenbrock);
  for (int64_t n : {2, 10}) {
    Tensor from = n == 2 ? Tensor{-1.2, 1.0} : tests::matrix(1, n)[0] * 2;
    auto [x, result] = optim::minimize_lbfgs(rosenbrock, from, {.gradient_tolerance = 1e-9});
    EXPECT_TRUE(result.converged) << result.reason;
    expectNear(x, ones({n}, f64), 1e-8);
    EXPECT_LT(result.value, 1e-16);
    EXPECT_LE(result.gradient, 1e-9);
    EXPECT_LT(result.iterations, 100);
    EXPECT_GE(result.evaluations, result.iterations);
    auto [same, other] = optim::minimize_lbfgs(compiled, from, {.gradient_tolerance = 1e-9});
    expectNear(same, ones({n}, f64), 1e-8);
    EXPECT_TRUE(other.converged);
  }
  EXPECT_EQ(compiled.trace_count(), 2);
}

TEST(LbfgsTest, AStructureOfF32) {
  using Parameters = std::map<std::string, Tensor>;
  Tensor x = linspace(-1, 1, 50), y = 3 * x - 0.5;
  auto loss = [&](const Parameters &p) { return mean(square(p.at("w") * x + p.at("b") - y)); };
  auto [p, result] = optim::minimize_lbfgs(loss, Parameters{{"w", Tensor(0.0f)}, {"b", Tensor(0.0f)}});
  EXPECT_TRUE(result.converged) << result.reason;
  EXPECT_NEAR(p["w"].item<float>(), 3, 1e-5);
  EXPECT_NEAR(p["b"].item<float>(), -0.5, 1e-5);
  EXPECT_EQ(p["w"].dtype(), f32);
}

TEST(LbfgsTest, AModelByItsVariables) {
  nn::Sequential model(nn::Dense(2, 6, wg::tanh, {.dtype = f64, .weight = nn::glorot_uniform(1)}),
                       nn::Dense(6, 1, {}, {.dtype = f64, .weight = nn::glorot_uniform(2)}));
  Tensor x = tests::matrix(12, 2), y = x[{wg::slice(), wg::slice(0, 1)}] * x[{wg::slice(), wg::slice(1, 2)}];
  auto loss = function("loss", [&] { return mean_squared_error(model(x), y); });
  double before = loss().item<double>();
  optim::LbfgsResult result = optim::minimize_lbfgs(loss, model, {.max_iterations = 300});
  EXPECT_LT(result.value, 1e-3 * before);
  EXPECT_EQ(loss().item<double>(), result.value);
  // An error leaves the variables as they were.
  std::vector<double> kept = model.variables()[0].value().to_vector<double>();
  int calls = 0;
  EXPECT_TRUE(says(messageOf([&] {
                     optim::minimize_lbfgs(
                         [&] {
                           if (++calls == 3)
                             throw Error({.op = "loss", .message = "no more"});
                           return reduce_sum(square(model.variables()[0]));
                         },
                         model);
                   }),
                   "no more"));
  EXPECT_EQ(model.variables()[0].value().to_vector<double>(), kept);
}

TEST(LbfgsTest, EndsAndErrors) {
  auto square1 = [](const Tensor &x) { return reduce_sum(square(x)); };
  auto [x, at] = optim::minimize_lbfgs(square1, Tensor{0.0, 0.0});
  EXPECT_TRUE(at.converged);
  EXPECT_EQ(at.iterations, 0);
  auto few = optim::minimize_lbfgs(rosenbrock, Tensor{-1.2, 1.0}, {.max_iterations = 3}).second;
  EXPECT_EQ(few.iterations, 3);
  EXPECT_FALSE(few.converged);
  auto calls = optim::minimize_lbfgs(rosenbrock, Tensor{-1.2, 1.0}, {.max_evaluations = 5}).second;
  EXPECT_EQ(calls.evaluations, 5);
  auto values = optim::minimize_lbfgs(rosenbrock, Tensor{-1.2, 1.0}, {.value_tolerance = 0.5}).second;
  EXPECT_TRUE(values.converged);
  EXPECT_GT(values.value, 1e-10);
  // log is not a number below 0; the minimum of x - log x is at 1.
  auto barrier = [](const Tensor &x) { return reduce_sum(x - log(x)); };
  auto [inside, found] = optim::minimize_lbfgs(barrier, Tensor{5.0, 0.01});
  EXPECT_TRUE(found.converged) << found.reason;
  expectNear(inside, Tensor{1.0, 1.0}, 1e-6);
  auto endless = optim::minimize_lbfgs([](const Tensor &x) { return reduce_sum(-x); }, Tensor{0.0}).second;
  EXPECT_FALSE(endless.converged);
  EXPECT_TRUE(says(messageOf([&] { optim::minimize_lbfgs(barrier, Tensor{-1.0}); }), "the value at the beginning is"));
  EXPECT_TRUE(says(messageOf([&] { optim::minimize_lbfgs(square1, Tensor{1, 2}); }), "i32[2]"));
  EXPECT_TRUE(says(messageOf([] { optim::minimize_lbfgs([](const Tensor &x) { return x; }, Tensor{1.0, 2.0}); }),
                   "the function returned f64[2]"));
  EXPECT_TRUE(says(messageOf([] { optim::minimize_lbfgs([](const Tensor &) { return Tensor(1.0); }, Tensor{1.0}); }),
                   "there is no gradient: "));
  EXPECT_TRUE(says(messageOf([&] { optim::minimize_lbfgs(square1, Tensor{1.0}, {.c1 = 0.95}); }), "c1 is 0.95"));
  EXPECT_TRUE(says(messageOf([&] {
                     function("f",
                              [&](const Tensor &x) { return optim::minimize_lbfgs(square1, x).first; })(Tensor{1.0});
                   }),
                   "minimize_lbfgs"));
}
