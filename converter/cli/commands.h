// The commands. Each adds itself to the argument parser and runs when chosen; its result is the exit code (0
// or 1), other endings are exceptions (converter/diagnostics/errors.h) that main turns into codes.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "converter/sign/keys.h"

namespace sinter::convert {

// The options of every command.
struct CommonOptions {
  bool json = false;
  bool quiet = false;
  void add_to(CLI::App& command) {
    command.add_flag("--json", json, "Print the result as one JSON object on stdout");
    command.add_flag("--quiet", quiet, "Print only errors and the output of --json");
  }
};

// For commands that open .sinter files.
struct TrustOption {
  std::string file;
  void add_to(CLI::App& command) {
    command.add_option("--public-key", file,
                       "Refuse (exit code 4) a .sinter file that is not signed with this key");
  }
  std::optional<PublicKey> key() const {
    return file.empty() ? std::nullopt : std::optional(PublicKey::read(file));
  }
};

// Set by the chosen command; the process's exit code.
struct Outcome {
  int exit_code = 0;
};

void add_convert(CLI::App& app, Outcome& outcome);
void add_inspect(CLI::App& app, Outcome& outcome);
void add_embed(CLI::App& app, Outcome& outcome);
void add_explain(CLI::App& app, Outcome& outcome);
void add_run(CLI::App& app, Outcome& outcome);
void add_compare(CLI::App& app, Outcome& outcome);
void add_bench(CLI::App& app, Outcome& outcome);
void add_ranges(CLI::App& app, Outcome& outcome);
void add_keygen(CLI::App& app, Outcome& outcome);
void add_sign(CLI::App& app, Outcome& outcome);
void add_tune(CLI::App& app, Outcome& outcome);

}  // namespace sinter::convert
