#include "ir/Text.h"

#include "ir/Bridge.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <utility>

namespace wg::ir {

namespace {

/// Walks the tokens once. Brackets are matched as the parser matches them; where the parser would stop at an error,
/// what the scanner thinks of the rest does not matter.
class Scanner {
public:
  Scanner(llvm::StringRef text, llvm::StringRef name) : text(text), name(name) {}

  runtime::Status run() {
    while (at < text.size() && ok)
      next();
    if (ok)
      return {};
    return runtime::Failure{.kind = runtime::ErrorKind::value,
                            .message = problem,
                            .remedy = remedy,
                            .where = name.str() + ":" + std::to_string(1 + text.take_front(at).count('\n'))};
  }

private:
  /// The body of an alias's definition ends before the first token that cannot continue an attribute or a type.
  void begins(bool continues, bool leavesOpen) {
    if (!defining.empty() && open.size() == 0) {
      if (complete && !continues)
        defining = {};
      complete = !leavesOpen;
    }
  }
  /// `levels` are open here, counting what an alias stands for.
  void reach(size_t levels) {
    if (!defining.empty())
      depthOf[defining] = std::max(depthOf.lookup(defining), levels);
    if (levels > static_cast<size_t>(kMaxNesting))
      fail("brackets and aliases nest more than " + std::to_string(kMaxNesting) + " deep");
  }
  void fail(std::string message,
            std::string todo =
                "write it flatter: a program of wg ops nests functions, kernels and attributes a few levels deep") {
    problem = std::move(message);
    remedy = std::move(todo);
    ok = false;
  }
  /// The parser asks the element type of an `array<...>` for its bits, which an index has not; what
  /// an alias is, is not known here.
  void failArray() {
    fail("an array attribute has elements of the type index or of a type with a name of its own",
         "write `array<i64: ...>`");
  }

  void next() {
    char c = text[at];
    if (llvm::isSpace(c) || c == '\0') {
      ++at;
      return;
    }
    if (text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
      return;
    }
    bool arrayCame = std::exchange(array, false), elementsBegin = std::exchange(arrayOpens, false);
    if (affine && ++affineTokens > 1000)
      return fail("an affine expression has more than 1000 tokens");
    switch (c) {
    case '"': begins(false, false); return string();
    case '(':
    case '[':
    case '{':
    case '<':
      begins(true, false);
      open.push_back(c);
      arrayOpens = arrayCame && c == '<';
      ++at;
      return reach(open.size());
    case ')':
    case ']':
    case '}':
      close(c == ')' ? '(' : c == ']' ? '[' : '{');
      ++at;
      return;
    case '>':
      if (!open.empty() && open.back() == '<') // else a comparison
        pop();
      ++at;
      return;
    case '-':
      if (text.substr(at).starts_with("->")) {
        begins(true, true);
        at += 2;
        return;
      }
      begins(false, true);
      ++at;
      return;
    case ':':
      begins(true, true);
      ++at;
      return;
    case '!':
      if (elementsBegin)
        return failArray();
      return alias();
    case '#': return alias();
    default:
      begins(false, false);
      if (isWord(c))
        return word(elementsBegin);
      ++at;
    }
  }

  void string() {
    for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
      if (text[at] == '\\')
        ++at;
    ++at;
  }

  static bool isWord(char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.'; }

  void word(bool isElementType) {
    size_t from = at;
    while (at < text.size() && isWord(text[at]))
      ++at;
    llvm::StringRef word = text.slice(from, at);
    if (isElementType && word == "index")
      return failArray();
    array = word == "array";
    if (!affine && (word == "affine_map" || word == "affine_set") && text.substr(at).ltrim().starts_with("<")) {
      affine = open.size() + 1;
      affineTokens = 0;
    }
  }

  /// `#name` or `!name`: a definition if `=` follows outside of all brackets, else what it
  /// was defined as, at this depth.
  void alias() {
    size_t from = at++;
    while (at < text.size() && (isWord(text[at]) || (text[at] == '-' && !text.substr(at).starts_with("->"))))
      ++at;
    llvm::StringRef word = text.slice(from, at);
    size_t after = text.find_first_not_of(" \t\r\n", at);
    if (open.empty() && after != llvm::StringRef::npos && text[after] == '=') {
      defining = word;
      depthOf[word] = 0;
      complete = false;
      at = after + 1;
      return;
    }
    begins(false, false);
    reach(open.size() + 1 + (word == defining ? 0 : depthOf.lookup(word)));
  }

  void pop() {
    if (affine && open.size() == affine)
      affine = 0;
    open.pop_back();
  }
  /// A `<` that was a comparison ends with the bracket around it.
  void close(char opening) {
    size_t size = open.size();
    while (size > 0 && open[size - 1] == '<')
      --size;
    if (size == 0 || open[size - 1] != opening)
      return;
    while (open.size() >= size)
      pop();
  }

  llvm::StringRef text, name;
  size_t at = 0;
  llvm::SmallVector<char, 0> open;
  llvm::StringRef defining; ///< the alias whose body this is
  bool complete = false;    ///< whether its body could end here
  llvm::StringMap<size_t> depthOf;
  size_t affine = 0, affineTokens = 0;    ///< depth inside of the brackets of an affine_map, and the tokens there
  bool array = false, arrayOpens = false; ///< the last token was the word `array`; it was the `<` behind it
  bool ok = true;
  std::string problem, remedy;
};

} // namespace

runtime::Status checkText(llvm::StringRef text, llvm::StringRef name) {
  if (text.starts_with("ML\xefR"))
    return runtime::Failure{.kind = runtime::ErrorKind::value,
                            .message = name.str() + " is MLIR bytecode, which is not read",
                            .remedy = "give the program as text"};
  return Scanner(text, name).run();
}

mlir::OwningOpRef<mlir::ModuleOp> parseText(llvm::StringRef text, llvm::StringRef name) {
  return mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(context()), name);
}

} // namespace wg::ir
