// The commands. Each adds itself to the argument parser and runs when chosen; its result is the exit code (0
// or 1), other endings are exceptions (converter/diagnostics/errors.h) that main turns into codes.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "converter/cli/flags.h"
#include "converter/cli/listener.h"
#include "converter/diagnostics/diagnostics.h"
#include "converter/ir/custom_operators.h"
#include "converter/sign/keys.h"

namespace sinter::convert {

// The options that every command has.
struct CommonOptions {
  bool json = false;
  bool quiet = false;
  void add_to(CLI::App& command) {
    begin_group(command, flag_group::kGeneral);
    command.add_flag("--json", json, "Print the result as one JSON object on stdout");
    command.add_flag("--quiet", quiet,
                     "Print no progress, notes or results but those of --json; errors and warnings stay");
  }
};

// The option of commands that open .sinter files.
struct TrustOption {
  std::string file;
  void add_to(CLI::App& command) {
    begin_group(command, flag_group::kGeneral);
    add_value(command, "--public-key", file, "NAME.pub",
              "Refuse (exit code 4) a .sinter file that is not signed with this key");
  }
  std::optional<PublicKey> key() const {
    return file.empty() ? std::nullopt : std::optional(PublicKey::read(file));
  }
};

// The option of commands that import, open or run models with custom operators.
struct CustomOpsOption {
  std::vector<std::string> libraries;
  void add_to(CLI::App& command) {
    add_value(command, "--custom-ops", libraries, "LIBRARY",
              "A shared object with custom operators of the model (docs/application.md). Its code is run: "
              "give only libraries that you trust")
        ->allow_extra_args(false)
        ->group(flag_group::kGeneral);
  }
  // Returns the operators of the libraries, which stay loaded; null if none are given. Throws UsageError.
  std::shared_ptr<const CustomOperators> load() const;
};

// The end of a command, which the command sets: the process's exit code, and the taker of the result.
struct Outcome {
  int exit_code = 0;
  CommandListener* listener = nullptr;  // for convert, inspect and compare; null: the standard streams

  bool takes_json(const CommonOptions& common) const { return listener != nullptr || common.json; }
  void give(const nlohmann::json& json, const std::string& text = {}) const;
  // Reports that the model is refused, and sets exit code 3.
  void refuse(const CommonOptions& common, const Diagnostics& diagnostics);
};

void add_convert(CLI::App& app, Outcome& outcome);
void add_quantize(CLI::App& app, Outcome& outcome);
void add_inspect(CLI::App& app, Outcome& outcome);
void add_embed(CLI::App& app, Outcome& outcome);
void add_explain(CLI::App& app, Outcome& outcome);
void add_run(CLI::App& app, Outcome& outcome);
void add_compare(CLI::App& app, Outcome& outcome);
void add_bench(CLI::App& app, Outcome& outcome);
void add_ranges(CLI::App& app, Outcome& outcome);
void add_keygen(CLI::App& app, Outcome& outcome);
void add_sign(CLI::App& app, Outcome& outcome);
void add_pack(CLI::App& app, Outcome& outcome);
void add_repair(CLI::App& app, Outcome& outcome);
void add_tune(CLI::App& app, Outcome& outcome);
void add_simplify(CLI::App& app, Outcome& outcome);
// Adds help, completion and man, which describe the commands added before and themselves.
void add_self_description(CLI::App& app);
// Prints the help of a command, or of the program if `command` is null.
void print_help(const CLI::App& app, const CLI::App* command);

}  // namespace sinter::convert
