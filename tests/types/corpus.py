"""All models of the corpus; each module says what it holds."""
import arithmetic
import graphs
import inputs
import precision
import products
import quantized
import refused

MODULES = (arithmetic, products, inputs, precision, quantized, graphs, refused)


def cases():
    for m in MODULES:
        yield from m.cases()
