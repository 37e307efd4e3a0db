#include "codegen/Names.h"

#include "codegen/Jit.h"
#include "runtime/External.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace wg::codegen {

/// The keywords of C23 and C++20, and what a program or our headers mean already.
static bool isTaken(StringRef name) {
  // clang-format off
  static const StringSet<> &taken = *new StringSet<>{ // never destroyed
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
      "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
      "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
      "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
      "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
      "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return",
      "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
      "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "typeof_unqual", "union",
      "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
      "_Alignas", "_Alignof", "_Atomic", "_BitInt", "_Bool", "_Complex", "_Decimal128", "_Decimal32", "_Decimal64",
      "_Generic", "_Imaginary", "_Noreturn", "_Static_assert", "_Thread_local",
      "main", "int32_t", "int64_t", "uint16_t", "uint8_t", "wg_parallel_for"};
  // clang-format on
  return taken.contains(name) || runtime::findRoutine(name);
}

static bool isIdentifier(StringRef name) {
  return !name.empty() && !isDigit(name[0]) && all_of(name, [](char c) { return isAlnum(c) || c == '_'; });
}

std::string safeName(StringRef name) {
  std::string safe;
  for (char c : name)
    safe += isAlnum(c) ? c : '_';
  if (safe.empty() || isDigit(safe[0]))
    safe = "f_" + safe;
  return isLibrarySymbol(safe) || isTaken(safe) ? safe + "_" : safe;
}

runtime::Status checkName(StringRef name) {
  StringRef reason = !isIdentifier(name) ? "it consists of letters, digits and underscores, and begins with no digit"
                     : isLibrarySymbol(name) ? "libm or libc has a function of that name, which compiled code calls"
                     : isTaken(name)         ? "C or C++ means something else by it"
                                             : "";
  if (reason.empty())
    return {};
  return runtime::valueError(("`" + name + "` cannot be the name of a C function: " + reason).str(),
                             "name it " + safeName(name));
}

} // namespace wg::codegen
