#include "codegen/EmitProgram.h"

#include "codegen/EmitBodies.h"
#include "codegen/EmitTurns.h"
#include "codegen/Parallel.h"
#include "codegen/PlanMemory.h"
#include "codegen/Rewind.h"
#include "codegen/SameContent.h"
#include "codegen/emit/Behind.h"
#include "codegen/emit/KernelEmitter.h"
#include "codegen/emit/Order.h"
#include "ir/Bridge.h"
#include "ir/Calls.h"
#include "runtime/Extent.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace wg::codegen {

namespace {

/// Multiplications and additions of the program may contract to FMAs (docs/numbers.md); the polynomials of VectorMath,
/// which are expanded later, may not.
void allowContraction(func::FuncOp function) {
  auto contract = arith::FastMathFlagsAttr::get(function.getContext(), arith::FastMathFlags::contract);
  function.walk([&](Operation *op) {
    if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp>(op))
      op->setAttr("fastmath", contract);
  });
}

/// No LLVM optimiser runs: what does not change in a loop leaves it here.
void cleanUp(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  DominanceInfo dominance(function);
  eliminateCommonSubExpressions(rewriter, dominance, function);
  function.walk([](LoopLikeOpInterface loop) { moveLoopInvariantCode(loop); });
}

/// A masked load of what no turn changes is made once: unlike a whole vector's it is no operand of what reads it.
void loadOnce(func::FuncOp turns) {
  SmallVector<LLVM::MaskedLoadOp> loads;
  turns.walk([&](LLVM::MaskedLoadOp load) { loads.push_back(load); });
  for (LLVM::MaskedLoadOp load : loads)
    if (auto loop = load->getParentOfType<LoopLikeOpInterface>();
        loop && llvm::all_of(load->getOperands(), [&](Value operand) { return loop.isDefinedOutsideOfLoop(operand); }))
      load->moveBefore(loop);
}

int64_t bytesOf(Type type) { return runtime::extentOf(ir::runtimeTypeOf(type))->bytes; }

/// What a kernel must touch or compute before it is worth a thread's waking.
constexpr int64_t kSharedBytes = 256 * 1024, kSharedFlops = 2'000'000;

/// Kernels that one function of straight code calls.
constexpr size_t kLaunchesOfPart = 64;

/// About so many ops become of a kernel.
constexpr int64_t kOpsOfBody = 200;

constexpr int64_t kMostConstantBytes = int64_t(1) << 28;

class ProgramEmitter {
public:
  ProgramEmitter(ModuleOp module, func::FuncOp function, const Target &target, const EmitOptions &options,
                 EntryInfo &info, std::vector<KernelReport> &reports)
      : module(module), function(function), target(target), threads(options.threads), marks(options.marks), info(info),
        reports(reports), shared(options.shared), b(module.getContext()),
        pointerType(LLVM::LLVMPointerType::get(module.getContext())) {}

  LogicalResult run() {
    info.name = function.getName().str();
    for (Type type : function.getArgumentTypes())
      info.inputs.push_back(ir::runtimeTypeOf(type));
    for (Type type : function.getResultTypes())
      info.results.push_back(ir::runtimeTypeOf(type));
    SymbolTable symbols(module);
    FailureOr<SmallVector<func::FuncOp>> functions = ir::calleesFirst(function, symbols);
    if (failed(functions))
      return failure();
    if (makeRewinds(*functions, symbols)) {
      llvm::SetVector<Operation *> before(functions->begin(), functions->end());
      functions = ir::calleesFirst(function, symbols);
      if (failed(functions))
        return failure();
      for (func::FuncOp each : *functions)
        before.remove(each);
      for (Operation *each : before)
        symbols.erase(each);
    }
    loopsInRegisters = findTurns(*functions, symbols, target);
    states = findStatesInStacks(*functions, symbols);
    DenseMap<Operation *, int64_t> scratch;
    for (func::FuncOp each : llvm::reverse(*functions)) // the program itself first, as its reports are
      if (failed(emitKernels(each, scratch)))
        return failure();
    if (failed(emitBodies()))
      return failure();
    if (marks)
      marks->launches.resize(reports.size() + 1);
    func::FuncOp program = function;
    for (auto [i, each] : llvm::enumerate(ArrayRef(*functions).drop_back())) {
      if (loopsInRegisters.bodies.contains(each))
        continue;
      function = each;
      prefix = (info.name + "_b" + Twine(i)).str();
      function.removeArgAttrsAttr();
      findBodies(symbols, scratch);
      MemoryPlan plan = planMemory(function, symbols, scratch, states.resultsOfBody[each]);
      if (failed(emitEntry(plan)))
        return failure();
    }
    function = program;
    prefix = info.name;
    findBodies(symbols, scratch);
    MemoryPlan plan = planMemory(function, symbols, scratch);
    info.donated.assign(plan.donated.begin(), plan.donated.end());
    info.workspaceBytes = plan.workspaceBytes;
    if (info.workspaceBytes > runtime::kMaxBytes)
      return function.emitError() << "@" << info.name
                                  << " needs a workspace of more than 2^56 bytes, the most that there is";
    if (failed(emitEntry(plan)))
      return failure();
    for (func::FuncOp each : *functions)
      each.erase();
    module.lookupSymbol<func::FuncOp>(info.name + "_entry").setName(info.name);
    return success();
  }

private:
  struct Emitted {
    func::FuncOp function;
    int64_t chunks;
    bool mayFail;
    func::FuncOp piece; ///< runs piece i for wg_parallel_for; null if the kernel is not shared
    int64_t pieces;
  };

  /// A kernel's function whose body is still to be written.
  struct Body {
    Body(ir::KernelOp kernel, const Target &target) : b(kernel.getContext()), emitter(kernel, target, b) {}
    OpBuilder b;
    KernelEmitter emitter;
    func::FuncOp function;
  };

  LogicalResult emitKernels(func::FuncOp from, DenseMap<Operation *, int64_t> &scratch) {
    b.setInsertionPoint(from);
    size_t first = reports.size();
    Operation *within = loopsInRegisters.bodies.lookup(from);
    for (Operation &op : from.getBody().front().without_terminator()) {
      if (auto kernel = dyn_cast<ir::KernelOp>(op)) {
        if (within)
          report(kernel, loopsInRegisters.loops[within].function.getName());
        else if (failed(emitKernel(kernel, scratch)))
          return failure();
      } else if (isa<ir::WithBodies>(op)) {
        report(&op);
        if (auto turns = loopsInRegisters.loops.find(&op); turns != loopsInRegisters.loops.end()) {
          declareTurns(&op, turns->second);
          reports.back().inRegisters = true;
        }
      } else if (!isa<ir::ReshapeOp, ir::ConstantOp>(op)) {
        return op.emitError("internal error: emit: op outside of a kernel: ") << op.getName();
      }
      reportOf[&op] = static_cast<int64_t>(reports.size()) - 1;
    }
    for (KernelReport &each : llvm::drop_begin(reports, first)) {
      each.inBody = from != function;
      each.inRegisters |= bool(within);
    }
    return success();
  }

  /// Its function, whose body is written later unless this process has it.
  void declareTurns(Operation *loop, LoopsInRegisters::Turns &turns) {
    std::string name = (info.name + "_turns" + Twine(numTurns++)).str();
    turns.function = func::FuncOp::create(b, loop->getLoc(), name, turnsType(loop));
    std::string key;
    if (shared && threads) {
      key = target.key() + "\n" + contentOf(loop);
      for (func::FuncOp body : turns.bodies)
        key += "\n" + contentOf(body);
      if (useKnown(key, turns.function))
        return;
      shared->made.push_back({std::move(key), name, {}});
    } else {
      turns.function.setPrivate();
    }
    turns.isWritten = false;
  }

  /// What the conditions and loops of `function` run, which has been emitted, and what they need of the workspace.
  void findBodies(SymbolTable &symbols, DenseMap<Operation *, int64_t> &scratch) {
    for (auto op : function.getBody().front().getOps<ir::WithBodies>()) {
      SmallVector<EmittedBody> &of = bodiesOf[op];
      if (loopsInRegisters.loops.contains(op)) // in registers
        continue;
      for (FlatSymbolRefAttr name : op.bodyNames())
        of.push_back(emittedBodies.lookup(symbols.lookup(name.getAttr())));
      scratch[op] = bodyScratchBytes(op, of);
    }
  }
  bool mayFail(Operation *op) {
    if (isa<ir::KernelOp>(op))
      return emitted[op].mayFail;
    return mayLackRoom(op) || llvm::any_of(bodiesOf[op], [](const EmittedBody &body) { return body.mayFail; });
  }

  LogicalResult emitKernel(ir::KernelOp kernel, DenseMap<Operation *, int64_t> &scratch) {
    // What the emitters rely on. A kernel that was read from text has passed this already: here
    // it is a mistake of the passes.
    if (failed(kernel.verifyLoops(
            [](Operation *op) { return op->emitError("internal error: emit: ") << op->getName() << " "; })))
      return failure();
    Location loc = kernel.getLoc();
    unsigned pointers = kernel.getInputs().size() + kernel.getNumResults() + 1;
    SmallVector<Type> inputs(pointers, pointerType);
    inputs.append(2, b.getIndexType());
    auto body = std::make_unique<Body>(kernel, target);
    KernelEmitter &emitter = body->emitter;
    // One that can fail names its own place; others are what they compute, and equal ones are one function.
    auto [known, isFirst] = emitter.mayFail() ? std::pair(contents.end(), true) : contents.insert(kernel);
    if (!isFirst) {
      Emitted same = emitted.lookup(*known);
      if (emitter.scratchBytes() > 0)
        scratch[kernel] = emitter.scratchBytes();
      report(kernel, same.function.getName());
      reports.back().isShared = bool(same.piece);
      emitted[kernel] = same;
      return success();
    }
    SmallVector<Type> results;
    if (emitter.mayFail())
      results.push_back(b.getI32Type());
    std::string name = (info.name + "_k" + Twine(emitted.size()) + "_" + stringifyKernelKind(kernel.getKind())).str();
    OpBuilder::InsertionGuard guard(b);
    auto fn = func::FuncOp::create(b, loc, name, FunctionType::get(b.getContext(), inputs, results));
    std::string key;
    if (shared && threads && !emitter.mayFail())
      key = target.key() + "\n" + contentOf(kernel);
    Emitted &e = emitted[kernel];
    e = {fn, emitter.numChunks(), emitter.mayFail(), {}, emitter.numPieces()};
    if (emitter.scratchBytes() > 0)
      scratch[kernel] = emitter.scratchBytes();
    report(kernel, name);
    if (std::optional<KernelCache::Code> code = useKnown(key, fn)) {
      if (code->piece) {
        e.piece = func::FuncOp::create(b, loc, pieceName(name), pieceType());
        e.piece.setPrivate();
        shared->known.push_back({pieceName(name), code->piece});
        reports.back().isShared = true;
      }
      return success();
    }
    if (key.empty()) // else other programs call it, by its address
      fn.setPrivate();
    body->function = fn;
    bodies.push_back(std::move(body));
    if (threads && e.pieces > 1 && !e.mayFail &&
        (reports.back().counts.bytes() >= kSharedBytes || reports.back().counts.products >= kSharedFlops)) {
      e.piece = emitPiece(fn, pointers, bodies.back()->emitter.chunksPerPiece(), e.chunks);
      reports.back().isShared = true;
      if (key.empty())
        e.piece.setPrivate();
    }
    if (!key.empty())
      shared->made.push_back({std::move(key), name, e.piece ? pieceName(name) : std::string()});
    return success();
  }

  /// Declares `fn` only, where this process has its code.
  std::optional<KernelCache::Code> useKnown(StringRef key, func::FuncOp fn) {
    std::optional<KernelCache::Code> code = key.empty() ? std::nullopt : shared->cache.find(key);
    if (!code)
      return std::nullopt;
    fn.setPrivate();
    shared->known.push_back({fn.getName().str(), code->function});
    if (shared->modules.empty() || shared->modules.back() != code->module) // most are of one
      shared->modules.push_back(code->module);
    return code;
  }

  LogicalResult emitBody(Body &body) {
    func::FuncOp fn = body.function;
    KernelEmitter &emitter = body.emitter;
    Block *block = fn.addEntryBlock();
    body.b.setInsertionPointToStart(block);
    ValueRange arguments = block->getArguments(), pointers = arguments.drop_back(2);
    emitter.errors = &info.errors;
    emitter.errorPlaces = &info.errorPlaces;
    if (failed(emitter.emit(pointers, arguments[pointers.size()], arguments[pointers.size() + 1])))
      return failure();
    func::ReturnOp::create(body.b, fn.getLoc(), emitter.mayFail() ? ValueRange(emitter.failure) : ValueRange());
    if (emitter.kernel.getKind() != ir::KernelKind::reduce) // those decide it themselves
      allowContraction(fn);
    cleanUp(fn);
    return success();
  }

  /// Those that name errors or symbols are written one after the other, then all others.
  LogicalResult emitBodies() {
    SmallVector<std::unique_ptr<Body>> together;
    int64_t ops = 0;
    for (std::unique_ptr<Body> &body : bodies)
      if (!body->emitter.mayFail() && body->emitter.kernel.getKind() != ir::KernelKind::external) {
        ops += kOpsOfBody;
        together.push_back(std::move(body));
      } else if (failed(emitBody(*body))) {
        return failure();
      }
    bodies.clear();
    for (auto &[loop, turns] : loopsInRegisters.loops)
      if (!turns.isWritten) {
        if (failed(emitTurns(loop, turns.bodies, target, turns.function)))
          return failure();
        allowContraction(turns.function);
        turns.function->setAttr(kTurnsAttr, b.getUnitAttr());
        cleanUp(turns.function);
        loadOnce(turns.function);
        runBehind(turns.function);
      }
    return forEachFunction(b.getContext(), static_cast<int64_t>(together.size()), ops, [&](int64_t i) {
      std::unique_ptr<Body> body = std::move(together[i]);
      return emitBody(*body);
    });
  }

  static std::string pieceName(const std::string &kernel) { return kernel + "_piece"; }
  FunctionType pieceType() { return b.getFunctionType({pointerType, b.getI64Type()}, {}); }

  /// What a kernel is apart from which values it reads, and from where it was written.
  static std::string contentOf(Operation *op) {
    std::string text;
    llvm::raw_string_ostream out(text);
    op->print(out, OpPrintingFlags().useLocalScope().elideLargeElementsAttrs(INT64_MAX).enableDebugInfo(false));
    return text;
  }

  /// `(context, i)`: runs the i-th piece; the context holds the kernel's pointers.
  func::FuncOp emitPiece(func::FuncOp kernel, unsigned pointers, int64_t chunksPerPiece, int64_t chunks) {
    Location loc = kernel.getLoc();
    b.setInsertionPointAfter(kernel);
    auto piece = func::FuncOp::create(b, loc, pieceName(kernel.getName().str()), pieceType());
    Block *block = piece.addEntryBlock();
    b.setInsertionPointToStart(block);
    SmallVector<Value> operands;
    for (unsigned i = 0; i < pointers; ++i)
      operands.push_back(LLVM::LoadOp::create(b, loc, pointerType, byteOffset(block->getArgument(0), 8 * i), 8));
    Value i = arith::IndexCastOp::create(b, loc, b.getIndexType(), block->getArgument(1));
    Value begin = arith::MulIOp::create(b, loc, i, arith::ConstantIndexOp::create(b, loc, chunksPerPiece));
    Value end = arith::AddIOp::create(b, loc, begin, arith::ConstantIndexOp::create(b, loc, chunksPerPiece));
    operands.push_back(begin);
    operands.push_back(arith::MinSIOp::create(b, loc, end, arith::ConstantIndexOp::create(b, loc, chunks)));
    func::CallOp::create(b, loc, kernel, operands);
    func::ReturnOp::create(b, loc);
    return piece;
  }

  /// Hands the pieces of a kernel with these pointers to the runtime's threads.
  void callShared(Emitted callee, ArrayRef<Value> pointers, Location loc, Block *entry) {
    if (!parallelFor) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(callee.function);
      parallelFor =
          func::FuncOp::create(b, loc, "wg_parallel_for",
                               b.getFunctionType({b.getI64Type(), callee.piece.getFunctionType(), pointerType}, {}));
      parallelFor.setPrivate();
    }
    Value context;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(entry);
      Value count = LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(static_cast<int64_t>(pointers.size())));
      context = LLVM::AllocaOp::create(b, loc, pointerType, pointerType, count, 8);
    }
    for (auto [i, pointer] : llvm::enumerate(pointers))
      LLVM::StoreOp::create(b, loc, pointer, byteOffset(context, 8 * i), 8);
    Value count = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(callee.pieces));
    func::FuncOp piece = callee.piece;
    Value body = func::ConstantOp::create(b, loc, piece.getFunctionType(), FlatSymbolRefAttr::get(piece.getNameAttr()));
    func::CallOp::create(b, loc, parallelFor, ValueRange{count, body, context});
  }

  /// Of a condition or a loop.
  void report(Operation *op) {
    KernelReport r;
    r.name = (info.name + "_" + op->getName().stripDialect() + Twine(reports.size())).str();
    r.kind = r.ops = op->getName().stripDialect().str();
    r.where = ir::whereOf(op->getLoc());
    r.lines = r.where;
    r.isControl = true;
    r.counts.flops = std::nullopt;
    reports.push_back(std::move(r));
  }
  void report(ir::KernelOp kernel, StringRef name) {
    KernelReport r;
    r.name = name.str();
    r.kind = stringifyKernelKind(kernel.getKind()).str();
    r.where = ir::whereOf(kernel.getLoc());
    r.lines = ir::linesOf(kernel);
    r.counts = ir::countsOf(kernel);
    if (Type compute = kernel.getLoopsAttr().getCompute())
      llvm::raw_string_ostream(r.compute) << compute;
    // Views and constants cost nothing beside other ops; a kernel of nothing else is a copy, and named by them.
    auto isFree = [](Operation &op) { return isa<ir::ConstantOp>(op) || isa<ir::View>(op); };
    bool copies = llvm::all_of(kernel.getBlock()->without_terminator(), isFree);
    for (Operation &op : kernel.getBlock()->without_terminator()) {
      if (isFree(op) && !copies)
        continue;
      r.ops += (r.ops.empty() ? "" : ", ") + op.getName().stripDialect().str();
    }
    reports.push_back(std::move(r));
  }

  Value byteOffset(Value base, int64_t offset) {
    if (offset == 0)
      return base;
    LLVM::GEPArg by =
        isGepConstant(offset)
            ? LLVM::GEPArg(static_cast<int32_t>(offset))
            : LLVM::GEPArg(Value(LLVM::ConstantOp::create(b, base.getLoc(), b.getI64IntegerAttr(offset))));
    return LLVM::GEPOp::create(b, base.getLoc(), pointerType, b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{by});
  }

  /// A function of straight code `(args, sizes, workspace)` that is being written: the entry or a part of it.
  struct Frame {
    func::FuncOp function;
    Value args, sizes, workspace;
    Block *start() { return &function.getBody().front(); }
  };

  Frame makeFrame(const Twine &name, bool returnsCode) {
    Location loc = function.getLoc();
    SmallVector<Type> results;
    if (returnsCode)
      results.push_back(b.getI32Type());
    auto fn = func::FuncOp::create(b, loc, name.str(),
                                   FunctionType::get(b.getContext(), {pointerType, pointerType, pointerType}, results));
    Block *block = fn.addEntryBlock();
    b.setInsertionPointToStart(block);
    return {fn, block->getArgument(0), block->getArgument(1), block->getArgument(2)};
  }

  Value pointerTo(Frame &frame, Place place) {
    Location loc = function.getLoc();
    auto slot = [&](int64_t index) { // loaded where it is used: between calls LLVM schedules few instructions
      return LLVM::LoadOp::create(b, loc, pointerType, byteOffset(frame.args, index * 8), 8);
    };
    switch (place.kind) {
    case Place::argument: return slot(place.index);
    case Place::result: return slot(slotOfResult[place.index]);
    case Place::arena: return byteOffset(frame.workspace, place.index);
    case Place::constant: return globalAddress(loc, place.index);
    }
    llvm_unreachable("all places are covered");
  }

  /// Leaves the function with `code` if it is an error's.
  void returnIfError(Frame &frame, Value code, Value from = {}) {
    Location loc = code.getLoc();
    Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    Value failed = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, code, zero);
    Block *next = b.createBlock(&frame.function.getBody()), *fail = b.createBlock(&frame.function.getBody());
    b.setInsertionPointToStart(fail);
    if (from) {
      Value bytes = LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(kWorkspaceHeader));
      LLVM::MemcpyOp::create(b, loc, frame.workspace, from, bytes, /*isVolatile=*/false);
    }
    func::ReturnOp::create(b, loc, code);
    b.setInsertionPointAfterValue(failed);
    cf::CondBranchOp::create(b, loc, failed, fail, ValueRange(), next, ValueRange());
    b.setInsertionPointToStart(next);
  }

  void emitLaunch(Frame &frame, ir::KernelOp kernel, MemoryPlan &plan) {
    Location loc = kernel.getLoc();
    const Emitted &callee = emitted[kernel];
    SmallVector<Value> operands;
    for (Value input : kernel.getInputs())
      operands.push_back(pointerTo(frame, plan.places.lookup(input)));
    for (Value result : kernel.getResults())
      operands.push_back(pointerTo(frame, plan.places.lookup(result)));
    // Without scratch of its own a kernel gets the workspace's header: where a failing one leaves the values at fault.
    operands.push_back(byteOffset(frame.workspace, plan.scratch.lookup(kernel)));
    if (callee.piece)
      return callShared(callee, operands, loc, frame.start());
    operands.push_back(arith::ConstantIndexOp::create(b, loc, 0));
    operands.push_back(arith::ConstantIndexOp::create(b, loc, callee.chunks));
    auto call = func::CallOp::create(b, loc, callee.function, operands);
    if (callee.mayFail)
      returnIfError(frame, call.getResult(0));
  }

  void emitBodyLaunch(Frame &frame, Operation *op, MemoryPlan &plan) {
    auto pointer = [&](Value value) { return pointerTo(frame, plan.places.lookup(value)); };
    auto offset = [&](Value base, int64_t bytes) { return byteOffset(base, bytes); };
    auto leave = [&](Value code, Value from) { returnIfError(frame, code, from); };
    auto addError = [&](Operation *at, StringRef text) {
      info.errors.push_back(text.str());
      info.errorPlaces.push_back(ir::whereOf(at->getLoc()));
      return static_cast<int32_t>(info.errors.size());
    };
    BodyLaunch launch{b,        frame.function,   byteOffset(frame.workspace, plan.scratch.lookup(op)),
                      pointer,  offset,           leave,
                      addError, states.ofLoop[op]};
    auto turns = loopsInRegisters.loops.find(op);
    emitBodyOp(op, bodiesOf[op], launch,
               turns == loopsInRegisters.loops.end() ? func::FuncOp() : turns->second.function);
  }

  /// Whether `function` is the program itself, and no body of it.
  bool isProgram() const { return prefix == info.name; }

  /// Adds the time since the last mark to that of the launches of report `index`; without one the program starts.
  void emitMark(std::optional<int64_t> index) {
    if (!marks)
      return;
    Location loc = function.getLoc();
    auto constant = [&](int64_t value) { return LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); };
    auto word = [&](uint64_t &at) -> Value {
      return LLVM::IntToPtrOp::create(b, loc, pointerType, constant(reinterpret_cast<int64_t>(&at)),
                                      LLVM::DereferenceableAttr());
    };
    auto add = [&](uint64_t &to, Value more) {
      Value before = LLVM::LoadOp::create(b, loc, b.getI64Type(), word(to), 8);
      LLVM::StoreOp::create(b, loc, LLVM::AddOp::create(b, loc, before, more), word(to), 8);
    };
    Value now =
        LLVM::CallIntrinsicOp::create(b, loc, b.getI64Type(), b.getStringAttr("llvm.readcyclecounter"), ValueRange())
            .getResult(0);
    if (index) {
      Value last = LLVM::LoadOp::create(b, loc, b.getI64Type(), word(marks->last), 8);
      add(marks->launches[*index].ticks, LLVM::SubOp::create(b, loc, now, last));
      add(marks->launches[*index].count, constant(1));
    }
    LLVM::StoreOp::create(b, loc, now, word(marks->last), 8);
  }

  Value code(int32_t number) { return arith::ConstantOp::create(b, function.getLoc(), b.getI32IntegerAttr(number)); }

  /// The entry: loads the pointers, calls the kernels in order, returns the first error. What LLVM does with straight
  /// code takes time beyond its length, so a long entry is cut into parts.
  LogicalResult emitEntry(MemoryPlan &plan) {
    Location loc = function.getLoc();
    b.setInsertionPoint(function);
    if (failed(emitConstants(plan)))
      return failure();
    int64_t slot = function.getNumArguments();
    slotOfResult.clear();
    for (int64_t donated : plan.donated)
      slotOfResult.push_back(donated >= 0 ? -1 : slot++);
    SmallVector<Operation *> launches;
    for (Operation &op : function.getBody().front())
      if (isa<ir::KernelOp, ir::WithBodies>(op))
        launches.push_back(&op);
    Frame entry = makeFrame(prefix + "_entry", /*returnsCode=*/true);
    if (isProgram())
      emitMark(std::nullopt);
    auto launch = [&](Frame &frame, Operation *op) {
      if (auto kernel = dyn_cast<ir::KernelOp>(op))
        emitLaunch(frame, kernel, plan);
      else
        emitBodyLaunch(frame, op, plan);
      emitMark(reportOf.lookup(op));
    };
    if (launches.size() <= kLaunchesOfPart) {
      for (Operation *op : launches)
        launch(entry, op);
    } else {
      for (size_t first = 0; first < launches.size(); first += kLaunchesOfPart) {
        ArrayRef part = ArrayRef(launches).slice(first, std::min(kLaunchesOfPart, launches.size() - first));
        bool fails = llvm::any_of(part, [&](Operation *op) { return mayFail(op); });
        OpBuilder::InsertPoint inEntry = b.saveInsertionPoint();
        b.setInsertionPoint(entry.function);
        Frame frame = makeFrame(prefix + "_part" + Twine(first / kLaunchesOfPart), fails);
        frame.function.setPrivate();
        frame.function->setAttr(kPartAttr, b.getUnitAttr());
        for (Operation *op : part)
          launch(frame, op);
        func::ReturnOp::create(b, loc, fails ? ValueRange(code(0)) : ValueRange());
        b.restoreInsertionPoint(inEntry);
        auto call = func::CallOp::create(b, loc, frame.function, ValueRange{entry.args, entry.sizes, entry.workspace});
        if (fails)
          returnIfError(entry, call.getResult(0));
      }
    }
    for (const MemoryPlan::Copy &copy : plan.copies) {
      Value size = LLVM::ConstantOp::create(b, loc, b.getI64IntegerAttr(copy.bytes));
      LLVM::MemcpyOp::create(b, loc, pointerTo(entry, copy.to), pointerTo(entry, copy.from), size,
                             /*isVolatile=*/false);
    }
    if (!plan.copies.empty())
      emitMark(static_cast<int64_t>(reports.size()));
    func::ReturnOp::create(b, loc, code(0));
    if (isProgram()) {
      writeInfo(entry.function);
      return success();
    }
    entry.function.setPrivate();
    emittedBodies[function] = {entry.function, plan.workspaceBytes,
                               llvm::any_of(launches, [&](Operation *op) { return mayFail(op); })};
    return success();
  }

  LogicalResult emitConstants(MemoryPlan &plan) {
    globals.clear();
    for (auto [i, constant] : llvm::enumerate(plan.constants)) {
      // A splat may be of any size; the bytes are copied several times on the way to machine code, where LLVM
      // ends the process if memory does.
      if (bytesOf(constant.getType()) > kMostConstantBytes)
        return constant.emitOpError("out of memory for ")
               << toString(ir::runtimeTypeOf(constant.getType()))
               << " as a constant of machine code, which has 2^28 bytes at most";
      runtime::Array array = ir::arrayOf(cast<ElementsAttr>(constant.getValue()));
      StringRef bytes(static_cast<const char *>(array.buffer.data()), array.numBytes());
      auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
      globals.push_back(LLVM::GlobalOp::create(b, constant.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                               (prefix + "_c" + Twine(i)).str(), b.getStringAttr(bytes),
                                               /*alignment=*/64));
    }
    return success();
  }
  Value globalAddress(Location loc, int64_t index) { return LLVM::AddressOfOp::create(b, loc, globals[index]); }

  void writeInfo(func::FuncOp entry) {
    auto types = [&](ArrayRef<runtime::TensorType> list) {
      SmallVector<Attribute> attributes;
      for (const runtime::TensorType &type : list)
        attributes.push_back(TypeAttr::get(ir::tensorTypeOf(b.getContext(), type)));
      return b.getArrayAttr(attributes);
    };
    auto strings = [&](const std::vector<std::string> &list) {
      SmallVector<Attribute> attributes;
      for (const std::string &text : list)
        attributes.push_back(b.getStringAttr(text));
      return b.getArrayAttr(attributes);
    };
    entry->setAttr("wg.inputs", types(info.inputs));
    entry->setAttr("wg.results", types(info.results));
    entry->setAttr("wg.donated", b.getDenseI64ArrayAttr(info.donated));
    entry->setAttr("wg.workspace_bytes", b.getI64IntegerAttr(info.workspaceBytes));
    entry->setAttr("wg.errors", strings(info.errors));
    entry->setAttr("wg.error_places", strings(info.errorPlaces));
  }

  ModuleOp module;
  func::FuncOp function;
  const Target &target;
  bool threads;
  Marks *marks;
  DenseMap<Operation *, int64_t> reportOf; ///< its number
  EntryInfo &info;
  std::vector<KernelReport> &reports;
  SharedKernels *shared;
  OpBuilder b;
  LLVM::LLVMPointerType pointerType;
  llvm::MapVector<Operation *, Emitted> emitted;
  llvm::DenseSet<Operation *, SameContent> contents;        ///< of equal kernels the first
  std::string prefix;                                       ///< of the names of what is made of `function`
  DenseMap<Operation *, EmittedBody> emittedBodies;         ///< by function
  DenseMap<Operation *, SmallVector<EmittedBody>> bodiesOf; ///< conditions and loops
  StatesInStacks states;
  LoopsInRegisters loopsInRegisters;
  int64_t numTurns = 0;
  SmallVector<LLVM::GlobalOp> globals;
  SmallVector<int64_t> slotOfResult; ///< among the entry's pointers; -1: it replaces an input
  func::FuncOp parallelFor;
  std::vector<std::unique_ptr<Body>> bodies;
};

} // namespace

LogicalResult emitProgram(ModuleOp module, func::FuncOp function, const Target &target, const EmitOptions &options,
                          EntryInfo &info, std::vector<KernelReport> &kernels) {
  return ProgramEmitter(module, function, target, options, info, kernels).run();
}

} // namespace wg::codegen
