// `wengert run PATH`, where PATH is a saved computation: one of its functions on arrays. What it assigns is kept where
// --save says, and nowhere else.
#include "tools/Arrays.h"
#include "tools/Program.h"
#include "tools/Saved.h"

#include "frontend/saving/Snapshot.h"

#include <wengert/Version.h>

namespace wg::tools {
namespace {

using runtime::Array;

void refuseVariables(const SavedFunction &function, const SavedTrace &trace) {
  if (trace.takesVariables)
    fail({.kind = ErrorKind::type,
          .op = function.name,
          .message = "trace " + std::to_string(trace.number) +
                     " takes a variable as an argument, and a file holds an "
                     "array: " +
                     trace.concrete->signature,
          .remedy = "call it from C++: wg::load(path).function<...>(name)"});
}

size_t openSizes(const SavedTrace &trace) {
  size_t open = 0;
  for (const runtime::TensorType &type : trace.tensors)
    open += static_cast<size_t>(std::count(type.shape.begin(), type.shape.end(), runtime::kDynamic));
  return open;
}

/// The trace that takes the arrays; of several the one with the fewest open sizes, as in a call.
const SavedTrace &choose(const SavedFunction &function, std::span<const Array> arrays) {
  std::vector<const SavedTrace *> best;
  for (const SavedTrace &trace : function.traces) {
    bool fits = trace.tensors.size() == arrays.size();
    for (size_t i = 0; fits && i < arrays.size(); ++i)
      fits = accepts(trace.tensors[i], arrays[i].type);
    if (!fits)
      continue;
    if (!best.empty() && openSizes(trace) < openSizes(*best.front()))
      best.clear();
    if (best.empty() || openSizes(trace) == openSizes(*best.front()))
      best.push_back(&trace);
  }
  if (best.size() == 1)
    return *best.front();
  std::string given;
  for (const Array &array : arrays)
    given += (given.empty() ? "" : ", ") + toString(array.type);
  if (best.empty())
    fail({.kind = ErrorKind::lookup,
          .op = function.name,
          .message = "no saved trace takes (" + given + "); it has:" + function.list(),
          .remedy = "give one --in file for each tensor of one of these, with its dtype and shape"});
  fail({.kind = ErrorKind::lookup,
        .op = function.name,
        .message = std::to_string(best.size()) + " saved traces take (" + given + "); it has:" + function.list(),
        .remedy = "name one with --trace"});
}

/// All that was loaded, with the values that its variables have now.
void saveState(const SavedFunction &function, const std::string &path) {
  detail::SavedState &state = *function.saved.state();
  detail::Snapshot snapshot;
  snapshot.manifest = state.manifest;
  snapshot.manifest.library = WENGERT_VERSION_STRING;
  snapshot.functions = state.functions;
  snapshot.constants = state.constants;
  for (const std::shared_ptr<detail::VariableState> &variable : state.variables)
    snapshot.variables.push_back(detail::currentValue(variable, {}));
  if (detail::Manifest &manifest = snapshot.manifest; manifest.tapes) {
    snapshot.tapes = orFail(orFail(function.file.package.part(manifest.tapes->program.name)).text());
    // What a tape read of a variable that was assigned is no longer the variable's value.
    for (detail::ManifestTapes::Leaf &leaf : manifest.tapes->leaves)
      if (leaf.isVariable &&
          detail::stateOf(snapshot.variables[leaf.index]) != detail::stateOf(state.current[leaf.index])) {
        snapshot.constants.push_back(state.values[leaf.index]);
        manifest.constants.push_back(manifest.variables[leaf.index].type);
        leaf = {false, static_cast<uint32_t>(manifest.constants.size()) - 1};
      }
  }
  detail::writeSnapshot(path, snapshot, {});
}

} // namespace

int runSaved(const SavedCall &call) {
  SavedFunction function = loadFunction(call.path, call.function);
  std::vector<Array> inputs = readArrays(call.in), outputs;
  SavedTrace trace = call.trace ? function.trace(call.trace) : choose(function, inputs);
  refuseVariables(function, trace);
  checkInputs(function.name, trace.tensors, inputs, call.in);
  if (call.interpret)
    trace = interpreted(trace);
  std::vector<Tensor> tensors;
  for (Array &input : inputs)
    tensors.push_back(detail::makeTensor(std::move(input)));
  for (const Tensor &result : ConcreteFunction(trace.concrete).call_flat(tensors, {}))
    outputs.push_back(detail::arrayOf(result));
  giveResults(function.name, outputs, call.out);
  if (!call.save.empty())
    saveState(function, call.save);
  return 0;
}

} // namespace wg::tools
