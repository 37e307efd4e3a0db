#include "tests/agreement/RandomRun.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <optional>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace wg::tests {

namespace {

constexpr uint64_t kBatch = 250;  ///< programs of one process: MLIR's context frees nothing
constexpr int kMaxReported = 10;  ///< failures after which a run ends
constexpr int kMaxAttempts = 150; ///< processes that reduce one failing program

/// What a child does: set by its parent, or by the person who repeats one failure.
constexpr const char *kProgress = "WENGERT_RANDOM_PROGRESS", *kOutputs = "WENGERT_RANDOM_OUTPUTS",
                     *kCuts = "WENGERT_RANDOM_CUTS", *kSeed = "WENGERT_RANDOM_SEED",
                     *kPrograms = "WENGERT_RANDOM_PROGRAMS";

std::map<std::string, uint64_t> tallies;

uint64_t numberFrom(const char *name, uint64_t usual) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

std::string joined(const auto &numbers) {
  std::string text;
  for (int number : numbers)
    text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}
std::vector<int> numbersOf(const char *text) {
  std::vector<int> numbers;
  std::stringstream stream(text ? text : "");
  for (std::string item; std::getline(stream, item, ',');)
    numbers.push_back(std::stoi(item));
  return numbers;
}

std::string contentOf(const std::string &path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string nameOfTest() {
  const ::testing::TestInfo *info = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::string(info->test_suite_name()) + "." + info->name();
}

/// The outputs and inputs of a part of a program, by the numbers of the whole one.
struct Part {
  std::vector<int> outputs;
  std::set<int> cuts;
};

class Parent {
public:
  Parent() : base(::testing::TempDir() + "wengert-random-" + std::to_string(getpid()) + "-" + nameOfTest()) {}
  ~Parent() {
    unlink(progressFile().c_str());
    unlink(outputFile().c_str());
  }

  std::string progressFile() const { return base + ".progress"; }
  std::string outputFile() const { return base + ".out"; }

  /// Exit status of a child that checks `count` programs from `seed` on: 0, the number of a
  /// failing exit, or minus a signal's.
  int run(uint64_t seed, uint64_t count, const Part *part = nullptr) {
    std::vector<std::string> environment{std::string(kProgress) + "=" + progressFile(),
                                         std::string(kSeed) + "=" + std::to_string(seed),
                                         std::string(kPrograms) + "=" + std::to_string(count)};
    if (part) {
      environment.push_back(std::string(kOutputs) + "=" + joined(part->outputs));
      environment.push_back(std::string(kCuts) + "=" + joined(part->cuts));
    }
    for (char **entry = environ; *entry; ++entry)
      if (std::strncmp(*entry, "WENGERT_RANDOM_", 15) != 0 && std::strncmp(*entry, "GTEST_", 6) != 0 &&
          std::strncmp(*entry, "XML_OUTPUT_FILE=", 16) != 0)
        environment.push_back(*entry);
    std::vector<char *> env;
    for (std::string &entry : environment)
      env.push_back(entry.data());
    env.push_back(nullptr);
    std::string program = "/proc/self/exe", filter = "--gtest_filter=" + nameOfTest(), brief = "--gtest_brief=1";
    char *arguments[] = {program.data(), filter.data(), brief.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, outputFile().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child = 0;
    int error = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, env.data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      ADD_FAILURE() << "no child process: " << std::strerror(error);
      return 1;
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
      ;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  /// The seed that a child checked last, and what it has tallied.
  uint64_t lastSeed() {
    std::ifstream file(progressFile());
    uint64_t seed = 0, count = 0;
    file >> seed;
    for (std::string what; file >> count && std::getline(file >> std::ws, what);)
      found[what] += count;
    return seed;
  }

  /// A smaller part of `program` that ends as the whole one does: one output if that is enough, from
  /// operands that are given, not computed.
  Part reduce(const RandomProgram &program, uint64_t seed, int status) {
    Part part{program.outputs, {}};
    int inputs = static_cast<int>(program.inputs.size()), attempts = 0;
    auto stillFails = [&](const Part &smaller) {
      if (++attempts > kMaxAttempts)
        return false;
      int result = run(seed, 1, &smaller);
      return status < 0 ? result < 0 : result > 0;
    };
    for (int output : program.outputs)
      if (Part one{{output}, {}}; program.outputs.size() > 1 && stillFails(one)) {
        part = one;
        break;
      }
    for (size_t i = part.outputs.size(); i-- > 0 && part.outputs.size() > 1;) {
      Part fewer = part;
      fewer.outputs.erase(fewer.outputs.begin() + static_cast<std::ptrdiff_t>(i));
      if (stillFails(fewer))
        part = fewer;
    }
    for (bool changed = true; changed;) {
      changed = false;
      // Without a last step: what it read is the output.
      for (size_t i = 0; i < part.outputs.size(); ++i) {
        bool shorter = true;
        while (shorter) {
          shorter = false;
          for (int operand : program.steps[static_cast<size_t>(part.outputs[i] - inputs)].operands) {
            Part before = part;
            before.outputs[i] = operand;
            if (operand >= inputs && !part.cuts.count(operand) && stillFails(before)) {
              part = before;
              shorter = changed = true;
              break;
            }
          }
        }
      }
      for (int value = static_cast<int>(program.values.size()) - 1; value >= inputs; --value) {
        Part given = part;
        if (!isComputed(program, part, value) || std::count(part.outputs.begin(), part.outputs.end(), value))
          continue;
        given.cuts.insert(value);
        if (stillFails(given)) {
          part = given;
          changed = true;
        }
      }
    }
    return part;
  }

  void report(const std::string &test, uint64_t seed, int status, const RandomProgram &program) {
    std::string whole = contentOf(outputFile());
    Part part = reduce(program, seed, status);
    report(test, seed, status, whole, part, toString(partOf(program, part.outputs, part.cuts)));
  }
  void report(const std::string &test, uint64_t seed, int status, const SeedChecks &checks) {
    std::string whole = contentOf(outputFile());
    Part part{{0}, {}};
    int attempts = 0;
    for (int step = 0; step < checks.stepsOf(seed) && attempts < kMaxAttempts; ++step) {
      Part smaller = part;
      smaller.cuts.insert(step);
      if (checks.textOf(seed, smaller.cuts) == checks.textOf(seed, part.cuts))
        continue; // it is in one that is cut
      ++attempts;
      if (int result = run(seed, 1, &smaller); status < 0 ? result < 0 : result > 0)
        part = smaller;
    }
    report(test, seed, status, whole, part, checks.textOf(seed, part.cuts));
  }

  std::map<std::string, uint64_t> found;

private:
  void report(const std::string &test, uint64_t seed, int status, const std::string &whole, const Part &part,
              const std::string &text) {
    run(seed, 1, &part);
    std::string output = contentOf(outputFile()),
                how = status < 0 ? std::string("signal ") + strsignal(-status) : "failure";
    auto shortened = [](std::string text) { return text.size() > 8000 ? text.substr(0, 8000) + "\n...\n" : text; };
    ADD_FAILURE() << "seed " << seed << ": " << how << "\n"
                  << shortened(whole) << "reduced to\n"
                  << text << "which alone gives\n"
                  << shortened(output) << "repeat: " << kSeed << "=" << seed << " " << kPrograms << "=1 " << kOutputs
                  << "=" << joined(part.outputs) << " " << kCuts << "=" << joined(part.cuts)
                  << " PROGRAM --gtest_filter=" << test;
  }
  /// Whether the part computes `value` on the way to its outputs.
  static bool isComputed(const RandomProgram &program, const Part &part, int value) {
    std::set<int> needed(part.outputs.begin(), part.outputs.end());
    for (int v = static_cast<int>(program.values.size()) - 1; v > value; --v)
      if (needed.count(v) && !part.cuts.count(v) && v >= static_cast<int>(program.inputs.size()))
        for (int operand : program.steps[static_cast<size_t>(v) - program.inputs.size()].operands)
          needed.insert(operand);
    return needed.count(value) && !part.cuts.count(value);
  }

  std::string base;
};

} // namespace

void tally(const std::string &what) { ++tallies[what]; }

bool isChild() { return std::getenv(kProgress) != nullptr; }

/// In a child `check` each seed; else start children, and report what failed in one.
static std::map<std::string, uint64_t> forEach(uint64_t usual, const std::function<void(uint64_t seed)> &check,
                                               const std::function<void(Parent &, uint64_t seed, int status)> &report) {
  uint64_t first = numberFrom(kSeed, 1), count = numberFrom(kPrograms, usual);
  if (isChild() || std::getenv(kOutputs)) {
    auto note = [](uint64_t seed) {
      std::ofstream file(std::getenv(kProgress) ? std::getenv(kProgress) : "/dev/null");
      file << seed << "\n";
      for (auto &[what, times] : tallies)
        file << times << " " << what << "\n";
    };
    for (uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
      note(seed);
      SCOPED_TRACE("seed " + std::to_string(seed));
      check(seed);
      note(seed);
    }
    return tallies;
  }
  Parent parent;
  int reported = 0;
  uint64_t next = first;
  while (next < first + count && reported < kMaxReported) {
    uint64_t batch = std::min(kBatch, first + count - next);
    int status = parent.run(next, batch);
    uint64_t last = parent.lastSeed();
    if (status != 0) {
      if (last < next || last >= next + batch) {
        ADD_FAILURE() << "the process that checks seeds from " << next << " on ended with " << status
                      << " before the first\n"
                      << contentOf(parent.outputFile());
        break;
      }
      report(parent, last, status);
      ++reported;
    }
    next = last + 1;
  }
  if (std::getenv(kPrograms)) {
    std::cerr << nameOfTest() << ": " << next - first << " programs from seed " << first << " on, " << reported
              << " failed";
    for (auto &[what, times] : parent.found)
      std::cerr << ", " << times << " " << what;
    std::cerr << std::endl;
  }
  return parent.found;
}

std::map<std::string, uint64_t> forPrograms(uint64_t usual,
                                            const std::function<RandomProgramOptions(uint64_t seed)> &optionsOf,
                                            const std::function<void(const RandomProgram &)> &check) {
  return forEach(
      usual,
      [&](uint64_t seed) {
        RandomProgram program = randomProgram(seed, optionsOf(seed));
        if (std::getenv(kOutputs)) {
          std::vector<int> cuts = numbersOf(std::getenv(kCuts));
          program = partOf(program, numbersOf(std::getenv(kOutputs)), {cuts.begin(), cuts.end()});
        }
        check(program);
      },
      [&](Parent &parent, uint64_t seed, int status) {
        parent.report(nameOfTest(), seed, status, randomProgram(seed, optionsOf(seed)));
      });
}

std::map<std::string, uint64_t> forSeeds(uint64_t usual, const SeedChecks &checks) {
  return forEach(
      usual,
      [&](uint64_t seed) {
        std::vector<int> cuts = numbersOf(std::getenv(kCuts));
        checks.check(seed, {cuts.begin(), cuts.end()});
      },
      [&](Parent &parent, uint64_t seed, int status) { parent.report(nameOfTest(), seed, status, checks); });
}

} // namespace wg::tests
