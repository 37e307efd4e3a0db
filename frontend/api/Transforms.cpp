#include <wengert/Transforms.h>

#include "frontend/staging/Apply.h"

namespace wg::detail {

Tensor fresh(const Tensor &x) { return identity(Located(x, Where())); }

void raiseNoVariables(const Where &where) {
  raiseOp("gradient", "No trainable variables were accessed while the function was being computed.",
          "read a trainable variable in the function", {}, where);
}

void raiseStaticPlace(int place) {
  raiseOp("value_and_grad",
          "argument " + std::to_string(place) + " is a number, an enum or a string, which has no gradient",
          "name places of tensors and variables", {}, {}, ErrorKind::type);
}

void checkPlaces(const std::vector<int> &places, size_t count, const Where &where) {
  for (int place : places)
    if (place < 0 || static_cast<size_t>(place) >= count)
      raiseOp("value_and_grad", "place " + std::to_string(place) + " of " + std::to_string(count) + " arguments",
              "places count from 0", {}, where);
}

Seeds seedsOf(const Targets &targets, const std::vector<Grad> &cotangents) {
  if (cotangents.size() != targets.list.size())
    raiseOp("vjp",
            std::to_string(cotangents.size()) + " cotangents for " + std::to_string(targets.list.size()) +
                " tensors of the function's value",
            "give them in the structure of the value", {}, targets.where);
  Seeds seeds;
  for (size_t i = 0; i < cotangents.size(); ++i)
    seeds.list.push_back(cotangents[i].has_value() ? cotangents[i].value()
                                                   : zeros_like(Located(targets.list[i].tensor, targets.where)));
  return seeds;
}

bool contains(const std::vector<int> &places, int place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

void VariablePlaces::add(const Variable &variable) { ids_.push_back(variable.defined() ? variable.id() : -1); }
void VariablePlaces::sort() { std::sort(ids_.begin(), ids_.end()); }
bool VariablePlaces::isSingle(const Variable &variable) const {
  auto [first, last] = std::equal_range(ids_.begin(), ids_.end(), variable.defined() ? variable.id() : -1);
  return last - first == 1;
}

static std::string listOf(const std::vector<std::string> &names) {
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::vector<char> chooseFields(const std::vector<std::string> &names, const std::vector<std::string> &fields,
                               const Where &where) {
  std::vector<char> chosen(fields.size());
  for (const std::string &name : names) {
    size_t at = static_cast<size_t>(std::find(fields.begin(), fields.end(), name) - fields.begin());
    if (at == fields.size())
      raiseOp("value_and_grad", "the first argument has no field '" + name + "'", "name one of: " + listOf(fields), {},
              where);
    if (chosen[at])
      raiseOp("value_and_grad", "field '" + name + "' is named twice", "name each field once", {}, where);
    chosen[at] = true;
  }
  return chosen;
}

std::string notChosen(const std::vector<std::string> &names) {
  return "not asked for: value_and_grad is by the fields " + listOf(names);
}

} // namespace wg::detail
