"""Inputs with a range of sizes: arrays of any size in it, bound arrays, calibration, refusals."""
import unittest

import numpy as np
import sinter_runtime as sinter
from onnx import TensorProto, helper

R = np.random.default_rng(5)


def products():
    """y = x @ x' + mask, over [seq, 4] and [seq]."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["m"]),
             helper.make_node("Add", ["m", "mask"], ["y"])]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, ["seq", 4]), value("mask", TensorProto.FLOAT, ["seq"])],
                              [value("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Lengths(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = sinter.convert(products(), dim={"seq": "1..12"}).data

    def inputs(self, n):
        return {"x": R.standard_normal((n, 4)).astype(np.float32), "mask": R.standard_normal(n).astype(np.float32)}

    def check(self, y, x, mask):
        np.testing.assert_allclose(y, x @ x.T + mask, rtol=1e-5, atol=1e-5)

    def test_arrays_of_every_size(self):
        model = sinter.load(self.file)
        self.assertEqual(model.ranges, {"x": ((1, 12), (4, 4)), "mask": ((1, 12),)})
        for n in (12, 1, 7, 12, 3):
            inputs = self.inputs(n)
            y = model.run(inputs)["y"]
            self.assertEqual(y.shape, (n, n))
            self.check(y, **inputs)
        turned = self.inputs(5)
        self.check(model.run({**turned, "x": np.asfortranarray(turned["x"])})["y"], **turned)

    def test_wrong_sizes(self):
        model = sinter.load(self.file)
        for n in (0, 13):
            with self.assertRaisesRegex(sinter.InputError, r"input 'x' has shape \[1..12, 4\], but the array has"):
                model.run(self.inputs(n))
        with self.assertRaisesRegex(sinter.InputError, r"input 'mask' is missing; give an array for it, float32\[1..12\]"):
            model.run({"x": self.inputs(3)["x"]})
        with self.assertRaisesRegex(sinter.RunError, "'mask': its length is 4, but that of another input with the same dimension is 3"):
            model.run({"x": self.inputs(3)["x"], "mask": self.inputs(4)["mask"]})
        inputs = self.inputs(6)
        self.check(model.run(inputs)["y"], **inputs)

    def test_bound_arrays(self):
        model = sinter.load(self.file, bind=["x", "mask"])
        inputs = self.inputs(5)
        for name, array in inputs.items():
            model.bound[name][:] = np.nan
            model.bound[name][:5] = array
            model.set_shape(name, array.shape)
        self.check(model.run()["y"], **inputs)
        with self.assertRaisesRegex(sinter.InputError, "its axis 0 has 1 to 12 entries, but the shape has 13"):
            model.set_shape("x", (13, 4))

    def test_samples_of_every_size(self):
        report = sinter.convert(products(), dim={"seq": "1..12"}, quantize="int8", force_int8=True,
                                calibrate=[self.inputs(1 + k % 12) for k in range(24)])
        inputs = self.inputs(7)
        y = sinter.load(report).run(inputs)["y"]
        np.testing.assert_allclose(y, inputs["x"] @ inputs["x"].T + inputs["mask"], atol=0.5)


if __name__ == "__main__":
    unittest.main()
