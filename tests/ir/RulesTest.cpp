// Each op's derivative rule, alone: against central differences on its samples, with static and with dynamic sizes, and
// at the points where spec and docs/numbers.md fix a value.
#include "tests/ir/Evaluate.h"

#include "ir/Rules.h"
#include "runtime/Differences.h"
#include "tests/Arrays.h"

#include <limits>

using namespace wg;
using namespace wg::tests;
using runtime::Array;
using runtime::DType;
using runtime::OpId;

/// A cotangent for `y`, reproducible and without a pattern.
static Array cotangentFor(const Array &y) {
  Array ct = Array::empty(y.dtype(), y.shape());
  for (int64_t i = 0; i < ct.numElements(); ++i)
    ct.data<double>()[i] = runtime::randomUniform<double>(7, 9, i) * 2 - 1;
  return ct;
}

static Array primal(const Sample &sample, const std::vector<Array> &operands) {
  Array y;
  runtime::Status status = runtime::execute({sample.op, sample.attrs, operands, {}}, std::span(&y, 1));
  EXPECT_TRUE(status.ok());
  return y;
}

/// The cotangents of the operands that the op's rule gives for `ct`; an empty array where it gives none. Nothing if the
/// op cannot be built.
static std::optional<std::vector<Array>> cotangents(const Sample &sample, const Array &ct, bool dynamic) {
  std::vector<Array> inputs = sample.operands;
  inputs.push_back(ct);
  Program program(inputs, dynamic);
  mlir::Location loc = program.b.getUnknownLoc();
  mlir::ScopedDiagnosticHandler quiet(ir::context(), [](mlir::Diagnostic &) { return mlir::success(); });
  auto op = ir::buildOp(program.b, loc, sample.op, program.block->getArguments().drop_back(), sample.attrs);
  if (mlir::failed(op) || (*op)->getResult(0).getType() != program.block->getArguments().back().getType())
    return std::nullopt;
  mlir::FailureOr<ir::Cotangents> results = ir::vjp(*op, program.b, loc, program.block->getArguments().back());
  if (mlir::failed(results))
    return std::nullopt;
  EXPECT_EQ(results->size(), (*op)->getNumOperands());
  if (!program.run())
    return std::nullopt;
  std::vector<Array> arrays;
  for (auto [operand, result] : llvm::zip_equal((*op)->getOperands(), *results)) {
    if (result) {
      EXPECT_EQ(result.getType(), operand.getType());
    }
    arrays.push_back(result ? program.values[result] : Array());
  }
  return arrays;
}

static void checkAgainstDifferences(bool dynamic) {
  int checked = 0;
  for (const Sample &sample : allSamples()) {
    bool floats = !sample.operands.empty() && std::any_of(sample.operands.begin(), sample.operands.end(),
                                                          [](const Array &x) { return x.dtype() == DType::f64; });
    if (!runtime::recordOf(sample.op).differentiable || !floats || !sample.reason("differences").empty())
      continue;
    Array y = primal(sample, sample.operands);
    if (y.dtype() != DType::f64)
      continue;
    Array ct = cotangentFor(y);
    std::optional<std::vector<Array>> dx = cotangents(sample, ct, dynamic);
    if (!dx) {
      EXPECT_TRUE(dynamic) << runtime::recordOf(sample.op).name << ": " << sample.text;
      continue;
    }
    ++checked;
    for (size_t k = 0; k < sample.operands.size(); ++k) {
      if (sample.operands[k].dtype() != DType::f64)
        continue;
      if (!(*dx)[k].buffer) { // concat has no rule along a dynamic axis, and says so
        EXPECT_TRUE(dynamic) << runtime::recordOf(sample.op).name;
        break;
      }
      for (int64_t i = 0; i < sample.operands[k].numElements(); ++i) {
        auto at = [&](double step) {
          std::vector<Array> moved = sample.operands;
          moved[k] = Array::copyOf(std::span<const double>(moved[k].span<double>()), moved[k].shape());
          moved[k].data<double>()[i] += step;
          return dot(primal(sample, moved), ct);
        };
        runtime::Difference numeric = runtime::differentiate(at);
        double exact = (*dx)[k].data<double>()[i], scale = std::max(1.0, std::abs(exact));
        EXPECT_LT(numeric.error, 1e-6 * scale) << runtime::recordOf(sample.op).name << " on " << sample.text;
        EXPECT_NEAR(exact, numeric.value, 1e-6 * scale)
            << runtime::recordOf(sample.op).name << " on " << sample.text << ", operand " << k << ", element " << i;
      }
    }
  }
  EXPECT_GT(checked, dynamic ? 35 : 50);
}

TEST(RulesTest, MatchDifferences) { checkAgainstDifferences(false); }
TEST(RulesTest, MatchDifferencesWithDynamicSizes) { checkAgainstDifferences(true); }

/// The cotangent of operand `k` under a cotangent of ones.
static std::vector<double> slopes(OpId op, std::string_view text, size_t k = 0, bool dynamic = false) {
  Sample sample = parseSample(op, text);
  Array y = primal(sample, sample.operands);
  Array ct = Array::empty(y.dtype(), y.shape());
  std::fill_n(ct.data<double>(), ct.numElements(), 1.0);
  std::optional<std::vector<Array>> dx = cotangents(sample, ct, dynamic);
  if (!dx)
    return {};
  return {(*dx)[k].data<double>(), (*dx)[k].data<double>() + (*dx)[k].numElements()};
}

using Slopes = std::vector<double>;
static const double inf = std::numeric_limits<double>::infinity();

TEST(EdgeTest, KinksAt0) {
  EXPECT_EQ(slopes(OpId::relu, "f64[4] = [-1, -0.0, 0, 2]"), (Slopes{0, 0, 0, 1}));
  EXPECT_EQ(slopes(OpId::abs, "f64[3] = [-1, 0, 2]"), (Slopes{-1, 0, 1}));
}

TEST(EdgeTest, RootsAt0AreInfinite) {
  EXPECT_EQ(slopes(OpId::sqrt, "f64[2] = [0, 4]"), (Slopes{inf, 0.25}));
  EXPECT_EQ(slopes(OpId::rsqrt, "f64[2] = [0, 4]"), (Slopes{-inf, -0.0625}));
}

TEST(EdgeTest, TiesShareEqually) {
  for (OpId op : {OpId::maximum, OpId::minimum})
    for (size_t k : {0, 1})
      EXPECT_EQ(slopes(op, "f64[2] = [1, 0]; f64[2] = [1, -0.0]", k), (Slopes{0.5, 0.5}));
  EXPECT_EQ(slopes(OpId::reduce_max, "f64[4] = [1, 3, 3, 2] | axes = [0]"), (Slopes{0, 0.5, 0.5, 0}));
  EXPECT_EQ(slopes(OpId::reduce_min, "f64[4] = [1, 0, 0, 2] | axes = [0]"), (Slopes{0, 0.5, 0.5, 0}));
}

TEST(EdgeTest, PowAtZeros) {
  EXPECT_EQ(slopes(OpId::pow, "f64[5] = [0, 2, inf, nan, 1e-310]; f64[5] = [0, 0, 0, 0, 0]", 0),
            (Slopes{0, 0, 0, 0, 0}));
  EXPECT_EQ(slopes(OpId::pow, "f64[2] = [0, 0]; f64[2] = [1, 2]", 0), (Slopes{1, 0}));
  EXPECT_EQ(slopes(OpId::pow, "f64[3] = [0, 0, 0]; f64[3] = [0, 0.5, 2]", 1), (Slopes{0, 0, 0}));
  EXPECT_TRUE(std::isnan(slopes(OpId::pow, "f64[1] = [-2]; f64[1] = [2]", 1)[0]));
  EXPECT_EQ(slopes(OpId::pow, "f64[1] = [-2]; f64[1] = [2]", 0), (Slopes{-4}));
}

TEST(EdgeTest, ProductsAreExactWithZeros) {
  for (bool dynamic : {false, true}) {
    EXPECT_EQ(slopes(OpId::reduce_prod, "f64[4] = [2, 0, 3, 0.5] | axes = [0]", 0, dynamic), (Slopes{0, 3, 0, 0}));
    EXPECT_EQ(slopes(OpId::reduce_prod, "f64[3] = [0, 5, 0] | axes = [0]", 0, dynamic), (Slopes{0, 0, 0}));
    EXPECT_EQ(slopes(OpId::reduce_prod, "f64[2,2,2] = [1, 2, 3, 4, 5, 6, 7, 0] | axes = [0, 2]", 0, dynamic),
              (Slopes{60, 30, 0, 0, 12, 10, 0, 84}));
    EXPECT_EQ(slopes(OpId::reduce_prod, "f64[1] = [0] | axes = [0]", 0, dynamic), (Slopes{1}));
  }
  // No overflow on the way: the product is inf, each slope is finite.
  EXPECT_EQ(slopes(OpId::reduce_prod, "f64[3] = [1e200, 1e200, 1e-200] | axes = [0]"), (Slopes{1, 1, inf}));
}

TEST(EdgeTest, UntakenSideGetsExactZero) {
  EXPECT_EQ(slopes(OpId::select, "bool[2] = [1, 0]; f64[2] = [1, 2]; f64[2] = [nan, 4]", 2), (Slopes{0, 1}));
}

TEST(EdgeTest, RepeatedIndicesAdd) {
  EXPECT_EQ(slopes(OpId::gather, "f64[3] = [1, 2, 3]; i64[4] = [0, 2, 2, 2] | batch_dims = 0"), (Slopes{1, 0, 3}));
}
