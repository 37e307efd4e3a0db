// What a product costs that is written as a sum of products, or term by term.
#include "passes/Cheap.h"
#include "passes/ProductCosts.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace wg::passes {

/// Bytes from which on a tensor is none that caches close by hold, where a lane is loaded by itself; where both
/// operands lie across; and where columns are whole pages apart. Where so many bytes of a line of these are read at
/// once, or more, they have a part of their cost.
constexpr double kGatheredBytes = 1.5e6, kApartBytes = 256 << 10, kFar = 2e6, kFewOfLine = 16, kOfLongerRuns = 0.2;

/// Times that terms take longer than an elementwise kernel which reads as much.
constexpr double kTerms = 1.25;

/// Cycles that a row which is a part of a vector takes longer.
constexpr double kMaskedRow = 1.8;

std::string ProductCosts::summedIn(const Order &order) const {
  std::string summed;
  for (char letter : order.a + order.b)
    if (!StringRef(order.c + summed).contains(letter))
      summed += letter;
  return summed;
}

/// Products that nothing sums, or few terms of a sum, are an elementwise kernel, which goes through the result as it
/// lies.
Estimate ProductCosts::elementwise(const Order &order) const {
  SmallVector<Loop, 8> axes = axesOf(order, order.c);
  Loop last = axes.back();
  auto outer = ArrayRef<Loop>(axes).drop_back();
  double count = elements(order.c), lanes = lanesFor(last.rounds, model.vectorBytes / elementBytes),
         runs = count / last.rounds, vectors = std::ceil(last.rounds / lanes);
  std::string summed = summedIn(order);
  Estimate arithmetic = each(&Model::stored) * (runs * vectors) +
                        each(&Model::piece) * (runs * furtherPieces(last.rounds, lanes)) +
                        each(&Model::cycle) * (runs * vectors * (elements(summed) - 1));
  const Loop *across = nullptr;
  Estimate apart;
  std::array<StringRef, 2> letters = {order.a, order.b};
  auto partsOf = [&](size_t tensor) { // that the terms read
    double parts = 1;
    for (char letter : summed)
      if (letters[tensor].contains(letter))
        parts *= double(sizes.lookup(letter));
    return parts;
  };
  for (size_t tensor : {0, 1}) {
    const Loop *found = llvm::find_if(outer, [&](const Loop &axis) { return axis.steps[tensor] == 1; });
    if (last.steps[tensor] <= 1)
      continue;
    double bytes = elements(letters[tensor]) * elementBytes, parts = partsOf(tensor);
    if (found == outer.end() || (across && across != found)) { // a lane at a time
      apart = apart + each(bytes > kApartBytes ? &Model::apartFar : &Model::apart) * (runs * vectors * lanes * parts);
      continue;
    }
    across = found;
    if (count <= kFewElements) {
      apart = apart + each(&Model::element) * (count * parts);
      continue;
    }
    double blocks = runs / found->rounds * std::ceil(found->rounds / lanes) * vectors;
    arithmetic = arithmetic + each(&Model::across) * (blocks * lanes * std::log2(lanes) * parts);
    if (bytes > kFar && std::fmod(last.steps[tensor] * elementBytes, kPage) == 0)
      arithmetic = arithmetic +
                   each(&Model::shared) * (found->rounds * elementBytes < kFewOfLine ? count : count * kOfLongerRuns);
  }
  if (!across)
    arithmetic = arithmetic + each(vectors == 1 ? &Model::shortRun : &Model::run) * runs +
                 each(&Model::runs) * (outer.empty() ? 1 : runs / outer.back().rounds);
  Nest nest = blocks(axes, across ? std::optional<size_t>(across - outer.begin()) : std::nullopt, lanes);
  for (size_t tensor : {0, 1})
    for (char letter : summed)
      if (letters[tensor].contains(letter))
        nest.inside[tensor].push_back({double(sizes.lookup(letter)), step(letters[tensor], letter)});
  // Lines that are read and written by turns take longer than those that a sum reads.
  Estimate times = across ? timesOfBlocks((elements(order.a) + elements(order.b) + count) * elementBytes) : onAll(1);
  return together(arithmetic, nest, &Model::elementwise, times * 1.15) + apart + onAll(kCall);
}

bool ProductCosts::paysToCopy(StringRef from, StringRef copied, StringRef space) const {
  if (!paysForCopy(elements(copied), elements(space)))
    return false;
  double lies = 1, run = 1; // neighbours that the walk finds one after another, without a copy and with it
  bool goesOn = true;
  for (auto [letter, place] : llvm::zip(llvm::reverse(copied), llvm::reverse(space))) {
    if (letter != place)
      break;
    goesOn &= step(from, letter) == lies;
    run *= double(sizes.lookup(letter));
    lies *= goesOn ? double(sizes.lookup(letter)) : 1;
  }
  return readsShortRuns(lies, run, elementBytes);
}

Estimate ProductCosts::copyTermsReadOften(std::string &letters, StringRef summed, StringRef c) const {
  std::string from = letters, term, apart;
  for (char letter : c)
    if (StringRef(from).contains(letter))
      term += letter;
  for (char letter : summed)
    if (StringRef(from).contains(letter))
      apart += letter;
  if (from == apart + term || !paysToCopy(from, term, c))
    return {};
  letters = apart + term;
  return transpose(from, letters) + onAll(kCall * (elements(apart) - 1));
}

Estimate ProductCosts::terms(const Order &order) const {
  Order read = order;
  std::string summed = summedIn(order);
  Estimate copies = copyTermsReadOften(read.a, summed, order.c) + copyTermsReadOften(read.b, summed, order.c);
  return copies + elementwise(read) * kTerms;
}

bool ProductCosts::isCopied(std::string &letters, StringRef space) const {
  std::string copied = letters;
  llvm::sort(copied, [&](char x, char y) { return space.find(x) < space.find(y); });
  if (letters == copied || !paysToCopy(letters, copied, space))
    return false;
  letters = copied;
  return true;
}

Estimate ProductCosts::copyWhatIsReadOften(std::string &letters, StringRef space) const {
  std::string from = letters;
  return isCopied(letters, space) ? transpose(from, letters) : Estimate();
}

/// As its operands lie. A result whose letters are in another order is moved there.
Estimate ProductCosts::sum(const Order &order, StringRef space) const {
  if (space.empty()) // one element
    return onAll(kCall);
  Order read{order.a, order.b, ""};
  for (char letter : space)
    if (StringRef(order.c).contains(letter))
      read.c += letter;
  Estimate copies =
      copyWhatIsReadOften(read.a, space) + copyWhatIsReadOften(read.b, space) + transpose(read.c, order.c);
  return copies + (read.c.size() == space.size() ? elementwise(read) : sumInOrder(read, space));
}

Estimate ProductCosts::sumInOrder(const Order &order, StringRef space) const {
  SmallVector<Loop, 8> axes = axesOf(order, space);
  auto isSummed = [](const Loop &axis) { return axis.steps[2] == 0; };
  Loop last = axes.pop_back_val();
  double lanes = model.vectorBytes / elementBytes, count = elements(space), runs = count / last.rounds, side = 1;
  Estimate arithmetic = each(&Model::summed) * (runs * std::ceil(last.rounds / lanes));
  if (!isSummed(last)) // vectors of rows, some of them side by side
    side = std::clamp(std::ceil(last.rounds / lanes), 1.0, model.registers / 4);
  if (!isSummed(last) && last.rounds < lanesFor(last.rounds, lanes)) // each row is a part of a vector
    arithmetic = arithmetic + each(&Model::cycle) * (runs * kMaskedRow);
  // Of many rows that are more than a cache holds, long runs of columns are walked.
  double group = side * lanes, run = group, steps = 1, mostRead = 0;
  for (const Loop &axis : axes)
    steps *= isSummed(axis) ? axis.rounds : 1;
  for (size_t tensor : {0, 1})
    if (last.steps[tensor] == 1)
      mostRead = std::max(mostRead, elements(tensor == 0 ? order.a : order.b) * elementBytes);
  if (!isSummed(last) && side >= 4 && last.rounds >= 2 * group && steps >= 32 &&
      (steps * last.rounds * elementBytes > double(1 << 20) || mostRead > double(8 << 20)))
    run = std::min(65536 / elementBytes, last.rounds);
  Nest nest;
  double terms = isSummed(last) ? last.rounds : 1;
  for (bool summed : {false, true}) {
    for (const Loop &axis : axes)
      if (isSummed(axis) == summed) {
        nest.loops.push_back(axis);
        terms *= summed ? axis.rounds : 1;
      }
    if (!summed && !isSummed(last))
      nest.loops.push_back(inSteps(last, run));
  }
  Estimate fetched = onAll(1);              // what long runs cost of their lines: they are fetched ahead
  if (run > group && !nest.loops.empty()) { // of long rows several at a time
    double atOnce = run * elementBytes <= double(12 << 10) ? 1 : 8;
    Loop summed = nest.loops.pop_back_val();
    nest.loops.push_back(inSteps(summed, atOnce));
    nest.loops.push_back(inSteps(last, group));
    nest.loops.back().rounds = std::ceil(run / group);
    summed.rounds = std::min(summed.rounds, atOnce);
    nest.loops.push_back(summed);
    fetched = each(&Model::longRuns);
  }
  Estimate gathered;
  for (size_t tensor : {0, 1})
    if (last.steps[tensor] > 1) {
      gathered = gathered + each(&Model::gathered) * (runs * std::ceil(last.rounds / lanes) * lanes);
      if (last.steps[tensor] * elementBytes >= kLine &&
          elements(tensor == 0 ? order.a : order.b) * elementBytes > kGatheredBytes)
        fetched = each(&Model::gatheredFar);
    }
  arithmetic = arithmetic + each(&Model::sumRow) * (count / terms / (isSummed(last) ? 1 : lanes * side)) +
               each(&Model::sumRun) * (runs / side);
  if (isSummed(last))
    nest.loops.push_back(inSteps(last, lanes));
  for (size_t tensor : {0, 1, 2})
    nest.inside[tensor] = {{std::min(side * lanes, last.rounds), last.steps[tensor]}};
  return together(arithmetic + gathered, nest, &Model::sums, fetched) + onAll(kCall);
}

std::string ProductCosts::spaceOfSum(const Order &order) const {
  auto hasAll = [](StringRef letters, StringRef others) {
    return llvm::all_of(others, [&](char letter) { return letters.contains(letter); });
  };
  if (hasAll(order.c, order.a) && hasAll(order.c, order.b))
    return order.c;
  bool ofA = hasAll(order.a, order.b), ofB = hasAll(order.b, order.a);
  return ofA && (!ofB || order.a == order.b || cost(sum(order, order.a)) <= cost(sum(order, order.b))) ? order.a
                                                                                                       : order.b;
}

Estimate ProductCosts::sum(const Order &order) const { return sum(order, spaceOfSum(order)); }

} // namespace wg::passes
