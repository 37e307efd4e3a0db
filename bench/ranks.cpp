// What ranks cost.
//   mpirun -n 2 ranks sums [SECONDS]   dist::all_reduce of 4 KiB to 64 MiB of f32, over the tree and in any order,
//                                      beside plain MPI_Allreduce of the same bytes (goal, in any order: 1.1 times)
//   mpirun -n 2 ranks steps [SECONDS]  data parallel steps of relu networks with Adam: over the fixed tree of 8 shards
//                                      (goal: 1.1 times a shard a rank, summed in any order), and what is waited
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

void sums(double budget) {
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

/// A relu network on one batch.
struct Network {
  nn::Sequential model;
  optim::Adam adam{1e-7};
  Tensor x, y;
  Network(const std::vector<int64_t> &sizes, int64_t rows) {
    for (size_t i = 0; i + 1 < sizes.size(); ++i)
      model.append(i + 2 < sizes.size() ? nn::Dense(sizes[i], sizes[i + 1], relu) : nn::Dense(sizes[i], sizes[i + 1]));
    x = random_uniform(random::key(1), {rows, sizes.front()});
    y = random_integers(random::key(2), {rows}, 0, sizes.back());
  }
  Tensor step(const Tensor &x, const Tensor &y) {
    std::vector<Variable> variables = model.trainable_variables();
    GradientTape tape;
    Tensor loss = nn::cross_entropy(model(x), y);
    adam.apply(tape.gradient(loss, variables), variables);
    return loss;
  }
};

void steps(double budget) {
  bool prints = dist::rank() == 0;
  if (prints)
    fmt::print("{} ranks; milliseconds a step\n| network | rows | a function, one rank alone | a shard each, any order "
               "| 8 shards, the "
               "tree | ratio | bytes | sent and received | of it waited |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
               dist::size());
  struct Row {
    const char *name;
    std::vector<int64_t> sizes;
    int64_t rows;
  };
  for (const Row &row :
       {Row{"784-128-10", {784, 128, 10}, 64}, Row{"784-128-10", {784, 128, 10}, 512},
        Row{"784-1024-1024-10", {784, 1024, 1024, 10}, 128}, Row{"784-1024-1024-10", {784, 1024, 1024, 10}, 1024}}) {
    Network networks[] = {{row.sizes, row.rows}, {row.sizes, row.rows}, {row.sizes, row.rows}};
    auto alone = function("step", [&](const Tensor &x, const Tensor &y) { return networks[0].step(x, y); });
    auto any = dist::data_parallel("any", [&](const Tensor &x, const Tensor &y) { return networks[1].step(x, y); },
                                   {.shards = 0});
    auto tree = dist::data_parallel("tree", [&](const Tensor &x, const Tensor &y) { return networks[2].step(x, y); });
    auto own = [&](const Tensor &x, int64_t shards) {
      auto [begin, end] = dist::rows_of_rank(row.rows, shards);
      return slice(x, {begin}, {end});
    };
    Tensor x0 = own(networks[1].x, 0), y0 = own(networks[1].y, 0), x8 = own(networks[2].x, 8),
           y8 = own(networks[2].y, 8);
    std::vector<double> times[3];
    for (double end = seconds() + 3 * budget; once([] {}) >= 0;) {
      times[0].push_back(once([&] {
        if (prints) // the others wait, and leave the machine to it
          alone(networks[0].x, networks[0].y);
      }));
      dist::init({.any_order = true});
      times[1].push_back(once([&] { any(x0, y0); }));
      dist::init();
      times[2].push_back(once([&] { tree(x8, y8); }));
      int more = seconds() < end || times[0].size() < 10;
      MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
      if (!more)
        break;
    }
    dist::Communication sent = tree.communication();
    int64_t bytes = 0;
    double each = 0, waited = 0;
    for (const dist::Communication::Bucket &bucket : sent.buckets) {
      bytes += bucket.bytes;
      each += bucket.seconds / static_cast<double>(sent.calls);
      waited += bucket.waited / static_cast<double>(sent.calls);
    }
    if (prints)
      fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.2f} | {} | {:.3f} | {:.0f} % |\n", row.name, row.rows,
                 median(times[0]) * 1e3, median(times[1]) * 1e3, median(times[2]) * 1e3,
                 median(times[2]) / median(times[1]), bytes, each * 1e3, each > 0 ? 100 * waited / each : 0);
  }
}

} // namespace

int main(int argc, char **argv) {
  dist::init();
  std::string what = argc > 1 ? argv[1] : "sums";
  double budget = argc > 2 ? std::atof(argv[2]) : 1;
  if (what == "sums") {
    sums(budget);
  } else if (what == "steps") {
    steps(budget);
  } else {
    fmt::print(stderr, "usage: ranks sums|steps [SECONDS]\n");
    return 2;
  }
}
