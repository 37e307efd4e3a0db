// Compiled with hidden visibility; the program that loads it sees these two functions and nothing else.
#include <wengert/wengert.h>

/// An error of the library, thrown by an op.
extern "C" __attribute__((visibility("default"))) void throwFromOp() {
  wg::Tensor a = wg::zeros({2, 3}), b = wg::zeros({4});
  a + b;
}

/// `body` runs while the library traces a function; what it throws passes through the library and through here.
extern "C" __attribute__((visibility("default"))) bool catchThrough(void (*body)()) {
  auto f = wg::function("f", [&](const wg::Tensor &x) {
    body();
    return x;
  });
  try {
    f(wg::Tensor(1.0f));
  } catch (const wg::Error &error) {
    return error.kind() == wg::ErrorKind::value && error.where().find("errors.cpp") != std::string::npos;
  }
  return false;
}
