// Programs in the dialect's text, changed at random: what a hostile or careless author may write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wg::tests {

/// Numbers from a seed, the same on every machine.
class Dice {
public:
  explicit Dice(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// 0 <= result < n; n is positive.
  size_t below(size_t n) { return next() % n; }
  bool oneIn(size_t n) { return below(n) == 0; }
  template <class List> const auto &pick(const List &list) { return list[below(std::size(list))]; }

private:
  uint64_t state;
};

/// One of `corpus` after one to six changes: numbers become edge values, types and sizes change in one place or
/// throughout, tokens and lines are removed, doubled, moved, or taken from other programs, brackets and aliases nest,
/// functions call each other, attributes appear.
std::string mutant(const std::vector<std::string> &corpus, uint64_t seed);
/// The same of this text; `corpus` is what is taken from.
std::string mutantOf(const std::string &text, const std::vector<std::string> &corpus, Dice &dice);

} // namespace wg::tests
