#!/usr/bin/env python3
"""Makes a token file (.bin) from text with a Hugging Face tokenizer.

Needs the package `tokenizers` (pip install tokenizers). The text is read in pieces of a megabyte that end with a line,
so it may be larger than memory; no token spans two pieces, and a tokenizer that marks the beginning of a text marks the
beginning of every piece. The format of the output is described in include/octavo/dataset/token_source.h.
"""

import sys

# This file is called like a module of Python's own, which others import: its folder must not be searched.
sys.path.pop(0)

import argparse
import array
import os
import struct

MAGIC = b"OCTVTOK1"
HEADER = struct.Struct("<8sIIQ")  # magic, bytes of one id, vocabulary size, number of ids
PIECE_CHARACTERS = 1 << 20


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Make a token file (.bin) for octavo from text files.",
        epilog="example: tools/tokenize.py --tokenizer SmolLM2/tokenizer.json --out train.bin part1.txt part2.txt",
    )
    parser.add_argument("text", nargs="+", help="UTF-8 text files, tokenized one after the other; - is standard input")
    parser.add_argument("--tokenizer", required=True, metavar="FILE", help="a tokenizer.json, or the folder it is in")
    parser.add_argument("--out", required=True, metavar="FILE.bin", help="the token file to write")
    parser.add_argument(
        "--separator", metavar="TOKEN", help="a token put after each text file, for example <|endoftext|>"
    )
    parser.add_argument("--force", action="store_true", help="overwrite the output file if it exists")
    return parser.parse_args()


def fail(message):
    print(f"tokenize.py: {message}", file=sys.stderr)
    sys.exit(2)


def load_tokenizer(path):
    try:
        from tokenizers import Tokenizer
    except ImportError:
        fail("the Python package `tokenizers` is missing; run: pip install tokenizers")
    if os.path.isdir(path):
        path = os.path.join(path, "tokenizer.json")
    if not os.path.exists(path):
        fail(f"{path} does not exist; name a tokenizer.json or its folder")
    try:
        return Tokenizer.from_file(path)
    except Exception as error:  # the package throws a bare Exception
        fail(f"{path} is no tokenizer that this version of `tokenizers` reads: {error}")


def pieces(path):
    """The text of a file in pieces of about PIECE_CHARACTERS that end with a line."""
    try:
        with open(sys.stdin.fileno() if path == "-" else path, encoding="utf-8", newline="") as text:
            while piece := text.read(PIECE_CHARACTERS):
                yield piece + text.readline()
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except UnicodeDecodeError as error:
        fail(f"{path} is not UTF-8 ({error.reason} at byte {error.start} of a block); convert it with iconv")


def id_lists(tokenizer, paths, separator):
    for path in paths:
        for piece in pieces(path):
            yield tokenizer.encode(piece, add_special_tokens=False).ids
        if separator is not None:
            yield [separator]


def vocabulary_size(tokenizer):
    """One more than the largest id: added tokens may leave holes, so this can exceed the number of tokens."""
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values())


def write_tokens(out, tokenizer, paths, separator):
    """Writes header and ids; returns the number of ids."""
    vocabulary = vocabulary_size(tokenizer)
    width = 2 if vocabulary <= 1 << 16 else 4
    typecode = "H" if width == 2 else "I"
    out.write(HEADER.pack(MAGIC, width, vocabulary, 0))
    count = 0
    for ids in id_lists(tokenizer, paths, separator):
        numbers = array.array(typecode, ids)
        if sys.byteorder == "big":
            numbers.byteswap()
        numbers.tofile(out)
        count += len(ids)
    out.seek(0)
    out.write(HEADER.pack(MAGIC, width, vocabulary, count))
    return count


def main():
    arguments = parse_arguments()
    if not arguments.out.endswith(".bin"):
        fail(f"--out {arguments.out}: octavo knows a token file by its ending; name it {arguments.out}.bin")
    if os.path.exists(arguments.out) and not arguments.force:
        fail(f"{arguments.out} exists; choose another name or give --force")
    tokenizer = load_tokenizer(arguments.tokenizer)
    separator = None
    if arguments.separator is not None:
        separator = tokenizer.token_to_id(arguments.separator)
        if separator is None:
            fail(f"--separator {arguments.separator} is no token of {arguments.tokenizer}")
    # Written beside its place and renamed when complete: a token file is whole or not there.
    unfinished = arguments.out + ".unfinished"
    try:
        with open(unfinished, "wb") as out:
            count = write_tokens(out, tokenizer, arguments.text, separator)
        if count == 0:
            fail(f"{', '.join(arguments.text)}: no tokens; name text that is not empty")
        os.replace(unfinished, arguments.out)
    except OSError as error:
        fail(f"{arguments.out}: {error.strerror}")
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)
    print(f"{arguments.out}: {count:,} tokens, vocabulary {vocabulary_size(tokenizer):,}")


if __name__ == "__main__":
    main()
