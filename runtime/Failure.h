// What went wrong, and where in the user's source. What is thrown and what is returned (Status.h) hold it.
#pragma once

#include "runtime/Shape.h"

#include <source_location>
#include <string>
#include <utility>
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

} // namespace wg::runtime
