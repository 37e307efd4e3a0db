// A tensor as the runtime sees it: a type and a row-major, contiguous buffer.
#pragma once

#include "runtime/Buffer.h"
#include "runtime/Extent.h"
#include "runtime/Shape.h"

#include <cstring>
#include <span>
#include <string>

namespace wg::runtime {

/// Type and data. Copying shares the buffer. Row-major and contiguous, always.
struct Array {
  TensorType type;
  Buffer buffer;

  /// An uninitialised array; the shape is static. Throws std::bad_alloc where no memory holds it.
  static Array empty(DType dtype, const Shape &shape) {
    TensorType type{dtype, shape};
    return {type, Buffer::allocate(bytesToAllocate(type))};
  }
  static Array zeros(DType dtype, const Shape &shape) {
    Array array = empty(dtype, shape);
    std::memset(array.buffer.data(), 0, array.numBytes());
    return array;
  }
  /// A copy of `values`, which holds shape.numElements() elements.
  template <class T> static Array copyOf(std::span<const T> values, const Shape &shape) {
    Array array = empty(dtypeOf<T>, shape);
    std::memcpy(array.buffer.data(), values.data(), values.size_bytes());
    return array;
  }
  template <class T> static Array scalar(T value) { return copyOf(std::span<const T>(&value, 1), Shape()); }

  DType dtype() const { return type.dtype; }
  const Shape &shape() const { return type.shape; }
  int64_t numElements() const { return type.shape.numElements(); }
  size_t numBytes() const { return static_cast<size_t>(numElements()) * sizeOf(type.dtype); }
  /// The elements; T must be the type that stands for dtype().
  template <class T> T *data() const { return static_cast<T *>(buffer.data()); }
  template <class T> std::span<T> span() const { return {data<T>(), static_cast<size_t>(numElements())}; }
  /// The value of a one-element integer array, as an index operand holds it.
  int64_t asIndex() const { return dtype() == DType::i32 ? *data<int32_t>() : *data<int64_t>(); }
};

/// The value of a bf16 or f16 by its bits.
float widen(uint16_t bits, DType dtype);

/// The elements as nested brackets, `[[1, 2], [3, 4]]`; floats so that they read back exactly, long axes elided. What
/// is longer than 75 characters has a line for each row, those after the first indented.
std::string toString(const Array &array, int indent = 0);

} // namespace wg::runtime
