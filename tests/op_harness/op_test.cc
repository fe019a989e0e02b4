#include "tests/op_harness/op_test.h"

#include "tests/op_harness/backends.h"
#include "tests/op_harness/tolerance.h"

namespace sinter::test {
namespace {

// Runs with input 0 overlapping output 0, as close behind it as the kernel states; returns false where the
// kernel states nothing. `result`: output 0.
bool run_overlapped(Op op, const void* attrs, const std::vector<Tensor>& inputs,
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

// Runs with each output unwanted, and with each alone; the others must stay the same.
void check_unwanted(Op op, const void* attrs, const std::vector<Tensor>& inputs,
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

// Runs the reference kernel in every other layout, which must give the bytes of `dense`.
void check_reference(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                     const std::vector<TensorView>& shapes, const std::vector<Tensor>& dense,
                     const RunOptions& options) {
  const size_t count = shapes.size();
  std::vector<Tensor> other;
  const auto compare = [&](Layout in, Layout out, int alias, const std::string& what) {
    const Status s = run_once(op, attrs, inputs, shapes, in, out, alias, &other);
    EXPECT_TRUE(s.ok()) << op_name(op) << " " << what << ": " << sentence(s);
    if (!s.ok()) return;
    for (size_t i = 0; i < count; ++i)
      EXPECT_TRUE(equal_but_for_nan(other[i], dense[i]))
          << op_name(op) << " output " << i << " differs " << what;
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
  if (options.in_place && count > 0 && shapes[0].rank != kUnwantedRank)
    for (size_t i = 0; i < most_in_place(*info, inputs.size()); ++i) {
      const Shape dims(shapes[0].shape().begin(), shapes[0].shape().end());
      if (inputs[i].dims != dims || byte_width(inputs[i].dtype) != byte_width(shapes[0].dtype)) continue;
      compare(Layout::kDense, Layout::kDense, static_cast<int>(i), "in place of input " + std::to_string(i));
    }
  if (Tensor result; run_overlapped(op, attrs, inputs, shapes, &result)) {
    EXPECT_EQ(result.bytes, dense[0].bytes) << op_name(op) << " differs where input 0 begins behind output 0";
  }
}

}  // namespace

std::string sentence(const Status& s) {
  char buffer[256];
  format_status(s, buffer);
  return buffer;
}

Status infer_op(Op op, const void* attrs, const std::vector<Tensor>& inputs, std::vector<TensorView>* outputs,
                const RunOptions& options) {
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

Status run_once(Op op, const void* attrs, const std::vector<Tensor>& inputs,
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

std::vector<Tensor> run_op(Op op, const void* attrs, const std::vector<Tensor>& inputs,
                           const RunOptions& options) {
  std::vector<TensorView> shapes;
  const Status inferred = infer_op(op, attrs, inputs, &shapes, options);
  EXPECT_TRUE(inferred.ok()) << op_name(op) << " infer: " << sentence(inferred);
  if (!inferred.ok()) return std::vector<Tensor>(shapes.size());
  std::vector<Tensor> dense;
  const Status ran = run_once(op, attrs, inputs, shapes, Layout::kDense, Layout::kDense, -1, &dense);
  EXPECT_TRUE(ran.ok()) << op_name(op) << " run: " << sentence(ran);
  if (!ran.ok()) return std::vector<Tensor>(shapes.size());
  if (!backends_are_limited()) check_reference(op, attrs, inputs, shapes, dense, options);
  if (options.backends) check_backends(op, attrs, inputs, shapes, dense, options);
  return dense;
}

}  // namespace sinter::test
