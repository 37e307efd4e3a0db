// Batches, orders, and what a damaged data file is answered.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

using namespace wg;

static data::Dataset numbers(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  std::iota(x.begin(), x.end(), 0.0f);
  return data::Dataset(Tensor::from(x, Shape{count, 1}), Tensor::from(x));
}

TEST(DataTest, LastBatchHoldsWhatIsLeft) {
  data::Dataset set = numbers(10).batch(4);
  std::vector<int64_t> sizes;
  for (const auto &[x, y] : set)
    sizes.push_back(x.shape()[0]);
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
  EXPECT_EQ(set.batches(), 3);
}

TEST(DataTest, DropLastDropsIt) {
  int64_t batches = 0;
  for (const auto &[x, y] : numbers(10).batch(4, true)) {
    EXPECT_EQ(x.shape()[0], 4);
    ++batches;
  }
  EXPECT_EQ(batches, 2);
}

TEST(DataTest, ABatchLargerThanTheSetIsAllOfIt) {
  data::Dataset set = numbers(10).batch(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(set.batches(), 1);
  int64_t examples = 0;
  for (const auto &[x, y] : set)
    examples += x.shape()[0];
  EXPECT_EQ(examples, 10);
  EXPECT_EQ(numbers(10).batch(std::numeric_limits<int64_t>::max(), true).batches(), 0);
}

TEST(DataTest, EachEpochIsAnotherPermutationAndKeepsPairs) {
  data::Dataset set = numbers(100).shuffle(3).batch(7);
  std::vector<std::vector<float>> epochs;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<float> seen;
    for (const auto &[x, y] : set) {
      EXPECT_EQ(x.to_vector<float>(), y.to_vector<float>());
      for (float value : y.to_vector<float>())
        seen.push_back(value);
    }
    epochs.push_back(seen);
    std::sort(seen.begin(), seen.end());
    for (size_t i = 0; i < seen.size(); ++i)
      EXPECT_EQ(seen[i], static_cast<float>(i));
  }
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST(DataTest, OrderFollowsFromTheSeed) {
  EXPECT_EQ(numbers(50).shuffle(1).order(4), numbers(50).shuffle(1).order(4));
  EXPECT_NE(numbers(50).shuffle(1).order(4), numbers(50).shuffle(2).order(4));
  EXPECT_EQ(numbers(3).order(9), (std::vector<int64_t>{0, 1, 2}));
}

TEST(DataTest, UnequalCountsAreAnError) {
  try {
    data::Dataset(zeros({3, 2}), zeros({4}));
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("different numbers of examples: 3 and 4"), std::string::npos)
        << error.what();
    EXPECT_NE(error.where().find("DataTest.cpp"), std::string::npos);
  }
}

TEST(DataTest, DigitsAreThoseOfUci) {
  data::Split split = data::digits();
  EXPECT_EQ(split.train.size() + split.test.size(), 1797);
  EXPECT_EQ(split.test.size(), 359);
  std::array<int, 10> histogram{};
  for (const data::Examples &part : {split.train, split.test}) {
    EXPECT_EQ(part.x.shape(), (Shape{part.size(), 64}));
    for (int32_t digit : part.y.to_vector<int32_t>())
      ++histogram[static_cast<size_t>(digit)];
    for (float pixel : part.x.to_vector<float>())
      ASSERT_TRUE(pixel >= 0 && pixel <= 1);
  }
  EXPECT_EQ(histogram, (std::array<int, 10>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}));
}

struct MnistTest : testing::Test {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("wengert_mnist_" + std::to_string(::getpid()));
  MnistTest() { std::filesystem::create_directories(folder); }
  ~MnistTest() override { std::filesystem::remove_all(folder); }
  void write(const char *name, std::initializer_list<int> bytes) {
    std::ofstream out(folder / name, std::ios::binary);
    for (int byte : bytes)
      out.put(static_cast<char>(byte));
  }
  std::string message() {
    try {
      data::load_mnist(folder.string());
    } catch (const Error &error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(MnistTest, ReadsTwoByTwoImages) {
  for (const char *prefix : {"train", "t10k"}) {
    write((std::string(prefix) + "-images-idx3-ubyte").c_str(),
          {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 51, 102, 153, 204, 255, 0, 51});
    write((std::string(prefix) + "-labels-idx1-ubyte").c_str(), {0, 0, 8, 1, 0, 0, 0, 2, 7, 9});
  }
  data::Split split = data::load_mnist(folder.string());
  EXPECT_EQ(split.train.x.shape(), (Shape{2, 4}));
  EXPECT_FLOAT_EQ(split.train.x.to_vector<float>()[5], 1.0f);
  EXPECT_EQ(split.test.y.to_vector<int32_t>(), (std::vector<int32_t>{7, 9}));
}

TEST_F(MnistTest, NamesTheMissingFile) {
  EXPECT_NE(message().find("there is no train-images-idx3-ubyte"), std::string::npos) << message();
}

TEST_F(MnistTest, TruncatedFileIsAnErrorThatNamesIt) {
  write("train-images-idx3-ubyte", {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 51});
  EXPECT_NE(message().find("train-images-idx3-ubyte"), std::string::npos) << message();
  EXPECT_NE(message().find("truncated"), std::string::npos) << message();
}
