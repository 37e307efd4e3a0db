// safetensors: named arrays in one file. A u64 length, a JSON header {name: {dtype, shape, data_offsets}}, the
// elements.
#pragma once

#include "runtime/Array.h"
#include "runtime/Status.h"

#include <map>
#include <utility>
#include <vector>

namespace wg::runtime {

struct NamedArrays {
  std::vector<std::pair<std::string, Array>> arrays;
  std::map<std::string, std::string> metadata; ///< free text, `__metadata__` in the file
  std::map<std::string, std::string> unread;   ///< tensors of other dtypes, which are left out: name -> dtype
};

/// All arrays, in the order of their bytes. Everything that the header says is checked against the file before anything
/// is allocated: its length, each dtype and shape against its bytes, and that the arrays cover the rest of the file
/// without overlap, gap or bytes left over. Bool bytes become 0 or 1. Arrays of a dtype that is not ours are `unread`.
Result<NamedArrays> readSafetensors(const std::string &path);

/// Writes through a temporary name, widest dtypes first so that each array is aligned to its elements. Names are
/// distinct, valid UTF-8, and not `__metadata__`.
Status writeSafetensors(const std::string &path, const NamedArrays &contents);

} // namespace wg::runtime
