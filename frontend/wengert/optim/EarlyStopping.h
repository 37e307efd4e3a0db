// When to end a training, and the best weights that it had.
#pragma once

#include <wengert/optim/Parameters.h>

#include <vector>

namespace wg::optim {

enum class Mode { min, max }; ///< whether a lower or a higher value is better

struct EarlyStoppingOptions {
  int64_t patience = 0; ///< how many values without an improvement end the training; 0 and 1: the first
  double min_delta = 0; ///< what changes by no more than this is no improvement
  Mode mode = Mode::min;
};

/// Keeps the weights of the best value that it is told, and says when to stop (Prechelt 1998; patience, min_delta and
/// mode as in tf.keras.callbacks.EarlyStopping). The kept weights share memory with the variables' until those change.
///
///     wg::optim::EarlyStopping early(model, {.patience = 5});
///     for (int epoch = 0; epoch < 100; ++epoch) {
///       ...
///       if (early.update(validation_loss))
///         break;
///     }
///     early.restore_best_weights();
///
/// Ranks that are told the same values, as data parallel steps and reduced metrics give them, end together.
class WENGERT_API EarlyStopping {
public:
  /// Parameters may be an empty list: then no weights are kept. Errors: a patience or a min_delta below 0.
  explicit EarlyStopping(const Parameters &parameters, EarlyStoppingOptions options = {},
                         Where where = Where::current());

  /// The next value, a number or a scalar. Better than the best by more than min_delta, it is the best, and the present
  /// weights are kept; a NaN is never better. Whether `patience` values in a row were not: true until the next
  /// improvement. Errors: inside of a traced function.
  bool update(const Located &value);
  /// Whether the last value was an improvement.
  bool improved() const { return count() > 0 && waited() == 0; }
  /// The best value: inf, or -inf where more is better, before the first.
  double best() const { return best_.item<double>(); }
  /// Which value it was, counted from 0; -1 before the first.
  int64_t best_index() const { return count() - waited() - 1; }
  /// Assigns the weights of the best value, all or none. Errors: there was no value; inside of a traced function.
  void restore_best_weights(Where where = Where::current()) const;

  /// Best value, counts and kept weights (`NAME.best`), as save_weights and load_weights take them.
  std::vector<nn::Module::Named> named_state() const;

private:
  int64_t count() const { return count_.item<int64_t>(); }
  int64_t waited() const { return waited_.item<int64_t>(); }
  EarlyStoppingOptions options_;
  std::vector<Variable> variables_, kept_;
  Variable best_;           ///< f64[]
  Variable count_, waited_; ///< i64[]: values, and those since the best
};

} // namespace wg::optim
