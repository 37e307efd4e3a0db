// How the runtime says that something went wrong: a value, never an exception. Only frontend/ throws.
#pragma once

#include "runtime/Failure.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace wg::runtime {

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
