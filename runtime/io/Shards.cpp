// The index is text that anybody may have written: it is read token by token, and every name of a file is checked.
#include "runtime/io/Shards.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <deque>
#include <set>

namespace wg::runtime {

using Json = nlohmann::json;

static constexpr std::string_view kSuffix = ".safetensors", kIndexSuffix = ".index.json";
static constexpr uint64_t kLongestIndex = 100'000'000;
static constexpr int kTries = 100; ///< openings of an index that is replaced meanwhile

static std::string nameOf(const std::string &path) { return path.substr(path.rfind('/') + 1); } // npos + 1 is 0

namespace {

/// Takes the index's tokens; all but `weight_map` is passed over.
class IndexReader : public nlohmann::json_sax<Json> {
public:
  std::map<std::string, std::string> files; ///< of each tensor
  bool sawMap = false;
  std::string wrong; ///< empty, or what is wrong

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(int64_t) override { return value(); }
  bool number_float(double, const std::string &) override { return value(); }
  bool number_unsigned(uint64_t) override { return value(); }
  bool binary(Json::binary_t &) override { return value(); }
  bool string(std::string &file) override {
    if (depth_ != 2 || !inMap_)
      return value();
    if (file.empty() || file.find('/') != std::string::npos || file == "." || file == ".." ||
        file.find('\0') != std::string::npos)
      return fail("tensor '" + name_ + "' is in '" + file + "', which is not the name of a file beside the index");
    return files.emplace(name_, std::move(file)).second || fail("the weight_map names '" + name_ + "' twice");
  }
  bool key(std::string &key) override {
    if (depth_ == 1 && key == "weight_map" && std::exchange(sawMap, true))
      return fail("has two of weight_map");
    if (depth_ == 1)
      mapNext_ = key == "weight_map";
    else if (depth_ == 2)
      name_ = std::move(key);
    return true;
  }
  bool start_object(size_t) override {
    if (inMap_ && depth_ == 2)
      return value();
    if (++depth_ == 2)
      inMap_ = std::exchange(mapNext_, false);
    return true;
  }
  bool end_object() override {
    if (depth_-- == 2)
      inMap_ = false;
    return true;
  }
  bool start_array(size_t) override {
    if (!value())
      return false;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t position, const std::string &, const Json::exception &) override {
    wrong = "is not a JSON object: its text is damaged at byte " + std::to_string(position);
    return false;
  }

private:
  bool fail(const std::string &problem) {
    wrong = problem;
    return false;
  }
  /// What is neither a string nor an object where one is due.
  bool value() {
    if (depth_ == 0)
      return fail("is not a JSON object");
    if (mapNext_ && depth_ == 1)
      return fail("its weight_map is not an object");
    return !inMap_ || fail("tensor '" + name_ + "' is not in a file: the weight_map has no string for it");
  }
  int depth_ = 0;
  bool mapNext_ = false, inMap_ = false;
  std::string name_;
};

} // namespace

// ---- Reading --------------------------------------------------------------------------------------------------------

Status StoredTensors::add(InputFile file) {
  Result<SafetensorsHeader> header = readHeader(file);
  if (!header.ok())
    return header.take();
  for (StoredTensor &tensor : header->tensors) {
    tensor.file = files_.size();
    tensors_.push_back(std::move(tensor));
  }
  metadata_.merge(header->metadata);
  files_.push_back(std::move(file));
  return {};
}

Status StoredTensors::addShards(const InputFile &index) {
  IndexReader reader;
  {
    Result<std::string> text = index.text();
    if (!text.ok())
      return text.take();
    Json::sax_parse(*text, &reader);
  }
  if (!reader.wrong.empty())
    return index.error(reader.wrong);
  if (!reader.sawMap)
    return index.error("is not an index of shards: it has no weight_map");
  std::set<std::string> shards;
  for (const auto &[name, shard] : reader.files)
    shards.insert(shard);
  for (const std::string &shard : shards) {
    Result<InputFile> file = InputFile::open(directoryOf(path_) + "/" + shard);
    if (!file.ok())
      return file.take();
    size_t before = tensors_.size();
    if (Status status = add(std::move(*file)); !status.ok())
      return status;
    for (size_t i = before; i < tensors_.size(); ++i) {
      auto found = reader.files.find(tensors_[i].name);
      if (found == reader.files.end() || found->second != shard)
        return index.error("does not say that '" + tensors_[i].name + "' is in " + shard + ", where it is");
      reader.files.erase(found);
    }
  }
  if (!reader.files.empty())
    return index.error("says that '" + reader.files.begin()->first + "' is in " + reader.files.begin()->second +
                       ", where it is not");
  return {};
}

/// The index that a path stands for; empty for one file.
static Result<std::string> indexOf(const std::string &path) {
  if (path.ends_with(kIndexSuffix))
    return path;
  if (isRegularFile(path))
    return std::string();
  if (isRegularFile(path + std::string(kIndexSuffix)))
    return path + std::string(kIndexSuffix);
  Result<Directory> directory = Directory::open(path);
  if (!directory.ok())
    return std::string();
  Result<std::vector<std::string>> names = directory->names();
  if (!names.ok())
    return names.take();
  std::erase_if(*names, [](const std::string &name) { return name.starts_with('.') || !name.ends_with(kIndexSuffix); });
  if (names->size() != 1)
    return fileError(path, "is a directory with " + std::to_string(names->size()) + " files *.index.json",
                     "name the file or the index that is to be read");
  return directory->pathOf(names->front());
}

Result<StoredTensors> StoredTensors::open(const std::string &path) {
  Result<std::string> indexPath = indexOf(path);
  if (!indexPath.ok())
    return indexPath.take();
  if (indexPath->empty()) {
    StoredTensors stored(path);
    Result<InputFile> file = InputFile::open(path);
    if (!file.ok())
      return file.take();
    if (Status status = stored.add(std::move(*file)); !status.ok())
      return status;
    return stored;
  }
  for (int times = 1;; ++times) {
    Result<InputFile> index = InputFile::open(*indexPath, kLongestIndex);
    if (!index.ok())
      return index.take();
    StoredTensors stored(*indexPath);
    Status status = stored.addShards(*index);
    // Old shards are removed after their index is replaced: where it is there still, all of them are open.
    if (index->isAt(*indexPath)) {
      if (!status.ok())
        return status;
      return stored;
    }
    if (times == kTries)
      return index->error("is saved again and again while it is read", "read it when its writer is done");
  }
}

// ---- Writing --------------------------------------------------------------------------------------------------------

/// `-00001-of-00002.safetensors`
static std::string tailOf(size_t number, size_t count) {
  auto digits = [](size_t value) {
    std::string text = std::to_string(value);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return "-" + digits(number) + "-of-" + digits(count) + std::string(kSuffix);
}

/// Is it the name of a shard of these weights, of whatever save?
static bool isShard(std::string_view name, std::string_view base) {
  if (!name.starts_with(base) || !name.ends_with(kSuffix) || name.size() <= base.size() + kSuffix.size())
    return false;
  name = name.substr(base.size(), name.size() - base.size() - kSuffix.size());
  size_t of = name.find("-of-");
  if (of == std::string_view::npos || name[0] != '-')
    return false;
  auto isNumber = [](std::string_view text, size_t digits) {
    return text.size() >= digits && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  std::string_view before = name.substr(1, of - 1);
  size_t dash = before.find('-');
  return isNumber(name.substr(of + 4), 5) &&
         (dash == std::string_view::npos ? isNumber(before, 5)
                                         : isNumber(before.substr(0, dash), 1) && isNumber(before.substr(dash + 1), 5));
}

/// The index of arrays that are in these files.
static std::string indexText(std::span<const NamedArrays> parts, std::span<const std::string> names) {
  std::map<std::string_view, size_t> files;
  uint64_t total = 0;
  for (size_t i = 0; i < parts.size(); ++i)
    for (const auto &[name, array] : parts[i].arrays) {
      files[name] = i;
      total += array.numBytes();
    }
  std::string text =
      "{\n  \"metadata\": {\n    \"total_size\": " + std::to_string(total) + "\n  },\n  \"weight_map\": {";
  const char *separator = "\n    ";
  for (const auto &[name, i] : files) {
    text += std::exchange(separator, ",\n    ");
    appendQuoted(text, name);
    text += ": ";
    appendQuoted(text, names[i]);
  }
  return text + "\n  }\n}\n";
}

namespace {

/// Weights that are being written to a path.
class ShardWriter {
public:
  ShardWriter(const std::string &path, const NamedArrays &contents)
      : path_(path), contents_(contents),
        whole_(path.ends_with(kIndexSuffix) ? path.substr(0, path.size() - kIndexSuffix.size()) : path),
        base_(nameOf(whole_)), index_(whole_ + std::string(kIndexSuffix)) {
    if (base_.ends_with(kSuffix))
      base_.resize(base_.size() - kSuffix.size());
  }

  Status open(bool first) {
    // Names are checked together: two shards may not have the same one.
    if (Result<SafetensorsImage> all = safetensorsImage(path_, contents_); !all.ok())
      return all.take();
    Result<Directory> directory = Directory::open(directoryOf(whole_));
    if (!directory.ok())
      return directory.take();
    directory_.emplace(std::move(*directory));
    if (first)
      directory_->lock();
    Result<std::vector<std::string>> before = directory_->names();
    if (!before.ok())
      return before.take();
    before_ = std::move(*before);
    return {};
  }
  /// In one file.
  Status writeWhole() {
    if (Status status = writeSafetensors(whole_, contents_); !status.ok())
      return status;
    directory_->remove(nameOf(index_));
    removeOld();
    return {};
  }
  /// A number that no file has, so that the shards of the old index stay what they are.
  int freeTurn(size_t count) {
    for (int turn = 1;; ++turn) {
      name(turn, count);
      if (std::ranges::none_of(names_, [&](const std::string &name) { return isThere(name); }))
        return turn;
    }
  }
  void name(int turn, size_t count) {
    names_.resize(count);
    for (size_t i = 0; i < count; ++i)
      names_[i] = base_ + (turn == 1 ? "" : "-" + std::to_string(turn)) + tailOf(i + 1, count);
  }
  /// Those of a rank.
  Status write(std::span<const NamedArrays> parts, const Together &together) {
    std::deque<SafetensorsImage> images;
    std::vector<FileContents> files;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!together.isMine(i))
        continue;
      Result<SafetensorsImage> image = safetensorsImage(path_, parts[i]);
      if (!image.ok())
        return image.take();
      images.push_back(std::move(*image));
      files.push_back({directory_->pathOf(names_[i]), images.back().pieces()});
    }
    return writeFiles(files);
  }
  /// The index names them: they are the weights.
  Status finish(std::span<const NamedArrays> parts) {
    if (Status status = writeFile(index_, indexText(parts, names_)); !status.ok())
      return status;
    if (isRegularFile(whole_))
      directory_->remove(nameOf(whole_));
    removeOld();
    return {};
  }
  /// Are the shards of the other ranks where this one is?
  Status lookFor(std::span<const NamedArrays> parts, const Together &together) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (together.isMine(i))
        continue;
      Result<SafetensorsImage> image = safetensorsImage(path_, parts[i]);
      if (!image.ok())
        return image.take();
      uint64_t size = 0;
      for (std::span<const std::byte> piece : image->pieces())
        size += piece.size();
      if (Result<InputFile> file = directory_->file(names_[i]); !file.ok() || file->size() != size)
        return fileError(directory_->pathOf(names_[i]), "was to be written by another rank, and is not there",
                         "name a directory that all ranks see");
    }
    return {};
  }
  void undo(const Together &together) {
    for (size_t i = 0; i < names_.size(); ++i)
      if (together.isMine(i))
        directory_->remove(names_[i]);
  }

private:
  bool isThere(const std::string &name) const { return std::ranges::binary_search(before_, name); }
  void removeOld() {
    for (const std::string &name : before_)
      if (isShard(name, base_))
        directory_->remove(name);
  }
  const std::string &path_;
  const NamedArrays &contents_;
  const std::string whole_;
  std::string base_;
  const std::string index_;
  std::optional<Directory> directory_;
  std::vector<std::string> before_, names_; ///< what was there; of the shards
};

} // namespace

Status writeShards(const std::string &path, const NamedArrays &contents, uint64_t most, const Together &together) {
  const bool first = together.rank() == 0;
  const std::string what = "write its part of " + path;
  std::vector<NamedArrays> parts = cutArrays(contents, most, together.size());
  ShardWriter writer(path, contents);
  if (Status status = together.agree(writer.open(first), what); !status.ok())
    return status;
  if (parts.size() <= 1)
    return together.agree(first ? writer.writeWhole() : Status(), what);
  Result<std::vector<int>> turns = together.gather(std::vector<int>{first ? writer.freeTurn(parts.size()) : 0});
  if (!turns.ok())
    return turns.take();
  writer.name(turns->front(), parts.size());
  // Where the transport has failed, the first may have written the index that names these shards: they stay.
  bool allKnow = true;
  Status status = together.agree(writer.write(parts, together), what, &allKnow);
  if (status.ok()) {
    Status own = first ? writer.lookFor(parts, together) : Status();
    if (first && own.ok())
      own = writer.finish(parts);
    status = together.agree(std::move(own), what, &allKnow);
  }
  if (!status.ok() && allKnow)
    writer.undo(together);
  return status;
}

} // namespace wg::runtime
