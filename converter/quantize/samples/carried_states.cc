#include "converter/quantize/samples/carried_states.h"

#include <algorithm>

namespace sinter::convert {
namespace {

class StatefulSamples final : public SampleSource {
 public:
  StatefulSamples(std::unique_ptr<SampleSource> source, const Graph& graph, const RunnerOptions& options,
                  int64_t sequence, int64_t most)
      : source_(std::move(source)), runner_(graph, options), sequence_(sequence), most_(most) {}

  int64_t count() const override {
    const int64_t all = source_->count();
    return all < 0 || most_ < 0 ? all : std::min(all, most_);
  }
  bool is_file() const override { return source_->is_file(); }
  void rewind() override { source_->rewind(), runner_.reset(), next_ = 0; }

  bool next(Sample* sample) override {
    if (next_ == most_) return false;
    Sample given;
    if (!source_->next(&given)) return false;
    if (sequence_ > 0 && next_ % sequence_ == 0) runner_.reset();
    *sample = runner_.complete(given);
    runner_.run(given);
    ++next_;
    return true;
  }

 private:
  std::unique_ptr<SampleSource> source_;
  StatefulRunner runner_;
  const int64_t sequence_, most_;
  int64_t next_ = 0;
};

ConstantPtr zeros(const Value& v) {
  return Constant::owned(v.dtype, v.dims, Bytes(dense_bytes(v.dtype, v.dims)));
}

}  // namespace

StatefulRunner::StatefulRunner(const Graph& graph, const RunnerOptions& options)
    : states_(graph.states), state_of_(graph.inputs.size(), -1), runner_(graph, options) {
  for (size_t i = 0; i < states_.size(); ++i) {
    state_of_[states_[i].input] = static_cast<int>(i);
    initial_.push_back(states_[i].initial ? states_[i].initial
                                          : zeros(graph.value(graph.inputs[states_[i].input])));
  }
  reset();
}

void StatefulRunner::reset() { now_ = initial_; }

Sample StatefulRunner::complete(const Sample& given) const {
  Sample sample;
  size_t next = 0;
  for (const int state : state_of_)
    sample.push_back(state >= 0 ? now_[static_cast<size_t>(state)] : given[next++]);
  return sample;
}

void StatefulRunner::run(const Sample& given) {
  runner_.run(complete(given));
  for (size_t i = 0; i < states_.size(); ++i) {
    const TensorView view = runner_.output(states_[i].output);
    now_[i] =
        Constant::owned(view.dtype, initial_[i]->dims(), Bytes(view.data, view.data + view.dense_bytes()));
  }
}

std::unique_ptr<SampleSource> with_states(std::unique_ptr<SampleSource> source, const Graph& graph,
                                          const RunnerOptions& options, int64_t sequence, int64_t most) {
  return std::make_unique<StatefulSamples>(std::move(source), graph, options, sequence, most);
}

}  // namespace sinter::convert
