//===- Control.td - programs within programs: call, kernel ---------------------------------------------===//
#ifndef WG_OPS_CONTROL_TD
#define WG_OPS_CONTROL_TD

include "ir/Dialect.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def WG_CallOp : WG_Op<"call", "the results of a function", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let description = [{
    Calls a function of the module. Its derivative is made by the engine: the callee becomes a pair, a forward function that also
    returns residuals and a backward function that reads them. Example: `%y = wg.call @f(%x) : (tensor<3xf32>) -> tensor<3xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<WG_Value>:$operands);
  let results = (outs Variadic<WG_Value>);
  let assemblyFormat = "$callee `(` $operands `)` attr-dict `:` functional-type($operands, results)";
  let publicFunction = 0;
}

def WG_YieldOp : WG_Op<"yield", "the results of a region", [Pure, Terminator, ReturnLike, ParentOneOf<["KernelOp"]>]> {
  let arguments = (ins Variadic<WG_Value>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let publicFunction = 0;
}

def WG_KernelOp : WG_Op<"kernel", "one loop nest of ordinary ops", [Pure, IsolatedFromAbove, SingleBlock]> {
  let description = [{
    A region of wg ops that becomes one loop nest; its meaning is its body. `kind` says which emitter makes it: `map` (elementwise and
    views), `reduce` (one set of reduced axes, with producers and consumers), `contract` (one contraction and its epilogue), `single`
    (one op that builds its own loops), or `external` (one op that is a call of a routine). Every value computed in it has the shape of the iteration space, or of its rows (a reduce kernel's
    kept axes), and is read at its own place; contract, ops that are Indexed, and those that are a kernel alone read inputs of the kernel, which lie in memory.
    Example: `%y = wg.kernel map (%a = %x : tensor<4xf32>) -> tensor<4xf32> { %t = wg.tanh %a : tensor<4xf32>  wg.yield %t : tensor<4xf32> }`
  }];
  let arguments = (ins StrAttr:$kind, Variadic<WG_Value>:$inputs);
  let results = (outs Variadic<WG_Value>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let publicFunction = 0;
  let extraClassDeclaration = [{
    /// The loops that it becomes, unless it is one op of kind single or external: their sizes, and which of them reductions combine.
    struct Space {
      ::llvm::SmallVector<int64_t> sizes, reduced;
    };
    /// Ops that compute in one kernel; bounds the search for kernels and the code of one function.
    static constexpr size_t kMaxOps = 256;
    ::mlir::Block *getBlock() { return &getBody().front(); }
    YieldOp getYield();
    Space getSpace();
    /// Whether it is one loop nest that an emitter can write, its shapes being static; `error(op)` begins the message about one of its ops.
    ::llvm::LogicalResult verifyLoops(::llvm::function_ref<::mlir::InFlightDiagnostic(::mlir::Operation *)> error);
  }];
}

#endif // WG_OPS_CONTROL_TD
