//===- Passes.td - better programs, still in our dialect ---------------------------------------------===//
#ifndef WG_PASSES_TD
#define WG_PASSES_TD

include "mlir/Pass/PassBase.td"

def InferShapes : Pass<"wg-infer-shapes", "::mlir::ModuleOp"> {
  let summary = "Specialise a function to static argument types and refine every type that follows";
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
  let description = [{
    Sets the argument types of `function` (and of what it calls), folds wg.dim and trailing sizes, and re-infers every result type.
    A size that contradicts an op is an error at that op's location.
  }];
  let options = [
    Option<"function", "function", "std::string", "\"main\"", "the function to specialise">,
    Option<"types", "types", "std::string", "\"\"", "its argument types, as `f32[2,3];i64[4]`; empty: refine what follows from the types as they are">,
  ];
}

// Passes declare no statistics: the distribution's libMLIR is built with NDEBUG, where llvm::Statistic is a smaller class than in our
// headers with assertions on, so that counting would read a flag that nobody initialised.
def DropDeadGradients : Pass<"wg-drop-dead-gradients", "::mlir::func::FuncOp"> {
  let summary = "Erase cotangents that no requested gradient reads";
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
  let description = [{ Rules emit a cotangent for every operand; this pass erases the unread ones, bottom-up in one sweep. }];
}

def InlineCalls : Pass<"wg-inline-calls", "::mlir::ModuleOp"> {
  let summary = "Put the body of each function where it is called";
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
  let options = [
    Option<"function", "function", "std::string", "\"\"", "the function whose calls are inlined; empty: all public ones">,
  ];
}

def EndGradients : Pass<"wg-end-gradients", "::mlir::func::FuncOp"> {
  let summary = "Put its operand in the place of each stop_gradient and version";
  let dependentDialects = ["::wg::ir::WGDialect"];
}

def OpenKernels : Pass<"wg-open-kernels", "::mlir::func::FuncOp"> {
  let summary = "Put the body of each wg.kernel in its place";
  let dependentDialects = ["::wg::ir::WGDialect"];
}

def FoldConstants : Pass<"wg-fold-constants", "::mlir::func::FuncOp"> {
  let summary = "Evaluate ops on small constants with the runtime's kernels";
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
}

def ProductsLeaveLoops : Pass<"wg-products-leave-loops", "::mlir::ModuleOp"> {
  let summary = "Compute as one product, before a loop or after it, what its turns would multiply row by row";
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect"];
  let description = [{
    Products of a scanned tensor's rows and of invariants, sums over the turns of products, and products that are only stacked; where
    a row is a part of what a product reads, or a slice of it is stacked, that part.
  }];
}

def ProductsOfTables : Pass<"wg-products-of-tables", "::mlir::func::FuncOp"> {
  let summary = "Multiply a table, not the rows that are looked up in it";
  let dependentDialects = ["::wg::ir::WGDialect"];
  let description = [{
    A product of rows that a gather has taken from a table of fewer is the product of the table, looked up; what is multiplied and added
    up in a table, or multiplied by such rows and summed over them, is added up first.
  }];
}

def MachineOption
    : Option<"machine", "machine", "::wg::passes::Machine", "::wg::passes::Machine::both", "that products are estimated for",
             [{::llvm::cl::values(clEnumValN(::wg::passes::Machine::slowMemory, "slow-memory", "two multiply-adds of 512 bits a cycle"),
                                  clEnumValN(::wg::passes::Machine::fastMemory, "fast-memory", "one: Zen 4"),
                                  clEnumValN(::wg::passes::Machine::both, "both", "what is good on either"),
                                  clEnumValN(::wg::passes::Machine::fast, "fast", "two, and fast memory: Zen 5"),
                                  clEnumValN(::wg::passes::Machine::narrowVectors, "narrow-vectors", "no vectors of 512 bits"))}]>;

def ArrangeProducts : Pass<"wg-arrange-products", "::mlir::ModuleOp"> {
  let summary = "Give each product the form and the order of letters in which it is cheapest";
  let dependentDialects = ["::wg::ir::WGDialect"];
  let description = [{
    A product without rows or without columns becomes a sum of products. Any other is computed in the order of letters that is
    estimated to be the cheapest, with explicit transposes of its operands and of its result where they are in another. In a
    loop's body a transpose of what is invariant costs its part of one turn: `wg-hoist-invariants` computes it before the loop.
  }];
  let options = [MachineOption];
}

def HoistInvariants : Pass<"wg-hoist-invariants", "::mlir::ModuleOp"> {
  let summary = "Compute once before a loop what its turns would compute of invariants alone";
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
}

def DistributeLoops : Pass<"wg-distribute-loops", "::mlir::ModuleOp"> {
  let summary = "Make several loops of one that carries more than registers hold";
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect"];
  let options = [
    Option<"registers", "registers", "int64_t", "1024", "bytes of what a loop carries that registers hold beside what a turn computes">,
  ];
}

def CheckCompilable : Pass<"wg-check-compilable", "::mlir::func::FuncOp"> {
  let summary = "Refuse what has no machine code: other ops than wg's, sizes that are not known, calls";
  let dependentDialects = ["::wg::ir::WGDialect"];
}

def FuseKernels : Pass<"wg-fuse-kernels", "::mlir::ModuleOp"> {
  let summary = "Fuse the body of each wg.kernel of a text by itself";
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
  let description = [{
    Text may hold kernels that no emitter knows: of several loop nests, or of another kind than they say. Where one kernel comes out of a
    body, as it does from those that fusion made, the one in the text stays; else those that come out take its place.
  }];
  let options = [MachineOption];
}

def GroupOps : Pass<"wg-group-ops", "::mlir::func::FuncOp"> {
  let summary = "Group ops into wg.kernel regions, each one loop nest";
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
}

def EndBarriers : Pass<"wg-end-barriers", "::mlir::func::FuncOp"> {
  let summary = "Replace each barrier by its operand, once the order of the kernels is decided";
  let dependentDialects = ["::wg::ir::WGDialect"];
}

#endif // WG_PASSES_TD
