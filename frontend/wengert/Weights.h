// Weights in files: safetensors, one file or shards with an index, written to temporary names, synced, and renamed, so
// that a crash leaves the old weights or the new ones.
//
// Paths for reading name a file, an index `model.safetensors.index.json`, a directory with one index, or a file that is
// not there but for its index. F64, F32, BF16, F16, I64, I32, U8 and BOOL are read. Inside a traced function all of
// them are errors.
#pragma once

#include <wengert/WeightMapping.h>

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace wg {

struct SaveWeightsOptions {
  /// Where the tensors have more bytes, shards of at most that (a larger tensor has one for itself) and the index, as
  /// Hugging Face's libraries write them; what an earlier save of the same path leaves over is removed. 0: one file.
  int64_t max_shard_bytes = 0;
  std::map<std::string, std::string> metadata = {}; ///< free text: `{"format", "pt"}`
  /// All ranks of a program call it, with the same variables or tensors in the same state, the same options, and a path
  /// in a directory that all see: each writes shards of its own, also where max_shard_bytes is 0, and the first the
  /// index. Who reads them needs no ranks, or may have any number. As of SaveOptions::over_ranks, values are not
  /// compared, and after an error what was there before is there.
  bool over_ranks = false;
};

/// Writes the variables under their names. Errors: the file cannot be written; two equal names; a negative size.
WENGERT_API void save_weights(const std::string &path, const std::vector<nn::Module::Named> &variables,
                              const SaveWeightsOptions &options = {}, Where where = Where::current());
inline void save_weights(const std::string &path, const nn::Module &module, const SaveWeightsOptions &options = {},
                         Where where = Where::current()) {
  save_weights(path, module.named_variables(), options, where);
}

struct LoadWeightsOptions {
  bool partial = false; ///< what is there with the right type is assigned; the report says what was not
  WeightMapping mapping = {};
};

/// Which variables were assigned and which were not, by name and in the order in which they were asked for, and which
/// of the file's tensors were not used.
struct RestoreReport {
  /// A value of another type than the variable's.
  struct Mismatch {
    std::string name;
    TensorType program;
    std::optional<TensorType> file = {}; ///< of the value that was made; none for a dtype that is not ours
    std::string found = {};              ///< `f32[2,3]`, `F8_E4M3[2]`; or why the mapping makes nothing of it
  };
  std::vector<std::string> matched, missing; ///< assigned; not in the file
  std::vector<std::string> unused;           ///< in the file, and not asked for, in its order
  std::vector<Mismatch> mismatched;
  /// All that was asked for is assigned.
  bool complete() const { return missing.empty() && mismatched.empty(); }
};
/// A few lines: how many were restored, and the names of those that were not; of many names the first.
WENGERT_API std::string to_string(const RestoreReport &report);
WENGERT_API std::ostream &operator<<(std::ostream &out, const RestoreReport &report);

/// Assigns to each variable the tensor of its name, or what the mapping makes. Nothing is assigned unless all of it is
/// there with the variable's dtype and shape; the error names the first that is not. With `partial`, what is there is
/// assigned, all of it or, after an error, nothing. Tensors that no variable asks for are not read.
/// Errors: the file cannot be read; a rule of the mapping with more stars in `theirs` than in `ours`.
WENGERT_API RestoreReport load_weights(const std::string &path, const std::vector<nn::Module::Named> &variables,
                                       const LoadWeightsOptions &options = {}, Where where = Where::current());
inline RestoreReport load_weights(const std::string &path, const nn::Module &module,
                                  const LoadWeightsOptions &options = {}, Where where = Where::current()) {
  return load_weights(path, module.named_variables(), options, where);
}

/// What a file or its shards hold.
struct Safetensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> unread; ///< tensors whose dtypes are not ours: `{"scale", "F8_E4M3[2]"}`
};
/// Errors: the file cannot be read, or is damaged.
WENGERT_API Safetensors read_safetensors(const std::string &path, Where where = Where::current());
/// Errors: the file cannot be written; a symbolic tensor; a name that is not UTF-8.
WENGERT_API void write_safetensors(const std::string &path, const std::map<std::string, Tensor> &tensors,
                                   const SaveWeightsOptions &options = {}, Where where = Where::current());

} // namespace wg
