#include "converter/import/byte_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

using Layout = Preprocessing::Layout;

// The model's own axes: --layout is that of the bytes.
PictureAxes model_axes(const DataInput& input) {
  try {
    return picture_axes(input, {});
  } catch (const DataError&) {
    throw UsageError(fmt::format(
        "--input-type {0}=uint8: the input ({1}) does not take one picture, which fills [1,C,H,W] or "
        "[1,H,W,C] with C = 1 or 3 "
        "(--layout decides between them); leave it out, or give the integers of --quantize int8 by {0}=int8",
        input.name, to_string(input.dtype, input.dims)));
  }
}

class Emitter {
 public:
  explicit Emitter(GraphLowering& lowering) : lowering_(lowering) {}
  ValueId operator()(OpAttrs attrs, std::vector<ValueId> inputs) {
    std::vector<ValueId> results;
    if (!lowering_.builder().emit(std::move(attrs), std::move(inputs), 1, &results).ok())
      throw std::logic_error("the preprocessing of an input cannot be computed");
    return results[0];
  }
  ValueId constant(const ConstantPtr& c) { return lowering_.graph().add_constant(c, ""); }
  const Dims& dims(ValueId v) const { return lowering_.graph().value(v).dims; }

 private:
  GraphLowering& lowering_;
};

// One number for each channel, so that it meets the channels of a value of this rank.
ConstantPtr of_channels(const std::vector<float>& numbers, const PictureAxes& axes, size_t rank) {
  Dims dims(rank, 1);
  dims[axes.channels_first ? rank - 3 : rank - 1] = axes.channels;
  return Constant::of<float>(DType::kFloat32, dims, numbers);
}

bool all_are(const std::vector<float>& numbers, float x) {
  return std::all_of(numbers.begin(), numbers.end(), [&](float n) { return n == x; });
}

}  // namespace

bool takes_bytes(const ByteInputs& bytes, const DataInput& input) {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), input.name) != names.end();
  };
  if (!bytes.inputs.empty()) return has(bytes.inputs);
  // [1,N] is rather a list of numbers than a line of pixels.
  const bool list = input.dims.size() == 2 && input.dims[0] == 1;
  if (!is_float(input.dtype) || has(bytes.others) || list) return false;
  try {
    picture_axes(input, {});
    return true;
  } catch (const DataError&) {
    return false;
  }
}

ValueId add_byte_input(const DataInput& input, const Preprocessing& how, GraphLowering& lowering) {
  if (!is_float(input.dtype))
    throw UsageError(fmt::format("--input-type {}=uint8: the input is {} already; leave it out", input.name,
                                 dtype_name(input.dtype)));
  const PictureAxes axes = model_axes(input);
  if (how.mean.empty() && how.scale.empty())
    throw UsageError(
        "--input-type uint8 builds (pixel - mean) * scale into the model; give --mean and --scale");
  const size_t rank = input.dims.size();
  const bool has_channels = rank > 2;
  const bool first = how.layout == Layout::kByShape || !has_channels ? axes.channels_first
                                                                     : how.layout == Layout::kChannelsFirst;
  Dims dims = input.dims;
  // From the layout of the bytes to the model's, and back.
  std::vector<int64_t> perm;
  if (first != axes.channels_first) {
    const auto lead = static_cast<int64_t>(rank) - 3;
    for (int64_t i = 0; i < lead; ++i) perm.push_back(i);
    const std::vector<int64_t> to_first{lead + 2, lead, lead + 1}, to_last{lead + 1, lead + 2, lead};
    const std::vector<int64_t>& tail = axes.channels_first ? to_first : to_last;
    perm.insert(perm.end(), tail.begin(), tail.end());
    for (size_t i = 0; i < rank; ++i) dims[static_cast<size_t>(perm[i])] = input.dims[i];
  }
  Graph& graph = lowering.graph();
  Emitter emit(lowering);
  lowering.builder().set_origin({input.name, kByteInputOrigin});
  const ValueId bytes = graph.add_value(input.name, DType::kUint8, dims);
  graph.inputs.push_back(bytes);
  ValueId v = bytes;
  if (!perm.empty()) v = emit(TransposeAttrs{IntList(perm)}, {v});
  if (how.bgr && axes.channels == 3) {
    const int64_t reversed[] = {2, 1, 0};
    const auto axis = static_cast<int64_t>(axes.channels_first ? rank - 3 : rank - 1);
    v = emit(GatherAttrs{axis}, {v, emit.constant(Constant::int64s(reversed))});
  }
  v = emit(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {v});
  lowering.ledger().add({input.name, input.name, "", DType::kUint8, input.dtype, TypeRule::kInputBytes,
                         "--input-type: the preprocessing is built into the model", TypeEffect::kCast});
  const std::vector<float> mean = mean_of_channels(how, axes.channels),
                           scale = scale_of_channels(how, axes.channels);
  const auto numbers = [&](const std::vector<float>& list) {
    if (all_are(list, list[0])) return emit.constant(Constant::scalar(DType::kFloat32, list[0]));
    return emit.constant(of_channels(list, axes, rank));
  };
  if (!all_are(mean, 0)) v = emit(SubAttrs{}, {v, numbers(mean)});
  if (!all_are(scale, 1)) v = emit(MulAttrs{}, {v, numbers(scale)});
  if (input.dtype != DType::kFloat32) v = emit(CastAttrs{static_cast<int64_t>(input.dtype), 1}, {v});
  return v;
}

}  // namespace sinter::convert
