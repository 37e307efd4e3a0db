// Errors keep their type between the library, a program and a plugin, all but the library with hidden visibility.
#include <wengert/wengert.h>

#include <dlfcn.h>
#include <iostream>

int main() {
  if (std::string(wg::version()) != WENGERT_VERSION_STRING) {
    std::cout << "headers " << WENGERT_VERSION_STRING << " beside library " << wg::version() << "\n";
    return 1;
  }
  void *plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) {
    std::cout << dlerror() << "\n";
    return 1;
  }
  auto throwFromOp = reinterpret_cast<void (*)()>(dlsym(plugin, "throwFromOp"));
  auto catchThrough = reinterpret_cast<bool (*)(void (*)())>(dlsym(plugin, "catchThrough"));
  int caught = 0;
  try {
    throwFromOp();
  } catch (const wg::Error &error) {
    caught += error.kind() == wg::ErrorKind::value;
  }
  caught += catchThrough([] { wg::zeros({2}) + wg::zeros({3}); });
  std::cout << caught << " of 2 errors caught\n";
  return caught == 2 ? 0 : 1;
}
