// Files written by earlier builds open and give what they gave: every build reads tests/format/corpus/.
// When the format grows, add files (SINTER_WRITE_CORPUS=1 writes the ones below); never change old ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "runtime/model/names.h"
#include "runtime/signature/signature.h"
#include "sinter/file_map.h"
#include "tests/common/source_dir.h"
#include "tests/format/sample_models.h"
#include "tests/unit/running.h"

namespace sinter::testing {
namespace {

using ::testing::ElementsAre;

std::filesystem::path path_of(const char* name) { return source_dir() / "tests/format/corpus" / name; }

// Opens a file of the corpus and creates its session.
struct FromFile {
  FileMap map;
  AlignedBytes model_memory, memory;
  Session session;

  FromFile(const char* name, ModelBuilder (*make)(), const SessionOptions& use = {}) {
    if (std::getenv("SINTER_WRITE_CORPUS") != nullptr) {
      const AlignedBytes file = make().build();
      std::ofstream(path_of(name), std::ios::binary)
          .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    }
    auto mapped = FileMap::open(path_of(name).c_str());
    EXPECT_TRUE(mapped.ok()) << name;
    if (!mapped.ok()) return;
    map = std::move(mapped.value());
    const OpenOptions options{.kernels = reference_kernels()};
    model_memory = AlignedBytes(Model::open_bytes(map.bytes(), options).value());
    auto model = Model::open(map.bytes(), model_memory.span(), options);
    EXPECT_TRUE(model.ok()) << model.status().message;
    if (!model.ok()) return;
    memory = AlignedBytes(Session::requirements(model.value(), use).value().bytes);
    auto created = Session::create(model.value(), memory.span(), use);
    EXPECT_TRUE(created.ok()) << created.status().message;
    if (created.ok()) session = std::move(created.value());
  }
};

TEST(Corpus, PlainModelOfVersion3) {
  FromFile f("v3_plain.sinter", plain_model);
  ASSERT_TRUE(f.session.valid());
  float* x = f.session.input("x").as<float>();
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i % 5) - 1;
  ASSERT_TRUE(f.session.run().ok());
  ASSERT_TRUE(f.session.run().ok());
  const TensorView y = f.session.output("y");
  ASSERT_EQ(y.size(), 15);
  // Pixel 1 is (1, 2): convolved 5, 11, 17, clamped 5, 6, 6; the state has doubled twice.
  EXPECT_THAT(std::vector<float>(y.as<float>(), y.as<float>() + 3), ElementsAre(9, 14, 18));
}

TEST(Corpus, ControlFlowOfVersion3) {
  FromFile f("v3_control.sinter", control_model);
  ASSERT_TRUE(f.session.valid());
  *f.session.input("n").as<int64_t>() = 2;
  f.session.input("x").as<float>()[0] = 1;
  f.session.input("x").as<float>()[1] = -2;
  ASSERT_TRUE(f.session.run().ok());
  const float* sums = f.session.output("sums").as<float>();
  EXPECT_THAT(std::vector<float>(sums, sums + 6), ElementsAre(2, -4, 3, -6, 0, 0));
  EXPECT_EQ(*f.session.output("trips").as<int64_t>(), 2);
}

// Without the backend, all of it runs in host memory on request.
TEST(Corpus, MemoriesOfVersion3) {
  FromFile f("v3_memories.sinter", memories_model, {.backend = "reference"});
  ASSERT_TRUE(f.session.valid());
  float* x = f.session.input("x").as<float>();
  for (int i = 0; i < 6; ++i) x[i] = static_cast<float>(i) - 2;
  ASSERT_TRUE(f.session.run().ok());
  const float* y = f.session.output("y").as<float>();
  EXPECT_THAT(std::vector<float>(y, y + 6), ElementsAre(-4, -2, 0, -2, -4, -6));
}

TEST(Corpus, LengthsOfVersion3) {
  FromFile f("v3_lengths.sinter", lengths_model);
  ASSERT_TRUE(f.session.valid());
  const std::vector<float> x = {1, 2, 3, 4};
  const int64_t two[] = {2, 2}, none[] = {2, 0};
  for (const uint32_t i : {0, 1})
    ASSERT_TRUE(f.session.write_input(i, std::as_bytes(std::span(x)), two).ok());
  ASSERT_TRUE(f.session.write_input(2, {}, none).ok());
  ASSERT_TRUE(f.session.run().ok());
  std::vector<float> y(4);
  ASSERT_TRUE(f.session.read_output(0, std::as_writable_bytes(std::span(y))).ok());
  EXPECT_THAT(y, ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(f.session.output_length(1, 1), 0);
  EXPECT_EQ(f.session.output("m").as<int64_t>()[3], 2);
}

TEST(Corpus, BodiesInMemoriesOfVersion3) {
  FromFile f("v3_bodies.sinter", bodies_model, {.backend = "reference"});
  ASSERT_TRUE(f.session.valid());
  *f.session.input("n").as<int64_t>() = 2;
  float* x = f.session.input("x").as<float>();
  for (int i = 0; i < 4; ++i) x[i] = static_cast<float>(i) - 2;
  ASSERT_TRUE(f.session.run().ok());
  const float *y = f.session.output("y").as<float>(), *all = f.session.output("all").as<float>();
  EXPECT_THAT(std::vector<float>(y, y + 4), ElementsAre(2, 1, 0, 3));
  EXPECT_THAT(std::vector<float>(all, all + 12), ElementsAre(4, 2, 0, 2, 2, 1, 0, 3, 0, 0, 0, 0));
}

// As on a machine that only the second profile is planned for.
TEST(Corpus, ProfilesOfVersion3) {
  FromFile f("v3_profiles.sinter", portable_profiles_model);
  ASSERT_TRUE(f.session.valid());
  EXPECT_EQ(f.session.profile(), 1u);
  *f.session.input("choice").as<bool>() = true;
  float* x = f.session.input("x").as<float>();
  for (int i = 0; i < 4; ++i) x[i] = static_cast<float>(i);
  ASSERT_TRUE(f.session.run().ok());
  const float* y = f.session.output("y").as<float>();
  EXPECT_THAT(std::vector<float>(y, y + 4), ElementsAre(1, 3, 5, 7));
}

TEST(Corpus, ShapeSetsOfVersion3) {
  FromFile f("v3_shapes.sinter", shapes_model, {.entry = 1});
  ASSERT_TRUE(f.session.valid());
  EXPECT_EQ(f.session.input("x").size(), 4096);
}

// As the converter wrote it when names were strings, and placements had bytes and live ranges.
TEST(Corpus, NamesOfVersion3) {
  const auto map = FileMap::open(path_of("v3_names.sinter").c_str());
  ASSERT_TRUE(map.ok());
  const OpenOptions options{.kernels = reference_kernels()};
  AlignedBytes memory(Model::open_bytes(map->bytes(), options).value());
  const auto model = Model::open(map->bytes(), memory.span(), options);
  ASSERT_TRUE(model.ok()) << model.status().message;
  const fb::Model& root = *model->state()->root;
  const fb::Program& program = *root.programs()->Get(0);
  EXPECT_STREQ(model->step_name(2), "node_conv");
  EXPECT_STREQ(detail::step_origin(root, program, 2), "Conv");
  const auto result = static_cast<uint32_t>(program.steps()->Get(2)->outputs()->Get(0));
  EXPECT_STREQ(detail::value_name(root, program, result), "relu");
  EXPECT_STREQ(detail::value_order(root, program, result), "0 2 3 1");
}

// Nothing was released before version 3.
TEST(Corpus, OlderVersionsAreRefusedWithTheRemedy) {
  for (const auto& [name, version] : {std::pair{"v1_plain.sinter", 1}, {"v2_signed.sinter", 2}}) {
    const auto map = FileMap::open(path_of(name).c_str());
    ASSERT_TRUE(map.ok());
    const Status status = Model::open_bytes(map.value().bytes()).status();
    EXPECT_EQ(status.code, Code::kUnsupported);
    char text[256];
    format_status(status, text);
    EXPECT_THAT(text, ::testing::HasSubstr("the file has format version " + std::to_string(version) +
                                           " and this build reads 3; convert the model again"));
  }
}

TEST(FileMap, CopiesWhatMayThenGo) {
  const std::string path = ::testing::TempDir() + "sinter_copied_" + std::to_string(getpid());
  const std::string text(10000, 'x');
  std::ofstream(path) << text;
  auto mapped = FileMap::open(path.c_str());
  auto copied = FileMap::open(path.c_str(), FileMap::Mode::kCopied);
  ASSERT_TRUE(mapped.ok() && copied.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copied->bytes().data()) % kBufferAlignment, 0u);
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  const auto last = [](const FileMap& m) {
    return *static_cast<const volatile std::byte*>(&m.bytes().back());
  };
  EXPECT_EQ(last(*copied), std::byte{'x'});
  EXPECT_DEATH((void)last(*mapped), "") << "as file_map.h states";
  auto empty = FileMap::open(path.c_str(), FileMap::Mode::kCopied);
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->bytes().empty());
  unlink(path.c_str());
}

// v3_plain.sinter, signed with a key that no longer exists. Where this build cannot check signatures, it
// opens only for those who waive the digests, and never for those who give a key.
TEST(Corpus, SignedModelOfVersion3) {
  constexpr uint8_t kKey[32] = {0x3e, 0xd9, 0xb2, 0x6a, 0x0e, 0xb9, 0x9a, 0x27, 0xdb, 0x27, 0x9b,
                                0x20, 0xeb, 0x51, 0xba, 0x7b, 0x35, 0x37, 0x77, 0x11, 0x62, 0xf3,
                                0x2e, 0x28, 0x9d, 0xb5, 0x12, 0x1e, 0xcb, 0xc9, 0x2b, 0xad};
  const auto map = FileMap::open(path_of("v3_signed.sinter").c_str());
  ASSERT_TRUE(map.ok());
  const AlignedBytes memory(1 << 16);
  const auto code = [&](bool check_digests, std::span<const uint8_t> key) {
    const OpenOptions options{
        .kernels = reference_kernels(), .check_digests = check_digests, .public_key = key};
    return Model::open(map.value().bytes(), memory.span(), options).status().code;
  };
  const Code expected = signature::available() ? Code::kOk : Code::kUnsupported;
  EXPECT_EQ(code(true, {}), expected);
  EXPECT_EQ(code(false, {}), Code::kOk);
  EXPECT_EQ(code(true, kKey), expected);
  EXPECT_EQ(code(false, kKey), expected);
}

TEST(FileMap, ReportsWhatIsWrong) {
  EXPECT_EQ(FileMap::open("/", FileMap::Mode::kCopied).status().code, Code::kInvalidArgument);
  EXPECT_EQ(FileMap::open("/nonexistent/file").status().code, Code::kInvalidArgument);
  EXPECT_EQ(FileMap::open("/").status().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace sinter::testing
