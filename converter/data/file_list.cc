#include "converter/data/file_list.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>

#include "converter/data/list_formats.h"
#include "converter/diagnostics/errors.h"
#include "converter/files/input_file.h"

namespace sinter::convert {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormats = ".png, .jpg, .jpeg, .wav, .bin, .npy, .npz or .pb";

bool is_pattern(const std::string& data) {
  std::error_code unknown;
  return data.find_first_of("*?[") != std::string::npos && !fs::exists(data, unknown);
}

std::vector<fs::path> matches_of(const std::string& pattern) {
  glob_t found = {};
  const int code = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<fs::path> files(found.gl_pathv, found.gl_pathv + (code == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  std::erase_if(files, [](const fs::path& p) {
    std::error_code unknown;
    return kind_of_file(p) == FileKind::kOther || fs::is_directory(p, unknown);
  });
  std::sort(files.begin(), files.end());
  return files;
}

// Returns the entries of a folder, sorted. Throws FileError where it cannot be read.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code fault;
  for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault))
    entries.push_back(*at);
  if (fault)
    throw FileError(fmt::format("{}: the folder cannot be read: {}; check its permissions", folder.string(),
                                fault.message()));
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Adds the files of samples below a folder, and passes over others (read-me files, hidden ones). `above` are
// the folders that led here; a link to one of them is refused.
void add_files_below(const fs::path& folder, std::vector<fs::path>* above, std::vector<fs::path>* files) {
  std::error_code fault;
  const fs::path real = fs::canonical(folder, fault);
  if (std::find(above->begin(), above->end(), real) != above->end())
    throw FileError(fmt::format("{}: this link leads to a folder that it is in; remove it", folder.string()));
  above->push_back(real);
  for (const fs::directory_entry& entry : entries_of(folder)) {
    if (entry.is_directory(fault)) {
      add_files_below(entry.path(), above, files);
      continue;
    }
    const FileKind kind = kind_of_file(entry.path());
    const bool is_sample = kind == FileKind::kArrays || kind == FileKind::kPicture ||
                           kind == FileKind::kSound || kind == FileKind::kRaw;
    if (is_sample && !entry.path().filename().string().starts_with('.')) files->push_back(entry.path());
  }
  above->pop_back();
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> above, files;
  add_files_below(folder, &above, &files);
  std::sort(files.begin(), files.end());
  return files;
}

bool is_arrays(const fs::path& path) { return kind_of_file(path) == FileKind::kArrays; }

// Returns the file for every input if it is an archive, else for the only one.
std::vector<fs::path> for_every_input(const fs::path& path, const std::vector<std::string>& inputs) {
  if (inputs.size() > 1 && path.extension() != ".npz")
    throw DataError(fmt::format(
        "{}: the model has {} inputs, so that one file is not a sample; give a list (.json) of entries "
        "such as {{\"{}\": FILE, \"{}\": FILE}}",
        path.string(), inputs.size(), inputs[0], inputs[1]));
  return std::vector(inputs.size(), path);
}

// Returns the first sub-folder of `folder` on the way to the file, which is its label.
std::string label_below(const fs::path& folder, const fs::path& file) {
  const fs::path inside = file.lexically_relative(folder);
  return std::distance(inside.begin(), inside.end()) < 2 ? std::string() : inside.begin()->string();
}

FileList list_of(const std::vector<fs::path>& files, const std::vector<std::string>& inputs) {
  FileList list;
  for (const fs::path& file : files) list.samples.push_back({for_every_input(file, inputs), {}});
  return list;
}

std::optional<FileList> list_folder(const fs::path& folder, const std::vector<std::string>& inputs) {
  const std::vector<fs::path> files = files_below(folder);
  if (files.empty())
    throw DataError(fmt::format("{} holds no files of samples ({})", folder.string(), kFormats));
  const bool nested = std::any_of(files.begin(), files.end(),
                                  [&](const fs::path& f) { return !label_below(folder, f).empty(); });
  if (!nested && std::all_of(files.begin(), files.end(), is_arrays)) return std::nullopt;
  FileList list = list_of(files, inputs);
  list.by_folder = true;
  for (size_t i = 0; i < files.size(); ++i) list.samples[i].label = label_below(folder, files[i]);
  return list;
}

FileList list_entries(std::vector<ListEntry> entries, const fs::path& at,
                      const std::vector<std::string>& inputs) {
  const auto place = [&](const std::string& file) { return at.parent_path() / file; };
  FileList list;
  for (size_t i = 0; i < entries.size(); ++i) {
    const ListEntry& e = entries[i];
    ListedSample sample{{}, e.label};
    if (!e.file.empty()) {
      sample.files = for_every_input(place(e.file), inputs);
    } else {
      for (const std::string& input : inputs) {
        const auto found = std::find_if(e.files.begin(), e.files.end(),
                                        [&](const auto& item) { return item.first == input; });
        if (found == e.files.end())
          throw DataError(fmt::format("{}, entry {}: it names no file for input '{}'; add \"{}\": FILE",
                                      at.string(), i + 1, input, input));
        sample.files.push_back(place(found->second));
      }
    }
    list.samples.push_back(std::move(sample));
  }
  return list;
}

void check_files(const FileList& list, const std::string& data) {
  if (list.samples.empty()) throw DataError(data + " holds no samples");
  for (const ListedSample& sample : list.samples)
    for (const fs::path& file : sample.files) {
      const FileKind kind = kind_of_file(file);
      if (kind == FileKind::kOther || kind == FileKind::kJsonList || kind == FileKind::kCsvList)
        throw DataError(
            fmt::format("{}: files of this kind are not read as samples; give {}", file.string(), kFormats));
      std::error_code fault;
      if (!fs::is_regular_file(file, fault)) const InputFile reports(file);
    }
}

}  // namespace

FileKind kind_of_file(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto is = [&](auto... one) { return ((extension == one) || ...); };
  if (is(".npz", ".npy", ".pb")) return FileKind::kArrays;
  if (is(".png", ".jpg", ".jpeg")) return FileKind::kPicture;
  if (is(".wav")) return FileKind::kSound;
  if (is(".bin")) return FileKind::kRaw;
  if (is(".json", ".jsonl")) return FileKind::kJsonList;
  if (is(".csv")) return FileKind::kCsvList;
  return FileKind::kOther;
}

bool FileList::has_media() const {
  for (const ListedSample& sample : samples)
    for (const fs::path& file : sample.files)
      if (const FileKind kind = kind_of_file(file); kind == FileKind::kPicture || kind == FileKind::kSound)
        return true;
  return false;
}

bool names_several_files(const std::string& data) {
  std::error_code unknown;
  return fs::is_directory(data, unknown) || is_pattern(data);
}

std::vector<fs::path> array_files(const std::string& data) {
  std::vector<fs::path> files;
  if (is_pattern(data)) {
    files = matches_of(data);
  } else {
    for (const auto& entry : entries_of(data)) files.push_back(entry.path());
  }
  std::erase_if(files, [](const fs::path& file) { return !is_arrays(file); });
  if (files.empty()) throw DataError(data + " holds no .npz, .npy or .pb files");
  return files;
}

std::optional<FileList> list_files(const std::string& data, const std::vector<std::string>& inputs,
                                   const std::string& label) {
  if (data.starts_with("cmd:")) return std::nullopt;
  std::optional<FileList> list;
  std::error_code unknown;
  if (fs::is_directory(data, unknown)) {
    list = list_folder(data, inputs);
  } else if (is_pattern(data)) {
    const std::vector<fs::path> files = matches_of(data);
    if (files.empty())
      throw DataError(fmt::format("{}: no file of samples ({}) fits this pattern", data, kFormats));
    if (!std::all_of(files.begin(), files.end(), is_arrays)) list = list_of(files, inputs);
  } else if (const FileKind kind = kind_of_file(data);
             kind == FileKind::kJsonList || kind == FileKind::kCsvList) {
    const std::vector<std::byte> bytes = bytes_of_file(data);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    list = list_entries(
        kind == FileKind::kCsvList ? parse_csv_list(text, data, label) : parse_json_list(text, data, label),
        data, inputs);
  } else if (kind == FileKind::kPicture || kind == FileKind::kSound || kind == FileKind::kRaw) {
    list = list_of({data}, inputs);
    list->single = true;
  }
  if (!list) return std::nullopt;
  check_files(*list, data);
  return list;
}

}  // namespace sinter::convert
