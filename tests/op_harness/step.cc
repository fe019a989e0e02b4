#include "tests/op_harness/step.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/op_harness/half_test.h"
#include "tests/op_harness/packings.h"

namespace sinter::test {
namespace {

constexpr int kPlannedThreads = 8;
// The bytes by which measure() may exceed prepare()'s: rounding of one row of zeros.
constexpr size_t kSlack = 512;

Layout layout_of(Layout layout, bool first) {
  return layout == Layout::kPixels && !first ? Layout::kDense : layout;
}
DType dtype_of_output(const TensorView& v) { return is_wanted(v) ? v.dtype : DType::kNone; }

// Checks that the planning side has promised no less than the device side gives.
void check_plan(const TestedBackend& tested, const OpCall& call, const Status& measured,
                const StepNeeds& needs) {
  size_t planned = 0;
  if (!tested.platform->accept(tested.target, call, kPlannedThreads, &planned).ok()) return;
  EXPECT_TRUE(tested.claims(call.op)) << tested.name() << " accepts what its has_kernel denies";
  // The processor decides about arithmetic in floats of 16 bits.
  const bool half = is_half(call.in(0).dtype) || is_half(call.out(0).dtype);
  EXPECT_TRUE(measured.ok() || half) << "planned for " << tested.name()
                                     << ", which refuses: " << sentence(measured);
  if (measured.ok()) {
    EXPECT_LE(needs.workspace, planned) << "the planned workspace does not suffice";
  }
}

}  // namespace

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

static Operand bytes_of(size_t bytes, Layout layout) {
  return {DType::kUint8, {static_cast<int64_t>(bytes)}, layout};
}

// Brings all operands but constants to the device.
void Step::bring_to_device() {
  device_.emplace(*tested_.backend);
  for (size_t i = 0; i < in_views_.size(); ++i)
    if (in_views_[i].present() && !in_views_[i].constant) in_views_[i] = device_->bring(in_[i]);
  for (size_t i = 0; i < out_views_.size(); ++i)
    if (out_views_[i].present()) out_views_[i] = device_->bring(out_[i]);
}

// Returns false if the call is refused.
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
  return run_watched(call_.op, !device_, !once, [&] {
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

}  // namespace sinter::test
