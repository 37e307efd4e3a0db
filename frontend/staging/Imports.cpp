#include "frontend/staging/Imports.h"

#include "frontend/staging/Function.h"
#include "ir/Calls.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace wg::detail {

func::FuncOp Imports::copyOf(func::FuncOp function, const Identities &identities) {
  // Each function with its copy, whose calls still have the names of the other module.
  SmallVector<std::pair<func::FuncOp, func::FuncOp>> fresh;
  Block &body = symbols_.getOp()->getRegion(0).front();
  auto place = [&](func::FuncOp source) {
    auto known = identities.find(source);
    uint64_t number = known != identities.end() ? known->second : nextSerial();
    func::FuncOp &copy = copies_[{number, source.getFunctionType().getAsOpaquePointer()}];
    if (!copy) {
      copy = cast<func::FuncOp>(source->clone());
      copy.setPrivate();
      ir::forgetDerived(copy); // they are functions of the other module
      symbols_.insert(copy, body.begin());
      own_[copy] = number;
      fresh.push_back({source, copy});
    }
    return copy;
  };
  func::FuncOp first = place(function);
  if (fresh.empty())
    return first;
  SymbolTable from(function->getParentOfType<ModuleOp>());
  for (size_t i = 0; i < fresh.size(); ++i) {
    func::FuncOp copy = fresh[i].second; // `place` may move the list
    copy.walk([&](ir::WithBodies op) {
      SmallVector<FlatSymbolRefAttr> names;
      for (FlatSymbolRefAttr name : op.bodyNames())
        names.push_back(FlatSymbolRefAttr::get(place(from.lookup<func::FuncOp>(name.getAttr())).getSymNameAttr()));
      op.setBodyNames(names);
    });
    for (StringRef key : ir::kStatedDerivatives)
      if (auto name = copy->getAttrOfType<FlatSymbolRefAttr>(key))
        copy->setAttr(key, FlatSymbolRefAttr::get(place(from.lookup<func::FuncOp>(name.getValue())).getSymNameAttr()));
  }
  return first;
}

FailureOr<func::FuncOp> Imports::copyOf(func::FuncOp function, const Identities &identities, TypeRange arguments,
                                        ArrayRef<std::string> names) {
  if (arguments == TypeRange(function.getArgumentTypes()))
    return copyOf(function, identities);
  Type key = FunctionType::get(function.getContext(), arguments, {});
  func::FuncOp &copy = narrowed_[{identities.lookup(function), key.getAsOpaquePointer()}];
  if (copy)
    return copy;
  IRMapping mapping;
  OwningOpRef<ModuleOp> module = cast<ModuleOp>(function->getParentOfType<ModuleOp>()->clone(mapping));
  Identities numbers;
  for (auto [source, number] : identities)
    numbers[mapping.lookup(source)] = number;
  auto entry = cast<func::FuncOp>(mapping.lookup(function.getOperation()));
  if (failed(passes::inferShapes(entry, SmallVector<Type>(arguments), names)))
    return failure();
  return copy = copyOf(entry, numbers);
}

} // namespace wg::detail
