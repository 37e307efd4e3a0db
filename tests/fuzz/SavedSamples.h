// Packages that hold, among them, whatever can be saved; and whatever can be done with what is loaded.
#pragma once

#include "tests/fuzz/Mutate.h"

#include <wengert/wengert.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace wg::tests {

/// The files of a package, by name.
using Parts = std::map<std::string, std::string>;

/// Writes the packages as directories in `folder`.
void saveSamples(const std::string &folder);

/// What functions of the samples call must be there before they are loaded: once in a process.
void makeCallables();

/// What a use of a package came to.
struct Used {
  uint64_t called = 0, differentiated = 0, refused = 0;
};
/// Asks for all that was loaded, by its types and by others, calls and differentiates every function, hands over the
/// tapes, restores objects and saves all again at `path`. Errors are passed over: `refused` counts them.
/// `starts` is called with what is done next.
Used useSaved(const Saved &saved, const std::string &path, Dice &dice,
              const std::function<void(const std::string &)> &starts);

} // namespace wg::tests
