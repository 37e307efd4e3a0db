// Random products with related letters, each of the three tensors holding any letter of a relation, in any order of its
// axes: the eager kernel beside loops over all letters, compiled code beside the eager kernel, with and without an
// epilogue.
#include "ir/Bridge.h"
#include "runtime/Letters.h"
#include "tests/agreement/Bounds.h"
#include "tests/agreement/Engines.h"

#include "mlir/Parser/Parser.h"

#include <map>
#include <random>

using namespace mlir;

namespace wg::tests {
namespace {

using runtime::Array;
using runtime::DType;

/// A product that was drawn: its letters, their sizes, and the relations with whole numbers for letters.
struct Product {
  std::string tensors[3], relations;
  std::map<char, int64_t> sizes;
  std::vector<std::array<int64_t, 4>> factors; ///< B, S, D, C of each
  std::vector<std::string> letters;            ///< h, p, r of each

  std::string equation() const {
    return tensors[0] + "," + tensors[1] + "->" + tensors[2] + (relations.empty() ? "" : "; " + relations);
  }
  runtime::Shape shape(int tensor) const {
    runtime::Shape shape;
    for (char letter : tensors[tensor])
      shape.push_back(sizes.at(letter));
    return shape;
  }
  runtime::Ints related() const {
    runtime::Ints list;
    for (const std::string &each : letters)
      for (char letter : each)
        if (tensors[2].find(letter) != std::string::npos)
          list.push_back(sizes.at(letter));
    return list;
  }
};

Product draw(std::mt19937_64 &random) {
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  Product product;
  auto size = [&]() -> int64_t {
    int64_t kind = below(20);
    return kind == 0 ? 0 : kind < 3 ? 1 : kind < 15 ? 2 + below(6) : kind < 19 ? 8 + below(20) : 30 + below(30);
  };
  const char *names[] = {"hpr", "wqs"};
  for (int64_t i = 0, count = 1 + below(2); i < count; ++i) {
    std::string letters = names[i];
    int64_t b = below(4) == 0 ? 1 + below(3) : 1, s = 1 + below(3), d = (1 + below(3)) * (below(5) == 0 ? -1 : 1),
            c = below(9) - 4;
    product.factors.push_back({b, s, d, c});
    product.letters.push_back(letters);
    auto number = [](int64_t n) { return n == 1 ? "" : std::to_string(n); };
    product.relations += std::string(i ? "; " : "") + number(b) + letters[0] + "=" + number(s) + letters[1] +
                         (d > 0 ? "+" : "-") + number(std::abs(d)) + letters[2] +
                         (c == 0 ? "" : (c > 0 ? "+" : "-") + std::to_string(std::abs(c)));
    // Mostly what a convolution has: a window, places, and an image that both make up.
    int64_t places = size(), window = below(4) == 0 ? size() : 1 + below(5);
    product.sizes[letters[1]] = places, product.sizes[letters[2]] = window;
    product.sizes[letters[0]] =
        below(3) == 0 ? size() : std::max<int64_t>(0, (s * places + std::abs(d) * window) / b - below(4));
    std::array<int, 3> order{0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    for (int k = 0; k < 3; ++k)
      product.tensors[order[static_cast<size_t>(k)]] += letters[static_cast<size_t>(k)];
  }
  for (char letter : std::string("bmnklo").substr(0, static_cast<size_t>(below(6)))) {
    product.sizes[letter] = size();
    int64_t without = below(4);
    for (int k = 0; k < 3; ++k)
      if (k != without)
        product.tensors[k] += letter;
  }
  for (std::string &tensor : product.tensors) {
    if (below(2) == 0)
      std::shuffle(tensor.begin(), tensor.end(), random);
  }
  return product;
}

/// All places of all letters.
void forPlaces(const Product &product, const std::function<void(std::map<char, int64_t> &)> &f) {
  std::map<char, int64_t> at;
  std::function<void(std::map<char, int64_t>::const_iterator)> walk = [&](auto letter) {
    if (letter == product.sizes.end()) {
      for (size_t i = 0; i < product.letters.size(); ++i) {
        const std::string &l = product.letters[i];
        const std::array<int64_t, 4> &x = product.factors[i];
        if (x[0] * at[l[0]] != x[1] * at[l[1]] + x[2] * at[l[2]] + x[3])
          return;
      }
      return f(at);
    }
    for (int64_t i = 0; i < letter->second; ++i) {
      at[letter->first] = i;
      walk(std::next(letter));
    }
  };
  walk(product.sizes.begin());
}

std::string typeText(const runtime::Shape &shape, DType dtype) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + std::string(nameOf(dtype)) + ">";
}

TEST(Relations, EveryArrangementIsTheSumOfItsTerms) {
  std::mt19937_64 random(7);
  int tried = 0, terms = 0;
  for (uint64_t turn = 0; tried < 240; ++turn) {
    Product product = draw(random);
    double places = 1;
    for (auto [letter, size] : product.sizes)
      places *= static_cast<double>(size);
    if (places > 2e6)
      continue;
    ++tried;
    DType dtype = turn % 2 == 0 ? DType::f64 : DType::f32;
    std::string equation = product.equation(), list;
    SCOPED_TRACE(equation + " a " + runtime::toString(product.shape(0)) + " b " + runtime::toString(product.shape(1)) +
                 " c " + runtime::toString(product.shape(2)) + " " + std::string(nameOf(dtype)));
    Array a = randomArray({dtype, product.shape(0)}, static_cast<int64_t>(turn) * 2, -1, 1),
          b = randomArray({dtype, product.shape(1)}, static_cast<int64_t>(turn) * 2 + 1, -1, 1);

    // By loops, in f64.
    runtime::Shape shape = product.shape(2);
    std::vector<double> sums(static_cast<size_t>(shape.numElements())), scales(sums.size());
    auto placeOf = [&](int tensor, const std::map<char, int64_t> &at) {
      int64_t place = 0;
      for (char letter : product.tensors[tensor])
        place = place * product.sizes.at(letter) + at.at(letter);
      return place;
    };
    auto elementOf = [&](const Array &x, int64_t i) {
      return dtype == DType::f64 ? x.data<double>()[i] : static_cast<double>(x.data<float>()[i]);
    };
    forPlaces(product, [&](std::map<char, int64_t> &at) {
      double term = elementOf(a, placeOf(0, at)) * elementOf(b, placeOf(1, at));
      auto place = static_cast<size_t>(placeOf(2, at));
      sums[place] += term, scales[place] += std::abs(term);
      ++terms;
    });
    Array operands[] = {a, b};
    Array eager;
    runtime::Status status =
        runtime::execute({runtime::OpId::contract, runtime::ContractAttrs::make(equation, product.related()), operands,
                          runtime::Where::current()},
                         std::span(&eager, 1));
    ASSERT_TRUE(status.ok()) << toString(status.failure());
    ASSERT_EQ(eager.shape(), shape);
    double ulp = dtype == DType::f64 ? 0x1p-52 : 0x1p-23;
    for (size_t i = 0; i < sums.size(); ++i)
      ASSERT_LE(std::abs(elementOf(eager, static_cast<int64_t>(i)) - sums[i]), 32 * ulp * scales[i]) << "element " << i;

    // Every engine, every other one with what follows in its kernel.
    std::string types[] = {typeText(product.shape(0), dtype), typeText(product.shape(1), dtype),
                           typeText(shape, dtype)};
    std::string sizes = runtime::toString(product.related());
    std::string text = "func.func @f(%a: " + types[0] + ", %b: " + types[1] + ", %d: " + types[2] + ") -> " + types[2] +
                       " {\n  %c = wg.contract \"" + equation + "\" %a, %b to " + sizes + " : " + types[0] + ", " +
                       types[1] + " -> " + types[2] + "\n";
    text += turn % 4 < 2 ? "  return %c : " + types[2] + "\n}"
                         : "  %e = wg.add %c, %d : " + types[2] + "\n  return %e : " + types[2] + "\n}";
    auto module = parseSourceString<ModuleOp>(text, ParserConfig(ir::context()));
    ASSERT_TRUE(module) << text;
    Array d = randomArray({dtype, shape}, 5, -1, 1), scale = Array::empty(dtype, shape);
    for (size_t i = 0; i < scales.size(); ++i) {
      double size = scales[i] + std::abs(elementOf(d, static_cast<int64_t>(i)));
      if (dtype == DType::f64)
        scale.data<double>()[i] = size;
      else
        scale.data<float>()[i] = static_cast<float>(size);
    }
    checkAgreement(*module, "f", {a, b, d}, {.ulps = boundOf("contract", dtype).ulps, .scales = {scale}}, turn);
    if (HasFailure())
      return;
  }
  EXPECT_GT(terms, 100000);
}

} // namespace
} // namespace wg::tests
