// Computations in files, with all that they need: functions with their derivatives, layers, optimisers, generators,
// tapes with what they recorded, places in data sets, values. Weights alone: save_weights, load_weights.
//
//     wg::save("model.wg", {{"step", step}, {"model", model}, {"adam", adam}});
//
//     wg::Saved saved = wg::load("model.wg");                          // in any process, without the code that made it
//     auto step = saved.function<wg::Tensor(const wg::Tensor &, const wg::Tensor &)>("step");
//     step(x, y);                                                      // trains on: the same bits
//
// What is saved is programs as text, arrays as safetensors, and a manifest in JSON: docs/saving.md.
#pragma once

#include <wengert/Function.h>
#include <wengert/Random.h>
#include <wengert/Weights.h>
#include <wengert/data/Dataset.h>

#include <concepts>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace wg {

namespace detail {

/// What a SaveItem holds.
struct SaveContent {
  enum class Kind { value, variables, function, concrete, tape, dataset } kind = Kind::value;
  TreeWriter tree = {};                     ///< value
  std::vector<nn::Module::Named> variables; ///< variables; one with an empty name has the item's
  std::shared_ptr<FunctionState> function;
  std::shared_ptr<ConcreteState> concrete;
  std::shared_ptr<Tape> tape;
  std::shared_ptr<const data::Dataset> dataset;
};

WENGERT_API std::shared_ptr<Tape> stateOf(const GradientTape &tape, const Where &where);

template <class T> SaveContent saveContentOf(const T &object, [[maybe_unused]] const Where &where) {
  SaveContent content;
  auto variables = [&](const std::vector<nn::Module::Named> &named) {
    content.kind = SaveContent::Kind::variables;
    content.variables = named;
  };
  if constexpr (std::derived_from<T, FunctionBase>) {
    content.kind = SaveContent::Kind::function;
    content.function = object.state();
  } else if constexpr (std::same_as<T, ConcreteFunction>) {
    content.kind = SaveContent::Kind::concrete;
    content.concrete = object.state();
  } else if constexpr (std::same_as<T, GradientTape>) {
    content.kind = SaveContent::Kind::tape;
    content.tape = stateOf(object, where);
  } else if constexpr (std::same_as<T, data::Dataset>) {
    content.kind = SaveContent::Kind::dataset;
    content.dataset = std::make_shared<const data::Dataset>(object);
  } else if constexpr (std::same_as<T, Variable>) {
    variables({{"", object}});
  } else if constexpr (std::same_as<T, Generator>) {
    variables({{"", object.state()}});
  } else if constexpr (requires { object.named_state(); }) {
    variables(object.named_state());
  } else if constexpr (requires { object.named_variables(); }) {
    variables(object.named_variables());
  } else if constexpr (std::convertible_to<const T &, std::string>) {
    content.tree(std::string(object));
  } else if constexpr (checkTree<T>()) {
    visit(object, content.tree);
  }
  return content;
}

} // namespace detail

/// One thing that is saved, under a name: a function or a concrete function; a model, an optimiser, a metric, a
/// generator, or whatever else lists its variables; a variable; a tape; a data set, of which its place is saved; a
/// tensor, a number, a string, or a structure of these and of variables. A value is taken as it is here; the state of
/// all others when it is saved.
class WENGERT_API SaveItem {
public:
  template <class T>
  SaveItem(std::string name, const T &object, Where where = Where::current())
      : name(std::move(name)), content(detail::saveContentOf(object, where)), where(where) {}
  SaveItem(const SaveItem &other);
  SaveItem(SaveItem &&other) noexcept;
  SaveItem &operator=(const SaveItem &other);
  SaveItem &operator=(SaveItem &&other) noexcept;
  ~SaveItem();
  std::string name;
  detail::SaveContent content;
  Where where;
};
using SaveItems = std::vector<SaveItem>;

struct SaveOptions {
  /// Arrays are cut into files of at most so many bytes, one array at least in each; 0: not at all.
  uint64_t max_shard_bytes = 0;
  std::map<std::string, std::string> metadata = {}; ///< free text
  /// All ranks of a program call it, with the same items in the same state, and the same options: each writes a part of
  /// the arrays into one directory, which all see (not a `.wg`). It is what one rank would save, in more files, for any
  /// number of ranks to load. That items, options and programs are the same is checked, that values are is not
  /// (`dist::check_same`). What fails on one rank is an error on all, and what was there before stays. Ranks wait for
  /// what others write for `dist::Options::timeout` seconds at most.
  bool over_ranks = false;
};

/// Writes the items to `path`: one file (an uncompressed zip) if it ends in `.wg`, else a directory, which is made if
/// it is not there. All of it or nothing: a reader, also after a crash, finds what was there before or what is saved
/// now. Of a function all concrete functions are saved that were traced until now. Functions keep what they capture and
/// the variables that they name: a variable is saved once, whoever names it. What is saved is one state, also while
/// other threads train. Equal states make equal files.
/// Errors: two items or variables of one name; a function that was never traced; a function that calls a
/// host_function whose name is that of another one as well; a tape of a traced function; the file cannot be written.
WENGERT_API void save(const std::string &path, const SaveItems &items, const SaveOptions &options = {},
                      Where where = Where::current());

class Saved;
namespace detail {
struct SavedState;
class Snapshot;
/// The state of the items at one moment. Copies no array: values of variables are immutable.
WENGERT_API std::shared_ptr<const Snapshot> takeSnapshot(const SaveItems &items, const SaveOptions &options,
                                                         const Where &where);
/// Writes it as `save` does, on any thread.
WENGERT_API void writeSnapshot(const std::string &path, const Snapshot &snapshot, const Where &where);
/// Reads the files of what was saved and compares them with their digests. Errors, of kind io: those of load.
void verifySaved(const std::string &path, const Where &where);

struct SavedValue {
  std::vector<TreeWord> words;
  std::vector<Tensor> tensors;
  std::vector<Variable> variables;
};

/// The prototype of a function's results, read from their words; null where the result is a tensor or nothing.
using MakePrototype = std::shared_ptr<const void> (*)(TreeReader &reader);
/// Gives a function the concrete functions that were saved under its name and return what `prototype` reads.
WENGERT_API void attachSaved(FunctionState &function, const Saved &saved, const std::string &name,
                             MakePrototype prototype, const Where &where);
WENGERT_API FunctionOptions savedOptions(const Saved &saved, const std::string &name, const Where &where);
/// A function of which only its traces are known has no C++ to run.
[[noreturn]] WENGERT_API void raiseNoBody();

template <class Signature> struct LoadedFunction;
template <class R, class... P> struct LoadedFunction<R(P...)> {
  using Result = std::decay_t<R>;
  static std::shared_ptr<const void> prototype(TreeReader &reader) {
    std::shared_ptr<const void> made;
    if constexpr (std::same_as<Result, Tensor>)
      reader.tensor();
    else if constexpr (!std::is_void_v<R>)
      made = std::make_shared<const Result>(readTree<Result>(reader));
    reader.finish();
    return made;
  }
  static Function<R(P...)> make(const Saved &saved, const std::string &name, const Where &where) {
    // Where functions run eagerly this is called, and finds the same traces.
    auto state = std::make_shared<std::shared_ptr<FunctionState>>();
    auto call = [state](P... args) -> R {
      auto none = [](auto &...) -> R { raiseNoBody(); };
      return calledBy<Result, std::decay_t<P>...>(**state, none, {}, args...);
    };
    Function<R(P...)> function(name, std::move(call), savedOptions(saved, name, where), where);
    attachSaved(*function.state(), saved, name, &prototype, where);
    *state = function.state();
    return function;
  }
};
} // namespace detail

/// What was loaded; a handle, copies name the same. The variables of all that it gives out are one set.
class WENGERT_API Saved {
public:
  Saved(const Saved &other);
  Saved(Saved &&other) noexcept;
  Saved &operator=(const Saved &other);
  Saved &operator=(Saved &&other) noexcept;
  ~Saved();

  /// The names of the items, in the order in which they were saved.
  std::vector<std::string> names() const;
  bool contains(const std::string &name) const;
  const std::map<std::string, std::string> &metadata() const;
  /// Items, signatures, variables with their types, files with their digests; `std::cout << saved` prints it.
  std::string summary() const;

  /// The function that was saved under this name, callable with arguments of these types: those of the function that
  /// was saved, or others of the same structure. A call is served by the concrete functions that were saved, with
  /// static arguments equal to theirs; sizes that were `?` may be any. It can be differentiated, to any order, called
  /// in other functions, and saved again.
  /// Errors: no function of the name; none of its concrete functions returns an R; and in a call, arguments that none
  /// of them takes, with a list of what they take.
  template <class Signature>
  Function<Signature> function(const std::string &name, Where where = Where::current()) const {
    return detail::LoadedFunction<Signature>::make(*this, name, where);
  }
  /// Its concrete functions, which take their tensors in order, without structure.
  std::vector<ConcreteFunction> concrete_functions(const std::string &name, Where where = Where::current()) const;

  /// A tensor, number, string or structure, as it was saved. A tensor that was on a tape that was saved is on that tape
  /// again.
  /// Errors: no value of the name; one of another type or structure.
  template <class T = Tensor> T get(const std::string &name, Where where = Where::current()) const {
    if constexpr (!detail::checkTree<T>()) {
      return T();
    } else {
      const detail::SavedValue &value = valueOf(name, where);
      detail::TreeReader reader("'" + name + "'", value.words, &value.tensors, &value.variables, where);
      T tree = detail::readTree<T>(reader);
      reader.finish();
      return tree;
    }
  }
  /// The variable of this full name, `model.hidden.weight`.
  Variable variable(const std::string &name, Where where = Where::current()) const;
  /// All variables, or those of an item under their names in it.
  std::vector<nn::Module::Named> named_variables() const;
  std::vector<nn::Module::Named> named_variables(const std::string &name, Where where = Where::current()) const;

  /// The tape as it was when it was saved: what it recorded, watched and, if it was recording, goes on recording, from
  /// here on, on the thread that called load. It is handed over once.
  GradientTape tape(const std::string &name, Where where = Where::current()) const;
  /// Gives a data set the place that was saved: its next loop goes on there.
  void restore(const std::string &name, const data::Dataset &dataset, Where where = Where::current()) const;
  /// Assigns to the variables of `object` those that were saved for the item, by their names in it. Without
  /// `partial` all must be there, of the same dtype and shape, or nothing is assigned; with it those that fit are
  /// assigned.
  template <class T>
  RestoreReport restore(const std::string &name, const T &object, bool partial = false,
                        Where where = Where::current()) const {
    return restoreVariables(name, SaveItem(name, object, where), partial, where);
  }

  explicit Saved(std::shared_ptr<detail::SavedState> state) : state_(std::move(state)) {}
  const std::shared_ptr<detail::SavedState> &state() const { return state_; }

private:
  const detail::SavedValue &valueOf(const std::string &name, const Where &where) const;
  RestoreReport restoreVariables(const std::string &name, const SaveItem &item, bool partial, const Where &where) const;
  detail::SavedState &self(const Where &where) const;
  std::shared_ptr<detail::SavedState> state_;
};
WENGERT_API std::ostream &operator<<(std::ostream &out, const Saved &saved);

struct LoadOptions {
  /// A tape holds what the functions called on it kept for their gradients, and which values these are may change from
  /// one version of Wengert to the next; such a tape is an error, or its calls are run again. Only for a file whose
  /// author you trust: they take whatever time and memory they take.
  bool rerun_calls = false;
};

/// Reads what `save` wrote. Nothing of it is run. When it is called it can call nothing but its own functions and what
/// it names: host functions and C functions, which are to be made before it is loaded.
///
/// Objects of the program can take over what was saved under their names, instead of variables that are made anew:
/// models, optimisers, generators, variables, data sets. They are assigned the values, and loaded functions read and
/// assign them; functions, tapes and values among `into` are passed over. All that is taken over, or nothing.
/// Errors: not such a file; of a newer version; damaged, with the part that is; an object without a counterpart, or
/// with variables of other names, dtypes or shapes.
WENGERT_API Saved load(const std::string &path, const SaveItems &into = {}, const LoadOptions &options = {},
                       Where where = Where::current());

} // namespace wg
