// Routines: where compiled code may find them, and what becomes of the errors that they return.
#include "runtime/External.h"
#include "codegen/Compile.h"
#include "ir/Bridge.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace wg::codegen {
namespace {

/// A routine that can fail: y = x + 1, element by element, up to the first that is negative.
int32_t addUntilNegative(void *const *pointers, const int64_t *numbers, void *scratch) {
  auto *x = static_cast<const int64_t *>(pointers[0]);
  auto *y = static_cast<int64_t *>(pointers[1]);
  auto *seen = static_cast<int64_t *>(scratch);
  for (int64_t i = 0; i < numbers[0]; ++i) {
    if (x[i] < 0)
      return x[i] == -1 ? 1 : 2;
    y[i] = seen[i] = x[i] + 1;
  }
  return 0;
}
const char *const kStatuses[] = {"an element is -1", "an element is below -1"};

/// In this process first_occurrence is that routine.
struct Model : ir::External::ExternalModel<Model, ir::FirstOccurrenceOp> {
  runtime::ExternalCall routine(Operation *op) const {
    int64_t n = cast<RankedTensorType>(op->getResult(0).getType()).getNumElements();
    return {"wg_test_add", {n}, 8 * n};
  }
  SmallVector<StringRef> statuses(Operation *) const {
    return SmallVector<StringRef>(std::begin(kStatuses), std::end(kStatuses));
  }
  int64_t overwritten(Operation *) const { return 0; }
};

struct ExternalTest : testing::Test {
  static void SetUpTestSuite() {
    runtime::addRoutine({"wg_test_add", addUntilNegative});
    ir::FirstOccurrenceOp::attachInterface<Model>(*ir::context());
  }
  static runtime::Result<std::shared_ptr<const Executable>> compiled(const std::string &text,
                                                                     Stage from = Stage::traced) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(ir::context()), "user.mlir");
    if (!module)
      return runtime::valueError("does not parse");
    return compile(module.release(), "f", {.trustLowered = true}, from);
  }
};

// The second result replaces the argument %x, which the routine reads: had it been computed there, x would be damaged.
const char *const kProgram = R"(
func.func @f(%x: tensor<4xi64> {wg.result = 1 : i64}, %z: tensor<4xi64> {wg.result = 0 : i64}) -> (tensor<4xi64>, tensor<4xi64>) {
  %n = wg.neg %z : tensor<4xi64>
  %y = wg.first_occurrence %x : tensor<4xi64> -> tensor<4xi64>
  return %n, %y : tensor<4xi64>, tensor<4xi64>
})";

TEST_F(ExternalTest, AStatusIsTheErrorAtTheUsersLineAndChangesNoArgument) {
  auto executable = compiled(kProgram);
  ASSERT_TRUE(executable.ok()) << runtime::toString(executable.failure());
  std::array<int64_t, 4> x{1, 2, 3, 4}, z{5, 6, 7, 8};
  void *args[] = {x.data(), z.data()};
  alignas(64) char workspace[1024];
  ASSERT_LE((*executable)->info.workspaceBytes, 1024);
  EXPECT_EQ((*executable)->entry(args, nullptr, workspace), 0);
  EXPECT_EQ(x, (std::array<int64_t, 4>{2, 3, 4, 5}));
  EXPECT_EQ(z, (std::array<int64_t, 4>{-5, -6, -7, -8}));
  for (int64_t bad : {-1, -9}) {
    x[2] = bad;
    std::array<int64_t, 4> before = x, other = z;
    int32_t code = (*executable)->entry(args, nullptr, workspace);
    ASSERT_NE(code, 0);
    EXPECT_EQ(x, before);
    EXPECT_EQ(z, other) << "what cannot fail runs later";
    runtime::Failure failure = (*executable)->failure(code, {});
    EXPECT_EQ(failure.op, "first_occurrence");
    EXPECT_EQ(failure.message, bad == -1 ? kStatuses[0] : kStatuses[1]);
    EXPECT_EQ(failure.where, "user.mlir:4");
  }
}

const char *const kLowered = R"(
func.func private @wg_triangular_solve_f32(!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
func.func @f(%args: !llvm.ptr, %sizes: !llvm.ptr, %workspace: !llvm.ptr) -> i32 attributes {wg.inputs = [tensor<1xf32>], wg.results = [], wg.donated = array<i64>,
    wg.workspace_bytes = 64 : i64, wg.errors = [], wg.error_places = []} {
  %a = llvm.load %args : !llvm.ptr -> !llvm.ptr
  %s = func.call @wg_triangular_solve_f32(%a, %a, %a) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  return %s : i32
})";

std::string with(std::string text, const std::string &what, const std::string &by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

TEST_F(ExternalTest, LoweredTextCallsRoutinesOfTheTableByTheirType) {
  auto fine = compiled(kLowered, Stage::lowered);
  EXPECT_TRUE(fine.ok()) << runtime::toString(fine.failure());
  auto unknown = compiled(with(kLowered, "wg_triangular_solve_f32", "wg_no_such_routine"), Stage::lowered);
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.failure().message.find("names the runtime's routines and wg_parallel_for alone"), std::string::npos)
      << unknown.failure().message;
  EXPECT_EQ(unknown.failure().where, "user.mlir:2");
  auto other = compiled(
      with(with(kLowered, "!llvm.ptr, !llvm.ptr, !llvm.ptr", "!llvm.ptr, !llvm.ptr"), "(%a, %a, %a)", "(%a, %a)"),
      Stage::lowered);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.failure().message.find("a routine is of type '(!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32'"),
            std::string::npos)
      << other.failure().message;
}

TEST_F(ExternalTest, AFunctionOfARoutinesNameIsAnotherFunction) {
  auto executable = compiled(R"(
func.func private @wg_triangular_solve_f64(%x: tensor<2x2xf64>) -> tensor<2x2xf64> {
  %y = wg.neg %x : tensor<2x2xf64>
  return %y : tensor<2x2xf64>
}
func.func @f(%x: tensor<2x2xf64>) -> tensor<2x2xf64> {
  %y = wg.call @wg_triangular_solve_f64(%x) : (tensor<2x2xf64>) -> tensor<2x2xf64>
  %z = wg.triangular_solve %x, %y : tensor<2x2xf64>, tensor<2x2xf64> -> tensor<2x2xf64>
  return %z : tensor<2x2xf64>
})");
  ASSERT_TRUE(executable.ok()) << runtime::toString(executable.failure());
  double x[] = {2, 7, 4, 8}, z[4];
  void *args[] = {x, z};
  ASSERT_EQ((*executable)->run(args), 0);
  EXPECT_EQ(z[0], -1); // x (-1, ...) = -x in its first column
  EXPECT_EQ(z[2], 0);
}

TEST_F(ExternalTest, AnObjectCallsOnlyWhatIsInTheLibrary) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kProgram, ParserConfig(ir::context()), "user.mlir");
  ASSERT_TRUE(module);
  runtime::Status status = compileToObject(module.release(), "f", Target::host(), testing::TempDir(), "f");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.failure().message.find("'wg_test_add'"), std::string::npos) << status.failure().message;
  EXPECT_EQ(status.failure().where, "user.mlir:4");
}

} // namespace
} // namespace wg::codegen
