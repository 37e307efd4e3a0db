// How fast are the steps of peers/STEPS.md, eager and compiled? One command, one table: every step first gives the
// losses (or sums) of expected.jsonl, then it is timed in turn with the same step by hand (hand.cpp), and, with
// --python, with JAX, TensorFlow and PyTorch.
//   steps [STEP...] [--budget SECONDS] [--runs 5] [--threads 1] [--python PATH] [--no-eager]
//   steps --profile STEP: where its time goes, kernel by kernel
#include "Steps.h"
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
using bench::Case, bench::StepInfo;
using Json = nlohmann::json;

/// All of them, in the order of STEPS.md.
const std::vector<StepInfo> &steps() {
  static const std::vector<StepInfo> all = [] {
    std::vector<StepInfo> list = bench::trainSteps(), gradients = bench::gradientSteps();
    list.insert(list.end(), gradients.begin(), gradients.end());
    std::vector<StepInfo> ranked;
    for (char rank = 'a'; rank <= 'z'; ++rank)
      for (const StepInfo &step : list)
        if (rank == (step.name.starts_with("call") ? 'g' : step.name[0]))
          ranked.push_back(step);
    return ranked;
  }();
  return all;
}

// ---- Checks ---------------------------------------------------------------------------------------------------------

std::vector<double> figures(const StepInfo &step, bool compiled) {
  Case c = step.make(step.lr);
  std::vector<double> got;
  if (step.name == "k" || step.lr) {
    for (int i = 0; i < (step.name == "k" ? 1 : 10); ++i)
      got.push_back(c.call(compiled)[0].item<double>());
    return got;
  }
  for (const Tensor &gradient : c.call(compiled)) {
    double sum = 0, absolute = 0;
    for (double value : cast(gradient, f64).to_vector<double>())
      sum += value, absolute += std::fabs(value);
    got.insert(got.end(), {sum, absolute});
  }
  return got;
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
  double start = bench::seconds();
  c.compiled();
  double first = bench::seconds() - start;
  for (int i = 0; i < 5; ++i)
    c.compiled();
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  Json row = {
      {"first_ms", first * 1e3}, {"peak_mb", static_cast<double>(usage.ru_maxrss) / 1024}, {"stages", Json::array()}};
  for (const StageTime &stage : c.timings())
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
    } else if (word == "--profile") {
      std::string name = value();
      set_num_threads(threads);
      for (const StepInfo &step : steps())
        if (step.name == name) {
          std::cout << step.make(step.lr ? bench::kTimingRate : 0).profile().to_string();
          return 0;
        }
      return 2;
    } else if (std::any_of(steps().begin(), steps().end(), [&](const StepInfo &step) { return step.name == word; }))
      chosen.push_back(word);
    else {
      std::cerr << "usage: steps [STEP...] [--budget SECONDS] [--runs N] [--threads N] [--python PATH] [--no-eager]\n"
                   "       steps --profile STEP\nsteps:";
      for (const StepInfo &step : steps())
        std::cerr << " " << step.name;
      std::cerr << "\n";
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
        std::vector<double> times, limits, ratios;
        for (int run = 0; run < runs; ++run) {
          std::optional<Json> limit =
              byHand ? ask(fmt::format("OMP_NUM_THREADS=1 {} {} --budget {}", hand.string(), step.name, budget))
                     : std::nullopt;
          times.push_back(bench::measure(timed.compiled, budget).median);
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
          row.eager = bench::measure(timed.eager, budget).median;
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
      fmt::print("{}, {} thread{}, median of {} runs of {} s, f32 (h, i: f64)\n\n", line.substr(line.find(':') + 2),
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
