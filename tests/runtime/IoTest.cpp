// Readers and writers: what they accept, and that nothing but a Failure comes of a damaged file.
#include "runtime/io/Idx.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"
#include "runtime/io/Safetensors.h"
#include "tests/Deflate.h"
#include "tests/runtime/Run.h"

#include <filesystem>
#include <fstream>
#include <functional>

#include <zlib.h>

namespace wg::runtime {
namespace {

using namespace std::string_literals;

class IoTest : public testing::Test {
protected:
  IoTest() {
    std::string name = (std::filesystem::temp_directory_path() / "wengert-io-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~IoTest() override { std::filesystem::remove_all(directory_); }

  std::string put(const std::string &bytes, const std::string &name = "file") {
    std::string path = directory_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string get(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string gzip(const std::string &bytes) {
    std::string path = directory_ / "packed.gz";
    gzFile file = ::gzopen(path.c_str(), "wb");
    ::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    ::gzclose(file);
    return get(path);
  }
  /// The failure's message without the directory.
  template <class T> std::string why(Result<T> result) {
    if (result.ok())
      return "no failure";
    EXPECT_EQ(result.failure().kind, ErrorKind::io);
    std::string text = result.failure().message, prefix = directory_.string() + "/";
    EXPECT_TRUE(text.starts_with(prefix)) << text;
    return text.substr(std::min(text.size(), prefix.size()));
  }
  /// Every prefix of a file must fail, and so must the file with a byte more; every single-byte change may do either.
  void mutate(const std::string &bytes, const std::function<bool(const std::string &)> &reads) {
    EXPECT_TRUE(reads(put(bytes)));
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(reads(put(bytes.substr(0, size)))) << "cut at byte " << size;
    EXPECT_FALSE(reads(put(bytes + 'x')));
    for (size_t at = 0; at < bytes.size(); ++at)
      for (int flip : {0x01, 0x80, 0xff}) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        (void)reads(put(changed));
      }
  }

  std::filesystem::path directory_;
};

// ---- IDX ------------------------------------------------------------------------------------------------------------
const std::string kIdx = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03\1\2\3\4\5\6"s;

TEST_F(IoTest, IdxPlainAndCompressed) {
  for (const std::string &bytes : {kIdx, gzip(kIdx)}) {
    Result<Array> read = readIdx(put(bytes));
    ASSERT_TRUE(read.ok()) << toString(read.failure());
    EXPECT_EQ(toString(read->type), "u8[2,3]");
    EXPECT_EQ(values<uint8_t>(read), (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  }
  // Several members are one file, as gzip has it.
  EXPECT_EQ(values<uint8_t>(readIdx(put(gzip(kIdx.substr(0, 7)) + gzip("") + gzip(kIdx.substr(7))))),
            (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values<int32_t>(readIdx(put("\0\0\x0c\x01\0\0\0\x02\xff\xff\xff\xfe\0\0\1\0"s))),
            (std::vector<int32_t>{-2, 256}));
  EXPECT_EQ(values<int32_t>(readIdx(put("\0\0\x09\x01\0\0\0\x01\xff"s))), (std::vector<int32_t>{-1}));
  EXPECT_EQ(values<int32_t>(readIdx(put("\0\0\x0b\x01\0\0\0\x01\xff\xfe"s))), (std::vector<int32_t>{-2}));
  EXPECT_EQ(values<float>(readIdx(put("\0\0\x0d\x01\0\0\0\x01\x3f\x80\0\0"s))), (std::vector<float>{1}));
  EXPECT_EQ(values<double>(readIdx(put("\0\0\x0e\0\x3f\xf8\0\0\0\0\0\0"s))), (std::vector<double>{1.5}));
}

TEST_F(IoTest, IdxSaysWhatIsWrong) {
  EXPECT_EQ(why(readIdx(put(kIdx.substr(0, 15)))),
            "file: truncated: the header promises 6 bytes of elements, there are 3");
  EXPECT_EQ(why(readIdx(put(kIdx.substr(0, 9)))), "file: truncated: the header has 9 of 12 bytes");
  EXPECT_EQ(why(readIdx(put(kIdx + "x"))),
            "file: bytes are left over after the 6 bytes of elements that the header promises");
  EXPECT_EQ(why(readIdx(put("PK\3\4abc"))),
            "file: is not an IDX file: it does not start with two zero bytes, a type and a rank");
  EXPECT_EQ(why(readIdx(put("\0\0\x07\x01\0\0\0\x01\1"s))), "file: is not an IDX file: there is no element type 7");
  EXPECT_EQ(why(readIdx(put("\0\0\x08\x09"s))), "file: has rank 9; the highest is 8");
  EXPECT_EQ(why(readIdx(put("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s))),
            "file: the header's sizes (4294967295, 4294967295, 4294967295) are more than any file holds");
  EXPECT_EQ(why(readIdx(put("\0\0\x08\x02\0\0\0\xff\xff\xff\xff\xff\1\2"s))),
            "file: truncated: the header promises 1095216660225 bytes of elements, there are 2")
      << "and 1 TiB were not allocated";
  std::string packed = gzip(kIdx);
  EXPECT_EQ(why(readIdx(put(packed.substr(0, packed.size() - 6)))), "file: truncated: the gzip data ends early");
  EXPECT_EQ(why(readIdx(put(packed + "x"))), "file: truncated: the gzip data ends early");
  EXPECT_EQ(why(readIdx(put(packed + "something else"))).substr(0, 25), "file: damaged gzip data: ");
  packed[packed.size() - 6] ^= 1;
  EXPECT_EQ(why(readIdx(put(packed))).substr(0, 25), "file: damaged gzip data: ");
  EXPECT_EQ(why(readIdx(directory_ / "absent")), "absent: cannot open: No such file or directory");
  std::filesystem::create_directory(directory_ / "folder");
  EXPECT_EQ(why(readIdx(directory_ / "folder")), "folder: is not a regular file");
}

TEST_F(IoTest, IdxMutations) {
  auto reads = [](const std::string &path) { return readIdx(path).ok(); };
  mutate(kIdx, reads);
  std::string packed = gzip(kIdx);
  for (size_t size = 0; size < packed.size(); ++size)
    EXPECT_FALSE(reads(put(packed.substr(0, size)))) << "cut at byte " << size;
}

// ---- .npy -----------------------------------------------------------------------------------------------------------
std::string npy(std::string header, const std::string &data, char major = 1) {
  std::string bytes =
      "\x93NUMPY"s + major + '\0' + static_cast<char>(header.size() & 255) + static_cast<char>(header.size() >> 8);
  return bytes + (major > 1 ? "\0\0"s : ""s) + header + data;
}
const std::string kNpy = npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n",
                             "\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6\0\0\0"s);

TEST_F(IoTest, NpyRoundTripsEveryDtype) {
  std::vector<Array> arrays = {
      vec<double>({1.5, -0.0}),         vec<float>({1, 2, 3}),        arr<int64_t>({1, 2, 3, 4}, {2, 2}),
      Array::scalar<int32_t>(-7),       vec<uint8_t>({255}),          vec<bool>({true, false}),
      Array::zeros(DType::f32, {0, 3}), Array::zeros(DType::f16, {3})};
  for (const Array &array : arrays) {
    std::string path = directory_ / "a.npy";
    ASSERT_TRUE(writeNpy(path, array).ok());
    Result<Array> read = readNpy(path);
    ASSERT_TRUE(read.ok()) << toString(read.failure());
    EXPECT_EQ(read->type, array.type);
    EXPECT_EQ(std::memcmp(read->buffer.data(), array.buffer.data(), array.numBytes()), 0);
    EXPECT_EQ(get(path).size() % 64, array.numBytes() % 64) << "the elements start at a multiple of 64";
  }
  EXPECT_EQ(get(directory_ / "a.npy").substr(10, 57), "{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }");
  EXPECT_FALSE(writeNpy(directory_ / "a.npy", Array::zeros(DType::bf16, {3})).ok());
}

TEST_F(IoTest, NpyVersionsOrdersAndForms) {
  for (char version : {1, 2, 3})
    EXPECT_EQ(values<uint8_t>(readNpy(put(npy("{\"shape\":(2,),'fortran_order':True,'descr':'|u1'}", "ab", version)))),
              (std::vector<uint8_t>{'a', 'b'}));
  EXPECT_EQ(values<int32_t>(readNpy(put(kNpy))), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  std::string fortran = kNpy;
  fortran.replace(fortran.find("False"), 5, "True ");
  Result<Array> read = readNpy(put(fortran));
  ASSERT_TRUE(read.ok()) << toString(read.failure());
  EXPECT_EQ(toString(*read), "[[1, 3, 5], [2, 4, 6]]");
  EXPECT_EQ(values<int32_t>(readNpy(put(npy("{'descr': '>i4', 'fortran_order': False, 'shape': ()}", "\0\0\1\2"s)))),
            (std::vector<int32_t>{258}));
  Result<Array> truth = readNpy(put(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\0\1\x07"s)));
  ASSERT_TRUE(truth.ok());
  EXPECT_EQ(truth->data<uint8_t>()[2], 1) << "a bool is 0 or 1 whatever the file holds";
}

TEST_F(IoTest, NpySaysWhatIsWrong) {
  EXPECT_EQ(why(readNpy(put("short"))), "file: is not a .npy file: it has 5 bytes");
  EXPECT_EQ(why(readNpy(put(kNpy.substr(0, kNpy.size() - 1)))),
            "file: truncated: shape (2, 3) of i32 needs 24 bytes, there are 23");
  EXPECT_EQ(why(readNpy(put(kNpy + "x"))),
            "file: bytes are left over: shape (2, 3) of i32 needs 24 bytes, there are 25");
  EXPECT_EQ(why(readNpy(put(npy("{'descr': '<u4', 'fortran_order': False, 'shape': ()}", "")))),
            "file: has dtype '<u4'; f8, f4, f2, i8, i4, u1 and b1 are read");
  EXPECT_EQ(why(readNpy(put(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "")))),
            "file: the header is damaged: descr is not a string: structured dtypes are not read");
  EXPECT_EQ(why(readNpy(put(npy("{'descr': '<f4', 'shape': (1,)}", "")))),
            "file: the header is damaged: descr, fortran_order or shape is missing");
  EXPECT_EQ(why(readNpy(put(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "")))),
            "file: truncated: shape (4611686018427387904, 4) of f64 needs more than 2^56 bytes, there are 0");
  EXPECT_EQ(why(readNpy(put(npy("{'descr': '<f2', 'fortran_order': True, 'shape': (2305843009213693952, 2, 0)}", "")))),
            "file: truncated: shape (2305843009213693952, 2, 0) of f16 needs more than 2^56 bytes, there are 0");
  EXPECT_EQ(why(readNpy(put(npy("", "", 9)))), "file: has version 9.0; 1.0, 2.0 and 3.0 are read");
}

TEST_F(IoTest, NpyMutations) {
  mutate(kNpy, [](const std::string &path) { return readNpy(path).ok(); });
}

// ---- .npz -----------------------------------------------------------------------------------------------------------
std::string little(uint64_t value, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i)
    text += i < 8 ? static_cast<char>(value >> 8 * i) : char(0);
  return text;
}

/// An entry of a zip archive; what is 0 here follows from the bytes.
struct Zipped {
  std::string name, bytes;
  int method = 0, flags = 0;
  uint64_t size = 0, packed = 0, at = 0;
  uint32_t checksum = 0;
  std::string localName = {};
  bool zip64 = false; ///< its own header has the sizes in an extra field, as NumPy writes it
};
std::string zipped(const std::vector<Zipped> &entries, const std::string &comment = "") {
  std::string file, directory;
  for (const Zipped &entry : entries) {
    std::string bytes = entry.method == 8 ? tests::deflated(entry.bytes, 9, -MAX_WBITS) : entry.bytes,
                name = entry.localName.empty() ? entry.name : entry.localName;
    uint64_t size = entry.size ? entry.size : entry.bytes.size(), packed = entry.packed ? entry.packed : bytes.size(),
             at = entry.at ? entry.at : file.size();
    uint64_t sum = entry.checksum ? entry.checksum
                                  : ::crc32(0, reinterpret_cast<const Bytef *>(entry.bytes.data()),
                                            static_cast<uInt>(entry.bytes.size()));
    std::string start = little(20, 2) + little(static_cast<uint64_t>(entry.flags), 2) +
                        little(static_cast<uint64_t>(entry.method), 2) + little(0, 4) + little(sum, 4);
    std::string extra = entry.zip64 ? little(1, 2) + little(16, 2) + little(size, 8) + little(packed, 8) : "";
    file += "PK\3\4" + start + little(entry.zip64 ? 0xffffffff : packed, 4) +
            little(entry.zip64 ? 0xffffffff : size, 4) + little(name.size(), 2) + little(extra.size(), 2) + name +
            extra + bytes;
    directory += "PK\1\2" + little(20, 2) + start + little(packed, 4) + little(size, 4) + little(entry.name.size(), 2) +
                 little(0, 12) + little(at, 4) + entry.name;
  }
  return file + directory + "PK\5\6" + little(0, 4) + little(entries.size(), 2) + little(entries.size(), 2) +
         little(directory.size(), 4) + little(file.size(), 4) + little(comment.size(), 2) + comment;
}

TEST_F(IoTest, NpzRoundTripsEveryDtype) {
  std::vector<std::pair<std::string, Array>> arrays = {{"d", vec<double>({1.5, -0.0})},
                                                       {"f", arr<float>({1, 2, 3, 4}, {2, 2})},
                                                       {"h", Array::zeros(DType::f16, {3})},
                                                       {"l", Array::scalar<int64_t>(-7)},
                                                       {"i", vec<int32_t>({1})},
                                                       {"u", vec<uint8_t>({255})},
                                                       {"b", vec<bool>({true, false})},
                                                       {"", Array::zeros(DType::f32, {0, 3})},
                                                       {"\xc3\xbc/a.npy", vec<float>({1})}};
  std::string path = directory_ / "a.npz";
  ASSERT_TRUE(writeNpz(path, arrays).ok());
  auto read = readNpz(path);
  ASSERT_TRUE(read.ok()) << toString(read.failure());
  ASSERT_EQ(read->size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ((*read)[i].first, arrays[i].first);
    EXPECT_EQ((*read)[i].second.type, arrays[i].second.type);
    EXPECT_EQ(std::memcmp((*read)[i].second.buffer.data(), arrays[i].second.buffer.data(), arrays[i].second.numBytes()),
              0);
  }
  std::string before = get(path);
  EXPECT_FALSE(writeNpz(path, {{"x", vec<float>({1})}, {"half", Array::zeros(DType::bf16, {3})}}).ok());
  EXPECT_FALSE(writeNpz(path, {{"x", vec<float>({1})}, {"x", vec<float>({1})}}).ok());
  EXPECT_FALSE(writeNpz(path, {{"\xff", vec<float>({1})}}).ok());
  EXPECT_FALSE(writeNpz(path, {{"a\0b"s, vec<float>({1})}}).ok());
  EXPECT_FALSE(writeNpz(path, {{std::string(65001, 'a'), vec<float>({1})}}).ok());
  EXPECT_EQ(get(path), before);
}

TEST_F(IoTest, NpzOfOtherWriters) {
  std::string zeros = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (100000,)}", std::string(100000, '\0'));
  for (const std::string &comment : {""s, "made by hand"s, "PK\5\6"s, std::string(65535, 'c')}) {
    auto read = readNpz(put(zipped({{.name = "a.npy", .bytes = kNpy, .zip64 = true},
                                    {.name = "b.npy", .bytes = kNpy, .method = 8, .flags = 1 << 3},
                                    {.name = "c.npy", .bytes = zeros, .method = 8}},
                                   comment)));
    ASSERT_TRUE(read.ok()) << toString(read.failure());
    EXPECT_EQ((*read)[0].first, "a");
    EXPECT_EQ(toString((*read)[1].second), "[[1, 2, 3], [4, 5, 6]]");
    EXPECT_EQ((*read)[2].second.numElements(), 100000);
  }
  EXPECT_TRUE(readNpz(put(zipped({}))).ok());
}

TEST_F(IoTest, NpzSaysWhatIsWrong) {
  auto whyOf = [&](const std::vector<Zipped> &entries) { return why(readNpz(put(zipped(entries)))); };
  std::string good = kNpy;
  EXPECT_EQ(why(readNpz(put("short"))), "file: is not a .npz file: it has 5 bytes");
  EXPECT_EQ(why(readNpz(put(std::string(100, 'x')))),
            "file: is not a .npz file, or truncated: no zip directory is at its end");
  EXPECT_EQ(whyOf({{.name = "a.txt", .bytes = good}}), "file: entry 'a.txt': is not a .npy file");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = "text and more of it"}}),
            "file: entry 'a.npy': is not a .npy file: it does not start with \\x93NUMPY");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .flags = 1}}), "file: entry 'a.npy': is encrypted");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .method = 12}}),
            "file: entry 'a.npy': is packed by method 12; 0 (stored) and 8 (deflate) are read");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good}, {.name = "a.npy", .bytes = good}}),
            "file: the directory names 'a.npy' twice");
  EXPECT_EQ(whyOf({{.name = "a\xff.npy", .bytes = good}}), "file: entry 0 has a name that is not text in UTF-8");
  EXPECT_EQ(whyOf({{.name = "a\0b.npy"s, .bytes = good}}), "file: entry 0 has a name that is not text in UTF-8");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .localName = "b.npy"}}),
            "file: entry 'a.npy': its own header differs from the directory");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .checksum = 1}}),
            "file: entry 'a.npy': damaged: its checksum is not the directory's");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .method = 8, .checksum = 1}}),
            "file: entry 'a.npy': damaged: its checksum is not the directory's");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .size = 0xffffffff}}),
            "file: entry 'a.npy': damaged: its zip64 sizes are not in the directory");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .at = 0xffffffff}}),
            "file: entry 'a.npy': damaged: its zip64 sizes are not in the directory");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .size = 7}}),
            "file: entry 'a.npy': 7 bytes cannot be in " + std::to_string(good.size()));
  uint64_t packed = tests::deflated(good, 9, -MAX_WBITS).size();
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .method = 8, .size = packed * 1032 + 1}}),
            "file: entry 'a.npy': " + std::to_string(packed * 1032 + 1) + " bytes cannot be in " +
                std::to_string(packed));
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .method = 8, .size = good.size() + 4}}),
            "file: entry 'a.npy': bytes are left over: shape (2, 3) of i32 needs 24 bytes, there are 28");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .method = 8, .size = good.size() - 4}}),
            "file: entry 'a.npy': truncated: shape (2, 3) of i32 needs 24 bytes, there are 20");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good + "xxxx", .method = 8, .size = good.size()}}),
            "file: entry 'a.npy': unpacks to more bytes than the directory says");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .method = 8, .packed = packed - 3}}),
            "file: entry 'a.npy': truncated: the packed bytes end early");
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good}, {.name = "b.npy", .bytes = good, .at = 1}}),
            "file: entry 'b.npy': no entry begins at byte 1");
  // Two entries of the directory that share bytes: a small file must not become many arrays.
  EXPECT_EQ(whyOf({{.name = "a.npy", .bytes = good, .size = 2000, .packed = 2000}, {.name = "b.npy", .bytes = good}})
                .substr(0, 51),
            "file: entry 'a.npy': truncated: its 2000 bytes run ");
  std::string whole = zipped({{.name = "a.npy", .bytes = good}});
  whole[whole.size() - 22 + 4] = 1;
  EXPECT_EQ(why(readNpz(put(whole))), "file: is one part of a zip archive of several");
}

TEST_F(IoTest, NpzMutations) {
  mutate(zipped({{.name = "a.npy", .bytes = kNpy}, {.name = "b.npy", .bytes = kNpy, .method = 8}}),
         [](const std::string &path) { return readNpz(path).ok(); });
}

// ---- safetensors ----------------------------------------------------------------------------------------------------
std::string safetensors(const std::string &header, const std::string &data) {
  std::string size(8, '\0');
  for (int i = 0; i < 8; ++i)
    size[static_cast<size_t>(i)] = static_cast<char>(header.size() >> (8 * i));
  return size + header + data;
}
const std::string kTwo = safetensors(
    R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[],"data_offsets":[2,3]}})",
    "xyz");

TEST_F(IoTest, SafetensorsRoundTrip) {
  NamedArrays contents;
  contents.arrays = {{"flags", vec<bool>({true, false, true})},
                     {"dense/w", arr<float>({1, 2, 3, 4}, {2, 2})},
                     {"b", vec<double>({0.5})},
                     {"none", Array::zeros(DType::i64, {0})},
                     {"h", Array::zeros(DType::bf16, {2})}};
  contents.metadata = {{"step", "12"}, {"note", "\"quoted\" and ü"}};
  std::string path = directory_ / "weights.safetensors";
  ASSERT_TRUE(writeSafetensors(path, contents).ok());
  Result<NamedArrays> read = readSafetensors(path);
  ASSERT_TRUE(read.ok()) << toString(read.failure());
  EXPECT_EQ(read->metadata, contents.metadata);
  ASSERT_EQ(read->arrays.size(), contents.arrays.size());
  for (const auto &[name, array] : contents.arrays) {
    auto found =
        std::find_if(read->arrays.begin(), read->arrays.end(), [&](const auto &named) { return named.first == name; });
    ASSERT_NE(found, read->arrays.end()) << name;
    EXPECT_EQ(found->second.type, array.type);
    EXPECT_EQ(std::memcmp(found->second.buffer.data(), array.buffer.data(), array.numBytes()), 0);
  }
  size_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(directory_))
    files += entry.is_regular_file();
  EXPECT_EQ(files, 1u) << "no temporary file stays";
}

TEST_F(IoTest, FailedWriteLeavesTheOldFile) {
  std::string path = put("old");
  NamedArrays twice;
  twice.arrays = {{"a", vec<float>({1})}, {"a", vec<float>({2})}};
  Status status = writeSafetensors(path, twice);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(why(Result<int>(std::move(status))), "file: name 'a' is that of two tensors");
  twice.arrays = {{"\xff", vec<float>({1})}};
  EXPECT_EQ(why(Result<int>(writeSafetensors(path, twice))), "file: a name or metadata entry is not valid UTF-8");
  EXPECT_EQ(get(path), "old");
  EXPECT_EQ(why(Result<int>(writeNpy(directory_ / "no/such", vec<float>({1})))),
            "no/such: cannot create a file beside it: No such file or directory");
}

TEST_F(IoTest, SafetensorsSaysWhatIsWrong) {
  auto read = [&](const std::string &header, const std::string &data) {
    return why(readSafetensors(put(safetensors(header, data))));
  };
  EXPECT_EQ(why(readSafetensors(put("1234567"))), "file: is not a safetensors file: it has 7 bytes");
  EXPECT_EQ(why(readSafetensors(put("\xff\xff\xff\xff\xff\xff\xff\xff{}"s))),
            "file: is truncated or not a safetensors file: the header has 18446744073709551615 bytes, the file 10");
  EXPECT_EQ(read("[]", ""), "file: the header is not a JSON object");
  EXPECT_EQ(read("{\"a\":", ""), "file: the header is not a JSON object: its text is damaged at byte 6");
  EXPECT_EQ(read("{} {}", ""), "file: the header is not a JSON object: its text is damaged at byte 4");
  EXPECT_EQ(read("{\"\xff\":{}}", ""), "file: the header is not a JSON object: its text is damaged at byte 3");
  EXPECT_EQ(read(R"({"a":[1]})", ""), "file: tensor 'a': is not an object of dtype, shape and data_offsets");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[]}})", ""),
            "file: tensor 'a': is not an object of dtype, shape and data_offsets");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","dtype":"I8","shape":[],"data_offsets":[0,1]}})", "x"),
            "file: tensor 'a': names 'dtype' twice");
  EXPECT_EQ(read(R"({"a":{"dtype":8,"shape":[],"data_offsets":[0,1]}})", "x"),
            "file: tensor 'a': its dtype is not a string");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", "x"),
            "file: tensor 'a': has a size that is not a natural number: a list");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", "x"),
            "file: tensor 'a': its shape is not a list of at most 8 sizes");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", "x"),
            "file: tensor 'a': has a size that is not a natural number: 1.5");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}})", "x"),
            "file: tensor 'a': has a size that is not a natural number: 18446744073709551615");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1,2]}})", "x"),
            "file: tensor 'a': its data_offsets are not a begin and an end: there are more than two");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[1]}})", "x"),
            "file: tensor 'a': its data_offsets are not a begin and an end: there is 1 of two");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[1,0]}})", "x"),
            "file: tensor 'a': its data_offsets are not a begin and an end: [1,0]");
  EXPECT_EQ(
      read(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          "x"),
      "file: the header names 'a' twice");
  EXPECT_EQ(read(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,2]}})", "x"),
            "file: truncated: tensor 'a' ends at byte 2, the data at 1");
  EXPECT_EQ(read(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "wxyz"),
            "file: tensor 'a': f32[2] has 8 bytes, its data_offsets hold 4");
  EXPECT_EQ(read(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", ""),
            "file: tensor 'a': f32[4611686018427387904,4] is larger than any file");
  EXPECT_EQ(read(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]}})", ""),
            "file: tensor 'a': f32[4611686018427387904,4,0] is larger than any file");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "x"),
            "file: tensor 'a': has a size that is not a natural number: -1");
  EXPECT_EQ(
      read(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          "xyz"),
      "file: tensor 'b' begins at byte 1 and overlaps the one before, which ends at 2");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "xy"),
            "file: tensor 'a' begins at byte 1 and leaves a gap after the one before, which ends at 0");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "xyz"),
            "file: truncated: tensor 'a' ends at byte 4, the data at 3");
  EXPECT_EQ(read(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "xyz"),
            "file: bytes are left over: the tensors end at byte 2, the data at 3");
  EXPECT_EQ(read(R"({"__metadata__":{"a":1}})", ""), "file: __metadata__ holds 'a', which is not a string");
  EXPECT_EQ(read(R"({"__metadata__":{"a":"1","a":"2"}})", ""), "file: __metadata__ names 'a' twice");
  EXPECT_EQ(read(R"({"__metadata__":{},"__metadata__":{}})", ""), "file: the header names '__metadata__' twice");
  EXPECT_EQ(read(R"({"__metadata__":"a"})", ""), "file: __metadata__ is not an object");
}

TEST_F(IoTest, ADTypeThatIsNotOursIsLeftOutEvenIfItHasNoName) {
  for (std::string dtype : {"I8", "", "f32"}) {
    Result<NamedArrays> read = readSafetensors(put(
        safetensors(R"({"a":{"dtype":")" + dtype + R"(","shape":[9],"data_offsets":[0,36]}})", std::string(36, 'x'))));
    ASSERT_TRUE(read.ok()) << toString(read.failure());
    EXPECT_TRUE(read->arrays.empty());
    EXPECT_EQ(read->unread, (std::map<std::string, std::string>{{"a", dtype}}));
  }
}

TEST_F(IoTest, NestingOfAHeaderNeedsNoStack) {
  std::string deep(5'000'000, '[');
  EXPECT_EQ(why(readSafetensors(put(safetensors("{\"a\":" + deep, "")))),
            "file: tensor 'a': is not an object of dtype, shape and data_offsets");
  EXPECT_EQ(why(readSafetensors(put(safetensors("{\"a\":{\"shape\":" + deep, "")))),
            "file: tensor 'a': has a size that is not a natural number: a list");
}

TEST_F(IoTest, ManyTensorsAreReadAndAnyNameThatIsThereTwiceIsFound) {
  constexpr int kMany = 50'000;
  NamedArrays contents;
  for (int i = 0; i < kMany; ++i)
    contents.arrays.emplace_back("layer." + std::to_string(i) + ".weight", vec<int32_t>({i}));
  std::string path = directory_ / "many";
  ASSERT_TRUE(writeSafetensors(path, contents).ok());
  Result<NamedArrays> read = readSafetensors(path);
  ASSERT_TRUE(read.ok()) << toString(read.failure());
  ASSERT_EQ(read->arrays.size(), size_t(kMany));
  for (int i = 0; i < kMany; ++i) {
    const auto &[name, array] = read->arrays[static_cast<size_t>(i)];
    ASSERT_EQ(name, contents.arrays[static_cast<size_t>(i)].first);
    ASSERT_EQ(*array.data<int32_t>(), i);
  }
  std::string bytes = get(path);
  bytes.replace(bytes.find("layer.12345."), 12, "layer.23456.");
  EXPECT_EQ(why(readSafetensors(put(bytes))), "file: the header names 'layer.23456.weight' twice");
}

TEST_F(IoTest, NamesAreEscapedAsJsonAsks) {
  NamedArrays contents;
  for (std::string name : {"", "\"\\/", "\x01\n\x1f", "\x7f", "\xc2\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    contents.arrays.emplace_back(name, vec<uint8_t>({1}));
  contents.arrays.emplace_back("null\0inside"s, vec<uint8_t>({2}));
  std::string path = directory_ / "names";
  ASSERT_TRUE(writeSafetensors(path, contents).ok());
  Result<NamedArrays> read = readSafetensors(path);
  ASSERT_TRUE(read.ok()) << toString(read.failure());
  ASSERT_EQ(read->arrays.size(), contents.arrays.size());
  for (size_t i = 0; i < contents.arrays.size(); ++i)
    EXPECT_EQ(read->arrays[i].first, contents.arrays[i].first);
  for (std::string name : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe1\x80",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3("}) {
    NamedArrays wrong;
    wrong.metadata[name] = "a";
    EXPECT_EQ(why(Result<int>(writeSafetensors(path, wrong))), "names: a name or metadata entry is not valid UTF-8")
        << testing::PrintToString(name);
  }
}

TEST_F(IoTest, SafetensorsMutations) {
  mutate(kTwo, [](const std::string &path) { return readSafetensors(path).ok(); });
}

} // namespace
} // namespace wg::runtime
