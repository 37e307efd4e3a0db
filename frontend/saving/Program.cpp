#include "frontend/saving/Program.h"

#include "frontend/staging/Function.h"
#include "frontend/staging/Host.h"
#include "ir/Calls.h"
#include "ir/Program.h"
#include "ir/Text.h"
#include "runtime/Host.h"
#include "runtime/io/Digest.h"
#include "runtime/io/File.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace wg::detail {

/// On a call of a host function in a text: what is called, and its text. Its number is 0 there.
static constexpr llvm::StringLiteral kKindAttr = "wg.host_kind", kTextAttr = "wg.host_text";
static constexpr const char *kKinds[] = {"print", "check", "function"};

/// A copy that says the same in every process.
static OwningOpRef<ModuleOp> portable(ModuleOp module, Requirements &needed, const Where &where) {
  OwningOpRef<ModuleOp> copy = cast<ModuleOp>(module->clone());
  Builder b(ir::context());
  for (auto function : copy->getOps<func::FuncOp>())
    ir::forgetDerived(function);
  copy->walk([&](ir::HostOp op) {
    if (op.getSymbol() != runtime::kHostCall) {
      needed.cFunctions.insert(op.getSymbol().str());
      return;
    }
    std::optional<HostDescription> description = describeHost(op.getId());
    if (!description)
      raiseOp("save", "a program calls a host function that this process does not have", "", {}, where,
              ErrorKind::internal);
    if (description->kind == HostDescription::function) {
      if (hostsOf(*description).size() != 1)
        raiseOp("save", "a program calls one of several host functions named '" + description->text + "'",
                "give each a name of its own: a saved program knows it by that", {}, where);
      needed.hostFunctions.insert(description->text);
    }
    op.setId(0);
    op->setAttr(kKindAttr, b.getStringAttr(kKinds[description->kind]));
    op->setAttr(kTextAttr, b.getStringAttr(description->text));
  });
  return copy;
}

std::string programText(ModuleOp module, Requirements &needed, const Where &where) {
  ir::Working working;
  std::string text;
  llvm::raw_string_ostream out(text);
  portable(module, needed, where)->print(out, OpPrintingFlags().enableDebugInfo(/*enable=*/true, /*prettyForm=*/false));
  text += '\n';
  return text;
}

bool TapeOps::add(const ConcreteState &concrete, const std::vector<uint32_t> &asked) {
  if (!known_.emplace(&concrete, asked).second)
    return true;
  ir::Working working;
  ir::Diagnostics diagnostics(ir::context()); // one that cannot be written out is refused where that is done
  int64_t ops = 0;
  if (failed(ir::calleesFirst(concrete.code->function(), SymbolTable(concrete.code->module()), &ops)))
    return true;
  ops_ += ops;
  return ops_ <= kMost;
}

const std::string &forwardDigest(Derivative &derivative, const Where &where) {
  ir::Working working;
  std::lock_guard lock(derivative.mutex);
  if (derivative.digest.empty()) {
    Requirements any;
    std::string text;
    llvm::raw_string_ostream out(text);
    portable(derivative.forward->module(), any, where)->print(out);
    derivative.digest = runtime::digestOf(text);
  }
  return derivative.digest;
}

/// The number of what a call names; an error text if there is none.
static std::optional<std::string> resolve(ir::HostOp op) {
  if (op.getSymbol() != runtime::kHostCall) {
    std::vector<TensorType> operands;
    for (Type type : op.getXs().drop_front(op.getOrdered()).getTypes())
      operands.push_back(ir::runtimeTypeOf(type));
    std::string why = whyNoCFunction(op.getSymbol(), operands, ir::runtimeTypeOf(op.getY().getType()));
    if (why.empty())
      return std::nullopt;
    return "calls the C function '" + op.getSymbol().str() + "', " + why;
  }
  auto kind = op->getAttrOfType<StringAttr>(kKindAttr), text = op->getAttrOfType<StringAttr>(kTextAttr);
  const auto *known = kind ? llvm::find(kKinds, kind.getValue()) : std::end(kKinds);
  if (!text || known == std::end(kKinds))
    return "calls a function of another process without its name";
  HostDescription description{static_cast<HostDescription::Kind>(known - std::begin(kKinds)), text.str()};
  std::vector<int64_t> numbers = hostsOf(description);
  if (numbers.empty())
    return "calls the host function '" + description.text + "', which this process does not have";
  if (numbers.size() > 1)
    return "calls the host function '" + description.text + "', and this process has several of that name";
  op.setId(numbers.front());
  op->removeAttr(kKindAttr);
  op->removeAttr(kTextAttr);
  return std::nullopt;
}

OwningOpRef<ModuleOp> loadProgram(const std::string &text, const std::string &path, bool declares, const Where &where) {
  ir::Working working;
  if (runtime::Status status = ir::checkText(text, path); !status.ok())
    raise(status.take(), where);
  ir::Diagnostics diagnostics(ir::context());
  auto refuse = [&](const std::string &message, std::string remedy = "") {
    raise(runtime::fileError(path, message, std::move(remedy)), where);
  };
  OwningOpRef<ModuleOp> module = ir::parseText(text, path);
  if (!module)
    raise(diagnostics.take("the file is not a program in MLIR's text"), where);
  if (Operation *foreign = ir::findForeign(*module))
    refuse("it holds `" + foreign->getName().getStringRef().str() + "`, which is not part of a program of wg ops");
  if (failed(ir::checkProgram(*module)))
    raise(diagnostics.take("the file is not a program"), where);
  for (auto function : module->getOps<func::FuncOp>()) {
    if (function.isDeclaration() && !declares)
      refuse("@" + function.getName().str() + " has no body");
    ir::forgetDerived(function);
  }
  module->walk([&](ir::HostOp op) {
    if (std::optional<std::string> problem = resolve(op))
      refuse(*problem, "make it with host_function or c_function before loading");
  });
  return module;
}

} // namespace wg::detail
