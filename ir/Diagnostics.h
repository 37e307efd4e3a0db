// What MLIR says of a program, as an error that a user can read.
#pragma once

#include "runtime/Failure.h"

#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace wg::ir {

/// Collects this thread's MLIR diagnostics while it lives; those of other threads pass by.
class Diagnostics {
public:
  explicit Diagnostics(mlir::MLIRContext *context);
  Diagnostics(const Diagnostics &) = delete;
  ~Diagnostics();
  /// The first error: its op, its message, the place that it names, and its notes `try: ...` as the remedy. If there
  /// was none, `otherwise`, an internal error.
  runtime::Failure take(const char *otherwise);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace wg::ir
