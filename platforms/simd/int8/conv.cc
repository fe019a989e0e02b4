// QFullyConnected and QConv on the product of gemm.h: box by box. The thread that multiplies a box by all
// panels of weights copies it.
#include "platforms/simd/int16/gemm.h"
#include "platforms/simd/int8/conv_plan.h"
#include "platforms/simd/int8/gemm_i8mm.h"
#include "platforms/simd/simd_kernels.h"
#include "platforms/simd/variant.h"

namespace sinter::simd {
namespace {

void pack_groups(const OpCall& call, const QPlan& p, std::byte* memory, ThreadPool* threads) {
  parallel_for(threads, p.g.group, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group)
      pack_q_panels(q_weights_of(call, p, group), static_cast<int32_t>(p.x_zero),
                    q_packed_at(p, group, call.has_input(4), memory));
  });
}

// Returns whether rows are read in the input: windows of one tap, all of them inside.
bool in_place(const QPlan& p) {
  const Geometry& g = p.g;
  int64_t elements = 0;
  if (!reads_rows_as_they_are() || g.in_channels / g.group % kQDepth != 0 ||
      !checked_mul(g.in[2], g.in_channels, &elements) || !checked_mul(elements, p.boxes.lines, &elements) ||
      elements > INT32_MAX)
    return false;
  for (int i = 0; i < 3; ++i)
    if (g.kernel[i] != 1 || g.pad[i] != 0 || (g.out[i] - 1) * g.stride[i] >= g.in[i]) return false;
  return true;
}

// Returns the first pixel of the box in the input.
int64_t input_pixel(const Geometry& g, const QBox& box) {
  return ((box.batch * g.in[0] + box.begin[0] * g.stride[0]) * g.in[1] + box.begin[1] * g.stride[1]) *
             g.in[2] +
         box.begin[2] * g.stride[2];
}

// Sets the begin of each row of boxes of one shape, `lines` times `line`, in an input of these elements to a
// line and a pixel, and in the result, from its first pixel on.
void set_rows(const Geometry& g, int64_t lines, int64_t line, int64_t line_size, int64_t pixel,
              const QScratch& s) {
  int64_t r = 0;
  for (int64_t i = 0; i < lines; ++i)
    for (int64_t j = 0; j < line; ++j, ++r) {
      s.rows[r] = static_cast<int32_t>(i * g.stride[1] * line_size + j * g.stride[2] * pixel);
      s.y_rows[r] = (i * g.out[2] + j) * g.out_channels;
    }
}

// Sets the begins of the runs, from `from` on.
void set_runs(const QPlan& p, int64_t lines, int64_t line, int64_t pixel, int64_t from, int32_t* runs) {
  const Geometry& g = p.g;
  const int64_t taps = p.runs.count / (g.kernel[0] * g.kernel[1]);
  for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0)
    for (int64_t t1 = 0; t1 < g.kernel[1]; ++t1)
      for (int64_t t2 = 0; t2 < taps; ++t2)
        *runs++ = static_cast<int32_t>(
            ((t0 * lines + t1 * g.dilation[1]) * line + t2 * g.dilation[2]) * pixel + from);
}

// The work of a thread at a time: a box by panels first .. end - 1.
struct Unit {
  QBox box;
  int64_t first = 0, end = 0;
  bool other_box = true, other_shape = true;  // than those of the thread's last unit
};

// Calls f(scratch, unit) for all units.
template <class F>
void share_units(const QPlan& p, RunContext& context, std::byte* memory, F&& f) {
  const int64_t threads = threads_of(context.threads);
  const int64_t boxes = p.boxes.count(p.g), panels = divide_up(p.columns, q_panel_width());
  const int64_t parts = boxes >= threads ? 1 : std::min(panels, divide_up(threads, boxes));
  const int64_t units = boxes * parts, slots = std::min(units, threads);
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    const QScratch s(p, memory + slot * p.scratch);
    int64_t held = -1, shape[2] = {};
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i % parts, index = i / parts;
      Unit unit{p.boxes.at(p.g, index), panels * part / parts, panels * (part + 1) / parts};
      const int64_t lines = unit.box.end[1] - unit.box.begin[1], line = unit.box.end[2] - unit.box.begin[2];
      unit.other_box = held != index, unit.other_shape = shape[0] != lines || shape[1] != line;
      held = index, shape[0] = lines, shape[1] = line;
      f(s, unit);
    }
  });
}

// Returns the box's part of the result, of one group.
ProductResult result_of(const QPlan& p, const QBox& box, int64_t group) {
  ProductResult result = p.result;
  result.y = static_cast<std::byte*>(result.y) +
             (box.pixel(p.g, box.begin[1], box.begin[2]) * p.g.out_channels + group * p.columns) *
                 static_cast<int64_t>(byte_width(result.type));
  return result;
}

void run_pairs(const QPlan& p, RunContext& context, const int8_t* x, std::byte* packed, std::byte* scratch) {
  const Geometry& g = p.g;
  share_units(p, context, scratch, [&](const QScratch& s, const Unit& unit) {
    const QBox& box = unit.box;
    const int64_t lines = box.end[1] - box.begin[1], line = box.end[2] - box.begin[2];
    const int64_t channels = 2 * pair_channels(g.in_channels), pixels = pair_pixels(g, box);
    if (unit.other_box) load_q_pairs(g, box, x, static_cast<int32_t>(p.x_zero), s.buffer);
    QPairRows rows{s.buffer, s.rows, s.runs, s.y_rows, pair_distance(line) * g.out_channels, 0};
    if (unit.other_shape) set_rows(g, lines, pairs_of(line), pixels * channels, channels, s);
    rows.count = lines * pairs_of(line);
    for (int64_t group = 0; group < g.group; ++group) {
      set_runs(p, box.lines, pixels, channels, group * (g.in_channels / g.group) * 2, s.runs);
      multiply_q_pairs(q_packed_at(p, group, false, packed), rows, unit.first, unit.end,
                       result_of(p, box, group));
    }
  });
}

// Returns whether rows are lowered (lower_q_rows), which they are if it takes little beside the products.
bool lowers(const QPlan& p, bool zeros) {
  constexpr int64_t kDepth = 16, kColumns = 64;
  return bounds_products() && !zeros && pointwise(p.g) && p.g.group == 1 && p.runs.length >= kDepth &&
         p.columns >= kColumns;
}

void run_rows(const QPlan& p, RunContext& context, const int8_t* x, bool zeros, std::byte* packed,
              std::byte* scratch) {
  const Geometry& g = p.g;
  const bool copies = !in_place(p), lowered = lowers(p, zeros);
  share_units(p, context, scratch, [&](const QScratch& s, const Unit& unit) {
    const QBox& box = unit.box;
    const int64_t lines = box.end[1] - box.begin[1], line = box.end[2] - box.begin[2];
    if (copies && unit.other_box) load_q_box(g, box, x, static_cast<int32_t>(p.x_zero), s.buffer);
    if (unit.other_shape)
      set_rows(g, lines, line, (copies ? box.line : g.in[2]) * g.in_channels, g.in_channels, s);
    const std::byte* at =
        copies ? s.buffer : reinterpret_cast<const std::byte*>(x + input_pixel(g, box) * g.in_channels);
    for (int64_t group = 0; group < g.group; ++group) {
      set_runs(p, box.lines, box.line, g.in_channels, group * (g.in_channels / g.group), s.runs);
      QRows rows{at, s.rows, s.runs, zeros ? s.sums : nullptr, box.pixels()};
      rows.set_spare(s.buffer, p.boxes.elements, QScratch::box_bytes(p));
      if (lowered && rows.count >= kManyQRows) s.lower(g.in_channels, unit.other_box, &rows);
      if (zeros) sum_q_rows(rows, p.runs, static_cast<int32_t>(p.x_zero), s.sums);
      multiply_q(q_packed_at(p, group, zeros, packed), rows, unit.first, unit.end, result_of(p, box, group),
                 s.y_rows);
    }
  });
}

// `p` is a plan for these threads; its result has no address yet.
Status run_planned(const OpCall& call, QPlan p, RunContext& context, std::byte* packed, std::byte* scratch) {
  if (call.out(0).size() == 0) return ok_status();
  p.result.y = call.out(0).data;
  const auto* x = call.in(0).as<const int8_t>();
  if (p.runs.pairs)
    run_pairs(p, context, x, packed, scratch);
  else
    run_rows(p, context, x, call.has_input(4), packed, scratch);
  return ok_status();
}

// Counts the bytes of packed weights and of the scratch of up to `threads` threads; false if they overflow.
bool needs_of(const QPlan& p, int threads, int64_t* packed, int64_t* scratch) {
  if (!q_packed_bytes(p, packed) || !checked_mul(*packed, p.g.group, packed) ||
      !scratch_of_threads(p, threads, q_share, scratch) || *packed >= INT64_MAX / 2 ||
      *scratch >= INT64_MAX / 4)
    return false;
  *packed = static_cast<int64_t>(align_up(static_cast<size_t>(*packed), kBufferAlignment));
  return true;
}

bool wide(const OpCall& call) { return call.in(0).dtype == DType::kInt16; }

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  if (wide(call)) return q16_product_workspace(call, threads, bytes);
  QPlan p;
  int64_t packed = 0, scratch = 0;
  SINTER_RETURN_UNLESS(q_plan_of(call, &p) && needs_of(p, threads, &packed, &scratch), too_much_workspace());
  *bytes = static_cast<size_t>(packed + scratch);
  return ok_status();
}

Status run(const OpCall& call, RunContext& context) {
  if (wide(call)) return run_q16_product(call, context);
  QPlan p;
  int64_t packed = 0, scratch = 0;
  SINTER_RETURN_UNLESS(q_plan_of(call, &p) && needs_of(p, 1, &packed, &scratch), too_much_workspace());
  pack_groups(call, p, context.workspace.data(), context.threads);
  if (!q_share(&p, threads_of(context.threads))) return ok_status();
  return run_planned(call, p, context, context.workspace.data(), context.workspace.data() + packed);
}

Status accept(const OpCall& call) {
  if (wide(call)) return accept_q16_product(call);
  QPlan p;
  SINTER_RETURN_UNLESS(q_plan_of(call, &p), unsupported("a window is too large for the simd kernel"));
  return accept_dense(call);
}

// ---- constant weights

// Plans panels in the form of the instruction set in use. Fails for calls not of int8 with constant weights,
// and if the memory overflows.
bool plan_panels(const OpCall& call, QPlan* p) {
  if (wide(call) || !has_constant_rest(call) || !q_plan_of(call, p)) return false;
  p->bounded = bounds_products();
  return true;
}

// Does the same for pairs of rows, which are faster where they are possible.
bool plan_pairs(const OpCall& call, QPlan* p) {
  constexpr int64_t kMostElements = INT32_MAX / 4;  // of a box, so that its buffer's offsets are int32
  if (!simd_has_i8mm() || call.out(0).dtype != DType::kInt8 || call.has_input(4) || !plan_panels(call, p))
    return false;
  p->runs.pairs = true;
  return p->boxes.elements < kMostElements && pairs_fit(p->g);
}

using PlanCall = bool (*)(const OpCall& call, QPlan* p);

template <PlanCall kPlan, Fit kFit>
Fit takes_product(const OpCall& call, int threads, VariantNeeds* needs) {
  QPlan p;
  int64_t bytes = 0, scratch = 0;
  const bool zeros = call.has_input(4);
  if (!kPlan(call, &p) || !needs_of(p, threads, &bytes, &scratch)) return Fit::kNever;
  needs->workspace = static_cast<size_t>(scratch);
  needs->packing = form_of(bytes, zeros ? 0b11110u : 0b1110u,
                           {p.g.group, p.columns, p.runs.count, p.runs.length, p.x_zero, call.in(3).size(),
                            zeros ? call.in(4).size() : 0});
  return kFit;
}

template <PlanCall kPlan>
void pack_product(const OpCall& call, std::byte* packed, ThreadPool* threads) {
  QPlan p;
  if (kPlan(call, &p)) pack_groups(call, p, packed, threads);
}

template <PlanCall kPlan>
bool plan_product(const OpCall& call, const Preparation& with, void* plan) {
  auto* p = new (plan) QPlan();
  return kPlan(call, p) && (call.out(0).size() == 0 || q_share(p, threads_of(with.threads)));
}

Status run_product(const VariantStep& step, const OpCall& call, RunContext& context) {
  return run_planned(call, step.plan<QPlan>(), context, step.packed, context.workspace.data());
}

}  // namespace

const Variant qs8_gemm_i8mm = {.takes = takes_product<plan_pairs, Fit::kHere>,
                               .pack = pack_product<plan_pairs>,
                               .plan_bytes = sizeof(QPlan),
                               .plan = plan_product<plan_pairs>,
                               .run = run_product};
const Variant qs8_gemm = {.takes = takes_product<plan_panels, Fit::kEverywhere>,
                          .pack = pack_product<plan_panels>,
                          .plan_bytes = sizeof(QPlan),
                          .plan = plan_product<plan_panels>,
                          .run = run_product,
                          .full_name = q_gemm_name};

const Kernel kQFullyConnectedKernel = {Op::kQFullyConnected, nullptr, workspace, run, accept};
const Kernel kQConvKernel = {Op::kQConv, nullptr, workspace, run, accept};

}  // namespace sinter::simd
