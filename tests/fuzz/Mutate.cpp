#include "tests/fuzz/Mutate.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace wg::tests {

namespace {

using Tokens = std::vector<std::string>;

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$'; }

/// Words, numbers, strings and single marks; blanks and comments are tokens too, so that the tokens make up the text.
Tokens tokensOf(std::string_view text) {
  Tokens tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    char c = text[at];
    if (c == '/' && text.substr(at, 2) == "//") {
      end = std::min(text.find('\n', at), text.size());
    } else if (c == '"') {
      while (end < text.size() && text[end] != '"' && text[end] != '\n')
        end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])))
        ++end;
    } else if (isWord(c) || c == '%' || c == '@' || c == '#' || c == '!' || c == '^') {
      while (end < text.size() && isWord(text[end]))
        ++end;
    } else if (text.substr(at, 2) == "->") {
      end = at + 2;
    }
    tokens.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

std::string join(const Tokens &tokens) {
  std::string text;
  for (const std::string &token : tokens)
    text += token;
  return text;
}

std::vector<std::string> linesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::string joinLines(const std::vector<std::string> &lines) { return join(lines); }

void replaceAll(std::string &text, const std::string &from, const std::string &to) {
  for (size_t at = 0; !from.empty() && (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

constexpr const char *kSizes[] = {"0", "1", "2", "3", "4", "7", "8", "9", "15", "16", "17", "64", "255", "1024"};
constexpr const char *kEdges[] = {"0",
                                  "1",
                                  "-1",
                                  "-2",
                                  "127",
                                  "128",
                                  "255",
                                  "256",
                                  "65536",
                                  "2147483647",
                                  "2147483648",
                                  "4294967295",
                                  "4294967296",
                                  "4294967297",
                                  "-2147483648",
                                  "1099511627776",
                                  "9007199254740993",
                                  "72057594037927936",
                                  "1152921504606846976",
                                  "4611686018427387904",
                                  "4611686018427387905",
                                  "9223372036854775807",
                                  "9223372036854775808",
                                  "-9223372036854775808",
                                  "-9223372036854775809",
                                  "18446744073709551615",
                                  "18446744073709551616",
                                  "340282366920938463463374607431768211456",
                                  "1.0",
                                  "-0.0",
                                  "1.0e400",
                                  "0x7FF0000000000000",
                                  "0xFFFFFFFF"};
constexpr const char *kElements[] = {"f64", "f32",  "bf16", "f16",   "i64", "i32", "ui8",          "i1",
                                     "i8",  "si32", "i128", "index", "f80", "i0",  "complex<f32>", "none"};
constexpr const char *kAttributes[] = {"{wg.result = 0 : i64}",
                                       "{wg.result = -1 : i64}",
                                       "{wg.result = 9223372036854775807 : i64}",
                                       "{wg.result = \"a\"}",
                                       "{wg.origin = 1 : i64}",
                                       "{wg.vjp}",
                                       "{wg.results = 3 : i64}",
                                       "{wg.arguments = array<i64: 7>}",
                                       "{wg.residuals = 100 : i64}",
                                       "{wg.returned = array<i64: -1, 5>}",
                                       "{wg.inputs = [f32]}",
                                       "{llvm.noalias}",
                                       "{passthrough = [\"noinline\"]}",
                                       "{axes = array<i64: 0>}",
                                       "{sym_visibility = \"private\"}",
                                       "{shape = array<i64: 4, -9223372036854775808>}",
                                       "{foo = dense<1> : tensor<4611686018427387905x4xi32>}",
                                       "{foo = unit}"};
constexpr const char *kLines[] = {"%n_ = arith.constant 9223372036854775807 : index\n",
                                  "%n_ = arith.constant -1 : index\n",
                                  "%c_ = wg.constant dense<1.0> : tensor<4611686018427387905x4xf32>\n",
                                  "%c_ = wg.constant dense<1.0> : tensor<1099511627776xf32>\n",
                                  "%c_ = wg.constant dense<[]> : tensor<0xf32>\n",
                                  "return\n",
                                  "func.return\n",
                                  "wg.yield\n",
                                  "}\n",
                                  "{\n",
                                  "module {\n",
                                  "llvm.unreachable\n",
                                  "ub.unreachable\n",
                                  "%u_ = ub.poison : tensor<3xf32>\n",
                                  "%u_ = ub.poison : index\n",
                                  "func.func private @g_(tensor<4xf32>) -> tensor<4xf32>\n",
                                  "func.func @h_(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }\n",
                                  "llvm.module_flags [#llvm.mlir.module_flag<error, \"wchar_size\", 4 : i32>]\n",
                                  "^bb1:\n",
                                  "^bb1(%p_: tensor<72057594037927937xf32>):\n"};

/// What a mutant is made of, and the changes.
class Mutation {
public:
  Mutation(const std::vector<std::string> &corpus, Dice &dice, std::string text)
      : corpus(corpus), dice(dice), text(std::move(text)) {}

  void once() {
    switch (dice.below(18)) {
    case 0: return changeNumber(kEdges);
    case 1: return changeNumber(kSizes);
    case 2: return changeSizeThroughout();
    case 3: return changeTypeThroughout();
    case 4: return changeElementThroughout();
    case 5: return changeDimension();
    case 6: return changeTokens();
    case 7: return takeToken();
    case 8: return changeLines();
    case 9: return takeLine();
    case 10: return insertLine();
    case 11: return nest();
    case 12: return chainAliases();
    case 13: return callFunction();
    case 14: return insertAttribute();
    case 15: return changeValue();
    case 16: return changeOperation();
    default: return changeValue();
    }
  }

  std::string take() { return std::move(text); }

private:
  static bool isNumber(const std::string &token) {
    return !token.empty() && std::isdigit(static_cast<unsigned char>(token[0]));
  }

  /// The places of the tokens for which `wanted` holds.
  template <class F> static std::vector<size_t> find(const Tokens &tokens, F wanted) {
    std::vector<size_t> places;
    for (size_t i = 0; i < tokens.size(); ++i)
      if (wanted(tokens[i]))
        places.push_back(i);
    return places;
  }

  template <class List> void changeNumber(const List &values) {
    Tokens tokens = tokensOf(text);
    std::vector<size_t> numbers = find(tokens, isNumber);
    if (numbers.empty())
      return;
    std::string &token = tokens[dice.pick(numbers)];
    size_t x = token.find('x'); // `3x4xf32`
    token =
        dice.pick(values) + (x == std::string::npos || token.substr(0, 2) == "0x" ? std::string() : token.substr(x));
    text = join(tokens);
  }

  /// `tensor<...>` without its brackets, of some place in the text.
  std::string aType() {
    std::vector<std::string> types;
    for (size_t at = 0; (at = text.find("tensor<", at)) != std::string::npos;) {
      size_t end = text.find('>', at);
      if (end == std::string::npos)
        break;
      types.push_back(text.substr(at, end + 1 - at));
      at = end;
    }
    return types.empty() ? std::string() : dice.pick(types);
  }
  std::string changed(const std::string &type) {
    if (type.size() < 9)
      return "tensor<4xf32>";
    std::vector<std::string> parts;
    std::string inside = type.substr(7, type.size() - 8);
    for (size_t at = 0, x; at <= inside.size(); at = x + 1) {
      x = std::min(inside.find('x', at), inside.size());
      parts.push_back(inside.substr(at, x - at));
    }
    size_t axis = dice.below(parts.size());
    switch (dice.below(6)) {
    case 0: parts[axis] = axis + 1 == parts.size() ? dice.pick(kElements) : "?"; break;
    case 1: parts[axis] = axis + 1 == parts.size() ? dice.pick(kElements) : dice.pick(kSizes); break;
    case 2: parts.insert(parts.begin() + static_cast<int64_t>(axis), dice.pick(kSizes)); break;
    case 3: parts.insert(parts.begin() + static_cast<int64_t>(axis), dice.oneIn(2) ? "1" : "?"); break;
    case 4: parts.insert(parts.begin() + static_cast<int64_t>(axis), dice.pick(kEdges)); break;
    default:
      if (axis + 1 < parts.size())
        parts.erase(parts.begin() + static_cast<int64_t>(axis));
    }
    std::string result = "tensor<";
    for (size_t i = 0; i < parts.size(); ++i)
      result += (i ? "x" : "") + parts[i];
    return result + ">";
  }
  void changeTypeThroughout() {
    std::string type = aType();
    replaceAll(text, type, changed(type));
  }
  void changeDimension() {
    std::string type = aType();
    std::vector<size_t> places;
    for (size_t at = 0; !type.empty() && (at = text.find(type, at)) != std::string::npos; at += type.size())
      places.push_back(at);
    if (!places.empty())
      text.replace(dice.pick(places), type.size(), changed(type));
  }
  /// One size, wherever it is written: most programs stay whole.
  void changeSizeThroughout() {
    Tokens tokens = tokensOf(text);
    std::vector<size_t> numbers = find(tokens, isNumber);
    if (numbers.empty())
      return;
    std::string number = tokens[dice.pick(numbers)];
    number = number.substr(0, number.find('x'));
    std::string to = dice.oneIn(4) ? dice.pick(kEdges) : dice.pick(kSizes);
    for (std::string &token : tokens) {
      if (!isNumber(token) || token.substr(0, 2) == "0x")
        continue;
      std::string result, part;
      for (char c : token + "x") {
        if (c != 'x') {
          part += c;
          continue;
        }
        result += (result.empty() ? "" : "x") + (part == number ? to : part);
        part.clear();
      }
      token = result;
    }
    text = join(tokens);
  }
  void changeElementThroughout() { replaceAll(text, dice.pick(kElements), dice.pick(kElements)); }

  void changeTokens() {
    Tokens tokens = tokensOf(text);
    if (tokens.empty())
      return;
    auto place = [&] { return tokens.begin() + static_cast<int64_t>(dice.below(tokens.size())); };
    switch (dice.below(4)) {
    case 0: tokens.erase(place()); break;
    case 1: {
      auto at = place();
      std::string token = *at;
      tokens.insert(at, token);
      break;
    }
    case 2: {
      auto a = place(), b = place();
      std::iter_swap(a, b);
      break;
    }
    default: *place() = *place();
    }
    text = join(tokens);
  }
  void takeToken() {
    Tokens tokens = tokensOf(text), others = tokensOf(dice.pick(corpus));
    if (tokens.empty() || others.empty())
      return;
    tokens[dice.below(tokens.size())] = dice.pick(others);
    text = join(tokens);
  }

  void changeLines() {
    std::vector<std::string> lines = linesOf(text);
    if (lines.empty())
      return;
    auto place = [&] { return lines.begin() + static_cast<int64_t>(dice.below(lines.size())); };
    switch (dice.below(3)) {
    case 0: lines.erase(place()); break;
    case 1: {
      auto at = place();
      std::string line = *at;
      lines.insert(at, line);
      break;
    }
    default: {
      auto a = place(), b = place();
      std::iter_swap(a, b);
    }
    }
    text = joinLines(lines);
  }
  void putLine(const std::string &line) {
    std::vector<std::string> lines = linesOf(text);
    lines.insert(lines.begin() + static_cast<int64_t>(dice.below(lines.size() + 1)), line);
    text = joinLines(lines);
  }
  void takeLine() {
    std::vector<std::string> others = linesOf(dice.pick(corpus));
    if (!others.empty())
      putLine(dice.pick(others));
  }
  void insertLine() { putLine(dice.pick(kLines)); }

  /// Brackets in brackets, below and above what is allowed.
  void nest() {
    size_t depth = dice.oneIn(3) ? 5000 : 1 + dice.below(150);
    auto times = [&](const std::string &part) {
      std::string all;
      for (size_t i = 0; i < depth; ++i)
        all += part;
      return all;
    };
    switch (dice.below(5)) {
    case 0: return putLine("#n_ = " + times("[") + times("]") + "\n");
    case 1: return putLine("!n_ = " + times("tuple<") + "f32" + times(">") + "\n");
    case 2: return putLine(times("module {\n") + times("}\n"));
    case 3: return putLine("#n_ = loc(" + times("callsite(\"f\"(unknown) at ") + "unknown" + times(")") + ")\n");
    default: {
      Tokens tokens = tokensOf(text);
      std::vector<size_t> numbers = find(tokens, isNumber);
      if (numbers.empty())
        return;
      std::string &token = tokens[dice.pick(numbers)];
      token = times("[") + token + times("]");
      text = join(tokens);
    }
    }
  }
  void chainAliases() {
    size_t length = dice.oneIn(3) ? 5000 : 1 + dice.below(150);
    bool places = dice.oneIn(2);
    std::string chain = places ? "#a0 = loc(\"f.py\":1:2)\n" : "#a0 = [1]\n";
    for (size_t i = 1; i < length; ++i)
      chain += "#a" + std::to_string(i) + " = " + (places ? "loc(\"g\"(#a" : "[#a") + std::to_string(i - 1) +
               (places ? "))\n" : "]\n");
    std::string last = "#a" + std::to_string(length - 1);
    size_t returns = text.find("return");
    size_t end = returns == std::string::npos ? text.size() : std::min(text.find('\n', returns), text.size());
    if (places)
      text.insert(end, " loc(" + last + ")");
    text = chain + text + (places ? "" : "module attributes {wg.x = " + last + "} {}\n");
  }

  /// A call where a line begins: of the function itself or of another, with its own or other operands.
  void callFunction() {
    std::vector<std::string> lines = linesOf(text);
    std::vector<size_t> functions;
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i].find("func.func") != std::string::npos && lines[i].find('@') != std::string::npos)
        functions.push_back(i);
    if (functions.empty())
      return;
    size_t caller = dice.pick(functions);
    const std::string &callee = lines[dice.oneIn(2) ? caller : dice.pick(functions)];
    size_t at = callee.find('@'), open = callee.find('(', at), arrow = callee.find("->", at),
           brace = callee.find(" {", at);
    if (open == std::string::npos || arrow == std::string::npos)
      return;
    std::string operands, types;
    size_t close = callee.rfind(')', arrow);
    for (size_t place = open; (place = callee.find('%', place)) < close;) {
      size_t colon = callee.find(':', place), end = colon == std::string::npos ? close : callee.find('>', colon);
      if (colon == std::string::npos || end == std::string::npos)
        break;
      operands += (operands.empty() ? "" : ", ") + callee.substr(place, colon - place);
      types += (types.empty() ? "" : ", ") + callee.substr(colon + 1, end - colon);
      place = end;
    }
    std::string results =
        brace == std::string::npos ? callee.substr(arrow + 2) : callee.substr(arrow + 2, brace - arrow - 2);
    size_t count = static_cast<size_t>(std::count(results.begin(), results.end(), '<'));
    std::string name = callee.substr(at, open - at);
    std::string call = "    %r_" + std::to_string(dice.below(100)) + (count > 1 ? ":" + std::to_string(count) : "") +
                       " = wg.call " + name + "(" + operands + ") : (" + types + ") -> " + results + "\n";
    lines.insert(lines.begin() + static_cast<int64_t>(caller) + 1, call);
    text = joinLines(lines);
  }

  void insertAttribute() {
    Tokens tokens = tokensOf(text);
    std::vector<size_t> places = find(
        tokens, [](const std::string &token) { return token == ":" || token == ")" || token == "," || token == "{"; });
    if (places.empty())
      return;
    size_t at = dice.pick(places);
    tokens.insert(tokens.begin() + static_cast<int64_t>(at + dice.below(2)),
                  std::string(" ") + dice.pick(kAttributes) + " ");
    text = join(tokens);
  }

  /// Another value of the same program for an operand: often of the same type.
  void changeValue() {
    Tokens tokens = tokensOf(text);
    std::vector<size_t> values =
        find(tokens, [](const std::string &token) { return token[0] == '%' && token.size() > 1; });
    if (values.size() < 2)
      return;
    tokens[dice.pick(values)] = tokens[dice.pick(values)];
    text = join(tokens);
  }

  /// Another op of the corpus with the same words around it.
  void changeOperation() {
    auto isOp = [](const std::string &token) { return token.starts_with("wg."); };
    Tokens tokens = tokensOf(text), others = tokensOf(dice.pick(corpus));
    std::vector<size_t> ops = find(tokens, isOp), more = find(others, isOp);
    if (ops.empty() || more.empty())
      return;
    tokens[dice.pick(ops)] = others[dice.pick(more)];
    text = join(tokens);
  }

  const std::vector<std::string> &corpus;
  Dice &dice;
  std::string text;
};

} // namespace

std::string mutantOf(const std::string &text, const std::vector<std::string> &corpus, Dice &dice) {
  Mutation mutation(corpus, dice, text);
  do
    mutation.once();
  while (!dice.oneIn(2));
  return mutation.take();
}

std::string mutant(const std::vector<std::string> &corpus, uint64_t seed) {
  Dice dice(seed);
  return mutantOf(dice.pick(corpus), corpus, dice);
}

} // namespace wg::tests
