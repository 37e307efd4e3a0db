// The derivative of a concrete function: a pair, forward with residuals and backward, compiled on its own; and, where
// an outer tape records the gradient, one function that does both and can be differentiated again.
#include "frontend/staging/Function.h"

#include "autodiff/Forward.h"
#include "codegen/Pipeline.h"
#include "ir/Calls.h"
#include "passes/Passes.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"

#include <mutex>
#include <set>

using namespace mlir;

namespace wg::detail {

void makeEntry(ModuleOp module, StringRef entry) {
  SymbolTable symbols(module);
  llvm::SetVector<Operation *> reached;
  reached.insert(symbols.lookup(entry));
  for (size_t i = 0; i < reached.size(); ++i) {
    reached[i]->walk([&](ir::WithBodies op) {
      for (FlatSymbolRefAttr name : op.bodyNames())
        reached.insert(symbols.lookup(name.getAttr()));
    });
    for (StringRef key : ir::kStatedDerivatives)
      if (auto name = reached[i]->getAttrOfType<FlatSymbolRefAttr>(key))
        reached.insert(symbols.lookup(name.getValue()));
  }
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!reached.contains(function)) {
      function.erase();
    } else {
      ir::forgetDerived(function);
      function.getSymName() == entry ? function.setPublic() : function.setPrivate();
    }
}

std::shared_ptr<Derivative> ConcreteState::derivative(const std::vector<uint32_t> &arguments, const Where &where) {
  ir::Working working;
  std::lock_guard lock(mutex_);
  if (auto found = derivatives_.find(arguments); found != derivatives_.end())
    return found->second;
  std::vector<uint32_t> results;
  for (uint32_t i = 0; i < numResults; ++i)
    if (runtime::isFloat(code->results()[i].dtype))
      results.push_back(i);
  std::vector<DroppedGradient> dropped;
  std::shared_ptr<Derivative> made = differentiate(arguments, results, dropped, where);
  derivatives_.emplace(arguments, made);
  // What other derivatives left out, of what was loaded before it was saved as well, is listed already.
  std::set<DroppedGradient> known(certificate_.begin(), certificate_.end());
  for (DroppedGradient &each : dropped)
    if (!known.contains(each))
      certificate_.push_back(std::move(each));
  return made;
}

/// The residuals of `part` by their places among those of `whole`, whose forward is the same ops with other
/// results; none if one is not there, or if there is a condition or a loop: what these return for the backward function
/// depends on which results have a cotangent.
static std::optional<std::vector<int64_t>> residualsIn(const Derivative &whole, const Derivative &part) {
  for (Operation &op : part.forward->function().getBody().front())
    if (ir::isControl(&op))
      return std::nullopt;
  // A value, by the op that makes it (-1: an argument), counted from the front, and its place among the results.
  using Place = std::pair<int64_t, unsigned>;
  auto residualsOf = [](const Derivative &derivative) {
    Block &body = derivative.forward->function().getBody().front();
    DenseMap<Operation *, int64_t> order;
    for (auto [i, op] : llvm::enumerate(body))
      order[&op] = static_cast<int64_t>(i);
    std::vector<Place> places;
    for (mlir::Value value : body.getTerminator()->getOperands().drop_front(derivative.numResults))
      if (auto argument = dyn_cast<BlockArgument>(value))
        places.push_back({-1, argument.getArgNumber()});
      else
        places.push_back({order.lookup(value.getDefiningOp()), cast<OpResult>(value).getResultNumber()});
    return places;
  };
  std::vector<Place> all = residualsOf(whole), own = residualsOf(part);
  std::vector<int64_t> kept = part.residuals;
  for (int64_t &residual : kept)
    if (residual < 0) {
      auto at = llvm::find(all, own[static_cast<size_t>(-1 - residual)]);
      if (at == all.end())
        return std::nullopt;
      residual = -1 - (at - all.begin());
    }
  return kept;
}

std::shared_ptr<Derivative> ConcreteState::part(const std::shared_ptr<Derivative> &whole,
                                                const std::vector<uint32_t> &results, const Where &where) {
  if (results == whole->results)
    return whole;
  std::lock_guard lock(mutex_);
  if (auto found = whole->parts.find(results); found != whole->parts.end())
    return found->second;
  ir::Working working;
  std::vector<DroppedGradient> dropped; // the whole's are known
  std::shared_ptr<Derivative> made = differentiate(whole->asked, results, dropped, where);
  made->kept = residualsIn(*whole, *made);
  whole->parts.emplace(results, made);
  return made;
}

std::shared_ptr<Derivative> ConcreteState::differentiate(const std::vector<uint32_t> &arguments,
                                                         const std::vector<uint32_t> &results,
                                                         std::vector<DroppedGradient> &dropped,
                                                         const Where &where) const {
  ir::Diagnostics diagnostics(ir::context());
  OwningOpRef<ModuleOp> module = cast<ModuleOp>(code->module()->clone());
  auto made = std::make_shared<Derivative>();
  SmallVector<unsigned> places(arguments.begin(), arguments.end()), targets(results.begin(), results.end());
  // Differentiated as a whole: pair by pair, each level of calls would return the residuals of all below it.
  auto function = module->lookupSymbol<func::FuncOp>(code->entry());
  FailureOr<autodiff::FunctionPair> pair = failure();
  if (succeeded(passes::inlineCalls(function, /*keepDerivatives=*/true)))
    pair = autodiff::functionPair(function, places, targets);
  if (failed(pair))
    raise(diagnostics.take("the function has no derivative"), where);
  made->asked = arguments;
  made->residuals.assign(pair->residuals.begin(), pair->residuals.end());
  made->reasons.resize(inputs.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (pair->returned[i])
      made->arguments.push_back(arguments[i]);
    else
      made->reasons[arguments[i]] = pair->reasons[i];
  made->results = results;
  made->numResults = static_cast<uint32_t>(code->results().size());
  for (const autodiff::DroppedAdjoint &each : pair->certificate)
    dropped.push_back({each.op, static_cast<int>(each.operand), ir::whereOf(each.loc), each.reason});
  std::string forward = pair->forward.getSymName().str(), backward = pair->linear.getSymName().str();
  OwningOpRef<ModuleOp> second = cast<ModuleOp>(module.get()->clone());
  makeEntry(*module, forward);
  makeEntry(*second, backward);
  made->forward = std::make_unique<Code>(std::move(module), forward, code->interpreted(), Identities());
  made->forward->setNames(code->names());
  made->backward = std::make_unique<Code>(std::move(second), backward, code->interpreted(), Identities());
  return made;
}

/// func @f_vjp(inputs, cotangents) { results, residuals = call @f_forward(inputs); return call @f_backward(residuals,
/// cotangents) }
std::shared_ptr<ConcreteState> ConcreteState::vjp(Derivative &derivative, const Where &where) {
  ir::Working working;
  std::lock_guard lock(derivative.mutex);
  if (derivative.vjp)
    return derivative.vjp;
  ir::Diagnostics diagnostics(ir::context());
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
  auto call = ir::CallOp::create(b, loc, forward.getResultTypes(), FlatSymbolRefAttr::get(forwardCopy.getSymNameAttr()),
                                 primal);
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

std::shared_ptr<const TangentFunction> ConcreteState::tangent(const std::vector<uint32_t> &arguments,
                                                              const std::vector<uint32_t> &results,
                                                              const Where &where) {
  ir::Working working;
  std::lock_guard lock(mutex_);
  if (auto found = tangents_.find({arguments, results}); found != tangents_.end())
    return found->second;
  ir::Diagnostics diagnostics(ir::context());
  OwningOpRef<ModuleOp> module = cast<ModuleOp>(code->module()->clone());
  auto function = module->lookupSymbol<func::FuncOp>(code->entry());
  // As a whole: its calls are inlined, so nothing is computed twice once it is compiled.
  if (failed(passes::inlineCalls(function, /*keepDerivatives=*/true)))
    raise(diagnostics.take("the function has no derivative"), where);
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
  Block &body = function.getBody().front();
  Operation *terminator = body.getTerminator();
  SmallVector<mlir::Value> targets, sources, given, returned;
  for (uint32_t argument : arguments) {
    sources.push_back(body.getArgument(argument));
    given.push_back(body.addArgument(sources.back().getType(), function.getLoc()));
  }
  for (uint32_t result : results)
    targets.push_back(terminator->getOperand(result));
  OpBuilder b(terminator);
  FailureOr<autodiff::Tangents> tangents = autodiff::forward(b, function.getLoc(), targets, sources, given);
  if (failed(tangents))
    raise(diagnostics.take("the function has no derivative in forward mode"), where);
  auto made = std::make_shared<TangentFunction>();
  for (auto [result, value] : llvm::zip_equal(results, tangents->values))
    if (value) {
      returned.push_back(value);
      made->results.push_back(result);
    }
  terminator->setOperands(returned);
  autodiff::eraseDead(body, nullptr);
  function.setFunctionType(b.getFunctionType(body.getArgumentTypes(), ValueRange(returned).getTypes()));
  makeEntry(*module, code->entry());
  if (failed(verify(*module)))
    raise(diagnostics.take("the derivative does not verify"), where);
  made->concrete = std::make_shared<ConcreteState>();
  made->concrete->name = name + " (tangent)";
  made->concrete->reason = "the tangent of " + name;
  made->concrete->calledAt = where;
  for (uint32_t i = 0; i < body.getNumArguments(); ++i)
    made->concrete->inputs.push_back({.kind = TraceInput::argument, .captured = {}, .state = nullptr, .leaf = i});
  made->concrete->numResults = static_cast<uint32_t>(returned.size());
  made->concrete->code = std::make_unique<Code>(std::move(module), code->entry(), code->interpreted(), Identities());
  return tangents_[{arguments, results}] = made;
}

} // namespace wg::detail
