//===- Interfaces.td - what an op can say of itself: its element, its loops, its derivative ---------===//
//
// An op says what one element of it is in exactly one of three ways, or how it lowers as a whole, in one of two:
//   Scalar      the element at i is a function of the operands' elements at i      (tanh, add, cast, select)
//   View        the element at i is the operand's element at an affine map of i    (broadcast, transpose, slice)
//   Indexed     the element at i is computed from i and reads at computed places   (one_hot, iota, pad)
//   Structured  it builds its own loops                                            (gather, concat, argmax)
//   External    it is a call of a routine in C                                     (triangular_solve)
// Reductions and contractions say only which axes they sum over; the emitters know them by their traits.
// And it says its derivative: Diagonal, Linear, Bilinear or Differentiable, or NotDifferentiable with the reason.
// Done for many lanes at once, Scalar ops and reductions follow from their families; any other says how: Batchable.
//
#ifndef WG_INTERFACES_TD
#define WG_INTERFACES_TD

include "mlir/IR/OpBase.td"

def WG_Scalar : OpInterface<"Scalar"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    An elementwise op: equal shapes in, the same shape out. `scalar` takes scalars and one-dimensional native vectors
    alike; `x` holds one value per operand, all with the same number of lanes. Booleans are i1, u8 is i8.
  }];
  let methods = [
    InterfaceMethod<"The result's element from the operands' elements, as arith and math ops.",
                    "::mlir::Value", "scalar",
                    (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc, "::mlir::ValueRange":$x)>,
  ];
}

def WG_View : OpInterface<"View"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    An op that only says where the elements of its first operand go. `viewMap` takes the coordinates of a result
    element to those of the operand element that it shows; it uses no data. Static shapes only.
  }];
  let methods = [
    InterfaceMethod<"Result coordinates -> operand coordinates.", "::mlir::AffineMap", "viewMap">,
  ];
}

def WG_Indexed : OpInterface<"Indexed"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    An op whose element depends on its place. `at` holds one coordinate per result axis; `read(operand, coordinates)`
    emits a read of an operand's element. Every coordinate passed to `read` is in range on every path: the op clamps
    what it reads speculatively. With `lanes` = 0 the code is scalar; otherwise results of `element` and of `read` are
    vectors of `lanes` elements. Static shapes only.
  }];
  let methods = [
    InterfaceMethod<"The result's element at `at`.", "::mlir::Value", "element",
                    (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
                         "::llvm::ArrayRef<::wg::ir::Coordinate>":$at, "int64_t":$lanes, "::wg::ir::ReadElement":$read)>,
  ];
}

def WG_Structured : OpInterface<"Structured"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    An op that is no function of one place: it builds its own scf loops of scalar code, and reaches memory only through
    the callbacks of `memory`. Static shapes only. It stores every element of its result, or, having failed, none.
  }];
  let methods = [
    InterfaceMethod<"Builds the loops at b's insertion point.", "void", "lower",
                    (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc, "const ::wg::ir::ElementAccess &":$memory)>,
    InterfaceMethod<"What it checks, and fails if it does not hold; none: it cannot fail.",
                    "::std::optional<::wg::ir::IndexBound>", "indexBound", (ins), "", "return ::std::nullopt;">,
    InterfaceMethod<"The operand of the result's type in whose memory the result may lie, as each of its elements is read at the same place "
                    "before it is stored; -1: none.",
                    "int64_t", "overwritten", (ins), "", "return -1;">,
    InterfaceMethod<"How many i64 it needs beside its result.", "int64_t", "scratchElements", (ins), "", "return 0;">,
  ];
}

def WG_External : OpInterface<"External"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    An op whose work is a routine in C, which the interpreter calls too (runtime/External.h). What is asked here the op's
    row in runtime/kernels says, so an op states that it is one and nothing else.
  }];
  let methods = [
    InterfaceMethod<"The routine, what it is called with, and its scratch. Static shapes only.",
                    "::wg::runtime::ExternalCall", "routine", (ins), "", "return ::wg::ir::routineOf($_op);">,
    InterfaceMethod<"The errors that it returns; none: it cannot fail.",
                    "::llvm::SmallVector<::llvm::StringRef>", "statuses", (ins), "", "return ::wg::ir::statusesOf($_op);">,
    InterfaceMethod<"The operand of the result's type in whose memory the result may lie; -1: none.",
                    "int64_t", "overwritten", (ins), "", "return ::wg::ir::overwrittenOf($_op);">,
  ];
}

def WG_Reduction : OpInterface<"Reduction"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    Combines the elements of its one operand over `getAxes()`. `neutral` and `combine` take scalars and native vectors
    alike; combining is associative and commutative up to rounding, so the emitter chooses the order, by the shape only.
  }];
  let methods = [
    InterfaceMethod<"The reduced axes of the operand, ascending.", "::llvm::ArrayRef<int64_t>", "getAxes">,
    InterfaceMethod<"The neutral element, as an attribute of the operand's element type.",
                    "::mlir::TypedAttr", "neutral", (ins "::mlir::Type":$elementType)>,
    InterfaceMethod<"The combination of two partial results.", "::mlir::Value", "combine",
                    (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc, "::mlir::Value":$x, "::mlir::Value":$y)>,
  ];
}

// An op states its derivative once, in the form that is natural to it; every mode is made of that (ir/Rules.h). Rules are
// formulas of `Expr` (ir/Expr.h), of wg ops only, and only mathematics: who needs what is the engine's business.

def WG_Diagonal : OpInterface<"Diagonal"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    An element of the result depends on the operands' elements at its place only: the slope by each of them. An operand
    that is no float has none.
  }];
  let methods = [
    InterfaceMethod<"A slope for each operand, from the operands `x` and the result `y`.", "::wg::ir::Slopes", "slopes",
                    (ins "::wg::ir::Operands":$x, "::wg::ir::Expr":$y)>,
  ];
}

def WG_Linear : OpInterface<"Linear"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    The result is linear in all float operands together; what is no float (indices, sizes) is fixed. `ct` has the type
    of the result.
  }];
  let methods = [
    InterfaceMethod<"The transpose, applied to ct: for each operand a term of its dtype and shape. A size may be known in "
                    "one of the two types and `?` in the other: the engine gives a term its operand's type.",
                    "::wg::ir::Terms", "transpose", (ins "::wg::ir::Expr":$ct)>,
  ];
}

def WG_Bilinear : OpInterface<"Bilinear"> {
  let cppNamespace = "::wg::ir";
  let description = [{The result is linear in each of two operands, while the other is fixed.}];
  let methods = [
    InterfaceMethod<"The transpose in each operand, applied to ct.", "::wg::ir::Terms", "transpose", (ins "::wg::ir::Expr":$ct)>,
  ];
}

def WG_Differentiable : OpInterface<"Differentiable"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    Any other op: its reverse-mode rule, linear in `ct`, which has the type of the result. A rule that has no derivative
    for its operands emits an error and returns failure, never values.
  }];
  let methods = [
    InterfaceMethod<"The cotangents of the operands as those of `Linear`, or failure after an error.",
                    "::mlir::FailureOr<::wg::ir::Terms>", "vjp", (ins "::wg::ir::Expr":$ct)>,
  ];
}

def WG_NotDifferentiableInterface : OpInterface<"NotDifferentiable"> {
  let cppNamespace = "::wg::ir";
  let methods = [
    StaticInterfaceMethod<"Why no gradient passes: the end of a sentence that begins with the op's name.",
                          "::llvm::StringRef", "whyNotDifferentiable">,
  ];
}

def WG_Batchable : OpInterface<"Batchable"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    An op that can be done for n lanes at once: those of its operands that are batched have one more axis in front, of
    size n. The rule is a formula of `Expr`, as a derivative is. Scalar ops and reductions need none.
  }];
  let methods = [
    InterfaceMethod<"The result with one more axis in front, where at least one operand of `x` has it; a result of type "
                    "index has none. Failure after an error.",
                    "::mlir::FailureOr<::wg::ir::Expr>", "batch", (ins "const ::wg::ir::Lanes &":$x)>,
  ];
}

def WG_WithBodies : OpInterface<"WithBodies"> {
  let cppNamespace = "::wg::ir";
  let description = [{
    An op that runs functions of its module: calls, conditions, loops. A body is isolated: all that it reads is an operand
    of the op. Whoever walks over functions (imports, inlining, sizes, order of compilation) knows these ops by this alone.
  }];
  let methods = [
    InterfaceMethod<"The functions that it runs.", "::llvm::SmallVector<::mlir::FlatSymbolRefAttr>", "bodyNames">,
    InterfaceMethod<"The same functions under other names, or others of their types.", "void", "setBodyNames",
                    (ins "::llvm::ArrayRef<::mlir::FlatSymbolRefAttr>":$names)>,
    InterfaceMethod<"The types of the arguments that body `i` is run with. A size may be `?` that its argument knows not.",
                    "::llvm::SmallVector<::mlir::Type>", "bodyArguments", (ins "unsigned":$i)>,
  ];
}

class WG_StatesWhy<string why> : NativeOpTrait<"StatesWhyNotDifferentiable", [], [{
    static ::llvm::StringRef whyNotDifferentiable() { return "}] # why # [{"; }
  }]> {
  let cppNamespace = "::wg::ir";
}

/// Its `scalar` is a polynomial or a call of libm: about twenty operations in a chain, which compiled code interleaves.
def WG_Transcendental : NativeOpTrait<"IsTranscendental"> {
  let cppNamespace = "::wg::ir";
}

/// Its element costs next to nothing: each kernel that reads it may compute it again.
def WG_OwnLanes : NativeOpTrait<"HasOwnLanes"> { // done in lanes as autodiff/BatchBodies says
  let cppNamespace = "::wg::ir";
}
/// Its result is not made of its operands alone, but with other ranks: it is computed where the program runs.
def WG_MeetsRanks : NativeOpTrait<"MeetsRanks"> {
  let cppNamespace = "::wg::ir";
}
def WG_Cheap : NativeOpTrait<"IsCheap"> {
  let cppNamespace = "::wg::ir";
}

/// States why no gradient passes through an op: `WG_NotDifferentiable<"is constant wherever it is differentiable">`.
class WG_NotDifferentiable<string why> : TraitList<[WG_NotDifferentiableInterface, WG_StatesWhy<why>]>;

#endif // WG_INTERFACES_TD
