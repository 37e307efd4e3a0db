// The 1,797 digits of data/digits.txt, taken into the library when it is built: one line an example, 64 letters of
// `0123456789abcdefg` and the class.
#include "wengert/data/Dataset.h"

#include <string_view>

// WENGERT_DIGITS is the file's path, set by the build.
asm(R"(
  .section .rodata
  .global wengert_digits_begin
  .hidden wengert_digits_begin
wengert_digits_begin:
  .incbin ")" WENGERT_DIGITS R"("
  .global wengert_digits_end
  .hidden wengert_digits_end
wengert_digits_end:
  .text
)");
extern "C" __attribute__((visibility("hidden"))) const char wengert_digits_begin[], wengert_digits_end[];

namespace wg::data {

Split digits() {
  constexpr size_t kPixels = 64, kLine = kPixels + 3;
  std::string_view text(wengert_digits_begin, static_cast<size_t>(wengert_digits_end - wengert_digits_begin));
  std::vector<float> pixels[2];
  std::vector<int32_t> classes[2];
  for (size_t row = 0; row * kLine < text.size(); ++row) {
    std::string_view line = text.substr(row * kLine, kLine);
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
