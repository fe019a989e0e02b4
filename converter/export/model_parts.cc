#include "converter/export/model_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "converter/import/read/imported_graph.h"
#include "converter/import/read/onnx.pb.h"
#include "converter/ir/builder.h"

namespace sinter::convert {
namespace {

constexpr size_t kComputedLater = 1 << 20;

Bytes bytes_of(const ConstantPtr& constant) {
  const LoadedBytes loaded = constant->load();
  return {loaded.bytes.begin(), loaded.bytes.end()};
}

ConstantPtr transposed(const ConstantPtr& constant, const std::vector<int64_t>& perm) {
  const TransposeAttrs attrs{IntList(std::span<const int64_t>(perm))};
  ConstantPtr result = evaluated(attrs, {constant}, false);
  if (result == nullptr) throw std::logic_error("export: a constant cannot be transposed");
  return result;
}

}  // namespace

int onnx_type(DType dtype) { return static_cast<int>(dtype_to_onnx(dtype)); }

void set_tensor_type(DType dtype, const Dims& dims, onnx_pb::TypeProto* type) {
  auto* tensor = type->mutable_tensor_type();
  tensor->set_elem_type(onnx_type(dtype));
  auto* shape = tensor->mutable_shape();
  for (const int64_t d : dims) shape->add_dim()->set_dim_value(d);
}

ConstantPtr reordered(const ConstantPtr& constant, const Axes& axes) {
  const Dims dims = tensor_dims(constant->dims(), axes);
  Axes all = same_axes(constant->dims().size()), kept;
  if (same_bytes(constant->dims(), all, axes))
    return dims == constant->dims() ? constant : constant->reshaped(dims);
  for (const int a : axes)
    if (a >= 0) kept.push_back(a);
  for (const int a : all)  // of length 1
    if (std::find(kept.begin(), kept.end(), a) == kept.end()) kept.push_back(a);
  const std::vector<int64_t> perm(kept.begin(), kept.end());
  if (constant->byte_size() < kComputedLater) return transposed(constant, perm)->reshaped(dims);
  return Constant::lazy(constant->dtype(), dims,
                        [constant, perm] { return bytes_of(transposed(constant, perm)); });
}

std::string ModelParts::unique(const std::string& name, const char* otherwise) {
  const std::string base = name.empty() ? otherwise : name;
  if (names_.insert(base).second) return base;
  for (int& n = counts_[base];;)
    if (std::string next = fmt::format("{}_{}", base, ++n); names_.insert(next).second) return next;
}

std::string ModelParts::unique_node(const std::string& name) {
  const std::string base = name.empty() ? "node" : name;
  if (node_names_.insert(base).second) return base;
  for (int& n = counts_["node " + base];;)
    if (std::string next = fmt::format("{}_{}", base, ++n); node_names_.insert(next).second) return next;
}

std::string ModelParts::initializer(const ConstantPtr& constant, const Axes& axes, const std::string& name) {
  Axes key = axes;
  for (int& a : key)
    if (a >= 0 && constant->dims()[static_cast<size_t>(a)] == 1) a = -1;
  std::string& known = of_constants_[{constant.get(), {tensor_dims(constant->dims(), axes), key}}];
  if (known.empty()) {
    known = unique(name, "constant");
    initializers_.push_back({known, reordered(constant, axes)});
  }
  return known;
}

std::string ModelParts::scalar(DType dtype, double value) {
  std::string& known = small_[{dtype, fmt::format("{:a}", value)}];
  if (known.empty()) {
    known = unique(fmt::format("{}_{:g}", dtype_name(dtype), value));
    initializers_.push_back({known, Constant::scalar(dtype, value)});
  }
  return known;
}

std::string ModelParts::ints(const std::vector<int64_t>& values) {
  std::string& known = small_[{DType::kInt64, fmt::format("[{}]", fmt::join(values, ","))}];
  if (known.empty()) {
    // Named after the numbers, so that the name does not depend on the first node that reads them.
    known = unique(fmt::format("ints_{}", fmt::join(values, "_")));
    initializers_.push_back({known, Constant::int64s(values)});
  }
  return known;
}

void ModelParts::keep_initializers(const std::vector<std::string>& names) {
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
  std::erase_if(initializers_, [&](const Initializer& i) { return places.count(i.name) == 0; });
  std::sort(initializers_.begin(), initializers_.end(),
            [&](const Initializer& a, const Initializer& b) { return places[a.name] < places[b.name]; });
}

}  // namespace sinter::convert
