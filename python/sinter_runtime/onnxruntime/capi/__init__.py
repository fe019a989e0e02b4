"""The modules below onnxruntime's own, by their names there."""
