// Attention of many queries, as of a prompt: it works on slices of the rows that share keys, which are read
// in pieces. A piece is packed, and gives each tile of rows its scores and weighted values as two products; a
// row's sums are scaled where its largest score grows. Keys that no row of a tile attends to are left out.
//
// The second product multiplies the values of hidden keys by 0, which gives NaN where they are not finite:
// such results are added up again without these keys.
#include <bit>
#include <cmath>

#include "platforms/simd/attention/attention.h"
#include "platforms/simd/float/gemm.h"
#include "runtime/core/op_enums.h"

namespace sinter::simd {
namespace {

constexpr int64_t kPieceKeys = 512;
// The number of rows for which a piece is packed once.
constexpr int64_t kSliceRows = 8 * kRowTile;
static_assert(kSliceRows / kRowTile <= 32);  // Slice::begun_

struct Layout {
  int64_t piece = 0;  // keys
  int64_t packed_keys = 0, packed_values = 0, scores = 0, products = 0, factors = 0, states = 0;
  int64_t wide_keys = 0, wide_values = 0, end = 0;
};

[[nodiscard]] bool layout_of(const OpCall& call, const AttentionExtent& e, Layout* l) {
  l->piece = std::min(e.keys, kPieceKeys);
  int64_t at = 0;
  const auto place = [&](int64_t* start, int64_t floats) {
    *start = at;
    return checked_add(at, divide_up(floats, 16) * 16, &at);
  };
  int64_t keys = 0, values = 0, key_floats = 0, value_floats = 0, products = 0;
  const bool fine =
      packed_floats(l->piece, e.key_size, &keys) && packed_floats(e.value_size, l->piece, &values) &&
      checked_mul(l->piece, e.key_size, &key_floats) && checked_mul(l->piece, e.value_size, &value_floats) &&
      checked_mul(kRowTile, e.value_size, &products) && place(&l->packed_keys, keys) &&
      place(&l->packed_values, values) && place(&l->scores, kRowTile * l->piece) &&
      place(&l->products, products) && place(&l->factors, kRowTile) &&
      place(&l->states, kSliceRows * static_cast<int64_t>(sizeof(SoftmaxState) / sizeof(float))) &&
      place(&l->wide_keys, call.in(1).dtype == DType::kFloat32 ? 0 : key_floats) &&
      place(&l->wide_values, call.in(2).dtype == DType::kFloat32 ? 0 : value_floats);
  l->end = at;
  return fine;
}

// Returns `rows` rows of keys or values (of all groups) from `first` on, in float32, in place or in `room`.
const float* floats_of(const OpCall& call, size_t operand, size_t scales, int64_t first, int64_t rows,
                       float* room) {
  const TensorView& from = call.in(operand);
  const int64_t size = row_elements(from.dtype, from.dims[3]);
  if (from.dtype == DType::kFloat32) return from.as<const float>() + first * size;
  widen(from.dtype, from.data + first * from.dims[3] * static_cast<int64_t>(byte_width(from.dtype)),
        rows * size, room);
  if (call.has_input(scales))
    for (int64_t j = 0; j < rows; ++j) {
      const float scale = call.in(scales).as<const float>()[first + j];
      for (int64_t d = 0; d < size; ++d) room[j * size + d] *= scale;
    }
  return room;
}

bool all_finite(const float* x, int64_t n) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t others = 0;
  for (int64_t i = 0; i < n; ++i) others |= (std::bit_cast<uint32_t>(x[i]) & kExponent) == kExponent;
  return others == 0;
}

class Slice {
 public:
  // The slice has rows first .. end - 1 of a group.
  Slice(const OpCall& call, const AttentionExtent& e, const Layout& l, float* workspace, int64_t group,
        int64_t first, int64_t end)
      : call_(call),
        e_(e),
        l_(l),
        attrs_(call.attrs<AttentionAttrs>()),
        floats_(workspace),
        group_(group),
        first_(first),
        end_(end),
        batch_(group / e.groups),
        length_(length_of(call, e, batch_)),
        states_(reinterpret_cast<SoftmaxState*>(workspace + l.states)),
        y_(call.out(0).as<float>() + (group * e.rows() + first) * e.value_size) {}

  void attend() {
    const int64_t rows = end_ - first_;
    std::fill_n(states_, rows, SoftmaxState{});
    const KeyRange all = attended(first_, end_);
    for (int64_t p = all.begin; p < all.end; p += l_.piece) {
      const KeyRange piece{p, std::min(p + l_.piece, all.end)};
      pack(piece);
      for (int64_t r = first_; r < end_; r += kRowTile) add_piece(piece, r, std::min(r + kRowTile, end_));
    }
    for (int64_t r = first_; r < end_; r += kRowTile)
      if ((begun_ >> (r - first_) / kRowTile & 1) == 0)  // its rows attend to nothing
        std::fill_n(y_of(r), (std::min(r + kRowTile, end_) - r) * e_.value_size, 0.0f);
    for (int64_t r = first_; r < end_; ++r) {
      const AttentionEnd end = attention_end(call_, head(r), states_[r - first_]);
      float* y = y_of(r);
      if (end.zeros)
        std::fill_n(y, e_.value_size, 0.0f);
      else
        for (int64_t d = 0; d < e_.value_size; ++d) y[d] *= end.factor;
    }
  }

 private:
  int64_t head(int64_t r) const { return group_ % e_.groups * (e_.heads / e_.groups) + r / e_.queries; }
  KeyRange attended(int64_t r) const { return attended_keys(attrs_, e_, length_, r % e_.queries); }
  // Returns the keys from the first to the last one that some of these rows attend to.
  KeyRange attended(int64_t begin, int64_t end) const {
    KeyRange all{length_, 0};
    for (int64_t r = begin; r < end; ++r) {
      const KeyRange keys = attended(r);
      if (keys.begin < keys.end) all = {std::min(all.begin, keys.begin), std::max(all.end, keys.end)};
    }
    return all;
  }

  void pack(KeyRange piece) {
    const int64_t n = piece.end - piece.begin, from = group_ * e_.keys + piece.begin, width = panel_width();
    const float* keys = floats_of(call_, 1, kKeyScales, from, n, floats_ + l_.wide_keys);
    values_ = floats_of(call_, 2, kValueScales, from, n, floats_ + l_.wide_values);
    pack_panels(keys, 1, e_.key_size, n, e_.key_size, e_.key_size, floats_ + l_.packed_keys, 0,
                divide_up(n, width));
    pack_panels(values_, e_.value_size, 1, e_.value_size, n, n, floats_ + l_.packed_values, 0,
                divide_up(e_.value_size, width));
  }

  // Multiplies rows begin .. end - 1, a tile, with the packed piece.
  void add_piece(KeyRange piece, int64_t begin, int64_t end) {
    const KeyRange any = attended(begin, end);
    if (any.begin >= piece.end || any.end <= piece.begin) return;
    const int64_t rows = end - begin, n = piece.end - piece.begin;
    float *scores = floats_ + l_.scores, *factors = floats_ + l_.factors;
    Gemm s;
    s.a = call_.in(0).as<const float>() + (group_ * e_.rows() + begin) * e_.key_size,
    s.a_stride = e_.key_size;
    s.b = floats_ + l_.packed_keys, s.rows = rows, s.columns = n, s.depth = e_.key_size;
    s.y = scores, s.y_stride = n;
    gemm_columns(s, 0, n);
    for (int64_t r = begin; r < end; ++r) {
      BiasRow bias = bias_row(call_, batch_, head(r), r % e_.queries);
      if (bias.first != nullptr) bias.first += piece.begin * bias.step;
      factors[r - begin] =
          add_weights(attrs_, scores + (r - begin) * n, within(piece, r), n, bias, &states_[r - first_]);
    }
    // The first piece of a tile gives its results at once.
    const uint32_t tile = 1u << (begin - first_) / kRowTile;
    const bool first = (begun_ & tile) == 0;
    begun_ |= tile;
    Gemm p;
    p.a = scores, p.a_stride = n, p.b = floats_ + l_.packed_values, p.rows = rows, p.columns = e_.value_size;
    p.depth = n, p.y = first ? y_of(begin) : floats_ + l_.products, p.y_stride = e_.value_size;
    gemm_columns(p, 0, e_.value_size);
    for (int64_t r = begin; r < end; ++r) {
      float* product = p.y + (r - begin) * e_.value_size;
      add_hidden(piece, r, scores + (r - begin) * n, product);
      if (first) continue;
      float* y = y_of(r);
      const float factor = factors[r - begin];
      for (int64_t d = 0; d < e_.value_size; ++d) y[d] = y[d] * factor + product[d];
    }
  }
  // Hidden keys were multiplied by 0, which gives NaN where their values are not finite.
  void add_hidden(KeyRange piece, int64_t r, const float* weights, float* product) const {
    const bool hides = static_cast<AttentionRule>(attrs_.rule) == AttentionRule::kHides;
    const KeyRange own = within(piece, r);
    if (own.begin == 0 && own.end == piece.end - piece.begin && !(hides && call_.has_input(kBias))) return;
    if (all_finite(product, e_.value_size)) return;
    for (int64_t d = 0; d < e_.value_size; ++d)
      if (!std::isfinite(product[d]))
        product[d] = add_visible(DType::kFloat32, weights, own, reinterpret_cast<const std::byte*>(values_),
                                 e_.value_size, d, hides);
  }
  float* y_of(int64_t r) const { return y_ + (r - first_) * e_.value_size; }
  // Returns the keys of the piece that row r attends to, counted from the piece's first.
  KeyRange within(KeyRange piece, int64_t r) const {
    const KeyRange keys = attended(r);
    const int64_t n = piece.end - piece.begin, begin = std::clamp<int64_t>(keys.begin - piece.begin, 0, n);
    return {begin, std::clamp<int64_t>(keys.end - piece.begin, begin, n)};
  }

  const OpCall& call_;
  const AttentionExtent& e_;
  const Layout& l_;
  const AttentionAttrs& attrs_;
  float* floats_;
  int64_t group_, first_, end_, batch_, length_;
  SoftmaxState* states_;
  float* y_;
  const float* values_ = nullptr;  // those of the packed piece
  uint32_t begun_ = 0;             // tiles that have results, a bit each
};

Status accept(const OpCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorView& t = call.in(i);
    if (!t.present()) continue;
    if (i == kLengths || ((i == 1 || i == 2) && is_narrow(t.dtype, DType::kFloat32)))
      SINTER_RETURN_UNLESS(t.dense(), unsupported("the simd kernel takes dense operands"));
    else
      SINTER_RETURN_IF_ERROR(check_float_dense(t));
  }
  return check_float_dense(call.out(0));
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  const AttentionExtent e(call);
  Layout l;
  int64_t floats = 0;
  SINTER_RETURN_UNLESS(are_few_queries(e) ? few_queries_workspace(e, threads, &floats)
                                          : layout_of(call, e, &l) &&
                                                checked_mul<int64_t>(l.end, std::max(threads, 1), &floats),
                       too_much_workspace());
  SINTER_RETURN_UNLESS(checked_mul<int64_t>(floats, sizeof(float), &floats), too_much_workspace());
  *bytes = static_cast<size_t>(floats);
  return ok_status();
}

Status run(const OpCall& call, RunContext& context) {
  const AttentionExtent e(call);
  for (int64_t b = 0; b < e.batch; ++b) {
    const int64_t length = length_of(call, e, b);
    SINTER_RETURN_UNLESS(length >= 0 && length <= e.keys,
                         error(Code::kOutOfRange, "a length of %a, where there are %b keys", length, e.keys)
                             .of_input(kLengths));
  }
  Layout l;
  if (call.out(0).size() == 0) return ok_status();
  if (are_few_queries(e)) {
    attend_few_queries(call, e, context);
    return ok_status();
  }
  if (!layout_of(call, e, &l)) return too_much_workspace();
  auto* workspace = reinterpret_cast<float*>(context.workspace.data());
  const int64_t slices = divide_up(e.rows(), kSliceRows), units = e.batch * e.groups * slices;
  const int64_t slots = std::min(units, std::max<int64_t>(threads_of(context.threads), 1));
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % slices * kSliceRows;
      Slice(call, e, l, workspace + slot * l.end, unit / slices, first,
            std::min(first + kSliceRows, e.rows()))
          .attend();
    }
  });
  return ok_status();
}

}  // namespace

const Kernel kAttentionKernel = {Op::kAttention, nullptr, workspace, run, accept};

}  // namespace sinter::simd
