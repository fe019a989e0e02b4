// Resize, QResize.
#include <cmath>
#include <cstring>
#include <limits>

#include "platforms/cuda/operators.h"
#include "platforms/cuda/operators/move.h"
#include "runtime/core/float_formats.h"
#include "runtime/core/op_enums.h"
#include "runtime/core/resize_taps.h"

namespace sinter::cuda {
namespace {

bool is_nearest(const ResizeAttrs& a) { return a.mode == static_cast<int64_t>(ResizeMode::kNearest); }
bool is_crop(const ResizeAttrs& a) {
  return a.coordinates == static_cast<int64_t>(ResizeCoordinates::kTfCropAndResize);
}
bool sums_in_double(DType t) { return t == DType::kFloat64 || is_integer(t); }

// The places of an axis' tables, from the beginning of the packed form. Tables of resize_taps.h are then
// narrowed in place: indices to 32 bits, and weights to 32 if sums have 32.
struct TablePlaces {
  size_t index = 0, weight = 0, outside = 0;
};
TablePlaces places_behind(BumpArena& arena, ResizeAxis* axis) {
  const size_t begin = align_up(arena.used(), alignof(int64_t));
  const size_t n = static_cast<size_t>(axis->out) * static_cast<size_t>(axis->taps);
  take_resize_tables(arena, axis);
  return {begin, begin + n * sizeof(int64_t), begin + n * (sizeof(int64_t) + sizeof(double))};
}

template <class From, class To>
void narrow_in_place(From* table, size_t n) {
  auto* bytes = reinterpret_cast<std::byte*>(table);
  for (size_t i = 0; i < n; ++i) {
    From v;
    std::memcpy(&v, bytes + i * sizeof(From), sizeof(v));
    const To narrow = static_cast<To>(v);
    std::memcpy(bytes + i * sizeof(To), &narrow, sizeof(narrow));
  }
}

void pack_tables(const OpCall& call, std::span<std::byte> to) {
  const auto& a = call.attrs<ResizeAttrs>();
  const TensorView& x = call.in(0);
  ResizeAxis axes[kMaxRank];
  resize_axes(a, x, axes);
  BumpArena arena(to);
  for (int i = 0; i < x.rank; ++i) {
    if (axes[i].identity) continue;
    take_resize_tables(arena, &axes[i]);
    if (arena.exhausted()) return;
    fill_resize_tables(a, &axes[i]);
    const size_t n = static_cast<size_t>(axes[i].out) * static_cast<size_t>(axes[i].taps);
    narrow_in_place<int64_t, int32_t>(axes[i].index, n);
    if (!is_nearest(a) && !sums_in_double(x.dtype)) narrow_in_place<double, float>(axes[i].weight, n);
  }
}

// The axes of the box: those that stay and are neighbours become one.
struct Layout {
  ResizeAxis axes[kMaxRank];
  TablePlaces places[kMaxRank];
  size_t table_bytes = 0;
  Box box;
  Steps steps;            // of the operand, in bytes
  int axis_of[kBoxRank];  // for each axis of the box: the operand's axis, or -1 for one that stays
  int resized = 0;
};

Status make_layout(const ResizeAttrs& a, const TensorView& x, const TensorView& y, Layout* to) {
  SINTER_RETURN_UNLESS(x.dense() && y.dense(), unsupported("operands are not dense"));
  Box whole;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &whole));
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &whole));
  to->box.size = whole.size;
  if (whole.size == 0) return ok_status();
  resize_axes(a, x, to->axes);
  TensorView from = x;  // with strides of axes of one element, too
  from.set_dense_strides();
  BumpArena arena;
  for (int i = 0; i < x.rank; ++i) {
    const int last = to->box.rank - 1;
    if (!to->axes[i].identity) {
      int64_t entries = 0;
      SINTER_RETURN_UNLESS(checked_mul(to->axes[i].out, to->axes[i].taps, &entries) && entries <= 1 << 22,
                           unsupported("the tables of this resize are too large"));
      to->places[i] = places_behind(arena, &to->axes[i]);
      ++to->resized;
    } else if (last >= 0 && to->axis_of[last] < 0) {
      to->box.dims[last] = Divider(int64_t{to->box.dims[last].divisor} * x.dims[i]);
      to->steps.of[last] = from.strides[i];
      continue;
    }
    to->axis_of[to->box.rank] = to->axes[i].identity ? -1 : i;
    to->steps.of[to->box.rank] = from.strides[i];
    to->box.dims[to->box.rank++] = Divider(y.dims[i]);
  }
  to->table_bytes = arena.used();
  SINTER_RETURN_UNLESS(!arena.exhausted() && to->table_bytes <= 64 << 20,
                       unsupported("the tables of this resize are too large"));
  return ok_status();
}

template <class T>
void repeat(T v, unsigned char (&bytes)[16]) {
  for (size_t i = 0; i < sizeof(bytes); i += sizeof(T)) std::memcpy(bytes + i, &v, sizeof(T));
}
template <class T>
void repeat_rounded(double v, unsigned char (&bytes)[16]) {
  using Limits = std::numeric_limits<T>;
  const double r = std::nearbyint(v);
  T rounded = 0;
  if (r <= static_cast<double>(Limits::min()))
    rounded = Limits::min();
  else if (r >= static_cast<double>(Limits::max()))
    rounded = Limits::max();
  else if (r == r)
    rounded = static_cast<T>(r);
  repeat(rounded, bytes);
}
// Fills 16 bytes with elements that have a value.
Status fill_bytes(DType t, double v, unsigned char (&bytes)[16]) {
  switch (t) {
    case DType::kFloat32:
      return repeat(static_cast<float>(v), bytes), ok_status();
    case DType::kFloat64:
      return repeat(v, bytes), ok_status();
    case DType::kFloat16:
      return repeat(float16_bits(v), bytes), ok_status();
    case DType::kBFloat16:
      return repeat(bfloat16_bits(v), bytes), ok_status();
    case DType::kBool:
      return repeat(static_cast<uint8_t>(v != 0), bytes), ok_status();
    case DType::kInt8:
      return repeat_rounded<int8_t>(v, bytes), ok_status();
    case DType::kUint8:
      return repeat_rounded<uint8_t>(v, bytes), ok_status();
    case DType::kInt16:
      return repeat_rounded<int16_t>(v, bytes), ok_status();
    case DType::kUint16:
      return repeat_rounded<uint16_t>(v, bytes), ok_status();
    case DType::kInt32:
      return repeat_rounded<int32_t>(v, bytes), ok_status();
    case DType::kUint32:
      return repeat_rounded<uint32_t>(v, bytes), ok_status();
    case DType::kInt64:
      return repeat_rounded<int64_t>(v, bytes), ok_status();
    case DType::kUint64:
      return repeat_rounded<uint64_t>(v, bytes), ok_status();
    default:
      return unsupported("elements of this type have no value outside");
  }
}

Status lower_nearest(Lowering& l, const ResizeAttrs& attrs, Layout& layout) {
  const TensorView &x = l.in(0), &y = l.out(0);
  ResizeNearestArguments a;
  a.to = y.data, a.from = x.data, a.box = layout.box, a.steps = layout.steps;
  a.width = static_cast<int32_t>(byte_width(x.dtype));
  if (is_crop(attrs)) SINTER_RETURN_IF_ERROR(fill_bytes(x.dtype, attrs.extrapolation_value, a.fill));
  std::byte* tables = layout.table_bytes > 0 ? l.packed(layout.table_bytes, pack_tables) : nullptr;
  for (int i = 0; i < a.box.rank; ++i) {
    if (layout.axis_of[i] < 0) continue;
    const TablePlaces& places = layout.places[layout.axis_of[i]];
    a.index[i] = reinterpret_cast<const int32_t*>(behind(tables, static_cast<int64_t>(places.index)));
    if (is_crop(attrs))
      a.outside[i] = reinterpret_cast<const uint8_t*>(behind(tables, static_cast<int64_t>(places.outside)));
  }
  Steps* const one[] = {&a.steps};
  if (a.box.rank > 0 && layout.axis_of[a.box.rank - 1] < 0) a.width = widen_elements(&a.box, one, a.width);
  return l.launch<Kernel::k_resize_nearest>(
      {.blocks = {blocks_for(a.box.size, threads_of(Kernel::k_resize_nearest))}}, a);
}

}  // namespace

Status lower_Resize(Lowering& l) {
  const auto& attrs = l.attrs<ResizeAttrs>();
  Layout layout;
  SINTER_RETURN_IF_ERROR(check_movable(l.call().in(0)));
  SINTER_RETURN_IF_ERROR(make_layout(attrs, l.call().in(0), l.out(0), &layout));
  if (layout.box.size == 0) return ok_status();
  if (is_nearest(attrs)) return lower_nearest(l, attrs, layout);
  ResizeArguments a;
  SINTER_RETURN_UNLESS(layout.resized <= kResizedAxes, unsupported("more than three axes change"));
  SINTER_RETURN_UNLESS(is_number(l.call().in(0).dtype),
                       unsupported("elements of this type are not interpolated"));
  a.type = l.call().in(0).dtype;
  const TensorView &x = l.in(0), &y = l.out(0);
  const auto width = static_cast<int64_t>(byte_width(x.dtype));
  const bool in_double = sums_in_double(x.dtype);
  a.to = y.data, a.from = x.data, a.box = layout.box, a.fill = attrs.extrapolation_value;
  std::byte* tables = layout.table_bytes > 0 ? l.packed(layout.table_bytes, pack_tables) : nullptr;
  int slot = kResizedAxes - layout.resized;
  for (int i = 0; i < a.box.rank; ++i) {
    a.steps.of[i] = layout.steps.of[i] / width;
    a.resized[i] = -1;
    if (layout.axis_of[i] < 0) continue;
    const ResizeAxis& axis = layout.axes[layout.axis_of[i]];
    const TablePlaces& places = layout.places[layout.axis_of[i]];
    a.resized[i] = slot;
    ResizeTables& t = a.tables[slot++];
    t.index = reinterpret_cast<const int32_t*>(behind(tables, static_cast<int64_t>(places.index)));
    t.weight = behind(tables, static_cast<int64_t>(places.weight));
    t.outside = reinterpret_cast<const uint8_t*>(behind(tables, static_cast<int64_t>(places.outside)));
    t.taps = static_cast<int32_t>(axis.taps), t.step = a.steps.of[i];
  }
  const int last = a.box.rank - 1;
  if (!in_double && last >= 0 && a.resized[last] < 0 && a.box.dims[last].divisor % kResizeGroup == 0) {
    a.group = kResizeGroup;
    a.box.dims[last] = Divider(a.box.dims[last].divisor / kResizeGroup);
    a.box.size /= kResizeGroup;
    a.steps.of[last] = kResizeGroup;
  }
  return l.launch_one_of(in_double ? Kernel::k_resize_in_double : Kernel::k_resize,
                         {.blocks = {blocks_for(a.box.size, threads_of(Kernel::k_resize))}}, a);
}

Status lower_QResize(Lowering& l) {
  const TensorView &x = l.in(0), &rows = l.in(1), &columns = l.in(2), &y = l.out(0);
  for (const TensorView* v : {&x, &rows, &columns, &y})
    SINTER_RETURN_UNLESS(v->dense(), unsupported("operands are not dense"));
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &box));
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &box));
  if (box.size == 0) return ok_status();
  QResizeArguments a;
  a.to = y.data, a.from = x.data, a.rows = rows.as<int32_t>(), a.columns = columns.as<int32_t>();
  a.group = x.dims[3] % kResizeGroup == 0 ? kResizeGroup : 1;
  a.out_rows = Divider(y.dims[1]), a.out_columns = Divider(y.dims[2]),
  a.pieces = Divider(x.dims[3] / a.group);
  a.in_rows = static_cast<int32_t>(x.dims[1]), a.in_columns = static_cast<int32_t>(x.dims[2]);
  a.channels = static_cast<int32_t>(x.dims[3]);
  a.size = box.size / static_cast<uint32_t>(a.group);
  a.width = static_cast<int32_t>(byte_width(x.dtype));
  return l.launch<Kernel::k_q_resize>({.blocks = {blocks_for(a.size, threads_of(Kernel::k_q_resize))}}, a);
}

}  // namespace sinter::cuda
