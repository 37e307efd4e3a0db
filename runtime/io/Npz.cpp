// An .npz file is a zip archive (Zip.h) whose entries are .npy files.
#include "runtime/io/Npz.h"

#include "runtime/io/Npy.h"
#include "runtime/io/Utf8.h"
#include "runtime/io/Zip.h"

#include <algorithm>

namespace wg::runtime {

static constexpr std::string_view kSuffix = ".npy";

Result<std::vector<std::pair<std::string, Array>>> readNpz(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok())
    return file.take();
  Result<std::vector<ZipEntry>> entries = readZip(*file, ".npz");
  if (!entries.ok())
    return entries.take();
  for (const ZipEntry &entry : *entries)
    if (!entry.name.ends_with(kSuffix))
      return zipEntryError(*file, entry, "is not a .npy file", "take it out of the archive");
  std::vector<std::pair<std::string, Array>> arrays;
  for (const ZipEntry &entry : *entries) {
    ZipSource source(*file, entry);
    Result<Array> array = readNpy(source);
    if (!array.ok())
      return array.take();
    if (Status status = source.finish(); !status.ok())
      return status;
    arrays.emplace_back(entry.name.substr(0, entry.name.size() - kSuffix.size()), std::move(*array));
  }
  return arrays;
}

Status writeNpz(const std::string &path, const std::vector<std::pair<std::string, Array>> &arrays) {
  std::vector<const std::string *> names;
  for (const auto &[name, array] : arrays)
    names.push_back(&name);
  std::sort(names.begin(), names.end(), [](auto *a, auto *b) { return *a < *b; });
  for (size_t i = 1; i < names.size(); ++i)
    if (*names[i - 1] == *names[i])
      return fileError(path, "name '" + *names[i] + "' is that of two arrays", "give each array its own name");

  std::vector<std::string> starts(arrays.size());
  std::vector<ZipPart> parts;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto &[name, array] = arrays[i];
    if (!isUtf8(name) || name.find('\0') != std::string::npos || name.size() > 65000)
      return fileError(path, "the name of array " + std::to_string(i) + " is not text in UTF-8 of at most 65000 bytes");
    starts[i] = npyStart(array);
    if (starts[i].empty())
      return npyLacks(path, array.dtype());
    std::span elements(static_cast<const std::byte *>(array.buffer.data()), array.numBytes());
    parts.push_back({name + std::string(kSuffix), {std::as_bytes(std::span(starts[i])), elements}});
  }
  return writeZip(path, parts);
}

} // namespace wg::runtime
