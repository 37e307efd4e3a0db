// The ops of programs with bodies, by name; all are bounded or grow slowly.
#include "tests/frontend/RandomBodies.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace wg::tests {

namespace {

using Apply = std::function<Tensor(const Tensors &, const BodyStep &)>;

Axes axesOf(const BodyStep &step) { return step.numbers[0] < 0 ? Axes::all() : Axes(step.numbers[0]); }
Shape shapeOf(const BodyStep &step) { return Shape(step.numbers); }
double threshold(const BodyStep &step) { return step.factor - 0.75; }

const std::map<std::string, Apply> &named() {
  static const std::map<std::string, Apply> table{
      {"tanh", [](auto &x, auto &) { return tanh(x[0]); }},
      {"sin", [](auto &x, auto &) { return sin(x[0]); }},
      {"cos", [](auto &x, auto &) { return cos(x[0]); }},
      {"sigmoid", [](auto &x, auto &) { return sigmoid(x[0]); }},
      {"softplus", [](auto &x, auto &) { return softplus(x[0]); }},
      {"exp", [](auto &x, auto &) { return exp(sin(x[0]) * 0.5); }},
      {"root", [](auto &x, auto &) { return sqrt(x[0] * x[0] + 1.0); }},
      {"square", [](auto &x, auto &) { return square(x[0]) * 0.25; }},
      {"neg", [](auto &x, auto &) { return -x[0]; }},
      {"softsign", [](auto &x, auto &) { return sin(x[0]) / (1.5 + cos(x[0])); }},
      {"erf", [](auto &x, auto &) { return erf(x[0]); }},
      {"log", [](auto &x, auto &) { return log1p(x[0] * x[0]); }},
      {"silu", [](auto &x, auto &) { return silu(x[0]); }},
      {"gelu", [](auto &x, auto &) { return gelu(x[0]); }},
      {"gelu_tanh", [](auto &x, auto &) { return gelu_tanh(x[0]); }},
      {"mish", [](auto &x, auto &) { return mish(x[0]); }},
      {"log_sigmoid", [](auto &x, auto &) { return log_sigmoid(x[0]); }},
      {"atan", [](auto &x, auto &) { return atan(x[0]); }},
      {"asinh", [](auto &x, auto &) { return asinh(x[0]); }},
      {"lgamma", [](auto &x, auto &) { return lgamma(1.5 + sigmoid(x[0])); }},
      {"erfinv", [](auto &x, auto &) { return erfinv(tanh(x[0]) * 0.5); }},
      {"rsqrt", [](auto &x, auto &) { return rsqrt(x[0] * x[0] + 0.5); }},
      {"reciprocal", [](auto &x, auto &) { return reciprocal(1.0 + x[0] * x[0]); }},
      {"stop_gradient", [](auto &x, auto &) { return stop_gradient(x[0]); }},
      {"identity", [](auto &x, auto &) { return identity(x[0]); }},
      {"scale", [](auto &x, auto &s) { return x[0] * s.factor; }},
      {"shift", [](auto &x, auto &s) { return x[0] + (s.factor - 0.5); }},
      {"contract", [](auto &x, auto &s) { return x[0] * 0.4 + s.factor * 0.2; }},
      {"softmax", [](auto &x, auto &) { return softmax(x[0]); }},
      {"relu", [](auto &x, auto &) { return relu(x[0]); }},
      {"abs", [](auto &x, auto &) { return abs(x[0]); }},
      {"clip", [](auto &x, auto &) { return clip(x[0], -0.5, 0.75); }},
      {"add", [](auto &x, auto &) { return x[0] + x[1]; }},
      {"sub", [](auto &x, auto &) { return x[0] - x[1]; }},
      {"mul", [](auto &x, auto &) { return x[0] * x[1] * 0.5; }},
      {"quotient", [](auto &x, auto &) { return x[0] / (1.0 + x[1] * x[1]); }},
      {"distance", [](auto &x, auto &) { return sqrt(square(x[0] - x[1]) + 0.1); }},
      {"pow", [](auto &x, auto &) { return pow(1.0 + sigmoid(x[0]), tanh(x[1])); }},
      {"lerp", [](auto &x, auto &s) { return x[0] * s.factor + x[1] * (1 - s.factor); }},
      {"maximum", [](auto &x, auto &) { return maximum(x[0], x[1]); }},
      {"minimum", [](auto &x, auto &) { return minimum(x[0], x[1]); }},
      {"where", [](auto &x, auto &) { return where(x[0], x[1], x[2]); }},
      {"where_less", [](auto &x, auto &) { return where(x[0] < x[1], x[0] * 2.0, x[1]); }},
      {"sum", [](auto &x, auto &s) { return reduce_sum(x[0], axesOf(s), s.flag); }},
      {"mean", [](auto &x, auto &s) { return mean(x[0], axesOf(s), s.flag); }},
      {"max", [](auto &x, auto &s) { return reduce_max(x[0], axesOf(s), s.flag); }},
      {"prod", [](auto &x, auto &s) { return reduce_prod(x[0], axesOf(s), s.flag); }},
      {"logsumexp", [](auto &x, auto &s) { return logsumexp(x[0], axesOf(s), s.flag); }},
      {"norm", [](auto &x, auto &s) { return norm(x[0] * x[0] + 0.1, axesOf(s), s.flag); }},
      {"matmul", [](auto &x, auto &) { return matmul(x[0], x[1]); }},
      {"transpose", [](auto &x, auto &) { return transpose(x[0]); }},
      {"reshape", [](auto &x, auto &s) { return reshape(x[0], shapeOf(s)); }},
      {"broadcast", [](auto &x, auto &s) { return broadcast_to(x[0], shapeOf(s)); }},
      {"concat", [](auto &x, auto &s) { return concat({x[0], x[1]}, s.numbers[0]); }},
      {"stack", [](auto &x, auto &) { return stack({x[0], x[1]}); }},
      {"slice", [](auto &x, auto &s) { return x[0][slice(s.numbers[0], {}, s.numbers[1])]; }},
      {"index", [](auto &x, auto &s) { return x[0][s.numbers[0]]; }},
      {"pad",
       [](auto &x, auto &s) {
         std::vector<std::pair<int64_t, int64_t>> widths(static_cast<size_t>(x[0].rank()));
         widths[static_cast<size_t>(s.numbers[0])] = {0, 1};
         return pad(x[0], widths, 0.5);
       }},
      {"gather", [](auto &x, auto &s) { return gather(x[0], x[1] % s.numbers[0]); }},
      {"gather32", [](auto &x, auto &s) { return gather(x[0], cast(x[1] % s.numbers[0], i32)); }},
      {"gather_unchecked", [](auto &x, auto &) { return gather(x[0], x[1]); }},
      {"iadd", [](auto &x, auto &s) { return x[0] + s.numbers[0]; }},
      {"imul", [](auto &x, auto &s) { return x[0] * s.numbers[0]; }},
      {"imod", [](auto &x, auto &s) { return x[0] % s.numbers[0]; }},
      {"idiv", [](auto &x, auto &s) { return floor_div(x[0], s.numbers[0]); }},
      {"from_bool", [](auto &x, auto &) { return cast(x[0], i64); }},
      {"from_float", [](auto &x, auto &) { return cast(floor(sin(x[0]) * 3.0), i64); }},
      {"argmax", [](auto &x, auto &) { return argmax(x[0]); }},
      {"not", [](auto &x, auto &) { return !x[0]; }},
      {"and", [](auto &x, auto &) { return x[0] && x[1]; }},
      {"or", [](auto &x, auto &) { return x[0] || x[1]; }},
      {"is_even", [](auto &x, auto &) { return x[0] % 2 == 0; }},
      {"iless", [](auto &x, auto &s) { return x[0] < s.numbers[0]; }},
      {"less", [](auto &x, auto &s) { return reduce_sum(x[0]) < threshold(s); }},
      {"any_less", [](auto &x, auto &s) { return reduce_any(x[0] < threshold(s)); }},
  };
  return table;
}

} // namespace

Tensor applyNamed(const BodyStep &step, const Tensors &operands) {
  auto found = named().find(step.name);
  if (found == named().end())
    throw std::logic_error("no op " + step.name);
  return found->second(operands, step);
}

/// How far the largest of `x` is from the next one, along an axis or in all.
static Tensor gapOf(const Tensor &x, const Axes &axes) {
  Tensor largest = reduce_max(x, axes, true);
  return where(x == largest, 1.0, largest - x);
}

void BodyRun::watchKinks(const BodyStep &step, const Tensors &operands) const {
  detail::OutsideTrace outside; // no tape sees it
  const Tensor &x = operands[0];
  const std::string &name = step.name;
  if (name == "relu" || name == "abs")
    keepAway(x);
  else if (name == "clip")
    keepAway(concat({reshape(x, {-1}) + 0.5, reshape(x, {-1}) - 0.75}));
  else if (name == "maximum" || name == "minimum" || name == "where_less")
    keepAway(x - operands[1]);
  else if (name == "less")
    keepAway(reduce_sum(x) - threshold(step));
  else if (name == "any_less")
    keepAway(x - threshold(step));
  else if (name == "from_float")
    keepAway(sin(x) * 3.0 - round(sin(x) * 3.0));
  else if ((name == "argmax" || name == "max") && x.size() > 0) {
    keepAway(gapOf(x, name == "argmax" ? Axes::all() : axesOf(step)));
    // Equal ones are as close as can be.
    Tensor ties = reduce_sum(cast(x == reduce_max(x, name == "argmax" ? Axes::all() : axesOf(step), true), f64),
                             name == "argmax" ? Axes::all() : axesOf(step));
    keepAway(where(ties > 1.5, 0.0, 1.0));
  }
}

} // namespace wg::tests
