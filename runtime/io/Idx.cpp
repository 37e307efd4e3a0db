#include "runtime/io/Idx.h"

#include "runtime/io/File.h"

#include <bit>
#include <memory>
#include <vector>

#include <zlib.h>

namespace wg::runtime {

namespace {

/// zlib reads compressed and plain files alike.
class GzReader {
public:
  static Result<std::unique_ptr<GzReader>> open(const std::string &path) {
    Result<InputFile> file = InputFile::open(path); // says what is wrong with the path
    if (!file.ok())
      return file.take();
    gzFile opened = ::gzopen(path.c_str(), "rb");
    if (!opened)
      return fileError(path, "cannot open");
    return std::unique_ptr<GzReader>(new GzReader(path, opened));
  }
  ~GzReader() { ::gzclose_r(file_); }

  /// Up to `size` bytes; fewer only at the end of the file.
  Result<size_t> read(void *data, size_t size) {
    size_t total = 0;
    while (total < size) {
      int got = ::gzread(file_, static_cast<char *>(data) + total, static_cast<unsigned>(std::min(size - total, size_t(1) << 20)));
      if (got < 0) {
        int code;
        return fileError(path_, std::string("damaged gzip data: ") + ::gzerror(file_, &code));
      }
      if (got == 0) {
        int code; // zlib reports a cut stream as the end plus this
        ::gzerror(file_, &code);
        if (code == Z_BUF_ERROR)
          return fileError(path_, "truncated: the gzip data ends early", "download it again");
        break;
      }
      total += static_cast<size_t>(got);
    }
    return total;
  }

private:
  GzReader(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}
  std::string path_;
  gzFile file_;
};

template <class T> T bigEndian(const uint8_t *bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value = value << 8 | bytes[i];
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(value));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(value);
  else
    return static_cast<T>(value);
}

template <class From, class To> Array decode(const std::vector<uint8_t> &bytes, const Shape &shape) {
  Array array = Array::empty(dtypeOf<To>, shape);
  To *out = array.data<To>();
  for (size_t i = 0; i * sizeof(From) < bytes.size(); ++i)
    out[i] = static_cast<To>(bigEndian<From>(bytes.data() + i * sizeof(From)));
  return array;
}

} // namespace

Result<Array> readIdx(const std::string &path) {
  Result<std::unique_ptr<GzReader>> opened = GzReader::open(path);
  if (!opened.ok())
    return opened.take();
  GzReader &file = **opened;

  uint8_t header[4 + 4 * kMaxRank];
  Result<size_t> got = file.read(header, 4);
  if (!got.ok())
    return got.take();
  if (*got < 4 || header[0] != 0 || header[1] != 0)
    return fileError(path, "is not an IDX file: it does not start with two zero bytes, a type and a rank");
  size_t elementSize;
  switch (header[2]) {
  case 0x08:
  case 0x09: elementSize = 1; break;
  case 0x0B: elementSize = 2; break;
  case 0x0C:
  case 0x0D: elementSize = 4; break;
  case 0x0E: elementSize = 8; break;
  default: return fileError(path, "is not an IDX file: there is no element type " + std::to_string(header[2]));
  }
  size_t rank = header[3];
  if (rank > kMaxRank)
    return fileError(path, "has rank " + std::to_string(rank) + "; the highest is " + std::to_string(kMaxRank));
  got = file.read(header + 4, 4 * rank);
  if (!got.ok())
    return got.take();
  if (*got < 4 * rank)
    return fileError(path, "truncated: the header has " + std::to_string(4 + *got) + " of " + std::to_string(4 + 4 * rank) + " bytes",
                     "download it again");
  Shape shape;
  size_t bytes = elementSize;
  bool beyond = false, empty = false;
  for (size_t axis = 0; axis < rank; ++axis) {
    uint32_t size = bigEndian<uint32_t>(header + 4 + 4 * axis);
    shape.push_back(size);
    empty |= size == 0;
    beyond |= __builtin_mul_overflow(bytes, static_cast<size_t>(std::max(size, 1u)), &bytes);
  }
  if (beyond || bytes > (size_t(1) << 47))
    return fileError(path, "the header's sizes " + toString(shape) + " are more than any file holds");
  if (empty)
    bytes = 0;

  // One byte more than promised is asked for, to see what is left over.
  std::vector<uint8_t> data;
  constexpr size_t kStep = size_t(64) << 10;
  for (bool more = true; more && data.size() <= bytes;) {
    size_t old = data.size(), step = std::min(std::max(kStep, old), bytes + 1 - old);
    data.resize(old + step);
    got = file.read(data.data() + old, step);
    if (!got.ok())
      return got.take();
    data.resize(old + *got);
    more = *got == step;
  }
  if (data.size() < bytes)
    return fileError(path, "truncated: the header promises " + std::to_string(bytes) + " bytes of elements, there are " + std::to_string(data.size()),
                     "download it again");
  if (data.size() > bytes)
    return fileError(path, "bytes are left over after the " + std::to_string(bytes) + " bytes of elements that the header promises");

  switch (header[2]) {
  case 0x08: return decode<uint8_t, uint8_t>(data, shape);
  case 0x09: return decode<int8_t, int32_t>(data, shape);
  case 0x0B: return decode<int16_t, int32_t>(data, shape);
  case 0x0C: return decode<int32_t, int32_t>(data, shape);
  case 0x0D: return decode<float, float>(data, shape);
  default: return decode<double, double>(data, shape);
  }
}

} // namespace wg::runtime
