// Random loops of layers, each with sums over the turns, keep their bits when they are distributed; and machine code
// agrees with the interpreter on the loops that come out.
#include "../agreement/Engines.h"

#include "ir/Dialect.h"
#include "passes/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace mlir;

namespace wg {
namespace {

/// The text of a function `f` with one loop: of `layers` layers with one or two parts of a state each, which read each
/// other, the layers before, rows and invariants; and sums over the turns of what the layers make.
class RandomLoop {
public:
  RandomLoop(uint64_t seed, int64_t size, const std::string &dtype) : random(seed), row(typeOf({size}, dtype)) {
    size_t layers = pick(2, 4), numXs = pick(3, 9), numInvariants = pick(0, 2);
    int64_t turns = int64_t(pick(2, 6));
    std::vector<size_t> stateOf, sumsOf;
    for (size_t i = 0; i < layers; ++i)
      stateOf.push_back(pick(1, 2)), sumsOf.push_back(pick(4, 12));
    // What a layer carries lies anywhere among what the loop carries.
    std::vector<std::string> carried;
    for (size_t i = 0; i < layers; ++i) {
      for (size_t j = 0; j < stateOf[i]; ++j)
        carried.push_back("%s" + std::to_string(i) + "_" + std::to_string(j));
      for (size_t j = 0; j < sumsOf[i]; ++j)
        carried.push_back("%sum" + std::to_string(i) + "_" + std::to_string(j));
    }
    std::shuffle(carried.begin(), carried.end(), random);
    std::map<std::string, std::string> next;
    std::vector<std::string> shared, made;
    for (size_t i = 0; i < numXs; ++i)
      shared.push_back("%x" + std::to_string(i));
    for (size_t i = 0; i < numInvariants; ++i)
      shared.push_back("%w" + std::to_string(i));
    for (size_t i = 0; i < layers; ++i) {
      std::vector<std::string> values = shared;
      for (size_t j = 0; j < std::min<size_t>(2, made.size()); ++j) // of the layers before
        values.push_back(made[pick(0, made.size() - 1)]);
      std::vector<std::string> own;
      for (size_t j = 0; j < stateOf[i]; ++j)
        own.push_back("%s" + std::to_string(i) + "_" + std::to_string(j));
      values.insert(values.end(), own.begin(), own.end());
      size_t first = values.size();
      for (size_t j = 0, count = pick(6, 14); j < count; ++j) {
        const std::string &a = values[pick(first - own.size(), values.size() - 1)];
        values.push_back(emit(a, values[pick(0, values.size() - 1)], /*isNext=*/false));
      }
      for (const std::string &part : own)
        next[part] = emit(values.back(), own[pick(0, own.size() - 1)], /*isNext=*/true);
      for (size_t j = 0; j < sumsOf[i]; ++j) {
        std::string sum = "%sum" + std::to_string(i) + "_" + std::to_string(j);
        next[sum] = define("wg.add " + sum + ", " + values[pick(first, values.size() - 1)]);
      }
      made.insert(made.end(), values.begin() + int64_t(first), values.end());
      made.insert(made.end(), own.begin(), own.end());
    }
    std::vector<std::string> returned;
    for (const std::string &name : carried)
      returned.push_back(next.at(name));
    for (size_t i = 0, count = pick(0, 3); i < count; ++i)
      returned.push_back(pick(0, 4) ? made[pick(0, made.size() - 1)] : shared[pick(0, shared.size() - 1)]);
    std::string stack = typeOf({turns, size}, dtype);
    size_t numArguments = carried.size() + shared.size();
    std::string arguments, types, results, operands, parameters;
    for (size_t i = 0; i < numArguments; ++i) {
      bool isX = i >= carried.size() && i < carried.size() + numXs;
      std::string type = isX ? stack : row, comma = i ? ", " : "";
      arguments += comma + "%a" + std::to_string(i) + ": " + type;
      operands += comma + "%a" + std::to_string(i);
      types += comma + type;
      parameters += comma + (i < carried.size() ? carried[i] : shared[i - carried.size()]) + ": " + row;
      inputs.push_back(isX ? std::vector<int64_t>{turns, size} : std::vector<int64_t>{size});
    }
    std::string rows, list;
    for (size_t i = 0; i < returned.size(); ++i) {
      results += (i ? ", " : "") + (i < carried.size() ? row : stack);
      rows += (i ? ", " : "") + row;
      list += (i ? ", " : "") + returned[i];
    }
    std::string values;
    for (size_t i = 0; i < returned.size(); ++i)
      values += (i ? ", %r#" : "%r#") + std::to_string(i);
    std::string reversed = pick(0, 1) ? ", reversed = true" : "";
    text = "func.func @f(" + arguments + ") -> (" + results + ") {\n  %r:" + std::to_string(returned.size()) +
           " = wg.loop [@turn](" + operands + ") {carried = " + std::to_string(carried.size()) +
           " : i64, length = " + std::to_string(turns) + " : i64" + reversed + ", scanned = " + std::to_string(numXs) +
           " : i64} : (" + types + ") -> (" + results + ")\n  return " + values + " : " + results +
           "\n}\nfunc.func private @turn(" + parameters + ") -> (" + rows + ") {\n" +
           "    %two = wg.constant dense<2.0> : " + row + "\n    %minus = wg.constant dense<-2.0> : " + row + "\n" +
           body + "  return " + list + " : " + rows + "\n}\n";
  }

  std::string text;
  std::vector<std::vector<int64_t>> inputs;

private:
  size_t pick(size_t lo, size_t hi) { return std::uniform_int_distribution<size_t>(lo, hi)(random); }
  static std::string typeOf(const std::vector<int64_t> &shape, const std::string &dtype) {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += std::to_string(size) + "x";
    return text + dtype + ">";
  }
  std::string define(const std::string &op) {
    std::string name = "%v" + std::to_string(count++);
    body += "    " + name + " = " + op + " : " + row + "\n";
    return name;
  }
  /// An op of the two; the next state is at most 2, so that nothing grows from turn to turn.
  std::string emit(const std::string &a, const std::string &b, bool isNext) {
    static constexpr const char *kOps[] = {"wg.mul", "wg.sub", "wg.add", "wg.maximum"};
    std::string made = define(std::string(kOps[pick(0, 3)]) + " " + a + ", " + b);
    if (isNext)
      return define("wg.maximum " + define("wg.minimum " + made + ", %two") + ", %minus");
    return pick(0, 15) ? made : define("wg.tanh " + made);
  }

  std::mt19937_64 random;
  std::string row, body;
  int count = 0;
};

std::vector<runtime::Array> arraysOf(const RandomLoop &loop, runtime::DType dtype, int64_t seed) {
  std::vector<runtime::Array> arrays;
  for (const std::vector<int64_t> &shape : loop.inputs)
    arrays.push_back(tests::randomArray({dtype, runtime::Shape(shape)}, seed + int64_t(arrays.size()), -1, 1));
  return arrays;
}

int64_t loopsOf(ModuleOp module) {
  int64_t loops = 0;
  module.walk([&](ir::LoopOp) { ++loops; });
  return loops;
}

TEST(DistributeLoops, KeepsEveryBitOfRandomLoops) {
  constexpr int64_t kLoops = 600;
  int64_t distributed = 0;
  for (int64_t seed = 0; seed < kLoops; ++seed) {
    RandomLoop loop(uint64_t(seed), 25, "f64");
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + loop.text);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(loop.text, ParserConfig(ir::context()));
    ASSERT_TRUE(module);
    std::vector<runtime::Array> inputs = arraysOf(loop, runtime::DType::f64, 100 * seed);
    std::vector<runtime::Array> expected = tests::interpreted(*module, "f", inputs);
    PassManager manager(ir::context());
    manager.addPass(passes::createDistributeLoops({.registers = 512 + 256 * (seed % 4)}));
    ASSERT_TRUE(succeeded(manager.run(*module)));
    distributed += loopsOf(*module) > 1;
    std::vector<runtime::Array> actual = tests::interpreted(*module, "f", inputs);
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t r = 0; r < expected.size(); ++r)
      tests::expectClose(expected[r], actual[r], {}, "result " + std::to_string(r));
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(distributed, kLoops / 5);
}

TEST(DistributeLoops, MachineCodeAgrees) {
  constexpr uint64_t kLoops = 40;
  int64_t distributed = 0;
  for (uint64_t seed = 1000; seed < 1000 + kLoops; ++seed) {
    bool isDouble = seed % 2 == 0;
    RandomLoop loop(seed, isDouble ? 25 : 52, isDouble ? "f64" : "f32");
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + loop.text);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(loop.text, ParserConfig(ir::context()));
    ASSERT_TRUE(module);
    OwningOpRef<ModuleOp> parts = module->clone();
    PassManager manager(ir::context());
    manager.addPass(passes::createDistributeLoops());
    ASSERT_TRUE(succeeded(manager.run(*parts)));
    distributed += loopsOf(*parts) > 1;
    tests::checkAgreement(*parts, "f",
                          arraysOf(loop, isDouble ? runtime::DType::f64 : runtime::DType::f32, int64_t(seed)),
                          {.ulps = 64, .atLeast = 1}, seed);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(distributed, int64_t(kLoops) / 6);
}

} // namespace
} // namespace wg
