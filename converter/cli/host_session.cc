#include "converter/cli/host_session.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "converter/cli/file_view.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/import/read/reader.h"
#include "converter/ir/builder.h"
#include "converter/ir/large_bytes.h"
#include "runtime/model/format.h"
#include "sinter/backends.h"
#include "sinter/file_map.h"
#include "sinter/thread_pool.h"

namespace sinter::convert {

std::string describe(const Status& status, const Model* model) {
  char buffer[400];
  (model != nullptr ? *model : Model()).format(status, buffer);
  return buffer;
}

namespace {

// Memory of this size is requested in pages of 2 MB, of which fewer have to be mapped and looked up.
constexpr size_t kLargeMemory = 4 << 20;
constexpr size_t kLargePage = 2 << 20;

}  // namespace

AlignedMemory::AlignedMemory(size_t bytes) : bytes_(bytes) {
  const bool large = bytes >= kLargeMemory;
  const size_t alignment = large ? kLargePage : kBufferAlignment;
  data_.reset(static_cast<std::byte*>(
      std::aligned_alloc(alignment, align_up(std::max<size_t>(bytes, 1), alignment))));
  if (!data_) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  // Only whole pages are advised, so that no more memory becomes resident. A system without them ignores it.
  if (large) madvise(data_.get(), bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
}

namespace {

// Makes the checks that Model::open makes before the structure's.
Status check_in_pieces(std::span<const std::byte> file, const std::optional<PublicKey>& key) {
  constexpr uint64_t kPiece = 8 << 20;
  const Result<format::Header> header = format::read_header(file);
  if (!header.ok()) return header.status();
  const auto head = file.first(static_cast<size_t>(format::head_bytes(header.value())));
  if (key || header.value().signature_bytes != 0)
    SINTER_RETURN_IF_ERROR(format::check_signature(
        head, key ? std::span<const uint8_t>(key->bytes) : std::span<const uint8_t>()));
  const Result<format::Envelope> read = format::read_envelope(file, head);
  if (!read.ok()) return read.status();
  const format::Envelope& envelope = read.value();
  SINTER_RETURN_IF_ERROR(format::check_structure(envelope.flatbuffer, envelope));
  for (uint32_t i = 0; i < envelope.header.segment_count; ++i) {
    const format::Segment segment = envelope.segment(i);
    const auto algorithm = static_cast<format::DigestAlgorithm>(segment.algorithm);
    SINTER_RETURN_UNLESS(format::can_digest(algorithm),
                         unsupported("this build cannot check the file's digests"));
    format::Digester digester(algorithm);
    for (uint64_t at = 0; at < segment.bytes; at += kPiece) {
      const auto piece = file.subspan(static_cast<size_t>(segment.offset + at),
                                      static_cast<size_t>(std::min(kPiece, segment.bytes - at)));
      digester.update(piece);
      release_file_pages(piece);
    }
    SINTER_RETURN_UNLESS(
        digester.finish() == segment.digest,
        corrupt("a segment does not match its digest").at(Where::kSegment, static_cast<int32_t>(i)));
  }
  return ok_status();
}

}  // namespace

LoadedModel::LoadedModel(const std::filesystem::path& path, const std::optional<PublicKey>& key,
                         Reading reading, std::shared_ptr<const CustomOperators> custom_ops)
    : path_(path), custom_ops_(std::move(custom_ops)) {
  const auto mapped = MappedFile::open(path);  // also reports what is wrong with a path
  mapping_ = mapped;
  file_ = mapped->bytes;
  if (reading == Reading::kCopied) {
    Result<FileMap> copy = FileMap::open(path.c_str(), FileMap::Mode::kCopied);
    if (!copy.ok()) throw FileError(fmt::format("{}: {}", path.string(), describe(copy.status())));
    const auto kept = std::make_shared<FileMap>(std::move(*copy));
    mapping_ = kept;
    file_ = kept->bytes();
  }
  OpenOptions options{.kernels = reference_kernels()};
  if (custom_ops_) options.custom_ops = custom_ops_->all();
  const auto fail = [&](const Status& s) {
    throw ModelFileError(
        fmt::format("{}: {}{}", path.string(), describe(s),
                    path.extension() == ".onnx" ? "; sinter convert creates one from an ONNX model" : ""));
  };
  if (reading == Reading::kInPieces) {
    options.check_digests = false;
    if (const Status s = check_in_pieces(file_, key); !s.ok()) fail(s);
  } else if (key) {
    options.public_key = key->bytes;
  }
  Result<size_t> need = Model::open_bytes(file_, options);
  if (!need.ok()) fail(need.status());
  memory_ = AlignedMemory(*need);
  Result<Model> opened = Model::open(file_, memory_.span(), options);
  if (!opened.ok()) fail(opened.status());
  model_ = *opened;
}

void require_constants(const LoadedModel& loaded, const char* command) {
  for (const fb::Constant* c : *loaded.model().state()->root->constants())
    if (detail::is_left_out(*c))
      throw DataError(fmt::format(
          "{}: {} needs constants that the file has in packed form alone; give the file that keeps them",
          loaded.path().string(), command));
}

Status HostPackedWeights::pack(const Model& model, const SessionOptions& options) {
  const Result<Requirements> needs = PackedWeights::requirements(model, options);
  SINTER_RETURN_IF_ERROR(needs.status());
  memory = AlignedMemory(needs->bytes);
  const Result<PackedWeights> made = PackedWeights::create(model, memory.span(), options);
  SINTER_RETURN_IF_ERROR(made.status());
  packed = *made;
  return ok_status();
}

std::string port_type(const PortInfo& port) {
  return to_string(port.dtype, Dims(port.dims.begin(), port.dims.end()));
}

std::string input_type(const Model& model, uint32_t input, uint32_t entry) {
  const PortInfo port = model.input(input, entry);
  Dims minima;
  for (size_t axis = 0; axis < port.dims.size(); ++axis)
    minima.push_back(model.input_range(input, static_cast<int>(axis), entry).minimum);
  return to_string(port.dtype, minima, Dims(port.dims.begin(), port.dims.end()));
}

std::optional<Dims> stacked_shape(const Model& model, uint32_t input, uint32_t entry, const Dims& stack) {
  const PortInfo port = model.input(input, entry);
  std::optional<Dims> sample = sample_of_stack(stack, port.dims.size());
  if (sample && !model.takes({port.name, *sample}, entry)) sample.reset();
  return sample;
}

std::vector<Backend*> host_backends(const std::string& name) {
  const auto names = host_backend_names();
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
    throw UsageError(
        fmt::format("--backend {}: this build has no such backend; {}", name, advise_name(names, name)));
  const auto all = default_backends();
  return {all.begin(), all.end()};
}

std::vector<std::string> host_backend_names() {
  std::vector<std::string> names;
  for (const Backend* b : default_backends()) names.emplace_back(b->name());
  names.emplace_back("reference");
  return names;
}

std::string backend_help() {
  return fmt::format("Use this backend wherever it can: {}", fmt::join(host_backend_names(), ", "));
}

std::string instruction_set() {
  for (const Backend* b : default_backends())
    if (const char* name = b->instruction_set()) return name;
  return "none";
}

namespace {

// Returns float32 numbers rounded to the type of an input with fewer bits.
ConstantPtr rounded(const ConstantPtr& array, const PortInfo& port) {
  std::vector<ConstantPtr> cast;
  if (!evaluate(CastAttrs{static_cast<int64_t>(port.dtype), 0}, {array}, 1, &cast).ok())
    throw DataError(fmt::format("input '{}' is {} and cannot be rounded to {}", port.name,
                                to_string(array->dtype(), array->dims()), port_type(port)));
  const std::vector<double> before = array->as_doubles(), after = cast[0]->as_doubles();
  for (size_t i = 0; i < before.size(); ++i)
    if (std::isfinite(before[i]) && !std::isfinite(after[i]))
      throw DataError(fmt::format("input '{}' contains {}, which is outside the range of {}; scale the data",
                                  port.name, before[i], dtype_name(port.dtype)));
  return cast[0];
}

}  // namespace

struct HostSession::Threads {
  Threads(int count, std::span<const int> processors) : pool(count, {.processors = processors}) {}
  PthreadPool pool;
};

HostSession::HostSession(const LoadedModel& loaded, const Options& options)
    : loaded_(loaded),
      backends_(host_backends(options.backend)),
      asked_(options.backend),
      profile_(options.profile),
      entry_(options.entry) {
  if (options.threads > 1) threads_ = std::make_unique<Threads>(options.threads, options.processors);
  if (threads_ && !threads_->pool.status().ok()) throw UsageError(describe(threads_->pool.status()));
  SessionOptions session_options = this->session_options();
  Result<Requirements> need = Session::requirements(loaded.model(), session_options);
  if (!need.ok()) fail(need.status());
  requirements_ = *need;
  memory_ = AlignedMemory(requirements_.bytes);
  session_options.on_fallback = {
      this, [](void* self, const Fallback& f) {
        auto& host = *static_cast<HostSession*>(self);
        const Model& model = host.loaded_.model();
        host.fallback_at_[{f.program, f.step}] = host.fallbacks_.size();
        host.fallbacks_.push_back({f.program, f.step, model.step_op(f.step, f.program),
                                   model.step_name(f.step, f.program), f.expected, f.backend,
                                   describe(f.reason)});
      }};
  Result<Session> created = Session::create(loaded.model(), memory_.span(), session_options);
  if (!created.ok()) fail(created.status());
  session_ = std::move(*created);
}

HostSession::~HostSession() = default;

SessionOptions HostSession::session_options() const {
  SessionOptions options;
  options.backends = backends_;
  options.backend = asked_.empty() ? nullptr : asked_.c_str();
  options.profile = profile_.empty() ? nullptr : profile_.c_str();
  if (threads_) options.threads = &threads_->pool;
  options.entry = entry_;
  options.packed_in_file = packed_in_file();
  return options;
}

void HostSession::fail(const Status& status) const {
  const std::string message =
      fmt::format("{}: {}", loaded_.path().string(), describe(status, &loaded_.model()));
  if (status.code == Code::kUnsupported) throw ModelFileError(message);  // what the file needs is missing
  throw std::runtime_error(message);
}

HostSession::Sharing HostSession::sharing() const {
  SessionOptions options = session_options();
  options.entry = kEveryEntry;
  HostPackedWeights shared;
  if (const Status status = shared.pack(loaded_.model(), options); !status.ok()) fail(status);
  options.packed_weights = &shared.packed;
  options.entry = entry_;
  const Result<Requirements> need = Session::requirements(loaded_.model(), options);
  if (!need.ok()) fail(need.status());
  return {shared.packed.bytes(), need.value().bytes, shared.packed.count(), shared.packed.stored()};
}

const FallbackStep* HostSession::fallback(uint32_t program, uint32_t step) const {
  const auto found = fallback_at_.find({program, step});
  return found == fallback_at_.end() ? nullptr : &fallbacks_[found->second];
}

std::string HostSession::step_backend(uint32_t program, uint32_t step) const {
  const FileView view(loaded_.model(), session_.profile(), entry_);
  const fb::StepPlan& plan = *view.plan(program).steps()->Get(step);
  if (plan.elided()) return "elided";
  if (detail::is_control(*view.program(program).steps()->Get(step))) return "session";
  if (const FallbackStep* f = fallback(program, step)) return f->backend;
  if (!asked_.empty()) return asked_;
  return detail::length(plan.candidates()) == 0 ? "reference" : view.candidates(plan)[0];
}

std::map<std::string, size_t> HostSession::backend_counts() const {
  const FileView view(loaded_.model(), session_.profile(), entry_);
  std::map<std::string, size_t> counts;
  for (const uint32_t p : view.programs())
    for (uint32_t s = 0; s < detail::length(view.program(p).steps()); ++s) ++counts[step_backend(p, s)];
  counts.erase("elided"), counts.erase("session");
  return counts;
}

ConstantPtr HostSession::given(const Arrays& arrays, uint32_t input) const {
  const Model& model = loaded_.model();
  const PortInfo port = model.input(input, entry_);
  ConstantPtr array = find_array(arrays, port.name);
  // A file with one nameless array serves a model with one input.
  if (!array && arrays.size() == 1 && model.input_count(entry_) == 1 && arrays.front().first.empty())
    array = arrays.front().second;
  if (!array) {
    std::string names;
    for (const auto& [name, a] : arrays) names += (names.empty() ? "'" : ", '") + name + "'";
    throw DataError(fmt::format("input '{}' ({}) is missing; the data has {}", port.name,
                                input_type(model, input, entry_), names.empty() ? "no arrays" : names));
  }
  // .npz cannot hold bfloat16 and float8, so that integers with their bits are taken.
  const DType bits = port.dtype == DType::kBFloat16 ? DType::kUint16
                     : is_float8(port.dtype)        ? DType::kUint8
                                                    : DType::kNone;
  if (array->dtype() == bits) return Constant::mapped(port.dtype, array->dims(), array, array->load().bytes);
  if (array->dtype() == DType::kFloat32 && is_float(port.dtype) && bit_width(port.dtype) < 32)
    return rounded(array, port);
  if (array->dtype() == DType::kFloat32 && takes_numbers(port))
    return as_integers(array, integer_scale(port), port.name);
  if (array->dtype() != port.dtype)
    throw DataError(fmt::format("input '{}' is {} but the model takes {}", port.name,
                                to_string(array->dtype(), array->dims()), input_type(model, input, entry_)));
  return array;
}

int64_t HostSession::sample_count(const Arrays& arrays) const {
  const Model& model = loaded_.model();
  std::optional<int64_t> count;
  for (uint32_t i = 0; i < model.input_count(entry_); ++i) {
    const ConstantPtr array = given(arrays, i);
    const PortInfo port = model.input(i, entry_);
    const Dims& dims = array->dims();
    if (!stacked_shape(model, i, entry_, dims))
      throw DataError(fmt::format("input '{}' is {}, which is not a stack of samples of the model's {}",
                                  port.name, to_string(array->dtype(), dims), input_type(model, i, entry_)));
    if (count && *count != dims[0])
      throw DataError(
          fmt::format("input '{}' has {} samples but others have {}", port.name, dims[0], *count));
    count = dims[0];
  }
  return count.value_or(1);
}

void HostSession::set_inputs(const Arrays& arrays, int64_t each) {
  const Model& model = loaded_.model();
  for (uint32_t i = 0; i < model.input_count(entry_); ++i) {
    const ConstantPtr array = given(arrays, i);
    const PortInfo port = model.input(i, entry_);
    const LoadedBytes loaded = array->load();
    const Dims dims = each >= 0 ? stacked_shape(model, i, entry_, array->dims()).value() : array->dims();
    if (!model.takes({port.name, dims}, entry_)) {
      const bool stack = each < 0 && stacked_shape(model, i, entry_, dims) && dims[0] > 0;
      throw DataError(fmt::format(
          "input '{}' is {} but the model takes {}{}", port.name, to_string(array->dtype(), dims),
          input_type(model, i, entry_),
          stack ? fmt::format("; a stack of {} samples is run one by one with --each (run, compare)", dims[0])
                : ""));
    }
    const auto bytes = static_cast<size_t>(dense_bytes(port.dtype, dims));
    // Padding may have any content; zeros give the same steps the same numbers in every run.
    if (const TensorView view = session_.input(i); bytes < static_cast<size_t>(view.dense_bytes()))
      std::memset(view.data, 0, static_cast<size_t>(view.dense_bytes()));
    const size_t from = each >= 0 ? static_cast<size_t>(each) * bytes : 0;
    const Status status = session_.write_input(i, loaded.bytes.subspan(from, bytes), dims);
    if (!status.ok()) throw DataError(describe(status, &model));
  }
}

void HostSession::run(const AfterStep& after) {
  const auto call_after = [](void* self, const StepInfo& info, const OpCall& call) {
    if (!info.in_body) (*static_cast<const AfterStep*>(self))(info, call);
  };
  const StepObserver observer{const_cast<AfterStep*>(&after), nullptr, call_after};
  if (after) session_.set_observer(&observer);
  const Status status = session_.run();
  if (after) session_.set_observer(nullptr);
  if (!status.ok()) throw DataError("the run failed: " + describe(status, &loaded_.model()));
}

Arrays HostSession::outputs() const {
  Arrays arrays;
  for (uint32_t i = 0; i < loaded_.model().output_count(entry_); ++i) {
    const TensorView view = session_.output(i);
    Dims dims(view.dims, view.dims + view.rank);
    const auto bytes = static_cast<size_t>(view.dense_bytes());
    ConstantPtr array = Constant::owned(view.dtype, dims, Bytes(view.data, view.data + bytes));
    // Only the used part of bounded dims is returned.
    SliceAttrs cut;
    bool cuts = false;
    for (int axis = 0; axis < view.rank; ++axis) {
      const int64_t used = session_.output_length(i, axis);
      cuts |= used != view.dims[axis];
      cut.starts.push(0), cut.steps.push(1), cut.sizes.push(used);
    }
    std::vector<ConstantPtr> part;
    if (cuts && evaluate(cut, {array}, 1, &part).ok()) array = part[0];
    arrays.emplace_back(loaded_.model().output(i, entry_).name, array);
  }
  return arrays;
}

}  // namespace sinter::convert
