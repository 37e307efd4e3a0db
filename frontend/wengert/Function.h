// function: traces a C++ callable once for each signature, compiles it, and calls the compiled code from then on.
//
// The signature of a call: dtype and shape of each tensor, dtype, shape and aliasing pattern of each variable, type and
// value of everything else (numbers, enums, strings), and the lengths of vectors and maps. C++ `if` and `for` run while
// tracing; captured numbers and tensors are those that they were then (assigning another tensor to the handle is not
// seen); captured variables are read and assigned by every call.
#pragma once

#include <wengert/Call.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
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
  friend auto operator<=>(const DroppedGradient &, const DroppedGradient &) = default;
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
