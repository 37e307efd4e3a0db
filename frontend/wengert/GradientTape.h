// GradientTape: records what is computed while it is open, and differentiates it.
#pragma once

#include <wengert/Grad.h>
#include <wengert/Ops.h>
#include <wengert/Tree.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace wg {

class GradientTape;
class ForwardAccumulator;
class Targets;

/// What the gradient of an unconnected source is: empty, or zeros of its shape.
enum class Unconnected { none, zero };

/// One cotangent per target; an undefined tensor means ones. A number takes its target's dtype.
struct WENGERT_API Seeds {
  Seeds();
  Seeds(const Tensor &seed);
  template <Arithmetic T> Seeds(T seed) : Seeds(Tensor(seed)) { isNumber = true; }
  Seeds(std::vector<Tensor> seeds);
  Seeds(std::initializer_list<Tensor> seeds);
  Seeds(const std::vector<std::optional<Tensor>> &seeds);
  Seeds(const Seeds &other);
  Seeds(Seeds &&other) noexcept;
  Seeds &operator=(const Seeds &other);
  Seeds &operator=(Seeds &&other) noexcept;
  ~Seeds();
  std::vector<Tensor> list;
  bool isNumber = false;
};

struct GradientOptions {
  Seeds output_gradients = {};
  Unconnected unconnected = Unconnected::none;
  /// Whether tapes that are open now record the gradient's own computation (for a second derivative).
  bool record = true;
};

enum class DerivativeMode {
  automatic, ///< forward if the sources have no more elements than the targets
  forward,   ///< a column for each element of the sources
  reverse    ///< a row for each element of the targets
};

struct JacobianOptions {
  DerivativeMode mode = DerivativeMode::automatic;
  int64_t chunk_size = 0; ///< columns or rows at once; 0: as many as memory_limit lets, if possible all of them
  int64_t memory_limit = int64_t(4) << 30; ///< bytes for what is computed on the way; 0: no limit
  Unconnected unconnected = Unconnected::none;
};

/// What a tape holds, and what for.
struct MemoryReport {
  struct Value {
    std::string what;                 ///< `'tanh' (net.cpp:12): f32[64,128]`
    int64_t bytes = 0;                ///< of its buffer, which values of one memory share
    std::vector<std::string> readers; ///< the ops whose derivatives read it; empty: none does
  };
  std::vector<Value> values; ///< in the order in which they were computed
  int64_t bytes = 0;         ///< in all
  int64_t bytes_read = 0;    ///< of what a derivative reads
};
WENGERT_API std::string to_string(const MemoryReport &report);
WENGERT_API std::ostream &operator<<(std::ostream &out, const MemoryReport &report);

struct GradientTapeOptions {
  bool persistent = false;               ///< more than one gradient() call
  bool watch_accessed_variables = true;  ///< watch trainable variables when they are read
  bool recording = true;                 ///< record from the start
  bool allow_non_differentiable = false; ///< watching an integer tensor or variable is no error; its gradient is empty
};

namespace detail {

class Tape;
/// A handle to the variable that counts as one of its own to this tape: what is read through it is read at this place.
WENGERT_API Variable placeOf(GradientTape &tape, const Variable &variable, const Where &where);
/// What is behind a tape; an error if it was moved from.
WENGERT_API std::shared_ptr<Tape> stateOf(const GradientTape &tape, const Where &where);

/// A tensor or a variable among the sources of a gradient, or among what is watched.
struct WENGERT_API Source {
  Source(const Tensor &tensor);
  Source(const Variable &variable);
  Source(const Grad &grad);
  Source(const Source &other);
  Source(Source &&other) noexcept;
  Source &operator=(const Source &other);
  Source &operator=(Source &&other) noexcept;
  ~Source();
  Tensor tensor;
  Variable variable;
  std::string reason; ///< of an empty gradient
};

/// The tangents of the targets where each source moves by the one beside it; an empty one stands still.
WENGERT_API std::vector<Grad> tangentsOf(GradientTape &tape, const Targets &targets, const std::vector<Source> &sources,
                                         const std::vector<Grad> &moves);
/// The Jacobians of all targets by all sources: by target, then by source.
WENGERT_API std::vector<std::vector<Grad>> jacobiansOf(GradientTape &tape, const Targets &targets,
                                                       const std::vector<Source> &sources,
                                                       const JacobianOptions &options);
WENGERT_API void append(std::vector<Source> &sources, const Tensor &tensor);
WENGERT_API void append(std::vector<Source> &sources, const Variable &variable);
WENGERT_API void append(std::vector<Source> &sources, const Grad &grad);
WENGERT_API void append(std::vector<Source> &sources, const Source &source);
/// The tensors, variables and gradients in a structure, in order.
template <class T> void collectLeaves(const T &tree, std::vector<Source> &sources) {
  visit(tree, [&]<class L>(const L &leaf) {
    if constexpr (requires { append(sources, leaf); })
      append(sources, leaf);
  });
}
/// Whether there is a gradient by a T; if not, one line says what to do.
template <class T> constexpr bool checkSource() {
  if constexpr (checkTree<T, true>()) {
    static_assert(holdsTensors<T>(), "numbers, enums, strings and structures of them have no gradient; give a tensor, "
                                     "a variable, or a structure that holds one");
    return holdsTensors<T>();
  }
  return false;
}
template <class T> void collectSources(const T &tree, std::vector<Source> &sources) {
  if constexpr (checkSource<T>())
    collectLeaves(tree, sources);
}

/// Ends a scope when it dies: recording goes back to what it was, unless the tape was used up meanwhile.
class [[nodiscard]] WENGERT_API Recording {
public:
  Recording(std::shared_ptr<Tape> tape, bool before) : tape_(std::move(tape)), before_(before) {}
  Recording(Recording &&other) noexcept = default;
  Recording &operator=(Recording &&) = delete;
  ~Recording();

private:
  std::shared_ptr<Tape> tape_;
  bool before_;
};

} // namespace detail

/// One tensor or variable, or any structure of them, with the place where it was written.
class WENGERT_API Targets {
public:
  template <class T> Targets(const T &tree, Where where = Where::current()) : where(where) {
    detail::collectSources(tree, list);
  }
  Targets(std::initializer_list<detail::Source> leaves, Where where = Where::current());
  Targets(const Targets &other);
  Targets &operator=(const Targets &other);
  ~Targets();
  std::vector<detail::Source> list;
  Where where;
};

/// Records the ops that depend on something watched, from its construction until it dies, is stopped, or, unless
/// persistent, is asked for a gradient. Tapes nest; each belongs to the thread, and to the traced function, that made
/// it. After a move, every use of the tape that was moved from is an error.
class WENGERT_API GradientTape {
public:
  explicit GradientTape(GradientTapeOptions options = {});
  GradientTape(const GradientTape &) = delete;
  GradientTape &operator=(const GradientTape &) = delete;
  GradientTape(GradientTape &&other) noexcept = default;
  GradientTape &operator=(GradientTape &&) = delete;
  ~GradientTape();

  /// Tensors, variables, models, or any structures of them. Ops recorded from now on that use them are differentiable
  /// by them.
  /// Errors: a tensor that is undefined, or no float unless `allow_non_differentiable`.
  template <class... T> void watch(const Targets &first, const T &...rest) {
    std::vector<detail::Source> sources = first.list;
    (detail::collectSources(rest, sources), ...);
    watchAll(sources, first.where);
  }
  /// Records until the result dies; an error if the tape is recording already.
  detail::Recording record(Where where = Where::current());
  /// Pauses until the result dies: what is computed meanwhile is constant to this tape.
  detail::Recording stop_recording(Where where = Where::current());
  void stop(Where where = Where::current());
  /// Forgets everything, watched variables too, and goes on.
  void reset(Where where = Where::current());
  /// Frees what was recorded.
  void release(Where where = Where::current()) { reset(where); }
  bool recording(Where where = Where::current()) const;
  /// In the order of their construction.
  std::vector<Variable> watched_variables(Where where = Where::current()) const;
  /// Number of ops on the tape.
  int64_t size(Where where = Where::current()) const;

  /// The gradient of the sum of the targets' elements (weighted by `output_gradients`) by one source, or by several as
  /// a tuple; a structure of sources gives the same structure of gradients, empty for its statics, and a model a list,
  /// one for each of its trainable variables. The last argument may be GradientOptions. Errors: a second use of a tape
  /// that is not persistent; seeds that do not fit the targets; an op without a rule.
  template <class First, class... Rest> auto gradient(const Targets &targets, const First &first, const Rest &...rest) {
    if constexpr (sizeof...(Rest) == 0)
      return gradientOf(targets, defaults(), first);
    else if constexpr (std::same_as<std::tuple_element_t<sizeof...(Rest) - 1, std::tuple<Rest...>>, GradientOptions>)
      return splitOptions(targets, std::forward_as_tuple(first, rest...), std::make_index_sequence<sizeof...(Rest)>());
    else
      return gradientOf(targets, defaults(), first, rest...);
  }
  /// With the options in braces: `tape.gradient(loss, w, {.unconnected = Unconnected::zero})`.
  template <class S> auto gradient(const Targets &targets, const S &source, const GradientOptions &options) {
    return gradientOf(targets, options, source);
  }
  template <class A, class B>
  auto gradient(const Targets &targets, const A &a, const B &b, const GradientOptions &options) {
    return gradientOf(targets, options, a, b);
  }
  template <class A, class B, class C>
  auto gradient(const Targets &targets, const A &a, const B &b, const C &c, const GradientOptions &options) {
    return gradientOf(targets, options, a, b, c);
  }
  /// By a list in braces: `tape.gradient(loss, {w, b})`.
  template <size_t n>
  GradArray<n> gradient(const Targets &targets, const detail::Source (&sources)[n],
                        const GradientOptions &options = {}) {
    return detail::arrayOf<n>(gradientAll(targets, {std::begin(sources), std::end(sources)}, options));
  }
  /// The Jacobian of one target: of shape target.shape + source.shape for each source, in the structure of the sources;
  /// empty with a reason where nothing leads to the target. Many columns (forward mode) or rows (reverse mode) are
  /// computed by one batched program, in a traced function too: `auto j = tape.jacobian(y, x);`. A second derivative
  /// goes through it. Errors: several targets; what is an error of gradient(). Memory: that of target and source
  /// together for the result, and up to memory_limit on the way.
  template <class S> auto jacobian(const Targets &target, const S &source, const JacobianOptions &options = {}) {
    return jacobianOf(target, options, source);
  }
  template <class A, class B>
  auto jacobian(const Targets &target, const A &a, const B &b, const JacobianOptions &options = {}) {
    return jacobianOf(target, options, a, b);
  }
  template <size_t n>
  GradArray<n> jacobian(const Targets &target, const detail::Source (&sources)[n],
                        const JacobianOptions &options = {}) {
    return detail::arrayOf<n>(jacobianAll(target, {std::begin(sources), std::end(sources)}, options));
  }
  /// The Jacobian of each example: target [b, y...] and source [b, x...] -> [b, y..., x...], where an example of the
  /// target depends on the same one of the source only, which is not checked. Errors: rank below 2; another b.
  Grad batch_jacobian(const Targets &target, const detail::Source &source, const JacobianOptions &options = {});
  /// How the last Jacobian was computed: in which mode, why in that, and how many columns or rows at once.
  std::string explain_jacobian(Where where = Where::current()) const;

  /// What the tape keeps for derivatives, in bytes, and which ops' derivatives read it. In a traced function only what
  /// they read is kept; sizes `?` count as 1 there.
  MemoryReport memory_report(Where where = Where::current()) const;

  /// Why the gradient of target by source is what it is: the path, or where it breaks.
  template <class S> std::string explain(const Targets &target, const S &source) {
    std::vector<detail::Source> sources;
    detail::collectSources(source, sources);
    return explainAll(target, sources);
  }

private:
  static const GradientOptions &defaults();
  template <class Tuple, size_t... I>
  auto splitOptions(const Targets &targets, const Tuple &arguments, std::index_sequence<I...>) {
    return gradientOf(targets, std::get<sizeof...(I)>(arguments), std::get<I>(arguments)...);
  }
  template <class... S> auto gradientOf(const Targets &targets, const GradientOptions &options, const S &...sources) {
    if constexpr (!(detail::checkSource<S>() && ...)) {
      return Grad();
    } else {
      std::vector<detail::Source> list;
      (detail::collectSources(sources, list), ...);
      return structured(gradientAll(targets, list, options), sources...);
    }
  }
  template <class... S> auto jacobianOf(const Targets &target, const JacobianOptions &options, const S &...sources) {
    if constexpr (!(detail::checkSource<S>() && ...)) {
      return Grad();
    } else {
      std::vector<detail::Source> list;
      (detail::collectSources(sources, list), ...);
      return structured(jacobianAll(target, list, options), sources...);
    }
  }
  /// One gradient a source, in the structure of the sources.
  template <class... S> static auto structured(std::vector<Grad> grads, const S &...sources) {
    size_t next = 0;
    auto take = [&]<class L>(const L &) -> Grad {
      if constexpr (detail::isStatic<L>)
        return Grad::none(detail::kNotASource);
      else
        return std::move(grads[next++]);
    };
    if constexpr (sizeof...(S) == 1)
      return (detail::mapTree(sources, take), ...);
    else
      return std::tuple<detail::GradientOf<S>...>{detail::mapTree(sources, take)...};
  }
  friend Variable detail::placeOf(GradientTape &tape, const Variable &variable, const Where &where);
  friend std::vector<Grad> detail::tangentsOf(GradientTape &tape, const Targets &targets,
                                              const std::vector<detail::Source> &sources,
                                              const std::vector<Grad> &moves);
  friend std::vector<std::vector<Grad>> detail::jacobiansOf(GradientTape &tape, const Targets &targets,
                                                            const std::vector<detail::Source> &sources,
                                                            const JacobianOptions &options);
  friend ForwardAccumulator;
  friend class Saved;
  friend std::shared_ptr<detail::Tape> detail::stateOf(const GradientTape &tape, const Where &where);
  explicit GradientTape(std::shared_ptr<detail::Tape> tape) : tape_(std::move(tape)) {}
  /// Errors if the tape was moved from.
  detail::Tape &tape(const Where &where) const;
  void watchAll(const std::vector<detail::Source> &sources, const Where &where);
  std::vector<Grad> gradientAll(const Targets &targets, const std::vector<detail::Source> &sources,
                                const GradientOptions &options);
  std::vector<Grad> jacobianAll(const Targets &target, const std::vector<detail::Source> &sources,
                                const JacobianOptions &options);
  std::string explainAll(const Targets &targets, const std::vector<detail::Source> &sources);

  std::shared_ptr<detail::Tape> tape_;
};

} // namespace wg
