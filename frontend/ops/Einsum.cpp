// einsum of any number of operands, and what is written with it.
#include <wengert/Arrays.h>

#include "frontend/ops/Formula.h"

#include <algorithm>
#include <cctype>

namespace wg {

using detail::applyOne;
using detail::At;
using detail::checkDTypes;
using detail::computeSize;
using detail::placeOf;
using detail::raiseOp;
using detail::sizeOf;
using detail::Sizes;
using detail::tensorOf;
using detail::typeOf;
using runtime::OpId;

namespace {

/// A tensor and a letter for each of its axes.
struct Factor {
  Tensor x;
  std::string letters;
};

/// The sides of an equation, without spaces.
struct Sides {
  std::vector<std::string> operands;
  std::string result;
  bool hasResult = false;
};

} // namespace

[[noreturn]] static void refuse(const std::string &why, const std::string &equation, const Where &where) {
  raiseOp("einsum", why + ": \"" + equation + "\"",
          "write it as \"mk,kn->mn\": an operand's letters, one an axis, between commas; ... for axes in front", {},
          where);
}

static Sides sidesOf(const std::string &equation, const Where &where) {
  std::string compact;
  for (char c : equation)
    if (c != ' ')
      compact += c;
  Sides sides;
  size_t arrow = compact.find("->");
  sides.hasResult = arrow != std::string::npos;
  if (sides.hasResult)
    sides.result = compact.substr(arrow + 2);
  std::string left = compact.substr(0, arrow);
  for (size_t start = 0;;) {
    size_t comma = left.find(',', start);
    sides.operands.push_back(left.substr(start, comma == std::string::npos ? comma : comma - start));
    if (comma == std::string::npos)
      break;
    start = comma + 1;
  }
  auto check = [&](const std::string &side) {
    size_t dots = side.find("...");
    for (size_t i = 0; i < side.size(); ++i)
      if (dots != std::string::npos && i >= dots && i < dots + 3)
        continue;
      else if (!std::isalpha(static_cast<unsigned char>(side[i])))
        refuse(std::string("'") + side[i] + "' is not a letter", equation, where);
  };
  for (const std::string &side : sides.operands)
    check(side);
  check(sides.result);
  return sides;
}

/// Letters for the axes that `...` stands for, in place of it, aligned at the end; of operands that differ there, an
/// axis of size 1 is taken out, as the others repeat it.
static std::string spellDots(Sides &sides, std::vector<Factor> &factors, const std::string &equation,
                             const Where &where) {
  size_t most = 0;
  std::vector<size_t> counts;
  for (size_t i = 0; i < factors.size(); ++i) {
    const std::string &side = sides.operands[i];
    bool dotted = side.find("...") != std::string::npos;
    size_t named = side.size() - (dotted ? 3 : 0), rank = static_cast<size_t>(factors[i].x.rank());
    if (rank < named || (!dotted && rank != named))
      raiseOp("einsum",
              "\"" + side + "\" names " + std::to_string(named) + " axes of " + toString(typeOf(factors[i].x, where)),
              "give one letter for each axis", {typeOf(factors[i].x, where)}, where);
    counts.push_back(dotted ? rank - named : 0);
    most = std::max(most, counts.back());
  }
  std::string dots;
  for (char c = 'A'; dots.size() < most; c = c == 'Z' ? 'a' : static_cast<char>(c + 1)) {
    if (c > 'z')
      refuse("there are not letters enough", equation, where);
    if (equation.find(c) == std::string::npos)
      dots += c;
  }
  std::vector<bool> isWide(most, false);  // whether some operand has another size than 1 there
  auto sizeAt = [&](size_t i, size_t k) { // of letter k of the dots, in operand i; 1 if it lacks it
    size_t missing = most - counts[i];
    size_t dot = sides.operands[i].find("...");
    return k < missing ? 1 : factors[i].x.shape().dim(static_cast<int>(dot + k - missing));
  };
  for (size_t k = 0; k < most; ++k)
    for (size_t i = 0; i < factors.size(); ++i)
      isWide[k] = isWide[k] || sizeAt(i, k) != 1;
  for (size_t i = 0; i < factors.size(); ++i) {
    std::string &letters = factors[i].letters;
    letters = sides.operands[i];
    size_t dot = letters.find("...");
    if (dot == std::string::npos)
      continue;
    std::string own;
    std::vector<int64_t> dropped;
    for (size_t k = most - counts[i]; k < most; ++k)
      if (isWide[k] && sizeAt(i, k) == 1)
        dropped.push_back(static_cast<int64_t>(dot + k - (most - counts[i])));
      else
        own += dots[k];
    letters.replace(dot, 3, own);
    if (!dropped.empty())
      factors[i].x = squeeze(Located(factors[i].x, where), dropped);
  }
  if (size_t dot = sides.result.find("..."); dot != std::string::npos)
    sides.result.replace(dot, 3, dots);
  else if (sides.hasResult && most != 0)
    dots = ""; // they are summed over
  return dots;
}

/// A letter that an operand has twice is its diagonal.
static void takeDiagonals(Factor &factor, const At &at) {
  for (size_t i = 0; i < factor.letters.size(); ++i) {
    size_t j = factor.letters.find(factor.letters[i], i + 1);
    if (j == std::string::npos)
      continue;
    char letter = factor.letters[i];
    int64_t n = factor.x.shape().dim(static_cast<int>(i)), m = factor.x.shape().dim(static_cast<int>(j));
    if (n != m && n != dynamic && m != dynamic)
      raiseOp("einsum",
              std::string("the letter '") + letter + "' stands for axes of size " + std::to_string(n) + " and " +
                  std::to_string(m) + " of " + toString(typeOf(factor.x, at.where)),
              "give equal sizes", {typeOf(factor.x, at.where)}, at.where);
    std::vector<int64_t> ends{-2, -1};
    Tensor matrices = moveaxis(at[factor.x], {static_cast<int64_t>(i), static_cast<int64_t>(j)}, ends);
    factor.x = diagonal(at[matrices]);
    factor.letters.erase(j, 1);
    factor.letters.erase(i, 1);
    factor.letters += letter;
    i = static_cast<size_t>(-1); // from the start: a letter may be there three times
  }
}

static bool has(const std::string &letters, char letter) { return letters.find(letter) != std::string::npos; }

/// Without the letters that nobody else has.
static void sumOwn(Factor &factor, const std::string &others, const At &at) {
  std::vector<int64_t> axes;
  std::string kept;
  for (size_t i = 0; i < factor.letters.size(); ++i)
    if (has(others, factor.letters[i]))
      kept += factor.letters[i];
    else
      axes.push_back(static_cast<int64_t>(i));
  if (!axes.empty())
    factor.x = reduce_sum(at[factor.x], axes);
  factor.letters = kept;
}

/// The axes in the order of `result`, which has the same letters.
static Tensor inOrder(const Factor &factor, const std::string &result, const At &at) {
  if (factor.letters == result)
    return factor.x;
  std::vector<int64_t> permutation;
  for (char letter : result)
    permutation.push_back(static_cast<int64_t>(factor.letters.find(letter)));
  return transpose(at[factor.x], permutation);
}

static Factor multiplied(Factor a, Factor b, const std::string &result, const At &at) {
  checkDTypes("einsum", a.x, b.x, at.where);
  sumOwn(a, b.letters + result, at);
  sumOwn(b, a.letters + result, at);
  if (a.letters.empty() || b.letters.empty()) { // a scalar
    Factor product{mul(at[a.x], at[b.x]), a.letters + b.letters};
    return {inOrder(product, result, at), result};
  }
  std::string equation = a.letters + "," + b.letters + "->" + result;
  return {applyOne(OpId::contract, runtime::ContractAttrs::make(equation), {&a.x, &b.x}, at.where), result};
}

/// The terms of the product of two operands; a size that is not known counts as 64.
static double costOf(const Factor &a, const Factor &b) {
  double cost = 1;
  auto count = [&](const Factor &factor, const std::string &counted) {
    for (size_t i = 0; i < factor.letters.size(); ++i)
      if (!has(counted, factor.letters[i])) {
        int64_t size = factor.x.shape().dim(static_cast<int>(i));
        cost *= size == dynamic ? 64.0 : static_cast<double>(size);
      }
  };
  count(a, "");
  count(b, a.letters);
  return cost;
}

Tensor einsum(const std::string &equation, const std::vector<Tensor> &operands, Where where) {
  At at{where};
  Sides sides = sidesOf(equation, where);
  if (sides.operands.size() != operands.size())
    refuse("the equation has " + std::to_string(sides.operands.size()) + " operands, and " +
               std::to_string(operands.size()) + " are given",
           equation, where);
  std::vector<Factor> factors;
  for (const Tensor &operand : operands)
    factors.push_back({(typeOf(operand, where), operand), ""});
  std::string dots = spellDots(sides, factors, equation, where), all;
  for (const Factor &factor : factors)
    all += factor.letters;
  std::string result = sides.result;
  if (!sides.hasResult) {
    for (char letter : all)
      if (!has(dots, letter) && all.find(letter) == all.rfind(letter))
        result += letter;
    std::sort(result.begin(), result.end());
    result = dots + result;
  }
  for (size_t i = 0; i < result.size(); ++i)
    if (!has(all, result[i]))
      refuse(std::string("the result's letter '") + result[i] + "' is in no operand", equation, where);
    else if (result.find(result[i], i + 1) != std::string::npos)
      refuse(std::string("the letter '") + result[i] + "' appears twice in the result", equation, where);
  for (Factor &factor : factors)
    takeDiagonals(factor, at);
  if (factors.size() == 1) {
    sumOwn(factors[0], result, at);
    Tensor y = inOrder(factors[0], result, at);
    return y.shape().owner() == operands[0].shape().owner() && factors[0].letters == result ? identity(at[y]) : y;
  }
  while (factors.size() > 1) {
    size_t first = 0, second = 1;
    for (size_t i = 0; i < factors.size() && factors.size() > 2; ++i)
      for (size_t j = i + 1; j < factors.size(); ++j)
        if (costOf(factors[i], factors[j]) < costOf(factors[first], factors[second])) {
          first = i;
          second = j;
        }
    std::string others = result, kept;
    for (size_t i = 0; i < factors.size(); ++i)
      if (i != first && i != second)
        others += factors[i].letters;
    for (char letter : factors.size() == 2 ? result : factors[first].letters + factors[second].letters)
      if (has(others, letter) && !has(kept, letter))
        kept += letter;
    factors[first] = multiplied(factors[first], factors[second], kept, at);
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(second));
  }
  return factors[0].x;
}

// ---- What is written with it ----------------------------------------------------------------------------------------

Tensor tensordot(const Located &a, const Located &b, const std::vector<int64_t> &a_axes,
                 const std::vector<int64_t> &b_axes) {
  const Where &where = a.where();
  Tensor x = tensorOf(a), y = tensorOf(b);
  if (a_axes.size() != b_axes.size())
    raiseOp("tensordot", std::to_string(a_axes.size()) + " axes of a and " + std::to_string(b_axes.size()) + " of b",
            "give as many of each", {typeOf(x, where), typeOf(y, where)}, where);
  std::string left, right(static_cast<size_t>(y.rank()), ' '), result;
  for (int axis = 0; axis < x.rank(); ++axis)
    left += static_cast<char>('a' + axis);
  std::string kept = left;
  for (size_t i = 0; i < a_axes.size(); ++i) {
    auto own = static_cast<size_t>(placeOf("tensordot", a_axes[i], x.rank(), where)),
         other = static_cast<size_t>(placeOf("tensordot", b_axes[i], y.rank(), where));
    if (right[other] != ' ' || kept[own] == ' ')
      raiseOp("tensordot", "an axis is named twice", "name each axis once", {typeOf(x, where), typeOf(y, where)},
              where);
    right[other] = left[own];
    kept[own] = ' ';
  }
  for (char letter : kept)
    if (letter != ' ')
      result += letter;
  for (size_t axis = 0; axis < right.size(); ++axis)
    if (right[axis] == ' ') {
      right[axis] = static_cast<char>('A' + static_cast<char>(axis));
      result += right[axis];
    }
  return einsum(left + "," + right + "->" + result, {x, y}, where);
}

/// [a0, a1], [b0, b1] -> [a0, b0, a1, b1] -> [a0 b0, a1 b1]
Tensor kron(const Located &a, const Located &b) {
  At at{a.where()};
  Tensor x = tensorOf(a), y = tensorOf(b);
  int rank = std::max(x.rank(), y.rank());
  if (rank == 0)
    return mul(at[x], at[y]);
  if (rank > 4)
    raiseOp("kron", "a is " + toString(typeOf(x, at.where)) + ", b is " + toString(typeOf(y, at.where)),
            "the rank is 4 at most", {typeOf(x, at.where), typeOf(y, at.where)}, at.where);
  while (x.rank() < rank)
    x = expand_dims(at[x], 0);
  while (y.rank() < rank)
    y = expand_dims(at[y], 0);
  std::string left, right, result;
  Sizes sizes;
  for (int axis = 0; axis < rank; ++axis) {
    left += static_cast<char>('a' + axis);
    right += static_cast<char>('A' + axis);
    result += {left.back(), right.back()};
    sizes.push_back(computeSize("kron", "a * b", {sizeOf(x, axis, at.where), sizeOf(y, axis, at.where)}, at.where));
  }
  return detail::reshapeTo(einsum(left + "," + right + "->" + result, {x, y}, at.where), sizes, at.where);
}

Tensor inner(const Located &a, const Located &b) {
  At at{a.where()};
  Tensor x = tensorOf(a), y = tensorOf(b);
  if (x.rank() == 0 || y.rank() == 0)
    return mul(at[x], at[y]);
  return tensordot(at[x], at[y], {-1}, {-1});
}

Tensor cross(const Located &a, const Located &b) {
  At at{a.where()};
  Tensor x = tensorOf(a), y = tensorOf(b);
  auto isThree = [&](const Tensor &v) {
    return v.rank() > 0 && (v.shape().dim(v.rank() - 1) == 3 || v.shape().dim(v.rank() - 1) == dynamic);
  };
  if (!isThree(x) || !isThree(y))
    raiseOp("cross", "a is " + toString(typeOf(x, at.where)) + ", b is " + toString(typeOf(y, at.where)),
            "the last axis has the size 3", {typeOf(x, at.where), typeOf(y, at.where)}, at.where);
  auto next = [&](const Tensor &v, int64_t by) { return roll(at[v], -by, -1); };
  return sub(at[mul(at[next(x, 1)], at[next(y, 2)])], at[mul(at[next(x, 2)], at[next(y, 1)])]);
}

} // namespace wg
