#include "converter/import/lower/quantized_table.h"

#include <algorithm>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/quant_operands.h"
#include "converter/ir/recipe.h"
#include "runtime/core/op_enums.h"
#include "runtime/core/weight_format.h"

namespace sinter::convert {
namespace {

// Operands as Dequantize takes them.
struct Table {
  ConstantPtr data, scale, zero;  // zero: null for none, one element for the same everywhere
  int64_t axis = 0, block_size = 0;
  DType to = DType::kFloat32;

  bool blocked() const { return block_size > 0 && !scale->dims().empty(); }
};

bool with_sign(DType t) { return t == DType::kInt8 || t == DType::kInt4 || t == DType::kInt2; }
// The type of packed integers at run time.
DType in_bytes(DType t) { return !is_sub_byte(t) ? t : with_sign(t) ? DType::kInt8 : DType::kUint8; }

// The numbers in bytes of packed ones, [..., bytes] -> [..., bytes * 8 / bits].
ValueId unpacked(NodeLowering& n, ValueId bytes, DType packed) {
  const DType t = in_bytes(packed);
  if (bytes < 0) return kUnknown;
  const int64_t bits = bit_width(packed), per = 8 / bits;
  const auto bitwise = [&](BitwiseFn fn, ValueId v, int64_t by) {
    return n.bitwise(fn, {v, n.add_constant(Constant::scalar_int(t, by))});
  };
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < per; ++i) {
    ValueId part = bytes;
    if (with_sign(packed)) {  // the sign goes to the byte's first bit, and comes back with the others
      if (i + 1 < per) part = bitwise(BitwiseFn::kShiftLeft, part, bits * (per - 1 - i));
      part = bitwise(BitwiseFn::kShiftRight, part, 8 - bits);
    } else {
      if (i > 0) part = bitwise(BitwiseFn::kShiftRight, part, bits * i);
      if (i + 1 < per) part = bitwise(BitwiseFn::kAnd, part, (1 << bits) - 1);
    }
    parts.push_back(n.unsqueeze(part, n.rank(bytes)));
  }
  Dims dims = n.dims(bytes);
  const ValueId all = n.emit(ConcatAttrs{static_cast<int64_t>(dims.size())}, parts);
  dims.back() *= per;
  return n.reshape(all, dims);
}

// The elements that `indices` (of rank 1) select along `axis`; integers of less than a byte come as whole
// ones. kAbsent where they are not in whole bytes. `widen`: then as bytes.
ValueId rows(NodeLowering& n, const ConstantPtr& c, int64_t axis, ValueId indices, bool widen) {
  const DType t = c->dtype();
  if (!is_sub_byte(t)) return n.emit(GatherAttrs{axis}, {n.add_constant(c), indices});
  Dims dims = c->dims();
  const int64_t per = 8 / bit_width(t);
  if (t == DType::kFloat4E2M1) return kAbsent;
  if (axis + 1 == static_cast<int64_t>(dims.size()) || dims.back() % per != 0) {
    if (!widen) return kAbsent;
    const ValueId whole = n.emit(CastAttrs{static_cast<int64_t>(in_bytes(t)), 1}, {n.add_constant(c)});
    return n.emit(GatherAttrs{axis}, {whole, indices});
  }
  dims.back() /= per;
  const LoadedBytes loaded = c->load();
  const ValueId bytes = n.add_constant(Constant::mapped(in_bytes(t), dims, loaded.owner, loaded.bytes));
  return unpacked(n, n.emit(GatherAttrs{axis}, {bytes, indices}), t);
}

ValueId gather(NodeLowering& n, const Table& t, int64_t axis, ValueId indices) {
  const Graph& graph = n.parent().graph();
  const Dims& dims = t.data->dims();
  const bool single = !t.blocked() && t.scale->size() == 1;
  if (indices < 0 || n.constant(indices) || !graph.value(indices).bounded_dims.empty() ||
      n.size(indices) > dims[static_cast<size_t>(axis)] || (t.blocked() && t.axis == axis))
    return kAbsent;
  const Dims chosen = n.dims(indices);
  const ValueId flat = n.reshape(indices, {n.size(indices)});
  const ValueId q = rows(n, t.data, axis, flat, false);
  if (q == kAbsent) return kAbsent;
  // Parameters that differ along `axis` are looked up too.
  const bool differ = t.blocked() || (!single && t.axis == axis);
  const int64_t at = t.blocked() ? axis : 0;
  const ValueId s =
      differ ? n.emit(GatherAttrs{at}, {n.add_constant(t.scale), flat}) : n.add_constant(t.scale);
  std::vector<ValueId> operands{q, s};
  if (t.zero) {
    const bool same = t.zero->size() == 1 && t.scale->size() != 1;
    ValueId z = kAbsent;
    if (differ && !same) {
      z = rows(n, t.zero, at, flat, true);
    } else {
      z = n.emit(CastAttrs{static_cast<int64_t>(in_bytes(t.zero->dtype())), 1}, {n.add_constant(t.zero)});
      if (same) z = n.broadcast(n.reshape(z, {}), n.dims(s));
    }
    operands.push_back(z);
  }
  const ValueId y =
      n.emit(DequantizeAttrs{t.axis, t.block_size, static_cast<int64_t>(t.to)}, std::move(operands));
  Dims result(dims.begin(), dims.begin() + axis);
  result.insert(result.end(), chosen.begin(), chosen.end());
  result.insert(result.end(), dims.begin() + axis + 1, dims.end());
  return n.reshape(y, result);
}

}  // namespace

ValueId gather_dequantized(NodeLowering& n, ValueId table, int64_t axis, ValueId indices) {
  ConstantPtr c = n.constant(table);
  if (!c || !c->recipe()) return kAbsent;
  Table t;
  t.to = c->dtype();
  // The result of Dequantize may have been cast, by the model or because it is computed in float32.
  std::vector<DType> casts;
  while (std::holds_alternative<CastAttrs>(c->recipe()->attrs)) {
    if (c->recipe()->written) casts.push_back(c->dtype()), t.to = c->recipe()->inputs[0]->dtype();
    c = c->recipe()->inputs[0];
    if (!c->recipe()) return kAbsent;
  }
  const Recipe& recipe = *c->recipe();
  const auto* attrs = std::get_if<DequantizeAttrs>(&recipe.attrs);
  if (attrs == nullptr || recipe.inputs[0]->recipe()) return kAbsent;
  t.data = recipe.inputs[0], t.scale = recipe.inputs[1];
  if (recipe.inputs.size() > 2) t.zero = recipe.inputs[2];
  t.axis = attrs->axis, t.block_size = attrs->block_size;
  ValueId y = gather(n, t, axis, indices);
  if (y < 0) return y;
  n.record(n.parent().graph().value(table).name, n.dtype(table), t.data->dtype(), TypeRule::kStoreNarrow,
           "the chosen rows are dequantized, not the table", TypeEffect::kRetyped);
  for (; !casts.empty(); casts.pop_back()) y = n.emit(CastAttrs{static_cast<int64_t>(casts.back()), 1}, {y});
  return y;
}

namespace {

bool lower_gather_block_quantized(NodeLowering& n) {
  int64_t gather_axis = n.attr_int("gather_axis", 0), axis = n.attr_int("quantize_axis", 1),
          block = n.attr_int("block_size", 128);
  const int64_t bits = n.attr_int("bits", 4);
  Table t;
  t.data = n.constant(n.input(0)), t.scale = n.constant(n.input(2));
  if (n.has_input(3)) t.zero = n.constant(n.input(3));
  if (!t.data || !t.scale || (n.has_input(3) && !t.zero))
    return n.refuse("its data, scales and zero points must be constant");
  const int64_t rank = static_cast<int64_t>(t.data->dims().size());
  if (!n.normalize_axis(&gather_axis, rank) || !n.normalize_axis(&axis, rank)) return false;
  const DType given = t.data->dtype();
  const bool packed = given == DType::kUint8 && (bits == 2 || bits == 4);
  if (!quantized_type(given) || bit_width(given) > 8 || !is_float(t.scale->dtype()) ||
      (!is_float(given) && !packed && bits != bit_width(given)) || block < 0)
    return n.refuse("{} data of {} bits, {} scales and block_size {} do not fit", dtype_name(given), bits,
                    dtype_name(t.scale->dtype()), block);
  const auto stored = [&](CodeKind kind) { return weight_format(static_cast<int>(bits), kind).type; };
  // Numbers that are packed in bytes become packed elements.
  Dims dims = t.data->dims();
  if (packed) {
    dims.back() *= 8 / bits;
    const LoadedBytes loaded = t.data->load();
    t.data = Constant::mapped(stored(CodeKind::kUnsigned), dims, loaded.owner, loaded.bytes);
  }
  const DType type = t.data->dtype();
  const int64_t length = dims[static_cast<size_t>(axis)];
  if (block == 0) block = std::max<int64_t>(length, 1);
  Dims blocks = dims;
  blocks[static_cast<size_t>(axis)] = length / block + (length % block != 0 ? 1 : 0);
  t.axis = axis, t.block_size = block, t.to = t.scale->dtype();
  if (t.scale->dims() != blocks) {
    bool spreads = is_float(given) && t.scale->dims().size() == blocks.size();
    for (size_t i = 0; spreads && i < blocks.size(); ++i)
      spreads =
          t.scale->dims()[i] == blocks[i] || (t.scale->dims()[i] == 1 && static_cast<int64_t>(i) != axis);
    if (!spreads)
      return n.refuse("scales {} do not fit data {} in blocks of {} along axis {}",
                      to_string(t.scale->dims()), to_string(dims), block, axis);
    t.scale = n.constant(n.broadcast(n.input(2), blocks));
    if (!t.scale) return n.refuse("its scales cannot be repeated");
  }
  if (t.zero) {
    Dims want = blocks;
    if (packed) want.back() = (want.back() * bits + 7) / 8;
    if (t.zero->dims() != want || t.zero->dtype() != given || is_float(given))
      return n.refuse("zero points {} do not fit data {} in blocks of {} along axis {}",
                      to_string(t.zero->dtype(), t.zero->dims()), to_string(given, dims), block, axis);
    if (packed) {
      const LoadedBytes loaded = t.zero->load();
      t.zero = Constant::mapped(
          type,
          [&] {
            Dims whole = want;
            whole.back() *= 8 / bits;
            return whole;
          }(),
          loaded.owner, loaded.bytes);
      if (t.zero->dims() != blocks)  // rows end within a byte
        t.zero = n.constant(n.cast(n.slice(n.cast(n.add_constant(t.zero), DType::kUint8),
                                           static_cast<int64_t>(blocks.size()) - 1, 0, blocks.back()),
                                   type));
      if (!t.zero) return n.refuse("its zero points cannot be unpacked");
    }
  } else if (given == DType::kUint8) {
    // The middle of the range, taken from the data once: signed numbers without a zero point.
    const auto flipped = static_cast<std::byte>(bits == 2 ? 0xaa : bits == 4 ? 0x88 : 0x80);
    t.data = Constant::lazy(stored(CodeKind::kSigned), dims, [data = t.data, flipped] {
      const LoadedBytes loaded = data->load();
      Bytes bytes(loaded.bytes.begin(), loaded.bytes.end());
      for (std::byte& b : bytes) b ^= flipped;
      return bytes;
    });
  }
  const DType index = n.dtype(n.input(1));
  const ValueId indices = index == DType::kInt32 ? n.input(1) : n.cast(n.input(1), DType::kInt64);
  if (const ValueId y = gather(n, t, gather_axis, indices); y != kAbsent) return n.output(0, y);
  // Elsewhere the whole table is widened, once.
  const ValueId zero = t.zero ? n.add_constant(t.zero) : kAbsent;
  const ValueId scale = n.add_constant(t.scale);
  const ValueId table = dequantize(n, n.add_constant(t.data), scale, zero, axis, block, t.to);
  return n.output(0, n.emit(GatherAttrs{gather_axis}, {table, indices}));
}

}  // namespace

std::span<const OnnxOperator> quantized_table_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"GatherBlockQuantized", 1, lower_gather_block_quantized, "* i", kThreeInputs, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
