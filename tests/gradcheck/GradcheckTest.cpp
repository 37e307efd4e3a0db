// Is each derivative right? Every sample of every op and of every composite, through the
// transform and the interpreter, in f64:
//   first order    <ct, (f(x + h v) - f(x - h v)) / 2h> against <J^T ct, v>, h = 1e-5, within
//   1e-6, in three seeded directions
//   adjointness    <ct, J v> = <J^T ct, v> within 1e-10, with J v from reversing the reverse
//   second order   the derivative of <J^T ct, v> by x along u against its central difference
//   third order    the derivative of that by x along w against its central difference
// and in f32: J^T ct and the second order against those of f64 at the same point.
// A failure prints function, sample, seed and both numbers.
#include "autodiff/Reverse.h"
#include "codegen/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "tests/Composites.h"

#include "mlir/IR/IRMapping.h"
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

using Build = std::function<FailureOr<Value>(OpBuilder &b, Location loc, ValueRange x)>;

/// A function on a sample's operands, as functions in IR:
///   order 0   (x...) -> y
///   order 1   (x..., ct) -> J^T ct
///   order 2   (x..., ct, v...) -> J v, d<J^T ct, v>/dx...
///   order 3   (x..., ct, v..., u...) -> the derivative by x... of <the last, u>
class Check {
public:
  Check(std::string name, std::vector<Array> operands, Build f, DType dtype = DType::f64)
      : name_(std::move(name)), operands_(std::move(operands)), f_(std::move(f)), dtype_(dtype), b_(ir::context()),
        loc_(b_.getUnknownLoc()) {
    for (size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].dtype() == DType::f64)
        floats_.push_back(i);
  }

  void run(int64_t seed);

private:
  codegen::Program build(int order);
  Arrays call(const codegen::Program &program, const Arrays &x, const Arrays &more = {});
  Arrays moved(double step, const Arrays &v) const;
  void compareNarrow(const Arrays &ct, const Arrays &v);
  std::string what(int64_t seed) const { return name_ + ", seed " + std::to_string(seed); }

  std::string name_;
  std::vector<Array> operands_;
  Build f_;
  DType dtype_;                ///< in which the program computes; what goes in and comes out is f64
  std::vector<size_t> floats_; ///< places of the f64 operands
  OpBuilder b_;
  Location loc_;
};

} // namespace

/// f64 as `dtype`; other dtypes stay.
static Array castTo(const Array &x, DType dtype) {
  if (!runtime::isFloat(x.dtype()) || x.dtype() == dtype)
    return x;
  Array y;
  EXPECT_TRUE(
      runtime::execute({runtime::OpId::cast, runtime::CastAttrs::make(dtype), std::span(&x, 1), {}}, std::span(&y, 1))
          .ok());
  return y;
}

codegen::Program Check::build(int order) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc_);
  b_.setInsertionPointToStart(module->getBody());
  auto function = func::FuncOp::create(b_, loc_, "f", b_.getFunctionType({}, {}));
  Block *body = function.addEntryBlock();
  b_.setInsertionPointToStart(body);
  SmallVector<Value> x, sources, results;
  for (const Array &operand : operands_)
    x.push_back(body->addArgument(ir::tensorTypeOf(b_.getContext(), castTo(operand, dtype_).type), loc_));
  for (size_t place : floats_)
    sources.push_back(x[place]);
  FailureOr<Value> y = f_(b_, loc_, x);
  EXPECT_TRUE(succeeded(y)) << what(0);
  results = {*y};
  // What nothing depends on any more has derivative 0.
  auto differentiate = [&](ArrayRef<Value> targets, ArrayRef<Value> seeds, ArrayRef<Value> by) {
    auto gradients = autodiff::reverse(b_, loc_, targets, seeds, by);
    EXPECT_TRUE(succeeded(gradients)) << what(0);
    SmallVector<Value> values;
    for (auto [source, value] : llvm::zip_equal(by, gradients->values))
      values.push_back(value ? value : ir::zerosLike(b_, loc_, source));
    return values;
  };
  auto directions = [&] {
    SmallVector<Value> values;
    for (Value source : sources)
      values.push_back(body->addArgument(source.getType(), loc_));
    return values;
  };
  if (order >= 1) {
    Value ct = body->addArgument(y->getType(), loc_);
    SmallVector<Value> first = differentiate({*y}, {ct}, sources);
    results = first;
    if (order >= 2) {
      // <J^T ct, v> is linear in ct, so its derivative by ct is J v.
      SmallVector<Value> by{ct}, v = directions();
      by.append(sources.begin(), sources.end());
      results = differentiate(first, v, by);
    }
    if (order == 3) {
      SmallVector<Value> u = directions(), second(results.begin() + 1, results.end());
      results = differentiate(second, u, sources);
    }
  }
  func::ReturnOp::create(b_, loc_, results);
  function.setFunctionType(b_.getFunctionType(body->getArgumentTypes(), ValueRange(results).getTypes()));
  EXPECT_TRUE(succeeded(verify(*module))) << what(0);
  return *codegen::flatten(function);
}

Arrays Check::call(const codegen::Program &program, const Arrays &x, const Arrays &more) {
  Arrays inputs;
  for (const Arrays *list : {&x, &more})
    for (const Array &array : *list)
      inputs.push_back(castTo(array, dtype_));
  auto outputs = codegen::interpret(program, inputs);
  if (!outputs.ok()) {
    ADD_FAILURE() << what(0) << ": " << runtime::toString(outputs.failure());
    return Arrays(program.outputs.size());
  }
  for (Array &output : *outputs)
    output = castTo(output, DType::f64);
  return *outputs;
}

/// The operands moved by step * v.
Arrays Check::moved(double step, const Arrays &v) const {
  Arrays x = operands_;
  for (size_t k = 0; k < floats_.size(); ++k) {
    Array &operand = x[floats_[k]];
    operand = Array::copyOf(std::span<const double>(operand.span<double>()), operand.shape());
    for (int64_t i = 0; i < operand.numElements(); ++i)
      operand.data<double>()[i] += step * v[k].data<double>()[i];
  }
  return x;
}

/// Operands, ct and v, after a rounding to f32, give in f32 what they give in f64, as far as f32 goes.
void Check::compareNarrow(const Arrays &ct, const Arrays &v) {
  auto rounded = [](const Arrays &x) {
    Arrays y;
    for (const Array &array : x)
      y.push_back(castTo(castTo(array, DType::f32), DType::f64));
    return y;
  };
  Check narrow(name_ + " in f32", rounded(operands_), f_, DType::f32), wide(name_, narrow.operands_, f_);
  for (int order : {0, 1, 2}) {
    Arrays more = order >= 1 ? rounded(ct) : Arrays();
    for (size_t k = 0; order == 2 && k < v.size(); ++k)
      more.push_back(rounded({v[k]})[0]);
    Arrays expected = wide.call(wide.build(order), narrow.operands_, more),
           actual = narrow.call(narrow.build(order), narrow.operands_, more);
    for (size_t r = 0; r < expected.size(); ++r) {
      double scale = 1;
      for (double value : expected[r].span<double>())
        scale = std::max(scale, std::fabs(value));
      for (int64_t i = 0; i < expected[r].numElements(); ++i)
        EXPECT_NEAR(actual[r].data<double>()[i], expected[r].data<double>()[i], 2e-5 * scale)
            << "order " << order << ", " << narrow.name_;
    }
  }
}

void Check::run(int64_t seed) {
  constexpr double h = 1e-5;
  codegen::Program value = build(0), adjoint = build(1), along = build(2), third = build(3);
  Array y = call(value, operands_)[0];
  Array ct = direction(y, seed, 100);
  auto directions = [&](int64_t position) {
    Arrays list;
    for (size_t k = 0; k < floats_.size(); ++k)
      list.push_back(direction(operands_[floats_[k]], seed, position + static_cast<int64_t>(k)));
    return list;
  };
  Arrays u = directions(200), v = directions(300), w = directions(400);
  auto total = [](const Arrays &a, const Arrays &b) {
    double sum = 0;
    for (size_t k = 0; k < b.size(); ++k)
      sum += dot(a[a.size() - b.size() + k], b[k]);
    return sum;
  };
  auto together = [](std::initializer_list<Arrays> lists) {
    Arrays all;
    for (const Arrays &list : lists)
      all.insert(all.end(), list.begin(), list.end());
    return all;
  };

  double exact = total(call(adjoint, operands_, {ct}), v);
  double numeric = (dot(call(value, moved(h, v))[0], ct) - dot(call(value, moved(-h, v))[0], ct)) / (2 * h);
  EXPECT_NEAR(exact, numeric, 1e-6 * std::max(1.0, std::fabs(numeric))) << "first order: " << what(seed);

  Arrays ctAndV = together({{ct}, v}), second = call(along, operands_, ctAndV);
  EXPECT_NEAR(dot(ct, second[0]), exact, 1e-10 * std::max(1.0, std::fabs(exact))) << "adjointness: " << what(seed);

  double curvature = total(second, u);
  double change = (total(call(adjoint, moved(h, u), {ct}), v) - total(call(adjoint, moved(-h, u), {ct}), v)) / (2 * h);
  EXPECT_NEAR(curvature, change, 2e-6 * std::max(1.0, std::fabs(change))) << "second order: " << what(seed);

  double bend = total(call(third, operands_, together({ctAndV, u})), w);
  change = (total(call(along, moved(h, w), ctAndV), u) - total(call(along, moved(-h, w), ctAndV), u)) / (2 * h);
  EXPECT_NEAR(bend, change, 5e-6 * std::max(1.0, std::fabs(change))) << "third order: " << what(seed);

  if (seed == 1)
    compareNarrow({ct}, v);
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
    Build f = [&](OpBuilder &b, Location loc, ValueRange x) -> FailureOr<Value> {
      FailureOr<Operation *> op = ir::buildOp(b, loc, sample.op, x, sample.attrs);
      if (failed(op))
        return failure();
      return (*op)->getResult(0);
    };
    for (int64_t seed : {1, 2, 3})
      Check(std::string(runtime::recordOf(sample.op).name) + " on " + sample.text, sample.operands, f).run(seed);
    ++checked;
  }
  EXPECT_GT(checked, 45);
}

/// The body of a traced function, in the dtype of `x`.
static FailureOr<Value> inlined(const Composite &composite, OpBuilder &b, ValueRange x) {
  std::vector<Array> like;
  for (Value value : x)
    like.push_back(Array::empty(ir::runtimeTypeOf(value.getType()).dtype, ir::runtimeTypeOf(value.getType()).shape));
  OwningOpRef<ModuleOp> module = tracedModule(composite.call, like);
  auto function = *module->getOps<func::FuncOp>().begin();
  IRMapping map;
  map.map(function.getArguments(), x);
  for (Operation &op : function.front().without_terminator())
    b.clone(op, map);
  return map.lookup(function.front().getTerminator()->getOperand(0));
}

TEST(Gradcheck, EverySampleOfEveryComposite) {
  for (const Composite &composite : allComposites()) {
    if (composite.kind != Composite::smooth)
      continue;
    Build f = [&](OpBuilder &b, Location, ValueRange x) { return inlined(composite, b, x); };
    for (int64_t seed : {1, 2, 3})
      Check(std::string(composite.name) + " on " + composite.text, parseOperands(composite.text, seed), f).run(seed);
  }
}
