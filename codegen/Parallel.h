// Work on functions of a module by the pool's threads.
#pragma once

#include "runtime/ThreadPool.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

namespace wg::codegen {

/// What is worth a thread: waking one costs as much as some thousand ops of MLIR.
inline constexpr int64_t kOpsOfThread = 5000;

/// f(0) .. f(count - 1), each on a function of its own, with about `ops` ops in all: by several threads where that is
/// worth it. What is small starts none. Errors are said by the caller's thread, in the order of the numbers.
template <class F> mlir::LogicalResult forEachFunction(mlir::MLIRContext *context, int64_t count, int64_t ops, F &&f) {
  std::vector<mlir::LogicalResult> done(static_cast<size_t>(count), mlir::success());
  if (count > 1 && ops >= 2 * kOpsOfThread && context->isMultithreadingEnabled() && runtime::numThreads() > 1) {
    mlir::ParallelDiagnosticHandler inOrder(context);
    runtime::parallelFor(count, [&](int64_t i) {
      inOrder.setOrderIDForThread(static_cast<size_t>(i));
      done[static_cast<size_t>(i)] = f(i);
      inOrder.eraseOrderIDForThread();
    });
  } else {
    for (int64_t i = 0; i < count; ++i)
      done[static_cast<size_t>(i)] = f(i);
  }
  return mlir::success(llvm::all_of(done, [](mlir::LogicalResult result) { return mlir::succeeded(result); }));
}

} // namespace wg::codegen
