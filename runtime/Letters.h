// Which letters does a product have, and what is each for?
//
// A product is an equation such as `bmk,bkn->bmn`: c = sum of a * b over the letters that c lacks. Each letter is in
// two of the three tensors or in all, and so of one of four groups:
//
//   batch  in a, b and c        m  in a and c        n  in b and c        k  in a and b
//
// The one place where letters are sorted: eager kernels, passes and the emitter of products ask here.
#pragma once

#include "runtime/Shape.h"
#include "runtime/Status.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wg::runtime {

/// The letters of the three tensors, one an axis, outermost first: parts of one text, `mk,kn->mn`, that outlives them.
struct Equation {
  std::string_view a, b, c;
  std::string text() const;
};

/// The parts of `mk,kn->mn`. Failure if it is not of that form, if a tensor has a letter twice, or if a letter is in
/// one tensor only.
Result<Equation> parseEquation(std::string_view text);
/// The parts of an equation that has been parsed before.
Equation partsOf(std::string_view text);

/// One letter, or several neighbours that each tensor steps through as one.
struct Letter {
  std::string names; ///< outermost first
  int64_t size = 1;
  int64_t a = 0, b = 0, c = 0; ///< steps in the three tensors, in elements; 0 where a tensor lacks it
};

/// The letters of one product by groups: batch, m and n in the order of c, k in that of a.
struct Letters {
  std::vector<Letter> batch, m, n, k;

  /// `shapeA` and `shapeB` are the row-major sizes of a and b, all known.
  Letters(const Equation &equation, std::span<const int64_t> shapeA, std::span<const int64_t> shapeB);

  /// The product with a and b exchanged; k stays in the order of what was a.
  void exchange();
};

/// The product of the letters' sizes; 1 for none, and the largest number where it is beyond 64 bits.
int64_t sizeOf(std::span<const Letter> letters);
/// The names of all in turn.
std::string namesOf(std::span<const Letter> letters);
/// Letters of size 1 have one place only: no tensor steps through them.
void dropUnits(std::vector<Letter> &letters);
/// Letters that follow each other become one where each tensor that has one of them has both side by side.
void mergeNeighbours(std::vector<Letter> &letters);

} // namespace wg::runtime
