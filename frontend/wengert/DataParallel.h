// One training step over all ranks: each computes it for its part of the batch, and gradients are summed over all.
//
//     auto step = wg::dist::data_parallel("step", [&](const Tensor &x, const Tensor &y) {
//       GradientTape tape;
//       Tensor loss = mean(cross_entropy(model(x), y));
//       optimizer.apply(tape.gradient(loss, parameters), parameters);
//       return loss;
//     });
//
// A batch is cut into shards, a fixed number whatever the number of ranks is, and what is written in the step happens
// for each shard: a mean is that of the shard. Gradients by what all shards have in common, such as variables, are
// those of the loss of the whole batch, the mean of the shards' losses by their rows. So one rank and eight have the
// same bits.
#pragma once

#include <wengert/Dist.h>
#include <wengert/Function.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace wg::dist {

struct DataParallelOptions {
  /// Into how many shards a batch is cut: at least as many as there will ever be ranks. Results depend on it. 0: one
  /// for each rank, which is faster where batches are small; results then depend on the number of ranks.
  int64_t shards = 8;
  /// What the loss of the batch is of those of the shards: their mean by their rows, or their sum, in which all that a
  /// loss consists of counts once for each shard. So are floats without axes that the step returns.
  Reduction loss = Reduction::mean;
  /// Arguments, counted from 0, that are the same for all shards, as tensors without axes always are.
  std::vector<int> whole = {};
  /// Whether batch normalization takes its statistics over all shards; otherwise over each by itself.
  bool sync_batch_norm = false;
  /// At the first call the variables get the values that they have on rank 0.
  bool broadcast = true;
  /// After every so many calls, an error unless all ranks have the same bits in their variables; 0: never.
  int64_t check_every = 0;
  /// Gradients are sent as soon as so many bytes of them are there, while the others are computed.
  int64_t bucket_bytes = int64_t(4) << 20;
  FunctionOptions function = {};
};

/// What the ranks have sent each other in calls of a step, as this one has seen it.
struct WENGERT_API Communication {
  int64_t calls = 0;
  struct Bucket {
    std::string what;   ///< the ops whose results are summed
    int64_t bytes = 0;  ///< that each rank gives in a call
    double seconds = 0; ///< from when it was sent until all was there, of all calls
    double waited = 0;  ///< of which this rank waited and computed nothing
  };
  std::vector<Bucket> buckets;
  double step_seconds = 0; ///< of all calls
  /// The part of the buckets' time in which this rank computed.
  double overlapped() const;
};

/// The rows [first, second) of a batch of `rows` that are this rank's, of a step with so many shards.
WENGERT_API std::pair<int64_t, int64_t> rows_of_rank(int64_t rows, int64_t shards = 8);
/// The number of the shard that is computed, i64[], inside of a data parallel step; 0 elsewhere.
WENGERT_API Tensor shard(Where where = Where::current());

} // namespace wg::dist

namespace wg::detail {

class DataParallelState;

/// A step is traced for one shard while this lives.
class WENGERT_API InShard {
public:
  InShard(const dist::DataParallelOptions &options, Tensor index, Tensor share);
  InShard(const InShard &) = delete;
  ~InShard();
  /// An argument's tensor differs from shard to shard.
  void cut(const Tensor &tensor);
  /// What the step returns: of a scalar that differs by shard the mean by rows, of integers the sum.
  Tensor returned(const Tensor &tensor, const Where &where) const;

private:
  std::unique_ptr<struct ShardScope> scope_;
};

/// One call: this rank's rows, cut into its shards.
class WENGERT_API ShardedCall {
public:
  ShardedCall(DataParallelState &state, int arguments, const Where &where);
  ~ShardedCall();
  const dist::DataParallelOptions &options() const;
  /// Whether a tensor in an argument is cut.
  bool isCut(const Tensor &tensor, int argument) const;
  /// A tensor that is.
  void rows(const Tensor &tensor, int argument);
  /// All ranks tell each other how many rows they have.
  void meet();
  /// How many shards are to be traced for: this rank's, and before them the first of all.
  size_t count() const;
  Tensor cut(const Tensor &tensor, size_t i) const;
  Tensor index(size_t i) const;
  Tensor share(size_t i) const;
  struct Shard {
    Arguments *arguments;
    Body body;
    std::vector<bool> isCut; ///< by leaf
  };
  void run(std::span<const Shard> shards, Results &results);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

WENGERT_API std::shared_ptr<DataParallelState>
makeDataParallel(std::string name, const dist::DataParallelOptions &options, const Where &where);
/// Errors if it was moved from.
WENGERT_API DataParallelState &stateOf(const std::shared_ptr<DataParallelState> &state, const Where &where);

/// The arguments of one shard, and its trace.
template <class R, class... A> struct ShardArguments {
  using F = FunctionRef<R(A &...)>;
  ShardArguments(ShardedCall &call, size_t i, F f, const Where &where, const A &...whole)
      : values(call.index(i), call.share(i), whole...), arguments(where),
        traced([&call, f, where](Tensor &index, Tensor &share, A &...args) -> R {
          InShard scope(call.options(), index, share);
          auto note = [&](int argument, auto &tree) {
            visit(tree, [&](auto &leaf) {
              if constexpr (std::same_as<std::decay_t<decltype(leaf)>, Tensor>)
                if (call.isCut(leaf, argument))
                  scope.cut(leaf);
            });
          };
          [[maybe_unused]] int argument = 0;
          (note(argument++, args), ...);
          if constexpr (std::is_void_v<R>) {
            f(args...);
          } else {
            R result = f(args...);
            visit(result, [&](auto &leaf) {
              if constexpr (std::same_as<std::decay_t<decltype(leaf)>, Tensor>)
                leaf = scope.returned(leaf, where);
            });
            return result;
          }
        }) {
    auto cut = [&](int argument, auto &tree) {
      visit(tree, [&](auto &leaf) {
        if constexpr (std::same_as<std::decay_t<decltype(leaf)>, Tensor>)
          if (isCut.push_back(call.isCut(leaf, argument)); isCut.back())
            leaf = call.cut(leaf, i);
        if constexpr (std::same_as<std::decay_t<decltype(leaf)>, Variable> ||
                      std::same_as<std::decay_t<decltype(leaf)>, Grad>)
          isCut.push_back(false);
      });
    };
    std::apply(
        [&](Tensor &index, Tensor &share, A &...args) {
          [[maybe_unused]] int argument = 0;
          (cut(argument++, args), ...);
          collect(arguments, index, share, args...);
          tracer.emplace(Traced{traced, {index, share, args...}});
        },
        values);
  }
  ShardArguments(const ShardArguments &) = delete;

  using Traced = Tracer<R, Tensor, Tensor, A...>;
  std::tuple<Tensor, Tensor, A...> values;
  Arguments arguments;
  std::vector<bool> isCut{true, true}; ///< by leaf
  std::function<R(Tensor &, Tensor &, A &...)> traced;
  std::optional<Traced> tracer;
};

template <class R, class... A>
R callSharded(DataParallelState &state, std::type_identity_t<FunctionRef<R(A &...)>> f, const Where &where,
              const A &...args) {
  ShardedCall call(state, static_cast<int>(sizeof...(A)), where);
  auto note = [&](int argument, const auto &tree) {
    visit(tree, [&](const auto &leaf) {
      if constexpr (std::same_as<std::decay_t<decltype(leaf)>, Tensor>)
        if (call.isCut(leaf, argument))
          call.rows(leaf, argument);
    });
  };
  [[maybe_unused]] int argument = 0;
  (note(argument++, args), ...);
  call.meet();
  std::deque<ShardArguments<R, A...>> made;
  std::vector<ShardedCall::Shard> shards;
  for (size_t i = 0; i < call.count(); ++i) {
    auto &shard = made.emplace_back(call, i, f, where, args...);
    shards.push_back({&shard.arguments, Body{&*shard.tracer, &ShardArguments<R, A...>::Traced::run}, shard.isCut});
  }
  auto run = [&](Body, Results &results) { call.run(shards, results); };
  return trace<R, A...>(f, run, args...);
}

} // namespace wg::detail

namespace wg::dist {

/// What every data parallel step has, whatever its type.
class WENGERT_API DataParallelBase {
public:
  /// A paragraph for each traced signature: its programs, what they sum, in which buckets; and what sending took.
  std::string report() const;
  Communication communication() const;
  const std::string &name() const;

protected:
  explicit DataParallelBase(std::shared_ptr<detail::DataParallelState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::DataParallelState> state_;
};

/// A step over all ranks, which all call it in the same order. Tensors with axes are cut along the first, all alike:
/// each rank gives its rows of the batch, `rows_of_rank` of it; the last batch may have fewer rows, and a rank none.
/// It returns what the step does: scalars for the whole batch, other tensors for this rank's shards, one after the
/// other. Inside, `all_reduce` sums over shards. Errors: a variable is assigned what differs from shard to shard; ranks
/// that have other rows, or have traced another program, than the first. After an error of a call variables have the
/// values that they had.
template <class Signature> class DataParallel;
template <class R, class... P> class DataParallel<R(P...)> : public DataParallelBase {
public:
  DataParallel(std::string name, std::function<R(P...)> f, const DataParallelOptions &options, Where where)
      : DataParallelBase(detail::makeDataParallel(std::move(name), options, where)),
        f_(std::make_shared<std::function<R(P...)>>(std::move(f))) {}

  R operator()(P... args, Where where = Where::current()) const {
    if constexpr (detail::checkTypes<R, std::decay_t<P>...>()) {
      auto f = [this](typename detail::HeldType<std::decay_t<P>>::type &...held) -> std::decay_t<R> {
        return (*f_)(held...);
      };
      return detail::callSharded<std::decay_t<R>, typename detail::HeldType<std::decay_t<P>>::type...>(
          detail::stateOf(state_, where), f, where, detail::held<std::decay_t<P>>(args)...);
    }
  }

private:
  std::shared_ptr<std::function<R(P...)>> f_;
};

/// The step `f` over all ranks: `dist::data_parallel("step", [&](const Tensor &x, const Tensor &y) { ... })`.
template <class F>
auto data_parallel(std::string name, F f, const DataParallelOptions &options = {}, Where where = Where::current()) {
  using Signature = typename detail::SignatureOf<decltype(&F::operator())>::type;
  return DataParallel<Signature>(std::move(name), std::move(f), options, where);
}
/// That of a function, whose callable is traced for the shards.
template <class R, class... P>
auto data_parallel(const Function<R(P...)> &step, const DataParallelOptions &options = {},
                   Where where = Where::current()) {
  return DataParallel<R(P...)>(step.name(), step.original(), options, where);
}

} // namespace wg::dist
