// Damaged files: whatever a reader of .npy, .npz, IDX, safetensors or packages meets, the outcome is a value that the
// file holds, or a Failure; and the memory that it asks for is bounded by the file's size. Each seed makes a valid file
// and damages it as somebody would who knows the format.
//
// WENGERT_FUZZ_FILES=N runs N seeds of each format instead of the usual number, WENGERT_FUZZ_SEED=S begins at seed S.
#include "runtime/io/Idx.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"
#include "runtime/io/Package.h"
#include "runtime/io/Shards.h"
#include "runtime/io/Zip.h"
#include "tests/Deflate.h"
#include "tests/fuzz/Mutate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

// ---- What a reader asks for -----------------------------------------------------------------------------------------
// All that operator new gives, and buffers that are kept: what is freed in between counts too, so
// the bound is on the work as well.
static std::atomic<size_t> asked = 0;

static void *counted(size_t bytes, size_t alignment) {
  asked.fetch_add(bytes, std::memory_order_relaxed);
  void *memory = nullptr;
  if (::posix_memalign(&memory, std::max(alignment, sizeof(void *)), bytes) != 0)
    throw std::bad_alloc();
  return memory;
}
void *operator new(size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void *operator new[](size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void *operator new(size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<size_t>(alignment)); }
void *operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t &) noexcept {
  try {
    return counted(bytes, static_cast<size_t>(alignment));
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
void operator delete(void *memory) noexcept { ::free(memory); }
void operator delete[](void *memory) noexcept { ::free(memory); }
void operator delete(void *memory, size_t) noexcept { ::free(memory); }
void operator delete[](void *memory, size_t) noexcept { ::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { ::free(memory); }
void operator delete(void *memory, size_t, std::align_val_t) noexcept { ::free(memory); }
void operator delete(void *memory, std::align_val_t, const std::nothrow_t &) noexcept { ::free(memory); }

namespace wg::runtime {
namespace {

using namespace std::string_literals;
using tests::deflated;
using tests::Dice;

uint64_t fromEnvironment(const char *name, uint64_t usual) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

/// A file in memory, which readers open by a path.
class MemoryFile {
public:
  MemoryFile()
      : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(descriptor_)) {}
  MemoryFile(const MemoryFile &) = delete;
  ~MemoryFile() { ::close(descriptor_); }
  const std::string &path() const { return path_; }
  void put(const std::string &bytes) {
    ASSERT_EQ(::ftruncate(descriptor_, static_cast<off_t>(bytes.size())), 0);
    ASSERT_EQ(::pwrite(descriptor_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

private:
  int descriptor_;
  std::string path_;
};

// ---- Valid files ----------------------------------------------------------------------------------------------------

std::string integer(uint64_t value, size_t bytes, bool bigEndian) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> 8 * (bigEndian ? bytes - 1 - i : i));
  return text;
}

Shape randomShape(Dice &dice, size_t most = 5) {
  Shape shape;
  for (size_t rank = dice.below(5); shape.size() < rank;)
    shape.push_back(static_cast<int64_t>(dice.oneIn(12) ? 0 : 1 + dice.below(most)));
  return shape;
}

std::string randomBytes(Dice &dice, size_t count) {
  std::string bytes(count, '\0');
  for (char &byte : bytes)
    byte = static_cast<char>(dice.next());
  return bytes;
}

/// What the mutations need to know of a file.
struct Sample {
  std::string bytes;
  size_t text = 0, textSize = 0;     ///< where the header's text is, if it has one
  size_t length = 0, lengthSize = 0; ///< where the length of that text is, little-endian
  std::vector<size_t> fields = {};   ///< places of binary numbers
};

Sample npySample(Dice &dice) {
  static const char *const codes[] = {"<f8", "<f4", "<f2", "<i8", "<i4", "|u1", "|b1", ">f8", ">i4", ">f2", "=f4"};
  std::string code = dice.pick(codes);
  Shape shape = randomShape(dice);
  bool fortran = dice.oneIn(3);
  std::string header = "{'descr': '" + code + "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + toString(shape) + ", }";
  size_t version = 1 + dice.below(3), lengthSize = version == 1 ? 2 : 4;
  header.append(dice.below(70), ' ');
  header += '\n';
  Sample sample{"\x93NUMPY"s + static_cast<char>(version) + '\0' + integer(header.size(), lengthSize, false) + header,
                8 + lengthSize,
                header.size(),
                8,
                lengthSize,
                {6, 7, 8}};
  sample.bytes += randomBytes(dice, static_cast<size_t>(shape.numElements()) * static_cast<size_t>(code[2] - '0'));
  return sample;
}

Sample idxSample(Dice &dice) {
  struct Type {
    int code;
    size_t bytes;
  };
  static constexpr Type types[] = {{0x08, 1}, {0x09, 1}, {0x0B, 2}, {0x0C, 4}, {0x0D, 4}, {0x0E, 8}};
  Type type = dice.pick(types);
  Shape shape = randomShape(dice, 9);
  Sample sample{"\0\0"s + static_cast<char>(type.code) + static_cast<char>(shape.size())};
  sample.fields = {0, 2, 3};
  for (int64_t size : shape) {
    sample.fields.push_back(sample.bytes.size());
    sample.bytes += integer(static_cast<uint64_t>(size), 4, true);
  }
  sample.bytes += randomBytes(dice, static_cast<size_t>(shape.numElements()) * type.bytes);
  return sample;
}

Sample safetensorsSample(Dice &dice) {
  static const char *const names[] = {
      "a", "dense.weight", "\\u00fc\\n", "layer/0/b",
      "",  "\xc3\xbc",     "\\\"",       "very long name of a tensor that needs the heap"};
  struct Type {
    const char *name;
    size_t bytes;
  };
  static constexpr Type types[] = {{"F64", 8}, {"F32", 4}, {"BF16", 2}, {"F16", 2}, {"I64", 8},
                                   {"I32", 4}, {"U8", 1},  {"BOOL", 1}, {"I8", 1},  {"F8_E4M3", 1}};
  std::string header = "{";
  if (dice.oneIn(3))
    header += R"("__metadata__":{"format":"pt","step":"12"},)";
  size_t at = 0, tensors = dice.below(6);
  for (size_t i = 0; i < tensors; ++i) {
    Type type = dice.pick(types);
    Shape shape = randomShape(dice);
    size_t bytes = static_cast<size_t>(shape.numElements()) * type.bytes;
    std::string sizes;
    for (int64_t size : shape)
      sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    header += "\"" + std::string(dice.pick(names)) + std::to_string(i) + R"(":{"dtype":")" + type.name +
              R"(","shape":[)" + sizes + R"(],"data_offsets":[)" + std::to_string(at) + "," +
              std::to_string(at + bytes) + "]},";
    at += bytes;
  }
  header.back() == ',' ? void(header.back() = '}') : void(header += '}');
  header.append(dice.below(9), ' ');
  Sample sample{integer(header.size(), 8, false) + header, 8, header.size(), 0, 8, {0, 3, 7}};
  sample.bytes += randomBytes(dice, at);
  return sample;
}

// ---- Damage ---------------------------------------------------------------------------------------------------------

/// Numbers where sizes overflow, wrap or change sign.
constexpr uint64_t kNumbers[] = {0,
                                 1,
                                 2,
                                 7,
                                 8,
                                 9,
                                 127,
                                 128,
                                 255,
                                 256,
                                 65535,
                                 65536,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 0x100000000,
                                 100'000'000,
                                 100'000'001,
                                 1ull << 40,
                                 1ull << 47,
                                 1ull << 61,
                                 1ull << 62,
                                 (1ull << 62) + 1,
                                 (1ull << 63) - 1,
                                 1ull << 63,
                                 (1ull << 63) + 1,
                                 ~0ull - 8,
                                 ~0ull};

void damageText(Sample &sample, Dice &dice) {
  static const char *const words[] = {"{",
                                      "}",
                                      "[",
                                      "]",
                                      "(",
                                      ")",
                                      ",",
                                      ":",
                                      "'",
                                      "\"",
                                      "\\",
                                      "\\u",
                                      "\\ud800",
                                      "\\u0000",
                                      "null",
                                      "true",
                                      "True",
                                      "-1",
                                      "-0",
                                      "1.5",
                                      "1e308",
                                      "1e400",
                                      "0x10",
                                      "99999999999999999999999",
                                      "'descr'",
                                      "'<V8'",
                                      "'|O'",
                                      "'>u8'",
                                      "\"dtype\"",
                                      "\"shape\"",
                                      "\"data_offsets\"",
                                      "\"__metadata__\"",
                                      "\"a0\"",
                                      "\xff",
                                      "\xed\xa0\x80",
                                      "\0"};
  std::string text = sample.bytes.substr(sample.text, sample.textSize);
  size_t at = text.empty() ? 0 : dice.below(text.size());
  switch (dice.below(7)) {
  case 0: { // another number
    size_t digit = text.find_first_of("0123456789", at),
           end = digit == std::string::npos ? digit : text.find_first_not_of("0123456789", digit);
    if (digit != std::string::npos)
      text.replace(digit, end == std::string::npos ? end : end - digit, std::to_string(dice.pick(kNumbers)));
    break;
  }
  case 1: text.insert(at, dice.pick(words)); break;
  case 2: text.replace(at, 1 + dice.below(4), dice.pick(words)); break;
  case 3: text.erase(at, 1 + dice.below(30)); break;
  case 4: { // a piece twice: keys, entries, sizes
    std::string piece = text.substr(at, 1 + dice.below(80));
    for (size_t times = dice.oneIn(10) ? 40 : 1; times-- > 0;)
      text.insert(dice.below(text.size() + 1), piece);
    break;
  }
  case 5: text.insert(at, std::string(1 + dice.below(dice.oneIn(20) ? 20000 : 12), "[{(\" 9"[dice.below(6)])); break;
  default: { // two pieces change places
    if (text.size() < 4)
      break;
    size_t half = text.size() / 2, first = dice.below(half), second = half + dice.below(half);
    std::swap_ranges(text.begin() + static_cast<std::ptrdiff_t>(first),
                     text.begin() + static_cast<std::ptrdiff_t>(first + std::min(half - first, text.size() - second)),
                     text.begin() + static_cast<std::ptrdiff_t>(second));
  }
  }
  sample.bytes.replace(sample.text, sample.textSize, text);
  sample.textSize = text.size();
  if (!dice.oneIn(8)) // the length tells of the new text, so that it is read
    sample.bytes.replace(sample.length, sample.lengthSize, integer(text.size(), sample.lengthSize, false));
}

void damageBytes(std::string &bytes, Dice &dice) {
  if (bytes.empty())
    return;
  size_t at = dice.below(bytes.size());
  switch (dice.below(7)) {
  case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << dice.below(8)); break;
  case 1: bytes[at] = static_cast<char>(dice.pick(kNumbers)); break;
  case 2: bytes.resize(at); break;
  case 3: bytes += randomBytes(dice, 1 + dice.below(40)); break;
  case 4: bytes.erase(at, 1 + dice.below(16)); break;
  case 5: bytes.insert(at, bytes.substr(dice.below(bytes.size()), 1 + dice.below(40))); break;
  default:
    bytes.replace(at, std::min<size_t>(8, bytes.size() - at),
                  integer(dice.pick(kNumbers), 8, dice.oneIn(2)).substr(0, bytes.size() - at));
    break;
  }
}

void damage(Sample &sample, Dice &dice) {
  for (size_t times = dice.below(4); times-- > 0;) {
    size_t kind = dice.below(10);
    if (kind < 6 && sample.textSize > 0) {
      damageText(sample, dice);
    } else if (kind < 8 && !sample.fields.empty()) {
      size_t at = sample.fields[dice.below(sample.fields.size())], size = size_t(1) << dice.below(4);
      if (at + size <= sample.bytes.size())
        sample.bytes.replace(at, size, integer(dice.pick(kNumbers), size, dice.oneIn(2)));
    } else {
      damageBytes(sample.bytes, dice);
      break; // places may have moved
    }
  }
}

/// As gzip writes it, in one member or two.
std::string packed(const std::string &bytes, Dice &dice) {
  std::string all;
  size_t cut = dice.oneIn(4) && !bytes.empty() ? dice.below(bytes.size()) : bytes.size();
  for (std::string_view part : {std::string_view(bytes).substr(0, cut), std::string_view(bytes).substr(cut)}) {
    if (part.empty() && !all.empty())
      continue;
    int level = static_cast<int>(dice.below(10));
    all += deflated(part, level, 16 + 9 + static_cast<int>(dice.below(7)), 1);
  }
  return all;
}

// ---- What holds -----------------------------------------------------------------------------------------------------

class FuzzFiles : public testing::Test {
protected:
  /// `check(dice, counts)` for each seed, until one fails; and neither outcome may be rare.
  void forSeeds(const std::function<bool(Dice &)> &reads) {
    uint64_t first = fromEnvironment("WENGERT_FUZZ_SEED", 1), count = fromEnvironment("WENGERT_FUZZ_FILES", 8000),
             values = 0;
    for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Dice dice(seed);
      values += reads(dice);
    }
    if (count >= 1000 && !HasFailure()) {
      EXPECT_GT(values, count / 10) << "hardly a file is read: the mutations are too coarse";
      EXPECT_GT(count - values, count / 10) << "hardly a file is refused";
    }
  }

  /// Reads the file; checks the failure's form, and what was asked for: at most `times` the file's bytes and 96 KiB.
  template <class Read> auto read(const std::string &bytes, size_t times, Read &&reader) {
    file_.put(bytes);
    size_t live = Buffer::liveBytes(), before = asked;
    auto result = reader(file_.path());
    size_t grown = asked - before + (Buffer::liveBytes() - live);
    EXPECT_LE(grown, times * bytes.size() + (size_t(96) << 10));
    if (!result.ok()) {
      EXPECT_EQ(Buffer::liveBytes(), live);
      EXPECT_EQ(result.failure().kind, ErrorKind::io) << toString(result.failure());
      EXPECT_TRUE(result.failure().message.starts_with(file_.path() + ": ")) << toString(result.failure());
    }
    if (HasFailure())
      ADD_FAILURE() << "the file: " << testing::PrintToString(bytes);
    return result;
  }

  static bool equal(const Array &a, const Array &b) {
    return a.type == b.type && (a.numBytes() == 0 || std::memcmp(a.buffer.data(), b.buffer.data(), a.numBytes()) == 0);
  }

  MemoryFile file_;
};

TEST_F(FuzzFiles, NpyIsAValueOrAFailure) {
  std::string copy = testing::TempDir() + "wengert-fuzz-" + std::to_string(::getpid()) + ".npy";
  uint64_t read = 0;
  forSeeds([&](Dice &dice) {
    Sample sample = npySample(dice);
    damage(sample, dice);
    Result<Array> array = this->read(sample.bytes, 8, [](const std::string &path) { return readNpy(path); });
    if (!array.ok())
      return false;
    EXPECT_LE(array->numBytes(), sample.bytes.size());
    if (++read % 64 == 0) { // what is written of it reads back
      EXPECT_TRUE(writeNpy(copy, *array).ok());
      Result<Array> again = readNpy(copy);
      EXPECT_TRUE(again.ok() && equal(*again, *array));
    }
    return true;
  });
  ::unlink(copy.c_str());
}

TEST_F(FuzzFiles, IdxIsAValueOrAFailure) {
  forSeeds([&](Dice &dice) {
    Sample sample = idxSample(dice);
    damage(sample, dice);
    Result<Array> array = read(sample.bytes, 8, readIdx);
    // Numbers of one and two bytes become four.
    EXPECT_LE(array.ok() ? array->numBytes() : 0, 4 * sample.bytes.size());
    return array.ok();
  });
}

TEST_F(FuzzFiles, CompressedIdxIsAValueOrAFailure) {
  forSeeds([&](Dice &dice) {
    Sample sample = idxSample(dice);
    if (dice.oneIn(2))
      damage(sample, dice);
    std::string bytes = packed(sample.bytes, dice);
    for (size_t times = dice.oneIn(2) ? dice.below(3) : 0; times-- > 0;)
      damageBytes(bytes, dice);
    // Deflate packs 1,032 bytes into one at most.
    return read(bytes, 8 * 1032, readIdx).ok();
  });
}

/// A zip archive of entries that may be damaged themselves, packed or not, in this order in the file
/// and in another in its directory.
Sample npzSample(Dice &dice, const std::function<void(Sample &)> &damageEntry) {
  static const char *const names[] = {"a.npy", "layer/0/w.npy", "\xc3\xbc.npy",
                                      ".npy",  "b.npy",         "very long name of an array that needs the heap.npy"};
  Sample sample;
  std::vector<std::string> directory;
  std::vector<size_t> fields; // in a directory's entry
  size_t count = dice.below(5);
  for (size_t i = 0; i < count; ++i) {
    Sample entry = npySample(dice);
    damageEntry(entry);
    bool packed = dice.oneIn(2), zip64 = dice.oneIn(4);
    std::string name = dice.oneIn(20) ? "a.npy" : std::to_string(i) + dice.pick(names);
    std::string bytes = packed ? deflated(entry.bytes, static_cast<int>(dice.below(10)), -15, 1) : entry.bytes;
    uint64_t checksum =
        ::crc32(0, reinterpret_cast<const Bytef *>(entry.bytes.data()), static_cast<uInt>(entry.bytes.size()));
    std::string start = integer(20, 2, false) + integer(dice.oneIn(4) ? 1 << 11 : 0, 2, false) +
                        integer(packed ? 8 : 0, 2, false) + integer(0x210000, 4, false) + integer(checksum, 4, false);
    std::string extra = zip64 ? integer(1, 2, false) + integer(16, 2, false) + integer(entry.bytes.size(), 8, false) +
                                    integer(bytes.size(), 8, false)
                              : "";
    directory.push_back("PK\1\2" + integer(20, 2, false) + start + integer(bytes.size(), 4, false) +
                        integer(entry.bytes.size(), 4, false) + integer(name.size(), 2, false) + std::string(12, '\0') +
                        integer(sample.bytes.size(), 4, false) + name);
    for (size_t at : {0, 6, 8, 14, 18, 22, 26, 28})
      sample.fields.push_back(sample.bytes.size() + at);
    sample.bytes += "PK\3\4" + start + integer(zip64 ? 0xffffffff : bytes.size(), 4, false) +
                    integer(zip64 ? 0xffffffff : entry.bytes.size(), 4, false) + integer(name.size(), 2, false) +
                    integer(extra.size(), 2, false) + name + extra + bytes;
    if (dice.oneIn(6))
      sample.bytes += randomBytes(dice, dice.below(20)); // what an archive may have between entries
  }
  if (directory.size() > 1 && dice.oneIn(3))
    std::swap(directory.front(), directory.back());
  size_t begin = sample.bytes.size();
  for (const std::string &entry : directory) {
    for (size_t at : {0, 8, 10, 16, 20, 24, 28, 30, 32, 42, 42, 46})
      sample.fields.push_back(sample.bytes.size() + at);
    sample.bytes += entry;
  }
  size_t end = sample.bytes.size(), comment = dice.oneIn(4) ? dice.below(30) : 0;
  for (size_t at : {0, 4, 8, 10, 12, 16, 16, 20})
    sample.fields.push_back(end + at);
  sample.bytes += "PK\5\6"s + std::string(4, '\0') + integer(count, 2, false) + integer(count, 2, false) +
                  integer(end - begin, 4, false) + integer(begin, 4, false) + integer(comment, 2, false) +
                  randomBytes(dice, comment);
  return sample;
}

TEST_F(FuzzFiles, NpzIsAValueOrAFailure) {
  std::string copy = testing::TempDir() + "wengert-fuzz-" + std::to_string(::getpid()) + ".npz";
  uint64_t read = 0;
  forSeeds([&](Dice &dice) {
    Sample sample = npzSample(dice, [&](Sample &entry) {
      if (dice.oneIn(4))
        damage(entry, dice); // its checksum is right all the same
    });
    if (dice.oneIn(2))
      damage(sample, dice);
    // Deflate packs 1,032 bytes into one at most.
    auto arrays = this->read(sample.bytes, 8 * 1032, [](const std::string &path) { return readNpz(path); });
    if (!arrays.ok())
      return false;
    if (++read % 64 == 0) {
      EXPECT_TRUE(writeNpz(copy, *arrays).ok());
      auto again = readNpz(copy);
      EXPECT_TRUE(again.ok() && std::equal(again->begin(), again->end(), arrays->begin(), arrays->end(),
                                           [](const auto &a, const auto &b) {
                                             return a.first == b.first && equal(a.second, b.second);
                                           }));
    }
    return true;
  });
  ::unlink(copy.c_str());
}

/// A package in one file, with zip64 records or without.
Sample packageSample(Dice &dice) {
  std::vector<std::string> contents;
  std::vector<ZipPart> parts;
  for (size_t count = 1 + dice.below(4); contents.size() < count;)
    contents.push_back(randomBytes(dice, dice.below(90)));
  for (size_t i = 0; i < contents.size(); ++i)
    parts.push_back({i == 0 ? "manifest.json" : "part-" + std::string(63, 'a') + std::to_string(i) + ".bin",
                     {std::as_bytes(std::span(contents[i]))}});
  uint64_t most = dice.oneIn(2) ? 0xfffffffe : dice.below(600);
  ZipImage image = zipImage(parts, dice.oneIn(4) ? 1 : 64, most);
  Sample sample;
  for (std::span<const std::byte> piece : image.pieces) {
    if (sample.bytes.size() < 1000)
      for (size_t at : {0, 6, 8, 14, 18, 22, 26, 28, 43, 45})
        sample.fields.push_back(sample.bytes.size() + at);
    sample.bytes.append(reinterpret_cast<const char *>(piece.data()), piece.size());
  }
  for (std::string_view mark : {"PK\1\2", "PK\6\6", "PK\6\7", "PK\5\6"})
    for (size_t found = 0; (found = sample.bytes.find(mark, found)) != std::string::npos; found += mark.size())
      for (size_t at : {0, 4, 8, 10, 12, 16, 20, 24, 28, 32, 40, 42, 48, 59, 63})
        sample.fields.push_back(found + at);
  return sample;
}

TEST_F(FuzzFiles, PackagesAreAValueOrAFailure) {
  forSeeds([&](Dice &dice) {
    Sample sample = packageSample(dice);
    damage(sample, dice);
    Result<Package> package =
        this->read(sample.bytes, 32, [](const std::string &path) { return Package::open(path, 1000); });
    if (!package.ok())
      return false;
    EXPECT_LE(package->manifest().size(), sample.bytes.size());
    std::string name = "part-" + std::string(63, 'a') + "1.bin";
    if (Result<InputFile> part = package->part(name); part.ok()) {
      Result<std::string> text = part->text();
      EXPECT_TRUE(text.ok() && text->size() <= sample.bytes.size());
      EXPECT_FALSE(package->verify(name).ok()) << "nothing has this digest";
    }
    return true;
  });
}

/// The index of two shards, which are whole.
TEST_F(FuzzFiles, IndicesOfShardsAreAValueOrAFailure) {
  std::string directory = testing::TempDir() + "wengert-fuzz-" + std::to_string(::getpid()) + ".shards";
  Array x = Array::scalar(1.0f);
  ASSERT_TRUE(makeDirectory(directory).ok());
  ASSERT_TRUE(writeSafetensors(directory + "/a.safetensors", NamedArrays{{{"a0", x}, {"b", x}}, {}, {}}).ok());
  ASSERT_TRUE(writeSafetensors(directory + "/b.safetensors", NamedArrays{{{"c", x}}, {}, {}}).ok());
  std::string index = directory + "/m.index.json";
  forSeeds([&](Dice &dice) {
    Sample sample{R"({"metadata": {"total_size": 12}, "weight_map": {"a0": "a.safetensors", "b": "a.safetensors", )"
                  R"("c": "b.safetensors"}})"};
    sample.textSize = sample.bytes.size();
    for (size_t times = dice.below(4); times-- > 0;)
      damageText(sample, dice);
    if (dice.oneIn(8))
      damageBytes(sample.bytes, dice);
    if (FILE *file = std::fopen(index.c_str(), "wb")) {
      std::fwrite(sample.bytes.data(), 1, sample.bytes.size(), file);
      std::fclose(file);
    }
    Result<StoredTensors> stored = StoredTensors::open(index);
    if (!stored.ok()) {
      EXPECT_EQ(stored.failure().kind, ErrorKind::io);
      EXPECT_TRUE(stored.failure().message.starts_with(directory + "/")) << stored.failure().message;
      return false;
    }
    for (const StoredTensor &tensor : stored->tensors())
      EXPECT_TRUE(stored->read(tensor).ok());
    return true;
  });
  for (const char *name : {"/a.safetensors", "/b.safetensors", "/m.index.json"})
    ::unlink((directory + name).c_str());
  removeDirectory(directory);
}

TEST_F(FuzzFiles, SafetensorsAreAValueOrAFailure) {
  std::string copy = testing::TempDir() + "wengert-fuzz-" + std::to_string(::getpid()) + ".safetensors";
  uint64_t read = 0;
  forSeeds([&](Dice &dice) {
    Sample sample = safetensorsSample(dice);
    damage(sample, dice);
    Result<NamedArrays> contents =
        this->read(sample.bytes, 32, [](const std::string &path) { return readSafetensors(path); });
    if (!contents.ok())
      return false;
    size_t bytes = 0;
    for (const auto &[name, array] : contents->arrays)
      bytes += array.numBytes();
    EXPECT_LE(bytes, sample.bytes.size());
    if (++read % 64 == 0) {
      EXPECT_TRUE(writeSafetensors(copy, *contents).ok());
      Result<NamedArrays> again = readSafetensors(copy);
      EXPECT_TRUE(again.ok());
      if (!again.ok())
        return true;
      EXPECT_EQ(again->metadata, contents->metadata);
      auto byName = [](auto &list) {
        std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
      };
      byName(again->arrays), byName(contents->arrays);
      EXPECT_TRUE(
          std::equal(again->arrays.begin(), again->arrays.end(), contents->arrays.begin(), contents->arrays.end(),
                     [](const auto &a, const auto &b) { return a.first == b.first && equal(a.second, b.second); }));
    }
    return true;
  });
  ::unlink(copy.c_str());
}

} // namespace
} // namespace wg::runtime
