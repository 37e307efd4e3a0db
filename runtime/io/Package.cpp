// How is a state of several files replaced at once? Its parts are named by their bytes, so those of two states are
// side by side in a directory; the manifest says which state it is, and is renamed when all its parts are on the disk.
#include "runtime/io/Package.h"

#include "runtime/io/Digest.h"
#include "runtime/io/Zip.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace wg::runtime {

static const std::string kManifest = "manifest.json";
static constexpr std::string_view kOneFile = ".wg";
static constexpr uint64_t kAlignment = 64; ///< of a part in a file: that of a buffer
static constexpr size_t kDigits = 64;
static constexpr size_t kOpen = 256; ///< files of a directory that are open at once

/// The digest in a part's name; empty if it is not of that form.
static std::string_view digestIn(std::string_view name) {
  constexpr std::string_view hex = "0123456789abcdef",
                             all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  if (name.size() > 200 || name.starts_with('.') || name.find_first_not_of(all) != std::string_view::npos)
    return {};
  size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0)
    return {};
  std::string_view rest = name.substr(dash + 1), digits = rest.substr(0, kDigits);
  bool ends = rest.size() == kDigits || (rest.size() > kDigits + 1 && rest[kDigits] == '.');
  return ends && digits.find_first_not_of(hex) == std::string_view::npos ? digits : std::string_view();
}

// ---- Writing --------------------------------------------------------------------------------------------------------

/// Does the directory hold these bytes under the part's name?
static bool isThere(const Directory &directory, const PackagePart &part) {
  uint64_t size = 0, at = 0;
  for (std::span<const std::byte> piece : part.pieces)
    size += piece.size();
  Result<InputFile> file = directory.file(part.name, size);
  if (!file.ok() || file->size() != size)
    return false;
  std::vector<std::byte> held(std::min<uint64_t>(size, uint64_t(1) << 20));
  for (std::span<const std::byte> piece : part.pieces)
    while (!piece.empty()) {
      size_t next = std::min(piece.size(), held.size());
      if (!file->read(at, held.data(), next).ok() || std::memcmp(held.data(), piece.data(), next) != 0)
        return false;
      piece = piece.subspan(next);
      at += next;
    }
  return true;
}

/// A directory of other files is not filled with parts. What a writer has left that was killed before there was a
/// manifest is ours.
static Status check(const Directory &directory, const std::vector<std::string> &names) {
  // A link would have its target replaced, which is somewhere else.
  for (const std::string &name : names)
    if (name == kManifest || !digestIn(name).empty())
      if (Result<InputFile> file = directory.file(name); !file.ok())
        return file.take();
  if (std::ranges::find(names, kManifest) != names.end())
    return {};
  for (const std::string &name : names)
    if (digestIn(name).empty() && !isTemporaryName(name))
      return fileError(directory.path(), "is not a saved computation: it holds '" + name + "' and no " + kManifest,
                       "name an empty or new directory");
  return {};
}

/// Those that are not there yet.
static Status writeMissing(const Directory &directory, std::span<const PackagePart> parts) {
  std::vector<FileContents> files;
  for (const PackagePart &part : parts)
    if (part.there) {
      if (Result<InputFile> file = directory.file(part.name); !file.ok() || file->size() != *part.there)
        return fileError(directory.pathOf(part.name), "was to be written by another rank, and is not there",
                         "name a directory that all ranks see");
    } else if (!isThere(directory, part)) {
      files.push_back({directory.pathOf(part.name), part.pieces});
    }
  Status status;
  for (size_t at = 0; at < files.size() && status.ok(); at += kOpen)
    status = writeFiles(std::span(files).subspan(at, std::min(kOpen, files.size() - at)));
  return status;
}

static Status writeInto(const Directory &directory, std::span<const PackagePart> parts, std::string_view manifest) {
  Result<std::vector<std::string>> before = directory.names();
  if (!before.ok())
    return before.take();
  if (Status status = check(directory, *before); !status.ok())
    return status;
  std::set<std::string> kept;
  for (const PackagePart &part : parts)
    kept.insert(part.name);
  Status status = writeMissing(directory, parts);
  if (status.ok())
    status = writeFile(directory.pathOf(kManifest), manifest);
  if (!status.ok()) {
    for (const PackagePart &part : parts)
      if (!std::ranges::binary_search(*before, part.name))
        directory.remove(part.name);
    return status;
  }
  for (const std::string &name : *before)
    if (!digestIn(name).empty() && !kept.contains(name))
      directory.remove(name);
  return {};
}

/// The directory of a package; `made`: it was not there.
static Result<Directory> directoryAt(const std::string &path, bool &made) {
  Result<bool> fresh = makeDirectory(path);
  if (!fresh.ok())
    return fresh.take();
  made = *fresh;
  if (isRegularFile(path))
    return fileError(path, "is a file, and a package is a directory or a file whose name ends in .wg",
                     "name an empty or new directory");
  return Directory::open(path);
}

static Status writeDirectory(const std::string &path, std::span<const PackagePart> parts, std::string_view manifest) {
  bool made = false;
  Result<Directory> directory = directoryAt(path, made);
  if (!directory.ok())
    return directory.take();
  directory->lock();
  Status status = writeInto(*directory, parts, manifest);
  if (!status.ok() && made)
    removeDirectory(path); // unless another process has filled it meanwhile
  return status;
}

Result<WrittenParts> writeParts(const std::string &path, std::span<const PackagePart> parts) {
  WrittenParts written;
  written.path = path;
  Result<Directory> directory = directoryAt(path, written.madeDirectory);
  if (!directory.ok())
    return directory.take();
  Result<std::vector<std::string>> before = directory->names();
  if (!before.ok())
    return before.take();
  if (Status status = check(*directory, *before); !status.ok())
    return status;
  for (const PackagePart &part : parts)
    if (!std::ranges::binary_search(*before, part.name))
      written.names.push_back(part.name);
  if (Status status = writeMissing(*directory, parts); !status.ok()) {
    remove(written);
    return status;
  }
  return written;
}

void remove(const WrittenParts &written) {
  if (Result<Directory> directory = Directory::open(written.path); directory.ok())
    for (const std::string &name : written.names)
      directory->remove(name);
  if (written.madeDirectory)
    removeDirectory(written.path); // unless there is something in it
}

Status writePackage(const std::string &path, std::span<const PackagePart> parts, std::string_view manifest) {
  std::set<std::string_view> names;
  for (const PackagePart &part : parts) {
    if (digestIn(part.name).empty())
      return fileError(path, "part '" + part.name + "' is not named KIND-DIGEST.EXTENSION");
    if (!names.insert(part.name).second)
      return fileError(path, "part '" + part.name + "' is there twice");
  }
  if (!path.ends_with(kOneFile))
    return writeDirectory(path, parts, manifest);
  std::vector<ZipPart> entries = {{kManifest, {std::as_bytes(std::span(manifest))}}};
  for (const PackagePart &part : parts)
    entries.push_back({part.name, part.pieces});
  return writeZip(path, entries, kAlignment);
}

// ---- Reading --------------------------------------------------------------------------------------------------------

Status Package::openFile(uint64_t longestManifest) {
  Result<InputFile> file = InputFile::open(path_);
  if (!file.ok())
    return file.take();
  Result<std::vector<ZipEntry>> entries = readZip(*file, ".wg");
  if (!entries.ok())
    return entries.take();
  if (entries->empty() || entries->front().name != kManifest)
    return file->error("is not a saved computation: " + kManifest + " is not its first entry", readerOf(*file));
  for (const ZipEntry &entry : *entries) {
    if (entry.method != 0)
      return zipEntryError(*file, entry, "is packed, and the entries of a saved computation are stored",
                           "pack it again by zip -0");
    Result<InputFile> part = file->part(entry.data, entry.size, entry.name);
    if (!part.ok())
      return part.take();
    parts_.emplace(entry.name, std::move(*part));
  }
  // Its checksum is read, which is not done for parts: they have their digests.
  const ZipEntry &first = entries->front();
  if (first.size > longestManifest)
    return zipEntryError(*file, first,
                         "has " + std::to_string(first.size) + " bytes; " + std::to_string(longestManifest) +
                             " are the most");
  manifest_.resize(first.size);
  ZipSource source(*file, first);
  if (Status status = source.read(manifest_.data(), manifest_.size()); !status.ok())
    return status;
  return source.finish();
}

/// How often a part that is there is opened, though it could not be.
static constexpr int kAgain = 8;

/// False: it was replaced while it was read.
Result<bool> Package::openDirectory(Directory &directory, uint64_t longestManifest) {
  if (!directory.has(kManifest))
    return fileError(path_, "is not a saved computation: it has no " + kManifest);
  Result<InputFile> manifest = directory.file(kManifest, longestManifest);
  if (!manifest.ok())
    return directory.has(kManifest) ? Result<bool>(manifest.take()) : false;
  Result<std::string> text = manifest->text();
  if (!text.ok())
    return text.take();
  Result<std::vector<std::string>> names = directory.names();
  if (!names.ok())
    return names.take();
  parts_.clear();
  std::erase_if(*names, [](const std::string &name) { return digestIn(name).empty(); });
  if (names->size() > kOpen && !locked_) {
    directory.lock();
    locked_ = directory;
    return false; // what is there now stays
  }
  for (const std::string &name : *names) {
    if (locked_)
      break;
    Result<InputFile> part = directory.file(name);
    // One that is there all the same was removed by one writer, and another has just written it again.
    for (int times = 0; !part.ok() && directory.has(name); ++times) {
      if (times == kAgain)
        return part.take();
      part = directory.file(name);
    }
    if (part.ok())
      parts_.emplace(name, std::move(*part));
  }
  // Parts are removed after their manifest is replaced: if it is there still, all of its parts are open.
  manifest_ = std::move(*text);
  return directory.holds(*manifest, kManifest);
}

Result<Package> Package::open(const std::string &path, uint64_t longestManifest) {
  Package package(path);
  if (isRegularFile(path)) {
    if (Status status = package.openFile(longestManifest); !status.ok())
      return status;
    return package;
  }
  Result<Directory> directory = Directory::open(path);
  if (!directory.ok())
    return directory.take();
  for (int times = 0; times < 100; ++times) {
    Result<bool> opened = package.openDirectory(*directory, longestManifest);
    if (!opened.ok())
      return opened.take();
    if (*opened)
      return package;
  }
  return fileError(path, "is saved again and again while it is read", "read it when its writer is done");
}

Result<InputFile> Package::part(const std::string &name) const {
  if (locked_ && !digestIn(name).empty() && locked_->has(name))
    return locked_->file(name);
  auto found = parts_.find(name);
  if (found == parts_.end())
    return Failure{
        .kind = ErrorKind::lookup, .message = path_ + ": holds no part '" + name + "'", .remedy = "save it again"};
  return found->second;
}

Status Package::verify(const std::string &name) const {
  Result<InputFile> file = part(name);
  if (!file.ok())
    return file.take();
  Digest digest;
  std::vector<std::byte> held(std::min<uint64_t>(file->size(), uint64_t(1) << 20));
  for (uint64_t at = 0; at < file->size(); at += held.size()) {
    std::span bytes = std::span(held).first(std::min<uint64_t>(held.size(), file->size() - at));
    if (Status status = file->read(at, bytes.data(), bytes.size()); !status.ok())
      return status;
    digest.add(bytes);
  }
  if (digest.hex() != digestIn(name))
    return file->error("damaged: its bytes are not those of its name's digest", "copy or save it again");
  return {};
}

} // namespace wg::runtime
