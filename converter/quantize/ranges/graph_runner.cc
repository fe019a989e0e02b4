// GraphRunner: plan, map, open, run.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>

#include "converter/diagnostics/errors.h"
#include "converter/emit/mapped_model.h"
#include "converter/ir/custom_operators.h"
#include "converter/ir/deep_copy.h"
#include "converter/ir/large_bytes.h"
#include "converter/ir/weight_memory.h"
#include "converter/plan/planner.h"
#include "converter/quantize/ranges/kept_packings.h"
#include "converter/quantize/ranges/observe.h"
#include "converter/target/target_names.h"
#include "converter/target/target_platforms.h"
#include "sinter/sinter.h"

namespace sinter::convert {
namespace {

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Memory = std::unique_ptr<std::byte, Free>;
Memory aligned(size_t bytes) {
  const size_t whole =
      (std::max<size_t>(bytes, 1) + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, whole)));
  if (!memory) throw std::bad_alloc();
  return memory;
}

std::string said(const Status& status) {
  char text[400];
  format_status(status, text);
  return text;
}

// A copy of a constant that is not at a page of a file, for all runs of graphs that have the constant.
struct PagedBytes {
  static constexpr int kKind = 2;  // after those of integer_weights.cc
  HeldBytes held;
  size_t bytes() const { return held.bytes.size(); }
};

HeldBytes at_page(const ConstantPtr& constant) {
  if (!constant->is_lazy())
    if (const LoadedBytes loaded = constant->load(); begins_at_page(loaded.bytes))
      return {loaded.owner, loaded.bytes};
  return WeightMemory::of<PagedBytes>(constant, 0,
                                      [&] {
                                        const LoadedBytes loaded = constant->load();
                                        if (auto copy = copy_to_pages(loaded.bytes)) return PagedBytes{*copy};
                                        return PagedBytes{{loaded.owner, loaded.bytes}};
                                      })
      ->held;
}

// Planning renumbers values; their names carry the numbers that they had.
std::string numbered(size_t id) { return fmt::format("#{}", id); }
ValueId number(const std::string& name) {
  ValueId id = kAbsent;
  if (name.size() < 2 || name[0] != '#') return kAbsent;
  const char* const end = name.data() + name.size();
  const auto [stop, fault] = std::from_chars(name.data() + 1, end, id);
  return fault == std::errc() && stop == end ? id : kAbsent;
}

}  // namespace

struct GraphRunner::Impl {
  struct Seen {
    ValueId id;       // the original's
    TensorView view;  // without data
    uint64_t offset;  // in the arena
  };

  MappedModel file;
  Memory model_memory, memory;
  FileMemory released_memory;  // in place of `memory`, of large sessions
  std::vector<const sinter_custom_op*> custom_ops;
  Model model;
  std::vector<std::unique_ptr<KeepingBackend>> keeping;
  std::vector<Backend*> backends;  // of the session
  Session session;
  PlannedProgram program;
  std::vector<ValueId> original;  // per planned value
  std::vector<int> ready;         // per planned value: the step after which it is whole; -1: an input
  std::vector<std::vector<Seen>> watched;  // per step, from 1; 0: before the first
  std::byte* arena = nullptr;
  const Watcher* watcher = nullptr;
  StepObserver observer;

  bool is_large(size_t session_bytes, size_t most_resident) const {
    return file.bytes().size() + session_bytes > most_resident;
  }
  void keep_packings(KeptPackings& packings) {
    for (Backend*& backend : backends) {
      if (backend->memory() != nullptr) continue;
      keeping.push_back(std::make_unique<KeepingBackend>(*backend, packings, file));
      backend = keeping.back().get();
    }
  }
  std::span<std::byte> session_memory(size_t bytes, size_t most_resident) {
    if (is_large(bytes, most_resident)) {
      released_memory = FileMemory(bytes);
      if (!released_memory.span().empty()) return released_memory.span();
    }
    memory = aligned(bytes);
    return {memory.get(), bytes};
  }
  void settle_ready() {
    const Graph& graph = *program.graph;
    ready.assign(graph.values.size(), -2);
    for (const ValueId id : graph.inputs) ready[static_cast<size_t>(id)] = -1;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      int when = static_cast<int>(n);
      if (program.steps[n].elided) {
        when = -1;
        for (const ValueId id : graph.nodes[n].inputs)
          if (id >= 0) when = std::max(when, ready[static_cast<size_t>(id)]);
      }
      for (const ValueId id : graph.nodes[n].outputs)
        if (id >= 0) ready[static_cast<size_t>(id)] = when;
    }
  }
  // Everything that was planned is in one region.
  void find_arena() {
    const auto meet = [&](const TensorView& view, ValueId id) {
      std::byte* const base = view.data - program.values[static_cast<size_t>(id)].offset;
      if (arena != nullptr && base != arena) throw std::logic_error("a session has more than one arena");
      arena = base;
    };
    const Graph& graph = *program.graph;
    for (size_t i = 0; i < session.input_count(); ++i) meet(session.input(i), graph.inputs[i]);
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      if (!graph.is_constant(graph.outputs[i])) meet(session.output(i), graph.outputs[i]);
  }
  void show(size_t slot) const {
    for (const Seen& seen : watched[slot]) {
      TensorView view = seen.view;
      view.data = arena + seen.offset;
      (*watcher)(seen.id, view);
    }
  }
};

GraphRunner::GraphRunner(const Graph& graph, const RunnerOptions& options) : impl_(std::make_unique<Impl>()) {
  auto copy = deep_copy(graph);
  for (size_t i = 0; i < copy->values.size(); ++i) copy->values[i].name = numbered(i);
  // Samples hold the values of states.
  copy->states.clear();
  PlanOptions plan_options;
  plan_options.target = host_target();
  plan_options.platforms = platforms_for(plan_options.target);
  plan_options.strides = options.strides;
  PlannedModel plan = plan_model(std::move(copy), plan_options);
  impl_->file = MappedModel(plan, at_page);
  impl_->program = std::move(plan.programs.front());
  impl_->custom_ops = custom_ops_of(graph);
  const OpenOptions open{
      .kernels = reference_kernels(), .check_digests = false, .custom_ops = impl_->custom_ops};
  Result<size_t> need = Model::open_bytes(impl_->file.bytes(), open);
  if (!need.ok()) throw std::logic_error("a planned graph cannot be opened: " + said(need.status()));
  impl_->model_memory = aligned(*need);
  Result<Model> model = Model::open(impl_->file.bytes(), {impl_->model_memory.get(), *need}, open);
  if (!model.ok()) throw std::logic_error("a planned graph cannot be opened: " + said(model.status()));
  impl_->model = *model;
  SessionOptions session_options;
  impl_->backends = options.backends;
  session_options.backends = impl_->backends;
  session_options.threads = options.threads;
  session_options.backend = options.backend.empty() ? nullptr : options.backend.c_str();
  Result<Requirements> needs = Session::requirements(*model, session_options);
  if (!needs.ok()) throw std::logic_error("a planned graph has no session: " + said(needs.status()));
  if (needs->bytes > options.most_bytes)
    throw DataError(
        fmt::format("running the network takes {} bytes, more than {}", needs->bytes, options.most_bytes));
  if (options.packings != nullptr && impl_->is_large(needs->bytes, options.most_resident)) {
    impl_->keep_packings(*options.packings);
    needs = Session::requirements(*model, session_options);
    if (!needs.ok()) throw std::logic_error("a planned graph has no session: " + said(needs.status()));
  }
  Result<Session> session =
      Session::create(*model, impl_->session_memory(needs->bytes, options.most_resident), session_options);
  if (!session.ok()) throw std::logic_error("a planned graph has no session: " + said(session.status()));
  impl_->session = std::move(*session);

  for (const Value& v : impl_->program.graph->values) impl_->original.push_back(number(v.name));
  impl_->watched.resize(impl_->program.steps.size() + 1);
  impl_->settle_ready();
  impl_->find_arena();
  impl_->observer.context = impl_.get();
  impl_->observer.after = [](void* self, const StepInfo& info, const OpCall&) {
    if (!info.in_body) static_cast<Impl*>(self)->show(info.step + 1);
  };
}

GraphRunner::~GraphRunner() { impl_->session.destroy(); }

void GraphRunner::watch(std::span<const ValueId> values) {
  const Graph& graph = *impl_->program.graph;
  for (auto& list : impl_->watched) list.clear();
  std::vector<ValueId> wanted(values.begin(), values.end());
  std::sort(wanted.begin(), wanted.end());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& v = graph.values[i];
    const PlannedValue& place = impl_->program.values[i];
    if (impl_->ready[i] < -1 || !place.placed ||
        !std::binary_search(wanted.begin(), wanted.end(), impl_->original[i]))
      continue;
    TensorView view;
    view.dtype = v.dtype;
    view.set_shape(v.dims);
    impl_->watched[static_cast<size_t>(impl_->ready[i] + 1)].push_back(
        {impl_->original[i], view, place.offset});
  }
}

void GraphRunner::run(const Sample& sample, const Watcher& watcher) {
  Session& session = impl_->session;
  if (sample.size() != session.input_count()) throw std::logic_error("a sample of another graph");
  for (size_t i = 0; i < sample.size(); ++i) {
    const TensorView view = session.input(i);
    const LoadedBytes loaded = sample[i]->load();
    if (sample[i]->dtype() != view.dtype) throw std::logic_error("a sample of another graph");
    const auto bytes = static_cast<size_t>(view.dense_bytes());
    const bool whole = loaded.bytes.size() == bytes;
    // Padding has no part in results, but in the ranges of values: zeros.
    if (!whole) std::memset(view.data, 0, bytes);
    const std::span<const int64_t> maxima(view.dims, static_cast<size_t>(view.rank)), own = sample[i]->dims();
    if (!session.write_input(static_cast<uint32_t>(i), loaded.bytes, whole ? maxima : own).ok())
      throw std::logic_error("a sample of another graph");
  }
  impl_->watcher = &watcher;
  if (watcher) impl_->show(0);
  session.set_observer(watcher ? &impl_->observer : nullptr);
  const Status status = session.run();
  session.set_observer(nullptr);
  impl_->watcher = nullptr;
  if (!status.ok()) throw DataError("a run on the data failed: " + said(status));
  clear_padding();
}

// Zeros beyond the lengths, which count in no measure of the outputs.
void GraphRunner::clear_padding() const {
  const Session& session = impl_->session;
  for (uint32_t i = 0; i < session.output_count(); ++i) {
    const TensorView view = session.output(i);
    for (int axis = 0; axis < view.rank; ++axis) {
      const int64_t dim = view.dims[axis], length = session.output_length(i, axis);
      int64_t outer = 1, inner = static_cast<int64_t>(byte_width(view.dtype));
      for (int a = 0; a < axis; ++a) outer *= view.dims[a];
      for (int a = axis + 1; a < view.rank; ++a) inner *= view.dims[a];
      for (int64_t o = 0; length < dim && o < outer; ++o)
        std::memset(view.data + (o * dim + length) * inner, 0, static_cast<size_t>((dim - length) * inner));
    }
  }
}

TensorView GraphRunner::output(size_t index) const { return impl_->session.output(index); }

ConstantPtr copy_of(const TensorView& view) {
  const auto shape = view.shape();
  return Constant::owned(view.dtype, Dims(shape.begin(), shape.end()),
                         Bytes(view.data, view.data + view.dense_bytes()));
}

}  // namespace sinter::convert
