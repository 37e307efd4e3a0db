// Better programs, IR -> IR, still in our dialect. One pass, one file.
#pragma once

#include "ir/Dialect.h"
#include "passes/MemoryCosts.h"
#include "runtime/Status.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace wg::passes {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// The forms of a product that may be the fastest on a machine (wg-arrange-products), the one that is estimated to be
/// first: programs of one function @product, of the same operands and result, at stage simplified, which need no
/// arranging. Forms that are much alike are a group, of which the first is estimated to be the fastest.
struct Forms {
  std::string product; ///< its letters, sizes and dtype
  std::string all;     ///< what tells these forms from any others
  mlir::Location where;
  int64_t bytes;                 ///< of operands and result
  llvm::ArrayRef<size_t> groups; ///< of each form the number; groups lie one after another
  llvm::function_ref<mlir::OwningOpRef<mlir::ModuleOp>(size_t form)> program;
  size_t count() const { return groups.size(); }
};
/// Says which form a product is to have; such as measures them.
using ChooseForm = llvm::function_ref<size_t(const Forms &)>;

/// What the stage *simplified* and `wengert-opt --wg-simplify` run on each function. No gradient is taken afterwards.
void addSimplify(mlir::OpPassManager &functions);

/// What the stage *fused* and `wengert-opt --wg-fuse` run: kernels of a text are opened, what has no machine code is
/// refused, products leave loops and are arranged, loops compute what is the same in all turns before the first, ops
/// are grouped. Products take the form that is cheapest on `machine`, or that `choose` says, which outlives the passes.
void addFuse(mlir::OpPassManager &modules, Machine machine, ChooseForm choose = {});
/// That, for products which have the form that they are to have.
void addFuseArranged(mlir::OpPassManager &modules);

/// What the stage *dropped* and `wengert-opt --wg-drop` run: calls of `function` (empty: of all public ones) are
/// inlined, cotangents that nobody reads go.
void addDrop(mlir::OpPassManager &modules, llvm::StringRef function = {});

/// Replaces each wg.call in `function` by its callee's body; one whose callee names its own derivative stays if
/// `keepDerivatives`. A function that calls itself is an error at the call.
mlir::LogicalResult inlineCalls(mlir::func::FuncOp function, bool keepDerivatives = false);

/// Kernels are made of wg ops on static sizes; an error at what is anything else.
mlir::LogicalResult checkCompilable(mlir::func::FuncOp function);

/// wg-arrange-products, where products of which several forms may be the fastest ask.
std::unique_ptr<mlir::Pass> createArrangeProducts(Machine machine, ChooseForm choose);

/// What wg-arrange-products does in a function that no loop runs.
void arrangeProducts(mlir::func::FuncOp function, Machine machine);

/// Sets the argument types of `function` and re-infers everything that follows, in what it calls too: the body of
/// wg-infer-shapes. An empty `types` re-infers from the types as they are. `names` are what errors call the arguments.
mlir::LogicalResult inferShapes(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Type> types,
                                llvm::ArrayRef<std::string> names = {});

/// `f32[8,3];i64[?]` as tensor types; a failure where the text is none, or where there is no such tensor.
runtime::Result<llvm::SmallVector<mlir::Type>> parseTypes(mlir::MLIRContext *context, llvm::StringRef text);

/// All passes of this room by name, and the stages `wg-drop` and `wg-simplify`. For tools that read pipelines.
void registerPasses();

} // namespace wg::passes
