// Weights of other libraries: of which of their tensors a variable is made, and how.
//
//     wg::load_weights("encoder.safetensors", model, {.mapping = {{
//         {"layers.*.weight", "encoder.layer.*.linear.weight", wg::weights::transposed()},
//         {"layers.*.bias", "encoder.layer.*.linear.bias"},
//     }}});
//     wg::load_weights("lenet.safetensors", lenet, {.mapping = wg::torch_mapping(lenet)});
#pragma once

#include <wengert/nn/Module.h>

#include <concepts>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wg {

class WeightConversion;
namespace weights {
WENGERT_API WeightConversion rows(int64_t begin, int64_t end);
}

/// How a variable's value is made of a file's tensors: by a callable on the tensor, on all of them, or on these and the
/// variable's type; by default it is the one tensor as it is.
class WeightConversion {
public:
  using Function = std::function<Tensor(const std::vector<Tensor> &theirs, const TensorType &wanted)>;
  WeightConversion() = default;
  template <class F>
    requires(!std::same_as<std::decay_t<F>, WeightConversion> &&
             (std::invocable<F &, const Tensor &> || std::invocable<F &, const std::vector<Tensor> &> ||
              std::invocable<F &, const std::vector<Tensor> &, const TensorType &>))
  WeightConversion(F f) {
    if constexpr (std::invocable<F &, const std::vector<Tensor> &, const TensorType &>)
      f_ = std::move(f);
    else if constexpr (std::invocable<F &, const Tensor &>)
      f_ = [f = std::move(f)](const std::vector<Tensor> &theirs, const TensorType &) { return f(theirs.at(0)); };
    else
      f_ = [f = std::move(f)](const std::vector<Tensor> &theirs, const TensorType &) { return f(theirs); };
  }
  /// False: as it is.
  explicit operator bool() const { return f_ || rows_; }
  Tensor operator()(const std::vector<Tensor> &theirs, const TensorType &wanted) const {
    return of_rows(rows_ ? slices(theirs) : theirs, wanted);
  }
  /// `next` of what this gives.
  WeightConversion then(WeightConversion next) const {
    WeightConversion both =
        Function([first = f_, next = std::move(next)](const std::vector<Tensor> &theirs, const TensorType &wanted) {
          return next(first ? std::vector<Tensor>{first(theirs, wanted)} : theirs, wanted);
        });
    both.rows_ = rows_;
    return both;
  }
  /// What it reads of each tensor: rows [first, second) of axis 0; all of it where there are none (weights::rows).
  const std::optional<std::pair<int64_t, int64_t>> &rows() const { return rows_; }
  /// An error unless a tensor of that type has these rows.
  WENGERT_API void want_rows(const TensorType &theirs) const;
  /// What it makes of these rows.
  Tensor of_rows(const std::vector<Tensor> &theirs, const TensorType &wanted) const {
    return f_ ? f_(theirs, wanted) : only(theirs);
  }

private:
  friend WeightConversion weights::rows(int64_t begin, int64_t end);
  WENGERT_API std::vector<Tensor> slices(const std::vector<Tensor> &theirs) const;
  WENGERT_API static Tensor only(const std::vector<Tensor> &theirs);
  Function f_;
  std::optional<std::pair<int64_t, int64_t>> rows_;
};

/// Conversions. Each is an error, which names the variable, where a tensor has not the axes that it is about.
namespace weights {
/// Axis i is axis `axes[i]` of the file's; without, the axes are reversed: Linear [out, in] -> Dense [in, out].
WENGERT_API WeightConversion transposed(std::vector<int64_t> axes = {});
/// The window of a convolution, of any number of axes: PyTorch's [out, in, rows, columns] -> [rows, columns, in, out].
WENGERT_API WeightConversion convolution();
/// The same of a transposed one: PyTorch's [in, out, rows, columns] -> [rows, columns, in, out].
WENGERT_API WeightConversion transposed_convolution();
/// The weight of a Dense that reads flattened images: [out, C * H * W] -> [H * W * C, out], with {C, H, W}, or another
/// number of axes after C.
WENGERT_API WeightConversion flattened(const Shape &channels_first);
/// The same elements in the variable's shape.
WENGERT_API WeightConversion reshaped();
/// Part number `index` of `count` equal ones along an axis: query, key and value in one matrix.
WENGERT_API WeightConversion part(int64_t index, int64_t count, int64_t axis = 0);
/// Equal parts along an axis in another order, part i being part `order[i]` of the file's: gates.
WENGERT_API WeightConversion reordered(std::vector<int64_t> order, int64_t axis = -1);
/// The sum of all tensors: the two biases of PyTorch's LSTM.
WENGERT_API WeightConversion sum();
/// Rows [begin, end) of axis 0: of the file, their bytes alone are read. A rank reads its part of a large table,
/// `rows(begin, begin + count)`, or what another conversion makes of it: `rows(0, 64).then(transposed())`. Of several
/// names, these rows of each.
WENGERT_API WeightConversion rows(int64_t begin, int64_t end);
} // namespace weights

/// Names of tensors in a file, one or several.
class WeightNames {
public:
  WeightNames() = default;
  WeightNames(const char *name) : names_{name} {}
  WeightNames(std::string name) : names_{std::move(name)} {}
  WeightNames(std::initializer_list<std::string> names) : names_(names) {}
  const std::vector<std::string> &list() const { return names_; }

private:
  std::vector<std::string> names_;
};

/// Variables whose names match `ours` are made of the tensors `theirs` by `how`. In `ours`, `*` stands for any
/// characters but `.` and `/`, `**` for any characters; star number k of `theirs` is what star number k of `ours` stood
/// for. `a|b` in `theirs` is the first of these that the file has. No names: the variable keeps its value.
struct WeightRule {
  std::string ours;
  WeightNames theirs;
  WeightConversion how = {};
};

/// A variable is made by the first rule that its name matches; by none, of the tensor of its own name.
struct WeightMapping {
  std::vector<WeightRule> rules;
  /// Floats become floats, and integers integers, of the variable's dtype (f16 and bf16 are only read); otherwise
  /// another dtype is another type.
  bool cast = false;
};

struct LayerMappingOptions {
  /// Names of our variables, and of what takes their place in the file's names, as in a WeightRule: `{"1.**", "2.**"}`
  /// where the other Sequential has a layer more, `{"**", "model.**"}` where all of it is a part of something. What the
  /// last component is called in the other library is known.
  std::vector<std::pair<std::string, std::string>> names = {};
  /// Names of the weights of Embedding layers, by pattern; all other weights of two axes are those of Dense layers.
  /// Needed where shapes and names do not tell: a square weight without a bias.
  std::vector<std::string> tables = {};
};

/// A rule for each variable of our layers, for a file of PyTorch's layers under the same names: Linear, Conv,
/// Embedding, norms, RNN, LSTM and GRU of one layer, of one direction or two (`weight_ih_l0`), their cells, and
/// MultiheadAttention. Generators keep their states. Rules of your own go in front: `mapping.rules.insert(...)`.
/// Errors: a weight of two axes of which the options should say what it is.
WENGERT_API WeightMapping torch_mapping(const std::vector<nn::Module::Named> &variables,
                                        const LayerMappingOptions &options = {}, Where where = Where::current());
inline WeightMapping torch_mapping(const nn::Module &module, const LayerMappingOptions &options = {},
                                   Where where = Where::current()) {
  return torch_mapping(module.named_variables(), options, where);
}
/// The same for a file of Keras's weights, each under its path: `dense/kernel`, `lstm/lstm_cell/recurrent_kernel`,
/// `batch_normalization/moving_variance`. Dots of our names are slashes there.
WENGERT_API WeightMapping keras_mapping(const std::vector<nn::Module::Named> &variables,
                                        const LayerMappingOptions &options = {}, Where where = Where::current());
inline WeightMapping keras_mapping(const nn::Module &module, const LayerMappingOptions &options = {},
                                   Where where = Where::current()) {
  return keras_mapping(module.named_variables(), options, where);
}

} // namespace wg
