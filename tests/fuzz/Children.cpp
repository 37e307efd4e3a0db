#include "tests/fuzz/Children.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>

namespace wg::tests {

uint64_t fromEnvironment(const char *name, uint64_t usual) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

MemoryFile::MemoryFile()
    : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(descriptor_)) {}
MemoryFile::~MemoryFile() { ::close(descriptor_); }
bool MemoryFile::put(const std::string &bytes) {
  return ::ftruncate(descriptor_, static_cast<off_t>(bytes.size())) == 0 &&
         ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

void Trial::fail(const std::string &what) {
  if (!*found)
    std::strncpy(found, what.c_str(), sizeof found - 1);
}

/// The last lines of what a child wrote: an assertion, LLVM's words.
static std::string tailOf(const std::string &path) {
  std::ifstream file(path);
  std::stringstream all;
  all << file.rdbuf();
  std::string text = all.str();
  return text.size() > 1500 ? text.substr(text.size() - 1500) : text;
}

size_t inChildren(Trial &trial, uint64_t first, uint64_t end, const ChildOptions &options,
                  const std::function<void(uint64_t)> &examine,
                  const std::function<void(uint64_t, const std::string &)> &report) {
  std::string log = (options.folder / ("fuzz-" + std::to_string(getpid()) + ".log")).string();
  size_t findings = 0;
  for (uint64_t next = first; next < end && findings < 50;) {
    uint64_t last = std::min(end, next + options.batch);
    trial.at = next;
    trial.found[0] = 0;
    int status = inChild([&] {
      int out = open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
      dup2(out, STDERR_FILENO);
      if (!kSanitized) {
        rlimit limit{static_cast<rlim_t>(options.mostBytes), static_cast<rlim_t>(options.mostBytes)};
        setrlimit(RLIMIT_AS, &limit);
      }
      rlimit noCore{0, 0};
      setrlimit(RLIMIT_CORE, &noCore);
      for (uint64_t i = next; i < last; ++i) {
        trial.at = i;
        itimerval patience{{0, 0}, {static_cast<time_t>(options.patience), 0}};
        setitimer(ITIMER_PROF, &patience, nullptr);
        alarm(10 * options.patience);
        examine(i);
        if (*trial.found)
          _exit(3);
      }
    });
    if (status == 0) {
      next = last;
      continue;
    }
    ++findings;
    std::string what = *trial.found ? std::string(trial.found)
                       : WIFSIGNALED(status)
                           ? "signal " + std::to_string(WTERMSIG(status)) +
                                 (WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF ? ": it does not end" : "")
                           : "exit status " + std::to_string(WEXITSTATUS(status));
    report(trial.at, what + "\n" + tailOf(log));
    next = trial.at + 1;
  }
  std::filesystem::remove(log);
  return findings;
}

} // namespace wg::tests
