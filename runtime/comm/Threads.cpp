#include "runtime/comm/Threads.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

namespace wg::runtime {

/// Of all groups of one world: one lock, as messages are few and large.
struct ThreadWorld::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::string failure;
};

namespace {

struct Send {
  enum State { waits, copied, taken } state = waits; ///< `copied`: at this moment
};

/// What one rank has sent to another and that one has not taken yet. The memory is the sender's.
struct Message {
  const void *data;
  int64_t bytes;
  Send *of;
};

/// The mailboxes of a group: [from * size + to].
struct Group {
  std::shared_ptr<ThreadWorld::State> world;
  int size;
  std::vector<std::deque<Message>> boxes;
  /// What ranks give each other while they split the group.
  struct Splitting {
    std::vector<std::pair<int32_t, int32_t>> given; ///< color and key
    std::vector<std::shared_ptr<Group>> made;       ///< by rank
    int arrived = 0, left = 0;
  } splitting;
};

struct Comm : wg_comm {
  std::shared_ptr<Group> group;
  std::string said;
  /// Receives of earlier requests from a rank come before those of later ones: so many of it were started.
  std::vector<uint64_t> started, received;
  std::vector<struct Request *> open; ///< in the order in which they were started
};

struct Receive {
  int from;
  void *data;
  int64_t bytes;
  uint64_t number; ///< among those from this rank
  bool done = false;
};
struct Request {
  std::vector<Receive> receives;
  std::deque<std::pair<int, Send>> sends; ///< by rank; messages point at them
};

Comm &of(wg_comm *comm) { return *static_cast<Comm *>(comm); }

int32_t failed(Comm &comm, std::string text) {
  comm.said = std::move(text);
  return 1;
}

int32_t start(wg_comm *self, const wg_comm_part *parts, void **made) {
  Comm &comm = of(self);
  Group &group = *comm.group;
  auto request = std::make_unique<Request>();
  {
    std::lock_guard lock(group.world->mutex);
    if (!group.world->failure.empty())
      return failed(comm, group.world->failure);
    for (int i = 0; i < comm.size; ++i) {
      const wg_comm_part &part = parts[i];
      if (i == comm.rank) {
        if (part.send_bytes && part.receive != part.send)
          std::memmove(part.receive, part.send, static_cast<size_t>(part.send_bytes));
        continue;
      }
      auto at = static_cast<size_t>(i);
      if (part.receive_bytes)
        request->receives.push_back({i, part.receive, part.receive_bytes, comm.started[at]++});
      if (part.send_bytes) {
        request->sends.emplace_back(i, Send());
        group.boxes[static_cast<size_t>(comm.rank * comm.size + i)].push_back(
            {part.send, part.send_bytes, &request->sends.back().second});
      }
    }
  }
  group.world->changed.notify_all();
  comm.open.push_back(request.get());
  *made = request.release();
  return 0;
}

/// Takes what has come; whether all has, and all that was sent is taken. The lock is held, and left while bytes are
/// copied: then `again`, as what came meanwhile told nobody.
int32_t take(Comm &comm, Request &request, std::unique_lock<std::mutex> &lock, bool &all, bool &again) {
  Group &group = *comm.group;
  all = true;
  again = false;
  for (Receive &receive : request.receives) {
    if (receive.done)
      continue;
    auto from = static_cast<size_t>(receive.from);
    std::deque<Message> &box = group.boxes[from * static_cast<size_t>(comm.size) + static_cast<size_t>(comm.rank)];
    if (box.empty() || comm.received[from] != receive.number) {
      all = false;
      continue;
    }
    Message message = box.front();
    if (message.bytes != receive.bytes)
      return failed(comm, "rank " + std::to_string(receive.from) + " sends " + std::to_string(message.bytes) +
                              " bytes where rank " + std::to_string(comm.rank) + " expects " +
                              std::to_string(receive.bytes));
    message.of->state = Send::copied;
    again = true;
    lock.unlock();
    std::memcpy(receive.data, message.data, static_cast<size_t>(message.bytes));
    lock.lock();
    box.pop_front();
    message.of->state = Send::taken;
    ++comm.received[from];
    receive.done = true;
    group.world->changed.notify_all();
  }
  for (const auto &[to, send] : request.sends)
    all &= send.state == Send::taken;
  return 0;
}

/// All requests go on, whichever is waited for: that of another rank may need an earlier one of this.
int32_t progress(Comm &comm, Request &request, std::unique_lock<std::mutex> &lock, bool &all) {
  for (bool more = true; more;) {
    more = false;
    for (Request *each : comm.open) {
      bool done = false, again = false;
      if (int32_t status = take(comm, *each, lock, done, again))
        return status;
      more |= again;
      if (each == &request)
        all = done;
    }
  }
  return 0;
}

/// The request's memory is not touched any more.
void withdraw(Comm &comm, Request *request, std::unique_lock<std::mutex> &lock) {
  for (const auto &[to, send] : request->sends) {
    comm.group->world->changed.wait(lock, [&] { return send.state != Send::copied; });
    std::erase_if(comm.group->boxes[static_cast<size_t>(comm.rank * comm.size + to)],
                  [&](const Message &message) { return message.of == &send; });
  }
  std::erase(comm.open, request);
  delete request;
}

int32_t finish(wg_comm *self, void *given, double seconds, int32_t *done) {
  Comm &comm = of(self);
  auto *request = static_cast<Request *>(given);
  ThreadWorld::State &world = *comm.group->world;
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::min(seconds, 1e8));
  std::unique_lock lock(world.mutex);
  for (bool late = false;; late = late || world.changed.wait_until(lock, end) == std::cv_status::timeout) {
    bool all = false;
    if (int32_t status = progress(comm, *request, lock, all)) {
      withdraw(comm, request, lock);
      return status;
    }
    if (all) {
      *done = 1;
      std::erase(comm.open, request);
      delete request;
      return 0;
    }
    if (!world.failure.empty()) {
      withdraw(comm, request, lock);
      return failed(comm, world.failure);
    }
    if (late || seconds == 0) {
      *done = 0;
      return 0;
    }
  }
}

int32_t pending(wg_comm *self, void *given, int32_t *ranks, int32_t most) {
  Comm &comm = of(self);
  auto *request = static_cast<Request *>(given);
  std::lock_guard lock(comm.group->world->mutex);
  int32_t count = 0;
  auto add = [&](int rank) {
    for (int32_t i = 0; i < count; ++i)
      if (ranks[i] == rank)
        return;
    if (count < most)
      ranks[count++] = rank;
  };
  for (const Receive &receive : request->receives)
    if (!receive.done)
      add(receive.from);
  for (const auto &[to, send] : request->sends)
    if (send.state != Send::taken)
      add(to);
  return count;
}

wg_comm *made(std::shared_ptr<Group> group, int rank);

int32_t split(wg_comm *self, int32_t color, int32_t key, wg_comm **into) {
  Comm &comm = of(self);
  Group &group = *comm.group;
  Group::Splitting &splitting = group.splitting;
  auto rank = static_cast<size_t>(comm.rank);
  std::unique_lock lock(group.world->mutex);
  auto wait = [&](auto holds) {
    group.world->changed.wait(lock, [&] { return holds() || !group.world->failure.empty(); });
    return group.world->failure.empty();
  };
  if (!wait([&] { return splitting.left == 0; })) // those who split it before are through
    return failed(comm, group.world->failure);
  splitting.given.resize(static_cast<size_t>(group.size));
  splitting.made.resize(static_cast<size_t>(group.size));
  splitting.given[rank] = {color, key};
  if (++splitting.arrived == group.size) {
    std::map<int32_t, std::vector<std::pair<int32_t, int32_t>>> colors; // key and rank
    for (int i = 0; i < group.size; ++i)
      colors[splitting.given[static_cast<size_t>(i)].first].emplace_back(splitting.given[static_cast<size_t>(i)].second,
                                                                         i);
    for (auto &[each, members] : colors) {
      auto part = std::make_shared<Group>();
      part->world = group.world;
      part->size = static_cast<int>(members.size());
      part->boxes.resize(members.size() * members.size());
      for (const auto &[order, member] : members)
        splitting.made[static_cast<size_t>(member)] = part;
    }
    splitting.left = group.size;
    group.world->changed.notify_all();
  }
  if (!wait([&] { return splitting.left > 0 && splitting.made[rank]; }))
    return failed(comm, group.world->failure);
  std::vector<std::pair<int32_t, int32_t>> members;
  for (int i = 0; i < group.size; ++i)
    if (splitting.given[static_cast<size_t>(i)].first == color)
      members.emplace_back(splitting.given[static_cast<size_t>(i)].second, i);
  std::sort(members.begin(), members.end());
  auto place = std::find_if(members.begin(), members.end(), [&](const auto &each) { return each.second == comm.rank; });
  *into = color < 0 ? nullptr : made(splitting.made[rank], static_cast<int>(place - members.begin()));
  splitting.made[rank] = nullptr;
  if (--splitting.left == 0) {
    splitting.arrived = 0;
    group.world->changed.notify_all();
  }
  return 0;
}

void release(wg_comm *self) { delete &of(self); }

void fail(wg_comm *self, const char *text) {
  Comm &comm = of(self);
  {
    std::lock_guard lock(comm.group->world->mutex);
    if (comm.group->world->failure.empty())
      comm.group->world->failure = text;
  }
  comm.group->world->changed.notify_all();
}

const char *text(wg_comm *self) { return of(self).said.c_str(); }

wg_comm *made(std::shared_ptr<Group> group, int rank) {
  auto *comm = new Comm{{.version = WG_COMM_VERSION,
                         .rank = rank,
                         .size = group->size,
                         .start = start,
                         .finish = finish,
                         .pending = pending,
                         .sum = nullptr,
                         .split = split,
                         .release = release,
                         .fail = fail,
                         .text = text},
                        group,
                        {},
                        std::vector<uint64_t>(static_cast<size_t>(group->size)),
                        std::vector<uint64_t>(static_cast<size_t>(group->size)),
                        {}};
  return comm;
}

} // namespace

ThreadWorld::ThreadWorld(int size) : state_(std::make_shared<State>()) {
  auto group = std::make_shared<Group>();
  group->world = state_;
  group->size = size;
  group->boxes.resize(static_cast<size_t>(size) * static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank)
    ranks_.push_back(made(group, rank));
}

ThreadWorld::~ThreadWorld() {
  for (wg_comm *rank : ranks_)
    rank->release(rank);
}

wg_comm *ThreadWorld::rank(int rank) { return ranks_[static_cast<size_t>(rank)]; }

std::string ThreadWorld::failure() const {
  std::lock_guard lock(state_->mutex);
  return state_->failure;
}

} // namespace wg::runtime
