#include "tests/op_harness/backends.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "platforms/platforms.h"
#include "sinter/backends.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/instruction_sets.h"
#include "tests/op_harness/on_device.h"
#include "tests/op_harness/packings.h"
#include "tests/op_harness/tolerance.h"
#ifdef SINTER_WITH_XNNPACK
#include "sinter/thread_pool.h"
#endif

namespace sinter::test {
namespace {

// This machine, with the features of its processor by which platforms take calls or not.
Target host() {
  Target target{.architecture = kHostArchitecture};
#if defined(__x86_64__)
  if (std::getenv("SINTER_CPU_CAP") != nullptr) return target;
  if (__builtin_cpu_supports("avx512vnni")) target.features |= Feature::kAvx512Vnni;
  if (__builtin_cpu_supports("avx512bf16")) target.features |= Feature::kAvx512Bf16;
#endif
  return target;
}
const Target kHost = host();

constexpr int kPlannedThreads = 8;
// By how much measure() may exceed what prepare() takes: rounding of one row of zeros.
constexpr size_t kSlack = 512;

// Pieces as small as they may be, last first; real threads for libraries that want their own kind of pool.
class TestPool final : public ThreadPool {
 public:
  void parallel_for(Task task, void* context, int64_t count, int64_t grain) override {
    for (int64_t end = count; end > 0; end -= grain) task(context, std::max<int64_t>(end - grain, 0), end);
  }
  int thread_count() const override { return 3; }
  void* native() override {
#ifdef SINTER_WITH_XNNPACK
    static PthreadPool pool(3);
    lent_ = true;
    return pool.native();
#else
    return nullptr;
#endif
  }
  // Whether other threads may be at work.
  bool lent() const { return lent_; }

 private:
  bool lent_ = false;
};

struct Call {
  Op op;
  const void* attrs;
  const std::vector<Tensor>& inputs;
  const std::vector<TensorView>& shapes;
};

// One way to run a call. kPixels lays out operands 0, every other layout all of them.
struct Setting {
  const char* text;
  Layout in = Layout::kDense, out = Layout::kDense;
  bool constants = true;  // all inputs but the first
  bool threads = false;
  int alias = -1;  // >= 0: output 0 is in that input's memory
};

Layout layout_of(Layout layout, bool first) {
  return layout == Layout::kPixels && !first ? Layout::kDense : layout;
}
bool is_wanted(const TensorView& v) { return v.rank != kUnwantedRank; }
Shape dims_of(const TensorView& v) {
  return is_wanted(v) ? Shape(v.shape().begin(), v.shape().end()) : Shape{};
}
DType dtype_of_output(const TensorView& v) { return is_wanted(v) ? v.dtype : DType::kNone; }

// The answer to a call whose operands, but for constants, have no data.
Status measure_views(TestedBackend& tested, const Call& call, const Setting& s, StepNeeds* needs) {
  std::vector<TensorView> in, out;
  const uint8_t memory = tested.has_device_memory() ? 1 : 0;
  for (const Tensor& t : call.inputs) {
    in.push_back(t.dtype == DType::kNone ? TensorView{}
                                         : laid_out(t.dtype, t.dims, layout_of(s.in, in.empty())));
    in.back().constant = s.constants && in.size() > 1;
    if (!in.back().constant) in.back().memory = memory;
    if (in.back().constant) in.back().data = const_cast<std::byte*>(t.bytes.data());  // read only
  }
  for (const TensorView& v : call.shapes)
    out.push_back(is_wanted(v) ? laid_out(v.dtype, dims_of(v), layout_of(s.out, out.empty())) : TensorView{});
  for (TensorView& v : out) v.memory = memory;
  return tested.backend->measure({call.op, call.attrs, in, out}, s.threads ? TestPool().thread_count() : 1,
                                 needs);
}

// That the planning side has promised what the device side does.
void check_plan(const TestedBackend& tested, const OpCall& call, const Status& measured,
                const StepNeeds& needs) {
  size_t planned = 0;
  if (!tested.platform->accept(tested.target, call, kPlannedThreads, &planned).ok()) return;
  EXPECT_TRUE(tested.claims(call.op)) << tested.name() << " accepts what its has_kernel denies";
  // Arithmetic in floats of 16 bits is a matter of the processor.
  const bool half = is_half(call.in(0).dtype) || is_half(call.out(0).dtype);
  EXPECT_TRUE(measured.ok() || half) << "planned for " << tested.name()
                                     << ", which refuses: " << sentence(measured);
  if (measured.ok()) {
    EXPECT_LE(needs.workspace, planned) << "the planned workspace does not suffice";
  }
}

// One life of a step; empty if the backend refuses it.
class Step {
 public:
  Step(TestedBackend& tested, const Call& call, const Setting& setting)
      : tested_(tested), call_(call), setting_(setting) {}
  std::optional<std::vector<Tensor>> run();
  Status run_to_the_end();
  const StepNeeds& needs() const { return needs_; }

 private:
  bool lay_out();
  void bring_to_device();
  bool prepare();
  Status run_prepared();
  std::vector<Tensor> results() const;

  TestedBackend& tested_;
  const Call& call_;
  const Setting& setting_;
  StepNeeds needs_;
  TestPool pool_;
  std::vector<Operand> in_, out_;
  std::vector<TensorView> in_views_, out_views_;
  Operand prepared_{DType::kNone, {}, Layout::kDense}, packed_{DType::kNone, {}, Layout::kDense},
      workspace_{DType::kNone, {}, Layout::kDense}, scratch_{DType::kNone, {}, Layout::kDense};
  PreparedStep step_;
  std::optional<OnDevice> device_;
};

Operand bytes_of(size_t bytes, Layout layout) {
  return {DType::kUint8, {static_cast<int64_t>(bytes)}, layout};
}

// Operands but for constants.
void Step::bring_to_device() {
  device_.emplace(*tested_.backend);
  for (size_t i = 0; i < in_views_.size(); ++i)
    if (in_views_[i].present() && !in_views_[i].constant) in_views_[i] = device_->bring(in_[i]);
  for (size_t i = 0; i < out_views_.size(); ++i)
    if (out_views_[i].present()) out_views_[i] = device_->bring(out_[i]);
}

// false: refused.
bool Step::lay_out() {
  Status status = measure_views(tested_, call_, setting_, &needs_);
  if (!status.ok() && !is_dense(setting_.in)) return false;
  const auto layout = [&](Layout wanted, bool first) {
    const Layout l = layout_of(wanted, first);
    return l == Layout::kDense && setting_.threads ? Layout::kFront : l;
  };
  in_.reserve(call_.inputs.size());
  for (const Tensor& t : call_.inputs) {
    in_.emplace_back(t.dtype, t.dims, layout(setting_.in, in_.empty()));
    in_.back().write(t);
    in_views_.push_back(t.dtype == DType::kNone ? TensorView{} : in_.back().view());
    in_views_.back().constant = setting_.constants && in_.size() > 1;
  }
  for (const TensorView& v : call_.shapes) {
    out_.emplace_back(dtype_of_output(v), dims_of(v), layout(setting_.out, out_.empty()));
    out_views_.push_back(is_wanted(v) ? out_.back().view() : TensorView{});
  }
  if (tested_.has_device_memory()) bring_to_device();
  if (setting_.alias >= 0) {
    const DType dtype = out_views_[0].dtype;
    out_views_[0] = in_views_[static_cast<size_t>(setting_.alias)];
    out_views_[0].dtype = dtype;
  }
  const OpCall call{call_.op, call_.attrs, in_views_, out_views_};
  const int threads = setting_.threads ? pool_.thread_count() : 1;
  status = tested_.backend->measure(call, threads, &needs_);
  EXPECT_TRUE(status.ok() || status.code == Code::kUnsupported) << sentence(status);
  check_plan(tested_, call, status, needs_);
  if (!status.ok()) return false;
  StepNeeds again;
  EXPECT_TRUE(tested_.backend->measure(call, threads, &again).ok());
  EXPECT_EQ(needs_.prepared, again.prepared);
  EXPECT_EQ(needs_.workspace, again.workspace);
  EXPECT_EQ(needs_.packing.bytes, again.packing.bytes);
  return true;
}

bool Step::prepare() {
  const OpCall call{call_.op, call_.attrs, in_views_, out_views_};
  ThreadPool* const threads = setting_.threads ? &pool_ : nullptr;
  prepared_ = bytes_of(needs_.prepared, Layout::kTight);
  packed_ = bytes_of(needs_.packing.bytes, Layout::kTight);
  scratch_ = bytes_of(needs_.scratch, Layout::kTight);
  workspace_ = bytes_of(needs_.workspace, setting_.threads ? Layout::kFront : Layout::kDense);
  std::span<std::byte> packed(packed_.view().data, needs_.packing.bytes);
  if (device_ && !packed.empty()) {
    packed = device_->workspace(needs_.packing.bytes);
    const Status status = tested_.backend->pack_on_device(call, packed, device_->queue(),
                                                          {scratch_.view().data, needs_.scratch});
    EXPECT_TRUE(status.ok()) << sentence(status);
    if (!status.ok()) return false;
  } else if (!packed.empty()) {
    std::fill(packed.begin(), packed.end(), std::byte{0xa5});
    const Status status = tested_.backend->pack(call, packed, threads);
    EXPECT_TRUE(status.ok()) << sentence(status);
    if (!status.ok()) return false;
    expect_equal_packing(tested_.backend->name(), call, needs_.packing, packed);
  }
  BumpArena none, arena({prepared_.view().data, needs_.prepared});
  std::span<std::byte> workspace(workspace_.view().data, needs_.workspace);
  if (device_) workspace = device_->workspace(needs_.workspace);
  const Status status = tested_.backend->prepare(call,
                                                 {arena,
                                                  device_ ? device_->prepared(needs_.device_prepared) : none,
                                                  workspace,
                                                  threads,
                                                  -1,
                                                  packed,
                                                  {scratch_.view().data, needs_.scratch},
                                                  device_ ? &device_->queue() : nullptr},
                                                 &step_);
  EXPECT_TRUE(status.ok()) << sentence(status);
  if (!status.ok()) return false;
  if (device_) {
    const Status grouped = device_->queue().end_group();
    EXPECT_TRUE(grouped.ok()) << sentence(grouped);
  }
  EXPECT_FALSE(arena.exhausted());
  EXPECT_LE(needs_.prepared - arena.used(), kSlack);
  return true;
}

Status Step::run_prepared() {
  RunContext context{{workspace_.view().data, needs_.workspace}, setting_.threads ? &pool_ : nullptr};
  std::vector<TensorView> in = in_views_;
  for (size_t i = 0; i < in.size(); ++i)
    if ((needs_.packed >> i & 1) != 0) in[i].data = nullptr;
  const OpCall call{call_.op, call_.attrs, in, out_views_}, unused{};
  const bool once = setting_.alias >= 0;  // the first run overwrites what the second would read
  return run_watched(call_.op, !pool_.lent() && !device_, !once, [&] {
    const Status started = step_.run(step_.state, needs_.call == CallUse::kUnused ? unused : call, context);
    return device_ && started.ok() ? device_->queue().finish() : started;
  });
}

std::vector<Tensor> Step::results() const {
  std::vector<Tensor> all;
  for (size_t i = 0; i < out_.size(); ++i) {
    EXPECT_TRUE(out_[i].clean()) << "bytes beside output " << i << " changed";
    if (setting_.alias >= 0 && i == 0) {
      all.push_back(in_[static_cast<size_t>(setting_.alias)].read());
      all[0].dtype = out_views_[0].dtype;
    } else {
      all.push_back(out_views_[i].present() ? out_[i].read() : Tensor{});
    }
  }
  for (size_t i = 0; i < in_.size(); ++i) {
    EXPECT_TRUE(in_[i].clean()) << "bytes beside input " << i << " changed";
    if (call_.inputs[i].dtype != DType::kNone && static_cast<int>(i) != setting_.alias) {
      EXPECT_EQ(in_[i].read().bytes, call_.inputs[i].bytes) << "input " << i << " changed";
    }
  }
  return all;
}

std::optional<std::vector<Tensor>> Step::run() {
  SCOPED_TRACE(setting_.text);
  if (!lay_out() || !prepare()) return std::nullopt;
  const Tensor before = packed_.read();
  const Status status = run_prepared();
  EXPECT_TRUE(status.ok()) << sentence(status);
  if (device_) device_->take_back();
  tested_.backend->release(step_);
  EXPECT_EQ(before.bytes, packed_.read().bytes) << "a run writes to packed weights";
  EXPECT_TRUE(prepared_.clean() && packed_.clean() && scratch_.clean()) << "prepared memory was overrun";
  EXPECT_TRUE(workspace_.clean()) << "the workspace was overrun";
  if (!status.ok()) return std::nullopt;
  ++tested_.calls[call_.op];
  return results();
}

Status Step::run_to_the_end() {
  SCOPED_TRACE(setting_.text);
  if (!lay_out() || !prepare()) return unsupported("the backend refuses the call");
  const Status status = run_prepared();
  if (device_) device_->take_back();
  tested_.backend->release(step_);
  for (size_t i = 0; i < out_.size(); ++i)
    EXPECT_TRUE(out_[i].clean()) << "bytes beside output " << i << " changed";
  return status;
}

// What the backend's results are compared with, computed when the first one is there.
class Expected {
 public:
  Expected(const Call& call, const std::vector<Tensor>& reference, const RunOptions& options)
      : call_(call), reference_(reference), options_(options) {}
  void compare(const std::vector<Tensor>& got) {
    if (!known_) compute();
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i].dtype == DType::kNone) continue;
      SCOPED_TRACE("output " + std::to_string(i));
      expect_within(got[i], want_[i], tolerances_[i]);
    }
  }

 private:
  void compute() {
    known_ = true;
    want_ = reference_;
    std::vector<Tensor> wide, results;
    bool needed = false;
    for (const Tensor& r : reference_)
      needed |= options_.in_float64 && r.dtype != DType::kNone &&
                !same_bits(call_.op, call_.inputs[0].dtype, r.dtype);
    for (const Tensor& t : call_.inputs) wide.push_back(widened(t));
    std::vector<TensorView> shapes;
    if (needed) {
      const Status inferred = infer_op(call_.op, call_.attrs, wide, &shapes, options_);
      const Status ran = inferred.ok() ? run_once(call_.op, call_.attrs, wide, shapes, Layout::kDense,
                                                  Layout::kDense, -1, &results)
                                       : inferred;
      EXPECT_TRUE(ran.ok()) << "the reference in float64: " << sentence(ran);
    }
    for (size_t i = 0; i < reference_.size(); ++i) {
      const DType dtype = reference_[i].dtype;
      if (dtype != DType::kNone && !results.empty() && !same_bits(call_.op, call_.inputs[0].dtype, dtype))
        want_[i] = widened(results[i]);  // DynamicQuantize gives float32 whatever it takes
      else if (!same_bits(call_.op, call_.inputs[0].dtype, dtype))
        want_[i] = widened(reference_[i]);
      tolerances_.push_back(tolerance_of(call_.op, call_.attrs, call_.inputs, dtype, want_[i]));
    }
    if (!results.empty()) {
      SCOPED_TRACE("reference");
      compare(reference_);
    }
  }

  const Call& call_;
  const std::vector<Tensor>& reference_;
  const RunOptions& options_;
  bool known_ = false;
  std::vector<Tensor> want_;
  std::vector<Tolerance> tolerances_;
};

// On a device, large calls run in the plainest layout: an emulated one is slow.
constexpr size_t kMostBytesInAllLayouts = 1 << 14;
size_t operand_bytes(const Call& call) {
  size_t bytes = 0;
  for (const Tensor& t : call.inputs) bytes += t.bytes.size();
  for (const TensorView& v : call.shapes)
    if (is_wanted(v)) bytes += static_cast<size_t>(v.dense_bytes());
  return bytes;
}

// All ways to run the call on one backend and instruction set; false if it is refused in the plainest.
bool check_settings(TestedBackend& tested, const Call& call, const RunOptions& options, Expected& expected) {
  Setting plain{.text = "one thread"};
  Step first(tested, call, plain);
  auto one = first.run();
  if (!one) {
    plain.constants = false;
    one = Step(tested, call, plain).run();
    if (!one) return false;
  }
  expected.compare(*one);
  const auto same = [&](const Setting& s) {
    const auto other = Step(tested, call, s).run();
    for (size_t i = 0; other && i < one->size(); ++i)
      EXPECT_TRUE(equal_but_for_nan((*one)[i], (*other)[i])) << s.text << ": other bits in output " << i;
    return other.has_value();
  };
  const bool constants = plain.constants;
  if (!tested.has_device_memory()) {
    EXPECT_TRUE(same({.text = "several threads", .constants = constants, .threads = true})) << "refused";
  }
  if (constants && first.needs().packed != 0) {
    const Setting computed{.text = "computed operands", .constants = false, .threads = true};
    if (const auto other = Step(tested, call, computed).run()) expected.compare(*other);
  }
  if (tested.has_device_memory() && operand_bytes(call) > kMostBytesInAllLayouts) return true;
  const OpInfo& info = *op_info(call.op);
  if (options.strided && info.in_strides != Strides::kDense) {
    using enum Layout;
    for (const bool threads : {false, true}) {
      if (threads && tested.has_device_memory()) continue;
      same({.text = "pixels apart",
            .in = kPixels,
            .out = kPixels,
            .constants = constants,
            .threads = threads});
    }
    same({.text = "pixels of the operand apart", .in = kPixels, .constants = constants});
    same({.text = "pixels of the result apart", .out = kPixels, .constants = constants});
    if (info.in_strides == Strides::kAny) {
      same({.text = "gaps", .in = kGaps, .out = kGaps, .constants = constants});
      same({.text = "reversed", .in = kReversed, .out = kReversed, .constants = constants});
    }
  }
  if (options.in_place && (info.traits & kInPlace) != 0 && is_wanted(call.shapes[0]))
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Tensor& t = call.inputs[i];
      if (t.dims == dims_of(call.shapes[0]) && byte_width(t.dtype) == byte_width(call.shapes[0].dtype))
        same({.text = "in place", .constants = constants && i == 0, .alias = static_cast<int>(i)});
    }
  return true;
}

std::vector<std::string> names_in(const char* list) {
  std::vector<std::string> names;
  for (const char* at = list; at != nullptr && *at != '\0';) {
    const char* end = std::strchr(at, ',');
    names.emplace_back(at, end != nullptr ? static_cast<size_t>(end - at) : std::strlen(at));
    at = end != nullptr ? end + 1 : nullptr;
  }
  return names;
}

std::vector<TestedBackend> all_open() {
  std::vector<TestedBackend> all;
  const std::vector<std::string> names = names_in(std::getenv("SINTER_TEST_BACKENDS"));
  for (Backend* backend : default_backends())
    for (const Platform* platform : all_platforms()) {
      if (std::string_view(platform->name) != backend->name()) continue;
      const Target device{.architecture = Architecture::kCuda};
      const Target target = platform->own_memory ? device : kHost;
      if (!platform->serves(target)) continue;
      // A device is tested by itself: it may be an emulated one, which takes minutes.
      if (names.empty() ? platform->own_memory
                        : std::find(names.begin(), names.end(), platform->name) == names.end())
        continue;
      BumpArena own;
      const Status opened = backend->open(own);
      if (opened.code == Code::kUnsupported) {
        std::printf("%s is not tested: %s\n", platform->name, sentence(opened).c_str());
        EXPECT_TRUE(names.empty()) << platform->name << " is to be tested and cannot be";
        continue;
      }
      EXPECT_TRUE(opened.ok()) << platform->name;
      all.push_back({backend, platform, target});
    }
  return all;
}

}  // namespace

bool TestedBackend::claims(Op op) const { return platform->has_kernel(target, op); }

std::vector<TestedBackend>& tested_backends() {
  static std::vector<TestedBackend> all = all_open();
  return all;
}

TestedBackend* tested_backend(std::string_view name) {
  for (TestedBackend& tested : tested_backends())
    if (tested.name() == name) return &tested;
  return nullptr;
}

bool backends_are_limited() { return std::getenv("SINTER_TEST_BACKENDS") != nullptr; }

AlsoTested::AlsoTested(Backend& backend, const Platform& platform) {
  tested_backends().push_back({&backend, &platform, kHost});
}
AlsoTested::~AlsoTested() { tested_backends().pop_back(); }

void check_backends(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                    const std::vector<TensorView>& shapes, const std::vector<Tensor>& results,
                    const RunOptions& options) {
  const Call call{op, attrs, inputs, shapes};
  Expected expected(call, results, options);
  for (TestedBackend& tested : tested_backends()) {
    const std::string where = std::string(op_name(op)) + " on " + tested.platform->name;
    const InstructionSets* sets = InstructionSets::of(tested.name());
    std::vector<const char*> names = sets != nullptr ? sets->names() : std::vector<const char*>{nullptr};
    bool taken = false;
    for (const char* name : names) {
      SCOPED_TRACE(name != nullptr ? where + ", " + name : where);
      EXPECT_TRUE(sets == nullptr || sets->limit(name));
      taken = check_settings(tested, call, options, expected);
      if (!taken) break;
    }
    if (sets != nullptr) sets->limit(nullptr);
    const bool named = std::any_of(options.taken_by.begin(), options.taken_by.end(),
                                   [&](const char* n) { return tested.name() == n; });
    EXPECT_TRUE(taken || !named || !tested.claims(op)) << where << ": refused";
  }
}

Status measure_op(TestedBackend& backend, Op op, const void* attrs, const std::vector<Tensor>& inputs,
                  const MeasureOptions& options, StepNeeds* needs) {
  std::vector<TensorView> shapes;
  const Status inferred = infer_op(op, attrs, inputs, &shapes, {.outputs = options.outputs});
  EXPECT_TRUE(inferred.ok()) << op_name(op) << " infer: " << sentence(inferred);
  if (!inferred.ok()) return inferred;
  return measure_views(
      backend, {op, attrs, inputs, shapes},
      {.text = "", .in = options.layout, .out = options.layout, .constants = options.constants}, needs);
}

Status status_on(TestedBackend& backend, Op op, const void* attrs, const std::vector<Tensor>& inputs,
                 bool constants) {
  std::vector<TensorView> shapes;
  EXPECT_TRUE(infer_op(op, attrs, inputs, &shapes).ok());
  const Setting plain{.text = "one thread", .constants = constants};
  return Step(backend, {op, attrs, inputs, shapes}, plain).run_to_the_end();
}

std::vector<Tensor> run_on(std::string_view backend, Op op, const void* attrs,
                           const std::vector<Tensor>& inputs, bool constants) {
  TestedBackend* tested = tested_backend(backend);
  std::vector<TensorView> shapes;
  EXPECT_TRUE(infer_op(op, attrs, inputs, &shapes).ok());
  const std::vector<Tensor> nothing(shapes.size());
  EXPECT_NE(tested, nullptr) << backend << " is not in this build";
  if (tested == nullptr) return nothing;
  const Setting plain{.text = "one thread", .constants = constants};
  const auto results = Step(*tested, {op, attrs, inputs, shapes}, plain).run();
  EXPECT_TRUE(results) << op_name(op) << " on " << backend << ": refused";
  return results.value_or(nothing);
}

// Lists that static objects of other files fill.
namespace {
std::vector<const InstructionSets*>& all_sets() {
  static std::vector<const InstructionSets*> sets;
  return sets;
}
}  // namespace

InstructionSets::InstructionSets(const char* backend, std::vector<const char*> (*names)(),
                                 bool (*limit)(const char*))
    : backend_(backend), names_(names), limit_(limit) {
  all_sets().push_back(this);
}

const InstructionSets* InstructionSets::of(std::string_view backend) {
  for (const InstructionSets* sets : all_sets())
    if (backend == sets->backend_) return sets;
  return nullptr;
}

}  // namespace sinter::test
