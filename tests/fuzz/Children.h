// Work that may end its process, in processes of its own: one signal is reported with what led to it, the rest goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace wg::tests {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

uint64_t fromEnvironment(const char *name, uint64_t usual);

/// A file in memory, which readers open by a path.
class MemoryFile {
public:
  MemoryFile();
  MemoryFile(const MemoryFile &) = delete;
  ~MemoryFile();
  const std::string &path() const { return path_; }
  /// Whether all of it could be written.
  bool put(const std::string &bytes);

private:
  int descriptor_;
  std::string path_;
};

/// What parent and children share: where the child is, and what it found.
struct Trial {
  volatile uint64_t at; ///< the mutant in work
  char found[4096];     ///< what should not be; empty if there is nothing
  /// The first call counts.
  void fail(const std::string &what);
};

/// A T of zeros that children write to; null without memory.
template <class T> T *sharedWithChildren() {
  void *memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T *>(memory);
}

/// Runs `work` in a child, which ends with it, whatever it throws; its exit status as waitpid has it. The parent never touches MLIR: a child of a process
/// whose context has threads has none.
template <class F> int inChild(F work) {
  pid_t child = fork();
  if (child == 0) {
    try {
      work();
    } catch (...) {
      _exit(4);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

struct ChildOptions {
  std::filesystem::path folder;         ///< for what children write to stderr
  uint64_t batch = 250;                 ///< mutants of a child: a context never frees, so a child that lives long grows
  int64_t mostBytes = int64_t(4) << 30; ///< of a child's memory: 2^40 bytes are an error, not the machine's end
  /// Seconds of a processor, after which a mutant counts as one that never ends; ten times as many by the clock.
  unsigned patience = kSanitized ? 300 : 60;
};
/// `examine(i)` for first <= i < end, in children; `report(i, what)` for each that ends its child or finds something.
/// How many these are; it ends after 50.
size_t inChildren(Trial &trial, uint64_t first, uint64_t end, const ChildOptions &options,
                  const std::function<void(uint64_t)> &examine,
                  const std::function<void(uint64_t, const std::string &)> &report);

} // namespace wg::tests
