// Data in and out: a tensor of memory that the program has, parts and rows of it, C++ containers, NumPy's files.
#include <wengert/wengert.h>

#include <filesystem>
#include <iostream>
#include <string>

int main() {
  // Six measurements of a sensor at four places, as a library of one's own delivers them. Nothing is copied; the
  // deleter runs with the last handle.
  auto *measured = new float[6 * 4];
  for (int i = 0; i < 6 * 4; ++i)
    measured[i] = 0.5f * static_cast<float>(i);
  wg::Tensor x = wg::shape_check(wg::Tensor::from_blob(measured, {6, 4}, [](float *p) { delete[] p; }),
                                 {wg::dynamic, 4}, "measurements");

  std::cout << "first place: " << x[{wg::ellipsis, 0}] << "\n";
  std::cout << "every other row, last two places: " << x[{wg::slice({}, {}, 2), wg::slice(-2, {})}] << "\n";
  for (wg::Tensor row : x[wg::slice({}, 2)])
    std::cout << "mean of a row: " << wg::mean(row).item<float>() << "\n";

  // A part is an op as others are: the gradient is at the places that were read.
  wg::GradientTape tape;
  tape.watch(x);
  wg::Tensor y = wg::reduce_sum(wg::square(x[{1, wg::slice(0, 3)}]));
  wg::Tensor gradient = tape.gradient(y, x).value();
  auto rows = gradient.to<std::vector<std::vector<float>>>();
  std::cout << "gradient: row 0 has " << rows[0][0] << ", row 1 " << rows[1][0] << " " << rows[1][1] << " "
            << rows[1][2] << " " << rows[1][3] << "\n";

  std::string path = (std::filesystem::temp_directory_path() / "wengert_own_memory.npz").string();
  wg::save_npz(path, {{"x", x}, {"gradient", gradient}}); // numpy.load reads it
  auto loaded = wg::load_npz(path);
  std::filesystem::remove(path);
  std::cout << "read again: " << loaded.size() << " arrays, x[-1] = " << loaded.at("x")[-1] << "\n";
}
