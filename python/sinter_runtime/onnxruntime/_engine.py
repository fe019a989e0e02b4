"""The conversions of a session's model: one for each shape that runs have, made when it is first met.

A shape that was met before is in memory or in the cache folder. A new one is converted in the background if something else can
serve meanwhile: a file with ranges of sizes, or the real onnxruntime. Otherwise the call waits for the conversion.
"""
from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np

from .. import errors
from . import _background, _notes, _real
from ._converter import Converter, Key, digest
from ._exceptions import Fail, InvalidArgument, NotImplemented, OrtError, RuntimeException
from ._options import SessionOptions
from ._ranges import Ranges
from ._served import Kept, Once, Served
from ._source import Source
from ._values import Array, NodeArg

MOST_SHAPES = 32  # sinter.shapes
MOST_BYTES = 1 << 30
MOST_REFUSALS = 64
# The most elements of an input whose values may decide shapes.
SMALL_INTEGERS, SMALL = 64, 16


class Engine:
    """The model in all its shapes. Any number of threads may call run()."""

    def __init__(self, source: Source, inputs: list[NodeArg], options: SessionOptions) -> None:
        self._source = source
        self._inputs = {arg.name: arg for arg in inputs}
        self._options = options
        self._convert = Converter(source, self._inputs, options)
        self._by_value: tuple[str, ...] = ()  # inputs that are constants of conversions, because their values decide shapes
        self._retried = False
        self._kept: Kept[Key] = Kept(int(options.entries.get("sinter.shapes", MOST_SHAPES)), MOST_BYTES)
        self._refused: OrderedDict[Key, OrtError] = OrderedDict()
        self._ranges = Ranges(list(self._inputs.values()), options.ranges)
        self._bounded: Served | None = None
        self._once: Once[Key] = Once()
        self._lock = threading.RLock()
        self.real: _real.Session | None = None
        _engines.add(self)

    def prepare(self) -> None:
        """Converts a model whose shapes are all known. A refusal waits for the first run where values may decide shapes."""
        feed = {name: np.zeros(tuple(int(n or 0) for n in arg.dims), arg.dtype) for name, arg in self._inputs.items()}
        key = self._key({}, feed)
        try:
            self._foreground(key, feed)
        except errors.ConversionError as refusal:
            for names in self._value_names(feed, refusal):
                if self._may_follow_from(names, key, feed, refusal):
                    return
            self._refuse(key, refusal)

    def _may_follow_from(self, names: tuple[str, ...], key: Key, feed: dict[str, Array], refusal: errors.ConversionError) -> bool:
        """Returns whether other values of these inputs may be accepted: with zeros, nothing is refused for the same reason."""
        try:
            self._convert(Key(key.shapes, tuple((name, digest(feed[name])) for name in names)), feed)
        except errors.ConversionError as second:
            return not {str(d) for d in second.diagnostics} & {str(d) for d in refusal.diagnostics if d.severity == "refused"}
        return True

    def run(self, feed: dict[str, Array], overridden: dict[str, Array]) -> dict[str, Array] | None:
        """Returns all outputs by name; None: the real onnxruntime has to compute them. `overridden`: initializers with new values."""
        key = self._key(overridden, feed)
        with self._lock:
            served = self._kept.get(key)
        if served is None:
            served = self._serve(key, {**feed, **overridden}, overridden)
        if served is None:
            return None
        try:
            return served.run(feed)
        except errors.RunError as error:
            return self._run_with_values(feed, overridden, error)
        except errors.InputError as error:
            raise InvalidArgument(str(error)) from None

    def _key(self, overridden: dict[str, Array], feed: dict[str, Array]) -> Key:
        constants = tuple((name, digest(feed[name])) for name in self._by_value)
        constants += tuple((name, digest(array)) for name, array in sorted(overridden.items()))
        return Key(tuple((name, feed[name].shape) for name in self._inputs), constants)

    def _serve(self, key: Key, feed: dict[str, Array], overridden: dict[str, Array]) -> Served | None:
        """Returns a model for shapes that are not in memory."""
        known = self._refused.get(key)
        if known is not None:
            self._raise_or_real(known)
            return None
        if self._convert.in_cache(key):
            return self._or_refuse(key, feed, overridden)
        with self._lock:
            times = self._ranges.note(key.shapes) if not key.constants else 0
            bounded = self._bounded_for(key)
        if bounded is not None:
            if times > 1 and not self._ranges.given:
                self._in_background(key, feed)
            return bounded
        if len(self._kept) and self._use_real(""):
            self._in_background(key, feed)
            return None
        served = self._or_refuse(key, feed, overridden)
        self._try_ranges(key)
        return served

    def _or_refuse(self, key: Key, feed: dict[str, Array], overridden: dict[str, Array]) -> Served | None:
        """Converts in the foreground; where that is refused, again with the values of small inputs, which may decide shapes."""
        if self._ranges.given and not key.constants:
            self._make_bounded(self._ranges.plan(key.shapes))
            bounded = self._bounded_for(key)
            if bounded is not None:
                return bounded
        try:
            return self._foreground(key, feed)
        except errors.ConversionError as refusal:
            for names in self._value_names(feed, refusal):
                self._by_value = names
                try:
                    served = self._foreground(self._key(overridden, feed), feed)
                    self._say_values(names)
                    return served
                except errors.ConversionError:
                    self._by_value = ()
            self._refuse(key, refusal)
            return None

    def _foreground(self, key: Key, feed: dict[str, Array]) -> Served:
        """Returns the model of this key, made by this thread or by another one that makes it now."""
        while not self._once.begin(key):
            self._once.wait(key)
        try:
            with self._lock:
                served = self._kept.get(key)
            if served is None:
                served = self._convert(key, feed)
                with self._lock:
                    self._kept.put(key, served)
            return served
        finally:
            self._once.end(key)

    def _in_background(self, key: Key, feed: dict[str, Array]) -> None:
        """Begins a conversion that later runs find; a refusal is found by them, too."""
        if not self._once.begin(key):
            return
        values = {name: feed[name].copy() for name, _ in key.constants}
        reference = weakref.ref(self)

        def job() -> None:
            engine = reference()
            try:
                if engine is not None:
                    served = engine._convert(key, values, _background.stop_at_exit)
                    with engine._lock:
                        engine._kept.put(key, served)
            except errors.ConversionError as refusal:
                if engine is not None:
                    engine._note_refusal(key, refusal)
            finally:
                if engine is not None:
                    engine._once.end(key)

        _background.submit(job)

    # Ranges of sizes.

    def _bounded_for(self, key: Key) -> Served | None:
        """Returns the file with ranges if it takes the shapes and a run of it takes less time than a conversion."""
        bounded = self._bounded
        if bounded is None or key.constants or not bounded.takes(dict(key.shapes)):
            return None
        return bounded if self._ranges.given or bounded.run_seconds <= bounded.convert_seconds else None

    def _try_ranges(self, key: Key) -> None:
        """Begins a conversion with ranges where the shapes so far suggest one."""
        with self._lock:
            plan = self._ranges.plan(key.shapes) if not key.constants and not self._ranges.given else None
        if plan is None:
            return
        reference = weakref.ref(self)

        def job() -> None:
            engine = reference()
            if engine is not None:
                engine._make_bounded(plan)

        _background.submit(job)

    def _make_bounded(self, plan: dict[str, Any] | None) -> None:
        if plan is None:
            return
        try:
            self._bounded = self._convert.with_ranges(plan, None if self._ranges.given else _background.stop_at_exit)
        except errors.ConversionError as refusal:
            self._ranges.refused()
            if self._ranges.given:
                _notes.say_once(f"ranges of sizes are refused, so each shape is converted: {refusal}")

    # Refusals.

    def _value_names(self, feed: dict[str, Array], refusal: errors.ConversionError | None) -> list[tuple[str, ...]]:
        """Returns sets of inputs, to be tried in turn, whose values may be all that a conversion lacks."""
        if self._by_value:
            return []
        whole = tuple(name for name in self._inputs if feed[name].dtype.kind in "iub" and feed[name].size <= SMALL_INTEGERS)
        small = tuple(name for name in self._inputs if name in whole or feed[name].dtype.kind == "f" and feed[name].size <= SMALL)
        text = "" if refusal is None else str(refusal)
        named = tuple(name for name in small if f"const={name}=" in text or f"const {name}" in text)
        return [names for names in dict.fromkeys((named, whole, small)) if names]

    def _say_values(self, names: tuple[str, ...]) -> None:
        listed = ", ".join(f"'{name}'" for name in names)
        _notes.say_once(f"values of {listed} decide shapes of the model; it is converted for each new value of them")

    def _run_with_values(self, feed: dict[str, Array], overridden: dict[str, Array], error: errors.RunError) -> dict[str, Array] | None:
        """A run can fail because a branch does not fit the shapes: with the values that choose the branch it may be left out."""
        if not self._retried:
            self._retried = True
            for names in self._value_names(feed, None):
                self._by_value = names
                try:
                    result = self._foreground(self._key(overridden, feed), {**feed, **overridden}).run(feed)
                    self._say_values(names)
                    return result
                except (errors.ConversionError, errors.RunError):
                    self._by_value = ()
        raise RuntimeException(str(error)) from None

    def _note_refusal(self, key: Key, refusal: errors.ConversionError) -> OrtError:
        reasons = [str(d) for d in refusal.diagnostics if d.severity == "refused"] or [str(refusal)]
        noted: OrtError
        if len(self._kept):
            shapes = ", ".join(f"{name} {list(shape)}" for name, shape in key.shapes)
            noted = Fail(f"Sinter cannot run the model for {shapes}. " + "\n".join(reasons))
        else:
            noted = NotImplemented("Sinter cannot run this model. " + "\n".join(reasons))
        self._refused[key] = noted
        if len(self._refused) > MOST_REFUSALS:
            self._refused.popitem(last=False)
        return noted

    def _refuse(self, key: Key, refusal: errors.ConversionError) -> None:
        self._raise_or_real(self._note_refusal(key, refusal))

    def _raise_or_real(self, refusal: OrtError) -> None:
        if not self._use_real(str(refusal).split(" : ", 3)[-1]):
            raise type(refusal)(str(refusal).split(" : ", 3)[-1] + "\n" + _real.advice())

    def _use_real(self, reason: str) -> bool:
        """Returns whether the real onnxruntime can compute runs. `reason` is told."""
        with self._lock:
            if self.real is None:
                source = self._source.data if self._source.data is not None else self._source.path
                self.real = _real.session(source, self._options, reason)  # type: ignore[arg-type]
            elif reason:
                _real.say(reason)
            return self.real is not None

    def forget(self) -> None:
        """In a forked child: models of the parent are left as they are, since their threads do not exist here."""
        for served in [*self._kept.values(), *([self._bounded] if self._bounded else [])]:
            for model in served.models:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(model))
        self._kept.clear()
        self._bounded, self._once, self._lock = None, Once(), threading.RLock()


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def _forget_all() -> None:
    for engine in list(_engines):
        engine.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
