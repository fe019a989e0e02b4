"""What the exports of the examples, and of bench/, have in common."""
import onnx


def drop_notes(path):
    """Removes from an ONNX file what torch's exporter notes for each node: where in the sources it comes from, which can take more
    bytes than few-bit weights."""
    proto = onnx.load(path)
    for noted in (proto, proto.graph, *proto.functions, *proto.graph.node, *proto.graph.value_info, *proto.graph.input, *proto.graph.output,
                  *proto.graph.initializer):
        del noted.metadata_props[:]
        noted.doc_string = ''
    onnx.save(proto, path)
