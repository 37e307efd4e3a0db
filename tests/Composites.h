// The samples of tests/Composites.inc as data: functions of tensors that are no op of their own, run
// eagerly or traced to a module.
#pragma once

#include "frontend/staging/Function.h"
#include "tests/Samples.h"

#include <wengert/wengert.h>

#include "mlir/IR/OwningOpRef.h"

namespace wg::tests {

struct Composite {
  enum Kind { smooth, kink, none };
  const char *name;
  Kind kind;
  const char *text; ///< its operands
  Tensor (*call)(const std::vector<Tensor> &x);
};

inline std::span<const Composite> allComposites() {
  static const Composite composites[] = {
#define WG_COMPOSITE(name, kind, text, ...)                                                                            \
  {#name, Composite::kind, text, [](const std::vector<Tensor> &x) -> Tensor { return __VA_ARGS__; }},
#define WG_NO_COMPOSITE(name, why)
#include "tests/Composites.inc"
#undef WG_COMPOSITE
#undef WG_NO_COMPOSITE
  };
  return composites;
}

inline std::vector<Tensor> tensorsOf(const std::vector<runtime::Array> &arrays) {
  std::vector<Tensor> tensors;
  for (const runtime::Array &array : arrays)
    tensors.push_back(wg::detail::makeTensor(array));
  return tensors;
}

/// The gradient of the sum of f's elements, each times its number + 1, by the float operands, one after the other in
/// one vector; for composites with a derivative.
inline Tensor gradientOf(const Composite &composite, const std::vector<Tensor> &x) {
  GradientTape tape;
  std::vector<Tensor> floats;
  for (const Tensor &operand : x)
    if (runtime::isFloat(operand.dtype()))
      floats.push_back(operand);
  tape.watch(floats);
  Tensor y = composite.call(x);
  Tensor weights = reshape(linspace(1, static_cast<double>(y.size()), y.size(), y.dtype()), y.shape());
  std::vector<Grad> grads = tape.gradient(y * weights, floats);
  std::vector<Tensor> parts;
  for (size_t i = 0; i < floats.size(); ++i)
    parts.push_back(reshape(grads[i].value(), {floats[i].size()}));
  return concat(parts);
}

/// `f` of tensors of the operands' types as a module with one public function `composite`.
template <class F> mlir::OwningOpRef<mlir::ModuleOp> tracedModule(F f, const std::vector<runtime::Array> &operands) {
  auto traced = wg::function("composite", [f](const std::vector<Tensor> &x) { return f(x); }, {.interpret = true});
  ConcreteFunction concrete = traced.trace(tensorsOf(operands));
  return mlir::OwningOpRef<mlir::ModuleOp>(concrete.state()->code->module().clone());
}

} // namespace wg::tests
