// How far is the loop, and how long will it take? One line, written over itself.
#include "wengert/Progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace wg::detail {

struct ProgressLine::State {
  ProgressOptions options;
  std::vector<std::pair<std::string, std::function<double()>>> values;
  std::optional<int64_t> total;
  int64_t done = 0, written = 0; ///< passes; and at the last writing
  double begun = 0, last = 0;    ///< seconds, of the beginning and of the last writing
  double rate = 0, weight = 0;   ///< sum of the rates between writings, each 0.7 of the next, and of their weights
  bool open = false;

  void write(double now, bool end);
};

ProgressLine::~ProgressLine() {
  end();
  delete state_;
}

static constexpr double kInterval = 0.1;

ProgressLine::ProgressLine(ProgressOptions options) {
  if (!options.write) {
    if (!isatty(STDERR_FILENO))
      return;
    options.write = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stderr);
      std::fflush(stderr);
    };
    if (options.columns == 0) {
      winsize size{};
      if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0)
        options.columns = size.ws_col;
    }
  }
  if (options.columns <= 0)
    options.columns = 80;
  if (!options.seconds)
    options.seconds = [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    };
  state_ = new State;
  state_->options = std::move(options);
}

/// `02:05`, or `1:02:05` from an hour on.
static std::string duration(double seconds) {
  if (!(seconds < 1e8))
    return "?";
  auto whole = static_cast<int64_t>(std::max(0.0, seconds) + 1e-6); // a sum of tenths is a whole second
  return whole < 3600 ? fmt::format("{:02}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

/// `2,020/s`, `34.2/s`; loops that take longer than a second for a pass show seconds.
static std::string rateText(double rate) {
  if (!(rate > 0))
    return "?/s";
  if (rate < 1)
    return fmt::format("{:.3g}s each", 1 / rate);
  if (rate < 999.5 || rate >= 1e15)
    return fmt::format("{:.3g}/s", rate);
  std::string digits = fmt::format("{:.0f}", rate);
  for (size_t at = digits.size(); at > 3;)
    digits.insert(at -= 3, ",");
  return digits + "/s";
}

void ProgressLine::State::write(double now, bool end) {
  double elapsed = now - begun;
  if (now > last && done > written) {
    rate = 0.7 * rate + 0.3 * static_cast<double>(done - written) / (now - last);
    weight = 0.7 * weight + 0.3;
  }
  last = now, written = done;
  // At the end, the mean over the whole loop; before it, what the next passes will take.
  double shown = end ? static_cast<double>(done) / elapsed : weight > 0 ? rate / weight : 0;
  std::string line = options.description.empty() ? "" : options.description + ": ", time = duration(elapsed);
  if (total && *total > 0) {
    line += fmt::format(
        "{:3}% {}/{}",
        std::min<int64_t>(100, static_cast<int64_t>(100.0 * static_cast<double>(done) / static_cast<double>(*total))),
        done, *total);
    if (!end)
      time += "<" + duration(shown > 0 ? static_cast<double>(std::max<int64_t>(0, *total - done)) / shown : INFINITY);
  } else {
    line += fmt::format("{}", done);
  }
  line += " [" + time + ", " + rateText(std::isfinite(shown) ? shown : 0);
  for (const auto &[name, value] : values)
    line += fmt::format(", {}={:.4g}", name, value());
  line += "]";
  // A line that wraps could not be written over. Cut before a character, not inside of one.
  if (line.size() > static_cast<size_t>(options.columns) - 1) {
    size_t cut = static_cast<size_t>(options.columns) - 1;
    while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xC0) == 0x80)
      --cut;
    line.resize(cut);
  }
  options.write("\r" + line + "\x1b[K" + (end ? "\n" : ""));
}

void ProgressLine::begin(std::optional<int64_t> total) {
  if (!state_)
    return;
  end();
  State &state = *state_;
  state.total = total;
  state.done = state.written = 0;
  state.rate = state.weight = 0;
  state.begun = state.last = state.options.seconds();
  state.open = true;
  state.write(state.begun, false);
}

void ProgressLine::advance() {
  ++state_->done;
  if (double now = state_->options.seconds(); now - state_->last >= kInterval)
    state_->write(now, false);
}

/// A line that cannot be written is no reason to end the program.
void ProgressLine::end() noexcept {
  if (!state_ || !state_->open)
    return;
  state_->open = false;
  try {
    state_->write(state_->options.seconds(), true);
  } catch (...) {
  }
}

void ProgressLine::describe(std::string description) {
  if (state_)
    state_->options.description = std::move(description);
}

static void put(auto &values, std::string_view name, std::function<double()> value) {
  auto known = std::find_if(values.begin(), values.end(), [&](const auto &each) { return each.first == name; });
  if (known == values.end())
    values.emplace_back(name, std::move(value));
  else
    known->second = std::move(value);
}

void ProgressLine::set(std::string_view name, double value) {
  if (state_)
    put(state_->values, name, [value] { return value; });
}

void ProgressLine::set(std::string_view name, const Tensor &value, const Where &where) {
  if (value.body(where); value.symbolic() || value.size(where) != 1)
    value.item<double>(where); // the error
  if (state_)
    put(state_->values, name, [value] { return value.item<double>(); });
}

} // namespace wg::detail
