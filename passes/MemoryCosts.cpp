#include "passes/MemoryCosts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace llvm;

namespace wg::passes {

namespace {

/// The units of `unit` elements each that the loops from `first` on touch of a tensor.
double touched(const Nest &nest, size_t first, size_t tensor, double unit) {
  SmallVector<Extent, 16> axes(ArrayRef(nest.inside[tensor]));
  for (const Loop &loop : ArrayRef(nest.loops).drop_front(first))
    axes.push_back({loop.rounds, loop.steps[tensor]});
  llvm::erase_if(axes, [](const Extent &axis) { return axis.size <= 1 || axis.step == 0; });
  llvm::sort(axes, [](const Extent &x, const Extent &y) { return x.step < y.step; });
  // A run of neighbours, and as many runs as there are places beyond it.
  double run = 1, runs = 1;
  for (auto [size, step] : axes)
    if (runs == 1 && step <= std::max(run, unit))
      run += step * (size - 1);
    else
      runs *= size;
  return runs * (1 + (run - 1) / unit);
}

/// The lines of a tensor that are read one after another, or by turns with those of so few other runs that processors
/// follow all of them (`followed`) and fetch the next lines ahead, before the loops go on elsewhere. Runs no more than
/// `gap` bytes apart are one.
double linesInARow(const Nest &nest, size_t tensor, double elementBytes, double followed, double gap) {
  SmallVector<Extent, 16> axes(ArrayRef(nest.inside[tensor]));
  llvm::sort(axes, [](const Extent &x, const Extent &y) { return x.step < y.step; });
  for (const Loop &loop : llvm::reverse(nest.loops))
    axes.push_back({loop.rounds, loop.steps[tensor]});
  double run = elementBytes, runs = 1;
  for (auto [size, step] : axes) {
    if (size <= 1 || step == 0)
      continue;
    if (double bytes = step * elementBytes; bytes > std::max(run + gap, kLine))
      runs *= size;
    else if (runs > followed)
      break;
    else
      run += bytes * (size - 1);
  }
  return std::max(1.0, run / kLine);
}

/// Whether of the lines that the loops from `first` on touch of a tensor more share a set of the closest cache than one
/// keeps (8; of a few more, loops find some again), as those whole pages apart do.
bool collide(const Nest &nest, size_t first, size_t tensor, double elementBytes, double lines) {
  constexpr double kKept = 12;
  double sets = 1;
  auto include = [&](double size, double step) {
    if (size <= 1 || step == 0)
      return;
    double bytes = step * elementBytes;
    sets *= bytes < kLine ? std::ceil(size * bytes / kLine)
                          : std::min(size, kPage / double(std::gcd(int64_t(bytes), int64_t(kPage))));
  };
  for (auto [size, step] : nest.inside[tensor])
    include(size, step);
  for (const Loop &loop : ArrayRef(nest.loops).drop_front(first))
    include(loop.rounds, loop.steps[tensor]);
  return lines > kKept * sets;
}

/// What the loops of a nest touch.
class Walk {
public:
  Walk(const Nest &nest, double elementBytes, double followed, double gap) : loops(nest.loops) {
    size_t depth = loops.size();
    for (auto [of, unit] : {std::pair(&lines, kLine), std::pair(&pages, kPage)}) {
      of->resize(depth);
      for (size_t first = 0; first < depth; ++first)
        for (size_t tensor = 0; tensor < 3; ++tensor)
          (*of)[first][tensor] = nest.inside[tensor].empty() ? 0 : touched(nest, first, tensor, unit / elementBytes);
    }
    collides.resize(depth);
    for (size_t tensor = 0; tensor < 3; ++tensor)
      if (!nest.inside[tensor].empty()) {
        inARow[tensor] = linesInARow(nest, tensor, elementBytes, followed, gap);
        if (nest.asksAhead[tensor])
          inARow[tensor] = std::max(inARow[tensor], kAskedInARow);
        for (size_t first = 0; first < depth; ++first)
          collides[first] |= collide(nest, first, tensor, elementBytes, lines[first][tensor]);
      }
  }

  /// A level keeps what its innermost loops touch together, as many loops as fit; the next one finds again what it does
  /// not move on from; those around find nothing. Of what fits as a whole nothing is counted: it is there already.
  double memory(ArrayRef<Level> levels, const Kind &kind) const {
    double all = 0;
    for (const Level &level : levels) {
      ArrayRef<Units> units = level.unit == kLine ? lines : pages;
      auto keeps = [&](size_t first, double kept) {
        auto [x, y, z] = units[first];
        return x + y + z <= kept && !(&level == levels.begin() && collides[first]);
      };
      for (double kept : {level.least, level.most}) {
        size_t fits = loops.size();
        while (fits > 0 && keeps(fits - 1, kept))
          --fits;
        if (fits == 0)
          continue;
        double rounds = 0.5;
        for (const Loop &loop : loops.take_front(fits - 1))
          rounds *= loop.rounds;
        Units missing = units[fits - 1];
        if (level.starts > 0)
          for (size_t tensor = 0; tensor < 3; ++tensor)
            missing[tensor] *= 1 + (tensor == 2 ? kind.startWritten : kind.startRead * level.starts) / inARow[tensor];
        all += rounds * ((missing[0] + missing[1]) * level.read + missing[2] * level.written);
      }
    }
    return all * kind.memory;
  }

private:
  static constexpr double kAskedInARow = 16; ///< as good as so many, of runs that are asked for ahead
  using Units = std::array<double, 3>;
  ArrayRef<Loop> loops;
  SmallVector<Units, 12> lines, pages; ///< by the loops from each one on
  SmallVector<bool, 12> collides;      ///< whether lines do that these touch
  Units inARow = {1, 1, 1};
};

} // namespace

Estimate memoryOf(const Nest &nest, double elementBytes, ArrayRef<const Model *> models, Kind Model::*kind) {
  constexpr double kFollowed = 16;                               // of all models, which were fitted with it
  Walk walk(nest, elementBytes, kFollowed, models.front()->gap); // one for all that are estimated at once
  Estimate memory;
  for (auto [on, model] : llvm::zip(memory.on, models))
    on = walk.memory(model->levels, model->*kind);
  return memory;
}

Loop inSteps(Loop axis, double by) {
  axis.rounds = std::ceil(axis.rounds / by);
  for (double &step : axis.steps)
    step *= by;
  return axis;
}

/// Of beginning each loop inside of the outermost one; that along rows is none where a vector is a row.
static double beginningOf(ArrayRef<Loop> loops, double begun) {
  double times = 1, all = 0;
  for (const Loop &loop : loops.drop_back()) {
    times *= loop.rounds;
    all += times * begun;
  }
  return loops.back().rounds > 1 ? all : all - times * begun;
}

static double elementsOf(ArrayRef<Loop> axes, size_t tensor) {
  double elements = 1;
  for (const Loop &axis : axes)
    elements *= axis.steps[tensor] == 0 ? 1 : axis.rounds;
  return elements;
}

constexpr double kLongRow = 256, kCloseBy = double(1 << 20); ///< bytes

double rowsAhead(ArrayRef<Loop> axes, const LoopOrder &order, std::optional<size_t> across, double lanes, size_t tensor,
                 double elementBytes, const Model &model) {
  constexpr double kShortRow = 5 * kLine, kApart = 512, kSoon = 1 << 18; // bytes
  constexpr double kLinesAhead = 128, kMostLines = 8, kRowsAhead = 32;
  auto stepOf = [&](size_t axis) { return axes[axis].steps[tensor]; };
  if (elementsOf(axes, tensor) * elementBytes <= kCloseBy)
    return 0;
  // A row, or that of blocks whose columns follow each other.
  const Loop &last = axes.back();
  double row = last.rounds, read = across ? axes[*across].rounds : 1;
  if (last.steps[tensor] != read || (across && (stepOf(*across) != 1 || (read > lanes && order.axes.back() != across))))
    return 0;
  row *= read * elementBytes;
  if (row > kShortRow)
    return 0;
  // The loops that move on in it, innermost first, until one reads on where rows end.
  double runs = 1, ahead = 0;
  for (size_t axis : llvm::reverse(order.axes)) {
    double step = stepOf(axis) * elementBytes, count = axes[axis].rounds;
    if (order.strips && order.strips->axis == axis)
      count = double(order.strips->places);
    if (count <= 1 || step == 0 || axis == across)
      continue;
    if (step > 0 && step <= row + kLine) {
      if (runs <= model.followed)
        return 0;
      if (runs * kLine <= kSoon)
        return std::max(std::ceil(row / kLine), std::clamp(std::ceil(kLinesAhead / runs), 1.0, kMostLines)) * kLine /
               elementBytes;
      break;
    }
    // Whole pages apart, lines share too few sets of the caches to be asked for into.
    if (runs == 1 && (std::abs(step) < kApart || std::fmod(step, kPage) == 0))
      return 0;
    if (runs < 2 * kRowsAhead)
      ahead = std::ceil(kRowsAhead / runs) * stepOf(axis);
    runs *= count;
  }
  return runs > model.followed ? ahead : 0;
}

Nest nestOfBlocks(ArrayRef<Loop> axes, const LoopOrder &order, std::optional<size_t> across, double lanes,
                  double elementBytes, const Model &model) {
  const Loop &last = axes.back();
  Nest nest;
  for (size_t tensor : {0, 1, 2}) {
    if (llvm::all_of(axes, [&](const Loop &axis) { return axis.steps[tensor] == 0; }))
      continue;
    nest.inside[tensor] = {{std::min(lanes, last.rounds), last.steps[tensor]}};
    if (across)
      nest.inside[tensor].push_back({std::min(lanes, axes[*across].rounds), axes[*across].steps[tensor]});
    nest.asksAhead[tensor] = tensor < 2 && rowsAhead(axes, order, across, lanes, tensor, elementBytes, model) != 0;
  }
  for (auto [at, axis] : llvm::enumerate(order.axes)) {
    Loop loop = axis == across ? inSteps(axes[axis], lanes) : axes[axis];
    if (order.strips && order.strips->outside == at)
      nest.loops.push_back(inSteps(axes[order.strips->axis], double(order.strips->places)));
    if (order.strips && order.strips->axis == axis)
      loop.rounds = double(order.strips->places);
    nest.loops.push_back(loop);
  }
  nest.loops.push_back(inSteps(last, lanes));
  return nest;
}

/// Where rows are long enough to be written whole, that in which the operand lies that is read across them; an axis
/// that does not move it reads all of it again, inside of the others. What is small stays in the caches close by.
static SmallVector<size_t> asItLies(ArrayRef<Loop> axes, std::optional<size_t> across, double elementBytes) {
  SmallVector<size_t> order = llvm::to_vector(llvm::seq(axes.size() - 1));
  if (!across)
    return order;
  auto isReadAcross = [&](size_t tensor) { return axes[*across].steps[tensor] == 1 && axes.back().steps[tensor] > 1; };
  if (!isReadAcross(0) && !isReadAcross(1))
    return order;
  size_t tensor = isReadAcross(0) && (!isReadAcross(1) || elementsOf(axes, 0) >= elementsOf(axes, 1)) ? 0 : 1;
  double read = elementsOf(axes, tensor);
  if (axes.back().rounds * elementBytes >= kLongRow && read >= elementsOf(axes, 2) / 2 &&
      read * elementBytes > kCloseBy)
    llvm::sort(order, [&](size_t x, size_t y) {
      return std::pair(-axes[x].steps[tensor], x) < std::pair(-axes[y].steps[tensor], y);
    });
  return order;
}

LoopOrder orderOfBlocks(ArrayRef<Loop> axes, std::optional<size_t> across, double lanes, double elementBytes,
                        const Model &model) {
  constexpr size_t kMostAxes = 4; // of which every order is estimated
  constexpr size_t kInStrips = 3; // of the cheapest orders, axes are
  // Rounds of the outermost loop, which threads share: fewer have to be worth it.
  constexpr double kShared = 8, kFewest = 4, kWorth = 1.3;
  constexpr double kClearly = 0.97, kStripsClearly = 0.95; // estimates are not that exact
  LoopOrder asIs{asItLies(axes, across, elementBytes), {}};
  if (asIs.axes.size() < 2 || asIs.axes.size() > kMostAxes)
    return asIs;
  auto rounds = [&](size_t axis) { return axis == across ? std::ceil(axes[axis].rounds / lanes) : axes[axis].rounds; };
  double shared = rounds(asIs.axes.front());
  auto costOf = [&](const LoopOrder &of) {
    Nest nest = nestOfBlocks(axes, of, across, lanes, elementBytes, model);
    double cost = Walk(nest, elementBytes, model.followed, model.gap).memory(model.ofOrders, model.orders) +
                  beginningOf(nest.loops, model.begun);
    return rounds(of.axes.front()) < std::min(kShared, shared) ? cost * kWorth : cost;
  };
  SmallVector<std::pair<double, LoopOrder>, 24> orders;
  LoopOrder order = asIs;
  llvm::sort(order.axes);
  do {
    if (order.axes == asIs.axes)
      orders.push_back({costOf(order) * kClearly, order});
    else if (rounds(order.axes.front()) >= std::min(kFewest, shared))
      orders.push_back({costOf(order), order});
  } while (std::next_permutation(order.axes.begin(), order.axes.end()));
  llvm::sort(orders, [](const auto &x, const auto &y) {
    return std::tie(x.first, x.second.axes) < std::tie(y.first, y.second.axes);
  });
  auto [least, best] = orders.front();
  // What caches close by hold is there again in any order.
  double bytes = 0, places = model.strips;
  for (size_t tensor : {0, 1, 2})
    bytes += elementsOf(axes, tensor) * elementBytes;
  if (bytes <= kCloseBy || places == 0 || across)
    return best;
  least *= kStripsClearly;
  for (const auto &[cost, plain] : ArrayRef(orders).take_front(kInStrips))
    for (size_t at = 1; at < plain.axes.size(); ++at)
      for (size_t outside = 0; axes[plain.axes[at]].rounds >= 2 * places && outside < at; ++outside) {
        LoopOrder inStrips{plain.axes, LoopOrder::Strips{plain.axes[at], outside, int64_t(places)}};
        if (double cost = costOf(inStrips); cost < least)
          least = cost, best = inStrips;
      }
  return best;
}

} // namespace wg::passes
