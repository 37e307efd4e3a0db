// Zip archives, of which .npz files and packages are made: named entries, stored or packed by deflate, with zip64 where
// an entry or the archive has 4 GiB or more, or the archive more than 65,534 entries.
#pragma once

#include "runtime/io/File.h"

#include <zlib.h>

#include <array>
#include <string>
#include <vector>

namespace wg::runtime {

struct ZipEntry {
  std::string name;
  uint64_t at;       ///< of its header
  uint64_t data = 0; ///< of its bytes
  uint64_t packed, size;
  uint32_t checksum;
  uint16_t flags, method; ///< method 0: stored, 8: deflate
};

/// What an archive's directory says, in its order. All of it is checked against the file and the entries' own headers
/// before anything is unpacked: places, sizes, that entries do not overlap and that no size is beyond what deflate can
/// pack. Names are distinct UTF-8 without NUL. Entries that are encrypted or packed otherwise: a Failure, which calls
/// the file by its `kind`: `is not a .npz file`.
Result<std::vector<ZipEntry>> readZip(const InputFile &file, const std::string &kind);

/// What is wrong with an entry: `PATH: entry 'NAME': ...`.
Failure zipEntryError(const InputFile &file, const ZipEntry &entry, const std::string &message,
                      std::string remedy = {});

/// The bytes of one entry as they were packed; their number and checksum are compared with the directory's in the end.
class ZipSource : public ByteSource {
public:
  /// Both outlive it.
  ZipSource(const InputFile &file, const ZipEntry &entry);
  ZipSource(const ZipSource &) = delete;
  ~ZipSource() override;
  uint64_t size() const override { return entry_.size; }
  Failure error(const std::string &message, std::string remedy = {}) const override;
  Status read(void *data, size_t size) override;
  /// After the last byte: nothing is left over, and the checksum is right.
  Status finish();

private:
  Status inflate(uint8_t *data, size_t size);
  Status step(uint8_t *data, size_t room, size_t &made);

  const InputFile &file_;
  const ZipEntry &entry_;
  uint64_t at_ = 0; ///< the next byte as it is packed
  bool ended_ = false;
  uLong checksum_ = 0;
  z_stream stream_ = {};
  std::array<uint8_t, size_t(16) << 10> input_;
};

/// An entry to be written: its bytes are the pieces, one after the other.
struct ZipPart {
  std::string name; ///< UTF-8 of at most 65,535 bytes
  std::vector<std::span<const std::byte>> pieces;
};

/// An archive in memory: the pieces of the file, of which some are those of its parts.
struct ZipImage {
  std::vector<std::span<const std::byte>> pieces;
  std::vector<std::string> headers; ///< what the other pieces point into
};

/// The archive of the parts in their order, stored, each one's first byte at a multiple of `alignment`, a power of two.
/// Equal parts make equal bytes. `most` is the largest number that is written without zip64.
ZipImage zipImage(std::span<const ZipPart> parts, uint64_t alignment = 1, uint64_t most = 0xfffffffe);

/// Writes that archive, all or nothing (writeFiles).
Status writeZip(const std::string &path, std::span<const ZipPart> parts, uint64_t alignment = 1);

} // namespace wg::runtime
