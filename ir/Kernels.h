// What is decided about kernels, and where the values of one live in its iteration space.
#pragma once

#include "ir/Dialect.h"

#include "llvm/ADT/DenseMap.h"

namespace wg::ir {

/// Where a value of a kernel's body lives.
enum class Space : uint8_t {
  uniform, ///< one element for the whole kernel, while the kernel's own space has more
  row,     ///< the axes that are not summed: of a reduce kernel, or of a product
  full,    ///< the whole iteration space
};

/// The places of a kernel's values in its iteration space: a value of the whole space lies at (d0, d1, ...), one of the
/// rows at the kept axes, one of a single element at 0. The one place where shapes are compared with it.
class Places {
public:
  /// Of a kernel that has its `loops`, and is not of kind single.
  explicit Places(KernelOp kernel);
  Places(llvm::ArrayRef<int64_t> space, llvm::ArrayRef<int64_t> reduced, mlir::MLIRContext *context);

  /// What is none of the three counts as uniform: only views and products read it.
  Space of(mlir::Value value) const;
  /// Coordinates of the iteration space -> coordinates of the value's element; nothing if it has none there.
  std::optional<mlir::AffineMap> find(mlir::Value value) const;
  /// The same for what counts as uniform.
  mlir::AffineMap mapOf(mlir::Value value) const;

  /// What a value shows through views, and coordinates of the iteration space -> coordinates of that.
  struct Seen {
    mlir::Value root;
    mlir::AffineMap map;
  };
  Seen trace(mlir::Value value) const;
  /// With the coordinate of each axis of size 1 written as 0.
  mlir::AffineMap simplified(mlir::AffineMap map) const;

  llvm::ArrayRef<int64_t> sizes() const { return space; }
  llvm::ArrayRef<int64_t> reducedAxes() const { return reduced; }

private:
  llvm::SmallVector<int64_t> space, reduced, kept, rowSizes;
  mlir::MLIRContext *context;
};

/// The phases of a reduce kernel: of each value, how many loops over the reduced axes must have ended before it can be
/// computed; and how many such loops there are. A loop computes again what it needs of the phases before it, from the
/// kernel's inputs, and writes the results of the whole space that are of its phase.
struct Phases {
  explicit Phases(KernelOp kernel, const Places &places);
  llvm::DenseMap<mlir::Value, int> of;
  int count = 0;
};

/// What an op in a kernel checks before it writes.
std::optional<IndexBound> checkedBound(KernelOp kernel);

/// A kernel of `function` whose indices one before it has checked cannot fail; any other whose op checks something can.
void decideWhoChecks(mlir::func::FuncOp function);

/// A sum or difference one of whose operands is a product: `x * y + z`, with signs. The product has no other reader.
struct MultiplyAdd {
  mlir::Value x, y, z;
  mlir::Value product;
  bool negateProduct = false, negateAddend = false;
};
/// `op` in each of the ways in which it is one; the product on the right comes first.
llvm::SmallVector<MultiplyAdd, 2> asMultiplyAdd(mlir::Operation *op);
/// Whether `op` is a product that nobody reads but one sum over axes.
bool isTermOfSum(mlir::Operation *op);

} // namespace wg::ir
