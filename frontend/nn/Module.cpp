// What is a layer? Named variables and a function of a tensor.
#include "wengert/nn/Module.h"

#include "wengert/Function.h"

namespace wg::nn {

Variable Module::add(const std::string &name, const Tensor &initial, bool trainable, Where where) {
  Variable variable(initial, {.name = name, .trainable = trainable}, where);
  variables_.emplace_back(name, variable);
  return variable;
}

void Module::add(const std::string &name, const Module &layer) {
  for (const auto &[inner, variable] : layer.variables_)
    variables_.emplace_back(name + "." + inner, variable);
}

std::vector<Variable> Module::variables() const {
  std::vector<Variable> all;
  for (const auto &[name, variable] : variables_)
    all.push_back(variable);
  return all;
}

std::vector<Variable> Module::trainable_variables() const {
  std::vector<Variable> all;
  for (const auto &[name, variable] : variables_)
    if (variable.trainable())
      all.push_back(variable);
  return all;
}

int64_t Module::num_parameters() const {
  int64_t count = 0;
  for (const auto &[name, variable] : variables_)
    count += variable.size();
  return count;
}

Dense::Dense(int64_t in, int64_t out, Activation activation, DenseOptions options, Where where) : activation_(std::move(activation)) {
  if (in < 1 || out < 1)
    detail::raise(runtime::valueError("a dense layer has at least one input and one output; got " + std::to_string(in) + " and " + std::to_string(out)), where);
  weight_ = add("weight", options.weight(Shape{in, out}, options.dtype), true, where);
  if (options.bias)
    bias_ = add("bias", options.initial_bias(Shape{out}, options.dtype), true, where);
}

Tensor Dense::operator()(const Tensor &x, Where where) const {
  Tensor y = matmul(Located(x, where), Located(weight_, where));
  if (bias_.defined())
    y = Located(y, where) + Located(bias_, where);
  return activation_ ? activation_(Located(y, where)) : y;
}

Tensor Sequential::operator()(const Tensor &x, Where where) const {
  Tensor y = x;
  for (const auto &layer : layers_)
    y = layer(y, where);
  return y;
}

Tensor cross_entropy(const Located &logits, const Located &labels) {
  return mean(Located(softmax_cross_entropy(logits, labels), logits.where()));
}

/// -y log s(z) - (1 - y) log(1 - s(z)) = softplus(z) - y z
Tensor sigmoid_cross_entropy(const Located &logits, const Located &targets) {
  return mean(Located(softplus(logits), logits.where()) - Located(targets * logits, logits.where()));
}

Tensor accuracy(const Located &logits, const Located &labels) {
  Where where = logits.where();
  Tensor hit = Located(argmax(logits), where) == Located(cast(labels, i64), where);
  DType dtype = logits.isLiteral() ? f32 : logits.tensor().dtype(where);
  return mean(Located(cast(Located(hit, where), dtype), where));
}

} // namespace wg::nn
