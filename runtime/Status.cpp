#include "runtime/Status.h"

namespace wg::runtime {

std::string toString(const Failure &failure) {
  std::string text = failure.kind == ErrorKind::internal ? "internal error in wengert (please report): " : "error: ";
  if (!failure.op.empty())
    text += failure.op + ": ";
  text += failure.message;
  if (!failure.where.empty())
    text += "\n  at " + failure.where;
  if (!failure.remedy.empty())
    text += "\n  try: " + failure.remedy;
  return text;
}

/// The identifier that ends before `end`, without the arguments of a template: `f` of `f<int>`.
static std::string_view identifierBefore(std::string_view text, size_t end) {
  if (end > 0 && text[end - 1] == '>') {
    int open = 0;
    do {
      --end;
      open += text[end] == '>' ? 1 : text[end] == '<' ? -1 : 0;
    } while (end > 0 && open > 0);
  }
  size_t begin = end;
  while (begin > 0 && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '_' ||
                       text[begin - 1] == '~'))
    --begin;
  return text.substr(begin, end - begin);
}

/// `auto wg::Model::step(const Tensor &)` -> `step`: the identifier before the parameter list, found at the
/// first `(` outside template brackets that does not open `(anonymous namespace)` or `(lambda ...)`. A
/// lambda is named by its function, or is `a lambda`; the operator() of a class by the class.
static std::string_view bareName(std::string_view signature) {
  bool isLambda = signature.find("<lambda") != std::string_view::npos;
  for (const char *lambda : {"(lambda", "(anonymous class)"})
    if (size_t at = signature.find(lambda); at != std::string_view::npos) {
      signature = signature.substr(0, at);
      isLambda = true;
    }
  // Model of `Tensor Model::operator()(const Tensor &)`; the innermost of several.
  if (size_t at = signature.rfind("::operator()("); at != std::string_view::npos)
    if (std::string_view owner = identifierBefore(signature, at); !owner.empty())
      return owner;
  int depth = 0;
  for (size_t i = 0; i < signature.size(); ++i) {
    char c = signature[i];
    if (c == '<')
      ++depth;
    else if (c == '>' && depth > 0)
      --depth;
    if (c != '(' || depth > 0 || signature.substr(i + 1).starts_with("anonymous"))
      continue;
    if (size_t at = signature.rfind("operator", i); at != std::string_view::npos && signature.find(' ', at) >= i)
      return signature.substr(at, i - at); // operator+
    return identifierBefore(signature, i);
  }
  return isLambda ? "a lambda" : signature;
}

std::string toString(const Where &where) {
  if (!where)
    return {};
  std::string_view file = where.file;
  if (file.find("/include/c++/") != std::string_view::npos) // the standard library called with a default argument
    return {};
  if (size_t slash = file.rfind('/'); slash != std::string_view::npos)
    file.remove_prefix(slash + 1);
  std::string text = std::string(file) + ":" + std::to_string(where.line);
  if (where.function && *where.function)
    text += " in " + std::string(bareName(where.function));
  return text;
}

} // namespace wg::runtime
