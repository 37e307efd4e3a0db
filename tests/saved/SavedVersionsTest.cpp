// Files of each version of the format, stored here, are loaded by this version and compute the numbers that were stored
// beside them. `WENGERT_WRITE_SAVED=1 build/tests/SavedVersionsTest` writes those of the version that this library
// writes: data/v1.wg, the directory data/v1, and data/v1.npz with the numbers, which come from what was saved, and not
// from what was loaded.
#include "frontend/saving/Manifest.h"
#include "runtime/io/Digest.h"
#include "tests/frontend/Files.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

using namespace wg;

namespace {

const std::string kFolder = WENGERT_SOURCE_DIR "/tests/saved/data/";
using Unary = Function<Tensor(const Tensor &)>;
using Values = std::map<std::string, std::vector<std::pair<int64_t, Tensor>>>;
using Numbers = std::map<std::string, Tensor>;

data::Dataset examples() { return data::Dataset(arange(20), arange(20)).shuffle(3).batch(4); }

/// What is saved, from wherever it comes.
struct Computation {
  Unary f, step;
  Function<Tensor()> noise;
  Variable w, b;
  std::shared_ptr<optim::Adam> adam;
  Tensor x, half;
  GradientTape tape;
  data::Dataset data;
  Values values;
};

void append(Numbers &numbers, const std::string &name, const Tensor &x) { numbers.emplace(name, x); }

/// The numbers that it computes: values, first and second derivatives, a step of a training, what a tape that was half
/// way gives, random numbers, the batches that are left.
Numbers numbersOf(Computation &c) {
  Numbers numbers;
  {
    GradientTape tape = std::move(c.tape); // it ends with this block
    Tensor rest = reduce_sum(c.half * c.w + sin(c.half));
    auto [dx, dw] = tape.gradient(rest, c.x, c.w);
    append(numbers, "tape.value", rest), append(numbers, "tape.dx", dx.value()), append(numbers, "tape.dw", dw.value());
  }
  for (int64_t size : {3, 5}) { // the first trace, and the one with an open size
    Tensor x = linspace(-1.5, 2, size, f64);
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    Tensor y = c.f(x);
    auto [dx, dw, db] = inner.gradient(y, x, c.w, c.b);
    Tensor second = outer.gradient(reduce_sum(square(dx.value())), c.w).value();
    std::string name = "f" + std::to_string(size);
    append(numbers, name + ".value", y), append(numbers, name + ".dx", dx.value());
    append(numbers, name + ".dw", dw.value()), append(numbers, name + ".db", db.value());
    append(numbers, name + ".dxw", second);
  }
  for (int i = 0; i < 3; ++i)
    append(numbers, "step" + std::to_string(i), c.step(Tensor({0.5, -2.0, 3.0})));
  c.adam->apply({Tensor({1.0, -1.0, 0.5}), Tensor(0.25)}, {c.w, c.b}); // its moments and count go on
  append(numbers, "w", c.w.value()), append(numbers, "b", c.b.value());
  append(numbers, "noise0", c.noise()), append(numbers, "noise1", c.noise());
  int batch = 0;
  for (const auto &[x, y] : c.data)
    append(numbers, "batch" + std::to_string(batch++), x);
  for (const auto &[name, list] : c.values)
    for (const auto &[number, tensor] : list)
      append(numbers, "values." + name + "." + std::to_string(number), tensor);
  return numbers;
}

/// Writes the computation of this library's version, and the numbers that it gives itself.
void writeVersion(const std::string &name) {
  Variable w(Tensor({0.5, -1.25, 2.0}), "w"), b(Tensor(0.25), "b");
  Tensor captured = linspace(0, 1, 20, f64);
  auto adam = std::make_shared<optim::Adam>(0.01);
  Generator generator(5);
  auto f = function("f", [&](const Tensor &x) {
    auto clipped = custom_gradient([](const Tensor &x) { return x * x; },
                                   [](const Tensor &ct, const Tensor &x) { return clamp(ct * x, -1.0, 1.0); });
    auto [state, rows] = scan(
        [&](const Tensor &carry, const Tensor &row) {
          Tensor next = carry + clipped(row) * reduce_sum(sin(w * row));
          return std::pair(next, next * b);
        },
        Tensor(0.0), x);
    Tensor branch = cond(state > 1.0, [&] { return state * state; }, [&] { return -state; });
    return branch + reduce_sum(rows) + reduce_sum(captured) * b;
  });
  auto step = function("step", [&](const Tensor &x) {
    GradientTape tape;
    Tensor loss = square(reduce_sum(x * w) + b);
    auto [dw, db] = tape.gradient(loss, w, b);
    w.assign_sub(0.01 * dw);
    b.assign_sub(0.01 * db);
    return loss;
  });
  auto noise = function("noise", [&] { return generator.normal({3}, 0, 1, f64); });
  f(Tensor({0.5, -2.0, 3.0}));
  f.trace(TensorSpec{f64, {dynamic}});
  step(Tensor({0.5, -2.0, 3.0}));
  noise();
  adam->apply({Tensor({0.5, 2.0, -1.0}), Tensor(1.0)}, {w, b});
  data::Dataset data = examples();
  data.seek({1, 2});
  Values values{{"a", {{1, Tensor({1.0f, 2.0f})}, {2, Tensor(true)}}}, {"b", {{3, Tensor({{1, 2}, {3, 4}})}}}};
  Tensor x({1.25, 2.5, -0.5});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor half = f(x) * x + with_gradient_hook(w * exp(x), [](const Tensor &ct) { return ct * 0.5; });
  SaveItems items{{"f", f},         {"step", step},  {"noise", noise},         {"w", w},
                  {"b", b},         {"adam", *adam}, {"generator", generator}, {"tape", tape},
                  {"x", x},         {"half", half},  {"data", data},           {"values", values},
                  {"text", "text"}, {"seven", 7.0},  {"concrete", f.trace(x)}};
  for (const std::string &form : {std::string(), std::string(".wg")})
    save(kFolder + name + form, items, {.metadata = {{"made by", "SavedVersionsTest"}}});
  Computation c{f, step, noise, w, b, adam, x, half, std::move(tape), data, values};
  save_npz(kFolder + name + ".npz", numbersOf(c));
}

void expectNear(const Numbers &numbers, const Numbers &stored) {
  for (const auto &[name, expected] : stored) {
    auto found = numbers.find(name);
    ASSERT_NE(found, numbers.end()) << name;
    ASSERT_EQ(found->second.dtype(), expected.dtype()) << name;
    ASSERT_EQ(found->second.shape(), expected.shape()) << name;
    // Another machine's exponentials and sums may round otherwise (docs/numbers.md).
    std::vector<double> a = found->second.to_vector<double>(), b = expected.to_vector<double>();
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-12 * (1 + std::abs(b[i]))) << name << " " << i;
  }
}

TEST(SavedVersionsTest, Every_stored_version_loads_and_computes_the_numbers_that_were_stored_with_it) {
  if (std::getenv("WENGERT_WRITE_SAVED"))
    writeVersion("v" + std::to_string(detail::kSavedVersion));
  int64_t versions = 0;
  for (const auto &entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".npz")
      continue;
    ++versions;
    for (const std::string &form : {std::string(), std::string(".wg")}) {
      std::string path = std::filesystem::path(entry.path()).replace_extension(form).string();
      SCOPED_TRACE(path);
      Saved saved = load(path);
      EXPECT_EQ(saved.metadata().at("made by"), "SavedVersionsTest");
      EXPECT_EQ(saved.get<std::string>("text"), "text");
      EXPECT_EQ(saved.get<double>("seven"), 7.0);
      EXPECT_EQ(saved.variable("w").name(), "w");
      EXPECT_EQ(saved.concrete_functions("f").size(), 2u);
      EXPECT_EQ(saved.concrete_functions("concrete").size(), 1u);
      data::Dataset data = examples();
      saved.restore("data", data);
      EXPECT_EQ(data.position(), (data::Position{1, 2}));
      Variable w = saved.variable("w"), b = saved.variable("b");
      auto adam = std::make_shared<optim::Adam>(0.5);
      adam->build(std::vector<Variable>{w, b});
      saved.restore("adam", *adam);
      Computation c{saved.function<Tensor(const Tensor &)>("f"),
                    saved.function<Tensor(const Tensor &)>("step"),
                    saved.function<Tensor()>("noise"),
                    w,
                    b,
                    adam,
                    saved.get("x"),
                    saved.get("half"),
                    saved.tape("tape"),
                    data,
                    saved.get<Values>("values")};
      Numbers numbers = numbersOf(c), stored = load_npz(entry.path().string());
      EXPECT_EQ(numbers.size(), stored.size());
      expectNear(numbers, stored);
    }
  }
  EXPECT_EQ(versions, detail::kSavedVersion) << "a version has no stored files: see the first lines of this file";
}

TEST(SavedVersionsTest, A_newer_version_is_refused_by_its_number_and_who_wrote_it) {
  wg::tests::Folder folder;
  std::string path = folder.path("newer");
  std::filesystem::copy(kFolder + "v1", path);
  std::string manifest = wg::tests::bytesOf(path + "/manifest.json");
  std::string rest = manifest.substr(manifest.find('\n') + 1);
  auto replace = [&](const std::string &from, const std::string &to) {
    ASSERT_NE(rest.find(from), std::string::npos) << from;
    rest.replace(rest.find(from), from.size(), to);
  };
  replace("\"version\": 1", "\"version\": 734");
  replace("\"library\": \"", "\"library\": \"8.7.6 of ");
  std::ofstream(path + "/manifest.json") << "{\"blake3\":\"" << runtime::digestOf(rest) << "\",\n" << rest;
  try {
    load(path);
    FAIL();
  } catch (const Error &error) {
    std::string what = error.what();
    for (const std::string &part : {std::string("734"), std::string("8.7.6"), std::string(WENGERT_VERSION_STRING),
                                    "versions up to " + std::to_string(detail::kSavedVersion), std::string("  try: ")})
      EXPECT_NE(what.find(part), std::string::npos) << what;
  }
}

} // namespace
