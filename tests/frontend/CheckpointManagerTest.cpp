// A training that is interrupted and goes on from its last checkpoint, in objects made anew and in processes started
// anew, has the losses that it would have had; and which checkpoints there are, when, and what becomes of damaged ones.
#include "tests/frontend/Interrupted.h"
#include "tests/frontend/Support.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace wg;
using wg::tests::Interrupted;
using wg::tests::messageOf;
using wg::tests::says;
using Steps = std::vector<int64_t>;
namespace fs = std::filesystem;

namespace {

/// A directory of its own, which is not there yet.
struct CheckpointManagerTest : testing::Test {
  fs::path folder = fs::temp_directory_path() / ("wengert_checkpoints_" + std::to_string(::getpid()));
  std::string directory = (folder / "run").string();
  Variable w{Tensor{1.0, 2.0}, "w"};
  SaveItems items{{"w", w}};

  CheckpointManagerTest() {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  ~CheckpointManagerTest() override { fs::remove_all(folder); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(directory))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  /// A step that can be told from others.
  void train() { w.assign_add(1.0); }
};

/// What is written to standard error meanwhile.
std::string errorsOf(const std::function<void()> &f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

} // namespace

TEST_F(CheckpointManagerTest, AnInterruptedTrainingGoesOnWithTheSameLosses) {
  for (bool compiled : {false, true}) {
    const std::vector<float> expected = Interrupted::losses(compiled);
    for (int64_t stop : {1, 4, 5, 7, 13, 20}) { // an epoch has five steps
      fs::remove_all(directory);
      std::vector<float> losses;
      auto run = [&](int64_t to) {
        Interrupted training(compiled);
        CheckpointManager checkpoints(directory, training.items(), {.every_steps = 2});
        int64_t from = checkpoints.restore().value_or(0);
        EXPECT_EQ(from, stop / 2 * 2 * (to > stop));
        losses.resize(static_cast<size_t>(from)); // what was done after the checkpoint is done again
        training.train(from, to, [&](int64_t step, float loss) {
          losses.push_back(loss);
          EXPECT_EQ(checkpoints.step(), step % 2 == 0);
          EXPECT_EQ(checkpoints.steps(), step);
          return false;
        });
      };
      run(stop);
      run(Interrupted::kSteps);
      EXPECT_EQ(losses, expected) << "interrupted after " << stop << (compiled ? ", compiled" : "");
    }
  }
}

/// Run by the next test, in a process of its own.
TEST(CheckpointManagerChild, TrainsWhereItIsToldTo) {
  if (!std::getenv("WENGERT_CHILD"))
    return;
  Interrupted training;
  CheckpointManager checkpoints(std::getenv("WENGERT_CHILD"), training.items(), {.every_steps = 1});
  int64_t from = checkpoints.restore().value_or(0);
  std::ofstream log(std::string(std::getenv("WENGERT_CHILD")) + ".log", std::ios::app);
  training.train(from, Interrupted::kSteps, [&](int64_t step, float loss) {
    log << std::hexfloat << loss << "\n";
    checkpoints.step();
    return step - from == 6;
  });
}

TEST_F(CheckpointManagerTest, AProcessStartedAnewGoesOnWithTheSameLosses) {
  ::setenv("WENGERT_CHILD", directory.c_str(), 1);
  for (int64_t done = 0; done < Interrupted::kSteps; done += 6)
    ASSERT_EQ(std::system((fs::read_symlink("/proc/self/exe").string() +
                           " --gtest_filter='CheckpointManagerChild.*' >" + directory + ".out")
                              .c_str()),
              0);
  ::unsetenv("WENGERT_CHILD");
  std::ifstream log(directory + ".log");
  std::vector<float> losses;
  for (std::string line; std::getline(log, line);)
    losses.push_back(std::strtof(line.c_str(), nullptr));
  EXPECT_EQ(losses, Interrupted::losses());
}

TEST_F(CheckpointManagerTest, TheNewestStayAndNothingElseIsTouched) {
  fs::create_directories(directory);
  for (const char *other : {"checkpoint-1.wg", "checkpoint-000000001.npy", "other-000000001.wg", "checkpoint-.wg",
                            "checkpoint-00000000x.wg", "checkpoint--00000001.wg", "notes.txt"})
    std::ofstream(directory + "/" + other) << "mine";
  fs::create_directories(directory + "/checkpoint-000000000.wg");
  const std::vector<std::string> before = files();
  {
    CheckpointManager checkpoints(directory, items, {.keep = 3, .every_steps = 2});
    EXPECT_EQ(checkpoints.restore(), std::nullopt);
    for (int i = 1; i <= 11; ++i)
      EXPECT_EQ(checkpoints.step(), i % 2 == 0);
    checkpoints.wait();
    EXPECT_EQ(checkpoints.steps_saved(), (Steps{6, 8, 10}));
    checkpoints.save();
  }
  std::vector<std::string> after = before;
  for (const char *name : {"checkpoint-000000008.wg", "checkpoint-000000010.wg", "checkpoint-000000011.wg"})
    after.push_back(name);
  std::sort(after.begin(), after.end());
  EXPECT_EQ(files(), after);
}

TEST_F(CheckpointManagerTest, KeepZeroKeepsAllAndTheNameIsTheUsers) {
  CheckpointManager checkpoints(directory, items,
                                {.keep = 0, .every_steps = 1, .asynchronous = false, .prefix = "mnist"});
  for (int i = 0; i < 7; ++i)
    checkpoints.step();
  EXPECT_EQ(checkpoints.steps_saved(), (Steps{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(checkpoints.path(7), directory + "/mnist-000000007.wg");
  EXPECT_TRUE(fs::exists(checkpoints.path(7)));
  EXPECT_EQ(checkpoints.path(12'345'678'901), directory + "/mnist-12345678901.wg");
}

TEST_F(CheckpointManagerTest, ByTimeOneIsDueWhenTheIntervalIsOver) {
  CheckpointManager never(folder / "never", items, {.every_steps = 4, .every_seconds = 1e9}),
      always(folder / "always", items, {.every_seconds = 1e-9, .asynchronous = false}),
      neither(folder / "neither", items);
  for (int i = 1; i <= 4; ++i) {
    EXPECT_EQ(never.step(), i == 4);
    EXPECT_TRUE(always.step());
    EXPECT_FALSE(neither.step());
  }
  EXPECT_TRUE(neither.steps_saved().empty());
}

TEST_F(CheckpointManagerTest, WhatIsSavedIsTheStateAtTheCall) {
  for (bool asynchronous : {false, true}) {
    fs::remove_all(directory);
    {
      CheckpointManager checkpoints(directory, items, {.every_steps = 1, .asynchronous = asynchronous});
      auto step = function("step", [&] { w.assign_add(1.0); }); // in its own memory, if nobody else has it
      for (int i = 0; i < 50; ++i) {
        w.assign(Tensor{double(i), double(-i)});
        checkpoints.step();
        step(), train();
      }
    }
    CheckpointManager checkpoints(directory, items);
    for (int64_t step : checkpoints.steps_saved()) {
      load(checkpoints.path(step), items);
      EXPECT_EQ(w.value().to_vector<double>(), (std::vector<double>{double(step - 1), double(1 - step)}));
    }
  }
}

TEST_F(CheckpointManagerTest, ADamagedOneIsPassedOver) {
  {
    CheckpointManager checkpoints(directory, items, {.keep = 2, .every_steps = 1});
    for (int i = 0; i < 3; ++i)
      train(), checkpoints.step();
  }
  CheckpointManager checkpoints(directory, items, {.keep = 2, .every_steps = 1, .asynchronous = false});
  fs::resize_file(checkpoints.path(3), fs::file_size(checkpoints.path(3)) - 5);
  w.assign(Tensor{0.0, 0.0});
  std::string warning = errorsOf([&] { EXPECT_EQ(checkpoints.restore(), 2); });
  EXPECT_TRUE(says(warning, "warning: a checkpoint is passed over: " + checkpoints.path(3))) << warning;
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
  EXPECT_EQ(w.value().to_vector<double>(), (std::vector<double>{3, 4}));
  train(), checkpoints.step(); // takes the place of the damaged one
  EXPECT_EQ(checkpoints.steps_saved(), (Steps{2, 3}));
  EXPECT_EQ(errorsOf([&] { EXPECT_EQ(checkpoints.restore(), 3); }), "");
  EXPECT_EQ(w.value().to_vector<double>(), (std::vector<double>{4, 5}));
}

// Such a process wrote a checkpoint, and could not remove the oldest any more.
TEST_F(CheckpointManagerTest, WhatAKilledProcessLeftGoesBeforeTheNextIsWritten) {
  {
    CheckpointManager checkpoints(directory, items, {.keep = 3, .every_steps = 1});
    checkpoints.step(), checkpoints.step(), checkpoints.step();
  }
  CheckpointManager checkpoints(directory, items, {.keep = 2, .every_steps = 1, .asynchronous = false});
  EXPECT_EQ(checkpoints.restore(), 3);
  EXPECT_EQ(checkpoints.steps_saved(), (Steps{1, 2, 3})) << "restoring removes nothing";
  fs::create_directories(checkpoints.path(4));
  EXPECT_NE(messageOf([&] { checkpoints.step(); }), "no error");
  EXPECT_EQ(checkpoints.steps_saved(), (Steps{2, 3}));
}

TEST_F(CheckpointManagerTest, ADamagedOneCountsForNothing) {
  CheckpointManager checkpoints(directory, items, {.keep = 2, .asynchronous = false});
  auto at = [&](int64_t step) {
    while (checkpoints.steps() < step)
      train(), checkpoints.step();
    checkpoints.save();
  };
  at(1), at(2), at(4);
  std::ofstream(checkpoints.path(4)) << "damaged";
  errorsOf([&] { EXPECT_EQ(checkpoints.restore(), 2); });
  at(3);
  EXPECT_EQ(checkpoints.steps_saved(), (Steps{2, 3, 4})) << "two whole ones";
  at(5);
  EXPECT_EQ(checkpoints.steps_saved(), (Steps{3, 5})) << "it is among the older ones";
}

TEST_F(CheckpointManagerTest, IfAllAreDamagedItIsAnError) {
  CheckpointManager checkpoints(directory, items, {.every_steps = 1, .asynchronous = false});
  checkpoints.step(), checkpoints.step();
  for (int64_t step : {1, 2})
    std::ofstream(checkpoints.path(step)) << "damaged";
  std::string message;
  errorsOf([&] { message = messageOf([&] { checkpoints.restore(); }); });
  EXPECT_TRUE(says(message, "of the 2 checkpoints in " + directory + " none is whole")) << message;
  EXPECT_TRUE(says(message, "CheckpointManagerTest.cpp")) << message;
}

// Not damaged: the program is another.
TEST_F(CheckpointManagerTest, AnotherModelIsAnErrorAndNothingIsAssigned) {
  {
    CheckpointManager checkpoints(directory, items, {.every_steps = 1});
    checkpoints.step(), checkpoints.step();
  }
  Variable other(Tensor{1.0, 2.0, 3.0}, "w"), first(5.0, "first");
  CheckpointManager checkpoints(directory, SaveItems{{"w", other}});
  EXPECT_NE(messageOf([&] { checkpoints.restore(); }), "no error");
  EXPECT_EQ(checkpoints.steps(), 0);
  EXPECT_EQ(other.value().to_vector<double>(), (std::vector<double>{1, 2, 3}));
}

TEST_F(CheckpointManagerTest, AnotherSizeOfBatchesIsAnErrorAndNothingIsAssigned) {
  data::Dataset set(arange(12), arange(12)), larger = data::Dataset(arange(12), arange(12)).batch(6);
  {
    CheckpointManager checkpoints(directory, SaveItems{{"w", w}, {"other", set}, {"set", set}}, {.every_steps = 1});
    for (auto [x, y] : set)
      if (checkpoints.step(), checkpoints.steps() == 3)
        break;
  }
  w.assign(Tensor{0.0, 0.0});
  set.seek({4, 1});
  CheckpointManager checkpoints(directory, SaveItems{{"w", w}, {"other", set}, {"set", larger}});
  std::string message = messageOf([&] { checkpoints.restore(); });
  EXPECT_TRUE(says(message, "is after batch 3 of an epoch, which has 2 in the program")) << message;
  EXPECT_EQ(w.value().to_vector<double>(), (std::vector<double>{0, 0}));
  EXPECT_EQ(set.position(), (data::Position{4, 1}));
}

// An optimiser makes its slots at the first step, and what was not loaded would begin anew.
TEST_F(CheckpointManagerTest, AnOptimizerThatWasNotBuiltIsAnError) {
  Interrupted training;
  {
    CheckpointManager checkpoints(directory, training.items(), {.every_steps = 1});
    checkpoints.step();
  }
  optim::Adam adam;
  CheckpointManager checkpoints(directory, SaveItems{{"adam", adam}});
  EXPECT_TRUE(says(messageOf([&] { checkpoints.restore(); }), "adam.build(model)"));
}

TEST_F(CheckpointManagerTest, AnotherTrainingIsNotMixedIn) {
  {
    CheckpointManager checkpoints(directory, items, {.every_steps = 1});
    checkpoints.step(), checkpoints.step();
  }
  CheckpointManager checkpoints(directory, items, {.every_steps = 1});
  std::string message = messageOf([&] { checkpoints.step(); });
  EXPECT_TRUE(says(message, "holds a checkpoint of step 2, and this training is at step 1")) << message;
  EXPECT_TRUE(says(message, "call restore() before the first step")) << message;
  EXPECT_EQ(checkpoints.restore(), 2);
  EXPECT_TRUE(checkpoints.step());
}

TEST_F(CheckpointManagerTest, ADirectoryHasOneManager) {
  std::optional<CheckpointManager> first(std::in_place, directory, items);
  auto second = [&] { CheckpointManager checkpoints(directory, items); };
  std::string message = messageOf(second);
  EXPECT_TRUE(says(message, "another manager, of this process or another, has the directory " + directory)) << message;
  first.reset();
  EXPECT_EQ(messageOf(second), "no error");
}

TEST_F(CheckpointManagerTest, ItemsThatAreAskedForAreThoseOfTheMoment) {
  Variable later(7.0, "later");
  bool both = false;
  auto now = [&] { return both ? SaveItems{{"w", w}, {"later", later}} : SaveItems{{"w", w}}; };
  CheckpointManager checkpoints(directory, now, {.every_steps = 1, .asynchronous = false});
  checkpoints.step();
  both = true;
  EXPECT_NE(messageOf([&] { checkpoints.restore(); }), "no error") << "the first has no counterpart";
  checkpoints.step();
  later.assign(0.0);
  EXPECT_EQ(checkpoints.restore(), 2);
  EXPECT_EQ(later.item<double>(), 7);
}

// A FIFO in the place of the file, which holds less than what is written: its writer waits until somebody reads. And
// it is no file that can be read again.
TEST_F(CheckpointManagerTest, OneIsWrittenAtATimeAndItsErrorIsThrownByTheNextCall) {
  fs::create_directories(directory);
  std::string fifo = directory + "/checkpoint-000000002.wg";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto read = [&] {
    pollfd ready{.fd = reader, .events = POLLIN, .revents = 0};
    ::poll(&ready, 1, -1); // it is being written
    ::fcntl(reader, F_SETFL, 0);
    char bytes[4096];
    int64_t all = 0;
    for (ssize_t got; (got = ::read(reader, bytes, sizeof bytes)) > 0;)
      all += got;
    ::close(reader);
    return all;
  };
  Variable large(zeros({1 << 20}), "large");
  CheckpointManager checkpoints(directory, SaveItems{{"large", large}}, {.every_steps = 2, .every_seconds = 1e-9});
  checkpoints.step(); // by time
  checkpoints.wait();
  EXPECT_TRUE(checkpoints.step());
  EXPECT_FALSE(checkpoints.step()) << "by time none is due meanwhile";
  std::atomic<bool> saved = false;
  std::string message;
  std::thread waits([&] {
    message = messageOf([&] { checkpoints.save(); });
    saved = true;
  });
  EXPECT_FALSE(saved) << "it waits for the one that is being written";
  EXPECT_GT(read(), 4 << 20);
  waits.join();
  EXPECT_TRUE(says(message, "what was just written does not read back")) << message;
  EXPECT_EQ(checkpoints.steps_saved(), (Steps{1}));
  EXPECT_TRUE(checkpoints.step()) << "told once";
  checkpoints.wait();
  EXPECT_EQ(checkpoints.steps_saved(), (Steps{1, 4}));
}

TEST_F(CheckpointManagerTest, TheEndSaysInOneLineWhatNobodyWasTold) {
  std::string line = errorsOf([&] {
    CheckpointManager checkpoints(directory, items);
    fs::create_directories(checkpoints.path(0));
    checkpoints.save();
  });
  EXPECT_TRUE(line.starts_with("warning: the last checkpoint is not in " + directory + ": ")) << line;
  EXPECT_TRUE(says(line, "is a directory")) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
}

TEST_F(CheckpointManagerTest, AfterAForkItIsTheParents) {
  auto *checkpoints = new CheckpointManager(directory, items, {.every_steps = 1});
  checkpoints->step(); // its thread runs
  pid_t child = ::fork();
  if (child == 0) {
    bool refuses = says(messageOf([&] { checkpoints->step(); }), "made before this process was forked");
    delete checkpoints;
    ::_exit(refuses ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(checkpoints->step());
  checkpoints->wait();
  EXPECT_EQ(checkpoints->steps_saved(), (Steps{1, 2}));
  delete checkpoints;
}

TEST_F(CheckpointManagerTest, ATracedFunctionHasNoCheckpoints) {
  CheckpointManager checkpoints(directory, items, {.every_steps = 1});
  auto step = function("step", [&] {
    train();
    checkpoints.step();
  });
  EXPECT_TRUE(says(messageOf([&] { step(); }), "a traced function cannot read or write files"));
  EXPECT_EQ(checkpoints.steps(), 0);
}

TEST_F(CheckpointManagerTest, OptionsInTheirRanges) {
  auto message = [&](CheckpointOptions options) {
    return messageOf([&] { CheckpointManager checkpoints(directory, items, options); });
  };
  EXPECT_TRUE(says(message({.keep = -1}), "keep is -1"));
  EXPECT_TRUE(says(message({.every_steps = -2}), "every_steps -2"));
  EXPECT_TRUE(says(message({.every_seconds = -1}), "every_seconds is -1"));
  for (const char *prefix : {"", "a/b", ".hidden"})
    EXPECT_TRUE(says(message({.prefix = prefix}), "is no beginning of a file's name")) << prefix;
  std::ofstream(directory) << "a file";
  EXPECT_TRUE(says(message({}), directory + ": cannot be used as a directory of checkpoints")) << message({});
}
