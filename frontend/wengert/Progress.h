// A line that shows how far a loop is: `for (auto &&[x, y] : wg::progress(batches, {.description = "epoch 1"}))`.
#pragma once

#include <wengert/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wg {

struct ProgressOptions {
  std::string description = {};
  std::optional<int64_t> total = {}; ///< passes of the loop; default: the range's batches() or size(), if it has one
  /// Where the line is written. By default to the standard error stream where that is a
  /// terminal, and nowhere otherwise.
  std::function<void(std::string_view)> write = {};
  std::function<double()> seconds = {}; ///< default: a clock that never goes back
  int columns = 0;                      ///< the line's width at most; 0: the terminal's, or 80
};

namespace detail {

/// The line of one loop. Quiet, a pass of the loop costs one comparison; otherwise one look at the clock.
class WENGERT_API ProgressLine {
public:
  explicit ProgressLine(ProgressOptions options);
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;
  ~ProgressLine();

  void begin(std::optional<int64_t> total);
  void pass() {
    if (state_) [[unlikely]]
      advance();
  }
  /// Shows where the loop ended and goes to the next line; once for each begin.
  void end() noexcept;
  void describe(std::string description);
  void set(std::string_view name, double value);
  void set(std::string_view name, const Tensor &value, const Where &where);

private:
  struct State;
  void advance();
  State *state_ = nullptr; ///< null: quiet
};

} // namespace detail

/// A range and its line. Made by `progress`; iterate over it once at a time, on one thread.
///
///     auto batches = wg::progress(train, {.description = "train"});
///     for (const auto &[x, y] : batches)
///       batches.set("loss", step(x, y));
///
/// shows `train:  42% 421/1000 [00:12<00:17, 34.2/s, loss=0.0123]`: share and number of passes that are done, time
/// since the beginning and time left, the present rate, and the values. Of a range without a size it shows `train: 421
/// [00:12, 34.2/s, loss=0.0123]`. The line is written at the beginning, then at most ten times a second, and when the
/// loop ends, also by break or an exception.
template <class Range> class Progress {
public:
  Progress(Range &&range, ProgressOptions options)
      : range_(std::forward<Range>(range)), total_(options.total), line_(std::move(options)) {}

  /// A number beside the line, the last one under each name. A tensor is read only when the line is written. Errors:
  /// more elements than one, a symbolic tensor.
  void set(std::string_view name, double value) { line_.set(name, value); }
  void set(std::string_view name, const Tensor &value, Where where = Where::current()) {
    line_.set(name, value, where);
  }
  /// What is printed before the line.
  void describe(std::string description) { line_.describe(std::move(description)); }

  struct Sentinel {};
  template <class It, class End> class Iterator {
  public:
    Iterator(It it, End end, detail::ProgressLine *line) : it_(std::move(it)), end_(std::move(end)), line_(line) {}
    decltype(auto) operator*() const { return *it_; }
    decltype(auto) operator*() { return *it_; }
    Iterator &operator++() {
      ++it_;
      line_->pass();
      return *this;
    }
    bool operator==(Sentinel) const {
      if (it_ != end_)
        return false;
      line_->end();
      return true;
    }

  private:
    It it_;
    End end_;
    detail::ProgressLine *line_;
  };
  /// Begins the line anew.
  auto begin() {
    using std::begin, std::end;
    line_.begin(total_ ? total_ : sizeOf(range_));
    return Iterator<decltype(begin(range_)), decltype(end(range_))>(begin(range_), end(range_), &line_);
  }
  Sentinel end() const { return {}; }

private:
  /// A data set's passes are its batches, and its size the examples.
  template <class R> static std::optional<int64_t> sizeOf(const R &range) {
    if constexpr (requires { range.batches(); })
      return static_cast<int64_t>(range.batches());
    else if constexpr (requires { std::size(range); })
      return static_cast<int64_t>(std::size(range));
    else
      return {};
  }

  Range range_; ///< a reference if that is what was given
  std::optional<int64_t> total_;
  detail::ProgressLine line_;
};

/// The same range, with a line that shows how far the loop over it is. A range given by name is
/// referred to; a temporary one is kept.
template <class Range> Progress<Range> progress(Range &&range, ProgressOptions options = {}) {
  return Progress<Range>(std::forward<Range>(range), std::move(options));
}
template <class Range> Progress<Range> progress(Range &&range, std::string description) {
  return Progress<Range>(std::forward<Range>(range), ProgressOptions{.description = std::move(description)});
}

} // namespace wg
