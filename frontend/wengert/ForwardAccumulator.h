// ForwardAccumulator: how what is computed moves with some of its inputs, found forwards.
#pragma once

#include <wengert/GradientTape.h>

#include <vector>

namespace wg {

/// Records, from its construction until it dies, how the values that are computed move where `primals` move by
/// `tangents`: Jacobian-vector products, at the cost of the values themselves, whatever their number.
///
///     wg::ForwardAccumulator acc(x, v);
///     wg::Tensor y = f(x);
///     wg::Tensor dy = acc.jvp(y); // J v
///
/// Accumulators and tapes nest. A tape inside of an accumulator gives products with a Hessian,
/// `acc.jvp(tape.gradient(loss, w))`; one outside differentiates the tangents. Of two accumulators the inner one does
/// not see the outer one's tangents: a second derivative is `outer.jvp(inner.jvp(y))`. As
/// tf.autodiff.ForwardAccumulator.
class WENGERT_API ForwardAccumulator {
public:
  /// `tangents` has the structure of `primals`: a tensor of its dtype and shape for each tensor and variable. Errors:
  /// another number of tangents, another dtype or shape; a primal that is no float; one primal twice.
  template <class Primals, class Tangents>
  ForwardAccumulator(const Primals &primals, const Tangents &tangents, Where where = Where::current())
      : ForwardAccumulator(Targets(primals, where).list, detail::gradientsOfSources(tangents), where) {}
  ForwardAccumulator(const ForwardAccumulator &) = delete;
  ForwardAccumulator &operator=(const ForwardAccumulator &) = delete;

  /// More primals; a second tangent of one is added to the first.
  template <class Primals, class Tangents>
  void watch(const Primals &primals, const Tangents &tangents, Where where = Where::current()) {
    add(Targets(primals, where).list, detail::gradientsOfSources(tangents), where);
  }

  /// The tangents of what was computed, in its structure; empty, with the reason, where it does not depend on a primal.
  /// May be asked for as often as is needed, also after recording has stopped.
  template <class T> auto jvp(const T &target, Unconnected unconnected, Where where = Where::current()) {
    Targets targets(target, where);
    std::vector<Grad> found = tangentsOf(targets, unconnected);
    size_t next = 0;
    return detail::mapTree(target, [&]<class L>(const L &) -> Grad {
      if constexpr (detail::isStatic<L>)
        return Grad::none(detail::kNotASource);
      else
        return std::move(found[next++]);
    });
  }
  template <class T> auto jvp(const T &target, Where where = Where::current()) {
    return jvp(target, Unconnected::none, where);
  }

  /// Pauses until the result dies: what is computed meanwhile has no tangents.
  detail::Recording stop_recording(Where where = Where::current()) { return tape_.stop_recording(where); }
  /// Records until the result dies, from now on inside of all other accumulators and tapes; an error while it does
  /// already.
  detail::Recording record(Where where = Where::current());

private:
  ForwardAccumulator(std::vector<detail::Source> primals, const std::vector<Grad> &tangents, const Where &where);
  void add(std::vector<detail::Source> primals, const std::vector<Grad> &tangents, const Where &where);
  std::vector<Grad> tangentsOf(const Targets &targets, Unconnected unconnected);

  GradientTape tape_;
  std::vector<detail::Source> primals_;
  std::vector<Tensor> tangents_; ///< undefined: the primal does not move
};

} // namespace wg
