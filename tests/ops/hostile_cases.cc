// Random calls of every op: whatever the attributes, dims and dtypes are, inference answers, and what it
// accepts runs inside its buffers. Meant for the sanitizers; without them the guard bytes still show stray
// writes.
#include <algorithm>
#include <cmath>
#include <new>
#include <string>

#include "runtime/core/bit_rows.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1du;
  }
  int64_t below(int64_t n) { return static_cast<int64_t>((next() >> 11) % static_cast<uint64_t>(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

constexpr int64_t kExtremes[] = {INT64_MIN, INT64_MIN + 1,    -1, INT32_MIN, INT32_MAX,
                                 INT64_MAX, int64_t{1} << 40, 9};

int64_t any_int(Random& r, bool hostile) {
  return hostile && r.one_in(3) ? kExtremes[r.below(8)] : r.below(5) - (r.one_in(8) ? 2 : 0);
}
double any_float(Random& r, bool hostile) {
  constexpr double kOdd[] = {kInfinity, -kInfinity, 1e300, -1.0, 0.0, 1e-300};
  if (hostile && r.one_in(3)) return r.one_in(4) ? std::nan("") : kOdd[r.below(6)];
  return static_cast<double>(r.below(9) - 2) / 2;
}
Shape any_shape(Random& r, bool hostile) {
  Shape dims(static_cast<size_t>(r.one_in(6) ? r.below(9) : r.below(5)));
  for (int64_t& d : dims)
    d = hostile && r.one_in(4) ? std::max<int64_t>(0, kExtremes[r.below(8)])
                               : r.below(4) + (r.one_in(8) ? 0 : 1);
  return dims;
}
DType any_dtype(Random& r) {
  constexpr DType kUsual[] = {DType::kFloat32, DType::kFloat32, DType::kFloat64, DType::kInt32,
                              DType::kInt64,   DType::kBool,    DType::kInt8,    DType::kUint8};
  return r.one_in(4) ? static_cast<DType>(1 + r.below(static_cast<int64_t>(DType::kCount) - 1))
                     : kUsual[r.below(8)];
}
Tensor any_tensor(Random& r, DType dtype, Shape dims) {
  Tensor t{dtype, std::move(dims), {}};
  const size_t bytes = static_cast<size_t>((t.size() * bit_width(dtype) + 7) / 8);
  const bool small = !r.one_in(4);
  while (t.bytes.size() < bytes) {
    const double f = any_float(r, true);
    const auto g = static_cast<float>(f);
    const int64_t i = any_int(r, !small);
    const auto* p = dtype == DType::kFloat32   ? reinterpret_cast<const std::byte*>(&g)
                    : dtype == DType::kFloat64 ? reinterpret_cast<const std::byte*>(&f)
                                               : reinterpret_cast<const std::byte*>(&i);
    t.bytes.insert(t.bytes.end(), p, p + std::max<size_t>(1, byte_width(dtype)));
  }
  return t;
}

// Sets some of the attributes.
struct Filler {
  Random& r;
  int64_t axes;  // what lists are about: `axes` numbers, or twice as many
  bool hostile;

  void operator()(const char*, int64_t& v) {
    if (!r.one_in(3)) v = any_int(r, hostile);
  }
  void operator()(const char*, double& v) {
    if (!r.one_in(3)) v = any_float(r, hostile);
  }
  void operator()(const char* name, IntList& v) {
    const int64_t kind = r.below(4);  // counting up, ones, or anything
    for (int64_t i = 0, n = length(name); i < n; ++i)
      v.push(kind == 0 ? i : kind == 1 ? 1 : any_int(r, hostile));
  }
  void operator()(const char* name, FloatList& v) {
    for (int64_t i = 0, n = length(name); i < n; ++i) v.push(any_float(r, hostile));
  }
  template <class T>
  void operator()(const char*, AttrView<T>& v) {
    static constexpr T kSome[] = {T{'a'}, T{'b'}, T{'c'}};
    v = {kSome, static_cast<uint32_t>(r.below(4))};
  }
  int64_t length(const std::string& name) {
    if (r.one_in(6)) return r.below(kMaxAttrList);
    return name == "pads" || name == "roi" ? 2 * axes : axes;
  }
};
using Fill = void (*)(void* storage, Filler filler);
template <class A>
void fill(void* storage, Filler filler) {
  visit_attrs(*new (storage) A, filler);
}

// Shapes that belong together, for the ops that would hardly ever be met by chance; empty for all others.
std::vector<Shape> fitting_shapes(Op op, const void* attrs, Random& r) {
  if (op == Op::kConv || op == Op::kConvTranspose || op == Op::kQConv || op == Op::kQConvTranspose) {
    const int64_t in = 1 + r.below(3), out = 1 + r.below(3);
    Shape x = {1 + r.below(2)}, w = {out};
    for (int64_t i = 0, axes = 1 + r.below(3); i < axes; ++i)
      x.push_back(1 + r.below(5)), w.push_back(1 + r.below(3));
    x.push_back(in), w.push_back(in);
    return {x, w, {out}, {out}, {1}};
  }
  const auto n = [&] { return 1 + r.below(3); };
  if (op == Op::kQDepthwiseConv) {
    const int64_t in = n(), out = in * n();
    return {{n(), 1 + n(), 1 + n(), in}, {n(), n(), out}, {out}, {out}, {1}};
  }
  if (op == Op::kQFullyConnected) {
    const int64_t depth = n(), out = n();
    return {{n(), depth}, {out, depth}, {out}, {1}, {out}};
  }
  if (op == Op::kGroupNorm) {
    const int64_t c = n() * 2;
    return {{n(), n(), c}, {c}, {c}};
  }
  if (op == Op::kLowBitFullyConnected) {
    const auto& a = *static_cast<const LowBitFullyConnectedAttrs*>(attrs);
    const int64_t depth = 4 * n(), columns = n(), block = std::max<int64_t>(a.block_size, 1);
    const Shape blocks = {columns, (depth - 1) / block + 1};
    const bool planes = a.bits > 0 && a.bits < 8 && has_planes(static_cast<int>(a.bits));
    return {{n(), depth}, {columns, planes ? bit_row_bytes(static_cast<int>(a.bits), depth) : depth},
            blocks,       blocks,
            {columns},    {16}};
  }
  if (op == Op::kExpertFullyConnected) {
    const int64_t rows = r.below(7), experts = n(), depth = 4 * n(), columns = n(),
                  block =
                      std::max<int64_t>(static_cast<const ExpertFullyConnectedAttrs*>(attrs)->block_size, 1);
    const Shape blocks = {experts, columns, (depth - 1) / block + 1};
    return {{rows, depth}, {rows}, {experts, columns, depth}, blocks, blocks, {experts, columns}, {16}};
  }
  if (op == Op::kLinearAttention) {
    const int64_t batch = n(), tokens = r.below(4), heads = n(), key = n(), value = n(),
                  queries = r.one_in(2) ? heads * n() : 1;
    return {{batch, tokens, queries, key},
            {batch, tokens, heads, key},
            {batch, tokens, heads, value},
            {batch, heads, key, value},
            {batch, tokens, heads, r.one_in(2) ? key : 1},
            {batch, tokens, heads}};
  }
  if (op == Op::kGridSample) {
    const int64_t batch = n();
    return {{batch, n(), n(), n()}, {batch, n(), n(), 2}};
  }
  if (op == Op::kRoiAlign) {
    const int64_t rois = n();
    return {{n(), n(), n(), n()}, {rois, 4}, {rois}};
  }
  if (op == Op::kNms) {
    const int64_t batch = n(), boxes = r.below(6);
    return {{batch, boxes, 4}, {batch, n(), boxes}, {}, {}};
  }
  if (op == Op::kCheckLength) return {{}, {}, {}};
  if (op == Op::kLut || op == Op::kQSoftmax) return {{n(), n(), n()}, {256}};
  if (op == Op::kQTable) return {{n(), n(), n()}, {(int64_t{1} << (8 + r.below(5))) + 1}};
  if (op == Op::kQAdd || op == Op::kQMul) {
    const int64_t c = n();
    return {{n(), c}, {c}};
  }
  if (op == Op::kQPRelu) {
    const int64_t c = n();
    return {{n(), n(), c}, {c}};
  }
  if (op == Op::kQResize) return {{n(), n(), n(), n()}, {n(), 2}, {n(), 2}};
  if (op == Op::kQMean || op == Op::kQAvgPool) return {{n(), n() + 1, n() + 1, n()}};
  const auto recurrent = [&](int64_t hidden, int64_t gates) {
    const int64_t h = std::clamp<int64_t>(hidden, 1, 4), t = r.below(4), b = 1 + r.below(3),
                  i = 1 + r.below(3);
    return std::vector<Shape>{{t, b, i}, {1, gates * h, i}, {1, gates * h, h}, {1, 2 * gates * h},
                              {b},       {1, b, h},         {1, b, h},         {1, 3 * h}};
  };
  if (op == Op::kLstm) return recurrent(static_cast<const LstmAttrs*>(attrs)->hidden_size, 4);
  if (op == Op::kGru) return recurrent(static_cast<const GruAttrs*>(attrs)->hidden_size, 3);
  if (op == Op::kRnn) return recurrent(static_cast<const RnnAttrs*>(attrs)->hidden_size, 1);
  if (op == Op::kQLstm || op == Op::kQGru) {
    const bool lstm = op == Op::kQLstm;
    const std::vector<Shape> s = lstm ? recurrent(static_cast<const QLstmAttrs*>(attrs)->hidden_size, 4)
                                      : recurrent(static_cast<const QGruAttrs*>(attrs)->hidden_size, 3);
    const Shape rows{1, s[1][1]};
    return {s[0], s[1], s[2], rows, rows, s[3], {1, lstm ? 3 : 2, 513}, s[4], s[5], s[6]};
  }
  return {};
}

// Numbers that the integer operations hardly ever meet by chance.
template <class A>
void fit_integers(void* attrs, Random& r) {
  if (r.one_in(2)) return;
  auto& a = *static_cast<A*>(attrs);
  a.x_zero = r.below(256) - 128, a.y_zero = r.below(256) - 128, a.q_min = -r.below(128),
  a.q_max = r.below(128);
  if constexpr (requires { a.to; }) {
    const DType results[] = {DType::kInt8, DType::kInt16, DType::kFloat32};
    a.to = static_cast<int64_t>(results[r.below(3)]);
  }
}
void fit_attrs(Op op, void* attrs, Random& r) {
  if (op == Op::kLowBitFullyConnected) {
    auto& a = *static_cast<LowBitFullyConnectedAttrs*>(attrs);
    a.bits = r.one_in(2) ? 0 : r.below(9), a.activation_bits = r.one_in(2) ? 0 : 8;
    return;
  }
  if (op == Op::kQConv) fit_integers<QConvAttrs>(attrs, r);
  if (op == Op::kQDepthwiseConv) fit_integers<QDepthwiseConvAttrs>(attrs, r);
  if (op == Op::kQConvTranspose) fit_integers<QConvTransposeAttrs>(attrs, r);
  if (op == Op::kQFullyConnected) fit_integers<QFullyConnectedAttrs>(attrs, r);
  if (op == Op::kQAvgPool) {
    fit_integers<QAvgPoolAttrs>(attrs, r);
    auto& a = *static_cast<QAvgPoolAttrs*>(attrs);
    a.kernel = {1 + r.below(2), 1}, a.strides = {1, 1 + r.below(2)}, a.dilations = {1, 1},
    a.pads = {0, 0, 0, 1};
    a.multiplier = 0.5;
  }
  if (op == Op::kQMatMul) fit_integers<QMatMulAttrs>(attrs, r);
  if (op == Op::kQLstm) fit_integers<QLstmAttrs>(attrs, r);
  if (op == Op::kQGru) fit_integers<QGruAttrs>(attrs, r);
}

// The operand's type in such a call.
DType fitting_dtype(Op op, size_t input, Random& r) {
  if (op == Op::kCheckLength) return DType::kInt64;
  if (op == Op::kExpertFullyConnected && input == 1) return DType::kInt64;
  if (op == Op::kExpertFullyConnected && (input == 2 || input == 4)) {
    constexpr DType kTypes[] = {DType::kUint4,      DType::kUint4,        DType::kUint8,
                                DType::kFloat4E2M1, DType::kFloat8E4M3FN, DType::kFloat32};
    return kTypes[r.below(6)];
  }
  if (op == Op::kExpertFullyConnected && input == 3)
    return r.one_in(3) ? DType::kFloat8E8M0 : DType::kFloat32;
  if (op == Op::kQResize) return input == 0 ? DType::kInt8 : DType::kInt32;
  if (op == Op::kQTable) return input == 0 ? DType::kInt16 : DType::kInt32;
  if (op == Op::kQConv || op == Op::kQDepthwiseConv || op == Op::kQConvTranspose ||
      op == Op::kQFullyConnected)
    return input == 2 ? DType::kInt32 : input == 3 ? DType::kFloat32 : DType::kInt8;
  if (op == Op::kQLstm || op == Op::kQGru) {
    constexpr DType kTypes[] = {DType::kInt8,    DType::kInt8,    DType::kInt8,  DType::kFloat32,
                                DType::kFloat32, DType::kFloat32, DType::kInt16, DType::kInt32,
                                DType::kFloat32, DType::kFloat32};
    return input < 10 ? kTypes[input] : DType::kFloat32;
  }
  if (op == Op::kQPRelu || op == Op::kQSoftmax)
    return input == 0 ? DType::kInt8 : op == Op::kQPRelu ? DType::kFloat32 : DType::kUint32;
  if (op == Op::kLut && input == 0) return r.one_in(2) ? DType::kInt8 : DType::kUint8;
  const bool bytes =
      op == Op::kLut || op == Op::kQAdd || op == Op::kQMul || op == Op::kQMean || op == Op::kQAvgPool;
  return bytes ? DType::kInt8 : DType::kFloat32;
}

void hostile_calls(Op op, Fill fill_attrs) {
  const OpInfo& info = *op_info(op);
  if ((info.traits & kControl) != 0) GTEST_SKIP() << "control ops need a program";
  if (op == Op::kCustom)
    GTEST_SKIP() << "the application gives its rule: CustomDefinition.*, fuzz_model and tests/custom";
  int accepted = 0, ran = 0;
  for (int seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(std::string(info.name) + " seed " + std::to_string(seed));
    Random r(static_cast<uint64_t>(seed) * 1000 + static_cast<uint64_t>(op));
    const bool hostile = seed % 3 == 0;
    const Shape base = any_shape(r, hostile);
    alignas(8) std::byte storage[2048];
    ASSERT_LE(attrs_bytes(op), sizeof(storage));
    const auto rank = static_cast<int64_t>(base.size());
    fill_attrs(storage, {r, r.one_in(2) ? rank : std::max<int64_t>(rank - 2, 0), hostile});
    const int64_t most = info.max_inputs < 0 ? info.min_inputs + 3 : info.max_inputs;
    const auto inputs = static_cast<size_t>(info.min_inputs + r.below(most - info.min_inputs + 1));
    const DType usual = any_dtype(r);
    std::vector<TensorView> views(inputs);
    std::vector<Shape> shapes(inputs);
    if (!hostile) fit_attrs(op, storage, r);
    // Often right as a whole, which a table hardly is by chance.
    const bool table = op == Op::kLowBitFullyConnected && inputs == 6 && r.one_in(2);
    if (table && !hostile) {
      auto& a = *reinterpret_cast<LowBitFullyConnectedAttrs*>(storage);
      a.bits = 0, a.activation_bits = 0;
    }
    const std::vector<Shape> fitting = r.one_in(2) ? fitting_shapes(op, storage, r) : std::vector<Shape>{};
    if (op == Op::kQAvgPool && !fitting.empty()) {  // too many attributes to be right by chance
      auto& a = *reinterpret_cast<QAvgPoolAttrs*>(storage);
      QAvgPoolAttrs right;
      right.kernel = {1 + r.below(2), 1 + r.below(2)};
      right.x_zero = a.x_zero, right.y_zero = a.y_zero, right.multiplier = a.multiplier;
      right.count_include_pad = r.below(2), right.ceil_mode = r.below(2);
      a = right;
    }
    constexpr DType kIntegers[] = {DType::kUint4, DType::kUint8, DType::kInt2, DType::kUint2, DType::kUint8};
    const DType integers = kIntegers[op == Op::kLowBitFullyConnected ? r.below(5) : 0];
    for (size_t i = 0; i < inputs; ++i) {
      shapes[i] = r.one_in(3) ? any_shape(r, hostile) : base;
      if (r.one_in(4) && !shapes[i].empty()) shapes[i].erase(shapes[i].begin());
      if (r.one_in(4) && !shapes[i].empty()) shapes[i].back() = 1;
      views[i].dtype = r.one_in(4) ? any_dtype(r) : usual;
      if (i < fitting.size() && !r.one_in(20))
        shapes[i] = fitting[i], views[i].dtype = fitting_dtype(op, i, r);
      if (fitting.size() == 8 && i == 4) views[i].dtype = DType::kInt32;
      if (!fitting.empty() && op == Op::kLowBitFullyConnected && (i == 1 || (i == 3 && r.one_in(2))))
        views[i].dtype = table ? DType::kUint4 : integers;
      constexpr DType kNarrow[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN,
                                   DType::kFloat8E5M2FNUZ};
      if ((op == Op::kConv || op == Op::kFullyConnected) && i == 1 && r.one_in(3))
        views[i].dtype = kNarrow[r.below(4)];
      if (!fitting.empty() && op == Op::kRoiAlign && i == 2) views[i].dtype = DType::kInt64;
      views[i].rank = static_cast<uint8_t>(shapes[i].size());
      std::copy(shapes[i].begin(), shapes[i].end(), views[i].dims);
      if (static_cast<int>(i) >= info.min_inputs && (r.one_in(4) || (table && i == 3 && !r.one_in(4))))
        views[i] = TensorView{}, shapes[i].clear();
    }
    const int64_t max_outputs = info.max_outputs < 0 ? info.min_outputs + 2 : info.max_outputs;
    std::vector<TensorView> outputs(
        static_cast<size_t>(info.min_outputs + r.below(max_outputs - info.min_outputs + 1)));
    OpCall call{op, storage, views, outputs};
    const Status s = infer(call, reference_kernels());
    if (!s.ok()) {
      ASSERT_NE(s.message, nullptr);
      continue;
    }
    ++accepted;
    bool small = !hostile;
    for (const auto& list : {views, outputs})
      for (const TensorView& v : list) {
        int64_t bytes = 0;
        small = small && checked_bytes(v.dtype, v.shape(), &bytes) && bytes < 1 << 14;
      }
    if (!small) continue;
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < inputs; ++i)
      tensors.push_back(views[i].present() ? any_tensor(r, views[i].dtype, shapes[i]) : Tensor{});
    for (TensorView& v : outputs)
      if (!v.present()) v.rank = kUnwantedRank;
    std::vector<Tensor> results;
    const bool in_any = info.in_strides == Strides::kAny, out_any = info.out_strides == Strides::kAny;
    const Status run =
        run_once(op, storage, tensors, outputs, in_any && r.one_in(2) ? Layout::kReversed : Layout::kDense,
                 out_any && r.one_in(2) ? Layout::kGaps : Layout::kDense, -1, &results);
    ran += run.ok() ? 1 : 0;
  }
  testing::Test::RecordProperty("accepted", accepted);
  testing::Test::RecordProperty("ran", ran);
  EXPECT_GT(accepted, 0) << "the generator makes no valid call of this op";
}

#define SINTER_OP(name, ...) \
  TEST(Hostile, name) { hostile_calls(Op::k##name, fill<name##Attrs>); }
#include "schemas/ops.def"
#undef SINTER_OP

}  // namespace
}  // namespace sinter::test
