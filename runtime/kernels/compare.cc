// Comparison, logic and selection with broadcasting: Compare, Bitwise, Where.
#include "runtime/core/op_enums.h"
#include "runtime/kernels/reference.h"
#include "runtime/kernels/support.h"

namespace sinter {
namespace {

Status infer_compare(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_code(call.attrs<CompareAttrs>().fn, 6));
  SINTER_RETURN_IF_ERROR(
      check_dtype(call, 0, is_number(call.in(0).dtype) || call.in(0).dtype == DType::kBool));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  Dims dims(call.in(0).shape());
  SINTER_RETURN_IF_ERROR(broadcast_into(&dims, call.in(1).shape()));
  return give_output(call, 0, DType::kBool, dims.span());
}
Status run_compare(const OpCall& call, RunContext&) {
  return for_number_or_bool(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto f) { map_binary<bool, T, T>(call.out(0), call.in(0), call.in(1), f); };
    switch (static_cast<CompareFn>(call.attrs<CompareAttrs>().fn)) {
      case CompareFn::kEqual:
        run([](T x, T y) { return x == y; });
        break;
      case CompareFn::kNotEqual:
        run([](T x, T y) { return x != y; });
        break;
      case CompareFn::kLess:
        run([](T x, T y) { return x < y; });
        break;
      case CompareFn::kLessOrEqual:
        run([](T x, T y) { return x <= y; });
        break;
      case CompareFn::kGreater:
        run([](T x, T y) { return x > y; });
        break;
      case CompareFn::kGreaterOrEqual:
        run([](T x, T y) { return x >= y; });
        break;
    }
    return ok_status();
  });
}

// And, Or, Xor take bool too.
Status infer_bitwise(OpCall& call) {
  const int64_t fn = call.attrs<BitwiseAttrs>().fn;
  SINTER_RETURN_IF_ERROR(check_code(fn, 5));
  const bool logic = fn <= static_cast<int64_t>(BitwiseFn::kXor);
  SINTER_RETURN_IF_ERROR(
      check_dtype(call, 0, is_integer(call.in(0).dtype) || (logic && call.in(0).dtype == DType::kBool)));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 1, 0));
  Dims dims(call.in(0).shape());
  SINTER_RETURN_IF_ERROR(broadcast_into(&dims, call.in(1).shape()));
  return give_output(call, 0, call.in(0).dtype, dims.span());
}

// Returns whether a count shifts all bits out: it is the width or more, or negative.
template <class T>
bool shifts_out(T count) {
  return count < T(0) || static_cast<uint64_t>(count) >= sizeof(T) * 8;
}
template <class T>
T shift_left(T x, T count) {
  return shifts_out(count) ? T(0) : static_cast<T>(static_cast<uint64_t>(x) << count);
}
template <class T>
T shift_right(T x, T count) {
  return shifts_out(count) ? static_cast<T>(x < T(0) ? -1 : 0) : static_cast<T>(x >> count);
}

Status run_bitwise(const OpCall& call, RunContext&) {
  const auto fn = static_cast<BitwiseFn>(call.attrs<BitwiseAttrs>().fn);
  if (fn <= BitwiseFn::kXor) {
    if (call.in(0).dtype == DType::kBool) {
      map_binary<bool, bool, bool>(call.out(0), call.in(0), call.in(1), [fn](bool x, bool y) {
        return fn == BitwiseFn::kAnd ? x && y : fn == BitwiseFn::kOr ? x || y : x != y;
      });
      return ok_status();
    }
    return for_width(byte_width(call.in(0).dtype), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto run = [&](auto f) { map_binary<T, T, T>(call.out(0), call.in(0), call.in(1), f); };
      if (fn == BitwiseFn::kAnd)
        run([](T x, T y) { return x & y; });
      else if (fn == BitwiseFn::kOr)
        run([](T x, T y) { return x | y; });
      else
        run([](T x, T y) { return x ^ y; });
      return ok_status();
    });
  }
  return for_integer(call.in(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (fn == BitwiseFn::kShiftLeft)
      map_binary<T, T, T>(call.out(0), call.in(0), call.in(1), [](T x, T n) { return shift_left(x, n); });
    else
      map_binary<T, T, T>(call.out(0), call.in(0), call.in(1), [](T x, T n) { return shift_right(x, n); });
    return ok_status();
  });
}

// The operands are condition, x and y, of every whole-byte dtype.
Status infer_where(OpCall& call) {
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, call.in(0).dtype == DType::kBool));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, byte_width(call.in(1).dtype) > 0));
  SINTER_RETURN_IF_ERROR(check_same_dtype(call, 2, 1));
  Dims dims(call.in(0).shape());
  SINTER_RETURN_IF_ERROR(broadcast_into(&dims, call.in(1).shape()));
  SINTER_RETURN_IF_ERROR(broadcast_into(&dims, call.in(2).shape()));
  return give_output(call, 0, call.in(1).dtype, dims.span());
}
Status run_where(const OpCall& call, RunContext&) {
  return for_width(byte_width(call.in(1).dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int64_t kWidth = sizeof(T);
    for_each_row(make_nest(call.out(0).shape(), call.out(0), call.in(0), call.in(1), call.in(2)),
                 [](std::byte* const(&p)[4], const int64_t(&s)[4], int64_t n) {
                   const auto choose = [&](int64_t y, int64_t c, int64_t a, int64_t b) {
                     for (int64_t i = 0; i < n; ++i) {
                       const T x = load<T>(p[2] + i * a), z = load<T>(p[3] + i * b);
                       store<T>(p[0] + i * y, load<bool>(p[1] + i * c) ? x : z);
                     }
                   };
                   if (s[0] == kWidth && s[1] == 1 && s[2] == kWidth && s[3] == kWidth)
                     choose(kWidth, 1, kWidth, kWidth);
                   else
                     choose(s[0], s[1], s[2], s[3]);
                 });
    return ok_status();
  });
}

}  // namespace

const Kernel kCompareKernel = reference_kernel({Op::kCompare, infer_compare, nullptr, run_compare});
const Kernel kBitwiseKernel = reference_kernel({Op::kBitwise, infer_bitwise, nullptr, run_bitwise});
const Kernel kWhereKernel = reference_kernel({Op::kWhere, infer_where, nullptr, run_where});

}  // namespace sinter
