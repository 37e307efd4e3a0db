//===- Passes.td - derivatives as passes over textual IR -------------------------------------------===//
#ifndef WG_AUTODIFF_PASSES_TD
#define WG_AUTODIFF_PASSES_TD

include "mlir/Pass/PassBase.td"

def Grad : Pass<"wg-grad", "::mlir::ModuleOp"> {
  let summary = "Append the gradient function of a function";
  let description = [{
    Adds `@<function>_grad`. It takes the arguments of the function (and, with seeds=true, one cotangent per float result after them)
    and returns, with values=true, the function's results, then the gradient for each argument of `wrt`. A gradient that does not exist
    is zeros; the reason is a remark. The certificate of dropped adjoints is the attribute `wg.certificate` of the new function.
  }];
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
  let options = [
    Option<"function", "function", "std::string", "\"main\"", "the function to differentiate">,
    ListOption<"wrt", "wrt", "int64_t", "arguments to differentiate by; default: every float argument">,
    Option<"values", "values", "bool", "false", "also return the function's results, first">,
    Option<"seeds", "seeds", "bool", "false", "take the cotangents of the float results as arguments; default: ones">,
    Option<"name", "name", "std::string", "\"\"", "name of the new function; default: <function>_grad">,
  ];
}

def Jvp : Pass<"wg-jvp", "::mlir::ModuleOp"> {
  let summary = "Append the Jacobian-vector product of a function";
  let description = [{
    Adds `@<function>_jvp`. It takes the arguments of the function and after them one tangent for each argument of `wrt`, and returns,
    with values=true, the function's results, then the tangent of each float result. A tangent of a result that depends on none of
    `wrt` is zeros; the reason is a remark.
  }];
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
  let options = [
    Option<"function", "function", "std::string", "\"main\"", "the function to differentiate">,
    ListOption<"wrt", "wrt", "int64_t", "arguments that move; default: every float argument">,
    Option<"values", "values", "bool", "false", "also return the function's results, first">,
    Option<"name", "name", "std::string", "\"\"", "name of the new function; default: <function>_jvp">,
  ];
}

def Vmap : Pass<"wg-vmap", "::mlir::ModuleOp"> {
  let summary = "Append the batched form of a function";
  let description = [{
    Adds `@<function>_vmap`, which does for many lanes at once what the function does for one. Its arguments at `wrt` and all its results
    have one more axis in front; a result that depends on none of `wrt` is repeated. An argument or result of type index stays as it is.
  }];
  let dependentDialects = ["::wg::ir::WGDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
  let options = [
    Option<"function", "function", "std::string", "\"main\"", "the function to batch">,
    ListOption<"wrt", "wrt", "int64_t", "arguments that have lanes; default: every tensor">,
    Option<"size", "size", "int64_t", "-1", "the number of lanes; default: `?`">,
    Option<"name", "name", "std::string", "\"\"", "name of the new function; default: <function>_vmap">,
  ];
}

#endif // WG_AUTODIFF_PASSES_TD
