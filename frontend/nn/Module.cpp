// What is a layer? Named variables and a function of a tensor.
#include "wengert/nn/Module.h"

#include "wengert/nn/Functional.h"

#include "frontend/nn/Layer.h"
#include "wengert/Function.h"

namespace wg::nn {

Module::Module() = default;
Module::Module(const Module &) = default;
Module::Module(Module &&) noexcept = default;
Module &Module::operator=(const Module &) = default;
Module &Module::operator=(Module &&) noexcept = default;
Module::~Module() = default;

std::vector<Module::Named> Module::named_variables() const && { return variables_; }

Variable Module::add(const std::string &name, const Tensor &initial, bool trainable, Where where) {
  Variable variable(initial, {.name = name, .trainable = trainable}, where);
  add(name, variable, where);
  return variable;
}

bool Module::isNew(const std::string &name, const Variable &variable, const Where &where) const {
  variable.dtype(where); // an error if there is none
  if (known_.contains(variable.id()))
    return false;
  if (names_.contains(name))
    detail::raise({.op = "add",
                   .message = "the module has another variable with the name '" + name + "'",
                   .remedy = "give each variable and each layer a name of its own"},
                  where);
  return true;
}

void Module::add(const std::string &name, const Variable &variable, Where where) {
  if (isNew(name, variable, where)) {
    variables_.emplace_back(name, variable);
    known_.insert(variable.id());
    names_.insert(name);
  }
}

/// All of the layer's variables, or none.
void Module::add(const std::string &name, const Module &layer, Where where) {
  for (const auto &[inner, variable] : layer.variables_)
    isNew(name + "." + inner, variable, where);
  for (const auto &[inner, variable] : layer.variables_)
    add(name + "." + inner, variable, where);
}

std::vector<Variable> Module::variables() const {
  std::vector<Variable> all;
  for (const auto &[name, variable] : variables_)
    all.push_back(variable);
  return all;
}

std::vector<Variable> Module::trainable_variables() const {
  return trainable_variables([](const std::string &, const Variable &) { return true; });
}

std::vector<Variable>
Module::trainable_variables(const std::function<bool(const std::string &, const Variable &)> &which) const {
  std::vector<Variable> taken;
  for (const auto &[name, variable] : variables_)
    if (variable.trainable() && which(name, variable))
      taken.push_back(variable);
  return taken;
}

int64_t Module::num_parameters() const {
  int64_t count = 0;
  for (const auto &[name, variable] : variables_)
    count += variable.size();
  return count;
}

Dense::Dense(int64_t in, int64_t out, Activation activation, DenseOptions options, Where where)
    : activation_(std::move(activation)) {
  if (in < 1 || out < 1)
    detail::raise(runtime::valueError("a dense layer has at least one input and one output; got " + std::to_string(in) +
                                      " and " + std::to_string(out)),
                  where);
  auto made = [&](const Initializer &initializer, const char *name, const Shape &shape) {
    return add(name, detail::initialValue("dense", name, initializer, shape, options.dtype, where), true, where);
  };
  weight_ = made(options.weight, "weight", Shape{in, out});
  if (options.bias)
    bias_ = made(options.initial_bias, "bias", Shape{out});
}

Tensor Dense::operator()(const Tensor &x, Where where) const {
  const TensorType given = x.body(where)->type, weight{weight_.dtype(where), weight_.shape(where)};
  const int64_t in = weight.shape.dim(0), last = given.shape.rank() ? given.shape.dim(given.shape.rank() - 1) : -1;
  auto refuse = [&](ErrorKind kind, const std::string &remedy) {
    detail::raise({.kind = kind,
                   .op = "dense",
                   .message = "the layer from " + std::to_string(in) + " to " + std::to_string(weight.shape.dim(1)) +
                              " takes " + std::string(nameOf(weight.dtype)) + "[..., " + std::to_string(in) +
                              "]; its input is " + toString(given),
                   .remedy = remedy,
                   .operands = {given, weight}},
                  where);
  };
  if (given.dtype != weight.dtype)
    refuse(ErrorKind::type, "cast the input: cast(x, " + std::string(nameOf(weight.dtype)) + ")" +
                                (runtime::isFloat(given.dtype)
                                     ? ", or make the layer with {.dtype = " + std::string(nameOf(given.dtype)) + "}"
                                     : ""));
  if (last != in && last != dynamic)
    refuse(ErrorKind::value, last < 1
                                 ? "give it a last axis of " + std::to_string(in)
                                 : "reshape the input, or make the layer with " + std::to_string(last) + " inputs");
  Tensor y = matmul(Located(x, where), Located(weight_, where));
  if (bias_.defined())
    y = Located(y, where) + Located(bias_, where);
  return activation_ ? activation_(Located(y, where)) : y;
}

Dropout::Dropout(double rate, int64_t seed, Where where) : rate_(rate), generator_(seed, where) {
  if (!(rate >= 0 && rate < 1))
    detail::raise({.op = "dropout",
                   .message = "the rate " + std::to_string(rate) + " is not in [0, 1)",
                   .remedy = "give the share of the elements that become 0"},
                  where);
  add("generator", generator_.state());
}

Tensor Dropout::operator()(const Tensor &x, bool training, Where where) const {
  if (!training || rate_ == 0)
    return x;
  Tensor drawn = generator_.uniform(x.shape(), 0, 1, x.dtype(), where);
  Tensor kept = Located(drawn, where) >= Located(rate_, where);
  return wg::where(Located(kept, where), Located(Located(x, where) / Located(1 - rate_, where), where),
                   Located(0, where));
}

bool Sequential::isTraining(const std::optional<bool> &training, const Where &where) {
  if (!training)
    detail::raise({.op = "sequential",
                   .message = "a layer trains and evaluates differently, and the call does not say which it is",
                   .remedy = "call model(x, true) in training and model(x, false) otherwise"},
                  where);
  return *training;
}
Tensor Sequential::call(const Tensor &x, const std::optional<bool> &training, const Where &where) const {
  Tensor y = x;
  for (const auto &layer : layers_)
    y = layer(y, training, where);
  return y;
}
Tensor Sequential::operator()(const Tensor &x, Where where) const { return call(x, {}, where); }
Tensor Sequential::operator()(const Tensor &x, bool training, Where where) const { return call(x, training, where); }

Tensor accuracy(const Located &logits, const Located &labels) {
  Where where = logits.where();
  Tensor best = argmax(logits), classes = cast(labels, i64);
  if (!detail::sameSizes(best.shape(), classes.shape()))
    detail::raise({.op = "accuracy",
                   .message = "the labels have the shape " + toString(classes.shape()) +
                              ", the logits without their last axis " + toString(best.shape()),
                   .remedy = "give one label for each example: reshape or squeeze the labels"},
                  where);
  DType dtype = logits.isLiteral() || !runtime::isFloat(logits.tensor().dtype(where)) ? f32 : logits.tensor().dtype();
  return mean(Located(cast(Located(Located(best, where) == Located(classes, where), where), dtype), where));
}

} // namespace wg::nn

namespace wg::detail {

std::vector<Variable> variablesFor(const nn::Module &model, const std::vector<Source> &values, const Where &where) {
  std::vector<Variable> all = model.variables(), trainable = model.trainable_variables();
  if (values.size() != all.size() && values.size() != trainable.size())
    raiseOp("functional_call",
            std::to_string(values.size()) + " values for a model of " + std::to_string(all.size()) + " variables" +
                (trainable.size() != all.size() ? ", " + std::to_string(trainable.size()) + " of them trainable" : ""),
            "give one for each of its variables(), or of its trainable_variables()", {}, where);
  std::vector<Variable> own = values.size() == all.size() ? std::move(all) : std::move(trainable);
  for (size_t i = 0; i < own.size(); ++i) {
    const Source &value = values[i];
    if (!value.variable.defined())
      value.tensor.body(where);
    const TensorType &type = value.variable.defined() ? value.variable.state()->type : value.tensor.body()->type,
                     &wanted = own[i].state()->type;
    if (type.dtype != wanted.dtype || !sameSizes(type.shape, wanted.shape))
      raiseOp("functional_call",
              "value " + std::to_string(i) + " is " + toString(type) + ", and " + describe(*own[i].state()) + " is " +
                  toString(wanted),
              "give the variable's dtype and shape", {type, wanted}, where);
  }
  return own;
}

std::vector<std::pair<std::string, Variable>> stackedVariables(const std::vector<const nn::Module *> &models,
                                                               const Where &where) {
  if (models.empty())
    raiseOp("stack_modules", "there are no models", "give at least one", {}, where);
  std::vector<std::pair<std::string, Variable>> stacked;
  const std::vector<nn::Module::Named> &first = models.front()->named_variables();
  for (size_t i = 0; i < models.size(); ++i)
    if (models[i]->named_variables().size() != first.size())
      raiseOp("stack_modules",
              "model " + std::to_string(i) + " has " + std::to_string(models[i]->named_variables().size()) +
                  " variables, the first " + std::to_string(first.size()),
              "stack models of one kind", {}, where);
  // A copy of a model has its variables: as another model it would be the same one.
  auto isSame = [](const nn::Module::Named &a, const nn::Module::Named &b) { return a.second.is(b.second); };
  for (size_t i = 1; i < models.size() && !first.empty(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (const std::vector<nn::Module::Named> &one = models[i]->named_variables(),
          &other = models[k]->named_variables();
          std::equal(one.begin(), one.end(), other.begin(), other.end(), isSame))
        raiseOp("stack_modules",
                "models " + std::to_string(k) + " and " + std::to_string(i) +
                    " are copies of one model, with the same variables",
                "construct each: models.emplace_back(...)", {}, where);
  for (size_t k = 0; k < first.size(); ++k) {
    const auto &[name, variable] = first[k];
    std::vector<Tensor> values;
    for (size_t i = 0; i < models.size(); ++i) {
      const auto &[otherName, other] = models[i]->named_variables()[k];
      if (otherName != name || !(other.state()->type == variable.state()->type))
        raiseOp("stack_modules",
                "variable '" + otherName + "' of model " + std::to_string(i) + " is " + toString(other.state()->type) +
                    ", '" + name + "' of the first " + toString(variable.state()->type),
                "stack models of one kind and size", {other.state()->type, variable.state()->type}, where);
      values.push_back(other.value(where));
    }
    stacked.emplace_back(name, Variable(stack(values, 0, where),
                                        VariableOptions{.name = name, .trainable = variable.trainable()}, where));
  }
  return stacked;
}

} // namespace wg::detail
