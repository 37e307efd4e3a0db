// Bad input: each message has its three parts, and says what and where.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>

using namespace wg;

static Error errorOf(const std::function<void()> &f) {
  try {
    f();
  } catch (const Error &error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error({});
}

TEST(Error, ShapesThatDoNotFit) {
  Tensor a = zeros({2, 3}), b = zeros({4});
  uint32_t line = 0;
  Error error = errorOf([&] {
    line = __LINE__ + 1;
    a + b;
  });
  EXPECT_EQ(error.kind(), ErrorKind::value);
  EXPECT_EQ(error.op(), "add");
  EXPECT_EQ(error.message(), "shapes do not broadcast: f32[2,3], f32[4] (3 != 4)");
  EXPECT_EQ(error.where().rfind("ErrorTest.cpp:" + std::to_string(line), 0), 0u) << error.where();
  ASSERT_EQ(error.operands().size(), 2u);
  EXPECT_EQ(toString(error.operands()[1]), "f32[4]");
  EXPECT_EQ(std::string(error.what()).rfind("error: add: shapes do not broadcast", 0), 0u);
  EXPECT_NE(std::string(error.what()).find("\n  try: "), std::string::npos);
}

TEST(Error, DtypesThatDiffer) {
  Error error = errorOf([] { Tensor(1.0f) + Tensor(1.0); });
  EXPECT_EQ(error.kind(), ErrorKind::type);
  EXPECT_EQ(error.message(), "dtypes differ: a is f32[], b is f64[]");
  EXPECT_EQ(error.remedy(), "cast one: cast(b, f32)");
  EXPECT_EQ(errorOf([] { Tensor(1) + 0.5; }).message(), "a float literal beside an integer tensor (i32)");
  EXPECT_NE(errorOf([] { Tensor(1) / 2; }).remedy().find("floor_div"), std::string::npos);
}

TEST(Error, MatmulNamesTheSizesAndTheWayOut) {
  Error error = errorOf([] { matmul(zeros({128, 64}), zeros({32, 10})); });
  EXPECT_EQ(error.message(), "inner sizes differ: a is f32[128,64], b is f32[32,10] (64 != 32)");
  EXPECT_EQ(error.remedy(), "transpose b, or give the layer before it 32 outputs");
}

TEST(Error, UndefinedHandles) {
  EXPECT_NE(errorOf([] { Tensor() + 1.0f; }).message().find("undefined"), std::string::npos);
  EXPECT_NE(errorOf([] { Variable().value(); }).message().find("undefined"), std::string::npos);
  EXPECT_NE(errorOf([] { Tensor().shape(); }).message().find("undefined"), std::string::npos);
}

TEST(Error, AssignmentsThatDoNotFit) {
  Variable w(zeros({2}));
  EXPECT_EQ(errorOf([&] { w.assign(zeros({3})); }).message(),
            "the shape of a variable is fixed: it is f32[2], the value f32[3]");
  EXPECT_EQ(errorOf([&] { w.assign(zeros({2}, f64)); }).message(), "the variable is f32[2], the value f64[2]");
}

TEST(Error, ReadingElements) {
  EXPECT_EQ(errorOf([] { zeros({2}).item<float>(); }).message(), "the tensor has 2 elements: f32[2]");
  EXPECT_EQ(errorOf([] { zeros({2}).data<double>(); }).message(), "the tensor is f32[2], asked for elements of f64");
  EXPECT_EQ(errorOf([] { Tensor{{1.0f, 2.0f}, {3.0f}}; }).message(), "rows of different lengths: 2 and 1");
}

TEST(Error, AxesAndSizes) {
  EXPECT_EQ(errorOf([] { reduce_sum(zeros({2}), 1); }).message(), "axis 1 of a tensor of rank 1");
  EXPECT_EQ(errorOf([] { reshape(zeros({5}), {2, -1}); }).message(), "f32[5] has 5 elements, no multiple of 2");
  EXPECT_EQ(errorOf([] { Tensor(TensorSpec{f32, {3, -2}}); }).message(), "sizes are not negative: -2");
  EXPECT_EQ(Tensor(TensorSpec{f32, {-1, dynamic}}).shape(), (Shape{dynamic, dynamic}));
  EXPECT_EQ(errorOf([] { zeros({-2}); }).message(), "sizes are not negative: (-2,)");
  EXPECT_EQ(errorOf([] { index(zeros({2}), 2); }).message(), "place 2 of axis 0, whose size is 2");
}

// A literal never wraps.
TEST(Error, IntegersThatTheDtypeDoesNotHold) {
  Tensor x{uint8_t(1), uint8_t(2)}, y{1, 2};
  Error error = errorOf([&] { less(x, 300); });
  EXPECT_EQ(error.message(), "300 does not fit u8, which holds 0 to 255");
  EXPECT_EQ(error.remedy(), "cast the tensor to a wider dtype: cast(x, i64)");
  EXPECT_EQ(error.where().rfind("ErrorTest.cpp:", 0), 0u) << error.where();
  EXPECT_EQ(errorOf([&] { greater(x, -1); }).message(), "-1 does not fit u8, which holds 0 to 255");
  EXPECT_EQ(errorOf([&] { full({2}, 300, u8); }).message(), "300 does not fit u8, which holds 0 to 255");
  EXPECT_EQ(errorOf([&] { clip(x, -5, 300); }).message(), "-5 does not fit u8, which holds 0 to 255");
  EXPECT_EQ(errorOf([&] { where(x == 1, x, 256); }).message(), "256 does not fit u8, which holds 0 to 255");
  EXPECT_EQ(errorOf([&] { Variable(x).assign(256); }).message(), "256 does not fit u8, which holds 0 to 255");
  EXPECT_EQ(errorOf([&] { less(y, 3000000000); }).message(),
            "3000000000 does not fit i32, which holds -2147483648 to 2147483647");
  EXPECT_EQ(errorOf([&] { arange(0, 300, 1, u8); }).message(), "299 does not fit u8, which holds 0 to 255");
  EXPECT_EQ(errorOf([] { wg::function("f", [](const Tensor &x) { return x < 300; })(Tensor(uint8_t(1))); }).message(),
            "300 does not fit u8, which holds 0 to 255");
  std::string beyond = "18446744073709551615 does not fit i64, which holds at most 9223372036854775807";
  EXPECT_EQ(errorOf([&] { y + ULLONG_MAX; }).message(), beyond);
  EXPECT_EQ(errorOf([&] { Tensor{ULLONG_MAX}; }).message(), beyond);
}

TEST(Error, WhatATensorIsPaddedWithIsOneOfItsNumbers) {
  Tensor x{1, 2};
  for (double value : {0.5, 1e30, std::nan("")})
    EXPECT_TRUE(errorOf([&] { pad(x, {{1, 0}}, value); }).message().starts_with("the value is ")) << value;
  EXPECT_TRUE(errorOf([&] { pad(cast(x, boolean), {{1, 0}}, 2); }).message().starts_with("the value is 2"));
  EXPECT_NE(errorOf([&] { pad(cast(x, u8), {{1, 0}}, 300); }).message().find("300"), std::string::npos);
}

TEST(Error, SizesBeyondAnyMemory) {
  int64_t huge = int64_t(1) << 62;
  auto tooMany = [](const std::function<void()> &f) {
    return errorOf(f).message().find("more than 2^56 bytes") != std::string::npos;
  };
  EXPECT_TRUE(tooMany([&] { zeros({huge, 4}); }));
  EXPECT_TRUE(tooMany([&] { ones({huge}); })); // the elements fit, their bytes do not
  EXPECT_TRUE(tooMany([&] { full({huge, 0, 8}, 1.0f); }));
  EXPECT_TRUE(tooMany([&] { broadcast_to(Tensor(1.0f), {huge, huge}); }));
  EXPECT_TRUE(tooMany([&] { Tensor::from(std::vector<float>{}, {0, huge, 4}); }));
  EXPECT_TRUE(tooMany([&] { eye(huge); }));
  EXPECT_TRUE(tooMany([&] { linspace(0, 1, huge); }));
  EXPECT_TRUE(tooMany([&] { reshape(zeros({0}), {huge, 4}); }));
  EXPECT_TRUE(tooMany([&] { pad(zeros({2}), {{INT64_MAX, 1}}); }));
  EXPECT_TRUE(tooMany([&] { arange(INT64_MIN, INT64_MAX); }));
  EXPECT_TRUE(tooMany([&] { random::split(random::key(1), INT64_MAX); }));
  EXPECT_TRUE(tooMany([&] { wg::function("f", [&] { return zeros({huge, 4}); })(); }));
  for (Error error :
       {errorOf([] { zeros({int64_t(1) << 50}); }), errorOf([] { broadcast_to(Tensor(1.0f), {int64_t(1) << 50}); }),
        errorOf([] { random_uniform(random::key(1), {int64_t(1) << 50}); })}) {
    EXPECT_EQ(error.message(), "out of memory for f32[1125899906842624]");
    EXPECT_EQ(error.where().rfind("ErrorTest.cpp:", 0), 0u) << error.where();
  }
}

TEST(Error, NegativeSizesAndCounts) {
  EXPECT_EQ(errorOf([] { reshape(zeros({12}), {-2, 6}); }).message(), "the size -2 of (-2, 6) is negative");
  EXPECT_EQ(errorOf([] { random::split(random::key(1), -1); }).message(), "the count -1 is negative");
}

// The same words eager and compiled.
TEST(Error, AnIndexOutOfRangeIsNamed) {
  auto compiled = function("take", [](const Tensor &x, const Tensor &i) { return gather(x, i) * 2.0f; });
  Tensor x{1.0f, 2.0f}, places{0, 7, -3};
  for (Error error : {errorOf([&] { gather(x, places); }), errorOf([&] { compiled(x, places); })}) {
    EXPECT_EQ(error.op(), "gather");
    EXPECT_EQ(error.message(), "index 7 at position 1 is out of range for an axis of size 2");
    EXPECT_EQ(error.where().rfind("ErrorTest.cpp:", 0), 0u) << error.where();
  }
  EXPECT_EQ(errorOf([&] { compiled(x, Tensor{0, 1, -1}); }).message(),
            "index -1 at position 2 is out of range for an axis of size 2");
  EXPECT_EQ(compiled(x, Tensor{1, 0}).to_vector<float>(), (std::vector<float>{4, 2}));
}

TEST(Error, ResultsBeyondAllMemory) {
  Tensor x = zeros({int64_t(1) << 22}), tall = zeros({int64_t(1) << 22, 1});
  auto product = function("product", [](const Tensor &a, const Tensor &b) { return a * b; });
  EXPECT_NE(errorOf([&] { product(tall, x); }).message().find("out of memory"), std::string::npos);
  auto larger = function("larger", [](const Tensor &a, const Tensor &b) {
    return broadcast_to(expand_dims(a * b, 0), {1 << 30, 1 << 22, 1 << 22});
  });
  EXPECT_NE(errorOf([&] { larger(tall, x); }).message().find("2^56 bytes"), std::string::npos)
      << errorOf([&] { larger(tall, x); }).message();
}

TEST(Error, MoreSizesThanAShapeHolds) {
  Shape nine{1, 1, 1, 1, 1, 1, 1, 1, 1};
  for (Error error :
       {errorOf([&] { zeros(nine); }), errorOf([&] { reshape(ones({1}), nine); }),
        errorOf([&] { broadcast_to(ones({1}), nine); }), errorOf([&] { Tensor::from(std::vector<float>(1), nine); }),
        errorOf([&] { random_uniform(random::key(1), nine); }),
        errorOf([&] { expand_dims(zeros({1, 1, 1, 1, 1, 1, 1, 1}), 0); }),
        errorOf([&] { stack({zeros({1, 1, 1, 1, 1, 1, 1, 1}), zeros({1, 1, 1, 1, 1, 1, 1, 1})}, 8); })})
    EXPECT_NE(std::string(error.what()).find("9"), std::string::npos) << error.what();
  EXPECT_NE(std::string(errorOf([&] { Tensor(TensorSpec{f32, nine}); }).what()).find("the highest is 8"),
            std::string::npos);
}

TEST(Error, ASpecificationHasNoValue) {
  Tensor spec(TensorSpec{f32, {2}});
  Variable w(zeros({2}));
  GradientTape tape;
  for (Error error :
       {errorOf([&] { tape.watch(spec); }), errorOf([&] { w.assign(spec); }), errorOf([&] { spec + 1.0f; })})
    EXPECT_NE(error.message().find("specification"), std::string::npos) << error.what();
}

// D5: sizes that are equal by assumption are compared when the function runs.
TEST(Error, ASizeThatDiffersAtRunTimeIsNamed) {
  auto f = wg::function("sum", [](const Tensor &a, const Tensor &b) { return a + b; });
  ConcreteFunction cf = f.trace(TensorSpec{f32, {dynamic}}, TensorSpec{f32, {dynamic}});
  EXPECT_EQ(cf(zeros({3}), ones({3}))[0].to_vector<float>(), (std::vector{1.0f, 1.0f, 1.0f}));
  Error error = errorOf([&] { cf(zeros({3}), ones({4})); });
  EXPECT_NE(error.message().find("3"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("4"), std::string::npos) << error.message();
  EXPECT_NE(error.where().find("ErrorTest.cpp:"), std::string::npos) << error.where();
}

TEST(Error, InsideOfATraceTheLineIsTheUsers) {
  uint32_t line = 0;
  auto f = wg::function("bad", [&](const Tensor &x) {
    line = __LINE__ + 1;
    return x + zeros({7});
  });
  Error error = errorOf([&] { f(zeros({2})); });
  EXPECT_EQ(error.where().rfind("ErrorTest.cpp:" + std::to_string(line), 0), 0u) << error.where();
}
