// A zip archive is read from its end: a record with the place of the directory, the directory with the place and
// size of each entry, an entry with a header of its own before its bytes. The directory says the sizes; NumPy leaves
// them out of the entries' headers.
#include "runtime/io/Npz.h"

#include "runtime/io/File.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Utf8.h"

#include <algorithm>
#include <array>
#include <new>

#include <zlib.h>

namespace wg::runtime {

namespace {

constexpr uint32_t kEntryMark = 0x04034b50, kDirectoryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint64_t kEntryHeader = 30, kDirectoryHeader = 46, kEndRecord = 22, kLongestComment = 65535;
constexpr uint64_t kZip64 = 0xffffffff; ///< in a field of 32 bits: the value is in a zip64 record
constexpr uint16_t kEncrypted = 1 | 1 << 6 | 1 << 13, kUtf8Name = 1 << 11;
constexpr uint64_t kMostPacked = 1032; ///< bytes that deflate can pack into one
constexpr std::string_view kSuffix = ".npy";

uint64_t number(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;)
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}
uint16_t number16(std::string_view bytes, size_t at) { return static_cast<uint16_t>(number(bytes, at, 2)); }
uint32_t number32(std::string_view bytes, size_t at) { return static_cast<uint32_t>(number(bytes, at, 4)); }

struct Entry {
  std::string name;  ///< with its suffix
  uint64_t at;       ///< of its header
  uint64_t data = 0; ///< of its bytes
  uint64_t packed, size;
  uint32_t checksum;
  uint16_t flags, method; ///< 0: stored, 8: deflate
};

Failure zip64Failure(const InputFile &file) {
  return file.error("is a zip64 archive: it has entries of 4 GiB or more than 65,534 of them, which are not read",
                    "save each array as a .npy file");
}

Failure entryError(const InputFile &file, const Entry &entry, const std::string &message, std::string remedy = {}) {
  return file.error("entry '" + entry.name + "': " + message, std::move(remedy));
}

/// The bytes of one entry as they were packed; their number and checksum are compared with the directory's in the end.
class EntrySource : public ByteSource {
public:
  EntrySource(const InputFile &file, const Entry &entry) : file_(file), entry_(entry) {
    if (entry.method == 8 && ::inflateInit2(&stream_, -MAX_WBITS) != Z_OK)
      throw std::bad_alloc();
  }
  EntrySource(const EntrySource &) = delete;
  ~EntrySource() override {
    if (entry_.method == 8)
      ::inflateEnd(&stream_);
  }
  uint64_t size() const override { return entry_.size; }
  Failure error(const std::string &message, std::string remedy = {}) const override {
    return entryError(file_, entry_, message, std::move(remedy));
  }

  Status read(void *data, size_t size) override {
    if (size == 0)
      return {};
    Status status =
        entry_.method == 8 ? inflate(static_cast<uint8_t *>(data), size) : file_.read(entry_.data + at_, data, size);
    if (!status.ok())
      return status;
    if (entry_.method == 0)
      at_ += size;
    checksum_ = ::crc32_z(checksum_, static_cast<const Bytef *>(data), size);
    return {};
  }
  /// After the last byte: nothing is left over, and the checksum is right.
  Status finish() {
    while (entry_.method == 8 && !ended_) {
      uint8_t more;
      size_t made = 0;
      if (Status status = step(&more, 1, made); !status.ok())
        return status;
      if (made != 0)
        return error("unpacks to more bytes than the directory says");
    }
    if (stream_.avail_in != 0 || at_ != entry_.packed)
      return error("damaged: bytes are left over after what was packed");
    if (checksum_ != entry_.checksum)
      return error("damaged: its checksum is not the directory's", "copy or download the file again");
    return {};
  }

private:
  Status inflate(uint8_t *data, size_t size) {
    for (size_t made = 0; size > 0; data += made, size -= made) {
      if (ended_)
        return error("truncated: it unpacks to fewer bytes than the directory says");
      if (Status status = step(data, std::min(size, size_t(1) << 30), made); !status.ok())
        return status;
    }
    return {};
  }
  /// Unpacks at most `room` bytes; none only at the end or with no input left in the buffer.
  Status step(uint8_t *data, size_t room, size_t &made) {
    if (stream_.avail_in == 0) {
      size_t next = std::min<uint64_t>(input_.size(), entry_.packed - at_);
      if (next == 0)
        return error("truncated: the packed bytes end early");
      if (Status status = file_.read(entry_.data + at_, input_.data(), next); !status.ok())
        return status;
      at_ += next;
      stream_.next_in = input_.data();
      stream_.avail_in = static_cast<uInt>(next);
    }
    stream_.next_out = data;
    stream_.avail_out = static_cast<uInt>(room);
    int code = ::inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR)
      throw std::bad_alloc();
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
      return error(std::string("damaged: ") +
                   (stream_.msg ? stream_.msg : "the packed bytes are not as deflate writes them"));
    ended_ = code == Z_STREAM_END;
    made = room - stream_.avail_out;
    return {};
  }

  const InputFile &file_;
  const Entry &entry_;
  uint64_t at_ = 0; ///< the next byte as it is packed
  bool ended_ = false;
  uLong checksum_ = 0;
  z_stream stream_ = {};
  std::array<uint8_t, size_t(16) << 10> input_;
};

/// What the directory says, each entry checked by itself.
Result<std::vector<Entry>> readDirectory(const InputFile &file, uint64_t &begin) {
  if (file.size() < kEndRecord)
    return file.error("is not a .npz file: it has " + std::to_string(file.size()) + " bytes");
  // The record is at the end but for a comment, whose size it says.
  std::string tail(std::min<uint64_t>(file.size(), kEndRecord + kLongestComment), '\0');
  if (Status status = file.read(file.size() - tail.size(), tail.data(), tail.size()); !status.ok())
    return status;
  size_t record = tail.size() - kEndRecord;
  while (number32(tail, record) != kEndMark || record + kEndRecord + number16(tail, record + 20) != tail.size())
    if (record-- == 0)
      return file.error("is not a .npz file, or truncated: no zip directory is at its end", readerOf(file));
  uint64_t end = file.size() - tail.size() + record;
  uint64_t count = number16(tail, record + 10), size = number32(tail, record + 12);
  begin = number32(tail, record + 16);
  if (count == 0xffff || size == kZip64 || begin == kZip64)
    return zip64Failure(file);
  if (number32(tail, record + 4) != 0 || number16(tail, record + 8) != count)
    return file.error("is one part of a zip archive of several");
  if (begin > end || size > end - begin)
    return file.error("damaged: the directory begins at byte " + std::to_string(begin) + " and has " +
                      std::to_string(size) + " bytes, it ends before byte " + std::to_string(end));
  tail = {};

  std::string text(size, '\0');
  if (Status status = file.read(begin, text.data(), size); !status.ok())
    return status;
  std::vector<Entry> entries;
  uint64_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (size - at < kDirectoryHeader || number32(text, at) != kDirectoryMark)
      return file.error("damaged: " + std::to_string(count) +
                        " entries should be in the directory, there is none at number " + std::to_string(i));
    uint64_t nameSize = number16(text, at + 28), rest = nameSize + number16(text, at + 30) + number16(text, at + 32);
    if (size - at - kDirectoryHeader < rest)
      return file.error("truncated: entry " + std::to_string(i) + " of the directory");
    Entry entry{.name = text.substr(at + kDirectoryHeader, nameSize),
                .at = number32(text, at + 42),
                .packed = number32(text, at + 20),
                .size = number32(text, at + 24),
                .checksum = number32(text, at + 16),
                .flags = number16(text, at + 8),
                .method = number16(text, at + 10)};
    at += kDirectoryHeader + rest;
    if (!isUtf8(entry.name) || entry.name.find('\0') != std::string::npos)
      return file.error("entry " + std::to_string(i) + " has a name that is not text in UTF-8");
    if (entry.at == kZip64 || entry.packed == kZip64 || entry.size == kZip64)
      return zip64Failure(file);
    if (entry.flags & kEncrypted)
      return entryError(file, entry, "is encrypted");
    if (entry.method != 0 && entry.method != 8)
      return entryError(file, entry,
                        "is packed by method " + std::to_string(entry.method) + "; 0 (stored) and 8 (deflate) are read",
                        "save it with numpy.savez or numpy.savez_compressed");
    if (!entry.name.ends_with(kSuffix))
      return entryError(file, entry, "is not a .npy file", "take it out of the archive");
    if (entry.method == 0 ? entry.packed != entry.size : entry.size > entry.packed * kMostPacked)
      return entryError(file, entry,
                        std::to_string(entry.size) + " bytes cannot be in " + std::to_string(entry.packed));
    entries.push_back(std::move(entry));
  }
  if (at != size)
    return file.error("damaged: bytes are left over in the directory after its " + std::to_string(count) + " entries");
  return entries;
}

/// Where the bytes of each entry are, by its own header; entries and the directory, which
/// begins at `end`, do not overlap.
Status locate(const InputFile &file, std::vector<Entry> &entries, uint64_t end) {
  std::vector<Entry *> order;
  order.reserve(entries.size());
  for (Entry &entry : entries)
    order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry *a, const Entry *b) { return a->name < b->name; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->name == order[i]->name)
      return file.error("the directory names '" + order[i]->name + "' twice");
  std::sort(order.begin(), order.end(), [](const Entry *a, const Entry *b) { return a->at > b->at; });
  for (Entry *entry : order) {
    std::string header(kEntryHeader, '\0');
    if (end < kEntryHeader || entry->at > end - kEntryHeader)
      return entryError(file, *entry,
                        "begins at byte " + std::to_string(entry->at) + ", inside of another entry or the directory");
    if (Status status = file.read(entry->at, header.data(), header.size()); !status.ok())
      return status;
    if (number32(header, 0) != kEntryMark)
      return entryError(file, *entry, "no entry begins at byte " + std::to_string(entry->at));
    uint64_t nameSize = number16(header, 26);
    entry->data = entry->at + kEntryHeader + nameSize + number16(header, 28);
    if (entry->data > end || entry->packed > end - entry->data)
      return entryError(file, *entry,
                        "truncated: its " + std::to_string(entry->packed) +
                            " bytes run into another entry or the directory");
    std::string name(nameSize, '\0');
    if (Status status = file.read(entry->at + kEntryHeader, name.data(), name.size()); !status.ok())
      return status;
    if (name != entry->name || number16(header, 8) != entry->method || (number16(header, 6) & kEncrypted))
      return entryError(file, *entry, "its own header differs from the directory");
    end = entry->at;
  }
  return {};
}

void append(std::string &out, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    out += static_cast<char>(value >> 8 * i);
}

} // namespace

Result<std::vector<std::pair<std::string, Array>>> readNpz(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok())
    return file.take();
  uint64_t directory = 0;
  Result<std::vector<Entry>> entries = readDirectory(*file, directory);
  if (!entries.ok())
    return entries.take();
  if (Status status = locate(*file, *entries, directory); !status.ok())
    return status;
  std::vector<std::pair<std::string, Array>> arrays;
  for (const Entry &entry : *entries) {
    EntrySource source(*file, entry);
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
  if (arrays.size() >= 0xffff)
    return fileError(path, std::to_string(arrays.size()) + " arrays; 65534 are the most", "write several files");
  std::vector<const std::string *> names;
  for (const auto &[name, array] : arrays)
    names.push_back(&name);
  std::sort(names.begin(), names.end(), [](auto *a, auto *b) { return *a < *b; });
  for (size_t i = 1; i < names.size(); ++i)
    if (*names[i - 1] == *names[i])
      return fileError(path, "name '" + *names[i] + "' is that of two arrays", "give each array its own name");

  std::vector<std::string> headers(arrays.size()); // of the entry, then of the array
  std::string directory;
  std::vector<std::span<const std::byte>> pieces;
  uint64_t at = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto &[name, array] = arrays[i];
    if (!isUtf8(name) || name.find('\0') != std::string::npos || name.size() > 65000)
      return fileError(path, "the name of array " + std::to_string(i) + " is not text in UTF-8 of at most 65000 bytes");
    std::string start = npyStart(array);
    if (start.empty())
      return npyLacks(path, array.dtype());
    std::span elements(static_cast<const std::byte *>(array.buffer.data()), array.numBytes());
    uint64_t size = start.size() + elements.size();
    if (size >= kZip64 || at >= kZip64 - size)
      return fileError(
          path, "array '" + name + "' makes the file 4 GiB or larger, which a zip archive without zip64 cannot be",
          "save it as a .npy file");
    uLong checksum = ::crc32_z(0, reinterpret_cast<const Bytef *>(start.data()), start.size());
    if (!elements.empty()) // a null pointer would begin anew
      checksum = ::crc32_z(checksum, reinterpret_cast<const Bytef *>(elements.data()), elements.size());

    std::string fileName = name + std::string(kSuffix), common;
    bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    append(common, 20, 2); // version 2.0 is needed
    append(common, ascii ? 0 : kUtf8Name, 2);
    append(common, 0, 2);    // stored
    append(common, 0, 2);    // midnight of
    append(common, 0x21, 2); // 1 January 1980: equal arrays make equal files
    append(common, checksum, 4);
    append(common, size, 4);
    append(common, size, 4);
    append(common, fileName.size(), 2);
    append(common, 0, 2); // no extra fields

    append(headers[i], kEntryMark, 4);
    headers[i] += common + fileName;
    append(directory, kDirectoryMark, 4);
    append(directory, 20, 2); // made by version 2.0
    directory += common;
    append(directory, 0, 2 + 2 + 2); // no comment, first disk, no attributes of text
    append(directory, 0, 4);         // or of the system
    append(directory, at, 4);
    directory += fileName;
    at += headers[i].size() + size;
    headers[i] += start;
    pieces.push_back(std::as_bytes(std::span(headers[i])));
    pieces.push_back(elements);
  }
  if (at >= kZip64 || directory.size() >= kZip64 - at)
    return fileError(path, "the file would be 4 GiB or larger, which a zip archive without zip64 cannot be",
                     "write several files");
  uint64_t size = directory.size();
  append(directory, kEndMark, 4);
  append(directory, 0, 4);
  append(directory, arrays.size(), 2);
  append(directory, arrays.size(), 2);
  append(directory, size, 4);
  append(directory, at, 4);
  append(directory, 0, 2);
  pieces.push_back(std::as_bytes(std::span(directory)));
  return writeFile(path, pieces);
}

} // namespace wg::runtime
