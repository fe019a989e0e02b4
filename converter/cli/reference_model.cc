#include "converter/cli/reference_model.h"

#include <fmt/format.h>

#include "converter/cli/file_view.h"
#include "converter/diagnostics/errors.h"
#include "converter/files/temporary_folder.h"
#include "converter/import/caches/narrow_caches.h"
#include "converter/import/caches/roles.h"
#include "converter/ir/builder.h"
#include "converter/ir/deep_copy.h"
#include "converter/ir/quant_params.h"

namespace sinter::convert {
Arrays in_float64(const Arrays& arrays) {
  Arrays out;
  for (const auto& [name, array] : arrays) {
    std::vector<ConstantPtr> wide{array};
    if (is_float(array->dtype()) &&
        !evaluate(CastAttrs{static_cast<int64_t>(DType::kFloat64), 1}, {array}, 1, &wide).ok())
      throw DataError(fmt::format("array '{}' cannot be widened", name));
    out.emplace_back(name, wide[0]);
  }
  return out;
}

void take_states(const Model& model, LoweringOptions* lowering) {
  const FileView view(model);
  const fb::Program& program = view.entry_program();
  bool context = false;
  for (uint32_t i = 0; i < model.state_count(); ++i)
    context |= model.state(i).input == std::string_view(ContextRoles::kPosition);
  const auto is_scales = [](std::string_view name) { return name.ends_with(kCacheScales); };
  for (uint32_t i = 0; i < model.state_count(); ++i) {
    const StateInfo state = model.state(i);
    const Dims dims(state.dims.begin(), state.dims.end());
    // The states that --max-context added are added again.
    if (context && (state.input == std::string_view(ContextRoles::kPosition) || is_scales(state.input)))
      continue;
    if (context && dims.size() == 4 && lowering->max_context == 0)
      lowering->max_context = dims[ContextRoles::kLengthAxis];
    lowering->states.emplace_back(state.output, state.input);
    lowering->shapes[state.input] = dims;
    if (state.starts_at_zero) continue;
    const int32_t constant = program.values()->Get(program.states()->Get(i)->value())->initial();
    const fb::Constant& initial = *view.root().constants()->Get(static_cast<uint32_t>(constant));
    const std::byte* data = detail::constant_data(*model.state(), initial);
    lowering->initial_states[state.input] =
        Constant::owned(state.dtype, dims, Bytes(data, data + dense_bytes(state.dtype, dims)));
  }
}

std::unique_ptr<OpenModel> open_reference(const ImportedModel& onnx, const LoweringOptions& lowering,
                                          Diagnostics& diagnostics, bool wide) {
  std::optional<Graph> graph = lower_model(onnx, lowering, diagnostics);
  if (!graph || diagnostics.refused()) return nullptr;
  // Integers get the scales that single nodes state.
  for (const Node& node : graph->nodes)
    if (const auto params = quant_params(*graph, node)) {
      Value& q = graph->value(node.as<QuantizeAttrs>() != nullptr ? node.outputs[0] : node.inputs[0]);
      if (!q.constant) q.scale = params->scale, q.zero_point = params->zero_point;
    }
  if (wide) *graph = to_float64(*graph);
  remove_dead_nodes(*graph);
  compact_values(*graph);
  const TemporaryFile file("model.sinter");
  emit_model(plan_model(deep_copy(*graph), {}), file.path());
  return std::make_unique<OpenModel>(
      LoadedModel(file.path(), std::nullopt, LoadedModel::Reading::kMapped, lowering.custom_ops));
}

}  // namespace sinter::convert
