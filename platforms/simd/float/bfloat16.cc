// Cast, and element-wise operations on bfloat16.
#include "platforms/simd/float/bfloat16.h"

#include "platforms/simd/broadcast.h"
#include "platforms/simd/int8/int8.h"
#include "platforms/simd/move/cast.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/bfloat16.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DU = hn::ScalableTag<uint32_t>;
using DH = hn::ScalableTag<uint16_t>;
using VU = hn::Vec<DU>;

HWY_INLINE hn::Mask<DU> is_nan_of(VU v) {
  return hn::RebindMask(DU(), hn::IsNaN(hn::BitCast(hn::RebindToFloat<DU>(), v)));
}

// Returns the upper halves of the bits of float32 numbers, rounded half to even; for NaN, the sign and one
// bit. The processor's own instruction takes subnormal numbers for zero.
HWY_INLINE hn::Vec<DH> half_bits(VU a, VU b) {
  const DU d;
  const DH h;
  const auto first = hn::BitCast(h, a), second = hn::BitCast(h, b), one = hn::Set(h, 1);
  const auto upper = hn::ConcatOdd(h, second, first), lower = hn::ConcatEven(h, second, first);
  // True above the middle, and at it for an odd number.
  const auto goes_up = hn::Gt(hn::SaturatedAdd(lower, hn::And(upper, one)), hn::Set(h, 0x8000));
  const auto is_nan = hn::OrderedDemote2MasksTo(h, d, is_nan_of(a), is_nan_of(b));
  return hn::IfThenElse(is_nan, hn::OrAnd(hn::Set(h, 0x7fc0), upper, hn::Set(h, 0x8000)),
                        hn::MaskedAddOr(upper, goes_up, upper, one));
}

void narrow_floats(const void* from, void* to, size_t n) {
  const DU d;
  const DH both;
  const auto* x = static_cast<const uint32_t*>(from);
  auto* y = static_cast<uint16_t*>(to);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes)
    hn::StoreU(half_bits(hn::LoadU(d, x + i), hn::LoadU(d, x + i + lanes)), both, y + i);
  if (i == n) return;
  const size_t rest = n - i;
  const VU second = rest > lanes ? hn::LoadN(d, x + i + lanes, rest - lanes) : hn::Zero(d);
  hn::StoreN(half_bits(hn::LoadN(d, x + i, rest), second), both, y + i, rest);
}

void widen_floats(const void* from, void* to, size_t n) {
  const DU d;
  const hn::Rebind<uint16_t, DU> half;
  const auto* x = static_cast<const uint16_t*>(from);
  auto* y = static_cast<uint32_t*>(to);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(half, x + i))), d, y + i);
  if (i < n) hn::StoreN(hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadN(half, x + i, n - i))), d, y + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(narrow_floats);
HWY_EXPORT(widen_floats);

// ---- Cast

constexpr int64_t kGrain = 16384;  // elements that outweigh handing a piece to a thread

Status accept_cast(const OpCall& call) {
  const DType from = call.in(0).dtype, to = call.out(0).dtype;
  SINTER_RETURN_UNLESS((from == DType::kFloat32 && to == DType::kBFloat16) ||
                           (from == DType::kBFloat16 && to == DType::kFloat32) ||
                           plain_cast(from, to) != nullptr,
                       unsupported("the simd kernel converts between float32, bfloat16, bool and integers"));
  return accept_dense(call);
}

Status run_cast(const OpCall& call, RunContext& context) {
  const TensorView &x = call.in(0), &y = call.out(0);
  PlainCast convert = plain_cast(x.dtype, y.dtype);
  if (convert == nullptr)
    convert =
        y.dtype == DType::kBFloat16 ? HWY_DYNAMIC_POINTER(narrow_floats) : HWY_DYNAMIC_POINTER(widen_floats);
  const auto x_width = static_cast<int64_t>(byte_width(x.dtype)),
             y_width = static_cast<int64_t>(byte_width(y.dtype));
  parallel_for(context.threads, y.size(), kGrain, [&](int64_t begin, int64_t end) {
    convert(x.data + begin * x_width, y.data + begin * y_width, static_cast<size_t>(end - begin));
  });
  return ok_status();
}

// ---- element-wise operations

constexpr int64_t kBfloat16Piece = 2048;  // elements
constexpr size_t kMostInputs = 2;
constexpr size_t kRoom = kMostInputs * kBfloat16Piece * sizeof(float);  // of a thread

// Returns whether an operand has all elements of the result; others have one, or one per place of an axis.
bool is_whole(const TensorView& v, const TensorView& y) { return v.size() == y.size(); }
bool is_row(const TensorView& v, const TensorView& y) {
  const int64_t elements = repeated_elements(v, y);
  return elements > 0 && elements <= kBfloat16Piece;
}

// Returns the length of the operand that is a row; 1 if none is.
int64_t row_length(const OpCall& call) {
  int64_t length = 1;
  for (const TensorView& v : call.inputs)
    if (!is_whole(v, call.out(0))) length = std::max(length, v.size());
  return length;
}

// Elements of the operands, widened in `room`: `count` of each, or one. Results are written over an operand.
struct Widened {
  TensorView in[kMostInputs], out[1];

  Widened(const OpCall& call, int64_t count, float* room) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      TensorView& v = in[i];
      const int64_t size = call.in(i).size() == 1 ? 1 : count;
      v.dtype = DType::kFloat32, v.data = reinterpret_cast<std::byte*>(room);
      v.set_shape({&size, 1});
      if (is_whole(call.in(i), call.out(0))) out[0] = v;
      if (room != nullptr) room += kBfloat16Piece;
    }
  }
  OpCall of(const OpCall& call) { return {call.op, call.attributes, {in, call.inputs.size()}, out}; }
};

}  // namespace

bool is_of_halves(const OpCall& call) {
  const OpInfo* info = op_info(call.op);
  return info != nullptr && (info->traits & kElementwise) != 0 && !call.inputs.empty() &&
         call.in(0).dtype == DType::kBFloat16 && call.op != Op::kCast;
}

Status accept_halves(const Kernel& kernel, const OpCall& call) {
  SINTER_RETURN_IF_ERROR(accept_dense(call));
  SINTER_RETURN_UNLESS(call.inputs.size() <= kMostInputs && call.outputs.size() == 1,
                       unsupported("bfloat16 operands are widened for functions of one or two operands"));
  for (const auto views : {call.inputs, call.outputs})
    for (const TensorView& v : views)
      SINTER_RETURN_UNLESS(v.dtype == DType::kBFloat16, unsupported("only operands of one type"));
  bool any = false;
  for (const TensorView& v : call.inputs) {
    any |= is_whole(v, call.out(0));
    SINTER_RETURN_UNLESS(is_whole(v, call.out(0)) || is_row(v, call.out(0)),
                         unsupported("bfloat16 operands are repeated row by row only"));
  }
  SINTER_RETURN_UNLESS(any, unsupported("bfloat16 operands are repeated one at a time only"));
  return kernel.accept(Widened(call, std::min(call.out(0).size(), kBfloat16Piece), nullptr).of(call));
}

size_t halves_workspace(int threads) { return static_cast<size_t>(threads) * kRoom; }

Status run_halves(const Kernel& kernel, const OpCall& call, RunContext& context) {
  const TensorView& y = call.out(0);
  if (y.size() == 0) return ok_status();
  const auto narrow = HWY_DYNAMIC_POINTER(narrow_floats), widen = HWY_DYNAMIC_POINTER(widen_floats);
  const int64_t length = row_length(call), rows = y.size() / length, step = kBfloat16Piece / length;
  const int64_t slots = std::min({threads_of(context.threads), divide_up(y.size(), kGrain),
                                  static_cast<int64_t>(context.workspace.size() / kRoom)});
  parallel_slots(context.threads, slots, rows, [&](int64_t slot, int64_t begin, int64_t end) {
    auto* room = reinterpret_cast<float*>(context.workspace.data() + static_cast<size_t>(slot) * kRoom);
    const auto at = [](const TensorView& v, int64_t element) {
      return v.data + element * static_cast<int64_t>(sizeof(uint16_t));
    };
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const TensorView& v = call.in(i);
      if (is_whole(v, y)) continue;
      float* to = room + static_cast<int64_t>(i) * kBfloat16Piece;
      widen(v.data, to, static_cast<size_t>(v.size()));
      for (int64_t row = 1; v.size() > 1 && row < step; ++row) std::copy_n(to, length, to + row * length);
    }
    for (int64_t row = begin; row < end; row += step) {
      const int64_t count = std::min(step, end - row), first = row * length;
      Widened piece(call, count * length, room);
      const auto elements = static_cast<size_t>(count * length);
      for (size_t i = 0; i < call.inputs.size(); ++i)
        if (const TensorView& v = call.in(i); is_whole(v, y)) widen(at(v, first), piece.in[i].data, elements);
      RunContext alone;
      (void)kernel.run(piece.of(call), alone);  // accept has taken it
      narrow(piece.out[0].data, at(y, first), elements);
    }
  });
  return ok_status();
}

const Kernel kCastKernel = {Op::kCast, nullptr, nullptr, run_cast, accept_cast};

}  // namespace sinter::simd
#endif  // HWY_ONCE
