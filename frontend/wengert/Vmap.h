// vmap: a function of one example as a function of many.
#pragma once

#include <wengert/Function.h>

#include <concepts>
#include <initializer_list>
#include <optional>
#include <vector>

namespace wg {

/// Said of an argument of vmap that all lanes share, or of a result that is the same in all.
struct Unmapped {};
inline constexpr Unmapped unmapped{};

/// The axis on which a tensor has its lanes; negative ones count from the end; or none.
struct LaneAxis {
  constexpr LaneAxis(int axis) : axis(axis) {}
  constexpr LaneAxis(Unmapped) {}
  std::optional<int> axis;
};

/// One axis for all tensors of a structure, or one for each of them in order.
struct WENGERT_API LaneAxes {
  LaneAxes(int axis);
  LaneAxes(Unmapped);
  LaneAxes(std::initializer_list<LaneAxis> axes);
  std::vector<LaneAxis> list;
  bool isOne; ///< for all
};

/// One for all arguments, or one for each: `0`, `{0, unmapped}`, `{{0, 1}, unmapped}`.
struct WENGERT_API ArgumentAxes {
  ArgumentAxes(int axis);
  ArgumentAxes(Unmapped);
  ArgumentAxes(std::initializer_list<LaneAxes> axes);
  std::vector<LaneAxes> list;
  bool isOne;
};

/// What lanes draw from a generator: numbers of their own, in the order of a loop over the lanes, or the same.
enum class Randomness { different, same };

struct VmapOptions {
  ArgumentAxes in_axes = 0;
  LaneAxes out_axes = 0;
  Randomness randomness = Randomness::different;
  int64_t chunk_size = 0;   ///< lanes at once; 0: as many as memory_limit lets, if possible all of them
  int64_t memory_limit = 0; ///< bytes for what is computed on the way; 0: no limit
};

namespace detail {
/// `arguments` with lanes: `ends` is, for each argument, how many leaves there are up to its end.
WENGERT_API void callInLanes(Arguments &arguments, const std::vector<size_t> &ends, Body body, Results &results,
                             const VmapOptions &options);

template <class F> class Vmapped {
public:
  Vmapped(F f, const VmapOptions &options, const Where &where) : f_(std::move(f)), options_(options), where_(where) {}

  template <class... A> auto operator()(const A &...args) const {
    constexpr bool fits = std::is_invocable_v<const F &, const A &...>;
    static_assert(fits, "the function of this wg::vmap does not take these arguments");
    if constexpr (fits) {
      using R = std::decay_t<std::invoke_result_t<const F &, const A &...>>;
      if constexpr (checkTypes<R, A...>()) {
        Arguments arguments(where_);
        std::vector<size_t> ends;
        uint32_t index = 0;
        ((arguments.argument(index++, typeNumber<A>()), visit(args, arguments),
          ends.push_back(arguments.leaves.size())),
         ...);
        auto run = [&](Body body, Results &results) { callInLanes(arguments, ends, body, results, options_); };
        return trace<R, A...>(f_, run, args...);
      }
    }
  }

private:
  F f_;
  VmapOptions options_;
  Where where_;
};
} // namespace detail

/// f for many lanes at once: `vmap(f)(xs)` is what a loop over the lanes gives, stacked, as one batched program, in
/// which what all lanes share is computed once.
///
///     auto norms = vmap([](const Tensor &x) { return norm(x); })(xs);               // xs [n, d] -> [n]
///     auto scores = vmap(score, {.in_axes = {0, unmapped}, .out_axes = 1})(xs, w);
///
/// Each tensor and variable of the arguments has its lanes on axis `in_axes`, one axis for all, or one (or one list for
/// its tensors) for each argument; f sees it without that axis. Numbers, enums and strings are the same in all lanes.
/// Results have their lanes on axis `out_axes`. f may be any function of tensors or structures: a derivative, as in
/// `vmap(grad(loss), {.in_axes = {unmapped, 0}})(w, xs)` for the gradient of each example; another vmap; a
/// wg::function. f is traced in every call, so it must not ask for the value of a tensor; inside of wg::function the
/// lanes are part of that program. Variables that f assigns must have the same new value in all lanes, unless they are
/// arguments with lanes. Generators give each lane the numbers that the loop would, unless `randomness` is `same`.
/// Errors: lanes of different counts; no argument with lanes; an axis that is not there; a result with lanes where
/// `out_axes` is `unmapped`. As jax.vmap.
template <class F> auto vmap(F f, const VmapOptions &options = {}, Where where = Where::current()) {
  return detail::Vmapped<F>(std::move(f), options, where);
}

} // namespace wg
