// What does compiling cost, and how does it grow? Each case compiles a fresh function in a process of its own, which
// has compiled another one before (except where the first result of a process is asked for); a process that takes too
// long is ended. Figures are medians of up to three processes, where one is quick.
//   compile [CASE...] [--max-ops N] [--limit SECONDS] [--threads N]
// One thread compiles and runs, unless --threads asks for more.
#include "Problem.h"
#include "Skeleton.h"
#include "Timing.h"

#include <wengert/wengert.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <poll.h>
#include <random>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace wg;
using Json = nlohmann::json;

double now() { return bench::seconds(); }

/// What a case measured, by name: seconds, counts, bytes.
using Figures = std::vector<std::pair<std::string, double>>;

// ---- Reading a compiled function ------------------------------------------------------------------------------------

double secondsOf(const ConcreteFunction &concrete, const std::string &stage) {
  double seconds = 0;
  for (const StageTime &time : concrete.timings())
    if (time.stage == stage)
      seconds += time.seconds;
  return seconds;
}
double codeBytes(const ConcreteFunction &concrete) {
  double bytes = 0;
  for (const StageTime &time : concrete.timings())
    if (time.stage == "assembly")
      bytes += static_cast<double>(time.ops);
  return bytes;
}
/// The stages that take most.
void addStages(const ConcreteFunction &concrete, Figures &figures) {
  for (const char *stage : {"trace", "simplified", "fused", "lowered", "llvm", "assembly"})
    figures.emplace_back(std::string("of it ") + stage, secondsOf(concrete, stage));
}
/// Kernels that run, and functions that were compiled for them.
void countKernels(const ConcreteFunction &concrete, Figures &figures) {
  std::vector<KernelInfo> kernels = concrete.kernels();
  std::set<std::string> names;
  for (const KernelInfo &kernel : kernels)
    names.insert(kernel.name);
  figures.emplace_back("kernels", kernels.size());
  figures.emplace_back("distinct kernels", names.size());
}

/// Seconds of one call in steady state.
template <class F> double callSeconds(F &&call) { return bench::measure(call, 0.5).median; }

// ---- The cases ------------------------------------------------------------------------------------------------------

/// tanh(h W + b), `n` times.
Figures layers(int64_t n, bool gradient) {
  Tensor x = random_normal(random::key(1), {32, 64});
  std::vector<Variable> parameters;
  for (int64_t i = 0; i < n; ++i) {
    parameters.emplace_back(random_normal(random::key(2 + i), {64, 64}, 0, 0.1));
    parameters.emplace_back(zeros({64}));
  }
  auto output = [=](const Tensor &x) {
    Tensor h = x;
    for (size_t i = 0; i < parameters.size(); i += 2)
      h = tanh(matmul(h, parameters[i]) + parameters[i + 1]);
    return h;
  };
  auto forward = wg::function("forward", output);
  auto both = wg::function("gradient", [=](const Tensor &x) {
    GradientTape tape;
    Tensor loss = mean(square(output(x)));
    return tape.gradient(loss, parameters);
  });
  double start = now();
  ConcreteFunction concrete = gradient ? both.trace(x) : forward.trace(x);
  Figures figures = {{"seconds", now() - start}};
  countKernels(concrete, figures);
  return figures;
}

Figures jacobianOf(Tensor (*function)(const Tensor &)) {
  Tensor x = bench::numbers({28});
  function(x); // makes its constants, outside of any trace
  auto batched = wg::function("jacobian", jacobian(function, {.mode = DerivativeMode::forward}));
  double start = now();
  ConcreteFunction concrete = batched.trace(x);
  Figures figures = {{"seconds", now() - start}};
  countKernels(concrete, figures);
  return figures;
}

/// A train step of an LSTM (gates i, f, g, o = [x, h] W + b), unrolled; one loss at the end; Adam.
Figures lstm(int64_t steps) {
  constexpr int64_t kBatch = 32, kInput = 64, kHidden = 128, kClasses = 10;
  Tensor x = random_normal(random::key(1), {steps, kBatch, kInput}), labels = remainder(arange(0, kBatch), kClasses);
  Variable w(random_normal(random::key(2), {kInput + kHidden, 4 * kHidden}, 0, 0.1)), b(zeros({4 * kHidden}));
  nn::Dense head(kHidden, kClasses);
  optim::Adam adam(0.001);
  auto step = wg::function("step", [&](const Tensor &x, const Tensor &labels) {
    GradientTape tape;
    Tensor h = zeros({kBatch, kHidden}), c = h;
    for (int64_t t = 0; t < steps; ++t) {
      std::vector<Tensor> gates = split(matmul(concat({x[t], h}, 1), w) + b, 4, 1);
      c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2]);
      h = sigmoid(gates[3]) * tanh(c);
    }
    Tensor loss = nn::cross_entropy(head(h), labels);
    std::vector<Variable> parameters = {w, b};
    for (const Variable &each : head.trainable_variables())
      parameters.push_back(each);
    adam.apply(tape.gradient(loss, parameters), parameters);
    return loss;
  });
  double start = now();
  step(x, labels);
  Figures figures = {{"first call", now() - start}};
  ConcreteFunction concrete = step.trace(x, labels);
  addStages(concrete, figures);
  countKernels(concrete, figures);
  figures.emplace_back("a call", callSeconds([&] { step(x, labels); }));
  return figures;
}

Figures stagesOf(const std::function<Tensor(const Tensor &)> &program, const Tensor &x) {
  auto f = wg::function("program", program);
  double start = now();
  ConcreteFunction concrete = f.trace(x);
  Figures figures = {{"seconds", now() - start}};
  addStages(concrete, figures);
  countKernels(concrete, figures);
  return figures;
}

/// `ops` ops in a straight line, from a fixed seed: six tenths of the statements elementwise, three tenths reductions
/// with their way back, one tenth products. Each reads the value before it, and most an older one too.
Figures randomProgram(int64_t ops) {
  auto program = [ops](const Tensor &x) {
    std::mt19937 random(20240607);
    auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
    std::vector<Tensor> values = {x};
    for (int64_t count = 0; count < ops;) {
      const Tensor &a = values.back(), &b = values[values.size() - 1 - below(std::min<size_t>(values.size(), 64))];
      Tensor y;
      switch (size_t kind = below(10)) {
      case 0: y = tanh(a), count += 1; break;
      case 1: y = a + b, count += 1; break;
      case 2: y = a * sigmoid(b), count += 2; break;
      case 3: y = maximum(a, b), count += 1; break;
      case 4: y = a * 0.5f - b, count += 2; break;
      case 5: y = sin(a) * 0.9f, count += 2; break;
      case 6:
      case 7: y = a - mean(a, static_cast<int64_t>(kind - 6), true), count += 2; break;
      case 8: y = b + reduce_max(a, 1, true), count += 2; break;
      default: y = tanh(matmul(a, b) * 0.05f), count += 3;
      }
      values.push_back(y);
    }
    return values.back();
  };
  return stagesOf(program, random_normal(random::key(1), {16, 16}));
}

/// Sums along one axis, then the other, in turn: no two of them can be one loop.
Figures reduceChain(int64_t ops) {
  auto program = [ops](const Tensor &x) {
    Tensor y = x;
    for (int64_t i = 0; i < ops / 3; ++i)
      y = tanh(y - mean(y, i % 2, true));
    return y;
  };
  return stagesOf(program, random_normal(random::key(1), {16, 16}));
}

/// One step of SGD on `count` variables.
Figures manyVariables(int64_t count) {
  std::vector<Variable> variables;
  for (int64_t i = 0; i < count; ++i)
    variables.emplace_back(full({32}, static_cast<float>(i % 7)));
  optim::SGD sgd(0.01);
  auto step = wg::function("step", [&](const Tensor &target) {
    GradientTape tape;
    Tensor loss(0.0f);
    for (const Variable &each : variables)
      loss = loss + reduce_sum(square(each - target));
    sgd.apply(tape.gradient(loss, variables), variables);
    return loss;
  });
  Tensor target = ones({32});
  double start = now();
  step(target);
  Figures figures = {{"first call", now() - start}};
  ConcreteFunction concrete = step.trace(target);
  addStages(concrete, figures);
  countKernels(concrete, figures);
  figures.emplace_back("a call", callSeconds([&] { step(target); }));
  return figures;
}

/// A product whose elements pass through `ops` elementwise ops.
Figures epilogue(int64_t ops) {
  Tensor a = random_normal(random::key(1), {64, 256}), b = random_normal(random::key(2), {256, 128}, 0, 0.05);
  auto f = wg::function("product", [ops](const Tensor &a, const Tensor &b) {
    Tensor y = matmul(a, b);
    for (int64_t i = 0; i < ops; i += 4) {
      Tensor t = tanh(y * 0.5f + 0.01f * static_cast<float>(i));
      y = t - y;
    }
    return y;
  });
  double start = now();
  ConcreteFunction concrete = f.trace(a, b);
  Figures figures = {{"seconds", now() - start}, {"bytes of code", codeBytes(concrete)}};
  countKernels(concrete, figures);
  figures.emplace_back("a call", callSeconds([&] { f(a, b); }));
  return figures;
}

constexpr int64_t kRows = 65536, kColumns = 16;

/// The time to trace `f` for these arguments, and that of a call.
template <class F, class... Arguments> Figures tracedAndCalled(F &&f, const Arguments &...arguments) {
  double start = now();
  f.trace(arguments...);
  Figures figures = {{"seconds", now() - start}};
  figures.emplace_back("a call", callSeconds([&] { f(arguments...); }));
  return figures;
}

/// kRows / pieces rows in each.
std::vector<Tensor> piecesOf(int64_t pieces) {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < pieces; ++i)
    parts.push_back(full({kRows / pieces, kColumns}, static_cast<float>(i)));
  return parts;
}

Figures concatOf(int64_t pieces) {
  return tracedAndCalled(wg::function("concat", [](const std::vector<Tensor> &parts) { return concat(parts); }),
                         piecesOf(pieces));
}

Figures stackOf(int64_t pieces) {
  return tracedAndCalled(wg::function("stack", [](const std::vector<Tensor> &parts) { return stack(parts); }),
                         piecesOf(pieces));
}

/// A call makes a tensor for each piece, and its caller drops it.
Figures splitInto(int64_t pieces) {
  return tracedAndCalled(wg::function("split", [pieces](const Tensor &x) { return split(x, pieces); }),
                         random_normal(random::key(1), {kRows, kColumns}));
}

/// Each piece has its own factor, so that its gradient is its own.
Figures splitGradient(int64_t pieces) {
  auto f = wg::function("split", [pieces](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    std::vector<Tensor> parts = split(x, pieces);
    Tensor loss(0.0f);
    for (size_t i = 0; i < parts.size(); ++i)
      loss = loss + reduce_sum(square(parts[i])) * static_cast<float>(i + 1);
    return tape.gradient(loss, x).value();
  });
  return tracedAndCalled(f, random_normal(random::key(1), {kRows, kColumns}));
}

// ---- The table ------------------------------------------------------------------------------------------------------

struct Case {
  std::string group, title;
  std::function<Figures()> run; ///< none: the first result of a step, which `steps` measures
  std::map<std::string, double> goals = {};
  int64_t ops = 0; ///< about as many as its program has
};

const std::vector<Case> &cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> list;
    for (int64_t n : {10, 100, 1000}) {
      list.push_back({"layers",
                      fmt::format("{} layers tanh(h W + b), forward", n),
                      [n] { return layers(n, false); },
                      {{"seconds", 1}, {"distinct kernels", 5}},
                      3 * n});
      list.push_back({"layers",
                      fmt::format("{} layers tanh(h W + b), gradient", n),
                      [n] { return layers(n, true); },
                      {{"seconds", 2.5}, {"distinct kernels", 5}},
                      10 * n});
    }
    list.push_back({"jacobian",
                    "Jacobian of 28 columns, a bone a vertex",
                    [] { return jacobianOf(bench::skeleton); },
                    {{"seconds", 1}}});
    list.push_back(
        {"jacobian", "Jacobian of 28 columns, all bones", [] { return jacobianOf(bench::skin); }, {{"seconds", 1}}});
    list.push_back({"lstm", "50 steps of an LSTM, Adam", [] { return lstm(50); }, {{"first call", 1.5}}, 2000});
    for (int64_t n : {1000, 10000, 100000}) {
      list.push_back({"random",
                      fmt::format("a random program of {} ops", n),
                      [n] { return randomProgram(n); },
                      {{"seconds", 20e-5 * static_cast<double>(n)}},
                      n});
      list.push_back({"random",
                      fmt::format("a chain of {} ops, sums by turns", n),
                      [n] { return reduceChain(n); },
                      {{"seconds", 20e-5 * static_cast<double>(n)}},
                      n});
    }
    list.push_back({"variables",
                    "4000 variables in one step of SGD",
                    [] { return manyVariables(4000); },
                    {{"first call", 5}, {"a call", 3e-3}},
                    4000});
    list.push_back({"first", "step b in a fresh process", nullptr, {{"first call", 0.1}}});
    list.push_back({"epilogue", "a product with 260 elementwise ops", [] { return epilogue(260); }, {}, 260});
    for (int64_t n : {2, 32, 512})
      list.push_back(
          {"concat", fmt::format("concat of {} pieces to [65536, 16]", n), [n] { return concatOf(n); }, {}, n});
    for (int64_t n : {2, 32, 512})
      list.push_back(
          {"concat", fmt::format("stack of {} pieces of [{}, 16]", n, kRows / n), [n] { return stackOf(n); }, {}, n});
    for (int64_t n : {2, 32, 512})
      list.push_back(
          {"concat", fmt::format("split of [65536, 16] into {} results", n), [n] { return splitInto(n); }, {}, n});
    for (int64_t n : {2, 32, 512})
      list.push_back({"concat",
                      fmt::format("gradient of split of [65536, 16] into {}", n),
                      [n] { return splitGradient(n); },
                      {},
                      n});
    return list;
  }();
  return all;
}

/// In a process of its own: prints the figures of a case.
int runCase(size_t index, int threads) {
  set_num_threads(threads);
  wg::function("warm", [](const Tensor &x) { return reduce_sum(sin(x) + 1.0f); })(ones({3}));
  try {
    std::cout << Json(cases()[index].run()).dump() << std::endl;
    return 0;
  } catch (const std::exception &error) {
    std::cout << Json(error.what()).dump() << std::endl;
    return 1;
  }
}

/// What a program prints, by its last line; nothing if it took longer than `limit` seconds and was ended.
std::optional<Json> ask(const std::vector<std::string> &command, double limit) {
  int ends[2];
  if (pipe(ends) != 0)
    return Json("no pipe");
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]), close(ends[1]);
    std::vector<char *> words;
    for (const std::string &word : command)
      words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  bool late = false;
  for (double end = now() + limit;;) {
    pollfd ready{ends[0], POLLIN, 0};
    double left = end - now();
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left * 1e3) + 1) == 0) {
      late = true;
      kill(child, SIGKILL);
      break;
    }
    char buffer[4096];
    ssize_t got = read(ends[0], buffer, sizeof buffer);
    if (got <= 0)
      break;
    text.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (late)
    return {};
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  Json answer = Json::parse(text.substr(text.rfind('\n') + 1), nullptr, false);
  if (!answer.is_discarded())
    return answer;
  return Json(WIFSIGNALED(status) ? fmt::format("ended by signal {}", WTERMSIG(status)) : "printed nothing");
}

std::string show(const std::string &name, double value) {
  bool count = name.find("kernels") != std::string::npos || name.find("bytes") != std::string::npos;
  return name == "ratio" ? fmt::format("{:.2f}", value) : count ? fmt::format("{:.0f}", value) : bench::showTime(value);
}

} // namespace

int main(int argc, char **argv) {
  std::set<std::string> chosen, groups;
  for (const Case &each : cases())
    groups.insert(each.group);
  int64_t maxOps = INT64_MAX;
  double limit = 60;
  int threads = 1;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (word == "--max-ops")
      maxOps = std::atoll(value().c_str());
    else if (word == "--limit")
      limit = std::atof(value().c_str());
    else if (word == "--threads")
      threads = std::max(1, std::atoi(value().c_str()));
    else if (word == "--case")
      return runCase(std::stoul(value()), threads);
    else if (groups.contains(word))
      chosen.insert(word);
    else {
      std::cerr << "usage: compile [layers|jacobian|lstm|random|variables|first|epilogue|concat ...] [--max-ops N] "
                   "[--limit SECONDS] [--threads N]\n";
      return 2;
    }
  }
  std::filesystem::path self = std::filesystem::canonical("/proc/self/exe");
  fmt::print("| {:<42} | {:<16} | {:>10} | {:>7} |        |\n|---|---|--:|--:|---|\n", "case", "figure", "measured",
             "goal");
  bool failed = false;
  double pair = 0; // a call with two pieces
  for (size_t index = 0; index < cases().size(); ++index) {
    const Case &each = cases()[index];
    if ((!chosen.empty() && !chosen.contains(each.group)) || each.ops > maxOps)
      continue;
    std::vector<std::string> command = {self.string(), "--threads", std::to_string(threads), "--case",
                                        std::to_string(index)};
    if (!each.run)
      command = {(self.parent_path() / "steps").string(), "--first", "b"};
    // The order of the first process; medians of all.
    std::vector<std::string> names;
    std::map<std::string, std::vector<double>> values;
    std::string failure;
    bool late = false;
    double spent = 0;
    for (int run = 0; run < (each.run ? 3 : 7) && (run == 0 || spent < 3); ++run) {
      double start = now();
      std::optional<Json> answer = ask(command, limit);
      spent += now() - start;
      late = !answer;
      if (!answer)
        break;
      if (answer->is_string()) {
        failure = answer->get<std::string>();
        break;
      }
      Figures figures =
          each.run ? answer->get<Figures>() : Figures{{"first call", (*answer)["first_ms"].get<double>() * 1e-3}};
      for (const auto &[name, value] : figures) {
        if (!values.contains(name))
          names.push_back(name);
        values[name].push_back(value);
      }
    }
    auto row = [&](const std::string &name, const std::string &measured, std::optional<double> value) {
      auto goal = each.goals.find(name);
      bool has = goal != each.goals.end();
      fmt::print("| {:<42} | {:<16} | {:>10} | {:>7} | {:<6} |\n", each.title, name, measured,
                 has ? show(name, goal->second) : "",
                 !has                              ? ""
                 : value && *value <= goal->second ? "met"
                                                   : "missed");
    };
    if (!failure.empty()) {
      failed = true;
      std::replace(failure.begin(), failure.end(), '\n', ' ');
      fmt::print("| {} | FAILED: {} |\n", each.title, failure);
    } else if (late) {
      row(each.goals.contains("first call") ? "first call" : "seconds", fmt::format("> {:g} s", limit), {});
    } else {
      for (const std::string &name : names)
        row(name, show(name, bench::median(values[name])), bench::median(values[name]));
      if (each.group == "concat") {
        double call = bench::median(values["a call"]);
        if (each.ops == 2)
          pair = call;
        else if (pair > 0)
          fmt::print("| {:<42} | {:<16} | {:>10} | {:>7} | {:<6} |\n", each.title, "beside 2 pieces",
                     show("ratio", call / pair), each.ops == 512 ? "1.3" : "",
                     each.ops != 512      ? ""
                     : call / pair <= 1.3 ? "met"
                                          : "missed");
      }
    }
    std::fflush(stdout);
  }
  return failed ? 1 : 0;
}
