// A language model of characters: two blocks of causal attention (Vaswani et al. 2017), normalised first. With
// `--data DIR` it learns from DIR/tinyshakespeare/input.txt and writes a few lines; without, a verse by heart.
#include <wengert/wengert.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <set>

using wg::Tensor;

struct Block : wg::nn::Module {
  wg::nn::LayerNorm first, second;
  wg::nn::MultiHeadAttention attention;
  wg::nn::Dense up, down;
  Block(int64_t features, int64_t heads)
      : first(features), second(features), attention(features, heads), up(features, 4 * features, wg::gelu),
        down(4 * features, features) {
    add("first", first), add("attention", attention), add("second", second), add("up", up), add("down", down);
  }
  Tensor operator()(const Tensor &x) const {
    Tensor y = x + attention(first(x), {.causal = true});
    return y + down(up(second(y)));
  }
};

struct Transformer : wg::nn::Module {
  wg::nn::Embedding letters, positions;
  wg::nn::Sequential blocks;
  Transformer(int64_t count, int64_t time, int64_t features)
      : letters(count, features), positions(time, features),
        blocks(Block(features, 4), Block(features, 4), wg::nn::LayerNorm(features), wg::nn::Dense(features, count)) {
    add("letters", letters), add("positions", positions), add("blocks", blocks);
  }
  /// Shapes: text i64[batch, time] -> f32[batch, time, count].
  Tensor operator()(const Tensor &text) const { return blocks(letters(text) + positions(wg::arange(text.dim(1)))); }
};

int main(int argc, char **argv) {
  std::string text = "Twinkle, twinkle, little star,\nHow I wonder what you are!\nUp above the world so high,\n"
                     "Like a diamond in the sky.\n";
  const bool real = argc == 3 && std::string(argv[1]) == "--data";
  if (real) {
    std::ifstream file(std::string(argv[2]) + "/tinyshakespeare/input.txt");
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const int64_t time = real ? 64 : 48, batch = real ? 32 : 8, steps = real ? 1500 : 150;
  if (static_cast<int64_t>(text.size()) <= time) {
    std::cout << "skipped: " << argv[2] << "/tinyshakespeare/input.txt is not there, or short\n";
    return 0;
  }
  std::set<char> set(text.begin(), text.end());
  std::string alphabet(set.begin(), set.end());
  std::vector<int64_t> numbers;
  for (char c : text)
    numbers.push_back(static_cast<int64_t>(alphabet.find(c)));
  Tensor all = Tensor::from(numbers, {static_cast<int64_t>(numbers.size())});

  wg::nn::set_seed(1);
  Transformer model(static_cast<int64_t>(alphabet.size()), time, real ? 96 : 32);
  wg::optim::AdamW adam(wg::optim::cosine_decay(real ? 0.003 : 0.01, steps, {.warmup_steps = 20}),
                        {.weight_decay = 0.01});
  wg::Generator random(2);
  auto step = wg::function("step", [&] {
    // Parts of the text from random places on, and the letter after each.
    Tensor from = random.integers({batch, 1}, 0, all.dim(0) - time);
    Tensor part = wg::gather(all, from + wg::arange(time + 1));
    wg::GradientTape tape;
    Tensor logits = model(part[{wg::ellipsis, wg::slice({}, -1)}]);
    Tensor loss = wg::nn::cross_entropy(logits, part[{wg::ellipsis, wg::slice(1, {})}]);
    adam.apply(tape.gradient(loss, model), model);
    return loss;
  });
  auto start = std::chrono::steady_clock::now();
  double mean = 0;
  for (int64_t i = 1; i <= steps; ++i) {
    mean += step().item<float>();
    if (i % 250 == 0) {
      std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      std::cout << "step " << i << ": loss " << std::exchange(mean, 0) / 250 << ", " << seconds.count() << " s\n";
    }
  }

  // The model goes on from a beginning: with the letter that is most probable, or one that is drawn.
  auto predict = wg::function("predict", [&](const Tensor &window) { return model(window)[0]; });
  std::string written = text.substr(0, real ? 1 : 8);
  while (static_cast<int64_t>(written.size()) < (real ? 400 : 48)) {
    std::string last = written.substr(written.size() - std::min<size_t>(written.size(), time));
    std::vector<int64_t> window(time); // what is behind the last letter, causal attention does not see
    std::transform(last.begin(), last.end(), window.begin(), [&](char c) { return alphabet.find(c); });
    Tensor logits = predict(Tensor::from(window, {1, time}))[static_cast<int64_t>(last.size()) - 1];
    written += alphabet[(real ? random.categorical(logits) : wg::argmax(logits)).item<int64_t>()];
  }
  std::cout << written << "\n";
}
