#include "runtime/SizeFormula.h"

#include <algorithm>
#include <cctype>

namespace wg::runtime {

namespace {

/// Recursive descent: sum = product {(+|-) product}, product = value {(*|/|//|%) value}. Without values it only reads.
class Reader {
public:
  Reader(std::string_view formula, size_t count, const int64_t *values)
      : formula_(formula), count_(count), values_(values) {}

  Result<int64_t> run() {
    int64_t value = sum(0);
    if (!failure_ && at_ != formula_.size())
      fail("'" + std::string(1, formula_[at_]) + "' where an operator or the end of the formula is expected");
    if (!failure_ && values_ && value < 0)
      fail("the size is negative: " + std::to_string(value));
    if (failure_)
      return Failure{.kind = ErrorKind::value, .message = message()};
    return value;
  }

private:
  /// Text comes from files too: nesting is bounded, as the stack is.
  static constexpr int kDeepest = 64;

  int64_t sum(int depth) {
    int64_t value = product(depth);
    while (!failure_) {
      int64_t other;
      if (taken("+"))
        other = product(depth), check(__builtin_add_overflow(value, other, &value));
      else if (taken("-"))
        other = product(depth), check(__builtin_sub_overflow(value, other, &value));
      else
        break;
    }
    return value;
  }

  int64_t product(int depth) {
    int64_t value = primary(depth);
    while (!failure_) {
      if (taken("*")) {
        int64_t other = primary(depth);
        check(__builtin_mul_overflow(value, other, &value));
      } else if (taken("//")) {
        value = divided(value, primary(depth), &Reader::floorDivided);
      } else if (taken("/")) {
        value = divided(value, primary(depth), &Reader::exactlyDivided);
      } else if (taken("%")) {
        value = divided(value, primary(depth), &Reader::rest);
      } else {
        break;
      }
    }
    return value;
  }

  int64_t floorDivided(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
  int64_t rest(int64_t a, int64_t b) {
    int64_t left = a % b; // of the sign of a; no product of the quotient, which may be beyond 64 bits
    return left != 0 && (left < 0) != (b < 0) ? left + b : left;
  }
  int64_t exactlyDivided(int64_t a, int64_t b) {
    if (a % b != 0)
      fail(std::to_string(a) + " is not a multiple of " + std::to_string(b));
    return a / b;
  }
  int64_t divided(int64_t a, int64_t b, int64_t (Reader::*divide)(int64_t, int64_t)) {
    if (!values_ || failure_)
      return 1;
    if (b == 0)
      return fail("a division by zero"), 0;
    if (b == -1) // the lowest number has no opposite
      return divide == &Reader::rest ? 0 : (check(__builtin_sub_overflow(0, a, &a)), a);
    return (this->*divide)(a, b);
  }

  int64_t primary(int depth) {
    if (depth == kDeepest)
      return fail("parentheses nested deeper than " + std::to_string(kDeepest)), 1;
    if (taken("(")) {
      int64_t value = sum(depth + 1);
      expect(")");
      return value;
    }
    for (bool least : {true, false})
      if (taken(least ? "min(" : "max(")) {
        int64_t value = sum(depth + 1);
        while (!failure_ && taken(",")) {
          int64_t other = sum(depth + 1);
          value = least ? std::min(value, other) : std::max(value, other);
        }
        expect(")");
        return value;
      }
    if (at_ < formula_.size() && std::isdigit(static_cast<unsigned char>(formula_[at_]))) {
      int64_t value = 0;
      for (; at_ < formula_.size() && std::isdigit(static_cast<unsigned char>(formula_[at_])); ++at_)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, formula_[at_] - '0', &value))
          return fail("a literal beyond 64 bits"), 1;
      skipSpaces();
      return value;
    }
    if (at_ < formula_.size() && formula_[at_] >= 'a' && formula_[at_] <= 'z') {
      auto place = static_cast<size_t>(formula_[at_] - 'a');
      if (place >= count_)
        return fail("'" + std::string(1, formula_[at_]) + "', and there are " + std::to_string(count_) + " operands"),
               1;
      ++at_;
      skipSpaces();
      return values_ ? values_[place] : 1;
    }
    return fail(at_ == formula_.size()
                    ? "the end where a letter or a number is expected"
                    : "'" + std::string(1, formula_[at_]) + "' where a letter or a number is expected"),
           1;
  }

  void skipSpaces() {
    while (at_ < formula_.size() && formula_[at_] == ' ')
      ++at_;
  }
  bool taken(std::string_view token) {
    if (at_ == 0)
      skipSpaces();
    if (failure_ || !formula_.substr(at_).starts_with(token))
      return false;
    at_ += token.size();
    skipSpaces();
    return true;
  }
  void expect(std::string_view token) {
    if (!failure_ && !taken(token))
      fail("no '" + std::string(token) + "'");
  }
  void check(bool overflow) {
    if (overflow && values_)
      fail("a step is beyond 64 bits");
  }
  void fail(std::string why) {
    if (!failure_)
      why_ = std::move(why);
    failure_ = true;
  }
  std::string message() const {
    std::string text = "the formula \"" + std::string(formula_) + "\"";
    for (size_t i = 0; values_ && i < count_; ++i)
      text += (i ? ", " : " with ") + std::string(1, static_cast<char>('a' + i)) + " = " + std::to_string(values_[i]);
    return text + ": " + why_;
  }

  std::string_view formula_;
  size_t count_, at_ = 0;
  const int64_t *values_;
  bool failure_ = false;
  std::string why_;
};

constexpr size_t kLetters = 26;

} // namespace

Status checkSizeFormula(std::string_view formula, size_t count) {
  if (count > kLetters)
    return valueError("a formula has at most " + std::to_string(kLetters) + " operands, got " + std::to_string(count));
  Result<int64_t> read = Reader(formula, count, nullptr).run();
  return read.ok() ? Status() : Status(read.take());
}

Result<int64_t> evaluateSize(std::string_view formula, std::span<const int64_t> values) {
  if (Status status = checkSizeFormula(formula, values.size()); !status.ok())
    return status.take();
  static constexpr int64_t none = 0;
  return Reader(formula, values.size(), values.empty() ? &none : values.data()).run();
}

std::string withKnown(std::string_view formula, std::span<const int64_t> values) {
  auto isLetter = [&](size_t i) { return i < formula.size() && formula[i] >= 'a' && formula[i] <= 'z'; };
  std::string text;
  for (size_t i = 0; i < formula.size(); ++i) {
    bool word = isLetter(i + 1) || (i > 0 && isLetter(i - 1)); // min, max
    if (!isLetter(i) || word) {
      text += formula[i];
      continue;
    }
    auto place = static_cast<size_t>(formula[i] - 'a');
    if (values[place] != kDynamic)
      text += std::to_string(values[place]);
    else
      text +=
          static_cast<char>('a' + std::count(values.begin(), values.begin() + static_cast<ptrdiff_t>(place), kDynamic));
  }
  return text;
}

} // namespace wg::runtime
