// The arrays of a command line: what --in names, what a function takes, and what --out and standard output get.
#pragma once

#include "runtime/Array.h"

#include <span>
#include <string>
#include <vector>

namespace wg::tools {

/// The arrays of .npy files, `-` is standard input. Throws wg::Error.
std::vector<runtime::Array> readArrays(const std::vector<std::string> &paths);

/// Whether an array of type `given` may stand where `taken`, whose sizes may be open, is taken.
bool accepts(const runtime::TensorType &taken, const runtime::TensorType &given);
/// Throws wg::Error, with the names of the files `paths`, unless `function` takes `given`.
void checkInputs(const std::string &function, std::span<const runtime::TensorType> taken,
                 std::span<const runtime::Array> given, const std::vector<std::string> &paths);

/// Writes the results of `function` to .npy files, all or none, or prints them if no files are named. Throws wg::Error.
void giveResults(const std::string &function, std::span<const runtime::Array> results,
                 const std::vector<std::string> &paths);

} // namespace wg::tools
