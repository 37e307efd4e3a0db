// What a package says, made again. It may come from anybody: every file is compared with its digest before anything of
// it is read, a program is one of wg ops, and whatever the manifest says of it is compared with what it is.
#include "codegen/Names.h"
#include "frontend/ops/Operands.h"
#include "frontend/saving/Program.h"
#include "frontend/saving/SavedState.h"
#include "frontend/staging/Host.h"
#include "runtime/io/Package.h"
#include "runtime/io/Safetensors.h"

#include <algorithm>

using namespace mlir;

namespace wg {

namespace detail {

using runtime::Array;

namespace {

class Loader {
public:
  Loader(const std::string &path, const LoadOptions &options, const Where &where)
      : where_(where), options_(options), state_(std::make_shared<SavedState>()) {
    state_->path = path;
  }
  std::shared_ptr<SavedState> load(const SaveItems &into);
  void verify();

private:
  void readPackage();
  [[noreturn]] void refuse(const std::string &part, const std::string &message, std::string remedy = "") const {
    raise(runtime::fileError(state_->path, part + ": " + message, std::move(remedy)), where_);
  }
  runtime::InputFile open(const ManifestPart &part) const;
  std::string textOf(const ManifestPart &part) const;
  std::map<std::string, Array> arrays(const std::vector<ManifestPart> &parts) const;
  Tensor take(std::map<std::string, Array> &from, const std::string &name, const TensorType &type,
              const char *what) const;
  void makeVariables(const SaveItems &into);
  void bind(const SaveItem &item);
  std::shared_ptr<ConcreteState> function(const ManifestFunction &saved);
  void checkFunction(const ManifestFunction &saved, func::FuncOp entry, const std::string &part) const;
  void makeValues(const std::vector<Tensor> &onTapes);

  Where where_;
  LoadOptions options_;
  std::shared_ptr<SavedState> state_;
  const Manifest &manifest_ = state_->manifest;
  std::optional<runtime::Package> package_;
  std::vector<std::pair<std::shared_ptr<VariableState>, Tensor>> taken_; ///< what objects of the program take over
  std::vector<std::pair<data::Dataset, data::Position>> places_;
  std::map<ManifestCode, std::shared_ptr<Code>> codes_;
};

} // namespace

/// A file, whose size and digest are those that the manifest says.
runtime::InputFile Loader::open(const ManifestPart &part) const {
  runtime::Result<runtime::InputFile> file = package_->part(part.name);
  if (!file.ok())
    raise(file.take(), where_);
  if (file->size() != part.bytes)
    refuse(part.name,
           "damaged: it has " + std::to_string(file->size()) + " bytes, and was saved with " +
               std::to_string(part.bytes),
           "load another copy");
  if (runtime::Status status = package_->verify(part.name); !status.ok())
    raise(status.take(), where_);
  return std::move(*file);
}

std::string Loader::textOf(const ManifestPart &part) const {
  if (part.bytes > runtime::kLongestText)
    refuse(part.name, "has " + std::to_string(part.bytes) + " bytes of text; " + std::to_string(runtime::kLongestText) +
                          " are the most");
  runtime::Result<std::string> text = open(part).text();
  if (!text.ok())
    raise(text.take(), where_);
  return std::move(*text);
}

std::map<std::string, Array> Loader::arrays(const std::vector<ManifestPart> &parts) const {
  std::map<std::string, Array> all;
  for (const ManifestPart &part : parts) {
    runtime::Result<runtime::NamedArrays> some = orOutOfMemory("load", "the arrays of " + state_->path, where_,
                                                               [&] { return runtime::readSafetensors(open(part)); });
    if (!some.ok())
      raise(some.take(), where_);
    if (!some->unread.empty())
      refuse(part.name, "'" + some->unread.begin()->first + "' has dtype " + some->unread.begin()->second +
                            ", which no array that is saved has");
    for (auto &[name, array] : some->arrays)
      if (!all.emplace(std::move(name), std::move(array)).second)
        refuse(part.name, "holds an array that another file holds as well");
  }
  return all;
}

Tensor Loader::take(std::map<std::string, Array> &from, const std::string &name, const TensorType &type,
                    const char *what) const {
  auto found = from.find(name);
  if (found == from.end())
    refuse("manifest.json", "no file holds " + std::string(what) + " '" + name + "'");
  if (!(found->second.type == type))
    refuse("manifest.json", std::string(what) + " '" + name + "' is " + toString(type) + ", and in its file " +
                                toString(found->second.type));
  Tensor tensor = makeTensor(std::move(found->second));
  from.erase(found);
  return tensor;
}

//===- Variables --------------------------------------------------------------------------------------------------===//

/// The variables of an object take the place of those that were saved under its name.
void Loader::bind(const SaveItem &item) {
  const SaveContent &content = item.content;
  if (content.kind == SaveContent::Kind::dataset) {
    const ManifestItem &saved =
        state_->item(item.name, ManifestItem::Kind::position, "place in a data set", item.where);
    data::Position position{saved.position[0], saved.position[1]};
    if (!content.dataset->has(position))
      raiseOp("load",
              "'" + item.name + "' in " + state_->path + " is after batch " + std::to_string(position.batch) +
                  " of an epoch, which has " + std::to_string(content.dataset->batches()) + " in the program",
              "load into a data set of the same examples and batches", {}, item.where);
    places_.emplace_back(*content.dataset, position);
    return;
  }
  if (content.kind != SaveContent::Kind::variables)
    return;
  const ManifestItem &saved = state_->item(item.name, ManifestItem::Kind::variables, "variables", item.where);
  auto refuseObject = [&](const std::string &message, std::string remedy) {
    raiseOp("load", "'" + item.name + "' in " + state_->path + " " + message, std::move(remedy), {}, item.where);
  };
  std::map<std::string, uint32_t> numbers(saved.named.begin(), saved.named.end());
  for (const auto &[name, variable] : content.variables) {
    auto known = numbers.find(name);
    std::string full = name.empty() ? item.name : item.name + "." + name;
    if (known == numbers.end())
      refuseObject("has no variable '" + full + "'",
                   "load into what was saved, or take what fits: load(path).restore(name, object, /*partial=*/true)");
    const ManifestVariable &own = manifest_.variables[known->second];
    TensorType type{variable.dtype(item.where), variable.shape(item.where)};
    if (!(type == own.type))
      refuseObject("has '" + full + "' as " + toString(own.type) + ", and it is " + toString(type) + " in the program",
                   "load into what was saved");
    currentValue(variable.state(), item.where); // a parameter of a traced function that has ended is an error
    const std::shared_ptr<VariableState> &target = variableBehind(variable.state());
    std::shared_ptr<VariableState> &place = state_->variables[known->second];
    if (place && place != target)
      refuseObject("has one variable for '" + full + "' and another that the program has twice",
                   "share the variable as it was shared when it was saved");
    if (!place) {
      place = target;
      state_->current[known->second] = makeTensor(arrayOf(state_->values[known->second]));
      taken_.emplace_back(target, state_->current[known->second]);
    }
    numbers.erase(known);
  }
  if (!numbers.empty())
    refuseObject(
        "has a variable '" + item.name + "." + numbers.begin()->first + "' that the object lacks",
        "load into what was saved (an optimiser makes its slots at the first step: adam.build(model)), or take "
        "what fits: load(path).restore(name, object, /*partial=*/true)");
}

void Loader::makeVariables(const SaveItems &into) {
  std::map<std::string, Array> values = arrays(manifest_.variableParts);
  for (const ManifestVariable &variable : manifest_.variables)
    state_->values.push_back(take(values, variable.name, variable.type, "variable"));
  if (!values.empty())
    refuse("manifest.json", "does not know variable '" + values.begin()->first + "', which a file holds");
  state_->variables.resize(manifest_.variables.size());
  state_->current.resize(manifest_.variables.size());
  for (const SaveItem &item : into)
    bind(item);
  for (size_t i = 0; i < manifest_.variables.size(); ++i) {
    const ManifestVariable &saved = manifest_.variables[i];
    if (state_->variables[i])
      continue;
    Variable made(state_->values[i], VariableOptions{.name = saved.own, .trainable = saved.trainable}, where_);
    made.state()->isGenerator = saved.generator;
    state_->variables[i] = made.state();
    state_->current[i] = made.state()->current;
  }
  std::map<std::string, Array> constants = arrays(manifest_.constantParts);
  for (size_t i = 0; i < manifest_.constants.size(); ++i)
    state_->constants.push_back(take(constants, std::to_string(i), manifest_.constants[i], "constant"));
  if (!constants.empty())
    refuse("manifest.json", "does not know constant '" + constants.begin()->first + "', which a file holds");
}

//===- Functions --------------------------------------------------------------------------------------------------===//

/// The program is what the manifest says: as many inputs and results, of these types, and those replaced that are
/// assigned.
void Loader::checkFunction(const ManifestFunction &saved, func::FuncOp entry, const std::string &part) const {
  auto require = [&](bool holds, const std::string &message) {
    if (!holds)
      refuse(part, "@" + saved.entry + " " + message);
  };
  size_t numInputs = saved.inputs.size(), numResults = saved.numResults + saved.assigned.size();
  require(entry.getNumArguments() == numInputs && entry.getNumResults() == numResults,
          "has " + std::to_string(entry.getNumArguments()) + " arguments and " + std::to_string(entry.getNumResults()) +
              " results, and " + std::to_string(numInputs) + " and " + std::to_string(numResults) + " in the manifest");
  std::vector<const TreeWord *> leaves;
  for (const TreeWord &word : saved.arguments)
    if (word.kind == TreeWord::tensor || word.kind == TreeWord::variable)
      leaves.push_back(&word);
  std::vector<TensorType> types, results;
  for (Type type : entry.getArgumentTypes())
    types.push_back(ir::runtimeTypeOf(type));
  for (Type type : entry.getResultTypes())
    results.push_back(ir::runtimeTypeOf(type));
  for (size_t i = 0; i < numInputs; ++i) {
    const ManifestInput &input = saved.inputs[i];
    std::string name = "takes " + toString(types[i]) + " as argument " + std::to_string(i);
    auto isOf = [&](const TensorType &type, const std::string &what) {
      require(types[i] == type, name + ", and " + what + " is " + toString(type));
    };
    switch (input.kind) {
    case ManifestInput::argument:
    case ManifestInput::formal: {
      bool formal = input.kind == ManifestInput::formal;
      require(saved.isUsers || !formal, name + ", a variable, and has no signature");
      if (saved.isUsers) {
        const TreeWord &word = *leaves[input.index];
        require((word.kind == TreeWord::variable) == formal, name + ", another kind than in the signature");
        isOf(word.type, "the signature's");
      }
      break;
    }
    case ManifestInput::variable: isOf(manifest_.variables[input.index].type, "the variable"); break;
    case ManifestInput::constant: isOf(manifest_.constants[input.index], "the constant"); break;
    case ManifestInput::order: isOf({DType::i64, Shape()}, "an order"); break;
    }
    auto donated = entry.getArgAttrOfType<IntegerAttr>(static_cast<unsigned>(i), "wg.result");
    auto at = std::find(saved.assigned.begin(), saved.assigned.end(), i);
    bool isAssigned = at != saved.assigned.end();
    int64_t result = saved.numResults + (at - saved.assigned.begin());
    require(isAssigned == (donated != nullptr) && (!donated || donated.getInt() == result),
            name + ", which is not assigned as the manifest says");
    if (isAssigned)
      require(results[static_cast<size_t>(result)] == types[i], name + ", and assigns another type to it");
  }
  size_t next = 0;
  if (saved.isUsers) {
    for (const TreeWord &word : saved.results)
      if (word.kind == TreeWord::tensor || word.kind == TreeWord::gradient) {
        ++next;
      } else if (word.kind == TreeWord::rows) {
        const TensorType &indices = results[next], &rows = results[next + 1];
        Shape expected = word.type.shape;
        bool fits = expected.rank() > 0 && (indices.dtype == DType::i64 || indices.dtype == DType::i32) &&
                    indices.shape.rank() == 1 && rows.shape.rank() == expected.rank() && expected.isStatic() &&
                    runtime::isFloat(rows.dtype);
        for (int axis = 1; fits && axis < expected.rank(); ++axis)
          fits = rows.shape.dim(axis) == expected.dim(axis);
        require(fits, "returns " + toString(indices) + " and " + toString(rows) + " as the rows of a gradient of " +
                          toString(static_cast<const Ints &>(expected)));
        next += 2;
      }
  }
}

std::shared_ptr<ConcreteState> Loader::function(const ManifestFunction &saved) {
  const std::string &part = saved.program.name;
  if (runtime::Status status = codegen::checkName(saved.entry); !status.ok())
    refuse("manifest.json", "entry: " + status.take().message);
  std::shared_ptr<Code> &code = codes_[codeOf(saved)];
  if (!code) {
    OwningOpRef<ModuleOp> module =
        loadProgram(textOf(saved.program), state_->path + ": " + part, /*declares=*/false, where_);
    if (!module->lookupSymbol<func::FuncOp>(saved.entry))
      refuse(part, "has no function @" + saved.entry);
    makeEntry(*module, saved.entry);
    code = std::make_shared<Code>(std::move(module), saved.entry, saved.interpret, Identities());
    code->setNames(saved.inputNames);
  }
  checkFunction(saved, code->function(), part);

  auto made = std::make_shared<ConcreteState>();
  made->name = saved.name;
  made->reason = saved.reason;
  made->numOps = saved.numOps;
  made->assigned = saved.assigned;
  made->numResults = saved.numResults;
  made->code = code;
  for (size_t i = 0; i < saved.inputs.size(); ++i) {
    const ManifestInput &input = saved.inputs[i];
    switch (input.kind) {
    case ManifestInput::argument:
      made->inputs.push_back({.kind = TraceInput::argument, .captured = {}, .state = nullptr, .leaf = input.index});
      break;
    case ManifestInput::formal: {
      auto formal = std::make_shared<VariableState>();
      formal->type = made->code->inputs()[i];
      formal->birth = nextSerial(); // out of scope everywhere
      made->inputs.push_back(
          {.kind = TraceInput::variable, .captured = {}, .state = formal, .leaf = input.index, .formal = true});
      break;
    }
    case ManifestInput::variable: {
      const std::shared_ptr<VariableState> &variable = state_->variables[input.index];
      made->inputs.push_back({.kind = TraceInput::variable, .captured = {}, .state = variable});
      made->variables.push_back(variable);
      break;
    }
    case ManifestInput::constant:
      made->inputs.push_back(
          {.kind = TraceInput::capture, .captured = state_->constants[input.index], .state = nullptr});
      break;
    case ManifestInput::order:
      made->inputs.push_back({.kind = TraceInput::variable, .captured = {}, .state = orderState()});
      break;
    }
  }
  std::sort(made->variables.begin(), made->variables.end(), [](const auto &a, const auto &b) { return a->id < b->id; });
  auto idOf = [&](int64_t variable) {
    return variable < 0 ? -1 : state_->variables[static_cast<size_t>(variable)]->id;
  };
  for (uint32_t variable : saved.captured)
    made->captured.push_back(idOf(variable));
  made->variablesOf = {saved.aliasOf, saved.placeOf, {}, saved.capturedPlaces};
  for (int64_t variable : saved.capturedLeaves)
    made->variablesOf.capturedIds.push_back(idOf(variable));
  std::vector<DroppedGradient> dropped;
  for (const ManifestFunction::Dropped &each : saved.certificate)
    dropped.push_back({each.op, static_cast<int>(each.operand), each.where, each.reason});
  made->setCertificate(std::move(dropped));
  made->words = saved.arguments;
  made->resultWords = saved.results;
  return made;
}

//===- All of it --------------------------------------------------------------------------------------------------===//

void Loader::makeValues(const std::vector<Tensor> &onTapes) {
  state_->items.resize(manifest_.items.size());
  for (size_t i = 0; i < manifest_.items.size(); ++i) {
    const ManifestItem &item = manifest_.items[i];
    SavedValue &value = state_->items[i];
    value.words = item.words;
    for (const ManifestTensor &tensor : item.tensors) {
      if (tensor.onTape && tensor.index >= onTapes.size())
        refuse("manifest.json", "'" + item.name + "' is value " + std::to_string(tensor.index) +
                                    " of the tapes, which have " + std::to_string(onTapes.size()));
      value.tensors.push_back(tensor.onTape ? onTapes[tensor.index] : state_->constants[tensor.index]);
    }
    for (uint32_t variable : item.ofValue)
      value.variables.emplace_back(state_->variables[variable]);
  }
}

void Loader::readPackage() {
  runtime::Result<runtime::Package> package = runtime::Package::open(state_->path, kLongestManifest);
  if (!package.ok())
    raise(package.take(), where_);
  package_.emplace(std::move(*package));
  state_->manifest = readManifest(package_->manifest(), state_->path, where_);
}

void Loader::verify() {
  readPackage();
  for (const std::vector<ManifestPart> *parts : {&manifest_.variableParts, &manifest_.constantParts})
    for (const ManifestPart &part : *parts)
      open(part);
  for (const ManifestFunction &saved : manifest_.functions)
    open(saved.program);
  if (manifest_.tapes)
    open(manifest_.tapes->program);
}

std::shared_ptr<SavedState> Loader::load(const SaveItems &into) {
  readPackage();
  for (size_t i = 0; i < manifest_.items.size(); ++i)
    state_->itemOf[manifest_.items[i].name] = i;
  for (size_t i = 0; i < manifest_.variables.size(); ++i)
    state_->variableOf[manifest_.variables[i].name] = i;
  makeVariables(into);
  for (const ManifestFunction &saved : manifest_.functions)
    state_->functions.push_back(function(saved));
  for (const ManifestItem &item : manifest_.items)
    for (uint32_t number : item.functions) {
      ConcreteState &concrete = *state_->functions[number];
      FunctionOptions options;
      options.argument_names = item.argumentNames;
      if (concrete.signature.empty())
        concrete.signature = signatureText(concrete.name, leavesOf(concrete.words, options),
                                           std::span(concrete.code->results()).first(concrete.numResults));
    }
  std::vector<Tensor> onTapes;
  if (manifest_.tapes) {
    const ManifestPart &part = manifest_.tapes->program;
    std::string name = state_->path + ": " + part.name;
    OwningOpRef<ModuleOp> program = loadProgram(textOf(part), name, /*declares=*/true, where_);
    onTapes = loadTapes(*state_, *program, name, options_, where_);
  }
  makeValues(onTapes);
  // Nothing may fail from here on.
  for (auto &[dataset, position] : places_)
    dataset.seek(position, where_);
  exchangeValues(taken_);
  return state_;
}

void verifySaved(const std::string &path, const Where &where) { Loader(path, {}, where).verify(); }

} // namespace detail

Saved load(const std::string &path, const SaveItems &into, const LoadOptions &options, Where where) {
  detail::refuseTraces("load", where);
  if (ir::threadEnds()) [[unlikely]]
    return detail::whereMlirIsAlive("load", where, [&] { return load(path, into, options, where); });
  ir::Working working;
  return Saved(detail::Loader(path, options, where).load(into));
}

} // namespace wg
