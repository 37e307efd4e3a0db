// Weights in one safetensors file, or in several with an index, as Hugging Face's libraries write them:
// `model.safetensors.index.json` holds {"metadata": {"total_size": bytes}, "weight_map": {name: file}}.
#pragma once

#include "runtime/comm/Together.h"
#include "runtime/io/Safetensors.h"

namespace wg::runtime {

/// The tensors of a file or of an index's shards, open and not read.
class StoredTensors {
public:
  /// A path of a safetensors file, of an index (`.index.json`), of a directory that holds exactly one index; or of a
  /// file that is not there, whose index is. The index names files of its own directory, in which links are followed; a
  /// shard holds the tensors that the index says, and no others. What is opened was saved at once, also while others
  /// are being saved.
  static Result<StoredTensors> open(const std::string &path);
  /// The file's, or the index's.
  const std::string &path() const { return path_; }
  const std::vector<StoredTensor> &tensors() const { return tensors_; }
  const std::map<std::string, std::string> &metadata() const { return metadata_; }
  Result<Array> read(const StoredTensor &tensor) const { return readStored(files_[tensor.file], tensor); }
  /// Rows [begin, end) of its first axis, which has them.
  Result<Array> readRows(const StoredTensor &tensor, int64_t begin, int64_t end) const {
    return readStored(files_[tensor.file], rowsOf(tensor, begin, end));
  }

private:
  explicit StoredTensors(std::string path) : path_(std::move(path)) {}
  Status add(InputFile file);
  Status addShards(const InputFile &index);
  std::string path_;
  std::vector<InputFile> files_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Writes `NAME.safetensors` if the arrays have at most `most` bytes, else shards of at most that, but for one array
/// that alone has more, and the index `NAME.safetensors.index.json` that names them, which is renamed last: the weights
/// are the old ones or the new ones whenever the process is killed. Shards are named `NAME-00001-of-00002.safetensors`,
/// or `NAME-2-00001-of-00002.safetensors` where there are such. What an earlier call has written for the same path and
/// the new weights do not need is removed then. Of ranks, which have the same arrays and have begun together,
/// each writes a shard at least, if there are as many arrays, and the first the index; all see the directory.
Status writeShards(const std::string &path, const NamedArrays &contents, uint64_t most,
                   const Together &together = Together());

} // namespace wg::runtime
