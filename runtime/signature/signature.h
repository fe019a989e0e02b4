// The cryptography of signed files: BLAKE2b-256 and the check of an Ed25519 signature. It is built from
// sodium.cc (libsodium, CMake option SINTER_SIGNATURES) or from none.cc, which has neither and returns an
// error. Nothing here takes heap memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sinter::signature {

inline constexpr size_t kPublicKeyBytes = 32;
inline constexpr size_t kSignatureBytes = 64;
inline constexpr size_t kDigestBytes = 32;
inline constexpr size_t kDigestStateBytes = 384;
inline constexpr size_t kDigestStateAlignment = 64;

// Returns whether this build has the functions below, of which none may be called before. It is thread-safe.
bool available();

// Computes BLAKE2b-256 of bytes that arrive in pieces; `state` has kDigestStateBytes, aligned.
void digest_start(std::byte* state);
void digest_update(std::byte* state, std::span<const std::byte> bytes);
void digest_finish(std::byte* state, uint8_t (&digest)[kDigestBytes]);

// Returns false for an Ed25519 signature that is not exactly this key's over exactly this message.
bool verify(std::span<const std::byte> message, const uint8_t (&signature)[kSignatureBytes],
            const uint8_t (&public_key)[kPublicKeyBytes]);

}  // namespace sinter::signature
