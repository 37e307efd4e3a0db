// When is a checkpoint written, by whom, and which older ones may go? What is in it: Save.
#include "wengert/Checkpoint.h"

#include "frontend/ops/Operands.h"
#include "runtime/io/File.h"

#include <wengert/Dist.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <set>
#include <sys/file.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace wg {

using Clock = std::chrono::steady_clock;

static constexpr const char *kEnd = ".wg";
static constexpr int kDigits = 9;
/// What the manager saves beside the items.
static constexpr const char *kSteps = "checkpoint_steps";

[[noreturn]] static void raise(ErrorKind kind, std::string message, std::string remedy, const Where &where) {
  detail::raise({.kind = kind, .op = "checkpoint", .message = std::move(message), .remedy = std::move(remedy)}, where);
}

/// One line about an exception.
static std::string messageOf(const std::exception_ptr &failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error &error) {
    return error.message();
  } catch (const std::exception &error) {
    return error.what();
  }
}

struct CheckpointManager::State {
  /// A snapshot on its way to a file.
  struct Job {
    std::shared_ptr<const detail::Snapshot> snapshot;
    int64_t step;
    Where where;
  };

  State(std::string directory, Items items, CheckpointOptions options, const Where &where);
  State(const State &) = delete;
  State &operator=(const State &) = delete;
  ~State();
  void check(const Where &where) const;
  SaveItems allItems() const;
  std::string nameOf(int64_t step) const;
  std::string pathOf(int64_t step) const { return directory + "/" + nameOf(step); }
  std::vector<int64_t> saved(const Where &where) const;
  int64_t newest(const Where &where);
  int64_t agreed(const Where &where);
  bool isDue();
  void save(const Where &where);
  void write(const Job &job);
  void removeOlder(int64_t step, const Where &where) const;
  void work();
  void wait();

  const std::string directory;
  const Items items;
  const CheckpointOptions options;
  const pid_t owner = ::getpid();
  const bool writes = dist::rank() == 0; ///< of several ranks, which have the same state, one
  Variable counter;                      ///< i64[]: `steps`, when it is saved
  int64_t steps = 0;
  Clock::time_point last = Clock::now(); ///< when a checkpoint was begun, or restored
  std::set<int64_t> damaged;             ///< that were found so; changed while nothing is written, or by the writer
  std::optional<int64_t> whole;          ///< the last that was found so; as `damaged`
  int lock = -1;                         ///< the directory, open and locked

  std::mutex mutex; ///< guards what follows
  std::condition_variable changed;
  std::optional<Job> job; ///< until it is written
  std::exception_ptr failure;
  bool stopping = false;
  std::thread thread; ///< started by the first that is written asynchronously
};

CheckpointManager::State::State(std::string directory, Items items, CheckpointOptions options, const Where &where)
    : directory(std::move(directory)), items(std::move(items)), options(std::move(options)),
      counter(Tensor(int64_t(0)), {.name = kSteps, .trainable = false}, where) {
  const CheckpointOptions &o = this->options;
  if (o.keep < 0 || o.every_steps < 0)
    raise(ErrorKind::value,
          "keep is " + std::to_string(o.keep) + " and every_steps " + std::to_string(o.every_steps) +
              "; both are 0 or more",
          "give 0 for all checkpoints, and for none by steps", where);
  if (!(o.every_seconds >= 0 && std::isfinite(o.every_seconds)))
    raise(ErrorKind::value, "every_seconds is " + std::to_string(o.every_seconds) + ", but must be finite, 0 or more",
          "give seconds, or 0 for no checkpoints by time", where);
  if (o.prefix.empty() || o.prefix[0] == '.' || o.prefix.size() > 200 ||
      o.prefix.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
    raise(ErrorKind::value, "the prefix `" + o.prefix + "` is no beginning of a file's name",
          "give a short word without a slash, which begins with no dot", where);
  if (!writes)
    return;
  std::error_code error;
  std::filesystem::create_directories(this->directory, error);
  if (!error)
    lock = ::open(this->directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0)
    detail::raise(
        runtime::fileError(this->directory, "cannot be used as a directory of checkpoints: " +
                                                (error ? error.message() : std::string(std::strerror(errno)))),
        where);
  // File systems without locks have one manager, we assume.
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(lock);
    raise(ErrorKind::runtime, "another manager, of this process or another, has the directory " + this->directory,
          "end that one, or give each training a directory of its own", where);
  }
}

CheckpointManager::State::~State() {
  if (lock >= 0)
    ::close(lock);
}

/// The thread is the parent's, and what it had locked is locked for ever.
void CheckpointManager::State::check(const Where &where) const {
  detail::refuseTraces("checkpoint", where);
  if (::getpid() != owner)
    raise(ErrorKind::runtime, "the manager was made before this process was forked, and is its parent's",
          "make a manager in the process that trains", where);
}

SaveItems CheckpointManager::State::allItems() const {
  SaveItems all = items();
  all.emplace_back(kSteps, counter);
  return all;
}

std::string CheckpointManager::State::nameOf(int64_t step) const {
  std::string digits = std::to_string(step);
  if (digits.size() < kDigits)
    digits.insert(0, kDigits - digits.size(), '0');
  return options.prefix + "-" + digits + kEnd;
}

/// Files that have the name of a checkpoint; what is no file is none.
std::vector<int64_t> CheckpointManager::State::saved(const Where &where) const {
  std::vector<int64_t> steps;
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    const size_t first = options.prefix.size() + 1;
    int64_t step = -1;
    if (name.size() > first)
      std::from_chars(name.data() + first, name.data() + name.size(), step);
    std::error_code unknown;
    if (step >= 0 && name == nameOf(step) && entries->is_regular_file(unknown))
      steps.push_back(step);
  }
  if (error)
    detail::raise(runtime::fileError(directory, "cannot be listed: " + error.message()), where);
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool CheckpointManager::State::isDue() {
  if (!writes)
    return false;
  if (options.every_steps > 0 && steps % options.every_steps == 0)
    return true;
  if (options.every_seconds <= 0 || std::chrono::duration<double>(Clock::now() - last).count() < options.every_seconds)
    return false;
  std::lock_guard guard(mutex);
  return !job;
}

/// What the writer had to say, once.
void CheckpointManager::State::wait() {
  std::unique_lock guard(mutex);
  changed.wait(guard, [&] { return !job; });
  if (std::exception_ptr error = std::exchange(failure, nullptr))
    std::rethrow_exception(error);
}

void CheckpointManager::State::save(const Where &where) {
  wait();
  for (int64_t step : saved(where))
    if (step > steps && !damaged.contains(step))
      raise(ErrorKind::runtime,
            directory + " holds a checkpoint of step " + std::to_string(step) + ", and this training is at step " +
                std::to_string(steps),
            "call restore() before the first step, or give a training that begins anew a directory of its own", where);
  counter.assign(Located(Tensor(steps), where));
  Job next{detail::takeSnapshot(allItems(), {}, where), steps, where};
  last = Clock::now();
  if (!options.asynchronous)
    return write(next);
  if (!thread.joinable())
    try {
      thread = std::thread([this] { work(); });
    } catch (const std::system_error &error) {
      raise(ErrorKind::runtime, std::string("the thread that writes cannot be started: ") + error.what(),
            "set asynchronous to false", where);
    }
  std::lock_guard guard(mutex);
  job = std::move(next);
  changed.notify_all();
}

/// The new one first, and read again; only then may an older one go. One that should have gone, as its process was
/// killed, goes before.
void CheckpointManager::State::write(const Job &job) {
  const std::string path = pathOf(job.step);
  if (whole)
    removeOlder(*whole, job.where);
  detail::writeSnapshot(path, *job.snapshot, job.where);
  try {
    detail::verifySaved(path, job.where);
  } catch (const Error &error) {
    damaged.insert(job.step);
    whole.reset();
    raise(ErrorKind::io, "what was just written does not read back: " + error.message(), "look after the disk",
          job.where);
  }
  damaged.erase(job.step);
  whole = job.step;
  removeOlder(job.step, job.where);
}

void CheckpointManager::State::removeOlder(int64_t step, const Where &where) const {
  if (options.keep == 0)
    return;
  std::vector<int64_t> older = saved(where);
  std::erase_if(older, [&](int64_t each) { return each >= step; });
  int64_t whole = 1; // the new one
  for (size_t i = older.size(); i-- > 0;) {
    if (!damaged.contains(older[i]) && ++whole <= options.keep)
      continue;
    if (std::error_code error; !std::filesystem::remove(pathOf(older[i]), error) && error)
      detail::raise(runtime::fileError(pathOf(older[i]), "an old checkpoint cannot be removed: " + error.message()),
                    where);
  }
}

void CheckpointManager::State::work() {
  std::unique_lock guard(mutex);
  for (;;) {
    changed.wait(guard, [&] { return stopping || job; });
    if (!job)
      return;
    Job writing = std::move(*job); // `job` stays, so that one waits for it
    guard.unlock();
    std::exception_ptr error;
    try {
      write(writing);
    } catch (...) {
      error = std::current_exception();
    }
    writing.snapshot.reset();
    guard.lock();
    failure = std::move(error);
    job.reset();
    changed.notify_all();
  }
}

CheckpointManager::CheckpointManager(const std::string &directory, SaveItems items, CheckpointOptions options,
                                     Where where)
    : CheckpointManager(directory, [items = std::move(items)] { return items; }, std::move(options), where) {}
CheckpointManager::CheckpointManager(const std::string &directory, Items items, CheckpointOptions options, Where where)
    : state_(std::make_unique<State>(directory, std::move(items), std::move(options), where)) {}

CheckpointManager::~CheckpointManager() {
  if (::getpid() != state_->owner) {
    static_cast<void>(state_.release()); // no thread is there to be joined
    return;
  }
  {
    std::lock_guard guard(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
  }
  if (state_->thread.joinable())
    state_->thread.join();
  if (state_->failure)
    std::cerr << "warning: the last checkpoint is not in " + state_->directory + ": " + messageOf(state_->failure) +
                     "\n";
}

bool CheckpointManager::step(Where where) {
  state_->check(where);
  ++state_->steps;
  {
    std::lock_guard guard(state_->mutex);
    if (std::exception_ptr error = std::exchange(state_->failure, nullptr))
      std::rethrow_exception(error);
  }
  if (!state_->isDue())
    return false;
  state_->save(where);
  return true;
}

void CheckpointManager::save(Where where) {
  state_->check(where);
  if (state_->writes)
    state_->save(where);
}

void CheckpointManager::wait(Where where) {
  state_->check(where);
  state_->wait();
}

/// The newest checkpoint that is whole; -1 if there is none at all.
int64_t CheckpointManager::State::newest(const Where &where) {
  std::vector<int64_t> all = saved(where);
  std::string why;
  for (size_t i = all.size(); i-- > 0;) {
    try {
      detail::verifySaved(pathOf(all[i]), where);
      return all[i];
    } catch (const Error &error) {
      if (error.kind() != ErrorKind::io)
        throw;
      damaged.insert(all[i]);
      std::clog << "warning: a checkpoint is passed over: " + error.message() + "\n";
      why = why.empty() ? error.message() : why;
    }
  }
  if (!all.empty())
    raise(ErrorKind::io,
          "of the " + std::to_string(all.size()) + " checkpoints in " + directory +
              " none is whole; the newest: " + why,
          "begin anew in another directory", where);
  return -1;
}

/// The same checkpoint on all ranks: the first looks which.
int64_t CheckpointManager::State::agreed(const Where &where) {
  if (dist::size() == 1)
    return newest(where);
  constexpr int64_t kFailed = -2;
  int64_t found = kFailed;
  std::exception_ptr failure;
  if (writes)
    try {
      found = newest(where);
    } catch (const Error &) {
      failure = std::current_exception();
    }
  found = dist::broadcast(Located(Tensor(found), where)).item<int64_t>(where);
  if (failure)
    std::rethrow_exception(failure);
  if (found == kFailed)
    raise(ErrorKind::runtime, "rank 0 cannot restore a checkpoint from " + directory, "see what it says", where);
  return found;
}

std::optional<int64_t> CheckpointManager::restore(Where where) {
  State &state = *state_;
  state.check(where);
  state.wait();
  int64_t step = state.agreed(where);
  if (step < 0)
    return {};
  load(state.pathOf(step), state.allItems(), {}, where);
  state.damaged.erase(step);
  state.whole = step;
  state.steps = state.counter.item<int64_t>(where);
  state.last = Clock::now();
  return state.steps;
}

std::vector<int64_t> CheckpointManager::steps_saved(Where where) const { return state_->saved(where); }
int64_t CheckpointManager::steps() const { return state_->steps; }
std::string CheckpointManager::path(int64_t step) const { return state_->pathOf(step); }

} // namespace wg
