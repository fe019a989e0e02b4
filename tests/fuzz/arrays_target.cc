// Input data. The kind of file follows from its first bytes, as the seeds are ordinary files; damaged ones go
// to the reader of archives.
#include <zip.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "converter/data/list_formats.h"
#include "converter/data/preprocessing.h"
#include "converter/diagnostics/errors.h"
#include "converter/import/read/arrays.h"
#include "converter/quantize/samples/samples.h"
#include "tests/fuzz/targets.h"

namespace sinter::fuzz {
namespace {

using convert::Arrays;

// Files of samples that do not hold arrays.
constexpr std::string_view kPicture = ".png", kSound = ".wav", kList = ".json";

std::string_view kind_of(View bytes) {
  const auto begins = [&](std::string_view with) {
    return bytes.size() >= with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
  };
  if (begins("\x93NUM")) return ".npy";
  if (begins("\x89PNG") || begins("\xff\xd8\xff")) return kPicture;
  if (begins("RIFF")) return kSound;
  if (begins("[") || begins("{") || begins("file,")) return kList;
  return begins("PK") || begins("\x93") || bytes.size() < 4 ? ".npz" : ".pb";
}

// Decoded, and as inputs of a model.
void run_media(View bytes, std::string_view kind) {
  constexpr int64_t kMostPixels = 1 << 20;  // that are resized: time is limited
  convert::Preprocessing how;
  how.scale = {1.0f / 255};
  const std::span<const std::byte> file = std::as_bytes(bytes);
  try {
    if (kind == kList) {
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      size_t entries = convert::parse_csv_list(text, "input", "label").size();
      entries += convert::parse_json_list(text, "input", "label").size();
      counts.accepted += entries > 0;
    } else if (kind == kSound) {
      const convert::Sound sound = convert::decode_wav(file, "input");
      ++counts.accepted;
      if (static_cast<int64_t>(sound.samples.size()) != sound.frames * sound.channels)
        broken("a sound has as many samples as it states");
      how.resize = convert::Preprocessing::Resize::kCrop;
      convert::sound_input(sound, "input", {"x", DType::kFloat32, {1, 4}}, how);
    } else {
      const convert::Picture picture = convert::decode_picture(file, "input");
      ++counts.accepted;
      if (static_cast<int64_t>(picture.pixels.size()) != picture.width * picture.height * picture.channels)
        broken("a picture has as many pixels as it states");
      if (picture.width * picture.height > kMostPixels) return;
      for (const auto mode : {convert::Preprocessing::Resize::kExact, convert::Preprocessing::Resize::kCrop,
                              convert::Preprocessing::Resize::kLetterbox}) {
        how.resize = mode;
        convert::picture_input(picture, "input", {"x", DType::kFloat32, {1, 3, 7, 9}}, how);
      }
    }
  } catch (const convert::DataError&) {
    return;
  }
  ++counts.ran;
}

void run_arrays(View bytes) {
  const std::string_view kind = kind_of(bytes);
  ++counts.inputs;
  if (kind == kPicture || kind == kSound || kind == kList) return run_media(bytes, kind);
  Arrays arrays;
  try {
    arrays = convert::parse_arrays(std::as_bytes(bytes), kind, "input");
  } catch (const convert::DataError&) {
    return;
  }
  ++counts.accepted;
  size_t total = 0, sum = 0;
  std::vector<convert::SampleInput> inputs;
  for (const auto& [name, array] : arrays) {
    const convert::LoadedBytes loaded = array->load();
    if (loaded.bytes.size() != array->byte_size()) broken("an array's bytes do not match its shape");
    for (const std::byte b : loaded.bytes) sum += static_cast<size_t>(b);
    total += loaded.bytes.size();
    convert::Dims dims = array->dims();
    if (!dims.empty()) dims.erase(dims.begin());
    inputs.push_back({name, array->dtype(), dims, {}});
  }
  if (sum == SIZE_MAX) broken("cannot be");
  if (total > (size_t{64} << 20) || inputs.empty()) return;
  // The same file as calibration data: read piece by piece.
  static const std::string base = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
  const std::string path = base + "/sinter-fuzz-" + std::to_string(::getpid()) + std::string(kind);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  try {
    const auto samples = convert::open_samples(path, inputs);
    convert::Sample sample;
    for (int i = 0; i < 1000 && samples->next(&sample); ++i)
      for (const convert::ConstantPtr& c : sample) sum += c->load().bytes.size();
  } catch (const convert::DataError&) {
  } catch (const convert::FileError&) {
  }
  std::filesystem::remove(path);
}

// An archive taken apart, and made again of changed entries, so that checksums are right.
using Entries = std::vector<std::pair<std::string, Blob>>;

Entries unzip(View bytes) {
  Entries entries;
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t* zip = source != nullptr ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr;
  if (zip == nullptr) {
    if (source != nullptr) zip_source_free(source);
    return entries;
  }
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0) && i < 64; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &stat) != 0 || stat.size > (1 << 20)) continue;
    zip_file_t* file = zip_fopen_index(zip, static_cast<zip_uint64_t>(i), 0);
    if (file == nullptr) continue;
    Blob data(stat.size);
    if (zip_fread(file, data.data(), data.size()) == static_cast<zip_int64_t>(data.size()))
      entries.emplace_back(stat.name, std::move(data));
    zip_fclose(file);
  }
  zip_discard(zip);
  return entries;
}

Blob zipped(const Entries& entries, Random& r) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  zip_t* zip = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  Blob out;
  if (zip == nullptr) return out;
  for (const auto& [name, data] : entries) {
    zip_source_t* source = zip_source_buffer(zip, data.data(), data.size(), 0);
    const zip_int64_t at = zip_file_add(zip, name.c_str(), source, ZIP_FL_ENC_GUESS | ZIP_FL_OVERWRITE);
    if (at < 0)
      zip_source_free(source);
    else
      zip_set_file_compression(zip, static_cast<zip_uint64_t>(at),
                               r.one_in(2) ? ZIP_CM_STORE : ZIP_CM_DEFLATE, 0);
  }
  if (zip_close(zip) != 0) {
    zip_discard(zip);
  } else {
    zip_stat_t stat;
    zip_source_open(target);
    zip_source_stat(target, &stat);
    out.resize(stat.size);
    zip_source_read(target, out.data(), out.size());
    zip_source_close(target);
  }
  zip_source_free(target);
  return out;
}

// Words of .npy headers put in each other's place.
void edit_npy(Blob* npy, size_t most, Random& r, const ByteMutator& by_bytes) {
  constexpr std::string_view kWords[] = {"'<f4'",
                                         "'|b1'",
                                         "'<i8'",
                                         "'>f4'",
                                         "'|O'",
                                         "True",
                                         "False",
                                         "(2, 3)",
                                         "(1,)",
                                         "()",
                                         "(-1,)",
                                         "(0, 4)",
                                         "(1152921504606846976, 16)",
                                         "(4294967296, 4294967296)",
                                         "'descr'",
                                         "'shape'",
                                         "'fortran_order'",
                                         "(3",
                                         ",",
                                         "(9, 0, 9223372036854775807)"};
  if (npy->size() < 16 || r.one_in(3)) return by_bytes(npy, most);
  std::string text(npy->begin() + 10, npy->end());
  const size_t end = std::min(text.find('\n'), text.size());
  const char* anchors[] = {"'<", "(", "F", "'", ","};
  const size_t at = text.find(r.pick(anchors), r.index(std::min<size_t>(end, 64)));
  if (at == std::string::npos || at >= end) return by_bytes(npy, most);
  const std::string_view word = r.pick(kWords);
  const size_t stop = text.find_first_of(",}", at);
  text.replace(at, std::min(stop, end) - at, word);
  if (r.one_in(2)) {  // the length of the header as it was
    size_t space = text.find("   ");
    while (text.size() > npy->size() - 10 && space != std::string::npos && text[space] == ' ')
      text.erase(space, 1);
    while (text.size() < npy->size() - 10 && space != std::string::npos) text.insert(space, 1, ' ');
  }
  npy->resize(10);
  npy->insert(npy->end(), text.begin(), text.end());
  if (npy->size() > most) npy->resize(most);
}

// A chunk of a PNG file changed, with a correct checksum: a palette loses colours, others have other bytes.
void edit_png(Blob* png, size_t most, Random& r, const ByteMutator& by_bytes) {
  constexpr size_t kSignature = 8, kAround = 12;  // length and kind, checksum
  std::vector<size_t> starts;
  const auto number_at = [&](size_t at) {
    uint32_t n = 0;
    for (size_t i = 0; i < 4; ++i) n = n << 8 | (*png)[at + i];
    return n;
  };
  const auto number = [](uint32_t n) {
    return Blob{static_cast<uint8_t>(n >> 24), static_cast<uint8_t>(n >> 16), static_cast<uint8_t>(n >> 8),
                static_cast<uint8_t>(n)};
  };
  for (size_t at = kSignature; at + kAround <= png->size() && number_at(at) <= png->size() - at - kAround;
       at += kAround + number_at(at))
    starts.push_back(at);
  if (starts.empty()) return by_bytes(png, most);
  const size_t at = r.pick(starts), bytes = number_at(at);
  Blob data(png->begin() + static_cast<ptrdiff_t>(at + 8),
            png->begin() + static_cast<ptrdiff_t>(at + 8 + bytes));
  const bool palette = std::memcmp(png->data() + at + 4, "PLTE", 4) == 0;
  if (palette && bytes > 3)
    data.resize(bytes - 3 * (1 + r.index(bytes / 3 - 1)));
  else
    by_bytes(&data, std::max<size_t>(bytes, 64));
  Blob chunk = number(static_cast<uint32_t>(data.size()));
  chunk.insert(chunk.end(), png->begin() + static_cast<ptrdiff_t>(at + 4),
               png->begin() + static_cast<ptrdiff_t>(at + 8));
  chunk.insert(chunk.end(), data.begin(), data.end());
  const uint8_t* summed = chunk.data() + 4;
  const Blob sum = number(static_cast<uint32_t>(::crc32(0, summed, static_cast<uInt>(chunk.size() - 4))));
  chunk.insert(chunk.end(), sum.begin(), sum.end());
  png->erase(png->begin() + static_cast<ptrdiff_t>(at),
             png->begin() + static_cast<ptrdiff_t>(at + kAround + bytes));
  png->insert(png->begin() + static_cast<ptrdiff_t>(at), chunk.begin(), chunk.end());
  if (png->size() > most) png->resize(most);
}

Blob mutate_arrays(View bytes, size_t most, Random& r, const ByteMutator& by_bytes) {
  Blob out(bytes.begin(), bytes.end());
  const std::string_view kind = kind_of(bytes);
  if (kind == kPicture && bytes[1] == 'P' && !r.one_in(4)) return edit_png(&out, most, r, by_bytes), out;
  if (r.one_in(4) || (kind != ".npy" && kind != ".npz")) return by_bytes(&out, most), out;
  if (kind == ".npy") return edit_npy(&out, most, r, by_bytes), out;
  Entries entries = unzip(bytes);
  if (entries.empty()) return by_bytes(&out, most), out;
  for (uint64_t n = 1 + r.below(3); n > 0; --n) {
    auto& [name, data] = r.pick(entries);
    switch (r.below(6)) {
      case 0:
        name = r.pick(entries).first;
        break;
      case 1:
        if (entries.size() < 8) entries.emplace_back("extra.npy", Blob(data));
        break;
      case 2:
        data.resize(r.index(data.size() + 1));
        break;
      default:
        edit_npy(&data, most, r, by_bytes);
    }
  }
  Blob made = zipped(entries, r);
  return made.empty() || made.size() > most ? (by_bytes(&out, most), out) : made;
}

}  // namespace

const Target kArraysTarget{"arrays", run_arrays, mutate_arrays};

}  // namespace sinter::fuzz
