// LowBitFullyConnected with weights that are indices into a table, in every format that has one.
#include <cmath>

#include "runtime/core/weight_format.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

const RunOptions kTableTaken{.taken_by = {"simd"}};
const RunOptions kAnyTable{};

// Of all significant bits, with both signs and a zero in their midst, as NF4 has them.
Tensor nf4() {
  return tensor<float>({16}, {-1.0f, -0.6961928f, -0.525073051f, -0.394917488f, -0.284441382f, -0.18477343f,
                              -0.0910500363f, 0.0f, 0.0795802996f, 0.160930201f, 0.246112302f, 0.337915242f,
                              0.440709829f, 0.562617004f, 0.722956836f, 1.0f});
}

// Calls f(format) for those of schemas/weight_formats.def that have a table.
template <class F>
void for_table_formats(const F& f) {
  for (const WeightFormat& format : kWeightFormats) {
    SCOPED_TRACE(testing::Message() << int{format.bits} << " bits");
    if (format.has_table()) f(format);
  }
}
LowBitFullyConnectedAttrs attrs_of(WeightFormat f, int64_t block) {
  return {.block_size = block, .bits = f.attribute()};
}

Tensor places_of(const Shape& dims, uint64_t seed) {
  return {DType::kUint4, dims, noise<uint8_t>({(dims[0] * dims[1] + 1) / 2}, 0, 256, seed).bytes};
}
// Rows of `depth` codes.
Tensor places_of(WeightFormat f, int64_t rows, int64_t depth, uint64_t seed) {
  if (!f.in_planes()) return places_of({rows, depth}, seed);
  return noise<uint8_t>({rows, f.row_elements(depth)}, 0, 256, seed);
}
int place(WeightFormat f, const Tensor& w, int64_t depth, int64_t row, int64_t column) {
  return static_cast<int>(
      weight_code(f, reinterpret_cast<const uint8_t*>(w.bytes.data()), depth, row, column));
}
int place(const Tensor& w, int64_t row, int64_t column) {
  return place(weight_format(4, CodeKind::kTable), w, w.dims[1], row, column);
}

TEST(LowBitTables, Sizes) {
  // Rows, columns, depth, block: as of LowBitFloats.Sizes, and tiles of CUDA's.
  const int64_t sizes[][4] = {{1, 1, 2, 2},       {1, 9, 64, 32},   {2, 33, 96, 16},   {3, 70, 640, 128},
                              {4, 5, 90, 32},     {1, 7, 50, 1000}, {5, 7, 34, 16},    {6, 65, 96, 32},
                              {50, 130, 600, 24}, {7, 3, 1030, 4},  {1, 0, 32, 32},    {2, 3, 2050, 64},
                              {0, 3, 32, 32},     {1, 40, 62, 34},  {3, 6, 1032, 512}, {1, 13, 4160, 64},
                              {1, 5, 4096, 4096}, {2, 7, 51, 13},   {9, 7, 51, 13},    {1, 7, 333, 333},
                              {66, 130, 24, 32},  {9, 40, 288, 96}};
  for_table_formats([&](WeightFormat format) {
    for (const auto& [m, n, k, block] : sizes) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " by " << block);
      const int64_t unit = format.unit();
      const bool whole_bytes = (format.in_planes() || k % unit == 0) && (block >= k || block % unit == 0);
      const Tensor x = noise<float>({m, k}, -1, 1, 1),
                   s = noise<float>({n, (k + block - 1) / block}, 0.05, 0.1, 2),
                   w = places_of(format, n, k, 4);
      RunOptions taken = whole_bytes ? kTableTaken : kAnyTable;
      taken.emulated = m * n * k <= 1 << 18;
      LowBitFullyConnectedAttrs a = attrs_of(format, block);
      run_op(a, {x, w, s, {}, {}, nf4()}, taken);
      a.act_min = -0.5, a.act_max = 0.25;
      run_op(a, {x, w, s, {}, noise<float>({n}, -1, 1, 3), nf4()}, taken);
    }
  });
}

// Rows of x with a single 1: the number itself, to the last bit, at every place of a vector.
TEST(LowBitTables, EveryNumberAtEveryPlace) {
  constexpr int64_t kDepth = 136, kColumns = 20;
  const std::vector<float> table = nf4().values<float>();
  for_table_formats([&](WeightFormat format) {
    const Tensor w = places_of(format, kColumns, kDepth, 4);
    for (const int64_t rows : {1, 3, 8})
      for (int64_t first = 0; first < kDepth; first += rows) {
        std::vector<float> x(static_cast<size_t>(rows * kDepth));
        for (int64_t r = 0; r < rows; ++r) x[static_cast<size_t>(r * kDepth + (first + r) % kDepth)] = 1;
        const std::vector<float> y =
            run_op(attrs_of(format, 24),
                   {tensor<float>({rows, kDepth}, x), w, full<float>({kColumns, 6}, 1), {}, {}, nf4()},
                   kTableTaken)[0]
                .values<float>();
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t n = 0; n < kColumns; ++n)
            ASSERT_EQ(y[static_cast<size_t>(r * kColumns + n)],
                      table[static_cast<size_t>(place(format, w, kDepth, n, (first + r) % kDepth))])
                << rows << " rows, place " << first + r << ", column " << n;
      }
  });
}

TEST(LowBitTables, Scales) {
  for (const DType scale : {DType::kFloat16, DType::kBFloat16, DType::kFloat8E8M0, DType::kFloat8E4M3FN})
    for (const int64_t block : {16, 64, 320})
      for (const int64_t rows : {1, 2, 9}) {
        SCOPED_TRACE(testing::Message() << dtype_name(scale) << " by " << block << " " << rows);
        const Shape dims{9, 320 / block};
        const Tensor s = byte_width(scale) == 2 ? halved(noise<float>(dims, 0.05, 0.1, 2), scale)
                                                : Tensor{scale, dims, noise<uint8_t>(dims, 40, 120, 2).bytes};
        run_op(LowBitFullyConnectedAttrs{.block_size = block},
               {noise<float>({rows, 320}, -1, 1, 1), places_of({9, 320}, 4), s, {}, {}, nf4()}, kTableTaken);
      }
}

// A number that is not finite counts where a weight has it, and not where vectors are filled up.
TEST(LowBitTables, NumbersThatAreNotFinite) {
  for (const size_t at : {size_t{0}, size_t{5}, size_t{15}})
    for (const float number : {kInf, -kInf, kNan})
      for (const int64_t rows : {1, 3, 8, 9})
        for (const auto& [depth, block] : {std::pair<int64_t, int64_t>{70, 10}, {70, 70}, {64, 32}}) {
          SCOPED_TRACE(testing::Message()
                       << number << " at " << at << ", " << rows << " x " << depth << " by " << block);
          std::vector<float> table = nf4().values<float>();
          table[at] = number;
          // One column of seven has it.
          Tensor w = places_of({7, depth}, 4);
          for (int64_t n = 0; n < 7; ++n)
            for (int64_t k = 0; k < depth; ++k)
              if (place(w, n, k) == static_cast<int>(at) && (n != 3 || k != depth - 1))
                w.bytes[static_cast<size_t>((n * depth + k) / 2)] ^= std::byte{1}
                                                                     << ((n * depth + k) % 2 * 4);
          const int64_t last = 4 * depth - 1, shift = last % 2 * 4;
          std::byte& b = w.bytes[static_cast<size_t>(last / 2)];
          b = (b & ~(std::byte{15} << shift)) | static_cast<std::byte>(at) << shift;
          const std::vector<float> y =
              run_op(LowBitFullyConnectedAttrs{.block_size = block},
                     {noise<float>({rows, depth}, 0.5, 1, 1),
                      w,
                      noise<float>({7, depth / block + (depth % block != 0 ? 1 : 0)}, 0.5, 1, 2),
                      {},
                      {},
                      tensor<float>({16}, table)},
                     kTableTaken)[0]
                  .values<float>();
          for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isfinite(y[i]), i % 7 != 3) << i;
        }
  // Infinities of x, times numbers that are all positive.
  for (const int64_t rows : {2, 8}) {
    std::vector<float> x(static_cast<size_t>(rows) * 64, 1);
    for (size_t r = 0; r < x.size(); r += 128) x[r + 3] = kInf, x[r + 64 + 3] = kNan;
    const std::vector<float> y = run_op(LowBitFullyConnectedAttrs{.block_size = 32},
                                        {tensor<float>({rows, 64}, x),
                                         places_of({5, 64}, 4),
                                         full<float>({5, 2}, 0.5f),
                                         {},
                                         {},
                                         noise<float>({16}, 0.5, 1, 5)},
                                        kTableTaken)[0]
                                     .values<float>();
    for (size_t i = 0; i < y.size(); ++i) EXPECT_TRUE(i % 10 < 5 ? y[i] == kInf : std::isnan(y[i])) << y[i];
  }
}

TEST(LowBitTables, SixteenBitsBesideTheTable) {
  for (const DType t : {DType::kFloat16, DType::kBFloat16})
    for (const int64_t rows : {1, 9})
      run_op(LowBitFullyConnectedAttrs{.block_size = 32},
             {halved(noise<float>({rows, 96}, -1, 1, 1), t),
              places_of({9, 96}, 4),
              halved(noise<float>({9, 3}, 0.05, 0.1, 2), t),
              {},
              halved(noise<float>({9}, -1, 1, 3), t),
              nf4()},
             kAnyTable);
}

TEST(LowBitTables, Refusals) {
  const Tensor x = noise<float>({2, 32}, -1, 1, 1), w = places_of({4, 32}, 4), s = full<float>({4, 1}, 1);
  const LowBitFullyConnectedAttrs a;
  std::vector<TensorView> views;
  ASSERT_TRUE(infer_op(a, {x, w, s, {}, {}, nf4()}, &views).ok());
  expect_refused(a, {x, w, s, {DType::kUint4, {4, 1}, full<uint8_t>({2}, 0x11).bytes}, {}, nf4()});
  expect_refused(a, {x, w, s, full<float>({4, 1}, 1), {}, nf4()});
  expect_refused(a, {x, {DType::kInt4, {4, 32}, w.bytes}, s, {}, {}, nf4()});
  expect_refused(a, {x, {DType::kFloat4E2M1, {4, 32}, w.bytes}, s, {}, {}, nf4()});
  expect_refused(a, {x, noise<uint8_t>({4, 32}, 0, 16, 4), s, {}, {}, nf4()});
  expect_refused(a, {x, w, s, {}, {}, full<float>({15}, 1)});
  expect_refused(a, {x, w, s, {}, {}, full<float>({17}, 1)});
  expect_refused(a, {x, w, s, {}, {}, full<float>({1, 16}, 1)});
  expect_refused(a, {x, w, s, {}, {}, halved(nf4(), DType::kFloat16)});
  expect_refused(a, {x, w, s, {}, {}, full<double>({16}, 1)});
  expect_refused(LowBitFullyConnectedAttrs{.activation_bits = 8}, {x, w, s, {}, {}, nf4()});
  expect_refused(LowBitFullyConnectedAttrs{.bits = 3},
                 {x, noise<uint8_t>({4, 12}, 0, 255, 4), s, {}, {}, nf4()});
}

}  // namespace
}  // namespace sinter::test
