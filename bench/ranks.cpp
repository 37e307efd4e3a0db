// What sums over ranks cost: dist::all_reduce of 4 KiB to 64 MiB of f32, over the fixed tree and in any order, beside
// plain MPI_Allreduce of the same bytes (goal, in any order: 1.1 times).
//   mpirun -n 2 ranks [SECONDS]
#include <wengert/wengert.h>

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>

using namespace wg;

namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The slowest rank's seconds of one call.
template <class F> double once(F f) {
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = seconds();
  f();
  double own = seconds() - begin, slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

} // namespace

int main(int argc, char **argv) {
  dist::init();
  double budget = argc > 1 ? std::atof(argv[1]) : 1;
  bool prints = dist::rank() == 0;
  if (prints)
    fmt::print("{} ranks\n{:>10} {:>12} {:>12} {:>12} {:>8} {:>8}\n", dist::size(), "bytes", "MPI us", "any order us",
               "tree us", "ratio", "tree");
  for (int64_t bytes = 4096; bytes <= int64_t(64) << 20; bytes *= 4) {
    Tensor x = random_uniform(random::key(static_cast<uint64_t>(dist::rank())), {bytes / 4});
    std::vector<float> from = x.to_vector<float>(), to(from.size());
    std::vector<double> plain, any, tree;
    // By turns, so that all three have the machine's good and bad moments.
    for (double end = seconds() + budget; once([] {}) >= 0;) {
      plain.push_back(once([&] {
        MPI_Allreduce(from.data(), to.data(), static_cast<int>(from.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      }));
      dist::init({.any_order = true});
      any.push_back(once([&] { dist::all_reduce(x); }));
      dist::init();
      tree.push_back(once([&] { dist::all_reduce(x); }));
      int more = seconds() < end || plain.size() < 5;
      MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
      if (!more)
        break;
    }
    if (prints)
      fmt::print("{:>10} {:>12.1f} {:>12.1f} {:>12.1f} {:>8.2f} {:>8.2f}\n", bytes, median(plain) * 1e6,
                 median(any) * 1e6, median(tree) * 1e6, median(any) / median(plain), median(tree) / median(plain));
  }
}
