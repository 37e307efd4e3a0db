// function: traces a C++ callable once for each signature, compiles it, and calls the compiled code from then on.
//
// The signature of a call: dtype and shape of each tensor, dtype, shape and aliasing pattern of each variable, type and
// value of everything else (numbers, enums, strings), and the lengths of vectors and maps. C++ `if` and `for` run while
// tracing; captured numbers and tensors are those that they were then (assigning another tensor to the handle is not
// seen); captured variables are read and assigned by every call.
#pragma once

#include <wengert/GradientTape.h>
#include <wengert/Profile.h>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace wg {

struct FunctionOptions {
  int64_t max_traces = 0;  ///< more since clear_cache are an error that says what changed; 0: no limit; not negative
  int64_t capacity = 1024; ///< concrete functions kept, at least 1; the least recently used is forgotten
  bool interpret = false;  ///< run op by op instead of compiling (also: environment WENGERT_INTERPRET=1)
  /// Reverse mode keeps the arguments alone, and computes what it needs of the inside again (see checkpoint).
  bool recompute = false;
  std::vector<std::string> argument_names = {}; ///< for reports and errors, all different; default arg0, arg1, ...
};

/// Where a program can be printed on its way to machine code.
enum class Stage { traced, dropped, simplified, fused, lowered, llvm, assembly };
WENGERT_API const char *to_string(Stage stage);

/// One adjoint that is not computed.
struct DroppedGradient {
  std::string op;     ///< `contract`
  int operand;        ///< which operand's cotangent
  std::string where;  ///< the line of the forward op
  std::string reason; ///< `not requested`, `no path to the loss`, `behind stop_gradient`
};

struct StageTime {
  std::string stage;
  double seconds;
  int64_t ops; ///< in the program after it
};

/// One kernel of the compiled function.
struct KernelInfo {
  std::string name;
  std::string kind;    ///< map, reduce, contract, single, external
  std::string summary; ///< the ops in it
  std::string where;   ///< the line of its last op
  int64_t ops = 0;
  double flops = 0; ///< of all arithmetic but transcendental functions; NaN where the sizes do not tell (a routine's)
  double bytes = 0; ///< read and written
};

struct ObjectOptions {
  std::string name = {}; ///< of the C function; default: the function's
  std::string cpu = {};  ///< an LLVM CPU name; default: x86-64-v2
};

namespace detail {

/// A list with room for N elements before it needs the heap. The library has the bodies, for the lists of this header.
template <class T, size_t N> class WENGERT_API Inline {
public:
  Inline() = default;
  Inline(const Inline &) = delete;
  Inline &operator=(const Inline &) = delete;
  ~Inline();
  void push_back(const T &value) {
    reserve(size_ + 1);
    data_[size_++] = value;
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
WENGERT_API bool functionsRunEagerly();

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
  if (functionsRunEagerly()) [[unlikely]]
    return f(args...);
  return calledBy<std::decay_t<R>, A...>(state, f, where, args...);
}

} // namespace detail

/// One traced signature of a function: its program on the way to machine code, and its report.
class WENGERT_API ConcreteFunction {
public:
  /// The tensors among the arguments, in order, without structure: `cf(x, y)`. Shapes and dtypes are checked.
  template <class... A> std::vector<Tensor> operator()(const Targets &first, const A &...rest) const {
    std::vector<detail::Source> leaves = first.list;
    (detail::collectSources(rest, leaves), ...);
    return callLeaves(leaves, first.where);
  }
  std::vector<Tensor> operator()(Where where = Where::current()) const { return callLeaves({}, where); }
  /// One tensor for each tensor argument.
  std::vector<Tensor> call_flat(std::span<const Tensor> arguments, Where where = Where::current()) const;
  /// The program after a stage, as text that parses back (llvm and assembly: as their tools print it).
  std::string text(Stage stage) const;
  /// `step(arg0: f32[64,784], arg1: i64[64]) -> (f32[])`
  std::string signature() const;
  /// The gradients that are not computed, each with its reason.
  std::vector<DroppedGradient> certificate() const;
  std::vector<KernelInfo> kernels() const;
  /// What a call takes beside its arguments and results: bytes of the workspace, the most of the sizes that it was
  /// compiled for; 0 if it is interpreted.
  int64_t workspace_bytes() const;
  /// Where the time of a call with these tensors goes, kernel by kernel. Runs it for about 0.3 seconds on copies of
  /// what it updates: no variable, generator or argument changes. The program is compiled once more, with marks of
  /// time; a machine's limits are measured at its first profile (about a second), and kept in a file of the user's
  /// cache.
  template <class... A> Profile profile(const Targets &first, const A &...rest) const {
    std::vector<detail::Source> leaves = first.list;
    (detail::collectSources(rest, leaves), ...);
    return profileLeaves(leaves, first.where);
  }
  Profile profile(Where where = Where::current()) const { return profileLeaves({}, where); }
  std::vector<StageTime> timings() const;
  /// The variables that it reads or assigns, in the order in which an object file takes them: after the arguments.
  std::vector<Variable> variables() const;
  /// Compiles ahead of time: NAME.o and NAME.h in `directory`.
  void write_object(const std::string &directory, ObjectOptions options = {}, Where where = Where::current()) const;

  explicit ConcreteFunction(std::shared_ptr<detail::ConcreteState> state) : state_(std::move(state)) {}
  const std::shared_ptr<detail::ConcreteState> &state() const { return state_; }

private:
  /// Errors if it was moved from.
  detail::ConcreteState &self(const Where &where = {}) const;
  std::vector<Tensor> callLeaves(const std::vector<detail::Source> &leaves, const Where &where) const;
  Profile profileLeaves(const std::vector<detail::Source> &leaves, const Where &where) const;
  std::shared_ptr<detail::ConcreteState> state_;
};

/// What every function has, whatever its type.
class WENGERT_API FunctionBase {
public:
  /// How often the callable was traced, and how many concrete functions are in the cache.
  int64_t trace_count() const;
  int64_t num_concrete() const;
  /// What made the last trace necessary: the argument that differed from the nearest known signature, its old and new
  /// value, the place of the call, and what tracing and compiling cost.
  std::string explain_last_trace() const;
  /// One paragraph per concrete function: signature, reason, calls, ops by stage, kernels, times.
  std::string report() const;
  /// Forgets the concrete functions: the next call of each signature traces again, and max_traces counts from 0.
  void clear_cache();
  const std::string &name() const;
  const std::shared_ptr<detail::FunctionState> &state() const { return state_; }

protected:
  /// Takes `kept` over, also if it throws.
  FunctionBase(std::string name, const FunctionOptions &options, const Where &where, detail::Kept *kept);
  FunctionBase(const FunctionBase &) = default;
  FunctionBase(FunctionBase &&) noexcept = default;
  FunctionBase &operator=(const FunctionBase &) = default;
  FunctionBase &operator=(FunctionBase &&) noexcept = default;
  ~FunctionBase();
  /// Errors if the function was moved from.
  detail::FunctionState &self(const Where &where = {}) const;
  template <class F> F &kept() const { return static_cast<detail::KeptCallable<F> &>(*kept_).f; }

private:
  std::shared_ptr<detail::FunctionState> state_;
  std::shared_ptr<detail::Kept> kept_;
};

/// A callable with a known parameter list. Copies share the cache. Any number of threads may call it. After a move,
/// every use of the function that was moved from is an error. While exit() destroys static objects, what has no
/// machine code yet is interpreted.
template <class Signature> class Function;
template <class R, class... P> class Function<R(P...)> : public FunctionBase {
  using Original = std::function<R(P...)>;

public:
  Function(std::string name, Original f, const FunctionOptions &options = {}, Where where = Where::current())
      : FunctionBase(std::move(name), options, where, new detail::KeptCallable<Original>(std::move(f))) {}

  R operator()(P... args, Where where = Where::current()) const {
    if constexpr (detail::checkTypes<R, std::decay_t<P>...>())
      return detail::invoke<R, Original, std::decay_t<P>...>(self(where), kept<Original>(), where, args...);
  }
  /// Traces and compiles without running (with a dynamic size, a call compiles). A TensorSpec may stand for any tensor.
  ConcreteFunction trace(P... args, Where where = Where::current()) const {
    if constexpr (detail::checkTypes<R, std::decay_t<P>...>()) {
      detail::Arguments arguments(where);
      return ConcreteFunction(
          detail::concreteOf<R, std::decay_t<P>...>(self(where), kept<Original>(), arguments, args...));
    }
  }
  /// Where the time of such a call goes, kernel by kernel: ConcreteFunction::profile of its signature.
  Profile profile(P... args, Where where = Where::current()) const {
    if constexpr (detail::checkTypes<R, std::decay_t<P>...>())
      return detail::profileOf<R, std::decay_t<P>...>(self(where), kept<Original>(), where, args...);
  }
  /// The callable itself.
  const Original &original() const {
    self();
    return kept<Original>();
  }
};

/// A callable with `auto` parameters: their types are those of the arguments. Its reports cannot name the place of a
/// call.
template <class F> class GenericFunction : public FunctionBase {
public:
  GenericFunction(std::string name, F f, const FunctionOptions &options = {}, Where where = Where::current())
      : FunctionBase(std::move(name), options, where, new detail::KeptCallable<F>(std::move(f))) {}
  template <class... A> auto operator()(const A &...args) const {
    static_assert(std::is_invocable_v<F &, const A &...>,
                  "the callable of this wg::function does not take these arguments");
    if constexpr (std::is_invocable_v<F &, const A &...>) {
      using R = std::invoke_result_t<F &, const A &...>;
      if constexpr (detail::checkTypes<R, A...>())
        return detail::invoke<R, F, A...>(self(), kept<F>(), Where(), args...);
    }
  }
  template <class... A> ConcreteFunction trace(const A &...args) const {
    using R = std::invoke_result_t<F &, const A &...>;
    if constexpr (detail::checkTypes<R, A...>()) {
      detail::Arguments arguments{Where()};
      return ConcreteFunction(detail::concreteOf<R, A...>(self(), kept<F>(), arguments, args...));
    }
  }
  template <class... A> Profile profile(const A &...args) const {
    using R = std::invoke_result_t<F &, const A &...>;
    if constexpr (detail::checkTypes<R, A...>())
      return detail::profileOf<R, A...>(self(), kept<F>(), Where(), args...);
  }
};

/// A callable with default arguments: a call may leave the last ones out.
template <class F, class Signature> class DefaultedFunction;
template <class F, class R, class... P> class DefaultedFunction<F, R(P...)> : public Function<R(P...)> {
public:
  DefaultedFunction(std::string name, std::shared_ptr<F> f, const FunctionOptions &options, Where where)
      : Function<R(P...)>(
            std::move(name), [f](P... args) -> R { return (*f)(std::forward<P>(args)...); }, options, where),
        f_(std::move(f)) {}

  using Function<R(P...)>::operator();
  using Function<R(P...)>::trace;
  using Function<R(P...)>::profile;
  template <class... A>
    requires(sizeof...(A) < sizeof...(P) && std::is_invocable_v<F &, const A &...>)
  R operator()(const A &...args) const {
    return first<sizeof...(A)>(
        [&]<class... Q>(const Q &...converted) -> R {
          if constexpr (detail::checkTypes<R, Q...>())
            return detail::invoke<R, F, Q...>(this->self(), *f_, Where(), converted...);
        },
        args...);
  }
  template <class... A>
    requires(sizeof...(A) < sizeof...(P) && std::is_invocable_v<F &, const A &...>)
  ConcreteFunction trace(const A &...args) const {
    return first<sizeof...(A)>(
        [&]<class... Q>(const Q &...converted) {
          detail::Arguments arguments{Where()};
          return ConcreteFunction(detail::concreteOf<R, Q...>(this->self(), *f_, arguments, converted...));
        },
        args...);
  }
  template <class... A>
    requires(sizeof...(A) < sizeof...(P) && std::is_invocable_v<F &, const A &...>)
  Profile profile(const A &...args) const {
    return first<sizeof...(A)>(
        [&]<class... Q>(const Q &...converted) {
          return detail::profileOf<R, Q...>(this->self(), *f_, Where(), converted...);
        },
        args...);
  }

private:
  /// Calls `use` with the first arguments as the callable declares them.
  template <size_t n, class Use, class... A> static auto first(const Use &use, const A &...args) {
    auto each = [&]<size_t... i>(std::index_sequence<i...>) {
      return use(static_cast<const std::decay_t<std::tuple_element_t<i, std::tuple<P...>>> &>(args)...);
    };
    return each(std::make_index_sequence<n>());
  }
  std::shared_ptr<F> f_;
};

namespace detail {
/// An op's operand is a tensor to who calls it.
template <class P> using Parameter = std::conditional_t<std::same_as<std::decay_t<P>, Located>, const Tensor &, P>;
template <class R, class... P> struct CallSignature {
  using type = R(Parameter<P>...);
  template <class F, size_t... i> static constexpr bool takesFewer(std::index_sequence<i...>) {
    return std::is_invocable_v<F &, std::tuple_element_t<i, std::tuple<P...>>...>;
  }
  /// Whether it can be called without its last argument.
  template <class F> static constexpr bool hasDefaults() {
    if constexpr (sizeof...(P) == 0)
      return false;
    else
      return takesFewer<F>(std::make_index_sequence<sizeof...(P) - 1>());
  }
};
template <class F> struct SignatureOf;
template <class R, class... P> struct SignatureOf<R (*)(P...)> : CallSignature<R, P...> {};
template <class R, class... P> struct SignatureOf<R (*)(P...) noexcept> : CallSignature<R, P...> {};
template <class C, class R, class... P> struct SignatureOf<R (C::*)(P...)> : CallSignature<R, P...> {};
template <class C, class R, class... P> struct SignatureOf<R (C::*)(P...) const> : CallSignature<R, P...> {};
template <class C, class R, class... P> struct SignatureOf<R (C::*)(P...) noexcept> : CallSignature<R, P...> {};
template <class C, class R, class... P> struct SignatureOf<R (C::*)(P...) const noexcept> : CallSignature<R, P...> {};
template <class F>
concept HasOneSignature = requires { &F::operator(); } || std::is_pointer_v<F>;
} // namespace detail

/// A function that is traced on its first call of each signature, differentiated and compiled, and from then on one
/// native call: `auto step = wg::function("step", [&](const Tensor &x) { ... });`. `f` may be a lambda, with default
/// arguments or of a type that can only be moved, a function, or an op: `wg::function("exp", wg::exp)`.
template <class F>
auto function(std::string name, F f, const FunctionOptions &options = {}, Where where = Where::current()) {
  if constexpr (std::is_pointer_v<F>) {
    return Function<typename detail::SignatureOf<F>::type>(std::move(name), f, options, where);
  } else if constexpr (detail::HasOneSignature<F>) {
    using Signature = detail::SignatureOf<decltype(&F::operator())>;
    if constexpr (Signature::template hasDefaults<F>())
      return DefaultedFunction<F, typename Signature::type>(std::move(name), std::make_shared<F>(std::move(f)), options,
                                                            where);
    else if constexpr (std::copy_constructible<F>)
      return Function<typename Signature::type>(std::move(name), std::move(f), options, where);
    else
      return Function<typename Signature::type>(
          std::move(name),
          [f = std::make_shared<F>(std::move(f))](auto &&...args) -> decltype(auto) {
            return (*f)(std::forward<decltype(args)>(args)...);
          },
          options, where);
  } else {
    return GenericFunction<F>(std::move(name), std::move(f), options, where);
  }
}
template <class F>
  requires(!std::convertible_to<F, std::string>)
auto function(F f, const FunctionOptions &options = {}, Where where = Where::current()) {
  return wg::function(std::string("function"), std::move(f), options, where);
}

/// Every function runs its C++ body op by op: for debugging.
WENGERT_API void set_run_functions_eagerly(bool eagerly);

namespace detail {
/// Suspends tracing and recording on this thread while it lives.
class WENGERT_API OutsideTrace {
public:
  OutsideTrace();
  OutsideTrace(const OutsideTrace &) = delete;
  ~OutsideTrace();

private:
  void *level_, *scope_;
};
} // namespace detail

/// Inside a traced function: runs `f` eagerly, once, at trace time (to make variables, for instance).
template <class F> auto at_trace_time(F &&f) {
  detail::OutsideTrace scope;
  return f();
}
/// Whether this thread is tracing a function now.
WENGERT_API bool tracing();

} // namespace wg
