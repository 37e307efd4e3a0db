// Checkpoints of a training: written beside it every so many steps or seconds, so that it can be killed at any moment
// and goes on from the last.
#pragma once

#include <wengert/Save.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace wg {

struct CheckpointOptions {
  int64_t keep = 5;         ///< the newest so many stay; 0: all
  int64_t every_steps = 0;  ///< at the multiples of this count of steps; 0: not by steps
  double every_seconds = 0; ///< when the last was begun so many seconds ago; 0: not by time
  bool asynchronous = true; ///< written by a thread while the training goes on
  std::string prefix = "checkpoint";
};

/// Writes checkpoints `checkpoint-000001200.wg` of what a training consists of, named by the count of steps, and finds
/// the last of them again:
///
///     wg::CheckpointManager checkpoints("run", {{"model", model}, {"adam", adam}, {"data", set}},
///                                       {.every_steps = 100});
///     checkpoints.restore();                               // goes on where it was, or begins
///     while (set.epoch() < epochs)
///       for (auto [x, y] : set) {
///         step(x, y);
///         checkpoints.step();
///       }
///     checkpoints.save();
///
/// A checkpoint is a file of wg::save: whole under its name, or not there. It is read again and its digests compared
/// before an older one is removed; files of other names are left alone. What is saved is the state at the call; the
/// arrays are not copied for it: a variable's value never changes, so the next step writes to a buffer of its own.
///
/// Asynchronously one checkpoint is written at a time. One that is due by steps waits for that before it, so a disk
/// that is too slow slows the training down, rather than leaving fewer checkpoints than were asked for; by time none is
/// due meanwhile. What goes wrong is thrown by the next call. One thread at a time may use a manager.
///
/// Of several ranks, which all make a manager and call it alike, rank 0 writes; all restore the checkpoint that rank 0
/// finds, from a directory that all see. As many ranks as there are then go on from it, whatever their number was.
///
/// The directory belongs to one manager at a time, of this process or another: a second is an error. After a fork the
/// manager is the parent's; the child's copy refuses to work and its end does nothing.
class WENGERT_API CheckpointManager {
public:
  using Items = std::function<SaveItems()>;
  /// Makes the directory if it is not there. Optimisers are to be built before (`adam.build(model)`), with what apply
  /// is given: the items are what they list here, and numbers what they are here. Errors: options out of their ranges;
  /// the directory cannot be made, or another manager has it.
  CheckpointManager(const std::string &directory, SaveItems items, CheckpointOptions options = {},
                    Where where = Where::current());
  /// The items are asked for whenever something is saved or restored: for numbers that change, and objects that come.
  CheckpointManager(const std::string &directory, Items items, CheckpointOptions options = {},
                    Where where = Where::current());
  CheckpointManager(const CheckpointManager &) = delete;
  CheckpointManager &operator=(const CheckpointManager &) = delete;
  /// Waits for what is being written. An error that nobody was told is one line on standard error.
  ~CheckpointManager();

  /// Counts a step of the training, and saves if a checkpoint is due: whether it does. Errors: those of save.
  bool step(Where where = Where::current());
  /// Saves a checkpoint of this step; one that is there is replaced. Errors: of a checkpoint that was being written;
  /// what wg::save refuses; the directory holds checkpoints of later steps, which are of another training; a file that
  /// cannot be written, that does not read back, or an old one that cannot be removed. Nothing whole is removed then.
  void save(Where where = Where::current());
  /// Returns when nothing is being written any more. Errors: of what was.
  void wait(Where where = Where::current());
  /// Gives the items the state of the newest checkpoint that is whole, and returns its step; nothing if there is none.
  /// Of each newer one that is damaged there is a warning on standard error. Errors: all are damaged; what wg::load
  /// refuses, a model of another shape for example. Then nothing has changed.
  std::optional<int64_t> restore(Where where = Where::current());

  /// The steps of the checkpoints in the directory, in ascending order.
  std::vector<int64_t> steps_saved(Where where = Where::current()) const;
  /// Steps counted, over all restarts.
  int64_t steps() const;
  /// `DIRECTORY/checkpoint-000001200.wg`
  std::string path(int64_t step) const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace wg
