// Selection, products (everything that becomes one wg.contract), and triangular_solve.
#include <wengert/Arrays.h>

#include "frontend/ops/Operands.h"

#include <algorithm>

namespace wg {

using detail::Aligned;
using detail::applyOne;
using detail::broadcastShape;
using detail::broadcastTo;
using detail::checkDTypes;
using detail::dim;
using detail::raiseOp;
using detail::reshapeTo;
using detail::tensorOf;
using detail::typeOf;
using runtime::OpId;

Tensor where(const Located &condition, const Located &a, const Located &b) {
  const Where &at = condition.where();
  Tensor c = tensorOf(condition);
  if (c.dtype() != boolean)
    raiseOp("where", "the condition is " + toString(typeOf(c, at)), "compare first: where(x != 0, a, b)",
            {typeOf(c, at)}, at, ErrorKind::type);
  DType dtype = !a.isLiteral()   ? typeOf(a.tensor(), at).dtype
                : !b.isLiteral() ? typeOf(b.tensor(), at).dtype
                                 : std::min(a.literalType(), b.literalType());
  Tensor x = tensorOf(a, dtype), y = tensorOf(b, dtype);
  checkDTypes("where", x, y, at);
  Aligned operands[] = {{&c}, {&x}, {&y}};
  Shape shape = broadcastShape("where", operands, at);
  Tensor wideC = inShape(c, shape, operands, at), wideX = inShape(x, shape, operands, at),
         wideY = inShape(y, shape, operands, at);
  return applyOne(OpId::select, {}, {&wideC, &wideX, &wideY}, at);
}

static Tensor contract(const std::string &equation, const Tensor &a, const Tensor &b, const Where &where) {
  checkDTypes("einsum", a, b, where);
  return applyOne(OpId::contract, runtime::ContractAttrs::make(equation), {&a, &b}, where);
}

/// Without the leading axes of static size 1 that the other operand's batch repeats; `letters` loses theirs.
static Tensor dropUnitBatch(const Tensor &x, std::string &letters, const Tensor &other, int batch, int otherBatch,
                            const Where &where) {
  Shape shape, before = typeOf(x, where).shape;
  std::string kept;
  std::vector<Tensor> sizes;
  for (int axis = 0; axis < before.rank(); ++axis) {
    int otherAxis = axis - batch + otherBatch;
    bool repeats =
        axis < batch && before.dim(axis) == 1 && otherAxis >= 0 && typeOf(other, where).shape.dim(otherAxis) != 1;
    if (repeats)
      continue;
    kept += letters[static_cast<size_t>(axis)];
    shape.push_back(before.dim(axis));
    if (before.dim(axis) == dynamic)
      sizes.push_back(dim(x, axis, where));
  }
  letters = kept;
  return shape == before ? x : reshapeTo(x, shape, sizes, where);
}

Tensor matmul(const Located &a, const Located &b, MatmulOptions options) {
  const Where &where = a.where();
  Tensor x = tensorOf(a), y = tensorOf(b);
  checkDTypes("matmul", x, y, where);
  const TensorType &xType = typeOf(x, where), &yType = typeOf(y, where);
  int rankX = x.rank(), rankY = y.rank();
  if (rankX == 0 || rankY == 0)
    raiseOp("matmul", "an operand is a scalar: a is " + toString(xType) + ", b is " + toString(yType), "use a * b",
            {xType, yType}, where);
  bool tx = options.transpose_a && rankX > 1, ty = options.transpose_b && rankY > 1;
  int64_t inner = xType.shape.dim(tx ? rankX - 2 : rankX - 1),
          otherInner = yType.shape.dim(rankY == 1 || ty ? rankY - 1 : rankY - 2);
  if (inner != otherInner && inner != dynamic && otherInner != dynamic)
    raiseOp("matmul",
            "inner sizes differ: a is " + toString(xType) + ", b is " + toString(yType) + " (" + std::to_string(inner) +
                " != " + std::to_string(otherInner) + ")",
            "transpose b, or give the layer before it " + std::to_string(otherInner) + " outputs", {xType, yType},
            where);
  int batchX = std::max(0, rankX - 2), batchY = std::max(0, rankY - 2), batch = std::max(batchX, batchY);
  std::string letters;
  for (int i = 0; i < batch; ++i)
    letters += static_cast<char>('a' + i);
  std::string lettersX = letters.substr(static_cast<size_t>(batch - batchX)),
              lettersY = letters.substr(static_cast<size_t>(batch - batchY));
  lettersX += rankX == 1 ? "k" : tx ? "km" : "mk";
  lettersY += rankY == 1 ? "k" : ty ? "nk" : "kn";
  std::string out = letters + (rankX == 1 ? "" : "m") + (rankY == 1 ? "" : "n");
  Tensor left = dropUnitBatch(x, lettersX, y, batchX, batchY, where),
         right = dropUnitBatch(y, lettersY, x, batchY, batchX, where);
  return contract(lettersX + "," + lettersY + "->" + out, left, right, where);
}

/// Made once for each of the eight ways, so that an eager call asks the system for no memory.
static const runtime::Attrs &attrsOf(const TriangularSolveOptions &options) {
  static const std::vector<runtime::Attrs> &all = *new std::vector<runtime::Attrs>([] { // never destroyed
    std::vector<runtime::Attrs> made;
    for (int way = 0; way < 8; ++way)
      made.push_back(runtime::TriangularSolveAttrs::make(way & 4, way & 2, way & 1));
    return made;
  }());
  return all[static_cast<size_t>(options.lower * 4 + options.transpose * 2 + options.unit_diagonal)];
}

/// Only the axes in front broadcast; whether the matrices fit the op's rule says.
Tensor triangular_solve(const Located &a, const Located &b, TriangularSolveOptions options) {
  const Where &where = a.where();
  Tensor x = tensorOf(a), y = tensorOf(b);
  checkDTypes("triangular_solve", x, y, where);
  detail::broadcastInFront("triangular_solve", x, y, where);
  return applyOne(OpId::triangular_solve, attrsOf(options), {&x, &y}, where);
}

/// Whether an equation has `...`, or a letter twice in an operand.
static bool isGeneral(const std::string &equation) {
  if (equation.find("...") != std::string::npos)
    return true;
  std::string side;
  for (char letter : equation.substr(0, equation.find("->"))) {
    if (letter == ',')
      side.clear();
    else if (side.find(letter) != std::string::npos)
      return true;
    else
      side += letter;
  }
  return false;
}

Tensor einsum(const std::string &equation, const Located &a, const Located &b) {
  const Where &where = a.where();
  std::string compact;
  for (char c : equation)
    if (c != ' ')
      compact += c;
  size_t comma = compact.find(','), arrow = compact.find("->");
  if (isGeneral(compact))
    return einsum(equation, {tensorOf(a), tensorOf(b)}, where);
  auto refuse = [&](const std::string &why) {
    raiseOp("einsum", why + ": \"" + equation + "\"", "write it as \"mk,kn->mn\": one letter an axis, two operands", {},
            where);
  };
  if (comma == std::string::npos || (arrow != std::string::npos && arrow < comma))
    refuse("the equation has no two operands");
  std::string left = compact.substr(0, comma),
              right = compact.substr(comma + 1, arrow == std::string::npos ? arrow : arrow - comma - 1), out;
  for (const std::string &side : {left, right})
    for (char letter : side)
      if (!std::isalpha(static_cast<unsigned char>(letter)))
        refuse(std::string("'") + letter + "' is not a letter");
  if (arrow != std::string::npos) {
    out = compact.substr(arrow + 2);
  } else {
    for (char c : left + right)
      if ((left.find(c) == std::string::npos) != (right.find(c) == std::string::npos))
        out += c;
    std::sort(out.begin(), out.end());
  }
  for (size_t i = 0; i < out.size(); ++i)
    if ((left + right).find(out[i]) == std::string::npos)
      refuse(std::string("the result's letter '") + out[i] + "' is in no operand");
    else if (out.find(out[i], i + 1) != std::string::npos)
      refuse(std::string("the letter '") + out[i] + "' appears twice in the result");
  // A letter that only one operand has is summed before the product.
  auto sumOwn = [&](const Located &x, std::string &letters, const std::string &other) {
    Tensor tensor = tensorOf(x);
    if (tensor.rank() != static_cast<int>(letters.size()))
      raiseOp("einsum",
              "\"" + letters + "\" names " + std::to_string(letters.size()) + " axes of " +
                  toString(typeOf(tensor, where)),
              "give one letter for each axis", {typeOf(tensor, where)}, where);
    std::vector<int64_t> axes;
    std::string kept;
    for (size_t i = 0; i < letters.size(); ++i)
      if (other.find(letters[i]) == std::string::npos && out.find(letters[i]) == std::string::npos)
        axes.push_back(static_cast<int64_t>(i));
      else
        kept += letters[i];
    letters = kept;
    return axes.empty() ? tensor : reduce_sum(Located(tensor, where), axes);
  };
  Tensor x = sumOwn(a, left, right), y = sumOwn(b, right, left);
  return contract(left + "," + right + "->" + out, x, y, where);
}

Tensor tensordot(const Located &a, const Located &b, int64_t axes) {
  Tensor x = tensorOf(a), y = tensorOf(b);
  if (axes < 0 || axes > x.rank() || axes > y.rank())
    raiseOp("tensordot",
            std::to_string(axes) + " axes of " + toString(typeOf(x, a.where())) + " and " +
                toString(typeOf(y, a.where())),
            "give a count of axes that both have", {}, a.where());
  std::string left, right, out;
  size_t inner = static_cast<size_t>(axes);
  for (int i = 0; i < x.rank(); ++i)
    left += static_cast<char>('a' + i);
  right = left.substr(left.size() - inner);
  out = left.substr(0, left.size() - inner);
  for (int i = static_cast<int>(axes); i < y.rank(); ++i) {
    right += static_cast<char>('A' + i);
    out += static_cast<char>('A' + i);
  }
  return contract(left + "," + right + "->" + out, x, y, a.where());
}

/// Two vectors, of equal sizes if `equal` and these are known.
static void checkVectors(const char *op, const Tensor &x, const Tensor &y, bool equal, const Where &where) {
  const TensorType &a = typeOf(x, where), &b = typeOf(y, where);
  if (a.shape.rank() != 1 || b.shape.rank() != 1)
    raiseOp(op, "takes two vectors, got " + toString(a) + " and " + toString(b),
            "matmul, einsum and tensordot take others", {a, b}, where);
  if (equal && !detail::sameSizes(a.shape, b.shape))
    raiseOp(op, "the sizes differ: a is " + toString(a) + ", b is " + toString(b), "give vectors of one size", {a, b},
            where);
}

Tensor outer(const Located &a, const Located &b) {
  Tensor x = tensorOf(a), y = tensorOf(b);
  checkVectors("outer", x, y, false, a.where());
  return einsum("m,n->mn", Located(x, a.where()), Located(y, a.where()));
}

Tensor dot(const Located &a, const Located &b) {
  Tensor x = tensorOf(a), y = tensorOf(b);
  checkVectors("dot", x, y, true, a.where());
  return einsum("k,k->", Located(x, a.where()), Located(y, a.where()));
}

} // namespace wg
