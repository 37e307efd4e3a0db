// Computations in files and back: functions, variables, tapes, values, places; S-1 to S-14 of the behaviour that users
// of saved functions expect.
#include "tests/frontend/Files.h"
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

using namespace wg;
using wg::tests::messageOf;
using wg::tests::says;

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
  {
    GradientTape tape;
    Tensor y = f(ones({5, 3})).first;
    tape.gradient(y, w);
  }
  save(path(), {{"f", f}, {"w", w}, {"n", 3}});
  std::map<std::string, std::string> first = wg::tests::contents(path());
  for (int cycle = 0; cycle < 3; ++cycle) {
    Saved saved = load(path());
    auto loaded = saved.function<std::pair<Tensor, Tensor>(const Tensor &)>("f");
    expectBits(loaded(ones({5, 3})).first, f(ones({5, 3})).first);
    GradientTape tape;
    Tensor y = loaded(ones({5, 3})).first;
    tape.gradient(y, saved.variable("w"));
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

TEST_P(SaveTest, Variables_among_the_arguments_are_those_of_the_call) {
  auto f = function("f", [](const Variable &v, const Variable &w, const Tensor &x) {
    v.assign_add(x);
    return v.value() * w;
  });
  Variable a(Tensor(1.0), "a"), b(Tensor(2.0), "b");
  f(a, b, Tensor(0.5));
  f(a, a, Tensor(0.5));
  save(path(), {{"f", f}});
  auto loaded = load(path()).function<Tensor(const Variable &, const Variable &, const Tensor &)>("f");
  Variable c(Tensor(1.0), "c"), d(Tensor(2.0), "d");
  expectBits(loaded(c, d, Tensor(0.5)), Tensor(3.0));
  expectBits(c, Tensor(1.5));
  expectBits(loaded(c, c, Tensor(0.5)), Tensor(4.0));
  GradientTape tape;
  Tensor y = loaded(c, d, Tensor(1.0));
  expectBits(tape.gradient(y, d).value(), Tensor(3.0));
}

TEST_P(SaveTest, An_argument_that_is_captured_as_well_is_the_variable_that_was_saved) {
  Variable w(Tensor(2.0), "w");
  auto f = function("f", [&](const Variable &v) {
    v.assign_add(1.0);
    return w * 10.0;
  });
  f(w);
  EXPECT_TRUE(says(messageOf([&] { save(path(), {{"f", f}}); }), "a variable which it names as well"));
  save(path(), {{"f", f}, {"w", w}});
  Saved saved = load(path());
  auto loaded = saved.function<Tensor(const Variable &)>("f");
  expectBits(loaded(saved.variable("w")), f(w));
  EXPECT_THROW(loaded(w), Error);
}

TEST_P(SaveTest, What_prints_and_checks_does_so_after_loading) {
  auto f = function("f", [](const Tensor &x) {
    print("x is {}", x);
    check(x > 0, "x is to be positive");
    return x * 2.0;
  });
  f.trace(Tensor(1.0));
  save(path(), {{"f", f}});
  auto loaded = load(path()).function<Tensor(const Tensor &)>("f");
  std::ostringstream printed;
  set_print_stream(printed);
  expectBits(loaded(Tensor(3.0)), Tensor(6.0));
  EXPECT_NE(messageOf([&] { loaded(Tensor(-3.0)); }).find("x is to be positive"), std::string::npos);
  set_print_stream(std::cout);
  EXPECT_EQ(printed.str(), "x is 3.0\nx is -3.0\n");
}

int32_t cubed(void *const *pointers, const int64_t *numbers, void *) {
  for (int64_t i = 0; i < numbers[4]; ++i) {
    double x = static_cast<const double *>(pointers[0])[i];
    static_cast<double *>(pointers[1])[i] = x * x * x;
  }
  return 0;
}

TEST_P(SaveTest, Functions_of_the_process_are_known_by_their_names) {
  std::string own = std::string("host of ") + (*GetParam() ? "a file" : "a directory");
  HostFunction halved = host_function(own, [](const std::vector<Tensor> &x) { return x[0] * 0.5; }, {.ordered = false});
  CFunction cube = c_function("wengert_test_cubed", cubed,
                              {.arguments = {{f64, {dynamic}}}, .result = [](const auto &of) { return of[0]; }});
  auto f = function("f", [&](const Tensor &x) { return cube(halved({f64, {2}}, {x})); });
  Tensor x({2.0, 4.0});
  Tensor y = f(x);
  save(path(), {{"f", f}});
  expectBits(load(path()).function<Tensor(const Tensor &)>("f")(x), y);
  EXPECT_NE(load(path()).summary().find("calls host functions: " + own), std::string::npos);
  // Another of the same name: it is not known any more which is meant.
  HostFunction other = host_function(own, [](const std::vector<Tensor> &x) { return x[0]; });
  EXPECT_NE(messageOf([&] { load(path()); }).find("several of that name"), std::string::npos);
  EXPECT_NE(messageOf([&] { save(path(), {{"f", f}}); }).find("one of several host functions"), std::string::npos);
  expectBits(y, Tensor({1.0, 8.0}));
}

TEST_P(SaveTest, Lanes_tangents_and_higher_orders_go_through_loaded_functions) {
  auto f = function("f", [](const Tensor &x) { return sin(x) * x * x; });
  f(Tensor(0.5));
  save(path(), {{"f", f}});
  auto loaded = load(path()).function<Tensor(const Tensor &)>("f");
  Tensor xs({0.25, 0.5, 0.75});
  expectBits(vmap([&](const Tensor &x) { return loaded(x); })(xs), vmap([&](const Tensor &x) { return f(x); })(xs));
  auto [y, t] = jvp([&](const Tensor &x) { return loaded(x); }, Tensor(0.5), Tensor(1.0));
  auto [y2, t2] = jvp([&](const Tensor &x) { return f(x); }, Tensor(0.5), Tensor(1.0));
  expectBits(y, y2);
  expectBits(t.value(), t2.value());
  auto third = [](auto f) { return grad(grad(grad(f)))(Tensor(0.5)).value(); };
  expectBits(third([&](const Tensor &x) { return loaded(x); }), third([&](const Tensor &x) { return f(x); }));
}

TEST_P(SaveTest, Rows_and_empty_gradients_come_back_as_results) {
  Variable table(ones({5, 2}, f64), "table"), unused(Tensor(1.0), "unused");
  auto f = function("f", [&](const Tensor &i) {
    GradientTape tape;
    Tensor loss = reduce_sum(square(gather(table, i)));
    return tape.gradient(loss, std::vector<Variable>{table, unused});
  });
  Tensor i({int64_t(1), int64_t(3)});
  std::vector<Grad> expected = f(i);
  ASSERT_TRUE(expected[0].is_sparse());
  save(path(), {{"f", f}, {"gradient", expected[0]}});
  Saved saved = load(path());
  std::vector<Grad> found = saved.function<std::vector<Grad>(const Tensor &)>("f")(i);
  ASSERT_TRUE(found[0].is_sparse());
  expectBits(found[0].sparse_rows().rows, expected[0].sparse_rows().rows);
  expectBits(found[0].value(), expected[0].value());
  EXPECT_EQ(found[1].reason(), expected[1].reason());
  expectBits(saved.get<Grad>("gradient").value(), expected[0].value());
}

TEST_P(SaveTest, What_is_saved_while_another_thread_trains_is_one_state) {
  Variable a(zeros({1000}, f64), "a"), b(zeros({1000}, f64), "b");
  auto step = function("step", [&] {
    a.assign_add(1.0);
    b.assign_add(1.0);
  });
  step();
  std::atomic<bool> stop = false;
  std::thread training([&] {
    while (!stop)
      step();
  });
  for (int i = 0; i < 20; ++i) {
    save(path(), {{"a", a}, {"b", b}});
    Saved saved = load(path());
    expectBits(saved.variable("a"), saved.variable("b"));
  }
  stop = true;
  training.join();
}

TEST_P(SaveTest, Shards_hold_what_one_file_holds) {
  std::vector<std::pair<std::string, Variable>> list;
  std::map<std::string, Variable> all;
  for (int i = 0; i < 7; ++i)
    all.emplace("v" + std::to_string(i), Variable(random_normal(random::key(i), {10 + i})));
  save(path(), {{"all", all}}, {.max_shard_bytes = 100});
  auto found = load(path()).get<std::map<std::string, Variable>>("all");
  for (const auto &[name, variable] : all)
    expectBits(found.at(name), variable);
}

TEST_P(SaveTest, Errors_say_what_to_do) {
  Variable w(Tensor(1.0), "w");
  auto f = function("f", [&](const Tensor &x) { return x * w; });
  f(Tensor(1.0));
  EXPECT_TRUE(says(messageOf([&] { save(path(), {{"f", f}, {"f", w}}); }), "two items are named 'f'"));
  EXPECT_TRUE(says(messageOf([&] { save(path(), {{"", f}}); }), "an item has no name"));
  EXPECT_TRUE(says(messageOf([&] { save(path(), {{"x", Tensor()}}); }), "undefined"));
  EXPECT_TRUE(says(messageOf([&] { load(path()); }), "saved"));
  auto traced = function("traced", [&](const Tensor &x) {
    save(path(), {{"w", w}});
    return x;
  });
  EXPECT_TRUE(says(messageOf([&] { traced(Tensor(1.0)); }), "a traced function cannot read or write files"));
  GradientTape used;
  used.watch(w);
  Tensor y = w * 2.0;
  used.gradient(y, w);
  EXPECT_TRUE(says(messageOf([&] { save(path(), {{"tape", used}}); }), "asked for its gradient"));
  save(path(), {{"f", f}, {"w", w}});
  Saved saved = load(path());
  EXPECT_TRUE(
      says(messageOf([&] { saved.function<Tensor(const Tensor &)>("w"); }), "'w' in " + path() + " is variables"));
  EXPECT_TRUE(says(messageOf([&] { saved.get("g"); }), "it holds: f, w"));
  EXPECT_TRUE(says(messageOf([&] { saved.function<std::vector<Tensor>(const Tensor &)>("f"); }),
                   "has a tensor where the type that is asked for has a list"));
  // A damaged part is named.
  std::filesystem::path part = path();
  if (!*GetParam()) {
    for (const auto &entry : std::filesystem::directory_iterator(path()))
      if (entry.path().filename().string().starts_with("variables-"))
        part = entry.path();
    std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x7f');
    file.close();
    EXPECT_TRUE(says(messageOf([&] { load(path()); }), part.filename().string()));
  }
}

TEST_P(SaveTest, A_variable_of_two_items_is_saved_once_and_shared_after_loading) { // S-4
  Variable w(Tensor({1.0, 2.0}), "w");
  auto f = function("f", [&](const Tensor &x) { return x * w; });
  auto g = function("g", [&](const Tensor &x) { w.assign(x); });
  f(ones({2}, f64)), g(Tensor({1.0, 2.0}));
  save(path(), {{"f", f}, {"g", g}, {"mine", w}});
  Saved saved = load(path());
  saved.function<void(const Tensor &)>("g")(Tensor({3.0, 4.0}));
  expectBits(saved.function<Tensor(const Tensor &)>("f")(ones({2}, f64)), Tensor({3.0, 4.0}));
  expectBits(saved.variable("mine"), Tensor({3.0, 4.0}));
  EXPECT_EQ(saved.named_variables().size(), 1u);
  GradientTape tape;
  Tensor y = saved.function<Tensor(const Tensor &)>("f")(ones({2}, f64));
  EXPECT_EQ(tape.watched_variables().size(), 1u); // S-5
}

TEST_P(SaveTest, Concrete_functions_can_be_saved_by_themselves) { // S-8
  auto f = function("f", [](const Tensor &x) { return std::pair(x + 1.0, x * 2.0); });
  ConcreteFunction concrete = f.trace(TensorSpec{f64, {dynamic}});
  f(Tensor(1.0));
  save(path(), {{"f", concrete}});
  Saved saved = load(path());
  ASSERT_EQ(saved.concrete_functions("f").size(), 1u);
  expectBits(saved.concrete_functions("f")[0](Tensor({1.0, 2.0}))[1], Tensor({2.0, 4.0}));
  EXPECT_EQ(saved.concrete_functions("f")[0].signature(), concrete.signature());
}

TEST_P(SaveTest, Interpreted_and_recomputing_functions_stay_so) { // S-7
  auto f = function("f", [](const Tensor &x) { return exp(sin(x)); }, {.interpret = true});
  auto g = checkpoint([](const Tensor &x) { return exp(sin(x)) * x; });
  auto h = function("h", [&](const Tensor &x) { return g(x) + f(x); });
  f(Tensor(0.5)), h(Tensor(0.5));
  save(path(), {{"f", f}, {"h", h}});
  Saved saved = load(path());
  auto loaded = saved.function<Tensor(const Tensor &)>("f");
  loaded(Tensor(0.5));
  EXPECT_EQ(saved.concrete_functions("f")[0].workspace_bytes(), 0);
  EXPECT_TRUE(says(saved.concrete_functions("h")[0].text(Stage::traced), "wg.recompute"));
}

} // namespace
