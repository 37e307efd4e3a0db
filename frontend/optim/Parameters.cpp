// Which variables are meant? Each once, under a name of its own.
#include "wengert/optim/Parameters.h"

namespace wg::optim {

Parameters::Parameters(std::initializer_list<Variable> variables) : Parameters(std::vector<Variable>(variables)) {}
Parameters::Parameters(const Parameters &) = default;
Parameters::Parameters(Parameters &&) noexcept = default;
Parameters &Parameters::operator=(const Parameters &) = default;
Parameters &Parameters::operator=(Parameters &&) noexcept = default;
Parameters::~Parameters() = default;

std::vector<nn::Module::Named> Parameters::named_variables() const && { return variables_; }

void Parameters::add(const detail::NamedVariables &variables) {
  for (const auto &[name, variable] : variables.list) {
    if (!ids_.insert(variable.id()).second)
      continue;
    std::string base = name.empty() ? "variable" : name, unique = base;
    for (int number = 1; !names_.insert(unique).second; ++number)
      unique = base + "_" + std::to_string(number);
    variables_.emplace_back(unique, variable);
  }
}

} // namespace wg::optim
