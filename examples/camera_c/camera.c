/* camera_c: classifies frames of a camera, in C, with all memory static.
 *
 *     camera_c MODEL.sinter FRAME.pgm...
 *
 * The model takes bytes (convert --input-type uint8), so that a frame goes from the camera to the network as
 * it is: it is read into the input's own memory. The frames stand for a camera: binary grey pictures (PGM) of
 * the model's size. */
#include <stdio.h>
#include <string.h>

#include "sinter/sinter_c.h"

#define FILE_BYTES (1 << 20)
#define CLASSES 64

static _Alignas(SINTER_ALIGNMENT) unsigned char file[FILE_BYTES];
static _Alignas(SINTER_ALIGNMENT) unsigned char memory[MEMORY_BYTES];

/* The bytes read, 0 on failure. */
static size_t read_file(const char* path) {
  FILE* stream = fopen(path, "rb");
  size_t bytes;
  if (stream == NULL) return 0;
  bytes = fread(file, 1, sizeof file, stream);
  fclose(stream);
  return bytes < sizeof file ? bytes : 0;
}

/* Reads a frame into the input. NULL, or what is wrong with it. */
static const char* capture(const char* path, const sinter_tensor* input) {
  FILE* stream = fopen(path, "rb");
  long width = 0, height = 0, white = 0;
  size_t bytes;
  if (stream == NULL) return "cannot be opened";
  if (fscanf(stream, "P5 %ld %ld %ld", &width, &height, &white) != 3 || fgetc(stream) == EOF ||
      white != 255) {
    fclose(stream);
    return "is not a binary PGM of 8 bits";
  }
  if (width <= 0 || height <= 0 || height > (long)input->bytes || width != (long)input->bytes / height ||
      width * height != (long)input->bytes) {
    fclose(stream);
    return "does not have the model's size";
  }
  bytes = fread(input->data, 1, input->bytes, stream);
  fclose(stream);
  return bytes == input->bytes ? NULL : "ends too early";
}

static int fail(const char* path, const char* text, int code) {
  fprintf(stderr, "%s: %s\n", path, text);
  return code;
}

int main(int argc, char** argv) {
  sinter_open_options open = SINTER_OPEN_OPTIONS_INIT;
  sinter_session_options options = SINTER_SESSION_OPTIONS_INIT;
  sinter_error error;
  sinter_model* model = NULL;
  sinter_session* session = NULL;
  sinter_tensor input, output;
  size_t bytes, kept;
  int frame;

  if (argc < 3) {
    fprintf(stderr, "usage: camera_c MODEL.sinter FRAME.pgm...\n");
    return 2;
  }
  bytes = read_file(argv[1]);
  if (bytes == 0) return fail(argv[1], "cannot be read, or is too large for the static memory", 1);
  open.memory = memory;
  open.memory_bytes = sizeof memory;
  open.stable = 1; /* nothing else writes to it */
  if (sinter_model_open_bytes(file, bytes, &open, &model, &error)) return fail(argv[1], error.text, 1);
  kept = sinter_model_retained(model);
  options.memory = memory + kept;
  options.memory_bytes = sizeof memory - kept;
  if (sinter_session_create(model, &options, &session, &error) ||
      sinter_session_input_at(session, 0, &input, &error) ||
      sinter_session_output_at(session, 0, &output, &error))
    return fail(argv[1], error.text, error.code == SINTER_OUT_OF_MEMORY ? 3 : 1);
  if (input.type != SINTER_UINT8 || output.type != SINTER_FLOAT32 || output.bytes > CLASSES * sizeof(float))
    return fail(argv[1], "does not take bytes; convert it with --input-type uint8", 1);

  for (frame = 2; frame < argc; ++frame) {
    float scores[CLASSES];
    const size_t classes = output.bytes / sizeof(float);
    size_t best = 0, i;
    const char* wrong = capture(argv[frame], &input);
    if (wrong != NULL) return fail(argv[frame], wrong, 1);
    if (sinter_run(session, &error)) return fail(argv[1], error.text, 1);
    memcpy(scores, output.data, output.bytes);
    for (i = 1; i < classes; ++i)
      if (scores[i] > scores[best]) best = i;
    printf("%s: class %d, %.4f\n", argv[frame], (int)best, scores[best]);
  }
  sinter_session_destroy(session);
  sinter_model_close(model);
  return 0;
}
