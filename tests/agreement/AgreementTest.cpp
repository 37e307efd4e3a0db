// Interpreter and compiled code agree, as docs/numbers.md says: on every sample of every op, on many numbers of each
// op's range, and on the programs of programs/*.mlir.
#include "ir/Bridge.h"
#include "tests/Composites.h"
#include "tests/agreement/Bounds.h"
#include "tests/agreement/Engines.h"

#include "mlir/Parser/Parser.h"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace mlir;

namespace wg::tests {
namespace {

using runtime::DType;

/// A module with one function that applies the op to its arguments.
OwningOpRef<ModuleOp> moduleOf(const Sample &sample) {
  MLIRContext *context = ir::context();
  OpBuilder b(context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  SmallVector<Type> types;
  for (const runtime::Array &operand : sample.operands)
    types.push_back(ir::tensorTypeOf(context, operand.type));
  auto function = func::FuncOp::create(loc, "f", b.getFunctionType(types, {}));
  module->push_back(function);
  Block *block = function.addEntryBlock();
  b.setInsertionPointToStart(block);
  FailureOr<Operation *> op = ir::buildOp(b, loc, sample.op, block->getArguments(), sample.attrs);
  if (failed(op))
    return nullptr;
  func::ReturnOp::create(b, loc, (*op)->getResults());
  function.setType(b.getFunctionType(types, (*op)->getResultTypes()));
  return module;
}

struct SampleText {
  runtime::OpId op;
  const char *text;
};
const SampleText kSamples[] = {
#define WG_SAMPLE(op, text) {runtime::OpId::op, text},
#include "tests/Samples.inc"
#undef WG_SAMPLE
};

/// The same type and the same numbers; a NaN equals a NaN.
void checkEqual(const runtime::Array &eager, const runtime::Array &interpreted) {
  ASSERT_EQ(runtime::toString(eager.type), runtime::toString(interpreted.type));
  Tensor a = wg::detail::makeTensor(eager), b = wg::detail::makeTensor(interpreted);
  Tensor same = runtime::isFloat(eager.dtype()) ? (a == b) || (is_nan(a) && is_nan(b)) : a == b;
  EXPECT_TRUE(reduce_all(same).item<bool>()) << "eager " << a << "\ninterpreted " << b;
}

/// The dtypes in which a sample runs: those that the op accepts where its data are written in f64,
/// else the one it is written in.
std::vector<DType> dtypesOf(const SampleText &sample) {
  std::string_view text = sample.text;
  if (text.find("f64[") == std::string_view::npos)
    return {DType::f64};
  // A condition or an index before the data does not restrict it. Values that no integer has keep a sample to floats.
  runtime::DTypeSet accepted = text.starts_with("f64[") ? recordOf(sample.op).dtypes : runtime::kAnyDType;
  if (text.find("nan") != std::string_view::npos || text.find("1e20") != std::string_view::npos)
    accepted &= runtime::kFloats;
  std::vector<DType> dtypes;
  for (DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32, DType::u8})
    if (accepted & setOf(dtype))
      dtypes.push_back(dtype);
  return dtypes;
}

/// What the op's row says of its results in this dtype. The scale of a sum is the sum of the absolute terms.
Tolerance toleranceOf(const Sample &sample, DType dtype, ModuleOp module, double *met = nullptr) {
  OpBound bound = boundOf(recordOf(sample.op).name, dtype);
  if (bound.ulps == 0)
    return {};
  std::vector<runtime::Array> operands = sample.operands;
  for (runtime::Array &operand : operands)
    if (bound.ofTerms && runtime::isFloat(operand.dtype()))
      operand = wg::detail::arrayOf(abs(wg::detail::makeTensor(operand)));
  return {.ulps = bound.ulps, .scales = interpreted(module, "f", operands), .met = met};
}

class Samples : public ::testing::TestWithParam<SampleText> {};

TEST_P(Samples, InterpreterAndCompiledCodeAgree) {
  if (GetParam().op == runtime::OpId::dim || GetParam().op == runtime::OpId::size)
    return; // an index, not a tensor: it folds before anything is compiled
  for (DType dtype : dtypesOf(GetParam())) {
    Sample sample = parseSample(GetParam().op, GetParam().text, 1, dtype);
    OwningOpRef<ModuleOp> module = moduleOf(sample);
    ASSERT_TRUE(module) << GetParam().text;
    SCOPED_TRACE(std::string(recordOf(GetParam().op).name) + " " + GetParam().text + " in " +
                 std::string(nameOf(dtype)));
    checkAgreement(*module, "f", sample.operands, toleranceOf(sample, dtype, *module));
    if (HasFailure())
      return;
  }
}

std::string nameOfSample(const ::testing::TestParamInfo<SampleText> &info) {
  return std::string(runtime::recordOf(info.param.op).name) + "_" + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(Every, Samples, ::testing::ValuesIn(kSamples), nameOfSample);

/// The sample with each axis of its operands `times` as long, if its operands are drawn from intervals and its
/// attributes name no sizes.
std::optional<std::string> larger(const SampleText &sample, int64_t times) {
  std::string_view text = sample.text;
  if (text.find('=') < text.find('|') || text.find("shape") != text.npos || text.find("limits") != text.npos ||
      text.find("related") != text.npos)
    return std::nullopt;
  std::string larger;
  for (std::string_view operand : detail::split(text.substr(0, text.find('|')), ';')) {
    size_t open = operand.find('['), close = operand.find(']');
    larger += (larger.empty() ? "" : "; ") + std::string(operand.substr(0, open + 1));
    for (int64_t size : detail::integers(operand))
      larger += (larger.back() == '[' ? "" : ",") + std::to_string(size == 1 ? 1 : size * times);
    larger += operand.substr(close);
  }
  return larger + std::string(text.substr(std::min(text.find('|'), text.size())));
}

class Ranges : public ::testing::TestWithParam<runtime::OpId> {};

/// On enough numbers that a bound which is never met is found: more than twice as wide as what was seen.
TEST_P(Ranges, InterpreterAndCompiledCodeAgree) {
  std::string name(recordOf(GetParam()).name);
  for (DType dtype : {DType::f64, DType::f32}) {
    double met = 0;
    bool tried = false;
    for (const SampleText &text : kSamples) {
      // An elementwise op costs its elements; a sum over all axes wants long ones.
      std::optional<std::string> many =
          text.op == GetParam() ? larger(text, recordOf(text.op).elementwise ? 48 : 12) : std::nullopt;
      if (!many || !(recordOf(text.op).dtypes & setOf(dtype)))
        continue;
      tried = true;
      SCOPED_TRACE(name + " " + *many + " in " + std::string(nameOf(dtype)));
      Sample sample = parseSample(text.op, *many, 2, dtype);
      OwningOpRef<ModuleOp> module = moduleOf(sample);
      ASSERT_TRUE(module);
      checkAgreement(*module, "f", sample.operands, toleranceOf(sample, dtype, *module, &met));
      if (HasFailure())
        return;
    }
    double bound = boundOf(name, dtype).ulps;
    RecordProperty(std::string(nameOf(dtype)), std::to_string(met));
    EXPECT_TRUE(tried || bound == 0) << name << " has a bound and no sample that can be made larger";
    EXPECT_GE(2 * met, bound) << "docs/numbers.md: the row of " << name << " says " << bound << " ulp in "
                              << nameOf(dtype) << ", and engines differ by " << met;
  }
}

std::vector<runtime::OpId> opsWithRanges() {
  std::vector<runtime::OpId> ops;
  for (const SampleText &sample : kSamples)
    if (larger(sample, 2) && !llvm::is_contained(ops, sample.op) && sample.op != runtime::OpId::dim &&
        sample.op != runtime::OpId::size && (recordOf(sample.op).dtypes & runtime::kFloats))
      ops.push_back(sample.op);
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Every, Ranges, ::testing::ValuesIn(opsWithRanges()),
                         [](const auto &info) { return std::string(recordOf(info.param).name); });

TEST(Bounds, EveryRowIsOfAnOp) {
  for (const std::string &name : opsWithBounds())
    EXPECT_TRUE(llvm::any_of(kSamples, [&](const SampleText &each) { return name == recordOf(each.op).name; })) << name;
}

class Composites : public ::testing::TestWithParam<Composite> {};

/// Eagerly, interpreted and compiled, before and after a derivative is taken.
TEST_P(Composites, EagerTracedInterpretedAndCompiledAgree) {
  const Composite &composite = GetParam();
  for (DType dtype : {DType::f64, DType::f32}) {
    std::vector<runtime::Array> operands = parseOperands(composite.text, 1, dtype);
    SCOPED_TRACE(std::string(composite.name) + " on " + composite.text + " in " + std::string(nameOf(dtype)));
    auto agree = [&](auto f) {
      OwningOpRef<ModuleOp> module = tracedModule(f, operands);
      std::string entry = (*module->getOps<func::FuncOp>().begin()).getName().str();
      checkEqual(wg::detail::arrayOf(f(tensorsOf(operands))), interpreted(*module, entry, operands)[0]);
      if (!HasFailure())
        checkAgreement(*module, entry, operands, {.ulps = boundOfPrograms("composites"), .atLeast = 1});
    };
    agree(composite.call);
    if (composite.kind != Composite::none)
      agree([&](const std::vector<Tensor> &x) { return gradientOf(composite, x); });
    if (HasFailure() || std::string_view(composite.text).find("f64") == std::string_view::npos)
      return;
  }
}

std::string nameOfComposite(const ::testing::TestParamInfo<Composite> &info) {
  return std::string(info.param.name) + "_" + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(Every, Composites, ::testing::ValuesIn(allComposites().begin(), allComposites().end()),
                         nameOfComposite);

class Programs : public ::testing::TestWithParam<std::string> {};

/// Every function of a file; a comment `// inputs in [lo, hi]` in its first line gives the interval of its arguments.
TEST_P(Programs, InterpreterAndCompiledCodeAgree) {
  std::string path = std::string(WENGERT_SOURCE_DIR) + "/tests/agreement/programs/" + GetParam();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, ir::context());
  ASSERT_TRUE(module) << path;
  std::ifstream file(path);
  std::string first;
  std::getline(file, first);
  double lo = -1, hi = 1;
  std::sscanf(first.c_str(), "// inputs in [%lf, %lf]", &lo, &hi);
  for (auto function : module->getOps<func::FuncOp>()) {
    SCOPED_TRACE(GetParam() + ": @" + function.getName().str());
    std::vector<runtime::Array> inputs;
    for (Type type : function.getArgumentTypes()) {
      runtime::TensorType t = ir::runtimeTypeOf(type);
      inputs.push_back(randomArray(t, 100 + inputs.size(), runtime::isInteger(t.dtype) ? 0 : lo,
                                   runtime::isInteger(t.dtype) ? 4 : hi));
    }
    checkAgreement(*module, function.getName().str(), inputs, {.ulps = boundOfPrograms("programs of tests/agreement")});
    if (HasFailure())
      return;
  }
}

std::vector<std::string> programFiles() {
  std::vector<std::string> names;
  for (const auto &entry :
       std::filesystem::directory_iterator(std::string(WENGERT_SOURCE_DIR) + "/tests/agreement/programs"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}
std::string nameOfProgram(const ::testing::TestParamInfo<std::string> &info) {
  std::string name = info.param.substr(0, info.param.find('.'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Every, Programs, ::testing::ValuesIn(programFiles()), nameOfProgram);

} // namespace
} // namespace wg::tests
