// Which letters does a product have, and what is each for?
//
// A product is an equation such as `bmk,bkn->bmn`: c = sum of a * b over the letters that c lacks. Each letter is in
// two of the three tensors or in all, and so of one of four groups:
//
//   batch  in a, b and c        m  in a and c        n  in b and c        k  in a and b
//
// A convolution is a product whose equation has relations as well, `nhwc,rsco->npqo; h=2p+3r-1; w=2q+3s-1`. A relation
// is of three letters, one of a, one of b and one of c, which no other tensor has; a term exists for all of their
// places that fulfil it. So nothing is added up for what lies outside (padding is stored nowhere), and either
// derivative is the product with the same relations and two tensors exchanged.
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
  std::string_view relations = {}; ///< `h=2p+3r-1; w=2q+3s-1`
  std::string text() const;
};

/// `h = 2p + 3r - 1` of three letters, one of each tensor: ofA * a + ofB * b + ofC * c = constant.
struct Relation {
  char a, b, c;
  int64_t ofA, ofB, ofC, constant;
};

/// The parts of `mk,kn->mn` or `hc,rco->po; h=2p+3r-1`. Failure if it is not of that form, if a tensor has a letter
/// twice, if a letter without relation is in one tensor only, or if a relation's letters are not one of each tensor.
Result<Equation> parseEquation(std::string_view text);
/// The parts of an equation that has been parsed before.
Equation partsOf(std::string_view text);
/// Its relations, in order.
std::vector<Relation> relationsOf(const Equation &equation);

/// One letter, or several neighbours that each tensor steps through as one.
struct Letter {
  std::string names; ///< outermost first
  int64_t size = 1;
  int64_t a = 0, b = 0, c = 0; ///< steps in the three tensors, in elements; 0 where a tensor lacks it
};

/// The places at which two letters x and y are in range and fulfil ofX * x + ofY * y = rest: `count` of them from
/// (x, y) on, in steps; x ascends.
struct Run {
  int64_t count = 0, x = 0, y = 0, stepX = 1, stepY = 0;
};
Run runOf(int64_t ofX, int64_t sizeX, int64_t ofY, int64_t sizeY, int64_t rest);
/// The y < m with ofY * y = 1 modulo m, for numbers without a common divisor.
int64_t inverseOf(int64_t ofY, int64_t m);

/// The letters of one relation, with their sizes and steps.
struct Related {
  Letter a, b, c;
  int64_t ofA, ofB, ofC, constant;
};

/// The letters of one product by groups: batch, m and n in the order of c, k in that of a. Related letters are in none.
struct Letters {
  std::vector<Letter> batch, m, n, k;
  std::vector<Related> related;

  /// `shapeA` and `shapeB` are the row-major sizes of a and b, all known; `sizes` those of c's related letters, in the
  /// order of the relations.
  Letters(const Equation &equation, std::span<const int64_t> shapeA, std::span<const int64_t> shapeB,
          std::span<const int64_t> sizes = {});

  /// The product with a and b exchanged; k stays in the order of what was a.
  void exchange();
};

/// The product of the letters' sizes; 1 for none, and the largest number where it is beyond 64 bits.
int64_t sizeOf(std::span<const Letter> letters);
/// The products of two elements that the whole has; of related letters those are counted that have a place (where all
/// three are longer than 2^16: at most so many).
int64_t numberOfTerms(const Letters &letters);
/// The names of all in turn.
std::string namesOf(std::span<const Letter> letters);
/// Letters of size 1 have one place only: no tensor steps through them.
void dropUnits(std::vector<Letter> &letters);
/// Letters that follow each other become one where each tensor that has one of them has both side by side.
void mergeNeighbours(std::vector<Letter> &letters);
/// What the loops around a product's panels go through, outermost first: batches, and in each the letters of n. Where
/// nothing is summed a panel is written once and nothing is kept for the next one: then both as they lie in c. Where b,
/// of which a panel is read once, is most of what there is, and a is small or read once as well: as they lie in b.
std::vector<Letter> outsideOfPanels(std::span<const Letter> batch, std::span<const Letter> m, std::span<const Letter> n,
                                    std::span<const Letter> k);
/// The letters of batch and n that c has within each row, of whichever letter of m, as it has them, outermost first; or
/// all others, as outsideOfPanels has them.
std::vector<Letter> withinRows(std::span<const Letter> batch, std::span<const Letter> m, std::span<const Letter> n);
std::vector<Letter> outsideOfRows(std::span<const Letter> batch, std::span<const Letter> m, std::span<const Letter> n,
                                  std::span<const Letter> k);

} // namespace wg::runtime
