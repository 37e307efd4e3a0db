//===- Elementwise.td - one element at a time ------------------------------------------------------===//
#ifndef WG_OPS_ELEMENTWISE_TD
#define WG_OPS_ELEMENTWISE_TD

include "ir/Dialect.td"

def WG_NegOp : WG_UnaryNumberOp<"neg", "y = -x"> {
  let description = [{Negation of every element; integers wrap modulo 2^n. Shapes: x number[...] -> y number[...].}];
  let hasFolder = 1;
  let samples = ["f64[2,3] in [-3, 3]"];
}

def WG_AbsOp : WG_UnaryNumberOp<"abs", "y = |x|"> {
  let description = [{Absolute value; the lowest integer is its own. Derivative at 0: 0. Shapes: x number[...] -> y number[...].}];
  let samples = ["f64[2,3] in [-3, 3]"];
}

def WG_SignOp : WG_UnaryNumberOp<"sign", "y = sign(x)", [WG_NotDifferentiable<"is constant wherever it is differentiable">]> {
  let description = [{-1, 0 or 1; 0 of both zeros, NaN of NaN. Shapes: x number[...] -> y number[...].}];
  let samples = ["f64[5] = [-2.5, -0.0, 0.0, 0.5, 3]"];
}

def WG_ExpOp : WG_UnaryOp<"exp", "y = exp(x)", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{Exponential; overflows to inf and underflows gradually. Shapes: x float[...] -> y float[...].}];
  let agreement = "2, 2 ulp of the element";
  let samples = ["f64[2,3] in [-3, 3]"];
}

def WG_Expm1Op : WG_UnaryOp<"expm1", "y = exp(x) - 1", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{exp(x) - 1 without cancellation near 0. Shapes: x float[...] -> y float[...].}];
  let agreement = "3, 3 ulp of the element";
  let samples = ["f64[2,3] in [-2, 2]", "f64[3] = [-1e-9, 1e-9, 1e-5]"];
}

def WG_LogOp : WG_UnaryOp<"log", "y = log(x)", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{Natural logarithm; -inf at 0, NaN below. Shapes: x float[...] -> y float[...].}];
  let agreement = "2, 2 ulp of the element";
  let samples = ["f64[2,3] in [0.1, 3]"];
}

def WG_Log1pOp : WG_UnaryOp<"log1p", "y = log(1 + x)", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{log(1 + x) without cancellation near 0; -inf at -1, NaN below. Shapes: x float[...] -> y float[...].}];
  let agreement = "2, 2 ulp of the element";
  let samples = ["f64[2,3] in [-0.9, 3]", "f64[3] = [-1e-9, 1e-9, 1e-5]"];
}

def WG_SqrtOp : WG_UnaryOp<"sqrt", "y = sqrt(x)"> {
  let description = [{Square root; NaN below 0. Derivative at 0: inf. Shapes: x float[...] -> y float[...].}];
  let samples = ["f64[2,3] in [0.1, 4]"];
}

def WG_RsqrtOp : WG_UnaryOp<"rsqrt", "y = 1 / sqrt(x)"> {
  let description = [{Reciprocal square root; inf at 0, NaN below. Shapes: x float[...] -> y float[...].}];
  let samples = ["f64[2,3] in [0.1, 4]"];
}

def WG_TanhOp : WG_UnaryOp<"tanh", "y = tanh(x)", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{
    Hyperbolic tangent of every element; saturates to -1 or 1, never overflows.
    Shapes: x float[...] -> y float[...]. Example: `%y = wg.tanh %x : tensor<2x3xf32>`
  }];
  let agreement = "4, 4 ulp of the element";
  let samples = ["f64[2,3] in [-3, 3]"];
}

def WG_SigmoidOp : WG_UnaryOp<"sigmoid", "y = 1 / (1 + exp(-x))", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{Logistic function; saturates to 0 or 1, never overflows. Shapes: x float[...] -> y float[...].}];
  let agreement = "3, 3 ulp of the element";
  let samples = ["f64[2,3] in [-4, 4]"];
}

def WG_SoftplusOp : WG_UnaryOp<"softplus", "y = log(1 + exp(x))", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{
    Softplus, the smooth rectifier: neither side overflows. Its slope is sigmoid(x). Shapes: x float[...] -> y float[...].
  }];
  let agreement = "3, 3 ulp of the element";
  let samples = ["f64[2,3] in [-4, 4]", "f64[7] = [-800, -40, -1, 0, 1, 40, 800]"];
}

def WG_SoftsignOp : WG_UnaryOp<"softsign", "y = x / (1 + |x|)"> {
  let description = [{Softsign; tends to -1 and 1 as a power does, and is -1 and 1 at the infinities. Shapes: x float[...] -> y float[...].}];
  let samples = ["f64[2,3] in [-3, 3]", "f64[6] = [-1e300, -1e9, -0.001, 0.001, 1e9, 1e300]"];
}

def WG_ReluOp : WG_UnaryOp<"relu", "y = max(x, 0)"> {
  let description = [{Rectifier; NaN stays NaN. Derivative at 0: 0. Shapes: x float[...] -> y float[...].}];
  let samples = ["f64[2,3] in [-3, 3]"];
}

def WG_SinOp : WG_UnaryOp<"sin", "y = sin(x)", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{Sine; NaN of an infinity. Shapes: x float[...] in radians -> y float[...].}];
  let agreement = "0, 3 ulp of the element";
  let samples = ["f64[2,3] in [-7, 7]"];
}

def WG_CosOp : WG_UnaryOp<"cos", "y = cos(x)", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{Cosine; NaN of an infinity. Shapes: x float[...] in radians -> y float[...].}];
  let agreement = "0, 3 ulp of the element";
  let samples = ["f64[2,3] in [-7, 7]"];
}

def WG_ErfOp : WG_UnaryOp<"erf", "y = erf(x)", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x. Shapes: x float[...] -> y float[...].}];
  let agreement = "0, 2 ulp of the element";
  let samples = ["f64[2,3] in [-3, 3]"];
}

def WG_FloorOp : WG_UnaryOp<"floor", "y = floor(x)", [WG_NotDifferentiable<"is constant wherever it is differentiable">]> {
  let description = [{Largest integer value not above x. Shapes: x float[...] -> y float[...].}];
  let samples = ["f64[6] = [-1.5, -1, -0.2, 0.2, 1, 1.5]"];
}

def WG_CeilOp : WG_UnaryOp<"ceil", "y = ceil(x)", [WG_NotDifferentiable<"is constant wherever it is differentiable">]> {
  let description = [{Smallest integer value not below x. Shapes: x float[...] -> y float[...].}];
  let samples = ["f64[6] = [-1.5, -1, -0.2, 0.2, 1, 1.5]"];
}

def WG_RoundOp : WG_UnaryOp<"round", "y = round(x)", [WG_NotDifferentiable<"is constant wherever it is differentiable">]> {
  let description = [{Nearest integer value, halves to even. Shapes: x float[...] -> y float[...].}];
  let samples = ["f64[6] = [-1.5, -0.5, 0.2, 0.5, 1.5, 2.5]"];
}

def WG_IsNanOp : WG_ElementwiseOp<"is_nan", "y = x is NaN", [WG_NotDifferentiable<"has a bool result">]> {
  let description = [{Whether each element is NaN. Shapes: x float[...] -> y bool[...].}];
  let arguments = (ins WG_FloatTensor:$x);
  let results = (outs WG_BoolTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let dtypes = "floats";
  let samples = ["f64[3] = [-1, nan, inf]"];
}

def WG_LogicalNotOp : WG_ElementwiseOp<"logical_not", "y = not x", [WG_NotDifferentiable<"has a bool result">]> {
  let hasFolder = 1;
  let description = [{Negation of every element. Shapes: x bool[...] -> y bool[...].}];
  let arguments = (ins WG_BoolTensor:$x);
  let results = (outs WG_BoolTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let dtypes = "booleans";
  let samples = ["bool[2] = [0, 1]"];
}

def WG_AddOp : WG_BinaryOp<"add", "c = a + b"> {
  let description = [{Sum; integers wrap modulo 2^n. Shapes: a, b number[...] -> c number[...].}];
  let hasFolder = 1;
  let samples = ["f64[2,3] in [-3, 3]; f64[2,3] in [-3, 3]"];
}

def WG_SubOp : WG_BinaryOp<"sub", "c = a - b"> {
  let description = [{Difference; integers wrap modulo 2^n. Shapes: a, b number[...] -> c number[...].}];
  let hasFolder = 1;
  let samples = ["f64[2,3] in [-3, 3]; f64[2,3] in [-3, 3]"];
}

def WG_MulOp : WG_BinaryOp<"mul", "c = a * b"> {
  let description = [{Product; integers wrap modulo 2^n. Shapes: a, b number[...] -> c number[...].}];
  let hasFolder = 1;
  let samples = ["f64[2,3] in [-3, 3]; f64[2,3] in [-3, 3]"];
}

def WG_DivOp : WG_BinaryFloatOp<"div", "c = a / b"> {
  let description = [{Quotient, IEEE; for integers use floor_div or cast. Shapes: a, b float[...] -> c float[...].}];
  let hasFolder = 1;
  let samples = ["f64[2,3] in [-3, 3]; f64[2,3] in [0.3, 3]"];
}

def WG_FloorDivOp : WG_BinaryOp<"floor_div", "c = floor(a / b)", [WG_NotDifferentiable<"is constant wherever it is differentiable">]> {
  let description = [{
    Quotient rounded down. Integers: x // 0 = -1 (u8: 255), MIN // -1 = MIN. Shapes: a, b number[...] -> c number[...].
  }];
  let samples = ["f64[4] = [-3.5, 3.5, 7, -7]; f64[4] = [2, -2, 2, 2]", "i32[6] = [-7, 7, -7, 7, 5, -2147483648]; i32[6] = [2, -2, -2, 2, 0, -1]"];
}

def WG_RemainderOp : WG_BinaryOp<"remainder", "c = a - b * floor(a / b)"> {
  let description = [{
    Remainder with the sign of the divisor. Floats: x % 0 is NaN. Integers: x % 0 = x, MIN % -1 = 0.
    Shapes: a, b number[...] -> c number[...].
  }];
  let samples = ["f64[2,3] in [-3, 3]; f64[2,3] in [0.6, 2]", "i32[6] = [-7, 7, -7, 7, 5, -2147483648]; i32[6] = [2, -2, -2, 2, 0, -1]"];
}

def WG_PowOp : WG_BinaryOp<"pow", "c = a ^ b", [WG_HasSlopes, WG_Transcendental]> {
  let description = [{
    Power, IEEE: pow(x, 0) = 1, pow(1, y) = 1, a negative base with a fractional exponent is NaN. Integers with a negative
    exponent: 1 -> 1, -1 -> 1 or -1, 0 -> the highest, others 0. Derivatives: to a, 0 where b = 0; to b, 0 where a = 0 and b >= 0,
    NaN where a < 0. Shapes: a, b number[...] -> c number[...].
  }];
  let samples = ["f64[2,3] in [0.3, 3]; f64[2,3] in [-2, 2]", "f64[4] = [0, 0, 2, 1.5]; f64[4] = [0, 2, 0, 3] # differences: below 0 there is no power"];
}

def WG_MaximumOp : WG_BinaryOp<"maximum", "c = max(a, b)"> {
  let description = [{
    Larger of two; NaN if either is NaN, max(-0, 0) = 0. Derivative at a tie: 1/2 to each. Shapes: a, b number[...] -> c number[...].
  }];
  let samples = ["f64[2,3] in [-3, 3]; f64[2,3] in [-3, 3]"];
}

def WG_MinimumOp : WG_BinaryOp<"minimum", "c = min(a, b)"> {
  let description = [{
    Smaller of two; NaN if either is NaN, min(-0, 0) = -0. Derivative at a tie: 1/2 to each. Shapes: a, b number[...] -> c number[...].
  }];
  let samples = ["f64[2,3] in [-3, 3]; f64[2,3] in [-3, 3]"];
}

def WG_LogicalAndOp : WG_BinaryBoolOp<"logical_and", "c = a and b"> {
  let description = [{Conjunction. Shapes: a, b bool[...] -> c bool[...].}];
  let samples = ["bool[4] = [0, 0, 1, 1]; bool[4] = [0, 1, 0, 1]"];
}

def WG_LogicalOrOp : WG_BinaryBoolOp<"logical_or", "c = a or b"> {
  let description = [{Disjunction. Shapes: a, b bool[...] -> c bool[...].}];
  let samples = ["bool[4] = [0, 0, 1, 1]; bool[4] = [0, 1, 0, 1]"];
}

def WG_SelectOp : WG_ElementwiseOp<"select", "y = a where c, else b", [WG_HasSlopes, AllTypesMatch<["a", "b"]>]> {
  let description = [{
    Elements of a where c holds, else those of b. The untaken side gets a cotangent of exact 0; times an infinite slope above it
    that is NaN, so guard the argument as well. Shapes: c bool[...], a, b any[...] -> y any[...].
  }];
  let arguments = (ins WG_BoolTensor:$c, WG_Tensor:$a, WG_Tensor:$b);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$c `,` $a `,` $b attr-dict `:` type($c) `,` type($a)";
  let dtypes = "any";
  let publicFunction = 0;
  let hasFolder = 1;
  let samples = ["bool[2,3] = [0, 1, 1, 0, 1, 0]; f64[2,3] in [-3, 3]; f64[2,3] in [-3, 3]"];
}

def WG_StopGradientOp : WG_ElementwiseOp<"stop_gradient", "y = x, and no gradient passes", [WG_NotDifferentiable<"stops the gradient">]> {
  let description = [{x itself, disconnected from what made it. Shapes: x any[...] -> y any[...].}];
  let arguments = (ins WG_Tensor:$x);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let samples = ["f64[2,3] in [-3, 3]"];
}

def WG_VersionOp : WG_ElementwiseOp<"version", "y = a, and its gradient is b's", [SameTypeOperands, WG_HasSlopes]> {
  let description = [{
    What a variable was given, `a`, as its next version after `b`. The reads of one variable count together, whichever version they see: what y gets
    goes on to b. Nothing goes to a, which is a stop_gradient of what was assigned. Shapes: a any[...], b any[...] -> y any[...].
  }];
  let arguments = (ins WG_Tensor:$a, WG_Tensor:$b);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a)";
  let publicFunction = 0;
  let samples = ["f64[2,3] in [-3, 3]; f64[2,3] in [-3, 3] # differences: its derivative is not that of its value, but that of the variable's versions"];
}

#endif // WG_OPS_ELEMENTWISE_TD
