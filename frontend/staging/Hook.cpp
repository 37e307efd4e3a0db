// with_gradient_hook: eagerly a record that calls the hook when the gradient is computed; in a trace a call of the
// identity, whose derivative calls the traced hook.
#include "frontend/ops/Operands.h"
#include "frontend/staging/Function.h"

#include <wengert/Transforms.h>

namespace wg::detail {

static constexpr char kName[] = "with_gradient_hook";

Tensor GradientHook::operator()(const Tensor &cotangent) const {
  Tensor next = call(cotangent);
  if (!next.defined())
    raiseOp(kName, "the hook returned an undefined tensor",
            "return the cotangent that goes on, or let the hook return nothing", {}, where);
  const TensorType &given = cotangent.body()->type, &returned = next.body()->type;
  if (given.dtype != returned.dtype || !sameSizes(given.shape, returned.shape))
    raiseOp(kName, "the hook returned " + toString(returned) + " for a cotangent that is " + toString(given),
            "return a tensor of the cotangent's dtype and shape", {returned, given}, where, ErrorKind::type);
  if (next.symbolic() && !level().trace)
    raiseOutOfScope(kName, next, where);
  return next;
}

static Tensor hookedTraced(const Tensor &x, const std::shared_ptr<const GradientHook> &hook, Trace &trace) {
  const Where &where = hook->where;
  // The hook is traced for a cotangent of x's type.
  std::shared_ptr<FunctionState> function = makeFunction("hook", {}, where);
  Arguments arguments(where);
  arguments.argument(0, 0);
  arguments(x);
  struct Context {
    const GradientHook &hook;
    const Tensor &x;
  } context{*hook, x};
  Body body{&context, [](void *given, TraceFrame &frame) {
              auto &[hook, x] = *static_cast<Context *>(given);
              Tensor cotangent = x;
              frame.place(cotangent);
              frame.result(hook(cotangent));
            }};
  std::shared_ptr<ConcreteState> traced = function->find(arguments, body, /*exact=*/true);
  if (!traced->assigned.empty())
    raiseOp(kName,
            "the hook assigns " + describe(*traced->inputs[traced->assigned[0]].state) +
                ", and in a traced function a hook cannot",
            "assign it after the gradient is computed", {}, where);
  llvm::SmallVector<mlir::Value> operands;
  size_t place = 0;
  for (size_t i = 0; i < traced->inputs.size(); ++i) {
    const TraceInput &input = traced->inputs[i];
    if (input.kind == TraceInput::argument)
      place = i;
    operands.push_back(trace.valueOf(input.kind == TraceInput::argument   ? x
                                     : input.kind == TraceInput::variable ? readVariable(input.state, where)
                                                                          : input.captured,
                                     kName, where));
  }
  return trace.hook(*traced->code, place, operands, where);
}

Tensor hooked(const Located &operand, std::function<Tensor(const Tensor &)> call) {
  const Where &where = operand.where();
  Tensor x = tensorOf(operand);
  const TensorType &type = x.body(where)->type;
  if (!runtime::isFloat(type.dtype))
    raiseOp(kName, "x is " + toString(type) + ", and gradients pass through floats only", "cast it first: cast(x, f32)",
            {type}, where, ErrorKind::type);
  auto hook = std::make_shared<const GradientHook>(GradientHook{std::move(call), where});
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive(kName, where, [&] { return hooked(Located(x, where), hook->call); });
  Level &here = level();
  if (here.trace)
    return hookedTraced(x, hook, *here.trace);
  if (x.symbolic())
    raiseOutOfScope(kName, x, where);
  Tensor y = makeTensor(arrayOf(x));
  for (Tape *tape : here.tapes)
    if (tape->recording && tape->tracks(x))
      tape->recordHook(hook, x, y);
  return y;
}

} // namespace wg::detail
