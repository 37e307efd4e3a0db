// Step i of peers/STEPS.md by hand: ADBench's diagonal LSTM and its gradient, f64.
//
// Every letter is a recurrence of its own, so the 28 of both layers go side by side, layer 1 a symbol behind layer 0:
// what layer 0 gives in one row is what layer 1 takes in the next. They fill three vectors and a half. Forward, a row
// is 17.5 vectors of exponentials with their divisions and little else; what the adjoint multiplies with is kept.
// Backward, two vectors at a time, so that the sums of their parameters stay in registers.
#pragma once

#include "Problem.h"
#include "vmath.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include <sys/mman.h>

namespace lstm {

using vm::f64::fma;
using V = vm::f64::V;
using H = vm::f64::H;

inline constexpr int kWidth = 14, kSymbols = 1024;
inline constexpr double kMean = 1.0 / ((kSymbols - 1) * kWidth);

/// The letters of both layers: 0-7 of layer 0, 0-7 of layer 1, 8-11 of each, 12-13 of each.
struct Row {
  V a, b, c;
  H d;
};
/// f of every vector.
template <class F, class... R> inline void each(F f, R &&...rows) {
  f(rows.a...), f(rows.b...), f(rows.c...), f(rows.d...);
}
inline H low(V x) { return _mm512_castpd512_pd256(x); }
inline H high(V x) { return _mm512_extractf64x4_pd(x, 1); }
inline V join(H low, H high) { return _mm512_insertf64x4(_mm512_castpd256_pd512(low), high, 1); }
/// Two letters; of `lowHalves` those of layer 0 in x and y, else those of layer 1.
inline H lowHalves(H x, H y) { return _mm256_permute2f128_pd(x, y, 0x20); }
inline H highHalves(H x, H y) { return _mm256_permute2f128_pd(x, y, 0x31); }
/// Layer 0 of x, layer 1 of y.
inline Row layers(const Row &x, const Row &y) {
  return {x.a, y.b, join(low(x.c), high(y.c)), _mm256_blend_pd(x.d, y.d, 0xc)};
}

inline V load(const double *at) { return _mm512_loadu_pd(at); }
inline H two(const double *at) { return _mm256_castpd128_pd256(_mm_loadu_pd(at)); }
/// 14 numbers of each layer.
inline Row row(const double *layer0, const double *layer1) {
  return {load(layer0), load(layer1), join(_mm256_loadu_pd(layer0 + 8), _mm256_loadu_pd(layer1 + 8)),
          lowHalves(two(layer0 + 12), two(layer1 + 12))};
}
inline void store(const Row &x, double *layer0, double *layer1) {
  _mm512_storeu_pd(layer0, x.a), _mm512_storeu_pd(layer1, x.b);
  _mm256_storeu_pd(layer0 + 8, low(x.c)), _mm256_storeu_pd(layer1 + 8, high(x.c));
  _mm_storeu_pd(layer0 + 12, _mm256_castpd256_pd128(x.d)), _mm_storeu_pd(layer1 + 12, _mm256_extractf128_pd(x.d, 1));
}
/// What layer 1 reads is what layer 0 gave.
inline Row input(const double *x, const Row &h) {
  return {load(x), h.a, join(_mm256_loadu_pd(x + 8), low(h.c)), lowHalves(two(x + 12), h.d)};
}

/// What the adjoint reads of a row: with dh and dc after it, dc += dh byH, the arguments of the gates get dc forget,
/// dh output, dc in, dc change, and dc before it is dc keep.
template <class T> struct Kept {
  T h, byH, keep, forget, output, in, change;
};
struct alignas(64) KeptRow {
  Kept<V> a, b, c;
  Kept<H> d;
};

/// 1 / (1 + 2^y): the sigmoid of -y ln(2).
template <class T> inline T sigmoid(T y) { return 1 / vm::f64::exp2(vm::f64::clamp(y, 1000), 1); }
/// The tanh of y ln(2) / 2.
template <class T> inline T tanh(T y) {
  T e = vm::f64::exp2(vm::f64::clamp(y, 1000), -1);
  return e / (e + 2);
}

/// A vector of letters by a symbol, the gates are known.
template <class T> inline void advance(T &h, T &c, T forget, T in, T output, T change, Kept<T> &kept) {
  T keep = c * forget, added = in * change;
  c = keep + added;
  T t = tanh(c * (2 * M_LOG2E));
  h = output * t;
  kept = {h, output - h * t, forget, keep - keep * forget, h - h * output, added - added * in, in - added * change};
}

/// The gradient of a vector's parameters, in their order.
template <class T> struct Sums {
  T of[8] = {};
};

/// A vector of letters back by a symbol; its input's adjoint.
template <class T>
inline T retreat(T &dh, T &dc, T z, T before, T wf, T wi, T wo, T wc, const Kept<T> &kept, Sums<T> &sums) {
  dc = fma(dh, kept.byH, dc);
  T forget = dc * kept.forget, in = dc * kept.in, output = dh * kept.output, change = dc * kept.change;
  sums.of[0] = fma(forget, z, sums.of[0]), sums.of[4] += forget;
  sums.of[1] = fma(in, before, sums.of[1]), sums.of[5] += in;
  sums.of[2] = fma(output, z, sums.of[2]), sums.of[6] += output;
  sums.of[3] = fma(change, before, sums.of[3]), sums.of[7] += change;
  dh = fma(in, wi, change * wc);
  dc *= kept.keep;
  return fma(forget, wf, output * wo);
}

class Step {
public:
  Step()
      : main(bench::uniformDouble(10, 2 * 8 * kWidth, -1, 1)), extra(bench::uniformDouble(11, 3 * kWidth, -1, 1)),
        x(bench::uniformDouble(1, kSymbols * kWidth, 0, 2)), start(bench::uniformDouble(2, 2 * 2 * kWidth, -1, 1)),
        gradient((2 * 8 + 3) * kWidth), dy_(kSymbols * 16) {
    for (double &value : x)
      value = std::floor(value);
    constexpr size_t kHuge = size_t(2) << 20;
    static_assert(sizeof(KeptRow) * (kSymbols + 1) <= kHuge);
    rows_ = static_cast<KeptRow *>(std::aligned_alloc(kHuge, kHuge));
    if (!rows_)
      std::abort();
    madvise(rows_, kHuge, MADV_HUGEPAGE);
  }

  /// The gradient of main [2, 8, 14], then of extra [3, 14].
  void run() {
    forward();
    predict();
    backward();
  }

  std::vector<double> main, extra, x, start, gradient;

private:
  const double *weight(int layer, int i) const { return &main[size_t(layer * 8 + i) * kWidth]; }
  /// Parameter i of both layers.
  Row both(int i) const { return row(weight(0, i), weight(1, i)); }
  /// The same times a factor, and layer 0's by the weights of its input if that is what it multiplies.
  Row scaled(int i, double factor, bool ofInput = false) const {
    double values[2][kWidth];
    for (int layer = 0; layer < 2; ++layer)
      for (int k = 0; k < kWidth; ++k)
        values[layer][k] = weight(layer, i)[k] * (ofInput && layer == 0 ? extra[size_t(k)] * factor : factor);
    return row(values[0], values[1]);
  }
  const double *symbol(int t) const { return &x[size_t(t) * kWidth]; }
  void keep(int r, const Row &h) { rows_[r].a.h = h.a, rows_[r].b.h = h.b, rows_[r].c.h = h.c, rows_[r].d.h = h.d; }

  void forward();
  void predict();
  void backward();

  KeptRow *rows_;          ///< at 0 the h of the start, at r + 1 row r: layer 0 at symbol r, layer 1 at r - 1
  std::vector<double> dy_; ///< [row, 16]: the adjoint of what layer 1 gives, but for kMean
};

inline void Step::forward() {
  constexpr double kSigmoid = -M_LOG2E, kTanh = 2 * M_LOG2E;
  const Row wf = scaled(0, kSigmoid, true), wi = scaled(1, kSigmoid), wo = scaled(2, kSigmoid, true),
            wc = scaled(3, kTanh), bf = scaled(4, kSigmoid), bi = scaled(5, kSigmoid), bo = scaled(6, kSigmoid),
            bc = scaled(7, kTanh);
  const Row h0 = row(&start[0], &start[2 * kWidth]), c0 = row(&start[kWidth], &start[3 * kWidth]);
  Row h = h0, c = c0;
  keep(0, h);
  Row forget, in, output, change;
  for (int r = 0; r < kSymbols; ++r) {
    each([](auto &f, auto &o, auto z, auto wf, auto wo, auto bf,
            auto bo) { f = sigmoid(fma(z, wf, bf)), o = sigmoid(fma(z, wo, bo)); },
         forget, output, input(symbol(r), h), wf, wo, bf, bo);
    each([](auto &i, auto &n, auto h, auto wi, auto wc, auto bi,
            auto bc) { i = sigmoid(fma(h, wi, bi)), n = tanh(fma(h, wc, bc)); },
         in, change, h, wi, wc, bi, bc);
    each([](auto &h, auto &c, auto f, auto i, auto o, auto n, auto &kept) { advance(h, c, f, i, o, n, kept); }, h, c,
         forget, in, output, change, rows_[r + 1]);
    if (r == 0) // layer 1 waits
      h = layers(h, h0), c = layers(c, c0), keep(1, h);
  }
}

/// The gradient of the loss with respect to what layer 1 gives and to the weights of the output.
inline void Step::predict() {
  using namespace vm::f64;
  constexpr __mmask8 kSix = 0x3f;
  const double *weights = &extra[kWidth], *biases = &extra[2 * kWidth];
  V w0 = load(weights), w1 = _mm512_maskz_loadu_pd(kSix, weights + 8), b0 = load(biases),
    b1 = _mm512_maskz_loadu_pd(kSix, biases + 8), dw0{}, dw1{}, db0{}, db1{};
  const V s0 = w0 * M_LOG2E, s1 = w1 * M_LOG2E, o0 = b0 * M_LOG2E, o1 = b1 * M_LOG2E;
  for (int r = 1; r < kSymbols; ++r) {
    V h0 = rows_[r + 1].b.h, h1 = join(high(rows_[r + 1].c.h), highHalves(rows_[r + 1].d.h, H{})),
      gold0 = load(symbol(r)), gold1 = _mm512_maskz_loadu_pd(kSix, symbol(r) + 8);
    V e0 = exp2(clamp(fma(h0, s0, o0), 1000)), e1 = _mm512_maskz_mov_pd(kSix, exp2(clamp(fma(h1, s1, o1), 1000)));
    V e = e0 + e1, gold = gold0 + gold1, pairs = _mm512_unpacklo_pd(e, gold) + _mm512_unpackhi_pd(e, gold);
    H fours = low(pairs) + high(pairs);
    __m128d sums = _mm256_castpd256_pd128(fours) + _mm256_extractf128_pd(fours, 1);
    V ratio = _mm512_set1_pd(sums[1] / (sums[0] + 2)), d0 = e0 * ratio - gold0, d1 = e1 * ratio - gold1;
    db0 += d0, db1 += d1, dw0 = fma(d0, h0, dw0), dw1 = fma(d1, h1, dw1);
    _mm512_storeu_pd(&dy_[size_t(r) * 16], d0 * w0);
    _mm512_storeu_pd(&dy_[size_t(r) * 16 + 8], d1 * w1);
  }
  double *to = &gradient[(2 * 8 + 1) * kWidth];
  _mm512_storeu_pd(to, dw0 * kMean), _mm512_mask_storeu_pd(to + 8, kSix, dw1 * kMean);
  to += kWidth;
  _mm512_storeu_pd(to, db0 * kMean), _mm512_mask_storeu_pd(to + 8, kSix, db1 * kMean);
}

inline void Step::backward() {
  const Row wf = both(0), wi = both(1), wo = both(2), wc = both(3);
  Sums<V> sa, sb, sc;
  Sums<H> sd;
  V dha{}, dca{}, dhb{}, dcb{}, dzb{};
  for (int r = kSymbols - 1; r >= 0; --r) {
    const KeptRow &from = rows_[r + 1], &before = rows_[r];
    dha += dzb;
    dhb += load(&dy_[size_t(r) * 16]);
    if (r == 0) // layer 1 waited
      dhb = dcb = V{};
    retreat(dha, dca, load(symbol(r)), before.a.h, wf.a, wi.a, wo.a, wc.a, from.a, sa);
    dzb = retreat(dhb, dcb, before.a.h, before.b.h, wf.b, wi.b, wo.b, wc.b, from.b, sb);
  }
  V dhc{}, dcc{}, dzc{};
  H dhd{}, dcd{}, dzd{}, none{};
  for (int r = kSymbols - 1; r >= 0; --r) {
    const KeptRow &from = rows_[r + 1], &before = rows_[r];
    const double *dy = &dy_[size_t(r) * 16 + 8];
    dhc += join(high(dzc), _mm256_loadu_pd(dy));
    dhd += lowHalves(highHalves(dzd, none), two(dy + 4));
    if (r == 0) {
      dhc = join(low(dhc), none), dcc = join(low(dcc), none);
      dhd = lowHalves(dhd, none), dcd = lowHalves(dcd, none);
    }
    Row z = input(symbol(r), {before.a.h, before.b.h, before.c.h, before.d.h});
    dzc = retreat(dhc, dcc, z.c, before.c.h, wf.c, wi.c, wo.c, wc.c, from.c, sc);
    dzd = retreat(dhd, dcd, z.d, before.d.h, wf.d, wi.d, wo.d, wc.d, from.d, sd);
  }
  for (int i = 0; i < 8; ++i)
    store({sa.of[i] * kMean, sb.of[i] * kMean, sc.of[i] * kMean, sd.of[i] * kMean}, &gradient[size_t(i) * kWidth],
          &gradient[size_t(8 + i) * kWidth]);
  for (int k = 0; k < kWidth; ++k) { // layer 0's input is a symbol times extra[0]
    double &forget = gradient[size_t(k)], &output = gradient[size_t(2 * kWidth + k)];
    gradient[size_t(2 * 8 * kWidth + k)] = forget * weight(0, 0)[k] + output * weight(0, 2)[k];
    forget *= extra[size_t(k)], output *= extra[size_t(k)];
  }
}

} // namespace lstm
