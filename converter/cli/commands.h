// The commands. Each adds itself to the argument parser and runs when chosen; its result is the exit code (0
// or 1), other endings are exceptions (converter/report/errors.h) that main turns into codes.
#pragma once

#include <CLI/CLI.hpp>

namespace sinter::convert {

// What every command takes.
struct CommonOptions {
  bool json = false;
  bool quiet = false;
  void add_to(CLI::App& command) {
    command.add_flag("--json", json, "Print the result as one JSON object on stdout");
    command.add_flag("--quiet", quiet, "Print nothing but errors and what --json asks for");
  }
};

// Set by the chosen command; the process's exit code.
struct Outcome {
  int exit_code = 0;
};

void add_convert(CLI::App& app, Outcome& outcome);
void add_inspect(CLI::App& app, Outcome& outcome);
void add_explain(CLI::App& app, Outcome& outcome);
void add_run(CLI::App& app, Outcome& outcome);
void add_compare(CLI::App& app, Outcome& outcome);
void add_bench(CLI::App& app, Outcome& outcome);
void add_ranges(CLI::App& app, Outcome& outcome);

}  // namespace sinter::convert
