#include "converter/ir/constant.h"

#include <fmt/format.h>

#include <stdexcept>

#include "converter/ir/builder.h"
#include "converter/ir/computed_parts.h"
#include "converter/ir/large_bytes.h"
#include "converter/ir/recipe.h"
#include "runtime/core/float_formats.h"
#include "runtime/kernels/support.h"

namespace sinter::convert {

int64_t element_count(const Dims& dims) {
  int64_t n = 1;
  for (const int64_t d : dims)
    if (d < 0 || !checked_mul(n, d, &n))
      throw std::length_error("a shape of " + to_string(dims) + " has too many elements");
  return n;
}

size_t dense_bytes(DType dtype, const Dims& dims) {
  int64_t bytes = 0;
  if (!checked_bytes(dtype, dims, &bytes))
    throw std::length_error("a shape of " + to_string(dims) + " has too many bytes");
  return static_cast<size_t>(bytes);
}

std::string to_string(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }
std::string to_string(DType dtype, const Dims& dims) { return dtype_name(dtype) + to_string(dims); }

std::string range_text(int64_t minimum, int64_t maximum) {
  return minimum == maximum ? fmt::format("{}", maximum) : fmt::format("{}..{}", minimum, maximum);
}

std::string to_string(DType dtype, const Dims& minima, const Dims& maxima) {
  std::string text;
  for (size_t i = 0; i < maxima.size(); ++i) text += (i == 0 ? "" : ",") + range_text(minima[i], maxima[i]);
  return fmt::format("{}[{}]", dtype_name(dtype), text);
}

ConstantPtr Constant::owned(DType dtype, Dims dims, Bytes bytes) {
  return held(dtype, std::move(dims), hold_bytes(std::move(bytes)));
}

ConstantPtr Constant::held(DType dtype, Dims dims, HeldBytes bytes) {
  return mapped(dtype, std::move(dims), std::move(bytes.owner), bytes.bytes);
}

ConstantPtr Constant::mapped(DType dtype, Dims dims, std::shared_ptr<const void> owner,
                             std::span<const std::byte> bytes) {
  auto c = std::make_shared<Constant>();
  c->dtype_ = dtype;
  c->dims_ = std::move(dims);
  c->owner_ = std::move(owner);
  c->bytes_ = bytes;
  if (bytes.size() != c->byte_size())
    throw std::logic_error(
        fmt::format("{} bytes for a constant {}", bytes.size(), to_string(dtype, c->dims_)));
  return c;
}

ConstantPtr Constant::lazy(DType dtype, Dims dims, std::function<Bytes()> compute) {
  auto c = std::make_shared<Constant>();
  c->dtype_ = dtype;
  c->dims_ = std::move(dims);
  c->compute_ = [compute = std::move(compute)] {
    auto held = std::make_shared<const Bytes>(compute());
    const std::span<const std::byte> view(*held);
    return LoadedBytes{std::move(held), view};
  };
  return c;
}

ConstantPtr Constant::computed(DType dtype, Dims dims, std::shared_ptr<const Recipe> by) {
  auto c = std::make_shared<Constant>();
  c->dtype_ = dtype;
  c->dims_ = std::move(dims);
  c->computed_by_ = std::move(by);
  return c;
}

namespace {

template <class T>
Bytes spaced(Progression numbers, size_t count) {
  Bytes bytes(count * sizeof(T));
  auto next = static_cast<uint64_t>(numbers.first);
  for (size_t i = 0; i < count; ++i, next += static_cast<uint64_t>(numbers.step)) {
    const auto item = static_cast<T>(next);
    std::memcpy(bytes.data() + i * sizeof item, &item, sizeof item);
  }
  return bytes;
}

}  // namespace

ConstantPtr Constant::evenly_spaced(DType dtype, Dims dims, Progression numbers) {
  if (dtype != DType::kInt32 && dtype != DType::kInt64)
    throw std::logic_error("a progression of other types");
  const auto count = static_cast<size_t>(element_count(dims));
  auto c = std::make_shared<Constant>(*lazy(dtype, std::move(dims), [=] {
    return dtype == DType::kInt32 ? spaced<int32_t>(numbers, count) : spaced<int64_t>(numbers, count);
  }));
  c->progression_ = numbers;
  return c;
}

ConstantPtr Constant::made(const ConstantPtr& computed, std::shared_ptr<const Recipe> recipe) {
  auto c = std::make_shared<Constant>(*computed);
  if (c->byte_size() >= kLazyResultBytes) {
    c->owner_ = nullptr;
    c->bytes_ = {};
    c->compute_ = nullptr;
    c->progression_ = std::nullopt;
    c->computed_by_ = recipe;
  }
  c->recipe_ = std::move(recipe);
  return c;
}

ConstantPtr Constant::int64s(std::span<const int64_t> items) {
  return of<int64_t>(DType::kInt64, {static_cast<int64_t>(items.size())}, items);
}

namespace {

template <class T>
ConstantPtr one(DType dtype, T value) {
  return Constant::of<T>(dtype, {}, std::span<const T>(&value, 1));
}

}  // namespace

ConstantPtr Constant::scalar_int(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return one(dtype, static_cast<uint8_t>(value != 0));
  ConstantPtr made;
  const auto make = [&](auto tag) {
    made = one(dtype, static_cast<typename decltype(tag)::type>(value));
    return ok_status();
  };
  return for_integer(dtype, make).ok() ? made : scalar(dtype, static_cast<double>(value));
}

ConstantPtr Constant::scalar(DType dtype, double value) {
  if (is_integer(dtype) || dtype == DType::kBool) return scalar_int(dtype, saturate_to<int64_t>(value));
  if (dtype == DType::kFloat64) return one(dtype, value);
  if (dtype == DType::kFloat32) return one(dtype, static_cast<float>(value));
  std::vector<ConstantPtr> result;
  const Status status =
      evaluate(CastAttrs{static_cast<int64_t>(dtype), 1}, {one(DType::kFloat64, value)}, 1, &result);
  if (!status.ok()) throw std::logic_error(fmt::format("no scalar of type {}", dtype_name(dtype)));
  return result[0];
}

LoadedBytes Constant::load() const {
  if (computed_by_) return computed_bytes(*computed_by_, dtype_, dims_);
  if (!compute_) return {reader_of(owner_, bytes_), bytes_};
  LoadedBytes loaded = compute_();
  if (loaded.bytes.size() != byte_size()) throw std::logic_error("a computed constant has the wrong size");
  return loaded;
}

namespace {

template <class To, class From>
std::vector<To> converted(std::span<const std::byte> bytes) {
  std::vector<To> out(bytes.size() / sizeof(From));
  for (size_t i = 0; i < out.size(); ++i) {
    From item;
    std::memcpy(&item, bytes.data() + i * sizeof(From), sizeof(From));
    if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>)
      out[i] = saturate_to<To>(item);
    else
      out[i] = static_cast<To>(item);
  }
  return out;
}

template <class To>
std::vector<To> elements(const Constant& c) {
  const LoadedBytes loaded = c.load();
  std::vector<To> out;
  const auto convert = [&](auto tag) {
    out = converted<To, typename decltype(tag)::type>(loaded.bytes);
    return ok_status();
  };
  if (for_number(c.dtype() == DType::kBool ? DType::kUint8 : c.dtype(), convert).ok()) return out;
  std::vector<ConstantPtr> wide;
  auto self = Constant::mapped(c.dtype(), c.dims(), loaded.owner, loaded.bytes);
  const Status status = evaluate(CastAttrs{static_cast<int64_t>(DType::kFloat64), 1}, {self}, 1, &wide);
  if (!status.ok())
    throw std::logic_error(fmt::format("cannot read elements of type {}", dtype_name(c.dtype())));
  return converted<To, double>(wide[0]->load().bytes);
}

}  // namespace

std::vector<double> Constant::as_doubles() const { return elements<double>(*this); }
std::vector<int64_t> Constant::as_int64s() const { return elements<int64_t>(*this); }

ConstantPtr Constant::rounded(const ConstantPtr& narrow, ConstantPtr wide) {
  auto c = std::make_shared<Constant>(*narrow);
  c->wide_ = std::move(wide);
  return c;
}

ConstantPtr Constant::reshaped(Dims dims) const {
  auto c = std::make_shared<Constant>(*this);
  if (element_count(dims) != size()) throw std::logic_error("a constant cannot be reshaped to another size");
  if (computed_by_)
    c->computed_by_ = std::make_shared<const Recipe>(Recipe{
        ViewAttrs{IntList(std::span<const int64_t>(dims))}, {std::make_shared<const Constant>(*this)}});
  c->dims_ = std::move(dims);
  c->recipe_ = nullptr;  // has the old dims
  if (wide_) c->wide_ = wide_->reshaped(c->dims_);
  return c;
}

namespace {

// Counts words that are infinity, or beyond it as NaN is, once their sign is removed.
template <class Word>
NotFinite count_words(std::span<const std::byte> bytes, Word infinity) {
  constexpr Word kMagnitude = static_cast<Word>(static_cast<Word>(~Word{0}) >> 1);
  NotFinite found;
  for (size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(Word));
    word = static_cast<Word>(word & kMagnitude);
    if (word < infinity) [[likely]]
      continue;
    ++(word == infinity ? found.infinite : found.nan);
  }
  return found;
}

}  // namespace

NotFinite count_not_finite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kFloat32:
      return count_words<uint32_t>(bytes, 0x7f800000u);
    case DType::kFloat64:
      return count_words<uint64_t>(bytes, 0x7ff0000000000000u);
    case DType::kFloat16:
      return count_words<uint16_t>(bytes, 0x7c00u);
    case DType::kBFloat16:
      return count_words<uint16_t>(bytes, 0x7f80u);
    default:
      return {};
  }
}

bool holds_nan(const Constant& constant) {
  return is_float(constant.dtype()) && count_not_finite(constant.dtype(), constant.load().bytes).nan > 0;
}

}  // namespace sinter::convert
