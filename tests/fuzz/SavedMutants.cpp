#include "tests/fuzz/SavedMutants.h"

#include "runtime/io/Digest.h"
#include "runtime/io/Zip.h"
#include "tests/fuzz/Damage.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace wg::tests {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kManifest = "manifest.json";
constexpr size_t kFirstLine = 11 + 64 + 3; // {"blake3":"...",

std::string textOf(const Json &json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return withDigest(std::string(kFirstLine, ' ') + text.substr(text.starts_with('{') ? 1 : 0) + "\n");
}

Json parsed(const std::string &manifest) {
  return Json::parse("{" + manifest.substr(std::min(kFirstLine, manifest.size())));
}

/// Every value in a document; of files only now and then, whose digests are right otherwise.
void collect(Json &json, std::vector<Json *> &nodes, bool files) {
  if (!files && !nodes.empty() && json.is_object() && json.contains("blake3"))
    return;
  nodes.push_back(&json);
  if (json.is_structured())
    for (Json &each : json)
      collect(each, nodes, files);
}

constexpr const char *kWords[] = {"argument",
                                  "tensor",
                                  "variable",
                                  "gradient",
                                  "rows",
                                  "none",
                                  "real",
                                  "integer",
                                  "boolean",
                                  "enum",
                                  "string",
                                  "shape",
                                  "count",
                                  "key",
                                  "field",
                                  "end",
                                  "tape",
                                  "formal",
                                  "constant",
                                  "order",
                                  "value",
                                  "position",
                                  "function",
                                  "variables",
                                  "f32",
                                  "f64",
                                  "f16",
                                  "bf16",
                                  "i64",
                                  "i32",
                                  "u8",
                                  "bool",
                                  "",
                                  "0",
                                  "manifest.json",
                                  "../a",
                                  "wengert",
                                  "00",
                                  "0000000000000080",
                                  "ffffffffffffffffffff",
                                  "\xc3\xbc",
                                  "a\nb\x01",
                                  "call0",
                                  "call1"};

class JsonMutation {
public:
  JsonMutation(Json &root, Dice &dice) : root(root), dice(dice) {}

  void once() {
    nodes.clear();
    collect(root, nodes, dice.oneIn(32));
    Json &node = *dice.pick(nodes);
    switch (dice.below(10)) {
    case 0:
    case 1: node = ofKind(node, dice.oneIn(4)); return;
    case 2: { // two change places
      Json &other = *dice.pick(nodes);
      Json a = node, b = other;
      if (!isInside(node, other) && !isInside(other, node)) {
        node = b;
        other = a;
      } else {
        node = b;
      }
      return;
    }
    case 3: // another type
      node = std::array<Json, 8>{Json(),       Json(true),    Json(3),        Json(-1.5),
                                 Json("text"), Json::array(), Json::object(), Json::array({Json(node)})}[dice.below(8)];
      return;
    default:
      if (node.is_number())
        return changeNumber(node);
      if (node.is_boolean())
        return void(node = !node.get<bool>());
      if (node.is_string())
        return changeString(node);
      if (node.is_array())
        return changeList(node);
      if (node.is_object())
        return changeObject(node);
      node = dice.oneIn(2) ? Json(dice.below(4)) : *dice.pick(nodes);
    }
  }

private:
  static bool isInside(const Json &part, const Json &whole) {
    if (&part == &whole)
      return true;
    if (whole.is_structured())
      for (const Json &each : whole)
        if (isInside(part, each))
          return true;
    return false;
  }
  /// A copy of another value, of the same type unless `any`.
  Json ofKind(const Json &node, bool any) {
    for (int times = 0; times < 40; ++times)
      if (const Json &other = *dice.pick(nodes); any || other.type() == node.type())
        return other;
    return node;
  }
  void changeNumber(Json &node) {
    switch (dice.below(5)) {
    case 0: node = dice.pick(kNumbers); break;
    case 1: node = -static_cast<int64_t>(dice.pick(kNumbers) / 2); break;
    case 2: node = static_cast<double>(dice.pick(kNumbers)) * 1.5; break;
    case 3: node = node.is_number_integer() ? Json(node.get<int64_t>() + (dice.oneIn(2) ? 1 : -1)) : Json(1); break;
    default: node = dice.below(6);
    }
  }
  void changeString(Json &node) {
    std::string text = node.get<std::string>();
    size_t at = text.empty() ? 0 : dice.below(text.size());
    switch (dice.below(7)) {
    case 0:
    case 1: text = dice.pick(kWords); break;
    case 2: text.insert(at, dice.pick(kWords)); break;
    case 3: text.erase(at, 1 + dice.below(4)); break;
    case 4: text += std::string(dice.oneIn(10) ? 100000 : dice.below(300), 'a'); break;
    case 5: node = Json{{"hex", dice.oneIn(4) ? std::string("fg") : std::string("00ff0a27")}}; return;
    default: text = ofKind(node, false).get<std::string>();
    }
    node = text;
  }
  void changeList(Json &node) {
    auto place = [&] { return node.begin() + static_cast<std::ptrdiff_t>(dice.below(node.size())); };
    switch (node.empty() ? 6 : dice.below(8)) {
    case 0: node.erase(place()); break;
    case 1: node.insert(place(), Json(*place())); break;
    case 2: std::swap(*place(), *place()); break;
    case 3: node.erase(place(), node.end()); break;
    case 4: { // many
      Json each = *place();
      for (size_t times = each.dump().size() > 300 ? 8 : dice.oneIn(8) ? 20000 : 70; times-- > 0;)
        node.push_back(each);
      break;
    }
    case 5: std::reverse(node.begin(), node.end()); break;
    default: node.push_back(*dice.pick(nodes)); break;
    }
  }
  void changeObject(Json &node) {
    if (node.empty())
      return void(node["name"] = 1);
    auto place = node.begin();
    std::advance(place, static_cast<std::ptrdiff_t>(dice.below(node.size())));
    std::string key = place.key();
    switch (dice.below(4)) {
    case 0: node.erase(key); break;
    case 1: {
      Json value = place.value();
      node.erase(key);
      node[dice.pick(kWords)] = value;
      break;
    }
    case 2: node[dice.pick(std::array{"rule", "signature", "tapes", "jvp", "hex", "name"})] = *dice.pick(nodes); break;
    default: node[key] = ofKind(place.value(), false);
    }
  }

  Json &root;
  Dice &dice;
  std::vector<Json *> nodes;
};

/// Names and counts in the whole document: what else refers to them goes along.
void changeThroughout(std::string &text, Dice &dice) {
  static constexpr const char *kTypes[] = {"\"f64\"", "\"f32\"", "\"i64\"", "\"i32\"", "\"bool\"", "\"f16\""};
  static constexpr const char *kSizes[] = {"[2]", "[3]", "[]", "[null]", "[0]", "[4,2]", "[4,3]", "[1]", "[2,2]"};
  bool types = dice.oneIn(2);
  std::string from = types ? dice.pick(kTypes) : dice.pick(kSizes), to = types ? dice.pick(kTypes) : dice.pick(kSizes);
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// A key twice, bytes that are no JSON: of the text.
void changeText(std::string &text, Dice &dice) {
  size_t at = kFirstLine + (text.size() > kFirstLine ? dice.below(text.size() - kFirstLine) : 0);
  switch (dice.below(4)) {
  case 0: {
    size_t brace = text.find('{', at), end = brace == std::string::npos ? brace : text.find_first_of(",}", brace);
    if (end != std::string::npos && text[end] == ',')
      text.insert(brace + 1, text.substr(brace + 1, end - brace));
    break;
  }
  case 1: text.insert(at, std::string(1 + dice.below(dice.oneIn(9) ? 90000 : 40), "[{\"]},"[dice.below(6)])); break;
  case 2: text.erase(at, 1 + dice.below(30)); break;
  default: {
    std::string rest = text.substr(kFirstLine);
    damageBytes(rest, dice);
    text = text.substr(0, kFirstLine) + rest;
  }
  }
}

void changeManifest(Parts &parts, Dice &dice) {
  std::string &text = parts.at(kManifest);
  if (dice.oneIn(12)) {
    changeText(text, dice);
    if (dice.oneIn(40))
      damageBytes(text, dice); // the first line, maybe
    else
      text = withDigest(text);
    return;
  }
  if (dice.oneIn(16))
    changeThroughout(text, dice);
  Json json = parsed(text);
  for (size_t times = dice.oneIn(2) ? 1 : 1 + dice.below(4); times-- > 0;)
    JsonMutation(json, dice).once();
  text = textOf(json);
}

std::vector<std::string> partsOf(const Parts &parts, const std::string &extension) {
  std::vector<std::string> names;
  for (const auto &[name, bytes] : parts)
    if (name.ends_with(extension))
      names.push_back(name);
  return names;
}

void forEachFile(Json &json, const std::function<void(Json &)> &f) {
  if (json.is_object() && json.contains("blake3") && json.contains("bytes"))
    f(json);
  if (json.is_structured())
    for (Json &each : json)
      forEachFile(each, f);
}

void changeProgram(Parts &parts, const std::vector<std::string> &programs, Dice &dice) {
  std::vector<std::string> names = partsOf(parts, ".mlir");
  if (names.empty())
    return;
  std::string name = dice.pick(names);
  std::string text = parts.at(name);
  if (dice.oneIn(40))
    damageBytes(text, dice);
  else if (dice.oneIn(12))
    text = parts.at(dice.pick(names)); // another's
  else
    text = mutantOf(text, programs, dice);
  replacePart(parts, name, text);
  if (dice.oneIn(8))
    changeManifest(parts, dice);
}

void changeArrays(Parts &parts, Dice &dice) {
  std::vector<std::string> names = partsOf(parts, ".safetensors");
  if (names.empty())
    return;
  std::string name = dice.pick(names), bytes = parts.at(name);
  uint64_t length = 0;
  for (size_t i = 0; i < 8 && i < bytes.size(); ++i)
    length |= uint64_t(static_cast<uint8_t>(bytes[i])) << 8 * i;
  Sample sample{bytes, 8, std::min<size_t>(length, bytes.size() - 8), 0, 8, {0, 3, 7}};
  damage(sample, dice);
  replacePart(parts, name, sample.bytes);
  if (dice.oneIn(8))
    changeManifest(parts, dice);
}

} // namespace

std::string withDigest(const std::string &manifest) {
  std::string rest = manifest.substr(std::min(kFirstLine, manifest.size()));
  return "{\"blake3\":\"" + runtime::digestOf(rest) + "\",\n" + rest;
}

void replacePart(Parts &parts, const std::string &part, const std::string &bytes) {
  std::string digest = runtime::digestOf(bytes), extension = part.substr(part.rfind('.')),
              name = part.substr(0, part.find('-') + 1) + digest + extension;
  Json json = parsed(parts.at(kManifest));
  forEachFile(json, [&](Json &file) {
    if (file["name"] == part)
      file = {{"name", name}, {"blake3", digest}, {"bytes", bytes.size()}};
  });
  parts.erase(part);
  parts[name] = bytes;
  parts[kManifest] = textOf(json);
}

std::string archiveOf(const Parts &parts) {
  std::vector<runtime::ZipPart> entries = {{kManifest, {std::as_bytes(std::span(parts.at(kManifest)))}}};
  for (const auto &[name, bytes] : parts)
    if (name != kManifest)
      entries.push_back({name, {std::as_bytes(std::span(bytes))}});
  runtime::ZipImage image = runtime::zipImage(entries, 64);
  std::string archive;
  for (std::span<const std::byte> piece : image.pieces)
    archive.append(reinterpret_cast<const char *>(piece.data()), piece.size());
  return archive;
}

Mutant mutantOf(const std::vector<Parts> &samples, const std::vector<std::string> &programs, Target target,
                uint64_t seed) {
  Dice dice(seed);
  Mutant mutant;
  mutant.sample = dice.below(samples.size());
  mutant.parts = samples[mutant.sample];
  switch (target) {
  case Target::manifest: changeManifest(mutant.parts, dice); break;
  case Target::program: changeProgram(mutant.parts, programs, dice); break;
  case Target::arrays: changeArrays(mutant.parts, dice); break;
  case Target::archive: break;
  }
  mutant.archive = archiveOf(mutant.parts);
  if (target == Target::archive) {
    Sample sample{mutant.archive};
    for (std::string_view mark : {"PK\3\4", "PK\1\2", "PK\5\6"})
      for (size_t found = 0; (found = sample.bytes.find(mark, found)) != std::string::npos; found += mark.size())
        for (size_t at : {0, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 32, 42, 46, 60})
          sample.fields.push_back(found + at);
    damage(sample, dice);
    mutant.archive = sample.bytes;
  }
  return mutant;
}

} // namespace wg::tests
