// State: how a variable is read, and what assigning to it does, outside and inside a trace.
#include <wengert/Variable.h>

#include "frontend/ops/Operands.h"
#include "frontend/staging/Apply.h"
#include "frontend/staging/Tape.h"

#include <mutex>
#include <ostream>

namespace wg {

using detail::VariableState;

/// The same elements under a new identity: a variable's value is no one else's tensor.
static Tensor ownCopy(const Tensor &tensor) { return detail::makeTensor(detail::arrayOf(tensor)); }

Variable::Variable(const Tensor &initial, VariableOptions options, Where where) {
  static constinit std::atomic<int64_t> nextId = 0;
  if (detail::level().trace)
    detail::raiseOp("variable", "a variable is made while a function is traced, which would make one for every trace",
                    "make it outside of the function, or once inside of at_trace_time", {}, where);
  initial.body(where);
  if (initial.symbolic())
    detail::raiseOp("variable", "the initial value is symbolic",
                    "compute it outside of the traced function, or inside of at_trace_time", {}, where);
  state_ = std::make_shared<VariableState>();
  state_->type = initial.body()->type;
  state_->name = std::move(options.name);
  state_->trainable = options.trainable;
  state_->id = nextId++;
  state_->current = ownCopy(initial);
}

Variable::Variable() = default;
Variable::Variable(const Variable &) = default;
Variable::Variable(Variable &&) noexcept = default;
Variable &Variable::operator=(const Variable &) = default;
Variable &Variable::operator=(Variable &&) noexcept = default;
Variable::~Variable() = default;

static const std::shared_ptr<VariableState> &checked(const std::shared_ptr<VariableState> &state, const Where &where) {
  if (!state)
    detail::raiseOp("variable", "it is undefined: a default-constructed variable names none",
                    "give it a value: Variable w(0.0f)", {}, where);
  return state;
}

const TensorType &Variable::type(const Where &where) const { return checked(state_, where)->type; }
std::string detail::describe(const VariableState &variable) {
  return variable.name.empty() ? "an unnamed variable (" + toString(variable.type) + ")"
                               : "variable '" + variable.name + "'";
}

const std::string &Variable::name() const & { return checked(state_, {})->name; }
std::string Variable::name() const && { return checked(state_, {})->name; }
bool Variable::trainable() const { return checked(state_, {})->trainable; }
int64_t Variable::id() const { return checked(state_, {})->id; }

Tensor Variable::value(Where where) const { return detail::readVariable(checked(state_, where), where); }

Located::Located(const Variable &variable, Where where) : held_(variable.value(where)), where_(where) {}

void detail::raiseOutOfScope(const VariableState &variable, const Where &where) {
  std::string made = toString(variable.made);
  raiseOp("variable",
          "the parameter of a traced function is out of scope and cannot be used here" +
              (made.empty() ? "" : "; it was made for the call at " + made),
          "use the variable that was passed", {variable.type}, where, ErrorKind::type);
}

Tensor detail::currentValue(const std::shared_ptr<VariableState> &place, const Where &where) {
  const std::shared_ptr<VariableState> &variable = variableBehind(place);
  if (Trace *trace = level().trace)
    return readIn(*trace, variable, where);
  if (variable->birth)
    raiseOutOfScope(*variable, where);
  std::shared_lock lock(variable->mutex);
  return variable->current;
}

/// Tells the tapes of this level of a read.
static Tensor told(const std::shared_ptr<VariableState> &variable, Tensor value) {
  for (detail::Tape *tape : detail::level().tapes)
    if (tape->recording)
      tape->variableRead(variable, value);
  return value;
}

/// A place is read by reading the variable: who watches that one knows the value, and where it goes on from.
Tensor detail::readVariable(const std::shared_ptr<VariableState> &variable, const Where &where) {
  return told(variable, variable->of ? fresh(readVariable(variable->of, where)) : currentValue(variable, where));
}

Tensor detail::readLocked(const std::shared_ptr<VariableState> &variable) {
  return told(variable, variable->of ? fresh(readLocked(variable->of)) : variable->current);
}

bool detail::isSameArgument(const Variable &a, const Variable &b) {
  return countsAlone(*a.state()) || countsAlone(*b.state()) ? a.state() == b.state() : a.is(b);
}

void detail::exchangeValues(std::span<std::pair<std::shared_ptr<VariableState>, Tensor>> values) noexcept {
  for (auto &[place, value] : values) {
    const std::shared_ptr<VariableState> &variable = variableBehind(place);
    std::unique_lock lock(variable->mutex);
    std::swap(variable->current, value);
  }
}

void Variable::assign(const Located &value) const {
  const TensorType &type = checked(state_, value.where())->type;
  Tensor next = detail::tensorOf(value, type.dtype);
  if (value.isLiteral() && type.shape.rank() != 0)
    next = detail::filledWith(value, type.dtype, type.shape, value.where());
  next.body(value.where());
  if (next.body()->type.dtype != type.dtype)
    detail::raiseOp("assign", "the variable is " + toString(type) + ", the value " + toString(next.body()->type),
                    "cast the value: cast(x, " + std::string(nameOf(type.dtype)) + ")", {type, next.body()->type},
                    value.where(), ErrorKind::type);
  if (!next.body()->type.shape.isStatic() && detail::sameSizes(next.body()->type.shape, type.shape))
    next = broadcast_to(Located(next, value.where()), type.shape); // its open sizes are the variable's
  if (!(next.body()->type == type))
    detail::raiseOp("assign",
                    "the shape of a variable is fixed: it is " + toString(type) + ", the value " +
                        toString(next.body()->type),
                    "make a new variable for another shape", {type, next.body()->type}, value.where());
  const std::shared_ptr<VariableState> &variable = detail::variableBehind(state_);
  if (detail::Trace *trace = detail::level().trace)
    return detail::assignIn(*trace, variable, next, value.where());
  if (variable->birth)
    detail::raiseOutOfScope(*variable, value.where());
  if (next.symbolic())
    detail::raiseOutOfScope("assign", next, value.where());
  Tensor own = ownCopy(next);
  std::unique_lock lock(variable->mutex);
  std::swap(variable->current, own); // the old value dies outside of the lock
}

void Variable::assign_add(const Located &delta) const {
  assign(Located(Located(*this, delta.where()) + delta, delta.where()));
}
void Variable::assign_sub(const Located &delta) const {
  assign(Located(Located(*this, delta.where()) - delta, delta.where()));
}

std::ostream &operator<<(std::ostream &out, const Variable &variable) {
  if (!variable.defined())
    return out << "Variable(undefined)";
  const std::shared_ptr<VariableState> &state = detail::variableBehind(variable.state());
  // Outside of its trace, a parameter has a type and no value.
  Tensor value = state->birth && !detail::level().trace ? Tensor(TensorSpec{state->type.dtype, state->type.shape})
                                                        : detail::currentValue(state, {});
  std::string text = to_string(value);
  return out << "Variable(\"" << variable.name() << "\", " << text.substr(7);
}

} // namespace wg
