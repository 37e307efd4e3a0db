// Every sample of every op inside two functions of one name, one called by the other, both on different things: value,
// gradient and second order are those of the plain code, whichever of it is traced.
#include "frontend/staging/Apply.h"
#include "tests/Samples.h"
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>

namespace wg::tests {
namespace {

using Part = std::function<Tensor(const Tensors &)>;

/// The gradients of the sum of the squares of the gradients.
Tensors twice(const std::function<Tensors(const Tensors &)> &gradients, const Tensors &x) {
  return gradientsOf(
      [&](const Tensors &t) {
        Tensors found = gradients(t);
        return Tensors(found.begin() + 1, found.end());
      },
      x);
}

/// Equal to `tolerance` times the largest finite element among the expected; what is no number is none in both.
void expectSame(const Tensors &expected, const Tensors &actual, const std::string &what, double tolerance) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  double largest = 1;
  for (const Tensor &tensor : expected)
    for (double e : cast(tensor, f64).to_vector<double>())
      largest = std::isfinite(e) ? std::max(largest, std::fabs(e)) : largest;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].dtype(), actual[i].dtype()) << what;
    ASSERT_EQ(expected[i].shape(), actual[i].shape()) << what << ", result " << i;
    std::vector<double> e = cast(expected[i], f64).to_vector<double>(), a = cast(actual[i], f64).to_vector<double>();
    for (size_t k = 0; k < e.size(); ++k)
      if (!(e[k] == a[k] || (std::isnan(e[k]) && std::isnan(a[k]))))
        ASSERT_LE(std::fabs(e[k] - a[k]), tolerance * largest)
            << what << ", result " << i << ", element " << k << ": " << e[k] << " against " << a[k];
  }
}

Tensors tensorsOf(const Sample &sample) {
  Tensors tensors;
  for (const runtime::Array &operand : sample.operands)
    tensors.push_back(wg::detail::makeTensor(operand));
  return tensors;
}

void check(const Sample &sample, const Sample &other, bool interpret) {
  std::string name = runtime::recordOf(sample.op).name, what = name + " on " + sample.text + ", ";
  Part plainInner = [&](const Tensors &x) {
    std::vector<const Tensor *> operands;
    for (const Tensor &operand : x)
      operands.push_back(&operand);
    Tensor result;
    wg::detail::applyOp(sample.op, sample.attrs, operands, std::span(&result, 1), Where::current());
    return result;
  };
  // The operands of the op, and as many others: the op on both, and between them something else of the op.
  auto outerWith = [count = sample.operands.size()](Part inner) {
    return [=](const Tensors &x) {
      Tensors first(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(count)),
          second(x.begin() + static_cast<std::ptrdiff_t>(count), x.end());
      Tensors results{inner(first), inner(second)};
      if (Tensor y = inner(second); runtime::isFloat(y.dtype()))
        results.push_back(softsign(y) * 3.0);
      return results;
    };
  };
  SCOPED_TRACE(what);
  Tensors x = tensorsOf(sample), more = tensorsOf(other);
  x.insert(x.end(), more.begin(), more.end());

  // Sums and cotangents of an f32 operand or result round to it, in another order.
  bool narrow = plainInner(tensorsOf(sample)).dtype() == f32;
  for (const runtime::Array &operand : sample.operands)
    narrow |= operand.dtype() == f32;
  double tolerance = narrow ? 1e-6 : 1e-11;
  auto same = [&](const Tensors &expected, const Tensors &actual, const char *way) {
    expectSame(expected, actual, what + way, tolerance);
  };
  FunctionOptions options{.interpret = interpret};
  auto inner = function(name, plainInner, options);
  auto plain = outerWith(plainInner);
  auto outer = function(name, outerWith([&](const Tensors &t) { return inner(t); }), options);
  same(plain(x), outer(x), "values");

  auto plainGradients = [&](const Tensors &t) { return gradientsOf(plain, t); };
  auto gradients = [&](const Tensors &t) { return gradientsOf([&](const Tensors &u) { return outer(u); }, t); };
  auto traced = function(name, gradients, options);
  Tensors expected = plainGradients(x);
  same(expected, gradients(x), "an eager tape over the call");
  same(expected, traced(x), "a traced tape over the call");

  expected = twice(plainGradients, x);
  same(expected, twice(gradients, x), "second order, eager tapes over the call");
  same(expected, twice([&](const Tensors &t) { return traced(t); }, x),
       "second order, an eager tape over a traced gradient");
  auto both = function(name, [&](const Tensors &t) { return twice(gradients, t); }, options);
  same(expected, both(x), "second order, traced tapes over the call");
  auto deep =
      function(name, [&](const Tensors &t) { return twice([&](const Tensors &u) { return traced(u); }, t); }, options);
  same(expected, deep(x), "second order, a traced tape over a traced gradient");
}

/// wg.dim and wg.size are what the front end writes for a `?`; their values are sizes in a
/// program and not tensors of a user's.
bool isOfTensors(const Sample &sample) { return sample.op != runtime::OpId::dim && sample.op != runtime::OpId::size; }

TEST(NestedSamples, OfEveryOpInTwoFunctionsOfItsName) {
  std::vector<Sample> samples = allSamples(1), others = allSamples(2);
  for (size_t i = 0; i < samples.size(); ++i)
    if (isOfTensors(samples[i])) {
      check(samples[i], others[i], /*interpret=*/true);
      if (HasFatalFailure())
        return;
    }
}

// Compiled, each op once: machine code is made of the inlined whole, whose calls are the same; and of static sizes.
TEST(NestedSamples, OfEveryOpCompiled) {
  std::vector<Sample> samples = allSamples(1), others = allSamples(2);
  for (size_t i = 0; i < samples.size(); ++i)
    if ((i == 0 || samples[i].op != samples[i - 1].op) && samples[i].text.find('?') == std::string::npos &&
        isOfTensors(samples[i])) {
      check(samples[i], others[i], /*interpret=*/false);
      if (HasFatalFailure())
        return;
    }
}

} // namespace
} // namespace wg::tests
