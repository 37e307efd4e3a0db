// A saved computation on the disk: named parts, and a manifest that says what they are for. A directory, whose file
// `manifest.json` is replaced last; or one file, an uncompressed zip archive whose first entry is `manifest.json`.
#pragma once

#include "runtime/io/File.h"

#include <map>
#include <optional>

namespace wg::runtime {

/// A part's name is `KIND-DIGEST.EXTENSION` of letters, digits and `._-`, the digest the 64 hexadecimal digits that
/// digestOf gives for its bytes: a name never stands for other bytes. Its bytes are the pieces, one after the other.
struct PackagePart {
  std::string name;
  std::vector<std::span<const std::byte>> pieces;
  /// Of one that writeParts has written, here or on another rank: how long it is.
  std::optional<uint64_t> there = {};
};

/// Writes the parts and the manifest: one file where `path` ends in `.wg`, else a directory, which is made if need be.
///
/// All or nothing: whatever fails, and wherever the process is killed, the package is as it was or as it shall be, and
/// whole. In a directory, parts that are there with the same bytes are not written again, parts that the old manifest
/// needed are removed after the new one is in its place, and so is what killed writers have left; other files beside a
/// manifest are left alone. Writers of one directory wait for each other. A directory of other files, two parts of one
/// name and names of another form are a Failure.
Status writePackage(const std::string &path, std::span<const PackagePart> parts, std::string_view manifest);

/// Parts that writeParts has written.
struct WrittenParts {
  std::string path;
  std::vector<std::string> names; ///< that were not there before
  bool madeDirectory = false;
};
/// Writes parts alone into a directory, beside other processes that do: one of them calls writePackage then, with the
/// parts of all.
Result<WrittenParts> writeParts(const std::string &path, std::span<const PackagePart> parts);
/// As if they had not been written.
void remove(const WrittenParts &written);

/// A package as it was when it was opened: what is saved in its place afterwards changes nothing of it.
class Package {
public:
  /// A regular file, or a directory. Its parts are opened, and not read; of a directory of more parts than a process
  /// may well have open, its writers wait until this object is gone instead. A manifest of more bytes, packed
  /// entries, and whatever else is no package is a Failure.
  static Result<Package> open(const std::string &path, uint64_t longestManifest);
  const std::string &path() const { return path_; }
  const std::string &manifest() const { return manifest_; }
  /// Bytes that may not be those of the name's digest (verify). A name that is not there: a Failure of kind lookup.
  Result<InputFile> part(const std::string &name) const;
  /// Reads the part: is the name's digest that of its bytes?
  Status verify(const std::string &name) const;

private:
  explicit Package(std::string path) : path_(std::move(path)) {}
  Status openFile(uint64_t longestManifest);
  Result<bool> openDirectory(Directory &directory, uint64_t longestManifest);
  std::string path_, manifest_;
  std::optional<Directory> locked_; ///< where the parts are that are not open
  std::map<std::string, InputFile> parts_;
};

} // namespace wg::runtime
