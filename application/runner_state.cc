#include "application/runner_state.h"

#include <cstring>
#include <new>
#include <utility>

#include "application/log.h"
#include "sinter/backends.h"

namespace sinter {
namespace {

void put_dims(Text& out, std::span<const int64_t> dims) {
  out.put("[");
  for (size_t i = 0; i < dims.size(); ++i)
    out.put("%s%lld", i > 0 ? "," : "", static_cast<long long>(dims[i]));
  out.put("]");
}

// Returns the bytes of the inputs that can move along when a Runner goes on with another shape set: inputs
// with the same shape in two sets, whose places differ in the arena that the sets share.
size_t most_moving_bytes(const Model& model) {
  size_t most = 0;
  for (uint32_t e = 0; e < model.entry_count(); ++e) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < model.input_count(e); ++i) {
      const PortInfo input = model.input(i, e);
      bool moves = false;
      for (uint32_t other = 0; other < model.entry_count(); ++other)
        moves = moves || (other != e && model.takes({input.name, input.dims}, other));
      TensorView view;
      view.dtype = input.dtype;
      view.set_shape(input.dims);
      if (moves) bytes += static_cast<size_t>(view.dense_bytes());
    }
    most = std::max(most, bytes);
  }
  return most;
}
// Writes the ranges of an input: "[1,1..128]".
void put_ranges(Text& out, const Model& model, uint32_t input, uint32_t entry) {
  out.put("[");
  for (size_t i = 0; i < model.input(input, entry).dims.size(); ++i) {
    const AxisRange range = model.input_range(input, static_cast<int>(i), entry);
    if (i > 0) out.put(",");
    if (range.minimum < range.maximum) out.put("%lld..", static_cast<long long>(range.minimum));
    out.put("%lld", static_cast<long long>(range.maximum));
  }
  out.put("]");
}

}  // namespace

void Runner::State::fail_name(const char* kind, const char* name, bool input) {
  code = Code::kInvalidArgument;
  const uint32_t entry = this->entry();
  const uint32_t count = input ? model().input_count(entry) : model().output_count(entry);
  Text out{text};
  out.put("the model does not have an %s '%s'; its %ss are", kind, name != nullptr ? name : "", kind);
  for (uint32_t i = 0; i < count; ++i)
    out.put("%s '%s'", i > 0 ? "," : "", (input ? model().input(i, entry) : model().output(i, entry)).name);
}

void Runner::State::fail_values(const char* kind, const char* name, const TensorView& view,
                                std::span<const int64_t> dims, size_t width, size_t given, size_t has,
                                bool typed) {
  code = Code::kInvalidArgument;
  Text out{text};
  out.put("%s '%s' is %s", kind, name, dtype_name(view.dtype));
  put_dims(out, dims);
  const auto number = [](auto n) { return static_cast<long long>(n); };  // Windows has no %zu
  if (!typed)
    out.put(", but elements of another type, of %lld bytes, were given or asked for", number(width));
  else
    out.put(", %lld elements, but %lld were given or asked for", number(has), number(given));
}

void Runner::State::fail_shape(const char* name, std::span<const int64_t> dims) {
  code = Code::kInvalidArgument;
  Text out{text};
  bool others = false;
  for (uint32_t j = 0; j < model().input_count(entry()); ++j)
    others = others || (marks.is_set(entry(), j) && std::strcmp(model().input(j, entry()).name, name) != 0);
  const uint32_t first = sessions.first();
  out.put("no shape set %s has input '%s' as ", sessions.count() == 1 ? "that is open" : "of the file", name);
  put_dims(out, dims);
  out.put("%s; give one of these shapes:", others ? " with the other inputs as they were set" : "");
  for (uint32_t e = first; sessions.has(e); ++e)
    for (uint32_t i = 0; i < model().input_count(e); ++i) {
      out.put("%s '%s' ", i > 0 ? "," : e > first ? ";" : "", model().input(i, e).name);
      put_ranges(out, model(), i, e);
    }
}

bool Runner::State::fits(uint32_t other, uint32_t i, std::span<const int64_t> dims) const {
  const Model& of = model();
  if (of.input_count(other) != of.input_count(entry())) return false;
  for (uint32_t j = 0; j < of.input_count(entry()); ++j) {
    if (j != i && !marks.is_set(entry(), j)) continue;
    const PortInfo here = of.input(j, entry()), there = of.input(j, other);
    if (std::strcmp(here.name, there.name) != 0 || here.dtype != there.dtype) return false;
    int64_t room[kMaxRank];
    const std::span<const int64_t> wanted = j == i ? dims : shape_of(j, room);
    if (!of.takes({there.name, wanted}, other)) return false;
    // The value of an input that was set moves along as it is in memory.
    if (j != i && !std::equal(here.dims.begin(), here.dims.end(), there.dims.begin(), there.dims.end()))
      return false;
  }
  return true;
}

std::span<const int64_t> Runner::State::shape_of(uint32_t i, int64_t* room) const {
  const int rank = session().input(i).rank;
  for (int axis = 0; axis < rank; ++axis) room[axis] = session().input_length(i, axis);
  return {room, static_cast<size_t>(rank)};
}

void Runner::State::switch_to(uint32_t other, uint32_t replaced) {
  Session &from = session(), &to = sessions.of(other);
  const uint32_t before = entry();
  // All inputs are read before any is written: their places in the arena overlap.
  for (const bool writes : {false, true}) {
    std::byte* kept = moving.span().data();
    for (uint32_t j = 0; j < model().input_count(entry()); ++j) {
      if (j == replaced || !marks.is_set(before, j)) continue;
      const TensorView input = writes ? to.input(j) : from.input(j);
      const auto bytes = static_cast<size_t>(input.dense_bytes());
      if (bytes > 0) std::memcpy(writes ? input.data : kept, writes ? kept : input.data, bytes);
      kept += bytes;
      int64_t room[kMaxRank];
      if (writes) (void)to.set_shape(j, shape_of(j, room));  // fits() has found this to be possible
    }
  }
  for (uint32_t j = 0; j < model().input_count(before); ++j)
    if (j != replaced && marks.is_set(before, j)) marks.set(other, j);
  marks.forget_all_but(other);
  sessions.use(other);
}

bool Runner::State::run() {
  Status status = marks.check(model(), entry());
  if (!status.ok()) return fail(status);
  status = session().run();
  marks.forget();
  return status.ok() || fail(status);
}

Status Runner::State::start(void (*call)(void* context, Runner& runner), void* context) {
  SINTER_RETURN_IF_ERROR(worker.ready());
  SINTER_RETURN_IF_ERROR(marks.check(model(), entry()));
  cancel.store(false, std::memory_order_relaxed);
  done = call, done_context = context;
  return worker.start(
      [](void* self) {
        State& state = *static_cast<State*>(self);
        state.run();
        if (state.done == nullptr) return;
        Runner runner(&state);  // without owning it
        state.done(state.done_context, runner);
        runner.state_ = nullptr;
      },
      this);
}

Status Runner::State::time_steps(bool on) {
  for (Session& s : sessions.all()) s.set_observer(nullptr);
  clock.end();
  clock_memory.reset();
  if (!on) return ok_status();
  clock_memory.reset(new (std::nothrow) detail::Memory);
  SINTER_RETURN_UNLESS(clock_memory != nullptr, detail::kNoMemory);
  SINTER_RETURN_IF_ERROR(clock_memory->allocate(StepClock::bytes(model())));
  clock.begin(model(), clock_memory->span());
  observer = {
      this, [](void* self, const StepInfo& info) { static_cast<State*>(self)->clock.before(info); },
      [](void* self, const StepInfo& info, const OpCall&) { static_cast<State*>(self)->clock.after(info); }};
  for (Session& s : sessions.all()) s.set_observer(&observer);
  return ok_status();
}

Status detail::SharedModel::open(std::span<const std::byte> file, const RunnerOptions& options) {
  const OpenOptions open{.kernels = reference_kernels(),
                         .check_digests = options.check_digests,
                         .public_key = options.public_key,
                         .custom_ops = options.custom_ops};
  const Result<size_t> bytes = Model::open_bytes(file, open);
  SINTER_RETURN_IF_ERROR(bytes.status());
  SINTER_RETURN_IF_ERROR(memory.allocate(*bytes));
  const Result<Model> opened = Model::open(file, memory.span(), open);
  SINTER_RETURN_IF_ERROR(opened.status());
  model = *opened;
  return ok_status();
}

Status detail::SharedModel::open(const char* path, const RunnerOptions& options) {
  Result<FileMap> opened =
      FileMap::open(path, options.copy_file ? FileMap::Mode::kCopied : FileMap::Mode::kMapped);
  SINTER_RETURN_IF_ERROR(opened.status());
  map = std::move(opened.value());
  return open(map.bytes(), options);
}

Status detail::SharedModel::pack(const SessionOptions& options) {
  const Result<Requirements> needs = PackedWeights::requirements(model, options);
  SINTER_RETURN_IF_ERROR(needs.status());
  SINTER_RETURN_IF_ERROR(packed_memory.allocate(needs->bytes));
  const Result<PackedWeights> made = PackedWeights::create(model, packed_memory.span(), options);
  SINTER_RETURN_IF_ERROR(made.status());
  packed = *made;
  return ok_status();
}

Status detail::session_options(const RunnerOptions& options, std::unique_ptr<PthreadPool>* pool,
                               SessionOptions* result) {
  SINTER_RETURN_UNLESS(options.threads >= 0 && options.threads <= PthreadPool::kMostThreads,
                       invalid("a Runner cannot have %a threads; give 1 to %b, or 0 for all processors",
                               options.threads, PthreadPool::kMostThreads));
  *result = {.backends = options.backends.empty() ? default_backends() : options.backends,
             .threads = options.pool,
             .profile = options.profile,
             .backend = options.backend,
             .entry = options.entry};
  if (options.pool != nullptr || options.threads == 1) return ok_status();
  pool->reset(new (std::nothrow) PthreadPool(options.threads, options.thread_settings));
  SINTER_RETURN_UNLESS(*pool != nullptr, kNoMemory);
  result->threads = pool->get();
  return (*pool)->status();
}

Status Runner::State::create(const RunnerOptions& options, bool packs) {
  const Model& of = shared->model;
  const bool every = options.entry == kEveryEntry;
  SINTER_RETURN_UNLESS(every || options.entry < of.entry_count(),
                       invalid("the model has no entry %a; it has %b", options.entry, of.entry_count()));
  SessionOptions with;
  SINTER_RETURN_IF_ERROR(detail::session_options(options, &own_pool, &with));
  with.bindings = options.bindings;
  with.require_planned = options.require_planned;
  with.arena = options.arena;
  if (packs) SINTER_RETURN_IF_ERROR(shared->pack(with));
  with.packed_weights = &shared->packed;
  with.packed_in_file = packed_in_file();
  const Result<Requirements> needs = EntrySessions::requirements(of, with);
  SINTER_RETURN_IF_ERROR(needs.status());
  SINTER_RETURN_IF_ERROR(memory.allocate(needs.value().bytes));
  const size_t mark_bytes = InputMarks::bytes(of);
  mark_memory.reset(new (std::nothrow) uint8_t[mark_bytes]);
  SINTER_RETURN_UNLESS(mark_memory != nullptr, detail::kNoMemory);
  marks.begin(of, with, {mark_memory.get(), mark_bytes});
  if (every && of.entry_count() > 1) SINTER_RETURN_IF_ERROR(moving.allocate(most_moving_bytes(of)));
  if (logs())
    with.on_fallback = {shared, [](void* of, const Fallback& fallback) {
                          log_fallback(static_cast<detail::SharedModel*>(of)->model, fallback);
                        }};
  SINTER_RETURN_IF_ERROR(sessions.create(of, needs.value(), memory.span(), with));
  for (Session& s : sessions.all()) s.set_cancel(&cancel);
  if (logs()) log_session(session(), needs.value());
  return ok_status();
}

}  // namespace sinter
