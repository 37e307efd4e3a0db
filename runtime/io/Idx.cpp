#include "runtime/io/Idx.h"

#include "runtime/io/File.h"

#include <bit>
#include <new>
#include <vector>

#include <zlib.h>

namespace wg::runtime {

namespace {

/// The bytes of a file, unpacked if it is gzip data of one or several members. What is
/// left over after them is an error.
class Unpacked {
public:
  explicit Unpacked(const InputFile &file) : file_(file) {}
  Unpacked(const Unpacked &) = delete;
  ~Unpacked() {
    if (packed_)
      ::inflateEnd(&stream_);
  }

  /// Up to `size` bytes; fewer only at the end.
  Result<size_t> read(void *data, size_t size) {
    if (at_ == 0 && !packed_)
      if (Status status = begin(); !status.ok())
        return status;
    auto *out = static_cast<uint8_t *>(data);
    size_t total = 0;
    if (!packed_) {
      total = std::min<uint64_t>(size, file_.size() - at_);
      Status status = file_.read(at_, out, total);
      at_ += total;
      return status.ok() ? Result<size_t>(total) : status.take();
    }
    while (total < size && !ended_) {
      auto room = static_cast<uInt>(std::min(size - total, size_t(1) << 30));
      stream_.next_out = out + total;
      stream_.avail_out = room;
      if (stream_.avail_in == 0)
        if (Status status = fill(); !status.ok())
          return status;
      uInt before = stream_.avail_in;
      int code = ::inflate(&stream_, Z_NO_FLUSH);
      total += room - stream_.avail_out;
      if (code == Z_MEM_ERROR)
        throw std::bad_alloc();
      if (code == Z_STREAM_END)
        ended_ = stream_.avail_in == 0 && at_ == file_.size();
      if (code == Z_STREAM_END && !ended_ && ::inflateReset(&stream_) == Z_OK)
        continue; // the next member
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return file_.error(std::string("damaged gzip data: ") + (stream_.msg ? stream_.msg : "not as the format asks"));
      if (!ended_ && before == 0 && stream_.avail_out == room)
        return file_.error("truncated: the gzip data ends early", "download it again");
    }
    return total;
  }

private:
  Status begin() {
    uint8_t magic[2] = {};
    if (file_.size() >= 2)
      if (Status status = file_.read(0, magic, 2); !status.ok())
        return status;
    if (magic[0] != 0x1f || magic[1] != 0x8b)
      return {};
    if (::inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK)
      throw std::bad_alloc();
    packed_ = true;
    return {};
  }
  Status fill() {
    auto size = static_cast<uInt>(std::min<uint64_t>(sizeof input_, file_.size() - at_));
    if (Status status = file_.read(at_, input_, size); !status.ok())
      return status;
    at_ += size;
    stream_.next_in = input_;
    stream_.avail_in = size;
    return {};
  }

  const InputFile &file_;
  uint64_t at_ = 0; ///< the next byte of the file
  bool packed_ = false, ended_ = false;
  z_stream stream_ = {};
  uint8_t input_[size_t(16) << 10];
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
  Result<InputFile> opened = InputFile::open(path);
  if (!opened.ok())
    return opened.take();
  Unpacked file(*opened);

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
    return fileError(path,
                     "truncated: the header has " + std::to_string(4 + *got) + " of " + std::to_string(4 + 4 * rank) +
                         " bytes",
                     "download it again");
  Shape shape;
  for (size_t axis = 0; axis < rank; ++axis) {
    uint32_t size = bigEndian<uint32_t>(header + 4 + 4 * axis);
    shape.push_back(size);
  }
  // i8 and i16 become i32, so four bytes are the least.
  if (!bytesOf(elementSize == 8 ? DType::f64 : DType::f32, shape))
    return fileError(path, "the header's sizes " + toString(shape) + " are more than any file holds");
  size_t bytes = static_cast<size_t>(shape.numElements()) * elementSize;

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
    return fileError(path,
                     "truncated: the header promises " + std::to_string(bytes) + " bytes of elements, there are " +
                         std::to_string(data.size()),
                     "download it again");
  if (data.size() > bytes)
    return fileError(path, "bytes are left over after the " + std::to_string(bytes) +
                               " bytes of elements that the header promises");

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
