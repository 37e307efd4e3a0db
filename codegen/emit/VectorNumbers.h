// Numbers in vector registers, as formulas: an `F` is a scalar or a vector of f32 or f64 under construction, and
// `a * b + c` builds arith ops. What the expansions share is here. Private to VectorMath.cpp and VectorHyperbolic.cpp.
#pragma once

#include "codegen/emit/Coefficients.h"
#include "codegen/target/Cpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace wg::codegen::vectors {

using namespace mlir;

/// What differs between the formats.
struct Format {
  int bits, mantissa, bias;
  double ln2High, ln2Low;      ///< ln 2 in two parts; n * ln2High is exact for every exponent n
  double expMin, expMax;       ///< exp is 0 below, inf above
  double expm1Min;             ///< expm1 is -1 below
  double expm1Tiny;            ///< expm1(x) = x where |x| is below
  double tanhMax;              ///< tanh is 1 above
  ArrayRef<double> exp, expm1; ///< P of (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2
};

inline constexpr Format kF32 = {32,      23,   127,    0.693359375, -2.12194440054690583e-4, -104, 89, -18,
                                0x1p-24, 9.02, kExp32, kExpm1_32};
inline constexpr Format kF64 = {
    64, 52,     1023,     6.93147180369123816490e-01, 1.90821492927058770002e-10, -746, 710, -38, 0x1p-54,
    22, kExp64, kExpm1_64};

class Emitter;
/// A number (or vector of numbers), its bit pattern, and a truth value, under construction.
struct F {
  Emitter *e;
  Value v;
};
struct I {
  Emitter *e;
  Value v;
};
struct B {
  Emitter *e;
  Value v;
};

/// Builds at one op. Constants go to the head of the function, each once.
class Emitter {
public:
  Emitter(Operation *op, Type type, const Target &target, DenseMap<Attribute, Value> &constants)
      : b(op), op(op), loc(op->getLoc()), type(type), target(target), constants(constants),
        entry(op->getParentOfType<func::FuncOp>()), format(getElementTypeOrSelf(type).isF64() ? kF64 : kF32),
        intType(like(b.getIntegerType(format.bits))) {}

  OpBuilder b;
  Operation *op;
  Location loc;
  Type type;
  const Target &target;
  DenseMap<Attribute, Value> &constants;
  func::FuncOp entry;
  const Format &format;
  Type intType;

  Type like(Type element) const {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? VectorType::get(vector.getShape(), element) : element;
  }
  F number(double value) { return {this, constant(type, b.getFloatAttr(getElementTypeOrSelf(type), value))}; }
  I integer(int64_t value) { return {this, constant(intType, b.getIntegerAttr(getElementTypeOrSelf(intType), value))}; }
  /// The bit pattern of a number.
  int64_t pattern(double value) const {
    return format.bits == 32 ? std::bit_cast<int32_t>(static_cast<float>(value)) : std::bit_cast<int64_t>(value);
  }
  Value constant(Type wanted, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(wanted); vector && !isa<DenseElementsAttr>(value))
      value = DenseElementsAttr::get(vector, value);
    Value &known = constants[value];
    if (!known) {
      OpBuilder head(entry.getBody());
      head.setInsertionPointToStart(&entry.getBody().front());
      known = arith::ConstantOp::create(head, entry.getLoc(), value);
    }
    return known;
  }
};

template <class Op> F make(F x, F y) { return {x.e, Op::create(x.e->b, x.e->loc, x.v, y.v)}; }
template <class Op> I make(I x, I y) { return {x.e, Op::create(x.e->b, x.e->loc, x.v, y.v)}; }
inline F operator+(F x, F y) { return make<arith::AddFOp>(x, y); }
inline F operator-(F x, F y) { return make<arith::SubFOp>(x, y); }
inline F operator*(F x, F y) { return make<arith::MulFOp>(x, y); }
inline F operator/(F x, F y) { return make<arith::DivFOp>(x, y); }
inline F operator+(F x, double y) { return x + x.e->number(y); }
inline F operator-(F x, double y) { return x - x.e->number(y); }
inline F operator*(F x, double y) { return x * x.e->number(y); }
inline F operator-(double x, F y) { return y.e->number(x) - y; }
inline F operator/(double x, F y) { return y.e->number(x) / y; }
inline I operator+(I x, I y) { return make<arith::AddIOp>(x, y); }
inline I operator+(I x, int64_t y) { return make<arith::AddIOp>(x, x.e->integer(y)); }
inline I operator-(I x, I y) { return make<arith::SubIOp>(x, y); }
inline I operator-(I x, int64_t y) { return x + -y; }
inline I operator&(I x, int64_t y) { return make<arith::AndIOp>(x, x.e->integer(y)); }
inline I operator^(I x, I y) { return make<arith::XOrIOp>(x, y); }
inline I operator<<(I x, int64_t y) { return make<arith::ShLIOp>(x, x.e->integer(y)); }
inline I operator>>(I x, int64_t y) { return make<arith::ShRSIOp>(x, x.e->integer(y)); }

inline B compare(arith::CmpFPredicate predicate, F x, F y) {
  return {x.e, arith::CmpFOp::create(x.e->b, x.e->loc, predicate, x.v, y.v)};
}
inline B operator<(F x, double y) { return compare(arith::CmpFPredicate::OLT, x, x.e->number(y)); }
inline B operator>(F x, double y) { return compare(arith::CmpFPredicate::OGT, x, x.e->number(y)); }
inline B operator==(F x, double y) { return compare(arith::CmpFPredicate::OEQ, x, x.e->number(y)); }
inline B operator&(B x, B y) { return {x.e, arith::AndIOp::create(x.e->b, x.e->loc, x.v, y.v)}; }
inline B isNonzero(I x) {
  return {x.e, arith::CmpIOp::create(x.e->b, x.e->loc, arith::CmpIPredicate::ne, x.v, x.e->integer(0).v)};
}
inline B belowUnsigned(I x, int64_t y) {
  return {x.e, arith::CmpIOp::create(x.e->b, x.e->loc, arith::CmpIPredicate::ult, x.v, x.e->integer(y).v)};
}
inline F select(B c, F x, F y) { return {c.e, arith::SelectOp::create(c.e->b, c.e->loc, c.v, x.v, y.v)}; }

inline I bits(F x) { return {x.e, arith::BitcastOp::create(x.e->b, x.e->loc, x.e->intType, x.v)}; }
inline F fromBits(I x) { return {x.e, arith::BitcastOp::create(x.e->b, x.e->loc, x.e->type, x.v)}; }
inline F toNumber(I x) { return {x.e, arith::SIToFPOp::create(x.e->b, x.e->loc, x.e->type, x.v)}; }
inline F negative(F x) { return {x.e, arith::NegFOp::create(x.e->b, x.e->loc, x.v)}; }
inline F abs(F x) { return {x.e, math::AbsFOp::create(x.e->b, x.e->loc, x.v)}; }
inline F sqrt(F x) { return {x.e, math::SqrtOp::create(x.e->b, x.e->loc, x.v)}; }
inline F copysign(F x, F sign) { return {x.e, math::CopySignOp::create(x.e->b, x.e->loc, x.v, sign.v)}; }

/// a b + c: rounded once with FMA hardware, else twice. The expansions hold their bound either way.
inline F fma(F a, F b, F c) {
  if (!a.e->target.hasFma)
    return a * b + c;
  return {a.e, math::FmaOp::create(a.e->b, a.e->loc, a.v, b.v, c.v)};
}
inline F fma(F a, double b, F c) { return fma(a, a.e->number(b), c); }
inline F fma(F a, F b, double c) { return fma(a, b, a.e->number(c)); }

/// c[0] + c[1] x + ... by Horner's rule.
inline F polynomial(F x, ArrayRef<double> c) {
  F y = x.e->number(c.back());
  for (double coefficient : llvm::reverse(c.drop_back()))
    y = fma(y, x, coefficient);
  return y;
}

/// x within [low, high]; a NaN stays. One min and one max instruction, whose second operand is what a NaN gives.
inline F clampAbove(F x, double high) {
  F bound = x.e->number(high);
  return select(compare(arith::CmpFPredicate::OLT, bound, x), bound, x);
}
inline F clampBelow(F x, double low) {
  F bound = x.e->number(low);
  return select(compare(arith::CmpFPredicate::OGT, bound, x), bound, x);
}
inline F clamp(F x, double low, double high) { return clampBelow(clampAbove(x, high), low); }

/// True for a vector of 512 bits where AVX-512 is: some steps are one instruction then, with the same result.
inline bool fillsRegister(F x) {
  auto vector = dyn_cast<VectorType>(x.e->type);
  return x.e->target.hasAvx512 && vector && vector.getDimSize(0) * x.e->format.bits == 512;
}

/// That instruction, on all lanes or on those of the mask, rounding as the control register says.
inline F instruction(F x, StringRef name, SmallVector<Value> operands, Value mask = {}) {
  Emitter &e = *x.e;
  Type all = e.b.getIntegerType(512 / e.format.bits);
  operands.push_back(mask ? mask : e.constant(all, e.b.getIntegerAttr(all, -1)));
  operands.push_back(e.constant(e.b.getI32Type(), e.b.getI32IntegerAttr(4)));
  auto full = e.b.getStringAttr("llvm.x86.avx512.mask." + name + (e.format.bits == 32 ? ".ps.512" : ".pd.512"));
  return {&e, LLVM::CallIntrinsicOp::create(e.b, e.loc, e.type, full, operands).getResult(0)};
}

// ---- Scaling by powers of 2 -----------------------------------------------------------------------------------------

/// x / step = n + fraction with |fraction| <= 1/2, by the sum with 1.5 * 2^mantissa + offset: n + offset is in its
/// low bits.
struct Rounded {
  F n;       ///< as a number
  F shifted; ///< n + offset in the low bits
};

inline Rounded divideAndRound(F x, double step, int offset) {
  double magic = std::ldexp(1.5, x.e->format.mantissa) + offset;
  F shifted = fma(x, 1 / step, x.e->number(magic));
  return {shifted - magic, shifted};
}

/// 2^(n + k), where the offset was bias + k; the sum is the exponent of a normal number.
inline F power(Rounded x) { return fromBits(bits(x.shifted) << x.n.e->format.mantissa); }

/// x - n ln 2 without rounding n ln 2 (Cody and Waite).
inline F remainder(F x, F n) { return fma(n, -x.e->format.ln2Low, fma(n, -x.e->format.ln2High, x)); }

/// y 2^n, where the offset was 2 bias; rounded once where it is subnormal: two factors, the first of which is exact.
inline F scale(F y, Rounded x) {
  if (fillsRegister(y))
    return instruction(y, "scalef", {y.v, x.n.v, y.v});
  // With n + 2 bias in the low bits, half of it is the exponent of 2^floor(n/2), and half of the next that of
  // 2^ceil(n/2).
  I low = bits(x.shifted);
  auto halfPower = [&](I k) { return fromBits((k >> 1) << y.e->format.mantissa); };
  return y * halfPower(low) * halfPower(low + 1);
}

/// The expansions: of x in any lane, within 4 ulp (expandMath).
F exp(F x);
F log1p(F x);
/// n ln 2 + log(1 + f) for f in [sqrt 1/2 - 1, sqrt 2 - 1].
F logOf(F n, F f);
/// finish(n, f) of positive x = 2^n (1 + f), f in that interval; what a logarithm is of any other x.
F logarithm(F x, F (*finish)(F n, F f));
F exp2(F x);
F log2(F x);
F log10(F x);
F sinh(F x);
F cosh(F x);
F asinh(F x);
F acosh(F x);
F atanh(F x);

} // namespace wg::codegen::vectors
