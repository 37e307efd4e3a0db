#include "tests/agreement/Openings.h"

#include <cstring>

namespace wg::tests {

using namespace runtime;

std::vector<Opening> openingsOf(const Sample &sample) {
  const OpRecord &record = recordOf(sample.op);
  std::vector<Opening> list;
  Opening all, entries;
  for (size_t i = 0; i < sample.operands.size(); ++i)
    for (size_t axis = 0; axis < sample.operands[i].shape().size(); ++axis) {
      list.push_back({{{i, axis}}, {}});
      all.axes.insert({i, axis});
    }
  for (size_t axis = 0; axis < runtime::kMaxRank; ++axis) {
    Opening together;
    for (const Place &place : all.axes)
      if (place.second == axis)
        together.axes.insert(place);
    if (together.axes.size() > 1)
      list.push_back(together);
  }
  if (all.axes.size() > 1)
    list.push_back(all);
  for (size_t i = 0; i < record.attrs.size(); ++i)
    for (size_t k = 0; record.attrs[i].open && k < sample.attrs.ints(i).size(); ++k) {
      list.push_back({{}, {{i, k}}});
      entries.entries.insert({i, k});
    }
  if (entries.entries.size() > 1)
    list.push_back(entries);
  all.entries = entries.entries;
  all.everything = true;
  if (!all.axes.empty() || !all.entries.empty())
    list.push_back(all);
  return list;
}

std::string nameOf(const Sample &sample, const Opening &opening, int64_t size) {
  const OpRecord &record = recordOf(sample.op);
  std::string text = std::string(record.name) + " on " + sample.text + ", open";
  for (auto [operand, axis] : opening.axes)
    text += " operand " + std::to_string(operand) + " axis " + std::to_string(axis);
  for (auto [attr, entry] : opening.entries)
    text += " " + std::string(record.attrs[attr].name) + "[" + std::to_string(entry) + "]";
  return text + (size < 0 ? ", its own sizes" : ", size " + std::to_string(size));
}

/// The sample's attributes with `size` in place of what is open.
static Attrs attrsWith(const Sample &sample, const Opening &opening, int64_t size) {
  std::vector<AttrValue> values;
  for (size_t i = 0; i < sample.attrs.size(); ++i) {
    values.push_back(sample.attrs[i]);
    if (Ints *list = std::get_if<Ints>(&values[i]))
      for (size_t k = 0; k < list->size(); ++k)
        if (opening.entries.contains({i, k}))
          (*list)[k] = size;
  }
  return values.empty() ? Attrs() : Attrs(std::move(values));
}
Attrs attrsFor(const Sample &sample, const Opening &opening, int64_t size) {
  return size < 0 ? sample.attrs : attrsWith(sample, opening, size);
}
Attrs openAttrs(const Sample &sample, const Opening &opening) { return attrsWith(sample, opening, kDynamic); }

std::vector<TensorType> openTypes(const Sample &sample, const Opening &opening) {
  std::vector<TensorType> types;
  for (const Array &operand : sample.operands)
    types.push_back(operand.type);
  for (auto [operand, axis] : opening.axes)
    types[operand].shape[axis] = kDynamic;
  return types;
}

bool isSpared(const Sample &sample, const std::string &error) {
  std::string words = sample.reason("open");
  return !words.empty() && error.find(words) != std::string::npos;
}

std::vector<Array> operandsFor(const Sample &sample, const Opening &opening, int64_t size) {
  std::vector<Array> list;
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    const Array &own = sample.operands[i];
    Shape shape = own.shape();
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (size >= 0 && opening.axes.contains({i, axis}))
        shape[axis] = size;
    Array array = Array::empty(own.dtype(), shape);
    size_t bytes = sizeOf(own.dtype());
    for (int64_t k = 0; k < array.numElements(); ++k)
      if (own.numElements() == 0) // a sample of no elements that is opened: it has none to repeat
        detail::store(array, k, 1);
      else
        std::memcpy(array.data<char>() + static_cast<size_t>(k) * bytes,
                    own.data<char>() + static_cast<size_t>(k % own.numElements()) * bytes, bytes);
    list.push_back(array);
  }
  return list;
}

} // namespace wg::tests
