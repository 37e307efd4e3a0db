// What the library throws, and the words that every public header shares.
#pragma once

#include <wengert/runtime/DType.h>
#include <wengert/runtime/Failure.h>
#include <wengert/runtime/Shape.h>

#include <iosfwd>
#include <stdexcept>
#include <string>
#include <vector>

namespace wg {

using runtime::DType;
using runtime::ErrorKind;
using runtime::Ints;
using runtime::Shape;
using runtime::TensorType;
using runtime::Where;

/// bf16 and f16 are names only so far: no op has a kernel for them, and using one is an error.
inline constexpr DType f64 = DType::f64, f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16, i64 = DType::i64,
                       i32 = DType::i32, u8 = DType::u8, boolean = DType::boolean;
/// A size that is known only at run time, written `?`. A specification may say -1 instead.
inline constexpr int64_t dynamic = runtime::kDynamic;

/// `f32`; `(2, 3)`, a dynamic size as `?`; `f32[2,3]`. Tensors, variables and gradients have a to_string too,
/// and all of them an operator<<.
WENGERT_API std::string to_string(DType dtype);
WENGERT_API std::string to_string(const Shape &shape);
WENGERT_API std::string to_string(const TensorType &type);
namespace runtime {
WENGERT_API std::ostream &operator<<(std::ostream &out, DType dtype);
WENGERT_API std::ostream &operator<<(std::ostream &out, const Shape &shape);
WENGERT_API std::ostream &operator<<(std::ostream &out, const TensorType &type);
} // namespace runtime

/// The one exception of the library. what() reads: what, where in the user's source, what to do.
class WENGERT_API Error : public std::runtime_error {
public:
  explicit Error(runtime::Failure failure);
  ErrorKind kind() const noexcept { return failure_.kind; }
  /// The operation that refused; may be empty.
  const std::string &op() const noexcept { return failure_.op; }
  const std::string &message() const noexcept { return failure_.message; }
  const std::string &remedy() const noexcept { return failure_.remedy; }
  /// `train.cpp:41 in step`; may be empty.
  const std::string &where() const noexcept { return failure_.where; }
  /// Dtypes and shapes of the operands.
  const std::vector<TensorType> &operands() const noexcept { return failure_.operands; }

private:
  runtime::Failure failure_;
};

namespace detail {
/// Throws Error; `where` fills a place that the failure lacks.
[[noreturn]] WENGERT_API void raise(runtime::Failure failure, const Where &where = {});
} // namespace detail

} // namespace wg
