// inputs in [-1, 1]
// What a loop carries and also keeps lies in what it keeps (codegen/EmitBodies.h): after each turn, before it, both,
// from the last row to the first, of one turn, with parts that change places, with the same value in two stacks.
func.func private @step(%h: tensor<8x300xf32>, %c: tensor<8x300xf32>, %x: tensor<8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>) {
  %r = wg.reduce_sum %x axes [1] : tensor<8x300xf32> -> tensor<8xf32>
  %w = wg.broadcast %r to [8, 300] dims [0] : tensor<8xf32> -> tensor<8x300xf32>
  %a = wg.tanh %w : tensor<8x300xf32>
  %b = wg.mul %c, %a : tensor<8x300xf32>
  %n = wg.sub %b, %h : tensor<8x300xf32>
  %m = wg.add %n, %x : tensor<8x300xf32>
  %g = wg.tanh %m : tensor<8x300xf32>
  return %g, %n, %g, %c : tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>
}
func.func @after_and_before(%h: tensor<8x300xf32>, %c: tensor<8x300xf32>, %x: tensor<7x8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<7x8x300xf32>, tensor<7x8x300xf32>) {
  %0:4 = wg.loop [@step](%h, %c, %x) {carried = 2 : i64, length = 7 : i64, scanned = 1 : i64} : (tensor<8x300xf32>, tensor<8x300xf32>, tensor<7x8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<7x8x300xf32>, tensor<7x8x300xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<8x300xf32>, tensor<8x300xf32>, tensor<7x8x300xf32>, tensor<7x8x300xf32>
}
func.func private @step_reversed(%h: tensor<8x300xf32>, %c: tensor<8x300xf32>, %x: tensor<8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>) {
  %r = wg.reduce_max %x axes [1] : tensor<8x300xf32> -> tensor<8xf32>
  %w = wg.broadcast %r to [8, 300] dims [0] : tensor<8xf32> -> tensor<8x300xf32>
  %b = wg.mul %c, %w : tensor<8x300xf32>
  %n = wg.sub %b, %h : tensor<8x300xf32>
  %g = wg.tanh %n : tensor<8x300xf32>
  return %g, %n, %g, %c : tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>
}
func.func @reversed(%h: tensor<8x300xf32>, %c: tensor<8x300xf32>, %x: tensor<5x8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<5x8x300xf32>, tensor<5x8x300xf32>) {
  %0:4 = wg.loop [@step_reversed](%h, %c, %x) {carried = 2 : i64, length = 5 : i64, reversed = true, scanned = 1 : i64} : (tensor<8x300xf32>, tensor<8x300xf32>, tensor<5x8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<5x8x300xf32>, tensor<5x8x300xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<8x300xf32>, tensor<8x300xf32>, tensor<5x8x300xf32>, tensor<5x8x300xf32>
}
func.func private @step_once(%h: tensor<8x300xf32>, %c: tensor<8x300xf32>, %x: tensor<8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>) {
  %r = wg.reduce_min %x axes [1] : tensor<8x300xf32> -> tensor<8xf32>
  %w = wg.broadcast %r to [8, 300] dims [0] : tensor<8xf32> -> tensor<8x300xf32>
  %n = wg.mul %c, %w : tensor<8x300xf32>
  %g = wg.add %n, %h : tensor<8x300xf32>
  return %g, %n, %g, %c : tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>
}
func.func @once(%h: tensor<8x300xf32>, %c: tensor<8x300xf32>, %x: tensor<1x8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<1x8x300xf32>, tensor<1x8x300xf32>) {
  %0:4 = wg.loop [@step_once](%h, %c, %x) {carried = 2 : i64, length = 1 : i64, scanned = 1 : i64} : (tensor<8x300xf32>, tensor<8x300xf32>, tensor<1x8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<1x8x300xf32>, tensor<1x8x300xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<8x300xf32>, tensor<8x300xf32>, tensor<1x8x300xf32>, tensor<1x8x300xf32>
}
func.func private @step_both(%h: tensor<8x300xf32>, %x: tensor<8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>) {
  %r = wg.reduce_max %x axes [1] : tensor<8x300xf32> -> tensor<8xf32>
  %w = wg.broadcast %r to [8, 300] dims [0] : tensor<8xf32> -> tensor<8x300xf32>
  %n = wg.mul %h, %w : tensor<8x300xf32>
  return %n, %h, %n, %n : tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>
}
func.func @both_and_twice(%h: tensor<8x300xf32>, %x: tensor<6x8x300xf32>) -> (tensor<6x8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>) {
  %0:4 = wg.loop [@step_both](%h, %x) {carried = 1 : i64, length = 6 : i64, scanned = 1 : i64} : (tensor<8x300xf32>, tensor<6x8x300xf32>) -> (tensor<8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>)
  return %0#1, %0#2, %0#3 : tensor<6x8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>
}
// Its stacks are none of its results: they lie in the arena, a row apart.
func.func @both_inside(%h: tensor<8x300xf32>, %x: tensor<6x8x300xf32>) -> (tensor<6x8x300xf32>, tensor<8x300xf32>) {
  %0:4 = wg.loop [@step_inside](%h, %x) {carried = 1 : i64, length = 6 : i64, scanned = 1 : i64} : (tensor<8x300xf32>, tensor<6x8x300xf32>) -> (tensor<8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>)
  %s = wg.sub %0#1, %0#2 : tensor<6x8x300xf32>
  %p = wg.mul %s, %0#3 : tensor<6x8x300xf32>
  return %p, %0#0 : tensor<6x8x300xf32>, tensor<8x300xf32>
}
func.func private @step_inside(%h: tensor<8x300xf32>, %x: tensor<8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>) {
  %r = wg.reduce_max %x axes [1] : tensor<8x300xf32> -> tensor<8xf32>
  %w = wg.broadcast %r to [8, 300] dims [0] : tensor<8xf32> -> tensor<8x300xf32>
  %n = wg.sub %h, %w : tensor<8x300xf32>
  return %n, %h, %n, %n : tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>
}
func.func private @step_swapped(%a: tensor<8x300xf32>, %b: tensor<8x300xf32>, %c: tensor<8x300xf32>, %x: tensor<8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>) {
  %r = wg.reduce_max %x axes [1] : tensor<8x300xf32> -> tensor<8xf32>
  %w = wg.broadcast %r to [8, 300] dims [0] : tensor<8xf32> -> tensor<8x300xf32>
  %n = wg.mul %a, %w : tensor<8x300xf32>
  return %b, %n, %c, %a, %b, %c : tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>
}
func.func @swapped(%a: tensor<8x300xf32>, %b: tensor<8x300xf32>, %c: tensor<8x300xf32>, %x: tensor<6x8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>) {
  %0:6 = wg.loop [@step_swapped](%a, %b, %c, %x) {carried = 3 : i64, length = 6 : i64, scanned = 1 : i64} : (tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<6x8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5 : tensor<8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>, tensor<6x8x300xf32>
}
// Run by two loops, which carry different parts of what it gives.
func.func private @step_shared(%h: tensor<8x300xf32>, %x: tensor<8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>) {
  %r = wg.reduce_max %x axes [1] : tensor<8x300xf32> -> tensor<8xf32>
  %w = wg.broadcast %r to [8, 300] dims [0] : tensor<8xf32> -> tensor<8x300xf32>
  %n = wg.sub %h, %w : tensor<8x300xf32>
  return %n, %n : tensor<8x300xf32>, tensor<8x300xf32>
}
func.func @shared(%h: tensor<8x300xf32>, %x: tensor<6x8x300xf32>) -> (tensor<8x300xf32>, tensor<6x8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>) {
  %0:2 = wg.loop [@step_shared](%h, %x) {carried = 1 : i64, length = 6 : i64, scanned = 1 : i64} : (tensor<8x300xf32>, tensor<6x8x300xf32>) -> (tensor<8x300xf32>, tensor<6x8x300xf32>)
  %1:2 = wg.loop [@step_shared](%h, %0#0) {carried = 2 : i64, length = 3 : i64} : (tensor<8x300xf32>, tensor<8x300xf32>) -> (tensor<8x300xf32>, tensor<8x300xf32>)
  return %0#0, %0#1, %1#0, %1#1 : tensor<8x300xf32>, tensor<6x8x300xf32>, tensor<8x300xf32>, tensor<8x300xf32>
}
