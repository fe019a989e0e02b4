// sinter: the command line.
#include <unistd.h>

#include <atomic>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "converter/cli/program.h"
#include "converter/files/ending.h"
#include "converter/files/unfinished.h"

namespace {

std::atomic<bool> exhausted{false};
std::terminate_handler usual_end = nullptr;

bool json = false;

void write_text(int file, std::string_view text) {
  [[maybe_unused]] const auto written = ::write(file, text.data(), text.size());
}
int say_exhausted() {
  write_text(STDERR_FILENO, sinter::convert::kExhausted);
  if (json) write_text(STDOUT_FILENO, sinter::convert::kExhaustedJson);
  return 6;
}

[[noreturn]] void on_exhausted() {
  exhausted = true;
  throw std::bad_alloc();
}
// Reports missing memory where no handler catches it, or where memory to throw is missing, too.
void on_terminate() {
  if (exhausted) ::_exit(say_exhausted());
  usual_end();
}

void watch_memory(int count, char** words, char**) {
  for (int i = 1; i < count; ++i) json = json || std::string_view(words[i]) == "--json";
  std::set_new_handler(on_exhausted);
  usual_end = std::set_terminate(on_terminate);
}
// The function runs before the constructors of libraries, which allocate.
[[gnu::section(".preinit_array"), gnu::used]] void (*const kFirst)(int, char**, char**) = watch_memory;

}  // namespace

int main(int argc, char** argv) {
  try {
    sinter::convert::remove_unfinished_on_signals();
    if (json) sinter::convert::print_json_on_signals();
    sinter::convert::cap_instruction_sets();
    return sinter::convert::run_program(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {
    return say_exhausted();
  }
}
