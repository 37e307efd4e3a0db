// Handles that hold nothing usable, at every entry that takes one: a wg::Error that names no
// internal matter, and nothing changes.
#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <sstream>
#include <thread>

using namespace wg;

namespace {

template <class T> struct Named {
  std::string name;
  T value;
};
using Use = std::function<void(const Tensor &)>;

/// What the entries are given beside the tensor in question.
struct Bench {
  Tensor good{1.0f, 2.0f};
  Variable v{Tensor{1.0f, 2.0f}};
  Function<Tensor(const Tensor &)> f{"f", [](const Tensor &x) { return x * 2.0f; }};
  Function<Tensor(const Variable &, const Tensor &)> assigns{"assigns", [](const Variable &w, const Tensor &x) {
                                                               w.assign(x);
                                                               return w * 1.0f;
                                                             }};
  ConcreteFunction cf = f.trace(TensorSpec{f32, {2}});
  optim::Adam adam;
  nn::Dense dense{2, 3};
  nn::Dropout dropout{0.5};

  /// Every public entry that takes a tensor and reads its elements.
  std::vector<Named<Use>> uses() {
    auto seeded = [this](const Seeds &seeds) {
      GradientTape tape({.persistent = true});
      Tensor y = v * 2.0f;
      tape.gradient(y, v, GradientOptions{.output_gradients = seeds});
    };
    return {
        {"x + 1", [](const Tensor &x) { x + 1.0f; }},
        {"1 - x", [](const Tensor &x) { 1.0f - x; }},
        {"good * x", [this](const Tensor &x) { good *x; }},
        {"-x", [](const Tensor &x) { -x; }},
        {"x == x", [](const Tensor &x) { (void)(x == x); }},
        {"x < good", [this](const Tensor &x) { (void)(x < good); }},
        {"good += x",
         [this](const Tensor &x) {
           Tensor y = good;
           y += x;
         }},
        {"exp", [](const Tensor &x) { exp(x); }},
        {"matmul", [this](const Tensor &x) { matmul(good, x); }},
        {"concat", [this](const Tensor &x) { concat({good, x}, 0); }},
        {"stack", [this](const Tensor &x) { stack({good, x}, 0); }},
        {"where", [this](const Tensor &x) { where(good > 1.0f, good, x); }},
        {"where(x > 0)", [this](const Tensor &x) { where(x > 0.0f, good, good); }},
        {"gather", [](const Tensor &x) { gather(x, Tensor{0}); }},
        {"gather by", [this](const Tensor &x) { gather(good, cast(x, i64)); }},
        {"cast", [](const Tensor &x) { cast(x, f64); }},
        {"reshape", [](const Tensor &x) { reshape(x, {2, 1}); }},
        {"transpose", [](const Tensor &x) { transpose(x); }},
        {"broadcast_to", [](const Tensor &x) { broadcast_to(x, {3, 2}); }},
        {"full", [](const Tensor &x) { full({3, 2}, x); }},
        {"zeros_like", [](const Tensor &x) { zeros_like(x) + x; }},
        {"reduce_sum", [](const Tensor &x) { reduce_sum(x); }},
        {"mean", [](const Tensor &x) { mean(x); }},
        {"softmax", [](const Tensor &x) { softmax(x); }},
        {"index", [](const Tensor &x) { index(x, 0); }},
        {"squeeze", [](const Tensor &x) { squeeze(expand_dims(x, 0)); }},
        {"stop_gradient", [](const Tensor &x) { stop_gradient(x); }},
        {"mean_squared_error", [this](const Tensor &x) { mean_squared_error(good, x); }},
        {"random key", [](const Tensor &x) { random_uniform(x, {2}); }},
        {"random split", [](const Tensor &x) { random::split(x, 2); }},
        {"item", [](const Tensor &x) { x.item<float>(); }},
        {"to_vector", [](const Tensor &x) { x.to_vector<float>(); }},
        {"data", [](const Tensor &x) { x.data<float>(); }},
        {"Variable", [](const Tensor &x) { Variable w(x); }},
        {"assign", [this](const Tensor &x) { v.assign(x); }},
        {"assign_add", [this](const Tensor &x) { v.assign_add(x); }},
        {"assign_sub", [this](const Tensor &x) { v.assign_sub(x); }},
        {"watch", [](const Tensor &x) { GradientTape().watch(x); }},
        {"watch a structure", [this](const Tensor &x) { GradientTape().watch(std::vector{good, x}); }},
        {"gradient of",
         [this](const Tensor &x) {
           GradientTape tape;
           tape.gradient(x, v);
         }},
        {"gradient by",
         [this](const Tensor &x) {
           GradientTape tape;
           tape.gradient(v * 2.0f, x).value();
         }},
        {"gradient by, zeros",
         [this](const Tensor &x) {
           GradientTape tape;
           tape.gradient(v * 2.0f, x, GradientOptions{.unconnected = Unconnected::zero});
         }},
        {"gradient seed", [=](const Tensor &x) { x.dtype(), seeded(Seeds(x)); }},
        {"gradient seeds", [=](const Tensor &x) { x.dtype(), seeded(Seeds(std::vector{x})); }},
        {"explain",
         [this](const Tensor &x) {
           GradientTape tape;
           tape.explain(x, v);
         }},
        {"value_and_grad",
         [](const Tensor &x) { value_and_grad([](const Tensor &y) { return reduce_sum(y * y); })(x); }},
        {"value_and_grad, places",
         [this](const Tensor &x) {
           value_and_grad([](const Tensor &a, const Tensor &b) { return reduce_sum(a * b); }, {1})(good, x);
         }},
        {"grad, captured", [this](const Tensor &x) { grad([&](const Tensor &y) { return reduce_sum(y * x); })(good); }},
        {"grad_wrt_variables",
         [this](const Tensor &x) { grad_wrt_variables([&](const Tensor &y) { return reduce_sum(y * v); })(x); }},
        {"function", [this](const Tensor &x) { f(x); }},
        {"function, captured",
         [this](const Tensor &x) { wg::function("g", [&](const Tensor &y) { return y * x; })(good); }},
        {"function, returned", [this](const Tensor &x) { wg::function("g", [&](const Tensor &) { return x; })(good); }},
        {"function, in a structure",
         [this](const Tensor &x) {
           wg::function("g", [](const std::vector<Tensor> &list) { return list[0] * list[1]; })({good, x});
         }},
        {"function, assigned", [this](const Tensor &x) { assigns(v, x); }},
        {"generic function", [](const Tensor &x) { wg::function("g", [](const auto &y) { return y * 2.0f; })(x); }},
        {"function under a tape",
         [this](const Tensor &x) {
           GradientTape tape;
           f(x * v);
         }},
        {"concrete function", [this](const Tensor &x) { cf(x); }},
        {"call_flat", [this](const Tensor &x) { cf.call_flat(std::vector{x}); }},
        {"optimizer", [this](const Tensor &x) { adam.apply(std::vector{Grad(x)}, std::vector{v}); }},
        {"clip_by_global_norm",
         [this](const Tensor &x) { optim::clip_by_global_norm({Grad(good), Grad(x.defined() ? x : x * 1.0f)}, 1.0f); }},
        {"clip_by_global_norm to", [this](const Tensor &x) { optim::clip_by_global_norm({Grad(good)}, x); }},
        {"dense", [this](const Tensor &x) { dense(expand_dims(x, 0)); }},
        {"dropout", [this](const Tensor &x) { dropout(x, true); }},
        {"sequential",
         [](const Tensor &x) {
           nn::Sequential layers(nn::Dense(2, 3));
           layers(expand_dims(x, 0));
         }},
        {"sigmoid_cross_entropy", [this](const Tensor &x) { nn::sigmoid_cross_entropy(x, good); }},
        {"accuracy", [this](const Tensor &x) { nn::accuracy(expand_dims(good, 0), cast(x, i64)); }},
        {"initializer",
         [](const Tensor &x) { nn::Dense(2, 2, {}, {.weight = [=](const Shape &, DType) { return x; }}); }},
        {"Dataset",
         [this](const Tensor &x) {
           for (auto [a, b] : data::Dataset(x, good))
             (void)a;
         }},
        {"Dataset, targets",
         [this](const Tensor &x) {
           for (auto [a, b] : data::Dataset(good, x))
             (void)a;
         }},
    };
  }

  /// Each use is an error, and afterwards everything is as it was.
  void check(const std::string &kind, const Tensor &bad) {
    for (const auto &[name, use] : uses()) {
      SCOPED_TRACE(kind + ": " + name);
      try {
        use(bad);
        ADD_FAILURE() << "no error";
      } catch (const Error &error) {
        EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
        EXPECT_FALSE(error.message().empty());
        EXPECT_FALSE(error.remedy().empty()) << error.what();
      } catch (const std::exception &other) {
        ADD_FAILURE() << "another exception: " << other.what();
      }
    }
    std::ostringstream text;
    text << bad << to_string(bad);
    EXPECT_FALSE(text.str().empty());
  }
  void checkUnchanged(bool traced = false) {
    EXPECT_EQ(v.value().to_vector<float>(), (std::vector{1.0f, 2.0f}));
    EXPECT_EQ(f(good).to_vector<float>(), (std::vector{2.0f, 4.0f}));
    // In a trace, whether a tensor is of use is known after the slots were made, once and
    // outside of it: they are zeros.
    for (const auto &[name, slot] : adam.named_slots())
      EXPECT_TRUE(traced && cast(reduce_sum(abs(slot)), f64).item<double>() == 0) << name;
    GradientTape tape;
    EXPECT_EQ(tape.gradient(reduce_sum(v * v), v).value().to_vector<float>(), (std::vector{2.0f, 4.0f}));
  }
};

/// A tensor of a trace that has ended.
Tensor leaked() {
  Tensor kept;
  wg::function("leak", [&](const Tensor &x) { return kept = x * 2.0f; })(Tensor{1.0f, 2.0f});
  return kept;
}

} // namespace

TEST(Misuse, OfATensorThatIsUndefined) {
  Bench bench;
  bench.check("undefined", Tensor());
  Tensor from = bench.good * 1.0f, to = std::move(from);
  bench.check("moved from", from);
  bench.checkUnchanged();
}

TEST(Misuse, OfASpecification) {
  Bench bench;
  bench.check("specification", Tensor(TensorSpec{f32, {2}}));
  bench.check("open specification", Tensor(TensorSpec{f32, {dynamic}}));
  bench.checkUnchanged();
}

TEST(Misuse, OfATensorOfAnEndedTrace) {
  Bench bench;
  Tensor bad = leaked();
  bench.check("leaked", bad);
  EXPECT_THROW(bench.f.trace(bad), Error);
  EXPECT_EQ(bench.f.trace_count(), 1);
  bench.checkUnchanged();
}

// Inside of a trace, whose own tensors are usable.
TEST(Misuse, InsideOfATrace) {
  Bench bench;
  Tensor bad = leaked();
  auto trace = [&](const std::string &kind, const Tensor &x) {
    for (const auto &[name, use] : bench.uses()) {
      SCOPED_TRACE(kind + ", traced: " + name);
      auto traced = wg::function("traced", [&] {
        use(x);
        return Tensor(1.0f);
      });
      EXPECT_THROW(traced(), Error);
    }
  };
  trace("leaked", bad);
  trace("specification", Tensor(TensorSpec{f32, {2}}));
  trace("undefined", Tensor());
  bench.checkUnchanged(/*traced=*/true);
}

// A trace that runs on another thread is as far away as one that has ended; and one is left by at_trace_time.
TEST(Misuse, OfATensorOfARunningTrace) {
  Bench bench;
  Tensor theirs;
  std::atomic<int> stage = 0;
  std::thread other([&] {
    wg::function("other", [&](const Tensor &x) {
      theirs = x * 2.0f;
      stage = 1;
      while (stage != 2)
        std::this_thread::yield();
      return theirs;
    })(Tensor{1.0f, 2.0f});
  });
  while (stage != 1)
    std::this_thread::yield();
  bench.check("of another thread", theirs);
  EXPECT_THROW(bench.f.trace(theirs), Error);
  stage = 2;
  other.join();
  wg::function("outer", [&](const Tensor &x) {
    Tensor y = x * 2.0f;
    at_trace_time([&] { bench.check("at trace time", y); });
    return y;
  })(Tensor{1.0f, 2.0f});
  bench.checkUnchanged();
}

TEST(Misuse, OfAVariableThatIsUndefined) {
  Bench bench;
  Variable from(1.0f), to = std::move(from);
  auto save = std::filesystem::temp_directory_path() / "wengert-misuse.safetensors";
  for (const Variable &bad : {Variable(), from}) {
    for (const auto &use : std::vector<std::function<void()>>{
             [&] { bad.value(); },
             [&] { bad.assign(1.0f); },
             [&] { bad.assign_add(1.0f); },
             [&] { bad.item<float>(); },
             [&] { bad.shape(), bad.dtype(), bad.size(); },
             [&] { bad.name(); },
             [&] { bad.id(); },
             [&] { bad *bench.good; },
             [&] { GradientTape().watch(bad); },
             [&] {
               GradientTape tape;
               tape.gradient(bad, bench.v);
             },
             [&] { bench.assigns(bad, bench.good); },
             [&] { bench.assigns.trace(bad, bench.good); },
             [&] { value_and_grad([](const Variable &x) { return x * x; })(bad); },
             [&] { value_and_grad([](const Variable &x) { return x * x; }, {0})(bad); },
             [&] { bench.adam.apply(std::vector{Grad(bench.good)}, std::vector{bad}); },
             [&] { save_weights(save.string(), {{"bad", bad}}); },
             [&] { load_weights(save.string(), {{"bad", bad}}); },
         })
      EXPECT_THROW(use(), Error);
    std::ostringstream text;
    text << bad;
    EXPECT_EQ(text.str(), "Variable(undefined)");
  }
  EXPECT_FALSE(std::filesystem::exists(save));
  bench.checkUnchanged();
}

TEST(Misuse, OfWhatWasMovedFrom) {
  Bench bench;
  auto f = std::move(bench.f);
  auto g = wg::function("g", [](const auto &x) { return x * 2.0f; });
  auto movedG = std::move(g);
  auto cf = std::move(bench.cf);
  Generator generator(1), movedGenerator = std::move(generator);
  data::Dataset set(bench.good, bench.good), movedSet = std::move(set);
  nn::Dropout dropout(0.5), movedDropout = std::move(dropout);
  nn::Dense dense(2, 2), movedDense = std::move(dense);
  for (const auto &use : std::vector<std::function<void()>>{
           [&] { bench.f(bench.good); },
           [&] { bench.f.trace(bench.good); },
           [&] { bench.f.original(); },
           [&] { bench.f.report(); },
           [&] { bench.f.explain_last_trace(); },
           [&] { bench.f.clear_cache(); },
           [&] { bench.f.trace_count(), bench.f.num_concrete(); },
           [&] { bench.f.name(); },
           [&] { g(bench.good); },
           [&] { g.trace(bench.good); },
           [&] { bench.cf(bench.good); },
           [&] { bench.cf.call_flat(std::vector{bench.good}); },
           [&] { bench.cf.text(Stage::traced); },
           [&] { bench.cf.signature(); },
           [&] { bench.cf.certificate(); },
           [&] { bench.cf.kernels(); },
           [&] { bench.cf.timings(); },
           [&] { bench.cf.variables(); },
           [&] { bench.cf.write_object("/nonexistent"); },
           [&] { generator.uniform({2}); },
           [&] { generator.normal({2}); },
           [&] { set.begin(); },
           [&] { set.size(); },
           [&] { set.batches(); },
           [&] { dropout(bench.good, true); },
           [&] { dense(ones({1, 2})); },
       })
    EXPECT_THROW(use(), Error);
  EXPECT_EQ(f(bench.good).to_vector<float>(), (std::vector{2.0f, 4.0f}));
  EXPECT_EQ(cf(bench.good)[0].to_vector<float>(), (std::vector{2.0f, 4.0f}));
}

TEST(Misuse, OfTheNumberOfThreads) {
  for (int count : {-3, 0, -1, 257, INT32_MAX, INT32_MIN})
    try {
      set_num_threads(count);
      FAIL() << count;
    } catch (const Error &error) {
      EXPECT_EQ(error.message(), std::to_string(count) + " threads; a count lies in [1, 256]");
      EXPECT_EQ(error.where().rfind("MisuseTest.cpp:", 0), 0u) << error.where();
    }
  set_num_threads(2);
}
