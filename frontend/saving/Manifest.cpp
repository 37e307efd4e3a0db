// The manifest as JSON. Everything is checked here that can be without the files: who refers to what is a number below
// how many there are.
#include "frontend/saving/Manifest.h"

#include "frontend/staging/Apply.h"
#include "runtime/Extent.h"
#include "runtime/io/Digest.h"
#include "runtime/io/File.h"
#include "runtime/io/Utf8.h"

#include <wengert/Version.h>

#include <nlohmann/json.hpp>

#include <charconv>
#include <set>

namespace wg::detail {

using Json = nlohmann::json;

static constexpr std::string_view kStart = "{\"blake3\":\"", kAfter = "\",\n";
static constexpr size_t kDigits = 64;
static constexpr int kDeepest = 32;             ///< brackets within one another; ours are ten deep
static constexpr size_t kDeepestStructure = 64; ///< keys and fields within one another in a signature

//===- Writing ----------------------------------------------------------------------------------------------------===//

static std::string hexOf(const uint64_t *bits, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    auto byte = static_cast<unsigned>(bits[i / 8] >> 8 * (i % 8) & 0xff);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// Text as it is, or, where it is no UTF-8, as an object with its bytes.
static Json jsonOf(const std::string &text) {
  if (runtime::isUtf8(text))
    return text;
  std::string hex;
  for (char c : text) {
    uint64_t byte = static_cast<uint8_t>(c);
    hex += hexOf(&byte, 1);
  }
  return Json{{"hex", hex}};
}
static Json jsonOf(const Shape &shape) {
  Json sizes = Json::array();
  for (int64_t size : shape)
    sizes.push_back(size == dynamic ? Json() : Json(size));
  return sizes;
}
static Json jsonOf(const TensorType &type) {
  return Json::array({std::string(runtime::nameOf(type.dtype)), jsonOf(type.shape)});
}
static Json jsonOf(const ManifestPart &part) {
  return {{"name", part.name}, {"blake3", part.digest}, {"bytes", part.bytes}};
}
template <class T> static Json jsonOfAll(const std::vector<T> &list) {
  Json all = Json::array();
  for (const T &each : list)
    all.push_back(jsonOf(each));
  return all;
}

static constexpr const char *kWords[] = {"argument", "tensor",  "variable", "gradient", "rows",   "none",
                                         "real",     "integer", "boolean",  "enum",     "string", "shape",
                                         "count",    "key",     "field",    "end"};

static Json jsonOf(const TreeWord &word) {
  Json json = Json::array({kWords[word.kind]});
  switch (word.kind) {
  case TreeWord::argument:
  case TreeWord::count: json.push_back(word.number); break;
  case TreeWord::tensor: json.push_back(jsonOf(word.type)); break;
  case TreeWord::variable:
    json.push_back(jsonOf(word.type));
    json.push_back(word.number);
    json.push_back(word.place);
    break;
  case TreeWord::rows:
  case TreeWord::sizes: json.push_back(jsonOf(word.type.shape)); break;
  case TreeWord::none:
  case TreeWord::string:
  case TreeWord::key:
  case TreeWord::field: json.push_back(jsonOf(word.text)); break;
  case TreeWord::real:
  case TreeWord::integer:
  case TreeWord::boolean:
  case TreeWord::enumeration:
    json.push_back(jsonOf(word.text));
    json.push_back(word.isUnsigned);
    json.push_back(hexOf(word.bits, word.number));
    break;
  case TreeWord::gradient:
  case TreeWord::end: break;
  }
  return json;
}

static constexpr const char *kInputs[] = {"argument", "formal", "variable", "constant", "order"};
static Json jsonOf(const ManifestInput &input) { return Json::array({kInputs[input.kind], input.index}); }

static Json jsonOf(const ManifestFunction &function) {
  Json json = {{"name", jsonOf(function.name)},
               {"entry", function.entry},
               {"program", jsonOf(function.program)},
               {"interpret", function.interpret},
               {"inputs", jsonOfAll(function.inputs)},
               {"assigned", function.assigned},
               {"results", function.numResults},
               {"input_names", jsonOfAll(function.inputNames)},
               {"alias", function.aliasOf},
               {"place", function.placeOf},
               {"captured_leaves", function.capturedLeaves},
               {"captured_places", function.capturedPlaces},
               {"captured", function.captured},
               {"reason", jsonOf(function.reason)},
               {"ops", function.numOps}};
  Json dropped = Json::array();
  for (const ManifestFunction::Dropped &each : function.certificate)
    dropped.push_back(Json::array({each.op, each.operand, jsonOf(each.where), jsonOf(each.reason)}));
  json["not_computed"] = std::move(dropped);
  if (function.isUsers)
    json["signature"] = {{"takes", jsonOfAll(function.arguments)}, {"returns", jsonOfAll(function.results)}};
  return json;
}

static Json jsonOf(const ManifestTensor &tensor) {
  return Json::array({tensor.onTape ? "tape" : "constant", tensor.index});
}

static Json jsonOf(const ManifestTapes &tapes) {
  Json leaves = Json::array(), calls = Json::array(), each = Json::array();
  for (const ManifestTapes::Leaf &leaf : tapes.leaves)
    leaves.push_back(Json::array({leaf.isVariable ? "variable" : "constant", leaf.index}));
  for (const ManifestTapes::Call &call : tapes.calls) {
    Json json = {{"function", call.function}, {"asked", call.asked}, {"results", call.numResults}};
    if (call.isRule)
      json["rule"] = {{"name", call.rule}, {"jvp", call.jvp}, {"transposes", call.transposes}};
    else
      json["forward"] = call.forward;
    calls.push_back(std::move(json));
  }
  for (const ManifestTapes::Tape &tape : tapes.tapes) {
    Json variables = Json::array();
    for (const ManifestTapes::Tape::Watched &watched : tape.variables)
      variables.push_back({{"variable", watched.variable}, {"reads", watched.reads}});
    each.push_back({{"persistent", tape.persistent},
                    {"watch_accessed_variables", tape.watchAccessed},
                    {"allow_non_differentiable", tape.allowNonDifferentiable},
                    {"recording", tape.recording},
                    {"watched", tape.watched},
                    {"variables", std::move(variables)}});
  }
  return {{"program", jsonOf(tapes.program)}, {"entry", tapes.entry},    {"leaves", std::move(leaves)},
          {"arguments", tapes.numArguments},  {"values", tapes.values},  {"members", tapes.members},
          {"calls", std::move(calls)},        {"tapes", std::move(each)}};
}

static constexpr const char *kItems[] = {"value", "variables", "function", "tape", "position"};
static Json jsonOf(const ManifestItem &item) {
  Json json = {{"name", item.name}, {"kind", kItems[static_cast<size_t>(item.kind)]}};
  switch (item.kind) {
  case ManifestItem::Kind::value:
    json["structure"] = jsonOfAll(item.words);
    json["tensors"] = jsonOfAll(item.tensors);
    json["variables"] = item.ofValue;
    break;
  case ManifestItem::Kind::variables: {
    Json named = Json::array();
    for (const auto &[name, variable] : item.named)
      named.push_back(Json::array({name, variable}));
    json["variables"] = std::move(named);
    break;
  }
  case ManifestItem::Kind::function:
    json["functions"] = item.functions;
    json["interpret"] = item.interpret;
    json["recompute"] = item.recompute;
    json["capacity"] = item.capacity;
    json["argument_names"] = jsonOfAll(item.argumentNames);
    break;
  case ManifestItem::Kind::tape: json["tape"] = item.tape; break;
  case ManifestItem::Kind::position: json["position"] = item.position; break;
  }
  return json;
}

static Json jsonOf(const ManifestVariable &variable) {
  return {{"name", variable.name},
          {"type", jsonOf(variable.type)},
          {"own_name", jsonOf(variable.own)},
          {"trainable", variable.trainable},
          {"generator", variable.generator}};
}

std::string textOf(const Manifest &manifest) {
  Json metadata = Json::object();
  for (const auto &[key, value] : manifest.metadata)
    metadata[key] = value;
  Json json = {
      {"format", "wengert"},
      {"version", kSavedVersion},
      {"library", manifest.library},
      {"metadata", std::move(metadata)},
      {"arrays", {{"variables", jsonOfAll(manifest.variableParts)}, {"constants", jsonOfAll(manifest.constantParts)}}},
      {"variables", jsonOfAll(manifest.variables)},
      {"constants", jsonOfAll(manifest.constants)},
      {"functions", jsonOfAll(manifest.functions)},
      {"items", jsonOfAll(manifest.items)},
      {"requires", {{"host_functions", manifest.hostFunctions}, {"c_functions", manifest.cFunctions}}}};
  if (manifest.tapes)
    json["tapes"] = jsonOf(*manifest.tapes);
  // An entry of a list or an object a line at the first two levels: readable, and not many times its size.
  std::string rest;
  for (const auto &[key, value] : json.items()) {
    rest += (rest.empty() ? "" : ",\n") + Json(key).dump() + ": ";
    if (!value.is_array() || value.empty()) {
      rest += value.dump();
      continue;
    }
    for (size_t i = 0; i < value.size(); ++i)
      rest += (i ? ",\n  " : "[\n  ") + value[i].dump();
    rest += "]";
  }
  rest += "}\n";
  return std::string(kStart) + runtime::digestOf(rest) + std::string(kAfter) + rest;
}

//===- Reading ----------------------------------------------------------------------------------------------------===//

namespace {

/// What is wrong with a manifest, and where in it.
struct Wrong {
  std::string place, message;
};

/// A value of the manifest, with its place for errors.
class View {
public:
  /// The whole, or what `of`, which outlives it, has under a key or a number.
  explicit View(const Json &json, const View *of = nullptr, const char *key = nullptr, size_t number = 0)
      : json_(json), of_(of), key_(key), number_(number) {}

  [[noreturn]] void wrong(std::string message) const { throw Wrong{place(), std::move(message)}; }
  bool has(const char *key) const { return json_.is_object() && json_.contains(key); }
  View operator[](const char *key) const {
    if (!json_.is_object())
      wrong("is not an object");
    auto at = json_.find(key);
    if (at == json_.end())
      wrong(std::string("lacks '") + key + "'");
    return View(*at, this, key);
  }
  View operator[](size_t i) const {
    if (!json_.is_array() || i >= json_.size())
      wrong("is not a list of at least " + std::to_string(i + 1));
    return View(json_[i], this, nullptr, i);
  }
  size_t size() const {
    if (!json_.is_array())
      wrong("is not a list");
    return json_.size();
  }
  /// f of each element of a list.
  template <class F> auto list(F f) const {
    std::vector<decltype(f(*this))> made;
    made.reserve(size());
    for (size_t i = 0, count = size(); i < count; ++i)
      made.push_back(f((*this)[i]));
    return made;
  }
  bool boolean() const {
    if (!json_.is_boolean())
      wrong("is neither true nor false");
    return json_.get<bool>();
  }
  int64_t integer(int64_t least, int64_t most) const {
    bool fits = json_.is_number_unsigned() ? json_.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                           : json_.is_number_integer();
    if (!fits || json_.get<int64_t>() < least || json_.get<int64_t>() > most)
      wrong("is not an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return json_.get<int64_t>();
  }
  /// A number below `count`, of that many `things`.
  uint32_t below(size_t count, const char *things) const {
    if (count == 0)
      wrong(std::string("refers to one of no ") + things);
    return static_cast<uint32_t>(integer(0, static_cast<int64_t>(count) - 1));
  }
  const std::string &string() const {
    if (!json_.is_string())
      wrong("is not a string");
    return json_.get_ref<const std::string &>();
  }
  /// Text that need not be UTF-8.
  std::string text() const {
    if (!json_.is_object())
      return string();
    std::string hex = (*this)["hex"].string(), bytes;
    if (hex.size() % 2)
      wrong("has half a byte");
    for (size_t i = 0; i < hex.size(); i += 2)
      bytes += static_cast<char>(byteAt(hex, i));
    return bytes;
  }
  uint8_t byteAt(const std::string &hex, size_t i) const {
    uint8_t byte = 0;
    if (std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16).ptr != hex.data() + i + 2)
      wrong("is not hexadecimal");
    return byte;
  }
  size_t oneOf(std::span<const char *const> names) const {
    for (size_t i = 0; i < names.size(); ++i)
      if (string() == names[i])
        return i;
    wrong("is '" + string().substr(0, 40) + "', which is not known");
  }
  Shape shape() const {
    Shape shape;
    size_t rank = size();
    if (rank > runtime::kMaxRank)
      wrong("has " + std::to_string(rank) + " sizes; " + std::to_string(runtime::kMaxRank) + " are the most");
    for (size_t i = 0; i < rank; ++i)
      shape.push_back(json_[i].is_null() ? dynamic : (*this)[i].integer(0, INT64_MAX));
    return shape;
  }
  /// A list of integers, as those of a static shape.
  Shape integers() const {
    Shape shape;
    size_t rank = size();
    if (rank > runtime::kMaxRank)
      wrong("has " + std::to_string(rank) + " integers; " + std::to_string(runtime::kMaxRank) + " are the most");
    for (size_t i = 0; i < rank; ++i)
      shape.push_back(json_[i].is_null() ? dynamic : (*this)[i].integer(INT64_MIN + 1, INT64_MAX));
    return shape;
  }
  TensorType type(bool open = false) const {
    TensorType type;
    const std::string &dtype = (*this)[size_t(0)].string();
    std::optional<DType> known;
    for (int i = 0; i < runtime::kNumDTypes; ++i)
      if (runtime::nameOf(static_cast<DType>(i)) == dtype)
        known = static_cast<DType>(i);
    if (!known)
      (*this)[size_t(0)].wrong("is '" + dtype.substr(0, 40) + "', which is no dtype");
    type.dtype = *known;
    type.shape = (*this)[1].shape();
    if (!open && !type.shape.isStatic())
      wrong("has an open size");
    if (!runtime::extentOf(type).ok())
      wrong("is larger than any memory");
    return type;
  }
  std::vector<uint32_t> numbersBelow(size_t count, const char *things) const {
    return list([&](const View &each) { return each.below(count, things); });
  }
  std::vector<std::string> texts() const {
    return list([](const View &each) { return each.text(); });
  }
  const Json &json() const { return json_; }

private:
  /// `functions[2].inputs`; written where it is asked for, as there is one for each number of a file.
  std::string place() const {
    if (!of_)
      return "";
    std::string outer = of_->place();
    return key_ ? outer + (outer.empty() ? "" : ".") + key_ : outer + "[" + std::to_string(number_) + "]";
  }

  const Json &json_;
  const View *of_;
  const char *key_;
  size_t number_;
};

/// The manifest while it is read.
class ManifestReader {
public:
  explicit ManifestReader(const View &root) : root_(root) {}
  Manifest read();

private:
  ManifestPart part(const View &view, const char *extension);
  ManifestVariable variable(const View &view);
  TreeWord word(const View &view, bool types) const;
  std::vector<TreeWord> words(const View &view, bool types) const {
    return view.list([&](const View &each) { return word(each, types); });
  }
  ManifestFunction function(const View &view);
  void checkInputs(const View &view, const ManifestFunction &function) const;
  void checkSignature(const View &view, const ManifestFunction &function) const;
  void checkLeaves(const View &view, const ManifestFunction &function) const;
  ManifestTapes tapes(const View &view);
  ManifestItem item(const View &view);

  View root_;
  Manifest manifest_;
};

} // namespace

ManifestPart ManifestReader::part(const View &view, const char *extension) {
  ManifestPart part{view["name"].string(), view["blake3"].string(),
                    static_cast<uint64_t>(view["bytes"].integer(0, static_cast<int64_t>(runtime::kLargestFile)))};
  bool isHex = part.digest.size() == kDigits;
  for (char c : part.digest)
    isHex = isHex && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
  if (!isHex)
    view["blake3"].wrong("is not a digest of 64 hexadecimal digits");
  if (!part.name.ends_with(part.digest + extension) ||
      !std::all_of(part.name.begin(), part.name.end(),
                   [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-' || c == '_'; }))
    view["name"].wrong("is not a name with the digest and '" + std::string(extension) + "' at its end");
  return part;
}

ManifestVariable ManifestReader::variable(const View &view) {
  return {view["name"].string(), view["type"].type(), view["own_name"].text(), view["trainable"].boolean(),
          view["generator"].boolean()};
}

TreeWord ManifestReader::word(const View &view, bool types) const {
  TreeWord word{.kind = static_cast<TreeWord::Kind>(view[size_t(0)].oneOf(kWords))};
  constexpr int64_t most = INT32_MAX;
  switch (word.kind) {
  case TreeWord::argument:
  case TreeWord::count: word.number = static_cast<uint32_t>(view[1].integer(0, most)); break;
  case TreeWord::tensor:
    if (types)
      word.type = view[1].type(/*open=*/true);
    break;
  case TreeWord::variable:
    if (types) {
      word.type = view[1].type();
      word.number = static_cast<uint32_t>(view[2].integer(0, most));
      word.place = static_cast<uint32_t>(view[3].integer(0, most));
    }
    break;
  case TreeWord::rows: word.type.shape = view[1].shape(); break;
  case TreeWord::sizes: word.type = {DType::i64, view[1].integers()}; break;
  case TreeWord::none:
  case TreeWord::string:
  case TreeWord::key:
  case TreeWord::field: word.text = view[1].text(); break;
  case TreeWord::real:
  case TreeWord::integer:
  case TreeWord::boolean:
  case TreeWord::enumeration: {
    word.text = view[1].text();
    word.isUnsigned = view[2].boolean();
    const std::string &hex = view[3].string();
    word.number = static_cast<uint32_t>(hex.size() / 2);
    if (hex.size() % 2 || word.number == 0 || word.number > sizeof word.bits)
      view[3].wrong("is not a number of 1 to 16 bytes");
    for (uint32_t i = 0; i < word.number; ++i)
      word.bits[i / 8] |= uint64_t(view[3].byteAt(hex, 2 * size_t(i))) << 8 * (i % 8);
    break;
  }
  case TreeWord::gradient:
  case TreeWord::end: break;
  }
  return word;
}

ManifestFunction ManifestReader::function(const View &view) {
  ManifestFunction function;
  function.name = view["name"].text();
  function.entry = view["entry"].string();
  function.program = part(view["program"], ".mlir");
  function.interpret = view["interpret"].boolean();
  size_t numLeaves = view["alias"].size();
  function.inputs = view["inputs"].list([&](const View &each) {
    ManifestInput input{static_cast<ManifestInput::Kind>(each[size_t(0)].oneOf(kInputs)), 0};
    View index = each[1];
    switch (input.kind) {
    case ManifestInput::argument:
    case ManifestInput::formal: input.index = index.below(numLeaves, "arguments"); break;
    case ManifestInput::variable: input.index = index.below(manifest_.variables.size(), "variables"); break;
    case ManifestInput::constant: input.index = index.below(manifest_.constants.size(), "constants"); break;
    case ManifestInput::order: break;
    }
    return input;
  });
  function.assigned = view["assigned"].numbersBelow(function.inputs.size(), "inputs");
  for (size_t i = 0; i < function.assigned.size(); ++i) {
    ManifestInput::Kind kind = function.inputs[function.assigned[i]].kind;
    if ((i && function.assigned[i] <= function.assigned[i - 1]) || kind == ManifestInput::argument ||
        kind == ManifestInput::constant)
      view["assigned"][i].wrong("is not a variable among the inputs, in their order");
  }
  function.numResults = static_cast<uint32_t>(view["results"].integer(0, INT32_MAX));
  function.inputNames = view["input_names"].texts();
  if (function.inputNames.size() != function.inputs.size())
    view["input_names"].wrong("has not one name for each input");
  auto leaves = [&](const char *key) {
    if (view[key].size() != numLeaves)
      view[key].wrong("has not one entry for each of " + std::to_string(numLeaves) + " arguments");
    return view[key];
  };
  auto earlier = [](const View &all) {
    std::vector<uint32_t> list;
    for (size_t i = 0, count = all.size(); i < count; ++i)
      list.push_back(static_cast<uint32_t>(all[i].integer(0, static_cast<int64_t>(i))));
    return list;
  };
  function.aliasOf = earlier(leaves("alias"));
  function.placeOf = earlier(leaves("place"));
  function.capturedLeaves = leaves("captured_leaves").list([&](const View &each) {
    return each.integer(-1, static_cast<int64_t>(manifest_.variables.size()) - 1);
  });
  View places = leaves("captured_places");
  for (size_t i = 0; i < numLeaves; ++i)
    function.capturedPlaces.push_back(places[i].boolean());
  function.captured = view["captured"].numbersBelow(manifest_.variables.size(), "variables");
  function.reason = view["reason"].text();
  function.numOps = view["ops"].integer(0, INT64_MAX);
  function.certificate = view["not_computed"].list([](const View &each) {
    return ManifestFunction::Dropped{each[size_t(0)].string(), each[1].integer(0, INT32_MAX), each[2].text(),
                                     each[3].text()};
  });
  function.isUsers = view.has("signature");
  if (function.isUsers) {
    function.arguments = words(view["signature"]["takes"], true);
    function.results = words(view["signature"]["returns"], true);
    checkSignature(view["signature"], function);
  }
  checkInputs(view["inputs"], function);
  checkLeaves(view, function);
  return function;
}

/// No leaf and no variable is two inputs: what is assigned to one would not be seen by the other.
void ManifestReader::checkInputs(const View &view, const ManifestFunction &function) const {
  std::set<std::pair<ManifestInput::Kind, uint32_t>> known;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    auto [kind, index] = function.inputs[i];
    if (kind == ManifestInput::constant)
      continue;
    if (kind == ManifestInput::order)
      index = 0;
    if (!known.emplace(kind == ManifestInput::formal ? ManifestInput::argument : kind, index).second)
      view[i].wrong("is another input as well");
  }
}

/// The words are of arguments, begin and end what they hold, and have one tensor or variable for each leaf.
void ManifestReader::checkSignature(const View &view, const ManifestFunction &function) const {
  size_t given = 0, open = 0, returned = 0;
  bool begun = false;
  for (const TreeWord &word : function.arguments) {
    given += word.kind == TreeWord::tensor || word.kind == TreeWord::variable;
    begun |= word.kind == TreeWord::argument;
    bool begins = word.kind == TreeWord::key || word.kind == TreeWord::field;
    if (!begun || (word.kind == TreeWord::end && open == 0) || (word.kind == TreeWord::argument && open > 0) ||
        word.kind == TreeWord::gradient || word.kind == TreeWord::rows || word.kind == TreeWord::none)
      view["takes"].wrong("is not a list of arguments");
    open += begins ? 1 : 0;
    open -= word.kind == TreeWord::end ? 1 : 0;
    if (open > kDeepestStructure)
      view["takes"].wrong("nests more than " + std::to_string(kDeepestStructure) + " keys and fields");
  }
  for (const TreeWord &word : function.results)
    returned += word.kind == TreeWord::tensor || word.kind == TreeWord::gradient ? 1
                : word.kind == TreeWord::rows                                    ? 2
                                                                                 : 0;
  if (open)
    view["takes"].wrong("does not end what it begins");
  if (given != function.aliasOf.size())
    view["takes"].wrong("has not the " + std::to_string(function.aliasOf.size()) + " tensors that it takes");
  if (returned != function.numResults)
    view["returns"].wrong("has not the " + std::to_string(function.numResults) + " tensors that it returns");
}

/// Which leaves are one variable: what each says of an earlier one is true of both, and a tensor says nothing.
void ManifestReader::checkLeaves(const View &view, const ManifestFunction &function) const {
  std::vector<const TreeWord *> variables(function.aliasOf.size(), nullptr); // by leaf
  size_t leaf = 0;
  for (const TreeWord &word : function.arguments)
    if (word.kind == TreeWord::tensor || word.kind == TreeWord::variable)
      variables[leaf++] = word.kind == TreeWord::variable ? &word : nullptr;
  std::set<uint32_t> captured(function.captured.begin(), function.captured.end());
  for (uint32_t i = 0; i < variables.size(); ++i) {
    uint32_t alias = function.aliasOf[i], place = function.placeOf[i];
    int64_t known = function.capturedLeaves[i];
    auto require = [&](bool holds, const char *key, const char *message) {
      if (!holds)
        view[key][i].wrong(message);
    };
    const TreeWord *word = variables[i];
    require(word ? variables[alias] && variables[alias]->type == word->type && function.aliasOf[alias] == alias &&
                       word->number == alias
                 : alias == i,
            "alias", "is not the first leaf that is the same variable");
    require(word ? variables[place] && function.aliasOf[place] == alias && function.placeOf[place] == place &&
                       (word->place == 0 || word->place == place + 1)
                 : place == i,
            "place", "is not the first leaf that is the same place of a variable");
    require(known < 0 || (word && captured.contains(static_cast<uint32_t>(known)) &&
                          manifest_.variables[static_cast<size_t>(known)].type == word->type),
            "captured_leaves", "is no variable that the function captures and that the leaf can be");
    require(!function.capturedPlaces[i] || known >= 0, "captured_places", "is true of a leaf that is not captured");
  }
}

ManifestTapes ManifestReader::tapes(const View &view) {
  ManifestTapes tapes;
  tapes.program = part(view["program"], ".mlir");
  tapes.entry = view["entry"].string();
  tapes.leaves = view["leaves"].list([&](const View &each) {
    static constexpr const char *kinds[] = {"constant", "variable"};
    bool isVariable = each[size_t(0)].oneOf(kinds) == 1;
    return ManifestTapes::Leaf{isVariable, isVariable ? each[1].below(manifest_.variables.size(), "variables")
                                                      : each[1].below(manifest_.constants.size(), "constants")};
  });
  tapes.numArguments = static_cast<uint32_t>(view["arguments"].integer(0, static_cast<int64_t>(tapes.leaves.size())));
  tapes.values = view["values"].numbersBelow(manifest_.constants.size(), "constants");
  size_t numTapes = view["tapes"].size();
  tapes.members = view["members"].list([&](const View &each) {
    std::vector<uint32_t> members = each.numbersBelow(numTapes, "tapes");
    if (std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) != members.end())
      each.wrong("is not ascending");
    return members;
  });
  tapes.calls = view["calls"].list([&](const View &each) {
    ManifestTapes::Call call;
    call.function = each["function"].below(manifest_.functions.size(), "functions");
    call.isRule = each.has("rule");
    call.asked = each["asked"].numbersBelow(manifest_.functions[call.function].inputs.size(), "inputs");
    call.numResults = static_cast<uint32_t>(each["results"].integer(0, INT32_MAX));
    if (call.isRule) {
      View rule = each["rule"];
      call.rule = rule["name"].string();
      call.jvp = rule["jvp"].integer(-1, static_cast<int64_t>(manifest_.functions.size()) - 1);
      call.transposes = rule["transposes"].boolean();
    } else {
      call.forward = each["forward"].string();
    }
    return call;
  });
  // How many values there are is known when the program is read.
  auto values = [](const View &each) { return each.numbersBelow(INT32_MAX, "values"); };
  tapes.tapes = view["tapes"].list([&](const View &each) {
    ManifestTapes::Tape tape;
    tape.persistent = each["persistent"].boolean();
    tape.watchAccessed = each["watch_accessed_variables"].boolean();
    tape.allowNonDifferentiable = each["allow_non_differentiable"].boolean();
    tape.recording = each["recording"].boolean();
    tape.watched = values(each["watched"]);
    tape.variables = each["variables"].list([&](const View &watched) {
      return ManifestTapes::Tape::Watched{watched["variable"].below(manifest_.variables.size(), "variables"),
                                          values(watched["reads"])};
    });
    return tape;
  });
  return tapes;
}

ManifestItem ManifestReader::item(const View &view) {
  ManifestItem item;
  item.kind = static_cast<ManifestItem::Kind>(view["kind"].oneOf(kItems));
  item.name = view["name"].string();
  switch (item.kind) {
  case ManifestItem::Kind::value: {
    item.words = words(view["structure"], false);
    item.tensors = view["tensors"].list([&](const View &each) {
      static constexpr const char *kinds[] = {"constant", "tape"};
      bool onTape = each[size_t(0)].oneOf(kinds) == 1;
      if (onTape && !manifest_.tapes)
        each.wrong("is on a tape, and there is none");
      return ManifestTensor{onTape, onTape ? each[1].below(INT32_MAX, "values")
                                           : each[1].below(manifest_.constants.size(), "constants")};
    });
    item.ofValue = view["variables"].numbersBelow(manifest_.variables.size(), "variables");
    size_t tensors = 0, variables = 0;
    for (const TreeWord &word : item.words) {
      tensors += word.kind == TreeWord::tensor || word.kind == TreeWord::gradient ? 1 : 0;
      tensors += word.kind == TreeWord::rows ? 2 : 0;
      variables += word.kind == TreeWord::variable ? 1 : 0;
    }
    if (tensors != item.tensors.size() || variables != item.ofValue.size())
      view["structure"].wrong("names other numbers of tensors and variables than there are");
    break;
  }
  case ManifestItem::Kind::variables:
    item.named = view["variables"].list([&](const View &each) {
      return std::pair(each[size_t(0)].string(), each[1].below(manifest_.variables.size(), "variables"));
    });
    break;
  case ManifestItem::Kind::function:
    item.functions = view["functions"].numbersBelow(manifest_.functions.size(), "functions");
    if (std::set<uint32_t>(item.functions.begin(), item.functions.end()).size() != item.functions.size())
      view["functions"].wrong("has a function twice");
    for (size_t i = 0; i < item.functions.size(); ++i)
      if (!manifest_.functions[item.functions[i]].isUsers)
        view["functions"][i].wrong("is a function without a signature");
    item.interpret = view["interpret"].boolean();
    item.recompute = view["recompute"].boolean();
    item.capacity = view["capacity"].integer(1, INT64_MAX);
    item.argumentNames = view["argument_names"].texts();
    if (std::set<std::string>(item.argumentNames.begin(), item.argumentNames.end()).size() != item.argumentNames.size())
      view["argument_names"].wrong("has a name twice");
    break;
  case ManifestItem::Kind::tape:
    item.tape = view["tape"].below(manifest_.tapes ? manifest_.tapes->tapes.size() : 0, "tapes");
    break;
  case ManifestItem::Kind::position:
    for (size_t i = 0; i < 2; ++i)
      item.position[i] = view["position"][i].integer(0, INT64_MAX);
    break;
  }
  return item;
}

Manifest ManifestReader::read() {
  if (root_["format"].string() != "wengert")
    root_["format"].wrong("is not 'wengert'");
  manifest_.library = root_["library"].string();
  int64_t version = root_["version"].integer(1, INT64_MAX);
  if (version > kSavedVersion)
    throw Wrong{"version", "is " + std::to_string(version) + ", written by Wengert " + manifest_.library.substr(0, 40) +
                               "; this is Wengert " + WENGERT_VERSION_STRING + ", which reads versions up to " +
                               std::to_string(kSavedVersion)};
  manifest_.version = version;
  View metadata = root_["metadata"];
  if (!metadata.json().is_object())
    metadata.wrong("is not an object");
  for (const auto &[key, value] : metadata.json().items())
    manifest_.metadata[key] = View(value, &metadata, key.c_str()).string();
  auto parts = [&](const View &view) {
    return view.list([&](const View &each) { return part(each, ".safetensors"); });
  };
  manifest_.variableParts = parts(root_["arrays"]["variables"]);
  manifest_.constantParts = parts(root_["arrays"]["constants"]);
  for (const char *key : {"variables", "constants"}) {
    std::set<std::string> known;
    for (const ManifestPart &each : key == std::string("variables") ? manifest_.variableParts : manifest_.constantParts)
      if (!known.insert(each.name).second)
        root_["arrays"][key].wrong("names " + each.name + " twice");
  }
  manifest_.variables = root_["variables"].list([&](const View &each) { return variable(each); });
  manifest_.constants = root_["constants"].list([](const View &each) { return each.type(); });
  manifest_.functions = root_["functions"].list([&](const View &each) { return function(each); });
  if (root_.has("tapes"))
    manifest_.tapes = tapes(root_["tapes"]);
  manifest_.items = root_["items"].list([&](const View &each) { return item(each); });
  std::set<std::string> names;
  for (size_t i = 0; i < manifest_.items.size(); ++i)
    if (!names.insert(manifest_.items[i].name).second)
      root_["items"][i]["name"].wrong("is that of another item as well");
  names.clear();
  for (size_t i = 0; i < manifest_.variables.size(); ++i)
    if (!names.insert(manifest_.variables[i].name).second)
      root_["variables"][i]["name"].wrong("is that of another variable as well");
  manifest_.hostFunctions = root_["requires"]["host_functions"].texts();
  manifest_.cFunctions = root_["requires"]["c_functions"].texts();
  return std::move(manifest_);
}

/// Whether brackets nest no deeper than ours do; what is inside of strings does not count.
static bool nestsLittle(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      i += c == '\\';
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest)
        return false;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return true;
}

uint64_t repeatedText(const Manifest &manifest) {
  uint64_t bytes = 0;
  std::set<std::string> read;
  std::set<ManifestCode> codes;
  for (const ManifestFunction &function : manifest.functions)
    if (codes.insert(codeOf(function)).second && !read.insert(function.program.name).second)
      bytes += function.program.bytes;
  std::set<std::pair<uint32_t, std::vector<uint32_t>>> derivatives;
  if (manifest.tapes)
    for (const ManifestTapes::Call &call : manifest.tapes->calls)
      if (!call.isRule && derivatives.emplace(call.function, call.asked).second)
        bytes += manifest.functions[call.function].program.bytes;
  return bytes;
}

Manifest readManifest(const std::string &text, const std::string &path, const Where &where) {
  auto refuse = [&](const std::string &message, std::string remedy = {}) {
    raise(runtime::fileError(path, "manifest.json: " + message, std::move(remedy)), where);
  };
  size_t begin = kStart.size() + kDigits + kAfter.size();
  if (text.size() < begin || !text.starts_with(kStart) || text.compare(begin - kAfter.size(), kAfter.size(), kAfter))
    refuse("is not the manifest of a saved computation: its first line has no digest");
  if (runtime::digestOf(std::string_view(text).substr(begin)) != text.substr(kStart.size(), kDigits))
    refuse("damaged: its digest is not that of its text", "load another copy");
  if (!nestsLittle(text))
    refuse("nests deeper than a manifest does");
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception &) {
    refuse("is not JSON");
  }
  try {
    Manifest manifest = ManifestReader(View(json)).read();
    if (repeatedText(manifest) > kMostRepeatedText)
      refuse("names programs so often that they are " + std::to_string(repeatedText(manifest) >> 20) +
             " MiB of text beside themselves; " + std::to_string(kMostRepeatedText >> 20) + " are the most");
    return manifest;
  } catch (const Wrong &wrong) {
    bool isNewer = wrong.place == "version";
    refuse((wrong.place.empty() ? "it" : wrong.place) + " " + wrong.message,
           isNewer ? "load it with the Wengert that wrote it, or a later one" : "");
  }
  return {};
}

} // namespace wg::detail
