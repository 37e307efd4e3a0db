// Weights in files: safetensors, written to a temporary name, synced, and renamed, so that a crash leaves the old file.
#pragma once

#include <wengert/nn/Module.h>

#include <iosfwd>
#include <string>
#include <vector>

namespace wg {

/// What a restore found, by names: `matched` took their values, `missing` are in the program and not in the file,
/// `unused` in the file and not in the program.
struct RestoreReport {
  struct Mismatch {
    std::string name;
    TensorType file, program;
  };
  std::vector<std::string> matched, missing, unused;
  std::vector<Mismatch> mismatched; ///< of another dtype or shape
  /// Everything that was asked for was there.
  bool complete() const { return missing.empty() && mismatched.empty(); }
};
WENGERT_API std::string to_string(const RestoreReport &report);
WENGERT_API std::ostream &operator<<(std::ostream &out, const RestoreReport &report);

/// Writes the variables under their names. Errors: the file cannot be written; two equal names.
WENGERT_API void save_weights(const std::string &path, const std::vector<nn::Module::Named> &variables,
                              Where where = Where::current());
inline void save_weights(const std::string &path, const nn::Module &module, Where where = Where::current()) {
  save_weights(path, module.named_variables(), where);
}

/// Assigns to each variable the tensor of its name. Nothing is assigned unless every name is there with the variable's
/// dtype and shape; the error names the first that is not. Tensors that no variable asks for are ignored.
WENGERT_API void load_weights(const std::string &path, const std::vector<nn::Module::Named> &variables,
                              Where where = Where::current());
inline void load_weights(const std::string &path, const nn::Module &module, Where where = Where::current()) {
  load_weights(path, module.named_variables(), where);
}

} // namespace wg
