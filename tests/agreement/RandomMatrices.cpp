// What a random program is made of: factorisations and equations, of matrices whose factors a rounding moves by no more
// than a rounding.
#include "tests/agreement/RandomGenerator.h"

namespace wg::tests {

using namespace runtime;

/// 1 on the main diagonals of the last two axes, or with `apart` 1, 2, 3 ...; 0 elsewhere.
Generator::Maybe Generator::diagonal(const TensorType &type, bool apart) {
  int64_t columns = static_cast<int64_t>(type.shape.size()) - 1;
  auto coordinate = [&](int64_t axis, DType dtype) {
    return step(OpId::iota, IotaAttrs::make(type.shape, axis, dtype), {}, true);
  };
  int place = coordinate(columns, type.dtype), ones = fill(place, 1);
  return step(OpId::select, Attrs(),
              {step(OpId::equal, {coordinate(columns - 1, DType::i64), coordinate(columns, DType::i64)}),
               apart ? step(OpId::add, Attrs(), {place, ones}, true) : ones, fill(place, 0)},
              true);
}

/// That diagonal, and beside it numbers whose sum along a row or column is below `spread`. With a spread below 1/2 the
/// diagonal dominates: such a matrix is regular, its symmetric part positive. With `apart` and a spread of 0.15, values
/// are 0.7 apart and their vectors near the unit vectors (Weyl; Davis and Kahan), so that no sign is in doubt.
Generator::Maybe Generator::nearDiagonal(const TensorType &type, double spread, bool apart) {
  int64_t m = type.shape[type.shape.size() - 2], n = type.shape[type.shape.size() - 1];
  int x = ofType(type);
  int beside =
      step(OpId::mul, {step(OpId::sin, {x}), fill(x, spread / static_cast<double>(std::max({m, n, int64_t(1)})))});
  return step(OpId::add, {beside, diagonal(type, apart)});
}

/// A few matrices.
TensorType Generator::matrixType(bool square) {
  TensorType type{options_.dtype, {}};
  for (int64_t batch = chance(0.5) ? 0 : 1 + below(2); batch > 0; --batch)
    type.shape.push_back(std::min<int64_t>(size(), 4));
  auto side = [&] {
    return options_.empty && chance(0.2)   ? 0
           : options_.large && chance(0.4) ? 20 + below(60) // more than a block
                                           : 1 + below(chance(0.2) ? 12 : 5);
  };
  int64_t m = side();
  type.shape.push_back(m);
  type.shape.push_back(square || chance(0.4) ? m : side());
  return type;
}

Generator::Maybe Generator::matrix() {
  switch (below(7)) {
  case 0: return step(OpId::cholesky, {nearDiagonal(matrixType(true), 0.45)});
  case 1:
  case 2: {
    TensorType type = matrixType(true);
    int a = nearDiagonal(type, 0.45, chance(0.3));
    if (chance(0.5)) // so that rows change places
      a = step(OpId::reverse, ReverseAttrs::make(Ints{static_cast<int64_t>(type.shape.size()) - 2}), {a});
    int lu = step(OpId::lu, LuAttrs::make(chance(0.5)), {a});
    if (chance(0.4))
      return lu;
    type.shape[type.shape.size() - 1] = chance(0.3) ? 1 : size();
    return step(OpId::lu_solve, LuSolveAttrs::make(chance(0.5)), {a, lu, ofType(type)});
  }
  case 3: {
    TensorType type = matrixType(false);
    bool wide =
        type.shape[type.shape.size() - 2] <= type.shape[type.shape.size() - 1]; // else a complete q has no derivative
    return step(OpId::qr, QrAttrs::make(wide && chance(0.5)), {nearDiagonal(type, 0.45)});
  }
  case 4: return step(OpId::eigh, EighAttrs::make(chance(0.6)), {nearDiagonal(matrixType(true), 0.15, true)});
  case 5: return step(OpId::svd, SvdAttrs::make(chance(0.6)), {nearDiagonal(matrixType(false), 0.15, true)});
  default: return step(OpId::pinv, PinvAttrs::make(-1), {nearDiagonal(matrixType(false), 0.3, chance(0.5))});
  }
}

} // namespace wg::tests
