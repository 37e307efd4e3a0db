// Every expansion against libm in higher precision: all exponents, all special values, all targets of this machine.
#include "Compiled.h"

#include "codegen/emit/VectorMath.h"
#include "runtime/ThreadPool.h"

#include "mlir/IR/Verifier.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <thread>

namespace wg::codegen {
namespace {

using Map = void(const void *, void *, int64_t);

struct Function {
  const char *op;
  double (*f64)(double);           ///< the reference for f32
  long double (*f80)(long double); ///< the reference for f64
};

double rsqrt64(double x) { return 1 / std::sqrt(x); }
long double rsqrt80(long double x) { return 1 / std::sqrt(x); }
double sigmoid64(double x) { return 1 / (1 + std::exp(-x)); }
long double sigmoid80(long double x) { return 1 / (1 + std::exp(-x)); }

/// A function that applies `op`. "math.sigmoid" is not an op: it is spelled out as the quotient that the expansions
/// recognise as a sigmoid.
std::string functionText(const std::string &name, const std::string &op, const std::string &element, int lanes) {
  std::string text = mapText(name, op, element, lanes);
  if (op != "math.sigmoid")
    return text;
  std::string type = lanes == 1 ? element : "vector<" + std::to_string(lanes) + "x" + element + ">";
  auto constant = [&](const std::string &value) {
    return "arith.constant " + (lanes == 1 ? value : "dense<" + value + ">") + " : " + type + "\n    ";
  };
  std::string written = "%r = math.sigmoid %v : " + type, of = " : " + type + "\n    ";
  size_t at = text.find(written);
  return text.replace(
      at, written.size(),
      "%one = " + constant("1.0") + "%zero = " + constant("0.0") + "%a = math.absf %v" + of + "%m = arith.negf %a" +
          of + "%e = math.exp %m" + of + "%s = arith.addf %one, %e" + of + "%below = arith.cmpf olt, %v, %zero" + of +
          "%top = arith.select %below, %e, %one : " + (lanes == 1 ? "" : "vector<" + std::to_string(lanes) + "xi1>, ") +
          type + "\n    %r = arith.divf %top, %s : " + type);
}

const Function kFunctions[] = {
    {"math.exp", std::exp, std::exp},       {"math.expm1", std::expm1, std::expm1},
    {"math.log", std::log, std::log},       {"math.log1p", std::log1p, std::log1p},
    {"math.tanh", std::tanh, std::tanh},    {"math.erf", std::erf, std::erf},
    {"math.rsqrt", rsqrt64, rsqrt80},       {"math.sin", std::sin, std::sin},
    {"math.cos", std::cos, std::cos},       {"math.exp2", std::exp2, std::exp2},
    {"math.log2", std::log2, std::log2},    {"math.log10", std::log10, std::log10},
    {"math.sinh", std::sinh, std::sinh},    {"math.cosh", std::cosh, std::cosh},
    {"math.asinh", std::asinh, std::asinh}, {"math.acosh", std::acosh, std::acosh},
    {"math.atanh", std::atanh, std::atanh}, {"math.sigmoid", sigmoid64, sigmoid80},
};

/// Distance in units of the last place of the true value, which is given in higher precision. Below the normal range
/// the unit is the smallest subnormal; a result of inf counts as the next number after the largest; a correctly rounded
/// result as 0.5.
template <class T, class Wide> double ulps(T got, Wide want) {
  using Limits = std::numeric_limits<T>;
  T rounded = static_cast<T>(want);
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  if (got == rounded && std::signbit(got) == std::signbit(rounded))
    return 0.5;
  if (want == 0 || std::isinf(want))
    return std::numeric_limits<double>::infinity();
  if (std::signbit(got) != std::signbit(want))
    return std::numeric_limits<double>::infinity();
  int exponent = std::max(std::ilogb(want), Limits::min_exponent - 1);
  Wide unit = std::ldexp(Wide(1), exponent - Limits::digits + 1);
  Wide value = std::isinf(got) ? std::copysign(std::ldexp(Wide(1), Limits::max_exponent), Wide(got)) : Wide(got);
  return static_cast<double>(std::abs(value - want) / unit);
}

/// Bit patterns of T: 0, subnormals, the ends of every binade, the critical points of the expansions, NaN and
/// infinities; then a stride through all patterns, then dense ranges where the functions bend.
template <class T> std::vector<T> samples() {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  std::vector<T> x;
  auto both = [&](T value) { x.push_back(value), x.push_back(-value); };
  auto around = [&](double center) {
    Bits bits = std::bit_cast<Bits>(static_cast<T>(center));
    for (int i = -40; i <= 40; ++i)
      if (i >= 0 || bits >= Bits(-i))
        both(std::bit_cast<T>(static_cast<Bits>(bits + i)));
  };
  for (double center : {0.0,
                        0.34657359027997264,
                        0.9375,
                        1.0,
                        0.70710678118654752,
                        1.4142135623730951,
                        2.0,
                        3.95,
                        4.0,
                        9.02,
                        17.3,
                        18.0,
                        22.0,
                        38.0,
                        87.33654,
                        88.72284,
                        89.0,
                        103.27893,
                        104.0,
                        708.3964185322641,
                        709.782712893384,
                        745.1332191019411,
                        746.0,
                        89.41598629223294,
                        710.4758600739439})
    around(center);
  for (Bits bits : {Bits(1), Bits(0x7fffff)})
    both(std::bit_cast<T>(bits));
  both(std::numeric_limits<T>::infinity()), both(std::numeric_limits<T>::quiet_NaN()),
      both(std::numeric_limits<T>::max());
  for (int e = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
       e < std::numeric_limits<T>::max_exponent; ++e)
    around(std::ldexp(1.0, e));
  const int count = 300'000;
  Bits stride = static_cast<Bits>(-1) / count | 1;
  for (int i = 0; i < count; ++i)
    x.push_back(std::bit_cast<T>(static_cast<Bits>(stride * Bits(i))));
  std::mt19937_64 random(1);
  for (double range : {1.0, 10.0, 110.0, 760.0, 1.1e6}) {
    std::uniform_real_distribution<double> uniform(-range, range);
    for (int i = 0; i < count / 4; ++i)
      x.push_back(static_cast<T>(uniform(random)));
  }
  x.resize((x.size() + 63) / 64 * 64, T(1));
  return x;
}

template <class T, class Wide>
void check(const Target &target, Wide (*Function::*reference)(Wide), const char *element) {
  std::vector<T> x = samples<T>(), byVector(x.size()), byScalar(x.size()), byCall(x.size());
  std::string text;
  for (const Function &f : kFunctions) {
    text += functionText(f.op + 5 + std::string("_vector"), f.op, element, target.lanes(sizeof(T)));
    text += functionText(f.op + 5 + std::string("_scalar"), f.op, element, 1);
  }
  auto module = compiled(text, target);
  auto calls = lowered(text, target, /*callMath=*/true);
  ASSERT_TRUE(module && calls);
  std::string exp = "math.exp." + std::to_string(target.lanes(sizeof(T))) + "x" + element;
  EXPECT_TRUE(calls->lookupSymbol(exp) && calls->lookupSymbol(exp)->hasAttr(kMathFunctionAttr));
  auto calling = std::move(*jit(*calls, target, {}));
  for (const Function &f : kFunctions) {
    module->lookup<Map>(f.op + 5 + std::string("_vector"))(x.data(), byVector.data(), x.size());
    module->lookup<Map>(f.op + 5 + std::string("_scalar"))(x.data(), byScalar.data(), x.size());
    calling->lookup<Map>(f.op + 5 + std::string("_vector"))(x.data(), byCall.data(), x.size());
    EXPECT_EQ(std::memcmp(byVector.data(), byCall.data(), x.size() * sizeof(T)), 0) << f.op << ": a call differs";
    double worst = 0;
    size_t at = 0, differences = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double error = ulps(byVector[i], (f.*reference)(x[i]));
      if (!(error <= worst))
        worst = error, at = i;
      differences += std::memcmp(&byVector[i], &byScalar[i], sizeof(T)) != 0 &&
                     !(std::isnan(byVector[i]) && std::isnan(byScalar[i]));
    }
    std::printf("  %-12s %-4s %-16s %.2f ulp\n", f.op, element, target.cpu.c_str(), worst);
    EXPECT_LE(worst, 4) << f.op << " " << element << " on " << target.cpu << ": x = " << std::hexfloat << x[at]
                        << " gives " << byVector[at] << ", the true value is "
                        << static_cast<double>((f.*reference)(x[at]));
    EXPECT_EQ(differences, 0u) << f.op << " " << element << " on " << target.cpu << ": lanes differ from the scalar";
  }
}

/// Copies where there are few, calls of one function where there are many; whose name is its own.
TEST(VectorMathTest, ManyOpsCallOneFunction) {
  auto text = [](int ops, const std::string &rest) {
    std::string body;
    for (int i = 0; i < ops; ++i)
      body += "  %x" + std::to_string(i + 1) + " = math.exp %x" + std::to_string(i) + " : vector<8xf64>\n";
    return rest + "func.func @f(%x0: vector<8xf64>) -> vector<8xf64> {\n" + body + "  return %x" + std::to_string(ops) +
           " : vector<8xf64>\n}\n";
  };
  Target target = runnableTargets().back();
  EXPECT_FALSE(lowered(text(256, ""), target)->lookupSymbol("math.exp.8xf64"));
  EXPECT_TRUE(lowered(text(257, ""), target)->lookupSymbol("math.exp.8xf64"));
  auto module =
      lowered(text(257, "func.func private @\"math.exp.8xf64\"(%x: f64) -> f64 {\n  return %x : f64\n}\n"), target);
  ASSERT_TRUE(module && module->lookupSymbol("math.exp.8xf64_"));
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
}

/// What goes wrong on several threads is said as by one: in the order of the functions, to who listens on the caller's.
TEST(VectorMathTest, ErrorsOfManyFunctionsHaveTheirOrder) {
  std::string text;
  for (int f = 0; f < 12; ++f) {
    text += "func.func @f" + std::to_string(f) + "(%x0: i64) -> i64 {\n";
    for (int i = 0; i < 1500; ++i)
      text += "  %x" + std::to_string(i + 1) + " = arith.addi %x" + std::to_string(i) + ", %x0 : i64\n";
    text += "  %bad = arith.constant dense<" + std::to_string(f) + "> : tensor<4xi64>\n  return %x1500 : i64\n}\n";
  }
  int before = runtime::numThreads();
  for (int threads : {1, 4}) {
    runtime::setNumThreads(threads);
    for (int turn = 0; turn < 3; ++turn) {
      std::vector<unsigned> lines;
      mlir::ScopedDiagnosticHandler handler(&context(), [&, here = std::this_thread::get_id()](auto &diagnostic) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        lines.push_back(llvm::cast<mlir::FileLineColLoc>(diagnostic.getLocation()).getLine());
        return mlir::success();
      });
      EXPECT_FALSE(lowered(text, Target::host()));
      ASSERT_FALSE(lines.empty());
      EXPECT_EQ(lines[0], 1502u); // of the first function
    }
  }
  runtime::setNumThreads(before);
}

TEST(VectorMathTest, F32IsWithin4UlpOnEveryTarget) {
  for (const Target &target : runnableTargets())
    check<float, double>(target, &Function::f64, "f32");
}

TEST(VectorMathTest, F64IsWithin4UlpOnEveryTarget) {
  for (const Target &target : runnableTargets())
    check<double, long double>(target, &Function::f80, "f64");
}

/// Not a bound: what an element costs from the first-level cache, beside facts/performance.md section 3.
TEST(VectorMathTest, PrintsNanosecondsPerElement) {
  const Target &target = Target::host();
  for (const char *element : {"f32", "f64"}) {
    std::string text;
    for (const Function &f : kFunctions)
      text += functionText(f.op + 5 + std::string("_map"), f.op, element, target.lanes(element[1] == '3' ? 4 : 8));
    JitTimes times;
    auto module = compiled(text, target, &times);
    ASSERT_TRUE(module);
    std::printf("  %zu functions: split %.1f, codegen %.1f, link %.1f ms\n", std::size(kFunctions), times.split,
                times.codegen, times.link);
    const int n = 2048;
    std::vector<double> x(n, 0.5), y(n);
    for (int i = 0; i < n; ++i) {
      double value = 0.01 + 4.0 * i / n;
      element[1] == '3' ? reinterpret_cast<float *>(x.data())[i] = static_cast<float>(value) : x[i] = value;
    }
    for (const Function &f : kFunctions) {
      auto *run = module->lookup<Map>(f.op + 5 + std::string("_map"));
      double best = 1e9;
      for (int repeat = 0; repeat < 50; ++repeat) {
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < 4; ++i)
          run(x.data(), y.data(), n);
        best = std::min(
            best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / (4 * n));
      }
      std::printf("  %-12s %s %.3f ns/element\n", f.op, element, best);
    }
  }
}

} // namespace
} // namespace wg::codegen
