// An object file from a lowered module, linked by the system's compiler into a C program that has never heard of
// Wengert.
#include "Compiled.h"

#include "codegen/Aot.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace wg::codegen {
namespace {

namespace fs = std::filesystem;

/// y = tanh(x) + sin(x) over 16 elements; error 1 if workspace is null.
const char *const kEntry = R"(
  func.func private @body(%x: !llvm.ptr, %y: !llvm.ptr) {
    %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
    %t = math.tanh %v : vector<16xf32>
    %s = math.sin %v : vector<16xf32>
    %r = arith.addf %t, %s : vector<16xf32>
    llvm.store %r, %y {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
    return
  }
  func.func @step(%args: !llvm.ptr, %sizes: !llvm.ptr, %workspace: !llvm.ptr) -> i32 {
    %null = llvm.mlir.zero : !llvm.ptr
    %bad = llvm.icmp "eq" %workspace, %null : !llvm.ptr
    %code = arith.extui %bad : i1 to i32
    scf.if %bad {
    } else {
      %x = llvm.load %args : !llvm.ptr -> !llvm.ptr
      %second = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
      %y = llvm.load %second : !llvm.ptr -> !llvm.ptr
      func.call @body(%x, %y) : (!llvm.ptr, !llvm.ptr) -> ()
    }
    return %code : i32
  })";

const char *const kMain = R"(
#include "step.h"
#include <math.h>
#include <stdio.h>
int main(void) {
  float x[STEP_ARG0_ELEMENTS], y[STEP_ARG1_ELEMENTS];
  char workspace[STEP_WORKSPACE_BYTES];
  void *args[STEP_NUM_ARGS];
  int i;
  args[0] = x, args[1] = y;
  for (i = 0; i < 16; ++i) x[i] = (float)i / 4 - 2;
  if (step(args, 0, workspace)) return 1;
  for (i = 0; i < 16; ++i)
    if (fabs(y[i] - (tanh(x[i]) + sin(x[i]))) > 1e-6) return 2;
  printf("%s", step_error(step(args, 0, 0)));
  return 0;
}
)";

std::string output(const std::string &command, int &code) {
  std::string text;
  FILE *pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[256];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, n);
  code = pclose(pipe);
  return text;
}

struct AotTest : testing::Test {
  fs::path directory = fs::temp_directory_path() / ("wengert-aot-" + std::to_string(getpid()));
  void SetUp() override { fs::create_directories(directory); }
  void TearDown() override { fs::remove_all(directory); }
  void write(const char *name, const std::string &text) { std::ofstream(directory / name) << text; }
};

CEntry entry() {
  return {.name = "step",
          .summary = "tanh plus sin */ of \"x\"",
          .arguments = {{"x", {runtime::DType::f32, {16}}}},
          .results = {{"y", {runtime::DType::f32, {16}}}},
          .workspaceBytes = 64,
          .errors = {"no \"workspace\"?\\ at step.cpp:3"},
          .calls = {}};
}

TEST_F(AotTest, AnObjectRunsInACProgram) {
  for (const Target &target : runnableTargets()) {
    auto module = lowered(kEntry, target);
    ASSERT_TRUE(module);
    runtime::Result<std::string> object = emitObject(*module, target);
    ASSERT_TRUE(object.ok()) << runtime::toString(object.failure());
    write("step.o", *object);
    write("step.h", cHeader(entry()));
    write("main.c", kMain);
    int code;
    std::string in = "cd " + directory.string() + " && ";
    std::string text =
        output(in + "cc -std=c99 -pedantic -Wall -Wextra -Werror main.c step.o -o main -lm && ./main", code);
    EXPECT_EQ(code, 0) << text;
    EXPECT_EQ(text, "no \"workspace\"?\\ at step.cpp:3") << target.cpu;
    EXPECT_EQ(output(in + "nm step.o | grep -c ' T '", code), "1\n"); // helpers are not visible
    EXPECT_EQ(output(in + "nm -u step.o", code), "                 U sinf\n");
  }
}

TEST_F(AotTest, TheHeaderIsCxxToo) {
  write("step.h", cHeader(entry()));
  write("use.cpp", "#include \"step.h\"\n#include \"step.h\"\nint main() { return step_error(1)[0] != 'n'; }\n");
  int code;
  EXPECT_EQ(
      output("cd " + directory.string() + " && c++ -Wall -Wextra -Werror -pedantic use.cpp -o use && ./use", code), "");
  EXPECT_EQ(code, 0);
}

TEST_F(AotTest, TheHeaderDocumentsOrderAndSizes) {
  std::string text = cHeader(entry());
  EXPECT_NE(text.find("0        float *         x: f32[16], 64 bytes, read"), std::string::npos) << text;
  EXPECT_NE(text.find("1        float *         y: f32[16], 64 bytes, written"), std::string::npos) << text;
  EXPECT_NE(text.find("#define STEP_WORKSPACE_BYTES 64"), std::string::npos) << text;
}

TEST_F(AotTest, ASymbolOfTheRuntimeIsRefused) {
  auto module = lowered("func.func private @wg_print() func.func @f() { func.call @wg_print() : () -> () return }",
                        Target::host());
  runtime::Result<std::string> object = emitObject(*module, Target::host());
  ASSERT_FALSE(object.ok());
  EXPECT_NE(object.failure().message.find("'wg_print'"), std::string::npos);
}

TEST_F(AotTest, AssemblyIsText) {
  auto module = lowered(kEntry, *Target::named("x86-64-v4"));
  auto text = emitAssembly(*module, *Target::named("x86-64-v4"));
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("zmm"), std::string::npos);
}

} // namespace
} // namespace wg::codegen
