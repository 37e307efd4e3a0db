// Programs as tests write them: what appends ops, and what makes of it its derivatives and its lanes.
#pragma once

#include "runtime/Op.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <optional>

namespace wg::tests {

using Values = llvm::SmallVector<mlir::Value>;

/// Appends ops that compute results from `x`.
using Build = std::function<mlir::FailureOr<Values>(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange x)>;

/// One op on all of `x`.
Build opOf(runtime::OpId op, const runtime::Attrs &attrs);
/// `build` where the arguments of `set` have one more axis in front, and so have its results.
Build batched(const Build &build, const std::vector<bool> &set);
/// The gradients of `build` by its first `numOperands` arguments where these are floats; the cotangent is the last one.
Build gradients(const Build &build, size_t numOperands);
/// The tangent of `build`, its float operands moving by the arguments behind the first `numOperands`.
Build tangents(const Build &build, size_t numOperands);

struct Function {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
};

/// `build` on arguments of these types, as @f; nothing after an error.
std::optional<Function> makeFunction(const std::vector<runtime::TensorType> &types, const Build &build);

} // namespace wg::tests
