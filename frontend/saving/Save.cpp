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
#include <set>

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
  /// Arrays in files of at most `most` bytes, or in one; of several ranks in one file a rank at least, of which each
  /// has the bytes of its own.
  std::vector<ManifestPart> arrays(const char *kind, const runtime::NamedArrays &all, uint64_t most) {
    uint64_t total = 0;
    for (const auto &named : all.arrays)
      total += named.second.numBytes();
    if (uint64_t share = total / together_.size() + 1; together_.size() > 1 && (!most || share < most))
      most = share;
    std::vector<runtime::NamedArrays> files;
    uint64_t bytes = 0;
    for (const auto &named : all.arrays) {
      uint64_t next = named.second.numBytes();
      if (files.empty() || (most && bytes + next > most)) {
        files.emplace_back();
        bytes = 0;
      }
      bytes += next;
      files.back().arrays.push_back(named);
    }
    std::vector<ManifestPart> parts(files.size());
    for (size_t i = 0; i < files.size(); ++i) {
      if (!together_.isMine(i))
        continue;
      runtime::Result<runtime::SafetensorsImage> image = runtime::safetensorsImage(path_, files[i]);
      if (!image.ok())
        raise(image.take(), where_);
      parts[i] = add(kind, ".safetensors", images_.emplace_back(std::move(*image)).pieces());
    }
    exchange(kind, parts);
    return parts;
  }
  /// Each rank writes what it has; the first of them then the manifest, when all have.
  void write(const std::string &manifest) {
    runtime::WrittenParts written;
    runtime::Status status;
    auto agree = [&] {
      status = together_.agree(std::move(status), "write its part of " + path_);
      if (status.ok())
        return;
      runtime::remove(written);
      raise(status.take(), where_);
    };
    if (together_.size() > 1) {
      if (together_.rank() != 0) // the first writes the programs, which all have
        std::erase_if(parts_, [](const runtime::PackagePart &part) { return part.name.ends_with(".mlir"); });
      runtime::Result<runtime::WrittenParts> own = runtime::writeParts(path_, parts_);
      if (own.ok())
        written = std::move(*own);
      else
        status = own.take();
      agree();
      parts_.insert(parts_.end(), others_.begin(), others_.end());
    }
    if (together_.rank() == 0)
      status = runtime::writePackage(path_, parts_, manifest);
    agree();
  }

private:
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
  runtime::Together together;
  if (snapshot.overRanks)
    together = runtime::Together(runtime::ranks().groups.front(), runtime::ranks().options);
  if (together.size() > 1 && path.ends_with(".wg"))
    raiseOp("save", "several ranks cannot write one file together: " + path,
            "name a directory, or save on one rank without over_ranks", {}, where);
  Files files(path, together, where);
  auto compare = [&](const std::string &text, const char *what) {
    if (runtime::Status status = together.compare(text, what); !status.ok())
      raise(status.take(), where);
  };
  compare(textOf(manifest), "saves other items");
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
  compare(programs + (manifest.tapes ? manifest.tapes->program.digest : ""), "saves other programs");
  files.write(textOf(manifest));
}

} // namespace detail

void save(const std::string &path, const SaveItems &items, const SaveOptions &options, Where where) {
  detail::writeSnapshot(path, *detail::takeSnapshot(items, options, where), where);
}

} // namespace wg
