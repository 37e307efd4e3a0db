// Random programs: compiled code against the interpreter, gradients against central differences, modes against one
// another, lanes against a loop, sizes `?` against those that are known. WENGERT_RANDOM_PROGRAMS=N runs N of each kind
// instead of the usual number, WENGERT_RANDOM_SEED=S begins at seed S (RandomRun.h).
#include "ir/Bridge.h"
#include "passes/Passes.h"
#include "tests/Arrays.h"
#include "tests/agreement/Bounds.h"
#include "tests/agreement/Engines.h"
#include "tests/agreement/RandomEmit.h"
#include "tests/agreement/RandomLanes.h"
#include "tests/agreement/RandomRun.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace mlir;

namespace wg::tests {
namespace {

using runtime::Array;
using runtime::DType;
using Arrays = std::vector<Array>;

/// Now and then a result takes the place of an argument of its type, as an optimiser's update does.
void donate(ModuleOp module, uint64_t seed) {
  auto function = module.lookupSymbol<func::FuncOp>("f");
  OpBuilder b(module.getContext());
  llvm::DenseSet<unsigned> taken;
  for (auto [r, type] : llvm::enumerate(function.getResultTypes())) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    for (unsigned i = 0; (seed >> 40) % 3 == 0 && i < function.getNumArguments(); ++i)
      if (unsigned argument = static_cast<unsigned>(i + (seed >> 50)) % function.getNumArguments();
          function.getArgument(argument).getType() == type && taken.insert(argument).second) {
        function.setArgAttr(argument, "wg.result", b.getI64IntegerAttr(static_cast<int64_t>(r)));
        break;
      }
  }
}

Arrays interpret(ModuleOp module, const Arrays &inputs) { return interpreted(module, "f", inputs); }

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

void expectSame(const Arrays &expected, const Arrays &actual, const Tolerance &tolerance, const std::string &what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (size_t r = 0; r < expected.size(); ++r)
    expectClose(expected[r], actual[r], tolerance, what + ", result " + std::to_string(r));
}

/// A failure with the program that is at fault.
void explain(ModuleOp module) {
  if (::testing::Test::HasFailure())
    ADD_FAILURE() << textOf(module);
}

RandomProgramOptions anyProgram(uint64_t seed) {
  return {.dtype = seed % 2 ? DType::f32 : DType::f64,
          .steps = 10 + static_cast<int>(seed % 41),
          .large = seed % 10 == 3,
          .empty = seed % 10 == 6};
}
RandomProgramOptions smoothProgram(uint64_t seed) {
  bool large = seed % 10 == 3, single = seed % 2 && !large; // long sums that cancel say little in f32
  return {.dtype = single ? DType::f32 : DType::f64,
          .steps = 10 + static_cast<int>(seed % 31),
          .smooth = true,
          .large = large,
          .empty = seed % 10 == 6};
}

/// Ops that no program draws, and why.
const std::map<std::string, std::string> kNeverDrawn{
    {"call", "tests call whole programs (emit); FrontendRandomFunctionTest cuts programs into functions"},
    {"cond", "FrontendRandomBodiesTest draws what has bodies"},
    {"loop", "FrontendRandomBodiesTest draws what has bodies"},
    {"rewind", "is made of a loop's derivative"},
    {"host", "a function of this process, which ahead-of-time programs and lanes meet one after the other: HostTest"},
    {"collective", "of several ranks: DistTest"},
    {"kernel", "is made by fusion"},
    {"yield", "ends a body"},
    {"dim", "is an index: Opened makes it, for sizes that are not known"},
    {"size", "is an index: derivatives of programs with sizes that are not known have it"},
};

TEST(RandomPrograms, EveryOpIsDrawn) {
  std::map<runtime::OpId, std::set<DType>> drawn;
  std::set<std::string> composites;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    RandomProgram program = randomProgram(seed, anyProgram(seed));
    for (const RandomProgram::Step &step : program.steps) {
      drawn[step.op];
      for (int operand : step.operands)
        drawn[step.op].insert(program.type(operand).dtype);
    }
    composites.insert(program.composites.begin(), program.composites.end());
  }
  for (int i = 0; i < runtime::kNumOps; ++i) {
    const runtime::OpRecord &record = runtime::recordOf(static_cast<runtime::OpId>(i));
    EXPECT_NE(drawn.count(record.id), kNeverDrawn.count(record.name))
        << record.name
        << (drawn.count(record.id) ? " is drawn" : " is never drawn: it wants an idea in Random*.cpp, or a reason");
  }
  for (const std::string &name : compositesOfPrograms())
    EXPECT_TRUE(composites.count(name)) << name << " is never drawn";
}

TEST(RandomPrograms, CompiledCodeAgreesWithTheInterpreter) {
  forPrograms(120, anyProgram, [](const RandomProgram &program) {
    Emitted emitted = emit(program, Wanted::values);
    donate(*emitted.module, program.seed);
    checkAgreement(*emitted.module, "f", program.inputs,
                   {.ulps = boundOfPrograms("random programs"), .atLeast = program.largest}, program.seed);
    explain(*emitted.module);
  });
}

TEST(RandomPrograms, GradientsAreTheSlopes) {
  auto optionsOf = [](uint64_t seed) {
    return RandomProgramOptions{.steps = 10 + static_cast<int>(seed % 31), .smooth = true};
  };
  forPrograms(90, optionsOf, [](const RandomProgram &program) {
    Emitted value = emit(program, Wanted::values), first = emit(program, Wanted::gradients),
            second = emit(program, Wanted::secondGradients);
    Arrays v, u;
    for (size_t k = 0; k < first.sources.size(); ++k) {
      const runtime::TensorType &type = program.inputs[first.sources[k]].type;
      v.push_back(direction(type, 1, static_cast<int64_t>(k)));
      u.push_back(direction(type, 2, static_cast<int64_t>(k)));
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
    explain(*first.module);
  });
}

RandomProgramOptions doubleProgram(uint64_t seed) {
  return {.steps = 10 + static_cast<int>(seed % 31), .smooth = true, .empty = seed % 10 == 6};
}
/// A part of the programs is called, so that modes and lanes meet calls.
bool isCalled(const RandomProgram &program) { return program.seed % 4 == 1; }

/// The inputs of a program in all modes.
Arrays withDirections(const RandomProgram &program, const Emitted &emitted) {
  Arrays inputs = program.inputs;
  for (int64_t seed : {1, 2})
    for (size_t source : emitted.sources)
      inputs.push_back(direction(program.inputs[source].type, seed, static_cast<int64_t>(source)));
  return inputs;
}

TEST(RandomPrograms, EveryModeGivesTheSameNumbers) {
  forPrograms(90, doubleProgram, [](const RandomProgram &program) {
    Emitted emitted = emit(program, Wanted::modeSums, isCalled(program));
    Arrays inputs = withDirections(program, emitted), found = interpret(*emitted.module, inputs);
    constexpr size_t kCount = std::size(kModes);
    ASSERT_EQ(found.size(), 2 * kCount);
    auto number = [&](size_t i) { return found[i].data<double>()[0]; };
    for (auto [first, last] : {std::pair<size_t, size_t>(0, 2), std::pair<size_t, size_t>(2, kCount)}) {
      double scale = std::max(1.0, program.largest);
      for (size_t i = first; i < last; ++i)
        scale = std::max(scale, number(kCount + i));
      for (size_t i = first + 1; i < last; ++i)
        EXPECT_TRUE(std::fabs(number(i) - number(first)) <= 1e-9 * scale ||
                    (std::isnan(number(i)) && std::isnan(number(first))))
            << kModes[i] << " gives " << number(i) << ", " << kModes[first] << " " << number(first) << ", scale "
            << scale;
    }
    explain(*emitted.module);
    if (!::testing::Test::HasFailure())
      checkLanes(program, emit(program, Wanted::modes, isCalled(program)), inputs, Engine::interpreter);
  });
}

/// Programs with jumps, integers and single precision, too.
TEST(RandomPrograms, EveryLaneIsThatOfALoop) {
  forPrograms(60, anyProgram, [](const RandomProgram &program) {
    Emitted emitted = emit(program, Wanted::modes, isCalled(program));
    checkLanes(program, emitted, withDirections(program, emitted), Engine::interpreter);
  });
}

TEST(RandomPrograms, CompiledLanesAgreeWithTheInterpreter) {
  forPrograms(15, anyProgram, [](const RandomProgram &program) {
    Emitted emitted = emit(program, Wanted::modes, isCalled(program));
    checkLanes(program, emitted, withDirections(program, emitted), Engine::both);
  });
}

TEST(RandomPrograms, CompiledModesAgreeWithTheInterpreter) {
  forPrograms(25, doubleProgram, [](const RandomProgram &program) {
    Emitted emitted = emit(program, Wanted::modeSums, isCalled(program));
    Arrays inputs = withDirections(program, emitted);
    checkAgreement(*emitted.module, "f", inputs,
                   {.ulps = boundOfPrograms("gradients of random programs"),
                    .atLeast = scaleOf(*emitted.module, "f", inputs, program.largest)},
                   program.seed);
    explain(*emitted.module);
    if (!::testing::Test::HasFailure())
      checkLanes(program, emit(program, Wanted::modes, isCalled(program)), inputs, Engine::both);
  });
}

TEST(RandomPrograms, CompiledGradientsAgreeWithTheInterpreter) {
  forPrograms(70, smoothProgram, [](const RandomProgram &program) {
    Emitted emitted = emit(program, Wanted::gradients);
    donate(*emitted.module, program.seed);
    double atLeast = program.largest;
    for (const Array &result : interpret(*emitted.module, program.inputs))
      atLeast = std::max(atLeast, largest(result));
    checkAgreement(*emitted.module, "f", program.inputs,
                   {.ulps = boundOfPrograms("gradients of random programs"), .atLeast = atLeast}, program.seed);
    explain(*emitted.module);
  });
}

/// The program with axes opened to `?`, and the same specialised to the sizes that they have.
void checkOpened(const RandomProgram &program, Wanted wanted, const Opened &opened) {
  bool gradients = wanted == Wanted::gradients;
  Emitted known = emit(program, wanted);
  std::optional<Emitted> open = emit(program, wanted, opened);
  if (!open) {
    tally(gradients ? "gradients refused" : "programs refused");
    return;
  }
  tally(gradients ? "gradients opened" : "programs opened");
  Arrays expected = interpret(*known.module, program.inputs), actual = interpret(*open->module, program.inputs);
  double scale = program.largest;
  for (const Array &array : expected)
    scale = std::max(scale, largest(array));
  expectSame(expected, actual, gradients ? Tolerance{.ulps = 64, .atLeast = scale} : Tolerance(), "open");
  OwningOpRef<ModuleOp> specialised(open->module->clone());
  auto function = specialised->lookupSymbol<func::FuncOp>("f");
  SmallVector<Type> types;
  for (const Array &input : program.inputs)
    types.push_back(ir::tensorTypeOf(ir::context(), input.type));
  ASSERT_TRUE(succeeded(passes::inferShapes(function, types)));
  EXPECT_TRUE(succeeded(verify(*specialised)));
  if (!::testing::Test::HasFailure())
    checkAgreement(*specialised, "f", program.inputs,
                   {.ulps = boundOfPrograms("gradients of random programs"), .atLeast = scale}, program.seed);
  if (!::testing::Test::HasFailure())
    expectSame(actual, interpret(*specialised, program.inputs), {}, "specialised");
  explain(*open->module);
}

TEST(RandomPrograms, SizesThatAreNotKnownChangeNothing) {
  constexpr uint64_t kUsual = 60;
  std::map<std::string, uint64_t> found = forPrograms(kUsual, smoothProgram, [](const RandomProgram &program) {
    // A size that some input has, and whose axes the program's ops let open.
    std::set<int64_t> sizes;
    for (const Array &input : program.inputs)
      sizes.insert(input.shape().begin(), input.shape().end());
    std::vector<int64_t> order(sizes.begin(), sizes.end());
    std::rotate(order.begin(),
                order.begin() + static_cast<std::ptrdiff_t>(order.empty() ? 0 : program.seed / 7 % order.size()),
                order.end());
    for (int64_t size : order) {
      Opened opened(program, size);
      bool opens = false;
      for (size_t i = 0; i < program.inputs.size(); ++i)
        opens = opens || opened.opens(static_cast<int>(i));
      if (!opens || !emit(program, Wanted::values, opened))
        continue;
      checkOpened(program, Wanted::values, opened);
      if (!::testing::Test::HasFailure())
        checkOpened(program, Wanted::gradients, opened);
      return;
    }
    tally("programs refused");
  });
  if (!isChild() && found["programs opened"] + found["programs refused"] >= kUsual)
    EXPECT_GE(found["programs opened"], found["programs refused"]) << "too few programs let a size open";
}

} // namespace
} // namespace wg::tests
