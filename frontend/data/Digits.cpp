// The 1,797 digits of data/digits.txt, taken into the library when it is built: one line an example, 64 letters of
// `0123456789abcdefg` and the class.
#include "wengert/data/Dataset.h"

#include <string_view>

static constexpr std::string_view kDigits =
#include "frontend/Digits.inc"
    ;

namespace wg::data {

Split digits() {
  constexpr size_t kPixels = 64, kLine = kPixels + 3;
  std::vector<float> pixels[2];
  std::vector<int32_t> classes[2];
  for (size_t row = 0; row * kLine < kDigits.size(); ++row) {
    std::string_view line = kDigits.substr(row * kLine, kLine);
    size_t part = row % 5 == 4;
    for (char letter : line.substr(0, kPixels))
      pixels[part].push_back(static_cast<float>(letter <= '9' ? letter - '0' : letter - 'a' + 10) / 16);
    classes[part].push_back(line[kPixels + 1] - '0');
  }
  auto examples = [&](size_t part) {
    auto count = static_cast<int64_t>(classes[part].size());
    return Examples{Tensor::from(pixels[part], Shape{count, int64_t(kPixels)}), Tensor::from(classes[part])};
  };
  return {examples(0), examples(1)};
}

} // namespace wg::data
