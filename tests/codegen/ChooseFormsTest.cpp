// Forms of a product that may be the fastest are measured; which of them is chosen changes nothing that is computed.
#include "codegen/ChooseForms.h"
#include "codegen/Compile.h"
#include "ir/Bridge.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace wg;

namespace {

/// An elementwise product whose operands lie in other orders than its result, and one with sums.
const char *const kElementwise =
    R"(func.func @f(%a: tensor<8x20x100x100xf32>, %b: tensor<3x20x100xf32>) -> tensor<100x100x20x8x3xf32> {
  %c = wg.contract "mlki,jli->iklmj" %a, %b : tensor<8x20x100x100xf32>, tensor<3x20x100xf32> -> tensor<100x100x20x8x3xf32>
  return %c : tensor<100x100x20x8x3xf32>
})";
const char *const kSums =
    R"(func.func @f(%a: tensor<22x7xf32>, %b: tensor<497x874x22xf32>) -> tensor<7x874x497xf32> {
  %c = wg.contract "lj,kil->jik" %a, %b : tensor<22x7xf32>, tensor<497x874x22xf32> -> tensor<7x874x497xf32>
  return %c : tensor<7x874x497xf32>
})";
/// Two terms, in an order of the result in which no operand lies.
const char *const kFewTerms =
    R"(func.func @f(%a: tensor<2x118x75x181xf32>, %b: tensor<2x181x75xf32>) -> tensor<181x118x75xf32> {
  %c = wg.contract "jkil,jli->lki" %a, %b : tensor<2x118x75x181xf32>, tensor<2x181x75xf32> -> tensor<181x118x75xf32>
  return %c : tensor<181x118x75xf32>
})";
/// As good as can be.
const char *const kPlain = R"(func.func @f(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  return %c : tensor<512x512xf32>
})";
/// A few microseconds, by itself and within a program; and of no size.
const char *const kSmall = R"(func.func @f(%a: tensor<8x312x16x2xf32>, %b: tensor<16x2xf32>) -> tensor<2x312x8xf32> {
  %c = wg.contract "ikjl,jl->lki" %a, %b : tensor<8x312x16x2xf32>, tensor<16x2xf32> -> tensor<2x312x8xf32>
  return %c : tensor<2x312x8xf32>
})";
const char *const kSmallWithin =
    R"(func.func @f(%a: tensor<8x312x16x2xf32>, %b: tensor<16x2xf32>) -> tensor<2x312x8xf32> {
  %c = wg.contract "ikjl,jl->lki" %a, %b : tensor<8x312x16x2xf32>, tensor<16x2xf32> -> tensor<2x312x8xf32>
  %d = wg.exp %c : tensor<2x312x8xf32>
  return %d : tensor<2x312x8xf32>
})";
const char *const kTiny = R"(func.func @f(%a: tensor<3x5x8xf32>, %b: tensor<8x3xf32>) -> tensor<8x5x3xf32> {
  %c = wg.contract "kji,ik->ijk" %a, %b : tensor<3x5x8xf32>, tensor<8x3xf32> -> tensor<8x5x3xf32>
  return %c : tensor<8x5x3xf32>
})";

OwningOpRef<ModuleOp> parsed(const char *text) {
  return parseSourceString<ModuleOp>(text, ParserConfig(ir::context()));
}

std::shared_ptr<const codegen::Executable> compiled(OwningOpRef<ModuleOp> module, const char *name,
                                                    const codegen::CompileOptions &options,
                                                    codegen::Stage from = codegen::Stage::traced) {
  EXPECT_TRUE(module);
  auto result = codegen::compile(module.release(), name, options, from);
  EXPECT_TRUE(result.ok()) << toString(result.failure());
  return *result;
}

int64_t sizeOf(const runtime::TensorType &type) { return type.shape.numElements(); }

std::vector<float> run(const codegen::Executable &program) {
  std::vector<float> a(sizeOf(program.info.inputs[0])), b(sizeOf(program.info.inputs[1])),
      c(sizeOf(program.info.results[0]));
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = i % 8 == 3 ? -0.0f : std::sin(1.3f * static_cast<float>(i));
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = std::cos(0.7f * static_cast<float>(i));
  void *args[] = {a.data(), b.data(), c.data()};
  EXPECT_EQ(program.run(args), 0);
  return c;
}

bool haveEqualBits(const std::vector<float> &x, const std::vector<float> &y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

} // namespace

TEST(ChooseFormsTest, WhatIsMeasuredHasTheBitsOfWhatIsEstimated) {
  for (const char *text : {kElementwise, kSums, kSmall, kFewTerms}) {
    auto estimated = compiled(parsed(text), "f", {}), measured = compiled(parsed(text), "f", {.measureForms = true});
    EXPECT_TRUE(estimated->forms.empty());
    ASSERT_EQ(measured->forms.size(), 1u) << text;
    const codegen::FormReport &report = measured->forms[0];
    ASSERT_GE(report.seconds.size(), 2u);
    ASSERT_LT(report.chosen, report.seconds.size());
    EXPECT_GT(report.seconds[0], 0); // it counts itself
    // The chosen one is the fastest, or as good, of those that count.
    for (double seconds : report.seconds)
      EXPECT_TRUE(seconds == 0 || report.seconds[report.chosen] <= 1.03 * seconds) << report.product;
    EXPECT_TRUE(haveEqualBits(run(*estimated), run(*measured)));
    // It is known from now on.
    auto again = compiled(parsed(text), "f", {.measureForms = true});
    ASSERT_EQ(again->forms.size(), 1u);
    EXPECT_EQ(again->forms[0].seconds, report.seconds);
    EXPECT_EQ(again->forms[0].chosen, report.chosen);
  }
}

TEST(ChooseFormsTest, WhatIsAsGoodAsCanBeIsNotMeasuredNorWhatIsSmallWithinAProgram) {
  for (passes::Machine machine : {passes::Machine::slowMemory, passes::Machine::fastMemory, passes::Machine::fast,
                                  passes::Machine::narrowVectors})
    for (const char *text : {kPlain, kSmallWithin, kTiny}) {
      codegen::Target target = codegen::Target::host();
      target.machine = machine;
      EXPECT_TRUE(compiled(parsed(text), "f", {.target = target, .measureForms = true})->forms.empty())
          << static_cast<int>(machine) << "\n"
          << text;
    }
}

TEST(ChooseFormsTest, OfManySmallOnesAFewAreMeasured) {
  constexpr int kMany = 12, kFew = 8;
  std::string arguments = "%b: tensor<16x2xf32>", products, results, types;
  for (int i = 0; i <= kMany; ++i) { // the last one is like the first
    std::string n = std::to_string(i), k = std::to_string(312 + i % kMany), separator = i == 0 ? "" : ", ",
                a = "tensor<8x" + k + "x16x2xf32>", c = "tensor<2x" + k + "x8xf32>";
    arguments += ", %a" + n + ": " + a;
    products += "  %c" + n + R"( = wg.contract "ikjl,jl->lki" %a)" + n + ", %b : " + a + ", tensor<16x2xf32> -> " + c;
    products += "\n";
    results += separator + "%c" + n;
    types += separator + c;
  }
  std::string text = "func.func @f(" + arguments + ") -> (" + types + ") {\n" + products + "  return " + results +
                     " : " + types + "\n}";
  EXPECT_EQ(compiled(parsed(text.c_str()), "f", {.measureForms = true})->forms.size(), size_t(kFew + 1));
}

/// The forms that may be the fastest, by themselves and in the program; `each` gets what is chosen, and its results.
void runEach(const char *text, llvm::function_ref<void(size_t form, const std::vector<float> &result)> each) {
  size_t count = 0;
  std::string all;
  auto ask = [&](const passes::Forms &forms) {
    count = forms.count();
    all = forms.all;
    for (size_t form = 0; form < count; ++form)
      each(form, run(*compiled(forms.program(form), "product", {.arranged = true}, codegen::Stage::simplified)));
    return size_t(0);
  };
  OwningOpRef<ModuleOp> module = parsed(text);
  ASSERT_TRUE(
      succeeded(codegen::runPipeline(*module, "f", codegen::Stage::traced, codegen::Stage::fused, {.choose = ask})));
  ASSERT_GE(count, 2u);
  for (size_t form = 0; form < count; ++form) {
    std::vector<codegen::FormReport> chosen(1);
    chosen[0].forms = all;
    chosen[0].chosen = form;
    each(form, run(*compiled(parsed(text), "f", {.forms = &chosen})));
  }
}

TEST(ChooseFormsTest, EachFormIsTheProduct) {
  for (const char *text : {kElementwise, kSums, kSmall, kFewTerms}) {
    std::vector<float> expected = run(*compiled(parsed(text), "f", {}));
    runEach(text, [&](size_t form, const std::vector<float> &result) {
      ASSERT_EQ(result.size(), expected.size());
      float off = 0;
      for (size_t i = 0; i < result.size(); ++i)
        off = std::max(off, std::abs(result[i] - expected[i]));
      EXPECT_LE(off, 1e-5f) << form;
    });
  }
}

TEST(ChooseFormsTest, TermsHaveTheBitsOfAProduct) {
  std::vector<float> product, terms;
  auto ask = [&](const passes::Forms &forms) {
    std::string words = forms.all.substr(forms.product.size());
    size_t form = 0;
    for (size_t at = 0; (at = words.find("->", at)) != std::string::npos; at += 2, ++form) {
      size_t space = words.rfind(' ', at);
      bool isTerms = words.substr(0, space).ends_with(" terms"), isSum = words.substr(0, space).ends_with(" sum");
      if (isSum || !(isTerms ? terms : product).empty())
        continue;
      (isTerms ? terms : product) =
          run(*compiled(forms.program(form), "product", {.arranged = true}, codegen::Stage::simplified));
    }
    EXPECT_EQ(form, forms.count()) << forms.all;
    return size_t(0);
  };
  OwningOpRef<ModuleOp> module = parsed(kFewTerms);
  ASSERT_TRUE(
      succeeded(codegen::runPipeline(*module, "f", codegen::Stage::traced, codegen::Stage::fused, {.choose = ask})));
  ASSERT_FALSE(terms.empty());
  EXPECT_TRUE(haveEqualBits(terms, product));
}

/// What reads a product, or what it reads, may be one kernel with it in one form and not in another, and then a product
/// and a sum are rounded once: so there is less to choose from.
TEST(ChooseFormsTest, WhatIsAroundAProductHasTheSameBitsWhateverIsChosen) {
  const char *const kThenAdd =
      R"(func.func @f(%a: tensor<8x20x100x100xf32>, %b: tensor<3x20x100xf32>) -> tensor<100x100x20x8x3xf32> {
  %p = wg.contract "mlki,jli->iklmj" %a, %b : tensor<8x20x100x100xf32>, tensor<3x20x100xf32> -> tensor<100x100x20x8x3xf32>
  %t = wg.transpose %a by [3, 2, 1, 0] : tensor<8x20x100x100xf32> -> tensor<100x100x20x8xf32>
  %d = wg.broadcast %t to [100, 100, 20, 8, 3] dims [0, 1, 2, 3] : tensor<100x100x20x8xf32> -> tensor<100x100x20x8x3xf32>
  %c = wg.add %p, %d : tensor<100x100x20x8x3xf32>
  return %c : tensor<100x100x20x8x3xf32>
})";
  const char *const kThenSum =
      R"(func.func @f(%a: tensor<22x7xf32>, %b: tensor<497x874x22xf32>) -> tensor<7x874xf32> {
  %p = wg.contract "lj,kil->jik" %a, %b : tensor<22x7xf32>, tensor<497x874x22xf32> -> tensor<7x874x497xf32>
  %q = wg.mul %p, %p : tensor<7x874x497xf32>
  %c = wg.reduce_sum %q axes [2] : tensor<7x874x497xf32> -> tensor<7x874xf32>
  return %c : tensor<7x874xf32>
})";
  const char *const kOfWhatIsComputed =
      R"(func.func @f(%a: tensor<22x7xf32>, %b: tensor<497x874x22xf32>) -> tensor<7x874x497xf32> {
  %e = wg.mul %b, %b : tensor<497x874x22xf32>
  %d = wg.add %e, %b : tensor<497x874x22xf32>
  %p = wg.contract "lj,kil->jik" %a, %d : tensor<22x7xf32>, tensor<497x874x22xf32> -> tensor<7x874x497xf32>
  %c = wg.mul %p, %p : tensor<7x874x497xf32>
  return %c : tensor<7x874x497xf32>
})";
  codegen::Target target = codegen::Target::host();
  target.machine = passes::Machine::narrowVectors; // what is asked for differs
  for (auto [text, isAsked] :
       {std::pair(kThenAdd, false), std::pair(kThenSum, true), std::pair(kOfWhatIsComputed, true)}) {
    std::vector<float> expected = run(*compiled(parsed(text), "f", {.target = target}));
    std::vector<codegen::FormReport> chosen;
    size_t count = 1;
    auto ask = [&](const passes::Forms &forms) {
      count = forms.count();
      chosen.resize(1);
      chosen[0].forms = forms.all;
      return size_t(0);
    };
    OwningOpRef<ModuleOp> module = parsed(text);
    ASSERT_TRUE(succeeded(codegen::runPipeline(*module, "f", codegen::Stage::traced, codegen::Stage::fused,
                                               {.target = target, .choose = ask})));
    EXPECT_EQ(count > 1, isAsked) << text;
    for (size_t form = 1; form < count; ++form) {
      chosen[0].chosen = form;
      EXPECT_TRUE(haveEqualBits(run(*compiled(parsed(text), "f", {.target = target, .forms = &chosen})), expected))
          << form << text;
    }
  }
}

TEST(ChooseFormsTest, SeveralMayBeTheFastestOnEveryMachine) {
  for (passes::Machine machine : {passes::Machine::slowMemory, passes::Machine::fastMemory, passes::Machine::both,
                                  passes::Machine::fast, passes::Machine::narrowVectors})
    for (const char *text : {kElementwise, kSums, kSmall}) {
      codegen::Target target = codegen::Target::host();
      target.machine = machine;
      size_t count = 0;
      auto ask = [&](const passes::Forms &forms) {
        count = forms.count();
        EXPECT_TRUE(llvm::is_sorted(forms.groups));
        return size_t(0);
      };
      OwningOpRef<ModuleOp> module = parsed(text);
      ASSERT_TRUE(succeeded(codegen::runPipeline(*module, "f", codegen::Stage::traced, codegen::Stage::fused,
                                                 {.target = target, .choose = ask})));
      EXPECT_GE(count, 2u) << static_cast<int>(machine) << "\n" << text;
    }
}
