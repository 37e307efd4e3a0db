// Every product: c = sum of a * b over the letters that c lacks.
//
// Where each tensor holds its groups of letters (runtime/Letters.h) side by side and in one order, it is a batch of
// plain matrices as it lies, perhaps transposed; else a copy is brought into that form. The matrices go to Eigen's
// blocked product; thin ones to loops.
#include "runtime/Letters.h"
#include "runtime/kernels/Kernels.h"

#include <array>
#include <cstring>
#include <string_view>

namespace wg::runtime {

static constexpr auto npos = std::string_view::npos;
static std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

static Status contractRule(TypeSpan operands, const Attrs &attrs, TypeList &results) {
  const TensorType &a = operands[0], &b = operands[1];
  Result<Equation> parsed = parseEquation(attrs.string(0));
  if (!parsed.ok())
    return parsed.take();
  const Equation &eq = *parsed;
  if (a.dtype != b.dtype)
    return typeError(say(a, " and ", b, " have different dtypes"),
                     say("cast one of them: cast(x, ", nameOf(a.dtype), ")"));
  if (eq.a.size() != a.shape.size() || eq.b.size() != b.shape.size())
    return valueError(say("equation ", quoted(attrs.string(0)), " has ", int64_t(eq.a.size()), " and ",
                          int64_t(eq.b.size()), " letters for a and b: a is ", a, ", b is ", b));
  if (eq.c.size() > kMaxRank)
    return valueError(say("the result would have rank ", int64_t(eq.c.size()), "; the highest is ", int64_t(kMaxRank)));
  for (size_t i = 0; i < eq.a.size(); ++i)
    if (size_t j = eq.b.find(eq.a[i]); j != npos && !mayBeEqual(a.shape[i], b.shape[j]))
      return valueError(say("sizes of letter ", std::string(1, eq.a[i]), " differ: a is ", a, ", b is ", b, " (",
                            a.shape[i], " != ", b.shape[j], ")"),
                        "transpose an operand, or change one of the sizes");
  TensorType c{a.dtype, {}};
  for (char letter : eq.c) {
    size_t i = eq.a.find(letter), j = eq.b.find(letter);
    c.shape.push_back(i == npos ? b.shape[j] : j == npos ? a.shape[i] : known(a.shape[i], b.shape[j]));
  }
  results.push_back(c);
  return {};
}

// ---- One matrix product: c[m, n] = a b; a is [m, k] or, transposed, [k, m]; b is [k, n] or [n, k]; all row-major ----
namespace {
struct Sizes {
  int64_t m, n, k;
};
} // namespace

/// A longer sum is of blocks of so many terms, each summed on its own, as in compiled code: one running sum of 10^6
/// terms would lose three digits.
static int64_t blockOf(int64_t terms) {
  int64_t block = 1024;
  while (block * block < terms)
    block *= 2;
  return block;
}

/// sum(k, n): the n terms from k on.
template <class F> static auto inBlocks(int64_t terms, F sum) {
  int64_t block = blockOf(terms);
  if (terms <= 2 * block)
    return sum(int64_t(0), terms);
  auto total = sum(int64_t(0), block);
  for (int64_t k = block; k < terms; k += block)
    total += sum(k, std::min(block, terms - k));
  return total;
}

template <class T> static T dot(const T *a, const T *b, int64_t n) {
  constexpr int64_t kLanes = 32;
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += a[i + lane] * b[i + lane];
  for (int64_t lane = 0; i < n; ++i, ++lane)
    lanes[lane] += a[i] * b[i];
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane)
      lanes[lane] += lanes[lane + half];
  return lanes[0];
}

/// c[n] = the rows of a[k, n], each times its element of b, added up.
template <class T>
static void sumOfRows(int64_t n, int64_t k, const T *a, int64_t lda, const T *b, int64_t bStep, T *c) {
  auto add = [&](int64_t first, int64_t count, int64_t column, int64_t columns, T *sums) {
    for (int64_t i = first; i < first + count; ++i)
      for (int64_t j = 0; j < columns; ++j)
        sums[j] += a[i * lda + column + j] * b[i * bStep];
  };
  std::fill_n(c, n, T(0));
  int64_t block = blockOf(k);
  if (k <= 2 * block)
    return add(0, k, 0, n, c);
  constexpr int64_t kColumns = 256;
  for (int64_t column = 0; column < n; column += kColumns)
    for (int64_t first = 0; first < k; first += block) {
      int64_t columns = std::min(kColumns, n - column);
      T sums[kColumns] = {};
      add(first, std::min(block, k - first), column, columns, sums);
      for (int64_t j = 0; j < columns; ++j)
        c[column + j] += sums[j];
    }
}

/// Products with few rows, columns or steps, where packing costs more than it saves. Element (i, j) of an operand is at
/// i * row + j * column, one of which is 1.
template <class T>
static void thinProduct(Sizes s, const T *a, int64_t aRow, int64_t aColumn, const T *b, int64_t bRow, int64_t bColumn,
                        T *c, int64_t ldc) {
  bool dots = aColumn == 1 && bRow == 1 && s.k >= 8;
  for (int64_t i = 0; i < s.m; ++i) {
    T *row = c + i * ldc;
    const T *x = a + i * aRow;
    if (!dots && bColumn == 1) {
      sumOfRows(s.n, s.k, b, bRow, x, aColumn, row);
      continue;
    }
    for (int64_t j = 0; j < s.n; ++j) {
      const T *y = b + j * bColumn;
      auto strided = [&](int64_t first, int64_t count) {
        T sum = 0;
        for (int64_t k = first; k < first + count; ++k)
          sum += x[k * aColumn] * y[k * bRow];
        return sum;
      };
      auto dense = [&](int64_t first, int64_t count) { return dot(x + first, y + first, count); };
      row[j] = dots ? inBlocks(s.k, dense) : inBlocks(s.k, strided);
    }
  }
}

template <class T> static void product(Sizes s, bool aT, const T *a, bool bT, const T *b, T *c) {
  int64_t lda = aT ? s.m : s.k, ldb = bT ? s.k : s.n;
  int64_t work = s.m * s.n * s.k;
  if (s.n == 1 && aT && s.m >= 8)
    return sumOfRows(s.m, s.k, a, lda, b, int64_t(1), c);
  if (work <= 8 * 8 * 8 || s.m <= 2 || s.n <= 2 || s.k <= 2) {
    // A vector counts as transposed or not, whichever makes its elements neighbours along k.
    int64_t aRow = aT ? 1 : lda, aColumn = aT ? lda : 1, bRow = bT ? 1 : ldb, bColumn = bT ? ldb : 1;
    if (s.n == 1)
      bRow = 1, bColumn = 1;
    if (s.m == 1)
      aRow = 1, aColumn = 1;
    // One thread's share is a block of rows; each element is computed the same way in any block.
    return forChunks(s.m, std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, s.n * s.k)),
                     [&](int64_t begin, int64_t end) {
                       thinProduct(Sizes{end - begin, s.n, s.k}, a + begin * aRow, aRow, aColumn, b, bRow, bColumn,
                                   c + begin * s.n, s.n);
                     });
  }
  auto block = [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
    Sizes part{rows, columns, s.k};
    const T *a0 = a + row * (aT ? 1 : lda), *b0 = b + column * (bT ? ldb : 1);
    T *c0 = c + row * s.n + column;
    blockedProduct(part.m, part.n, part.k, aT, a0, lda, bT, b0, ldb, c0, s.n);
  };
  // Cut along the longer side at multiples of 256, by the shape alone: Eigen's edges round
  // differently from its inner blocks.
  constexpr int64_t kBlock = 256;
  if (work < (int64_t(1) << 25) || std::max(s.m, s.n) < 2 * kBlock)
    return block(0, s.m, 0, s.n);
  bool rows = s.m >= s.n;
  int64_t side = rows ? s.m : s.n;
  parallelFor(side / kBlock, [&](int64_t i) {
    int64_t begin = i * kBlock, size = i + 1 == side / kBlock ? side - begin : kBlock;
    rows ? block(begin, size, 0, s.n) : block(0, s.m, begin, size);
  });
}

// ---- From letters to matrices ---------------------------------------------------------------------------------------
/// The tensor with its axes in the order of `to`; itself if they are.
static Array arranged(const Array &x, std::string_view from, std::string_view to) {
  if (from == to)
    return x;
  Ints strides = stridesOf(x.shape()), in;
  Shape shape;
  for (char letter : to) {
    size_t axis = from.find(letter);
    shape.push_back(x.shape()[axis]);
    in.push_back(strides[axis]);
  }
  Array y = Array::empty(x.dtype(), shape);
  copyStrided(x.dtype(), shape, x.buffer.data(), in, y.buffer.data(), stridesOf(shape));
  return y;
}

static Status contractKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  Equation eq = partsOf(attrs.string(0));
  Letters letters(eq, operands[0].shape(), operands[1].shape());
  std::string batch = namesOf(letters.batch), m = namesOf(letters.m), n = namesOf(letters.n), k = namesOf(letters.k);
  bool aT = eq.a == batch + k + m && !m.empty() && !k.empty(), bT = eq.b == batch + n + k && !n.empty() && !k.empty();
  Array a = arranged(operands[0], eq.a, aT ? batch + k + m : batch + m + k);
  Array b = arranged(operands[1], eq.b, bT ? batch + n + k : batch + k + n);
  Sizes s{sizeOf(letters.m), sizeOf(letters.n), sizeOf(letters.k)};
  int64_t batches = sizeOf(letters.batch);
  bool swapped = eq.c == batch + n + m && !m.empty() && !n.empty(); // c^T = b^T a^T
  Array c = results[0];
  std::string order = swapped ? batch + n + m : batch + m + n;
  if (order != eq.c) {
    Shape shape;
    for (char letter : order)
      shape.push_back(results[0].shape()[eq.c.find(letter)]);
    c = Array::empty(c.dtype(), shape);
  }
  Status status = visit(Floats(), c.dtype(), [&]<class T>(T) -> Status {
    if (c.numElements() == 0)
      return {};
    auto one = [&](int64_t i) {
      const T *x = a.data<T>() + i * s.m * s.k, *y = b.data<T>() + i * s.k * s.n;
      T *z = c.data<T>() + i * s.m * s.n;
      swapped ? product(Sizes{s.n, s.m, s.k}, !bT, y, !aT, x, z) : product(s, aT, x, bT, y, z);
    };
    forChunks(batches, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, s.m * s.n * s.k)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                  one(i);
              });
    return {};
  });
  if (status.ok() && order != eq.c) {
    Ints strides = stridesOf(c.shape()), in;
    for (char letter : eq.c)
      in.push_back(strides[order.find(letter)]);
    copyStrided(c.dtype(), results[0].shape(), c.buffer.data(), in, results[0].buffer.data(),
                stridesOf(results[0].shape()));
  }
  return status;
}

std::span<const KernelRow> contractKernels() {
  static constexpr KernelRow rows[] = {{"contract", contractRule, contractKernel}};
  return rows;
}

} // namespace wg::runtime
