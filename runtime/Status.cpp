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

/// `auto wg::Model::step(const Tensor &)` -> `step`: the identifier before the parameter list, found at the
/// first `(` outside template brackets that does not open `(anonymous namespace)` or `(lambda ...)`. A
/// lambda is named by its function.
static std::string_view bareName(std::string_view signature) {
  for (const char *lambda : {"::(lambda)", "::(anonymous class)"})
    signature = signature.substr(0, signature.find(lambda));
  int depth = 0;
  for (size_t i = 0; i < signature.size(); ++i) {
    char c = signature[i];
    if (c == '<')
      ++depth;
    else if (c == '>' && depth > 0)
      --depth;
    if (c != '(' || depth > 0)
      continue;
    std::string_view rest = signature.substr(i + 1);
    if (rest.starts_with("anonymous") || rest.starts_with("lambda"))
      continue;
    size_t end = i;
    if (size_t at = signature.rfind("operator", i); at != std::string_view::npos && signature.find(' ', at) >= i)
      return signature.substr(at, end - at);
    // The arguments of a template stand between the name and its parameters: `f<int>(int)`.
    if (end > 0 && signature[end - 1] == '>') {
      int open = 0;
      do {
        --end;
        open += signature[end] == '>' ? 1 : signature[end] == '<' ? -1 : 0;
      } while (end > 0 && open > 0);
    }
    size_t begin = end;
    while (begin > 0 && (std::isalnum(static_cast<unsigned char>(signature[begin - 1])) ||
                         signature[begin - 1] == '_' || signature[begin - 1] == '~'))
      --begin;
    return signature.substr(begin, end - begin);
  }
  return signature;
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
