// QConv, QConvTranspose and QFullyConnected.
//
// Weights become rows of a multiple of 16 elements, on the host if they are constants. A transposed
// convolution has such rows for each of its phases.
#include <cstring>

#include "platforms/cuda/operators/q_products.h"
#include "platforms/cuda/operators/window_rows.h"

namespace sinter::cuda {
namespace {

// The weights of one product: its part of the packed ones.
struct PackedFilters {
  FilterTaps taps;
  int64_t columns = 0, depth = 0, pitch = 0, filter = 0;
  int64_t bytes() const { return columns * pitch; }
};

PackedFilters filters_of(const WindowGeometry& g, const TransposedPhase* phase) {
  PackedFilters f;
  f.columns = g.out_channels, f.filter = g.taps() * g.group_in();
  int64_t taps[3];
  for (int i = 0; i < 3; ++i) {
    taps[i] = phase != nullptr ? phase->axis[i].taps : g.kernel[i];
    if (phase == nullptr) continue;
    f.taps.first[i] = static_cast<uint32_t>(phase->axis[i].tap);
    f.taps.step[i] = static_cast<uint32_t>(phase->axis[i].tap_step);
  }
  f.depth = taps[0] * taps[1] * taps[2] * g.group_in();
  f.pitch = static_cast<int64_t>(align_up(static_cast<size_t>(f.depth), 16));
  const auto divider = [](int64_t n) { return Divider(n > 0 ? n : 1); };
  f.taps.channels = divider(g.group_in()), f.taps.taps1 = divider(taps[1]), f.taps.taps2 = divider(taps[2]);
  f.taps.kernel1 = static_cast<uint32_t>(g.kernel[1]), f.taps.kernel2 = static_cast<uint32_t>(g.kernel[2]);
  return f;
}

// Calls f for each product in order, with the filters that it reads.
template <class A, class F>
Status for_products(const WindowGeometry& g, F&& f) {
  if constexpr (!kTransposedWindow<A>) {
    return f(filters_of(g, nullptr), nullptr);
  } else {
    Status status = ok_status();
    for_phases(g, [&](const TransposedPhase& phase) {
      if (status.ok()) status = f(filters_of(g, &phase), &phase);
    });
    return status;
  }
}

// Returns the geometry; a layer is a convolution of images of one pixel.
template <class A>
WindowGeometry geometry_of(const OpCall& call) {
  if constexpr (A::kOp == Op::kQFullyConnected) {
    const TensorView &x = call.in(0), &y = call.out(0);
    WindowGeometry g;
    g.batch = 1;
    for (int i = 0; i + 1 < x.rank; ++i) g.batch *= x.dims[i];
    g.in_channels = x.dims[x.rank - 1], g.out_channels = y.dims[y.rank - 1];
    g.set_steps(call);
    return g;
  } else {
    return window_geometry<A>(call);
  }
}

template <class A>
void pack_filters(const OpCall& call, std::span<std::byte> to) {
  const auto* weights = call.in(1).as<std::byte>();
  std::memset(to.data(), 0, to.size());
  std::byte* at = to.data();
  (void)for_products<A>(geometry_of<A>(call), [&](const PackedFilters& f, const TransposedPhase*) {
    for (int64_t o = 0; o < f.columns; ++o, at += f.pitch)
      for (int64_t k = 0; k < f.depth; ++k)
        at[k] = weights[o * f.filter + f.taps.place(static_cast<uint32_t>(k))];
    return ok_status();
  });
}

// Calls f with the sums of each product and output channel, in 64 bits.
template <class A, class F>
void for_terms(const OpCall& call, F&& f) {
  const bool wide = call.in(0).dtype == DType::kInt16;
  const auto* weights = call.in(1).as<int8_t>();
  const auto x_zero = static_cast<uint64_t>(call.attrs<A>().x_zero - (wide ? 128 : 0));
  (void)for_products<A>(geometry_of<A>(call), [&](const PackedFilters& p, const TransposedPhase*) {
    for (int64_t o = 0; o < p.columns; ++o) {
      uint64_t sum = 0;
      for (int64_t k = 0; k < p.depth; ++k)
        sum += static_cast<uint64_t>(int64_t{weights[o * p.filter + p.taps.place(static_cast<uint32_t>(k))]});
      uint64_t zero = 0;
      if (call.has_input(4))
        zero = static_cast<uint64_t>(int64_t{call.in(4).as<int8_t>()[call.in(4).size() == 1 ? 0 : o]});
      const uint64_t bias = wide ? static_cast<uint64_t>(call.in(2).as<int64_t>()[o])
                                 : static_cast<uint64_t>(int64_t{call.in(2).as<int32_t>()[o]});
      f(bias + x_zero * (static_cast<uint64_t>(p.depth) * zero - sum));
    }
    return ok_status();
  });
}
template <class A>
void pack_terms(const OpCall& call, std::span<std::byte> to) {
  std::byte* at = to.data();
  const size_t width = call.in(0).dtype == DType::kInt16 ? 8 : 4;
  for_terms<A>(call, [&](uint64_t term) {
    const auto low = static_cast<uint32_t>(term);
    if (width == 8)
      std::memcpy(at, &term, 8);
    else
      std::memcpy(at, &low, 4);
    at += width;
  });
}

Status add_pack(Lowering& l, const PackedFilters& f, const std::byte* from, std::byte* to) {
  QPackArguments a;
  a.to = to, a.from = from, a.taps = f.taps;
  a.columns = static_cast<uint32_t>(f.columns), a.depth = static_cast<uint32_t>(f.depth);
  a.filter = static_cast<uint32_t>(f.filter);
  a.pitch = Divider(f.pitch > 0 ? f.pitch : 1);
  if (f.bytes() == 0) return ok_status();
  return l.launch<Kernel::k_q_pack>({.blocks = {blocks_for(f.bytes(), threads_of(Kernel::k_q_pack))}}, a);
}

template <class A>
Status lower_product(Lowering& l) {
  const auto& attrs = l.attrs<A>();
  const WindowGeometry g = geometry_of<A>(l.call());
  const DType x_type = l.call().in(0).dtype, y_type = l.call().out(0).dtype;
  const bool wide = x_type == DType::kInt16;
  const int64_t sum_bytes = wide ? 8 : 4;

  int64_t packed_bytes = 0, count = 0;
  SINTER_RETURN_IF_ERROR(for_products<A>(g, [&](const PackedFilters& f, const TransposedPhase*) {
    int64_t bytes = 0;
    SINTER_RETURN_UNLESS(f.filter < INT32_MAX && checked_mul(f.columns, f.pitch, &bytes) &&
                             checked_add(packed_bytes, bytes, &packed_bytes) && bytes <= INT32_MAX,
                         unsupported("weights of 2^31 bytes or more"));
    return ++count, ok_status();
  }));
  if (count == 0 || l.call().out(0).size() == 0) return ok_status();
  SINTER_RETURN_UNLESS(g.batch * g.out_pixels() <= INT32_MAX, unsupported("2^31 pixels or more"));

  QProductArguments a;
  a.x = l.in(0).data;
  a.x_zero = static_cast<int32_t>(attrs.x_zero);
  a.result = integer_result(attrs, y_type);
  set_columns(l, &a);

  // Weights are read as they are, packed when the session is created, or packed in each run.
  const bool constant = l.is_constant(1);
  const bool as_they_are = !kTransposedWindow<A> && g.taps() * g.group_in() % 16 == 0;
  std::byte* weights = nullptr;
  if (as_they_are)
    weights = l.in(1).data;
  else if (constant)
    weights = l.packed(static_cast<size_t>(packed_bytes), pack_filters<A>);
  else
    weights = l.workspace(static_cast<size_t>(packed_bytes));

  const bool foldable = constant && l.is_constant(2) && (!l.has_input(4) || l.is_constant(4));
  a.folded = foldable && a.x_zero != (wide ? 128 : 0);
  const std::byte* terms =
      a.folded != 0 ? l.packed(static_cast<size_t>(count * g.out_channels * sum_bytes), pack_terms<A>)
                    : l.in(2).data;

  SINTER_RETURN_IF_ERROR(box_of({&g.group, 1}, &a.products));
  a.x_steps.of[0] = g.group_in() * static_cast<int64_t>(byte_width(x_type));
  a.y_steps.of[0] = g.group_out() * static_cast<int64_t>(byte_width(y_type));
  a.column_steps.of[0] = g.group_out();
  a.columns = static_cast<uint32_t>(g.group_out());
  a.y = l.out(0).data, a.y_step = g.out_pixel();

  int64_t weights_at = 0, terms_at = 0;
  return for_products<A>(g, [&](const PackedFilters& f, const TransposedPhase* phase) {
    std::byte* here = weights != nullptr ? weights + weights_at : nullptr;
    a.w = here, a.terms = terms != nullptr ? terms + terms_at : nullptr;
    if (!as_they_are && !constant) SINTER_RETURN_IF_ERROR(add_pack(l, f, l.in(1).data, here));
    weights_at += f.bytes();
    if (a.folded != 0) terms_at += g.out_channels * sum_bytes;
    a.w_steps.of[0] = g.group_out() * f.pitch;
    a.depth = a.x_depth = static_cast<uint32_t>(f.depth), a.pitch = static_cast<uint32_t>(f.pitch);
    int64_t pixels = g.out_pixels();
    if (phase != nullptr) {
      SINTER_RETURN_IF_ERROR(phase_rows(g, *phase, &a.window));
      a.scattered.on = 1, pixels = phase->pixels();
      for (int i = 0; i < 3; ++i) {
        a.scattered.first[i] = static_cast<int32_t>(phase->axis[i].first);
        a.scattered.stride[i] = static_cast<int32_t>(g.stride[i]);
        a.scattered.out[i] = static_cast<int32_t>(g.out[i]);
      }
    } else if constexpr (A::kOp == Op::kQFullyConnected) {
      a.window = matrix_rows(g.in_channels, g.in_pixel());
    } else {
      SINTER_RETURN_IF_ERROR(window_rows(g, &a.window));
    }
    a.unit = a.window.matrix != 0 && g.group == 1
                 ? unit_of({f.depth, a.window.in_step})
                 : unit_of({g.group_in(), a.window.in_step, a.window.image_step});
    a.rows = static_cast<uint32_t>(g.batch * pixels);
    return launch_products(l, a, x_type, DType::kInt8, l.call().in(0).dense());
  });
}

}  // namespace

Status lower_QConv(Lowering& l) { return lower_product<QConvAttrs>(l); }
Status lower_QConvTranspose(Lowering& l) { return lower_product<QConvTransposeAttrs>(l); }
Status lower_QFullyConnected(Lowering& l) { return lower_product<QFullyConnectedAttrs>(l); }

}  // namespace sinter::cuda
