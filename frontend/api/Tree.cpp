// What is handed around between programs and the library: gradients, lists of sources, of seeds, of named variables.
#include <wengert/GradientTape.h>

#include "frontend/staging/Apply.h"

#include <algorithm>

namespace wg {

Grad::Grad() = default;
Grad::Grad(const Grad &) = default;
Grad::Grad(Grad &&) noexcept = default;
Grad &Grad::operator=(const Grad &) = default;
Grad &Grad::operator=(Grad &&) noexcept = default;
Grad::~Grad() = default;
Grad::Grad(Tensor value) : value_(std::move(value)) {}
Grad Grad::none(std::string reason) {
  Grad grad;
  grad.reason_ = std::move(reason);
  return grad;
}

Seeds::Seeds() = default;
Seeds::Seeds(const Seeds &) = default;
Seeds::Seeds(Seeds &&) noexcept = default;
Seeds &Seeds::operator=(const Seeds &) = default;
Seeds &Seeds::operator=(Seeds &&) noexcept = default;
Seeds::~Seeds() = default;
Seeds::Seeds(const Tensor &seed) : list{seed} {}
Seeds::Seeds(std::vector<Tensor> seeds) : list(std::move(seeds)) {}
Seeds::Seeds(std::initializer_list<Tensor> seeds) : list(seeds) {}
Seeds::Seeds(const std::vector<std::optional<Tensor>> &seeds) {
  for (const auto &seed : seeds)
    list.push_back(seed.value_or(Tensor()));
}

Targets::Targets(std::initializer_list<detail::Source> leaves, Where where) : list(leaves), where(where) {}
Targets::Targets(const Targets &) = default;
Targets &Targets::operator=(const Targets &) = default;
Targets::~Targets() = default;

namespace detail {
Source::Source(const Tensor &tensor) : tensor(tensor) {}
Source::Source(const Variable &variable) : variable(variable) {}
Source::Source(const Grad &grad) : tensor(grad.has_value() ? grad.value() : Tensor()), reason(grad.reason()) {}
Source::Source(const Source &) = default;
Source::Source(Source &&) noexcept = default;
Source &Source::operator=(const Source &) = default;
Source &Source::operator=(Source &&) noexcept = default;
Source::~Source() = default;

void append(std::vector<Source> &sources, const Tensor &tensor) { sources.emplace_back(tensor); }
void append(std::vector<Source> &sources, const Variable &variable) { sources.emplace_back(variable); }
void append(std::vector<Source> &sources, const Grad &grad) { sources.emplace_back(grad); }
void append(std::vector<Source> &sources, const Source &source) { sources.push_back(source); }

void append(std::vector<Grad> &grads, const Grad &grad) { grads.push_back(grad); }
void append(std::vector<char> &flags, bool flag) { flags.push_back(flag); }
std::vector<Grad> listOf(const Grad *grads, size_t count) { return {grads, grads + count}; }

std::vector<Grad> withoutNumbers(std::vector<Grad> grads) {
  std::erase_if(grads, [](const Grad &grad) { return !grad.has_value() && grad.reason() == kNotASource; });
  return grads;
}

std::vector<Grad> chosenOf(std::vector<Grad> grads, const std::vector<char> &flags) {
  if (grads.size() != flags.size())
    return grads;
  size_t kept = 0;
  for (size_t i = 0; i < grads.size(); ++i)
    if (flags[i] && kept++ != i)
      grads[kept - 1] = std::move(grads[i]);
  grads.resize(kept);
  return grads;
}

NamedVariables::~NamedVariables() = default;

void NamedVariables::addTrainable(const std::vector<std::pair<std::string, Variable>> &variables) {
  for (const auto &named : variables)
    if (named.second.trainable())
      list.push_back(named);
}

void NamedVariables::enter(std::string_view name) {
  path_.push_back(path_.empty() || path_.back().empty() ? std::string(name) : path_.back() + "." + std::string(name));
}
void NamedVariables::leave() { path_.pop_back(); }

void NamedVariables::add(const Variable &variable) {
  bool isNamed = variable.defined() && !variable.name().empty();
  list.emplace_back(isNamed ? variable.name() : path_.empty() ? "" : path_.back(), variable);
}

} // namespace detail
} // namespace wg
