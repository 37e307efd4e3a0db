#include "runtime/Differences.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace wg::runtime {

Difference differentiate(const std::function<double(double)> &f, double step) {
  constexpr int halvings = 18;
  Difference best{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
  std::vector<double> before, row; // row i: the difference at step / 2^i, then extrapolated ever further
  for (int i = 0; i < halvings; ++i, step /= 2) {
    double above = f(step), below = f(-step);
    // What rounding alone can make of the difference.
    double rounding = std::numeric_limits<double>::epsilon() * (std::fabs(above) + std::fabs(below)) / (2 * step);
    row.assign(1, (above - below) / (2 * step));
    double factor = 4; // the error of a central difference falls with the square of the step
    for (size_t j = 0; j < before.size(); ++j, factor *= 4) {
      row.push_back((row[j] * factor - before[j]) / (factor - 1));
      double error = std::max(std::fabs(row[j + 1] - row[j]), std::fabs(row[j + 1] - before[j])) + rounding;
      if (error < best.error) // false of a NaN
        best = {row[j + 1], error};
    }
    before.swap(row);
  }
  return best;
}

} // namespace wg::runtime
