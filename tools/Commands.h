// The commands of `wengert`: each declares its options in `app` and sets `action`, which main runs after parsing.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace wg::tools {

/// What a command does; its value is the exit status.
using Action = std::function<int()>;

void addTrain(CLI::App &app, Action &action);
void addRun(CLI::App &app, Action &action);
void addCompile(CLI::App &app, Action &action);

} // namespace wg::tools
