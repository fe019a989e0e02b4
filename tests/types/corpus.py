"""All models of the corpus; each module's docstring describes its models."""
import arithmetic
import edges
import graphs
import idioms
import inputs
import leftovers
import precision
import products
import quantized
import refused
import scaled_floats
import tables
import unpacked
import warned

MODULES = (arithmetic, products, inputs, precision, quantized, graphs, idioms, leftovers, edges, unpacked, tables, scaled_floats,
           refused, warned)


def cases():
    for m in MODULES:
        yield from m.cases()
