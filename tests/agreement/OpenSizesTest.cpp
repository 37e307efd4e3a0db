// Every sample of every op with its sizes opened to `?`: each axis alone, one axis of all operands, all axes,
// each entry of the attributes that may be open, everything; run with the sample's own sizes, and with 0 and 1
// in place of those that are open. Value, gradient and second derivative of a trace with open sizes, interpreted
// and compiled, called by a tape and by another trace, are those of eager code on the same arrays; where eager
// code fails, so do they, with an error that a user is meant to see. What they may refuse besides is in the sample.
#include "frontend/ops/Operands.h"
#include "tests/agreement/Openings.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace wg::tests {
namespace {

using runtime::Array;
using runtime::Attrs;
using runtime::AttrValue;
using runtime::Ints;
using runtime::OpId;
using runtime::OpRecord;

/// A result, or the error instead.
struct Outcome {
  std::vector<Tensor> values;
  std::string error;
  ErrorKind kind = ErrorKind::value;
};

template <class F> Outcome attempt(F f) {
  Outcome outcome;
  try {
    outcome.values = f();
  } catch (const Error &error) {
    outcome.error = error.what();
    outcome.kind = error.kind();
  }
  return outcome;
}

Tensor tensorOf(const Array &array) { return wg::detail::makeTensor(array); }

/// The op on tensors: `sizes` stand for the `?` of its attributes.
Tensor applied(OpId op, const Attrs &attrs, const std::vector<Tensor> &x, const std::vector<Tensor> &sizes = {}) {
  std::vector<const Tensor *> operands;
  for (const Tensor &each : x)
    operands.push_back(&each);
  for (const Tensor &size : sizes)
    operands.push_back(&size);
  Tensor y;
  wg::detail::applyOp(op, attrs, operands, std::span(&y, 1), Where::current());
  return y;
}

/// y; with `order` 1 its gradient by the floats among x, seeded by y itself; with 2 that of the gradients' sum as well.
template <class F> std::vector<Tensor> derivatives(int order, const std::vector<Tensor> &x, F f) {
  std::vector<Tensor> floats, results;
  for (const Tensor &each : x)
    if (each.dtype() == f64)
      floats.push_back(each);
  GradientTape outer, inner;
  outer.watch(floats);
  inner.watch(floats);
  Tensor y = f(x);
  results.push_back(y);
  if (order == 0 || y.dtype() != f64 || floats.empty())
    return results;
  std::vector<Grad> first =
      inner.gradient(y, floats, GradientOptions{.output_gradients = y, .unconnected = Unconnected::zero});
  std::vector<Tensor> gradients;
  for (const Grad &grad : first)
    gradients.push_back(grad.value());
  results.insert(results.end(), gradients.begin(), gradients.end());
  if (order == 2)
    for (const Grad &grad : outer.gradient(gradients, floats, GradientOptions{.unconnected = Unconnected::zero}))
      results.push_back(grad.value());
  return results;
}

void expectSame(const Outcome &expected, const Outcome &actual, const std::string &what) {
  ASSERT_NE(actual.kind, ErrorKind::internal) << what << ": " << actual.error;
  if (!expected.error.empty()) {
    EXPECT_FALSE(actual.error.empty()) << what << ": eagerly " << expected.error;
    return;
  }
  ASSERT_EQ(actual.error, "") << what;
  ASSERT_EQ(actual.values.size(), expected.values.size()) << what;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const Tensor &e = expected.values[i], &a = actual.values[i];
    ASSERT_EQ(toString(a.body()->type), toString(e.body()->type)) << what << ", result " << i;
    std::vector<double> x = e.to_vector<double>(), y = a.to_vector<double>();
    double scale = 1;
    for (double value : x)
      scale = std::isfinite(value) ? std::max(scale, std::fabs(value)) : scale;
    for (size_t k = 0; k < x.size(); ++k)
      if (!(x[k] == y[k] || (std::isnan(x[k]) && std::isnan(y[k])))) {
        ASSERT_LE(std::fabs(x[k] - y[k]), 1e-12 * scale)
            << what << ", result " << i << ", element " << k << ": " << x[k] << " and " << y[k];
      }
  }
}

class Walk {
public:
  explicit Walk(const Sample &sample) : sample_(sample) {}
  void run();
  int traced = 0, refused = 0;

private:
  void walk(const Opening &opening);
  const Outcome &eager(const Attrs &attrs, const std::vector<Tensor> &x);

  const Sample &sample_;
  std::map<std::string, Outcome> eager_; ///< by attributes and shapes
};

const Outcome &Walk::eager(const Attrs &attrs, const std::vector<Tensor> &x) {
  std::string key = std::to_string(attrs.hash());
  for (const Tensor &each : x)
    key += toString(each.body()->type);
  auto [at, fresh] = eager_.try_emplace(key);
  if (fresh)
    at->second = attempt(
        [&] { return derivatives(2, x, [&](const std::vector<Tensor> &y) { return applied(sample_.op, attrs, y); }); });
  return at->second;
}

void Walk::walk(const Opening &opening) {
  // One u8[?] for each open entry of an attribute: its size is the entry.
  std::vector<Tensor> specs;
  for (const runtime::TensorType &type : openTypes(sample_, opening))
    specs.push_back(TensorSpec{type.dtype, type.shape});
  specs.insert(specs.end(), opening.entries.size(), TensorSpec{u8, {dynamic}});
  Attrs attrs = openAttrs(sample_, opening);
  size_t numOperands = sample_.operands.size();
  auto op = [=, this](const std::vector<Tensor> &all) {
    std::vector<Tensor> sizes;
    for (size_t i = numOperands; i < all.size(); ++i)
      sizes.push_back(wg::detail::dim(all[i], 0, Where::current()));
    return derivatives(0, {}, [&](const std::vector<Tensor> &) {
      return applied(sample_.op, attrs, {all.begin(), all.begin() + static_cast<ptrdiff_t>(numOperands)}, sizes);
    })[0];
  };
  auto whole = [=](const std::vector<Tensor> &all) {
    std::vector<Tensor> x(all.begin(), all.begin() + static_cast<ptrdiff_t>(numOperands)),
        rest(all.begin() + static_cast<ptrdiff_t>(numOperands), all.end());
    return derivatives(2, x, [&](const std::vector<Tensor> &y) {
      std::vector<Tensor> together = y;
      together.insert(together.end(), rest.begin(), rest.end());
      return op(together);
    });
  };
  auto value = wg::function("value", [=](const std::vector<Tensor> &all) { return op(all); }, {.interpret = true});
  auto interpreted = wg::function("whole", whole, {.interpret = true});
  auto compiled = wg::function("whole", whole);
  std::optional<ConcreteFunction> made, compiledMade, valueMade;
  Outcome trace = attempt([&] {
    made = interpreted.trace(specs);
    valueMade = value.trace(specs);
    if (opening.everything)
      compiledMade = compiled.trace(specs);
    return std::vector<Tensor>();
  });
  if (!trace.error.empty()) {
    ASSERT_NE(trace.kind, ErrorKind::internal) << nameOf(sample_, opening, -1) << ": " << trace.error;
    ++refused;
    return;
  }
  ++traced;

  for (int64_t size : {-1, 0, 1}) {
    std::string what = nameOf(sample_, opening, size);
    Attrs own = attrsFor(sample_, opening, size);
    std::vector<Tensor> x;
    for (const Array &operand : operandsFor(sample_, opening, size))
      x.push_back(tensorOf(operand));
    std::vector<Tensor> all = x;
    for (auto [attr, entry] : opening.entries)
      all.push_back(zeros({own.ints(attr)[entry]}, u8));
    const Outcome &expected = eager(own, x);
    Outcome actual = attempt([&] { return made->call_flat(all); });
    if (isSpared(sample_, actual.error) && expected.error.empty()) {
      if (opening.everything)
        expectSame(actual, attempt([&] { return compiledMade->call_flat(all); }), what + ", compiled");
      continue;
    }
    expectSame(expected, actual, what + ", interpreted");
    if (!opening.everything || ::testing::Test::HasFatalFailure())
      continue;
    expectSame(expected, attempt([&] { return compiledMade->call_flat(all); }), what + ", compiled");
    // A tape over a call, and a trace around one.
    auto call = [&](const std::vector<Tensor> &y) {
      std::vector<Tensor> together = y;
      together.insert(together.end(), all.begin() + static_cast<ptrdiff_t>(numOperands), all.end());
      return valueMade->call_flat(together)[0];
    };
    expectSame(expected, attempt([&] { return derivatives(2, x, call); }), what + ", called under tapes");
    auto around =
        wg::function("around",
                     [&](const std::vector<Tensor> &outer) {
                       std::vector<Tensor> y(outer.begin(), outer.begin() + static_cast<ptrdiff_t>(numOperands)),
                           rest(outer.begin() + static_cast<ptrdiff_t>(numOperands), outer.end());
                       return derivatives(2, y, [&](const std::vector<Tensor> &z) {
                         std::vector<Tensor> together = z;
                         together.insert(together.end(), rest.begin(), rest.end());
                         return valueMade->call_flat(together)[0];
                       });
                     },
                     {.interpret = true});
    expectSame(expected, attempt([&] { return around.trace(specs).call_flat(all); }), what + ", called in a trace");
  }
}

void Walk::run() {
  for (const Opening &opening : openingsOf(sample_)) {
    walk(opening);
    if (::testing::Test::HasFailure())
      return;
  }
}

class OpenSizes : public ::testing::TestWithParam<size_t> {};

const std::vector<Sample> &samples() {
  static const std::vector<Sample> list = allSamples();
  return list;
}

TEST_P(OpenSizes, AgreeWithEagerCode) {
  const Sample &sample = samples()[GetParam()];
  Walk walk(sample);
  walk.run();
  if (walk.traced + walk.refused > 0) // refused is one of two operands that must be of one type
    EXPECT_GT(walk.traced, 0);
}

std::vector<size_t> numbers() {
  std::vector<size_t> list;
  for (size_t i = 0; i < samples().size(); ++i)
    if (OpId op = samples()[i].op; op != OpId::dim && op != OpId::size) // sizes themselves
      list.push_back(i);
  return list;
}
std::string nameOfSample(const ::testing::TestParamInfo<size_t> &info) {
  return std::string(recordOf(samples()[info.param].op).name) + "_" + std::to_string(info.param);
}
INSTANTIATE_TEST_SUITE_P(Every, OpenSizes, ::testing::ValuesIn(numbers()), nameOfSample);

} // namespace
} // namespace wg::tests
