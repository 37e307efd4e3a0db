// Is each derivative right? Every sample of every op and of every composite, through the transforms and the
// interpreter, in f64, each in three seeded directions. Differences are extrapolated and know their error (Ridders
// 1982), so that a steep point is no false alarm.
//   first order    <J^T ct, v> by reverse and <ct, J v> by forward mode, against <ct, f(x + t v)>' at t = 0: 1e-6;
//                  against one another, and J v by reversing the reverse: 1e-10
//   linearity      J^T 2ct is twice J^T ct, bit for bit, J^T (ct + c) is J^T ct + J^T c within 1e-12; so is J v in v
//   second order   the derivative along u of that number, in four ways (reverse and forward mode, over either), against
//                  <J^T(x + t u) ct, v>' at t = 0: 1e-5; against one another: 1e-10
//   third order    the derivative along w of that, thrice reverse and thrice forward, in the same manner
// and in f32: values, both modes and the second order against those of f64 at the same point.
// A failure prints function, sample, seed and both numbers.
#include "autodiff/Forward.h"
#include "codegen/interpret/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "runtime/Differences.h"
#include "tests/Arrays.h"
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

namespace {

using Build = std::function<FailureOr<Value>(OpBuilder &b, Location loc, ValueRange x)>;

/// What is computed of a function f of a sample's operands x, as a function in IR of (x..., ct, v..., u..., w...).
enum class Way {
  value,              ///< f(x)
  vjp,                ///< J^T ct
  jvp,                ///< J v
  jvpByReversing,     ///< J v, as the derivative of <J^T ct, v> by ct
  reverseOverReverse, ///< the derivative of <J^T ct, v> by x
  forwardOverReverse, ///< that of J^T ct along u
  reverseOverForward, ///< that of <ct, J v> by x
  forwardOverForward, ///< that of J v along u
  thriceReverse,      ///< the derivative by x of <reverseOverReverse, u>
  thriceForward,      ///< that of forwardOverForward along w
};

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
  /// What is applied beside x: a cotangent, and three directions.
  struct Applied {
    Array ct;
    Arrays v, u, w;
  };
  codegen::Program build(Way way);
  Arrays call(const codegen::Program &program, const Arrays &x, const Applied &applied);
  Arrays moved(double step, const Arrays &v) const;
  void checkLinear(const codegen::Program &adjoint, const codegen::Program &tangent, const Applied &applied,
                   int64_t seed);
  void compareNarrow(const Applied &applied);
  std::string what(int64_t seed) const { return name_ + ", seed " + std::to_string(seed); }

  std::string name_;
  std::vector<Array> operands_;
  Build f_;
  DType dtype_;                ///< in which the program computes; what goes in and comes out is f64
  std::vector<size_t> floats_; ///< places of the f64 operands
  runtime::Shape resultShape_; ///< known when a program has been built
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

codegen::Program Check::build(Way way) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc_);
  b_.setInsertionPointToStart(module->getBody());
  auto function = func::FuncOp::create(b_, loc_, "f", b_.getFunctionType({}, {}));
  Block *body = function.addEntryBlock();
  b_.setInsertionPointToStart(body);
  using Values = SmallVector<Value>;
  Values x, sources;
  for (const Array &operand : operands_)
    x.push_back(body->addArgument(ir::tensorTypeOf(b_.getContext(), castTo(operand, dtype_).type), loc_));
  for (size_t place : floats_)
    sources.push_back(x[place]);
  FailureOr<Value> y = f_(b_, loc_, x);
  EXPECT_TRUE(succeeded(y)) << what(0);
  resultShape_ = ir::runtimeTypeOf(y->getType()).shape;
  auto directions = [&] {
    Values values;
    for (Value source : sources)
      values.push_back(body->addArgument(source.getType(), loc_));
    return values;
  };
  Value ct = body->addArgument(y->getType(), loc_);
  Values v = directions(), u = directions(), w = directions();

  // What depends on nothing any more has derivative 0.
  auto reversed = [&](const Values &targets, const Values &seeds, const Values &by) {
    auto gradients = autodiff::reverse(b_, loc_, targets, seeds, by);
    EXPECT_TRUE(succeeded(gradients)) << what(0);
    for (auto [source, value] : llvm::zip_equal(by, gradients->values))
      value = value ? value : ir::zerosLike(b_, loc_, source);
    return gradients->values;
  };
  auto forwarded = [&](const Values &targets, const Values &along) {
    auto tangents = autodiff::forward(b_, loc_, targets, sources, along);
    EXPECT_TRUE(succeeded(tangents)) << what(0);
    for (auto [target, value] : llvm::zip_equal(targets, tangents->values))
      value = value ? value : ir::zerosLike(b_, loc_, target);
    return tangents->values;
  };
  auto vjp = [&] { return reversed({*y}, {ct}, sources); };
  auto jvp = [&] { return forwarded({*y}, v); };
  auto results = [&]() -> Values {
    switch (way) {
    case Way::value: return {*y};
    case Way::vjp: return vjp();
    case Way::jvp: return jvp();
    case Way::jvpByReversing: return reversed(vjp(), v, {ct}); // <J^T ct, v> is linear in ct
    case Way::reverseOverReverse: return reversed(vjp(), v, sources);
    case Way::forwardOverReverse: return forwarded(vjp(), u);
    case Way::reverseOverForward: return reversed(jvp(), {ct}, sources);
    case Way::forwardOverForward: return forwarded(jvp(), u);
    case Way::thriceReverse: return reversed(reversed(vjp(), v, sources), u, sources);
    case Way::thriceForward: break;
    }
    return forwarded(forwarded(jvp(), u), w);
  }();
  func::ReturnOp::create(b_, loc_, results);
  function.setFunctionType(b_.getFunctionType(body->getArgumentTypes(), ValueRange(results).getTypes()));
  EXPECT_TRUE(succeeded(verify(*module))) << what(0);
  autodiff::eraseDead(*body, nullptr); // the cotangents that stood in for others in forward mode
  return *codegen::flatten(function);
}

Arrays Check::call(const codegen::Program &program, const Arrays &x, const Applied &applied) {
  Arrays inputs;
  for (const Arrays &list : {x, Arrays{applied.ct}, applied.v, applied.u, applied.w})
    for (const Array &array : list)
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

/// Operands and what is applied, after a rounding to f32, give in f32 what they give in f64, as far as f32 goes.
void Check::compareNarrow(const Applied &applied) {
  auto rounded = [](const Arrays &x) {
    Arrays y;
    for (const Array &array : x)
      y.push_back(castTo(castTo(array, DType::f32), DType::f64));
    return y;
  };
  Applied near{rounded({applied.ct})[0], rounded(applied.v), rounded(applied.u), rounded(applied.w)};
  Check narrow(name_ + " in f32", rounded(operands_), f_, DType::f32), wide(name_, narrow.operands_, f_);
  for (Way way : {Way::value, Way::vjp, Way::jvp, Way::reverseOverReverse, Way::forwardOverReverse}) {
    Arrays expected = wide.call(wide.build(way), narrow.operands_, near),
           actual = narrow.call(narrow.build(way), narrow.operands_, near);
    for (size_t r = 0; r < expected.size(); ++r) {
      double scale = 1;
      for (double value : expected[r].span<double>())
        scale = std::max(scale, std::fabs(value));
      for (int64_t i = 0; i < expected[r].numElements(); ++i)
        EXPECT_NEAR(actual[r].data<double>()[i], expected[r].data<double>()[i], 2e-5 * scale)
            << "way " << static_cast<int>(way) << ", " << narrow.name_;
    }
  }
}

static Array combined(const Array &a, const Array &b, double factor) {
  Array sum = Array::empty(DType::f64, a.shape());
  for (int64_t i = 0; i < sum.numElements(); ++i)
    sum.data<double>()[i] = a.data<double>()[i] + factor * b.data<double>()[i];
  return sum;
}
static Arrays combined(const Arrays &a, const Arrays &b, double factor) {
  Arrays sums;
  for (size_t k = 0; k < a.size(); ++k)
    sums.push_back(combined(a[k], b[k], factor));
  return sums;
}

void Check::checkLinear(const codegen::Program &adjoint, const codegen::Program &tangent, const Applied &applied,
                        int64_t seed) {
  auto check = [&](const codegen::Program &program, const Applied &other, const Applied &twice, const Applied &sum) {
    Arrays first = call(program, operands_, applied), second = call(program, operands_, other),
           doubled = call(program, operands_, twice), together = call(program, operands_, sum);
    for (size_t r = 0; r < first.size(); ++r)
      for (int64_t i = 0; i < first[r].numElements(); ++i) {
        double a = first[r].data<double>()[i], b = second[r].data<double>()[i];
        EXPECT_EQ(doubled[r].data<double>()[i], 2 * a) << "a factor of 2: " << what(seed);
        EXPECT_NEAR(together[r].data<double>()[i], a + b, 1e-12 * std::max({1.0, std::fabs(a), std::fabs(b)}))
            << "a sum: " << what(seed);
      }
  };
  Applied other = applied, twice = applied, sum = applied;
  other.ct = direction(applied.ct.type, seed, 500);
  other.v = applied.w;
  twice.ct = combined(applied.ct, applied.ct, 1);
  twice.v = combined(applied.v, applied.v, 1);
  sum.ct = combined(applied.ct, other.ct, 1);
  sum.v = combined(applied.v, other.v, 1);
  check(adjoint, other, twice, sum);
  check(tangent, other, twice, sum);
}

void Check::run(int64_t seed) {
  codegen::Program value = build(Way::value), adjoint = build(Way::vjp), tangent = build(Way::jvp);
  Applied applied;
  auto directions = [&](int64_t position) {
    Arrays list;
    for (size_t k = 0; k < floats_.size(); ++k)
      list.push_back(direction(operands_[floats_[k]].type, seed, position + static_cast<int64_t>(k)));
    return list;
  };
  applied.u = directions(200), applied.v = directions(300), applied.w = directions(400);
  applied.ct = direction({DType::f64, resultShape_}, seed, 100);
  const Array &ct = applied.ct;
  auto total = [](const Arrays &a, const Arrays &b) {
    double sum = 0;
    for (size_t k = 0; k < b.size(); ++k)
      sum += dot(a[k], b[k]);
    return sum;
  };
  /// The numbers agree with one another, and with the derivative of f by a step along `by`.
  auto compare = [&](const char *order, double tolerance, std::initializer_list<double> numbers, const Arrays &by,
                     function_ref<double(const Arrays &x)> f) {
    double first = *numbers.begin(), scale = std::max(1.0, std::fabs(first));
    for (double number : numbers)
      EXPECT_NEAR(number, first, 1e-10 * scale) << order << " order, one way and another: " << what(seed);
    runtime::Difference numeric = runtime::differentiate([&](double step) { return f(moved(step, by)); });
    EXPECT_LT(numeric.error, tolerance * scale)
        << order
        << " order: differences say too little here; if there is a reason, it goes into the sample: " << what(seed);
    EXPECT_NEAR(first, numeric.value, tolerance * scale) << order << " order: " << what(seed);
  };
  auto at = [&](Way way) { return call(build(way), operands_, applied); };

  compare("first", 1e-6,
          {total(call(adjoint, operands_, applied), applied.v), dot(ct, call(tangent, operands_, applied)[0]),
           dot(ct, at(Way::jvpByReversing)[0])},
          applied.v, [&](const Arrays &x) { return dot(ct, call(value, x, applied)[0]); });
  checkLinear(adjoint, tangent, applied, seed);

  codegen::Program twice = build(Way::reverseOverReverse);
  compare("second", 1e-5,
          {total(call(twice, operands_, applied), applied.u), total(at(Way::forwardOverReverse), applied.v),
           total(at(Way::reverseOverForward), applied.u), dot(ct, at(Way::forwardOverForward)[0])},
          applied.u, [&](const Arrays &x) { return total(call(adjoint, x, applied), applied.v); });
  compare("third", 1e-5, {total(at(Way::thriceReverse), applied.w), dot(ct, at(Way::thriceForward)[0])}, applied.w,
          [&](const Arrays &x) { return total(call(twice, x, applied), applied.u); });

  if (seed == 1)
    compareNarrow(applied);
}

TEST(Gradcheck, EverySampleOfEveryOp) {
  int checked = 0;
  for (const Sample &sample : allSamples()) {
    if (!runtime::recordOf(sample.op).differentiable || !sample.reason("differences").empty())
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
