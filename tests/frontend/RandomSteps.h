// Draws the steps of random programs that have no bodies (RandomBodies.h): ops on values that a scope has, constants.
#pragma once

#include "tests/frontend/RandomBodies.h"

#include <algorithm>
#include <random>

namespace wg::tests {

inline constexpr const char *kSmooth[] = {"tanh",  "sin",    "cos",     "sigmoid",    "softplus",      "exp",
                                          "root",  "square", "neg",     "softsign",   "erf",           "log",
                                          "silu",  "gelu",   "rsqrt",   "reciprocal", "stop_gradient", "identity",
                                          "scale", "shift",  "softmax", "mish",       "gelu_tanh",     "log_sigmoid",
                                          "atan",  "asinh",  "lgamma",  "erfinv"};
inline constexpr const char *kKinked[] = {"relu", "abs", "clip"};
inline constexpr const char *kBinary[] = {"add", "sub", "mul", "quotient", "distance", "pow", "lerp"};
inline constexpr const char *kKinkedBinary[] = {"maximum", "minimum"};
inline constexpr const char *kReductions[] = {"sum", "sum", "mean", "logsumexp", "prod", "norm"};

class RandomSteps {
protected:
  using Step = BodyStep;
  using Block = BodyStep::Block;
  explicit RandomSteps(uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15u + 17) {}

  struct Scope {
    std::vector<int> values;
    bool pure = false;   ///< no assignments: lanes
    bool inside = false; ///< of a function
  };

  uint64_t draw(uint64_t count) { return random_() % count; }
  bool chance(uint64_t percent) { return draw(100) < percent; }
  template <class T, size_t n> const T &oneOf(const T (&list)[n]) { return list[draw(n)]; }

  int value(const TensorType &type) {
    p.types.push_back(type);
    return static_cast<int>(p.types.size()) - 1;
  }
  const TensorType &typeOf(int v) const { return p.types[static_cast<size_t>(v)]; }
  Shape anyShape() {
    int64_t n = sizes_[draw(3)], m = sizes_[draw(3)];
    switch (draw(10)) {
    case 0:
    case 1:
    case 2: return {};
    case 3:
    case 4:
    case 5: return {n};
    case 6: return {1, n};
    case 7: return {n, 1};
    default: return {n, m};
    }
  }
  TensorType anyFloat() { return {p.dtype, anyShape()}; }
  /// Of what there is, or another; seldom an integer or a bool.
  TensorType anyType(const Scope &scope) {
    if (chance(8))
      return {i64, {}};
    if (chance(4))
      return {boolean, {}};
    if (!scope.values.empty() && chance(70))
      if (const TensorType &type = typeOf(scope.values[draw(scope.values.size())]); isFloat(type))
        return type;
    return anyFloat();
  }
  bool isFloat(const TensorType &type) const { return type.dtype == p.dtype; }

  Step begin(Step::Kind kind, std::string name = "") {
    Step step;
    step.kind = kind;
    step.number = p.numSteps++;
    step.name = std::move(name);
    --left_;
    return step;
  }
  int give(Block &block, Scope &scope, Step step, const TensorType &type) {
    int v = value(type);
    step.outs.push_back(v);
    block.steps.push_back(std::move(step));
    scope.values.push_back(v);
    return v;
  }
  int apply(Block &block, Scope &scope, const std::string &name, std::vector<int> operands, const TensorType &type,
            std::vector<int64_t> numbers = {}, bool flag = false) {
    Step step = begin(Step::op, name);
    step.operands = std::move(operands);
    step.numbers = std::move(numbers);
    step.flag = flag;
    step.factor = 0.25 + 0.125 * static_cast<double>(draw(9));
    return give(block, scope, std::move(step), type);
  }
  int constant(Block &block, Scope &scope, const TensorType &type) {
    Step step = begin(Step::constant);
    step.numbers = {static_cast<int64_t>(draw(40)), static_cast<int64_t>(draw(4))};
    return give(block, scope, std::move(step), type);
  }

  std::vector<int> having(const Scope &scope, const auto &holds) const {
    std::vector<int> found;
    for (int v : scope.values)
      if (holds(typeOf(v)))
        found.push_back(v);
    return found;
  }
  /// One of them, rather a late one, and one that nobody has read.
  int pick(const std::vector<int> &values) {
    size_t n = values.size();
    std::vector<int> unread;
    for (int v : values)
      if (!read_.count(v))
        unread.push_back(v);
    if (!unread.empty() && chance(50))
      return *read_.insert(unread[draw(unread.size())]).first;
    return *read_.insert(values[n - 1 - (chance(50) ? draw(std::min<size_t>(n, 3)) : draw(n))]).first;
  }
  int anyFloatValue(Block &block, Scope &scope) {
    std::vector<int> found = having(scope, [&](const TensorType &type) { return isFloat(type); });
    return found.empty() ? constant(block, scope, anyFloat()) : pick(found);
  }

  /// A value of this type: one that there is, or one made of another.
  int want(Block &block, Scope &scope, const TensorType &type) {
    std::vector<int> found = having(scope, [&](const TensorType &t) { return t == type; });
    if (!found.empty() && chance(85))
      return pick(found);
    if (type.dtype == i64 && type.shape.rank() == 0)
      return anyInteger(block, scope);
    if (type.dtype == boolean && type.shape.rank() == 0)
      return anyBool(block, scope);
    if (!isFloat(type) || chance(15))
      return constant(block, scope, type);
    int from = anyFloatValue(block, scope);
    if (typeOf(from).shape.numElements() == type.shape.numElements())
      return apply(block, scope, "reshape", {from}, type, sizesOf(type));
    int sum = typeOf(from).shape.rank() == 0 ? from : apply(block, scope, "sum", {from}, {p.dtype, {}}, {-1});
    return type.shape.rank() == 0 ? sum : apply(block, scope, "broadcast", {sum}, type, sizesOf(type));
  }
  static std::vector<int64_t> sizesOf(const TensorType &type) { return {type.shape.begin(), type.shape.end()}; }

  int anyInteger(Block &block, Scope &scope) {
    std::vector<int> integers = having(scope, [](const TensorType &t) { return t == TensorType{i64, {}}; });
    TensorType scalar{i64, {}};
    if (!integers.empty() && chance(50)) {
      const char *names[] = {"iadd", "imul", "imod", "idiv"};
      return apply(block, scope, oneOf(names), {pick(integers)}, scalar, {1 + static_cast<int64_t>(draw(3))});
    }
    if (chance(35))
      return constant(block, scope, scalar);
    if (chance(35))
      return apply(block, scope, "from_bool", {anyBool(block, scope)}, scalar);
    std::vector<int> vectors =
        having(scope, [&](const TensorType &t) { return isFloat(t) && t.shape.rank() == 1 && t.shape.dim(0) > 0; });
    if (!vectors.empty() && chance(50))
      return apply(block, scope, "argmax", {pick(vectors)}, scalar);
    return apply(block, scope, "from_float", {want(block, scope, {p.dtype, {}})}, scalar);
  }
  int anyBool(Block &block, Scope &scope) {
    TensorType type{boolean, {}};
    std::vector<int> integers = having(scope, [](const TensorType &t) { return t == TensorType{i64, {}}; });
    std::vector<int> bools = having(scope, [](const TensorType &t) { return t == TensorType{boolean, {}}; });
    if (!bools.empty() && chance(30))
      return chance(50) ? apply(block, scope, "not", {pick(bools)}, type)
                        : apply(block, scope, chance(50) ? "and" : "or", {pick(bools), pick(bools)}, type);
    if (!integers.empty() && chance(45))
      return apply(block, scope, chance(50) ? "is_even" : "iless", {pick(integers)}, type,
                   {static_cast<int64_t>(draw(3))});
    if (chance(30))
      return apply(block, scope, "any_less", {anyFloatValue(block, scope)}, type);
    return apply(block, scope, "less", {anyFloatValue(block, scope)}, type);
  }

  void elementwise(Block &block, Scope &scope) {
    int a = anyFloatValue(block, scope);
    TensorType type = typeOf(a);
    if (chance(45)) {
      std::string name = p.hasKinks && chance(25) ? oneOf(kKinked) : oneOf(kSmooth);
      if (name == "softmax" && (type.shape.rank() == 0 || type.shape.numElements() == 0))
        name = "tanh";
      apply(block, scope, name, {a}, type);
      return;
    }
    std::vector<int> fitting = having(scope, [&](const TensorType &t) {
      return isFloat(t) && (t == type || t.shape.rank() == 0 ||
                            (t.shape.rank() <= type.shape.rank() && broadcasts(t.shape, type.shape)));
    });
    int b = pick(fitting);
    std::string name = p.hasKinks && chance(25) ? oneOf(kKinkedBinary) : oneOf(kBinary);
    if (chance(12))
      apply(block, scope, "where", {anyBool(block, scope), a, b}, type);
    else if (p.hasKinks && chance(10))
      apply(block, scope, "where_less", {a, b}, type);
    else if (chance(50) || typeOf(b) == type)
      apply(block, scope, name, {a, b}, type);
    else
      apply(block, scope, name, {b, a}, type);
  }
  static bool broadcasts(const Shape &from, const Shape &to) {
    for (int i = 1; i <= from.rank(); ++i)
      if (from.dim(from.rank() - i) != 1 && from.dim(from.rank() - i) != to.dim(to.rank() - i))
        return false;
    return true;
  }

  void structural(Block &block, Scope &scope) {
    int a = anyFloatValue(block, scope);
    TensorType type = typeOf(a);
    int rank = type.shape.rank();
    std::vector<int64_t> s = sizesOf(type);
    auto of = [&](const std::vector<int64_t> &sizes) { return TensorType{p.dtype, Shape(sizes)}; };
    if (rank == 0) {
      if (chance(50))
        apply(block, scope, "stack", {a, want(block, scope, type)}, of({2}));
      else
        elementwise(block, scope);
      return;
    }
    int64_t axis = static_cast<int64_t>(draw(static_cast<uint64_t>(rank)));
    auto at = static_cast<size_t>(axis);
    switch (draw(9)) {
    case 0: {
      bool all = chance(40), keep = chance(30);
      std::string name = p.hasKinks && chance(20) ? "max" : oneOf(kReductions);
      if (type.shape.numElements() == 0)
        name = chance(50) ? "sum" : "prod";
      std::vector<int64_t> sizes = s;
      if (all)
        sizes.assign(keep ? s.size() : 0, 1);
      else if (keep)
        sizes[at] = 1;
      else
        sizes.erase(sizes.begin() + axis);
      apply(block, scope, name, {a}, of(sizes), {all ? -1 : axis}, keep);
      return;
    }
    case 1: {
      int64_t n = sizes_[draw(3)];
      int b = want(block, scope, of({s.back(), n}));
      std::vector<int64_t> sizes = s;
      sizes.back() = n;
      apply(block, scope, "matmul", {a, b}, of(sizes));
      return;
    }
    case 2:
      std::reverse(s.begin(), s.end());
      apply(block, scope, "transpose", {a}, of(s));
      return;
    case 3: {
      int b = want(block, scope, type);
      s[at] *= 2;
      apply(block, scope, "concat", {a, b}, of(s), {axis});
      return;
    }
    case 4: {
      int64_t from = s[0] > 1 ? 1 : 0, step = chance(30) ? 2 : 1;
      int64_t rows = (s[0] - from + step - 1) / step;
      s[0] = rows;
      apply(block, scope, "slice", {a}, of(s), {from, step});
      return;
    }
    case 5:
    case 6: {
      if (s[0] == 0)
        return elementwise(block, scope);
      int i = chance(70) ? want(block, scope, {i64, {}}) : constant(block, scope, {i64, {2}});
      std::vector<int64_t> sizes = sizesOf(typeOf(i));
      sizes.insert(sizes.end(), s.begin() + 1, s.end());
      apply(block, scope, chance(30) ? "gather32" : "gather", {a, i}, of(sizes), {s[0]});
      return;
    }
    case 7: {
      std::vector<int64_t> sizes = s;
      if (chance(50) && s[0] > 0) {
        sizes.erase(sizes.begin());
        apply(block, scope, "index", {a}, of(sizes), {static_cast<int64_t>(draw(static_cast<uint64_t>(s[0])))});
      } else {
        sizes[at] += 1;
        apply(block, scope, "pad", {a}, of(sizes), {axis});
      }
      return;
    }
    default: {
      int64_t total = type.shape.numElements();
      apply(block, scope, "reshape", {a}, of({total}), {total});
      return;
    }
    }
  }

  std::mt19937_64 random_;
  BodyProgram p;
  int64_t sizes_[3] = {};
  int left_ = 0; ///< steps, about
  std::set<int> read_;
};

} // namespace wg::tests
