// The ops' samples (WG_Op::samples in ir/Dialect.td) as arrays and attributes: what the gradient and agreement checks run on.
//
//   "f64[2,3] in [-3, 3]; f64[2,3] = [1, 2, 3, 4, 5, 6] | axes = [0, 2]; dtype = f32"
#pragma once

#include "runtime/Op.h"

#include <string>
#include <string_view>
#include <vector>

namespace wg::tests {

struct Sample {
  runtime::OpId op;
  std::string text;
  std::vector<runtime::Array> operands;
  runtime::Attrs attrs;
};

/// Reads one sample. Operands written in f64 are made in `dtype`; values drawn from an interval depend on `seed` only.
runtime::Result<Sample> parseSample(runtime::OpId op, std::string_view text, runtime::DType dtype = runtime::DType::f64, uint64_t seed = 1);

struct SampleText {
  runtime::OpId op;
  const char *text;
};
/// Every sample of every op, in the order of the records.
const std::vector<SampleText> &allSamples();
/// The dtypes in which a sample runs: those that the op accepts where it is written in f64, else the one it is written in.
std::vector<runtime::DType> dtypesOf(const SampleText &sample);

/// Element i of `array` as a double.
double elementOf(const runtime::Array &array, int64_t i);

} // namespace wg::tests
