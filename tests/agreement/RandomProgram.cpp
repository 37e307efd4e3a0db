#include "tests/agreement/RandomProgram.h"

namespace wg::tests {

using namespace runtime;

RandomProgram partOf(const RandomProgram &program, const std::vector<int> &outputs, const std::set<int> &cuts) {
  int inputs = static_cast<int>(program.inputs.size()), count = static_cast<int>(program.values.size());
  auto isInput = [&](int value) { return value < inputs || cuts.count(value); };
  std::vector<bool> needed(static_cast<size_t>(count), false);
  for (int output : outputs)
    needed[static_cast<size_t>(output)] = true;
  for (int value = count - 1; value >= inputs; --value)
    if (needed[static_cast<size_t>(value)] && !isInput(value))
      for (int operand : program.steps[static_cast<size_t>(value - inputs)].operands)
        needed[static_cast<size_t>(operand)] = true;
  RandomProgram part;
  part.seed = program.seed;
  part.largest = program.largest;
  std::vector<int> number(static_cast<size_t>(count), -1);
  for (bool wantInputs : {true, false})
    for (int value = 0; value < count; ++value) {
      size_t v = static_cast<size_t>(value);
      if (!needed[v] || isInput(value) != wantInputs)
        continue;
      number[v] = static_cast<int>(part.values.size());
      part.values.push_back(program.values[v]);
      if (wantInputs) {
        part.inputs.push_back(program.values[v]);
        continue;
      }
      part.steps.push_back(program.steps[v - static_cast<size_t>(inputs)]);
      for (int &operand : part.steps.back().operands)
        operand = number[static_cast<size_t>(operand)];
    }
  for (int output : outputs)
    part.outputs.push_back(number[static_cast<size_t>(output)]);
  return part;
}

std::string toString(const RandomProgram &program) {
  auto attribute = [](const AttrValue &value) {
    struct {
      std::string operator()(int64_t x) { return std::to_string(x); }
      std::string operator()(double x) { return std::to_string(x); }
      std::string operator()(bool x) { return x ? "true" : "false"; }
      std::string operator()(DType x) { return std::string(nameOf(x)); }
      std::string operator()(const Ints &x) { return runtime::toString(x); }
      std::string operator()(const std::string &x) { return x; }
      std::string operator()(const Array &x) { return runtime::toString(x); }
    } print;
    return std::visit(print, value);
  };
  std::string text;
  for (size_t v = 0; v < program.values.size(); ++v) {
    text += "  %" + std::to_string(v) + " : " + runtime::toString(program.values[v].type) + " = ";
    if (v < program.inputs.size()) {
      text += "input\n";
      continue;
    }
    const RandomProgram::Step &step = program.steps[v - program.inputs.size()];
    text += recordOf(step.op).name;
    for (int operand : step.operands)
      text += " %" + std::to_string(operand);
    for (size_t i = 0; i < step.attrs.size(); ++i)
      text += (i == 0 ? " | " : "; ") + attribute(step.attrs[i]);
    text += "\n";
  }
  text += "  outputs";
  for (int output : program.outputs)
    text += " %" + std::to_string(output);
  return text + "\n";
}

} // namespace wg::tests
