// A random program saved and loaded: the same bits, of its results, of what it assigns and of its gradients.
#include "tests/frontend/Files.h"
#include "tests/frontend/RandomBodiesChecks.h"

namespace wg::tests {

void Checks::saved() {
  Folder folder;
  for (bool interpret : {true, false}) {
    std::string how = interpret ? "saved, interpreted" : "saved, compiled", path = folder.path(how + ".wg");
    BodyRun run(program_, interpret);
    auto f = function("bodies", [&](const Tensors &x) { return run(x); }, {.interpret = interpret});
    ConcreteFunction traced = f.trace(inputs_);
    save(path, {{"bodies", f}});
    Saved loaded = load(path);
    auto g = loaded.function<Tensors(const Tensors &)>("bodies");
    std::vector<Variable> own = traced.variables(), others = loaded.concrete_functions("bodies")[0].variables();
    ASSERT_EQ(own.size(), others.size());
    auto expectBits = [&](const Tensors &a, const Tensors &b, const char *what) {
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_TRUE(sameBits(a[i], b[i])) << how << ", " << what << " " << i << ": " << a[i] << " and " << b[i];
    };
    auto values = [](const std::vector<Variable> &variables) {
      Tensors list;
      for (const Variable &variable : variables)
        if (variable.name() != "order of effects")
          list.push_back(variable.value());
      return list;
    };
    expectBits(f(inputs_), g(inputs_), "result");
    expectBits(values(own), values(others), "variable");
    if (program_.mayFail)
      continue;
    expectBits(gradientsOf(f, inputs_), gradientsOf(g, inputs_), "gradient");
    expectBits(values(own), values(others), "variable after a gradient");
    if (program_.seed % 3 == 0) {
      auto outer = [&](const auto &h) {
        return function("outer", [&](const Tensors &x) { return gradientsOf(h, x); },
                        {.interpret = interpret})(inputs_);
      };
      expectBits(outer(f), outer(g), "gradient in a function");
    }
  }
  tally("programs saved and loaded");
}

} // namespace wg::tests
