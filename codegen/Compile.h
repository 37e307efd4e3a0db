// The one header of codegen/ that frontend/ needs: a module and a target make an Executable.
#pragma once

#include "codegen/ChooseForms.h"
#include "codegen/Pipeline.h"
#include "ir/Dialect.h"
#include "runtime/Array.h"
#include "runtime/Status.h"

#include <array>
#include <memory>
#include <optional>

namespace wg::codegen {

struct CompileOptions {
  Target target = Target::host();
  bool keepStages = false; ///< keep the text after each stage; costs its printing
  /// Take a module at stage lowered too. Its text is machine code with its author's rights: compiling and running it
  /// is running a program of theirs.
  bool trustLowered = false;
  std::vector<PassesAfter> passes = {}; ///< the caller's own, by the stage that they follow
  Marks *marks = nullptr;               ///< of what launches take, for measure(); outlives the executable
  bool callMath = false;                ///< exp and its like as functions (VectorMath), as Executable::callsMath says
  /// Where kernels that other programs compiled are found, and this one's are left; null: neither.
  KernelCache *cache = &KernelCache::process();
  bool arranged = false; ///< products have the form that they are to have
  /// Measure which form of a product is the fastest here, of those that give the same bits (ChooseForms); for the
  /// machine that runs it.
  bool measureForms = false;
  const std::vector<FormReport> *forms = nullptr; ///< the choices of another compile of the program, instead
  /// Told each stage that is reached, and how many ops the program has there. Outlives the call.
  llvm::function_ref<void(Stage stage, int64_t ops)> reached = {};
};

/// What an error's text shows in place of each `{}`; a failing entry leaves it at the start of its workspace.
struct AtFault {
  std::array<int64_t, ir::ElementAccess::kMaxAtFault> values{};
};

/// A loop with `room`, by its number, and the turns that it had.
struct RoomWanted {
  int64_t loop, turns;
};

/// A compiled function, ready to be called by any number of threads. Immutable.
class Executable {
public:
  virtual ~Executable() = default;

  /// Runs it. `args`: pointers of the inputs, then of all results. A donated result's pointer may equal its
  /// input's, which is then updated in place; else the input is copied there first. All others are disjoint.
  /// The workspace comes from a pool.
  /// \returns 0, or the number of an error for failure(); `*atFault` then holds the values at fault.
  virtual int32_t run(void *const *args, AtFault *atFault = nullptr) const = 0;
  /// The error that `code` names.
  runtime::Failure failure(int32_t code, const AtFault &atFault) const;
  /// Where `code` says that a loop has too little room.
  std::optional<RoomWanted> roomWanted(int32_t code, const AtFault &atFault) const;

  /// The entry itself, its ABI and what it needs: inputs, then results that are not donated.
  using Entry = int32_t (*)(void *const *args, const int64_t *sizes, void *workspace);
  Entry entry = nullptr;
  EntryInfo info;
  std::vector<StageReport> stages; ///< cost and size of each stage; `llvm` to machine code last, as `assembly`
  std::vector<KernelReport> kernels;
  std::vector<FormReport> forms;                    ///< of products, that were measured
  std::vector<std::pair<Stage, std::string>> texts; ///< with keepStages
  size_t codeBytes = 0;
  bool callsMath = false; ///< kernels call exp and its like (VectorMath)
};

/// Compiles `function` of `module`, which is consumed and may come from anywhere: up to stage fused it holds
/// functions of wg ops and nothing else
/// (ir::checkProgram), at stage lowered what the emitters write (verifyLowered). Static shapes only: passes/InferShapes
/// comes first. Diagnostics of this thread become the Failure.
runtime::Result<std::shared_ptr<const Executable>> compile(mlir::ModuleOp module, llvm::StringRef function,
                                                           const CompileOptions &options = {},
                                                           Stage from = Stage::traced);

/// What the parts of a program took.
struct Measured {
  std::vector<double> seconds;  ///< of all launches of each report, in order: the mean of the middle half of the calls
  std::vector<double> launches; ///< of each report in a call, the mean
  double copies = 0;            ///< of results that are copies of others, and of what loops carry, seconds
  double call = 0;              ///< of a call of `plain`, seconds
  int64_t calls = 0;            ///< that were timed
};
/// Calls `plain` and `marked`, which are one program, the second compiled with `marks`, by turns: at least 5 times,
/// until `budget` seconds are over or they have been called 10,000 times. `inputs` stay as they are: what the program
/// updates is a copy, which each call leaves to the next.
/// \returns the error of a call that fails.
runtime::Result<Measured> measure(const Executable &plain, const Executable &marked, Marks &marks,
                                  llvm::ArrayRef<runtime::Array> inputs, double budget = 0.3);

/// Writes `<directory>/<name>.o` and `.h`, both or neither, for `function` of `module`, which is
/// consumed; what it may hold is as above.
runtime::Status compileToObject(mlir::ModuleOp module, llvm::StringRef function, const Target &target,
                                const std::string &directory, const std::string &name,
                                llvm::ArrayRef<std::string> inputNames = {},
                                llvm::ArrayRef<std::string> resultNames = {}, Stage from = Stage::traced,
                                bool trustLowered = false, const std::vector<PassesAfter> &passes = {});

/// Why a module at stage lowered is not taken; `what` is the program.
runtime::Failure untrustedFailure(const std::string &what);

} // namespace wg::codegen
