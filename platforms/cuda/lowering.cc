#include "platforms/cuda/lowering.h"

#include <cstring>

namespace sinter::cuda {

struct Lowering::Linked {
  Action action;  // first, because an Action's address is its Linked's
  Linked* next = nullptr;
};

const Action* Lowering::next(const Action* action) {
  const Linked* next = reinterpret_cast<const Linked*>(action)->next;
  return next != nullptr ? &next->action : nullptr;
}

const TensorView& Lowering::in(size_t i) {
  if (!is_constant(i)) return call_.in(i);
  if (brought_at_[i] != 0) return brought_[brought_at_[i] - 1];
  if (brought_count_ == kMostUploads) return exhausted_ = true, call_.in(i);
  TensorView& view = brought_[brought_count_++];
  brought_at_[i] = static_cast<uint8_t>(brought_count_);
  view = call_.in(i);
  view.set_dense_strides();
  const auto bytes = static_cast<size_t>(view.dense_bytes());
  view.data = bring(bytes, static_cast<int>(i), nullptr, call_.in(i).dense() ? 0 : bytes);
  return view;
}

std::byte* Lowering::packed(size_t bytes, Pack pack) { return bring(bytes, -1, pack, bytes); }

std::byte* Lowering::bring(size_t bytes, int input, Pack pack, size_t scratch) {
  const size_t room = align_up(bytes + kReadPadding, kBufferAlignment);
  if (scratch > scratch_) scratch_ = scratch;
  device_here_.allocate(room, kBufferAlignment);
  if (upload_count_ == kMostUploads || room < bytes || device_here_.exhausted())
    return exhausted_ = true, nullptr;
  std::byte* to = nullptr;
  if (device_prepared_ != nullptr) {
    to = static_cast<std::byte*>(device_prepared_->allocate(room, kBufferAlignment));
    if (to == nullptr) exhausted_ = true;
  }
  uploads_[upload_count_++] = {to, bytes, input, pack};
  return to;
}

std::byte* Lowering::workspace(size_t bytes) {
  const size_t at = align_up(workspace_used_, kBufferAlignment);
  if (at < workspace_used_ || bytes > SIZE_MAX / 2 - at) return exhausted_ = true, nullptr;
  workspace_used_ = at + bytes;
  if (prepared_ == nullptr) return nullptr;
  if (workspace_used_ > workspace_.size()) return exhausted_ = true, nullptr;
  return workspace_.data() + at;
}

// Returns null while measuring.
Lowering::Linked* Lowering::add_action(size_t argument_bytes) {
  ++actions_;
  constexpr size_t kArgumentAlignment = 16;
  prepared_here_.allocate(sizeof(Linked), kArgumentAlignment);
  prepared_here_.allocate(argument_bytes, kArgumentAlignment);
  if (prepared_ == nullptr) return nullptr;
  void* memory = prepared_->allocate(sizeof(Linked), kArgumentAlignment);
  void* arguments = prepared_->allocate(argument_bytes, kArgumentAlignment);
  if (memory == nullptr || arguments == nullptr) return exhausted_ = true, nullptr;
  auto* linked = new (memory) Linked();
  linked->action.arguments = arguments;
  (last_linked_ != nullptr ? last_linked_->next : first_linked_) = linked;
  last_linked_ = linked;
  if (first_ == nullptr) first_ = &linked->action;
  return linked;
}

Status Lowering::launch(Kernel kernel, const LaunchShape& shape, const void* arguments, size_t bytes) {
  SINTER_RETURN_UNLESS(
      shape.shared_bytes <= kMostShared && shape.blocks[1] <= 65535 && shape.blocks[2] <= 65535,
      error(Code::kInternal, "a kernel of the CUDA platform is launched beyond a device's limits"));
  if (shape.blocks[0] == 0 || shape.blocks[1] == 0 || shape.blocks[2] == 0) return ok_status();
  Linked* linked = add_action(bytes);
  last_is_launch_ = true, last_kernel_ = kernel, last_argument_bytes_ = bytes;
  if (linked == nullptr) return ok_status();
  linked->action.kind = Action::Kind::kLaunch;
  linked->action.kernel = kernel;
  linked->action.shape = shape;
  linked->action.argument_bytes = static_cast<uint32_t>(bytes);
  std::memcpy(const_cast<void*>(linked->action.arguments), arguments, bytes);
  return ok_status();
}

Status Lowering::check_dense() const {
  for (size_t i = 0; i < call_.inputs.size(); ++i)
    SINTER_RETURN_UNLESS(!has_input(i) || is_constant(i) || call_.in(i).dense(),
                         unsupported("an operand is not dense"));
  for (size_t i = 0; i < call_.outputs.size(); ++i)
    SINTER_RETURN_UNLESS(!has_output(i) || out(i).dense(), unsupported("a result is not dense"));
  return ok_status();
}

Status Lowering::fill(std::byte* to, size_t bytes, uint8_t value) {
  if (bytes == 0) return ok_status();
  Linked* linked = add_action(0);
  last_is_launch_ = false;
  if (linked == nullptr) return ok_status();
  linked->action.kind = Action::Kind::kFill;
  linked->action.to = to;
  linked->action.bytes = bytes;
  linked->action.fill = value;
  return ok_status();
}

// ---- helpers

Status box_of(std::span<const int64_t> dims, Box* box) {
  *box = {};
  int64_t size = 1;
  for (const int64_t d : dims) {
    box->dims[box->rank++] = Divider(d > 0 && d <= INT32_MAX ? d : 1);
    SINTER_RETURN_UNLESS(d >= 0 && checked_mul(size, d, &size) && size <= INT32_MAX,
                         unsupported("an operand has 2^31 elements or more"));
  }
  box->size = static_cast<uint32_t>(size);
  return ok_status();
}

Steps steps_of(const TensorView& view, const Box& box) {
  Steps steps;
  for (int i = 0; i < view.rank; ++i)
    if (view.dims[view.rank - 1 - i] != 1) steps.of[box.rank - 1 - i] = view.strides[view.rank - 1 - i];
  return steps;
}

void merge_axes(Box* box, std::span<Steps* const> steps) {
  int rank = 0;
  for (int i = 0; i < box->rank; ++i) {
    const Divider dim = box->dims[i];
    if (dim.divisor == 1) continue;
    // An axis joins the one before it, if that one's steps span it.
    bool merge = rank > 0;
    for (const Steps* s : steps)
      merge = merge && s->of[rank - 1] == s->of[i] * static_cast<int64_t>(dim.divisor);
    if (merge) {
      box->dims[rank - 1] = Divider(int64_t{box->dims[rank - 1].divisor} * dim.divisor);
      for (Steps* s : steps) s->of[rank - 1] = s->of[i];
      continue;
    }
    box->dims[rank] = dim;
    for (Steps* s : steps) s->of[rank] = s->of[i];
    ++rank;
  }
  box->rank = rank;
}

int widen_elements(Box* box, std::span<Steps* const> steps, int width) {
  if (box->rank == 0) return width;
  const int last = box->rank - 1;
  for (const Steps* s : steps)
    if (s->of[last] != width) return width;
  for (int wide = 16; wide > width; wide /= 2) {
    const auto factor = static_cast<uint32_t>(wide / width);
    bool fits = box->dims[last].divisor % factor == 0;
    for (const Steps* s : steps)
      for (int i = 0; i < last; ++i) fits = fits && s->of[i] % wide == 0;
    if (!fits) continue;
    box->dims[last] = Divider(box->dims[last].divisor / factor);
    box->size /= factor;
    for (Steps* s : steps) s->of[last] = wide;
    return wide;
  }
  return width;
}

bool steps_are_whole(const TensorView& view) {
  const auto width = static_cast<int64_t>(byte_width(view.dtype));
  for (int i = 0; i < view.rank; ++i)
    if (width == 0 || (view.dims[i] > 1 && view.strides[i] % width != 0)) return false;
  return true;
}

}  // namespace sinter::cuda
