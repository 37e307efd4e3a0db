// Calls of functions of the process.
#include "runtime/Host.h"
#include "runtime/kernels/Kernels.h"

namespace wg::runtime {

/// What errors call one that says no other name.
static constexpr char kCFunction[] = "c_function";

static Status hostRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  HostAttrs host{attrs};
  for (int64_t size : host.shape())
    if (size < 0)
      return valueError(say("sizes are known and not negative, got ", size));
  if (!findForeign(host.symbol()))
    return valueError("this process has no function '" + host.symbol() + "'",
                      "add it first: wg::c_function, wg::host_function");
  if (host.ordered() && (operands.empty() || !(operands[0] == TensorType{DType::i64, Shape()})))
    return typeError("the first operand of what is ordered is i64[]");
  results.push_back({host.dtype(), Shape(host.shape())});
  return {};
}

static RoutineNumbers numbersOf(TypeSpan operands, const Attrs &attrs) {
  HostAttrs host{attrs};
  RoutineNumbers numbers{host.id(), static_cast<int64_t>(operands.size())};
  auto add = [&](DType dtype, const Shape &shape) {
    numbers.push_back(static_cast<int64_t>(dtype));
    numbers.push_back(shape.rank());
    for (int64_t size : shape)
      numbers.push_back(size);
  };
  for (const TensorType &type : operands)
    add(type.dtype, type.shape);
  add(host.dtype(), Shape(host.shape()));
  return numbers;
}

static ExternalCall hostCall(TypeSpan operands, const Attrs &attrs) {
  HostAttrs host{attrs};
  return {.symbol = foreignName(host.symbol()),
          .numbers = numbersOf(operands.subspan(host.ordered()), attrs),
          .hidden = host.ordered(),
          .name = kCFunction};
}

static Status hostKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  HostAttrs host{attrs};
  std::vector<TensorType> types;
  std::vector<void *> pointers;
  for (const Array &operand : operands.subspan(host.ordered())) {
    types.push_back(operand.type);
    pointers.push_back(const_cast<void *>(operand.buffer.data())); // a routine writes to its results alone
  }
  pointers.push_back(results[0].buffer.data());
  wg_routine routine = findForeign(host.symbol());
  if (!routine)
    return valueError("this process has no function '" + host.symbol() + "'");
  RoutineNumbers numbers = numbersOf(types, attrs);
  if (routine(pointers.data(), numbers.data(), nullptr) == 0)
    return {};
  Status status = takeHostFailure();
  if (!status.ok())
    return status;
  Failure failure = valueError(host.message());
  failure.op = kCFunction;
  return failure;
}

std::span<const KernelRow> hostKernels() {
  static constexpr ExternalRow host{hostCall};
  static constexpr KernelRow rows[] = {{.name = "host", .shape = hostRule, .kernel = hostKernel, .external = &host}};
  return rows;
}

} // namespace wg::runtime
