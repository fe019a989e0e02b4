// pack_file: packed weights in a model file, what reads them, and what is refused.
#include "sinter/pack_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "platforms/simd/simd_kernels.h"
#include "runtime/session/stored_packings.h"
#include "sinter/backends.h"
#include "sinter/file_map.h"
#include "sinter/sinter_c.h"
#include "tests/format/packed_file.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kWidth = 48, kRows = 20;

// Two fully connected layers, one for each of two backends that pack.
ModelBuilder two_layers() {
  ModelBuilder b;
  b.backends = {"simd", "xnnpack"};
  std::mt19937 random(7);
  std::uniform_real_distribution<float> number(-1, 1);
  int v = b.input("x", DType::kFloat32, {kRows, kWidth});
  for (const uint8_t backend : {uint8_t{0}, uint8_t{1}}) {
    std::vector<float> weights(kWidth * kWidth);
    for (float& w : weights) w = number(random);
    const int w = b.constant<float>(DType::kFloat32, {kWidth, kWidth}, weights);
    const int y = b.value(DType::kFloat32, {kRows, kWidth});
    StepSpec& step = b.step(FullyConnectedAttrs{}, {v, w}, {y});
    step.candidates = {backend};
    step.workspace = 1 << 16;
    v = y;
  }
  b.output("y", v);
  return b;
}

std::vector<std::byte> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}
void write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

class PackFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "pack-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    model_ = path("net.sinter");
    ModelBuilder b = two_layers();
    write(model_, b.build().span());
  }
  void TearDown() override {
    set_simd_cap(nullptr);
    for (const char* name : {"net.sinter", "packed.sinter"}) std::remove(path(name).c_str());
    EXPECT_EQ(::rmdir(folder_.c_str()), 0) << "a file is left in the folder";
  }
  std::string path(const char* name) const { return folder_ + "/" + name; }
  // Backends of this build that pack for the model.
  static uint32_t packers() {
    uint32_t count = 0;
    for (const Backend* b : default_backends())
      count += std::string(b->name()) == "simd" || std::string(b->name()) == "xnnpack";
    return count;
  }
  static std::vector<float> run(const std::string& file) {
    Runner net = Runner::open(file.c_str());
    std::vector<float> x(kRows * kWidth);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 31) - 12;
    EXPECT_TRUE(net.set("x", x) && net.run()) << net.error();
    const auto y = net.get<float>("y");
    return {y.begin(), y.end()};
  }
  // Of a session that finds what the file has.
  static Requirements needs(const std::string& file) {
    FileMap map = std::move(FileMap::open(file.c_str()).value());
    const OpenOptions open{.kernels = reference_kernels()};
    const AlignedBytes memory(Model::open_bytes(map.bytes(), open).value());
    const Model model = Model::open(map.bytes(), memory.span(), open).value();
    return Session::requirements(model, {.backends = default_backends(), .packed_in_file = packed_in_file()})
        .value();
  }

  std::string folder_, model_;
};

TEST_F(PackFile, StoresWhatSessionsThenFind) {
  const std::vector<float> before = run(model_);
  EXPECT_GT(needs(model_).packed, 0u);
  const PackReport packed = pack_file(model_.c_str(), path("packed.sinter").c_str());
  ASSERT_TRUE(packed.ok()) << packed.text;
  EXPECT_EQ(packed.count, packers());
  EXPECT_EQ(packed.added, packers());
  EXPECT_GE(packed.bytes, static_cast<int64_t>(packers() * kWidth * kWidth * sizeof(float)));
  EXPECT_EQ(packed.file_bytes, contents(path("packed.sinter")).size());
  EXPECT_EQ(needs(path("packed.sinter")).packed, 0u);
  EXPECT_EQ(run(path("packed.sinter")), before);
  EXPECT_LT(needs(path("packed.sinter")).bytes, needs(model_).bytes);
}

TEST_F(PackFile, AddsNothingTwice) {
  ASSERT_TRUE(pack_file(model_.c_str(), model_.c_str()).ok());
  const std::vector<std::byte> once = contents(model_);
  const PackReport again = pack_file(model_.c_str(), model_.c_str());
  ASSERT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.added, 0u);
  EXPECT_EQ(again.count, packers());
  EXPECT_EQ(again.bytes, 0);
  EXPECT_EQ(contents(model_), once);
  ASSERT_TRUE(pack_file(model_.c_str(), path("packed.sinter").c_str()).ok());
  EXPECT_EQ(contents(path("packed.sinter")), once);
}

TEST_F(PackFile, HoldsThePackingsOfSeveralInstructionSets) {
  const char* lower = nullptr;
  for (const char* name : {"sse4", "neon"})
    if (set_simd_cap(name)) lower = name;
  set_simd_cap(nullptr);
  const std::string best = simd_target();
  if (lower == nullptr || best == lower) GTEST_SKIP() << "this machine has one instruction set";
  ASSERT_TRUE(pack_file(model_.c_str(), model_.c_str()).ok());
  set_simd_cap(lower);
  EXPECT_GT(needs(model_).packed, 0u);  // made for another instruction set
  const PackReport second = pack_file(model_.c_str(), model_.c_str());
  ASSERT_TRUE(second.ok()) << second.text;
  EXPECT_EQ(second.added, 1u);  // XNNPACK's are the same
  EXPECT_EQ(needs(model_).packed, 0u);
  set_simd_cap(nullptr);
  EXPECT_EQ(needs(model_).packed, 0u);
}

TEST_F(PackFile, RefusesWhatItCannotReadOrWrite) {
  const PackReport missing = pack_file(path("none.sinter").c_str(), model_.c_str());
  EXPECT_EQ(missing.code, Code::kInvalidArgument);
  EXPECT_THAT(missing.text, HasSubstr("none.sinter: "));
  const PackReport nowhere = pack_file(model_.c_str(), path("none/net.sinter").c_str());
  EXPECT_EQ(nowhere.code, Code::kInvalidArgument);
  EXPECT_THAT(nowhere.text, HasSubstr("none/net.sinter: the file cannot be written"));
  std::vector<std::byte> damaged = contents(model_);
  damaged[damaged.size() - 70] ^= std::byte{1};
  write(path("packed.sinter"), damaged);
  EXPECT_EQ(pack_file(path("packed.sinter").c_str(), model_.c_str()).code, Code::kCorrupt);
  EXPECT_EQ(pack_file(nullptr, nullptr).code, Code::kInvalidArgument);
  EXPECT_EQ(pack_file(model_.c_str(), model_.c_str(), {.threads = -1}).code, Code::kInvalidArgument);
  EXPECT_GT(needs(model_).packed, 0u);  // as it was
}

TEST_F(PackFile, LeavesOutWhatItPacks) {
  if (packers() == 0) GTEST_SKIP() << "this build packs nothing";
  const std::vector<float> before = run(model_);
  const std::string only = path("packed.sinter");
  const PackReport packed = pack_file(model_.c_str(), only.c_str(), {}, true);
  ASSERT_TRUE(packed.ok()) << packed.text;
  EXPECT_EQ(packed.count, packers());
  EXPECT_EQ(packed.left_out, packers());
  EXPECT_LT(packed.bytes, 8192);  // the form of kernels is padded
  EXPECT_EQ(packed.file_bytes, contents(only).size());
  EXPECT_EQ(needs(only).packed, 0u);
  EXPECT_EQ(run(only), before);
  const std::vector<std::byte> once = contents(only);
  const PackReport again = pack_file(only.c_str(), only.c_str(), {}, true);
  ASSERT_TRUE(again.ok()) << again.text;
  EXPECT_EQ(again.added + again.left_out, 0u);
  EXPECT_EQ(contents(only), once);
  // Sessions of a Runner, and what they share.
  Runner first = Runner::open(only.c_str()), second = first.another();
  EXPECT_TRUE(first.ok() && second.ok()) << first.error() << second.error();
}

TEST_F(PackFile, LeavesOutNothingThatOthersCouldRead) {
  if (packers() == 0) GTEST_SKIP() << "this build packs nothing";
  const std::string only = path("packed.sinter");
  ASSERT_TRUE(pack_file(model_.c_str(), only.c_str(), {}, true).ok());
  const Runner reference = Runner::open(only.c_str(), {.backend = "reference"});
  EXPECT_FALSE(reference.ok());
  EXPECT_THAT(reference.error(), HasSubstr("only as another machine, build, backend or plan packed them"));
  EXPECT_THAT(reference.error(), HasSubstr("step 0"));
  for (const char* name : {"sse4", "neon"}) {
    const std::string best = simd_target();
    if (!set_simd_cap(name) || simd_target() == best) continue;
    EXPECT_FALSE(Runner::open(only.c_str()).ok());
    EXPECT_EQ(pack_file(only.c_str(), model_.c_str()).code, Code::kUnsupported);
    set_simd_cap(nullptr);
  }
  EXPECT_TRUE(Runner::open(only.c_str()).ok());
}

// Kernels read narrow weights from the file's pages: nothing is packed, and nothing left out.
TEST_F(PackFile, KeepsWeightsThatAreReadInTheFile) {
  ModelBuilder b;
  b.backends = {"simd"};
  const int x = b.input("x", DType::kFloat32, {1, kWidth}), y = b.value(DType::kFloat32, {1, kWidth});
  const int w = b.constant<uint16_t>(DType::kFloat16, {kWidth, kWidth},
                                     std::vector<uint16_t>(kWidth * kWidth, 0x3c00));  // ones
  StepSpec& step = b.step(FullyConnectedAttrs{}, {x, w}, {y});
  step.candidates = {0};
  step.workspace = 1 << 17;
  b.output("y", y);
  write(model_, b.build().span());
  const PackReport packed = pack_file(model_.c_str(), path("packed.sinter").c_str(), {}, true);
  ASSERT_TRUE(packed.ok()) << packed.text;
  EXPECT_EQ(packed.count + packed.left_out, 0u);
  EXPECT_EQ(contents(path("packed.sinter")), contents(model_));
}

TEST_F(PackFile, IsOfferedToC) {
  sinter_error error;
  uint32_t count = 0;
  EXPECT_EQ(sinter_pack_file(path("none.sinter").c_str(), model_.c_str(), &count, &error),
            SINTER_INVALID_ARGUMENT);
  EXPECT_THAT(error.text, HasSubstr("none.sinter"));
  EXPECT_EQ(sinter_pack_file(nullptr, model_.c_str(), &count, &error), SINTER_INVALID_ARGUMENT);
  EXPECT_EQ(sinter_pack_file_packed_only(path("none.sinter").c_str(), model_.c_str(), &count, &error),
            SINTER_INVALID_ARGUMENT);
  ASSERT_EQ(sinter_pack_file_packed_only(model_.c_str(), path("packed.sinter").c_str(), &count, &error),
            SINTER_OK)
      << error.text;
  EXPECT_EQ(count, packers());
  EXPECT_LT(contents(path("packed.sinter")).size(), contents(model_).size() + 8192);
  ASSERT_EQ(sinter_pack_file(model_.c_str(), model_.c_str(), &count, &error), SINTER_OK) << error.text;
  EXPECT_EQ(count, packers());
  for (const char* name : {"net.sinter", "packed.sinter"}) {
    sinter_model* model = nullptr;
    ASSERT_EQ(sinter_model_open(path(name).c_str(), nullptr, &model, &error), SINTER_OK) << error.text;
    sinter_requirements needs = {};
    needs.size = sizeof(needs);
    ASSERT_EQ(sinter_session_requirements(model, nullptr, &needs, &error), SINTER_OK) << error.text;
    EXPECT_EQ(needs.packed, 0u);
    sinter_model_close(model);
  }
}

// A file in memory with a segment of the test's.
struct Stored {
  ModelBuilder builder = two_layers();
  AlignedBytes plain = builder.build(), file, memory;
  Model model;

  std::vector<std::byte> segment() {
    open(plain);
    const SessionOptions options{.backends = default_backends()};
    const AlignedBytes block(PackedWeights::requirements(model, options).value().bytes);
    return packed_segment(PackedWeights::create(model, block.span(), options).value());
  }
  void add(std::span<const std::byte> segment) {
    const std::vector<std::byte> bytes = with_packed_segment(plain.span(), segment);
    file = AlignedBytes(bytes.size());
    std::memcpy(file.data(), bytes.data(), bytes.size());
    open(file);
  }
  Result<Requirements> needs() const {
    return Session::requirements(model, {.backends = default_backends(), .packed_in_file = packed_in_file()});
  }

 private:
  void open(const AlignedBytes& bytes) {
    const OpenOptions options{.kernels = reference_kernels()};
    memory = AlignedBytes(Model::open_bytes(bytes.span(), options).value());
    model = Model::open(bytes.span(), memory.span(), options).value();
  }
};

TEST(PackedInFile, IsReadOnlyWhereAsked) {
  Stored s;
  s.add(s.segment());
  ASSERT_TRUE(s.needs().ok());
  EXPECT_EQ(s.needs()->packed, 0u);
  EXPECT_GT(Session::requirements(s.model, {.backends = default_backends()})->packed, 0u);
  EXPECT_TRUE(PackedWeights::in_file(s.model));
}

TEST(PackedInFile, OfDamagedRecordsIsRefused) {
  Stored s;
  const std::vector<std::byte> good = s.segment();
  const auto refused = [&](const char* what, auto change) {
    std::vector<std::byte> bytes = good;
    detail::StoredHead head;
    std::memcpy(&head, bytes.data(), sizeof(head));
    std::vector<detail::StoredPacking> records(static_cast<size_t>(head.count));
    std::memcpy(records.data(), bytes.data() + sizeof(head), records.size() * sizeof(records[0]));
    change(head, records);
    std::memcpy(bytes.data(), &head, sizeof(head));
    std::memcpy(bytes.data() + sizeof(head), records.data(), records.size() * sizeof(records[0]));
    s.add(bytes);
    const auto needs = s.needs();
    ASSERT_FALSE(needs.ok()) << what;
    EXPECT_EQ(needs.status().code, Code::kCorrupt) << what;
    EXPECT_EQ(PackedWeights::requirements(s.model, {.backends = default_backends()}).status().code,
              Code::kCorrupt)
        << what;
  };
  using Records = std::vector<detail::StoredPacking>;
  using Head = detail::StoredHead;
  refused("count", [](Head& h, Records&) { h.count = UINT64_MAX / 192; });
  refused("head", [](Head& h, Records&) { h.reserved = 1; });
  refused("hash", [](Head&, Records& r) { ++r[0].hash; });
  refused("place", [](Head&, Records& r) { r[0].offset = uint64_t{1} << 40; });
  refused("records as packing", [](Head&, Records& r) { r[0].offset = 0; });
  refused("alignment", [](Head&, Records& r) { r[0].offset += 4; });
  refused("size", [](Head&, Records& r) { r[0].bytes = UINT64_MAX - 63; });
  refused("no bytes", [](Head&, Records& r) { r[0].bytes = 0; });
  refused("layouts", [](Head&, Records& r) { r[0].layouts = 0; });
  refused("reserved", [](Head&, Records& r) { r[0].reserved = 1; });
  refused("name", [](Head&, Records& r) { std::memset(r[0].backend, 'a', sizeof(r[0].backend)); });
  refused("name of nothing", [](Head&, Records& r) { r[0].backend[0] = 0; });
  refused("behind the name", [](Head&, Records& r) { r[0].backend[15] = 'x'; });
  refused("parameters", [](Head&, Records& r) { ++r[0].parameters[2]; });
  detail::StoredHead all;
  std::memcpy(&all, good.data(), sizeof(all));
  if (all.count > 1) refused("order", [](Head&, Records& r) { std::reverse(r.begin(), r.end()); });
  s.add(std::vector<std::byte>(8));
  EXPECT_FALSE(s.needs().ok());
  s.add({});
  EXPECT_FALSE(s.needs().ok());
}

// Of another build, another processor or another model: it is not found.
TEST(PackedInFile, OfAnotherKeyIsNotUsed) {
  Stored s;
  std::vector<std::byte> bytes = s.segment();
  detail::StoredHead head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  for (uint64_t i = 0; i < head.count; ++i) {
    std::byte* at = bytes.data() + sizeof(head) + i * sizeof(detail::StoredPacking);
    detail::StoredPacking record;
    std::memcpy(&record, at, sizeof(record));
    ++record.layouts;
    std::memcpy(at, &record, sizeof(record));
  }
  s.add(bytes);
  const auto needs = s.needs();
  ASSERT_TRUE(needs.ok());
  EXPECT_GT(needs->packed, 0u);
}

// Any bytes are safe: they are numbers alone.
TEST(PackedInFile, OfAnyContentIsRun) {
  Stored s;
  std::vector<std::byte> bytes = s.segment();
  std::mt19937 random(1);
  detail::StoredHead head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  const size_t records = sizeof(head) + static_cast<size_t>(head.count) * sizeof(detail::StoredPacking);
  for (size_t i = records; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random());
  s.add(bytes);
  const SessionOptions options{.backends = default_backends(), .packed_in_file = packed_in_file()};
  const AlignedBytes memory(Session::requirements(s.model, options).value().bytes);
  Session session = std::move(Session::create(s.model, memory.span(), options).value());
  std::memset(session.input(0).data, 0x31, static_cast<size_t>(session.input(0).dense_bytes()));
  EXPECT_TRUE(session.run().ok());
  session.destroy();
}

}  // namespace
}  // namespace sinter::testing
