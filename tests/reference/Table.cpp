#include "tests/reference/Table.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

namespace wg::tests {

using nlohmann::json;

/// A number, or the name of one that JSON does not have.
static double numberOf(const json &value) {
  return value.is_string() ? std::strtod(value.get_ref<const std::string &>().c_str(), nullptr) : value.get<double>();
}

double Options::number(const char *name, double otherwise) const {
  return has(name) ? numberOf(values_[name]) : otherwise;
}

Shape Options::shape() const {
  Shape shape;
  for (int64_t size : integers("shape"))
    shape.push_back(size);
  return shape;
}

std::vector<Index> Options::indices() const {
  auto bound = [](const json &place) {
    return place.is_null() ? detail::Bound() : detail::Bound(place.get<int64_t>());
  };
  std::vector<Index> places;
  for (const json &place : values_.at("indices"))
    if (place.is_array())
      places.push_back(slice(bound(place[0]), bound(place[1]), place[2].get<int64_t>()));
    else if (place.is_string())
      places.push_back(place == "newaxis" ? Index(newaxis) : Index(ellipsis));
    else
      places.push_back(place.get<int64_t>());
  return places;
}

Axes Options::axes(const char *name) const {
  if (!has(name))
    return Axes::all();
  return values_[name].is_array() ? Axes(integers(name)) : Axes(integer(name));
}

DType Options::dtype(DType otherwise) const {
  return has("dtype") ? runtime::parseDType(text("dtype")).value() : otherwise;
}

static Tensor tensorOf(const json &array) {
  Shape shape;
  for (const json &size : array.at(1))
    shape.push_back(size.get<int64_t>());
  auto elements = [&]<class T>(T) {
    std::vector<T> values;
    for (const json &element : array.at(2))
      if constexpr (std::is_floating_point_v<T>)
        values.push_back(static_cast<T>(numberOf(element)));
      else
        values.push_back(static_cast<T>(element.get<int64_t>()));
    return Tensor::from(values, shape);
  };
  std::string dtype = array.at(0);
  switch (runtime::parseDType(dtype).value()) {
  case f64: return elements(double());
  case f32: return elements(float());
  case i64: return elements(int64_t());
  case i32: return elements(int32_t());
  case u8: return elements(uint8_t());
  case boolean: return elements(bool());
  default: throw std::runtime_error("no numbers of dtype " + dtype);
  }
}

static Case caseOf(const json &fields, const std::map<std::string, Tensor> &arrays, const std::string &line) {
  Case found{line, fields.at("name"), {}, {}, Options(fields.value("options", json::object())), 0, {}, ""};
  for (const json &operand : fields.at("in"))
    found.operands.push_back(operand.is_string() ? arrays.at(operand) : tensorOf(operand));
  for (const json &result : fields.at("out"))
    found.wanted.push_back(tensorOf(result));
  found.ulp = fields.value("ulp", 0.0);
  if (fields.contains("scale"))
    for (const json &scale : fields["scale"].is_array() ? fields["scale"] : json::array({fields["scale"]}))
      found.scale.push_back(scale.get<double>());
  found.closed = fields.value("closed", "");
  return found;
}

std::vector<Case> readTables(const std::string &folder) {
  std::set<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".jsonl")
      paths.insert(entry.path());
  std::vector<Case> cases;
  for (const std::filesystem::path &path : paths) {
    std::map<std::string, Tensor> arrays;
    std::ifstream file(path);
    std::string text;
    for (int number = 1; std::getline(file, text); ++number) {
      json fields = json::parse(text);
      if (fields.contains("array"))
        arrays.emplace(fields["array"], tensorOf(fields.at("is")));
      else
        cases.push_back(caseOf(fields, arrays, path.filename().string() + ":" + std::to_string(number)));
    }
  }
  return cases;
}

} // namespace wg::tests
