// Lut of dense operands. Tables of bytes are held in registers if there is an instruction for table look-ups.
#define SINTER_SIMD_BYTE_TABLES
#include "platforms/simd/int8/int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/lut.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DBytes = hn::ScalableTag<uint8_t>;
using VBytes = hn::Vec<DBytes>;

// The look-up of whole vectors: Lookup(table)(indices).
#if HWY_TARGET == HWY_AVX3_DL
#define SINTER_SIMD_LOOKUP 1
// Two tables of 128 entries.
struct Lookup {
  VBytes t[4];
  HWY_INLINE explicit Lookup(const uint8_t* table) {
    for (size_t k = 0; k < 4; ++k) t[k] = hn::LoadU(DBytes(), table + 64 * k);
  }
  HWY_INLINE VBytes operator()(VBytes x) const {
    const auto low = hn::IndicesFromVec(DBytes(), hn::And(x, hn::Set(DBytes(), uint8_t{127})));
    const auto upper = hn::MaskFromVec(
        hn::BitCast(DBytes(), hn::BroadcastSignBit(hn::BitCast(hn::ScalableTag<int8_t>(), x))));
    return hn::IfThenElse(upper, hn::TwoTablesLookupLanes(DBytes(), t[2], t[3], low),
                          hn::TwoTablesLookupLanes(DBytes(), t[0], t[1], low));
  }
};
#elif HWY_TARGET_IS_NEON && HWY_ARCH_ARM_A64
#define SINTER_SIMD_LOOKUP 1
// Four tables of 64 entries; an index outside a table leaves the result of the table before.
struct Lookup {
  uint8x16x4_t t[4];
  HWY_INLINE explicit Lookup(const uint8_t* table) {
    for (size_t k = 0; k < 4; ++k) t[k] = vld1q_u8_x4(table + 64 * k);
  }
  HWY_INLINE VBytes operator()(VBytes x) const {
    const uint8x16_t step = vdupq_n_u8(64);
    uint8x16_t at = x.raw, y = vqtbl4q_u8(t[0], at);
    HWY_UNROLL(4)
    for (size_t k = 1; k < 4; ++k) at = vsubq_u8(at, step), y = vqtbx4q_u8(y, t[k], at);
    return VBytes(y);
  }
};
#elif HWY_ARCH_X86
#define SINTER_SIMD_LOOKUP 1
// Sixteen tables of 16 entries, looked up by the lower four bits. The upper four select one result.
struct Lookup {
  VBytes t[16];
  HWY_INLINE explicit Lookup(const uint8_t* table) {
    const hn::FixedTag<uint8_t, 16> block;
    for (size_t k = 0; k < 16; ++k)
      t[k] = hn::BroadcastBlock<0>(hn::ResizeBitCast(DBytes(), hn::LoadU(block, table + 16 * k)));
  }
  HWY_INLINE VBytes operator()(VBytes x) const {
    const hn::Repartition<uint16_t, DBytes> wide;
    // Bit n of every byte becomes its sign.
    const VBytes bit4 = hn::BitCast(DBytes(), hn::ShiftLeft<3>(hn::BitCast(wide, x))),
                 bit5 = hn::BitCast(DBytes(), hn::ShiftLeft<2>(hn::BitCast(wide, x))), bit6 = hn::Add(x, x);
    const VBytes at = hn::And(x, hn::Set(DBytes(), uint8_t{15}));
    const auto pair = [&](size_t k) SINTER_SIMD_LAMBDA {
      return select(bit4, hn::TableLookupBytes(t[k + 1], at), hn::TableLookupBytes(t[k], at));
    };
    const auto four = [&](size_t k) SINTER_SIMD_LAMBDA { return select(bit5, pair(k + 2), pair(k)); };
    const VBytes lower = select(bit6, four(4), four(0)), upper = select(bit6, four(12), four(8));
    return select(x, upper, lower);
  }

 private:
  static HWY_INLINE VBytes select(VBytes sign, VBytes yes, VBytes no) {
    const hn::ScalableTag<int8_t> d;
    return hn::BitCast(DBytes(),
                       hn::IfNegativeThenElse(hn::BitCast(d, sign), hn::BitCast(d, yes), hn::BitCast(d, no)));
  }
};
#else
#define SINTER_SIMD_LOOKUP 0
#endif

// Computes y[i] = table[x[i]].
void lut_bytes(const uint8_t* x, const uint8_t* table, uint8_t* y, size_t n) {
  size_t i = 0;
#if SINTER_SIMD_LOOKUP
  const DBytes d;
  const size_t lanes = hn::Lanes(d);
  if (n >= 4 * lanes) {
    const Lookup lookup(table);
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const VBytes a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
      hn::StoreU(lookup(a), d, y + i);
      hn::StoreU(lookup(b), d, y + i + lanes);
    }
  }
#endif
  for (; i < n; ++i) y[i] = table[x[i]];
}
#undef SINTER_SIMD_LOOKUP

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(lut_bytes);

void look_up_bytes(const uint8_t* x, const uint8_t* table, uint8_t* y, size_t n) {
  HWY_DYNAMIC_DISPATCH(lut_bytes)(x, table, y, n);
}

namespace {

// The table is copied, in the order of the inputs' bits: an x of 256 elements may leave its result in the
// table's memory.
template <class T, class Map>
void run_table(const OpCall& call, RunContext& context, Map map) {
  const auto* table = call.in(1).as<const T>();
  const size_t first = call.in(0).dtype == DType::kInt8 ? 128 : 0;
  alignas(64) T entries[256];
  for (size_t i = 0; i < 256; ++i) entries[i] = table[(i + first) % 256];
  const auto* x = call.in(0).as<const uint8_t>();
  auto* y = call.out(0).as<T>();
  parallel_for(context.threads, call.out(0).size(), 16384, [&](int64_t begin, int64_t end) {
    map(x + begin, entries, y + begin, static_cast<size_t>(end - begin));
  });
}

Status run_lut(const OpCall& call, RunContext& context) {
  const auto each = [](const uint8_t* x, const auto* table, auto* y, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] = table[x[i]];
  };
  switch (byte_width(call.out(0).dtype)) {
    case 1:
      return run_table<uint8_t>(call, context, look_up_bytes), ok_status();
    case 2:
      return run_table<uint16_t>(call, context, each), ok_status();
    default:
      return run_table<uint32_t>(call, context, each), ok_status();
  }
}

}  // namespace

const Kernel kLutKernel = {Op::kLut, nullptr, nullptr, run_lut, accept_dense};

}  // namespace sinter::simd
#endif  // HWY_ONCE
