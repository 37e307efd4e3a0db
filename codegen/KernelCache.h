// Which kernels has this process compiled already?
//
// Kernels are known by content: what they compute, for which sizes, on which CPU, and nothing of who uses them or where
// they were written. A program that is compiled takes those that are here, and leaves its own. Code is kept by the
// module that it was made in; what has not been used for longest goes first, and stays in memory as long as a program
// that runs it does. Safe to use from any thread.
#pragma once

#include "codegen/Jit.h"

#include "llvm/ADT/StringMap.h"

#include <list>
#include <mutex>
#include <string>

namespace wg::codegen {

class KernelCache {
public:
  /// What a process keeps beside its programs' own code.
  static constexpr size_t kMaxBytes = size_t(64) << 20;

  explicit KernelCache(size_t maxBytes = kMaxBytes) : maxBytes(maxBytes) {}
  /// That of the process. Never destroyed: static objects may compile while they are.
  static KernelCache &process();

  struct Code {
    std::shared_ptr<const JitModule> module; ///< keeps the addresses valid
    void *function = nullptr;
    void *piece = nullptr; ///< runs a part of it for wg_parallel_for; null if it is not shared among threads
  };
  /// The code of the kernel `key`; nothing if it is not here.
  std::optional<Code> find(llvm::StringRef key);

  /// A kernel of a module: its key, and the names of its functions there.
  struct Made {
    std::string key, function, piece; ///< `piece` empty: none
  };
  /// Keeps the kernels of `module` that are not here yet.
  void add(const std::shared_ptr<const JitModule> &module, llvm::ArrayRef<Made> kernels);

  struct Use {
    size_t kernels = 0, modules = 0, bytes = 0;
    int64_t found = 0, evicted = 0; ///< kernels, since the start
  };
  Use use();

private:
  /// Of the linker's own data for one module.
  static constexpr size_t kModuleBytes = 64 * 1024;
  struct Module {
    std::shared_ptr<const JitModule> code;
    std::vector<std::string> keys;
    size_t bytes;
  };
  struct Entry {
    std::list<Module>::iterator module;
    void *function, *piece;
  };
  void evict();

  const size_t maxBytes;
  std::mutex lock;
  std::list<Module> modules; ///< the one that was used last in front
  llvm::StringMap<Entry> kernels;
  size_t bytes = 0;
  int64_t found = 0, evicted = 0;
};

} // namespace wg::codegen
