// The commands of `wengert`: each declares its options in `app` and sets `action`, which main runs after parsing.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace wg::tools {

/// What a command does; its value is the exit status.
using Action = std::function<int()>;

/// Of the option --trust-lowered.
inline constexpr const char *kTrustLowered =
    "take text at stage lowered too. It is machine code with its author's rights: running it is running a program of "
    "theirs, with all that you may do";

void addTrain(CLI::App &app, Action &action);
void addRun(CLI::App &app, Action &action);
void addCompile(CLI::App &app, Action &action);
void addStages(CLI::App &app, Action &action);

// ---- What the value of an option may be; anything else is an error of usage that names the option and the range -----

/// A whole number in decimal digits, from `least` to `most`; `range` is the text of both
/// where `most` is known later only.
CLI::Validator whole(int64_t least, int64_t most, std::string range = {});
/// A decimal number from `least` to `most`.
CLI::Validator number(double least, double most);
/// Anything but the empty text, which would be taken for the option's absence.
CLI::Validator given();
/// The positional `file` of the commands that take a program.
void addProgram(CLI::App &command, std::string &file);
/// A flag that is given once and without a value.
CLI::Option *addFlag(CLI::App &command, const std::string &name, bool &value, const std::string &help);

} // namespace wg::tools
