#include "converter/ir/low_bit_weights.h"

#include <algorithm>
#include <cmath>

#include "converter/ir/builder.h"
#include "converter/ir/packed_integers.h"
#include "converter/ir/recipe.h"
#include "converter/ir/spread_parts.h"
#include "runtime/core/bit_rows.h"

namespace sinter::convert {
namespace {

constexpr size_t kLazyBytes = 1 << 20;  // the size of packed weights that are moved when they are read

// The form of the integers: `offset` is subtracted from both q and z.
struct Coding {
  WeightFormat format;
  int64_t offset = 0;
  enum class Zeros { kNone, kPacked, kFloat } zeros = Zeros::kNone;

  // Returns the columns that make rows begin at whole bytes; rows in planes do so with any length.
  int64_t padding(int64_t columns) const {
    const int64_t unit = format.in_planes() ? 1 : format.unit();
    return (unit - columns % unit) % unit;
  }
};

// The widths, of which the smallest that suffices is taken. 7 bits save too little for the time to read them.
constexpr int kAllWidths[] = {2, 3, 4, 5, 6, 8};
constexpr int kElementWidths[] = {2, 4, 8};
constexpr int kPlainWidths[] = {4, 8};

std::optional<Coding> coding(const SpreadParts& m, std::pair<int64_t, int64_t> range_of_q, DType stored,
                             std::span<const int> widths) {
  const auto [low, high] = range_of_q;
  const auto [z_low, z_high] = std::minmax_element(m.z.items.begin(), m.z.items.end());
  for (const float z : m.z.items)
    if (!(std::fabs(z) < 0x1p24f)) return std::nullopt;
  for (const float s : m.s.items)
    if (!std::isfinite(s)) return std::nullopt;
  const bool whole =
      std::all_of(m.z.items.begin(), m.z.items.end(), [](float z) { return z == std::floor(z); });
  for (const int bits : widths) {
    const int64_t range = int64_t{1} << bits;
    const WeightFormat plain = weight_format(bits, CodeKind::kUnsigned);
    const bool planes = plain.in_planes();
    const WeightFormat with_sign = planes ? plain : weight_format(bits, CodeKind::kSigned);
    if (whole && *z_low == *z_high) {  // a single zero point is subtracted at once
      const auto z = static_cast<int64_t>(*z_low);
      if (!planes && low - z >= -range / 2 && high - z < range / 2)
        return Coding{with_sign, z, Coding::Zeros::kNone};
      if (low - z >= 0 && high - z < range) return Coding{plain, z, Coding::Zeros::kNone};
    }
    // Integers stored in this form need not be written anew, and readers of the same numbers share them.
    if (!planes && whole && stored == with_sign.type && *z_low >= static_cast<float>(-range / 2) &&
        *z_high < static_cast<float>(range / 2))
      return Coding{with_sign, 0, Coding::Zeros::kPacked};
    if (high - low >= range) continue;
    Coding c{plain,
             low >= 0 && high < range                ? 0
             : low >= -range / 2 && high < range / 2 ? -range / 2
                                                     : low,
             Coding::Zeros::kFloat};
    const int64_t zero_range = planes ? 256 : range;
    if (whole && static_cast<int64_t>(*z_low) >= c.offset &&
        static_cast<int64_t>(*z_high) < c.offset + zero_range)
      c.zeros = Coding::Zeros::kPacked;
    return c;
  }
  return std::nullopt;
}

// Returns the items as elements of an integer type of `bits`.
Bytes packed(const std::vector<uint8_t>& items, int bits) {
  const auto width = static_cast<size_t>(bits), each = 8 / width;
  Bytes bytes((items.size() + each - 1) / each);
  for (size_t i = 0; i < items.size(); ++i)
    bytes[i / each] |= static_cast<std::byte>((items[i] & ((1u << width) - 1)) << (i % each * width));
  return bytes;
}

// Sets the rows. The width is a constant, so that divisions become shifts.
template <int kBits>
void set_rows(const SpreadParts& m, int64_t offset, const std::vector<int32_t>& order, int64_t columns,
              uint8_t* at) {
  for (int64_t n = 0; n < m.rows; ++n, at += bit_row_bytes(kBits, columns))
    for (int64_t k = 0; k < m.columns; ++k) {
      const int64_t column = order.empty() ? k : order[static_cast<size_t>(k)];
      const int64_t q = m.q[static_cast<size_t>(n * m.columns + column)] - offset;
      set_bit_row_item(at, kBits, columns, k, static_cast<uint8_t>(q & ((1 << kBits) - 1)));
    }
}

// Returns rows of whole bytes of codes q - offset.
ConstantPtr packed_weights(const SpreadParts& m, WeightFormat format, int64_t offset = 0, int64_t padding = 0,
                           const std::vector<int32_t>& order = {}) {
  constexpr decltype(&set_rows<8>) kOfWidth[] = {set_rows<2>, set_rows<3>, set_rows<4>, set_rows<5>,
                                                 set_rows<6>, set_rows<7>, set_rows<8>};
  const int64_t columns = m.columns + padding;
  Bytes bytes(static_cast<size_t>(m.rows * bit_row_bytes(format.bits, columns)));
  kOfWidth[format.bits - 2](m, offset, order, columns, reinterpret_cast<uint8_t*>(bytes.data()));
  return Constant::owned(format.type, {m.rows, format.row_elements(columns)}, std::move(bytes));
}

size_t stored_bytes(const ConstantPtr& c) {
  return !c ? 0 : c->recipe() ? c->recipe()->stored_bytes : c->byte_size();
}

// Returns the numbers in `narrow` if that keeps their bits, else null.
ConstantPtr through(DType narrow, const ConstantPtr& wide) {
  const ConstantPtr half = evaluated(CastAttrs{static_cast<int64_t>(narrow), 1}, {wide});
  const ConstantPtr back =
      half ? evaluated(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {half}) : nullptr;
  if (!back) return nullptr;
  const LoadedBytes a = wide->load(), b = back->load();
  return std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()) ? back : nullptr;
}
bool holds(DType narrow, std::span<const float> items) {
  return through(narrow, Constant::of<float>(DType::kFloat32, {static_cast<int64_t>(items.size())}, items)) !=
         nullptr;
}

// Returns float32 numbers in the smallest form that gives the same bits.
ConstantPtr stored_floats(const Dims& dims, const std::vector<float>& items) {
  const ConstantPtr whole = Constant::of<float>(DType::kFloat32, dims, items);
  if (whole->byte_size() < kRecipeBytes) return whole;
  if (std::all_of(items.begin(), items.end(),
                  [&](float f) { return std::memcmp(&f, &items[0], sizeof f) == 0; })) {
    const ConstantPtr one = Constant::of<float>(DType::kFloat32, {1}, std::span(items).first(1));
    return Constant::made(whole, std::make_shared<const Recipe>(Recipe{
                                     BroadcastAttrs{IntList(std::span<const int64_t>(dims))}, {one}, 4, 1}));
  }
  for (const DType narrow : {DType::kFloat8E8M0, DType::kFloat8E4M3FN, DType::kFloat16, DType::kBFloat16})
    if (ConstantPtr c = through(narrow, whole)) return c;
  return whole;
}

// Returns whole zero points as float32, held in 4 or 8 bits where they fit.
ConstantPtr stored_zeros(const Dims& dims, const std::vector<float>& items) {
  const auto [low, high] = std::minmax_element(items.begin(), items.end());
  const bool whole = std::all_of(items.begin(), items.end(), [](float z) { return z == std::floor(z); });
  const ConstantPtr plain = stored_floats(dims, items);
  if (!whole || *high - *low > 255 || items.size() * 4 < kRecipeBytes) return plain;
  const bool narrow = *high - *low <= 15;
  std::vector<uint8_t> bytes;
  for (const float z : items) bytes.push_back(static_cast<uint8_t>(z - *low));
  const ConstantPtr base =
      Constant::owned(narrow ? DType::kUint4 : DType::kUint8, dims, packed(bytes, narrow ? 4 : 8));
  ConstantPtr wide = evaluated(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {base});
  if (wide && *low != 0)
    wide = evaluated(AddAttrs{}, {wide, Constant::scalar(DType::kFloat32, static_cast<double>(*low))});
  return wide && stored_bytes(wide) < stored_bytes(plain) ? wide : plain;
}

// Whether direct parts need no comparison with the constant, because no rounding overflows or gives 0.
bool is_certain(const SpreadParts& m, std::pair<int64_t, int64_t> range_of_q, DType rounded_to) {
  const double low = static_cast<double>(range_of_q.first), high = static_cast<double>(range_of_q.second);
  double most = 0, most_s = 0, least_s = 1;
  for (const float z : m.z.items)
    most =
        std::max({most, std::fabs(low - static_cast<double>(z)), std::fabs(high - static_cast<double>(z))});
  for (const float item : m.s.items) {
    const double s = std::fabs(static_cast<double>(item));
    most_s = std::max(most_s, s);
    if (s > 0) least_s = std::min(least_s, s);
  }
  return most * most_s < (rounded_to == DType::kFloat16 ? 65504.0 : 3e38) && least_s > 1e-30;
}

std::optional<LowBitWeights> from_parts(const ConstantPtr& constant, const LowBitParts& parts,
                                        std::span<const int> widths) {
  const Dims& dims = constant->dims();
  std::optional<PackedIntegers> stored;
  if (parts.direct && parts.q->dims() == dims) stored = PackedIntegers::of(parts.q);
  // Direct parts that do not suffice are treated as any others.
  const auto by_element = [&]() -> std::optional<LowBitWeights> {
    LowBitParts spread = parts;
    spread.direct = false;
    return spread_blocks(spread) ? from_parts(constant, spread, widths) : std::nullopt;
  };
  if (!stored && parts.block > 0) return by_element();
  auto m = spread_parts(parts, dims);
  if (!m) return std::nullopt;
  // A Cast that the model wrote keeps its effect, unless scales are numbers of that type already, because it
  // then only names the type in which the model computes.
  if (parts.written && !(holds(parts.rounded_to, m->s.items) && holds(parts.rounded_to, m->z.items)))
    return std::nullopt;
  ColumnBlocks b{block_in_place(*m), {}};
  if (!block_suits(b.block, m->columns)) {
    if (stored) return by_element();
    auto sorted = sorted_blocks(*m);
    if (!sorted) return std::nullopt;
    b = std::move(*sorted);
  }
  const auto range = stored ? stored->range() : read_integers(constant, parts, b, &*m);
  if (!range) return std::nullopt;
  const auto c = coding(*m, *range, parts.q->dtype(), widths);
  if (!c) return std::nullopt;
  if (stored && (c->format.bits != stored->bits() || c->padding(m->columns) > 0 ||
                 !is_certain(*m, *range, parts.rounded_to)))
    return by_element();
  // Blocks begin at whole bytes.
  if (b.block < m->columns && b.block % c->format.unit() != 0) return std::nullopt;
  const int64_t blocks = (m->columns + b.block - 1) / b.block;
  std::vector<float> scales, zeros;
  std::vector<uint8_t> zero_bits;
  for (int64_t n = 0; n < m->rows; ++n)
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t k = b.order.empty() ? i * b.block : b.order[static_cast<size_t>(i * b.block)];
      scales.push_back(m->s(n, k));
      zeros.push_back(m->z(n, k) - static_cast<float>(c->offset));
      zero_bits.push_back(
          c->zeros == Coding::Zeros::kPacked ? static_cast<uint8_t>(static_cast<int>(zeros.back())) : 0);
    }
  LowBitWeights w;
  w.format = c->format;
  const DType type = w.format.type;
  w.padding = c->padding(m->columns);
  w.block = b.block == m->columns ? b.block + w.padding : b.block, w.order = b.order,
  w.rounded = parts.rounded_to != DType::kNone;
  w.scales = stored_floats({m->rows, blocks}, scales);
  if (c->zeros == Coding::Zeros::kPacked)
    w.zeros = Constant::owned(type, {m->rows, blocks}, packed(zero_bits, bit_width(type)));
  if (c->zeros == Coding::Zeros::kFloat) w.zeros = stored_zeros({m->rows, blocks}, zeros);
  const Dims whole{m->rows, w.format.row_elements(m->columns + w.padding)};
  if (b.order.empty() && c->offset == 0 && parts.q->dtype() == type && parts.q->dims() == whole) {
    w.weights = parts.q;
  } else if (stored) {
    w.weights = Constant::lazy(type, whole,
                               [packed = *stored, offset = c->offset] { return packed.shifted(offset); });
    if (w.weights->byte_size() < kLazyBytes)
      w.weights = Constant::owned(type, whole, stored->shifted(c->offset));
  } else {
    w.weights = packed_weights(*m, w.format, c->offset, w.padding, b.order);
  }
  w.stored_bytes = w.weights->byte_size() + stored_bytes(w.scales) + stored_bytes(w.zeros) +
                   b.order.size() * sizeof(int32_t);
  return w;
}

// Returns the weights of parts whose q are floats, which keep their type and their place.
std::optional<LowBitWeights> from_float_parts(const ConstantPtr& constant, const LowBitParts& parts) {
  // FullyConnected takes floats without scales.
  if (parts.z || !parts.s || parts.q->dims() != constant->dims()) return std::nullopt;
  const auto m = spread_parts(parts, constant->dims());
  if (!m) return std::nullopt;
  for (const float s : m->s.items)
    if (!std::isfinite(s)) return std::nullopt;
  if (parts.written && !holds(parts.rounded_to, m->s.items)) return std::nullopt;
  LowBitWeights w;
  w.format = *find_weight_format(parts.q->dtype(), 0, false);
  const int64_t block = block_in_place(*m), unit = w.format.unit();
  if (!block_suits(block, m->columns) || m->columns % unit != 0 || block % unit != 0) return std::nullopt;
  constexpr int64_t kLargest = 57344;  // the largest number of all formats
  const bool certain = parts.direct && is_certain(*m, {-kLargest, kLargest}, parts.rounded_to);
  if (!certain && !same_products(constant, parts, *m)) return std::nullopt;
  w.weights = parts.q, w.block = block, w.rounded = parts.rounded_to != DType::kNone;
  const Dims dims{m->rows, (m->columns + block - 1) / block};
  std::vector<float> scales;
  for (int64_t n = 0; n < m->rows; ++n)
    for (int64_t k = 0; k < m->columns; k += block) scales.push_back(m->s(n, k));
  w.scales = stored_floats(dims, scales);
  // The model's own computation of scales from narrower ones may take fewer bytes.
  if (parts.s->dims() == dims && parts.s->dtype() == DType::kFloat32 &&
      stored_bytes(parts.s) < stored_bytes(w.scales))
    w.scales = parts.s;
  w.stored_bytes = w.weights->byte_size() + stored_bytes(w.scales);
  return w;
}

// Returns `wide` as the model computes it from narrower constants in the same order; else null.
ConstantPtr as_computed(const ConstantPtr& model, const ConstantPtr& wide) {
  if (!model || !model->recipe() || model->size() != wide->size()) return nullptr;
  ConstantPtr c = evaluated(ViewAttrs{IntList(std::span<const int64_t>(wide->dims()))}, {model});
  if (c && c->dtype() != DType::kFloat32)
    c = evaluated(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {c});
  if (!c || stored_bytes(c) >= stored_bytes(wide)) return nullptr;
  const LoadedBytes a = c->load(), b = wide->load();
  return std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()) ? c : nullptr;
}

// Returns the weights of parts whose q are indices into a table, which keep their order.
std::optional<LowBitWeights> from_table_parts(const ConstantPtr& constant, const LowBitParts& parts) {
  auto m = spread_parts(parts, constant->dims());
  if (!m) return std::nullopt;
  for (const float s : m->s.items)
    if (!std::isfinite(s)) return std::nullopt;
  // A written Cast keeps its effect here, too. Models of bitsandbytes have float32 scales in any type.
  if (parts.written && !holds(parts.rounded_to, parts.table)) return std::nullopt;
  LowBitWeights w;
  w.format = weight_format(4, CodeKind::kTable);
  const int64_t block = block_in_place(*m), unit = w.format.unit();
  if (!block_suits(block, m->columns) || m->columns % unit != 0 || block % unit != 0 ||
      !read_indices(constant, parts, block, &*m))
    return std::nullopt;
  w.weights = packed_weights(*m, w.format), w.block = block, w.rounded = parts.rounded_to != DType::kNone;
  std::vector<float> numbers = parts.table, scales;
  numbers.resize(kWeightTableSize);
  w.table = Constant::of<float>(DType::kFloat32, {kWeightTableSize}, numbers);
  for (int64_t n = 0; n < m->rows; ++n)
    for (int64_t k = 0; k < m->columns; k += block) scales.push_back(m->s(n, k));
  w.scales = stored_floats({m->rows, (m->columns + block - 1) / block}, scales);
  if (const ConstantPtr c = as_computed(parts.table_scales, w.scales)) w.scales = c;
  w.stored_bytes = w.weights->byte_size() + stored_bytes(w.scales) + w.table->byte_size();
  return w;
}

// Whether the packed form takes about as many bytes as the model's.
bool pays(size_t bytes, size_t before) {
  return bytes <= before + before / 50 + std::min(before / 4, kRecipeBytes);
}

}  // namespace

std::optional<LowBitWeights> low_bit_weights(const ConstantPtr& constant, bool in_planes) {
  const Dims& dims = constant->dims();
  if (!constant->recipe() || constant->dtype() != DType::kFloat32 || dims.size() != 2 ||
      constant->size() == 0 || dims[1] > INT32_MAX)
    return std::nullopt;
  for (const LowBitParts& parts : low_bit_parts(constant)) {
    if (is_float(parts.q->dtype()) || !parts.table.empty()) {
      auto found =
          parts.table.empty() ? from_float_parts(constant, parts) : from_table_parts(constant, parts);
      if (found && pays(found->stored_bytes, constant->recipe()->stored_bytes)) return found;
      continue;
    }
    // Blocks that do not begin at whole bytes in the narrowest form may do so in a wider one.
    for (const std::span<const int> widths :
         {in_planes ? std::span<const int>(kAllWidths) : std::span<const int>(kElementWidths),
          std::span<const int>(kPlainWidths)}) {
      auto found = from_parts(constant, parts, widths);
      if (found && pays(found->stored_bytes, constant->recipe()->stored_bytes)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace sinter::convert
