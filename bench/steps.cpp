// How fast are the steps of peers/STEPS.md, eager and compiled? One command, one table: every step first gives the
// losses (or sums) of expected.jsonl, then it is timed in turn with the same step by hand (hand.cpp), and, with
// --python, with JAX, TensorFlow and PyTorch.
//   steps [STEP...] [--budget SECONDS] [--runs 5] [--threads 1] [--python PATH] [--no-eager]
#include "Expected.h"
#include "Problem.h"
#include "Timing.h"

#include <wengert/wengert.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sched.h>
#include <sys/resource.h>

namespace {

using namespace wg;
using Json = nlohmann::json;

Tensor tensor(const std::vector<float> &values, const Shape &shape) { return Tensor::from(values, shape); }

// ---- The steps ------------------------------------------------------------------------------------------------------

/// A step as a C++ function on tensors, and the same traced. Train steps return the loss, gradients themselves,
/// k the parameter after the step.
struct Case {
  using Traced = Function<Tensor(const std::vector<Tensor> &)>;
  std::vector<Tensor> inputs;
  std::function<Tensor(const std::vector<Tensor> &)> eager;
  std::shared_ptr<optim::Optimizer> optimizer;
  std::optional<Traced> compiled;
  std::function<Tensor()> result = {}; ///< what is checked, if not the step's value

  void trace(const std::string &name) { compiled.emplace(name, eager); }
};

Case lineStep(double lr) {
  Case c;
  std::vector<float> x = bench::uniform(1, 32);
  c.inputs = {Tensor::from(x), Tensor::from(bench::lineTargets(x))};
  Variable w(0.0f, {.name = "w"}), b(0.0f, {.name = "b"});
  c.eager = [=](const std::vector<Tensor> &in) {
    GradientTape tape;
    Tensor loss = mean(square(w * in[0] + b - in[1]));
    auto [dw, db] = tape.gradient(loss, w, b);
    w.assign_sub(lr * dw);
    b.assign_sub(lr * db);
    return loss;
  };
  return c;
}

Case networkStep(const std::vector<int64_t> &sizes, int64_t batch, double lr) {
  Case c;
  c.inputs = {tensor(bench::uniform(1, static_cast<size_t>(batch * sizes[0])), {batch, sizes[0]}),
              Tensor::from(bench::labels(2, static_cast<size_t>(batch), 10))};
  std::vector<Variable> parameters;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    int64_t in = sizes[i], out = sizes[i + 1];
    parameters.emplace_back(
        tensor(bench::weight(10 + 2 * i, static_cast<size_t>(in), static_cast<size_t>(out)), {in, out}),
        VariableOptions{.name = fmt::format("w{}", i)});
    parameters.emplace_back(zeros({out}), VariableOptions{.name = fmt::format("b{}", i)});
  }
  auto adam = std::make_shared<optim::Adam>(lr);
  c.optimizer = adam;
  c.eager = [=](const std::vector<Tensor> &in) {
    GradientTape tape;
    Tensor h = in[0];
    for (size_t i = 0; i < parameters.size(); i += 2) {
      h = matmul(h, parameters[i]) + parameters[i + 1];
      if (i + 2 < parameters.size())
        h = relu(h);
    }
    Tensor loss = nn::cross_entropy(h, in[1]);
    adam->apply(tape.gradient(loss, parameters), parameters);
    return loss;
  };
  return c;
}

Case chainGradient(int64_t count) {
  Case c;
  c.inputs = {tensor(bench::uniform(1, static_cast<size_t>(count), -1, 1), {count})};
  c.eager = [](const std::vector<Tensor> &in) {
    GradientTape tape;
    tape.watch(in[0]);
    Tensor y = in[0];
    for (int i = 0; i < 5; ++i)
      y = tanh(y * 0.5 + 0.1) * in[0];
    return tape.gradient(reduce_sum(y), in[0]).value();
  };
  return c;
}

Case squareGradient() {
  Case c;
  c.inputs = {Tensor(3.0f)};
  c.eager = [](const std::vector<Tensor> &in) {
    GradientTape tape;
    tape.watch(in[0]);
    Tensor y = in[0] * in[0];
    return tape.gradient(y, in[0]).value();
  };
  return c;
}

Case adamStep(double lr) {
  Case c;
  constexpr int64_t kCount = 10000000;
  c.inputs = {tensor(bench::uniform(1, kCount, -1, 1), {kCount})};
  Variable p(tensor(bench::uniform(10, kCount, -1, 1), {kCount}), {.name = "p"});
  auto adam = std::make_shared<optim::Adam>(lr);
  c.optimizer = adam;
  c.eager = [=](const std::vector<Tensor> &in) {
    adam->apply(Grad(in[0]), p);
    return Tensor(0.0f);
  };
  c.result = [=] { return p.value(); };
  return c;
}

Case logisticStep(double lr) {
  Case c;
  std::vector<float> x = bench::uniform(1, 256 * 30, -1, 1), direction = bench::uniform(3, 30, -1, 1), y(256);
  for (size_t i = 0; i < 256; ++i) {
    double side = 0;
    for (size_t j = 0; j < 30; ++j)
      side += double(x[i * 30 + j]) * double(direction[j]);
    y[i] = side > 0;
  }
  c.inputs = {tensor(x, {256, 30}), Tensor::from(y)};
  Variable w(zeros({30}), {.name = "w"}), b(0.0f, {.name = "b"});
  c.eager = [=](const std::vector<Tensor> &in) {
    GradientTape tape;
    Tensor loss = nn::sigmoid_cross_entropy(matmul(in[0], w) + b, in[1]);
    auto [dw, db] = tape.gradient(loss, w, b);
    w.assign_sub(lr * dw);
    b.assign_sub(lr * db);
    return loss;
  };
  return c;
}

/// The character model: a scan over 50 steps.
Case characterStep(double lr) {
  Case c;
  constexpr int64_t kBatch = 32, kTime = 50, kLetters = 65, kHidden = 128;
  c.inputs = {Tensor::from(bench::labels(1, kBatch * (kTime + 1), kLetters), {kBatch, kTime + 1})};
  Variable embedding(tensor(bench::uniform(10, kLetters * kHidden, -0.1, 0.1), {kLetters, kHidden}), "embedding");
  Variable weight(tensor(bench::weight(11, 2 * kHidden, 4 * kHidden), {2 * kHidden, 4 * kHidden}), "lstm_w");
  Variable bias(zeros({4 * kHidden}), "lstm_b");
  Variable head(tensor(bench::weight(13, kHidden, kLetters), {kHidden, kLetters}), "head_w");
  Variable offset(zeros({kLetters}), "head_b");
  std::vector<Variable> parameters{embedding, weight, bias, head, offset};
  auto adam = std::make_shared<optim::Adam>(lr);
  c.optimizer = adam;
  c.eager = [=](const std::vector<Tensor> &in) {
    using State = std::pair<Tensor, Tensor>;
    GradientTape tape;
    Tensor tokens = transpose(in[0]);
    auto cell = [&](const State &state, const Tensor &x) {
      std::vector<Tensor> gate = split(matmul(concat({x, state.first}, 1), weight) + bias, 4, 1);
      Tensor next = sigmoid(gate[1]) * state.second + sigmoid(gate[0]) * tanh(gate[2]);
      Tensor h = sigmoid(gate[3]) * tanh(next);
      return std::pair(State(h, next), h);
    };
    Tensor zero = zeros({kBatch, kHidden});
    Tensor hs = scan(cell, State(zero, zero), gather(embedding, slice(tokens, {0, 0}, {kTime, kBatch}))).second;
    Tensor logits = matmul(reshape(hs, {kTime * kBatch, kHidden}), head) + offset;
    Tensor loss = nn::cross_entropy(logits, reshape(slice(tokens, {1, 0}, {kTime + 1, kBatch}), {kTime * kBatch}));
    adam->apply(tape.gradient(loss, parameters), parameters);
    return loss;
  };
  return c;
}

/// ADBench's diagonal LSTM, 1,024 symbols, as a scan; in f64.
Case diagonalLstm() {
  Case c;
  constexpr int64_t kLayers = 2, kWidth = 14, kSymbols = 1024;
  std::vector<double> symbols = bench::uniformDouble(1, kSymbols * kWidth, 0, 2);
  for (double &x : symbols)
    x = std::floor(x);
  c.inputs = {Tensor::from(bench::uniformDouble(10, kLayers * 8 * kWidth, -1, 1), {kLayers, 8, kWidth}),
              Tensor::from(bench::uniformDouble(11, 3 * kWidth, -1, 1), {3, kWidth}),
              Tensor::from(symbols, {kSymbols, kWidth}),
              Tensor::from(bench::uniformDouble(2, kLayers * 2 * kWidth, -1, 1), {kLayers, 2, kWidth})};
  c.eager = [](const std::vector<Tensor> &in) {
    const Tensor &main = in[0], &extra = in[1], &x = in[2], &start = in[3];
    GradientTape tape;
    tape.watch(main, extra);
    using State = std::vector<std::pair<Tensor, Tensor>>;
    auto step = [&](const State &state, Tensor z) {
      State next;
      for (size_t layer = 0; layer < state.size(); ++layer) {
        auto l = static_cast<int64_t>(layer);
        auto w = [&](int64_t i) { return main[l][i]; };
        auto &[h, before] = state[layer];
        Tensor after = before * sigmoid(z * w(0) + w(4)) + sigmoid(h * w(1) + w(5)) * tanh(h * w(3) + w(7));
        z = sigmoid(z * w(2) + w(6)) * tanh(after);
        next.emplace_back(z, after);
      }
      return std::pair(next, z);
    };
    State state;
    for (int64_t layer = 0; layer < kLayers; ++layer)
      state.emplace_back(start[layer][0], start[layer][1]);
    Tensor hs = scan(step, state, slice(x, {0, 0}, {kSymbols - 1, kWidth}) * extra[0]).second;
    Tensor y = hs * extra[1] + extra[2];
    Tensor lse = log(reduce_sum(exp(y), {1}, true) + 2.0);
    Tensor gold = slice(x, {1, 0}, {kSymbols, kWidth});
    Tensor loss = -reduce_sum(gold * (y - lse)) / static_cast<double>((kSymbols - 1) * kWidth);
    auto [dMain, dExtra] = tape.gradient(loss, std::tuple(main, extra));
    return cast(concat({reshape(dMain.value(), {-1}), reshape(dExtra.value(), {-1})}), f32);
  };
  return c;
}

struct StepInfo {
  const char *name;
  double lr;                        ///< of the check; 0: a gradient
  std::function<Case(double)> make; ///< with a learning rate
};

const std::vector<StepInfo> &steps() {
  static const std::vector<StepInfo> all = {
      {"a", 0.05, lineStep},
      {"b", 0.001, [](double lr) { return networkStep({784, 128, 10}, 64, lr); }},
      {"c", 0.001, [](double lr) { return networkStep({784, 1024, 1024, 10}, 256, lr); }},
      {"f", 0, [](double) { return chainGradient(4194304); }},
      {"f_small", 0, [](double) { return chainGradient(4096); }},
      {"g", 0, [](double) { return squareGradient(); }},
      {"i", 0, [](double) { return diagonalLstm(); }},
      {"k", 0.001, adamStep},
      {"l", 0.1, logisticStep},
      {"m", 0.001, characterStep},
  };
  return all;
}

// ---- Checks ---------------------------------------------------------------------------------------------------------

std::vector<double> figures(const StepInfo &step, bool compiled) {
  Case c = step.make(step.lr);
  c.trace(step.name);
  auto call = [&] { return compiled ? (*c.compiled)(c.inputs) : c.eager(c.inputs); };
  if (c.result) {
    for (int i = 0; i < 3; ++i)
      call();
    double sum = 0;
    for (float value : c.result().to_vector<float>())
      sum += std::fabs(double(value));
    return {sum};
  }
  if (step.lr) {
    std::vector<double> losses;
    for (int i = 0; i < 10; ++i)
      losses.push_back(call().item<double>());
    return losses;
  }
  double sum = 0, absolute = 0;
  for (float value : call().to_vector<float>())
    sum += double(value), absolute += std::fabs(double(value));
  return {sum, absolute};
}

// ---- Times ----------------------------------------------------------------------------------------------------------

/// The last line that a program prints, as JSON; nothing if it fails.
std::optional<Json> ask(const std::string &command) {
  FILE *pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe)
    return {};
  std::string last, line;
  for (int c; (c = std::fgetc(pipe)) != EOF;)
    if (c == '\n')
      last = line, line.clear();
    else
      line += static_cast<char>(c);
  int status = pclose(pipe);
  Json answer = Json::parse(line.empty() ? last : line, nullptr, false);
  if (status || answer.is_discarded())
    return {};
  return answer;
}

/// In a process of its own: the call to the first result, what the stages cost, the peak memory after some steps.
int firstResult(const StepInfo &step) {
  Case c = step.make(step.lr ? bench::kTimingRate : 0);
  c.trace(step.name);
  double start = bench::seconds();
  (*c.compiled)(c.inputs);
  double first = bench::seconds() - start;
  for (int i = 0; i < 5; ++i)
    (*c.compiled)(c.inputs);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  Json row = {
      {"first_ms", first * 1e3}, {"peak_mb", static_cast<double>(usage.ru_maxrss) / 1024}, {"stages", Json::array()}};
  for (const StageTime &stage : c.compiled->trace(c.inputs).timings())
    row["stages"].push_back({stage.stage, stage.seconds * 1e3});
  std::cout << row.dump() << std::endl;
  return 0;
}

struct Row {
  std::string step, failure, product;
  double eager = 0, compiled = 0, hand = 0, ratio = 0;
  Json first;
  std::map<std::string, double> peers;
};

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> chosen;
  double budget = 1;
  int runs = 5, threads = 1;
  bool eager = true;
  std::string python;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (word == "--budget")
      budget = std::atof(value().c_str());
    else if (word == "--runs")
      runs = std::max(1, std::atoi(value().c_str()));
    else if (word == "--threads")
      threads = std::max(1, std::atoi(value().c_str()));
    else if (word == "--python")
      python = value();
    else if (word == "--no-eager")
      eager = false;
    else if (word == "--first") {
      std::string name = value();
      for (const StepInfo &step : steps())
        if (step.name == name)
          return firstResult(step);
      return 2;
    } else if (std::any_of(steps().begin(), steps().end(), [&](const StepInfo &step) { return step.name == word; }))
      chosen.push_back(word);
    else {
      std::cerr << "usage: steps [a|b|c|f|f_small|g|i|k|l|m ...] [--budget SECONDS] [--runs N] [--threads N] [--python "
                   "PATH] [--no-eager]\n";
      return 2;
    }
  }
  if (threads == 1 && std::getenv("WENGERT_NO_PIN") == nullptr) {
    // One thread: the last processor of those allowed, for this process and the programs that it starts.
    cpu_set_t allowed, one;
    sched_getaffinity(0, sizeof allowed, &allowed);
    CPU_ZERO(&one);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu)
      if (CPU_ISSET(cpu, &allowed)) {
        CPU_SET(cpu, &one);
        break;
      }
    sched_setaffinity(0, sizeof one, &one);
  }
  set_num_threads(threads);
  std::filesystem::path self = std::filesystem::canonical("/proc/self/exe"), hand = self.parent_path() / "hand";
  bool byHand = std::filesystem::exists(hand);
  std::map<std::string, Json> want = bench::expected();
  std::vector<std::pair<std::string, std::string>> peers;
  if (!python.empty())
    for (auto [module, program, mode] : {std::tuple{"jax", "jax_steps.py", "jit"},
                                         {"tensorflow", "tf_steps.py", "xla"},
                                         {"tensorflow", "tf_steps.py", "graph"},
                                         {"torch", "torch_steps.py", "compile"}})
      if (std::system(fmt::format("{} -c 'import {}' >/dev/null 2>&1", python, module).c_str()) == 0)
        peers.emplace_back(
            fmt::format("{} {}", module, mode),
            fmt::format("{} {}/peers/{} --mode {} --budget {}", python, WENGERT_BENCH_DIR, program, mode, budget));

  std::vector<Row> rows;
  for (const StepInfo &step : steps()) {
    if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), step.name) == chosen.end())
      continue;
    Row row;
    row.step = step.name;
    std::cerr << step.name << " " << std::flush;
    try {
      row.failure = bench::compare(step.name, figures(step, true), want[step.name]);
      if (row.failure.empty() && eager &&
          !(row.failure = bench::compare(step.name, figures(step, false), want[step.name])).empty())
        row.failure = "eager: " + row.failure;
      if (row.failure.empty()) {
        Case timed = step.make(step.lr ? bench::kTimingRate : 0);
        timed.trace(step.name);
        std::vector<double> times, limits, ratios;
        for (int run = 0; run < runs; ++run) {
          std::optional<Json> limit =
              byHand ? ask(fmt::format("OMP_NUM_THREADS=1 {} {} --budget {}", hand.string(), step.name, budget))
                     : std::nullopt;
          times.push_back(bench::measure([&] { (*timed.compiled)(timed.inputs); }, budget).median);
          if (limit) {
            if (!run)
              if (std::string off = bench::compare(
                      step.name, (*limit)[limit->contains("losses") ? "losses" : "sums"].get<std::vector<double>>(),
                      want[step.name]);
                  !off.empty())
                throw Error({.message = "by hand: " + off});
            row.product = (*limit)["product"];
            limits.push_back((*limit)["median_us"].get<double>() * 1e-6);
            ratios.push_back(times.back() / limits.back());
          }
        }
        row.compiled = bench::median(times);
        if (!ratios.empty())
          row.hand = bench::median(limits), row.ratio = bench::median(ratios);
        if (eager)
          row.eager = bench::measure([&] { timed.eager(timed.inputs); }, budget).median;
        if (std::optional<Json> first = ask(fmt::format("{} --first {}", self.string(), step.name)))
          row.first = *first;
        for (const auto &[name, command] : peers)
          if (std::optional<Json> peer = ask(command + " " + step.name))
            row.peers[name] = (*peer)["median_us"].get<double>() * 1e-6;
      }
    } catch (const std::exception &error) {
      row.failure = error.what();
    }
    rows.push_back(row);
  }
  std::cerr << "\n";

  std::ifstream cpu("/proc/cpuinfo");
  for (std::string line; std::getline(cpu, line);)
    if (line.starts_with("model name")) {
      fmt::print("{}, {} thread{}, median of {} runs of {} s, f32 (i: f64)\n\n", line.substr(line.find(':') + 2),
                 threads, threads == 1 ? "" : "s", runs, budget);
      break;
    }
  std::string head = "| step | compiled | by hand | ratio | eager | first result | peak MB |",
              rule = "|---|--:|--:|--:|--:|--:|--:|";
  for (const auto &[name, command] : peers)
    head += " " + name + " |", rule += "--:|";
  fmt::print("{}\n{}\n", head, rule);
  auto time = [](double t) { return t ? bench::showTime(t) : std::string("-"); };
  int failed = 0;
  for (const Row &row : rows) {
    if (!row.failure.empty()) {
      ++failed;
      fmt::print("| {} | WRONG: {} |\n", row.step, row.failure);
      continue;
    }
    fmt::print("| {} | {} | {} | {} | {} | {} | {} |", row.step, time(row.compiled), time(row.hand),
               row.ratio ? fmt::format("{:.2f}", row.ratio) : "-", time(row.eager),
               row.first.is_null() ? "-" : time(row.first["first_ms"].get<double>() * 1e-3),
               row.first.is_null() ? "-" : fmt::format("{:.0f}", row.first["peak_mb"].get<double>()));
    for (const auto &[name, command] : peers)
      fmt::print(" {} |", row.peers.contains(name) ? time(row.peers.at(name)) : "-");
    fmt::print("\n");
  }
  fmt::print("\nwhat the first result costs, milliseconds\n\n");
  for (const Row &row : rows)
    if (row.first.is_object()) {
      fmt::print("{:8}", row.step);
      for (const Json &stage : row.first["stages"])
        fmt::print(" {} {:.2f} ", stage[0].get<std::string>(), stage[1].get<double>());
      fmt::print("{}\n", row.product.empty() || row.product == "-" ? "" : "  (products by hand: " + row.product + ")");
    }
  return failed ? 1 : 0;
}
