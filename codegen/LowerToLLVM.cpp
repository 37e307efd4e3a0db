#include "codegen/LowerToLLVM.h"

#include "codegen/Parallel.h"
#include "codegen/VerifyLowered.h"
#include "codegen/emit/Order.h"
#include "codegen/emit/VectorMath.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/DialectConversion.h"

#include <cstdlib>

using namespace mlir;

namespace wg::codegen {

void insertLoweredDialects(DialectRegistry &registry) {
  registry.insert<func::FuncDialect, scf::SCFDialect, cf::ControlFlowDialect, arith::ArithDialect, math::MathDialect,
                  vector::VectorDialect, index::IndexDialect, ub::UBDialect, LLVM::LLVMDialect>();
}

void registerLoweredDialects(DialectRegistry &registry) {
  insertLoweredDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// `create_mask n` as `iota < min(n, lanes)` in 32-bit integers, one comparison for 16 lanes. Clamped before it is
/// narrowed.
struct LowerCreateMask : OpRewritePattern<vector::CreateMaskOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::CreateMaskOp op, PatternRewriter &b) const override {
    VectorType type = op.getType();
    if (type.getRank() != 1 || type.isScalable())
      return failure();
    Location loc = op.getLoc();
    int64_t lanes = type.getDimSize(0);
    auto ints = VectorType::get(lanes, b.getI32Type());
    SmallVector<int32_t> iota(lanes);
    for (int64_t i = 0; i < lanes; ++i)
      iota[i] = static_cast<int32_t>(i);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value all = arith::ConstantIndexOp::create(b, loc, lanes);
    Value count = arith::MaxSIOp::create(b, loc, zero, arith::MinSIOp::create(b, loc, all, op.getOperand(0)));
    Value narrow = arith::IndexCastOp::create(b, loc, b.getI32Type(), count);
    Value steps = arith::ConstantOp::create(b, loc, DenseIntElementsAttr::get(ints, iota));
    b.replaceOpWithNewOp<arith::CmpIOp>(op, arith::CmpIPredicate::slt, steps,
                                        vector::BroadcastOp::create(b, loc, ints, narrow));
    return success();
  }
};

/// Ops that the conversion to LLVM takes as they are; all others of the vector dialect are first broken down.
static bool isPlainVectorOp(Operation *op) {
  if (isa<vector::BroadcastOp, vector::ExtractOp, vector::InsertOp, vector::ShuffleOp, vector::FMAOp,
          vector::ReductionOp, vector::BitCastOp, vector::FromElementsOp, vector::ToElementsOp>(op))
    return llvm::all_of(op->getOperandTypes(), [](Type type) {
      auto vector = dyn_cast<VectorType>(type);
      return !vector || vector.getRank() <= 1;
    });
  return false;
}

/// Only they are visited, and what becomes of them: most kernels have few or none.
static LogicalResult breakDownVectorOps(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (isa_and_present<vector::VectorDialect>(op->getDialect()) && !isPlainVectorOp(op))
      ops.push_back(op);
  });
  if (ops.empty())
    return success();
  RewritePatternSet patterns(module.getContext());
  patterns.add<LowerCreateMask>(module.getContext());
  vector::populateVectorContractLoweringPatterns(patterns, vector::VectorContractLowering::OuterProduct);
  vector::populateVectorOuterProductLoweringPatterns(patterns);
  vector::populateVectorMultiReductionLoweringPatterns(patterns, vector::VectorMultiReductionLowering::InnerReduction);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorShapeCastLoweringPatterns(patterns);
  vector::populateVectorInterleaveLoweringPatterns(patterns);
  vector::populateVectorTransposeLoweringPatterns(patterns, vector::VectorTransposeLowering::Shuffle16x16);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  vector::populateVectorStepLoweringPatterns(patterns);
  vector::populateVectorRankReducingFMAPattern(patterns);
  return applyOpPatternsGreedily(ops, std::move(patterns));
}

/// Constants fold when LLVM's IR is built. What the emitters write has a pattern for each op and none fails, so nobody
/// records how to go back; for ops of others it is, as what cannot be converted would end the process.
static ConversionConfig conversionConfig(bool asEmitted) {
  ConversionConfig config;
  config.allowPatternRollback = !asEmitted;
  config.foldingMode = DialectConversionFoldingMode::Never;
  return config;
}

static LogicalResult lowerControlFlow(ModuleOp module, const ConversionConfig &config) {
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  ConversionTarget target(*context);
  target.addIllegalDialect<scf::SCFDialect>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(module, target, std::move(patterns), config);
}

/// Bodies first, each function's by itself and on the pool's threads; then functions, calls and returns.
static LogicalResult convertToLLVM(ModuleOp module, const ConversionConfig &config) {
  MLIRContext *context = module.getContext();
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(64);
  LLVMTypeConverter converter(context, options);

  RewritePatternSet ofBodies(context);
  populateVectorToLLVMConversionPatterns(converter, ofBodies);
  cf::populateControlFlowToLLVMConversionPatterns(converter, ofBodies);
  arith::populateArithToLLVMConversionPatterns(converter, ofBodies);
  populateMathToLLVMConversionPatterns(converter, ofBodies);
  index::populateIndexToLLVMConversionPatterns(converter, ofBodies);
  ub::populateUBToLLVMConversionPatterns(converter, ofBodies);
  FrozenRewritePatternSet bodies(std::move(ofBodies));
  ConversionTarget bodyTarget(*context);
  bodyTarget.addLegalDialect<LLVM::LLVMDialect, func::FuncDialect>();
  bodyTarget.addLegalOp<UnrealizedConversionCastOp>();
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  int64_t ops = 0;
  module.walk([&](Operation *) { ++ops; });
  if (failed(forEachFunction(context, static_cast<int64_t>(functions.size()), ops,
                             [&](int64_t i) { return applyFullConversion(functions[i], bodyTarget, bodies, config); })))
    return failure();

  RewritePatternSet patterns(context);
  SymbolTableCollection symbols;
  populateFuncToLLVMConversionPatterns(converter, patterns, &symbols);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp, UnrealizedConversionCastOp>();
  if (failed(applyFullConversion(module, target, std::move(patterns), config)))
    return failure();
  SmallVector<UnrealizedConversionCastOp> casts, left;
  module.walk([&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
  reconcileUnrealizedCasts(casts, &left);
  return left.empty() ? success() : left.front()->emitError("a value has no type of LLVM's");
}

LogicalResult lowerToLLVM(ModuleOp module, const Target &target, bool callMath) {
  const char *flag = std::getenv("WENGERT_VERIFY");
  bool check = flag && *flag == '1';
  auto verified = [&] { return !check || succeeded(mlir::verify(module)); };

  ConversionConfig config = conversionConfig(isAsEmitted(module));
  if (failed(expandMath(module, target, callMath)) || !verified())
    return failure();
  orderForLatency(module);
  SmallVector<StringAttr> helpers;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPrivate() && !function.isExternal())
      helpers.push_back(function.getSymNameAttr());

  if (failed(breakDownVectorOps(module)) || !verified() || failed(lowerControlFlow(module, config)) || !verified() ||
      failed(convertToLLVM(module, config)) || !verified())
    return failure();

  SymbolTable table(module);
  for (StringAttr name : helpers)
    if (auto function = table.lookup<LLVM::LLVMFuncOp>(name))
      function.setLinkage(LLVM::Linkage::Internal);
  return success();
}

} // namespace wg::codegen
