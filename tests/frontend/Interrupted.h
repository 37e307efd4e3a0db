// A training of which everything counts: layers with state, an optimiser with a schedule, random numbers, a data set
// in the middle of an epoch, mapped by threads. Made as a program makes it each time that it starts.
#pragma once

#include <wengert/wengert.h>

#include <cstdint>
#include <vector>

namespace wg::tests {

struct Interrupted {
  static constexpr int64_t kSteps = 23; ///< of five batches an epoch

  nn::Sequential model = layers();
  optim::Adam adam{optim::cosine_decay(0.05, kSteps, {.end = 0.01, .warmup_steps = 4})};
  Generator generator{17};
  data::Dataset set = examples();
  bool compiled;
  Function<Tensor(const Tensor &, const Tensor &)> traced{
      "step", [this](const Tensor &x, const Tensor &y) { return step(x, y); }};

  explicit Interrupted(bool compiled = false) : compiled(compiled) { adam.build(model); }

  static nn::Sequential layers() {
    nn::set_seed(1);
    return nn::Sequential(nn::Dense(6, 8, wg::tanh), nn::BatchNorm(8), nn::Dropout(0.3, 5), nn::Dense(8, 3));
  }
  static data::Dataset examples() {
    Tensor x = reshape(sin(linspace(0.1, 9.1, 40 * 6, f32)), {40, 6}), y = cast(arange(40) % int64_t(3), i32);
    auto noisy = [](const data::Examples &batch, int64_t position) {
      return data::Examples{batch.x + 0.1f * random_normal(random::key(position), batch.x.shape()), batch.y};
    };
    return data::Dataset(x, y).shuffle(3).batch(8).map(noisy, {.workers = 2});
  }
  SaveItems items() const { return {{"model", model}, {"adam", adam}, {"generator", generator}, {"data", set}}; }

  Tensor step(const Tensor &x, const Tensor &y) {
    GradientTape tape;
    Tensor loss = nn::cross_entropy(model(x + 0.1f * generator.normal(x.shape()), true), y);
    adam.apply(tape.gradient(loss, model), model);
    return loss;
  }
  /// Up to a count of steps; `each(step, loss)` after every one of them, which may say that it ends here.
  template <class F> void train(int64_t from, int64_t to, F each) {
    for (int64_t at = from; at < to;)
      for (const auto &[x, y] : set) {
        float loss = (compiled ? traced(x, y) : step(x, y)).item<float>();
        if (each(++at, loss) || at == to)
          return;
      }
  }
  /// What it gives if nobody interrupts it; place i is step i + 1.
  static std::vector<float> losses(bool compiled = false) {
    std::vector<float> losses;
    Interrupted(compiled).train(0, kSteps, [&](int64_t, float loss) {
      losses.push_back(loss);
      return false;
    });
    return losses;
  }
};

} // namespace wg::tests
