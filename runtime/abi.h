/* The contract between compiled code and whoever calls it: the runtime, or a C program with an ahead-of-time object.
 *
 * An entry is a function
 *
 *     int32_t f(void *const *args, const int64_t *sizes, void *workspace);
 *
 * args       One pointer for each input, then one for each result that replaces no input, in the order of the
 *            function's signature. A result that replaces an input (a variable that is updated) is written over that
 *            input. A tensor is row-major and contiguous, its elements as DType.h says (bool: one byte, 0 or 1),
 *            aligned to its element size; 64 bytes are faster. A tensor without elements may have any pointer. A
 *            result's memory is given by the caller. The memory of two pointers is disjoint.
 * sizes      The sizes that the entry was compiled for any of, in the order of its signature. An entry of static sizes,
 *            as all are today, does not read it: it may be null.
 * workspace  As many bytes as the entry's record says for these sizes (in an ahead-of-time object: what
 *            f_workspace_bytes(sizes) returns, -1 if they are beyond 2^56; F_WORKSPACE_BYTES), aligned to 64, of any
 *            contents. The first WG_WORKSPACE_HEADER bytes are a wg_workspace_header; the rest is the entry's
 *            own. A workspace serves one call at a time; calls on different workspaces run at once without a lock.
 * returns    0, or 1 + an index into the entry's table of located errors: text, and the user's file and line. After
 *            an error the memory of results that replace no input holds unspecified values; inputs, those that are
 *            updated too, are as they were.
 *
 * An entry allocates nothing, takes no lock, keeps no state and raises no signal. It calls libm, memcpy, memset and
 * memmove, routines (wg_routine below), and, in code that the runtime compiled for itself, wg_parallel_for.
 */
#ifndef WENGERT_RUNTIME_ABI_H
#define WENGERT_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this contract; code for another is not to be called. 1: without sizes. */
#define WG_ABI_VERSION 2

typedef int32_t (*wg_entry)(void *const *args, const int64_t *sizes, void *workspace);
typedef int64_t (*wg_workspace_bytes)(const int64_t *sizes);

#define WG_WORKSPACE_HEADER 64

/* The start of a workspace. */
typedef struct {
  int64_t fault; /* set before an error is returned: the first value for a {} in its text, say the index out of range;
                    values for further ones follow it */
} wg_workspace_header;

/* body(context, 0) .. body(context, count - 1) on the runtime's threads, each once; returns when all have. The bits
 * of the result must not depend on who runs which. */
void wg_parallel_for(int64_t count, void (*body)(void *context, int64_t i), void *context);

/* A routine: what an entry calls for an op whose work is no loop nest of its own, such as a triangular solve. The entry
 * names it by its symbol (wg_triangular_solve_f64, ...). The runtime has them all in its table (runtime/External.h);
 * an ahead-of-time object that calls one says so in its header, and is linked with libwengert_rt.a.
 *
 * pointers   Of the op's operands, then of its results, as in args above; but a result may have the pointer of an
 *            operand of its type that the op says it overwrites.
 * numbers    Sizes and attributes, in the routine's own order.
 * scratch    As many bytes as the op asks for, aligned to 64, of any contents.
 * returns    0, or the number of an error of the routine's own, from 1 on.
 *
 * It allocates nothing, takes no lock, keeps no state and starts no threads. */
typedef int32_t (*wg_routine)(void *const *pointers, const int64_t *numbers, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
