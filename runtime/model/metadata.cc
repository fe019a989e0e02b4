// Metadata and labels of an opened model.
#include <cstring>

#include "runtime/model/model_state.h"
#include "sinter/model.h"

namespace sinter {

using detail::length;
using detail::text;

namespace {

// Returns the class names of an output; null if the file has none.
const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* labels_of(const fb::Model& root,
                                                                               const char* output) {
  for (uint32_t k = 0; k < length(root.labels()); ++k)
    if (std::strcmp(text(root.labels()->Get(k)->output()), output) == 0)
      return root.labels()->Get(k)->texts();
  return nullptr;
}

}  // namespace

uint32_t Model::metadata_count() const { return length(state_->root->metadata()); }
const char* Model::metadata_key(uint32_t i) const { return text(state_->root->metadata()->Get(i)->key()); }
const char* Model::metadata_value(uint32_t i) const {
  return text(state_->root->metadata()->Get(i)->value());
}
const char* Model::metadata(const char* key) const {
  for (uint32_t i = 0; i < metadata_count(); ++i)
    if (std::strcmp(metadata_key(i), key) == 0) return metadata_value(i);
  return nullptr;
}

uint32_t Model::label_count(const char* output) const { return length(labels_of(*state_->root, output)); }
const char* Model::label(const char* output, uint32_t i) const {
  const auto* texts = labels_of(*state_->root, output);
  return i < length(texts) ? text(texts->Get(i)) : nullptr;
}

}  // namespace sinter
