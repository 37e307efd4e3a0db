// Layers: functions of a tensor that own named variables.
#pragma once

#include <wengert/Random.h>
#include <wengert/nn/Initializers.h>

#include <functional>
#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace wg::nn {

/// Named variables. A model derives from it and adds its variables and layers; copies share them. Where the gradient
/// by variables is asked for, or a step for them, the model stands for its trainable ones:
/// `adam.apply(tape.gradient(loss, model), model)`. Threads may call a model at the same time, as they may read its
/// variables; it is not to be copied or used while another thread adds to it.
///
///     struct Model : wg::nn::Module {
///       wg::nn::Dense hidden{64, 32, wg::relu}, out{32, 10};
///       Model() { add("hidden", hidden), add("out", out); }
///       wg::Tensor operator()(const wg::Tensor &x) const { return out(hidden(x)); }
///     };
class WENGERT_API Module {
public:
  using Named = std::pair<std::string, Variable>;
  /// In the order in which they were added, a layer's under its name: `hidden.weight`. Each variable is listed once,
  /// under its first name, however many layers share it; so it does in all that follows.
  const std::vector<Named> &named_variables() const & { return variables_; }
  /// Of a model that ends with the statement: `for (auto &[name, v] : load().named_variables())`.
  std::vector<Named> named_variables() const &&;
  std::vector<Variable> variables() const;
  std::vector<Variable> trainable_variables() const;
  /// Those that `which(name, variable)` takes: `[](const std::string &name, const wg::Variable &) {
  /// return name.ends_with("bias"); }`.
  std::vector<Variable>
  trainable_variables(const std::function<bool(const std::string &, const Variable &)> &which) const;
  /// Number of elements in all variables.
  int64_t num_parameters() const;
  /// A table of layers and variables with shapes, dtypes and numbers of elements, and the sums with their bytes;
  /// `std::cout << model` prints it.
  std::string summary() const;

  Module();
  Module(const Module &other);
  Module(Module &&other) noexcept;
  Module &operator=(const Module &other);
  Module &operator=(Module &&other) noexcept;
  ~Module();

protected:
  /// A variable that is there already keeps its first name. Errors: two variables of one name.
  Variable add(const std::string &name, const Tensor &initial, bool trainable = true, Where where = Where::current());
  void add(const std::string &name, const Variable &variable, Where where = Where::current());
  void add(const std::string &name, const Module &layer, Where where = Where::current());

private:
  /// Errors if another variable has the name; false if this one is known already.
  bool isNew(const std::string &name, const Variable &variable, const Where &where) const;
  std::vector<Named> variables_;
  std::set<int64_t> known_; ///< their ids
  std::set<std::string> names_;
};

/// The summary.
WENGERT_API std::ostream &operator<<(std::ostream &out, const Module &module);

/// Says in one line why an F is no function of a tensor.
template <class F> constexpr bool checkTakesOneTensor() {
  constexpr bool takesOne = std::invocable<F &, const Located &> || std::invocable<F &, const Tensor &>;
  static_assert(takesOne || !std::derived_from<F, Module>,
                "this layer's operator() needs more than a tensor, and whether it trains; give a lambda that calls it: "
                "[layer](const wg::Tensor &x) { return layer(x, y); }");
  static_assert(takesOne || !std::is_pointer_v<F>,
                "a function's default arguments are lost with its name (wg::softmax has an axis); give a lambda that "
                "calls it: [](const wg::Tensor &x) { return wg::softmax(x); }");
  static_assert(takesOne || std::is_pointer_v<F> || std::derived_from<F, Module>,
                "a layer or an activation is called with one tensor: [](const wg::Tensor &x) { return ...; }");
  return takesOne;
}

/// An elementwise function at the end of a layer: one of the library's, `wg::relu`, or any callable on a tensor.
class Activation {
public:
  Activation() = default;
  template <class F>
    requires(!std::same_as<std::decay_t<F>, Activation>)
  Activation(F f) {
    if constexpr (!checkTakesOneTensor<F>())
      return;
    else if constexpr (std::invocable<F &, const Located &>)
      f_ = std::move(f);
    else
      f_ = [f = std::move(f)](const Located &x) { return f(x.tensor()); };
  }
  explicit operator bool() const { return static_cast<bool>(f_); }
  Tensor operator()(const Located &x) const { return f_(x); }

private:
  std::function<Tensor(const Located &)> f_;
};

struct DenseOptions {
  bool bias = true;
  DType dtype = f32;
  Initializer weight = glorot_uniform();
  Initializer initial_bias = zeros();
};

/// y = activation(x W + b), with W [in, out] named `weight` and b [out] named `bias`. An initializer that makes another
/// shape or dtype is an error.
/// Shapes: x float[..., in] -> float[..., out].
class WENGERT_API Dense : public Module {
public:
  Dense(int64_t in, int64_t out, Activation activation = {}, DenseOptions options = {}, Where where = Where::current());
  Tensor operator()(const Tensor &x, Where where = Where::current()) const;
  const Variable &weight() const { return weight_; }
  const Variable &bias() const { return bias_; }

private:
  Variable weight_, bias_;
  Activation activation_;
};

/// Layers and functions of a tensor one after the other; those that are modules are named `0`, `1`, ... by their place.
/// Layers that train and evaluate differently (Dropout, BatchNorm, a Sequential of such) are told by `model(x, true)`;
/// a call without that is an error if there are any. What needs more goes into a lambda.
///
///     wg::nn::Sequential model(wg::nn::Dense(64, 32, wg::relu), wg::nn::Dropout(0.1), wg::nn::Dense(32, 10));
class WENGERT_API Sequential : public Module {
public:
  template <class... Layers> explicit Sequential(const Layers &...layers) { (append(layers), ...); }
  template <class Layer> void append(const Layer &layer) {
    if constexpr (std::is_function_v<Layer>)
      return append(&layer);
    else if constexpr (std::derived_from<Layer, Module> && std::invocable<const Layer &, const Tensor &, bool, Where>)
      layers_.emplace_back([layer](const Tensor &x, const std::optional<bool> &training, const Where &where) {
        if constexpr (std::invocable<const Layer &, const Tensor &, Where>)
          return training ? layer(x, *training, where) : layer(x, where);
        else
          return layer(x, isTraining(training, where), where);
      });
    else if constexpr (std::derived_from<Layer, Module> && std::invocable<const Layer &, const Tensor &, bool>)
      layers_.emplace_back([layer](const Tensor &x, const std::optional<bool> &training, const Where &where) {
        if constexpr (std::invocable<const Layer &, const Tensor &>)
          return training ? layer(x, *training) : layer(x);
        else
          return layer(x, isTraining(training, where));
      });
    else if constexpr (std::invocable<const Layer &, const Tensor &, Where>)
      layers_.emplace_back(
          [layer](const Tensor &x, const std::optional<bool> &, const Where &where) { return layer(x, where); });
    else if constexpr (checkTakesOneTensor<Layer>())
      layers_.emplace_back([layer = Activation(layer)](const Tensor &x, const std::optional<bool> &,
                                                       const Where &where) { return layer(Located(x, where)); });
    if constexpr (std::derived_from<Layer, Module>)
      add(std::to_string(layers_.size() - 1), static_cast<const Module &>(layer));
  }
  Tensor operator()(const Tensor &x, Where where = Where::current()) const;
  Tensor operator()(const Tensor &x, bool training, Where where = Where::current()) const;

private:
  /// An error if it is not known.
  static bool isTraining(const std::optional<bool> &training, const Where &where);
  Tensor call(const Tensor &x, const std::optional<bool> &training, const Where &where) const;
  std::vector<std::function<Tensor(const Tensor &, const std::optional<bool> &, const Where &)>> layers_;
};

/// While training, each element is 0 with probability `rate`, and the others are divided by 1 - rate (Srivastava et al.
/// 2014); otherwise x itself. What it draws from is a variable named `generator`, which is saved with the weights.
/// Errors: a rate outside of [0, 1). Shapes: x float[...] -> float[...].
class WENGERT_API Dropout : public Module {
public:
  explicit Dropout(double rate, int64_t seed = 0, Where where = Where::current());
  Tensor operator()(const Tensor &x, bool training, Where where = Where::current()) const;

private:
  double rate_;
  Generator generator_;
};

// ---- Measures ----------------------------------------------------------------------------------------------------

/// Share of the examples whose largest logit is at the label, as a float of the logits' dtype, f32 of integer logits.
/// Shapes: logits number[..., classes], labels integer[...]; another shape of labels is an error.
WENGERT_API Tensor accuracy(const Located &logits, const Located &labels);

} // namespace wg::nn
