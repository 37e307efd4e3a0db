// Control flow on data: conditions and loops whose path a tensor decides. Eagerly they are the C++ that they look like,
// and tapes see the ops that ran. In a traced function each branch and each body is traced once and becomes a part of
// the program: compiling takes time in proportion to the text, not to the turns.
//
// Branches and bodies may use whatever C++ sees: tensors and variables from outside, which may be assigned, other
// functions, further conditions and loops. Derivatives in every mode are conditions and loops again.
#pragma once

#include <wengert/Function.h>
#include <wengert/Ops.h>
#include <wengert/Transforms.h>

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace wg {

struct WhileOptions {
  /// The most turns; the loop ends after so many. With a limit, what the reverse pass keeps has a known size.
  /// -1: no limit.
  int64_t max_steps = -1;
  bool differentiable = true; ///< false: gradients stop at the results
  /// In a traced function, with `max_steps`: the reverse pass keeps the state before every so many turns, and computes
  /// those turns again, once. 0: it keeps what it needs of each turn. The least memory is at the root of the turns.
  int64_t checkpoint_every = 0;
  /// In a traced function that is compiled: the reverse pass keeps at most so many states at a time and computes turns
  /// again, each as few times as can be: r times for at most (checkpoints + r)! / (checkpoints! r!) turns (Griewank and
  /// Walther 2000, algorithm 799). 0: as `checkpoint_every` says. Needs no `max_steps`, but ahead of time. A derivative
  /// of the gradient keeps all states.
  int64_t checkpoints = 0;
};

struct ScanOptions {
  bool reverse = false;         ///< from the last row to the first
  int64_t length = -1;          ///< the number of turns, needed where nothing is scanned
  int64_t checkpoint_every = 0; ///< as WhileOptions::checkpoint_every, where the number of turns is known
  int64_t checkpoints = 0;      ///< as WhileOptions::checkpoints
};

struct RangeOptions {
  bool unroll = false;          ///< one copy of the body for each turn: for few turns of little work
  int64_t checkpoint_every = 0; ///< as ScanOptions::checkpoint_every
  int64_t checkpoints = 0;      ///< as WhileOptions::checkpoints
};

namespace detail {

/// Whether a function is being traced here.
WENGERT_API bool isTracing();
/// The value of a predicate: a bool scalar. Eager.
WENGERT_API bool truthOf(const char *op, const Tensor &predicate, const Where &where);
/// Which of `count` branches an integer scalar names: the nearest. Eager.
WENGERT_API int64_t branchOf(const Tensor &index, int64_t count, const Where &where);

/// What a structure is beside its tensors: lengths, keys and numbers, as words of a signature.
using Structure = std::vector<uint64_t>;
WENGERT_API const Tensor &anyTensor();
struct StructureWords {
  Arguments &words;
  template <class L> void operator()(const L &leaf) {
    if constexpr (std::same_as<L, Tensor> || std::same_as<L, Grad>)
      words(anyTensor());
    else
      words(leaf);
  }
};
template <class T> Structure structureOf(const T &tree) {
  if constexpr (std::same_as<T, Tensor>)
    return {};
  Arguments words{Where()};
  words.argument(0, 0);
  visit(tree, StructureWords{words});
  return {words.key.begin(), words.key.end()};
}

/// In a trace: the branch that the selector names, all without arguments.
struct TracedBranch {
  Body body;
  const Structure &structure; ///< of what it returned
};
WENGERT_API void traceCond(const char *op, const Tensor &selector, std::span<const TracedBranch> branches,
                           Results &results, const Where &where);
template <class R> struct Branch {
  FunctionRef<R()> f;
  Structure structure = {};
  R operator()() {
    R result = f();
    structure = structureOf(result);
    return result;
  }
};
/// The results of one of `branches`, which `selector` chooses.
template <class R>
R condTraced(const char *op, const Tensor &selector, std::span<const FunctionRef<R()>> branches, const Where &where) {
  std::vector<Branch<R>> run;
  std::vector<Tracer<R>> tracers;
  std::vector<TracedBranch> traced;
  for (const FunctionRef<R()> &branch : branches)
    run.push_back({branch});
  for (Branch<R> &branch : run)
    tracers.push_back({branch, {}});
  for (size_t i = 0; i < run.size(); ++i)
    traced.push_back({{&tracers[i], &Tracer<R>::run}, run[i].structure});
  auto join = [&](Body, Results &results) { traceCond(op, selector, traced, results, where); };
  return trace<R>(run.front(), join);
}

/// A loop to be traced. The body takes the state, then rows; it returns the state, then what is stacked.
struct TracedLoop {
  const char *op;
  Arguments &state;     ///< the tensors at the beginning
  Arguments &arguments; ///< of the body: the state, then rows, of which only the types count
  const Body &body;
  const Body *condition;         ///< takes the state; null: none
  std::vector<Tensor> xs;        ///< tensors whose rows are scanned
  const Tensor *limit = nullptr; ///< the number of turns, i64[], where a tensor says it
  int64_t length = -1;
  bool reversed = false;
  int64_t checkpoints = 0;
};
WENGERT_API void traceLoop(const TracedLoop &loop, Results &results);

WENGERT_API void checkCarried(const char *op, const std::vector<Tensor> &before, const std::vector<Tensor> &after,
                              int64_t turn, const Where &where);
WENGERT_API void checkStructure(const char *op, const Structure &before, const Structure &after, int64_t turn,
                                const Where &where);
/// The number of rows that all these tensors have, and the loop's length if there are none; errors otherwise.
WENGERT_API int64_t lengthOf(const char *op, const std::vector<Tensor> &xs, int64_t length, const Where &where);
/// How many turns a part has, for a loop of `length`; an error if that is not known.
WENGERT_API int64_t checkEvery(const char *op, int64_t every, int64_t length, const Where &where);
/// An error where the number of rows, or the end of a range, is an open size.
WENGERT_API void checkRowsAreKnown(const char *op, int64_t rows, const Where &where);
WENGERT_API void checkEnd(const char *op, int64_t begin, int64_t end, const Where &where);
/// An error if there are no such options.
WENGERT_API void checkCheckpoints(const char *op, int64_t checkpoints, int64_t every, const Where &where);
/// Rows begin, begin + step, ... below end of x.
WENGERT_API Tensor rowsOf(const Tensor &x, int64_t begin, int64_t end, int64_t step, const Where &where);
/// x, of which the loop has said that it has so many rows.
WENGERT_API Tensor withRows(const Tensor &x, int64_t rows, const Where &where);
/// Rows of even and odd by turns: the first of even first, which has as many or one more.
WENGERT_API Tensor interleaved(const Tensor &even, const Tensor &odd, const Where &where);
/// The rows, of which there are so many, from the last to the first.
WENGERT_API Tensor turnedOver(const Tensor &x, int64_t rows, const Where &where);
/// x[i], and in a trace a stand-in of its type.
WENGERT_API Tensor rowOf(const Tensor &x, int64_t i, const Where &where);
WENGERT_API Tensor rowSpec(const Tensor &x);
/// x, after all that the trace has ordered: what has an order in a condition or a rule is done where x is computed.
WENGERT_API Tensor afterEffects(const Tensor &x, const Where &where);
WENGERT_API void checkEnd(const Tensor &end, const Where &where);
/// Of what is stacked: each turn gives the structure of the first.
WENGERT_API void checkRows(const char *op, const Structure &first, const Structure &row, int64_t turn,
                           const Where &where);
[[noreturn]] WENGERT_API void raiseNegative(const char *op, const char *what, int64_t value, const Where &where);

/// Checks what a turn returned against what it was given: the same structure, dtypes and shapes.
template <class S> void checkTurn(const char *op, const S &before, const S &after, int64_t turn, const Where &where) {
  if constexpr (!std::same_as<S, Tensor>)
    checkStructure(op, structureOf(before), structureOf(after), turn, where);
  checkCarried(op, tensorsOf(before), tensorsOf(after), turn, where);
}
/// A state of tensors, numbers and structures of them.
template <class S> constexpr bool checkState() {
  static_assert(!holdsTensors<S, true>(), "the state of a loop holds tensors; a variable is used by its name: what the "
                                          "body assigns is carried");
  return checkTree<S>();
}

/// Gives each tensor of `x` an identity of its own. Traced control flow always returns new tensors; this makes eager
/// control flow do the same where a body returns a tensor from outside, or a loop makes no turn. A tape that starts to
/// watch that tensor afterwards then finds no path from it to the result. A Grad keeps its identity.
template <class T> T ownTensors(T x, const Where &where) {
  return mapTensors(std::move(x), [&](const Tensor &t) { return t.defined() ? identity(Located(t, where)) : t; });
}

/// Of rows 0 to n - 1: each with all before it. Pairs are joined, scanned, and joined with what lies between them.
template <class X>
X scanPairs(std::type_identity_t<FunctionRef<X(const X &, const X &)>> f, const X &xs, int64_t n, const Where &where) {
  if (n < 2)
    return xs;
  auto rows = [&](const X &x, int64_t begin, int64_t end, int64_t step) {
    return mapTensors(x, [&](const Tensor &t) { return rowsOf(t, begin, end, step, where); });
  };
  X odd = scanPairs(f, f(rows(xs, 0, n - 1, 2), rows(xs, 1, n, 2)), n / 2, where);
  X even = rows(xs, 0, 1, 1);
  if (n > 2) {
    std::vector<Tensor> rest = tensorsOf(f(rows(odd, 0, (n - 1) / 2, 1), rows(xs, 2, n, 2)));
    size_t leaf = 0;
    even = mapTensors(even, [&](const Tensor &first) { return concat({first, rest[leaf++]}, 0, where); });
  }
  std::vector<Tensor> odds = tensorsOf(odd);
  size_t leaf = 0;
  return mapTensors(even, [&](const Tensor &x) { return interleaved(x, odds[leaf++], where); });
}

/// The parts of a loop. (An identity: they are not what S is deduced from.)
template <class S> using ConditionRef = std::type_identity_t<FunctionRef<Tensor(const S &)>>;
template <class S> using BodyRef = std::type_identity_t<FunctionRef<S(const S &)>>;

template <class S>
S whileTraced(const char *op, ConditionRef<S> condition, BodyRef<S> body, const S &state, const WhileOptions &options,
              const Where &where) {
  Arguments arguments(where);
  collect(arguments, state);
  auto ask = [&](const S &s) { return afterEffects(condition(s), where); };
  Tracer<Tensor, S> asked{ask, {state}};
  Body conditionBody{&asked, &decltype(asked)::run};
  auto turn = [&](const S &s) {
    S next = body(s);
    checkTurn(op, s, next, 0, where);
    return next;
  };
  auto run = [&](Body traced, Results &results) {
    traceLoop(
        {op, arguments, arguments, traced, &conditionBody, {}, nullptr, options.max_steps, false, options.checkpoints},
        results);
  };
  return trace<S, S>(turn, run, state);
}

template <class S>
S whileInParts(const char *op, ConditionRef<S> condition, BodyRef<S> body, const S &state, const WhileOptions &options,
               const Where &where);
template <class S>
S whileRewound(const char *op, ConditionRef<S> condition, BodyRef<S> body, const S &state, const WhileOptions &options,
               const Where &where);

/// With a condition that gives a tensor, or one that gives a C++ bool.
template <class S>
S whileOf(const char *op, const FunctionRef<Tensor(const S &)> *condition, const FunctionRef<bool(const S &)> *test,
          BodyRef<S> body, S state, const WhileOptions &options, const Where &where) {
  if (options.max_steps < -1)
    raiseNegative(op, "max_steps", options.max_steps, where);
  if (options.checkpoint_every != 0)
    checkEvery(op, options.checkpoint_every, options.max_steps, where);
  checkCheckpoints(op, options.checkpoints, options.checkpoint_every, where);
  auto stopped = [&](S after) {
    return options.differentiable ? after
                                  : mapTensors(std::move(after), [](const Tensor &x) { return stop_gradient(x); });
  };
  if (condition && isTracing())
    return stopped(options.checkpoints != 0        ? whileRewound(op, *condition, body, state, options, where)
                   : options.checkpoint_every != 0 ? whileInParts(op, *condition, body, state, options, where)
                                                   : whileTraced(op, *condition, body, state, options, where));
  for (int64_t turn = 0; options.max_steps < 0 || turn < options.max_steps; ++turn) {
    if (!(condition ? truthOf(op, (*condition)(state), where) : (*test)(state)))
      break;
    S next = body(state);
    checkTurn(op, state, next, turn, where);
    state = std::move(next);
  }
  return options.differentiable ? ownTensors(std::move(state), where) : stopped(std::move(state));
}
template <class C, class B, class S>
S whileAs(const char *op, C &condition, B &body, S state, const WhileOptions &options, const Where &where) {
  constexpr bool fits = std::is_invocable_v<C &, const S &> && std::is_invocable_r_v<S, B &, const S &>;
  static_assert(fits, "the condition and the body of a loop take the state, and the body returns the next one, of the "
                      "state's type");
  if constexpr (fits && checkState<S>()) {
    if constexpr (std::same_as<std::decay_t<std::invoke_result_t<C &, const S &>>, Tensor>) {
      FunctionRef<Tensor(const S &)> asked(condition);
      return whileOf<S>(op, &asked, nullptr, body, std::move(state), options, where);
    } else {
      auto test = [&](const S &s) { return static_cast<bool>(condition(s)); };
      FunctionRef<bool(const S &)> asked(test);
      return whileOf<S>(op, nullptr, &asked, body, std::move(state), options, where);
    }
  }
}

template <class R, class S, class X> using TurnRef = std::type_identity_t<FunctionRef<R(const S &, const X &)>>;
template <class R, class S, class X>
R scanTraced(const char *op, TurnRef<R, S, X> f, const S &state, const X &xs, const ScanOptions &options,
             const Where &where) {
  std::vector<Tensor> scanned = tensorsOf(xs);
  X row = mapTensors(xs, [](const Tensor &x) { return rowSpec(x); });
  lengthOf(op, scanned, options.length, where);
  Arguments initial(where), arguments(where);
  collect(initial, state);
  collect(arguments, state, row);
  auto turn = [&](const S &s, const X &x) {
    R next = f(s, x);
    checkTurn(op, s, next.first, 0, where);
    return next;
  };
  auto run = [&](Body body, Results &results) {
    traceLoop(
        {op, initial, arguments, body, nullptr, scanned, nullptr, options.length, options.reverse, options.checkpoints},
        results);
  };
  return trace<R, S, X>(turn, run, state, row);
}

/// Rows as parts of `every` rows: [n, ...] -> [n / every, every, ...]; and back.
WENGERT_API Tensor inParts(const Tensor &x, int64_t every, const Where &where);
WENGERT_API Tensor joined(const Tensor &parts, const Where &where);

/// A scan of scans, of which each is computed again for its derivative; what is left over is a scan of its own.
template <class R, class S, class X>
R scanInParts(const char *op, TurnRef<R, S, X> f, S state, const X &xs, const ScanOptions &options,
              const Where &where) {
  using Y = typename R::second_type;
  int64_t length = lengthOf(op, tensorsOf(xs), options.length, where);
  int64_t every = checkEvery(op, options.checkpoint_every, length, where), whole = length / every * every;
  auto turns = [&](const S &s, const X &x) { return scanTraced<R>(op, f, s, x, {options.reverse, every}, where); };
  auto part = wg::function(op, turns, {.recompute = true}, where);
  auto some = [&](const X &x, int64_t begin, int64_t end) {
    return mapTensors(x, [&](const Tensor &t) { return rowsOf(t, begin, end, 1, where); });
  };
  auto rest = [&](const S &s) {
    return scanTraced<R>(op, f, s, some(xs, whole, length), {options.reverse, length - whole}, where);
  };
  auto step = [&](const S &s, const X &x) -> R { return part(s, x, where); };
  auto parts = [&](const S &s) {
    X rows = mapTensors(some(xs, 0, whole), [&](const Tensor &t) { return inParts(t, every, where); });
    R all = scanTraced<R>(op, step, s, rows, {options.reverse, whole / every}, where);
    return R(std::move(all.first),
             mapTensors(std::move(all.second), [&](const Tensor &t) { return joined(t, where); }));
  };
  if (whole == length)
    return parts(state);
  R first = options.reverse ? rest(state) : parts(state);
  R last = options.reverse ? parts(first.first) : rest(first.first);
  std::vector<Tensor> above = tensorsOf(options.reverse ? last.second : first.second),
                      below = tensorsOf(options.reverse ? first.second : last.second);
  size_t leaf = 0;
  Y ys = mapTensors(last.second, [&](const Tensor &) {
    size_t i = leaf++;
    return concat({above[i], below[i]}, 0, where);
  });
  return R(std::move(last.first), std::move(ys));
}

/// The same of a loop with a condition, which asks before each part.
template <class S>
S whileInParts(const char *op, ConditionRef<S> condition, BodyRef<S> body, const S &state, const WhileOptions &options,
               const Where &where) {
  int64_t most = options.max_steps, every = checkEvery(op, options.checkpoint_every, most, where);
  using Counted = std::pair<S, Tensor>; // with the number of turns that there were
  bool counts = most % every != 0;
  auto more = [&](const Counted &s) -> Tensor {
    Tensor asked = condition(s.first);
    return counts ? logical_and(Located(asked, where), s.second < most) : asked;
  };
  auto turn = [&](const Counted &s) { return Counted(body(s.first), counts ? s.second + 1 : s.second); };
  WhileOptions inner{.max_steps = every};
  auto turns = [&](const Counted &s) { return whileTraced(op, more, turn, s, inner, where); };
  auto part = wg::function(op, turns, {.recompute = true}, where);
  auto again = [&](const Counted &s) -> Counted { return part(s, where); };
  return whileTraced(op, more, again, Counted(state, Tensor(int64_t(0))), {.max_steps = (most + every - 1) / every},
                     where)
      .first;
}

/// A loop that is computed again for its derivative, as each of its turns is: what is kept are states, and machine code
/// keeps some of them.
template <class R, class S, class X>
R scanRewound(const char *op, TurnRef<R, S, X> f, const S &state, const X &xs, const ScanOptions &options,
              const Where &where) {
  auto part = wg::function(op, [&](const S &s, const X &x) -> R { return f(s, x); }, {.recompute = true}, where);
  auto turn = [&](const S &s, const X &x) -> R { return part(s, x, where); };
  auto loop = [&](const S &s, const X &x) { return scanTraced<R>(op, turn, s, x, options, where); };
  return wg::function(op, loop, {.recompute = true}, where)(state, xs, where);
}
template <class S>
S whileRewound(const char *op, ConditionRef<S> condition, BodyRef<S> body, const S &state, const WhileOptions &options,
               const Where &where) {
  auto part = wg::function(op, [&](const S &s) -> S { return body(s); }, {.recompute = true}, where);
  auto turn = [&](const S &s) -> S { return part(s, where); };
  auto loop = [&](const S &s) { return whileTraced(op, condition, turn, s, options, where); };
  return wg::function(op, loop, {.recompute = true}, where)(state, where);
}

template <class R, class S, class X>
R scanOf(const char *op, TurnRef<R, S, X> f, S state, const X &xs, const ScanOptions &options, const Where &where) {
  using Y = typename R::second_type;
  int64_t length = lengthOf(op, tensorsOf(xs), options.length, where);
  if (options.checkpoint_every != 0)
    checkEvery(op, options.checkpoint_every, length, where);
  checkCheckpoints(op, options.checkpoints, options.checkpoint_every, where);
  if (isTracing() && options.checkpoints != 0)
    return scanRewound<R>(op, f, state, xs, options, where);
  if (isTracing() && options.checkpoint_every != 0)
    return scanInParts<R>(op, f, std::move(state), xs, options, where);
  if (isTracing())
    return scanTraced<R>(op, f, state, xs, options, where);
  std::vector<std::vector<Tensor>> rows;
  std::optional<Y> last;
  for (int64_t turn = 0; turn < length; ++turn) {
    int64_t i = options.reverse ? length - 1 - turn : turn;
    X row = mapTensors(xs, [&](const Tensor &x) { return rowOf(x, i, where); });
    R next = f(std::as_const(state), std::as_const(row));
    checkTurn(op, state, next.first, turn, where);
    if (last)
      checkRows(op, structureOf(*last), structureOf(next.second), turn, where);
    state = std::move(next.first);
    last = std::move(next.second);
    rows.push_back(tensorsOf(*last));
  }
  if (!last) { // what is stacked has a type all the same
    auto program = [&](const S &s, const X &x) { return scanOf<R>(op, f, s, x, options, where); };
    return wg::function(op, program, {}, where)(state, xs, where);
  }
  size_t leaf = 0;
  Y stacked = mapTensors(*std::move(last), [&](const Tensor &) {
    std::vector<Tensor> column;
    for (int64_t i = 0; i < length; ++i)
      column.push_back(rows[static_cast<size_t>(options.reverse ? length - 1 - i : i)][leaf]);
    ++leaf;
    return stack(column, 0, where);
  });
  return R(ownTensors(std::move(state), where), std::move(stacked));
}
template <class R, class S> inline constexpr bool isTurnOf = false;
template <class S, class Y> inline constexpr bool isTurnOf<std::pair<S, Y>, S> = true;
template <class F, class S, class X>
auto scanAs(const char *op, F &f, S state, const X &xs, const ScanOptions &options, const Where &where) {
  constexpr bool fits = std::is_invocable_v<F &, const S &, const X &>;
  static_assert(fits, "the function of wg::scan takes the state and a row of what is scanned");
  if constexpr (fits) {
    using R = std::decay_t<std::invoke_result_t<F &, const S &, const X &>>;
    constexpr bool returns = isTurnOf<R, S>;
    static_assert(returns, "the function of wg::scan returns a std::pair of the next state, of the state's type, and "
                           "what is stacked");
    if constexpr (returns)
      if constexpr (checkState<S>() && checkState<X>() && checkState<typename R::second_type>())
        return scanOf<R>(op, f, std::move(state), xs, options, where);
  }
}

} // namespace detail

/// f() if `predicate` holds, else g(): what the taken branch returns, in its structure. `predicate` is a bool scalar; a
/// C++ bool chooses while tracing. Both branches return the same structure, dtypes and shapes. Eagerly only the taken
/// branch runs; traced, both are traced and one runs. The gradient flows through the taken branch: a source that only
/// the other one uses gets zeros. Under vmap, lanes that do not take a branch run it on the values of one that does. As
/// tf.cond, jax.lax.cond.
template <class F, class G> auto cond(const Located &predicate, F f, G g) -> std::decay_t<std::invoke_result_t<F &>> {
  using R = std::decay_t<std::invoke_result_t<F &>>;
  static_assert(std::is_same_v<R, std::decay_t<std::invoke_result_t<G &>>>,
                "both branches of wg::cond must return the same structure");
  const Where &where = predicate.where();
  if (predicate.isLiteral())
    return predicate.integer() != 0 ? f() : g();
  if (!detail::isTracing())
    return detail::ownTensors(detail::truthOf("cond", predicate.tensor(), where) ? f() : g(), where);
  static_assert(detail::checkTypes<R>());
  const detail::FunctionRef<R()> branches[] = {g, f};
  return detail::condTraced<R>("cond", predicate.tensor(), branches, where);
}

/// The branch with number `index`, an i32 or i64 scalar, of `first(), rest()...`; an index out of range counts as the
/// nearest one. As jax.lax.switch; see cond.
template <class F, class... G>
auto switch_case(const Located &index, F first, G... rest) -> std::decay_t<std::invoke_result_t<F &>> {
  using R = std::decay_t<std::invoke_result_t<F &>>;
  static_assert((std::is_same_v<R, std::decay_t<std::invoke_result_t<G &>>> && ...),
                "all branches of wg::switch_case must return the same structure");
  const Where &where = index.where();
  constexpr auto count = static_cast<int64_t>(1 + sizeof...(G));
  const detail::FunctionRef<R()> branches[] = {first, rest...};
  if (index.isLiteral() || !detail::isTracing()) {
    int64_t taken = index.isLiteral() ? index.integer() : detail::branchOf(index.tensor(), count, where);
    taken = taken < 0 ? 0 : taken >= count ? count - 1 : taken;
    return index.isLiteral() ? branches[taken]() : detail::ownTensors(branches[taken](), where);
  }
  static_assert(detail::checkTypes<R>());
  return detail::condTraced<R>("switch_case", index.tensor(), branches, where);
}

/// `while (condition(state)) state = body(state);` and the state after it. The state is a tensor or a structure of
/// them; a turn keeps dtypes and shapes. `condition` returns a bool scalar, or a C++ bool that decides while tracing.
/// The reverse pass keeps what it needs of every turn; give `max_steps` where the number of turns has a bound, so that
/// this has a known size (ahead of time that is needed). As tf.while_loop, jax.lax.while_loop.
template <class C, class B, class S>
S while_loop(C condition, B body, S state, const WhileOptions &options = {}, Where where = Where::current()) {
  return detail::whileAs("while_loop", condition, body, std::move(state), options, where);
}

/// `for each row x of xs: (state, y) = f(state, x)`: the state after it, and the ys, stacked. `f` returns a
/// std::pair of the next state and y; both and xs are tensors or structures of them. Every tensor of xs has as many
/// rows (axis 0). What the reverse pass needs of a turn is stacked, but for what depends on values
/// from outside alone. As jax.lax.scan.
///
///     auto step = [&](const Tensor &h, const Tensor &x) {
///       Tensor next = tanh(matmul(w, h) + x);
///       return std::pair(next, next);
///     };
///     auto [h, ys] = scan(step, h0, xs);
template <class F, class S, class X>
auto scan(F f, S state, const X &xs, const ScanOptions &options = {}, Where where = Where::current()) {
  return detail::scanAs("scan", f, std::move(state), xs, options, where);
}

/// f of each row of xs, stacked, one row after the other: as much memory as one row needs. `vmap(f)` does all at once.
/// As jax.lax.map, tf.map_fn.
template <class F, class X> auto map(F f, const X &xs, Where where = Where::current()) {
  auto turn = [&](const std::monostate &none, const X &x) { return std::pair(none, f(x)); };
  return detail::scanAs("map", turn, std::monostate(), xs, {}, where).second;
}

/// `for each row x of xs: state = f(state, x)`, and the state after it. As tf.foldl; with `reverse`, tf.foldr.
template <class F, class S, class X>
S fold(F f, S state, const X &xs, const ScanOptions &options = {}, Where where = Where::current()) {
  auto turn = [&](const S &s, const X &x) { return std::pair<S, std::monostate>(f(s, x), {}); };
  return detail::scanAs("fold", turn, std::move(state), xs, options, where).first;
}

/// `y[i] = f(f(f(x[0], x[1]), ...), x[i])` for an f that is associative, in about 2 log2(n) calls of f on many rows at
/// once: f(a, b) gets structures like xs, of m rows each, and joins row by row. The number of rows is known. With
/// `reverse`, from the last row to the first. As jax.lax.associative_scan.
///
///     Tensor sums = associative_scan([](const Tensor &a, const Tensor &b) { return a + b; }, xs); // cumulative
template <class F, class X>
X associative_scan(F f, const X &xs, const ScanOptions &options = {}, Where where = Where::current()) {
  if constexpr (detail::checkState<X>()) {
    int64_t n = detail::lengthOf("associative_scan", detail::tensorsOf(xs), options.length, where);
    detail::checkRowsAreKnown("associative_scan", n, where);
    X rows = detail::mapTensors(xs, [&](const Tensor &t) { return detail::withRows(t, n, where); });
    if (!options.reverse)
      return detail::scanPairs(f, rows, n, where);
    auto turned = [&](const X &x) {
      return detail::mapTensors(x, [&](const Tensor &t) { return detail::turnedOver(t, n, where); });
    };
    return turned(detail::scanPairs(f, turned(rows), n, where));
  }
}

/// `for (i = begin; i < end; ++i) state = body(i, state);` where i is an i64 scalar, and the state after it. As
/// jax.lax.fori_loop.
template <class B, class S>
S for_range(int64_t begin, int64_t end, B body, S state, const RangeOptions &options = {},
            Where where = Where::current()) {
  if constexpr (detail::checkState<S>()) {
    detail::checkEnd("for_range", begin, end, where);
    if (options.unroll || !detail::isTracing()) {
      for (int64_t i = begin; i < end; ++i) {
        S next = body(Tensor(i), std::as_const(state));
        detail::checkTurn("for_range", state, next, i - begin, where);
        state = std::move(next);
      }
      return detail::ownTensors(std::move(state), where);
    }
    auto turn = [&](const std::pair<S, Tensor> &s, const std::monostate &) {
      S next = body(s.second, s.first);
      return std::pair(std::pair<S, Tensor>(std::move(next), s.second + 1), std::monostate());
    };
    return detail::scanAs("for_range", turn, std::pair<S, Tensor>(std::move(state), Tensor(begin)), std::monostate(),
                          {.length = end > begin ? end - begin : 0,
                           .checkpoint_every = options.checkpoint_every,
                           .checkpoints = options.checkpoints},
                          where)
        .first.first;
  }
}
/// The same where a tensor, an i64 scalar, says where the range ends.
template <class B, class S>
S for_range(int64_t begin, const Tensor &end, B body, S state, const WhileOptions &options = {},
            Where where = Where::current()) {
  detail::checkEnd(end, where);
  auto more = [&](const std::pair<S, Tensor> &s) { return less(Located(s.second, where), end); };
  auto turn = [&](const std::pair<S, Tensor> &s) {
    S next = body(s.second, s.first);
    return std::pair<S, Tensor>(std::move(next), s.second + 1);
  };
  return detail::whileAs("for_range", more, turn, std::pair<S, Tensor>(std::move(state), Tensor(begin)), options, where)
      .first;
}

} // namespace wg
