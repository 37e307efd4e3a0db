// Calls that nest deeper than a thread's stack, and programs whose calls multiply: every walk over calls ends in a
// result or in an error at a place.
#include "ir/Calls.h"
#include "autodiff/Reverse.h"
#include "codegen/Compile.h"
#include "codegen/Pipeline.h"
#include "codegen/interpret/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Diagnostics.h"
#include "passes/Passes.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace wg;

namespace {

/// Functions f0, f1, ... of `type`; each does `op` and calls the next so often.
OwningOpRef<ModuleOp> chain(int depth, int calls, const std::string &op, const std::string &type) {
  std::string text, signature = "(" + type + ") -> " + type;
  for (int i = 0; i < depth; ++i) {
    text += "func.func " + std::string(i ? "private " : "") + "@f" + std::to_string(i) + "(%x: " + type + ") -> " +
            type + " {\n  %0 = " + op + " %x : " + type + "\n";
    int last = 0;
    for (; last < calls && i + 1 < depth; ++last)
      text += "  %" + std::to_string(last + 1) + " = wg.call @f" + std::to_string(i + 1) + "(%" + std::to_string(last) +
              ") : " + signature + "\n";
    text += "  return %" + std::to_string(last) + " : " + type + "\n}\n";
  }
  return parseSourceString<ModuleOp>(text, ParserConfig(ir::context()));
}

func::FuncOp first(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("f0"); }

double resultOf(func::FuncOp function, double x) {
  FailureOr<codegen::Program> program = codegen::flatten(function);
  if (failed(program))
    return NAN;
  runtime::Array input = runtime::Array::scalar(x);
  auto outputs = codegen::interpret(*program, std::span(&input, 1));
  return outputs.ok() ? outputs->front().data<double>()[0] : NAN;
}

std::string errorOf(llvm::function_ref<LogicalResult()> f) {
  ir::Diagnostics diagnostics(ir::context());
  if (succeeded(f()))
    return "no error";
  return diagnostics.take("no message").message;
}

constexpr int kDeep = 10'000;

} // namespace

TEST(CallsTest, DeepCallsAreFlattenedInlinedAndSpecialised) {
  OwningOpRef<ModuleOp> module = chain(kDeep, 1, "wg.neg", "tensor<f64>");
  EXPECT_EQ(resultOf(first(*module), 3.0), 3.0);
  EXPECT_TRUE(succeeded(passes::inlineCalls(first(*module))));
  EXPECT_EQ(llvm::range_size(first(*module).getBody().front()), size_t(kDeep) + 1);
  module = chain(kDeep, 1, "wg.neg", "tensor<?xf64>");
  EXPECT_TRUE(
      succeeded(passes::inferShapes(first(*module), {RankedTensorType::get({4}, Float64Type::get(ir::context()))})));
  int dynamic = 0;
  module->walk([&](Operation *op) {
    dynamic +=
        llvm::count_if(op->getResultTypes(), [](Type type) { return !cast<RankedTensorType>(type).hasStaticShape(); });
  });
  EXPECT_EQ(dynamic, 0);
}

TEST(CallsTest, TheDerivativeOfDeepCallsIsFoundOrAnErrorAtACall) {
  // Nothing is kept between the two halves of a pair.
  OwningOpRef<ModuleOp> module = chain(kDeep, 1, "wg.neg", "tensor<f64>");
  FailureOr<autodiff::FunctionPair> pair = autodiff::functionPair(first(*module), {0}, {0});
  ASSERT_TRUE(succeeded(pair));
  EXPECT_EQ(resultOf(pair->linear, 5.0), 5.0);
  // Each level returns what those below it keep.
  module = chain(kDeep, 1, "wg.tanh", "tensor<f64>");
  EXPECT_NE(errorOf([&] {
              return LogicalResult(autodiff::functionPair(first(*module), {0}, {0}));
            }).find("have more than 4194304 ops and residuals"),
            std::string::npos);
}

TEST(CallsTest, CallsThatMultiplyAreAnError) {
  OwningOpRef<ModuleOp> module = chain(70, 2, "wg.neg", "tensor<?xf64>");
  auto says = [](const std::string &text) { return text.find("at most 4194304 can be run") != std::string::npos; };
  EXPECT_TRUE(says(errorOf([&] { return LogicalResult(codegen::flatten(first(*module))); })));
  EXPECT_TRUE(says(errorOf([&] { return passes::inlineCalls(first(*module)); })));
  EXPECT_TRUE(says(errorOf([&] {
    return passes::inferShapes(first(*module), {RankedTensorType::get({4}, Float64Type::get(ir::context()))});
  })));
  EXPECT_TRUE(says(errorOf([&] { return LogicalResult(autodiff::functionPair(first(*module), {0}, {0})); })));
  OwningOpRef<ModuleOp> shallow = chain(10, 2, "wg.neg", "tensor<f64>");
  EXPECT_EQ(resultOf(first(*shallow), 3.0), -3.0); // 2^10 - 1 times negated
}

// An entry of many launches is cut into parts, in machine code and in the lowered text, from which it runs as well.
TEST(CallsTest, LongEntriesAreCutIntoParts) {
  constexpr int kLaunches = 130;
  std::string text = "func.func @f(%x0: tensor<3xi64>) -> tensor<3xi64> {\n";
  for (int i = 0; i < kLaunches; ++i)
    text += "  %x" + std::to_string(i + 1) + " = wg.cumsum %x" + std::to_string(i) +
            " axis 0 : tensor<3xi64> -> tensor<3xi64>\n";
  text += "  return %x" + std::to_string(kLaunches) + " : tensor<3xi64>\n}\n";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(ir::context()));
  ASSERT_TRUE(module);
  ASSERT_TRUE(succeeded(codegen::runPipeline(*module, "f", codegen::Stage::traced, codegen::Stage::lowered)));
  std::string lowered;
  llvm::raw_string_ostream stream(lowered);
  module->print(stream);
  EXPECT_NE(lowered.find("@f_part2("), std::string::npos);
  OwningOpRef<ModuleOp> back = parseSourceString<ModuleOp>(lowered, ParserConfig(ir::context()));
  auto executable = codegen::compile(back.release(), "f", {.trustLowered = true}, codegen::Stage::lowered);
  ASSERT_TRUE(executable.ok()) << runtime::toString(executable.failure());
  int64_t x[] = {1, 0, 0}, y[] = {0, 0, 0};
  void *args[] = {x, y};
  EXPECT_EQ((*executable)->run(args), 0);
  EXPECT_EQ(std::vector<int64_t>(y, y + 3), (std::vector<int64_t>{1, kLaunches, kLaunches * (kLaunches + 1) / 2}));
}
