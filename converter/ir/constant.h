// Constant: an immutable tensor that many values may share. Its bytes are in a mapped model file or in memory
// that it owns, or are computed on first use. Passes hand on references and never copy the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/tensor_view.h"

namespace sinter::convert {

// The lengths of a tensor's dimensions. A missing index throws std::out_of_range, so that a rule that takes a
// rank for granted refuses the model and does not read foreign memory.
class Dims : public std::vector<int64_t> {
 public:
  using std::vector<int64_t>::vector;
  Dims(std::vector<int64_t> lengths) : std::vector<int64_t>(std::move(lengths)) {}
  int64_t& operator[](size_t i) { return at(i); }
  const int64_t& operator[](size_t i) const { return at(i); }
};
using Bytes = std::vector<std::byte>;

class Constant;
struct HeldBytes;
// The numbers of NaN and infinities among numbers.
struct NotFinite {
  uint64_t nan = 0, infinite = 0;
  bool any() const { return nan + infinite > 0; }
};
// Counts in dense numbers of 16 bits or more; others have none.
NotFinite count_not_finite(DType dtype, std::span<const std::byte> bytes);
bool holds_nan(const Constant& constant);

int64_t element_count(const Dims& dims);
// Returns the bytes of a dense tensor. Throws std::length_error where they do not fit int64.
size_t dense_bytes(DType dtype, const Dims& dims);
// Returns "[1,3,224,224]".
std::string to_string(const Dims& dims);
// Returns "float32[1,3,224,224]".
std::string to_string(DType dtype, const Dims& dims);
// Return "1..128", and "int64[1,1..128]" for sizes with a range. Equal numbers are one size.
std::string range_text(int64_t minimum, int64_t maximum);
std::string to_string(DType dtype, const Dims& minima, const Dims& maxima);

// The bytes of a constant while they are read.
struct LoadedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

class Constant;
struct Recipe;  // converter/ir/recipe.h
using ConstantPtr = std::shared_ptr<const Constant>;

// Evenly spaced integers, in row-major order.
struct Progression {
  int64_t first = 0, step = 0;
};

class Constant {
 public:
  // The bytes are row-major, little-endian, packed low bits first where the dtype is narrower than a byte.
  static ConstantPtr owned(DType dtype, Dims dims, Bytes bytes);
  static ConstantPtr held(DType dtype, Dims dims, HeldBytes bytes);  // (large_bytes.h)
  // `owner` keeps `bytes` alive (a mapping).
  static ConstantPtr mapped(DType dtype, Dims dims, std::shared_ptr<const void> owner,
                            std::span<const std::byte> bytes);
  // The bytes are computed at every load(), for large results of folding. `compute` must be deterministic.
  static ConstantPtr lazy(DType dtype, Dims dims, std::function<Bytes()> compute);
  // The recipe computes the bytes at every load() (computed_parts.h). A file holds the result.
  static ConstantPtr computed(DType dtype, Dims dims, std::shared_ptr<const Recipe> by);
  // The numbers are int32 or int64, computed at every load().
  static ConstantPtr evenly_spaced(DType dtype, Dims dims, Progression numbers);
  // Returns `computed` with the recipe that gave it; a large one is computed again whenever it is read.
  static ConstantPtr made(const ConstantPtr& computed, std::shared_ptr<const Recipe> recipe);
  // Returns `narrow` with the float32 values that an operator that computes in a narrow type rounded to it.
  static ConstantPtr rounded(const ConstantPtr& narrow, ConstantPtr wide);
  template <class T>
  static ConstantPtr of(DType dtype, Dims dims, std::span<const T> items) {
    Bytes bytes(items.size_bytes());
    if (!bytes.empty()) std::memcpy(bytes.data(), items.data(), bytes.size());
    return owned(dtype, std::move(dims), std::move(bytes));
  }
  static ConstantPtr int64s(std::span<const int64_t> items);  // 1-D
  static ConstantPtr scalar(DType dtype, double value);       // rank 0; exact for integers up to 2^53
  static ConstantPtr scalar_int(DType dtype, int64_t value);  // rank 0, integers and bool

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int64_t size() const { return element_count(dims_); }
  size_t byte_size() const { return dense_bytes(dtype_, dims_); }
  bool is_lazy() const { return compute_ || computed_by_; }
  LoadedBytes load() const;
  // Returns the operations and smaller constants from which it was folded; null if they save no bytes.
  const std::shared_ptr<const Recipe>& recipe() const { return recipe_; }
  // Returns the recipe by which load() computes it; null if it holds its bytes, or is lazy().
  const std::shared_ptr<const Recipe>& computed_by() const { return computed_by_; }
  // Returns the numbers of evenly_spaced(); nothing if it was not made so.
  const std::optional<Progression>& progression() const { return progression_; }
  // Returns the wide values of rounded(); null if there are none.
  const ConstantPtr& wide() const { return wide_; }

  // Return all elements as double / int64 (any dtype but strings; sub-byte unpacked). For small constants.
  std::vector<double> as_doubles() const;
  std::vector<int64_t> as_int64s()
      const;  // floats towards zero, to the nearest end where out of range, NaN to 0
  // Returns a constant of the same bytes under other dims of the same size.
  ConstantPtr reshaped(Dims dims) const;

 private:
  DType dtype_ = DType::kNone;
  Dims dims_;
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  std::function<LoadedBytes()> compute_;
  std::shared_ptr<const Recipe> computed_by_, recipe_;
  std::optional<Progression> progression_;
  ConstantPtr wide_;
};

}  // namespace sinter::convert
