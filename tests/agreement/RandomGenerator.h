// How random programs grow. Private to RandomGenerator.cpp, which has what every idea draws on, and to the files of
// ideas: RandomIdeas.cpp, RandomArrays.cpp, RandomMatrices.cpp, RandomComposites.cpp.
#pragma once

#include "tests/agreement/RandomProgram.h"
#include "tests/agreement/RandomTraced.h"

namespace wg::tests {

/// Grows a program by one idea at a time. An idea that does not apply, or whose values leave the bounds, is taken back.
class Generator {
public:
  Generator(uint64_t seed, const RandomProgramOptions &options) : options_(options) {
    program_.seed = seed;
    state_ = seed;
    state_ = next(); // far from that of the seeds beside it, which would go through the same numbers a step apart
    static const std::vector<int64_t> kSizes{1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33, 40};
    static const std::vector<int64_t> kLarge{1, 3, 16, 33, 64, 100, 128, 250, 257, 300, 512, 1000};
    for (int i = 0; i < 3; ++i)
      sizes_.push_back(options.large ? kLarge[below(kLarge.size())] : kSizes[below(kSizes.size())]);
    if (options.empty)
      sizes_.back() = 0;
  }

  RandomProgram run();

private:
  friend std::vector<std::string> compositesOfPrograms();
  using Array = runtime::Array;
  using Attrs = runtime::Attrs;
  using DType = runtime::DType;
  using Ints = runtime::Ints;
  using OpId = runtime::OpId;
  using Shape = runtime::Shape;
  using TensorType = runtime::TensorType;

  // A generator of our own: the standard distributions differ between libraries.
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t below(uint64_t n) { return static_cast<int64_t>(next() % n); }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }

  static constexpr size_t kHighestRank = 6; ///< two more are there for lanes
  using Maybe = int;                        ///< a value, or -1
  const TensorType &typeOf(int value) const { return program_.values[static_cast<size_t>(value)].type; }
  const Array &valueOf(int value) const { return program_.values[static_cast<size_t>(value)]; }
  const Shape &shapeOf(int value) const { return typeOf(value).shape; }
  bool isRaw(int value) const { return raw_[static_cast<size_t>(value)]; }

  int64_t size() { return chance(0.12) ? 1 : sizes_[static_cast<size_t>(below(sizes_.size()))]; }
  Shape shape() {
    Shape shape;
    for (int64_t rank = chance(0.1) ? 4 + below(2) : below(4); rank > 0; --rank)
      if (int64_t n = size(); shape.numElements() * n <= (options_.large ? 120000 : 3000))
        shape.push_back(n);
    return shape;
  }

  int input(DType dtype, Shape shape, double lo = -2, double hi = 2);
  /// `raw`: the op rounds nothing. `infinite`: infinities may be among the result.
  Maybe step(OpId op, const Attrs &attrs, std::vector<int> operands, bool raw = false, bool infinite = false);
  static bool isBounded(const Array &value, bool infinite = false);
  Maybe step(OpId op, std::vector<int> operands) { return step(op, Attrs(), std::move(operands)); }
  Maybe fill(int like, double value);
  template <class Wanted> Maybe pick(Wanted &&wanted) {
    std::vector<int> found;
    for (size_t v = 0; v < program_.values.size(); ++v)
      if (!hidden_[v] && wanted(static_cast<int>(v)))
        found.push_back(static_cast<int>(v));
    if (found.empty())
      return -1;
    // Late values are likelier, so that programs grow deep as well as wide.
    size_t a = static_cast<size_t>(below(found.size())), b = static_cast<size_t>(below(found.size()));
    return found[std::max(a, b)];
  }
  int aFloat() {
    Maybe found = pick([&](int v) { return typeOf(v).dtype == options_.dtype; });
    return found >= 0 && !chance(0.1) ? found : input(options_.dtype, shape());
  }
  int aRawFloat() {
    Maybe found = pick([&](int v) { return typeOf(v).dtype == options_.dtype && isRaw(v); });
    return found >= 0 && !chance(0.2) ? found : input(options_.dtype, shape());
  }
  int anInteger() { return anyValue(runtime::kIntegers); }
  int anyValue(runtime::DTypeSet dtypes, bool raw = false);
  int places(Shape shape, int64_t count);
  /// An input in the range that is usual for its dtype.
  int input(TensorType type) {
    bool real = runtime::isFloat(type.dtype);
    return input(type.dtype, type.shape, real ? -2 : -5, real ? 2 : 6);
  }
  int ofType(TensorType type, bool raw = false);
  int aCondition(Shape shape);
  Ints someAxes(int rank, bool atLeastOne = false) {
    Ints axes;
    for (int i = 0; i < rank; ++i)
      if (chance(0.5))
        axes.push_back(i);
    if (axes.empty() && atLeastOne && rank > 0)
      axes.push_back(below(static_cast<uint64_t>(rank)));
    return axes;
  }

  static bool movesOnly(OpId op);
  static bool jumps(OpId op);
  Maybe diagonal(const TensorType &type, bool apart);
  Maybe nearDiagonal(const TensorType &type, double spread, bool apart = false);
  TensorType matrixType(bool square);
  /// A function of the public interface, of values: the ops that it traces to become steps.
  Maybe traced(const std::vector<int> &operands, const TracedFunction &f);

  struct Idea {
    Maybe (Generator::*grow)();
    int weight;
    bool smooth; ///< whether programs have it whose derivative central differences can check
  };
  static const Idea kIdeas[];
  /// A function of the public interface, on values that fit it.
  struct Composite {
    const char *name;
    bool smooth;
    Maybe (*grow)(Generator &g);
  };
  static std::span<const Composite> composites();
  Maybe grow();

  Maybe withUnitAxes(int x);
  Maybe fitted(int x, Shape wanted); ///< by value: a step moves the values, and their shapes
  Maybe view(int x);
  Maybe unary();
  Maybe binary();
  Maybe sampled();
  Maybe guarded();
  Maybe choice();
  Maybe place();
  Maybe shared();
  Maybe lookup();
  Maybe reduction();
  Maybe kept();
  Maybe softmax();
  Maybe product();
  Maybe solve();
  Maybe index();
  Maybe disguised();
  Maybe integers();
  Maybe jump();
  Maybe numbers();
  Maybe booleans();
  Maybe cumulative();
  Maybe order();
  Maybe update();
  Maybe part();
  Maybe matrix();
  Maybe composite();

  RandomProgramOptions options_;
  RandomProgram program_;
  uint64_t state_;
  std::vector<int64_t> sizes_;
  std::vector<bool> raw_;    ///< not computed in floating point: what jumps may depend on
  std::vector<bool> hidden_; ///< indices with a range of their own
};

} // namespace wg::tests
