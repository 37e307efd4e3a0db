// Programs of several ranks: the same program runs in each, and they compute together where it says so. Ranks are
// processes that mpirun or srun has started, or threads of one process.
//
//     int main() {
//       wg::dist::init();                                          // under `mpirun -n 4 program`; else one rank
//       ...
//       wg::Tensor mean = wg::dist::all_reduce(loss, wg::dist::Reduction::mean);
//     }
//
// What ranks do together is ops: eager, traced, compiled, differentiated. All ranks come to them in the same order with
// the same shapes; where kinds, dtypes or numbers of elements differ, each has an error that names who is where. Sums
// run over one fixed tree of ranks, so they have the same bits on every rank and in every run. A thread that a rank of
// `run` starts is no rank; one thread of a process meets the other processes at a time.
#pragma once

#include <wengert/Ops.h>

#include <functional>
#include <string>

namespace wg::dist {

struct Options {
  double timeout = 60; ///< seconds for which a rank waits for others; then an error names those that did not come
  bool check = true;   ///< whether ranks tell each other first what they are at: a message of 48 bytes for each call
  /// Whether sums may be taken in any order that MPI likes, which is faster for large tensors: their bits may then
  /// differ from run to run.
  bool any_order = false;
};

/// The process becomes one of those that MPI has started together (`mpirun`, `srun`); a process that nobody started so
/// stays one rank alone, and needs no MPI. Once, before anything below; a second call changes the options alone.
/// Errors: MPI has started several, and libwengert-mpi.so is not there; `WORLD_SIZE` says another number than MPI.
WENGERT_API void init(const Options &options = {}, Where where = Where::current());

/// The ranks of a group, counted from 0; of all without one.
class WENGERT_API Group {
public:
  Group() = default; ///< all ranks
  int rank() const;  ///< this one's place
  int size() const;
  /// Those that give the same color, by key, then by rank. All of the group call it; with a negative color a rank is in
  /// none, and its group has size 0.
  Group split(int color, int key = 0, Where where = Where::current()) const;
  int64_t number() const { return number_; }

private:
  explicit Group(int64_t number) : number_(number) {}
  int64_t number_ = 0;
};

WENGERT_API int rank();
WENGERT_API int size();
/// Whether this process is one of those that MPI has started, if only one, or this thread one of those of `run`.
WENGERT_API bool started();

enum class Reduction { sum, mean, max };

/// The sum, mean or largest of all ranks' x, element by element, on every rank. x number[...], of one shape
/// on all ranks -> y of the same. Derivative: as of the sum over the ranks of what each computes of its y.
WENGERT_API Tensor all_reduce(const Located &x, Reduction reduction = Reduction::sum, const Group &group = {});
/// x of all ranks, one after the other along an axis: x any[..., n, ...] -> y any[..., size n, ...]; a scalar gives
/// y[size].
WENGERT_API Tensor all_gather(const Located &x, int64_t axis = 0, const Group &group = {});
/// The sum over the ranks of the part of x, along an axis, that has this rank's number: x number[..., size n, ...]
/// -> y number[..., n, ...].
WENGERT_API Tensor reduce_scatter(const Located &x, int64_t axis = 0, const Group &group = {});
/// x of rank `root`, on every rank. Of the others only dtype and shape count.
WENGERT_API Tensor broadcast(const Located &x, int root = 0, const Group &group = {});
/// Returns when all ranks have come to it. In traced functions it has its place in the order of effects.
WENGERT_API void barrier(const Group &group = {}, Where where = Where::current());

/// Variables get the values that they have on rank `root`: `broadcast(parameters(model))`.
WENGERT_API void broadcast(const std::vector<Variable> &variables, int root = 0, const Group &group = {},
                           Where where = Where::current());
/// Errors unless all ranks have the same bits in these variables; it names the ranks that differ, and the first
/// variable that does.
WENGERT_API void check_same(const std::vector<Variable> &variables, const Group &group = {},
                            Where where = Where::current());

/// 16 hexadecimal digits that tell the bits of these variables from others, whatever their names: what ranks and runs
/// may compare.
WENGERT_API std::string digest(const std::vector<Variable> &variables, Where where = Where::current());

/// From here on SIGTERM does not end the process but asks the program to end by itself, as Slurm does some time before
/// it ends a job: `terminating()` says so.
WENGERT_API void catch_termination(Where where = Where::current());
/// Whether a rank has been asked to. Of several ranks all see it after the same call of a data parallel step, so that
/// they write one checkpoint and end together:
///
///     for (auto [x, y] : batches) {
///       step(x, y);
///       checkpoints.step();
///       if (dist::terminating()) {
///         checkpoints.save(), checkpoints.wait();
///         return 143;
///       }
///     }
WENGERT_API bool terminating();

/// Runs `body` on `ranks` threads at once, each a rank: what it makes belongs to it. The first that throws ends the
/// others where they wait, and its error is thrown, with its rank. For tests, and where one process is enough.
WENGERT_API void run(int ranks, const std::function<void()> &body, const Options &options = {},
                     Where where = Where::current());

} // namespace wg::dist
