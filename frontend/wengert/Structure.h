// Structures as words that a file can keep, and back: what a saved function takes and returns, and saved values.
#pragma once

#include <wengert/Tree.h>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace wg::detail {

/// One word of a structure.
struct TreeWord {
  enum Kind : uint8_t {
    argument,    ///< what follows is argument `number` of a signature
    tensor,      ///< in a signature of `type`
    variable,    ///< in a signature of `type`; the same as leaf `number`, and as place `place` - 1 of it
    gradient,    ///< one that exists, as a tensor
    rows,        ///< a gradient of type.shape, as rows
    none,        ///< an empty gradient, for the reason `text`
    real,        ///< a number of `number` bytes; its C++ type is `text`
    integer,     ///< the same, maybe unsigned
    boolean,     ///< the same
    enumeration, ///< the same, maybe unsigned
    string,      ///< `text`
    sizes,       ///< type.shape
    count,       ///< of `number` elements that follow
    key,         ///< the element of a map at `text`, up to `end`
    field,       ///< the field `text` of a struct, up to `end`
    end
  };
  Kind kind;
  bool isUnsigned = false;
  uint32_t number = 0, place = 0;
  uint64_t bits[2] = {};
  std::string text = {};
  TensorType type = {};
};

/// The words and the leaves of structures, in order.
class WENGERT_API TreeWriter {
public:
  TreeWriter();
  ~TreeWriter();
  void operator()(const Tensor &tensor);
  void operator()(const Variable &variable);
  void operator()(const Grad &grad);
  void operator()(const std::string &text);
  void operator()(const std::string_view &text);
  void operator()(const Ints &sizes);
  void operator()(Count count);
  void operator()(Key key);
  void operator()(Field field);
  /// A number or an enum, by its bits.
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(const T &value) {
    number(numberKind<T>(), isUnsigned<T>(), &value, sizeof(T));
  }

  template <class T> static constexpr TreeWord::Kind numberKind() {
    return std::same_as<T, bool>         ? TreeWord::boolean
           : std::is_floating_point_v<T> ? TreeWord::real
           : std::is_enum_v<T>           ? TreeWord::enumeration
                                         : TreeWord::integer;
  }
  template <class T> static constexpr bool isUnsigned() {
    if constexpr (std::is_enum_v<T>)
      return std::is_unsigned_v<std::underlying_type_t<T>>;
    else
      return std::is_unsigned_v<T> && !std::same_as<T, bool>;
  }

  std::vector<TreeWord> words;
  std::vector<Tensor> tensors; ///< of what is rows the indices, then the rows; undefined ones too
  std::vector<Variable> variables;

private:
  void number(TreeWord::Kind kind, bool isUnsigned, const void *value, size_t bytes);
};
/// The words of a T behind a pointer.
template <class T> void describeTree(const void *tree, TreeWriter &writer) {
  visit(*static_cast<const T *>(tree), writer);
}

/// Reads words and leaves back. An error where they are of another structure than the type that is asked for.
class WENGERT_API TreeReader {
public:
  /// `what` is read, for errors. Without tensors there is an empty one at each place: the prototype of results.
  TreeReader(std::string what, std::span<const TreeWord> words, const std::vector<Tensor> *tensors,
             const std::vector<Variable> *variables, const Where &where);
  TreeReader(const TreeReader &) = delete;
  ~TreeReader();
  Tensor tensor();
  Variable variable();
  Grad gradient();
  std::string string();
  Ints sizes();
  size_t count();
  std::string key();
  void field(std::string_view name);
  void end();
  void number(TreeWord::Kind kind, bool isUnsigned, void *value, size_t bytes);
  /// Errors if there are more words.
  void finish();
  const Where &where() const { return where_; }

private:
  /// The next word, which is one of these kinds.
  const TreeWord &next(std::initializer_list<TreeWord::Kind> kinds, const char *wanted);
  [[noreturn]] void refuse(const std::string &wanted) const;
  std::string what_;
  std::span<const TreeWord> words_;
  const std::vector<Tensor> *tensors_;
  const std::vector<Variable> *variables_;
  Where where_;
  size_t at_ = 0, tensor_ = 0, variable_ = 0;
};

template <class T> T readTree(TreeReader &reader) {
  if constexpr (std::same_as<T, Tensor>) {
    return reader.tensor();
  } else if constexpr (std::same_as<T, Variable>) {
    return reader.variable();
  } else if constexpr (std::same_as<T, Grad>) {
    return reader.gradient();
  } else if constexpr (std::same_as<T, std::string>) {
    return reader.string();
  } else if constexpr (std::same_as<T, Shape> || std::same_as<T, Ints>) {
    return T(reader.sizes());
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    T value{};
    reader.number(TreeWriter::numberKind<T>(), TreeWriter::isUnsigned<T>(), &value, sizeof(T));
    return value;
  } else if constexpr (std::same_as<T, std::monostate>) {
    return {};
  } else if constexpr (isVector<T>) {
    T list;
    for (size_t left = reader.count(); left > 0; --left)
      list.push_back(readTree<typename T::value_type>(reader));
    return list;
  } else if constexpr (isOptional<T>) {
    return reader.count() ? T(readTree<typename T::value_type>(reader)) : T();
  } else if constexpr (isMap<T>) {
    T map;
    for (size_t left = reader.count(); left > 0; --left) {
      std::string key = reader.key();
      map.emplace(std::move(key), readTree<typename T::mapped_type>(reader));
      reader.end();
    }
    return map;
  } else if constexpr (HasFields<T>) {
    T tree{};
    const std::string_view *name = T::wengert_names();
    auto read = [&]<class F>(F &field) {
      reader.field(*name++);
      field = readTree<F>(reader);
      reader.end();
    };
    tree.wengert_fields()([&](auto &...fields) { (read(fields), ...); });
    return tree;
  } else if constexpr (isTuple<T>) {
    T tuple{};
    withElements(tuple, [&](auto &...elements) {
      ((elements = readTree<std::remove_reference_t<decltype(elements)>>(reader)), ...);
    });
    return tuple;
  } else {
    static_assert(std::same_as<T, Tensor>, "views (std::span, std::string_view) cannot be read from a file: ask for "
                                           "what owns its elements, std::vector or std::string");
    return T();
  }
}

} // namespace wg::detail
