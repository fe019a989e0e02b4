"""One module for each runtime that Sinter is compared with. Each has

    PACKAGE            the package whose version is reported
    LIBRARIES          patterns of the files that an application needs, below site-packages
    FLAVOURS           for 'float' and 'int8', the kinds of file that are tried; the fastest right one counts
    BORROWED           optional: flavours whose files another rival makes, {flavour: its module}
    convert(flavour, source, samples, folder)
                       makes the files of a flavour in `folder`, of the ONNX file `source`; `samples` is a list of
                       {input: array} for calibration; raises where it cannot
    Model(folder, inputs, threads)
                       is ready to run on the given arrays when it has been constructed; run() computes once and copies
                       nothing out; prepare(), where it exists, comes before each further run and is not timed; outputs() are the arrays of the last run, by name, or by position where the file has
                       lost the names
"""
NAMES = ('onnxruntime', 'openvino', 'litert', 'mnn', 'ncnn', 'tract')
