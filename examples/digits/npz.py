"""Reads .npz files with the standard library: {name: (shape, flat list of numbers)}."""
import array
import ast
import struct
import zipfile

CODES = {'<f4': 'f', '<f8': 'd', '<i4': 'i', '<i8': 'q', '|u1': 'B', '|i1': 'b', '<u2': 'H', '<i2': 'h'}


def load(path):
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            wide = data[6] > 1  # format version 1 has a 16-bit header length, later ones 32 bits
            size, = struct.unpack_from('<I' if wide else '<H', data, 8)
            start = 12 if wide else 10
            header = ast.literal_eval(data[start:start + size].decode())
            if header['fortran_order']:
                raise ValueError(f'{path}: {name} is stored column by column')
            values = array.array(CODES[header['descr']])
            values.frombytes(data[start + size:])
            found[name.removesuffix('.npy')] = header['shape'], values
    return found
