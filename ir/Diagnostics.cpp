#include "ir/Diagnostics.h"

#include "ir/Bridge.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Threading.h"

using namespace mlir;

namespace wg::ir {

struct Diagnostics::State {
  explicit State(MLIRContext *context)
      : thread(llvm::get_threadid()), handler(context, [this](Diagnostic &diagnostic) {
          if (llvm::get_threadid() != thread)
            return failure(); // its own thread's handler takes it
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty()) {
            message = diagnostic.str();
            where = whereOf(diagnostic.getLocation());
            for (Diagnostic &note : diagnostic.getNotes())
              if (std::string text = note.str(); text.starts_with("try: "))
                remedy += (remedy.empty() ? "" : "; ") + text.substr(5);
          }
          return success();
        }) {}
  uint64_t thread;
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
