/* How ranks reach each other: the table that a transport fills, which is MPI (libwengert-mpi.so) or the threads of one
 * process (Threads.h). What ranks compute together, and in which order sums are taken, is written once above it
 * (Collectives.h), so that every transport gives the same bits.
 *
 * One thread of a rank calls the functions of a group at a time. */
#ifndef WENGERT_RUNTIME_COMM_H
#define WENGERT_RUNTIME_COMM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this table; another one is not to be used. */
#define WG_COMM_VERSION 1

typedef struct wg_comm wg_comm;

/* What goes to one rank and comes from it. The rank there says the same of this one; of 0 bytes nothing is sent. */
typedef struct {
  const void *send;
  int64_t send_bytes;
  void *receive;
  int64_t receive_bytes;
} wg_comm_part;

/* A group of ranks, as one of them has it. Functions return 0, or 1: text() says why, and the group is of no use any
 * more. */
struct wg_comm {
  int32_t version, rank, size;
  /* parts[i] of rank i, this one included, whose bytes are copied. The memory is the transport's until it is done;
   * started exchanges are met in their order by the other ranks' exchanges. */
  int32_t (*start)(wg_comm *, const wg_comm_part *parts, void **request);
  /* Waits for it, for so many seconds at most, while all other exchanges go on; 0 asks only. Once *done is set, and
   * after a failure, the request is gone and its memory is not touched any more: who does not want to wait longer fails
   * the group and calls it again. */
  int32_t (*finish)(wg_comm *, void *request, double seconds, int32_t *done);
  /* The ranks that a request waits for, `most` of them at most; how many were written. */
  int32_t (*pending)(wg_comm *, void *request, int32_t *ranks, int32_t most);
  /* y = the sum of all x, in any order, now. dtype as DType.h numbers it. Null: there is none. */
  int32_t (*sum)(wg_comm *, const void *x, void *y, int64_t count, int32_t dtype);
  /* The group of those that give the same color, by key, then by rank; null for a negative color. All call it. */
  int32_t (*split)(wg_comm *, int32_t color, int32_t key, wg_comm **group);
  void (*release)(wg_comm *);
  /* This rank cannot go on: the others are told, at once or when they wait for it. */
  void (*fail)(wg_comm *, const char *text);
  const char *(*text)(wg_comm *);
};

/* What libwengert-mpi.so defines: all ranks that MPI has started. Not 0: `error` says why not. */
#define WG_COMM_OPEN_MPI "wg_comm_open_mpi"
typedef int32_t (*wg_comm_open)(int32_t version, wg_comm **world, char *error, int64_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif
