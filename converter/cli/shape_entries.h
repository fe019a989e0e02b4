// The shape sets of a file (docs/shapes.md), for the commands that run one of them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "converter/cli/host_session.h"
#include "converter/import/read/arrays.h"

namespace sinter::convert {

// The flag --entry N.
struct EntryFlag {
  std::optional<uint32_t> number;
  void add_to(CLI::App& command,
              const char* what =
                  "Which shape set of the file, from 0 (inspect lists them); without it the one "
                  "that has the shapes of the data");
  // Returns the given shape set, else the first. Throws UsageError where the file has fewer.
  uint32_t of(const Model& model) const;
  // Returns the given shape set, else the one whose inputs have the shapes of the arrays, or with `stacks` of
  // the samples in them; the first if `arrays` is null. Throws DataError where none has these shapes.
  uint32_t for_arrays(const Model& model, const Arrays* arrays, bool stacks) const;
};

// Returns for each shape set its inputs, and the bytes of its session and of its constants on this machine.
// Sessions are created with the options `host`, but for `entry`.
nlohmann::json entries_json(const LoadedModel& loaded, uint32_t profile, const HostSession::Options& host);
std::string entries_text(const nlohmann::json& entries);
// The host memory that sessions of all shape sets share in one program (sinter::Runner).
struct CommonMemory {
  uint64_t arena = 0, state = 0;
  explicit CommonMemory(const nlohmann::json& entries);
};

// The bytes of the constants in a profile's entries, by the entries that read them.
struct SharedConstants {
  std::vector<uint64_t> of_entry;  // read by each
  uint64_t shared = 0;             // read by several
  SharedConstants(const Model& model, uint32_t profile);
};

}  // namespace sinter::convert
