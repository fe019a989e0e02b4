"""load(): a .sinter file, ready to run."""
from __future__ import annotations

import operator
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, NoReturn, Union

import numpy as np

from . import _native, arrays
from .errors import FileError, InputError, RunError, UsageError

Array = np.ndarray[Any, Any]
Inputs = Union[Mapping[str, Array], Sequence[Array], Array, None]


class _Port(NamedTuple):
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Port(_Port):
    """An input or output of a model: name, dtype and shape. Bounded dimensions have their maximum here.

    Where `scale` is not 0, an integer q is the number (q - zero_point) * scale: quantize() and dequantize() convert arrays.
    """

    scale: float
    zero_point: int

    def __new__(cls, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], scale: float = 0.0, zero_point: int = 0) -> Port:
        port = super().__new__(cls, name, dtype, shape)
        port.scale, port.zero_point = scale, zero_point
        return port

    def quantize(self, numbers: Any) -> Array:
        """The integers of these numbers, rounded half to even and saturated."""
        self._has_scale("quantize")
        x = np.asarray(numbers, np.float32)
        if np.isnan(x).any():
            raise InputError(f"'{self.name}': the array contains NaN, which no integer is")
        limits = np.iinfo(self.dtype)
        q: Array = np.clip(np.rint(x / np.float32(self.scale)) + self.zero_point, limits.min, limits.max).astype(self.dtype)
        return q

    def dequantize(self, integers: Any) -> Array:
        """The numbers of these integers, in float32."""
        self._has_scale("dequantize")
        return (np.asarray(integers, np.float32) - np.float32(self.zero_point)) * np.float32(self.scale)

    def _has_scale(self, method: str) -> None:
        if self.scale == 0:
            raise UsageError(f"{method}(): '{self.name}' ({self.dtype.name}) does not have a scale; its elements are the numbers themselves")

    def __str__(self) -> str:
        return f"{self.name} {self.dtype.name}[{','.join(map(str, self.shape))}]"


class _Slot(NamedTuple):
    """A port with the session's memory for it."""

    port: Port
    view: Array
    bound: bool
    number: int
    minima: tuple[int, ...]  # of an input's axes

    @property
    def bounded(self) -> bool:
        return bool(self.minima) and self.minima != self.port.shape

    def takes(self, shape: tuple[int, ...]) -> bool:
        low = self.minima or self.port.shape
        return len(shape) == len(low) and all(a <= n <= b for a, n, b in zip(low, shape, self.port.shape))

    @property
    def sizes(self) -> str:
        """The shape, with the ranges of bounded axes: [1, 1..128]."""
        low = self.minima or self.port.shape
        return "[" + ", ".join(str(b) if a == b else f"{a}..{b}" for a, b in zip(low, self.port.shape)) + "]"


class StepTime(NamedTuple):
    """The time of a step in Model.time_steps(), in seconds. An If or Loop includes its bodies."""

    op: str
    name: str
    backend: str  # "session" for an If or Loop
    runs: int  # 0: the step does no work
    seconds: float  # of all runs
    least: float
    most: float


class _Ports(NamedTuple):
    """The inputs and outputs of one shape set, by name."""

    inputs: dict[str, _Slot]
    outputs: dict[str, _Slot]


class _Closed:
    """Stands for what a closed model had."""

    def _refuse(self, *_: object) -> NoReturn:
        raise RunError("this model is closed; load the file again")

    __getattr__ = __len__ = __iter__ = __contains__ = __getitem__ = _refuse


class Model:
    """A model with its memory, for one caller at a time. load() makes it; another() gives one for another thread.

    close() releases the memory, as the end of `with load(...) as model:` does; a closed model raises RunError.

    Where the file has several shape sets, run() takes the one that has the shapes of its arrays.

    A run copies inputs in and outputs out, unless they are bound (load(..., bind=...)): results never change afterwards.
    """

    def __init__(self, session: _native.Session, options: Mapping[str, Any], bound: dict[str, Array]) -> None:
        self._session = session
        self._options = options
        self._busy = threading.Lock()
        self._worker: ThreadPoolExecutor | None = None
        self.bound: dict[str, Array] = bound  # the arrays that runs read and write in place
        self._sets: dict[int, _Ports] = {}
        for entry in session.entries():
            session.use_entry(entry)
            self._sets[entry] = _Ports(self._slots(True, entry), self._slots(False, entry))
        self._use(next(iter(self._sets)))

    def _use(self, entry: int) -> None:
        self._session.use_entry(entry)
        self._entry = entry
        self._inputs, self._outputs = self._sets[entry]

    def _slots(self, inputs: bool, entry: int) -> dict[str, _Slot]:
        slots = {}
        for index, (port, kind, minima) in enumerate(_ports(self._session, inputs, entry)):
            array = self.bound.get(port.name)
            view = self._session.memory(inputs, index).view(kind).reshape(port.shape) if array is None else array
            slots[port.name] = _Slot(port, view, array is not None, index, minima)
        return slots

    @property
    def inputs(self) -> list[Port]:
        return [slot.port for slot in self._inputs.values()]

    @property
    def outputs(self) -> list[Port]:
        return [slot.port for slot in self._outputs.values()]

    @property
    def metadata(self) -> dict[str, str]:
        """Facts about the model for people and applications, as `sinter convert` wrote them."""
        return self._session.metadata()

    def labels(self, output: str | None = None) -> list[str]:
        """The class names of an output, by index; of the only output without a name. Empty where the file has none."""
        if output is None and len(self._outputs) > 1:
            raise InputError(f"labels(): the model has {len(self._outputs)} outputs; give one of {', '.join(map(repr, self._outputs))}")
        name = next(iter(self._outputs)) if output is None else output
        if name not in self._outputs:
            raise InputError(_unknown("output", name, self._outputs))
        return self._session.labels(name.encode("utf-8", "surrogateescape"))

    @property
    def shapes(self) -> list[dict[str, tuple[int, ...]]]:
        """The shapes of the inputs, by name, of each shape set. `inputs` and `outputs` are those of the set that ran last."""
        return [{name: slot.port.shape for name, slot in ports.inputs.items()} for ports in self._sets.values()]

    @property
    def ranges(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """The smallest and the largest size of each axis of the inputs, by name: they differ where the model was converted with
        a range, such as dims={"seq": (1, 128)}."""
        return {name: tuple(zip(slot.minima, slot.port.shape)) for name, slot in self._inputs.items()}

    def set_shape(self, name: str, shape: Sequence[int]) -> None:
        """The shape of the next runs for a bound input with a range of sizes: they read this part of the bound array."""
        slot = self._inputs.get(name)
        if slot is None:
            raise InputError(_unknown("input", name, self._inputs))
        self._session.set_shape(slot.number, list(shape))

    def _choose(self, inputs: Mapping[str, Array]) -> None:
        """Goes on with the first shape set that has the arrays' shapes; wrong names and types are reported later."""
        shapes = {name: array.shape for name, array in inputs.items() if isinstance(array, np.ndarray) and name in self._inputs}
        for entry, ports in self._sets.items():
            if all(name in ports.inputs and ports.inputs[name].takes(shape) for name, shape in shapes.items()):
                if entry != self._entry:
                    self._use(entry)
                return
        given = ", ".join(f"'{name}' {list(shape)}" for name, shape in shapes.items())
        sets = "; ".join(", ".join(f"'{name}' {slot.sizes}" for name, slot in one.inputs.items()) for one in self._sets.values())
        raise InputError(f"no shape set of the model takes {given}; give one of {sets}")

    def _named(self, inputs: Inputs) -> Mapping[str, Array]:
        """Inputs by name; without names they are those that are not bound, in the model's order."""
        if inputs is None:
            return {}
        if isinstance(inputs, Mapping):
            return inputs
        if isinstance(inputs, (list, tuple)) and inputs and not all(isinstance(array, np.ndarray) for array in inputs):
            kinds = ", ".join(sorted({type(array).__name__ for array in inputs if not isinstance(array, np.ndarray)}))
            raise InputError(f"the list of inputs holds {kinds}; give NumPy arrays, numpy.asarray(x, dtype=...), one for each input")
        names = [name for name, slot in self._inputs.items() if not slot.bound]
        given: list[Any] = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(given) != len(names):
            wanted = ", ".join(f"'{name}'" for name in names)
            raise InputError(f"{len(given)} {'array is' if len(given) == 1 else 'arrays are'} given, but the model takes {len(names)}: "
                             f"{wanted}; give a dict of arrays by name, or a list in this order")
        return dict(zip(names, given))

    def run(self, inputs: Inputs = None, *, outputs: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """Computes all outputs, by name.

        `inputs`: every input that is not bound, by name, as a list in the model's order, or the array of the only one; their
        shapes choose the shape set. `outputs`: arrays to write to, for any of the outputs; the others are new arrays. Types and
        shapes must be the model's: no value is converted silently.
        """
        self._take()
        try:
            self._set(inputs, outputs)
            return self._compute(outputs)
        finally:
            self._busy.release()

    def run_async(self, inputs: Inputs = None, *, outputs: Mapping[str, Array] | None = None) -> Future[dict[str, Array]]:
        """Does the work of run() on a thread of the model's own: copies the inputs, which may change then, and returns the future
        of its result. The model is in use until it is done; cancel() ends the run."""
        self._take()
        try:
            self._set(inputs, outputs)
            if self._worker is None:
                self._worker = ThreadPoolExecutor(1, "sinter")
            self._session.start()
            return self._worker.submit(self._complete, outputs)
        except BaseException:
            self._session.abandon()
            self._busy.release()
            raise

    def cancel(self) -> None:
        """Ends the run in progress, from any thread, before its next step or trip of a loop: it raises Cancelled. Without a run
        nothing happens. Afterwards state is undefined until reset()."""
        self._session.cancel()

    def time_steps(self, inputs: Inputs = None, *, runs: int = 10) -> list[StepTime]:
        """Runs the model and returns the time of each step, in the order of the plan."""
        self._take()
        try:
            self._set(inputs, None)
            self._session.begin_times()
            try:
                for i in range(runs):
                    if i > 0:
                        self._set(inputs, None)  # a run may overwrite its inputs
                    self._session.run()
            finally:
                times = self._session.end_times()
            return [StepTime(op, name, (t.backend or b"").decode(), t.runs, t.nanoseconds / 1e9, t.least / 1e9, t.most / 1e9)
                    for op, name, t in times]
        finally:
            self._busy.release()

    def _take(self) -> None:
        if not self._busy.acquire(blocking=False):
            raise RunError("another thread runs this model; give each thread one of its own by another()")

    def _set(self, inputs: Inputs, outputs: Mapping[str, Array] | None) -> None:
        """Checks the arrays of a run and copies the inputs."""
        given = self._named(inputs)
        if len(self._sets) > 1:
            self._choose(given)
        self._check_inputs(given)
        for name, array in (outputs or {}).items():
            slot = self._outputs.get(name)
            if slot is None:
                raise InputError(_unknown("output", name, self._outputs))
            _check(array, slot.port, "output", writes=True)
        for name, array in given.items():
            slot = self._inputs[name]
            view = slot.view
            if slot.bounded:
                self._session.set_shape(slot.number, list(array.shape))
                view = view[tuple(slice(n) for n in array.shape)]
            if array is not slot.view:
                np.copyto(view, array, casting="no")

    def _compute(self, outputs: Mapping[str, Array] | None) -> dict[str, Array]:
        self._session.run()
        return {name: self._result(i, slot, (outputs or {}).get(name)) for i, (name, slot) in enumerate(self._outputs.items())}

    def _complete(self, outputs: Mapping[str, Array] | None) -> dict[str, Array]:
        """Computes what run_async() began."""
        try:
            return self._compute(outputs)
        finally:
            self._busy.release()

    def _check_inputs(self, inputs: Mapping[str, Array]) -> None:
        for name, array in inputs.items():
            slot = self._inputs.get(name)
            if slot is None:
                raise InputError(_unknown("input", name, self._inputs))
            _check(array, slot.port, "input", slot=slot)
        for name, slot in self._inputs.items():
            if name not in inputs and not slot.bound:
                raise InputError(f"input '{name}' is missing; give an array for it, {slot.port.dtype.name}{slot.sizes}")

    def _result(self, index: int, slot: _Slot, to: Array | None) -> Array:
        if to is not None:
            np.copyto(to, slot.view, casting="no")
        used = self._session.used_shape(index)
        result = slot.view if to is None else to
        if used is not None:
            result = result[tuple(slice(n) for n in used)]
        return result.copy() if to is None and not slot.bound else result

    def close(self) -> None:
        """Releases the memory. Arrays that were bound stay the caller's."""
        if not self._busy.acquire(blocking=False):
            raise RunError("another thread runs this model; close it after the run")
        if self._worker is not None:
            self._worker.shutdown(wait=False)
        closed: Any = _Closed()
        self._session = self._sets = self._inputs = self._outputs = self.bound = closed
        self._busy.release()

    def __enter__(self) -> Model:
        self._session.profile()  # raises where the model is closed
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset(self) -> None:
        """Sets state back to its initial values."""
        if not self._busy.acquire(blocking=False):
            raise RunError("another thread runs this model; reset it after the run")
        try:
            self._session.reset()
        finally:
            self._busy.release()

    def another(self, **options: Any) -> Model:
        """A second Model of the same file, for another thread. Both share the file, its memory and the packed weights.

        `options`: as of load(), where they differ; those of opening a file have no effect.
        """
        merged = {**self._options, "bind": (), **_known_options(options)}
        return _open(lambda o: self._session.another(o), merged, self)

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory in total: the model's, the packed weights and this session's, without the file."""
        return self._session.memory_bytes()

    @property
    def fallbacks(self) -> int:
        """The number of steps that another backend than the planned one computes."""
        return self._session.fallbacks()

    @property
    def profile(self) -> str:
        """The target whose plan runs."""
        return self._session.profile()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Model cannot be pickled or copied; load the file in the other process, or call another()")

    def __repr__(self) -> str:
        if isinstance(self._session, _Closed):
            return "<sinter_runtime.Model, closed>"
        ports = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return f"<sinter_runtime.Model ({ports[0]}) -> ({ports[1]})>"


_DEFAULTS: dict[str, Any] = {"threads": 1, "backends": None, "backend": None, "profile": None, "entry": None, "bind": (),
                             "require_planned": False, "copy_file": False, "check_digests": True, "public_key": None,
                             "custom_ops": ()}


def load(model: Any, *, threads: int = 1, backends: Sequence[str] | None = None, backend: str | None = None,
         profile: str | None = None, entry: int | None = None, bind: Iterable[str] | Mapping[str, Array] = (),
         require_planned: bool = False, copy_file: bool = False, check_digests: bool = True, public_key: bytes | None = None,
         custom_ops: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = ()) -> Model:
    """Opens and verifies a .sinter file and takes all memory that runs need.

    `model`: a path, the bytes of a file, or a Report of convert(). `threads`: of a run, with the caller's; 0: one for each
    processor. `backends`: only these of the build. `backend`: this one for each step that it accepts. `profile`: the plan for
    this target. `entry`: only this one of the model's shape sets, by number; None: all, in memory that serves the largest. `bind`:
    names of inputs and outputs that runs read and write in place, as Model.bound has them; or arrays of empty() by name.
    `require_planned`: refuse a session that has fallbacks. `copy_file`: read the file instead of mapping it, so that it may be
    truncated. `public_key`: the 32 bytes of an Ed25519 key; a file that is not signed with it is refused. `custom_ops`: the
    libraries of the model's custom operators, whose code is run: give only libraries that you trust.
    """
    options = {name: value for name, value in locals().items() if name != "model"}
    data = getattr(model, "data", None) if not isinstance(model, (bytes, bytearray, memoryview)) else bytes(model)
    if isinstance(data, bytes):
        file = arrays.empty(len(data), np.uint8)
        file[:] = np.frombuffer(data, np.uint8)
        return _open(lambda o: _native.Session.open_bytes(file, o), options, None)
    path = getattr(model, "path", model)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"load(): the model is {type(model).__name__}; give a path, bytes or a Report")
    text = arrays.path_text(path)
    if not os.path.isfile(text):
        raise FileError(f"{os.fsdecode(text)}: the file does not exist; check the path")
    if not os.access(text, os.R_OK):
        raise FileError(f"{os.fsdecode(text)}: the file cannot be read; check its permissions")
    return _open(lambda o: _native.Session.open_file(text, o), options, None)


def _known_options(options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _DEFAULTS:
            near = _native.nearest_name(list(_DEFAULTS), name)
            raise TypeError(f"another() does not have an option '{name}'; " +
                            (f"'{near}' may be meant" if near else f"the options are {', '.join(_DEFAULTS)}"))
    return options


def _ports(session: _native.Session, inputs: bool, entry: int) -> list[tuple[Port, np.dtype[Any], tuple[int, ...]]]:
    ports = []
    for port in session.ports(inputs, entry):
        name = port.name.decode("utf-8", "surrogateescape")
        kind = arrays.dtype_of(port.dtype, f"{'input' if inputs else 'output'} '{name}'")
        ports.append((Port(name, kind, tuple(port.shape), port.scale, port.zero_point), kind, tuple(port.minima)))
    return ports


def _open(opener: Any, options: dict[str, Any], model: Model | None) -> Model:
    """`opener` makes a session of native options. `model`: one that is open already."""
    bind = options["bind"]
    if isinstance(bind, str):
        raise TypeError(f"bind: give a list of names, such as [{bind!r}]")
    if not bind:
        return Model(opener(_native_options(options, [])), options, {})
    given = bind if isinstance(bind, Mapping) else dict.fromkeys(bind)
    session = model._session if model is not None else opener(_native_options(options, []))
    entries = [options["entry"]] if options["entry"] is not None else session.entries()
    if len(entries) > 1:
        raise UsageError(f"bind: arrays are bound to one shape set, but the file has {len(entries)}; give its number by entry=N")
    ports = {port.name: (port, kind) for side in (True, False) for port, kind, _ in _ports(session, side, entries[0])}
    del session
    bound: dict[str, Array] = {}
    for name, array in given.items():
        if name not in ports:
            raise UsageError(_unknown("input or output", name, ports))
        port, kind = ports[name]
        if array is None:
            array = arrays.empty(port.shape, kind)
            array.fill(0)
        _check(array, port, "bound array")
        if not arrays.bindable(array):
            raise InputError(f"the array for '{name}' cannot be bound: it must be aligned and padded; make it by "
                             f"sinter_runtime.empty({list(port.shape)}, '{port.dtype.name}')")
        bound[name] = array
    pairs = [(name.encode("utf-8", "surrogateescape"), array.reshape(-1).view(np.uint8)) for name, array in bound.items()]
    return Model(opener(_native_options(options, pairs)), options, bound)


def _native_options(options: Mapping[str, Any], bound: list[tuple[bytes, Array]]) -> _native.Options:
    available = _native.backend_names()
    backends = [options["backends"]] if isinstance(options["backends"], str) else list(options["backends"] or ())
    for name in [*backends, *([options["backend"]] if options["backend"] is not None else [])]:
        if name not in available and name != "reference":
            raise UsageError(f"this build does not have a backend {name!r}; it has {', '.join(available)}, reference")
    key = options["public_key"]
    if key is not None and (not isinstance(key, bytes) or len(key) != 32):
        raise UsageError("public_key is not an Ed25519 key; give its 32 bytes")
    libraries = options["custom_ops"]
    if isinstance(libraries, (str, bytes, os.PathLike)):
        libraries = [libraries]
    # Without a backend of its own the reference kernels compute everything.
    only_reference = bool(backends) and all(name == "reference" for name in backends)
    backend = "reference" if only_reference else options["backend"]
    return _native.Options(
        threads=_integer("threads", options["threads"]), backends=[name.encode() for name in backends if name != "reference"],
        backend=None if backend is None else backend.encode(), profile=_profile(options["profile"]),
        entry=None if options["entry"] is None else _integer("entry", options["entry"]), bound=bound, public_key=key,
        require_planned=bool(options["require_planned"]), copy_file=bool(options["copy_file"]),
        check_digests=bool(options["check_digests"]), custom_ops=[arrays.path_text(library) for library in libraries])


def _integer(name: str, value: Any) -> int:
    number = operator.index(value)
    if not -2**31 <= number < 2**31:
        raise UsageError(f"{name} cannot be {number}; give a smaller number")
    return number


def _profile(name: Any) -> bytes | None:
    if name is not None and (not isinstance(name, str) or "\0" in name):
        raise TypeError(f"load(): profile is the name of a target, not {name!r}")
    return None if name is None else name.encode("utf-8", "surrogateescape")


def _unknown(kind: str, name: object, names: Iterable[str]) -> str:
    known = ", ".join(f"'{n}'" for n in names)
    return f"the model does not have an {kind} {name!r}; it has {known}"


def _check(array: Any, port: Port, kind: str, writes: bool = False, slot: _Slot | None = None) -> None:
    what = f"{kind} '{port.name}'"
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise InputError(f"{what} is {type(array).__name__}; give a NumPy array: numpy.asarray(x, dtype='{port.dtype.name}')")
    if array.dtype != port.dtype:
        order = " of the other byte order" if array.dtype.newbyteorder() == port.dtype else ""
        remedy = "port.quantize(array), with this port of model.inputs" if port.scale else f"array.astype('{port.dtype.name}')"
        raise InputError(f"{what} is {port.dtype.name}, but the array is {array.dtype.name}{order}; no value is converted silently: "
                         f"give {remedy}")
    if array.shape != port.shape and not (slot is not None and slot.takes(array.shape)):
        sizes = slot.sizes if slot is not None else str(list(port.shape))
        raise InputError(f"{what} has shape {sizes}, but the array has {list(array.shape)}; give an array of that shape")
    if writes and not array.flags.writeable:
        raise InputError(f"the array for {what} is read-only; give one that can be written")
