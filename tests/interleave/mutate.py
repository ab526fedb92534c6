#!/usr/bin/env python3
"""Copies a source with a mistake put in.

    mutate.py IN OUT OLD NEW [OLD NEW ...]

Each OLD has to be in the file exactly once, or the build fails: a mutant must not turn
into the original when the source is changed.
"""
import pathlib
import sys

source, target, *texts = sys.argv[1:]
text = pathlib.Path(source).read_text(encoding="utf-8")
for old in texts[::2]:
    if text.count(old) != 1:
        sys.exit(f"{source}: {text.count(old)} times instead of once: {old}")
for old, new in zip(texts[::2], texts[1::2], strict=True):
    text = text.replace(old, new)
pathlib.Path(target).write_text(text, encoding="utf-8")
