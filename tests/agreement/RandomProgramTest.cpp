// Random programs: compiled code against the interpreter, gradients against central differences, and the front end, eager and traced, against
// both. WENGERT_RANDOM_PROGRAMS=N runs N of each kind instead of the usual number, WENGERT_RANDOM_SEED=S begins at seed S.
#include "autodiff/Reverse.h"
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "tests/agreement/Engines.h"
#include "tests/agreement/RandomProgram.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"

#include <cmath>
#include <cstdlib>

using namespace mlir;

namespace wg::tests {
namespace {

using runtime::Array;
using runtime::DType;
using Arrays = std::vector<Array>;

uint64_t fromEnvironment(const char *name, uint64_t usual) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

/// Calls `check(seed)` for each seed of a run, until one fails.
template <class Check> void forSeeds(uint64_t usual, Check &&check) {
  uint64_t first = fromEnvironment("WENGERT_RANDOM_SEED", 1), count = fromEnvironment("WENGERT_RANDOM_PROGRAMS", usual);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(seed);
    if (::testing::Test::HasFailure())
      return;
  }
}

/// The program as `f`: results are its outputs, then, if `order` is 1, the gradients of the sum of its float outputs by the float inputs; with
/// order 2 the gradients of <first order, directions> instead, the directions being more arguments.
struct Emitted {
  OwningOpRef<ModuleOp> module;
  std::vector<size_t> sources;      ///< the float inputs that have a gradient, by place
  std::vector<size_t> values;       ///< which results are the loss's terms
  size_t firstGradient = 0;         ///< place of the first gradient among the results
  std::vector<size_t> twice;        ///< of `sources`: those with a second gradient
};

Emitted emit(const RandomProgram &program, int order) {
  MLIRContext *context = ir::context();
  OpBuilder b(context);
  Location loc = b.getUnknownLoc();
  Emitted emitted{ModuleOp::create(loc), {}, {}, 0, {}};
  b.setInsertionPointToStart(emitted.module->getBody());
  auto function = func::FuncOp::create(b, loc, "f", b.getFunctionType({}, {}));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  SmallVector<Value> values, results, targets, sources;
  for (const Array &input : program.inputs)
    values.push_back(body->addArgument(ir::tensorTypeOf(context, input.type), loc));
  size_t numInputs = values.size();
  for (const RandomProgram::Step &step : program.steps) {
    SmallVector<Value> operands;
    for (int operand : step.operands)
      operands.push_back(values[static_cast<size_t>(operand)]);
    FailureOr<Operation *> op = ir::buildOp(b, loc, step.op, operands, step.attrs);
    EXPECT_TRUE(succeeded(op));
    values.push_back((*op)->getResult(0));
  }
  for (int output : program.outputs) {
    results.push_back(values[static_cast<size_t>(output)]);
    if (runtime::isFloat(program.type(output).dtype)) {
      emitted.values.push_back(results.size() - 1);
      targets.push_back(results.back());
    }
  }
  if (order > 0) {
    SmallVector<Value> floats;
    std::vector<size_t> places;
    for (size_t i = 0; i < numInputs; ++i)
      if (runtime::isFloat(program.inputs[i].dtype())) {
        floats.push_back(values[i]);
        places.push_back(i);
      }
    auto first = autodiff::reverse(b, loc, targets, {}, floats);
    EXPECT_TRUE(succeeded(first));
    SmallVector<Value> gradients, by, directions;
    for (auto [place, source, gradient] : llvm::zip_equal(places, floats, first->values))
      if (gradient) {
        emitted.sources.push_back(place);
        by.push_back(source);
        gradients.push_back(gradient);
      }
    emitted.firstGradient = results.size();
    if (order == 1) {
      results.append(gradients);
    } else {
      for (Value source : by)
        directions.push_back(body->addArgument(source.getType(), loc));
      auto second = autodiff::reverse(b, loc, gradients, directions, by);
      EXPECT_TRUE(succeeded(second));
      results.clear();
      emitted.firstGradient = 0;
      for (auto [k, value] : llvm::enumerate(second->values))
        if (value) {
          emitted.twice.push_back(k);
          results.push_back(value);
        }
    }
  }
  func::ReturnOp::create(b, loc, results);
  function.setFunctionType(b.getFunctionType(body->getArgumentTypes(), ValueRange(results).getTypes()));
  EXPECT_TRUE(succeeded(verify(*emitted.module)));
  if (std::getenv("WENGERT_SHOW"))
    emitted.module->dump();
  return emitted;
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

Arrays interpret(ModuleOp module, const Arrays &inputs) { return interpreted(module, "f", inputs); }

double dot(const Array &a, const Array &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numElements(); ++i)
    sum += a.data<double>()[i] * b.data<double>()[i];
  return sum;
}
double total(const Array &a) {
  double sum = 0;
  for (double x : a.span<double>())
    sum += x;
  return sum;
}

/// `inputs` with those at `places` moved by step * v.
Arrays moved(const Arrays &inputs, const std::vector<size_t> &places, double step, const Arrays &v) {
  Arrays x = inputs;
  for (size_t k = 0; k < places.size(); ++k) {
    Array &array = x[places[k]];
    array = Array::copyOf(std::span<const double>(array.span<double>()), array.shape());
    for (int64_t i = 0; i < array.numElements(); ++i)
      array.data<double>()[i] += step * v[k].data<double>()[i];
  }
  return x;
}

/// Whether `exact` is the slope of `value` at 0. A kink inside of the step spoils one step, not all of them.
template <class F> void expectSlope(double exact, double scale, F &&value, const std::string &what) {
  std::string tried;
  for (double h : {1e-5, 1e-6, 1e-7, 3e-5}) {
    double numeric = (value(h) - value(-h)) / (2 * h);
    double tolerance = 1e-5 * std::max(1.0, scale) + 1e-14 * std::fabs(value(0)) / h;
    if (std::fabs(exact - numeric) <= tolerance)
      return;
    tried += " " + std::to_string(numeric);
  }
  ADD_FAILURE() << what << ": " << exact << ", by differences" << tried << ", scale " << scale;
}

TEST(RandomPrograms, CompiledCodeAgreesWithTheInterpreter) {
  forSeeds(60, [](uint64_t seed) {
    bool single = seed % 2;
    RandomProgram program = randomProgram(seed, {.dtype = single ? DType::f32 : DType::f64, .steps = 6 + static_cast<int>(seed % 23), .large = seed % 10 == 3, .empty = seed % 10 == 6});
    Emitted emitted = emit(program, 0);
    checkAgreement(*emitted.module, "f", program.inputs, {.ulps = 256, .atLeast = program.largest});
    if (::testing::Test::HasFailure())
      ADD_FAILURE() << textOf(*emitted.module);
  });
}

TEST(RandomPrograms, GradientsAreTheSlopes) {
  forSeeds(60, [](uint64_t seed) {
    RandomProgram program = randomProgram(seed, {.steps = 6 + static_cast<int>(seed % 19), .smooth = true});
    Emitted value = emit(program, 0), first = emit(program, 1), second = emit(program, 2);
    Arrays v, u;
    for (size_t k = 0; k < first.sources.size(); ++k) {
      const runtime::TensorType &type = program.inputs[first.sources[k]].type;
      v.push_back(randomArray(type, static_cast<int64_t>(1000 + k), -1, 1));
      u.push_back(randomArray(type, static_cast<int64_t>(2000 + k), -1, 1));
    }
    auto loss = [&](double h) {
      Arrays results = interpret(*value.module, moved(program.inputs, first.sources, h, v));
      double sum = 0;
      for (size_t place : value.values)
        sum += total(results[place]);
      return sum;
    };
    double slope = 0, scale = 0;
    auto along = [&](const Arrays &results, size_t at, const std::vector<size_t> *which, const Arrays &directions) {
      slope = scale = 0;
      for (size_t i = 0; at + i < results.size(); ++i) {
        double part = dot(results[at + i], directions[which ? (*which)[i] : i]);
        slope += part;
        scale += std::fabs(part);
      }
    };
    along(interpret(*first.module, program.inputs), first.firstGradient, nullptr, v);
    expectSlope(slope, scale, loss, "first order");

    // d<gradient, u> along v, by differences of the gradient.
    auto slopeAlongU = [&](double h) {
      Arrays results = interpret(*first.module, moved(program.inputs, first.sources, h, v));
      double sum = 0;
      for (size_t k = 0; k < u.size(); ++k)
        sum += dot(results[first.firstGradient + k], u[k]);
      return sum;
    };
    Arrays more = program.inputs;
    more.insert(more.end(), u.begin(), u.end());
    along(interpret(*second.module, more), 0, &second.twice, v);
    expectSlope(slope, scale, slopeAlongU, "second order");
    if (::testing::Test::HasFailure())
      ADD_FAILURE() << textOf(*first.module);
  });
}

TEST(RandomPrograms, CompiledGradientsAgreeWithTheInterpreter) {
  forSeeds(40, [](uint64_t seed) {
    bool large = seed % 10 == 3, single = seed % 2 && !large; // long sums that cancel say little in f32
    RandomProgram program = randomProgram(seed, {.dtype = single ? DType::f32 : DType::f64, .steps = 6 + static_cast<int>(seed % 19), .smooth = true, .large = large, .empty = seed % 10 == 6});
    Emitted emitted = emit(program, 1);
    double atLeast = program.largest;
    for (const Array &result : interpret(*emitted.module, program.inputs))
      atLeast = std::max(atLeast, largest(result));
    checkAgreement(*emitted.module, "f", program.inputs, {.ulps = 1024, .atLeast = atLeast});
    if (::testing::Test::HasFailure())
      ADD_FAILURE() << textOf(*emitted.module);
  });
}

} // namespace
} // namespace wg::tests
