// exp, log, tanh, erf ... as polynomials in vector registers, instead of a library call for each element.
#pragma once

#include "codegen/target/Cpu.h"

#include "mlir/IR/BuiltinOps.h"

namespace wg::codegen {

/// Replaces the transcendental ops of the math dialect on f32 and f64, scalar or one-dimensional vector, by arith,
/// vector and math.fma; what has no polynomial here becomes calls of libm, lane by lane. Ops that are instructions
/// (sqrt, fma, floor, ceil, roundeven, absf, copysign) stay; without FMA hardware `fma` becomes a product and a sum.
/// A sigmoid, (x < 0 ? e : 1) / (1 + e) of e = exp(-|x|), is one function of x in f64 where AVX-512 is.
///
/// Every result is within 4 ulp, for subnormals, infinities, NaN and signed zeros too. A lane's result depends on that
/// lane only and is the scalar op's, bit for bit.
///
/// Where a module has hundreds of such ops on vectors, or `callMath` is set, each becomes a call of a function that is
/// written once, and has the attribute kMathFunctionAttr: faster to compile, slower to run.
mlir::LogicalResult expandMath(mlir::ModuleOp module, const Target &target, bool callMath = false);

inline constexpr llvm::StringLiteral kMathFunctionAttr = "wg.math";

} // namespace wg::codegen
