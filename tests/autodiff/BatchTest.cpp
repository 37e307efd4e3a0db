// Does lane i of a batched program give what the program gives for lane i? Every sample of every op, with every set of
// its tensors batched over three lanes of different data, all sizes static and all open: the op itself, its vjp and its
// jvp, batched twice, and the gradient through the batched program. A loop over lanes is the reference: bit for bit
// where nothing is summed, else within 1e-12.
#include "autodiff/Batch.h"
#include "autodiff/Forward.h"
#include "autodiff/Passes.h"
#include "codegen/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "ir/Rules.h"
#include "tests/Samples.h"
#include "tests/agreement/Engines.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace mlir;
using namespace wg;
using namespace wg::tests;
using runtime::Array;
using runtime::DType;
using Arrays = std::vector<Array>;
using Values = SmallVector<Value>;

static constexpr int64_t kLanes = 3;

//===- Data -----------------------------------------------------------------------------------------------------===//

/// The arrays one after the other, along one more axis in front.
static Array stacked(const Arrays &lanes) {
  runtime::Shape shape{static_cast<int64_t>(lanes.size())};
  for (int64_t size : lanes[0].shape())
    shape.push_back(size);
  Array all = Array::empty(lanes[0].dtype(), shape);
  for (size_t i = 0; i < lanes.size(); ++i)
    if (size_t bytes = lanes[0].numBytes())
      std::memcpy(all.data<char>() + i * bytes, lanes[i].data<char>(), bytes);
  return all;
}

/// Lane i of an array with one more axis in front.
static Array laneOf(const Array &all, int64_t i) {
  runtime::Shape shape;
  for (size_t axis = 1; axis < all.shape().size(); ++axis)
    shape.push_back(all.shape()[axis]);
  Array lane = Array::empty(all.dtype(), shape);
  if (size_t bytes = lane.numBytes())
    std::memcpy(lane.data<char>(), all.data<char>() + static_cast<size_t>(i) * bytes, bytes);
  return lane;
}

/// Other data of the same type: floats are moved a little, elements of other dtypes change places, so that an index
/// stays one.
static Array varied(const Array &x, int64_t lane) {
  Array y = Array::empty(x.dtype(), x.shape());
  int64_t n = x.numElements();
  size_t size = runtime::sizeOf(x.dtype());
  for (int64_t i = 0; i < n; ++i) {
    if (x.dtype() == DType::f64)
      y.data<double>()[i] = x.data<double>()[i] * (1 + 0.01 * static_cast<double>(lane));
    else if (x.dtype() == DType::f32)
      y.data<float>()[i] = x.data<float>()[i] * (1 + 0.01f * static_cast<float>(lane));
    else
      std::memcpy(y.data<char>() + static_cast<size_t>(i) * size,
                  x.data<char>() + static_cast<size_t>((i + lane) % n) * size, size);
  }
  return y;
}

static Array directionLike(const Array &x, int64_t position) {
  Array v = Array::empty(x.dtype(), x.shape());
  for (int64_t i = 0; i < v.numElements(); ++i)
    tests::detail::store(v, i, 2 * runtime::randomUniform<double>(7, position, i) - 1);
  return v;
}

//===- Programs -------------------------------------------------------------------------------------------------===//

namespace {

/// Appends ops that compute results from `x`.
using Build = std::function<FailureOr<Values>(OpBuilder &b, Location loc, ValueRange x)>;

struct Function {
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};

} // namespace

/// Only a static 1 is repeated, so it stays.
static runtime::TensorType opened(runtime::TensorType type) {
  for (size_t axis = 0; axis < type.shape.size(); ++axis)
    if (type.shape[axis] != 1)
      type.shape[axis] = runtime::kDynamic;
  return type;
}

/// `build` on arguments of the types of `inputs`, with each size other than 1 open or not; the function is @f.
static std::optional<Function> makeFunction(const Arrays &inputs, const std::vector<bool> &open, const Build &build) {
  OpBuilder b(ir::context());
  Location loc = b.getUnknownLoc();
  Function made{ModuleOp::create(loc), {}};
  b.setInsertionPointToStart(made.module->getBody());
  made.function = func::FuncOp::create(b, loc, "f", b.getFunctionType({}, {}));
  Block *body = made.function.addEntryBlock();
  b.setInsertionPointToStart(body);
  Values x;
  for (auto [input, isOpen] : llvm::zip_equal(inputs, open))
    x.push_back(body->addArgument(ir::tensorTypeOf(b.getContext(), isOpen ? opened(input.type) : input.type), loc));
  FailureOr<Values> results = build(b, loc, x);
  if (failed(results))
    return std::nullopt;
  func::ReturnOp::create(b, loc, *results);
  autodiff::eraseDead(*body, nullptr);
  body->eraseArguments(inputs.size(), body->getNumArguments() - inputs.size()); // what stood in for one lane
  made.function.setFunctionType(b.getFunctionType(body->getArgumentTypes(), ValueRange(*results).getTypes()));
  EXPECT_TRUE(succeeded(verify(*made.module)));
  return made;
}

static Arrays interpretOn(func::FuncOp function, const Arrays &inputs) {
  auto program = codegen::flatten(function);
  EXPECT_TRUE(succeeded(program));
  auto outputs = codegen::interpret(*program, inputs);
  if (!outputs.ok()) {
    ADD_FAILURE() << runtime::toString(outputs.failure());
    return {};
  }
  return *outputs;
}

/// `build` where the arguments of `set` have one more axis in front, and so have its results.
static Build batched(const Build &build, const std::vector<bool> &set) {
  return [=](OpBuilder &b, Location loc, ValueRange x) -> FailureOr<Values> {
    Values one, sources, lanes;
    for (auto [value, isBatched] : llvm::zip_equal(x, set)) {
      one.push_back(value);
      if (!isBatched)
        continue;
      auto type = cast<RankedTensorType>(value.getType());
      one.back() = b.getInsertionBlock()->addArgument(
          RankedTensorType::get(type.getShape().drop_front(), type.getElementType()), loc);
      sources.push_back(one.back());
      lanes.push_back(value);
    }
    FailureOr<Values> targets = build(b, loc, one);
    if (failed(targets))
      return failure();
    auto made = autodiff::batch(b, loc, *targets, sources, lanes);
    if (failed(made))
      return failure();
    for (auto [value, isBatched] : llvm::zip_equal(made->values, made->batched))
      if (!isBatched)
        value = ir::spread(b, loc, value, ir::sizeOf(b, loc, lanes[0], 0));
    return made->values;
  };
}

/// The gradients of `build` by its first `numOperands` arguments where these are floats; the cotangent is the last one.
static Build gradients(const Build &build, size_t numOperands) {
  return [=](OpBuilder &b, Location loc, ValueRange x) -> FailureOr<Values> {
    FailureOr<Values> y = build(b, loc, x.take_front(numOperands));
    if (failed(y))
      return failure();
    Values sources;
    for (Value operand : x.take_front(numOperands))
      if (autodiff::isDifferentiableType(operand.getType()))
        sources.push_back(operand);
    auto made = autodiff::reverse(b, loc, *y, x.back(), sources);
    if (failed(made))
      return failure();
    Values values(made->values);
    for (auto [source, value] : llvm::zip_equal(sources, values))
      value = value ? value : ir::zerosLike(b, loc, source);
    return values;
  };
}

/// The tangent of `build`, its float operands moving by the arguments behind the first `numOperands`.
static Build tangents(const Build &build, size_t numOperands) {
  return [=](OpBuilder &b, Location loc, ValueRange x) -> FailureOr<Values> {
    FailureOr<Values> y = build(b, loc, x.take_front(numOperands));
    if (failed(y))
      return failure();
    Values sources;
    for (Value operand : x.take_front(numOperands))
      if (autodiff::isDifferentiableType(operand.getType()))
        sources.push_back(operand);
    auto made = autodiff::forward(b, loc, *y, sources, x.drop_front(numOperands));
    if (failed(made))
      return failure();
    Value tangent = made->values[0];
    return Values{tangent ? tangent : ir::zerosLike(b, loc, y->front())};
  };
}

//===- Checks ---------------------------------------------------------------------------------------------------===//

static void expectSame(const Array &actual, const Array &expected, bool exact, const std::string &what) {
  ASSERT_EQ(runtime::toString(actual.type), runtime::toString(expected.type)) << what;
  for (int64_t i = 0; i < actual.numElements(); ++i) {
    size_t size = runtime::sizeOf(actual.dtype()), place = static_cast<size_t>(i) * size;
    if (std::memcmp(actual.data<char>() + place, expected.data<char>() + place, size) == 0)
      continue;
    ASSERT_TRUE(!exact && runtime::isFloat(actual.dtype())) << what << ": element " << i << " differs";
    bool wide = actual.dtype() == DType::f64;
    double a = wide ? actual.data<double>()[i] : actual.data<float>()[i],
           e = wide ? expected.data<double>()[i] : expected.data<float>()[i];
    EXPECT_TRUE((std::isnan(a) && std::isnan(e)) || a == e ||
                std::fabs(a - e) <= (wide ? 1e-12 : 1e-6) * std::max(1.0, std::fabs(e)))
        << what << ": element " << i << " is " << a << ", a loop gives " << e;
  }
}

namespace {

/// Arrays of which some have lanes, and those of each lane.
struct Lanes {
  Lanes(const Arrays &x, const std::vector<bool> &set) : together(x), each(kLanes, x) {
    for (size_t k = 0; k < x.size(); ++k) {
      if (!set[k])
        continue;
      Arrays lanes;
      for (int64_t i = 0; i < kLanes; ++i)
        lanes.push_back(each[static_cast<size_t>(i)][k] = varied(x[k], i));
      together[k] = stacked(lanes);
    }
  }
  Arrays together;
  std::vector<Arrays> each;
};

} // namespace

/// The program of the lanes of `set` against one for each lane.
static void checkLanes(const Build &build, const Arrays &x, const std::vector<bool> &set, const std::vector<bool> &open,
                       bool exact, const std::string &what) {
  Lanes lanes(x, set);
  auto one = makeFunction(x, open, build), all = makeFunction(lanes.together, open, batched(build, set));
  ASSERT_TRUE(one && all) << what;
  Arrays actual = interpretOn(all->function, lanes.together);
  for (size_t i = 0; i < kLanes; ++i) {
    Arrays expected = interpretOn(one->function, lanes.each[i]);
    ASSERT_EQ(actual.size(), expected.size()) << what;
    for (size_t r = 0; r < expected.size(); ++r)
      expectSame(laneOf(actual[r], static_cast<int64_t>(i)), expected[r], exact, what + ", lane " + std::to_string(i));
  }
}

/// The gradient through the program of the lanes: for what has lanes, that of each lane; else their sum.
static void checkGradientOver(const Build &build, const Arrays &x, Array ct, const std::vector<bool> &set,
                              const std::vector<bool> &open, const std::string &what) {
  Arrays operands = x;
  operands.push_back(ct);
  std::vector<bool> all = set, isOpen = open;
  all.push_back(true);
  isOpen.push_back(false);
  Lanes lanes(operands, all);
  auto one = makeFunction(operands, isOpen, gradients(build, x.size()));
  auto through = makeFunction(lanes.together, isOpen, gradients(batched(build, set), x.size()));
  ASSERT_TRUE(one && through) << what;
  Arrays actual = interpretOn(through->function, lanes.together);
  std::vector<Arrays> expected;
  for (const Arrays &lane : lanes.each)
    expected.push_back(interpretOn(one->function, lane));
  size_t r = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    if (!runtime::isFloat(x[k].dtype()))
      continue;
    if (set[k]) {
      for (size_t i = 0; i < kLanes; ++i)
        expectSame(laneOf(actual[r], static_cast<int64_t>(i)), expected[i][r], false, what + ", gradient through it");
    } else if (x[k].dtype() == DType::f64) {
      Array sum = directionLike(x[k], 0);
      for (int64_t j = 0; j < sum.numElements(); ++j) {
        sum.data<double>()[j] = 0;
        for (const Arrays &lane : expected)
          sum.data<double>()[j] += lane[r].data<double>()[j];
      }
      expectSame(actual[r], sum, false, what + ", gradient through it, summed");
    }
    ++r;
  }
}

static void checkSample(const Sample &sample) {
  bool summed = false;
  Build f = [&](OpBuilder &b, Location loc, ValueRange x) -> FailureOr<Values> {
    FailureOr<Operation *> op = ir::buildOp(b, loc, sample.op, x, sample.attrs);
    if (failed(op))
      return failure();
    summed = isa<ir::Reduction, ir::ContractOp>(*op);
    return Values{(*op)->getResult(0)};
  };
  const Arrays &x = sample.operands;
  size_t n = x.size();
  runtime::TypeList types, openTypes;
  std::vector<runtime::TensorType> own, opens;
  bool differentiable = runtime::recordOf(sample.op).differentiable, floats = false;
  Arrays along = x;
  for (const Array &operand : x) {
    own.push_back(operand.type);
    opens.push_back(opened(operand.type));
    floats |= runtime::isFloat(operand.dtype());
    if (runtime::isFloat(operand.dtype()))
      along.push_back(directionLike(operand, static_cast<int64_t>(along.size())));
  }
  ASSERT_TRUE(runtime::inferTypes(sample.op, own, sample.attrs, types).ok());
  differentiable &= floats && runtime::isFloat(types[0].dtype);
  bool canOpen = runtime::inferTypes(sample.op, opens, sample.attrs, openTypes).ok();
  Arrays seeded = x;
  seeded.push_back(directionLike(Array::empty(types[0].dtype, types[0].shape), 90));

  for (size_t mask = 1; mask < (size_t(1) << n); ++mask)
    for (bool isOpen : {false, true}) {
      if (isOpen && !canOpen)
        continue;
      std::vector<bool> set, open(n, isOpen);
      for (size_t k = 0; k < n; ++k)
        set.push_back((mask >> k & 1) != 0);
      std::string what = std::string(runtime::recordOf(sample.op).name) + " on " + sample.text + ", operands " +
                         std::to_string(mask) + (isOpen ? ", open" : "");
      checkLanes(f, x, set, open, !summed, what);
      checkLanes(batched(f, set), Lanes(x, set).together, set, open, !summed, what + ", twice");
      if (!differentiable)
        continue;
      auto with = [](std::vector<bool> list, size_t size, bool value) {
        list.resize(size, value);
        return list;
      };
      checkLanes(gradients(f, n), seeded, with(set, n + 1, true), with(open, n + 1, false), false, what + ", vjp");
      checkLanes(gradients(f, n), seeded, with(set, n + 1, false), with(open, n + 1, false), false,
                 what + ", vjp of one");
      checkLanes(tangents(f, n), along, with(set, along.size(), true), with(open, along.size(), isOpen), false,
                 what + ", jvp");
      checkLanes(tangents(f, n), along, with(set, along.size(), false), with(open, along.size(), isOpen), false,
                 what + ", jvp of one");
      checkGradientOver(f, x, seeded.back(), set, open, what);
    }
}

TEST(Batch, EverySampleOfEveryOp) {
  int checked = 0;
  for (const Sample &sample : allSamples()) {
    if (sample.operands.empty() || sample.op == runtime::OpId::dim || sample.op == runtime::OpId::size)
      continue; // a size has no lanes
    checkSample(sample);
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

/// Random numbers of several keys, rows at several places: the compiled code of the batched program too.
TEST(Batch, CompiledPrograms) {
  for (const Sample &sample : allSamples()) {
    runtime::OpId op = sample.op;
    if (op != runtime::OpId::gather && op != runtime::OpId::scatter_add && op != runtime::OpId::random_uniform &&
        op != runtime::OpId::random_bits && op != runtime::OpId::one_hot)
      continue;
    Build f = [&](OpBuilder &b, Location loc, ValueRange x) -> FailureOr<Values> {
      FailureOr<Operation *> made = ir::buildOp(b, loc, op, x, sample.attrs);
      return failed(made) ? FailureOr<Values>() : Values{(*made)->getResult(0)};
    };
    std::vector<bool> set(sample.operands.size(), true), open(sample.operands.size(), false);
    Lanes lanes(sample.operands, set);
    auto all = makeFunction(lanes.together, open, batched(f, set));
    ASSERT_TRUE(all);
    checkAgreement(*all->module, "f", lanes.together, {});
  }
}

/// Calls, sizes of what has lanes, and no lanes at all.
TEST(Batch, CallsAndSizes) {
  const char *text = R"(
    func.func @scaled(%x: tensor<?xf64>, %w: tensor<2xf64>) -> (tensor<?xf64>, tensor<f64>) {
      %n = wg.dim %x axis 0 : tensor<?xf64>
      %i = wg.iota to [?] axis 0 sizes %n {dtype = f64} : tensor<?xf64>
      %y = wg.mul %x, %i : tensor<?xf64>
      %s = wg.reduce_sum %w axes [0] : tensor<2xf64> -> tensor<f64>
      return %y, %s : tensor<?xf64>, tensor<f64>
    }
    func.func @main(%x: tensor<?xf64>, %w: tensor<2xf64>) -> tensor<?xf64> {
      %y:2 = wg.call @scaled(%x, %w) : (tensor<?xf64>, tensor<2xf64>) -> (tensor<?xf64>, tensor<f64>)
      %z:2 = wg.call @scaled(%y#0, %w) : (tensor<?xf64>, tensor<2xf64>) -> (tensor<?xf64>, tensor<f64>)
      %n = wg.dim %z#0 axis 0 : tensor<?xf64>
      %s = wg.broadcast %z#1 to [?] dims [] sizes %n : tensor<f64> -> tensor<?xf64>
      %c = wg.concat %z#0, %s axis 0 : tensor<?xf64>, tensor<?xf64> -> tensor<?xf64>
      return %c : tensor<?xf64>
    })";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ir::context());
  ASSERT_TRUE(module);
  autodiff::VmapOptions options;
  options.wrt = {0};
  PassManager manager(ir::context());
  manager.addPass(autodiff::createVmap(options));
  ASSERT_TRUE(succeeded(manager.run(*module)));
  Arrays x = parseOperands("f64[4] in [-1, 1]; f64[2] in [-1, 1]");
  Lanes lanes(x, {true, false});
  Array actual = interpretOn(module->lookupSymbol<func::FuncOp>("main_vmap"), lanes.together)[0];
  for (size_t i = 0; i < kLanes; ++i)
    expectSame(laneOf(actual, static_cast<int64_t>(i)),
               interpretOn(module->lookupSymbol<func::FuncOp>("main"), lanes.each[i])[0], true, "lane");
  Array none = interpretOn(module->lookupSymbol<func::FuncOp>("main_vmap"),
                           {Array::empty(DType::f64, runtime::Shape{0, 4}), x[1]})[0];
  EXPECT_EQ(runtime::toString(none.type), "f64[0,8]");
}

/// An index that is out of range in its own lane does not reach the rows of the next one.
TEST(Batch, NoLaneReadsAnother) {
  Build f = [](OpBuilder &b, Location loc, ValueRange x) -> FailureOr<Values> {
    return Values{ir::GatherOp::create(b, loc, x[0], x[1]).getResult()};
  };
  Arrays inputs = parseOperands("f64[3,4] in [-1, 1]; i64[3,2] = [0, 3, 4, 1, 2, 2]");
  auto all = makeFunction(inputs, {false, false}, batched(f, {true, true}));
  ASSERT_TRUE(all);
  auto outputs = codegen::interpret(*codegen::flatten(all->function), inputs);
  ASSERT_FALSE(outputs.ok());
  EXPECT_NE(outputs.failure().message.find("index 4 at position 2 is out of range for an axis of size 4"),
            std::string::npos)
      << outputs.failure().message;
}
