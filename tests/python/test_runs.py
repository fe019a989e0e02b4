"""Runs on a thread of the model's own, cancelled and timed runs, messages."""
import logging
import os
import sys
import threading
import time
import unittest

import numpy as np
import sinter_runtime as sinter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models  # noqa: E402


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = sinter.convert(models.affine()[0]).data
        cls.slow = sinter.convert(models.slow_loop(2_000_000)).data

    def test_run_async(self):
        model, x = sinter.load(self.file), np.ones((4, 8), np.float32)
        expected = model.run(x)["y"]
        given = x.copy()
        future = model.run_async(given)
        given[:] = 7
        np.testing.assert_array_equal(future.result()["y"], expected)
        y = np.zeros((4, 8), np.float32)
        self.assertIs(model.run_async({"x": x}, outputs={"y": y}).result()["y"], y)
        with self.assertRaisesRegex(sinter.InputError, "is missing"):
            model.run_async({})
        np.testing.assert_array_equal(model.run(x)["y"], expected)  # the refused one has not kept the model

    def test_a_model_is_in_use_until_the_future_is_done(self):
        model = sinter.load(self.slow)
        future = model.run_async(np.zeros(1, np.float32))
        for call in (lambda: model.run(np.zeros(1, np.float32)), lambda: model.run_async(np.zeros(1, np.float32)), model.close,
                     lambda: model.time_steps(np.zeros(1, np.float32))):
            with self.assertRaisesRegex(sinter.RunError, "another thread"):
                call()
        model.cancel()
        with self.assertRaises(sinter.Cancelled):
            future.result()
        model.close()
        for call in (model.cancel, lambda: model.run_async(np.zeros(1, np.float32))):
            with self.assertRaisesRegex(sinter.RunError, "closed"):
                call()

    def test_cancel_from_another_thread(self):
        model = sinter.load(self.slow)
        model.cancel()  # without a run
        start = time.monotonic()
        whole = model.run(np.zeros(1, np.float32))["y"]
        seconds = time.monotonic() - start
        timer = threading.Timer(seconds / 10, model.cancel)
        timer.start()
        start = time.monotonic()
        with self.assertRaisesRegex(sinter.Cancelled, "cancel"):
            model.run(np.zeros(1, np.float32))
        self.assertLess(time.monotonic() - start, seconds)
        np.testing.assert_array_equal(model.run(np.zeros(1, np.float32))["y"], whole)

    def test_times_of_steps(self):
        model, x = sinter.load(self.file), np.ones((4, 8), np.float32)
        expected = model.run(x)["y"]
        times = model.time_steps(x, runs=5)
        self.assertEqual(len(times), len(sinter.inspect(self.file, steps=True)["steps"]))
        for step in times:
            self.assertTrue(step.op and step.backend)
            self.assertEqual(step.runs, 5)
            self.assertTrue(0 <= step.least <= step.most <= step.seconds < 10)
        np.testing.assert_array_equal(model.run(x)["y"], expected)
        with self.assertRaises(sinter.InputError):
            model.time_steps({})
        idle = [s for s in sinter.load(sinter.convert("digits.onnx")).time_steps(np.zeros((1, 1, 8, 8), np.float32)) if s.runs == 0]
        self.assertTrue(all((s.seconds, s.least, s.most) == (0, 0, 0) for s in idle), idle)


class Messages(unittest.TestCase):
    def test_messages(self):
        with self.assertLogs("sinter_runtime", logging.INFO) as logs:
            sinter.load(sinter.convert(models.unary("Abs", [1, 3])))
        self.assertTrue(all(record.getMessage() for record in logs.records))


if __name__ == "__main__":
    unittest.main()
