// What the mutators draw from: a small generator whose numbers are the same everywhere, and numbers at which
// checks tend to be wrong.
#pragma once

#include <cstdint>
#include <iterator>
#include <limits>

namespace sinter::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Below n; 0 for n = 0.
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next() % n; }
  size_t index(size_t n) { return static_cast<size_t>(below(n)); }
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <class List>
  auto& pick(List& list) {
    return list[index(std::size(list))];
  }

 private:
  uint64_t state_;
};

inline constexpr int64_t kSharpInts[] = {0,
                                         1,
                                         -1,
                                         2,
                                         3,
                                         4,
                                         7,
                                         8,
                                         -2,
                                         -7,
                                         15,
                                         16,
                                         63,
                                         64,
                                         127,
                                         128,
                                         255,
                                         256,
                                         1 << 15,
                                         1 << 20,
                                         INT32_MAX,
                                         INT32_MIN,
                                         int64_t{1} << 31,
                                         int64_t{1} << 32,
                                         int64_t{1} << 40,
                                         int64_t{1} << 61,
                                         int64_t{1} << 62,
                                         INT64_MAX,
                                         INT64_MAX - 63,
                                         INT64_MIN};

inline constexpr double kSharpFloats[] = {0.0,
                                          -0.0,
                                          1.0,
                                          -1.0,
                                          0.5,
                                          1e-40,
                                          1e-300,
                                          1e38,
                                          1e300,
                                          2147483648.0,
                                          -2147483649.0,
                                          9.3e18,
                                          255.5,
                                          std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::quiet_NaN()};

// A number near `was`, or a sharp one.
inline int64_t other_int(int64_t was, Random& r) {
  const auto moved = [&](uint64_t by) { return static_cast<int64_t>(static_cast<uint64_t>(was) + by); };
  switch (r.below(6)) {
    case 0:
      return moved(1);
    case 1:
      return moved(~uint64_t{0});
    case 2:
      return moved(r.below(17) - 8);
    case 3:
      return static_cast<int64_t>(r.below(10));
    case 4:
      return static_cast<int64_t>(static_cast<uint64_t>(was) << r.below(3) >> r.below(3));
    default:
      return r.pick(kSharpInts);
  }
}

}  // namespace sinter::fuzz
