// What goes into a function and what comes out of it.
#include "tools/Arrays.h"
#include "tools/Program.h"

#include "runtime/io/Npy.h"

#include <iostream>

namespace wg::tools {

using runtime::Array;
using runtime::TensorType;

std::vector<Array> readArrays(const std::vector<std::string> &paths) {
  std::vector<Array> arrays;
  for (const std::string &path : paths)
    arrays.push_back(orFail(runtime::readNpy(orFail(runtime::InputFile::openArgument(path)))));
  return arrays;
}

bool accepts(const TensorType &taken, const TensorType &given) {
  bool fits = taken.dtype == given.dtype && taken.shape.rank() == given.shape.rank();
  for (int axis = 0; fits && axis < taken.shape.rank(); ++axis)
    fits = taken.shape.dim(axis) == runtime::kDynamic || taken.shape.dim(axis) == given.shape.dim(axis);
  return fits;
}

void checkInputs(const std::string &function, std::span<const TensorType> taken, std::span<const Array> given,
                 const std::vector<std::string> &paths) {
  if (taken.size() != given.size())
    fail({.op = function,
          .message = "takes " + std::to_string(taken.size()) + " inputs, got " + std::to_string(given.size()),
          .remedy = "give one --in file for each argument"});
  for (size_t i = 0; i < given.size(); ++i)
    if (!accepts(taken[i], given[i].type))
      fail({.kind = taken[i].dtype == given[i].dtype() ? runtime::ErrorKind::value : runtime::ErrorKind::type,
            .op = function,
            .message = "argument " + std::to_string(i) + " is " + toString(taken[i]) + ", " + paths[i] + " holds " +
                       toString(given[i].type),
            .remedy = "write the array with that dtype and shape"});
}

void giveResults(const std::string &function, std::span<const Array> results, const std::vector<std::string> &paths) {
  if (paths.empty())
    for (const Array &result : results)
      std::cout << toString(result.type) << " " << toString(result) << "\n";
  else if (paths.size() != results.size())
    fail({.op = function,
          .message = "has " + std::to_string(results.size()) + " results, got " + std::to_string(paths.size()) +
                     " --out files",
          .remedy = "give one --out file for each result, or none to print them"});
  orFail(runtime::writeNpy(paths, results));
}

} // namespace wg::tools
