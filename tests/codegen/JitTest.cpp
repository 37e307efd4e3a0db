// Compiled code reaches the closed table of symbols and nothing else, from any number of threads.
#include "Compiled.h"

#include "mlir/IR/Diagnostics.h"

#include <cmath>
#include <thread>

namespace wg::codegen {
namespace {

TEST(JitTest, AnEntryRunsAndCallsItsPrivateFunction) {
  auto module = compiled(R"(
    func.func private @twice(%p: !llvm.ptr, %i: i64) {
      %q = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %x = llvm.load %q : !llvm.ptr -> f32
      %y = arith.addf %x, %x : f32
      llvm.store %y, %q : f32, !llvm.ptr
      return
    }
    func.func @f(%args: !llvm.ptr, %sizes: !llvm.ptr, %workspace: !llvm.ptr) -> i32 {
      %p = llvm.load %args : !llvm.ptr -> !llvm.ptr
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      scf.for %i = %c0 to %c3 step %c1 {
        %j = arith.index_cast %i : index to i64
        func.call @twice(%p, %j) : (!llvm.ptr, i64) -> ()
      }
      %ok = arith.constant 0 : i32
      return %ok : i32
    })",
                         Target::host());
  ASSERT_TRUE(module);
  float data[] = {1, 2, 3, 4};
  void *args[] = {data};
  EXPECT_EQ(module->lookup<int32_t(void *const *, const int64_t *, void *)>("f")(args, nullptr, nullptr), 0);
  EXPECT_EQ(std::vector<float>(data, data + 4), (std::vector<float>{2, 4, 6, 4}));
  EXPECT_EQ(module->lookup("twice"), nullptr);
  EXPECT_EQ(module->lookup("no_such"), nullptr);
  EXPECT_GT(module->codeBytes(), 0u);
}

TEST(JitTest, AnUnknownSymbolIsRefusedByName) {
  auto module = lowered(R"(
    func.func private @system(!llvm.ptr) -> i32
    func.func @f(%args: !llvm.ptr, %workspace: !llvm.ptr) -> i32 {
      %r = func.call @system(%args) : (!llvm.ptr) -> i32
      return %r : i32
    })",
                        Target::host());
  ASSERT_TRUE(module);
  auto result = jit(*module, Target::host());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.failure().kind, runtime::ErrorKind::lookup);
  EXPECT_NE(result.failure().message.find("'system'"), std::string::npos) << result.failure().message;
}

TEST(JitTest, ASymbolOfTheCallerIsFound) {
  auto module = lowered(R"(
    func.func private @answer() -> i32
    func.func @f() -> i32 {
      %r = func.call @answer() : () -> i32
      return %r : i32
    })",
                        Target::host());
  ASSERT_TRUE(module);
  int32_t (*answer)() = [] { return 42; };
  auto result = jit(*module, Target::host(), {{"answer", reinterpret_cast<void *>(answer)}});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ((*result)->lookup<int32_t()>("f")(), 42);
}

TEST(JitTest, ThreadsCompileAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> sums(8);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t, &sums] {
      auto module = compiled(mapText("map", "math.tanh", "f32", Target::host().lanes(4)) +
                                 "func.func @number() -> i32 { %c = arith.constant " + std::to_string(t) +
                                 " : i32 return %c : i32 }",
                             Target::host());
      sums[t] = module ? module->lookup<int32_t()>("number")() : -1;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(sums, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(JitTest, MasksAndReductionsAndTransposesLower) {
  for (const Target &target : runnableTargets()) {
    auto module = compiled(R"(
    func.func @tail(%x: !llvm.ptr, %y: !llvm.ptr, %n: index) -> f32 {
      %zero = arith.constant dense<0.0> : vector<16xf32>
      %m = vector.create_mask %n : vector<16xi1>
      %v = llvm.intr.masked.load %x, %m, %zero {alignment = 4 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
      llvm.intr.masked.store %v, %y, %m {alignment = 4 : i32} : vector<16xf32>, vector<16xi1> into !llvm.ptr
      %s = vector.reduction <add>, %v : vector<16xf32> into f32
      return %s : f32
    }
    func.func @transpose(%x: !llvm.ptr, %y: !llvm.ptr) {
      %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
      %m = vector.shape_cast %v : vector<4xf32> to vector<2x2xf32>
      %t = vector.transpose %m, [1, 0] : vector<2x2xf32> to vector<2x2xf32>
      %w = vector.shape_cast %t : vector<2x2xf32> to vector<4xf32>
      llvm.store %w, %y {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
      return
    })",
                           target);
    ASSERT_TRUE(module) << target.cpu;
    auto *tail = module->lookup<float(const float *, float *, int64_t)>("tail");
    std::vector<float> x(16), y(16, -1);
    for (int i = 0; i < 16; ++i)
      x[i] = static_cast<float>(i + 1);
    EXPECT_EQ(tail(x.data(), y.data(), 3), 6.0f);
    EXPECT_EQ(y, (std::vector<float>{1, 2, 3, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}));
    // A count beyond 32 bits still means all lanes, and a negative one none.
    EXPECT_EQ(tail(x.data(), y.data(), int64_t(1) << 33), 136.0f);
    EXPECT_EQ(tail(x.data(), y.data(), -1), 0.0f);
    module->lookup<void(const float *, float *)>("transpose")(x.data(), y.data());
    EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 4), (std::vector<float>{1, 3, 2, 4}));
  }
}

TEST(JitTest, PowIsALibraryCallForEachLane) {
  auto module = compiled(R"(
    func.func @f(%x: !llvm.ptr, %y: !llvm.ptr, %z: !llvm.ptr) {
      %a = llvm.load %x {alignment = 8 : i64} : !llvm.ptr -> vector<3xf64>
      %b = llvm.load %y {alignment = 8 : i64} : !llvm.ptr -> vector<3xf64>
      %c = math.powf %a, %b : vector<3xf64>
      llvm.store %c, %z {alignment = 8 : i64} : vector<3xf64>, !llvm.ptr
      return
    })",
                         Target::host());
  ASSERT_TRUE(module);
  double x[] = {2, -8, 0.3}, y[] = {10, 3, 0.7}, z[3];
  module->lookup<void(const double *, const double *, double *)>("f")(x, y, z);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(z[i], std::pow(x[i], y[i]));
}

TEST(JitTest, AFunctionNamedLikeOneOfLibmIsToldApart) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context(), [&](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
  EXPECT_FALSE(lowered(mapText("pow", "math.absf", "f64", 2) + R"(
    func.func @g(%x: f64) -> f64 {
      %y = math.powf %x, %x : f64
      return %y : f64
    })",
                       Target::host()));
  EXPECT_NE(message.find("'pow'"), std::string::npos) << message;
}

TEST(JitTest, WithoutFmaHardwareNoLibraryCallRemains) {
  std::optional<Target> target = Target::named("x86-64-v2");
  ASSERT_TRUE(target);
  auto module = compiled(R"(
    func.func @f(%x: f32) -> f32 {
      %v = vector.broadcast %x : f32 to vector<4xf32>
      %w = math.fma %v, %v, %v : vector<4xf32>
      %u = vector.fma %w, %v, %v : vector<4xf32>
      %r = vector.extract %u[2] : f32 from vector<4xf32>
      return %r : f32
    })",
                         *target);
  ASSERT_TRUE(module);
  EXPECT_EQ(module->lookup<float(float)>("f")(2.0f), 14.0f);
}

TEST(TargetTest, NamesAndTheirFacts) {
  EXPECT_FALSE(Target::named("no-such-cpu"));
  EXPECT_FALSE(Target::named("pentium3"));
  std::optional<Target> v2 = Target::named("x86-64-v2"), v3 = Target::named("x86-64-v3"),
                        v4 = Target::named("x86-64-v4");
  ASSERT_TRUE(v2 && v3 && v4);
  EXPECT_EQ(v2->vectorBytes, 16);
  EXPECT_FALSE(v2->hasFma);
  EXPECT_FALSE(v2->hasMaskedMemory);
  EXPECT_EQ(v3->vectorBytes, 32);
  EXPECT_TRUE(v3->hasFma && v3->hasMaskedMemory);
  // With AVX-512 how memory compares with arithmetic is known of some CPUs, and of no level.
  using passes::Machine;
  auto machine = [](const char *cpu) { return Target::named(cpu)->machine; };
  EXPECT_EQ(machine("znver4"), Machine::fastMemory);
  for (const char *cpu : {"skylake-avx512", "sapphirerapids", "rocketlake"})
    EXPECT_EQ(machine(cpu), Machine::slowMemory) << cpu;
  EXPECT_EQ(machine("znver5"), Machine::fast);
  EXPECT_EQ(machine("x86-64-v4"), Machine::both);
  for (const char *cpu : {"znver3", "x86-64-v3", "x86-64-v2", "haswell"})
    EXPECT_EQ(machine(cpu), Machine::narrowVectors) << cpu;
  EXPECT_EQ(v4->vectorBytes, 64);
  EXPECT_EQ(v4->numVectorRegisters, 32);
  EXPECT_EQ(v4->lanes(4), 16);
  EXPECT_NE(v3->key(), v4->key());
}

} // namespace
} // namespace wg::codegen
