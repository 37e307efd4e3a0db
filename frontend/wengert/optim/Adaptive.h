// Optimisers whose steps adapt to the gradients that there were, beside those of Optimizer.h, and made as those are. A
// sparse gradient is taken as the tensor that it is.
#pragma once

#include <wengert/optim/Optimizer.h>

namespace wg::optim {

struct AdamWOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;
  bool amsgrad = false;
};
/// Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2), as Adam with a weight decay is; here it
/// has one by default, that of torch.optim.AdamW.
class WENGERT_API AdamW : public Adam {
public:
  explicit AdamW(Schedule learning_rate = 0.001, AdamWOptions options = {}, Where where = Where::current());
};

struct RMSpropOptions {
  double rho = 0.9, epsilon = 1e-7, momentum = 0; ///< rho and momentum lie in [0, 1)
  bool centered = false;
  double weight_decay = 0, l2 = 0;
};
/// a = rho a + (1 - rho) g^2; d = g / (sqrt(a) + epsilon); p -= lr d (Tieleman and Hinton 2012, with epsilon outside
/// the root, as in torch.optim.RMSprop, whose alpha is rho). With `centered`, m = rho m + (1 - rho) g, and a - m^2, 0
/// at least, stands for a in the root (Graves 2013, equations 38 to 40). With a momentum, v = momentum v + d and
/// p -= lr v. Slots `accumulator`, and `mean` and `velocity` where they are needed.
class WENGERT_API RMSprop : public Optimizer {
public:
  explicit RMSprop(Schedule learning_rate = 0.001, RMSpropOptions options = {}, Where where = Where::current());

protected:
  void update(const Update &update) override;

private:
  RMSpropOptions options_;
};

struct AdadeltaOptions {
  double rho = 0.95, epsilon = 1e-6;
  double weight_decay = 0, l2 = 0;
};
/// a = rho a + (1 - rho) g^2; d = sqrt(u + epsilon) / sqrt(a + epsilon) g; u = rho u + (1 - rho) d^2; p -= lr d (Zeiler
/// 2012, algorithm 1, which has lr = 1). Slots `accumulator` (a) and `updates` (u).
class WENGERT_API Adadelta : public Optimizer {
public:
  explicit Adadelta(Schedule learning_rate = 1, AdadeltaOptions options = {}, Where where = Where::current());

protected:
  void update(const Update &update) override;

private:
  AdadeltaOptions options_;
};

struct AdamaxOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0, l2 = 0;
};
/// m = beta_1 m + (1 - beta_1) g; u = max(beta_2 u, |g|); p -= lr / (1 - beta_1^t) m / (u + epsilon) (Kingma and Ba
/// 2015, algorithm 2, which has no epsilon; it is added as in tf.keras). Slots `m`, `u`.
class WENGERT_API Adamax : public Optimizer {
public:
  explicit Adamax(Schedule learning_rate = 0.002, AdamaxOptions options = {}, Where where = Where::current());

protected:
  void update(const Update &update) override;

private:
  AdamaxOptions options_;
};

struct NAdamOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-8;
  double momentum_decay = 0.004; ///< finite and 0 or more
  double weight_decay = 0, l2 = 0;
};
/// Adam with Nesterov's momentum (Dozat 2016): with mu_t = beta_1 (1 - 0.96^(t momentum_decay) / 2), M_t their product
/// up to t, m and v as Adam's, and s = sqrt(v / (1 - beta_2^t)) + epsilon,
/// p -= lr (mu_{t+1} m / (1 - M_{t+1}) + (1 - mu_t) g / (1 - M_t)) / s, as torch.optim.NAdam. Slots `m`, `v`, and
/// `log_momentum`, f64[], the logarithm of M_t.
class WENGERT_API NAdam : public Optimizer {
public:
  explicit NAdam(Schedule learning_rate = 0.002, NAdamOptions options = {}, Where where = Where::current());

protected:
  void update(const Update &update) override;

private:
  NAdamOptions options_;
};

struct LionOptions {
  double beta_1 = 0.9, beta_2 = 0.99;
  double weight_decay = 0;
};
/// p -= lr sign(beta_1 m + (1 - beta_1) g); m = beta_2 m + (1 - beta_2) g (Chen et al. 2023, algorithm 2). Slot `m`.
class WENGERT_API Lion : public Optimizer {
public:
  explicit Lion(Schedule learning_rate = 1e-4, LionOptions options = {}, Where where = Where::current());

protected:
  void update(const Update &update) override;

private:
  LionOptions options_;
};

struct LambOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-6;
  double scaled_weight_decay = 0; ///< the paper's lambda: a part of what is scaled
};
/// r = m^ / (sqrt(v^) + epsilon) + scaled_weight_decay p, with Adam's m^ = m / (1 - beta_1^t) and v^ = v / (1 -
/// beta_2^t); p -= lr |p| / |r| r, where a norm that is 0 makes the quotient 1 (You et al. 2020, algorithm 2, with the
/// identity for its phi). Norms are those of one variable. Slots `m`, `v`.
class WENGERT_API Lamb : public Optimizer {
public:
  explicit Lamb(Schedule learning_rate = 0.001, LambOptions options = {}, Where where = Where::current());

protected:
  void update(const Update &update) override;

private:
  LambOptions options_;
};

} // namespace wg::optim
