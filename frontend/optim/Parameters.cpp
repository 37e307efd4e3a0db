// Which variables are meant? Each once, under a name of its own.
#include "wengert/optim/Parameters.h"

namespace wg::optim {

void Parameters::add(const std::string &name, const Variable &variable) {
  if (!ids_.insert(variable.id()).second)
    return;
  std::string base = name.empty() ? "variable" : name, unique = base;
  for (int number = 1; !names_.insert(unique).second; ++number)
    unique = base + "_" + std::to_string(number);
  variables_.emplace_back(unique, variable);
}

} // namespace wg::optim
