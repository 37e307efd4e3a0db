// Functions of other modules in one module. A function is known by a number that all its copies have, wherever they
// are: names are for readers, and any number of functions may have the same one.
#pragma once

#include "ir/Dialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace wg::detail {

/// The numbers of a module's functions. They come from nextSerial(): no other function has ever had one of them.
using Identities = llvm::DenseMap<mlir::Operation *, uint64_t>;

class Imports {
public:
  /// Copies go to the module of `symbols`.
  explicit Imports(mlir::SymbolTable &symbols) : symbols_(symbols) {}

  /// The copy here of a function and of all that it calls, made if it is not there yet. `identities` are those of its
  /// module; what has none gets one.
  mlir::func::FuncOp copyOf(mlir::func::FuncOp function, const Identities &identities);
  /// The copy for these argument types, which may be narrower than its own. A failure if they do not fit; `names` are
  /// what its error calls the arguments.
  mlir::FailureOr<mlir::func::FuncOp> copyOf(mlir::func::FuncOp function, const Identities &identities,
                                             mlir::TypeRange arguments, llvm::ArrayRef<std::string> names);
  /// The numbers of the copies.
  Identities takeIdentities() { return std::move(own_); }

private:
  /// A number and a function type: the same function for other sizes is another one.
  using Key = std::pair<uint64_t, const void *>;
  mlir::SymbolTable &symbols_;
  llvm::DenseMap<Key, mlir::func::FuncOp> copies_;   ///< by the whole type
  llvm::DenseMap<Key, mlir::func::FuncOp> narrowed_; ///< by the arguments' types
  Identities own_;
};

} // namespace wg::detail
