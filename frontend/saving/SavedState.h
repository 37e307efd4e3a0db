// What was loaded, behind the handle.
#pragma once

#include "frontend/saving/Manifest.h"
#include "frontend/staging/Function.h"

#include <wengert/Save.h>

#include <mutex>
#include <unordered_map>

namespace wg::detail {

struct SavedState {
  std::string path;
  Manifest manifest;
  std::vector<std::shared_ptr<VariableState>> variables;
  std::vector<Tensor> values;  ///< of the variables, as they were saved
  std::vector<Tensor> current; ///< the tensors that are, or will be, the values of the variables
  std::vector<Tensor> constants;
  std::vector<std::shared_ptr<ConcreteState>> functions;
  std::vector<SavedValue> items; ///< by item: of those that are values
  std::vector<std::shared_ptr<Tape>> tapes;
  std::mutex mutex;                                           ///< guards `tapes`, which are handed over
  std::unordered_map<std::string, size_t> itemOf, variableOf; ///< by name

  /// The item of this name and kind; an error if there is none.
  const ManifestItem &item(const std::string &name, ManifestItem::Kind kind, const char *what,
                           const Where &where) const;
};

/// The tapes as they were, none of which records yet, and every value that they hold (ManifestTapes::Tape says how
/// these are numbered). Nothing is computed, but where `options` say so. `path` is the program's, for errors.
std::vector<Tensor> loadTapes(SavedState &state, mlir::ModuleOp program, const std::string &path,
                              const LoadOptions &options, const Where &where);

} // namespace wg::detail
