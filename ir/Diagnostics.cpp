#include "ir/Diagnostics.h"

#include "ir/Bridge.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Threading.h"

#include <mutex>

using namespace mlir;

namespace wg::ir {

/// How many Diagnostics this thread has.
static thread_local int alive = 0;

struct Diagnostics::State {
  explicit State(MLIRContext *context)
      : thread(llvm::get_threadid()), handler(context, [this](Diagnostic &diagnostic) {
          // Another thread's own handler takes its own; one that has none works for a thread that verifies: where what
          // is nested twice is verified in parallel, MLIR may lose which one that is.
          if (llvm::get_threadid() != thread && alive > 0)
            return failure();
          std::lock_guard lock(mutex);
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty()) {
            message = diagnostic.str();
            where = whereOf(diagnostic.getLocation());
            for (Diagnostic &note : diagnostic.getNotes())
              if (std::string text = note.str(); text.starts_with("try: "))
                remedy += (remedy.empty() ? "" : "; ") + text.substr(5);
          }
          return success();
        }) {
    ++alive;
  }
  ~State() { --alive; }
  uint64_t thread;
  std::mutex mutex;
  std::string message, where, remedy;
  ScopedDiagnosticHandler handler;
};

Diagnostics::Diagnostics(MLIRContext *context) : state(std::make_unique<State>(context)) {}
Diagnostics::~Diagnostics() = default;

runtime::Failure Diagnostics::take(const char *otherwise) {
  runtime::Failure failure;
  StringRef text = state->message;
  failure.kind = text.empty() || text.consume_front("internal error: ") ? runtime::ErrorKind::internal
                                                                        : runtime::ErrorKind::value; // toString says so
  // MLIR writes `'wg.add' op message`; people read `add: message`.
  if (text.consume_front("'wg.")) {
    auto [op, rest] = text.split('\'');
    failure.op = op.str();
    text = rest.ltrim();
    text.consume_front("op ");
  }
  failure.message = text.empty() ? std::string(otherwise) : text.str();
  failure.where = state->where;
  failure.remedy = state->remedy;
  return failure;
}

} // namespace wg::ir
