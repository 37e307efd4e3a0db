#include "runtime/Letters.h"

#include "runtime/Extent.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

namespace wg::runtime {

static constexpr auto npos = std::string_view::npos;
static bool has(std::string_view letters, char letter) { return letters.find(letter) != npos; }
static std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

static bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string Equation::text() const {
  std::string text(a);
  text.append(",").append(b).append("->").append(c);
  if (!relations.empty())
    text.append("; ").append(relations);
  return text;
}

static std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

Equation partsOf(std::string_view text) {
  size_t end = std::min(text.find(';'), text.size());
  std::string_view relations = trimmed(text.substr(std::min(end + 1, text.size())));
  text = trimmed(text.substr(0, end));
  size_t comma = text.find(','), arrow = text.find("->");
  return {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2), relations};
}

// ---- Relations ------------------------------------------------------------------------------------------------------
namespace {
/// `h = 2p + 3r - 1` as it is written: the letters h, p and r, and B h = S p + D r + C.
struct Written {
  char letters[3];
  int64_t factors[3], constant = 0;
};

/// Reads one relation from its left end on; nothing if it is of another form.
class RelationReader {
public:
  explicit RelationReader(std::string_view text) : text(text) {}

  std::optional<Written> read() {
    Written all;
    if (!term(1, all, 0) || !take('=') || !term(1, all, 1) || all.factors[0] < 1 || all.factors[1] < 1)
      return std::nullopt;
    int64_t sign = take('+') ? 1 : take('-') ? -1 : 0;
    if (sign == 0 || !term(sign, all, 2) || all.factors[2] == 0)
      return std::nullopt;
    sign = take('+') ? 1 : take('-') ? -1 : 0;
    if (sign != 0) {
      std::optional<int64_t> constant = number();
      if (!constant)
        return std::nullopt;
      all.constant = sign * *constant;
    }
    skip();
    return text.empty() ? std::optional(all) : std::nullopt;
  }

private:
  /// `2p`, or `p` for `1p`.
  bool term(int64_t sign, Written &all, int i) {
    skip();
    bool counted = !text.empty() && text.front() >= '0' && text.front() <= '9';
    std::optional<int64_t> factor = counted ? number() : 1;
    skip();
    if (!factor || text.empty() || !isLetter(text.front()))
      return false;
    all.letters[i] = text.front();
    all.factors[i] = sign * *factor;
    text.remove_prefix(1);
    return true;
  }
  /// A number below 2^31, so that no place times it is beyond 64 bits.
  std::optional<int64_t> number() {
    skip();
    int32_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || text.front() == '-')
      return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return value;
  }
  bool take(char c) {
    skip();
    bool here = !text.empty() && text.front() == c;
    text.remove_prefix(here ? 1 : 0);
    return here;
  }
  void skip() {
    while (!text.empty() && text.front() == ' ')
      text.remove_prefix(1);
  }
  std::string_view text;
};
} // namespace

/// Calls f(text of a relation) for each.
template <class F> static void forRelations(std::string_view relations, F f) {
  while (!relations.empty()) {
    size_t end = std::min(relations.find(';'), relations.size());
    f(trimmed(relations.substr(0, end)));
    relations.remove_prefix(std::min(end + 1, relations.size()));
  }
}

std::vector<Relation> relationsOf(const Equation &equation) {
  std::vector<Relation> relations;
  forRelations(equation.relations, [&](std::string_view text) {
    Written written = *RelationReader(text).read();
    Relation relation{0, 0, 0, 0, 0, 0, written.constant};
    for (int i = 0; i < 3; ++i) { // B h - S p - D r = C
      char letter = written.letters[i];
      int64_t factor = i == 0 ? written.factors[i] : -written.factors[i];
      if (has(equation.a, letter))
        relation.a = letter, relation.ofA = factor;
      else if (has(equation.b, letter))
        relation.b = letter, relation.ofB = factor;
      else
        relation.c = letter, relation.ofC = factor;
    }
    relations.push_back(relation);
  });
  return relations;
}

/// The letters of all relations, if each stands in one tensor and each relation has one of each.
static Result<std::string> checkRelations(const Equation &eq, const std::string &start) {
  std::string related;
  Status status;
  auto refuse = [&](std::string why, std::string remedy = {}) {
    if (status.ok())
      status = valueError(start + why, std::move(remedy));
  };
  forRelations(eq.relations, [&](std::string_view text) {
    std::optional<Written> written = RelationReader(text).read();
    if (!written)
      return refuse(quoted(text) + " is not of the form \"h=2p+3r-1\"",
                    "the factors are numbers from 1 to 2147483647, as the last one is at most");
    std::string tensors;
    for (char letter : written->letters) {
      int count = has(eq.a, letter) + has(eq.b, letter) + has(eq.c, letter);
      if (count != 1)
        return refuse(std::string("letter ") + letter + " of relation " + quoted(text) + " appears in " +
                          (count == 0   ? "no tensor"
                           : count == 2 ? "two tensors"
                                        : "all tensors"),
                      "a letter of a relation is an axis of one tensor");
      if (has(related, letter))
        return refuse(std::string("letter ") + letter + " is in two relations, or twice in one");
      related += letter;
      tensors += has(eq.a, letter) ? 'a' : has(eq.b, letter) ? 'b' : 'c';
    }
    for (char tensor : {'a', 'b', 'c'})
      if (!has(tensors, tensor))
        return refuse("relation " + quoted(text) + " has no letter of " + tensor,
                      "one letter of a relation is of a, one of b and one of c");
  });
  if (!status.ok())
    return status;
  return related;
}

Result<Equation> parseEquation(std::string_view text) {
  size_t end = std::min(text.find(';'), text.size()), comma = text.find(','), arrow = text.find("->");
  if (comma == npos || arrow == npos || comma > arrow || arrow > end)
    return valueError("equation " + quoted(text) + " is not of the form \"mk,kn->mn\"");
  Equation eq = partsOf(text);
  std::string start = "equation " + quoted(text) + ": ";
  if (end < text.size() && eq.relations.empty())
    return valueError(start + "no relation follows the \";\"");
  for (std::string_view letters : {eq.a, eq.b, eq.c})
    for (size_t i = 0; i < letters.size(); ++i) {
      if (!isLetter(letters[i]))
        return valueError(start + quoted({&letters[i], 1}) + " is not a letter");
      if (letters.find(letters[i], i + 1) != npos)
        return valueError(start + "letter " + letters[i] + " appears twice in one tensor");
    }
  Result<std::string> related = checkRelations(eq, start);
  if (!related.ok())
    return related.take();
  for (std::string_view letters : {eq.a, eq.b, eq.c})
    for (char letter : letters)
      if (!has(*related, letter) && has(eq.a, letter) + has(eq.b, letter) + has(eq.c, letter) < 2)
        return valueError(start + "letter " + letter + " appears in one tensor only",
                          "sum over it first: reduce_sum(x, axes)");
  return eq;
}

int64_t inverseOf(int64_t ofY, int64_t m) {
  // Euclid: r = (some multiple of m) + t * ofY all the way.
  int64_t r0 = m, r1 = (ofY % m + m) % m, t0 = 0, t1 = 1;
  while (r1 != 0) {
    int64_t quotient = r0 / r1;
    r0 = std::exchange(r1, r0 - quotient * r1);
    t0 = std::exchange(t1, t0 - quotient * t1);
  }
  return (t0 % m + m) % m;
}

static int64_t floorDiv(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
static int64_t ceilDiv(int64_t a, int64_t b) { return -floorDiv(-a, b); }

Run runOf(int64_t ofX, int64_t sizeX, int64_t ofY, int64_t sizeY, int64_t rest) {
  int64_t divisor = std::gcd(ofX, ofY);
  if (sizeX <= 0 || sizeY <= 0 || rest % divisor != 0)
    return {};
  ofX /= divisor, ofY /= divisor, rest /= divisor;
  // ofX * x = rest - ofY * y is between what the first and the last y make of it.
  int64_t atFirst = rest, atLast = rest - ofY * (sizeY - 1);
  if (atFirst > atLast)
    std::swap(atFirst, atLast);
  int64_t low = ofX > 0 ? ceilDiv(atFirst, ofX) : ceilDiv(atLast, ofX),
          high = ofX > 0 ? floorDiv(atLast, ofX) : floorDiv(atFirst, ofX);
  low = std::max<int64_t>(low, 0), high = std::min(high, sizeX - 1);
  // ofX * x = rest modulo ofY.
  int64_t step = std::abs(ofY);
  if (step > 1) {
    int64_t least = ((rest % step + step) % step) * inverseOf(ofX, step) % step;
    low += ((least - low) % step + step) % step;
  }
  if (low > high)
    return {};
  return {(high - low) / step + 1, low, (rest - ofX * low) / ofY, step, ofY > 0 ? -ofX : ofX};
}

// ---- Letters by groups ----------------------------------------------------------------------------------------------
Letters::Letters(const Equation &equation, std::span<const int64_t> shapeA, std::span<const int64_t> shapeB,
                 std::span<const int64_t> sizes) {
  std::vector<Relation> relations = relationsOf(equation);
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
  std::string related;
  for (size_t i = 0; i < relations.size(); ++i) {
    at(relations[i].c).size = sizes[i];
    related += {relations[i].a, relations[i].b, relations[i].c};
  }
  walk(equation.c, [&](size_t, const Letter &letter) { return letter.size; }, &Letter::c);
  for (const Relation &r : relations)
    this->related.push_back({at(r.a), at(r.b), at(r.c), r.ofA, r.ofB, r.ofC, r.constant});
  for (char name : equation.c) {
    if (has(related, name))
      continue;
    bool inA = has(equation.a, name), inB = has(equation.b, name);
    (inA && inB ? batch : inA ? m : n).push_back(at(name));
  }
  for (char name : equation.a)
    if (!has(equation.c, name) && !has(related, name))
      k.push_back(at(name));
}

void Letters::exchange() {
  std::swap(m, n);
  for (std::vector<Letter> *group : {&batch, &m, &n, &k})
    for (Letter &letter : *group)
      std::swap(letter.a, letter.b);
  for (Related &each : related) {
    std::swap(each.a, each.b);
    std::swap(each.ofA, each.ofB);
    for (Letter *letter : {&each.a, &each.b})
      std::swap(letter->a, letter->b);
  }
}

int64_t sizeOf(std::span<const Letter> letters) {
  int64_t size = 1;
  for (const Letter &letter : letters)
    size = saturatingMul(size, letter.size);
  return size;
}

int64_t numberOfTerms(const Letters &letters) {
  int64_t count = 1;
  for (const std::vector<Letter> *group : {&letters.batch, &letters.m, &letters.n, &letters.k})
    count = saturatingMul(count, sizeOf(*group));
  constexpr int64_t kMostPlaces = 1 << 16; // that are gone through for a count
  for (const Related &each : letters.related) {
    struct Axis {
      int64_t size, factor;
    } axes[] = {{each.a.size, each.ofA}, {each.b.size, each.ofB}, {each.c.size, each.ofC}};
    std::sort(std::begin(axes), std::end(axes), [](const Axis &x, const Axis &y) { return x.size < y.size; });
    int64_t pairs = 0;
    if (axes[0].size > kMostPlaces) // one of the three follows from the others
      pairs = saturatingMul(axes[0].size, axes[1].size);
    else
      for (int64_t i = 0; i < axes[0].size; ++i)
        pairs = saturatingAdd(
            pairs, runOf(axes[1].factor, axes[1].size, axes[2].factor, axes[2].size, each.constant - axes[0].factor * i)
                       .count);
    count = saturatingMul(count, pairs);
  }
  return count;
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

std::vector<Letter> outsideOfPanels(std::span<const Letter> batch, std::span<const Letter> m, std::span<const Letter> n,
                                    std::span<const Letter> k) {
  constexpr int64_t kMostOfB = 4, kSmall = 1 << 15; // times as many elements; elements
  std::vector<Letter> letters(batch.begin(), batch.end());
  letters.insert(letters.end(), n.begin(), n.end());
  auto sortBy = [&](int64_t Letter::*step) {
    std::sort(letters.begin(), letters.end(), [=](const Letter &x, const Letter &y) { return x.*step > y.*step; });
  };
  int64_t terms = sizeOf(k), rows = sizeOf(m);
  bool readsAOnce = n.empty() || saturatingMul(sizeOf(batch), saturatingMul(rows, terms)) <= kSmall;
  if (k.empty())
    sortBy(&Letter::c);
  else if (readsAOnce && terms / kMostOfB >= rows)
    sortBy(&Letter::b);
  return letters;
}

static bool isWithinRows(const Letter &letter, std::span<const Letter> m) {
  return std::all_of(m.begin(), m.end(), [&](const Letter &row) { return letter.c < row.c; });
}

std::vector<Letter> withinRows(std::span<const Letter> batch, std::span<const Letter> m, std::span<const Letter> n) {
  std::vector<Letter> letters(batch.begin(), batch.end());
  letters.insert(letters.end(), n.begin(), n.end());
  std::erase_if(letters, [&](const Letter &letter) { return !isWithinRows(letter, m); });
  std::sort(letters.begin(), letters.end(), [](const Letter &x, const Letter &y) { return x.c > y.c; });
  return letters;
}

std::vector<Letter> outsideOfRows(std::span<const Letter> batch, std::span<const Letter> m, std::span<const Letter> n,
                                  std::span<const Letter> k) {
  std::vector<Letter> letters = outsideOfPanels(batch, m, n, k);
  std::erase_if(letters, [&](const Letter &letter) { return isWithinRows(letter, m); });
  return letters;
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
