// Draws programs with bodies. Everything is well typed, floats stay small, loops end, and all choices are pure functions of
// the seed.
#include "tests/frontend/RandomBodies.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace wg::tests {

using Step = BodyStep;
using Block = BodyStep::Block;

namespace {

/// Loops without a limit within loops.
constexpr bool kUnboundedInLoops = false;

constexpr const char *kSmooth[] = {"tanh",   "sin",        "cos",         "sigmoid", "softplus", "exp",     "root",
                                   "square", "neg",        "softsign",    "erf",     "log",      "silu",    "gelu",
                                   "rsqrt",  "reciprocal", "stop_gradient", "identity", "scale",  "shift",   "softmax"};
constexpr const char *kKinked[] = {"relu", "abs", "clip"};
constexpr const char *kBinary[] = {"add", "sub", "mul", "quotient", "distance", "pow", "lerp"};
constexpr const char *kKinkedBinary[] = {"maximum", "minimum"};
constexpr const char *kReductions[] = {"sum", "sum", "mean", "logsumexp", "prod", "norm"};

class Generator {
public:
  explicit Generator(uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15u + 17) {
    p.seed = seed;
    p.dtype = chance(18) ? f32 : f64;
    p.hasKinks = chance(20);
    p.assigns = chance(40);
    p.mayFail = chance(14);
    for (int64_t &size : sizes_)
      size = chance(5) ? 0 : 1 + draw(3);
  }

  BodyProgram make() {
    for (int i = 0, count = static_cast<int>(draw(3)); i < count; ++i)
      p.captured.push_back(value(i == 1 && chance(50) ? TensorType{i64, {}} : anyFloat()));
    for (int i = 0, count = static_cast<int>(p.assigns ? 1 + draw(3) : draw(3)); i < count; ++i)
      p.variables.push_back(chance(25) ? TensorType{i64, {}} : anyFloat());
    for (int i = 0, count = static_cast<int>(draw(3)); i < count; ++i)
      makeFunction();
    Scope scope;
    left_ = 16 + static_cast<int>(draw(16));
    scope.values = p.captured;
    for (int i = 0, count = 1 + static_cast<int>(draw(3)); i < count; ++i)
      p.inputs.push_back(value(anyFloat()));
    if (chance(60))
      p.inputs.push_back(value({i64, {}}));
    if (chance(15))
      p.inputs.push_back(value({boolean, {}}));
    p.main.parameters = p.inputs;
    scope.values.insert(scope.values.end(), p.inputs.begin(), p.inputs.end());
    while (left_ > 0)
      anyStep(p.main, scope, 0);
    // What nobody has read is returned, and a little more.
    for (size_t i = scope.values.size(); i-- > 0 && p.main.results.size() < 6;)
      if (int v = scope.values[i]; !read_.count(v) || chance(10))
        p.main.results.push_back(v);
    if (having(scope, [&](const TensorType &type) { return isFloat(type); }).empty() || p.main.results.empty())
      p.main.results.push_back(constant(p.main, scope, anyFloat()));
    return std::move(p);
  }

private:
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
    case 2:
      return {};
    case 3:
    case 4:
    case 5:
      return {n};
    case 6:
      return {1, n};
    case 7:
      return {n, 1};
    default:
      return {n, m};
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

  /// Squashed, mostly, so that loops do not blow up.
  int tamed(Block &block, Scope &scope, int v) {
    if (!isFloat(typeOf(v)) || chance(35))
      return v;
    return apply(block, scope, chance(60) ? "tanh" : "contract", {v}, typeOf(v));
  }
  void fill(Block &block, Scope &scope, int depth, uint64_t most = 4) {
    for (uint64_t i = 0, count = chance(15) ? 0 : 1 + draw(most); i < count && left_ > 0; ++i)
      anyStep(block, scope, depth);
  }
  /// `to`, and what another value adds to it.
  int combined(Block &block, Scope &scope, int to) {
    const TensorType type = typeOf(to);
    int from = anyFloatValue(block, scope);
    if (!(typeOf(from) == type) && typeOf(from).shape.rank() > 0)
      from = apply(block, scope, "sum", {from}, {p.dtype, {}}, {-1});
    return apply(block, scope, oneOf(kBinary), {to, from}, type);
  }
  /// A block of these parameters with results of these types.
  Block body(const Scope &outer, const std::vector<TensorType> &parameters, const std::vector<TensorType> &results,
             int depth, bool tame, uint64_t most = 4) {
    Block block;
    Scope scope = outer;
    for (const TensorType &type : parameters) {
      block.parameters.push_back(value(type));
      scope.values.push_back(block.parameters.back());
    }
    fill(block, scope, depth + 1, most);
    for (const TensorType &type : results) {
      int v = want(block, scope, type);
      if (isFloat(type) && chance(70))
        v = combined(block, scope, v);
      if (isFloat(type) && p.mayFail && failsLeft_ > 0 && chance(50))
        v = failing(block, scope, v);
      block.results.push_back(tame ? tamed(block, scope, v) : v);
    }
    return block;
  }
  std::vector<TensorType> typesOf(const Scope &scope, uint64_t least, uint64_t most) {
    std::vector<TensorType> types;
    for (uint64_t i = 0, count = least + draw(most - least + 1); i < count; ++i)
      types.push_back(anyType(scope));
    return types;
  }
  std::vector<int> wantAll(Block &block, Scope &scope, const std::vector<TensorType> &types) {
    std::vector<int> values;
    for (const TensorType &type : types)
      values.push_back(want(block, scope, type));
    return values;
  }
  void finish(Block &block, Scope &scope, Step step, const std::vector<TensorType> &outs) {
    for (const TensorType &type : outs) {
      int v = value(type);
      step.outs.push_back(v);
      scope.values.push_back(v);
    }
    block.steps.push_back(std::move(step));
  }

  /// `to`, and what a gather gives that may be out of range.
  int failing(Block &block, Scope &scope, int to) {
    std::vector<int> vectors =
        having(scope, [&](const TensorType &t) { return isFloat(t) && t.shape.rank() == 1 && t.shape.dim(0) > 0; });
    int x = vectors.empty() ? constant(block, scope, {p.dtype, {2}}) : pick(vectors);
    int i = want(block, scope, {i64, {}});
    --failsLeft_;
    int got = apply(block, scope, "gather_unchecked", {x, i}, {p.dtype, {}});
    return apply(block, scope, "add", {to, got}, typeOf(to));
  }

  void conditional(Block &block, Scope &scope, int depth) {
    bool byNumber = chance(30);
    int selector = byNumber ? want(block, scope, {i64, {}}) : anyBool(block, scope);
    std::vector<TensorType> types = typesOf(scope, p.assigns && chance(25) ? 0 : 1, 3);
    Step step = begin(byNumber ? Step::switchCase : Step::cond);
    step.operands = {selector};
    step.structure = static_cast<int>(draw(6));
    for (uint64_t i = 0, count = byNumber ? 1 + draw(4) : 2; i < count; ++i)
      step.blocks.push_back(body(scope, {}, types, depth, false, 3));
    finish(block, scope, std::move(step), types);
  }

  bool mayBeUnbounded() const { return kUnboundedInLoops || loops_ == 0; }
  /// The body of a loop.
  Block turn(const Scope &outer, const std::vector<TensorType> &parameters, const std::vector<TensorType> &results,
             int depth) {
    ++loops_;
    Block block = body(outer, parameters, results, depth, true);
    --loops_;
    return block;
  }

  void whileLoop(Block &block, Scope &scope, int depth) {
    std::vector<TensorType> types = typesOf(scope, 0, 3);
    std::vector<int> states = wantAll(block, scope, types);
    int64_t turns = static_cast<int64_t>(draw(5));
    size_t at = draw(types.size() + 1);
    types.insert(types.begin() + static_cast<std::ptrdiff_t>(at), TensorType{i64, {}});
    Step zero = begin(Step::constant);
    zero.numbers = {0, 3};
    int counter = give(block, scope, std::move(zero), {i64, {}});
    states.insert(states.begin() + static_cast<std::ptrdiff_t>(at), counter);
    Step step = begin(Step::whileLoop);
    step.operands = states;
    step.structure = static_cast<int>(draw(6));
    int64_t limits[] = {mayBeUnbounded() ? -1 : turns + 1, turns, turns + 2, turns - 1, 8};
    step.numbers = {std::max<int64_t>(mayBeUnbounded() ? -1 : 0, oneOf(limits))};
    step.flag = chance(8); // not differentiable
    Block asked;
    Scope inner = scope;
    for (const TensorType &type : types) {
      asked.parameters.push_back(value(type));
      inner.values.push_back(asked.parameters.back());
    }
    int below = apply(asked, inner, "iless", {asked.parameters[at]}, {boolean, {}}, {turns});
    asked.results = {chance(40) ? apply(asked, inner, "and", {below, anyBool(asked, inner)}, {boolean, {}}) : below};
    step.blocks = {std::move(asked), turn(scope, types, types, depth)};
    // The counter counts.
    Block &last = step.blocks[1];
    inner = scope;
    last.results[at] = apply(last, inner, "iadd", {last.parameters[at]}, {i64, {}}, {1});
    finish(block, scope, std::move(step), types);
  }

  void scan(Block &block, Scope &scope, int depth) {
    int64_t lengths[] = {0, 1, 2, 2, 3, 3, 4}, length = oneOf(lengths);
    bool isMap = chance(20), isFold = !isMap && chance(25);
    std::vector<TensorType> states = isMap ? std::vector<TensorType>() : typesOf(scope, isFold, 3), rows, xs,
                            ys = isFold ? std::vector<TensorType>() : typesOf(scope, isMap, 2);
    for (uint64_t i = 0, count = (isMap || isFold ? 1 : 0) + draw(3); i < std::min<uint64_t>(count, 2); ++i) {
      TensorType row = chance(80) ? anyFloat() : TensorType{i64, {}};
      if (row.shape.rank() > 1)
        row.shape = Shape{row.shape.dim(0)};
      rows.push_back(row);
      std::vector<int64_t> sizes = sizesOf(row);
      sizes.insert(sizes.begin(), length);
      xs.push_back({row.dtype, Shape(sizes)});
    }
    Step step;
    std::vector<int> operands = wantAll(block, scope, states), scanned = wantAll(block, scope, xs);
    step = begin(isMap ? Step::map : isFold ? Step::fold : Step::scan);
    operands.insert(operands.end(), scanned.begin(), scanned.end());
    step.operands = operands;
    step.numbers = {static_cast<int64_t>(states.size()), static_cast<int64_t>(xs.size()), length};
    step.flag = !isMap && chance(35);
    step.structure = static_cast<int>(draw(7));
    std::vector<TensorType> parameters = states, results = states;
    parameters.insert(parameters.end(), rows.begin(), rows.end());
    results.insert(results.end(), ys.begin(), ys.end());
    step.blocks = {turn(scope, parameters, results, depth)};
    std::vector<TensorType> outs = states;
    for (const TensorType &y : ys) {
      std::vector<int64_t> sizes = sizesOf(y);
      sizes.insert(sizes.begin(), length);
      outs.push_back({y.dtype, Shape(sizes)});
    }
    finish(block, scope, std::move(step), outs);
  }

  void range(Block &block, Scope &scope, int depth) {
    std::vector<TensorType> types = typesOf(scope, 1, 3), parameters = types;
    std::vector<int> operands = wantAll(block, scope, types);
    bool byTensor = chance(35);
    int64_t from = static_cast<int64_t>(draw(4)) - 1;
    if (byTensor)
      operands.push_back(apply(block, scope, "imod", {want(block, scope, {i64, {}})}, {i64, {}}, {4}));
    Step step = begin(byTensor ? Step::rangeTo : Step::range);
    step.operands = operands;
    step.numbers = {from, byTensor ? (mayBeUnbounded() && chance(50) ? -1 : static_cast<int64_t>(draw(6)))
                                   : from - 1 + static_cast<int64_t>(draw(5))};
    step.flag = !byTensor && chance(25);
    step.structure = static_cast<int>(draw(6));
    parameters.insert(parameters.begin(), {i64, {}});
    step.blocks = {turn(scope, parameters, types, depth)};
    finish(block, scope, std::move(step), types);
  }

  void associative(Block &block, Scope &scope) {
    TensorType type = anyFloat();
    std::vector<int64_t> sizes = sizesOf(type);
    if (sizes.size() > 1)
      sizes.pop_back();
    sizes.insert(sizes.begin(), static_cast<int64_t>(draw(6)));
    type.shape = Shape(sizes);
    bool pairs = chance(50);
    std::vector<TensorType> types(pairs ? 2 : 1, type);
    std::vector<int> operands = wantAll(block, scope, types);
    Step step = begin(Step::associative);
    step.operands = operands;
    step.flag = chance(40);
    step.numbers = {static_cast<int64_t>(draw(2))};
    finish(block, scope, std::move(step), types);
  }

  void derivative(Block &block, Scope &scope, int depth) {
    int x = anyFloatValue(block, scope);
    TensorType type = typeOf(x);
    bool forwards = chance(30);
    Step step = begin(forwards ? Step::tangent : Step::gradient);
    step.operands = {x};
    step.numbers = {static_cast<int64_t>(draw(3))}; // by a tape, by wg::grad, by a tape without `identity`
    TensorType out = forwards ? anyFloat() : type;
    std::vector<TensorType> results{forwards ? out : anyFloat()};
    step.blocks = {body(scope, {type}, results, depth, false)};
    finish(block, scope, std::move(step), {out});
  }

  void lanes(Block &block, Scope &scope, int depth) {
    std::vector<int> found = having(
        scope, [&](const TensorType &t) { return isFloat(t) && t.shape.rank() > 0 && t.shape.dim(0) > 0; });
    if (found.empty())
      return elementwise(block, scope);
    int x = pick(found);
    std::vector<int64_t> sizes = sizesOf(typeOf(x));
    TensorType row{p.dtype, Shape(std::vector<int64_t>(sizes.begin() + 1, sizes.end()))}, out = anyFloat();
    if (out.shape.rank() > 1)
      out.shape = Shape{out.shape.dim(0)};
    Step step = begin(Step::lanes);
    step.operands = {x};
    Scope inner = scope;
    inner.pure = true;
    bool mayFail = std::exchange(p.mayFail, false);
    step.blocks = {body(inner, {row}, {out}, depth, false)};
    p.mayFail = mayFail;
    std::vector<int64_t> stacked = sizesOf(out);
    stacked.insert(stacked.begin(), sizes[0]);
    finish(block, scope, std::move(step), {{p.dtype, Shape(stacked)}});
  }

  void variable(Block &block, Scope &scope) {
    if (p.variables.empty())
      return elementwise(block, scope);
    size_t which = draw(p.variables.size());
    const TensorType type = p.variables[which];
    if (!p.assigns || scope.pure || chance(45)) {
      Step step = begin(Step::read);
      step.numbers = {static_cast<int64_t>(which)};
      give(block, scope, std::move(step), type);
      return;
    }
    int v = want(block, scope, type);
    if (isFloat(type) && chance(60))
      v = apply(block, scope, "tanh", {v}, type);
    Step step = begin(Step::assign);
    step.operands = {v};
    step.numbers = {static_cast<int64_t>(which), static_cast<int64_t>(draw(3))};
    block.steps.push_back(std::move(step));
    assigned_ = true;
  }

  void makeFunction() {
    Scope scope;
    scope.inside = true;
    left_ = 2 + static_cast<int>(draw(6));
    assigned_ = false;
    BodyProgram::Function function;
    scope.values = p.captured;
    std::vector<TensorType> parameters, results;
    for (uint64_t i = 0, count = 1 + draw(2); i < count; ++i)
      parameters.push_back(anyFloat());
    for (uint64_t i = 0, count = 1 + draw(2); i < count; ++i)
      results.push_back(anyFloat());
    ++loops_; // it may be called in one
    function.block = body(scope, parameters, results, chance(50) ? 1 : 0, true, 3);
    --loops_;
    function.assigns = assigned_;
    for (size_t i = 0; i < p.functions.size(); ++i)
      function.assigns = function.assigns || p.functions[i].assigns; // it may call them
    p.functions.push_back(std::move(function));
  }

  void callFunction(Block &block, Scope &scope) {
    if (p.functions.empty())
      return elementwise(block, scope);
    size_t which = draw(p.functions.size());
    if (scope.pure && p.functions[which].assigns)
      return elementwise(block, scope);
    std::vector<TensorType> parameters, results;
    for (int v : p.functions[which].block.parameters)
      parameters.push_back(typeOf(v));
    for (int v : p.functions[which].block.results)
      results.push_back(typeOf(v));
    std::vector<int> operands = wantAll(block, scope, parameters);
    Step step = begin(Step::call);
    step.operands = operands;
    step.numbers = {static_cast<int64_t>(which)};
    finish(block, scope, std::move(step), results);
  }

  void anyStep(Block &block, Scope &scope, int depth) {
    uint64_t dice = draw(100);
    if (depth < 3 && dice < (depth == 0 ? 45 : 30)) {
      uint64_t which = draw(100);
      if (which < 22)
        conditional(block, scope, depth);
      else if (which < 38)
        whileLoop(block, scope, depth);
      else if (which < 62)
        scan(block, scope, depth);
      else if (which < 80)
        range(block, scope, depth);
      else if (which < 85)
        associative(block, scope);
      else if (which < 93)
        derivative(block, scope, depth);
      else
        lanes(block, scope, depth);
    } else if (dice < 54) {
      variable(block, scope);
    } else if (dice < 61) {
      callFunction(block, scope);
    } else if (dice < 78) {
      structural(block, scope);
    } else {
      elementwise(block, scope);
    }
  }

  std::mt19937_64 random_;
  BodyProgram p;
  int64_t sizes_[3] = {};
  int left_ = 0, failsLeft_ = 2, loops_ = 0;
  bool assigned_ = false;
  std::set<int> read_;
};

} // namespace

BodyProgram drawBodies(uint64_t seed) { return Generator(seed).make(); }

} // namespace wg::tests
