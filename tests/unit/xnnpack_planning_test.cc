// What XNNPACK's planning side accepts follows from the target, whatever machine converts.
#include <gtest/gtest.h>

#include <tuple>
#include <utility>
#include <vector>

#include "platforms/xnnpack/planning/accept.h"
#include "platforms/xnnpack/platform.h"

namespace sinter::xnnpack::testing {
namespace {

using Dims = std::vector<int64_t>;

constexpr Target kX86{.architecture = Architecture::kX86_64};
constexpr Target kArm64{.architecture = Architecture::kAarch64};
constexpr Target kArm32{.architecture = Architecture::kArmv7};

TensorView shaped(DType dtype, const Dims& dims, bool constant = false) {
  TensorView v;
  v.dtype = dtype, v.constant = constant;
  v.set_shape(dims);
  return v;
}

struct Call {
  std::vector<TensorView> in, out;
  OpCall operator()(Op op, const void* attributes) { return {op, attributes, in, out}; }
};

// 20 channels of an image of 8 rows and 8 columns, or weights for them; [5, 20] of a fully connected layer.
template <class A>
Call integers() {
  Call c;
  const auto weights = [&](const Dims& x, const Dims& w, const Dims& y) {
    c.in = {shaped(DType::kInt8, x), shaped(DType::kInt8, w, true), shaped(DType::kInt32, {20}, true),
            shaped(DType::kFloat32, {20}, true)};
    c.out = {shaped(DType::kInt8, y)};
  };
  if constexpr (A::kOp == Op::kQFullyConnected)
    weights({5, 20}, {20, 20}, {5, 20});
  else if constexpr (A::kOp == Op::kQDepthwiseConv)
    weights({1, 8, 8, 20}, {3, 3, 20}, {1, 6, 6, 20});
  else
    weights({1, 8, 8, 20}, {20, 3, 3, 20}, kTransposedWindow<A> ? Dims{1, 10, 10, 20} : Dims{1, 6, 6, 20});
  return c;
}

bool accepts(const Target& target, const OpCall& call, int threads = 1, size_t* workspace = nullptr) {
  size_t bytes = 0;
  const Status s = xnnpack_platform.accept(target, call, threads, workspace != nullptr ? workspace : &bytes);
  EXPECT_TRUE(s.ok() || s.code == Code::kUnsupported) << s.message;
  return s.ok();
}

TEST(XnnpackPlanning, ServesArchitecturesThatTheLibraryHasKernelsFor) {
  EXPECT_STREQ(xnnpack_platform.name, "xnnpack");
  for (const Target& target : {kX86, kArm64, kArm32}) EXPECT_TRUE(xnnpack_platform.serves(target));
  EXPECT_FALSE(xnnpack_platform.serves({.architecture = Architecture::kPortable}));
  EXPECT_FALSE(xnnpack_platform.serves({.architecture = Architecture::kCortexM}));
}

template <class A>
void check_wide_weights() {
  A a{};
  Call call = integers<A>();
  for (const Target& target : {kX86, kArm64, kArm32}) EXPECT_TRUE(accepts(target, call(A::kOp, &a)));
  a.wide_weights = 1;
  EXPECT_TRUE(accepts(kX86, call(A::kOp, &a))) << op_name(A::kOp);
  EXPECT_FALSE(accepts(kArm64, call(A::kOp, &a))) << op_name(A::kOp);
  EXPECT_FALSE(accepts(kArm32, call(A::kOp, &a))) << op_name(A::kOp);
}
TEST(XnnpackPlanning, WeightsOfMinus128AreForX86) {
  check_wide_weights<QConvAttrs>();
  check_wide_weights<QDepthwiseConvAttrs>();
  check_wide_weights<QConvTransposeAttrs>();
  check_wide_weights<QFullyConnectedAttrs>();
}

// The device measures a transposed window in a scratch buffer, which a long filter does not fit.
TEST(XnnpackPlanning, TransposedWindowsHaveALimit) {
  const auto accepts_side = [](int64_t side) {
    const ConvTransposeAttrs a{
        .strides = {1, 1}, .dilations = {1, 1}, .pads = {0, 0, 0, 0}, .output_padding = {0, 0}};
    Call call;
    call.in = {shaped(DType::kFloat32, {1, 8, 8, 4}), shaped(DType::kFloat32, {40, side, side, 4}, true)};
    call.out = {shaped(DType::kFloat32, {1, 7 + side, 7 + side, 40})};
    return accepts(kX86, call(Op::kConvTranspose, &a));
  };
  EXPECT_TRUE(accepts_side(2));
  EXPECT_TRUE(accepts_side(9));
  EXPECT_FALSE(accepts_side(10));
}

TEST(XnnpackPlanning, Float16IsFor64BitArm) {
  for (const Op op : {Op::kSigmoid, Op::kTranspose, Op::kAdd}) {
    const TransposeAttrs transpose{.perm = {1, 0}};
    const AddAttrs add;
    const SigmoidAttrs sigmoid;
    const void* attributes = op == Op::kAdd         ? static_cast<const void*>(&add)
                             : op == Op::kTranspose ? static_cast<const void*>(&transpose)
                                                    : &sigmoid;
    Call call{{shaped(DType::kFloat16, {4, 4})}, {shaped(DType::kFloat16, {4, 4})}};
    if (op == Op::kAdd) call.in.push_back(call.in[0]);
    EXPECT_TRUE(accepts(kArm64, call(op, attributes))) << op_name(op);
    EXPECT_FALSE(accepts(kArm32, call(op, attributes))) << op_name(op);
    EXPECT_FALSE(accepts(kX86, call(op, attributes))) << op_name(op);
  }
}

// An operation has one row at most, which takes its dtypes and no others; those without one are refused.
TEST(XnnpackPlanning, RowsTakeTheirDtypesOnly) {
  struct Row {
    Op op;
    int dtypes;
  };
  constexpr Row kRows[] = {
#define SINTER_XNNPACK(op, dtypes, ...) {Op::k##op, dtypes},
#include "platforms/xnnpack/operators.def"
#undef SINTER_XNNPACK
  };
  const std::pair<DType, int> kinds[] = {{DType::kFloat32, kFloat32}, {DType::kFloat16, kFloat16},
                                         {DType::kInt8, kInt8},       {DType::kFloat64, 0},
                                         {DType::kInt32, 0},          {DType::kInt16, 0}};
  for (int i = 0; i < kOpCount; ++i) {
    const OpInfo& info = op_info_at(i);
    int dtypes = 0, rows = 0;
    for (const Row& row : kRows)
      if (row.op == info.op) dtypes |= row.dtypes, ++rows;
    EXPECT_LE(rows, 1) << info.name;
    std::vector<uint64_t> storage(attrs_bytes(info.op) / 8 + 1);
    for (const auto& [dtype, bit] : kinds) {
      if ((dtypes & bit) != 0) continue;
      const Dims dims = {1, 4, 4, 4};
      Call call{std::vector<TensorView>(4, shaped(dtype, dims)), {shaped(dtype, dims)}};
      EXPECT_FALSE(accepts(kArm64, call(info.op, storage.data())))
          << info.name << " of " << dtype_name(dtype);
    }
  }
}

TEST(XnnpackPlanning, OperandsAreOfOneType) {
  const TensorView single = shaped(DType::kFloat32, {4}), half = shaped(DType::kFloat16, {4});
  const AddAttrs add;
  Call mixed{{half, single}, {half}};
  EXPECT_FALSE(accepts(kArm64, mixed(Op::kAdd, &add)));
  const CastAttrs cast;
  for (const auto& [from, to, taken] :
       {std::tuple(single, half, true), std::tuple(half, single, true), std::tuple(half, half, false)}) {
    Call c{{from}, {to}};
    EXPECT_EQ(accepts(kArm64, c(Op::kCast, &cast)), taken);
  }
}

// Bounds hold on every machine of the architecture, and do not depend on the machine that converts.
TEST(XnnpackPlanning, WorkspacesGrowWithThreads) {
  const QDepthwiseConvAttrs integer{};
  const DepthwiseConvAttrs single{};
  Call call = integers<QDepthwiseConvAttrs>();
  Call floats{{shaped(DType::kFloat32, {1, 8, 8, 20}), shaped(DType::kFloat32, {3, 3, 20}, true)},
              {shaped(DType::kFloat32, {1, 6, 6, 20})}};
  for (const int threads : {1, 3, 8}) {
    size_t bytes = 0;
    EXPECT_TRUE(accepts(kArm64, call(Op::kQDepthwiseConv, &integer), threads, &bytes));
    EXPECT_EQ(bytes, static_cast<size_t>(threads) * 384);  // 20 + 64 sums of 4 bytes, rounded up
    EXPECT_TRUE(accepts(kX86, floats(Op::kDepthwiseConv, &single), threads, &bytes));
    EXPECT_EQ(bytes, static_cast<size_t>(threads) * 192);  // 20 + 16
  }
}

// One or two spatial axes, and numbers up to 4096.
TEST(XnnpackPlanning, WindowsBeyondTheLibraryAreRefused) {
  const auto image = [](int64_t rank, int64_t length) {
    Dims d(static_cast<size_t>(rank), length);
    d.front() = 1, d.back() = 2;
    return shaped(DType::kFloat32, d);
  };
  const auto conv = [&](int64_t rank, const ConvAttrs& a) {
    Dims w(static_cast<size_t>(rank), 1);
    w.back() = 2;
    Call c{{image(rank, 6), shaped(DType::kFloat32, w, true)}, {image(rank, 6)}};
    c.out[0].dims[rank - 1] = 1;
    c.out[0].set_shape(Dims(c.out[0].dims, c.out[0].dims + rank));
    return accepts(kX86, c(Op::kConv, &a));
  };
  EXPECT_TRUE(conv(3, {}));
  EXPECT_TRUE(conv(4, {}));
  EXPECT_FALSE(conv(5, {}));
  EXPECT_TRUE(conv(3, {.strides = {4096}}));
  EXPECT_FALSE(conv(3, {.strides = {4097}}));
  EXPECT_FALSE(conv(4, {.pads = {0, 4097, 0, 0}}));
  EXPECT_FALSE(conv(4, {.pads = {0, -1, 0, 0}}));
  EXPECT_FALSE(conv(4, {.dilations = {1, 0}}));
  EXPECT_FALSE(conv(4, {.strides = {1}})) << "a list for another number of axes";
  EXPECT_FALSE(conv(4, {.group = int64_t{1} << 32}));
}

}  // namespace
}  // namespace sinter::xnnpack::testing
