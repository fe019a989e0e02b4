// The verifier of metadata and labels: bounded numbers and texts, keys in order, outputs that exist.
#include <cstring>

#include "runtime/model/verify.h"

namespace sinter::detail {
namespace {

// Returns whether a text is present and has at most `most` bytes. FlatBuffers' verifier has checked that it
// ends within the file.
bool good_text(const flatbuffers::String* text, uint32_t most) {
  return text != nullptr && text->size() <= most;
}

// Not inline: where FlatBuffers' accessors are, GCC warns of reads beyond their tables.
[[gnu::noinline]] int compare(const flatbuffers::String* a, const flatbuffers::String* b) {
  return std::strcmp(text(a), text(b));
}

bool has_output(const fb::Model& root, const flatbuffers::String* name) {
  const fb::Program& program = *root.programs()->Get(items(root.profiles()->Get(0)->entries())[0]);
  for (uint32_t i = 0; i < length(program.outputs()); ++i)
    if (compare(program.outputs()->Get(i)->name(), name) == 0) return true;
  return false;
}

}  // namespace

Status verify_metadata(const fb::Model& root) {
  const uint32_t count = length(root.metadata());
  SINTER_RETURN_UNLESS(count <= kMaxMetadata, corrupt("the model has too many metadata"));
  const flatbuffers::String* before = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    const fb::Metadata& item = *root.metadata()->Get(i);
    SINTER_RETURN_UNLESS(good_text(item.key(), kMaxKeyBytes) && good_text(item.value(), kMaxMetadataBytes) &&
                             compare(before, item.key()) < 0,
                         corrupt("metadata %a is damaged or out of order", i));
    before = item.key();
  }
  for (uint32_t i = 0; i < length(root.labels()); ++i) {
    const fb::Labels& labels = *root.labels()->Get(i);
    bool good = labels.output() != nullptr && has_output(root, labels.output());
    for (uint32_t k = 0; k < i && good; ++k)
      good = compare(root.labels()->Get(k)->output(), labels.output()) != 0;
    for (uint32_t k = 0; k < length(labels.texts()) && good; ++k)
      good = good_text(labels.texts()->Get(k), kMaxLabelBytes);
    SINTER_RETURN_UNLESS(good, corrupt("list %a of labels is damaged", i));
  }
  return ok_status();
}

}  // namespace sinter::detail
