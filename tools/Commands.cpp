// What may the value of an option be? CLI11's own conversions take hexadecimal and octal
// numbers, `inf` and a flag's value.
#include "tools/Commands.h"

#include <charconv>
#include <cmath>

namespace wg::tools {

CLI::Validator whole(int64_t least, int64_t most, std::string range) {
  if (range.empty())
    range = std::to_string(least) + " to " + std::to_string(most);
  return CLI::Validator(
      [=](std::string &text) -> std::string {
        int64_t value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
          return "`" + text + "` is not a whole number from " + range;
        text = std::to_string(value); // without leading zeros: to CLI11 they mean octal
        return {};
      },
      range);
}

CLI::Validator number(double least, double most) {
  auto digits = [](double value) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
  };
  std::string range = digits(least) + " to " + digits(most);
  return CLI::Validator(
      [=](std::string &text) -> std::string {
        double value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        // A NaN is in no range.
        bool fits = error == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
        return fits ? "" : "`" + text + "` is not a number from " + range;
      },
      range);
}

CLI::Validator given() {
  return CLI::Validator(
      [](std::string &text) -> std::string { return text.empty() ? "a value is expected, and it is empty" : ""; }, "");
}

/// The path of something that is there and not a directory, or `-`.
static CLI::Validator fileOrInput() {
  return CLI::Validator(
      [](std::string &text) -> std::string { return text == "-" ? std::string() : CLI::ExistingFile(text); }, "");
}

void addProgram(CLI::App &command, std::string &file) {
  command
      .add_option("file", file,
                  "MLIR text, at any stage from traced to fused (lowered with --trust-lowered), of at most 256 MiB; "
                  "`-` is standard input")
      ->required()
      ->check(fileOrInput());
}

CLI::Option *addFlag(CLI::App &command, const std::string &name, bool &value, const std::string &help) {
  return command.add_flag(name, value, help)
      ->disable_flag_override()
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

} // namespace wg::tools
