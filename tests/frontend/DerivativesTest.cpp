// First, second and third derivatives at awkward points, against closed forms: eagerly by tapes in tapes, and traced
// and compiled. The gradient checks
// (tests/gradcheck) compare with differences where a function is smooth; here are the points where differences say
// little: 0, ties, saturation, huge and tiny arguments, infinities.
#include "tests/frontend/Curves.h"

namespace wg {
namespace {

using namespace tests;

TEST(Derivatives, SmoothFunctionsHaveThoseOfTheirFormulas) {
  const Real root = std::sqrt(2.0L);
  std::vector<double> plain{-40, -5, -1, -1e-9, 0, 1e-9, 1, 5, 40},
      wide{-1e300, -800, -40, -1, -1e-9, 0, 1e-9, 1, 40, 800, 1e300};
  auto s1 = [](Real x) { return logistic(x) * logistic(-x); };
  auto s2 = [s1](Real x) { return s1(x) * (1 - 2 * logistic(x)); };
  auto s3 = [s1](Real x) { return s1(x) * (1 - 6 * logistic(x) * logistic(-x)); };
  auto t1 = [](Real x) { return std::pow(1 / std::cosh(x), 2.0L); };
  Curve curves[] = {
      {"softplus",
       [](const Tensor &x) { return softplus(x); },
       wide,
       {[](Real x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x))); }, logistic, s1, s2},
       1},
      {"softplus at the infinities",
       [](const Tensor &x) { return softplus(x); },
       {-inf, inf, nan},
       {[](Real x) { return x > 0 || x != x ? x : 0; }, logistic, [](Real x) { return x != x ? x : 0; }}},
      {"sigmoid", [](const Tensor &x) { return sigmoid(x); }, wide, {logistic, s1, s2, s3}, 1},
      {"tanh",
       [](const Tensor &x) { return tanh(x); },
       wide,
       {[](Real x) { return std::tanh(x); }, t1, [t1](Real x) { return -2 * std::tanh(x) * t1(x); },
        [t1](Real x) { return t1(x) * (6 * std::tanh(x) * std::tanh(x) - 2); }},
       1},
      {"softsign",
       [](const Tensor &x) { return softsign(x); },
       {-1e300, -1e9, -40, -1, 1, 40, 1e9, 1e300},
       {[](Real x) { return x / (1 + std::abs(x)); }, [](Real x) { return powerOf(1 + std::abs(x), -2); },
        [](Real x) { return -2 * powerOf(1 + std::abs(x), -3) * (x < 0 ? -1 : 1); },
        [](Real x) { return 6 * powerOf(1 + std::abs(x), -4); }}},
      {"erf",
       [](const Tensor &x) { return erf(x); },
       plain,
       {[](Real x) { return std::erf(x); }, [=](Real x) { return 2 * root * bell(x * root); },
        [=](Real x) { return -4 * x * root * bell(x * root); },
        [=](Real x) { return (8 * x * x - 4) * root * bell(x * root); }}},
      {"gelu",
       [](const Tensor &x) { return gelu(x); },
       plain,
       {[=](Real x) { return x * std::erfc(-x / root) / 2; },
        [=](Real x) { return std::erfc(-x / root) / 2 + x * bell(x); }, [](Real x) { return (2 - x * x) * bell(x); },
        [](Real x) { return (x * x - 4) * x * bell(x); }},
       40},
      {"silu",
       [](const Tensor &x) { return silu(x); },
       plain,
       {[](Real x) { return x * logistic(x); }, [=](Real x) { return logistic(x) + x * s1(x); },
        [=](Real x) { return 2 * s1(x) + x * s2(x); }, [=](Real x) { return 3 * s2(x) + x * s3(x); }},
       40},
      {"expm1",
       [](const Tensor &x) { return expm1(x); },
       {-40, -1e-9, 0, 1e-300, 40},
       {[](Real x) { return std::expm1(x); }, [](Real x) { return std::exp(x); }, [](Real x) { return std::exp(x); }},
       1},
      {"log1p",
       [](const Tensor &x) { return log1p(x); },
       {-1, -0.5, -1e-300, 0, 1e-9, 1e300},
       {[](Real x) { return std::log1p(x); }, [](Real x) { return 1 / (1 + x); },
        [](Real x) { return -powerOf(1 + x, -2); }, [](Real x) { return 2 * powerOf(1 + x, -3); }}},
      {"log",
       [](const Tensor &x) { return log(x); },
       {0, 1e-100, 1, 1e100, inf},
       {[](Real x) { return std::log(x); }, [](Real x) { return 1 / x; }, [](Real x) { return -1 / x / x; },
        [](Real x) { return 2 / x / x / x; }}},
      {"sqrt",
       [](const Tensor &x) { return sqrt(x); },
       {0, 1e-100, 4, 1e100},
       {[](Real x) { return std::sqrt(x); }, [](Real x) { return powerOf(x, -0.5L) / 2; },
        [](Real x) { return -powerOf(x, -1.5L) / 4; }, [](Real x) { return 3 * powerOf(x, -2.5L) / 8; }}},
      {"rsqrt",
       [](const Tensor &x) { return rsqrt(x); },
       {0, 1e-60, 4, 1e100},
       {[](Real x) { return powerOf(x, -0.5L); }, [](Real x) { return -powerOf(x, -1.5L) / 2; },
        [](Real x) { return 3 * powerOf(x, -2.5L) / 4; }, [](Real x) { return -15 * powerOf(x, -3.5L) / 8; }}},
      {"reciprocal",
       [](const Tensor &x) { return reciprocal(x); },
       {0, -1e-60, -2, 1e60},
       {[](Real x) { return 1 / x; }, [](Real x) { return -1 / x / x; }, [](Real x) { return 2 / x / x / x; },
        [](Real x) { return -6 / x / x / x / x; }}},
      {"square",
       [](const Tensor &x) { return square(x); },
       {-1e100, 0, 1e-200, 3},
       {[](Real x) { return static_cast<double>(x * x); }, [](Real x) { return 2 * x; }, [](Real) { return 2; },
        [](Real) { return 0; }}},
      {"sin",
       [](const Tensor &x) { return sin(x); },
       {-3, 0, 1e-300, 100},
       {[](Real x) { return std::sin(x); }, [](Real x) { return std::cos(x); }, [](Real x) { return -std::sin(x); },
        [](Real x) { return -std::cos(x); }}},
      {"cos",
       [](const Tensor &x) { return cos(x); },
       {-3, 0, 1e-300, 100},
       {[](Real x) { return std::cos(x); }, [](Real x) { return -std::sin(x); }, [](Real x) { return -std::cos(x); },
        [](Real x) { return std::sin(x); }}},
      {"exp",
       [](const Tensor &x) { return exp(x); },
       {-800, -1, 0, 1, 700, 800, -inf, inf},
       {[](Real x) { return static_cast<double>(std::exp(x)); },
        [](Real x) { return static_cast<double>(std::exp(x)); },
        [](Real x) { return static_cast<double>(std::exp(x)); }}},
  };
  for (const Curve &curve : curves)
    check(curve);
}

TEST(Derivatives, PowersByTheBase) {
  for (double p : {0.0, 1.0, 2.0, 3.0, 4.0, 0.5, -1.0, -2.0}) {
    std::vector<double> points{0, 1e-30, 1, 2.5};
    if (p == std::floor(p))
      points.insert(points.end(), {-1e-30, -1, -2.5});
    std::vector<Formula> orders;
    for (int order = 0; order < 4; ++order)
      orders.push_back([=](Real x) {
        Real factor = 1;
        for (int k = 0; k < order; ++k)
          factor *= p - k;
        return factor == 0 ? 0 : factor * std::pow(x, Real(p) - order);
      });
    check({"pow", [p](const Tensor &x) { return pow(x, p); }, points, orders});
  }
}

// docs/numbers.md: what is said of kinks; their second derivatives are 0.
TEST(Derivatives, KinksAreAsDocumented) {
  auto step = [](Real at) { return [at](Real x) { return x > at ? 1 : x < at ? -1 : 0; }; };
  auto zero = [](Real) { return 0; };
  std::vector<double> points{-2, 0, 2};
  Curve curves[] = {
      {"abs",
       [](const Tensor &x) { return abs(x); },
       points,
       {[](Real x) { return std::abs(x); }, step(0), zero, zero}},
      {"relu",
       [](const Tensor &x) { return relu(x); },
       points,
       {[](Real x) { return std::max(x, 0.0L); }, [](Real x) { return x > 0; }, zero}},
      {"maximum",
       [](const Tensor &x) { return maximum(x, 0.0); },
       points,
       {[](Real x) { return std::max(x, 0.0L); }, [](Real x) { return x > 0   ? 1
                                                                      : x < 0 ? 0
                                                                              : 0.5L; }, zero}},
      {"maximum of one tensor",
       [](const Tensor &x) { return maximum(x, x) * x; },
       points,
       {[](Real x) { return x * x; }, [](Real x) { return 2 * x; }, [](Real) { return 2; }}},
      {"clip",
       [](const Tensor &x) { return clip(x, 0.0, 2.0); },
       {-1, 0, 1, 2, 3, nan},
       {[](Real x) { return x != x ? x : std::clamp(x, 0.0L, 2.0L); }, [](Real x) { return x < 0 || x > 2 ? 0 : 1; },
        zero}},
      {"clip of a square",
       [](const Tensor &x) { return clip(x * x, 0.0, 4.0); },
       points,
       {[](Real x) { return x * x; }, [](Real x) { return 2 * x; }, [](Real) { return 2; }}},
      {"softsign at 0", [](const Tensor &x) { return softsign(x); }, {0}, {zero, [](Real) { return 1; }, zero}},
      {"remainder",
       [](const Tensor &x) { return remainder(x, 2.0); },
       {-1, 0, 2, 3},
       {[](Real x) { return x - 2 * std::floor(x / 2); }, [](Real) { return 1; }, zero}},
  };
  for (const Curve &curve : curves)
    check(curve);
}

//===- Along a line: f(x + t v) at t = 0 --------------------------------------------------------------------------===//

/// Mean and central moments of v under the weights softmax(x): the derivatives of logsumexp along v are the cumulants.
std::vector<Real> cumulants(const std::vector<double> &x, const std::vector<double> &v) {
  Real largest = *std::max_element(x.begin(), x.end()), sum = 0, mean = 0, second = 0, third = 0;
  auto weight = [&](size_t i) { return std::exp(Real(x[i]) - largest); };
  for (size_t i = 0; i < x.size(); ++i)
    sum += weight(i);
  for (size_t i = 0; i < x.size(); ++i)
    mean += weight(i) / sum * v[i];
  for (size_t i = 0; i < x.size(); ++i) {
    second += weight(i) / sum * std::pow(v[i] - mean, 2.0L);
    third += weight(i) / sum * std::pow(v[i] - mean, 3.0L);
  }
  return {largest + std::log(sum), mean, second, third};
}

/// Checks t -> f(x + t v) at 0 against its derivatives from order 0 on.
void checkLine(const char *name, Differentiated f, const std::vector<double> &x, const std::vector<double> &v,
               const std::vector<Real> &orders) {
  Tensor from = Tensor::from(x, Shape{static_cast<int64_t>(x.size())}),
         along = Tensor::from(v, Shape{static_cast<int64_t>(v.size())});
  std::vector<Formula> formulas;
  for (Real order : orders)
    formulas.push_back([order](Real) { return order; });
  // t is a vector of one element, so that the line is a curve of one point.
  check({name, [=](const Tensor &t) { return reshape(f(from + t * along), {1}); }, {0}, formulas, 1});
}

const std::vector<std::vector<double>> kLogits = {{0, 0, 0},          {1, -2, 0.5}, {3, 3, 1}, {1000, 1000, -1000},
                                                  {-1e300, 1e300, 0}, {-inf, 0, 1}, {2},       {-800, -800, -801}};
std::vector<double> directionFor(size_t n) {
  std::vector<double> v{0.3, -1.2, 0.7};
  v.resize(n);
  return v;
}

TEST(Derivatives, SoftmaxAndItsKinAtTiesAndExtremes) {
  for (const std::vector<double> &x : kLogits) {
    std::vector<double> v = directionFor(x.size());
    std::vector<Real> k = cumulants(x, v);
    checkLine("logsumexp", [](const Tensor &z) { return logsumexp(z); }, x, v, k);
    int64_t label = static_cast<int64_t>(x.size()) - 1;
    Real own = x[static_cast<size_t>(label)], ownV = v[static_cast<size_t>(label)], p = std::exp(own - k[0]),
         d = ownV - k[1];
    checkLine("log_softmax", [=](const Tensor &z) { return index(log_softmax(z), label); }, x, v,
              {own - k[0], d, -k[2], -k[3]});
    checkLine("softmax", [=](const Tensor &z) { return index(softmax(z), label); }, x, v,
              {p, p * d, p * (d * d - k[2]), p * (d * d * d - 3 * d * k[2] - k[3])});
    checkLine("softmax_cross_entropy",
              [=](const Tensor &z) { return softmax_cross_entropy(expand_dims(z, 0), Tensor{label}); }, x, v,
              {k[0] - own, -d, k[2], k[3]});
    if (std::isfinite(x[0]))
      checkLine("softmax_cross_entropy of a distribution",
                [=](const Tensor &z) { return softmax_cross_entropy(z, one_hot(Tensor(label), z.size(), f64)); }, x, v,
                {k[0] - own, -d, k[2], k[3]});
  }
}

TEST(Derivatives, SigmoidCrossEntropyIsSmoothAndKeepsItsTails) {
  for (double y : {0.0, 1.0, 0.25}) {
    auto f = [y](const Tensor &z) {
      std::vector<Tensor> each;
      for (int64_t i = 0; i < z.size(); ++i)
        each.push_back(nn::sigmoid_cross_entropy(index(z, i), y));
      return stack(each);
    };
    auto s1 = [](Real x) { return logistic(x) * logistic(-x); };
    check({"sigmoid_cross_entropy",
           f,
           {-40, -1, 0, 1, 40},
           {[=](Real z) { return y * std::log1p(std::exp(-z)) + (1 - y) * std::log1p(std::exp(z)); },
            [=](Real z) { return (1 - y) * logistic(z) - y * logistic(-z); }, s1,
            [=](Real z) { return s1(z) * (logistic(-z) - logistic(z)); }}});
  }
}

// The Hessian of logistic regression at zero weights is X^T X / 4n: what Newton's method inverts.
TEST(Derivatives, LogisticRegressionHasItsHessianAtZeroWeights) {
  Tensor x = random_uniform(random::key(5), {20, 3}, -1, 1, f64),
         y = cast(random_uniform(random::key(6), {20}, 0, 1, f64) > 0.5, f64);
  auto loss = [&](const Tensor &w) { return nn::sigmoid_cross_entropy(matmul(x, w), y); };
  std::vector<double> expected = (matmul(x, x, {.transpose_a = true}) / 80.0).to_vector<double>();
  for (int64_t i = 0; i < 3; ++i) {
    auto row = [&](const Tensor &w) { return index(derivativeOf(loss)(w), i); };
    std::vector<double> hessian = derivativeOf(row)(zeros({3}, f64)).to_vector<double>();
    for (size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(hessian[j], expected[static_cast<size_t>(i) * 3 + j], 1e-15);
  }
}

TEST(Derivatives, NormAndVariance) {
  for (const std::vector<double> &x :
       std::vector<std::vector<double>>{{3, 4, 0}, {0, 0, 1e-100}, {-2}, {1e100, 1e100, 0}}) {
    std::vector<double> v = directionFor(x.size());
    Real a = 0, b = 0, c = 0;
    for (size_t i = 0; i < x.size(); ++i)
      a += Real(x[i]) * x[i], b += Real(x[i]) * v[i], c += Real(v[i]) * v[i];
    Real r = std::sqrt(a), first = b / r, second = (c - first * first) / r;
    if (x.size() == 1)
      second = 0;
    checkLine("norm", [](const Tensor &z) { return norm(z); }, x, v, {r, first, second, -3 * first * second / r});
  }
  // At 0 the norm has no derivative: it is given as 0, to every order.
  checkLine("norm at 0", [](const Tensor &z) { return norm(z); }, {0, 0}, {1, 2}, {0, 0, 0, 0});
  for (const std::vector<double> &x :
       std::vector<std::vector<double>>{{1, 2, 4}, {5, 5, 5}, {1e8, 1e8 + 1, 1e8 - 1}, {7}}) {
    std::vector<double> v = directionFor(x.size());
    Real n = static_cast<Real>(x.size()), mx = 0, mv = 0, xx = 0, xv = 0, vv = 0;
    for (size_t i = 0; i < x.size(); ++i)
      mx += x[i] / n, mv += v[i] / n;
    for (size_t i = 0; i < x.size(); ++i)
      xx += (x[i] - mx) * (x[i] - mx) / n, xv += (x[i] - mx) * (v[i] - mv) / n, vv += (v[i] - mv) * (v[i] - mv) / n;
    checkLine("variance", [](const Tensor &z) { return variance(z); }, x, v, {xx, 2 * xv, 2 * vv, 0});
  }
}

TEST(Derivatives, ProductsWithZerosToTheThirdOrder) {
  // (a + t)(b + 2t)(c + 3t): its derivatives at 0 follow from the sums of products.
  for (const std::vector<double> &x : std::vector<std::vector<double>>{{2, 0, 3}, {0, 5, 0}, {0, 0, 0}, {1, 2, 3}}) {
    Real a = x[0], b = x[1], c = x[2];
    checkLine("reduce_prod", [](const Tensor &z) { return reduce_prod(z); }, x, {1, 2, 3},
              {a * b * c, b * c + 2 * a * c + 3 * a * b, 2 * (2 * c + 3 * b + 6 * a), 36});
  }
}

TEST(Derivatives, EmptyAndSingleAxes) {
  Tensor none = zeros({2, 0}, f64);
  for (auto &f : std::vector<Differentiated>{
           [](const Tensor &x) { return logsumexp(x, 1); }, [](const Tensor &x) { return norm(x, 1); },
           [](const Tensor &x) { return reduce_prod(x, 1); }, [](const Tensor &x) { return mean(x, 1); },
           [](const Tensor &x) { return variance(x, 1); }, [](const Tensor &x) { return softmax(x); },
           [](const Tensor &x) { return log_softmax(x); }})
    for (const Differentiated &g : {derivativeOf(f), derivativeOf(derivativeOf(f))}) {
      EXPECT_EQ(g(none).shape(), none.shape());
      EXPECT_EQ(wg::function("empty", [g](const Tensor &x) { return g(x); })(none).shape(), none.shape());
    }
  EXPECT_EQ(logsumexp(none, 1).to_vector<double>(), (std::vector<double>{-inf, -inf}));
  EXPECT_EQ(norm(none, 1).to_vector<double>(), (std::vector<double>{0, 0}));
}

} // namespace
} // namespace wg
