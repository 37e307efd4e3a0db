// safetensors: named arrays in one file. A u64 length, a JSON header {name: {dtype, shape, data_offsets}}, the
// elements.
#pragma once

#include "runtime/Array.h"
#include "runtime/Status.h"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace wg::runtime {

class InputFile;

struct NamedArrays {
  std::vector<std::pair<std::string, Array>> arrays;
  std::map<std::string, std::string> metadata; ///< free text, `__metadata__` in the file
  std::map<std::string, std::string> unread;   ///< tensors of other dtypes, which are left out: name -> dtype
};

/// All arrays, in the order of their bytes. Everything that the header says is checked against the file before anything
/// is allocated: its length, each dtype and shape against its bytes, and that the arrays cover the rest of the file
/// without overlap, gap or bytes left over. Bool bytes become 0 or 1. Arrays of a dtype that is not ours are `unread`.
Result<NamedArrays> readSafetensors(const std::string &path);
/// The same of a file that is open, or of a part of one.
Result<NamedArrays> readSafetensors(const InputFile &file);

/// The bytes of a file: its start, and then the elements of each array, which the arrays hold.
struct SafetensorsImage {
  std::string start;
  std::vector<std::span<const std::byte>> arrays;
  std::vector<std::span<const std::byte>> pieces() const {
    std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(start))};
    pieces.insert(pieces.end(), arrays.begin(), arrays.end());
    return pieces;
  }
};
/// What writeSafetensors writes; errors name `path`.
Result<SafetensorsImage> safetensorsImage(const std::string &path, const NamedArrays &contents);

/// Writes through a temporary name, widest dtypes first so that each array is aligned to its elements. Names are
/// distinct, valid UTF-8, and not `__metadata__`.
Status writeSafetensors(const std::string &path, const NamedArrays &contents);

} // namespace wg::runtime
