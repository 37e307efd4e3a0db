// The kernel of an op whose work is a routine (runtime/External.h). Private to kernels/.
#pragma once

#include "runtime/Arena.h"
#include "runtime/External.h"
#include "runtime/kernels/Kernels.h"

namespace wg::runtime {

/// The kernel of an op that is a routine. Its scratch is kept for the next call, as are workspaces of compiled code.
template <const ExternalRow *row>
Status externalKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  constexpr size_t kMost = 8; // operands, and pointers
  TensorType types[kMost];
  void *pointers[kMost];
  size_t count = 0;
  if (operands.size() + results.size() > kMost)
    return Failure{.kind = ErrorKind::internal, .message = "a routine of more than 8 operands and results"};
  for (const Array &operand : operands) {
    types[count] = operand.type;
    pointers[count++] = const_cast<void *>(operand.buffer.data()); // a routine writes to its results alone
  }
  for (Array &result : results)
    pointers[count++] = result.buffer.data();
  ExternalCall call = row->call(TypeSpan(types, operands.size()), attrs);
  if (!call.symbol)
    return noKernel(operands[0].dtype());
  Workspace scratch = acquireWorkspace(static_cast<size_t>(call.scratchBytes));
  int32_t status = findRoutine(call.symbol)(pointers + call.hidden, call.numbers.data(), scratch.data());
  return status == 0 ? Status() : valueError(row->statuses[static_cast<size_t>(status - 1)]);
}

} // namespace wg::runtime
