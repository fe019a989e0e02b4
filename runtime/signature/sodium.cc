// Signatures by libsodium. sodium_init() chooses the fastest code for this CPU and reads a few random bytes
// (a system call, no heap); that happens once, when the first signed file is opened.
#include <sodium.h>

#include "runtime/signature/signature.h"

namespace sinter::signature {
namespace {

static_assert(crypto_sign_PUBLICKEYBYTES == kPublicKeyBytes && crypto_sign_BYTES == kSignatureBytes);
static_assert(sizeof(crypto_generichash_state) <= kDigestStateBytes &&
              alignof(crypto_generichash_state) <= kDigestStateAlignment);
static_assert(kDigestBytes >= crypto_generichash_BYTES_MIN && kDigestBytes <= crypto_generichash_BYTES_MAX);

crypto_generichash_state* state_of(std::byte* state) {
  return reinterpret_cast<crypto_generichash_state*>(state);
}

const unsigned char* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

bool available() { return sodium_init() >= 0; }

void digest_start(std::byte* state) { crypto_generichash_init(state_of(state), nullptr, 0, kDigestBytes); }

void digest_update(std::byte* state, std::span<const std::byte> bytes) {
  crypto_generichash_update(state_of(state), data_of(bytes), bytes.size());
}

void digest_finish(std::byte* state, uint8_t (&digest)[kDigestBytes]) {
  crypto_generichash_final(state_of(state), digest, kDigestBytes);
}

bool verify(std::span<const std::byte> message, const uint8_t (&signature)[kSignatureBytes],
            const uint8_t (&public_key)[kPublicKeyBytes]) {
  return crypto_sign_verify_detached(signature, data_of(message), message.size(), public_key) == 0;
}

}  // namespace sinter::signature
