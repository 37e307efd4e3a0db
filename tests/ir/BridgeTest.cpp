// Types, attributes, places and ops pass between the runtime and MLIR unchanged.
#include "tests/ir/Evaluate.h"

using namespace wg;
using namespace wg::tests;
using runtime::Array;
using runtime::DType;

TEST(BridgeTest, EveryTypeComesBack) {
  for (int i = 0; i < runtime::kNumDTypes; ++i) {
    runtime::TensorType type{static_cast<DType>(i), {2, runtime::kDynamic, 0}};
    EXPECT_EQ(ir::runtimeTypeOf(ir::tensorTypeOf(ir::context(), type)), type);
  }
}

TEST(BridgeTest, EveryConstantComesBackAndSplatsStaySmall) {
  Array bools = Array::copyOf(std::span<const bool>({true, false, true}), {3});
  Array floats = Array::copyOf(std::span<const double>({1.5, -0.0, 3}), {3, 1});
  Array ones = Array::zeros(DType::i32, {100, 100});
  for (const Array &array : {bools, floats, ones}) {
    mlir::DenseElementsAttr value = ir::elementsOf(ir::context(), array);
    Array back = ir::arrayOf(value);
    EXPECT_EQ(back.type, array.type);
    EXPECT_EQ(std::memcmp(back.buffer.data(), array.buffer.data(), array.numBytes()), 0);
  }
  EXPECT_TRUE(ir::elementsOf(ir::context(), ones).isSplat());
}

TEST(BridgeTest, EverySampleBuildsVerifiesAndKeepsItsAttributes) {
  for (const Sample &sample : allSamples()) {
    bool ofSizes = sample.op == runtime::OpId::size; // an i64[] in the runtime, an index here
    Program program(ofSizes ? std::vector<Array>() : sample.operands);
    for (size_t i = 0; ofSizes && i < sample.operands.size(); ++i)
      program.block->addArgument(program.b.getIndexType(), program.b.getUnknownLoc());
    auto built =
        ir::buildOp(program.b, program.b.getUnknownLoc(), sample.op, program.block->getArguments(), sample.attrs);
    ASSERT_TRUE(mlir::succeeded(built)) << runtime::recordOf(sample.op).name << ": " << sample.text;
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*built))) << runtime::recordOf(sample.op).name;
    EXPECT_EQ(ir::opIdOf(*built), sample.op);
    EXPECT_EQ(ir::attrsOf(*built), sample.attrs) << runtime::recordOf(sample.op).name;
  }
}

TEST(BridgeTest, BrokenRuleIsADiagnosticAtThePlace) {
  Array a = Array::zeros(DType::f32, {2}), b = Array::zeros(DType::f32, {3});
  Program program({a, b});
  std::string text;
  mlir::ScopedDiagnosticHandler handler(ir::context(), [&](mlir::Diagnostic &diagnostic) {
    text = ir::whereOf(diagnostic.getLocation()) + ": " + diagnostic.str();
    return mlir::success();
  });
  runtime::Where where{"dir/train.cpp", "step", 41, 3};
  EXPECT_TRUE(mlir::failed(ir::buildOp(program.b, ir::locationOf(ir::context(), where), runtime::OpId::add,
                                       program.block->getArguments(), {})));
  EXPECT_NE(text.find("train.cpp:41 in step"), std::string::npos) << text;
  EXPECT_NE(text.find("'wg.add' op "), std::string::npos) << text;
}

TEST(BridgeTest, PlacesComeBack) {
  runtime::Where where{"dir/train.cpp", "step", 41, 3};
  EXPECT_EQ(ir::whereOf(ir::locationOf(ir::context(), where)), runtime::toString(where));
  EXPECT_EQ(ir::whereOf(mlir::UnknownLoc::get(ir::context())), "");
}
