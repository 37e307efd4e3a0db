// Arrays in files as NumPy reads and writes them: .npy, one array, and .npz, a zip archive of named ones.
//
// f64, f32, f16, i64, i32, u8 and bool; NumPy has no bf16. Files are written to a temporary name, synced and renamed:
// after a failure the old file is as it was. What is read is checked against the file's size before memory is taken.
// Inside a traced function all four are errors.
#pragma once

#include <wengert/Variable.h>

#include <map>
#include <string>

namespace wg {

/// As `numpy.save`. Errors: the file cannot be written; a bf16 or symbolic tensor.
WENGERT_API void save_npy(const std::string &path, const Tensor &x, Where where = Where::current());
/// The array of a .npy file, in row-major order whatever the file has. Errors: no such file,
/// another dtype, a damaged file.
WENGERT_API Tensor load_npy(const std::string &path, Where where = Where::current());

/// As `numpy.savez(path, **tensors)`: entries `NAME.npy`, not compressed. `save_npz("a.npz", {{"x", x}, {"y", y}})`.
/// Errors: those of save_npy; a name that is not UTF-8, has a NUL, or more than 65,000 bytes.
WENGERT_API void save_npz(const std::string &path, const std::map<std::string, Tensor> &tensors,
                          Where where = Where::current());
/// The arrays of a file of `numpy.savez` or `numpy.savez_compressed`, by their names without `.npy`. Errors: those of
/// load_npy; entries that are no .npy file, that are encrypted, packed otherwise than by deflate, overlap, or differ
/// from their checksum; two equal names.
WENGERT_API std::map<std::string, Tensor> load_npz(const std::string &path, Where where = Where::current());

} // namespace wg
