// A package is whole whenever somebody looks, whatever its writer met; and zip archives are what others read and write.
//
// WENGERT_KILLS=N kills N writers of each kind instead of the usual number.
#include "runtime/io/Package.h"

#include "runtime/io/Digest.h"
#include "runtime/io/Shards.h"
#include "runtime/io/Zip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace wg::runtime {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

constexpr uint64_t kLongestManifest = 1 << 20;

std::span<const std::byte> bytesOfText(const std::string &text) { return std::as_bytes(std::span(text)); }

std::string partName(const std::string &kind, const std::string &bytes) {
  return kind + "-" + digestOf(bytes) + ".bin";
}

/// A manifest of lines: what it is, then the names of its parts.
struct State {
  std::string manifest;
  std::vector<std::pair<std::string, std::string>> parts; ///< name, bytes

  State(const std::string &what, const std::vector<std::string> &contents) : manifest(what + "\n") {
    for (const std::string &bytes : contents) {
      parts.emplace_back(partName("part", bytes), bytes);
      manifest += parts.back().first + "\n";
    }
  }
  Status write(const std::string &path) const {
    std::vector<PackagePart> pieces;
    for (const auto &[name, bytes] : parts) // in two pieces
      pieces.push_back(
          {name, {bytesOfText(bytes).first(bytes.size() / 2), {}, bytesOfText(bytes).subspan(bytes.size() / 2)}});
    return writePackage(path, pieces, manifest);
  }
  /// Empty, or what differs in the package.
  std::string differs(const Package &package) const {
    if (package.manifest() != manifest)
      return "the manifest is " + package.manifest();
    for (const auto &[name, bytes] : parts) {
      Result<InputFile> file = package.part(name);
      if (!file.ok())
        return toString(file.failure());
      Result<std::string> text = file->text();
      if (!text.ok() || *text != bytes)
        return name + " has other bytes";
      if (Status status = package.verify(name); !status.ok())
        return toString(status.failure());
    }
    return {};
  }
};

class PackageTest : public testing::Test {
protected:
  PackageTest() {
    std::string name = (fs::temp_directory_path() / "wengert-package-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~PackageTest() override { fs::remove_all(directory_); }

  std::string at(const std::string &name) { return directory_ / name; }
  std::string put(const std::string &name, const std::string &bytes) {
    std::ofstream(at(name), std::ios::binary) << bytes;
    return at(name);
  }
  static std::string get(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::vector<std::string> names(const std::string &path) {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(path))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::vector<std::string> namesOf(const State &state) {
    std::vector<std::string> names = {"manifest.json"};
    for (const auto &[name, bytes] : state.parts)
      names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  }
  /// The failure's message without the directory.
  std::string why(const Status &status) {
    if (status.ok())
      return "no failure";
    std::string text = status.failure().message, prefix = directory_.string() + "/";
    EXPECT_TRUE(text.starts_with(prefix)) << text;
    return text.substr(std::min(text.size(), prefix.size()));
  }
  template <class T> std::string why(Result<T> result) {
    return result.ok() ? "no failure" : why(Status(result.take()));
  }
  static std::string differs(const std::string &path, const State &state) {
    Result<Package> package = Package::open(path, kLongestManifest);
    return package.ok() ? state.differs(*package) : toString(package.failure());
  }

  /// Kills writers of two states in turn, each at a random moment; what is there is one of the states, which `differs`
  /// compares with what `write` has written.
  static void kill(const std::function<bool(size_t)> &write, const std::function<std::string(size_t)> &differs,
                   const std::function<size_t()> &leftovers, uint64_t kills = 100) {
    uint64_t cut = 0;
    if (const char *asked = std::getenv("WENGERT_KILLS"))
      kills = std::strtoull(asked, nullptr, 10);
    auto start = std::chrono::steady_clock::now();
    for (size_t state : {0, 1})
      ASSERT_TRUE(write(state));
    auto span = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
    std::mt19937 random(7);
    std::uniform_int_distribution<useconds_t> moments(0, static_cast<useconds_t>(2 * span.count()) + 1000);
    for (uint64_t i = 0; i < kills && !HasFailure(); ++i) {
      pid_t writer = ::fork();
      if (writer == 0) {
        for (size_t turn = i;; ++turn)
          if (!write(turn % 2))
            ::_exit(1);
      }
      ::usleep(moments(random));
      ::kill(writer, SIGKILL);
      int outcome = 0;
      ::waitpid(writer, &outcome, 0);
      EXPECT_TRUE(WIFSIGNALED(outcome)) << "the writer failed";
      std::string first = differs(0), second = differs(1);
      EXPECT_TRUE(first.empty() || second.empty()) << "kill " << i << ": " << first << "; " << second;
      cut += leftovers() != 0;
      size_t next = random() % 2;
      EXPECT_TRUE(write(next));
      EXPECT_EQ(differs(next), "");
      EXPECT_EQ(leftovers(), 0u) << "kill " << i;
    }
    if (kills >= 50) {
      EXPECT_GT(cut, 0u) << "no writer was killed while it wrote";
    }
  }
  static void killPackage(const std::string &path, const std::function<size_t()> &leftovers) {
    State states[] = {{"one", {std::string(200'000, 'a'), "shared", std::string(70, 'x')}},
                      {"two", {std::string(150'000, 'b'), "shared"}}};
    kill([&](size_t state) { return states[state].write(path).ok(); },
         [&](size_t state) { return differs(path, states[state]); }, leftovers);
  }

  fs::path directory_;
};

// ---- Digests and parts of files -------------------------------------------------------------------------------------

/// The reference implementation's vectors: bytes 0, 1, ... 250, 0, 1 ... of these numbers.
TEST_F(PackageTest, DigestsAreBlake3) {
  EXPECT_EQ(digestOf(""), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
  std::string bytes;
  for (int i = 0; i < 1025; ++i)
    bytes += static_cast<char>(i % 251);
  EXPECT_EQ(digestOf(bytes), "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444");
  Digest digest;
  digest.add(std::string_view(bytes).substr(0, 1000));
  EXPECT_EQ(digest.hex().size(), 64u); // asking changes nothing
  digest.add(std::string_view(bytes).substr(1000));
  EXPECT_EQ(digest.hex(), digestOf(bytes));
}

TEST_F(PackageTest, APartOfAFileIsAFile) {
  Result<InputFile> file = InputFile::open(put("a", "0123456789"));
  Result<InputFile> part = file->part(2, 5, "b");
  ASSERT_TRUE(part.ok());
  file = InputFile::open(put("c", "")); // the part keeps what it reads
  EXPECT_EQ(part->size(), 5u);
  EXPECT_EQ(part->path(), at("a") + ": b");
  EXPECT_EQ(*part->text(), "23456");
  EXPECT_EQ(*part->part(4, 1, "c")->text(), "6");
  char byte;
  EXPECT_EQ(why(part->read(5, &byte, 1)), "a: b: truncated: it ends at byte 5");
  EXPECT_EQ(why(part->part(1, 5, "c")),
            "a: b: c: truncated: its 5 bytes from byte 1 on run beyond the end, which is at byte 5");
  EXPECT_FALSE(part->part(~0ull, 2, "c").ok());
}

// ---- Zip ------------------------------------------------------------------------------------------------------------

TEST_F(PackageTest, Zip64IsWrittenWhereItIsNeededAndRead) {
  std::string small = "small", large(3000, 'x');
  std::vector<ZipPart> parts = {{"s", {bytesOfText(small)}}, {"l", {bytesOfText(large)}}, {"e", {}}};
  std::string usual;
  for (uint64_t most : {uint64_t(0xfffffffe), uint64_t(3000), uint64_t(2000), uint64_t(4), uint64_t(0)}) {
    for (uint64_t alignment : {1, 64}) {
      ZipImage image = zipImage(parts, alignment, most);
      std::string bytes;
      for (std::span<const std::byte> piece : image.pieces)
        bytes.append(reinterpret_cast<const char *>(piece.data()), piece.size());
      if (alignment == 1 && usual.empty())
        usual = bytes;
      EXPECT_EQ(bytes == usual, most == 0xfffffffe && alignment == 1) << "most " << most;
      EXPECT_EQ(bytes.find("PK\6\6") != std::string::npos, most < 0xfffffffe) << "most " << most;
      Result<InputFile> file = InputFile::open(put("a", bytes));
      Result<std::vector<ZipEntry>> entries = readZip(*file, ".zip");
      ASSERT_TRUE(entries.ok()) << toString(entries.failure());
      ASSERT_EQ(entries->size(), 3u);
      for (size_t i = 0; i < 3; ++i) {
        const ZipEntry &entry = (*entries)[i];
        EXPECT_EQ(entry.name, parts[i].name);
        EXPECT_EQ(entry.data % alignment, 0u);
        ZipSource source(*file, entry);
        std::string text(entry.size, ' ');
        EXPECT_TRUE(source.read(text.data(), text.size()).ok() && source.finish().ok());
        EXPECT_EQ(text, i == 0 ? small : i == 1 ? large : "");
      }
    }
  }
}

TEST_F(PackageTest, AZipOfManyEntries) {
  std::vector<ZipPart> parts(70'000);
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i].name = std::to_string(i);
  ASSERT_TRUE(writeZip(at("many"), parts).ok());
  Result<InputFile> file = InputFile::open(at("many"));
  Result<std::vector<ZipEntry>> entries = readZip(*file, ".zip");
  ASSERT_TRUE(entries.ok()) << toString(entries.failure());
  EXPECT_EQ(entries->size(), parts.size());
  EXPECT_EQ(entries->back().name, "69999");
}

/// The hole between the archive's entries takes no room on the disk.
TEST_F(PackageTest, AZipEntryBeyond4GiBIsRead) {
  std::string bytes = "far", near = "near";
  std::vector<ZipPart> parts = {{"0", {bytesOfText(near)}}, {"a", {bytesOfText(bytes)}}};
  ZipImage image = zipImage(parts, 1, 0);
  const uint64_t start = uint64_t(5) << 30;
  std::string tail = image.headers.back();
  auto little = [](uint64_t value) {
    std::string text;
    for (int i = 0; i < 8; ++i)
      text += static_cast<char>(value >> 8 * i);
    return text;
  };
  // Of the second entry of the directory the place follows both sizes in the extra field, which the first has without a
  // place; the zip64 record has the place of the directory, and what follows that of the record.
  size_t directory = tail.find("PK\6\6"), far = image.headers[1].size() + bytes.size();
  tail.replace(46 + 1 + 20 + 46 + 1 + 4 + 16, 8, little(start));
  tail.replace(directory + 48, 8, little(start + far));
  tail.replace(directory + 56 + 8, 8, little(start + far + directory));
  std::string path = put("holes", image.headers[0] + near);
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(start));
  out << image.headers[1] << bytes << tail;
  out.close();
  Result<InputFile> file = InputFile::open(path);
  Result<std::vector<ZipEntry>> entries = readZip(*file, ".zip");
  ASSERT_TRUE(entries.ok()) << toString(entries.failure());
  EXPECT_EQ(entries->back().at, start);
  EXPECT_EQ(*file->part(entries->back().data, 3, "a")->text(), "far");
  // Damaged, it is no more than an error.
  tail.replace(directory + 56 + 8, 8, little(~0ull - 20));
  file = InputFile::open(put("damaged", image.headers[0] + near + image.headers[1] + bytes + tail));
  EXPECT_EQ(why(readZip(*file, ".zip")),
            "damaged: damaged: its zip64 record should begin at byte 18446744073709551595");
}

// ---- Packages -------------------------------------------------------------------------------------------------------

TEST_F(PackageTest, RoundTripsAsDirectoryAndFile) {
  State one("one", {"abc", std::string(100'000, 'x'), ""}), two("two", {"abc", "other"}), none("none", {});
  for (const char *name : {"model", "model/", "model.wg"}) {
    std::string path = at(name);
    for (const State *state : {&one, &two, &one, &none, &two}) {
      Status status = state->write(path);
      ASSERT_TRUE(status.ok()) << toString(status.failure());
      EXPECT_EQ(differs(path, *state), "");
      if (!path.ends_with(".wg")) {
        EXPECT_EQ(names(path), namesOf(*state));
      }
    }
    Result<Package> package = Package::open(path, kLongestManifest);
    EXPECT_EQ(package->path(), path);
    Result<InputFile> lacks = package->part("nothing");
    ASSERT_FALSE(lacks.ok());
    EXPECT_EQ(lacks.failure().kind, ErrorKind::lookup);
    EXPECT_EQ(lacks.failure().message, path + ": holds no part 'nothing'");
  }
  EXPECT_TRUE(get(at("model.wg")).substr(30).starts_with("manifest.json"));
  // Whatever its name is, a file is read as one.
  fs::rename(at("model.wg"), at("renamed"));
  EXPECT_EQ(differs(at("renamed"), two), "");
}

TEST_F(PackageTest, PartsOfAFileAreAligned) {
  State state("s", {"a", std::string(63, 'b'), std::string(64, 'c'), std::string(65, 'd')});
  ASSERT_TRUE(state.write(at("a.wg")).ok());
  std::string file = get(at("a.wg"));
  for (const auto &[name, bytes] : state.parts)
    if (bytes.size() > 1) {
      EXPECT_EQ(file.find(bytes) % 64, 0u);
    }
}

TEST_F(PackageTest, PartsThatAreThereAreNotWrittenAgainUnlessTheyAreDamaged) {
  State one("one", {"same", "first"}), two("two", {"same", "second"});
  std::string path = at("model"), same = path + "/" + one.parts[0].first;
  ASSERT_TRUE(one.write(path).ok());
  auto inode = [&] {
    struct stat status = {};
    ::stat(same.c_str(), &status);
    return status.st_ino;
  };
  ino_t before = inode();
  Result<InputFile> held = InputFile::open(same); // the number is not used again
  ASSERT_TRUE(two.write(path).ok());
  EXPECT_EQ(inode(), before);
  std::ofstream(same) << "emas";
  EXPECT_EQ(differs(path, two), one.parts[0].first + " has other bytes");
  EXPECT_EQ(why(Package::open(path, 100000)->verify(one.parts[0].first)),
            "model/" + one.parts[0].first + ": damaged: its bytes are not those of its name's digest");
  ASSERT_TRUE(two.write(path).ok());
  EXPECT_EQ(differs(path, two), "");
}

TEST_F(PackageTest, AReaderKeepsWhatItOpened) {
  State one("one", {"abc"}), two("two", {"def"});
  for (const char *name : {"model", "model.wg"}) {
    ASSERT_TRUE(one.write(at(name)).ok());
    Result<Package> package = Package::open(at(name), kLongestManifest);
    ASSERT_TRUE(two.write(at(name)).ok());
    EXPECT_EQ(one.differs(*package), "");
  }
}

TEST_F(PackageTest, ADirectoryMayHaveMorePartsThanAProcessHasFiles) {
  std::vector<std::string> texts;
  for (int i = 0; i < 400; ++i)
    texts.push_back(std::to_string(i));
  State one("one", texts), two("two", {"def"});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few{300, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  ASSERT_TRUE(one.write(at("model")).ok());
  std::thread writer; // waits for who reads
  {
    Result<Package> package = Package::open(at("model"), kLongestManifest);
    ASSERT_TRUE(package.ok());
    writer = std::thread([&] { EXPECT_TRUE(two.write(at("model")).ok()); });
    EXPECT_EQ(one.differs(*package), "");
  }
  writer.join();
  EXPECT_EQ(differs(at("model"), two), "");
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(PackageTest, OtherFilesAreLeftAlone) {
  State one("one", {"abc"}), two("two", {"def"});
  fs::create_directory(at("theirs"));
  put("theirs/notes.txt", "notes");
  EXPECT_EQ(why(one.write(at("theirs"))),
            "theirs: is not a saved computation: it holds 'notes.txt' and no manifest.json");
  EXPECT_EQ(names(at("theirs")), std::vector<std::string>{"notes.txt"});
  EXPECT_EQ(why(one.write(put("file", "text"))),
            "file: is a file, and a package is a directory or a file whose name ends in .wg");
  EXPECT_EQ(get(at("file")), "text");
  EXPECT_EQ(why(one.write(at("none/model"))), "none/model: cannot make the directory: No such file or directory");

  ASSERT_TRUE(one.write(at("model")).ok());
  put("model/notes.txt", "notes");
  ASSERT_TRUE(two.write(at("model")).ok());
  EXPECT_EQ(differs(at("model"), two), "");
  EXPECT_EQ(get(at("model/notes.txt")), "notes");

  // What a first save has left that was killed.
  fs::create_directory(at("begun"));
  put("begun/" + one.parts[0].first, "ab");
  put("begun/.manifest.json.wengert-0123456789abcdef.tmp", "o");
  ASSERT_TRUE(two.write(at("begun")).ok());
  EXPECT_EQ(names(at("begun")), namesOf(two));
}

TEST_F(PackageTest, LinksAreNotFollowed) {
  State one("one", {"abc"});
  ASSERT_TRUE(one.write(at("model")).ok());
  std::string part = at("model/" + one.parts[0].first), outside = put("outside", "abc");
  fs::remove(part);
  fs::create_symlink(outside, part);
  std::string wrong = "model/" + one.parts[0].first + ": is a symbolic link, which is not followed here";
  EXPECT_EQ(why(Package::open(at("model"), kLongestManifest)), wrong);
  EXPECT_EQ(why(one.write(at("model"))), wrong);
  EXPECT_EQ(get(outside), "abc");
  for (const char *name : {"../outside", "..", "/etc/passwd", "a/b"})
    EXPECT_EQ(Directory::open(at("model"))->file(name).failure().message,
              at("model/") + name + ": is not the name of a file in the directory");
}

TEST_F(PackageTest, NamesOfAnotherFormAreRefused) {
  std::string digest = digestOf(""), good = "a-" + digest;
  auto written = [&](const std::vector<std::string> &names) {
    std::vector<PackagePart> parts;
    for (const std::string &name : names)
      parts.push_back({name, {}});
    return why(writePackage(at("model"), parts, ""));
  };
  EXPECT_EQ(written({good + ".bin", "a.b-c_D-" + digest + ".x.y"}), "no failure");
  EXPECT_EQ(written({good, good}), "model: part '" + good + "' is there twice");
  for (const std::string &name :
       {"a"s, digest, "-" + digest, "../" + good, "x/" + good, ".x-" + digest, good + "0", good + ".", good + ".ü",
        "a-" + std::string(64, 'A'), std::string(200, 'x') + good, ""s})
    EXPECT_EQ(written({name}), "model: part '" + name + "' is not named KIND-DIGEST.EXTENSION");
}

TEST_F(PackageTest, SaysWhatIsNoPackage) {
  auto read = [&](const std::string &bytes) { return why(Package::open(put("a.wg", bytes), 100)); };
  auto zip = [](const std::vector<std::pair<std::string, std::string>> &entries) {
    std::vector<ZipPart> parts;
    for (const auto &[name, bytes] : entries)
      parts.push_back({name, {bytesOfText(bytes)}});
    std::string file;
    for (std::span<const std::byte> piece : zipImage(parts).pieces)
      file.append(reinterpret_cast<const char *>(piece.data()), piece.size());
    return file;
  };
  EXPECT_EQ(why(Package::open(at("none"), 100)), "none: cannot open: No such file or directory");
  EXPECT_EQ(why(Package::open(at("none.wg"), 100)), "none.wg: cannot open: No such file or directory");
  fs::create_directory(at("empty"));
  EXPECT_EQ(why(Package::open(at("empty"), 100)), "empty: is not a saved computation: it has no manifest.json");
  EXPECT_EQ(read("short"), "a.wg: is not a .wg file: it has 5 bytes");
  EXPECT_EQ(read(zip({})), "a.wg: is not a saved computation: manifest.json is not its first entry");
  EXPECT_EQ(read(zip({{"a", "x"}, {"manifest.json", ""}})),
            "a.wg: is not a saved computation: manifest.json is not its first entry");
  EXPECT_EQ(read(zip({{"manifest.json", std::string(101, 'x')}})),
            "a.wg: entry 'manifest.json': has 101 bytes; 100 are the most");
  std::string damaged = zip({{"manifest.json", "text"}});
  damaged.replace(damaged.find("text"), 4, "tent");
  EXPECT_EQ(read(damaged), "a.wg: entry 'manifest.json': damaged: its checksum is not the directory's");
  put("empty/manifest.json", std::string(101, 'x'));
  EXPECT_EQ(why(Package::open(at("empty"), 100)),
            "empty/manifest.json: is larger than 100 bytes, the most that is read");
}

TEST_F(PackageTest, AWriteThatFailsLeavesTheOldState) {
  State one("one", {"abc", std::string(2000, 'x')}), two("two", {"def", std::string(9000, 'y')}),
      third("third" + std::string(9000, ' '), {"ghi"});
  rlimit before;
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = {5000, before.rlim_max};
  for (const char *name : {"model", "model.wg"}) {
    std::string path = at(name);
    for (const State *failing : {&two, &third}) {
      ::setrlimit(RLIMIT_FSIZE, &small);
      Status fresh = failing->write(path);
      ::setrlimit(RLIMIT_FSIZE, &before);
      EXPECT_NE(why(fresh).find("cannot write: File too large"), std::string::npos) << why(fresh);
      EXPECT_FALSE(fs::exists(path));
      ASSERT_TRUE(one.write(path).ok());
      ::setrlimit(RLIMIT_FSIZE, &small);
      Status over = failing->write(path);
      ::setrlimit(RLIMIT_FSIZE, &before);
      EXPECT_FALSE(over.ok());
      EXPECT_EQ(differs(path, one), "");
      if (fs::is_directory(path)) {
        EXPECT_EQ(names(path), namesOf(one));
      }
      fs::remove_all(path);
    }
  }
  EXPECT_EQ(names(directory_).size(), 0u);
}

TEST_F(PackageTest, AKilledWriterOfADirectoryLeavesAWholeState) {
  killPackage(at("model"), [&] {
    Result<Package> package = Package::open(at("model"), kLongestManifest);
    return names(at("model")).size() - 1 -
           static_cast<size_t>(std::count(package->manifest().begin(), package->manifest().end(), '\n') - 1);
  });
}

TEST_F(PackageTest, AKilledWriterOfAFileLeavesAWholeState) {
  killPackage(at("model.wg"), [&] { return names(directory_).size() - 1; });
}

TEST_F(PackageTest, AKilledWriterOfShardsLeavesWholeWeights) {
  NamedArrays states[2];
  for (int state = 0; state < 2; ++state)
    for (const char *name : {"a", "b", "c"})
      states[state].arrays.emplace_back(
          name,
          Array::copyOf(std::span<const float>(std::vector<float>(9000, 1.0f + static_cast<float>(state))), {9000}));
  std::string path = at("m.safetensors");
  auto differs = [&](size_t state) -> std::string {
    Result<StoredTensors> stored = StoredTensors::open(path);
    if (!stored.ok())
      return toString(stored.failure());
    if (stored->tensors().size() != 3)
      return "other tensors";
    for (const StoredTensor &tensor : stored->tensors()) {
      Result<Array> array = stored->read(tensor);
      if (!array.ok() || array->data<float>()[8999] != 1.0f + static_cast<float>(state))
        return tensor.name + " has other values";
    }
    return {};
  };
  // Shards, other shards of the same number, and one file are not mixed.
  for (uint64_t most : {40'000, 75'000}) {
    kill([&](size_t state) { return writeShards(path, states[state], state == 0 ? 40'000 : most).ok(); }, differs,
         [&] {
           Result<StoredTensors> stored = StoredTensors::open(path);
           std::set<size_t> shards;
           for (const StoredTensor &tensor : stored->tensors())
             shards.insert(tensor.file);
           return names(directory_).size() - 1 - shards.size();
         },
         50);
    fs::remove_all(directory_);
    fs::create_directory(directory_);
  }
}

TEST_F(PackageTest, WritersAndReadersOfOneDirectory) {
  State states[] = {{"one", {std::string(20'000, 'a'), "shared"}}, {"two", {std::string(30'000, 'b'), "shared"}}};
  std::string path = at("model");
  ASSERT_TRUE(states[0].write(path).ok());
  std::vector<pid_t> writers;
  for (const State &state : states) {
    writers.push_back(::fork());
    if (writers.back() == 0) {
      for (int times = 0; times < 60; ++times)
        if (!state.write(path).ok())
          ::_exit(1);
      ::_exit(0);
    }
  }
  for (size_t live = writers.size(); live > 0;) {
    Result<Package> package = Package::open(path, kLongestManifest);
    ASSERT_TRUE(package.ok()) << toString(package.failure());
    EXPECT_TRUE(states[0].differs(*package).empty() || states[1].differs(*package).empty());
    int outcome = 0;
    if (::waitpid(-1, &outcome, WNOHANG) > 0) {
      EXPECT_TRUE(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0) << "a writer failed";
      --live;
    }
  }
  EXPECT_EQ(names(path).size(), 3u);
}

} // namespace
} // namespace wg::runtime
