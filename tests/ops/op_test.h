// Runs one op of the reference table as a model would, in every layout that its row allows.
//
//   auto y = run_op(AddAttrs{}, {tensor<float>({2}, {1, 2}), tensor<float>({}, {3})});
//   expect_equal(y[0], tensor<float>({2}, {4, 5}));
//   expect_refused(AddAttrs{}, {tensor<float>({2}, {1, 2}), tensor<int8_t>({}, {3})});
//
// run_op infers, validates, takes exactly the stated workspace, runs with guard pages and poison around every
// operand, watched so that nothing is allocated, and repeats the run with strange strides (where the row has
// Any or Pixel), in place (where it has InPlace) and with input 0 right behind output 0 (Kernel::lead); all
// must give the same bytes as the dense run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/kernels/reference.h"
#include "tests/memory/guarded.h"
#include "tests/memory/watch.h"
#include "tests/ops/tensor.h"

namespace sinter::test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What differs from the usual call.
struct RunOptions {
  int outputs = -1;                // -1: as few as the row allows
  std::vector<int> unwanted = {};  // outputs left out
  bool strided = true, in_place = true;
  bool apart = false;  // simd: operands 0 have their pixels apart
};

// An operand's layout in memory. Dense ones end before a guard page (after the padding that kernels may
// read), or, kFront, begin behind one; kTight has no padding.
// kPixels: rows along the last axis alternate with others'.
enum class Layout { kDense, kFront, kTight, kGaps, kReversed, kPixels };
constexpr bool is_dense(Layout l) { return l <= Layout::kTight; }

// Memory for one operand: the view, and bytes around it that must not change.
class Operand {
 public:
  Operand(DType dtype, const Shape& dims, Layout layout) {
    view_.dtype = dtype;
    view_.set_shape(dims);
    const auto width = static_cast<int64_t>(byte_width(dtype));
    int64_t span = view_.dense_bytes(), first = 0;
    dense_ = is_dense(layout) || width == 0;
    if (!dense_) {
      const bool pixels = layout == Layout::kPixels;
      int64_t step = pixels ? width : width * 2;  // a gap after every element and every row
      for (int i = view_.rank - 1; i >= 0; --i) {
        view_.strides[i] = step;
        step = (view_.dims[i] == 0 ? 1 : view_.dims[i]) * step;
        if (!pixels || i == view_.rank - 1) step += pixels ? 3 * width : width;
      }
      span = step;
      if (layout == Layout::kReversed)
        for (int i = 0; i < view_.rank; ++i) {
          if (view_.dims[i] > 1) first += (view_.dims[i] - 1) * view_.strides[i];
          view_.strides[i] = -view_.strides[i];
        }
    }
    const bool front = layout == Layout::kFront || layout == Layout::kGaps || layout == Layout::kPixels;
    memory_ = Guarded(static_cast<size_t>(span), front ? Flush::kStart : Flush::kEnd,
                      layout == Layout::kTight ? 0 : kReadPadding);
    view_.data = memory_.data() + first;
  }
  const TensorView& view() const { return view_; }

  void write(const Tensor& t) {
    if (t.dtype == DType::kNone) return;
    const size_t width = byte_width(t.dtype);
    if (width == 0) {
      std::copy(t.bytes.begin(), t.bytes.end(), view_.data);
      return;
    }
    each([&](std::byte* p, size_t i) { std::memcpy(p, t.bytes.data() + i * width, width); });
  }
  Tensor read() const {
    Tensor t{view_.dtype, Shape(view_.shape().begin(), view_.shape().end()), {}};
    const size_t width = byte_width(view_.dtype);
    if (width == 0) {
      t.bytes.assign(view_.data, view_.data + view_.dense_bytes());
      return t;
    }
    each([&](std::byte* p, size_t) { t.bytes.insert(t.bytes.end(), p, p + width); });
    return t;
  }
  // Whether all bytes that belong to no element still hold the poison.
  bool clean() const {
    if (dense_) return memory_.clean();
    const std::span<std::byte> window = memory_.window();
    std::vector<bool> owned(window.size(), false);
    const size_t width = byte_width(view_.dtype);
    each([&](std::byte* p, size_t) {
      for (size_t k = 0; k < width; ++k) owned[static_cast<size_t>(p - window.data()) + k] = true;
    });
    for (size_t k = 0; k < window.size(); ++k)
      if (!owned[k] && window[k] != Guarded::kPoison) return false;
    return true;
  }

 private:
  template <class F>
  void each(F f) const {
    int64_t index[kMaxRank] = {};
    const int64_t n = view_.size();
    for (int64_t i = 0; i < n; ++i) {
      std::byte* p = view_.data;
      for (int k = 0; k < view_.rank; ++k) p += index[k] * view_.strides[k];
      f(p, static_cast<size_t>(i));
      for (int k = view_.rank - 1; k >= 0 && ++index[k] == view_.dims[k]; --k) index[k] = 0;
    }
  }

  TensorView view_;
  Guarded memory_;
  bool dense_ = true;
};

inline std::string sentence(const Status& s) {
  char buffer[256];
  format_status(s, buffer);
  return buffer;
}

// Runs a step several times, or once if it cannot be repeated, during which nothing may be taken from the
// heap and, `alone` on its thread, neither a lock nor a system call be made.
template <class F>
Status run_watched(Op op, bool alone, bool repeatable, F&& step) {
  const int runs = repeatable ? watched_runs(2) : 1;
  Status status;
  const Seen seen = watched(alone, [&] {
    for (int i = 0; i < runs && status.ok(); ++i) status = step();
  });
  EXPECT_TRUE(seen.nothing()) << op_name(op) << " made " << seen.text();
  return status;
}

// Only infers: the status, and the outputs' views.
inline Status infer_op(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                       std::vector<TensorView>* outputs, const RunOptions& options = {}) {
  std::vector<TensorView> in;
  for (const Tensor& t : inputs) {
    TensorView v;
    v.dtype = t.dtype;
    v.set_shape(t.dims);
    in.push_back(v);
  }
  const OpInfo* info = op_info(op);
  outputs->assign(static_cast<size_t>(options.outputs < 0 ? info->min_outputs : options.outputs),
                  TensorView{});
  for (const int i : options.unwanted) (*outputs)[static_cast<size_t>(i)].rank = kUnwantedRank;
  OpCall call{op, attrs, in, *outputs};
  return infer(call, reference_kernels());
}

// One run in given layouts; `alias` >= 0: output 0 is in that input's memory.
inline Status run_once(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                       const std::vector<TensorView>& shapes, Layout in_layout, Layout out_layout, int alias,
                       std::vector<Tensor>* results) {
  std::vector<Operand> in, out;
  in.reserve(inputs.size());
  out.reserve(shapes.size());
  std::vector<TensorView> in_views, out_views;
  for (const Tensor& t : inputs) {
    const bool first_only = in_layout == Layout::kPixels && !in.empty();
    in.emplace_back(t.dtype, t.dims, first_only ? Layout::kDense : in_layout);
    in.back().write(t);
    in_views.push_back(t.dtype == DType::kNone ? TensorView{} : in.back().view());
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const bool absent = shapes[i].rank == kUnwantedRank;
    out.emplace_back(absent ? DType::kNone : shapes[i].dtype,
                     absent ? Shape{} : Shape(shapes[i].shape().begin(), shapes[i].shape().end()),
                     out_layout == Layout::kPixels && i > 0 ? Layout::kDense : out_layout);
    out_views.push_back(absent ? TensorView{} : out.back().view());
  }
  if (alias >= 0) {
    const DType dtype = out_views[0].dtype;
    out_views[0] = in_views[static_cast<size_t>(alias)];
    out_views[0].dtype = dtype;
  }
  OpCall call{op, attrs, in_views, out_views};
  const Kernel& kernel = *reference_kernels()[static_cast<size_t>(op_index(op))];
  const Status valid = validate(call, reference_kernels());
  EXPECT_TRUE(valid.ok()) << sentence(valid);
  size_t bytes = 0;
  if (kernel.workspace != nullptr) {
    const Status s = kernel.workspace(call, 1, &bytes);
    if (!s.ok()) return s;
  }
  Operand workspace(DType::kUint8, {static_cast<int64_t>(bytes)}, Layout::kDense);
  RunContext context{{workspace.view().data, bytes}, nullptr};
  const Status s = run_watched(op, true, alias < 0, [&] { return kernel.run(call, context); });
  if (!s.ok()) return s;
  EXPECT_TRUE(workspace.clean()) << "the workspace was overrun";
  results->clear();
  for (size_t i = 0; i < out.size(); ++i) {
    if (out_views[i].dtype == DType::kNone) {
      results->push_back({});
    } else if (alias >= 0 && i == 0) {
      Tensor t = in[static_cast<size_t>(alias)].read();
      t.dtype = out_views[0].dtype;
      results->push_back(t);
    } else {
      results->push_back(out[i].read());
    }
    EXPECT_TRUE(out[i].clean()) << "bytes beside output " << i << " changed";
  }
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_TRUE(in[i].clean()) << "bytes beside input " << i << " changed";
    if (static_cast<int>(i) != alias && inputs[i].dtype != DType::kNone) {
      EXPECT_EQ(in[i].read().bytes, inputs[i].bytes) << "input " << i << " changed";
    }
  }
  return s;
}

template <class A>
Status infer_op(const A& attrs, const std::vector<Tensor>& inputs, std::vector<TensorView>* outputs,
                const RunOptions& options = {}) {
  return infer_op(A::kOp, &attrs, inputs, outputs, options);
}
template <class A>
Status run_once(const A& attrs, const std::vector<Tensor>& inputs, const std::vector<TensorView>& shapes,
                Layout in_layout, Layout out_layout, int alias, std::vector<Tensor>* results) {
  return run_once(A::kOp, &attrs, inputs, shapes, in_layout, out_layout, alias, results);
}

// Runs with input 0 as close behind output 0 as its kernel states, the two overlapping; false where the
// kernel states nothing. `result`: output 0.
inline bool run_overlapped(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                           const std::vector<TensorView>& shapes, Tensor* result) {
  const Kernel& kernel = *reference_kernels()[static_cast<size_t>(op_index(op))];
  if (kernel.lead == nullptr || inputs[0].bytes.empty()) return false;
  std::vector<Operand> others;
  others.reserve(inputs.size());
  std::vector<TensorView> in_views, out_views(shapes);
  for (const Tensor& t : inputs) {
    others.emplace_back(t.dtype, t.dims, Layout::kDense);
    others.back().write(t);
    in_views.push_back(t.dtype == DType::kNone ? TensorView{} : others.back().view());
  }
  for (TensorView& v : out_views)
    if (v.rank == kUnwantedRank) v = {};
  OpCall call{op, attrs, in_views, out_views};
  size_t lead = 0;
  if (!kernel.lead(call, &lead).ok()) return false;
  const size_t behind = align_up(lead, byte_width(inputs[0].dtype));
  const auto bytes = static_cast<size_t>(out_views[0].dense_bytes());
  Guarded memory(std::max(behind + inputs[0].bytes.size(), bytes));
  out_views[0].data = memory.data();
  in_views[0].data = memory.data() + behind;
  std::copy(inputs[0].bytes.begin(), inputs[0].bytes.end(), in_views[0].data);
  size_t workspace_bytes = 0;
  if (kernel.workspace != nullptr) {
    EXPECT_TRUE(kernel.workspace(call, 1, &workspace_bytes).ok());
  }
  Operand workspace(DType::kUint8, {static_cast<int64_t>(workspace_bytes)}, Layout::kDense);
  RunContext context{{workspace.view().data, workspace_bytes}, nullptr};
  EXPECT_TRUE(kernel.run(call, context).ok());
  EXPECT_TRUE(memory.clean()) << op_name(op) << " wrote beside its overlapping operands";
  *result = {out_views[0].dtype,
             Shape(out_views[0].shape().begin(), out_views[0].shape().end()),
             {memory.data(), memory.data() + bytes}};
  return true;
}

// Runs with each output unwanted, and with each alone: the others stay.
inline void check_unwanted(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                           const std::vector<TensorView>& shapes, const std::vector<Tensor>& dense) {
  std::vector<Tensor> other;
  for (size_t k = 0; k < shapes.size(); ++k)
    for (const bool alone : {false, true}) {
      std::vector<TensorView> some(shapes);
      for (size_t i = 0; i < some.size(); ++i)
        if ((i == k) != alone) some[i] = {}, some[i].rank = kUnwantedRank;
      if (std::all_of(some.begin(), some.end(), [](const auto& v) { return v.rank == kUnwantedRank; }))
        continue;
      const Status s = run_once(op, attrs, inputs, some, Layout::kDense, Layout::kDense, -1, &other);
      EXPECT_TRUE(s.ok()) << op_name(op) << ": " << sentence(s);
      for (size_t i = 0; s.ok() && i < some.size(); ++i)
        if (some[i].rank != kUnwantedRank) {
          EXPECT_EQ(other[i].bytes, dense[i].bytes) << op_name(op) << " output " << i << " depends on others";
        }
    }
}

// See the head of the file. Gives empty tensors after a failure, which is recorded.
inline std::vector<Tensor> run_op(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                                  const RunOptions& options = {}) {
  std::vector<TensorView> shapes;
  const Status inferred = infer_op(op, attrs, inputs, &shapes, options);
  EXPECT_TRUE(inferred.ok()) << op_name(op) << " infer: " << sentence(inferred);
  const size_t count = shapes.size();
  if (!inferred.ok()) return std::vector<Tensor>(count);
  std::vector<Tensor> dense, other;
  const Status ran = run_once(op, attrs, inputs, shapes, Layout::kDense, Layout::kDense, -1, &dense);
  EXPECT_TRUE(ran.ok()) << op_name(op) << " run: " << sentence(ran);
  if (!ran.ok()) return std::vector<Tensor>(count);
  const auto compare = [&](Layout in, Layout out, int alias, const std::string& what) {
    const Status s = run_once(op, attrs, inputs, shapes, in, out, alias, &other);
    EXPECT_TRUE(s.ok()) << op_name(op) << " " << what << ": " << sentence(s);
    if (!s.ok()) return;
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(other[i].bytes, dense[i].bytes) << op_name(op) << " output " << i << " differs " << what;
  };
  compare(Layout::kFront, Layout::kFront, -1, "behind a guard page");
  if (count > 1) check_unwanted(op, attrs, inputs, shapes, dense);
  const OpInfo* info = op_info(op);
  const bool in_any = options.strided && info->in_strides == Strides::kAny;
  const bool out_any = options.strided && info->out_strides == Strides::kAny;
  if (in_any) {
    compare(Layout::kGaps, Layout::kDense, -1, "with gaps in the inputs");
    compare(Layout::kReversed, Layout::kDense, -1, "with reversed inputs");
  }
  if (out_any) {
    compare(Layout::kDense, Layout::kGaps, -1, "with gaps in the outputs");
    compare(Layout::kDense, Layout::kReversed, -1, "with reversed outputs");
  }
  const bool in_pixels = options.strided && info->in_strides == Strides::kPixel;
  const bool out_pixels = options.strided && info->out_strides == Strides::kPixel;
  if (in_pixels) compare(Layout::kPixels, Layout::kDense, -1, "with pixels apart in input 0");
  if (out_pixels) compare(Layout::kDense, Layout::kPixels, -1, "with pixels apart in output 0");
  if (in_pixels && out_pixels) compare(Layout::kPixels, Layout::kPixels, -1, "with pixels apart in both");
  if (in_any && out_any) compare(Layout::kReversed, Layout::kGaps, -1, "with strange strides everywhere");
  if (options.in_place && (info->traits & kInPlace) != 0 && count > 0 && shapes[0].rank != kUnwantedRank)
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape dims(shapes[0].shape().begin(), shapes[0].shape().end());
      if (inputs[i].dims != dims || byte_width(inputs[i].dtype) != byte_width(shapes[0].dtype)) continue;
      compare(Layout::kDense, Layout::kDense, static_cast<int>(i), "in place of input " + std::to_string(i));
    }
  if (Tensor result; run_overlapped(op, attrs, inputs, shapes, &result)) {
    EXPECT_EQ(result.bytes, dense[0].bytes) << op_name(op) << " differs where input 0 begins behind output 0";
  }
  return dense;
}

template <class A>
std::vector<Tensor> run_op(const A& attrs, const std::vector<Tensor>& inputs,
                           const RunOptions& options = {}) {
  return run_op(A::kOp, &attrs, inputs, options);
}

// infer refuses.
template <class A>
void expect_refused(const A& attrs, const std::vector<Tensor>& inputs, const RunOptions& options = {}) {
  std::vector<TensorView> shapes;
  const Status s = infer_op(attrs, inputs, &shapes, options);
  EXPECT_FALSE(s.ok()) << op_name(A::kOp) << " was inferred";
  EXPECT_NE(s.message, nullptr);
}

}  // namespace sinter::test
