// The files of DATA, where each sample is a file of its own (or one for each input).
//
//   cat.png            one file: .png .jpg .jpeg .wav .bin
//   photos/            a folder with all of its sub-folders, in the order of the paths
//   'photos/*.jpg'     a pattern
//   list.json          ["a.png", {"image": "b.png", "label": 3}]
//   list.jsonl         one such entry a line (JSON Lines); .json may hold these, too
//   list.csv           FILE,LABEL a line; the first line may be a header
//
// Paths in a list are relative to the list.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sinter::convert {

// The kind of a file, by its extension (in any case).
enum class FileKind {
  kOther,
  kArrays,    // .npz .npy .pb
  kPicture,   // .png .jpg .jpeg
  kSound,     // .wav
  kRaw,       // .bin: the bytes of one sample of one input
  kJsonList,  // .json .jsonl
  kCsvList,   // .csv
};
FileKind kind_of_file(const std::filesystem::path& path);

struct ListedSample {
  std::vector<std::filesystem::path> files;  // one for each input
  std::string label;                         // a number or the name of a class; empty: none
};

struct FileList {
  std::vector<ListedSample> samples;
  bool single = false;  // DATA is one file of one sample
  // The labels are names of sub-folders. Without a list of classes, a label is the rank of its name.
  bool by_folder = false;

  // Whether a sample has a picture or a sound, to which Preprocessing applies.
  bool has_media() const;
};

// Returns the files; nothing if DATA is a command, a file of arrays, or a folder or pattern of such files
// alone. `inputs` are the names of the model's inputs, `label` is the key of labels in a JSON list, or empty.
// Throws FileError where a file cannot be read, DataError for a list that is damaged or does not fit them.
std::optional<FileList> list_files(const std::string& data, const std::vector<std::string>& inputs,
                                   const std::string& label = {});

// Returns the files of arrays in a folder (not below it) or of a pattern, in order. Throws DataError: none.
std::vector<std::filesystem::path> array_files(const std::string& data);

// Whether DATA names files by a pattern (*, ?, [) or a folder.
bool names_several_files(const std::string& data);

}  // namespace sinter::convert
