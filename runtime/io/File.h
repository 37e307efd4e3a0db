// Files for the readers and writers of io/: sizes are known before anything is read, a written file is whole or absent.
#pragma once

#include "runtime/Status.h"

#include <cstddef>
#include <span>
#include <string>

namespace wg::runtime {

/// Kind io; the message opens with the path: `weights.npy: truncated: ...`.
Failure fileError(const std::string &path, const std::string &message, std::string remedy = {});

/// A regular file, open for reading.
class InputFile {
public:
  static Result<InputFile> open(const std::string &path);
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&) = delete;
  ~InputFile();
  const std::string &path() const { return path_; }
  uint64_t size() const { return size_; }
  /// `size` bytes from `offset`, all of them.
  Status read(uint64_t offset, void *data, size_t size) const;
  Failure error(const std::string &message, std::string remedy = {}) const { return fileError(path_, message, std::move(remedy)); }

private:
  InputFile(std::string path, int descriptor, uint64_t size) : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  std::string path_;
  int descriptor_;
  uint64_t size_;
};

/// Writes the pieces one after the other to a temporary name beside `path`, syncs, renames to `path`, syncs the directory. On
/// failure `path` is as it was and the temporary file is gone.
Status writeFile(const std::string &path, std::span<const std::span<const std::byte>> pieces);

} // namespace wg::runtime
