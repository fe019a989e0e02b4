#include "converter/ir/spread_parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "converter/ir/builder.h"
#include "converter/ir/computed_parts.h"
#include "converter/ir/recipe.h"
#include "converter/ir/spread_axis.h"

namespace sinter::convert {
namespace {

constexpr int64_t kLeastBlock = 16;  // shorter ones cost more than they save

// Returns the last two dims of a constant, 1 for axes that it does not have.
Dims last_two(const Constant& c) {
  const Dims& own = c.dims();
  const auto axis = [&](size_t from_end) {
    return own.size() >= from_end ? own[own.size() - from_end] : int64_t{1};
  };
  return {axis(2), axis(1)};
}

// Returns whether each row and column of a matrix has an element of the constant.
bool broadcasts(const Constant& c, const Dims& matrix) {
  const Dims own = last_two(c);
  const auto fits = [&](size_t i) { return own[i] == 1 || own[i] == matrix[i]; };
  return own[0] * own[1] == c.size() && fits(0) && fits(1);
}

bool read(ConstantPtr c, Dims dims, double absent, int64_t block, SpreadParts::Operand* out) {
  if (!c) c = Constant::scalar(DType::kFloat32, absent);
  if (auto blocks = block == 0 ? blocks_along_rows(c, dims) : std::nullopt) {
    c = blocks->table, block = blocks->block;
  } else if (auto spread = block == 0 && c->dims() == dims ? spread_along(c, 1) : std::nullopt;
             spread && std::set(spread->index.begin(), spread->index.end()).size() ==
                           static_cast<size_t>(spread->table->dims()[1])) {
    c = spread->table, dims[1] = c->dims()[1];
    out->index = std::move(spread->index);
  }
  std::vector<ConstantPtr> cast{c};
  if (c->dtype() != DType::kFloat32 &&
      !evaluate(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {c}, 1, &cast, false).ok())
    return false;
  if (block > 0) dims[1] = (dims[1] + block - 1) / block, out->block = block;
  if (!broadcasts(*c, dims)) return false;
  const Dims own = last_two(*c);
  out->column = own[1] == 1 ? 0 : 1;
  out->row = own[0] == 1 ? 0 : own[1];
  out->loaded = cast[0]->load();
  if (reinterpret_cast<uintptr_t>(out->loaded.bytes.data()) % alignof(float) != 0) {  // inside a model file
    auto copy = std::make_shared<const Bytes>(out->loaded.bytes.begin(), out->loaded.bytes.end());
    out->loaded = {copy, *copy};
  }
  out->items = {reinterpret_cast<const float*>(out->loaded.bytes.data()),
                out->loaded.bytes.size() / sizeof(float)};
  return true;
}

// Returns a constant broadcast to these two dims; null: it does not fit them.
ConstantPtr matrix_like(ConstantPtr c, const Dims& dims) {
  if (!broadcasts(*c, dims)) return nullptr;
  if (const Dims own = last_two(*c); c->dims() != own) c = c->reshaped(own);
  return broadcast_later(c, dims);
}

// Returns the integers of such a constant, in int32.
ConstantPtr as_integers(const ConstantPtr& c, const Dims& dims) {
  ConstantPtr q = matrix_like(c, dims);
  if (q && q->dtype() != DType::kInt32)
    q = computed_later(DType::kInt32, q->dims(), CastAttrs{static_cast<int64_t>(DType::kInt32), 1}, {q});
  return q;
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// Returns which items of the zero points and scales a column has.
std::pair<int64_t, int64_t> shared_by(const SpreadParts& m, int64_t k) { return {m.z.at(k), m.s.at(k)}; }

// Returns for every column a hash of its zero points and scales.
std::vector<uint64_t> hashes(const SpreadParts& m) {
  std::map<std::pair<int64_t, int64_t>, size_t> known;
  std::vector<int64_t> different;  // a column of each kind
  std::vector<size_t> kind(static_cast<size_t>(m.columns));
  for (int64_t k = 0; k < m.columns; ++k) {
    const auto [at, fresh] = known.emplace(shared_by(m, k), different.size());
    if (fresh) different.push_back(k);
    kind[static_cast<size_t>(k)] = at->second;
  }
  std::vector<uint64_t> of_kind(different.size(), 0x9e3779b97f4a7c15u);
  for (int64_t n = 0; n < m.rows; ++n)
    for (size_t i = 0; i < different.size(); ++i)
      for (const float f : {m.z(n, different[i]), m.s(n, different[i])}) {
        uint32_t bits = 0;
        std::memcpy(&bits, &f, sizeof bits);
        uint64_t& h = of_kind[i];
        h = (h ^ bits) * 0xff51afd7ed558ccdu;
        h ^= h >> 29;
      }
  std::vector<uint64_t> result;
  for (const size_t i : kind) result.push_back(of_kind[i]);
  return result;
}

// Returns whether (q - z) * s are these finite floats, to the bit but for the sign of zero.
bool exactly(std::span<const int32_t> q, const std::byte* floats, float z, float s) {
  uint32_t off = 0;
  for (size_t i = 0; i < q.size(); ++i) {
    float want = 0;
    std::memcpy(&want, floats + i * sizeof want, sizeof want);
    off |= static_cast<uint32_t>(!((static_cast<float>(q[i]) - z) * s - want == 0));  // infinities give NaN
  }
  return off == 0;
}

// Rounding is how much rounding to a narrow type may change a number.
struct Rounding {
  double relative = 0, absolute = 0;

  explicit Rounding(DType to)
      : relative(to == DType::kFloat16    ? 0x1p-10
                 : to == DType::kBFloat16 ? 0x1p-7
                                          : 0),
        absolute(to == DType::kFloat16 ? 0x1p-24 : 0) {}
  // Returns whether rounding may change `want` to `got`.
  bool allows(float got, float want) const {
    return got == want || (std::isnan(got) && std::isnan(want)) ||
           std::fabs(static_cast<double>(got) - static_cast<double>(want)) <=
               relative * std::fabs(static_cast<double>(want)) + absolute;
  }
};

// Returns whether the integers `q` of these rows and their scales are what the constant has there.
bool same_values(const SpreadParts& m, const ColumnBlocks& b, const LowBitParts& parts, int64_t first_row,
                 std::span<const int32_t> q, std::span<const std::byte> constant) {
  const auto [relative, absolute] = Rounding(parts.rounded_to);
  const double divided = std::max(relative, 0x1p-23);
  const int64_t rows = static_cast<int64_t>(q.size()) / m.columns;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t first = 0; first < m.columns; first += b.block) {
      const int64_t of = b.order.empty() ? first : b.order[static_cast<size_t>(first)];
      const float z = m.z(first_row + row, of), s = m.s(first_row + row, of);
      const auto begin = static_cast<size_t>(row * m.columns + first),
                 count = static_cast<size_t>(std::min(b.block, m.columns - first));
      if (b.order.empty() && exactly(q.subspan(begin, count), constant.data() + begin * sizeof(float), z, s))
        continue;
      for (int64_t k = first; k < std::min(first + b.block, m.columns); ++k) {
        const auto at =
            static_cast<size_t>(row * m.columns + (b.order.empty() ? k : b.order[static_cast<size_t>(k)]));
        float want = 0;
        std::memcpy(&want, constant.data() + at * sizeof want, sizeof want);
        const auto integer = static_cast<float>(q[at]);
        const float got = (integer - z) * s;
        // The model rounds q * s and z * s before their difference.
        const float terms = parts.divided ? (std::fabs(integer) + std::fabs(z)) * std::fabs(s) : 0;
        if (!(std::fabs(static_cast<double>(got) - static_cast<double>(want)) <=
              relative * std::fabs(static_cast<double>(want)) + static_cast<double>(terms) * divided +
                  absolute))
          return false;
      }
    }
  return true;
}

}  // namespace

bool block_suits(int64_t block, int64_t columns) { return block >= std::min(columns, kLeastBlock); }

std::optional<SpreadParts> spread_parts(const LowBitParts& parts, const Dims& dims) {
  SpreadParts m{dims[0], dims[1], {}, {}, {}};
  if (!read(parts.z, dims, 0, parts.block, &m.z) || !read(parts.s, dims, 1, parts.block, &m.s))
    return std::nullopt;
  return m;
}

int64_t block_in_place(const SpreadParts& m) {
  std::vector<int64_t> open;  // columns that may differ from the one before
  for (int64_t k = 1; k < m.columns; ++k)
    if (shared_by(m, k) != shared_by(m, k - 1)) open.push_back(k);
  std::vector<bool> changes(static_cast<size_t>(m.columns));
  for (int64_t n = 0; n < m.rows; ++n)
    for (const int64_t k : open)
      if (!same_bits(m.z(n, k), m.z(n, k - 1)) || !same_bits(m.s(n, k), m.s(n, k - 1)))
        changes[static_cast<size_t>(k)] = true;
  int64_t block = 0;
  for (int64_t k = 1; k < m.columns; ++k)
    if (changes[static_cast<size_t>(k)]) block = std::gcd(block, k);
  return block == 0 ? m.columns : block;
}

std::optional<ColumnBlocks> sorted_blocks(const SpreadParts& m) {
  const std::vector<uint64_t> hash = hashes(m);
  std::unordered_map<uint64_t, size_t> known;
  std::vector<std::vector<int32_t>> groups;
  for (int64_t k = 0; k < m.columns; ++k) {
    const auto [at, fresh] = known.emplace(hash[static_cast<size_t>(k)], groups.size());
    if (fresh) groups.emplace_back();
    if (static_cast<int64_t>(groups.size()) > m.columns / kLeastBlock + 1) return std::nullopt;
    groups[at->second].push_back(static_cast<int32_t>(k));
  }
  for (size_t last = groups.size(); last-- > 0;) {
    int64_t block = 0;
    for (size_t i = 0; i < groups.size(); ++i)
      if (i != last) block = std::gcd(block, static_cast<int64_t>(groups[i].size()));
    if (!block_suits(block, m.columns)) continue;
    std::rotate(groups.begin() + static_cast<std::ptrdiff_t>(last),
                groups.begin() + static_cast<std::ptrdiff_t>(last) + 1, groups.end());
    ColumnBlocks b{block, {}};
    for (const auto& group : groups) b.order.insert(b.order.end(), group.begin(), group.end());
    return b;
  }
  return std::nullopt;
}

std::optional<std::pair<int64_t, int64_t>> read_integers(const ConstantPtr& constant,
                                                         const LowBitParts& parts, const ColumnBlocks& b,
                                                         SpreadParts* m) {
  const ConstantPtr q = as_integers(parts.q, constant->dims());
  if (!q) return std::nullopt;
  m->q.reserve(static_cast<size_t>(constant->size()));
  int32_t low = INT32_MAX, high = INT32_MIN;
  std::vector<int32_t> items;
  const auto same = [&](int64_t row, std::span<const LoadedBytes> pieces) {
    items.resize(pieces[0].bytes.size() / sizeof(int32_t));
    std::memcpy(items.data(), pieces[0].bytes.data(), pieces[0].bytes.size());
    for (const int32_t i : items) low = std::min(low, i), high = std::max(high, i);
    m->q.insert(m->q.end(), items.begin(), items.end());
    return int64_t{high} - low < 256 && same_values(*m, b, parts, row, items, pieces[1].bytes);
  };
  if (!in_pieces({q, constant}, same)) return std::nullopt;
  return std::pair<int64_t, int64_t>{low, high};
}

bool read_indices(const ConstantPtr& constant, const LowBitParts& parts, int64_t block, SpreadParts* m) {
  const ConstantPtr q = as_integers(parts.q, constant->dims());
  if (!q) return false;
  const Rounding may_change(parts.rounded_to);
  m->q.reserve(static_cast<size_t>(constant->size()));
  return in_pieces({q, constant}, [&](int64_t row, std::span<const LoadedBytes> pieces) {
    const auto rows = static_cast<int64_t>(pieces[0].bytes.size() / sizeof(int32_t)) / m->columns;
    size_t i = 0;
    for (int64_t n = row; n < row + rows; ++n)
      for (int64_t first = 0; first < m->columns; first += block) {
        const float scale = m->s(n, first);
        float products[kWeightTableSize];
        for (size_t t = 0; t < parts.table.size(); ++t) products[t] = parts.table[t] * scale;
        for (int64_t k = first; k < std::min(first + block, m->columns); ++k, ++i) {
          int32_t item = 0;
          float want = 0;
          std::memcpy(&item, pieces[0].bytes.data() + i * sizeof item, sizeof item);
          std::memcpy(&want, pieces[1].bytes.data() + i * sizeof want, sizeof want);
          const auto at = static_cast<uint32_t>(item);
          if (at >= parts.table.size() || !may_change.allows(products[at], want)) return false;
          m->q.push_back(static_cast<uint8_t>(at));
        }
      }
    return true;
  });
}

bool same_products(const ConstantPtr& constant, const LowBitParts& parts, const SpreadParts& m) {
  const ConstantPtr q = computed_later(DType::kFloat32, constant->dims(),
                                       CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {parts.q});
  const Rounding may_change(parts.rounded_to);
  const auto same = [&](int64_t row, std::span<const LoadedBytes> pieces) {
    const size_t count = pieces[0].bytes.size() / sizeof(float);
    for (size_t i = 0; i < count; ++i) {
      float number = 0, want = 0;
      std::memcpy(&number, pieces[0].bytes.data() + i * sizeof number, sizeof number);
      std::memcpy(&want, pieces[1].bytes.data() + i * sizeof want, sizeof want);
      const auto at = static_cast<int64_t>(i);
      const float got = number * m.s(row + at / m.columns, at % m.columns);
      if (!may_change.allows(got, want)) return false;
    }
    return true;
  };
  return in_pieces({q, constant}, same);
}

}  // namespace sinter::convert
