/* Runs the C example of docs/application.md (extracted to c_example.h). Built by applications.sh alone. */
#include <stdio.h>
#include <string.h>

#include "sinter/sinter_c.h"

float probability_in_c(const float* image);
float probability_in_c(const float* image) {
  float pixels[64], p[10] = {0};
  memcpy(pixels, image, sizeof pixels);
#include "c_example.h"
  return p[2];
}
