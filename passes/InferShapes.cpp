// Specialises a function to argument types and refines every type that follows.
//
//   func @f(%x: tensor<?x3xf32>)                                func @f(%x: tensor<8x3xf32>)
//     %n = wg.dim %x axis 0                             ->        %y = wg.broadcast %b to [8, 3] dims [1]
//     %y = wg.broadcast %b to [?, 3] dims [1] sizes %n
//
// Legal because a type with `?` promises nothing that the refined type breaks: the shape rules are asked again, on the
// new operand types, and a size that contradicts an op is an error at its place, which names the arguments behind the
// sizes. A `?` that becomes 1 is not repeated: what was built for it, a gradient for one, took it for the size that it
// meets (DESIGN: only a static 1 broadcasts). Where some sizes stay open, elementwise operands that come to know
// different ones are brought to one type. Callees follow: in place where they have one caller, as a copy otherwise.
// Callers from outside keep what they call, as a copy. Each op is verified as it now is.
// Linear in the ops.
#include "ir/Bridge.h"
#include "ir/Build.h"
#include "ir/Calls.h"
#include "ir/Program.h"
#include "ir/Sizes.h"
#include "passes/Passes.h"
#include "runtime/Extent.h"
#include "runtime/SizeFormula.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace wg::passes {

#define GEN_PASS_DEF_INFERSHAPES
#include "passes/Passes.h.inc"

namespace {

/// `?x3` may become `8x3`, of the same dtype and rank; a static size stays.
bool refines(Type from, Type to) {
  auto a = dyn_cast<RankedTensorType>(from), b = dyn_cast<RankedTensorType>(to);
  if (!a || !b)
    return from == to;
  if (a.getElementType() != b.getElementType() || a.getRank() != b.getRank())
    return false;
  return llvm::all_of(llvm::zip_equal(a.getShape(), b.getShape()), [](auto sizes) {
    return ShapedType::isDynamic(std::get<0>(sizes)) || std::get<0>(sizes) == std::get<1>(sizes);
  });
}

} // namespace

runtime::Result<SmallVector<Type>> parseTypes(MLIRContext *context, StringRef text) {
  runtime::Failure unreadable =
      runtime::valueError("cannot read types `" + text.str() + "`", "write them as f32[2,3];i64[4]");
  SmallVector<Type> types;
  SmallVector<StringRef> parts;
  text.split(parts, ';', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, rest] = part.trim().split('[');
    std::optional<runtime::DType> dtype = runtime::parseDType(std::string_view(name.data(), name.size()));
    if (!dtype || !rest.consume_back("]"))
      return unreadable;
    SmallVector<StringRef> numbers;
    rest.split(numbers, ',', -1, /*KeepEmpty=*/false);
    SmallVector<int64_t> shape;
    for (StringRef number : numbers) {
      int64_t size = ShapedType::kDynamic;
      if (number.trim() != "?" && (number.trim().getAsInteger(10, size) || size < 0))
        return unreadable;
      shape.push_back(size);
    }
    if (runtime::Result<runtime::Extent> extent = runtime::extentOf(*dtype, shape); !extent.ok())
      return extent.status();
    types.push_back(RankedTensorType::get(shape, ir::elementTypeOf(context, *dtype)));
  }
  return types;
}

namespace {

class Specialiser {
public:
  Specialiser(ModuleOp module, ArrayRef<std::string> names) : module(module), symbols(module), names(names) {
    countCalls(module);
  }

  /// Gives `function` the argument types and visits its ops in order, and those of what it calls, each callee before
  /// the rest of its caller. Its result types are those of what it returns.
  LogicalResult specialise(func::FuncOp function, ArrayRef<Type> types) {
    if (function.isDeclaration())
      return function.emitOpError("has no body whose sizes could be inferred");
    for (BlockArgument argument : function.getArguments())
      open.argument(argument, argument.getArgNumber());
    FailureOr<SmallVector<func::FuncOp>> order = ir::calleesFirst(function, symbols);
    if (failed(order))
      return failure();
    keepForOthers(*order, !llvm::equal(function.getArgumentTypes(), types));
    if (failed(visitFrom(function, types)))
      return failure();
    for (size_t i = 0; i < withDerivative.size(); ++i) // what they call may have derivatives, too
      if (failed(specialiseDerivative(withDerivative[i])))
        return failure();
    return success();
  }

private:
  LogicalResult visitFrom(func::FuncOp function, ArrayRef<Type> types) {
    if (failed(enter(function, types)))
      return failure();
    while (!path.empty()) {
      Visit &visit = path.back();
      if (visit.next == visit.ops.size()) {
        leave(visit.function);
        path.pop_back();
        continue;
      }
      Operation *op = visit.ops[visit.next];
      if (auto withBodies = dyn_cast<ir::WithBodies>(op)) {
        FailureOr<bool> ready = visitBodies(withBodies);
        if (failed(ready))
          return failure();
        if (!*ready)
          continue; // the callee first, and then the call again
      } else if (failed(this->visit(op))) {
        return failure();
      }
      ++visit.next;
    }
    return success();
  }

  /// The derivative that a function names takes its operands, its results and their cotangents: a copy for their types
  /// where these have changed.
  LogicalResult specialiseDerivative(func::FuncOp function) {
    auto isFloat = [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); };
    for (StringRef key : ir::kStatedDerivatives) {
      auto name = function->getAttrOfType<FlatSymbolRefAttr>(key);
      auto stated = name ? symbols.lookup<func::FuncOp>(name.getValue()) : func::FuncOp();
      if (!stated || stated.isDeclaration())
        continue;
      SmallVector<Type> types(function.getArgumentTypes());
      llvm::append_range(types, function.getResultTypes());
      if (key == ir::kVjpAttr) {
        llvm::append_range(types, llvm::make_filter_range(function.getResultTypes(), isFloat));
      } else if (auto arguments = stated->getAttrOfType<DenseI64ArrayAttr>("wg.arguments")) {
        for (int64_t argument : arguments.asArrayRef())
          if (argument >= 0 && argument < static_cast<int64_t>(function.getNumArguments()))
            types.push_back(function.getArgumentTypes()[static_cast<size_t>(argument)]);
      }
      if (stated.getNumArguments() != types.size() ||
          llvm::equal(stated.getArgumentTypes(), types)) // the gradient says what does not fit
        continue;
      func::FuncOp copy = stated.clone();
      copy.setPrivate();
      symbols.insert(copy); // takes a free name
      countCalls(copy);
      function->setAttr(key, FlatSymbolRefAttr::get(copy.getSymNameAttr()));
      if (failed(visitFrom(copy, types)))
        return failure();
    }
    return success();
  }

  /// A function whose ops are being visited. The path is explicit: calls may nest deeper than a thread's stack.
  struct Visit {
    func::FuncOp function;
    SmallVector<Operation *> ops;
    size_t next = 0;
  };
  /// A function for some argument types: itself, or a copy.
  struct Version {
    SmallVector<Type> types;
    func::FuncOp function;
  };

  void countCalls(Operation *root) {
    root->walk([&](ir::WithBodies op) {
      for (FlatSymbolRefAttr name : op.bodyNames())
        ++uses[symbols.lookup(name.getAttr())];
    });
  }

  /// `order` is the function that is specialised, last, and what it calls. Where the type of one of them may change,
  /// calls from elsewhere get a copy.
  void keepForOthers(ArrayRef<func::FuncOp> order, bool changes) {
    DenseSet<Operation *> inside(order.begin(), order.end());
    DenseMap<Operation *, SmallVector<std::pair<ir::WithBodies, size_t>>> outside; // by callee
    auto findCalls = [&](func::FuncOp caller) {
      caller.walk([&](ir::WithBodies op) {
        for (auto [i, name] : llvm::enumerate(op.bodyNames()))
          if (Operation *callee = symbols.lookup(name.getAttr()); inside.contains(callee))
            outside[callee].push_back({op, i});
      });
    };
    for (auto caller : module.getOps<func::FuncOp>())
      if (!inside.contains(caller))
        findCalls(caller);
    auto isOpen = [](Type type) {
      return isa<RankedTensorType>(type) && !cast<RankedTensorType>(type).hasStaticShape();
    };
    for (func::FuncOp function : llvm::reverse(order)) { // a copy is a caller of those before it
      auto calls = outside.find(function);
      if (calls == outside.end() || function.isDeclaration() ||
          !((changes && function == order.back()) || llvm::any_of(function.getResultTypes(), isOpen)))
        continue;
      auto copy = function.clone();
      copy.setPrivate();
      symbols.insert(copy); // takes a free name
      for (auto [op, i] : calls->second)
        rename(op, i, copy);
      uses[copy] = calls->second.size();
      uses[function] -= calls->second.size();
      countCalls(copy);
      findCalls(copy);
    }
  }

  LogicalResult enter(func::FuncOp function, ArrayRef<Type> types) {
    if (types.size() != function.getNumArguments())
      return function.emitOpError("has ")
             << function.getNumArguments() << " arguments, got " << types.size() << " types";
    // What hangs on it was made for its own types.
    if (!llvm::equal(function.getArgumentTypes(), types))
      ir::forgetDerived(function);
    for (auto [argument, type] : llvm::zip_equal(function.getArguments(), types)) {
      if (!refines(argument.getType(), type))
        return function.emitOpError("argument ")
               << argument.getArgNumber() << " is " << argument.getType() << " and cannot become " << type;
      argument.setType(type);
    }
    if (function->hasAttr(ir::kVjpAttr))
      withDerivative.push_back(function);
    Visit &visit = path.emplace_back(Visit{function, {}});
    for (Block &block : function.getBody())
      for (Operation &op : block)
        visit.ops.push_back(&op);
    return success();
  }

  void leave(func::FuncOp function) {
    SmallVector<Type> results(function.getResultTypes());
    for (Block &block : function.getBody())
      if (auto last = dyn_cast<func::ReturnOp>(block.getTerminator()))
        results.assign(last.getOperandTypes().begin(), last.getOperandTypes().end());
    function.setFunctionType(FunctionType::get(function.getContext(), function.getBody().getArgumentTypes(), results));
  }

  LogicalResult visit(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      if (failed(visit(&op)))
        return failure();
    return success();
  }

  LogicalResult visit(Operation *op) {
    if (auto kernel = dyn_cast<ir::KernelOp>(op)) {
      for (auto [argument, input] : llvm::zip_equal(kernel.getBlock()->getArguments(), kernel.getInputs())) {
        open.enter(argument, input);
        argument.setType(input.getType());
      }
      if (failed(visit(*kernel.getBlock())))
        return failure();
      for (auto [result, value] : llvm::zip_equal(kernel.getResults(), kernel.getYield().getValues()))
        open.enter(result, value);
      (void)setResultTypes(op, kernel.getYield().getOperandTypes());
      return verify(op, /*verifyRecursively=*/false);
    }
    open.results(op);
    takeSizes(op);
    if (auto broadcast = dyn_cast<ir::BroadcastOp>(op); broadcast && failed(checkRepeats(broadcast)))
      return failure();
    if (isa<ir::Scalar>(op))
      bringTogether(op);
    if (auto inferring = dyn_cast<InferTypeOpInterface>(op); inferring && ir::opIdOf(op)) {
      SmallVector<Type> types;
      if (failed(inferTypes(inferring, types)))
        return failure();
      (void)setResultTypes(op, types);
      if (failed(verify(op, /*verifyRecursively=*/false))) // what no rule of shapes says
        return failure();
    }
    if (op->getNumResults() > 0 && llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIndex(); }))
      return foldSize(op);
    return success();
  }

  /// The types by the op's rule; its error says which sizes of the arguments it speaks of.
  LogicalResult inferTypes(InferTypeOpInterface op, SmallVectorImpl<Type> &types) {
    auto infer = [&](std::optional<Location> loc) {
      return op.inferReturnTypes(op->getContext(), loc, op->getOperands(), op->getDiscardableAttrDictionary(),
                                 op->getPropertiesStorage(), op->getRegions(), types);
    };
    if (succeeded(infer(std::nullopt)))
      return success();
    types.clear();
    SmallVector<runtime::TensorType> operands =
        llvm::map_to_vector(op->getOperandTypes(), [](Type type) { return ir::runtimeTypeOf(type); });
    runtime::TypeList ignored;
    runtime::OpId id = *ir::opIdOf(op);
    runtime::Status status = runtime::inferTypes(id, {operands.data(), operands.size()}, ir::attrsOf(op), ignored);
    if (status.ok()) // no rule was broken: what it was says itself
      return infer(op->getLoc());
    std::string sizes = sizesBehind(op);
    InFlightDiagnostic diagnostic = emitError(op->getLoc())
                                    << "'" << op->getName() << "' op " << status.failure().message;
    if (!sizes.empty())
      diagnostic << " (" << sizes << ")";
    if (!status.failure().remedy.empty())
      diagnostic.attachNote() << "try: " << status.failure().remedy;
    return diagnostic;
  }

  /// `argument 0 has size 2 on axis 1, argument 1 has size 3 on axis 0`: what was `?` in the operands.
  std::string sizesBehind(Operation *op) {
    SmallVector<std::string> parts;
    for (Value operand : op->getOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.getType()))
        for (auto [axis, size] : llvm::enumerate(type.getShape()))
          if (auto origin = open.of(operand, axis); origin && origin->argument >= 0 && !ShapedType::isDynamic(size))
            if (std::string part = ir::describe(*origin, size, names); !llvm::is_contained(parts, part))
              parts.push_back(std::move(part));
    return llvm::join(parts, ", ");
  }

  /// A size that was `?` and is 1 now meets a size of 1.
  LogicalResult checkRepeats(ir::BroadcastOp op) {
    ArrayRef<int64_t> x = op.getX().getType().getShape(), y = op.getShape();
    if (op.getDims().size() != x.size())
      return success(); // the rule says what is wrong
    for (auto [axis, dim] : llvm::enumerate(op.getDims()))
      if (dim >= 0 && dim < static_cast<int64_t>(y.size()) && x[axis] == 1 && y[dim] != 1)
        if (auto origin = open.of(op.getX(), axis)) {
          // An error of the call, so it has no place but the caller's.
          InFlightDiagnostic diagnostic = emitError(UnknownLoc::get(op.getContext()))
                                          << ir::repeatsOpenSize(*origin, y[dim], ir::whereOf(op.getLoc()), names);
          diagnostic.attachNote() << "try: " << ir::kRepeatRemedy;
          return diagnostic;
        }
    return success();
  }

  /// Operands of an elementwise op, which were of one shape, take what is known of it.
  void bringTogether(Operation *op) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(op->getOperand(0).getType()).getShape());
    for (Value operand : op->getOperands()) {
      auto type = cast<RankedTensorType>(operand.getType());
      if (failed(verifyCompatibleShape(type.getShape(), shape)))
        return; // the rule says what is wrong
      for (auto [known, size] : llvm::zip_equal(shape, type.getShape()))
        known = ShapedType::isDynamic(known) ? size : known;
    }
    OpBuilder b(op);
    for (OpOperand &operand : op->getOpOperands()) {
      Value x = operand.get();
      auto type = cast<RankedTensorType>(x.getType());
      if (type.getShape() == ArrayRef<int64_t>(shape))
        continue;
      SmallVector<Value> sizes;
      for (auto [axis, size] : llvm::enumerate(shape))
        if (ShapedType::isDynamic(size))
          sizes.push_back(ir::DimOp::create(b, op->getLoc(), x, axis));
      auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
      Value known = ir::BroadcastOp::create(b, op->getLoc(), x, shape, dims, sizes);
      open.enter(known, x);
      operand.set(known);
    }
  }

  static LogicalResult setResultTypes(Operation *op, TypeRange types) {
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
      result.setType(type);
    return success();
  }

  /// `to [?, 3] sizes %n` with a constant %n is `to [8, 3]`. The sizes are the last operands, one for
  /// each `?` of the open attributes.
  void takeSizes(Operation *op) {
    std::optional<runtime::OpId> id = ir::opIdOf(op);
    if (!id || !runtime::recordOf(*id).sized)
      return;
    auto operand = static_cast<unsigned>(runtime::recordOf(*id).numOperands);
    for (const runtime::AttrRecord &attr : runtime::recordOf(*id).attrs) {
      if (!attr.open)
        continue;
      SmallVector<int64_t> sizes(cast<DenseI64ArrayAttr>(*op->getInherentAttr(attr.name)).asArrayRef());
      for (int64_t &size : sizes) {
        APInt value;
        if (!ShapedType::isDynamic(size))
          continue;
        if (matchPattern(op->getOperand(operand), m_ConstantInt(&value))) {
          size = value.getSExtValue();
          op->eraseOperand(operand);
        } else {
          ++operand;
        }
      }
      op->setInherentAttr(StringAttr::get(op->getContext(), attr.name),
                          DenseI64ArrayAttr::get(op->getContext(), sizes));
    }
  }

  /// wg.dim of a static axis, and what is computed from such sizes; a formula of known sizes
  /// that has no value is an error.
  LogicalResult foldSize(Operation *op) {
    OpBuilder b(op);
    SmallVector<Value> values;
    if (succeeded(b.tryFold(op, values)) && values.size() == op->getNumResults() &&
        values.front() != op->getResult(0)) {
      op->replaceAllUsesWith(values);
      op->erase();
      return success();
    }
    auto size = dyn_cast<ir::SizeOp>(op);
    SmallVector<int64_t> known;
    if (size)
      for (Value value : size.getValues())
        if (APInt number; matchPattern(value, m_ConstantInt(&number)))
          known.push_back(number.getSExtValue());
    if (!size || known.size() != size.getValues().size())
      return success();
    StringRef formula = size.getFormula();
    auto result = runtime::evaluateSize(std::string_view(formula.data(), formula.size()),
                                        std::span<const int64_t>(known.data(), known.size()));
    if (result.ok())
      return success();
    return emitError(op->getLoc()) << "'wg.size' op " << result.failure().message;
  }

  static void rename(ir::WithBodies op, size_t i, func::FuncOp function) {
    SmallVector<FlatSymbolRefAttr> names = op.bodyNames();
    names[i] = FlatSymbolRefAttr::get(function.getSymNameAttr());
    op.setBodyNames(names);
  }

  /// Points the op at its bodies for the types of its operands: themselves where they are their own, or where one is
  /// private and has no other caller; else copies, one for each list of types. False if one has to be visited before.
  FailureOr<bool> visitBodies(ir::WithBodies op) {
    SmallVector<func::FuncOp> targets;
    for (auto [i, name] : llvm::enumerate(op.bodyNames())) {
      FailureOr<func::FuncOp> target = bodyFor(op, i, name);
      if (failed(target))
        return failure();
      if (!*target)
        return false;
      targets.push_back(*target);
    }
    for (Value result : op->getResults()) // whatever the bodies compute them of
      open.enter(result, result);
    for (auto [i, target] : llvm::enumerate(targets)) {
      --uses[symbols.lookup(op.bodyNames()[i].getAttr())];
      ++uses[target];
      rename(op, i, target);
    }
    if (auto loop = dyn_cast<ir::LoopOp>(op.getOperation()))
      return failed(setLoopTypes(loop, targets[0])) ? FailureOr<bool>() : true;
    for (func::FuncOp target : targets)
      if (target.getResultTypes() != targets[0].getResultTypes())
        return op->emitOpError("has branches that return ")
               << targets[0].getResultTypes() << " and " << target.getResultTypes() << " for these sizes";
    (void)setResultTypes(op, targets[0].getResultTypes());
    return true;
  }

  LogicalResult setLoopTypes(ir::LoopOp loop, func::FuncOp body) {
    ArrayRef<Type> results = body.getResultTypes();
    if (TypeRange(results.take_front(loop.getCarried())) != loop.getInits().getTypes())
      return loop.emitOpError("carries ") << loop.getInits().getTypes() << " into a turn and "
                                          << results.take_front(loop.getCarried()) << " out of it";
    Builder b(loop.getContext());
    for (Type x : loop.getXs().getTypes())
      if (int64_t rows = cast<RankedTensorType>(x).getDimSize(0);
          static_cast<int64_t>(loop.getLength()) < 0 && !ShapedType::isDynamic(rows))
        loop.setLengthAttr(b.getI64IntegerAttr(rows));
    (void)setResultTypes(loop,
                         ir::loopTypes(loop.getContext(), loop.getInits().getTypes(), loop.hasCondition(),
                                       results.drop_front(loop.getCarried()), static_cast<int64_t>(loop.getLength())));
    return verify(loop, /*verifyRecursively=*/false);
  }

  /// Body `i` for the types of the operands; null if it has been entered and is to be visited before.
  FailureOr<func::FuncOp> bodyFor(ir::WithBodies call, size_t i, FlatSymbolRefAttr name) {
    auto callee = symbols.lookup<func::FuncOp>(name.getAttr());
    SmallVector<Type> types = call.bodyArguments(i);
    func::FuncOp target = find(callee, types);
    if (!target) {
      target = callee;
      bool own = llvm::equal(callee.getArgumentTypes(), types);
      if (!own && callee.isDeclaration())
        return call->emitOpError("calls @") << name.getValue() << ", which has no body, with sizes other than its own";
      if (!own && !(callee.isPrivate() && uses.lookup(callee) == 1)) {
        target = callee.clone();
        target.setPrivate();
        symbols.insert(target); // takes a free name
        countCalls(target);
        versions[target].push_back({types, target});
      }
      versions[callee].push_back({types, target});
      if (!target.isDeclaration()) {
        for (auto [argument, operand] : llvm::zip(target.getArguments(), call->getOperands()))
          open.enter(argument, isa<ir::CallOp>(call.getOperation()) ? operand : Value(argument));
        if (failed(enter(target, types)))
          return failure();
        return func::FuncOp();
      }
    }
    return target;
  }

  /// The version of `callee` that has these types already.
  func::FuncOp find(func::FuncOp callee, ArrayRef<Type> types) const {
    auto known = versions.find(callee);
    if (known != versions.end())
      for (const Version &version : known->second)
        if (version.types == types)
          return version.function;
    return {};
  }

  ModuleOp module;
  SymbolTable symbols;
  ArrayRef<std::string> names;
  ir::OpenSizes open;
  SmallVector<Visit> path;
  SmallVector<func::FuncOp> withDerivative; // those visited that name one
  DenseMap<Operation *, unsigned> uses;     // by function: calls of it
  DenseMap<Operation *, SmallVector<Version>> versions;
};

struct InferShapes : impl::InferShapesBase<InferShapes> {
  using Base::Base;

  void runOnOperation() override {
    auto target = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!target) {
      getOperation().emitError("wg-infer-shapes: no function @") << function << " in this module";
      return signalPassFailure();
    }
    runtime::Result<SmallVector<Type>> wanted = parseTypes(&getContext(), types);
    if (!wanted.ok()) {
      InFlightDiagnostic diagnostic = getOperation().emitError("wg-infer-shapes: ") << wanted.failure().message;
      if (!wanted.failure().remedy.empty())
        diagnostic.attachNote() << "try: " << wanted.failure().remedy;
      return signalPassFailure();
    }
    if (failed(inferShapes(target, *wanted)))
      signalPassFailure();
  }
};
} // namespace

LogicalResult inferShapes(func::FuncOp function, ArrayRef<Type> types, ArrayRef<std::string> names) {
  if (failed(ir::checkTypes(function)))
    return failure();
  SmallVector<Type> own(function.getArgumentTypes());
  if (failed(Specialiser(function->getParentOfType<ModuleOp>(), names)
                 .specialise(function, types.empty() ? ArrayRef<Type>(own) : types)))
    return failure();
  return verify(function, /*verifyRecursively=*/false); // what replaces an argument may turn out to have other sizes
}

} // namespace wg::passes
