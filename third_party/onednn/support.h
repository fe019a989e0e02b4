/* What Sinter adds to oneDNN's archive (scripts/deps.sh): runs without heap, on the threads of another pool.
   C, so that a caller needs neither the library's C++ headers nor exceptions. */
#ifndef SINTER_ONEDNN_SUPPORT_H
#define SINTER_ONEDNN_SUPPORT_H

#include <stddef.h>

#include "oneapi/dnnl/dnnl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pool of threads. `run` calls task(closure, i) for every i from 0 to count - 1, on any threads, and
   returns when all calls have returned. The library divides work into `parts`, whatever the number of
   threads. */
typedef struct {
  void (*run)(void* context, int count, void (*task)(void* closure, int index), void* closure);
  void* context;
  int parts;
  void* adapter[2]; /* private */
} sinter_onednn_threads;

/* A stream that computes on `threads`, which must stay in place until the stream is destroyed. */
dnnl_status_t sinter_onednn_stream_create(dnnl_stream_t* stream, dnnl_engine_t engine,
                                          sinter_onednn_threads* threads);

/* Until sinter_onednn_leave, what the library allocates on this thread comes from these bytes, and from the
   heap where they do not suffice. */
void sinter_onednn_enter(void* memory, size_t bytes);
/* The number of blocks that are still in use, which must be 0. */
size_t sinter_onednn_leave(void);

#ifdef __cplusplus
}
#endif
#endif
