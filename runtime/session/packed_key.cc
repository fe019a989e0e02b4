// Keys of packed constants, and the numbers in them.
#include <algorithm>
#include <cstring>

#include "runtime/session/entry.h"
#include "runtime/session/packed.h"

namespace sinter::detail {
namespace {

constexpr int64_t kAbsent = INT64_MAX;  // the number of an optional operand that a step lacks

uint64_t mixed(uint64_t h, int64_t v) {
  h = (h ^ static_cast<uint64_t>(v)) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

// The number of the first prepared value.
int32_t first_prepared(const fb::Program& program) { return items(program.prepare()->Get(0)->outputs())[0]; }

bool same_attributes(const fb::Step& a, const fb::Step& b) {
  const auto same = [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  };
  return a.op() == b.op() && a.op_version() == b.op_version() && same(items(a.ints()), items(b.ints())) &&
         same(items(a.floats()), items(b.floats())) && same(items(a.bytes()), items(b.bytes()));
}

// Returns whether prepare step `s` of both programs computes the same from the same constants. The chain ends
// within kMaxPrepareChain steps (verified).
bool same_prepared(const fb::Program& a, const fb::Program& b, uint32_t s) {
  const int64_t shift = int64_t{first_prepared(b)} - first_prepared(a);
  const uint32_t begin = s < kMaxPrepareChain ? 0 : s + 1 - kMaxPrepareChain;
  uint64_t needed = 1;  // bit i: step s - i
  for (uint32_t back = 0; s - back >= begin && needed >> back != 0; ++back) {
    if ((needed >> back & 1) != 0) {
      const fb::Step &x = *a.prepare()->Get(s - back), &y = *b.prepare()->Get(s - back);
      const auto of_x = items(x.inputs()), of_y = items(y.inputs());
      if (!same_attributes(x, y) || of_x.size() != of_y.size()) return false;
      for (size_t i = 0; i < of_x.size(); ++i) {
        if (of_x[i] < 0 || of_y[i] < 0) {
          if (of_x[i] != of_y[i]) return false;
          continue;
        }
        const fb::Value &v = *a.values()->Get(static_cast<uint32_t>(of_x[i])),
                        &w = *b.values()->Get(static_cast<uint32_t>(of_y[i]));
        if (v.kind() != w.kind() || v.constant() != w.constant()) return false;
        if (v.kind() != fb::ValueKind::Prepared) continue;
        if (of_x[i] + shift != of_y[i]) return false;
        needed |= uint64_t{1} << (s - static_cast<uint32_t>(of_x[i] - first_prepared(a)));
      }
    }
    if (s == back) break;
  }
  return true;
}

}  // namespace

bool PackedKey::operator==(const PackedKey& other) const {
  return packing.bytes == other.packing.bytes && packing.inputs == other.packing.inputs &&
         std::equal(std::begin(packing.parameters), std::end(packing.parameters),
                    std::begin(other.packing.parameters)) &&
         std::equal(std::begin(constants), std::end(constants), std::begin(other.constants)) &&
         std::strcmp(backend, other.backend) == 0;
}

uint64_t PackedKey::hash() const {
  uint64_t h = packing.bytes;
  for (const int64_t v : packing.parameters) h = mixed(h, v);
  for (const int64_t v : constants) h = mixed(h, v);
  return h;
}

const PackedEntry* PackedState::find(const PackedKey& key) const {
  const uint64_t hash = key.hash();
  const auto* at =
      std::lower_bound(entries.data(), entries.data() + entries.size(), hash,
                       [](const PackedEntry& entry, uint64_t value) { return entry.hash < value; });
  for (; at != entries.data() + entries.size() && at->hash == hash; ++at)
    if (at->key == key) return at;
  return nullptr;
}

bool Entry::key_of(const Frame& of, const fb::Step& step, size_t backend, const Packing& packing,
                   PackedKey* key) const {
  const auto ins = items(step.inputs());
  size_t count = 0;
  key->backend = backends[backend]->name();
  key->packing = packing;
  for (size_t i = 0; i < 32; ++i) {
    if (!key->packs(i)) continue;
    if (count == kPackedInputs) return false;
    key->constants[count++] = i < ins.size() && ins[i] >= 0 ? number_of(of, ins[i]) : kAbsent;
  }
  return count > 0 && key->constants[0] != kAbsent;
}

int64_t shared_number_of(const Frame& frame, int32_t v) {
  const int64_t own = frame.constant_of(v);
  if (own >= 0) return own;
  const auto index = static_cast<uint32_t>((-1 - own) >> 32);
  const int64_t value = (-1 - own) & UINT32_MAX;
  const auto& programs = *frame.entry->model.state()->root->programs();
  const fb::Program& program = *programs.Get(index);
  const auto entries = items(frame.entry->profile->entries());
  if (program.values()->Get(static_cast<uint32_t>(value))->kind() != fb::ValueKind::Prepared ||
      std::find(entries.begin(), entries.end(), index) == entries.end())
    return own;
  const auto s = static_cast<uint32_t>(value - first_prepared(program));
  for (const uint32_t e : entries) {
    if (e == index) break;
    const fb::Program& other = *programs.Get(e);
    if (s < length(other.prepare()) && same_prepared(program, other, s))
      return -1 - (static_cast<int64_t>(e) << 32) - (first_prepared(other) + int64_t{s});
  }
  return own;
}

}  // namespace sinter::detail
