// A snapshot as a package: arrays, programs, the manifest. Each file is named by its digest, so what did not change
// since the last time is not written again.
#include "frontend/ops/Operands.h"
#include "frontend/saving/Program.h"
#include "frontend/saving/Snapshot.h"
#include "runtime/comm/Together.h"
#include "runtime/io/Digest.h"
#include "runtime/io/Package.h"
#include "runtime/io/Safetensors.h"

#include <cstring>
#include <deque>
#include <limits>
#include <set>
#include <utility>

namespace wg {

namespace detail {

namespace {

/// The files of a package while they are made.
class Files {
public:
  Files(const std::string &path, const runtime::Together &together, const Where &where)
      : path_(path), together_(together), where_(where) {}

  /// A text, under its digest.
  ManifestPart text(const char *kind, std::string text) {
    const std::string &kept = texts_.emplace_back(std::move(text));
    return add(kind, ".mlir", {std::as_bytes(std::span(kept))});
  }
  /// Arrays in files of at most `most` bytes, or of one array that has more; of several ranks each has some.
  std::vector<ManifestPart> arrays(const char *kind, const runtime::NamedArrays &all, uint64_t most) {
    std::vector<runtime::NamedArrays> files =
        runtime::cutArrays(all, most ? most : std::numeric_limits<uint64_t>::max(), together_.size());
    std::vector<ManifestPart> parts(files.size());
    runtime::Status status;
    for (size_t i = 0; i < files.size() && status.ok(); ++i) {
      if (!together_.isMine(i))
        continue;
      runtime::Result<runtime::SafetensorsImage> image = runtime::safetensorsImage(path_, files[i]);
      if (image.ok())
        parts[i] = add(kind, ".safetensors", images_.emplace_back(std::move(*image)).pieces());
      else
        status = image.take();
    }
    agree(std::move(status));
    exchange(kind, parts);
    return parts;
  }
  /// Each rank writes what it has; the first of them then the manifest, when all have.
  void write(const std::string &manifest) {
    runtime::WrittenParts written;
    if (together_.size() > 1) {
      if (together_.rank() != 0) // the first writes the programs, which all have
        std::erase_if(parts_, [](const runtime::PackagePart &part) { return part.name.ends_with(".mlir"); });
      runtime::Result<runtime::WrittenParts> own = runtime::writeParts(path_, parts_);
      if (own.ok())
        written = std::move(*own);
      agree(own.ok() ? runtime::Status() : own.take(), &written);
      for (runtime::PackagePart &part : parts_) {
        part.there = 0;
        for (std::span<const std::byte> piece : std::exchange(part.pieces, {}))
          *part.there += piece.size();
      }
      parts_.insert(parts_.end(), others_.begin(), others_.end());
    }
    agree(together_.rank() == 0 ? runtime::writePackage(path_, parts_, manifest) : runtime::Status(), &written);
  }

private:
  /// An error on all ranks if one has failed, and what they have written is removed. Not so where the transport fails:
  /// the first may have written the manifest that names it. A later save removes what is not named.
  void agree(runtime::Status status, const runtime::WrittenParts *written = nullptr) {
    bool allKnow = true;
    status = together_.agree(std::move(status), "write its part of " + path_, &allKnow);
    if (status.ok())
      return;
    if (written && allKnow && together_.size() > 1) {
      runtime::remove(*written);
      if (together_.gather(std::vector<char>{0}).ok())
        runtime::remove({.path = path_, .names = {}, .madeDirectory = written->madeDirectory}); // it may be empty now
    }
    raise(status.take(), where_);
  }
  template <class T> std::vector<T> gather(const std::vector<T> &mine) const {
    runtime::Result<std::vector<T>> all = together_.gather(mine);
    if (!all.ok())
      raise(all.take(), where_);
    return std::move(*all);
  }
  /// What the files of the others are.
  void exchange(const char *kind, std::vector<ManifestPart> &parts) {
    struct Known {
      char digest[64];
      uint64_t bytes;
    };
    std::vector<Known> mine(parts.size());
    for (size_t i = 0; i < parts.size(); ++i)
      if (together_.isMine(i)) {
        std::memcpy(mine[i].digest, parts[i].digest.data(), sizeof mine[i].digest);
        mine[i].bytes = parts[i].bytes;
      }
    std::vector<Known> all = gather(mine);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (together_.isMine(i))
        continue;
      const Known &known = all[together_.rankOf(i) * parts.size() + i];
      std::string digest(known.digest, sizeof known.digest);
      parts[i] = {std::string(kind) + "-" + digest + ".safetensors", digest, known.bytes};
      if (known_.insert(parts[i].name).second)
        others_.push_back({parts[i].name, {}, known.bytes});
    }
  }
  ManifestPart add(const char *kind, const char *extension, std::vector<std::span<const std::byte>> pieces) {
    runtime::Digest digest;
    uint64_t bytes = 0;
    for (std::span<const std::byte> piece : pieces) {
      digest.add(piece);
      bytes += piece.size();
    }
    ManifestPart part{"", digest.hex(), bytes};
    part.name = std::string(kind) + "-" + part.digest + extension;
    if (known_.insert(part.name).second)
      parts_.push_back({part.name, std::move(pieces), {}});
    return part;
  }

  const std::string &path_;
  const runtime::Together &together_;
  const Where &where_;
  std::deque<std::string> texts_; // pieces point into them
  std::deque<runtime::SafetensorsImage> images_;
  std::vector<runtime::PackagePart> parts_, others_; ///< of this rank, of other ranks
  std::set<std::string> known_;                      ///< their names
};

} // namespace

void writeSnapshot(const std::string &path, const Snapshot &snapshot, const Where &where) {
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive("save", where, [&] { writeSnapshot(path, snapshot, where); });
  Manifest manifest = snapshot.manifest;
  const runtime::Together &together = snapshot.together;
  if (together.size() > 1 && path.ends_with(".wg"))
    raiseOp("save", "several ranks cannot write one file together: " + path,
            "name a directory, or save on one rank without over_ranks", {}, where);
  Files files(path, together, where);
  auto check = [&](runtime::Status status) {
    if (!status.ok())
      raise(status.take(), where);
  };
  check(together.begin(std::to_string(snapshot.maxShardBytes) + textOf(manifest),
                       "saves other items, or with other options,"));
  runtime::NamedArrays variables, constants;
  for (size_t i = 0; i < snapshot.variables.size(); ++i)
    variables.arrays.emplace_back(manifest.variables[i].name, arrayOf(snapshot.variables[i]));
  for (size_t i = 0; i < snapshot.constants.size(); ++i)
    constants.arrays.emplace_back(std::to_string(i), arrayOf(snapshot.constants[i]));
  manifest.variableParts = files.arrays("variables", variables, snapshot.maxShardBytes);
  manifest.constantParts = files.arrays("constants", constants, snapshot.maxShardBytes);
  Requirements needed;
  for (size_t i = 0; i < snapshot.functions.size(); ++i)
    manifest.functions[i].program =
        files.text("program", programText(snapshot.functions[i]->code->module(), needed, where));
  if (manifest.tapes)
    manifest.tapes->program = files.text("tapes", snapshot.tapes);
  if (repeatedText(manifest) > kMostRepeatedText)
    raiseOp("save",
            "the functions and the calls on tapes are " + std::to_string(repeatedText(manifest) >> 20) +
                " MiB of program text beside what is written once, and loading reads " +
                std::to_string(kMostRepeatedText >> 20) + " at most",
            "save them in several files", {}, where);
  manifest.hostFunctions.assign(needed.hostFunctions.begin(), needed.hostFunctions.end());
  manifest.cFunctions.assign(needed.cFunctions.begin(), needed.cFunctions.end());
  std::string programs;
  for (const ManifestFunction &function : manifest.functions)
    programs += function.program.digest;
  check(together.compare(programs + (manifest.tapes ? manifest.tapes->program.digest : ""), "saves other programs"));
  files.write(textOf(manifest));
}

} // namespace detail

void save(const std::string &path, const SaveItems &items, const SaveOptions &options, Where where) {
  detail::writeSnapshot(path, *detail::takeSnapshot(items, options, where), where);
}

} // namespace wg
