// What does a model consist of? Its layers and variables as a table.
#include "wengert/nn/Module.h"

#include "frontend/ops/Operands.h"

#include <algorithm>
#include <map>
#include <ostream>

namespace wg::nn {

namespace {
/// A layer or a variable; the layers are what the names' dots say.
struct Entry {
  std::string name;
  const Variable *variable = nullptr; ///< null: a layer
  int64_t elements = 0;
  std::vector<Entry> parts = {};
};
struct Row {
  std::string name, shape, dtype, elements, note;
};
} // namespace

/// 1234567 as 1,234,567.
static std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

static void insert(Entry &layer, const std::string &name, const Variable &variable) {
  layer.elements += variable.size();
  size_t dot = name.find('.');
  std::string first = name.substr(0, dot);
  if (dot == std::string::npos) {
    layer.parts.push_back({first, &variable, variable.size()});
    return;
  }
  auto part = std::find_if(layer.parts.begin(), layer.parts.end(),
                           [&](const Entry &each) { return !each.variable && each.name == first; });
  if (part == layer.parts.end())
    part = layer.parts.insert(layer.parts.end(), Entry{first});
  insert(*part, name.substr(dot + 1), variable);
}

static void list(const Entry &layer, const std::string &indent, std::vector<Row> &rows) {
  for (const Entry &part : layer.parts) {
    Row row{indent + part.name, "", "", grouped(part.elements), ""};
    if (part.variable) {
      row.shape = toString(part.variable->shape());
      row.dtype = to_string(part.variable->dtype());
      row.note = part.variable->trainable() ? "" : "not trained";
    }
    rows.push_back(row);
    list(part, indent + "  ", rows);
  }
}

static std::string counted(int64_t elements, int64_t bytes) {
  return grouped(elements) + (elements == 1 ? " element, " : " elements, ") + grouped(bytes) + " bytes";
}

std::string Module::summary() const {
  Entry model;
  int64_t elements[2] = {}, bytes[2] = {};
  for (const auto &[name, variable] : variables_) {
    insert(model, name, variable);
    elements[variable.trainable()] += variable.size();
    bytes[variable.trainable()] += variable.size() * static_cast<int64_t>(runtime::sizeOf(variable.dtype()));
  }
  std::vector<Row> rows{{"layer, variable", "shape", "dtype", "elements", ""}};
  list(model, "", rows);
  auto width = [&](std::string Row::*column) {
    size_t widest = 0;
    for (const Row &row : rows)
      widest = std::max(widest, (row.*column).size());
    return widest;
  };
  const size_t name = width(&Row::name), shape = width(&Row::shape), dtype = width(&Row::dtype),
               count = width(&Row::elements);
  std::string text;
  for (const Row &row : rows) {
    auto left = [](const std::string &word, size_t wide) { return word + std::string(wide - word.size() + 2, ' '); };
    text += left(row.name, name) + left(row.shape, shape) + left(row.dtype, dtype) +
            std::string(count - row.elements.size(), ' ') + row.elements + (row.note.empty() ? "" : "  " + row.note) +
            "\n";
  }
  text += "in all: " + counted(elements[0] + elements[1], bytes[0] + bytes[1]) + "\n";
  text += "trained: " + counted(elements[1], bytes[1]) + "\n";
  return text + "not trained: " + counted(elements[0], bytes[0]) + "\n";
}

std::ostream &operator<<(std::ostream &out, const Module &module) { return out << module.summary(); }

} // namespace wg::nn
