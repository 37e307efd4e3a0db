// RUN: wengert-opt %s --wg-arrange-products | FileCheck %s
// RUN: wengert-opt %s --wg-arrange-products --wg-fuse=cpu=x86-64-v4 | FileCheck %s --check-prefix=FUSED

// A product with a vector is a sum of products, and a kernel of kind reduce.
// CHECK-LABEL: func.func @thin
// FUSED-LABEL: func.func @thin
func.func @thin(%a: tensor<4x6xf32>, %x: tensor<6xf32>) -> tensor<4xf32> {
  // CHECK:       wg.broadcast
  // CHECK-NEXT:  wg.mul
  // CHECK-NEXT:  wg.reduce_sum
  // FUSED:       wg.kernel reduce
  // FUSED:         wg.broadcast
  // FUSED:         wg.mul
  // FUSED:         wg.reduce_sum
  %p = wg.contract "mk,k->m" %a, %x : tensor<4x6xf32>, tensor<6xf32> -> tensor<4xf32>
  return %p : tensor<4xf32>
}

// A plain product stays, however its operands lie.
// CHECK-LABEL: func.func @plain
func.func @plain(%a: tensor<300x200xf32>, %b: tensor<400x200xf32>, %c: tensor<300x400xf32>) -> (tensor<300x400xf32>, tensor<400x200xf32>) {
  // CHECK-NEXT: wg.contract "mk,nk->mn"
  // CHECK-NEXT: wg.contract "kn,km->nm"
  // CHECK-NEXT: return
  %p = wg.contract "mk,nk->mn" %a, %b : tensor<300x200xf32>, tensor<400x200xf32> -> tensor<300x400xf32>
  %q = wg.contract "kn,km->nm" %c, %a : tensor<300x400xf32>, tensor<300x200xf32> -> tensor<400x200xf32>
  return %p, %q : tensor<300x400xf32>, tensor<400x200xf32>
}

// Few terms are added one after another where that is cheaper, from zero on, in an elementwise kernel as the result lies;
// of what is read often in short runs there are copies.
// CHECK-LABEL: func.func @terms
// FUSED-LABEL: func.func @terms
func.func @terms(%a: tensor<203x56x2xf32>, %b: tensor<2x68x203xf32>) -> tensor<56x68x203xf32> {
  // CHECK-NOT:   wg.contract
  // CHECK:       %[[A0:.*]] = wg.slice %{{.*}} from [0, 0, 0] to [203, 56, 1]
  // CHECK:       %[[P0:.*]] = wg.mul
  // CHECK-NEXT:  %[[Z:.*]] = wg.constant dense<0.0{{.*}}>
  // CHECK-NEXT:  %[[S0:.*]] = wg.add %[[P0]], %[[Z]]
  // CHECK:       wg.slice %{{.*}} from [0, 0, 1] to [203, 56, 2]
  // CHECK:       %[[P1:.*]] = wg.mul
  // CHECK-NEXT:  %[[S1:.*]] = wg.add %[[P1]], %[[S0]]
  // CHECK-NEXT:  return %[[S1]]
  // FUSED:       wg.kernel map
  // FUSED:       wg.kernel map
  // FUSED:       wg.kernel map
  // FUSED:         wg.mul
  // FUSED:         wg.mul
  // FUSED-NOT:   wg.kernel
  // FUSED:       return
  %p = wg.contract "ikl,lji->kji" %a, %b : tensor<203x56x2xf32>, tensor<2x68x203xf32> -> tensor<56x68x203xf32>
  return %p : tensor<56x68x203xf32>
}

// A batch that the result has innermost, and no operand does, is further out in the product; the result is transposed.
// CHECK-LABEL: func.func @batch_innermost
func.func @batch_innermost(%a: tensor<300x25x32xf32>, %b: tensor<300x25x32xf32>) -> tensor<32x32x25xf32> {
  // CHECK: %[[P:.*]] = wg.contract "{{.*}}->{{[ijk]*[ij]}}"
  // CHECK: %[[T:.*]] = wg.transpose %[[P]]
  // CHECK: return %[[T]]
  %p = wg.contract "nki,nkj->ijk" %a, %b : tensor<300x25x32xf32>, tensor<300x25x32xf32> -> tensor<32x32x25xf32>
  return %p : tensor<32x32x25xf32>
}

// A batch that all three have innermost stays there: vectors lie along it.
// CHECK-LABEL: func.func @along_the_batch
func.func @along_the_batch(%a: tensor<8x8x512xf32>, %b: tensor<8x8x512xf32>) -> tensor<8x8x512xf32> {
  // CHECK-NEXT: wg.contract "ikb,kjb->ijb"
  // CHECK-NEXT: return
  %p = wg.contract "ikb,kjb->ijb" %a, %b : tensor<8x8x512xf32>, tensor<8x8x512xf32> -> tensor<8x8x512xf32>
  return %p : tensor<8x8x512xf32>
}

// Whichever order of the result is asked for, the cheapest one is computed: in the other, rows of the second operand would
// be read a page apart. Its transpose costs next to nothing.
// CHECK-LABEL: func.func @any_order
func.func @any_order(%a: tensor<120x508x8xf32>, %b: tensor<8x508x741xf32>) -> (tensor<120x741xf32>, tensor<741x120xf32>) {
  // CHECK-NEXT: %[[P:.*]] = wg.contract "lik,kij->lj"
  // CHECK-NEXT: %[[Q:.*]] = wg.contract "lik,kij->lj"
  // CHECK-NEXT: %[[T:.*]] = wg.transpose %[[Q]] by [1, 0]
  // CHECK-NEXT: return %[[P]], %[[T]]
  %p = wg.contract "lik,kij->lj" %a, %b : tensor<120x508x8xf32>, tensor<8x508x741xf32> -> tensor<120x741xf32>
  %q = wg.contract "lik,kij->jl" %a, %b : tensor<120x508x8xf32>, tensor<8x508x741xf32> -> tensor<741x120xf32>
  return %p, %q : tensor<120x741xf32>, tensor<741x120xf32>
}

// Two products that want one operand in the same order share its copy.
// CHECK-LABEL: func.func @one_copy
func.func @one_copy(%a: tensor<128x128x16xf32>, %b: tensor<16x128x128xf32>, %c: tensor<16x128x128xf32>) -> (tensor<16x128x128xf32>, tensor<16x128x128xf32>) {
  // CHECK:     %[[T:.*]] = wg.transpose
  // CHECK:     wg.contract {{.*}} %[[T]], %{{.*}}
  // CHECK-NOT: wg.transpose
  // CHECK:     wg.contract {{.*}} %[[T]], %{{.*}}
  // CHECK-NOT: wg.transpose
  // CHECK:     return
  %p = wg.contract "ikb,bkj->bij" %a, %b : tensor<128x128x16xf32>, tensor<16x128x128xf32> -> tensor<16x128x128xf32>
  %q = wg.contract "ikb,bkj->bij" %a, %c : tensor<128x128x16xf32>, tensor<16x128x128xf32> -> tensor<16x128x128xf32>
  return %p, %q : tensor<16x128x128xf32>, tensor<16x128x128xf32>
}

// Elementwise products of two orders: one of them is copied, and no vector gathers.
// CHECK-LABEL: func.func @batch_in_two_orders
func.func @batch_in_two_orders(%a: tensor<100x7x200xf32>, %b: tensor<200x7x100xf32>) -> tensor<100x200xf32> {
  // CHECK: wg.transpose
  // CHECK: wg.contract
  %p = wg.contract "ikj,jki->ij" %a, %b : tensor<100x7x200xf32>, tensor<200x7x100xf32> -> tensor<100x200xf32>
  return %p : tensor<100x200xf32>
}

// Sizes 1 are no letters, and a size 0 leaves nothing to arrange.
// CHECK-LABEL: func.func @units
func.func @units(%a: tensor<1x300x200xf32>, %b: tensor<200x1x400xf32>, %e: tensor<4x0xf32>, %f: tensor<0x5xf32>) -> (tensor<300x400x1xf32>, tensor<4x5xf32>) {
  // CHECK-NEXT: wg.contract "umk,kun->mnu"
  // CHECK-NEXT: wg.contract "mk,kn->mn"
  // CHECK-NEXT: return
  %p = wg.contract "umk,kun->mnu" %a, %b : tensor<1x300x200xf32>, tensor<200x1x400xf32> -> tensor<300x400x1xf32>
  %q = wg.contract "mk,kn->mn" %e, %f : tensor<4x0xf32>, tensor<0x5xf32> -> tensor<4x5xf32>
  return %p, %q : tensor<300x400x1xf32>, tensor<4x5xf32>
}

// The gradient of what was broadcast along n: the sum over n is of %y, before the product.
// CHECK-LABEL: func.func @sum_over_rows
//  CHECK-SAME:   (%[[Q:.*]]: tensor<25x32x32xf32>, %[[Y:.*]]: tensor<300x25x32xf32>)
func.func @sum_over_rows(%q: tensor<25x32x32xf32>, %y: tensor<300x25x32xf32>) -> tensor<25x32xf32> {
  // CHECK-NEXT: %[[S:.*]] = wg.reduce_sum %[[Y]] axes [0] : tensor<300x25x32xf32> -> tensor<25x32xf32>
  // CHECK-NOT:  tensor<300x25x32
  // CHECK:      return
  %p = wg.contract "kij,nki->nkj" %q, %y : tensor<25x32x32xf32>, tensor<300x25x32xf32> -> tensor<300x25x32xf32>
  %s = wg.reduce_sum %p axes [0] : tensor<300x25x32xf32> -> tensor<25x32xf32>
  return %s : tensor<25x32xf32>
}

// A sum over a batch is one more letter that the result lacks.
// CHECK-LABEL: func.func @sum_over_batch
func.func @sum_over_batch(%a: tensor<6x30x20xf32>, %b: tensor<6x20x40xf32>) -> tensor<30x40xf32> {
  // CHECK-NEXT: wg.contract "bmk,bkn->mn"
  // CHECK-NEXT: return
  %p = wg.contract "bmk,bkn->bmn" %a, %b : tensor<6x30x20xf32>, tensor<6x20x40xf32> -> tensor<6x30x40xf32>
  %s = wg.reduce_sum %p axes [0] : tensor<6x30x40xf32> -> tensor<30x40xf32>
  return %s : tensor<30x40xf32>
}

// A product that is read elsewhere too is there anyway.
// CHECK-LABEL: func.func @sum_and_product
func.func @sum_and_product(%a: tensor<30x20xf32>, %b: tensor<20x40xf32>) -> (tensor<30x40xf32>, tensor<40xf32>) {
  // CHECK-NEXT: wg.contract "mk,kn->mn"
  // CHECK-NEXT: wg.reduce_sum
  // CHECK-NEXT: return
  %p = wg.contract "mk,kn->mn" %a, %b : tensor<30x20xf32>, tensor<20x40xf32> -> tensor<30x40xf32>
  %s = wg.reduce_sum %p axes [0] : tensor<30x40xf32> -> tensor<40xf32>
  return %p, %s : tensor<30x40xf32>, tensor<40xf32>
}

// A relation says which terms there are: neither a sum nor another order goes past it, and it is no sum of products.
// CHECK-LABEL: func.func @related
// FUSED-LABEL: func.func @related
func.func @related(%x: tensor<30x9x4xf32>, %w: tensor<3x4xf32>) -> (tensor<9xf32>, tensor<9x30xf32>) {
  // CHECK-NEXT:  wg.contract "nhc,rc->np; h=p+r-1" %{{.*}}, %{{.*}} to [9]
  // CHECK-NEXT:  wg.reduce_sum
  // CHECK-NEXT:  wg.contract "nhc,rc->pn; h=p+r-1" %{{.*}}, %{{.*}} to [9]
  // CHECK-NEXT:  return
  // FUSED:       wg.kernel contract
  %p = wg.contract "nhc,rc->np; h=p+r-1" %x, %w to [9] : tensor<30x9x4xf32>, tensor<3x4xf32> -> tensor<30x9xf32>
  %s = wg.reduce_sum %p axes [0] : tensor<30x9xf32> -> tensor<9xf32>
  %q = wg.contract "nhc,rc->pn; h=p+r-1" %x, %w to [9] : tensor<30x9x4xf32>, tensor<3x4xf32> -> tensor<9x30xf32>
  return %s, %q : tensor<9xf32>, tensor<9x30xf32>
}

// Where nothing is summed, one kernel goes through the result as it lies and reads an operand across.
// CHECK-LABEL: func.func @elementwise
// FUSED-LABEL: func.func @elementwise
func.func @elementwise(%a: tensor<1616x74xf32>, %b: tensor<1616x161x74xf32>) -> tensor<1616x74x161xf32> {
  // CHECK-NOT:   wg.contract
  // CHECK:       %[[P:.*]] = wg.mul {{.*}} : tensor<1616x74x161xf32>
  // CHECK-NEXT:  return %[[P]]
  // FUSED:       wg.kernel map
  // FUSED-NOT:   wg.kernel
  // FUSED:       return
  %p = wg.contract "kj,kij->kji" %a, %b : tensor<1616x74xf32>, tensor<1616x161x74xf32> -> tensor<1616x74x161xf32>
  return %p : tensor<1616x74x161xf32>
}

// -----

// What the turns of a loop do not change is copied once for all of them, and nothing else is then in another order.
// CHECK-LABEL: func.func private @turn
// CHECK-SAME: (%[[H:.*]]: tensor<8x512xf32>, %[[W:.*]]: tensor<256x512xf32>)
// CHECK-NEXT: %[[T:.*]] = wg.transpose %[[W]] by [1, 0]
// CHECK-NEXT: %[[Y:.*]] = wg.contract "mn,nk->mk" %[[H]], %[[T]]
func.func private @turn(%h: tensor<8x512xf32>, %w: tensor<256x512xf32>) -> tensor<8x512xf32> {
  %y = wg.contract "mn,kn->mk" %h, %w : tensor<8x512xf32>, tensor<256x512xf32> -> tensor<8x256xf32>
  %z = wg.concat %y, %y axis 1 : tensor<8x256xf32>, tensor<8x256xf32> -> tensor<8x512xf32>
  return %z : tensor<8x512xf32>
}
func.func @loop(%h: tensor<8x512xf32>, %w: tensor<256x512xf32>) -> tensor<8x512xf32> {
  %0 = wg.loop [@turn](%h, %w) {carried = 1 : i64, length = 50 : i64} : (tensor<8x512xf32>, tensor<256x512xf32>) -> tensor<8x512xf32>
  return %0 : tensor<8x512xf32>
}

// -----

// A product of invariants is one: what reads it copies it once, and it is itself in the form that it has outside.
// CHECK-LABEL: func.func private @of_product
// CHECK: %[[P:.*]] = wg.contract
// CHECK: %[[T:.*]] = wg.transpose
// CHECK: wg.contract "mn,nk->mk" %{{.*}}, %[[T]]
func.func private @of_product(%h: tensor<20x512xf32>, %w: tensor<512x512xf32>, %v: tensor<512x512xf32>) -> tensor<20x512xf32> {
  %p = wg.contract "kn,mk->mn" %w, %v : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  %y = wg.contract "mn,kn->mk" %h, %p : tensor<20x512xf32>, tensor<512x512xf32> -> tensor<20x512xf32>
  return %y : tensor<20x512xf32>
}
func.func @loop_of_product(%h: tensor<20x512xf32>, %w: tensor<512x512xf32>, %v: tensor<512x512xf32>) -> tensor<20x512xf32> {
  %0 = wg.loop [@of_product](%h, %w, %v) {carried = 1 : i64, length = 50 : i64} : (tensor<20x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<20x512xf32>
  return %0 : tensor<20x512xf32>
}

// -----

// An elementwise product of five letters: whichever order of the result is asked for, a copy of an operand that lies
// across, or one of the result, is compared with what reads it across. As a product of panels it took six times as long.
// CHECK-LABEL: func.func @elementwise_of_five
// FUSED-LABEL: func.func @elementwise_of_five
func.func @elementwise_of_five(%a: tensor<5x16x22xf32>, %b: tensor<8x16x24xf32>) -> tensor<5x22x24x16x8xf32> {
  // CHECK-NOT:   wg.contract
  // CHECK:       %[[P:.*]] = wg.mul {{.*}} : tensor<5x22x24x16x8xf32>
  // CHECK-NEXT:  return %[[P]]
  // FUSED:       wg.kernel map
  // FUSED-NOT:   wg.kernel contract
  // FUSED:       return
  %c = wg.contract "mlj,ilk->mjkli" %a, %b : tensor<5x16x22xf32>, tensor<8x16x24xf32> -> tensor<5x22x24x16x8xf32>
  return %c : tensor<5x22x24x16x8xf32>
}

// -----

// What is in a good order stays: a copy of an operand must be clearly cheaper than what has none.
// CHECK-LABEL: func.func @in_order
func.func @in_order(%a: tensor<64x48xf32>, %b: tensor<48x80xf32>) -> tensor<64x80xf32> {
  // CHECK-NEXT:  %[[P:.*]] = wg.contract "mk,kn->mn" %arg0, %arg1
  // CHECK-NEXT:  return %[[P]]
  %c = wg.contract "mk,kn->mn" %a, %b : tensor<64x48xf32>, tensor<48x80xf32> -> tensor<64x80xf32>
  return %c : tensor<64x80xf32>
}

// -----

// Few terms for each row of what lies in vectors, whose letter both operands have: a product, though one side of it has
// no letter of its own.
// CHECK-LABEL: func.func @thin_along_lanes
func.func @thin_along_lanes(%a: tensor<97x4xf32>, %b: tensor<97x1041x4xf32>) -> tensor<97x1041xf32> {
  // CHECK:       wg.contract "kj,kij->ki"
  %c = wg.contract "kj,kij->ki" %a, %b : tensor<97x4xf32>, tensor<97x1041x4xf32> -> tensor<97x1041xf32>
  return %c : tensor<97x1041xf32>
}
