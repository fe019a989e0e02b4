// The commands as one program, for main() and for programs that link it (python/).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "converter/cli/command_table.h"
#include "converter/cli/listener.h"
#include "converter/ir/custom_operators.h"

namespace sinter::convert {

// The message where memory is missing, which is printed without taking any; with --json on stdout, too.
inline constexpr char kExhausted[] = "sinter: out of memory\n";
inline constexpr char kExhaustedJson[] = "{\"error\": \"out of memory\", \"exit_code\": 6}\n";

// Limits kernels to the instruction set that SINTER_CPU_CAP names; called before anything runs.
void cap_instruction_sets();
// The C library allocates a library's thread-local data when a thread first uses it, and ends the process
// where it cannot. This allocates the data of this library and of the C++ library's exceptions; programs
// that load this one as a library call it at that time.
void take_thread_local_data();

// Runs the command that `words` begins with, prints, with --json one object whatever happens ("error" and
// "exit_code" of a failure), and returns the exit code: 0 done; 1 negative result; 2 wrong usage; 3 model
// refused; 4 model file corrupt, foreign or too new; 5 input or calibration data wrong; 6 the system failed.
int run_program(const std::vector<std::string>& words);

// Does so inside another program, for the commands that take a listener (Outcome), and prints nothing. Exit
// codes 2, 4, 5 and 6 are the exceptions of converter/diagnostics/errors.h; those of the listener pass.
int call_command(const std::vector<std::string>& words, CommandListener& listener);

// Returns the operators of shared objects, which stay loaded; null if none are given. Throws UsageError.
std::shared_ptr<const CustomOperators> load_custom_operators(const std::vector<std::string>& libraries);

// Returns the flags of a command in the order of --help.
std::vector<CommandFlag> flags_of(const std::string& command);

}  // namespace sinter::convert
