// QFullyConnected and QConv on the product of gemm.h: box by box, each copied by the thread that multiplies
// it with all panels of weights.
#include "platforms/simd/int16/gemm.h"
#include "platforms/simd/int8/conv_few_channels.h"
#include "platforms/simd/int8/conv_plan.h"
#include "platforms/simd/int8/gemm_i8mm.h"
#include "platforms/simd/int8/winograd.h"
#include "platforms/simd/packed.h"
#include "platforms/simd/simd_kernels.h"

namespace sinter::simd {
namespace {

void pack(const OpCall& call, const QPlan& p, std::byte* memory, ThreadPool* threads) {
  parallel_for(threads, p.g.group, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group)
      pack_q_panels(q_weights_of(call, p, group), static_cast<int32_t>(p.x_zero),
                    q_packed_at(p, group, call.has_input(4), memory));
  });
}

// ---- Winograd, of constant weights

bool fits_winograd(const OpCall& call, const QPlan& p) {
  return call.op == Op::kQConv && call.out(0).size() > 0 && winograd_fits(p.g, call.has_input(4));
}

// About as much scratch as the direct convolution takes.
QWinograd winograd_of(const QPlan& p) {
  int64_t each = 0;
  if (!QScratch::bytes(p, &each)) each = 0;
  return q_winograd(p.g, p.x_zero, each);
}

void pack_winograd(const OpCall& call, const QPlan& p, std::byte* memory, ThreadPool* threads) {
  const QWinograd w = winograd_of(p);
  const QWinogradPacked packed = q_winograd_packed(w, memory);
  parallel_for(threads, divide_up(p.columns, q_panel_width()), 1, [&](int64_t begin, int64_t end) {
    pack_q_winograd(w, q_weights_of(call, p, 0), packed, begin, end);
  });
}

Status run_winograd(const OpCall& call, const QPlan& p, RunContext& context, std::byte* memory) {
  QWinograd w = winograd_of(p);
  w.x = call.in(0).as<const int8_t>(), w.result = p.result;
  int64_t each = 0;
  if (!q_winograd_scratch_bytes(w, &each)) return ok_status();
  const QWinogradPacked packed = q_winograd_packed(w, memory);
  const int64_t threads = threads_of(context.threads), panels = divide_up(p.columns, q_panel_width());
  const int64_t blocks = divide_up(w.tiles, w.block);
  // Where there are too few blocks, panels are shared out as well.
  const int64_t parts = blocks >= threads ? 1 : std::min(panels, divide_up(threads, blocks));
  const int64_t units = blocks * parts, slots = std::min(units, threads);
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t block = unit / parts, part = unit % parts;
      run_q_winograd(w, packed, w.tiles * block / blocks, w.tiles * (block + 1) / blocks,
                     panels * part / parts, panels * (part + 1) / parts,
                     context.workspace.data() + slot * each);
    }
  });
  return ok_status();
}

// ---- few channels, of constant weights

bool fits_narrow(const OpCall& call, const QPlan& p) {
  return call.op == Op::kQConv && call.out(0).size() > 0 && !call.has_input(4) && narrow_fits(p.g);
}
bool runs_narrow(const OpCall& call, const QPlan& p) { return fits_narrow(call, p) && q_narrow_gains(p.g); }

// Of one thread, where `threads` share the boxes.
bool narrow_scratch(const OpCall& call, const QPlan& p, int64_t threads, QNarrow* n, int64_t* bytes) {
  n->g = p.g, n->x_zero = p.x_zero, n->x = call.in(0).as<const int8_t>(), n->result = p.result;
  return choose_q_narrow_boxes(n, threads) && q_narrow_scratch_bytes(*n, bytes);
}

Status run_narrow(const OpCall& call, const QPlan& p, RunContext& context, const std::byte* packed) {
  QNarrow n;
  int64_t each = 0;
  if (!narrow_scratch(call, p, threads_of(context.threads), &n, &each)) return ok_status();
  parallel_boxes(context.threads, n.g, n.boxes, [&](int64_t slot, const QBox& box) {
    run_q_narrow(n, packed, box, context.workspace.data() + slot * each);
  });
  return ok_status();
}

// Whether rows are read in the input: windows of one tap, all of them inside.
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

// The first pixel of the box in the input.
int64_t input_pixel(const Geometry& g, const QBox& box) {
  return ((box.batch * g.in[0] + box.begin[0] * g.stride[0]) * g.in[1] + box.begin[1] * g.stride[1]) *
             g.in[2] +
         box.begin[2] * g.stride[2];
}

// Where the rows of boxes of one shape begin, `lines` times `line`, in an input of these elements to a line
// and a pixel, and from their first pixel on in the result.
void set_rows(const Geometry& g, int64_t lines, int64_t line, int64_t line_size, int64_t pixel,
              const QScratch& s) {
  int64_t r = 0;
  for (int64_t i = 0; i < lines; ++i)
    for (int64_t j = 0; j < line; ++j, ++r) {
      s.rows[r] = static_cast<int32_t>(i * g.stride[1] * line_size + j * g.stride[2] * pixel);
      s.y_rows[r] = (i * g.out[2] + j) * g.out_channels;
    }
}

// Where the runs begin, from `from` on.
void set_runs(const QPlan& p, int64_t lines, int64_t line, int64_t pixel, int64_t from, int32_t* runs) {
  const Geometry& g = p.g;
  const int64_t taps = p.runs.count / (g.kernel[0] * g.kernel[1]);
  for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0)
    for (int64_t t1 = 0; t1 < g.kernel[1]; ++t1)
      for (int64_t t2 = 0; t2 < taps; ++t2)
        *runs++ = static_cast<int32_t>(
            ((t0 * lines + t1 * g.dilation[1]) * line + t2 * g.dilation[2]) * pixel + from);
}

// What a thread multiplies at a time: a box by panels first .. end - 1.
struct Unit {
  QBox box;
  int64_t first = 0, end = 0;
  bool other_box = true, other_shape = true;  // than those of the thread's last one
};

// Calls f(scratch, unit) for all of them.
template <class F>
void share_units(const QPlan& p, RunContext& context, std::byte* memory, int64_t each, F&& f) {
  const int64_t threads = threads_of(context.threads);
  const int64_t boxes = p.boxes.count(p.g), panels = divide_up(p.columns, q_panel_width());
  const int64_t parts = boxes >= threads ? 1 : std::min(panels, divide_up(threads, boxes));
  const int64_t units = boxes * parts, slots = std::min(units, threads);
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    const QScratch s(p, memory + slot * each);
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

// The box's part of the result, of one group.
ProductResult result_of(const QPlan& p, const QBox& box, int64_t group) {
  ProductResult result = p.result;
  result.y = static_cast<std::byte*>(result.y) +
             (box.pixel(p.g, box.begin[1], box.begin[2]) * p.g.out_channels + group * p.columns) *
                 static_cast<int64_t>(byte_width(result.type));
  return result;
}

void run_pairs(const QPlan& p, RunContext& context, const int8_t* x, std::byte* packed, std::byte* scratch,
               int64_t each) {
  const Geometry& g = p.g;
  share_units(p, context, scratch, each, [&](const QScratch& s, const Unit& unit) {
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

// Whether rows are lowered (lower_q_rows): where that takes little beside the products.
bool lowers(const QPlan& p, bool zeros) {
  constexpr int64_t kDepth = 16, kColumns = 64;
  return bounds_products() && !zeros && pointwise(p.g) && p.g.group == 1 && p.runs.length >= kDepth &&
         p.columns >= kColumns;
}

void run_rows(const QPlan& p, RunContext& context, const int8_t* x, bool zeros, std::byte* packed,
              std::byte* scratch, int64_t each) {
  const Geometry& g = p.g;
  const bool copies = !in_place(p), lowered = lowers(p, zeros);
  share_units(p, context, scratch, each, [&](const QScratch& s, const Unit& unit) {
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

Status run_with(const OpCall& call, QPlan p, RunContext& context, std::byte* packed, std::byte* scratch) {
  int64_t each = 0;
  if (call.out(0).size() == 0 || !q_shared_scratch(&p, threads_of(context.threads), &each))
    return ok_status();
  const auto* x = call.in(0).as<const int8_t>();
  if (p.runs.pairs)
    run_pairs(p, context, x, packed, scratch, each);
  else
    run_rows(p, context, x, call.has_input(4), packed, scratch, each);
  return ok_status();
}

Status needs_of(const OpCall& call, int threads, bool for_packing, size_t* packed, size_t* scratch) {
  QPlan p;
  int64_t a = 0, b = 0;
  const auto scratch_of = [&p](int64_t n, int64_t* bytes) {
    QPlan shared = p;
    return q_shared_scratch(&shared, n, bytes);
  };
  SINTER_RETURN_UNLESS(q_plan_of(call, for_packing, &p) && q_packed_bytes(p, &a) &&
                           checked_mul(a, p.g.group, &a) && scratch_of_threads(threads, scratch_of, &b) &&
                           a < INT64_MAX / 2 && b < INT64_MAX / 4,
                       too_much_workspace());
  *packed = align_up(static_cast<size_t>(a), kBufferAlignment);
  *scratch = static_cast<size_t>(b);
  return ok_status();
}

bool wide(const OpCall& call) { return call.in(0).dtype == DType::kInt16; }

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  if (wide(call)) return q16_product_workspace(call, threads, bytes);
  size_t packed = 0, scratch = 0;
  SINTER_RETURN_IF_ERROR(needs_of(call, threads, false, &packed, &scratch));
  *bytes = packed + scratch;
  return ok_status();
}

Status run(const OpCall& call, RunContext& context) {
  if (wide(call)) return run_q16_product(call, context);
  size_t packed = 0, scratch = 0;
  SINTER_RETURN_IF_ERROR(needs_of(call, 1, false, &packed, &scratch));
  QPlan p;
  if (!q_plan_of(call, false, &p)) return ok_status();
  pack(call, p, context.workspace.data(), context.threads);
  return run_with(call, p, context, context.workspace.data(), context.workspace.data() + packed);
}

Status accept(const OpCall& call) {
  if (wide(call)) return accept_q16_product(call);
  QPlan p;
  SINTER_RETURN_UNLESS(q_plan_of(call, false, &p), unsupported("a window is too large for the simd kernel"));
  return accept_dense(call);
}

}  // namespace

bool q_product_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace) {
  QPlan p;
  size_t bytes = 0;
  for (size_t i = 2; i < call.inputs.size(); ++i)
    if (call.has_input(i) && !call.in(i).constant) return false;
  if (wide(call)) return q16_product_packing(call, threads, packing, workspace);
  if (!needs_of(call, threads, true, &bytes, workspace).ok() || !q_plan_of(call, true, &p)) return false;
  const bool zeros = call.has_input(4);
  if (fits_narrow(call, p)) {
    // The workspace is planned for any instruction set.
    QNarrow n;
    int64_t filters = 0, scratch = 0;
    const auto scratch_of = [&](int64_t sharing, int64_t* each) {
      return narrow_scratch(call, p, sharing, &n, each);
    };
    if (!scratch_of_threads(threads, scratch_of, &scratch) || !q_narrow_packed_bytes(n, &filters))
      return false;
    *workspace = std::max(*workspace, static_cast<size_t>(scratch));
    if (q_narrow_gains(p.g)) {
      *packing = {align_up(static_cast<size_t>(filters), kBufferAlignment),
                  0b1110u,
                  {kIntegerNarrow, p.g.kernel[0] * p.g.kernel[1], p.g.kernel[2],
                   p.g.stride[2] * p.g.in_channels, p.g.dilation[2], p.columns, p.x_zero, call.in(3).size()}};
      return true;
    }
  }
  if (fits_winograd(call, p)) {
    // The workspace is planned for any instruction set.
    const QWinograd w = winograd_of(p);
    int64_t filters = 0, scratch = 0;
    if (!q_winograd_packed_bytes(w, &filters) || !q_winograd_scratch_bytes(w, &scratch) ||
        !checked_mul<int64_t>(scratch, std::max(threads, 1), &scratch))
      return false;
    *workspace = std::max(*workspace, static_cast<size_t>(scratch));
    if (winograd_gains()) {
      *packing = {static_cast<size_t>(filters),
                  zeros ? 0b11110u : 0b1110u,
                  {kIntegerWinogradPanels, p.columns, p.g.in_channels, call.in(3).size(),
                   zeros ? call.in(4).size() : 0}};
      return true;
    }
  }
  *packing = {bytes,
              zeros ? 0b11110u : 0b1110u,
              {p.runs.pairs ? kIntegerPairs : kIntegerPanels, p.g.group, p.columns, p.runs.count,
               p.runs.length, p.x_zero, call.in(3).size(), zeros ? call.in(4).size() : 0}};
  return true;
}

void pack_q_product(const OpCall& call, std::byte* packed, ThreadPool* threads) {
  if (wide(call)) return pack_q16_product(call, packed, threads);
  QPlan p;
  if (!q_plan_of(call, true, &p)) return;
  if (runs_narrow(call, p)) return pack_q_narrow(p.g, p.x_zero, q_weights_of(call, p, 0), packed);
  if (fits_winograd(call, p) && winograd_gains()) return pack_winograd(call, p, packed, threads);
  pack(call, p, packed, threads);
}

Status run_packed_q_product(void* packed, const OpCall& call, RunContext& context) {
  if (wide(call)) return run_packed_q16_product(static_cast<std::byte*>(packed), call, context);
  QPlan p;
  if (!q_plan_of(call, true, &p)) return ok_status();
  if (runs_narrow(call, p)) return run_narrow(call, p, context, static_cast<std::byte*>(packed));
  if (fits_winograd(call, p) && winograd_gains())
    return run_winograd(call, p, context, static_cast<std::byte*>(packed));
  return run_with(call, p, context, static_cast<std::byte*>(packed), context.workspace.data());
}

const Kernel kQFullyConnectedKernel = {Op::kQFullyConnected, nullptr, workspace, run, accept};
const Kernel kQConvKernel = {Op::kQConv, nullptr, workspace, run, accept};

}  // namespace sinter::simd
