// Programs that leave the process, and come into it: as text, in which what is of this process has a name.
#pragma once

#include "frontend/staging/Function.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace wg::detail {

/// What a program calls that is not in it: to be made before it is loaded.
struct Requirements {
  std::set<std::string> hostFunctions, cFunctions;
};

/// The text of a module: its functions without the derivatives that were made of them, calls of host functions by name.
/// An error if one of these has the name of another.
std::string programText(mlir::ModuleOp module, Requirements &requires_, const Where &where);

/// What the functions that tapes call may have together, for each set of inputs that they are differentiated by, once
/// all of their own calls are written out: as many ops are made when a tape is loaded. Saving keeps to it as well.
class TapeOps {
public:
  /// Whether `concrete`, differentiated by `asked`, fits beside those before.
  bool add(const ConcreteState &concrete, const std::vector<uint32_t> &asked);
  static constexpr int64_t kMost = int64_t(1) << 18;

private:
  std::set<std::pair<const ConcreteState *, std::vector<uint32_t>>> known_;
  int64_t ops_ = 0;
};

/// Of what a forward function computes and returns: equal ones keep the same values.
const std::string &forwardDigest(Derivative &derivative, const Where &where);

/// The module of a text that may come from anybody: a program up to the stage fused, whose host functions and C
/// functions this process has. `declares`: functions may be without a body. Throws Error that opens with `path`.
mlir::OwningOpRef<mlir::ModuleOp> loadProgram(const std::string &text, const std::string &path, bool declares,
                                              const Where &where);

} // namespace wg::detail
