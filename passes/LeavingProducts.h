// What leaves a loop in wg-products-leave-loops (ProductsLeaveLoops.cpp says what, and why it may): found in one file,
// and written in the other.
#pragma once

#include "passes/Invariants.h"
#include "passes/SeenProduct.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <functional>
#include <optional>

namespace wg::passes {

/// Places [from, to) of an axis.
struct Range {
  size_t axis;
  int64_t from, to;
};
/// The range of a slice along one axis, without steps.
std::optional<Range> rangeOf(ir::SliceOp slice);

inline size_t axisOf(ir::ConcatOp op) { return static_cast<size_t>(static_cast<int64_t>(op.getAxis())); }
inline mlir::RankedTensorType typeOf(mlir::Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()); }

/// Slices of weights, each once, where the weights are. Those of arguments are known until another block is met, those
/// of results for one loop: what loops become, and other bodies, may not be the same values any more.
class Slices {
public:
  void begin(mlir::Block *of);
  mlir::Value of(mlir::Value weights, Range range);

private:
  using Key = std::pair<mlir::Value, std::pair<int64_t, std::pair<int64_t, int64_t>>>;
  mlir::Block *block = nullptr;
  llvm::DenseMap<Key, mlir::Value> known;
};

/// One loop, and what leaves it.
class Leave {
public:
  Leave(ir::LoopOp loop, mlir::func::FuncOp body, const mlir::SymbolTable &symbols, Slices &slices)
      : symbols(symbols), slices(slices), loop(loop), body(body), block(body.getBody().front()),
        yield(block.getTerminator()), carried(loop.getInits().size()), scanned(loop.getXs().size()),
        length(turnsOf(loop)), xs(loop.getXs()), invariants(loop.getInvariants()) {
    for (auto [argument, outer] : llvm::zip_equal(block.getArguments().slice(carried, scanned), xs))
      scannedOf[argument] = outer;
    for (auto [argument, outer] : llvm::zip_equal(block.getArguments().drop_front(carried + scanned), invariants))
      heldOf[argument] = outer;
  }

  /// Whether anything leaves.
  bool find();

  /// Writes it, into a body that nobody else runs.
  void write();

private:
  struct Sum {
    unsigned state;
    llvm::SmallVector<ir::ContractOp> products;
  };
  struct Before {
    ir::ContractOp op;
    bool isA;           ///< the operand that has the row
    ir::ConcatOp parts; ///< of which the row is one; null if it is the operand
    llvm::SmallVector<unsigned> leaving;
  };
  struct After {
    ir::ContractOp op;
    bool isA;            ///< the operand of the turn
    unsigned row;        ///< of what is stacked
    mlir::Value stacked; ///< the product, or a slice of it
    std::optional<Range> range;
  };
  struct Concat {
    unsigned row;
    ir::ConcatOp op;
  };

  // What leaves (LeavingProducts.cpp):
  bool canStack(mlir::ValueRange values) const;
  bool isNew(mlir::Value value) const;
  void stack(mlir::ValueRange values);
  llvm::SmallVector<ir::ContractOp> productsOf(unsigned i);
  void findSums();
  bool paysAsSum(ir::ContractOp op) const;
  bool hasTableRows(mlir::Value xs) const;
  bool pays(const SeenProduct &seen, bool isOfTable) const;
  void findProducts();
  void findStacked();
  static bool isSliced(ir::ContractOp op, size_t axis);
  bool isTaken(ir::ContractOp op) const;
  bool isStacked(mlir::Value value) const;
  void findConcats();

  // How it is written (ProductsLeaveLoops.cpp):
  mlir::BlockArgument addRow(mlir::Value stack);
  mlir::BlockArgument addInvariant(mlir::Value value);
  static Range placesOf(ir::ConcatOp parts, size_t axis, size_t first, size_t end);
  static Range placesIn(const SeenProduct &seen, ir::SliceOp slice);
  void stackAll();
  std::function<mlir::Value()> sourceOf(mlir::Value value);
  void leaveSum(const Sum &sum);
  void leaveAfter(const After &each);
  void leaveConcat(const Concat &each);
  void leaveBefore(const Before &each);
  void keepSlices(const After &each);
  void remake();
  void dropUnread();

  const mlir::SymbolTable &symbols;
  Slices &slices;
  ir::LoopOp loop;
  mlir::func::FuncOp body;
  mlir::Block &block;
  mlir::Operation *yield;
  unsigned carried, scanned;
  int64_t length;
  llvm::SmallVector<mlir::Value> xs, invariants;      ///< of the loop, with those that are added
  llvm::DenseMap<mlir::Value, mlir::Value> scannedOf; ///< of arguments: the tensor whose row each is
  llvm::DenseMap<mlir::Value, mlir::Value> heldOf;    ///< of arguments: what each is in every turn
  int64_t moved = 0, added = 0; ///< bytes of rows that a turn reads and gives, and of what it would stack as well
  llvm::SmallVector<Sum> sums;
  llvm::SmallVector<Before> before;
  llvm::SmallVector<After> after;
  llvm::SmallVector<Concat> concats;
  llvm::SetVector<mlir::Value> stacked; ///< that is not so far
  // While it is written:
  llvm::DenseMap<mlir::Value, unsigned> rowOf;
  llvm::SmallVector<mlir::Value> finals, stacks; ///< what is in the place of the loop's results, and stacks beside them
  llvm::BitVector isLeaving, isGone;             ///< states, rows
  llvm::SmallVector<std::function<void(mlir::OpBuilder &)>> later;
};

} // namespace wg::passes
