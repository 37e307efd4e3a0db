// Are the numbers and gradients what a step needs? And how several variables change as one.
#include "frontend/optim/State.h"

#include "frontend/ops/Operands.h"
#include "wengert/Function.h"

#include <limits>
#include <mutex>
#include <sstream>

namespace wg::detail {

double within(const char *op, const char *name, double value, bool fits, const char *range, const Where &where) {
  if (!fits) {
    std::ostringstream number;
    number << value;
    raise({.op = op,
           .message = std::string(name) + " is " + number.str() + ", but must be " + range,
           .remedy = std::string("give a ") + name + " that is " + range},
          where);
  }
  return value;
}

void checkGradient(const char *op, const Grad &grad, const Variable &variable, const Where &where,
                   const std::string &known) {
  TensorType type{variable.dtype(where), variable.shape(where)};
  if (!grad.has_value())
    return;
  currentValue(variable.state(), where); // no parameter of a trace that has ended
  const Tensor &value = grad.is_sparse() ? grad.sparse_rows().rows : grad.value();
  const TensorType given{grad.dtype(), grad.shape()};
  std::string name =
      variable.name().empty() && !known.empty() ? "variable '" + known + "'" : describe(*variable.state());
  if (!runtime::isFloat(type.dtype))
    raiseOp(op, name + " is " + toString(type) + ", and a step changes floats only",
            "leave it out of the variables, or make it a float", {type}, where, ErrorKind::type);
  if (given.dtype != type.dtype || !sameSizes(given.shape, type.shape))
    raiseOp(op, "the gradient of " + name + " is " + toString(given) + ", the variable " + toString(type),
            "pass the gradients in the order of the variables, each of its variable's shape and dtype", {given, type},
            where, given.dtype != type.dtype ? ErrorKind::type : ErrorKind::value);
  for (const Tensor &part :
       grad.is_sparse() ? std::vector<Tensor>{value, grad.sparse_rows().indices} : std::vector<Tensor>{value})
    if (stateOf(part)->spec || (stateOf(part)->symbol && !level().trace))
      raiseOutOfScope(op, part, where);
  if (grad.is_sparse() && !grad.sparse_rows().indices.symbolic())
    for (int64_t index : grad.sparse_rows().indices.to_vector<int64_t>(where))
      if (index < 0 || index >= type.shape.dim(0))
        raiseOp(op,
                "the gradient of " + name + " has a row " + std::to_string(index) + ", and the variable is " +
                    toString(type),
                "its indices lie in [0, " + std::to_string(type.shape.dim(0)) + ")", {type}, where, ErrorKind::lookup);
}

std::pair<Tensor, Tensor> increment(const Variable &count) {
  if (tracing()) {
    Tensor before = count, after = before + int64_t(1);
    count.assign(after);
    return {before, after};
  }
  VariableState &state = *variableBehind(count.state());
  std::unique_lock lock(state.mutex);
  Tensor before = state.current, after = before + int64_t(1);
  state.current = makeTensor(arrayOf(after)); // of its own, as every variable's value
  return {before, after};
}

void assignAll(const std::vector<std::pair<Variable, Tensor>> &changes, const Where &where,
               const std::vector<RowChange> &rows) {
  if (tracing()) {
    for (const auto &[variable, value] : changes)
      variable.assign(Located(value, where));
    addRows(rows, where);
    return;
  }
  std::vector<std::pair<std::shared_ptr<VariableState>, Tensor>> values;
  for (const auto &[variable, value] : changes) {
    currentValue(variable.state(), where);                             // the same
    values.emplace_back(variable.state(), makeTensor(arrayOf(value))); // of its own, as every variable's value
  }
  addRows(rows, where);
  exchangeValues(values);
}

Tensor isSubnormal(const Tensor &x) {
  return abs(x) < (x.dtype() == f32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min());
}
Tensor normalOrZero(const Tensor &x) { return where(isSubnormal(x), 0, x); }

} // namespace wg::detail
