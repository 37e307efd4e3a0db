// Kernels that one program has compiled are not compiled again for the next; the cache is bounded, and what it gives up
// runs on where it is in use.
#include "codegen/Compile.h"
#include "ir/Bridge.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

using namespace mlir;
using namespace wg;
using codegen::KernelCache;

namespace {

using Program = std::shared_ptr<const codegen::Executable>;

/// @name(x) = what `ops` make of x, a tensor of n f64; its result is %y.
Program compiled(KernelCache *cache, const std::string &name, const std::string &ops, int64_t n = 64) {
  std::string type = "tensor<" + std::to_string(n) + "xf64>", body = ops;
  for (size_t at; (at = body.find("T")) != std::string::npos;)
    body.replace(at, 1, type);
  auto module = parseSourceString<ModuleOp>("func.func @" + name + "(%x: " + type + ") -> " + type + " {\n" + body +
                                                "\n  return %y : " + type + "\n}",
                                            ParserConfig(ir::context()));
  EXPECT_TRUE(module);
  auto result = codegen::compile(module.release(), name, {.cache = cache});
  EXPECT_TRUE(result.ok()) << toString(result.failure());
  return *result;
}

double run(const Program &program, double x, int64_t n = 64) {
  std::vector<double> in(n, x), out(n);
  void *args[] = {in.data(), out.data()};
  EXPECT_EQ(program->run(args), 0);
  for (double value : out)
    EXPECT_EQ(value, out[0]);
  return out[0];
}

const char *const kSquare = "%y = wg.mul %x, %x : T", *const kDouble = "%y = wg.add %x, %x : T";

} // namespace

TEST(KernelCacheTest, AnEqualKernelIsTakenFromAnotherProgram) {
  KernelCache cache;
  Program first = compiled(&cache, "first", kSquare);
  EXPECT_EQ(cache.use().kernels, 1u);
  EXPECT_EQ(cache.use().found, 0);
  Program second = compiled(&cache, "second", kSquare);
  EXPECT_EQ(cache.use().found, 1);
  EXPECT_EQ(cache.use().modules, 1u); // it has left nothing of its own
  EXPECT_LT(second->codeBytes, first->codeBytes);
  EXPECT_EQ(run(second, 3), 9);
  first.reset(); // the code stays where it is
  EXPECT_EQ(run(second, 3), 9);
  // Of another size, or another op: another kernel.
  EXPECT_EQ(run(compiled(&cache, "third", kSquare, 65), 4, 65), 16);
  EXPECT_EQ(run(compiled(&cache, "fourth", kDouble), 4), 8);
  EXPECT_EQ(cache.use().found, 1);
  EXPECT_EQ(cache.use().kernels, 3u);
}

TEST(KernelCacheTest, WhereAKernelWasWrittenAndWhatItsProgramIsCalledIsNotInTheKey) {
  KernelCache cache;
  Program plain = compiled(&cache, "plain", "%s = wg.exp %x : T\n %y = wg.tanh %s : T");
  Program other =
      compiled(&cache, "memcpy_2", "\n\n %a = wg.exp %x : T loc(\"elsewhere.cpp\":7:1)\n\n %y = wg.tanh %a : T");
  EXPECT_EQ(cache.use().found, 1);
  EXPECT_EQ(run(plain, 0.25), run(other, 0.25));
}

TEST(KernelCacheTest, KernelsThatThreadsShareAreFoundWithTheirPieces) {
  KernelCache cache;
  constexpr int64_t n = 1 << 18;
  Program first = compiled(&cache, "first", kSquare, n), second = compiled(&cache, "second", kSquare, n);
  EXPECT_EQ(cache.use().found, 1);
  EXPECT_EQ(run(second, 3, n), 9);
  EXPECT_EQ(run(first, 3, n), 9);
}

TEST(KernelCacheTest, WhatWasNotUsedForLongestGoesAndRunsOnWhereItIsInUse) {
  KernelCache cache(200'000); // two modules and a little
  Program square = compiled(&cache, "square", kSquare), twice = compiled(&cache, "twice", kDouble);
  EXPECT_EQ(cache.use().modules, 2u);
  Program user = compiled(&cache, "user", kSquare); // now the other one is the oldest
  EXPECT_EQ(cache.use().found, 1);
  for (int64_t n = 100; n < 140; ++n)
    run(compiled(&cache, "f", kSquare, n), 2, n);
  EXPECT_LE(cache.use().bytes, 200'000u);
  EXPECT_LE(cache.use().modules, 3u);
  EXPECT_GE(cache.use().evicted, 39);
  square.reset();
  EXPECT_EQ(run(user, 5), 25); // in memory as long as it is in use
  EXPECT_EQ(run(twice, 5), 10);
  int64_t found = cache.use().found;
  EXPECT_EQ(run(compiled(&cache, "again", kSquare), 6), 36); // compiled anew
  EXPECT_EQ(cache.use().found, found);
}

TEST(KernelCacheTest, AnyThreadCompilesWithIt) {
  KernelCache cache(300'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&cache, t] {
      for (int64_t i = 0; i < 12; ++i) {
        int64_t n = 32 + (i * 7 + t) % 5;
        EXPECT_EQ(run(compiled(&cache, "f" + std::to_string(t), kSquare, n), 3, n), 9);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_GT(cache.use().found, 0);
}

TEST(KernelCacheTest, WhatTheCallersPassesMakeOfAKernelIsTheirsAlone) {
  KernelCache cache;
  const char *text =
      "func.func @f(%x: tensor<64xf64>) -> tensor<64xf64> {\n %y = wg.mul %x, %x : tensor<64xf64>\n return %y : "
      "tensor<64xf64>\n}";
  registerTransformsPasses();
  codegen::registerStages();
  auto with = [&](codegen::PassesAfter passes) {
    auto module = parseSourceString<ModuleOp>(text, ParserConfig(ir::context()));
    return codegen::compile(module.release(), "f", {.passes = {passes}, .cache = &cache});
  };
  auto fine = with({codegen::Stage::lowered, "symbol-privatize{exclude=f}"});
  ASSERT_TRUE(fine.ok()) << toString(fine.failure());
  EXPECT_EQ(run(*fine, 3), 9);
  EXPECT_EQ(cache.use().kernels, 0u);
  // Passes that take the program away are an error that says after which stage.
  for (auto [stage, name] : {std::pair(codegen::Stage::traced, "traced"), std::pair(codegen::Stage::fused, "fused"),
                             std::pair(codegen::Stage::llvm, "llvm")}) {
    auto gone = with({stage, "symbol-privatize,symbol-dce"});
    ASSERT_FALSE(gone.ok());
    EXPECT_NE(gone.failure().message.find("the passes after stage " + std::string(name) + " leave no function @f"),
              std::string::npos)
        << gone.failure().message;
  }
  EXPECT_FALSE(with({codegen::Stage::fused, "wg-lower"}).ok());
  EXPECT_EQ(run(compiled(&cache, "plain", kSquare), 3), 9);
}

TEST(KernelCacheTest, WithoutOneEveryProgramIsWhole) {
  Program program = compiled(nullptr, "whole", kSquare);
  EXPECT_EQ(run(program, 7), 49);
}

TEST(KernelCacheTest, KernelsThatCallExpAndItsLikeAreNotKept) {
  KernelCache cache;
  const std::string f64 = " : tensor<64xf64>\n";
  std::string text = "func.func @many(%x: tensor<64xf64>, %u: tensor<32x3xf64>) -> (tensor<64xf64>, tensor<32x3xf64>) "
                     "{\n %y0 = wg.tanh %x" +
                     f64;
  constexpr int kOps = 300; // more than are copied
  for (int i = 0; i < kOps; ++i)
    text += " %a" + std::to_string(i) + " = wg.add %y" + std::to_string(i) + ", %x" + f64 + " %y" +
            std::to_string(i + 1) + " = wg.tanh %a" + std::to_string(i) + f64;
  text += " %z = wg.mul %u, %u : tensor<32x3xf64>\n return %y" + std::to_string(kOps) +
          ", %z : tensor<64xf64>, tensor<32x3xf64>\n}";
  auto program = [&](KernelCache *cache, bool callMath) {
    auto result = codegen::compile(parseSourceString<ModuleOp>(text, ParserConfig(ir::context())).release(), "many",
                                   {.callMath = callMath, .cache = cache});
    EXPECT_TRUE(result.ok()) << toString(result.failure());
    return *result;
  };
  std::vector<double> x(64, 0.3), u(96, 3), y(64), z(96);
  void *args[] = {x.data(), u.data(), y.data(), z.data()};
  double expected = std::tanh(0.3);
  for (int i = 0; i < kOps; ++i)
    expected = std::tanh(expected + 0.3);
  for (int turn = 0; turn < 2; ++turn) {
    Program many = program(&cache, false);
    EXPECT_TRUE(many->callsMath);
    ASSERT_EQ(many->run(args), 0);
    EXPECT_NEAR(y[0], expected, 1e-14);
    EXPECT_EQ(z[95], 9);
    EXPECT_EQ(cache.use().kernels, 1u); // the product alone
    EXPECT_EQ(cache.use().found, turn);
  }
  EXPECT_FALSE(compiled(&cache, "few", "%y = wg.tanh %x : T")->callsMath);
}
