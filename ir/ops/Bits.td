//===- Bits.td - truncation, signs, and integers as patterns of bits --------------------------------===//
#ifndef WG_OPS_BITS_TD
#define WG_OPS_BITS_TD

include "ir/Dialect.td"

def WG_TruncOp : WG_UnaryOp<"trunc", "y = x without its fraction", [WG_NotDifferentiable<"is constant wherever it is differentiable">]> {
  let description = [{Nearest integer value toward 0; the sign of a zero is that of x. Shapes: x float[...] -> y float[...].}];
  let samples = ["f64[8] = [-1.5, -1, -0.2, 0.2, 1.5, inf, nan, 1e20]"];
}

def WG_TruncDivOp : WG_BinaryOp<"trunc_div", "c = trunc(a / b)", [WG_NotDifferentiable<"is constant wherever it is differentiable">]> {
  let description = [{
    Quotient without its fraction, as C's division of integers; floor_div rounds down. Integers: x / 0 = -1 (u8: 255), MIN / -1 = MIN.
    Shapes: a, b number[...] -> c number[...].
  }];
  let samples = ["f64[6] = [-3.5, 3.5, 7, -7, 1, 0]; f64[6] = [2, -2, 2, 2, 0, 3]", "i32[6] = [-7, 7, -7, 7, 5, -2147483648]; i32[6] = [2, -2, -2, 2, 0, -1]"];
}

def WG_FmodOp : WG_BinaryOp<"fmod", "c = a - b * trunc(a / b)"> {
  let description = [{
    Remainder with the sign of a, as C's fmod and its % of integers; remainder has the sign of b. Floats: fmod(x, 0) is NaN, and exact elsewhere. Integers:
    fmod(x, 0) = x, fmod(MIN, -1) = 0. Shapes: a, b number[...] -> c number[...].
  }];
  let samples = ["f64[2,3] in [-3, 3]; f64[2,3] in [0.6, 2]", "i32[6] = [-7, 7, -7, 7, 5, -2147483648]; i32[6] = [2, -2, -2, 2, 0, -1]",
                 "f64[8] = [-4, 4, 1, inf, 5, nan, -1e300, -0.0]; f64[8] = [2, -2, inf, 1, 0, 1, 7, 3] # differences: a jump, and no number"];
}

def WG_CopysignOp : WG_BinaryFloatOp<"copysign", "c = |a| with the sign of b"> {
  let description = [{Magnitude of a with the sign of b, that of a zero or a NaN too. No gradient goes to b. Shapes: a, b float[...] -> c float[...].}];
  let samples = ["f64[4] = [-1.5, 2, 3, -4]; f64[4] = [1, -2, 3, -0.5]", "f64[5] = [0, -0.0, inf, nan, 2]; f64[5] = [-1, 0, -0.0, -1, 0] # differences: a kink, and no number"];
}

def WG_LogicalXorOp : WG_BinaryBoolOp<"logical_xor", "c = a or b, not both"> {
  let description = [{Exclusive disjunction. Shapes: a, b bool[...] -> c bool[...].}];
  let samples = ["bool[4] = [0, 0, 1, 1]; bool[4] = [0, 1, 0, 1]"];
}

/// c = f(a, b), integers of one type.
class WG_BinaryIntegerOp<string mnemonic, string formula>
    : WG_BinaryOp<mnemonic, formula, [WG_NotDifferentiable<"has an integer result">]> {
  let arguments = (ins WG_IntegerTensor:$a, WG_IntegerTensor:$b);
  let results = (outs WG_IntegerTensor:$c);
  let dtypes = "integers";
}

def WG_BitwiseAndOp : WG_BinaryIntegerOp<"bitwise_and", "c = a & b"> {
  let description = [{Bit by bit, 1 where both are. Shapes: a, b integer[...] -> c integer[...].}];
  let samples = ["i32[4] = [12, -1, -2147483648, 0]; i32[4] = [10, 7, -1, 5]", "i64[2] = [-9223372036854775808, 255]; i64[2] = [-1, 4294967297]", "u8[2] = [240, 255]; u8[2] = [60, 1]"];
}

def WG_BitwiseOrOp : WG_BinaryIntegerOp<"bitwise_or", "c = a | b"> {
  let description = [{Bit by bit, 1 where either is. Shapes: a, b integer[...] -> c integer[...].}];
  let samples = ["i32[4] = [12, -1, -2147483648, 0]; i32[4] = [10, 7, 1, 5]", "i64[2] = [-9223372036854775808, 255]; i64[2] = [1, 4294967296]", "u8[2] = [240, 0]; u8[2] = [60, 1]"];
}

def WG_BitwiseXorOp : WG_BinaryIntegerOp<"bitwise_xor", "c = a ^ b"> {
  let description = [{Bit by bit, 1 where they differ. Shapes: a, b integer[...] -> c integer[...].}];
  let samples = ["i32[4] = [12, -1, -2147483648, 0]; i32[4] = [10, 7, -1, 5]", "i64[2] = [-9223372036854775808, 255]; i64[2] = [-1, 4294967297]", "u8[2] = [240, 255]; u8[2] = [60, 1]"];
}

def WG_BitwiseNotOp : WG_UnaryOp<"bitwise_not", "y = ~x", [WG_NotDifferentiable<"has an integer result">]> {
  let description = [{Every bit inverted: -1 - x, of u8 255 - x. Shapes: x integer[...] -> y integer[...].}];
  let arguments = (ins WG_IntegerTensor:$x);
  let results = (outs WG_IntegerTensor:$y);
  let dtypes = "integers";
  let samples = ["i32[4] = [0, -1, 2147483647, 5]", "i64[2] = [0, -9223372036854775808]", "u8[3] = [0, 255, 60]"];
}

def WG_LeftShiftOp : WG_BinaryIntegerOp<"left_shift", "c = a * 2^b"> {
  let description = [{Bits moved up by b places, zeros from below; 0 where b is negative or not below the number of bits. Shapes: a, b integer[...] -> c integer[...].}];
  let samples = ["i32[6] = [1, -3, 5, 1, 7, 7]; i32[6] = [31, 2, 0, 32, -1, 2147483647]", "i64[3] = [1, -3, 5]; i64[3] = [63, 64, -9223372036854775808]", "u8[4] = [1, 255, 3, 9]; u8[4] = [7, 4, 8, 255]"];
}

def WG_RightShiftOp : WG_BinaryIntegerOp<"right_shift", "c = floor(a / 2^b)"> {
  let description = [{
    Bits moved down by b places; from above come copies of the sign, zeros for u8: so c is -1 or 0 where b is negative or not below the number of bits.
    Shapes: a, b integer[...] -> c integer[...].
  }];
  let samples = ["i32[6] = [-1, -9, 2147483647, 1, -7, 7]; i32[6] = [31, 2, 30, 32, -1, 2147483647]", "i64[3] = [-9223372036854775808, -3, 5]; i64[3] = [63, 64, -9223372036854775808]",
                 "u8[4] = [128, 255, 3, 9]; u8[4] = [7, 4, 8, 255]"];
}

#endif // WG_OPS_BITS_TD
