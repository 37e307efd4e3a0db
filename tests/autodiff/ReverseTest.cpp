// What the engine asks of a rule: that its failure is a failure of the gradient, and that a
// cotangent has its operand's type.
#include "autodiff/Reverse.h"

#include "codegen/interpret/Interpret.h"
#include "ir/Bridge.h"
#include "ir/Build.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace wg;

namespace {

/// What the rule of arith.negf, which has none of its own, does in these tests.
enum class Behaviour { fails, dropsAnAxis, forgetsSizes, tooMany } behaviour;

struct NegRule : ir::Differentiable::ExternalModel<NegRule, arith::NegFOp> {
  FailureOr<ir::Terms> vjp(Operation *op, ir::Expr ct) const {
    switch (behaviour) {
    case Behaviour::fails: return op->emitOpError("has no derivative today");
    case Behaviour::dropsAnAxis: return ir::Terms(ir::sum(ct, {0}));
    case Behaviour::forgetsSizes: {
      SmallVector<Value> sizes{ct.make<ir::DimOp>(op->getOperand(0), 0), ct.make<ir::DimOp>(op->getOperand(0), 1)};
      return ir::Terms(ct.make<ir::ReshapeOp>(ct, ArrayRef{ShapedType::kDynamic, ShapedType::kDynamic}, sizes));
    }
    case Behaviour::tooMany: break;
    }
    return ir::Terms{ct, ct};
  }
};

/// y = -x, by a call where `called`, + x; and the gradient of y by x.
struct Attempt {
  explicit Attempt(Behaviour how, bool called = false) {
    static bool attached = (arith::NegFOp::attachInterface<NegRule>(*ir::context()), true);
    (void)attached;
    behaviour = how;
    ScopedDiagnosticHandler handler(ir::context(), [&](Diagnostic &diagnostic) {
      errors += diagnostic.str() + "\n";
      return success();
    });
    std::string negate = called ? "%n = wg.call @neg(%x) : (tensor<?x3xf64>) -> tensor<?x3xf64>"
                                : "%n = arith.negf %x : tensor<?x3xf64>";
    module = parseSourceString<ModuleOp>(
        "func.func private @neg(%x: tensor<?x3xf64>) -> tensor<?x3xf64> {\n"
        "  %y = arith.negf %x : tensor<?x3xf64>\n  return %y : tensor<?x3xf64>\n}\n"
        "func.func @main(%x: tensor<?x3xf64>) -> tensor<?x3xf64> {\n  " +
            negate + "\n  %y = wg.add %n, %x : tensor<?x3xf64>\n  return %y : tensor<?x3xf64>\n}\n",
        ParserConfig(ir::context()));
    auto main = module->lookupSymbol<func::FuncOp>("main");
    Operation *end = main.getBody().front().getTerminator();
    OpBuilder b(end);
    gradients = autodiff::reverse(b, main.getLoc(), end->getOperands(), {}, main.getArguments());
    if (succeeded(gradients))
      EXPECT_TRUE(succeeded(verify(*module)));
  }
  std::string errors;
  OwningOpRef<ModuleOp> module;
  FailureOr<autodiff::Gradients> gradients = failure();
};

} // namespace

TEST(ReverseTest, ARuleThatFailsIsNoMissingPath) {
  for (bool called : {false, true}) {
    Attempt attempt(Behaviour::fails, called);
    EXPECT_TRUE(failed(attempt.gradients));
    EXPECT_EQ(attempt.errors, "'arith.negf' op has no derivative today\n");
  }
}

TEST(ReverseTest, ACotangentOfAnotherShapeIsAnInternalError) {
  for (bool called : {false, true}) {
    Attempt attempt(Behaviour::dropsAnAxis, called);
    EXPECT_TRUE(failed(attempt.gradients));
    EXPECT_EQ(attempt.errors, "internal error: the derivative of 'arith.negf' gives operand 0, which is "
                              "'tensor<?x3xf64>', a cotangent of type 'tensor<3xf64>'\n");
  }
}

TEST(ReverseTest, ACotangentForNoOperandIsAnInternalError) {
  Attempt attempt(Behaviour::tooMany);
  EXPECT_TRUE(failed(attempt.gradients));
  EXPECT_EQ(attempt.errors,
            "internal error: 'arith.negf' has 1 operands, and its derivative rule returned 2 cotangents\n");
}

TEST(ReverseTest, ACotangentThatKnowsFewerSizesTakesItsOperandsType) {
  for (bool called : {false, true}) {
    Attempt attempt(Behaviour::forgetsSizes, called);
    ASSERT_TRUE(succeeded(attempt.gradients)) << attempt.errors;
    EXPECT_EQ(attempt.gradients->values[0].getType(),
              attempt.module->lookupSymbol<func::FuncOp>("main").getArgumentTypes()[0]);
  }
}

/// z [?, 2] times itself: one cotangent of z is [?, ?], the other [2, 2].
TEST(ReverseTest, CotangentsOfDifferentKnowledgeAreAdded) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>("func.func @main(%z: tensor<?x2xf64>, %seed: tensor<2x2xf64>) -> tensor<?x2xf64> {\n"
                                  "  %y = wg.contract \"mk,kn->mn\" %z, %z : tensor<?x2xf64>, tensor<?x2xf64> -> "
                                  "tensor<?x2xf64>\n  return %y : tensor<?x2xf64>\n}\n",
                                  ParserConfig(ir::context()));
  auto main = module->lookupSymbol<func::FuncOp>("main");
  Operation *end = main.getBody().front().getTerminator();
  OpBuilder b(end);
  auto gradients = autodiff::reverse(b, main.getLoc(), end->getOperands(), main.getArgument(1), main.getArgument(0));
  ASSERT_TRUE(succeeded(gradients));
  end->setOperands(gradients->values);
  ASSERT_TRUE(succeeded(verify(*module)));
  double z[] = {1, 2, 3, 4}, seed[] = {1, 0, 0, 0}; // y00 = z00 z00 + z01 z10
  auto results = codegen::interpret(*codegen::flatten(main),
                                    std::vector{runtime::Array::copyOf(std::span<const double>(z), {2, 2}),
                                                runtime::Array::copyOf(std::span<const double>(seed), {2, 2})});
  ASSERT_TRUE(results.ok()) << toString(results.failure());
  auto dz = (*results)[0].span<double>();
  EXPECT_EQ(std::vector<double>(dz.begin(), dz.end()), (std::vector<double>{2, 3, 2, 0}));
}
