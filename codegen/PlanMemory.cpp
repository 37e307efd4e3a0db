#include "codegen/PlanMemory.h"

#include "codegen/EmitTurns.h"
#include "ir/Bridge.h"
#include "ir/Views.h"
#include "runtime/Extent.h"

#include <map>
#include <queue>
#include <set>

using namespace mlir;

namespace wg::codegen {

namespace {

constexpr int64_t kAlignment = 64;

int64_t bytesOf(Value value) { return runtime::extentOf(ir::runtimeTypeOf(value.getType()))->bytes; }
/// Of at most 2^62 bytes.
int64_t aligned(int64_t bytes) { return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment); }

/// Whether result `index` of `kernel` may lie in the memory of `argument`, which it reads.
bool mayOverwrite(ir::KernelOp kernel, unsigned index, Value argument) {
  for (auto [i, input] : llvm::enumerate(kernel.getInputs()))
    if (ir::storageOf(input) == argument && !kernel.getLoopsAttr().mayOverwrite(index, i))
      return false;
  return true;
}

/// The arena while a program runs: blocks that live until some position, and the gaps between them.
class Arena {
public:
  /// A block from `here` to `last`, in the smallest gap that holds it; positions come in ascending order. Beyond
  /// kMaxBytes nothing is placed any more; the sum says so.
  int64_t take(int64_t here, int64_t last, int64_t bytes) {
    release(here);
    if (top > runtime::kMaxBytes || bytes > runtime::kMaxBytes) {
      top = runtime::kMaxBytes + 1;
      return 0;
    }
    bytes = aligned(bytes);
    int64_t offset = top;
    if (auto gap = bySize.lower_bound({bytes, 0}); gap != bySize.end()) {
      offset = gap->second;
      int64_t left = gap->first - bytes;
      removeGap(offset);
      if (left > 0)
        addGap(offset + bytes, left);
    } else if (auto end = gaps.empty() ? gaps.end() : std::prev(gaps.end());
               end != gaps.end() && end->first + end->second == top) {
      offset = end->first; // it grows
      removeGap(offset);
    }
    top = std::max(top, offset + bytes);
    living[offset] = {last, bytes};
    expiries.push({last, offset});
    return offset;
  }

  /// Lets the block at `offset` live until `last`.
  void extend(int64_t offset, int64_t last) {
    living[offset].last = last;
    expiries.push({last, offset});
  }

  int64_t bytes() const { return top; }

private:
  struct Block {
    int64_t last, bytes;
  };

  /// Frees what is read before `here` for the last time.
  void release(int64_t here) {
    while (!expiries.empty() && expiries.top().first < here) {
      auto [last, offset] = expiries.top();
      expiries.pop();
      auto block = living.find(offset);
      if (block == living.end() || block->second.last != last)
        continue; // it has been extended
      int64_t bytes = block->second.bytes;
      living.erase(block);
      auto next = gaps.lower_bound(offset);
      if (next != gaps.end() && next->first == offset + bytes) {
        bytes += next->second;
        removeGap(next->first);
      }
      auto before = gaps.lower_bound(offset);
      if (before != gaps.begin() && std::prev(before)->first + std::prev(before)->second == offset) {
        offset = std::prev(before)->first;
        bytes += std::prev(before)->second;
        removeGap(offset);
      }
      addGap(offset, bytes);
    }
  }
  void addGap(int64_t offset, int64_t bytes) {
    gaps[offset] = bytes;
    bySize.insert({bytes, offset});
  }
  void removeGap(int64_t offset) {
    bySize.erase({gaps[offset], offset});
    gaps.erase(offset);
  }

  using Expiry = std::pair<int64_t, int64_t>; ///< last position, offset
  std::priority_queue<Expiry, std::vector<Expiry>, std::greater<>> expiries;
  DenseMap<int64_t, Block> living;              ///< by offset
  std::map<int64_t, int64_t> gaps;              ///< offset -> bytes; no two are neighbours
  std::set<std::pair<int64_t, int64_t>> bySize; ///< (bytes, offset)
  int64_t top = kWorkspaceHeader;
};

class Planner {
public:
  Planner(func::FuncOp function, SymbolTable &symbols, const DenseMap<Operation *, int64_t> &scratchBytes,
          ArrayRef<unsigned> known)
      : function(function), symbols(symbols), scratchBytes(scratchBytes), known(known) {}

  MemoryPlan run() {
    mlir::Block &body = function.getBody().front();
    Operation *terminator = body.getTerminator();
    int64_t position = 0;
    for (Operation &op : body) {
      auto kernel = dyn_cast<ir::KernelOp>(op);
      if (kernel ? kernel.getLoopsAttr().getMayFail() : ir::mayFail(&op))
        lastFailing = position;
      positions[&op] = position++;
    }
    end = position;
    for (auto [i, argument] : llvm::enumerate(body.getArguments()))
      plan.places[argument] = {Place::argument, static_cast<int64_t>(i)};
    plan.donated.assign(terminator->getNumOperands(), -1);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto result = function.getArgAttrOfType<IntegerAttr>(i, "wg.result"))
        plan.donated[result.getInt()] = i;
    placeResults(terminator);
    placeArena(body);
    for (Operation &op : body)
      if (auto reshape = dyn_cast<ir::ReshapeOp>(op))
        plan.places[reshape.getY()] = plan.places.lookup(ir::storageOf(reshape.getY()));
    finishCopies(terminator);
    plan.workspaceBytes = arena.bytes();
    return std::move(plan);
  }

private:
  /// The last position at which the memory of `value` is read; copies at the end count as `end`.
  int64_t lastRead(Value value) {
    auto [known, isNew] = lastReads.try_emplace(value, -1);
    if (!isNew)
      return known->second;
    int64_t last = -1;
    SmallVector<Value> waiting{value}; // with its reshapes, of which there may be many in a row
    while (!waiting.empty())
      for (Operation *user : waiting.pop_back_val().getUsers()) {
        if (isa<ir::ReshapeOp>(user))
          waiting.push_back(user->getResult(0));
        else
          last = std::max(last, user->hasTrait<OpTrait::IsTerminator>() ? end : positions.lookup(user));
      }
    lastReads[value] = last;
    return last;
  }

  void placeResults(Operation *terminator) {
    for (auto [r, operand] : llvm::enumerate(terminator->getOperands())) {
      Value root = ir::storageOf(operand);
      auto kernel = root.getDefiningOp<ir::KernelOp>();
      if (!(kernel || root.getDefiningOp<ir::WithBodies>()) || plan.places.count(root))
        continue;
      int64_t donated = plan.donated[r];
      if (donated < 0) {
        plan.places[root] = {Place::result, static_cast<int64_t>(r)};
        continue;
      }
      if (!kernel) // a loop reads what it was given while it writes
        continue;
      Value argument = function.getArgument(donated);
      // One that can fail has not written anything then; but a routine may have.
      bool mayHaveWritten = kernel.getKind() == ir::KernelKind::external && kernel.getLoopsAttr().getMayFail();
      if (positions.lookup(kernel) >= lastFailing + mayHaveWritten && lastRead(argument) <= positions.lookup(kernel) &&
          mayOverwrite(kernel, cast<OpResult>(root).getResultNumber(), argument))
        plan.places[root] = {Place::argument, donated};
    }
  }

  /// The place of a value that `kernel` is the last to read and that its result may be written over.
  std::optional<int64_t> takeOver(ir::KernelOp kernel, OpResult result, int64_t here, int64_t last) {
    for (Value input : kernel.getInputs()) {
      Value root = ir::storageOf(input);
      auto at = plan.places.find(root);
      if (at == plan.places.end() || at->second.kind != Place::arena || taken.contains(root) ||
          bytesOf(root) != bytesOf(result) || lastRead(root) != here ||
          !mayOverwrite(kernel, result.getResultNumber(), root))
        continue;
      taken.insert(root);
      arena.extend(at->second.index, last);
      return at->second.index;
    }
    return std::nullopt;
  }

  /// What a part of a loop's state is before each turn and what it is after it are the same rows, but for the first and
  /// the last one: where both are stacked, as a recurrence does for its derivative, they share their memory.
  void placeTogether(Operation *op, int64_t here) {
    for (const StacksOfState &stacks : stacksOfState(op, symbols)) {
      if (plan.places.count(stacks.before) || plan.places.count(stacks.after))
        continue;
      int64_t last = std::max({here, lastRead(stacks.before), lastRead(stacks.after)});
      int64_t row = bytesOf(stacks.before) / stacks.length;
      int64_t offset = arena.take(here, last, bytesOf(stacks.before) + row);
      plan.places[stacks.before] = {Place::arena, offset};
      plan.places[stacks.after] = {Place::arena, offset + row};
      taken.insert(stacks.before);
      taken.insert(stacks.after);
    }
  }

  void placeArena(mlir::Block &body) {
    for (Operation &op : body) {
      int64_t here = positions.lookup(&op);
      if (auto constant = dyn_cast<ir::ConstantOp>(op)) {
        plan.places[constant.getY()] = {Place::constant, static_cast<int64_t>(plan.constants.size())};
        plan.constants.push_back(constant);
      }
      auto kernel = dyn_cast<ir::KernelOp>(op);
      if (!kernel && !isa<ir::WithBodies>(op))
        continue;
      placeTogether(&op, here);
      for (Value result : op.getResults()) {
        if (plan.places.count(result))
          continue;
        int64_t last = std::max(here, lastRead(result)), bytes = bytesOf(result);
        std::optional<int64_t> offset = kernel ? takeOver(kernel, cast<OpResult>(result), here, last) : std::nullopt;
        plan.places[result] = {Place::arena, offset ? *offset : arena.take(here, last, bytes)};
      }
      if (int64_t bytes = scratchBytes.lookup(&op))
        plan.scratch[&op] = arena.take(here, here, bytes);
    }
  }

  /// Results that are not where they belong. Arguments that go to donated places are saved first, so that no copy
  /// reads what another has overwritten.
  void finishCopies(Operation *terminator) {
    SmallVector<MemoryPlan::Copy> saved, moved;
    for (auto [r, operand] : llvm::enumerate(terminator->getOperands())) {
      int64_t donated = plan.donated[r];
      Place to = donated >= 0 ? Place{Place::argument, donated} : Place{Place::result, static_cast<int64_t>(r)};
      Place from = plan.places.lookup(ir::storageOf(operand));
      if ((from.kind == to.kind && from.index == to.index) || llvm::is_contained(known, r))
        continue;
      int64_t bytes = bytesOf(operand);
      bool overwritten = from.kind == Place::argument && llvm::is_contained(plan.donated, from.index);
      if (overwritten) {
        Place temporary{Place::arena, arena.take(end, end, bytes)};
        saved.push_back({from, temporary, bytes});
        from = temporary;
      }
      moved.push_back({from, to, bytes});
    }
    plan.copies = std::move(saved);
    plan.copies.append(moved);
  }

  func::FuncOp function;
  SymbolTable &symbols;
  const DenseMap<Operation *, int64_t> &scratchBytes;
  ArrayRef<unsigned> known;
  MemoryPlan plan;
  DenseMap<Operation *, int64_t> positions;
  DenseMap<Value, int64_t> lastReads;
  DenseSet<Value> taken; ///< values whose places no other value may take over: one has, or they share them
  Arena arena;
  int64_t end = 0, lastFailing = -1;
};

} // namespace

MemoryPlan planMemory(func::FuncOp function, SymbolTable &symbols, const DenseMap<Operation *, int64_t> &scratchBytes,
                      ArrayRef<unsigned> known) {
  return Planner(function, symbols, scratchBytes, known).run();
}

} // namespace wg::codegen
