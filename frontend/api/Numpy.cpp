// Tensors in .npy and .npz files.
#include "wengert/Numpy.h"

#include "frontend/ops/Operands.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"

namespace wg {

using runtime::Array;

/// The elements to be written; an error for a tensor that has none.
static Array arrayFor(const char *op, const Tensor &x, const Where &where) {
  x.body(where);
  if (x.symbolic())
    detail::raiseNoElements(op, x, where);
  return detail::arrayOf(x);
}

void save_npy(const std::string &path, const Tensor &x, Where where) {
  detail::refuseTraces("save_npy", where);
  if (runtime::Status status = runtime::writeNpy(path, arrayFor("save_npy", x, where)); !status.ok())
    detail::raise(status.take(), where);
}

Tensor load_npy(const std::string &path, Where where) {
  detail::refuseTraces("load_npy", where);
  auto array = detail::orOutOfMemory("load_npy", "the array of " + path, where, [&] { return runtime::readNpy(path); });
  if (!array.ok())
    detail::raise(array.take(), where);
  return detail::makeTensor(std::move(*array));
}

void save_npz(const std::string &path, const std::map<std::string, Tensor> &tensors, Where where) {
  detail::refuseTraces("save_npz", where);
  std::vector<std::pair<std::string, Array>> arrays;
  for (const auto &[name, tensor] : tensors)
    arrays.emplace_back(name, arrayFor("save_npz", tensor, where));
  if (runtime::Status status = runtime::writeNpz(path, arrays); !status.ok())
    detail::raise(status.take(), where);
}

std::map<std::string, Tensor> load_npz(const std::string &path, Where where) {
  detail::refuseTraces("load_npz", where);
  auto arrays =
      detail::orOutOfMemory("load_npz", "the arrays of " + path, where, [&] { return runtime::readNpz(path); });
  if (!arrays.ok())
    detail::raise(arrays.take(), where);
  std::map<std::string, Tensor> tensors;
  for (auto &[name, array] : *arrays)
    tensors.emplace(std::move(name), detail::makeTensor(std::move(array)));
  return tensors;
}

} // namespace wg
