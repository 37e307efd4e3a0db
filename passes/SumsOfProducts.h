// Products written as sums, or term by term, and sums of products as products of sums.
#pragma once

#include "ir/Dialect.h"
#include "passes/ProductCosts.h"

namespace wg::passes {

/// The product as broadcast, mul and reduce_sum. An axis of size 1 is none. Returns what is in its place.
mlir::Value writeAsSum(ir::ContractOp op, const ProductCosts &costs);

/// The product, or each term of the sum it is, as mul, the terms added one after another: few of them. Returns what is
/// in its place.
mlir::Value writeAsTerms(ir::ContractOp op, const ProductCosts &costs);

/// The sum of a product as a product of sums, if nobody else reads the product: fewer multiplications, and nothing of
/// the product's size. A difference has left its sign between the two.
void sumBefore(ir::ReduceSumOp sum);

} // namespace wg::passes
