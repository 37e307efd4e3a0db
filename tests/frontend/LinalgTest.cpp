// wg::linalg: residuals against the matrices and Eigen, what is refused and what is NaN, engines, lanes, open sizes,
// derivatives, and C programs.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <unistd.h>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Tensor tensorOf(const Matrix &a, DType dtype = f64) {
  return cast(Tensor::from(std::vector<double>(a.data(), a.data() + a.size()), {a.rows(), a.cols()}), dtype);
}
Matrix matrixOf(const Tensor &x) {
  std::vector<double> values = cast(x, f64).to_vector<double>();
  return Eigen::Map<Matrix>(values.data(), x.dim(0), x.rank() > 1 ? x.dim(1) : 1);
}
/// By the library's product, which is compiled with optimisation.
Matrix times(const Matrix &a, const Matrix &b) { return matrixOf(matmul(tensorOf(a), tensorOf(b))); }
Matrix noise(int64_t m, int64_t n, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Matrix a(m, n);
  for (int64_t i = 0; i < a.size(); ++i)
    a.data()[i] = normal(generator);
  return a;
}
/// What factorisations find hard: Hilbert's matrix, a low rank, equal values, rows of very different size, numbers near
/// the ends of the range.
std::vector<Matrix> awkward(int64_t m, int64_t n, DType dtype) {
  Matrix hilbert(m, n), graded = noise(m, n, 2);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      hilbert(i, j) = 1.0 / static_cast<double>(i + j + 1);
      graded(i, j) *= std::pow(10, -static_cast<double>(std::min<int64_t>(i + j, 24)) / 2);
    }
  Matrix low = noise(m, 2, 3) * noise(2, n, 4);
  double far = dtype == f32 ? 1e15 : 1e140;
  if (std::min(m, n) > 40) // few, as Eigen takes its time without optimisation
    return {noise(m, n), low};
  return {noise(m, n),        hilbert,           graded,           low, Matrix::Identity(m, n), Matrix::Ones(m, n),
          Matrix::Zero(m, n), noise(m, n) * far, noise(m, n) / far};
}
double epsOf(DType dtype) {
  return dtype == f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
}
/// |found - wanted| <= 10 eps n |scale|
void expectWithin(const Matrix &found, const Matrix &wanted, double scale, DType dtype, const std::string &what) {
  ASSERT_EQ(found.rows(), wanted.rows()) << what;
  ASSERT_EQ(found.cols(), wanted.cols()) << what;
  double n = static_cast<double>(std::max<int64_t>({found.rows(), found.cols(), 1}));
  double error = found.size() ? (found - wanted).norm() : 0;
  EXPECT_LE(error, 10 * epsOf(dtype) * n * (scale > 0 ? scale : 1))
      << what << ": " << found.rows() << " x " << found.cols();
}
void expectOrthonormal(const Matrix &q, DType dtype, const char *what) {
  expectWithin(times(q.transpose(), q), Matrix::Identity(q.cols(), q.cols()), 1, dtype, what);
}
bool sameBits(const Tensor &a, const Tensor &b) {
  auto bytesOf = [](const Tensor &x) {
    return x.dtype() == f64 ? std::as_bytes(x.data<double>()) : std::as_bytes(x.data<float>());
  };
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.size() == 0 || std::memcmp(bytesOf(a).data(), bytesOf(b).data(), bytesOf(a).size()) == 0);
}

const double kNan = std::numeric_limits<double>::quiet_NaN();
const std::pair<int64_t, int64_t> kSizes[] = {{0, 0}, {1, 1}, {2, 2}, {5, 5},  {33, 33}, {100, 100}, {257, 257}, {0, 3},
                                              {3, 0}, {1, 7}, {7, 1}, {40, 3}, {3, 40},  {100, 33},  {33, 100}};

} // namespace

TEST(LinalgTest, QrIsAProduct) {
  for (DType dtype : {f64, f32})
    for (auto [m, n] : kSizes)
      for (const Matrix &a : awkward(m, n, dtype))
        for (bool complete : {false, true}) {
          Tensor x = tensorOf(a, dtype);
          auto [q, r] = linalg::qr(x, {.complete = complete});
          Matrix factor = matrixOf(q), triangle = matrixOf(r), wanted = matrixOf(x);
          EXPECT_EQ(factor.cols(), complete ? m : std::min(m, n));
          expectWithin(times(factor, triangle), wanted, wanted.norm(), dtype, "q r");
          expectOrthonormal(factor, dtype, "q");
          for (int64_t i = 0; i < triangle.rows(); ++i)
            for (int64_t j = 0; j < std::min<int64_t>(i, n); ++j)
              ASSERT_EQ(triangle(i, j), 0);
        }
  EXPECT_LT(linalg::qr(Tensor({{3.0}, {4.0}})).r.to_vector<double>()[0], 0) << "LAPACK's sign";
}

TEST(LinalgTest, SvdIsAProductAndHasEigensValues) {
  for (DType dtype : {f64, f32})
    for (auto [m, n] : kSizes)
      for (const Matrix &a : awkward(m, n, dtype)) {
        Tensor x = tensorOf(a, dtype);
        auto [u, s, vt] = linalg::svd(x);
        Matrix left = matrixOf(u), right = matrixOf(vt), values = matrixOf(s), wanted = matrixOf(x);
        int64_t k = std::min(m, n);
        ASSERT_EQ(values.rows(), k);
        expectWithin(times(left * values.col(0).asDiagonal(), right), wanted, wanted.norm(), dtype, "u s vt");
        expectOrthonormal(left, dtype, "u");
        expectOrthonormal(right.transpose(), dtype, "v");
        for (int64_t i = 0; i < k; ++i) {
          EXPECT_GE(values(i), i + 1 < k ? values(i + 1) : 0);
          double most = left.col(i).cwiseAbs().maxCoeff();
          for (int64_t row = 0; row < m; ++row)
            if (std::abs(left(row, i)) >= most / 2) {
              EXPECT_GT(left(row, i), 0) << "the sign of column " << i;
              break;
            }
        }
        if (k == 0 || k > 40) // Jacobi's method takes its time
          continue;
        Eigen::JacobiSVD<Eigen::MatrixXd> eigen(wanted);
        expectWithin(values, eigen.singularValues(), wanted.norm(), dtype, "s");
        expectWithin(matrixOf(linalg::svdvals(x)), eigen.singularValues(), wanted.norm(), dtype, "svdvals");
      }
}

TEST(LinalgTest, EighDiagonalizesTheSymmetricPart) {
  for (DType dtype : {f64, f32})
    for (auto [m, n] : kSizes)
      for (const Matrix &a : m == n ? awkward(n, n, dtype) : std::vector<Matrix>()) {
        Tensor x = tensorOf(a, dtype);
        Matrix read = matrixOf(x), symmetric = (read + read.transpose()) / 2;
        auto [values, vectors] = linalg::eigh(x);
        Matrix w = matrixOf(values), v = matrixOf(vectors);
        expectWithin(times(v * w.col(0).asDiagonal(), v.transpose()), symmetric, symmetric.norm(), dtype, "v w vt");
        expectOrthonormal(v, dtype, "v");
        if (n == 0 || n > 40)
          continue;
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(symmetric);
        expectWithin(w, eigen.eigenvalues(), symmetric.norm(), dtype, "values");
        expectWithin(matrixOf(linalg::eigvalsh(x)), eigen.eigenvalues(), symmetric.norm(), dtype, "eigvalsh");
      }
}

TEST(LinalgTest, LuAndCholeskyAreProducts) {
  for (DType dtype : {f64, f32})
    for (auto [m, n] : kSizes)
      for (const Matrix &a : m == n ? awkward(n, n, dtype) : std::vector<Matrix>()) {
        Tensor x = tensorOf(a, dtype);
        auto [p, l, u] = linalg::lu(x);
        Matrix wanted = matrixOf(x), permuted = wanted;
        std::vector<int64_t> rows = p.to_vector<int64_t>();
        for (int64_t i = 0; i < n; ++i)
          permuted.row(i) = wanted.row(rows[static_cast<size_t>(i)]);
        expectWithin(times(matrixOf(l), matrixOf(u)), permuted, wanted.norm(), dtype, "l u");
        EXPECT_LE(n ? matrixOf(l).cwiseAbs().maxCoeff() : 0, 1);
        double scale = wanted.norm() > 0 ? wanted.norm() : 1;
        Matrix positive = times(wanted / scale, (wanted / scale).transpose()) + Matrix::Identity(n, n) / 8;
        Tensor c = linalg::cholesky(tensorOf(positive, dtype));
        expectWithin(times(matrixOf(c), matrixOf(c).transpose()), positive, positive.norm(), dtype, "l lt");
        expectWithin(matrixOf(c).triangularView<Eigen::StrictlyUpper>(), Matrix::Zero(n, n), 0, dtype, "above");
      }
}

TEST(LinalgTest, EquationsAreSolved) {
  for (DType dtype : {f64, f32})
    for (int64_t n : {0, 1, 2, 5, 33, 100}) {
      Tensor a = tensorOf(noise(n, n), dtype), b = tensorOf(noise(n, 3, 5), dtype);
      Matrix x = matrixOf(linalg::solve(a, b)), read = matrixOf(a);
      double size = read.norm() * x.norm();
      expectWithin(read * x, matrixOf(b), size, dtype, "a x");
      expectWithin(times(read, matrixOf(linalg::inv(a))), Matrix::Identity(n, n),
                   read.norm() * matrixOf(linalg::inv(a)).norm(), dtype, "a inv(a)");
      Matrix positive = times(read, read.transpose()) / static_cast<double>(n + 1) + Matrix::Identity(n, n);
      Tensor p = tensorOf(positive, dtype);
      Matrix y = matrixOf(linalg::cholesky_solve(linalg::cholesky(p), b));
      expectWithin(matrixOf(p) * y, matrixOf(b), matrixOf(p).norm() * y.norm(), dtype, "l lt x");
      if (n > 0) {
        double log = Eigen::FullPivLU<Matrix>(read).matrixLU().diagonal().cwiseAbs().array().log().sum();
        auto [sign, logabs] = linalg::slogdet(a);
        EXPECT_NEAR(cast(logabs, f64).item<double>(), log, 100 * epsOf(dtype) * static_cast<double>(n) * 10);
        double det = n < 60 ? read.determinant() : 0;
        if (n < 60) {
          EXPECT_NEAR(cast(linalg::det(a), f64).item<double>() / det, 1, 1e3 * epsOf(dtype) * static_cast<double>(n));
          EXPECT_EQ(cast(sign, f64).item<double>(), det < 0 ? -1 : 1);
        }
      }
    }
  EXPECT_EQ(linalg::det(zeros({0, 0}, f64)).item<double>(), 1);
  EXPECT_EQ(linalg::det(Tensor({{1.0, 2.0}, {2.0, 4.0}})).item<double>(), 0);
  auto [sign, logabs] = linalg::slogdet(Tensor({{1.0, 2.0}, {2.0, 4.0}}));
  EXPECT_EQ(sign.item<double>(), 0);
  EXPECT_EQ(logabs.item<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(linalg::solve(Tensor({{2.0, 0.0}, {0.0, 4.0}}), Tensor({2.0, 4.0})).to_vector<double>(),
            (std::vector<double>{1, 1}));
}

TEST(LinalgTest, LeastSquaresAreEigens) {
  for (auto [m, n] : kSizes)
    for (bool deficient : {false, true}) {
      if (std::min(m, n) > 40)
        continue;
      Matrix a = deficient ? Matrix(noise(m, 2, 6) * noise(2, n, 7)) : noise(m, n), b = noise(m, 2, 8);
      if (a.size() == 0) {
        EXPECT_EQ(linalg::lstsq(tensorOf(a), tensorOf(b)).shape(), (Shape{n, 2}));
        continue;
      }
      Matrix wanted = Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd>(a).solve(b);
      Eigen::JacobiSVD<Eigen::MatrixXd> svd(a);
      svd.setThreshold(1e-10);
      auto s = svd.singularValues();
      double condition = s(0) / s(svd.rank() - 1);
      expectWithin(matrixOf(linalg::lstsq(tensorOf(a), tensorOf(b))), wanted, condition * wanted.norm(), f64, "lstsq");
      Matrix p = matrixOf(linalg::pinv(tensorOf(a)));
      expectWithin(a * p * a, a, condition * a.norm(), f64, "a pinv(a) a");
      EXPECT_EQ(linalg::matrix_rank(tensorOf(a)).item<int64_t>(),
                deficient ? std::min<int64_t>({m, n, 2}) : std::min(m, n));
      EXPECT_NEAR(linalg::matrix_norm(tensorOf(a), linalg::MatrixNorm::nuclear).item<double>(), s.sum(),
                  1e-10 * s.sum());
      EXPECT_NEAR(linalg::matrix_norm(tensorOf(a), linalg::MatrixNorm::spectral).item<double>(), s(0), 1e-12 * s(0));
      EXPECT_NEAR(linalg::matrix_norm(tensorOf(a)).item<double>(), a.norm(), 1e-12 * a.norm());
    }
  EXPECT_EQ(linalg::matrix_norm(zeros({0, 3}, f64), linalg::MatrixNorm::spectral).item<double>(), 0);
}

TEST(LinalgTest, ErrorsNameTheMatrixAndTheLine) {
  Tensor indefinite({{1.0, 2.0}, {2.0, 1.0}}), singular({{1.0, 2.0}, {2.0, 4.0}}), b = ones({2, 1}, f64);
  for (bool traced : {false, true}) {
    auto text = [&](auto f, const Tensor &a) {
      auto compiled = wg::function("refused", f);
      return messageOf([&] { traced ? compiled(a) : f(a); });
    };
    std::string found = text([](const Tensor &a) { return linalg::cholesky(a); }, indefinite);
    EXPECT_TRUE(says(found, "cholesky: the matrix is not positive definite") && says(found, "LinalgTest.cpp:"))
        << found;
    found = text([&](const Tensor &a) { return linalg::solve(a, b); }, singular);
    EXPECT_TRUE(says(found, "lu: the matrix is singular") && says(found, "LinalgTest.cpp:")) << found;
    found = text([](const Tensor &a) { return linalg::inv(a); }, singular);
    EXPECT_TRUE(says(found, "the matrix is singular")) << found;
  }
  std::string found = messageOf([] { linalg::solve(zeros({3, 4}), zeros({3, 1})); });
  EXPECT_TRUE(says(found, "solve: a is not square: f32[3,4] (3 != 4)") && says(found, "LinalgTest.cpp:")) << found;
  found = messageOf([] { linalg::solve(zeros({3, 3}), zeros({4, 1})); });
  EXPECT_TRUE(says(found, "solve: sizes differ: a is f32[3,3], b is f32[4,1] (3 != 4)")) << found;
  found = messageOf([] { linalg::solve(zeros({3, 3}), zeros({3, 1}, f64)); });
  EXPECT_TRUE(says(found, "cast")) << found;
  found = messageOf([] { linalg::svd(zeros({3})); });
  EXPECT_TRUE(says(found, "svd: a is [..., m, n]: a is f32[3]")) << found;
  found = messageOf([] { linalg::det(zeros({3, 3}, i32)); });
  EXPECT_TRUE(says(found, "takes floats")) << found;
  found = messageOf([] { linalg::cholesky(zeros({3, 3}, f16)); });
  EXPECT_TRUE(says(found, "f16")) << found;
  found = messageOf([] {
    GradientTape tape;
    Tensor a = tensorOf(noise(3, 2));
    tape.watch(a);
    tape.gradient(linalg::qr(a, {.complete = true}).q, a);
  });
  EXPECT_TRUE(says(found, "have no derivative where there are more rows than columns")) << found;
}

TEST(LinalgTest, AFailureLeavesVariablesAsTheyWere) {
  Variable v(Tensor({{1.0, 2.0}, {2.0, 1.0}}));
  auto update = wg::function("update", [&] { v.assign(linalg::cholesky(v)); });
  EXPECT_TRUE(says(messageOf([&] { update(); }), "not positive definite"));
  EXPECT_EQ(v.value().to_vector<double>(), (std::vector<double>{1, 2, 2, 1}));
  v.assign(Tensor({{4.0, 2.0}, {2.0, 2.0}}));
  update();
  EXPECT_EQ(v.value().to_vector<double>(), (std::vector<double>{2, 0, 1, 1}));
}

TEST(LinalgTest, NaNAndInfinityEndInNaN) {
  for (double bad : {kNan, std::numeric_limits<double>::infinity()}) {
    Matrix a = noise(5, 5);
    a(2, 3) = bad;
    Tensor both = stack({tensorOf(a), tensorOf(noise(5, 5))});
    for (const Tensor &s :
         {linalg::svdvals(both), linalg::eigvalsh(both), linalg::eigh(both).values, linalg::svd(both).s}) {
      EXPECT_TRUE(std::isnan(s[0].to_vector<double>()[0]));
      EXPECT_TRUE(reduce_all(is_finite(s[1])).item<bool>()) << "the other matrix";
    }
    EXPECT_TRUE(std::isnan(linalg::pinv(both)[0].to_vector<double>()[0]));
    EXPECT_FALSE(reduce_all(is_finite(linalg::lu(both).u[0])).item<bool>());
    EXPECT_FALSE(reduce_all(is_finite(linalg::qr(both).r[0])).item<bool>());
    EXPECT_FALSE(std::isfinite(linalg::det(both).to_vector<double>()[0]));
  }
}

namespace {
using Functions = std::vector<std::pair<const char *, std::function<std::vector<Tensor>(const Tensor &)>>>;
/// Of square matrices a; `a a^T + 1` where it has to be positive definite.
Functions functions() {
  auto positive = [](const Tensor &a) { return matmul(a, a, {.transpose_b = true}) + eye(a.dim(-1), {}, a.dtype()); };
  return {
      {"cholesky", [=](const Tensor &a) { return std::vector{linalg::cholesky(positive(a))}; }},
      {"lu",
       [](const Tensor &a) {
         auto [p, l, u] = linalg::lu(a);
         return std::vector{l, u};
       }},
      {"qr",
       [](const Tensor &a) {
         auto [q, r] = linalg::qr(a);
         return std::vector{q, r};
       }},
      {"eigh",
       [](const Tensor &a) {
         auto [w, v] = linalg::eigh(a);
         return std::vector{w, v};
       }},
      {"eigvalsh", [](const Tensor &a) { return std::vector{linalg::eigvalsh(a)}; }},
      {"svd",
       [](const Tensor &a) {
         auto [u, s, vt] = linalg::svd(a);
         return std::vector{u, s, vt};
       }},
      {"svdvals", [](const Tensor &a) { return std::vector{linalg::svdvals(a)}; }},
      {"solve", [](const Tensor &a) { return std::vector{linalg::solve(a, sin(a))}; }},
      {"inv", [](const Tensor &a) { return std::vector{linalg::inv(a)}; }},
      {"pinv", [](const Tensor &a) { return std::vector{linalg::pinv(a)}; }},
      {"lstsq", [](const Tensor &a) { return std::vector{linalg::lstsq(a, cos(a))}; }},
      {"det", [](const Tensor &a) { return std::vector{linalg::det(a)}; }},
      {"slogdet",
       [](const Tensor &a) {
         auto [s, l] = linalg::slogdet(a);
         return std::vector{s, l};
       }},
      {"matrix_power", [](const Tensor &a) { return std::vector{linalg::matrix_power(a, 5)}; }},
  };
}
} // namespace

TEST(LinalgTest, CompiledIsEagerBitForBit) {
  for (DType dtype : {f64, f32}) {
    Tensor a = stack({tensorOf(noise(19, 19), dtype), tensorOf(noise(19, 19, 2), dtype)});
    Functions all = functions();
    all.resize(7); // the routines themselves
    for (auto &[name, f] : all) {
      if (name == std::string("cholesky"))
        continue; // its operand is a product
      std::vector<Tensor> wanted = f(a), found = wg::function(name, f)(a);
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_TRUE(sameBits(found[i], wanted[i])) << name << " " << i;
    }
    Tensor p = matmul(a, a, {.transpose_b = true}) + eye(19, {}, dtype);
    EXPECT_TRUE(
        sameBits(wg::function("c", [](const Tensor &x) { return linalg::cholesky(x); })(p), linalg::cholesky(p)));
  }
}

TEST(LinalgTest, LanesAreALoop) {
  Tensor a = stack({tensorOf(noise(4, 4)), tensorOf(noise(4, 4, 2)), tensorOf(noise(4, 4, 3))});
  for (auto &[name, f] : functions())
    for (bool traced : {false, true}) {
      std::vector<Tensor> lanes = traced ? wg::function(name, vmap(f))(a) : vmap(f)(a);
      for (int64_t i = 0; i < 3; ++i) {
        std::vector<Tensor> wanted = f(a[i]);
        for (size_t each = 0; each < wanted.size(); ++each)
          expectNear(lanes[each][i], wanted[each]);
      }
    }
}

TEST(LinalgTest, OpenSizesAreKnownWhenItRuns) {
  for (auto &[name, f] : functions()) {
    if (name == std::string("cholesky"))
      continue; // eye needs its size
    auto both = [&f = f](const Tensor &a) {
      GradientTape tape;
      tape.watch(a);
      std::vector<Tensor> all = f(a);
      Tensor loss;
      for (const Tensor &each : all)
        loss = loss.defined() ? loss + reduce_sum(sin(each)) : reduce_sum(sin(each));
      all.push_back(tape.gradient(loss, a).value());
      return all;
    };
    for (bool interpret : {true, false}) {
      ConcreteFunction open =
          wg::function("open", both, {.interpret = interpret}).trace(TensorSpec{f64, {dynamic, dynamic, dynamic}});
      for (int64_t n : {1, 4, 6}) {
        Tensor a = reshape(tensorOf(noise(2 * n, n, 11)), {2, n, n});
        std::vector<Tensor> found = open(a), wanted = both(a);
        for (size_t i = 0; i < wanted.size(); ++i) {
          // Of square matrices a term that is 0 in exact arithmetic is left out where sizes are known.
          double size = std::max(1.0, reduce_max(abs(wanted[i])).item<double>());
          expectNear(found[i] / size, wanted[i] / size, 1e-9);
        }
      }
    }
  }
}

TEST(LinalgTest, ValuesOfEqualEigenvaluesHaveTheirGradient) {
  Tensor a = eye(3, {}, f64) * 2;
  GradientTape tape;
  tape.watch(a);
  Tensor loss = reduce_sum(square(linalg::eigvalsh(a))) + reduce_sum(linalg::svdvals(a)) * 3;
  expectNear(tape.gradient(loss, a).value(), eye(3, {}, f64) * 7); // 2 a + 3 of the identity
}

TEST(LinalgTest, CholeskysGradientIsSymmetric) {
  Tensor a = tensorOf(Matrix(noise(4, 4) * noise(4, 4).transpose()) + Matrix::Identity(4, 4));
  GradientTape tape;
  tape.watch(a);
  Tensor da = tape.gradient(reduce_sum(sin(linalg::cholesky(a))), a).value();
  expectNear(da, transpose(da));
}

TEST(LinalgTest, StructuresAreResultsOfFunctions) {
  auto f = wg::function("svd", [](const Tensor &a) { return linalg::svd(a); });
  auto [u, s, vt] = f(tensorOf(noise(5, 3)));
  expectNear(matmul(u * s, vt), tensorOf(noise(5, 3)));
  EXPECT_TRUE(says(f.report(), "(external): svd")) << f.report();
}

namespace {
const char kProgram[] = R"(
#include "posterior.h"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  FILE *file = fopen(argv[1], "rb");
  void *args[POSTERIOR_NUM_ARGS];
  void *workspace = aligned_alloc(64, (POSTERIOR_WORKSPACE_BYTES + 63) / 64 * 64);
  size_t sizes[] = {POSTERIOR_ARG0_ELEMENTS, POSTERIOR_ARG1_ELEMENTS, POSTERIOR_ARG2_ELEMENTS, POSTERIOR_ARG3_ELEMENTS};
  for (int i = 0; i < POSTERIOR_NUM_ARGS; ++i) {
    args[i] = malloc(sizes[i] * sizeof(double));
    if (i < 2 && fread(args[i], sizeof(double), sizes[i], file) != sizes[i])
      return 2;
  }
  if (posterior(args, 0, workspace))
    return 3;
  for (int i = 2; i < POSTERIOR_NUM_ARGS; ++i)
    fwrite(args[i], sizeof(double), sizes[i], stdout);
  return 0;
}
)";
} // namespace

TEST(LinalgTest, ACProgramHasTheSameBits) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / ("wengert_linalg_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  auto f = wg::function("posterior", [](const Tensor &a, const Tensor &b) {
    return std::pair(linalg::cholesky_solve(linalg::cholesky(a), b), linalg::solve(a, b));
  });
  Matrix noisy = noise(23, 23);
  Tensor a = tensorOf(Matrix(noisy * noisy.transpose() + Matrix::Identity(23, 23))), b = tensorOf(noise(23, 7, 2));
  auto [x, y] = f(a, b);
  f.trace(a, b).write_object(folder.string(), {.name = "posterior", .cpu = "native"});
  std::ofstream(folder / "main.c") << kProgram;
  std::ofstream in(folder / "in", std::ios::binary);
  for (const Tensor &each : {a, b})
    in.write(reinterpret_cast<const char *>(each.data<double>().data()),
             static_cast<std::streamsize>(each.data<double>().size_bytes()));
  in.close();
  std::string at = folder.string(),
              link = "cc -O1 -Wall -Werror -I" + at + " " + at + "/main.c " + at + "/posterior.o ";
  ASSERT_EQ(std::system((link + WENGERT_BINARY_DIR "/lib/libwengert_rt.a -lm -o " + at + "/main").c_str()), 0);
  ASSERT_EQ(std::system((at + "/main " + at + "/in > " + at + "/out").c_str()), 0);
  std::ifstream out(folder / "out", std::ios::binary);
  for (const Tensor &each : {x, y}) {
    std::vector<double> found(each.data<double>().size());
    out.read(reinterpret_cast<char *>(found.data()), static_cast<std::streamsize>(found.size() * sizeof(double)));
    EXPECT_EQ(std::memcmp(found.data(), each.data<double>().data(), found.size() * sizeof(double)), 0);
  }
  fs::remove_all(folder);
}
