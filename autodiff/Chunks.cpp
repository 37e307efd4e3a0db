// A function for so many lanes at a time: a loop over the chunks, and a call for what is left over.
#include "autodiff/Batch.h"
#include "autodiff/Writer.h"
#include "ir/Build.h"

#include <optional>

using namespace mlir;

namespace wg::autodiff {

/// x[begin:end].
static Value rowsOf(OpBuilder &b, Location loc, Value x, int64_t begin, int64_t end) {
  auto rank = static_cast<size_t>(cast<RankedTensorType>(x.getType()).getRank());
  SmallVector<OpFoldResult> starts(rank, b.getIndexAttr(0)), limits;
  for (size_t axis = 0; axis < rank; ++axis)
    limits.push_back(ir::sizeOf(b, loc, x, static_cast<int64_t>(axis)));
  starts[0] = b.getIndexAttr(begin);
  limits[0] = b.getIndexAttr(end);
  return ir::slice(b, loc, x, starts, limits, SmallVector<int64_t>(rank, 1));
}

/// x[begin, ...] of so many chunks as [chunks, chunk, ...].
static Value inChunks(OpBuilder &b, Location loc, Value x, int64_t chunks, int64_t chunk) {
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(chunks), b.getIndexAttr(chunk)};
  for (int64_t axis = 1; axis < cast<RankedTensorType>(x.getType()).getRank(); ++axis)
    sizes.push_back(ir::sizeOf(b, loc, x, axis));
  return ir::reshape(b, loc, rowsOf(b, loc, x, 0, chunks * chunk), sizes);
}

/// Of `chunks` chunks by one loop, whose body is the function for one: the results, all of which have lanes.
static SmallVector<Value> loopOverChunks(OpBuilder &b, Location loc, func::FuncOp lanes, ValueRange operands,
                                         ArrayRef<unsigned> places, int64_t chunks, int64_t chunk,
                                         SymbolTable &symbols) {
  Writer writer(symbols, loc, lanes.getSymName() + "_chunk");
  LoopParts parts;
  parts.length = chunks;
  SmallVector<Value> taken(operands.size());
  for (bool scanned : {true, false})
    for (auto [i, operand] : llvm::enumerate(operands))
      if (llvm::is_contained(places, i) == scanned) {
        Value given = scanned ? inChunks(b, loc, operand, chunks, chunk) : operand;
        (scanned ? parts.xs : parts.invariants).push_back(given);
        taken[i] = writer.argument(scanned ? ir::rowTypeOf(given.getType()) : given.getType());
      }
  func::FuncOp body = writer.finish(writer.call(lanes, taken));
  parts.body = nameOf(body);
  SmallVector<Value> results;
  for (Value stacked : makeLoop(b, loc, parts, body.getResultTypes()).getStacked()) {
    SmallVector<OpFoldResult> sizes{b.getIndexAttr(chunks * chunk)};
    for (int64_t axis = 2; axis < cast<RankedTensorType>(stacked.getType()).getRank(); ++axis)
      sizes.push_back(ir::sizeOf(b, loc, stacked, axis));
    results.push_back(ir::reshape(b, loc, stacked, sizes));
  }
  return results;
}

FailureOr<Batched> callInLanes(OpBuilder &b, Location loc, func::FuncOp function, ValueRange operands,
                               ArrayRef<unsigned> places, int64_t count, int64_t chunk, const BatchOptions &options) {
  SmallVector<SmallVector<Value>> parts(function.getNumResults());
  Batched all;
  int64_t begin = 0;
  if (chunk != count && count / chunk > 1) {
    FailureOr<BatchedFunction> made = batchedFunction(function, places, chunk, options);
    if (failed(made))
      return failure();
    if (llvm::all_of(made->results, [](bool has) { return has; })) {
      std::optional<SymbolTable> own;
      SymbolTable &symbols = options.symbols ? *options.symbols : own.emplace(function->getParentOp());
      begin = count / chunk * chunk;
      for (auto [part, result] : llvm::zip_equal(
               parts, loopOverChunks(b, loc, made->function, operands, places, count / chunk, chunk, symbols)))
        part.push_back(result);
      all.batched = made->results;
    }
  }
  // Once, where there are no lanes too, for the results' types.
  for (bool first = begin == 0; first || begin < count; begin += chunk, first = false) {
    int64_t size = chunk == count ? count : std::min(chunk, count - begin);
    SmallVector<Value> given(operands);
    if (chunk != count)
      for (unsigned place : places)
        given[place] = rowsOf(b, loc, given[place], begin, begin + size);
    FailureOr<BatchedFunction> made = batchedFunction(function, places, size, options);
    if (failed(made))
      return failure();
    func::FuncOp called = made->function;
    auto call =
        ir::CallOp::create(b, loc, called.getResultTypes(), FlatSymbolRefAttr::get(called.getSymNameAttr()), given);
    all.batched = made->results;
    for (auto [part, result] : llvm::zip_equal(parts, call.getResults()))
      part.push_back(result);
    if (chunk == count)
      break;
  }
  for (auto [part, isBatched] : llvm::zip_equal(parts, all.batched))
    all.values.push_back(part.size() == 1 || !isBatched ? part.front() : Value(ir::ConcatOp::create(b, loc, part, 0)));
  return all;
}

} // namespace wg::autodiff
