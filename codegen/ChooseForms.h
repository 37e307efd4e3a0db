// Which form of a product is the fastest on this machine?
//
// Estimates (passes/ProductCosts) say which few may be; they are compiled and run, on memory of their own, by turns.
// Only forms count whose results are, bit for bit, those of the one that is estimated to be the fastest: what a program
// computes does not depend on what else the machine did while it was compiled.
#pragma once

#include "codegen/KernelCache.h"
#include "codegen/target/Cpu.h"
#include "passes/Passes.h"

#include <string>
#include <vector>

namespace wg::codegen {

/// What came of it.
struct FormReport {
  std::string product;         ///< its letters, sizes and dtype
  std::string where;           ///< the line that asks for it
  std::string forms;           ///< passes::Forms::all
  std::vector<double> seconds; ///< that each form took, the one that is estimated to be the fastest first; 0: was left
                               ///< out, as its results have other bits, or others of its group were slower
  size_t chosen = 0;
};

/// Measures the forms of a product with the threads that kernels are shared among now, or knows from before, in this
/// process, which it is. Takes 20 to 50 times as long as a large product, compiling included; of a small one as long as
/// compiling its forms. `cache` may be null. The first one where memory is short, where a form does not run, or where
/// others measure for long.
FormReport fastestForm(const passes::Forms &forms, const Target &target, KernelCache *cache);

/// The form that another compile of the program chose, of which these are the reports; the first one if it chose none.
size_t chosenBefore(const std::vector<FormReport> &reports, const passes::Forms &forms);

} // namespace wg::codegen
