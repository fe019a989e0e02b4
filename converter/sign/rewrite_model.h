// Rewriting of a model file: signed, or with another structure.
#pragma once

#include <filesystem>
#include <functional>
#include <span>

#include "converter/sign/keys.h"

namespace sinter::convert {

struct Rewriting {
  // The new FlatBuffer, with lists of the same lengths and the same constants; empty: the file's own.
  std::span<const std::byte> structure = {};
  const SecretKey* key = nullptr;  // null: the new file is not signed
};

// Copies a sound model file, whole or not at all; a signed copy has BLAKE2b digests. `check` as in
// EmitOptions. Throws FileError, or ModelFileError where the envelope is damaged.
void rewrite_model(std::span<const std::byte> file, const Rewriting& rewriting,
                   const std::filesystem::path& out,
                   const std::function<void(const std::filesystem::path&)>& check);

}  // namespace sinter::convert
