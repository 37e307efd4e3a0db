#include "codegen/KernelCache.h"

namespace wg::codegen {

KernelCache &KernelCache::process() {
  static KernelCache &cache = *new KernelCache();
  return cache;
}

std::optional<KernelCache::Code> KernelCache::find(llvm::StringRef key) {
  std::lock_guard guard(lock);
  auto at = kernels.find(key);
  if (at == kernels.end())
    return std::nullopt;
  const Entry &entry = at->second;
  modules.splice(modules.begin(), modules, entry.module);
  ++found;
  return Code{entry.module->code, entry.function, entry.piece};
}

void KernelCache::add(const std::shared_ptr<const JitModule> &module, llvm::ArrayRef<Made> made) {
  std::lock_guard guard(lock);
  modules.push_front({module, {}, module->codeBytes() + kModuleBytes});
  for (const Made &kernel : made) {
    if (!module->lookup(kernel.function) || (!kernel.piece.empty() && !module->lookup(kernel.piece)))
      continue;
    auto [at, isNew] = kernels.try_emplace(kernel.key);
    if (!isNew)
      continue; // made by another thread meanwhile
    at->second = {modules.begin(), module->lookup(kernel.function),
                  kernel.piece.empty() ? nullptr : module->lookup(kernel.piece)};
    modules.front().keys.push_back(kernel.key);
  }
  if (modules.front().keys.empty())
    return modules.pop_front();
  bytes += modules.front().bytes;
  evict();
}

void KernelCache::evict() {
  while (bytes > maxBytes) {
    Module &last = modules.back();
    for (const std::string &key : last.keys)
      kernels.erase(key);
    evicted += static_cast<int64_t>(last.keys.size());
    bytes -= last.bytes;
    modules.pop_back();
  }
}

KernelCache::Use KernelCache::use() {
  std::lock_guard guard(lock);
  return {kernels.size(), modules.size(), bytes, found, evicted};
}

} // namespace wg::codegen
