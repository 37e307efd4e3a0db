// Short words for the runtime's tests: make arrays, run an op by name, read the result.
#pragma once

#include "runtime/Op.h"

#include <gtest/gtest.h>

namespace wg::runtime {

template <class T> Array arr(std::initializer_list<T> values, const Shape &shape) {
  Array array = Array::empty(dtypeOf<T>, shape);
  std::copy(values.begin(), values.end(), array.data<T>());
  return array;
}
template <class T> Array vec(std::initializer_list<T> values) {
  return arr<T>(values, Shape{static_cast<int64_t>(values.size())});
}

inline Attrs attrs(std::vector<AttrValue> values) { return Attrs(std::move(values)); }

/// The one result of an op, or its failure.
inline Result<Array> run(std::string_view name, std::vector<Array> operands, Attrs attrs = {}) {
  const OpRecord *op = findOp(name);
  if (!op)
    return valueError("no op " + std::string(name));
  Array result;
  Status status = execute({op->id, std::move(attrs), operands, Where::current()}, std::span(&result, 1));
  if (!status.ok())
    return status;
  return result;
}

/// The elements; fails the test with the message if the op failed.
template <class T> std::vector<T> values(Result<Array> result) {
  if (!result.ok()) {
    ADD_FAILURE() << toString(result.failure());
    return {};
  }
  EXPECT_EQ(nameOf(result->dtype()), nameOf(dtypeOf<T>));
  const T *data = result->template data<T>();
  return std::vector<T>(data, data + result->numElements());
}

/// The message of a failure, remedy after a bar: "f32[2] and f64[2] have different dtypes | cast one of them: ...".
inline std::string message(Result<Array> result) {
  if (result.ok())
    return "no failure: " + toString(*result);
  const Failure &failure = result.failure();
  return failure.message + (failure.remedy.empty() ? "" : " | " + failure.remedy);
}

/// The result types' text, or the failure's message.
inline std::string types(std::string_view name, std::vector<TensorType> operands, Attrs attrs = {}) {
  TypeList results;
  Status status = inferTypes(findOp(name)->id, operands, attrs, results);
  if (!status.ok())
    return status.failure().message;
  std::string text;
  for (int i = 0; i < results.count; ++i)
    text += (i ? ", " : "") + toString(results[static_cast<size_t>(i)]);
  return text;
}

} // namespace wg::runtime
