// Files for the readers and writers of io/, codegen and tools: sizes are known before anything is read, a
// written file is whole or absent.
#pragma once

#include "runtime/Status.h"

#include <cstddef>
#include <memory>
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

/// Bytes in their order, of which the number is known: of a file, or unpacked from one.
class ByteSource {
public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  /// The next `size` bytes, all of them.
  virtual Status read(void *data, size_t size) = 0;
  /// What is wrong with it: the message names the file.
  virtual Failure error(const std::string &message, std::string remedy = {}) const = 0;
};

/// A regular file, open for reading; standard input, which was read to its end when it was opened; or a part of either.
/// Copies and parts share what is open.
class InputFile {
public:
  /// A regular file of at most `most` bytes.
  static Result<InputFile> open(const std::string &path, uint64_t most = kLargestFile);
  /// What a command line names: `-` is standard input, up to kLargestInput bytes. Its path() is `<stdin>`.
  static Result<InputFile> openArgument(const std::string &argument, uint64_t most = kLargestFile);
  const std::string &path() const { return path_; }
  uint64_t size() const { return size_; }
  /// `size` bytes from `offset`, all of them.
  Status read(uint64_t offset, void *data, size_t size) const;
  /// All of it.
  Result<std::string> text() const;
  /// Is it that file which is at a path, links followed?
  bool isAt(const std::string &path) const;
  /// `size` bytes from `offset` as a file of their own, whose path() is `PATH: NAME`. Bytes beyond the end: a Failure.
  Result<InputFile> part(uint64_t offset, uint64_t size, const std::string &name) const;
  Failure error(const std::string &message, std::string remedy = {}) const {
    return fileError(path_, message, std::move(remedy));
  }

private:
  friend class Directory;
  struct Source;
  InputFile(std::string path, std::shared_ptr<Source> source) : path_(std::move(path)), source_(std::move(source)) {}
  /// The descriptor's size and kind are checked.
  static Result<InputFile> opened(std::string path, int descriptor, uint64_t most);
  std::string path_;
  std::shared_ptr<Source> source_;
  uint64_t begin_ = 0, size_ = 0; ///< within the source
};

/// A directory, open: what is done in it is done below it, wherever it is moved meanwhile, and no link is followed.
class Directory {
public:
  static Result<Directory> open(const std::string &path);
  const std::string &path() const { return path_; }
  /// `PATH/NAME`, for messages and for writeFiles.
  std::string pathOf(const std::string &name) const;
  /// Nobody else holds the lock until this object is gone; waits for who does. A file system without locks gives none.
  void lock();
  /// All that is in it but `.` and `..`, in order.
  Result<std::vector<std::string>> names() const;
  bool has(const std::string &name) const;
  /// A regular file in it.
  Result<InputFile> file(const std::string &name, uint64_t most = kLargestFile) const;
  /// Is that which was opened as `name` there under this name still?
  bool holds(const InputFile &file, const std::string &name) const;
  /// Whether it is gone: a file.
  bool remove(const std::string &name) const;

private:
  struct Handle;
  Directory(std::string path, std::shared_ptr<Handle> handle) : path_(std::move(path)), handle_(std::move(handle)) {}
  std::string path_;
  std::shared_ptr<Handle> handle_;
};

/// Makes a directory in one that is there; whether it was not there before.
Result<bool> makeDirectory(const std::string &path);
/// `.` for a name alone.
std::string directoryOf(const std::string &path);
/// Removes an empty directory.
void removeDirectory(const std::string &path);
/// Is there a regular file, links followed?
bool isRegularFile(const std::string &path);
/// Is it the name of a file that a killed writer leaves behind (writeFiles)?
bool isTemporaryName(std::string_view name);

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
