// A product as it is seen from one of its operands, for rewrites that do to either operand what they do to the other.
#pragma once

#include "ir/Dialect.h"

#include <string>

namespace wg::passes {

struct SeenProduct {
  SeenProduct(ir::ContractOp op, bool isA);

  mlir::Value x, other;
  std::string letters, ofOther, ofC;
  bool isA; ///< whether x is the first operand

  /// x's rows: places of letters that the result has, and the other operand has not.
  int64_t rows() const;
  /// The terms of each sum.
  int64_t terms() const;
  /// A letter that it does not have.
  std::string freeLetter() const;
  /// The product with other operands in their places, of such letters.
  mlir::Value with(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, const std::string &letters, mlir::Value other,
                   const std::string &ofOther, const std::string &ofC) const;

private:
  /// The sizes of x's letters that `chosen` chooses, multiplied.
  int64_t places(llvm::function_ref<bool(char)> chosen) const;
};

inline bool has(llvm::StringRef letters, char letter) { return letters.contains(letter); }

/// x, of such letters, in another order of them.
mlir::Value inOrder(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, llvm::StringRef from, llvm::StringRef to);

/// Whether all that says what it computes are its letters and sizes that are known.
bool isPlainProduct(ir::ContractOp op);

} // namespace wg::passes
