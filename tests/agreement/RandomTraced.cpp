#include "tests/agreement/RandomTraced.h"

#include "codegen/interpret/Interpret.h"
#include "frontend/staging/Apply.h"
#include "frontend/staging/Function.h"

#include <wengert/wengert.h>

namespace wg::tests {

std::optional<TracedSteps> stepsOf(const TracedFunction &f, const std::vector<runtime::Array> &operands) {
  std::vector<Tensor> tensors;
  for (const runtime::Array &operand : operands)
    tensors.push_back(wg::detail::makeTensor(operand));
  std::optional<codegen::Program> program;
  try {
    auto function = wg::function("traced", [&](const std::vector<Tensor> &x) { return f(x); }, {.interpret = true});
    ConcreteFunction concrete = function.trace(tensors);
    mlir::FailureOr<codegen::Program> flat = codegen::flatten(concrete.state()->code->function());
    if (mlir::failed(flat))
      return std::nullopt;
    program = std::move(*flat);
  } catch (const Error &) {
    return std::nullopt;
  }
  if (program->inputs.size() != operands.size() || program->outputs.size() != 1)
    return std::nullopt;
  TracedSteps traced;
  int count = static_cast<int>(operands.size());
  std::vector<int> valueIn(program->numSlots, -1); // slots are used again
  for (int i = 0; i < count; ++i)
    valueIn[static_cast<size_t>(i)] = i;
  auto append = [&](RandomProgram::Step step, size_t slot) {
    traced.steps.push_back(std::move(step));
    valueIn[slot] = count + static_cast<int>(traced.steps.size()) - 1;
  };
  for (size_t i = 0; i < program->constants.size(); ++i)
    append({runtime::OpId::constant, runtime::ConstantAttrs::make(program->constants[i]), {}}, operands.size() + i);
  for (const codegen::Row &row : program->rows) {
    if (row.numResults != 1 || row.numChildren != 0 || row.op == runtime::OpId::call || row.op == runtime::OpId::host ||
        row.op == runtime::OpId::dim || row.op == runtime::OpId::size)
      return std::nullopt;
    const uint32_t *slots = program->slots.data() + row.first;
    RandomProgram::Step step{row.op, row.attrs, {}};
    for (uint32_t i = 0; i < row.numOperands; ++i)
      step.operands.push_back(valueIn[slots[i]]);
    append(std::move(step), slots[row.numOperands]);
  }
  traced.result = valueIn[program->outputs[0]];
  return traced;
}

} // namespace wg::tests
