// From a fused function to scf + vector: each kernel a private function, and one entry that calls them in order.
#pragma once

#include "codegen/KernelCache.h"
#include "codegen/target/Cpu.h"
#include "ir/Counts.h"
#include "ir/Dialect.h"
#include "runtime/Shape.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace wg::codegen {

/// On a part of an entry of many launches: straight code that is run once a call, which LLVM makes in the quickest way.
inline constexpr llvm::StringLiteral kPartAttr = "wg.part";

/// What one kernel does, for reports.
struct KernelReport {
  std::string name;       ///< its function
  std::string kind;       ///< map, reduce, contract, single, external
  std::string ops;        ///< `contract, add, relu`
  std::string where;      ///< the user's line of its last op
  std::string lines;      ///< the user's lines of all its ops: `train.cpp:12, 14-15`
  std::string compute;    ///< the widest type that its points are computed in: `f32`
  bool isShared = false;  ///< among the runtime's threads
  bool isControl = false; ///< a condition or a loop itself
  bool inBody = false;    ///< of a condition or a loop
  /// Of a loop that is one function, whose registers hold what it changes, and of what runs in it, no launch itself.
  bool inRegisters = false;
  ir::Counts counts;
};

/// Everything a caller of the entry must know. Written into the lowered module as attributes of the entry and read back
/// from there, so that lowered text can be run.
struct EntryInfo {
  std::string name;
  std::vector<runtime::TensorType> inputs, results;
  std::vector<int64_t> donated; ///< per result: the input that it replaces in place, or -1
  int64_t workspaceBytes = 0;
  std::vector<std::string> errors;      ///< text of the return codes 1, 2, ...; each `{}` stands for a value at fault
  std::vector<std::string> errorPlaces; ///< `file:line` of each
};

/// Kernels that a program has in common with others of this process.
struct SharedKernels {
  KernelCache &cache;
  std::vector<KernelCache::Made> made = {};                   ///< by this program; public in its module
  std::vector<std::pair<std::string, void *>> known = {};     ///< functions of others that it calls: name and address
  std::vector<std::shared_ptr<const JitModule>> modules = {}; ///< of these
};

/// What the launches of a program take, by the processor's time-stamp counter: the program adds to it, which lies at a
/// fixed place while the program does.
struct Marks {
  struct Launches {
    uint64_t ticks = 0, count = 0;
  };
  uint64_t last = 0;              ///< the counter at the last mark
  std::vector<Launches> launches; ///< of each report; then copies: of results, and of what loops carry
};

struct EmitOptions {
  bool threads = true;             ///< large kernels hand their pieces to `wg_parallel_for` (runtime/abi.h)
  Marks *marks = nullptr;          ///< outlives the program, which no two threads run at once then
  SharedKernels *shared = nullptr; ///< kernels that its cache has are declared only
};

/// Replaces the fused function `function` of `module` by its entry `i32 (ptr args, ptr sizes, ptr workspace)` and
/// kernel functions. `args` holds the pointers of the inputs, then of the results that are not donated. Without threads
/// and shared kernels the program calls nothing but libm, libc and routines (runtime/External.h).
mlir::LogicalResult emitProgram(mlir::ModuleOp module, mlir::func::FuncOp function, const Target &target,
                                const EmitOptions &options, EntryInfo &info, std::vector<KernelReport> &kernels);

/// Reads the attributes back; fails with a diagnostic if `entry` is no lowered entry.
mlir::FailureOr<EntryInfo> readEntryInfo(mlir::ModuleOp module, llvm::StringRef entry);

} // namespace wg::codegen
