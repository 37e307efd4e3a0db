// What saving costs: a checkpoint every 100 steps beside the same steps without (goal: 5 % of their time), and a
// trained step in a file beside a plain file of as many bytes (goal: 20 ms more).
//   save [DIRECTORY [THREADS]]
// The directory is of the disk that is meant, by default that of temporary files. The steps have one thread by default:
// the writer has a processor of its own if there are two.
#include "Problem.h"
#include "Timing.h"

#include <wengert/wengert.h>

#include <fmt/core.h>

#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <unistd.h>

using namespace wg;
namespace fs = std::filesystem;

namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A relu network with Adam on one batch, as the steps b and c of peers/STEPS.md.
struct Network {
  nn::Sequential model;
  optim::Adam adam{1e-7};
  Tensor x, y;
  Function<Tensor(const Tensor &, const Tensor &)> step{"step", [this](const Tensor &x, const Tensor &y) {
                                                          GradientTape tape;
                                                          Tensor loss = nn::cross_entropy(model(x), y);
                                                          adam.apply(tape.gradient(loss, model), model);
                                                          return loss;
                                                        }};

  Network(const std::vector<int64_t> &sizes, int64_t batch)
      : x(Tensor::from(bench::uniform(1, static_cast<size_t>(batch * sizes[0])), {batch, sizes[0]})),
        y(Tensor::from(bench::labels(2, static_cast<size_t>(batch), 10))) {
    for (size_t i = 0; i + 1 < sizes.size(); ++i)
      model.append(
          nn::Dense(sizes[i], sizes[i + 1], i + 2 < sizes.size() ? nn::Activation(wg::relu) : nn::Activation()));
    adam.build(model);
    step(x, y);
  }
};

/// Blocks of so many steps, in turn without and with a checkpoint at the end of each.
/// `alone`: the steps stay on one processor.
void checkpoints(const char *name, const std::vector<int64_t> &sizes, int64_t batch, int64_t every, int rounds,
                 bool alone, const fs::path &directory) {
  Network network(sizes, batch);
  CheckpointManager manager((directory / name).string(), SaveItems{{"model", network.model}, {"adam", network.adam}},
                            {.keep = 2, .every_steps = every});
  manager.save(); // its thread runs, where it likes
  manager.wait();
  if (alone) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  std::vector<double> plain, with, call;
  for (int round = 0; round < rounds; ++round) {
    double begun = seconds();
    for (int64_t i = 0; i < every; ++i)
      network.step(network.x, network.y);
    plain.push_back(seconds() - begun);
    // Two blocks: the checkpoint at the end of the first is written during the second.
    for (int64_t i = 0; i < 2 * every; ++i) {
      if (i == every)
        begun = seconds();
      network.step(network.x, network.y);
      double before = seconds();
      if (manager.step() && i < every)
        call.push_back(seconds() - before);
    }
    with.push_back(seconds() - begun);
    manager.wait();
  }
  std::vector<double> writes;
  for (int round = 0; round < rounds; ++round) {
    manager.save();
    double begun = seconds();
    manager.wait();
    writes.push_back(seconds() - begun);
  }
  double without = bench::median(plain), beside = bench::median(with);
  auto bytes = static_cast<double>(fs::file_size(manager.path(manager.steps())));
  fmt::print(
      "{}: {} steps {:.1f} ms; with a checkpoint of {:.2f} MB {:.1f} ms: {:+.1f} % (goal: 5 %); the call {:.2f} ms, "
      "the thread {:.1f} ms\n",
      name, every, without * 1e3, bytes / 1e6, beside * 1e3, 100 * (beside / without - 1), bench::median(call) * 1e3,
      bench::median(writes) * 1e3);
}

/// As many bytes, written under a temporary name, synced and renamed.
void plainFile(const fs::path &path, const std::vector<char> &bytes) {
  const std::string temporary = path.string() + ".new";
  int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  for (size_t done = 0; done < bytes.size();)
    if (ssize_t wrote = ::write(file, bytes.data() + done, bytes.size() - done); wrote > 0)
      done += static_cast<size_t>(wrote);
    else
      std::exit(1);
  ::fsync(file);
  ::close(file);
  fs::rename(temporary, path);
}

void savedStep(const fs::path &directory) {
  Network network({784, 128, 10}, 64);
  const fs::path saved = directory / "step.wg", other = directory / "bytes";
  auto save = [&] {
    wg::save(saved.string(), {{"step", network.step}, {"model", network.model}, {"adam", network.adam}});
  };
  save();
  std::vector<char> bytes(fs::file_size(saved), 'x');
  std::vector<double> ours, plain, loads;
  for (int round = 0; round < 15; ++round) {
    network.step(network.x, network.y);
    double begun = seconds();
    save();
    ours.push_back(seconds() - begun);
    begun = seconds();
    plainFile(other, bytes);
    plain.push_back(seconds() - begun);
    begun = seconds();
    load(saved.string());
    loads.push_back(seconds() - begun);
  }
  double over = bench::median(ours) - bench::median(plain);
  fmt::print(
      "saving step b, trained, {:.2f} MB: {:.1f} ms; a plain file of as many bytes {:.1f} ms: {:+.1f} ms (goal: 20 "
      "ms); loading {:.1f} ms\n",
      static_cast<double>(bytes.size()) / 1e6, bench::median(ours) * 1e3, bench::median(plain) * 1e3, over * 1e3,
      bench::median(loads) * 1e3);
}

} // namespace

int main(int argc, char **argv) {
  fs::path directory =
      (argc > 1 ? fs::path(argv[1]) : fs::temp_directory_path()) / ("wengert_bench_" + std::to_string(::getpid()));
  fs::create_directories(directory);
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  set_num_threads(threads);
  checkpoints("b", {784, 128, 10}, 64, 100, 25, threads == 1, directory);
  checkpoints("c", {784, 1024, 1024, 10}, 256, 100, 5, threads == 1, directory);
  savedStep(directory);
  fs::remove_all(directory);
}
