// Routines: work that is no loop nest of ours (a triangular solve), as functions in C that the eager kernels and
// compiled code both call (abi.h, wg_routine). So both engines have the same bits.
//
// An op is one if its row in runtime/kernels has an ExternalRow; the dialect's interface `External` reads it there. The
// routines themselves are in runtime/routines, which is also libwengert_rt.a.
#pragma once

#include "runtime/Op.h"
#include "runtime/abi.h"

#include <string_view>
#include <vector>

namespace wg::runtime {

/// A short list, which needs no heap for most routines.
class RoutineNumbers {
public:
  RoutineNumbers() = default;
  RoutineNumbers(std::initializer_list<int64_t> values) {
    for (int64_t value : values)
      push_back(value);
  }
  void push_back(int64_t value) {
    if (size_ < kLocal)
      local_[size_] = value;
    else if (size_ == kLocal)
      heap_.assign(local_, local_ + kLocal);
    if (size_++ >= kLocal)
      heap_.push_back(value);
  }
  const int64_t *data() const { return size_ > kLocal ? heap_.data() : local_; }
  size_t size() const { return size_; }

private:
  static constexpr size_t kLocal = 16;
  int64_t local_[kLocal];
  std::vector<int64_t> heap_;
  size_t size_ = 0;
};

/// One call of a routine.
struct ExternalCall {
  const char *symbol = nullptr; ///< null: there is none for this dtype
  RoutineNumbers numbers;       ///< its second argument
  int64_t scratchBytes = 0;
  int hidden = 0;             ///< the first operands that it is not given
  const char *name = nullptr; ///< what errors call it; null: the op's name
};

/// What an op says whose work is a routine.
struct ExternalRow {
  /// For operands of static sizes that the shape rule has accepted.
  ExternalCall (*call)(TypeSpan operands, const Attrs &attrs);
  /// The errors that the routine returns: status i is texts[i - 1]. A routine that has one may have written to its
  /// results, and to what it overwrites.
  std::span<const char *const> statuses = {};
  /// The operand in whose memory the one result may lie, of the same type; -1: none.
  int overwritten = -1;
};

/// The table: the routine of this symbol for this machine's x86-64 level; null if there is none.
wg_routine findRoutine(std::string_view symbol);
/// Whether the symbol is in libwengert_rt.a.
bool isInLibrary(std::string_view symbol);

struct Routine {
  const char *symbol;
  wg_routine function;
};
/// The whole table.
std::vector<Routine> routines();
/// Adds one for programs of this process. Both outlive the process. A symbol that is taken keeps its routine.
void addRoutine(Routine routine);

} // namespace wg::runtime
