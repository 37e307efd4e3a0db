#include "tests/agreement/RandomEmit.h"

#include "autodiff/Forward.h"
#include "ir/Bridge.h"
#include "ir/Build.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace mlir;

namespace wg::tests {

using Values = SmallVector<Value>;

//===- Sizes that are not known ---------------------------------------------------------------------------------===//

runtime::TensorType Opened::typeOfInput(int input) const {
  runtime::TensorType type = program.inputs[static_cast<size_t>(input)].type;
  for (int64_t &n : type.shape)
    if (n == size)
      n = runtime::kDynamic;
  return type;
}

/// The size, of the first axis that has it.
static Value sizeIn(OpBuilder &b, Location loc, Block *body) {
  for (BlockArgument argument : body->getArguments())
    for (auto [axis, n] : llvm::enumerate(cast<RankedTensorType>(argument.getType()).getShape()))
      if (ShapedType::isDynamic(n))
        return ir::DimOp::create(b, loc, argument, static_cast<int64_t>(axis));
  return {};
}

std::optional<std::pair<runtime::Attrs, Values>>
Opened::step(OpBuilder &b, Location loc, const RandomProgram::Step &step, Values operands, Block *body) const {
  std::span<const runtime::AttrRecord> records = runtime::recordOf(step.op).attrs;
  auto shapeAt = std::find_if(records.begin(), records.end(),
                              [](const auto &attr) { return std::string_view(attr.name) == "shape"; }) -
                 records.begin();
  bool slices = step.op == runtime::OpId::slice;
  if (shapeAt == static_cast<ptrdiff_t>(records.size()) && !slices)
    return std::pair(step.attrs, operands);
  std::vector<runtime::AttrValue> values;
  for (size_t i = 0; i < step.attrs.size(); ++i)
    values.push_back(step.attrs[i]);
  ArrayRef<int64_t> from;
  if (!operands.empty())
    from = cast<RankedTensorType>(operands[0].getType()).getShape();
  if (slices) { // a dynamic axis is taken to its end
    runtime::Ints &limits = std::get<runtime::Ints>(values[1]);
    for (auto [axis, n] : llvm::enumerate(from))
      if (ShapedType::isDynamic(n) && limits[axis] == size) {
        limits[axis] = runtime::kDynamic;
        operands.push_back(sizeIn(b, loc, body));
      }
    return std::pair(runtime::Attrs(std::move(values)), operands);
  }
  runtime::Ints &shape = std::get<runtime::Ints>(values[static_cast<size_t>(shapeAt)]);
  Values sizes(shape.size()); // of the axes that open
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] == size)
      sizes[axis] = sizeIn(b, loc, body);
  if (step.op == runtime::OpId::broadcast)
    for (auto [axis, to] : llvm::enumerate(step.attrs.ints(1))) {
      size_t at = static_cast<size_t>(to);
      bool repeated = program.type(step.operands[0]).shape[axis] != shape[at];
      if (ShapedType::isDynamic(from[axis]) && repeated)
        return std::nullopt;
      if (!repeated) // an axis that is there keeps what is known of it
        sizes[at] = ShapedType::isDynamic(from[axis])
                        ? Value(ir::DimOp::create(b, loc, operands[0], static_cast<int64_t>(axis)))
                        : Value();
    }
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (sizes[axis]) {
      shape[axis] = runtime::kDynamic;
      operands.push_back(sizes[axis]);
    }
  return std::pair(runtime::Attrs(std::move(values)), operands);
}

//===- Derivatives ----------------------------------------------------------------------------------------------===//

namespace {

/// What a mode gives, null where nothing moves, and what each is to be multiplied by for one number: null for 1.
struct Derivative {
  Values values, weights;
};

} // namespace

/// Scalars: what each mode gives, as one number, then the sums of the magnitudes of what was added up for each.
static Values sumsOf(OpBuilder &b, Location loc, ArrayRef<Derivative> modes) {
  Values sums, magnitudes;
  for (const Derivative &mode : modes) {
    ir::Expr sum, magnitude;
    for (auto [value, weight] : llvm::zip_equal(mode.values, mode.weights)) {
      if (!value)
        continue;
      ir::Expr part(value, b, loc);
      if (weight)
        part = part * part.at(weight);
      SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, part.rank()));
      ir::Expr total = ir::sum(part, axes), size = ir::sum(ir::abs(part), axes);
      sum = sum ? sum + total : total;
      magnitude = magnitude ? magnitude + size : size;
    }
    if (!sum) { // nothing moves
      auto type = RankedTensorType::get({}, b.getF64Type());
      Value zero = ir::ConstantOp::create(b, loc, DenseElementsAttr::get(type, b.getF64FloatAttr(0)));
      sum = magnitude = ir::Expr(zero, b, loc);
    }
    sums.push_back(sum);
    magnitudes.push_back(magnitude);
  }
  sums.append(magnitudes);
  return sums;
}

//===- Programs -------------------------------------------------------------------------------------------------===//

namespace {

class Emitter {
public:
  Emitter(const RandomProgram &program, const Opened *opened)
      : program_(program), opened_(opened), b_(ir::context()), loc_(b_.getUnknownLoc()),
        emitted_{ModuleOp::create(loc_)} {}

  FailureOr<Emitted> run(Wanted wanted, bool called);

private:
  /// A function that takes the program's inputs.
  func::FuncOp begin(StringRef name);
  void end(func::FuncOp function, ValueRange results);
  /// The program's outputs.
  FailureOr<Values> steps(Block *body);
  LogicalResult derivatives(Wanted wanted, Block *body);
  LogicalResult inAllModes(ArrayRef<Value> sources, Block *body);
  FailureOr<Values> reversed(Values targets, Values seeds, ArrayRef<Value> sources);
  FailureOr<Values> forwarded(Values targets, ArrayRef<Value> sources, Values along);
  void replace(Operation *before, Operation *after);

  const RandomProgram &program_;
  const Opened *opened_;
  OpBuilder b_;
  Location loc_;
  Emitted emitted_;
  Values results_, targets_;
  SmallVector<Derivative> modes_; ///< in the order of kModes
};

} // namespace

func::FuncOp Emitter::begin(StringRef name) {
  b_.setInsertionPointToEnd(emitted_.module->getBody());
  auto function = func::FuncOp::create(b_, loc_, name, b_.getFunctionType({}, {}));
  Block *body = function.addEntryBlock();
  b_.setInsertionPointToStart(body);
  for (auto [i, input] : llvm::enumerate(program_.inputs))
    body->addArgument(
        ir::tensorTypeOf(b_.getContext(), opened_ ? opened_->typeOfInput(static_cast<int>(i)) : input.type), loc_);
  return function;
}

void Emitter::end(func::FuncOp function, ValueRange results) {
  func::ReturnOp::create(b_, loc_, results);
  function.setFunctionType(b_.getFunctionType(function.getBody().front().getArgumentTypes(), results.getTypes()));
}

FailureOr<Values> Emitter::steps(Block *body) {
  Values values(body->getArguments()), outputs;
  for (const RandomProgram::Step &step : program_.steps) {
    Values operands;
    for (int operand : step.operands)
      operands.push_back(values[static_cast<size_t>(operand)]);
    runtime::Attrs attrs = step.attrs;
    if (opened_) {
      auto opening = opened_->step(b_, loc_, step, operands, body);
      if (!opening)
        return failure();
      std::tie(attrs, operands) = std::move(*opening);
    }
    FailureOr<Operation *> op = ir::buildOp(b_, loc_, step.op, operands, attrs);
    if (failed(op))
      return failure();
    values.push_back((*op)->getResult(0));
  }
  for (int output : program_.outputs)
    outputs.push_back(values[static_cast<size_t>(output)]);
  return outputs;
}

/// A derivative replaces the calls that it passes.
void Emitter::replace(Operation *before, Operation *after) {
  auto replaceIn = [&](Values &values) {
    for (Value &value : values)
      if (value && value.getDefiningOp() == before)
        value = after->getResult(cast<OpResult>(value).getResultNumber());
  };
  replaceIn(results_);
  replaceIn(targets_);
  for (Derivative &mode : modes_)
    replaceIn(mode.values);
}

FailureOr<Values> Emitter::reversed(Values targets, Values seeds, ArrayRef<Value> sources) {
  autodiff::ReverseOptions options;
  auto replaced = [&](Operation *before, Operation *after) { replace(before, after); };
  options.replaced = replaced;
  FailureOr<autodiff::Gradients> made = autodiff::reverse(b_, loc_, targets, seeds, sources, options);
  return failed(made) ? FailureOr<Values>() : made->values;
}

FailureOr<Values> Emitter::forwarded(Values targets, ArrayRef<Value> sources, Values along) {
  autodiff::ForwardOptions options;
  auto replaced = [&](Operation *before, Operation *after) { replace(before, after); };
  options.replaced = replaced;
  FailureOr<autodiff::Tangents> made = autodiff::forward(b_, loc_, targets, sources, along, options);
  return failed(made) ? FailureOr<Values>() : made->values;
}

/// The derivatives of the sum of the targets. v and u become arguments of `body`.
LogicalResult Emitter::inAllModes(ArrayRef<Value> sources, Block *body) {
  Values v, u;
  for (Values *list : {&v, &u})
    for (Value source : sources)
      list->push_back(body->addArgument(source.getType(), loc_));
  /// What exists of a derivative.
  auto existing = [&](size_t mode) {
    Derivative kept;
    for (auto [value, weight] : llvm::zip_equal(modes_[mode].values, modes_[mode].weights))
      if (value) {
        kept.values.push_back(value);
        kept.weights.push_back(weight);
      }
    return kept;
  };
  auto add = [&](FailureOr<Values> values, Values weights) -> LogicalResult {
    if (failed(values))
      return failure();
    modes_.push_back({*values, std::move(weights)});
    return success();
  };
  if (failed(add(reversed(targets_, {}, sources), v)) ||
      failed(add(forwarded(targets_, sources, v), Values(targets_.size()))))
    return failure();
  for (size_t first : {0, 1}) {
    Derivative seeded = existing(first);
    if (failed(add(reversed(seeded.values, seeded.weights, sources), u)))
      return failure();
    seeded = existing(first);
    if (failed(add(forwarded(seeded.values, sources, u), seeded.weights)))
      return failure();
  }
  return success();
}

/// Appends to the results, which are the outputs, what is wanted.
LogicalResult Emitter::derivatives(Wanted wanted, Block *body) {
  Values sources;
  std::vector<size_t> places;
  for (auto [r, output] : llvm::enumerate(program_.outputs))
    if (runtime::isFloat(program_.type(output).dtype)) {
      emitted_.values.push_back(r);
      targets_.push_back(results_[r]);
    }
  for (auto [i, input] : llvm::enumerate(program_.inputs))
    if (runtime::isFloat(input.dtype())) {
      sources.push_back(body->getArgument(static_cast<unsigned>(i)));
      places.push_back(i);
    }
  if (wanted == Wanted::values)
    return success();
  if (wanted == Wanted::modeSums || wanted == Wanted::modes) {
    emitted_.sources = places;
    if (failed(inAllModes(sources, body)))
      return failure();
    if (wanted == Wanted::modeSums) {
      results_ = sumsOf(b_, loc_, modes_);
      return success();
    }
    emitted_.results.assign(results_.size(), "value");
    for (auto [mode, name] : llvm::zip_equal(modes_, kModes))
      for (Value value : mode.values)
        if (value) {
          results_.push_back(value);
          emitted_.results.push_back(name);
        }
    return success();
  }
  FailureOr<Values> first = reversed(targets_, {}, sources);
  if (failed(first))
    return failure();
  Values gradients, by, directions;
  for (auto [place, source, gradient] : llvm::zip_equal(places, sources, *first))
    if (gradient) {
      emitted_.sources.push_back(place);
      by.push_back(source);
      gradients.push_back(gradient);
    }
  if (wanted == Wanted::gradients) {
    emitted_.firstGradient = results_.size();
    results_.append(gradients);
    return success();
  }
  for (Value source : by)
    directions.push_back(body->addArgument(source.getType(), loc_));
  FailureOr<Values> second = reversed(gradients, directions, by);
  if (failed(second))
    return failure();
  results_.clear();
  for (auto [k, value] : llvm::enumerate(*second))
    if (value) {
      emitted_.twice.push_back(k);
      results_.push_back(value);
    }
  return success();
}

FailureOr<Emitted> Emitter::run(Wanted wanted, bool called) {
  func::FuncOp callee;
  if (called) {
    callee = begin("program");
    FailureOr<Values> outputs = steps(&callee.getBody().front());
    if (failed(outputs))
      return failure();
    end(callee, *outputs);
  }
  func::FuncOp function = begin("f");
  Block *body = &function.getBody().front();
  if (called) {
    auto call = ir::CallOp::create(b_, loc_, callee.getResultTypes(), callee.getSymName(), body->getArguments());
    results_ = Values(call.getResults());
  } else {
    FailureOr<Values> outputs = steps(body);
    if (failed(outputs))
      return failure();
    results_ = *outputs;
  }
  if (failed(derivatives(wanted, body)))
    return failure();
  end(function, results_);
  if (failed(verify(*emitted_.module)))
    return failure();
  if (std::getenv("WENGERT_SHOW"))
    emitted_.module->dump();
  return std::move(emitted_);
}

static std::optional<Emitted> emit(const RandomProgram &program, Wanted wanted, bool called, const Opened *opened) {
  std::string refusal;
  ScopedDiagnosticHandler handler(ir::context(), [&](Diagnostic &diagnostic) {
    refusal += diagnostic.str() + "\n";
    return success();
  });
  FailureOr<Emitted> emitted = Emitter(program, opened).run(wanted, called);
  if (succeeded(emitted))
    return std::move(*emitted);
  if (!opened)
    ADD_FAILURE() << refusal << toString(program);
  return std::nullopt;
}

Emitted emit(const RandomProgram &program, Wanted wanted, bool called) {
  std::optional<Emitted> emitted = emit(program, wanted, called, nullptr);
  return emitted ? std::move(*emitted) : Emitted{ModuleOp::create(UnknownLoc::get(ir::context()))};
}

std::optional<Emitted> emit(const RandomProgram &program, Wanted wanted, const Opened &opened) {
  return emit(program, wanted, false, &opened);
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

} // namespace wg::tests
