// Rows of products with weights of few bits.
#include <fmt/format.h>

#include "converter/export/rows.h"
#include "converter/import/read/onnx.pb.h"
#include "runtime/core/bit_rows.h"

namespace sinter::convert {
namespace {

// Returns the width of the weights in bits; 0 for floats.
int width_of(const NodeExport& n, const LowBitFullyConnectedAttrs& a) {
  if (a.bits != 0) return static_cast<int>(a.bits);
  return is_float(n.dtype(1)) ? 0 : bit_width(n.dtype(1));
}

// Returns the weights as unsigned integers in bytes, [N, K]. Signed ones have half the range added.
Bytes unsigned_weights(const NodeExport& n, const LowBitFullyConnectedAttrs& a, int64_t columns,
                       int64_t rows) {
  const Constant& c = *n.constant(1);
  const int bits = width_of(n, a);
  Bytes result(static_cast<size_t>(columns * rows));
  const LoadedBytes loaded = c.load();
  const auto* bytes = reinterpret_cast<const uint8_t*>(loaded.bytes.data());
  const bool is_signed = c.dtype() == DType::kInt2 || c.dtype() == DType::kInt4 || c.dtype() == DType::kInt8;
  const int half = is_signed ? 1 << (bits - 1) : 0;
  for (int64_t r = 0; r < columns; ++r)
    for (int64_t k = 0; k < rows; ++k) {
      const int64_t at = r * rows + k;
      const unsigned item =
          has_planes(bits)
              ? bit_row_item(bytes + r * bit_row_bytes(bits, rows), bits, rows, k)
              : static_cast<unsigned>(bytes[at * bits / 8]) >> (at * bits % 8) & ((1u << bits) - 1);
      result[static_cast<size_t>(at)] = static_cast<std::byte>((item ^ static_cast<unsigned>(half)) & 0xff);
    }
  return result;
}

// Returns integers of some bits one after another, low bits first, where each row begins at a byte.
Bytes packed_rows(const Bytes& items, int64_t rows, int64_t padded, int bits, std::byte fill) {
  const int64_t length = static_cast<int64_t>(items.size()) / rows, row_bytes = (padded * bits + 7) / 8;
  Bytes result(static_cast<size_t>(rows * row_bytes));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < padded; ++k) {
      const auto item = static_cast<unsigned>(k < length ? items[static_cast<size_t>(r * length + k)] : fill);
      const int64_t bit = k * bits;
      auto& to = result[static_cast<size_t>(r * row_bytes + bit / 8)];
      to |= static_cast<std::byte>(item << (bit % 8));
    }
  return result;
}

bool fits_microsoft(const NodeExport& n, const LowBitFullyConnectedAttrs& a) {
  const int bits = width_of(n, a);
  const bool integer_zero = !n.has(3) || (n.constant(3) && !is_float(n.dtype(3)));
  return n.options().microsoft && (bits == 2 || bits == 4 || bits == 8) && n.constant(1) && integer_zero &&
         a.block_size >= 16 && (a.block_size & (a.block_size - 1)) == 0;
}

// MatMulNBits: integers [N, blocks, bytes of a block], scales and zero points [N, blocks], the latter packed.
void write_microsoft(NodeExport& n, const LowBitFullyConnectedAttrs& a, const std::string& y) {
  const int bits = width_of(n, a);
  const int64_t columns = n.dims(1)[0], rows = n.dims(0).back();
  const int64_t blocks = (rows + a.block_size - 1) / a.block_size, padded = blocks * a.block_size;
  const auto middle = static_cast<std::byte>(1 << (bits - 1));
  ModelParts& parts = n.scope().parts();
  const std::string x = n.in(0);
  const Bytes items = unsigned_weights(n, a, columns, n.dims(1)[1]);
  const std::string weights =
      parts.initializer(Constant::owned(DType::kUint8, {columns, blocks, a.block_size * bits / 8},
                                        packed_rows(items, columns, padded, bits, middle)),
                        n.value(1).name);
  std::string scales = n.in(2);
  if (n.dtype(2) != n.dtype(0)) scales = n.cast(scales, n.dtype(0));
  // Without zero points they are the middle of the range, which signed weights have moved to.
  std::string zeros;
  const bool is_signed =
      is_signed_integer(n.dtype(1)) || n.dtype(1) == DType::kInt4 || n.dtype(1) == DType::kInt2;
  if (n.has(3) || !is_signed) {
    Bytes points(static_cast<size_t>(columns * blocks));
    if (n.has(3)) {
      const std::vector<int64_t> given = n.constant(3)->as_int64s();
      for (size_t i = 0; i < points.size(); ++i)
        points[i] = static_cast<std::byte>(given[i] + (is_signed ? 1 << (bits - 1) : 0));
    }
    const Bytes packed = packed_rows(points, columns, blocks, bits, std::byte{0});
    const Dims dims{columns, static_cast<int64_t>(packed.size()) / columns};
    zeros = parts.initializer(Constant::owned(DType::kUint8, dims, packed), n.value(1).name + "_zero_points");
  }
  OnnxNode node = n.add_microsoft("MatMulNBits", {x, weights, scales, zeros}, {y});
  node.set("K", rows).set("N", columns).set("bits", int64_t{bits}).set("block_size", a.block_size);
  if (a.activation_bits == 8) node.set("accuracy_level", int64_t{4});
}

// Returns weights [N, K] in x's type.
std::string dequantized(NodeExport& n, const LowBitFullyConnectedAttrs& a) {
  const Dims& dims = n.dims(1);
  std::string weights, scales = n.in(2), zeros = n.in(3);
  DType type = n.dtype(1);
  Dims shape = dims;
  if (has_planes(static_cast<int>(a.bits))) {
    const int64_t rows = n.dims(0).back();
    shape = {dims[0], rows}, type = DType::kUint8;
    weights = n.scope().parts().initializer(
        Constant::owned(type, shape, unsigned_weights(n, a, dims[0], rows)), n.value(1).name);
  } else {
    weights = n.in(1);
  }
  const DType t = n.dtype(0);
  if (n.dtype(2) != t) scales = n.cast(scales, t);
  if (!n.has(3) || n.dtype(3) == type) {
    const std::string result = n.temporary();
    n.add("DequantizeLinear", {weights, scales, zeros}, {result})
        .set("axis", int64_t{1})
        .set("block_size", a.block_size);
    return result;
  }
  // Zero points with fractions.
  const int64_t blocks = n.dims(2)[1];
  const auto spread = [&](const std::string& v) { return n.reshaped(v, {shape[0], blocks, 1}); };
  const std::string numbers = n.reshaped(n.cast(weights, t), {shape[0], blocks, a.block_size});
  const std::string point = spread(n.dtype(3) == t ? zeros : n.cast(zeros, t));
  const std::string less = n.step("Sub", {numbers, point});
  return n.reshaped(n.step("Mul", {less, spread(scales)}), shape);
}

}  // namespace

bool write_row(NodeExport& n, const LowBitFullyConnectedAttrs& a) {
  if (n.has(5))
    return n.refuse("its weights are indices into a table of numbers", "quantize the weights to integers");
  if (!n.constant(1) && has_planes(static_cast<int>(a.bits)))
    return n.refuse("its weights are computed and have a width without an element type",
                    "give constant weights");
  const std::string bias = n.in(4), y = n.clamped_out(a.act_min, a.act_max);
  const std::string product = bias.empty() ? y : n.temporary();
  if (fits_microsoft(n, a)) {
    write_microsoft(n, a, product);
  } else {
    if (a.activation_bits != 0)
      return n.refuse("its activations are rounded in blocks, which needs com.microsoft's MatMulNBits",
                      "leave activations in float");
    if (!n.needs_opset(21, "quantization in blocks")) return false;
    const std::string weights = n.transposed(dequantized(n, a), {1, 0});
    n.add("MatMul", {n.in(0), weights}, {product});
  }
  if (!bias.empty()) n.add("Add", {product, bias}, {y}).proto()->set_name(n.label() + "_bias");
  return n.done();
}

// Each row's weights are gathered, then multiplied.
bool write_row(NodeExport& n, const ExpertFullyConnectedAttrs&) {
  if (n.has(3) || n.has(4) || n.has(6))
    return n.refuse("ONNX has no operator that chooses quantized matrices by row",
                    "keep this part of the model out of it");
  const Dims& d = n.dims(0);
  const std::string expert = n.in(1), x = n.reshaped(n.in(0), {d[0], 1, d[1]});
  std::string matrices = n.in(2, {0, 2, 1});
  if (n.dtype(2) != n.dtype(0)) matrices = n.cast(matrices, n.dtype(0));
  const std::string weights = n.step("Gather", {matrices, expert});
  const std::string product = n.step("MatMul", {x, weights});
  const std::string flat = n.reshaped(product, n.result_value().dims), bias = n.in(5), y = n.out();
  if (bias.empty())
    n.add("Identity", {flat}, {y});
  else
    n.add("Add", {flat, n.step("Gather", {bias, expert})}, {y});
  return true;
}

}  // namespace sinter::convert
