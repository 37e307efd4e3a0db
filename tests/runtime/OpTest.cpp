// Records, inference and execution: what holds of every op.
#include "tests/runtime/Run.h"

#include <thread>

namespace wg::runtime {

TEST(OpTest, EveryRecordHasItsRuleAndKernel) {
  for (int i = 0; i < kNumOps; ++i) {
    const OpRecord &op = recordOf(static_cast<OpId>(i));
    EXPECT_EQ(static_cast<int>(op.id), i);
    EXPECT_EQ(findOp(op.name), &op);
    std::string_view name = op.name;
    if (name == "call" || name == "cond" || name == "loop" || name == "rewind" || name == "kernel" || name == "yield")
      continue;
    EXPECT_NE(op.shape, nullptr) << name;
    EXPECT_NE(op.kernel, nullptr) << name;
  }
  EXPECT_EQ(findOp("no_such_op"), nullptr);
  EXPECT_GE(machineLevel(), 2);
}

TEST(OpTest, FailureSaysWhatWhereAndWhatToDo) {
  std::vector<Array> operands{vec<float>({1, 2}), vec<double>({1, 2})};
  Array result = vec<float>({7});
  Status status =
      execute({OpId::mul, {}, operands, {"/src/train.cpp", "auto step(const Tensor &)", 41, 3}}, std::span(&result, 1));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(toString(status.failure()),
            "error: mul: f32[2] and f64[2] have different dtypes\n  at train.cpp:41 in step\n"
            "  try: cast one of them: cast(x, f32)");
  EXPECT_EQ(status.failure().operands.size(), 2u);
  EXPECT_EQ(result.data<float>()[0], 7) << "results are unchanged on failure";
}

TEST(OpTest, OperandsAndAttributesAreCounted) {
  EXPECT_EQ(message(run("tanh", {})), "takes 1 operand, got 0");
  EXPECT_EQ(message(run("add", {vec<float>({1})})), "takes 2 operands, got 1");
  EXPECT_EQ(message(run("gather", {vec<float>({1})})), "takes 2 operands, got 1");
  EXPECT_EQ(message(run("reduce_sum", {vec<float>({1})})), "takes 1 attribute, got 0");
  EXPECT_EQ(message(run("reduce_sum", {vec<float>({1})}, attrs({int64_t(0)}))),
            "attribute axes is a list of integers, got an integer");
}

TEST(OpTest, DtypesAreChecked) {
  EXPECT_EQ(message(run("tanh", {vec<int32_t>({1})})), "takes a float, got i32[1] | cast it: cast(x, f32)");
  EXPECT_EQ(message(run("add", {vec<bool>({1}), vec<bool>({1})})),
            "takes a number, got bool[1] | cast it: cast(x, f32)");
  EXPECT_EQ(message(run("logical_not", {vec<float>({1})})), "takes bool, got f32[1] | compare first: x != 0");
  EXPECT_EQ(message(run("div", {vec<int64_t>({1}), vec<int64_t>({1})})),
            "takes a float, got i64[1] | floor_div(a, b) for integers, or cast them: cast(a, f32)");
}

TEST(OpTest, HalfPrecisionHasTypesAndNoKernels) {
  Array half = Array::zeros(DType::bf16, {2});
  EXPECT_EQ(types("add", {half.type, half.type}), "bf16[2]");
  for (const char *name : {"add", "equal"})
    EXPECT_EQ(message(run(name, {half, half})), "there are no kernels for bf16 | cast to f32: cast(x, f32)");
  EXPECT_EQ(message(run("tanh", {half})), "there are no kernels for bf16 | cast to f32: cast(x, f32)");
  EXPECT_EQ(message(run("reduce_sum", {half}, attrs({Ints{0}}))),
            "there are no kernels for bf16 | cast to f32: cast(x, f32)");
}

TEST(OpTest, SizesComeFromIndexOperands) {
  Attrs toTwoByN = BroadcastAttrs::make(Ints{2, kDynamic}, Ints{1});
  EXPECT_EQ(values<float>(run("broadcast", {vec<float>({1, 2, 3}), Array::scalar<int64_t>(3)}, toTwoByN)),
            (std::vector<float>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(message(run("broadcast", {vec<float>({1, 2, 3}), Array::scalar<int64_t>(4)}, toTwoByN)),
            "axis 0 of f32[3] has size 3 and cannot become axis 1 of f32[2,4] (3 != 4) | only a size of 1 is repeated");
  EXPECT_EQ(message(run("broadcast", {vec<float>({1, 2, 3}), Array::scalar<int64_t>(-3)}, toTwoByN)),
            "sizes are not negative, got -3");
  EXPECT_EQ(message(run("broadcast", {vec<float>({1, 2, 3})}, toTwoByN)),
            "shape [2, ?] takes an index operand for each ?, got 0");
  EXPECT_EQ(
      values<int32_t>(run("iota", {Array::scalar<int64_t>(2)}, IotaAttrs::make(Ints{kDynamic, 3}, 1, DType::i32))),
      (std::vector<int32_t>{0, 1, 2, 0, 1, 2}));
}

TEST(OpTest, SizesNoMachineHasAreAnError) {
  Attrs huge = BroadcastAttrs::make(Ints{int64_t(1) << 27, int64_t(1) << 27}, Ints{});
  EXPECT_EQ(message(run("broadcast", {Array::scalar(1.0f)}, huge)), "out of memory for f32[134217728,134217728]");
  Attrs beyond = BroadcastAttrs::make(Ints{int64_t(1) << 40, int64_t(1) << 40}, Ints{});
  EXPECT_EQ(
      message(run("broadcast", {Array::scalar(1.0f)}, beyond)),
      "f32[1099511627776,1099511627776] has more than 2^56 bytes, the most that a tensor may have | make it smaller");
}

TEST(OpTest, ReshapeAndStopGradientShareTheBuffer) {
  Array x = vec<float>({1, 2, 3, 4});
  Result<Array> y = run("reshape", {x}, ReshapeAttrs::make(Ints{2, 2}));
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(y->buffer, x.buffer);
  EXPECT_FALSE(x.buffer.unique());
  Result<Array> z = run("stop_gradient", {x});
  ASSERT_TRUE(z.ok());
  EXPECT_EQ(z->buffer, x.buffer);
}

TEST(OpTest, AttributesAreComparedAndHashedByValue) {
  Attrs a = attrs({int64_t(1), 2.0, DType::f32, Ints{1, 2}, std::string("mk"), vec<float>({1, 2})});
  Attrs b = attrs({int64_t(1), 2.0, DType::f32, Ints{1, 2}, std::string("mk"), vec<float>({1, 2})});
  Attrs c = attrs({int64_t(1), 2.0, DType::f32, Ints{1, 2}, std::string("mk"), vec<float>({1, 3})});
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_FALSE(a == c);
  EXPECT_NE(a.hash(), c.hash());
  EXPECT_FALSE(attrs({0.0}) == attrs({-0.0}));
  EXPECT_EQ(attrs({0.0 / 0.0}), attrs({0.0 / 0.0}));
  EXPECT_FALSE(attrs({int64_t(1)}) == attrs({1.0}));
  EXPECT_EQ(Attrs(), Attrs());
}

TEST(OpTest, ManyThreadsExecuteAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        Array x = Array::zeros(DType::f32, {1000 + t});
        EXPECT_EQ(values<float>(run("reduce_sum", {*run("ones_like", {x})}, attrs({Ints{0}}))),
                  std::vector<float>{1000.0f + t});
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace wg::runtime
