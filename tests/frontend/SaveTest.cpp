// Computations in files and back: functions, variables, tapes, values, places; S-1 to S-14 of the behaviour that users
// of saved functions expect.
#include "tests/frontend/Files.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

using namespace wg;

namespace {

/// Both forms of a package.
class SaveTest : public testing::TestWithParam<const char *> {
protected:
  std::string path() const { return folder.path(std::string("saved") + GetParam()); }
  wg::tests::Folder folder;
};
INSTANTIATE_TEST_SUITE_P(Forms, SaveTest, testing::Values("", ".wg"),
                         [](const auto &info) { return *info.param ? "file" : "directory"; });

void expectBits(const Tensor &a, const Tensor &b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  EXPECT_TRUE(wg::tests::sameBits(a, b)) << a << "\n" << b;
}

TEST_P(SaveTest, A_loaded_function_computes_the_same_bits_and_trains_on_its_own_variables) {
  Variable w(random_normal(random::key(1), {3, 2}), "w"), b(zeros({2}), "b");
  auto step = function("step", [&](const Tensor &x, const Tensor &y) {
    GradientTape tape;
    Tensor loss = mean(square(matmul(x, w) + b - y));
    auto [dw, db] = tape.gradient(loss, w, b);
    w.assign_sub(0.1f * dw);
    b.assign_sub(0.1f * db);
    return loss;
  });
  Tensor x = random_normal(random::key(2), {5, 3}), y = random_normal(random::key(3), {5, 2});
  step(x, y);
  save(path(), {{"step", step}, {"w", w}});
  Saved saved = load(path());
  auto loaded = saved.function<Tensor(const Tensor &, const Tensor &)>("step");
  for (int i = 0; i < 3; ++i)
    expectBits(step(x, y), loaded(x, y));
  expectBits(w, saved.variable("w"));
  expectBits(b, saved.variable("b"));
  EXPECT_EQ(saved.variable("b").name(), "b");
}

TEST_P(SaveTest, A_loaded_function_is_differentiable_to_second_order_with_the_same_bits) {
  Variable w(Tensor({0.5, -1.25, 2.0}), "w");
  auto f = function("f", [&](const Tensor &x) { return reduce_sum(sin(x * w) * exp(-square(x))); });
  Tensor x({0.25, 1.5, -0.75});
  f(x);
  save(path(), {{"f", f}});
  Saved saved = load(path());
  auto loaded = saved.function<Tensor(const Tensor &)>("f");
  auto derivatives = [&](const auto &f, const Variable &w) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    Tensor y = f(x);
    auto [dx, dw] = inner.gradient(y, x, w);
    Tensor product = reduce_sum(dx.value() * square(dw.value()));
    auto [dxx, dww] = outer.gradient(product, x, w);
    return std::vector<Tensor>{y, dx.value(), dw.value(), dxx.value(), dww.value()};
  };
  std::vector<Tensor> before = derivatives(f, w), after = derivatives(loaded, saved.variable("w"));
  for (size_t i = 0; i < before.size(); ++i)
    expectBits(before[i], after[i]);
}

struct Batch {
  Tensor x, y;
  WENGERT_FIELDS(x, y)
};
enum class Mode { train, evaluate };

TEST_P(SaveTest, Structures_statics_and_defaults_survive) { // S-2, S-3
  auto f = function("f", [](const Batch &batch, const std::map<std::string, Tensor> &named, Mode mode, double factor,
                            const std::string &text, std::optional<Tensor> maybe) {
    Tensor total = batch.x + factor * batch.y + named.at("a");
    if (mode == Mode::train)
      total = total * 2.0;
    if (maybe)
      total = total + *maybe;
    return std::tuple(total, std::map<std::string, std::vector<Tensor>>{{text, {total, batch.x}}}, 7,
                      std::string("ok"));
  });
  Batch batch{Tensor(1.0), Tensor(2.0)};
  std::map<std::string, Tensor> named{{"a", Tensor(3.0)}};
  auto first = f(batch, named, Mode::train, 0.5, "k", std::nullopt);
  f(batch, named, Mode::evaluate, 0.5, "k", Tensor(1.0));
  save(path(), {{"f", f}});
  using Result = std::tuple<Tensor, std::map<std::string, std::vector<Tensor>>, int, std::string>;
  Saved saved = load(path());
  auto loaded = saved.function<Result(const Batch &, const std::map<std::string, Tensor> &, Mode, double,
                                      const std::string &, std::optional<Tensor>)>("f");
  auto again = loaded(batch, named, Mode::train, 0.5, "k", std::nullopt);
  expectBits(std::get<0>(first), std::get<0>(again));
  expectBits(std::get<1>(first).at("k")[1], std::get<1>(again).at("k")[1]);
  EXPECT_EQ(std::get<2>(again), 7);
  EXPECT_EQ(std::get<3>(again), "ok");
  EXPECT_EQ(std::get<0>(loaded(batch, named, Mode::evaluate, 0.5, "k", Tensor(1.0))).item<double>(), 6.0);
  try {
    loaded(batch, named, Mode::train, 0.25, "k", std::nullopt);
    FAIL();
  } catch (const Error &error) {
    std::string what = error.what();
    EXPECT_NE(what.find("no saved trace takes ("), std::string::npos) << what;
    EXPECT_NE(what.find("double 0.25"), std::string::npos) << what;
    EXPECT_NE(what.find("2 traces:"), std::string::npos) << what;
  }
  EXPECT_THROW(saved.function<Tensor(const Batch &)>("f"), Error); // returns something else
}

TEST_P(SaveTest, Open_sizes_serve_all_sizes) { // S-9
  auto f = function("f", [](const Tensor &x) { return reduce_sum(x * x, 1); });
  f.trace(TensorSpec{f32, {dynamic, 3}});
  save(path(), {{"f", f}});
  auto loaded = load(path()).function<Tensor(const Tensor &)>("f");
  for (int64_t n : {1, 4, 7})
    expectBits(f(ones({n, 3})), loaded(ones({n, 3})));
  EXPECT_THROW(loaded(ones({3})), Error);
}

TEST_P(SaveTest, A_function_that_was_never_traced_is_an_error) { // S-1
  auto f = function("f", [](const Tensor &x) { return x; });
  try {
    save(path(), {{"f", f}});
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("never traced"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_P(SaveTest, Custom_gradients_loops_and_conditions_are_kept) { // S-5, S-6
  auto f = function("f", [](const Tensor &x) {
    auto clipped = custom_gradient([](const Tensor &x) { return x * x; },
                                   [](const Tensor &ct, const Tensor &x) { return clamp(ct * x, -1.0, 1.0); });
    auto [state, rows] = scan(
        [&](const Tensor &carry, const Tensor &row) {
          Tensor next = carry + clipped(row);
          return std::pair(next, next * 2.0);
        },
        Tensor(0.0), x);
    Tensor branch = cond(state > 1.0, [&] { return state * state; }, [&] { return state; });
    return branch + reduce_sum(rows);
  });
  Tensor x({0.5, -2.0, 3.0});
  f(x);
  save(path(), {{"f", f}});
  auto loaded = load(path()).function<Tensor(const Tensor &)>("f");
  auto both = [&](const auto &f) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = f(x);
    return std::pair(y, tape.gradient(y, x).value());
  };
  auto [y, dx] = both(f);
  auto [ly, ldx] = both(loaded);
  expectBits(y, ly);
  expectBits(dx, ldx);
}

TEST_P(SaveTest, Saving_loading_and_saving_again_gives_the_same_files) { // S-10, S-12
  Variable w(random_normal(random::key(1), {3, 2}), "w");
  Tensor captured = random_normal(random::key(5), {40});
  auto f = function("f", [&](const Tensor &x) { return std::pair(matmul(x, w), reduce_sum(captured)); });
  f(ones({5, 3}));
  f(ones({2, 3}));
  save(path(), {{"f", f}, {"w", w}, {"n", 3}});
  std::map<std::string, std::string> first = wg::tests::contents(path());
  for (int cycle = 0; cycle < 3; ++cycle) {
    Saved saved = load(path());
    auto loaded = saved.function<std::pair<Tensor, Tensor>(const Tensor &)>("f");
    expectBits(loaded(ones({5, 3})).first, f(ones({5, 3})).first);
    std::filesystem::remove_all(path());
    save(path(), {{"f", loaded}, {"w", saved.variable("w")}, {"n", saved.get<int>("n")}});
    EXPECT_EQ(wg::tests::contents(path()), first);
  }
}

TEST_P(SaveTest, Loaded_functions_are_parts_of_new_ones) {
  Variable w(Tensor({1.0, 2.0}), "w");
  auto f = function("f", [&](const Tensor &x) { return x * w; });
  f(ones({2}, f64));
  save(path(), {{"f", f}});
  Saved saved = load(path());
  auto loaded = saved.function<Tensor(const Tensor &)>("f");
  Variable scale(Tensor(3.0), "scale");
  auto whole = function("whole", [&](const Tensor &x) { return reduce_sum(loaded(x) * scale); });
  GradientTape tape;
  Tensor y = whole(Tensor({0.5, 0.25}));
  auto [dw, ds] = tape.gradient(y, saved.variable("w"), scale);
  expectBits(dw.value(), Tensor({1.5, 0.75}));
  expectBits(ds.value(), Tensor(1.0));
}

TEST_P(SaveTest, Values_come_back_with_their_structure) {
  Variable v(Tensor({1.0f, 2.0f}), "v");
  save(path(),
       {{"number", 42},
        {"text", "hello"},
        {"flag", true},
        {"tensor", Tensor({1.5, 2.5})},
        {"batch", Batch{Tensor(1.0), Tensor(2.0f)}},
        {"list", std::vector<std::pair<int64_t, Tensor>>{{1, Tensor(1)}, {2, Tensor(2)}}},
        {"variables", std::map<std::string, Variable>{{"v", v}}}},
       {.metadata = {{"who", "a test"}}});
  Saved saved = load(path());
  EXPECT_EQ(saved.names(),
            (std::vector<std::string>{"number", "text", "flag", "tensor", "batch", "list", "variables"}));
  EXPECT_EQ(saved.get<int>("number"), 42);
  EXPECT_EQ(saved.get<std::string>("text"), "hello");
  EXPECT_TRUE(saved.get<bool>("flag"));
  expectBits(saved.get("tensor"), Tensor({1.5, 2.5}));
  expectBits(saved.get<Batch>("batch").y, Tensor(2.0f));
  EXPECT_EQ((saved.get<std::vector<std::pair<int64_t, Tensor>>>("list")[1].first), 2);
  expectBits((saved.get<std::map<std::string, Variable>>("variables").at("v")), v);
  EXPECT_EQ(saved.metadata().at("who"), "a test");
  EXPECT_THROW(saved.get<double>("number"), Error);
  EXPECT_THROW(saved.get("nothing"), Error);
  EXPECT_FALSE(saved.summary().empty());
}

TEST_P(SaveTest, A_tape_saved_half_way_goes_on_where_it_was) {
  Variable w(Tensor({0.5, -1.0}), "w");
  auto f = function("f", [&](const Tensor &x) { return x * x * w; });
  Tensor x({1.25, 2.5});
  auto rest = [](const Tensor &half, const Variable &w) { return reduce_sum(half * w + sin(half)); };
  Tensor gradient, second;
  {
    GradientTape outer({.persistent = true});
    outer.watch(x);
    GradientTape tape({.persistent = true});
    tape.watch(x);
    Tensor half = f(x) + with_gradient_hook(w * exp(x), [](const Tensor &ct) { return ct * 0.5; });
    save(path(), {{"tape", tape}, {"outer", outer}, {"x", x}, {"half", half}, {"w", w}});
    auto [dx, dw] = tape.gradient(rest(half, w), x, w);
    gradient = concat({dx.value(), dw.value()}, 0);
    second = outer.gradient(reduce_sum(dx.value() * dw.value()), x).value();
  }
  Saved saved = load(path());
  Variable loadedW = saved.variable("w");
  Tensor loadedX = saved.get("x"), half = saved.get("half");
  GradientTape outer = saved.tape("outer");
  GradientTape tape = saved.tape("tape");
  auto [dx, dw] = tape.gradient(rest(half, loadedW), loadedX, loadedW);
  expectBits(concat({dx.value(), dw.value()}, 0), gradient);
  expectBits(outer.gradient(reduce_sum(dx.value() * dw.value()), loadedX).value(), second);
  EXPECT_THROW(saved.tape("tape"), Error);
}

TEST_P(SaveTest, Objects_of_the_program_take_over_what_was_saved) {
  struct Model : nn::Module {
    nn::Dense a{3, 4, wg::tanh}, b{4, 1};
    Model() { add("a", a), add("b", b); }
    Tensor operator()(const Tensor &x) const { return b(a(x)); }
  };
  auto make = [](Model &model, optim::Adam &adam) {
    return function("step", [&](const Tensor &x) {
      GradientTape tape;
      Tensor loss = mean(square(model(x)));
      adam.apply(tape.gradient(loss, model), model);
      return loss;
    });
  };
  Tensor x = random_normal(random::key(1), {8, 3});
  Model model;
  optim::Adam adam(0.01);
  auto step = make(model, adam);
  for (int i = 0; i < 3; ++i)
    step(x);
  save(path(), {{"model", model}, {"adam", adam}, {"step", step}});
  Model other;
  optim::Adam adam2(0.5);
  adam2.build(other);
  Saved saved = load(path(), {{"model", other}, {"adam", adam2}});
  auto loaded = saved.function<Tensor(const Tensor &)>("step");
  auto step2 = make(other, adam2);
  Tensor expected = step(x);
  expectBits(loaded(x), expected); // it steps `other`
  expected = step(x);
  expectBits(step2(x), expected);
  expectBits(other.a.weight(), model.a.weight());
  optim::Adam unbuilt;
  EXPECT_THROW(load(path(), {{"adam", unbuilt}}), Error);
  nn::Dense wrong(3, 5);
  EXPECT_THROW(load(path(), {{"model", wrong}}), Error);
  RestoreReport report = load(path()).restore("model", wrong, /*partial=*/true);
  EXPECT_FALSE(report.complete());
}

TEST_P(SaveTest, A_data_set_goes_on_in_the_middle_of_an_epoch) {
  data::Dataset data = data::Dataset(arange(20), arange(20)).shuffle(3).batch(4);
  std::vector<Tensor> rest;
  int i = 0;
  for (auto [x, y] : data)
    if (++i == 2)
      save(path(), {{"data", data}});
    else if (i > 2)
      rest.push_back(x);
  data::Dataset other = data::Dataset(arange(20), arange(20)).shuffle(3).batch(4);
  load(path()).restore("data", other);
  size_t next = 0;
  for (auto [x, y] : other)
    expectBits(x, rest.at(next++));
  EXPECT_EQ(next, rest.size());
}

} // namespace
