"""All models of the corpus; each module says what it holds."""
import arithmetic
import graphs
import idioms
import inputs
import precision
import products
import quantized
import refused

MODULES = (arithmetic, products, inputs, precision, quantized, graphs, idioms, refused)


def cases():
    for m in MODULES:
        yield from m.cases()
