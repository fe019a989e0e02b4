/* classify_c: runs a digits model on one image and prints the class, in C and without a heap of its own.
 *
 *     classify_c MODEL.sinter
 *
 * The file, the model and the session are in one static arena. A microcontroller's program is the same but for
 * read_file(): its model is in flash. */
#include <stdio.h>
#include <string.h>

#include "sinter/sinter_c.h"

#define FILE_BYTES (1 << 20)

static _Alignas(SINTER_ALIGNMENT) unsigned char file[FILE_BYTES];
static _Alignas(SINTER_ALIGNMENT) unsigned char arena[ARENA_BYTES];

/* A two, in sixteenths of black. */
static const float kImage[64] = {
    0, 2, 15, 16, 12, 0,  0, 0, /**/
    0, 8, 11, 8,  16, 0,  0, 0, /**/
    0, 3, 1,  7,  13, 0,  0, 0, /**/
    0, 0, 0,  10, 8,  0,  0, 0, /**/
    0, 0, 0,  15, 5,  0,  0, 0, /**/
    0, 0, 7,  15, 0,  0,  0, 0, /**/
    0, 0, 14, 11, 6,  5,  2, 0, /**/
    0, 1, 16, 16, 16, 16, 9, 0, /**/
};

/* The bytes read, 0 on failure. */
static size_t read_file(const char* path) {
  FILE* stream = fopen(path, "rb");
  size_t bytes;
  if (stream == NULL) return 0;
  bytes = fread(file, 1, sizeof file, stream);
  fclose(stream);
  return bytes < sizeof file ? bytes : 0;
}

static int fail(const char* path, const sinter_error* error) {
  fprintf(stderr, "%s: %s\n", path, error->text);
  return error->code == SINTER_OUT_OF_MEMORY ? 3 : 1;
}

int main(int argc, char** argv) {
  sinter_open_options open = SINTER_OPEN_OPTIONS_INIT;
  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  sinter_error error;
  sinter_model* model = NULL;
  sinter_session* session = NULL;
  float probabilities[10];
  size_t bytes, kept;
  int best = 0, i;

  if (argc != 2) {
    fprintf(stderr, "usage: classify_c MODEL.sinter\n");
    return 2;
  }
  bytes = read_file(argv[1]);
  if (bytes == 0) {
    fprintf(stderr, "%s: cannot be read, or has %d bytes or more\n", argv[1], FILE_BYTES);
    return 1;
  }
  open.memory = arena;
  open.memory_bytes = sizeof arena;
  open.stable = 1; /* nothing else writes to it */
  if (sinter_model_open_bytes(file, bytes, &open, &model, &error)) return fail(argv[1], &error);
  kept = sinter_model_retained(model);
  options.memory = arena + kept;
  options.memory_bytes = sizeof arena - kept;
  if (sinter_session_create(model, &options, &session, &error) ||
      sinter_set(session, "image", SINTER_FLOAT32, kImage, sizeof kImage, &error) ||
      sinter_run(session, &error) ||
      sinter_get(session, "probabilities", SINTER_FLOAT32, probabilities, sizeof probabilities, &error))
    return fail(argv[1], &error);
  for (i = 1; i < 10; ++i)
    if (probabilities[i] > probabilities[best]) best = i;
  printf("class %d, probability %.4f\n", best, probabilities[best]);
  sinter_session_destroy(session);
  sinter_model_close(model);
  return 0;
}
