// The bound of every size.
#include "runtime/Array.h"

#include <gtest/gtest.h>

#include <new>

namespace wg::runtime {
namespace {

constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

TEST(ExtentTest, ElementsAndBytes) {
  Result<Extent> extent = extentOf(TensorType{DType::f32, {2, 3}});
  ASSERT_TRUE(extent.ok());
  EXPECT_EQ(extent->elements, 6);
  EXPECT_EQ(extent->bytes, 24);
  EXPECT_EQ(extentOf(TensorType{DType::f64, {}})->bytes, 8);
  EXPECT_EQ(extentOf(TensorType{DType::f64, {3, 0, 5}})->bytes, 0);
  EXPECT_EQ(extentOf(TensorType{DType::f64, {3, kDynamic}})->elements, 3);
}

TEST(ExtentTest, TheBoundIsKept) {
  EXPECT_EQ(extentOf(TensorType{DType::u8, {kMaxBytes}})->bytes, kMaxBytes);
  EXPECT_FALSE(extentOf(TensorType{DType::u8, {kMaxBytes + 1}}).ok());
  EXPECT_FALSE(extentOf(TensorType{DType::f64, {kMaxBytes / 8 + 1}}).ok());
  for (Shape shape : {Shape{(int64_t(1) << 62) + 1, 4}, Shape{kHighest}, Shape{kHighest, kHighest}, Shape{0, kHighest},
                      Shape{kHighest, 0}, Shape{kDynamic, kHighest}})
    EXPECT_EQ(extentOf(TensorType{DType::f32, shape}).failure().message,
              toString(TensorType{DType::f32, shape}) + " has more than 2^56 bytes, the most that a tensor may have");
  EXPECT_EQ(extentOf(TensorType{DType::f32, {2, -1}}).failure().message, "sizes are not negative, got f32[2,-1]");
  EXPECT_EQ(extentOf(DType::f32, std::vector<int64_t>(9, 1)).failure().message, "a tensor has 8 axes at most, got 9");
}

TEST(ExtentTest, NoArrayIsMadeBeyondIt) {
  EXPECT_THROW(Array::empty(DType::f32, {(int64_t(1) << 62) + 1, 4}), std::bad_alloc);
  EXPECT_THROW(Array::empty(DType::f32, {-1}), std::bad_alloc);
  EXPECT_THROW(Array::empty(DType::f32, {kDynamic}), std::bad_alloc);
}

TEST(ExtentTest, SumsOverManyTensorsStopAtTheHighest) {
  EXPECT_EQ(saturatingAdd(kHighest, 1), kHighest);
  EXPECT_EQ(saturatingMul(kMaxBytes, kMaxBytes), kHighest);
  EXPECT_EQ(saturatingAdd(saturatingMul(3, 4), 5), 17);
}

} // namespace
} // namespace wg::runtime
