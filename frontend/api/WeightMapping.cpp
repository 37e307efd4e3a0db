// How do other libraries name and lay out what our layers have?
#include "wengert/WeightMapping.h"

#include "frontend/api/WeightNames.h"
#include "frontend/ops/Operands.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace wg {

// ---- Names ----------------------------------------------------------------------------------------------------------

namespace detail {

/// How long is the star at the start of a pattern?
static size_t starSize(std::string_view pattern) {
  return pattern.starts_with("**") ? 2 : pattern.starts_with('*') ? 1 : 0;
}

std::optional<std::vector<std::string>> matchName(std::string_view pattern, std::string_view name) {
  // Each row of the table is a place in the pattern, each column one in the name: can the rest match the rest? From the
  // end, so that the time is linear in both.
  const size_t rows = pattern.size() + 1, columns = name.size() + 1;
  std::vector<bool> can(rows * columns);
  can[rows * columns - 1] = true;
  auto stands = [&](size_t star, char c) { return star == 2 || (c != '.' && c != '/'); };
  for (size_t row = pattern.size(); row-- > 0;) {
    const size_t star = starSize(pattern.substr(row));
    for (size_t at = columns; at-- > 0;)
      can[row * columns + at] = star
                                    ? can[(row + star) * columns + at] ||
                                          (at < name.size() && stands(star, name[at]) && can[row * columns + at + 1])
                                    : at < name.size() && pattern[row] == name[at] && can[(row + 1) * columns + at + 1];
  }
  if (!can[0])
    return std::nullopt;
  std::vector<std::string> stars;
  for (size_t row = 0, at = 0; row < pattern.size();) {
    const size_t star = starSize(pattern.substr(row));
    if (star == 0) {
      ++row, ++at;
      continue;
    }
    size_t begin = at;
    while (!can[(row + star) * columns + at])
      ++at;
    stars.emplace_back(name.substr(begin, at - begin));
    row += star;
  }
  return stars;
}

std::optional<std::string> fillName(std::string_view pattern, const std::vector<std::string> &stars) {
  std::string name;
  size_t next = 0;
  while (!pattern.empty()) {
    if (size_t star = starSize(pattern)) {
      if (next == stars.size())
        return std::nullopt;
      name += stars[next++];
      pattern.remove_prefix(star);
    } else {
      name += pattern[0];
      pattern.remove_prefix(1);
    }
  }
  return name;
}

} // namespace detail

// ---- Conversions ----------------------------------------------------------------------------------------------------

void WeightConversion::want_rows(const TensorType &theirs) const {
  if (!rows_ || (theirs.shape.rank() > 0 && rows_->second <= theirs.shape[0]))
    return;
  detail::raise({.op = "weights::rows",
                 .message = to_string(theirs) + " has no rows " + std::to_string(rows_->first) + " to " +
                            std::to_string(rows_->second),
                 .remedy = "name rows that are there, the last one not included"});
}

Tensor WeightConversion::only(const std::vector<Tensor> &theirs) {
  if (theirs.size() != 1)
    detail::raise({.op = "load_weights",
                   .message = "a variable is made of one tensor, and the rule names " + std::to_string(theirs.size()),
                   .remedy = "name one, or say how they become one: weights::sum()"});
  return theirs[0];
}

std::vector<Tensor> WeightConversion::slices(const std::vector<Tensor> &theirs) const {
  std::vector<Tensor> some;
  for (const Tensor &x : theirs) {
    want_rows(x.body()->type);
    some.push_back(slice(x, {rows_->first}, {rows_->second}));
  }
  return some;
}

namespace weights {

WeightConversion rows(int64_t begin, int64_t end) {
  if (begin < 0 || end < begin)
    detail::raise({.op = "weights::rows",
                   .message = "rows " + std::to_string(begin) + " to " + std::to_string(end),
                   .remedy = "give the first one, and the one behind the last"});
  WeightConversion some;
  some.rows_ = {begin, end};
  return some;
}

using Theirs = std::vector<Tensor>;

/// The one tensor; an error where there are several.
static Tensor only(const char *op, const Theirs &theirs) {
  if (theirs.size() != 1)
    detail::raise({.op = op,
                   .message = "takes one tensor of the file, and there are " + std::to_string(theirs.size()),
                   .remedy = "give the rule one name"});
  return theirs[0];
}

static Tensor wantRank(const char *op, const Theirs &theirs, int rank, const std::string &layout) {
  Tensor x = only(op, theirs);
  if (x.rank() < rank)
    detail::raise({.op = op, .message = to_string(x.body()->type) + " is not " + layout});
  return x;
}

/// Some axes behind the others.
static std::vector<int64_t> rotated(int rank, std::vector<int64_t> last) {
  std::vector<int64_t> axes(static_cast<size_t>(rank - static_cast<int>(last.size())));
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(last.size()));
  axes.insert(axes.end(), last.begin(), last.end());
  return axes;
}

WeightConversion transposed(std::vector<int64_t> axes) {
  return [axes = std::move(axes)](const Theirs &theirs, const TensorType &) {
    return transpose(only("weights::transposed", theirs), axes);
  };
}

WeightConversion convolution() {
  return [](const Theirs &theirs, const TensorType &) {
    Tensor x = wantRank("weights::convolution", theirs, 3, "a window [out, in, ...]");
    return transpose(x, rotated(x.rank(), {1, 0}));
  };
}

WeightConversion transposed_convolution() {
  return [](const Theirs &theirs, const TensorType &) {
    Tensor x = wantRank("weights::transposed_convolution", theirs, 3, "a window [in, out, ...]");
    return transpose(x, rotated(x.rank(), {0, 1}));
  };
}

WeightConversion flattened(const Shape &channels_first) {
  return [channels_first](const Theirs &theirs, const TensorType &) {
    Tensor x = only("weights::flattened", theirs);
    if (x.rank() != 2 || !channels_first.isStatic() || channels_first.rank() < 1 ||
        channels_first.numElements() != x.dim(1))
      detail::raise({.op = "weights::flattened",
                     .message = to_string(x.body()->type) + " is not a weight [out, in] of the elements of " +
                                to_string(channels_first)});
    // [out, C, ...] -> [..., C, out]
    Shape apart{x.dim(0)};
    for (int64_t size : channels_first)
      apart.push_back(size);
    return reshape(transpose(reshape(x, apart), rotated(apart.rank(), {1, 0})), {-1, x.dim(0)});
  };
}

WeightConversion reshaped() {
  return [](const Theirs &theirs, const TensorType &wanted) {
    return reshape(only("weights::reshaped", theirs), wanted.shape);
  };
}

WeightConversion part(int64_t index, int64_t count, int64_t axis) {
  return [=](const Theirs &theirs, const TensorType &) {
    if (count < 1 || index < 0 || index >= count)
      detail::raise({.op = "weights::part",
                     .message = "there is no part " + std::to_string(index) + " of " + std::to_string(count),
                     .remedy = "give an index in [0, count)"});
    return split(only("weights::part", theirs), count, axis)[static_cast<size_t>(index)];
  };
}

WeightConversion reordered(std::vector<int64_t> order, int64_t axis) {
  return [order = std::move(order), axis](const Theirs &theirs, const TensorType &) {
    const auto count = static_cast<int64_t>(order.size());
    std::vector<int64_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < count; ++i)
      if (sorted[static_cast<size_t>(i)] != i)
        detail::raise({.op = "weights::reordered",
                       .message = "the order does not name each of " + std::to_string(count) + " parts once",
                       .remedy = "give a permutation of 0, 1, ..."});
    std::vector<Tensor> parts = split(only("weights::reordered", theirs), count, axis), moved;
    for (int64_t i : order)
      moved.push_back(parts[static_cast<size_t>(i)]);
    return concat(moved, axis);
  };
}

WeightConversion sum() {
  return [](const Theirs &theirs, const TensorType &) {
    Tensor total = theirs.at(0);
    for (size_t i = 1; i < theirs.size(); ++i)
      total = total + theirs[i];
    return total;
  };
}

} // namespace weights

// ---- Layers of other libraries --------------------------------------------------------------------------------------

namespace {

std::string joined(const std::string &prefix, const std::string &name, char separator) {
  return prefix.empty() ? name : prefix + separator + name;
}
/// Before the last dot, and after it.
std::pair<std::string, std::string> cut(const std::string &name) {
  size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::pair(std::string(), name)
                                  : std::pair(name.substr(0, dot), name.substr(dot + 1));
}

/// What the variables beside one say of its layer.
class Layers {
public:
  Layers(const char *op, const std::vector<nn::Module::Named> &variables, const LayerMappingOptions &options,
         const Where &where)
      : op_(op), options_(options), where_(where) {
    for (const auto &[name, variable] : variables)
      types_.emplace(name, TensorType{variable.dtype(where), variable.shape(where)});
  }
  const TensorType *find(const std::string &layer, const std::string &leaf) const {
    auto found = types_.find(joined(layer, leaf, '.'));
    return found == types_.end() ? nullptr : &found->second;
  }
  int rankOf(const std::string &layer, const std::string &leaf) const {
    const TensorType *type = find(layer, leaf);
    return type ? type->shape.rank() : -1;
  }
  bool isCell(const std::string &layer) const { return rankOf(layer, "recurrent_weight") == 2; }
  int64_t gates(const std::string &layer) const {
    const Shape &shape = find(layer, "recurrent_weight")->shape;
    return shape.dim(0) > 0 ? shape.dim(1) / shape.dim(0) : 0;
  }
  /// Query, key, value or out of an attention.
  bool isAttention(const std::string &layer) const {
    auto [parent, name] = cut(layer);
    auto has = [&](const char *part) { return rankOf(joined(parent, part, '.'), "weight") == 2; };
    return (name == "query" || name == "key" || name == "value" || name == "out") && has("query") && has("key") &&
           has("value") && has("out");
  }
  bool isNorm(const std::string &layer) const {
    int rank = rankOf(layer, "weight");
    return find(layer, "running_mean") || rank == 1 || (rank > 1 && rank == rankOf(layer, "bias")) ||
           (rank < 0 && rankOf(layer, "bias") > 0 && !isCell(layer));
  }
  bool isTable(const std::string &name) const {
    return std::ranges::any_of(
        options_.tables, [&](const std::string &pattern) { return detail::matchName(pattern, name).has_value(); });
  }
  /// The layer of a variable under the name that the options give it.
  std::string renamed(const std::string &name) const {
    for (const auto &[ours, theirs] : options_.names)
      if (auto stars = detail::matchName(ours, name)) {
        std::optional<std::string> filled = detail::fillName(theirs, *stars);
        if (!filled)
          detail::raise({.op = op_,
                         .message = "`" + theirs + "` has more stars than `" + ours + "`",
                         .remedy = "give it as many"},
                        where_);
        return cut(*filled).first;
      }
    return cut(name).first;
  }
  const LayerMappingOptions &options() const { return options_; }
  const Where &where() const { return where_; }

private:
  const char *op_;
  const LayerMappingOptions &options_;
  const Where &where_;
  std::map<std::string, TensorType> types_;
};

/// A weight of two axes: a matrix that is transposed, or a table that is not. The shapes decide where they can.
WeightConversion matrix(bool table) {
  return [table](const std::vector<Tensor> &theirs, const TensorType &wanted) {
    const Tensor &x = theirs.at(0);
    return !table && x.rank() == 2 && Shape{x.dim(1), x.dim(0)} == wanted.shape ? transpose(x) : x;
  };
}

/// A window, or what a norm over several axes is multiplied with.
WeightConversion window() {
  return [convolution = weights::convolution()](const std::vector<Tensor> &theirs, const TensorType &wanted) {
    if (theirs.at(0).rank() < 3)
      return theirs[0];
    Tensor turned = convolution(theirs, wanted);
    return turned.shape() == wanted.shape || theirs[0].shape() != wanted.shape ? turned : theirs[0];
  };
}

/// One of the three matrices or biases of an attention, alone or among the others.
WeightConversion projection(int64_t index) {
  return [index](const std::vector<Tensor> &theirs, const TensorType &wanted) {
    Tensor x = theirs.at(0);
    if (x.rank() > 0 && x.size() == 3 * wanted.shape.numElements() && x.dim(0) % 3 == 0)
      x = split(x, 3)[static_cast<size_t>(index)];
    return x.rank() == 2 ? transpose(x) : x;
  };
}

/// The rule of a cell's variable in PyTorch.
WeightRule torchCell(const Layers &layers, const std::string &name, const std::string &layer, const std::string &leaf,
                     const std::string &theirs) {
  // An RNN's names end with the number of the layer and the direction, those of a cell alone do not.
  auto [ours, last] = cut(layer);
  std::string parent = cut(theirs).first, end = "";
  if (last == "cell") {
    end = "_l0";
    std::string direction = cut(ours).second, beside = cut(ours).first;
    bool both =
        layers.isCell(joined(beside, "forward.cell", '.')) && layers.isCell(joined(beside, "backward.cell", '.'));
    if (both && (direction == "forward" || direction == "backward")) {
      end += direction == "backward" ? "_reverse" : "";
      parent = cut(parent).first;
    }
  }
  auto of = [&](const std::string &what) {
    std::string cell = joined(theirs, what, '.');
    return last == "cell" ? joined(parent, what + end, '.') + "|" + cell : cell;
  };
  if (leaf == "weight")
    return {name, of("weight_ih"), weights::transposed()};
  if (leaf == "recurrent_weight")
    return {name, of("weight_hh"), weights::transposed()};
  if (leaf == "recurrent_bias")
    return {name, of("bias_hh")};
  if (layers.gates(layer) == 3)
    return {name, of("bias_ih")};
  return {name, {of("bias_ih"), of("bias_hh")}, weights::sum()};
}

} // namespace

WeightMapping torch_mapping(const std::vector<nn::Module::Named> &variables, const LayerMappingOptions &options,
                            Where where) {
  const char *op = "torch_mapping";
  Layers layers(op, variables, options, where);
  WeightMapping mapping;
  for (const auto &[name, variable] : variables) {
    auto [layer, leaf] = cut(name);
    const TensorType &type = *layers.find(layer, leaf);
    std::string theirs = layers.renamed(name);
    auto add = [&, &name = name](const WeightNames &names, WeightConversion how = {}) {
      mapping.rules.push_back({name, names, std::move(how)});
    };
    const int rank = type.shape.rank();
    if (variable.state()->isGenerator) { // nobody else has such
      add({});
    } else if (layers.isCell(layer)) {
      mapping.rules.push_back(torchCell(layers, name, layer, leaf, theirs));
    } else if (layers.isAttention(layer)) {
      auto [parent, part] = cut(theirs);
      std::string ours = cut(layer).second, own = joined(theirs, leaf, '.');
      if (ours == "out")
        add(joined(joined(parent, "out_proj", '.'), leaf, '.') + "|" + own, projection(0));
      else
        add(joined(parent, "in_proj_" + leaf, '.') + "|" + joined(parent, ours.substr(0, 1) + "_proj_" + leaf, '.') +
                "|" + own,
            projection(ours == "query" ? 0
                       : ours == "key" ? 1
                                       : 2));
    } else if (leaf == "running_variance") {
      add(joined(theirs, "running_var", '.'));
    } else if (leaf == "weight" && rank == 2 && !layers.isNorm(layer)) {
      const bool square = type.shape.dim(0) == type.shape.dim(1), table = layers.isTable(name);
      if (square && !table && !layers.find(layer, "bias") && options.tables.empty())
        detail::raise({.op = op,
                       .message = "`" + name + "` is " + to_string(type) +
                                  " without a bias: a matrix of a Dense, which is transposed, or an Embedding's table",
                       .remedy = "name the tables: torch_mapping(model, {.tables = {\"embedding.weight\"}})",
                       .operands = {type}},
                      where);
      add(joined(theirs, leaf, '.'), matrix(table));
    } else if (leaf == "weight" && rank > 2 && !layers.isNorm(layer)) {
      add(joined(theirs, leaf, '.'), window());
    } else {
      add(joined(theirs, leaf, '.'));
    }
  }
  return mapping;
}

WeightMapping keras_mapping(const std::vector<nn::Module::Named> &variables, const LayerMappingOptions &options,
                            Where where) {
  Layers layers("keras_mapping", variables, options, where);
  WeightMapping mapping;
  const std::map<std::string, std::string> ofNorms = {
      {"weight", "gamma"}, {"bias", "beta"}, {"running_mean", "moving_mean"}, {"running_variance", "moving_variance"}};
  for (const auto &[name, variable] : variables) {
    auto [layer, leaf] = cut(name);
    std::string theirs = layers.renamed(name);
    std::ranges::replace(theirs, '.', '/');
    auto add = [&, &name = name](const WeightNames &names, WeightConversion how = {}) {
      mapping.rules.push_back({name, names, std::move(how)});
    };
    auto of = [&](const std::string &what) { return joined(theirs, what, '/'); };
    if (variable.state()->isGenerator) {
      add({});
    } else if (layers.isCell(layer)) {
      const int64_t gates = layers.gates(layer);
      const char *cell = gates == 4 ? "lstm_cell" : gates == 3 ? "gru_cell" : "simple_rnn_cell";
      if (cut(layer).second == "cell") {
        // A Bidirectional names its layers after the one that it was given, forward_lstm and backward_lstm.
        size_t slash = theirs.rfind('/');
        std::string parent = slash == std::string::npos ? "" : theirs.substr(0, slash);
        if (parent.ends_with("forward") || parent.ends_with("backward"))
          parent += std::string("_") + (gates == 4 ? "lstm" : gates == 3 ? "gru" : "simple_rnn");
        theirs = joined(parent, cell, '/');
      }
      // The gates of a GRU are update, reset, new; ours are reset, update, new.
      WeightConversion order = gates == 3 ? weights::reordered({1, 0, 2}) : WeightConversion();
      auto bias = [&](int64_t row) { return weights::part(row, 2).then(order).then(weights::reshaped()); };
      if (leaf == "weight")
        add(of("kernel"), order);
      else if (leaf == "recurrent_weight")
        add(of("recurrent_kernel"), order);
      else if (gates == 3)
        add(of("bias"), bias(leaf == "bias" ? 0 : 1));
      else
        add(of("bias"));
    } else if (layers.isAttention(layer)) {
      if (cut(layer).second == "out")
        theirs = theirs.substr(0, theirs.size() - 3) + "attention_output";
      add(of(leaf == "weight" ? "kernel" : leaf), weights::reshaped());
    } else if (layers.isNorm(layer) && ofNorms.contains(leaf)) {
      add(of(ofNorms.at(leaf)) + (leaf == "weight" ? "|" + of("scale") : ""));
    } else if (leaf == "weight") {
      add(of("kernel") + "|" + of("embeddings"));
    } else {
      add(of(leaf));
    }
  }
  return mapping;
}

} // namespace wg
