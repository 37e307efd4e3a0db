// Which kernels are one: those that compute the same.
#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/DenseMapInfo.h"

namespace wg::codegen {

/// Kernels are equal that compute the same, whatever values they read and wherever they were written.
struct SameContent : llvm::DenseMapInfo<mlir::Operation *> {
  static unsigned getHashValue(mlir::Operation *kernel) {
    llvm::hash_code hash = kernel->hashProperties();
    llvm::DenseMap<mlir::Value, unsigned> numbers;
    auto number = [&](mlir::ValueRange values) {
      for (mlir::Value value : values) {
        unsigned next = static_cast<unsigned>(numbers.size());
        numbers[value] = next;
        hash = llvm::hash_combine(hash, value.getType());
      }
    };
    mlir::Block &body = kernel->getRegion(0).front();
    number(body.getArguments());
    for (mlir::Operation &op : body) {
      hash = llvm::hash_combine(hash, op.getName(), op.hashProperties());
      for (mlir::Value operand : op.getOperands())
        hash = llvm::hash_combine(hash, numbers.lookup(operand));
      number(op.getResults());
    }
    return static_cast<unsigned>(static_cast<size_t>(hash));
  }
  static bool isEqual(mlir::Operation *a, mlir::Operation *b) {
    if (a == b)
      return true;
    if (a == getEmptyKey() || a == getTombstoneKey() || b == getEmptyKey() || b == getTombstoneKey())
      return false;
    return a->getName().compareOpProperties(a->getPropertiesStorage(), b->getPropertiesStorage()) &&
           a->getDiscardableAttrDictionary() == b->getDiscardableAttrDictionary() &&
           mlir::OperationEquivalence::isRegionEquivalentTo(&a->getRegion(0), &b->getRegion(0),
                                                            mlir::OperationEquivalence::IgnoreLocations);
  }
};

} // namespace wg::codegen
