// What an eager tape holds as a program, for a tape that leaves the process.
#pragma once

#include "frontend/staging/Function.h"

namespace wg::detail {

/// A function of what no record makes, which returns all that records make, in their order; the slot of each argument.
/// What was called is declared as `call0`, `call1`, ...
struct WrittenTape {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string entry;
  std::vector<int32_t> leaves;
};
WrittenTape writeTape(const EagerTape &tape, const Where &where);

/// A rule of C++ on an eager tape, traced for the tensors of its record: its vjp, and its jvp if it has one.
struct TracedRuleFunctions {
  std::shared_ptr<ConcreteState> vjp, jvp;
};
TracedRuleFunctions traceRuleOf(const EagerTape &tape, const Record &record, const GradientRule &rule);

} // namespace wg::detail
