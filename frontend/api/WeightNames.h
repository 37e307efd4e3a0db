// Which name of a file's tensor does a pattern make of a variable's name?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wg::detail {

/// What each star stands for, the shortest first, if the name is one of the pattern: `*` any characters but `.` and
/// `/`, `**` any.
std::optional<std::vector<std::string>> matchName(std::string_view pattern, std::string_view name);
/// The pattern with these in the places of its stars; none if it has more stars.
std::optional<std::string> fillName(std::string_view pattern, const std::vector<std::string> &stars);

} // namespace wg::detail
