// The derivative of a concrete function: a pair, forward with residuals and backward, compiled on its own; and, where an outer tape records the
// gradient, one function that does both and can be differentiated again.
#include "frontend/Function.h"

#include "autodiff/Reverse.h"
#include "codegen/Pipeline.h"
#include "ir/Calls.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"

#include <mutex>

using namespace mlir;

namespace wg::detail {

/// Makes `entry` the module's one public function and erases what it does not call, the derivatives of what is left too.
static void makeEntry(ModuleOp module, StringRef entry) {
  SymbolTable symbols(module);
  llvm::SetVector<Operation *> reached;
  reached.insert(symbols.lookup(entry));
  for (size_t i = 0; i < reached.size(); ++i)
    reached[i]->walk([&](ir::CallOp call) { reached.insert(symbols.lookup(call.getCallee())); });
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!reached.contains(function)) {
      function.erase();
    } else {
      function->removeAttr(ir::kPairsAttr);
      function.getSymName() == entry ? function.setPublic() : function.setPrivate();
    }
}

std::shared_ptr<Derivative> ConcreteState::derivative(const std::vector<uint32_t> &arguments, const Where &where) {
  ir::Working working;
  std::lock_guard lock(mutex_);
  std::shared_ptr<Derivative> &slot = derivatives_[arguments];
  if (slot)
    return slot;
  Diagnostics diagnostics;
  OwningOpRef<ModuleOp> module = cast<ModuleOp>(code->module()->clone());
  auto made = std::make_shared<Derivative>();
  SmallVector<unsigned> places(arguments.begin(), arguments.end()), results;
  for (uint32_t i = 0; i < numResults; ++i)
    if (runtime::isFloat(code->results()[i].dtype))
      results.push_back(i);
  // Differentiated as a whole: pair by pair, each level of calls would hand up the residuals of all below it.
  auto function = module->lookupSymbol<func::FuncOp>(code->entry());
  FailureOr<autodiff::FunctionPair> pair = failure();
  if (succeeded(codegen::inlineCalls(function)))
    pair = autodiff::functionPair(function, places, results);
  if (failed(pair))
    raise(diagnostics.take("the function has no derivative"), where);
  made->residuals.assign(pair->residuals.begin(), pair->residuals.end());
  made->reasons.resize(inputs.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (pair->returned[i])
      made->arguments.push_back(arguments[i]);
    else
      made->reasons[arguments[i]] = pair->reasons[i];
  made->results.assign(results.begin(), results.end());
  made->numResults = static_cast<uint32_t>(code->results().size());
  for (const autodiff::DroppedAdjoint &dropped : pair->certificate)
    certificate_.push_back({dropped.op, static_cast<int>(dropped.operand), ir::whereOf(dropped.loc), dropped.reason});
  std::string forward = pair->forward.getSymName().str(), backward = pair->backward.getSymName().str();
  OwningOpRef<ModuleOp> second = cast<ModuleOp>(module.get()->clone());
  makeEntry(*module, forward);
  makeEntry(*second, backward);
  made->forward = std::make_unique<Code>(std::move(module), forward, code->interpreted(), Identities());
  made->forward->setNames(code->names());
  made->backward = std::make_unique<Code>(std::move(second), backward, code->interpreted(), Identities());
  return slot = made;
}

/// func @f_vjp(inputs, cotangents) { results, residuals = call @f_forward(inputs); return call @f_backward(residuals,
/// cotangents) }
std::shared_ptr<ConcreteState> ConcreteState::vjp(Derivative &derivative, const Where &where) {
  ir::Working working;
  std::lock_guard lock(derivative.mutex);
  if (derivative.vjp)
    return derivative.vjp;
  Diagnostics diagnostics;
  func::FuncOp forward = derivative.forward->function(), backward = derivative.backward->function();
  Location loc = forward.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder b(ir::context());
  b.setInsertionPointToStart(module->getBody());
  SmallVector<Type> inputTypes(forward.getArgumentTypes());
  for (uint32_t result : derivative.results)
    inputTypes.push_back(forward.getResultTypes()[result]);
  std::string entry = symbolOf(name) + "_vjp";
  auto function = func::FuncOp::create(b, loc, entry, b.getFunctionType(inputTypes, backward.getResultTypes()));
  Block *body = function.addEntryBlock();
  SymbolTable symbols(*module);
  Imports imports(symbols);
  func::FuncOp forwardCopy = imports.copyOf(forward, derivative.forward->identities());
  func::FuncOp backwardCopy = imports.copyOf(backward, derivative.backward->identities());
  b.setInsertionPointToStart(body);
  SmallVector<mlir::Value> arguments(body->getArguments());
  ArrayRef<mlir::Value> primal = ArrayRef<mlir::Value>(arguments).take_front(forward.getNumArguments());
  auto call =
      ir::CallOp::create(b, loc, forward.getResultTypes(), FlatSymbolRefAttr::get(forwardCopy.getSymNameAttr()), primal);
  SmallVector<mlir::Value> operands;
  for (int64_t residual : derivative.residuals)
    operands.push_back(residual >= 0 ? primal[residual]
                                     : call.getResult(derivative.numResults + static_cast<unsigned>(-1 - residual)));
  operands.append(arguments.begin() + forward.getNumArguments(), arguments.end());
  auto gradients = ir::CallOp::create(b, loc, backward.getResultTypes(),
                                      FlatSymbolRefAttr::get(backwardCopy.getSymNameAttr()), operands);
  func::ReturnOp::create(b, loc, gradients.getResults());
  if (failed(verify(*module)))
    raise(diagnostics.take("the derivative does not verify"), where);

  auto concrete = std::make_shared<ConcreteState>();
  concrete->name = name + " (gradient)";
  concrete->reason = "the gradient of " + name + " is recorded by an outer tape";
  concrete->calledAt = where;
  for (uint32_t i = 0; i < inputTypes.size(); ++i)
    concrete->inputs.push_back({.kind = TraceInput::argument, .captured = {}, .state = nullptr, .leaf = i});
  concrete->numResults = backward.getNumResults();
  concrete->code = std::make_unique<Code>(std::move(module), entry, code->interpreted(), imports.takeIdentities());
  return derivative.vjp = concrete;
}

} // namespace wg::detail
