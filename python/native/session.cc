// A Runner with its memory as arrays of bytes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converter/diagnostics/errors.h"
#include "python/native/module.h"
#include "sinter/backends.h"
#include "sinter/runner.h"

namespace sinter::python {
namespace {

namespace nb = nanobind;

using ByteArray = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Port {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> minima;  // the least lengths of an input's axes
  float scale = 0;
  int32_t zero_point = 0;
};

// A model file's bytes, aligned as Runner::open() takes them.
struct FileCopy {
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data;
  size_t bytes = 0;

  explicit FileCopy(const nb::bytes& source) : bytes(source.size()) {
    const size_t whole = (bytes / kBufferAlignment + 1) * kBufferAlignment;
    data.reset(static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, whole)));
    if (!data) throw std::bad_alloc();
    std::memcpy(data.get(), source.c_str(), bytes);
  }
};

// The objects that RunnerOptions refers to, for as long as the Runner may use them.
struct Options {
  int threads = 1;
  std::vector<std::string> backend_names;  // empty: all
  std::optional<std::string> backend, profile;
  std::optional<uint32_t> entry;  // none: every one
  bool require_planned = false, copy_file = false, check_digests = true;
  std::string public_key;
  std::shared_ptr<const convert::CustomOperators> custom_ops;  // null: none
  std::vector<std::string> bound_names;
  std::vector<Backend*> backends;
  std::vector<Binding> bindings;

  std::span<const uint8_t> key() const {
    if (public_key.empty()) return {};
    return {reinterpret_cast<const uint8_t*>(public_key.data()), public_key.size()};
  }
  RunnerOptions to_runner() const {
    return {.threads = threads,
            .backends = backends,
            .backend = backend ? backend->c_str() : nullptr,
            .profile = profile ? profile->c_str() : nullptr,
            .entry = entry.value_or(kEveryEntry),
            .require_planned = require_planned,
            .bindings = bindings,
            .copy_file = copy_file,
            .check_digests = check_digests,
            .public_key = key(),
            .custom_ops = custom_ops ? custom_ops->all() : CustomOps()};
  }
};

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Backend* b : default_backends()) names.emplace_back(b->name());
  return names;
}

// `bound` has names with arrays of bytes, which the caller keeps; `custom_ops` has the paths of libraries.
Options options_of(int threads, std::vector<std::string> backends, std::optional<std::string> backend,
                   std::optional<std::string> profile, std::optional<uint32_t> entry, bool require_planned,
                   bool copy_file, bool check_digests, const nb::bytes& public_key,
                   const std::vector<nb::bytes>& custom_ops,
                   const std::vector<std::pair<nb::bytes, ByteArray>>& bound) {
  Options o;
  o.threads = threads, o.backend = std::move(backend), o.profile = std::move(profile), o.entry = entry;
  o.require_planned = require_planned, o.copy_file = copy_file, o.check_digests = check_digests;
  o.public_key.assign(public_key.c_str(), public_key.size());
  std::vector<std::string> libraries;
  for (const nb::bytes& path : custom_ops) libraries.emplace_back(path.c_str(), path.size());
  std::string fault;
  try {
    o.custom_ops = convert::load_custom_operators(libraries);
  } catch (const convert::UsageError& e) {
    fault = e.what();
  }
  if (!fault.empty()) raise("UsageError", fault);
  o.backend_names = std::move(backends);
  for (const std::string& name : o.backend_names)
    for (Backend* b : default_backends())
      if (name == b->name()) o.backends.push_back(b);
  o.bound_names.reserve(bound.size());  // Bindings point to the names.
  for (const auto& [name, array] : bound) {
    o.bound_names.emplace_back(name.c_str(), name.size());
    o.bindings.push_back({.name = o.bound_names.back().c_str(),
                          .buffer = {reinterpret_cast<std::byte*>(array.data()), array.size()}});
  }
  return o;
}

class Session {
 public:
  // The objects that the models of one file share, and refer to.
  struct Origin {
    std::shared_ptr<const FileCopy> file;  // null: mapped
    std::shared_ptr<const convert::CustomOperators> custom_ops;
  };
  Session(Origin origin, Runner runner) : origin_(std::move(origin)), runner_(std::move(runner)) {}

  static Session open_file(const nb::bytes& path, const Options& options) {
    Runner runner;
    const std::string name(path.c_str(), path.size());
    {
      const nb::gil_scoped_release unlocked;
      runner = Runner::open(name.c_str(), options.to_runner());
    }
    return checked({nullptr, options.custom_ops}, std::move(runner), options, "ModelFileError");
  }
  static Session open_bytes(const nb::bytes& bytes, const Options& options) {
    Runner runner;
    const auto file = std::make_shared<const FileCopy>(bytes);
    {
      const nb::gil_scoped_release unlocked;
      runner = Runner::open({file->data.get(), file->bytes}, options.to_runner());
    }
    return checked({file, options.custom_ops}, std::move(runner), options, "ModelFileError");
  }
  Session another(const Options& options) const {
    Runner runner;
    {
      const nb::gil_scoped_release unlocked;
      runner = runner_.another(options.to_runner());
    }
    return checked(origin_, std::move(runner), options, "RunError");
  }

  // Returns the shape sets that are open, by their numbers in the file.
  std::vector<uint32_t> entries() const { return open_; }
  // Goes on with a shape set, for runs and for functions that refer to memory.
  void use_entry(uint32_t entry) { runner_.use_entry(entry); }
  std::vector<Port> ports(bool inputs, uint32_t entry) const {
    std::vector<Port> list;
    const Model& model = runner_.model();
    const uint32_t count = inputs ? model.input_count(entry) : model.output_count(entry);
    for (uint32_t i = 0; i < count; ++i) {
      const PortInfo port = inputs ? model.input(i, entry) : model.output(i, entry);
      list.push_back({port.name,
                      dtype_name(port.dtype),
                      {port.dims.begin(), port.dims.end()},
                      {},
                      port.scale,
                      port.zero_point});
      for (size_t axis = 0; axis < port.dims.size() && inputs; ++axis)
        list.back().minima.push_back(model.input_range(i, static_cast<int>(axis), entry).minimum);
    }
    return list;
  }
  TensorView view(bool input, uint32_t index) {
    return input ? runner_.session().input(index) : runner_.session().output(index);
  }
  void run() {
    bool done;
    {
      const nb::gil_scoped_release unlocked;
      done = runner_.run();
    }
    if (done) return;
    const std::string text = runner_.error();
    const int code = static_cast<int>(runner_.code());
    runner_.clear_error();
    raise("RunError", text, code);
  }
  // Sets the lengths of the next run, for an input that the caller writes in place.
  void set_shape(uint32_t input, const std::vector<int64_t>& shape) {
    const Status status = runner_.session().set_shape(input, shape);
    if (status.ok()) return;
    char text[400];
    runner_.model().format(status, text);
    raise("InputError", std::string(text));
  }
  void reset() { runner_.reset(); }
  // Returns the used entries of each axis of an output, for outputs that were not used whole.
  nb::object used_shape(uint32_t output) {
    const TensorView view = runner_.session().output(output);
    bool whole = true;
    nb::list used;
    for (int axis = 0; axis < view.rank; ++axis) {
      const int64_t n = runner_.session().output_length(output, axis);
      whole = whole && n == view.dims[axis];
      used.append(n);
    }
    return whole ? nb::none() : nb::object(nb::tuple(used));
  }
  size_t bytes() const { return runner_.bytes(); }
  uint32_t fallbacks() { return runner_.session().fallbacks(); }
  std::string profile() { return runner_.model().profile_name(runner_.session().profile()); }

 private:
  static Session checked(Origin origin, Runner runner, const Options& options, const char* file_error) {
    if (!runner.ok()) {
      const std::string text = runner.error();
      if (runner.code() == Code::kOutOfMemory) {
        PyErr_SetString(PyExc_MemoryError, text.c_str());
        throw nb::python_error();
      }
      const bool usage = runner.code() == Code::kInvalidArgument ||
                         (runner.code() == Code::kUnsupported && !options.bindings.empty());
      raise(usage ? "UsageError" : file_error, text);
    }
    Session session(std::move(origin), std::move(runner));
    const uint32_t count = options.entry ? 1 : session.runner_.model().entry_count();
    for (uint32_t i = 0; i < count; ++i) session.open_.push_back(options.entry.value_or(0) + i);
    return session;
  }

  Origin origin_;
  Runner runner_;
  std::vector<uint32_t> open_;
};

}  // namespace

void add_session(nb::module_& m) {
  m.attr("alignment") = kBufferAlignment;
  m.attr("padding") = kReadPadding;
  m.def("backend_names", &backend_names, "The backends of this build, best first.");
  nb::class_<Port>(m, "Port", "An input or output: name, dtype as in the file, shape.")
      .def_prop_ro("name", [](const Port& p) { return nb::bytes(p.name.data(), p.name.size()); })
      .def_ro("dtype", &Port::dtype)
      .def_ro("shape", &Port::shape)
      .def_ro("minima", &Port::minima)
      .def_ro("scale", &Port::scale)
      .def_ro("zero_point", &Port::zero_point);
  nb::class_<Options>(m, "Options")
      .def_static("of", &options_of, nb::kw_only(), nb::arg("threads"), nb::arg("backends"),
                  nb::arg("backend").none(), nb::arg("profile").none(), nb::arg("entry").none(),
                  nb::arg("require_planned"), nb::arg("copy_file"), nb::arg("check_digests"),
                  nb::arg("public_key"), nb::arg("custom_ops"), nb::arg("bound"));
  nb::class_<Session>(m, "Session")
      .def_static("open_file", &Session::open_file, nb::arg("path"), nb::arg("options"))
      .def_static("open_bytes", &Session::open_bytes, nb::arg("data"), nb::arg("options"))
      .def("another", &Session::another, nb::arg("options"))
      .def("entries", &Session::entries)
      .def("use_entry", &Session::use_entry, nb::arg("entry"))
      .def("ports", &Session::ports, nb::arg("inputs"), nb::arg("entry"))
      .def(
          "memory",
          [](nb::handle self, bool input, uint32_t index) {
            const TensorView view = nb::cast<Session&>(self).view(input, index);
            return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(
                view.data, {static_cast<size_t>(view.dense_bytes())}, self);
          },
          nb::arg("input"), nb::arg("index"), "The memory of an input or output, as long as the array lives.")
      .def("run", &Session::run)
      .def("set_shape", &Session::set_shape, nb::arg("input"), nb::arg("shape"))
      .def("reset", &Session::reset)
      .def("used_shape", &Session::used_shape, nb::arg("output"),
           nb::sig("def used_shape(self, output: int) -> tuple[int, ...] | None"))
      .def("bytes", &Session::bytes)
      .def("fallbacks", &Session::fallbacks)
      .def("profile", &Session::profile);
}

}  // namespace sinter::python
