// What several ranks save together: it is what one would save; what fails on one rank fails on all and loses nothing.
#include "tests/frontend/Files.h"
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace wg::tests {
namespace {

nn::Sequential makeModel(int64_t salt) {
  nn::Sequential model(nn::Dense(7, 5, relu), nn::Dense(5, 4, relu), nn::Dense(4, 3));
  for (const Variable &each : model.variables())
    each.assign(random_uniform(random::key(++salt), each.shape(), -1, 1));
  return model;
}

/// Each rank writes its part of the arrays; what is there is one saved computation, for any number of ranks.
TEST(SavingOverRanks, OneComputation) {
  namespace fs = std::filesystem;
  fs::path directory = fs::path(testing::TempDir()) / ("over_ranks_" + std::to_string(::getpid()));
  for (int ranks : {1, 3, 2}) { // over what is there
    dist::run(ranks, [&] {
      nn::Sequential model = makeModel(10 * ranks);
      auto predict = function("predict", [&](const Tensor &x) { return model(x); });
      predict(ones({2, 7}));
      save(directory.string(), {{"model", model}, {"predict", predict}}, {.over_ranks = true});
    });
    int files = 0, programs = 0;
    for (const auto &entry : fs::directory_iterator(directory)) {
      files += entry.path().extension() == ".safetensors";
      programs += entry.path().extension() == ".mlir";
    }
    EXPECT_GE(files, ranks);
    EXPECT_EQ(programs, 1);
    for (int readers : {1, 4})
      dist::run(readers, [&] {
        nn::Sequential model = makeModel(1000), expected = makeModel(10 * ranks);
        load(directory.string(), {{"model", model}});
        for (size_t i = 0; i < model.variables().size(); ++i)
          EXPECT_TRUE(sameBits(model.variables()[i].value(), expected.variables()[i].value()));
        auto predict = load(directory.string()).function<Tensor(const Tensor &)>("predict");
        EXPECT_TRUE(sameBits(predict(ones({2, 7})), expected(ones({2, 7}))));
      });
  }
  // What fails on one rank is an error on all, and what was there stays.
  auto failing = [&](auto saves) {
    std::atomic<int> errors = 0;
    std::string message = messageOf([&] {
      dist::run(2, [&] {
        nn::Sequential model = makeModel(1);
        try {
          saves(model, dist::rank());
        } catch (const Error &) {
          ++errors;
          throw;
        }
      });
    });
    EXPECT_EQ(errors, 2) << message;
    auto kept = load(directory.string()).function<Tensor(const Tensor &)>("predict");
    EXPECT_TRUE(sameBits(kept(ones({2, 7})), makeModel(20)(ones({2, 7}))));
    return message;
  };
  EXPECT_NE(failing([&](const nn::Sequential &model, int rank) {
              fs::path path = directory;
              if (rank == 1)
                path = path / "manifest.json" / "no"; // not a directory
              save(path.string(), {{"model", model}}, {.over_ranks = true});
            }).find("rank 1"),
            std::string::npos);
  EXPECT_NE(failing([&](const nn::Sequential &model, int rank) {
              save(directory.string(), {{rank ? "model" : "layers", model}}, {.over_ranks = true});
            }).find("rank 1 saves other items, or with other options, than rank 0"),
            std::string::npos);
  EXPECT_NE(failing([&](const nn::Sequential &model, int rank) {
              auto predict = function("predict", [&](const Tensor &x) { return model(x) * (rank ? 2.0f : 3.0f); });
              predict(ones({2, 7}));
              save(directory.string(), {{"predict", predict}}, {.over_ranks = true});
            }).find("rank 1 saves other programs than rank 0"),
            std::string::npos);
  EXPECT_NE(failing([&](const nn::Sequential &model, int) {
              save(directory.string() + ".wg", {{"model", model}}, {.over_ranks = true});
            }).find("several ranks cannot write one file together"),
            std::string::npos);
  fs::remove_all(directory);
}

/// Plain shards with an index: any number of ranks wrote them, and any number reads them, or no ranks at all.
TEST(SavingOverRanks, ShardsOfWeights) {
  namespace fs = std::filesystem;
  fs::path directory = fs::path(testing::TempDir()) / ("weights_over_ranks_" + std::to_string(::getpid()));
  fs::create_directories(directory);
  std::string path = (directory / "model.safetensors").string();
  auto holds = [&](int64_t salt) {
    nn::Sequential model = makeModel(1000), expected = makeModel(salt);
    load_weights(path, model);
    for (size_t i = 0; i < model.variables().size(); ++i)
      EXPECT_TRUE(sameBits(model.variables()[i].value(), expected.variables()[i].value()));
  };
  for (int ranks : {1, 3, 2, 1, 8}) {
    dist::run(ranks, [&] { save_weights(path, makeModel(10 * ranks), {.over_ranks = true}); });
    int files = 0;
    for (const auto &entry : fs::directory_iterator(directory))
      files += entry.path().extension() == ".safetensors";
    EXPECT_GE(files, std::min(ranks, 3));
    EXPECT_LE(files, 6);
    EXPECT_EQ(fs::exists(path + ".index.json"), ranks > 1);
    holds(10 * ranks);
    dist::run(3, [&] { holds(10 * ranks); });
  }
  auto names = [&] {
    std::set<std::string> all;
    for (const auto &entry : fs::directory_iterator(directory))
      all.insert(entry.path().filename().string());
    return all;
  };
  std::set<std::string> before = names();
  std::string message = messageOf([&] {
    dist::run(2, [&] {
      std::string mine = dist::rank() ? (directory / "none" / "model.safetensors").string() : path;
      save_weights(mine, makeModel(1), {.over_ranks = true});
    });
  });
  EXPECT_TRUE(message.find("rank 1 could not write its part") != std::string::npos ||
              message.find("none") != std::string::npos) // of rank 0, or of rank 1
      << message;
  holds(80);
  message = messageOf([&] {
    dist::run(2, [&] {
      nn::Dense model(3, dist::rank() + 1);
      save_weights(path, model, {.over_ranks = true});
    });
  });
  EXPECT_NE(message.find("rank 1 saves other names, types, metadata or shards than rank 0"), std::string::npos)
      << message;
  holds(80);
  EXPECT_EQ(names(), before);
  fs::remove_all(directory);
}

/// A rank that gives up waiting does not know what the others have done: nothing of theirs, or of its own, is removed.
TEST(SavingOverRanks, ARankGivesUp) {
  namespace fs = std::filesystem;
  fs::path directory = fs::path(testing::TempDir()) / ("given_up_" + std::to_string(::getpid()));
  auto saveBoth = [&](float a, float b) {
    dist::run(2,
              [&] {
                Variable x(full({100}, a)), y(full({100}, b));
                save(directory.string(), {{"x", x}, {"y", y}}, {.over_ranks = true});
              },
              {.timeout = 0.2});
  };
  saveBoth(1, 2);
  int lock = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY);
  ::flock(lock, LOCK_EX); // rank 0 waits for it, and rank 1 for rank 0
  std::thread holder([&] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ::close(lock);
  });
  EXPECT_NE(messageOf([&] { saveBoth(3, 2); }).find("has not come"), std::string::npos);
  holder.join();
  Variable x(zeros({100})), y(zeros({100}));
  load(directory.string(), {{"x", x}, {"y", y}});
  float first = x.value().to_vector<float>()[0];
  EXPECT_TRUE(first == 1 || first == 3) << first;
  EXPECT_EQ(y.value().to_vector<float>()[0], 2);
  fs::remove_all(directory);
}

TEST(SavingOverRanks, NotAllSeeTheDirectory) {
  namespace fs = std::filesystem;
  fs::path directory = fs::path(testing::TempDir()) / ("not_all_see_" + std::to_string(::getpid()));
  for (const char *place : {"0", "1"})
    fs::create_directories(directory / place);
  std::vector<nn::Module::Named> old{{"a", Variable(full({10}, 1.0f))}, {"b", Variable(full({10}, 2.0f))}};
  auto path = [&](int rank) { return (directory / std::to_string(rank) / "model.safetensors").string(); };
  save_weights(path(0), old);
  auto refused = [&](const std::function<void(int rank)> &saves, const std::string &text) {
    std::string message = messageOf([&] { dist::run(2, [&] { saves(dist::rank()); }, {.timeout = 5}); });
    EXPECT_NE(message.find(text), std::string::npos) << message;
    std::vector<nn::Module::Named> read{{"a", Variable(zeros({10}))}, {"b", Variable(zeros({10}))}};
    load_weights(path(0), read);
    EXPECT_EQ(read[0].second.value().to_vector<float>()[0], 1);
    EXPECT_EQ(read[1].second.value().to_vector<float>()[0], 2);
  };
  std::vector<nn::Module::Named> now{{"a", Variable(full({10}, 3.0f))}, {"b", Variable(full({10}, 4.0f))}};
  refused([&](int rank) { save_weights(path(rank), now, {.over_ranks = true}); },
          "was to be written by another rank, and is not there");
  refused([&](int rank) { save_weights(path(0), now, {.max_shard_bytes = rank ? 40 : 0, .over_ranks = true}); },
          "rank 1 saves other names, types, metadata or shards than rank 0");
  refused(
      [&](int rank) {
        if (rank)
          dist::all_reduce(ones({3}));
        else
          save_weights(path(0), now, {.over_ranks = true});
      },
      "is at what ranks save together");
  // Links are not followed.
  fs::path computation = directory / "computation";
  auto saveBoth = [&] {
    dist::run(2,
              [&] { save(computation.string(), {{"a", now[0].second}, {"b", now[1].second}}, {.over_ranks = true}); });
  };
  saveBoth();
  std::string precious = (directory / "precious").string();
  for (const auto &entry : fs::directory_iterator(computation))
    if (entry.path().extension() == ".safetensors") {
      fs::copy_file(entry.path(), precious, fs::copy_options::overwrite_existing);
      fs::remove(entry.path());
      fs::create_symlink(precious, entry.path());
      break;
    }
  fs::resize_file(precious, 10);
  EXPECT_NE(messageOf(saveBoth), "");
  EXPECT_EQ(fs::file_size(precious), 10u);
  fs::remove_all(directory);
}

} // namespace
} // namespace wg::tests
