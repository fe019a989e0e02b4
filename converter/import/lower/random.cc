// RandomNormal, RandomUniform and their -Like forms with a seed: constants. The generator is our own, so that
// a seed gives the same numbers wherever a model is converted (docs/numerics.md); they are not onnxruntime's.
#include <bit>
#include <cmath>
#include <numbers>

#include "converter/import/lowering.h"
#include "converter/ir/dims.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostDrawn = int64_t{1} << 24;

// SplitMix64 (Steele, Lea and Flood 2014) of a counter, which starts at the bits of the seed as a float32.
class Uniform {
 public:
  explicit Uniform(double seed) : state_(std::bit_cast<uint32_t>(static_cast<float>(seed))) {}
  // Returns a number in [0, 1), a multiple of 2^-53.
  double operator()() {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

bool random_constant(NodeLowering& n, Dims dims, DType fallback) {
  const bool normal = n.node().op_type.starts_with("RandomNormal");
  const DType t = n.has_attr("dtype") ? dtype_from_onnx(n.attr_int("dtype", 1)) : fallback;
  const double low = normal ? n.attr_float("mean", 0) : n.attr_float("low", 0),
               size = normal ? n.attr_float("scale", 1) : n.attr_float("high", 1) - low;
  if (!is_float(t)) return n.refuse("gives floating-point numbers, not {}", dtype_name(t));
  if (!n.has_attr("seed"))
    return n.refuse_advising(
        "give its attribute seed a value, which makes the result a constant, or make its result an input of "
        "the model",
        "draws random numbers without a seed");
  const double seed = n.attr_float("seed", 0);
  if (!plausible_dims(t, dims) || element_count(dims) > kMostDrawn)
    return n.refuse_shapes("{} random numbers are too many", to_string(dims));
  Uniform uniform(seed);
  std::vector<double> items(static_cast<size_t>(element_count(dims)));
  for (double& item : items) {
    const double u = uniform();
    // Box and Muller (1958), the cosine alone.
    const double drawn =
        normal ? std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * std::numbers::pi * uniform()) : u;
    item = low + size * drawn;
  }
  n.warn(
      "is a constant here: {} numbers from seed {}, the same in every run, by another generator than "
      "onnxruntime's",
      items.size(), seed);
  return n.output(0, n.cast(n.add_constant(Constant::of<double>(DType::kFloat64, std::move(dims),
                                                                std::span<const double>(items))),
                            t));
}

bool lower_random(NodeLowering& n) {
  const Dims shape = n.attr_ints("shape");
  for (const int64_t d : shape)
    if (d < 0) return n.refuse_shapes("shape [{}] is impossible", fmt::join(shape, ","));
  return random_constant(n, shape, DType::kFloat32);
}
bool lower_random_like(NodeLowering& n) {
  return random_constant(n, n.dims(n.input(0)), n.dtype(n.input(0)));
}

}  // namespace

std::span<const OnnxOperator> random_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"RandomNormal", 1, lower_random, "", kNoInput},
      {"RandomUniform", 1, lower_random, "", kNoInput},
      {"RandomNormalLike", 1, lower_random_like, "", kNoTraits},
      {"RandomUniformLike", 1, lower_random_like, "", kNoTraits},
  };
  return kRules;
}

}  // namespace sinter::convert
