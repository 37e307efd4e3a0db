// safetensors: named arrays in one file. A u64 length, a JSON header {name: {dtype, shape, data_offsets}}, the
// elements.
#pragma once

#include "runtime/Array.h"
#include "runtime/io/File.h"

#include <map>
#include <utility>
#include <vector>

namespace wg::runtime {

struct NamedArrays {
  std::vector<std::pair<std::string, Array>> arrays;
  std::map<std::string, std::string> metadata; ///< free text, `__metadata__` in the file
  std::map<std::string, std::string> unread;   ///< tensors of other dtypes, which are left out: name -> dtype
};

/// A tensor as a file has it.
struct StoredTensor {
  std::string name;
  TensorType type;                        ///< where there is an `unread`, the dtype has no meaning
  std::optional<std::string> unread = {}; ///< a dtype that is not ours
  uint64_t at = 0, size = 0;              ///< its bytes in the file
  size_t file = 0;                        ///< which one, of several
};
/// `f32[2,3]`, `F8_E4M3[2]`.
std::string toString(const StoredTensor &tensor);

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors; ///< in the order of their bytes
  std::map<std::string, std::string> metadata;
};

/// What the header says. All of it is checked against the file before anything is allocated: its length, each dtype and
/// shape against its bytes, and that the tensors cover the rest of the file without overlap, gap or bytes left over.
Result<SafetensorsHeader> readHeader(const InputFile &file);
/// The elements of a tensor whose dtype is ours, read where they stay. Bool bytes become 0 or 1.
Result<Array> readStored(const InputFile &file, const StoredTensor &tensor);
/// Rows [begin, end) of its first axis, which has them.
StoredTensor rowsOf(const StoredTensor &tensor, int64_t begin, int64_t end);
/// All arrays, in the order of their bytes. Those of a dtype that is not ours are `unread`.
Result<NamedArrays> readSafetensors(const std::string &path);
/// The same of a file that is open, or of a part of one.
Result<NamedArrays> readSafetensors(const InputFile &file);

/// A file in memory: its header, then the arrays' bytes where they are.
struct SafetensorsImage {
  std::string start;
  std::vector<std::span<const std::byte>> elements;
  /// Valid as long as the image is where it is.
  std::vector<std::span<const std::byte>> pieces() const;
};
/// Widest dtypes first, so that each array is aligned to its elements. Names are distinct, valid UTF-8, and not
/// `__metadata__`; else a Failure, which names the path.
Result<SafetensorsImage> safetensorsImage(const std::string &path, const NamedArrays &contents);
/// The arrays in their order, in parts of at most `most` bytes, or of one array that has more; in `least` parts or more
/// if there are as many arrays, and of about equally many bytes.
std::vector<NamedArrays> cutArrays(const NamedArrays &contents, uint64_t most, size_t least = 1);
/// Writes it, all or nothing (writeFiles).
Status writeSafetensors(const std::string &path, const NamedArrays &contents);

/// Appends `text` as a JSON string; false if it is not valid UTF-8.
bool appendQuoted(std::string &out, std::string_view text);

} // namespace wg::runtime
