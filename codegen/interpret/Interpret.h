// Programs run op by op: eager mode's engine, and the oracle for everything that is compiled.
//
// `flatten` turns a function of wg ops into a flat list of rows over slots, in which calls and kernels have been
// replaced by their bodies; what a condition or a loop runs are programs of their own. `run` executes
// the rows with any engine: the runtime's kernels on arrays, or the front end's gate on tensors, so that a tape records
// what runs. An engine has
//     V constant(const runtime::Array &)                                     a value from a constant of the program
//     Status execute(const Row &, runtime::OpCallOf<V>, std::span<V> results) one row
#pragma once

#include "runtime/Op.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/LLVM.h"

#include <array>
#include <memory>
#include <vector>

namespace wg::codegen {

/// One op. Its operands, results and the slots that nobody reads after it lie one after the other in Program::slots.
struct Row {
  runtime::OpId op;
  uint16_t numResults = 0;
  uint32_t numOperands = 0;
  uint32_t numDead = 0;
  uint32_t first = 0;
  uint32_t firstOpen = 0;  ///< of its entries in Program::open
  uint32_t firstChild = 0; ///< of the bodies that it runs, in Program::children
  uint32_t numChildren = 0;
  runtime::Attrs attrs;
  runtime::Where where; ///< points into the MLIR context
};

/// A size that the program leaves open: of an axis of a row's operand, and the input behind it (-1: it is computed).
struct OpenSize {
  uint32_t operand;
  int32_t axis, input, inputAxis;
  /// The axis of the result that has the same size: a 1 is not repeated. -1 where the op asks for nothing.
  int32_t meets = -1;
};

/// Rows that run one after the other; a row may run bodies, which are programs. Slots hold first the inputs, then the
/// constants, then the rows' results.
struct Program {
  std::vector<Row> rows;
  std::vector<uint32_t> slots;
  std::vector<runtime::TensorType> inputs; ///< sizes may be dynamic; an index is i64[]
  std::vector<runtime::Array> constants;
  std::vector<uint32_t> outputs;
  std::vector<runtime::TensorType> results;             ///< of the outputs; sizes may be dynamic
  std::vector<std::shared_ptr<const Program>> children; ///< bodies of rows; equal ones are one program
  std::vector<OpenSize> open;                           ///< row by row, for errors and for what may not be repeated
  std::vector<std::string> names; ///< what errors call the inputs, where that is not `argument 0`, ...
  uint32_t numSlots = 0;
};

/// The rows of `function`. Calls of functions with a body are inlined, those of declarations become rows `call` whose
/// attribute names the callee. Emits a diagnostic and fails at an op that is no wg op, and at recursion.
mlir::FailureOr<Program> flatten(mlir::func::FuncOp function);

/// The first place in the user's source that a location names.
runtime::Where placeOf(mlir::Location location);

/// Executes the rows in order; a slot is freed after its last use. `inputs` have the program's types. On failure
/// returns that of the engine, with nothing in `outputs` changed.
template <class V, class Engine>
runtime::Status run(const Program &program, std::span<const V> inputs, std::span<V> outputs, Engine &&engine) {
  std::vector<V> values(program.numSlots);
  std::copy(inputs.begin(), inputs.end(), values.begin());
  for (size_t i = 0; i < program.constants.size(); ++i)
    values[inputs.size() + i] = engine.constant(program.constants[i]);
  std::array<V, 4> few;
  std::vector<V> many;
  for (const Row &row : program.rows) {
    const uint32_t *slots = program.slots.data() + row.first;
    size_t count = row.numOperands + row.numResults;
    std::span<V> held(few.data(), std::min(count, few.size()));
    if (count > few.size()) {
      many.resize(std::max(many.size(), count));
      held = std::span(many).first(count);
    }
    for (size_t i = 0; i < row.numOperands; ++i)
      held[i] = values[slots[i]];
    std::span<V> results = held.subspan(row.numOperands);
    runtime::Status status =
        engine.execute(row, runtime::OpCallOf<V>{row.op, row.attrs, held.first(row.numOperands), row.where}, results);
    if (!status.ok())
      return status;
    for (size_t i = 0; i < row.numResults; ++i)
      values[slots[row.numOperands + i]] = std::move(results[i]);
    for (V &value : held)
      value = V();
    for (size_t i = 0; i < row.numDead; ++i)
      values[slots[row.numOperands + row.numResults + i]] = V();
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = values[program.outputs[i]];
  return {};
}

/// The engine of kernels. An open size that is 1 is not repeated, and a failure names the inputs behind the sizes.
struct Kernels {
  const Program &program;
  runtime::Array constant(const runtime::Array &array) { return array; }
  runtime::Status execute(const Row &row, const runtime::OpCall &call, std::span<runtime::Array> results);
};
/// A row that runs bodies.
runtime::Status runBodies(const Program &program, const Row &row, const runtime::OpCall &call,
                          std::span<runtime::Array> results);

/// Checks number and types of the inputs, then runs on the kernels.
runtime::Result<std::vector<runtime::Array>> interpret(const Program &program, std::span<const runtime::Array> inputs);

} // namespace wg::codegen
