#include "passes/ProductCosts.h"

#include "llvm/ADT/SmallVectorExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace wg::passes {

using runtime::Letter;
using runtime::Letters;

namespace {

/// What a store into a line that the closest cache cannot keep takes longer.
constexpr double kCollided = 4;

/// What it takes to begin the loop over the last of several letters that are summed, and to end it. (138 terms of 73 x
/// 300, 103 times: 3.05 ms; as 46 x 3 of them 4.3.)
constexpr double kInnerLoop = 4;

/// Pieces of `height` and what is left over, as (how many, how high).
SmallVector<std::pair<double, double>, 2> cut(double size, double height) {
  SmallVector<std::pair<double, double>, 2> pieces;
  if (size >= height)
    pieces.push_back({std::floor(size / height), height});
  if (double rest = size - std::floor(size / height) * height; rest > 0)
    pieces.push_back({1, rest});
  return pieces;
}

} // namespace

Estimate ProductCosts::each(double Model::*what) const { return {{models.front()->*what, models.back()->*what}}; }

Estimate ProductCosts::together(Estimate arithmetic, const Nest &nest, Kind Model::*kind, Estimate times) const {
  Estimate memory = memoryOf(nest, elementBytes, models, kind) * times, all;
  for (auto [i, model] : llvm::enumerate(models)) {
    double x = arithmetic.on[i] * (model->*kind).arithmetic, y = memory.on[i];
    all.on[i] = std::max(x, y) + model->open * std::min(x, y);
  }
  return all;
}

double ProductCosts::rowsOfTile(double wide) const {
  return std::floor((model.registers == 32 ? wide == 5 ? 25 : 24 : 12) / wide);
}

// ---- Letters --------------------------------------------------------------------------------------------------------

ProductCosts::ProductCosts(ir::ContractOp op, Machine machine)
    : elementBytes(op.getC().getType().getElementTypeBitWidth() / 8), models(modelsOf(machine)),
      model(*models.front()) {
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
  LoopOrder order = orderOfBlocks(axes, across, lanes, elementBytes, model);
  return nestOfBlocks(axes, order, across, lanes, elementBytes, model);
}

Estimate ProductCosts::timesOfBlocks(double bytes) const {
  return bytes < 1e6 ? each(&Model::blocksClose) : bytes > 1.6e7 ? each(&Model::blocksFar) : onAll(1);
}

Estimate ProductCosts::transpose(StringRef from, StringRef to) const {
  if (from == to)
    return {};
  SmallVector<Loop, 8> axes = axesOf({from.str(), "", to.str()}, to);
  Loop last = axes.back();
  auto outer = ArrayRef<Loop>(axes).drop_back();
  double count = elements(from), most = model.vectorBytes / elementBytes, lanes = lanesFor(last.rounds, most);
  Estimate arithmetic;
  std::optional<size_t> across;
  for (auto [i, axis] : llvm::enumerate(outer))
    if (axis.steps[0] == 1)
      across = i;
  if (!across) { // runs are copied whole
    arithmetic = each(&Model::copy) * (count / last.rounds * std::ceil(last.rounds / most));
  } else if (count <= kFewElements) {
    arithmetic = each(&Model::element) * count;
  } else { // blocks of lanes x lanes are transposed in registers
    double high = axes[*across].rounds, wide = last.rounds;
    arithmetic = each(lanes == 2 ? &Model::ofPairs : &Model::shuffle) *
                 (count / high / wide * std::ceil(high / lanes) * std::ceil(wide / lanes) *
                  (lanesFor(high, lanes) + lanesFor(wide, lanes)) / 2 * std::log2(lanes));
  }
  Nest nest = blocks(axes, across, across ? lanes : last.rounds);
  arithmetic = arithmetic + each(&Model::piece) * (count / last.rounds * furtherPieces(last.rounds, lanes));
  Estimate times = across ? timesOfBlocks(2 * count * elementBytes) : onAll(1);
  return together(arithmetic, nest, &Model::copies, times) + onAll(kCall);
}

// ---- Products -------------------------------------------------------------------------------------------------------

double ProductCosts::products(const Order &order) const {
  std::string all = order.a;
  for (char letter : order.b)
    if (!StringRef(order.a).contains(letter))
      all += letter;
  return elements(all);
}

double ProductCosts::leastProduct(const Order &order) const {
  constexpr double kLeast = 0.4; // cycles of a multiply-add: two a cycle, and estimates may be a little less
  return products(order) * elementBytes / model.vectorBytes * kLeast * model.cycle + kCall;
}

double ProductCosts::ideal(const Order &order) const {
  double lines = (elements(order.a) + elements(order.b)) * elementBytes / kLine,
         written = elements(order.c) * elementBytes / kLine;
  Estimate arithmetic = each(&Model::cycle) * (products(order) * elementBytes / model.vectorBytes * model.fma), memory;
  for (auto [on, from] : llvm::zip(memory.on, models))
    for (const Level &level : from->levels)
      if (level.unit == kLine && lines + written > level.most)
        on += lines * level.read + written * level.written;
  double x = cost(arithmetic), y = cost(memory) * model.products.memory;
  return std::max(x, y) + model.open * std::min(x, y);
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
    return onAll(kNever);
  Letter lane = inner.back();
  inner.pop_back();
  // Vectors of elements that lie apart, or a product that is elementwise in vectors: never worth it.
  if (alongBatch && (lane.a != 1 || lane.b != 1 || k.empty()))
    return onAll(kNever);
  double lanes = model.vectorBytes / elementBytes, size = double(lane.size), vectors = std::ceil(size / lanes),
         terms = double(sizeOf(k));
  double bytesOfC = elements(order.c) * elementBytes, rowBytes = size * elementBytes, columnsAtOnce = 0;
  int wideAs = vectorsOfPanel(
      static_cast<int>(model.registers),
      {.alongBatch = alongBatch, .hasColumns = !n.empty(), .streams = false, .terms = terms, .bytesOfC = bytesOfC});
  double most = wideAs ? wideAs : 2;
  if (!k.empty())
    longestLast(m, int64_t(rowsOfTile(2)));
  if (alongBatch)
    longestLast(n, int64_t(most));
  auto dense = llvm::find_if(k, [](const Letter &letter) { return letter.b == 1; });
  if (!alongBatch && lane.b != 1 && dense != k.end())
    std::rotate(dense, dense + 1, k.end());
  auto thrashes = [&](double stride) { return std::fmod(stride * elementBytes, 2048) == 0 && terms >= 64; };
  bool thrashesB = !k.empty() && thrashes(double(k.back().b));
  bool packsA =
      !alongBatch && m.size() == 1 && k.size() == 1 && m[0].a == 1 && thrashes(double(k[0].a)) && size >= 8 * lanes;
  bool liesFar = lane.b != 1 ? lane.size > 1 : terms * rowBytes > double(1 << 20) || thrashesB;
  // Long sums of several tiles go in parts (codegen/emit/ContractParts).
  double part = 0, rowOfB = k.empty() ? 0 : double(k.back().b) * elementBytes;
  if (!alongBatch && batch.empty() && n.empty() && m.size() == 1 && k.size() == 1 && lane.b == 1 && !packsA &&
      !thrashesB && (rowOfB < kPage || std::fmod(rowOfB, kLine) == 0))
    part = termsOfPart({.terms = terms,
                        .rows = double(m[0].size),
                        .columns = size,
                        .elementBytes = elementBytes,
                        .lanes = lanes,
                        .accumulators = double(mostAccumulators(unsigned(model.registers)))});
  liesFar &= part == 0;
  if (!alongBatch && wideAs == 0 && !liesFar && vectors > 2 && vectors <= (model.registers == 32 ? 6 : 3) &&
      std::fmod(size, 2 * lanes) != 0)
    most = vectors;
  // Of few terms, where c is more than caches hold, the tiles of some rows come one after another, and of very few
  // those of one row (codegen/emit/ContractRows).
  bool mayWalk = !alongBatch && !m.empty() && !k.empty() && lane.b == 1 && !packsA && !thrashesB;
  std::vector<Letter> within = mayWalk ? runtime::withinRows(batch, m, n) : std::vector<Letter>();
  bool goAround = !within.empty() && rowsGoAround(model, terms, rowsOfTile(most),
                                                  double(sizeOf(within)) * size * terms * elementBytes, bytesOfC);
  if (mayWalk && !goAround && vectors > most)
    columnsAtOnce = columnsOfRows(model, {.terms = terms,
                                          .rows = double(sizeOf(m)),
                                          .columns = size,
                                          .elementBytes = elementBytes,
                                          .bytesOfC = bytesOfC,
                                          .tileRows = rowsOfTile(most),
                                          .panelColumns = most * lanes});
  bool walksRows = columnsAtOnce > 0;
  double run = goAround ? double(sizeOf(within)) * rowBytes : rowBytes;
  bool oneRow = (walksRows || goAround) && terms <= 6 && run < kPage && bytesOfC > double(32 << 20);
  liesFar &= !walksRows && !goAround;
  double rows = m.empty() ? 1 : double(m.back().size), outerRows = double(sizeOf(m)) / rows;
  auto loopOf = [](const Letter &letter) {
    return Loop{double(letter.size), {double(letter.a), double(letter.b), double(letter.c)}};
  };

  auto rowsOf = [&](double wide) { return oneRow ? 1 : rowsOfTile(wide); };
  auto heightOf = [&](double wide) {
    return packsA ? std::min(rowsOf(wide), rows) : rowsOfEachTile(rows, rowsOf(wide));
  };
  // Tiles of `high` rows by `wide` vectors: two multiply-adds a cycle, or one, two loads, and in a long sum some cycles
  // before the next term's can begin.
  bool columnsOfN = alongBatch && !n.empty(), isHalf = size <= lanes / 2;
  double columns = columnsOfN ? double(n.back().size) : vectors, widest = std::min(most, columns);
  double innerLoops = k.size() > 1 ? terms / double(k.back().size) : 0; // of a tile
  Estimate arithmetic;
  for (auto [panels, wide] : cut(columns, most))
    for (auto [tiles, high] : cut(rows, heightOf(wide))) {
      double loads = alongBatch && !columnsOfN ? wide * (high + 1) : wide + high;
      Estimate tile;
      for (auto [i, on] : llvm::enumerate(models)) {
        double waits = on->waits * terms / (terms + on->halfTerms),
               fma = high * wide * (isHalf ? on->halfFma : on->fma),
               sums = terms * (std::max({fma, loads * 0.5, waits}) * on->cycle + on->term),
               stores = high * wide * on->store;
        sums += innerLoops * kInnerLoop;
        tile.on[i] = std::max(sums, stores) + on->openStores * std::min(sums, stores) + on->tile;
      }
      arithmetic = arithmetic + tile * (panels * tiles);
    }
  if (std::fmod(size, lanesFor(size, lanes)) != 0) { // the last vector of a row
    double stores = rows * (columnsOfN ? columns / vectors : 1);
    arithmetic = arithmetic + each(&Model::maskedStore) * stores +
                 each(&Model::piece) * (stores * furtherPieces(size, lanesFor(size, lanes)));
  }
  // Parts of lines whole pages apart: a set of the closest cache keeps eight.
  if (!m.empty() && heightOf(widest) > 8 && size * elementBytes < kLine &&
      std::fmod(double(m.back().c) * elementBytes, kPage) == 0)
    arithmetic = arithmetic + onAll(rows * kCollided);
  double times =
      double(sizeOf(batch)) * outerRows * double(sizeOf(n)) / (columnsOfN ? columns : 1) * (columnsOfN ? vectors : 1);
  arithmetic = arithmetic * times;
  double high = heightOf(widest);
  // An a whose rows share sets of the caches is copied tile by tile, and then read as it lies.
  if (packsA) {
    arithmetic = arithmetic + each(&Model::copy) * (double(sizeOf(batch)) * terms * std::ceil(rows / high));
    k[0].a = int64_t(high);
  }

  // What its loops walk through: batch, n (in the order of outsideOfPanels), panels, rows of m, k.
  double panel = alongBatch ? (columnsOfN ? lanes : most * lanes) : most * lanes, width = std::min(panel, size);
  Estimate packing;
  Nest nest;
  std::vector<Letter> outside = batch;
  if (packsA)
    llvm::append_range(outside, n);
  else if (!alongBatch)
    outside = goAround ? runtime::outsideOfRows(batch, m, n, k) : runtime::outsideOfPanels(batch, m, n, k);
  llvm::append_range(nest.loops, llvm::map_range(outside, loopOf));
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
    if (!walksRows && !goAround)
      nest.loops.push_back(panels);
    else if (walksRows && columnsAtOnce < size)
      nest.loops.push_back(inSteps(loopOf(lane), columnsAtOnce));
    nest.inside = {SmallVector<Extent, 2>{{high, rowA}}, {{width, double(lane.b)}}, {{width, 1}, {high, rowC}}};
  }
  if (alongBatch && size < lanesFor(size, lanes) && (columnsOfN || !m.empty())) // parts of vectors are asked for ahead
    nest.asksAhead[columnsOfN ? 1 : 0] = elements(columnsOfN ? order.b : order.a) * elementBytes > kMiB;
  if (part != 0) {
    nest.loops.insert(nest.loops.begin(), inSteps(loopOf(k[0]), part));
    packing = each(&Model::copy) *
              (2 * rows * vectors * terms / part); // accumulators, which are loaded and stored once a part
    k[0].size = int64_t(part);
  }
  // Vectors of far rows that lie across two lines each.
  auto isOff = [&](const Letter &letter) {
    return letter.size > 1 && std::fmod(double(letter.b) * elementBytes, kLine) != 0;
  };
  bool crosses = lane.b == 1 && !k.empty() && double(k.back().b) * elementBytes >= kPage &&
                 terms * most * model.vectorBytes > 32768 &&
                 (llvm::any_of(k, isOff) || llvm::any_of(n, isOff) || llvm::any_of(batch, isOff));
  bool packs =
      part == 0 && ((crosses && rows > 2 * rowsOf(most)) || (liesFar && (lane.b != 1 || rows >= 4 * rowsOf(most))));
  if (packs && !alongBatch && k.empty()) // each vector is read once: never worth it
    return onAll(kNever);
  if (packs && !alongBatch) {
    // Panels of b are copied: b is read once, and the copy lies as k's loops run.
    Nest copy{nest.loops, {}, {}};
    for (const Letter &letter : k)
      copy.loops.push_back(loopOf(letter));
    copy.inside[1] = nest.inside[1];
    double places = double(sizeOf(batch)) * double(sizeOf(n)) * terms;
    Estimate moved;
    // Where so many rows are read a line each, nothing is fetched ahead.
    Kind Model::*kind = &Model::packing;
    if (lane.b == 1) {
      moved = each(&Model::copy) * (places * vectors);
    } else if (k.empty() || k.back().b != 1) {
      kind = &Model::gathering;
      moved = each(&Model::element) * (places * size);
    } else {
      kind = &Model::turning;
      lanes = lanesFor(size, lanes);
      for (auto [blocks, deep] : cut(double(k.back().size), lanes)) {
        double side = lanesFor(deep, lanes);
        moved = moved + each(&Model::shuffle) * (places / double(k.back().size) * blocks * std::ceil(size / side) *
                                                 side * (2 + std::log2(side)));
      }
    }
    // Columns half a page or whole ones apart share a few sets of the closest cache: 512 x 256 took 25 us, 520 x 256
    // took 11.
    bool collides = kind == &Model::turning && std::fmod(double(lane.b) * elementBytes, kPage / 2) == 0;
    packing = together(collides ? moved * each(&Model::collided) : moved, copy, kind);
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
    nest.loops.push_back({rows / high, {high * (packsA ? terms : rowA), 0, high * rowC}});
  if (goAround) {
    llvm::append_range(nest.loops, llvm::map_range(within, loopOf));
    nest.loops.push_back(panels);
  }
  if (walksRows) {
    panels.rounds = std::ceil(columnsAtOnce / panel);
    nest.loops.push_back(panels);
  }
  for (const Letter &letter : k)
    nest.loops.push_back(loopOf(letter));
  // Where nothing is summed, most of it is written.
  return together(arithmetic, nest, k.empty() ? &Model::outerProducts : &Model::products) + packing + onAll(kCall);
}

} // namespace wg::passes
