#include "autodiff/Cotangents.h"

#include "ir/Build.h"

#include <map>

using namespace mlir;

namespace wg::autodiff {

/// Zeros around something, of known number: what the transpose of a slice makes.
static bool isPiece(Value value) {
  auto pad = value.getDefiningOp<ir::PadOp>();
  return pad && pad.getSizes().empty() && llvm::all_of(pad.getInterior(), [](int64_t zeros) { return zeros == 0; }) &&
         cast<RankedTensorType>(pad.getX().getType()).hasStaticShape();
}

void Cotangents::add(Value primal, Value contribution, Location loc) {
  if (isPiece(contribution)) {
    pieces_[primal].push_back({contribution, loc});
    return;
  }
  Value &sum = sums_[primal];
  sum = sum ? ir::AddOp::create(b_, loc, sum, contribution).getResult() : contribution;
}

Value Cotangents::lookup(Value primal) {
  if (auto found = pieces_.find(primal); found != pieces_.end()) {
    SmallVector<Piece> pieces = std::move(found->second);
    pieces_.erase(found);
    for (Piece &piece : joined(std::move(pieces))) {
      Value &sum = sums_[primal];
      sum = sum ? ir::AddOp::create(b_, piece.loc, sum, piece.padded).getResult() : piece.padded;
    }
  }
  return sums_.lookup(primal);
}

/// Pieces that lie side by side along an axis become one, so that the parts of a split cost one copy of the whole and
/// not as many sums of it.
SmallVector<Cotangents::Piece> Cotangents::joined(SmallVector<Piece> pieces) {
  auto padOf = [](const Piece &piece) { return piece.padded.getDefiningOp<ir::PadOp>(); };
  const int64_t rank = cast<RankedTensorType>(pieces.front().padded.getType()).getRank();
  for (int64_t axis = rank - 1; axis >= 0 && pieces.size() > 1; --axis) {
    // Those that differ along this axis alone, in the order of their first piece; each as runs of neighbours.
    std::map<SmallVector<int64_t>, size_t> groupOf;
    SmallVector<SmallVector<Piece>> groups;
    for (Piece &piece : pieces) {
      if (!isPiece(piece.padded)) { // one that fills the whole
        groups.push_back({piece});
        continue;
      }
      SmallVector<int64_t> others;
      for (int64_t d = 0; d < rank; ++d)
        if (d != axis)
          others.append({padOf(piece).getLow()[d], padOf(piece).getHigh()[d]});
      auto [at, isNew] = groupOf.try_emplace(others, groups.size());
      if (isNew)
        groups.emplace_back();
      groups[at->second].push_back(piece);
    }
    pieces.clear();
    for (SmallVector<Piece> &group : groups) {
      if (group.size() == 1) {
        pieces.push_back(group.front());
        continue;
      }
      std::multimap<int64_t, Piece> byPlace;
      for (Piece &piece : group)
        byPlace.insert({padOf(piece).getLow()[axis], piece});
      std::multimap<int64_t, size_t> runEndingAt;
      SmallVector<SmallVector<Piece>> runs;
      for (auto &[place, piece] : byPlace) {
        int64_t end = place + cast<RankedTensorType>(padOf(piece).getX().getType()).getDimSize(axis);
        auto before = end == place ? runEndingAt.end() : runEndingAt.find(place);
        size_t run = runs.size();
        if (before == runEndingAt.end()) {
          runs.emplace_back();
        } else {
          run = before->second;
          runEndingAt.erase(before);
        }
        runs[run].push_back(piece);
        runEndingAt.insert({end, run});
      }
      for (SmallVector<Piece> &run : runs)
        pieces.push_back(run.size() == 1 ? run.front() : together(run, axis));
    }
  }
  return pieces;
}

Cotangents::Piece Cotangents::together(ArrayRef<Piece> run, int64_t axis) {
  auto first = run.front().padded.getDefiningOp<ir::PadOp>(), last = run.back().padded.getDefiningOp<ir::PadOp>();
  SmallVector<Value> parts;
  for (const Piece &piece : run)
    parts.push_back(piece.padded.getDefiningOp<ir::PadOp>().getX());
  Location loc = run.back().loc;
  Value whole = ir::ConcatOp::create(b_, loc, parts, axis);
  SmallVector<OpFoldResult> low, high;
  for (auto [d, before, after] : llvm::enumerate(first.getLow(), last.getHigh())) {
    low.push_back(b_.getIndexAttr(before));
    high.push_back(b_.getIndexAttr(after));
  }
  bool isWhole = whole.getType() == run.front().padded.getType();
  return {isWhole ? whole : ir::pad(b_, loc, whole, low, high, SmallVector<int64_t>(low.size(), 0)), loc};
}

Value Cotangents::orZeros(Value primal) {
  Value sum = lookup(primal);
  return sum ? sum : ir::zerosLike(b_, loc_, primal);
}

} // namespace wg::autodiff
