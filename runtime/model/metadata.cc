// Metadata and labels of an opened model.
#include <cstring>

#include "runtime/model/model_state.h"
#include "sinter/model.h"

namespace sinter {

using detail::length;
using detail::text;

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

uint32_t Model::label_count(const char* output) const {
  uint32_t count = 0;
  while (label(output, count) != nullptr) ++count;
  return count;
}
const char* Model::label(const char* output, uint32_t i) const {
  const auto* lists = state_->root->labels();
  for (uint32_t k = 0; k < length(lists); ++k)
    if (std::strcmp(text(lists->Get(k)->output()), output) == 0)
      return i < length(lists->Get(k)->texts()) ? text(lists->Get(k)->texts()->Get(i)) : nullptr;
  return nullptr;
}

}  // namespace sinter
