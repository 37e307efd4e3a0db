// Packages changed by somebody who knows their format: digests, names and sizes fit what is changed.
#pragma once

#include "tests/fuzz/SavedSamples.h"

namespace wg::tests {

enum class Target { manifest, program, arrays, archive };

/// `name-DIGEST.extension` with the digest of `bytes`, which the manifest has for `part` from now on.
void replacePart(Parts &parts, const std::string &part, const std::string &bytes);
/// The manifest's first line has the digest of the others.
std::string withDigest(const std::string &manifest);
/// An archive as `wg::save` writes it.
std::string archiveOf(const Parts &parts);

/// One of the samples, changed in one place or several; `programs` are all texts that it may take from. Of
/// Target::archive it is only `archive` that is changed, the file.
struct Mutant {
  size_t sample = 0;
  Parts parts;
  std::string archive;
};
Mutant mutantOf(const std::vector<Parts> &samples, const std::vector<std::string> &programs, Target target,
                uint64_t seed);

} // namespace wg::tests
