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
void addInspect(CLI::App &app, Action &action);
void addExplain(CLI::App &app, Action &action);
void addStages(CLI::App &app, Action &action);

// ---- What the value of an option may be; anything else is an error of usage that names the option and the range -----

/// A whole number in decimal digits, from `least` to `most`; `range` is the text of both
/// where `most` is known later only.
CLI::Validator whole(int64_t least, int64_t most, std::string range = {});
/// A decimal number from `least` to `most`.
CLI::Validator number(double least, double most);
/// Anything but the empty text, which would be taken for the option's absence.
CLI::Validator given();
/// The positional `file` of the commands that take a program or a saved computation.
void addProgram(CLI::App &command, std::string &file);
/// The positional `path` of those that take a saved computation alone.
void addSavedPath(CLI::App &command, std::string &path);
/// `--function` and `--trace`.
void addSaved(CLI::App &command, std::string &function, int64_t &trace);
/// An option, and whether it was given.
using Given = std::pair<const char *, bool>;
/// Whether `file` is a saved computation. An error of usage if an option was given that is not for such a file.
bool checkSaved(const std::string &file, std::initializer_list<Given> ofPrograms, std::initializer_list<Given> ofSaved);
/// A flag that is given once and without a value.
CLI::Option *addFlag(CLI::App &command, const std::string &name, bool &value, const std::string &help);

} // namespace wg::tools
