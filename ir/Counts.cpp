#include "ir/Counts.h"

#include "ir/Bridge.h"
#include "runtime/Extent.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <algorithm>
#include <map>
#include <set>

using namespace mlir;

namespace wg::ir {

static int64_t elementsOf(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

static bool isFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// The elements of `value` that its readers see, at most all.
static int64_t shownOf(Value value) {
  int64_t all = elementsOf(value), shown = 0;
  for (Operation *user : value.getUsers()) {
    if (!isa<View>(user))
      return all;
    shown = runtime::saturatingAdd(shown, shownOf(user->getResult(0)));
  }
  return std::min(all, shown);
}

/// Whether it is one operation of floats for each element, and not a move of them.
static bool isArithmetic(Operation &op) {
  if (!isa<Scalar>(op) || isa<StopGradientOp, VersionOp, OnesLikeOp, ZerosLikeOp>(op) || !isFloat(op.getResult(0)))
    return false;
  return llvm::all_of(op.getOperandTypes(), [&](Type type) { return type == op.getResult(0).getType(); });
}

/// The arithmetic of `op`; nothing if it does not say.
static std::optional<int64_t> flopsOf(Operation &op) {
  if (auto contract = dyn_cast<ContractOp>(op))
    return isFloat(contract.getC()) ? runtime::saturatingMul(2, numberOfTerms(contract.letters())) : 0;
  if (isa<Reduction>(op))
    return isFloat(op.getOperand(0)) && isFloat(op.getResult(0)) ? elementsOf(op.getOperand(0)) : 0;
  if (auto scatter = dyn_cast<ScatterAddOp>(op))
    return isFloat(op.getResult(0)) ? elementsOf(scatter.getUpdates()) : 0;
  if (auto add = dyn_cast<IndexAddOp>(op))
    return isFloat(op.getResult(0)) ? elementsOf(add.getUpdates()) : 0;
  if (isa<CumsumOp, CumprodOp, LinearRecurrenceOp>(op)) // all but the first of each row
    return isFloat(op.getResult(0))
               ? runtime::saturatingMul(isa<LinearRecurrenceOp>(op) ? 2 : 1, elementsOf(op.getResult(0)))
               : 0;
  if (auto solve = dyn_cast<TriangularSolveOp>(op)) {
    int64_t n = cast<RankedTensorType>(solve.getA().getType()).getShape().back();
    return runtime::saturatingMul(elementsOf(solve.getX()), solve.getUnitDiagonal() ? n - 1 : n);
  }
  if (isa<External>(op))
    return std::nullopt;
  return isArithmetic(op) && !op.hasTrait<IsTranscendental>() ? elementsOf(op.getResult(0)) : 0;
}

int64_t Counts::bytes() const { return runtime::saturatingAdd(bytesRead, bytesWritten); }

Counts countsOf(KernelOp kernel) {
  Counts counts;
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    std::optional<int64_t> flops = flopsOf(op);
    if (counts.flops)
      counts.flops = flops ? std::optional(runtime::saturatingAdd(*counts.flops, *flops)) : std::nullopt;
    if (isa<ContractOp>(op))
      counts.products = runtime::saturatingAdd(counts.products, *flops);
    if (op.hasTrait<IsTranscendental>() && isArithmetic(op))
      counts.transcendentals = runtime::saturatingAdd(counts.transcendentals, elementsOf(op.getResult(0)));
  }
  auto bytesOf = [](Value value, int64_t elements) {
    return runtime::saturatingMul(elements,
                                  static_cast<int64_t>(runtime::sizeOf(runtimeTypeOf(value.getType()).dtype)));
  };
  // By tensor outside: two inputs of the kernel may be the same one, each showing a part.
  llvm::SmallMapVector<Value, int64_t, 8> read;
  for (auto [outside, inside] : llvm::zip(kernel.getInputs(), kernel.getBlock()->getArguments()))
    read[outside] = std::min(elementsOf(outside), runtime::saturatingAdd(read[outside], shownOf(inside)));
  for (auto [value, elements] : read)
    counts.bytesRead = runtime::saturatingAdd(counts.bytesRead, bytesOf(value, elements));
  for (Value result : kernel.getResults())
    counts.bytesWritten = runtime::saturatingAdd(counts.bytesWritten, bytesOf(result, elementsOf(result)));
  return counts;
}

std::string linesOf(KernelOp kernel) {
  std::map<std::string, std::set<unsigned>> lines;
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (auto place = LocationAttr(op.getLoc()).findInstanceOf<FileLineColLoc>(); place && place.getLine() > 0)
      if (StringRef file = place.getFilename(); !file.contains("/include/c++/")) // called with a default argument
        lines[file.substr(file.rfind('/') + 1).str()].insert(place.getLine());
  std::string text;
  for (const auto &[file, numbers] : lines) {
    text += (text.empty() ? "" : "; ") + file + ":";
    for (auto first = numbers.begin(); first != numbers.end();) {
      auto last = first;
      while (std::next(last) != numbers.end() && *std::next(last) == *last + 1)
        ++last;
      text += (first == numbers.begin() ? "" : ", ") + std::to_string(*first) +
              (first == last ? "" : "-" + std::to_string(*last));
      first = std::next(last);
    }
  }
  return text;
}

} // namespace wg::ir
