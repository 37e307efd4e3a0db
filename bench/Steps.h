// The steps of peers/STEPS.md as functions on tensors. TrainSteps.cpp and GradientSteps.cpp say them.
#pragma once

#include <wengert/wengert.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/// A step, eager and traced. One that trains returns its loss, a gradient itself or each of them, k the parameter.
struct Case {
  std::function<std::vector<wg::Tensor>(bool compiled)> call; ///< what is checked
  std::function<void()> eager, compiled;                      ///< what is timed
  std::function<std::vector<wg::StageTime>()> timings;        ///< of the first call
  std::function<wg::Profile()> profile;
  std::shared_ptr<wg::optim::Optimizer> optimizer = {};
};

inline std::vector<wg::Tensor> listOf(wg::Tensor result) { return {std::move(result)}; }
template <class... Grads> std::vector<wg::Tensor> listOf(const std::tuple<Grads...> &results) {
  return std::apply([](const auto &...grads) { return std::vector<wg::Tensor>{grads.value()...}; }, results);
}

/// The case of a function of these tensors.
template <class F, class... Inputs> Case caseOf(const std::string &name, F f, Inputs... inputs) {
  auto traced = std::make_shared<decltype(wg::function(name, f))>(wg::function(name, f));
  return {[=](bool compiled) { return listOf(compiled ? (*traced)(inputs...) : f(inputs...)); }, [=] { f(inputs...); },
          [=] { (*traced)(inputs...); }, [=] { return traced->trace(inputs...).timings(); },
          [=] { return traced->profile(inputs...); }};
}

struct StepInfo {
  std::string name;
  double lr;                        ///< of the check; 0: a gradient
  std::function<Case(double)> make; ///< with a learning rate
};

std::vector<StepInfo> trainSteps();
std::vector<StepInfo> gradientSteps();

} // namespace bench
