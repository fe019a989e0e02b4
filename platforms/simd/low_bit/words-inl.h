// Vectors of words of weights of 2 to 8 bits, as vectors of bytes.
//
// Byte b of vector j holds integer b * vectors + j of a chunk, in its low bits.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_WORDS_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_WORDS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_WORDS_INL_H_
#endif

#include "platforms/simd/isa/math-inl.h"
#include "platforms/simd/low_bit/low_bit.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Returns a vector of bytes, of which those from `end` on read as zeros.
template <class D>
HWY_NOINLINE hn::Vec<D> load_last(D d, const uint8_t* p, const uint8_t* end) {
  return p < end ? hn::LoadN(d, p, static_cast<size_t>(end - p)) : hn::Zero(d);
}
template <class D>
HWY_INLINE hn::Vec<D> load_before(D d, const uint8_t* p, const uint8_t* end) {
  if (HWY_LIKELY(end - p >= static_cast<int64_t>(hn::Lanes(d)))) return hn::LoadU(d, p);
  return load_last(d, p, end);
}

// Returns a vector of bytes of which the first `count` have all bits, the others none.
HWY_INLINE VI first_bytes(int64_t count) {
  const hn::Repartition<uint8_t, I> d;
  return hn::BitCast(I(), hn::VecFromMask(d, hn::FirstN(d, static_cast<size_t>(count))));
}

// The vectors of words of the planes, by themselves.
template <int kBits, class D = I>
struct PlaneWords {
  using Words = hn::Vec<D>;
  static constexpr BitPlanes kPlanes = bit_planes(kBits);
  static constexpr int kVectors = 8 / kPlanes.bits;  // vectors of bytes that a vector of words becomes

  Words low, twos, singles;

  HWY_INLINE PlaneWords() {}  // an implicit one would not be compiled for the instruction set

  // Makes signed weights unsigned, or the reverse (flip_of). Integers of several planes have no sign.
  HWY_INLINE void change_sign(Words flip) {
    if constexpr (!has_planes(kBits)) low = hn::Xor(low, flip);
  }
  // Returns vector j. Bits above kBits are undefined if there is one plane.
  template <int j>
  HWY_INLINE Words bytes() const {
    Words v = j == 0 ? low : hn::ShiftRight<kPlanes.bits % 8 * j>(low);
    if constexpr (kPlanes.two || kPlanes.single) v = hn::And(v, each_byte((1 << kPlanes.bits) - 1));
    if constexpr (kPlanes.two) v = hn::Or(v, hn::And(hn::ShiftLeft<4 - 2 * j>(twos), each_byte(0x30)));
    if constexpr (kPlanes.single)
      v = hn::Or(v, hn::And(moved<kBits - 1 - j>(singles), each_byte(1 << (kBits - 1))));
    return v;
  }
  // Loads from the place of each plane; load(d, p) loads a vector of bytes or fewer.
  template <class Load>
  static HWY_INLINE Words low_at(const uint8_t* p, const Load& load) {
    return hn::BitCast(D(), load(hn::Repartition<uint8_t, D>(), p));
  }
  template <class Load>
  static HWY_INLINE Words twos_at(const uint8_t* p, const Load& load) {
    return spread_nibbles(p, load);
  }
  template <class Load>
  static HWY_INLINE Words singles_at(const uint8_t* p, const Load& load) {
    if constexpr (kPlanes.bits == 4) {
      const auto v = hn::PromoteTo(D(), load(hn::Rebind<uint8_t, D>(), p));
      const auto pair = hn::Or(v, hn::ShiftLeft<6>(v));
      return hn::Or(pair, hn::ShiftLeft<12>(pair));
    } else {
      return spread_nibbles(p, load);
    }
  }
  // Loads each plane that the width has.
  template <class Load>
  HWY_INLINE void load_at(const uint8_t* low_p, const uint8_t* two_p, const uint8_t* single_p,
                          const Load& load) {
    low = low_at(low_p, load);
    if constexpr (kPlanes.two) twos = twos_at(two_p, load);
    if constexpr (kPlanes.single) singles = singles_at(single_p, load);
  }
  static HWY_INLINE Words each_byte(int v) {
    return hn::Set(D(), static_cast<int32_t>(0x01010101u * static_cast<unsigned>(v)));
  }

 private:
  // Returns the halves of each byte, in the low halves of two.
  template <class Load>
  static HWY_INLINE Words spread_nibbles(const uint8_t* p, const Load& load) {
    const hn::Repartition<uint16_t, D> d;
    const auto v = hn::PromoteTo(d, load(hn::Rebind<uint8_t, decltype(d)>(), p));
    return hn::BitCast(D(), hn::Or(v, hn::ShiftLeft<4>(v)));
  }
  template <int kLeft>
  static HWY_INLINE Words moved(Words v) {
    if constexpr (kLeft < 0)
      return hn::ShiftRight<-kLeft>(v);
    else
      return hn::ShiftLeft<kLeft>(v);
  }
};

// The words of one row, from some integer on.
//
// kInside: no vector that is loaded passes the end of the weights.
template <int kBits, class D = I, bool kInside = false>
class WeightWords : public PlaneWords<kBits, D> {
 public:
  using PlaneWords<kBits, D>::kPlanes;

  HWY_INLINE WeightWords(const LowBit& g, int64_t row) : end_(g.end) {
    low_ = g.weights + row * bit_row_bytes(kBits, g.depth);
    two_ = low_ + plane_bytes(kPlanes.bits, g.depth);
    single_ = two_ + (kPlanes.two ? plane_bytes(2, g.depth) : 0);
  }
  // Loads from integer k on, which begins at whole bytes.
  HWY_INLINE void load(int64_t k) {
    this->low = load_low(k);
    if constexpr (kPlanes.two) this->twos = load_twos(k);
    if constexpr (kPlanes.single) this->singles = load_singles(k);
  }
  HWY_INLINE hn::Vec<D> load_low(int64_t k) const {
    return this->low_at(low_ + static_cast<uint64_t>(k) * kPlanes.bits / 8, loader());
  }
  HWY_INLINE hn::Vec<D> load_twos(int64_t k) const { return this->twos_at(two_ + k / 4, loader()); }
  HWY_INLINE hn::Vec<D> load_singles(int64_t k) const { return this->singles_at(single_ + k / 8, loader()); }

 private:
  HWY_INLINE auto loader() const {
    return [end = end_](auto d, const uint8_t* p) SINTER_SIMD_LAMBDA {
      if constexpr (kInside)
        return hn::LoadU(d, p);
      else
        return load_before(d, p, end);
    };
  }

  const uint8_t *end_, *low_, *two_, *single_;
};

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
