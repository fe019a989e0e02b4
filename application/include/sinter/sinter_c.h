/* Sinter's C API: all functions of the C++ headers, for C and for any language that calls C.
 *
 *   sinter_error error;
 *   sinter_model* model = NULL;
 *   sinter_session* session = NULL;
 *   if (sinter_model_open("net.sinter", NULL, &model, &error) ||
 *       sinter_session_create(model, NULL, &session, &error) ||
 *       sinter_set(session, "image", SINTER_UINT8, pixels, sizeof pixels, &error) ||
 *       sinter_run(session, &error) ||
 *       sinter_get(session, "probabilities", SINTER_FLOAT32, p, sizeof p, &error))
 *     fprintf(stderr, "%s\n", error.text);
 *   sinter_session_destroy(session);
 *   sinter_model_close(model);
 *
 * Functions that can fail return a sinter_code, SINTER_OK being 0, and write a sentence that names
 * the failed input, step or file to `error`, which may be NULL. Handles are opaque. A result is written only
 * on success.
 *
 * Structures of options begin with their size, so that a program which was compiled with an older header
 * goes on working; initialise them by SINTER_..._INIT. A NULL for options means the defaults.
 *
 * Memory: by default functions allocate what they need. A program without a heap gives memory, whose size
 * sinter_model_memory() and sinter_session_requirements() state exactly; nothing is allocated then.
 *
 * Threads: a model may be used by any number of threads, a session by one at a time. */
#ifndef SINTER_SINTER_C_H_
#define SINTER_SINTER_C_H_

#include <stddef.h>
#include <stdint.h>

#include "sinter/custom_op.h"
#include "sinter/element_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SINTER_SHARED) && defined(__GNUC__)
#define SINTER_API __attribute__((visibility("default")))
#else
#define SINTER_API
#endif

/* Grows when a program that was compiled before would no longer work. */
#define SINTER_ABI_VERSION 1
SINTER_API uint32_t sinter_abi_version(void); /* of the library */
SINTER_API const char* sinter_version(void);  /* "0.1.0" */

/* ---- Errors ---- */

typedef enum sinter_code {
  SINTER_OK = 0,
  SINTER_INVALID_ARGUMENT = 1, /* the caller's mistake: wrong name, shape, type, buffer */
  SINTER_CORRUPT = 2,          /* the model file is damaged or hostile */
  SINTER_UNSUPPORTED = 3,      /* a valid request that this build or kernel cannot serve */
  SINTER_OUT_OF_MEMORY = 4,    /* too little memory was given or is available */
  SINTER_OUT_OF_RANGE = 5,     /* a value found in a run (an index, a length) is outside its domain */
  SINTER_INTERNAL = 6,         /* a bug */
  SINTER_CANCELLED = 7         /* sinter_cancel() has ended the run */
} sinter_code;

#define SINTER_ERROR_TEXT 508
typedef struct sinter_error {
  int32_t code; /* a sinter_code */
  char text[SINTER_ERROR_TEXT];
} sinter_error;

/* ---- Tensors ---- */

#define SINTER_ALIGNMENT 64    /* of memory that the caller gives, in bytes */
#define SINTER_READ_PADDING 64 /* readable bytes behind a bound buffer */

/* An input, an output or a state. */
typedef struct sinter_tensor {
  const char* name;
  int32_t type; /* a sinter_type */
  int32_t rank;
  int64_t dims[SINTER_MAX_RANK]; /* dense, the last axis varies fastest */
  size_t bytes;
  void* data; /* NULL without a session */
} sinter_tensor;
/* Returns the name of an element type, such as "float32"; "?" for a number that is none. Models may have
 * types beyond sinter_type, such as "float8e4m3fn". */
SINTER_API const char* sinter_type_name(int32_t type);

/* ---- Models ---- */

typedef struct sinter_model sinter_model;

typedef struct sinter_open_options {
  size_t size;
  int32_t copy_file;    /* not 0: read the file into memory instead of mapping it */
  int32_t skip_digests; /* not 0: trust the storage; the structure is always verified */
  int32_t stable;       /* not 0: the bytes are in memory that cannot change (flash) */
  int32_t reserved;
  const uint8_t* public_key; /* 32 bytes, or NULL: refuse files not signed with this Ed25519 key */
  void* memory;              /* aligned to SINTER_ALIGNMENT, or NULL: allocate */
  size_t memory_bytes;
  /* The application's own operators (sinter/custom_op.h), which live as long as the model. */
  const sinter_custom_op* const* custom_ops;
  size_t custom_op_count;
} sinter_open_options;
#define SINTER_OPEN_OPTIONS_INIT \
  { sizeof(sinter_open_options), 0, 0, 0, 0, NULL, NULL, 0, NULL, 0 }

/* Maps and verifies a file. */
SINTER_API sinter_code sinter_model_open(const char* path, const sinter_open_options* options,
                                         sinter_model** model, sinter_error* error);
/* Verifies a file in memory, aligned to SINTER_ALIGNMENT, which stays unchanged as long as the model. */
SINTER_API sinter_code sinter_model_open_bytes(const void* file, size_t bytes,
                                               const sinter_open_options* options, sinter_model** model,
                                               sinter_error* error);
/* The bytes of memory that sinter_model_open_bytes() needs for this file. */
SINTER_API sinter_code sinter_model_memory(const void* file, size_t bytes, const sinter_open_options* options,
                                           size_t* needed, sinter_error* error);
/* The bytes of this memory that the model keeps; the rest is free after opening. A multiple of
 * SINTER_ALIGNMENT. */
SINTER_API size_t sinter_model_retained(const sinter_model* model);
/* All bytes of memory that the model has, those free after opening included. */
SINTER_API size_t sinter_model_bytes(const sinter_model* model);
/* The model's sessions and packed weights must be destroyed before. NULL is ignored. */
SINTER_API void sinter_model_close(sinter_model* model);

/* `entry` is the number of a shape set of the model. 0 on success; SINTER_INVALID_ARGUMENT if there is none
 * of that number. */
SINTER_API uint32_t sinter_model_entry_count(const sinter_model* model);
/* The shape that an input is given in. */
typedef struct sinter_shape {
  const char* name;
  const int64_t* dims;
  int32_t rank;
} sinter_shape;
/* Returns the first entry whose inputs of these names have these shapes, whatever its other inputs have; -1
 * if there is none. */
SINTER_API int32_t sinter_model_find_entry(const sinter_model* model, const sinter_shape* shapes,
                                           size_t count);
SINTER_API uint32_t sinter_model_input_count(const sinter_model* model, uint32_t entry);
SINTER_API uint32_t sinter_model_output_count(const sinter_model* model, uint32_t entry);
SINTER_API sinter_code sinter_model_input(const sinter_model* model, uint32_t entry, uint32_t index,
                                          sinter_tensor* input);
SINTER_API sinter_code sinter_model_output(const sinter_model* model, uint32_t entry, uint32_t index,
                                           sinter_tensor* output);
/* How integers of an input or output stand for numbers: q for (q - zero_point) * scale, or for itself where
 * `scale` is 0. */
typedef struct sinter_quantization {
  float scale;
  int32_t zero_point;
} sinter_quantization;
SINTER_API sinter_code sinter_model_input_quantization(const sinter_model* model, uint32_t entry,
                                                       uint32_t index, sinter_quantization* input);
SINTER_API sinter_code sinter_model_output_quantization(const sinter_model* model, uint32_t entry,
                                                        uint32_t index, sinter_quantization* output);
/* Returns the index of an input or output; -1 if there is none of that name. */
SINTER_API int32_t sinter_model_find_input(const sinter_model* model, uint32_t entry, const char* name);
SINTER_API int32_t sinter_model_find_output(const sinter_model* model, uint32_t entry, const char* name);

/* Values that a session keeps from run to run (docs/decoders.md#state). A state has the name of the original
 * model's input; `output` names the output that becomes the state when a run ends. */
typedef struct sinter_state {
  const char* input;
  const char* output;
  int32_t type; /* a sinter_type */
  int32_t rank;
  int64_t dims[SINTER_MAX_RANK];
  size_t bytes;
  int32_t starts_at_zero; /* 0: with numbers of the file */
} sinter_state;
SINTER_API uint32_t sinter_model_state_count(const sinter_model* model, uint32_t entry);
SINTER_API sinter_code sinter_model_state(const sinter_model* model, uint32_t entry, uint32_t index,
                                          sinter_state* state);

/* Plans of the model for different targets. Names are NULL if there is none of that number. */
SINTER_API uint32_t sinter_model_profile_count(const sinter_model* model);
SINTER_API const char* sinter_model_profile_name(const sinter_model* model, uint32_t profile);
SINTER_API const char* sinter_model_profile_target(const sinter_model* model, uint32_t profile);
SINTER_API uint32_t sinter_model_default_profile(const sinter_model* model);
SINTER_API const char* sinter_model_producer(const sinter_model* model);

/* Facts about the model, by their keys in ascending order, in UTF-8. NULL if there is none of that number or
 * key. */
SINTER_API uint32_t sinter_model_metadata_count(const sinter_model* model);
SINTER_API const char* sinter_model_metadata_key(const sinter_model* model, uint32_t index);
SINTER_API const char* sinter_model_metadata_value(const sinter_model* model, uint32_t index);
SINTER_API const char* sinter_model_metadata(const sinter_model* model, const char* key);
/* The class names of an output, one for each of its classes; 0 and NULL if the file has none. */
SINTER_API uint32_t sinter_model_label_count(const sinter_model* model, const char* output);
SINTER_API const char* sinter_model_label(const sinter_model* model, const char* output, uint32_t index);

/* Programs: each entry of a profile, and each body of its control flow. */
SINTER_API uint32_t sinter_model_program_count(const sinter_model* model);
SINTER_API uint32_t sinter_model_entry_program(const sinter_model* model, uint32_t entry, uint32_t profile);
SINTER_API uint32_t sinter_model_step_count(const sinter_model* model, uint32_t program);
SINTER_API const char* sinter_model_step_op(const sinter_model* model, uint32_t program, uint32_t step);
SINTER_API const char* sinter_model_step_name(const sinter_model* model, uint32_t program, uint32_t step);

/* ---- Threads ---- */

typedef struct sinter_pool sinter_pool;

/* `threads` with the caller's, at most 1024; 0: one for each processor that the process may use. Sessions
 * that do not run at the same time may share a pool. NULL without memory, or where the threads cannot be had.
 */
SINTER_API sinter_pool* sinter_pool_create(int32_t threads);
SINTER_API void sinter_pool_destroy(sinter_pool* pool);
SINTER_API int32_t sinter_pool_threads(const sinter_pool* pool);

/* The scheduling of the threads that a pool starts (Linux); the caller's thread keeps its own
 * settings. */
typedef struct sinter_thread_settings {
  size_t size;
  const int32_t* processors; /* the i-th started thread runs on processors[i % processor_count] only */
  size_t processor_count;    /* 0: on any processor */
  int32_t nice;              /* -20 (first) to 19 (last), for the usual policy; 0: as the caller's */
  int32_t realtime;          /* 1 to 99: priority of the policy SCHED_FIFO; 0: the usual policy */
} sinter_thread_settings;
#define SINTER_THREAD_SETTINGS_INIT \
  { sizeof(sinter_thread_settings), NULL, 0, 0, 0 }

/* Creates a pool with settings. Without SINTER_OK *pool is NULL: a setting that is out of range is
 * SINTER_INVALID_ARGUMENT, one that the system refuses SINTER_UNSUPPORTED. */
SINTER_API sinter_code sinter_pool_create_with(int32_t threads, const sinter_thread_settings* settings,
                                               sinter_pool** pool, sinter_error* error);
/* Writes the numbers of the fastest processors that the process may use, at most `count`, and returns how
 * many. */
SINTER_API size_t sinter_fastest_processors(int32_t* processors, size_t count);

/* A pool of the application's own, which sessions copy. `parallel_for` calls task(task_context, begin, end)
 * for all of 0 .. count - 1 in pieces of at most `grain`, on any of its `threads` threads, and returns when
 * all are done. */
typedef void (*sinter_task)(void* task_context, int64_t begin, int64_t end);
typedef struct sinter_own_pool {
  void* context;
  void (*parallel_for)(void* context, sinter_task task, void* task_context, int64_t count, int64_t grain);
  int32_t threads;
} sinter_own_pool;

/* ---- Sessions ---- */

typedef struct sinter_session sinter_session;
typedef struct sinter_packed_weights sinter_packed_weights;

/* Places an input or output in the caller's memory: aligned to SINTER_ALIGNMENT, with SINTER_READ_PADDING
 * readable bytes behind the tensor's. `device`: the name of the backend in whose device memory it is, or
 * NULL: the host's. */
typedef struct sinter_binding {
  const char* name;
  void* data;
  size_t bytes;
  const char* device;
} sinter_binding;

/* A block of a device's memory that the caller owns. */
typedef struct sinter_device_block {
  const char* backend;
  void* data;
  size_t bytes;
} sinter_device_block;

/* Memory in which sessions that never run at once keep the values of a run (sinter/shared_arena.h): at least
 * `shareable` bytes of the largest of them. A run, or creating a session, overwrites the inputs and outputs
 * of the others: write inputs, run and read outputs of one session before those of the next. `memory`:
 * aligned to SINTER_ALIGNMENT, of which SINTER_ARENA_HANDLE bytes are the handle; NULL: allocate `bytes`. */
#define SINTER_ARENA_HANDLE 64
typedef struct sinter_arena sinter_arena;
SINTER_API sinter_code sinter_arena_create(void* memory, size_t bytes, sinter_arena** arena,
                                           sinter_error* error);
/* The sessions that use the arena must be destroyed before. NULL is ignored. */
SINTER_API void sinter_arena_destroy(sinter_arena* arena);

/* A step that another backend computes than the plan or the caller expects. */
typedef struct sinter_fallback {
  uint32_t program;
  uint32_t step;
  const char* expected;
  const char* backend;
  const char* reason;
} sinter_fallback;

/* In the options of packed weights, `entry` of this value means all shape sets. In those of a session, it
 * means that the session has all sets, in memory that serves the largest, and begins with the first;
 * sinter_session_select() goes on with another. Give it packed weights of all sets, or it packs for each. */
#define SINTER_EVERY_ENTRY UINT32_MAX
typedef struct sinter_session_options {
  size_t size;
  const char* const* backends; /* names of the backends to use, in order; NULL: all of this build */
  size_t backend_count;
  sinter_pool* pool;               /* NULL: the caller's thread only */
  const sinter_own_pool* own_pool; /* or this one */
  const char* profile;             /* by name; NULL: the default one */
  const char* backend; /* NULL: as planned; else this one, and the reference kernels for refused steps */
  uint32_t entry;
  int32_t require_planned; /* not 0: refuse a session that has fallbacks */
  const sinter_binding* bindings;
  size_t binding_count;
  const sinter_device_block* devices;
  size_t device_count;
  const sinter_packed_weights* packed_weights; /* of the same model, or NULL: the session packs its own */
  void (*on_fallback)(void* context, const sinter_fallback* fallback);
  void* on_fallback_context;
  void* memory; /* aligned to SINTER_ALIGNMENT, or NULL: allocate */
  size_t memory_bytes;
  sinter_arena* arena; /* shared by sessions that never run at once; NULL: values in the session's memory */
} sinter_session_options;
#define SINTER_SESSION_OPTIONS_INIT                                                                      \
  {                                                                                                      \
    sizeof(sinter_session_options), NULL, 0, NULL, NULL, NULL, NULL, 0, 0, NULL, 0, NULL, 0, NULL, NULL, \
        NULL, NULL, 0, NULL                                                                              \
  }

#define SINTER_MAX_DEVICES 8
typedef struct sinter_device_requirements {
  const char* backend;
  size_t bytes; /* one block, aligned to SINTER_ALIGNMENT: arena and prepared */
  size_t arena;
  size_t prepared;
  size_t staging; /* besides: page-locked memory of the host */
} sinter_device_requirements;

typedef struct sinter_requirements {
  size_t size;  /* set by the caller, to sizeof(sinter_requirements) */
  size_t bytes; /* all of the following, and the handle; without `shareable` if an arena is given */
  size_t control;
  size_t arena;
  size_t prepared;
  size_t packed; /* a part of `prepared`: weights that this session packs */
  uint32_t device_count;
  sinter_device_requirements devices[SINTER_MAX_DEVICES];
  size_t state;     /* a part of `arena`, which persists between runs */
  size_t shareable; /* the rest of `arena`, which matters only during a run */
} sinter_requirements;

/* The exact memory that sinter_session_create() needs with the same options on this machine. */
SINTER_API sinter_code sinter_session_requirements(const sinter_model* model,
                                                   const sinter_session_options* options,
                                                   sinter_requirements* requirements, sinter_error* error);
SINTER_API sinter_code sinter_session_create(const sinter_model* model, const sinter_session_options* options,
                                             sinter_session** session, sinter_error* error);
/* NULL is ignored. */
SINTER_API void sinter_session_destroy(sinter_session* session);
/* Continues in the memory of these options, with a new handle: state and observer are kept, inputs and
 * outputs are not, and the old handle is destroyed. On failure the session is as it was. */
SINTER_API sinter_code sinter_session_move(sinter_session** session, const sinter_session_options* options,
                                           sinter_error* error);

/* Goes on with the first shape set in which the inputs of these names have these shapes, whatever its other
 * inputs have. State stays, inputs have to be set anew, outputs are lost. SINTER_INVALID_ARGUMENT, and
 * nothing has changed, if no shape set of the session has them. */
SINTER_API sinter_code sinter_session_select(sinter_session* session, const sinter_shape* shapes,
                                             size_t count, sinter_error* error);
/* Goes on with a shape set by its number, like sinter_session_select(). SINTER_INVALID_ARGUMENT if the
 * session does not have it. */
SINTER_API sinter_code sinter_session_use_entry(sinter_session* session, uint32_t entry, sinter_error* error);
/* The shape set that the next run computes, which names and indices of a session's functions refer to. */
SINTER_API uint32_t sinter_session_entry(const sinter_session* session);

/* Weights packed once for any number of sessions; the options are those of the sessions. `memory` as for
 * sessions, with the bytes of sinter_packed_requirements(). */
SINTER_API sinter_code sinter_packed_requirements(const sinter_model* model,
                                                  const sinter_session_options* options,
                                                  sinter_requirements* requirements, sinter_error* error);
SINTER_API sinter_code sinter_packed_create(const sinter_model* model, const sinter_session_options* options,
                                            sinter_packed_weights** packed, sinter_error* error);
SINTER_API void sinter_packed_destroy(sinter_packed_weights* packed);
/* Stores the packed weights of this machine in a model file, so that sessions find them there and prepare
 * nothing (sinter/pack_file.h): reads `from` and writes `to`, whole or not at all; they may be the same path.
 * Packs for all shape sets and all backends of the library. `count`, unless NULL: the packings of this
 * machine that are in the file now. */
SINTER_API sinter_code sinter_pack_file(const char* from, const char* to, uint32_t* count,
                                        sinter_error* error);
/* Packs a file without the constants that are packed in it and that no step reads unpacked. The file is for
 * this machine and this build; others are refused. Keep the first file. */
SINTER_API sinter_code sinter_pack_file_packed_only(const char* from, const char* to, uint32_t* count,
                                                    sinter_error* error);

/* Inputs and outputs in place: inputs are written before each run, outputs are valid until the next run or
 * until an input is written. A run does not check that an input was set whose address was given here. */
SINTER_API sinter_code sinter_session_input(const sinter_session* session, const char* name,
                                            sinter_tensor* input, sinter_error* error);
SINTER_API sinter_code sinter_session_output(const sinter_session* session, const char* name,
                                             sinter_tensor* output, sinter_error* error);
SINTER_API sinter_code sinter_session_input_at(const sinter_session* session, uint32_t index,
                                               sinter_tensor* input, sinter_error* error);
SINTER_API sinter_code sinter_session_output_at(const sinter_session* session, uint32_t index,
                                                sinter_tensor* output, sinter_error* error);
/* Returns the entries of an output's axis that the last run used, at most its dim. */
SINTER_API int64_t sinter_session_output_length(const sinter_session* session, const char* name,
                                                int32_t axis);
SINTER_API int64_t sinter_session_output_length_at(const sinter_session* session, uint32_t index,
                                                   int32_t axis);

/* Copy a whole input in and a whole output out. The type and the number of bytes must be the tensor's. */
SINTER_API sinter_code sinter_set(sinter_session* session, const char* name, sinter_type type,
                                  const void* data, size_t bytes, sinter_error* error);
SINTER_API sinter_code sinter_get(const sinter_session* session, const char* name, sinter_type type,
                                  void* data, size_t bytes, sinter_error* error);

/* Bounded axes, in a model that was converted with --dim NAME=MIN..MAX (docs/shapes.md). The dims of inputs
 * and outputs are the maxima; sinter_set() gives an input of these. */

/* The entries that an axis of an input may have. SINTER_INVALID_ARGUMENT if there is none of that number. */
SINTER_API sinter_code sinter_model_input_range(const sinter_model* model, uint32_t entry, uint32_t index,
                                                int32_t axis, int64_t* minimum, int64_t* maximum);
/* Copies an input of this shape in: dense, as many bytes as the shape has. Inputs that share a length are all
 * set before a run. */
SINTER_API sinter_code sinter_set_shaped(sinter_session* session, const char* name, sinter_type type,
                                         const void* data, size_t bytes, const int64_t* dims, int32_t rank,
                                         sinter_error* error);
/* Sets the shape of an input that is written in place: an element is where it is in a tensor of the maxima.
 */
SINTER_API sinter_code sinter_session_set_shape(sinter_session* session, const char* name,
                                                const int64_t* dims, int32_t rank, sinter_error* error);
/* Returns the entries of an input's axis that the next run reads. */
SINTER_API int64_t sinter_session_input_length(const sinter_session* session, const char* name, int32_t axis);
/* Copies the part of an output that the last run used (sinter_session_output_length) to a dense tensor. */
SINTER_API sinter_code sinter_get_used(const sinter_session* session, const char* name, sinter_type type,
                                       void* data, size_t bytes, sinter_error* error);

/* Computes the outputs; returns when they are ready. A run with an input that was never set in its
 * shape set is SINTER_INVALID_ARGUMENT, with its name. A run may overwrite its inputs, so set each before
 * every run. Inputs that are bound, or
 * whose address sinter_session_input() has given, are the caller's care. */
SINTER_API sinter_code sinter_run(sinter_session* session, sinter_error* error);
/* Starts a run on a thread of the session's own, and returns. All other functions of the session but
 * sinter_cancel() and sinter_running() wait for its end, so that sinter_get() gives its outputs.
 * `done`, unless NULL, is called on that thread when the run has ended: `error` has its code, SINTER_OK too.
 * It may read outputs, set inputs and start the next run, and must not destroy or move the session.
 * sinter_session_destroy() cancels the run and waits for it. SINTER_UNSUPPORTED in builds without threads. */
typedef void (*sinter_done)(void* context, sinter_session* session, const sinter_error* error);
SINTER_API sinter_code sinter_start(sinter_session* session, sinter_done done, void* context,
                                    sinter_error* error);
/* Waits for the end of the last run that was started, and of `done`, and returns the run's result. */
SINTER_API sinter_code sinter_finish(sinter_session* session, sinter_error* error);
/* Returns not 0 while a run that was started is in progress. From any thread. */
SINTER_API int32_t sinter_running(const sinter_session* session);
/* Ends the run in progress, from any thread: it returns SINTER_CANCELLED before its next step, or trip of a
 * loop, after at most the time of its longest step. Without a run it does nothing. Afterwards inputs are set
 * anew, outputs are undefined, and so is the state until sinter_reset(). */
SINTER_API void sinter_cancel(sinter_session* session);
/* Do the work of Session::run_async() and wait(); `stream` is a CUstream. */
SINTER_API sinter_code sinter_run_async(sinter_session* session, void* stream, sinter_error* error);
SINTER_API sinter_code sinter_wait(sinter_session* session, sinter_error* error);
/* Sets state back to its initial values. */
SINTER_API void sinter_reset(sinter_session* session);
/* A state in place, by the name of its input, between runs: to save a stream, or to go on from one that was
 * saved. SINTER_UNSUPPORTED if it is in device memory. */
SINTER_API sinter_code sinter_session_state(const sinter_session* session, const char* name,
                                            sinter_tensor* state, sinter_error* error);

SINTER_API uint32_t sinter_session_profile(const sinter_session* session);
SINTER_API uint32_t sinter_session_fallbacks(const sinter_session* session);
/* Returns the backend that computes a step of the entry program. */
SINTER_API const char* sinter_session_step_backend(const sinter_session* session, uint32_t step);

/* Called before and after every step that runs. */
typedef struct sinter_step {
  uint32_t program;
  uint32_t step;
  const char* backend;
  int32_t in_body; /* not 0: the step is in a branch or a loop */
} sinter_step;
typedef struct sinter_observer {
  size_t size;
  void* context;
  void (*before)(void* context, const sinter_step* step);
  void (*after)(void* context, const sinter_step* step);
} sinter_observer;
/* NULL: none. The structure is copied. */
SINTER_API void sinter_session_observe(sinter_session* session, const sinter_observer* observer);

/* The time that a step has taken in the runs since sinter_time_steps(). */
typedef struct sinter_step_time {
  size_t size;          /* set by the caller, to sizeof(sinter_step_time) */
  const char* backend;  /* the backend that computed it; "session" for an If or Loop */
  const char* kernel;   /* the name of its kernel; NULL if the backend has one for the operation */
  uint64_t runs;        /* how often it ran; in the body of a loop: in all trips */
  uint64_t nanoseconds; /* of all runs; those of an If or Loop include its bodies */
  uint64_t least;       /* nanoseconds of the shortest run */
  uint64_t most;
} sinter_step_time;
/* Adds up the time of each step in further runs, from zero. As with an observer every step runs by itself.
 * `memory`: aligned to SINTER_ALIGNMENT, with sinter_time_steps_bytes(), until sinter_time_steps_end(); NULL:
 * allocate. */
SINTER_API size_t sinter_time_steps_bytes(const sinter_session* session);
SINTER_API sinter_code sinter_time_steps(sinter_session* session, void* memory, size_t bytes,
                                         sinter_error* error);
SINTER_API void sinter_time_steps_end(sinter_session* session);
/* The time so far of a step of sinter_session_program(), or of the body of an If or Loop;
 * sinter_model_step_name() has its name. */
SINTER_API sinter_code sinter_session_step_time(const sinter_session* session, uint32_t program,
                                                uint32_t step, sinter_step_time* time, sinter_error* error);
/* Returns the program that the next run computes. */
SINTER_API uint32_t sinter_session_program(const sinter_session* session);

/* ---- Messages ---- */

typedef enum sinter_log_level {
  SINTER_LOG_INFO = 1,   /* what was opened: the plan that runs, the memory that is packed */
  SINTER_LOG_WARNING = 2 /* what makes runs slower than the plan: fallbacks, a plan for another machine */
} sinter_log_level;
typedef void (*sinter_log)(void* context, int32_t level, const char* text);
/* Sends the library's messages to `write`, one sentence a call, on the thread that opens a model or creates a
 * session; none by NULL, which is the default. None come from a run. `write` may be in use on other threads
 * until they return. */
SINTER_API void sinter_set_log(sinter_log write, void* context);

/* Names of the backends of this build, best first; NULL for an index behind the last. */
SINTER_API const char* sinter_backend_name(uint32_t index);

#ifdef __cplusplus
}
#endif

#endif /* SINTER_SINTER_C_H_ */
