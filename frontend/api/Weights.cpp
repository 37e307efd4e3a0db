// Which tensors are in a weights file? Those of the variables, under their names.
#include "wengert/Weights.h"

#include "frontend/ops/Operands.h"
#include "runtime/io/Safetensors.h"

#include <map>
#include <ostream>
#include <set>

namespace wg {

void detail::refuseTraces(const char *op, const Where &where) {
  if (level().trace)
    raise({.kind = ErrorKind::runtime,
           .op = op,
           .message = "a traced function cannot read or write files",
           .remedy = "call it outside the function"},
          where);
}

std::string to_string(const RestoreReport &report) {
  std::string text = std::to_string(report.matched.size()) + " restored";
  auto list = [&](const char *what, const std::vector<std::string> &names) {
    if (!names.empty())
      text += std::string("\n  ") + what + ":";
    for (const std::string &name : names)
      text += " " + name;
  };
  list("missing in the file", report.missing);
  list("unused", report.unused);
  for (const RestoreReport::Mismatch &each : report.mismatched)
    text += "\n  " + each.name + " is " + toString(each.file) + " in the file, " + toString(each.program) +
            " in the program";
  return text;
}
std::ostream &operator<<(std::ostream &out, const RestoreReport &report) { return out << to_string(report); }

void save_weights(const std::string &path, const std::vector<nn::Module::Named> &variables, Where where) {
  detail::refuseTraces("save_weights", where);
  runtime::NamedArrays contents;
  std::set<std::string> names;
  for (const auto &[name, variable] : variables) {
    if (!names.insert(name).second)
      detail::raise({.op = "save_weights",
                     .message = "two variables are named `" + name + "`",
                     .remedy = "give each its own name"},
                    where);
    contents.arrays.emplace_back(name, detail::arrayOf(variable.value(where)));
  }
  if (runtime::Status status = runtime::writeSafetensors(path, contents); !status.ok())
    detail::raise(status.take(), where);
}

void load_weights(const std::string &path, const std::vector<nn::Module::Named> &variables, Where where) {
  detail::refuseTraces("load_weights", where);
  runtime::Result<runtime::NamedArrays> contents = detail::orOutOfMemory(
      "load_weights", "the tensors of " + path, where, [&] { return runtime::readSafetensors(path); });
  if (!contents.ok())
    detail::raise(contents.take(), where);
  std::map<std::string, const runtime::Array *> byName;
  for (const auto &[name, array] : contents->arrays)
    byName[name] = &array;

  std::vector<std::pair<std::shared_ptr<detail::VariableState>, Tensor>>
      loaded; // all of it, before the first variable changes
  for (const auto &[name, variable] : variables) {
    auto found = byName.find(name);
    if (auto unread = contents->unread.find(name); unread != contents->unread.end())
      detail::raise({.op = "load_weights",
                     .message = "`" + name + "` has dtype " + unread->second + " in " + path +
                                "; F64, F32, BF16, F16, I64, I32, U8 and BOOL are read",
                     .remedy = "convert it before it is saved"},
                    where);
    if (found == byName.end())
      detail::raise({.kind = ErrorKind::lookup,
                     .op = "load_weights",
                     .message = path + " holds no tensor `" + name + "`",
                     .remedy = "load into the model that was saved"},
                    where);
    TensorType wanted{variable.dtype(where), variable.shape(where)};
    if (!(found->second->type == wanted))
      detail::raise({.op = "load_weights",
                     .message = "`" + name + "` is " + toString(found->second->type) + " in " + path + ", and " +
                                toString(wanted) + " in the program",
                     .remedy = "load into the model that was saved"},
                    where);
    detail::currentValue(variable.state(), where); // a parameter of a traced function that has ended is an error
    loaded.emplace_back(variable.state(), detail::makeTensor(*found->second));
  }
  detail::exchangeValues(loaded);
}

} // namespace wg
