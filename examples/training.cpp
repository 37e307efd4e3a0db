// A whole training of a digit classifier: batches made ahead, a schedule, weight decay without the biases, averaged
// weights, early stopping, a progress line (where the standard error stream is a terminal).
#include <wengert/wengert.h>

#include <iostream>

int main() {
  wg::nn::set_seed(1);
  auto [train, test] = wg::data::digits();
  wg::nn::Sequential model(wg::nn::Dense(64, 32, wg::relu), wg::nn::Dense(32, 10));
  std::vector<wg::Variable> variables = model.trainable_variables();

  wg::optim::Adam adam(wg::optim::cosine_decay(0.01, 600, {.warmup_steps = 50}), {.weight_decay = 0.01});
  adam.add_group(
      model.trainable_variables([](const std::string &name, const wg::Variable &) { return name.ends_with("bias"); }),
      {.weight_decay = 0});
  wg::optim::ExponentialMovingAverage average(model, {.decay = 0.98, .bias_correction = true});
  wg::optim::EarlyStopping early(model, {.patience = 3, .mode = wg::optim::Mode::max});
  wg::metrics::Accuracy accuracy;

  auto step = wg::function("step", [&](const wg::Tensor &x, const wg::Tensor &y) {
    wg::GradientTape tape;
    wg::Tensor loss = wg::nn::cross_entropy(model(x), y);
    adam.apply(tape.gradient(loss, variables), variables);
    average.update();
    return loss;
  });
  auto evaluate =
      wg::function("evaluate", [&](const wg::Tensor &x, const wg::Tensor &y) { accuracy.update(model(x), y); });

  auto noisy = [](const wg::data::Examples &batch, int64_t position) {
    return wg::data::Examples{batch.x + wg::random_normal(wg::random::key(position), batch.x.shape(), 0, 0.05),
                              batch.y};
  };
  auto batches = wg::data::Dataset(train).shuffle(1).batch(32, true).map(noisy, {.workers = 2}).prefetch(4);
  for (int epoch = 0; epoch < 20; ++epoch) {
    auto line = wg::progress(batches, "epoch " + std::to_string(epoch));
    for (const auto &[x, y] : line)
      line.set("loss", step(x, y));
    auto averaged = average.scope(); // the model has the averages until the end of the block
    accuracy.reset();
    for (const auto &[x, y] : wg::data::Dataset(test).batch(100))
      evaluate(x, y);
    if (early.update(accuracy.result()))
      break;
  }
  early.restore_best_weights();
  wg::metrics::ConfusionMatrix matrix(10);
  matrix.update(model(test.x), test.y);
  wg::Tensor right = wg::reduce_sum(matrix.result() * wg::eye(10, {}, wg::i64));
  double share = right.item<double>() / static_cast<double>(test.size());
  std::cout << "traces of the step: " << step.trace_count()
            << ", examples: " << wg::reduce_sum(matrix.result()).item<int64_t>() << "\n";
  std::cout << "more than 92 % right: " << (share > 0.92) << ", as the best epoch: " << (share == early.best()) << "\n";
}
