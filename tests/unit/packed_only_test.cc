// Files without the constants that packings replace: what they lack, which sessions run them, and which are
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/packing_backend.h"

namespace sinter::testing {
namespace {

// A model's file as PackedOnlyFile writes it for a backend, opened.
struct OnlyPacked {
  AlignedBytes file, model_memory, memory;
  Model model;
  uint32_t left_out = 0;
  size_t plain_bytes = 0;

  OnlyPacked(ModelBuilder& b, Backend& backend) { write(b, backend); }
  void write(ModelBuilder& b, Backend& backend) {
    Backend* const backends[] = {&backend};
    const SessionOptions options{.backends = backends, .entry = kEveryEntry};
    const AlignedBytes plain = b.build();
    plain_bytes = plain.size();
    AlignedBytes opened_memory;
    const Model from = open(plain, &opened_memory);
    Block block(from, options);
    const AlignedBytes room(PackedOnlyFile::bytes(from));
    const auto only = PackedOnlyFile::create(from, *block.packed, options, room.span());
    ASSERT_TRUE(only.ok()) << only.status().message;
    left_out = only->count();
    std::vector<std::byte> bytes;
    const auto put = [](void* to, std::span<const std::byte> piece) {
      auto& all = *static_cast<std::vector<std::byte>*>(to);
      all.insert(all.end(), piece.begin(), piece.end());
      return ok_status();
    };
    ASSERT_TRUE(only->write(put, &bytes).ok());
    file = AlignedBytes(bytes.size());
    std::memcpy(file.data(), bytes.data(), bytes.size());
    model = open(file, &model_memory);
  }
  Status status(const SessionOptions& options) const {
    return Session::requirements(model, options).status();
  }
  // Of x = 1, in a session that packs nothing.
  float run(CountingBackend& backend, uint32_t entry = 0) {
    Backend* const backends[] = {&backend};
    const SessionOptions options{.backends = backends, .entry = entry, .packed_in_file = packed_in_file()};
    const auto needs = Session::requirements(model, options);
    EXPECT_TRUE(needs.ok()) << needs.status().message;
    if (!needs.ok()) return 0;
    EXPECT_EQ(needs->packed, 0u);
    memory = AlignedBytes(needs->bytes);
    Session session = std::move(Session::create(model, memory.span(), options).value());
    for (int64_t i = 0; i < session.input(0).size(); ++i) session.input(0).as<float>()[i] = 1;
    EXPECT_TRUE(session.run().ok());
    const float result = session.output(0).as<float>()[0];
    session.destroy();
    return result;
  }

 private:
  static Model open(const AlignedBytes& bytes, AlignedBytes* memory) {
    const OpenOptions options{.kernels = reference_kernels()};
    *memory = AlignedBytes(Model::open_bytes(bytes.span(), options).value());
    const auto opened = Model::open(bytes.span(), memory->span(), options);
    EXPECT_TRUE(opened.ok()) << opened.status().message;
    return opened.ok() ? *opened : Model();
  }
};

CountingBackend storing() {
  CountingBackend backend;
  backend.layouts = 77;
  return backend;
}

TEST(PackedOnly, SessionsNeedNoConstant) {
  ModelBuilder b = chain(3, {0, 1, 0, 2});
  CountingBackend backend = storing();
  OnlyPacked only(b, backend);
  EXPECT_EQ(only.left_out, 3u);
  backend.packed = 0;
  EXPECT_EQ(only.run(backend), 2 * 3 * 2 * 4);
  EXPECT_EQ(backend.packed, 0);
}

// Every session that would read a constant is refused before it reads anything, with the step.
TEST(PackedOnly, OthersAreRefused) {
  ModelBuilder b = chain(2, {0, 1});
  CountingBackend backend = storing();
  OnlyPacked only(b, backend);
  Backend* const backends[] = {&backend};
  SessionOptions options{.backends = backends};
  const auto refused = [&](const char* part) {
    const Status status = only.status(options);
    EXPECT_EQ(status.code, Code::kUnsupported);
    EXPECT_EQ(status.where, Where::kStep);
    EXPECT_EQ(status.index, 0);
    EXPECT_THAT(status.message, ::testing::HasSubstr(part));
  };
  refused("packed_in_file");
  options.packed_in_file = packed_in_file();
  EXPECT_TRUE(only.status(options).ok());
  options.backend = "reference";
  refused("another machine");
  options.backend = nullptr;
  options.backends = {};
  refused("another machine");
  options.backends = backends;
  backend.layouts = 78;
  refused("another machine");
  EXPECT_EQ(PackedWeights::requirements(only.model, options).status().code, Code::kUnsupported);
  backend.layouts = 77;
  backend.negates = true;
  refused("another machine");
  backend.negates = false;
  Block block(only.model, {.backends = backends});
  ASSERT_TRUE(block.packed.ok());
  options.packed_in_file = nullptr;
  options.packed_weights = &*block.packed;
  EXPECT_TRUE(only.status(options).ok());
}

TEST(PackedOnly, WhatIsReadUnpackedStays) {
  ModelBuilder b;
  b.backends = {"packing"};
  const int x = b.input("x", DType::kFloat32, {kLength});
  const std::vector<float> data(kLength, 3.0f);
  const int both = b.constant<float>(DType::kFloat32, {kLength}, data),
            added = b.constant<float>(DType::kFloat32, {kLength}, std::vector<float>(kLength, 5.0f)),
            packed = b.constant<float>(DType::kFloat32, {kLength}, std::vector<float>(kLength, 7.0f)),
            out = b.constant<float>(DType::kFloat32, {kLength}, data);
  int v = x;
  const auto step = [&](auto attrs, int c) {
    const int y = b.value(DType::kFloat32, {kLength});
    b.step(attrs, {v, c}, {y}).candidates = {0};
    v = y;
  };
  step(MulAttrs{}, both), step(AddAttrs{}, both), step(AddAttrs{}, added), step(MulAttrs{}, packed);
  step(MulAttrs{}, out);
  b.output("y", v);
  b.output("c", out);
  CountingBackend backend = storing();
  OnlyPacked only(b, backend);
  EXPECT_EQ(only.left_out, 1u);
  EXPECT_EQ(only.run(backend), ((1 * 3 + 3) + 5) * 7 * 3);
}

TEST(PackedOnly, WhatIsWidenedForPackingGoesAsWell) {
  for (const bool also_read : {false, true}) {
    ModelBuilder b;
    b.backends = {"packing"};
    const int x = b.input("x", DType::kFloat32, {kLength});
    const int narrow = b.constant<int8_t>(DType::kInt8, {kLength}, std::vector<int8_t>(kLength, 3)),
              scale = b.constant<float>(DType::kFloat32, {kLength}, std::vector<float>(kLength, 0.5f));
    const int wide = b.value(DType::kFloat32, {kLength}, fb::ValueKind::Prepared),
              scaled = b.value(DType::kFloat32, {kLength}, fb::ValueKind::Prepared);
    b.prepare(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {narrow}, {wide});
    b.prepare(MulAttrs{}, {wide, scale}, {scaled});
    const int y = b.value(DType::kFloat32, {kLength}), z = b.value(DType::kFloat32, {kLength});
    b.step(MulAttrs{}, {x, scaled}, {y}).candidates = {0};
    b.step(AddAttrs{}, {y, also_read ? wide : x}, {z}).candidates = {0};
    b.output("z", z);
    CountingBackend backend = storing();
    OnlyPacked only(b, backend);
    EXPECT_EQ(only.left_out, also_read ? 1u : 2u);  // the scale is read for what is packed alone
    EXPECT_EQ(only.run(backend), 1.5f + (also_read ? 3 : 1));
  }
}

// A backend that packs in another way where it has the constant's data would not find what it packed.
TEST(PackedOnly, WhatABackendReadsBeforePackingStays) {
  ModelBuilder b = chain(2, {0, 1});
  CountingBackend backend = storing();
  backend.reads_data = true;
  OnlyPacked only(b, backend);
  EXPECT_EQ(only.left_out, 0u);
  EXPECT_EQ(only.run(backend), 6);
}

// What is packed in this process alone is not in the file.
TEST(PackedOnly, WhatCannotBeStoredStays) {
  ModelBuilder b = chain(2, {0, 1});
  CountingBackend backend;
  OnlyPacked only(b, backend);
  EXPECT_EQ(only.left_out, 0u);
  EXPECT_EQ(only.file.size(), only.plain_bytes);
}

// A file of shape sets lacks what all of them read packed.
TEST(PackedOnly, EntriesReadWhatTheFileHas) {
  ModelBuilder b = chain(2, {0, 1});
  const int32_t own = b.add_constant<float>(DType::kFloat32, {kLength}, std::vector<float>(kLength, 7.0f));
  b.enter(1);
  const int x = b.input("x", DType::kFloat32, {2, kLength});
  int v = x;
  const auto step = [&](auto attrs, int32_t constant) {
    const int w = b.value(DType::kFloat32, {kLength}, fb::ValueKind::Constant);
    b.program().values.back().constant = constant;
    const int y = b.value(DType::kFloat32, {2, kLength});
    b.step(attrs, {v, w}, {y}).candidates = {};
    v = y;
  };
  step(AddAttrs{}, 1), step(AddAttrs{}, own);
  b.output("y", v);
  b.enter(0);
  b.profiles[0].entries = {0, 1};
  CountingBackend backend = storing();
  OnlyPacked only(b, backend);
  EXPECT_EQ(only.left_out, 1u);  // the first set's own
  EXPECT_EQ(only.run(backend, 0), 6);
  EXPECT_EQ(only.run(backend, 1), 1 + 3 + 7);
}

TEST(PackedOnly, FilesOfSeveralTargetsAreRefused) {
  ModelBuilder b = chain(1, {0});
  b.profiles.emplace_back().name = "other";
  CountingBackend backend = storing();
  Backend* const backends[] = {&backend};
  const SessionOptions options{.backends = backends, .entry = kEveryEntry};
  Running r(b, {.backends = backends});
  ASSERT_RUNNING(r);
  Block block(r.model, options);
  const AlignedBytes room(PackedOnlyFile::bytes(r.model));
  EXPECT_EQ(PackedOnlyFile::create(r.model, *block.packed, options, room.span()).status().code,
            Code::kUnsupported);
  EXPECT_EQ(PackedOnlyFile::create(Model(), *block.packed, options, room.span()).status().code,
            Code::kInvalidArgument);
}

TEST(PackedOnly, TooLittleMemoryIsRefused) {
  ModelBuilder b = chain(9, {0});
  CountingBackend backend = storing();
  Backend* const backends[] = {&backend};
  const SessionOptions options{.backends = backends};
  Running r(b, options);
  ASSERT_RUNNING(r);
  Block block(r.model, options);
  const AlignedBytes room(PackedOnlyFile::bytes(r.model));
  EXPECT_EQ(PackedOnlyFile::create(r.model, *block.packed, options, room.span().first(100)).status().code,
            Code::kOutOfMemory);
}

}  // namespace
}  // namespace sinter::testing
