// Computations that outlive their program: a tape with what it recorded, a layer with its state and without its code,
// the two halves of a model from two programs, and a training that goes on where it was.
#include <wengert/wengert.h>

#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>

using wg::Tensor;
using wg::Variable;

/// A folder of its own, removed in the end.
struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "wengert-XXXXXX").string();
  Folder() {
    if (!::mkdtemp(path.data()))
      throw std::runtime_error("no temporary folder");
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &name) const { return path + "/" + name; }
};

static bool same(const Tensor &a, const Tensor &b) { return a.to_vector<float>() == b.to_vector<float>(); }

/// A linear regression is recorded, and differentiated where it is loaded.
static void tape(const std::string &path) {
  Variable w(wg::ones({3}), "w"), b(0.5f, "b");
  Tensor x = wg::random_normal(wg::random::key(1), {16, 3}), y = wg::reduce_sum(x, 1) + 2;
  wg::GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor loss = wg::mean(wg::square(wg::matmul(x, w) + b - y));
  wg::save(path, {{"tape", tape}, {"x", x}, {"loss", loss}, {"w", w}, {"b", b}});
  auto [dx, dw, db] = tape.gradient(loss, x, w, b);

  wg::Saved saved = wg::load(path);
  Variable w2 = saved.variable("w"), b2 = saved.variable("b");
  wg::GradientTape again = saved.tape("tape");
  auto [dx2, dw2, db2] = again.gradient(saved.get("loss"), saved.get("x"), w2, b2);
  std::cout << "a tape, loaded\n  gradient by w " << dw2
            << "\n  the same bits: " << (same(dx, dx2) && same(dw, dw2) && same(db, db2)) << "\n";
}

/// Rows are centred by the mean of all that it has seen.
struct Centre : wg::nn::Module {
  Variable mean, seen;
  Centre() : mean(add("mean", wg::zeros({2}))), seen(add("seen", wg::Tensor(0.0f))) {}
  Tensor operator()(const Tensor &x) const {
    seen.assign_add(1.0f);
    mean.assign_add((wg::mean(x, 0) - mean) / seen);
    return x - mean;
  }
};

static void layer(const std::string &path) {
  {
    Centre centre;
    auto call = wg::function("centre", [&](const Tensor &x) { return centre(x); });
    for (float level : {1.0f, 2.0f, 6.0f})
      call(wg::full({4, 2}, level));
    wg::save(path, {{"centre", call}, {"layer", centre}});
  }
  wg::Saved saved = wg::load(path); // a program that does not know Centre
  auto centre = saved.function<Tensor(const Tensor &)>("centre");
  std::cout << "a layer, loaded without its code\n  was called " << saved.variable("layer.seen") << "\n  gives "
            << centre(wg::full({4, 2}, 7.0f))[0] << "\n  and was called " << saved.variable("layer.seen") << "\n";
}

/// Two programs save what each of them made; a third trains both as one.
static void halves(const std::string &encoderPath, const std::string &headPath) {
  {
    wg::nn::Dense dense(4, 3, wg::tanh, {.weight = wg::nn::glorot_uniform(1)});
    auto encoder = wg::function("encoder", [&](const Tensor &x) { return dense(x); });
    encoder.trace(wg::TensorSpec{wg::f32, {wg::dynamic, 4}});
    wg::save(encoderPath, {{"encoder", encoder}, {"layer", dense}});
  }
  {
    wg::nn::Dense dense(3, 2, {}, {.weight = wg::nn::glorot_uniform(2)});
    auto head = wg::function(
        "head", [&](const Tensor &h, const Tensor &labels) { return wg::nn::cross_entropy(dense(h), labels); });
    head.trace(wg::TensorSpec{wg::f32, {wg::dynamic, 3}}, wg::TensorSpec{wg::i64, {wg::dynamic}});
    wg::save(headPath, {{"head", head}, {"layer", dense}});
  }
  wg::Saved first = wg::load(encoderPath), second = wg::load(headPath);
  auto encoder = first.function<Tensor(const Tensor &)>("encoder");
  auto head = second.function<Tensor(const Tensor &, const Tensor &)>("head");
  std::vector<Variable> all;
  for (const wg::Saved &half : {first, second})
    for (const auto &[name, variable] : half.named_variables("layer"))
      all.push_back(variable);
  wg::optim::SGD sgd(0.5);
  auto step = wg::function("step", [&](const Tensor &x, const Tensor &labels) {
    wg::GradientTape tape;
    Tensor loss = head(encoder(x), labels);
    sgd.apply(tape.gradient(loss, all), all);
    return loss;
  });
  Tensor x = wg::random_normal(wg::random::key(3), {32, 4}), labels = wg::cast(wg::reduce_sum(x, 1) > 0.0f, wg::i64);
  float before = step(x, labels).item<float>();
  for (int i = 0; i < 50; ++i)
    step(x, labels);
  std::cout << "two halves from two programs, trained as one\n  loss " << std::setprecision(3) << before << " to "
            << step(x, labels).item<float>() << " by " << all.size() << " variables\n";
}

/// All that a training is made of, as a program makes it each time that it starts.
struct Training {
  wg::nn::Dense model{2, 1, {}, {.weight = wg::nn::glorot_uniform(1)}};
  wg::optim::Adam adam{0.05};
  wg::Generator noise{7};
  wg::data::Dataset data;
  wg::Function<Tensor(const Tensor &, const Tensor &)> step{
      "step", [this](const Tensor &x, const Tensor &y) {
        wg::GradientTape tape;
        Tensor loss = wg::mean(wg::square(model(x + 0.01f * noise.normal(x.shape())) - y));
        adam.apply(tape.gradient(loss, model), model);
        return loss;
      }};

  Training() : data(examples()) { adam.build(model); }
  static wg::data::Dataset examples() {
    Tensor x = wg::random_normal(wg::random::key(4), {24, 2}), y = wg::reduce_sum(x, 1, /*keepdims=*/true);
    return wg::data::Dataset(x, y).shuffle(1).batch(8);
  }
  wg::SaveItems items() { return {{"model", model}, {"adam", adam}, {"noise", noise}, {"data", data}}; }
  /// The losses of at most `steps` steps, through as many epochs as these take.
  std::vector<float> run(int steps, const std::string &save = {}) {
    std::vector<float> losses;
    while (steps > 0)
      for (const auto &[x, y] : data) {
        losses.push_back(step(x, y).item<float>());
        if (--steps == 0 && !save.empty())
          wg::save(save, items());
        if (steps == 0)
          break;
      }
    return losses;
  }
};

static void training(const std::string &path) {
  Training uninterrupted;
  std::vector<float> all = uninterrupted.run(9);

  std::vector<float> parts = Training().run(5, path); // in the middle of the second epoch
  Training other;
  wg::load(path, other.items());
  for (float loss : other.run(4))
    parts.push_back(loss);
  std::cout << "a training of 9 steps, interrupted after 5\n  the same losses, bit for bit: " << (parts == all) << "\n";
}

int main() {
  Folder folder;
  tape(folder / "tape.wg");
  layer(folder / "layer.wg");
  halves(folder / "encoder", folder / "head"); // directories
  training(folder / "training.wg");
}
