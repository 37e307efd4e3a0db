// Does lane i of a batched program give what the program gives for lane i? Every sample of every op, with every set of
// its tensors batched over three lanes of different data, all sizes static and all open: the op itself, its vjp and its
// jvp, batched twice, and the gradient through the batched program. A loop over lanes is the reference: bit for bit
// where nothing is summed, else within 1e-12.
#include "autodiff/Passes.h"
#include "codegen/Compile.h"
#include "codegen/interpret/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Rules.h"
#include "tests/Arrays.h"
#include "tests/Builds.h"
#include "tests/agreement/Engines.h"

#include "mlir/IR/OwningOpRef.h"
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

static constexpr size_t kLanes = 3;

//===- Programs -------------------------------------------------------------------------------------------------===//

/// Only a static 1 is repeated, so it stays.
static runtime::TensorType opened(runtime::TensorType type) {
  for (size_t axis = 0; axis < type.shape.size(); ++axis)
    if (type.shape[axis] != 1)
      type.shape[axis] = runtime::kDynamic;
  return type;
}

/// `build` on arguments of the types of `inputs`, with each size other than 1 open or not.
static std::optional<Function> makeFunction(const Arrays &inputs, const std::vector<bool> &open, const Build &build) {
  std::vector<runtime::TensorType> types;
  for (auto [input, isOpen] : llvm::zip_equal(inputs, open))
    types.push_back(isOpen ? opened(input.type) : input.type);
  return makeFunction(types, build);
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
      Array sum = direction(x[k].type, 7, 0);
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
    FailureOr<Values> y = opOf(sample.op, sample.attrs)(b, loc, x);
    if (succeeded(y))
      summed = isa<ir::Reduction, ir::ContractOp>((*y)[0].getDefiningOp());
    return y;
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
      along.push_back(direction(operand.type, 7, static_cast<int64_t>(along.size())));
  }
  ASSERT_TRUE(runtime::inferTypes(sample.op, own, sample.attrs, types).ok());
  differentiable &= floats && runtime::isFloat(types[0].dtype);
  ASSERT_TRUE(runtime::inferTypes(sample.op, opens, sample.attrs, openTypes).ok()) << sample.text;
  Arrays seeded = x;
  seeded.push_back(direction(types[0], 7, 90));

  for (size_t mask = 1; mask < (size_t(1) << n); ++mask)
    for (bool isOpen : {false, true}) {
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
    if (!sample.roomForLanes())
      continue;
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
    if (!sample.roomForLanes())
      continue;
    Build f = opOf(op, sample.attrs);
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

/// An index that is out of range in its own lane does not reach the rows of the next one, in either engine.
TEST(Batch, NoLaneReadsAnother) {
  Build f = opOf(runtime::OpId::gather, runtime::GatherAttrs::make());
  Arrays inputs = parseOperands("f64[3,4] in [-1, 1]; i64[3,2] = [0, 3, 4, 1, 2, 2]");
  auto all = makeFunction(inputs, {false, false}, batched(f, {true, true}));
  ASSERT_TRUE(all);
  auto expectRefused = [](const runtime::Failure &failure) {
    std::string text = runtime::toString(failure);
    EXPECT_NE(text.find("gather: index 4 at position 2 is out of range for an axis of size 4"), std::string::npos)
        << text;
  };
  auto outputs = codegen::interpret(*codegen::flatten(all->function), inputs);
  ASSERT_FALSE(outputs.ok());
  expectRefused(outputs.failure());

  auto executable = codegen::compile(all->module.release(), "f");
  ASSERT_TRUE(executable.ok()) << runtime::toString(executable.failure());
  Array y = stacked({DType::f64, {2}}, Arrays(3, parseOperands("f64[2] = [7, 7]")[0]));
  void *arguments[] = {inputs[0].buffer.data(), inputs[1].buffer.data(), y.buffer.data()};
  codegen::AtFault atFault;
  int32_t code = (*executable)->run(arguments, &atFault);
  ASSERT_NE(code, 0);
  expectRefused((*executable)->failure(code, atFault));
  for (double value : y.span<double>()) // nothing is written
    EXPECT_EQ(value, 7);
}
