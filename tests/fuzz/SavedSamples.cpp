#include "tests/fuzz/SavedSamples.h"

#include "frontend/staging/Function.h"

#include <sstream>

namespace wg::tests {

namespace {

struct Batch {
  Tensor x, y;
  WENGERT_FIELDS(x, y)
};
enum class Mode { train, evaluate };
using Named = std::map<std::string, Tensor>;
using Mixed = std::tuple<Tensor, std::map<std::string, std::vector<Tensor>>, int, std::string>;

struct Model : nn::Module {
  nn::Dense a{3, 2, wg::tanh}, b{2, 1};
  Model() { add("a", a), add("b", b); }
  Tensor operator()(const Tensor &x) const { return b(a(x)); }
};

int32_t cube(void *const *pointers, const int64_t *numbers, void *) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < numbers[3]; ++axis)
    count *= numbers[4 + axis];
  const double *x = static_cast<const double *>(pointers[0]);
  for (double *y = static_cast<double *>(pointers[1]); count-- > 0; ++x, ++y)
    *y = *x * *x * *x;
  return 0;
}

HostFunction half() {
  static HostFunction function =
      host_function("half", [](const std::vector<Tensor> &x) { return x.at(0) * 0.5; }, {.ordered = false});
  return function;
}
CFunction cubed() {
  static CFunction function = c_function(
      "wg_test_cube", cube, {.arguments = {{f64, {dynamic}}}, .result = [](const auto &of) { return of[0]; }});
  return function;
}

Tensor numbers(const Shape &shape, double from = 0.25) {
  return reshape(linspace(from, from + 1.5, shape.numElements(), f64), shape);
}

const FunctionOptions kInterpret{.interpret = true};

void saveStructures(const std::string &path) {
  auto f = function(
      "structures",
      [](const Batch &batch, const Named &named, Mode mode, double factor, const std::string &text,
         const std::optional<Tensor> &maybe) {
        Tensor total = batch.x + factor * batch.y + named.at("a");
        if (mode == Mode::train)
          total = total * 2.0;
        if (maybe)
          total = total + *maybe;
        return Mixed(total, {{text, {total, batch.x}}}, 7, "ok");
      },
      kInterpret);
  Batch batch{numbers({2}), numbers({2})};
  f(batch, {{"a", numbers({2})}}, Mode::train, 0.5, "k", std::nullopt);
  f(batch, {{"a", numbers({2})}}, Mode::evaluate, 0.5, "k", numbers({2}));
  auto open = function("open", [](const Tensor &x, int64_t axis) { return reduce_sum(x * x, axis); }, kInterpret);
  open.trace(TensorSpec{f32, {dynamic, 3}}, 1);
  auto list =
      function("list", [](const std::vector<Tensor> &x) { return std::vector<Tensor>{x[0] + x[1], x[1]}; }, kInterpret);
  list({numbers({2}), numbers({2})});
  save(path, {{"structures", f}, {"open", open}, {"list", list}}, {.metadata = {{"who", "a test"}}});
}

void saveTraining(const std::string &path) {
  Model model;
  optim::Adam adam(0.01);
  auto step = function(
      "step",
      [&](const Tensor &x) {
        GradientTape tape;
        Tensor loss = mean(square(model(x)));
        adam.apply(tape.gradient(loss, model), model);
        return loss;
      },
      kInterpret);
  step(random_normal(random::key(1), {4, 3}));
  save(path, {{"step", step}, {"model", model}, {"adam", adam}}, {.max_shard_bytes = 40});
}

void saveVariables(const std::string &path) {
  Variable w(numbers({2}), "w"), v(numbers({2}, 1), "v");
  Tensor captured = numbers({2}, 3);
  auto both = function(
      "both", [&](const Variable &a, const Variable &b, const Tensor &x) { return a * b + x * w + captured; },
      kInterpret);
  both(v, v, numbers({2}));
  both(w, v, numbers({2}));
  Variable other(numbers({2}), "other");
  both(v, other, numbers({2}));
  auto assign = function(
      "assign",
      [&](const Variable &a, const Tensor &x) {
        a.assign(a * x);
        w.assign_add(x);
        return w * a;
      },
      kInterpret);
  assign(v, numbers({2}));
  auto none = function("none", [&] { return std::pair(w * 2.0, 3); }, kInterpret);
  none();
  save(path, {{"both", both}, {"assign", assign}, {"none", none}, {"w", w}, {"v", v}});
}

void saveControl(const std::string &path) {
  Variable w(Tensor(0.5), "w");
  auto clipped = custom_gradient([](const Tensor &x) { return x * x; },
                                 [](const Tensor &ct, const Tensor &x) { return clamp(ct * x, -1.0, 1.0); },
                                 [](const Tensor &t, const Tensor &x) { return t * x * 3.0; });
  auto f = function(
      "loops",
      [&](const Tensor &x) {
        auto [state, rows] = scan(
            [&](const Tensor &carry, const Tensor &row) {
              Tensor next = carry * w + clipped(row);
              return std::pair(next, next * 2.0);
            },
            Tensor(0.0), x);
        Tensor branch = cond(state > 1.0, [&] { return state * state; }, [&] { return state; });
        Tensor hooked = with_gradient_hook(branch, [](const Tensor &ct) { return ct * 0.5; });
        return hooked + reduce_sum(rows) + checkpoint([](const Tensor &x) { return reduce_sum(sin(exp(x))); })(x);
      },
      kInterpret);
  f(numbers({3}));
  auto turns = function(
      "turns",
      [](const Tensor &x) {
        return while_loop([](const Tensor &s) { return reduce_sum(s) < 5.0; },
                          [](const Tensor &s) { return s * 1.5 + 3.0; }, x);
      },
      kInterpret);
  turns(numbers({2}));
  save(path, {{"loops", f}, {"turns", turns}});
}

void saveEffects(const std::string &path) {
  Generator generator(7);
  HostFunction halves = half();
  CFunction cubes = cubed();
  auto f = function(
      "effects",
      [&](const Tensor &x) {
        print("x {} of {}", x, reduce_sum(x));
        check(x > -100.0, "too small");
        return x + halves({f64, {2}}, {x}) + cubes(x) + generator.normal({2}, 0, 1, f64);
      },
      kInterpret);
  f(numbers({2}));
  save(path, {{"effects", f}, {"generator", generator}});
}

void saveValues(const std::string &path) {
  Variable table(numbers({4, 2}), "table");
  auto rows = function(
      "rows",
      [&](const Tensor &indices) {
        GradientTape tape;
        Tensor loss = reduce_sum(square(gather(table, indices)));
        return std::tuple(tape.gradient(loss, table), Grad::none("because"), loss);
      },
      kInterpret);
  auto [gradient, none, loss] = rows(Tensor({1, 3, 1}));
  data::Dataset data = data::Dataset(arange(20), arange(20)).shuffle(3).batch(4);
  for (auto [x, y] : data)
    break;
  save(path, {{"rows", rows},
              {"gradient", gradient},
              {"number", 42},
              {"ratio", 0.5},
              {"wide", 0.5L},
              {"text", "hello"},
              {"flag", true},
              {"mode", Mode::evaluate},
              {"shape", Shape{2, 3}},
              {"tensor", numbers({2})},
              {"empty", zeros({0, 3}, i32)},
              {"batch", Batch{Tensor(1.0), Tensor(2.0f)}},
              {"list", std::vector<std::pair<int64_t, Tensor>>{{1, Tensor(1)}, {2, Tensor(2)}}},
              {"variables", std::map<std::string, Variable>{{"v", table}}},
              {"data", data}});
}

void saveTapes(const std::string &path) {
  Variable w(numbers({2}), "w");
  auto f = function("f", [&](const Tensor &x) { return std::pair(x * x * w, sin(x)); }, kInterpret);
  auto custom = custom_gradient([](const Tensor &x) { return exp(x); },
                                [](const Tensor &ct, const Tensor &x) { return ct * cos(x); },
                                [](const Tensor &t, const Tensor &x) { return t * cos(x); });
  Tensor x = numbers({2});
  GradientTape outer({.persistent = true});
  outer.watch(x);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  auto [product, sine] = f(x);
  Tensor middle = product + with_gradient_hook(w * custom(x), [](const Tensor &ct) { return ct * 0.5; }) * sine + 0.25;
  save(path, {{"tape", tape}, {"outer", outer}, {"x", x}, {"middle", middle}, {"w", w}, {"f", f}});
}

void saveCompiled(const std::string &path) {
  Variable w(numbers({2}), "w");
  auto f = function("compiled", [&](const Tensor &x) {
    w.assign_add(x);
    return x * w;
  });
  f(numbers({2}));
  save(path, {{"compiled", f}, {"w", w}});
}

// ---- Uses -----------------------------------------------------------------------------------------------------------

/// All that is done with a package; an error ends one thing.
class Use {
public:
  Use(const Saved &saved, const std::string &path, Dice &dice, const std::function<void(const std::string &)> &starts)
      : saved(saved), path(path), dice(dice), starts(starts) {}

  Used all() {
    attempt("summary", [&] { (void)saved.summary(); });
    attempt("variables", [&] {
      variables = saved.named_variables();
      for (const nn::Module::Named &each : variables)
        (void)saved.variable(each.first).value();
    });
    items = {};
    for (const std::string &name : saved.names())
      item(name);
    objects();
    typed();
    tapes();
    if (dice.oneIn(4))
      attempt("save", [&] { save(path, items); });
    return used;
  }

private:
  template <class F> void attempt(const std::string &what, F f) {
    starts(what);
    try {
      f();
    } catch (const Error &error) {
      if (error.kind() == ErrorKind::internal)
        throw;
      ++used.refused;
    } catch (const std::bad_alloc &) { // the documented end where there is no memory
      ++used.refused;
    }
  }

  template <class T> void value(const std::string &name) {
    attempt("value " + name, [&] {
      T value = saved.get<T>(name);
      items.emplace_back(name, value);
      if constexpr (std::same_as<T, Tensor>)
        tensors.push_back(value);
    });
  }

  void item(const std::string &name) {
    size_t refused = used.refused;
    value<Tensor>(name);
    value<int>(name);
    value<bool>(name);
    value<double>(name);
    value<long double>(name);
    value<std::string>(name);
    value<Mode>(name);
    value<Shape>(name);
    value<Batch>(name);
    value<Grad>(name);
    value<std::vector<Tensor>>(name);
    value<std::optional<Tensor>>(name);
    value<std::vector<std::monostate>>(name);
    value<std::vector<std::pair<int64_t, Tensor>>>(name);
    value<std::map<std::string, Variable>>(name);
    attempt("variables " + name, [&] { (void)saved.named_variables(name); });
    attempt("place " + name, [&] {
      data::Dataset data = data::Dataset(arange(20), arange(20)).shuffle(3).batch(4);
      saved.restore(name, data);
      items.emplace_back(name, data);
      for (auto [x, y] : data)
        break;
    });
    attempt("function " + name, [&] {
      std::vector<ConcreteFunction> functions = saved.concrete_functions(name);
      for (size_t i = 0; i < functions.size() && i < 8; ++i)
        function(functions[i]);
    });
    used.refused = refused; // most of these types are another's
  }

  /// Small numbers of a type, a `?` as 0 to 3.
  Tensor argument(TensorType type) {
    for (int64_t &size : type.shape)
      if (size == dynamic)
        size = static_cast<int64_t>(dice.below(4));
    if (type.shape.numElements() > 4096)
      throw std::bad_alloc();
    std::vector<double> elements;
    for (int64_t i = 0; i < type.shape.numElements(); ++i)
      elements.push_back(static_cast<double>(dice.below(7)) * 0.5 - 1);
    return cast(reshape(Tensor::from(elements), type.shape), type.dtype);
  }

  void function(const ConcreteFunction &function) {
    (void)function.signature();
    (void)function.certificate();
    attempt("text", [&] { (void)function.text(Stage::traced); });
    attempt("call", [&] { call(function); });
    if (!dice.oneIn(3))
      return;
    attempt("call_flat", [&] { // whatever it takes, tensors
      std::vector<Tensor> given;
      for (const detail::TreeWord &word : function.state()->words)
        if (word.kind == detail::TreeWord::tensor || word.kind == detail::TreeWord::variable)
          given.push_back(argument(word.type));
      if (given.empty())
        given.resize(dice.below(4), Tensor(1.0));
      (void)function.call_flat(given);
    });
  }

  void call(const ConcreteFunction &function) {
    detail::ConcreteState &concrete = *function.state();
    std::vector<Tensor> given;
    std::vector<Variable> made;
    std::vector<std::pair<bool, size_t>> order;
    std::vector<detail::Source> sources;
    size_t leaf = 0;
    for (const detail::TreeWord &word : concrete.words) {
      if (word.kind == detail::TreeWord::tensor) {
        order.emplace_back(false, given.size());
        given.push_back(argument(word.type));
        sources.emplace_back(given.back());
        ++leaf;
      } else if (word.kind == detail::TreeWord::variable) {
        bool known = word.number < leaf && order[word.number].first && !dice.oneIn(16);
        order.emplace_back(true, made.size());
        int64_t id = leaf < concrete.variablesOf.capturedIds.size() ? concrete.variablesOf.capturedIds[leaf] : -1;
        Variable variable = known ? made[order[word.number].second] : Variable(argument(word.type));
        for (const nn::Module::Named &each : variables)
          if (each.second.state()->id == id)
            variable = each.second;
        made.push_back(variable);
        sources.emplace_back(variable);
        ++leaf;
      }
    }
    std::vector<detail::Arguments::Leaf> leaves;
    for (auto [isVariable, i] : order)
      leaves.push_back({isVariable ? nullptr : &given[i], isVariable ? &made[i] : nullptr});
    Where where = Where::current();
    for (const nn::Module::Named &each : variables)
      sources.emplace_back(each.second);
    auto run = [&] { return detail::callChecked(concrete, leaves, where); };
    (void)run();
    ++used.called;
    auto lossOf = [](const std::vector<Tensor> &results) {
      Tensor loss(0.0);
      for (const Tensor &result : results)
        if (runtime::isFloat(result.dtype()))
          loss = loss + cast(reduce_sum(square(result)), f64);
      return loss;
    };
    attempt("gradient", [&] {
      GradientTape outer, tape;
      for (const Tensor &each : given)
        if (runtime::isFloat(each.dtype()))
          outer.watch(each), tape.watch(each);
      Tensor loss = lossOf(run());
      std::vector<Grad> gradients = tape.gradient(loss, sources);
      ++used.differentiated;
      if (!dice.oneIn(4))
        return;
      starts("second gradient");
      Tensor second(0.0);
      for (const Grad &gradient : gradients)
        if (gradient.has_value())
          second = second + cast(reduce_sum(square(gradient.value())), f64);
      (void)outer.gradient(second, sources);
    });
    if (dice.oneIn(4))
      attempt("tangent", [&] {
        std::vector<Tensor> primals, tangents;
        for (const Tensor &each : given)
          if (runtime::isFloat(each.dtype()))
            primals.push_back(each), tangents.push_back(ones_like(each));
        ForwardAccumulator accumulator(primals, tangents);
        (void)accumulator.jvp(lossOf(run()));
      });
    if (dice.oneIn(8) && made.empty())
      attempt("lanes", [&] {
        (void)vmap([&](const std::vector<Tensor> &lanes) {
          std::vector<detail::Arguments::Leaf> own;
          for (const Tensor &each : lanes)
            own.push_back({&each, nullptr});
          return detail::callChecked(concrete, own, where);
        })(std::vector<Tensor>{stack(given, 0)});
      });
  }

  void objects() {
    if (saved.contains("model") && saved.contains("adam"))
      attempt("restore", [&] {
        Model model;
        optim::Adam adam;
        adam.build(model);
        (void)saved.restore("model", model, dice.oneIn(2));
        (void)saved.restore("adam", adam, dice.oneIn(2));
        items.emplace_back("model", model);
      });
    if (saved.contains("w"))
      attempt("restore w", [&] {
        Variable w(numbers({2}), "w");
        (void)saved.restore("w", w);
      });
  }

  /// Calls by the types that the samples' functions have; a loaded function in another function, too.
  template <class Signature, class... A> void callAs(const std::string &name, const A &...arguments) {
    if (!saved.contains(name))
      return;
    attempt("typed " + name, [&] {
      auto f = saved.function<Signature>(name, Where::current());
      items.emplace_back(name, f);
      (void)f.report();
      (void)f(arguments...);
      ++used.called;
      if (!dice.oneIn(4))
        return;
      starts("inside of another " + name);
      auto outer = wg::function("outer", [&] { return f(arguments...); }, kInterpret);
      (void)outer();
    });
  }
  void typed() {
    Batch batch{numbers({2}), numbers({2})};
    Named named{{"a", numbers({2})}};
    using Structured =
        Mixed(const Batch &, const Named &, Mode, double, const std::string &, const std::optional<Tensor> &);
    callAs<Structured>("structures", batch, named, Mode::train, 0.5, std::string("k"), std::optional<Tensor>());
    callAs<Tensor(const Tensor &, int64_t)>("open", ones({static_cast<int64_t>(dice.below(4)), 3}, f32), int64_t(1));
    callAs<std::vector<Tensor>(const std::vector<Tensor> &)>("list", std::vector{numbers({2}), numbers({2})});
    callAs<Tensor(const Tensor &)>("step", ones({4, 3}, f32));
    for (const char *name : {"loops", "turns", "effects", "compiled"})
      callAs<Tensor(const Tensor &)>(name, numbers({name == std::string("loops") ? 3 : 2}));
    Variable v(numbers({2})), w(numbers({2}));
    callAs<Tensor(const Variable &, const Variable &, const Tensor &)>("both", v, dice.oneIn(2) ? v : w, numbers({2}));
    callAs<Tensor(const Variable &, const Tensor &)>("assign", v, numbers({2}));
    callAs<std::pair<Tensor, int>()>("none");
    callAs<std::tuple<Grad, Grad, Tensor>(const Tensor &)>("rows", Tensor({1, 3, 1}));
    callAs<std::pair<Tensor, Tensor>(const Tensor &)>("f", numbers({2}));
  }

  void tapes() {
    for (const char *name : {"outer", "tape"}) {
      if (!saved.contains(name))
        continue;
      attempt(name, [&] {
        GradientTape tape = saved.tape(name);
        std::vector<detail::Source> sources;
        for (const Tensor &each : tensors)
          sources.emplace_back(each);
        for (const nn::Module::Named &each : variables)
          sources.emplace_back(each.second);
        for (const Tensor &target : tensors)
          attempt(name + std::string(" gradient"), [&] {
            Tensor more = target * 2.0;
            for (const Grad &gradient : tape.gradient(more, sources))
              if (gradient.has_value())
                (void)gradient.value();
            ++used.differentiated;
          });
        attempt("save tape", [&] {
          if (dice.oneIn(4))
            save(path, {{"tape", tape}});
        });
      });
    }
  }

  const Saved &saved;
  const std::string &path;
  Dice &dice;
  const std::function<void(const std::string &)> &starts;
  std::vector<nn::Module::Named> variables;
  std::vector<Tensor> tensors;
  SaveItems items;
  Used used;
};

} // namespace

void makeCallables() {
  half();
  cubed();
  static std::ostringstream nowhere;
  set_print_stream(nowhere);
}

void saveSamples(const std::string &folder) {
  makeCallables();
  int number = 0;
  for (auto *saveSample :
       {saveStructures, saveTraining, saveVariables, saveControl, saveEffects, saveValues, saveTapes, saveCompiled})
    saveSample(folder + "/" + std::to_string(number++));
}

Used useSaved(const Saved &saved, const std::string &path, Dice &dice,
              const std::function<void(const std::string &)> &starts) {
  return Use(saved, path, dice, starts).all();
}

} // namespace wg::tests
