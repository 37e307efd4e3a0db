// What `--wg-simplify` makes of a program is what the stage simplified makes of it.
// RUN: wengert train digits --batch 8 --dump-ir=dropped > %t.dropped
// RUN: wengert train digits --batch 8 --dump-ir=simplified > %t.simplified
// RUN: wengert-opt %t.dropped | FileCheck %s
// RUN: wengert-opt %t.simplified > %t.stage
// RUN: wengert-opt %t.dropped --wg-simplify | diff %t.stage -

// The step has what only this stage removes: assigned variables and constants of the optimiser's formulas.
// CHECK: wg.stop_gradient
// CHECK: wg.version
