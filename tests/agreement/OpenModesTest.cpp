// Every sample of every op with its sizes opened to `?`, in forward mode and for many lanes at once, whose number is
// known or `?`: what a program with open sizes gives is what the one that knows them gives, interpreted and compiled;
// where that one fails, it does.
#include "codegen/interpret/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "passes/Passes.h"
#include "tests/Arrays.h"
#include "tests/Builds.h"
#include "tests/agreement/Bounds.h"
#include "tests/agreement/Engines.h"
#include "tests/agreement/Openings.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace wg::tests {
namespace {

using runtime::Array;
using Arrays = std::vector<Array>;
using Types = std::vector<runtime::TensorType>;

/// Results, or the error instead.
struct Outcome {
  Arrays values;
  std::string error;
};

/// Errors of MLIR become text.
template <class F> Outcome attempt(F f) {
  Outcome outcome;
  ScopedDiagnosticHandler handler(ir::context(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      outcome.error += diagnostic.str() + "\n";
  });
  runtime::Result<Arrays> results = f();
  if (results.ok())
    outcome.values = *results;
  else
    outcome.error += runtime::toString(results.failure());
  return outcome;
}

runtime::Result<Arrays> interpretOn(std::optional<Function> &made, const Arrays &inputs) {
  if (!made)
    return runtime::valueError("it was not built");
  FailureOr<codegen::Program> program = codegen::flatten(made->function);
  if (failed(program))
    return runtime::valueError("it was not flattened");
  return codegen::interpret(*program, inputs);
}

/// A way to apply an op: to tangents or not, to lanes or not.
struct Way {
  std::string name;
  bool forward;
  std::vector<bool> set = {}; ///< the arguments that have lanes
};

class Walk {
public:
  explicit Walk(const Sample &sample);
  void run();
  bool hasWays() const { return !ways_.empty(); }
  int compared = 0, spared = 0;

private:
  void walk(const Opening &opening, const Way &way);
  void compare(const Opening &opening, const Way &way, std::optional<Function> &open, int64_t size, size_t count);
  void compile(Function &open, const Arrays &inputs);
  Build buildFor(const Way &way, const runtime::Attrs &attrs, size_t numEntries) const;
  /// Of the operands, of the u8[n] whose sizes are the entries of the attributes, and of the tangents.
  template <class T, class F> std::vector<T> together(std::vector<T> operands, std::vector<T> entries, F like) const;

  const Sample &sample_;
  std::vector<size_t> floats_; ///< operands that have a tangent
  std::vector<Way> ways_;
  std::set<std::string> compiled_; ///< programs, as text: many openings of a sample become one program
};

Walk::Walk(const Sample &sample) : sample_(sample) {
  Types types;
  runtime::TypeList results;
  for (const Array &operand : sample.operands)
    types.push_back(operand.type);
  EXPECT_TRUE(runtime::inferTypes(sample.op, types, sample.attrs, results).ok());
  if (recordOf(sample.op).differentiable && runtime::isFloat(results[0].dtype))
    for (size_t i = 0; i < types.size(); ++i)
      if (runtime::isFloat(types[i].dtype))
        floats_.push_back(i);
  bool forward = !floats_.empty();
  size_t n = types.size();
  if (forward)
    ways_.push_back({"jvp", true});
  if (n == 0 || !sample_.roomForLanes())
    return;
  ways_.push_back({forward ? "vmap of the jvp" : "vmap", forward, std::vector<bool>(n, true)});
  for (size_t i = 0; n > 1 && i < n; ++i) {
    ways_.push_back({"vmap over operand " + std::to_string(i), false, std::vector<bool>(n, false)});
    ways_.back().set[i] = true;
  }
}

template <class T, class F>
std::vector<T> Walk::together(std::vector<T> operands, std::vector<T> entries, F like) const {
  std::vector<T> all = operands;
  all.insert(all.end(), entries.begin(), entries.end());
  for (size_t place : floats_)
    all.push_back(like(operands[place], place));
  return all;
}

/// The value, and with forward mode the tangent.
Build Walk::buildFor(const Way &way, const runtime::Attrs &attrs, size_t numEntries) const {
  size_t numOperands = sample_.operands.size(), numArguments = numOperands + numEntries;
  runtime::OpId op = sample_.op;
  Build value = [=](OpBuilder &b, Location loc, ValueRange x) {
    Values operands(x.take_front(numOperands));
    for (Value entry : x.slice(numOperands, numEntries))
      operands.push_back(ir::DimOp::create(b, loc, entry, 0));
    return opOf(op, attrs)(b, loc, operands);
  };
  bool forward = way.forward;
  Build both = [=](OpBuilder &b, Location loc, ValueRange x) -> FailureOr<Values> {
    FailureOr<Values> y = value(b, loc, x.take_front(numArguments));
    FailureOr<Values> tangent = forward && succeeded(y) ? tangents(value, numArguments)(b, loc, x) : Values();
    if (failed(y) || failed(tangent))
      return failure();
    y->append(*tangent);
    return y;
  };
  if (way.set.empty())
    return both;
  std::vector<bool> set =
      together(way.set, std::vector<bool>(numEntries, false), [](bool lanes, size_t) { return lanes; });
  return batched(both, set);
}

/// With the sizes that it is run with, and no `?`.
void Walk::compile(Function &open, const Arrays &inputs) {
  OwningOpRef<ModuleOp> module = open.module->clone();
  SmallVector<Type> types;
  for (const Array &input : inputs)
    types.push_back(ir::tensorTypeOf(ir::context(), input.type));
  ASSERT_TRUE(succeeded(passes::inferShapes(module->lookupSymbol<func::FuncOp>("f"), types)));
  PassManager manager(ir::context());
  passes::addSimplify(manager.nest<func::FuncOp>());
  ASSERT_TRUE(succeeded(manager.run(*module)));
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  if (!compiled_.insert(text).second)
    return;
  checkAgreement(*module, "f", inputs, {.ulps = boundOfPrograms("composites"), .atLeast = 1}, compiled_.size());
}

void Walk::compare(const Opening &opening, const Way &way, std::optional<Function> &open, int64_t size, size_t count) {
  Arrays operands = operandsFor(sample_, opening, size), entries, knownEntries;
  runtime::Attrs attrs = attrsFor(sample_, opening, size);
  for (auto [attr, entry] : opening.entries)
    entries.push_back(Array::zeros(runtime::DType::u8, {attrs.ints(attr)[entry]}));
  auto like = [](const Array &x, size_t place) { return direction(x.type, 7, static_cast<int64_t>(place)); };
  Arrays inputs = together(operands, entries, like), knownInputs = together(operands, {}, like);
  if (!way.set.empty()) {
    auto lanes = [&](const Arrays &x, size_t numEntries) {
      return Lanes(x, together(way.set, std::vector<bool>(numEntries, false), [](bool set, size_t) { return set; }),
                   count)
          .together;
    };
    inputs = lanes(inputs, entries.size());
    knownInputs = lanes(knownInputs, 0);
  }
  std::string what = way.name + " of " + nameOf(sample_, opening, size) + ", " + std::to_string(count) + " lanes";
  Outcome expected = attempt([&] {
    Types types;
    for (const Array &input : knownInputs)
      types.push_back(input.type);
    std::optional<Function> known = makeFunction(types, buildFor(way, attrs, 0));
    return interpretOn(known, knownInputs);
  });
  Outcome actual = attempt([&] { return interpretOn(open, inputs); });
  ASSERT_EQ(actual.error.find("internal error"), std::string::npos) << what << ": " << actual.error;
  if (!expected.error.empty()) {
    EXPECT_TRUE(!actual.error.empty() || count == 0) // no lane is there that could fail
        << what << ": with known sizes " << expected.error;
    return;
  }
  if (isSpared(sample_, actual.error)) {
    ++spared;
    return;
  }
  ASSERT_EQ(actual.error, "") << what;
  ASSERT_EQ(actual.values.size(), expected.values.size()) << what;
  ++compared;
  Tolerance tolerance; // a sum may be in another order where sizes are open
  open->module->walk([&](Operation *op) {
    if (isa<ir::ReduceSumOp, ir::ReduceProdOp, ir::ContractOp>(op))
      tolerance = {.ulps = boundOfPrograms("composites"), .atLeast = 1};
  });
  for (size_t r = 0; r < expected.values.size(); ++r)
    expectClose(expected.values[r], actual.values[r], tolerance, what + ", result " + std::to_string(r));
  if (!::testing::Test::HasFailure() && (size < 0 || opening.everything) && count == 3)
    compile(*open, inputs);
}

void Walk::walk(const Opening &opening, const Way &way) {
  size_t numEntries = opening.entries.size();
  runtime::TensorType entry{runtime::DType::u8, {runtime::kDynamic}};
  auto typesWith = [&](int64_t count) {
    Types types = together(openTypes(sample_, opening), Types(numEntries, entry),
                           [](const runtime::TensorType &type, size_t) { return type; });
    if (way.set.empty())
      return types;
    std::vector<bool> set =
        together(way.set, std::vector<bool>(numEntries, false), [](bool lanes, size_t) { return lanes; });
    for (size_t i = 0; i < types.size(); ++i)
      if (set[i]) {
        runtime::Shape shape{count};
        for (int64_t n : types[i].shape)
          shape.push_back(n);
        types[i].shape = shape;
      }
    return types;
  };
  Build build = buildFor(way, openAttrs(sample_, opening), numEntries);
  for (int64_t lanes : {int64_t(3), runtime::kDynamic}) {
    if (way.set.empty() && lanes != 3)
      continue;
    std::optional<Function> open;
    Outcome made = attempt([&]() -> runtime::Result<Arrays> {
      open = makeFunction(typesWith(lanes), build);
      return Arrays();
    });
    if (!open) // one of two operands that must be of one type
      return;
    for (int64_t size : {-1, 0, 1})
      for (size_t count : {3, 0, 1}) {
        if (count == 3 || lanes != 3)
          compare(opening, way, open, size, count);
        if (::testing::Test::HasFailure())
          return;
      }
  }
}

void Walk::run() {
  for (const Opening &opening : openingsOf(sample_))
    for (const Way &way : ways_) {
      walk(opening, way);
      if (::testing::Test::HasFailure())
        return;
    }
}

const std::vector<Sample> &samples() {
  static const std::vector<Sample> list = allSamples();
  return list;
}

class OpenModes : public ::testing::TestWithParam<size_t> {};

TEST_P(OpenModes, AreThoseOfKnownSizes) {
  const Sample &sample = samples()[GetParam()];
  Walk walk(sample);
  walk.run();
  bool opens = false;
  for (const Array &operand : sample.operands)
    opens = opens || (operand.shape().rank() > 0 && walk.hasWays());
  if (opens)
    EXPECT_GT(walk.compared, 0);
  EXPECT_EQ(walk.spared > 0, !sample.reason("open").empty()) << "the sample's reason is stale";
}

std::vector<size_t> numbers() {
  std::vector<size_t> list;
  for (size_t i = 0; i < samples().size(); ++i)
    if (runtime::OpId op = samples()[i].op; op != runtime::OpId::dim && op != runtime::OpId::size) // sizes themselves
      list.push_back(i);
  return list;
}
std::string nameOfSample(const ::testing::TestParamInfo<size_t> &info) {
  return std::string(recordOf(samples()[info.param].op).name) + "_" + std::to_string(info.param);
}
INSTANTIATE_TEST_SUITE_P(Every, OpenModes, ::testing::ValuesIn(numbers()), nameOfSample);

} // namespace
} // namespace wg::tests
