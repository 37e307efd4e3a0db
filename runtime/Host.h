// Functions of the process that programs call: what they print, check and ask is C++ code (the op `host`).
//
// Compiled code and the interpreter call them as routines (External.h). A routine is told of operands and result
//   numbers[0] the op's id; [1] how many operands; then of each operand, and of the result: dtype, rank, sizes.
#pragma once

#include "runtime/External.h"

#include <functional>

namespace wg::runtime {

/// Computes `result`, whose memory is there; the arrays live as long as the call.
using HostFunction = std::function<Status(std::span<const Array> operands, Array &result)>;

/// The number of a function from here on; it is kept as long as the process runs.
int64_t addHost(HostFunction function);

/// The routine that calls the function with the number numbers[0].
inline constexpr char kHostCall[] = "wg_host_call";

/// Adds a C function for programs of this process under a name of its own. False if the name has another function, or
/// is that of a routine.
bool addForeign(const char *symbol, wg_routine function);
/// Null if none was added.
wg_routine findForeign(std::string_view symbol);
/// Whether it is that of a C function, with which an object file can be linked.
bool isForeign(std::string_view symbol);
/// The name, for as long as the process runs; null if none was added.
const char *foreignName(std::string_view symbol);

/// What a failing routine of this process has to say, for who called the program.
void setHostFailure(Failure failure);
/// What the last failing function of this thread said, once; ok if none failed since.
Status takeHostFailure();

} // namespace wg::runtime
