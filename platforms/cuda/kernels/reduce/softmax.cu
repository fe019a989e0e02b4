// Softmax and QSoftmax: a team of threads for each line. A line that a team's threads can keep is read once.
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/reduce/softmax.h"
#include "platforms/cuda/kernels/reduce/team_folds.h"

namespace sinter::cuda {
namespace {

// This thread's line, if the block's lines begin at `first`.
struct Line {
  const std::byte* x;
  std::byte* y;
  uint32_t place, length;  // of this thread; 0 behind the last line
};
SINTER_DEVICE Line line_of(const SoftmaxArguments& a, int64_t first) {
  const int64_t line = first + team_of(a.teams);
  const bool exists = line < a.lines.size;
  const auto n = static_cast<uint32_t>(exists ? line : 0);
  return {a.x + offset_of(a.lines, a.x_lines, n), a.y + offset_of(a.lines, a.y_lines, n),
          static_cast<uint32_t>(place_of(a.teams)), exists ? a.length : 0};
}

struct Larger {  // NaN if either is
  template <class V>
  SINTER_DEVICE V operator()(V s, V v) const {
    return v > s || v != v ? v : s;
  }
};

// If a line's largest number is NaN or infinite, one of its exponentials is NaN, and so are all results.
// A thread has up to kMost elements.
template <class V, int kMost>
SINTER_DEVICE void softmax_kept(const SoftmaxArguments& a, const Shared<V>& room, const Line& line) {
  const V lowest = -static_cast<V>(float_of(0x7f800000u));
  const auto size = static_cast<uint32_t>(a.teams.size);
  Loaded<V> loaded[kMost];
  V v[kMost];
  V largest = lowest, sum = 0;
  SINTER_UNROLL
  for (uint32_t k = 0; k < kMost; ++k) {
    const uint32_t i = line.place + k * size;
    loaded[k] = i < line.length ? begin_load<V>(line.x + i * a.x_step, a.dtype) : 0;
  }
  SINTER_UNROLL
  for (uint32_t k = 0; k < kMost; ++k) {
    v[k] = line.place + k * size < line.length ? value_of<V>(loaded[k], a.dtype) : lowest;
    largest = Larger()(largest, v[k]);
  }
  largest = fold_team(largest, room, a.teams, Larger());
  SINTER_UNROLL
  for (uint32_t k = 0; k < kMost; ++k) {
    const V e = m_exp(v[k] - largest);
    if (line.place + k * size < line.length) sum += e;
    v[k] = a.log != 0 ? v[k] - largest : e;
  }
  sum = fold_team(sum, room, a.teams, AddUp());
  if (a.log != 0) sum = m_log(sum);
  SINTER_UNROLL
  for (uint32_t k = 0; k < kMost; ++k) {
    const uint32_t i = line.place + k * size;
    if (i < line.length) store_float<V>(line.y + i * a.y_step, a.dtype, a.log != 0 ? v[k] - sum : v[k] / sum);
  }
}

// For any number of elements, the line is read three times.
template <class V>
SINTER_DEVICE void softmax_long(const SoftmaxArguments& a, const Shared<V>& room, const Line& line) {
  const auto size = static_cast<uint32_t>(a.teams.size);
  const auto at = [&](uint32_t i) { return load_float<V>(line.x + i * a.x_step, a.dtype); };
  V largest = -static_cast<V>(float_of(0x7f800000u)), sum = 0;
  for (uint32_t i = line.place; i < line.length; i += size) largest = Larger()(largest, at(i));
  largest = fold_team(largest, room, a.teams, Larger());
  for (uint32_t i = line.place; i < line.length; i += size) sum += m_exp(at(i) - largest);
  sum = fold_team(sum, room, a.teams, AddUp());
  if (a.log != 0) sum = m_log(sum);
  for (uint32_t i = line.place; i < line.length; i += size) {
    const V v = at(i) - largest;
    store_float<V>(line.y + i * a.y_step, a.dtype, a.log != 0 ? v - sum : m_exp(v) / sum);
  }
}

template <class V>
SINTER_DEVICE void softmax_lines(const SoftmaxArguments& a) {
  const Shared<V> room = shared_memory<V>(0, kTeamBlock);
  const uint32_t each =
      (a.length + static_cast<uint32_t>(a.teams.size) - 1) / static_cast<uint32_t>(a.teams.size);
  const int64_t step = int64_t{blocks_x()} * a.teams.count;
  for (int64_t first = int64_t{block_x()} * a.teams.count; first < a.lines.size; first += step) {
    const Line line = line_of(a, first);
    if (each <= 4)
      softmax_kept<V, 4>(a, room, line);
    else if (sizeof(V) == 4 && each <= 8)
      softmax_kept<V, sizeof(V) == 4 ? 8 : 4>(a, room, line);
    else
      softmax_long<V>(a, room, line);
  }
}

// Returns rne(a / b), at most 1024 (beyond every bound), and 0 for 0 / 0.
SINTER_DEVICE int32_t divide_rne(uint64_t a, uint64_t b) {
  if (b == 0) return 0;
  const uint64_t quotient = a / b, rest = a - quotient * b;
  if (quotient >= 1024) return 1024;
  const bool up = rest > b - rest || (rest == b - rest && (quotient & 1) != 0);
  return static_cast<int32_t>(quotient) + (up ? 1 : 0);
}

}  // namespace

SINTER_KERNEL(softmax_floats, SoftmaxArguments) { softmax_lines<float>(a); }
SINTER_KERNEL(softmax_doubles, SoftmaxArguments) { softmax_lines<double>(a); }

SINTER_KERNEL(q_softmax, QSoftmaxArguments) {
  const SoftmaxArguments& of = a.of;
  const Shared<uint64_t> room = shared_memory<uint64_t>(0, kTeamBlock);
  const Shared<uint32_t> table = shared_memory<uint32_t>(kTeamBlock * 8, 256);
  for (int i = thread_index(); i < 256; i += block_threads())
    table[i] = load_one<uint32_t>(a.table + i * a.table_step);
  barrier();
  const auto size = static_cast<uint32_t>(of.teams.size);
  const int64_t step = int64_t{blocks_x()} * of.teams.count;
  for (int64_t first = int64_t{block_x()} * of.teams.count; first < of.lines.size; first += step) {
    const Line line = line_of(of, first);
    const auto at = [&](uint32_t i) {
      return static_cast<int64_t>(load_one<int8_t>(line.x + i * of.x_step));
    };
    int64_t largest = -128;
    for (uint32_t i = line.place; i < line.length; i += size) largest = Larger()(largest, at(i));
    largest = fold_team(static_cast<uint64_t>(largest), room, of.teams, [](uint64_t s, uint64_t v) {
      return static_cast<int64_t>(v) > static_cast<int64_t>(s) ? v : s;
    });
    uint64_t sum = 0;
    for (uint32_t i = line.place; i < line.length; i += size) sum += table[static_cast<int>(largest - at(i))];
    sum = fold_team(sum, room, of.teams, AddUp()) << a.shift;
    for (uint32_t i = line.place; i < line.length; i += size) {
      const uint64_t entry = table[static_cast<int>(largest - at(i))];
      const int32_t v = divide_rne(entry * a.multiplier, sum) + a.y_zero;
      *reinterpret_cast<int8_t*>(line.y + i * of.y_step) = static_cast<int8_t>(v < a.low    ? a.low
                                                                               : v > a.high ? a.high
                                                                                            : v);
    }
  }
}

}  // namespace sinter::cuda
