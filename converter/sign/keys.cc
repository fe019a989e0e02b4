#include "converter/sign/keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "converter/diagnostics/errors.h"
#include "converter/files/input_file.h"

#ifdef SINTER_WITH_SODIUM
#include <sodium.h>
#endif

namespace sinter::convert {
namespace {

constexpr std::string_view kPublicTag = "sinter-ed25519-public", kSecretTag = "sinter-ed25519-secret";

void require_signatures() {
#ifdef SINTER_WITH_SODIUM
  if (sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
#else
  throw UsageError("this build cannot sign (it was built without libsodium: SINTER_SIGNATURES)");
#endif
}

void wipe(void* data, size_t bytes) {
#ifdef SINTER_WITH_SODIUM
  sodium_memzero(data, bytes);
#else
  std::memset(data, 0, bytes);
#endif
}

// A text on the stack that may be secret, and is wiped at the end.
struct KeyText {
  std::array<char, 4096> data{};
  size_t bytes = 0;
  ~KeyText() { wipe(data.data(), data.size()); }
  std::string_view view() const { return {data.data(), bytes}; }
};

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Reads the 32 bytes behind `tag`. Messages name the fault, never the contents.
void read_key(const std::filesystem::path& path, std::string_view tag, uint8_t (&key)[32]) {
  const auto bad = [&](const char* what) { throw DataError(fmt::format("{}: {}", path.string(), what)); };
  KeyText text;
  text.bytes = InputFile(path).read(text.data.data(), text.data.size());
  if (text.bytes == text.data.size()) bad("is not a key file: it is too long; sinter keygen generates them");

  bool found = false;
  for (std::string_view rest = text.view(); !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with(tag == kPublicTag ? kSecretTag : kPublicTag))
      bad(tag == kPublicTag ? "holds a secret key; give the public one"
                            : "holds a public key; give the secret one");
    if (!line.starts_with(tag)) bad("is not a key file; sinter keygen generates them");
    line.remove_prefix(tag.size());
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    if (found || line.size() != 64)
      bad("is not a key file: it does not hold one key of 64 hexadecimal digits; sinter keygen generates "
          "them");
    found = true;
    for (size_t i = 0; i < 32; ++i) {
      const int high = digit_of(line[2 * i]), low = digit_of(line[2 * i + 1]);
      if (high < 0 || low < 0)
        bad("is not a key file: it does not hold one key of 64 hexadecimal digits; sinter keygen generates "
            "them");
      key[i] = static_cast<uint8_t>(16 * high + low);
    }
  }
  if (!found) bad("is not a key file: it does not hold a key; sinter keygen generates them");
}

void append(KeyText& text, std::string_view more) {
  std::memcpy(text.data.data() + text.bytes, more.data(), more.size());
  text.bytes += more.size();
}

void append_hex(KeyText& text, std::span<const uint8_t> bytes) {
  for (const uint8_t b : bytes)
    for (const int d : {b >> 4, b & 15})
      text.data[text.bytes++] = static_cast<char>(d < 10 ? '0' + d : 'a' + d - 10);
}

void write_new(const std::filesystem::path& path, const KeyText& text, mode_t mode) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0)
    throw FileError(errno == EEXIST
                        ? fmt::format("{}: already exists; keys are never replaced", path.string())
                        : fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
  bool whole = true;
  for (size_t at = 0; whole && at < text.bytes;) {
    const ssize_t put = ::write(fd, text.data.data() + at, text.bytes - at);
    whole = put > 0;
    if (whole) at += static_cast<size_t>(put);
  }
  whole = whole && ::fsync(fd) == 0;
  const int fault = errno;
  whole = ::close(fd) == 0 && whole;
  if (whole) return;
  ::unlink(path.c_str());
  throw FileError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(fault)));
}

}  // namespace

std::string PublicKey::hex() const {
  std::string text;
  for (const uint8_t b : bytes) text += fmt::format("{:02x}", b);
  return text;
}

std::string PublicKey::id() const { return hex().substr(0, 16); }

PublicKey PublicKey::read(const std::filesystem::path& path) {
  uint8_t key[32];
  read_key(path, kPublicTag, key);
  PublicKey result;
  std::copy(std::begin(key), std::end(key), result.bytes.begin());
  return result;
}

SecretKey::SecretKey(const uint8_t (&seed)[32]) {
#ifdef SINTER_WITH_SODIUM
  static_assert(crypto_sign_SECRETKEYBYTES == 64 && crypto_sign_SEEDBYTES == 32);
  uint8_t open[32];
  crypto_sign_seed_keypair(open, bytes_.data(), seed);
#else
  (void)seed;
#endif
}

SecretKey SecretKey::generate() {
  require_signatures();
  uint8_t seed[32];
#ifdef SINTER_WITH_SODIUM
  randombytes_buf(seed, sizeof(seed));
#endif
  SecretKey key(seed);
  wipe(seed, sizeof(seed));
  return key;
}

SecretKey SecretKey::read(const std::filesystem::path& path) {
  require_signatures();
  struct Seed {
    uint8_t bytes[32];
    ~Seed() { wipe(bytes, sizeof(bytes)); }
  } seed{};
  read_key(path, kSecretTag, seed.bytes);
  return SecretKey(seed.bytes);
}

SecretKey::~SecretKey() { wipe(bytes_.data(), bytes_.size()); }
SecretKey::SecretKey(SecretKey&& other) noexcept : bytes_(other.bytes_) {
  wipe(other.bytes_.data(), other.bytes_.size());
}

PublicKey SecretKey::public_key() const {
  PublicKey key;
  std::copy(bytes_.begin() + 32, bytes_.end(), key.bytes.begin());
  return key;
}

std::array<uint8_t, 64> SecretKey::sign(std::span<const std::byte> message) const {
  std::array<uint8_t, 64> signature{};
#ifdef SINTER_WITH_SODIUM
  crypto_sign_detached(signature.data(), nullptr, reinterpret_cast<const unsigned char*>(message.data()),
                       message.size(), bytes_.data());
#else
  (void)message;
#endif
  return signature;
}

void SecretKey::write(const std::filesystem::path& path) const {
  KeyText text;
  append(text, fmt::format("# Sinter secret key {}: whoever has it can sign models.\n", public_key().id()));
  append(text, kSecretTag);
  append(text, " ");
  append_hex(text, std::span(bytes_).first(32));
  append(text, "\n");
  write_new(path, text, 0600);
}

void SecretKey::write_public(const std::filesystem::path& path) const {
  KeyText text;
  append(text, fmt::format("# Sinter public key {}\n", public_key().id()));
  append(text, kPublicTag);
  append(text, " ");
  append_hex(text, public_key().bytes);
  append(text, "\n");
  write_new(path, text, 0644);
}

format::Signature sign_head(format::Header& header, std::span<const format::Segment> segments,
                            const SecretKey& key) {
  format::Signature signature{};
  signature.algorithm = static_cast<uint32_t>(format::SignatureAlgorithm::kEd25519);
  const PublicKey open = key.public_key();
  std::copy(open.bytes.begin(), open.bytes.end(), signature.public_key);
  format::seal(header, segments, &signature);
  std::vector<std::byte> message;
  const auto add = [&](std::span<const std::byte> bytes) {
    message.insert(message.end(), bytes.begin(), bytes.end());
  };
  add(std::as_bytes(std::span(&header, 1)));
  add(std::as_bytes(segments));
  add(std::as_bytes(std::span(&signature, 1)).first(format::kSignatureHead));
  const auto made = key.sign(message);
  std::copy(made.begin(), made.end(), signature.signature);
  return signature;
}

void write_head(PendingFile& file, format::Header& header, std::span<const format::Segment> segments,
                const SecretKey* key) {
  format::Signature signature{};
  if (key != nullptr)
    signature = sign_head(header, segments, *key);
  else
    format::seal(header, segments);
  file.rewrite_start(&header, sizeof(header));
  file.write(segments.data(), segments.size_bytes());
  if (key != nullptr) file.write(&signature, sizeof(signature));
}

}  // namespace sinter::convert
