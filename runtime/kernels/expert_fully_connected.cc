// ExpertFullyConnected: each row of x times the weights of its expert.
//
// Rows are sorted by expert, so that the weights of an expert are widened once for all of its rows and those
// of other experts are not read. Sums are in double, in the order of the depth.
#include "runtime/backend/expert_rows.h"
#include "runtime/kernels/low_bit_weights.h"

namespace sinter {
namespace {

using namespace linear;

// Returns whether type `t` holds the numbers of float type `given`, or is `given`.
bool is_narrower_float(DType given, DType t) {
  return given == t || (is_float(given) && given != DType::kFloat8E8M0 && bit_width(given) < bit_width(t));
}

Status infer_expert_fully_connected(OpCall& call) {
  const auto& a = call.attrs<ExpertFullyConnectedAttrs>();
  const TensorView &x = call.in(0), &expert = call.in(1), &w = call.in(2);
  SINTER_RETURN_UNLESS(a.bits == 0, unsupported("experts' weights of %a bits are not supported", a.bits));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, expert.dtype == DType::kInt64));
  SINTER_RETURN_UNLESS(x.rank == 2 && w.rank == 3,
                       invalid("x needs two axes and the weights three, not %a and %b", x.rank, w.rank));
  SINTER_RETURN_IF_ERROR(check_dims(x));
  SINTER_RETURN_IF_ERROR(check_dims(w));
  SINTER_RETURN_UNLESS(w.dims[2] == x.dims[1],
                       invalid("the weights read %a values of each row of %b", w.dims[2], x.dims[1]));
  SINTER_RETURN_UNLESS(expert.rank == 1 && expert.dims[0] == x.dims[0],
                       invalid("the experts are not one for each row of x").of_input(1));
  if (call.has_input(3)) {
    SINTER_RETURN_IF_ERROR(check_low_bit_operands(call, a.bits, a.block_size));
  } else {
    SINTER_RETURN_UNLESS(!call.has_input(4), invalid("zero points without scales").of_input(4));
    SINTER_RETURN_UNLESS(!call.has_input(6), invalid("a table without scales").of_input(6));
    SINTER_RETURN_IF_ERROR(check_dtype(call, 2, is_narrower_float(w.dtype, x.dtype)));
  }
  if (call.has_input(5)) {
    SINTER_RETURN_IF_ERROR(check_same_dtype(call, 5, 0));
    SINTER_RETURN_UNLESS(
        call.in(5).rank == 2 && call.in(5).dims[0] == w.dims[0] && call.in(5).dims[1] == w.dims[1],
        invalid("the bias is not one value for each row of the weights").of_input(5));
  }
  const int64_t dims[] = {x.dims[0], w.dims[1]};
  return give_output(call, 0, x.dtype, dims);
}

size_t expert_scratch(const OpCall& call) {
  return align_up(static_cast<size_t>(std::min(call.in(0).dims[1], kPiece)) * kTile * sizeof(double),
                  kBufferAlignment);
}

Status expert_fully_connected_workspace(const OpCall& call, int threads, size_t* bytes) {
  size_t lists = 0, all = 0;
  SINTER_RETURN_UNLESS(
      expert_rows_bytes(call.in(0).dims[0], &lists) &&
          checked_mul(expert_scratch(call), static_cast<size_t>(std::max(threads, 1)), &all) &&
          checked_add(lists, all, bytes),
      too_much_workspace());
  return ok_status();
}

// Computes columns c0 .. c0 + 3 of expert `e` for the rows that `rows` lists.
template <class T>
void four_columns(const OpCall& call, const LowBitReader& weights, int64_t e, std::span<const int64_t> rows,
                  int64_t c0, double* piece) {
  const T* x = call.in(0).as<T>();
  const T* bias = call.has_input(5) ? call.in(5).as<T>() : nullptr;
  T* y = call.out(0).as<T>();
  const int64_t columns = call.in(2).dims[1], depth = call.in(2).dims[2];
  const int64_t c1 = std::min(c0 + kTile, columns), count = static_cast<int64_t>(rows.size());
  const typename Direct<T>::Reader plain;
  for (int64_t first = 0; first < count; first += kRows) {
    const int64_t last = std::min(first + kRows, count);
    double sums[kRows][kTile] = {};
    for (int64_t k0 = 0; k0 < depth; k0 += kPiece) {
      const int64_t k1 = std::min(k0 + kPiece, depth);
      weights.read_panel(e * columns + c0, e * columns + c1, k0, k1, true, piece);
      for (int64_t r = first; r < last; r += kTile)
        lane_tile<kTile>(
            piece, kTile, plain, [&](int64_t i) { return x + rows[static_cast<size_t>(r + i)] * depth + k0; },
            1, [&](int64_t) { return plain; }, std::min(kTile, last - r), k1 - k0, sums + (r - first));
    }
    for (int64_t r = first; r < last; ++r)
      for (int64_t c = c0; c < c1; ++c) {
        double sum = sums[r - first][c - c0];
        if (bias != nullptr) sum += static_cast<double>(bias[e * columns + c]);
        y[rows[static_cast<size_t>(r)] * columns + c] = static_cast<T>(sum);
      }
  }
}

Status run_expert_fully_connected(const OpCall& call, RunContext& context) {
  const TensorView& w = call.in(2);
  ExpertRows rows;
  SINTER_RETURN_IF_ERROR(sort_by_expert(call.in(1), w.dims[0], context.workspace, &rows));
  if (call.out(0).size() == 0) return ok_status();
  const size_t each = expert_scratch(call);
  size_t lists = 0;
  if (!expert_rows_bytes(call.in(0).dims[0], &lists)) return too_much_workspace();
  const std::span<std::byte> rest = context.workspace.subspan(lists);
  SINTER_RETURN_UNLESS(rest.size() >= each, error(Code::kOutOfMemory, "the workspace is too small"));
  const int64_t panels = (w.dims[1] + kTile - 1) / kTile, units = panels * rows.groups();
  int64_t slots = std::min(units, threads_of(context.threads));
  if (each > 0) slots = std::min(slots, static_cast<int64_t>(rest.size() / each));
  const LowBitReader weights(call);
  return for_float_or_half(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
      auto* piece = reinterpret_cast<double*>(rest.data() + slot * static_cast<int64_t>(each));
      for (int64_t unit = begin; unit < end; ++unit) {
        const ExpertRows::Group g = rows.group(unit / panels);
        four_columns<T>(call, weights, g.expert, g.rows, unit % panels * kTile, piece);
      }
    });
    return ok_status();
  });
}

}  // namespace

const Kernel kExpertFullyConnectedKernel =
    reference_kernel({Op::kExpertFullyConnected, infer_expert_fully_connected,
                      expert_fully_connected_workspace, run_expert_fully_connected});

}  // namespace sinter
