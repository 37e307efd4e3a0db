// What may the value of an option be? CLI11's own conversions take hexadecimal and octal
// numbers, `inf` and a flag's value.
#include "tools/Commands.h"

#include "runtime/io/File.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

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

/// The path of a saved computation's directory, or of something else that is there and not a directory.
static std::string whyNoFile(std::string &text) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(text, ignored))
    return CLI::ExistingFile(text);
  return std::filesystem::exists(std::filesystem::path(text) / "manifest.json", ignored)
             ? ""
             : text + " is a directory without manifest.json: not a saved computation";
}

void addProgram(CLI::App &command, std::string &file) {
  command
      .add_option("file", file,
                  "MLIR text, at any stage from traced to fused (lowered with --trust-lowered), of at most 256 MiB; "
                  "`-` is standard input. Or what wg::save wrote: a directory, or a .wg file")
      ->required()
      ->check(CLI::Validator(
          [](std::string &text) -> std::string { return text == "-" ? std::string() : whyNoFile(text); }, ""));
}

void addSavedPath(CLI::App &command, std::string &path) {
  command.add_option("path", path, "what wg::save wrote: a directory, or a .wg file")
      ->required()
      ->check(CLI::Validator(whyNoFile, ""));
}

void addSaved(CLI::App &command, std::string &function, int64_t &trace) {
  command.add_option("--function", function, "of a saved computation: the function [the only one]")->check(given());
  command
      .add_option("--trace", trace,
                  "of a saved function: the number of a trace, from 1 [the only one that takes the tensors]")
      ->transform(whole(1, std::numeric_limits<int32_t>::max()));
}

/// A directory, a name that ends in `.wg`, or a zip archive.
static bool isSaved(const std::string &path) {
  std::error_code ignored;
  if (path == "-")
    return false;
  if (std::filesystem::is_directory(path, ignored) || path.ends_with(".wg"))
    return true;
  if (!runtime::isRegularFile(path))
    return false;
  constexpr char zip[] = {'P', 'K', 3, 4};
  char start[sizeof zip];
  runtime::Result<runtime::InputFile> file = runtime::InputFile::open(path);
  return file.ok() && file->size() >= sizeof zip && file->read(0, start, sizeof zip).ok() &&
         std::memcmp(start, zip, sizeof zip) == 0;
}

bool checkSaved(const std::string &file, std::initializer_list<Given> ofPrograms,
                std::initializer_list<Given> ofSaved) {
  bool saved = isSaved(file);
  for (const auto &[option, isGiven] : saved ? ofPrograms : ofSaved)
    if (isGiven)
      throw CLI::ValidationError(option, saved ? file + " is a saved computation; the option is for programs in text"
                                               : file + " is a program in text; the option is for saved computations");
  return saved;
}

CLI::Option *addFlag(CLI::App &command, const std::string &name, bool &value, const std::string &help) {
  return command.add_flag(name, value, help)
      ->disable_flag_override()
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

} // namespace wg::tools
