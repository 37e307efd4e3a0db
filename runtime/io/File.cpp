#include "runtime/io/File.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace wg::runtime {

Failure fileError(const std::string &path, const std::string &message, std::string remedy) {
  return {.kind = ErrorKind::io, .message = path + ": " + message, .remedy = std::move(remedy)};
}

static std::string systemMessage(const char *what) { return std::string(what) + ": " + std::strerror(errno); }

Result<InputFile> InputFile::open(const std::string &path) {
  int descriptor;
  do
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe without a writer must not block
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0)
    return fileError(path, systemMessage("cannot open"));
  InputFile file(path, descriptor, 0);
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return file.error(systemMessage("cannot read"));
  if (!S_ISREG(status.st_mode))
    return file.error("is not a regular file");
  file.size_ = static_cast<uint64_t>(status.st_size);
  return file;
}

InputFile::InputFile(InputFile &&other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

Status InputFile::read(uint64_t offset, void *data, size_t size) const {
  auto *out = static_cast<char *>(data);
  while (size > 0) {
    ssize_t got = ::pread(descriptor_, out, std::min(size, size_t(1) << 30), static_cast<off_t>(offset));
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

/// An open descriptor and the temporary file behind it, which is removed unless it was renamed.
namespace {
struct Temporary {
  std::string path;
  int descriptor = -1;
  bool renamed = false;
  ~Temporary() {
    if (descriptor >= 0)
      ::close(descriptor);
    if (!renamed && !path.empty())
      ::unlink(path.c_str());
  }
};
} // namespace

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

Status writeFile(const std::string &path, std::span<const std::span<const std::byte>> pieces) {
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  Temporary temporary;
  std::string name;
  static std::atomic<unsigned> count = 0;
  do {
    name = path + "." + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".tmp";
    temporary.descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (temporary.descriptor < 0 && (errno == EEXIST || errno == EINTR));
  if (temporary.descriptor < 0)
    return fileError(path, systemMessage("cannot create a file beside it"));
  temporary.path = name;
  for (std::span<const std::byte> piece : pieces)
    if (!writeAll(temporary.descriptor, piece))
      return fileError(path, systemMessage("cannot write"));
  if (::fsync(temporary.descriptor) != 0)
    return fileError(path, systemMessage("cannot sync"));
  if (::rename(name.c_str(), path.c_str()) != 0)
    return fileError(path, systemMessage("cannot rename"));
  temporary.renamed = true;
  if (int opened = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); opened >= 0) {
    ::fsync(opened); // the name; a file system that cannot is no error
    ::close(opened);
  }
  return {};
}

} // namespace wg::runtime
