// What a lowered entry says of itself, read back from its attributes: text may say anything.
#include "codegen/EmitProgram.h"
#include "codegen/PlanMemory.h"
#include "ir/Bridge.h"
#include "runtime/Extent.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace wg::codegen {

FailureOr<EntryInfo> readEntryInfo(ModuleOp module, StringRef entry) {
  Operation *fn = module.lookupSymbol(entry);
  if (!fn)
    return module.emitError("no function @") << entry << " in the module";
  // Before the llvm stage it is a function of `func`, afterwards one of LLVM's.
  if (auto function = dyn_cast<func::FuncOp>(fn)) {
    Type pointer = LLVM::LLVMPointerType::get(module.getContext());
    Type wanted = FunctionType::get(module.getContext(), {pointer, pointer, pointer},
                                    {IntegerType::get(module.getContext(), 32)});
    if (function.getFunctionType() != wanted || function.isDeclaration())
      return fn->emitError("@") << entry << " is not a lowered entry: its type is " << function.getFunctionType()
                                << ", an entry's " << wanted;
  }
  EntryInfo info;
  info.name = entry.str();
  auto types = fn->getAttrOfType<ArrayAttr>("wg.inputs"), results = fn->getAttrOfType<ArrayAttr>("wg.results");
  auto donated = fn->getAttrOfType<DenseI64ArrayAttr>("wg.donated");
  auto workspace = fn->getAttrOfType<IntegerAttr>("wg.workspace_bytes");
  auto errors = fn->getAttrOfType<ArrayAttr>("wg.errors"), places = fn->getAttrOfType<ArrayAttr>("wg.error_places");
  if (!types || !results || !donated || !workspace || !workspace.getType().isSignlessInteger(64) || !errors || !places)
    return fn->emitError("@") << entry
                              << " is not a lowered entry: it lacks the attributes wg.inputs, wg.results, wg.donated, "
                                 "wg.workspace_bytes, wg.errors, wg.error_places";
  for (auto [list, to] : {std::pair(types, &info.inputs), std::pair(results, &info.results)})
    for (Attribute attribute : list) {
      auto type = dyn_cast<TypeAttr>(attribute);
      auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
      if (!tensor || !tensor.hasStaticShape() || !ir::isValueType(tensor))
        return fn->emitError("@") << entry << ": wg.inputs and wg.results hold static types of values, got "
                                  << attribute;
      to->push_back(ir::runtimeTypeOf(tensor));
    }
  info.donated.assign(donated.asArrayRef().begin(), donated.asArrayRef().end());
  if (info.donated.size() != info.results.size())
    return fn->emitError("@") << entry << ": wg.donated has " << info.donated.size() << " entries for "
                              << info.results.size() << " results";
  std::vector<bool> taken(info.inputs.size(), false);
  for (auto [r, input] : llvm::enumerate(info.donated)) {
    if (input == -1)
      continue;
    if (input < 0 || input >= static_cast<int64_t>(info.inputs.size()) || taken[input] ||
        info.inputs[input] != info.results[r])
      return fn->emitError("@") << entry << ": wg.donated gives result " << r << " the input " << input
                                << ", which is none, another's, or of another type";
    taken[input] = true;
  }
  info.workspaceBytes = workspace.getInt();
  if (info.workspaceBytes < kWorkspaceHeader || info.workspaceBytes > runtime::kMaxBytes)
    return fn->emitError("@") << entry << ": wg.workspace_bytes is " << info.workspaceBytes << "; a workspace has "
                              << kWorkspaceHeader << " bytes at least and 2^56 at most";
  for (auto [list, to] : {std::pair(errors, &info.errors), std::pair(places, &info.errorPlaces)})
    for (Attribute attribute : list) {
      auto text = dyn_cast<StringAttr>(attribute);
      if (!text)
        return fn->emitError("@") << entry << ": wg.errors and wg.error_places hold strings, got " << attribute;
      to->push_back(text.str());
    }
  if (info.errors.size() != info.errorPlaces.size())
    return fn->emitError("@") << entry << " has " << info.errors.size() << " errors and " << info.errorPlaces.size()
                              << " places of them";
  return info;
}

} // namespace wg::codegen
