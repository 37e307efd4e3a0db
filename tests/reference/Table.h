// The stored tables, as reference.py writes them: cases with their operands, options and values.
#pragma once

#include <wengert/wengert.h>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wg::tests {

using Tensors = std::vector<Tensor>;

/// What a call is told beside its operands, by NumPy's names. What is missing is the default.
class Options {
public:
  Options() = default;
  explicit Options(nlohmann::json values) : values_(std::move(values)) {}

  bool has(const char *name) const { return values_.contains(name) && !values_[name].is_null(); }
  int64_t integer(const char *name, int64_t otherwise = 0) const { return get(name, otherwise); }
  /// `integer("axis")`
  int64_t axis(int64_t otherwise = -1) const { return integer("axis", otherwise); }
  bool flag(const char *name, bool otherwise = false) const { return get(name, otherwise); }
  bool keepdims() const { return flag("keepdims"); }
  bool isText(const char *name) const { return has(name) && values_[name].is_string(); }
  bool isList(const char *name) const { return has(name) && values_[name].is_array(); }
  std::vector<std::vector<int64_t>> lists(const char *name) const {
    return get(name, std::vector<std::vector<int64_t>>());
  }
  double number(const char *name, double otherwise = 0) const;
  std::string text(const char *name, const std::string &otherwise = "") const { return get(name, otherwise); }
  std::vector<int64_t> integers(const char *name) const { return get(name, std::vector<int64_t>()); }
  /// `integers("shape")`
  Shape shape() const;
  std::array<int64_t, 2> two(const char *name, std::array<int64_t, 2> otherwise) const { return get(name, otherwise); }
  std::vector<std::pair<int64_t, int64_t>> pairs(const char *name) const {
    return get(name, std::vector<std::pair<int64_t, int64_t>>());
  }
  /// Places of `x[{...}]`: a number, [start, stop, step], "newaxis" or "...".
  std::vector<Index> indices() const;
  /// One axis, a list of them, or all.
  Axes axes(const char *name = "axis") const;
  DType dtype(DType otherwise = f32) const;

private:
  template <class T> T get(const char *name, T otherwise) const {
    return has(name) ? values_[name].get<T>() : otherwise;
  }
  nlohmann::json values_ = nlohmann::json::object();
};

/// One line of a table.
struct Case {
  std::string line; ///< `reductions.jsonl:17`
  std::string name; ///< of the function
  Tensors operands, wanted;
  Options options;
  double ulp;                ///< how far a result may be from what is wanted; 0: the same bits, but for a NaN's
  std::vector<double> scale; ///< ulp of what, for each element; empty: of the element itself
  std::string closed;        ///< words of the error that is due where sizes are left open; empty: none is
};

/// Every case of every table of the folder.
std::vector<Case> readTables(const std::string &folder);

} // namespace wg::tests
