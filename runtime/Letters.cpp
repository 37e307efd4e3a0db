#include "runtime/Letters.h"

#include "runtime/Extent.h"

#include <algorithm>

namespace wg::runtime {

static constexpr auto npos = std::string_view::npos;
static bool has(std::string_view letters, char letter) { return letters.find(letter) != npos; }
static std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string Equation::text() const {
  std::string text(a);
  text.append(",").append(b).append("->").append(c);
  return text;
}

Equation partsOf(std::string_view text) {
  size_t comma = text.find(','), arrow = text.find("->");
  return {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
}

Result<Equation> parseEquation(std::string_view text) {
  size_t comma = text.find(','), arrow = text.find("->");
  if (comma == npos || arrow == npos || comma > arrow)
    return valueError("equation " + quoted(text) + " is not of the form \"mk,kn->mn\"");
  Equation eq = partsOf(text);
  for (std::string_view letters : {eq.a, eq.b, eq.c})
    for (size_t i = 0; i < letters.size(); ++i) {
      char letter = letters[i];
      if (!((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')))
        return valueError("equation " + quoted(text) + ": " + quoted({&letter, 1}) + " is not a letter");
      if (letters.find(letter, i + 1) != npos)
        return valueError("equation " + quoted(text) + ": letter " + letter + " appears twice in one tensor");
      if (has(eq.a, letter) + has(eq.b, letter) + has(eq.c, letter) < 2)
        return valueError("equation " + quoted(text) + ": letter " + letter + " appears in one tensor only",
                          "sum over it first: reduce_sum(x, axes)");
    }
  return eq;
}

Letters::Letters(const Equation &equation, std::span<const int64_t> shapeA, std::span<const int64_t> shapeB) {
  std::vector<Letter> all;
  auto at = [&](char name) -> Letter & {
    auto it = std::find_if(all.begin(), all.end(), [&](const Letter &letter) { return letter.names[0] == name; });
    return it != all.end() ? *it : all.emplace_back(Letter{std::string(1, name)});
  };
  // From the innermost letter outwards: a row-major tensor's step is the size of all within. An axis of size 0 counts
  // as 1, so that steps stay distinct.
  auto walk = [&](std::string_view letters, auto sizeAt, int64_t Letter::*stepOf) {
    int64_t step = 1;
    for (size_t i = letters.size(); i-- > 0;) {
      Letter &letter = at(letters[i]);
      letter.size = sizeAt(i, letter);
      letter.*stepOf = step;
      step = saturatingMul(step, std::max<int64_t>(1, letter.size));
    }
  };
  walk(equation.a, [&](size_t i, const Letter &) { return shapeA[i]; }, &Letter::a);
  walk(equation.b, [&](size_t i, const Letter &) { return shapeB[i]; }, &Letter::b);
  walk(equation.c, [&](size_t, const Letter &letter) { return letter.size; }, &Letter::c);
  for (char name : equation.c) {
    bool inA = has(equation.a, name), inB = has(equation.b, name);
    (inA && inB ? batch : inA ? m : n).push_back(at(name));
  }
  for (char name : equation.a)
    if (!has(equation.c, name))
      k.push_back(at(name));
}

void Letters::exchange() {
  std::swap(m, n);
  for (std::vector<Letter> *group : {&batch, &m, &n, &k})
    for (Letter &letter : *group)
      std::swap(letter.a, letter.b);
}

int64_t sizeOf(std::span<const Letter> letters) {
  int64_t size = 1;
  for (const Letter &letter : letters)
    size = saturatingMul(size, letter.size);
  return size;
}

std::string namesOf(std::span<const Letter> letters) {
  std::string names;
  for (const Letter &letter : letters)
    names += letter.names;
  return names;
}

void dropUnits(std::vector<Letter> &letters) {
  std::erase_if(letters, [](const Letter &letter) { return letter.size == 1; });
}

void mergeNeighbours(std::vector<Letter> &letters) {
  size_t kept = 0;
  for (size_t i = 0; i < letters.size(); ++i) {
    Letter &last = letters[kept - (kept > 0)], &letter = letters[i];
    auto follows = [&](int64_t outer, int64_t inner) { return outer == saturatingMul(inner, letter.size); };
    if (i > 0 && follows(last.a, letter.a) && follows(last.b, letter.b) && follows(last.c, letter.c)) {
      last = {last.names + letter.names, saturatingMul(last.size, letter.size), letter.a, letter.b, letter.c};
    } else {
      if (kept != i)
        letters[kept] = std::move(letter);
      ++kept;
    }
  }
  letters.resize(kept);
}

} // namespace wg::runtime
