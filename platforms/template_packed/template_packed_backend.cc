#include "platforms/template_packed/template_packed_backend.h"

#include <algorithm>

#include "platforms/template_packed/platform.h"

namespace sinter {
namespace {

constexpr int64_t kColumns = 8;

// Weights [columns, depth] as [columns / 8, depth, 8], with zeros behind the last column.
struct PackedShape {
  int64_t columns, depth, panels;
  explicit PackedShape(const OpCall& call)
      : columns(call.in(1).dims[0]), depth(call.in(1).dims[1]), panels((columns + kColumns - 1) / kColumns) {}
};

// state: the packed weights.
Status multiply(void* state, const OpCall& call, RunContext&) {
  const auto& a = call.attrs<FullyConnectedAttrs>();
  const PackedShape shape(call);
  const auto low = static_cast<float>(a.act_min), high = static_cast<float>(a.act_max);
  const float* bias = call.has_input(2) ? call.in(2).as<const float>() : nullptr;
  const auto* x = call.in(0).as<const float>();
  auto* y = call.out(0).as<float>();
  for (int64_t rows = call.out(0).size() / std::max<int64_t>(shape.columns, 1); rows > 0; --rows) {
    const auto* packed = static_cast<const float*>(state);
    for (int64_t column = 0; column < shape.columns; column += kColumns) {
      float sums[kColumns] = {};
      for (int64_t k = 0; k < shape.depth; ++k, packed += kColumns)
        for (int64_t i = 0; i < kColumns; ++i) sums[i] += x[k] * packed[i];
      for (int64_t i = 0; i < std::min(kColumns, shape.columns - column); ++i) {
        const float sum = bias != nullptr ? sums[i] + bias[column + i] : sums[i];
        y[column + i] = sum < low ? low : sum > high ? high : sum;
      }
    }
    x += shape.depth, y += shape.columns;
  }
  return ok_status();
}

}  // namespace

Status TemplatePackedBackend::measure(const OpCall& call, int threads, StepNeeds* needs) {
  *needs = {};
  SINTER_RETURN_UNLESS(call.in_host_memory(), unsupported("the operands are in device memory"));
  SINTER_RETURN_IF_ERROR(
      template_packed_platform.accept({.architecture = kHostArchitecture}, call, threads, &needs->workspace));
  const PackedShape shape(call);
  const auto bytes = static_cast<size_t>(shape.panels * kColumns * shape.depth) * sizeof(float);
  needs->packing = {std::max(align_up(bytes, kBufferAlignment), kBufferAlignment), 1u << 1, {}};
  needs->packed = needs->packing.inputs;
  return ok_status();
}

Status TemplatePackedBackend::pack(const OpCall& call, std::span<std::byte> packed, ThreadPool*) {
  const PackedShape shape(call);
  const auto* weights = call.in(1).as<const float>();
  auto* to = reinterpret_cast<float*>(packed.data());
  for (int64_t column = 0; column < shape.panels * kColumns; column += kColumns)
    for (int64_t k = 0; k < shape.depth; ++k)
      for (int64_t i = column; i < column + kColumns; ++i)
        *to++ = i < shape.columns ? weights[i * shape.depth + k] : 0.0f;
  return ok_status();
}

Status TemplatePackedBackend::prepare(const OpCall&, const Preparation& with, PreparedStep* step) {
  *step = {multiply, const_cast<std::byte*>(with.packed.data())};
  return ok_status();
}

}  // namespace sinter
