// Reductions, products, shapes, indices, random bits: values and the words of every shape rule.
#include "runtime/Random.h"
#include "runtime/ThreadPool.h"
#include "tests/runtime/Run.h"

#include <cmath>
#include <map>
#include <random>

namespace wg::runtime {
namespace {

constexpr int64_t kUnknown = kDynamic;
TensorType f32(std::initializer_list<int64_t> shape) { return {DType::f32, Shape(shape)}; }
TensorType i64(std::initializer_list<int64_t> shape) { return {DType::i64, Shape(shape)}; }
Attrs axes(std::initializer_list<int64_t> values) { return attrs({Ints(values)}); }

Array randomArray(const Shape &shape, uint64_t seed, DType dtype = DType::f64) {
  std::mt19937_64 random(seed);
  Array x = Array::empty(DType::f64, shape);
  for (double &value : x.span<double>())
    value = std::uniform_real_distribution<double>(-1, 1)(random);
  return dtype == DType::f64 ? x : *run("cast", {x}, CastAttrs::make(dtype));
}

// ---- Reduce ---------------------------------------------------------------------------------------------------------
TEST(ReduceTest, OfNothing) {
  float inf = std::numeric_limits<float>::infinity();
  Array none = Array::zeros(DType::f32, {2, 0}), noInts = Array::zeros(DType::i32, {0}),
        noBools = Array::zeros(DType::boolean, {0});
  EXPECT_EQ(values<float>(run("reduce_sum", {none}, axes({1}))), (std::vector<float>{0, 0}));
  EXPECT_EQ(values<float>(run("reduce_prod", {none}, axes({1}))), (std::vector<float>{1, 1}));
  EXPECT_EQ(values<float>(run("reduce_max", {none}, axes({0, 1}))), (std::vector<float>{-inf}));
  EXPECT_EQ(values<float>(run("reduce_min", {none}, axes({1}))), (std::vector<float>{inf, inf}));
  EXPECT_EQ(values<int32_t>(run("reduce_max", {noInts}, axes({0}))),
            std::vector<int32_t>{std::numeric_limits<int32_t>::min()});
  EXPECT_EQ(values<int32_t>(run("reduce_min", {noInts}, axes({0}))),
            std::vector<int32_t>{std::numeric_limits<int32_t>::max()});
  EXPECT_EQ(values<bool>(run("reduce_any", {noBools}, axes({0}))), std::vector<bool>{false});
  EXPECT_EQ(values<bool>(run("reduce_all", {noBools}, axes({0}))), std::vector<bool>{true});
  EXPECT_EQ(values<float>(run("reduce_sum", {none}, axes({0}))), std::vector<float>{});
  EXPECT_EQ(message(run("argmax", {none}, attrs({int64_t(1)}))),
            "axis 1 of f32[2,0] is empty: there is no largest element");
}

/// Against a sum over all elements in index order, in long double.
TEST(ReduceTest, AnyAxesOfAnyShape) {
  for (const Shape &shape :
       {Shape{3, 4, 5}, Shape{2, 3, 2, 3}, Shape{40, 50}, Shape{7, 300}, Shape{300, 7}, Shape{1, 9, 1}})
    for (unsigned mask = 0; mask < (1u << shape.rank()); ++mask) {
      Array x = randomArray(shape, mask);
      Ints reduced;
      Shape kept;
      for (int axis = 0; axis < shape.rank(); ++axis)
        mask >> axis & 1 ? reduced.push_back(axis) : kept.push_back(shape.dim(axis));
      std::vector<long double> sum(static_cast<size_t>(kept.numElements())), largest(sum.size(), -10);
      for (int64_t i = 0; i < x.numElements(); ++i) {
        int64_t rest = i, at = 0, stride = 1;
        for (int axis = shape.rank(); axis-- > 0; rest /= shape.dim(axis))
          if (!(mask >> axis & 1)) {
            at += rest % shape.dim(axis) * stride;
            stride *= shape.dim(axis);
          }
        sum[static_cast<size_t>(at)] += x.data<double>()[i];
        largest[static_cast<size_t>(at)] = std::max<long double>(largest[static_cast<size_t>(at)], x.data<double>()[i]);
      }
      Result<Array> y = run("reduce_sum", {x}, attrs({reduced}));
      ASSERT_TRUE(y.ok());
      EXPECT_EQ(y->shape(), kept);
      std::vector<double> max = values<double>(run("reduce_max", {x}, attrs({reduced})));
      for (size_t i = 0; i < sum.size(); ++i) {
        EXPECT_NEAR(y->data<double>()[i], static_cast<double>(sum[i]), 1e-12);
        EXPECT_EQ(max[i], static_cast<double>(largest[i]));
      }
    }
}

TEST(ReduceTest, LongSumsOfF32AreAccurate) {
  for (float term : {0.1f, 1.0f, 1e-3f}) {
    Array x = *run("broadcast", {Array::scalar(term)}, BroadcastAttrs::make(Ints{10'000'000}, Ints{}));
    double exact = 1e7 * static_cast<double>(term);
    EXPECT_NEAR(values<float>(run("reduce_sum", {x}, axes({0})))[0] / exact, 1, 1e-6);
    Array columns = *run("reshape", {x}, ReshapeAttrs::make(Ints{2'500'000, 4}));
    EXPECT_NEAR(values<float>(run("reduce_sum", {columns}, axes({0})))[3] / (exact / 4), 1, 1e-6);
  }
}

TEST(ReduceTest, BitsDoNotDependOnThreads) {
  Array x = randomArray({300, 1000}, 5, DType::f32), row = randomArray({500'000}, 6, DType::f32),
        tall = randomArray({100'000, 3}, 7, DType::f32);
  Array a = randomArray({700, 300}, 8, DType::f32), b = randomArray({300, 520}, 9, DType::f32);
  int before = numThreads();
  std::vector<std::vector<float>> first;
  for (int threads : {1, 2, 3, 7}) {
    setNumThreads(threads);
    std::vector<std::vector<float>> all = {values<float>(run("reduce_sum", {x}, axes({0}))),
                                           values<float>(run("reduce_sum", {x}, axes({1}))),
                                           values<float>(run("reduce_sum", {row}, axes({0}))),
                                           values<float>(run("reduce_sum", {tall}, axes({0}))),
                                           values<float>(run("reduce_prod", {row}, axes({0}))),
                                           values<float>(run("contract", {a, b}, ContractAttrs::make("mk,kn->mn")))};
    if (first.empty())
      first = all;
    EXPECT_TRUE(first == all) << threads << " threads";
  }
  setNumThreads(before);
}

TEST(ReduceTest, IntegersWrapAndBooleans) {
  EXPECT_EQ(values<uint8_t>(run("reduce_sum", {vec<uint8_t>({200, 100})}, axes({0}))), std::vector<uint8_t>{44});
  EXPECT_EQ(values<int32_t>(run("reduce_prod", {vec<int32_t>({1 << 20, 1 << 20, 3})}, axes({0}))),
            std::vector<int32_t>{0});
  EXPECT_EQ(values<bool>(run("reduce_any", {arr<bool>({0, 1, 0, 0}, {2, 2})}, axes({1}))), (std::vector<bool>{1, 0}));
  EXPECT_EQ(values<bool>(run("reduce_all", {arr<bool>({1, 1, 0, 1}, {2, 2})}, axes({0}))), (std::vector<bool>{0, 1}));
}

TEST(ReduceTest, Argmax) {
  double nan = std::nan("");
  EXPECT_EQ(values<int64_t>(run("argmax", {vec<double>({1, 3, 3, 2})}, attrs({int64_t(0)}))), std::vector<int64_t>{1});
  EXPECT_EQ(values<int64_t>(run("argmax", {vec<double>({1, nan, 9, nan})}, attrs({int64_t(0)}))),
            std::vector<int64_t>{1});
  EXPECT_EQ(values<int64_t>(run("argmax", {arr<int32_t>({1, 5, 3, 5, 2, 9}, {3, 2})}, attrs({int64_t(0)}))),
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(values<int64_t>(run("argmax", {arr<uint8_t>({1, 5, 3, 5}, {2, 2})}, attrs({int64_t(1)}))),
            (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(types("argmax", {f32({kUnknown, 4})}, attrs({int64_t(1)})), "i64[?]");
}

TEST(ReduceTest, Rules) {
  EXPECT_EQ(types("reduce_sum", {f32({kUnknown, 3, 4})}, axes({0, 2})), "f32[3]");
  EXPECT_EQ(types("reduce_sum", {f32({2, 3})}, axes({2})), "axis 2 is not an axis of f32[2,3], which has rank 2");
  EXPECT_EQ(types("reduce_sum", {f32({2, 3})}, axes({-1})), "axis -1 is not an axis of f32[2,3], which has rank 2");
  EXPECT_EQ(types("reduce_sum", {f32({2, 3})}, axes({1, 0})), "axes are sorted and distinct, got [1, 0]");
  EXPECT_EQ(types("reduce_sum", {f32({2, 3})}, axes({1, 1})), "axes are sorted and distinct, got [1, 1]");
}

// ---- Contract -------------------------------------------------------------------------------------------------------
/// The definition: a loop over all letters.
std::vector<double> einsum(const std::string &equation, const Array &a, const Array &b, const Shape &shape) {
  std::string la = equation.substr(0, equation.find(',')), rest = equation.substr(la.size() + 1);
  std::string lb = rest.substr(0, rest.find('-')), lc = rest.substr(lb.size() + 2), all = lc;
  for (char letter : la + lb)
    if (all.find(letter) == std::string::npos)
      all += letter;
  auto sizeOfLetter = [&](char l) {
    size_t i = la.find(l);
    return i != std::string::npos ? a.shape()[i] : b.shape()[lb.find(l)];
  };
  std::vector<double> c(static_cast<size_t>(shape.numElements()));
  int64_t count = 1;
  for (char letter : all)
    count *= sizeOfLetter(letter);
  for (int64_t i = 0; i < count; ++i) {
    std::map<char, int64_t> at;
    int64_t left = i;
    for (size_t l = all.size(); l-- > 0; left /= sizeOfLetter(all[l]))
      at[all[l]] = left % sizeOfLetter(all[l]);
    auto offset = [&](const std::string &letters) {
      int64_t place = 0;
      for (char letter : letters)
        place = place * sizeOfLetter(letter) + at[letter];
      return place;
    };
    c[static_cast<size_t>(offset(lc))] += a.data<double>()[offset(la)] * b.data<double>()[offset(lb)];
  }
  return c;
}

TEST(ContractTest, EveryArrangementOfLetters) {
  std::map<char, int64_t> sizes = {{'m', 12}, {'n', 11}, {'k', 13}, {'b', 3}, {'a', 2}, {'j', 4}};
  for (const char *equation :
       {"mk,kn->mn", "km,kn->mn",    "mk,nk->mn",       "km,nk->mn",     "mk,kn->nm",    "km,kn->nm",   "mk,nk->nm",
        "km,nk->nm", "bmk,bkn->bmn", "bkm,bnk->bnm",    "bmk,kn->bmn",   "mbk,bkn->bmn", "mk,bkn->mbn", "k,k->",
        "m,n->mn",   "m,n->nm",      "mk,k->m",         "k,kn->n",       "km,k->m",      "k,nk->n",     "b,b->b",
        "bm,b->bm",  "bm,bn->bmn",   "ajmk,ajkn->ajmn", "amk,kjn->amjn", "mkj,kjn->mn",  "mjk,kjn->nm", "ajk,jka->"}) {
    std::string text = equation;
    std::string la = text.substr(0, text.find(',')), rest = text.substr(la.size() + 1),
                lb = rest.substr(0, rest.find('-'));
    Shape a, b;
    for (char letter : la)
      a.push_back(sizes[letter]);
    for (char letter : lb)
      b.push_back(sizes[letter]);
    Array x = randomArray(a, 1), y = randomArray(b, 2);
    Result<Array> c = run("contract", {x, y}, ContractAttrs::make(text));
    ASSERT_TRUE(c.ok()) << text << ": " << toString(c.failure());
    std::vector<double> expected = einsum(text, x, y, c->shape());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(c->data<double>()[i], expected[i], 1e-12) << text << " at " << i;
  }
}

TEST(ContractTest, SizesAroundTheBlocks) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {1, 40, 33},
                         {40, 1, 33},
                         {2, 50, 70},
                         {50, 2, 70},
                         {64, 10, 784},
                         {17, 33, 65},
                         {9, 9, 9},
                         {128, 128, 1},
                         {5, 7, 0},
                         {0, 3, 4},
                         {300, 20, 40},
                         {1000, 260, 140}})
    for (bool aT : {false, true})
      for (bool bT : {false, true}) {
        Array a = randomArray(aT ? Shape{k, m} : Shape{m, k}, 3), b = randomArray(bT ? Shape{n, k} : Shape{k, n}, 4);
        std::string text = std::string(aT ? "km" : "mk") + (bT ? ",nk->mn" : ",kn->mn");
        for (DType dtype : {DType::f64, DType::f32}) {
          Array c = *run(
              "cast",
              {*run("contract", {*run("cast", {a}, CastAttrs::make(dtype)), *run("cast", {b}, CastAttrs::make(dtype))},
                    ContractAttrs::make(text))},
              CastAttrs::make(DType::f64));
          ASSERT_EQ(c.shape(), (Shape{m, n}));
          double worst = 0;
          for (int64_t i = 0; i < m; i += std::max<int64_t>(1, m / 30))
            for (int64_t j = 0; j < n; ++j) {
              double sum = 0;
              for (int64_t l = 0; l < k; ++l)
                sum += a.data<double>()[aT ? l * m + i : i * k + l] * b.data<double>()[bT ? j * k + l : l * n + j];
              worst = std::max(worst, std::abs(sum - c.data<double>()[i * n + j]));
            }
          EXPECT_LT(worst, dtype == DType::f64 ? 1e-12 : 1e-4) << text << " " << m << " " << n << " " << k;
        }
      }
}

/// Equal terms round to one side: in one running sum of them three digits are lost.
TEST(ContractTest, LongSumsKeepTheirDigits) {
  constexpr int64_t kTerms = 300000;
  struct Case {
    const char *equation;
    Shape a, b;
    Ints related = {};
  };
  for (const Case &each :
       {Case{"k,k->", {kTerms}, {kTerms}}, Case{"k,kn->n", {kTerms}, {kTerms, 3}},
        Case{"k,nk->n", {kTerms}, {3, kTerms}}, Case{"km,k->m", {kTerms, 9}, {kTerms}},
        Case{"km,k->m", {kTerms, 3}, {kTerms}}, Case{"km,nk->mn", {kTerms, 2}, {2, kTerms}},
        Case{"mk,kn->mn", {9, kTerms}, {kTerms, 9}}, Case{"h,r->p; h=p+r", {kTerms + 4}, {kTerms}, {5}},
        Case{"hc,rc->p; h=p+r", {2999, 200}, {1500, 200}, {1500}},
        Case{"nhc,npo->rco; h=p+r", {3000, 102, 2}, {3000, 100, 3}, {3}},
        Case{"nhc,npo->rco; h=p+r", {3000, 102, 9}, {3000, 100, 9}, {3}}}) {
    Array a = Array::empty(DType::f32, each.a), b = Array::empty(DType::f32, each.b);
    std::fill_n(a.data<float>(), a.numElements(), 0.1f);
    std::fill_n(b.data<float>(), b.numElements(), 1.f);
    double exact = static_cast<double>(kTerms) * static_cast<double>(0.1f);
    for (double sum :
         values<double>(run("cast", {*run("contract", {a, b}, ContractAttrs::make(each.equation, each.related))},
                            CastAttrs::make(DType::f64))))
      EXPECT_LE(std::abs(sum - exact), (std::sqrt(kTerms) + 16) * 0x1p-24 * exact) << each.equation;
  }
}

TEST(ContractTest, NanAndInfinityGoThrough) {
  double inf = std::numeric_limits<double>::infinity();
  Array a = Array::zeros(DType::f64, {16, 16}), b = Array::zeros(DType::f64, {16, 16});
  a.data<double>()[0] = inf; // times the zeros of b's row 0
  std::vector<double> c = values<double>(run("contract", {a, b}, ContractAttrs::make("mk,kn->mn")));
  EXPECT_TRUE(std::isnan(c[0]));
  EXPECT_EQ(c[16], 0);
}

TEST(ContractTest, Rules) {
  auto rule = [](const char *equation, TensorType a, TensorType b) {
    return types("contract", {a, b}, ContractAttrs::make(equation));
  };
  EXPECT_EQ(rule("mk,kn->mn", f32({128, 64}), f32({32, 10})),
            "sizes of letter k differ: a is f32[128,64], b is f32[32,10] (64 != 32)");
  EXPECT_EQ(rule("mk,kn->mn", f32({kUnknown, 64}), f32({64, 10})), "f32[?,10]");
  EXPECT_EQ(rule("bmk,bkn->bmn", f32({kUnknown, 2, 3}), f32({5, 3, 4})), "f32[5,2,4]");
  EXPECT_EQ(rule("mk,kn->mn", f32({2, 3}), {DType::f64, {3, 4}}), "f32[2,3] and f64[3,4] have different dtypes");
  EXPECT_EQ(rule("mk,kn->mn", f32({2, 3, 4}), f32({3, 4})),
            "equation \"mk,kn->mn\" has 2 and 2 letters for a and b: a is f32[2,3,4], b is f32[3,4]");
  EXPECT_EQ(rule("mk kn mn", f32({2, 3}), f32({3, 4})), "equation \"mk kn mn\" is not of the form \"mk,kn->mn\"");
  EXPECT_EQ(rule("mm,mn->n", f32({2, 2}), f32({2, 4})), "equation \"mm,mn->n\": letter m appears twice in one tensor");
  EXPECT_EQ(rule("mk,kn->m", f32({2, 3}), f32({3, 4})), "equation \"mk,kn->m\": letter n appears in one tensor only");
  EXPECT_EQ(rule("m1,1n->mn", f32({2, 3}), f32({3, 4})), "equation \"m1,1n->mn\": \"1\" is not a letter");
}

// ---- Shape ----------------------------------------------------------------------------------------------------------
TEST(ShapeTest, TransposeAnyPermutation) {
  for (Ints permutation :
       {Ints{0, 1, 2, 3}, Ints{3, 2, 1, 0}, Ints{1, 0, 3, 2}, Ints{2, 0, 1, 3}, Ints{0, 3, 1, 2}, Ints{3, 0, 1, 2}})
    for (DType dtype : {DType::f64, DType::f32, DType::u8, DType::bf16}) {
      Shape shape{3, 17, 5, 33};
      Array x = Array::empty(dtype, shape);
      auto *bytes = static_cast<uint8_t *>(x.buffer.data());
      for (size_t i = 0; i < x.numBytes(); ++i)
        bytes[i] = static_cast<uint8_t>(i * 7 + i / 256);
      Array y = *run("transpose", {x}, attrs({permutation}));
      size_t width = sizeOf(dtype);
      for (int64_t i = 0; i < y.numElements(); i += 13) {
        int64_t rest = i, from = 0;
        for (int axis = 4; axis-- > 0; rest /= y.shape().dim(axis)) {
          int64_t stride = 1, source = permutation[static_cast<size_t>(axis)];
          for (int inner = static_cast<int>(source) + 1; inner < 4; ++inner)
            stride *= shape.dim(inner);
          from += rest % y.shape().dim(axis) * stride;
        }
        ASSERT_EQ(std::memcmp(static_cast<uint8_t *>(y.buffer.data()) + static_cast<size_t>(i) * width,
                              bytes + static_cast<size_t>(from) * width, width),
                  0);
      }
    }
  EXPECT_EQ(types("transpose", {f32({2, kUnknown})}, axes({1, 0})), "f32[?,2]");
  EXPECT_EQ(types("transpose", {f32({2, 3})}, axes({0, 0})),
            "permutation [0, 0] does not name each axis of f32[2,3] once");
  EXPECT_EQ(types("transpose", {f32({2, 3})}, axes({0})), "permutation [0] does not name each axis of f32[2,3] once");
}

TEST(ShapeTest, LargeTransposeInThreads) {
  Array x = randomArray({700, 900}, 1);
  Array y = *run("transpose", {x}, axes({1, 0}));
  for (int64_t i = 0; i < 700; ++i)
    for (int64_t j = 0; j < 900; ++j)
      ASSERT_EQ(x.data<double>()[i * 900 + j], y.data<double>()[j * 700 + i]);
}

TEST(ShapeTest, Broadcast) {
  auto to = [](Array x, Ints shape, Ints dims) { return run("broadcast", {x}, BroadcastAttrs::make(shape, dims)); };
  EXPECT_EQ(values<float>(to(vec<float>({1, 2}), {2, 3}, {0})), (std::vector<float>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(values<float>(to(vec<float>({1, 2}), {3, 2}, {1})), (std::vector<float>{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(values<float>(to(arr<float>({1, 2}, {2, 1}), {2, 2, 2}, {0, 2})),
            (std::vector<float>{1, 1, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(values<float>(to(Array::scalar(5.0f), {0}, {})), std::vector<float>{});
  EXPECT_EQ(types("broadcast", {f32({3}), i64({})}, BroadcastAttrs::make(Ints{kUnknown, 3}, Ints{1})), "f32[?,3]");
  EXPECT_EQ(types("broadcast", {f32({3})}, BroadcastAttrs::make(Ints{2, 4}, Ints{1})),
            "axis 0 of f32[3] has size 3 and cannot become axis 1 of f32[2,4] (3 != 4)");
  EXPECT_EQ(types("broadcast", {f32({3})}, BroadcastAttrs::make(Ints{2, 3}, Ints{})),
            "dims [] name an axis of f32[2,3] for each axis of f32[3]");
  EXPECT_EQ(types("broadcast", {f32({3})}, BroadcastAttrs::make(Ints{2, 3}, Ints{2})),
            "axis 2 is not an axis of f32[2,3], which has rank 2");
  EXPECT_EQ(types("broadcast", {f32({3})}, BroadcastAttrs::make(Ints{-2, 3}, Ints{1})),
            "sizes are not negative, got shape [-2, 3]");
  EXPECT_EQ(types("broadcast", {f32({3}), f32({})}, BroadcastAttrs::make(Ints{kUnknown, 3}, Ints{1})),
            "an index operand is i64[], got f32[]");
  EXPECT_EQ(types("broadcast", {f32({3}), i64({})}, BroadcastAttrs::make(Ints{2, 3}, Ints{1})),
            "shape [2, 3] takes an index operand for each ?, got 1");
}

TEST(ShapeTest, Reshape) {
  EXPECT_EQ(types("reshape", {f32({2, 3})}, axes({7})), "f32[2,3] has 6 elements and f32[7] has 7");
  EXPECT_EQ(types("reshape", {f32({kUnknown, 3}), i64({})}, axes({kUnknown})), "f32[?]");
  EXPECT_EQ(message(run("reshape", {vec<float>({1, 2, 3}), Array::scalar<int64_t>(4)}, axes({kUnknown}))),
            "f32[3] has 3 elements and f32[4] has 4");
}

TEST(ShapeTest, SizesAreComputedByFormulas) {
  auto size = [](std::string formula, std::vector<int64_t> sizes = {}) {
    std::vector<Array> operands;
    for (int64_t n : sizes)
      operands.push_back(Array::scalar(n));
    Result<Array> result = run("size", operands, attrs({formula}));
    return result.ok() ? std::to_string(result->asIndex()) : result.failure().message;
  };
  EXPECT_EQ(size("7"), "7");
  EXPECT_EQ(size("a*10/3", {6}), "20");
  EXPECT_EQ(size("1 + 2 * 3 - 8 // 3 - 2", {}), "3");
  EXPECT_EQ(size("(a - 9) // 4 + 10", {0}), "7"); // rounded down
  EXPECT_EQ(size("(a - 9) % 4", {0}), "3");
  EXPECT_EQ(size("max(a - b, 0) + min(a, b, 5)", {7, 9}), "5");
  EXPECT_EQ(size("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(size("a / 4", {10}), "the formula \"a / 4\" with a = 10: 10 is not a multiple of 4");
  EXPECT_EQ(size("a - b", {1, 2}), "the formula \"a - b\" with a = 1, b = 2: the size is negative: -1");
  for (const char *formula : {"a + 1", "a * 2", "(0 - a - 1) / (0 - 1)", "(0 - a - 1) // (0 - 1)", "0 - 2 - a"})
    EXPECT_EQ(size(formula, {INT64_MAX}),
              "the formula \"" + std::string(formula) + "\" with a = 9223372036854775807: a step is beyond 64 bits");
  for (const char *formula : {"a // 0", "a / 0", "a % 0"})
    EXPECT_EQ(size(formula, {3}), "the formula \"" + std::string(formula) + "\" with a = 3: a division by zero");
  EXPECT_EQ(size("9223372036854775808"), "the formula \"9223372036854775808\": a literal beyond 64 bits");
  EXPECT_EQ(size("a b", {1, 2}), "the formula \"a b\": 'b' where an operator or the end of the formula is expected");
  EXPECT_EQ(size(""), "the formula \"\": the end where a letter or a number is expected");
  EXPECT_EQ(size("a + ", {1}), "the formula \"a + \": the end where a letter or a number is expected");
  EXPECT_EQ(size("b", {1}), "the formula \"b\": 'b', and there are 1 operands");
  EXPECT_EQ(size(std::string(100000, '(')),
            "the formula \"" + std::string(100000, '(') + "\": parentheses nested deeper than 64");
  EXPECT_EQ(types("size", {f32({})}, attrs({std::string("a")})), "an operand is i64[], got f32[]");
}

TEST(ShapeTest, SliceAndPad) {
  Array x = arr<int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 4});
  auto slice = [&](Ints starts, Ints limits, Ints strides) {
    return run("slice", {x}, SliceAttrs::make(starts, limits, strides));
  };
  EXPECT_EQ(values<int32_t>(slice({1, 0}, {3, 4}, {1, 2})), (std::vector<int32_t>{4, 6, 8, 10}));
  EXPECT_EQ(values<int32_t>(slice({0, 3}, {3, 4}, {2, 1})), (std::vector<int32_t>{3, 11}));
  // One index operand for each `?`: the starts' first.
  auto size = [](int64_t n) { return Array::scalar(n); };
  EXPECT_EQ(values<int32_t>(run("slice", {x, size(1), size(2), size(4)},
                                SliceAttrs::make(Ints{kDynamic, kDynamic}, Ints{3, kDynamic}, Ints{1, 1}))),
            (std::vector<int32_t>{6, 7, 10, 11}));
  EXPECT_EQ(message(run("slice", {x, size(4)}, SliceAttrs::make(Ints{0, 0}, Ints{kDynamic, 4}, Ints{1, 1}))),
            "axis 0 of i32[3,4]: 0 <= start <= limit <= 3 does not hold for start 0 and limit 4");
  EXPECT_EQ(message(run("slice", {x, size(-1)}, SliceAttrs::make(Ints{0, 0}, Ints{kDynamic, 4}, Ints{1, 1}))),
            "sizes are not negative, got -1");
  EXPECT_EQ(values<int32_t>(run("pad", {vec<int32_t>({5}), size(1), size(2)},
                                PadAttrs::make(Ints{kDynamic}, Ints{kDynamic}, Ints{0}))),
            (std::vector<int32_t>{0, 5, 0, 0}));
  EXPECT_EQ(values<int32_t>(slice({3, 0}, {3, 4}, {1, 1})), std::vector<int32_t>{});
  EXPECT_EQ(message(slice({0, 0}, {4, 4}, {1, 1})),
            "axis 0 of i32[3,4]: 0 <= start <= limit <= 3 does not hold for start 0 and limit 4");
  EXPECT_EQ(message(slice({0, 0}, {3, 4}, {1, 0})), "strides are positive, got [1, 0]");
  EXPECT_EQ(message(slice({0}, {3, 4}, {1, 1})),
            "starts [0], limits [3, 4] and strides [1, 1] have an entry for each axis of i32[3,4]");
  EXPECT_EQ(types("slice", {f32({kUnknown, 4}), TensorType{DType::i64, {}}},
                  SliceAttrs::make(Ints{0, 1}, Ints{kDynamic, 3}, Ints{1, 1})),
            "f32[?,2]");
  EXPECT_EQ(types("slice", {f32({kUnknown})}, SliceAttrs::make(Ints{1}, Ints{kDynamic}, Ints{1})),
            "starts [1] and limits [?] take an index operand for each ?, got 0");
  EXPECT_EQ(types("slice", {f32({kUnknown})}, SliceAttrs::make(Ints{1}, Ints{6}, Ints{2})), "f32[3]");
  EXPECT_EQ(types("slice", {f32({4}), TensorType{DType::i64, {}}}, SliceAttrs::make(Ints{kDynamic}, Ints{3}, Ints{2})),
            "f32[?]");
  EXPECT_EQ(types("slice", {f32({4}), TensorType{DType::i64, {}}}, SliceAttrs::make(Ints{kDynamic}, Ints{5}, Ints{2})),
            "axis 0 of f32[4]: 0 <= start <= limit <= 4 does not hold for start ? and limit 5");

  auto pad = [](Array x, Ints low, Ints high, Ints interior) {
    return run("pad", {x}, PadAttrs::make(low, high, interior));
  };
  EXPECT_EQ(values<int32_t>(pad(arr<int32_t>({1, 2, 3, 4}, {2, 2}), {1, 0}, {0, 1}, {0, 1})),
            (std::vector<int32_t>{0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0}));
  EXPECT_EQ(values<int32_t>(pad(Array::zeros(DType::i32, {0}), {1}, {1}, {5})), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(types("pad", {f32({2})}, PadAttrs::make(Ints{-1}, Ints{0}, Ints{0})),
            "paddings are not negative, got low [-1], high [0], interior [0]");
  EXPECT_EQ(types("pad", {f32({kUnknown})}, PadAttrs::make(Ints{1}, Ints{0}, Ints{0})), "f32[?]");
  EXPECT_EQ(types("pad", {f32({2}), TensorType{DType::i64, {}}}, PadAttrs::make(Ints{kDynamic}, Ints{0}, Ints{0})),
            "f32[?]");
  EXPECT_EQ(types("pad", {f32({kUnknown})}, PadAttrs::make(Ints{0}, Ints{0}, Ints{0})), "f32[?]");
  EXPECT_EQ(types("pad", {f32({2})}, PadAttrs::make(Ints{1}, Ints{}, Ints{0})),
            "low [1], high [] and interior [0] have an entry for each axis of f32[2]");
}

TEST(ShapeTest, Concat) {
  Array a = arr<float>({1, 2}, {2, 1}), b = arr<float>({3, 4, 5, 6}, {2, 2}), none = Array::zeros(DType::f32, {2, 0});
  EXPECT_EQ(values<float>(run("concat", {a, none, b, a}, attrs({int64_t(1)}))),
            (std::vector<float>{1, 3, 4, 1, 2, 5, 6, 2}));
  EXPECT_EQ(values<float>(run("concat", {a, a, a, a, a, a}, attrs({int64_t(0)}))),
            (std::vector<float>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(types("concat", {f32({kUnknown, 2}), f32({3, 2})}, attrs({int64_t(0)})), "f32[?,2]");
  EXPECT_EQ(types("concat", {f32({3, kUnknown}), f32({3, 2})}, attrs({int64_t(0)})), "f32[6,2]");
  EXPECT_EQ(types("concat", {f32({3, 1}), f32({3, 2})}, attrs({int64_t(0)})),
            "f32[3,1] and f32[3,2] differ on an axis other than 0");
  EXPECT_EQ(types("concat", {f32({3}), i64({3})}, attrs({int64_t(0)})), "f32[3] and i64[3] have different dtypes");
  EXPECT_EQ(types("concat", {f32({3})}, attrs({int64_t(1)})), "axis 1 is not an axis of f32[3], which has rank 1");
  EXPECT_EQ(types("concat", {}, attrs({int64_t(0)})), "takes at least one operand, got 0");
}

TEST(ShapeTest, ConstantDimIota) {
  EXPECT_EQ(values<float>(run("constant", {}, attrs({vec<float>({1, 2})}))), (std::vector<float>{1, 2}));
  EXPECT_EQ(values<int64_t>(run("dim", {Array::zeros(DType::f32, {2, 7})}, attrs({int64_t(1)}))),
            std::vector<int64_t>{7});
  EXPECT_EQ(types("dim", {f32({2})}, attrs({int64_t(1)})), "axis 1 is not an axis of f32[2], which has rank 1");
  EXPECT_EQ(values<float>(run("iota", {}, IotaAttrs::make(Ints{2, 3}, 0, DType::f32))),
            (std::vector<float>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(values<uint8_t>(run("iota", {}, IotaAttrs::make(Ints{300}, 0, DType::u8)))[299], 43) << "integers wrap";
  EXPECT_EQ(types("iota", {}, IotaAttrs::make(Ints{2}, 1, DType::f32)),
            "axis 1 is not an axis of f32[2], which has rank 1");
  EXPECT_EQ(types("iota", {}, IotaAttrs::make(Ints{2}, 0, DType::boolean)), "the result's dtype is a number, got bool");
}

// ---- Index ----------------------------------------------------------------------------------------------------------
TEST(IndexTest, Gather) {
  Array x = arr<float>({0, 1, 10, 11, 20, 21}, {3, 2});
  EXPECT_EQ(values<float>(run("gather", {x, vec<int64_t>({2, 0, 2})}, GatherAttrs::make())),
            (std::vector<float>{20, 21, 0, 1, 20, 21}));
  EXPECT_EQ(values<float>(run("gather", {vec<float>({5, 6}), arr<int32_t>({1, 0, 0, 1}, {2, 2})}, GatherAttrs::make())),
            (std::vector<float>{6, 5, 5, 6}));
  EXPECT_EQ(message(run("gather", {x, vec<int64_t>({0, 3})}, GatherAttrs::make())),
            "index 3 at position 1 is out of range for an axis of size 3");
  EXPECT_EQ(message(run("gather", {x, vec<int32_t>({-1})}, GatherAttrs::make())),
            "index -1 at position 0 is out of range for an axis of size 3");
  EXPECT_EQ(types("gather", {f32({}), i64({2})}, GatherAttrs::make()), "takes rows of x, which has none: f32[]");
  EXPECT_EQ(types("gather", {f32({3}), f32({2})}, GatherAttrs::make()), "the indices are i64 or i32, got f32[2]");
  EXPECT_EQ(types("gather", {f32({kUnknown, 4}), i64({kUnknown})}, GatherAttrs::make()), "f32[?,4]");
  EXPECT_EQ(types("gather", {f32({1, 1, 1, 1, 1}), i64({1, 1, 1, 1, 1})}, GatherAttrs::make()),
            "the result of f32[1,1,1,1,1] at i64[1,1,1,1,1] would have rank 9; the highest is 8");
  // Each place of the batch has its own rows.
  Array two = arr<float>({0, 1, 2, 10, 11, 12}, {2, 3});
  EXPECT_EQ(values<float>(run("gather", {two, arr<int64_t>({2, 0, 1, 1}, {2, 2})}, GatherAttrs::make(1))),
            (std::vector<float>{2, 0, 11, 11}));
  EXPECT_EQ(message(run("gather", {two, arr<int64_t>({2, 0, 1, 3}, {2, 2})}, GatherAttrs::make(1))),
            "index 3 at position 3 is out of range for an axis of size 3");
  EXPECT_EQ(types("gather", {f32({2, 3}), i64({3, 2})}, GatherAttrs::make(1)),
            "the first 1 axes of x f32[2,3] are not those of the indices i64[3,2]");
  EXPECT_EQ(types("gather", {f32({2, 3}), i64({2, 2})}, GatherAttrs::make(-1)),
            "the first -1 axes of x f32[2,3] are not those of the indices i64[2,2]");
  EXPECT_EQ(types("gather", {f32({2, 3}), i64({2, 3})}, GatherAttrs::make(2)),
            "the first 2 axes of x f32[2,3] are not those of the indices i64[2,3]");
  EXPECT_EQ(types("gather", {f32({kUnknown, 3, 4}), i64({2, kUnknown})}, GatherAttrs::make(1)), "f32[2,?,4]");
}

TEST(IndexTest, ScatterAdd) {
  auto scatter = [](Array updates, Array indices, Ints shape) {
    return run("scatter_add", {updates, indices}, ScatterAddAttrs::make(shape));
  };
  EXPECT_EQ(values<float>(scatter(arr<float>({1, 2, 3, 4, 5, 6}, {3, 2}), vec<int64_t>({2, 0, 2}), {3, 2})),
            (std::vector<float>{3, 4, 0, 0, 6, 8}));
  EXPECT_EQ(values<uint8_t>(scatter(vec<uint8_t>({200, 100}), vec<int32_t>({1, 1}), {2})),
            (std::vector<uint8_t>{0, 44}));
  EXPECT_EQ(message(scatter(vec<float>({1}), vec<int64_t>({2}), {2})),
            "index 2 at position 0 is out of range for an axis of size 2");
  EXPECT_EQ(values<float>(run("scatter_add", {vec<float>({1, 2}), vec<int64_t>({1, 1}), Array::scalar<int64_t>(3)},
                              ScatterAddAttrs::make(Ints{kDynamic}))),
            (std::vector<float>{0, 3, 0}));
  EXPECT_EQ(types("scatter_add", {f32({2, 3}), i64({2})}, ScatterAddAttrs::make(Ints{5, 4})),
            "updates f32[2,3] are not the rows of f32[5,4] at indices i64[2]");
  EXPECT_EQ(types("scatter_add", {f32({2}), i64({2})}, ScatterAddAttrs::make(Ints{})),
            "updates f32[2] are not the rows of f32[] at indices i64[2]");
  EXPECT_EQ(values<float>(run("scatter_add", {arr<float>({1, 2, 3, 4}, {2, 2}), arr<int64_t>({1, 1, 0, 2}, {2, 2})},
                              ScatterAddAttrs::make(Ints{2, 3}, 1))),
            (std::vector<float>{0, 3, 0, 3, 0, 4}));
  EXPECT_EQ(types("scatter_add", {f32({2, 2}), i64({2, 2})}, ScatterAddAttrs::make(Ints{3, 3}, 1)),
            "the first 1 axes of y f32[3,3] are not those of the indices i64[2,2]");
}

TEST(IndexTest, OneHot) {
  EXPECT_EQ(values<float>(run("one_hot", {vec<int32_t>({0, 2, 3, -1})}, OneHotAttrs::make(3, DType::f32))),
            (std::vector<float>{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(values<bool>(run("one_hot", {vec<int64_t>({1})}, OneHotAttrs::make(2, DType::boolean))),
            (std::vector<bool>{0, 1}));
  EXPECT_EQ(types("one_hot", {i64({kUnknown})}, OneHotAttrs::make(3, DType::f32)), "f32[?,3]");
  EXPECT_EQ(types("one_hot", {i64({2})}, OneHotAttrs::make(-3, DType::f32)), "depth is not negative, got -3");
}

// ---- Random ---------------------------------------------------------------------------------------------------------
TEST(RandomTest, KnownAnswers) {
  // kat_vectors of the Random123 distribution, philox4x32 with 10 rounds.
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, ElementsFollowFromKeyAndPlace) {
  Array key = vec<int64_t>({0x0123456789abcdef, -2});
  std::vector<int64_t> bits = values<int64_t>(run("random_bits", {key}, RandomBitsAttrs::make(Ints{5}, DType::i64)));
  std::vector<int32_t> low = values<int32_t>(run("random_bits", {key}, RandomBitsAttrs::make(Ints{5}, DType::i32)));
  std::vector<float> f = values<float>(run("random_uniform", {key}, RandomUniformAttrs::make(Ints{5}, DType::f32)));
  std::vector<double> d = values<double>(run("random_uniform", {key}, RandomUniformAttrs::make(Ints{5}, DType::f64)));
  for (uint32_t i = 0; i < 5; ++i) {
    auto word = philox4x32({i, 0, 0x01234567, 0xffffffff}, {0x89abcdef, 0xfffffffe});
    uint64_t wide = word[0] | static_cast<uint64_t>(word[1]) << 32;
    EXPECT_EQ(static_cast<uint64_t>(bits[i]), wide);
    EXPECT_EQ(static_cast<uint32_t>(low[i]), word[0]);
    EXPECT_EQ(f[i], static_cast<float>(word[0] >> 8) / 16777216.0f);
    EXPECT_EQ(d[i], static_cast<double>(wide >> 11) / 9007199254740992.0);
  }
}

TEST(RandomTest, UniformIsUniform) {
  Array x = *run("random_uniform", {vec<int64_t>({1, 2})}, RandomUniformAttrs::make(Ints{100000}, DType::f32));
  double sum = 0, squares = 0;
  for (float value : x.span<float>()) {
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum / 1e5, 0.5, 0.005);
  EXPECT_NEAR(squares / 1e5, 1.0 / 3, 0.005);
}

TEST(RandomTest, Rules) {
  EXPECT_EQ(types("random_uniform", {i64({3})}, RandomUniformAttrs::make(Ints{5}, DType::f32)),
            "the key is i64[2], or several as i64[..., 2], got i64[3]");
  EXPECT_EQ(types("random_uniform", {i64({2})}, RandomUniformAttrs::make(Ints{5}, DType::i32)),
            "the result's dtype is a float, got i32");
  EXPECT_EQ(types("random_bits", {i64({2})}, RandomBitsAttrs::make(Ints{5}, DType::u8)),
            "the result's dtype is i64 or i32, got u8");
  EXPECT_EQ(types("random_bits", {i64({2}), i64({})}, RandomBitsAttrs::make(Ints{kUnknown}, DType::i32)), "i32[?]");
  EXPECT_EQ(message(run("random_uniform", {vec<int64_t>({1, 2})}, RandomUniformAttrs::make(Ints{5}, DType::f16))),
            "there are no kernels for f16 | cast to f32: cast(x, f32)");
}

} // namespace
} // namespace wg::runtime
