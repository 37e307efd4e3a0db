// Is each derivative right? Every sample of every op in f64, through the transform and the interpreter:
//   first order    <ct, (f(x + h v) - f(x - h v)) / 2h> against <J^T ct, v>, h = 1e-5, within 1e-6, in three seeded
//   directions adjointness    <ct, J v> = <J^T ct, v> within 1e-10, with J v from reversing the reverse second order
//   the derivative of <J^T ct, v> by x along u against its central difference
// A failure prints op, sample, seed and both numbers.
#include "autodiff/Reverse.h"
#include "codegen/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "tests/Samples.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace wg;
using namespace wg::tests;
using runtime::Array;
using runtime::DType;
using Arrays = std::vector<Array>;

/// Samples at a kink or a singular point: differences say nothing there; tests/ir/RulesTest.cpp fixes what the rules
/// say.
static bool isSmooth(const Sample &sample) {
  std::string_view name = runtime::recordOf(sample.op).name;
  bool ties = (name == "reduce_max" || name == "reduce_min") && sample.text.find('=') < sample.text.find('|');
  if (name == "version") // by design no derivative of its own value; tests/frontend/FunctionTest.cpp has what it is for
    return false;
  return !ties && !(name == "pow" && sample.text.find("= [0,") != std::string::npos);
}

static double dot(const Array &a, const Array &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numElements(); ++i)
    sum += a.data<double>()[i] * b.data<double>()[i];
  return sum;
}

static Array direction(const Array &like, int64_t seed, int64_t position) {
  Array v = Array::empty(DType::f64, like.shape());
  for (int64_t i = 0; i < v.numElements(); ++i)
    v.data<double>()[i] = 2 * runtime::randomUniform<double>(seed, position, i) - 1;
  return v;
}

namespace {

/// A sample's op as functions in IR:
///   value(x...) -> y;  adjoint(x..., ct) -> J^T ct;  along(x..., ct, v...) -> J v, d<J^T ct, v>/dx...
class Check {
public:
  explicit Check(const Sample &sample) : sample_(sample), b_(ir::context()), loc_(b_.getUnknownLoc()) {
    for (size_t i = 0; i < sample.operands.size(); ++i)
      if (sample.operands[i].dtype() == DType::f64)
        floats_.push_back(i);
  }

  void run(int64_t seed);

private:
  codegen::Program build(int order);
  Arrays call(const codegen::Program &program, const Arrays &x, const Arrays &more = {});
  Arrays moved(double step, const Arrays &v) const;
  std::string what(int64_t seed) const {
    return std::string(runtime::recordOf(sample_.op).name) + " on " + sample_.text + ", seed " + std::to_string(seed);
  }

  const Sample &sample_;
  std::vector<size_t> floats_; ///< places of the f64 operands
  OpBuilder b_;
  Location loc_;
  SmallVector<bool> curved_; ///< by float operand: whether J^T ct depends on it
};

} // namespace

codegen::Program Check::build(int order) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc_);
  b_.setInsertionPointToStart(module->getBody());
  auto function = func::FuncOp::create(b_, loc_, "f", b_.getFunctionType({}, {}));
  Block *body = function.addEntryBlock();
  b_.setInsertionPointToStart(body);
  SmallVector<Value> x, sources, directions, results;
  for (const Array &operand : sample_.operands)
    x.push_back(body->addArgument(ir::tensorTypeOf(b_.getContext(), operand.type), loc_));
  for (size_t place : floats_)
    sources.push_back(x[place]);
  FailureOr<Operation *> op = ir::buildOp(b_, loc_, sample_.op, x, sample_.attrs);
  EXPECT_TRUE(succeeded(op)) << what(0);
  Value y = (*op)->getResult(0);
  results = {y};
  if (order >= 1) {
    Value ct = body->addArgument(y.getType(), loc_);
    auto first = autodiff::reverse(b_, loc_, y, ct, sources);
    EXPECT_TRUE(succeeded(first)) << what(0);
    results.assign(first->values.begin(), first->values.end());
    for (Value value : results)
      EXPECT_TRUE(value) << what(0);
    if (order == 2) {
      for (Value source : sources)
        directions.push_back(body->addArgument(source.getType(), loc_));
      // <J^T ct, v> is linear in ct, so its derivative by ct is J v.
      SmallVector<Value> by{ct};
      by.append(sources.begin(), sources.end());
      auto second = autodiff::reverse(b_, loc_, results, directions, by);
      EXPECT_TRUE(succeeded(second)) << what(0);
      results.clear();
      curved_.clear();
      for (auto [source, value] : llvm::zip_equal(by, second->values)) {
        results.push_back(value ? value : ir::zerosLike(b_, loc_, source));
        curved_.push_back(value != nullptr);
      }
    }
  }
  func::ReturnOp::create(b_, loc_, results);
  function.setFunctionType(b_.getFunctionType(body->getArgumentTypes(), ValueRange(results).getTypes()));
  EXPECT_TRUE(succeeded(verify(*module))) << what(0);
  return *codegen::flatten(function);
}

Arrays Check::call(const codegen::Program &program, const Arrays &x, const Arrays &more) {
  Arrays inputs = x;
  inputs.insert(inputs.end(), more.begin(), more.end());
  auto outputs = codegen::interpret(program, inputs);
  if (!outputs.ok()) {
    ADD_FAILURE() << what(0) << ": " << runtime::toString(outputs.failure());
    return Arrays(program.outputs.size());
  }
  return *outputs;
}

/// The operands moved by step * v.
Arrays Check::moved(double step, const Arrays &v) const {
  Arrays x = sample_.operands;
  for (size_t k = 0; k < floats_.size(); ++k) {
    Array &operand = x[floats_[k]];
    operand = Array::copyOf(std::span<const double>(operand.span<double>()), operand.shape());
    for (int64_t i = 0; i < operand.numElements(); ++i)
      operand.data<double>()[i] += step * v[k].data<double>()[i];
  }
  return x;
}

void Check::run(int64_t seed) {
  constexpr double h = 1e-5;
  codegen::Program value = build(0), adjoint = build(1), along = build(2);
  Array y = call(value, sample_.operands)[0];
  Array ct = direction(y, seed, 100);
  Arrays u, v;
  for (size_t k = 0; k < floats_.size(); ++k) {
    u.push_back(direction(sample_.operands[floats_[k]], seed, 200 + static_cast<int64_t>(k)));
    v.push_back(direction(sample_.operands[floats_[k]], seed, 300 + static_cast<int64_t>(k)));
  }
  auto total = [](const Arrays &a, const Arrays &b) {
    double sum = 0;
    for (size_t k = 0; k < b.size(); ++k)
      sum += dot(a[k], b[k]);
    return sum;
  };

  double exact = total(call(adjoint, sample_.operands, {ct}), v);
  double numeric = (dot(call(value, moved(h, v))[0], ct) - dot(call(value, moved(-h, v))[0], ct)) / (2 * h);
  EXPECT_NEAR(exact, numeric, 1e-6 * std::max(1.0, std::fabs(numeric))) << "first order: " << what(seed);

  Arrays more{ct};
  more.insert(more.end(), v.begin(), v.end());
  Arrays second = call(along, sample_.operands, more);
  EXPECT_NEAR(dot(ct, second[0]), exact, 1e-10 * std::max(1.0, std::fabs(exact))) << "adjointness: " << what(seed);

  double curvature = total(Arrays(second.begin() + 1, second.end()), u);
  double change = (total(call(adjoint, moved(h, u), {ct}), v) - total(call(adjoint, moved(-h, u), {ct}), v)) / (2 * h);
  EXPECT_NEAR(curvature, change, 2e-6 * std::max(1.0, std::fabs(change))) << "second order: " << what(seed);
}

TEST(Gradcheck, EverySampleOfEveryOp) {
  int checked = 0;
  for (const Sample &sample : allSamples()) {
    if (!runtime::recordOf(sample.op).differentiable || !isSmooth(sample))
      continue;
    runtime::TypeList types;
    std::vector<runtime::TensorType> operands;
    bool floats = false;
    for (const Array &operand : sample.operands) {
      operands.push_back(operand.type);
      floats = floats || operand.dtype() == DType::f64;
    }
    if (!floats || !runtime::inferTypes(sample.op, operands, sample.attrs, types).ok() || types[0].dtype != DType::f64)
      continue;
    for (int64_t seed : {1, 2, 3})
      Check(sample).run(seed);
    ++checked;
  }
  EXPECT_GT(checked, 45);
}
