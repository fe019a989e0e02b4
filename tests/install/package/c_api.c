/* c_api MODEL.sinter: opens a model by the shared library. */
#include <stdio.h>

#include "sinter/sinter_c.h"

int main(int argc, char** argv) {
  sinter_error error;
  sinter_model* model = NULL;
  if (argc != 2) return 2;
  if (sinter_model_open(argv[1], NULL, &model, &error)) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  printf("%s, %u inputs\n", sinter_version(), (unsigned)sinter_model_input_count(model, 0));
  sinter_model_close(model);
  return 0;
}
