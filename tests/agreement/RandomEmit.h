// Random programs as IR, with their derivatives.
#pragma once

#include "tests/agreement/RandomProgram.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>

namespace wg::tests {

/// What a function returns.
enum class Wanted {
  values,          ///< the program's outputs
  gradients,       ///< these, then the gradients of the sum of the float outputs by the float inputs
  secondGradients, ///< the gradients of <gradients, directions>, the directions being more arguments
  modeSums,        ///< numbers that tell modes apart: kModes sums, then the sums of the magnitudes of their terms
  modes,           ///< the outputs, then the derivatives in each mode as they are
};

/// The modes: the derivative along v of the sum of the float outputs, and the derivative of that along u, by either
/// mode over either. v and u are more arguments, one of each for each float input.
inline constexpr const char *kModes[] = {"reverse",
                                         "forward",
                                         "reverse over reverse",
                                         "forward over reverse",
                                         "reverse over forward",
                                         "forward over forward"};

/// A program as the function `f`.
struct Emitted {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<size_t> sources = {};      ///< the float inputs that have a gradient, by place
  std::vector<size_t> values = {};       ///< which results are the loss's terms
  size_t firstGradient = 0;              ///< place of the first gradient among the results
  std::vector<size_t> twice = {};        ///< of `sources`: those with a second gradient
  std::vector<std::string> results = {}; ///< what each result is, with Wanted::modes
};

/// A program with sizes that are not known: the axes of this size of the inputs are `?`, and what follows from them.
class Opened {
public:
  Opened(const RandomProgram &program, int64_t size) : program(program), size(size) {}

  runtime::TensorType typeOfInput(int input) const;
  bool opens(int input) const { return typeOfInput(input).shape.contains(runtime::kDynamic); }

  /// The attributes of a step for operands of these types; sizes that are not known are operands too. Nothing where a
  /// `?` that is 1 would have to be repeated, which only a size that is known to be 1 is.
  std::optional<std::pair<runtime::Attrs, llvm::SmallVector<mlir::Value>>> step(mlir::OpBuilder &b, mlir::Location loc,
                                                                                const RandomProgram::Step &step,
                                                                                llvm::SmallVector<mlir::Value> operands,
                                                                                mlir::Block *body) const;

private:
  const RandomProgram &program;
  int64_t size;
};

/// With `called`, `f` calls the program, which is another function.
Emitted emit(const RandomProgram &program, Wanted wanted, bool called = false);
/// Nothing where an op refuses sizes that are not known.
std::optional<Emitted> emit(const RandomProgram &program, Wanted wanted, const Opened &opened);

std::string textOf(mlir::ModuleOp module);

} // namespace wg::tests
