// A program with a custom layer, a custom gradient, a scan, dropout, batch norm and Adam is saved, and another process,
// which has none of its code, trains on and differentiates: the same bits, to second order. And a tape half way.
#include "tests/frontend/Files.h"
#include "tests/frontend/Support.h"

#include <wengert/wengert.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

using namespace wg;
using wg::tests::Folder;
using wg::tests::sameBits;

namespace {

/// y_t = clip(y_{t-1} w + x_t v), where the gradient passes the clip as it is; counts its calls.
struct Recurrence : nn::Module {
  Variable w, v, calls;
  explicit Recurrence(int64_t width)
      : w(add("w", 0.3 * random_normal(random::key(7), {width, width}, 0, 1, f64))),
        v(add("v", 0.3 * random_normal(random::key(8), {width, width}, 0, 1, f64))),
        calls(add("calls", Tensor(int64_t(0)), /*trainable=*/false)) {}
  Tensor operator()(const Tensor &x) const {
    calls.assign_add(int64_t(1));
    auto straight = custom_gradient([](const Tensor &x) { return clamp(x, -0.5, 0.5); },
                                    [](const Tensor &ct, const Tensor &x) { return ct * (1.0 + 0.01 * x); });
    auto [last, states] = scan(
        [&](const Tensor &state, const Tensor &row) {
          Tensor next = straight(matmul(state, w) + matmul(row, v));
          return std::pair(next, next);
        },
        zeros({x.dim(1), w.dim(0)}, f64), x);
    return reduce_sum(states, 0) + last;
  }
};

struct Model : nn::Module {
  Recurrence recurrence{6};
  nn::BatchNorm norm{6, {.dtype = f64}};
  nn::Dropout dropout{0.25, 3};
  nn::Dense out{6, 2, {}, {.dtype = f64}};
  Model() { add("recurrence", recurrence), add("norm", norm), add("dropout", dropout), add("out", out); }
  Tensor operator()(const Tensor &x) const { return out(dropout(norm(recurrence(x), true), true)); }
};

using Step = Function<Tensor(const Tensor &, const Tensor &)>;

Tensor input(int64_t i) { return random_normal(random::key(100 + i), {5, 4, 6}, 0, 1, f64); }
Tensor target(int64_t i) { return random_normal(random::key(200 + i), {4, 2}, 0, 1, f64); }

/// The losses of three steps, and then the loss, its gradient by the variables, and the gradient of the sum of the
/// squares of that.
std::map<std::string, Tensor> goOn(const Step &step, const Step &loss,
                                   const std::vector<nn::Module::Named> &variables) {
  std::map<std::string, Tensor> found;
  for (int64_t i = 0; i < 3; ++i)
    found["step" + std::to_string(i)] = step(input(i), target(i));
  std::vector<Variable> trained;
  for (const auto &[name, variable] : variables)
    if (variable.trainable())
      trained.push_back(variable);
  GradientTape outer;
  GradientTape inner;
  Tensor value = loss(input(9), target(9));
  std::vector<Grad> first = inner.gradient(value, trained);
  Tensor squares(0.0);
  for (const Grad &each : first)
    squares = squares + reduce_sum(square(each.value()));
  std::vector<Grad> second = outer.gradient(squares, trained);
  found["loss"] = value;
  for (size_t i = 0; i < trained.size(); ++i) {
    found["first" + std::to_string(i)] = first[i].value();
    found["second" + std::to_string(i)] = second[i].has_value() ? second[i].value() : Tensor(0.0);
  }
  for (const auto &[name, variable] : variables)
    found["variable " + name] = variable.value();
  return found;
}

Tensor halfOf(const Tensor &x, const Variable &w) { return sin(x * w) + exp(-x); }
Tensor restOf(const Tensor &half, const Variable &w) { return reduce_sum(half * half * w); }

void writeAll(const std::string &path, const std::map<std::string, Tensor> &tensors) {
  std::vector<nn::Module::Named> named;
  for (const auto &[name, tensor] : tensors)
    named.emplace_back(name, Variable(tensor));
  save_weights(path, named);
}

/// What the other process does: it knows the names and types of what was saved, and nothing else.
void child(const std::string &folder) {
  Saved saved = load(folder + "/training");
  std::map<std::string, Tensor> found =
      goOn(saved.function<Tensor(const Tensor &, const Tensor &)>("step"),
           saved.function<Tensor(const Tensor &, const Tensor &)>("loss"), saved.named_variables("model"));
  Saved half = load(folder + "/tape.wg");
  GradientTape tape = half.tape("tape");
  auto [dx, dw] = tape.gradient(restOf(half.get("half"), half.variable("w")), half.get("x"), half.variable("w"));
  found["tape dx"] = dx.value(), found["tape dw"] = dw.value();
  writeAll(folder + "/found.safetensors", found);
}

} // namespace

TEST(SavedProcess, AnotherProcessGoesOnWithTheSameBits) {
  if (const char *folder = std::getenv("WENGERT_CHILD"))
    return child(folder);
  Folder folder;
  for (bool interpret : {false, true}) {
    Model model;
    optim::Adam adam(0.01);
    adam.build(model);
    auto lossOf = [&](const Tensor &x, const Tensor &y) { return mean(square(model(x) - y)); };
    Step step = function("step",
                         [&](const Tensor &x, const Tensor &y) {
                           GradientTape tape;
                           Tensor loss = lossOf(x, y);
                           adam.apply(tape.gradient(loss, model), model);
                           return loss;
                         },
                         {.interpret = interpret});
    Step loss = function("loss", lossOf, {.interpret = interpret});
    for (int64_t i = 10; i < 14; ++i)
      step(input(i), target(i));
    loss.trace(input(0), target(0));
    save(folder.path("training"), {{"step", step}, {"loss", loss}, {"model", model}, {"adam", adam}});
    std::map<std::string, Tensor> expected = goOn(step, loss, model.named_variables());
    {
      Variable w(Tensor({0.5, 1.5, -0.25}), "w");
      Tensor x({1.0, 2.0, 3.0});
      GradientTape tape;
      tape.watch(x);
      Tensor half = halfOf(x, w);
      save(folder.path("tape.wg"), {{"tape", tape}, {"x", x}, {"w", w}, {"half", half}});
      auto [dx, dw] = tape.gradient(restOf(half, w), x, w);
      expected["tape dx"] = dx.value(), expected["tape dw"] = dw.value();
    }
    std::string command =
        "WENGERT_CHILD=" + folder.path("") + " " + std::filesystem::read_symlink("/proc/self/exe").string() +
        " --gtest_filter=SavedProcess.AnotherProcessGoesOnWithTheSameBits >" + folder.path("out") + " 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << wg::tests::bytesOf(folder.path("out"));
    for (const auto &[name, tensor] : expected) {
      Variable found(zeros(tensor.shape(), tensor.dtype()));
      load_weights(folder.path("found.safetensors"), {{name, found}});
      EXPECT_TRUE(sameBits(found, tensor))
          << name << (interpret ? ", interpreted: " : ", compiled: ") << found << tensor;
    }
  }
}
