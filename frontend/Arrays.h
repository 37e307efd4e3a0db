// Between tensors and the runtime's arrays, for readers and writers of files. Copies.
#pragma once

#include "wengert/Tensor.h"

#include "runtime/Array.h"

namespace wg::detail {

/// `f(T())` with the C++ type of a dtype; false for a dtype that has none.
template <class F> bool withElement(DType dtype, F &&f) {
  switch (dtype) {
  case DType::f64: return f(double()), true;
  case DType::f32: return f(float()), true;
  case DType::i64: return f(int64_t()), true;
  case DType::i32: return f(int32_t()), true;
  case DType::u8: return f(uint8_t()), true;
  case DType::boolean: return f(bool()), true;
  default: return false;
  }
}

inline runtime::Array arrayOf(const Tensor &tensor, const Where &where) {
  runtime::Array array;
  if (!withElement(tensor.dtype(where), [&]<class T>(T) { array = runtime::Array::copyOf(tensor.data<T>(where), tensor.shape(where)); }))
    raise(runtime::typeError("no C++ type stands for " + std::string(nameOf(tensor.dtype(where))), "cast to f32 first"), where);
  return array;
}

inline Tensor tensorOf(const runtime::Array &array, const Where &where) {
  Tensor tensor;
  if (!withElement(array.dtype(), [&]<class T>(T) { tensor = Tensor::from(std::span<const T>(array.data<T>(), static_cast<size_t>(array.numElements())), array.shape(), where); }))
    raise(runtime::typeError("no C++ type stands for " + std::string(nameOf(array.dtype()))), where);
  return tensor;
}

} // namespace wg::detail
