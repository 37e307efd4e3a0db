// Random programs: compiled code against the interpreter, gradients against central differences, sizes `?` against
// those that are known. WENGERT_RANDOM_PROGRAMS=N runs N of each kind instead of the usual number,
// WENGERT_RANDOM_SEED=S begins at seed S (RandomRun.h).
#include "autodiff/Forward.h"
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "passes/Passes.h"
#include "tests/agreement/Bounds.h"
#include "tests/agreement/Engines.h"
#include "tests/agreement/RandomRun.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/DenseSet.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace mlir;

namespace wg::tests {
namespace {

using runtime::Array;
using runtime::DType;
using Arrays = std::vector<Array>;

/// The program as `f`: results are its outputs, then, if `order` is 1, the gradients of the sum of its float
/// outputs by the float inputs; with order 2 the gradients of <first order, directions> instead, the
/// directions being more arguments; with order kModes what `inAllModes` gives.
struct Emitted {
  OwningOpRef<ModuleOp> module;
  std::vector<size_t> sources; ///< the float inputs that have a gradient, by place
  std::vector<size_t> values;  ///< which results are the loss's terms
  size_t firstGradient = 0;    ///< place of the first gradient among the results
  std::vector<size_t> twice;   ///< of `sources`: those with a second gradient
};

/// A program with sizes that are not known: the axes of this size of the inputs are `?`, and what follows from them.
class Opened {
public:
  Opened(const RandomProgram &program, int64_t size) : program(program), size(size) {
    for (const RandomProgram::Step &step : program.steps) // a key has two numbers
      if (step.op == runtime::OpId::random_uniform || step.op == runtime::OpId::random_bits)
        keys.insert(step.operands[0]);
  }

  runtime::TensorType typeOfInput(int input) const {
    runtime::TensorType type = program.inputs[static_cast<size_t>(input)].type;
    for (int64_t &n : type.shape)
      if (n == size && !keys.count(input))
        n = runtime::kDynamic;
    return type;
  }
  bool opens(int input) const { return typeOfInput(input).shape.contains(runtime::kDynamic); }

  /// The attributes of a step for operands of these types; sizes that are not known are operands too. Nothing where a
  /// `?` that is 1 would have to be repeated, which only a size that is known to be 1 is.
  std::optional<std::pair<runtime::Attrs, SmallVector<Value>>>
  step(OpBuilder &b, Location loc, const RandomProgram::Step &step, SmallVector<Value> operands, Block *body) const {
    std::span<const runtime::AttrRecord> records = runtime::recordOf(step.op).attrs;
    auto shapeAt = std::find_if(records.begin(), records.end(),
                                [](const auto &attr) { return std::string_view(attr.name) == "shape"; }) -
                   records.begin();
    bool slices = step.op == runtime::OpId::slice;
    if (shapeAt == static_cast<ptrdiff_t>(records.size()) && !slices)
      return std::pair(step.attrs, operands);
    std::vector<runtime::AttrValue> values;
    for (size_t i = 0; i < step.attrs.size(); ++i)
      values.push_back(step.attrs[i]);
    ArrayRef<int64_t> from;
    if (!operands.empty())
      from = cast<RankedTensorType>(operands[0].getType()).getShape();
    if (slices) { // a dynamic axis is taken to its end
      runtime::Ints &limits = std::get<runtime::Ints>(values[1]);
      for (auto [axis, n] : llvm::enumerate(from))
        if (ShapedType::isDynamic(n) && limits[axis] == size) {
          limits[axis] = runtime::kDynamic;
          operands.push_back(sizeIn(b, loc, body));
        }
      return std::pair(runtime::Attrs(std::move(values)), operands);
    }
    runtime::Ints &shape = std::get<runtime::Ints>(values[static_cast<size_t>(shapeAt)]);
    SmallVector<Value> sizes(shape.size()); // of the axes that open
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] == size)
        sizes[axis] = sizeIn(b, loc, body);
    if (step.op == runtime::OpId::broadcast)
      for (auto [axis, to] : llvm::enumerate(step.attrs.ints(1))) {
        size_t at = static_cast<size_t>(to);
        bool repeated = program.type(step.operands[0]).shape[axis] != shape[at];
        if (ShapedType::isDynamic(from[axis]) && repeated)
          return std::nullopt;
        if (!repeated) // an axis that is there keeps what is known of it
          sizes[at] = ShapedType::isDynamic(from[axis])
                          ? Value(ir::DimOp::create(b, loc, operands[0], static_cast<int64_t>(axis)))
                          : Value();
      }
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (sizes[axis]) {
        shape[axis] = runtime::kDynamic;
        operands.push_back(sizes[axis]);
      }
    return std::pair(runtime::Attrs(std::move(values)), operands);
  }

private:
  /// The size, of the first axis that has it.
  Value sizeIn(OpBuilder &b, Location loc, Block *body) const {
    for (BlockArgument argument : body->getArguments())
      for (auto [axis, n] : llvm::enumerate(cast<RankedTensorType>(argument.getType()).getShape()))
        if (ShapedType::isDynamic(n))
          return ir::DimOp::create(b, loc, argument, static_cast<int64_t>(axis));
    return {};
  }

  const RandomProgram &program;
  int64_t size;
  std::set<int> keys;
};

constexpr int kModes = 3;

/// Scalars: the derivative along v of the sum of the targets, by reverse and by forward mode; and the derivative of
/// that along u, by both modes over both (reverse over reverse, forward over reverse, reverse over forward, forward
/// over forward); then the sums of the magnitudes of what was added up for each. v and u are more arguments, one of
/// each for each source.
FailureOr<SmallVector<Value>> inAllModes(OpBuilder &b, Location loc, ArrayRef<Value> targets, ArrayRef<Value> sources,
                                         Block *body) {
  using Values = SmallVector<Value>;
  Values v, u;
  for (Values *list : {&v, &u})
    for (Value source : sources)
      list->push_back(body->addArgument(source.getType(), loc));
  bool failed = false;
  auto reversed = [&](ArrayRef<Value> of, ArrayRef<Value> seeds) {
    auto made = autodiff::reverse(b, loc, of, seeds, sources);
    failed = failed || mlir::failed(made);
    return mlir::failed(made) ? Values(sources.size()) : made->values;
  };
  auto forwarded = [&](ArrayRef<Value> of, ArrayRef<Value> along) {
    auto made = autodiff::forward(b, loc, of, sources, along);
    failed = failed || mlir::failed(made);
    return mlir::failed(made) ? Values(of.size()) : made->values;
  };
  /// What exists of a list, and of the same places of another.
  auto existing = [](const Values &list, const Values &other) {
    std::pair<Values, Values> kept;
    for (auto [value, beside] : llvm::zip_equal(list, other))
      if (value) {
        kept.first.push_back(value);
        kept.second.push_back(beside);
      }
    return kept;
  };
  Values magnitudes, sums;
  auto add = [&](const Values &list, const Values &weights) {
    ir::Expr sum, magnitude;
    for (auto [value, weight] : llvm::zip_equal(list, weights)) {
      if (!value)
        continue;
      ir::Expr part(value, b, loc);
      if (weight)
        part = part * part.at(weight);
      SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, part.rank()));
      ir::Expr total = ir::sum(part, axes), size = ir::sum(ir::abs(part), axes);
      sum = sum ? sum + total : total;
      magnitude = magnitude ? magnitude + size : size;
    }
    if (!sum) { // nothing moves
      auto type = RankedTensorType::get({}, b.getF64Type());
      Value zero = ir::ConstantOp::create(b, loc, DenseElementsAttr::get(type, b.getF64FloatAttr(0)));
      sum = magnitude = ir::Expr(zero, b, loc);
    }
    sums.push_back(sum);
    magnitudes.push_back(magnitude);
  };
  Values gradients = reversed(targets, {}), tangents = forwarded(targets, v), ones(tangents.size());
  add(gradients, v);
  add(tangents, ones);
  auto [gradient, weights] = existing(gradients, v);
  auto [tangent, none] = existing(tangents, ones);
  add(reversed(gradient, weights), u);
  add(forwarded(gradient, u), weights);
  add(reversed(tangent, none), u);
  add(forwarded(tangent, u), none);
  if (failed)
    return failure();
  llvm::append_range(sums, magnitudes);
  return sums;
}

/// Nothing where an op refuses sizes that are not known.
std::optional<Emitted> emit(const RandomProgram &program, int order, const Opened *opened) {
  MLIRContext *context = ir::context();
  std::string refusal;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    refusal += diagnostic.str() + "\n";
    return success();
  });
  auto refused = [&]() -> std::optional<Emitted> {
    if (!opened)
      ADD_FAILURE() << refusal << toString(program);
    return std::nullopt;
  };
  OpBuilder b(context);
  Location loc = b.getUnknownLoc();
  Emitted emitted{ModuleOp::create(loc), {}, {}, 0, {}};
  b.setInsertionPointToStart(emitted.module->getBody());
  auto function = func::FuncOp::create(b, loc, "f", b.getFunctionType({}, {}));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  SmallVector<Value> values, results, targets, sources;
  for (auto [i, input] : llvm::enumerate(program.inputs))
    values.push_back(body->addArgument(
        ir::tensorTypeOf(context, opened ? opened->typeOfInput(static_cast<int>(i)) : input.type), loc));
  size_t numInputs = values.size();
  for (const RandomProgram::Step &step : program.steps) {
    SmallVector<Value> operands;
    for (int operand : step.operands)
      operands.push_back(values[static_cast<size_t>(operand)]);
    runtime::Attrs attrs = step.attrs;
    if (opened) {
      auto opening = opened->step(b, loc, step, operands, body);
      if (!opening)
        return refused();
      std::tie(attrs, operands) = std::move(*opening);
    }
    FailureOr<Operation *> op = ir::buildOp(b, loc, step.op, operands, attrs);
    if (failed(op))
      return refused();
    values.push_back((*op)->getResult(0));
  }
  for (int output : program.outputs) {
    results.push_back(values[static_cast<size_t>(output)]);
    if (runtime::isFloat(program.type(output).dtype)) {
      emitted.values.push_back(results.size() - 1);
      targets.push_back(results.back());
    }
  }
  if (order == kModes) {
    SmallVector<Value> floats;
    for (size_t i = 0; i < numInputs; ++i)
      if (runtime::isFloat(program.inputs[i].dtype())) {
        floats.push_back(values[i]);
        emitted.sources.push_back(i);
      }
    FailureOr<SmallVector<Value>> modes = inAllModes(b, loc, targets, floats, body);
    if (failed(modes))
      return refused();
    results = *modes;
  } else if (order > 0) {
    SmallVector<Value> floats;
    std::vector<size_t> places;
    for (size_t i = 0; i < numInputs; ++i)
      if (runtime::isFloat(program.inputs[i].dtype())) {
        floats.push_back(values[i]);
        places.push_back(i);
      }
    auto first = autodiff::reverse(b, loc, targets, {}, floats);
    if (failed(first))
      return refused();
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
      if (failed(second))
        return refused();
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
  if (failed(verify(*emitted.module)))
    return refused();
  if (std::getenv("WENGERT_SHOW"))
    emitted.module->dump();
  return emitted;
}
Emitted emit(const RandomProgram &program, int order) {
  std::optional<Emitted> emitted = emit(program, order, nullptr);
  return emitted ? std::move(*emitted) : Emitted{ModuleOp::create(UnknownLoc::get(ir::context())), {}, {}, 0, {}};
}

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

/// Equal bits, or floats within `ulps` of `scale`.
void expectSame(const Arrays &expected, const Arrays &actual, double ulps, double scale, const std::string &what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (size_t r = 0; r < expected.size(); ++r) {
    ASSERT_EQ(toString(expected[r].type), toString(actual[r].type)) << what << ", result " << r;
    if (std::memcmp(expected[r].buffer.data(), actual[r].buffer.data(), expected[r].numBytes()) == 0)
      continue;
    ASSERT_TRUE(ulps > 0 && runtime::isFloat(expected[r].dtype())) << what << ", result " << r << " differs";
    bool single = expected[r].dtype() == DType::f32;
    for (int64_t i = 0; i < expected[r].numElements(); ++i) {
      double e = single ? expected[r].data<float>()[i] : expected[r].data<double>()[i],
             a = single ? actual[r].data<float>()[i] : actual[r].data<double>()[i];
      ASSERT_LE(std::fabs(e - a), ulps * (single ? 0x1p-23 : 0x1p-52) * scale)
          << what << ", result " << r << ", element " << i << ": " << e << " against " << a;
    }
  }
}

/// A failure with the program that is at fault.
void explain(ModuleOp module) {
  if (::testing::Test::HasFailure())
    ADD_FAILURE() << textOf(module);
}

RandomProgramOptions anyProgram(uint64_t seed) {
  return {.dtype = seed % 2 ? DType::f32 : DType::f64,
          .steps = 6 + static_cast<int>(seed % 23),
          .large = seed % 10 == 3,
          .empty = seed % 10 == 6};
}
RandomProgramOptions smoothProgram(uint64_t seed) {
  bool large = seed % 10 == 3, single = seed % 2 && !large; // long sums that cancel say little in f32
  return {.dtype = single ? DType::f32 : DType::f64,
          .steps = 6 + static_cast<int>(seed % 19),
          .smooth = true,
          .large = large,
          .empty = seed % 10 == 6};
}

TEST(RandomPrograms, CompiledCodeAgreesWithTheInterpreter) {
  forPrograms(120, anyProgram, [](const RandomProgram &program) {
    Emitted emitted = emit(program, 0);
    donate(*emitted.module, program.seed);
    checkAgreement(*emitted.module, "f", program.inputs,
                   {.ulps = boundOfPrograms("random programs"), .atLeast = program.largest}, program.seed);
    explain(*emitted.module);
  });
}

TEST(RandomPrograms, GradientsAreTheSlopes) {
  auto optionsOf = [](uint64_t seed) {
    return RandomProgramOptions{.steps = 6 + static_cast<int>(seed % 19), .smooth = true};
  };
  forPrograms(90, optionsOf, [](const RandomProgram &program) {
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
    explain(*first.module);
  });
}

RandomProgramOptions doubleProgram(uint64_t seed) {
  return {.steps = 6 + static_cast<int>(seed % 19), .smooth = true, .empty = seed % 10 == 6};
}
/// The inputs of a program in all modes.
Arrays withDirections(const RandomProgram &program, const Emitted &emitted) {
  Arrays inputs = program.inputs;
  for (int64_t stream : {1000, 2000})
    for (size_t k = 0; k < emitted.sources.size(); ++k)
      inputs.push_back(randomArray(program.inputs[emitted.sources[k]].type, stream + static_cast<int64_t>(k), -1, 1));
  return inputs;
}

TEST(RandomPrograms, EveryModeGivesTheSameNumbers) {
  forPrograms(90, doubleProgram, [](const RandomProgram &program) {
    Emitted emitted = emit(program, kModes);
    Arrays found = interpret(*emitted.module, withDirections(program, emitted));
    ASSERT_EQ(found.size(), 12u);
    auto number = [&](size_t i) { return found[i].data<double>()[0]; };
    static const char *const names[] = {"reverse",
                                        "forward",
                                        "reverse over reverse",
                                        "forward over reverse",
                                        "reverse over forward",
                                        "forward over forward"};
    for (auto [first, last] : {std::pair<size_t, size_t>(0, 2), std::pair<size_t, size_t>(2, 6)}) {
      double scale = std::max(1.0, program.largest);
      for (size_t i = first; i < last; ++i)
        scale = std::max(scale, number(6 + i));
      for (size_t i = first + 1; i < last; ++i)
        EXPECT_TRUE(std::fabs(number(i) - number(first)) <= 1e-9 * scale ||
                    (std::isnan(number(i)) && std::isnan(number(first))))
            << names[i] << " gives " << number(i) << ", " << names[first] << " " << number(first) << ", scale "
            << scale;
    }
    explain(*emitted.module);
  });
}

TEST(RandomPrograms, CompiledModesAgreeWithTheInterpreter) {
  forPrograms(25, doubleProgram, [](const RandomProgram &program) {
    Emitted emitted = emit(program, kModes);
    Arrays inputs = withDirections(program, emitted);
    double atLeast = program.largest;
    for (const Array &result : interpret(*emitted.module, inputs))
      atLeast = std::max(atLeast, largest(result));
    checkAgreement(*emitted.module, "f", inputs,
                   {.ulps = boundOfPrograms("gradients of random programs"), .atLeast = atLeast}, program.seed);
    explain(*emitted.module);
  });
}

TEST(RandomPrograms, CompiledGradientsAgreeWithTheInterpreter) {
  forPrograms(70, smoothProgram, [](const RandomProgram &program) {
    Emitted emitted = emit(program, 1);
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
void checkOpened(const RandomProgram &program, int order, const Opened &opened) {
  Emitted known = emit(program, order);
  std::optional<Emitted> open = emit(program, order, &opened);
  if (!open) {
    tally(order ? "gradients refused" : "programs refused");
    return;
  }
  tally(order ? "gradients opened" : "programs opened");
  Arrays expected = interpret(*known.module, program.inputs), actual = interpret(*open->module, program.inputs);
  double scale = program.largest;
  for (const Array &array : expected)
    scale = std::max(scale, largest(array));
  expectSame(expected, actual, order ? 64 : 0, scale, "open");
  OwningOpRef<ModuleOp> specialised(open->module->clone());
  auto function = specialised->lookupSymbol<func::FuncOp>("f");
  SmallVector<Type> types;
  for (const Array &input : program.inputs)
    types.push_back(ir::tensorTypeOf(ir::context(), input.type));
  ASSERT_TRUE(succeeded(passes::inferShapes(function, types)));
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.getBody().front()))) // sizes that have become attributes
    if (isa<arith::ConstantOp>(op) && op.use_empty())
      op.erase();
  EXPECT_TRUE(succeeded(verify(*specialised)));
  if (!::testing::Test::HasFailure())
    checkAgreement(*specialised, "f", program.inputs,
                   {.ulps = boundOfPrograms("gradients of random programs"), .atLeast = scale}, program.seed);
  if (!::testing::Test::HasFailure())
    expectSame(actual, interpret(*specialised, program.inputs), 0, scale, "specialised");
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
      if (!opens || !emit(program, 0, &opened))
        continue;
      checkOpened(program, 0, opened);
      if (!::testing::Test::HasFailure())
        checkOpened(program, 1, opened);
      return;
    }
    tally("programs refused");
  });
  if (!isChild() && found["programs opened"] + found["programs refused"] >= kUsual)
    EXPECT_GE(found["programs opened"], found["programs refused"]) << "too few programs let a size open";
}

} // namespace
} // namespace wg::tests
