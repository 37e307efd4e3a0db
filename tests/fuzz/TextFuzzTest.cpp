// Whatever a text says, nothing ends the process: it is refused with an error, or it runs.
//
// Real programs at the stages traced, simplified and fused (and a few lowered ones) are changed at random (Mutate.h)
// and taken through everything that reads text: parser and verifier, gradient, simplification, fusion, interpreter,
// compiler. The work is done in child processes, so that one signal is reported with its mutant and the rest goes on.
// Mutant i of seed s is always the same text.
//
//   WENGERT_FUZZ_TEXTS=100000 WENGERT_FUZZ_SEED=7 build/tests/TextFuzzTest      more mutants;
//   WENGERT_FUZZ_FIRST=i begins at mutant i
#include "autodiff/Passes.h"
#include "codegen/Compile.h"
#include "codegen/interpret/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Diagnostics.h"
#include "ir/Program.h"
#include "ir/Text.h"
#include "passes/Passes.h"
#include "tests/fuzz/Children.h"
#include "tests/fuzz/Mutate.h"

#include <wengert/wengert.h>

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace wg::tests {
namespace {

using namespace mlir;
using runtime::Array;

// ---- What a child does to one text ----------------------------------------------------------------------------------

struct Shared : Trial {
  volatile uint64_t parsed, interpreted, compiled;
};

std::string printed(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream);
  return text;
}

std::unique_ptr<Pass> gradientPass(const std::string &function, bool values, bool seeds) {
  autodiff::GradOptions options;
  options.function = function;
  options.values = values;
  options.seeds = seeds;
  return autodiff::createGrad(options);
}

OwningOpRef<ModuleOp> parse(const std::string &text) {
  if (!ir::checkText(text, "mutant").ok())
    return nullptr;
  return parseSourceString<ModuleOp>(text, ParserConfig(ir::context()), "mutant");
}

/// The largest tensor of a program in bytes, a `?` as 1. Sizes that no check passed count as none.
int64_t largestTensor(ModuleOp module) {
  int64_t largest = 0;
  auto consider = [&](Type type) {
    if (ir::isValueType(type))
      largest = std::max(largest, runtime::extentOf(ir::runtimeTypeOf(type))->bytes);
  };
  module.walk([&](Operation *op) {
    llvm::for_each(op->getResultTypes(), consider);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArgumentTypes(), consider);
  });
  return largest;
}

class Examination {
public:
  Examination(Shared &shared, Dice dice) : shared(shared), dice(dice) {}

  void examine(const std::string &text) {
    ir::Diagnostics quiet(ir::context());
    OwningOpRef<ModuleOp> module = parse(text);
    if (!module)
      return;
    shared.parsed = shared.parsed + 1;
    std::string again = printed(*module);
    std::vector<std::string> functions;
    for (auto function : module->getOps<func::FuncOp>())
      functions.push_back(function.getName().str());
    if (functions.empty())
      return;
    std::string function = dice.pick(functions);
    bool program = !ir::findForeign(*module);
    if (!program) {
      compile(*module, function, codegen::Stage::lowered, dice.oneIn(2));
      return;
    }
    if (failed(ir::checkProgram(*module)))
      return;
    pass(*module, gradientPass(function, dice.oneIn(2), dice.oneIn(2)), function + "_grad");
    autodiff::JvpOptions tangent;
    tangent.function = function;
    pass(*module, autodiff::createJvp(tangent), function + "_jvp");
    autodiff::VmapOptions lanes;
    lanes.function = function;
    lanes.size = dice.oneIn(2) ? 3 : -1;
    pass(*module, autodiff::createVmap(lanes), function + "_vmap");
    PassManager simplify(ir::context());
    passes::addSimplify(simplify.nest<func::FuncOp>());
    OwningOpRef<ModuleOp> simplified = module->clone();
    simplify.enableVerifier(false);
    if (failed(simplify.run(*simplified)))
      found("a program cannot be simplified");
    verified(*simplified, "simplify");
    interpret(*module, *simplified, function);
    if (dice.oneIn(8))
      compile(*module, function,
              dice.pick(std::array{codegen::Stage::traced, codegen::Stage::simplified, codegen::Stage::fused}), false);
  }

private:
  /// An error of ours that no text should lead to.
  void found(const std::string &what) { shared.fail(what); }
  void internal(const runtime::Failure &failure) {
    if (failure.kind == runtime::ErrorKind::internal)
      found(toString(failure));
  }
  /// A pass that succeeds leaves a program.
  void verified(ModuleOp module, const char *what) {
    if (failed(verify(module)))
      found(std::string(what) + " left what does not verify");
  }
  bool pass(ModuleOp original, std::unique_ptr<Pass> pass, const std::string &made) {
    OwningOpRef<ModuleOp> module = original.clone();
    PassManager manager(ir::context());
    manager.enableVerifier(false);
    std::string name = pass->getArgument().str();
    manager.addPass(std::move(pass));
    if (failed(manager.run(*module)))
      return false;
    verified(*module, name.c_str());
    if (std::optional<std::vector<Array>> inputs = inputsOf(*module, made))
      (void)run(*module, made, *inputs);
    return true;
  }

  /// Small numbers for every argument; nothing where they would be large or there is no such function. A `?` is 0 to 3.
  std::optional<std::vector<Array>> inputsOf(ModuleOp module, const std::string &name) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!function || function.isDeclaration() || failed(ir::checkTypes(function)))
      return std::nullopt;
    std::vector<Array> inputs;
    int64_t total = 0;
    for (Type type : function.getArgumentTypes()) {
      runtime::TensorType t = ir::runtimeTypeOf(type);
      for (int64_t &size : t.shape)
        if (size == runtime::kDynamic)
          size = static_cast<int64_t>(dice.below(4));
      auto extent = runtime::extentOf(t);
      if (!extent.ok() || (total += extent->bytes) > (1 << 20))
        return std::nullopt;
      Array array = Array::zeros(t.dtype, t.shape);
      for (int64_t i = 0; i < extent->elements; ++i) {
        auto value = static_cast<int>(dice.below(7)) - 2;
        switch (t.dtype) {
        case runtime::DType::f64: array.data<double>()[i] = value * 0.5; break;
        case runtime::DType::f32: array.data<float>()[i] = static_cast<float>(value) * 0.5f; break;
        case runtime::DType::i64: array.data<int64_t>()[i] = value; break;
        case runtime::DType::i32: array.data<int32_t>()[i] = value; break;
        case runtime::DType::u8: array.data<uint8_t>()[i] = static_cast<uint8_t>(value); break;
        case runtime::DType::boolean: array.data<uint8_t>()[i] = value > 0; break;
        default: break;
        }
      }
      inputs.push_back(std::move(array));
    }
    return inputs;
  }

  /// By the interpreter; nothing where it refuses. What lies between little work and more than
  /// there is memory for is left out.
  std::optional<std::vector<Array>> run(ModuleOp module, const std::string &function,
                                        const std::vector<Array> &inputs) {
    if (mayTakeLong(module))
      return std::nullopt;
    FailureOr<codegen::Program> rows = codegen::flatten(module.lookupSymbol<func::FuncOp>(function));
    if (failed(rows))
      return std::nullopt;
    try {
      runtime::Result<std::vector<Array>> results = codegen::interpret(*rows, inputs);
      if (results.ok())
        return *results;
      internal(results.failure());
    } catch (const std::bad_alloc &) { // the documented end of a program without memory
    }
    return std::nullopt;
  }

  /// Whether a loop goes on as long as its condition holds, or for very many turns: its author may write that.
  static bool mayBeEndless(ModuleOp module) {
    bool found = false;
    module.walk(
        [&](ir::LoopOp loop) { found |= loop.getLength() < 0 ? loop.hasCondition() : loop.getLength() > 1000; });
    return found;
  }

  /// What is too large for any machine ends at once.
  static bool mayTakeLong(ModuleOp module) {
    int64_t bytes = largestTensor(module);
    return mayBeEndless(module) || (bytes > (1 << 20) && (bytes < (int64_t(1) << 40) || kSanitized));
  }

  /// The equations of a module's products, in order.
  static std::vector<std::string> equations(ModuleOp module) {
    std::vector<std::string> list;
    module.walk([&](ir::ContractOp op) { list.push_back(op.getEquation().str()); });
    std::sort(list.begin(), list.end());
    return list;
  }

  /// Simplifying changes no bit of a result, and the sign or payload of no NaN matters; but where it folds a transpose
  /// into a product, whose eager kernel then adds in another order, only that there are results of the same types.
  void interpret(ModuleOp module, ModuleOp simplified, const std::string &function) {
    std::optional<std::vector<Array>> inputs = inputsOf(module, function);
    if (!inputs)
      return;
    std::optional<std::vector<Array>> before = run(module, function, *inputs);
    std::optional<std::vector<Array>> after = run(simplified, function, *inputs);
    shared.interpreted = shared.interpreted + before.has_value();
    if (before && !after && !mayTakeLong(simplified)) // which has not what made the whole one too large
      found("the simplified program does not run");
    bool sameBits = equations(module) == equations(simplified);
    if (before && after)
      for (size_t r = 0; r < before->size(); ++r)
        if ((*before)[r].type != (*after)[r].type || (sameBits && toString((*before)[r]) != toString((*after)[r])))
          found("result " + std::to_string(r) + " is " + toString((*before)[r]) + ", simplified " +
                toString((*after)[r]));
  }

  /// To machine code, which runs if it was made of a program of wg ops. Then interpreter and compiled
  /// code both fail or both do not.
  void compile(ModuleOp module, const std::string &name, codegen::Stage from, bool trust) {
    std::optional<std::vector<Array>> inputs;
    OwningOpRef<ModuleOp> specialised = module.clone();
    if (from < codegen::Stage::lowered) {
      if (largestTensor(module) > (1 << 20))
        return;
      inputs = inputsOf(module, name);
      auto function = specialised->lookupSymbol<func::FuncOp>(name);
      if (!inputs || !function)
        return;
      SmallVector<Type> types;
      for (auto [type, input] : llvm::zip_equal(function.getArgumentTypes(), *inputs))
        types.push_back(type.isIndex() ? type : Type(ir::tensorTypeOf(ir::context(), input.type)));
      if (failed(passes::inferShapes(function, types)))
        return;
      verified(*specialised, "wg-infer-shapes");
      if (largestTensor(*specialised) > (1 << 20))
        return;
    }
    auto executable = codegen::compile(specialised.release(), name, {.trustLowered = trust}, from);
    if (!executable.ok())
      return internal(executable.failure());
    shared.compiled = shared.compiled + 1;
    if (!inputs || mayBeEndless(module))
      return;
    std::optional<std::vector<Array>> expected = run(module, name, *inputs);
    if (!expected) { // an op that nobody reads is not compiled, nor is its error
      OwningOpRef<ModuleOp> read = module.clone();
      PassManager simplify(ir::context());
      passes::addSimplify(simplify.nest<func::FuncOp>());
      if (succeeded(simplify.run(*read)))
        expected = run(*read, name, *inputs);
    }
    std::vector<Array> results;
    std::vector<void *> pointers;
    for (const Array &input : *inputs)
      pointers.push_back(input.buffer.data());
    for (const runtime::TensorType &type : (*executable)->info.results) {
      results.push_back(Array::empty(type.dtype, type.shape));
      pointers.push_back(results.back().buffer.data());
    }
    codegen::AtFault atFault;
    int32_t code = (*executable)->run(pointers.data(), &atFault);
    if (code != 0)
      internal((*executable)->failure(code, atFault));
    if ((code == 0) != expected.has_value())
      found(code ? "compiled code fails where the interpreter does not: " +
                       toString((*executable)->failure(code, atFault))
                 : "the interpreter fails on @" + name + " where compiled code does not");
    for (size_t r = 0; code == 0 && expected && r < results.size(); ++r)
      if (results[r].type != (*expected)[r].type)
        found("result " + std::to_string(r) + " is " + toString(results[r].type) + ", interpreted " +
              toString((*expected)[r].type));
  }

  Shared &shared;
  Dice dice;
};

// ---- The corpus -----------------------------------------------------------------------------------------------------

/// The parts of a test's file that parse, without its comments.
void addFile(const std::filesystem::path &path, std::vector<std::string> &corpus) {
  std::ifstream file(path);
  std::string line, part;
  auto finish = [&] {
    if (part.find("func.func") != std::string::npos)
      corpus.push_back(part);
    part.clear();
  };
  while (std::getline(file, line)) {
    if (line.starts_with("// -----"))
      finish();
    else if (size_t at = line.find_first_not_of(' '); at != std::string::npos && line.compare(at, 2, "//") != 0)
      part += line + "\n";
  }
  finish();
}

/// A training step with a product, a loss and an optimiser.
void addStep(std::vector<std::string> &corpus) {
  nn::Sequential model(nn::Dense(6, 5, relu), nn::Dense(5, 3));
  optim::Adam adam(0.01);
  auto step = function("train_step", [&](const Tensor &x, const Tensor &y) {
    GradientTape tape;
    Tensor loss = nn::cross_entropy(model(x), y);
    adam.apply(tape.gradient(loss, model.trainable_variables()), model.trainable_variables());
    return loss;
  });
  ConcreteFunction concrete = step.trace(ones({4, 6}), zeros({4}, i32));
  for (wg::Stage stage : {wg::Stage::traced, wg::Stage::simplified, wg::Stage::fused, wg::Stage::lowered})
    corpus.push_back(concrete.text(stage));
}

/// Every program as it is, in MLIR's generic form, simplified, fused, with its gradient; a few lowered.
std::vector<std::string> makeCorpus() {
  std::vector<std::string> sources, corpus;
  std::vector<std::filesystem::path> files;
  for (const auto &entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(WENGERT_SOURCE_DIR) / "tests"))
    if (entry.path().extension() == ".mlir")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto &file : files)
    addFile(file, sources);
  ir::Diagnostics quiet(ir::context());
  for (size_t i = 0; i < sources.size(); ++i) {
    corpus.push_back(sources[i]);
    OwningOpRef<ModuleOp> module = parse(sources[i]);
    if (!module)
      continue;
    std::string generic;
    llvm::raw_string_ostream stream(generic);
    module->print(stream, OpPrintingFlags().printGenericOpForm());
    if (i % 3 == 0)
      corpus.push_back(generic);
    std::vector<std::string> names;
    for (auto function : module->getOps<func::FuncOp>())
      names.push_back(function.getName().str());
    for (const std::string &name : names) {
      OwningOpRef<ModuleOp> gradient = module->clone();
      PassManager manager(ir::context());
      manager.addPass(gradientPass(name, false, false));
      if (succeeded(manager.run(*gradient)))
        corpus.push_back(printed(*gradient));
      OwningOpRef<ModuleOp> fused = module->clone();
      codegen::Stage last = i % 8 == 0 ? codegen::Stage::lowered : codegen::Stage::fused;
      auto keep = [&](codegen::Stage stage) {
        if (std::string text = printed(*fused); stage >= codegen::Stage::simplified && text.size() < 20000)
          corpus.push_back(text);
      };
      (void)codegen::runPipeline(*fused, name, codegen::Stage::traced, last, {.each = keep});
    }
  }
  addStep(corpus);
  return corpus;
}

// ---- Children -------------------------------------------------------------------------------------------------------

std::vector<std::string> corpusFromChild() {
  std::string path = ::testing::TempDir() + "/wengert-corpus-" + std::to_string(getpid());
  int status = inChild([&] {
    std::ofstream file(path, std::ios::binary);
    for (const std::string &text : makeCorpus())
      file << text.size() << "\n" << text;
    file.flush();
    if (!file)
      _exit(1);
  });
  EXPECT_EQ(status, 0) << "the corpus could not be made";
  std::vector<std::string> corpus;
  std::ifstream file(path, std::ios::binary);
  size_t size;
  while (file >> size) {
    file.get();
    std::string text(size, ' ');
    file.read(text.data(), static_cast<std::streamsize>(size));
    corpus.push_back(std::move(text));
  }
  std::filesystem::remove(path);
  return corpus;
}

TEST(TextFuzz, NoTextEndsTheProcess) {
  uint64_t seed = fromEnvironment("WENGERT_FUZZ_SEED", 1), first = fromEnvironment("WENGERT_FUZZ_FIRST", 0),
           end = first + fromEnvironment("WENGERT_FUZZ_TEXTS", 3000);
  std::vector<std::string> corpus = corpusFromChild();
  ASSERT_GT(corpus.size(), 100u);
  auto *shared = sharedWithChildren<Shared>();
  ASSERT_NE(shared, nullptr);
  std::filesystem::path folder = std::filesystem::path(WENGERT_BINARY_DIR) / "results";
  auto mutantAt = [&](uint64_t i) { return mutant(corpus, seed * 1000003 + i * 2654435761u); };
  auto examine = [&](uint64_t i) { Examination(*shared, Dice(seed + i)).examine(mutantAt(i)); };
  auto report = [&](uint64_t i, const std::string &what) {
    std::string file = (folder / ("text-" + std::to_string(seed) + "-" + std::to_string(i) + ".mlir")).string();
    std::ofstream(file) << mutantAt(i);
    ADD_FAILURE() << "mutant " << i << " of seed " << seed << ": " << what << "\n  in " << file;
  };
  size_t findings = inChildren(*shared, first, end, {.folder = folder}, examine, report);
  std::printf("%llu mutants of %zu programs: %llu parsed, %llu interpreted, %llu compiled, %zu findings\n",
              static_cast<unsigned long long>(end - first), corpus.size(),
              static_cast<unsigned long long>(shared->parsed), static_cast<unsigned long long>(shared->interpreted),
              static_cast<unsigned long long>(shared->compiled), findings);
}

} // namespace
} // namespace wg::tests
