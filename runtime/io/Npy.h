// .npy, NumPy's format of one array: magic, version, a Python dict as text (descr, fortran_order, shape), the elements.
#pragma once

#include "runtime/Array.h"
#include "runtime/Status.h"
#include "runtime/io/File.h"

namespace wg::runtime {

/// The array in a .npy file of version 1, 2 or 3. Accepts f8 f4 f2 i8 i4 u1 b1 of either byte order; Fortran order is
/// converted; bool bytes become 0 or 1. Anything else, a size that differs from the header's and
/// bytes left over are a Failure.
Result<Array> readNpy(ByteSource &source);
Result<Array> readNpy(const InputFile &file);
Result<Array> readNpy(const std::string &path);

/// Writes version 1.0, C order, little-endian, as numpy.save does, one file an array; all of them or
/// none. NumPy has no bf16: a Failure.
Status writeNpy(std::span<const std::string> paths, std::span<const Array> arrays);
Status writeNpy(const std::string &path, const Array &array);
/// What is written before the elements; empty for a dtype that the format lacks.
std::string npyStart(const Array &array);
/// The Failure for such a dtype.
Failure npyLacks(const std::string &path, DType dtype);

} // namespace wg::runtime
