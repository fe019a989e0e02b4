/* The functions that the Python package needs besides the C API: the commands of the command line, and
 * sessions in few calls. python/sinter_runtime/_native.py, which declares them again, is of the same build;
 * they have no recorded ABI.
 *
 * A text that a function returns is released by sinter_python_free(). */
#ifndef SINTER_PYTHON_H_
#define SINTER_PYTHON_H_

#include "sinter/sinter_c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called once, before the other functions. */
SINTER_API void sinter_python_start(void);
SINTER_API void sinter_python_free(char* text);
/* Returns a text of the C API without characters that a terminal would obey; NULL without memory. */
SINTER_API char* sinter_python_message(const char* text);

/* What a function could not do, as an exception of Python. */
typedef enum sinter_python_failure {
  SINTER_PYTHON_NONE = 0,
  SINTER_PYTHON_USAGE = 1,
  SINTER_PYTHON_DATA = 2,
  SINTER_PYTHON_MODEL_FILE = 3,
  SINTER_PYTHON_FILE = 4,
  SINTER_PYTHON_MEMORY = 5,
  SINTER_PYTHON_STOPPED = 6, /* by the listener */
  SINTER_PYTHON_OTHER = 7
} sinter_python_failure;

/* ---- Commands ---- */

typedef struct sinter_python_progress {
  double fraction;
  const char* stage;
} sinter_python_progress;
/* Takes a report of the thread that called the command, which goes on if the result is SINTER_PYTHON_GO_ON: a
 * number that no callback returns by accident. */
#define SINTER_PYTHON_GO_ON 20807
typedef int32_t (*sinter_python_listener)(const sinter_python_progress* progress);

typedef struct sinter_python_result {
  int32_t failure; /* a sinter_python_failure */
  int32_t exit_code;
  char* json; /* what --json prints */
  char* text; /* what the command prints without it, or the message of the failure */
} sinter_python_result;
/* Runs a command, of which the first word is the name, and prints nothing. */
SINTER_API void sinter_python_call(const char* const* words, size_t count, sinter_python_listener listener,
                                   sinter_python_result* result);
/* Runs a command as a program of its own: prints, and returns the exit code. */
SINTER_API int32_t sinter_python_run_program(const char* const* words, size_t count);
/* Returns the flags of a command as a list in JSON, in the order of --help; NULL without memory. */
SINTER_API char* sinter_python_flags(const char* command);
/* Returns the index of the name that is probably meant; -1 if none is near. */
SINTER_API int32_t sinter_python_nearest_name(const char* const* names, size_t count, const char* wanted);

/* ---- Sessions ---- */

/* The custom operators of libraries, which stay loaded. */
typedef struct sinter_python_operators sinter_python_operators;
/* NULL on failure, with its kind and its message in `result`. */
SINTER_API sinter_python_operators* sinter_python_load_operators(const char* const* libraries, size_t count,
                                                                 sinter_python_result* result);
/* For sinter_open_options. */
SINTER_API const sinter_custom_op* const* sinter_python_operator_list(
    const sinter_python_operators* operators, size_t* count);
SINTER_API void sinter_python_free_operators(sinter_python_operators* operators);

/* Runs of one shape set of a session. Each output has SINTER_MAX_RANK numbers in `planned`, its dims and then
 * 0, and in `used`, which a run writes: the entries of each axis that it used. */
typedef struct sinter_python_run_call {
  sinter_session* session;
  uint32_t output_count;
  int32_t started;  /* not 0: sinter_start() has begun the run, whose end is waited for */
  int32_t all_used; /* a run writes whether `used` is `planned` */
  const int64_t* planned;
  int64_t* used;
  sinter_error error;
} sinter_python_run_call;
SINTER_API sinter_code sinter_python_run(sinter_python_run_call* call);

#ifdef __cplusplus
}
#endif

#endif /* SINTER_PYTHON_H_ */
