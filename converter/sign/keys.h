// Ed25519 keys for model files, and their text files: comment lines that start with '#', and one line
//   sinter-ed25519-public  <64 hexadecimal digits>
//   sinter-ed25519-secret  <64 hexadecimal digits: the seed that the key pair is derived from>
// Secret bytes are wiped from memory after use and appear in no message. Builds without SINTER_SIGNATURES
// read public keys and refuse the rest (UsageError).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "converter/files/pending_file.h"
#include "runtime/model/format.h"

namespace sinter::convert {

struct PublicKey {
  std::array<uint8_t, 32> bytes{};
  std::string hex() const;
  std::string id() const;  // the first 16 digits, for display
  // Reads the file of a key. Throws FileError (no such file) or DataError (no public key in it).
  static PublicKey read(const std::filesystem::path& path);
};

class SecretKey {
 public:
  static SecretKey generate();
  // Throws FileError or DataError, as above.
  static SecretKey read(const std::filesystem::path& path);
  ~SecretKey();
  SecretKey(SecretKey&& other) noexcept;
  SecretKey& operator=(SecretKey&&) = delete;
  SecretKey(const SecretKey&) = delete;

  PublicKey public_key() const;
  std::array<uint8_t, 64> sign(std::span<const std::byte> message) const;
  // Both throw FileError where the file exists. Only its owner can read the secret file.
  void write(const std::filesystem::path& path) const;
  void write_public(const std::filesystem::path& path) const;

 private:
  SecretKey() = default;
  explicit SecretKey(const uint8_t (&seed)[32]);
  std::array<uint8_t, 64> bytes_{};  // seed, public key
};

// Seals header and segment table, whose digests are final, and returns the signature that follows them.
format::Signature sign_head(format::Header& header, std::span<const format::Segment> segments,
                            const SecretKey& key);
// Seals them, signs them unless `key` is null, and writes them to the start of the file.
void write_head(PendingFile& file, format::Header& header, std::span<const format::Segment> segments,
                const SecretKey* key);

}  // namespace sinter::convert
