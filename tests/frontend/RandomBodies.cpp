// Draws programs with bodies. Everything is well typed, floats stay small, loops end, and the seed makes all choices.
#include "tests/frontend/RandomSteps.h"

#include <utility>

namespace wg::tests {

namespace {

class Generator : RandomSteps {
public:
  explicit Generator(uint64_t seed) : RandomSteps(seed) {
    p.seed = seed;
    p.dtype = chance(18) ? f32 : f64;
    p.hasKinks = chance(20);
    p.assigns = chance(40);
    p.mayFail = chance(14);
    for (int64_t &size : sizes_)
      size = chance(5) ? 0 : chance(6) ? 5 + draw(30) : 1 + draw(3);
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

  /// The body of a loop.
  Block turn(const Scope &outer, const std::vector<TensorType> &parameters, const std::vector<TensorType> &results,
             int depth) {
    return body(outer, parameters, results, depth, true);
  }

  void whileLoop(Block &block, Scope &scope, int depth) {
    std::vector<TensorType> types = typesOf(scope, 0, 3);
    std::vector<int> states = wantAll(block, scope, types);
    int64_t turns = chance(4) ? 9 : static_cast<int64_t>(draw(5));
    size_t at = draw(types.size() + 1);
    types.insert(types.begin() + static_cast<std::ptrdiff_t>(at), TensorType{i64, {}});
    Step zero = begin(Step::constant);
    zero.numbers = {0, 3};
    int counter = give(block, scope, std::move(zero), {i64, {}});
    states.insert(states.begin() + static_cast<std::ptrdiff_t>(at), counter);
    Step step = begin(Step::whileLoop);
    step.operands = states;
    step.structure = static_cast<int>(draw(6));
    int64_t limits[] = {-1, turns, turns + 2, turns - 1, 8};
    step.numbers = {std::max<int64_t>(-1, oneOf(limits))};
    step.flag = chance(8); // not differentiable
    Block asked;
    Scope inner = scope;
    for (const TensorType &type : types) {
      asked.parameters.push_back(value(type));
      inner.values.push_back(asked.parameters.back());
    }
    if (!p.variables.empty() && chance(30)) {
      size_t which = draw(p.variables.size());
      Step read = begin(Step::read);
      read.numbers = {static_cast<int64_t>(which)};
      give(asked, inner, std::move(read), p.variables[which]);
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
    int64_t lengths[] = {0, 1, 2, 2, 3, 3, 4}, length = chance(4) ? 9 : oneOf(lengths);
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
    step.numbers = {from, byTensor ? (chance(50) ? -1 : static_cast<int64_t>(draw(6)))
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
    // By a tape, by wg::grad, or by a tape without `identity`: then by a tensor that nothing else can be, as the state
    // of a first turn is that before the loop when it runs eagerly.
    bool isOwn = std::any_of(block.steps.begin(), block.steps.end(), [&](const Step &each) {
      return each.kind == Step::op && each.name != "reshape" && each.outs[0] == x;
    });
    step.numbers = {static_cast<int64_t>(draw(isOwn ? 3 : 2))};
    TensorType out = forwards ? anyFloat() : type;
    std::vector<TensorType> results{forwards ? out : anyFloat()};
    step.blocks = {body(scope, {type}, results, depth, false)};
    finish(block, scope, std::move(step), {out});
  }

  void lanes(Block &block, Scope &scope, int depth) {
    std::vector<int> found =
        having(scope, [&](const TensorType &t) { return isFloat(t) && t.shape.rank() > 0 && t.shape.dim(0) > 0; });
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
    if (p.assigns && !scope.pure && chance(12)) {
      give(block, scope, begin(Step::draw), anyFloat());
      assigned_ = p.draws = true;
      return;
    }
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
    function.block = body(scope, parameters, results, chance(50) ? 1 : 0, true, 3);
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

  int failsLeft_ = 2;
  bool assigned_ = false;
};

} // namespace

BodyProgram drawBodies(uint64_t seed) { return Generator(seed).make(); }

} // namespace wg::tests
