// The variables that something trains, averages or keeps, as it takes them: a model, or a structure of variables.
#pragma once

#include <wengert/GradientTape.h>
#include <wengert/nn/Module.h>

#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace wg::optim {

/// Variables under names that differ. Made implicitly from a model, whose trainable variables they are, under its names
/// (`hidden.weight`), or from a variable, a list, or a structure of them, under the names that these have. One without
/// a name has that of the map's key or the struct's field that it is in, or else `variable`; equal names get a number:
/// `w`, `w_1`. A variable that is there twice counts once.
class WENGERT_API Parameters {
public:
  template <class T>
    requires(!std::same_as<T, Parameters>)
  Parameters(const T &source) {
    if constexpr (detail::checkVariables<T>())
      add(detail::NamedVariables(source));
  }
  Parameters(std::initializer_list<Variable> variables);
  Parameters(const Parameters &other);
  Parameters(Parameters &&other) noexcept;
  Parameters &operator=(const Parameters &other);
  Parameters &operator=(Parameters &&other) noexcept;
  ~Parameters();

  const std::vector<nn::Module::Named> &named_variables() const & { return variables_; }
  std::vector<nn::Module::Named> named_variables() const &&;
  size_t size() const { return variables_.size(); }

private:
  void add(const detail::NamedVariables &variables);
  std::vector<nn::Module::Named> variables_;
  std::set<int64_t> ids_;
  std::set<std::string> names_;
};

} // namespace wg::optim
