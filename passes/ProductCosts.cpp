#include "passes/ProductCosts.h"

#include "passes/Cheap.h"

#include "llvm/ADT/SmallVectorExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace wg::passes {

using runtime::Letter;
using runtime::Letters;

namespace {

/// Fitted, with the levels of memory.
constexpr Kind kCopies = {{0, 0, 1.2, 0.85}, {2.8, 0, 0.72, 1.1}}, kPacking = {{15, 0, 0.35, 3.1}, {3.2, 0, 1.2, 1.2}},
               kGathering = {{5.1, 0, 0.82, 3}, {3.2, 0, 0.89, 1.25}},
               kTurning = {{0.85, 0, 1.1, 0.67}, {3.2, 0, 1.2, 0.7}},
               kProducts = {{1.4, 1.6, 1.1, 1.2}, {5.5, 12, 0.69, 0.89}},
               kOuterProducts = {{0, 0, 1.1, 0.74}, {0, 8.4, 0.61, 0.75}},
               kElementwise = {{0.14, 0, 1.1, 0.65}, {3.3, 1.8, 0.65, 1}},
               kSums = {{1.1, 0.1, 1.2, 1.1}, {4.8, 0, 0.82, 0.91}};

/// Loads wait while there is arithmetic to do, but not for all of it. The memory counts `times`.
Estimate together(Estimate arithmetic, const Nest &nest, double elementBytes, const Kind &kind,
                  Estimate times = {1, 1}) {
  Estimate memory = memoryOf(nest, elementBytes, kind);
  memory = {memory.slowMemory * times.slowMemory, memory.fastMemory * times.fastMemory};
  auto both = [](double x, double y, double hidden) { return std::max(x, y) + hidden * std::min(x, y); };
  return {both(arithmetic.slowMemory * kind.slowMemory.arithmetic, memory.slowMemory, 0.49),
          both(arithmetic.fastMemory * kind.fastMemory.arithmetic, memory.fastMemory, 0.75)};
}
Estimate onBoth(double nanoseconds) { return {nanoseconds, nanoseconds}; }

constexpr Estimate kCall = {30, 30}; ///< nanoseconds of a kernel that does nothing
/// Nanoseconds of a cycle of multiply-adds.
constexpr double kCycle = 0.27;
/// What a tile takes, on one machine: a multiply-add waits for the one before it for so many cycles, in a sum of so
/// many terms for half as many; nanoseconds that a term, a vector that is stored and a tile take further; and the share
/// of the stores, or of the terms where these are less, that the other does not hide.
struct Tiles {
  double waits, halfTerms, term, store, tile, open;
};
constexpr Tiles kTilesOnSlow = {2.9, 26, 0.22, 0, 0.68, 0}, kTilesOnFast = {2.6, 22, 0.32, 0.31, 0.67, 0.42};
/// What a store of a part of a vector takes longer, on one of the machines.
constexpr Estimate kMaskedStore = {0, 0.15};
/// What a store into a line that the closest cache cannot keep takes longer.
constexpr double kCollided = 4;
/// Of a vector that is copied whole; of one that is moved about in registers, once, and of a pair; of an element that
/// is copied by itself.
constexpr Estimate kCopy = {0.71, 0.5}, kShuffle = {0.16, 0.125}, kOfPairs = {0.37, 0.25}, kElement = {0.18, 0.4};

/// Pieces of `height` and what is left over, as (how many, how high).
SmallVector<std::pair<double, double>, 2> cut(double size, double height) {
  SmallVector<std::pair<double, double>, 2> pieces;
  if (size >= height)
    pieces.push_back({std::floor(size / height), height});
  if (double rest = size - std::floor(size / height) * height; rest > 0)
    pieces.push_back({1, rest});
  return pieces;
}

/// The lanes that vectors along so many elements have.
double lanesFor(double size, double most) {
  return std::min(most, static_cast<double>(llvm::PowerOf2Ceil(static_cast<uint64_t>(std::max(2.0, size)))));
}

} // namespace

// ---- Letters --------------------------------------------------------------------------------------------------------

ProductCosts::ProductCosts(ir::ContractOp op, Machine machine)
    : elementBytes(op.getC().getType().getElementTypeBitWidth() / 8), machine(machine) {
  for (auto [letters, x] : {std::pair(op.lettersOfA(), op.getA()), std::pair(op.lettersOfB(), op.getB())})
    for (auto [letter, size] : llvm::zip_equal(letters, cast<RankedTensorType>(x.getType()).getShape()))
      sizes[letter] = size;
}

SmallVector<int64_t> ProductCosts::shapeBy(StringRef letters) const {
  return llvm::map_to_vector(letters, [&](char letter) { return sizes.lookup(letter); });
}

double ProductCosts::elements(StringRef letters) const {
  double count = 1;
  for (char letter : letters)
    count *= static_cast<double>(sizes.lookup(letter));
  return count;
}

std::string ProductCosts::withoutUnits(StringRef letters) const {
  std::string kept;
  for (char letter : letters)
    if (sizes.lookup(letter) != 1)
      kept += letter;
  return kept;
}

/// From one place of `letter` to the next in a tensor of such letters; 0 if it has none.
double ProductCosts::step(StringRef letters, char letter) const {
  size_t at = letters.find(letter);
  return at == StringRef::npos ? 0 : elements(letters.drop_front(at + 1));
}

// ---- Copies ---------------------------------------------------------------------------------------------------------

/// Loops over the letters of `space`; neighbours that every tensor steps through as one axis are one.
SmallVector<Loop, 8> ProductCosts::axesOf(const Order &order, StringRef space) const {
  SmallVector<Loop, 8> axes;
  for (char letter : space) {
    Loop axis{double(sizes.lookup(letter)), {step(order.a, letter), step(order.b, letter), step(order.c, letter)}};
    auto goesOn = [&](const Loop &last) {
      return llvm::all_of(llvm::zip_equal(last.steps, axis.steps), [&](auto pair) {
        auto [ofLast, ofAxis] = pair;
        return ofLast == ofAxis * axis.rounds;
      });
    };
    if (!axes.empty() && goesOn(axes.back()))
      axis.rounds *= axes.pop_back_val().rounds;
    axes.push_back(axis);
  }
  return axes;
}

Nest ProductCosts::blocks(ArrayRef<Loop> axes, std::optional<size_t> across, double lanes) const {
  return nestOfBlocks(axes, orderOfBlocks(axes, across, lanes, elementBytes), across, lanes);
}

/// How many times memory counts where blocks read, or write, parts of lines of so many bytes: what stays close by takes
/// less than the fit has it, what no cache holds more.
static Estimate timesOfBlocks(double bytes) {
  return bytes < 1e6 ? Estimate{1.2, 0.87} : bytes > 1.6e7 ? Estimate{1, 1.25} : onBoth(1);
}

Estimate ProductCosts::transpose(StringRef from, StringRef to) const {
  if (from == to)
    return {};
  SmallVector<Loop, 8> axes = axesOf({from.str(), "", to.str()}, to);
  Loop last = axes.back();
  auto outer = ArrayRef<Loop>(axes).drop_back();
  double count = elements(from), most = kVector / elementBytes, lanes = lanesFor(last.rounds, most);
  Estimate arithmetic;
  std::optional<size_t> across;
  for (auto [i, axis] : llvm::enumerate(outer))
    if (axis.steps[0] == 1)
      across = i;
  if (!across) { // runs are copied whole
    arithmetic = kCopy * (count / last.rounds * std::ceil(last.rounds / most));
  } else if (count <= kFewElements) {
    arithmetic = kElement * count;
  } else { // blocks of lanes x lanes are transposed in registers
    double high = axes[*across].rounds, wide = last.rounds;
    arithmetic =
        (lanes == 2 ? kOfPairs : kShuffle) * (count / high / wide * std::ceil(high / lanes) * std::ceil(wide / lanes) *
                                              (lanesFor(high, lanes) + lanesFor(wide, lanes)) / 2 * std::log2(lanes));
  }
  Nest nest = blocks(axes, across, across ? lanes : last.rounds);
  Estimate times = across ? timesOfBlocks(2 * count * elementBytes) : onBoth(1);
  return together(arithmetic, nest, elementBytes, kCopies, times) + kCall;
}

// ---- Products -------------------------------------------------------------------------------------------------------

double ProductCosts::leastProduct(const Order &order) const {
  std::string all = order.a;
  for (char letter : order.b)
    if (!StringRef(order.a).contains(letter))
      all += letter;
  return elements(all) * elementBytes / kVector * 0.5 * kCycle + cost(kCall);
}

/// The last letter is the one of which a tile takes several: the longest, if there are too few of the last.
static void longestLast(std::vector<Letter> &group, int64_t wanted) {
  if (group.size() < 2 || group.back().size >= wanted)
    return;
  auto longest =
      std::max_element(group.begin(), group.end(), [](const Letter &x, const Letter &y) { return x.size < y.size; });
  std::rotate(longest, longest + 1, group.end());
}

Estimate ProductCosts::product(const Order &order) const {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Letters letters({order.a, order.b, order.c}, shapeBy(order.a), shapeBy(order.b));
  auto endsC = [](ArrayRef<Letter> group) { return !group.empty() && group.back().c == 1; };
  if (endsC(letters.m))
    letters.exchange();
  for (std::vector<Letter> *group : {&letters.batch, &letters.m, &letters.n, &letters.k})
    mergeNeighbours(*group);
  auto &[batch, m, n, k, related] = letters;
  bool alongBatch = endsC(batch);
  std::vector<Letter> &inner = alongBatch ? batch : n;
  if (inner.empty()) // a single element, which a sum of products computes in vectors
    return onBoth(kNever);
  Letter lane = inner.back();
  inner.pop_back();
  // Vectors of elements that lie apart, or a product that is elementwise in vectors: never worth it.
  if (alongBatch && (lane.a != 1 || lane.b != 1 || k.empty()))
    return onBoth(kNever);
  double lanes = kVector / elementBytes, size = double(lane.size), vectors = std::ceil(size / lanes),
         terms = double(sizeOf(k));
  double most = alongBatch || (terms <= 64 && elements(order.c) * elementBytes > double(1 << 20)) ? 4 : 2;
  longestLast(m, 12);
  if (alongBatch)
    longestLast(n, int64_t(most));
  auto dense = llvm::find_if(k, [](const Letter &letter) { return letter.b == 1; });
  if (!alongBatch && lane.b != 1 && dense != k.end())
    std::rotate(dense, dense + 1, k.end());
  auto thrashes = [&](const Letter &letter) {
    return std::fmod(double(letter.b) * elementBytes, 2048) == 0 && terms >= 64;
  };
  bool liesFar =
      lane.b != 1 ? lane.size > 1 : terms * size * elementBytes > double(1 << 20) || (!k.empty() && thrashes(k.back()));
  if (!alongBatch && most == 2 && !liesFar && vectors > 2 && vectors <= 6 && std::fmod(size, 2 * lanes) != 0)
    most = vectors;
  double rows = m.empty() ? 1 : double(m.back().size), outerRows = double(sizeOf(m)) / rows;
  auto loopOf = [](const Letter &letter) {
    return Loop{double(letter.size), {double(letter.a), double(letter.b), double(letter.c)}};
  };

  // Of few terms, where c is more than caches hold, the tiles of some rows come one after another, and of very few
  // those of one row (codegen/emit/Contract, walksRows).
  double bytesOfC = elements(order.c) * elementBytes, rowBytes = size * elementBytes;
  bool walksRows = !alongBatch && !m.empty() && !k.empty() && lane.b == 1 && !liesFar && vectors > most &&
                   areRowsWritten(machine == Machine::slowMemory, terms, terms * rowBytes, bytesOfC),
       oneRow = walksRows && terms <= 6 && rowBytes < kPage && bytesOfC > double(32 << 20);
  auto rowsOf = [&](double wide) { return oneRow ? 1 : std::floor((wide == 5 ? 25 : 24) / wide); };
  // Tiles of `high` rows by `wide` vectors: two multiply-adds a cycle, or one, two loads, and in a long sum some cycles
  // before the next term's can begin.
  bool columnsOfN = alongBatch && !n.empty(), isHalf = size <= lanes / 2;
  double columns = columnsOfN ? double(n.back().size) : vectors, widest = std::min(most, columns);
  Estimate arithmetic;
  for (auto [panels, wide] : cut(columns, most))
    for (auto [tiles, high] : cut(rows, rowsOf(wide))) {
      double loads = alongBatch && !columnsOfN ? wide * (high + 1) : wide + high;
      auto tile = [&](double cyclesOfFma, const Tiles &on) {
        double waits = on.waits * terms / (terms + on.halfTerms),
               step = std::max({high * wide * cyclesOfFma, loads * 0.5, waits}) * kCycle + on.term, sums = terms * step,
               stores = high * wide * on.store;
        return std::max(sums, stores) + on.open * std::min(sums, stores) + on.tile;
      };
      Estimate each{tile(0.5, kTilesOnSlow), tile(isHalf ? 0.5 : 1, kTilesOnFast)};
      arithmetic = arithmetic + each * (panels * tiles);
    }
  if (!alongBatch && std::fmod(size, lanesFor(size, lanes)) != 0) // the last vector of a row
    arithmetic = arithmetic + kMaskedStore * rows;
  // Parts of lines whole pages apart: a set of the closest cache keeps eight.
  if (!m.empty() && std::min(rowsOf(widest), rows) > 8 && size * elementBytes < kLine &&
      std::fmod(double(m.back().c) * elementBytes, kPage) == 0)
    arithmetic = arithmetic + onBoth(rows * kCollided);
  double times =
      double(sizeOf(batch)) * outerRows * double(sizeOf(n)) / (columnsOfN ? columns : 1) * (columnsOfN ? vectors : 1);
  arithmetic = arithmetic * times;
  double high = std::min(rowsOf(widest), rows);

  // What its loops walk through: batch, n (in the order of outsideOfPanels), panels, rows of m, k.
  double panel = alongBatch ? (columnsOfN ? lanes : most * lanes) : most * lanes, width = std::min(panel, size);
  Estimate packing;
  Nest nest;
  for (const Letter &letter : alongBatch ? batch : runtime::outsideOfPanels(batch, m, n, k))
    nest.loops.push_back(loopOf(letter));
  Loop panels{std::ceil(size / panel), {panel * double(lane.a), panel * double(lane.b), panel * double(lane.c)}};
  double rowA = m.empty() ? 0 : double(m.back().a), rowC = m.empty() ? 0 : double(m.back().c);
  if (alongBatch) {
    nest.loops.push_back(panels);
    nest.inside = {SmallVector<Extent, 2>{{width, 1}, {high, rowA}}, {{width, 1}}, {{width, 1}, {high, rowC}}};
    if (columnsOfN) {
      for (const Letter &letter : ArrayRef(n).drop_back())
        nest.loops.push_back(loopOf(letter));
      double b = double(n.back().b), c = double(n.back().c);
      nest.loops.push_back({std::ceil(columns / most), {0, most * b, most * c}});
      nest.inside[1].push_back({widest, b});
      nest.inside[2].push_back({widest, c});
    }
  } else {
    if (!walksRows)
      nest.loops.push_back(panels);
    nest.inside = {SmallVector<Extent, 2>{{high, rowA}}, {{width, double(lane.b)}}, {{width, 1}, {high, rowC}}};
  }
  // Vectors of far rows that lie across two lines each.
  auto isOff = [&](const Letter &letter) {
    return letter.size > 1 && std::fmod(double(letter.b) * elementBytes, kLine) != 0;
  };
  bool crosses = lane.b == 1 && !k.empty() && double(k.back().b) * elementBytes >= kPage &&
                 terms * most * kVector > 32768 &&
                 (llvm::any_of(k, isOff) || llvm::any_of(n, isOff) || llvm::any_of(batch, isOff));
  bool packs = (crosses && rows > 2 * rowsOf(most)) || (liesFar && (lane.b != 1 || rows >= 4 * rowsOf(most)));
  if (packs && !alongBatch && k.empty()) // each vector is read once: never worth it
    return onBoth(kNever);
  if (packs && !alongBatch) {
    // Panels of b are copied: b is read once, and the copy lies as k's loops run.
    Nest copy{nest.loops, {}};
    for (const Letter &letter : k)
      copy.loops.push_back(loopOf(letter));
    copy.inside[1] = nest.inside[1];
    double places = double(sizeOf(batch)) * double(sizeOf(n)) * terms;
    Estimate moved;
    // Where so many rows are read a line each, nothing is fetched ahead.
    const Kind *kind = &kPacking;
    if (lane.b == 1) {
      moved = kCopy * (places * vectors);
    } else if (k.empty() || k.back().b != 1) {
      kind = &kGathering;
      moved = kElement * (places * size);
    } else {
      kind = &kTurning;
      lanes = lanesFor(size, lanes);
      for (auto [blocks, deep] : cut(double(k.back().size), lanes)) {
        double side = lanesFor(deep, lanes);
        moved = moved + kShuffle * (places / double(k.back().size) * blocks * std::ceil(size / side) * side *
                                    (2 + std::log2(side)));
      }
    }
    // Columns half a page or whole ones apart share a few sets of the closest cache: 512 x 256 took 25 us, 520 x 256
    // took 11.
    bool collides = kind == &kTurning && std::fmod(double(lane.b) * elementBytes, kPage / 2) == 0;
    packing = together({moved.slowMemory * (collides ? 2 : 1), moved.fastMemory * (collides ? 3 : 1)}, copy,
                       elementBytes, *kind);
    for (Loop &loop : nest.loops)
      loop.steps[1] = 0;
    width = std::min(most, vectors) * lanes;
    nest.inside[1] = {{width, 1}};
    double step = width;
    for (Letter &letter : llvm::reverse(k)) {
      letter.b = int64_t(step);
      step *= double(letter.size);
    }
  }
  for (const Letter &letter : ArrayRef(m).drop_back(m.empty() ? 0 : 1)) {
    nest.loops.push_back(loopOf(letter));
    nest.loops.back().steps[1] = 0;
  }
  if (!m.empty())
    nest.loops.push_back({std::ceil(rows / high), {high * rowA, 0, high * rowC}});
  if (walksRows)
    nest.loops.push_back(panels);
  for (const Letter &letter : k)
    nest.loops.push_back(loopOf(letter));
  // Where nothing is summed, most of it is written.
  return together(arithmetic, nest, elementBytes, k.empty() ? kOuterProducts : kProducts) + packing + kCall;
}

// ---- Sums of products -----------------------------------------------------------------------------------------------

/// Nanoseconds of a vector of products that are summed, of a row and of a run of neighbours that are summed.
constexpr double kSummed = 0.4, kSumRow = 1.1, kSumRun = 0.4;
/// Of a lane of a sum's vector that is loaded by itself, and how many times more memory counts then where it is that of
/// a tensor which caches close by do not hold; and of a lane that is where both operands of an elementwise product lie
/// across, each along another axis, from a small tensor or a large one (measured on the machine with fast memory).
constexpr Estimate kGathered = {0.078, 0.29};
constexpr Estimate kGatheredFar = {0.89, 1.45};
constexpr double kGatheredBytes = 1.5e6, kApart = 0.1, kApartFar = 0.24, kApartBytes = 256 << 10;
/// Of a vector of products that are stored, and of one that is moved about in registers, once; where nothing is, of a
/// run of one vector, of one of several, and of beginning a loop over such runs; and of an element of a tensor of more
/// than kFar bytes that is read across whole pages: such lines share a few sets of the caches.
constexpr Estimate kStored = {0.41, 0.29}, kAcross = {0.12, 0.047}, kShortRun = {0.38, 0.19}, kRun = {1.4, 0.43},
                   kRuns = {0.69, 0.35}, kShared = {1, 0.64};
constexpr double kFar = 2e6;

/// Products that nothing sums are an elementwise kernel, which goes through the result as it lies.
Estimate ProductCosts::elementwise(const Order &order) const {
  SmallVector<Loop, 8> axes = axesOf(order, order.c);
  Loop last = axes.back();
  auto outer = ArrayRef<Loop>(axes).drop_back();
  double count = elements(order.c), lanes = lanesFor(last.rounds, kVector / elementBytes), runs = count / last.rounds,
         vectors = std::ceil(last.rounds / lanes);
  Estimate arithmetic = kStored * (runs * vectors);
  const Loop *across = nullptr;
  Estimate apart;
  for (size_t tensor : {0, 1}) {
    const Loop *found = llvm::find_if(outer, [&](const Loop &axis) { return axis.steps[tensor] == 1; });
    if (last.steps[tensor] <= 1 || found == outer.end())
      continue;
    double bytes = elements(tensor == 0 ? order.a : order.b) * elementBytes;
    if (across && across != found) {
      apart = apart + onBoth((bytes > kApartBytes ? kApartFar : kApart) * runs * vectors * lanes);
      continue;
    }
    across = found;
    if (count <= kFewElements) {
      apart = apart + kElement * count;
      continue;
    }
    double blocks = runs / found->rounds * std::ceil(found->rounds / lanes) * vectors;
    arithmetic = arithmetic + kAcross * (blocks * lanes * std::log2(lanes));
    if (bytes > kFar && std::fmod(last.steps[tensor] * elementBytes, kPage) == 0)
      arithmetic = arithmetic + kShared * count;
  }
  if (!across)
    arithmetic = arithmetic + (vectors == 1 ? kShortRun : kRun) * runs +
                 kRuns * (outer.empty() ? 1 : runs / outer.back().rounds);
  Nest nest = blocks(axes, across ? std::optional<size_t>(across - outer.begin()) : std::nullopt, lanes);
  // Lines that are read and written by turns take longer than those that a sum reads.
  Estimate times = across ? timesOfBlocks((elements(order.a) + elements(order.b) + count) * elementBytes) : onBoth(1);
  return together(arithmetic, nest, elementBytes, kElementwise, times * 1.15) + apart + kCall;
}

bool ProductCosts::isCopied(std::string &letters, StringRef space) const {
  std::string copied = letters;
  llvm::sort(copied, [&](char x, char y) { return space.find(x) < space.find(y); });
  if (letters == copied || !paysForCopy(elements(letters), elements(space)))
    return false;
  // The neighbours that the walk finds one after another.
  auto runOf = [&](StringRef walked) {
    size_t count = 0;
    while (count < walked.size() && walked.drop_back(count).back() == space.drop_back(count).back())
      ++count;
    return elements(walked.take_back(count));
  };
  if (!readsShortRuns(runOf(letters), runOf(copied), elementBytes))
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
    return kCall;
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
  double lanes = kVector / elementBytes, count = elements(space), runs = count / last.rounds,
         arithmetic = runs * std::ceil(last.rounds / lanes) * kSummed, side = 1;
  if (!isSummed(last)) // vectors of rows, some of them side by side
    for (side = 8; side > std::max(1.0, std::ceil(last.rounds / lanes));)
      side /= 2;
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
  Estimate fetched = onBoth(1);             // what long runs cost of their lines: they are fetched ahead
  if (run > group && !nest.loops.empty()) { // of long rows several at a time
    double atOnce = run * elementBytes <= double(12 << 10) ? 1 : 8;
    Loop summed = nest.loops.pop_back_val();
    nest.loops.push_back(inSteps(summed, atOnce));
    nest.loops.push_back(inSteps(last, group));
    nest.loops.back().rounds = std::ceil(run / group);
    summed.rounds = std::min(summed.rounds, atOnce);
    nest.loops.push_back(summed);
    fetched = {0.94, 0.7};
  }
  Estimate gathered;
  for (size_t tensor : {0, 1})
    if (last.steps[tensor] > 1) {
      gathered = gathered + kGathered * (runs * std::ceil(last.rounds / lanes) * lanes);
      if (last.steps[tensor] * elementBytes >= kLine &&
          elements(tensor == 0 ? order.a : order.b) * elementBytes > kGatheredBytes)
        fetched = kGatheredFar;
    }
  arithmetic += count / terms * kSumRow / (isSummed(last) ? 1 : lanes * side) + runs / side * kSumRun;
  if (isSummed(last))
    nest.loops.push_back(inSteps(last, lanes));
  for (size_t tensor : {0, 1, 2})
    nest.inside[tensor] = {{std::min(side * lanes, last.rounds), last.steps[tensor]}};
  return together(onBoth(arithmetic) + gathered, nest, elementBytes, kSums, fetched) + kCall;
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
