//===- Special.td - further functions of one and two numbers ----------------------------------------===//
#ifndef WG_OPS_SPECIAL_TD
#define WG_OPS_SPECIAL_TD

include "ir/Dialect.td"

/// y = f(x), a polynomial or a call of the C library.
class WG_TranscendentalOp<string mnemonic, string formula> : WG_UnaryOp<mnemonic, formula, [WG_HasSlopes, WG_Transcendental]>;

def WG_CbrtOp : WG_TranscendentalOp<"cbrt", "y = x^(1/3)"> {
  let description = [{Cube root, of negative numbers too. Derivative at 0: inf. Shapes: x float[...] -> y float[...].}];
  let samples = ["f64[2,3] in [0.1, 4]", "f64[4] = [-27, -0.5, 0.5, 8]", "f64[8] = [0, -0.0, inf, -inf, nan, 1e-150, -1e-9, 1e300] # differences: a pole, and no number"];
}

def WG_Exp2Op : WG_TranscendentalOp<"exp2", "y = 2^x"> {
  let description = [{2 to the power of x: exact for integers. Shapes: x float[...] -> y float[...].}];
  let agreement = "2, 2 ulp of the element";
  let samples = ["f64[2,3] in [-3, 3]", "f64[8] = [-1074, -1022.5, -0.0, 1, 10, 1023.5, 1024, nan] # differences: overflow"];
}

def WG_Log2Op : WG_TranscendentalOp<"log2", "y = log2(x)"> {
  let description = [{Logarithm to the base 2: exact for powers of 2. -inf at 0, NaN below. Shapes: x float[...] -> y float[...].}];
  let agreement = "2, 2 ulp of the element";
  let samples = ["f64[2,3] in [0.1, 3]", "f64[8] = [4e-324, 0.125, 1, 1024, 0, -1, inf, nan] # differences: a pole, and no number"];
}

def WG_Log10Op : WG_TranscendentalOp<"log10", "y = log10(x)"> {
  let description = [{Logarithm to the base 10; -inf at 0, NaN below. Shapes: x float[...] -> y float[...].}];
  let agreement = "2, 2 ulp of the element";
  let samples = ["f64[2,3] in [0.1, 3]", "f64[8] = [4e-324, 0.001, 1, 1000, 0, -1, inf, nan] # differences: a pole, and no number"];
}

def WG_TanOp : WG_TranscendentalOp<"tan", "y = tan(x)"> {
  let description = [{Tangent; NaN of an infinity. Shapes: x float[...] in radians -> y float[...].}];
  let samples = ["f64[2,3] in [-1.2, 1.2]", "f64[5] = [-0.0, 2, 4, -100, 1e-300]", "f64[3] = [inf, nan, 1e22] # differences: no number"];
}

def WG_AsinOp : WG_TranscendentalOp<"asin", "y = asin(x)"> {
  let description = [{Inverse sine, in [-pi/2, pi/2]; NaN beyond 1. Derivative at -1 and 1: inf. Shapes: x float[...] -> y float[...] in radians.}];
  let samples = ["f64[2,3] in [-0.9, 0.9]", "f64[6] = [-0.0, 1, -1, 1.5, inf, nan] # differences: a pole, and no number"];
}

def WG_AcosOp : WG_TranscendentalOp<"acos", "y = acos(x)"> {
  let description = [{Inverse cosine, in [0, pi]; NaN beyond 1. Derivative at -1 and 1: -inf. Shapes: x float[...] -> y float[...] in radians.}];
  let samples = ["f64[2,3] in [-0.9, 0.9]", "f64[6] = [-0.0, 1, -1, 1.5, inf, nan] # differences: a pole, and no number"];
}

def WG_AtanOp : WG_TranscendentalOp<"atan", "y = atan(x)"> {
  let description = [{Inverse tangent, in [-pi/2, pi/2]. Shapes: x float[...] -> y float[...] in radians.}];
  let samples = ["f64[2,3] in [-3, 3]", "f64[4] = [-0.0, 1e-300, 1e15, -1e9]", "f64[4] = [inf, -inf, nan, 1e200] # differences: no number"];
}

def WG_SinhOp : WG_TranscendentalOp<"sinh", "y = sinh(x)"> {
  let description = [{Hyperbolic sine, without cancellation near 0; overflows where it must. Shapes: x float[...] -> y float[...].}];
  let agreement = "3, 3 ulp of the element";
  let samples = ["f64[2,3] in [-3, 3]", "f64[4] = [-0.0, 1e-300, 1e-9, -1e-5]", "f64[6] = [710, -710.4, 711, inf, -inf, nan] # differences: overflow"];
}

def WG_CoshOp : WG_TranscendentalOp<"cosh", "y = cosh(x)"> {
  let description = [{Hyperbolic cosine; overflows where it must. Shapes: x float[...] -> y float[...].}];
  let agreement = "3, 3 ulp of the element";
  let samples = ["f64[2,3] in [-3, 3]", "f64[4] = [0, -0.0, 1e-9, -1e-5]", "f64[6] = [710, -710.4, 711, inf, -inf, nan] # differences: overflow"];
}

def WG_AsinhOp : WG_TranscendentalOp<"asinh", "y = asinh(x)"> {
  let description = [{Inverse hyperbolic sine. Shapes: x float[...] -> y float[...].}];
  let agreement = "2, 2 ulp of the element";
  let samples = ["f64[2,3] in [-3, 3]", "f64[6] = [-0.0, 1e-300, -1e-9, 1e9, -1e15, 1e5]", "f64[4] = [inf, -inf, nan, -1e200] # differences: no number"];
}

def WG_AcoshOp : WG_TranscendentalOp<"acosh", "y = acosh(x)"> {
  let description = [{Inverse hyperbolic cosine, not below 0; NaN of x below 1. Derivative at 1: inf. Shapes: x float[...] -> y float[...].}];
  let agreement = "3, 3 ulp of the element";
  let samples = ["f64[2,3] in [1.2, 4]", "f64[3] = [1e5, 1e9, 1e15]", "f64[8] = [1, 0.5, -3, inf, -inf, nan, 1.00000001, 1e200] # differences: a pole, and no number"];
}

def WG_AtanhOp : WG_TranscendentalOp<"atanh", "y = atanh(x)"> {
  let description = [{Inverse hyperbolic tangent; inf at 1, -inf at -1, NaN beyond. Shapes: x float[...] -> y float[...].}];
  let agreement = "3, 3 ulp of the element";
  let samples = ["f64[2,3] in [-0.9, 0.9]", "f64[3] = [-0.0, 1e-300, -1e-9]", "f64[6] = [1, -1, 1.5, inf, -inf, nan] # differences: a pole, and no number"];
}

def WG_ErfcOp : WG_TranscendentalOp<"erfc", "y = 1 - erf(x)"> {
  let description = [{Complementary error function: keeps its accuracy in the upper tail, where 1 - erf(x) is 0. Shapes: x float[...] -> y float[...].}];
  let samples = ["f64[2,3] in [-3, 3]", "f64[6] = [-30, -0.0, 5, 20, 26.5, 30]", "f64[3] = [inf, -inf, nan] # differences: no number"];
}

def WG_ErfinvOp : WG_TranscendentalOp<"erfinv", "y with erf(y) = x"> {
  let description = [{Inverse error function; inf at 1, -inf at -1, NaN beyond. Shapes: x float[...] -> y float[...].}];
  let agreement = "5, 0 ulp of the element";
  let samples = ["f64[2,3] in [-0.9, 0.9]", "f64[3] = [-0.0, 1e-300, -1e-9]",
                 "f64[8] = [0.9999, -0.99999, 1, -1, 1.5, inf, -inf, nan] # differences: a pole, and no number"];
}

def WG_LgammaOp : WG_TranscendentalOp<"lgamma", "y = log |gamma(x)|"> {
  let description = [{
    Logarithm of the absolute value of the gamma function; inf at 0, at -1, -2, ..., and at both infinities. Relative accuracy for x > 0; below,
    where it has a zero between any two poles, of pi / (x sin(pi x)). Its slope is digamma. Shapes: x float[...] -> y float[...].
  }];
  let agreement = "6, 0 ulp of the element";
  let samples = ["f64[2,3] in [0.1, 12]", "f64[6] = [1, 2, 1.25, 0.4, 1e5, -0.5]",
                 "f64[10] = [0, -0.0, -1, -1e300, inf, -inf, nan, 4e-324, 1.0000001, 1e-9] # differences: a pole, and no number"];
}

def WG_PolygammaOp : WG_TranscendentalOp<"polygamma", "y = the derivative of order n + 1 of log gamma(x)"> {
  let description = [{
    Polygamma function of order n, 0 <= n <= 170; digamma is that of order 0. At the poles 0, -1, -2, ...: inf where n is odd; where it is even, the sides
    differ: -inf at 0, inf at -0, NaN at the others. Its slope is the polygamma function of order n + 1. Shapes: x float[...] -> y float[...].
  }];
  let arguments = (ins WG_FloatTensor:$x, I64Attr:$n);
  let publicFunction = 0;
  let agreement = "8, 0 ulp of the element";
  let samples = ["f64[2,3] in [4, 12] | n = 0", "f64[2,3] in [0.3, 12] | n = 1", "f64[2,3] in [0.5, 12] | n = 3", "f64[5] = [0.7, 1, 2.5, 30, -0.3] | n = 0",
                 "f64[4] = [0.7, -0.3, -1.6, -2.4] | n = 1", "f64[4] = [0.7, 1, 2.5, 300] | n = 2", "f64[3] = [1.5, 4, 50] | n = 9",
                 "f64[8] = [0, -0.0, -1, -1e300, inf, -inf, nan, 1e300] | n = 0 # differences: a pole, and no number",
                 "f64[8] = [0, -0.0, -1, -1e300, inf, -inf, nan, 1e300] | n = 1 # differences: a pole, and no number",
                 "f64[8] = [0, -0.0, -1, -1e300, inf, -inf, nan, 1e300] | n = 2 # differences: a pole, and no number"];
}

/// c = f(a, b), floats, a polynomial or a call of the C library.
class WG_BinaryTranscendentalOp<string mnemonic, string formula> : WG_BinaryFloatOp<mnemonic, formula, [WG_HasSlopes, WG_Transcendental]>;

def WG_Atan2Op : WG_BinaryTranscendentalOp<"atan2", "c = the angle of the point (b, a)"> {
  let description = [{
    Angle from the positive x axis to the point with y coordinate a and x coordinate b, in [-pi, pi]; signs of zeros choose the side. Derivatives at (0, 0): 0.
    Shapes: a, b float[...] -> c float[...] in radians.
  }];
  let samples = ["f64[2,3] in [0.3, 3]; f64[2,3] in [-3, 3]", "f64[3] = [-1, 2, 0.5]; f64[3] = [-2, 0, -1e15]",
                 "f64[10] = [0, -0.0, 0, -0.0, 1, inf, -inf, nan, 1e-200, 1e200]; f64[10] = [0, 0, -0.0, -2, -inf, inf, -inf, 1, 1e-200, -1e200] # differences: a jump, and no number"];
}

def WG_HypotOp : WG_BinaryTranscendentalOp<"hypot", "c = sqrt(a^2 + b^2)"> {
  let description = [{
    Length of the vector (a, b), without overflow or underflow on the way; inf if either is infinite. Derivatives at (0, 0): 0, to every order.
    Shapes: a, b float[...] -> c float[...].
  }];
  let agreement = "2, 0 ulp of the element";
  let samples = ["f64[2,3] in [0.3, 3]; f64[2,3] in [-3, 3]", "f64[3] = [3, 1, -100]; f64[3] = [-4, 0, 75]",
                 "f64[10] = [0, -0.0, 4e-324, inf, nan, 0, 1e308, nan, 1e-200, -1e200]; f64[10] = [0, 0, 4e-324, nan, -inf, 3, 1e308, 1, 1e-200, 1e200] # differences: a kink, and no number"];
}

def WG_LogaddexpOp : WG_BinaryTranscendentalOp<"logaddexp", "c = log(exp(a) + exp(b))"> {
  let description = [{
    Logarithm of a sum of exponentials: neither side overflows, and the logarithm of 0 is no exception. Derivatives: the two shares, 1/2 each where both are the same
    infinity. Shapes: a, b float[...] -> c float[...].
  }];
  let agreement = "2, 3 ulp of the absolute terms";
  let samples = ["f64[2,3] in [-3, 3]; f64[2,3] in [-3, 3]", "f64[4] = [0.5, -800, 5000, 1]; f64[4] = [0.5, 800, 1, 41]",
                 "f64[6] = [-inf, inf, -inf, inf, -inf, nan]; f64[6] = [-inf, inf, 1, 1, inf, 1] # differences: no number"];
}

#endif // WG_OPS_SPECIAL_TD
