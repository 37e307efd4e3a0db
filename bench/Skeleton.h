// A function with many small products, of 28 parameters: a hand of 22 bones, each turned against its parent, and the
// distances of 500 vertices from where they should be (1,600 results). What Jacobians are measured on.
#pragma once

#include <wengert/wengert.h>

#include <initializer_list>
#include <vector>

namespace bench {

using namespace wg;

inline Tensor numbers(std::initializer_list<int64_t> shape, double scale = 1) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return scale * sin(reshape(arange(0, count, 1, f64) * 1.7, Shape(std::vector<int64_t>(shape))));
}

/// The rotation by an angle about axis 0, 1 or 2, as a matrix [4, 4].
inline Tensor rotation(const Tensor &angle, int axis) {
  static const Tensor identity = eye(4, {}, f64);
  auto unit = [](int64_t i, int64_t j) {
    std::vector<double> elements(16, 0.0);
    elements[static_cast<size_t>(4 * i + j)] = 1;
    return Tensor::from(elements, {4, 4});
  };
  static const std::vector<Tensor> planes = [&] {
    std::vector<Tensor> list;
    for (int64_t a = 0; a < 3; ++a)
      list.push_back(unit((a + 1) % 3, (a + 1) % 3) + unit((a + 2) % 3, (a + 2) % 3));
    return list;
  }();
  static const std::vector<Tensor> turns = [&] {
    std::vector<Tensor> list;
    for (int64_t a = 0; a < 3; ++a)
      list.push_back(unit((a + 2) % 3, (a + 1) % 3) - unit((a + 1) % 3, (a + 2) % 3));
    return list;
  }();
  auto i = static_cast<size_t>(axis);
  return identity + (cos(angle) - 1.0) * planes[i] + sin(angle) * turns[i];
}

/// 22 bones, each turned against its parent by one parameter of 28; the last six turn and move the whole.
inline std::vector<Tensor> bonesOf(const Tensor &parameters) {
  static const Tensor offsets = numbers({22, 4}, 0.1), last = eye(4, {}, f64)[3];
  Tensor root = matmul(matmul(rotation(parameters[22], 0), rotation(parameters[23], 1)), rotation(parameters[24], 2));
  std::vector<Tensor> bones;
  for (int64_t i = 0; i < 22; ++i) {
    Tensor turned = matmul(i % 4 == 0 ? root : bones.back(), rotation(parameters[i], static_cast<int>(i % 3)));
    bones.push_back(turned + outer(offsets[i], last));
  }
  return bones;
}

/// How far 500 vertices are from where they should be, [1500], and 100 pairs of them from one another.
inline Tensor distances(const Tensor &points, const Tensor &parameters) {
  static const Tensor wanted = numbers({3, 500}, 0.5);
  Tensor moved = points[{Slice(0, 3)}] + expand_dims(parameters[{Slice(25, 28)}], 1);
  Tensor pairs = reduce_sum(square(moved[{Slice(), Slice(0, 100)}] - moved[{Slice(), Slice(100, 200)}]), 0);
  return concat({reshape(moved - wanted, {1500}), pairs});
}

inline const Tensor &vertices() {
  static const Tensor all = concat({numbers({3, 500}), ones({1, 500}, f64)});
  return all;
}

/// Each vertex hangs on one bone, 22 or 23 on each.
inline Tensor skeleton(const Tensor &parameters) {
  std::vector<Tensor> bones = bonesOf(parameters), points;
  for (int64_t i = 0; i < 22; ++i)
    points.push_back(
        matmul(bones[static_cast<size_t>(i)], vertices()[{Slice(), Slice(i * 500 / 22, (i + 1) * 500 / 22)}]));
  return distances(concat(points, 1), parameters);
}

/// Each vertex hangs on all bones, by weights.
inline Tensor skin(const Tensor &parameters) {
  static const Tensor weights = softmax(3.0 * numbers({22, 500}), 0);
  std::vector<Tensor> bones = bonesOf(parameters);
  Tensor blended;
  for (int64_t i = 0; i < 22; ++i) {
    Tensor moved = matmul(bones[static_cast<size_t>(i)], vertices()) * weights[i];
    blended = i == 0 ? moved : blended + moved;
  }
  return distances(blended, parameters);
}

} // namespace bench
