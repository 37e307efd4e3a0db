#include "runtime/Differences.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace wg::runtime {

Difference differentiate(const std::function<double(double)> &f, double step, double epsilon) {
  constexpr int halvings = 18;
  Difference best{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
  std::vector<double> before, row; // row i: the difference at step / 2^i, then extrapolated ever further
  for (int i = 0; i < halvings; ++i, step /= 2) {
    double above = f(step), below = f(-step);
    // What rounding alone can make of the difference.
    double rounding = epsilon * (std::fabs(above) + std::fabs(below)) / (2 * step);
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

bool hasKink(const std::function<double(double)> &f, double step, double epsilon) {
  // What the two slopes differ by falls with the step where f is smooth.
  double middle = f(0), before = 0;
  for (int i = 0; i < 3; ++i, step /= 16) {
    double above = f(step), below = f(-step), jump = std::fabs(above - 2 * middle + below) / step;
    double rounding = 8 * epsilon * (std::fabs(above) + 2 * std::fabs(middle) + std::fabs(below)) / step;
    if (!(jump > rounding) || (i > 0 && jump < before / 4))
      return false;
    before = jump;
  }
  return true;
}

} // namespace wg::runtime
