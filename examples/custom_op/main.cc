// Runs a model that has Wave nodes on a row of numbers: custom_op MODEL.sinter
#include <cstdio>

#include "sinter/custom_op.h"
#include "sinter/runner.h"

extern "C" const sinter_custom_op wave_op;  // wave.c

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: custom_op MODEL.sinter\n"), 2;
  const sinter_custom_op* const ops[] = {&wave_op};
  sinter::Runner runner = sinter::Runner::open(argv[1], {.custom_ops = ops});
  for (float& x : runner.input<float>("x")) x = 0.5f;
  if (!runner.run()) return std::fprintf(stderr, "%s\n", runner.error()), 1;
  for (const float y : runner.get<float>("y")) std::printf("%.6f\n", y);
  return runner.ok() ? 0 : 1;
}
