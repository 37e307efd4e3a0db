// Folders of tests, what is in them, and bits of tensors.
#pragma once

#include <wengert/wengert.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace wg::tests {

/// An empty folder of its own, removed in the end.
class Folder {
public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "wengert-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  Folder(const Folder &) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const std::string &name) const { return (path_ / name).string(); }

private:
  std::filesystem::path path_;
};

inline std::string bytesOf(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The bytes of a file, or of each file in a folder by its name.
inline std::map<std::string, std::string> contents(const std::string &path) {
  std::map<std::string, std::string> all;
  if (!std::filesystem::is_directory(path))
    return {{"", bytesOf(path)}};
  for (const auto &entry : std::filesystem::directory_iterator(path))
    all[entry.path().filename().string()] = bytesOf(entry.path());
  return all;
}

inline bool sameBits(const Tensor &a, const Tensor &b) {
  std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (x.empty() || std::memcmp(x.data(), y.data(), 8 * x.size()) == 0);
}

} // namespace wg::tests
