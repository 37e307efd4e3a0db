// Files are written whole or not at all, keep what they are, and are read only if they are files.
#include "runtime/io/File.h"

#include "runtime/io/Npy.h"
#include "tests/runtime/Run.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace wg::runtime {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
protected:
  FileTest() {
    std::string name = (fs::temp_directory_path() / "wengert-file-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~FileTest() override { fs::remove_all(directory_); }

  std::string at(const std::string &name) { return directory_ / name; }
  std::string put(const std::string &name, const std::string &bytes, mode_t mode = 0644) {
    std::ofstream(at(name), std::ios::binary) << bytes;
    ::chmod(at(name).c_str(), mode);
    return at(name);
  }
  static std::string get(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static struct stat statOf(const std::string &path) {
    struct stat status = {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status;
  }
  static mode_t modeOf(const std::string &path) { return statOf(path).st_mode & 07777; }
  size_t files() { return static_cast<size_t>(std::distance(fs::directory_iterator(directory_), {})); }
  std::string leftover() {
    for (const auto &entry : fs::directory_iterator(directory_))
      if (entry.path().filename().string().find(".wengert-") != std::string::npos)
        return entry.path();
    return {};
  }
  /// The failure's message without the directory.
  std::string why(const Status &status) {
    if (status.ok())
      return "no failure";
    EXPECT_EQ(status.failure().kind, ErrorKind::io);
    std::string text = status.failure().message, prefix = directory_.string() + "/";
    EXPECT_TRUE(text.starts_with(prefix)) << text;
    return text.substr(std::min(text.size(), prefix.size()));
  }
  template <class T> std::string why(Result<T> result) {
    return result.ok() ? "no failure" : why(Status(result.take()));
  }

  /// A character device like the named one, in the test's own folder. Who may not make one cannot do
  /// harm to the system's: then a link.
  std::string device(const std::string &name, const char *system, unsigned minor) {
    if (::mknod(at(name).c_str(), S_IFCHR | 0666, makedev(1, minor)) != 0) {
      EXPECT_NE(::geteuid(), 0u);
      fs::create_symlink(system, at(name));
    }
    return at(name);
  }

  fs::path directory_;
};

TEST_F(FileTest, ModeAndOwnerStay) {
  for (mode_t mode : {0600, 0640, 0444, 0755}) {
    if (mode == 0444 && ::geteuid() != 0)
      continue; // is refused, below
    std::string path = put("a", "old", mode);
    ASSERT_TRUE(writeFile(path, "new").ok());
    EXPECT_EQ(get(path), "new");
    EXPECT_EQ(modeOf(path), mode);
    fs::remove(path);
  }
  mode_t mask = ::umask(022);
  ASSERT_TRUE(writeFile(at("fresh"), "new").ok());
  ::umask(mask);
  EXPECT_EQ(modeOf(at("fresh")), mode_t(0644));
  if (::geteuid() == 0) {
    std::string path = put("theirs", "old", 0640);
    ASSERT_EQ(::chown(path.c_str(), 12345, 23456), 0);
    ASSERT_TRUE(writeFile(path, "new").ok());
    EXPECT_EQ(statOf(path).st_uid, 12345u);
    EXPECT_EQ(statOf(path).st_gid, 23456u);
    EXPECT_EQ(modeOf(path), mode_t(0640));
  } else {
    EXPECT_EQ(why(writeFile(put("locked", "old", 0444), "new")), "locked: cannot write: Permission denied");
  }
}

TEST_F(FileTest, LinksStayAndTheirTargetIsReplaced) {
  fs::create_directory(at("far"));
  put("far/a", "old", 0600);
  fs::create_symlink("far/a", at("near"));
  fs::create_symlink("near", at("nearer"));
  ASSERT_TRUE(writeFile(at("nearer"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(at("nearer")) && fs::is_symlink(at("near")));
  EXPECT_EQ(get(at("far/a")), "new");
  EXPECT_EQ(modeOf(at("far/a")), mode_t(0600));

  fs::create_symlink("far/b", at("dangling"));
  ASSERT_TRUE(writeFile(at("dangling"), "made").ok());
  EXPECT_TRUE(fs::is_symlink(at("dangling")));
  EXPECT_EQ(get(at("far/b")), "made");

  fs::create_symlink("loop", at("loop"));
  EXPECT_EQ(why(writeFile(at("loop"), "x")), "loop: cannot write: Too many levels of symbolic links");
  EXPECT_TRUE(fs::is_symlink(at("loop")));
}

TEST_F(FileTest, DevicesAreWrittenThrough) {
  std::string null = device("null", "/dev/null", 3), full = device("full", "/dev/full", 7);
  mode_t before = statOf(null).st_mode;
  ASSERT_TRUE(writeFile(null, "gone").ok());
  EXPECT_EQ(why(writeFile(full, "no room")), "full: cannot write: No space left on device");
  EXPECT_EQ(statOf(null).st_mode, before);
  EXPECT_TRUE(fs::is_character_file(null) && fs::is_character_file(full));
  EXPECT_EQ(files(), 2u);
}

TEST_F(FileTest, AFifoIsWrittenThrough) {
  std::string fifo = at("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(why(writeFile(fifo, "x")), "fifo: is a FIFO that nobody reads");
  int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(writeFile(fifo, "through").ok());
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(fifo));
}

TEST_F(FileTest, AReaderThatGoesAwayIsAnErrorAndNoSignal) {
  std::string fifo = at("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  std::thread leaves([&] {
    char byte;
    while (::read(reader, &byte, 1) != 1)
      std::this_thread::yield();
    ::close(reader);
  });
  EXPECT_EQ(why(writeFile(fifo, std::string(1 << 20, 'x'))), "fifo: cannot write: Broken pipe");
  leaves.join();
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_FALSE(::sigismember(&pending, SIGPIPE));
}

TEST_F(FileTest, WhatIsNoFileIsRefused) {
  fs::create_directory(at("folder"));
  EXPECT_EQ(why(writeFile(at("folder"), "x")), "folder: is a directory");
  EXPECT_EQ(why(writeFile(at("folder/"), "x")), "folder/: is the name of a directory, not of a file");
  EXPECT_EQ(why(writeFile(at("none/a"), "x")), "none/a: cannot create a file beside it: No such file or directory");
  EXPECT_FALSE(writeFile("", "x").ok());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string path = at("socket");
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  int made = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(made, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
  EXPECT_EQ(why(writeFile(path, "x")), "socket: is a socket, which is not written");
  ::close(made);
  EXPECT_TRUE(fs::is_socket(path));
  EXPECT_EQ(files(), 2u);
}

TEST_F(FileTest, AFileThatBecomesTooLargeLeavesTheOldOne) {
  std::string a = put("a", "old a"), b = put("b", "old b");
  rlimit before;
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = {1000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string large(5000, 'x'), little = "new";
  FileContents both[] = {{a, {std::as_bytes(std::span(little))}}, {b, {std::as_bytes(std::span(large))}}};
  Status status = writeFiles(both);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(why(status), "b: cannot write: File too large");
  EXPECT_EQ(get(a) + get(b), "old aold b");
  EXPECT_EQ(files(), 2u);
  ASSERT_TRUE(writeFiles(both).ok());
  EXPECT_EQ(get(a) + get(b), "new" + large);
}

TEST_F(FileTest, OneFileIsNotWrittenTwice) {
  std::string a = put("a", "old"), x = "x", y = "y";
  fs::create_symlink("a", at("link"));
  FileContents both[] = {{a, {std::as_bytes(std::span(x))}}, {at("link"), {std::as_bytes(std::span(y))}}};
  EXPECT_EQ(why(writeFiles(both)), "link: is to be written twice");
  EXPECT_EQ(get(a), "old");
  EXPECT_EQ(files(), 2u);
}

/// Between the temporary files and the renaming there is a FIFO, which is full until it is read.
TEST_F(FileTest, ARenamingThatFailsPutsTheOthersBack) {
  std::string fifo = at("fifo"), a = put("a", "old", 0600), large(1 << 20, 'x'), fresh = "new";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  std::thread blocks([&] {
    while (leftover().empty())
      std::this_thread::yield();
    fs::create_directory(at("b"));
    std::string drained(1 << 16, ' ');
    for (ssize_t left = 1 << 20; left > 0;)
      if (ssize_t got = ::read(reader, drained.data(), drained.size()); got > 0)
        left -= got;
      else
        std::this_thread::yield();
  });
  FileContents all[] = {{a, {std::as_bytes(std::span(fresh))}},
                        {at("c"), {std::as_bytes(std::span(fresh))}},
                        {fifo, {std::as_bytes(std::span(large))}},
                        {at("b"), {std::as_bytes(std::span(fresh))}}};
  Status status = writeFiles(all);
  blocks.join();
  ::close(reader);
  EXPECT_EQ(why(status), "b: cannot rename: Is a directory");
  EXPECT_EQ(get(a), "old");
  EXPECT_EQ(modeOf(a), mode_t(0600));
  EXPECT_FALSE(fs::exists(at("c")));
  EXPECT_EQ(files(), 3u) << leftover();
}

TEST_F(FileTest, WhatAKilledWriterLeavesIsRemovedByTheNext) {
  std::string fifo = at("fifo"), a = put("a", "old"), fresh = "new", large(1 << 20, 'x');
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  FileContents both[] = {{a, {std::as_bytes(std::span(fresh))}}, {fifo, {std::as_bytes(std::span(large))}}};
  pid_t writer = ::fork();
  if (writer == 0) {
    (void)writeFiles(both); // waits for a reader that does not read
    ::_exit(0);
  }
  while (leftover().empty())
    std::this_thread::yield();
  // It lives: another writer leaves its file alone.
  ASSERT_TRUE(writeFile(at("b"), "b").ok());
  EXPECT_FALSE(leftover().empty());
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  ::close(reader);
  EXPECT_FALSE(leftover().empty());
  put(".a.wengert-0123456789abcdeX.tmp", "somebody else's");
  ASSERT_TRUE(writeFile(at("b"), "b again").ok());
  EXPECT_EQ(leftover(), at(".a.wengert-0123456789abcdeX.tmp"));
  EXPECT_EQ(get(a), "old");
  EXPECT_EQ(files(), 4u);
}

TEST_F(FileTest, ALongNameIsWritten) {
  std::string name(255, 'n');
  ASSERT_TRUE(writeFile(at(name), "x").ok());
  EXPECT_EQ(get(at(name)), "x");
}

TEST_F(FileTest, OnlyRegularFilesUpToALimitAreRead) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  EXPECT_EQ(why(InputFile::open(at("fifo"))), "fifo: is not a regular file");
  EXPECT_EQ(why(InputFile::open(device("zero", "/dev/zero", 5))), "zero: is not a regular file");
  EXPECT_EQ(why(InputFile::open(directory_.string() + "/")), ": is not a regular file");
  std::string large = put("large", "");
  ASSERT_EQ(::truncate(large.c_str(), static_cast<off_t>(kLongestText) + 1), 0);
  EXPECT_EQ(why(InputFile::openArgument(large, kLongestText)), "large: is larger than 256 MiB, the most that is read");
  ASSERT_EQ(::truncate(large.c_str(), static_cast<off_t>(kLargestFile) + 1), 0);
  EXPECT_EQ(why(readNpy(large)), "large: is larger than 64 GiB, the most that is read");
}

/// Standard input of this process, for as long as it lives.
class StandardInput {
public:
  explicit StandardInput(int descriptor) : before_(::dup(0)) { ::dup2(descriptor, 0); }
  ~StandardInput() {
    ::dup2(before_, 0);
    ::close(before_);
  }

private:
  int before_;
};

TEST_F(FileTest, AMinusIsStandardInputUpToALimit) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writes([&] {
    std::string text(300'000, 'x');
    for (size_t at = 0; at < text.size();)
      at += static_cast<size_t>(std::max<ssize_t>(::write(ends[1], text.data() + at, text.size() - at), 0));
    ::close(ends[1]);
  });
  {
    StandardInput input(ends[0]);
    Result<InputFile> file = InputFile::openArgument("-");
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(file->path(), "<stdin>");
    EXPECT_EQ(file->size(), 300'000u);
    Result<std::string> text = file->text();
    EXPECT_TRUE(text.ok() && *text == std::string(300'000, 'x'));
    char bytes[2];
    EXPECT_TRUE(file->read(299'998, bytes, 2).ok());
    EXPECT_FALSE(file->read(299'999, bytes, 2).ok());
  }
  writes.join();
  ::close(ends[0]);
  // Without an end: stops at the limit.
  int zero = ::open(device("zero", "/dev/zero", 5).c_str(), O_RDONLY);
  StandardInput input(zero);
  Result<InputFile> endless = InputFile::openArgument("-", 1000);
  ASSERT_FALSE(endless.ok());
  EXPECT_EQ(endless.failure().message, "<stdin>: is larger than 1000 bytes, the most that is read");
  ::close(zero);
}

TEST_F(FileTest, ArraysAreWrittenAllOrNone) {
  std::vector<std::string> paths = {put("a.npy", "old"), at("none/b.npy")};
  std::vector<Array> arrays = {vec<float>({1}), vec<float>({2})};
  EXPECT_EQ(why(writeNpy(paths, arrays)), "none/b.npy: cannot create a file beside it: No such file or directory");
  EXPECT_EQ(get(paths[0]), "old");
  EXPECT_EQ(files(), 1u);
}

} // namespace
} // namespace wg::runtime
