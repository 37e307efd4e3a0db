// Eigen's blocked matrix product, apart from the rest: it is by far the slowest to compile, and
// the sanitizers leave it alone.
#include "runtime/kernels/Kernels.h"

#define EIGEN_NO_DEBUG
#include <Eigen/Core>

namespace wg::runtime {

namespace {
/// Eigen's blocking with our recycled memory for its packed panels: Eigen itself would ask malloc at every product.
template <class T> struct Panels : Eigen::internal::level3_blocking<T, T> {
  Buffer memory;
  Panels(int64_t rows, int64_t columns, int64_t depth) {
    this->m_mc = rows, this->m_nc = columns, this->m_kc = depth;
    Eigen::internal::computeProductBlockingSizes<T, T, 1>(this->m_kc, this->m_mc, this->m_nc, Eigen::Index(1));
    size_t sizeA = (static_cast<size_t>(this->m_mc * this->m_kc) * sizeof(T) + 63) / 64 * 64;
    memory = Buffer::allocate(sizeA + static_cast<size_t>(this->m_kc * this->m_nc) * sizeof(T));
    this->m_blockA = static_cast<T *>(memory.data());
    this->m_blockB = reinterpret_cast<T *>(static_cast<char *>(memory.data()) + sizeA);
  }
};
} // namespace

/// Eigen computes column-major results: ours, row-major, is the transposed one, c^T = b^T a^T.
template <bool aT, bool bT, class T>
static void ofOrders(int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b, int64_t ldb, T *c,
                     int64_t ldc) {
  constexpr int orderOfB = bT ? Eigen::RowMajor : Eigen::ColMajor, orderOfA = aT ? Eigen::RowMajor : Eigen::ColMajor;
  Panels<T> panels(n, m, k);
  Eigen::internal::general_matrix_matrix_product<Eigen::Index, T, orderOfB, false, T, orderOfA, false, Eigen::ColMajor,
                                                 1>::run(n, m, k, b, ldb, a, lda, c, 1, ldc, T(1), panels);
}

template <class T>
void addBlockedProduct(int64_t m, int64_t n, int64_t k, bool aT, const T *a, int64_t lda, bool bT, const T *b,
                       int64_t ldb, T *c, int64_t ldc) {
  auto *product = aT ? (bT ? ofOrders<true, true, T> : ofOrders<true, false, T>)
                     : (bT ? ofOrders<false, true, T> : ofOrders<false, false, T>);
  product(m, n, k, a, lda, b, ldb, c, ldc);
}

template <class T>
void blockedProduct(int64_t m, int64_t n, int64_t k, bool aT, const T *a, int64_t lda, bool bT, const T *b, int64_t ldb,
                    T *c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    std::fill_n(c + i * ldc, n, T(0));
  addBlockedProduct(m, n, k, aT, a, lda, bT, b, ldb, c, ldc);
}

template void blockedProduct(int64_t, int64_t, int64_t, bool, const float *, int64_t, bool, const float *, int64_t,
                             float *, int64_t);
template void blockedProduct(int64_t, int64_t, int64_t, bool, const double *, int64_t, bool, const double *, int64_t,
                             double *, int64_t);
template void addBlockedProduct(int64_t, int64_t, int64_t, bool, const float *, int64_t, bool, const float *, int64_t,
                                float *, int64_t);
template void addBlockedProduct(int64_t, int64_t, int64_t, bool, const double *, int64_t, bool, const double *, int64_t,
                                double *, int64_t);

} // namespace wg::runtime
