// MNIST's four files, as LeCun, Cortes and Burges laid them out.
#include "wengert/data/Dataset.h"

#include "frontend/ops/Operands.h"
#include "runtime/io/Idx.h"

#include <filesystem>

namespace wg::data {

/// The array of `directory/name`, or of its .gz; raises what is wrong with it.
static runtime::Array read(const std::string &directory, const std::string &name, int rank, const Where &where) {
  std::filesystem::path path = std::filesystem::path(directory) / name;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    path += ".gz";
  if (!std::filesystem::exists(path, ignored))
    detail::raise({.kind = ErrorKind::io,
                   .op = "load_mnist",
                   .message = "there is no " + name + " and no " + name + ".gz in " + directory,
                   .remedy = "name the directory that holds MNIST's four IDX files"},
                  where);
  runtime::Result<runtime::Array> array = detail::orOutOfMemory("load_mnist", "the elements of " + path.string(), where,
                                                                [&] { return runtime::readIdx(path.string()); });
  if (!array.ok())
    detail::raise(array.take(), where);
  if (array->dtype() != DType::u8 || array->shape().rank() != rank)
    detail::raise(
        {.kind = ErrorKind::io,
         .op = "load_mnist",
         .message = path.string() + " holds " + toString(array->type) + ", not u8 of rank " + std::to_string(rank)},
        where);
  return *array;
}

static Examples examples(const std::string &directory, const std::string &prefix, const Where &where) {
  runtime::Array images = read(directory, prefix + "-images-idx3-ubyte", 3, where),
                 labels = read(directory, prefix + "-labels-idx1-ubyte", 1, where);
  int64_t count = images.shape().dim(0), pixels = images.shape().dim(1) * images.shape().dim(2);
  if (labels.shape().dim(0) != count)
    detail::raise({.kind = ErrorKind::io,
                   .op = "load_mnist",
                   .message = directory + ": " + std::to_string(count) + " " + prefix + " images, but " +
                              std::to_string(labels.shape().dim(0)) + " labels"},
                  where);
  std::vector<float> x(static_cast<size_t>(count * pixels));
  std::vector<int32_t> y(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(images.data<uint8_t>()[i]) / 255;
  for (size_t i = 0; i < y.size(); ++i)
    if ((y[i] = labels.data<uint8_t>()[i]) > 9)
      detail::raise({.kind = ErrorKind::io,
                     .op = "load_mnist",
                     .message = directory + ": label " + std::to_string(y[i]) + " of example " + std::to_string(i) +
                                " is not a digit"},
                    where);
  return {Tensor::from(x, Shape{count, pixels}), Tensor::from(y)};
}

Split load_mnist(const std::string &directory, Where where) {
  return {examples(directory, "train", where), examples(directory, "t10k", where)};
}

} // namespace wg::data
