#include "codegen/Aot.h"

#include "codegen/Jit.h"
#include "codegen/MachineCode.h"
#include "runtime/Host.h"
#include "runtime/abi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace wg::codegen {

static runtime::Result<std::string> compile(mlir::ModuleOp module, const Target &target, bool assembly) {
  LLVMContext context;
  auto allowed = [assembly](StringRef name) {
    return isLibrarySymbol(name) || runtime::isInLibrary(name) || runtime::isForeign(name) ||
           (assembly && name == "wg_parallel_for"); // of code for this process, to be read
  };
  auto ir = translate(module, target, context, allowed);
  if (!ir.ok())
    return ir.take();
  SmallVector<char, 0> code;
  if (runtime::Status status = generate(**ir, target, assembly, code); !status.ok())
    return status;
  return std::string(code.begin(), code.end());
}

runtime::Result<std::string> emitObject(mlir::ModuleOp module, const Target &target) {
  return compile(module, target, /*assembly=*/false);
}
runtime::Result<std::string> emitAssembly(mlir::ModuleOp module, const Target &target) {
  return compile(module, target, /*assembly=*/true);
}

void addWorkspaceBytes(mlir::ModuleOp module, StringRef name, int64_t bytes) {
  mlir::MLIRContext *context = module.getContext();
  auto b = mlir::OpBuilder::atBlockEnd(module.getBody());
  auto loc = mlir::UnknownLoc::get(context);
  auto integer = b.getI64Type();
  std::string symbol = (name + "_workspace_bytes").str();
  mlir::SymbolTable symbols(module);
  if (mlir::Operation *other = symbols.lookup(symbol))
    (void)symbols.renameToUnique(other, {}); // a private function that the program calls
  auto function = mlir::LLVM::LLVMFuncOp::create(
      b, loc, symbol, mlir::LLVM::LLVMFunctionType::get(integer, mlir::LLVM::LLVMPointerType::get(context)));
  b.setInsertionPointToStart(function.addEntryBlock(b));
  mlir::Value value = mlir::LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(bytes));
  mlir::LLVM::ReturnOp::create(b, loc, value);
}

// ---- The header -----------------------------------------------------------------------------------------------------

/// Text for a C comment or string literal: on one line, and ends neither.
static std::string inComment(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '\n' || c == '\r' ? ' ' : c == '*' ? 'x' : c;
  return result;
}

static std::string inString(StringRef text) {
  std::string result;
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      result += {'\\', static_cast<char>(c)};
    else if (c == '\n')
      result += "\\n";
    else if (c == '?') // no trigraphs
      result += "\\?";
    else if (c < 0x20 || c == 0x7f)
      result +=
          {'\\', static_cast<char>('0' + c / 64), static_cast<char>('0' + c / 8 % 8), static_cast<char>('0' + c % 8)};
    else
      result += static_cast<char>(c);
  }
  return result;
}

static const char *cType(runtime::DType dtype) {
  constexpr const char *names[runtime::kNumDTypes] = {"double",  "float",   "uint16_t", "uint16_t",
                                                      "int64_t", "int32_t", "uint8_t",  "uint8_t"};
  return names[static_cast<int>(dtype)];
}

std::string cHeader(const CEntry &entry) {
  std::string text;
  raw_string_ostream out(text);
  std::string upper = StringRef(entry.name).upper();
  const std::string &name = entry.name;
  out << "/* " << name << ": " << inComment(entry.summary.empty() ? "compiled by Wengert" : entry.summary) << "\n *\n";
  if (!entry.calls.empty())
    out << " * Link with what defines " << join(entry.calls, ", ") << " (wg_routine).\n";
  out << (entry.usesRoutines ? " * Link with libwengert_rt.a, whose routines it calls, and -lm. Needs"
                             : " * Link with -lm. Needs")
      << " no other library, allocates nothing, keeps no state: any\n"
      << " * number of threads may call it, each with its own results and workspace.\n *\n"
      << " *     args[i]  points to       holds\n";
  size_t index = 0;
  auto row = [&](const CValue &value, const char *use) {
    std::string type = runtime::toString(value.type), pointer = std::string(cType(value.type.dtype)) + " *";
    out << " *     " << left_justify(std::to_string(index++), 9) << left_justify(pointer, 16) << inComment(value.name)
        << ": " << inComment(type) << ", "
        << value.type.shape.numElements() * static_cast<int64_t>(runtime::sizeOf(value.type.dtype)) << " bytes, " << use
        << "\n";
  };
  for (const CValue &value : entry.arguments)
    row(value, value.updated ? "read and updated in place" : "read");
  for (const CValue &value : entry.results)
    row(value, "written");
  out << " *\n * Arrays are row-major and contiguous, aligned as their element type asks. What is written overlaps "
         "nothing else.\n"
      << " * `sizes` is for sizes that are not known when compiling; here all are, so it is not read and may be NULL.\n"
      << " * `workspace` has " << upper << "_WORKSPACE_BYTES bytes, aligned to 64, or what " << name
      << "_workspace_bytes(sizes)\n"
      << " * returns: -1 if it were beyond 2^56 bytes.\n"
      << " * Returns 0, or the number of an error: " << name << "_error(code) is its text.\n"
      << (entry.errors.empty()
              ? ""
              : " * Each {} in it stands for one of the int64_t with which the workspace then begins, in order.\n")
      << " */\n"
      << "#ifndef WENGERT_" << upper << "_H\n#define WENGERT_" << upper << "_H\n\n#include <stdint.h>\n\n"
      << "/* Of the contract between this entry and its callers; code for another is not to be called. */\n#define "
      << upper << "_ABI_VERSION " << WG_ABI_VERSION << "\n"
      << "#define " << upper << "_WORKSPACE_BYTES " << entry.workspaceBytes << "\n#define " << upper << "_NUM_ARGS "
      << index << "\n";
  index = 0;
  for (ArrayRef<CValue> values : {ArrayRef<CValue>(entry.arguments), ArrayRef<CValue>(entry.results)})
    for (const CValue &value : values) {
      std::string id = StringRef(value.name).upper();
      for (char &c : id)
        if (!isAlnum(c))
          c = '_';
      out << "#define " << upper << "_ARG" << index << "_ELEMENTS " << value.type.shape.numElements() << " /* "
          << inComment(value.name) << " */\n";
      ++index;
    }
  out << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\nint32_t " << name
      << "(void *const *args, const int64_t *sizes, void *workspace);\nint64_t " << name
      << "_workspace_bytes(const int64_t *sizes);\n\n"
      << "/* The text of a return code of " << name << ". */\nstatic inline const char *" << name
      << "_error(int32_t code) {\n"
      << "  static const char *const texts[] = {\"success\"";
  for (const std::string &error : entry.errors)
    out << ",\n                                      \"" << inString(error) << "\"";
  out << "};\n  return code >= 0 && code < " << entry.errors.size() + 1 << " ? texts[code] : \"unknown error\";\n}\n\n"
      << "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return text;
}

} // namespace wg::codegen
