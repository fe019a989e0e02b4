// Gather, GatherElements, GatherNd: elements chosen by indices, each checked where it is used.
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

// Reads, from a table with one axis, the elements at dense indices.
template <class Index, class T>
Status look_up(const TensorView& table, const TensorView& indices, std::byte* to) {
  const int64_t length = table.dims[0], count = indices.size();
  const std::byte* pick = indices.data;
  for (int64_t i = 0; i < count; ++i, pick += sizeof(Index)) {
    int64_t index = load<Index>(pick);
    if (index < 0) index += length;
    if (index < 0 || index >= length) return read_index(pick, indices.dtype, length, &index);
    store<T>(to + i * sizeof(T), load<T>(table.data + index * sizeof(T)));
  }
  return ok_status();
}
Status look_up(const TensorView& table, const TensorView& indices, std::byte* to) {
  return for_width(byte_width(table.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return indices.dtype == DType::kInt32 ? look_up<int32_t, T>(table, indices, to)
                                          : look_up<int64_t, T>(table, indices, to);
  });
}

Status infer_gather(OpCall& call) {
  const auto& a = call.attrs<GatherAttrs>();
  const TensorView &x = call.in(0), &indices = call.in(1);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, is_index_type(indices.dtype)));
  SINTER_RETURN_IF_ERROR(check_axis(a.axis, x.rank));
  Dims dims;
  for (int i = 0; i < a.axis; ++i) SINTER_RETURN_IF_ERROR(dims.push(x.dims[i]));
  for (const int64_t d : indices.shape()) SINTER_RETURN_IF_ERROR(dims.push(d));
  for (int i = static_cast<int>(a.axis) + 1; i < x.rank; ++i) SINTER_RETURN_IF_ERROR(dims.push(x.dims[i]));
  return give_output(call, 0, x.dtype, dims.span());
}

Status run_gather(const OpCall& call, RunContext&) {
  const auto axis = static_cast<int>(call.attrs<GatherAttrs>().axis);
  const TensorView &x = call.in(0), &indices = call.in(1), &y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(x.dtype));
  if (y.size() == 0) return ok_status();
  if (x.rank == 1 && x.dense() && indices.dense()) return look_up(x, indices, y.data);
  const uint32_t before = (1u << axis) - 1, after = ~((2u << axis) - 1);
  const Nest<1> outer = make_nest_over(before, x, x), picks = make_nest(indices.shape(), indices);
  Nest<1> inner = make_nest_over(after, x, x);
  return for_width(byte_width(x.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int64_t kWidth = sizeof(T);
    Status status;
    std::byte* to = y.data;
    for_each_element(outer, [&](std::byte* const(&from)[1]) {
      for_each_element(picks, [&](std::byte* const(&pick)[1]) {
        int64_t index = 0;
        if (!status.ok()) return;
        status = read_index(pick[0], indices.dtype, x.dims[axis], &index);
        if (!status.ok()) return;
        inner.data[0] = from[0] + index * x.strides[axis];
        for_each_row(inner, [&](std::byte* const(&row)[1], const int64_t(&step)[1], int64_t n) {
          if (step[0] == kWidth || n == 1) {
            std::memcpy(to, row[0], static_cast<size_t>(n * kWidth));
          } else {
            for (int64_t i = 0; i < n; ++i) store<T>(to + i * kWidth, load<T>(row[0] + i * step[0]));
          }
          to += n * kWidth;
        });
      });
    });
    return status;
  });
}

Status infer_gather_elements(OpCall& call) {
  const auto& a = call.attrs<GatherElementsAttrs>();
  const TensorView &x = call.in(0), &indices = call.in(1);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, is_index_type(indices.dtype)));
  SINTER_RETURN_IF_ERROR(check_axis(a.axis, x.rank));
  SINTER_RETURN_UNLESS(indices.rank == x.rank,
                       invalid("the indices have rank %a, the data rank %b", indices.rank, x.rank));
  for (int i = 0; i < x.rank; ++i)
    SINTER_RETURN_UNLESS(
        i == a.axis || indices.dims[i] <= x.dims[i],
        invalid("the indices have %a rows, the axis %b elements", indices.dims[i], x.dims[i]));
  return give_output(call, 0, x.dtype, indices.shape());
}

Status run_gather_elements(const OpCall& call, RunContext&) {
  const auto axis = static_cast<int>(call.attrs<GatherElementsAttrs>().axis);
  const TensorView &x = call.in(0), &indices = call.in(1), &y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(x.dtype));
  TensorView line = indices;  // the start of the line along `axis` that each index chooses from
  line.data = x.data;
  for (int i = 0; i < x.rank; ++i) line.strides[i] = i == axis ? 0 : x.strides[i];
  return for_width(byte_width(x.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Status status;
    for_each_element(make_nest(y.shape(), y, line, indices), [&](std::byte* const(&p)[3]) {
      int64_t index = 0;
      if (!status.ok()) return;
      status = read_index(p[2], indices.dtype, x.dims[axis], &index);
      if (status.ok()) store<T>(p[0], load<T>(p[1] + index * x.strides[axis]));
    });
    return status;
  });
}

Status infer_gather_nd(OpCall& call) {
  const int64_t batch = call.attrs<GatherNdAttrs>().batch_dims;
  const TensorView &x = call.in(0), &indices = call.in(1);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, is_index_type(indices.dtype)));
  SINTER_RETURN_UNLESS(
      x.rank >= 1 && indices.rank >= 1,
      invalid("data of rank %a and indices of rank %b must have an axis each", x.rank, indices.rank));
  SINTER_RETURN_UNLESS(batch >= 0 && batch < std::min(x.rank, indices.rank),
                       invalid("%a batch axes are too many", batch));
  const int64_t depth = indices.dims[indices.rank - 1];
  SINTER_RETURN_UNLESS(depth >= 1 && depth <= x.rank - batch,
                       invalid("index tuples have %a elements for %b axes", depth, x.rank - batch));
  Dims dims;
  for (int i = 0; i < indices.rank - 1; ++i) {
    SINTER_RETURN_UNLESS(i >= batch || indices.dims[i] == x.dims[i],
                         invalid("batch dims %a and %b differ", indices.dims[i], x.dims[i]));
    SINTER_RETURN_IF_ERROR(dims.push(indices.dims[i]));
  }
  for (auto i = static_cast<int>(batch + depth); i < x.rank; ++i)
    SINTER_RETURN_IF_ERROR(dims.push(x.dims[i]));
  return give_output(call, 0, x.dtype, dims.span());
}

Status run_gather_nd(const OpCall& call, RunContext&) {
  const auto batch = static_cast<int>(call.attrs<GatherNdAttrs>().batch_dims);
  const TensorView &x = call.in(0), &indices = call.in(1), &y = call.out(0);
  SINTER_RETURN_IF_ERROR(check_whole_bytes(x.dtype));
  if (y.size() == 0) return ok_status();
  const auto depth = static_cast<int>(indices.dims[indices.rank - 1]);
  if (x.rank == 1) return look_up(x, indices, y.data);
  const auto width = static_cast<int64_t>(byte_width(x.dtype)),
             index_width = static_cast<int64_t>(byte_width(indices.dtype));
  const int64_t batches = product(x, 0, batch), tuples = product(indices, batch, indices.rank - 1),
                batch_bytes = product(x, batch, x.rank) * width,
                block = product(x, batch + depth, x.rank) * width;
  const std::byte* pick = indices.data;
  std::byte* to = y.data;
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t t = 0; t < tuples; ++t) {
      int64_t at = 0, index = 0;
      for (int k = 0; k < depth; ++k, pick += index_width) {
        SINTER_RETURN_IF_ERROR(read_index(pick, indices.dtype, x.dims[batch + k], &index));
        at = at * x.dims[batch + k] + index;
      }
      std::memcpy(to, x.data + b * batch_bytes + at * block, static_cast<size_t>(block));
      to += block;
    }
  }
  return ok_status();
}

}  // namespace

const Kernel kGatherKernel = reference_kernel({Op::kGather, infer_gather, nullptr, run_gather});
const Kernel kGatherElementsKernel =
    reference_kernel({Op::kGatherElements, infer_gather_elements, nullptr, run_gather_elements});
const Kernel kGatherNdKernel = reference_kernel({Op::kGatherNd, infer_gather_nd, nullptr, run_gather_nd});

}  // namespace sinter
