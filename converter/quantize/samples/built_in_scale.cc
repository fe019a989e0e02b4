#include "converter/quantize/samples/built_in_scale.h"

#include <algorithm>

#include "converter/import/byte_inputs.h"

namespace sinter::convert {
namespace {

bool is_preprocessing(const Node& node) { return node.origin == kByteInputOrigin; }

class NumberSamples final : public SampleSource {
 public:
  NumberSamples(std::unique_ptr<SampleSource> source, const BuiltInScale& parts, const RunnerOptions& options)
      : source_(std::move(source)), in_bytes_(parts.in_bytes), runner_(parts.scale, options) {}

  int64_t count() const override { return source_->count(); }
  bool is_file() const override { return source_->is_file(); }
  void rewind() override { source_->rewind(); }

  bool next(Sample* sample) override {
    if (!source_->next(sample)) return false;
    runner_.run(*sample);
    for (size_t i = 0; i < in_bytes_.size(); ++i) (*sample)[in_bytes_[i]] = copy_of(runner_.output(i));
    return true;
  }

 private:
  std::unique_ptr<SampleSource> source_;
  const std::vector<size_t> in_bytes_;
  GraphRunner runner_;
};

}  // namespace

std::optional<BuiltInScale> split_built_in_scale(const Graph& graph) {
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_preprocessing)) return std::nullopt;
  BuiltInScale parts{graph, {}, graph};
  parts.scale.outputs.clear();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string name = graph.value(graph.inputs[i]).name;
    const auto is_part = [&](const Node& n) { return is_preprocessing(n) && n.name == name; };
    const auto last = std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), is_part);
    if (last == graph.nodes.rend()) continue;
    const ValueId numbers = last->outputs[0];
    parts.scale.outputs.push_back(numbers);
    parts.in_bytes.push_back(i);
    std::erase_if(parts.network.nodes, is_part);
    parts.network.value(graph.inputs[i]).name.clear();
    parts.network.value(numbers).name = name;
    parts.network.inputs[i] = numbers;
  }
  parts.scale.bindable_outputs.clear();
  remove_dead_nodes(parts.scale);
  return parts;
}

std::unique_ptr<SampleSource> behind_scale(std::unique_ptr<SampleSource> source, const BuiltInScale& parts,
                                           const RunnerOptions& options) {
  return std::make_unique<NumberSamples>(std::move(source), parts, options);
}

}  // namespace sinter::convert
