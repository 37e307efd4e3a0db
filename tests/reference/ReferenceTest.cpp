// The public functions beside NumPy and SciPy: every case of the stored tables, eagerly, compiled, and compiled with
// its sizes open.
#include "tests/reference/Table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

using namespace wg;
using namespace wg::tests;

namespace {

// ---- The calls

Tensors listOf(const Tensor &x) { return {x}; }
Tensors listOf(const Tensors &xs) { return xs; }
template <class A, class B> Tensors listOf(const std::pair<A, B> &both) {
  Tensors all = listOf(both.first);
  for (const Tensor &x : listOf(both.second))
    all.push_back(x);
  return all;
}

/// a, after `update`.
Tensor updated(Tensor a, const std::function<void(Tensor &)> &update) {
  update(a);
  return a;
}

LinearMap productWith(const Tensor &a) {
  return [a](const Tensor &v) { return matmul(a, v); };
}

Padding paddingOf(const Options &o) {
  if (o.has("padding") && !o.isText("padding"))
    return {o.pairs("padding")[0], o.pairs("padding")[1]};
  return o.text("padding") == "same" ? Padding::same : Padding::valid;
}

PadMode padModeOf(const Options &o) {
  std::string mode = o.text("mode");
  return mode == "reflect"     ? PadMode::reflect
         : mode == "symmetric" ? PadMode::symmetric
         : mode == "edge"      ? PadMode::edge
                               : PadMode::wrap;
}
Scatter scatterOf(const Options &o) {
  std::string mode = o.text("mode", "set");
  return mode == "add" ? Scatter::add : mode == "max" ? Scatter::max : mode == "min" ? Scatter::min : Scatter::set;
}

linalg::MatrixNorm matrixNormOf(const Options &o) {
  std::string norm = o.text("norm");
  return norm == "nuclear"    ? linalg::MatrixNorm::nuclear
         : norm == "spectral" ? linalg::MatrixNorm::spectral
                              : linalg::MatrixNorm::frobenius;
}

nn::Reduction reductionOf(const Options &o) {
  std::string name = o.text("reduction", "mean");
  return name == "mean" ? nn::Reduction::mean : name == "sum" ? nn::Reduction::sum : nn::Reduction::none;
}
template <class T> std::optional<T> maybe(bool has, T value) { return has ? std::optional<T>(value) : std::nullopt; }
nn::NormOptions normOf(const Tensors &x, const Options &o) {
  return {.weight = x[1], .bias = x[2], .epsilon = o.number("epsilon", 1e-5)};
}
nn::CrossEntropyOptions classesOf(const Options &o) {
  return {.reduction = reductionOf(o),
          .label_smoothing = o.number("label_smoothing"),
          .ignore_index = maybe(o.has("ignore_index"), o.integer("ignore_index"))};
}
nn::BinaryCrossEntropyOptions binaryOf(const Options &o) {
  return {.reduction = reductionOf(o),
          .positive_weight = o.number("positive_weight", 1),
          .label_smoothing = o.number("label_smoothing")};
}
nn::AttentionOptions attentionOf(const Options &o, const Tensor &mask = {}) {
  return {.mask = mask, .causal = o.flag("causal"), .scale = maybe(o.has("scale"), o.number("scale"))};
}

struct Call {
  const char *name;
  Tensors (*run)(const Tensors &x, const Options &o);
};
void PrintTo(const Call &call, std::ostream *out) { *out << call.name; }

const Call kCalls[] = {
#define WG_CALL(name, ...)                                                                                             \
  {#name, []([[maybe_unused]] const Tensors &x, [[maybe_unused]] const Options &o) { return listOf(__VA_ARGS__); }},
#define WG_NO_REFERENCE(name, why)
#include "tests/reference/Calls.inc"
#undef WG_CALL
#undef WG_NO_REFERENCE
};

const std::vector<Case> &allCases() {
  static const std::vector<Case> cases = readTables(WENGERT_SOURCE_DIR "/tests/reference");
  return cases;
}

// ---- Comparison

/// From one number to the next larger one in size, of T.
template <class T> double spacing(double of) {
  T size = static_cast<T>(std::fabs(of));
  T largest = std::numeric_limits<T>::max();
  return size >= largest ? largest - std::nextafter(largest, T(0))
                         : static_cast<double>(std::nextafter(size, largest)) - static_cast<double>(size);
}

template <class T> std::string different(std::span<const T> found, const Tensor &wanted, const Case &c) {
  std::span<const T> right = wanted.data<T>();
  for (size_t i = 0; i < right.size(); ++i) {
    T a = found[i], b = right[i];
    bool agree = a == b;
    double distance = 0;
    if constexpr (std::is_floating_point_v<T>) {
      bool zeros = !c.scale.empty() || std::signbit(a) == std::signbit(b); // a sum may round to either zero
      agree = (a == b && zeros) || (std::isnan(a) && std::isnan(b));
      if (!agree && std::isfinite(a) && std::isfinite(b)) {
        double scale = c.scale.empty() ? b : c.scale[c.scale.size() == 1 ? 0 : i];
        distance = std::fabs(static_cast<double>(a) - static_cast<double>(b)) / spacing<T>(scale);
        agree = zeros && distance <= c.ulp;
      }
    }
    if (!agree)
      return fmt::format("element {} is {}, {} is right, {} ulp away, {} allowed", i, a, b, distance, c.ulp);
  }
  return "";
}

/// What is wrong with the results of a case; empty: nothing.
std::string faultOf(const Tensors &found, const Case &c) {
  if (found.size() != c.wanted.size())
    return fmt::format("{} results, not {}", found.size(), c.wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor &y = found[i], &wanted = c.wanted[i];
    if (y.dtype() != wanted.dtype() || y.shape() != wanted.shape())
      return fmt::format("result {} is {}{}, not {}{}", i, nameOf(y.dtype()), toString(y.shape()),
                         nameOf(wanted.dtype()), toString(wanted.shape()));
    auto elements = [&]<class T>(T) { return different<T>(y.data<T>(), wanted, c); };
    std::string fault;
    switch (y.dtype()) {
    case f64: fault = elements(double()); break;
    case f32: fault = elements(float()); break;
    case i64: fault = elements(int64_t()); break;
    case i32: fault = elements(int32_t()); break;
    case u8: fault = elements(uint8_t()); break;
    default: fault = elements(bool()); break;
    }
    if (!fault.empty())
      return fmt::format("result {}: {}", i, fault);
  }
  return "";
}

// ---- The three ways to run a case

/// The operands' types with every size open that is not 1, which might be one to repeat.
Tensors openSpecs(const Tensors &operands) {
  Tensors specs;
  for (const Tensor &x : operands) {
    TensorSpec spec{x.dtype(), {}};
    for (int64_t size : x.shape())
      spec.shape.push_back(size == 1 ? 1 : dynamic);
    specs.push_back(Tensor(spec));
  }
  return specs;
}

Tensors open(const Function<Tensors(const Tensors &)> &f, const Tensors &operands) {
  return f.trace(openSpecs(operands)).call_flat(operands);
}

/// What `run` gives, or the error that it ends in.
std::string faultOf(const std::function<Tensors()> &run, const Case &c) {
  try {
    return faultOf(run(), c);
  } catch (const Error &error) {
    return error.what();
  }
}

class Reference : public testing::TestWithParam<Call> {};

TEST_P(Reference, HasTheValues) {
  const Call &call = GetParam();
  int cases = 0;
  for (const Case &c : allCases()) {
    if (c.name != call.name)
      continue;
    ++cases;
    Function<Tensors(const Tensors &)> f("reference", [&](const Tensors &x) { return call.run(x, c.options); });
    auto expect = [&](const char *way, const std::string &fault) {
      if (!fault.empty())
        ADD_FAILURE() << c.line << ", " << call.name << ", " << way << ": " << fault;
    };
    expect("eager", faultOf([&] { return call.run(c.operands, c.options); }, c));
    expect("compiled", faultOf([&] { return f(c.operands); }, c));
    std::string fault = faultOf([&] { return open(f, c.operands); }, c);
    if (c.closed.empty())
      expect("with open sizes", fault);
    else if (fault.find(c.closed) == std::string::npos)
      expect("with open sizes", "there is no error that says '" + c.closed + "': " + fault);
  }
  EXPECT_NE(cases, 0) << "the tables have no case of " << call.name;
}

/// The names of GoogleTest have letters and digits alone.
std::string testName(const testing::TestParamInfo<Call> &info) {
  static const std::map<char, const char *> signs = {
      {'+', "Add"},  {'-', "Sub"}, {'*', "Mul"},     {'/', "Div"}, {'%', "Mod"}, {'=', "Equal"}, {'!', "Not"},
      {'<', "Less"}, {'&', "And"}, {'>', "Greater"}, {'|', "Or"},  {':', "_"},   {'[', "At"},    {']', ""}};
  std::string name;
  for (char sign : std::string_view(info.param.name))
    if (auto at = signs.find(sign); at != signs.end())
      name += at->second;
    else
      name += sign;
  return name;
}
INSTANTIATE_TEST_SUITE_P(NumPy, Reference, testing::ValuesIn(kCalls), testName);

TEST(ReferenceTables, HaveNoCaseThatIsNotCalled) {
  std::set<std::string> called;
  for (const Call &call : kCalls)
    EXPECT_TRUE(called.insert(call.name).second) << call.name << " has two rows in Calls.inc";
  for (const Case &c : allCases())
    EXPECT_TRUE(called.contains(c.name)) << c.line << ": Calls.inc has no call of " << c.name;
}

TEST(ReferenceTables, AWrongValueIsFound) {
  Case c{"", "", {}, {Tensor{1.0, 2.0}}, {}, 1, {}, ""};
  EXPECT_EQ(faultOf(Tensors{Tensor{1.0, 2.0 + 0x1p-51}}, c), "");
  EXPECT_NE(faultOf(Tensors{Tensor{1.0, 2.0 + 0x1p-50}}, c), "");
  EXPECT_NE(faultOf(Tensors{Tensor{1.0f, 2.0f}}, c), "");
  EXPECT_NE(faultOf(Tensors{Tensor{{1.0, 2.0}}}, c), "");
  EXPECT_NE(faultOf(Tensors{Tensor{1.0, std::nan("")}}, c), "");
  c.wanted = {Tensor{0.0}};
  EXPECT_NE(faultOf(Tensors{Tensor{-0.0}}, c), "");
  c.scale = {1};
  EXPECT_EQ(faultOf(Tensors{Tensor{-0.0}}, c), "");
  EXPECT_NE(faultOf(Tensors{Tensor{0x1p-51}}, c), "");
}

} // namespace
