// The loader, session creation and runs. Memory and work are bounded by what the file itself announces: a
// model that needs more is verified but not run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "platforms/simd/simd_backend.h"
#include "platforms/simd/simd_kernels.h"
#include "runtime/kernels/reference.h"
#include "runtime/model/model_state.h"
#include "runtime/session/stored_packings.h"
#include "sinter/packed_weights.h"
#include "tests/format/packed_file.h"
#include "tests/fuzz/copying_op.h"
#include "tests/fuzz/model_file.h"
#include "tests/fuzz/targets.h"
#include "tests/memory/far_backend.h"

namespace sinter::fuzz {
namespace {

constexpr size_t kMostMemory = size_t{48} << 20;
constexpr size_t kMostDeviceMemory = size_t{16} << 20;
constexpr double kMostWork = 2e7;
constexpr size_t kMostStored = size_t{1} << 18;  // bytes of files that packed weights are added to

// Exactly `size` bytes, aligned, so that the sanitizer detects the first byte too many; not initialised, so
// that what relies on zeros does not get them.
class Memory {
 public:
  explicit Memory(size_t size, size_t guard = 0) : size_(size) {
    void* p = nullptr;
    if (posix_memalign(&p, kBufferAlignment, size + guard + (size + guard == 0)) != 0) std::abort();
    data_.reset(static_cast<std::byte*>(p));
    std::memset(p, 0xa5, size + guard);
  }
  std::span<std::byte> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_;
};

// How much a list of steps computes at most, in multiply-adds: elementwise operations read every element,
// others combine every output with every element of the second largest operand.
double work_of(const fb::Model& root, const fb::Program& program);

double work_of(const fb::Model& root, const fb::Program& program, const fb::Step& step) {
  double in_most = 1, in_second = 1, out = 1;
  // An axis of no entries counts as one: kernels may go over the axes around it.
  const auto size = [&](int32_t v) {
    if (v < 0) return 0.0;
    double n = 1;
    for (const int64_t d : detail::items(program.values()->Get(static_cast<uint32_t>(v))->dims()))
      n *= static_cast<double>(std::max<int64_t>(d, 1));
    return n;
  };
  for (const int32_t v : detail::items(step.inputs())) {
    const double n = size(v);
    if (n > in_most)
      in_second = in_most, in_most = n;
    else
      in_second = std::max(in_second, n);
  }
  for (const int32_t v : detail::items(step.outputs())) out += size(v);
  const auto op = static_cast<Op>(step.op());
  if (op == Op::kIf || op == Op::kLoop) {
    double inner = 0;
    for (const uint32_t sub : detail::items(step.subprograms()))
      inner += work_of(root, *root.programs()->Get(sub)) + 100;
    const double trips =
        op == Op::kLoop ? static_cast<double>(std::max<int64_t>(detail::items(step.ints())[0], 1)) : 1;
    return trips * inner + in_most + out;
  }
  const OpInfo* info = op_info(op);
  if ((info->traits & (kElementwise | kMovement)) != 0 || op == Op::kLut || op == Op::kQTable ||
      op == Op::kQuantize || op == Op::kDequantize)
    return 4 * (in_most + out);
  double factor = in_second;
  switch (op) {
    case Op::kReduce:
    case Op::kArgReduce:
    case Op::kCumulate:
    case Op::kSoftmax:
    case Op::kQSoftmax:
    case Op::kLayerNorm:
    case Op::kRmsNorm:
    case Op::kGroupNorm:
    case Op::kQMean:
    case Op::kNonZero:
    case Op::kResize:
    case Op::kQResize:
      factor = 16;
      break;
    case Op::kTopK:
    case Op::kUnique:
    case Op::kNms:
    case Op::kDft:
    case Op::kMaxPool:
    case Op::kAvgPool:
    case Op::kQAvgPool:
    case Op::kLrn:
      factor = in_most;
      break;
    default:
      break;
  }
  return (in_most + out) * factor;
}

double work_of(const fb::Model& root, const fb::Program& program) {
  double sum = 0;
  for (const auto* steps : {program.steps(), program.prepare()})
    if (steps != nullptr)
      for (const fb::Step* s : *steps) sum += work_of(root, program, *s);
  return sum;
}

// Whatever there is to ask of a model.
void look_around(const Model& model) {
  size_t letters = std::strlen(model.producer());
  const auto port = [&](const PortInfo& p) {
    letters += std::strlen(p.name);
    for (const int64_t d : p.dims) letters += d < 0;
  };
  for (uint32_t i = 0; i < model.profile_count(); ++i) {
    letters += std::strlen(model.profile_name(i)) + std::strlen(model.profile_target(i));
    for (uint32_t e = 0; e < model.entry_count(); ++e) letters += model.entry_program(e, i);
    if (model.find_profile(model.profile_name(i)) != static_cast<int>(i)) broken("a profile is not found");
  }
  for (uint32_t e = 0; e < model.entry_count(); ++e) {
    for (uint32_t i = 0; i < model.input_count(e); ++i) port(model.input(i, e));
    for (uint32_t i = 0; i < model.output_count(e); ++i) port(model.output(i, e));
    for (uint32_t i = 0; i < model.state_count(e); ++i) {
      const StateInfo state = model.state(i, e);
      letters += std::strlen(state.input) + std::strlen(state.output) + state.dims.size();
    }
  }
  for (uint32_t i = 0; i < model.metadata_count(); ++i) {
    letters += std::strlen(model.metadata_value(i));
    if (model.metadata(model.metadata_key(i)) != model.metadata_value(i)) broken("a fact is not found");
  }
  for (uint32_t i = 0; i < model.output_count(); ++i)
    for (uint32_t k = 0; k < model.label_count(model.output(i).name); ++k)
      letters += std::strlen(model.label(model.output(i).name, k));
  for (uint32_t p = 0; p < model.program_count(); ++p)
    for (uint32_t s = 0; s < model.step_count(p); ++s)
      letters += std::strlen(model.step_op(s, p)) + std::strlen(model.step_name(s, p));
  if (letters == SIZE_MAX) std::abort();
}

// Reads the outputs, so that the sanitizer checks what runs computed.
void fill_inputs(Session& session, uint32_t round) {
  for (uint32_t i = 0; i < session.input_count(); ++i) {
    const TensorView v = session.input(i);
    const auto bytes = static_cast<size_t>(v.dense_bytes());
    auto* to = reinterpret_cast<uint8_t*>(v.data);
    Random random(i * 7 + round);
    for (size_t b = 0; b < bytes; ++b) {
      // Small indices and counts in the first round, ordinary floats in the second, anything in the third.
      const size_t width = std::max<size_t>(byte_width(v.dtype), 1);
      if (round == 0)
        to[b] = b % width == 0 ? static_cast<uint8_t>(random.below(3)) : 0;
      else if (round == 1)
        to[b] = v.dtype == DType::kFloat32 && b % 4 == 3
                    ? 0x3f
                    : static_cast<uint8_t>(random.below(v.dtype == DType::kFloat32 ? 128 : 2));
      else
        to[b] = static_cast<uint8_t>(random.next());
    }
    if (v.dtype == DType::kBool)
      for (size_t b = 0; b < bytes; ++b) to[b] &= 1;
  }
}

bool run_session(const Model& model, const SessionOptions& options, bool run, const char** why);

// Sessions of a file that was made of the model's: `sound` ones are created where the model's own are.
void run_made(std::span<const std::byte> bytes, const SessionOptions& options, bool run, bool sound) {
  const Memory file(bytes.size());
  std::memcpy(file.span().data(), bytes.data(), bytes.size());
  const OpenOptions open{.kernels = reference_kernels(), .check_digests = false, .custom_ops = kFuzzedOps};
  const auto needed = Model::open_bytes(file.span(), open);
  if (!needed.ok()) broken("a file with packed weights needs no memory");
  const Memory memory(needed.value());
  const auto stored = Model::open(file.span(), memory.span(), open);
  if (!stored.ok()) broken("a file with packed weights is refused", stored.status().message);
  const char* why = "";
  if (!run_session(*stored, options, run, &why) && sound) broken("packed weights in a file are refused", why);
}

// A session of the same model, whose own is created if it is `good`, from a file that holds the packed
// weights: numbers that an attacker chose, and records, some of which are damaged.
void run_stored(const Model& model, const PackedWeights& packed, SessionOptions options, bool run,
                bool good) {
  std::vector<std::byte> segment = testing::packed_segment(packed);
  const std::span<const std::byte> plain = model.state()->file;
  if (packed.missing() == 0 || plain.size() > kMostStored) return;
  if (format::read_header(plain).value().signature_bytes != 0) return;  // which covers every segment
  Random random(segment.size());
  const size_t records = sizeof(detail::StoredHead) + packed.missing() * sizeof(detail::StoredPacking);
  for (size_t i = records; i < segment.size(); ++i) segment[i] = static_cast<std::byte>(random.next());
  options.packed_weights = nullptr;
  options.packed_in_file = packed_in_file();
  for (const bool damaged : {false, true}) {
    if (damaged) segment[random.index(records)] ^= std::byte{0x40};
    run_made(testing::with_packed_segment(plain, segment), options, run, good && !damaged);
  }
}

// The same without the constants that the packings replace; and sessions that would read these.
void run_packed_only(const Model& model, const PackedWeights& packed, SessionOptions options, bool run) {
  if (model.state()->file.size() > kMostStored) return;
  const Memory memory(PackedOnlyFile::bytes(model));
  const auto only = PackedOnlyFile::create(model, packed, options, memory.span());
  if (!only.ok() || only->count() == 0) return;
  std::vector<std::byte> bytes;
  const auto put = [](void* to, std::span<const std::byte> piece) {
    auto& all = *static_cast<std::vector<std::byte>*>(to);
    all.insert(all.end(), piece.begin(), piece.end());
    return ok_status();
  };
  if (!only->write(put, &bytes).ok()) return;
  ++counts.packed_only;
  options.packed_weights = nullptr;
  for (const bool reads : {true, false}) {
    options.packed_in_file = reads ? packed_in_file() : nullptr;
    run_made(bytes, options, run, reads);
  }
  options.backend = "reference";
  run_made(bytes, options, run, false);
}

// A session that shares packed weights: one of the first entry with those of all entries.
void run_sharing(const Model& model, SessionOptions options, bool run) {
  SessionOptions packing = options;
  if (packing.entry == 0) packing.entry = kEveryEntry;
  const auto needs = PackedWeights::requirements(model, packing);
  if (!needs.ok() || needs.value().bytes > kMostMemory) return;
  const size_t need = needs.value().bytes;
  const Memory memory(need);
  if (PackedWeights::create(model, memory.span().first(need - kBufferAlignment), packing).ok())
    broken("weights are packed in less memory than stated");
  const auto packed = PackedWeights::create(model, memory.span(), packing);
  if (!packed.ok()) {
    if (packed.status().code == Code::kOutOfMemory)
      broken("the stated memory does not do for packed weights");
    return;
  }
  const char* why = "";
  options.packed_weights = &packed.value();
  const bool good = run_session(model, options, run, &why);
  run_stored(model, *packed, options, run, good);
  if (good) run_packed_only(model, *packed, options, run);
}

// The minima, then the maxima, then what is in the middle; lengths outside are refused.
void give_lengths(Session& session, const Model& model, uint32_t entry, uint32_t round) {
  for (uint32_t i = 0; i < session.input_count(); ++i) {
    const TensorView view = session.input(i);
    int64_t dims[kMaxRank] = {};
    const std::span<const int64_t> shape(dims, static_cast<size_t>(view.rank));
    for (int axis = 0; axis < view.rank; ++axis) {
      const AxisRange range = model.input_range(i, axis, entry);
      if (range.minimum < 0 || range.minimum > range.maximum || range.maximum != view.dims[axis])
        broken("an axis of an input has an impossible range");
      dims[axis] = round == 0   ? range.minimum
                   : round == 1 ? range.maximum
                                : range.minimum + (range.maximum - range.minimum) / 2;
    }
    if (!session.set_shape(i, shape).ok()) broken("a shape within the ranges is refused");
    for (int axis = 0; axis < view.rank; ++axis) {
      if (session.input_length(i, axis) != dims[axis]) broken("a length is another than was given");
      const int64_t given = std::exchange(dims[axis], view.dims[axis] + 1);
      if (session.set_shape(i, shape).ok()) broken("a shape beyond the maxima is taken");
      dims[axis] = given;
    }
  }
}

// `why` is set where the model is refused.
bool run_session(const Model& model, const SessionOptions& options, bool run, const char** why) {
  const auto need = Session::requirements(model, options);
  if (!need.ok()) return *why = need.status().message, false;
  if (need.value().bytes > kMostMemory) return true;
  for (const DeviceRequirements& device : need.value().on_devices())
    if (device.bytes > kMostDeviceMemory) return true;
  const Memory memory(need.value().bytes);
  if (need.value().bytes >= kBufferAlignment) {
    const auto starved =
        Session::create(model, memory.span().first(need.value().bytes - kBufferAlignment), options);
    if (starved.ok()) broken("a session is created in less memory than it requires");
  }
  auto created = Session::create(model, memory.span(), options);
  if (!created.ok()) {
    if (created.status().code == Code::kOutOfMemory) broken("the stated memory does not do");
    return *why = created.status().message, false;
  }
  Session session = std::move(created.value());
  if (!run) return true;
  for (uint32_t round = 0; round < 3; ++round) {
    give_lengths(session, model, options.entry, round);
    fill_inputs(session, round);
    const Status status = session.run();
    if (!status.ok()) continue;  // an index out of range, say
    ++counts.ran;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < session.output_count(); ++i) {
      const TensorView v = session.output(i);
      for (size_t b = 0; b < static_cast<size_t>(v.dense_bytes()); ++b)
        sum += reinterpret_cast<const uint8_t*>(v.data)[b];
      for (int axis = 0; axis < v.rank; ++axis) {
        const int64_t n = session.output_length(i, axis);
        if (n < 0 || n > v.dims[axis]) broken("an output is longer than its bound");
      }
    }
    for (uint32_t i = 0; i < session.model().state_count(); ++i)
      if (const TensorView v = session.state(i); v.present())
        for (size_t b = 0; b < static_cast<size_t>(v.dense_bytes()); ++b)
          sum += reinterpret_cast<const uint8_t*>(v.data)[b];
    if (sum == UINT64_MAX) std::abort();
  }
  session.reset();
  return true;
}

// Sessions of all entries that run in turns, with one arena and one state between them.
void run_in_turns(const Model& model, SessionOptions options, uint32_t profile) {
  const uint32_t count = model.entry_count();
  if (options.entry != 0 || count < 2 || count > 8) return;
  const fb::Model& root = *model.state()->root;
  for (uint32_t e = 0; e < count; ++e)
    if (work_of(root, *root.programs()->Get(model.entry_program(e, profile))) > kMostWork) return;
  SharedArena no_arena({});
  SharedState no_state({});
  size_t arena_bytes = 0, state_bytes = 0, bytes = 0;
  std::vector<size_t> needs;
  for (options.entry = 0; options.entry < count; ++options.entry) {
    options.arena = &no_arena, options.state = &no_state;
    const auto need = Session::requirements(model, options);
    if (!need.ok()) return;
    for (const DeviceRequirements& device : need->on_devices())
      if (device.bytes > kMostDeviceMemory) return;
    arena_bytes = std::max(arena_bytes, need->shareable), state_bytes = std::max(state_bytes, need->state);
    needs.push_back(need->bytes);
    bytes += need->bytes;
  }
  if (bytes + arena_bytes + state_bytes > kMostMemory) return;
  const Memory values(arena_bytes), kept(state_bytes);
  SharedArena arena(values.span());
  SharedState state(kept.span());
  options.arena = &arena, options.state = &state;
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<Session> sessions;
  for (options.entry = 0; options.entry < count; ++options.entry) {
    memory.push_back(std::make_unique<Memory>(needs[options.entry]));
    auto created = Session::create(model, memory.back()->span(), options);
    if (!created.ok()) {
      if (created.status().code == Code::kOutOfMemory)
        broken("the stated memory does not do where it is shared");
      return;
    }
    sessions.push_back(std::move(created.value()));
  }
  for (uint32_t round = 0; round < 2; ++round)
    for (Session& session : sessions) {
      fill_inputs(session, round);
      if (session.run().ok()) ++counts.ran;
    }
}

bool use(View bytes, bool quick, const char** why) {
  *why = "";
  // A view that ends where the file ends; its start is aligned, as a mapping's is.
  const Memory file(bytes.size());
  std::memcpy(file.span().data(), bytes.data(), bytes.size());
  const OpenOptions options{.kernels = reference_kernels(), .check_digests = false, .custom_ops = kFuzzedOps};
  const auto needed = Model::open_bytes(file.span(), options);
  if (!needed.ok()) return *why = needed.status().message, false;
  // Opening takes a multiple of the file's structure and no more.
  if (needed.value() > 600 * (bytes.size() + 1024) + (1 << 17)) broken("opening requires too much memory");
  const Memory memory(needed.value());
  const auto opened = Model::open(file.span(), memory.span(), options);
  if (!opened.ok()) return *why = opened.status().message, false;
  ++counts.accepted;
  const Model& model = opened.value();
  look_around(model);
  const detail::ModelState& state = *model.state();
  SimdBackend simd;
  std::vector<Backend*> backends{&simd};
  // A device for each memory that a plan has.
  std::vector<std::unique_ptr<test::FarBackend>> devices;
  const auto add_devices = [&](const fb::Profile& profile, const fb::ProgramPlan& plan) {
    for (uint32_t r = 0; r < detail::length(plan.regions()); ++r) {
      const uint8_t kind = plan.regions()->Get(r)->memory_kind();
      if (kind == 0) continue;
      const char* name = profile.backends()->Get(kind - 1u)->c_str();
      bool here = false;
      for (Backend* b : backends) here = here || std::strcmp(b->name(), name) == 0;
      if (here) continue;
      devices.push_back(std::make_unique<test::FarBackend>(name, kMostDeviceMemory));
      backends.push_back(devices.back().get());
    }
  };
  bool good = true;
  for (uint32_t i = 0; i < std::min<uint32_t>(model.profile_count(), 3); ++i)
    for (uint32_t e = 0; e < std::min<uint32_t>(model.entry_count(), 4); ++e) {
      const uint32_t p = model.entry_program(e, i);
      const fb::Profile& profile = *state.root->profiles()->Get(i);
      const bool run = work_of(*state.root, *state.root->programs()->Get(p)) <= kMostWork;
      SessionOptions with{.profile = model.profile_name(i), .entry = e};
      with.backend = "reference";
      good &= run_session(model, with, run, why);
      if (quick) continue;
      add_devices(profile, *detail::find_plan(profile, p));
      with.backend = nullptr, with.backends = backends;
      run_session(model, with, run, why);
      run_sharing(model, with, run);
      run_in_turns(model, with, i);
    }
  for (const auto& device : devices)
    if (device->counts().wrong != 0) broken("a device is given addresses that are not its own");
  return good;
}

}  // namespace

Counts counts;

void broken(const char* promise, const char* detail) {
  std::fprintf(stderr, "fuzz: %s %s\n", promise, detail);
  std::abort();
}

bool accepted(View file, const char** why) { return use(file, true, why); }

const Target kModelTarget{"model",
                          [](View bytes) {
                            const char* why = nullptr;
                            ++counts.inputs;
                            (void)use(bytes, false, &why);
                          },
                          mutate_model};

}  // namespace sinter::fuzz
