#include "runtime/io/Safetensors.h"

#include "runtime/io/File.h"
#include "runtime/io/Utf8.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>

namespace wg::runtime {

using Json = nlohmann::json;

static constexpr std::string_view kMetadata = "__metadata__";
static constexpr uint64_t kLongestHeader = 100'000'000; // as in the reference implementation
static constexpr const char *kDTypes[kNumDTypes] = {"F64", "F32", "BF16", "F16", "I64", "I32", "U8", "BOOL"};

namespace {

/// Takes the header's tokens as they are read, so that nothing but the entries is held; stops at the first that is
/// wrong. Lists and objects nest three deep at most, so the stack of places is one of a few enumerators.
class HeaderReader : public nlohmann::json_sax<Json> {
public:
  std::vector<StoredTensor> entries;
  std::map<std::string, std::string> metadata;
  std::string wrong; ///< empty, or what is wrong

  bool null() override { return scalar("null"); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return scalar(std::to_string(value)); }
  bool number_float(double, const std::string &text) override { return scalar(text); }
  bool number_unsigned(uint64_t value) override {
    if (place_ == Place::shape || place_ == Place::offsets) {
      if (value > uint64_t(std::numeric_limits<int64_t>::max()))
        return scalar(std::to_string(value));
      if (place_ == Place::shape && shape_.size() == kMaxRank)
        return fail(rankMessage());
      if (place_ == Place::offsets && count_ == 2)
        return fail("its data_offsets are not a begin and an end: there are more than two");
      place_ == Place::shape ? shape_.push_back(static_cast<int64_t>(value)) : void(offsets_[count_++] = value);
      return true;
    }
    return scalar(std::to_string(value));
  }
  bool binary(Json::binary_t &) override { return scalar("binary data"); }

  bool string(std::string &value) override {
    if (place_ == Place::metadata) {
      return metadata.try_emplace(name_, std::move(value)).second || fail("__metadata__ names '" + name_ + "' twice");
    }
    if (place_ == Place::entry && field_ == dtype) {
      dtype_ = std::move(value);
      return true;
    }
    return scalar(Json(value.substr(0, 40)).dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  bool start_object(size_t) override {
    if (place_ == Place::start)
      place_ = Place::header;
    else if (place_ == Place::header && name_ == kMetadata) {
      if (std::exchange(sawMetadata_, true))
        return fail("the header names '__metadata__' twice");
      place_ = Place::metadata;
    } else if (place_ == Place::header) {
      place_ = Place::entry;
      seen_ = 0;
    } else {
      return scalar("an object");
    }
    return true;
  }
  bool key(std::string &value) override {
    if (place_ != Place::entry) {
      name_ = std::move(value);
      return true;
    }
    field_ = value == "dtype" ? dtype : value == "shape" ? shape : value == "data_offsets" ? offsets : other;
    if (field_ == other)
      return fail("is not an object of dtype, shape and data_offsets");
    if (seen_ & field_)
      return fail("names '" + value + "' twice");
    seen_ |= field_;
    return true;
  }
  bool end_object() override {
    if (place_ == Place::entry) {
      if (seen_ != (dtype | shape | offsets))
        return fail("is not an object of dtype, shape and data_offsets");
      if (std::string problem = finishEntry(); !problem.empty())
        return fail(problem);
    }
    place_ = place_ == Place::header ? Place::end : Place::header;
    return true;
  }
  bool start_array(size_t) override {
    if (place_ != Place::entry || field_ == dtype)
      return scalar("a list");
    place_ = field_ == shape ? Place::shape : Place::offsets;
    count_ = 0;
    if (field_ == shape)
      shape_ = {};
    return true;
  }
  bool end_array() override {
    if (place_ == Place::offsets && count_ != 2)
      return fail("its data_offsets are not a begin and an end: there is " + std::to_string(count_) + " of two");
    place_ = Place::entry;
    return true;
  }
  bool parse_error(size_t position, const std::string &, const Json::exception &) override {
    wrong = "the header is not a JSON object: its text is damaged at byte " + std::to_string(position);
    return false;
  }

private:
  enum class Place : uint8_t { start, header, metadata, entry, shape, offsets, end };
  enum Field : uint8_t { other = 0, dtype = 1, shape = 2, offsets = 4 };

  bool fail(const std::string &problem) {
    wrong = place_ == Place::shape || place_ == Place::offsets || place_ == Place::entry
                ? "tensor '" + name_ + "': " + problem
                : problem;
    return false;
  }
  static std::string rankMessage() {
    return "its shape is not a list of at most " + std::to_string(kMaxRank) + " sizes";
  }

  /// A value where none of its kind may be.
  bool scalar(const std::string &value) {
    switch (place_) {
    case Place::header:
      return fail(name_ == kMetadata ? "__metadata__ is not an object"
                                     : "tensor '" + name_ + "': is not an object of dtype, shape and data_offsets");
    case Place::metadata: return fail("__metadata__ holds '" + name_ + "', which is not a string");
    case Place::entry:
      return fail(field_ == dtype   ? "its dtype is not a string"
                  : field_ == shape ? rankMessage()
                                    : "its data_offsets are not a begin and an end: " + value);
    case Place::shape: return fail("has a size that is not a natural number: " + value);
    case Place::offsets: return fail("its data_offsets are not a begin and an end: " + value);
    default: return fail("the header is not a JSON object");
    }
  }

  /// The entry is kept; or what is wrong with it.
  std::string finishEntry() {
    const auto [begin, end] = offsets_;
    StoredTensor entry{.name = std::move(name_), .type = {DType::u8, shape_}, .at = begin, .size = end - begin};
    auto found = std::find(std::begin(kDTypes), std::end(kDTypes), dtype_);
    const bool ours = found != std::end(kDTypes);
    if (ours)
      entry.type.dtype = static_cast<DType>(found - std::begin(kDTypes));
    else
      entry.unread = std::move(dtype_);
    std::string problem;
    std::optional<uint64_t> bytes = bytesOf(entry.type.dtype, shape_);
    if (ours && !bytes)
      problem = toString(entry.type) + " is larger than any file";
    else if (begin > end)
      problem =
          "its data_offsets are not a begin and an end: [" + std::to_string(begin) + "," + std::to_string(end) + "]";
    else if (ours && entry.size != *bytes)
      problem = toString(entry.type) + " has " + std::to_string(*bytes) + " bytes, its data_offsets hold " +
                std::to_string(entry.size);
    if (!problem.empty())
      name_ = std::move(entry.name); // for the message
    else
      entries.push_back(std::move(entry));
    return problem;
  }

  Place place_ = Place::start;
  Field field_ = other;
  uint8_t seen_ = 0; ///< fields of the entry
  size_t count_ = 0; ///< of its offsets
  bool sawMetadata_ = false;
  std::string name_, dtype_;
  Shape shape_;
  uint64_t offsets_[2] = {};
};

/// The first name that is there twice, or null. Sorted rather than hashed: no choice of names makes it slow.
template <class List, class NameOf> const std::string *twice(const List &list, NameOf &&nameOf) {
  std::vector<const std::string *> names;
  names.reserve(list.size());
  for (const auto &each : list)
    names.push_back(&nameOf(each));
  auto less = [](const std::string *a, const std::string *b) { return *a < *b; };
  std::sort(names.begin(), names.end(), less);
  auto found = std::adjacent_find(names.begin(), names.end(),
                                  [](const std::string *a, const std::string *b) { return *a == *b; });
  return found == names.end() ? nullptr : *found;
}

} // namespace

bool appendQuoted(std::string &out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      if (byte == '"' || byte == '\\')
        (out += '\\') += text[i];
      else if (byte < 0x20)
        for (char c : {'\\', 'u', '0', '0', "01"[byte >> 4], "0123456789abcdef"[byte & 15]})
          out += c;
      else
        out += text[i];
      ++i;
      continue;
    }
    size_t length = characterSize(text.substr(i));
    if (length == 0)
      return false;
    out.append(text, i, length);
    i += length;
  }
  out += '"';
  return true;
}

std::string toString(const StoredTensor &tensor) {
  std::string text = toString(tensor.type);
  return !tensor.unread ? text : *tensor.unread + text.substr(text.find('['));
}

Result<SafetensorsHeader> readHeader(const InputFile &file) {
  uint8_t prefix[8];
  if (file.size() < 8)
    return file.error("is not a safetensors file: it has " + std::to_string(file.size()) + " bytes");
  if (Status status = file.read(0, prefix, 8); !status.ok())
    return status;
  uint64_t headerSize = 0;
  for (int i = 8; i-- > 0;)
    headerSize = headerSize << 8 | prefix[i];
  if (headerSize > file.size() - 8)
    return file.error("is truncated or not a safetensors file: the header has " + std::to_string(headerSize) +
                          " bytes, the file " + std::to_string(file.size()),
                      readerOf(file));
  if (headerSize > kLongestHeader)
    return file.error("the header has " + std::to_string(headerSize) + " bytes; " + std::to_string(kLongestHeader) +
                      " are the most");

  HeaderReader header;
  {
    std::string text(headerSize, ' ');
    if (Status status = file.read(8, text.data(), headerSize); !status.ok())
      return status;
    if (text.empty() || text[0] != '{')
      return file.error("the header is not a JSON object");
    Json::sax_parse(text, &header);
  }
  if (!header.wrong.empty())
    return file.error(header.wrong);
  std::vector<StoredTensor> &entries = header.entries;
  if (const std::string *name =
          twice(entries, [](const StoredTensor &entry) -> const std::string & { return entry.name; }))
    return file.error("the header names '" + *name + "' twice");

  std::sort(entries.begin(), entries.end(), [](const StoredTensor &a, const StoredTensor &b) {
    return std::tie(a.at, a.size, a.name) < std::tie(b.at, b.size, b.name);
  });
  const uint64_t start = 8 + headerSize, present = file.size() - start;
  uint64_t at = 0;
  for (StoredTensor &entry : entries) {
    if (entry.at != at)
      return file.error("tensor '" + entry.name + "' begins at byte " + std::to_string(entry.at) +
                        (entry.at < at ? " and overlaps" : " and leaves a gap after") +
                        " the one before, which ends at " + std::to_string(at));
    at += entry.size;
    if (at > present)
      return file.error("truncated: tensor '" + entry.name + "' ends at byte " + std::to_string(at) + ", the data at " +
                        std::to_string(present));
    entry.at += start;
  }
  if (at != present)
    return file.error("bytes are left over: the tensors end at byte " + std::to_string(at) + ", the data at " +
                      std::to_string(present));
  return SafetensorsHeader{std::move(entries), std::move(header.metadata)};
}

Result<Array> readStored(const InputFile &file, const StoredTensor &tensor) {
  Array array = Array::empty(tensor.type.dtype, tensor.type.shape);
  if (Status status = file.read(tensor.at, array.buffer.data(), tensor.size); !status.ok())
    return status;
  if (array.dtype() == DType::boolean)
    for (uint8_t &value : std::span(array.data<uint8_t>(), array.numBytes()))
      value = value != 0;
  return array;
}

StoredTensor rowsOf(const StoredTensor &tensor, int64_t begin, int64_t end) {
  StoredTensor some = tensor;
  const uint64_t row = tensor.type.shape[0] ? tensor.size / static_cast<uint64_t>(tensor.type.shape[0]) : 0;
  some.type.shape[0] = end - begin;
  some.at += static_cast<uint64_t>(begin) * row;
  some.size = static_cast<uint64_t>(end - begin) * row;
  return some;
}

Result<NamedArrays> readSafetensors(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok())
    return file.take();
  return readSafetensors(*file);
}

Result<NamedArrays> readSafetensors(const InputFile &file) {
  Result<SafetensorsHeader> header = readHeader(file);
  if (!header.ok())
    return header.take();
  NamedArrays contents;
  contents.metadata = std::move(header->metadata);
  contents.arrays.reserve(header->tensors.size());
  for (StoredTensor &tensor : header->tensors) {
    if (tensor.unread) {
      contents.unread.emplace(std::move(tensor.name), std::move(*tensor.unread));
      continue;
    }
    Result<Array> array = readStored(file, tensor);
    if (!array.ok())
      return array.take();
    contents.arrays.emplace_back(std::move(tensor.name), std::move(*array));
  }
  return contents;
}

std::vector<NamedArrays> cutArrays(const NamedArrays &contents, uint64_t most, size_t least) {
  std::vector<NamedArrays> parts;
  uint64_t total = 0, before = 0, size = 0;
  for (const auto &named : contents.arrays)
    total += named.second.numBytes();
  size_t shares = 0; // of the `least` that have begun
  for (size_t i = 0; i < contents.arrays.size(); ++i) {
    uint64_t bytes = contents.arrays[i].second.numBytes();
    bool isFull = parts.empty() || (size > 0 && (bytes > most || size > most - bytes));
    // A share ends where what is before it is nearer to its part of all than with this array, or where each array that
    // is left is needed for a share of its own.
    bool ends =
        shares < least && (shares == 0 || contents.arrays.size() - i <= least - shares ||
                           static_cast<double>(before) + static_cast<double>(bytes) / 2 >=
                               static_cast<double>(total) / static_cast<double>(least) * static_cast<double>(shares));
    if (isFull || ends) {
      parts.emplace_back();
      parts.back().metadata = contents.metadata;
      size = 0;
      shares += ends;
    }
    parts.back().arrays.push_back(contents.arrays[i]);
    size += bytes;
    before += bytes;
  }
  return parts;
}

std::vector<std::span<const std::byte>> SafetensorsImage::pieces() const {
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(start))};
  pieces.insert(pieces.end(), elements.begin(), elements.end());
  return pieces;
}

Result<SafetensorsImage> safetensorsImage(const std::string &path, const NamedArrays &contents) {
  if (const std::string *name =
          twice(contents.arrays, [](const auto &named) -> const std::string & { return named.first; }))
    return fileError(path, "name '" + *name + "' is that of two tensors", "give each tensor its own name");
  std::vector<const std::pair<std::string, Array> *> order;
  order.reserve(contents.arrays.size());
  for (const auto &named : contents.arrays) {
    if (named.first == kMetadata)
      return fileError(path, "name '" + named.first + "' is reserved", "give each tensor its own name");
    order.push_back(&named);
  }
  // Of one width in the order given: the pointers run through one vector.
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
    size_t sizeA = sizeOf(a->second.dtype()), sizeB = sizeOf(b->second.dtype());
    return sizeA != sizeB ? sizeA > sizeB : a < b;
  });

  std::string text = "{";
  bool valid = true;
  if (!contents.metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto &[key, value] : contents.metadata) {
      valid &= appendQuoted(text, key);
      text += ':';
      valid &= appendQuoted(text, value);
      text += ',';
    }
    text.back() = '}';
    text += ',';
  }
  uint64_t at = 0;
  for (const auto *named : order) {
    const Array &array = named->second;
    valid &= appendQuoted(text, named->first);
    text += std::string(":{\"dtype\":\"") + kDTypes[static_cast<int>(array.dtype())] + "\",\"shape\":[";
    for (int64_t size : array.shape())
      text += std::to_string(size) + ",";
    if (text.back() == ',')
      text.pop_back();
    text += "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + array.numBytes()) + "]},";
    at += array.numBytes();
  }
  if (!valid)
    return fileError(path, "a name or metadata entry is not valid UTF-8");
  text.back() == ',' ? void(text.back() = '}') : void(text += '}');
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kLongestHeader)
    return fileError(path, "the header would have " + std::to_string(text.size()) + " bytes; " +
                               std::to_string(kLongestHeader) + " are the most");
  SafetensorsImage image;
  for (int i = 0; i < 8; ++i)
    image.start += static_cast<char>(text.size() >> (8 * i));
  image.start += text;
  for (const auto *named : order)
    image.elements.emplace_back(static_cast<const std::byte *>(named->second.buffer.data()), named->second.numBytes());
  return image;
}

Status writeSafetensors(const std::string &path, const NamedArrays &contents) {
  Result<SafetensorsImage> image = safetensorsImage(path, contents);
  return image.ok() ? writeFile(path, image->pieces()) : image.take();
}

} // namespace wg::runtime
