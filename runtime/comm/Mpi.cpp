// libwengert-mpi.so: ranks that MPI has started. The one file that knows MPI; it is found when a program calls
// dist::init, so what does not neither links nor needs it.
#include "runtime/DType.h"
#include "runtime/comm/comm.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sched.h>
#include <string>
#include <vector>

namespace {

using wg::runtime::DType;

struct Comm : wg_comm {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string said;
};

/// Once a rank has failed nothing of MPI is called any more but MPI_Abort, at the end: what was sent may wait for
/// memory that is gone.
bool broken = false;

struct Request {
  std::vector<MPI_Request> requests;
  std::vector<int32_t> peers;
  std::vector<int64_t> expected; ///< bytes of a receive, -1 of a send
};

Comm &of(wg_comm *comm) { return *static_cast<Comm *>(comm); }

int32_t failed(Comm &comm, std::string text) {
  comm.said = std::move(text);
  broken = true;
  return 1;
}

std::string textOf(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  return MPI_Error_string(error, text, &length) == MPI_SUCCESS ? std::string(text, static_cast<size_t>(length))
                                                               : "error " + std::to_string(error);
}

constexpr int64_t kMost = int64_t(1) << 30; ///< bytes of one message: MPI counts in int
constexpr int kTag = 1;

int32_t start(wg_comm *self, const wg_comm_part *parts, void **made) {
  Comm &comm = of(self);
  if (broken)
    return failed(comm, comm.said.empty() ? "this rank has failed before" : comm.said);
  auto request = std::make_unique<Request>();
  auto post = [&](int32_t peer, const void *data, int64_t bytes, bool receives) {
    for (int64_t at = 0; at < bytes; at += kMost) {
      auto count = static_cast<int>(std::min(kMost, bytes - at));
      char *from = const_cast<char *>(static_cast<const char *>(data)) + at;
      MPI_Request each = MPI_REQUEST_NULL;
      int error = receives ? MPI_Irecv(from, count, MPI_BYTE, peer, kTag, comm.comm, &each)
                           : MPI_Isend(from, count, MPI_BYTE, peer, kTag, comm.comm, &each);
      if (error != MPI_SUCCESS)
        return error;
      request->requests.push_back(each);
      request->peers.push_back(peer);
      request->expected.push_back(receives ? count : -1);
    }
    return MPI_SUCCESS;
  };
  for (int receives = 1; receives >= 0; --receives)
    for (int32_t far = 0; far < comm.size; ++far) {
      int32_t i = (comm.rank + far) % comm.size; // not all to the same rank at first
      const wg_comm_part &part = parts[i];
      if (i == comm.rank) {
        if (receives && part.send_bytes && part.receive != part.send)
          std::memmove(part.receive, part.send, static_cast<size_t>(part.send_bytes));
      } else if (int error = receives ? post(i, part.receive, part.receive_bytes, true)
                                      : post(i, part.send, part.send_bytes, false);
                 error != MPI_SUCCESS) {
        return failed(comm, "MPI cannot send to rank " + std::to_string(i) + ": " + textOf(error));
      }
    }
  *made = request.release();
  return 0;
}

/// Whether all is done.
int32_t test(Comm &comm, Request &request, int &all) {
  std::vector<MPI_Status> statuses(request.requests.size());
  int error = MPI_Testall(static_cast<int>(request.requests.size()), request.requests.data(), &all, statuses.data());
  if (error == MPI_SUCCESS && !all)
    return 0;
  for (size_t i = 0; i < statuses.size(); ++i) {
    int own = error == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : error, count = 0;
    std::string peer = std::to_string(request.peers[i]);
    if (own == MPI_ERR_TRUNCATE)
      return failed(comm, "rank " + peer + " sends more bytes than the " + std::to_string(request.expected[i]) +
                              " that rank " + std::to_string(comm.rank) + " expects");
    if (own != MPI_SUCCESS && own != MPI_ERR_PENDING)
      return failed(comm, "MPI fails with rank " + peer + ": " + textOf(own));
    if (error == MPI_SUCCESS && request.expected[i] >= 0 &&
        MPI_Get_count(&statuses[i], MPI_BYTE, &count) == MPI_SUCCESS && count != request.expected[i])
      return failed(comm, "rank " + peer + " sends " + std::to_string(count) + " bytes where rank " +
                              std::to_string(comm.rank) + " expects " + std::to_string(request.expected[i]));
  }
  return error == MPI_SUCCESS ? 0 : failed(comm, "MPI fails: " + textOf(error));
}

int32_t finish(wg_comm *self, void *given, double seconds, int32_t *done) {
  Comm &comm = of(self);
  auto *request = static_cast<Request *>(given);
  *done = 0;
  if (broken) { // what has come by now is looked at no more
    delete request;
    return failed(comm, comm.said);
  }
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::min(seconds, 1e8));
  for (int turn = 0;; ++turn) {
    int all = 0;
    if (int32_t status = test(comm, *request, all)) {
      delete request;
      return status;
    }
    if (all) {
      *done = 1;
      delete request;
      return 0;
    }
    if (seconds == 0 || (turn % 64 == 63 && std::chrono::steady_clock::now() > end))
      return 0;
    if (turn > 256) // there may be more ranks than processors
      sched_yield();
  }
}

int32_t pending(wg_comm *, void *given, int32_t *ranks, int32_t most) {
  auto *request = static_cast<Request *>(given);
  int32_t count = 0;
  for (size_t i = 0; i < request->requests.size(); ++i) {
    int flag = 1;
    if (request->requests[i] == MPI_REQUEST_NULL ||
        MPI_Request_get_status(request->requests[i], &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag)
      continue;
    if (count < most && std::find(ranks, ranks + count, request->peers[i]) == ranks + count)
      ranks[count++] = request->peers[i];
  }
  std::sort(ranks, ranks + count);
  return count;
}

int32_t sum(wg_comm *self, const void *x, void *y, int64_t count, int32_t dtype) {
  Comm &comm = of(self);
  if (broken)
    return failed(comm, comm.said);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  switch (static_cast<DType>(dtype)) {
  case DType::f32: type = MPI_FLOAT; break;
  case DType::f64: type = MPI_DOUBLE; break;
  case DType::i64: type = MPI_INT64_T; break;
  case DType::i32: type = MPI_INT32_T; break;
  case DType::u8: type = MPI_UINT8_T; break;
  default: return failed(comm, "MPI has no sum of this dtype here");
  }
  auto bytes = static_cast<int64_t>(wg::runtime::sizeOf(static_cast<DType>(dtype)));
  for (int64_t at = 0; at < count; at += kMost / 8)
    if (int error = MPI_Allreduce(static_cast<const char *>(x) + at * bytes, static_cast<char *>(y) + at * bytes,
                                  static_cast<int>(std::min(kMost / 8, count - at)), type, MPI_SUM, comm.comm);
        error != MPI_SUCCESS)
      return failed(comm, "MPI cannot sum: " + textOf(error));
  return 0;
}

wg_comm *made(MPI_Comm comm);

int32_t split(wg_comm *self, int32_t color, int32_t key, wg_comm **group) {
  Comm &comm = of(self);
  if (broken)
    return failed(comm, comm.said);
  MPI_Comm part = MPI_COMM_NULL;
  if (int error = MPI_Comm_split(comm.comm, color < 0 ? MPI_UNDEFINED : color, key, &part); error != MPI_SUCCESS)
    return failed(comm, "MPI cannot split the ranks: " + textOf(error));
  *group = part == MPI_COMM_NULL ? nullptr : made(part);
  return 0;
}

void release(wg_comm *self) {
  Comm &comm = of(self);
  int over = 0;
  if (!broken && MPI_Finalized(&over) == MPI_SUCCESS && !over)
    MPI_Comm_free(&comm.comm);
  delete &comm;
}

/// The first is why.
void fail(wg_comm *self, const char *text) {
  if (!broken)
    failed(of(self), text);
}
const char *text(wg_comm *self) { return of(self).said.c_str(); }

wg_comm *made(MPI_Comm comm) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  auto *own = new Comm{{.version = WG_COMM_VERSION,
                        .rank = rank,
                        .size = size,
                        .start = start,
                        .finish = finish,
                        .pending = pending,
                        .sum = sum,
                        .split = split,
                        .release = release,
                        .fail = fail,
                        .text = text},
                       comm,
                       {}};
  return own;
}

/// A rank that ends with an error ends the others: they would wait for it.
void atEnd(int status, void *) {
  int over = 0;
  if (MPI_Finalized(&over) != MPI_SUCCESS || over)
    return;
  if (broken || status != 0) {
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, status ? status : 1);
  }
  MPI_Finalize();
}

} // namespace

extern "C" __attribute__((visibility("default"))) int32_t wg_comm_open_mpi(int32_t version, wg_comm **world,
                                                                           char *error, int64_t errorBytes) {
  auto refuse = [&](const std::string &why) {
    std::snprintf(error, static_cast<size_t>(errorBytes), "%s", why.c_str());
    return 1;
  };
  if (version != WG_COMM_VERSION)
    return refuse("libwengert-mpi.so is of another version of Wengert");
  int there = 0;
  MPI_Initialized(&there);
  if (!there) {
    int level = 0;
    setenv("OMPI_MCA_opal_signal", "", /*overwrite=*/0); // what a rank throws is its last word, and not MPI's stack
    if (int status = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level); status != MPI_SUCCESS)
      return refuse("MPI does not start: " + textOf(status));
    on_exit(atEnd, nullptr);
  }
  MPI_Comm all = MPI_COMM_NULL;
  if (int status = MPI_Comm_dup(MPI_COMM_WORLD, &all); status != MPI_SUCCESS)
    return refuse("MPI cannot copy its world: " + textOf(status));
  *world = made(all);
  return 0;
}
