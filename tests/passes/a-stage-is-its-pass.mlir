// What a stage makes of a program is what the pass of its name makes of it.
// RUN: wengert train digits --batch 8 --dump-ir=traced > %t.traced
// RUN: wengert train digits --batch 8 --dump-ir=dropped > %t.dropped
// RUN: wengert train digits --batch 8 --dump-ir=simplified > %t.simplified
// RUN: wengert train digits --batch 8 --dump-ir=fused > %t.fused
// RUN: wengert train digits --batch 8 --dump-ir=lowered > %t.lowered
// RUN: wengert train digits --batch 8 --dump-ir=llvm > %t.llvm
// RUN: wengert-opt %t.dropped > %t.stage
// RUN: FileCheck %s < %t.stage
// RUN: wengert-opt %t.traced --wg-drop | diff %t.stage -
// RUN: wengert-opt %t.simplified > %t.stage
// RUN: wengert-opt %t.dropped --wg-simplify | diff %t.stage -
// RUN: wengert-opt %t.fused > %t.stage
// RUN: wengert-opt %t.simplified --wg-fuse | diff %t.stage -
// The places of errors are those of the text then.
// RUN: wengert-opt %t.lowered | sed 's/wg.error_places = [^]]*//' > %t.stage
// RUN: wengert-opt %t.fused --wg-lower | sed 's/wg.error_places = [^]]*//' | diff %t.stage -
// RUN: wengert-opt %t.llvm > %t.stage
// RUN: wengert-opt %t.lowered --wg-to-llvm | diff %t.stage -

// The step has what only the stage simplified removes: assigned variables and constants of the optimiser's formulas.
// CHECK: wg.stop_gradient
// CHECK: wg.version
