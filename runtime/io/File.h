// Files for the readers and writers of io/, codegen and tools: sizes are known before anything is read, a
// written file is whole or absent.
#pragma once

#include "runtime/Status.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wg::runtime {

/// The most bytes that are read: of a file with arrays, of standard input, and of a program's text.
inline constexpr uint64_t kLargestFile = uint64_t(64) << 30, kLargestInput = uint64_t(1) << 30,
                          kLongestText = uint64_t(256) << 20;

/// The bytes of an array of these sizes; none where they are more than any memory holds. A size 0 counts as 1 for that,
/// so that the other sizes and their products are bounded too.
std::optional<uint64_t> bytesOf(DType dtype, std::span<const int64_t> sizes);

/// Kind io; the message opens with the path: `weights.npy: truncated: ...`.
Failure fileError(const std::string &path, const std::string &message, std::string remedy = {});

/// A regular file, open for reading; or standard input, which was read to its end when it was opened.
class InputFile {
public:
  /// A regular file of at most `most` bytes.
  static Result<InputFile> open(const std::string &path, uint64_t most = kLargestFile);
  /// What a command line names: `-` is standard input, up to kLargestInput bytes. Its path() is `<stdin>`.
  static Result<InputFile> openArgument(const std::string &argument, uint64_t most = kLargestFile);
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&) = delete;
  ~InputFile();
  const std::string &path() const { return path_; }
  uint64_t size() const { return size_; }
  /// `size` bytes from `offset`, all of them.
  Status read(uint64_t offset, void *data, size_t size) const;
  /// All of it.
  Result<std::string> text() const;
  Failure error(const std::string &message, std::string remedy = {}) const {
    return fileError(path_, message, std::move(remedy));
  }

private:
  InputFile(std::string path, int descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  std::string path_;
  int descriptor_; ///< -1: `held_` has the bytes
  uint64_t size_;
  std::string held_;
};

/// What to do with a file that a reader does not know, by its first 10 bytes: which call of ours reads it. Empty for
/// none.
std::string readerOf(std::string_view start);
std::string readerOf(const InputFile &file);

/// What a file shall hold: the pieces, one after the other.
struct FileContents {
  std::string path;
  std::vector<std::span<const std::byte>> pieces;
};

/// Writes files, all of them or none: after a failure each path is as it was, and no temporary file is left.
///
/// A regular file, or one that is not there yet, is written under a temporary name beside it, synced and renamed. It
/// keeps its mode, and its owner and group where the process may set them; a symbolic link stays, and what it points to
/// is replaced. Character devices and FIFOs are written as they are, before the first renaming. Directories, block
/// devices, sockets, files that may not be written and one file named twice are refused. What killed writers left
/// behind in the directory is removed: temporary files are locked while their writer lives.
///
/// A crash between two of the renamings leaves the first file new and the second old.
Status writeFiles(std::span<const FileContents> files);
/// One file.
Status writeFile(const std::string &path, std::span<const std::span<const std::byte>> pieces);
Status writeFile(const std::string &path, std::string_view text);

} // namespace wg::runtime
