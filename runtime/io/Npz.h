// .npz, NumPy's format of named arrays: a zip archive of .npy files, `NAME.npy` each, stored or packed by deflate.
#pragma once

#include "runtime/Array.h"
#include "runtime/Status.h"

#include <string>
#include <utility>
#include <vector>

namespace wg::runtime {

/// The arrays by their names without `.npy`, in the order of the archive's directory. Everything that the directory and
/// the entries' headers say is checked against the file before an array is allocated: places, sizes, that entries do
/// not overlap and that no size is beyond what deflate can pack. Entries that are no .npy file, encrypted or packed
/// otherwise, two equal names, a checksum that differs: a Failure.
Result<std::vector<std::pair<std::string, Array>>> readNpz(const std::string &path);

/// Writes the arrays without packing them, all or nothing. Names are distinct UTF-8 without NUL; zip64 is written where
/// it is needed. bf16, which NumPy lacks, is a Failure.
Status writeNpz(const std::string &path, const std::vector<std::pair<std::string, Array>> &arrays);

} // namespace wg::runtime
