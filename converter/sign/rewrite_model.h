// Signs a model file that is already there.
#pragma once

#include <filesystem>
#include <functional>

#include "converter/sign/keys.h"

namespace sinter::convert {

// Copies a sound model file with BLAKE2b digests and a signature (in place of an older one, if any), whole or
// not at all. `check` as in EmitOptions. Throws FileError, or ModelFileError where the envelope is damaged.
void sign_model(std::span<const std::byte> file, const std::filesystem::path& out, const SecretKey& key,
                const std::function<void(const std::filesystem::path&)>& check);

}  // namespace sinter::convert
