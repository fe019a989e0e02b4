// A planned model in memory runs as its file does, with large constants in the pages in which they are
// already.
#include "converter/emit/mapped_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "converter/emit/emitter.h"
#include "converter/plan/planner.h"
#include "sinter/file_map.h"
#include "sinter/sinter.h"
#include "tests/format/model_builder.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

constexpr int64_t kWide = 700, kNarrow = 5;

ConstantPtr weights(int64_t rows, int64_t columns) {
  std::vector<float> w(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i * 104729 % 1009) / 1009.0f - 0.5f;
  return Constant::of<float>(DType::kFloat32, {rows, columns}, w);
}

// y = (x a) b, where only b's products are few; without constants: y = relu(x).
PlannedModel planned(const ConstantPtr& large, const ConstantPtr& small) {
  testing::Sketch s;
  const ValueId x = s.input({2, kWide});
  s.graph.value(x).name = "x";
  ClampAttrs relu;
  relu.min = 0;
  ValueId y = s.emit(relu, {x});
  for (const ConstantPtr& w : {large, small})
    if (w) y = s.emit(FullyConnectedAttrs{}, {y, s.graph.add_constant(w)});
  s.output(y, "y");
  return plan_model(std::make_shared<Graph>(s.graph), {});
}

std::vector<float> run(std::span<const std::byte> file, bool check_digests) {
  const OpenOptions options{.kernels = reference_kernels(), .check_digests = check_digests};
  const Result<size_t> bytes = sinter::Model::open_bytes(file, options);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message;
  if (!bytes.ok()) return {};
  const sinter::testing::AlignedBytes memory(*bytes);
  const Result<sinter::Model> model = sinter::Model::open(file, memory.span(), options);
  EXPECT_TRUE(model.ok()) << model.status().message;
  if (!model.ok()) return {};
  const sinter::testing::AlignedBytes own(Session::requirements(*model, {}).value().bytes);
  auto session = Session::create(*model, own.span(), {});
  EXPECT_TRUE(session.ok());
  const TensorView x = session->input("x");
  for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(i % 17) - 8;
  EXPECT_TRUE(session->run().ok());
  const TensorView y = session->output("y");
  std::vector<float> result(y.as<float>(), y.as<float>() + y.size());
  session->destroy();
  return result;
}

std::vector<float> run_file(const PlannedModel& plan) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / "sinter_mapped_model_test.sinter";
  emit_model(plan, path);
  std::vector<float> result;
  {
    const auto file = FileMap::open(path.c_str(), FileMap::Mode::kCopied);
    EXPECT_TRUE(file.ok());
    result = run(file->bytes(), true);
  }
  std::filesystem::remove(path);
  return result;
}

HeldBytes where_it_is(const ConstantPtr& constant) {
  const LoadedBytes loaded = constant->load();
  return {loaded.owner, loaded.bytes};
}

// Where the bytes are in the model, from a page on.
std::span<const std::byte> found(std::span<const std::byte> model, std::span<const std::byte> bytes) {
  const size_t first = align_up(reinterpret_cast<uintptr_t>(model.data()), page_bytes()) -
                       reinterpret_cast<uintptr_t>(model.data());
  for (size_t at = first; at + bytes.size() <= model.size(); at += page_bytes())
    if (std::memcmp(model.data() + at, bytes.data(), bytes.size()) == 0)
      return model.subspan(at, bytes.size());
  return {};
}

TEST(MappedModel, RunsAsItsFile) {
  const ConstantPtr heap = weights(kWide, kWide), small = weights(kNarrow, kWide);
  const auto held = copy_to_pages(heap->load().bytes);
  ASSERT_TRUE(held);
  const ConstantPtr pages = Constant::mapped(DType::kFloat32, heap->dims(), held->owner, held->bytes);
  ASSERT_GE(heap->byte_size(), kLargeConstantBytes);
  for (const ConstantPtr& large : {heap, pages, ConstantPtr()})
    for (const ConstantPtr& other : {small, ConstantPtr()}) {
      const PlannedModel plan = planned(large, other);
      const MappedModel model(plan, where_it_is);
      const std::vector<float> wanted = run_file(plan);
      ASSERT_FALSE(wanted.empty());
      EXPECT_EQ(run(model.bytes(), false), wanted);
      release_all_file_pages();
      EXPECT_EQ(run(model.bytes(), false), wanted);
      if (!large) continue;
      const auto there = found(model.bytes(), held->bytes);
      ASSERT_FALSE(there.empty());
      EXPECT_EQ(begins_at_page(there), large == pages);  // what is copied belongs to no file
    }
}

}  // namespace
}  // namespace sinter::convert
