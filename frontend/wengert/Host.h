// C++ code in traced functions: what prints, checks and calls back while a compiled program runs, in the order in which
// it is written; and C functions as ops.
#pragma once

#include <wengert/Function.h>
#include <wengert/Ops.h>

#include <concepts>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace wg {

namespace detail {
using HostCall = std::function<Tensor(const std::vector<Tensor> &)>;
/// Keeps a function for the programs of this process, and gives it a number.
WENGERT_API int64_t addHost(std::string name, HostCall call);
/// Calls it: with `ordered`, after all that was ordered before. `result`: of sizes that are known.
WENGERT_API Tensor callHost(int64_t number, const std::string &name, const TensorSpec &result,
                            const std::vector<Tensor> &arguments, bool ordered, const Where &where);
WENGERT_API void printTensors(std::string_view format, const std::vector<Tensor> &tensors, const Where &where);
} // namespace detail

/// What print writes, and where that stands.
struct PrintFormat {
  template <std::convertible_to<std::string_view> T>
  PrintFormat(const T &text, Where where = Where::current()) : text(text), where(where) {}
  std::string_view text;
  Where where;
};

/// Writes `format` and a line's end to the print stream, with the value of a tensor in the place of each `{}`:
/// `print("loss {} at step {}", loss, step)`. In a traced function each call of the program prints, in program order
/// and once for each turn of a loop; under vmap once for each lane; in a rule of custom_gradient where the gradient is
/// computed. Whether what is computed again (checkpoint) prints again is left open. As tf.print, jax.debug.print.
template <class... T> void print(const PrintFormat &format, const T &...tensors) {
  static_assert((std::is_convertible_v<const T &, Tensor> && ...), "wg::print takes a format and tensors");
  detail::printTensors(format.text, {Tensor(tensors)...}, format.where);
}
/// Where print writes; std::cout at first. The stream lives as long as it is set. Thread-safe.
WENGERT_API void set_print_stream(std::ostream &stream);

/// An error with this message unless `condition`, a bool tensor, holds everywhere. In a traced function it is checked
/// each time the program comes there; a call that fails has assigned no variable. As tf.debugging.assert_equal and its
/// kin, checkify.check.
WENGERT_API void check(const Located &condition, const std::string &message);

struct HostOptions {
  /// Whether it does something beside computing its result: it is then called as often as the program comes there, and
  /// in program order. Otherwise calls may be merged, dropped and made early.
  bool ordered = true;
};

/// A C++ function that compiled programs of this process call: see host_function.
class HostFunction {
public:
  HostFunction(std::string name, detail::HostCall call, HostOptions options)
      : name_(std::move(name)), options_(options), number_(detail::addHost(name_, std::move(call))) {}
  /// What it returns, which is of this dtype and shape.
  Tensor operator()(const TensorSpec &result, const std::vector<Tensor> &arguments,
                    Where where = Where::current()) const {
    return detail::callHost(number_, name_, result, arguments, options_.ordered, where);
  }

private:
  std::string name_;
  HostOptions options_;
  int64_t number_;
};

/// `call` gets the values of tensors, eagerly, and returns a tensor of the dtype and shape that the caller names, whose
/// sizes are known when that is traced. It is kept as long as the process runs: make it once. It may be called on any
/// thread that runs the program, and must not call the function that is running. What it throws is the error of the
/// call. No gradient passes: custom_gradient gives it one. As tf.py_function, jax.io_callback; with `ordered` false
/// jax.pure_callback.
inline HostFunction host_function(std::string name, detail::HostCall call, HostOptions options = {}) {
  return HostFunction(std::move(name), std::move(call), options);
}

/// A C function as compiled code calls it. `pointers`: of the operands, then of the result, whose elements it writes.
/// `numbers`: numbers[1] operands; from numbers[2] on, for each operand and then for the result, its dtype, its rank
/// and its sizes. `scratch` is null. It returns 0, or any other number for an error. Threads may call it at once.
using CFunctionPointer = int32_t (*)(void *const *pointers, const int64_t *numbers, void *scratch);

struct CFunctionOptions {
  std::vector<TensorSpec> arguments; ///< their dtypes and shapes; `dynamic` takes any size
  /// The dtype and shape of the result for these arguments, whose sizes are known: a traced function that calls it
  /// is traced with known sizes.
  std::function<TensorSpec(const std::vector<TensorSpec> &)> result;
};

/// A C function as an op: see c_function.
class WENGERT_API CFunction {
public:
  CFunction(std::string symbol, CFunctionPointer function, CFunctionOptions options, Where where);
  Tensor operator()(const Located &x) const { return call({x.tensor()}, x.where()); }
  Tensor operator()(const Located &x, const Tensor &y) const { return call({x.tensor(), y}, x.where()); }
  Tensor operator()(const Located &x, const Tensor &y, const Tensor &z) const {
    return call({x.tensor(), y, z}, x.where());
  }
  /// Any number of them.
  Tensor call(const std::vector<Tensor> &arguments, Where where = Where::current()) const;

private:
  std::string symbol_;
  CFunctionOptions options_;
};

/// `function` under its C name, called by eager and compiled code alike; an object file that is compiled ahead of time
/// calls `symbol` and is linked with what defines it. It depends on its operands alone, so calls may be merged, dropped
/// and made early. A status other than 0 is an error that names the function, and the call has assigned no variable. No
/// gradient passes: custom_gradient gives it one.
///
///     wg::CFunction cube = wg::c_function("cube", cube, {.arguments = {{f64, {dynamic}}},
///                                                        .result = [](const auto &of) { return of[0]; }});
WENGERT_API CFunction c_function(std::string symbol, CFunctionPointer function, CFunctionOptions options,
                                 Where where = Where::current());

} // namespace wg
