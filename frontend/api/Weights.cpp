// Which tensors are in a weights file, and which variables take them? Those of the same name, or what a mapping makes.
#include "wengert/Weights.h"

#include "frontend/api/WeightNames.h"
#include "frontend/ops/Operands.h"
#include "runtime/io/Shards.h"

#include <limits>
#include <map>
#include <ostream>
#include <set>

namespace wg {

using runtime::Array;
using runtime::StoredTensor;
using runtime::StoredTensors;

void detail::refuseTraces(const char *op, const Where &where) {
  if (level().trace)
    raise({.kind = ErrorKind::runtime,
           .op = op,
           .message = "a traced function cannot read or write files",
           .remedy = "call it outside the function"},
          where);
}

// ---- Writing --------------------------------------------------------------------------------------------------------

static void write(const char *op, const std::string &path, const runtime::NamedArrays &contents,
                  const SaveWeightsOptions &options, const Where &where) {
  if (options.max_shard_bytes < 0)
    detail::raise({.op = op,
                   .message = "max_shard_bytes is " + std::to_string(options.max_shard_bytes),
                   .remedy = "give a number of bytes, or 0 for one file"},
                  where);
  runtime::Together together;
  if (options.over_ranks)
    together = runtime::Together(runtime::ranks().groups.front(), runtime::ranks().options);
  runtime::Status status;
  if (together.size() > 1) {
    std::string all = std::to_string(options.max_shard_bytes) + '\0' + path.substr(path.rfind('/') + 1) + '\0';
    for (const auto &[key, value] : options.metadata)
      all += key + '\0' + value + '\0';
    for (const auto &[name, array] : contents.arrays)
      all += name + '\0' + toString(array.type) + '\0';
    status = together.begin(all, "saves other names, types, metadata or shards");
  }
  if (status.ok())
    status = options.max_shard_bytes == 0 && !options.over_ranks
                 ? runtime::writeSafetensors(path, contents)
                 : runtime::writeShards(path, contents,
                                        options.max_shard_bytes ? static_cast<uint64_t>(options.max_shard_bytes)
                                                                : std::numeric_limits<uint64_t>::max(),
                                        together);
  if (!status.ok())
    detail::raise(status.take(), where);
}

void save_weights(const std::string &path, const std::vector<nn::Module::Named> &variables,
                  const SaveWeightsOptions &options, Where where) {
  detail::refuseTraces("save_weights", where);
  runtime::NamedArrays contents;
  contents.metadata = options.metadata;
  std::set<std::string> names;
  for (const auto &[name, variable] : variables) {
    if (!names.insert(name).second)
      detail::raise({.op = "save_weights",
                     .message = "two variables are named `" + name + "`",
                     .remedy = "give each its own name"},
                    where);
    contents.arrays.emplace_back(name, detail::arrayOf(variable.value(where)));
  }
  write("save_weights", path, contents, options, where);
}

void write_safetensors(const std::string &path, const std::map<std::string, Tensor> &tensors,
                       const SaveWeightsOptions &options, Where where) {
  const char *op = "write_safetensors";
  detail::refuseTraces(op, where);
  runtime::NamedArrays contents;
  contents.metadata = options.metadata;
  for (const auto &[name, tensor] : tensors) {
    tensor.body(where);
    if (tensor.symbolic())
      detail::raiseNoElements(op, tensor, where);
    contents.arrays.emplace_back(name, detail::arrayOf(tensor));
  }
  write(op, path, contents, options, where);
}

// ---- Reading --------------------------------------------------------------------------------------------------------

static StoredTensors open(const char *op, const std::string &path, const Where &where) {
  runtime::Result<StoredTensors> stored =
      detail::orOutOfMemory(op, "the names in " + path, where, [&] { return StoredTensors::open(path); });
  if (!stored.ok())
    detail::raise(stored.take(), where);
  return std::move(*stored);
}

using Rows = std::optional<std::pair<int64_t, int64_t>>;

static Tensor read(const char *op, const StoredTensors &stored, const StoredTensor &tensor, const Where &where,
                   const Rows &rows = {}) {
  runtime::Result<Array> array = detail::orOutOfMemory(op, "`" + tensor.name + "` of " + stored.path(), where, [&] {
    return rows ? stored.readRows(tensor, rows->first, rows->second) : stored.read(tensor);
  });
  if (!array.ok())
    detail::raise(array.take(), where);
  return detail::makeTensor(std::move(*array));
}

Safetensors read_safetensors(const std::string &path, Where where) {
  const char *op = "read_safetensors";
  detail::refuseTraces(op, where);
  StoredTensors stored = open(op, path, where);
  Safetensors contents;
  contents.metadata = stored.metadata();
  for (const StoredTensor &tensor : stored.tensors())
    if (tensor.unread)
      contents.unread.emplace(tensor.name, toString(tensor));
    else
      contents.tensors.emplace(tensor.name, read(op, stored, tensor, where));
  return contents;
}

namespace {

constexpr const char *kLoad = "load_weights";

/// A variable that is asked for, and what it is made of.
struct Plan {
  const std::string &name;
  const Variable &variable;
  TensorType wanted;
  bool kept = false; ///< a rule without names: it keeps its value
  const WeightConversion *how = nullptr;
  std::vector<const StoredTensor *> theirs = {};
  std::string lacks = {}; ///< a name that the file has not
};

/// A tensor, or some of its rows.
using Wanted = std::pair<const StoredTensor *, Rows>;

/// Reads what plans ask for; what several of them do once.
class Reader {
public:
  Reader(const StoredTensors &stored, const std::vector<Plan> &plans, const Where &where)
      : stored_(stored), where_(where) {
    for (const Plan &plan : plans)
      for (const StoredTensor *tensor : plan.theirs)
        ++uses_[of(plan, tensor)];
  }
  Tensor take(const Plan &plan, const StoredTensor *tensor) {
    Wanted wanted = of(plan, tensor);
    auto held = held_.find(wanted);
    Tensor x = held != held_.end() ? held->second : read(kLoad, stored_, *tensor, where_, wanted.second);
    if (--uses_[wanted] > 0)
      held_.emplace(wanted, x);
    else
      held_.erase(wanted);
    return x;
  }
  /// It is not asked for after all.
  void skip(const Plan &plan) {
    for (const StoredTensor *tensor : plan.theirs)
      if (Wanted wanted = of(plan, tensor); --uses_[wanted] <= 0)
        held_.erase(wanted);
  }

private:
  static Wanted of(const Plan &plan, const StoredTensor *tensor) {
    return {tensor, plan.how ? plan.how->rows() : Rows()};
  }
  const StoredTensors &stored_;
  const Where &where_;
  std::map<Wanted, int> uses_;
  std::map<Wanted, Tensor> held_;
};

using ByName = std::map<std::string_view, const StoredTensor *>;

const StoredTensor *findIn(const ByName &tensors, const std::string &name) {
  auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : found->second;
}

/// The first of the rule's names, which `|` separates, that the file has; or else `lacks` is these names.
const StoredTensor *findAny(const ByName &tensors, const WeightRule &rule, std::string_view names,
                            const std::vector<std::string> &stars, std::string &lacks, const Where &where) {
  for (;;) {
    const size_t bar = names.find('|');
    std::optional<std::string> name = detail::fillName(names.substr(0, bar), stars);
    if (!name)
      detail::raise({.op = kLoad,
                     .message = "`" + std::string(names) + "` of the mapping has more stars than `" + rule.ours + "`",
                     .remedy = "give it as many"},
                    where);
    if (const StoredTensor *found = findIn(tensors, *name))
      return found;
    lacks += (lacks.empty() ? "" : "` or `") + *name;
    if (bar == std::string_view::npos)
      return nullptr;
    names.remove_prefix(bar + 1);
  }
}

/// Of which tensors is a variable made, by the first rule for it?
Plan planFor(const std::string &ours, const Variable &variable, const ByName &tensors, const WeightMapping &mapping,
             const Where &where) {
  Plan plan{ours, variable, {variable.dtype(where), variable.shape(where)}};
  auto add = [&](const StoredTensor *found, const std::string &lacks) {
    if (found)
      plan.theirs.push_back(found);
    else if (plan.lacks.empty())
      plan.lacks = lacks;
  };
  for (const WeightRule &rule : mapping.rules) {
    auto stars = detail::matchName(rule.ours, ours);
    if (!stars)
      continue;
    plan.how = &rule.how;
    plan.kept = rule.theirs.list().empty();
    for (const std::string &theirs : rule.theirs.list()) {
      std::string lacks;
      const StoredTensor *found = findAny(tensors, rule, theirs, *stars, lacks, where);
      add(found, lacks);
    }
    return plan;
  }
  add(findIn(tensors, ours), ours);
  return plan;
}

/// x in the dtype, where both are floats or both integers and there is such a conversion.
Tensor converted(const Tensor &x, DType dtype) {
  const DType from = x.dtype();
  const bool integers = runtime::isInteger(from) && runtime::isInteger(dtype),
             floats = runtime::isFloat(from) && (dtype == f32 || dtype == f64);
  if (from == dtype || !(integers || floats))
    return x;
  if (from != bf16 && from != f16)
    return cast(x, dtype);
  Array narrow = detail::arrayOf(x), wide = Array::empty(f32, x.shape());
  std::ranges::transform(narrow.span<uint16_t>(), wide.data<float>(),
                         [&](uint16_t bits) { return runtime::widen(bits, from); });
  return cast(detail::makeTensor(std::move(wide)), dtype);
}

/// What the plan's conversion makes of its tensors; undefined, and the problem in words, where it makes nothing.
Tensor make(const Plan &plan, Reader &reader, bool castIt, std::string &problem, const Where &where) {
  auto fails = [&](const Error &error) {
    problem = error.message();
    for (const StoredTensor *tensor : plan.theirs)
      problem += std::string(tensor == plan.theirs[0] ? ", of `" : ", `") + tensor->name + "` " + toString(*tensor);
    return Tensor();
  };
  try {
    for (const StoredTensor *tensor : plan.theirs)
      if (plan.how)
        plan.how->want_rows(tensor->type);
  } catch (const Error &error) {
    reader.skip(plan);
    return fails(error);
  }
  std::vector<Tensor> theirs;
  for (const StoredTensor *tensor : plan.theirs) {
    Tensor x = reader.take(plan, tensor);
    theirs.push_back(castIt ? converted(x, plan.wanted.dtype) : x);
  }
  try {
    Tensor made = plan.how ? plan.how->of_rows(theirs, plan.wanted) : theirs[0];
    made.body(where);
    return detail::makeTensor(detail::arrayOf(made)); // of its own, also where it is another variable's
  } catch (const Error &error) {
    return fails(error);
  }
}

/// One load: the report grows as the values are made.
class Load {
public:
  Load(const std::string &path, const StoredTensors &stored, const std::vector<Plan> &plans,
       const LoadWeightsOptions &options, const Where &where)
      : path_(path), options_(options), where_(where), reader_(stored, plans, where) {}

  /// The variable's new value; undefined where there is none, which the report says.
  Tensor valueOf(const Plan &plan) {
    if (!plan.lacks.empty())
      return lacking(plan);
    for (const StoredTensor *tensor : plan.theirs)
      if (tensor->unread)
        return unread(plan, *tensor);
    RestoreReport::Mismatch mismatch{.name = plan.name, .program = plan.wanted};
    Tensor value;
    // What is as it is need not be read to see that it does not fit.
    const bool plain = (!plan.how || !*plan.how) && !options_.mapping.cast;
    if (plain && plan.theirs[0]->type != plan.wanted) {
      mismatch.file = plan.theirs[0]->type;
      reader_.skip(plan);
    } else {
      value = make(plan, reader_, options_.mapping.cast, mismatch.found, where_);
      if (value.defined())
        mismatch.file = value.body()->type;
    }
    if (mismatch.file == plan.wanted) {
      report.matched.push_back(plan.name);
      return value;
    }
    if (mismatch.file)
      mismatch.found = toString(*mismatch.file);
    refuse({.op = kLoad,
            .message = "`" + plan.name + "` is " +
                       (mismatch.file ? mismatch.found + (plain ? " in " : " by the mapping of ") + path_
                                      : "nothing by the mapping of " + path_ + ": " + mismatch.found) +
                       ", and " + toString(plan.wanted) + " in the program"});
    report.mismatched.push_back(std::move(mismatch));
    return {};
  }
  RestoreReport report;

private:
  /// Unless part of the weights is enough.
  void refuse(runtime::Failure failure) const {
    if (options_.partial)
      return;
    if (failure.remedy.empty())
      failure.remedy = options_.mapping.rules.empty() ? "load into the model that was saved"
                                                      : "put a rule for it in front of the mapping's";
    detail::raise(std::move(failure), where_);
  }
  Tensor lacking(const Plan &plan) {
    refuse({.kind = ErrorKind::lookup,
            .op = kLoad,
            .message = path_ + " holds no tensor `" + plan.lacks + "`" +
                       (plan.lacks == plan.name ? "" : " for `" + plan.name + "`")});
    report.missing.push_back(plan.name);
    reader_.skip(plan);
    return {};
  }
  Tensor unread(const Plan &plan, const StoredTensor &tensor) {
    refuse({.op = kLoad,
            .message = "`" + tensor.name + "` has dtype " + *tensor.unread + " in " + path_ +
                       "; F64, F32, BF16, F16, I64, I32, U8 and BOOL are read",
            .remedy = "convert it before it is saved"});
    report.mismatched.push_back({.name = plan.name, .program = plan.wanted, .found = toString(tensor)});
    reader_.skip(plan);
    return {};
  }
  const std::string &path_;
  const LoadWeightsOptions &options_;
  const Where &where_;
  Reader reader_;
};

} // namespace

RestoreReport load_weights(const std::string &path, const std::vector<nn::Module::Named> &variables,
                           const LoadWeightsOptions &options, Where where) {
  detail::refuseTraces(kLoad, where);
  StoredTensors stored = open(kLoad, path, where);
  ByName byName;
  for (const StoredTensor &tensor : stored.tensors())
    byName.emplace(tensor.name, &tensor);
  std::vector<Plan> plans;
  std::set<std::string_view> asked;
  for (const auto &[name, variable] : variables) {
    plans.push_back(planFor(name, variable, byName, options.mapping, where));
    for (const StoredTensor *tensor : plans.back().theirs)
      asked.insert(tensor->name);
    detail::currentValue(variable.state(), where); // a parameter of a traced function that has ended is an error
  }
  Load load(path, stored, plans, options, where);
  std::vector<std::pair<std::shared_ptr<detail::VariableState>, Tensor>>
      loaded; // all of it, before the first variable changes
  for (const Plan &plan : plans)
    if (!plan.kept)
      if (Tensor value = load.valueOf(plan); value.defined())
        loaded.emplace_back(plan.variable.state(), std::move(value));
  for (const StoredTensor &tensor : stored.tensors())
    if (!asked.contains(tensor.name))
      load.report.unused.push_back(tensor.name);
  detail::exchangeValues(loaded);
  return std::move(load.report);
}

// ---- Report ---------------------------------------------------------------------------------------------------------

std::string to_string(const RestoreReport &report) {
  const size_t kShown = 10;
  auto list = [kShown](const char *what, const auto &items, auto text) {
    std::string line = std::string("\n  ") + what + ": ";
    for (size_t i = 0; i < std::min(items.size(), kShown); ++i)
      line += (i ? ", " : "") + text(items[i]);
    if (items.size() > kShown)
      line += " and " + std::to_string(items.size() - kShown) + " more";
    return items.empty() ? std::string() : line;
  };
  auto name = [](const std::string &text) { return "`" + text + "`"; };
  size_t all = report.matched.size() + report.missing.size() + report.mismatched.size();
  return std::to_string(report.matched.size()) + " of " + std::to_string(all) + " variables restored" +
         list("not in the file", report.missing, name) +
         list("of another type", report.mismatched,
              [](const RestoreReport::Mismatch &each) {
                return "`" + each.name + "` (" + each.found + " in the file, " + toString(each.program) +
                       " in the program)";
              }) +
         list("in the file, not asked for", report.unused, name);
}

std::ostream &operator<<(std::ostream &out, const RestoreReport &report) { return out << to_string(report); }

} // namespace wg
