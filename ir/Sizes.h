// Where a size comes from: the steps by which wg.dim finds an earlier value of the same size, and, over a whole
// program, the argument and the axis behind a `?`, for errors that speak of the call.
#pragma once

#include "ir/Dialect.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <string>

namespace wg::ir {

/// An axis of a tensor, or, with axis -1, a value of type index.
struct SizeSource {
  mlir::Value value;
  int64_t axis = -1;
};
/// One step back from the dynamic size of `axis` of x: an equal size of an operand of the op that makes
/// x; nothing where there is none.
std::optional<SizeSource> sizeSource(mlir::Value x, int64_t axis);

/// The sizes that a program leaves open, and which argument each comes from. Filled in program order, with the types
/// that the program has; what is asked of it later may have had its types changed.
class OpenSizes {
public:
  struct Origin {
    int64_t argument = -1; ///< -1: it is computed
    int64_t axis = -1;     ///< -1: the argument is itself a size
  };

  /// x is argument `number`.
  void argument(mlir::Value x, int64_t number);
  /// `inner`, of the callee or kernel, is `outer`; a size that is open in `inner` only has no origin.
  void enter(mlir::Value inner, mlir::Value outer);
  /// The results of an op that is neither a call nor a kernel.
  void results(mlir::Operation *op);
  /// Whether the size was `?`, and where it came from.
  std::optional<Origin> of(mlir::Value x, int64_t axis) const;

private:
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, Origin> origins_;
};

/// `argument 1 has size 3 on axis 0`; `names` are those of the arguments where they have other ones.
std::string describe(OpenSizes::Origin origin, int64_t size, llvm::ArrayRef<std::string> names = {});
/// What is wrong where a size that was `?` is 1 and the program needs another, which may be `?`, at `place`
/// (may be empty); and what to do.
std::string repeatsOpenSize(OpenSizes::Origin origin, int64_t needed, const std::string &place,
                            llvm::ArrayRef<std::string> names = {});
inline constexpr llvm::StringLiteral kRepeatRemedy =
    "pass the full size, or write the size 1 in the types of the arguments: only a static 1 is repeated";

} // namespace wg::ir
