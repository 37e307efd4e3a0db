// What a training keeps between its steps is in variables with names: written in the middle and loaded into what was
// made anew, it goes on with the same bits.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>

using namespace wg;
using wg::tests::messageOf;

namespace {

struct File {
  std::string path =
      (std::filesystem::temp_directory_path() / ("wengert_resume_" + std::to_string(::getpid()) + ".safetensors"))
          .string();
  ~File() { std::filesystem::remove(path); }
};

using Make = std::function<std::unique_ptr<optim::Optimizer>(optim::Schedule)>;
struct Named {
  const char *name;
  Make make;
};
template <class T, class Options> Named maker(const char *name, Options options) {
  return {name, [options](optim::Schedule rate) { return std::make_unique<T>(std::move(rate), options); }};
}
std::vector<Named> optimizers() {
  using namespace optim;
  return {maker<SGD>("sgd", SGDOptions{.weight_decay = 0.01}),
          maker<Momentum>("momentum", MomentumOptions{.nesterov = true, .l2 = 0.01}),
          maker<Adagrad>("adagrad", AdagradOptions{}),
          maker<Adam>("adam", AdamOptions{.weight_decay = 0.01, .amsgrad = true}),
          maker<AdamW>("adamw", AdamWOptions{}),
          maker<RMSprop>("rmsprop", RMSpropOptions{.momentum = 0.5, .centered = true}),
          maker<Adadelta>("adadelta", AdadeltaOptions{}),
          maker<Adamax>("adamax", AdamaxOptions{}),
          maker<NAdam>("nadam", NAdamOptions{}),
          maker<Lion>("lion", LionOptions{}),
          maker<Lamb>("lamb", LambOptions{.scaled_weight_decay = 0.1})};
}

/// Everything that a training keeps, made as a program makes it each time that it starts.
struct Training {
  nn::Sequential model{nn::Dense(6, 8, wg::tanh), nn::BatchNorm(8), nn::Dropout(0.3, 5), nn::Dense(8, 3)};
  std::unique_ptr<optim::Optimizer> optimizer;
  optim::ParameterGroup biases;
  optim::ExponentialMovingAverage average{model, {.decay = 0.9, .bias_correction = true}};
  optim::GradientAccumulator accumulated{model};
  optim::EarlyStopping early{model, {.patience = 2}};
  metrics::Mean losses{"losses"};
  metrics::Accuracy accuracy;
  Generator generator{17};
  bool compiled;
  Function<Tensor(const Tensor &, const Tensor &)> add{
      "add", [this](const Tensor &x, const Tensor &y) { return addGradients(x, y); }};
  Function<void()> take{"take", [this] { optimizer->apply(accumulated.take_mean(), model); }};

  Training(const Make &make, optim::Schedule rate, bool compiled)
      : optimizer(make(std::move(rate))),
        biases(optimizer->add_group(
            model.trainable_variables([](const std::string &name, const Variable &) { return name.ends_with("bias"); }),
            {.learning_rate_factor = 2})),
        compiled(compiled) {
    optimizer->build(model);
  }

  Tensor addGradients(const Tensor &x, const Tensor &y) {
    GradientTape tape;
    Tensor logits = model(x + 0.1f * generator.normal(x.shape()), true), loss = nn::cross_entropy(logits, y);
    losses.update(loss), accuracy.update(logits, y);
    accumulated.add(tape.gradient(loss, model));
    return loss;
  }

  /// The loss of a micro-batch, of which two make a step.
  float step(int i) {
    if (i == 5 && optimizer->learning_rate() == 0.25)
      optimizer->set_learning_rate(0.125), biases.set_learning_rate_factor(0.5);
    Tensor x = cast(tests::matrix(4, 6, i), f32), y{i % 3, 1, 2, 0};
    Tensor loss = compiled ? add(x, y) : addGradients(x, y);
    if (i % 2) {
      compiled ? take() : optimizer->apply(accumulated.take_mean(), model);
      average.update();
      early.update(loss);
    }
    return loss.item<float>();
  }

  std::vector<nn::Module::Named> state() const {
    std::vector<nn::Module::Named> all{{"generator", generator.state()}};
    auto put = [&](const std::string &prefix, const std::vector<nn::Module::Named> &named) {
      for (const auto &[name, variable] : named)
        all.emplace_back(prefix + "/" + name, variable);
    };
    put("model", model.named_variables());
    put("optimizer", optimizer->named_state());
    put("average", average.named_state());
    put("accumulated", accumulated.named_state());
    put("early", early.named_state());
    put("losses", losses.named_state());
    put("accuracy", accuracy.named_state());
    return all;
  }
};

/// The losses from a step on, and the state after them.
std::pair<std::vector<float>, std::vector<Tensor>> goOn(Training &training, int from) {
  constexpr int kSteps = 12;
  std::pair<std::vector<float>, std::vector<Tensor>> seen;
  for (int i = from; i < kSteps; ++i)
    seen.first.push_back(training.step(i));
  for (const auto &[name, variable] : training.state())
    seen.second.push_back(variable.value());
  return seen;
}

bool sameBits(const Tensor &a, const Tensor &b) {
  std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return a.dtype() == b.dtype() && x.size() == y.size() && std::memcmp(x.data(), y.data(), 8 * x.size()) == 0;
}

/// Two micro-batches make a step, so an odd number ends with a half of one.
void goesOnFrom(int steps, const Named &optimizer, const optim::Schedule &rate, bool compiled) {
  File file;
  Training interrupted(optimizer.make, rate, compiled);
  for (int i = 0; i < steps; ++i)
    interrupted.step(i);
  save_weights(file.path, interrupted.state());
  auto [losses, state] = goOn(interrupted, steps);
  Training resumed(optimizer.make, rate, compiled);
  load_weights(file.path, resumed.state());
  auto [resumedLosses, resumedState] = goOn(resumed, steps);
  EXPECT_EQ(resumedLosses, losses) << optimizer.name << " after " << steps;
  ASSERT_EQ(resumedState.size(), state.size());
  for (size_t i = 0; i < state.size(); ++i)
    EXPECT_TRUE(sameBits(resumedState[i], state[i]))
        << optimizer.name << " after " << steps << ": " << resumed.state()[i].first;
}

} // namespace

TEST(ResumeTest, EveryOptimizerGoesOnWithTheSameBits) {
  for (const Named &optimizer : optimizers())
    for (int steps : {1, 6})
      goesOnFrom(steps, optimizer, optim::cosine_decay(0.05, 5, {.end = 0.01, .warmup_steps = 2}), false);
}

TEST(ResumeTest, CompiledStepsDoSo) {
  for (const Named &optimizer : {optimizers()[3], optimizers()[8]})
    for (int steps : {3, 6})
      goesOnFrom(steps, optimizer, optim::cosine_decay(0.05, 5, {.end = 0.01, .warmup_steps = 2}), true);
}

// At step 5 the program sets them; the one that is interrupted after it does not come there again.
TEST(ResumeTest, RatesAndFactorsThatTheProgramSetAreState) {
  for (int steps : {4, 5, 6, 8})
    goesOnFrom(steps, optimizers()[1], 0.25, false);
}

TEST(ResumeTest, TheNamesOfAnOptimizersState) {
  Variable w(Tensor{1.0f, 2.0f}, "w"), b(0.0f, "b"), c(0.0f, "c");
  optim::Momentum momentum(0.5);
  momentum.add_group(b), momentum.add_group(c);
  momentum.build(std::vector{w, b});
  std::vector<std::string> names;
  for (const auto &[name, variable] : momentum.named_state())
    names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"step", "w.velocity", "b.velocity", "learning_rate",
                                             "learning_rate_factor", "learning_rate_factor_1"}));
}

// A variable that had no gradient yet is not stepped, and one that had is, whoever added it.
TEST(ResumeTest, WhichSumsAreGradientsIsState) {
  File file;
  Variable p(1.0, "p"), q(2.0, "q"), r(3.0, "r");
  optim::GradientAccumulator a({p, q, r}), b({p, q, r});
  a.add(std::vector{Grad(Tensor(2.0)), Grad(Tensor(1.0)), Grad::none("r is not used")});
  save_weights(file.path, a.named_state());
  load_weights(file.path, b.named_state());
  b.add(std::vector{Grad(Tensor(4.0)), Grad::none("not here"), Grad::none("r is not used")});
  std::vector<Grad> sums;
  auto take = function("take", [&] { // traced when nothing was added here by a trace
    sums = b.sum();
    return stack({sums[0].value(), sums[1].value()});
  });
  EXPECT_EQ(take().to_vector<double>(), (std::vector<double>{6, 1}));
  EXPECT_FALSE(sums[2]);
  EXPECT_EQ(sums[2].reason(), "r is not used");
}

TEST(ResumeTest, AveragesThatAreSwappedInAreNotSaved) {
  Variable p(1.0, "p");
  optim::ExponentialMovingAverage average(p);
  {
    auto swapped = average.scope();
    std::string message = messageOf([&] { average.named_state(); });
    EXPECT_NE(message.find("the averages are swapped in"), std::string::npos) << message;
    EXPECT_NE(message.find("ResumeTest.cpp"), std::string::npos) << message;
  }
  EXPECT_EQ(average.named_state().size(), 2u);
}

TEST(ResumeTest, AMinimumIsSoughtInPartsWithTheBitsOfOneSearch) {
  File file;
  auto at = [](const Variable &p) {
    return [p] { return reduce_sum(100.0 * square(p[{1}] - square(p[{0}])) + square(1.0 - p[{0}])); };
  };
  Variable whole(Tensor{-1.2, 1.0}, "p");
  std::vector<std::vector<double>> expected;
  for (int64_t iterations = 4; iterations <= 20; iterations += 4) {
    whole.assign(Tensor{-1.2, 1.0});
    optim::minimize_lbfgs(at(whole), whole, {.max_iterations = iterations, .history = 3});
    expected.push_back(whole.value().to_vector<double>());
  }
  for (const std::vector<double> &end : expected) {
    Variable p(Tensor{-1.2, 1.0}, "p");
    optim::LbfgsHistory history(p, 3);
    auto all = [&] {
      std::vector<nn::Module::Named> named = history.named_state();
      named.emplace_back("p", p);
      return named;
    };
    if (&end != &expected.front())
      load_weights(file.path, all());
    optim::minimize_lbfgs(at(p), p, history, {.max_iterations = 4});
    EXPECT_EQ(p.value().to_vector<double>(), end);
    save_weights(file.path, all());
  }
  EXPECT_NE(expected[0], expected[1]);
  Variable other(Tensor{1.0, 2.0, 3.0}, "other");
  EXPECT_NE(messageOf([&] {
              optim::minimize_lbfgs([&] { return reduce_sum(square(other)); }, other, optim::LbfgsHistory(whole));
            }).find("the history is one of 2 elements, the parameters have 3"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { optim::LbfgsHistory history(whole, 0); }).find("history is 0"), std::string::npos);
}

TEST(ResumeTest, ScoresOfRocAucAreGivenToAnother) {
  metrics::RocAuc a, b;
  a.update(Tensor{0.1, 0.4, 0.35}, Tensor{0, 0, 1});
  b.update(a.scores(), a.labels());
  for (const metrics::RocAuc &each : {a, b})
    each.update(Tensor{0.8}, Tensor{1});
  EXPECT_EQ(b.result(), a.result());
  EXPECT_EQ(b.labels().to_vector<double>(), (std::vector<double>{0, 0, 1, 1}));
}
