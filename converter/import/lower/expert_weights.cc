#include "converter/import/lower/expert_weights.h"

#include <algorithm>

#include "converter/import/lower/common.h"
#include "runtime/core/weight_format.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostBits = 8;

constexpr const char* kNames[] = {"fc1", "fc2", "fc3"};

// [experts, outputs]
bool fits_bias(NodeLowering& n, const char* name, const ExpertProjection& p) {
  if (p.bias == kAbsent || n.dims(p.bias) == Dims{p.experts, p.outputs}) return true;
  return n.refuse_shapes("{}_experts_bias {} is not [{},{}]", name, to_string(n.dims(p.bias)), p.experts,
                         p.outputs);
}

// Gives weights that are made of an operand its name.
void name_after(NodeLowering& n, ValueId weights, ValueId operand) {
  if (weights < 0) return;
  Graph& graph = n.parent().graph();
  if (graph.value(weights).name.empty()) graph.value(weights).name = graph.value(operand).name;
}

// ---- integers

// Returns numbers of `bits` bits, low bits first, of rows that begin at whole bytes, without the gaps between
// the rows.
Bytes without_gaps(std::span<const std::byte> bytes, int64_t rows, int64_t count, int64_t bits) {
  const int64_t row_bytes = (count * bits + 7) / 8;
  Bytes result(static_cast<size_t>((rows * count * bits + 7) / 8));
  for (int64_t i = 0; i < rows * count; ++i) {
    const int64_t from = i / count * row_bytes * 8 + i % count * bits, to = i * bits;
    const auto number =
        static_cast<unsigned>(bytes[static_cast<size_t>(from / 8)]) >> (from % 8) & ((1U << bits) - 1);
    result[static_cast<size_t>(to / 8)] |= static_cast<std::byte>(number << (to % 8));
  }
  return result;
}

DType packed_type(int64_t bits) { return weight_format(static_cast<int>(bits), CodeKind::kUnsigned).type; }

// The zero points [experts, outputs, blocks]: packed along the blocks, or along the outputs where rows have
// one scale; without them the middle of the range.
bool read_zeros(NodeLowering& n, const char* name, size_t at, int64_t bits, int64_t blocks,
                ExpertProjection* p) {
  const Dims dims{p->experts, p->outputs, blocks};
  const DType type = packed_type(bits);
  const bool by_block = n.attr_int("block_size", 0) > 0;
  const int64_t rows = by_block ? p->experts * p->outputs : p->experts,
                count = by_block ? blocks : p->outputs;
  Bytes bytes;
  if (n.has_input(at)) {
    const ConstantPtr given = n.constant(n.input(at));
    if (!given || given->dtype() != DType::kUint8)
      return n.refuse("{}_zero_points must be constant and packed in uint8", name);
    if (given->size() != rows * ((count * bits + 7) / 8))
      return n.refuse_shapes("{}_zero_points {} do not fit {} experts of {} rows and {} blocks", name,
                             to_string(given->dims()), p->experts, p->outputs, blocks);
    bytes = without_gaps(given->load().bytes, rows, count, bits);
  } else {
    unsigned middle = 0;
    for (int64_t i = 0; i < kMostBits; i += bits) middle |= 1U << (i + bits - 1);
    bytes.assign(static_cast<size_t>((rows * count * bits + 7) / 8), static_cast<std::byte>(middle));
  }
  p->zeros = n.add_constant(Constant::owned(type, dims, std::move(bytes)));
  return true;
}

bool read_integers(NodeLowering& n, int which, int64_t inputs, ExpertProjection* p) {
  const char* name = kNames[which - 1];
  const auto at = static_cast<size_t>(3 * which - 1), zero_at = static_cast<size_t>(10 + which);
  const int64_t all = n.attr_int("expert_weight_bits", 4), block = n.attr_int("block_size", 0),
                bits = n.attr_int(std::string(name) + "_expert_weight_bits", all);
  if (!n.has_input(at)) {
    if (n.has_input(at + 2) || n.has_input(zero_at))
      return n.refuse("{}_experts_bias or {}_zero_points without weights", name, name);
    (void)n.has_input(at + 1);
    return true;
  }
  if (bits != 2 && bits != 4 && bits != 8)
    return n.refuse("{} has weights of {} bits; 2, 4 and 8 are supported", name, bits);
  const ConstantPtr w = n.constant(n.input(at));
  if (!w || w->dtype() != DType::kUint8)
    return n.refuse("{}_experts_weights must be constant and packed in uint8", name);
  const Dims d = w->dims();
  if (d.size() == 3 && d[1] == inputs && d[2] * 8 / bits != inputs &&
      n.size(n.input(at + 1)) == d[0] * (d[2] * 8 / bits) * (block > 0 ? inputs / block : 1))
    return n.refuse_advising("export the model with raw weights (qmoe_weights_prepacked=0 of its builder)",
                             "{}_experts_weights {} have the layout of a device, with columns for rows", name,
                             to_string(d));
  if (d.size() != 3 || d[2] * 8 / bits != inputs || inputs * bits % 8 != 0)
    return n.refuse_shapes("{}_experts_weights {} do not take rows of {} in {} bits", name, to_string(d),
                           inputs, bits);
  if (which == 2 && d[1] == inputs && n.dims(n.input(2)) == d && !n.has_attr("weights_prepacked"))
    n.warn(
        "the experts are square, and weights_prepacked is not given: they are read as rows, although a model "
        "for CUDA may have them in the layout of a device");
  if (block > 0 && inputs % block != 0)
    return n.refuse_shapes("{} rows of {} are not whole blocks of {}", name, inputs, block);
  const int64_t blocks = block > 0 ? inputs / block : 1;
  if (!n.has_input(at + 1)) return n.refuse("{}_scales are missing", name);
  if (n.size(n.input(at + 1)) != d[0] * d[1] * blocks)
    return n.refuse_shapes("{}_scales {} do not fit {} experts of {} rows and {} blocks", name,
                           to_string(n.dims(n.input(at + 1))), d[0], d[1], blocks);
  const DType x = n.dtype(n.input(0));
  const LoadedBytes loaded = w->load();
  p->weights =
      n.add_constant(Constant::mapped(packed_type(bits), {d[0], d[1], inputs}, loaded.owner, loaded.bytes));
  name_after(n, p->weights, n.input(at));
  p->scales = n.reshape(n.input(at + 1), {d[0], d[1], blocks});
  if (bit_width(n.dtype(p->scales)) >= bit_width(x)) p->scales = n.cast(p->scales, x);
  p->bias = n.input(at + 2);
  p->block = block > 0 ? block : std::max<int64_t>(inputs, 1);
  p->experts = d[0], p->outputs = d[1], p->inputs = inputs;
  return fits_bias(n, name, *p) && read_zeros(n, name, zero_at, bits, blocks, p);
}

// ---- floats of 4 and 8 bits

struct FloatForm {
  std::string_view type;  // quant_type
  DType weights, scales;  // kNone: those of the model
  int64_t block;          // 0: that of the node
};
constexpr FloatForm kFloatForms[] = {
    {"fp4", DType::kFloat4E2M1, DType::kFloat8E8M0, 32},
    {"wfp4afp8", DType::kFloat4E2M1, DType::kFloat8E8M0, 32},
    {"nvfp4", DType::kFloat4E2M1, DType::kFloat8E4M3FN, 16},
    {"fp8", DType::kFloat8E4M3FN, DType::kNone, 0},
};

// Codes of 4 bits of each expert, [inputs, outputs], as [outputs, inputs].
Bytes turned_codes(std::span<const std::byte> from, int64_t experts, int64_t inputs, int64_t outputs) {
  constexpr int64_t kTile = 64;  // bytes of a line of both that a cache holds meanwhile
  Bytes result(from.size());
  for (int64_t e = 0; e < experts; ++e) {
    const std::byte* matrix = from.data() + e * inputs * outputs / 2;
    std::byte* to = result.data() + e * inputs * outputs / 2;
    for (int64_t n0 = 0; n0 < outputs / 2; n0 += kTile)
      for (int64_t k = 0; k < inputs; k += 2)
        for (int64_t n = n0; n < std::min(n0 + kTile, outputs / 2); ++n) {
          const std::byte first = matrix[k * outputs / 2 + n], second = matrix[(k + 1) * outputs / 2 + n];
          to[2 * n * inputs / 2 + k / 2] = (first & std::byte{15}) | second << 4;
          to[(2 * n + 1) * inputs / 2 + k / 2] = first >> 4 | (second & std::byte{0xf0});
        }
  }
  return result;
}

// Pairs of outputs in a byte, the even one in the low half, [experts, inputs, outputs / 2], as the kernels of
// onnxruntime read them whatever the dims.
bool read_float4(NodeLowering& n, const char* name, const FloatForm& form, size_t at, ExpertProjection* p) {
  const ConstantPtr w = n.constant(n.input(at));
  if (!w || w->dtype() != DType::kUint8)
    return n.refuse("{}_experts_weights must be constant and packed in uint8", name);
  if (!n.has_input(at + 1)) return n.refuse("{}_scales are missing", name);
  const Dims scales = n.dims(n.input(at + 1));
  if (n.dtype(n.input(at + 1)) != form.scales)
    return n.refuse("{}_scales of quant_type '{}' have the type {}, not {}", name, form.type,
                    dtype_name(form.scales), dtype_name(n.dtype(n.input(at + 1))));
  if (scales.size() != 3 || scales[2] * form.block != p->inputs)
    return n.refuse_shapes("{}_scales {} are not one for each {} of {} inputs", name, to_string(scales),
                           form.block, p->inputs);
  n.ignore_attr("block_size");  // is always that of the form
  p->experts = scales[0], p->outputs = scales[1], p->block = form.block;
  const Dims turned{p->experts, p->inputs, p->outputs / 2}, rows{p->experts, p->outputs, p->inputs / 2};
  if (p->outputs % 2 != 0 || (w->dims() != turned && w->dims() != rows))
    return n.refuse_shapes("{}_experts_weights {} do not fit {} experts of {} -> {}", name,
                           to_string(w->dims()), p->experts, p->inputs, p->outputs);
  if (w->dims() != turned)
    n.warn("{}_experts_weights {} are read as bytes of {}, which onnxruntime takes them for", name,
           to_string(w->dims()), to_string(turned));
  p->weights =
      n.add_constant(Constant::lazy(form.weights, {p->experts, p->outputs, p->inputs},
                                    [w, experts = p->experts, inputs = p->inputs, outputs = p->outputs] {
                                      return turned_codes(w->load().bytes, experts, inputs, outputs);
                                    }));
  name_after(n, p->weights, n.input(at));
  p->scales = n.cast(n.input(at + 1), DType::kFloat32);  // the file has them as they are
  return true;
}

// [experts, outputs, inputs] with a scale for each square of block_size, if that is given.
bool read_float8(NodeLowering& n, const char* name, const FloatForm& form, size_t at, ExpertProjection* p) {
  const Dims d = n.dims(n.input(at));
  if (!n.constant(n.input(at)) || n.dtype(n.input(at)) != form.weights)
    return n.refuse("{}_experts_weights must be constant and of type {}", name, dtype_name(form.weights));
  if (d.size() != 3 || d[2] != p->inputs)
    return n.refuse_shapes("{}_experts_weights {} do not take rows of {}", name, to_string(d), p->inputs);
  p->weights = n.input(at), p->experts = d[0], p->outputs = d[1];
  const int64_t block = n.attr_int("block_size", 0);
  if (block <= 0) {
    if (n.has_input(at + 1)) return n.refuse("{}_scales without block_size", name);
    p->block = std::max<int64_t>(p->inputs, 1);
    return true;
  }
  if (!n.has_input(at + 1)) return n.refuse("{}_scales are missing", name);
  const ValueId scales = n.input(at + 1);
  const int64_t rows = (d[1] + block - 1) / block, blocks = (d[2] + block - 1) / block;
  if (!is_float(n.dtype(scales)) || bit_width(n.dtype(scales)) < 16 ||
      n.dims(scales) != Dims{d[0], rows, blocks})
    return n.refuse_shapes("{}_scales {} are not floats for {} experts of {} by {} blocks", name,
                           to_string(n.dims(scales)), d[0], rows, blocks);
  // A row has those of its block.
  std::vector<int64_t> of_row;
  for (int64_t i = 0; i < d[1]; ++i) of_row.push_back(i / block);
  p->scales = n.emit(GatherAttrs{1}, {scales, n.int64s(of_row)});
  if (bit_width(n.dtype(scales)) > bit_width(n.dtype(n.input(0))))
    p->scales = n.cast(p->scales, DType::kFloat32);  // of float64, beside narrower x
  p->block = block;
  return true;
}

// A factor for each expert, which is left out where all of them are 1.
bool read_factor(NodeLowering& n, const char* name, size_t at, ExpertProjection* p) {
  if (!n.has_input(at)) return n.refuse("{}_global_scale is missing", name);
  const ValueId factor = n.input(at);
  if (!is_float(n.dtype(factor)) || n.size(factor) != p->experts)
    return n.refuse_shapes("{}_global_scale {} is not a float for each of {} experts", name,
                           to_string(n.dims(factor)), p->experts);
  if (const ConstantPtr c = n.constant(factor)) {
    const std::vector<double> all = c->as_doubles();
    if (std::all_of(all.begin(), all.end(), [](double f) { return f == 1; })) return true;
  }
  p->factor = n.reshape(factor, {p->experts, 1});
  return true;
}

bool read_floats(NodeLowering& n, const FloatForm& form, int which, int64_t inputs, ExpertProjection* p) {
  const auto at = static_cast<size_t>(3 * which - 1);
  const char* name = kNames[which - 1];
  (void)n.attr_int("expert_weight_bits", 4);
  (void)n.attr_int(std::string(name) + "_expert_weight_bits", 4);
  if (n.has_input(static_cast<size_t>(10 + which)))
    return n.refuse("{}_zero_points with quant_type '{}'", name, form.type);
  if (!n.has_input(at)) {
    if (n.has_input(at + 1) || n.has_input(at + 2))
      return n.refuse("{}_scales or {}_experts_bias without weights", name, name);
    return true;
  }
  p->inputs = inputs, p->in_float32 = true;
  const bool read = form.weights == DType::kFloat4E2M1 ? read_float4(n, name, form, at, p)
                                                       : read_float8(n, name, form, at, p);
  if (!read) return false;
  const bool squares = form.block == 0 && n.attr_int("block_size", 0) > 0;
  const auto global = static_cast<size_t>(14 + which);
  if (squares && which < 3 && n.has_input(global))
    return n.refuse("{}_global_scale beside scales of squares", name);
  if (!squares) {
    if (which == 3) return n.refuse("fc3 with quant_type '{}', which has no fc3_global_scale", form.type);
    if (!read_factor(n, name, global, p)) return false;
  }
  p->bias = n.input(at + 2);
  return fits_bias(n, name, *p);
}

}  // namespace

bool read_moe_projection(NodeLowering& n, int which, int64_t inputs, ExpertProjection* p) {
  const char* name = kNames[which - 1];
  const auto at = static_cast<size_t>(2 * which);
  if (!n.has_input(at)) {
    if (n.has_input(at + 1)) return n.refuse("{}_experts_bias without weights", name);
    return true;
  }
  const Dims d = n.dims(n.input(at));
  if (d.size() != 3 || d[2] != inputs)
    return n.refuse_shapes("{}_experts_weights {} do not take rows of {}", name, to_string(d), inputs);
  p->weights = n.input(at), p->bias = n.input(at + 1);
  p->experts = d[0], p->outputs = d[1], p->inputs = d[2];
  return fits_bias(n, name, *p);
}

bool is_expert_quant_type(std::string_view type) {
  return type == "int" || std::any_of(std::begin(kFloatForms), std::end(kFloatForms),
                                      [&](const FloatForm& f) { return f.type == type; });
}

bool read_qmoe_projection(NodeLowering& n, int which, int64_t inputs, ExpertProjection* p) {
  const std::string type = n.attr_string("quant_type", "int");
  for (const FloatForm& form : kFloatForms)
    if (form.type == type) return read_floats(n, form, which, inputs, p);
  return read_integers(n, which, inputs, p);
}

ValueId project(NodeLowering& n, ValueId rows, ValueId expert, const ExpertProjection& p) {
  const DType t = n.dtype(rows);
  const bool widens = p.in_float32 && bit_width(t) < 32;
  const auto wide = [&](ValueId v) { return widens && v != kAbsent ? n.cast(v, DType::kFloat32) : v; };
  ValueId x = wide(rows);
  if (p.factor != kAbsent) x = n.mul(x, n.cast(n.emit(GatherAttrs{0}, {p.factor, expert}), n.dtype(x)));
  std::vector<ValueId> operands{x, expert, p.weights, p.scales, p.zeros, wide(p.bias)};
  while (operands.back() == kAbsent) operands.pop_back();
  const ValueId y = n.emit(ExpertFullyConnectedAttrs{std::max<int64_t>(p.block, 1), 0}, operands);
  return widens ? n.cast(y, t) : y;
}

}  // namespace sinter::convert
