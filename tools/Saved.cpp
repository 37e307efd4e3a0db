// What is in a saved computation, and which function of it is meant?
#include "tools/Saved.h"
#include "tools/Program.h"

#include "ir/Bridge.h"
#include "ir/Diagnostics.h"
#include "passes/Passes.h"

#include <algorithm>

namespace wg::tools {

using detail::ManifestFunction;
using detail::ManifestItem;
using detail::ManifestPart;
using detail::TreeWord;
using runtime::TensorType;

SavedFile openSaved(const std::string &path) {
  runtime::Package package = orFail(runtime::Package::open(path, detail::kLongestManifest));
  detail::Manifest manifest = detail::readManifest(package.manifest(), path, {});
  return {std::move(package), std::move(manifest)};
}

std::vector<const ManifestPart *> partsOf(const detail::Manifest &manifest) {
  std::vector<const ManifestPart *> parts;
  auto add = [&](const ManifestPart &part) {
    if (std::none_of(parts.begin(), parts.end(), [&](const ManifestPart *known) { return known->name == part.name; }))
      parts.push_back(&part);
  };
  for (const ManifestFunction &function : manifest.functions)
    add(function.program);
  if (manifest.tapes)
    add(manifest.tapes->program);
  for (const ManifestPart &part : manifest.variableParts)
    add(part);
  for (const ManifestPart &part : manifest.constantParts)
    add(part);
  return parts;
}

std::string signatureOf(const ManifestItem &item, const ManifestFunction &function) {
  FunctionOptions options;
  options.argument_names = item.argumentNames;
  std::string text = detail::signatureText(function.name, detail::leavesOf(function.arguments, options), {}), results;
  for (const TreeWord &word : function.results) {
    bool isResult = word.kind == TreeWord::tensor || word.kind == TreeWord::gradient || word.kind == TreeWord::rows;
    if (isResult)
      results += (results.empty() ? "" : ", ") + (word.kind == TreeWord::tensor     ? toString(word.type)
                                                  : word.kind == TreeWord::gradient ? "a gradient"
                                                                                    : "a gradient's rows");
  }
  return text.substr(0, text.size() - 1) + results + ")";
}

std::string SavedFunction::list() const {
  std::string text;
  for (const SavedTrace &trace : traces)
    text += "\n  " + std::to_string(trace.number) + ": " + trace.concrete->signature;
  return text;
}

const SavedTrace &SavedFunction::trace(int64_t number) const {
  if (number > static_cast<int64_t>(traces.size()))
    fail({.kind = ErrorKind::lookup,
          .op = name,
          .message = "has no trace " + std::to_string(number) + "; it has:" + list(),
          .remedy = "--trace with one of these numbers"});
  return traces[static_cast<size_t>(number) - 1];
}

static const ManifestItem &functionItem(const SavedFile &file, const std::string &path, const std::string &name) {
  std::vector<const ManifestItem *> functions;
  std::string known;
  for (const ManifestItem &item : file.manifest.items)
    if (item.kind == ManifestItem::Kind::function) {
      if (item.name == name)
        return item;
      functions.push_back(&item);
      known += (known.empty() ? "" : ", ") + item.name;
    }
  if (name.empty() && functions.size() == 1)
    return *functions.front();
  if (name.empty())
    fail({.kind = ErrorKind::lookup,
          .message =
              path + " holds " + std::to_string(functions.size()) + " functions" + (known.empty() ? "" : ": " + known),
          .remedy = known.empty() ? "" : "name one with --function"});
  fail({.kind = ErrorKind::lookup,
        .message = path + " holds no function '" + name + "'",
        .remedy = known.empty() ? "" : "--function with one of " + known});
}

/// A program of its own has neither host functions nor C functions.
static void refuseRequirements(const detail::Manifest &manifest, const std::string &path) {
  for (const auto &[what, names] :
       {std::pair("host function", &manifest.hostFunctions), std::pair("C function", &manifest.cFunctions)}) {
    std::string list;
    for (const std::string &name : *names)
      list += (list.empty() ? "'" : ", '") + name + "'";
    if (!names->empty())
      fail({.kind = ErrorKind::lookup,
            .message = path + " calls the " + what + (names->size() == 1 ? " " : "s ") + list +
                       " of the program that saved it, which wengert does not have",
            .remedy = "load it in a program that makes them; `wengert inspect` shows what it holds"});
  }
}

SavedFunction loadFunction(const std::string &path, const std::string &name) {
  SavedFile file = openSaved(path);
  const ManifestItem &item = functionItem(file, path, name);
  refuseRequirements(file.manifest, path);
  Saved saved = load(path, {}, {});
  std::vector<uint32_t> numbers = item.functions;
  SavedFunction function{item.name, saved, std::move(file), {}};
  for (const ConcreteFunction &concrete : saved.concrete_functions(function.name, {})) {
    SavedTrace trace{.concrete = concrete.state(), .number = static_cast<int64_t>(function.traces.size()) + 1};
    trace.function = numbers[function.traces.size()];
    for (const TreeWord &word : trace.concrete->words) {
      if (word.kind == TreeWord::tensor)
        trace.tensors.push_back(word.type);
      trace.takesVariables |= word.kind == TreeWord::variable;
    }
    function.traces.push_back(std::move(trace));
  }
  return function;
}

/// The same trace with other code.
static SavedTrace withCode(const SavedTrace &trace, mlir::OwningOpRef<mlir::ModuleOp> module, bool interpret) {
  const detail::ConcreteState &of = *trace.concrete;
  SavedTrace made = trace;
  made.concrete = std::make_shared<detail::ConcreteState>();
  detail::ConcreteState &concrete = *made.concrete;
  concrete.name = of.name;
  concrete.signature = of.signature;
  concrete.reason = of.reason;
  concrete.code = std::make_shared<detail::Code>(std::move(module), of.code->entry(), interpret, detail::Identities());
  concrete.code->setNames(of.code->names());
  concrete.inputs = of.inputs;
  concrete.assigned = of.assigned;
  concrete.numResults = of.numResults;
  concrete.words = of.words;
  concrete.resultWords = of.resultWords;
  concrete.variables = of.variables;
  concrete.captured = of.captured;
  concrete.variablesOf = of.variablesOf;
  concrete.numOps = of.numOps;
  concrete.setCertificate(trace.concrete->certificate());
  return made;
}

static mlir::OwningOpRef<mlir::ModuleOp> copyOf(const SavedTrace &trace) {
  return mlir::cast<mlir::ModuleOp>(trace.concrete->code->module()->clone());
}

SavedTrace withTypes(const SavedTrace &trace, const std::string &types) {
  ir::Working working;
  const detail::ConcreteState &concrete = *trace.concrete;
  llvm::SmallVector<mlir::Type> given = orFail(passes::parseTypes(ir::context(), types)), all;
  if (given.size() != trace.tensors.size())
    fail({.op = concrete.name,
          .message = "takes " + std::to_string(trace.tensors.size()) + " tensors, --types names " +
                     std::to_string(given.size()),
          .remedy = "give the type of each tensor of " + concrete.signature});
  // By leaf: variables among the arguments have their types.
  std::vector<mlir::Type> leaves;
  size_t next = 0;
  for (const TreeWord &word : concrete.words)
    if (word.kind == TreeWord::tensor || word.kind == TreeWord::variable)
      leaves.push_back(word.kind == TreeWord::tensor ? given[next++] : ir::tensorTypeOf(ir::context(), word.type));
  mlir::OwningOpRef<mlir::ModuleOp> module = copyOf(trace);
  auto entry = module->lookupSymbol<mlir::func::FuncOp>(concrete.code->entry());
  for (auto [input, type] : llvm::zip_equal(concrete.inputs, entry.getArgumentTypes()))
    all.push_back(input.kind == detail::TraceInput::argument ? leaves[input.leaf] : type);
  ir::Diagnostics diagnostics(ir::context());
  if (mlir::failed(passes::inferShapes(entry, all, concrete.code->names())))
    fail(diagnostics.take("the sizes do not fit the function"));
  return withCode(trace, std::move(module), concrete.code->interpreted());
}

void requireSizes(const SavedTrace &trace) {
  if (!trace.concrete->code->isStatic())
    fail({.op = trace.concrete->name,
          .message = "has open sizes, and machine code is made for sizes: " + trace.concrete->signature,
          .remedy = "give the types of its tensor arguments: --types 'f32[8,3];f32[3]'"});
}

SavedTrace interpreted(const SavedTrace &trace) {
  ir::Working working;
  return withCode(trace, copyOf(trace), /*interpret=*/true);
}

} // namespace wg::tools
