#include "platforms/xnnpack/operators.h"

#include <algorithm>

#include "runtime/core/op.h"
#include "runtime/core/op_enums.h"

namespace sinter::xnnpack {
namespace {

// An operand's address: the library declares float16 data as void.
struct Address {
  void* at = nullptr;
  operator const float*() const { return static_cast<const float*>(at); }
  operator float*() const { return static_cast<float*>(at); }
  operator const int8_t*() const { return static_cast<const int8_t*>(at); }
  operator int8_t*() const { return static_cast<int8_t*>(at); }
  operator const int32_t*() const { return static_cast<const int32_t*>(at); }
  operator const void*() const { return at; }
  operator void*() const { return at; }
};
Address address(const TensorView& v) { return {v.present() ? v.data : nullptr}; }

// A constant that is read while the operator is created. In a dry run it may be without data.
Address constant(const OpCall& call, size_t i) {
  if (!call.has_input(i)) return {};
  return {call.in(i).data != nullptr ? static_cast<void*>(call.in(i).data)
                                     : const_cast<void*>(Creation::any_bytes())};
}

// One of the two functions that the library has for an operator: float16 or float32.
template <class Half, class Single, class... Args>
xnn_status either(bool half, Half* f16, Single* f32, Args... args) {
  return half ? f16(args...) : f32(args...);
}
#define SINTER_XNN_EITHER(half, name, ...) either(half, name##_f16, name##_f32, __VA_ARGS__)

size_t element_bytes(const OpCall& call) { return byte_width(call.in(0).dtype); }

// What a creation or reshaping came to. In a dry run a refused block is the expected end.
Status outcome(xnn_status status, const Creation& creation, bool* stopped) {
  *stopped = status != xnn_status_success;
  if (!*stopped || creation.refused()) return ok_status();
  if (status == xnn_status_unsupported_hardware)
    return unsupported("this processor lacks the instructions that the operator needs");
  return status == xnn_status_out_of_memory
             ? error(Code::kInternal, "XNNPACK needs more memory than it measured")
             : unsupported("XNNPACK refuses the operator");
}

// Stops at the end of what a dry run can do.
#define SINTER_XNN(expr)                                         \
  do {                                                           \
    bool stopped = false;                                        \
    SINTER_RETURN_IF_ERROR(outcome((expr), creation, &stopped)); \
    if (stopped) return ok_status();                             \
  } while (false)

// What the integer rows pass to the library: scales of 1 and, as the weights' scales, the multipliers.
struct Integers {
  int8_t x_zero = 0, y_zero = 0, low = 0, high = 0;
};

template <class A>
Integers integers_of(const A& a) {
  return {static_cast<int8_t>(a.x_zero), static_cast<int8_t>(a.y_zero), static_cast<int8_t>(a.q_min),
          static_cast<int8_t>(a.q_max)};
}

bool is_integer_op(Op op) {
  return op == Op::kQConv || op == Op::kQDepthwiseConv || op == Op::kQConvTranspose ||
         op == Op::kQFullyConnected;
}

// The library reads the multipliers even where it packs nothing, and does not refuse everything that it
// cannot use.
Status check_multipliers(const OpCall& call) {
  if (!is_integer_op(call.op)) return ok_status();
  const TensorView& multipliers = call.in(3);
  SINTER_CHECK(multipliers.data != nullptr, unsupported("the multipliers are not known yet"));
  for (int64_t i = 0; i < multipliers.dims[0]; ++i) {
    const float m = multipliers.as<float>()[i];
    SINTER_CHECK(m >= 0x1p-32f && m < 256.0f, unsupported("a multiplier is not from 2^-32 to 256"));
  }
  return ok_status();
}

struct ConvSpec {
  uint32_t flags;
  double low, high;
};

ConvSpec conv_spec(const OpCall& call) {
  if (call.op == Op::kConv) return {0, call.attrs<ConvAttrs>().act_min, call.attrs<ConvAttrs>().act_max};
  const auto& a = call.attrs<DepthwiseConvAttrs>();
  return {XNN_FLAG_DEPTHWISE_CONVOLUTION, a.act_min, a.act_max};
}

Status create_conv(const OpCall& call, const Window& w, Creation& creation, bool packed, xnn_operator_t* op,
                   bool* stopped) {
  if (is_integer_op(call.op)) {
    const bool depthwise = call.op == Op::kQDepthwiseConv;
    const Integers i =
        depthwise ? integers_of(call.attrs<QDepthwiseConvAttrs>()) : integers_of(call.attrs<QConvAttrs>());
    return outcome(
        xnn_create_convolution2d_nhwc_qs8_qc8w(
            w.top, w.right, w.bottom, w.left, w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.dilation_h,
            w.dilation_w, w.group, w.in_c / w.group, w.out_c / w.group, w.in_step, w.out_step, i.x_zero, 1.0f,
            constant(call, 3), constant(call, 1), constant(call, 2), i.y_zero, 1.0f, i.low, i.high,
            depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0, nullptr, creation.cache(packed), op),
        creation, stopped);
  }
  const ConvSpec spec = conv_spec(call);
  return outcome(
      SINTER_XNN_EITHER(is_half(call), xnn_create_convolution2d_nhwc, w.top, w.right, w.bottom, w.left,
                        w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w, w.group,
                        w.in_c / w.group, w.out_c / w.group, w.in_step, w.out_step, constant(call, 1),
                        constant(call, 2), static_cast<float>(spec.low), static_cast<float>(spec.high),
                        spec.flags, static_cast<xnn_code_cache_t>(nullptr), creation.cache(packed), op),
      creation, stopped);
}

Status create_deconv(const OpCall& call, const Window& w, Creation& creation, xnn_operator_t* op,
                     bool* stopped) {
  if (is_integer_op(call.op)) {
    const Integers i = integers_of(call.attrs<QConvTransposeAttrs>());
    return outcome(xnn_create_deconvolution2d_nhwc_qs8_qc8w(
                       w.top, w.right, w.bottom, w.left, w.kernel_h, w.kernel_w, w.stride_h, w.stride_w,
                       w.dilation_h, w.dilation_w, w.group, w.in_c / w.group, w.out_c / w.group, w.in_step,
                       w.out_step, i.x_zero, 1.0f, constant(call, 3), constant(call, 1), constant(call, 2),
                       i.y_zero, 1.0f, i.low, i.high, 0, nullptr, creation.cache(false), op),
                   creation, stopped);
  }
  const auto& a = call.attrs<ConvTransposeAttrs>();
  return outcome(
      SINTER_XNN_EITHER(is_half(call), xnn_create_deconvolution2d_nhwc, w.top, w.right, w.bottom, w.left,
                        w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w, w.group,
                        w.in_c / w.group, w.out_c / w.group, w.in_step, w.out_step, constant(call, 1),
                        constant(call, 2), static_cast<float>(a.act_min), static_cast<float>(a.act_max), 0u,
                        static_cast<xnn_code_cache_t>(nullptr), creation.cache(false), op),
      creation, stopped);
}

xnn_status shape_conv(const OpCall& call, xnn_operator_t op, const Window& w, pthreadpool_t threads,
                      size_t* workspace, size_t* h, size_t* width) {
  size_t alignment = 0;
  if (is_integer_op(call.op))
    return xnn_reshape_convolution2d_nhwc_qs8_qc8w(op, w.batch, w.in_h, w.in_w, workspace, &alignment, h,
                                                   width, threads);
  return SINTER_XNN_EITHER(is_half(call), xnn_reshape_convolution2d_nhwc, op, w.batch, w.in_h, w.in_w,
                           workspace, &alignment, h, width, threads);
}

xnn_status shape_deconv(const OpCall& call, xnn_operator_t op, const Window& w, pthreadpool_t threads,
                        size_t* h, size_t* width) {
  if (is_integer_op(call.op))
    return xnn_reshape_deconvolution2d_nhwc_qs8_qc8w(op, w.batch, w.in_h, w.in_w, w.adjust_h, w.adjust_w, h,
                                                     width, threads);
  return SINTER_XNN_EITHER(is_half(call), xnn_reshape_deconvolution2d_nhwc, op, w.batch, w.in_h, w.in_w,
                           w.adjust_h, w.adjust_w, h, width, threads);
}

// A dry run that ended at the weights: what follows them is a row of zeros (its rounding is bounded) and an
// indirection buffer, whose size is measured on a copy of the operator with few channels.
Status rest_of_convolution(const OpCall& call, const Window& full, Creation& creation, size_t* extra) {
  const bool transposed = call.op == Op::kConvTranspose || call.op == Op::kQConvTranspose;
  const size_t before = creation.bytes();
  Window w = full;
  constexpr size_t kFew = 16;
  if (transposed) {
    w.group = 1, w.in_c = 1, w.out_c = std::min(full.out_c / full.group, 2 * kFew);
  } else {
    w.group = static_cast<uint32_t>(std::min<size_t>(full.group, kFew));
    w.in_c = w.group, w.out_c = w.group * (full.out_c / full.group);
  }
  w.in_step = w.in_c, w.out_step = w.out_c;
  creation.restart();
  xnn_operator_t op = nullptr;
  bool stopped = false;
  SINTER_RETURN_IF_ERROR(transposed ? create_deconv(call, w, creation, &op, &stopped)
                                    : create_conv(call, w, creation, false, &op, &stopped));
  SINTER_CHECK(!stopped, unsupported("the window is too large to be measured"));
  const size_t created = creation.bytes();
  size_t workspace = 0, h = 0, width = 0;
  const xnn_status shaped = transposed ? shape_deconv(call, op, w, nullptr, &h, &width)
                                       : shape_conv(call, op, w, nullptr, &workspace, &h, &width);
  SINTER_RETURN_IF_ERROR(outcome(shaped, creation, &stopped));
  const size_t indirection = creation.bytes() - created;
  const size_t channels = transposed ? full.in_c / full.group : full.in_c;
  const size_t zeros = transposed || full.padded()
                           ? align_up((align_up(channels, 64) + 32) * element_bytes(call), kBufferAlignment)
                           : 0;
  *extra = before - creation.bytes() + indirection + zeros;
  return ok_status();
}

Status same_size(const Window& w, size_t h, size_t width) {
  SINTER_CHECK(h == w.out_h && width == w.out_w, unsupported("XNNPACK gives another size"));
  return ok_status();
}

Status build_conv(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built,
                  size_t* extra) {
  Window w;
  SINTER_RETURN_IF_ERROR(window_of(call, &w));
  size_t h = w.out_h, width = w.out_w;
  bool stopped = false;
  SINTER_RETURN_IF_ERROR(create_conv(call, w, creation, true, &built->op, &stopped));
  if (stopped)
    return creation.refused_weights() ? rest_of_convolution(call, w, creation, extra)
                                      : unsupported("too many channels to be measured");
  SINTER_RETURN_IF_ERROR(
      outcome(shape_conv(call, built->op, w, threads, &built->workspace, &h, &width), creation, &stopped));
  return same_size(w, h, width);
}

Status build_deconv(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built,
                    size_t* extra) {
  Window w;
  SINTER_RETURN_IF_ERROR(window_of(call, &w));
  size_t h = w.out_h, width = w.out_w;
  bool stopped = false;
  SINTER_RETURN_IF_ERROR(create_deconv(call, w, creation, &built->op, &stopped));
  if (stopped)
    return creation.refused_weights() ? rest_of_convolution(call, w, creation, extra)
                                      : unsupported("too many channels to be measured");
  SINTER_RETURN_IF_ERROR(outcome(shape_deconv(call, built->op, w, threads, &h, &width), creation, &stopped));
  return same_size(w, h, width);
}

Status build_product(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built) {
  Product p;
  SINTER_RETURN_IF_ERROR(product_of(call, &p));
  if (is_integer_op(call.op)) {
    const Integers i = integers_of(call.attrs<QFullyConnectedAttrs>());
    SINTER_XNN(xnn_create_fully_connected_nc_qs8_qc8w(
        p.k, p.n, p.in_step, p.out_step, i.x_zero, 1.0f, constant(call, 3), constant(call, 1),
        constant(call, 2), i.y_zero, 1.0f, i.low, i.high, 0, nullptr, creation.cache(false), &built->op));
    SINTER_XNN(xnn_reshape_fully_connected_nc_qs8_qc8w(built->op, p.rows, threads));
    return ok_status();
  }
  const uint32_t flags = p.transposed ? XNN_FLAG_TRANSPOSE_B : 0;
  const bool half = is_half(call);
  if (!p.constant) {
    size_t alignment = 0;
    SINTER_XNN(SINTER_XNN_EITHER(half, xnn_create_batch_matrix_multiply_nc, flags, &built->op));
    SINTER_XNN(SINTER_XNN_EITHER(half, xnn_reshape_batch_matrix_multiply_nc, built->op,
                                 static_cast<size_t>(p.batch_rank), static_cast<const size_t*>(p.batch_a),
                                 static_cast<const size_t*>(p.batch_b), p.rows, p.k, p.n, &built->workspace,
                                 &alignment, threads));
    return ok_status();
  }
  // The product's weights are [k, n], the fully connected one's [n, k].
  float low = -static_cast<float>(kInfinity), high = -low;
  uint32_t layout = p.transposed ? 0 : XNN_FLAG_TRANSPOSE_WEIGHTS;
  if (call.op == Op::kFullyConnected) {
    const auto& a = call.attrs<FullyConnectedAttrs>();
    low = static_cast<float>(a.act_min), high = static_cast<float>(a.act_max), layout = 0;
  }
  SINTER_XNN(SINTER_XNN_EITHER(half, xnn_create_fully_connected_nc, p.k, p.n, p.in_step, p.out_step,
                               constant(call, 1), constant(call, 2), low, high, layout,
                               static_cast<xnn_code_cache_t>(nullptr), creation.cache(false), &built->op));
  SINTER_XNN(SINTER_XNN_EITHER(half, xnn_reshape_fully_connected_nc, built->op, p.rows, threads));
  return ok_status();
}

Status build_pool(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built,
                  size_t* extra) {
  constexpr float kMost = static_cast<float>(kInfinity);
  const bool half = is_half(call);
  Window w;
  SINTER_RETURN_IF_ERROR(window_of(call, &w));
  size_t h = w.out_h, width = w.out_w, alignment = 0;
  bool stopped = false;
  if (call.op == Op::kMaxPool) {
    SINTER_XNN(SINTER_XNN_EITHER(half, xnn_create_max_pooling2d_nhwc, w.top, w.right, w.bottom, w.left,
                                 w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w,
                                 -kMost, kMost, 0u, &built->op));
    SINTER_RETURN_IF_ERROR(
        outcome(SINTER_XNN_EITHER(half, xnn_reshape_max_pooling2d_nhwc, built->op, w.batch, w.in_h, w.in_w,
                                  w.in_c, w.in_step, w.out_step, &h, &width, threads),
                creation, &stopped));
    return same_size(w, h, width);
  }
  SINTER_XNN(SINTER_XNN_EITHER(half, xnn_create_average_pooling2d_nhwc, w.top, w.right, w.bottom, w.left,
                               w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, -kMost, kMost, 0u,
                               &built->op));
  SINTER_RETURN_IF_ERROR(outcome(
      SINTER_XNN_EITHER(half, xnn_reshape_average_pooling2d_nhwc, built->op, w.batch, w.in_h, w.in_w, w.in_c,
                        w.in_step, w.out_step, &built->workspace, &alignment, &h, &width, threads),
      creation, &stopped));
  // One factor per output pixel follows the indirection buffer.
  if (stopped && w.padded()) *extra = align_up(w.out_h * w.out_w * element_bytes(call), kBufferAlignment);
  return same_size(w, h, width);
}

Status build_resize(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built,
                    size_t* extra) {
  const TensorView &x = call.in(0), &y = call.out(0);
  const bool flat = x.rank == 3;
  const auto dim = [&](const TensorView& v, int i) { return static_cast<size_t>(v.dims[i]); };
  const size_t in_h = flat ? 1 : dim(x, 1), in_w = dim(x, x.rank - 2), c = dim(x, x.rank - 1);
  const size_t out_h = flat ? 1 : dim(y, 1), out_w = dim(y, y.rank - 2);
  const auto coordinates = static_cast<ResizeCoordinates>(call.attrs<ResizeAttrs>().coordinates);
  const uint32_t flags = coordinates == ResizeCoordinates::kAlignCorners ? XNN_FLAG_ALIGN_CORNERS
                         : coordinates == ResizeCoordinates::kAsymmetric ? XNN_FLAG_TENSORFLOW_LEGACY_MODE
                                                                         : 0;
  size_t alignment = 0;
  bool stopped = false;
  SINTER_XNN(
      SINTER_XNN_EITHER(is_half(call), xnn_create_resize_bilinear2d_nhwc, out_h, out_w, flags, &built->op));
  SINTER_RETURN_IF_ERROR(
      outcome(SINTER_XNN_EITHER(is_half(call), xnn_reshape_resize_bilinear2d_nhwc, built->op, dim(x, 0), in_h,
                                in_w, c, c, c, &built->workspace, &alignment, threads),
              creation, &stopped));
  // Two factors per output pixel follow the indirection buffer.
  if (stopped) *extra = align_up(2 * out_h * out_w * element_bytes(call), kBufferAlignment);
  return ok_status();
}

xnn_binary_operator binary_of(Op op) {
  switch (op) {
    case Op::kAdd:
      return xnn_binary_add;
    case Op::kSub:
      return xnn_binary_subtract;
    case Op::kMul:
      return xnn_binary_multiply;
    case Op::kDiv:
      return xnn_binary_divide;
    case Op::kMin:
      return xnn_binary_minimum;
    case Op::kMax:
      return xnn_binary_maximum;
    default:
      return xnn_binary_prelu;
  }
}

struct Dims {
  size_t n = 0, at[kMaxRank] = {};
  explicit Dims(const TensorView& v) : n(v.rank) {
    for (size_t i = 0; i < n; ++i) at[i] = static_cast<size_t>(v.dims[i]);
  }
};

xnn_datatype datatype(const TensorView& v) {
  return v.dtype == DType::kFloat16 ? xnn_datatype_fp16 : xnn_datatype_fp32;
}

Status build_binary(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built) {
  const Dims a(call.in(0)), b(call.in(1));
  SINTER_XNN(xnn_create_binary_elementwise_nd(binary_of(call.op), datatype(call.in(0)), nullptr, nullptr,
                                              nullptr, 0, &built->op));
  SINTER_XNN(xnn_reshape_binary_elementwise_nd(built->op, a.n, a.at, b.n, b.at, threads));
  return ok_status();
}

Status build_pad(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built) {
  const auto& a = call.attrs<PadAttrs>();
  const float zero = 0;
  const void* fill = call.has_input(1) ? constant(call, 1) : &zero;
  const Dims x(call.in(0));
  size_t begin[kMaxRank] = {}, end[kMaxRank] = {};
  for (size_t i = 0; i < x.n; ++i) {
    begin[i] = static_cast<size_t>(a.pads[static_cast<int>(i)]);
    end[i] = static_cast<size_t>(a.pads[static_cast<int>(x.n + i)]);
  }
  if (is_half(call)) {
    SINTER_XNN(xnn_create_constant_pad_nd_x16(fill, 0, &built->op));
    SINTER_XNN(xnn_reshape_constant_pad_nd_x16(built->op, x.n, x.at, begin, end, threads));
    return ok_status();
  }
  SINTER_XNN(xnn_create_constant_pad_nd_x32(fill, 0, &built->op));
  SINTER_XNN(xnn_reshape_constant_pad_nd_x32(built->op, x.n, x.at, begin, end, threads));
  return ok_status();
}

// float16 only.
Status build_transpose(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built) {
  const Dims x(call.in(0));
  size_t perm[kMaxRank] = {};
  for (size_t i = 0; i < x.n; ++i)
    perm[i] = static_cast<size_t>(call.attrs<TransposeAttrs>().perm[static_cast<int>(i)]);
  SINTER_XNN(xnn_create_transpose_nd_x16(0, &built->op));
  SINTER_XNN(xnn_reshape_transpose_nd_x16(built->op, x.n, x.at, perm, threads));
  return ok_status();
}

xnn_unary_operator unary_of(const OpCall& call, xnn_unary_params* params) {
  switch (call.op) {
    case Op::kAbs:
      return xnn_unary_abs;
    case Op::kNeg:
      return xnn_unary_negate;
    case Op::kSigmoid:
      return xnn_unary_sigmoid;
    case Op::kTanh:
      return xnn_unary_tanh;
    case Op::kHardSwish:
      return xnn_unary_hardswish;
    case Op::kLeakyRelu:
      params->leaky_relu.negative_slope = static_cast<float>(call.attrs<LeakyReluAttrs>().alpha);
      return xnn_unary_leaky_relu;
    case Op::kClamp:
      params->clamp.min = static_cast<float>(call.attrs<ClampAttrs>().min);
      params->clamp.max = static_cast<float>(call.attrs<ClampAttrs>().max);
      return xnn_unary_clamp;
    default:
      return xnn_unary_convert;
  }
}

Status build_unary(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built) {
  xnn_unary_params params = {};
  const xnn_unary_operator fn = unary_of(call, &params);
  const auto n = static_cast<size_t>(call.in(0).size());
  SINTER_XNN(xnn_create_unary_elementwise_nc(fn, datatype(call.in(0)), datatype(call.out(0)), &params,
                                             nullptr, nullptr, 0, &built->op));
  SINTER_XNN(xnn_reshape_unary_elementwise_nc(built->op, 1, n, n, n, threads));
  return ok_status();
}

bool is_unary(Op op) {
  switch (op) {
    case Op::kAbs:
    case Op::kNeg:
    case Op::kSigmoid:
    case Op::kTanh:
    case Op::kHardSwish:
    case Op::kLeakyRelu:
    case Op::kClamp:
    case Op::kCast:
      return true;
    default:
      return false;
  }
}

Status built_up(xnn_status status) {
  SINTER_CHECK(status == xnn_status_success,
               error(Code::kInternal, "XNNPACK refuses its operands' addresses"));
  return ok_status();
}

}  // namespace

Status build(const OpCall& call, pthreadpool_t threads, Creation& creation, Built* built, size_t* extra) {
  *extra = 0;
  SINTER_RETURN_IF_ERROR(check_multipliers(call));
  switch (call.op) {
    case Op::kConv:
    case Op::kDepthwiseConv:
    case Op::kQConv:
    case Op::kQDepthwiseConv:
      return build_conv(call, threads, creation, built, extra);
    case Op::kConvTranspose:
    case Op::kQConvTranspose:
      return build_deconv(call, threads, creation, built, extra);
    case Op::kFullyConnected:
    case Op::kQFullyConnected:
    case Op::kMatMul:
      return build_product(call, threads, creation, built);
    case Op::kMaxPool:
    case Op::kAvgPool:
      return build_pool(call, threads, creation, built, extra);
    case Op::kResize:
      return build_resize(call, threads, creation, built, extra);
    case Op::kPad:
      return build_pad(call, threads, creation, built);
    case Op::kTranspose:
      return build_transpose(call, threads, creation, built);
    default:
      if (is_unary(call.op)) return build_unary(call, threads, creation, built);
      return build_binary(call, threads, creation, built);
  }
}

Status set_up(const OpCall& call, xnn_operator_t op, void* workspace) {
  const bool half = is_half(call);
  const Address x = address(call.in(0)), y = address(call.out(0));
  switch (call.op) {
    case Op::kQConv:
    case Op::kQDepthwiseConv:
      return built_up(xnn_setup_convolution2d_nhwc_qs8_qc8w(op, workspace, x, y));
    case Op::kQConvTranspose:
      return built_up(xnn_setup_deconvolution2d_nhwc_qs8_qc8w(op, x, y));
    case Op::kQFullyConnected:
      return built_up(xnn_setup_fully_connected_nc_qs8_qc8w(op, x, y));
    case Op::kConv:
    case Op::kDepthwiseConv:
      return built_up(SINTER_XNN_EITHER(half, xnn_setup_convolution2d_nhwc, op, workspace, x, y));
    case Op::kConvTranspose:
      return built_up(SINTER_XNN_EITHER(half, xnn_setup_deconvolution2d_nhwc, op, x, y));
    case Op::kMatMul: {
      Product p;
      SINTER_RETURN_IF_ERROR(product_of(call, &p));
      if (!p.constant)
        return built_up(SINTER_XNN_EITHER(half, xnn_setup_batch_matrix_multiply_nc, op, workspace, x,
                                          address(call.in(1)), y));
      [[fallthrough]];
    }
    case Op::kFullyConnected:
      return built_up(SINTER_XNN_EITHER(half, xnn_setup_fully_connected_nc, op, x, y));
    case Op::kMaxPool:
      return built_up(SINTER_XNN_EITHER(half, xnn_setup_max_pooling2d_nhwc, op, x, y));
    case Op::kAvgPool:
      return built_up(SINTER_XNN_EITHER(half, xnn_setup_average_pooling2d_nhwc, op, workspace, x, y));
    case Op::kResize:
      return built_up(SINTER_XNN_EITHER(half, xnn_setup_resize_bilinear2d_nhwc, op, workspace, x, y));
    case Op::kPad:
      return built_up(half ? xnn_setup_constant_pad_nd_x16(op, x, y)
                           : xnn_setup_constant_pad_nd_x32(op, x, y));
    case Op::kTranspose:
      return built_up(xnn_setup_transpose_nd_x16(op, x, y));
    default:
      if (is_unary(call.op)) return built_up(xnn_setup_unary_elementwise_nc(op, x, y));
      return built_up(xnn_setup_binary_elementwise_nd(op, x, address(call.in(1)), y));
  }
}

}  // namespace sinter::xnnpack
