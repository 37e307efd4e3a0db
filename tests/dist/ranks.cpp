// One program of several ranks, on threads or started by mpirun: random programs with collectives, eagerly, compiled
// and differentiated; random data parallel steps. Prints a digest of all that all ranks computed; `ranks.py` compares.
//
//   ranks programs SEED COUNT [--threads N]
//   ranks steps SEED COUNT [--threads N]        the digest is the same for any number of ranks
//   ranks save DIR, ranks load DIR              what any number of ranks wrote is read by any number
//   ranks fault KIND        what goes wrong on rank 1
#include <wengert/wengert.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <unistd.h>

using namespace wg;

namespace {

/// The same on all ranks.
class Choices {
public:
  explicit Choices(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t count) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(count)); }

private:
  std::mt19937_64 engine_;
};

/// A function of x [n, 12] to a number, of `steps` ops.
Tensor program(uint64_t seed, Tensor x) {
  Choices choose(seed);
  int64_t ranks = dist::size();
  Tensor other = cos(x);
  for (int64_t steps = 3 + choose.below(6); steps > 0; --steps) {
    if (choose.below(4) == 0)
      std::swap(x, other);
    auto reduction = static_cast<dist::Reduction>(choose.below(3));
    switch (choose.below(8)) {
    case 0: x = dist::all_reduce(x, reduction); break;
    case 1: x = dist::reduce_scatter(dist::all_gather(x, 0), 0) / static_cast<double>(ranks); break;
    case 2: x = mean(reshape(dist::all_gather(x, 0), {ranks, x.shape()[0], 12}), {0}); break;
    case 3: x = dist::broadcast(x, static_cast<int>(choose.below(ranks))) + x; break;
    case 4: x = sin(x) * other; break;
    case 5:
      x = matmul(x, transpose(other));
      x = matmul(x, other) * 0.1;
      break;
    case 6:
      x = for_range(
          0, 1 + choose.below(3),
          [&](const Tensor &, const Tensor &h) { return dist::all_reduce(sin(h), dist::Reduction::mean) + x; }, x);
      break;
    case 7: x = x * dist::all_reduce(reduce_max(abs(x)), dist::Reduction::max) / 2.0; break;
    }
  }
  return reduce_sum(tanh(x)) + dist::all_reduce(reduce_sum(other)) * 0.1;
}

void programs(uint64_t seed, int64_t count) {
  uint64_t digest = 0xcbf29ce484222325u;
  auto add = [&](const Tensor &tensor) { // FNV-1a of the elements' bits
    for (double value : dist::all_gather(flatten(tensor)).to_vector<double>()) {
      uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      digest = (digest ^ bits) * 0x100000001b3u;
    }
  };
  for (int64_t i = 0; i < count; ++i) {
    uint64_t own = seed + static_cast<uint64_t>(i);
    int64_t rows = 1 + static_cast<int64_t>(own % 5);
    Tensor x = random_uniform(random::key(1000 * own + static_cast<uint64_t>(dist::rank())), {rows, 12}, -1, 1, f64);
    auto both = [&](const Tensor &x) {
      GradientTape tape;
      tape.watch(x);
      Tensor y = program(own, x);
      return std::pair(y, tape.gradient(y, x).value());
    };
    auto [y, dx] = both(x);
    auto [y2, dx2] = function("program", both)(x);
    for (const Tensor &each : {y, dx, y2, dx2})
      add(each);
    double apart = reduce_max(abs(dx - dx2)).item<double>(), size = 1 + reduce_max(abs(dx)).item<double>();
    if (!(apart <= 1e-9 * size))
      throw std::runtime_error("program " + std::to_string(own) + ": compiled and eager gradients are " +
                               std::to_string(apart) + " apart");
  }
  if (dist::rank() == 0)
    std::cout << dist::size() << " ranks, " << count << " programs from " << seed << ": " << digest << std::endl;
}

/// The variables of a small network, and a loss of random ops on rows of x [n, 6].
struct Network {
  uint64_t seed;
  Variable w{random_uniform(random::key(1), {6, 6}, -1, 1, f64), "w"};
  Variable scale{random_uniform(random::key(2), {6}, 0.5, 1.5, f64), "scale"};
  Variable bias{zeros({}, f64), "bias"};
  nn::BatchNorm norm{6, {.dtype = f64}};
  Generator generator{3};
  bool draws = false, byShard = false; ///< it is another function of the whole batch

  Tensor loss(const Tensor &x, const Tensor &y) {
    Choices choose(seed);
    Tensor h = x, most = zeros({}, f64);
    for (int64_t steps = 3 + choose.below(5); steps > 0; --steps)
      switch (choose.below(10)) {
      case 0: h = tanh(matmul(h, w)) + bias; break;
      case 1: h = h * scale; break;
      case 2: h = h + sin(matmul(h, transpose(w.value()))) * 0.3; break;
      case 3: h = h - dist::all_reduce(mean(h, {0}), dist::Reduction::mean); break;
      case 4: h = h / (1.0 + dist::all_reduce(reduce_max(abs(h)), dist::Reduction::max)); break;
      case 5: h = checkpoint([&](const Tensor &h) { return tanh(matmul(h, w)) * h; })(h); break;
      case 6: h = for_range(0, 2, [&](const Tensor &, const Tensor &h) { return sin(h * scale) + h * 0.1; }, h); break;
      case 7:
        draws = true;
        h = h * (generator.uniform(h.shape(), 0.5, 1.5, f64));
        break;
      case 8:
        byShard = true;
        h = norm(h, true);
        break;
      case 9: most = most + reduce_sum(square(w.value())) * 0.01; break;
      }
    return mean(square(reduce_sum(h, {1}) - y)) + most;
  }
};

void steps(uint64_t seed, int64_t count) {
  std::string all;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t own = seed + static_cast<uint64_t>(i);
    Choices choose(own * 77 + 5);
    dist::DataParallelOptions options{.shards = std::vector<int64_t>{4, 5, 8, 16}[static_cast<size_t>(choose.below(4))],
                                      .sync_batch_norm = choose.below(2) == 0,
                                      .bucket_bytes = choose.below(2) ? 1 : 1 << 20};
    options.function.interpret = choose.below(4) == 0;
    Network network{own}, whole{own};
    optim::Adam adam(0.01);
    optim::Momentum momentum(0.05);
    bool useAdam = choose.below(2) == 0;
    std::vector<Variable> variables{network.w, network.scale, network.bias};
    for (const Variable &each : network.norm.trainable_variables())
      variables.push_back(each);
    auto step = dist::data_parallel(
        "step",
        [&](const Tensor &x, const Tensor &y) {
          GradientTape tape;
          Tensor loss = network.loss(x, y);
          std::vector<Grad> grads = tape.gradient(loss, variables, {.unconnected = Unconnected::zero});
          useAdam ? adam.apply(grads, variables) : momentum.apply(grads, variables);
          return loss;
        },
        options);
    std::vector<Variable> kept = variables;
    for (const Variable &each : network.norm.variables())
      kept.push_back(each);
    for (int k = 0; k < 3; ++k) {
      int64_t rows = 1 + choose.below(20);
      Tensor x = random_uniform(random::key(static_cast<int64_t>(own) * 10 + k), {rows, 6}, -1, 1, f64);
      Tensor y = cos(reduce_sum(x, {1}));
      auto [begin, end] = dist::rows_of_rank(rows, options.shards);
      double alone = 0;
      if (dist::size() == 1 && k == 0)
        alone = whole.loss(x, y).item<double>();
      Tensor loss = step(slice(x, {begin}, {end}), slice(y, {begin}, {end}));
      kept.emplace_back(loss, VariableOptions{.name = "loss"});
      bool byShard = whole.byShard && !options.sync_batch_norm;
      if (dist::size() == 1 && k == 0 && !whole.draws && !byShard && std::abs(alone - loss.item<double>()) > 1e-9)
        throw std::runtime_error("step " + std::to_string(own) + " has the loss " +
                                 std::to_string(loss.item<double>()) + ", and the whole batch " +
                                 std::to_string(alone));
    }
    dist::check_same(kept);
    all += dist::digest(kept);
  }
  if (dist::rank() == 0)
    std::cout << count << " steps from " << seed << ": " << std::hash<std::string>()(all) << std::endl;
}

/// A model in the state `salt`, and what it predicts.
struct Model {
  explicit Model(int64_t salt)
      : layers(nn::Dense(6, 40, wg::tanh), nn::Dense(40, 30, relu), nn::Dense(30, 3)),
        predict("predict", [layers = layers](const Tensor &x) { return layers(x); }) {
    for (const Variable &each : layers.variables())
      each.assign(random_uniform(random::key(++salt), each.shape(), -1, 1));
  }
  nn::Sequential layers;
  Function<Tensor(const Tensor &)> predict;
};
Tensor inputs() { return random_uniform(random::key(3), {5, 6}, -1, 1); }

/// All ranks write one computation and one set of weights.
void saveAll(const std::string &directory) {
  Model model(10);
  model.predict(inputs());
  wg::save(directory + "/computation", {{"model", model.layers}, {"predict", model.predict}}, {.over_ranks = true});
  save_weights(directory + "/model.safetensors", model.layers, {.over_ranks = true});
}

void loadAll(const std::string &directory) {
  Model restored(100), weights(200), expected(10);
  wg::load(directory + "/computation", {{"model", restored.layers}});
  load_weights(directory + "/model.safetensors", weights.layers);
  Tensor y = wg::load(directory + "/computation").function<Tensor(const Tensor &)>("predict")(inputs());
  auto digest = [](const nn::Sequential &layers, const Tensor &y) {
    std::vector<Variable> all = layers.variables();
    all.emplace_back(y);
    return dist::digest(all);
  };
  std::string whole = digest(expected.layers, expected.predict(inputs()));
  for (const nn::Sequential &layers : {restored.layers, weights.layers})
    if (digest(layers, y) != whole)
      throw std::runtime_error("rank " + std::to_string(dist::rank()) + " has read something else");
  dist::barrier();
  if (dist::rank() == 0)
    std::cout << "read " << whole << std::endl;
}

/// Steps of data parallel training, of which rank 1 does the twentieth in a way of its own.
void stepFault(const std::string &kind) {
  Model model(10);
  optim::SGD sgd(0.01);
  bool here = dist::rank() == 1, other = false;
  auto makeStep = [&](float factor) {
    return dist::data_parallel("step", [&, factor](const Tensor &x) {
      GradientTape tape;
      Tensor loss = mean(square(model.layers(x))) * factor;
      sgd.apply(tape.gradient(loss, model.layers.variables()), model.layers.variables());
      return loss;
    });
  };
  auto step = makeStep(1), another = makeStep(2);
  for (int i = 0;; ++i) {
    if (here && i == 20) {
      if (kind == "step-data")
        load_weights("no/such/file", model.layers);
      if (kind == "step-late")
        sleep(60);
      other = kind == "step-program";
    }
    auto [begin, end] = dist::rows_of_rank(48, 8);
    Tensor x = ones({end - begin, kind == "step-shape" && here && i == 20 ? 7 : 6});
    (other ? another : step)(x);
  }
}

void fault(const std::string &kind) {
  if (kind.starts_with("step-"))
    return stepFault(kind);
  bool here = dist::rank() == 1;
  for (int step = 0;; ++step) {
    if (here && step == 20) {
      if (kind == "killed")
        raise(SIGKILL);
      if (kind == "throws")
        throw std::runtime_error("rank 1 has no data");
      if (kind == "exits")
        std::exit(3);
      if (kind == "late")
        sleep(60);
    }
    dist::all_reduce(zeros({here && step == 20 && kind == "shape" ? 4 : 5}));
    if (kind == "order" && step == 20)
      here ? dist::all_gather(zeros({5})) : dist::broadcast(zeros({5}));
  }
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() >= 3 && (args[0] == "programs" || args[0] == "steps")) {
    auto run = args[0] == "programs" ? programs : steps;
    uint64_t seed = std::stoull(args[1]);
    int64_t count = std::stoll(args[2]);
    if (args.size() == 5 && args[3] == "--threads") {
      dist::run(std::stoi(args[4]), [&] { run(seed, count); });
      return 0;
    }
    dist::init();
    run(seed, count);
    return 0;
  }
  if (args.size() == 2 && (args[0] == "save" || args[0] == "load")) {
    dist::init();
    (args[0] == "save" ? saveAll : loadAll)(args[1]);
    return 0;
  }
  if (args.size() == 2 && args[0] == "fault") {
    dist::init({.timeout = 3});
    fault(args[1]);
  }
  std::cerr << "usage: ranks programs|steps SEED COUNT [--threads N] | ranks save|load DIR | ranks fault KIND\n";
  return 2;
}
