// A zip archive is read from its end: a record with the place of the directory, the directory with the place and
// size of each entry, an entry with a header of its own before its bytes. The directory says the sizes; NumPy leaves
// them out of the entries' headers. A number that its field has no room for is in a zip64 record: of an entry an extra
// field, of the archive a record before the last (PKWARE's APPNOTE.TXT 6.3, sections 4.3.14, 4.3.15 and 4.5.3).
#include "runtime/io/Zip.h"

#include "runtime/io/Utf8.h"

#include <algorithm>
#include <new>

namespace wg::runtime {

static constexpr uint32_t kEntryMark = 0x04034b50, kDirectoryMark = 0x02014b50, kEndMark = 0x06054b50,
                          kEnd64Mark = 0x06064b50, kLocatorMark = 0x07064b50;
static constexpr uint64_t kEntryHeader = 30, kDirectoryHeader = 46, kEndRecord = 22, kEnd64Record = 56, kLocator = 20,
                          kLongestComment = 65535;
/// In a field of 32 or 16 bits: the value is in a zip64 record.
static constexpr uint64_t kElsewhere = 0xffffffff, kElsewhere16 = 0xffff;
static constexpr uint16_t kZip64Field = 1, kPadding = 0xd935; ///< extra fields; the second is zipalign's
static constexpr uint16_t kEncrypted = 1 | 1 << 6 | 1 << 13, kUtf8Name = 1 << 11;
static constexpr uint64_t kMostPacked = 1032; ///< bytes that deflate can pack into one

static uint64_t number(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;)
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}
static uint16_t number16(std::string_view bytes, size_t at) { return static_cast<uint16_t>(number(bytes, at, 2)); }
static uint32_t number32(std::string_view bytes, size_t at) { return static_cast<uint32_t>(number(bytes, at, 4)); }
static uint64_t number64(std::string_view bytes, size_t at) { return number(bytes, at, 8); }

Failure zipEntryError(const InputFile &file, const ZipEntry &entry, const std::string &message, std::string remedy) {
  return file.error("entry '" + entry.name + "': " + message, std::move(remedy));
}

// ---- The bytes of an entry ------------------------------------------------------------------------------------------

ZipSource::ZipSource(const InputFile &file, const ZipEntry &entry) : file_(file), entry_(entry) {
  if (entry.method == 8 && ::inflateInit2(&stream_, -MAX_WBITS) != Z_OK)
    throw std::bad_alloc();
}
ZipSource::~ZipSource() {
  if (entry_.method == 8)
    ::inflateEnd(&stream_);
}

Failure ZipSource::error(const std::string &message, std::string remedy) const {
  return zipEntryError(file_, entry_, message, std::move(remedy));
}

Status ZipSource::read(void *data, size_t size) {
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

Status ZipSource::finish() {
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

Status ZipSource::inflate(uint8_t *data, size_t size) {
  for (size_t made = 0; size > 0; data += made, size -= made) {
    if (ended_)
      return error("truncated: it unpacks to fewer bytes than the directory says");
    if (Status status = step(data, std::min(size, size_t(1) << 30), made); !status.ok())
      return status;
  }
  return {};
}

/// Unpacks at most `room` bytes; none only at the end or with no input left in the buffer.
Status ZipSource::step(uint8_t *data, size_t room, size_t &made) {
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

// ---- The directory --------------------------------------------------------------------------------------------------

namespace {
/// Where the directory is.
struct Place {
  uint64_t begin, size, count;
};
} // namespace

/// What the record at the end says, and the zip64 record where there is one.
static Result<Place> findDirectory(const InputFile &file, const std::string &kind) {
  if (file.size() < kEndRecord)
    return file.error("is not a " + kind + " file: it has " + std::to_string(file.size()) + " bytes");
  // The record is at the end but for a comment, whose size it says.
  std::string tail(std::min<uint64_t>(file.size(), kLocator + kEndRecord + kLongestComment), '\0');
  if (Status status = file.read(file.size() - tail.size(), tail.data(), tail.size()); !status.ok())
    return status;
  size_t record = tail.size() - kEndRecord;
  while (number32(tail, record) != kEndMark || record + kEndRecord + number16(tail, record + 20) != tail.size())
    if (record-- == 0)
      return file.error("is not a " + kind + " file, or truncated: no zip directory is at its end", readerOf(file));
  uint64_t end = file.size() - tail.size() + record;
  Place place{number32(tail, record + 16), number32(tail, record + 12), number16(tail, record + 10)};
  bool parts = number32(tail, record + 4) != 0 || number16(tail, record + 8) != place.count;
  if (record >= kLocator && number32(tail, record - kLocator) == kLocatorMark &&
      (place.count == kElsewhere16 || place.size == kElsewhere || place.begin == kElsewhere)) {
    uint64_t at = number64(tail, record - kLocator + 8);
    parts |= number32(tail, record - kLocator + 4) != 0 || number32(tail, record - kLocator + 16) > 1;
    end -= kLocator;
    std::string record64(kEnd64Record, '\0');
    if (end < kEnd64Record || at > end - kEnd64Record)
      return file.error("damaged: its zip64 record should begin at byte " + std::to_string(at));
    if (Status status = file.read(at, record64.data(), record64.size()); !status.ok())
      return status;
    if (number32(record64, 0) != kEnd64Mark)
      return file.error("damaged: no zip64 record begins at byte " + std::to_string(at));
    place = {number64(record64, 48), number64(record64, 40), number64(record64, 32)};
    parts |= number64(record64, 16) != 0 || number64(record64, 24) != place.count;
    end = at;
  }
  if (parts)
    return file.error("is one part of a zip archive of several");
  if (place.begin > end || place.size > end - place.begin)
    return file.error("damaged: the directory begins at byte " + std::to_string(place.begin) + " and has " +
                      std::to_string(place.size) + " bytes, it ends before byte " + std::to_string(end));
  return place;
}

/// Puts the numbers of a zip64 field in the places of those that are elsewhere; whether they are there.
static bool readZip64(ZipEntry &entry, std::string_view extra) {
  uint64_t *const fields[] = {&entry.size, &entry.packed, &entry.at};
  if (std::ranges::none_of(fields, [](uint64_t *field) { return *field == kElsewhere; }))
    return true;
  while (extra.size() >= 4) {
    size_t size = number16(extra, 2);
    if (size > extra.size() - 4)
      return false;
    if (number16(extra, 0) == kZip64Field) {
      extra = extra.substr(4, size);
      for (uint64_t *field : fields) {
        if (*field != kElsewhere)
          continue;
        if (extra.size() < 8)
          return false;
        *field = number64(extra, 0);
        extra.remove_prefix(8);
      }
      return true;
    }
    extra.remove_prefix(4 + size);
  }
  return false;
}

/// What the directory says, each entry checked by itself.
static Result<std::vector<ZipEntry>> readDirectory(const InputFile &file, const Place &place) {
  std::string text(place.size, '\0');
  if (Status status = file.read(place.begin, text.data(), text.size()); !status.ok())
    return status;
  std::vector<ZipEntry> entries;
  uint64_t at = 0;
  for (uint64_t i = 0; i < place.count; ++i) {
    if (text.size() - at < kDirectoryHeader || number32(text, at) != kDirectoryMark)
      return file.error("damaged: " + std::to_string(place.count) +
                        " entries should be in the directory, there is none at number " + std::to_string(i));
    uint64_t nameSize = number16(text, at + 28), extraSize = number16(text, at + 30),
             rest = nameSize + extraSize + number16(text, at + 32);
    if (text.size() - at - kDirectoryHeader < rest)
      return file.error("truncated: entry " + std::to_string(i) + " of the directory");
    ZipEntry entry{.name = text.substr(at + kDirectoryHeader, nameSize),
                   .at = number32(text, at + 42),
                   .packed = number32(text, at + 20),
                   .size = number32(text, at + 24),
                   .checksum = number32(text, at + 16),
                   .flags = number16(text, at + 8),
                   .method = number16(text, at + 10)};
    if (!isUtf8(entry.name) || entry.name.find('\0') != std::string::npos)
      return file.error("entry " + std::to_string(i) + " has a name that is not text in UTF-8");
    if (!readZip64(entry, std::string_view(text).substr(at + kDirectoryHeader + nameSize, extraSize)))
      return zipEntryError(file, entry, "damaged: its zip64 sizes are not in the directory");
    at += kDirectoryHeader + rest;
    if (entry.flags & kEncrypted)
      return zipEntryError(file, entry, "is encrypted");
    if (entry.method != 0 && entry.method != 8)
      return zipEntryError(
          file, entry, "is packed by method " + std::to_string(entry.method) + "; 0 (stored) and 8 (deflate) are read",
          "save it with numpy.savez or numpy.savez_compressed");
    uint64_t least = entry.size / kMostPacked + (entry.size % kMostPacked != 0);
    if (entry.method == 0 ? entry.packed != entry.size : entry.packed < least)
      return zipEntryError(file, entry,
                           std::to_string(entry.size) + " bytes cannot be in " + std::to_string(entry.packed));
    entries.push_back(std::move(entry));
  }
  if (at != text.size())
    return file.error("damaged: bytes are left over in the directory after its " + std::to_string(place.count) +
                      " entries");
  return entries;
}

/// Where the bytes of each entry are, by its own header; entries and the directory, which
/// begins at `end`, do not overlap.
static Status locate(const InputFile &file, std::vector<ZipEntry> &entries, uint64_t end) {
  std::vector<ZipEntry *> order;
  order.reserve(entries.size());
  for (ZipEntry &entry : entries)
    order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const ZipEntry *a, const ZipEntry *b) { return a->name < b->name; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->name == order[i]->name)
      return file.error("the directory names '" + order[i]->name + "' twice");
  std::sort(order.begin(), order.end(), [](const ZipEntry *a, const ZipEntry *b) { return a->at > b->at; });
  for (ZipEntry *entry : order) {
    std::string header(kEntryHeader, '\0');
    if (end < kEntryHeader || entry->at > end - kEntryHeader)
      return zipEntryError(
          file, *entry, "begins at byte " + std::to_string(entry->at) + ", inside of another entry or the directory");
    if (Status status = file.read(entry->at, header.data(), header.size()); !status.ok())
      return status;
    if (number32(header, 0) != kEntryMark)
      return zipEntryError(file, *entry, "no entry begins at byte " + std::to_string(entry->at));
    uint64_t nameSize = number16(header, 26);
    entry->data = entry->at + kEntryHeader + nameSize + number16(header, 28);
    if (entry->data > end || entry->packed > end - entry->data)
      return zipEntryError(file, *entry,
                           "truncated: its " + std::to_string(entry->packed) +
                               " bytes run into another entry or the directory");
    std::string name(nameSize, '\0');
    if (Status status = file.read(entry->at + kEntryHeader, name.data(), name.size()); !status.ok())
      return status;
    if (name != entry->name || number16(header, 8) != entry->method || (number16(header, 6) & kEncrypted))
      return zipEntryError(file, *entry, "its own header differs from the directory");
    end = entry->at;
  }
  return {};
}

Result<std::vector<ZipEntry>> readZip(const InputFile &file, const std::string &kind) {
  Result<Place> place = findDirectory(file, kind);
  if (!place.ok())
    return place.take();
  Result<std::vector<ZipEntry>> entries = readDirectory(file, *place);
  if (entries.ok())
    if (Status status = locate(file, *entries, place->begin); !status.ok())
      return status;
  return entries;
}

// ---- Writing --------------------------------------------------------------------------------------------------------

static void append(std::string &out, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    out += static_cast<char>(value >> 8 * i);
}

/// An extra field of these numbers; none for none.
static std::string zip64Field(std::initializer_list<uint64_t> values, uint64_t most) {
  std::string numbers, field;
  for (uint64_t value : values)
    if (value > most)
      append(numbers, value, 8);
  if (numbers.empty())
    return {};
  append(field, kZip64Field, 2);
  append(field, numbers.size(), 2);
  return field + numbers;
}

/// An extra field after which `at` is at a multiple of the alignment; none where it is already.
static std::string paddingField(uint64_t at, uint64_t alignment) {
  constexpr uint64_t kSmallest = 6; // id, size, and the alignment
  uint64_t size = (alignment - at % alignment) % alignment;
  if (size == 0)
    return {};
  while (size < kSmallest)
    size += alignment;
  std::string field;
  append(field, kPadding, 2);
  append(field, size - 4, 2);
  append(field, alignment, 2);
  field.resize(size, '\0');
  return field;
}

ZipImage zipImage(std::span<const ZipPart> parts, uint64_t alignment, uint64_t most) {
  ZipImage image;
  image.headers.resize(parts.size() + 1); // the last is the directory
  std::string &directory = image.headers.back();
  uint64_t at = 0;
  auto field32 = [&](std::string &out, uint64_t value) { append(out, value > most ? kElsewhere : value, 4); };
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string &name = parts[i].name;
    uint64_t size = 0;
    uLong checksum = 0;
    for (std::span<const std::byte> piece : parts[i].pieces) {
      size += piece.size();
      if (!piece.empty()) // a null pointer would begin anew
        checksum = ::crc32_z(checksum, reinterpret_cast<const Bytef *>(piece.data()), piece.size());
    }
    // An entry's own header has both sizes in its zip64 field or none, the directory those that have no room.
    std::string field = zip64Field({size, size}, most), directoryField = zip64Field({size, size, at}, most);
    bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    auto common = [&](std::string &out, const std::string &zip64) {
      append(out, zip64.empty() ? 20 : 45, 2); // the version that is needed
      append(out, ascii ? 0 : kUtf8Name, 2);
      append(out, 0, 2);    // stored
      append(out, 0, 2);    // midnight of
      append(out, 0x21, 2); // 1 January 1980: equal parts make equal files
      append(out, checksum, 4);
      field32(out, size);
      field32(out, size);
      append(out, name.size(), 2);
    };
    field += paddingField(at + kEntryHeader + name.size() + field.size(), alignment);
    std::string &header = image.headers[i];
    append(header, kEntryMark, 4);
    common(header, directoryField);
    append(header, field.size(), 2);
    header += name + field;

    append(directory, kDirectoryMark, 4);
    append(directory, directoryField.empty() ? 20 : 45, 2); // made by this version
    common(directory, directoryField);
    append(directory, directoryField.size(), 2);
    append(directory, 0, 2 + 2 + 2); // no comment, first disk, no attributes of text
    append(directory, 0, 4);         // or of the system
    field32(directory, at);
    directory += name + directoryField;

    at += header.size() + size;
    image.pieces.push_back(std::as_bytes(std::span(header)));
    image.pieces.insert(image.pieces.end(), parts[i].pieces.begin(), parts[i].pieces.end());
  }
  uint64_t size = directory.size(), count = parts.size(), mostCount = std::min(most, kElsewhere16 - 1);
  if (count > mostCount || size > most || at > most) {
    uint64_t record = at + size;
    append(directory, kEnd64Mark, 4);
    append(directory, kEnd64Record - 12, 8); // of what follows
    append(directory, 45, 2);
    append(directory, 45, 2);
    append(directory, 0, 4 + 4); // one disk
    append(directory, count, 8);
    append(directory, count, 8);
    append(directory, size, 8);
    append(directory, at, 8);
    append(directory, kLocatorMark, 4);
    append(directory, 0, 4);
    append(directory, record, 8);
    append(directory, 1, 4);
  }
  append(directory, kEndMark, 4);
  append(directory, 0, 4);
  for (int times = 0; times < 2; ++times)
    append(directory, count > mostCount ? kElsewhere16 : count, 2);
  field32(directory, size);
  field32(directory, at);
  append(directory, 0, 2);
  image.pieces.push_back(std::as_bytes(std::span(directory)));
  return image;
}

Status writeZip(const std::string &path, std::span<const ZipPart> parts, uint64_t alignment) {
  ZipImage image = zipImage(parts, alignment);
  return writeFile(path, image.pieces);
}

} // namespace wg::runtime
