// What tests compute with arrays: inner products, directions, and the lanes of a batched program.
#pragma once

#include "tests/Samples.h"

#include <cstring>
#include <vector>

namespace wg::tests {

/// Of f64 arrays.
inline double dot(const runtime::Array &a, const runtime::Array &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numElements(); ++i)
    sum += a.data<double>()[i] * b.data<double>()[i];
  return sum;
}

/// Floats of this type, uniform in [-1, 1): a function of seed and position.
inline runtime::Array direction(const runtime::TensorType &type, int64_t seed, int64_t position) {
  runtime::Array v = runtime::Array::empty(type.dtype, type.shape);
  for (int64_t i = 0; i < v.numElements(); ++i)
    detail::store(v, i, 2 * runtime::randomUniform<double>(seed, position, i) - 1);
  return v;
}

/// Arrays of this type one after the other, along one more axis in front.
inline runtime::Array stacked(const runtime::TensorType &type, const std::vector<runtime::Array> &lanes) {
  runtime::Shape shape{static_cast<int64_t>(lanes.size())};
  for (int64_t size : type.shape)
    shape.push_back(size);
  runtime::Array all = runtime::Array::empty(type.dtype, shape);
  for (size_t i = 0; i < lanes.size(); ++i)
    if (size_t bytes = lanes[i].numBytes())
      std::memcpy(all.data<char>() + i * bytes, lanes[i].data<char>(), bytes);
  return all;
}

/// Lane i of an array with one more axis in front.
inline runtime::Array laneOf(const runtime::Array &all, int64_t i) {
  runtime::Shape shape;
  for (size_t axis = 1; axis < all.shape().size(); ++axis)
    shape.push_back(all.shape()[axis]);
  runtime::Array lane = runtime::Array::empty(all.dtype(), shape);
  if (size_t bytes = lane.numBytes())
    std::memcpy(lane.data<char>(), all.data<char>() + static_cast<size_t>(i) * bytes, bytes);
  return lane;
}

/// Other data of the same type: floats are moved a little, elements of other dtypes change places, so that an index
/// stays one.
inline runtime::Array varied(const runtime::Array &x, int64_t lane) {
  runtime::Array y = runtime::Array::empty(x.dtype(), x.shape());
  int64_t n = x.numElements();
  size_t size = runtime::sizeOf(x.dtype());
  for (int64_t i = 0; i < n; ++i) {
    if (x.dtype() == runtime::DType::f64)
      y.data<double>()[i] = x.data<double>()[i] * (1 + 0.01 * static_cast<double>(lane));
    else if (x.dtype() == runtime::DType::f32)
      y.data<float>()[i] = x.data<float>()[i] * (1 + 0.01f * static_cast<float>(lane));
    else
      std::memcpy(y.data<char>() + static_cast<size_t>(i) * size,
                  x.data<char>() + static_cast<size_t>((i + lane) % n) * size, size);
  }
  return y;
}

/// Arrays of which those of `set` have `count` lanes of different data, and those of each lane.
struct Lanes {
  Lanes(const std::vector<runtime::Array> &x, const std::vector<bool> &set, size_t count = 3)
      : together(x), each(count, x) {
    for (size_t k = 0; k < x.size(); ++k) {
      if (!set[k])
        continue;
      std::vector<runtime::Array> lanes;
      for (size_t i = 0; i < count; ++i)
        lanes.push_back(each[i][k] = varied(x[k], static_cast<int64_t>(i)));
      together[k] = stacked(x[k].type, lanes);
    }
  }
  std::vector<runtime::Array> together;
  std::vector<std::vector<runtime::Array>> each;
};

} // namespace wg::tests
