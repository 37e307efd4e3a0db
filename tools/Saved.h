// Saved computations (docs/saving.md), as commands read them: the manifest alone, which says all of what there is, or
// loaded.
#pragma once

#include "frontend/saving/SavedState.h"
#include "runtime/io/Package.h"

namespace wg::tools {

struct SavedFile {
  runtime::Package package;
  detail::Manifest manifest;
};
/// Reads the manifest. Throws wg::Error.
SavedFile openSaved(const std::string &path);
/// Each file that the manifest names, once.
std::vector<const detail::ManifestPart *> partsOf(const detail::Manifest &manifest);

/// `step(arg0: f32[64,784]) -> (f32[])`
std::string signatureOf(const detail::ManifestItem &item, const detail::ManifestFunction &function);

/// One concrete function of a saved function.
struct SavedTrace {
  std::shared_ptr<detail::ConcreteState> concrete;
  int64_t number = 0;                            ///< from 1, in the order in which they were saved
  uint32_t function = 0;                         ///< of the manifest
  std::vector<runtime::TensorType> tensors = {}; ///< its tensor arguments
  bool takesVariables = false;                   ///< among its arguments
};
/// A saved function, loaded with all that it belongs to.
struct SavedFunction {
  std::string name;
  Saved saved;
  SavedFile file;
  std::vector<SavedTrace> traces;
  /// Its traces, numbered, one a line; each line begins with a newline.
  std::string list() const;
  /// The trace of this number. Throws wg::Error.
  const SavedTrace &trace(int64_t number) const;
};
/// Loads the function `name`, or the only one if that is empty. Throws wg::Error: also where it needs functions of the
/// program that saved it, which are named.
SavedFunction loadFunction(const std::string &path, const std::string &name);

/// The trace with static sizes: those that `types` (`f32[8,3];f32[3]`), one for each of its tensor arguments, give it.
SavedTrace withTypes(const SavedTrace &trace, const std::string &types);
/// Throws wg::Error if it has open sizes.
void requireSizes(const SavedTrace &trace);
/// The same trace, interpreted.
SavedTrace interpreted(const SavedTrace &trace);

/// `wengert run` of a saved function.
struct SavedCall {
  std::string path, function, save;
  int64_t trace = 0; ///< 0: the one that takes the arrays
  std::vector<std::string> in, out;
  bool interpret = false;
};
int runSaved(const SavedCall &call);

} // namespace wg::tools
