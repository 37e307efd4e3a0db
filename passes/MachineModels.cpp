#include "passes/MachineModels.h"

namespace wg::passes {

namespace {

/// Fitted to 402 transposes and elementwise products with their loops in each order, on the Zen 4, 150 of them with
/// rows of two to eight elements. Of 285 others what is chosen takes 1.07 times as long as the fastest one; orders as
/// they lie take 1.25. On the Xeon, which follows 32 runs, of 200 kernels what is chosen takes 1.06 times as long.
constexpr Levels kOfOrders = {{{kLine, 300, 2000, 0.3, 0.8, 0},
                               {kLine, 9700, 18000, 1.4, 0.4, 1.2},
                               {kLine, 280000, 2.1e6, 0.3, 4.7, 1.5},
                               {kLine, 350000, 2.6e6, 3.6, 2.4, 7.5},
                               {kPage, 970, 1240, 2.5, 2.9, 0.6},
                               {kPage, 77, 140, 0.37, 0.6, 0.15}}};
constexpr Kind kOrders = {0.75, 0.5};

/// An Intel Xeon with AVX-512, 2 MB of second-level cache: fitted to 3,400 kernels.
constexpr Model kSlowMemory = {
    .vectorBytes = 64,
    .registers = 32,
    .rowsB = 512,
    .rowsC = 1,
    .isWrittenInParts = false,
    .levels = {{{kLine, 140, 810, 0.24, 0.96, 0},
                {kLine, 27000, 39000, 1.3, 0.79, 0.22},
                {kLine, 830000, 1e6, 0.33, 0.39, 4.9},
                {kLine, 1.3e6, 1.8e6, 1.3, 2.9, 0.17},
                {kPage, 110, 300, 0.39, 0.84, 0},
                {kPage, 1400, 4900, 4, 7.4, 0}}},
    .ofOrders = kOfOrders,
    .orders = kOrders,
    .begun = 0.5,
    .followed = 32,
    .strips = 0,
    .gap = 0,
    .copies = {0, 0, 1.2, 0.85},
    .packing = {15, 0, 0.35, 3.1},
    .gathering = {5.1, 0, 0.82, 3},
    .turning = {0.85, 0, 1.1, 0.67},
    .products = {1.4, 1.6, 1.1, 1.2},
    .outerProducts = {0, 0, 1.1, 0.74},
    .elementwise = {0.14, 0, 1.1, 0.65},
    .sums = {1.1, 0.1, 1.2, 1.1},
    .open = 0.49,
    .cycle = 0.27,
    .fma = 0.5,
    .halfFma = 0.5,
    .waits = 2.9,
    .halfTerms = 26,
    .term = 0.22,
    .store = 0,
    .tile = 0.68,
    .openStores = 0,
    .maskedStore = 0,
    .piece = 0,
    .copy = 0.71,
    .shuffle = 0.16,
    .ofPairs = 0.37,
    .element = 0.18,
    .collided = 2,
    .blocksClose = 1.2,
    .blocksFar = 1,
    .summed = 0.4,
    .sumRow = 1.1,
    .sumRun = 0.4,
    .gathered = 0.078,
    .gatheredFar = 0.89,
    .longRuns = 0.94,
    .stored = 0.41,
    .across = 0.12,
    .shortRun = 0.38,
    .run = 1.4,
    .runs = 0.69,
    .shared = 1,
    .apart = 0.1,
    .apartFar = 0.24,
};

/// A Zen 4, 1 MB of second-level cache: fitted to 18,000 kernels.
constexpr Model kFastMemory = {
    .vectorBytes = 64,
    .registers = 32,
    .rowsB = 32,
    .rowsC = 8,
    .isWrittenInParts = false,
    .levels = {{{kLine, 170, 500, 0.37, 0.84, 0},
                {kLine, 15000, 225000, 0.51, 0.19, 0},
                {kLine, 310000, 900000, 0.85, 1.3, 1},
                {kLine, 456000, 5.4e6, 1.1, 1.3, 1},
                {kPage, 72, 100, 0.3, 0, 0},
                {kPage, 7000, 7000, 3.0, 8.0, 0}}},
    .ofOrders = kOfOrders,
    .orders = kOrders,
    .begun = 0.5,
    .followed = 16,
    .strips = 0,
    .gap = 0,
    .copies = {2.8, 0, 0.72, 1.1},
    .packing = {3.2, 0, 1.2, 1.2},
    .gathering = {3.2, 0, 0.89, 1.25},
    .turning = {3.2, 0, 1.2, 0.7},
    .products = {5.5, 12, 0.69, 0.89},
    .outerProducts = {0, 8.4, 0.61, 0.75},
    .elementwise = {3.3, 1.8, 0.65, 1},
    .sums = {4.8, 0, 0.82, 0.91},
    .open = 0.75,
    .cycle = 0.27,
    .fma = 1,
    .halfFma = 0.5,
    .waits = 2.6,
    .halfTerms = 22,
    .term = 0.32,
    .store = 0.31,
    .tile = 0.67,
    .openStores = 0.42,
    .maskedStore = 0.15,
    .piece = 0,
    .copy = 0.5,
    .shuffle = 0.125,
    .ofPairs = 0.25,
    .element = 0.4,
    .collided = 3,
    .blocksClose = 0.87,
    .blocksFar = 1.25,
    .summed = 0.4,
    .sumRow = 1.1,
    .sumRun = 0.4,
    .gathered = 0.29,
    .gatheredFar = 1.45,
    .longRuns = 0.7,
    .stored = 0.29,
    .across = 0.047,
    .shortRun = 0.19,
    .run = 0.43,
    .runs = 0.35,
    .shared = 0.64,
    .apart = 0.1,
    .apartFar = 0.24,
};

/// A Zen 5, 1 MB of second-level cache: fitted to 9,900 forms of 490 products, with their copies of operands and
/// results. What decides how kernels are written is the Zen 4's.
constexpr Model kFastMachine = [] {
  Model model = kFastMemory;
  model.levels = {{{kLine, 360, 960, 0.25, 0.32, 0},
                   {kLine, 13000, 2.2e5, 0.5, 0.31, 0},
                   {kLine, 3.1e5, 1.3e6, 0.31, 1.5, 0.33},
                   {kLine, 3.4e5, 1e7, 1.6, 1.1, 0.3},
                   {kPage, 23, 100, 0.048, 0.031, 0},
                   {kPage, 4400, 7500, 1.9, 2.2, 0}}};
  model.copies = {0.55, 1.8, 0.86, 0.73};
  model.packing = {2.8, 0.033, 2.3, 1.3};
  model.gathering = {3.7, 0.05, 1.4, 1.3};
  model.turning = {1.4, 0.16, 1.2, 0.47};
  model.products = {9.3, 5.1, 0.83, 0.88};
  model.outerProducts = {9, 1.7, 0.86, 0.59};
  model.elementwise = {1.2, 2, 0.72, 0.77};
  model.sums = {1.3, 0, 0.84, 0.46};
  model.open = 0.77;
  model.cycle = 0.23;
  model.fma = 0.49;
  model.halfFma = 0.42;
  model.waits = 3;
  model.halfTerms = 31;
  model.term = 0.19;
  model.store = 0.2;
  model.tile = 0.19;
  model.openStores = 0.077;
  model.maskedStore = 0.052;
  model.copy = 0.44;
  model.shuffle = 0.093;
  model.ofPairs = 0.22;
  model.element = 0.27;
  model.blocksClose = 1;
  model.blocksFar = 0.97;
  model.summed = 0.42;
  model.sumRow = 0.97;
  model.sumRun = 0.45;
  model.gathered = 0.34;
  model.gatheredFar = 0.82;
  model.longRuns = 1.1;
  model.stored = 0.24;
  model.across = 0.065;
  model.shortRun = 0.24;
  model.run = 0.37;
  model.runs = 0.45;
  model.shared = 0.65;
  model.apart = 0.1;
  model.apartFar = 0.16;
  return model;
}();

/// A Zen 3, 512 KB of second-level cache: fitted to 1,700 kernels, of which half are within 13 %, nine tenths within
/// 1.5, and the orders to 250 transposes and elementwise products with their loops in each order. Of 150 of these,
/// fitted to the others, what is chosen takes 1.07 times as long as the fastest one.
constexpr Model kNarrowVectors = {
    .vectorBytes = 32,
    .registers = 16,
    .rowsB = 256,
    .rowsC = 7,
    .isWrittenInParts = true,
    .levels = {{{kLine, 76, 560, 0.61, 0.1, 0},
                {kLine, 6900, 160000, 0.76, 0.43, 0.19},
                {kLine, 310000, 690000, 1.9, 2.9, 0.77},
                {kLine, 220000, 7.5e6, 1.4, 1.5, 0.65},
                {kPage, 250, 1300, 0.78, 0.14, 0.098},
                {kPage, 13000, 98000, 1.3, 34, 1.2}}},
    .ofOrders = {{{kLine, 200, 590, 0.13, 1.2, 0},
                  {kLine, 13000, 18000, 1.4, 0.4, 1.2},
                  {kLine, 210000, 2.1e6, 0.3, 6.3, 1.5},
                  {kLine, 470000, 2.6e6, 3.6, 2.4, 7.5},
                  {kPage, 970, 1200, 2.5, 5.3, 0.6},
                  {kPage, 96, 140, 0.37, 0.6, 0.15}}},
    .orders = {0.75, 0.5},
    .begun = 0.33,
    .followed = 12,
    .strips = 64,
    .gap = 63,
    .copies = {1.6, 0.77, 0.72, 1.1},
    .packing = {5, 0, 0.7, 1.2},
    .gathering = {19, 0, 0.54, 1.7},
    .turning = {11, 0, 0.92, 0.45},
    .products = {5.9, 3.1, 0.56, 0.97},
    .outerProducts = {2, 4.5, 0.48, 0.76},
    .elementwise = {0.88, 0.68, 0.68, 1.3},
    .sums = {6.4, 0, 0.69, 0.67},
    .open = 0.76,
    .cycle = 0.31,
    .fma = 0.48,
    .halfFma = 0.55,
    .waits = 2.7,
    .halfTerms = 9.7,
    .term = 0.16,
    .store = 0.16,
    .tile = 0.68,
    .openStores = 2.2,
    .maskedStore = 0.2,
    .piece = 0.18,
    .copy = 0.54,
    .shuffle = 0.17,
    .ofPairs = 0.32,
    .element = 0.4,
    .collided = 3,
    .blocksClose = 0.94,
    .blocksFar = 0.9,
    .summed = 0.34,
    .sumRow = 1.2,
    .sumRun = 0.53,
    .gathered = 0.43,
    .gatheredFar = 0.76,
    .longRuns = 1,
    .stored = 0.36,
    .across = 0.038,
    .shortRun = 0.11,
    .run = 0.27,
    .runs = 0.49,
    .shared = 0.64,
    .apart = 0.3,
    .apartFar = 0.59,
    .clearly = 0.97,
    .clearlyMoved = 0.9,
};

constexpr const Model *kXeon[] = {&kSlowMemory}, *kZen4[] = {&kFastMemory}, *kEither[] = {&kFastMemory, &kSlowMemory},
                      *kZen5[] = {&kFastMachine}, *kZen3[] = {&kNarrowVectors};

} // namespace

llvm::ArrayRef<const Model *> modelsOf(Machine machine) {
  switch (machine) {
  case Machine::slowMemory: return kXeon;
  case Machine::fastMemory: return kZen4;
  case Machine::both: return kEither;
  case Machine::fast: return kZen5;
  case Machine::narrowVectors: return kZen3;
  }
  return kEither;
}

} // namespace wg::passes
