// Rules of C++ in the place of derivatives: with_gradient_hook, custom_gradient, prevent_gradient. Eagerly a record
// that calls the rule when the gradient is computed; in a trace a call of the identity, whose derivative calls the
// traced rule.
#include "frontend/ops/Operands.h"
#include "frontend/staging/Function.h"
#include "frontend/staging/TapeProgram.h"

#include <wengert/Control.h>
#include <wengert/CustomGradient.h>

namespace wg::detail {

//===- Rules ------------------------------------------------------------------------------------------------------===//

static std::vector<Tensor> checked(const char *name, const char *what, std::vector<Tensor> made,
                                   std::span<const TensorType> types, const Where &where) {
  if (made.size() != types.size())
    raiseOp(name,
            "the rule returned " + std::to_string(made.size()) + " " + what + ", and there are " +
                std::to_string(types.size()) + " to be returned",
            "return one for each float tensor; a default-constructed one stands for zeros", {}, where);
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i].defined()) {
      made[i] = zeros(types[i].shape, types[i].dtype, where);
      continue;
    }
    const TensorType &returned = made[i].body()->type;
    if (types[i].dtype != returned.dtype || !sameSizes(types[i].shape, returned.shape))
      raiseOp(name, "the rule returned " + toString(returned) + " for what is " + toString(types[i]),
              "return a tensor of its dtype and shape", {returned, types[i]}, where, ErrorKind::type);
    if (made[i].symbolic() && !level().trace)
      raiseOutOfScope(name, made[i], where);
  }
  return made;
}

std::vector<Tensor> GradientRule::pull(const std::vector<Tensor> &cotangents,
                                       std::span<const TensorType> operands) const {
  return checked(name, "cotangents", vjp(cotangents), operands, where);
}

std::vector<Tensor> GradientRule::push(const std::vector<Tensor> &tangents, std::span<const TensorType> results) const {
  if (jvp)
    return checked(name, "tangents", jvp(tangents), results, where);
  // vjp is linear in its cotangents: its derivative by them, applied to the tangents.
  std::vector<Tensor> standIns, moved(results.size());
  for (const TensorType &result : results)
    standIns.push_back(zeros(result.shape, result.dtype, where));
  std::vector<TensorType> operands;
  for (const Tensor &tangent : tangents)
    operands.push_back(tangent.body()->type);
  GradientTape tape;
  std::vector<Source> sources(standIns.begin(), standIns.end());
  for (const Tensor &standIn : standIns)
    tape.watch(standIn);
  std::vector<Tensor> cotangents = pull(standIns, operands);
  std::vector<Grad> transposed = tape.gradient(cotangents, standIns, {.output_gradients = Seeds(tangents)});
  for (size_t i = 0; i < moved.size(); ++i)
    if (transposed[i].has_value())
      moved[i] = transposed[i].value();
    else if (transposed[i].reason().starts_with("blocked"))
      raiseOp(name, "forward mode transposes the vjp, which is " + transposed[i].reason(), "give it a jvp", {}, where);
  return checked(name, "tangents", std::move(moved), results, where);
}

/// `call` traced for tensors of these types.
static std::shared_ptr<ConcreteState>
traceRule(const char *name, const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &call,
          std::span<const Tensor> given, std::span<const TensorType> wanted, const char *made, const char *what,
          const Where &where, const FunctionOptions &options = {}) {
  Arguments arguments(where);
  arguments.argument(0, 0);
  for (const Tensor &each : given)
    arguments(each);
  struct Context {
    const char *name, *what;
    const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &call;
    std::span<const Tensor> given;
    std::span<const TensorType> wanted;
    const Where &where;
  } context{name, made, call, given, wanted, where};
  Body body{&context, [](void *opaque, TraceFrame &frame) {
              auto &own = *static_cast<Context *>(opaque);
              std::vector<Tensor> placed(own.given.begin(), own.given.end());
              for (Tensor &each : placed)
                frame.place(each);
              std::vector<Tensor> results = checked(own.name, own.what, own.call(placed), own.wanted, own.where);
              for (const Tensor &result : results)
                frame.result(afterEffects(result, own.where));
            }};
  std::shared_ptr<ConcreteState> traced = makeFunction(name, options, where)->find(arguments, body, /*exact=*/true);
  for (uint32_t input : traced->assigned)
    if (const VariableState &variable = *traced->inputs[input].state; !variable.isOrder)
      raiseOp(name,
              "the " + std::string(what) + " assigns " + describe(variable) + ", and in a traced function it cannot",
              "assign it after the gradient is computed", {}, where);
  return traced;
}

static bool isFloat(const Tensor &x) { return runtime::isFloat(x.body()->type.dtype); }

/// `results` under identities of their own, whose derivative is the rule.
static std::vector<Tensor> withRule(std::shared_ptr<const GradientRule> rule, const char *what,
                                    std::span<const Tensor> results, std::span<const Tensor> operands) {
  const Where &where = rule->where;
  Level &here = level();
  if (!here.trace) {
    for (const Tensor &x : results)
      if (x.symbolic())
        raiseOutOfScope(rule->name, x, where);
    std::vector<Tensor> made;
    for (const Tensor &x : results)
      made.push_back(makeTensor(arrayOf(x)));
    std::vector<const Tensor *> list;
    for (const Tensor &x : operands)
      list.push_back(&x);
    for (Tape *tape : here.tapes)
      if (tape->recording &&
          std::any_of(operands.begin(), operands.end(), [&](const Tensor &x) { return tape->tracks(x); }))
        tape->recordRule(rule, list, made);
    return made;
  }
  std::vector<Tensor> cotangents, tangents;
  std::vector<TensorType> ofResults, ofOperands;
  llvm::SmallVector<mlir::Value> resultValues, operandValues;
  for (const Tensor &x : results) {
    resultValues.push_back(here.trace->valueOf(x, rule->name, where));
    if (isFloat(x))
      cotangents.push_back(x), ofResults.push_back(x.body()->type);
  }
  for (const Tensor &x : operands) {
    operandValues.push_back(here.trace->valueOf(x, rule->name, where));
    if (isFloat(x))
      tangents.push_back(x), ofOperands.push_back(x.body()->type);
  }
  TracedRule traced{.name = rule->name, .what = what, .results = resultValues, .operands = operandValues, .vjp = {}};
  traced.vjp = traceRule(rule->name, rule->vjp, cotangents, ofOperands, "cotangents", what, where);
  if (rule->jvp)
    traced.jvp = traceRule(rule->name, rule->jvp, tangents, ofResults, "tangents", what, where);
  traced.transposes = rule->transposes;
  return here.trace->withRule(traced, where);
}

TracedRuleFunctions traceRuleOf(const EagerTape &tape, const Record &record, const GradientRule &rule) {
  std::vector<Tensor> operands, results;
  std::vector<TensorType> ofOperands, ofResults;
  for (uint32_t i = 0; i < record.numOperands + record.numResults; ++i) {
    const Tensor &x = tape.values[static_cast<size_t>(tape.slots[record.first + i])];
    if (!isFloat(x))
      continue;
    (i < record.numOperands ? operands : results).push_back(x);
    (i < record.numOperands ? ofOperands : ofResults).push_back(x.body()->type);
  }
  // Run op by op, as the rule is: the same bits.
  FunctionOptions options{.interpret = true};
  TracedRuleFunctions traced;
  traced.vjp = traceRule(rule.name, rule.vjp, results, ofOperands, "cotangents", "rule", rule.where, options);
  if (rule.jvp)
    traced.jvp = traceRule(rule.name, rule.jvp, operands, ofResults, "tangents", "rule", rule.where, options);
  return traced;
}

//===- with_gradient_hook -----------------------------------------------------------------------------------------===//

Tensor hooked(const Located &operand, std::function<Tensor(const Tensor &)> call) {
  constexpr const char *kName = "with_gradient_hook";
  const Where &where = operand.where();
  Tensor x = tensorOf(operand);
  const TensorType &type = x.body(where)->type;
  if (!runtime::isFloat(type.dtype))
    raiseOp(kName, "x is " + toString(type) + ", and gradients pass through floats only", "cast it first: cast(x, f32)",
            {type}, where, ErrorKind::type);
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive(kName, where, [&] { return hooked(Located(x, where), call); });
  auto rule = std::make_shared<GradientRule>(GradientRule{.name = kName, .where = where});
  rule->vjp = [call = std::move(call), where](const std::vector<Tensor> &cotangents) {
    Tensor next = call(cotangents[0]);
    if (!next.defined())
      raiseOp(kName, "the hook returned an undefined tensor",
              "return the cotangent that goes on, or let the hook return nothing", {}, where);
    const TensorType &given = cotangents[0].body()->type, &returned = next.body()->type;
    if (given.dtype != returned.dtype || !sameSizes(given.shape, returned.shape))
      raiseOp(kName, "the hook returned " + toString(returned) + " for a cotangent that is " + toString(given),
              "return a tensor of the cotangent's dtype and shape", {returned, given}, where, ErrorKind::type);
    return std::vector<Tensor>{next};
  };
  return withRule(std::move(rule), "gradient hook", {&x, 1}, {&x, 1})[0];
}

//===- custom_gradient --------------------------------------------------------------------------------------------===//

/// A tape that sees which variables are read while it lives.
struct VariableProbe::State {
  std::unique_ptr<Tape, void (*)(Tape *)> tape{new Tape(GradientTapeOptions{}), dropTape};
};

VariableProbe::VariableProbe() : state_(std::make_unique<State>()) { state_->tape->recording = true; }
VariableProbe::~VariableProbe() = default;

/// Which of these tensors some of `outputs` were computed from under the tape.
static std::vector<bool> reached(const Tape &tape, std::span<const Tensor> outputs, std::span<const Tensor> reads) {
  std::vector<bool> found;
  if (tape.traced) {
    Trace &trace = *tape.home()->trace;
    llvm::SmallVector<mlir::Value> work;
    llvm::DenseSet<mlir::Value> seen;
    for (const Tensor &output : outputs)
      work.push_back(trace.valueOf(output, "custom_gradient", {}));
    while (!work.empty())
      if (mlir::Value value = work.pop_back_val(); seen.insert(value).second)
        if (mlir::Operation *op = value.getDefiningOp();
            op && tape.traced->ops.contains(op) && !llvm::isa<ir::NotDifferentiable>(op))
          work.append(op->operand_begin(), op->operand_end());
    for (const Tensor &read : reads)
      found.push_back(seen.contains(trace.valueOf(read, "custom_gradient", {})));
    return found;
  }
  const EagerTape &eager = tape.eager;
  std::vector<bool> needed(eager.values.size(), false);
  for (const Tensor &output : outputs)
    if (int32_t slot = eager.slotOf.find(stateOf(output)->id); slot >= 0)
      needed[static_cast<size_t>(slot)] = true;
  for (size_t i = eager.records.size(); i-- > 0;) {
    const Record &record = eager.records[i];
    bool isNeeded = false;
    for (uint32_t k = 0; k < record.numResults; ++k)
      isNeeded = isNeeded || needed[static_cast<size_t>(eager.slots[record.first + record.numOperands + k])];
    if (isNeeded && (record.call >= 0 || runtime::recordOf(record.op).differentiable))
      for (uint32_t k = 0; k < record.numOperands; ++k)
        needed[static_cast<size_t>(eager.slots[record.first + k])] = true;
  }
  for (const Tensor &read : reads) {
    int32_t slot = eager.slotOf.find(stateOf(read)->id);
    found.push_back(slot >= 0 && needed[static_cast<size_t>(slot)]);
  }
  return found;
}

std::vector<Variable> VariableProbe::end(const std::vector<Tensor> &outputs, const std::vector<Source> &arguments) {
  Tape &tape = *state_->tape;
  tape.recording = false;
  std::vector<Variable> variables;
  for (const Tape::WatchedVariable &watched : tape.variables) {
    bool isArgument = std::any_of(arguments.begin(), arguments.end(), [&](const Source &argument) {
      return argument.variable.defined() && argument.variable.id() == watched.variable->id;
    });
    std::vector<bool> used = reached(tape, outputs, watched.reads);
    if (!isArgument && std::find(used.begin(), used.end(), true) != used.end())
      variables.push_back(Variable(watched.variable));
  }
  state_.reset();
  return variables;
}

void raiseVariables(const std::vector<Variable> &variables, const Where &where) {
  std::string names;
  for (const Variable &variable : variables)
    names += (names.empty() ? "" : ", ") + describe(*variable.state());
  raiseOp("custom_gradient", "the function uses " + names + ", which is no argument, and its vjp takes no variables",
          "let vjp(cotangent, residuals, variables) return a std::pair of the gradients of the arguments and a "
          "std::vector of those of the variables, or pass the variables as arguments",
          {}, where);
}

std::vector<Tensor> withCustomRule(CustomRule rule, const std::vector<Source> &arguments,
                                   const std::vector<Variable> &variables, const std::vector<Tensor> &outputs,
                                   const Where &where) {
  constexpr const char *kName = "custom_gradient";
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive(kName, where,
                            [&] { return withCustomRule(std::move(rule), arguments, variables, outputs, where); });
  std::vector<Tensor> operands;
  for (const Source &argument : arguments)
    operands.push_back(argument.variable.defined() ? readVariable(argument.variable.state(), where) : argument.tensor);
  for (const Variable &variable : variables)
    operands.push_back(readVariable(variable.state(), where));
  std::vector<bool> isFloatOperand, isFloatResult;
  for (const Tensor &x : operands)
    isFloatOperand.push_back(isFloat(x));
  for (const Tensor &x : outputs) {
    if (!x.defined())
      raiseOp(kName, "the function returned an undefined tensor", "give it a value", {}, where);
    isFloatResult.push_back(isFloat(x));
  }
  /// What is given for the floats, each in its place; undefined elsewhere.
  auto spread = [](const std::vector<bool> &has, const std::vector<Tensor> &given) {
    std::vector<Tensor> all;
    size_t next = 0;
    for (bool each : has)
      all.push_back(each ? given[next++] : Tensor());
    return all;
  };
  auto onlyFloats = [](const std::vector<bool> &has, std::vector<Tensor> all) {
    std::vector<Tensor> floats;
    for (size_t i = 0; i < std::min(has.size(), all.size()); ++i)
      if (has[i])
        floats.push_back(all[i]);
    return floats;
  };
  auto made = std::make_shared<GradientRule>(GradientRule{.name = kName, .where = where});
  made->vjp = [=, vjp = std::move(rule.vjp)](const std::vector<Tensor> &cotangents) {
    std::vector<Tensor> all = vjp(spread(isFloatResult, cotangents));
    if (all.size() != isFloatOperand.size())
      raiseOp(kName,
              "vjp returned " + std::to_string(all.size()) + " gradients, and the function has " +
                  std::to_string(isFloatOperand.size()) + " arguments and variables",
              "return one for each, in their structure; a default-constructed tensor stands for zeros", {}, where);
    return onlyFloats(isFloatOperand, std::move(all));
  };
  if (rule.jvp)
    made->jvp = [=, jvp = std::move(rule.jvp)](const std::vector<Tensor> &tangents) {
      std::vector<Tensor> all = jvp(spread(isFloatOperand, tangents));
      if (all.size() != isFloatResult.size())
        raiseOp(kName,
                "jvp returned " + std::to_string(all.size()) + " tangents, and the function has " +
                    std::to_string(isFloatResult.size()) + " results",
                "return one for each, in their structure", {}, where);
      return onlyFloats(isFloatResult, std::move(all));
    };
  made->transposes = true;
  return withRule(std::move(made), "rule of custom_gradient", outputs, operands);
}

//===- prevent_gradient, grad_pass_through ------------------------------------------------------------------------===//

} // namespace wg::detail

namespace wg {

Tensor prevent_gradient(const Located &operand, const std::string &message) {
  constexpr const char *kName = "prevent_gradient";
  const Where &where = operand.where();
  Tensor x = detail::tensorOf(operand);
  if (ir::threadEnds()) [[unlikely]]
    return detail::whereMlirIsAlive(kName, where, [&] { return prevent_gradient(Located(x, where), message); });
  if (detail::Trace *trace = detail::level().trace)
    return trace->prevented(trace->valueOf(x, kName, where), message, where);
  auto rule = std::make_shared<detail::GradientRule>(detail::GradientRule{.name = kName, .where = where});
  rule->vjp = [message, where](const std::vector<Tensor> &) -> std::vector<Tensor> {
    detail::raiseOp(kName, message, "", {}, where);
  };
  rule->jvp = rule->vjp;
  return detail::withRule(std::move(rule), kName, {&x, 1}, {&x, 1})[0];
}

Tensor detail::passedThrough(const Tensor &y, const Tensor &x, const Where &where) {
  const TensorType &out = y.body(where)->type, &in = x.body(where)->type;
  if (out.dtype != in.dtype || !detail::sameSizes(out.shape, in.shape))
    raiseOp("grad_pass_through", "the function makes " + toString(out) + " of " + toString(in),
            "its gradient is that of the identity: return what has the argument's dtype and shape", {out, in}, where,
            ErrorKind::type);
  Tensor stopped = stop_gradient(Located(y, where)), result;
  const Tensor *operands[] = {&stopped, &x};
  applyOp(runtime::OpId::version, {}, operands, {&result, 1}, where);
  return result;
}

} // namespace wg
