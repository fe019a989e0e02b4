// Packed weights of this machine in a model file: sinter pack and convert --pack.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "converter/ir/custom_operators.h"
#include "runtime/backend/target.h"

namespace sinter::convert {

// Throws UsageError where none of the targets is this machine's processor, or, with `only`, not all are.
void check_packs_here(std::span<const Target> targets, bool only);

struct PackedFile {
  uint32_t packings = 0, added = 0;  // the packings of this machine in the file, and the new ones of these
  uint32_t left_out = 0;             // the constants that the file lost
  int64_t grown = 0;                 // the bytes by which the file grew
  uint64_t bytes = 0;                // the size of the file

  nlohmann::json to_json() const;
  std::string to_text() const;  // Returns one line.
};

struct PackOptions {
  std::string backend = {};  // empty: as planned
  int threads = 1;
  bool only = false;  // leaves out the constants that packings replace
  std::shared_ptr<const CustomOperators> custom_ops = {};
};

// Reads the model `from` and writes it to `to` with the weights that sessions of all its shape sets pack on
// this machine, as sinter/pack_file.h does on a device; `to` may be `from`, which is replaced if it changes.
// Throws FileError, and ModelFileError where the file is not sound, signed, or not for this machine only.
PackedFile pack_model(const std::filesystem::path& from, const std::filesystem::path& to,
                      const PackOptions& options);

}  // namespace sinter::convert
