// What the functions of the process are that programs call by a number: for programs that leave it.
#pragma once

#include <wengert/Error.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wg::detail {

struct VariableState;
/// Stands for the order of what programs do beside computing.
const std::shared_ptr<VariableState> &orderState();

struct HostDescription {
  enum Kind : uint8_t { print, check, function } kind;
  std::string text; ///< the format, the message, the name
  friend auto operator<=>(const HostDescription &, const HostDescription &) = default;
};

std::optional<HostDescription> describeHost(int64_t number);
/// The numbers of what is described so: one of a format or a message, which is made if there is none; of a name as many
/// as there are host functions of that name.
std::vector<int64_t> hostsOf(const HostDescription &description);

/// Why a C function cannot be called with these operands for this result: `which this process does not have`; empty if
/// it can be.
std::string whyNoCFunction(std::string_view symbol, std::span<const TensorType> operands, const TensorType &result);

} // namespace wg::detail
