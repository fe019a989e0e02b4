#!/usr/bin/env python3
"""Write wave.onnx: y = 2 * sin(relu(x)), x float32 [4], where the sine is a node of com.example.Wave.

    make_model.py wave.onnx
"""
import sys

import onnx
from onnx import TensorProto, helper

nodes = [helper.make_node("Relu", ["x"], ["positive"]),
         helper.make_node("Wave", ["positive"], ["y"], domain="com.example", name="sine", shape="sin", gain=2.0)]
graph = helper.make_graph(nodes, "wave", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), sys.argv[1])
