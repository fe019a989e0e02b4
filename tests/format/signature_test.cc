// Signed files: every way to change one is refused, with and without a key; corpus_test.cc shows what a build
// without libsodium does with them.
#include "runtime/signature/signature.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "converter/diagnostics/errors.h"
#include "converter/sign/rewrite_model.h"
#include "sinter/sinter.h"
#include "tests/format/sample_models.h"
#include "tests/memory/watch.h"

namespace sinter::testing {
namespace {

using convert::PublicKey;
using convert::SecretKey;
using ::testing::HasSubstr;

std::filesystem::path scratch(const char* name) {
  return std::filesystem::path(::testing::TempDir()) / fmt::format("sign-{}-{}", ::getpid(), name);
}

AlignedBytes contents(const std::filesystem::path& path) {
  AlignedBytes file(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(file.size()));
  return file;
}

AlignedBytes signed_copy(const AlignedBytes& file, const SecretKey& key) {
  const auto path = scratch("model");
  convert::rewrite_model(file.span(), {.key = &key}, path, {});
  AlignedBytes bytes = contents(path);
  std::filesystem::remove(path);
  return bytes;
}

Status status_of(const AlignedBytes& file, const OpenOptions& options) {
  const auto bytes = Model::open_bytes(file.span(), options);
  if (!bytes.ok()) return bytes.status();
  const AlignedBytes memory(bytes.value());
  return Model::open(file.span(), memory.span(), options).status();
}

Status status_of(const AlignedBytes& file, const PublicKey& key, bool check_digests = true) {
  return status_of(file,
                   {.kernels = reference_kernels(), .check_digests = check_digests, .public_key = key.bytes});
}

Status keyless_status(const AlignedBytes& file) {
  return status_of(file, OpenOptions{.kernels = reference_kernels()});
}

bool refused(const Status& s) { return s.code == Code::kCorrupt || s.code == Code::kUnsupported; }

struct Parts {
  format::Header header;
  std::vector<format::Segment> segments;
  format::Signature signature{};

  explicit Parts(const AlignedBytes& file) {
    std::memcpy(&header, file.data(), sizeof(header));
    segments.resize(header.segment_count);
    std::memcpy(segments.data(), file.data() + sizeof(header), segments.size() * sizeof(segments[0]));
    if (header.signature_bytes != 0)
      std::memcpy(&signature, file.data() + header.signature_offset, sizeof(signature));
  }
  void put(AlignedBytes* file) const {
    std::memcpy(file->data(), &header, sizeof(header));
    std::memcpy(file->data() + sizeof(header), segments.data(), segments.size() * sizeof(segments[0]));
    if (header.signature_bytes != 0)
      std::memcpy(file->data() + header.signature_offset, &signature, sizeof(signature));
  }
};

class Signed : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!signature::available()) GTEST_SKIP() << "this build has no signatures";
    key_ = std::make_unique<SecretKey>(SecretKey::generate());
    plain_ = plain_model().build();
    file_ = signed_copy(plain_, *key_);
    open_ = key_->public_key();
  }
  std::unique_ptr<SecretKey> key_;
  PublicKey open_;
  AlignedBytes plain_, file_;
};

TEST_F(Signed, OpensWithItsKeyAndWithNone) {
  const Status with = status_of(file_, open_);
  EXPECT_TRUE(with.ok()) << with.message;
  EXPECT_TRUE(status_of(file_, open_, false).ok());
  EXPECT_TRUE(keyless_status(file_).ok());
  EXPECT_TRUE(status_of(file_, {.kernels = reference_kernels(), .check_digests = false}).ok());
  EXPECT_TRUE(
      status_of(file_, {.kernels = reference_kernels(), .stable = true, .public_key = open_.bytes}).ok());
}

TEST_F(Signed, SameKeySameBytesAndASecondSignatureReplacesTheFirst) {
  const AlignedBytes again = signed_copy(file_, *key_);
  ASSERT_EQ(again.size(), file_.size());
  EXPECT_EQ(std::memcmp(again.data(), file_.data(), file_.size()), 0);
  const SecretKey other = SecretKey::generate();
  const AlignedBytes theirs = signed_copy(file_, other);
  EXPECT_EQ(theirs.size(), file_.size());
  EXPECT_TRUE(status_of(theirs, other.public_key()).ok());
  EXPECT_THAT(status_of(theirs, open_).message, HasSubstr("a key other"));
}

TEST_F(Signed, UnsignedFilesAndOtherKeysAreRefused) {
  EXPECT_TRUE(keyless_status(plain_).ok());
  EXPECT_EQ(status_of(plain_, open_).code, Code::kCorrupt);
  EXPECT_THAT(status_of(plain_, open_).message, HasSubstr("not signed"));
  EXPECT_THAT(status_of(plain_, open_, false).message, HasSubstr("not signed"));
  EXPECT_THAT(status_of(file_, SecretKey::generate().public_key()).message, HasSubstr("a key other"));
}

TEST_F(Signed, KeysOfAnotherLengthAreTheCallersMistake) {
  for (const size_t n : {0, 1, 31}) {
    const OpenOptions options{.kernels = reference_kernels(), .public_key = std::span(open_.bytes).first(n)};
    EXPECT_EQ(status_of(file_, options).code, Code::kInvalidArgument) << n;
  }
}

// Also where digests are waived: a key waives the waiver.
TEST_F(Signed, EveryFlippedByteIsRefused) {
  for (size_t i = 0; i < file_.size(); ++i)
    for (const int mask : {0x01, 0x80, 0xff}) {
      AlignedBytes bad = file_.copy(file_.size());
      bad[i] ^= static_cast<std::byte>(mask);
      const Status s = status_of(bad, open_), waived = status_of(bad, open_, false),
                   none = keyless_status(bad);
      ASSERT_TRUE(refused(s)) << "byte " << i << " of " << file_.size();
      ASSERT_TRUE(refused(waived)) << "byte " << i << " of " << file_.size();
      ASSERT_TRUE(refused(none)) << "byte " << i << " of " << file_.size();
    }
}

TEST_F(Signed, TruncationsAndExtensionsAreRefused) {
  for (size_t n = 0; n < file_.size(); ++n) ASSERT_TRUE(refused(status_of(file_.copy(n), open_))) << n;
  for (const size_t more : {1, 64, 128, 4096})
    EXPECT_TRUE(refused(status_of(file_.copy(file_.size() + more), open_))) << more;
}

// The digests and the layout are right again; only the signature is wrong.
TEST_F(Signed, AttackersWhoRepairTheDigestsAreRefused) {
  const auto attack = [&](const char* what, auto&& change, const char* why) {
    AlignedBytes bad = file_.copy(file_.size());
    Parts parts(bad);
    change(bad, parts);
    format::seal(parts.header, parts.segments, &parts.signature);
    parts.put(&bad);
    for (const bool check : {true, false}) {
      const Status s = status_of(bad, open_, check);
      EXPECT_EQ(s.code, Code::kCorrupt) << what;
      ASSERT_NE(s.message, nullptr) << what;
      EXPECT_THAT(s.message, HasSubstr(why)) << what;
    }
    EXPECT_TRUE(refused(keyless_status(bad))) << what;
  };
  const auto redigest = [](AlignedBytes& file, Parts& p) {
    const auto part = [&](uint64_t at, uint64_t n) {
      return std::span<const std::byte>(file.span()).subspan(at, n);
    };
    p.header.flatbuffer_digest = format::digest_of(
        part(p.header.flatbuffer_offset, p.header.flatbuffer_bytes), format::DigestAlgorithm::kBlake2b);
    for (format::Segment& s : p.segments)
      s.digest = format::digest_of(part(s.offset, s.bytes), format::DigestAlgorithm::kBlake2b);
  };
  attack(
      "weights",
      [&](AlignedBytes& f, Parts& p) {
        f[p.segments[0].offset] ^= std::byte{1};
        redigest(f, p);
      },
      "signature is wrong");
  attack(
      "structure",
      [&](AlignedBytes& f, Parts& p) {
        f[p.header.flatbuffer_offset + p.header.flatbuffer_bytes / 2] ^= std::byte{1};
        redigest(f, p);
      },
      "signature is wrong");
  const SecretKey mine = SecretKey::generate();
  attack(
      "the attacker's key beside the owner's signature",
      [&](AlignedBytes&, Parts& p) {
        std::copy_n(mine.public_key().bytes.begin(), 32, p.signature.public_key);
      },
      "a key other");
  attack(
      "the owner's key beside the attacker's signature",
      [&](AlignedBytes& f, Parts& p) {
        f[p.segments[0].offset] ^= std::byte{1};
        redigest(f, p);
        p.signature = convert::sign_head(p.header, p.segments, mine);
        std::copy_n(open_.bytes.begin(), 32, p.signature.public_key);
      },
      "signature is wrong");
  attack(
      "digests that can be forged",
      [&](AlignedBytes&, Parts& p) {
        p.segments[0].algorithm = static_cast<uint32_t>(format::DigestAlgorithm::kXxh3);
      },
      "signature is wrong");
}

// A signature does not make weak digests strong: XXH3 is refused even under a good signature.
TEST_F(Signed, SignedFilesNeedBlake2b) {
  AlignedBytes bad = file_.copy(file_.size());
  Parts parts(bad);
  const format::Segment& s = parts.segments[0];
  parts.segments[0].algorithm = static_cast<uint32_t>(format::DigestAlgorithm::kXxh3);
  parts.segments[0].digest =
      format::digest_of(std::span<const std::byte>(bad.span()).subspan(s.offset, s.bytes));
  parts.signature = convert::sign_head(parts.header, parts.segments, *key_);
  parts.put(&bad);
  const Status status = status_of(bad, open_);
  EXPECT_EQ(status.code, Code::kUnsupported);
  EXPECT_THAT(status.message, HasSubstr("digest algorithm"));
}

TEST_F(Signed, AStrippedSignatureIsNoticedWithTheKey) {
  // The honest way: a whole unsigned file of the same model, which opens where no key is required.
  EXPECT_TRUE(keyless_status(plain_).ok());
  EXPECT_FALSE(status_of(plain_, open_).ok());
  // The lazy way: fields cleared, so that the parts are not where they should be.
  AlignedBytes bad = file_.copy(file_.size());
  Parts parts(bad);
  parts.header.version = format::kVersion;
  parts.header.signature_offset = parts.header.signature_bytes = 0;
  format::seal(parts.header, parts.segments);
  parts.put(&bad);
  EXPECT_TRUE(refused(keyless_status(bad)));
  EXPECT_THAT(status_of(bad, open_).message, HasSubstr("not signed"));
}

TEST_F(Signed, ASegmentOfAnotherSignedFileIsRefused) {
  ModelBuilder builder = plain_model();
  for (std::byte& b : builder.weights) b ^= std::byte{1};
  const AlignedBytes other = signed_copy(builder.build(), *key_);
  ASSERT_TRUE(keyless_status(other).ok());
  ASSERT_EQ(other.size(), file_.size());
  const Parts theirs(other);
  AlignedBytes bad = file_.copy(file_.size());
  const format::Segment& s = theirs.segments[0];
  std::memcpy(bad.data() + s.offset, other.data() + s.offset, s.bytes);
  EXPECT_THAT(status_of(bad, open_).message, HasSubstr("segment does not match"));
  // With its row of the table.
  std::memcpy(bad.data() + sizeof(format::Header), other.data() + sizeof(format::Header),
              sizeof(format::Segment));
  EXPECT_THAT(status_of(bad, open_).message, HasSubstr("signature is wrong"));
  // With the whole head as well, but this file's structure.
  std::memcpy(bad.data(), other.data(), theirs.header.flatbuffer_offset);
  bad[theirs.header.flatbuffer_offset + 40] ^= std::byte{4};
  EXPECT_THAT(status_of(bad, open_).message, HasSubstr("structure does not match"));
}

TEST_F(Signed, OpeningTakesNoHeap) {
  const OpenOptions options{.kernels = reference_kernels(), .public_key = open_.bytes};
  const AlignedBytes memory(Model::open_bytes(file_.span(), options).value());
  Status status;
  const test::Seen seen =
      test::watched(false, [&] { status = Model::open(file_.span(), memory.span(), options).status(); });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(seen.heap + seen.freed + seen.mappings, 0) << seen.text();
}

TEST(Keys, TextFilesRoundTrip) {
  if (!signature::available()) GTEST_SKIP() << "this build has no signatures";
  const auto secret = scratch("k.key"), open = scratch("k.pub");
  const SecretKey key = SecretKey::generate();
  key.write(secret);
  key.write_public(open);
  EXPECT_EQ(std::filesystem::status(secret).permissions() & std::filesystem::perms::mask,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(SecretKey::read(secret).public_key().bytes, key.public_key().bytes);
  EXPECT_EQ(PublicKey::read(open).bytes, key.public_key().bytes);
  EXPECT_THROW(key.write(secret), convert::FileError);
  EXPECT_THROW((void)PublicKey::read(secret), convert::DataError);
  EXPECT_THROW((void)SecretKey::read(open), convert::DataError);
  std::filesystem::remove(secret);
  std::filesystem::remove(open);
}

TEST(Keys, WhatIsNoKeyIsRefusedWithoutRepeatingIt) {
  const auto path = scratch("bad.pub");
  const std::string digits(64, 'a');
  for (const std::string& text :
       {std::string(), std::string("hello " + digits), "sinter-ed25519-public " + digits.substr(1),
        "sinter-ed25519-public " + digits + "a", "sinter-ed25519-public " + digits.substr(1) + "g",
        "sinter-ed25519-public " + digits + "\nsinter-ed25519-public " + digits,
        "sinter-ed25519-secret " + digits, std::string(5000, '#'), std::string("sinter-ed25519-public")}) {
    std::ofstream(path) << text;
    try {
      (void)PublicKey::read(path);
      ADD_FAILURE() << text;
    } catch (const convert::DataError& e) {
      EXPECT_THAT(e.what(), HasSubstr("bad.pub"));
      EXPECT_THAT(e.what(), ::testing::Not(HasSubstr("aaaa")));
    }
  }
  std::ofstream(path) << "# a comment\n\nsinter-ed25519-public " + digits + " \r\n";
  EXPECT_EQ(PublicKey::read(path).hex(), digits);
  std::filesystem::remove(path);
  EXPECT_THROW((void)PublicKey::read(path), convert::FileError);
}

// The first example of RFC 8032.
TEST(Signature, MatchesThePublishedExample) {
  if (!signature::available()) GTEST_SKIP() << "this build has no signatures";
  const uint8_t key[32] = {0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe,
                           0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6,
                           0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};
  uint8_t made[64] = {0xe5, 0x56, 0x43, 0x00, 0xc3, 0x60, 0xac, 0x72, 0x90, 0x86, 0xe2, 0xcc, 0x80,
                      0x6e, 0x82, 0x8a, 0x84, 0x87, 0x7f, 0x1e, 0xb8, 0xe5, 0xd9, 0x74, 0xd8, 0x73,
                      0xe0, 0x65, 0x22, 0x49, 0x01, 0x55, 0x5f, 0xb8, 0x82, 0x15, 0x90, 0xa3, 0x3b,
                      0xac, 0xc6, 0x1e, 0x39, 0x70, 0x1c, 0xf9, 0xb4, 0x6b, 0xd2, 0x5b, 0xf5, 0xf0,
                      0x59, 0x5b, 0xbe, 0x24, 0x65, 0x51, 0x41, 0x43, 0x8e, 0x7a, 0x10, 0x0b};
  EXPECT_TRUE(signature::verify({}, made, key));
  made[0] ^= 1;
  EXPECT_FALSE(signature::verify({}, made, key));
}

// In one piece and in many; the digest is what Python's hashlib.blake2b(digest_size=32) gives.
TEST(Signature, DigestsComeInPieces) {
  if (!signature::available()) GTEST_SKIP() << "this build has no signatures";
  std::vector<std::byte> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  format::Digester digester(format::DigestAlgorithm::kBlake2b);
  for (size_t at = 0, n = 1; at < bytes.size(); at += n, n = std::min(3 * n, bytes.size() - at))
    digester.update(std::span<const std::byte>(bytes).subspan(at, n));
  const format::Digest digest = digester.finish();
  EXPECT_EQ(digest, format::digest_of(bytes, format::DigestAlgorithm::kBlake2b));
  PublicKey shown;
  std::copy_n(digest.bytes, 32, shown.bytes.begin());
  EXPECT_EQ(shown.hex(), "6ac4bea923678eb024090384d6e767b5870f849057dc19b172d8d9f2df30bf8e");
}

}  // namespace
}  // namespace sinter::testing
