#include "tests/agreement/RandomLanes.h"

#include "autodiff/Batch.h"
#include "autodiff/Passes.h"
#include "codegen/interpret/Interpret.h"
#include "ir/Bridge.h"
#include "passes/Passes.h"
#include "tests/Arrays.h"
#include "tests/agreement/Bounds.h"
#include "tests/agreement/Engines.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace wg::tests {

using runtime::Array;
using Arrays = std::vector<Array>;

namespace {

/// What is drawn for a program: the same for each part of it that has the inputs.
struct Plan {
  std::vector<bool> set = {}; ///< the arguments that have lanes
  size_t count = 3;
  bool open = false; ///< the number of lanes is `?`
  bool byPass = false;
};

/// The batched form of `f` as a function of the module; `lanes` says which results have the axis.
struct BatchedProgram {
  OwningOpRef<ModuleOp> module;
  std::string name;
  SmallVector<bool> lanes;
};

} // namespace

static uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static Plan planFor(uint64_t seed, const Arrays &inputs) {
  static constexpr size_t kCounts[] = {3, 3, 3, 3, 2, 1, 1, 0};
  uint64_t drawn = mixed(seed + 0x9e3779b97f4a7c15u);
  Plan plan{.count = kCounts[drawn % 8], .open = (drawn >> 8) % 4 == 0, .byPass = (drawn >> 16) % 2 == 0};
  bool all = (drawn >> 24) % 4 == 0, any = false;
  for (const Array &input : inputs) {
    uint64_t content = drawn;
    for (size_t i = 0; i < input.numBytes(); ++i)
      content = content * 31 + static_cast<unsigned char>(input.data<char>()[i]);
    plan.set.push_back(all || mixed(content) % 2 == 0);
    any = any || plan.set.back();
  }
  if (!any)
    plan.set.assign(inputs.size(), true);
  return plan;
}

static BatchedProgram batchedProgram(ModuleOp module, const Plan &plan) {
  BatchedProgram made{module.clone(), "f_vmap", {}};
  auto function = made.module->lookupSymbol<func::FuncOp>("f");
  SmallVector<unsigned> places;
  for (size_t k = 0; k < plan.set.size(); ++k)
    if (plan.set[k])
      places.push_back(static_cast<unsigned>(k));
  int64_t count = plan.open ? ShapedType::kDynamic : static_cast<int64_t>(plan.count);
  if (plan.byPass) {
    autodiff::VmapOptions options;
    options.function = "f";
    options.wrt.assign(places.begin(), places.end());
    options.size = plan.open ? -1 : count;
    PassManager manager(module.getContext());
    manager.addPass(autodiff::createVmap(options));
    EXPECT_TRUE(succeeded(manager.run(*made.module)));
    made.lanes.assign(function.getNumResults(), true); // what is the same in all is repeated
    return made;
  }
  FailureOr<autodiff::BatchedFunction> batched = autodiff::batchedFunction(function, places, count);
  EXPECT_TRUE(succeeded(batched));
  if (succeeded(batched)) {
    batched->function.setPublic();
    made.name = batched->function.getSymName().str();
    made.lanes = batched->results;
  }
  return made;
}

namespace {

/// A value, the largest one on the way to it, and whether a sum or product of floats is among them.
struct Traced {
  Array value;
  double terms = 0;
  bool sums = false;
};

/// The engine of kernels on traced values.
struct Tracer {
  codegen::Kernels kernels;

  Traced constant(const Array &array) { return {array, largest(array), false}; }
  runtime::Status execute(const codegen::Row &row, const runtime::OpCallOf<Traced> &call, std::span<Traced> results) {
    Arrays operands, values(results.size());
    Traced made{{}, 0, llvm::is_contained(kSums, row.op)};
    for (const Traced &operand : call.operands) {
      operands.push_back(operand.value);
      made.terms = std::max(made.terms, operand.terms);
      made.sums = made.sums || operand.sums;
    }
    runtime::Status status =
        kernels.execute(row, runtime::OpCall{call.op, call.attrs, operands, call.where}, std::span(values));
    for (size_t i = 0; status.ok() && i < results.size(); ++i)
      results[i] = {values[i], std::max(made.terms, largest(values[i])), made.sums};
    return status;
  }
  static constexpr runtime::OpId kSums[] = {runtime::OpId::contract, runtime::OpId::reduce_sum,
                                            runtime::OpId::reduce_prod};
};

} // namespace

static std::vector<Traced> traced(const codegen::Program &program, const Arrays &inputs) {
  std::vector<Traced> values, results(program.outputs.size());
  for (const Array &input : inputs)
    values.push_back({input, largest(input), false});
  runtime::Status status =
      codegen::run<Traced>(program, std::span<const Traced>(values), std::span(results), Tracer{{program}});
  EXPECT_TRUE(status.ok());
  return results;
}

/// The module with every result of an op, f64 and of known size, one unit in its last place larger or smaller by turns.
static OwningOpRef<ModuleOp> rounded(ModuleOp module, int first) {
  OwningOpRef<ModuleOp> copy(module.clone());
  SmallVector<Value> values;
  copy->walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && type.hasStaticShape() && type.getElementType().isF64() &&
          !isa<ir::ConstantOp, ir::LuOp>(op)) // a permutation stays one
        values.push_back(result);
  });
  for (auto [i, value] : llvm::enumerate(values)) {
    OpBuilder b(copy->getContext());
    b.setInsertionPointAfterValue(value);
    double factor = 1 + ((static_cast<int>(i) + first) % 2 ? 0x1p-52 : -0x1p-52);
    Value by = ir::ConstantOp::create(b, value.getLoc(),
                                      DenseElementsAttr::get(cast<RankedTensorType>(value.getType()), APFloat(factor)));
    Operation *product = ir::MulOp::create(b, value.getLoc(), value, by);
    value.replaceAllUsesExcept(product->getResult(0), product);
  }
  return copy;
}

double scaleOf(ModuleOp module, const std::string &function, const Arrays &inputs, double atLeast) {
  Arrays expected = interpreted(module, function, inputs);
  for (const Array &result : expected)
    atLeast = std::max(atLeast, largest(result));
  double scale = atLeast;
  for (int first = 0; first < 2; ++first) {
    Arrays found = interpreted(*rounded(module, first), function, inputs);
    for (size_t r = 0; r < expected.size(); ++r)
      if (expected[r].dtype() == runtime::DType::f64)
        for (int64_t i = 0; i < expected[r].numElements(); ++i) {
          double change = std::fabs(static_cast<const double *>(found[r].buffer.data())[i] -
                                    static_cast<const double *>(expected[r].buffer.data())[i]);
          if (std::isfinite(change))
            scale = std::max(scale, change / 0x1p-52);
        }
  }
  return std::min(scale, 256 * atLeast); // a branch that goes the other way is no rounding
}

/// The batched program compiled for the sizes of `inputs`.
static void checkCompiled(BatchedProgram &batched, const Arrays &inputs, const Tolerance &tolerance, uint64_t seed) {
  auto function = batched.module->lookupSymbol<func::FuncOp>(batched.name);
  SmallVector<Type> types;
  for (const Array &input : inputs)
    types.push_back(ir::tensorTypeOf(ir::context(), input.type));
  ASSERT_TRUE(succeeded(passes::inferShapes(function, types)));
  Tolerance scaled = tolerance;
  scaled.atLeast = scaleOf(*batched.module, batched.name, inputs, tolerance.atLeast);
  checkAgreement(*batched.module, batched.name, inputs, scaled, seed);
}

void checkLanes(const RandomProgram &program, const Emitted &emitted, const Arrays &inputs, Engine engine) {
  if (inputs.empty())
    return;
  Plan plan = planFor(program.seed, inputs);
  Lanes lanes(inputs, plan.set, plan.count);
  ModuleOp module = *emitted.module;
  BatchedProgram batched = batchedProgram(module, plan);
  if (::testing::Test::HasFailure())
    return;
  auto nameOf = [&](size_t r) {
    return "lanes, " + (emitted.results.empty() ? "value" : emitted.results[r]) + ", result " + std::to_string(r);
  };
  double bound = boundOfPrograms("gradients of random programs"), largestTerm = program.largest;
  codegen::Program single = *codegen::flatten(module.lookupSymbol<func::FuncOp>("f"));
  Arrays actual = interpreted(*batched.module, batched.name, lanes.together);
  if (::testing::Test::HasFailure())
    return;
  ASSERT_EQ(actual.size(), single.outputs.size());
  for (size_t i = 0; i < plan.count; ++i) {
    std::vector<Traced> expected = traced(single, lanes.each[i]);
    for (size_t r = 0; r < actual.size(); ++r) {
      const Traced &result = expected[r];
      expectClose(result.value, batched.lanes[r] ? laneOf(actual[r], static_cast<int64_t>(i)) : actual[r],
                  result.sums ? Tolerance{.ulps = bound, .atLeast = result.terms} : Tolerance(),
                  nameOf(r) + ", lane " + std::to_string(i));
      largestTerm = std::max(largestTerm, largest(result.value));
    }
  }
  for (size_t r = 0; r < actual.size(); ++r)
    if (batched.lanes[r])
      EXPECT_EQ(actual[r].shape()[0], static_cast<int64_t>(plan.count)) << nameOf(r);
  if (engine == Engine::both && !::testing::Test::HasFailure())
    checkCompiled(batched, lanes.together, {.ulps = bound, .atLeast = largestTerm}, program.seed);
  if (::testing::Test::HasFailure())
    ADD_FAILURE() << textOf(*batched.module);
}

} // namespace wg::tests
