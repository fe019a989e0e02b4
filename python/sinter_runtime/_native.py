"""The functions of libsinter_python.so: sessions by the C API (sinter_c.h), commands by functions of its own (sinter_python.h).

The package checks arguments; users do not import this module.
"""
from __future__ import annotations

import ctypes
import json
import logging
import os
import weakref
from collections.abc import Callable, Generator, Iterable, Sequence
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, \
    c_void_p
from typing import Any, NamedTuple, NoReturn

import numpy as np

from . import errors

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libsinter_python.so")

# ---- Declarations, with the names and members of the headers (tests/python/test_native.py compares them) ----

MAX_RANK = 8
ALIGNMENT = 64
READ_PADDING = 64
INVALID_ARGUMENT, UNSUPPORTED, OUT_OF_MEMORY, CANCELLED = 1, 3, 4, 7
LOG_WARNING = 2
EVERY_ENTRY = 0xFFFFFFFF
GO_ON = 20807
Words = POINTER(c_char_p)


class Error(Structure):
    _fields_ = [("code", c_int32), ("text", c_char * 508)]


class Tensor(Structure):
    _fields_ = [("name", c_char_p), ("type", c_int32), ("rank", c_int32), ("dims", c_int64 * MAX_RANK), ("bytes", c_size_t),
                ("data", c_void_p)]


class Quantization(Structure):
    _fields_ = [("scale", c_float), ("zero_point", c_int32)]


class OpenOptions(Structure):
    _fields_ = [("size", c_size_t), ("copy_file", c_int32), ("skip_digests", c_int32), ("stable", c_int32), ("reserved", c_int32),
                ("public_key", c_char_p), ("memory", c_void_p), ("memory_bytes", c_size_t), ("custom_ops", c_void_p),
                ("custom_op_count", c_size_t)]


class Binding(Structure):
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("bytes", c_size_t), ("device", c_char_p)]


class SessionOptions(Structure):
    _fields_ = [("size", c_size_t), ("backends", Words), ("backend_count", c_size_t), ("pool", c_void_p), ("own_pool", c_void_p),
                ("profile", c_char_p), ("backend", c_char_p), ("entry", c_uint32), ("require_planned", c_int32),
                ("bindings", POINTER(Binding)), ("binding_count", c_size_t), ("devices", c_void_p), ("device_count", c_size_t),
                ("packed_weights", c_void_p)]


class Requirements(Structure):
    _fields_ = [("size", c_size_t), ("bytes", c_size_t)]


class StepTime(Structure):
    _fields_ = [("size", c_size_t), ("backend", c_char_p), ("kernel", c_char_p), ("runs", c_uint64), ("nanoseconds", c_uint64),
                ("least", c_uint64), ("most", c_uint64)]


class PythonProgress(Structure):
    _fields_ = [("fraction", c_double), ("stage", c_char_p)]


class PythonResult(Structure):
    _fields_ = [("failure", c_int32), ("exit_code", c_int32), ("json", c_void_p), ("text", c_void_p)]


class PythonRunCall(Structure):
    _fields_ = [("session", c_void_p), ("output_count", c_uint32), ("started", c_int32), ("all_used", c_int32), ("planned", POINTER(c_int64)),
                ("used", POINTER(c_int64)), ("error", Error)]


Listener = ctypes.CFUNCTYPE(c_int32, POINTER(PythonProgress))
Done = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, POINTER(Error))
Log = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)

# The result and the parameters of each function.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "sinter_version": (c_char_p,),
    "sinter_type_name": (c_char_p, c_int32),
    "sinter_backend_name": (c_char_p, c_uint32),
    "sinter_model_open": (c_int32, c_char_p, POINTER(OpenOptions), POINTER(c_void_p), POINTER(Error)),
    "sinter_model_open_bytes": (c_int32, c_void_p, c_size_t, POINTER(OpenOptions), POINTER(c_void_p), POINTER(Error)),
    "sinter_model_close": (None, c_void_p),
    "sinter_model_bytes": (c_size_t, c_void_p),
    "sinter_model_entry_count": (c_uint32, c_void_p),
    "sinter_model_input_count": (c_uint32, c_void_p, c_uint32),
    "sinter_model_output_count": (c_uint32, c_void_p, c_uint32),
    "sinter_model_input": (c_int32, c_void_p, c_uint32, c_uint32, POINTER(Tensor)),
    "sinter_model_output": (c_int32, c_void_p, c_uint32, c_uint32, POINTER(Tensor)),
    "sinter_model_input_quantization": (c_int32, c_void_p, c_uint32, c_uint32, POINTER(Quantization)),
    "sinter_model_output_quantization": (c_int32, c_void_p, c_uint32, c_uint32, POINTER(Quantization)),
    "sinter_model_input_range": (c_int32, c_void_p, c_uint32, c_uint32, c_int32, POINTER(c_int64), POINTER(c_int64)),
    "sinter_model_profile_name": (c_char_p, c_void_p, c_uint32),
    "sinter_model_metadata_count": (c_uint32, c_void_p),
    "sinter_model_metadata_key": (c_char_p, c_void_p, c_uint32),
    "sinter_model_metadata_value": (c_char_p, c_void_p, c_uint32),
    "sinter_model_label_count": (c_uint32, c_void_p, c_char_p),
    "sinter_model_label": (c_char_p, c_void_p, c_char_p, c_uint32),
    "sinter_model_step_count": (c_uint32, c_void_p, c_uint32),
    "sinter_model_step_op": (c_char_p, c_void_p, c_uint32, c_uint32),
    "sinter_model_step_name": (c_char_p, c_void_p, c_uint32, c_uint32),
    "sinter_pool_create_with": (c_int32, c_int32, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "sinter_pool_destroy": (None, c_void_p),
    "sinter_packed_requirements": (c_int32, c_void_p, POINTER(SessionOptions), POINTER(Requirements), POINTER(Error)),
    "sinter_packed_create": (c_int32, c_void_p, POINTER(SessionOptions), POINTER(c_void_p), POINTER(Error)),
    "sinter_packed_destroy": (None, c_void_p),
    "sinter_session_requirements": (c_int32, c_void_p, POINTER(SessionOptions), POINTER(Requirements), POINTER(Error)),
    "sinter_session_create": (c_int32, c_void_p, POINTER(SessionOptions), POINTER(c_void_p), POINTER(Error)),
    "sinter_session_destroy": (None, c_void_p),
    "sinter_session_use_entry": (c_int32, c_void_p, c_uint32, POINTER(Error)),
    "sinter_session_input_at": (c_int32, c_void_p, c_uint32, POINTER(Tensor), POINTER(Error)),
    "sinter_session_output_at": (c_int32, c_void_p, c_uint32, POINTER(Tensor), POINTER(Error)),
    "sinter_session_set_shape": (c_int32, c_void_p, c_char_p, POINTER(c_int64), c_int32, POINTER(Error)),
    "sinter_session_profile": (c_uint32, c_void_p),
    "sinter_session_fallbacks": (c_uint32, c_void_p),
    "sinter_session_program": (c_uint32, c_void_p),
    "sinter_session_step_time": (c_int32, c_void_p, c_uint32, c_uint32, POINTER(StepTime), POINTER(Error)),
    "sinter_time_steps": (c_int32, c_void_p, c_void_p, c_size_t, POINTER(Error)),
    "sinter_time_steps_end": (None, c_void_p),
    "sinter_reset": (None, c_void_p),
    "sinter_start": (c_int32, c_void_p, Done, c_void_p, POINTER(Error)),
    "sinter_cancel": (None, c_void_p),
    "sinter_set_log": (None, Log, c_void_p),
    "sinter_python_start": (None,),
    "sinter_python_free": (None, c_void_p),
    "sinter_python_message": (c_void_p, c_char_p),
    "sinter_python_call": (None, Words, c_size_t, Listener, POINTER(PythonResult)),
    "sinter_python_run_program": (c_int32, Words, c_size_t),
    "sinter_python_flags": (c_void_p, c_char_p),
    "sinter_python_nearest_name": (c_int32, Words, c_size_t, c_char_p),
    "sinter_python_load_operators": (c_void_p, Words, c_size_t, POINTER(PythonResult)),
    "sinter_python_operator_list": (c_void_p, c_void_p, POINTER(c_size_t)),
    "sinter_python_free_operators": (None, c_void_p),
    "sinter_python_run": (c_int32, POINTER(PythonRunCall)),
}


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(LIBRARY)
    for name, (result, *parameters) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    library.sinter_python_start()
    return library


_lib = _load()
_run = _lib.sinter_python_run
version: str = _lib.sinter_version().decode()


def _taken(text: int | None) -> str:
    """Returns a text that the library made, and releases it."""
    if text is None:
        raise MemoryError
    try:
        return ctypes.string_at(text).decode("utf-8", "replace")
    finally:
        _lib.sinter_python_free(text)


_logger = logging.getLogger("sinter_runtime")
_logger.addHandler(logging.NullHandler())


def _log(_: object, level: int, text: bytes) -> None:
    kind = logging.WARNING if level >= LOG_WARNING else logging.INFO
    if _logger.isEnabledFor(kind):
        _logger.log(kind, "%s", _message(text))


_log_callback = Log(_log)  # which the library keeps
_lib.sinter_set_log(_log_callback, None)


def _words(words: Sequence[bytes]) -> Any:
    return (c_char_p * len(words))(*words)


def _text(text: bytes | None) -> str:
    return (text or b"").decode("utf-8", "surrogateescape")


def _message(text: bytes) -> str:
    return _taken(_lib.sinter_python_message(text))


# ---- Commands ----

class Flag(NamedTuple):
    """A flag of a command, as its --help describes it."""

    name: str
    type: str
    form: str
    help: str
    takes_value: bool
    repeats: bool


def flags(command: str) -> list[Flag]:
    """Returns the flags in the order of --help, without positional arguments."""
    return [Flag(**flag) for flag in json.loads(_taken(_lib.sinter_python_flags(command.encode())))]


class _Reports:
    """Calls `progress` for each report of a command. `failure` is its exception, or that of a signal's handler (KeyboardInterrupt)."""

    def __init__(self, progress: Callable[[float, str], object] | None) -> None:
        self.failure: BaseException | None = None
        self.ended = False
        receiver = self._receive(progress)
        next(receiver)
        # A function of Python in place of send() could be interrupted before its first `try`, where ctypes drops the exception.
        self.listener = Listener(receiver.send)

    def _receive(self, progress: Callable[[float, str], object] | None) -> Generator[int, Any, None]:
        answer = GO_ON
        while not self.ended:
            try:
                report = (yield answer).contents
                ctypes.pythonapi.PyErr_CheckSignals()
                if progress is not None:
                    progress(report.fraction, report.stage.decode("utf-8", "replace"))
            except BaseException as error:
                if self.ended:  # the generator is closed
                    return
                self.failure, answer = error, 0


def _exception(result: PythonResult) -> BaseException:
    if not result.text:
        return MemoryError()
    kinds = {1: errors.UsageError, 2: errors.DataError, 3: errors.ModelFileError, 4: errors.FileError}
    return kinds.get(result.failure, RuntimeError)(_taken(result.text))


def call(words: Sequence[bytes], progress: Callable[[float, str], object] | None) -> tuple[int, str, str]:
    """Runs a command: its exit code, its result as JSON, and as text. An exception of `progress` ends it."""
    reports = _Reports(progress)
    result = PythonResult()
    _lib.sinter_python_call(_words(words), len(words), reports.listener, byref(result))
    reports.ended = True
    if reports.failure is not None:
        raise reports.failure
    if result.failure:
        raise _exception(result)
    return result.exit_code, _taken(result.json), _taken(result.text)


def run_program(words: Sequence[bytes]) -> int:
    """Runs a command as a program of its own: prints, and returns the exit code."""
    return int(_lib.sinter_python_run_program(_words(words), len(words)))


def nearest_name(names: Sequence[str], wanted: str) -> str | None:
    index = _lib.sinter_python_nearest_name(_words([name.encode() for name in names]), len(names),
                                            wanted.encode("utf-8", "surrogatepass"))
    return names[index] if index >= 0 else None


# ---- Sessions ----

def backend_names() -> list[str]:
    """Returns the backends of this build, best first."""
    names: list[str] = []
    while (name := _lib.sinter_backend_name(len(names))) is not None:
        names.append(name.decode())
    return names


class Port(NamedTuple):
    """An input or output: name, dtype as in the file, shape."""

    name: bytes
    dtype: str
    shape: tuple[int, ...]
    minima: tuple[int, ...]  # the smallest sizes of an input's axes
    scale: float
    zero_point: int


class Options(NamedTuple):
    """The options of a session, checked; `entry` None: every shape set. `bound` has names with arrays of bytes."""

    threads: int
    backends: Sequence[bytes]
    backend: bytes | None
    profile: bytes | None
    entry: int | None
    require_planned: bool
    copy_file: bool
    check_digests: bool
    public_key: bytes | None
    custom_ops: Sequence[bytes]
    bound: Sequence[tuple[bytes, np.ndarray[Any, Any]]]


class _Handle:
    """An object of the library. It lives as long as this object and the handles that need it."""

    def __init__(self, pointer: Any, destroy: Any, *needs: object) -> None:
        self.pointer = pointer
        # The finalizer, which nothing but its object ends, keeps `needs`, so that garbage in a circle is destroyed in order.
        finalizer = weakref.finalize(self, _destroy, destroy, pointer, needs)
        setattr(finalizer, "atexit", False)  # a run on another thread may go on; typeshed has no setter


def _destroy(destroy: Any, pointer: Any, needs: object) -> None:
    destroy(pointer)


class _Memory:
    """Memory of a session, which the arrays of it keep alive."""

    def __init__(self, session: Session, address: int, count: int) -> None:
        self.session = session
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (count,), "data": (address, False)}


class Session:
    """A session of a model for all its shape sets or one, which begins with the first."""

    def __init__(self, model: _Handle, packed: _Handle | None, options: Options, path: bytes = b"",
                 kind: type[Exception] = errors.RunError) -> None:
        self._model = model
        self._fault = _Fault(path, options, kind)
        count = _lib.sinter_model_entry_count(model.pointer)
        if options.entry is not None and not 0 <= options.entry < count:
            raise errors.UsageError(_message(path) + f"the model has no entry {options.entry}; it has {count}")
        self._entries = list(range(count)) if options.entry is None else [options.entry]
        self._options, needs = self._session_options(options)
        self._packed = packed or self._created("packed", needs)
        self._options.packed_weights = self._packed.pointer
        self._session = self._created("session", (self._packed, *needs))
        self._ports = {(inputs, e): _ports(model.pointer, inputs, e) for inputs in (True, False) for e in self._entries}
        self._calls = {entry: self._call_of(entry) for entry in self._entries}
        self.use_entry(self._entries[0])

    @staticmethod
    def open_file(path: bytes, options: Options) -> Session:
        model = _opened(lambda *to: _lib.sinter_model_open(path, *to), None, options)
        return Session(model, None, options, path + b": ", errors.ModelFileError)

    @staticmethod
    def open_bytes(file: np.ndarray[Any, Any], options: Options) -> Session:
        """Opens a file in an aligned array, which nothing changes."""
        model = _opened(lambda *to: _lib.sinter_model_open_bytes(file.ctypes.data, file.nbytes, *to), file, options)
        return Session(model, None, options, b"", errors.ModelFileError)

    def another(self, options: Options) -> Session:
        return Session(self._model, self._packed, options)

    def _session_options(self, options: Options) -> tuple[SessionOptions, tuple[object, ...]]:
        """Returns the structure, and what it refers to."""
        pool = None
        if options.threads != 1:
            pointer = c_void_p()
            self._fault.check(_lib.sinter_pool_create_with(options.threads, None, byref(pointer), self._fault.to))
            pool = _Handle(pointer, _lib.sinter_pool_destroy)
        bound = [Binding(name, array.ctypes.data, array.nbytes) for name, array in options.bound]
        result = SessionOptions(size=ctypes.sizeof(SessionOptions), backends=_words(options.backends) if options.backends else None,
                                backend_count=len(options.backends), pool=pool.pointer if pool else None, profile=options.profile,
                                backend=options.backend, entry=EVERY_ENTRY if options.entry is None else options.entry,
                                require_planned=options.require_planned, bindings=(Binding * len(bound))(*bound), binding_count=len(bound))
        return result, (self._model, pool, result, options.bound)

    def _created(self, what: str, needs: tuple[object, ...]) -> _Handle:
        pointer = c_void_p()
        create = getattr(_lib, f"sinter_{what}_create")
        self._fault.check(create(self._model.pointer, byref(self._options), byref(pointer), self._fault.to))
        return _Handle(pointer, getattr(_lib, f"sinter_{what}_destroy"), *needs)

    def _call_of(self, entry: int) -> PythonRunCall:
        outputs = self._ports[False, entry]
        planned = [n for port in outputs for n in (*port.shape, *(0,) * (MAX_RANK - len(port.shape)))]
        return PythonRunCall(session=self._session.pointer, output_count=len(outputs), planned=(c_int64 * len(planned))(*planned),
                             used=(c_int64 * len(planned))())

    def entries(self) -> list[int]:
        """Returns the shape sets that are open, by their numbers in the file."""
        return self._entries

    def use_entry(self, entry: int) -> None:
        """Goes on with a shape set, for runs and for functions that refer to memory."""
        self._fault.check(_lib.sinter_session_use_entry(self._session.pointer, entry, self._fault.to))
        self._entry = entry
        self._call = self._calls[entry]

    def ports(self, inputs: bool, entry: int) -> list[Port]:
        return self._ports[inputs, entry]

    def memory(self, inputs: bool, index: int) -> np.ndarray[Any, Any]:
        """Returns the memory of an input or output, which lives as long as the array."""
        tensor = Tensor()
        of = _lib.sinter_session_input_at if inputs else _lib.sinter_session_output_at
        self._fault.check(of(self._session.pointer, index, byref(tensor), self._fault.to))
        return np.asarray(_Memory(self, tensor.data or 0, tensor.bytes)) if tensor.bytes else np.empty(0, np.uint8)

    def run(self) -> None:
        if _run(self._call):  # faster than a pointer to it
            error = self._call.error
            kind = errors.Cancelled if error.code == CANCELLED else errors.RunError
            raise kind(_message(error.text), error.code)

    def start(self) -> None:
        """Starts a run, whose end run() waits for, so that cancel() finds it."""
        self._fault.check(_lib.sinter_start(self._session.pointer, Done(), None, self._fault.to))
        self._call.started = 1

    def abandon(self) -> None:
        """Ends a run that start() has begun and whose end nothing waits for."""
        if self._call.started:
            self.cancel()
            self._call.started = 0

    def cancel(self) -> None:
        """Ends the run in progress, from any thread."""
        _lib.sinter_cancel(self._session.pointer)

    def set_shape(self, index: int, shape: Sequence[int]) -> None:
        """Sets the lengths of the next run, for an input that the caller writes in place."""
        name = self._ports[True, self._entry][index].name
        to = self._fault.to
        if _lib.sinter_session_set_shape(self._session.pointer, name, (c_int64 * len(shape))(*shape), len(shape), to):
            raise errors.InputError(_message(self._fault.error.text))

    def reset(self) -> None:
        _lib.sinter_reset(self._session.pointer)

    def used_shape(self, output: int) -> tuple[int, ...] | None:
        """Returns the used entries of each axis of an output, for outputs that the last run did not use whole."""
        if self._call.all_used:
            return None
        shape = self._ports[False, self._entry][output].shape
        used = tuple(self._call.used[output * MAX_RANK + axis] for axis in range(len(shape)))
        return None if used == shape else used

    def begin_times(self) -> None:
        """Adds up the time of each step in further runs."""
        self._fault.check(_lib.sinter_time_steps(self._session.pointer, None, 0, self._fault.to))

    def end_times(self) -> list[tuple[str, str, StepTime]]:
        """Returns the operation, the name and the time of each step since begin_times(), and stops."""
        model, session = self._model.pointer, self._session.pointer
        program = _lib.sinter_session_program(session)
        found = []
        try:
            for step in range(_lib.sinter_model_step_count(model, program)):
                time = StepTime(size=ctypes.sizeof(StepTime))
                self._fault.check(_lib.sinter_session_step_time(session, program, step, byref(time), self._fault.to))
                found.append((_text(_lib.sinter_model_step_op(model, program, step)),
                              _text(_lib.sinter_model_step_name(model, program, step)), time))
        finally:
            _lib.sinter_time_steps_end(session)
        return found

    def memory_bytes(self) -> int:
        """Returns the bytes of the model, the packed weights and the session, without the file."""
        total = int(_lib.sinter_model_bytes(self._model.pointer))
        for requirements in (_lib.sinter_packed_requirements, _lib.sinter_session_requirements):
            needs = Requirements(size=ctypes.sizeof(Requirements))
            self._fault.check(requirements(self._model.pointer, byref(self._options), byref(needs), self._fault.to))
            total += needs.bytes
        return total

    def fallbacks(self) -> int:
        return int(_lib.sinter_session_fallbacks(self._session.pointer))

    def metadata(self) -> dict[str, str]:
        model = self._model.pointer
        return {_text(_lib.sinter_model_metadata_key(model, i)): _text(_lib.sinter_model_metadata_value(model, i))
                for i in range(_lib.sinter_model_metadata_count(model))}

    def labels(self, output: bytes) -> list[str]:
        """Returns the class names of an output; none where the file has none."""
        model = self._model.pointer
        return [_text(_lib.sinter_model_label(model, output, i)) for i in range(_lib.sinter_model_label_count(model, output))]

    def profile(self) -> str:
        name: bytes = _lib.sinter_model_profile_name(self._model.pointer, _lib.sinter_session_profile(self._session.pointer))
        return name.decode("utf-8", "replace")


class _Fault:
    """The place for an error of the C API, and the exception that it becomes."""

    def __init__(self, path: bytes, options: Options, kind: type[Exception]) -> None:
        self.error = Error()
        self.to = byref(self.error)
        self._path, self._kind, self._binds = path, kind, bool(options.bound)

    def check(self, code: int) -> None:
        if code:
            self._raise(code)

    def _raise(self, code: int) -> NoReturn:
        text = _message(self._path + self.error.text)
        if code == OUT_OF_MEMORY:
            raise MemoryError(text)
        if code == INVALID_ARGUMENT or (code == UNSUPPORTED and self._binds):
            raise errors.UsageError(text)
        raise self._kind(text)


def _opened(open_model: Any, file: object, options: Options) -> _Handle:
    operators, array, count = None, None, c_size_t()
    if options.custom_ops:
        result = PythonResult()
        pointer = _lib.sinter_python_load_operators(_words(options.custom_ops), len(options.custom_ops), byref(result))
        if pointer is None:
            raise _exception(result)
        operators = _Handle(pointer, _lib.sinter_python_free_operators)
        array = _lib.sinter_python_operator_list(pointer, byref(count))
    given = OpenOptions(size=ctypes.sizeof(OpenOptions), copy_file=options.copy_file, skip_digests=not options.check_digests,
                        public_key=options.public_key, custom_ops=array, custom_op_count=count.value)
    model, fault = c_void_p(), _Fault(b"", options, errors.ModelFileError)
    fault.check(open_model(byref(given), byref(model), fault.to))
    return _Handle(model, _lib.sinter_model_close, file, operators)


def _ports(model: Any, inputs: bool, entry: int) -> list[Port]:
    side = "input" if inputs else "output"
    count = getattr(_lib, f"sinter_model_{side}_count")(model, entry)
    tensor, quantization, low, high = Tensor(), Quantization(), c_int64(), c_int64()
    ports = []
    for index in range(count):
        getattr(_lib, f"sinter_model_{side}")(model, entry, index, byref(tensor))
        getattr(_lib, f"sinter_model_{side}_quantization")(model, entry, index, byref(quantization))
        minima = []
        for axis in range(tensor.rank if inputs else 0):
            _lib.sinter_model_input_range(model, entry, index, axis, byref(low), byref(high))
            minima.append(low.value)
        ports.append(Port(tensor.name, _lib.sinter_type_name(tensor.type).decode(), tuple(tensor.dims[:tensor.rank]), tuple(minima),
                          quantization.scale, quantization.zero_point))
    return ports
