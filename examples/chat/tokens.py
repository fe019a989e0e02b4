"""The vocabulary: byte pairs (Sennrich et al., 2016), as a file with the bytes of one token in hexadecimal on each line.

Token 0 ends a text. Text is cut into words with the space before them, and single other characters; within a piece, the pair
whose joint token has the lowest number is joined first. tokenizer.cc does the same.
"""
import re

COUNT, END = 1024, 0
PIECES = re.compile(rb' ?[A-Za-z]+|[^A-Za-z]', re.DOTALL)


def train(texts, count):
    """The bytes of each token. Needs the package `tokenizers`."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(' ?[A-Za-z]+|[^A-Za-z]'), 'isolated'),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=count, initial_alphabet=alphabet, special_tokens=['<end>'],
                                                             show_progress=False))
    printable = [b for b in range(256) if chr(b).isprintable() and b != 0x20 and b not in (0xa0, 0xad)]
    byte_of = {chr(b): b for b in printable}
    byte_of.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in printable)})
    by_id = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return [b''] + [bytes(byte_of[c] for c in token) for token, _ in by_id[1:]]


def save(path, tokens):
    path.write_text(''.join(token.hex() + '\n' for token in tokens))


def load(path):
    return [bytes.fromhex(line) for line in path.read_text().splitlines()]


class Encoder:
    def __init__(self, tokens):
        self.number = {token: i for i, token in enumerate(tokens) if token}
        self.known = {}

    def piece(self, piece):
        if piece not in self.known:
            parts = [piece[i:i + 1] for i in range(len(piece))]
            while True:
                pairs = [(self.number.get(a + b, len(self.number) + 1), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
                if not pairs or min(pairs)[0] > len(self.number):
                    break
                at = min(pairs)[1]
                parts[at:at + 2] = [parts[at] + parts[at + 1]]
            self.known[piece] = [self.number[p] for p in parts]
        return self.known[piece]

    def __call__(self, text):
        return [t for piece in PIECES.findall(text.encode()) for t in self.piece(piece)]
