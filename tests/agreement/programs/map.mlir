// inputs in [-1, 1]
func.func @chain(%x: tensor<4099xf32>) -> tensor<4099xf32> {
  %h = wg.constant dense<0.5> : tensor<4099xf32>
  %t = wg.constant dense<0.1> : tensor<4099xf32>
  %a = wg.mul %x, %h : tensor<4099xf32>
  %b = wg.add %a, %t : tensor<4099xf32>
  %c = wg.tanh %b : tensor<4099xf32>
  %d = wg.mul %c, %x : tensor<4099xf32>
  return %d : tensor<4099xf32>
}
func.func @bias(%x: tensor<7x37xf32>, %b: tensor<37xf32>, %r: tensor<7xf32>) -> (tensor<7x37xf32>, tensor<37x7xf32>) {
  %bb = wg.broadcast %b to [7, 37] dims [1] : tensor<37xf32> -> tensor<7x37xf32>
  %rr = wg.broadcast %r to [7, 37] dims [0] : tensor<7xf32> -> tensor<7x37xf32>
  %s = wg.add %x, %bb : tensor<7x37xf32>
  %t = wg.mul %s, %rr : tensor<7x37xf32>
  %u = wg.relu %t : tensor<7x37xf32>
  %v = wg.transpose %u by [1, 0] : tensor<7x37xf32> -> tensor<37x7xf32>
  return %u, %v : tensor<7x37xf32>, tensor<37x7xf32>
}
func.func @mixed(%x: tensor<33xf64>, %i: tensor<33xi32>, %c: tensor<33xi1>) -> (tensor<33xf64>, tensor<33xi1>, tensor<33x4xf32>) {
  %f = wg.cast %i {dtype = f64} : tensor<33xi32> -> tensor<33xf64>
  %y = wg.select %c, %x, %f : tensor<33xi1>, tensor<33xf64>
  %g = wg.less %y, %f : tensor<33xf64>
  %n = wg.logical_not %g : tensor<33xi1>
  %o = wg.one_hot %i depth 4 {dtype = f32} : tensor<33xi32> -> tensor<33x4xf32>
  return %y, %n, %o : tensor<33xf64>, tensor<33xi1>, tensor<33x4xf32>
}
func.func @adam(%p: tensor<1000xf32> {wg.result = 0 : i64}, %m: tensor<1000xf32> {wg.result = 1 : i64}, %v: tensor<1000xf32> {wg.result = 2 : i64}, %g: tensor<1000xf32>)
    -> (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) {
  %b1 = wg.constant dense<0.9> : tensor<1000xf32>
  %c1 = wg.constant dense<0.1> : tensor<1000xf32>
  %b2 = wg.constant dense<0.999> : tensor<1000xf32>
  %c2 = wg.constant dense<0.001> : tensor<1000xf32>
  %lr = wg.constant dense<0.01> : tensor<1000xf32>
  %eps = wg.constant dense<1.0e-8> : tensor<1000xf32>
  %vv = wg.mul %v, %v : tensor<1000xf32>
  %m0 = wg.mul %b1, %m : tensor<1000xf32>
  %m1 = wg.mul %c1, %g : tensor<1000xf32>
  %m2 = wg.add %m0, %m1 : tensor<1000xf32>
  %v0 = wg.mul %b2, %vv : tensor<1000xf32>
  %gg = wg.mul %g, %g : tensor<1000xf32>
  %v1 = wg.mul %c2, %gg : tensor<1000xf32>
  %v2 = wg.add %v0, %v1 : tensor<1000xf32>
  %r = wg.sqrt %v2 : tensor<1000xf32>
  %d = wg.add %r, %eps : tensor<1000xf32>
  %q = wg.div %m2, %d : tensor<1000xf32>
  %u = wg.mul %lr, %q : tensor<1000xf32>
  %p2 = wg.sub %p, %u : tensor<1000xf32>
  return %p2, %m2, %v2 : tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>
}
// Rows of one element more than whole vectors, and of one: of what is truncated an element is stored, and nothing beyond.
func.func @narrowed(%x: tensor<3x33xi64>, %y: tensor<1x1xi64>, %z: tensor<5x17xi32>) -> (tensor<3x33xi32>, tensor<3x33xui8>, tensor<1x1xi32>, tensor<1x1xui8>, tensor<5x17xui8>) {
  %a = wg.iota to [3, 33] axis 1 {dtype = i64} : tensor<3x33xi64>
  %b = wg.add %x, %a : tensor<3x33xi64>
  %c = wg.cast %b {dtype = i32} : tensor<3x33xi64> -> tensor<3x33xi32>
  %d = wg.cast %b {dtype = ui8} : tensor<3x33xi64> -> tensor<3x33xui8>
  %e = wg.iota to [1, 1] axis 1 {dtype = i64} : tensor<1x1xi64>
  %f = wg.remainder %e, %y : tensor<1x1xi64>
  %g = wg.cast %f {dtype = i32} : tensor<1x1xi64> -> tensor<1x1xi32>
  %h = wg.cast %f {dtype = ui8} : tensor<1x1xi64> -> tensor<1x1xui8>
  %i = wg.mul %z, %z : tensor<5x17xi32>
  %j = wg.cast %i {dtype = ui8} : tensor<5x17xi32> -> tensor<5x17xui8>
  return %c, %d, %g, %h, %j : tensor<3x33xi32>, tensor<3x33xui8>, tensor<1x1xi32>, tensor<1x1xui8>, tensor<5x17xui8>
}
