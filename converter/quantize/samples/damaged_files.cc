#include "converter/quantize/samples/damaged_files.h"

#include <algorithm>
#include <optional>

#include "converter/data/picture.h"
#include "converter/data/sound.h"
#include "converter/files/input_file.h"
#include "converter/import/read/arrays.h"

namespace sinter::convert::detail {
namespace {

// Why a file cannot be decoded; nullopt: it can. Raw bytes have nothing that could be damaged.
std::optional<std::string> damage_of(const std::filesystem::path& file) {
  try {
    const FileKind kind = kind_of_file(file);
    if (kind == FileKind::kPicture) decode_picture(bytes_of_file(file), file.string());
    if (kind == FileKind::kSound) decode_wav(bytes_of_file(file), file.string());
    if (kind == FileKind::kArrays) read_arrays(file);
  } catch (const DataError& e) {
    return e.what();
  }
  return std::nullopt;
}

// `damage(item)`: why it cannot be used.
template <class Item, class Damage>
std::vector<std::string> drop(std::vector<Item>* items, const Damage& damage) {
  std::vector<std::string> reasons;
  std::erase_if(*items, [&](const Item& item) {
    std::optional<std::string> why = damage(item);
    if (why) reasons.push_back(std::move(*why));
    return why.has_value();
  });
  if (items->empty() && !reasons.empty())
    throw DataError(
        fmt::format("--skip-damaged: all samples are damaged, {} in number; give others; the first: {}",
                    reasons.size(), reasons.front()));
  return reasons;
}

}  // namespace

std::vector<std::string> drop_damaged(FileList* list) {
  return drop(&list->samples, [](const ListedSample& sample) -> std::optional<std::string> {
    for (auto file = sample.files.begin(); file != sample.files.end(); ++file)
      if (std::find(sample.files.begin(), file, *file) == file)
        if (auto why = damage_of(*file)) return why;
    return std::nullopt;
  });
}

std::vector<std::string> drop_damaged(std::vector<std::filesystem::path>* files) {
  return drop(files, damage_of);
}

}  // namespace sinter::convert::detail
