// A snapshot as a package: arrays, programs, the manifest. Each file is named by its digest, so what did not change
// since the last time is not written again.
#include "frontend/ops/Operands.h"
#include "frontend/saving/Program.h"
#include "frontend/saving/Snapshot.h"
#include "runtime/io/Digest.h"
#include "runtime/io/Package.h"
#include "runtime/io/Safetensors.h"

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
  /// Arrays in files of at most `most` bytes, or in one.
  std::vector<ManifestPart> arrays(const char *kind, const runtime::NamedArrays &all, uint64_t most) {
    std::vector<ManifestPart> parts;
    runtime::NamedArrays some;
    uint64_t bytes = 0;
    auto flush = [&] {
      if (some.arrays.empty())
        return;
      runtime::Result<runtime::SafetensorsImage> image = runtime::safetensorsImage(path_, some);
      if (!image.ok())
        raise(image.take(), where_);
      parts.push_back(add(kind, ".safetensors", images_.emplace_back(std::move(*image)).pieces()));
      some.arrays.clear();
      bytes = 0;
    };
    for (const auto &named : all.arrays) {
      if (uint64_t next = named.second.numBytes(); most && bytes + next > most)
        flush();
      bytes += named.second.numBytes();
      some.arrays.push_back(named);
    }
    flush();
    return parts;
  }
  const std::vector<runtime::PackagePart> &parts() const { return parts_; }

private:
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
      parts_.push_back({part.name, std::move(pieces)});
    return part;
  }

  const std::string &path_;
  const Where &where_;
  std::deque<std::string> texts_; // pieces point into them
  std::deque<runtime::SafetensorsImage> images_;
  std::vector<runtime::PackagePart> parts_;
  std::set<std::string> known_; ///< their names
};

} // namespace

void writeSnapshot(const std::string &path, const Snapshot &snapshot, const Where &where) {
  if (ir::threadEnds()) [[unlikely]]
    return whereMlirIsAlive("save", where, [&] { writeSnapshot(path, snapshot, where); });
  Manifest manifest = snapshot.manifest;
  Files files(path, where);
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
  if (runtime::Status status = runtime::writePackage(path, files.parts(), textOf(manifest)); !status.ok())
    raise(status.take(), where);
}

} // namespace detail

void save(const std::string &path, const SaveItems &items, const SaveOptions &options, Where where) {
  detail::writeSnapshot(path, *detail::takeSnapshot(items, options, where), where);
}

} // namespace wg
