// A call of what is traced: its arguments as the words of a signature and the leaves that are handed over, the callable
// run on placeholders for these, and its results in the structure that it returned. Function.h, Control.h and Vmap.h
// are made of it.
#pragma once

#include <wengert/GradientTape.h>
#include <wengert/Profile.h>
#include <wengert/Structure.h>

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace wg {

namespace detail {

/// A list with room for N elements before it needs the heap. The library has the bodies, for the lists of this header.
template <class T, size_t N> class WENGERT_API Inline {
public:
  Inline() = default;
  Inline(const Inline &) = delete;
  Inline &operator=(const Inline &) = delete;
  ~Inline();
  void push_back(T value) {
    reserve(size_ + 1);
    data_[size_++] = std::move(value);
  }
  /// Room for `size` elements: pushing up to there does not fail.
  void reserve(size_t size) {
    if (size > capacity_) [[unlikely]]
      grow(size);
  }
  size_t size() const { return size_; }
  T &operator[](size_t i) { return data_[i]; }
  const T &operator[](size_t i) const { return data_[i]; }
  const T *begin() const { return data_; }
  const T *end() const { return data_ + size_; }
  T *data() { return data_; }
  void clear() { size_ = 0; }

private:
  void grow(size_t size);
  T local_[N];
  T *data_ = local_;
  size_t size_ = 0, capacity_ = N;
};

/// The kinds of words in a signature; the low byte of a head word.
enum class KeyTag : uint8_t {
  argument = 1,
  tensor,
  variable,
  real,
  integer,
  boolean,
  enumeration,
  string,
  count,
  key,
  field,
  endKey,
  place,
  sizes
};

/// `unsigned int`, out of `... [T = unsigned int]` or `... [with T = unsigned int; ...]`.
template <class T> constexpr std::string_view typeName() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("T = ") + 4);
  return text.substr(0, text.find_first_of(";]"));
}
/// The name of a static's C++ type; its address stands for the type in a signature.
template <class T> inline constexpr std::string_view kTypeIdentity = typeName<T>();

/// The leaves of a call's arguments, and the words of its signature.
class WENGERT_API Arguments {
public:
  struct Leaf {
    const Tensor *tensor;
    const Variable *variable;
  };
  explicit Arguments(const Where &where) : where(where) {}

  /// What follows belongs to an argument of the C++ type with this number.
  void argument(uint32_t index, uint32_t type) { word(KeyTag::argument, index, type); }
  void operator()(const Tensor &tensor);
  void operator()(const Variable &variable);
  void operator()(const Grad &grad) { (*this)(grad.value(where)); }
  void operator()(const std::string &text) { string(KeyTag::string, text); }
  void operator()(const std::string_view &text) { string(KeyTag::string, text); }
  void operator()(const Ints &sizes);
  void operator()(Key key) { key.key ? string(KeyTag::key, *key.key) : word(KeyTag::endKey, 0); }
  void operator()(Field field) {
    word(field.name ? KeyTag::field : KeyTag::endKey, 0);
    if (field.name)
      key.push_back(reinterpret_cast<uint64_t>(field.name));
  }
  void operator()(Count count) { word(KeyTag::count, static_cast<uint32_t>(count.count)); }
  /// A number or an enum: its own bits, so that -0 and 0 are two and a NaN is equal to itself.
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(const T &value) {
    constexpr bool isEnum = std::is_enum_v<T>, isReal = std::is_floating_point_v<T>;
    uint64_t bits[(sizeof(T) + 7) / 8] = {};
    bool isUnsigned = false;
    if constexpr (isReal) {
      // Of an x87 number's 16 bytes, 6 are padding and hold anything.
      __builtin_memcpy(bits, &value, std::numeric_limits<T>::digits == 64 ? 10 : sizeof(T));
    } else if constexpr (isEnum) {
      bits[0] = static_cast<uint64_t>(static_cast<std::underlying_type_t<T>>(value));
      isUnsigned = std::is_unsigned_v<std::underlying_type_t<T>>;
    } else {
      bits[0] = static_cast<uint64_t>(value);
      isUnsigned = std::is_unsigned_v<T>;
    }
    constexpr KeyTag tag = std::same_as<T, bool> ? KeyTag::boolean
                           : isReal              ? KeyTag::real
                           : isEnum              ? KeyTag::enumeration
                                                 : KeyTag::integer;
    word(tag, sizeof(T), isUnsigned);
    for (uint64_t part : bits)
      key.push_back(part);
    key.push_back(reinterpret_cast<uint64_t>(&kTypeIdentity<T>));
  }

  Inline<uint64_t, 64> key;
  Inline<Leaf, 16> leaves;
  Where where;
  bool symbolic = false; ///< one of them is no eager tensor, or is the parameter of a trace

private:
  void string(KeyTag tag, std::string_view text);
  void word(KeyTag tag, uint32_t a, uint32_t b = 0) {
    key.push_back(static_cast<uint64_t>(tag) | static_cast<uint64_t>(a) << 8 | static_cast<uint64_t>(b) << 40);
  }
};

/// What the body of a trace talks to: takes placeholders in the order of the leaves, gives results.
class TraceFrame {
public:
  virtual void place(Tensor &leaf) = 0;
  virtual void place(Variable &leaf) = 0;
  virtual void result(const Tensor &tensor) = 0;
  /// Whether a gradient may be handed over as rows: two results.
  virtual bool keepsRows() const { return true; }
  /// The result's structure with its tensors emptied; every call copies it and fills it in. A gradient that exists
  /// keeps a tensor without elements, so that it differs from an empty one.
  std::shared_ptr<const void> prototype;
  /// The words of the prototype's structure; null where there is none: each result is a tensor.
  void (*describePrototype)(const void *prototype, TreeWriter &writer) = nullptr;

protected:
  ~TraceFrame() = default;
};

/// A sparse gradient of this shape without its tensors, and one with them: dense where a tape records what follows.
WENGERT_API Grad emptyRows(const Shape &shape);
WENGERT_API Grad rowsOf(const Tensor &indices, const Tensor &rows, const Shape &shape);

/// Runs the user's callable on placeholders.
struct Body {
  void *context;
  void (*run)(void *context, TraceFrame &frame);
};

/// The results of a call.
struct Results {
  Inline<Tensor, 8> tensors;
  std::shared_ptr<const void> prototype;
  /// Copies the prototype into `structure` before the function runs: nothing may fail when it has assigned variables.
  void (*copy)(void *structure, const void *prototype) = nullptr;
  void *structure = nullptr;
};

class FunctionState;
class ConcreteState;
/// The user's callable, which the handles of its function share.
class WENGERT_API Kept {
public:
  Kept() = default;
  Kept(const Kept &) = delete;
  virtual ~Kept();
};
template <class F> class KeptCallable final : public Kept {
public:
  explicit KeptCallable(F f) : f(std::move(f)) {}
  F f;
};
/// Finds or makes the concrete function and calls it.
WENGERT_API void call(FunctionState &function, Arguments &arguments, Body body, Results &results);
/// Finds or makes it.
WENGERT_API std::shared_ptr<ConcreteState> concrete(FunctionState &function, Arguments &arguments, Body body);
/// Whether a call runs its callable: as a whole, for debugging, or as a part of what is traced.
WENGERT_API bool functionsRunEagerly(const FunctionState &function);

/// What holds the placeholders of an argument: a vector for a span, whose elements are the caller's.
template <class T> struct HeldType : std::type_identity<T> {};
template <class T, size_t N> struct HeldType<std::span<T, N>> : std::type_identity<std::vector<std::remove_cv_t<T>>> {};
template <class T> typename HeldType<T>::type held(const T &argument) {
  if constexpr (isSpan<T>)
    return {argument.begin(), argument.end()};
  else
    return argument;
}

/// Gives placeholders for the leaves of an argument.
struct Placeholders {
  TraceFrame &frame;
  template <class L> void operator()(L &leaf) {
    if constexpr (std::same_as<L, Tensor> || std::same_as<L, Variable>) {
      frame.place(leaf);
    } else if constexpr (std::same_as<L, Grad>) {
      Tensor value = leaf.value();
      frame.place(value);
      leaf = Grad(value);
    }
  }
};
/// Hands over the leaves of a result, and empties them.
struct HandOver {
  TraceFrame &frame;
  template <class L> void operator()(L &leaf) {
    if constexpr (std::same_as<L, Tensor>) {
      frame.result(leaf);
      leaf = Tensor();
    } else if constexpr (std::same_as<L, Variable>) {
      static_assert(!std::same_as<L, Variable>, "return variable.value(): a function returns tensors");
    } else if constexpr (std::same_as<L, Grad>) {
      if (leaf.is_sparse() && frame.keepsRows()) {
        frame.result(leaf.sparse_rows().indices);
        frame.result(leaf.sparse_rows().rows);
        leaf = emptyRows(leaf.sparse_rows().shape);
      } else if (leaf.has_value()) {
        frame.result(leaf.value());
        leaf = Grad(Tensor(TensorSpec()));
      }
    }
  }
};

/// A callable of arguments of these types.
template <class R, class... A> using Callable = FunctionRef<R(typename HeldType<A>::type &...)>;

/// Runs `f` with placeholders for the tensors and variables of `args`, and hands over its result.
template <class R, class... A> struct Tracer {
  Callable<R, A...> f;
  std::tuple<const A &...> args;

  static void run(void *context, TraceFrame &frame) {
    auto &self = *static_cast<Tracer *>(context);
    auto placeholders = withElements(
        self.args, [](const A &...arg) { return std::tuple<typename HeldType<A>::type...>{held(arg)...}; });
    auto placed = [&](typename HeldType<A>::type &...placeholder) -> R {
      (visit(placeholder, Placeholders{frame}), ...);
      return self.f(placeholder...);
    };
    if constexpr (std::is_void_v<R>) {
      withElements(placeholders, placed);
    } else if constexpr (std::same_as<R, Tensor>) {
      frame.result(withElements(placeholders, placed));
    } else {
      auto result = std::make_shared<R>(withElements(placeholders, placed));
      visit(*result, HandOver{frame});
      frame.prototype = std::move(result);
      frame.describePrototype = &describeTree<R>;
    }
  }
};

/// Fills in the leaves of a result.
struct TakeOver {
  Results &results;
  size_t next = 0;
  template <class L> void operator()(L &leaf) {
    if constexpr (std::same_as<L, Tensor>) {
      leaf = std::move(results.tensors[next++]);
    } else if constexpr (std::same_as<L, Grad>) {
      if (leaf.is_sparse()) {
        leaf = rowsOf(results.tensors[next], results.tensors[next + 1], leaf.shape());
        next += 2;
      } else if (leaf.has_value()) {
        leaf = Grad(std::move(results.tensors[next++]));
      }
    }
  }
};

/// The result of a call, in the structure that the callable returned.
template <class R> R unpack(Results &results) {
  if constexpr (std::is_void_v<R>) {
  } else if constexpr (std::same_as<R, Tensor>) {
    return std::move(results.tensors[0]);
  } else {
    R result = std::move(**static_cast<std::optional<R> *>(results.structure));
    visit(result, TakeOver{results});
    return result;
  }
}

/// A number for each C++ type, given at its first use.
WENGERT_API uint32_t nextTypeNumber();
template <class T> uint32_t typeNumber() {
  static const uint32_t number = nextTypeNumber();
  return number;
}

template <class... A> void collect(Arguments &arguments, const A &...args) {
  uint32_t index = 0;
  ((arguments.argument(index++, typeNumber<A>()), visit(args, arguments)), ...);
}

/// Says in one line what would otherwise be pages.
template <class R, class... A> constexpr bool checkTypes() {
  return (checkTree<A>() & ... & checkTree<std::conditional_t<std::is_void_v<R>, std::monostate, std::decay_t<R>>>());
}

/// What `run` makes of the trace of f, with results in the structure that f returns.
template <class R, class... A>
R trace(Callable<R, A...> f, FunctionRef<void(Body body, Results &results)> run, const A &...args) {
  using Trace = Tracer<R, A...>;
  Trace trace{f, {args...}};
  Results results;
  [[maybe_unused]] std::conditional_t<std::is_void_v<R>, char, std::optional<R>> structure{};
  if constexpr (!std::is_void_v<R> && !std::same_as<R, Tensor>) {
    results.structure = &structure;
    results.copy = [](void *to, const void *prototype) {
      static_cast<std::optional<R> *>(to)->emplace(*static_cast<const R *>(prototype));
    };
  }
  run(Body{&trace, &Trace::run}, results);
  return unpack<R>(results);
}

/// The concrete function of these arguments, which are collected.
template <class R, class... A>
std::shared_ptr<ConcreteState> concreteOf(FunctionState &state, Callable<std::decay_t<R>, A...> f, Arguments &arguments,
                                          const A &...args) {
  using Trace = Tracer<std::decay_t<R>, A...>;
  collect(arguments, args...);
  Trace trace{f, {args...}};
  return concrete(state, arguments, {&trace, &Trace::run});
}
WENGERT_API Profile profile(ConcreteState &concrete, std::span<const Arguments::Leaf> leaves, const Where &where);
template <class R, class... A>
Profile profileOf(FunctionState &state, Callable<std::decay_t<R>, A...> f, const Where &where, const A &...args) {
  Arguments arguments(where);
  std::shared_ptr<ConcreteState> concrete = concreteOf<R, A...>(state, f, arguments, args...);
  return profile(*concrete, {arguments.leaves.begin(), arguments.leaves.size()}, where);
}

template <class R, class... A>
R calledBy(FunctionState &state, Callable<R, A...> f, const Where &where, const A &...args) {
  Arguments arguments(where);
  collect(arguments, args...);
  auto run = [&](Body body, Results &results) { call(state, arguments, body, results); };
  return trace<R, A...>(f, run, args...);
}
template <class R, class F, class... A> R invoke(FunctionState &state, F &f, const Where &where, const A &...args) {
  if (functionsRunEagerly(state)) [[unlikely]]
    return f(args...);
  return calledBy<std::decay_t<R>, A...>(state, f, where, args...);
}

} // namespace detail

} // namespace wg
