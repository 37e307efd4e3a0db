// What the emitters rely on is checked before they run: a kernel that breaks it is an error
// at the user's line, not a crash.
#include "codegen/Compile.h"
#include "codegen/EmitProgram.h"
#include "ir/Bridge.h"
#include "ir/Diagnostics.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace wg::codegen {
namespace {

/// Writes the loops of a fused program as a pass would have left it: no verifier has seen it.
runtime::Failure failureOf(const std::string &text) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(ir::context(), /*verifyAfterParse=*/false), "user.mlir");
  if (!module) {
    ADD_FAILURE() << text;
    return {};
  }
  ir::Diagnostics diagnostics(module->getContext());
  EntryInfo info;
  std::vector<KernelReport> kernels;
  EXPECT_TRUE(failed(
      emitProgram(*module, module->lookupSymbol<func::FuncOp>("f"), Target::host(), /*options=*/{}, info, kernels)))
      << text;
  return diagnostics.take("no message");
}

TEST(KernelTest, AProductOfWhatIsNotInMemoryIsAnInternalErrorAtItsLine) {
  runtime::Failure failure = failureOf(R"(func.func @f(%x: tensor<5x1x7xf32>, %w: tensor<7x7xf32>) -> tensor<5x7xf32> {
    %0 = wg.kernel contract (%a = %x : tensor<5x1x7xf32>, %b = %w : tensor<7x7xf32>) -> tensor<5x7xf32> {
      %h = wg.reshape %a to [5, 7] : tensor<5x1x7xf32> -> tensor<5x7xf32>
      %p = wg.contract "mk,kn->mn" %h, %b : tensor<5x7xf32>, tensor<7x7xf32> -> tensor<5x7xf32>
      wg.yield %p : tensor<5x7xf32>
    }
    return %0 : tensor<5x7xf32>
  })");
  EXPECT_EQ(failure.kind, runtime::ErrorKind::internal);
  EXPECT_EQ(failure.message, "emit: wg.contract is in a kernel of kind contract, and reads the result of "
                             "wg.reshape from memory, where only inputs of the kernel lie");
  EXPECT_EQ(failure.where, "user.mlir:4");
}

TEST(KernelTest, AValueReadInAnotherPlaceIsAnInternalErrorAtItsLine) {
  runtime::Failure failure = failureOf(R"(func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = wg.kernel reduce (%a = %x : tensor<4x4xf32>) -> tensor<4x4xf32> {
      %s = wg.reduce_sum %a axes [1] : tensor<4x4xf32> -> tensor<4xf32>
      %c = wg.broadcast %s to [4, 4] dims [1] : tensor<4xf32> -> tensor<4x4xf32>
      %y = wg.sub %a, %c : tensor<4x4xf32>
      wg.yield %y : tensor<4x4xf32>
    }
    return %0 : tensor<4x4xf32>
  })");
  EXPECT_EQ(failure.kind, runtime::ErrorKind::internal);
  EXPECT_EQ(failure.message,
            "emit: wg.sub is in a kernel of kind reduce, and reads wg.reduce_sum in another place than its own");
  EXPECT_EQ(failure.where, "user.mlir:5");
}

TEST(KernelTest, SizesInAKernelAreAnError) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = wg.kernel map (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
      %n = wg.dim %a axis 0 : tensor<4xf32>
      wg.yield %a : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  })",
                                                             ParserConfig(ir::context()), "user.mlir");
  ASSERT_TRUE(module);
  auto executable = compile(module.release(), "f", {}, Stage::fused);
  ASSERT_FALSE(executable.ok());
  EXPECT_NE(executable.failure().message.find("machine code is made of wg ops on tensors"), std::string::npos)
      << executable.failure().message;
}

TEST(KernelTest, TheCountsOfAKernelAreThoseOfItsOps) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
  func.func @f(%x: tensor<5x3xf32>, %w: tensor<3x7xf32>, %b: tensor<9x7xf32>) -> tensor<7xf32> {
    %0 = wg.kernel contract (%a = %x : tensor<5x3xf32>, %c = %w : tensor<3x7xf32>) -> tensor<5x7xf32> {
      %p = wg.contract "mk,kn->mn" %a, %c : tensor<5x3xf32>, tensor<3x7xf32> -> tensor<5x7xf32>
      %t = wg.tanh %p : tensor<5x7xf32>
      %y = wg.add %t, %p : tensor<5x7xf32>
      wg.yield %y : tensor<5x7xf32>
    }
    %1 = wg.kernel reduce (%a = %0 : tensor<5x7xf32>) -> tensor<7xf32> {
      %s = wg.reduce_sum %a axes [0] : tensor<5x7xf32> -> tensor<7xf32>
      %y = wg.mul %s, %s : tensor<7xf32>
      wg.yield %y : tensor<7xf32>
    }
    return %1 : tensor<7xf32>
  })",
                                                             ParserConfig(ir::context()), "folder/user.mlir");
  ASSERT_TRUE(module);
  auto executable = compile(module.release(), "f", {}, Stage::fused);
  ASSERT_TRUE(executable.ok()) << toString(executable.failure());
  const std::vector<KernelReport> &kernels = (*executable)->kernels;
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].counts.flops, 2 * 5 * 3 * 7 + 5 * 7);
  EXPECT_EQ(kernels[0].counts.products, 2 * 5 * 3 * 7);
  EXPECT_EQ(kernels[0].counts.transcendentals, 5 * 7);
  EXPECT_EQ(kernels[0].counts.bytes(), 4 * (5 * 3 + 3 * 7 + 5 * 7));
  EXPECT_EQ(kernels[0].lines, "user.mlir:4-6");
  EXPECT_EQ(kernels[1].counts.flops, 5 * 7 + 7);
  EXPECT_EQ(kernels[1].counts.transcendentals, 0);
  EXPECT_EQ(kernels[1].counts.bytes(), 4 * (5 * 7 + 7));
  EXPECT_EQ(kernels[1].lines, "user.mlir:10-11");
}

} // namespace
} // namespace wg::codegen
