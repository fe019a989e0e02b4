// MatMul, FullyConnected, Conv and ConvTranspose, as products of matrices.
#include <algorithm>

#include "platforms/cuda/operators/products.h"
#include "runtime/core/narrow_weights.h"

namespace sinter::cuda {
namespace {

Status set_size(int64_t n, uint32_t* size) {
  SINTER_RETURN_UNLESS(n >= 0 && n < INT32_MAX, unsupported("a matrix of 2^31 rows, columns or more"));
  *size = static_cast<uint32_t>(n);
  return ok_status();
}

Status set_part(ProductPart* part, int64_t rows, int64_t depth) {
  SINTER_RETURN_IF_ERROR(set_size(rows, &part->rows));
  return set_size(depth, &part->depth);
}

// Sets the operands of a layer or a convolution with weights and bias, and the type.
Status set_operands(Lowering& l, ProductArguments* a, double min, double max) {
  SINTER_RETURN_IF_ERROR(element_of(l.call().in(0).dtype, &a->element));
  SINTER_RETURN_IF_ERROR(check_dense_weights(l.call()));
  const DType weights = l.call().in(1).dtype;
  if (weights != l.call().in(0).dtype) {
    SINTER_RETURN_UNLESS(is_narrow_weight(weights),
                         unsupported("weights of a type that kernels do not widen"));
    a->narrow = weights;
  }
  set_bounds(a, min, max);
  a->a = l.in(0).data, a->b = l.in(1).data, a->y = l.out(0).data;
  if (l.has_input(2)) a->bias = l.in(2).data;
  return ok_status();
}

// The groups of a convolution are separate products.
Status set_groups(ProductArguments* a, const WindowGeometry& g) {
  const int64_t group[] = {g.group};
  SINTER_RETURN_IF_ERROR(box_of(group, &a->products));
  SINTER_RETURN_IF_ERROR(set_size(g.group_out(), &a->columns));
  a->a_steps.of[0] = g.group_in();
  a->b_step = g.taps() * g.group_in();
  a->b_steps.of[0] = g.group_out() * a->b_step;
  a->y_product = a->bias_product = static_cast<int32_t>(g.group_out());
  a->y_step = g.out_pixel();
  return ok_status();
}

}  // namespace

Status lower_Conv(Lowering& l) {
  const auto& attrs = l.attrs<ConvAttrs>();
  const WindowGeometry g = window_geometry<ConvAttrs>(l.call());
  const int64_t vector = vector_of(l.call().in(0).dtype);
  ProductArguments a;
  SINTER_RETURN_IF_ERROR(set_groups(&a, g));
  SINTER_RETURN_IF_ERROR(window_rows(g, &a.parts[0].window));
  SINTER_RETURN_IF_ERROR(set_part(&a.parts[0], g.batch * g.out_pixels(), a.b_step));
  SINTER_RETURN_IF_ERROR(set_operands(l, &a, attrs.act_min, attrs.act_max));
  a.a_vectors = g.group_in() % vector == 0 && g.in_pixel() % vector == 0;
  a.b_vectors = a.b_step % vector_of(l.call().in(1).dtype) == 0;
  return launch_product(l, a, 1);
}

Status lower_ConvTranspose(Lowering& l) {
  const auto& attrs = l.attrs<ConvTransposeAttrs>();
  const WindowGeometry g = window_geometry<ConvTransposeAttrs>(l.call());
  const int64_t vector = vector_of(l.call().in(0).dtype), channels = g.group_in();
  ProductArguments a;
  SINTER_RETURN_IF_ERROR(set_groups(&a, g));
  constexpr int kMostPhases = 1024;
  int64_t phases = 0;
  for_phases(g, [&](const TransposedPhase&) { ++phases; });
  SINTER_RETURN_UNLESS(phases <= kMostPhases, unsupported("a transposed convolution of %a phases", phases));
  SINTER_RETURN_IF_ERROR(set_operands(l, &a, attrs.act_min, attrs.act_max));
  a.a_vectors = channels % vector == 0 && g.in_pixel() % vector == 0;
  a.b_vectors = channels % vector == 0;
  a.phases = 1;
  for (int i = 0; i < kMaxWindowAxes; ++i) {
    SINTER_RETURN_UNLESS(g.out[i] <= INT32_MAX && g.stride[i] <= INT32_MAX,
                         unsupported("an axis or a stride of 2^31 or more"));
    a.y_dims[i] = static_cast<int32_t>(g.out[i]);
  }
  Status status = ok_status();
  int parts = 0;
  for_phases(g, [&](const TransposedPhase& phase) {
    if (!status.ok()) return;
    ProductPart& part = a.parts[parts++];
    part = {};
    status = phase_rows(g, phase, &part.window);
    if (status.ok()) status = set_part(&part, g.batch * phase.pixels(), phase.taps() * channels);
    int64_t tap = channels;  // elements from a tap to the next one along the axis
    for (int i = kMaxWindowAxes - 1; i >= 0; --i) {
      const PhaseAxis& axis = phase.axis[i];
      part.b_first += axis.tap * tap;
      part.b_tap[i] = axis.tap_step * tap;
      part.y_first[i] = static_cast<int32_t>(axis.first);
      part.y_stride[i] = static_cast<int32_t>(g.stride[i]);
      tap *= g.kernel[i];
    }
    if (parts < kMostParts || !status.ok()) return;
    status = launch_product(l, a, parts);
    parts = 0;
  });
  SINTER_RETURN_IF_ERROR(status);
  return launch_product(l, a, parts);
}

Status lower_FullyConnected(Lowering& l) {
  const auto& attrs = l.attrs<FullyConnectedAttrs>();
  const TensorView& x = l.call().in(0);
  const int64_t depth = x.dims[x.rank - 1], vector = vector_of(x.dtype);
  ProductArguments a;
  int64_t rows = 1, x_step = 0;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.dims[i];
  const bool even = x.evenly_spaced(&x_step) && l.out(0).evenly_spaced(&a.y_step);
  SINTER_RETURN_UNLESS(even, unsupported("rows are not evenly spaced"));
  if (x.constant) x_step = depth;
  SINTER_RETURN_IF_ERROR(set_size(l.call().in(1).dims[0], &a.columns));
  SINTER_RETURN_IF_ERROR(set_part(&a.parts[0], rows, depth));
  SINTER_RETURN_IF_ERROR(set_operands(l, &a, attrs.act_min, attrs.act_max));
  a.parts[0].window = matrix_rows(depth, x_step);
  a.b_step = depth;
  a.a_vectors = depth % vector == 0 && x_step % vector == 0;
  a.b_vectors = depth % vector_of(l.call().in(1).dtype) == 0;
  return launch_product(l, a, 1);
}

Status lower_MatMul(Lowering& l) {
  const auto& attrs = l.attrs<MatMulAttrs>();
  const TensorView &x = l.call().in(0), &y = l.call().in(1), &out = l.out(0);
  const bool across_x = attrs.transpose_a != 0, across_y = attrs.transpose_b == 0;
  const auto width = static_cast<int64_t>(byte_width(x.dtype));
  const int64_t vector = vector_of(x.dtype);
  int64_t rows = out.dims[out.rank - 2];
  const int64_t columns = out.dims[out.rank - 1], depth = x.dims[x.rank - (across_x ? 2 : 1)];
  ProductArguments a;
  SINTER_RETURN_IF_ERROR(element_of(x.dtype, &a.element));
  set_bounds(&a, -kInfinity, kInfinity);
  SINTER_RETURN_UNLESS((x.constant || x.dense()) && (y.constant || y.dense()) && out.dense(),
                       unsupported("a matrix is not dense"));
  a.a = l.in(0).data, a.b = l.in(1).data, a.y = out.data;

  const auto batch_of = [](TensorView v) { return v.rank = static_cast<uint8_t>(v.rank - 2), v; };
  SINTER_RETURN_IF_ERROR(box_of(out.shape().first(static_cast<size_t>(out.rank) - 2), &a.products));
  a.a_steps = steps_of(batch_of(l.in(0)), a.products), a.b_steps = steps_of(batch_of(l.in(1)), a.products);
  Steps* const both[] = {&a.a_steps, &a.b_steps};
  merge_axes(&a.products, both);
  for (Steps* steps : both)
    for (int64_t& step : steps->of) step /= width;
  // Matrices that follow each other and have the same other operand are one.
  if (!across_x && a.products.rank == 1 && a.b_steps.of[0] == 0 && a.a_steps.of[0] == rows * depth) {
    rows *= a.products.size;
    a.products = Box{}, a.a_steps = Steps{};
  }
  SINTER_RETURN_IF_ERROR(set_size(columns, &a.columns));
  SINTER_RETURN_IF_ERROR(set_part(&a.parts[0], rows, depth));
  a.parts[0].window = matrix_rows(depth, depth);
  a.a_across = across_x, a.b_across = across_y;
  a.a_step = rows, a.b_step = across_y ? columns : depth;
  a.a_vectors = (across_x ? rows : depth) % vector == 0;
  a.b_vectors = (across_y ? columns : depth) % vector == 0;
  a.y_step = columns, a.y_product = rows * columns;
  return launch_product(l, a, 1);
}

}  // namespace sinter::cuda
