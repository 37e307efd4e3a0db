// RUN: wengert-opt %s --wg-grad="function=product" | FileCheck %s --check-prefix=PRODUCT
// RUN: wengert-opt %s --wg-grad="function=product wrt=1 values=true seeds=true name=back" | FileCheck %s --check-prefix=SEEDS
// RUN: wengert-opt %s --wg-grad="function=shared" | FileCheck %s --check-prefix=SHARED
// RUN: wengert-opt %s --wg-grad="function=open" | FileCheck %s --check-prefix=OPEN
// RUN: wengert-opt %s --wg-grad="function=product" --wg-grad="function=product_grad" | FileCheck %s --check-prefix=TWICE

// PRODUCT-LABEL: func.func @product_grad
//  PRODUCT-SAME: (%[[A:.*]]: tensor<4xf64>, %[[B:.*]]: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
//       PRODUCT: %[[CT:.*]] = wg.constant dense<1.0{{.*}}> : tensor<4xf64>
//   PRODUCT-DAG: %[[DA:.*]] = wg.mul %[[CT]], %[[B]]
//   PRODUCT-DAG: %[[DB:.*]] = wg.mul %[[CT]], %[[A]]
//       PRODUCT: return %[[DA]], %[[DB]]

// SEEDS-LABEL: func.func @back
//  SEEDS-SAME: (%[[A:.*]]: tensor<4xf64>, %[[B:.*]]: tensor<4xf64>, %[[CT:.*]]: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
//       SEEDS: %[[Y:.*]] = wg.mul %[[A]], %[[B]]
//       SEEDS: %[[DB:.*]] = wg.mul %[[CT]], %[[A]]
//       SEEDS: return %[[Y]], %[[DB]]

// TWICE: func.func @product_grad_grad
func.func @product(%a: tensor<4xf64>, %b: tensor<4xf64>) -> tensor<4xf64> {
  %y = wg.mul %a, %b : tensor<4xf64>
  return %y : tensor<4xf64>
}

// Contributions are added in the order in which they come: the last use first.
// SHARED-LABEL: func.func @shared_grad
//  SHARED-SAME: (%[[X:.*]]: tensor<f64>)
//       SHARED: %[[FROM_SIN:.*]] = wg.mul %{{.*}}, %{{.*}} : tensor<f64>
//       SHARED: %[[SUM:.*]] = wg.add
//       SHARED: return %[[SUM]]
func.func @shared(%x: tensor<f64>) -> tensor<f64> {
  %a = wg.exp %x : tensor<f64>
  %b = wg.sin %x : tensor<f64>
  %y = wg.add %a, %b : tensor<f64>
  return %y : tensor<f64>
}

// A size that is open in the forward program is open in the backward program.
// OPEN-LABEL: func.func @open_grad
//  OPEN-SAME: (%[[X:.*]]: tensor<?x3xf64>, %[[W:.*]]: tensor<3x2xf64>) -> (tensor<?x3xf64>, tensor<3x2xf64>)
//       OPEN: wg.contract "{{.*}}"
//       OPEN: return %{{.*}}, %{{.*}} : tensor<?x3xf64>, tensor<3x2xf64>
func.func @open(%x: tensor<?x3xf64>, %w: tensor<3x2xf64>) -> tensor<f64> {
  %h = wg.contract "mk,kn->mn" %x, %w : tensor<?x3xf64>, tensor<3x2xf64> -> tensor<?x2xf64>
  %y = wg.reduce_sum %h axes [0, 1] : tensor<?x2xf64> -> tensor<f64>
  return %y : tensor<f64>
}
