"""All models of the corpus; each module says what it holds."""
import arithmetic
import inputs
import precision
import products
import quantized

MODULES = (arithmetic, products, inputs, precision, quantized)


def cases():
    for m in MODULES:
        yield from m.cases()
