// `saver write DIRECTORY`: saved computations for the tests of the command line. `saver tape PATH`: loads one, and
// prints the gradients of its tape and a variable.
#include <wengert/wengert.h>

#include <iostream>
#include <string>

using namespace wg;

extern "C" int32_t saver_twice(void *const *pointers, const int64_t *, void *) {
  *static_cast<float *>(pointers[1]) = 2 * *static_cast<const float *>(pointers[0]);
  return 0;
}

static void write(const std::string &directory) {
  Variable w(Tensor({1.0f, -2.0f}), "w"), steps(Tensor(0), {.name = "steps", .trainable = false});
  auto step = function("step",
                       [&](const Tensor &x, const Tensor &y) {
                         GradientTape tape;
                         Tensor loss = mean(square(reduce_sum(x * w, 1) - y));
                         w.assign_sub(0.5f * tape.gradient(loss, w).value());
                         steps.assign_add(1);
                         return loss;
                       },
                       {.argument_names = {"x", "y"}});
  Tensor x({{1.0f, 2.0f}, {3.0f, 4.0f}}), y({1.0f, 0.0f});
  step.trace(x, y);
  step.trace(TensorSpec{f32, {dynamic, 2}}, TensorSpec{f32, {dynamic}});
  auto scaled = function("scaled", [](const Tensor &x, double factor) { return std::pair(x * factor, x); });
  scaled.trace(Tensor({1.0, 2.0}), 0.5);
  scaled.trace(Tensor({1.0, 2.0}), 2.0);
  auto ofVariable = function("of_variable", [](const Variable &v, const Tensor &x) { return v * x; });
  ofVariable.trace(w, y);
  GradientTape tape({.persistent = true});
  tape.watch(y);
  Tensor product = y * w;
  SaveItems items{{"step", step}, {"scaled", scaled}, {"of_variable", ofVariable}, {"w", w},    {"steps", steps},
                  {"y", y},       {"tape", tape},     {"product", product},        {"seven", 7}};
  for (const char *form : {"/package", "/package.wg"})
    save(directory + form, items, {.metadata = {{"made by", "a test"}}});
  auto only = function("only", [](const Tensor &x) { return x + 1.0f; });
  only.trace(y);
  save(directory + "/only.wg", {{"only", only}});
  auto said = function("said", [](const Tensor &x) {
    print("x is {}", x);
    return x * 2.0f;
  });
  said.trace(Tensor(1.0f));
  save(directory + "/said.wg", {{"said", said}});
  HostFunction host = host_function("my_host", [](const std::vector<Tensor> &x) { return x[0]; });
  CFunction twice = c_function(
      "saver_twice", saver_twice,
      {.arguments = {TensorSpec{f32, {}}}, .result = [](const std::vector<TensorSpec> &of) { return of[0]; }});
  auto foreign = function("foreign", [&](const Tensor &x) { return twice(host({f32, {}}, {x})); });
  foreign.trace(Tensor(1.0f));
  save(directory + "/foreign.wg", {{"foreign", foreign}});
}

int main(int argc, char **argv) {
  std::string mode = argc > 2 ? argv[1] : "";
  if (mode == "write") {
    write(argv[2]);
  } else if (mode == "tape") {
    Saved saved = load(argv[2]);
    Tensor y = saved.get("y");
    GradientTape tape = saved.tape("tape");
    auto [dy, dw] = tape.gradient(saved.get("product"), y, saved.variable("w"));
    std::cout << saved.get("product") << "\n" << dy << "\n" << dw << "\n" << saved.variable("w") << "\n";
  } else {
    std::cerr << "saver write DIRECTORY, or saver tape PATH\n";
    return 2;
  }
}
