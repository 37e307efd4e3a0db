// The whole train step of the digits network as an object file: a C program without Wengert
// and LLVM gives the JIT's losses.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace wg;
namespace fs = std::filesystem;

/// Reads the inputs and the sizes of the results from a file, runs the step ten times in
/// place, prints each loss exactly.
static const char kProgram[] = R"(
#include "digits_step.h"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  FILE *file = fopen(argv[1], "rb");
  int64_t inputs, bytes;
  void *args[DIGITS_STEP_NUM_ARGS];
  if (!file || fread(&inputs, 8, 1, file) != 1)
    return 2;
  for (int i = 0; i < DIGITS_STEP_NUM_ARGS; ++i) {
    if (i < inputs && fread(&bytes, 8, 1, file) != 1)
      return 3;
    args[i] = aligned_alloc(64, i < inputs ? (bytes + 63) / 64 * 64 : 64);
    if (i < inputs && fread(args[i], 1, bytes, file) != (size_t)bytes)
      return 4;
  }
  if (digits_step_workspace_bytes(NULL) != DIGITS_STEP_WORKSPACE_BYTES)
    return 6;
  void *workspace = aligned_alloc(64, (DIGITS_STEP_WORKSPACE_BYTES + 64) / 64 * 64);
  for (int step = 0; step < 10; ++step) {
    int32_t code = digits_step(args, NULL, workspace);
    if (code)
      return fprintf(stderr, "%s\n", digits_step_error(code)), 5;
    printf("%a\n", *(float *)args[inputs]);
  }
  return 0;
}
)";

struct AotStepTest : testing::Test {
  fs::path folder = fs::temp_directory_path() / ("wengert_aot_" + std::to_string(::getpid()));
  nn::Sequential model{nn::Dense(64, 32, relu, {.weight = nn::glorot_uniform(1)}),
                       nn::Dense(32, 10, {}, {.weight = nn::glorot_uniform(2)})};
  optim::Adam adam{0.001};
  Function<Tensor(const Tensor &, const Tensor &)> step{"digits_step", [this](const Tensor &x, const Tensor &y) {
                                                          GradientTape tape;
                                                          Tensor loss = nn::cross_entropy(model(x), y);
                                                          adam.apply(tape.gradient(loss, model.trainable_variables()),
                                                                     model.trainable_variables());
                                                          return loss;
                                                        }};
  data::Examples batch = *data::Dataset(data::digits().train).batch(32).begin();

  AotStepTest() { fs::create_directories(folder); }
  ~AotStepTest() override { fs::remove_all(folder); }

  static void write(std::ofstream &out, const void *data, size_t bytes) {
    out.write(static_cast<const char *>(data), static_cast<std::streamsize>(bytes));
  }
  template <class T> static void put(std::ofstream &out, std::span<const T> data) {
    auto bytes = static_cast<int64_t>(data.size_bytes());
    write(out, &bytes, 8);
    write(out, data.data(), data.size_bytes());
  }
  /// Losses of ten steps in C from the present state.
  std::vector<float> inC(const std::string &cpu) {
    ConcreteFunction concrete = step.trace(batch.x, batch.y);
    concrete.write_object(folder.string(), {.name = "digits_step", .cpu = cpu});
    std::ofstream(folder / "main.c") << kProgram;
    std::ofstream out(folder / "inputs.bin", std::ios::binary);
    std::vector<Variable> variables = concrete.variables();
    auto count = static_cast<int64_t>(variables.size()) + 2;
    write(out, &count, 8);
    put(out, batch.x.data<float>());
    put(out, batch.y.data<int32_t>());
    for (const Variable &variable : variables) {
      Tensor value = variable.value();
      if (value.dtype() == f32)
        put(out, value.data<float>());
      else if (value.dtype() == f64)
        put(out, value.data<double>());
      else
        put(out, value.data<int64_t>());
    }
    out.close();
    std::string path = folder.string();
    EXPECT_EQ(std::system(("cc -O1 -Wall -Werror -I" + path + " " + path + "/main.c " + path +
                           "/digits_step.o -lm -o " + path + "/main")
                              .c_str()),
              0);
    EXPECT_EQ(std::system((path + "/main " + path + "/inputs.bin > " + path + "/losses").c_str()), 0);
    std::vector<float> losses;
    std::ifstream in(folder / "losses");
    for (std::string line; std::getline(in, line);)
      losses.push_back(std::strtof(line.c_str(), nullptr));
    return losses;
  }
  std::vector<float> byJit() {
    std::vector<float> losses;
    for (int i = 0; i < 10; ++i)
      losses.push_back(step(batch.x, batch.y).item<float>());
    return losses;
  }
};

TEST_F(AotStepTest, ForTheSameCpuTheLossesAreTheJitsBitForBit) {
  std::vector<float> losses = inC("native");
  EXPECT_EQ(losses, byJit());
  ASSERT_EQ(losses.size(), 10u);
  EXPECT_LT(losses.back(), losses.front());
}

TEST_F(AotStepTest, PlainX86AgreesAndIsSmall) {
  std::vector<float> losses = inC("x86-64-v2"), jit = byJit();
  ASSERT_EQ(losses.size(), 10u);
  for (size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(losses[i], jit[i], 2e-6 * std::abs(jit[i])) << i;
  EXPECT_LE(fs::file_size(folder / "digits_step.o"), 60u * 1024);
}
