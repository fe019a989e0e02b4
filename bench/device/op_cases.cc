#include "bench/device/op_cases.h"

#include <algorithm>

#include "runtime/backend/validate.h"
#include "runtime/backend/winograd.h"
#include "runtime/core/op.h"
#include "runtime/core/op_enums.h"
#include "runtime/kernels/reference.h"

namespace sinter::bench {
namespace {

using Dims = std::vector<int64_t>;

struct alignas(kBufferAlignment) Block {
  std::byte bytes[kBufferAlignment] = {};
};
struct Memory {
  std::vector<Block> blocks;
  explicit Memory(size_t bytes) : blocks(bytes / sizeof(Block) + 4) {}
  std::byte* data() { return blocks.data()->bytes; }
};

// The first input is computed, the others are constant unless `all_computed`; `types` of the first operands,
// the others are float32.
template <class A>
class Prepared : public PreparedCase {
 public:
  Prepared(Backend& backend, const A& attrs) : backend_(backend), attrs_(attrs) {}
  ~Prepared() override {
    if (ready_) backend_.release(step_);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  Status prepare(const std::vector<Dims>& dims, bool all_computed, const std::vector<DType>& types) {
    for (const Dims& d : dims) {
      TensorView v;
      v.dtype = in_.size() < types.size() ? types[in_.size()] : DType::kFloat32;
      v.set_shape(d);
      v.data = take(static_cast<size_t>(v.dense_bytes()));
      fill(v, in_.size());
      v.constant = !all_computed && !in_.empty();
      in_.push_back(v);
    }
    call_ = {A::kOp, &attrs_, in_, out_};
    SINTER_RETURN_IF_ERROR(infer(call_, reference_kernels()));
    out_[0].data = take(static_cast<size_t>(out_[0].dense_bytes()));
    BumpArena none;
    StepNeeds needs;
    SINTER_RETURN_IF_ERROR(backend_.open(none));
    SINTER_RETURN_IF_ERROR(backend_.measure(call_, 1, &needs));
    const std::span<std::byte> packed(take(needs.packing.bytes), needs.packing.bytes),
        scratch(take(needs.scratch), needs.scratch);
    if (!packed.empty()) SINTER_RETURN_IF_ERROR(backend_.pack(call_, packed, nullptr));
    arena_ = BumpArena({take(needs.prepared), needs.prepared});
    context_.workspace = {take(needs.workspace), needs.workspace};
    SINTER_RETURN_IF_ERROR(
        backend_.prepare(call_, {arena_, none, context_.workspace, nullptr, -1, packed, scratch}, &step_));
    ready_ = true;
    return ok_status();
  }
  Status run() override { return step_.run(step_.state, call_, context_); }
  const OpCall& call() const override { return call_; }

 private:
  std::byte* take(size_t bytes) { return memory_.emplace_back(bytes).data(); }
  // Within 121, few of them beyond 82, as weights are; their positive parts are inputs.
  static int bell(int64_t i) {
    return static_cast<int>((i * 37 % 251 + i * 53 % 241 + i * 71 % 239) / 3) - 121;
  }
  static void fill(const TensorView& v, size_t operand) {
    if (v.dtype == DType::kInt32 || v.dtype == DType::kInt64) return;
    const bool bytes = v.dtype == DType::kInt8;
    for (int64_t i = 0; bytes && i < v.size(); ++i)
      v.as<int8_t>()[i] = static_cast<int8_t>(operand == 0 ? std::max(bell(i) * 3 / 2, 0) - 128 : bell(i));
    for (int64_t i = 0; !bytes && v.dtype != DType::kFloat32 && i < v.dense_bytes(); ++i)
      v.data[i] = static_cast<std::byte>(i * 37 % 251);
    for (int64_t i = 0; v.dtype == DType::kFloat32 && i < v.size(); ++i)
      v.as<float>()[i] = operand == 3 ? 0.001f : static_cast<float>(i * 37 % 101) / 50 - 1.01f;
  }

  Backend& backend_;
  const A attrs_;
  std::vector<Memory> memory_;
  std::vector<TensorView> in_, out_ = std::vector<TensorView>(1);
  OpCall call_;
  BumpArena arena_;
  RunContext context_{};
  PreparedStep step_;
  bool ready_ = false;
};

std::vector<OpCase>& list() {
  static std::vector<OpCase> cases;
  return cases;
}

template <class A>
void add(const std::string& name, const A& attrs, const std::vector<Dims>& dims, bool all_computed = false,
         const std::vector<DType>& types = {}) {
  list().push_back({A::kOp, name, [=](Backend& backend) -> std::unique_ptr<PreparedCase> {
                      auto prepared = std::make_unique<Prepared<A>>(backend, attrs);
                      if (!prepared->prepare(dims, all_computed, types).ok()) return nullptr;
                      return prepared;
                    }});
}

ConvAttrs conv(int64_t stride, int64_t pad, int64_t group = 1) {
  ConvAttrs a;
  a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {pad, pad, pad, pad}, a.group = group;
  return a;
}
DepthwiseConvAttrs depthwise(int64_t stride, int64_t pad) {
  DepthwiseConvAttrs a;
  a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {pad, pad, pad, pad};
  return a;
}
template <class A>
A pool(int64_t kernel, int64_t stride) {
  A a;
  a.kernel = {kernel, kernel}, a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {0, 0, 0, 0};
  return a;
}

// A product in float32 and in integers, with operands and results of int8 and of int16, and of int8 with
// results of float32.
template <class A, class Q>
void add_twins(const std::string& name, const A& attrs, Q q, const std::vector<Dims>& dims) {
  const std::vector<Dims> integer = {dims[0], dims[1], dims[2], dims[2]};
  const std::vector<DType> types = {DType::kInt8, DType::kInt8, DType::kInt32};
  q.x_zero = 3;
  add(name, attrs, dims);
  add(name + " int8", q, integer, false, types);
  q.to = static_cast<int64_t>(DType::kFloat32);
  add(name + " float", q, integer, false, types);
  q.to = static_cast<int64_t>(DType::kInt16), q.x_zero = 0, q.q_min = -32768, q.q_max = 32767;
  add(name + " int16", q, integer, false, {DType::kInt16, DType::kInt8, DType::kInt64});
}
void add_conv_twins(const std::string& name, const ConvAttrs& a, const std::vector<Dims>& dims) {
  add_twins(name, a,
            QConvAttrs{.strides = a.strides, .dilations = a.dilations, .pads = a.pads, .group = a.group},
            dims);
}
void add_depthwise_twins(const std::string& name, const DepthwiseConvAttrs& a,
                         const std::vector<Dims>& dims) {
  add_twins(name, a, QDepthwiseConvAttrs{.strides = a.strides, .dilations = a.dilations, .pads = a.pads},
            dims);
}

// A case of Conv for each tile of Winograd's algorithm, and directly.
void add_winograd(const std::string& name, const std::vector<Dims>& dims, bool direct = true) {
  if (direct) add(name, conv(1, 1), dims);
  for (const int64_t tile : kWinogradTiles) {
    ConvAttrs a = conv(1, 1);
    a.winograd = tile;
    add(name + " winograd " + std::to_string(tile), a, dims);
  }
}

void add_all() {
  add_winograd("3x3 32x32x16", {{1, 32, 32, 16}, {16, 3, 3, 16}, {16}}, false);
  add_winograd("3x3 56x56x64", {{1, 56, 56, 64}, {64, 3, 3, 64}, {64}}, false);
  add_winograd("3x3 14x14x256", {{1, 14, 14, 256}, {256, 3, 3, 256}, {256}}, false);
  add_winograd("3x3 112x112x64-32", {{1, 112, 112, 64}, {32, 3, 3, 64}, {32}});
  add_winograd("3x3 8x8x64-64", {{1, 8, 8, 64}, {64, 3, 3, 64}, {64}});
  add_winograd("3x3 28x28x128", {{1, 28, 28, 128}, {128, 3, 3, 128}, {128}});
  add_winograd("3x3 7x7x512", {{1, 7, 7, 512}, {512, 3, 3, 512}, {512}});
  add_winograd("3x3 56x56x16-64", {{1, 56, 56, 16}, {64, 3, 3, 16}, {64}});
  add_winograd("3x3 112x112x32-9", {{1, 112, 112, 32}, {9, 3, 3, 32}, {9}});
  add_winograd("3x3 112x112x3-32", {{1, 112, 112, 3}, {32, 3, 3, 3}, {32}});
  add_conv_twins("3x3 32x32x16", conv(1, 1), {{1, 32, 32, 16}, {16, 3, 3, 16}, {16}});
  add_conv_twins("3x3 56x56x64", conv(1, 1), {{1, 56, 56, 64}, {64, 3, 3, 64}, {64}});
  add_conv_twins("3x3 s2 112x112x3", conv(2, 1), {{1, 112, 112, 3}, {32, 3, 3, 3}, {32}});
  add_conv_twins("3x3 14x14x256", conv(1, 1), {{1, 14, 14, 256}, {256, 3, 3, 256}, {256}});
  add_conv_twins("1x1 56x56x24-144", conv(1, 0), {{1, 56, 56, 24}, {144, 1, 1, 24}, {144}});
  add_conv_twins("1x1 7x7x320-1280", conv(1, 0), {{1, 7, 7, 320}, {1280, 1, 1, 320}, {1280}});
  add_conv_twins("1x1 60x80x16", conv(1, 0), {{1, 60, 80, 16}, {16, 1, 1, 16}, {16}});
  add_conv_twins("1x1 28x28x96-16", conv(1, 0), {{1, 28, 28, 96}, {16, 1, 1, 96}, {16}});
  add_conv_twins("1x1 30x40x16-1", conv(1, 0), {{1, 30, 40, 16}, {1, 1, 1, 16}, {1}});
  add_conv_twins("3x3 112x112x32-3", conv(1, 1), {{1, 112, 112, 32}, {3, 3, 3, 32}, {3}});
  add_conv_twins("3x3 112x112x3-3", conv(1, 1), {{1, 112, 112, 3}, {3, 3, 3, 3}, {3}});
  add_conv_twins("3x3 112x112x16-1", conv(1, 1), {{1, 112, 112, 16}, {1, 3, 3, 16}, {1}});
  add_conv_twins("5x5 28x28x1-8", conv(1, 2), {{1, 28, 28, 1}, {8, 5, 5, 1}, {8}});
  add_conv_twins("9x9 112x112x16-3", conv(1, 4), {{1, 112, 112, 16}, {3, 9, 9, 16}, {3}});
  add_conv_twins("3x3 g4 28x28x64", conv(1, 1, 4), {{1, 28, 28, 64}, {64, 3, 3, 16}, {64}});
  add_depthwise_twins("3x3 60x80x16", depthwise(1, 1), {{1, 60, 80, 16}, {3, 3, 16}, {16}});
  add_depthwise_twins("3x3 56x56x144", depthwise(1, 1), {{1, 56, 56, 144}, {3, 3, 144}, {144}});
  add_depthwise_twins("3x3 s2 48x48x16", depthwise(2, 1), {{1, 48, 48, 16}, {3, 3, 16}, {16}});
  add_depthwise_twins("3x3 14x14x512", depthwise(1, 1), {{1, 14, 14, 512}, {3, 3, 512}, {512}});
  add_depthwise_twins("5x5 s2 28x28x96", depthwise(2, 2), {{1, 28, 28, 96}, {5, 5, 96}, {96}});
  add_depthwise_twins("3x3 s2 112x112x96", depthwise(2, 1), {{1, 112, 112, 96}, {3, 3, 96}, {96}});
  add_conv_twins("5x5 28x28x32", conv(1, 2), {{1, 28, 28, 32}, {32, 5, 5, 32}, {32}});
  add_depthwise_twins("5x5 28x28x96", depthwise(1, 2), {{1, 28, 28, 96}, {5, 5, 96}, {96}});
  add_depthwise_twins("3x3 28x28x16-64", depthwise(1, 1), {{1, 28, 28, 16}, {3, 3, 64}, {64}});
  add_twins("1x640-128", FullyConnectedAttrs{}, QFullyConnectedAttrs{}, {{1, 640}, {128, 640}, {128}});
  add_twins("1x1280-1000", FullyConnectedAttrs{}, QFullyConnectedAttrs{}, {{1, 1280}, {1000, 1280}, {1000}});
  add_twins("1x64-12", FullyConnectedAttrs{}, QFullyConnectedAttrs{}, {{1, 64}, {12, 64}, {12}});
  add_twins("64x256-256", FullyConnectedAttrs{}, QFullyConnectedAttrs{}, {{64, 256}, {256, 256}, {256}});
  add("1x1 60x80x16-16", conv(1, 0), {{1, 60, 80, 16}, {16, 1, 1, 16}, {16}});
  add("1x1 60x80x16-24", conv(1, 0), {{1, 60, 80, 16}, {24, 1, 1, 16}, {24}});
  add("1x1 s2 28x28x32-64", conv(2, 0), {{1, 28, 28, 32}, {64, 1, 1, 32}, {64}});
  add("3x3 s2 120x160x3-16", conv(2, 1), {{1, 120, 160, 3}, {16, 3, 3, 3}, {16}});
  add("5x5 112x112x1-64", conv(1, 2), {{1, 112, 112, 1}, {64, 5, 5, 1}, {64}});
  add("3x3 704x704x8", conv(1, 1), {{1, 704, 704, 8}, {8, 3, 3, 8}, {8}});
  add("3x3 30x40x32", depthwise(1, 1), {{1, 30, 40, 32}, {3, 3, 32}, {32}});
  add("3x3 30x40x64", depthwise(1, 1), {{1, 30, 40, 64}, {3, 3, 64}, {64}});
  add("3x3 28x28x24", depthwise(1, 1), {{1, 28, 28, 24}, {3, 3, 24}, {24}});
  add("3x3 28x28x48", depthwise(1, 1), {{1, 28, 28, 48}, {3, 3, 48}, {48}});
  add("3x3 112x112x32", depthwise(1, 1), {{1, 112, 112, 32}, {3, 3, 32}, {32}});
  add("3x3 7x7x960", depthwise(1, 1), {{1, 7, 7, 960}, {3, 3, 960}, {960}});
  add("3x3 24x24x8", depthwise(1, 1), {{1, 24, 24, 8}, {3, 3, 8}, {8}});
  add("5x5 14x14x480", depthwise(1, 2), {{1, 14, 14, 480}, {5, 5, 480}, {480}});
  add("5x5 7x7x960", depthwise(1, 2), {{1, 7, 7, 960}, {5, 5, 960}, {960}});
  DepthwiseConvAttrs dilated = depthwise(1, 2);
  dilated.dilations = {2, 2};
  add("3x3 d2 28x28x96", dilated, {{1, 28, 28, 96}, {3, 3, 96}, {96}});
  add_depthwise_twins("7x7 28x28x96", depthwise(1, 3), {{1, 28, 28, 96}, {7, 7, 96}, {96}});
  // What is between products, on 200704 elements.
  const Dims field = {1, 56, 56, 64};
  const std::vector<DType> bytes = {DType::kInt8, DType::kInt8};
  add("56x56x64", QAddAttrs{.a_multiplier = 1400003, .b_multiplier = 1100003, .shift = 21}, {field, field},
      true, bytes);
  add("56x56x64", QMulAttrs{.multiplier = 0.01}, {field, field}, true, bytes);
  add("pixel 112x112x3", QMulAttrs{.multiplier = 0.01}, {{1, 112, 112, 3}, {1, 112, 112, 1}}, true, bytes);
  add("56x56x64", QPReluAttrs{}, {field, {64}}, false, {DType::kInt8});
  add("56x56x64", LutAttrs{}, {field, {256}}, false, bytes);
  add("56x56x64", QuantizeAttrs{.to = static_cast<int64_t>(DType::kInt8)}, {field, {1}, {1}}, false,
      {DType::kFloat32, DType::kFloat32, DType::kInt8});
  add("56x56x64", DequantizeAttrs{}, {field, {1}, {1}}, false, {DType::kInt8, DType::kFloat32, DType::kInt8});
  add("56x56x64", SigmoidAttrs{}, {field});
  add("56x56x64", SiluAttrs{}, {field});
  add("56x56x64", HardSwishAttrs{}, {field});
  add("56x56x64", ClampAttrs{.min = 0}, {field});
  add("2x2 s2 56x56x64", pool<QAvgPoolAttrs>(2, 2), {field}, true, bytes);
  add("2x2 s2 56x56x64 int8", pool<MaxPoolAttrs>(2, 2), {field}, true, bytes);
  add("2x2 s2 56x56x64", pool<MaxPoolAttrs>(2, 2), {field});
  add("nchw 56x56x64", TransposeAttrs{.perm = {0, 3, 1, 2}}, {field});
  add("nchw 56x56x64 int8", TransposeAttrs{.perm = {0, 3, 1, 2}}, {field}, true, bytes);
  add("channels last 112x112x3", TransposeAttrs{.perm = {0, 2, 3, 1}}, {{1, 3, 112, 112}});
  add("channels last 12x40x40x64", TransposeAttrs{.perm = {0, 2, 3, 4, 1}}, {{1, 64, 12, 40, 40}});
  add("nchw 12x40x40x64", TransposeAttrs{.perm = {0, 4, 1, 2, 3}}, {{1, 12, 40, 40, 64}});
  add("shuffle 28x28x58-2", TransposeAttrs{.perm = {0, 1, 2, 4, 3}}, {{1, 28, 28, 2, 58}});
  add("heads 64x2x64", TransposeAttrs{.perm = {0, 2, 1, 3}}, {{1, 64, 2, 64}});
  add("96x96x3 every second",
      SliceAttrs{.starts = {0, 0, 0, 0}, .steps = {1, 2, 2, 1}, .sizes = {1, 96, 96, 3}}, {{1, 192, 192, 3}});
  add("28x28x58 of 116", SliceAttrs{.starts = {0, 0, 0, 58}, .steps = {1, 1, 1, 1}, .sizes = {1, 28, 28, 58}},
      {{1, 28, 28, 116}});
  add("96x96x3 with 96x96x3", ConcatAttrs{.axis = 3}, {{1, 96, 96, 3}, {1, 96, 96, 3}}, true);
  const auto resized = [](ResizeMode mode, IntList sizes, FloatList scales) {
    return ResizeAttrs{.mode = static_cast<int64_t>(mode), .sizes = sizes, .scales = scales};
  };
  add("nearest 24x24x64", resized(ResizeMode::kNearest, {1, 24, 24, 64}, {1, 2, 2, 1}), {{1, 12, 12, 64}});
  add("linear planes 3x30x30", resized(ResizeMode::kLinear, {1, 3, 30, 30}, {1, 1, 0.9375, 0.9375}),
      {{1, 3, 32, 32}});
  add("linear 56x56x64", resized(ResizeMode::kLinear, {1, 56, 56, 64}, {1, 2, 2, 1}), {{1, 28, 28, 64}});
  LstmAttrs lstm;
  lstm.hidden_size = 128;
  add("1 step 257-128", lstm, {{1, 1, 257}, {1, 512, 257}, {1, 512, 128}});
  add("32 steps 128-128", lstm, {{32, 1, 128}, {1, 512, 128}, {1, 512, 128}});
  add("1536x257", WhereAttrs{}, {{1536, 257}, {1}, {1}}, true, {DType::kBool});
  add("1536x257 int32", CompareAttrs{}, {{1536, 1}, {257}}, true, {DType::kInt32, DType::kInt32});
  ConvTransposeAttrs up;
  up.strides = {2, 2}, up.dilations = {1, 1}, up.pads = {0, 0, 0, 0}, up.output_padding = {0, 0};
  add("2x2 s2 28x28x64-32", up, {{1, 28, 28, 64}, {32, 2, 2, 64}, {32}});
  up.pads = {1, 1, 1, 1};
  add("4x4 s2 28x28x64-32", up, {{1, 28, 28, 64}, {32, 4, 4, 64}, {32}});
  for (const int64_t rows : {1, 4, 32}) {
    const std::string size = std::to_string(rows) + "x2048-2048";
    add(size, FullyConnectedAttrs{}, {{rows, 2048}, {2048, 2048}});
    for (const DType t : {DType::kUint4, DType::kUint8})
      add(size + " " + dtype_name(t), LowBitFullyConnectedAttrs{.block_size = 32},
          {{rows, 2048}, {2048, 2048}, {2048, 64}}, false, {DType::kFloat32, t});
  }
  MatMulAttrs plain, transposed;
  transposed.transpose_b = 1;
  add("64x64x64 computed", plain, {{4, 64, 64}, {4, 64, 64}}, true);
  add("64x64x64 computed t", transposed, {{4, 64, 64}, {4, 64, 64}}, true);
  add("1x128x128 computed", plain, {{1, 1, 128}, {1, 128, 128}}, true);
  add("4x128x64", AttentionAttrs{.scale = 0.125f}, {{1, 4, 128, 64}, {1, 4, 128, 64}, {1, 4, 128, 64}}, true);
  add("128x256x256 constant", plain, {{128, 256}, {256, 256}});
  add("3x3 s2 112x112x32", pool<MaxPoolAttrs>(3, 2), {{1, 112, 112, 32}});
  add("2x2 s2 60x80x16", pool<MaxPoolAttrs>(2, 2), {{1, 60, 80, 16}});
  add("2x2 s2 56x56x64", pool<AvgPoolAttrs>(2, 2), {{1, 56, 56, 64}});
  add("7x7 7x7x1280", pool<AvgPoolAttrs>(7, 7), {{1, 7, 7, 1280}});
  add("8x8 8x8x64", pool<AvgPoolAttrs>(8, 8), {{1, 8, 8, 64}});
  add("56x56x64", AddAttrs{}, {{1, 56, 56, 64}, {1, 56, 56, 64}}, true);
  add("8x8x64", AddAttrs{}, {{1, 8, 8, 64}, {1, 8, 8, 64}}, true);
  add("channel 56x56x64", AddAttrs{}, {{1, 56, 56, 64}, {64}});
  add("channel 112x112x3", AddAttrs{}, {{1, 112, 112, 3}, {3}});
  add("channel 112x112x3", SubAttrs{}, {{1, 112, 112, 3}, {3}});
  add("channel 112x112x3", MulAttrs{}, {{1, 112, 112, 3}, {3}});
  add("channel 112x112x3", DivAttrs{}, {{1, 112, 112, 3}, {3}});
  add("channel 56x56x16", AddAttrs{}, {{1, 56, 56, 16}, {16}});
  add("pixel 112x112x3", MulAttrs{}, {{1, 112, 112, 3}, {1, 112, 112, 1}}, true);
  add("pixel 56x56x16", MulAttrs{}, {{1, 56, 56, 16}, {1, 56, 56, 1}}, true);
  add("scalar 56x56x64", MulAttrs{}, {{1, 56, 56, 64}, {1}});
  add("gate 56x56x64", MulAttrs{}, {{1, 56, 56, 64}, {1, 1, 1, 64}}, true);
  add("56x56x64", MulAttrs{}, {{1, 56, 56, 64}, {1, 56, 56, 64}}, true);
  add("56x56x64", SubAttrs{}, {{1, 56, 56, 64}, {1, 56, 56, 64}}, true);
  add("56x56x64", DivAttrs{}, {{1, 56, 56, 64}, {1, 56, 56, 64}}, true);
  add("channel 56x56x64", PReluAttrs{}, {{1, 56, 56, 64}, {64}});
  add("channel 24x24x16", PReluAttrs{}, {{1, 24, 24, 16}, {16}});
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  if (list().empty()) add_all();
  return list();
}

const std::vector<Representative>& representatives() {
#define REPRESENTED_BY(op, calls, name) \
  { Op::k##op, kernel_time::CallClass::k##calls, #op, #calls, name }
  static const std::vector<Representative> rows = {
      REPRESENTED_BY(Conv, Usual, "3x3 56x56x64"),
      REPRESENTED_BY(Conv, FewChannels, "3x3 112x112x32-3"),
      REPRESENTED_BY(Conv, FewInputs, "3x3 s2 112x112x3"),
      REPRESENTED_BY(Conv, FewColumns, "1x1 60x80x16"),
      REPRESENTED_BY(Conv, NarrowImage, "3x3 14x14x256"),
      REPRESENTED_BY(DepthwiseConv, Usual, "3x3 30x40x64"),
      REPRESENTED_BY(DepthwiseConv, OtherWindow, "3x3 d2 28x28x96"),
      REPRESENTED_BY(DepthwiseConv, ManyTaps, "7x7 28x28x96"),
      REPRESENTED_BY(ConvTranspose, Usual, "4x4 s2 28x28x64-32"),
      REPRESENTED_BY(FullyConnected, Usual, "1x640-128"),
      REPRESENTED_BY(MatMul, Usual, "128x256x256 constant"),
      REPRESENTED_BY(MatMul, OneRow, "1x128x128 computed"),
      REPRESENTED_BY(Add, ShortRows, "channel 112x112x3"),
      REPRESENTED_BY(Sub, ShortRows, "channel 112x112x3"),
      REPRESENTED_BY(Mul, ShortRows, "channel 112x112x3"),
      REPRESENTED_BY(Div, ShortRows, "channel 112x112x3"),
      REPRESENTED_BY(AvgPool, Usual, "7x7 7x7x1280"),
      REPRESENTED_BY(MaxPool, Usual, "3x3 s2 112x112x32"),
      REPRESENTED_BY(QConv, Usual, "1x1 60x80x16 int8"),
      REPRESENTED_BY(QConv, FewChannels, "3x3 112x112x3-3 int8"),
      REPRESENTED_BY(QConv, ManyChannels, "3x3 56x56x64 int8"),
      REPRESENTED_BY(QConv, Window, "3x3 32x32x16 int8"),
      REPRESENTED_BY(QDepthwiseConv, Usual, "3x3 56x56x144 int8"),
      REPRESENTED_BY(QDepthwiseConv, ManyTaps, "7x7 28x28x96 int8"),
      REPRESENTED_BY(QFullyConnected, ManyRows, "64x256-256 int8"),
  };
#undef REPRESENTED_BY
  return rows;
}

}  // namespace sinter::bench
