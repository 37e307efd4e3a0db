// IDX, the format of MNIST: a big-endian header (two zero bytes, element type, rank, one
// u32 a size), then the elements.
#pragma once

#include "runtime/Array.h"
#include "runtime/Status.h"

namespace wg::runtime {

/// The array in an IDX file, which may be gzip-compressed. u8, i32, f32 and f64 as they are; i8 and i16 become i32. A
/// file that is truncated, has bytes left over or does not hold what its header says is a Failure that says so. Memory
/// grows with what is read, never by what a header promises.
Result<Array> readIdx(const std::string &path);

} // namespace wg::runtime
