// Derivatives of one's own, and functions that are computed again for their derivatives: eagerly, interpreted and
// compiled, in every mode and to second order.
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>

using namespace wg;
using wg::tests::expectNear;
using wg::tests::matrix;
using wg::tests::messageOf;
using wg::tests::says;

namespace {

using Scalar = std::function<Tensor(const Tensor &)>;

struct Derivatives {
  Tensor value, slope, second, tangent;
};
/// The derivatives of the sum of f(x), by tapes around f, and the tangent for moves of 2.
Derivatives derivativesOf(const Scalar &f, const Tensor &x) {
  GradientTape outer;
  outer.watch(x);
  GradientTape tape;
  tape.watch(x);
  Tensor y = f(x);
  Tensor slope = tape.gradient(y, x).value();
  Tensor second = outer.gradient(slope, x, {.unconnected = Unconnected::zero}).value();
  return {y, slope, second, jvp(f, std::tuple(x), std::tuple(x * 0.0 + 2.0)).second};
}

/// Those of f called eagerly, of f as a function, and taken inside of one.
template <class Check> void inAllWays(const Scalar &f, const Tensor &x, Check check) {
  check(derivativesOf(f, x));
  for (bool interpret : {true, false}) {
    SCOPED_TRACE(interpret ? "interpreted" : "compiled");
    auto called = wg::function("called", f, {.interpret = interpret});
    check(derivativesOf([&](const Tensor &y) { return called(y); }, x));
    auto inside = wg::function("inside",
                               [&](const Tensor &y) {
                                 Derivatives d = derivativesOf(f, y);
                                 return std::vector{d.value, d.slope, d.second, d.tangent};
                               },
                               {.interpret = interpret});
    std::vector<Tensor> d = inside(x);
    check({d[0], d[1], d[2], d[3]});
  }
}

Tensor log1pexp(const Tensor &x) {
  static auto f = custom_gradient(
      [](const Tensor &x) {
        Tensor e = exp(x);
        return WithResiduals{log(1.0 + e), e};
      },
      [](const Tensor &ct, const Tensor &e) { return ct * (1.0 - 1.0 / (1.0 + e)); });
  return f(x);
}

} // namespace

// C-9: by the default rule the slope at 100 is NaN in f32, and at 1000 in f64.
TEST(CustomGradientTest, ResidualsMakeAStableDerivative) {
  Tensor x({-3.0, 0.5, 20.0});
  auto sigmoids = [&](const Tensor &x) { return 1.0 / (1.0 + exp(-x)); };
  Tensor s = sigmoids(x);
  inAllWays([](const Tensor &x) { return log1pexp(x * 1.0); }, x,
            [&](const Derivatives &d) {
              expectNear(d.value, log(1.0 + exp(x)), 1e-12);
              expectNear(d.slope, s, 1e-12);
              expectNear(d.second, s * (1.0 - s), 1e-10);
              expectNear(d.tangent, s * 2.0, 1e-12);
            });
  inAllWays(log1pexp, Tensor({100.0f}), [&](const Derivatives &d) { EXPECT_EQ(d.slope.data<float>()[0], 1.0f); });
}

// C-1: what the rule returns is taken as it is; several arguments and results, integers among them.
TEST(CustomGradientTest, TheRuleIsRight) {
  auto f = custom_gradient(
      [](const Tensor &a, const std::pair<Tensor, Tensor> &b) {
        return std::tuple(a * b.first, cast(a, i64), b.second);
      },
      [](const std::tuple<Tensor, Tensor, Tensor> &ct, const Tensor &, const std::pair<Tensor, Tensor> &b) {
        EXPECT_FALSE(std::get<1>(ct).defined());
        // Swapped, and no gradient for the last one.
        return std::tuple(std::get<2>(ct) * 5.0, std::pair(std::get<0>(ct) * b.first, Tensor()));
      });
  Tensor a = matrix(2, 3), b = matrix(2, 3, 1), c = matrix(2, 3, 2);
  auto gradients = [&](const Tensor &a, const Tensor &b, const Tensor &c) {
    GradientTape tape;
    tape.watch(a, b, c);
    auto [y, n, z] = f(a, std::pair(b, c));
    EXPECT_EQ(n.dtype(), i64);
    auto [da, db, dc] = tape.gradient(reduce_sum(y) + reduce_sum(z * 2.0), std::tuple(a, b, c));
    return std::vector{da.value(), db.value(), dc.value()};
  };
  auto check = [&](const std::vector<Tensor> &found) {
    expectNear(found[0], a * 0.0 + 10.0);
    expectNear(found[1], b);
    expectNear(found[2], c * 0.0);
  };
  check(gradients(a, b, c));
  for (bool interpret : {true, false})
    check(wg::function("gradients", gradients, {.interpret = interpret})(a, b, c));
}

// C-3, C-4
TEST(CustomGradientTest, VariablesThatAreNoArguments) {
  Variable w(0.7, "w"), unused(2.0, "unused"), inner(1.5, "inner"), count(1, {.name = "count", .trainable = false});
  auto nested = custom_gradient([&](const Tensor &x) { return x * inner; },
                                [](const Tensor &ct, const Tensor &x, const std::vector<Variable> &variables) {
                                  EXPECT_EQ(variables.size(), 1u);
                                  return std::pair(ct * variables[0], std::vector{reduce_sum(ct * x) * 100.0});
                                });
  auto f = custom_gradient(
      [&](const Tensor &x) {
        Tensor ignored = unused * 2.0, place = argmax(x * unused);
        return nested(x) * w * cast(count.value(), f64);
      },
      [&](const Tensor &ct, const Tensor &x, const std::vector<Variable> &variables) {
        EXPECT_EQ(variables.size(), 2u); // not `unused`, not `count`; and the one behind the inner rule
        return std::pair(ct * 3.0, std::vector{reduce_sum(ct), reduce_sum(ct * x)});
      });
  Tensor x = matrix(1, 4)[0];
  auto gradients = [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = reduce_sum(f(x));
    auto [dx, dw, di] = tape.gradient(y, std::tuple(x, w, inner));
    return std::vector{dx.value(), dw.value(), di.value()};
  };
  auto check = [&](const std::vector<Tensor> &found) {
    expectNear(found[0], x * 0.0 + 3.0);
    expectNear(found[1], Tensor(4.0));
    expectNear(found[2], reduce_sum(x));
  };
  check(gradients(x));
  for (bool interpret : {true, false})
    check(wg::function("gradients", gradients, {.interpret = interpret})(x));
  auto bad =
      custom_gradient([&](const Tensor &x) { return x * w; }, [](const Tensor &ct, const Tensor &) { return ct; });
  for (const std::string &text : {messageOf([&] { bad(x); }), messageOf([&] { wg::function("f", bad)(x); })}) {
    EXPECT_TRUE(says(text, "custom_gradient: the function uses variable 'w'")) << text;
    EXPECT_TRUE(says(text, "vjp(cotangent, residuals, variables)")) << text;
    EXPECT_TRUE(says(text, "CustomGradientTest.cpp")) << text;
  }
}

// C-2, C-7
TEST(CustomGradientTest, ErrorsOfARule) {
  Tensor x = matrix(1, 3)[0];
  auto messages = [&](auto vjp) {
    auto f = custom_gradient([](const Tensor &x, const Tensor &) { return x * 2.0; }, vjp);
    auto gradient = [f](const Tensor &x) {
      GradientTape tape;
      tape.watch(x);
      return tape.gradient(f(x, x), x).value();
    };
    return std::array{messageOf([&] { gradient(x); }), messageOf([&] { wg::function("g", gradient)(x); })};
  };
  for (const std::string &text : messages([](const Tensor &ct, const Tensor &, const Tensor &) { return ct; }))
    EXPECT_TRUE(says(text, "vjp returned 1 gradients, and the function has 2 arguments and variables")) << text;
  for (const std::string &text :
       messages([](const Tensor &ct, const Tensor &, const Tensor &) { return std::pair(reduce_sum(ct), ct); }))
    EXPECT_TRUE(says(text, "custom_gradient: the rule returned f64[] for what is f64[3]")) << text;
  auto throws = custom_gradient([](const Tensor &x) { return x * 2.0; },
                                [](const Tensor &, const Tensor &) -> Tensor { throw std::range_error("mine"); });
  auto gradient = [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(throws(x), x).value();
  };
  EXPECT_THROW(gradient(x), std::range_error);
  EXPECT_THROW(wg::function("g", gradient)(x), std::range_error);
}

TEST(CustomGradientTest, ARuleForForwardMode) {
  auto f = custom_gradient([](const Tensor &x) { return WithResiduals{sin(x), cos(x)}; },
                           [](const Tensor &ct, const Tensor &c) { return ct * c; },
                           [](const Tensor &move, const Tensor &c) { return move * c * 10.0; }); // to be told apart
  Tensor x = matrix(1, 3)[0];
  inAllWays(f, x, [&](const Derivatives &d) {
    expectNear(d.slope, cos(x));
    expectNear(d.second, -sin(x));
    expectNear(d.tangent, cos(x) * 20.0);
  });
}

// C-10, and under vmap, where lanes take the rule with them.
TEST(CustomGradientTest, InBodiesAndLanes) {
  Tensor x = matrix(1, 3)[0];
  auto twice = custom_gradient([](const Tensor &x) { return x * 2.0; },
                               [](const Tensor &ct, const Tensor &) { return ct * 3.0; });
  auto f = [&](const Tensor &x) {
    return for_range(0, 3, [&](const Tensor &, const Tensor &s) { return twice(s); }, x);
  };
  inAllWays(f, x, [&](const Derivatives &d) {
    expectNear(d.value, x * 8.0);
    expectNear(d.slope, x * 0.0 + 27.0);
    expectNear(d.tangent, x * 0.0 + 54.0);
  });
  auto slope = [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(twice(sin(x)), x).value();
  };
  expectNear(vmap(slope)(x), cos(x) * 3.0);
  expectNear(vmap([&](const Tensor &x) { return jvp(twice, std::tuple(x), std::tuple(x * 0.0 + 1.0)).second; })(x),
             x * 0.0 + 3.0);
  GradientTape tape;
  tape.watch(x);
  Tensor y = twice(x);
  expectNear(tape.jacobian(y, x).value(), eye(3, {}, f64) * 3.0);
}

TEST(CustomGradientTest, OpenSizes) {
  auto f = wg::function("f", [](const Tensor &x) { return log1pexp(x); });
  f.trace(TensorSpec{f64, {dynamic}});
  for (int64_t n : {2, 5}) {
    Tensor x = matrix(1, n)[0];
    Derivatives d = derivativesOf([&](const Tensor &y) { return f(y); }, x);
    expectNear(d.slope, 1.0 / (1.0 + exp(-x)), 1e-12);
    expectNear(d.tangent, 2.0 / (1.0 + exp(-x)), 1e-12);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(CustomGradientTest, AGradientThatIsPrevented) {
  Tensor x = matrix(1, 3)[0];
  auto f = [](const Tensor &x) { return prevent_gradient(x * 2.0, "the codes are no numbers"); };
  expectNear(f(x), x * 2.0);
  auto asked = [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(f(x), x).value();
  };
  auto moved = [&](const Tensor &x) { return jvp(f, std::tuple(x), std::tuple(x)).second; };
  for (const std::string &text : {messageOf([&] { asked(x); }), messageOf([&] { wg::function("g", asked)(x); }),
                                  messageOf([&] { moved(x); }), messageOf([&] { wg::function("j", moved)(x); })}) {
    EXPECT_TRUE(says(text, "prevent_gradient: the codes are no numbers")) << text;
    EXPECT_TRUE(says(text, "CustomGradientTest.cpp")) << text;
  }
  expectNear(wg::function("f", f)(x), x * 2.0);
  // Beside the path it prevents nothing.
  auto beside = [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(x * stop_gradient(f(x)), x).value();
  };
  expectNear(wg::function("b", beside)(x), x * 2.0);
}

// C-13
TEST(CustomGradientTest, AGradientThatPassesThrough) {
  Variable w(2.0, "w");
  Tensor x({0.2, 0.7, 1.4});
  auto gradients = [&](const Tensor &x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = grad_pass_through([&](const Tensor &x) { return round(x) * w; }, x);
    auto [dx, dw] = tape.gradient(reduce_sum(y * y), std::tuple(x, w));
    EXPECT_FALSE(dw.has_value());
    return std::pair(y, dx.value());
  };
  auto check = [&](const std::pair<Tensor, Tensor> &found) {
    expectNear(found.first, round(x) * 2.0);
    expectNear(found.second, round(x) * 4.0);
  };
  check(gradients(x));
  for (bool interpret : {true, false})
    check(wg::function("gradients", gradients, {.interpret = interpret})(x));
}

// C-14: an identity that clips what comes back to a norm of one half.
TEST(CustomGradientTest, AnIdentityThatClips) {
  auto clipped = custom_gradient([](const Tensor &x) { return x; },
                                 [](const Tensor &ct, const Tensor &) {
                                   Tensor norm = sqrt(reduce_sum(ct * ct));
                                   return ct * minimum(Tensor(1.0), 0.5 / norm);
                                 });
  Variable v(2.0, "v");
  auto gradient = [&] {
    GradientTape tape;
    Tensor y = clipped(v * v);
    return tape.gradient(y, v).value();
  };
  expectNear(gradient(), Tensor(2.0)); // and not 4
  for (bool interpret : {true, false})
    expectNear(wg::function("gradient", gradient, {.interpret = interpret})(), Tensor(2.0));
}
