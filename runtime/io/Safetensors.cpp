#include "runtime/io/Safetensors.h"

#include "runtime/io/File.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace wg::runtime {

using Json = nlohmann::json;

static constexpr const char *kMetadata = "__metadata__";
static constexpr uint64_t kLongestHeader = 100'000'000; // as in the reference implementation
static constexpr const char *kDTypes[kNumDTypes] = {"F64", "F32", "BF16", "F16", "I64", "I32", "U8", "BOOL"};

static std::optional<uint64_t> unsignedOf(const Json &value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  return value.get<uint64_t>();
}

namespace {
/// One entry of the header, checked.
struct Entry {
  std::string name;
  TensorType type;
  uint64_t begin, end;
  std::string otherDType; ///< one that is not ours; then `type` has no meaning
};
} // namespace

/// The empty string, or what is wrong with an entry.
static std::string parseEntry(const Json &json, Entry &entry) {
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") || !json.contains("data_offsets"))
    return "is not an object of dtype, shape and data_offsets";
  const Json &dtype = json["dtype"], &shape = json["shape"], &offsets = json["data_offsets"];
  if (!dtype.is_string())
    return "its dtype is not a string";
  auto found = std::find(std::begin(kDTypes), std::end(kDTypes), dtype.get<std::string>());
  if (found == std::end(kDTypes))
    entry.otherDType = dtype.get<std::string>();
  else
    entry.type.dtype = static_cast<DType>(found - std::begin(kDTypes));
  if (!shape.is_array() || shape.size() > kMaxRank)
    return "its shape is not a list of at most " + std::to_string(kMaxRank) + " sizes";
  uint64_t bytes = sizeOf(entry.type.dtype);
  bool beyond = false, empty = false;
  for (const Json &element : shape) {
    std::optional<uint64_t> size = unsignedOf(element);
    if (!size)
      return "has a size that is no natural number: " + element.dump();
    entry.type.shape.push_back(static_cast<int64_t>(*size));
    empty |= *size == 0;
    beyond |= __builtin_mul_overflow(bytes, std::max<uint64_t>(*size, 1), &bytes);
  }
  if (beyond && entry.otherDType.empty())
    return toString(entry.type) + " is larger than any file";
  std::optional<uint64_t> begin, end;
  if (offsets.is_array() && offsets.size() == 2)
    begin = unsignedOf(offsets[0]), end = unsignedOf(offsets[1]);
  if (!begin || !end || *begin > *end)
    return "its data_offsets are not a begin and an end: " + offsets.dump();
  entry.begin = *begin;
  entry.end = *end;
  if (entry.otherDType.empty() && entry.end - entry.begin != (empty ? 0 : bytes))
    return toString(entry.type) + " has " + std::to_string(empty ? 0 : bytes) + " bytes, its data_offsets hold " + std::to_string(entry.end - entry.begin);
  return {};
}

Result<NamedArrays> readSafetensors(const std::string &path) {
  Result<InputFile> opened = InputFile::open(path);
  if (!opened.ok())
    return opened.take();
  const InputFile &file = *opened;
  uint8_t prefix[8];
  if (file.size() < 8)
    return file.error("is not a safetensors file: it has " + std::to_string(file.size()) + " bytes");
  if (Status status = file.read(0, prefix, 8); !status.ok())
    return status;
  uint64_t headerSize = 0;
  for (int i = 8; i-- > 0;)
    headerSize = headerSize << 8 | prefix[i];
  if (headerSize > file.size() - 8)
    return file.error("is truncated or not a safetensors file: the header has " + std::to_string(headerSize) + " bytes, the file " +
                      std::to_string(file.size()));
  if (headerSize > kLongestHeader)
    return file.error("the header has " + std::to_string(headerSize) + " bytes; " + std::to_string(kLongestHeader) + " are the most");
  std::string text(headerSize, ' ');
  if (Status status = file.read(8, text.data(), headerSize); !status.ok())
    return status;

  // The parser keeps the last of equal keys; here they are an error.
  std::set<std::string> names;
  std::string twice;
  auto watch = [&](int depth, Json::parse_event_t event, Json &parsed) {
    if (event == Json::parse_event_t::key && depth == 1 && !names.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  Json header = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object() || text[0] != '{')
    return file.error("the header is not a JSON object");
  if (!twice.empty())
    return file.error("the header names '" + twice + "' twice");

  NamedArrays contents;
  std::vector<Entry> entries;
  for (const auto &[name, json] : header.items()) {
    if (name == kMetadata) {
      if (!json.is_object())
        return file.error("__metadata__ is not an object");
      for (const auto &[key, value] : json.items()) {
        if (!value.is_string())
          return file.error("__metadata__ holds '" + key + "', which is not a string");
        contents.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    Entry entry{name, {}, 0, 0, {}};
    if (std::string wrong = parseEntry(json, entry); !wrong.empty())
      return file.error("tensor '" + name + "': " + wrong);
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name); });
  uint64_t at = 0, present = file.size() - 8 - headerSize;
  for (const Entry &entry : entries) {
    if (entry.begin != at)
      return file.error("tensor '" + entry.name + "' begins at byte " + std::to_string(entry.begin) + (entry.begin < at ? " and overlaps" : " and leaves a gap after") +
                        " the one before, which ends at " + std::to_string(at));
    if (entry.end > present)
      return file.error("truncated: tensor '" + entry.name + "' ends at byte " + std::to_string(entry.end) + ", the data at " + std::to_string(present));
    at = entry.end;
  }
  if (at != present)
    return file.error("bytes are left over: the tensors end at byte " + std::to_string(at) + ", the data at " + std::to_string(present));

  for (Entry &entry : entries) {
    if (!entry.otherDType.empty()) {
      contents.unread[entry.name] = entry.otherDType;
      continue;
    }
    Array array = Array::empty(entry.type.dtype, entry.type.shape);
    if (Status status = file.read(8 + headerSize + entry.begin, array.buffer.data(), entry.end - entry.begin); !status.ok())
      return status;
    if (array.dtype() == DType::boolean)
      for (uint8_t &value : std::span(array.data<uint8_t>(), array.numBytes()))
        value = value != 0;
    contents.arrays.emplace_back(std::move(entry.name), std::move(array));
  }
  return contents;
}

Status writeSafetensors(const std::string &path, const NamedArrays &contents) {
  std::vector<const std::pair<std::string, Array> *> order;
  std::set<std::string> names;
  for (const auto &named : contents.arrays) {
    if (named.first == kMetadata || !names.insert(named.first).second)
      return fileError(path, "name '" + named.first + "' " + (named.first == kMetadata ? "is reserved" : "stands twice"), "give each tensor its own name");
    order.push_back(&named);
  }
  // Of one width in the order given: the pointers run through one vector.
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
    size_t sizeA = sizeOf(a->second.dtype()), sizeB = sizeOf(b->second.dtype());
    return sizeA != sizeB ? sizeA > sizeB : a < b;
  });
  Json header = Json::object();
  if (!contents.metadata.empty())
    header[kMetadata] = contents.metadata;
  uint64_t at = 0;
  for (const auto *named : order) {
    const Array &array = named->second;
    Json &entry = header[named->first];
    entry["dtype"] = kDTypes[static_cast<int>(array.dtype())];
    entry["shape"] = std::vector<int64_t>(array.shape().begin(), array.shape().end());
    entry["data_offsets"] = {at, at + array.numBytes()};
    at += array.numBytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception &) { // the only reason: a name that is no text
    return fileError(path, "a name or metadata entry is not valid UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kLongestHeader)
    return fileError(path, "the header would have " + std::to_string(text.size()) + " bytes; " + std::to_string(kLongestHeader) + " are the most");
  uint8_t prefix[8];
  for (int i = 0; i < 8; ++i)
    prefix[i] = static_cast<uint8_t>(text.size() >> (8 * i));
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(prefix)), std::as_bytes(std::span(text))};
  for (const auto *named : order)
    pieces.emplace_back(static_cast<const std::byte *>(named->second.buffer.data()), named->second.numBytes());
  return writeFile(path, pieces);
}

} // namespace wg::runtime
