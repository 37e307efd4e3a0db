#include "runtime/Host.h"

#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace wg::runtime {

namespace {
struct Registry {
  std::mutex mutex;
  std::deque<HostFunction> functions; ///< a reference stays valid
  std::set<std::string, std::less<>> foreign;
};
int32_t callHost(void *const *pointers, const int64_t *numbers, void *);

Registry &registry() {
  static Registry &all = *new Registry{// never destroyed: static objects may compute while they are
                                       {},
                                       {[](std::span<const Array> operands, Array &result) -> Status {
                                         if (!(result.type == TensorType{DType::f64, Shape()}))
                                           return valueError("a number of elements is f64[]");
                                         double count = 0;
                                         for (const Array &operand : operands)
                                           count += static_cast<double>(operand.numElements());
                                         *result.data<double>() = count;
                                         return {};
                                       }},
                                       {}};
  [[maybe_unused]] static const bool added = (addRoutine({kHostCall, callHost}), true);
  return all;
}

std::optional<Failure> &lastFailure() {
  static thread_local std::optional<Failure> failure;
  return failure;
}

/// The operands are copied: what a function keeps of them lives on.
int32_t callHost(void *const *pointers, const int64_t *numbers, void *) {
  auto id = static_cast<size_t>(numbers[0]), count = static_cast<size_t>(numbers[1]);
  const int64_t *at = numbers + 2;
  auto next = [&] {
    auto dtype = static_cast<DType>(*at++);
    auto rank = static_cast<size_t>(*at++);
    Array array = Array::empty(dtype, Shape(std::span<const int64_t>(at, rank)));
    at += rank;
    return array;
  };
  Status status;
  try {
    std::vector<Array> operands;
    for (size_t i = 0; i < count; ++i) {
      operands.push_back(next());
      if (size_t bytes = operands.back().numBytes())
        std::memcpy(operands.back().buffer.data(), pointers[i], bytes);
    }
    Array result = next();
    const HostFunction *function = nullptr;
    {
      std::lock_guard lock(registry().mutex);
      if (id < registry().functions.size())
        function = &registry().functions[id];
    }
    status = function ? (*function)(operands, result) : Status(valueError("there is no function with this number"));
    if (status.ok() && result.numBytes())
      std::memcpy(pointers[count], result.buffer.data(), result.numBytes());
  } catch (const std::exception &exception) {
    status = valueError(exception.what());
  } catch (...) {
    status = valueError("an exception that is no std::exception");
  }
  if (status.ok())
    return 0;
  lastFailure() = status.take();
  return 1;
}
} // namespace

int64_t addHost(HostFunction function) {
  std::lock_guard lock(registry().mutex);
  registry().functions.push_back(std::move(function));
  return static_cast<int64_t>(registry().functions.size()) - 1;
}

bool addForeign(const char *symbol, wg_routine function) {
  std::lock_guard lock(registry().mutex);
  if (findRoutine(symbol))
    return registry().foreign.contains(symbol) && findRoutine(symbol) == function;
  addRoutine({registry().foreign.insert(symbol).first->c_str(), function});
  return true;
}

wg_routine findForeign(std::string_view symbol) {
  if (symbol == kHostCall) {
    registry(); // which adds it for compiled code
    return callHost;
  }
  std::lock_guard lock(registry().mutex);
  return registry().foreign.contains(symbol) ? findRoutine(symbol) : nullptr;
}

bool isForeign(std::string_view symbol) {
  std::lock_guard lock(registry().mutex);
  return registry().foreign.contains(symbol);
}

const char *foreignName(std::string_view symbol) {
  if (symbol == kHostCall)
    return kHostCall;
  std::lock_guard lock(registry().mutex);
  auto found = registry().foreign.find(symbol);
  return found == registry().foreign.end() ? nullptr : found->c_str();
}

void setHostFailure(Failure failure) { lastFailure() = std::move(failure); }

Status takeHostFailure() {
  if (!lastFailure())
    return {};
  Status status(std::move(*lastFailure()));
  lastFailure().reset();
  return status;
}

} // namespace wg::runtime
