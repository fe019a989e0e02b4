// QDepthwiseConv: 16 output channels at a time, whose input is copied box by box in groups of pixels
// (depthwise_input-inl.h).
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS
#include "platforms/simd/int8/depthwise.h"

#include "platforms/simd/int16/gemm.h"
#include "platforms/simd/variant.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/depthwise.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/depthwise_input-inl.h"
#include "platforms/simd/int8/depthwise_sums-inl.h"

#ifndef SINTER_SIMD_Q_DEPTHWISE_ONCE
#define SINTER_SIMD_Q_DEPTHWISE_ONCE
namespace sinter::simd {

struct QDepthwiseWeights {
  const int8_t* weights;  // [taps, channels]
  const int32_t* bias;
  const float* multipliers;  // per channel, or one
  int64_t multiplier_step;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

void pack_q_depthwise(const QDepthwise& q, const QDepthwiseWeights& w) {
  const Geometry& g = q.g;
  const int64_t channels = g.out_channels, wide = divide_up(channels, kQChannels) * kQChannels;
  const int64_t groups = groups_of(g), phase_size = phase_weights(g);
  auto* weights = reinterpret_cast<Weight*>(q.weights);
  for (int64_t i = 0; i < wide * kSpacing * phase_size / kQChannels; ++i) weights[i] = 0;
  for (int64_t c = 0; c < wide; ++c) {
    const int64_t place = place_in_group(c % kQChannels), block = c - c % kQChannels;
    uint32_t sum = 0;
    for (int64_t line = 0; c < channels && line < g.kernel[0] * g.kernel[1]; ++line)
      for (int64_t t = 0; t < g.kernel[2]; ++t) {
        const int8_t v = w.weights[(line * g.kernel[2] + t) * channels + c];
        sum += static_cast<uint32_t>(v);
        for (int64_t phase = 0; phase < kSpacing; ++phase) {
          const int64_t at = t + phase;
          weights[(c / kQChannels * kSpacing + phase) * phase_size + (line * groups + at / kTaps) * kGroup +
                  place * kTaps + at % kTaps] = v;
        }
      }
    const uint32_t shift = sum * static_cast<uint32_t>(kShift + q.x_zero);
    q.bias[block + place] = c < channels ? static_cast<int32_t>(static_cast<uint32_t>(w.bias[c]) - shift) : 0;
    q.multipliers[c] = c < channels ? w.multipliers[c * w.multiplier_step] : 0.0f;
  }
}

// Computes channels c0 .. c0 + kQChannels - 1 of a box.
void q_depthwise_box(const QDepthwise& q, const QBox& box, int64_t c0, std::byte* memory) {
  const Geometry& g = q.g;
  auto* buffer = reinterpret_cast<Element*>(memory);
  const int64_t groups = line_groups(g, box.end[2] - box.begin[2]);
  const int64_t reach = (g.kernel[1] - 1) * g.dilation[1],
                channels = std::min(kQChannels, g.out_channels - c0), each = g.out_channels / g.in_channels;
  const int8_t* x_end = q.x + g.batch * g.in[0] * g.in[1] * g.in[2] * g.in_channels;
  Element* to = buffer;
  HWY_ALIGN int8_t places[kQChannels];
  for (int64_t c = 0; c < kQChannels; ++c) places[c] = static_cast<int8_t>((c0 + c) / each - c0 / each);
  for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
    const int64_t i0 = box.begin[0] * g.stride[0] - g.pad[0] + t0 * g.dilation[0];
    for (int64_t l = 0; l < box.lines; ++l, to += groups * kGroup) {
      const int64_t i1 = box.begin[1] * g.stride[1] - g.pad[1] + l;
      if (l % g.stride[1] > reach) continue;  // between the windows
      const int8_t* line = input_line(g, box, q.x, i0, i1);
      if (line != nullptr) line += c0 / each;
      load_line(g, {line, line != nullptr ? x_end - line : 0, channels, each > 1 ? places : nullptr},
                box.begin[2] * g.stride[2] - g.pad[2], groups, q.x_zero, to);
    }
  }
  if (q.result.type == DType::kInt8) {
    bool small = true;
    const int64_t taps = g.taps();
    for (int64_t c = c0; c < c0 + channels; ++c) small &= small_sums(q.bias[c], q.multipliers[c], taps);
    (small ? run_block<EndBytes<true>> : run_block<EndBytes<false>>)(q, box, c0, buffer);
  } else if (q.result.type == DType::kFloat32) {
    run_block<EndOthers<float>>(q, box, c0, buffer);
  } else {
    run_block<EndOthers<int16_t>>(q, box, c0, buffer);
  }
}

const char* q_depthwise_name() {
  return kTaps == 4 ? "qs8_depthwise_4taps" : kTaps == 2 ? "qs8_depthwise_2taps" : "qs8_depthwise_1tap";
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(q_depthwise_name);
HWY_EXPORT(pack_q_depthwise);
HWY_EXPORT(q_depthwise_box);

constexpr int64_t kBoxElements = 24576;  // of the input, 16 channels
constexpr int64_t kBoxPixels = 4096;

struct Plan {
  QDepthwise q;
  QBoxes boxes;
  int64_t scratch = 0;  // bytes of a thread
  int64_t blocks() const { return divide_up(q.g.out_channels, kQChannels); }
};

// Returns false if the memory overflows.
bool plan_of(const OpCall& call, Plan* p) {
  const auto& a = call.attrs<QDepthwiseConvAttrs>();
  p->q.g = window_geometry<QDepthwiseConvAttrs>(call);
  p->q.x = call.in(0).as<const int8_t>(), p->q.x_zero = static_cast<int32_t>(a.x_zero);
  p->q.result = product_result(call, a);
  return call.out(0).size() == 0 || p->boxes.choose(p->q.g, kQChannels, kBoxElements, kBoxPixels);
}

// Counts bounds over the instruction sets: two places to begin at, int16, kTaps up to 4.
bool packed_bytes(const Plan& p, int64_t* weights, int64_t* bytes) {
  const Geometry& g = p.q.g;
  int64_t lines = 0;
  return checked_mul(g.kernel[0], g.kernel[1], &lines) &&
         checked_mul(lines, 4 * (g.kernel[2] + 4), weights) &&
         checked_mul(*weights, p.blocks() * kQChannels, weights) &&
         checked_add(*weights, p.blocks() * kQChannels * 8, bytes);
}

// Counts the scratch of one thread, on any instruction set.
bool scratch_bytes(const Plan& p, int64_t* bytes) {
  const Geometry& g = p.q.g;
  int64_t step = 0, line = 0;
  if (!checked_mul(g.stride[2], kDepthwisePixels, &step) || step > INT32_MAX) return false;
  for (const DepthwiseForm& form : {kQuads, kPairs, kSingles})
    line = std::max(line, form.line_groups(g, p.boxes.out_pixels) * form.taps * form.element);
  return checked_mul(line, p.boxes.lines, bytes) && checked_mul(*bytes, g.kernel[0], bytes) &&
         checked_mul(*bytes, kQChannels, bytes) &&
         checked_add<int64_t>(*bytes, 2 * kBufferAlignment, bytes) &&
         (*bytes = *bytes / kBufferAlignment * kBufferAlignment, true);
}

// Divides the boxes among `threads`.
bool share_depthwise(Plan* p, int64_t threads) {
  p->boxes.share(p->q.g, threads);
  return p->boxes.measure(p->q.g, kQChannels) && scratch_bytes(*p, &p->scratch);
}

bool place(Plan* p, std::byte* packed) {
  int64_t weights = 0, bytes = 0;
  if (!packed_bytes(*p, &weights, &bytes)) return false;
  p->q.weights = packed;
  p->q.bias = reinterpret_cast<int32_t*>(packed + weights);
  p->q.multipliers = reinterpret_cast<float*>(p->q.bias + p->blocks() * kQChannels);
  return true;
}

void pack_depthwise_weights(const OpCall& call, std::byte* packed, ThreadPool*) {
  Plan p;
  if (!plan_of(call, &p) || !place(&p, packed)) return;
  HWY_DYNAMIC_DISPATCH(pack_q_depthwise)
  (p.q, {call.in(1).as<const int8_t>(), call.in(2).as<const int32_t>(), call.in(3).as<const float>(),
         call.in(3).size() == 1 ? 0 : 1});
}

bool depthwise_needs(const Plan& p, int threads, int64_t* packed, int64_t* scratch) {
  int64_t weights = 0;
  if (!packed_bytes(p, &weights, packed) || !scratch_of_threads(p, threads, share_depthwise, scratch) ||
      *packed >= INT64_MAX / 2 || *scratch >= INT64_MAX / 4)
    return false;
  *packed = static_cast<int64_t>(align_up(static_cast<size_t>(*packed), kBufferAlignment));
  return true;
}

// `p` is a plan for these threads, without addresses.
Status run_depthwise_plan(const OpCall& call, Plan p, RunContext& context, std::byte* packed,
                          std::byte* scratch) {
  if (call.out(0).size() == 0 || !place(&p, packed)) return ok_status();
  p.q.x = call.in(0).as<const int8_t>(), p.q.result.y = call.out(0).data;
  const int64_t units = p.boxes.count(p.q.g) * p.blocks(),
                slots = std::min(units, threads_of(context.threads));
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    const auto run = HWY_DYNAMIC_POINTER(q_depthwise_box);
    for (int64_t unit = begin; unit < end; ++unit)
      run(p.q, p.boxes.at(p.q.g, unit / p.blocks()), unit % p.blocks() * kQChannels,
          scratch + slot * p.scratch);
  });
  return ok_status();
}

bool wide_input(const OpCall& call) { return call.in(0).dtype == DType::kInt16; }

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  if (wide_input(call)) return q16_depthwise_workspace(call, threads, bytes);
  Plan p;
  int64_t packed = 0, scratch = 0;
  SINTER_RETURN_UNLESS(plan_of(call, &p) && depthwise_needs(p, threads, &packed, &scratch),
                       too_much_workspace());
  *bytes = static_cast<size_t>(packed + scratch);
  return ok_status();
}

Status run(const OpCall& call, RunContext& context) {
  if (wide_input(call)) return run_q16_depthwise(call, context);
  Plan p;
  int64_t packed = 0, scratch = 0;
  SINTER_RETURN_UNLESS(plan_of(call, &p) && depthwise_needs(p, 1, &packed, &scratch), too_much_workspace());
  pack_depthwise_weights(call, context.workspace.data(), nullptr);
  if (!share_depthwise(&p, threads_of(context.threads))) return ok_status();
  return run_depthwise_plan(call, p, context, context.workspace.data(), context.workspace.data() + packed);
}

Status accept(const OpCall& call) {
  const TensorView &x = call.in(0), &y = call.out(0);
  if (wide_input(call)) return accept_q16_depthwise(call);
  SINTER_RETURN_UNLESS(
      y.size() == 0 || (x.dims[x.rank - 1] > 0 && y.dims[y.rank - 1] % x.dims[x.rank - 1] == 0),
      unsupported("the output channels are not a multiple of the input channels"));
  SINTER_RETURN_UNLESS(!call.has_input(4), unsupported("the weights have zero points"));
  Plan p;
  SINTER_RETURN_UNLESS(plan_of(call, &p), unsupported("a window is too large for the simd kernel"));
  SINTER_RETURN_UNLESS(p.q.g.dilation[2] == 1, unsupported("the simd kernel takes taps side by side"));
  return accept_dense(call);
}

Fit takes_depthwise(const OpCall& call, int threads, VariantNeeds* needs) {
  Plan p;
  int64_t bytes = 0, scratch = 0;
  if (wide_input(call) || !has_constant_rest(call) || !plan_of(call, &p) ||
      !depthwise_needs(p, threads, &bytes, &scratch))
    return Fit::kNever;
  const Geometry& g = p.q.g;
  needs->workspace = static_cast<size_t>(scratch);
  needs->packing = form_of(
      bytes, 0b1110, {g.out_channels, g.kernel[0], g.kernel[1], g.kernel[2], p.q.x_zero, call.in(3).size()});
  return Fit::kEverywhere;
}

bool plan_depthwise(const OpCall& call, const Preparation& with, void* plan) {
  auto* p = new (plan) Plan();
  return plan_of(call, p) && (call.out(0).size() == 0 || share_depthwise(p, threads_of(with.threads)));
}

const char* depthwise_name() { return HWY_DYNAMIC_DISPATCH(q_depthwise_name)(); }

Status run_depthwise_variant(const VariantStep& step, const OpCall& call, RunContext& context) {
  return run_depthwise_plan(call, step.plan<Plan>(), context, step.packed, context.workspace.data());
}

}  // namespace

const Variant qs8_depthwise = {.takes = takes_depthwise,
                               .pack = pack_depthwise_weights,
                               .plan_bytes = sizeof(Plan),
                               .plan = plan_depthwise,
                               .run = run_depthwise_variant,
                               .full_name = depthwise_name};

const Kernel kQDepthwiseConvKernel = {Op::kQDepthwiseConv, nullptr, workspace, run, accept};

}  // namespace sinter::simd
#endif  // HWY_ONCE
