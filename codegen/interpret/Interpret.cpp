#include "codegen/interpret/Interpret.h"

#include "ir/Bridge.h"
#include "ir/Calls.h"
#include "ir/Program.h"
#include "ir/Sizes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace wg::runtime;

namespace wg::codegen {

/// Finds the place and the innermost name around it.
static void findPlace(Location location, Where &where) {
  if (auto file = dyn_cast<FileLineColLoc>(location)) {
    where.file = file.getFilename().data();
    where.line = file.getLine();
    where.column = file.getColumn();
  } else if (auto name = dyn_cast<NameLoc>(location)) {
    where.function = name.getName().data();
    findPlace(name.getChildLoc(), where);
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    findPlace(call.getCallee(), where);
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      if (!where.file)
        findPlace(part, where);
  }
}

Where placeOf(Location location) {
  Where where;
  findPlace(location, where);
  if (!where.file)
    return {};
  if (!where.function)
    where.function = "";
  return where;
}

namespace {

/// Appends the ops of a function, inlining as it goes; `slotOf` knows the values in scope.
class Flattener {
public:
  /// What is known of a module's functions, for all programs that are made of them.
  struct Shared {
    explicit Shared(func::FuncOp function) : symbols(function->getParentOfType<ModuleOp>()) {}
    SymbolTable symbols;
    DenseMap<Operation *, std::shared_ptr<const Program>> bodies;
    int depth = 0;
  };
  Flattener(Program &program, func::FuncOp function, Shared &shared)
      : program_(program), function_(function), shared_(shared), symbols_(shared.symbols) {}

  LogicalResult run();

private:
  /// A block that is being appended, for the call or kernel whose results its terminator has; null for the function.
  struct Open {
    Block::iterator next;
    Operation *op;
  };
  void open(Block &body, Operation &op);
  LogicalResult append(Operation &op);
  void row(Operation &op, OpId id);
  void constant(Operation &op, Array value);
  LogicalResult bodies(ir::WithBodies op);
  void findLastUses();

  Program &program_;
  func::FuncOp function_;
  Shared &shared_;
  SymbolTable &symbols_;
  DenseMap<Value, uint32_t> slotOf_;
  ir::OpenSizes sizes_;
  SmallVector<Open> open_; // explicit: calls may nest deeper than a thread's stack
  // Constants come before results in the slots, and are known only at the end: until then they are numbered from here.
  static constexpr uint32_t kConstant = 0x80000000u;
  uint32_t next_ = 0;
};

} // namespace

void Flattener::constant(Operation &op, Array value) {
  slotOf_[op.getResult(0)] = kConstant + static_cast<uint32_t>(program_.constants.size());
  program_.constants.push_back(std::move(value));
}

void Flattener::row(Operation &op, OpId id) {
  Row row{.op = id, .attrs = ir::attrsOf(&op), .where = placeOf(op.getLoc())};
  row.first = static_cast<uint32_t>(program_.slots.size());
  row.firstOpen = static_cast<uint32_t>(program_.open.size());
  sizes_.results(&op);
  auto broadcast = dyn_cast<ir::BroadcastOp>(op);
  for (OpOperand &operand : op.getOpOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.get().getType()); type && !type.hasStaticShape())
      for (int64_t axis = 0; axis < type.getRank(); ++axis)
        if (auto origin = sizes_.of(operand.get(), axis); origin && type.isDynamicDim(axis))
          program_.open.push_back({operand.getOperandNumber(), static_cast<int32_t>(axis),
                                   static_cast<int32_t>(origin->argument), static_cast<int32_t>(origin->axis),
                                   broadcast ? static_cast<int32_t>(broadcast.getDims()[axis]) : -1});
  row.numOperands = op.getNumOperands();
  row.numResults = static_cast<uint16_t>(op.getNumResults());
  for (Value operand : op.getOperands())
    program_.slots.push_back(slotOf_.lookup(operand));
  for (Value result : op.getResults())
    program_.slots.push_back(slotOf_[result] = next_++);
  program_.rows.push_back(std::move(row));
}

void Flattener::open(Block &body, Operation &op) {
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), op.getOperands())) {
    slotOf_[argument] = slotOf_.lookup(operand);
    sizes_.enter(argument, operand);
  }
  open_.push_back({body.begin(), &op});
}

static bool isScalarRepeated(Value value) {
  auto broadcast = value.getDefiningOp<ir::BroadcastOp>();
  return broadcast && broadcast.getX().getType().getRank() == 0 && broadcast.getType().hasStaticShape();
}

/// A scalar that is repeated only for ops whose loops take it as it is (runtime/Op.h, execute) beside an operand of
/// the full shape: no row is needed.
static bool isTakenAsScalar(ir::BroadcastOp broadcast) {
  return isScalarRepeated(broadcast) && llvm::all_of(broadcast->getUses(), [&](OpOperand &use) {
           Operation *user = use.getOwner();
           std::optional<OpId> id = ir::opIdOf(user);
           return id && recordOf(*id).loops && user->getNumOperands() == 2 &&
                  !isScalarRepeated(user->getOperand(1 - use.getOperandNumber()));
         });
}

LogicalResult Flattener::append(Operation &op) {
  if (auto broadcast = dyn_cast<ir::BroadcastOp>(op); broadcast && isTakenAsScalar(broadcast))
    return slotOf_[broadcast] = slotOf_.lookup(broadcast.getX()), success();
  if (auto literal = dyn_cast<ir::ConstantOp>(op)) {
    try {
      return constant(op, ir::arrayOf(literal.getValue())), success();
    } catch (const std::bad_alloc &) { // a splat may be of any size
      return op.emitOpError("out of memory for ") << toString(ir::runtimeTypeOf(literal.getType()));
    }
  }
  if (auto index = dyn_cast<arith::ConstantOp>(op))
    if (auto value = dyn_cast<IntegerAttr>(index.getValue()); value && index.getType().isIndex())
      return constant(op, Array::scalar(value.getInt())), success();
  if (auto call = dyn_cast<ir::CallOp>(op)) {
    auto callee = symbols_.lookup<func::FuncOp>(call.getCallee());
    if (callee.isDeclaration())
      row(op, OpId::call);
    else
      open(callee.getBody().front(), op);
    return success();
  }
  if (auto kernel = dyn_cast<ir::KernelOp>(op))
    return open(*kernel.getBlock(), op), success();
  if (auto withBodies = dyn_cast<ir::WithBodies>(op))
    return bodies(withBodies);
  std::optional<OpId> id = ir::opIdOf(&op);
  if (!id || op.getNumRegions() != 0)
    return op.emitOpError("cannot be interpreted: a program is made of wg ops");
  row(op, *id);
  return success();
}

/// A row whose bodies are programs of their own.
LogicalResult Flattener::bodies(ir::WithBodies op) {
  SmallVector<std::shared_ptr<const Program>> children;
  for (FlatSymbolRefAttr name : op.bodyNames()) {
    auto function = symbols_.lookup<func::FuncOp>(name.getAttr());
    if (function.isDeclaration())
      return op->emitOpError("runs @") << name.getValue() << ", which has no body";
    std::shared_ptr<const Program> child = shared_.bodies.lookup(function);
    if (!child) {
      ++shared_.depth;
      auto made = std::make_shared<Program>();
      if (failed(Flattener(*made, function, shared_).run()))
        return failure();
      --shared_.depth;
      shared_.bodies[function] = child = std::move(made);
    }
    children.push_back(std::move(child));
  }
  row(*op, *ir::opIdOf(op));
  program_.rows.back().firstChild = static_cast<uint32_t>(program_.children.size());
  program_.rows.back().numChildren = static_cast<uint32_t>(children.size());
  program_.children.insert(program_.children.end(), children.begin(), children.end());
  return success();
}

/// Walks the rows backwards: a slot that is seen for the first time dies there, unless it is an output. Inputs and
/// constants too: a caller that gave its last handle away gets the memory back early.
void Flattener::findLastUses() {
  std::vector<bool> alive(program_.numSlots, false);
  for (uint32_t slot : program_.outputs)
    alive[slot] = true;
  std::vector<std::vector<uint32_t>> dead(program_.rows.size());
  for (size_t i = program_.rows.size(); i-- > 0;) {
    Row &row = program_.rows[i];
    for (uint32_t k = 0; k < row.numOperands + row.numResults; ++k) {
      uint32_t slot = program_.slots[row.first + k];
      if (!alive[slot])
        dead[i].push_back(slot);
      alive[slot] = true;
    }
  }
  std::vector<uint32_t> slots;
  for (size_t i = 0; i < program_.rows.size(); ++i) {
    Row &row = program_.rows[i];
    auto begin = program_.slots.begin() + row.first;
    row.first = static_cast<uint32_t>(slots.size());
    slots.insert(slots.end(), begin, begin + row.numOperands + row.numResults);
    slots.insert(slots.end(), dead[i].begin(), dead[i].end());
    row.numDead = static_cast<uint32_t>(dead[i].size());
  }
  program_.slots = std::move(slots);
}

LogicalResult Flattener::run() {
  if (failed(ir::checkTypes(function_)))
    return failure();
  if (function_.isDeclaration())
    return function_.emitOpError("has no body to run");
  if (!function_.getBody().hasOneBlock())
    return function_.emitOpError("has several blocks; a program is one block of wg ops");
  if (shared_.depth == 0 && failed(ir::calleesFirst(function_, symbols_)))
    return failure();
  for (Type type : function_.getResultTypes())
    program_.results.push_back(ir::runtimeTypeOf(type));
  for (BlockArgument argument : function_.getArguments()) {
    slotOf_[argument] = next_++;
    if (shared_.depth == 0)
      sizes_.argument(argument, argument.getArgNumber());
    else
      sizes_.enter(argument, argument); // whatever the sizes come from outside
    program_.inputs.push_back(ir::runtimeTypeOf(argument.getType()));
  }
  uint32_t numInputs = next_;
  open_.push_back({function_.getBody().front().begin(), nullptr});
  SmallVector<uint32_t> outputs;
  while (!open_.empty()) {
    Operation &op = *open_.back().next++;
    if (!op.hasTrait<OpTrait::IsTerminator>()) {
      if (failed(append(op)))
        return failure();
      continue;
    }
    Operation *closed = open_.pop_back_val().op;
    for (auto [i, value] : llvm::enumerate(op.getOperands()))
      if (closed) {
        slotOf_[closed->getResult(i)] = slotOf_.lookup(value);
        sizes_.enter(closed->getResult(i), value);
      } else {
        outputs.push_back(slotOf_.lookup(value));
      }
  }
  // Number the constants after the inputs and move the results up.
  uint32_t numConstants = static_cast<uint32_t>(program_.constants.size());
  auto place = [&](uint32_t slot) {
    return slot >= kConstant ? numInputs + (slot - kConstant) : slot < numInputs ? slot : slot + numConstants;
  };
  for (uint32_t &slot : program_.slots)
    slot = place(slot);
  for (uint32_t slot : outputs)
    program_.outputs.push_back(place(slot));
  program_.numSlots = next_ + numConstants;
  findLastUses();
  return success();
}

FailureOr<Program> flatten(func::FuncOp function) {
  Program program;
  Flattener::Shared shared(function);
  if (failed(Flattener(program, function, shared).run()))
    return failure();
  return program;
}

Status Kernels::execute(const Row &row, const OpCall &call, std::span<Array> results) {
  if (row.numChildren) [[unlikely]]
    return runBodies(program, row, call, results);
  auto index = static_cast<size_t>(&row - program.rows.data());
  size_t end = index + 1 < program.rows.size() ? program.rows[index + 1].firstOpen : program.open.size();
  std::span<const OpenSize> open = std::span(program.open).subspan(row.firstOpen, end - row.firstOpen);
  if (open.empty()) [[likely]]
    return runtime::execute(call, results);
  auto sizeOf = [&](const OpenSize &size) { return call.operands[size.operand].shape().dim(size.axis); };
  for (const OpenSize &size : open) {
    if (size.meets < 0 || sizeOf(size) != 1)
      continue;
    std::span<const Array> operands = call.operands;
    Attrs attrs = call.attrs;
    if (Status status = resolve(row.op, operands, attrs); !status.ok())
      break; // execute says what is wrong
    int64_t needed = BroadcastAttrs{attrs}.shape()[static_cast<size_t>(size.meets)];
    if (needed != 1)
      return valueError(ir::repeatsOpenSize({size.input, size.inputAxis}, needed,
                                            row.where ? runtime::toString(row.where) : "", program.names),
                        ir::kRepeatRemedy.str());
  }
  Status status = runtime::execute(call, results);
  if (status.ok())
    return status;
  std::vector<std::string> parts;
  for (const OpenSize &size : open)
    if (std::string part = ir::describe({size.input, size.inputAxis}, sizeOf(size), program.names);
        size.input >= 0 && !llvm::is_contained(parts, part))
      parts.push_back(std::move(part));
  if (!parts.empty())
    status.failure().message += " (" + llvm::join(parts, ", ") + ")";
  return status;
}

/// Whether `type` is an instance of `expected`, in which a size may be `?`.
static bool fits(const runtime::TensorType &type, const runtime::TensorType &expected) {
  if (type.dtype != expected.dtype || type.shape.rank() != expected.shape.rank())
    return false;
  for (int axis = 0; axis < type.shape.rank(); ++axis)
    if (expected.shape.dim(axis) != kDynamic && expected.shape.dim(axis) != type.shape.dim(axis))
      return false;
  return true;
}

Result<std::vector<Array>> interpret(const Program &program, std::span<const Array> inputs) {
  if (inputs.size() != program.inputs.size())
    return valueError("the program takes " + std::to_string(program.inputs.size()) + " inputs, got " +
                      std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!fits(inputs[i].type, program.inputs[i]))
      return typeError("input " + std::to_string(i) + " is " + toString(program.inputs[i]) + ", got " +
                       toString(inputs[i].type));
  for (const Row &row : program.rows)
    if (row.op == OpId::call)
      return Failure{.kind = ErrorKind::lookup,
                     .op = "call",
                     .message = "calls @" + row.attrs.string(0) + ", which has no body",
                     .remedy = "define it in the module",
                     .where = toString(row.where)};
  std::vector<Array> outputs(program.outputs.size());
  Status status = run<Array>(program, inputs, outputs, Kernels{program});
  if (!status.ok())
    return status;
  return outputs;
}

} // namespace wg::codegen
