//===- Dialect.td - the dialect `wg`, its types and the base classes of its ops --------------------===//
#ifndef WG_DIALECT_TD
#define WG_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "ir/Interfaces.td"

def WG_Dialect : Dialect {
  let name = "wg";
  let cppNamespace = "::wg::ir";
  let summary = "Differentiable programs on tensors";
  let description = [{
    Values are ranked tensors of f64, f32, bf16, f16, i64, i32, ui8 or i1 (bool). Broadcasting is explicit. Every size
    `?` of a result that the operands' types do not imply is a trailing operand of type index.
  }];
  let hasConstantMaterializer = 1;
  let hasRegionArgAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
  let extraClassDeclaration = [{
    /// The interned names of an op and of its attributes, in the order of its record; by OpId.
    struct OpNames {
      ::mlir::OperationName op;
      ::llvm::SmallVector<::mlir::StringAttr, 4> attrs;
    };
    const OpNames &namesOf(size_t opId) const { return names[opId]; }

  private:
    std::vector<OpNames> names;
  }];
}

class WG_TensorOf<list<Type> elements> : RankedTensorOf<elements, [CPred<"::wg::ir::isValueType($_self)">], "tensor of rank 8 and 2^56 bytes at most">;
def WG_Tensor : WG_TensorOf<[F64, F32, BF16, F16, I64, I32, UI8, I1]>;
def WG_FloatTensor : WG_TensorOf<[F64, F32, BF16, F16]>;
def WG_NumberTensor : WG_TensorOf<[F64, F32, BF16, F16, I64, I32, UI8]>;
def WG_IntegerTensor : WG_TensorOf<[I64, I32, UI8]>;
def WG_IndexTensor : WG_TensorOf<[I64, I32]>;
def WG_BoolTensor : WG_TensorOf<[I1]>;
/// Any value of a program.
def WG_Value : Type<CPred<"::wg::ir::isValueType($_self)">, "tensor of rank 8 and 2^56 bytes at most of f64, f32, bf16, f16, i64, i32, ui8 or i1, or index">;

/// A list of sizes or places any of which may be `?`: the op has one trailing operand of type index for each `?`, in the order of its attributes.
def WG_Sizes : DenseArrayAttrBase<"DenseI64ArrayAttr", "int64_t", "i64">;

/// Every op. The fields below the assembly format are read by tools/gen_ops.py.
class WG_Op<string mnemonic, string formula, list<Trait> traits = []> : Op<WG_Dialect, mnemonic, traits> {
  let summary = formula;
  /// Inputs that the gradient and agreement checks run it on, one string a sample:
  ///   "f64[2,3] in [-3, 3]"                              one operand, uniform in an interval
  ///   "f64[3] = [-1, 0, 2.5]; f64[3] in [0.1, 2]"        operands separated by `;`, values given after `=`
  ///   "f64[2,3,4] in [-2, 2] | axes = [0, 2]"            attributes after `|`, separated by `;`
  ///   "f64[2] = [0, 1] # differences: a kink"            where differences say nothing of the derivative, with the reason
  ///   "f64[3] in [0, 1] | shape = [2, 3]; dims = [1] # open: is not repeated"    where open sizes may be refused, with words of the error
  /// A sample written in f64 is run in every dtype that the op accepts.
  /// Among them are a rank of 0, a rank of 8, a size of 1 and none at all; of an elementwise op tools/gen_ops.py makes these of the first.
  list<string> samples = [];
  /// Of these shapes, those that the op cannot have: "rank 0: it goes along an axis".
  list<string> without = [];
  /// How far compiled code may be from the interpreter, in f64 and in f32: "2, 3 ulp of the element", or "of the absolute terms" where
  /// terms may cancel. Empty: bit for bit.
  string agreement = "";
  /// What the data operands accept: any, floats, numbers, integers, booleans.
  string dtypes = "any";
  /// Whether the build writes a public function `wg::<mnemonic>`; false where frontend/ words it by hand.
  bit publicFunction = 1;
}

/// An op whose result types follow from its operands and attributes by the runtime's shape rule.
class WG_InferredOp<string mnemonic, string formula, list<Trait> traits = []>
    : WG_Op<mnemonic, formula, !listconcat([Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>], traits)>;

/// One element at a time: equal types in, the same type out.
class WG_ElementwiseOp<string mnemonic, string formula, list<Trait> traits>
    : WG_InferredOp<mnemonic, formula, !listconcat([DeclareOpInterfaceMethods<WG_Scalar>], traits)>;

def WG_HasSlopes : DeclareOpInterfaceMethods<WG_Diagonal>;
def WG_IsLinear : DeclareOpInterfaceMethods<WG_Linear>;
def WG_IsBilinear : DeclareOpInterfaceMethods<WG_Bilinear>;
def WG_Differentiates : DeclareOpInterfaceMethods<WG_Differentiable>;
def WG_Batches : DeclareOpInterfaceMethods<WG_Batchable>;

/// y = f(x), float -> float.
class WG_UnaryOp<string mnemonic, string formula, list<Trait> traits = [WG_HasSlopes]>
    : WG_ElementwiseOp<mnemonic, formula, traits> {
  let arguments = (ins WG_FloatTensor:$x);
  let results = (outs WG_FloatTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let dtypes = "floats";
}

/// y = f(x), any number.
class WG_UnaryNumberOp<string mnemonic, string formula, list<Trait> traits = [WG_HasSlopes]>
    : WG_UnaryOp<mnemonic, formula, traits> {
  let arguments = (ins WG_NumberTensor:$x);
  let results = (outs WG_NumberTensor:$y);
  let dtypes = "numbers";
}

/// c = f(a, b), numbers of one type.
class WG_BinaryOp<string mnemonic, string formula, list<Trait> traits = [WG_HasSlopes]>
    : WG_ElementwiseOp<mnemonic, formula, !listconcat([SameTypeOperands], traits)> {
  let arguments = (ins WG_NumberTensor:$a, WG_NumberTensor:$b);
  let results = (outs WG_NumberTensor:$c);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a)";
  let dtypes = "numbers";
}

/// c = f(a, b), floats of one type.
class WG_BinaryFloatOp<string mnemonic, string formula, list<Trait> traits = [WG_HasSlopes]>
    : WG_BinaryOp<mnemonic, formula, traits> {
  let arguments = (ins WG_FloatTensor:$a, WG_FloatTensor:$b);
  let results = (outs WG_FloatTensor:$c);
  let dtypes = "floats";
}

/// c = f(a, b), booleans.
class WG_BinaryBoolOp<string mnemonic, string formula>
    : WG_BinaryOp<mnemonic, formula, [WG_NotDifferentiable<"has a bool result">]> {
  let arguments = (ins WG_BoolTensor:$a, WG_BoolTensor:$b);
  let results = (outs WG_BoolTensor:$c);
  let dtypes = "booleans";
}

/// A comparison: numbers of one type in, bool of the same shape out.
class WG_CompareOp<string mnemonic, string formula>
    : WG_ElementwiseOp<mnemonic, formula, [SameTypeOperands, WG_NotDifferentiable<"has a bool result">]> {
  let arguments = (ins WG_Tensor:$a, WG_Tensor:$b);
  let results = (outs WG_BoolTensor:$c);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a)";
  let dtypes = "any";
}

/// y = combination of x over `axes`, which the result lacks. Axes are sorted, distinct, not negative.
class WG_ReduceOp<string mnemonic, string formula, list<Trait> traits = [WG_Differentiates]>
    : WG_InferredOp<mnemonic, formula, !listconcat([DeclareOpInterfaceMethods<WG_Reduction>], traits)> {
  let hasFolder = 1;
  let arguments = (ins WG_NumberTensor:$x, DenseI64ArrayAttr:$axes);
  let results = (outs WG_NumberTensor:$y);
  let assemblyFormat = "$x `axes` $axes attr-dict `:` type($x) `->` type($y)";
  let dtypes = "numbers";
}

#endif // WG_DIALECT_TD
