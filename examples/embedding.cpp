// Vectors of words by skip-grams with negative samples (Mikolov et al. 2013). The gradient of a table is the rows that
// were looked up, and a step touches these alone, however large the table is. With `--data DIR` the words are those of
// DIR/tinyshakespeare/input.txt; without, made ones: in a sentence all begin with the same letter.
#include <wengert/wengert.h>

#include <cctype>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>

using wg::Tensor;

static std::vector<std::string> madeWords() {
  std::vector<std::string> words;
  for (int64_t number : wg::random_integers(wg::random::key(1), {30000}, 0, 100).to_vector<int64_t>())
    words.push_back(std::string(1, static_cast<char>('a' + words.size() / 15 % 10)) + std::to_string(number));
  return words;
}

static std::vector<std::string> wordsOf(const std::string &path) {
  std::vector<std::string> words;
  std::map<std::string, int> often;
  std::string word;
  std::ifstream file(path);
  for (char c; file.get(c);)
    if (std::isalpha(static_cast<unsigned char>(c)))
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!word.empty())
      ++often[words.emplace_back(std::exchange(word, {}))];
  std::erase_if(words, [&](const std::string &each) { return often[each] < 20; });
  return words;
}

int main(int argc, char **argv) {
  const bool real = argc == 3 && std::string(argv[1]) == "--data";
  std::map<std::string, int64_t> numbers;
  std::vector<std::string> names;
  std::vector<int64_t> places;
  for (const std::string &word : real ? wordsOf(std::string(argv[2]) + "/tinyshakespeare/input.txt") : madeWords()) {
    auto [at, isNew] = numbers.emplace(word, static_cast<int64_t>(names.size()));
    if (isNew)
      names.push_back(word);
    places.push_back(at->second);
  }
  if (names.empty()) {
    std::cout << "skipped: no text in " << argv[2] << "/tinyshakespeare/input.txt\n";
    return 0;
  }
  const Tensor text = Tensor::from(places, {static_cast<int64_t>(places.size())});
  const int64_t count = static_cast<int64_t>(names.size()), features = real ? 64 : 16, batch = real ? 512 : 128,
                window = 4, negatives = 5;

  wg::nn::set_seed(1);
  wg::nn::Embedding words(count, features), contexts(count, features, {.weight = wg::nn::zeros()});
  std::vector<wg::Variable> tables{words.weight(), contexts.weight()};
  auto gradients = [&](const Tensor &word, const Tensor &near, const Tensor &other) {
    wg::GradientTape tape;
    Tensor w = words(word); // [batch, features]
    Tensor yes = wg::einsum("bf,bf->b", w, contexts(near)), no = wg::einsum("bf,bnf->bn", w, contexts(other));
    Tensor loss = -wg::reduce_sum(wg::log_sigmoid(yes)) - wg::reduce_sum(wg::log_sigmoid(-no));
    return tape.gradient(loss, tables);
  };
  wg::Generator random(1);
  wg::optim::Adagrad adagrad(0.1);
  auto step = wg::function("step", [&] {
    Tensor at = random.integers({batch}, window, text.dim(0) - window);
    Tensor beside = random.integers({batch}, 1, window + 1) * (2 * random.integers({batch}, 0, 2) - 1);
    Tensor other = wg::gather(text, random.integers({batch, negatives}, 0, text.dim(0))); // as often as the text has it
    adagrad.apply(gradients(wg::gather(text, at), wg::gather(text, at + beside), other), tables);
  });
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < (real ? 10000 : 2000); ++i)
    step();
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  // What a step does to the tables.
  for (const wg::Grad &gradient : gradients(Tensor{1, 2}, Tensor{2, 1}, Tensor{{3, 1}, {4, 1}}))
    std::cout << "a gradient of " << gradient.shape() << " is rows: " << gradient.is_sparse() << ", "
              << gradient.sparse_rows().rows.shape() << "\n";
  Tensor before = words.weight().value();
  step();
  Tensor changed = wg::count_nonzero(wg::reduce_max(wg::abs(words.weight() - before), 1));
  std::cout << "a step of " << batch << " examples changed " << changed.item<int64_t>() << " of " << count << " rows\n";
  int64_t inPlace = 0; // two tables, and what Adagrad keeps for each
  for (const wg::KernelInfo &kernel : step.trace().kernels())
    inPlace += kernel.summary == "index_add";
  std::cout << "kernels that add rows in place: " << inPlace << "\n";

  // Words that stand near the same words are near each other.
  Tensor unit = words.weight() / wg::norm(words.weight(), 1, true);
  Tensor nearest = wg::top_k(wg::matmul(unit, unit, {.transpose_b = true}), 6).indices; // of each word, itself first
  if (real) {
    std::cout << seconds.count() << " s\n";
    for (const char *word : {"king", "sword", "he", "rome", "romeo", "say"}) {
      std::cout << word << ":";
      for (int64_t i : nearest[{numbers.at(word), wg::slice(1, {})}].to_vector<int64_t>())
        std::cout << " " << names[static_cast<size_t>(i)];
      std::cout << "\n";
    }
  } else {
    int64_t alike = 0;
    for (const auto &row : nearest.to<std::vector<std::vector<int64_t>>>())
      alike += names[static_cast<size_t>(row[0])][0] == names[static_cast<size_t>(row[1])][0];
    std::cout << "the nearest word begins with the same letter: " << (alike > 950) << "\n";
  }
}
