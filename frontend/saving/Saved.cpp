// The handle of what was loaded, and its functions.
#include "frontend/saving/SavedState.h"

#include "frontend/ops/Operands.h"

#include <ostream>
#include <set>

namespace wg {

Saved::Saved(const Saved &) = default;
Saved::Saved(Saved &&) noexcept = default;
Saved &Saved::operator=(const Saved &) = default;
Saved &Saved::operator=(Saved &&) noexcept = default;
Saved::~Saved() = default;

detail::SavedState &Saved::self(const Where &where) const {
  if (!state_)
    detail::raiseOp("load", "what was loaded was moved from, and holds nothing", "use what it was moved to", {}, where,
                    ErrorKind::runtime);
  return *state_;
}

const detail::ManifestItem &detail::SavedState::item(const std::string &name, ManifestItem::Kind kind, const char *what,
                                                     const Where &where) const {
  static constexpr const char *kKinds[] = {"a value", "variables", "a function", "a tape", "a place in a data set"};
  if (auto found = itemOf.find(name); found != itemOf.end()) {
    const ManifestItem &item = manifest.items[found->second];
    if (item.kind == kind)
      return item;
    raiseOp("load", "'" + name + "' in " + path + " is " + kKinds[static_cast<size_t>(item.kind)] + ", not " + what,
            "ask for what was saved under the name", {}, where, ErrorKind::type);
  }
  std::string known;
  for (const ManifestItem &item : manifest.items)
    known += (known.empty() ? "" : ", ") + item.name;
  raiseOp("load", path + " holds nothing named '" + name + "'", "it holds: " + known, {}, where, ErrorKind::lookup);
}

std::vector<std::string> Saved::names() const {
  std::vector<std::string> names;
  for (const detail::ManifestItem &item : self({}).manifest.items)
    names.push_back(item.name);
  return names;
}

bool Saved::contains(const std::string &name) const { return self({}).itemOf.contains(name); }

const std::map<std::string, std::string> &Saved::metadata() const { return self({}).manifest.metadata; }

std::vector<ConcreteFunction> Saved::concrete_functions(const std::string &name, Where where) const {
  std::vector<ConcreteFunction> list;
  for (uint32_t number : self(where).item(name, detail::ManifestItem::Kind::function, "a function", where).functions)
    list.emplace_back(self(where).functions[number]);
  return list;
}

const detail::SavedValue &Saved::valueOf(const std::string &name, const Where &where) const {
  const detail::SavedState &state = self(where);
  const detail::ManifestItem &item = state.item(name, detail::ManifestItem::Kind::value, "a value", where);
  return state.items[static_cast<size_t>(&item - state.manifest.items.data())];
}

Variable Saved::variable(const std::string &name, Where where) const {
  const detail::SavedState &state = self(where);
  if (auto found = state.variableOf.find(name); found != state.variableOf.end())
    return Variable(state.variables[found->second]);
  detail::raiseOp("load", state.path + " holds no variable '" + name + "'", "named_variables() lists all", {}, where,
                  ErrorKind::lookup);
}

std::vector<nn::Module::Named> Saved::named_variables() const {
  const detail::SavedState &state = self({});
  std::vector<nn::Module::Named> list;
  for (size_t i = 0; i < state.variables.size(); ++i)
    list.emplace_back(state.manifest.variables[i].name, Variable(state.variables[i]));
  return list;
}

std::vector<nn::Module::Named> Saved::named_variables(const std::string &name, Where where) const {
  const detail::SavedState &state = self(where);
  std::vector<nn::Module::Named> list;
  for (const auto &[own, variable] : state.item(name, detail::ManifestItem::Kind::variables, "variables", where).named)
    list.emplace_back(own, Variable(state.variables[variable]));
  return list;
}

GradientTape Saved::tape(const std::string &name, Where where) const {
  detail::SavedState &state = self(where);
  uint32_t number = state.item(name, detail::ManifestItem::Kind::tape, "a tape", where).tape;
  std::shared_ptr<detail::Tape> tape;
  {
    std::lock_guard lock(state.mutex);
    tape = std::exchange(state.tapes[number], nullptr);
  }
  if (!tape)
    detail::raiseOp("load", "the tape '" + name + "' was handed over already", "keep what tape() returns", {}, where,
                    ErrorKind::runtime);
  tape->checkLevel("load", where);
  tape->recording = state.manifest.tapes->tapes[number].recording;
  return GradientTape(std::move(tape));
}

void Saved::restore(const std::string &name, const data::Dataset &dataset, Where where) const {
  const detail::ManifestItem &item =
      self(where).item(name, detail::ManifestItem::Kind::position, "a place in a data set", where);
  data::Dataset(dataset).seek({item.position[0], item.position[1]}, where);
}

RestoreReport Saved::restoreVariables(const std::string &name, const SaveItem &item, bool partial,
                                      const Where &where) const {
  detail::refuseTraces("restore", where);
  const detail::SavedState &state = self(where);
  const detail::ManifestItem &saved = state.item(name, detail::ManifestItem::Kind::variables, "variables", where);
  if (item.content.kind != detail::SaveContent::Kind::variables)
    detail::raiseOp("restore", "'" + name + "' is restored into something that has no variables",
                    "give a model, an optimiser, a variable, or whatever else lists its variables", {}, where,
                    ErrorKind::type);
  RestoreReport report;
  std::map<std::string, uint32_t> numbers(saved.named.begin(), saved.named.end());
  std::vector<std::pair<std::shared_ptr<detail::VariableState>, Tensor>> taken;
  for (const auto &[own, variable] : item.content.variables) {
    auto known = numbers.find(own);
    if (known == numbers.end()) {
      report.missing.push_back(own);
      continue;
    }
    const TensorType &type = state.manifest.variables[known->second].type;
    if (TensorType wanted{variable.dtype(where), variable.shape(where)}; !(type == wanted)) {
      report.mismatched.push_back({own, type, wanted});
    } else {
      report.matched.push_back(own);
      detail::currentValue(variable.state(), where); // a parameter of a traced function that has ended is an error
      taken.emplace_back(variable.state(), detail::makeTensor(detail::arrayOf(state.values[known->second])));
    }
    numbers.erase(known);
  }
  for (const auto &[own, number] : numbers)
    report.unused.push_back(own);
  if (!partial && !report.complete())
    detail::raiseOp("restore", "'" + name + "' does not fit what is in " + state.path + ": " + to_string(report),
                    "load into what was saved, or take what fits: restore(name, object, /*partial=*/true)", {}, where);
  detail::exchangeValues(taken);
  return report;
}

//===- Functions --------------------------------------------------------------------------------------------------===//

void detail::raiseNoBody() {
  raiseOp("load", "a function that was loaded has no C++ to trace", "", {}, {}, ErrorKind::internal);
}

FunctionOptions detail::savedOptions(const Saved &saved, const std::string &name, const Where &where) {
  const ManifestItem &item = saved.state()->item(name, ManifestItem::Kind::function, "a function", where);
  FunctionOptions options;
  options.capacity = item.capacity;
  options.interpret = item.interpret;
  options.recompute = item.recompute;
  options.argument_names = item.argumentNames;
  return options;
}

/// A concrete function of its own type of results, on the code of another: each has its derivatives.
static std::shared_ptr<detail::ConcreteState> withPrototype(const detail::ConcreteState &of,
                                                            std::shared_ptr<const void> prototype) {
  auto made = std::make_shared<detail::ConcreteState>();
  made->name = of.name;
  made->signature = of.signature;
  made->reason = of.reason;
  made->code = of.code;
  made->inputs = of.inputs;
  made->assigned = of.assigned;
  made->numResults = of.numResults;
  made->prototype = std::move(prototype);
  made->words = of.words;
  made->resultWords = of.resultWords;
  made->variables = of.variables;
  made->captured = of.captured;
  made->variablesOf = of.variablesOf;
  made->numOps = of.numOps;
  return made;
}

void detail::attachSaved(FunctionState &function, const Saved &saved, const std::string &name, MakePrototype prototype,
                         const Where &where) {
  SavedState &state = *saved.state();
  const ManifestItem &item = state.item(name, ManifestItem::Kind::function, "a function", where);
  function.isSaved = true;
  std::optional<Error> first;
  for (size_t i = 0; i < item.functions.size(); ++i) {
    const std::shared_ptr<ConcreteState> &concrete = state.functions[item.functions[i]];
    TreeReader reader("the result of '" + name + "'", concrete->resultWords, nullptr, nullptr, where);
    try {
      std::shared_ptr<const void> made = prototype(reader);
      std::shared_ptr<ConcreteState> typed = withPrototype(*concrete, std::move(made));
      typed->setCertificate(concrete->certificate());
      function.saved.push_back({static_cast<int64_t>(i) + 1, std::move(typed)});
    } catch (const Error &error) {
      if (!first)
        first = error;
    }
  }
  if (function.saved.empty() && first)
    throw *first;
}

std::string Saved::summary() const {
  const detail::SavedState &state = self({});
  const detail::Manifest &manifest = state.manifest;
  std::string text = state.path + ": saved by Wengert " + manifest.library + "\n";
  for (const auto &[key, value] : manifest.metadata)
    text += "  " + key + ": " + value + "\n";
  for (size_t i = 0; i < manifest.items.size(); ++i) {
    const detail::ManifestItem &item = manifest.items[i];
    text += "\n" + item.name + ": ";
    switch (item.kind) {
    case detail::ManifestItem::Kind::value: {
      const detail::SavedValue &value = state.items[i];
      std::string tensors;
      for (const Tensor &tensor : value.tensors)
        tensors += (tensors.empty() ? "" : ", ") + toString(TensorType{tensor.dtype(), tensor.shape()});
      text += "a value" + (tensors.empty() ? "" : " of " + tensors) + "\n";
      break;
    }
    case detail::ManifestItem::Kind::variables:
      text += std::to_string(item.named.size()) + (item.named.size() == 1 ? " variable\n" : " variables\n");
      break;
    case detail::ManifestItem::Kind::function:
      text += "a function, " + std::to_string(item.functions.size()) +
              (item.functions.size() == 1 ? " trace\n" : " traces\n");
      for (uint32_t number : item.functions)
        text += "  " + state.functions[number]->signature + ", " + std::to_string(manifest.functions[number].numOps) +
                " ops, " + manifest.functions[number].program.name + "\n";
      break;
    case detail::ManifestItem::Kind::tape:
      text += std::string("a tape") + (manifest.tapes->tapes[item.tape].recording ? ", recording\n" : "\n");
      break;
    case detail::ManifestItem::Kind::position:
      text += "epoch " + std::to_string(item.position[0]) + ", batch " + std::to_string(item.position[1]) +
              " of a data set\n";
      break;
    }
  }
  if (!manifest.variables.empty()) {
    int64_t bytes = 0;
    text += "\nvariables:\n";
    for (const detail::ManifestVariable &variable : manifest.variables) {
      text += "  " + variable.name + ": " + toString(variable.type) +
              (variable.generator   ? ", a generator"
               : variable.trainable ? ""
                                    : ", not trainable") +
              "\n";
      bytes += variable.type.shape.numElements() * static_cast<int64_t>(runtime::sizeOf(variable.type.dtype));
    }
    text += "  " + std::to_string(bytes) + " bytes\n";
  }
  for (const auto &[what, list] :
       {std::pair("host functions", &manifest.hostFunctions), std::pair("C functions", &manifest.cFunctions)})
    if (!list->empty()) {
      text += std::string("\ncalls ") + what + ":";
      for (const std::string &name : *list)
        text += " " + name;
      text += "\n";
    }
  text += "\nfiles (BLAKE3):\n";
  std::vector<const detail::ManifestPart *> parts;
  for (const detail::ManifestPart &part : manifest.variableParts)
    parts.push_back(&part);
  for (const detail::ManifestPart &part : manifest.constantParts)
    parts.push_back(&part);
  std::set<std::string> programs; // functions may share one
  for (const detail::ManifestFunction &function : manifest.functions)
    if (programs.insert(function.program.name).second)
      parts.push_back(&function.program);
  if (manifest.tapes)
    parts.push_back(&manifest.tapes->program);
  for (const detail::ManifestPart *part : parts)
    text += "  " + part->digest + "  " + std::to_string(part->bytes) + " bytes, " +
            part->name.substr(0, part->name.find('-')) + part->name.substr(part->name.rfind('.')) + "\n";
  return text;
}

std::ostream &operator<<(std::ostream &out, const Saved &saved) { return out << saved.summary(); }

} // namespace wg
