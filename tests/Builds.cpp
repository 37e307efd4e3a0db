#include "tests/Builds.h"

#include "autodiff/Batch.h"
#include "autodiff/Forward.h"
#include "ir/Bridge.h"
#include "ir/Build.h"

#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace wg::tests {

Build opOf(runtime::OpId op, const runtime::Attrs &attrs) {
  return [=](OpBuilder &b, Location loc, ValueRange x) -> FailureOr<Values> {
    FailureOr<Operation *> made = ir::buildOp(b, loc, op, x, attrs);
    return failed(made) ? FailureOr<Values>() : Values{(*made)->getResult(0)};
  };
}

Build batched(const Build &build, const std::vector<bool> &set) {
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

Build gradients(const Build &build, size_t numOperands) {
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

Build tangents(const Build &build, size_t numOperands) {
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

std::optional<Function> makeFunction(const std::vector<runtime::TensorType> &types, const Build &build) {
  OpBuilder b(ir::context());
  Location loc = b.getUnknownLoc();
  Function made{ModuleOp::create(loc), {}};
  b.setInsertionPointToStart(made.module->getBody());
  made.function = func::FuncOp::create(b, loc, "f", b.getFunctionType({}, {}));
  Block *body = made.function.addEntryBlock();
  b.setInsertionPointToStart(body);
  Values x;
  for (const runtime::TensorType &type : types)
    x.push_back(body->addArgument(ir::tensorTypeOf(b.getContext(), type), loc));
  FailureOr<Values> results = build(b, loc, x);
  if (failed(results))
    return std::nullopt;
  func::ReturnOp::create(b, loc, *results);
  autodiff::eraseDead(*body, nullptr);
  body->eraseArguments(types.size(), body->getNumArguments() - types.size()); // what stood in for one lane
  made.function.setFunctionType(b.getFunctionType(body->getArgumentTypes(), ValueRange(*results).getTypes()));
  EXPECT_TRUE(succeeded(verify(*made.module)));
  return made;
}

} // namespace wg::tests
