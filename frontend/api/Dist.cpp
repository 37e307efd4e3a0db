// Ranks: who they are, and what they do together as ops (the record `collective`).
#include "frontend/ops/Operands.h"
#include "frontend/staging/Apply.h"
#include "frontend/staging/Shards.h"
#include "runtime/comm/Collectives.h"
#include "runtime/comm/Threads.h"
#include "runtime/io/Digest.h"

#include <wengert/Arrays.h>
#include <wengert/Dist.h>
#include <wengert/Host.h>

#include <dlfcn.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace wg::dist {

using detail::raiseOp;
using runtime::CommGroup;
using runtime::Ranks;

//===- Who they are -----------------------------------------------------------------------------------------------===//

static runtime::CommOptions optionsOf(const Options &options) {
  return {.timeout = options.timeout, .check = options.check, .any_order = options.any_order};
}

/// A number that whoever starts processes has left in the environment; -1 if there is none.
static int64_t numberIn(const char *name) {
  const char *text = std::getenv(name);
  char *end = nullptr;
  long long value = text ? std::strtoll(text, &end, 10) : -1;
  return text && end != text && *end == '\0' ? value : -1;
}

/// The function that opens MPI's ranks; an error that says where it was looked for.
static wg_comm_open findMpi(const Where &where) {
  std::string tried;
  auto open = [&](const std::string &path) -> void * {
    if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) // MPI's own parts look for its symbols
      return library;
    tried += std::string(tried.empty() ? "" : "; ") + dlerror();
    return nullptr;
  };
  void *library = nullptr;
  if (const char *named = std::getenv("WENGERT_MPI_LIBRARY"))
    library = open(named);
  Dl_info info{};
  if (!library && dladdr(reinterpret_cast<void *>(&findMpi), &info) && info.dli_fname) {
    std::string own = info.dli_fname;
    for (const char *place : {"libwengert-mpi.so", "../lib/libwengert-mpi.so"}) // of a library, of a program
      if (!library)
        library = open(own.substr(0, own.rfind('/') + 1) + place);
  }
  if (!library)
    library = open("libwengert-mpi.so");
  if (!library)
    raiseOp("dist::init", "MPI has started this process, and libwengert-mpi.so cannot be loaded: " + tried,
            "install Open MPI (libopenmpi-dev) and build Wengert again, or name the library in WENGERT_MPI_LIBRARY", {},
            where, ErrorKind::io);
  auto found = reinterpret_cast<wg_comm_open>(dlsym(library, WG_COMM_OPEN_MPI));
  if (!found)
    raiseOp("dist::init", "libwengert-mpi.so has no " WG_COMM_OPEN_MPI, "build it with this Wengert", {}, where,
            ErrorKind::io);
  return found;
}

void init(const Options &options, Where where) {
  static std::mutex mutex;
  static bool done = false;
  std::lock_guard lock(mutex);
  if (!(options.timeout > 0))
    raiseOp("dist::init", "a timeout of " + std::to_string(options.timeout) + " s", "give a number above 0", {}, where);
  if (done) {
    runtime::ranks().options = optionsOf(options);
    return;
  }
  bool started = false;
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS"})
    started |= std::getenv(name) != nullptr;
  started |= numberIn("SLURM_NTASKS") > 1 && std::getenv("SLURM_STEP_ID");
  int64_t wanted = numberIn("WORLD_SIZE");
  if (started || wanted > 1) {
    wg_comm *world = nullptr;
    char error[512] = "";
    if (findMpi(where)(WG_COMM_VERSION, &world, error, sizeof error))
      raiseOp("dist::init", error, "", {}, where, ErrorKind::runtime);
    // A launcher that this MPI does not know leaves each process alone, which would train alone.
    for (const char *name : {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
      if (int64_t number = numberIn(name); number > 0 && number != world->size)
        raiseOp("dist::init",
                std::string(name) + " is " + std::to_string(number) + ", and MPI has started " +
                    std::to_string(world->size),
                "start the program by the mpirun of Open MPI, or by srun --mpi=pmix, with as many processes", {},
                where);
    auto made = std::make_unique<Ranks>();
    made->groups.emplace_back(world);
    made->options = optionsOf(options);
    runtime::setProcessRanks(std::move(made));
  } else {
    runtime::ranks().options = optionsOf(options);
  }
  done = true;
}

static CommGroup *find(const Group &group) {
  Ranks &own = runtime::ranks();
  auto number = static_cast<size_t>(group.number());
  return group.number() >= 0 && number < own.groups.size() ? &own.groups[number] : nullptr;
}

static CommGroup &of(const char *op, const Group &group, const Where &where) {
  CommGroup *found = find(group);
  if (!found)
    raiseOp(op, "this rank is not in the group", "call it on the group's ranks alone", {}, where);
  return *found;
}

int Group::rank() const {
  CommGroup *found = find(*this);
  return found ? found->rank() : -1;
}
int Group::size() const {
  CommGroup *found = find(*this);
  return found ? found->size() : 0;
}
int rank() { return Group().rank(); }
int size() { return Group().size(); }
bool started() { return !runtime::isAlone(); }

Group Group::split(int color, int key, Where where) const {
  CommGroup &group = of("dist::split", *this, where);
  // All are there, or an error says who is not: the transport waits without an end.
  if (runtime::Status status =
          group.run({.kind = runtime::Collective::barrier}, nullptr, nullptr, runtime::ranks().options);
      !status.ok())
    detail::raise(status.take(), where);
  wg_comm *made = nullptr;
  if (group.comm()->split(group.comm(), color, key, &made))
    raiseOp("dist::split", group.comm()->text(group.comm()), "", {}, where, ErrorKind::runtime);
  if (!made)
    return Group(-1);
  Ranks &own = runtime::ranks();
  own.groups.emplace_back(made, /*owns=*/true);
  return Group(std::ssize(own.groups) - 1);
}

//===- What they do together --------------------------------------------------------------------------------------===//

/// A rank computes several shards, and the others as many or not.
static void refuseShards(const char *op, const Where &where) {
  if (detail::inShard())
    raiseOp(op, "ranks meet inside of a data parallel step, in which each computes several shards",
            "sum over the shards: dist::all_reduce", {}, where, ErrorKind::unimplemented);
}

static Tensor together(const char *op, const Tensor &x, const char *kind, const Group &group, int root, bool counted,
                       const Where &where) {
  refuseShards(op, where);
  CommGroup &here = of(op, group, where);
  if (root < 0 || root >= here.size())
    raiseOp(op, "there is no rank " + std::to_string(root) + "; there are " + std::to_string(here.size()),
            "name one of them", {}, where);
  auto apply = [&](const Tensor &of) {
    return detail::applyOne(runtime::OpId::collective,
                            runtime::CollectiveAttrs::make(kind, group.number(), root, counted ? here.size() : 0),
                            {&of}, where);
  };
  bool moves = std::string_view(kind) == "all_gather" || std::string_view(kind) == "broadcast";
  if (moves && x.body(where)->type.dtype == boolean)
    return cast(Located(apply(cast(Located(x, where), u8)), where), boolean);
  return apply(x);
}

Tensor all_reduce(const Located &x, Reduction reduction, const Group &group) {
  static constexpr const char *kinds[] = {"all_reduce_sum", "all_reduce_mean", "all_reduce_max"};
  if (const TensorType &type = detail::tensorOf(x).body(x.where())->type;
      reduction == Reduction::mean && !runtime::isFloat(type.dtype))
    raiseOp("all_reduce", "the mean of " + to_string(type) + " is no such tensor", "cast it to a float first", {type},
            x.where(), ErrorKind::type);
  if (detail::inShard() && group.number() == 0)
    return detail::overShards(detail::tensorOf(x), reduction, x.where());
  return together("all_reduce", detail::tensorOf(x), kinds[static_cast<size_t>(reduction)], group, 0, false, x.where());
}

/// The axis, counted from the front; an error if there is none.
static int64_t axisOf(const char *op, const Tensor &x, int64_t axis, const Where &where) {
  int64_t rank = x.body(where)->type.shape.rank();
  if (axis < -rank || axis >= rank)
    raiseOp(op, "axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank), "name one of its axes",
            {x.body()->type}, where);
  return axis < 0 ? axis + rank : axis;
}

/// x with `axis` in front.
static Tensor inFront(const Tensor &x, int64_t axis, const Where &where) {
  return axis == 0 ? x : moveaxis(Located(x, where), axis, 0);
}

Tensor all_gather(const Located &located, int64_t axis, const Group &group) {
  const Where &where = located.where();
  Tensor x = detail::tensorOf(located);
  if (x.body(where)->type.shape.rank() == 0)
    return together("all_gather", x, "all_gather", group, 0, true, where);
  axis = axisOf("all_gather", x, axis, where);
  Tensor all = together("all_gather", inFront(x, axis, where), "all_gather", group, 0, true, where); // [size, n, ...]
  Tensor merged = flatten(Located(all, where), 0, 1);
  return axis == 0 ? merged : moveaxis(Located(merged, where), 0, axis);
}

Tensor reduce_scatter(const Located &located, int64_t axis, const Group &group) {
  const Where &where = located.where();
  Tensor x = detail::tensorOf(located);
  axis = axisOf("reduce_scatter", x, axis, where);
  int64_t ranks = of("reduce_scatter", group, where).size();
  Tensor front = inFront(x, axis, where);
  const Shape shape = front.shape();
  if (shape[0] % ranks != 0)
    raiseOp("reduce_scatter",
            "axis " + std::to_string(axis) + " has " + std::to_string(shape[0]) + " elements, and there are " +
                std::to_string(ranks) + " ranks",
            "pad it to a multiple of their number", {x.body()->type}, where);
  Shape parts{ranks, shape[0] / ranks};
  for (size_t i = 1; i < shape.size(); ++i)
    parts.push_back(shape[i]);
  Tensor y = together("reduce_scatter", reshape(Located(front, where), parts), "reduce_scatter", group, 0, true, where);
  return axis == 0 ? y : moveaxis(Located(y, where), 0, axis);
}

Tensor broadcast(const Located &x, int root, const Group &group) {
  return together("broadcast", detail::tensorOf(x), "broadcast", group, root, false, x.where());
}

/// All ranks of a group come to it; the group's number is an operand.
static const HostFunction &meeting() {
  static const HostFunction function = host_function("dist::barrier", [](const std::vector<Tensor> &given) {
    Ranks &own = runtime::ranks();
    auto number = static_cast<size_t>(given.at(0).item<int64_t>());
    runtime::Status status =
        number < own.groups.size()
            ? own.groups[number].run({.kind = runtime::Collective::barrier}, nullptr, nullptr, own.options)
            : runtime::valueError("this rank has no group " + std::to_string(number));
    if (!status.ok())
      throw Error(status.take());
    return given[0];
  });
  return function;
}

void barrier(const Group &group, Where where) {
  refuseShards("barrier", where);
  of("barrier", group, where);
  meeting()({i64, {}}, {Tensor(group.number())}, where);
}

void broadcast(const std::vector<Variable> &variables, int root, const Group &group, Where where) {
  for (const Variable &variable : variables) {
    Variable each = variable;
    each.assign(Located(broadcast(Located(each.value(where), where), root, group), where));
  }
}

/// Of the value's bytes.
static std::string digestOf(const Variable &variable, const Where &where) {
  runtime::Array array = detail::arrayOf(variable.value(where));
  runtime::Digest digest;
  digest.add(std::span(static_cast<const std::byte *>(array.buffer.data()), array.numBytes()));
  return digest.hex();
}

std::string digest(const std::vector<Variable> &variables, Where where) {
  runtime::Digest whole;
  for (const Variable &variable : variables)
    whole.add(digestOf(variable, where));
  return whole.hex().substr(0, 16);
}

void check_same(const std::vector<Variable> &variables, const Group &group, Where where) {
  CommGroup &here = of("check_same", group, where);
  std::vector<std::string> mine;
  runtime::Digest whole;
  for (const Variable &variable : variables) {
    mine.push_back(digestOf(variable, where));
    whole.add(mine.back());
  }
  auto meet = [&](const std::string &text) {
    std::string all(text.size() * static_cast<size_t>(here.size()), '\0');
    if (runtime::Status status = here.gather(text.data(), all.data(), std::ssize(text), runtime::ranks().options);
        !status.ok())
      detail::raise(status.take(), where);
    std::string differing; // from rank 0
    for (int i = 1; i < here.size(); ++i)
      if (all.compare(static_cast<size_t>(i) * text.size(), text.size(), all, 0, text.size()) != 0)
        differing += (differing.empty() ? "" : ", ") + std::to_string(i);
    return differing;
  };
  std::string count = std::to_string(variables.size());
  if (std::string who = meet(std::string(20 - count.size(), ' ') + count); !who.empty())
    raiseOp("check_same", "ranks " + who + " give another number of variables than rank 0",
            "give the same on all ranks", {}, where, ErrorKind::runtime);
  std::string ranks = meet(whole.hex());
  if (ranks.empty())
    return;
  for (size_t i = 0; i < variables.size(); ++i)
    if (std::string who = meet(mine[i]); !who.empty())
      raiseOp("check_same",
              "ranks " + who + " have other values than rank 0 in variable " +
                  (variables[i].name().empty() ? std::to_string(i) : "'" + variables[i].name() + "'"),
              "broadcast(variables) at the start, and update them by what is the same on all ranks", {}, where,
              ErrorKind::runtime);
}

static void askToEnd(int) { runtime::terminationAsked = 1; }

void catch_termination(Where where) {
  struct sigaction action{};
  action.sa_handler = askToEnd;
  action.sa_flags = SA_RESTART;
  if (sigaction(SIGTERM, &action, nullptr) != 0)
    raiseOp("catch_termination", std::string("SIGTERM cannot be caught: ") + std::strerror(errno), "", {}, where,
            ErrorKind::runtime);
}

bool terminating() {
  Ranks &own = runtime::ranks();
  return own.terminating || (own.groups.front().size() == 1 && runtime::terminationAsked);
}

/// What a rank has thrown, with its number.
static std::exception_ptr ofRank(int rank, std::string &said) {
  std::string prefix = "rank " + std::to_string(rank) + ": ";
  try {
    throw;
  } catch (const Error &error) {
    said = error.message();
    return std::make_exception_ptr(Error({.kind = error.kind(),
                                          .op = error.op(),
                                          .message = prefix + error.message(),
                                          .remedy = error.remedy(),
                                          .operands = error.operands(),
                                          .where = error.where()}));
  } catch (const std::exception &exception) {
    said = exception.what();
  } catch (...) {
    said = "an exception that is no std::exception";
  }
  return std::current_exception();
}

void run(int count, const std::function<void()> &body, const Options &options, Where where) {
  if (count < 1 || count > 1024)
    raiseOp("dist::run", std::to_string(count) + " ranks", "name 1 to 1024", {}, where);
  runtime::ThreadWorld world(count);
  std::mutex mutex;
  std::exception_ptr first;
  auto rank = [&](int number) {
    try {
      Ranks own;
      own.groups.emplace_back(world.rank(number));
      own.options = optionsOf(options);
      runtime::RankScope scope(own);
      body();
    } catch (...) {
      std::string said;
      std::exception_ptr thrown = ofRank(number, said);
      {
        std::lock_guard lock(mutex);
        if (!first)
          first = thrown;
      }
      world.rank(number)->fail(world.rank(number), ("rank " + std::to_string(number) + " has failed: " + said).c_str());
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int i = 0; i < count; ++i)
      threads.emplace_back(rank, i);
  } catch (const std::exception &exception) { // no more threads
    int missing = static_cast<int>(threads.size());
    std::string said = "rank " + std::to_string(missing) + " cannot be started: " + exception.what();
    world.rank(missing)->fail(world.rank(missing), said.c_str());
    std::lock_guard lock(mutex);
    first = std::make_exception_ptr(
        Error({.kind = ErrorKind::runtime, .op = "dist::run", .message = said, .where = runtime::toString(where)}));
  }
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

} // namespace wg::dist
