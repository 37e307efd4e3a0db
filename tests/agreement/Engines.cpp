#include "tests/agreement/Engines.h"

#include "codegen/Compile.h"
#include "codegen/interpret/Interpret.h"
#include "ir/Bridge.h"
#include "passes/Passes.h"
#include "tests/Samples.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace wg::tests {

using runtime::Array;
using runtime::DType;

namespace {

/// Bytes whose end lies at a page that cannot be touched.
class Guarded {
public:
  explicit Guarded(size_t bytes) : bytes(bytes) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    length = (bytes + page - 1) / page * page + page;
    base = static_cast<char *>(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base + length - page, page, PROT_NONE);
    end = base + length - page;
  }
  Guarded(Guarded &&other) noexcept
      : base(std::exchange(other.base, nullptr)), end(other.end), length(other.length), bytes(other.bytes) {}
  ~Guarded() {
    if (base)
      munmap(base, length);
  }
  void *data() const { return end - bytes; }

private:
  char *base, *end;
  size_t length, bytes;
};

double elementOf(const Array &array, int64_t i) {
  switch (array.dtype()) {
  case DType::f64: return array.data<double>()[i];
  case DType::f32: return array.data<float>()[i];
  case DType::i64: return static_cast<double>(array.data<int64_t>()[i]);
  case DType::i32: return array.data<int32_t>()[i];
  case DType::u8: return array.data<uint8_t>()[i];
  default: return array.data<bool>()[i];
  }
}

double epsilonOf(DType dtype) { return dtype == DType::f32 ? 0x1p-23 : 0x1p-52; }

/// The distance from |x| to the next larger number of the dtype.
double ulpOf(double x, DType dtype) {
  if (dtype == DType::f32) {
    float at = std::fabs(static_cast<float>(x));
    return static_cast<double>(std::nextafter(at, std::numeric_limits<float>::infinity())) - static_cast<double>(at);
  }
  return std::nextafter(std::fabs(x), std::numeric_limits<double>::infinity()) - std::fabs(x);
}

bool sameBits(double e, double a) {
  return std::isnan(e) ? std::isnan(a) : e == a && std::signbit(e) == std::signbit(a);
}

} // namespace

void expectClose(const Array &expected, const Array &actual, const Tolerance &tolerance, const std::string &what,
                 const Array *scale) {
  ASSERT_EQ(runtime::toString(expected.type), runtime::toString(actual.type)) << what;
  DType dtype = expected.dtype();
  double largestTerm = std::max(largest(expected), tolerance.atLeast);
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    double e = elementOf(expected, i), a = elementOf(actual, i);
    if (sameBits(e, a) || (e == a && tolerance.ulps > 0))
      continue;
    auto said = [&] {
      std::ostringstream text;
      text.precision(17);
      text << what << ": element " << i << ": " << e << " is expected, not " << a;
      return text.str();
    };
    ASSERT_TRUE(runtime::isFloat(dtype) && tolerance.ulps > 0) << said();
    if (!scale) {
      ASSERT_LE(std::fabs(e - a), tolerance.ulps * epsilonOf(dtype) * largestTerm) << said();
      continue;
    }
    double distance = std::fabs(e - a) / ulpOf(elementOf(*scale, i), dtype);
    ASSERT_LE(distance, tolerance.ulps) << said();
    if (tolerance.met)
      *tolerance.met = std::max(*tolerance.met, distance);
  }
}

double largest(const Array &array) {
  double scale = 0;
  for (int64_t i = 0; runtime::isFloat(array.dtype()) && i < array.numElements(); ++i)
    if (std::isfinite(elementOf(array, i)))
      scale = std::max(scale, std::fabs(elementOf(array, i)));
  return scale;
}

std::vector<Array> interpreted(ModuleOp module, const std::string &function, const std::vector<Array> &inputs) {
  FailureOr<codegen::Program> program = codegen::flatten(module.lookupSymbol<func::FuncOp>(function));
  if (failed(program)) {
    ADD_FAILURE() << "flatten failed";
    return {};
  }
  runtime::Result<std::vector<Array>> results = codegen::interpret(*program, inputs);
  if (!results.ok()) {
    ADD_FAILURE() << toString(results.failure());
    return {};
  }
  return *results;
}

Array randomArray(const runtime::TensorType &type, int64_t seed, double lo, double hi) {
  Array array = Array::empty(type.dtype, type.shape);
  for (int64_t i = 0; i < array.numElements(); ++i) {
    double u = runtime::randomUniform<double>(seed, 0, i);
    detail::store(array, i, type.dtype == DType::boolean ? u > 0.5 : lo + (hi - lo) * u);
  }
  return array;
}

namespace {

/// Runs the executable on copies of the inputs; every buffer ends at a guard page.
std::vector<Array> runGuarded(const codegen::Executable &executable, const std::vector<Array> &inputs,
                              const std::vector<Array> &like) {
  std::vector<Guarded> buffers;
  std::vector<void *> args;
  for (const Array &input : inputs) {
    buffers.emplace_back(input.numBytes());
    std::memcpy(buffers.back().data(), input.buffer.data(), input.numBytes());
    args.push_back(buffers.back().data());
  }
  for (size_t r = 0; r < like.size(); ++r) {
    int64_t donor = executable.info.donated[r];
    if (donor >= 0) {
      args.push_back(args[donor]);
      continue;
    }
    buffers.emplace_back(like[r].numBytes());
    args.push_back(buffers.back().data());
  }
  codegen::AtFault atFault;
  if (int32_t code = executable.run(args.data(), &atFault)) {
    ADD_FAILURE() << toString(executable.failure(code, atFault));
    return {};
  }
  std::vector<Array> results;
  for (size_t r = 0; r < like.size(); ++r) {
    results.push_back(Array::empty(like[r].dtype(), like[r].shape()));
    std::memcpy(results.back().buffer.data(), args[inputs.size() + r], like[r].numBytes());
  }
  return results;
}

/// The lowered program goes through its text: the code made of what was read back gives the same bits.
void checkLoweredText(ModuleOp module, const std::string &function, const std::vector<Array> &inputs,
                      const std::vector<Array> &compiled) {
  OwningOpRef<ModuleOp> lowered = module.clone();
  ASSERT_TRUE(succeeded(codegen::runPipeline(*lowered, function, codegen::Stage::traced, codegen::Stage::lowered)));
  std::string text;
  llvm::raw_string_ostream stream(text);
  lowered->print(stream);
  OwningOpRef<ModuleOp> back = parseSourceString<ModuleOp>(text, ParserConfig(module.getContext()));
  ASSERT_TRUE(back) << text;
  auto executable = codegen::compile(back.release(), function, {.trustLowered = true}, codegen::Stage::lowered);
  ASSERT_TRUE(executable.ok()) << toString(executable.failure()) << text;
  std::vector<Array> results = runGuarded(**executable, inputs, compiled);
  for (size_t r = 0; r < results.size(); ++r)
    ASSERT_EQ(std::memcmp(results[r].buffer.data(), compiled[r].buffer.data(), results[r].numBytes()), 0)
        << "from the lowered text, result " << r << "\n"
        << text;
}

} // namespace

void checkAgreement(ModuleOp module, const std::string &function, const std::vector<Array> &inputs, Tolerance tolerance,
                    std::optional<uint64_t> turn) {
  std::vector<Array> expected = interpreted(module, function, inputs);
  if (::testing::Test::HasFailure())
    return;
  auto scaleOf = [&](size_t r) { return tolerance.scales.empty() ? nullptr : &tolerance.scales[r]; };
  module.walk([&](Operation *op) {
    if (isa<ir::Reduction, ir::ContractOp>(op))
      for (const Array &input : inputs)
        tolerance.atLeast = std::max(tolerance.atLeast, largest(input));
  });
  {
    OwningOpRef<ModuleOp> fused = module.clone();
    auto entry = fused->lookupSymbol<func::FuncOp>(function);
    std::string text;
    llvm::raw_string_ostream stream(text);
    auto products = [&] {
      std::multiset<std::string> equations;
      entry.walk([&](ir::ContractOp op) { equations.insert(op.getEquation().str()); });
      return equations;
    };
    ASSERT_TRUE(succeeded(passes::inlineCalls(entry)));
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(entry.getBody().front())))
      if (isa<arith::ConstantOp>(op) && op.use_empty()) // a size that has become an attribute
        op.erase();
    std::multiset<std::string> before = products();
    ASSERT_TRUE(succeeded(codegen::runPipeline(*fused, function, codegen::Stage::simplified, codegen::Stage::fused)));
    fused->print(stream);
    ASSERT_TRUE(succeeded(verify(*fused))) << text;
    std::vector<Array> results = interpreted(*fused, function, inputs);
    ASSERT_EQ(results.size(), expected.size());
    // Products that became sums of products, or got another order of letters, may round in another order, and their
    // zeros may have another sign; everything else keeps its bits.
    bool arranged = products() != before;
    for (size_t r = 0; r < results.size(); ++r)
      expectClose(expected[r], results[r], arranged ? tolerance : Tolerance(),
                  "fused, result " + std::to_string(r) + "\n" + text, arranged ? scaleOf(r) : nullptr);
  }
  static constexpr const char *kCpus[] = {"native", "x86-64-v3", "x86-64-v2"};
  for (auto [level, cpu] : llvm::enumerate(kCpus)) {
    if (turn && *turn % 3 != level)
      continue;
    std::optional<codegen::Target> target = codegen::Target::named(cpu);
    ASSERT_TRUE(target) << cpu;
    if (!codegen::Target::hostCanRun(*target))
      continue;
    codegen::CompileOptions options{*target, std::getenv("WENGERT_SHOW") != nullptr};
    auto executable = codegen::compile(cast<ModuleOp>(module->clone()), function, options);
    ASSERT_TRUE(executable.ok()) << cpu << ": " << toString(executable.failure());
    for (auto &[stage, text] : (*executable)->texts)
      llvm::errs() << "---- " << codegen::nameOf(stage) << "\n" << text;
    std::vector<Array> results = runGuarded(**executable, inputs, expected);
    if (::testing::Test::HasFailure())
      return;
    for (size_t r = 0; r < expected.size(); ++r)
      expectClose(expected[r], results[r], tolerance, std::string(cpu) + ", result " + std::to_string(r), scaleOf(r));
    if (level == 0 && (!turn || *turn % 12 == 0) && !::testing::Test::HasFailure())
      checkLoweredText(module, function, inputs, results);
  }
}

} // namespace wg::tests
