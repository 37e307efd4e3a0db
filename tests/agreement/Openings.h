// The ways to leave sizes of a sample open.
#pragma once

#include "tests/Samples.h"

#include <set>

namespace wg::tests {

/// An entry of an attribute, or an axis of an operand.
using Place = std::pair<size_t, size_t>;

/// What is `?`: axes of operands, and entries of open attributes.
struct Opening {
  std::set<Place> axes, entries;
  bool everything = false;
};

/// Each axis alone, one axis of all operands, all axes, each entry of the attributes that may be open, everything.
std::vector<Opening> openingsOf(const Sample &sample);

/// The types of the operands, and the attributes, with `?`.
std::vector<runtime::TensorType> openTypes(const Sample &sample, const Opening &opening);
runtime::Attrs openAttrs(const Sample &sample, const Opening &opening);

/// The sample's attributes with `size` (its own if negative) in place of what is open.
runtime::Attrs attrsFor(const Sample &sample, const Opening &opening, int64_t size);
/// The sample's operands; an open axis has `size`, and what elements there are repeat.
std::vector<runtime::Array> operandsFor(const Sample &sample, const Opening &opening, int64_t size);

/// The sample, what is open of it, and the size that it has.
std::string nameOf(const Sample &sample, const Opening &opening, int64_t size);

/// Whether the sample says that its open sizes may be refused with this error.
bool isSpared(const Sample &sample, const std::string &error);

} // namespace wg::tests
