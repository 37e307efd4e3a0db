// How fast can a step of peers/STEPS.md be? The steps a, b, c, f, f_small, i, k by hand: fused loops in AVX-512, each
// product by the best of our own packed kernel, libxsmm and oneDNN where they were found. One thread.
// `hand STEP [--budget SECONDS]` prints one line of JSON: losses (or sums) and times.
//
// Losses and sums are those of IEEE arithmetic. While a step is timed, subnormals are zeros: thousands of steps on one
// batch kill some relu, and the moments of its weights decay into subnormals, which here cost step b a tenth.
#include "Expected.h"
#include "Problem.h"
#include "lstm.h"
#include "vmath.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include <sys/mman.h>

#ifdef WITH_XSMM
#include <libxsmm.h>
#endif
#ifdef WITH_DNNL
#include <dnnl.h>
extern "C" __attribute__((weak)) void omp_set_num_threads(int); // oneDNN's threads, where it is built with OpenMP
#endif

using V = __m512;

// ---- Memory: aligned, on huge pages where large ---------------------------------------------------------------------

/// Zeros that are never given back, on 64 bytes. What a step reads together lies on the same huge pages, one line
/// apart, so that no two arrays begin at the same place of their 4 KiB.
static float *floats(size_t count) {
  static char *next = nullptr, *end = nullptr;
  constexpr size_t kHuge = size_t(2) << 20;
  size_t bytes = (count * sizeof(float) + 63) / 64 * 64 + 64;
  if (static_cast<size_t>(end - next) < bytes) {
    size_t whole = (std::max(bytes, 4 * kHuge) + kHuge - 1) / kHuge * kHuge;
    next = static_cast<char *>(std::aligned_alloc(kHuge, whole));
    if (!next)
      std::abort();
    end = next + whole;
    madvise(next, whole, MADV_HUGEPAGE);
    std::memset(next, 0, whole);
  }
  auto *memory = reinterpret_cast<float *>(next);
  next += bytes;
  return memory;
}
static float *floats(const std::vector<float> &values) {
  float *memory = floats(values.size());
  std::copy(values.begin(), values.end(), memory);
  return memory;
}

// ---- Products: C[m,n] = op(A) op(B), row-major; rows of A are lda apart ---------------------------------------------

/// R rows of 32 columns of C, from panels a[k][R] and b[k][32].
template <int R>
static void micro(int k, const float *a, const float *b, float *c, int ldc, __mmask16 left, __mmask16 right, bool add) {
  V low[R], high[R];
  for (int r = 0; r < R; ++r)
    low[r] = high[r] = _mm512_setzero_ps();
  for (int p = 0; p < k; ++p, a += R, b += 32) {
    V b0 = _mm512_load_ps(b), b1 = _mm512_load_ps(b + 16);
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r) {
      V x = _mm512_set1_ps(a[r]);
      low[r] = _mm512_fmadd_ps(x, b0, low[r]);
      high[r] = _mm512_fmadd_ps(x, b1, high[r]);
    }
  }
  for (int r = 0; r < R; ++r, c += ldc) {
    if (add) {
      low[r] = _mm512_add_ps(low[r], _mm512_maskz_loadu_ps(left, c));
      high[r] = _mm512_add_ps(high[r], _mm512_maskz_loadu_ps(right, c + 16));
    }
    _mm512_mask_storeu_ps(c, left, low[r]);
    _mm512_mask_storeu_ps(c + 16, right, high[r]);
  }
}
using Micro = void (*)(int, const float *, const float *, float *, int, __mmask16, __mmask16, bool);
template <int... R> static Micro microOf(int rows, std::integer_sequence<int, R...>) {
  static constexpr Micro table[] = {micro<R + 1>...};
  return table[rows - 1];
}

/// Panels of 14 rows and of 32 columns, kc = 384 deep (Goto and van de Geijn 2008).
static void ownProduct(bool ta, bool tb, int m, int n, int k, const float *A, int lda, const float *B, float *C) {
  constexpr int kRows = 14, kDepth = 384;
  static float *panelsA = floats(size_t(1) << 21), *panelsB = floats(size_t(1) << 21);
  for (int p0 = 0; p0 < k; p0 += kDepth) {
    int depth = std::min(kDepth, k - p0);
    for (int j = 0; j < n; j += 32) {
      float *b = panelsB + size_t(j) * depth;
      int width = std::min(32, n - j);
      for (int p = 0; p < depth; ++p)
        for (int q = 0; q < 32; ++q)
          b[p * 32 + q] = q >= width ? 0 : tb ? B[size_t(j + q) * k + p0 + p] : B[size_t(p0 + p) * n + j + q];
    }
    for (int i = 0; i < m; i += kRows) {
      int rows = std::min(kRows, m - i);
      float *a = panelsA;
      for (int p = 0; p < depth; ++p)
        for (int r = 0; r < rows; ++r)
          a[p * rows + r] = ta ? A[size_t(p0 + p) * lda + i + r] : A[size_t(i + r) * lda + p0 + p];
      Micro kernel = microOf(rows, std::make_integer_sequence<int, kRows>());
      for (int j = 0; j < n; j += 32) {
        auto mask = [&](int from) {
          return static_cast<__mmask16>(n - from >= 16 ? 0xffff : n > from ? (1u << (n - from)) - 1 : 0);
        };
        kernel(depth, a, panelsB + size_t(j) * depth, C + size_t(i) * n + j, n, mask(j), mask(j + 16), p0 > 0);
      }
    }
  }
}

using Product = std::function<void(bool, bool, int, int, int, const float *, int, const float *, float *)>;
static std::vector<std::pair<const char *, Product>> products() {
  std::vector<std::pair<const char *, Product>> all = {{"own", ownProduct}};
#ifdef WITH_XSMM
  libxsmm_init();
  all.emplace_back("libxsmm",
                   [](bool ta, bool tb, int m, int n, int k, const float *A, int lda, const float *B, float *C) {
                     static float *transposed = floats(size_t(1) << 21);
                     static std::map<std::tuple<int, int, int, int, bool>, libxsmm_smmfunction> kernels;
                     if (tb) {
                       for (int j = 0; j < n; ++j)
                         for (int p = 0; p < k; ++p)
                           transposed[size_t(p) * n + j] = B[size_t(j) * k + p];
                       B = transposed;
                     }
                     libxsmm_smmfunction &kernel = kernels[{m, n, k, lda, ta}];
                     if (!kernel) {
                       int flags = ta ? LIBXSMM_GEMM_FLAG_TRANS_B : 0, prefetch = LIBXSMM_PREFETCH_NONE;
                       float one = 1, zero = 0;
                       kernel = libxsmm_smmdispatch(n, m, k, &n, &lda, &n, &one, &zero, &flags, &prefetch);
                     }
                     if (kernel)
                       kernel(B, A, C);
                     else
                       ownProduct(ta, false, m, n, k, A, lda, B, C);
                   });
#endif
#ifdef WITH_DNNL
  if (omp_set_num_threads)
    omp_set_num_threads(1);
  all.emplace_back("oneDNN",
                   [](bool ta, bool tb, int m, int n, int k, const float *A, int lda, const float *B, float *C) {
                     dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, A, lda, B, tb ? k : n, 0, C, n);
                   });
#endif
  return all;
}

/// Each product of a step by one of products(), chosen by what the whole step takes: alone and in warm caches, another
/// one may be the fastest.
class Mixture {
public:
  void operator()(bool ta, bool tb, int m, int n, int k, const float *A, int lda, const float *B, float *C) {
    size_t candidate = chosen_.try_emplace({ta, tb, m, n, k}, fallback_).first->second;
    all_[candidate].second(ta, tb, m, n, k, A, lda, B, C);
  }
  /// The best candidate for all products of the step; returns its time.
  template <class Step> double chooseOne(Step &&step) {
    chosen_.clear();
    double best = 1e9;
    size_t fastest = 0;
    for (fallback_ = 0; fallback_ < all_.size(); ++fallback_, chosen_.clear())
      if (double time = once(step); time < best)
        best = time, fastest = fallback_;
    fallback_ = fastest;
    return best;
  }
  /// From there, for each product the best beside the others.
  template <class Step> void chooseEach(Step &&step) {
    double best = once(step); // and so all products are known
    for (auto &[product, candidate] : chosen_)
      for (size_t i = 0, before = candidate; i < all_.size(); ++i) {
        if (i == before)
          continue;
        size_t kept = std::exchange(candidate, i);
        if (double time = once(step); time < 0.997 * best)
          best = time;
        else
          candidate = kept;
      }
  }
  /// `libxsmm, oneDNN`: those that were chosen.
  std::string names() const {
    std::string list;
    for (size_t i = 0; i < all_.size(); ++i)
      if (std::any_of(chosen_.begin(), chosen_.end(), [&](const auto &entry) { return entry.second == i; }))
        list += (list.empty() ? "" : ", ") + std::string(all_[i].first);
    return list;
  }

private:
  /// The fastest of some calls, about 30 ms of them.
  template <class Step> static double once(Step &&step) {
    step();
    double best = 1e9, start = bench::seconds();
    for (int i = 0; i < 3 || bench::seconds() - start < 0.03; ++i) {
      double begin = bench::seconds();
      step();
      best = std::min(best, bench::seconds() - begin);
    }
    return best;
  }
  std::vector<std::pair<const char *, Product>> all_ = products();
  std::map<std::tuple<bool, bool, int, int, int>, size_t> chosen_;
  size_t fallback_ = 0; ///< of products that are not known yet
};

// ---- Fused loops ----------------------------------------------------------------------------------------------------

/// Adam (Kingma and Ba 2015, algorithm 1): m, v, p in one pass.
struct AdamRates {
  AdamRates(double lr, int t)
      : rate(static_cast<float>(-lr / std::expm1(t * std::log(0.9)))),
        correction(static_cast<float>(-1 / std::expm1(t * std::log(0.999)))) {}
  float rate, correction;
};
static void adam(float *p, const float *g, float *m, float *v, size_t n, AdamRates rates) {
  V b1 = vm::set1(0.9f), c1 = vm::set1(1 - 0.9f), b2 = vm::set1(0.999f), c2 = vm::set1(1 - 0.999f),
    r = vm::set1(rates.rate), k = vm::set1(rates.correction), eps = vm::set1(1e-8f);
  auto update = [&](auto load, auto store, size_t i) {
    V gi = load(g + i), mi = vm::fma(b1, load(m + i), _mm512_mul_ps(c1, gi)),
      vi = vm::fma(b2, load(v + i), _mm512_mul_ps(c2, _mm512_mul_ps(gi, gi))),
      step = _mm512_div_ps(_mm512_mul_ps(r, mi), _mm512_add_ps(_mm512_sqrt_ps(_mm512_mul_ps(vi, k)), eps));
    store(m + i, mi), store(v + i, vi), store(p + i, _mm512_sub_ps(load(p + i), step));
  };
  size_t i = 0;
  for (; i + 16 <= n; i += 16)
    update([](const float *at) { return _mm512_loadu_ps(at); }, [](float *at, V x) { _mm512_storeu_ps(at, x); }, i);
  if (auto mask = static_cast<__mmask16>((1u << (n - i)) - 1))
    update([=](const float *at) { return _mm512_maskz_loadu_ps(mask, at); },
           [=](float *at, V x) { _mm512_mask_storeu_ps(at, mask, x); }, i);
}

/// h = relu(h + b) over rows; columns are a multiple of 16.
static void biasRelu(float *h, const float *b, int rows, int columns) {
  for (int r = 0; r < rows; ++r, h += columns)
    for (int c = 0; c < columns; c += 16)
      _mm512_storeu_ps(
          h + c, _mm512_max_ps(_mm512_setzero_ps(), _mm512_add_ps(_mm512_loadu_ps(h + c), _mm512_loadu_ps(b + c))));
}

/// d = d where h > 0, else 0; db = column sums of d. Columns are a multiple of 64.
static void reluBackward(float *d, const float *h, float *db, int rows, int columns) {
  for (int c = 0; c < columns; c += 64) {
    V sum[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
    for (int r = 0; r < rows; ++r)
      for (int u = 0; u < 4; ++u) {
        size_t at = size_t(r) * columns + c + 16 * u;
        V kept =
            _mm512_maskz_loadu_ps(_mm512_cmp_ps_mask(_mm512_loadu_ps(h + at), _mm512_setzero_ps(), _CMP_GT_OQ), d + at);
        _mm512_storeu_ps(d + at, kept);
        sum[u] = _mm512_add_ps(sum[u], kept);
      }
    for (int u = 0; u < 4; ++u)
      _mm512_storeu_ps(db + c + 16 * u, sum[u]);
  }
}

/// z[rows, 16], 10 columns of which count -> (softmax(z + b) - onehot(y)) / rows in place, db; the mean loss.
static float crossEntropy(float *z, const float *b, const int32_t *y, float *db, int rows) {
  constexpr __mmask16 mask = (1u << 10) - 1;
  V bias = _mm512_maskz_loadu_ps(mask, b), sums = _mm512_setzero_ps(),
    inverse = vm::set1(1.0f / static_cast<float>(rows));
  double loss = 0;
  for (int r = 0; r < rows; ++r, z += 16) {
    V v = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, z), bias);
    v = _mm512_sub_ps(v, vm::set1(_mm512_mask_reduce_max_ps(mask, v)));
    V e = _mm512_maskz_mov_ps(mask, vm::exp(v));
    float sum = _mm512_reduce_add_ps(e);
    __mmask16 hit = static_cast<__mmask16>(1u << y[r]);
    loss += std::log(sum) - _mm512_mask_reduce_add_ps(hit, v);
    V d = _mm512_mul_ps(e, vm::set1(1.0f / (sum * static_cast<float>(rows))));
    d = _mm512_mask_sub_ps(d, hit, d, inverse);
    _mm512_storeu_ps(z, d);
    sums = _mm512_add_ps(sums, d);
  }
  _mm512_storeu_ps(db, sums);
  return static_cast<float>(loss / rows);
}

/// A relu network with 10 outputs, whose last layer is padded to 16 columns.
class Network {
public:
  Network(std::vector<int> sizes, int batch, Mixture &product)
      : sizes_(std::move(sizes)), batch_(batch), product_(product) {
    layers_ = static_cast<int>(sizes_.size()) - 1;
    auto columns = [&](int i) { return i == layers_ - 1 ? 16 : sizes_[size_t(i) + 1]; };
    for (int i = 0; i < layers_; ++i)
      count_ += (size_t(sizes_[size_t(i)]) + 1) * size_t(columns(i));
    p_ = floats(count_), g_ = floats(count_), db_ = floats(count_), m_ = floats(count_), v_ = floats(count_);
    size_t at = 0;
    for (int i = 0; i < layers_; ++i) {
      int rows = sizes_[size_t(i)], width = sizes_[size_t(i) + 1];
      std::vector<float> w = bench::weight(10 + 2 * uint64_t(i), size_t(rows), size_t(width));
      for (int r = 0; r < rows; ++r)
        std::copy_n(w.begin() + r * width, width, p_ + at + size_t(r) * size_t(columns(i)));
      w_.push_back(at), at += size_t(rows) * size_t(columns(i));
      b_.push_back(at), at += size_t(columns(i));
      h_.push_back(floats(size_t(batch) * size_t(columns(i)))),
          d_.push_back(floats(size_t(batch) * size_t(columns(i))));
    }
    x_ = floats(bench::uniform(1, size_t(batch) * size_t(sizes_[0])));
    y_ = bench::labels(2, size_t(batch), 10);
  }
  float step(double lr) {
    auto columns = [&](int i) { return i == layers_ - 1 ? 16 : sizes_[size_t(i) + 1]; };
    auto input = [&](int i) { return i ? h_[size_t(i) - 1] : x_; };
    for (int i = 0; i < layers_; ++i) {
      product_(false, false, batch_, columns(i), sizes_[size_t(i)], input(i), sizes_[size_t(i)], p_ + w_[size_t(i)],
               h_[size_t(i)]);
      if (i < layers_ - 1)
        biasRelu(h_[size_t(i)], p_ + b_[size_t(i)], batch_, columns(i));
    }
    float *d = h_.back(), loss = crossEntropy(d, p_ + b_.back(), y_.data(), db_, batch_);
    AdamRates rates(lr, t_ = std::min(t_ + 1, 100000));
    for (int i = layers_ - 1; i >= 0; --i) {
      int rows = sizes_[size_t(i)], width = columns(i);
      float *next = i ? d_[size_t(i) - 1] : nullptr;
      if (i)
        product_(false, true, batch_, rows, width, d, width, p_ + w_[size_t(i)], next);
      // The gradient of some rows of the weight is used up while the nearest cache has it.
      int block = std::clamp(blockFloats / width, 1, rows);
      for (int r = 0; r < rows; r += block) {
        int some = std::min(block, rows - r);
        product_(true, false, some, width, batch_, input(i) + r, rows, d, g_);
        update(w_[size_t(i)] + size_t(r) * size_t(width), g_, size_t(some) * size_t(width), rates);
      }
      update(b_[size_t(i)], db_, size_t(width), rates);
      if (i) {
        reluBackward(next, h_[size_t(i) - 1], db_, batch_, rows);
        d = next;
      }
    }
    return loss;
  }

  int blockFloats = 1 << 30; ///< of a weight whose gradient is computed and used at once

private:
  void update(size_t at, const float *gradient, size_t count, AdamRates rates) {
    adam(p_ + at, gradient, m_ + at, v_ + at, count, rates);
  }
  std::vector<int> sizes_;
  int batch_, layers_ = 0, t_ = 0;
  Mixture &product_;
  size_t count_ = 0;
  std::vector<size_t> w_, b_;
  std::vector<float *> h_, d_;
  float *p_ = nullptr, *g_ = nullptr, *db_ = nullptr, *m_ = nullptr, *v_ = nullptr, *x_ = nullptr;
  std::vector<int32_t> y_;
};

/// Gradient of the sum of five rounds y = tanh(0.5 y + 0.1) x with respect to x; eight vectors at a time,
/// since one chain of tanh waits for itself; what does not fit into registers costs less. n is a multiple of 128.
static void chain(const float *x, float *g, size_t n) {
  constexpr int U = 8;
  for (size_t i = 0; i < n; i += 16 * U) {
    V X[U], y[U], c[5][U], d[U], dx[U];
    for (int u = 0; u < U; ++u)
      y[u] = X[u] = _mm512_loadu_ps(x + i + 16 * u);
    for (int k = 0; k < 5; ++k) {
      for (int u = 0; u < U; ++u)
        c[k][u] = vm::tanh(vm::fma(y[u], vm::set1(0.5f), vm::set1(0.1f)));
      for (int u = 0; u < U; ++u)
        y[u] = _mm512_mul_ps(c[k][u], X[u]);
    }
    for (int u = 0; u < U; ++u)
      d[u] = vm::set1(1.0f), dx[u] = _mm512_setzero_ps();
    for (int k = 4; k >= 0; --k)
      for (int u = 0; u < U; ++u) {
        dx[u] = vm::fma(d[u], c[k][u], dx[u]);
        d[u] = _mm512_mul_ps(_mm512_mul_ps(d[u], X[u]),
                             _mm512_mul_ps(vm::set1(0.5f), _mm512_fnmadd_ps(c[k][u], c[k][u], vm::set1(1.0f))));
      }
    for (int u = 0; u < U; ++u)
      _mm512_storeu_ps(g + i + 16 * u, _mm512_add_ps(dx[u], d[u]));
  }
}

/// mean((w x + b - y)^2), 32 points, SGD. The two sums are reduced side by side, to the place of w and b.
struct Line {
  alignas(64) float x[32], y[32];
  alignas(16) float wb[4] = {};
  Line() {
    std::vector<float> points = bench::uniform(1, 32), targets = bench::lineTargets(points);
    std::copy_n(points.begin(), 32, x), std::copy_n(targets.begin(), 32, y);
  }
  static __m128 quarter(V v) {
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  }
  float step(double lr) {
    V w = vm::set1(wb[0]), b = vm::set1(wb[1]), x0 = _mm512_load_ps(x), x1 = _mm512_load_ps(x + 16);
    V e0 = vm::fma(w, x0, _mm512_sub_ps(b, _mm512_load_ps(y))),
      e1 = vm::fma(w, x1, _mm512_sub_ps(b, _mm512_load_ps(y + 16)));
    __m128 dw = quarter(vm::fma(e0, x0, _mm512_mul_ps(e1, x1))), db = quarter(_mm512_add_ps(e0, e1));
    __m128 both = _mm_add_ps(_mm_unpacklo_ps(dw, db), _mm_unpackhi_ps(dw, db));
    both = _mm_add_ps(both, _mm_movehl_ps(both, both));
    _mm_store_ps(wb, _mm_fnmadd_ps(_mm_set1_ps(static_cast<float>(lr) * (2.0f / 32)), both, _mm_load_ps(wb)));
    return _mm512_reduce_add_ps(vm::fma(e0, e0, _mm512_mul_ps(e1, e1))) / 32;
  }
};

// ---- The command ----------------------------------------------------------------------------------------------------

/// Checks the figures, then times the step, then prints.
template <class Step>
static int report(const std::string &name, const char *kind, const std::vector<double> &figures, Step &&step,
                  double budget, const std::string &product = "-") {
  if (std::string off = bench::compare(name, figures, bench::expected()[name]); !off.empty()) {
    std::fprintf(stderr, "hand %s: %s\n", name.c_str(), off.c_str());
    return 1;
  }
  unsigned ieee = _mm_getcsr();
  _mm_setcsr(ieee | 0x8040); // subnormal results and operands are zeros
  bench::Time time = bench::measure(
      [&] {
        step();
        asm volatile("" ::: "memory");
      },
      budget);
  _mm_setcsr(ieee);
  std::printf("{\"system\": \"hand\", \"step\": \"%s\", \"%s\": [", name.c_str(), kind);
  for (size_t i = 0; i < figures.size(); ++i)
    std::printf("%s%.9g", i ? ", " : "", figures[i]);
  std::printf("], \"median_us\": %.6g, \"best_us\": %.6g, \"product\": \"%s\"}\n", time.median * 1e6, time.best * 1e6,
              product.c_str());
  return 0;
}

template <class Step> static std::vector<double> losses(Step &&step) {
  std::vector<double> first;
  for (int i = 0; i < 10; ++i)
    first.push_back(step());
  return first;
}

int main(int argc, char **argv) {
  std::string step = argc > 1 ? argv[1] : "";
  double budget = argc > 3 && !std::strcmp(argv[2], "--budget") ? std::atof(argv[3]) : 1;
  if (step == "a") {
    Line check, timed;
    return report(
        step, "losses", losses([&] { return check.step(0.05); }), [&] { timed.step(bench::kTimingRate); }, budget);
  }
  if (step == "b" || step == "c") {
    std::vector<int> sizes = step == "b" ? std::vector{784, 128, 10} : std::vector{784, 1024, 1024, 10};
    int batch = step == "b" ? 64 : 256;
    Mixture product;
    Network tried(sizes, batch, product);
    auto tryOnce = [&] { tried.step(bench::kTimingRate); };
    double best = 1e9;
    int block = 0;
    for (int floats : {1 << 30, 1 << 16, 1 << 13}) {
      tried.blockFloats = floats;
      if (double time = product.chooseOne(tryOnce); time < best)
        best = time, block = floats;
    }
    tried.blockFloats = block;
    product.chooseOne(tryOnce);
    product.chooseEach(tryOnce);
    Network check(sizes, batch, product), timed(sizes, batch, product);
    check.blockFloats = timed.blockFloats = block;
    std::vector<double> first = losses([&] { return check.step(0.001); });
    return report(step, "losses", first, [&] { timed.step(bench::kTimingRate); }, budget, product.names());
  }
  if (step == "f" || step == "f_small") {
    size_t n = step == "f" ? 4194304 : 4096;
    float *x = floats(bench::uniform(1, n, -1, 1)), *g = floats(n);
    chain(x, g, n);
    double sum = 0, absolute = 0;
    for (size_t i = 0; i < n; ++i)
      sum += double(g[i]), absolute += std::fabs(double(g[i]));
    return report(step, "sums", {sum, absolute}, [&] { chain(x, g, n); }, budget);
  }
  if (step == "i") {
    lstm::Step lstm;
    lstm.run();
    double sum = 0, absolute = 0;
    for (double value : lstm.gradient)
      sum += value, absolute += std::fabs(value);
    return report(step, "sums", {sum, absolute}, [&] { lstm.run(); }, budget);
  }
  if (step == "k") {
    size_t n = 10000000;
    float *p = floats(bench::uniform(10, n, -1, 1)), *g = floats(bench::uniform(1, n, -1, 1)), *m = floats(n),
          *v = floats(n);
    int t = 0;
    while (t < 3)
      adam(p, g, m, v, n, {0.001, ++t});
    double absolute = 0;
    for (size_t i = 0; i < n; ++i)
      absolute += std::fabs(double(p[i]));
    auto timed = [&] { adam(p, g, m, v, n, {bench::kTimingRate, t = std::min(t + 1, 100000)}); };
    return report(step, "losses", {absolute}, timed, budget);
  }
  std::fprintf(stderr, "usage: hand a|b|c|f|f_small|i|k [--budget SECONDS]\n");
  return 2;
}
