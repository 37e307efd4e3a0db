// Programs of a few ops, built through the bridge and evaluated op by op: enough to test one op's rules without the
// rooms to the right.
#pragma once

#include "ir/Bridge.h"
#include "tests/Samples.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/DenseMap.h"

#include <gtest/gtest.h>

namespace wg::tests {

/// A block with one argument for each array; ops are appended and run.
class Program {
public:
  explicit Program(const std::vector<runtime::Array> &inputs, bool dynamic = false) : b(ir::context()) {
    module = mlir::ModuleOp::create(b.getUnknownLoc());
    b.setInsertionPointToEnd(module.getBody());
    std::vector<mlir::Type> types;
    for (const runtime::Array &input : inputs) {
      runtime::TensorType type = input.type;
      for (int64_t &size : type.shape)
        size = dynamic ? runtime::kDynamic : size;
      types.push_back(ir::tensorTypeOf(b.getContext(), type));
    }
    auto function = mlir::func::FuncOp::create(b, b.getUnknownLoc(), "f", b.getFunctionType(types, {}));
    block = function.addEntryBlock();
    b.setInsertionPointToEnd(block);
    for (auto [argument, input] : llvm::zip_equal(block->getArguments(), inputs))
      values[argument] = input;
  }
  ~Program() { module->erase(); }

  /// Runs what was appended, in order; false (and a test failure) if an op fails.
  bool run() {
    for (mlir::Operation &op : *block) {
      if (op.getNumResults() == 0 || values.contains(op.getResult(0)))
        continue;
      if (mlir::failed(mlir::verify(&op)))
        return ADD_FAILURE() << "does not verify", false;
      std::vector<runtime::Array> operands;
      for (mlir::Value operand : op.getOperands())
        operands.push_back(values[operand]);
      runtime::Array result;
      runtime::Status status =
          runtime::execute({*ir::opIdOf(&op), ir::attrsOf(&op), operands, {}}, std::span(&result, 1));
      if (!status.ok())
        return ADD_FAILURE() << runtime::toString(status.failure()), false;
      values[op.getResult(0)] = result;
    }
    return true;
  }

  mlir::OpBuilder b;
  mlir::ModuleOp module;
  mlir::Block *block = nullptr;
  llvm::DenseMap<mlir::Value, runtime::Array> values;
};

} // namespace wg::tests
