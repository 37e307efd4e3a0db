// How a function becomes arithmetic.
//
//   %y = math.exp %x : vector<16xf32>     ->     n = round(x / ln 2), r = x - n ln 2, y = 2^n (1 + r + r^2 P(r))
//
// Each expansion is written once, over `F`, which stands for a scalar or a vector of f32 or f64: so lanes and scalars
// agree bit for bit; where AVX-512 has a way of its own, by a table in a register, scalars go it too. Polynomials are
// minimax fits of the quotient named beside each (Remez exchange in 50 digits, weighted for the relative error of the
// whole function); the reductions are the textbook ones: Cody and Waite 1980 for exp, Tang 1990 for log. Arithmetic has
// no fast-math flag: what is written is what runs.
#include "codegen/emit/VectorMath.h"

#include "codegen/emit/VectorNumbers.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace mlir;

namespace wg::codegen {

namespace vectors {

// ---- exp, expm1 -----------------------------------------------------------------------------------------------------

// With AVX-512, exp, sigmoid and tanh of f64 take 2^(n/16) from a table of two registers: a third of the operations
// less. Fewer than 8 lanes, and scalars, are computed as 8, so that they have the same bits.

bool hasTables(Type type, const Target &target) {
  auto vector = dyn_cast<VectorType>(type);
  return target.hasAvx512 && getElementTypeOrSelf(type).isF64() &&
         (!vector || (vector.getRank() == 1 && !vector.isScalable() && vector.getDimSize(0) <= 8));
}
bool hasTables(F x) { return hasTables(x.e->type, x.e->target); }

F inEightLanes(F x, F (*f)(F)) {
  Emitter &e = *x.e;
  auto vector = dyn_cast<VectorType>(e.type);
  if (vector && vector.getDimSize(0) == 8)
    return f(x);
  auto type = VectorType::get({8}, e.b.getF64Type());
  Emitter wide(e.op, type, e.target, e.constants);
  if (!vector) {
    Value y = f({&wide, vector::BroadcastOp::create(e.b, e.loc, type, x.v)}).v;
    return {&e, vector::ExtractOp::create(e.b, e.loc, y, ArrayRef<int64_t>{0})};
  }
  int64_t lanes = vector.getDimSize(0);
  SmallVector<int64_t> from = llvm::to_vector(llvm::seq<int64_t>(0, lanes));
  SmallVector<int64_t> padded = from;
  padded.resize(8, 0);
  Value y = f({&wide, vector::ShuffleOp::create(e.b, e.loc, x.v, x.v, padded)}).v;
  return {&e, vector::ShuffleOp::create(e.b, e.loc, y, y, from)};
}

/// Entry i of a table of 16, by the low bits of i.
F lookUp(I i, ArrayRef<double> table) {
  Emitter &e = *i.e;
  auto half = [&](ArrayRef<double> values) {
    return e.constant(e.type, DenseElementsAttr::get(cast<ShapedType>(e.type), values));
  };
  auto name = e.b.getStringAttr("llvm.x86.avx512.vpermi2var.pd.512");
  SmallVector<Value> operands{half(table.take_front(8)), i.v, half(table.drop_front(8))};
  return {&e, LLVM::CallIntrinsicOp::create(e.b, e.loc, e.type, name, operands).getResult(0)};
}

/// x / step to the next sixteenth.
Rounded divideBySixteenths(F x, double step) {
  double magic = std::ldexp(1.5, x.e->format.mantissa - 4);
  F shifted = fma(x, 1 / step, x.e->number(magic));
  return {shifted - magic, shifted};
}

/// 1 / d, to an ulp, for d whose reciprocal is a normal number: 14 bits of it and two steps of Newton's. (Five
/// operations; a division keeps its unit as long as sixteen.)
F reciprocal(F d) {
  Emitter &e = *d.e;
  auto name = e.b.getStringAttr("llvm.x86.avx512.rcp14.pd.512");
  Type mask = e.b.getIntegerType(8);
  SmallVector<Value> operands{d.v, d.v, e.constant(mask, e.b.getIntegerAttr(mask, -1))};
  F r = {&e, LLVM::CallIntrinsicOp::create(e.b, e.loc, e.type, name, operands).getResult(0)};
  for (int step = 0; step < 2; ++step)
    r = fma(r, fma(negative(d), r, 1), r);
  return r;
}

/// 2^(n/16) factor, where the integer n is in the low bits of `shifted`: normal numbers only.
F powerOfSixteenths(F shifted, double factor) {
  // The table less j/16 in its exponents: n and j/16 are added together.
  const int64_t shift = shifted.e->format.mantissa - 4;
  SmallVector<double> roots;
  for (int64_t j = 0; j < 16; ++j)
    roots.push_back(std::bit_cast<double>(std::bit_cast<int64_t>(kRoot16[j] * factor) - (j << shift)));
  I sixteenths = bits(shifted);
  return fromBits(bits(lookUp(sixteenths, roots)) + (sixteenths << shift));
}

/// s e^r + added.
F expStep(F s, F r, F added) { return fma(s * r, fma(polynomial(r, kExpStep64), r, 1), added); }

/// x = n ln 2 + r, n in sixteenths: 2^n e^r.
F expByTable(F x) {
  F c = clamp(x, x.e->format.expMin, -x.e->format.expMin);
  Rounded n = divideBySixteenths(c, M_LN2);
  F root = lookUp(bits(n.shifted), kRoot16);
  return instruction(x, "scalef", {expStep(root, remainder(c, n.n), root).v, n.n.v, x.v});
}

/// u / (u + 2 - 2t), u = s - 1 + t (s + 1), with s = 2^(n + j/16), a = (n + j/16) ln 2 / 2 + r, t = tanh(r), which is
/// odd: half the terms of an exponential. With the rest of s, nothing is lost where s - 1 is small.
F tanhByTable(F a) {
  Rounded n = divideBySixteenths(a, M_LN2 / 2);
  F s = powerOfSixteenths(n.shifted, 1);
  SmallVector<double> halves;
  for (double rest : kRoot16Rest)
    halves.push_back(rest / 2);
  F r = fma(n.n, -M_LN2 / 2, a) + lookUp(bits(n.shifted), halves), z = r * r;
  F t = fma(z * r, polynomial(z, kTanhStep64), r), u = fma(t, s + 1, s - 1);
  return u / (u + fma(t, -2.0, a.e->number(2)));
}

/// Whether it is -|y|, as in sigmoid.
bool isNegative(F x) {
  auto negated = x.v.getDefiningOp<arith::NegFOp>();
  return negated && negated.getOperand().getDefiningOp<math::AbsFOp>();
}

/// 1 / (1 + e^-x) as 2^-64 / (2^-64 + 2^-64 e^-x), where nothing overflows, or is 0 before the quotient is. It is 0
/// below -746 and 1 above 38.
F sigmoidByTable(F x) {
  const double down = std::ldexp(1.0, -64);
  F c = clamp(x, x.e->format.expMin, 64);
  Rounded n = divideBySixteenths(c, -M_LN2);
  F s = powerOfSixteenths(n.shifted, down), sum = expStep(s, remainder(negative(c), n.n), s + down);
  return x.e->target.hasCheapDivision ? down / sum : reciprocal(sum) * down;
}

/// Where there are tables.
static F sigmoid(F x) { return inEightLanes(x, sigmoidByTable); }

F exp(F x) {
  const Format &format = x.e->format;
  if (hasTables(x))
    return inEightLanes(x, expByTable);
  F c = clampBelow(isNegative(x) ? x : clampAbove(x, format.expMax), format.expMin);
  Rounded n = divideAndRound(c, M_LN2, 2 * format.bias);
  F r = remainder(c, n.n);
  return scale(fma(polynomial(r, format.exp), r * r, r + 1), n);
}

/// 2^n (e^r - 1) + (2^n - 1), with half of each so that 2^n does not overflow before the sum does. For n = 0 the last
/// term is 0 and the result as exact as its first; the tiny numbers, whose half may not be representable, are their own
/// result.
static F expm1(F x) {
  const Format &format = x.e->format;
  F c = clamp(x, format.expm1Min, format.expMax);
  Rounded n = divideAndRound(c, M_LN2, format.bias - 1);
  F r = remainder(c, n.n), p = fma(polynomial(r, format.expm1), r * r, r), half = power(n);
  F y = fma(p, half, half - 0.5);
  return select(abs(x) < format.expm1Tiny, x, y + y);
}

// ---- log, log1p -----------------------------------------------------------------------------------------------------

/// Small terms first.
F logOf(F n, F f) {
  const Format &format = f.e->format;
  if (format.bits == 32) {
    F z = f * f, y = polynomial(f, kLog32) * f * z;
    y = fma(n, format.ln2Low, y);
    return fma(n, format.ln2High, f + fma(z, -0.5, y));
  }
  F s = f / (f + 2), z = s * s, half = f * f * 0.5;
  F tail = fma(s, fma(z, polynomial(z, kLog64), half), n * format.ln2Low);
  return fma(n, format.ln2High, f - (half - tail));
}

/// x = 2^n (1 + f) by the bits of x. Subnormals are scaled to normal numbers first.
F logarithm(F x, F (*finish)(F n, F f)) {
  Emitter &e = *x.e;
  const Format &format = e.format;
  double smallest = std::ldexp(1.0, 1 - format.bias), infinity = std::numeric_limits<double>::infinity();
  // The square root of 1/2 as the format has it.
  double root = format.bits == 32 ? static_cast<float>(M_SQRT1_2) : M_SQRT1_2;
  if (fillsRegister(x)) {
    Value immediate = e.constant(e.b.getI32Type(), e.b.getI32IntegerAttr(0));
    F mantissa = instruction(x, "getmant", {x.v, immediate, x.v}); // in [1, 2)
    F n = instruction(x, "getexp", {x.v, x.v});
    B upper = compare(arith::CmpFPredicate::OGE, mantissa, e.number(2 * root));
    F y = finish(select(upper, n + 1, n), select(upper, mantissa * 0.5, mantissa) - 1);
    // By class of x, from the lowest digit: quiet and signalling NaN: itself; 0: -inf; 1: y; -inf: NaN; inf: inf;
    // negative: NaN; positive: y.
    return instruction(x, "fixupimm", {y.v, x.v, e.integer(0x03530422).v, immediate});
  }
  B subnormal = x < smallest;
  F scaled = select(subnormal, x * std::ldexp(1.0, format.mantissa + 2), x);
  I offset = bits(scaled) - e.pattern(root);
  F n = toNumber(offset >> format.mantissa) + select(subnormal, e.number(-format.mantissa - 2), e.number(0));
  F f = fromBits((offset & ((int64_t(1) << format.mantissa) - 1)) + e.pattern(root)) - 1;
  // Positive and finite: one comparison of the bits.
  B ordinary = belowUnsigned(bits(x) - 1, e.pattern(infinity) - 1);
  F notReal = e.number(-std::numeric_limits<double>::quiet_NaN());
  F special = select(x == 0, e.number(-infinity), select(x < 0, notReal, x));
  return select(ordinary, finish(n, f), special);
}

static F log(F x) { return logarithm(x, logOf); }

/// 1 + x = 2^n (1 + f) with n taken from the rounded sum and f = 2^-n x + (2^-n - 1) from x itself, whose last bits the
/// sum lost.
F log1p(F x) {
  Emitter &e = *x.e;
  const Format &format = e.format;
  double infinity = std::numeric_limits<double>::infinity();
  I n = (bits(x + 1) - e.pattern(M_SQRT1_2)) & -(int64_t(1) << format.mantissa); // still shifted
  F scaled = fromBits(bits(x) - n);
  F fourth = fromBits(e.integer(e.pattern(4)) - n); // 4 * 2^-n: normal for every n
  F f = scaled + fma(fourth, 0.25, e.number(-1));
  F y = copysign(logOf(toNumber(n >> format.mantissa), f), x);
  F special =
      select(x == -1, e.number(-infinity), select(x < -1, e.number(std::numeric_limits<double>::quiet_NaN()), x));
  return select((x > -1) & (x < infinity), y, special);
}

// ---- tanh, erf, rsqrt -----------------------------------------------------------------------------------------------

/// t / (t + 1) with t = (e^2a - 1) / 2, a = |x| = n ln 2 / 2 + r: from e^2r = 1 + 2 p, t = 2^n p + (2^n - 1) / 2, where
/// nothing is lost near 0. It is 1 in the format beyond tanhMax. ln 2 / 2 needs no second part: n is large only where
/// tanh is flat. (A rational function of x^2 has three operations less, and exceeds 4 ulp.)
static F tanh(F x) {
  const Format &format = x.e->format;
  SmallVector<double> scaled; // (e^2r - 1 - 2r) / (2 r^2)
  for (double c : format.expm1)
    scaled.push_back(std::ldexp(c, static_cast<int>(scaled.size()) + 1));
  F a = clampAbove(abs(x), format.tanhMax);
  if (hasTables(x))
    return copysign(inEightLanes(a, tanhByTable), x);
  Rounded n = divideAndRound(a, M_LN2 / 2, format.bias);
  F r = fma(n.n, -M_LN2 / 2, a), p = fma(polynomial(r, scaled), r * r, r), twoToN = power(n);
  F t = fma(p, twoToN, fma(twoToN, 0.5, x.e->number(-0.5)));
  return copysign(t / (t + 1), x);
}

/// f32 only. x (1 + P(x^2)) near 0; 1 - exp(-|x| Q(|x|)) elsewhere.
static F erf(F x) {
  F t = clampAbove(abs(x), 3.95), z = x * x;
  F near = fma(x, polynomial(z, kErfSmall), x);
  F y = t * polynomial(t, kErfTail) * -1; // in [-17, 0]: 2^n is normal
  Rounded n = divideAndRound(y, M_LN2, x.e->format.bias);
  F r = remainder(y, n.n), complement = fma(polynomial(r, kExp32), r * r, r + 1) * power(n);
  return select(t < 0.9375, near, copysign(1 - complement, x));
}

static F rsqrt(F x) { return 1 / sqrt(x); }

// ---- sin, cos, and what only libm has -------------------------------------------------------------------------------

/// One call of libm for each lane, in a loop, for calls are long and code is not to be; null, with a diagnostic, if the
/// module means something else by that name. The lanes wait on the stack.
static Value callLanes(OpBuilder &b, Location loc, func::FuncOp caller, StringRef name, Type type,
                       ValueRange operands) {
  Type element = getElementTypeOrSelf(type);
  SmallVector<Type> types(operands.size(), element);
  auto module = caller->getParentOfType<ModuleOp>();
  std::string symbol = element.isF32() ? name.str() + "f" : name.str();
  Operation *known = module.lookupSymbol(symbol);
  auto callee = dyn_cast_or_null<func::FuncOp>(known);
  FunctionType signature = b.getFunctionType(types, element);
  if (!known) {
    OpBuilder head(module.getBodyRegion());
    callee = func::FuncOp::create(head, module.getLoc(), symbol, signature);
    callee.setPrivate();
  } else if (!callee || !callee.isExternal() || callee.getFunctionType() != signature) {
    emitError(loc) << "the program names one of its own functions '" << symbol
                   << "', which is the name of a function of libm that it calls";
    return nullptr;
  }
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return func::CallOp::create(b, loc, callee, operands).getResult(0);
  SmallVector<Value> slots;
  {
    OpBuilder head(caller.getContext());
    head.setInsertionPointToStart(&caller.getBody().front());
    Value one = LLVM::ConstantOp::create(head, loc, head.getI64IntegerAttr(1));
    for (size_t i = 0; i < operands.size(); ++i)
      slots.push_back(
          LLVM::AllocaOp::create(head, loc, LLVM::LLVMPointerType::get(b.getContext()), vector, one, /*alignment=*/64));
  }
  for (auto [slot, operand] : llvm::zip_equal(slots, operands))
    LLVM::StoreOp::create(b, loc, operand, slot);
  auto number = [&](int64_t value) -> Value { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); };
  auto lanes = scf::ForOp::create(b, loc, number(0), number(vector.getDimSize(0)), number(1));
  OpBuilder body = OpBuilder::atBlockBegin(lanes.getBody());
  SmallVector<Value> places, arguments;
  for (Value slot : slots) {
    places.push_back(
        LLVM::GEPOp::create(body, loc, slot.getType(), element, slot, ValueRange{lanes.getInductionVar()}));
    arguments.push_back(LLVM::LoadOp::create(body, loc, element, places.back()));
  }
  LLVM::StoreOp::create(body, loc, func::CallOp::create(body, loc, callee, arguments).getResult(0), places[0]);
  return LLVM::LoadOp::create(b, loc, type, slots[0]);
}

/// f32 only; the sine of x + shift pi/2. x = n pi/2 + r in f64, which is exact enough while n has at most 20 bits; n
/// modulo 4 chooses polynomial and sign. Larger arguments are rare: then their lanes, and only theirs, are taken from
/// libm.
static F sinShifted(F x, int shift, StringRef name) {
  Emitter &e = *x.e;
  Emitter wide(e.op, e.like(e.b.getF64Type()), e.target, e.constants);
  F w{&wide, arith::ExtFOp::create(e.b, e.loc, wide.type, x.v)};
  Rounded n = divideAndRound(w, M_PI_2, 0);
  F wideRest = fma(n.n, -kHalfPiLow, fma(n.n, -kHalfPiHigh, w));
  F r{&e, arith::TruncFOp::create(e.b, e.loc, e.type, wideRest.v)};
  I quadrant = I{&e, arith::TruncIOp::create(e.b, e.loc, e.intType, bits(n.shifted).v)} + shift;

  F z = r * r, sine = r * fma(polynomial(z, kSin), z, 1);
  F cosine = fma(z * z, polynomial(z, kCos), fma(z, -0.5, e.number(1)));
  F y = select(isNonzero(quadrant & 1), cosine, sine);
  y = fromBits(bits(y) ^ ((quadrant & 2) << 30));

  B large = compare(arith::CmpFPredicate::OGE, abs(x), e.number(1e6));
  Value any = isa<VectorType>(e.type)
                  ? vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::OR, large.v).getResult()
                  : large.v;
  auto branch = scf::IfOp::create(e.b, e.loc, e.type, any, /*withElseRegion=*/true);
  OpBuilder rare = branch.getThenBodyBuilder(), usual = branch.getElseBodyBuilder();
  Value exact = callLanes(rare, e.loc, e.entry, name, e.type, x.v);
  if (!exact)
    return {&e, nullptr};
  scf::YieldOp::create(rare, e.loc, arith::SelectOp::create(rare, e.loc, large.v, exact, y.v).getResult());
  scf::YieldOp::create(usual, e.loc, y.v);
  return {&e, branch.getResult(0)};
}

static F sin(F x) { return sinShifted(x, 0, "sin"); }
static F cos(F x) { return sinShifted(x, 1, "cos"); }

// ---- Which op becomes what ------------------------------------------------------------------------------------------

using Expansion = F (*)(F);

/// The expansion of a unary op, or null.
static Expansion expansionOf(Operation *op, bool isF32) {
  return llvm::TypeSwitch<Operation *, Expansion>(op)
      .Case<math::ExpOp>([](auto) { return exp; })
      .Case<math::ExpM1Op>([](auto) { return expm1; })
      .Case<math::LogOp>([](auto) { return log; })
      .Case<math::Log1pOp>([](auto) { return log1p; })
      .Case<math::TanhOp>([](auto) { return tanh; })
      .Case<math::ErfOp>([&](auto) -> Expansion { return isF32 ? erf : nullptr; })
      .Case<math::RsqrtOp>([](auto) { return rsqrt; })
      .Case<math::Exp2Op>([](auto) { return exp2; })
      .Case<math::Log2Op>([](auto) { return log2; })
      .Case<math::Log10Op>([](auto) { return log10; })
      .Case<math::SinhOp>([](auto) { return sinh; })
      .Case<math::CoshOp>([](auto) { return cosh; })
      .Case<math::AsinhOp>([](auto) { return asinh; })
      .Case<math::AcoshOp>([](auto) { return acosh; })
      .Case<math::AtanhOp>([](auto) { return atanh; })
      .Case<math::SinOp>([&](auto) -> Expansion { return isF32 ? sin : nullptr; })
      .Case<math::CosOp>([&](auto) -> Expansion { return isF32 ? cos : nullptr; })
      .Default([](auto) { return nullptr; });
}

/// x where `op` is the quotient (x < 0 ? e : 1) / (1 + e) of e = exp(-|x|), as a sigmoid is written; else null.
static Value sigmoidArgument(arith::DivFOp op) {
  auto choice = op.getLhs().getDefiningOp<arith::SelectOp>();
  auto sum = op.getRhs().getDefiningOp<arith::AddFOp>();
  if (!choice || !sum)
    return {};
  Value e = choice.getTrueValue(), one = choice.getFalseValue();
  auto exp = e.getDefiningOp<math::ExpOp>();
  auto negated = exp ? exp.getOperand().getDefiningOp<arith::NegFOp>() : nullptr;
  auto absolute = negated ? negated.getOperand().getDefiningOp<math::AbsFOp>() : nullptr;
  auto below = choice.getCondition().getDefiningOp<arith::CmpFOp>();
  bool isSum = (sum.getLhs() == e && sum.getRhs() == one) || (sum.getLhs() == one && sum.getRhs() == e);
  if (!isSum || !absolute || !below || below.getPredicate() != arith::CmpFPredicate::OLT ||
      below.getLhs() != absolute.getOperand() || !matchPattern(below.getRhs(), m_AnyZeroFloat()) ||
      !matchPattern(one, m_OneFloat()))
    return {};
  return absolute.getOperand();
}

/// The f64 function of libm that an op is; empty for ops that LLVM has instructions or intrinsics for.
static StringRef libraryName(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case<math::SinOp>([](auto) { return "sin"; })
      .Case<math::CosOp>([](auto) { return "cos"; })
      .Case<math::TanOp>([](auto) { return "tan"; })
      .Case<math::AsinOp>([](auto) { return "asin"; })
      .Case<math::AcosOp>([](auto) { return "acos"; })
      .Case<math::AtanOp>([](auto) { return "atan"; })
      .Case<math::Atan2Op>([](auto) { return "atan2"; })
      .Case<math::CbrtOp>([](auto) { return "cbrt"; })
      .Case<math::ErfOp>([](auto) { return "erf"; })
      .Case<math::ErfcOp>([](auto) { return "erfc"; })
      .Case<math::PowFOp>([](auto) { return "pow"; })
      .Default([](auto) { return ""; });
}

} // namespace vectors

using namespace vectors;

/// From so many expansions on, each is a function of its own and not a copy in every kernel. A copy takes LLVM some
/// 2 ms, a call a fifth of the time of what it computes.
static constexpr int64_t kMostCopies = 256;

namespace {
/// The functions on vectors that ops become, made at their first use.
class MathFunctions {
public:
  MathFunctions(ModuleOp module, const Target &target) : module(module), target(target) {}

  /// Null where the expansion fails.
  func::FuncOp get(Operation *op, Expansion expansion, VectorType type) {
    func::FuncOp &function = known[{op->getName().getAsOpaquePointer(), type}];
    if (function)
      return function;
    std::string name = op->getName().getStringRef().str();
    llvm::raw_string_ostream(name) << '.' << type.getNumElements() << 'x' << type.getElementType();
    while (module.lookupSymbol(name)) // somebody's own
      name += '_';
    OpBuilder b(module.getBodyRegion());
    auto made = func::FuncOp::create(b, module.getLoc(), name, b.getFunctionType(type, type));
    made.setPrivate();
    made->setAttr(kMathFunctionAttr, b.getUnitAttr());
    Block *body = made.addEntryBlock();
    b.setInsertionPointToStart(body);
    auto end = func::ReturnOp::create(b, module.getLoc(), body->getArguments());
    DenseMap<Attribute, Value> constants;
    Emitter emitter(end, type, target, constants);
    Value result = expansion(F{&emitter, body->getArgument(0)}).v;
    if (!result)
      return nullptr;
    end.setOperand(0, result);
    return function = made;
  }

private:
  ModuleOp module;
  const Target &target;
  DenseMap<std::pair<const void *, Type>, func::FuncOp> known;
};
} // namespace

LogicalResult expandMath(ModuleOp module, const Target &target, bool callMath) {
  DenseMap<Operation *, DenseMap<Attribute, Value>> constants;
  // Sigmoids become quotients of one number by itself, of which nothing is left but the number.
  DenseSet<Operation *> sigmoids;
  module.walk([&](arith::DivFOp op) {
    Value x = sigmoidArgument(op);
    if (!x || !hasTables(op.getType(), target))
      return;
    SmallVector<Operation *> unread{op.getLhs().getDefiningOp(), op.getRhs().getDefiningOp()};
    op->setOperands({x, x});
    sigmoids.insert(op);
    while (!unread.empty())
      if (Operation *last = unread.pop_back_val(); last && isOpTriviallyDead(last)) {
        for (Value operand : last->getOperands())
          unread.push_back(operand.getDefiningOp());
        last->erase();
      }
  });
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (isa<vector::FMAOp>(op) || isa_and_present<math::MathDialect>(op->getDialect()) || sigmoids.contains(op))
      ops.push_back(op);
  });
  auto expansionFor = [&](Operation *op, bool isF32) {
    return sigmoids.contains(op) ? Expansion(sigmoid) : expansionOf(op, isF32);
  };
  auto isCopied = [&](Operation *op) {
    return expansionFor(op, true) && isa<VectorType>(op->getResult(0).getType()) && !isa<math::RsqrtOp>(op);
  };
  bool asFunctions = callMath || llvm::count_if(ops, isCopied) > kMostCopies;
  MathFunctions functions(module, target);
  for (Operation *op : ops) {
    Type type = op->getResult(0).getType(), element = getElementTypeOrSelf(type);
    OpBuilder b(op);
    Location loc = op->getLoc();
    if (isa<vector::FMAOp, math::FmaOp>(op)) {
      if (target.hasFma)
        continue;
      Value product = arith::MulFOp::create(b, loc, op->getOperand(0), op->getOperand(1));
      op->replaceAllUsesWith(arith::AddFOp::create(b, loc, product, op->getOperand(2)));
      op->erase();
      continue;
    }
    bool half = element.isF16() || element.isBF16();
    Expansion expansion = expansionFor(op, element.isF32() || half);
    StringRef library = libraryName(op);
    if (!expansion && library.empty())
      continue;
    auto vector = dyn_cast<VectorType>(type);
    if ((vector && (vector.getRank() != 1 || vector.isScalable())) || !(element.isF32() || element.isF64() || half))
      return op->emitOpError("has no machine code for ")
             << type << "; scalars and one-dimensional vectors of f16, bf16, f32, f64 have";

    // Half precision is computed in f32 and rounded.
    SmallVector<Value> operands(op->getOperands());
    if (sigmoids.contains(op))
      operands.pop_back();
    Type computed = type;
    if (half) {
      computed = vector ? Type(VectorType::get(vector.getShape(), b.getF32Type())) : b.getF32Type();
      for (Value &operand : operands)
        operand = arith::ExtFOp::create(b, loc, computed, operand);
    }
    Value result;
    if (expansion && asFunctions && isCopied(op)) {
      if (func::FuncOp function = functions.get(op, expansion, cast<VectorType>(computed)))
        result = func::CallOp::create(b, loc, function, operands).getResult(0);
    } else if (expansion) {
      Emitter emitter(op, computed, target, constants[op->getParentOfType<func::FuncOp>()]);
      result = expansion(F{&emitter, operands[0]}).v;
    } else {
      result = callLanes(b, loc, op->getParentOfType<func::FuncOp>(), library, computed, operands);
    }
    if (!result)
      return failure();
    if (half)
      result = arith::TruncFOp::create(b, loc, type, result);
    op->replaceAllUsesWith(ValueRange{result});
    op->erase();
  }
  return success();
}

} // namespace wg::codegen
