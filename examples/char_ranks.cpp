// The character model of char_lstm.cpp over several ranks, with checkpoints: killed or asked to end (SIGTERM), it goes
// on where it was, on as many ranks as there are then, and has the same weights.
//   mpirun -n 4 char_ranks --data DIR [--steps N] [--checkpoints RUN]       DIR/input.txt: tinyshakespeare
//   char_ranks --data DIR --ranks 4                                         ranks as threads
#include <wengert/wengert.h>

#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

using wg::Tensor;

namespace {

constexpr int64_t kTime = 32, kBatch = 32, kHidden = 64;

struct State {
  Tensor h, c;
  WENGERT_FIELDS(h, c)
};

int train(const std::string &text, int64_t steps, const std::string &directory) {
  std::set<char> letters(text.begin(), text.end());
  std::vector<int64_t> numbers;
  for (char c : text)
    numbers.push_back(std::distance(letters.begin(), letters.find(c)));
  auto kLetters = static_cast<int64_t>(letters.size());

  wg::Generator generator(1);
  wg::Variable embedding(generator.normal({kLetters, kHidden}, 0, 0.1), "embedding");
  wg::Variable weight(generator.normal({2 * kHidden, 4 * kHidden}, 0, 0.06), "weight");
  wg::Variable bias(wg::zeros({4 * kHidden}), "bias"), out(generator.normal({kHidden, kLetters}, 0, 0.1), "out");
  std::vector<wg::Variable> variables{embedding, weight, bias, out};
  auto cell = [&](const State &s, const Tensor &x) {
    Tensor gates = wg::matmul(wg::concat({x, s.h}, 1), weight) + bias;
    std::vector<Tensor> part = wg::split(gates, 4, 1);
    Tensor c = wg::sigmoid(part[0] + 1) * s.c + wg::sigmoid(part[1]) * wg::tanh(part[2]);
    Tensor h = wg::sigmoid(part[3]) * wg::tanh(c);
    return std::pair(State{h, c}, h);
  };
  wg::optim::Adam adam(0.003f);
  adam.build(variables);
  auto step = wg::dist::data_parallel("step", [&](const Tensor &x, const Tensor &y) { // i64[rows, time]
    int64_t rows = x.dim(0);
    wg::GradientTape tape;
    Tensor zero = wg::zeros({rows, kHidden});
    auto [last, hs] = wg::scan(cell, State{zero, zero}, wg::gather(embedding, wg::transpose(x)));
    Tensor logits = wg::matmul(wg::reshape(hs, {kTime * rows, kHidden}), out);
    Tensor loss = wg::nn::cross_entropy(logits, wg::reshape(wg::transpose(y), {kTime * rows}));
    adam.apply(tape.gradient(loss, variables), variables);
    return loss;
  });

  wg::Variable losses(0.0, "losses");
  wg::SaveItems items{{"adam", adam}, {"losses", losses}};
  for (const wg::Variable &variable : variables)
    items.emplace_back(variable.name(), variable);
  std::optional<wg::CheckpointManager> checkpoints;
  int64_t first = 0;
  if (!directory.empty()) {
    checkpoints.emplace(directory, items, wg::CheckpointOptions{.every_steps = 50});
    first = checkpoints->restore().value_or(0);
  }
  if (wg::dist::rank() == 0)
    std::cout << wg::dist::size() << " ranks, from step " << first << std::endl;
  for (int64_t i = first; i < steps; ++i) {
    auto [begin, end] = wg::dist::rows_of_rank(kBatch);
    std::vector<int64_t> x, y;
    for (int64_t b = begin; b < end; ++b)
      for (int64_t t = 0; t < kTime; ++t) {
        auto place = static_cast<size_t>(i * kTime + b * 31337 + t) % (numbers.size() - 1);
        x.push_back(numbers[place]), y.push_back(numbers[place + 1]);
      }
    losses.assign_add(
        wg::cast(step(Tensor::from(x, {end - begin, kTime}), Tensor::from(y, {end - begin, kTime})), wg::f64));
    if (checkpoints)
      checkpoints->step();
    if (wg::dist::terminating() && checkpoints) {
      checkpoints->save(), checkpoints->wait();
      return 143;
    }
    if ((i + 1) % 100 == 0) {
      if (wg::dist::rank() == 0)
        std::cout << "step " << i + 1 << ": loss " << losses.item<double>() / 100 << std::endl;
      losses.assign(0.0);
    }
  }
  wg::dist::check_same(variables);
  if (wg::dist::rank() == 0)
    std::cout << "weights " << wg::dist::digest(variables) << std::endl;
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  std::map<std::string, std::string> options{{"--steps", "300"}};
  for (int i = 1; i + 1 < argc; i += 2)
    options[argv[i]] = argv[i + 1];
  std::stringstream text;
  text << std::ifstream(options["--data"] + "/input.txt").rdbuf();
  if (text.str().size() < 10000) {
    std::cout << "skipped: no text; --data DIR names a directory with input.txt (tinyshakespeare)\n";
    return 0;
  }
  wg::dist::catch_termination();
  int64_t steps = std::stoll(options["--steps"]);
  if (!options.contains("--ranks")) {
    wg::dist::init();
    return train(text.str(), steps, options["--checkpoints"]);
  }
  int status = 0;
  wg::dist::run(std::stoi(options["--ranks"]), [&] {
    int own = train(text.str(), steps, options["--checkpoints"]);
    if (wg::dist::rank() == 0)
      status = own;
  });
  return status;
}
