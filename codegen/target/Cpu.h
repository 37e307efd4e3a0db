// What machine is compiled for: LLVM's names for it, and the few facts that emitters ask.
#pragma once

#include "passes/MachineModels.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace wg::codegen {

/// A CPU as LLVM names it, and what follows from the name: whoever changes a field changes the CPU. A plain value;
/// `key()` identifies it in caches.
struct Target {
  std::string triple;   ///< `x86_64-pc-linux-gnu`
  std::string cpu;      ///< `sapphirerapids`, `x86-64-v3`
  std::string features; ///< `+avx2,-avx512f,...`; empty for a CPU given by name
  int vectorBytes = 16; ///< width of the native vector: 64 with AVX-512, 32 with AVX2, else 16
  int numVectorRegisters = 16;
  bool hasMaskedMemory = false; ///< masked loads and stores of 4- and 8-byte elements (AVX2), of all (AVX-512)
  bool hasFma = false;
  bool hasAvx512 = false; ///< F, BW, DQ and VL together, as in x86-64-v4
  /// A division of 512 bits delays multiplications less than the six operations of Newton's method do. True of Zen 4,
  /// where it takes the place of three, and of Zen 5; on Intel's its unit is what a turn of divisions waits for.
  bool hasCheapDivision = false;
  /// What products, and the loops of kernels, are estimated for: a Zen 4, a Zen 5, an Intel with AVX-512, what is good
  /// on the first and the third for others with AVX-512, or a machine with narrower vectors.
  passes::Machine machine = passes::Machine::narrowVectors;

  /// Elements of `elementBytes` bytes in a native vector.
  int lanes(int elementBytes) const { return vectorBytes / elementBytes; }

  /// This machine. The environment variable WENGERT_CPU names a lower CPU to compile for instead.
  static const Target &host();
  /// `native`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4`, or any x86-64 CPU name of LLVM; nullopt if LLVM knows none.
  static std::optional<Target> named(llvm::StringRef name);
  /// True if this machine can run code for `target`.
  static bool hostCanRun(const Target &target);

  /// Equal for targets that give equal code.
  std::string key() const { return triple + "/" + cpu + "/" + features; }
};

} // namespace wg::codegen
