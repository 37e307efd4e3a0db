// A character model: an LSTM over a text by scan, one compiled step with its gradient and Adam. With --data DIR it
// reads DIR/input.txt (tinyshakespeare) and trains on it.
#include <wengert/wengert.h>

#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

using wg::Tensor;

int main(int argc, char **argv) {
  if (argc != 3 || std::string(argv[1]) != "--data") {
    std::cout << "skipped: no text; --data DIR names a directory with input.txt (tinyshakespeare)\n";
    return 0;
  }
  std::stringstream text;
  text << std::ifstream(std::string(argv[2]) + "/input.txt").rdbuf();
  std::set<char> letters;
  for (char c : text.str())
    letters.insert(c);
  std::vector<int64_t> numbers;
  for (char c : text.str())
    numbers.push_back(std::distance(letters.begin(), letters.find(c)));
  if (numbers.size() < 10000) {
    std::cout << "skipped: " << argv[2] << "/input.txt is not there, or short\n";
    return 0;
  }
  const int64_t kTime = 64, kBatch = 32, kHidden = 128, kLetters = static_cast<int64_t>(letters.size());

  wg::Generator generator(1);
  wg::Variable embedding(generator.normal({kLetters, kHidden}, 0, 0.1), "embedding");
  wg::Variable weight(generator.normal({2 * kHidden, 4 * kHidden}, 0, 0.06), "weight");
  wg::Variable bias(wg::zeros({4 * kHidden}), "bias"), out(generator.normal({kHidden, kLetters}, 0, 0.1), "out");
  std::vector<wg::Variable> variables{embedding, weight, bias, out};
  struct State {
    Tensor h, c;
    WENGERT_FIELDS(h, c)
  };
  auto cell = [&](const State &s, const Tensor &x) {
    Tensor gates = wg::matmul(wg::concat({x, s.h}, 1), weight) + bias;
    std::vector<Tensor> part = wg::split(gates, 4, 1);
    Tensor c = wg::sigmoid(part[0] + 1) * s.c + wg::sigmoid(part[1]) * wg::tanh(part[2]);
    Tensor h = wg::sigmoid(part[3]) * wg::tanh(c);
    return std::pair(State{h, c}, h);
  };
  wg::optim::Adam adam(0.003f);
  auto step = wg::function("step", [&](const Tensor &x, const Tensor &y) { // i64[time, batch]
    wg::GradientTape tape;
    Tensor zero = wg::zeros({kBatch, kHidden});
    auto [last, hs] = wg::scan(cell, State{zero, zero}, wg::gather(embedding, x));
    Tensor logits = wg::matmul(wg::reshape(hs, {kTime * kBatch, kHidden}), out);
    Tensor loss = wg::nn::cross_entropy(logits, wg::reshape(y, {kTime * kBatch}));
    adam.apply(tape.gradient(loss, variables), variables);
    return loss;
  });
  size_t at = 0;
  double sum = 0;
  for (int i = 1; i <= 300; ++i) {
    std::vector<int64_t> x, y;
    for (int64_t t = 0; t < kTime; ++t)
      for (int64_t b = 0; b < kBatch; ++b) {
        size_t place = (at + static_cast<size_t>(b * 31337 + t)) % (numbers.size() - 1);
        x.push_back(numbers[place]), y.push_back(numbers[place + 1]);
      }
    at += kTime;
    sum += step(Tensor::from(x, {kTime, kBatch}), Tensor::from(y, {kTime, kBatch})).item<float>();
    if (i % 100 == 0)
      std::cout << "step " << i << ": loss " << std::exchange(sum, 0) / 100 << "\n";
  }
}
