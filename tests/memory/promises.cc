#include "tests/memory/promises.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tests/memory/dead_memory.h"
#include "tests/memory/watch.h"

namespace sinter::test {
namespace {

std::string text_of(const Status& status) {
  char text[400];
  format_status(status, text);
  return text;
}

constexpr size_t kNone = 0;  // padding

Guarded tight(size_t bytes) { return Guarded(bytes, Flush::kEnd, kNone); }

// A session in exactly the memory that it needs, or in more.
struct Living {
  Guarded memory;
  Requirements needs;
  Session session;
  Status status;

  explicit Living(const Use& use, size_t more = 0) {
    const auto needed = Session::requirements(use.model, use.options);
    if (status = needed.status(); !status.ok()) return;
    needs = needed.value();
    memory = tight(needs.bytes + more);
    auto created = Session::create(use.model, memory.span(), use.options);
    if (status = created.status(); status.ok()) session = std::move(created.value());
  }
  ~Living() { session.destroy(); }

  void fill(const Use& use) {
    for (uint32_t i = 0; i < session.input_count(); ++i)
      if (!use.inputs[i].empty())
        std::memcpy(session.input(i).data, use.inputs[i].data(), use.inputs[i].size());
  }
  std::vector<Bytes> outputs() const {
    std::vector<Bytes> all;
    for (uint32_t i = 0; i < session.output_count(); ++i) {
      const TensorView v = session.output(i);
      all.emplace_back(v.data, v.data + v.dense_bytes());
    }
    return all;
  }
};

// The outputs of two runs, which state may make different.
Finding two_runs(Living& living, const Use& use, std::vector<Bytes>* results) {
  results->clear();
  for (int run = 0; run < 2; ++run) {
    living.fill(use);
    if (const Status s = living.session.run(); !s.ok()) return "a run fails: " + text_of(s);
    for (Bytes& b : living.outputs()) results->push_back(std::move(b));
  }
  return {};
}

Finding expected_results(const Use& use, std::vector<Bytes>* results) {
  Living ample(use, 1 << 16);
  if (!ample.status.ok()) return "the session is refused: " + text_of(ample.status);
  return two_runs(ample, use, results);
}

// Whether one more run leaves every byte of the session's memory as it is.
bool settled(Living& living, const Use& use) {
  const std::span<const std::byte> memory = living.memory.span();
  const Bytes before(memory.begin(), memory.end());
  living.fill(use);
  return living.session.run().ok() && std::equal(before.begin(), before.end(), memory.begin());
}

// Empty where `status` refuses `given` bytes and names `needed`.
Finding judge_refusal(const Status& status, size_t needed, size_t given) {
  const std::string at = std::to_string(given) + " of " + std::to_string(needed) + " bytes: ";
  if (status.ok()) return at + "accepted";
  if (status.code != Code::kOutOfMemory || status.a != static_cast<int64_t>(needed) ||
      status.b != static_cast<int64_t>(given))
    return at + text_of(status);
  return {};
}

// 0 .. needed - 1 in at most about `attempts` steps, always the first and the last 64.
std::vector<size_t> sizes_below(size_t needed, size_t attempts) {
  std::vector<size_t> sizes;
  const size_t stride = needed / std::max<size_t>(attempts, 1) + 1;
  for (size_t n = 0; n < needed; ++n)
    if (n < 64 || needed - n <= 64 || n % stride == 0) sizes.push_back(n);
  return sizes;
}

// Notes the first step after which more has been seen than before.
struct Blame {
  std::string_view backend;
  uint32_t program = 0, step = 0;
  int64_t before = 0;
  bool found = false;
  StepObserver observer{this, nullptr, [](void* self, const StepInfo& info, const OpCall&) {
                          static_cast<Blame*>(self)->after(info);
                        }};
  void after(const StepInfo& info) {
    if (found || seen_so_far() == before) return;
    found = true, backend = info.backend, program = info.program, step = info.step;
  }
  std::string text(const Model& model) const {
    if (!found) return "no step";
    return "program " + std::to_string(program) + " step " + std::to_string(step) + " " +
           model.step_op(step, program) + " '" + model.step_name(step, program) + "' on " +
           std::string(backend);
  }
};

}  // namespace

OpenedFile::OpenedFile(std::span<const std::byte> file) : file_(tight(file.size())) {
  std::memcpy(file_.data(), file.data(), file.size());
  const OpenOptions options{.kernels = reference_kernels()};
  const auto needed = Model::open_bytes(file_.span(), options);
  if (status_ = needed.status(); !status_.ok()) return;
  memory_ = tight(needed.value());
  const auto opened = Model::open(file_.span(), memory_.span(), options);
  if (status_ = opened.status(); status_.ok()) model_ = opened.value();
}

std::vector<Bytes> harmless_inputs(const Model& model) {
  std::vector<Bytes> all;
  for (uint32_t i = 0; i < model.input_count(); ++i) {
    const PortInfo port = model.input(i);
    TensorView view;
    view.dtype = port.dtype;
    view.set_shape(port.dims);
    Bytes bytes(static_cast<size_t>(view.dense_bytes()));
    if (port.dtype == DType::kFloat32)
      for (size_t k = 0; k + 4 <= bytes.size(); k += 4) {
        const float x = static_cast<float>(k / 4 * 37 % 101) / 101 - 0.3f;
        std::memcpy(bytes.data() + k, &x, 4);
      }
    all.push_back(std::move(bytes));
  }
  return all;
}

Finding check_opening(std::span<const std::byte> file) {
  Guarded copy = tight(file.size());
  std::memcpy(copy.data(), file.data(), file.size());
  const OpenOptions options{.kernels = reference_kernels()};
  const auto needed = Model::open_bytes(copy.span(), options);
  if (!needed.ok()) return text_of(needed.status());
  for (const size_t n : sizes_below(needed.value(), 2000)) {
    Guarded memory = tight(n);
    const Status s = Model::open(copy.span(), memory.span(), options).status();
    if (const Finding f = judge_refusal(s, needed.value(), n); !f.empty()) return "opening in " + f;
    if (!memory.clean()) return "opening in " + std::to_string(n) + " bytes writes outside of them";
  }
  Guarded memory = tight(needed.value());
  const auto opened = Model::open(copy.span(), memory.span(), options);
  if (!opened.ok()) return "opening in just enough: " + text_of(opened.status());
  return memory.clean() ? "" : "opening writes outside of its memory";
}

Finding check_creation(const Use& use, size_t attempts) {
  std::vector<Bytes> expected, results;
  if (Finding f = expected_results(use, &expected); !f.empty()) return f;
  auto needs = Session::requirements(use.model, use.options);
  if (!needs.ok()) return text_of(needs.status());
  if (needs->bytes != needs->control + needs->arena + needs->prepared || needs->arena < needs->shareable)
    return "the parts do not add up";
  for (const size_t n : sizes_below(needs->bytes, attempts)) {
    Guarded memory = tight(n);
    const auto created = Session::create(use.model, memory.span(), use.options);
    if (const Finding f = judge_refusal(created.status(), needs->bytes, n); !f.empty())
      return "creating in " + f;
    if (!memory.clean()) return "creating in " + std::to_string(n) + " bytes writes outside of them";
  }
  Living living(use);
  if (!living.status.ok()) return "creating in just enough: " + text_of(living.status);
  if (Finding f = two_runs(living, use, &results); !f.empty()) return f;
  if (results != expected) return "the results depend on how much memory there is";
  living.session.destroy();
  return living.memory.clean() ? "" : "the session writes outside of its memory";
}

Finding check_packed(const Use& use, size_t attempts) {
  std::vector<Bytes> expected, results;
  if (Finding f = expected_results(use, &expected); !f.empty()) return f;
  const auto packing = PackedWeights::requirements(use.model, use.options);
  if (!packing.ok()) return text_of(packing.status());
  const size_t needed = packing.value().bytes;
  for (const size_t n : sizes_below(needed, attempts)) {
    Guarded memory = tight(n);
    const Status s = PackedWeights::create(use.model, memory.span(), use.options).status();
    if (const Finding f = judge_refusal(s, needed, n); !f.empty()) return "packing in " + f;
    if (!memory.clean()) return "packing in " + std::to_string(n) + " bytes writes outside of them";
  }
  Guarded memory = tight(needed);
  const auto packed = PackedWeights::create(use.model, memory.span(), use.options);
  if (!packed.ok()) return "packing in just enough: " + text_of(packed.status());
  const Bytes before(memory.span().begin(), memory.span().end());
  Use sharing = use;
  sharing.options.packed_weights = &packed.value();
  auto needs = Session::requirements(use.model, sharing.options);
  if (!needs.ok()) return text_of(needs.status());
  if (needs->packed != 0)
    return std::to_string(needs->packed) + " bytes that are packed already are packed by a session";
  if (Finding f = check_creation(sharing, attempts); !f.empty()) return "with packed weights: " + f;
  Living first(sharing), second(sharing);
  for (Living* living : {&first, &second}) {
    if (!living->status.ok()) return text_of(living->status);
    if (Finding f = two_runs(*living, use, &results); !f.empty()) return f;
    if (results != expected) return "packed weights change the results";
  }
  if (!std::equal(before.begin(), before.end(), memory.data())) return "a session writes to packed weights";
  return memory.clean() ? "" : "packing writes outside of its memory";
}

Finding check_shared_arena(const Use& use) {
  std::vector<Bytes> expected;
  if (Finding f = expected_results(use, &expected); !f.empty()) return f;
  const auto own = Session::requirements(use.model, use.options);
  if (!own.ok()) return text_of(own.status());
  const size_t shareable = own->shareable;
  if (shareable + own->state != own->arena) return "the parts of the arena do not add up";
  Guarded memory = tight(shareable), small = tight(shareable > 0 ? shareable - 1 : 0);
  SharedArena arena(memory.span()), small_arena(small.span());
  Use sharing = use;
  if (shareable > 0) {
    sharing.options.arena = &small_arena;
    const Living refused(sharing);
    if (const Finding f = judge_refusal(refused.status, shareable, shareable - 1); !f.empty())
      return "sharing an arena of " + f;
  }
  for (const std::byte poison : {std::byte{0xff}, std::byte{0x3f}}) {
    sharing.options.arena = &arena;
    Living living(sharing);
    if (!living.status.ok()) return "the session is refused: " + text_of(living.status);
    if (living.needs.bytes != living.needs.control + living.needs.state + living.needs.prepared)
      return "the parts do not add up";
    const size_t count = living.session.output_count();
    Guarded next = tight(living.needs.bytes);
    for (size_t run = 0; run < 2; ++run) {
      std::memset(memory.data(), static_cast<int>(poison), shareable);
      living.fill(sharing);
      if (!arena.take()) return "the arena is still taken";
      if (living.session.run().code != Code::kInvalidArgument) return "a run takes an arena that is taken";
      arena.give_back();
      if (const Status s = living.session.run(); !s.ok()) return "a run fails: " + text_of(s);
      const std::vector<Bytes> results = living.outputs();
      if (!std::equal(results.begin(), results.end(), expected.begin() + static_cast<ptrdiff_t>(run * count)))
        return "run " + std::to_string(run) + " differs if the arena is overwritten with " +
               std::to_string(static_cast<int>(poison));
      if (run > 0) break;
      if (const Status s = living.session.move_to(next.span(), sharing.options); !s.ok())
        return "moving fails: " + text_of(s);
      std::memset(living.memory.data(), 0xff, living.memory.span().size());
    }
    if (!memory.clean() || !next.clean() || !living.memory.clean())
      return "the session writes outside of its memory";
    living.session.destroy();
  }
  return {};
}

Finding check_dead_memory(const Use& use) {
  std::vector<Bytes> expected, results;
  if (Finding f = expected_results(use, &expected); !f.empty()) return f;
  Living living(use);
  if (!living.status.ok()) return text_of(living.status);
  // Several poisons: one may be a number that changes nothing.
  for (const int poison : {0xff, 0xa5, 0x00, 0x3f}) {
    DeadMemory dead(use.model, use.options, living.memory.data() + living.needs.control,
                    static_cast<std::byte>(poison));
    living.session.reset();
    living.session.set_observer(dead.observer());
    Finding f = two_runs(living, use, &results);
    living.session.set_observer(nullptr);
    if (!f.empty()) return "with poison " + std::to_string(poison) + " " + f;
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i] != expected[i])
        return "output " + std::to_string(i % living.session.output_count()) + " of run " +
               std::to_string(i / living.session.output_count()) +
               " changes if dead memory is overwritten with " + std::to_string(poison);
  }
  return {};
}

Finding check_untouched(const Use& use, int most, double seconds, Runs* runs) {
  using Clock = std::chrono::steady_clock;
  Living living(use);
  if (!living.status.ok()) return "the session is refused: " + text_of(living.status);
  const auto start = Clock::now();
  Status status;
  Blame blame;
  living.session.set_observer(&blame.observer);
  living.fill(use);
  Seen seen = watched(use.alone, [&] { status = living.session.run(); });
  living.session.set_observer(nullptr);
  int made = 1;
  for (int chunk = 1; made < most && status.ok() && seen.nothing(); chunk = std::min(chunk * 2, 1000)) {
    if (std::chrono::duration<double>(Clock::now() - start).count() > seconds) break;
    chunk = std::min(chunk, most - made);
    seen = watched(use.alone, [&] {
      for (int i = 0; i < chunk && status.ok(); ++i) {
        living.fill(use);
        status = living.session.run();
      }
    });
    made += chunk;
  }
  runs->made = made;
  if (!status.ok()) return "a run fails: " + text_of(status);
  if (seen.nothing()) {
    runs->settled = settled(living, use);
    return {};
  }
  if (!blame.found && made > 1) {
    living.session.set_observer(&blame.observer);
    living.fill(use);
    watched(use.alone, [&] { status = living.session.run(); });
    living.session.set_observer(nullptr);
  }
  return "after " + std::to_string(made) + " runs: " + seen.text() + "; " + blame.text(use.model);
}

}  // namespace sinter::test
