// Every product: c = sum of a * b over the letters that c lacks.
//
// Where each tensor holds its groups of letters (runtime/Letters.h) side by side and in one order, it is a batch of
// plain matrices as it lies, perhaps transposed; else a copy is brought into that form. The matrices go to Eigen's
// blocked product; thin ones to loops.
//
// Where letters are related (a convolution) it is a sum of such matrices, as they lie in the tensors: nothing is
// copied.
#include "runtime/Extent.h"
#include "runtime/Letters.h"
#include "runtime/kernels/Kernels.h"

#include <array>
#include <cstring>
#include <string_view>

namespace wg::runtime {

static constexpr auto npos = std::string_view::npos;
static std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

/// How far a place times its factor may be from 0 in a relation.
static constexpr int64_t kFarthest = int64_t(1) << 60;

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
  std::vector<Relation> relations = relationsOf(eq);
  Ints related = attrs.ints(1);
  if (related.size() != relations.size())
    return valueError(say("equation ", quoted(attrs.string(0)), " has ", int64_t(relations.size()),
                          relations.size() == 1 ? " relation" : " relations", ", and the sizes given are ", related),
                      "give the size of each related letter of the result, in the order of the relations");
  if (eq.c.size() > kMaxRank)
    return valueError(say("the result would have rank ", int64_t(eq.c.size()), "; the highest is ", int64_t(kMaxRank)));
  for (size_t i = 0; i < eq.a.size(); ++i)
    if (size_t j = eq.b.find(eq.a[i]); j != npos && !mayBeEqual(a.shape[i], b.shape[j]))
      return valueError(say("sizes of letter ", std::string(1, eq.a[i]), " differ: a is ", a, ", b is ", b, " (",
                            a.shape[i], " != ", b.shape[j], ")"),
                        "transpose an operand, or change one of the sizes");
  TensorType c{a.dtype, {}};
  for (size_t i = 0; i < relations.size(); ++i) {
    const Relation &r = relations[i];
    if (related[i] < 0 && related[i] != kDynamic)
      return valueError(say("letter ", std::string(1, r.c), " has the size ", related[i]), "sizes are not negative");
    // What the places add up to is a number of 64 bits.
    for (auto [size, factor] : {std::pair(a.shape[eq.a.find(r.a)], r.ofA), std::pair(b.shape[eq.b.find(r.b)], r.ofB),
                                std::pair(related[i], r.ofC)})
      if (size != kDynamic && saturatingMul(size, std::abs(factor)) > kFarthest)
        return valueError(say("size ", size, " times ", std::abs(factor), " in the relations of equation ",
                              quoted(attrs.string(0)), " is too large"),
                          say("it is ", kFarthest, " at most"));
  }
  for (char letter : eq.c) {
    size_t i = eq.a.find(letter), j = eq.b.find(letter);
    if (i == npos && j == npos) {
      auto of = std::find_if(relations.begin(), relations.end(), [&](const Relation &r) { return r.c == letter; });
      c.shape.push_back(related[static_cast<size_t>(of - relations.begin())]);
      continue;
    }
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

// ---- Related letters ------------------------------------------------------------------------------------------------
//
// Of each relation one letter is walked, the shortest. While it is fixed the other two go together, in steps: they are
// one axis of a product without relations (Run). For a convolution's result the taps are walked, and each adds the
// product of the places that it reaches; for the gradient of the taps these are walked too, as the result's letters,
// and the places are summed.
namespace {
/// What is walked around a product of three axes, and in it: sizes and steps, which may be negative.
struct Axis {
  int64_t size = 1, a = 0, b = 0, c = 0;
};
Axis axisOf(const Letter &letter) { return {letter.size, letter.a, letter.b, letter.c}; }

/// Offsets into the three tensors.
struct At {
  int64_t a = 0, b = 0, c = 0;
  At moved(const Axis &axis, int64_t i) const { return {a + i * axis.a, b + i * axis.b, c + i * axis.c}; }
};

template <class T> class RelatedProduct {
public:
  RelatedProduct(const Letters &letters, const T *a, const T *b, T *c) : a(a), b(b), c(c), related(letters.related) {
    // Terms of an element that would be added one by one, tap by tap.
    int64_t taps = 1;
    for (const Related &r : related)
      taps = saturatingMul(taps, std::min(r.a.size, r.b.size));
    for (const Letter &letter : letters.batch)
      outer.push_back(axisOf(letter));
    for (const Letter &letter : letters.m)
      m.push_back(axisOf(letter));
    for (const Letter &letter : letters.n)
      n.push_back(axisOf(letter));
    for (const Letter &letter : letters.k)
      k.push_back(axisOf(letter));
    for (size_t i = 0; i < related.size(); ++i) {
      const Related &r = related[i];
      bool walksC = taps > 1024 || r.c.size <= std::min(r.a.size, r.b.size);
      walked.push_back(walksC ? &r.c : r.a.size < r.b.size ? &r.a : &r.b);
      (walksC ? outer : taken).push_back(axisOf(*walked[i]));
      (walksC ? numberOuter : numberTaken).push_back(i);
      // As long as it may get; its size and steps are those of a run.
      const Letter &x = walked[i] == &r.a ? r.b : r.a, &y = walked[i] == &r.c ? r.b : r.c;
      std::vector<Axis> &group = walksC ? k : walked[i] == &r.a ? n : m;
      pairs.push_back({&group, group.size()});
      group.push_back({std::min(x.size, y.size), x.a + y.a, x.b + y.b, x.c + y.c});
    }
    firstOuter = outer.size() - numberOuter.size();
    chooseAxes();
  }

  void run() {
    // The places of c outside of a product, each of which one thread computes from beginning to end.
    size_t parts = outer.size();
    bool images = !m.empty() && takenM != 0 &&
                  std::none_of(pairs.begin(), pairs.end(), [&](const Pair &p) { return p.group == &m && p.at == 0; });
    if (images)
      outer.push_back(m[0]);
    int64_t count = 1, work = 1;
    for (const Axis &axis : outer)
      count = saturatingMul(count, axis.size);
    for (const std::vector<Axis> *axes : {&m, &n, &k, &taken})
      for (const Axis &axis : *axes)
        work = saturatingMul(work, std::max<int64_t>(1, axis.size));
    forChunks(count, std::max<int64_t>(1, (1 << 18) / work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Part part{{m, n, k}, std::vector<int64_t>(related.size()), {}};
        At at;
        int64_t rest = i;
        for (size_t axis = outer.size(); axis-- > 0; rest /= outer[axis].size) {
          int64_t place = rest % outer[axis].size;
          at = at.moved(outer[axis], place);
          if (axis >= firstOuter && axis < parts)
            part.places[numberOuter[axis - firstOuter]] = place;
        }
        if (images)
          part.groups[0][0] = {};
        taps(part, 0, at);
      }
    });
  }

private:
  /// What one thread is at: the letters of m, n and k with the runs of now, and the places of the letters walked.
  struct Part {
    std::array<std::vector<Axis>, 3> groups;
    std::vector<int64_t> places;
    std::vector<T> sums; ///< of a long sum of products, some of these
  };

  /// The three axes of the product inside: along n c is dense, and along m and k it is long.
  void chooseAxes() {
    auto dense = [](const std::vector<Axis> &axes) {
      for (size_t i = 0; i < axes.size(); ++i)
        if (axes[i].c == 1 && axes[i].size > 1)
          return i;
      return npos;
    };
    auto longest = [](const std::vector<Axis> &axes) {
      size_t best = npos;
      for (size_t i = 0; i < axes.size(); ++i)
        if (best == npos || axes[i].size > axes[best].size)
          best = i;
      return best;
    };
    takenM = longest(m), takenK = longest(k), takenN = dense(n);
    if (size_t i = dense(m); i != npos) {
      takenM = i;
      if (takenN == npos)
        takenN = longest(n);
    } else if (i = dense(outer); i != npos && i < firstOuter) {
      // c is dense along a batch, which is then an axis of the product: elements times elements.
      along = outer[i];
      outer.erase(outer.begin() + static_cast<ptrdiff_t>(i));
      --firstOuter;
    } else if (takenN == npos) {
      takenN = longest(n);
    }
  }

  /// Walks the related letters that are summed.
  void taps(Part &part, size_t depth, At at) {
    if (depth < taken.size()) {
      for (int64_t i = 0; i < taken[depth].size; ++i) {
        part.places[numberTaken[depth]] = i;
        taps(part, depth + 1, at.moved(taken[depth], i));
      }
      return;
    }
    for (size_t i = 0; i < related.size(); ++i) {
      const Related &r = related[i];
      const Letter *x = walked[i] == &r.a ? &r.b : &r.a, *y = walked[i] == &r.c ? &r.b : &r.c;
      int64_t ofX = walked[i] == &r.a ? r.ofB : r.ofA, ofY = walked[i] == &r.c ? r.ofB : r.ofC,
              of = walked[i] == &r.a   ? r.ofA
                   : walked[i] == &r.b ? r.ofB
                                       : r.ofC;
      Run run = runOf(ofX, x->size, ofY, y->size, r.constant - of * part.places[i]);
      if (run.count == 0)
        return;
      at = at.moved(axisOf(*x), run.x).moved(axisOf(*y), run.y);
      std::vector<Axis> &group = part.groups[pairs[i].group == &m ? 0 : pairs[i].group == &n ? 1 : 2];
      group[pairs[i].at] = {run.count, run.stepX * x->a + run.stepY * y->a, run.stepX * x->b + run.stepY * y->b,
                            run.stepX * x->c + run.stepY * y->c};
    }
    around(part, 0, 0, at);
  }

  /// Loops over the letters of m, then of n, that the product has not taken.
  void around(Part &part, size_t group, size_t i, At at) {
    if (group == 2)
      return sum(part, at);
    const std::vector<Axis> &axes = part.groups[group];
    if (i == axes.size())
      return around(part, group + 1, 0, at);
    if (i == (group == 0 ? takenM : along.size > 1 ? npos : takenN))
      return around(part, group, i + 1, at);
    for (int64_t place = 0; place < axes[i].size; ++place)
      around(part, group, i + 1, at.moved(axes[i], place));
  }

  /// One product for each place of the other letters of k. Of a long sum each block is summed on its own.
  void sum(Part &part, At at) {
    const std::vector<Axis> &axes = part.groups[2];
    Axis rows = takenM == npos ? Axis() : part.groups[0][takenM], terms = takenK == npos ? Axis() : axes[takenK],
         columns = along.size > 1   ? along
                   : takenN == npos ? Axis()
                                    : part.groups[1][takenN];
    int64_t count = 1;
    for (size_t i = 0; i < axes.size(); ++i)
      count *= i == takenK ? 1 : axes[i].size;
    auto placed = [&](int64_t number) {
      At place = at;
      for (size_t i = axes.size(); i-- > 0;)
        if (i != takenK) {
          place = place.moved(axes[i], number % axes[i].size);
          number /= axes[i].size;
        }
      return place;
    };
    T *to = c + at.c;
    int64_t block = blockOf(count * terms.size);
    if (count * terms.size <= 2 * block) {
      for (int64_t i = 0; i < count; ++i)
        add(rows, columns, terms, placed(i), to);
      return;
    }
    // So many places, or a part of the terms of one.
    int64_t places = std::max<int64_t>(1, block / terms.size), length = std::min(block, terms.size);
    Axis ownRows = rows, ownColumns = columns;
    ownRows.c = columns.size, ownColumns.c = 1;
    part.sums.resize(static_cast<size_t>(rows.size * columns.size));
    for (int64_t first = 0; first < count; first += places)
      for (int64_t term = 0; term < terms.size; term += length) {
        Axis some = terms;
        some.size = std::min(length, terms.size - term);
        std::fill(part.sums.begin(), part.sums.end(), T(0));
        for (int64_t i = first; i < std::min(count, first + places); ++i)
          add(ownRows, ownColumns, some, placed(i).moved(terms, term), part.sums.data());
        for (int64_t i = 0; i < rows.size; ++i)
          for (int64_t j = 0; j < columns.size; ++j)
            to[i * rows.c + j * columns.c] += part.sums[static_cast<size_t>(i * columns.size + j)];
      }
  }

  /// to += the product of three axes.
  void add(const Axis &rows, const Axis &columns, const Axis &terms, At at, T *to) {
    const T *x = a + at.a, *y = b + at.b;
    bool aT = terms.a != 1, bT = columns.b != 1;
    int64_t lda = aT ? terms.a : rows.a, ldb = bT ? columns.b : terms.b;
    bool plain = columns.a == 0 && columns.c == 1 && (aT ? rows.a : terms.a) == 1 && (bT ? terms.b : columns.b) == 1 &&
                 lda > 0 && ldb > 0 && rows.c > 0;
    if (plain && rows.size > 2 && columns.size > 2 && terms.size > 2 && rows.size * columns.size * terms.size > 512)
      return addBlockedProduct(rows.size, columns.size, terms.size, aT, x, lda, bT, y, ldb, to, rows.c);
    for (int64_t i = 0; i < rows.size; ++i, x += rows.a, to += rows.c) {
      if (columns.size == 1) {
        bool dense = terms.a == 1 && terms.b == 1;
        to[0] += inBlocks(terms.size, [&](int64_t first, int64_t number) {
          if (dense)
            return dot(x + first, y + first, number);
          T sum = 0;
          for (int64_t l = first; l < first + number; ++l)
            sum += x[l * terms.a] * y[l * terms.b];
          return sum;
        });
        continue;
      }
      for (int64_t l = 0; l < terms.size; ++l)
        addRow(columns, x + l * terms.a, y + l * terms.b, to);
    }
  }

  /// to[j] += x[j] * y[j] along the columns.
  static void addRow(const Axis &columns, const T *x, const T *y, T *to) {
    if (columns.c == 1 && columns.b == 1 && columns.a == 0) {
      T factor = x[0];
      for (int64_t j = 0; j < columns.size; ++j)
        to[j] += factor * y[j];
    } else if (columns.c == 1 && columns.b == 1 && columns.a == 1) {
      for (int64_t j = 0; j < columns.size; ++j)
        to[j] += x[j] * y[j];
    } else {
      for (int64_t j = 0; j < columns.size; ++j)
        to[j * columns.c] += x[j * columns.a] * y[j * columns.b];
    }
  }

  struct Pair {
    const std::vector<Axis> *group;
    size_t at;
  };
  const T *a, *b;
  T *c;
  const std::vector<Related> &related;
  std::vector<const Letter *> walked;           ///< of each relation
  std::vector<Axis> outer, taken, m, n, k;      ///< batch and the walked letters of c; those of a and b; the groups
  std::vector<size_t> numberOuter, numberTaken; ///< of the relations whose letters are walked there
  size_t firstOuter = 0;                        ///< of the walked letters in `outer`
  std::vector<Pair> pairs;                      ///< of each relation: the axis that its other letters are
  size_t takenM = npos, takenN = npos, takenK = npos;
  Axis along; ///< the letter of batch that is the product's n
};
} // namespace

static Status relatedProduct(Letters letters, const Array &x, const Array &y, const Array &c) {
  const Array *a = &x, *b = &y;
  // Along n c is dense: the operands change roles for it.
  if (std::any_of(letters.m.begin(), letters.m.end(), [](const Letter &letter) { return letter.c == 1; })) {
    letters.exchange();
    std::swap(a, b);
  }
  for (std::vector<Letter> *group : {&letters.batch, &letters.m, &letters.n, &letters.k}) {
    dropUnits(*group);
    mergeNeighbours(*group);
  }
  return visit(Floats(), c.dtype(), [&]<class T>(T) -> Status {
    std::fill_n(c.data<T>(), c.numElements(), T(0));
    if (c.numElements() > 0)
      RelatedProduct<T>(letters, a->data<T>(), b->data<T>(), c.data<T>()).run();
    return {};
  });
}

static Status contractKernel(std::span<const Array> operands, const Attrs &attrs, std::span<Array> results) {
  Equation eq = partsOf(attrs.string(0));
  Letters letters(eq, operands[0].shape(), operands[1].shape(), attrs.ints(1));
  if (!letters.related.empty())
    return relatedProduct(std::move(letters), operands[0], operands[1], results[0]);
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
