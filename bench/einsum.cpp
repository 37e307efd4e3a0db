// What the order of a product's letters costs: twenty random equations of three to five letters, each compiled as it
// is, eager, and beside the fastest order of the same result's letters with one transpose behind it. Also every order
// of one equation: `einsum "nki,nkj->ijk" n=10000 k=25 i=32 j=32`, or as many as `'#=12'` says. Times are the least of
// alternating rounds, as what else the machine does only adds to them; one thread.
#include "Timing.h"

#include <wengert/wengert.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace wg;

namespace {

struct Equation {
  std::string a, b, c;
  std::map<char, int64_t> sizes;
  std::string text() const { return a + "," + b + "->" + c; }
  int64_t elements(const std::string &letters) const {
    int64_t count = 1;
    for (char letter : letters)
      count *= sizes.at(letter);
    return count;
  }
  Shape shape(const std::string &letters) const {
    std::vector<int64_t> list;
    for (char letter : letters)
      list.push_back(sizes.at(letter));
    return Shape(list);
  }
  std::string letters() const {
    std::string all;
    for (auto [letter, size] : sizes)
      all += letter;
    return all;
  }
};

/// The least of some rounds in which each runs in turn, after a call that finds caches as the one before left them.
std::vector<double> timesOf(const std::vector<std::function<Tensor()>> &each, int rounds = 7) {
  std::vector<double> times(each.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < each.size(); ++i) {
      each[i]();
      times[i] = std::min(times[i], bench::secondsOf(each[i], 0.004));
    }
  return times;
}

/// Each letter in two or three of the tensors, of sizes whose product is up to 10^9, and no tensor beyond 10^8.
Equation randomEquation(std::mt19937_64 &random) {
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (;;) {
    Equation eq;
    int64_t count = 3 + below(3);
    double left = std::log(1e4) + std::log(1e5) * static_cast<double>(below(1001)) / 1000;
    std::vector<double> shares;
    for (int64_t i = 0; i < count; ++i)
      shares.push_back(0.15 + static_cast<double>(below(1001)) / 1000);
    double sum = 0;
    for (double share : shares)
      sum += share;
    for (int64_t i = 0; i < count; ++i) {
      char letter = static_cast<char>('i' + i);
      eq.sizes[letter] =
          std::max<int64_t>(2, static_cast<int64_t>(std::exp(left * shares[static_cast<size_t>(i)] / sum)));
      int64_t group = below(4); // batch, m, n, k
      for (auto [tensor, without] : {std::pair(&eq.a, 2), std::pair(&eq.b, 1), std::pair(&eq.c, 3)})
        if (group != without)
          tensor->insert(static_cast<size_t>(below(static_cast<int64_t>(tensor->size()) + 1)), 1, letter);
    }
    if (eq.a.empty() || eq.b.empty() || eq.c.size() < 2 || eq.elements(eq.letters()) > 1'000'000'000 ||
        std::max({eq.elements(eq.a), eq.elements(eq.b), eq.elements(eq.c)}) > 100'000'000)
      continue;
    return eq;
  }
}

Tensor numbers(const Shape &shape, int64_t count) { return reshape(sin(arange(0, count, 1, f32) * 1.7f), shape); }

struct Row {
  double compiled, eager, fastest, transposed; ///< seconds; `transposed` is the fastest order and its transpose
  std::string order;                           ///< the fastest one
};

/// The equation as it is, eager, and in up to `most` orders of its result.
Row measure(const Equation &eq, size_t most, bool print) {
  Tensor a = numbers(eq.shape(eq.a), eq.elements(eq.a)), b = numbers(eq.shape(eq.b), eq.elements(eq.b));
  std::vector<std::string> orders;
  std::string order = eq.c;
  std::sort(order.begin(), order.end());
  do
    orders.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  std::mt19937_64 random(orders.size());
  std::shuffle(orders.begin(), orders.end(), random);
  orders.erase(std::find(orders.begin(), orders.end(), eq.c));
  orders.insert(orders.begin(), eq.c);
  orders.resize(std::min(orders.size(), most));
  auto call = [&](const std::string &c) {
    return [f = wg::function("f", [text = eq.a + "," + eq.b + "->" +
                                          c](const Tensor &x, const Tensor &y) { return einsum(text, x, y); }),
            a, b] { return f(a, b); };
  };
  std::vector<std::function<Tensor()>> each{[&] { return einsum(eq.text(), a, b); }};
  for (const std::string &c : orders)
    each.push_back(call(c));
  // Right before it is timed.
  Tensor eager = each[0](), compiled = each[1]();
  double scale = reduce_max(abs(eager)).item<float>(), off = reduce_max(abs(eager - compiled)).item<float>();
  if (!(off <= 1e-3 * std::max(1.0, scale))) {
    fmt::print("{}: compiled and eager differ by {} of {}\n", eq.text(), off, scale);
    std::exit(1);
  }
  std::vector<double> times = timesOf(each);
  size_t best = static_cast<size_t>(std::min_element(times.begin() + 1, times.end()) - times.begin());
  std::string fastest = orders[best - 1];
  double slowest = 0;
  // A transpose of the fastest order's result to each other order.
  std::vector<std::function<Tensor()>> transposes;
  Tensor result = each[best]();
  for (const std::string &c : orders) {
    std::vector<int64_t> permutation;
    for (char letter : c)
      permutation.push_back(static_cast<int64_t>(fastest.find(letter)));
    transposes.push_back([f = wg::function("t", [=](const Tensor &x) { return transpose(x, permutation); }), result] {
      return f(result);
    });
  }
  std::vector<double> moves = timesOf(transposes);
  for (size_t i = 0; i < orders.size(); ++i) {
    double limit = times[best] + (orders[i] == fastest ? 0 : moves[i]);
    // By turns with the fastest: minutes lie between rounds of many long calls. What else the machine does passes.
    double own = times[i + 1], fast = times[best], move = moves[i];
    for (int again = 0; again < 3 && own > 1.25 * limit; ++again) {
      std::vector<double> more = timesOf({each[i + 1], each[best], transposes[i]});
      own = again == 0 ? more[0] : std::min(own, more[0]);
      fast = again == 0 ? more[1] : std::min(fast, more[1]);
      move = again == 0 ? more[2] : std::min(move, more[2]);
      times[i + 1] = own;
      limit = fast + (orders[i] == fastest ? 0 : move);
    }
    slowest = std::max(slowest, times[i + 1] / limit);
    if (print)
      fmt::print("  {:<12} {:>12.1f} us, fastest + transpose {:>12.1f} us  {:>6.2f}\n", orders[i], times[i + 1] * 1e6,
                 limit * 1e6, times[i + 1] / limit);
  }
  return {times[1], times[0], times[best], slowest, fastest};
}

void report(const Equation &eq, size_t most, bool print) {
  std::string sizes;
  for (auto [letter, size] : eq.sizes)
    sizes += fmt::format(" {}={}", letter, size);
  Row row = measure(eq, most, print);
  fmt::print("{:<22} {:<44} {:>11.1f} {:>11.1f} {:>8.2f}   {:<6} {:>8.2f}\n", eq.text(), sizes, row.compiled * 1e6,
             row.eager * 1e6, row.compiled / row.eager, row.order, row.transposed);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  set_num_threads(1);
  fmt::print("{:<22} {:<44} {:>11} {:>11} {:>8}   {:<6} {:>8}\n", "equation", " sizes, f32", "compiled us", "eager us",
             "ratio", "best", "worst order / (best + transpose)");
  if (argc > 2) {
    std::string text = argv[1];
    size_t comma = text.find(','), arrow = text.find("->");
    Equation eq{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2), {}};
    for (int i = 2; i < argc; ++i)
      eq.sizes[argv[i][0]] = std::atoll(argv[i] + 2);
    size_t orders = eq.sizes.contains('#') ? static_cast<size_t>(eq.sizes['#']) : 120;
    eq.sizes.erase('#');
    report(eq, orders, true);
    return 0;
  }
  std::mt19937_64 random(argc > 1 ? static_cast<uint64_t>(std::atoll(argv[1])) : 1);
  for (int i = 0; i < 20; ++i)
    report(randomEquation(random), 12, false);
}
