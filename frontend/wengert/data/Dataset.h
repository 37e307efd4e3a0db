// Examples in batches: from tensors, from MNIST's files, or the digits that the library carries.
#pragma once

#include <wengert/Tree.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

/// Examples in an order, cut into batches. A value: shuffle and batch return a changed copy and share the tensors.
///
///     for (auto [x, y] : wg::data::Dataset(images, labels).shuffle(1).batch(64)) ...
class Dataset {
public:
  /// Errors: no first axis, or first axes of different sizes.
  Dataset(Tensor x, Tensor y, Where where = Where::current());
  explicit Dataset(const Examples &examples, Where where = Where::current()) : Dataset(examples.x, examples.y, where) {}

  /// In an order that follows from the seed and the number of the epoch: each loop over the data set is the next epoch
  /// and has its own order (Fisher and Yates 1938). Copies of a data set count their epochs together.
  Dataset shuffle(uint64_t seed) const;
  /// `count` examples at a time. The last batch holds what is left, unless `drop_last`; a count above size() makes one batch of all, or none.
  /// Errors: a count below 1.
  Dataset batch(int64_t count, bool drop_last = false, Where where = Where::current()) const;

  /// Examples, and batches of one epoch.
  int64_t size() const { return examples_.size(); }
  int64_t batches() const;
  /// The order of the examples in an epoch, counted from 0.
  std::vector<int64_t> order(int64_t epoch) const;

  class Iterator {
  public:
    Examples operator*() const;
    Iterator &operator++() {
      ++next_;
      return *this;
    }
    bool operator==(const Iterator &other) const { return next_ == other.next_; }

  private:
    friend class Dataset;
    Iterator(const Dataset *dataset, std::shared_ptr<const std::vector<int64_t>> order, int64_t next)
        : dataset_(dataset), order_(std::move(order)), next_(next) {}
    const Dataset *dataset_;
    std::shared_ptr<const std::vector<int64_t>> order_;
    int64_t next_;
  };
  /// Starts the next epoch. The iterator refers to this data set.
  Iterator begin() const;
  Iterator end() const { return Iterator(this, nullptr, batches()); }

private:
  Examples examples_;
  std::optional<uint64_t> seed_;
  int64_t batch_ = 1;
  bool dropLast_ = false;
  std::shared_ptr<std::atomic<int64_t>> epoch_ = std::make_shared<std::atomic<int64_t>>(0);
};

/// MNIST from the four IDX files of `directory` (`train-images-idx3-ubyte` and so on, with or without .gz).
/// x f32[n, 784] in [0, 1], y i32[n]; 60,000 and 10,000 examples. Errors name the file and what is wrong with it.
Split load_mnist(const std::string &directory, Where where = Where::current());

/// The 1,797 handwritten digits of the UCI repository (data/README.md), carried by the library: x f32[n, 64], 8x8 pixels in
/// [0, 1], y i32[n]. Every fifth example is for testing: 1,438 and 359.
Split digits();

} // namespace wg::data
