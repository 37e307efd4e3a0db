// A function while it is being traced: a func.func that grows op by op. Inputs are what the signature has, and, as they
// are met, variables and captured tensors; an assigned variable becomes a result as well.
#pragma once

#include "frontend/staging/Apply.h"
#include "frontend/staging/Imports.h"
#include "frontend/staging/Tape.h"

#include <wengert/Function.h>

#include "autodiff/Reverse.h"
#include "ir/Bridge.h"
#include "ir/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <vector>

namespace wg::detail {

/// What a tape in a trace knows: the recorded ops, and the values that are watched or computed from such.
struct TracedTape {
  llvm::DenseSet<mlir::Operation *> ops;
  llvm::DenseSet<mlir::Value> values;
};

/// Where an input of a traced function comes from.
struct TraceInput {
  enum Kind { argument, variable, capture } kind;
  Tensor captured;                      ///< capture
  std::shared_ptr<VariableState> state; ///< variable; for a formal parameter, the formal
  uint32_t leaf = 0;                    ///< argument, or a formal variable: its place among the leaves of the signature
  bool formal = false;
};

class Code;
class ConcreteState;

/// A rule of C++ (GradientRule), traced: its functions take cotangents of the float results, or tangents of the float
/// operands, and return those of the others.
struct TracedRule {
  const char *name, *what; ///< custom_gradient, `rule of custom_gradient`
  llvm::ArrayRef<mlir::Value> results, operands;
  std::shared_ptr<ConcreteState> vjp, jvp = nullptr; ///< jvp: may be null
  bool transposes = false;
};

class Trace {
public:
  Trace(const std::string &name, Trace *outer, const Where &where);
  ~Trace();

  uint64_t id() const { return id_; }
  /// As the user named the function.
  const std::string &name() const { return name_; }
  Trace *outer() const { return outer_; }
  Level &level() { return level_; }

  void apply(runtime::OpId op, const runtime::Attrs &attrs, std::span<const Tensor *const> operands,
             std::span<Tensor> results, const Where &where);
  /// A scalar literal, repeated to a static `shape`.
  Tensor constant(const runtime::Array &scalar, const Shape &shape, const Where &where);
  Tensor placeholder(const TensorType &type, uint32_t leaf, const Where &where);
  /// A formal parameter that stands for `actual`, also where the traced code names `actual` itself. `type` is the
  /// variable's, or that of one of its lanes.
  Variable formal(const Variable &actual, const TensorType &type, uint32_t leaf, const Where &where);
  Tensor read(const std::shared_ptr<VariableState> &variable, const Where &where);
  void assign(const std::shared_ptr<VariableState> &variable, const Tensor &value, const Where &where);
  /// Whether it has assigned the variable.
  bool assigns(const VariableState &variable) const;

  /// A call of a function of another module, which is copied into this one. `operands` are values of this trace.
  std::vector<Tensor> call(const Code &callee, llvm::ArrayRef<mlir::Value> operands, const Where &where);
  /// The results, with a rule of their own.
  std::vector<Tensor> withRule(const TracedRule &rule, const Where &where);
  /// x, of which a derivative is an error with this message.
  Tensor prevented(mlir::Value x, const std::string &message, const Where &where);
  /// One op at the end of what is traced, by `build`, which may add functions to the module: its results.
  std::vector<Tensor>
  add(llvm::function_ref<mlir::Operation *(mlir::OpBuilder &, mlir::Location, mlir::SymbolTable &, Imports &)> build,
      const Where &where);
  /// The value of a tensor in this trace; a tensor from outside becomes an input.
  mlir::Value valueOf(const Tensor &tensor, const char *op, const Where &where);
  Tensor tensorOf(mlir::Value value, const Where &where);
  /// The tensor of this or an enclosing trace whose shape `shape` is an unchanged copy of; undefined if there is none.
  Tensor ownerOf(const Shape &shape, const Where &where);
  /// The gradient by reverse mode, at the end of what is traced. `tape` tells what is recorded.
  autodiff::Gradients reverse(Tape &tape, llvm::ArrayRef<mlir::Value> targets, llvm::ArrayRef<mlir::Value> seeds,
                              llvm::ArrayRef<mlir::Value> sources, bool record, const Where &where);

  /// The tangents by forward mode, in the same manner.
  autodiff::Tangents forward(Tape &tape, llvm::ArrayRef<mlir::Value> targets, llvm::ArrayRef<mlir::Value> sources,
                             llvm::ArrayRef<mlir::Value> tangents, const Where &where);

  /// Either, by the one cotangent or tangent whose `lanes` are given: the derivatives have their axis, too. They are
  /// made by a function, which is called once or for each chunk of the lanes.
  autodiff::Derivatives inLanes(Tape &tape, autodiff::Mode mode, llvm::ArrayRef<mlir::Value> targets,
                                llvm::ArrayRef<mlir::Value> sources, mlir::Value lanes, Lanes &limits,
                                const Where &where);

  /// Ends the function: returns `results`, then the assigned variables. Verifies.
  void finish(const std::vector<Tensor> &results, const Where &where);

  mlir::func::FuncOp function() { return function_; }
  mlir::OwningOpRef<mlir::ModuleOp> takeModule() { return std::move(module_); }
  /// Of the functions of other modules that are called.
  Identities takeIdentities() { return imports_.takeIdentities(); }
  const std::vector<TraceInput> &inputs() const { return inputs_; }
  /// Indices of the inputs that are assigned, in the order of their results.
  const std::vector<uint32_t> &assigned() const { return assigned_; }
  std::vector<DroppedGradient> certificate;
  /// A tensor of an enclosing trace was captured: the result is of use inside of that trace only.
  bool bound = false;
  /// Variables that are an argument and were captured as well, here or by a function called here, by their ids.
  std::vector<int64_t> capturedArguments;
  void noteCaptured(int64_t variable);
  int64_t numOps = 0;

private:
  struct Held {
    uint32_t input;
    Tensor value;
    bool assigned = false;
  };
  mlir::Location locationOf(const Where &where) { return ir::locationOf(function_.getContext(), where); }
  mlir::Value addInput(TraceInput input, mlir::Type type, const Where &where);
  Held &hold(const std::shared_ptr<VariableState> &variable, const Where &where);
  llvm::SmallVector<Held *, 1> placesOf(int64_t id);
  Tensor versionOf(const Tensor &next, const Tensor &before, const Where &where);
  void record(mlir::Operation *op);
  /// The same, and its results.
  std::vector<Tensor> recorded(mlir::Operation *op, const Where &where);
  template <class Transform>
  autodiff::Derivatives transformed(Tape &tape, bool recordIt, const char *failed, const Where &where,
                                    Transform transform);

  uint64_t id_;
  std::string name_;
  Trace *outer_;
  Level level_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::SymbolTable symbols_;
  Imports imports_;
  mlir::func::FuncOp function_;
  mlir::OpBuilder builder_;
  mlir::Block *body_;
  std::vector<mlir::Value> values_;           ///< by Symbol::value; follows replaced ops
  llvm::DenseMap<uint64_t, uint32_t> owners_; ///< tensors with an open size: by Shape::owner() their Symbol::value
  std::vector<TraceInput> inputs_;
  std::vector<uint32_t> assigned_;
  llvm::DenseMap<uint64_t, mlir::Value> captured_; ///< by tensor id
  llvm::DenseMap<VariableState *, Held> held_;
  llvm::DenseMap<int64_t, std::shared_ptr<VariableState>>
      formals_; ///< by id: what stands for a variable that is an argument
  llvm::DenseMap<int64_t, llvm::SmallVector<VariableState *, 1>>
      places_;                          ///< by id: what is held of a variable, in the order of the inputs
  llvm::SmallVector<int64_t> separate_; ///< ids of variables whose formal parameters count on their own
};

} // namespace wg::detail
