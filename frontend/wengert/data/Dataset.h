// Examples in batches: from tensors, from MNIST's files, or the digits that the library carries.
#pragma once

#include <wengert/Tree.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace wg::data {
struct Examples;
}
namespace wg::detail {
class BatchLoader;
struct DataPlace;
struct DataLoop;
/// What happens to each batch: `f(batch, position)`.
struct BatchMapping {
  std::function<data::Examples(const data::Examples &, int64_t)> f;
  bool examples; ///< f takes one example, without the first axis
};
} // namespace wg::detail

namespace wg::data {

/// Inputs and targets whose first axis counts the examples.
struct Examples {
  Tensor x, y;
  int64_t size() const { return x.shape()[0]; }
  WENGERT_FIELDS(x, y)
};

struct Split {
  Examples train, test;
};

/// How far the loops over a data set are: `batch` batches of an epoch were taken, both counted from 0.
struct Position {
  int64_t epoch = 0, batch = 0;
  bool operator==(const Position &) const = default;
};

struct MapOptions {
  int workers = 0; ///< threads that call f; 0: the thread of the loop does, when it comes to a batch. At most 256
};

/// Examples in an order, cut into batches. A value: shuffle, batch, map and prefetch return a
/// changed copy and share the tensors.
///
///     for (auto [x, y] : wg::data::Dataset(images, labels).shuffle(1).batch(64)) ...
///
/// With workers, batches are made ahead, on threads of the loop's own, and come in the same order and with the same
/// bits as without. The exception of a worker is thrown by the loop at the place of its batch, after all before it. A
/// loop that ends early waits for the batches that are being made, and for no others; no thread outlives its loop. What
/// workers compute is on no tape.
class WENGERT_API Dataset {
public:
  /// Errors: no first axis, or first axes of different sizes.
  Dataset(Tensor x, Tensor y, Where where = Where::current());
  explicit Dataset(const Examples &examples, Where where = Where::current());
  Dataset(const Dataset &other);
  Dataset(Dataset &&other) noexcept;
  Dataset &operator=(const Dataset &other);
  Dataset &operator=(Dataset &&other) noexcept;
  ~Dataset();

  /// In an order that follows from the seed and the number of the epoch: each loop over the data set is the next epoch
  /// and has its own order (Fisher and Yates 1938). Copies of a data set count their epochs together.
  Dataset shuffle(uint64_t seed) const;
  /// `count` examples at a time. The last batch holds what is left, unless `drop_last`; a count above size()
  /// makes one batch of all, or none.
  /// Errors: a count below 1.
  Dataset batch(int64_t count, bool drop_last = false, Where where = Where::current()) const;

  /// Of each batch this rank's rows alone, those of dist::rows_of_rank: all ranks together have the batches that one
  /// has without it, in the same order, and a rank may have none of the last. What map does with a batch it does with
  /// these rows. `rank` of `ranks`: by default those of the program.
  /// Errors: no such rank, fewer shards than ranks.
  Dataset ranks(int64_t shards = 8, int rank = -1, int ranks = -1, Where where = Where::current()) const;

  /// Each batch as `f` returns it, an Examples or a pair of tensors. f is called as `f(batch)`, or as `f(batch,
  /// position)`, where position counts the batches over all epochs: a key of random numbers that do not depend on who
  /// computes them. Several mappings follow one another; each is done by as many threads as the most that one asks for.
  /// With workers, f is called from several threads at once.
  /// Errors: fewer workers than 0, or more than 256; while looping: a result that is undefined, or whose x
  /// and y differ in the first axis.
  template <class F> Dataset map(F f, MapOptions options = {}, Where where = Where::current()) const {
    return mapped({callable(std::move(f)), false}, options, where);
  }
  /// The same with each example by itself, x and y without their first axis; the results, all of one shape and dtype,
  /// are put together again. Positions count examples.
  template <class F> Dataset map_examples(F f, MapOptions options = {}, Where where = Where::current()) const {
    return mapped({callable(std::move(f)), true}, options, where);
  }
  /// Makes up to `count` batches ahead of the one that the loop has, by one thread unless map asks for more.
  /// 0: none, but for one a worker.
  /// Errors: a negative count.
  Dataset prefetch(int64_t count, Where where = Where::current()) const;

  /// Examples, and batches of one epoch.
  int64_t size() const;
  int64_t batches() const;
  /// The order of the examples in an epoch, counted from 0.
  std::vector<int64_t> order(int64_t epoch) const;

  /// Where a program that goes on from here reads on, which copies of a data set have in common. In a loop it is after
  /// the batch that the loop has in hand, whatever workers have made ahead; after the last batch, and after a loop that
  /// ended early, it is the beginning of the next epoch. Of several loops at once, that counts which began last.
  Position position() const;
  /// That of the position: the epoch that the next loop runs, or of which it runs the rest.
  ///
  ///     while (set.epoch() < epochs)
  ///       for (auto [x, y] : set) ...
  int64_t epoch() const { return position().epoch; }
  /// The next loop goes on at a position, with the same batches as the loop that was there: the rest of the epoch; the
  /// loop after it runs the whole next one. That after an epoch's last batch is the beginning of the next. A loop that
  /// runs already goes on as it is, and no longer counts for position(). Errors: a number below 0; more batches than
  /// batches(); an epoch beyond those whose examples can be counted in i64.
  void seek(Position position, Where where = Where::current()) const;
  /// Whether seek takes it.
  bool has(Position position) const;

  /// An iterator of a data set with workers shares its place with its copies, and goes on only.
  class WENGERT_API Iterator {
  public:
    Iterator(const Iterator &other);
    Iterator(Iterator &&other) noexcept;
    Iterator &operator=(const Iterator &other);
    Iterator &operator=(Iterator &&other) noexcept;
    ~Iterator();
    Examples operator*() const;
    Iterator &operator++();
    bool operator==(const Iterator &other) const { return next_ == other.next_; }

  private:
    friend class Dataset;
    Iterator(const Dataset *dataset, std::shared_ptr<const std::vector<int64_t>> order,
             std::shared_ptr<const detail::DataLoop> loop, Position start, const Where &where);
    const Dataset *dataset_;
    std::shared_ptr<const std::vector<int64_t>> order_;
    std::shared_ptr<const detail::DataLoop> loop_; ///< of all copies; null at the end
    std::shared_ptr<detail::BatchLoader> loader_;  ///< null: this thread makes the batches
    int64_t epoch_, next_;
    Where where_;
  };
  /// Starts the next epoch, or the rest of one, and its workers. The iterator refers to this data set. Errors: a thread
  /// cannot be started, and the position stays; the position is one of a copy that has more batches.
  Iterator begin(Where where = Where::current()) const;
  Iterator end() const;

private:
  friend class detail::BatchLoader;
  /// `f(examples)` or `f(examples, position)`.
  template <class F> static std::function<Examples(const Examples &, int64_t)> callable(F f) {
    return [shared = std::make_shared<const F>(std::move(f))](const Examples &examples,
                                                              [[maybe_unused]] int64_t position) -> Examples {
      const F &f = *shared;
      auto call = [&]() -> decltype(auto) {
        if constexpr (std::invocable<const F &, const Examples &, int64_t>)
          return f(examples, position);
        else
          return f(examples);
      };
      using Result = std::decay_t<decltype(call())>;
      if constexpr (std::same_as<Result, Examples>) {
        return call();
      } else {
        auto [x, y] = call();
        return {std::move(x), std::move(y)};
      }
    };
  }
  Dataset mapped(detail::BatchMapping mapping, MapOptions options, const Where &where) const;
  /// Batch `i` of an epoch.
  Examples make(const std::vector<int64_t> &order, int64_t epoch, int64_t i, const Where &where) const;
  Examples examples_;
  std::optional<uint64_t> seed_;
  int64_t batch_ = 1;
  bool dropLast_ = false;
  int64_t shards_ = 1, rank_ = 0, ranks_ = 1;
  std::vector<detail::BatchMapping> mappings_;
  int workers_ = 0;
  int64_t prefetch_ = 0;
  std::shared_ptr<detail::DataPlace> place_;
};

/// MNIST from the four IDX files of `directory` (`train-images-idx3-ubyte` and so on, with or without .gz).
/// x f32[n, 784] in [0, 1], y i32[n]; 60,000 and 10,000 examples. Errors name the file and what is wrong with it.
WENGERT_API Split load_mnist(const std::string &directory, Where where = Where::current());

/// The 1,797 handwritten digits of the UCI repository (data/README.md), carried by the library: x f32[n, 64], 8x8
/// pixels in [0, 1], y i32[n]. Every fifth example is for testing: 1,438 and 359.
WENGERT_API Split digits();

} // namespace wg::data
