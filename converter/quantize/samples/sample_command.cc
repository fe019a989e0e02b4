// Samples from a command's standard output: for each one .npz, or .npy arrays in the order of the inputs.
#include <fmt/format.h>
#include <zlib.h>

#include <cstdio>
#include <cstring>

#include "converter/diagnostics/errors.h"
#include "converter/files/shell_command.h"
#include "converter/import/read/arrays.h"
#include "converter/quantize/samples/sample_streams.h"

namespace sinter::convert::detail {
namespace {

class Pipe final : public ByteStream {
 public:
  explicit Pipe(const std::string& command) : command_(command) {}
  size_t read(void* to, size_t bytes) override {
    size_t got = 0;
    while (got < bytes && !begun_.empty()) {
      static_cast<std::byte*>(to)[got++] = begun_.front();
      begun_.erase(begun_.begin());
    }
    got += std::fread(static_cast<char*>(to) + got, 1, bytes - got, command_.output());
    if (got < bytes && std::ferror(command_.output()) != 0) command_.fail("read from");
    return got;
  }
  // Puts bytes back in front; a few.
  void unread(const Bytes& bytes) { begun_.insert(begun_.begin(), bytes.begin(), bytes.end()); }
  void finish() { command_.finish(); }

 private:
  ShellCommand command_;
  Bytes begun_;
};

uint64_t little(const Bytes& bytes, size_t at, size_t n) {
  uint64_t value = 0;
  for (size_t i = n; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;

// The arrays of a .npz that is read from front to back: local entries, then the directory, which is skipped.
class ZipReader {
 public:
  ZipReader(Pipe& pipe, std::string what, size_t largest)
      : pipe_(pipe), what_(std::move(what)), largest_(largest) {}

  std::vector<std::pair<std::string, ConstantPtr>> read() {
    std::vector<std::pair<std::string, ConstantPtr>> arrays;
    while (true) {
      const auto signature = static_cast<uint32_t>(little(take(4), 0, 4));
      if (signature == kLocal) {
        arrays.push_back(entry());
        if (arrays.size() > kMostArrays) throw DataError(what_ + " holds too many arrays");
      } else if (signature == kCentral) {
        const Bytes h = take(42);
        skip(little(h, 24, 2) + little(h, 26, 2) + little(h, 28, 2));
      } else if (signature == kEnd64) {
        skip(little(take(8), 0, 8));
      } else if (signature == kLocator64) {
        skip(16);
      } else if (signature == kEnd) {
        skip(little(take(18), 16, 2));
        std::vector<std::string> names;
        for (const auto& [name, array] : arrays) names.push_back(name);
        check_names(names, what_);
        return arrays;
      } else {
        throw DataError(what_ + " is damaged (no .npz)");
      }
    }
  }

 private:
  static constexpr size_t kMostArrays = 4096;

  Bytes take(size_t n) {
    Bytes bytes(n);
    read_whole(pipe_, bytes.data(), n, what_);
    return bytes;
  }
  void skip(uint64_t n) {
    for (; n > 0; n -= std::min<uint64_t>(n, 1 << 16))
      take(static_cast<size_t>(std::min<uint64_t>(n, 1 << 16)));
  }

  std::pair<std::string, ConstantPtr> entry() {
    const Bytes h = take(26);
    const uint64_t flags = little(h, 2, 2), method = little(h, 4, 2);
    uint64_t packed = little(h, 14, 4), size = little(h, 18, 4);
    const Bytes raw = take(little(h, 22, 2));
    std::string name(reinterpret_cast<const char*>(raw.data()), raw.size());
    const Bytes extra = take(little(h, 24, 2));
    for (size_t at = 0; at + 4 <= extra.size();) {
      const uint64_t id = little(extra, at, 2), n = little(extra, at + 2, 2);
      at += 4;
      if (id == 1 && n >= 16 && at + 16 <= extra.size() && size == 0xffffffff)
        size = little(extra, at, 8), packed = little(extra, at + 8, 8);
      at += n;
    }
    const std::string what = fmt::format("{}: '{}'", what_, name);
    if ((flags & 8) != 0)
      throw DataError(what +
                      " was written without its size; write the .npz to an io.BytesIO first, then its bytes");
    if ((flags & 1) != 0 || (method != 0 && method != 8))
      throw DataError(what + " has an unknown compression");
    if (size > largest_)
      throw DataError(fmt::format(
          "{} has {} bytes, more than one sample of any input: write one .npz per sample", what, size));
    if (method == 0 ? packed != size : packed > size + size / 100 + 1024)
      throw DataError(what + " is damaged");
    Bytes bytes = take(packed);
    if (method == 8) bytes = inflated(bytes, size, what);
    if (crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())) !=
        little(h, 10, 4))
      throw DataError(what + " is damaged (checksum)");
    if (name.size() > 4 && name.ends_with(".npy")) name.resize(name.size() - 4);
    return {name, parse_npy(bytes, what)};
  }

  static Bytes inflated(const Bytes& packed, uint64_t size, const std::string& what) {
    Bytes out(size);
    z_stream z = {};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    z.avail_in = static_cast<uInt>(packed.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&z, Z_FINISH);
    const bool whole = code == Z_STREAM_END && z.avail_out == 0;
    inflateEnd(&z);
    if (!whole) throw DataError(what + " is damaged");
    return out;
  }

  Pipe& pipe_;
  const std::string what_;
  const size_t largest_;
};

class CommandSamples final : public SampleSource {
 public:
  CommandSamples(std::string command, std::vector<SampleInput> inputs, const SampleOptions& options)
      : command_(std::move(command)), inputs_(std::move(inputs)), most_(options.most) {
    for (const SampleInput& i : inputs_) largest_ = std::max(largest_, dense_bytes(i.dtype, i.dims));
    // Room for headers and for types that are given wider.
    if (largest_ > (size_t{1} << 30))
      throw DataError("samples above 1 GB cannot be streamed; use a .npz file");
    largest_ = 4 * largest_ + (1 << 20);
    // The first sample shows whether the command fits the model, before anything runs.
    start();
    ended_ = !read(&first_);
    if (ended_) throw DataError(fmt::format("'{}' wrote no samples", command_));
  }

  int64_t count() const override { return -1; }
  bool is_file() const override { return false; }
  void rewind() override {
    if (taken_ == 0) return;
    start();
    taken_ = 0;
    ended_ = !read(&first_);
    if (ended_)
      throw DataError(fmt::format("'{}' wrote no samples when it was started a second time", command_));
  }
  bool next(Sample* sample) override {
    if (most_ >= 0 && taken_ >= most_) return false;
    if (taken_ == 0) {
      *sample = std::move(first_);
    } else if (ended_ || !read(sample)) {
      ended_ = true;
      return false;
    }
    ++taken_;
    return true;
  }

 private:
  void start() {
    pipe_.reset();
    pipe_ = std::make_unique<Pipe>(command_);
    read_ = 0;
  }

  bool read(Sample* sample) {
    Bytes magic(4);
    const size_t got = pipe_->read(magic.data(), 4);
    if (got == 0) {
      pipe_->finish();
      return false;
    }
    const std::string what = fmt::format("sample {} of '{}'", read_, command_);
    if (got < 4) throw DataError(what + " is truncated");
    pipe_->unread(magic);
    std::vector<std::pair<std::string, ConstantPtr>> arrays;
    if (little(magic, 0, 4) == kLocal) {
      arrays = ZipReader(*pipe_, what, largest_).read();
    } else if (magic[0] == std::byte{0x93} && std::memcmp(&magic[1], "NUM", 3) == 0) {
      for (const SampleInput& input : inputs_) arrays.emplace_back(input.name, array(what, input));
    } else {
      throw DataError(
          fmt::format("'{}' wrote neither .npz nor .npy (it begins with bytes {:02x} {:02x} {:02x} {:02x}); "
                      "write text to standard error",
                      command_, magic[0], magic[1], magic[2], magic[3]));
    }
    std::vector<ArrayFact> facts;
    for (const auto& [name, a] : arrays) facts.push_back({name, a->dtype(), a->dims(), {}});
    const Matched matched = match_arrays(facts, inputs_, Layout::kSingle);
    if (!matched.problems.empty())
      throw DataError(
          fmt::format("{} does not fit the model:\n  {}", what, fmt::join(matched.problems, "\n  ")));
    sample->assign(inputs_.size(), nullptr);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Constant& a = *arrays[static_cast<size_t>(matched.array[i])].second;
      const LoadedBytes loaded = a.load();
      (*sample)[i] = make_input(matched.sized(inputs_, i), a.dtype(),
                                Bytes(loaded.bytes.begin(), loaded.bytes.end()), read_);
    }
    ++read_;
    return true;
  }

  ConstantPtr array(const std::string& what, const SampleInput& input) {
    const std::string its = fmt::format("{}: input '{}'", what, input.name);
    const NpyHeader header = read_npy_header(*pipe_, its);
    if (header.data_bytes > largest_)
      throw DataError(fmt::format("{} is {} but the model takes {}", its,
                                  to_string(header.dtype, header.dims), to_string(input.dtype, input.dims)));
    Bytes bytes(header.data_bytes);
    read_whole(*pipe_, bytes.data(), bytes.size(), its);
    return npy_in_rows(header, bytes);
  }

  const std::string command_;
  const std::vector<SampleInput> inputs_;
  const int64_t most_;
  size_t largest_ = 0;
  std::unique_ptr<Pipe> pipe_;
  Sample first_;
  int64_t taken_ = 0, read_ = 0;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<SampleSource> open_command(const std::string& command, std::vector<SampleInput> inputs,
                                           const SampleOptions& options) {
  if (command.empty()) throw DataError("cmd: names no command");
  return std::make_unique<CommandSamples>(command, std::move(inputs), options);
}

}  // namespace sinter::convert::detail
