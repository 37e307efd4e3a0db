#include "runtime/io/Npy.h"

#include "runtime/Op.h"
#include "runtime/io/File.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

namespace wg::runtime {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

namespace {

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortranOrder;
  std::optional<Ints> shape;
};

/// A dict literal of the three known keys, each once: the part of Python that the format uses.
class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  /// The empty string, or what is wrong.
  std::string parse(Header &header) {
    if (!take('{'))
      return "it is not a dict";
    while (!take('}')) {
      std::optional<std::string> key = quoted();
      if (!key || !take(':'))
        return "a key is expected at character " + std::to_string(at_);
      if (*key == "descr" && !header.descr) {
        header.descr = quoted();
        if (!header.descr)
          return "descr is not a string: structured dtypes are not read";
      } else if (*key == "fortran_order" && !header.fortranOrder) {
        if (word("True"))
          header.fortranOrder = true;
        else if (word("False"))
          header.fortranOrder = false;
        else
          return "fortran_order is neither True nor False";
      } else if (*key == "shape" && !header.shape) {
        if (std::string wrong = shape(header.shape.emplace()); !wrong.empty())
          return wrong;
      } else {
        return "key '" + *key + "' is unknown or there twice";
      }
      if (!take(',') && !next('}'))
        return "a comma is expected at character " + std::to_string(at_);
    }
    skip();
    if (at_ != text_.size())
      return "text is left over at character " + std::to_string(at_);
    if (!header.descr || !header.fortranOrder || !header.shape)
      return "descr, fortran_order or shape is missing";
    return {};
  }

private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  bool next(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    if (!next(c))
      return false;
    ++at_;
    return true;
  }
  bool word(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word)
      return false;
    at_ += word.size();
    return true;
  }
  std::optional<std::string> quoted() {
    char quote = next('"') ? '"' : '\'';
    if (!take(quote))
      return std::nullopt;
    size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos)
      return std::nullopt;
    std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }
  std::string shape(Ints &sizes) {
    if (!take('('))
      return "shape is not a tuple";
    while (!take(')')) {
      skip();
      int64_t size = -1;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0)
        return "a size is expected at character " + std::to_string(at_);
      at_ = static_cast<size_t>(end - text_.data());
      if (sizes.size() == kMaxRank)
        return "the rank is above " + std::to_string(kMaxRank);
      sizes.push_back(size);
      if (!take(',') && !next(')'))
        return "a comma is expected at character " + std::to_string(at_);
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
};

struct Code {
  DType dtype;
  const char *code;
};
constexpr Code kCodes[] = {{DType::f64, "f8"}, {DType::f32, "f4"}, {DType::f16, "f2"},    {DType::i64, "i8"},
                           {DType::i32, "i4"}, {DType::u8, "u1"},  {DType::boolean, "b1"}};

void swapBytes(Array &array) {
  size_t size = sizeOf(array.dtype());
  auto *bytes = static_cast<uint8_t *>(array.buffer.data());
  for (size_t i = 0; size > 1 && i < array.numBytes(); i += size)
    std::reverse(bytes + i, bytes + i + size);
}

/// A file as a whole.
class FileSource : public ByteSource {
public:
  explicit FileSource(const InputFile &file) : file_(file) {}
  uint64_t size() const override { return file_.size(); }
  Status read(void *data, size_t size) override {
    Status status = file_.read(at_, data, size);
    at_ += size;
    return status;
  }
  Failure error(const std::string &message, std::string remedy) const override {
    return file_.error(message, std::move(remedy));
  }

private:
  const InputFile &file_;
  uint64_t at_ = 0;
};

} // namespace

Result<Array> readNpy(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  return file.ok() ? readNpy(*file) : file.take();
}

Result<Array> readNpy(const InputFile &file) {
  FileSource source(file);
  return readNpy(source);
}

Result<Array> readNpy(ByteSource &file) {
  uint8_t start[12] = {};
  if (file.size() < 10)
    return file.error("is not a .npy file: it has " + std::to_string(file.size()) + " bytes");
  if (Status status = file.read(start, 10); !status.ok())
    return status;
  if (std::memcmp(start, "\x93NUMPY", 6) != 0)
    return file.error("is not a .npy file: it does not start with \\x93NUMPY",
                      readerOf({reinterpret_cast<const char *>(start), 10}));
  int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0)
    return file.error("has version " + std::to_string(version) + "." + std::to_string(start[7]) +
                      "; 1.0, 2.0 and 3.0 are read");
  uint64_t headerAt = version == 1 ? 10 : 12;
  if (version > 1 && file.size() >= headerAt)
    if (Status status = file.read(start + 10, 2); !status.ok())
      return status;
  uint64_t headerSize =
      version == 1 ? start[8] | start[9] << 8 : start[8] | start[9] << 8 | start[10] << 16 | uint64_t(start[11]) << 24;
  if (headerAt > file.size() || headerSize > file.size() - headerAt)
    return file.error("truncated: the header has " + std::to_string(headerSize) + " bytes, the file " +
                      std::to_string(file.size()));
  if (headerSize > (1 << 20))
    return file.error("the header has " + std::to_string(headerSize) + " bytes; 1048576 are the most");
  std::string text(headerSize, ' ');
  if (Status status = file.read(text.data(), headerSize); !status.ok())
    return status;

  Header header;
  if (std::string wrong = Parser(text).parse(header); !wrong.empty())
    return file.error("the header is damaged: " + wrong);
  const Code *code = std::find_if(std::begin(kCodes), std::end(kCodes), [&](const Code &c) {
    return header.descr->size() == 3 && header.descr->substr(1) == c.code &&
           std::string_view("<>=|").find((*header.descr)[0]) != std::string_view::npos;
  });
  if (code == std::end(kCodes))
    return file.error("has dtype '" + *header.descr + "'; f8, f4, f2, i8, i4, u1 and b1 are read",
                      "convert it: array.astype('float32')");
  std::optional<uint64_t> needed = bytesOf(code->dtype, *header.shape);
  uint64_t present = file.size() - headerAt - headerSize;
  if (!needed || *needed != present)
    return file.error((!needed || *needed > present ? "truncated: shape " : "bytes are left over: shape ") +
                      toString(Shape(*header.shape)) + " of " + std::string(nameOf(code->dtype)) + " needs " +
                      (needed ? std::to_string(*needed) : "more than 2^56") + " bytes, there are " +
                      std::to_string(present));
  size_t bytes = *needed;

  bool transposed = *header.fortranOrder && header.shape->size() > 1;
  if (transposed)
    std::reverse(header.shape->begin(), header.shape->end());
  Array array = Array::empty(code->dtype, Shape(*header.shape));
  if (Status status = file.read(array.buffer.data(), bytes); !status.ok())
    return status;
  if ((*header.descr)[0] == '>')
    swapBytes(array);
  if (array.dtype() == DType::boolean)
    for (uint8_t &value : std::span(array.data<uint8_t>(), bytes))
      value = value != 0;
  if (transposed) {
    Ints reversed;
    for (size_t axis = header.shape->size(); axis-- > 0;)
      reversed.push_back(static_cast<int64_t>(axis));
    Array inOrder;
    if (Status status = execute({OpId::transpose, TransposeAttrs::make(reversed), std::span(&array, 1), {}},
                                std::span(&inOrder, 1));
        !status.ok())
      return status;
    return inOrder;
  }
  return array;
}

std::string npyStart(const Array &array) {
  const Code *code =
      std::find_if(std::begin(kCodes), std::end(kCodes), [&](const Code &c) { return c.dtype == array.dtype(); });
  if (code == std::end(kCodes))
    return {};
  std::string text = std::string("{'descr': '") + (sizeOf(array.dtype()) == 1 ? '|' : '<') + code->code +
                     "', 'fortran_order': False, 'shape': " + toString(array.shape()) + ", }";
  // The elements start at a multiple of 64; the header ends with a newline.
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(text.size() & 255);
  start += static_cast<char>(text.size() >> 8);
  return start + text;
}

Failure npyLacks(const std::string &path, DType dtype) {
  return {.kind = ErrorKind::unimplemented,
          .message = path + ": .npy has no " + std::string(nameOf(dtype)),
          .remedy = "cast to f32: cast(x, f32)"};
}

Status writeNpy(std::span<const std::string> paths, std::span<const Array> arrays) {
  std::vector<std::string> starts(paths.size());
  std::vector<FileContents> files;
  for (size_t i = 0; i < paths.size(); ++i) {
    const Array &array = arrays[i];
    starts[i] = npyStart(array);
    if (starts[i].empty())
      return npyLacks(paths[i], array.dtype());
    files.push_back({paths[i],
                     {std::as_bytes(std::span(starts[i])),
                      {static_cast<const std::byte *>(array.buffer.data()), array.numBytes()}}});
  }
  return writeFiles(files);
}

Status writeNpy(const std::string &path, const Array &array) {
  return writeNpy(std::span(&path, 1), std::span(&array, 1));
}

} // namespace wg::runtime
