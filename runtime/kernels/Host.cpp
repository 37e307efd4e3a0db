// Calls of functions of the process, and of its other ranks.
#include "runtime/Host.h"
#include "runtime/comm/Collectives.h"
#include "runtime/kernels/Kernels.h"

#include <algorithm>
#include <array>

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

//===- collective -------------------------------------------------------------------------------------------------===//

static Status collectiveRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  CollectiveAttrs collective{attrs};
  const auto *kind = std::ranges::find(kCollectives, collective.kind());
  if (kind == std::end(kCollectives) || kind - std::begin(kCollectives) >= int64_t(Collective::barrier))
    return valueError("ranks do no '" + collective.kind() + "'");
  if (collective.group() < kShardGroup || collective.root() < 0 || collective.ranks() < 0 ||
      collective.ranks() > INT32_MAX)
    return valueError("a group, a rank and their number are not negative");
  TensorType type = operands[0];
  bool gathers = *kind == "all_gather", scatters = *kind == "reduce_scatter";
  if ((gathers || scatters) && collective.ranks() == 0)
    return valueError(*kind == "all_gather" ? "all_gather is for a known number of ranks"
                                            : "reduce_scatter is for a known number of ranks");
  Shape shape;
  if (gathers) {
    if (type.shape.rank() == kMaxRank)
      return valueError(say("x has rank ", kMaxRank, ", and the result one more"), "merge axes by a reshape");
    shape.push_back(collective.ranks());
  } else if (scatters &&
             (type.shape.rank() == 0 || (type.shape.dim(0) != kDynamic && type.shape.dim(0) != collective.ranks()))) {
    return valueError(say("the first axis of x has an element for each of ", collective.ranks(), " ranks"));
  }
  for (int axis = scatters; axis < type.shape.rank(); ++axis)
    shape.push_back(type.shape.dim(axis));
  results.push_back({type.dtype, shape});
  return {};
}

static ExternalCall collectiveCall(TypeSpan operands, const Attrs &attrs) {
  CollectiveAttrs collective{attrs};
  auto kind = std::ranges::find(kCollectives, collective.kind()) - std::begin(kCollectives);
  int64_t count = 1;
  for (int axis = collective.kind() == "reduce_scatter"; axis < operands[0].shape.rank(); ++axis)
    count *= operands[0].shape.dim(axis);
  return {.symbol = kCollectiveCall,
          .numbers = {kind, static_cast<int64_t>(operands[0].dtype), count, collective.root(), collective.group(),
                      collective.ranks()}};
}

static Status collectiveKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  ExternalCall call = collectiveCall(std::array{operands[0].type}, attrs);
  void *pointers[] = {const_cast<void *>(operands[0].buffer.data()), results[0].buffer.data()};
  return runCollective(pointers, call.numbers.data(), nullptr) == 0 ? Status() : takeHostFailure();
}

std::span<const KernelRow> hostKernels() {
  static constexpr ExternalRow host{hostCall};
  static constexpr const char *failures[] = {"the ranks did not come together"};
  static constexpr ExternalRow collective{collectiveCall, failures};
  static constexpr KernelRow rows[] = {
      {.name = "host", .shape = hostRule, .kernel = hostKernel, .external = &host},
      {.name = "collective", .shape = collectiveRule, .kernel = collectiveKernel, .external = &collective}};
  return rows;
}

} // namespace wg::runtime
