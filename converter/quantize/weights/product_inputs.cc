#include "converter/quantize/weights/product_inputs.h"

#include <algorithm>
#include <cstring>

#include "converter/quantize/cpu_tier.h"

namespace sinter::convert {
namespace {

constexpr int64_t kInputLanes = 16;
constexpr int64_t kTogether = 32;  // patches that are gathered before they are multiplied

#define SINTER_LOOPS "converter/quantize/weights/squares-inl.h"
#include "converter/quantize/every_tier-inl.h"

}  // namespace

ProductInputs::ProductInputs(const Graph& graph, const Node& node, int64_t most, int64_t samples)
    : product_(*product_weights(graph, node)) {
  const Dims &x = graph.value(node.inputs[0]).dims, &y = graph.value(node.outputs[0]).dims;
  const ProductWeights& p = product_;
  int64_t positions = 1;
  if (node.as<FullyConnectedAttrs>() != nullptr) {
    for (size_t d = 0; d + 1 < x.size(); ++d) batches_ *= x[d];
  } else {
    batches_ = x[0];
    in_.assign(x.begin() + 1, x.end() - 1);
    out_.assign(y.begin() + 1, y.end() - 1);
    const Dims& w = p.weights->dims();
    for (const int64_t d : out_) positions *= d;
    std::visit(
        [&](const auto& a) {
          using A = std::decay_t<decltype(a)>;
          if constexpr (WindowAttrs<A> && !kPoolWindow<A>) {
            const int axes = static_cast<int>(in_.size());
            for (int i = 0; i < axes; ++i) window_.push_back(window_axis(a, w.data(), axes, i));
            transposed_ = kTransposedWindow<A>;
          }
        },
        node.attrs);
    for (const WindowAxis& a : window_) taps_ *= a.kernel;
  }
  positions *= batches_;
  const int64_t length = row_length(p), parts = (length + most - 1) / most;
  const int64_t patches = enough_patches(std::min(length, most));
  per_sample_ = std::min(positions, (patches + samples - 1) / std::max<int64_t>(samples, 1));
  const int64_t groups = p.depthwise ? p.columns : p.rows / p.per_group;
  const int64_t rows = p.depthwise ? p.per_column : p.per_group;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t part = 0; part < parts; ++part) {
      InputBlock block;
      block.first_row = g * rows, block.rows = rows;
      Sums sums;
      for (int64_t i = length * part / parts; i < length * (part + 1) / parts; ++i) {
        block.weights.push_back(i);
        const int64_t tap = p.depthwise ? i : i / p.each, channel = p.depthwise ? g : g * p.each + i % p.each;
        sums.places.push_back(tap * p.columns + channel);
      }
      sums.width = (block.size() + kInputLanes - 1) / kInputLanes * kInputLanes;
      sums.mean.resize(block.weights.size(), 0);
      sums.squares.resize(static_cast<size_t>(sums.width * sums.width), 0);
      sums.rows.resize(static_cast<size_t>(sums.width * kTogether), 0);
      blocks_.push_back(std::move(block));
      sums_.push_back(std::move(sums));
    }
  patches_.resize(static_cast<size_t>(kTogether * taps_ * p.columns), 0);
}

int64_t ProductInputs::bytes() const {
  int64_t total = 0;
  for (const Sums& s : sums_)
    total += static_cast<int64_t>((s.squares.size() + s.rows.size()) * sizeof(float) + s.mean.size() * 16);
  return total + static_cast<int64_t>(patches_.size() * sizeof(float));
}

void ProductInputs::patch(const float* x, int64_t position, float* to) const {
  const int64_t c = product_.columns;
  const auto bytes = static_cast<size_t>(c) * sizeof(float);
  if (in_.empty()) {
    std::memcpy(to, x + position * c, bytes);
    return;
  }
  const size_t rank = in_.size();
  Dims o(rank), k(rank);
  for (size_t d = rank; d-- > 0; position /= out_[d]) o[d] = position % out_[d];
  for (int64_t t = 0; t < taps_; ++t, to += c) {
    int64_t rest = t;
    for (size_t d = rank; d-- > 0; rest /= window_[d].kernel) k[d] = rest % window_[d].kernel;
    int64_t from = position;  // the batch
    bool inside = true;
    for (size_t d = 0; d < rank && inside; ++d) {
      const WindowAxis& w = window_[d];
      const int64_t reach = k[d] * w.dilation;
      int64_t i = transposed_ ? o[d] + w.pad - reach : o[d] * w.stride + reach - w.pad;
      if (transposed_) inside = i % w.stride == 0, i /= w.stride;
      inside &= i >= 0 && i < in_[d];
      from = from * in_[d] + i;
    }
    if (inside)
      std::memcpy(to, x + from * c, bytes);
    else
      std::fill(to, to + c, 0.0f);
  }
}

void ProductInputs::add(const float* x) {
  int64_t positions = batches_;
  for (const int64_t d : out_) positions *= d;
  // Another first position in every sample, so that all rows and columns get their turn.
  const int64_t stride = std::max<int64_t>(1, positions / per_sample_);
  offset_ += stride / 3 + 1;
  for (int64_t i = 0; i < per_sample_; ++i) {
    patch(x, (offset_ + i * stride) % positions, patches_.data() + held_ * taps_ * product_.columns);
    if (++held_ == kTogether) flush();
  }
}

void ProductInputs::flush() {
  static const auto best_add_squares = SINTER_BEST_LOOP(add_squares);
  const int64_t length = taps_ * product_.columns;
  for (Sums& s : sums_) {
    std::fill(s.rows.begin(), s.rows.end(), 0.0f);
    for (int64_t r = 0; r < held_; ++r)
      for (size_t i = 0; i < s.places.size(); ++i) {
        const float v = patches_[static_cast<size_t>(r * length + s.places[i])];
        s.rows[static_cast<size_t>(r * s.width) + i] = v;
        s.mean[i] += static_cast<double>(v);
      }
    best_add_squares(s.rows.data(), kTogether, s.width, s.squares.data());
  }
  count_ += held_;
  held_ = 0;
}

std::vector<InputBlock> ProductInputs::take() {
  if (held_ > 0) flush();
  const double n = static_cast<double>(std::max<int64_t>(count_, 1));
  for (size_t b = 0; b < blocks_.size(); ++b) {
    InputBlock& block = blocks_[b];
    Sums& s = sums_[b];
    const size_t size = block.weights.size();
    for (double& m : s.mean) m /= n;
    block.covariance.resize(size * size);
    for (size_t i = 0; i < size; ++i)
      for (size_t j = i; j < size; ++j)
        block.covariance[i * size + j] = block.covariance[j * size + i] =
            static_cast<double>(s.squares[i * static_cast<size_t>(s.width) + j]) / n - s.mean[i] * s.mean[j];
    block.mean = std::move(s.mean);
    s = Sums{};
  }
  return std::move(blocks_);
}

}  // namespace sinter::convert
