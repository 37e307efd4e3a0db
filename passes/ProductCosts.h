// What does a product cost in one order of its letters or another, and what does it cost to bring a tensor from one
// order into another? Estimates, of one core, in nanoseconds.
//
// An estimate walks the loops as codegen/emit/Contract (of a copy: emit/Map) writes them, and counts arithmetic, and
// the lines and pages that each level of memory has not kept since they were read last, and which of them no processor
// fetches ahead. What each of these costs is fitted to measured times of random equations on four machines
// (passes/MachineModels.h). On an Intel Xeon with AVX-512, whose memory is slow beside its arithmetic, of 580 other
// products half were estimated within 14 %, nine tenths within a factor of 1.5; of the sums and elementwise products
// that it was fitted to 12 % and 1.45, of the transposes 20 % and 1.6. On a Zen 4, whose memory is fast, of 1,500
// others half were estimated within 13 %, nine tenths within a factor of 1.45. On a Zen 3, whose vectors are half as
// wide, of the 1,700 kernels that it was fitted to half are estimated within 13 %, nine tenths within a factor of 1.5.
// On a Zen 5, which has fast memory and two multiply-adds a cycle, of 4,600 forms of 160 other products of up to 0.4 ms
// (with their copies) half were estimated within 8 %, nine tenths within a factor of 1.25; of 475 of 26 larger ones
// 11 % and 1.47.
// Known to be too low, by up to a factor of 2: what reads more than 20 MB by pieces of lines, each on a page of its
// own, and kernels with rows of a few elements whose loops are in a bad order; and a kernel and a transpose behind it
// where the two together touch more than a cache keeps that holds what each of them touches alone.
//
// Where it is compiled for such a machine its estimate alone decides, and the Zen 3's for all without AVX-512; for
// another with AVX-512 the geometric mean of the first two, so that what is chosen is good on either.
#pragma once

#include "ir/Dialect.h"
#include "passes/MemoryCosts.h"

#include <cmath>
#include <string>

namespace wg::passes {

/// Sums of so many products, or fewer, may be written term by term.
constexpr int64_t kMostTerms = 4;

/// A product's letters in the orders of a, b and c. Letters of size 1 are in none.
struct Order {
  std::string a, b, c;
  friend bool operator==(const Order &x, const Order &y) = default;
};

class ProductCosts {
public:
  /// Forms are compared by what they cost on `machine`.
  ProductCosts(ir::ContractOp op, Machine machine);

  /// That of the machine; of two, the first.
  const Model &machineModel() const { return model; }

  /// An estimate as it is compared.
  double cost(const Estimate &estimate) const {
    return models.size() == 1 ? estimate.on[0] : std::sqrt(estimate.on[0] * estimate.on[1]);
  }

  /// Of the product as it stands.
  Order orderOf(ir::ContractOp op) const {
    return {withoutUnits(op.lettersOfA()), withoutUnits(op.lettersOfB()), withoutUnits(op.lettersOfC())};
  }
  llvm::SmallVector<int64_t> shapeBy(llvm::StringRef letters) const;
  double elements(llvm::StringRef letters) const;
  std::string withoutUnits(llvm::StringRef letters) const;

  /// A copy of a tensor from one order of its letters to another; nothing if they are the same.
  Estimate transpose(llvm::StringRef from, llvm::StringRef to) const;
  /// The kernel of a product in this order. Infinite where no such kernel is worth it.
  Estimate product(const Order &order) const;
  /// Less than any product of these letters costs, anywhere.
  double leastProduct(const Order &order) const;
  /// What one would cost that multiplies and adds in every cycle and touches each line of memory once.
  double ideal(const Order &order) const;
  /// A sum of products, the elements of `spaceOfSum` by turns.
  Estimate sum(const Order &order) const;
  /// An elementwise kernel that goes through the result as it lies and adds the terms of each element's sum.
  Estimate terms(const Order &order) const;
  /// The letters that are summed.
  std::string summedIn(const Order &order) const;
  /// The letters of the operand that has all of them, in the order in which it lies; if both have, of the one that
  /// makes the sum cheaper. Where nothing is summed, those of the result, as it lies.
  std::string spaceOfSum(const Order &order) const;

  /// An operand of a walk through `space`, whose letters are then in the order of that; if it is copied (isCopied).
  bool isCopied(std::string &letters, llvm::StringRef space) const;

private:
  /// Multiplications.
  double products(const Order &order) const;
  Estimate sum(const Order &order, llvm::StringRef space) const;
  Estimate sumInOrder(const Order &order, llvm::StringRef space) const;
  /// The copy of such an operand, if there is one.
  Estimate copyWhatIsReadOften(std::string &letters, llvm::StringRef space) const;
  Estimate elementwise(const Order &order) const;
  /// Whether what lies as `from` is better copied before `space` is walked, which finds it as `copied` then (wg-fuse).
  bool paysToCopy(llvm::StringRef from, llvm::StringRef copied, llvm::StringRef space) const;
  /// The copies of an operand's parts that terms read, if there are (wg-fuse); `letters` become their order.
  Estimate copyTermsReadOften(std::string &letters, llvm::StringRef summed, llvm::StringRef c) const;
  llvm::SmallVector<Loop, 8> axesOf(const Order &order, llvm::StringRef space) const;
  /// What reads across, or not, in the order of its loops that the kernel has.
  Nest blocks(llvm::ArrayRef<Loop> axes, std::optional<size_t> across, double lanes) const;
  double step(llvm::StringRef letters, char letter) const;
  /// Of each model.
  Estimate each(double Model::*what) const;
  /// Arithmetic and memory, which counts so many times.
  Estimate together(Estimate arithmetic, const Nest &nest, Kind Model::*kind, Estimate times = {{1, 1}}) const;
  /// How many times memory counts where blocks read, or write, parts of lines of so many bytes.
  Estimate timesOfBlocks(double bytes) const;
  /// Rows of a tile that is so many vectors wide.
  double rowsOfTile(double wide) const;

  llvm::DenseMap<char, int64_t> sizes;
  double elementBytes;
  llvm::ArrayRef<const Model *> models;
  const Model &model; ///< the first: sizes follow it
};

} // namespace wg::passes
