// Runs a check on many random programs, in processes of their own: a program at which the process dies is reported as
// one that fails a check is, and hides no other.
#pragma once

#include "tests/agreement/RandomProgram.h"

#include <functional>
#include <map>

namespace wg::tests {

/// Checks the programs of `usual` seeds, from 1 on; WENGERT_RANDOM_PROGRAMS=N checks N instead, WENGERT_RANDOM_SEED=S
/// begins at S. `check` is called in the middle of a test of a child process, which repeats the calling test and
/// nothing else; after a failure or a signal the next child goes on behind it. What failed is reported by its seed,
/// with the smallest part of the program that still fails and the command that runs it alone, in one process. Returns
/// how often each thing was tallied.
std::map<std::string, uint64_t> forPrograms(uint64_t usual,
                                            const std::function<RandomProgramOptions(uint64_t seed)> &optionsOf,
                                            const std::function<void(const RandomProgram &)> &check);

/// The same for programs of another kind, which are numbers of steps to their callers: `check` makes the program of a
/// seed without the steps that are cut, `textOf` prints it, `stepsOf` says how many steps may be.
struct SeedChecks {
  std::function<void(uint64_t seed, const std::set<int> &cuts)> check;
  std::function<std::string(uint64_t seed, const std::set<int> &cuts)> textOf;
  std::function<int(uint64_t seed)> stepsOf;
};
std::map<std::string, uint64_t> forSeeds(uint64_t usual, const SeedChecks &checks);

/// Counts, from within a check, what forPrograms and forSeeds return.
void tally(const std::string &what);

/// Whether this process runs checks for another one, which looks at the tallies.
bool isChild();

} // namespace wg::tests
