// sinter: the command line.
#include <string>
#include <vector>

#include "converter/cli/program.h"
#include "converter/files/unfinished.h"

int main(int argc, char** argv) {
  sinter::convert::remove_unfinished_on_signals();
  sinter::convert::cap_instruction_sets();
  return sinter::convert::run_program(std::vector<std::string>(argv + 1, argv + argc));
}
