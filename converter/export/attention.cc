// Rows of attention and rotary embeddings.
#include <algorithm>
#include <limits>

#include "converter/export/rows.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr size_t kBias = 3, kLengths = 4, kSinks = 5, kKeyScales = 6, kValueScales = 7;

// Attention written out, in float32 at least.
class WrittenAttention {
 public:
  WrittenAttention(NodeExport& n, const AttentionAttrs& a)
      : n_(n),
        a_(a),
        type_(is_wide_float(n.dtype(0)) ? n.dtype(0) : DType::kFloat32),
        batch_(n.dims(0)[0]),
        heads_(n.dims(0)[1]),
        queries_(n.dims(0)[2]),
        keys_(n.dims(1)[2]) {}

  void write() {
    std::string scores = n_.step("MatMul", {wide(n_.in(0), 0), keys()});
    if (a_.scale != 1) scores = n_.step("Mul", {scores, number(a_.scale)});
    if (a_.softcap > 0) {
      const std::string cap = number(a_.softcap);
      scores = n_.step("Mul", {n_.step("Tanh", {n_.step("Div", {scores, cap})}), cap});
    }
    if (n_.has(kBias)) scores = with_bias(scores);
    if (n_.has(kLengths) || a_.causal != 0)
      scores = n_.step("Where", {allowed(), scores, number(-std::numeric_limits<double>::infinity())});
    std::string weights = with_sinks(scores);
    const auto rule = static_cast<AttentionRule>(a_.rule);
    if (rule == AttentionRule::kHides || rule == AttentionRule::kAddsNanToZero)
      weights = n_.step("Where", {n_.step("IsNaN", {weights}), number(0), weights});
    const std::string y = n_.out(), values = of_heads(scaled(2, kValueScales), n_.dims(2));
    if (type_ == n_.dtype(0)) {
      n_.add("MatMul", {weights, values}, {y});
    } else {
      const std::string product = n_.step("MatMul", {weights, values});
      n_.add("Cast", {product}, {y}).set("to", static_cast<int64_t>(onnx_type(n_.dtype(0))));
    }
  }

 private:
  std::string number(double v) { return n_.scalar(type_, v); }
  std::string wide(const std::string& x, size_t i) { return n_.dtype(i) == type_ ? x : n_.cast(x, type_); }
  // Returns keys or values times the scales of their rows.
  std::string scaled(size_t i, size_t scales) {
    const std::string x = wide(n_.in(i), i);
    if (!n_.has(scales)) return x;
    Dims dims = n_.dims(scales);
    dims.push_back(1);
    return n_.step("Mul", {x, n_.reshaped(wide(n_.in(scales), scales), dims)});
  }
  // Repeats keys or values for the heads that share them.
  std::string of_heads(const std::string& x, const Dims& d) {
    if (d[1] == heads_) return x;
    const int64_t sharing = heads_ / d[1];
    const std::string apart = n_.reshaped(x, {d[0], d[1], 1, d[2], d[3]});
    const std::string repeated = n_.step("Expand", {apart, n_.ints({d[0], d[1], sharing, d[2], d[3]})});
    return n_.reshaped(repeated, {d[0], heads_, d[2], d[3]});
  }
  std::string keys() { return n_.transposed(of_heads(scaled(1, kKeyScales), n_.dims(1)), {0, 1, 3, 2}); }
  std::string with_bias(const std::string& scores) {
    const std::string bias = wide(n_.in(kBias), kBias);
    if (static_cast<AttentionRule>(a_.rule) != AttentionRule::kReplaces)
      return n_.step("Add", {scores, bias});
    return n_.step("Where", {n_.step("Equal", {bias, number(0)}), scores, bias});
  }
  // Returns whether a query may attend to a key.
  std::string allowed() {
    const auto constant = [&](Dims dims, const std::vector<int64_t>& items, const char* what) {
      return n_.scope().parts().initializer(Constant::of<int64_t>(DType::kInt64, std::move(dims), items),
                                            n_.label() + what);
    };
    const auto number64 = [&](int64_t v) { return n_.scalar(DType::kInt64, static_cast<double>(v)); };
    std::string length, result;
    if (n_.has(kLengths)) {
      std::vector<int64_t> key(static_cast<size_t>(keys_));
      for (int64_t j = 0; j < keys_; ++j) key[static_cast<size_t>(j)] = j;
      length = n_.reshaped(n_.in(kLengths), {batch_, 1, 1, 1});
      result = n_.step("Less", {constant({keys_}, key, "_keys"), length});
    } else {
      length = number64(keys_);
    }
    if (a_.causal == 0) return result;
    std::vector<int64_t> apart(static_cast<size_t>(queries_ * keys_));  // key - query
    for (int64_t i = 0; i < queries_; ++i)
      for (int64_t j = 0; j < keys_; ++j) apart[static_cast<size_t>(i * keys_ + j)] = j - i;
    const std::string distance = constant({queries_, keys_}, apart, "_distance");
    const std::string last = n_.step("Sub", {length, number64(queries_)});
    const auto also = [&](const std::string& test) {
      result = result.empty() ? test : n_.step("And", {result, test});
    };
    also(n_.step("LessOrEqual", {distance, last}));
    if (a_.window > 0) also(n_.step("Greater", {distance, n_.step("Sub", {last, number64(a_.window)})}));
    return result;
  }
  std::string softmax(const std::string& scores) {
    const std::string result = n_.temporary();
    n_.add("Softmax", {scores}, {result}).set("axis", int64_t{-1});
    return result;
  }
  std::string with_sinks(const std::string& scores) {
    if (!n_.has(kSinks)) return softmax(scores);
    const std::string row = n_.reshaped(wide(n_.in(kSinks), kSinks), {1, heads_, 1, 1});
    const std::string sinks = n_.step("Expand", {row, n_.ints({batch_, heads_, queries_, 1})});
    const std::string joined = n_.temporary();
    n_.add("Concat", {scores, sinks}, {joined}).set("axis", int64_t{-1});
    return n_.step("Slice", {softmax(joined), n_.ints({0}), n_.ints({keys_}), n_.ints({3})});
  }

  NodeExport& n_;
  const AttentionAttrs& a_;
  const DType type_;
  const int64_t batch_, heads_, queries_, keys_;
};

// Whether ONNX's Attention computes the same. Its causality begins at the first key.
bool is_attention_of_onnx(const NodeExport& n, const AttentionAttrs& a) {
  for (const size_t i : {kLengths, kSinks, kKeyScales, kValueScales})
    if (n.has(i)) return false;
  const auto rule = static_cast<AttentionRule>(a.rule);
  const bool adds = rule == AttentionRule::kAdds || !n.has(kBias) || n.node().origin == "Attention";
  const bool one_type = n.dtype(1) == n.dtype(0) && n.dtype(2) == n.dtype(0);
  const bool square = n.dims(0)[2] == n.dims(1)[2];
  return n.opset() >= 23 && one_type && adds && a.window == 0 && (a.causal == 0 || (square && !n.has(kBias)));
}

}  // namespace

bool write_row(NodeExport& n, const AttentionAttrs& a) {
  if (n.dtype(1) == DType::kUint8 || n.dtype(2) == DType::kUint8)
    return n.refuse("its keys or values are pairs of 4 bits, which ONNX lacks",
                    "keep caches in another type");
  if (!is_attention_of_onnx(n, a)) {
    WrittenAttention(n, a).write();
    return true;
  }
  const std::string q = n.in(0), k = n.in(1), v = n.in(2);
  std::string bias = n.in(kBias);
  if (n.has(kBias) && n.dtype(kBias) != n.dtype(0)) bias = n.cast(bias, n.dtype(0));
  OnnxNode node = n.add("Attention", {q, k, v, bias}, {n.out()});
  node.set_float("scale", a.scale).set("is_causal", a.causal);
  if (a.softcap > 0) node.set_float("softcap", a.softcap);
  return true;
}

bool write_row(NodeExport& n, const RopeAttrs& a) {
  const Dims& d = n.dims(0);
  const auto rank = static_cast<int64_t>(d.size());
  const int64_t turned = a.rotary_dim == 0 ? d.back() : a.rotary_dim, half = turned / 2;
  const DType t = n.dtype(0), wide = n.dtype(1);
  const auto slice = [&](const std::string& x, int64_t axis, int64_t begin, int64_t end) {
    return n.step("Slice", {x, n.ints({begin}), n.ints({end}), n.ints({axis})});
  };
  const std::string x = n.in(0), cos = n.in(1), sin = n.in(2), y = n.out();
  const std::string v = t == wide ? x : n.cast(x, wide);
  const std::string part = turned == d.back() ? v : slice(v, rank - 1, 0, turned);
  std::string parts[2];
  Dims pairs(d.begin(), d.end() - 1), flat = pairs, one = pairs;
  pairs.push_back(half), pairs.push_back(2), flat.push_back(half), one.push_back(half), one.push_back(1);
  const std::string apart = a.interleaved != 0 ? n.reshaped(part, pairs) : part;
  for (int64_t i = 0; i < 2; ++i)
    parts[i] = a.interleaved != 0 ? n.reshaped(slice(apart, rank, i, i + 1), flat)
                                  : slice(part, rank - 1, i * half, (i + 1) * half);
  const auto product = [&](size_t i, const std::string& by) { return n.step("Mul", {parts[i], by}); };
  std::string results[] = {n.step("Sub", {product(0, cos), product(1, sin)}),
                           n.step("Add", {product(0, sin), product(1, cos)})};
  if (a.interleaved != 0)
    for (std::string& r : results) r = n.reshaped(r, one);
  std::string joined = n.temporary();
  n.add("Concat", {results[0], results[1]}, {joined}).set("axis", int64_t{-1});
  if (a.interleaved != 0) {
    flat.back() = turned;
    joined = n.reshaped(joined, flat);
  }
  if (turned != d.back()) {
    const std::string whole = n.temporary();
    n.add("Concat", {joined, slice(v, rank - 1, turned, d.back())}, {whole}).set("axis", int64_t{-1});
    joined = whole;
  }
  if (t == wide)
    n.add("Identity", {joined}, {y});
  else
    n.add("Cast", {joined}, {y}).set("to", static_cast<int64_t>(onnx_type(t)));
  return true;
}

bool write_row(NodeExport& n, const LinearAttentionAttrs&) {
  return n.refuse("ONNX has LinearAttention in later versions only", "keep this part of the model out of it");
}

bool write_row(NodeExport& n, const CustomAttrs&) {
  return n.refuse("its attributes are held in the converter's own form",
                  "keep the operator out of the model");
}

}  // namespace sinter::convert
