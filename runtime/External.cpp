#include "runtime/External.h"

#include <mutex>

// The routines of each x86-64 level: routines/*.cpp, compiled for that level.
#define WG_ROUTINE(name)                                                                                               \
  extern "C" int32_t wg_##name##_v2(void *const *, const int64_t *, void *);                                           \
  extern "C" int32_t wg_##name##_v3(void *const *, const int64_t *, void *);                                           \
  extern "C" int32_t wg_##name##_v4(void *const *, const int64_t *, void *);
#include "runtime/routines/Routines.inc"
#undef WG_ROUTINE

namespace wg::runtime {

namespace {
struct LibraryRoutine {
  const char *symbol;
  wg_routine levels[3];
};
constexpr LibraryRoutine kLibrary[] = {
#define WG_ROUTINE(name) {"wg_" #name, {wg_##name##_v2, wg_##name##_v3, wg_##name##_v4}},
#include "runtime/routines/Routines.inc"
#undef WG_ROUTINE
};

struct Added {
  std::mutex mutex;
  std::vector<Routine> routines;
};
Added &added() {
  static Added &theAdded = *new Added; // never destroyed: static objects may compute while they are
  return theAdded;
}
} // namespace

/// Under the lock.
static wg_routine findAdded(std::string_view symbol) {
  for (const Routine &routine : added().routines)
    if (symbol == routine.symbol)
      return routine.function;
  return nullptr;
}

wg_routine findRoutine(std::string_view symbol) {
  for (const LibraryRoutine &routine : kLibrary)
    if (symbol == routine.symbol)
      return routine.levels[machineLevel() - 2];
  std::lock_guard lock(added().mutex);
  return findAdded(symbol);
}

bool isInLibrary(std::string_view symbol) {
  for (const LibraryRoutine &routine : kLibrary)
    if (symbol == routine.symbol)
      return true;
  return false;
}

std::vector<Routine> routines() {
  std::vector<Routine> all;
  for (const LibraryRoutine &routine : kLibrary)
    all.push_back({routine.symbol, routine.levels[machineLevel() - 2]});
  std::lock_guard lock(added().mutex);
  all.insert(all.end(), added().routines.begin(), added().routines.end());
  return all;
}

void addRoutine(Routine routine) {
  if (isInLibrary(routine.symbol))
    return;
  std::lock_guard lock(added().mutex);
  if (!findAdded(routine.symbol))
    added().routines.push_back(routine);
}

} // namespace wg::runtime
