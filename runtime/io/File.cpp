// How do bytes reach memory, and how do they reach the disk? A file is read with its size known; it is replaced by
// renaming, so that whoever looks finds the old file or the new one.
#include "runtime/io/File.h"

#include "runtime/Extent.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace wg::runtime {

Failure fileError(const std::string &path, const std::string &message, std::string remedy) {
  return {.kind = ErrorKind::io, .message = path + ": " + message, .remedy = std::move(remedy)};
}

std::optional<uint64_t> bytesOf(DType dtype, std::span<const int64_t> sizes) {
  Result<Extent> extent = extentOf(dtype, sizes);
  if (!extent.ok() || std::ranges::find(sizes, kDynamic) != sizes.end()) // a file has no open sizes
    return std::nullopt;
  return static_cast<uint64_t>(extent->bytes);
}

static std::string systemMessage(const char *what) { return std::string(what) + ": " + std::strerror(errno); }

namespace {
/// A descriptor that is closed.
struct Descriptor {
  int number = -1;
  Descriptor() = default;
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() { reset(); }
  void reset(int next = -1) {
    if (number >= 0)
      ::close(number);
    number = next;
  }
};
} // namespace

/// open(2), never as descriptor 0, 1 or 2: where one of them is closed, what the program prints
/// would be written into the file.
static int openFile(const char *path, int flags, mode_t mode = 0, int directory = AT_FDCWD) {
  int opened;
  do
    opened = ::openat(directory, path, flags | O_CLOEXEC, mode);
  while (opened < 0 && errno == EINTR);
  if (opened < 0 || opened > 2)
    return opened;
  int lifted = ::fcntl(opened, F_DUPFD_CLOEXEC, 3), error = errno;
  ::close(opened);
  errno = error;
  return lifted;
}

/// A FIFO without a writer must not block, and a terminal does not become the process's own.
static constexpr int kReading = O_RDONLY | O_NONBLOCK | O_NOCTTY;

// ---- Reading --------------------------------------------------------------------------------------------------------

static std::string tooLarge(uint64_t most) {
  return "is larger than " +
         (most >> 30   ? std::to_string(most >> 30) + " GiB"
          : most >> 20 ? std::to_string(most >> 20) + " MiB"
                       : std::to_string(most) + " bytes") +
         ", the most that is read";
}

/// What copies and parts of a file share.
struct InputFile::Source {
  Descriptor descriptor; ///< none: `held` has the bytes
  std::string held;
};

Result<InputFile> InputFile::opened(std::string path, int descriptor, uint64_t most) {
  InputFile file(std::move(path), std::make_shared<Source>());
  file.source_->descriptor.reset(descriptor);
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return file.error(systemMessage("cannot read"));
  if (!S_ISREG(status.st_mode))
    return file.error("is not a regular file");
  file.size_ = static_cast<uint64_t>(status.st_size);
  if (file.size_ > most)
    return file.error(tooLarge(most));
  return file;
}

Result<InputFile> InputFile::open(const std::string &path, uint64_t most) {
  int descriptor = openFile(path.c_str(), kReading);
  if (descriptor < 0)
    return fileError(path, systemMessage("cannot open"));
  return opened(path, descriptor, most);
}

Result<InputFile> InputFile::openArgument(const std::string &argument, uint64_t most) {
  if (argument != "-")
    return open(argument, most);
  most = std::min(most, kLargestInput);
  InputFile file("<stdin>", std::make_shared<Source>());
  std::string &held = file.source_->held;
  constexpr size_t kStep = size_t(64) << 10;
  for (;;) {
    // Grown by what has come, and by one byte more than allowed, to see that there is more.
    size_t have = file.size_, step = std::min<size_t>(std::max(kStep, have), most + 1 - have);
    held.resize(have + step);
    ssize_t got = ::read(0, held.data() + have, step);
    if (got < 0 && errno == EINTR)
      got = 0;
    else if (got < 0)
      return file.error(systemMessage("cannot read"));
    else if (got == 0)
      break;
    file.size_ = have + static_cast<size_t>(got);
    if (file.size_ > most)
      return file.error(tooLarge(most));
  }
  held.resize(file.size_);
  return file;
}

std::string readerOf(std::string_view start) {
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06"))
    return "it looks like a .npz file: read it with load_npz";
  if (start.starts_with("\x93NUMPY"))
    return "it looks like a .npy file: read it with load_npy";
  if (start.size() > 8 && start[8] == '{')
    return "it looks like a .safetensors file: read it with load_weights";
  return {};
}

std::string readerOf(const InputFile &file) {
  char start[10];
  return file.size() >= sizeof start && file.read(0, start, sizeof start).ok() ? readerOf({start, sizeof start}) : "";
}

Status InputFile::read(uint64_t offset, void *data, size_t size) const {
  auto *out = static_cast<char *>(data);
  if (offset > size_ || size > size_ - offset)
    return error("truncated: it ends at byte " + std::to_string(size_));
  const auto &[descriptor, held] = *source_;
  if (descriptor.number < 0) {
    std::copy_n(held.data() + begin_ + offset, size, out);
    return {};
  }
  while (size > 0) {
    ssize_t got = ::pread(descriptor.number, out, std::min(size, size_t(1) << 30), static_cast<off_t>(begin_ + offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return error(systemMessage("cannot read"));
    if (got == 0)
      return error("truncated: it ends at byte " + std::to_string(offset));
    out += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return {};
}

bool InputFile::isAt(const std::string &path) const {
  struct stat there, opened;
  return ::stat(path.c_str(), &there) == 0 && ::fstat(source_->descriptor.number, &opened) == 0 &&
         there.st_dev == opened.st_dev && there.st_ino == opened.st_ino;
}

Result<InputFile> InputFile::part(uint64_t offset, uint64_t size, const std::string &name) const {
  InputFile part(path_ + ": " + name, source_);
  if (offset > size_ || size > size_ - offset)
    return part.error("truncated: its " + std::to_string(size) + " bytes from byte " + std::to_string(offset) +
                      " on run beyond the end, which is at byte " + std::to_string(size_));
  part.begin_ = begin_ + offset;
  part.size_ = size;
  return part;
}

Result<std::string> InputFile::text() const {
  std::string text(size_, '\0');
  if (Status status = read(0, text.data(), text.size()); !status.ok())
    return status;
  return text;
}

// ---- Directories ----------------------------------------------------------------------------------------------------

struct Directory::Handle : Descriptor {};

Result<Directory> Directory::open(const std::string &path) {
  auto handle = std::make_shared<Handle>();
  handle->number = openFile(path.c_str(), O_RDONLY | O_DIRECTORY);
  if (handle->number < 0)
    return fileError(path, systemMessage("cannot open"));
  return Directory(path, std::move(handle));
}

std::string Directory::pathOf(const std::string &name) const {
  return path_.ends_with('/') ? path_ + name : path_ + "/" + name;
}

void Directory::lock() {
  while (::flock(handle_->number, LOCK_EX) != 0 && errno == EINTR) {
  }
}

Result<std::vector<std::string>> Directory::names() const {
  std::unique_ptr<DIR, int (*)(DIR *)> entries(nullptr, ::closedir);
  // Of its own: closedir closes it.
  if (int own = ::openat(handle_->number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); own >= 0) {
    entries.reset(::fdopendir(own));
    if (!entries)
      ::close(own);
  }
  if (!entries)
    return fileError(path_, systemMessage("cannot read"));
  std::vector<std::string> names;
  errno = 0;
  while (const dirent *entry = ::readdir(entries.get()))
    if (std::string name = entry->d_name; name != "." && name != "..")
      names.push_back(std::move(name));
  if (errno != 0)
    return fileError(path_, systemMessage("cannot read"));
  std::sort(names.begin(), names.end());
  return names;
}

bool Directory::has(const std::string &name) const {
  struct stat status;
  return ::fstatat(handle_->number, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<InputFile> Directory::file(const std::string &name, uint64_t most) const {
  if (name.find('/') != std::string::npos || name == "..")
    return fileError(pathOf(name), "is not the name of a file in the directory");
  int descriptor = openFile(name.c_str(), kReading | O_NOFOLLOW, 0, handle_->number);
  if (descriptor < 0)
    return fileError(pathOf(name),
                     errno == ELOOP ? "is a symbolic link, which is not followed here" : systemMessage("cannot open"));
  return InputFile::opened(pathOf(name), descriptor, most);
}

bool Directory::holds(const InputFile &file, const std::string &name) const {
  struct stat there, opened;
  return ::fstatat(handle_->number, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(file.source_->descriptor.number, &opened) == 0 && there.st_dev == opened.st_dev &&
         there.st_ino == opened.st_ino;
}

bool Directory::remove(const std::string &name) const {
  return ::unlinkat(handle_->number, name.c_str(), 0) == 0 || errno == ENOENT;
}

std::string directoryOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// The names in it are on the disk; a file system that cannot is no error.
static void syncDirectory(const std::string &path) {
  if (Descriptor opened; (opened.number = openFile(path.c_str(), O_RDONLY | O_DIRECTORY)) >= 0)
    ::fsync(opened.number);
}

Result<bool> makeDirectory(const std::string &path) {
  if (::mkdir(path.c_str(), 0777) == 0) {
    syncDirectory(directoryOf(path.substr(0, path.find_last_not_of('/') + 1)));
    return true;
  }
  if (errno == EEXIST)
    return false;
  return fileError(path, systemMessage("cannot make the directory"));
}

void removeDirectory(const std::string &path) { ::rmdir(path.c_str()); }

bool isRegularFile(const std::string &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// ---- Writing --------------------------------------------------------------------------------------------------------

static constexpr std::string_view kMark = ".wengert-", kEnd = ".tmp";
static constexpr size_t kDigits = 16;

/// `.NAME.wengert-0123456789abcdef.tmp`: what a writer leaves behind if it is killed.
static std::string temporaryName(std::string_view name) {
  uint64_t number;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
    number = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  // A name has at most 255 bytes.
  return "." + std::string(name.substr(0, 200)) + std::string(kMark) + digits + std::string(kEnd);
}

bool isTemporaryName(std::string_view name) {
  constexpr size_t tail = kMark.size() + kDigits + kEnd.size();
  if (name.size() <= tail || name[0] != '.' || !name.ends_with(kEnd))
    return false;
  std::string_view rest = name.substr(name.size() - tail);
  return rest.starts_with(kMark) &&
         rest.substr(kMark.size(), kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Removes the temporary files of dead writers in a directory: those that nobody holds locked. A directory of n entries
/// is read every n / 1000 writes, so that n writes into one directory stay linear.
static void removeLeftovers(const std::string &directory) {
  static std::mutex mutex;
  static constinit dev_t device = 0;
  static constinit ino_t inode = 0;
  static constinit int64_t skip = 0;
  std::lock_guard lock(mutex);
  struct stat status;
  if (::stat(directory.c_str(), &status) != 0)
    return;
  if (status.st_dev == device && status.st_ino == inode && skip-- > 0)
    return;
  device = status.st_dev, inode = status.st_ino, skip = 0;
  std::unique_ptr<DIR, int (*)(DIR *)> entries(::opendir(directory.c_str()), ::closedir);
  if (!entries)
    return;
  int64_t count = 0;
  for (; const dirent *entry = ::readdir(entries.get()); ++count) {
    if (!isTemporaryName(entry->d_name) || (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN))
      continue;
    Descriptor file;
    file.number = openFile((directory + "/" + entry->d_name).c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    // Locked until it is gone: a writer that has just made it notices, and takes another name.
    if (file.number >= 0 && ::fstat(file.number, &status) == 0 && S_ISREG(status.st_mode) &&
        ::flock(file.number, LOCK_EX | LOCK_NB) == 0)
      ::unlinkat(::dirfd(entries.get()), entry->d_name, 0);
  }
  skip = count / 1000;
}

namespace {

/// While it lives, writing beyond the limit of a file's size or into a pipe without a reader is an error of this
/// thread's call, not a signal that ends the process.
class SignalsHeld {
public:
  SignalsHeld() {
    ::sigpending(&pending_);
    ::sigemptyset(&held_);
    for (int signal : kSignals)
      if (!::sigismember(&pending_, signal))
        ::sigaddset(&held_, signal);
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  SignalsHeld(const SignalsHeld &) = delete;
  ~SignalsHeld() {
    timespec none = {};
    while (::sigtimedwait(&held_, nullptr, &none) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

private:
  static constexpr int kSignals[] = {SIGPIPE, SIGXFSZ};
  sigset_t pending_, held_, before_;
};

/// One file on its way: first its temporary file, then its place.
struct Target {
  const FileContents &contents;
  std::string directory, place = {}; ///< links followed
  std::string temporary = {};        ///< removed at the end, unless empty
  Descriptor file = {};
  struct stat old = {};
  bool exists = false;  ///< a regular file is there; `old` describes it
  bool through = false; ///< a device or FIFO, written as it is
  bool swapped = false; ///< the temporary name holds the old file
  bool placed = false;

  ~Target() {
    if (!temporary.empty())
      ::unlink(temporary.c_str());
  }
  const std::string &path() const { return contents.path; }
  Failure error(const char *what) const { return fileError(path(), systemMessage(what)); }
};

} // namespace

/// What is at the path, and where the new file goes.
static Status find(Target &target) {
  const std::string &path = target.path();
  if (path.empty() || path.ends_with('/'))
    return fileError(path, path.empty() ? "the name of a file is expected, and it is empty"
                                        : "is the name of a directory, not of a file");
  if (::stat(path.c_str(), &target.old) == 0) {
    mode_t mode = target.old.st_mode;
    if (S_ISDIR(mode) || S_ISBLK(mode) || S_ISSOCK(mode))
      return fileError(path,
                       S_ISDIR(mode)   ? "is a directory"
                       : S_ISBLK(mode) ? "is a block device, which is not written"
                                       : "is a socket, which is not written",
                       "name a file");
    target.exists = S_ISREG(mode);
    target.through = !target.exists;
  } else if (errno != ENOENT) {
    return target.error("cannot write");
  }
  if (target.through)
    return {};
  target.place = path;
  for (int links = 0; links < 40; ++links) {
    char text[4096];
    ssize_t size = ::readlink(target.place.c_str(), text, sizeof text);
    if (size < 0)
      break;
    std::string next(text, static_cast<size_t>(size));
    target.place = next.starts_with('/') ? next : directoryOf(target.place) + "/" + next;
  }
  struct stat found;
  bool there = ::lstat(target.place.c_str(), &found) == 0;
  if (there != target.exists || (there && (found.st_dev != target.old.st_dev || found.st_ino != target.old.st_ino)))
    return fileError(path, "the target of the link cannot be found", "name the file itself");
  if (target.exists && ::faccessat(AT_FDCWD, target.place.c_str(), W_OK, AT_EACCESS) != 0)
    return target.error("cannot write");
  target.directory = directoryOf(target.place);
  return {};
}

static Status createTemporary(Target &target) {
  std::string name = target.place.substr(target.place.rfind('/') + 1); // npos + 1 is 0
  for (;;) {
    target.temporary = target.directory + "/" + temporaryName(name);
    // What is secret in the old file is not shown in its successor.
    target.file.reset(openFile(target.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, target.exists ? 0600 : 0666));
    if (target.file.number < 0) {
      int error = errno;
      target.temporary.clear();
      errno = error;
      if (errno == EEXIST)
        continue;
      return target.error("cannot create a file beside it");
    }
    while (::flock(target.file.number, LOCK_EX) != 0 && errno == EINTR) {
    } // a file system without locks keeps leftovers
    struct stat made;
    if (::fstat(target.file.number, &made) == 0 && made.st_nlink > 0)
      return {};
  }
}

static bool writeAll(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t put = ::write(descriptor, bytes.data(), std::min(bytes.size(), size_t(1) << 30));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return false;
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return true;
}

/// Small pieces are gathered: a file of many small tensors is not as many calls.
static bool writePieces(int descriptor, std::span<const std::span<const std::byte>> pieces) {
  constexpr size_t kGathered = size_t(64) << 10;
  std::vector<std::byte> gathered;
  for (std::span<const std::byte> piece : pieces) {
    if (gathered.size() + piece.size() > kGathered) {
      if (!writeAll(descriptor, gathered))
        return false;
      gathered.clear();
    }
    if (piece.size() > kGathered / 2) {
      if (!writeAll(descriptor, gathered) || !writeAll(descriptor, piece))
        return false;
      gathered.clear();
    } else {
      gathered.insert(gathered.end(), piece.begin(), piece.end());
    }
  }
  return writeAll(descriptor, gathered);
}

/// The old file's owner and mode. Where the group cannot be kept, the group has the rights of everybody; where the
/// owner cannot, no bit gives the rights of the file's owner.
static bool keepMode(const Target &target) {
  int file = target.file.number;
  mode_t mode = target.old.st_mode & 07777;
  struct stat made;
  if (::fstat(file, &made) != 0)
    return false;
  if (made.st_uid != target.old.st_uid || made.st_gid != target.old.st_gid) {
    if (::fchown(file, target.old.st_uid, target.old.st_gid) != 0) {
      mode &= static_cast<mode_t>(~06000);
      if (::fchown(file, static_cast<uid_t>(-1), target.old.st_gid) != 0)
        mode = (mode & static_cast<mode_t>(~0070)) | (mode & 0007) << 3;
    }
  }
  return ::fchmod(file, mode) == 0;
}

static Status writeTemporary(Target &target) {
  if (Status status = createTemporary(target); !status.ok())
    return status;
  if (!writePieces(target.file.number, target.contents.pieces))
    return target.error("cannot write");
  if (target.exists && !keepMode(target))
    return target.error("cannot set its mode");
  if (::fsync(target.file.number) != 0)
    return target.error("cannot sync");
  return {};
}

static Status writeThrough(Target &target) {
  bool pipe = S_ISFIFO(target.old.st_mode);
  target.file.reset(openFile(target.path().c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY));
  if (target.file.number < 0 && errno == ENXIO && pipe)
    return fileError(target.path(), "is a FIFO that nobody reads", "start its reader first");
  struct stat opened;
  if (target.file.number < 0 || ::fstat(target.file.number, &opened) != 0)
    return target.error("cannot write");
  if ((opened.st_mode & S_IFMT) != (target.old.st_mode & S_IFMT))
    return fileError(target.path(), "has been replaced while it was written");
  ::fcntl(target.file.number, F_SETFL, 0); // from here on a slow reader is waited for
  bool written = writePieces(target.file.number, target.contents.pieces);
  if (!written || ::close(std::exchange(target.file.number, -1)) != 0)
    return target.error("cannot write");
  return {};
}

/// The temporary file becomes the file. Where others follow, the old one is kept under the
/// temporary name, to be put back.
static bool place(Target &target, bool last) {
  const char *from = target.temporary.c_str(), *to = target.place.c_str();
  if (target.exists && !last && ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
    return target.placed = target.swapped = true;
  if (::rename(from, to) != 0)
    return false;
  target.temporary.clear();
  return target.placed = true;
}

static void putBack(Target &target) {
  if (target.swapped && ::rename(target.temporary.c_str(), target.place.c_str()) == 0)
    target.temporary.clear();
  else if (!target.exists)
    ::unlink(target.place.c_str());
}

Status writeFiles(std::span<const FileContents> files) {
  SignalsHeld held;
  std::vector<std::unique_ptr<Target>> targets;
  std::set<std::string> places, directories;
  std::set<std::pair<dev_t, ino_t>> known;
  for (const FileContents &contents : files) {
    targets.push_back(
        std::unique_ptr<Target>(new Target{contents, {}})); // owned before the vector grows, which may fail
    Target &target = *targets.back();
    if (Status status = find(target); !status.ok())
      return status;
    if (target.through)
      continue;
    if (!places.insert(target.place).second ||
        (target.exists && !known.emplace(target.old.st_dev, target.old.st_ino).second))
      return fileError(target.path(), "is to be written twice", "name one file for each");
    directories.insert(target.directory);
  }
  for (auto &target : targets)
    if (!target->through)
      if (Status status = writeTemporary(*target); !status.ok())
        return status;
  for (auto &target : targets)
    if (target->through)
      if (Status status = writeThrough(*target); !status.ok())
        return status;

  for (auto &target : targets) {
    if (target->through || place(*target, target == targets.back()))
      continue;
    Failure failure = target->error("cannot rename");
    for (auto &other : targets)
      if (other->placed)
        putBack(*other);
    return failure;
  }
  targets.clear(); // the old files
  for (const std::string &directory : directories) {
    syncDirectory(directory);
    removeLeftovers(directory);
  }
  return {};
}

Status writeFile(const std::string &path, std::span<const std::span<const std::byte>> pieces) {
  FileContents contents{path, {pieces.begin(), pieces.end()}};
  return writeFiles(std::span(&contents, 1));
}

Status writeFile(const std::string &path, std::string_view text) {
  std::span<const std::byte> piece = std::as_bytes(std::span(text));
  return writeFile(path, std::span(&piece, 1));
}

} // namespace wg::runtime
