// Lengths that the caller gives, and tensors of these lengths in memory that is planned for the maxima.
#include <cstring>

#include "runtime/session/session_state.h"
#include "sinter/session.h"

namespace sinter {
namespace detail {
namespace {

// Copies a tensor of `lengths` between a dense one and the first elements of the axes of `whole`, which is
// dense and at most as long.
class CompactCopy {
 public:
  CompactCopy(const TensorView& whole, std::span<const int64_t> lengths) : lengths_(lengths.data()) {
    // All elements from axis `inner_` on are next to each other.
    inner_ = whole.rank;
    int64_t stride = static_cast<int64_t>(byte_width(whole.dtype));
    row_ = static_cast<size_t>(stride);
    for (bool same = true; inner_ > 0 && same; --inner_) {
      row_ *= static_cast<size_t>(lengths[static_cast<size_t>(inner_) - 1]);
      same = lengths[static_cast<size_t>(inner_) - 1] == whole.dims[inner_ - 1];
    }
    for (int axis = whole.rank - 1; axis >= 0; --axis) strides_[axis] = stride, stride *= whole.dims[axis];
  }

  // `copy(offset in the whole, offset in the dense one, bytes)` for each run of elements.
  template <class Copy>
  void each_row(const Copy& copy) const {
    for (int axis = 0; axis < inner_; ++axis)
      if (lengths_[axis] == 0) return;
    if (row_ == 0) return;
    int64_t at[kMaxRank] = {};
    for (size_t done = 0;; done += row_) {
      int64_t offset = 0;
      for (int axis = 0; axis < inner_; ++axis) offset += at[axis] * strides_[axis];
      copy(static_cast<size_t>(offset), done, row_);
      int axis = inner_ - 1;
      while (axis >= 0 && ++at[axis] == lengths_[axis]) at[axis--] = 0;
      if (axis < 0) return;
    }
  }

 private:
  const int64_t* lengths_;
  int inner_ = 0;
  size_t row_ = 0;
  int64_t strides_[kMaxRank] = {};
};

// Returns the bytes of a tensor of these dims, which are at most those of a planned one.
size_t bytes_of_shape(const TensorView& view, std::span<const int64_t> dims) {
  size_t bytes = byte_width(view.dtype);
  for (const int64_t dim : dims) bytes *= static_cast<size_t>(dim);
  return bytes;
}

Status other_size(size_t needed, size_t given) {
  return invalid("a tensor of this shape has %a bytes, but %b were given", static_cast<int64_t>(needed),
                 static_cast<int64_t>(given));
}

}  // namespace

Status place_lengths(const SessionState& session) {
  for (uint32_t i = 0; i < session.given_count; ++i) {
    const GivenAxis &axis = session.given[i], &first = session.given[axis.first];
    SINTER_RETURN_UNLESS(
        axis.now == first.now,
        invalid("its length is %a, but that of another input with the same dimension is %b; give both inputs "
                "anew",
                axis.now, first.now)
            .at(Where::kInput, static_cast<int32_t>(axis.input)));
  }
  for (uint32_t i = 0; i < session.given_count; ++i)
    std::memcpy(session.given[i].at, &session.given[i].now, sizeof(int64_t));
  return ok_status();
}

}  // namespace detail

namespace {

using detail::GivenAxis;
using detail::SessionState;

Status no_input(uint32_t i) { return invalid("the model does not have an input %a", i); }

// Refuses dims that input `i` does not take.
Status check_shape(const SessionState& session, uint32_t i, const TensorView& view,
                   std::span<const int64_t> dims) {
  SINTER_RETURN_UNLESS(dims.size() == view.rank, invalid("it has %a axes, but the shape has %b", view.rank,
                                                         static_cast<int64_t>(dims.size())));
  uint32_t bounded = 0;  // axes, a bit for each
  for (uint32_t k = 0; k < session.given_count; ++k) {
    const AxisRange& range = session.given[k].range;
    if (session.given[k].input != i) continue;
    const int64_t length = dims[static_cast<size_t>(range.axis)];
    bounded |= uint32_t{1} << range.axis;
    SINTER_RETURN_UNLESS(length >= range.minimum && length <= range.maximum,
                         invalid("its %r, but the shape has %a", length, address_of(range)));
  }
  for (int axis = 0; axis < view.rank; ++axis)
    SINTER_RETURN_UNLESS(
        (bounded >> axis & 1) != 0 || dims[static_cast<size_t>(axis)] == view.dims[axis],
        invalid("its axis %a has %b entries, but the shape has another number", axis, view.dims[axis]));
  return ok_status();
}

void set_lengths(SessionState& session, uint32_t i, std::span<const int64_t> dims) {
  for (uint32_t k = 0; k < session.given_count; ++k)
    if (GivenAxis& axis = session.given[k]; axis.input == i)
      axis.now = dims[static_cast<size_t>(axis.range.axis)];
}

}  // namespace

Status Session::set_shape(uint32_t i, std::span<const int64_t> dims) {
  SINTER_RETURN_UNLESS(i < state_->inputs, no_input(i));
  SINTER_RETURN_IF_ERROR(check_shape(*state_, i, input(i), dims).at(Where::kInput, static_cast<int32_t>(i)));
  set_lengths(*state_, i, dims);
  return ok_status();
}

Status Session::write_input(uint32_t i, std::span<const std::byte> values, std::span<const int64_t> dims) {
  SINTER_RETURN_UNLESS(i < state_->inputs, no_input(i));
  const auto at = [&](Status status) { return status.at(Where::kInput, static_cast<int32_t>(i)); };
  const TensorView view = input(i);
  SINTER_RETURN_IF_ERROR(at(check_shape(*state_, i, view, dims)));
  SINTER_RETURN_UNLESS(view.memory == 0, at(unsupported("it is bound to device memory; write it there, and "
                                                        "give its shape with set_shape()")));
  const size_t bytes = detail::bytes_of_shape(view, dims);
  SINTER_RETURN_UNLESS(values.size() == bytes, at(detail::other_size(bytes, values.size())));
  set_lengths(*state_, i, dims);
  detail::CompactCopy(view, dims).each_row([&](size_t whole, size_t compact, size_t count) {
    std::memcpy(view.data + whole, values.data() + compact, count);
  });
  return ok_status();
}

int64_t Session::input_length(uint32_t i, int axis) const {
  const TensorView view = input(i);
  if (axis < 0 || axis >= view.rank) return 0;
  for (uint32_t k = 0; k < state_->given_count; ++k)
    if (state_->given[k].input == i && state_->given[k].range.axis == axis) return state_->given[k].now;
  return view.dims[axis];
}

Status Session::read_output(uint32_t i, std::span<std::byte> values) const {
  SINTER_RETURN_UNLESS(i < state_->outputs, invalid("the model does not have an output %a", i));
  const auto at = [&](Status status) { return status.at(Where::kOutput, static_cast<int32_t>(i)); };
  const TensorView view = output(i);
  SINTER_RETURN_UNLESS(view.memory == 0, at(unsupported("it is bound to device memory; read it there")));
  int64_t dims[kMaxRank] = {};
  for (int axis = 0; axis < view.rank; ++axis) dims[axis] = output_length(i, axis);
  const std::span<const int64_t> lengths(dims, static_cast<size_t>(view.rank));
  const size_t bytes = detail::bytes_of_shape(view, lengths);
  SINTER_RETURN_UNLESS(values.size() == bytes, at(detail::other_size(bytes, values.size())));
  detail::CompactCopy(view, lengths).each_row([&](size_t whole, size_t compact, size_t count) {
    std::memcpy(values.data() + compact, view.data + whole, count);
  });
  return ok_status();
}

}  // namespace sinter
