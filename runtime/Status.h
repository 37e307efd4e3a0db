// How the runtime says that something went wrong: a value, never an exception. Only frontend/ throws.
#pragma once

#include "runtime/Shape.h"

#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace wg::runtime {

/// A place in the user's source. A default argument of every public function.
struct Where {
  const char *file = nullptr;
  const char *function = nullptr;
  uint32_t line = 0;
  uint32_t column = 0;
  static constexpr Where current(std::source_location at = std::source_location::current()) {
    return {at.file_name(), at.function_name(), at.line(), at.column()};
  }
  explicit operator bool() const { return file != nullptr; }
};

/// The class of an error, after TensorFlow's and Python's names.
enum class ErrorKind { value, type, runtime, lookup, invalid_argument, unimplemented, io, internal };

/// What went wrong, in the three parts that a user reads: what, where, what to do.
struct Failure {
  ErrorKind kind = ErrorKind::value;
  std::string op = {};                   ///< name of the operation, may be empty
  std::string message = {};              ///< the broken rule with both values; lower case, no full stop
  std::string remedy = {};               ///< a thing to type; may be empty
  std::vector<TensorType> operands = {}; ///< dtypes and shapes of the operands
  std::string where = {};                ///< `file:line in function` of the user's source; may be empty
};

/// The whole text: `error: op: message`, then `  at where`, then `  try: remedy`.
WENGERT_API std::string toString(const Failure &failure);
/// `train.cpp:41 in step`; the file's last path component and the function's bare name.
WENGERT_API std::string toString(const Where &where);

/// Success, or a Failure. Costs one pointer.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Failure failure) : failure_(std::make_unique<Failure>(std::move(failure))) {}
  bool ok() const { return !failure_; }
  Failure &failure() const { return *failure_; }
  /// Moves the failure out; requires !ok().
  Failure take() { return std::move(*failure_); }

private:
  std::unique_ptr<Failure> failure_;
};

/// A value, or a Failure.
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}
  Result(Status status) : state_(std::in_place_index<1>, status.take()) {}
  bool ok() const { return state_.index() == 0; }
  T &operator*() { return std::get<0>(state_); }
  const T &operator*() const { return std::get<0>(state_); }
  T *operator->() { return &std::get<0>(state_); }
  const T *operator->() const { return &std::get<0>(state_); }
  Failure &failure() { return std::get<1>(state_); }
  Failure take() { return std::move(std::get<1>(state_)); }
  Status status() { return ok() ? Status() : Status(take()); }

private:
  std::variant<T, Failure> state_;
};

/// Shorthand for the common case.
inline Failure valueError(std::string message, std::string remedy = {}) {
  return {.kind = ErrorKind::value, .message = std::move(message), .remedy = std::move(remedy)};
}
inline Failure typeError(std::string message, std::string remedy = {}) {
  return {.kind = ErrorKind::type, .message = std::move(message), .remedy = std::move(remedy)};
}

} // namespace wg::runtime
