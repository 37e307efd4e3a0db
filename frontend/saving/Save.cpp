// A snapshot as a package: arrays, programs, the manifest. Each file is named by its digest, so what did not change
// since the last time is not written again.
#include "frontend/ops/Operands.h"
#include "frontend/saving/Program.h"
#include "frontend/saving/Snapshot.h"
#include "runtime/comm/Collectives.h"
#include "runtime/io/Digest.h"
#include "runtime/io/Package.h"
#include "runtime/io/Safetensors.h"

#include <cstring>
#include <deque>
#include <set>

namespace wg {

namespace detail {

namespace {

/// The files of a package while they are made.
class Files {
public:
  Files(const std::string &path, const Where &where) : path_(path), where_(where) {}

  /// A text, under its digest.
  ManifestPart text(const char *kind, std::string text) {
    const std::string &kept = texts_.emplace_back(std::move(text));
    return add(kind, ".mlir", {std::as_bytes(std::span(kept))});
  }
  /// Arrays in files of at most `most` bytes, or in one; of several ranks in one file a rank at least, of which each
  /// has the bytes of its own.
  std::vector<ManifestPart> arrays(const char *kind, const runtime::NamedArrays &all, uint64_t most) {
    std::vector<runtime::NamedArrays> files(1);
    uint64_t bytes = 0, total = 0;
    for (const auto &named : all.arrays)
      total += named.second.numBytes();
    if (uint64_t share = total / ranks() + 1; ranks() > 1 && (!most || share < most))
      most = share;
    for (const auto &named : all.arrays) {
      if (uint64_t next = named.second.numBytes(); most && bytes && bytes + next > most) {
        files.emplace_back();
        bytes = 0;
      }
      bytes += named.second.numBytes();
      files.back().arrays.push_back(named);
    }
    std::vector<ManifestPart> parts;
    for (size_t i = 0; i < files.size() && !files[i].arrays.empty(); ++i) {
      if (i % ranks() != rank()) {
        parts.emplace_back();
        continue;
      }
      runtime::Result<runtime::SafetensorsImage> image = runtime::safetensorsImage(path_, files[i]);
      if (!image.ok())
        raise(image.take(), where_);
      parts.push_back(add(kind, ".safetensors", images_.emplace_back(std::move(*image)).pieces()));
    }
    if (ranks() > 1)
      exchange(kind, parts);
    return parts;
  }
  /// Each rank writes what it has; the first of them then the manifest, when all have.
  void write(const std::string &manifest) {
    if (ranks() == 1) {
      if (runtime::Status status = runtime::writePackage(path_, parts_, manifest); !status.ok())
        raise(status.take(), where_);
      return;
    }
    if (rank() != 0) // all have the same programs
      std::erase_if(parts_, [](const runtime::PackagePart &part) { return part.name.ends_with(".mlir"); });
    agree(runtime::writeParts(path_, parts_));
    runtime::Status status;
    if (rank() == 0) {
      parts_.insert(parts_.end(), others_.begin(), others_.end());
      status = runtime::writePackage(path_, parts_, manifest);
    }
    agree(std::move(status));
  }
  void overRanks() { group_ = &runtime::ranks().groups.front(); }

private:
  size_t ranks() const { return group_ ? static_cast<size_t>(group_->size()) : 1; }
  size_t rank() const { return group_ ? static_cast<size_t>(group_->rank()) : 0; }
  void gather(const void *mine, void *all, size_t bytes) {
    if (runtime::Status status = group_->gather(mine, all, static_cast<int64_t>(bytes), runtime::ranks().options);
        !status.ok())
      raise(status.take(), where_);
  }
  /// An error on all ranks if one has failed.
  void agree(runtime::Status own) {
    char mine = own.ok() ? 0 : 1;
    std::vector<char> all(ranks());
    gather(&mine, all.data(), 1);
    if (!own.ok())
      raise(own.take(), where_);
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i])
        raiseOp("save", "rank " + std::to_string(i) + " could not write its part of " + path_, "see what it says", {},
                where_, ErrorKind::io);
  }
  /// What the files of the others are.
  void exchange(const char *kind, std::vector<ManifestPart> &parts) {
    struct Known {
      char digest[64];
      uint64_t bytes;
    };
    std::vector<Known> mine(parts.size()), all(parts.size() * ranks());
    for (size_t i = 0; i < parts.size(); ++i)
      if (i % ranks() == rank()) {
        std::memcpy(mine[i].digest, parts[i].digest.data(), sizeof mine[i].digest);
        mine[i].bytes = parts[i].bytes;
      }
    gather(mine.data(), all.data(), mine.size() * sizeof(Known));
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i % ranks() == rank())
        continue;
      const Known &known = all[(i % ranks()) * parts.size() + i];
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
  const Where &where_;
  std::deque<std::string> texts_; // pieces point into them
  std::deque<runtime::SafetensorsImage> images_;
  std::vector<runtime::PackagePart> parts_, others_; ///< of this rank, of other ranks
  runtime::CommGroup *group_ = nullptr;
  std::set<std::string> known_; ///< their names
};

} // namespace

void writeSnapshot(const std::string &path, const Snapshot &snapshot, const Where &where) {
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive("save", where, [&] { writeSnapshot(path, snapshot, where); });
  Manifest manifest = snapshot.manifest;
  Files files(path, where);
  if (snapshot.overRanks && runtime::ranks().groups.front().size() > 1) {
    if (path.ends_with(".wg"))
      raiseOp("save", "several ranks cannot write one file together: " + path,
              "name a directory, or save on one rank without over_ranks", {}, where);
    files.overRanks();
  }
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
  files.write(textOf(manifest));
}

} // namespace detail

void save(const std::string &path, const SaveItems &items, const SaveOptions &options, Where where) {
  detail::writeSnapshot(path, *detail::takeSnapshot(items, options, where), where);
}

} // namespace wg
