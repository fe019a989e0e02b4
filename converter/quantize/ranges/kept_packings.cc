#include "converter/quantize/ranges/kept_packings.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "converter/ir/large_bytes.h"
#include "runtime/core/checked.h"

namespace sinter::convert {

void KeptPackings::Block::Free::operator()(std::byte* p) const { std::free(p); }

KeptPackings::Block::Block(size_t bytes) {
  if (bytes >= kLargeConstantBytes) file_ = FileMemory(bytes);
  bytes_ = file_.span();
  if (!bytes_.empty()) return;
  memory_.reset(static_cast<std::byte*>(
      std::aligned_alloc(kBufferAlignment, align_up(std::max<size_t>(bytes, 1), kBufferAlignment))));
  if (!memory_) throw std::bad_alloc();
  bytes_ = {memory_.get(), bytes};
}

KeptPackings::Part KeptPackings::part_of(const Input& input) {
  Part part;
  part.dtype = input.dtype, part.dims = input.dims;
  if (!input.constant) return part;
  if (input.constant->byte_size() >= kLargeConstantBytes) {
    part.large = input.constant, part.address = input.constant.get();
  } else {
    const LoadedBytes loaded = input.constant->load();
    part.small.assign(loaded.bytes.begin(), loaded.bytes.end());
  }
  return part;
}

bool KeptPackings::same(const Entry& a, const Entry& b) {
  const auto same_part = [](const Part& x, const Part& y) {
    // Another constant may be at the address of one that is gone.
    return x.address == y.address && x.large.lock() == y.large.lock() && x.dtype == y.dtype &&
           x.dims == y.dims && x.small == y.small;
  };
  return a.packing.bytes == b.packing.bytes && a.packing.inputs == b.packing.inputs &&
         std::equal(std::begin(a.packing.parameters), std::end(a.packing.parameters),
                    std::begin(b.packing.parameters)) &&
         std::strcmp(a.backend, b.backend) == 0 &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(), same_part);
}

void KeptPackings::forget(std::list<Entry>::iterator at) {
  bytes_ -= at->packing.bytes;
  entries_.erase(at);
}

std::shared_ptr<const KeptPackings::Block> KeptPackings::apart(const Packing& packing, const Fill& fill,
                                                               Status* status) {
  const auto block = std::make_shared<const Block>(packing.bytes);
  ++made_;
  *status = fill(block->span());
  return status->ok() ? block : nullptr;
}

std::shared_ptr<const KeptPackings::Block> KeptPackings::of(const Key& key, const Fill& fill,
                                                            Status* status) {
  Entry wanted{key.backend, key.packing, {}, nullptr};
  for (const Input& input : key.inputs) wanted.parts.push_back(part_of(input));
  const auto at =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return same(entry, wanted); });
  if (at != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, at);
    return at->block;
  }
  if (key.packing.bytes <= most_bytes_) {
    const auto gone = [](const Entry& entry) {
      return std::any_of(entry.parts.begin(), entry.parts.end(),
                         [](const Part& part) { return part.address != nullptr && part.large.expired(); });
    };
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const auto next = std::next(entry);
      if (gone(*entry)) forget(entry);
      entry = next;
    }
    while (bytes_ + key.packing.bytes > most_bytes_) forget(std::prev(entries_.end()));
  }
  wanted.block = apart(key.packing, fill, status);
  if (!wanted.block || key.packing.bytes > most_bytes_) return wanted.block;
  bytes_ += key.packing.bytes;
  entries_.push_front(std::move(wanted));
  return entries_.front().block;
}

Status KeepingBackend::measure(const OpCall& call, int threads, StepNeeds* needs) {
  SINTER_RETURN_IF_ERROR(packs_.measure(call, threads, needs));
  needs->packing = {};
  return ok_status();
}

Status KeepingBackend::prepare(const OpCall& call, const Preparation& with, PreparedStep* step) {
  StepNeeds needs;
  SINTER_RETURN_IF_ERROR(
      packs_.measure(call, with.threads != nullptr ? with.threads->thread_count() : 1, &needs));
  Preparation own = with;
  if (needs.packing.bytes > 0) SINTER_RETURN_IF_ERROR(find(call, needs.packing, with.threads, &own.packed));
  return packs_.prepare(call, own, step);
}

// Called by the session, which is built without exceptions.
Status KeepingBackend::find(const OpCall& call, const Packing& packing, ThreadPool* threads,
                            std::span<const std::byte>* packed) {
  try {
    KeptPackings::Key key{packs_.name(), packing, {}};
    bool known = true;
    for (size_t i = 0; i < 32; ++i) {
      if ((packing.inputs >> i & 1) == 0) continue;
      KeptPackings::Input input;
      if (call.has_input(i)) {
        const TensorView& view = call.in(i);
        input = {model_.constant_at(view.data), view.dtype, Dims(view.dims, view.dims + view.rank)};
        known = known && input.constant && view.dense();
      }
      key.inputs.push_back(std::move(input));
    }
    const auto fill = [&](std::span<std::byte> bytes) { return packs_.pack(call, bytes, threads); };
    Status status;
    const auto block = known ? kept_.of(key, fill, &status) : kept_.apart(packing, fill, &status);
    if (!block) return status;
    blocks_.push_back(block);
    *packed = block->span();
    return ok_status();
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "this machine does not have enough memory for packed weights");
  }
}

}  // namespace sinter::convert
