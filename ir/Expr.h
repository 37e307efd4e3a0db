// Derivative rules as formulas. An Expr is a value and the place where what is made of it goes, so `1 - y * y` builds
// wg ops, and a rule mentions neither builder nor location.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <initializer_list>

namespace wg::ir {

/// A value in a rule, or none. Operands of one formula have one type; a number takes the type of what is beside it.
class Expr {
public:
  Expr() = default;
  Expr(mlir::Value value, mlir::OpBuilder &b, mlir::Location loc) : value_(value), builder_(&b), loc_(loc) {}
  /// Another value, in the same place.
  Expr at(mlir::Value value) const { return Expr(value, *builder_, *loc_); }

  explicit operator bool() const { return static_cast<bool>(value_); }
  operator mlir::Value() const { return value_; }
  mlir::RankedTensorType type() const { return llvm::cast<mlir::RankedTensorType>(value_.getType()); }
  mlir::Type elementType() const { return type().getElementType(); }
  int64_t rank() const { return type().getRank(); }

  /// An op's one result: `ct.make<GatherOp>(ct, indices)`.
  template <class Op, class... A> Expr make(A &&...arguments) const {
    return at(Op::create(*builder_, *loc_, std::forward<A>(arguments)...));
  }
  /// The number in every place of this value's type.
  Expr filled(double number) const;
  Expr ones() const { return filled(1); }
  Expr zeros() const { return filled(0); }

  // What follows is worded as in Build.h.
  Expr transposed(llvm::ArrayRef<int64_t> permutation) const;
  Expr reshaped(llvm::ArrayRef<mlir::OpFoldResult> shape) const;
  Expr reshapedLike(mlir::Value like) const;
  Expr sliced(llvm::ArrayRef<mlir::OpFoldResult> starts, llvm::ArrayRef<mlir::OpFoldResult> limits,
              llvm::ArrayRef<int64_t> strides) const;
  Expr padded(llvm::ArrayRef<mlir::OpFoldResult> low, llvm::ArrayRef<mlir::OpFoldResult> high,
              llvm::ArrayRef<int64_t> interior) const;
  Expr broadcast(llvm::ArrayRef<mlir::OpFoldResult> shape, llvm::ArrayRef<int64_t> dims) const;
  /// These updates added to the rows at `indices` of zeros of `shape` (ScatterAddOp).
  Expr scattered(mlir::Value indices, llvm::ArrayRef<mlir::OpFoldResult> shape, int64_t batchDims) const;
  /// Summed over what a broadcast along `dims` has made of x.
  Expr summedTo(llvm::ArrayRef<int64_t> dims, mlir::Value x) const;
  /// Repeated along the axes that a reduction of x has taken away.
  Expr unreduced(llvm::ArrayRef<int64_t> axes, mlir::Value x) const;

  // Sizes: numbers where they are known.
  mlir::OpFoldResult index(int64_t number) const { return builder_->getIndexAttr(number); }
  mlir::OpFoldResult sizeOf(mlir::Value x, int64_t axis) const;
  llvm::SmallVector<mlir::Value> dynamicSizes(mlir::Value x) const;
  /// `a - b` of a, b, ...
  mlir::OpFoldResult size(llvm::StringRef formula, llvm::ArrayRef<mlir::OpFoldResult> sizes) const;
  /// An attribute's sizes, with the operands that stand for each `?`.
  llvm::SmallVector<mlir::OpFoldResult> mixed(llvm::ArrayRef<int64_t> known, mlir::ValueRange operands) const;

private:
  mlir::Value value_;
  mlir::OpBuilder *builder_ = nullptr;
  std::optional<mlir::Location> loc_;
};

Expr operator+(const Expr &a, const Expr &b);
Expr operator-(const Expr &a, const Expr &b);
Expr operator*(const Expr &a, const Expr &b);
Expr operator/(const Expr &a, const Expr &b);
Expr operator-(const Expr &x);
inline Expr operator+(const Expr &a, double b) { return a + a.filled(b); }
inline Expr operator+(double a, const Expr &b) { return b.filled(a) + b; }
inline Expr operator-(const Expr &a, double b) { return a - a.filled(b); }
inline Expr operator-(double a, const Expr &b) { return b.filled(a) - b; }
inline Expr operator*(const Expr &a, double b) { return a * a.filled(b); }
inline Expr operator*(double a, const Expr &b) { return b.filled(a) * b; }
inline Expr operator/(const Expr &a, double b) { return a / a.filled(b); }
inline Expr operator/(double a, const Expr &b) { return b.filled(a) / b; }
/// Conditions.
Expr operator>(const Expr &a, const Expr &b);
Expr operator>=(const Expr &a, const Expr &b);
Expr operator<(const Expr &a, const Expr &b);
Expr equal(const Expr &a, const Expr &b);
inline Expr operator>(const Expr &a, double b) { return a > a.filled(b); }
inline Expr operator>=(const Expr &a, double b) { return a >= a.filled(b); }
inline Expr operator<(const Expr &a, double b) { return a < a.filled(b); }
inline Expr equal(const Expr &a, double b) { return equal(a, a.filled(b)); }
Expr operator&&(const Expr &a, const Expr &b);
/// (No operator: `!x` asks whether there is an x.)
Expr notOf(const Expr &x);
/// a where the condition holds, else b.
Expr where(const Expr &condition, const Expr &a, const Expr &b);

Expr exp(const Expr &x);
Expr log(const Expr &x);
Expr sin(const Expr &x);
Expr cos(const Expr &x);
Expr abs(const Expr &x);
Expr sign(const Expr &x);
Expr sigmoid(const Expr &x);
Expr pow(const Expr &a, const Expr &b);
Expr floorDiv(const Expr &a, const Expr &b);
Expr sum(const Expr &x, llvm::ArrayRef<int64_t> axes);
Expr product(const Expr &x, llvm::ArrayRef<int64_t> axes);

/// How an element of a result moves with the element of an operand at its place: a linear function, which reverse mode
/// applies to the cotangent and forward mode to the tangent. Empty: it does not, or the operand is none that can move.
class Slope {
public:
  Slope() = default;
  /// ct times the slope.
  Slope(const Expr &slope);
  /// The same for a number; by 1 nothing is done, by -1 the sign is changed.
  Slope(double slope);
  explicit Slope(std::function<Expr(const Expr &ct)> apply) : apply_(std::move(apply)) {}

  explicit operator bool() const { return static_cast<bool>(apply_); }
  Expr operator()(const Expr &ct) const { return apply_(ct); }

private:
  std::function<Expr(const Expr &)> apply_;
};
inline const Slope none;
/// ct where the condition holds, else an exact 0: a mask selects, as 0 times infinity is no number.
Slope mask(const Expr &condition);
Slope unless(const Expr &condition);
/// ct / divisor, for slopes whose inverse is what does not overflow; (ct * numerator) / divisor.
Slope over(const Expr &divisor, double numerator = 1);
/// The slope, then times x.
Slope operator*(const Slope &slope, const Expr &x);
/// One slope where the condition holds, and another elsewhere.
Slope where(const Expr &condition, const Slope &a, const Slope &b);

/// One for each operand.
struct Slopes : llvm::SmallVector<Slope, 2> {
  Slopes(const Expr &slope) : SmallVector{Slope(slope)} {}
  Slopes(const Slope &slope) : SmallVector{slope} {}
  Slopes(double slope) : SmallVector{Slope(slope)} {}
  Slopes(std::initializer_list<Slope> slopes) : SmallVector(slopes) {}
};

/// One Expr for each operand, none for an index or a condition; operands that follow the last have none either.
struct Terms : llvm::SmallVector<Expr, 2> {
  Terms() = default;
  Terms(const Expr &term) : SmallVector{term} {}
  Terms(std::initializer_list<Expr> terms) : SmallVector(terms) {}
};

/// The operands of an op, in a rule of its own.
class Operands {
public:
  Operands(mlir::ValueRange values, mlir::OpBuilder &b, mlir::Location loc) : values_(values), builder_(b), loc_(loc) {}
  Expr operator[](size_t i) const { return Expr(values_[i], builder_, loc_); }

private:
  mlir::ValueRange values_;
  mlir::OpBuilder &builder_;
  mlir::Location loc_;
};

/// The operands of an op that is done for n lanes at once, in its rule: those that are batched have one more axis in
/// front, of size n. At least one is.
class Lanes {
public:
  Lanes(mlir::ValueRange values, llvm::ArrayRef<bool> batched, mlir::OpBuilder &b, mlir::Location loc)
      : values_(values), batched_(batched), builder_(b), loc_(loc) {}
  size_t size() const { return values_.size(); }
  Expr operator[](size_t i) const { return Expr(values_[i], builder_, loc_); }
  bool isBatched(size_t i) const { return batched_[i]; }
  /// Operand i with the axis in any case. Failure after an error, if there can be no such value.
  mlir::FailureOr<Expr> spread(size_t i) const;
  /// n
  mlir::OpFoldResult count() const;
  /// n and the sizes of an attribute, `operands` standing for each `?` of it.
  llvm::SmallVector<mlir::OpFoldResult> withCount(llvm::ArrayRef<int64_t> known, mlir::OperandRange operands) const {
    return before(count(), known, operands);
  }
  /// `first` and the sizes of an attribute.
  llvm::SmallVector<mlir::OpFoldResult> before(mlir::OpFoldResult first, llvm::ArrayRef<int64_t> known,
                                               mlir::OperandRange operands) const;
  llvm::SmallVector<mlir::OpFoldResult> before(int64_t first, llvm::ArrayRef<int64_t> known,
                                               mlir::OperandRange operands) const {
    return before(builder_.getIndexAttr(first), known, operands);
  }
  /// What takes the place of these operands of the op.
  llvm::SmallVector<mlir::Value> at(mlir::OperandRange operands) const;

private:
  mlir::ValueRange values_;
  llvm::ArrayRef<bool> batched_;
  mlir::OpBuilder &builder_;
  mlir::Location loc_;
};

/// `first`, then each of `axes` one higher: axes of a value with one more axis in front.
llvm::SmallVector<int64_t> shifted(std::initializer_list<int64_t> first, llvm::ArrayRef<int64_t> axes);

} // namespace wg::ir
