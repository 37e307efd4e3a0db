//===- Control.td - programs within programs: call, cond, loop, kernel ---------------------------------------------===//
#ifndef WG_OPS_CONTROL_TD
#define WG_OPS_CONTROL_TD

include "ir/Dialect.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def WG_HasBodies : DeclareOpInterfaceMethods<WG_WithBodies>;

def WG_CallOp : WG_Op<"call", "the results of a function", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>, WG_HasBodies]> {
  let description = [{
    Calls a function of the module. Its derivative is made by the engine: the callee becomes a pair, a forward function that also
    returns residuals and a backward function that reads them. Example: `%y = wg.call @f(%x) : (tensor<3xf32>) -> tensor<3xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<WG_Value>:$operands);
  let results = (outs Variadic<WG_Value>);
  let assemblyFormat = "$callee `(` $operands `)` attr-dict `:` functional-type($operands, results)";
  let publicFunction = 0;
}

def WG_CondOp : WG_Op<"cond", "the results of the branch that a selector names", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>, WG_HasBodies]> {
  let description = [{
    Runs one of its branches, functions of one type, on the operands. The selector is a scalar: a bool, false for the first of two branches
    and true for the second; or an integer, which counts as the nearest number of a branch. Only the branch that is taken runs.
    Example: `%y = wg.cond %p of [@otherwise, @then] (%x) : tensor<i1>, (tensor<3xf32>) -> tensor<3xf32>`
  }];
  let arguments = (ins WG_Value:$selector, FlatSymbolRefArrayAttr:$branches, Variadic<WG_Value>:$inputs);
  let results = (outs Variadic<WG_Value>);
  let assemblyFormat = "$selector `of` $branches `(` $inputs `)` attr-dict `:` type($selector) `,` functional-type($inputs, results)";
  let publicFunction = 0;
  let hasVerifier = 1;
}

def WG_LoopOp : WG_Op<"loop", "the state after a loop, and what each turn gave", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>, WG_HasBodies]> {
  let description = [{
    Operands, in this order: `limit` (i64[], where `limited`), the first `carried` values, `scanned` tensors, and invariants. Turn i runs the first
    function on the carried values, row i of each scanned tensor, and the invariants; it returns the next carried values, and more: these are the
    rows i of the stacked results. The second function, if there is one, is asked before each turn, of the carried values and the invariants,
    whether there is one: a bool scalar. There are `length` turns at most (-1: as many as the scanned tensors have rows, or no limit), and `limit`
    turns at most. `reversed`: from the last turn's row to row 0. Results: the carried values after the last turn; where there is a condition, the
    number of turns (i64[]); the stacked results, zeros in rows that no turn gave (of `length` rows; without one, of as many rows as there were
    turns). A loop with a condition is not reversed. `room`, of a loop that has no bound of its own: `length` is how many turns what is stacked has
    room for, and more are an error, by which the caller learns how many there were, and of which loop: this number. Rows that no turn gave
    are any then. `checkpoints`, of a loop whose turns are computed again for its derivative, and of that derivative: how many of the states that
    the first stacks for the second are kept at a time (0: all); machine code computes the others again, see `rewind`. Example, a running sum: `%s, %sums = wg.loop [@add] (%zero, %xs) {carried = 1, scanned = 1, length = 5}
    : (tensor<f32>, tensor<5xf32>) -> (tensor<f32>, tensor<5xf32>)`
  }];
  let arguments = (ins FlatSymbolRefArrayAttr:$bodies, I64Attr:$carried, DefaultValuedAttr<I64Attr, "0">:$scanned,
                       DefaultValuedAttr<I64Attr, "-1">:$length, DefaultValuedAttr<BoolAttr, "false">:$limited,
                       DefaultValuedAttr<BoolAttr, "false">:$reversed, DefaultValuedAttr<I64Attr, "-1">:$room, DefaultValuedAttr<I64Attr, "0">:$checkpoints, Variadic<WG_Value>:$operands);
  let results = (outs Variadic<WG_Value>);
  let assemblyFormat = "$bodies `(` $operands `)` attr-dict `:` functional-type($operands, results)";
  let publicFunction = 0;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool hasCondition() { return getBodies().size() > 1; }
    bool hasRoom() { return static_cast<int64_t>(getRoom()) >= 0; }
    ::mlir::Value getLimit() { return getLimited() ? getOperands()[0] : ::mlir::Value(); }
    ::mlir::OperandRange getInits() { return getOperands().slice(getLimited(), getCarried()); }
    ::mlir::OperandRange getXs() { return getOperands().slice(getLimited() + getCarried(), getScanned()); }
    ::mlir::OperandRange getInvariants() { return getOperands().drop_front(getLimited() + getCarried() + getScanned()); }
    ::mlir::ResultRange getFinals() { return (*this)->getResults().take_front(getCarried()); }
    ::mlir::ResultRange getStacked() { return (*this)->getResults().drop_front(getCarried() + hasCondition()); }
    /// The number of turns that there were; null without a condition.
    ::mlir::Value getTurns() { return hasCondition() ? (*this)->getResult(getCarried()) : ::mlir::Value(); }
  }];
}

def WG_RewindOp : WG_Op<"rewind", "a loop over the states of another, from the last one back", [Pure, WG_HasBodies]> {
  let description = [{
    Two loops of as many turns: the first function makes state t + 1 of state t, a row, and invariants; the second runs once for each turn, from the
    last one back, on what it carries, rows, some of which are parts of the state before turn t, and invariants. `states` says for each of these
    rows which part of the state it is, -1 for a row of the next scanned tensor. At most `checkpoints` states are kept at a time; others are
    computed again from the nearest one before them, in as few turns as can be (Griewank and Walther 2000, algorithm 799). Operands: `limit`
    (i64[], where `limited`: the number of turns, of which there are `length` at most), the `stated` parts of state 0, `stepped` tensors whose
    rows the first function takes, its `held` invariants; then what the second one carries first, scanned tensors, invariants. Results: what it
    carries at the end, and stacks of what else it returns. `reversed`: turn t has row t, else row length - 1 - t. It is made of two loops where machine
    code is made, and is no part of a program.
  }];
  let arguments = (ins FlatSymbolRefArrayAttr:$bodies, I64Attr:$checkpoints, I64Attr:$stated, I64Attr:$stepped, I64Attr:$held, I64Attr:$carried,
                       DenseI64ArrayAttr:$states, I64Attr:$length, BoolAttr:$limited, BoolAttr:$reversed, Variadic<WG_Value>:$operands);
  let results = (outs Variadic<WG_Value>);
  let assemblyFormat = "$bodies `(` $operands `)` attr-dict `:` functional-type($operands, results)";
  let publicFunction = 0;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getLimit() { return getLimited() ? getOperands()[0] : ::mlir::Value(); }
    ::mlir::OperandRange getFirstState() { return getOperands().slice(getLimited(), getStated()); }
    ::mlir::OperandRange getSteps() { return getOperands().slice(getLimited() + getStated(), getStepped()); }
    ::mlir::OperandRange getHeldValues() { return getOperands().slice(getLimited() + getStated() + getStepped(), getHeld()); }
    /// What the second function takes, but for the state.
    ::mlir::OperandRange getBack() { return getOperands().drop_front(getLimited() + getStated() + getStepped() + getHeld()); }
    ::mlir::OperandRange getInits() { return getBack().take_front(getCarried()); }
    /// Tensors that are scanned beside the states.
    size_t getScanned() { return ::llvm::count(getStates(), -1); }
    ::mlir::OperandRange getXs() { return getBack().slice(getCarried(), getScanned()); }
    ::mlir::OperandRange getInvariants() { return getBack().drop_front(getCarried() + getScanned()); }
    ::mlir::ResultRange getFinals() { return (*this)->getResults().take_front(getCarried()); }
    ::mlir::ResultRange getStacked() { return (*this)->getResults().drop_front(getCarried()); }
  }];
}

def WG_HostOp : WG_InferredOp<"host", "y = a function of this process of xs",
                              [WG_NotDifferentiable<"is a call of C++ code, which custom_gradient gives a derivative">, DeclareOpInterfaceMethods<WG_External, ["statuses"]>, WG_OwnLanes]> {
  let description = [{
    Calls a routine that the process has added under `symbol`: a C function, or `wg_host_call`, which calls the function with number `id` (0: how many elements there are).
    Where that fails, the error is `message`. `ordered`: it does something beside computing y; its first operand is then the order of what does (i64[]), which
    the routine does not see, and which `barrier` hands on. In lanes it is called for one after the other. Shapes: xs any[...] -> y dtype[shape].
  }];
  let arguments = (ins Variadic<WG_Tensor>:$xs, StrAttr:$symbol, I64Attr:$id, BoolAttr:$ordered, StrAttr:$message, DenseI64ArrayAttr:$shape, TypeAttr:$dtype);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$xs attr-dict `:` functional-type($xs, results)";
  let publicFunction = 0;
  let samples = ["f64[2,3] in [-2, 2] | symbol = wg_host_call; id = 0; ordered = false; message = fails; shape = []; dtype = f64",
    "f64[] in [-2, 2]; i64[0] = [] | symbol = wg_host_call; id = 0; ordered = false; message = fails; shape = []; dtype = f64",
    "f64[1,2,1,1,3,1,1,1] in [-2, 2] | symbol = wg_host_call; id = 0; ordered = false; message = fails; shape = []; dtype = f64"];
}

def WG_CollectiveOp : WG_InferredOp<"collective", "y = what the ranks make of their x's together", [WG_Differentiates, WG_External, WG_Batches, WG_MeetsRanks]> {
  let description = [{
    All ranks of `group` (0: all; others by the number that each has for it; -1: the shards of a data parallel step) come to it with an x of one type. `kind`: all_reduce_sum, all_reduce_mean, all_reduce_max, over one fixed tree of ranks; all_gather, y[i] = x of rank i;
    reduce_scatter, the sum of x[i] on rank i; broadcast, x of rank `root`; reduce, the sum on rank `root` and 0 elsewhere. `ranks` is how many there are, 0 for any, which all_gather and reduce_scatter do not take.
    It has no order but the program's, which is the same on all ranks; where ranks meet at different ones, each has an error that says so. Derivative: of the sum over all ranks of what each computes.
    Shapes: x number[...] -> y number[...]; all_gather: x number[...] -> y number[ranks, ...]; reduce_scatter: x number[ranks, ...] -> y number[...].
    Example: `%y = wg.collective %x {kind = "all_reduce_sum"} : tensor<3xf32> -> tensor<3xf32>`
  }];
  let arguments = (ins WG_Tensor:$x, StrAttr:$kind, DefaultValuedAttr<I64Attr, "0">:$group, DefaultValuedAttr<I64Attr, "0">:$root, DefaultValuedAttr<I64Attr, "0">:$ranks);
  let results = (outs WG_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let dtypes = "numbers";
  let publicFunction = 0;
  let samples = ["f64[2,3] in [-2, 2] | kind = all_reduce_sum; group = 0; root = 0; ranks = 0", "f64[] in [-2, 2] | kind = all_reduce_mean; group = 0; root = 0; ranks = 1",
    "f64[4] in [-2, 2] | kind = all_reduce_max; group = 0; root = 0; ranks = 1", "f64[2,3] in [-2, 2] | kind = all_gather; group = 0; root = 0; ranks = 1",
    "f64[1,2,3] in [-2, 2] | kind = reduce_scatter; group = 0; root = 0; ranks = 1", "f64[3] in [-2, 2] | kind = broadcast; group = 0; root = 0; ranks = 0",
    "f64[3] in [-2, 2] | kind = reduce; group = 0; root = 0; ranks = 0", "f64[2,0] in [-2, 2] | kind = all_reduce_sum; group = 0; root = 0; ranks = 0",
    "f64[1,2,1,1,3,1,1,1] in [-2, 2] | kind = all_reduce_mean; group = 0; root = 0; ranks = 0"];
}

def WG_YieldOp : WG_Op<"yield", "the results of a region", [Pure, Terminator, ReturnLike, ParentOneOf<["KernelOp"]>]> {
  let arguments = (ins Variadic<WG_Value>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let publicFunction = 0;
}

def WG_KernelKind : I32EnumAttr<"KernelKind", "which emitter makes a kernel", [
    I32EnumAttrCase<"map", 0>, I32EnumAttrCase<"reduce", 1>, I32EnumAttrCase<"contract", 2>, I32EnumAttrCase<"single", 3>,
    I32EnumAttrCase<"external", 4>]> {
  let cppNamespace = "::wg::ir";
  let genSpecializedAttr = 0;
}
def WG_KernelKindAttr : EnumAttr<WG_Dialect, WG_KernelKind, "kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def WG_LoopsAttr : AttrDef<WG_Dialect, "Loops"> {
  let mnemonic = "loops";
  let summary = "what is decided about a kernel";
  let description = [{
    The loops that a kernel becomes and what they do to memory; written when the kernel is made (`KernelOp::describe`), read by whoever
    emits it, plans its memory or reports on it. Example, of a mean of rows of x that is written over b:
    `loops<[128, 10] over [1] reads [[affine_map<(d0, d1) -> (d0, d1)>], [affine_map<(d0, d1) -> (d0)>]] writes [affine_map<(d0, d1) -> (d0)>]
    computes f32 sums [f32] overwrites [0, 1] may_fail>`
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$space,       // sizes of the iteration space; none for a kernel of one op of its own
    ArrayRefParameter<"int64_t">:$reduced,     // the axes of it that reductions, or the product, combine, ascending
    "::mlir::ArrayAttr":$reads,                // for each input the maps from the space to the places at which points read it; none where places are computed; a place outside of an
                                               // operand of a product with related letters has no term
    "::mlir::ArrayAttr":$writes,               // for each result the map from the space to its elements
    "::mlir::Type":$compute,                   // the widest element type that a point holds
    ArrayRefParameter<"::mlir::Type">:$sums,   // the type in which each reduction, or the product, adds up
    ArrayRefParameter<"int64_t">:$overwrites,  // pairs (result, input): the result may lie in the memory of the input
    "bool":$mayFail                            // it checks something before it writes
  );
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Whether result `result` may lie in the memory of input `input`: each element is read, before it is written, only at the point that writes it.
    bool mayOverwrite(unsigned result, unsigned input) const;
    LoopsAttr withMayFail(bool mayFail) const;
  }];
}

def WG_KernelOp : WG_Op<"kernel", "one loop nest of ordinary ops", [Pure, IsolatedFromAbove, SingleBlock]> {
  let description = [{
    A region of wg ops that becomes one loop nest; its meaning is its body. `kind` says which emitter makes it: `map` (elementwise and
    views), `reduce` (one set of reduced axes, with producers and consumers), `contract` (one contraction and its epilogue), `single`
    (one op that builds its own loops), or `external` (one op that is a call of a routine). Every value computed in it has the shape of the
    iteration space, or of its rows (the axes that are not summed), and is read at its own place; contract, ops that are Indexed, and those
    that are a kernel alone read inputs of the kernel, which lie in memory.
    `loops` is what was decided about it when it was made; a kernel in text need not have it.
    Example: `%y = wg.kernel map (%a = %x : tensor<4xf32>) -> tensor<4xf32> { %t = wg.tanh %a : tensor<4xf32>  wg.yield %t : tensor<4xf32> }`
  }];
  let arguments = (ins WG_KernelKindAttr:$kind, OptionalAttr<WG_LoopsAttr>:$loops, Variadic<WG_Value>:$inputs);
  let results = (outs Variadic<WG_Value>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let publicFunction = 0;
  let extraClassDeclaration = [{
    /// Ops that compute in one kernel; bounds the search for kernels and the code of one function.
    static constexpr size_t kMaxOps = 256;
    /// Whether it is of kind single or external: its op makes its own way through memory.
    bool isOneOp() { return getKind() == KernelKind::single || getKind() == KernelKind::external; }
    ::mlir::Block *getBlock() { return &getBody().front(); }
    YieldOp getYield();
    /// Writes `loops`, all sizes being static. The space is that of the reductions' operand, of the product's result and its summed letters, or of
    /// the largest result.
    void describe();
    /// Whether it is one loop nest that an emitter can write, its shapes being static; `error(op)` begins the message about one of its ops.
    ::llvm::LogicalResult verifyLoops(::llvm::function_ref<::mlir::InFlightDiagnostic(::mlir::Operation *)> error);
  }];
}

#endif // WG_OPS_CONTROL_TD
