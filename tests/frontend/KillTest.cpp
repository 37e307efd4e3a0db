// A training that writes checkpoints is killed at any moment, again and again: each time a process started anew finds
// the old or the new checkpoint whole, and goes on with the losses that nobody's death would have changed.
// WENGERT_KILLS=2000 kills more often than the 200 times of every day.
#include "tests/frontend/Interrupted.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace wg;
using wg::tests::Interrupted;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kKeep = 2;
struct Folder {
  fs::path path = fs::temp_directory_path() / ("wengert_kill_" + std::to_string(::getpid()));
  Folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string run() const { return path / "run"; }
  std::string log() const { return path / "log"; }
};

/// The names in a directory that are checkpoints, and the others.
std::array<int64_t, 2> countFiles(const std::string &directory) {
  std::array<int64_t, 2> counts{};
  if (fs::exists(directory))
    for (const fs::directory_entry &entry : fs::directory_iterator(directory))
      ++counts[entry.path().filename().string().starts_with("checkpoint-") ? 0 : 1];
  return counts;
}

/// What a child did: the step that it went on from, and the losses from there on. A last line that the
/// kill cut off does not count.
struct Log {
  int64_t from = -1;
  std::vector<float> losses;
};
Log readLog(const std::string &path) {
  std::ifstream in(path);
  std::string text(std::istreambuf_iterator<char>(in), {});
  text.resize(text.find_last_of('\n') + 1);
  Log log;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("from "))
      log.from = std::stoll(line.substr(5));
    else
      log.losses.push_back(std::strtof(line.c_str(), nullptr));
  return log;
}

} // namespace

/// The child, which is told so: one line for each step, written when its checkpoint was begun.
TEST(KillChild, TrainsWhereItIsToldTo) {
  if (!std::getenv("WENGERT_CHILD"))
    return;
  const std::string folder = std::getenv("WENGERT_CHILD");
  int log = ::open((folder + "/log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Interrupted training;
  CheckpointManager checkpoints(
      folder + "/run", training.items(),
      {.keep = kKeep, .every_steps = 1, .asynchronous = std::getenv("WENGERT_SYNCHRONOUS") == nullptr});
  int64_t from = checkpoints.restore().value_or(0);
  ::dprintf(log, "from %lld\n", static_cast<long long>(from));
  ASSERT_LE(countFiles(folder + "/run")[0], kKeep + 1);
  training.train(from, Interrupted::kSteps, [&](int64_t, float loss) {
    checkpoints.step();
    ::dprintf(log, "%a\n", static_cast<double>(loss));
    return false;
  });
  checkpoints.wait();
  if (from < Interrupted::kSteps)
    EXPECT_EQ(countFiles(folder + "/run"), (std::array<int64_t, 2>{kKeep, 0})) << "nothing is left behind";
}

TEST(KillTest, WhateverIsKilledGoesOnFromAWholeCheckpoint) {
  const char *wanted = std::getenv("WENGERT_KILLS");
  const int kills = wanted ? std::atoi(wanted) : 200;
  const std::vector<float> expected = Interrupted::losses();
  const std::string program = fs::read_symlink("/proc/self/exe");
  Folder folder;
  std::mt19937 random(7);
  int64_t longest = -1; // microseconds that a child lives if nobody kills it; the first tells
  int64_t reached = 0;  // the step from which the next one goes on, or a later one
  bool asynchronous = true;
  int finished = 0, resumed = 0;
  for (int killed = 0; killed < kills;) {
    auto begun = std::chrono::steady_clock::now();
    pid_t child = ::fork();
    if (child == 0) {
      ::setenv("WENGERT_CHILD", folder.path.c_str(), 1);
      if (!asynchronous)
        ::setenv("WENGERT_SYNCHRONOUS", "1", 1);
      int out = ::open((folder.path / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(out, 1), ::dup2(out, 2);
      ::execl(program.c_str(), program.c_str(), "--gtest_filter=KillChild.*", static_cast<char *>(nullptr));
      ::_exit(127);
    }
    ASSERT_GT(child, 0);
    if (longest >= 0) {
      std::this_thread::sleep_for(
          std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, longest)(random)));
      ::kill(child, SIGKILL);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    bool whole = WIFEXITED(status);
    if (whole) {
      std::ifstream out(folder.path / "out");
      ASSERT_EQ(WEXITSTATUS(status), 0) << std::string(std::istreambuf_iterator<char>(out), {});
    }
    killed += !whole;
    Log log = readLog(folder.log());
    if (whole && log.from == 0)
      longest = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun).count();
    ASSERT_LE(countFiles(folder.run())[0], kKeep + 1);
    fs::remove(folder.log());
    if (log.from < 0)
      continue; // it had not come far
    resumed += log.from > 0;
    // Synchronously the checkpoint of every line is there; asynchronously that before it.
    ASSERT_GE(log.from, reached) << "a checkpoint was lost";
    ASSERT_LE(log.from + static_cast<int64_t>(log.losses.size()), Interrupted::kSteps);
    ASSERT_EQ(log.losses, std::vector<float>(expected.begin() + log.from,
                                             expected.begin() + log.from + static_cast<int64_t>(log.losses.size())))
        << "from " << log.from;
    reached = std::max<int64_t>(log.from, log.from + static_cast<int64_t>(log.losses.size()) - asynchronous);
    if (whole) {
      ASSERT_EQ(log.from + static_cast<int64_t>(log.losses.size()), Interrupted::kSteps);
      fs::remove_all(folder.run());
      reached = 0;
      asynchronous = !asynchronous;
      ++finished;
    }
  }
  RecordProperty("finished", finished), RecordProperty("resumed", resumed);
  EXPECT_GT(resumed, kills / 10);
}
